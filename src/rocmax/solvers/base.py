"""Contract of a solver, line searches, Newton steps, and the loss at zero weights.

For features of small scale, the possible decrease of the objective is small relative to the objective: zero weights
already have a relative gap of 1e-3, and the decrease can be below the rounding error of the loss. Losses, objectives
and cuts are therefore stored as differences from zero weights, and the gap is compared with the possible decrease as
well as with the objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dposv
from scipy.sparse.linalg import LinearOperator, cg

from rocmax._support import Array
from rocmax.losses.base import BoundLoss, Evaluation, Pairs
from rocmax.operators import Operator, absolute_sum, zero_scores
from rocmax.penalties import Ball

# Interface of the solvers: they take an operator, a bound loss and a penalty, and return a result.


# Rounding error of an objective and its bound, in multiples of the machine epsilon. In fits of random data with scales
# up to 1e8, the errors were at most 3 of them.
_UNITS = 64
# A bound above the objective by this share of the tolerance is still called valid.
_SMALL_ERROR = 1e-3


class Progress(NamedTuple):
    """Entry of the trace of a solver.

    ``bound`` is the best lower bound of the optimum so far (NaN for a solver without a certificate), and ``passes`` is
    the number of passes over the data.
    """

    objective: float
    bound: float
    passes: int


Callback = Callable[[Progress], None]


class Cuts(NamedTuple):
    """Lower bounds of a convex loss, ``R(w) >= offset[k] + gradient[k] @ w``, for a warm start of the next solve.

    ``tables[k]`` are those of :class:`~rocmax.losses.Evaluation` for this cut.
    """

    gradient: Array
    offset: Array
    tables: list[Array | None]


@dataclass(frozen=True)
class Result:
    """Result of a solver.

    Attributes
    ----------
    w : ndarray
        Weights with the lowest objective found; the last iterate of :class:`~rocmax.solvers.CuttingPlane`.
    objective : float
        ``1/2 |w|^2 + C R(w)`` at ``w``, or ``R(w)`` under a norm constraint.
    gap : float
        Objective minus a certified lower bound on the optimum; NaN for a loss that is not convex. A negative gap means
        that rounding errors made the bound invalid; ``converged`` is False then.
    n_iter : int
        Number of iterations, at least 1.
    converged : bool
        Whether the tolerance was met.
    message : str
        Description of how the run ended.
    trace : list of Progress
        One entry per iteration.
    cuts : Cuts, default=None
        Cuts of the loss at the end of the run, if the solver was started with cuts.
    """

    w: Array
    objective: float
    gap: float
    n_iter: int
    converged: bool
    message: str
    trace: list[Progress]
    cuts: Cuts | None = None


class Solver(Protocol):
    """Interface of solvers that minimize ``1/2 |w|^2 + C loss(X w)``, or ``loss(X w)`` under a norm constraint.

    Each solver checks that it supports the loss and the penalty.
    """

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: Any,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimize from ``w0`` (zero if None); the result is never worse than ``w0``, except for CuttingPlane."""


def require(
    solver: str,
    loss: BoundLoss,
    penalty: Any,
    penalties: tuple[type, ...],
    *,
    convex: bool = False,
    curvature: bool = False,
    split: bool = False,
) -> None:
    """Raise ValueError if a solver does not support a loss or a penalty; the message names an alternative."""
    name, constraint = type(loss).__name__, isinstance(penalty, Ball)
    problem = None
    if not isinstance(penalty, penalties):
        needed = " or ".join(kind.__name__ for kind in penalties)
        other = "ProximalBundle" if constraint else "SmoothedNewton, OCAS or LBFGS"
        problem = f"the penalty {needed}; got {type(penalty).__name__}; use {other}"
    elif convex and not loss.convex:
        other = "LBFGS, or CCCP for a difference of convex losses"
        problem = (
            f"a convex loss; got {name}, which is not convex; use {other}{', with SquaredL2' if constraint else ''}"
        )
    elif curvature and not loss.has_curvature:
        problem = f"a loss with curvature; got {name}, which does not implement it; use OCAS"
    elif split and not loss.has_split:
        problem = f"a difference of convex losses; got {name}, which is not available as one; use LBFGS"
    if problem is not None:
        raise ValueError(f"{solver} requires {problem}")


def gap_rounding(operator: Operator, gap: float, size: float) -> float:
    """Return an estimate, on the safe side, of the rounding error of a negative gap; 0 for other gaps.

    ``size`` is that of the objective and of the differences of the scores, times the weight of the loss.
    """
    if gap >= 0:
        return 0.0
    return _UNITS * float(np.finfo(operator.rows(np.zeros(1, dtype=np.intp)).dtype).eps) * size


def valid_gap(gap: float, rounding: float, tol: float, unit: float) -> tuple[float, bool]:
    """Return a gap, with 0 for one that is negative by a rounding error, and whether its bound can be valid.

    A lower bound that is above the objective by more than that is none. The gap remains negative then, and the run has
    not converged, whatever its tolerance.
    """
    if gap < -max(rounding, _SMALL_ERROR * tol * max(unit, 0.0)):
        return gap, False
    return max(gap, 0.0), True


def finish(
    w: Array,
    objective: float,
    gap: float,
    unit: float,
    converged: bool,
    trace: list[Progress],
    solver: str,
    tol: float,
    rounding: float,
) -> Result:
    """Return the result of a run with its message. The tolerance is relative to ``unit``, see :func:`valid_gap`."""
    gap, valid = valid_gap(gap, rounding, tol, unit)
    reached = f"gap {gap:.3g} at objective {objective:.6g} after {len(trace)} iterations"
    if not valid:
        message = invalid_bound(solver, reached, tol)
    elif converged:
        message = f"{solver} converged: {reached}"
    else:
        relative = gap / unit if unit > 0 else np.inf
        message = (
            f"{solver} did not reach its tolerance: {reached}, relative gap {relative:.2g} > tol={tol:g}; "
            f"raise max_iter or tol, or scale the features"
        )
    return Result(w, objective, gap, len(trace), converged and valid, message, trace)


def invalid_bound(solver: str, reached: str, tol: float) -> str:
    """Return the message of a run whose lower bound is above its objective."""
    return (
        f"{solver} did not converge to tol={tol:g}: {reached}. The lower bound is above the objective, which rounding "
        f"errors of the products with the data cause; use rows of dtype float64, or scale the features"
    )


# Line search on the slope of a convex function of one variable.


def find_zero(
    slope: Callable[[float], float], slope_at_zero: float, *, rtol: float, largest: float, max_evals: int
) -> float:
    """Return a step at which an increasing ``slope`` is close to zero; always the last step that was evaluated.

    The search starts at 1. While the slope is negative, the step is extrapolated from the last two slopes, to at least
    1.25 times and at most three times its length, and a quarter further than a straight line leads: slopes of losses
    that flatten near their minimum fall behind it. Then the search interpolates between the ends of the bracket, with a
    distance of at least a tenth of its length to both, until ``|slope| <= rtol * |slope(0)|``. Steps are at most
    ``largest``.
    """
    low, low_slope = 0.0, slope_at_zero
    high, high_slope = None, 0.0
    t = min(1.0, largest)
    for evals in range(1, max_evals + 1):
        now = slope(t)
        if abs(now) <= rtol * abs(slope_at_zero) or evals == max_evals:
            break
        if now < 0:
            if t >= largest:
                break
            change, distance = now - low_slope, t - low
            low, low_slope = t, now
        else:
            high, high_slope = t, now
        if high is None:
            further = 1.25 * -now * distance / change if change > 0 else math.inf
            t = min(t + min(max(further, 0.25 * t), 2 * t), largest)
        else:
            rise = high_slope - low_slope
            # The difference can be zero due to rounding, or infinite due to overflow.
            share = -low_slope / rise if 0.0 < rise < math.inf else 0.5
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    return t


# Newton steps from sampled pairs of rows.


def newton_direction(
    operator: Operator, pairs: Pairs, C: float, gradient: Array, is_sample: bool, is_dense: bool
) -> Array:
    """Solve ``(I + C H) p = -gradient``, with ``H`` given by weighted pairs of rows; ``is_dense``: form the matrix."""
    if pairs.weight.size == 0:
        return -gradient
    d = gradient.size
    if not is_dense:
        return _by_conjugate_gradients(operator, pairs, C, gradient)
    difference = operator.rows(pairs.first) - operator.rows(pairs.second)
    root = np.sqrt(C * pairs.weight).astype(difference.dtype)
    if sparse.issparse(difference):
        difference = sparse.diags_array(root) @ difference
        hessian = (difference.T @ difference).toarray().astype(np.float64)
    else:
        difference *= root[:, None]
        hessian = (difference.T @ difference).astype(np.float64, copy=False)
    # A sample misses directions in which few rows vary; the ridge keeps steps along them short.
    hessian.flat[:: d + 1] += 1.0 + (1e-3 * float(hessian.trace()) / d if is_sample else 0.0)
    _, step, failed = dposv(hessian, -gradient)
    if failed:
        # Rounding error made the matrix indefinite, because the features differ too much in scale; use its diagonal.
        step = -gradient / hessian.diagonal()
    result: Array = step
    return result


def _by_conjugate_gradients(operator: Operator, pairs: Pairs, C: float, gradient: Array) -> Array:
    """Solve the Newton system with products of rows that are in some pair; the pairs are edges of a graph on them."""
    rows, place = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = place[: pairs.first.size], place[pairs.first.size :]
    X = operator.rows(rows)
    weight = C * pairs.weight
    edges = sparse.coo_array((weight, (first, second)), shape=(rows.size, rows.size)).tocsr()
    edges = edges + edges.T
    degree = np.asarray(edges.sum(axis=0)).ravel()

    def product(v: Array) -> Array:
        scores = X @ v
        result: Array = v + X.T @ (degree * scores - edges @ scores)
        return result

    d = gradient.size
    step: Array = cg(LinearOperator((d, d), matvec=product, dtype=np.float64), -gradient, rtol=0.1, maxiter=30)[0]
    return step


# Loss at zero weights, the reference for losses and tolerances of certified solvers.


# Below this change, relative to the loss of zero weights, the difference of two losses is mostly rounding error.
_CLOSE = 1e-11
# Number of rows from which the scale of the features is estimated.
_ROWS_FOR_SIZE = 1000
_EPS = float(np.finfo(np.float64).eps)
# Number of scores whose spread is computed.
_SPREAD_ROWS = 100_000


class Origin:
    """Convex loss at zero weights; ``at`` has its bounds."""

    def __init__(self, operator: Operator, loss: BoundLoss) -> None:
        self._operator, self.at = operator, loss.at(zero_scores(operator))

    @property
    def value(self) -> float:
        """The loss at zero weights."""
        return self.at.value(0.0)

    @property
    def coefficients(self) -> Array:
        """Gradient of the loss in the scores; it is computed again for each use, because it is as large as the data."""
        return self.at.minorant(0.0)[1]

    @cached_property
    def slope(self) -> Array:
        """Gradient in the weights, computed in one pass; set to zero if it is within rounding error."""
        coefficients = self.coefficients
        slope = self._operator.rmatvec(coefficients)
        noise = _rounding_of_sums(self._operator, coefficients)
        return slope if (np.abs(slope) > noise).any() else np.zeros_like(slope)

    def rise(self, value: float, coefficients: Array, scores: Array) -> float:
        """Return the loss at some scores minus that of zero weights.

        By convexity the product of coefficients and scores is an upper bound of this difference, with equality for
        scores near zero. It is used there, where the difference of the losses suffers from cancellation.
        """
        rise, close = value - self.value, _CLOSE * abs(self.value)
        if abs(rise) > close:
            return rise
        # The loss can be that of zero weights far from them, where the product is not close to the difference.
        along = float(coefficients @ scores)
        return along if abs(along) <= close else rise

    def upper_rise(self, at: Evaluation) -> float:
        """Return an upper bound of the loss at some scores minus that of zero weights."""
        rise = at.upper - self.value
        if abs(rise) > _CLOSE * abs(self.value):
            return rise
        value, coefficients = at.minorant(0.0)
        return self.rise(value, coefficients, at.scores) + (at.upper - value)

    def error(self, gap: float, objective: float, scores: Any, C: float = 1.0) -> float:
        """Return an estimate of the rounding error of a gap, see :func:`gap_rounding`."""
        return gap_rounding(self._operator, gap, abs(objective) + C * (abs(self.value) + spread(scores)))

    def rounding(self, gain: float, C: float = 1.0) -> float:
        """Return the rounding error of an objective if losses are subtracted, and zero otherwise."""
        size = C * abs(self.value)
        return 8 * _EPS * size if gain > _CLOSE * size else 0.0


def _rounding_of_sums(operator: Operator, coefficients: Array) -> Array:
    """Return an estimate of the rounding error of ``X.T @ coefficients`` in each feature, from a sample of rows.

    Products of dense rows in single precision are computed from differences to means of double precision.
    """
    n_samples = operator.shape[0]
    rows = operator.rows(np.linspace(0, n_samples - 1, min(n_samples, _ROWS_FOR_SIZE)).astype(np.intp))
    eps = np.finfo(rows.dtype).eps
    if sparse.issparse(rows):
        size = eps * np.asarray(abs(rows).mean(axis=0), dtype=np.float64).ravel()
    else:
        mean = rows.mean(axis=0, dtype=np.float64)
        size = _EPS * np.abs(mean) + eps * np.abs(rows - mean).mean(axis=0)
    noise: Array = 8 * absolute_sum(coefficients) * size
    return noise


def spread(scores: Any) -> float:
    """Return the standard deviation of scores; of a part of them if they are a long array."""
    every = max(1, scores.size // _SPREAD_ROWS) if isinstance(scores, np.ndarray) else 1
    part = scores if every == 1 else scores[::every]
    if not isinstance(part, np.ndarray):
        return float(np.std(part))
    centered = part - part.mean()
    return math.sqrt(float(centered @ centered) / part.size)
