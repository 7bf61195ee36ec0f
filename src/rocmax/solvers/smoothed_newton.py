"""Newton's method on a smoothed loss, certified by cuts of the exact loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rocmax._support import Array, Parameters
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator, as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers.base import Callback, Cuts, Result, require
from rocmax.solvers.certified import RULES, CertifiedRun, thinned


@dataclass(frozen=True)
class SmoothedNewton(Parameters):
    r"""Minimize :math:`\frac{1}{2}|w|^2 + C R(w)` for a convex loss, with a certified duality gap.

    Each iteration takes a Newton step on a smoothed loss with a sampled Hessian, which needs one pass over the data,
    and computes a gradient at the new point, which needs another. The line search works on the scores and needs no
    pass. Every gradient, smoothed or not, gives a cut :math:`R(w') \ge b + g \cdot w'`; the best lower bound from all
    cuts certifies the gap. The amount of smoothing depends on the tolerance and decreases during the run. If Newton
    steps make little progress, as on small samples on which the loss is piecewise linear with few pieces, they
    alternate with steps towards the minimizer of the cuts.

    From 50,000 rows on (15,000 for the full AUC), a loss that supports it is computed from bins, see
    :class:`~rocmax.losses.Binned`, and without ``w0`` the run starts from an approximate solution on a tenth of the
    rows, whose passes are not counted. The gap remains a bound for the exact problem.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when the gap is at most ``tol`` times the objective, and at most
        ``tol`` times the improvement of the objective over zero weights. At zero weights, the solver stops when the gap
        is at most ``tol`` times the decrease predicted by the gradient there.
    max_iter
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
        """Minimize from ``w0`` (zero if None); the result is never worse than ``w0`` or zero weights."""
        require("SmoothedNewton", loss, penalty, (SquaredL2,), convex=True, curvature=True)
        binned = self._binned(loss) if self.cuts is None else None
        if binned is None:
            return self._iterate(operator, loss, penalty.C, w0, callback)[0]
        n_samples, n_features = operator.shape
        pairs = int(np.clip(n_samples / (RULES.rows_per_pair * max(n_features, 1)), *RULES.pairs_near_solution))
        start = self._subsample_solution(operator, binned, penalty.C) if w0 is None else None
        w, width = (w0, None) if start is None else start
        return self._iterate(operator, binned, penalty.C, w, callback, pairs, width)[0]

    def _iterate(
        self,
        operator: Operator,
        loss: BoundLoss,
        C: float,
        w0: Array | None,
        callback: Callback | None = None,
        pairs: int = RULES.pairs,
        width: float | None = None,
    ) -> tuple[Result, _Start]:
        """Run from ``w0``; ``width`` is the smoothing at a start close to the solution, 0 to choose it."""
        run = CertifiedRun(CountingOperator(operator), loss, C, w0, self.cuts, pairs)
        if self.cuts is not None or width is not None:
            run.settle(0.3 * self.tol if width is None else RULES.settled, width or 0.0)

        def step(n_iter: int, slow: int) -> None:
            if slow >= RULES.slow and n_iter % 2:
                run.cutting_plane_step()
            else:
                run.newton_step(0.3 * self.tol, slow >= RULES.slow)

        result = run.iterate("SmoothedNewton", self.tol, self.max_iter, callback, step)
        return result, _Start(result.w, 0.0) if result.w.any() else _Start(run.at.w, run.width)

    def _binned(self, loss: BoundLoss) -> BoundLoss | None:
        """Return a large loss on bins; the relative error of 2048 bins is about 1e-5 and falls with their square."""
        if loss.n_samples < (RULES.many_rows_with_kinks if loss.has_kinks else RULES.many_rows):
            return None
        return loss.binned(2 ** int(np.clip(np.ceil(np.log2(64 / np.sqrt(self.tol))), 10, 13)))

    def _subsample_solution(self, operator: Operator, loss: BoundLoss, C: float) -> _Start | None:
        """Return the approximate solution on a part of the rows, a start close to the solution on all rows."""
        thin = thinned(loss.at(np.zeros(loss.n_samples)), int(RULES.subsample * loss.n_samples))
        if thin is None:
            return None
        rows, small = thin
        max_iter = min(self.max_iter, RULES.subsample_iterations)
        rough = replace(self, tol=max(self.tol, RULES.subsample_tol), max_iter=max_iter)
        part, binned = as_operator(operator.rows(rows)), rough._binned(small)
        start = None if binned is None else rough._subsample_solution(part, binned, C)
        w0, width = (None, None) if start is None else start
        return rough._iterate(part, binned or small, C, w0, None, RULES.subsample_pairs, width)[1]


class _Start(NamedTuple):
    """Point close to the solution.

    If the solution is at zero weights, the point is the minimizer of a smoothed objective, and ``width`` is that of the
    smoothing; otherwise it is 0.
    """

    w: Array
    width: float
