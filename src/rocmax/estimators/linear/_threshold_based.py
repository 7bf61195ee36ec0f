"""What the classifiers for measures of decisions share: two ways to fit, and how wide a soft threshold is."""

from __future__ import annotations

import numpy as np

from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_choice, check_number
from rocmax.estimators.base import MeasureMixin
from rocmax.estimators.linear._threshold_refinement import ThresholdRefinement
from rocmax.estimators.linear.base import solve_linear
from rocmax.losses import Loss
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, Callback, Result


class ThresholdBasedMixin(MeasureMixin):
    """Mixin for threshold-based measures: minimize a soft version of the measure, or a convex upper bound.

    It must precede ``LinearScoreClassifier`` in the list of bases.
    """

    loss: str
    C: float
    start_C: float  # noqa: N815 - the C of the start
    tol: float
    max_iter: int

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]  # of LinearScoreClassifier
        check_number("C", self.C, above=0.0)
        check_number("start_C", self.start_C, above=0.0)
        check_choice("loss", self.loss, ("auto", "convex"))

    def _minimize(self, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        measure = self._make_measure()
        if self.loss == "convex":
            solver = OCAS(self.tol, self.max_iter)
            return solve_linear(solver, self._convex_loss(), data, SquaredL2(self.C), w0, callback)
        refinement = ThresholdRefinement(data, measure, soft_width(data), self.tol, self.max_iter)
        return refinement.run(refinement.start("logistic", self.start_C), self.C, w0, callback)

    def _convex_loss(self) -> Loss:
        return self._make_measure().convex_loss()

    def _remedy(self) -> str:
        if self.loss == "auto":
            return "No feature separates the classes; check that the features vary."
        return (
            "The optimum of this convex loss is at zero weights: in no direction is the mean of the positives above "
            'the mean of the same number of highest negatives. Use loss="auto", which does not collapse.'
        )


def soft_width(data: TrainingSet) -> float:
    """Return the width of the soft step in standard deviations of the scores.

    It is proportional to the size of the smaller class to the power -1/5, like the optimal bandwidth in kernel density
    estimation.
    """
    weight = np.ones(data.positive.size) if data.weight is None else data.weight
    rarer = min(float(weight[data.positive].sum()), float(weight[~data.positive].sum()))
    result: float = 2.0 * max(rarer, 1.0) ** -0.2
    return result
