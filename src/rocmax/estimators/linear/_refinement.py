"""Default method for all measures: minimize a bounded loss from a good starting point, with a penalty on the distance.

The cost of a row under a convex surrogate grows with its distance from the correct side. A few distant negatives can
dominate the loss, and the optimum can be at zero weights. A bounded loss does not have this problem, but it has local
minima and overfits. Therefore it is minimized from a good starting point, with a penalty on the distance from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import row_norms

from rocmax._typing import Array
from rocmax._validate import CHECKING, TrainingSet
from rocmax._window import window_end
from rocmax.estimators.linear._initial_weights import fit_start
from rocmax.estimators.linear._positive_clusters import Labels, group, regroup
from rocmax.losses import Loss
from rocmax.losses.anchored import Anchored
from rocmax.measures import Measure, PartialAUCMeasure, ROCAUCMeasure
from rocmax.operators import MatrixOperator
from rocmax.penalties import SquaredL2, Unpenalized
from rocmax.solvers import LBFGS, Callback, Progress, Result, SmoothedNewton

# Width of the step of the partial-AUC loss, in standard deviations of the scores of the starting point. Wider steps are
# closer to the convex losses; narrower steps have a non-zero gradient for fewer pairs.
STEP = 0.25
# Factor between the number of examples per feature and the inverse weight of the penalty at C = 1.
TRUST = 0.1
# Fraction of the maximum number of iterations that is used to fit a starting point with a convex loss on pairs.
ROUGH_SHARE = 0.06
# Weight of the loss of starting points for a cluster of positives.
SUBGROUP_STRENGTH = 10.0
# Starting points of a fit without cross-validation: kind and weight of the loss, on standardized features.
STARTS = (("logistic", 1.0), ("auc", 10.0))


class Start(NamedTuple):
    """Starting point on standardized features: weights, and scores with unit standard deviation."""

    w: Array
    scores: Array


class Refinement(ABC):
    """Fit of starting points on standardized features, and minimization of the bounded loss from one of them.

    Parameters
    ----------
    data : TrainingSet
        Training data.
    loss : Loss
        Bounded loss, applied to scores with unit standard deviation.
    tol : float
        Tolerance for the starting points and the minimization.
    max_iter : int
        Maximum number of iterations of each fit.
    """

    def __init__(self, data: TrainingSet, loss: Loss, tol: float, max_iter: int) -> None:
        # Arrays, independent of scikit-learn's global output configuration.
        scaler = StandardScaler(with_mean=not sparse.issparse(data.X)).set_output(transform="default")
        with CHECKING:
            self._X = scaler.fit_transform(data.X, sample_weight=data.weight)
        self._scale = scaler.scale_
        self._operator = MatrixOperator(self._X)
        self._data, self._tol, self._max_iter = data, tol, max_iter
        self._loss = loss.bind(data.positive, data.weight)

    @abstractmethod
    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight at ``C = 1``; it grows with the number of relevant rows per feature."""

    @abstractmethod
    def _measure(self, scores: Array) -> float:
        """Return the measure on the training rows."""

    def start(self, kind: str, strength: float) -> Start:
        """Fit a starting point, "logistic", "balanced" or "svc", with the given weight of the loss."""
        return self._fitted(kind, strength, slice(None))

    def _fitted(self, kind: str, strength: float, rows: Any) -> Start:
        weight = None if self._data.weight is None else self._data.weight[rows]
        tol, max_iter = min(1e-4, 0.1 * self._tol), 10 * self._max_iter
        w = fit_start(kind, self._X[rows], self._data.positive[rows], weight, strength, tol, max_iter)
        return self._normalized(w)

    def mean_start(self, weights: Array) -> Start:
        """Return the mean of several starting points, given as weights in the original features."""
        return self._normalized(np.mean(weights, axis=0) * self._scale)

    def run(self, start: Start, C: float, w0: Array | None = None, callback: Callback | None = None) -> Result:
        """Minimize ``loss + 1/(2 C trust) Var(scores - start.scores)`` from ``start``, or from ``w0`` if better.

        The returned weights refer to the original features. The starting point is returned if ``C`` or the trust is
        zero, if its weights are zero, or if the measure on the training rows would decrease.
        """
        reach = C * self.trust(start) if C > 0 and start.w.any() else 0.0
        if reach == 0:
            value = self._loss.value_and_gradient(start.scores)[0]
            trace = [Progress(value, np.nan, 1)]
            if callback is not None:
                callback(trace[0])
            return Result(start.w / self._scale, value, np.nan, 1, True, "the starting point", trace)
        objective = Anchored(self._loss, start.scores, 1.0 / reach)
        begin, value = start, objective.value_and_gradient(start.scores)[0]
        if w0 is not None and np.any(w0):
            other = self._normalized(w0 * self._scale)
            begin = other if objective.value_and_gradient(other.scores)[0] < value else start
        descent = LBFGS(0.01 * self._tol, self._max_iter)
        result = descent.solve(self._operator, objective, Unpenalized(), begin.w, callback)
        if self._measure(self._operator.matvec(result.w)) < self._measure(start.scores):
            trace = [progress._replace(objective=value) for progress in result.trace]
            result = replace(result, w=start.w, objective=value, trace=trace)
        if not result.converged:
            message = (
                f"the minimization did not reach its tolerance: objective {result.objective:.6g} after {result.n_iter} "
                f"iterations, tol={self._tol:g}; raise max_iter or tol"
            )
            result = replace(result, message=message)
        return replace(result, w=self._normalized(result.w).w / self._scale)

    def spread(self, w: Array) -> float:
        """Return the standard deviation of the scores for weights in the original features; 1 if it is zero."""
        return weighted_spread(self._operator.matvec(w * self._scale), self._data.weight)

    def _normalized(self, w: Array) -> Start:
        scores = self._operator.matvec(w)
        spread = weighted_spread(scores, self._data.weight)
        return Start(w / spread, scores / spread)


def weighted_spread(scores: Array, weight: Array | None) -> float:
    """Return the weighted standard deviation of scores; 1 if it is zero."""
    mean = np.average(scores, weights=weight)
    return float(np.sqrt(np.average((scores - mean) ** 2, weights=weight))) or 1.0


class WindowRefinement(Refinement):
    """Refinement for the partial AUC.

    Parameters
    ----------
    data : TrainingSet
        Training data.
    window : (float, float, float)
        Range of false-positive rates, and the lower limit on the true-positive rate.
    tol : float
        Tolerance for the starting points and the minimization.
    max_iter : int
        Maximum number of iterations of each fit.
    """

    def __init__(self, data: TrainingSet, window: tuple[float, float, float], tol: float, max_iter: int) -> None:
        self._area: Measure = PartialAUCMeasure(*window)
        super().__init__(data, self._area.soft_loss(STEP), tol, max_iter)
        self._window = window

    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight, from the numbers of positives and of negatives in the window."""
        low, high, floor = self._window
        positives = (1.0 - floor) * self._loss.m
        held = 1.0 / (1.0 / positives + 1.0 / (window_end(self._loss.n, high) - window_end(self._loss.n, low)))
        return TRUST * held / self._operator.shape[1]

    def start(self, kind: str, strength: float) -> Start:
        """Fit a starting point; also "auc", the full AUC, or "tight", the tight convex loss on the window."""
        if kind not in ("auc", "tight"):
            return super().start(kind, strength)
        loss = (ROCAUCMeasure() if kind == "auc" else self._area).convex_loss()
        # Convergence is slow to zero weights and on separable rows, and a starting point need not be optimal.
        max_iter = max(1, round(ROUGH_SHARE * self._max_iter))
        bound = loss.bind(self._data.positive, self._data.weight)
        solver = SmoothedNewton(self._tol, max_iter)
        return self._normalized(solver.solve(self._operator, bound, SquaredL2(strength)).w)

    def subgroups(self) -> list[Labels]:
        """Return clusters of similar positives, as a label for each row; see ``_positive_clusters.group``."""
        return group(self._X, self._data.positive, self._data.weight)

    def subgroup_starts(self, labels: Labels, size: int) -> list[Start]:
        """Fit a starting point for each cluster against all negatives; zero weights for an empty cluster.

        ``labels`` are the labels of the current rows from a clustering of all rows.
        """
        labels = regroup(self._X, self._data.positive, self._data.weight, labels, size)
        nothing = self._normalized(np.zeros(self._operator.shape[1]))
        groups = [labels == k for k in range(size)]
        return [
            self._fitted("logistic", SUBGROUP_STRENGTH, members | (labels < 0)) if members.any() else nothing
            for members in groups
        ]

    def best_start(self) -> Start:
        """Return the starting point with the largest training partial AUC; the first of ties, zero weights last."""
        starts = [self.start(*spec) for spec in STARTS]
        return max(starts, key=lambda start: (bool(start.w.any()), self._measure(start.scores)))

    def _measure(self, scores: Array) -> float:
        return self._area.score(self._data.positive, scores, sample_weight=self._data.weight)


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
        squares = row_norms(self._X, squared=True)
        result: Array = squares - 2.0 * self._operator.matvec(mean) + float(mean @ mean)
        return result

    def _measure(self, scores: Array) -> float:
        threshold = self._of_decisions.threshold(scores, self._data.positive, self._data.weight)
        return self._of_decisions.score(
            self._data.positive, scores - threshold, sample_weight=self._data.weight, pos_label=True
        )
