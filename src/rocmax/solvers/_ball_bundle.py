"""Cuts of a convex loss under a norm constraint: the lower bound, and the proximal problem for the next point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array
from rocmax.penalties import Ball
from rocmax.solvers._qp import minimize_on_simplex

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
    objective.

    Parameters
    ----------
    ball : Ball
        The norm constraint.
    n_features : int
        Number of weights.
    max_cuts : int
        Maximum number of cuts. When it is reached, the cuts with the smallest weights are merged into their weighted
        mean.
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
        """Improve the bound, and return the minimiser of the proximal problem around the best point."""
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
        """Return the minimiser of the proximal problem, the value of the model there and a lower bound."""
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
