"""Newton's method on a smoothed loss, certified by cuts of the exact loss."""

from __future__ import annotations

from dataclasses import dataclass

from rocmax._params import Parameters
from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import SquaredL2
from rocmax.solvers._certified import CertifiedRun
from rocmax.solvers.base import Callback, Cuts, Result, require

# Number of iterations that reduce the gap by less than a tenth, after which cutting-plane and Newton steps alternate.
_SLOW = 3
# On large samples, the line searches of the first iterations are approximate while the relative gap is above this.
_ROUGH_ITERATIONS = 3
_ROUGH_GAP = 0.02


@dataclass(frozen=True)
class SmoothedNewton(Parameters):
    r"""Minimise :math:`\frac12|w|^2 + C R(w)` for a convex loss, with a certified duality gap.

    Each iteration takes a Newton step on a smoothed loss with a sampled Hessian, which needs one pass over the data,
    and computes a gradient at the new point, which needs another. The line search works on the scores and needs no
    pass. Every gradient, smoothed or not, gives a cut :math:`R(w') \ge b + g \cdot w'`; the best lower bound from all
    cuts certifies the gap. The amount of smoothing depends on the tolerance and decreases during the run. If Newton
    steps make little progress, as on small samples on which the loss is piecewise linear with few pieces, they
    alternate with steps towards the minimiser of the cuts.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when the gap is at most ``tol`` times the objective, and at most
        ``tol`` times the improvement of the objective over zero weights. At zero weights, the solver stops when the gap
        is at most ``tol`` times the decrease predicted by the gradient there.
    max_iter : int, default=500
        Maximum number of iterations.
    cuts : Cuts, default=None
        Valid cuts to start from, possibly none; the result then contains the final cuts. None starts without cuts and
        returns none.
    """

    tol: float = 1e-3
    max_iter: int = 500
    cuts: Cuts | None = None

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: SquaredL2,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimise from ``w0`` (zero if None); the result is never worse than ``w0`` or zero weights."""
        require("SmoothedNewton", loss, penalty, (SquaredL2,), convex=True, method="curvature")
        run = CertifiedRun(CountingOperator(operator), loss, penalty.C, w0, self.cuts)
        if self.cuts is not None:
            run.settle(0.3 * self.tol)

        def step(n_iter: int, slow: int, gap: float) -> None:
            if slow >= _SLOW and n_iter % 2:
                run.cutting_plane_step()
            else:
                run.newton_step(0.3 * self.tol, rough=n_iter <= _ROUGH_ITERATIONS and gap > _ROUGH_GAP)

        return run.iterate("SmoothedNewton", self.tol, self.max_iter, callback, step)
