"""Sums over pairs of a positive and a negative in the dual of a kernel machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._typing import Array, Index


class Soft(NamedTuple):
    """Sums of the multipliers at given scores.

    ``hinge`` is the sum of ``weight * max(t, 0)``, ``total`` the sum of ``weight * a``, and ``rows`` contains
    for each example the sum over its pairs, with a positive sign for positives and a negative sign for negatives.
    """

    hinge: float
    total: float
    rows: Array


class PairSums(Protocol):
    """Interface of the pairs for the solvers of kernel machines.

    ``goal`` is the margin for a positive and 0 for a negative: the margin violation of a pair is the difference of
    ``goal - scores``.
    """

    margin: float
    n_samples: int
    goal: Array

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the sums of the multipliers at the scores, smoothed with ``width`` (0: no smoothing)."""

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a free multiplier; the slope is zero for all others."""

    def slope(self, scores: Array, width: float, rows: Index) -> Callable[[Array], Array]:
        """Return ``v -> -D v`` with ``D`` the derivative of ``soft(scores, width).rows``: positive semidefinite.

        It is restricted to rows that contain all of :meth:`moving`. Several vectors are passed as the rows of a matrix.
        """

    def anchored(self, scores: Array, width: float) -> PairSums | None:
        """Return the pairs with smoothing centered at the current multipliers; None if pairs are not stored."""


class ListedPairs:
    """Explicit list of pairs.

    Parameters
    ----------
    n_samples : int
        Number of examples.
    first, second : ndarray of int
        The positive and the negative of each pair.
    weight : ndarray, default=None
        Weight of each pair.
    margin : float
        Margin between a positive and a negative.
    base : ndarray or float
        Multipliers at which the smoothing is centered.
    """

    def __init__(
        self,
        n_samples: int,
        first: Index,
        second: Index,
        weight: Array | None = None,
        margin: float = 1.0,
        base: Array | float = 0.0,
    ) -> None:
        self.n_samples, self.margin = n_samples, margin
        self.first, self.second = first, second
        self.weight = np.ones(first.size) if weight is None else weight
        self.base = base
        self.goal = np.zeros(n_samples)
        self.goal[first] = margin

    def multipliers(self, scores: Array, width: float) -> Array:
        """Return one multiplier in [0, 1] per pair."""
        t = self._short(scores)
        return np.clip(self.base + t / width, 0.0, 1.0) if width > 0 else (t > 0).astype(np.float64)

    def anchored(self, scores: Array, width: float) -> ListedPairs:
        """Return the pairs with smoothing centered at the current multipliers."""
        base = self.multipliers(scores, width)
        return ListedPairs(self.n_samples, self.first, self.second, self.weight, self.margin, base)

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the sums of the multipliers at the scores."""
        share = self.weight * self.multipliers(scores, width)
        rows: Array = np.bincount(self.first, share, self.n_samples).astype(np.float64)
        rows -= np.bincount(self.second, share, self.n_samples)
        hinge = float(self.weight @ np.maximum(self._short(scores), 0.0))
        return Soft(hinge, float(share.sum()), rows)

    def slope(self, scores: Array, width: float, rows: Index) -> Callable[[Array], Array]:
        """Return the product with the graph Laplacian of the pairs with free multipliers."""
        matrix = self._graph(scores, width)[rows][:, rows]
        return lambda v: (matrix @ v.T).T

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a free multiplier."""
        return np.flatnonzero(self._graph(scores, width).diagonal() > 0)

    def _short(self, scores: Array) -> Array:
        return self.margin - (scores[self.first] - scores[self.second])

    def _graph(self, scores: Array, width: float) -> sparse.csr_array:
        level = self.base + self._short(scores) / width
        moving = (level > 0) & (level < 1)
        i, j, w = self.first[moving], self.second[moving], self.weight[moving] / width
        row, column = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        value = np.concatenate([w, w, -w, -w])
        return sparse.csr_array((value, (row, column)), shape=(self.n_samples, self.n_samples))


class SortedPairs:
    """All pairs of a positive and a negative, computed by sorting and prefix sums in O(N log N) time and O(N) memory.

    Parameters
    ----------
    positive : ndarray of bool
        Mask of the positive examples.
    weight : ndarray, default=None
        Weight of each example; the weight of a pair is the product of the two weights.
    margin : float
        Margin between a positive and a negative.
    """

    def __init__(self, positive: NDArray[np.bool_], weight: Array | None = None, margin: float = 1.0) -> None:
        weight = np.ones(positive.size) if weight is None else weight
        self.n_samples, self.margin = positive.size, margin
        self.weight, self._is_positive = weight, positive
        self.goal = np.where(positive, margin, 0.0)
        self.positive, self.negative = np.flatnonzero(positive), np.flatnonzero(~positive)
        self.positive_weight, self.negative_weight = weight[self.positive], weight[self.negative]

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the sums of the multipliers at the scores."""
        # The margin violation of a pair is high - low, where low includes the margin; both relative to the median
        # score.
        origin = float(np.median(scores))
        low = scores[self.positive] - self.margin - origin
        high = scores[self.negative] - origin
        up = _above(low, high, self.negative_weight, width)
        down = _above(-high, -low, self.positive_weight, width)
        rows = np.zeros(self.n_samples)
        rows[self.positive] = self.positive_weight * up.share
        rows[self.negative] = -self.negative_weight * down.share
        return Soft(float(self.positive_weight @ up.hinge), float(self.positive_weight @ up.share), rows)

    def slope(self, scores: Array, width: float, rows: Index) -> Callable[[Array], Array]:
        """Return the product with the graph Laplacian of the pairs with free multipliers."""
        at = self._is_positive[rows]
        first, second = np.flatnonzero(at), np.flatnonzero(~at)
        low, high = scores[rows[first]] - self.margin, scores[rows[second]]
        first_weight, second_weight = self.weight[rows[first]], self.weight[rows[second]]
        sums_up = _Band(low, high, second_weight, width)
        sums_down = _Band(-high, -low, first_weight, width)
        degree_up, degree_down = sums_up(np.ones(high.size)), sums_down(np.ones(low.size))

        def product(v: Array) -> Array:
            at_first, at_second = v[..., first], v[..., second]
            out = np.empty(v.shape)
            out[..., first] = (first_weight / width) * (at_first * degree_up - sums_up(at_second))
            out[..., second] = (second_weight / width) * (at_second * degree_down - sums_down(at_first))
            return out

        return product

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a free multiplier."""
        low, high = scores[self.positive] - self.margin, scores[self.negative]
        up = _Band(low, high, self.negative_weight, width)(np.ones(high.size)) > 0
        down = _Band(-high, -low, self.positive_weight, width)(np.ones(low.size)) > 0
        return np.sort(np.concatenate([self.positive[up], self.negative[down]]))

    def anchored(self, scores: Array, width: float) -> None:
        """Return None, because multipliers are not stored."""


class _Above(NamedTuple):
    share: Array
    hinge: Array


def _above(low: Array, high: Array, weight: Array, width: float) -> _Above:
    """Return, for each ``low``, weighted sums of ``clip((high - low) / width, 0, 1)`` and of ``(high - low)_+``."""
    order = np.argsort(high)
    placed, weight = high[order], weight[order]
    count, mass = _prefix(weight), _prefix(weight * placed)
    start = np.searchsorted(placed, low, side="right")
    hinge = (mass[-1] - mass[start]) - low * (count[-1] - count[start])
    if width <= 0:
        return _Above(count[-1] - count[start], hinge)
    full = np.searchsorted(placed, low + width, side="left")
    part = (mass[full] - mass[start]) - low * (count[full] - count[start])
    # Rounding errors of the prefix sums could exceed the range.
    part = np.clip(part / width, 0.0, count[full] - count[start])
    return _Above(count[-1] - count[full] + part, hinge)


class _Band:
    """Weighted sums of values over the entries of ``high`` in ``(low, low + width)``, for each entry of ``low``.

    Values are summed along their last axis.
    """

    def __init__(self, low: Array, high: Array, weight: Array, width: float) -> None:
        self._order = np.argsort(high)
        placed = high[self._order]
        self._weight = weight[self._order]
        self._start = np.searchsorted(placed, low, side="right")
        self._stop = np.maximum(np.searchsorted(placed, low + width, side="left"), self._start)

    def __call__(self, values: Array) -> Array:
        sums = _prefix(self._weight * values[..., self._order])
        return sums[..., self._stop] - sums[..., self._start]


def _prefix(values: Array) -> Array:
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums
