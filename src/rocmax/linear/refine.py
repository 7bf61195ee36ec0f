"""Default method for all measures: minimize a bounded loss from a good starting point.

scikit-learn's estimators give the same weights, but emit convergence warnings, which are irrelevant for a starting
point. Python can suppress a warning only for the whole process, including other threads. Moreover, a fit can begin at
the solution with another regularization strength.

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
from scipy import linalg, sparse
from scipy.optimize import minimize

from rocmax._rounding import window_end
from rocmax._support import Array, Bools
from rocmax._validation import TrainingSet
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
    # Tolerance of the minimization, as a multiple of ``tol``; and of logistic regression, on few rows and from a number
    # of rows on, where the sampling error is larger than the tolerance.
    accuracy: float = 0.01
    start_accuracy: float = 1e-3
    start_accuracy_on_many_rows: float = 0.1
    many_rows: int = 10_000
    # Starting points are fitted to this part of the rows, or to this number of rows, in all or per feature, if that is
    # more; to all rows if the part would have more than every third row.
    part: float = 0.1
    part_rows: int = 10_000
    rows_per_feature: int = 100
    least_step: int = 3
    # Largest number of features for a Hessian, and least number of values in the rows from which it is estimated.
    most_features: int = 300
    values: int = 1 << 18
    # A Newton step with the Hessian of a sample of the rows should reduce the gradient to this part; after this number
    # of steps with less progress, it is not used any more. The fit ends after this number of steps in a row that do not
    # halve the gradient.
    contraction: float = 0.2
    most_poor: int = 4
    most_stalled: int = 10


RULES = RefinementRules()
# Numbers in a block of rows that is processed at a time, so that copies stay in the cache.
_BLOCK = 1 << 17


# Standard deviation of scores, and moments of features from a sample of rows.


def weighted_spread(scores: Array, weight: Array | None) -> float:
    """Return the weighted standard deviation of scores; 1 if it is zero."""
    mean, total, square = np.average(scores, weights=weight), 0.0, 0.0
    for rows in blocks(scores.size):
        part = scores[rows] - mean
        share = np.ones(part.size) if weight is None else weight[rows]
        total, square = total + float(share.sum()), square + float((share * part) @ part)
    return float(np.sqrt(square / total)) or 1.0


class RowSample:
    """Standardized rows at equal distances, from which matrices of pairs of features are estimated."""

    def __init__(self, operator: StandardizedOperator, weight: Array | None = None) -> None:
        n_rows, n_features = operator.shape
        step = max(1, n_rows // max(RULES.values // n_features, RULES.rows_per_feature * n_features))
        self.index = slice(None, None, step)
        self._X, self._missing = operator.rows(self.index), np.zeros(n_features)
        if step > 1:
            # A feature that is constant in most of the rows may be constant in the sample. Its variance is 1.
            share = np.ones(self._X.shape[0]) if weight is None else weight[self.index]
            moments = self._sums(share / share.sum())
            self._missing = np.maximum(1.0 - (np.diag(moments)[:-1] - moments[-1, :-1] ** 2), 0.0)

    def moments(self, share: Array, factor: Array) -> Array:
        """Estimate the sum of ``share factor [x, 1] [x, 1]'`` over all rows; ``factor`` is for the sample."""
        part = share[self.index]
        part = part * (share.sum() / part.sum()) * factor
        result = self._sums(part)
        result[np.diag_indices_from(result)] += part.sum() * np.append(self._missing, 0.0)
        return result

    def _sums(self, weight: Array) -> Array:
        """Return the sum of ``weight [x, 1] [x, 1]'`` over the rows of the sample."""
        X, root = self._X, np.sqrt(weight).astype(self._X.dtype, copy=False)[:, np.newaxis]
        n_rows, size = X.shape
        result = np.zeros((size + 1, size + 1))
        step = n_rows if sparse.issparse(X) else max(1, _BLOCK // size)
        for start in range(0, n_rows, step):
            block, part = X[start : start + step], root[start : start + step]
            scaled = block.multiply(part).tocsr() if sparse.issparse(block) else block * part
            square = scaled.T @ scaled
            result[:-1, :-1] += square.toarray() if sparse.issparse(square) else square
            result[-1, :-1] += scaled.T @ part.ravel()
        result[:-1, -1] = result[-1, :-1]
        result[-1, -1] = weight.sum()
        return result


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
    """Objective of ``LogisticRegression(C=C)``, a mean over rows of non-zero weight; the intercept is the last weight.

    Without a ``sample``, because there are too many features, the problem has no Hessian.
    """

    def __init__(
        self,
        operator: StandardizedOperator,
        positive: Bools,
        weight: Array | None,
        C: float,
        sample: RowSample | None = None,
    ) -> None:
        self._operator, self._sample, self._side = operator, sample, np.where(positive, 1.0, -1.0)
        weight = np.ones(positive.size) if weight is None else weight
        total = float(weight.sum())
        self._share = weight / total
        self.ridge = np.append(np.full(operator.shape[1], 1.0 / (C * total)), 0.0)
        # Point of the last gradient, and the margins of the sample there: a Hessian usually follows at the same point.
        self._last: tuple[Array, Array] | None = None

    @property
    def has_hessian(self) -> bool:
        """Whether the Hessian can be computed."""
        return self._sample is not None

    @property
    def is_sampled(self) -> bool:
        """Whether the Hessian is computed from a part of the rows."""
        return self._sample is not None and self._sample.index.step > 1

    def gradient(self, v: Array) -> Array:
        """Return the gradient."""
        margin = self._margin(v)
        if self._sample is not None:
            part = margin[self._sample.index]
            self._last = v, part.copy() if self.is_sampled else part
        return self._gradient(v, margin)

    def value_and_gradient(self, v: Array) -> tuple[float, Array]:
        """Return value and gradient."""
        margin = self._margin(v)
        value = np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)
        return float(self._share @ value + 0.5 * self.ridge @ v**2), self._gradient(v, margin)

    def hessian(self, v: Array) -> Array:
        """Return the Hessian of the mean loss without the penalty, from a sample of the rows."""
        sample = self._sample
        assert sample is not None
        last = self._last
        margin = last[1] if last is not None and last[0] is v else self._margin(v)[sample.index]
        small = np.exp(-np.abs(margin))
        return sample.moments(self._share, small / (1.0 + small) ** 2)

    def _margin(self, v: Array) -> Array:
        margin = self._operator.matvec(v[:-1])
        margin += v[-1]
        margin *= self._side
        return margin

    def _gradient(self, v: Array, margin: Array) -> Array:
        small = np.exp(-np.abs(margin))
        coefficients = -np.where(margin >= 0, small, 1.0) / (1.0 + small)
        coefficients *= self._share
        coefficients *= self._side
        return np.append(self._operator.rmatvec(coefficients), coefficients.sum()) + self.ridge * v


def fit_logistic(
    problem: Any, tol: float, max_iter: int, near: Array | None = None, save: Callable[[Array], None] | None = None
) -> Array:
    """Minimize by Newton's method, or by L-BFGS without a Hessian, until no entry of the gradient exceeds ``tol``.

    A last Newton step follows. The fit begins at ``near``, the solution with another weight of the loss. ``save`` gets
    the weights of each iteration of L-BFGS.
    """
    v = np.zeros(problem.ridge.size) if near is None else near
    if not problem.has_hessian:
        return _quasi_newton(problem, tol, max_iter, v, None, save)
    gradient, n_poor, least, n_stalled = problem.gradient(v), 0, np.inf, 0
    for _ in range(max_iter):
        largest = float(np.abs(gradient).max())
        n_stalled = 0 if largest <= 0.5 * least else n_stalled + 1
        least = min(least, largest)
        if n_stalled >= RULES.most_stalled:
            break  # rounding errors, above all of rows in single precision
        factor = _factor(problem.hessian(v), problem.ridge)
        step = -_solved(factor, gradient)
        if largest <= tol:
            return v + step
        decrease = -float(gradient @ step)
        v, gradient, length = _searched(problem, v, gradient, step)
        n_poor += length < 1.0 or float(gradient @ _solved(factor, gradient)) > RULES.contraction**2 * decrease
        if length == 0.0 or (n_poor >= RULES.most_poor and problem.is_sampled):
            # The Hessian from a sample of the rows is not accurate enough.
            return _quasi_newton(problem, tol, max_iter, v, None if length == 0.0 else factor)
    return v


def _quasi_newton(
    problem: Any, tol: float, max_iter: int, v: Array, factor: Array | None, save: Callable[[Array], None] | None = None
) -> Array:
    """Minimize by L-BFGS, with the upper Cholesky factor of an approximate Hessian as preconditioner."""

    def weights(u: Array) -> Array:
        return u if factor is None else linalg.solve_triangular(factor, u)

    def objective(u: Array) -> tuple[float, Array]:
        value, gradient = problem.value_and_gradient(weights(u))
        return value, gradient if factor is None else linalg.solve_triangular(factor, gradient, trans="T")

    options = {"maxiter": max_iter, "maxls": 50, "gtol": tol, "ftol": 64 * np.finfo(np.float64).eps}
    start = v if factor is None else factor @ v
    note = None if save is None else lambda u: save(weights(u.copy()))
    run = minimize(objective, start, jac=True, method="L-BFGS-B", options=options, callback=note)
    return np.asarray(weights(run.x))


def _searched(problem: LogisticProblem, v: Array, gradient: Array, step: Array) -> tuple[Array, Array, float]:
    """Return the end of a step, the gradient there, and the length of the step, 0 if no step makes progress.

    Along the step the objective is convex: it decreases as long as its slope is negative, and a step that ends
    with a slope of at most half the size of the first one is accepted.
    """
    slope, length = float(gradient @ step), 1.0
    for _ in range(30):
        end = v + length * step
        after = problem.gradient(end)
        if float(after @ step) <= -0.5 * slope:
            return end, after, length
        length *= 0.5
    return v, gradient, 0.0


def _factor(hessian: Array, ridge: Array) -> Array:
    """Return the upper Cholesky factor of a regularized Hessian; directions without curvature are regularized slightly.

    SciPy's ``cho_factor`` and ``cho_solve`` take longer than the factorization of a few features.
    """
    matrix = hessian.copy()
    # On separable rows, the curvature in the direction of the intercept, which has no penalty, can vanish.
    least = max(1e-10 * float(matrix.trace()) / len(matrix), 1e-4 * float(ridge.max()))
    matrix[np.diag_indices_from(matrix)] += ridge + least
    result, info = linalg.lapack.dpotrf(matrix, clean=True)
    if info != 0:
        raise linalg.LinAlgError("the Hessian of a starting point must be positive definite and finite")
    return np.asarray(result)


def _solved(factor: Array, right: Array) -> Array:
    """Solve a system with an upper Cholesky factor."""
    return np.asarray(linalg.lapack.dpotrs(factor, right)[0])


# Default method for all measures: minimize a bounded loss from a good starting point, with a penalty on the distance.


class Start(NamedTuple):
    """Starting point on standardized features: weights, and scores with unit standard deviation."""

    w: Array
    scores: Any


class StandardizedRows:
    """Rows in memory with standardized features, for a refinement; ``units`` gives means and scales of other rows.

    Rows in shards have the same methods, see :class:`~rocmax.linear.sharded.ShardedSet`.
    """

    def __init__(self, data: TrainingSet, units: StandardizedOperator | None = None) -> None:
        self.operator = standardized(data.X, data.weight) if units is None else units.like(data.X)
        self.data, self.bind, self.shape, self.scale = data, data.bind, data.X.shape, self.operator.scale
        # Last solution of logistic regression, at which the next one begins.
        self._near: Array | None = None

    @cached_property
    def _sample(self) -> RowSample | None:
        few = self.shape[1] <= RULES.most_features
        return RowSample(self.operator, self.data.weight) if few else None

    def logistic(self, strength: float, tol: float, max_iter: int, balanced: bool = False) -> Array:
        """Return the weights of logistic regression with this weight of the loss."""
        positive, weight = self.data.positive, self.data.weight
        if balanced:
            weight = np.ones(positive.size) if weight is None else weight
            total = weight.sum()
            weight = weight * (total / (2.0 * np.where(positive, weight[positive].sum(), weight[~positive].sum())))
        problem = LogisticProblem(self.operator, positive, weight, strength, self._sample)
        self._near = fit_logistic(problem, tol, max_iter, self._near)
        return self._near[:-1]

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
        # Copies of rows are not needed any more.
        self.__dict__.pop("_sample", None)
        return solver.solve(self.operator, objective, Unpenalized(), w, callback)

    def score(self, measure: Any, scores: Array) -> float:
        """Return a partial AUC."""
        data = top_rows(scores, self.data.positive, self.data.weight, measure.max_fpr)
        return float(measure.score(data[0], data[1], sample_weight=data[2], pos_label=True))

    def part(self, step: int) -> StandardizedRows | None:
        """Return every k-th row of each class."""
        positive, weight = self.data.positive, self.data.weight
        rows = np.sort(np.concatenate([np.flatnonzero(positive)[::step], np.flatnonzero(~positive)[::step]]))
        weight = None if weight is None else weight[rows]
        data = self.data._replace(X=self.data.X[rows], positive=positive[rows], weight=weight)
        return StandardizedRows(data, self.operator)


class Refinement(ABC):
    """Fit of a starting point on standardized features, and minimization of the bounded loss from it.

    ``rows`` are a :class:`StandardizedRows`, or a :class:`~rocmax.linear.sharded.ShardedSet`.
    """

    def __init__(self, rows: Any, loss: Loss, tol: float, max_iter: int) -> None:
        self._rows, self._tol, self._max_iter = rows, tol, max_iter
        self._loss = rows.bind(loss)
        self._of_start: tuple[Start, float] | None = None
        self._measure_of_start: tuple[Start, float] | None = None

    @abstractmethod
    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight at ``C = 1``; it grows with the number of relevant rows per feature."""

    @abstractmethod
    def _measure(self, scores: Any) -> float:
        """Return the measure on the training rows."""

    def logistic_start(self, strength: float = 1.0, *, balanced: bool = False) -> Start:
        """Fit logistic regression with the given weight of the loss, and with balanced class weights or not."""
        many = self._rows.shape[0] >= RULES.many_rows
        tol = self._tol * (RULES.start_accuracy_on_many_rows if many else RULES.start_accuracy)
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
        reach = self._reach(start, C)
        if reach == 0:
            return self._unmoved(start, callback)
        begin, objective = start, self._rows.anchored(self._loss, start, 1.0 / reach)
        if w0 is not None and np.any(w0):
            other = self.start_at(w0)
            better = objective.value_and_gradient(other.scores)[0] < self._value(start)
            begin = other if better else start
        w = self._closer(1.0 / reach, start, begin.w)
        # Copies of rows are not needed any more.
        self.__dict__.pop("_part", None)
        return self._descended(objective, start, w, callback)[0]

    def path(self, start: Start, Cs: Iterable[float]) -> list[Result]:
        """Return the starting point and the results of :meth:`run` for ascending values of ``C``.

        Each minimization begins at the previous solution: its objective is not larger than that of the starting point.
        """
        results, begin = [self._unmoved(start)], start.w
        for C in Cs:
            reach = self._reach(start, float(C))
            if reach == 0:
                results.append(results[0])
                continue
            objective = self._rows.anchored(self._loss, start, 1.0 / reach)
            result, (begin, _) = self._descended(objective, start, self._closer(1.0 / reach, start, begin))
            results.append(result)
        return results

    def _reach(self, start: Start, C: float) -> float:
        """Return the inverse weight of the penalty; 0 if the starting point cannot be left."""
        return C * self.trust(start) if C > 0 and start.w.any() else 0.0

    def _unmoved(self, start: Start, callback: Callback | None = None) -> Result:
        trace = [Progress(self._value(start), np.nan, 1)]
        if callback is not None:
            callback(trace[0])
        return Result(self.weights(start), trace[0].objective, np.nan, 1, True, "the starting point", trace)

    def _descended(
        self, objective: BoundLoss, start: Start, begin: Array, callback: Callback | None = None
    ) -> tuple[Result, Start]:
        """Minimize the objective from ``begin``; return the result, or ``start`` if better, and where it ended."""
        result = self._minimized(objective, begin, callback)
        end = self._rows.start(result.w)
        if not result.converged:
            message = (
                f"the minimization did not reach its tolerance: objective {result.objective:.6g} after {result.n_iter} "
                f"iterations, tol={self._tol:g}; raise max_iter or tol"
            )
            result = replace(result, message=message)
        if self._measure(end.scores) < self._measure_at(start):
            value = self._value(start)
            trace = [progress._replace(objective=value) for progress in result.trace]
            return replace(result, w=self.weights(start), objective=value, trace=trace), end
        return replace(result, w=self.weights(end)), end

    def _minimized(self, objective: BoundLoss, w: Array, callback: Callback | None = None) -> Result:
        result: Result = self._rows.minimize(LBFGS(RULES.accuracy * self._tol, self._max_iter), objective, w, callback)
        return result

    def _closer(self, strength: float, start: Start, begin: Array) -> Array:
        """Return weights to begin with that are probably closer to the minimum than ``begin``."""
        return begin

    def _value(self, start: Start) -> float:
        """Return the loss of a starting point, which is computed once."""
        if self._of_start is None or self._of_start[0] is not start:
            self._of_start = start, self._loss.value_and_gradient(start.scores)[0]
        return self._of_start[1]

    def _measure_at(self, start: Start) -> float:
        """Return the measure of a starting point, which is computed once."""
        if self._measure_of_start is None or self._measure_of_start[0] is not start:
            self._measure_of_start = start, self._measure(start.scores)
        return self._measure_of_start[1]


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
        return self._moved(part.logistic_start(step * strength, balanced=balanced))

    def tight_start(self, strength: float) -> Start:
        """Minimize the tight convex loss by the algorithm of Narasimhan and Agarwal, which stops early.

        It stops where the minimum is at zero weights, too; on many rows, it has a part of them.
        """
        if self._part is not None:
            return self._moved(self._part[0].tight_start(strength))
        return self._solved(CuttingPlane(max_iter=100), self._area.convex_loss(), strength)

    def hinge_start(self, strength: float) -> Start:
        """Minimize the hinge on the pairs in the window, which is not convex, by CCCP from the full AUC; roughly."""
        if self._part is not None:
            return self._moved(self._part[0].hinge_start(strength))
        rough = SmoothedNewton(10 * self._tol, 10)
        full = rough.solve(self._rows.operator, self._rows.bind(PairwiseHinge()), SquaredL2(strength))
        return self._solved(CCCP(10 * self._tol, 5, inner=rough), PartialAUCHinge(*self._window), strength, full.w)

    def _solved(self, solver: Solver, loss: Loss, strength: float, w0: Array | None = None) -> Start:
        found = solver.solve(self._rows.operator, self._rows.bind(loss), SquaredL2(strength), w0)
        start: Start = self._rows.start(found.w)
        return start

    def _moved(self, start: Start) -> Start:
        """Return a starting point of a part of the rows for all of them."""
        moved: Start = self._rows.start(start.w)
        return moved

    def _closer(self, strength: float, start: Start, begin: Array) -> Array:
        """Return the minimum on a part of the rows, if there are many."""
        if self._part is None:
            return begin
        small = self._part[0]
        anchored = small._rows.anchored(small._loss, small._moved(start), strength)
        return small._minimized(anchored, begin).w

    def _measure(self, scores: Any) -> float:
        area: float = self._rows.score(self._area, scores)
        return area
