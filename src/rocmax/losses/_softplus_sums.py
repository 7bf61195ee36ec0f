r"""Sums over pairs of the softplus function :math:`S(x) = \log(1 + e^x)` and its derivatives.

Two methods compute :math:`\sum_j w_j S^{(k)}(z_j - s_i)`. For few pairs, all pairs are evaluated in blocks. Otherwise
the scores are assigned to cells of a fine grid, and the function is expanded about the differences of their centres:

.. math:: S^{(k)}(c_l - c_k + h(u_j - u_i)) = \sum_{q < p} \frac{h^q}{q!} S^{(k+q)}(c_l - c_k) (u_j - u_i)^q + r,
          \qquad |u| \le 1/2.

The powers separate into moments of the sources in each cell and a polynomial for the targets in each cell, connected by
convolutions over the grid. The cost is O(N + G log G) for ``G`` cells. The remainder is at most
:math:`h^p \max|S^{(k+p)}| / p!`, which is below 2e-13 for 5 terms and 128 cells per unit and below 3e-11 for 3 terms
and 1,024 cells per unit, for :math:`k \le 2`. The second is faster for many rows.
"""

from __future__ import annotations

from math import comb, factorial
from typing import Any

import numpy as np

from rocmax._typing import Array, Index
from rocmax.losses._sorted import prefix

# Number of terms of the expansion and number of cells per unit, for few and for many rows.
_COARSE, _FINE = (5, 128), (3, 1024)
# The second is used from this number of rows per cell of the first.
_ROWS_PER_CELL = 100
# Beyond this difference, S is 0 or x and its derivatives are 0 or 1 up to rounding error.
_FAR = 40.0
# Pairs that are evaluated at a time.
_BLOCK = 1 << 18
# Evaluating a pair costs about as much as this fraction of a cell, and a grid has a fixed cost in pairs.
_PAIRS_PER_CELL, _PAIRS_OF_GRID = 40, 50_000
# A larger grid would take too much memory.
_MOST_CELLS = 1 << 21


def softplus(order: int, x: Array) -> Array:
    """Return the derivative of the given order of ``log(1 + exp(x))``."""
    small = np.exp(-np.abs(x))
    if order == 0:
        return np.maximum(x, 0.0) + np.log1p(small)
    q: Array = np.where(x >= 0, 1.0, small) / (1.0 + small)
    if order == 1:
        return q
    if order == 2:
        # Not q (1 - q), which has no correct digits for large x.
        return small / (1.0 + small) ** 2
    return np.asarray(_derivative(order - 1)(q))


def _derivative(order: int) -> np.poly1d:
    """Return a derivative of the sigmoid function as a polynomial in its value."""
    result = np.poly1d([1.0, 0.0])
    for _ in range(order):
        result = result.deriv() * np.poly1d([-1.0, 1.0, 0.0])
    return result


class SoftplusSums:
    """Sums over pairs of positives with scores ``pos`` and negatives with scores ``neg``.

    Parameters
    ----------
    pos, neg : ndarray
        Scores.
    pos_weight, neg_weight : ndarray
        Weights.
    """

    def __init__(self, pos: Array, neg: Array, pos_weight: Array, neg_weight: Array) -> None:
        self._pos, self._neg, self._pos_weight, self._neg_weight = pos, neg, pos_weight, neg_weight
        self._grid: _Grid | None = None
        n_pairs = pos.size * neg.size
        if n_pairs <= _PAIRS_OF_GRID:
            return
        low, high = _range(pos, neg)
        if high - low > 100 * _FAR:
            pos, neg = _without_gaps(pos, neg)
            low, high = _range(pos, neg)
        n_cells = (high - low) * _COARSE[1]
        if n_cells <= min(_MOST_CELLS, n_pairs / _PAIRS_PER_CELL):
            terms, density = _FINE if _ROWS_PER_CELL * n_cells < pos.size + neg.size else _COARSE
            self._grid = _Grid(pos, neg, pos_weight, neg_weight, low, high, terms, density)

    def of_positives(self, order: int) -> Array:
        """Return the sum over the negatives for each positive."""
        if self._grid is not None:
            sums = self._grid.of_positives(order)
            return sums + self._removed_gaps() if order == 0 else sums
        return _direct(order, self._pos, self._neg, self._neg_weight, 1.0)

    def of_negatives(self, order: int) -> Array:
        """Return the sum over the positives for each negative; ``order`` is at least 1."""
        if self._grid is not None:
            return self._grid.of_negatives(order)
        return _direct(order, self._neg, self._pos, self._pos_weight, -1.0)

    def _removed_gaps(self) -> Array | float:
        """Return what the shorter gaps have removed from sums of S, which is linear in the gaps it contains."""
        grid = self._grid
        assert grid is not None
        if grid.pos is self._pos:
            return 0.0
        removed_pos, removed_neg = self._pos - grid.pos, self._neg - grid.neg
        order = np.argsort(-removed_neg)
        reached = np.searchsorted(-removed_neg[order], -removed_pos)
        weight = self._neg_weight[order]
        return prefix(weight * removed_neg[order])[reached] - removed_pos * prefix(weight)[reached]


class _Grid:
    """Positives and negatives on the cells of a grid with ``density`` cells per unit."""

    def __init__(
        self,
        pos: Array,
        neg: Array,
        pos_weight: Array,
        neg_weight: Array,
        low: float,
        high: float,
        terms: int,
        density: int,
    ) -> None:
        self.pos, self.neg = pos, neg
        self._terms, self._width, self._size = terms, 1.0 / density, int((high - low) * density) + 1
        self._length = 1 << (2 * self._size - 1).bit_length()
        self._pos_place, self._neg_place = (self._place(scores, low, density) for scores in (pos, neg))
        self._pos_moments = self._moments(self._pos_place, pos_weight)
        self._neg_moments = self._moments(self._neg_place, neg_weight)

    def of_positives(self, order: int) -> Array:
        return _polynomial(self._local(order, self._neg_moments, 1.0), *self._pos_place)

    def of_negatives(self, order: int) -> Array:
        return _polynomial(self._local(order, self._pos_moments, -1.0), *self._neg_place)

    def _place(self, scores: Array, low: float, density: int) -> tuple[Index, Array]:
        """Return the cell of each score, and its position relative to the centre of the cell in widths of a cell."""
        at = (scores - low) * density
        cell = at.astype(np.intp)
        np.minimum(cell, self._size - 1, out=cell)
        at -= cell
        at -= 0.5
        return cell, at

    def _moments(self, place: tuple[Index, Array], weight: Array) -> list[Any]:
        """Return the transforms of the moments of the sources in each cell."""
        cell, u = place
        found = []
        for power in range(self._terms):
            weight = weight * u if power else weight
            found.append(np.fft.rfft(np.bincount(cell, weight, minlength=self._size), self._length))
        return found

    def _local(self, order: int, moments: list[Any], sign: float) -> Array:
        """Return the coefficients of a polynomial in ``u`` for each cell of the targets.

        ``sign`` is that of the source in ``z_j - s_i``.
        """
        # Differences of a source and a target in cells; negative ones are at the end, as the transform requires.
        distance = np.arange(self._length, dtype=np.float64)
        distance[self._length // 2 :] -= self._length
        unit = sign * self._width
        x = unit * distance
        kernels = [np.fft.rfft(softplus(order + q, x) * (unit**q / factorial(q))).conj() for q in range(self._terms)]
        sums = []
        for b in range(self._terms):
            terms = (comb(a + b, a) * kernels[a + b] * moments[a] for a in range(self._terms - b))
            sums.append((-1.0) ** b * np.fft.irfft(sum(terms), self._length)[: self._size])
        return np.array(sums)


def _polynomial(coefficients: Array, cell: Index, u: Array) -> Array:
    found: Array = coefficients[-1][cell]
    for row in coefficients[-2::-1]:
        found *= u
        found += row[cell]
    return found


def _direct(order: int, targets: Array, sources: Array, weight: Array, sign: float) -> Array:
    """Return ``sum_j weight_j S^(order)(sign * (source_j - target_i))`` for each target, pair by pair."""
    found = np.empty(targets.size)
    rows = max(1, _BLOCK // sources.size)
    for start in range(0, targets.size, rows):
        block = slice(start, start + rows)
        found[block] = softplus(order, sign * (sources - targets[block, None])) @ weight
    return found


def _range(one: Array, two: Array) -> tuple[float, float]:
    return float(min(one.min(), two.min())), float(max(one.max(), two.max()))


def _without_gaps(one: Array, two: Array) -> tuple[Array, Array]:
    """Shorten gaps between scores to ``_FAR``."""
    both = np.concatenate([one, two])
    order = np.argsort(both)
    both[order] = prefix(np.minimum(np.diff(both[order]), _FAR))
    return both[: one.size], both[one.size :]
