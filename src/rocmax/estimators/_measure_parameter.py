"""Mixin for estimators with a parameter ``measure``."""

from __future__ import annotations

from dataclasses import replace

from rocmax._validate import check_choice
from rocmax._window import check_beta, check_corner, check_top
from rocmax.estimators.base import MeasureMixin
from rocmax.losses import Loss, PrecisionAtK
from rocmax.measures import Measure, pick_measure

REFERENCES = ("best", "positives")


class MeasureParameterMixin(MeasureMixin):
    """Mixin that creates the measure from ``measure`` and the parameters of the measures."""

    measure: str | Measure
    min_fpr: float
    max_fpr: float
    k: float
    beta: float
    # The default applies to models that were saved by versions without this parameter.
    min_tpr: float = 0.0
    # A parameter only of estimators that minimize the convex loss.
    reference: str = "best"

    def _make_measure(self) -> Measure:
        names = ("min_fpr", "max_fpr", "min_tpr", "k", "beta")
        offered = {name: getattr(self, name) for name in names}
        return pick_measure(self.measure, offered, to_train=True)

    def _check_measure(self) -> None:
        check_corner(self.min_fpr, self.max_fpr, self.min_tpr)
        check_top(self.k)
        check_beta(self.beta)
        check_choice("reference", self.reference, REFERENCES)
        # The loss can have stricter limits than the measure: the TPR at an FPR of 0 can be computed, but not optimized.
        self._convex_loss(self._make_measure())

    def _convex_loss(self, measure: Measure) -> Loss:
        """Return the convex loss of a measure, with the reference labelling for the precision at k."""
        loss = measure.convex_loss()
        if self.reference == "best":
            return loss
        if not isinstance(loss, PrecisionAtK):
            raise ValueError(f"reference must be 'best' unless measure is precision_at_k; got {self.reference!r}")
        return replace(loss, reference=self.reference)

    def _stream_measure(self) -> Measure:
        """Return the measure for a stream of unknown length."""
        measure = self._make_measure()
        if measure.counts_rows:
            raise ValueError(
                f"in partial_fit, k must be a fraction of the rows, a float above 0 and at most 1, because the total "
                f"number of rows is unknown; got {measure!r}"
            )
        return measure
