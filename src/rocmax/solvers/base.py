"""Interface of the solvers: they take an operator, a bound loss and a penalty, and return a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import Operator
from rocmax.penalties import Ball

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

    ``tables[k]`` are those of :meth:`~rocmax.losses.BoundLoss.tables` for this cut.
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
    """Interface of solvers that minimise ``1/2 |w|^2 + C loss(X w)``, or ``loss(X w)`` under a norm constraint.

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
        """Minimise from ``w0`` (zero if None); the result is never worse than ``w0``, except for CuttingPlane."""


# Optional methods of a loss that a solver may require: description, what is missing, and an alternative solver.
_METHODS = {
    "curvature": ("a loss with curvature", "does not implement it", "OCAS"),
    "hessian_product": (
        "a loss with Hessian products",
        "does not implement them",
        "SmoothedNewton or OCAS",
    ),
    "split": ("a difference of convex losses", "is not available as one", "LBFGS"),
}


def require(
    solver: str,
    loss: BoundLoss,
    penalty: Any,
    penalties: tuple[type, ...],
    *,
    convex: bool = False,
    smooth: bool = False,
    method: str | None = None,
) -> None:
    """Raise ValueError if a solver does not support a loss or a penalty; the message names an alternative.

    Parameters
    ----------
    solver : str
        Name of the solver.
    loss : BoundLoss
        The loss.
    penalty : object
        The penalty.
    penalties : tuple of type
        Penalties that the solver supports.
    convex, smooth : bool, default=False
        Whether the loss must be convex or smooth.
    method : {"curvature", "hessian_product", "split"}, default=None
        Optional method of the loss that the solver calls.
    """
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
    elif smooth and not loss.smooth:
        problem = f"a smooth loss; got {name}, which is not smooth; use SmoothedNewton"
    elif method is not None and not loss.has(method):
        needed, lack, other = _METHODS[method]
        problem = f"{needed}; got {name}, which {lack}; use {other}"
    if problem is not None:
        raise ValueError(f"{solver} requires {problem}")


def gap_rounding(operator: Operator, gap: float, size: float) -> float:
    """Return an estimate, on the safe side, of the rounding error of a negative gap; 0 for other gaps.

    Parameters
    ----------
    operator : Operator
        The data, whose precision is that of the products.
    gap : float
        Objective minus lower bound.
    size : float
        Size of the objective and of the differences of the scores, times the weight of the loss.
    """
    if gap >= 0:
        return 0.0
    return _UNITS * float(np.finfo(operator.rows(np.zeros(1, dtype=np.intp)).dtype).eps) * size


def valid_gap(gap: float, rounding: float, tol: float, unit: float) -> tuple[float, bool]:
    """Return a gap, with 0 for one that is negative by a rounding error, and whether its bound can be valid.

    A lower bound that is above the objective by more than that is none. The gap remains negative then, and the run has
    not converged, whatever its tolerance.

    Parameters
    ----------
    gap : float
        Objective minus lower bound.
    rounding : float
        Estimate of the rounding error of both.
    tol, unit : float
        Tolerance of the solver, and what it is relative to.
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
