"""Proximal bundle method for convex losses under a norm constraint, certified by cuts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocmax._params import Parameters
from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator, product_rounding, zero_scores
from rocmax.penalties import Ball
from rocmax.solvers._ball_bundle import ConstrainedBundle
from rocmax.solvers._zero_weights import Origin
from rocmax.solvers.base import Callback, Progress, Result, finish, require
from rocmax.solvers.line_search import find_zero

# Lower limit of the loss in the stopping rule, relative to the loss of zero weights: it can be 0 on separable data.
FLOOR = 1e-3
# Distance between the best point and the next cut, relative to the distance from the best point to the end of the step.
_BEYOND = 0.05
# Number of iterations without progress after which the run ends.
_STUCK = 60
# Maximum number of weights in all cuts together, and limits of the number of cuts.
_CUT_WEIGHTS, _FEWEST_CUTS, _MOST_CUTS = 4_000_000, 25, 100


@dataclass(frozen=True)
class ProximalBundle(Parameters):
    r"""Minimise :math:`R(w)` under a norm constraint for a convex loss, with a certified duality gap.

    Every subgradient gives a cut :math:`R(w') \ge b + g \cdot w'`. Each iteration computes the minimiser of the cuts
    near the best point, a small problem that does not depend on the number of rows, and takes a step towards it (one
    pass over the data). A line search along the step works on the scores, and the next cut is computed slightly beyond
    its end (another pass). The minimum of any mixture of the cuts under the constraint is a lower bound of the optimum.

    When the gap is within the tolerance, weights that are zero at the minimiser of the cuts are set to zero, if the gap
    remains within the tolerance.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when the gap is at most ``tol`` times the loss, or ``1e-3 tol`` times
        the loss of zero weights, and at most ``tol`` times the improvement over zero weights. At zero weights, the
        solver stops when the gap is at most ``tol`` times the decrease predicted by the gradient there.
    max_iter : int, default=500
        Maximum number of iterations.

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
        """Minimise from the projection of ``w0`` (zero if None); the result is never worse than it or zero weights."""
        require("ProximalBundle", loss, penalty, (Ball,), convex=True)
        run = _BundleSteps(CountingOperator(operator), loss, penalty, w0)
        trace: list[Progress] = []
        smallest_gap, unmoved, highest = np.inf, 0, run.rise
        while True:
            run.cut()
            target = run.bundle.improve(run.w, run.rise)
            converged = run.meets(self.tol, run.rise)
            if converged:
                run.truncate(target, self.tol, highest)
            highest, gap = run.rise, run.rise - run.bundle.bound
            base = run.origin.value
            trace.append(Progress(base + run.rise, base + run.bundle.bound, run.operator.passes))
            if callback is not None:
                callback(trace[-1])
            unmoved = unmoved + 1 if gap > (1 - 1e-3) * smallest_gap else 0
            smallest_gap = min(gap, smallest_gap)
            if converged or unmoved >= _STUCK or len(trace) >= self.max_iter:
                break
            run.step(target)
        unit = run.unit(run.w, run.rise)
        rounding = run.origin.error(gap, base + run.rise, run.scores)
        return finish(
            penalty.inside(run.w), base + run.rise, gap, unit, converged, trace, "ProximalBundle", self.tol, rounding
        )


class _BundleSteps:
    """State of a run: the best point, the cuts and the coefficients of the next cut.

    ``rise`` is the loss of the best point minus that of zero weights; ``value`` is the same for the next cut.
    """

    def __init__(self, operator: CountingOperator, loss: BoundLoss, ball: Ball, w0: Array | None) -> None:
        n_features = operator.shape[1]
        self.operator, self.loss, self.ball = operator, loss, ball
        max_cuts = int(np.clip(_CUT_WEIGHTS // n_features, _FEWEST_CUTS, _MOST_CUTS))
        self.bundle = ConstrainedBundle(ball, n_features, max_cuts)
        self.w, self.scores = np.zeros(n_features), zero_scores(operator)
        self.origin = Origin(operator, loss)
        self.rise, self.coefficients = 0.0, self.origin.coefficients
        self.value, self.at = self.rise, self.scores
        if w0 is not None and np.any(w0):
            w = ball.project(np.array(w0, dtype=np.float64))
            scores = operator.matvec(w)
            value, coefficients = self._evaluated(scores)
            if value < self.rise:
                self.w, self.scores, self.rise = w, scores, value
                self.value, self.at, self.coefficients = value, scores, coefficients

    def unit(self, w: Array, rise: float) -> float:
        """Return the scale of the tolerance: the loss, or the possible decrease from zero weights if it is smaller."""
        gain = -self.bundle.bound if w.any() else self.ball.support(-self.origin.slope)
        return min(max(self.origin.value + rise, FLOOR * self.origin.value), gain)

    def meets(self, tol: float, rise: float, w: Array | None = None) -> bool:
        """Return whether the gap of a point with this rise of the loss is within the tolerance."""
        w = self.w if w is None else w
        rounding = self.origin.rounding(-self.bundle.bound) if w.any() else 0.0
        return rise - self.bundle.bound <= max(tol * self.unit(w, rise), rounding)

    def _evaluated(self, scores: Array) -> tuple[float, Array]:
        value, coefficients = self.loss.value_and_gradient(scores)
        return self.origin.rise(value, coefficients, scores), coefficients

    def cut(self) -> None:
        """Add a cut from the current coefficients."""
        gradient = self.operator.rmatvec(self.coefficients) if self.at.any() else self.origin.slope
        offset = self.value - float(self.coefficients @ self.at) - product_rounding(self.coefficients, self.at)
        # At zero weights, a cut can exceed the loss only by rounding error.
        self.bundle.add(gradient, min(offset, 0.0))

    def step(self, target: Array) -> None:
        """Take a step from the best point towards the target, and compute the next cut slightly beyond it."""
        step = target - self.w
        along = self.operator.matvec(step)
        start = self.scores

        def slope(t: float) -> float:
            self.value, self.coefficients = self._evaluated(start + t * along)
            return float(self.coefficients @ along)

        first = slope(0.0)
        if not self.coefficients.any():
            self.at = start  # flat: the next cut certifies a minimum
            return
        t = find_zero(slope, first, rtol=0.1, largest=1.0, max_evals=25) if first < 0 else 0.0
        if t > 0 and self.value < self.rise:
            self.w, self.scores, self.rise = self.w + t * step, start + t * along, self.value
        else:
            t = 0.0
        self.at = start + (t + _BEYOND * (1.0 - t)) * along
        self.value, self.coefficients = self._evaluated(self.at)

    def truncate(self, target: Array, tol: float, highest: float) -> None:
        """Set weights that are zero at the minimiser of the cuts to zero, if the gap remains within the tolerance.

        The best point is a mixture of many points, so a weight that is zero at all recent points may still be small
        and non-zero.
        """
        w = np.where(target != 0, self.w, 0.0)
        if not self.ball.sparse or np.array_equal(w, self.w):
            return
        scores = self.operator.matvec(w)
        rise = self._evaluated(scores)[0]
        if rise <= highest and self.meets(tol, rise, w):
            self.w, self.scores, self.rise = w, scores, rise
