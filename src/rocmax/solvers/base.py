"""The contract of a solver: operator, bound loss and penalty in, a result with its certificate out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import Operator
from rocmax.penalties import SquaredL2


class Progress(NamedTuple):
    """One line of a solver's trace.

    ``bound`` is the best lower bound on the optimum so far (NaN where there is no certificate), and ``passes`` the
    number of passes over the data.
    """

    objective: float
    bound: float
    passes: int


Callback = Callable[[Progress], None]


class Cuts(NamedTuple):
    """Lower bounds of a convex loss, ``R(w) >= offset[k] + gradient[k] @ w``, that one solve hands to the next.

    ``tables[k]`` are those of :meth:`~rocmax.losses.BoundLoss.tables` for this cut.
    """

    gradient: Array
    offset: Array
    tables: list[Array | None]


@dataclass(frozen=True)
class Result:
    """What a solver returns.

    Attributes
    ----------
    w : ndarray
        Weights, the best seen.
    objective : float
        ``1/2 |w|^2 + C R(w)`` at ``w``, or ``R(w)`` alone for a solver over a ball.
    gap : float
        Objective minus a certified lower bound on the optimum; NaN for a loss that is not convex.
    n_iter : int
        Iterations, at least 1.
    converged : bool
        Whether the tolerance was met.
    message : str
        One sentence on how the run ended.
    trace : list of Progress
        One entry per iteration.
    cuts : Cuts, optional
        Cuts of the loss, from a solver that was given some to start with.
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
    """Anything that minimises ``1/2 |w|^2 + C loss(X w)``; a solver over a ball takes the ball as its penalty."""

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: SquaredL2,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimise from ``w0`` (zero if None), never ending above it."""


def require(loss: BoundLoss, solver: str, *, convex: bool = False, smooth: bool = False) -> None:
    """Refuse a loss that a solver cannot serve, and say which can."""
    name = type(loss).__name__
    if convex and not loss.convex:
        raise ValueError(
            f"{solver} needs a convex loss, and {name} is not; use LBFGS, or CCCP for a difference of convex losses"
        )
    if smooth and not loss.smooth:
        raise ValueError(f"{solver} needs a smooth loss, and {name} is not; use SmoothedNewton")


def finish(
    w: Array, objective: float, gap: float, unit: float, converged: bool, trace: list[Progress], solver: str, tol: float
) -> Result:
    """Word the end of a run; a gap below zero is rounding. The tolerance is relative to ``unit``."""
    gap = max(gap, 0.0)
    reached = f"gap {gap:.3g} at objective {objective:.6g} after {len(trace)} iterations"
    if converged:
        message = f"{solver} converged: {reached}"
    else:
        relative = gap / unit if unit > 0 else np.inf
        message = (
            f"{solver} did not reach its tolerance: {reached}, relative gap {relative:.2g} > tol={tol:g}; "
            f"raise max_iter or tol, or scale the features"
        )
    return Result(w, objective, gap, len(trace), converged, message, trace)
