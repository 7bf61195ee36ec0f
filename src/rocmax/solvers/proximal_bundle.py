"""A proximal bundle method: convex losses over a ball, certified by cuts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import Ball
from rocmax.solvers._ball_bundle import BallBundle
from rocmax.solvers._line_search import find_zero
from rocmax.solvers.base import Callback, Progress, Result, finish, require

Array = NDArray[np.float64]

# A loss this small, relative to that of zero weights, counts as this: on separable data the loss itself can be zero.
FLOOR = 1e-3
# How much of the way from the best point to the end of the step lies between it and the next cut.
_BEYOND = 0.05
# Iterations without any progress after which the run ends.
_STUCK = 60
# Largest number of weights that all cuts together may hold, and limits for the number of cuts.
_CUT_WEIGHTS, _FEWEST_CUTS, _MOST_CUTS = 4_000_000, 25, 100


@dataclass(frozen=True)
class ProximalBundle:
    r"""Minimise :math:`R(w)` over a ball for a convex loss, with a certified duality gap.

    Every subgradient is a cut :math:`R(w') \ge b + g \cdot w'`. The minimiser of the cuts near the best point, a small
    problem that needs no data, is where a step leads (one pass over the data); a line search along it works on the
    scores; the next cut is taken a little beyond its end (another pass). Any mixture of the cuts bounds the optimum
    from below, by its minimum over the ball.

    When the gap is small enough, weights that are zero at the minimiser of the cuts are set to zero, if the tolerance
    allows.

    Parameters
    ----------
    tol : float
        Stop when the gap is at most ``tol`` times the loss, or ``1e-3 tol`` times the loss of zero weights.
    max_iter : int
        Largest number of iterations; each takes two passes over the data.

    References
    ----------
    Kiwiel, "Proximal level bundle methods for convex nondifferentiable optimization, saddle-point problems and
    variational inequalities", Mathematical Programming 1995.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.losses import PartialAUCTight
    >>> from rocmax.operators import as_operator
    >>> from rocmax.penalties import L1Ball
    >>> from rocmax.solvers import ProximalBundle
    >>> X, y = make_classification(500, 50, n_informative=5, shuffle=False, class_sep=2.0, random_state=0)
    >>> loss = PartialAUCTight(max_fpr=0.3).bind(y)
    >>> result = ProximalBundle().solve(as_operator(X), loss, L1Ball(radius=0.5))
    >>> result.converged, int((result.w != 0).sum()) < 10
    (True, True)
    """

    tol: float = 1e-3
    max_iter: int = 500

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: Ball,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimise from the projection of ``w0`` (zero if None), never ending above it, nor above zero weights."""
        require(loss, "ProximalBundle", convex=True)
        run = _Run(CountingOperator(operator), loss, penalty, w0)
        trace: list[Progress] = []
        smallest_gap, unmoved = np.inf, 0
        while True:
            run.cut()
            target = run.bundle.improve(run.w, run.objective)
            gap = run.objective - run.bundle.bound
            converged = run.meets(self.tol, run.objective)
            if converged:
                highest = trace[-1].objective if trace else run.objective
                run.truncate(target, self.tol, highest)
                gap = run.objective - run.bundle.bound
            trace.append(Progress(run.objective, run.bundle.bound, run.operator.passes))
            if callback is not None:
                callback(trace[-1])
            unmoved = unmoved + 1 if gap > (1 - 1e-3) * smallest_gap else 0
            smallest_gap = min(gap, smallest_gap)
            if converged or unmoved >= _STUCK or len(trace) >= self.max_iter:
                break
            run.step(target)
        return finish(run.w, run.objective, gap, converged, trace, "ProximalBundle", self.tol)


class _Run:
    """State of one run: the best point, the cuts and the coefficients of the next one."""

    def __init__(self, operator: CountingOperator, loss: BoundLoss, ball: Ball, w0: Array | None) -> None:
        n_samples, n_features = operator.shape
        self.operator, self.loss, self.ball = operator, loss, ball
        max_cuts = int(np.clip(_CUT_WEIGHTS // n_features, _FEWEST_CUTS, _MOST_CUTS))
        self.bundle = BallBundle(ball, n_features, max_cuts)
        self.w, self.scores = np.zeros(n_features), np.zeros(n_samples)
        self.objective, self.coefficients = loss.value_and_gradient(self.scores)
        self.at_zero = self.objective
        self.value, self.at = self.objective, self.scores
        if w0 is not None and np.any(w0):
            w = ball.project(np.array(w0, dtype=np.float64))
            scores = operator.matvec(w)
            value, coefficients = loss.value_and_gradient(scores)
            if value < self.objective:
                self.w, self.scores, self.objective = w, scores, value
                self.value, self.at, self.coefficients = value, scores, coefficients

    def meets(self, tol: float, objective: float) -> bool:
        """Tell whether the gap of a point with this loss is within the tolerance."""
        return objective - self.bundle.bound <= tol * max(objective, FLOOR * self.at_zero)

    def cut(self) -> None:
        """Turn the coefficients at hand into a cut."""
        self.bundle.add(self.operator.rmatvec(self.coefficients), self.value - float(self.coefficients @ self.at))

    def step(self, target: Array) -> None:
        """Step from the best point towards the target, and take the next cut a little further on."""
        step = target - self.w
        along = self.operator.matvec(step)
        start = self.scores

        def slope(t: float) -> float:
            self.value, self.coefficients = self.loss.value_and_gradient(start + t * along)
            return float(self.coefficients @ along)

        first = slope(0.0)
        if not self.coefficients.any():
            self.at = start  # flat: the next cut certifies a minimum
            return
        t = find_zero(slope, first, rtol=0.1, largest=1.0, max_evals=25) if first < 0 else 0.0
        if t > 0 and self.value < self.objective:
            self.w, self.scores, self.objective = self.w + t * step, start + t * along, self.value
        else:
            t = 0.0
        self.at = start + (t + _BEYOND * (1.0 - t)) * along
        self.value, self.coefficients = self.loss.value_and_gradient(self.at)

    def truncate(self, target: Array, tol: float, highest: float) -> None:
        """Set the weights to zero that are zero at the minimiser of the cuts, if the tolerance allows.

        Steps mix the weights of many points, so that what is zero at all later ones may be left with a little.
        """
        w = np.where(target != 0, self.w, 0.0)
        if not self.ball.sparse or np.array_equal(w, self.w):
            return
        scores = self.operator.matvec(w)
        value = self.loss.value_and_gradient(scores)[0]
        if value <= highest and self.meets(tol, value):
            self.w, self.scores, self.objective = w, scores, value
