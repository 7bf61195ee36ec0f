"""Choice between the certified solver and the published cutting-plane method, for the penalized problem."""

from __future__ import annotations

from typing import Any

from rocmax._validate import check_choice
from rocmax.solvers import CuttingPlane, SmoothedNewton
from rocmax.solvers.base import Solver

SOLVERS = ("certified", "cutting_plane")
CUTTING_PLANE_REMEDY = (
    "At zero weights no constraint is violated by more than tol. Lower C or tol, and check that the features vary."
)


def check_solver_parameters(solver: Any, loss: str, losses: tuple[str, ...], constraint: str | None = None) -> None:
    """Raise ValueError if the solver is unknown, or does not support the loss or the constraint."""
    check_choice("solver", solver, SOLVERS)
    if solver == "certified":
        return
    if constraint is not None:
        raise ValueError(f"with solver={solver!r}, constraint must be None; got {constraint!r}")
    check_choice(f"with solver={solver!r}, loss", loss, losses)


def penalized_solver(solver: str, tol: float, max_iter: int) -> Solver:
    """Return the solver for a convex loss on pairs."""
    return CuttingPlane(tol, max_iter) if solver == "cutting_plane" else SmoothedNewton(tol, max_iter)
