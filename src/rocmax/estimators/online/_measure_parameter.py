"""What estimators share that are told by a parameter which measure to train for."""

from __future__ import annotations

from rocmax._window import check_beta, check_top, check_window
from rocmax.estimators._base import MeasureMixin
from rocmax.measures import Measure, pick_measure


class MeasureParameterMixin(MeasureMixin):
    """Measure from the parameter ``measure`` and the parameters of all measures next to it."""

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
        # The loss may be stricter than the measure: a rate at an FPR of 0 can be measured, but not trained for.
        self._make_measure().convex_loss()

    def _stream_measure(self) -> Measure:
        """Return the measure for a stream, whose length is not known."""
        measure = self._make_measure()
        if measure.counts_rows:
            raise ValueError(
                f"in partial_fit, k must be a fraction of the rows, a float above 0 and at most 1: how many rows will "
                f"come is not known; got {measure!r}"
            )
        return measure
