"""State of the follow-the-leader estimator: all rows, the current solution and the regret."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rocmax._typing import Array, Bools
from rocmax.estimators.online._carried_cuts import GrowingRows, carry, class_sums, no_cuts
from rocmax.estimators.online._in_ball import BallProblem, Warm
from rocmax.losses import Loss
from rocmax.operators import CountingOperator, as_operator
from rocmax.solvers import Callback, Progress, Result
from rocmax.streaming.sampling import stack

# Lower limit of the loss in the stopping rule, relative to the loss of zero weights: it can be 0 on separable data. The
# regret is a difference of losses, so that the loss in hindsight needs no more than an absolute error.
_FLOOR, _FLOOR_IN_HINDSIGHT = 1e-3, 1.0


class Update(NamedTuple):
    """Parameters of an update: the weight of the penalty, the ball, the solver, and whether to compute the regret."""

    eta: float
    radius: float
    tol: float
    max_iter: int
    compute_regret: bool
    callback: Callback | None = None


class Leader:
    """All rows so far and the optimal model on them (the leader).

    Attributes
    ----------
    X, positive : matrix, ndarray of bool
        The rows, and the mask of the positive rows.
    result : Result
        The current leader; zero weights until both classes have been seen.
    mean_w : ndarray
        Mean of the models that were evaluated, one per batch.
    regret, regret_gap, passes : list
        One entry per batch. The regret is at most ``regret + regret_gap``.
    """

    def __init__(self, n_features: int) -> None:
        self.X: Any = None
        self.positive: Bools = np.empty(0, dtype=bool)
        self.result = Result(np.zeros(n_features), 0.0, 0.0, 1, True, "one class only", [Progress(0.0, 0.0, 0)])
        self.mean_w = np.zeros(n_features)
        self.regret: list[float] = []
        self.regret_gap: list[float] = []
        self.passes: list[int] = []
        self._cuts = no_cuts(n_features)
        self._c = 1.0
        self._hindsight: tuple[Array, float] | None = None
        self._sums = np.zeros((2, n_features))
        self._played = 0.0

    def has_both(self) -> bool:
        """Return whether both classes have been seen."""
        return bool(self.positive.any() and not self.positive.all())

    def take(self, X: Any, positive: Bools, loss: Loss, update: Update) -> None:
        """Evaluate the leader on a batch, add the batch to the rows, and compute the next leader."""
        sums, n_old = self._sums, self.positive.size
        self.mean_w = self.mean_w + (self.result.w - self.mean_w) / (len(self.passes) + 1)
        self._append(X, positive)
        if not self.has_both():
            self.regret.append(0.0)
            self.regret_gap.append(0.0)
            self.passes.append(0)
            return
        operator = CountingOperator(as_operator(self.X))
        rows = GrowingRows(self.X, operator, self.positive, operator.matvec(self.result.w), n_old, sums)
        bound = loss.bind(self.positive)
        scale = loss.sum_scale(*rows.counts())
        self._played += scale * bound.value_and_gradient(rows.scores)[0] - _loss_before(loss, rows)
        problem = BallProblem(operator, bound, update.radius, update.max_iter, update.callback)
        warm = Warm(self.result.w, carry(loss, self._cuts, rows), self._c)
        self.result, warm = problem.solve(scale / update.eta, update.tol, warm, _FLOOR)
        self._cuts, self._c = warm.cuts, warm.c
        best, gap = np.nan, np.nan
        if update.compute_regret:
            best, gap = self._in_hindsight(problem, scale / update.eta, update.tol)
        self.regret.append(self._played / scale - best)
        self.regret_gap.append(gap)
        self.passes.append(operator.passes)

    def _in_hindsight(self, problem: BallProblem, C: float, tol: float) -> tuple[float, float]:
        """Return the smallest loss found in the ball, and its distance from a lower bound.

        It is the loss of the leader if the leader is on the surface of the ball. Otherwise the penalty is reduced until
        it is below the tolerance everywhere in the ball.
        """
        result, radius = self.result, problem.radius
        weak = 0.5 * radius**2 / (tol * problem.at_zero)
        if weak > C and float(np.linalg.norm(result.w)) < radius * (1 - 1e-12):
            w, c = self._hindsight or (result.w, np.inf)
            C = weak
            result, warm = problem.solve(C, tol, Warm(w, self._cuts, c), _FLOOR_IN_HINDSIGHT)
            self._hindsight = (warm.w, warm.c)
        penalty = 0.5 * float(result.w @ result.w)
        return (result.objective - penalty) / C, (result.gap + 0.5 * radius**2 - penalty) / C

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
