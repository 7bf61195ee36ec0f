"""Cutting-plane method with a line search, for convex losses that provide only subgradients."""

from __future__ import annotations

from dataclasses import dataclass

from rocmax._params import Parameters
from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import SquaredL2
from rocmax.solvers._certified import CertifiedRun
from rocmax.solvers.base import Callback, Cuts, Result, require


@dataclass(frozen=True)
class OCAS(Parameters):
    r"""Minimise :math:`\frac12|w|^2 + C R(w)` for a convex loss by cutting planes, with a certified duality gap.

    Each iteration minimises the cutting-plane model, performs a line search from the best point to that minimiser, and
    computes the next cut slightly beyond the result of the line search. It needs two passes over the data; the line
    search works on the scores.

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

    References
    ----------
    Franc and Sonnenburg, "Optimized cutting plane algorithm for support vector machines", ICML 2008.
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
        require("OCAS", loss, penalty, (SquaredL2,), convex=True)
        run = CertifiedRun(CountingOperator(operator), loss, penalty.C, w0, self.cuts)
        return run.iterate("OCAS", self.tol, self.max_iter, callback, lambda *_: run.cutting_plane_step())
