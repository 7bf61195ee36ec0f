"""Solvers for the penalized problem: certified or published cutting-plane method, and rough ones for a start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rocmax._validate import check_choice
from rocmax.solvers import CCCP, CuttingPlane, SmoothedNewton
from rocmax.solvers.base import Solver

# From this number of rows on, starting points are less accurate: the sampling error is larger than the tolerance.
MANY_ROWS = 10_000
# Fraction of the maximum number of iterations that is used to fit a starting point with a convex loss on pairs.
ROUGH_SHARE = 0.06
# Largest number of cuts for a starting point with the tight loss, and its tolerance: on few rows without and with
# ``min_tpr > 0``, and on many rows.
_CUTS, _CUT_TOL, _CUT_TOL_ABOVE = 100, 1e-4, 1e-3
_CUTS_MANY, _CUT_TOL_MANY = 50, 1e-3
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


def start_solver(kind: str, tol: float, max_iter: int, n_rows: int, above: bool) -> Solver:
    """Return the solver for a starting point with a loss on pairs: "auc", "tight" or "hinge".

    Convergence is slow to zero weights and on separable rows, and a starting point need not be optimal. ``above`` is
    whether the window is limited to rates above a true-positive rate.
    """
    if kind == "tight" and n_rows >= MANY_ROWS:
        return CuttingPlane(_CUT_TOL_MANY, _CUTS_MANY)
    if kind == "tight":
        return CuttingPlane(_CUT_TOL_ABOVE if above else _CUT_TOL, _CUTS)
    rough = SmoothedNewton(tol * (20.0 if n_rows >= MANY_ROWS else 1.0), max(1, round(ROUGH_SHARE * max_iter)))
    if kind == "hinge":
        return CCCP(10 * tol, 5, inner=replace(rough, tol=10 * tol, max_iter=10))
    return rough
