"""Proximal bundle method for convex losses under a norm constraint, certified by cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._support import Array, Parameters
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator, product_rounding, zero_scores
from rocmax.penalties import Ball
from rocmax.solvers.base import Callback, Origin, Progress, Result, find_zero, finish, require
from rocmax.solvers.cutting_plane import minimize_on_simplex

# Cuts of a convex loss under a norm constraint: the lower bound, and the proximal problem for the next point.


# Target range of the model value at the next point, between the bound (0) and the best objective (1), and the maximum
# number of reductions of the proximal weight.
_LOWEST_LEVEL, _HIGHEST_LEVEL, _MAX_LEVELS = 0.4, 0.9, 3
# Iteration limits of Newton's method, and its tolerance relative to the decrease predicted by the model.
_MAX_NEWTON, _MAX_EXCHANGES, _PRECISION = 8, 50, 0.02
# Smallest proximal weight, for a gradient and a constraint of unit size.
_FARTHEST = 1e-8
# Below this share of non-zero weights, selecting them is faster than a product with all weights.
_FEW = 0.1


class _Dual(NamedTuple):
    """Dual of the proximal problem at ``alpha``; ``u`` is the projection of ``v``, ``slope`` the gradient."""

    alpha: Array
    value: float
    v: Array
    u: Array
    slope: Array


class ConstrainedBundle:
    r"""Cuts :math:`R(w) \ge b_k + g_k \cdot w` and the lower bound of :math:`\min_{w \in W} R(w)`.

    For weights :math:`\alpha` on the simplex, the mixture of the cuts is a cut, and its minimum over the set is a
    lower bound,

    .. math:: \sum_k \alpha_k b_k - \mathrm{support}_W(-\sum_k \alpha_k g_k).

    The weights come from the proximal problem
    :math:`\min_{u \in W} \max_k (b_k + g_k \cdot u) + \frac{\mu}{2} |u - c|^2` around the best point ``c``. Its dual
    is a smooth concave function of the weights, with the gradient :math:`b + G u` at
    :math:`u = P_W(c - G'\alpha/\mu)`; Newton's method with the Jacobian of the projection solves it in a few
    quadratic programs over the simplex. ``mu`` is chosen so that ``u`` lies at a level between the bound and the best
    objective. At ``max_cuts``, the cuts with the smallest weights are merged into their weighted mean.
    """

    def __init__(self, ball: Ball, n_features: int, max_cuts: int) -> None:
        self._ball = ball
        self._store = np.empty((max_cuts, n_features))
        self._gram = np.empty((0, 0))
        self._offset = np.empty(0)
        self._alpha = np.empty(0)
        self._mu = 0.0
        self.bound: float = -np.inf

    def add(self, g: Array, offset: float) -> None:
        """Add the cut ``offset + g @ w``."""
        if self._offset.size >= self._store.shape[0]:
            self._make_room()
        self._store[self._offset.size] = g
        across = self._g @ g
        self._gram = np.block([[self._gram, across[:, None]], [across[None], np.full((1, 1), g @ g)]])
        self._offset = np.append(self._offset, offset)
        self._alpha = np.append(self._alpha, 0.0 if self._alpha.size else 1.0)
        self.bound = max(self.bound, offset - self._ball.support(-g))

    def improve(self, center: Array, best: float) -> Array:
        """Improve the bound, and return the minimizer of the proximal problem around the best point."""
        reach = self._ball.reach()
        # With a smaller weight, the point to project would be so far away that rounding error dominates.
        smallest = _FARTHEST * max(float(np.linalg.norm(self._g[-1])), 1e-300) / reach
        self._mu = max(self._mu or (best - self.bound) / reach**2, smallest)
        for _ in range(_MAX_LEVELS):
            u, model, bound = self._solve(center, best)
            self.bound = max(self.bound, bound)
            room = best - self.bound
            level = (model - self.bound) / room if room > 1e-14 * abs(self.bound) else 0.0
            if level <= _HIGHEST_LEVEL or self._mu <= smallest:
                break
            self._mu = max(self._mu / 4.0, smallest)
        if level < _LOWEST_LEVEL:
            self._mu *= 2.0
        return u

    def _solve(self, center: Array, best: float) -> tuple[Array, float, float]:
        """Return the minimizer of the proximal problem, the value of the model there and a lower bound."""
        now = self._dual(self._alpha, center)
        for _ in range(_MAX_NEWTON):
            short = float(now.slope.max() - now.alpha @ now.slope)
            if short <= _PRECISION * (best - now.slope.max()) or short <= 1e-14 * abs(self.bound):
                break
            some = np.flatnonzero((now.alpha > 0) | (now.slope >= now.slope.max() - 10 * short))
            new = self._climb(now, center, some)
            if new is None:
                break
            now = new
        self._alpha = now.alpha
        bound = float(now.alpha @ self._offset) - self._ball.support(-(now.alpha @ self._g))
        return now.u, float(now.slope.max()), bound

    def _climb(self, now: _Dual, center: Array, some: NDArray[np.intp]) -> _Dual | None:
        """Take a damped Newton step in the weights of some cuts; None if rounding error prevents an increase.

        The Jacobian of a projection is bounded by the identity, so with the identity the quadratic model is a lower
        bound of the dual and the last damping always increases it.
        """
        alpha, place = now.alpha[some], np.ix_(some, some)
        bent = self._ball.jacobian_gram(now.v, self._g, self._gram)[place] / self._mu
        full = self._gram[place] / self._mu
        for damping in (0.0, 0.01, 0.1, 1.0):
            hessian = bent + damping * (full - bent)
            linear = now.slope[some] + hessian @ alpha
            target = minimize_on_simplex(hessian, linear, alpha, max_steps=_MAX_EXCHANGES + 2 * alpha.size)
            target[target < 1e-15] = 0.0
            weights = np.zeros_like(now.alpha)
            weights[some] = target / target.sum()
            new = self._dual(weights, center)
            if new.value > now.value and new.value >= now.value + 0.1 * float(now.slope @ (weights - now.alpha)):
                return new
        return None

    def _dual(self, alpha: Array, center: Array) -> _Dual:
        g = alpha @ self._g
        v = center - g / self._mu
        u = self._ball.project(v)
        move = u - center
        value = float(alpha @ self._offset + g @ u + 0.5 * self._mu * (move @ move))
        active = np.flatnonzero(u)
        few = active.size < _FEW * u.size
        slope = self._offset + (self._g[:, active] @ u[active] if few else self._g @ u)
        return _Dual(alpha, value, v, u, slope)

    @property
    def _g(self) -> Array:
        return self._store[: self._offset.size]

    def _make_room(self) -> None:
        order = np.argsort(self._alpha, kind="stable")
        light, heavy = np.split(order, [self._alpha.size // 2])
        heavy = np.sort(heavy)
        share = float(self._alpha[light].sum())
        merged = self._alpha[light] @ self._g[light]
        merged_offset = float(self._alpha[light] @ self._offset[light])
        self._store[: heavy.size] = self._store[heavy]
        self._offset, self._alpha = self._offset[heavy], self._alpha[heavy]
        if share > 0:
            self._store[heavy.size] = merged / share
            self._offset = np.append(self._offset, merged_offset / share)
            self._alpha = np.append(self._alpha, share)
        self._gram = self._g @ self._g.T


# Proximal bundle method for convex losses under a norm constraint, certified by cuts.


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
    r"""Minimize :math:`R(w)` under a norm constraint for a convex loss, with a certified duality gap.

    Every subgradient gives a cut :math:`R(w') \ge b + g \cdot w'`. Each iteration computes the minimizer of the cuts
    near the best point, a small problem that does not depend on the number of rows, and takes a step towards it (one
    pass over the data). A line search along the step works on the scores, and the next cut is computed slightly beyond
    its end (another pass). The minimum of any mixture of the cuts under the constraint is a lower bound of the optimum.

    When the gap is within the tolerance, weights that are zero at the minimizer of the cuts are set to zero, if the gap
    remains within the tolerance.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when the gap is at most ``tol`` times the loss, or ``1e-3 tol`` times
        the loss of zero weights, and at most ``tol`` times the improvement over zero weights. At zero weights, the
        solver stops when the gap is at most ``tol`` times the decrease predicted by the gradient there.
    max_iter

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
        """Minimize from the projection of ``w0`` (zero if None); the result is never worse than it or zero weights."""
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
        """Set weights that are zero at the minimizer of the cuts to zero, if the gap remains within the tolerance.

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
