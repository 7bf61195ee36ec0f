"""Default method for all measures: minimize a bounded loss from a good starting point.

The starting point is usually logistic regression. scikit-learn's estimators give the same weights, but emit convergence
warnings, which are irrelevant for a starting point. Python can suppress a warning only for the whole process, including
other threads. Moreover, a fit can begin at the solution with another regularization strength.

The cost of a row under a convex surrogate grows with its distance from the correct side. A few distant negatives can
dominate the loss, and the optimum can be at zero weights. A bounded loss does not have this problem, but it has local
minima and overfits. Therefore it is minimized from a good starting point, with a penalty on the distance from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from rocmax._rounding import window_end
from rocmax._support import Array, Bools
from rocmax.losses import BoundLoss, Loss, PairwiseHinge, PartialAUCHinge
from rocmax.losses.bounded import Anchored
from rocmax.losses.ranks import blocks
from rocmax.measures import PartialAUCMeasure
from rocmax.operators import StandardizedOperator, standardized
from rocmax.penalties import SquaredL2, Unpenalized
from rocmax.solvers import CCCP, LBFGS, Callback, CuttingPlane, Progress, Result, SmoothedNewton
from rocmax.solvers.base import Solver


@dataclass(frozen=True)
class RefinementRules:
    """Tuned numbers of the default method; ``benchmarks/results/ablation.md`` has what its mechanisms gain."""

    # Width of the step of the partial-AUC loss, in standard deviations of the scores of the starting point. Wider steps
    # are closer to the convex losses; narrower steps have a non-zero gradient for fewer pairs.
    step: float = 0.25
    # Factor between the number of examples per feature and the inverse weight of the penalty at C = 1.
    trust: float = 0.1
    # Tolerance of the minimization, as a multiple of ``tol``; and of logistic regression, on few values and from a
    # number of values on. There the sampling error is larger than the tolerance, which is that of scikit-learn.
    accuracy: float = 0.01
    accuracy_on_many_values: float = 0.1
    start_accuracy: float = 1e-3
    start_accuracy_on_many_values: float = 0.1
    many_values: int = 100_000
    # Iterations for the tight loss, which stops early.
    tight_iterations: int = 30
    # Starting points are fitted to this part of the rows, or to this number of rows, in all or per feature, if that is
    # more; to all rows if the part would have more than every third row.
    part: float = 0.1
    part_rows: int = 10_000
    rows_per_feature: int = 100
    least_step: int = 3


RULES = RefinementRules()


def weighted_spread(scores: Array, weight: Array | None) -> float:
    """Return the weighted standard deviation of scores; 1 if it is zero."""
    mean, total, square = np.average(scores, weights=weight), 0.0, 0.0
    for rows in blocks(scores.size):
        part = scores[rows] - mean
        share = np.ones(part.size) if weight is None else weight[rows]
        total, square = total + float(share.sum()), square + float((share * part) @ part)
    return float(np.sqrt(square / total)) or 1.0


# The rows that determine the partial AUC, so that its computation need not sort all rows.


def top_rows(scores: Array, positive: Bools, weight: Array | None, max_fpr: float) -> tuple[Bools, Array, Array | None]:
    """Return labels, scores and weights with the same ROC curve up to a false-positive rate, of fewer rows.

    The rows with lower scores are joined to one of each class. With weights, all rows are returned.
    """
    m = int(np.count_nonzero(positive))
    n = positive.size - m
    k = int(max_fpr * n) + 2
    if weight is not None or 2 * k > n:
        return positive, scores, weight
    negative = scores[~positive]
    lowest = float(np.partition(negative, n - k)[n - k])
    used = np.flatnonzero(scores >= lowest)
    labels = positive[used]
    m_used = int(np.count_nonzero(labels))
    copies = np.append(np.ones(used.size), [m - m_used, n - (used.size - m_used)])
    return np.append(labels, [True, False]), np.append(scores[used], [lowest - 1.0] * 2), copies


# Logistic regression, the starting point.


class LogisticProblem:
    """Objective of ``LogisticRegression(C=C)``, a mean over rows; the intercept is the last weight."""

    def __init__(self, operator: StandardizedOperator, positive: Bools, weight: Array | None, C: float) -> None:
        self._operator, self._side = operator, np.where(positive, 1.0, -1.0)
        weight = np.ones(positive.size) if weight is None else weight
        total = float(weight.sum())
        self._share = weight / total
        self.ridge = np.append(np.full(operator.shape[1], 1.0 / (C * total)), 0.0)

    def value_and_gradient(self, v: Array) -> tuple[float, Array]:
        """Return value and gradient."""
        margin = self._operator.matvec(v[:-1])
        margin += v[-1]
        margin *= self._side
        small = np.exp(-np.abs(margin))
        value = float(self._share @ (np.log1p(small) - np.minimum(margin, 0.0)))
        coefficients = -np.where(margin >= 0, small, 1.0) / (1.0 + small)
        coefficients *= self._share
        coefficients *= self._side
        ridge = self.ridge * v
        gradient = np.append(self._operator.rmatvec(coefficients), coefficients.sum())
        return value + 0.5 * float(ridge @ v), gradient + ridge


def fit_logistic(
    problem: Any, tol: float, max_iter: int, near: Array | None = None, save: Callable[[Array], None] | None = None
) -> Array:
    """Minimize by L-BFGS until no entry of the gradient exceeds ``tol``; ``save`` gets the weights of each iteration.

    The fit begins at ``near``, the solution with another weight of the loss.
    """
    v = np.zeros(problem.ridge.size) if near is None else near
    options = {"maxiter": max_iter, "maxls": 50, "gtol": tol, "ftol": 64 * np.finfo(np.float64).eps}
    note = None if save is None else lambda v: save(v.copy())
    run = minimize(problem.value_and_gradient, v, jac=True, method="L-BFGS-B", options=options, callback=note)
    return np.asarray(run.x)


# Default method for all measures: minimize a bounded loss from a good starting point, with a penalty on the distance.


class Start(NamedTuple):
    """Starting point on standardized features: weights, and scores with unit standard deviation."""

    w: Array
    scores: Any


class StandardizedRows:
    """Rows in memory with standardized features, for a refinement; ``units`` gives means and scales of other rows.

    Rows in shards have the same methods, see :class:`~rocmax.linear.sharded.ShardedSet`.
    """

    def __init__(self, data: Any, units: StandardizedOperator | None = None) -> None:
        self.operator = standardized(data.X, data.weight) if units is None else units.like(data.X)
        self.data, self.bind, self.shape, self.scale = data, data.bind, data.X.shape, self.operator.scale
        # Last solutions of logistic regression without and with class weights, at which the next one begins.
        self._near: dict[bool, Array] = {}

    def logistic(self, strength: float, tol: float, max_iter: int, balanced: bool = False) -> Array:
        """Return the weights of logistic regression with this weight of the loss."""
        positive, weight = self.data.positive, self.data.weight
        if balanced:
            weight = np.ones(positive.size) if weight is None else weight
            total = weight.sum()
            weight = weight * (total / (2.0 * np.where(positive, weight[positive].sum(), weight[~positive].sum())))
        problem = LogisticProblem(self.operator, positive, weight, strength)
        found = self._near[balanced] = fit_logistic(problem, tol, max_iter, self._near.get(balanced))
        return found[:-1]

    def start(self, w: Array) -> Start:
        """Return weights and their scores, scaled to unit standard deviation."""
        scores = self.operator.matvec(w)
        spread = weighted_spread(scores, self.data.weight)
        scores /= spread
        return Start(w / spread, scores)

    def anchored(self, loss: BoundLoss, anchor: Start, strength: float) -> BoundLoss:
        """Return a loss of standardized scores with a penalty on their distance from those of a start."""
        return Anchored(loss, anchor.scores, strength)

    def minimize(self, solver: LBFGS, objective: BoundLoss, w: Array, callback: Callback | None) -> Result:
        """Minimize an objective from some weights."""
        return solver.solve(self.operator, objective, Unpenalized(), w, callback)

    def score(self, measure: Any, scores: Array) -> float:
        """Return a partial AUC."""
        data = top_rows(scores, self.data.positive, self.data.weight, measure.max_fpr)
        return float(measure.score(data[0], data[1], sample_weight=data[2], pos_label=True))

    def part(self, step: int) -> StandardizedRows | None:
        """Return every k-th row of each class."""
        positive = self.data.positive
        rows = np.sort(np.concatenate([np.flatnonzero(positive)[::step], np.flatnonzero(~positive)[::step]]))
        return StandardizedRows(self.data.some(rows), self.operator)


class Refinement(ABC):
    """Fit of a starting point on standardized features, and minimization of the bounded loss from it.

    ``rows`` are a :class:`StandardizedRows`, or a :class:`~rocmax.linear.sharded.ShardedSet`.
    """

    def __init__(self, rows: Any, loss: Loss, tol: float, max_iter: int) -> None:
        self._rows, self._tol, self._max_iter = rows, tol, max_iter
        self._loss = rows.bind(loss)
        self._many = rows.shape[0] * rows.shape[1] >= RULES.many_values
        self._measured: tuple[Start, float] | None = None

    @abstractmethod
    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight at ``C = 1``; it grows with the number of relevant rows per feature."""

    @abstractmethod
    def _measure(self, scores: Any) -> float:
        """Return the measure on the training rows."""

    def logistic_start(self, strength: float = 1.0, *, balanced: bool = False) -> Start:
        """Fit logistic regression with the given weight of the loss, and with balanced class weights or not."""
        tol = self._tol * (RULES.start_accuracy_on_many_values if self._many else RULES.start_accuracy)
        found = self._rows.logistic(strength, min(tol, 1e-4), 10 * self._max_iter, balanced)
        start: Start = self._rows.start(found)
        return start

    def start_at(self, w: Array) -> Start:
        """Return the starting point with these weights of the original features."""
        start: Start = self._rows.start(w * self._rows.scale)
        return start

    def weights(self, start: Start) -> Array:
        """Return the weights of a starting point in the original features."""
        result: Array = start.w / self._rows.scale
        return result

    def run(self, start: Start, C: float, w0: Array | None = None, callback: Callback | None = None) -> Result:
        """Minimize ``loss + 1/(2 C trust) Var(scores - start.scores)`` from ``start``, or from ``w0`` if better.

        The returned weights refer to the original features; the standard deviation of their scores is 1. The starting
        point is returned if ``C`` or the trust is zero, if its weights are zero, or if the measure on the training rows
        would decrease.
        """
        return self.path(start, [C], w0, callback)[1]

    def path(
        self, start: Start, Cs: Iterable[float], w0: Array | None = None, callback: Callback | None = None
    ) -> list[Result]:
        """Return the starting point and the results of :meth:`run` for ascending values of ``C``.

        Each minimization begins at the previous solution: its objective is not larger than that of the starting point.
        """
        # Copies of rows are not needed any more.
        self.__dict__.pop("_part", None)
        value = self._loss.value_and_gradient(start.scores)[0]
        trace = [Progress(value, np.nan, 1)]
        results = [Result(self.weights(start), value, np.nan, 1, True, "the starting point", trace)]
        begin = start.w if w0 is None or not np.any(w0) else self.start_at(w0).w
        for C in Cs:
            reach = float(C) * self.trust(start) if C > 0 and start.w.any() else 0.0
            if reach == 0:
                if callback is not None:
                    callback(trace[0])
                results.append(results[0])
                continue
            objective = self._rows.anchored(self._loss, start, 1.0 / reach)
            if w0 is not None and objective.value_and_gradient(self._rows.start(begin).scores)[0] >= value:
                begin = start.w
            result, end = self._descended(objective, begin, callback)
            if self._measure(end.scores) < self._measure_at(start):
                trace = [progress._replace(objective=value) for progress in result.trace]
                result = replace(result, w=results[0].w, objective=value, trace=trace)
            results.append(result)
            begin = end.w
        return results

    def _descended(self, objective: BoundLoss, begin: Array, callback: Callback | None) -> tuple[Result, Start]:
        """Minimize the objective from ``begin``; return the result and where it ended."""
        accuracy = RULES.accuracy_on_many_values if self._many else RULES.accuracy
        result: Result = self._rows.minimize(LBFGS(accuracy * self._tol, self._max_iter), objective, begin, callback)
        end = self._rows.start(result.w)
        message = result.message
        if not result.converged:
            message = (
                f"the minimization did not reach its tolerance: objective {result.objective:.6g} after {result.n_iter} "
                f"iterations, tol={self._tol:g}; raise max_iter or tol"
            )
        return replace(result, w=self.weights(end), message=message), end

    def _measure_at(self, start: Start) -> float:
        """Return the measure of a starting point, which is computed once."""
        if self._measured is None or self._measured[0] is not start:
            self._measured = start, self._measure(start.scores)
        return self._measured[1]


class WindowRefinement(Refinement):
    """Refinement for the partial AUC; ``window`` are two false-positive rates and the least true-positive rate."""

    def __init__(self, rows: Any, window: tuple[float, float, float], tol: float, max_iter: int) -> None:
        self._area, self._window = PartialAUCMeasure(*window), window
        super().__init__(rows, self._area.soft_loss(RULES.step), tol, max_iter)

    @cached_property
    def _part(self) -> tuple[WindowRefinement, int] | None:
        """Fit on every k-th row of each class, and k; None if there are not many rows."""
        n_rows, n_features = self._rows.shape
        step = int(n_rows / max(RULES.part * n_rows, RULES.part_rows, RULES.rows_per_feature * n_features))
        part = self._rows.part(step) if step >= RULES.least_step else None
        return None if part is None else (WindowRefinement(part, self._window, self._tol, self._max_iter), step)

    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight, from the numbers of positives and of negatives in the window."""
        low, high, floor = self._window
        positives = (1.0 - floor) * self._loss.m
        held = 1.0 / (1.0 / positives + 1.0 / (window_end(self._loss.n, high) - window_end(self._loss.n, low)))
        trust: float = RULES.trust * held / self._rows.shape[1]
        return trust

    def logistic_start(self, strength: float = 1.0, *, balanced: bool = False) -> Start:
        """Fit logistic regression, on many rows to a part of them: its loss is a sum over the rows."""
        if self._part is None:
            return super().logistic_start(strength, balanced=balanced)
        part, step = self._part
        return self._of_all_rows(part.logistic_start(step * strength, balanced=balanced))

    def tight_start(self, strength: float) -> Start:
        """Minimize the tight convex loss by the algorithm of Narasimhan and Agarwal, which stops early.

        It stops where the minimum is at zero weights, too; on many rows, it has a part of them.
        """
        if self._part is not None:
            return self._of_all_rows(self._part[0].tight_start(strength))
        return self._solved(CuttingPlane(max_iter=RULES.tight_iterations), self._area.convex_loss(), strength)

    def hinge_start(self, strength: float) -> Start:
        """Minimize the hinge on the pairs in the window, which is not convex, by CCCP from the full AUC; roughly."""
        if self._part is not None:
            return self._of_all_rows(self._part[0].hinge_start(strength))
        rough = SmoothedNewton(10 * self._tol, 10)
        full = rough.solve(self._rows.operator, self._rows.bind(PairwiseHinge()), SquaredL2(strength))
        return self._solved(CCCP(10 * self._tol, 5, inner=rough), PartialAUCHinge(*self._window), strength, full.w)

    def _solved(self, solver: Solver, loss: Loss, strength: float, w0: Array | None = None) -> Start:
        found = solver.solve(self._rows.operator, self._rows.bind(loss), SquaredL2(strength), w0)
        start: Start = self._rows.start(found.w)
        return start

    def _of_all_rows(self, start: Start) -> Start:
        """Return a starting point of a part of the rows for all of them."""
        found: Start = self._rows.start(start.w)
        return found

    def _measure(self, scores: Any) -> float:
        area: float = self._rows.score(self._area, scores)
        return area
