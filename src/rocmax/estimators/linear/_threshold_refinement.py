"""Refinement of a starting point for measures of decisions, such as the F-measure or precision at k."""

from __future__ import annotations

import numpy as np
from sklearn.utils.extmath import row_norms

from rocmax._typing import Array
from rocmax._validate import TrainingSet
from rocmax.estimators.linear._refinement import TRUST, Refinement, Start
from rocmax.losses.anchored import Anchored
from rocmax.measures import Measure


class ThresholdRefinement(Refinement):
    """Refinement for a threshold-based measure.

    Parameters
    ----------
    data : TrainingSet
        Training data.
    measure : Measure
        The measure.
    width : float
        Width of the step of the soft loss, in standard deviations of the scores.
    tol : float
        Tolerance for the starting points and the minimization.
    max_iter : int
        Maximum number of iterations of each fit.
    """

    def __init__(self, data: TrainingSet, measure: Measure, width: float, tol: float, max_iter: int) -> None:
        super().__init__(data, measure.soft_loss(width), tol, max_iter)
        self._of_decisions = measure

    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight, from the size of the smaller class and the evidence at the start."""
        return TRUST * min(self._loss.m, self._loss.n) / self._operator.shape[1] * self.evidence(start)

    def evidence(self, start: Start) -> float:
        """Return the fraction of the squared gradient norm at the start that exceeds sampling noise, at least 0.

        The gradient is a sum over rows. If the starting point is a stationary point of the expected loss, the expected
        gradient is zero, and its expected squared norm is the sum of the squared norms of the terms. The excess over
        that value plus one standard error is returned as a fraction. For d uncorrelated features the relative standard
        error is sqrt(2 / d), as for a chi-square distribution. Without the standard error, the result is the shrinkage
        factor of the James-Stein estimator.
        """
        slope = Anchored(self._loss, start.scores, 0.0).value_and_gradient(start.scores)[1]
        total = self._operator.rmatvec(slope)
        noise = float(slope**2 / self._loss.weight @ self._distances())
        chance, square = noise * (1.0 + np.sqrt(2.0 / total.size)), float(total @ total)
        return 1.0 - chance / square if square > chance else 0.0

    def _distances(self) -> Array:
        """Return the squared distance of each row from the mean; sparse rows are not centered by the scaler."""
        mean = np.asarray(self._operator.rmatvec(self._loss.weight / self._loss.weight.sum()))
        squares = row_norms(self._operator.rows(slice(None)), squared=True)
        result: Array = squares - 2.0 * self._operator.matvec(mean) + float(mean @ mean)
        return result

    def _measure(self, scores: Array) -> float:
        threshold = self._of_decisions.threshold(scores, self._data.positive, self._data.weight)
        return self._of_decisions.score(
            self._data.positive, scores - threshold, sample_weight=self._data.weight, pos_label=True
        )
