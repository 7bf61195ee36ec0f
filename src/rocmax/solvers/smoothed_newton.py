"""Newton steps on a smoothed loss, certified by cuts of the loss itself."""

from __future__ import annotations

from dataclasses import dataclass

from rocmax._params import Parameters
from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import SquaredL2
from rocmax.solvers._certified import CertifiedRun
from rocmax.solvers.base import Callback, Cuts, Result, require

# Iterations without a tenth off the gap after which cutting-plane steps take turns with Newton steps.
_SLOW = 3
# On large samples the line searches of the first iterations are rough, while the relative gap is above this.
_ROUGH_ITERATIONS = 3
_ROUGH_GAP = 0.02


@dataclass(frozen=True)
class SmoothedNewton(Parameters):
    r"""Minimise :math:`\frac12|w|^2 + C R(w)` for a convex loss, with a certified duality gap.

    Each iteration takes a Newton step with a sampled Hessian on a smoothed loss, one pass over the data, and a
    gradient at the new point, another. The line search between them works on the scores and needs no pass. Every
    gradient, smoothed or not, is a cut :math:`R(w') \ge b + g \cdot w'`; the best lower bound from all cuts
    certifies the gap. The smoothing is tied to the tolerance and shrinks as the steps succeed. Where Newton steps
    stop paying (small samples, where the loss is visibly a polyhedron), steps towards the minimiser of the cuts take
    turns with them.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when the gap is at most ``tol`` times the objective, and at most
        ``tol`` times the improvement of the objective over zero weights. At zero weights, when it is at most ``tol``
        times the decrease that the slope there promises.
    max_iter : int, default=500
        Maximum number of iterations.
    cuts : Cuts, default=None
        Cuts that are known to hold, perhaps none; the result then holds the cuts at the end. None starts without cuts.
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
        """Minimise from ``w0`` (zero if None), never ending above it, nor above zero weights."""
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
