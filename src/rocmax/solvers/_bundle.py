"""Cuts of a convex loss, and the lower bound of the optimum that they give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array
from rocmax.solvers._qp import minimize_on_simplex
from rocmax.solvers.base import Cuts

# Number of cuts for which there is room at first.
_FEWEST_ROWS = 16


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
        Maximum number of cuts. When it is reached, cuts with zero weight are dropped first; then the cuts with the
        smallest weights are merged into one.
    """

    def __init__(self, C: float, max_cuts: int) -> None:
        self._C = C
        self._max_cuts = max_cuts
        # One row per cut; these arrays have more rows than cuts, so that most cuts are added without a copy.
        self._gradients = np.empty((0, 0))
        self._products = np.empty((0, 0))
        self._offset = np.empty(0)
        self._alpha = np.empty(0)
        self._minimizer = np.empty(0)
        self._tables: list[Array | None] = []
        self.bound: float = -np.inf

    @property
    def _g(self) -> Array:
        return self._gradients[: self._offset.size]

    @property
    def _gram(self) -> Array:
        return self._products[: self._offset.size, : self._offset.size]

    def start(self, cuts: Cuts) -> None:
        """Fill an empty bundle with valid cuts; if there are too many, with the last ones."""
        if not cuts.offset.size:
            return
        self._gradients = cuts.gradient[-self._max_cuts :].copy()
        self._offset = cuts.offset[-self._max_cuts :]
        self._tables = cuts.tables[-self._max_cuts :]
        self._products = self._g @ self._g.T
        # Start from the best single cut.
        alone = self._offset - 0.5 * self._C * np.diagonal(self._gram)
        self._improve((np.arange(alone.size) == alone.argmax()).astype(np.float64))

    def cuts(self) -> Cuts:
        """Return the active cuts and the most recent ones, in the order in which they were added."""
        keep = self._useful()
        return Cuts(self._g[keep], self._offset[keep], [self._tables[i] for i in keep])

    def add(self, g: Array, offset: float, tables: Array | None = None) -> None:
        """Add the cut ``offset + g @ w`` and improve the bound."""
        if self._offset.size >= self._max_cuts:
            self._make_room()
        k = self._offset.size
        if k == len(self._gradients):
            self._reserve(min(max(2 * k, _FEWEST_ROWS), max(k + 1, self._max_cuts)), g.size)
        self._gradients[k] = g
        self._offset = np.append(self._offset, offset)
        self._products[k, : k + 1] = self._products[: k + 1, k] = self._g @ g
        self._tables.append(tables)
        self._improve(np.append(self._alpha, 0.0 if k else 1.0))

    def _reserve(self, n_rows: int, n_features: int) -> None:
        """Make arrays for more cuts."""
        k, gradients, products = self._offset.size, self._gradients, self._products
        self._gradients, self._products = np.empty((n_rows, n_features)), np.empty((n_rows, n_rows))
        if k:
            self._gradients[:k], self._products[:k, :k] = gradients, products

    def _improve(self, start: Array) -> None:
        """Find the best mixture of the cuts from a feasible start, and update the bound."""
        self._alpha = minimize_on_simplex(self._gram, self._offset / self._C, start)
        active = np.flatnonzero(self._alpha)
        # Use the minimiser, not the Gram matrix, to avoid cancellation between similar cuts.
        self._minimizer = w = -self._C * (self._alpha[active] @ self._g[active])
        self.bound = max(self.bound, self._C * float(self._alpha @ self._offset) - 0.5 * float(w @ w))

    def minimizer(self) -> Array:
        """Return the minimiser of the problem with the cuts in place of the loss."""
        return self._minimizer.copy()

    def minimizer_error(self) -> float:
        """Return a bound on the rounding error in the norm of :meth:`minimizer`, from the cancellation of the cuts."""
        size = self._alpha @ np.sqrt(np.diagonal(self._gram))
        return float(64 * np.finfo(np.float64).eps * self._C * size)

    def value(self, w: Array) -> float:
        """Return the maximum of the cuts at ``w``."""
        return float(np.max(self._offset + self._g @ w))

    def _useful(self) -> NDArray[np.intp]:
        # Besides the active cuts, the most recent ones are the most likely to become active again.
        return np.union1d(np.flatnonzero(self._alpha), np.arange(self._offset.size)[-self._max_cuts // 4 :])

    def _make_room(self) -> None:
        active = np.flatnonzero(self._alpha)
        if active.size <= self._max_cuts // 2:
            keep = self._useful()
            self._gradients, self._products = self._g[keep], self._gram[np.ix_(keep, keep)]
            self._tables = [self._tables[i] for i in keep]
            self._offset, self._alpha = self._offset[keep], self._alpha[keep]
            return
        by_weight = active[np.argsort(self._alpha[active])]
        light, heavy = np.split(by_weight, [active.size // 2])
        share = self._alpha[light].sum()
        merged = self._alpha[light] @ self._g[light] / share
        merged_offset = self._alpha[light] @ self._offset[light] / share
        merged_tables = _mixed([self._tables[i] for i in light], self._alpha[light] / share)
        self._gradients = np.vstack([self._g[heavy], merged])
        self._tables = [self._tables[i] for i in heavy] + [merged_tables]
        self._offset = np.append(self._offset[heavy], merged_offset)
        self._alpha = np.append(self._alpha[heavy], share)
        self._products = self._g @ self._g.T


def _mixed(tables: list[Array | None], share: Array) -> Array | None:
    """Return the tables of a mixture of cuts."""
    parts = [part * (alpha, 1.0, 1.0) for part, alpha in zip(tables, share, strict=True) if part is not None]
    return np.concatenate(parts) if parts else None
