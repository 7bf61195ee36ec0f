"""State of the follow-the-leader estimator: all rows, the current solution and the regret."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocmax._typing import Bools
from rocmax.estimators.online._carried_cuts import GrowingRows, carry, class_sums, no_cuts
from rocmax.losses import Loss
from rocmax.operators import CountingOperator, as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, Callback, Progress, Result, SmoothedNewton
from rocmax.streaming.sampling import stack


class Leader:
    """All rows so far and the optimal model on them (the leader).

    Attributes
    ----------
    X, positive : matrix, ndarray of bool
        The rows, and the mask of the positive rows.
    result : Result
        The current leader; zero weights until both classes have been seen.
    regret, passes : list
        One entry per batch.
    """

    def __init__(self, n_features: int) -> None:
        self.X: Any = None
        self.positive: Bools = np.empty(0, dtype=bool)
        self.result = Result(np.zeros(n_features), 0.0, 0.0, 1, True, "one class only", [Progress(0.0, 0.0, 0)])
        self.regret: list[float] = []
        self.passes: list[int] = []
        self._cuts = no_cuts(n_features)
        self._sums = np.zeros((2, n_features))
        self._played = 0.0

    def has_both(self) -> bool:
        """Return whether both classes have been seen."""
        return bool(self.positive.any() and not self.positive.all())

    def take(
        self, X: Any, positive: Bools, loss: Loss, C: float, tol: float, max_iter: int, callback: Callback | None = None
    ) -> None:
        """Evaluate the leader on a batch, add the batch to the rows, and compute the next leader."""
        sums, n_old = self._sums, self.positive.size
        self._append(X, positive)
        if not self.has_both():
            self.regret.append(0.0)
            self.passes.append(0)
            return
        operator = CountingOperator(as_operator(self.X))
        rows = GrowingRows(self.X, operator, self.positive, operator.matvec(self.result.w), n_old, sums)
        bound = loss.bind(self.positive)
        scale = loss.sum_scale(*rows.counts())
        self._played += scale * bound.value_and_gradient(rows.scores)[0] - _loss_before(loss, rows)
        kind = SmoothedNewton if loss.has_curvature else OCAS
        solver = kind(tol, max_iter, carry(loss, self._cuts, rows))
        self.result = solver.solve(operator, bound, SquaredL2(C), self.result.w, callback)
        self._cuts = self.result.cuts or self._cuts
        w = self.result.w
        in_hindsight = (self.result.objective - 0.5 * float(w @ w)) / C
        self.regret.append(self._played / scale - in_hindsight)
        self.passes.append(operator.passes)

    def _append(self, X: Any, positive: Bools) -> None:
        """Add rows."""
        if self.X is None:
            self.X, self.positive = X.copy(), positive.copy()
        else:
            self.X, self.positive = stack([self.X, X]), np.concatenate([self.positive, positive])
        self._sums = self._sums + class_sums(X, positive)


def _loss_before(loss: Loss, rows: GrowingRows) -> float:
    """Return the sum of the loss on the old rows at the current weights; zero if a class was missing."""
    m, n = rows.counts(old=True)
    if not min(m, n):
        return 0.0
    bound = loss.bind(rows.positive[: rows.n_old])
    return loss.sum_scale(m, n) * bound.value_and_gradient(rows.scores[: rows.n_old])[0]
