"""Mixin for estimators with a parameter ``measure``."""

from __future__ import annotations

from rocmax._window import check_beta, check_top, check_window
from rocmax.estimators.base import MeasureMixin
from rocmax.measures import Measure, pick_measure


class MeasureParameterMixin(MeasureMixin):
    """Mixin that creates the measure from ``measure`` and the parameters of the measures."""

    measure: str | Measure
    min_fpr: float
    max_fpr: float
    k: float
    beta: float

    def _make_measure(self) -> Measure:
        offered = {"min_fpr": self.min_fpr, "max_fpr": self.max_fpr, "k": self.k, "beta": self.beta}
        return pick_measure(self.measure, offered, to_train=True)

    def _check_measure(self) -> None:
        check_window(self.min_fpr, self.max_fpr)
        check_top(self.k)
        check_beta(self.beta)
        # The loss can have stricter limits than the measure: the TPR at an FPR of 0 can be computed, but not optimized.
        self._make_measure().convex_loss()

    def _stream_measure(self) -> Measure:
        """Return the measure for a stream of unknown length."""
        measure = self._make_measure()
        if measure.counts_rows:
            raise ValueError(
                f"in partial_fit, k must be a fraction of the rows, a float above 0 and at most 1, because the total "
                f"number of rows is unknown; got {measure!r}"
            )
        return measure
