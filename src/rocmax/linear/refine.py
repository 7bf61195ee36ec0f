"""Default method for all measures: minimize a bounded loss from a good starting point.

scikit-learn's estimators give the same weights, but emit convergence warnings, which are irrelevant for a starting
point. Python can suppress a warning only for the whole process, including other threads. Moreover, a fit can begin at
the solution of a similar problem: another regularization strength, or all rows instead of those of a fold.

The cost of a row under a convex surrogate grows with its distance from the correct side. A few distant negatives can
dominate the loss, and the optimum can be at zero weights. A bounded loss does not have this problem, but it has local
minima and overfits. Therefore it is minimized from a good starting point, with a penalty on the distance from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.utils.extmath import row_norms
from sklearn.utils.sparsefuncs import mean_variance_axis

from rocmax._rounding import window_end
from rocmax._support import Array, Bools, Index
from rocmax._validation import CHECKING, TrainingSet
from rocmax.linear.base import START_RULES, start_solver
from rocmax.losses import Loss, PartialAUCHinge
from rocmax.losses.bounded import Anchored
from rocmax.losses.ranks import blocks
from rocmax.measures import Measure, PartialAUCMeasure, ROCAUCMeasure
from rocmax.operators import FAR, RotatedOperator, StandardizedOperator
from rocmax.penalties import SquaredL2, Unpenalized
from rocmax.solvers import LBFGS, Callback, Progress, Result

# Means, standard deviations and correlations of features, without a standardized copy of the rows.


# Largest number of features for matrices of pairs of features.
MAX_SQUARE = 300
# Rows per feature from which such a matrix is estimated, and the least number of values in these rows.
_ROWS_PER_FEATURE, _FEWEST_VALUES = 100, 1 << 18
# Numbers in a block of rows that is processed at a time, so that copies stay in the cache.
_BLOCK = 1 << 17
# Share of stored values above which a dense matrix takes less memory than a sparse one, 8 against 12 bytes for each.
_FULL = 2 / 3
# Part of the mean variance that is added to the diagonal of a covariance matrix before it is inverted.
_RIDGE = 0.1


def standardized(X: Any, weight: Array | None) -> StandardizedOperator:
    """Return an operator with standardized columns; sparse rows are not centered, and constant columns are left out.

    Sparse rows of which most values are stored are made dense if a column is far from zero: without centering, the
    mean would hide the differences between the rows.
    """
    given = weight
    if sparse.issparse(X):
        # scikit-learn requires weights of the type of the rows; the largest weights would overflow in single precision.
        if weight is not None and X.dtype != weight.dtype:
            weight = (weight / weight.max()).astype(X.dtype)
        mean, variance = mean_variance_axis(X.tocsr(), axis=0, weights=weight)
    else:
        mean, variance = _moments(X, weight)
    spread = np.sqrt(variance.astype(np.float64))
    # As in scikit-learn's StandardScaler.
    constant = spread <= 10 * np.finfo(np.float64).eps * np.abs(mean)
    is_far = bool((np.abs(mean) > FAR * spread)[~constant].any())
    if sparse.issparse(X) and is_far and X.nnz >= _FULL * X.shape[0] * X.shape[1]:
        return standardized(X.toarray(), given)
    shift = np.zeros(X.shape[1]) if sparse.issparse(X) else mean
    return StandardizedOperator(X, shift, np.where(constant, 0.0, spread))


def _moments(X: Any, weight: Array | None) -> tuple[Array, Array]:
    """Return the mean and the variance of the columns in one pass, from differences to approximate means."""
    n_rows, n_features = X.shape
    origin = X[:: max(1, n_rows // 1000)].mean(axis=0, dtype=np.float64)
    origin = origin.astype(X.dtype if X.dtype.kind == "f" else np.float64)
    total, sums, squares = 0.0, np.zeros(n_features), np.zeros(n_features)
    for start in range(0, n_rows, step := max(1, _BLOCK // n_features)):
        block = X[start : start + step] - origin
        part = np.ones(len(block), block.dtype) if weight is None else weight[start : start + step].astype(block.dtype)
        total += float(part.sum(dtype=np.float64))
        sums += part @ block
        squares += part @ np.square(block, out=block)
    mean = sums / total
    return origin + mean, np.maximum(squares / total - mean**2, 0.0)


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

    def __init__(self, operator: StandardizedOperator, weight: Array | None = None, step: int | None = None) -> None:
        n_rows, n_features = operator.shape
        if step is None:
            step = max(1, n_rows // max(_FEWEST_VALUES // n_features, _ROWS_PER_FEATURE * n_features))
        self.index = slice(None, None, step)
        self._X = operator.rows(self.index)
        self._weight = np.ones(self._X.shape[0]) if weight is None else weight[self.index]
        # A feature that is constant in most of the rows may be constant in the sample. Its variance in all rows is 1.
        self._missing = np.maximum(1.0 - np.diag(self.covariance), 0.0) if step > 1 else np.zeros(n_features)

    def moments(self, share: Array, factor: Array) -> Array:
        """Estimate the sum of ``share factor [x, 1] [x, 1]'`` over all rows; ``factor`` is for the sample."""
        part = share[self.index]
        part = part * (share.sum() / part.sum()) * factor
        result = self._sums(part)
        result[np.diag_indices_from(result)] += part.sum() * np.append(self._missing, 0.0)
        return result

    @cached_property
    def covariance(self) -> Array:
        """Covariance matrix of the features."""
        moments = self._sums(self._weight / self._weight.sum())
        mean = moments[-1, :-1]
        result: Array = moments[:-1, :-1] - np.outer(mean, mean)
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

    def whitening(self) -> Array:
        """Return a matrix ``P`` so that the features ``X P`` are almost uncorrelated."""
        covariance = self.covariance.copy()
        size = len(covariance)
        covariance[np.diag_indices(size)] += self._missing + _RIDGE * max(float(covariance.trace()) / size, 1e-300)
        try:
            root = linalg.cholesky(covariance, lower=True)
        except linalg.LinAlgError:
            # Sparse columns far from zero are not centered, so that the covariance is mostly rounding error.
            return np.eye(size)
        result: Array = linalg.solve_triangular(root, np.eye(size), lower=True).T
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


# Clusters of similar positives: in a narrow window, the best linear score may detect only one of the clusters.


Labels = NDArray[np.intp]

# Numbers of clusters to try.
SIZES = (2, 3, 4)
# Minimum mean number of positives per cluster: a starting point fitted to fewer rows is mostly noise.
_FEWEST = 50
# Relative distance, in units of the largest row norm, below which k-means cannot distinguish rows: it uses squares.
_SAME = 1e-6


def group(rows: Any, positive: Bools, weight: Array | None) -> list[Labels]:
    """Cluster the positives by k-means, once for each number of clusters for which there are enough positives.

    The label of a negative is -1. ``rows`` are the standardized positives.
    """
    sizes = [size for size in SIZES if positive.sum() >= _FEWEST * size]
    return [_grouped(rows, positive, weight, KMeans(size, n_init=3, random_state=0)) for size in sizes]


def regroup(rows: Any, positive: Bools, weight: Array | None, labels: Labels, size: int) -> Labels:
    """Cluster a subset of the rows again, initialized with the clusters of all rows.

    The labels of the clusters are preserved. Rows outside the subset affect only the initialization. If a cluster has
    no rows in the subset, the labels are returned unchanged.
    """
    members = [labels[positive] == k for k in range(size)]
    if not all(rows_of.any() for rows_of in members):
        return labels
    centers = np.vstack([np.asarray(rows[rows_of].mean(axis=0)).ravel() for rows_of in members])
    return _grouped(rows, positive, weight, KMeans(size, init=centers, n_init=1, random_state=0))


def _grouped(rows: Any, positive: Bools, weight: Array | None, model: KMeans) -> Labels:
    labels = np.full(positive.size, -1, dtype=np.intp)
    distinct = _distinct(rows)
    if distinct.max() + 1 < model.n_clusters:
        # Each distinct row is a cluster. The remaining clusters are empty and have no starting point.
        labels[positive] = distinct
    else:
        with CHECKING:
            labels[positive] = model.fit_predict(rows, sample_weight=None if weight is None else weight[positive])
    return labels


def _distinct(rows: Any) -> Labels:
    """Return labels that are equal for equal rows, based on their projections on a random direction."""
    direction = np.random.RandomState(0).standard_normal(rows.shape[1])
    places = np.asarray(rows @ (direction / np.linalg.norm(direction)))
    order = np.argsort(places, kind="stable")
    longest = np.sqrt(row_norms(rows, squared=True).max())
    numbers = np.empty(places.size, dtype=np.intp)
    numbers[order] = np.append(0, np.cumsum(np.diff(places[order]) > _SAME * longest))
    return numbers


# Linear classifiers used as starting points: logistic regression and the SVM with squared hinge loss.


# A Newton step with the Hessian of an earlier point or of other rows should reduce the gradient to this part.
_CONTRACTION = 0.2
# Number of new Hessians with less progress, after which a Hessian from a sample of the rows is not used any more.
_MOST_POOR = 4
# Number of steps in a row that do not halve the gradient, after which the minimization ends.
_MOST_STALLED = 10


class Solution(NamedTuple):
    """Weights of standardized features, followed by the intercept, and the Hessian of the mean loss, if computed."""

    v: Array
    hessian: Array | None = None


Solutions = dict[tuple[str, float], Solution]


class StartSpec(NamedTuple):
    """Starting point: kind, weight of the loss, and for a cluster of positives, its number and how many there are."""

    kind: str
    C: float
    group: int = 0
    n_groups: int = 0


class StartProblem:
    """Penalized mean loss of ``LogisticRegression(C=C)``, the same with balanced class weights, or ``LinearSVC(C=C)``.

    They are "logistic", "balanced" and "svc". Without a ``sample``, because there are too many features, the problem
    has no Hessian.
    """

    def __init__(
        self,
        kind: str,
        operator: StandardizedOperator,
        positive: Bools,
        weight: Array | None,
        C: float,
        sample: RowSample | None = None,
    ) -> None:
        self._operator, self._sample, self._side = operator, sample, np.where(positive, 1.0, -1.0)
        weight = np.ones(positive.size) if weight is None else weight
        total = float(weight.sum())
        share = weight / total
        if kind == "balanced":
            share = share / (2.0 * np.where(positive, share[positive].sum(), share[~positive].sum()))
        self._share = share
        # LinearSVC penalizes the intercept like the weight of a constant feature; LogisticRegression does not.
        self.ridge = np.full(operator.shape[1] + 1, 1.0 / (C * total))
        self.ridge[-1] *= kind == "svc"
        self._loss = SquaredHinge if kind == "svc" else Logistic
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
        return float(self._share @ self._loss.value(margin) + 0.5 * self.ridge @ v**2), self._gradient(v, margin)

    def hessian(self, v: Array) -> Array:
        """Return the Hessian of the mean loss without the penalty, from a sample of the rows."""
        sample = self._sample
        assert sample is not None
        last = self._last
        margin = last[1] if last is not None and last[0] is v else self._margin(v)[sample.index]
        return sample.moments(self._share, self._loss.curvature(margin))

    def _margin(self, v: Array) -> Array:
        margin = self._operator.matvec(v[:-1])
        margin += v[-1]
        margin *= self._side
        return margin

    def _gradient(self, v: Array, margin: Array) -> Array:
        coefficients = self._loss.slope(margin)
        coefficients *= self._share
        coefficients *= self._side
        return np.append(self._operator.rmatvec(coefficients), coefficients.sum()) + self.ridge * v


def fit_start(problem: StartProblem, tol: float, max_iter: int, near: Solution | None = None) -> Solution:
    """Minimize by Newton's method, or by L-BFGS without a Hessian, until no entry of the gradient exceeds ``tol``.

    A last Newton step follows. The fit begins at ``near``, the solution of a similar problem.
    """
    v = np.zeros(problem.ridge.size) if near is None else near.v
    if not problem.has_hessian:
        return Solution(_quasi_newton(problem, tol, max_iter, v, None))
    return _newton(problem, tol, max_iter, Solution(v, None if near is None else near.hessian))


def _quasi_newton(problem: StartProblem, tol: float, max_iter: int, v: Array, factor: Array | None) -> Array:
    """Minimize by L-BFGS, with the upper Cholesky factor of an approximate Hessian as preconditioner."""

    def weights(u: Array) -> Array:
        return u if factor is None else linalg.solve_triangular(factor, u)

    def objective(u: Array) -> tuple[float, Array]:
        value, gradient = problem.value_and_gradient(weights(u))
        return value, gradient if factor is None else linalg.solve_triangular(factor, gradient, trans="T")

    options = {"maxiter": max_iter, "maxls": 50, "gtol": tol, "ftol": 64 * np.finfo(np.float64).eps}
    start = v if factor is None else factor @ v
    return np.asarray(weights(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x))


def _newton(problem: StartProblem, tol: float, max_iter: int, near: Solution) -> Solution:
    """Take Newton steps; the Hessian is computed again only when steps with the known one make little progress."""
    v, hessian = near
    gradient, factor, n_poor, least, n_stalled = problem.gradient(v), None, 0, np.inf, 0
    for _ in range(max_iter):
        fresh = hessian is None
        largest = float(np.abs(gradient).max())
        n_stalled = 0 if largest <= 0.5 * least else n_stalled + 1
        least = min(least, largest)
        if n_stalled >= _MOST_STALLED:
            break  # rounding errors, above all of rows in single precision
        if hessian is None:
            hessian, factor = problem.hessian(v), None
        factor = _factor(hessian, problem.ridge) if factor is None else factor
        step = -_solved(factor, gradient)
        if largest <= tol:
            return Solution(v + step, hessian)
        decrease = -float(gradient @ step)
        v, gradient, length = _searched(problem, v, gradient, step)
        if length == 1.0 and float(gradient @ _solved(factor, gradient)) <= _CONTRACTION**2 * decrease:
            continue
        n_poor += fresh
        if fresh and (length == 0.0 or (n_poor >= _MOST_POOR and problem.is_sampled)):
            # The Hessian from a sample of the rows is not accurate enough.
            root = None if length == 0.0 else factor
            return Solution(_quasi_newton(problem, tol, max_iter, v, root), hessian)
        hessian = None
    return Solution(v, hessian)


def _searched(problem: StartProblem, v: Array, gradient: Array, step: Array) -> tuple[Array, Array, float]:
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


class Logistic:
    """Logistic loss of margins."""

    @staticmethod
    def value(margin: Array) -> Array:
        """Return the values."""
        result: Array = np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)
        return result

    @staticmethod
    def slope(margin: Array) -> Array:
        """Return the derivatives, computed without overflow."""
        small = np.exp(-np.abs(margin))
        result: Array = -np.where(margin >= 0, small, 1.0) / (1.0 + small)
        return result

    @staticmethod
    def curvature(margin: Array) -> Array:
        """Return the second derivatives."""
        small = np.exp(-np.abs(margin))
        result: Array = small / (1.0 + small) ** 2
        return result


class SquaredHinge:
    """Squared hinge loss of margins."""

    @staticmethod
    def value(margin: Array) -> Array:
        """Return the values."""
        result: Array = np.maximum(1.0 - margin, 0.0) ** 2
        return result

    @staticmethod
    def slope(margin: Array) -> Array:
        """Return the derivatives."""
        result: Array = -2.0 * np.maximum(1.0 - margin, 0.0)
        return result

    @staticmethod
    def curvature(margin: Array) -> Array:
        """Return the second derivatives."""
        return np.where(margin < 1.0, 2.0, 0.0)


# Default method for all measures: minimize a bounded loss from a good starting point, with a penalty on the distance.


# Width of the step of the partial-AUC loss, in standard deviations of the scores of the starting point. Wider steps are
# closer to the convex losses; narrower steps have a non-zero gradient for fewer pairs.
STEP = 0.25
# Tolerance of the minimization, as a multiple of ``tol``. With the second one, which is for a path on many rows, it can
# end where progress is slow for a few iterations.
_ACCURATE, _ROUGH = 0.01, 0.1
# Factor between the number of examples per feature and the inverse weight of the penalty at C = 1.
TRUST = 0.1
# On many rows, fits begin with this part of them, or with this number of rows, in all or per feature, if that is more.
# The part is used if it has at most every third row. If it has fewer rows per feature than the last number, classifiers
# are fitted to all rows, beginning with the solution on the part.
_PART, _FEWEST_ROWS, _ROWS_PER_FEATURE, _LEAST_STEP, _ENOUGH_ROWS = 0.1, 10_000, 100, 3, 500
# Largest entry of the gradient at a solution at which fits in folds begin; it is larger on the rows of a fold.
_GUIDE_TOL = 1e-3
# Weight of the loss of starting points for a cluster of positives.
SUBGROUP_STRENGTH = 10.0
CLASSIFIER_KINDS = ("logistic", "balanced", "svc")
# Starting points of a fit without cross-validation: kind and weight of the loss, on standardized features.
STARTS = (("logistic", 1.0), ("auc", 10.0))


class Start(NamedTuple):
    """Starting point on standardized features: weights, and scores with unit standard deviation."""

    w: Array
    scores: Array


class Refinement(ABC):
    """Fit of starting points on standardized features, and minimization of the bounded loss from one of them.

    ``similar`` are solutions of similar problems at which the fits of starting points begin, such as
    :attr:`solutions` on all rows, by kind and weight of the loss, for a fit on the rows of a fold. With ``is_guide``,
    the solutions are less accurate, but have the Hessian on all rows. ``units`` gives means and scales.
    """

    is_guide = False

    def __init__(
        self,
        data: TrainingSet,
        loss: Loss,
        tol: float,
        max_iter: int,
        similar: Solutions | None = None,
        units: StandardizedOperator | None = None,
    ) -> None:
        self._operator = standardized(data.X, data.weight) if units is None else units.like(data.X)
        self._scale = self._operator.scale
        self._data, self._tol, self._max_iter = data, tol, max_iter
        self._loss = loss.bind(data.positive, data.weight)
        self.solutions: Solutions = {}
        self._similar = similar or {}
        self._last: dict[str, Solution] = {}
        self._of_start: tuple[Start, float] | None = None
        self._measure_of_start: tuple[Start, float] | None = None

    @cached_property
    def _sample(self) -> RowSample | None:
        return RowSample(self._operator, self._data.weight) if self._operator.shape[1] <= MAX_SQUARE else None

    @cached_property
    def _whitening(self) -> Array | None:
        """Map from weights of uncorrelated features: in them, the penalty is isotropic."""
        return None if self._sample is None else self._sample.whitening()

    @cached_property
    def _every_row(self) -> RowSample | None:
        known = self.is_guide and self._sample is not None
        return RowSample(self._operator, self._data.weight, step=1) if known else None

    @abstractmethod
    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight at ``C = 1``; it grows with the number of relevant rows per feature."""

    @abstractmethod
    def _measure(self, scores: Array) -> float:
        """Return the measure on the training rows."""

    def start(self, kind: str, strength: float) -> Start:
        """Fit a starting point, "logistic", "balanced" or "svc", with the given weight of the loss."""
        positive, weight, key = self._data.positive, self._data.weight, (kind, strength)
        start, rows = self._classifier(kind, strength, positive, weight, key), self._every_row
        if rows is not None:
            v = self.solutions[key].v
            problem = StartProblem(kind, self._operator, positive, weight, strength, rows)
            self.solutions[key] = Solution(v, problem.hessian(v))
        return start

    def _classifier(
        self, kind: str, strength: float, positive: Bools, weight: Array | None, key: tuple[str, float]
    ) -> Start:
        """Fit a classifier, beginning at the solution of a similar problem: on all rows, or with a smaller weight."""
        near = self._similar.get(key) or self._last.get(kind)
        tol = self._tol * (0.1 if self._operator.shape[0] >= START_RULES.many_rows else 1e-2 if self._similar else 1e-3)
        tol = _GUIDE_TOL if self.is_guide else min(tol, 1e-4)
        problem = StartProblem(kind, self._operator, positive, weight, strength, self._sample)
        self._last[kind] = self.solutions[key] = fit_start(problem, tol, 10 * self._max_iter, near)
        return self._normalized(self.solutions[key].v[:-1])

    def mean_start(self, weights: Array) -> Start:
        """Return the mean of several starting points, given as weights in the original features."""
        return self._normalized(np.mean(weights, axis=0) * self._scale)

    def weights(self, start: Start) -> Array:
        """Return the weights of a starting point in the original features."""
        result: Array = start.w / self._scale
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
        begin, objective = start, Anchored(self._loss, start.scores, 1.0 / reach)
        if w0 is not None and np.any(w0):
            other = self._normalized(w0 * self._scale)
            better = objective.value_and_gradient(other.scores)[0] < self._value(start)
            begin = other if better else start
        w = self._closer(objective, start, begin.w, _ACCURATE)
        self._release()
        return self._descended(objective, start, w, _ACCURATE, callback)[0]

    def path(self, start: Start, Cs: Iterable[float]) -> list[Result]:
        """Return the starting point and the results of :meth:`run` for ascending values of ``C``.

        Each minimization begins at the previous solution: its objective is not larger than that of the starting point.
        """
        results, begin = [self._unmoved(start)], start.w
        accuracy = _ROUGH if self._operator.shape[0] >= START_RULES.many_rows else _ACCURATE
        for C in Cs:
            reach = self._reach(start, float(C))
            if reach == 0:
                results.append(results[0])
                continue
            objective = Anchored(self._loss, start.scores, 1.0 / reach)
            w = self._closer(objective, start, begin, accuracy)
            result, (begin, _) = self._descended(objective, start, w, accuracy)
            results.append(result)
        return results

    def _reach(self, start: Start, C: float) -> float:
        """Return the inverse weight of the penalty; 0 if the starting point cannot be left."""
        return C * self.trust(start) if C > 0 and start.w.any() else 0.0

    def _unmoved(self, start: Start, callback: Callback | None = None) -> Result:
        trace = [Progress(self._value(start), np.nan, 1)]
        if callback is not None:
            callback(trace[0])
        return Result(start.w / self._scale, trace[0].objective, np.nan, 1, True, "the starting point", trace)

    def _descended(
        self, objective: Anchored, start: Start, begin: Array, accuracy: float, callback: Callback | None = None
    ) -> tuple[Result, Start]:
        """Minimize the objective from ``begin``; return the result, or ``start`` if better, and where it ended."""
        result = self._minimized(objective, begin, accuracy, callback)
        end = self._normalized(result.w)
        if not result.converged:
            message = (
                f"the minimization did not reach its tolerance: objective {result.objective:.6g} after {result.n_iter} "
                f"iterations, tol={self._tol:g}; raise max_iter or tol"
            )
            result = replace(result, message=message)
        if self._measure(end.scores) < self._measure_at(start):
            value = self._value(start)
            trace = [progress._replace(objective=value) for progress in result.trace]
            return replace(result, w=start.w / self._scale, objective=value, trace=trace), end
        return replace(result, w=end.w / self._scale), end

    def _minimized(self, objective: Anchored, w: Array, accuracy: float, callback: Callback | None = None) -> Result:
        """Minimize the objective from ``w`` by L-BFGS, in uncorrelated features if there are not too many."""
        descent, P = LBFGS(accuracy * self._tol, self._max_iter), self._whitening
        if P is None:
            return descent.solve(self._operator, objective, Unpenalized(), w, callback)
        rotated = RotatedOperator(self._operator, P)
        v = np.asarray(np.linalg.solve(P, w), dtype=np.float64)
        result = descent.solve(rotated, objective, Unpenalized(), v, callback)
        return replace(result, w=P @ result.w)

    def _closer(self, objective: Anchored, start: Start, begin: Array, accuracy: float) -> Array:
        """Return weights to begin with that are probably closer to the minimum than ``begin``."""
        return begin

    def _release(self) -> None:
        """Release copies of rows that are not needed for the minimization, once the whitening is known."""
        if self._whitening is not None:
            self.__dict__.pop("_sample", None)
        self.__dict__.pop("_part", None)

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

    def _normalized(self, w: Array) -> Start:
        scores = self._operator.matvec(w)
        spread = weighted_spread(scores, self._data.weight)
        scores /= spread
        return Start(w / spread, scores)


class WindowRefinement(Refinement):
    """Refinement for the partial AUC."""

    def __init__(
        self,
        data: TrainingSet,
        window: tuple[float, float, float],
        tol: float,
        max_iter: int,
        similar: Solutions | None = None,
        units: StandardizedOperator | None = None,
    ) -> None:
        self._area: Measure = PartialAUCMeasure(*window)
        super().__init__(data, self._area.soft_loss(STEP), tol, max_iter, similar, units)
        self._window = window

    @cached_property
    def _part(self) -> Part | None:
        """Part of the rows on which fits begin; None if there are not many rows."""
        n_rows, n_features = self._operator.shape
        step = int(n_rows / max(_PART * n_rows, _FEWEST_ROWS, _ROWS_PER_FEATURE * n_features))
        if step < _LEAST_STEP:
            return None
        positive = self._data.positive
        rows = np.sort(np.concatenate([np.flatnonzero(positive)[::step], np.flatnonzero(~positive)[::step]]))
        weight = None if self._data.weight is None else self._data.weight[rows]
        data = self._data._replace(X=self._data.X[rows], positive=positive[rows], weight=weight)
        args = (self._window, self._tol, self._max_iter, self._similar, self._operator)
        return Part(WindowRefinement(data, *args), rows, step)

    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight, from the numbers of positives and of negatives in the window."""
        low, high, floor = self._window
        positives = (1.0 - floor) * self._loss.m
        held = 1.0 / (1.0 / positives + 1.0 / (window_end(self._loss.n, high) - window_end(self._loss.n, low)))
        return TRUST * held / self._operator.shape[1]

    def start(self, kind: str, strength: float) -> Start:
        """Fit a starting point; also "auc", the full AUC, and "tight" and "hinge", losses on the window.

        The tight convex loss is minimized by the cutting-plane algorithm of Narasimhan and Agarwal, which stops early
        where the minimum is at zero weights, and the hinge loss by CCCP from the full AUC.
        """
        if self._part is not None:
            # The losses of the classifiers are sums over the rows, the others are means.
            factor, part = (self._part.step if kind in CLASSIFIER_KINDS else 1), self._part.refinement
            start = part.start(kind, factor * strength)
            if kind not in CLASSIFIER_KINDS or self._part.rows.size >= _ENOUGH_ROWS * self._operator.shape[1]:
                return self._normalized(start.w)
            self._last[kind] = part._last[kind]
        if kind in CLASSIFIER_KINDS:
            return super().start(kind, strength)
        losses = {"auc": ROCAUCMeasure().convex_loss(), "tight": self._area.convex_loss()}
        loss: Loss = losses.get(kind) or PartialAUCHinge(*self._window)
        solver = start_solver(kind, self._tol, self._max_iter, self._operator.shape[0], self._window[2] > 0)
        w0 = self.start("auc", strength).w if kind == "hinge" else None
        return self._normalized(solver.solve(self._operator, self._data.bind(loss), SquaredL2(strength), w0).w)

    def start_of(self, spec: StartSpec, groups: dict[int, Labels]) -> Start:
        """Fit a starting point; one for a cluster is fitted to it and all negatives, or zero if it is empty.

        ``groups`` are the clusters of the rows, by the number of clusters.
        """
        if spec.n_groups == 0:
            return self.start(spec.kind, spec.C)
        if self._part is not None:
            here = {spec.n_groups: groups[spec.n_groups][self._part.rows]}
            start = self._part.refinement.start_of(spec._replace(C=self._part.step * spec.C), here)
            return self._normalized(start.w)
        labels = groups[spec.n_groups]
        members = labels == spec.group
        if not members.any():
            return self._normalized(np.zeros(self._operator.shape[1]))
        weight = np.ones(members.size) if self._data.weight is None else self._data.weight
        return self._classifier("logistic", spec.C, members, weight * (members | (labels < 0)), (spec.kind, spec.C))

    def groups(self) -> dict[int, Labels]:
        """Return clusters of similar positives, as a label for each row; see ``_positive_clusters.group``."""
        found = group(self._positives(), self._data.positive, self._data.weight)
        return {int(labels.max()) + 1: labels for labels in found}

    def regrouped(self, labels: Labels, size: int) -> Labels:
        """Cluster again, beginning with the labels of the rows from a clustering of more rows."""
        return regroup(self._positives(), self._data.positive, self._data.weight, labels, size)

    def _positives(self) -> Any:
        return self._operator.rows(np.flatnonzero(self._data.positive))

    def _closer(self, objective: Anchored, start: Start, begin: Array, accuracy: float) -> Array:
        """Return the minimum on a part of the rows, if there are many."""
        if self._part is None:
            return begin
        small = self._part.refinement
        anchored = Anchored(small._loss, small._normalized(start.w).scores, objective.strength)
        return small._minimized(anchored, begin, accuracy).w

    def best_start(self) -> Start:
        """Return the starting point with the largest training partial AUC; the first of ties, zero weights last."""
        best, highest = None, (False, 0.0)
        for spec in STARTS:
            start = self.start(*spec)
            reached = bool(start.w.any()), self._measure(start.scores)
            if best is None or reached > highest:
                best, highest = start, reached
        assert best is not None
        self._measure_of_start = best, highest[1]
        return best

    def _measure(self, scores: Array) -> float:
        data = top_rows(scores, self._data.positive, self._data.weight, self._window[1])
        return self._area.score(data[0], data[1], sample_weight=data[2], pos_label=True)


class Part(NamedTuple):
    """Fit on a part of the rows: all positives and negatives at equal distances."""

    refinement: WindowRefinement
    rows: Index
    step: int
