"""Iterations of the certified solver on the rows that determine the loss."""

from __future__ import annotations

from collections.abc import Callable

from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, MatrixOperator, StandardizedOperator, as_operator, zero_scores
from rocmax.solvers._certified import CertifiedRun, Iterate

# The working set is used for matrices of at least this size, where products take most of the time, and for at most this
# number of rows: it is a copy of rows, and must not take much memory.
_MIN_SIZE, _MAX_ROWS = 500_000, 250_000
# The set is chosen when the gap, relative to the objective, is at most this: until then the scores change much.
_NEAR = 20.0
# Number of negatives in the set, relative to those up to the end of the window.
_REACH = 3.0
# Number of slow iterations in a row after which all rows are used again.
_SLOW = 3


class WorkingSet:
    """Rows that determine the loss near the solution: for a narrow window, positives and high-scored negatives.

    The loss on these rows is a lower bound of the loss on all rows, so that its cuts are valid for all rows. When the
    run has converged on them, the objective of all rows is computed, which needs one pass over the data. It is the same
    unless another row has entered the window; then the run continues on all rows.

    Parameters
    ----------
    run : CertifiedRun
        The run.
    binned : callable
        Function that returns a large loss on bins, and None for a small one.
    """

    def __init__(self, run: CertifiedRun, binned: Callable[[BoundLoss], BoundLoss | None]) -> None:
        self._run, self._binned = run, binned
        self._whole: tuple[CountingOperator, BoundLoss, Iterate] | None = None
        self._possible = (
            run.loss.n_samples <= _MAX_ROWS
            and run.operator.shape[0] * run.operator.shape[1] >= _MIN_SIZE
            and not run.returns_cuts
            and run.loss.has_kinks
            and isinstance(run.operator.operator, MatrixOperator | StandardizedOperator)
        )

    @property
    def is_used(self) -> bool:
        """Whether the run is on the working set."""
        return self._whole is not None

    def choose(self, gap: float) -> None:
        """Continue the run on a working set, if there is a small one and the gap is small enough; only once."""
        run = self._run
        if not self._possible or gap > _NEAR or not run.at.w.any():
            return
        self._possible = False
        found = run.loss.working_set(run.at.scores, _REACH)
        if found is None:
            return
        rows, loss = found
        loss = self._binned(loss) or loss
        share = rows.size / run.loss.n_samples
        operator = CountingOperator(as_operator(run.operator.rows(rows)), share)
        operator.count = run.operator.count + share
        self._whole = run.operator, run.loss, run.best
        best_scores, is_best = run.best.scores[rows], run.best is run.at
        run.switch(operator, loss, run.at.w, run.at.scores[rows])
        run.best = run.at if is_best else run.point(run.best.w, loss.at(best_scores))
        run.known = self._whole[2]
        run.take_minorant()

    def leave_if_slow(self, slow: int) -> None:
        """Continue the run on all rows if it makes little progress."""
        if self.is_used and slow >= _SLOW:
            self.leave()
            self._run.take_minorant()
            self._run.cut()

    def leave(self) -> bool:
        """Compute the objective of all rows at the best point; return whether the run was on the working set."""
        if self._whole is None:
            return False
        run, (operator, loss, best) = self._run, self._whole
        operator.count = run.operator.count
        w = run.best.w
        run.switch(operator, loss, w, operator.matvec(w) if w.any() else zero_scores(operator))
        run.best = min(best, run.at, key=lambda point: point.objective)
        run.known = self._whole = None
        return True
