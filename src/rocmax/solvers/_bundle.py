"""Cuts of a convex loss and the lower bound they give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocmax.solvers._qp import minimize_on_simplex

Array = NDArray[np.float64]


class Bundle:
    r"""Cuts :math:`R(w) \ge b_k + g_k \cdot w` and the optimum of the problem with ``R`` replaced by their maximum.

    That optimum is a lower bound of :math:`\min_w \frac12|w|^2 + C R(w)`. Its dual is

    .. math:: \max_{\alpha \ge 0, \sum \alpha = 1} \; C \sum_k \alpha_k b_k - \tfrac12 C^2 |\sum_k \alpha_k g_k|^2,

    with the minimiser :math:`w = -C \sum_k \alpha_k g_k`. Every feasible ``alpha`` gives a valid bound.

    Parameters
    ----------
    C : float
        Weight of the loss.
    max_cuts : int
        When full, cuts without weight are dropped first, and then the lightest ones are merged into one.
    """

    def __init__(self, C: float, max_cuts: int) -> None:
        self._C = C
        self._max_cuts = max_cuts
        self._g: list[Array] = []
        self._offset = np.empty(0)
        self._gram = np.empty((0, 0))
        self._alpha = np.empty(0)
        self.bound: float = -np.inf

    def add(self, g: Array, offset: float) -> None:
        """Add the cut ``offset + g @ w`` and improve the bound."""
        if len(self._g) >= self._max_cuts:
            self._make_room()
        k = len(self._g)
        gram = np.empty((k + 1, k + 1))
        gram[:k, :k] = self._gram
        gram[k, :k] = gram[:k, k] = [other @ g for other in self._g]
        gram[k, k] = g @ g
        self._g.append(g)
        self._gram = gram
        self._offset = np.append(self._offset, offset)
        start = np.append(self._alpha, 0.0 if k else 1.0)
        self._alpha = minimize_on_simplex(self._C * gram, self._offset, start)
        # From the minimiser, not from the Gram matrix, in which close cuts cancel.
        w = self.minimizer()
        self.bound = max(self.bound, self._C * float(self._alpha @ self._offset) - 0.5 * float(w @ w))

    def minimizer(self) -> Array:
        """Return the minimiser of the problem with the cuts in place of the loss."""
        active = np.flatnonzero(self._alpha)
        return -self._C * (self._alpha[active] @ np.array([self._g[i] for i in active]))

    def _make_room(self) -> None:
        active = np.flatnonzero(self._alpha)
        if active.size <= self._max_cuts // 2:
            # Besides those that carry the bound, the newest cuts are the likeliest to be needed again.
            keep = np.union1d(active, np.arange(len(self._g))[-self._max_cuts // 4 :])
            self._g = [self._g[i] for i in keep]
            self._offset, self._alpha = self._offset[keep], self._alpha[keep]
            self._gram = self._gram[np.ix_(keep, keep)]
            return
        by_weight = active[np.argsort(self._alpha[active])]
        light, heavy = np.split(by_weight, [active.size // 2])
        share = self._alpha[light].sum()
        merged = sum(self._alpha[i] * self._g[i] for i in light) / share
        merged_offset = self._alpha[light] @ self._offset[light] / share
        self._g = [self._g[i] for i in heavy] + [merged]
        self._offset = np.append(self._offset[heavy], merged_offset)
        self._alpha = np.append(self._alpha[heavy], share)
        stacked = np.array(self._g)
        self._gram = stacked @ stacked.T
