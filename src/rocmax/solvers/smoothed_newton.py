"""Newton's method on a smoothed loss, certified by cuts of the exact loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rocmax._support import Array, Parameters
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator, as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers.acceleration import PartSteps, WorkingSet
from rocmax.solvers.base import Callback, Cuts, Result, require
from rocmax.solvers.certified import CertifiedRun, thinned

# Number of iterations that reduce the gap by less than a tenth, after which cutting-plane and Newton steps alternate.
_SLOW = 3
# On large samples, the line searches of the first iterations are approximate while the relative gap is above this.
_ROUGH_ITERATIONS = 3
_ROUGH_GAP = 0.02
# From this number of rows on, the loss is computed from bins, and the start is the solution on a part of the rows.
# A loss with kinks needs more rows: parts of the rows have few negatives in the window.
_MANY_ROWS, _MANY_ROWS_WITH_KINKS = 15_000, 50_000
_SUBSAMPLE = 0.1
_SUBSAMPLE_TOL = 1e-2
_SUBSAMPLE_ITERATIONS = 6
# Pairs per feature in the Hessian, for dense and for sparse rows, in which some features are rare; on a part of the
# rows; and near the solution.
_PAIRS, _SPARSE_PAIRS = 64, 80
_SUBSAMPLE_PAIRS = 30
_PAIRS_AT_START = 60, 200
# Rows for each pair in a Hessian near the solution, within these limits: its time is then a part of that of a pass.
_ROWS_PER_PAIR = 50
# Smoothing error at such a start, relative to the objective.
_SETTLED = 0.001


@dataclass(frozen=True)
class SmoothedNewton(Parameters):
    r"""Minimize :math:`\frac12|w|^2 + C R(w)` for a convex loss, with a certified duality gap.

    Each iteration takes a Newton step on a smoothed loss with a sampled Hessian, which needs one pass over the data,
    and computes a gradient at the new point, which needs another. The line search works on the scores and needs no
    pass. Every gradient, smoothed or not, gives a cut :math:`R(w') \ge b + g \cdot w'`; the best lower bound from all
    cuts certifies the gap. The amount of smoothing depends on the tolerance and decreases during the run. If Newton
    steps make little progress, as on small samples on which the loss is piecewise linear with few pieces, they
    alternate with steps towards the minimizer of the cuts.

    From 50,000 rows on (15,000 for the full AUC), a loss that supports it is computed from bins, see
    :class:`~rocmax.losses.Binned`, and without ``w0`` the run starts from an approximate solution on a tenth of the
    rows, whose passes are not counted. The gap remains a bound for the exact problem.

    For a window that needs few of the negatives, on up to 250,000 rows in memory, iterations near the solution use the
    positives and the negatives with the highest scores only, three times as many as up to the end of the window. The
    loss on these rows is a lower bound of the loss on all rows, so that the cuts remain valid. The objective of all
    rows is computed at the end; if other rows have entered the window, iterations on all rows follow. A product with a
    part of the rows counts as that part of a pass.

    If the gap is still large after a few iterations on 30,000 rows or more, because many rows lie close to the kinks of
    the loss, as with ``min_tpr > 0`` and rare features, steps are taken towards the solution on a part of the rows that
    is drawn for its influence on these kinks. Computations on the part are not counted as passes.

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
        pairs = int(np.clip(n_samples / (_ROWS_PER_PAIR * max(n_features, 1)), *_PAIRS_AT_START))
        if w0 is not None:
            return self._iterate(operator, binned, penalty.C, w0, callback, pairs)[0]
        start = self._subsample_solution(operator, binned, penalty.C)
        if start is None:
            return self._iterate(operator, binned, penalty.C, None, callback, pairs)[0]
        return self._iterate(operator, binned, penalty.C, start.w, callback, pairs, start.width)[0]

    def _iterate(
        self,
        operator: Operator,
        loss: BoundLoss,
        C: float,
        w0: Array | None,
        callback: Callback | None = None,
        pairs: int | None = None,
        width: float | None = None,
        is_start: bool = False,
    ) -> tuple[Result, _Start]:
        """Run from ``w0``; ``width`` is the smoothing at a start close to the solution, 0 to choose it.

        With ``is_start``, the result is to be the start of another run. Then there is no working set: near zero
        weights, the start is the last point and not the best one.
        """
        if pairs is None:
            pairs = _SPARSE_PAIRS if getattr(operator, "is_sparse", False) else _PAIRS
        run = CertifiedRun(CountingOperator(operator), loss, C, w0, self.cuts, pairs)
        if self.cuts is not None or width is not None:
            run.settle(0.3 * self.tol if width is None else _SETTLED, width or 0.0)

        parts = PartSteps(run.operator, loss, C, self.tol)
        # A run that returns its cuts uses all rows, and so does a start, see above.
        working_set = WorkingSet(run.operator, loss, self._binned) if self.cuts is None and not is_start else None
        if working_set is not None and width is not None:
            run.use_working_set(working_set, 0.0)

        def step(n_iter: int, slow: int, gap: float) -> None:
            if working_set is not None:
                run.use_working_set(working_set, gap)
                if run.is_on_working_set and working_set.is_slow(slow):
                    run.leave_working_set()
            if not run.is_on_working_set and parts.wanted(n_iter, slow, gap, run.best.w) and run.part_step(parts):
                return
            if slow >= _SLOW and n_iter % 2:
                run.cutting_plane_step()
            else:
                run.newton_step(0.3 * self.tol, rough=n_iter <= _ROUGH_ITERATIONS and gap > _ROUGH_GAP)

        result = run.iterate("SmoothedNewton", self.tol, self.max_iter, callback, step)
        return result, _Start(result.w, 0.0) if result.w.any() else _Start(run.at.w, run.width)

    def _binned(self, loss: BoundLoss) -> BoundLoss | None:
        """Return a large loss on bins; the relative error of 2048 bins is about 1e-5 and falls with their square."""
        if _few(loss):
            return None
        return loss.binned(2 ** int(np.clip(np.ceil(np.log2(64 / np.sqrt(self.tol))), 10, 13)))

    def _subsample_solution(self, operator: Operator, loss: BoundLoss, C: float) -> _Start | None:
        """Return the approximate solution on a part of the rows, a start close to the solution on all rows."""
        thin = thinned(loss.at(np.zeros(loss.n_samples)), int(_SUBSAMPLE * loss.n_samples))
        if thin is None:
            return None
        rows, small = thin
        rough = replace(self, tol=max(self.tol, _SUBSAMPLE_TOL), max_iter=min(self.max_iter, _SUBSAMPLE_ITERATIONS))
        part, binned = as_operator(operator.rows(rows)), rough._binned(small)
        start = None if binned is None else rough._subsample_solution(part, binned, C)
        w0, width = (None, None) if start is None else start
        return rough._iterate(part, binned or small, C, w0, None, _SUBSAMPLE_PAIRS, width, is_start=True)[1]


class _Start(NamedTuple):
    """Point close to the solution.

    If the solution is at zero weights, the point is the minimizer of a smoothed objective, and ``width`` is that of the
    smoothing; otherwise it is 0.
    """

    w: Array
    width: float


def _few(loss: BoundLoss) -> bool:
    """Return whether there are too few rows for bins, and for a start from a part of the rows."""
    return loss.n_samples < (_MANY_ROWS_WITH_KINKS if loss.has_kinks else _MANY_ROWS)
