"""Linear classifiers used as starting points: logistic regression and the SVM with squared hinge loss.

scikit-learn's estimators give the same weights, but emit convergence warnings, which are irrelevant for a starting
point. Python can suppress a warning only for the whole process, including other threads. Moreover, a fit can begin at
the solution of a similar problem: another regularization strength, or all rows instead of those of a fold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.optimize import minimize

from rocmax._typing import Array, Bools
from rocmax.estimators.linear._standardization import RowSample
from rocmax.operators import StandardizedOperator

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
    """Penalized mean loss of a linear classifier.

    Parameters
    ----------
    kind : {"logistic", "balanced", "svc"}
        The objective of ``LogisticRegression(C=C)``, ``LogisticRegression(C=C, class_weight="balanced")`` or
        ``LinearSVC(C=C)``.
    operator : StandardizedOperator
        Standardized rows.
    positive : ndarray of bool
        Mask of the positive rows.
    weight : ndarray, default=None
        Sample weights; rows of weight zero are ignored.
    C : float
        Weight of the loss.
    sample : RowSample, default=None
        Rows to estimate the Hessian; None if there are too many features.
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
    """Minimize by Newton's method, or by L-BFGS if the problem has no Hessian.

    Parameters
    ----------
    problem : StartProblem
        The problem.
    tol : float
        Tolerance for stopping: largest absolute entry of the gradient. A last Newton step follows.
    max_iter : int
        Maximum number of iterations.
    near : Solution, default=None
        Solution of a similar problem to begin with; None begins with zero weights.
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
