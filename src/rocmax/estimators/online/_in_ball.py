r"""Penalised problem in an L2 ball: :math:`\min_{|w| \le r} \frac12|w|^2 + C R(w)`.

Let :math:`w(c)` be the minimiser of :math:`\frac12|w|^2 + c R(w)` without the ball. Its norm increases with ``c``. If
:math:`|w(C)| \le r`, it is the solution. Otherwise, the solution is :math:`w(c)` for the ``c < C`` with
:math:`|w(c)| = r`, which also minimises ``R`` in the ball. For every ``c <= C``, with the minimum :math:`P(c)`,

.. math:: \frac{C}{c} P(c) - \frac12 \Bigl(\frac{C}{c} - 1\Bigr) r^2

is a lower bound of the optimum. It is exact at the right ``c``, and its error is quadratic in the error of ``c``. A few
solves, each from the weights and cuts of the last one, are therefore enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rocmax._typing import Array
from rocmax.losses import BoundLoss
from rocmax.operators import CountingOperator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, Callback, Cuts, Progress, Result, SmoothedNewton
from rocmax.solvers.base import finish, gap_rounding

# Maximum number of values of c, and the largest factor between two of them.
_MAX_ROUNDS, _LARGEST_FACTOR = 40, 1000.0
# Share of the tolerance for the gap of the penalised problems; the rest is for the error of c.
_SHARE = 0.4
# Limits of the slope of log |w(c)| in log c: the norm is at most proportional to c.
_FLATTEST, _STEEPEST = 0.05, 1.0


@dataclass(frozen=True)
class Warm:
    """Start of a solve: weights, valid cuts, and the value of ``c`` at which the previous solution was on the ball.

    If the previous solution was inside the ball, ``c`` is infinite.
    """

    w: Array
    cuts: Cuts
    c: float = 1.0


@dataclass(frozen=True)
class BallProblem:
    """The rows with a convex loss, and the radius of the ball."""

    operator: CountingOperator
    loss: BoundLoss
    radius: float
    max_iter: int
    callback: Callback | None

    @property
    def at_zero(self) -> float:
        """Loss of zero weights."""
        return self.loss.value_and_gradient(np.zeros(self.operator.shape[0]))[0]

    def penalised(self, c: float, tol: float, warm: Warm) -> Result:
        """Solve the penalised problem without the ball."""
        kind = SmoothedNewton if self.loss.has("curvature") else OCAS
        solver = kind(tol, self.max_iter, warm.cuts)
        return solver.solve(self.operator, self.loss, SquaredL2(c), warm.w, self.callback)

    def solve(self, C: float, tol: float, warm: Warm, floor: float) -> tuple[Result, Warm]:
        """Minimise in the ball; return the result, and the start of the next solve.

        The gap is at most ``tol`` times the objective, or ``floor`` times the objective of zero weights if it is
        larger, and at most ``tol`` times the improvement over zero weights.
        """
        search = _Search(self, C, tol, floor)
        c, inner = min(C, warm.c), tol
        for _ in range(_MAX_ROUNDS):
            result = self.penalised(c, inner, warm)
            warm = Warm(result.w, result.cuts or warm.cuts, c)
            norm = float(np.linalg.norm(result.w))
            if c == C and norm <= self.radius:
                return result, replace(warm, c=np.inf)
            search.add(c, result, norm)
            if search.converged or not result.converged:
                break
            inner = min(inner, search.inner_tolerance(c, result))
            c = search.next(c, norm)
        return search.result(), warm


class _Search:
    """Search for the weight ``c`` of the loss at which the norm is the radius."""

    def __init__(self, ball: BallProblem, C: float, tol: float, floor: float) -> None:
        self._ball, self._C, self._tol = ball, C, tol
        self._zero = C * ball.at_zero
        self._floor = floor * self._zero
        self._w, self._objective, self._bound = np.zeros(ball.operator.shape[1]), self._zero, -np.inf
        self._trace: list[Progress] = []
        self._n_iter = 0
        self._last: tuple[float, float] | None = None
        self._low, self._high = 0.0, np.inf
        self._slope = 0.5

    @property
    def _gap(self) -> float:
        return self._objective - self._bound

    @property
    def _unit(self) -> float:
        return min(max(abs(self._objective), self._floor), self._zero - self._bound)

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self._gap <= self._tol * self._unit

    def add(self, c: float, result: Result, norm: float) -> None:
        """Use a solution of a penalised problem: its bound, and its projection to the surface of the ball."""
        ball, ratio = self._ball, self._C / c
        bound = ratio * (result.objective - result.gap) - 0.5 * (ratio - 1.0) * ball.radius**2
        self._bound = max(self._bound, bound)
        if norm > 0:
            w = result.w * (ball.radius / norm)
            value = ball.loss.value_and_gradient(ball.operator.matvec(w))[0]
            objective = 0.5 * ball.radius**2 + self._C * value
            if objective < self._objective:
                self._w, self._objective = w, objective
        self._n_iter += result.n_iter
        self._trace.append(Progress(self._objective, self._bound, ball.operator.passes))

    def inner_tolerance(self, c: float, result: Result) -> float:
        """Return the tolerance at which the gap of the penalised problem is a share of the allowed gap."""
        return _SHARE * self._tol * self._unit * (c / self._C) / abs(result.objective)

    def next(self, c: float, norm: float) -> float:
        """Return the next value of ``c``: a secant step in logarithms, inside the bracket."""
        radius = self._ball.radius
        if norm <= radius:
            self._low = max(self._low, c)
        else:
            self._high = min(self._high, c)
        if self._high <= self._low * (1 + 1e-9):
            # The norm is that of an approximate solution, so that both ends can be wrong; the tolerance is tighter now.
            self._low, self._high = c / 1.1, c * 1.1
        if self._last is not None and norm > 0 and self._last[1] > 0 and self._last[0] != c:
            slope = np.log(norm / self._last[1]) / np.log(c / self._last[0])
            self._slope = float(np.clip(slope, _FLATTEST, _STEEPEST))
        self._last = (c, norm)
        step = (radius / norm) ** (1.0 / self._slope) if norm > 0 else np.inf
        new = c * float(np.clip(step, 1.0 / _LARGEST_FACTOR, _LARGEST_FACTOR))
        if not self._low < new < self._high:
            new = float(np.sqrt(self._low * self._high)) if self._low > 0 and np.isfinite(self._high) else new
        return min(new, self._C)

    def result(self) -> Result:
        """Return the best point in the ball."""
        args = (self._w, self._objective, self._gap, self._unit, self.converged, self._trace)
        rounding = gap_rounding(self._ball.operator, self._gap, self._zero + abs(self._objective))
        return replace(finish(*args, "FollowTheLeader", self._tol, rounding), n_iter=self._n_iter)
