"""Selection of a solver for a loss and a penalty."""

from __future__ import annotations

from rocmax.losses.base import BoundLoss
from rocmax.penalties import Ball, SquaredL2, Unpenalized
from rocmax.solvers.base import Solver
from rocmax.solvers.cccp import CCCP
from rocmax.solvers.certified import OCAS
from rocmax.solvers.first_order import LBFGS
from rocmax.solvers.proximal_bundle import ProximalBundle
from rocmax.solvers.smoothed_newton import SmoothedNewton


def choose_solver(
    loss: BoundLoss, penalty: SquaredL2 | Unpenalized | Ball, tol: float = 1e-3, max_iter: int = 500
) -> Solver:
    """Return a solver that supports a loss and a penalty.

    A norm constraint is handled by :class:`ProximalBundle`. With :class:`~rocmax.penalties.SquaredL2`, the solver is
    :class:`SmoothedNewton` for a convex loss with curvature, :class:`OCAS` for any other convex loss, :class:`CCCP` for
    a difference of convex losses, and :class:`LBFGS` for any other loss.

    Parameters
    ----------
    loss : BoundLoss
        The loss, bound to labels.
    penalty : SquaredL2, Unpenalized or Ball
        The penalty.
    tol : float, default=1e-3
        Tolerance of the solver.
    max_iter

    Returns
    -------
    Solver
        The solver.

    Examples
    --------
    >>> from rocmax.losses import PairwiseHinge, PartialAUCRamp
    >>> from rocmax.penalties import L1Ball, SquaredL2
    >>> from rocmax.solvers import choose_solver
    >>> choose_solver(PairwiseHinge().bind([0, 1]), SquaredL2(), tol=1e-4)
    SmoothedNewton(tol=0.0001, max_iter=500, cuts=None)
    >>> choose_solver(PairwiseHinge().bind([0, 1]), L1Ball(2.0))
    ProximalBundle(tol=0.001, max_iter=500)
    >>> choose_solver(PartialAUCRamp().bind([0, 1]), SquaredL2())
    LBFGS(tol=0.001, max_iter=500)
    """
    if isinstance(penalty, Ball):
        return ProximalBundle(tol, max_iter)
    if not loss.convex:
        return CCCP(tol, max_iter, max_iter) if loss.has_split else LBFGS(tol, max_iter)
    return SmoothedNewton(tol, max_iter) if loss.has_curvature else OCAS(tol, max_iter)
