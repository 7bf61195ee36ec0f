r"""Losses on pairs in a window with a smooth or squared charge: surrogates for trees and linear models.

Two methods compute :math:`\sum_j w_j S^{(k)}(z_j - s_i)`. For few pairs, all pairs are evaluated in blocks. Otherwise
the scores are assigned to cells of a fine grid, and the function is expanded about the differences of their centers:

.. math:: S^{(k)}(c_l - c_k + h(u_j - u_i)) = \sum_{q < p} \frac{h^q}{q!} S^{(k+q)}(c_l - c_k) (u_j - u_i)^q + r,
          \qquad |u| \le 1/2.

The powers separate into moments of the sources in each cell and a polynomial for the targets in each cell, connected by
convolutions over the grid. The cost is O(N + G log G) for ``G`` cells. The remainder is at most
:math:`h^p \max|S^{(k+p)}| / p!`, which is below 2e-13 for 5 terms and 128 cells per unit and below 3e-11 for 3 terms
and 1,024 cells per unit, for :math:`k \le 2`. The second is faster for many rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rocmax._support import Array, Index
from rocmax._window import check_corner, window_end
from rocmax.losses.base import BoundLoss, Evaluation, Loss, Pairs, scatter
from rocmax.losses.ranks import (
    LowestPositives,
    Pieces,
    Selected,
    charged,
    cut,
    no_pairs,
    prefix,
    sample_bands,
    shifted,
    soft_rank,
    systematic,
)

# Sums over pairs of the softplus function :math:`S(x) = \log(1 + e^x)` and its derivatives.


# Number of terms of the expansion and number of cells per unit, for few and for many rows.
_COARSE, _FINE = (5, 128), (3, 1024)
# The second is used from this number of rows per cell of the first.
_ROWS_PER_CELL = 100
# Beyond this difference, S is 0 or x and its derivatives are 0 or 1 up to rounding error.
_FAR = 40.0
# Pairs and rows that are processed at a time.
_PAIRS, _ROWS = 1 << 18, 1 << 15
# Evaluating a pair costs about as much as this fraction of a cell, and a grid has a fixed cost in pairs.
_PAIRS_PER_CELL, _PAIRS_OF_GRID = 40, 50_000
# Kernels up to this length are kept for the next call, about 20 MB in total.
_KEPT_LENGTH = 1 << 15
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


@cache
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
        self._terms, self._size = terms, int((high - low) * density) + 1
        self._low, self._density = low, density
        self._length = 1 << (2 * self._size - 1).bit_length()
        self._pos_moments = self._moments(pos, pos_weight)
        self._neg_moments = self._moments(neg, neg_weight)

    def of_positives(self, order: int) -> Array:
        return self._evaluated(self._local(order, self._neg_moments, 1.0), self.pos)

    def of_negatives(self, order: int) -> Array:
        return self._evaluated(self._local(order, self._pos_moments, -1.0), self.neg)

    def _place(self, scores: Array) -> tuple[Index, Array]:
        """Return the cell of each score, and its position relative to the center of the cell in widths of a cell."""
        at = (scores - self._low) * self._density
        cell = at.astype(np.intp)
        np.minimum(cell, self._size - 1, out=cell)
        at -= cell
        at -= 0.5
        return cell, at

    def _moments(self, scores: Array, weight: Array) -> list[Any]:
        """Return the transforms of the moments of the sources in each cell."""
        found = np.zeros((self._terms, self._size))
        for rows in blocks(scores.size):
            cell, u = self._place(scores[rows])
            part = weight[rows]
            for power in range(self._terms):
                part = part * u if power else part
                found[power] += np.bincount(cell, part, minlength=self._size)
        return [np.fft.rfft(row, self._length) for row in found]

    def _evaluated(self, coefficients: Array, scores: Array) -> Array:
        """Return the polynomials of the cells at the scores."""
        found = np.empty(scores.size)
        for rows in blocks(scores.size):
            cell, u = self._place(scores[rows])
            part = coefficients[-1].take(cell)
            for row in coefficients[-2::-1]:
                part *= u
                part += row.take(cell)
            found[rows] = part
        return found

    def _local(self, order: int, moments: list[Any], sign: float) -> Array:
        """Return the coefficients of a polynomial in ``u`` for each cell of the targets.

        ``sign`` is that of the source in ``z_j - s_i``.
        """
        kernels = _kernels(order, sign, self._length, self._terms, self._density)
        sums = []
        for b in range(self._terms):
            terms = (comb(a + b, a) * kernels[a + b] * moments[a] for a in range(self._terms - b))
            sums.append((-1.0) ** b * np.fft.irfft(sum(terms), self._length)[: self._size])
        return np.array(sums)


def _kernels(order: int, sign: float, length: int, terms: int, density: int) -> list[Any]:
    """Return the conjugate transforms of the terms of the expansion, as functions of the distance in cells."""
    make = _kept_kernels if length <= _KEPT_LENGTH else _new_kernels
    return make(order, sign, length, terms, density)


def _new_kernels(order: int, sign: float, length: int, terms: int, density: int) -> list[Any]:
    # Differences of a source and a target in cells; negative ones are at the end, as the transform requires.
    distance = np.arange(length, dtype=np.float64)
    distance[length // 2 :] -= length
    unit = sign / density
    x = unit * distance
    return [np.fft.rfft(softplus(order + q, x) * (unit**q / factorial(q))).conj() for q in range(terms)]


# The length is a power of two, so the rounds of a fit need few different ones.
_kept_kernels = lru_cache(maxsize=16)(_new_kernels)


def blocks(size: int) -> Iterator[slice]:
    """Split rows into blocks whose arrays fit into the cache."""
    return (slice(start, start + _ROWS) for start in range(0, size, _ROWS))


def _direct(order: int, targets: Array, sources: Array, weight: Array, sign: float) -> Array:
    """Return ``sum_j weight_j S^(order)(sign * (source_j - target_i))`` for each target, pair by pair."""
    found = np.empty(targets.size)
    rows = max(1, _PAIRS // sources.size)
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


# Losses on pairs in a window with a smooth or squared charge: surrogates for boosted trees and linear models.


# Order of the derivative of the softplus function that is the charge of a pair.
_SMOOTH = {"logistic": 0, "sigmoid": 1}
_SURROGATES = (*_SMOOTH, "squared_hinge")
# Least curvature of a row, relative to the mean per unit of weight, and in absolute terms.
_LEAST, _TINY = 1e-10, 1e-100
# Difference of scores beyond which the logistic function has hardly any curvature.
_FLAT = 10.0
# From this number of rows on, ranks of a soft tail are computed from rounded scores, if they spread over few units.
_MANY, _RANK_DENSITY, _RANK_SPAN = 50_000, 1 << 14, 64.0


@dataclass(frozen=True)
class WindowPairs(Loss):
    r"""Smooth or squared loss on the pairs of the positives and the negatives with the highest scores.

    .. math:: \frac{1}{m V} \sum_i \sum_j v_j \, \varphi\bigl((s_i - z_j)/\text{scale}\bigr),
              \qquad V = \sum_j v_j

    The weight :math:`v_j` of a negative depends on its rank from the top. By default it is 1 for the ranks in
    :math:`(a, b]` and 0 elsewhere, ``a = n * min_fpr`` and ``b = n * max_fpr``. With ``soft_tail=True`` it is
    :math:`\min(1, b/\text{rank})`, which also charges the negatives below the window, less and less. Ranks are real
    numbers: a row of weight ``v`` covers an interval of length ``v`` and has the mean weight on it, and ties share
    their mean.

    With ``min_tpr > 0`` the positives have weights, too: 1 for the ``(1 - min_tpr) * m`` positives with the lowest
    scores, and 0 for the others or, with a soft tail, a weight that falls with the rank from the lowest score. The sum
    of these weights replaces ``m``.

    Parameters
    ----------
    surrogate : {"sigmoid", "logistic", "squared_hinge"}, default="sigmoid"
        The charge of a pair with the difference ``t``:

        - "sigmoid": :math:`1/(1 + e^t)`, bounded and not convex.
        - "logistic": :math:`\log(1 + e^{-t})`, convex.
        - "squared_hinge": :math:`(1 - t)_+^2`, convex.
    min_fpr, max_fpr
    soft_tail : bool, default=False
        Whether negatives beyond the window have a weight that falls with their rank. Requires ``min_fpr=0``.
    scale : float, default=1.0
        Unit of the scores.
    min_tpr

    Notes
    -----
    The loss is continuous, also where two negatives exchange their ranks. Between such points the weights are constant
    and the gradient is exact; at a tie it is a subgradient or a generalized gradient. For a convex surrogate and
    ``min_fpr=0`` the loss is convex: the weights do not increase with the rank, so it is a maximum over assignments of
    the weights to the negatives. With ``min_fpr > 0`` it is a difference of two such losses, which
    ``bind(y).split()`` returns.

    The squared hinge is exact in O(N log N), by sorting and prefix sums. No such form exists for the other two. For few
    pairs their sums are evaluated pair by pair; otherwise by expansions on a grid with 128 cells per unit of the
    scaled scores or more, in O(N log N + G log G) for ``G`` cells. The error of the mean over pairs is below 1e-10.
    Gaps between scores are shortened where this does not change the sums. Only if the scores spread over more than
    16,000 units without gaps, the pairs are evaluated one by one, in O(mn) time and O(N) memory.

    For a soft tail of the sigmoid and 50,000 rows or more, ``gradient_and_curvature``, which is for boosting, does not
    sort the rows: negatives in the same interval of length ``scale / 16384`` count as tied, unless the scores spread
    over more than ``64 * scale``. The relative error of a weight :math:`v_j` is at most the share of the negatives in
    its interval among those up to it; weights in the window are exact. ``value_and_gradient`` is not rounded.

    The diagonal curvature is that of the Hessian with constant weights :math:`v_j`, for the two convex surrogates. For
    the sigmoid it is the absolute gradient divided by ``scale``, an upper bound because
    :math:`|\varphi''| \le |\varphi'|`: a Newton step of a leaf is then at most ``scale``.

    References
    ----------
    Kar, Narasimhan and Jain, "Online and stochastic gradient methods for non-decomposable loss functions", NIPS 2014,
    Eq. 5, for the convex surrogates on a window that starts at 0.

    Examples
    --------
    >>> from rocmax.losses import WindowPairs
    >>> bound = WindowPairs("squared_hinge", max_fpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])[0]
    2.625
    """

    surrogate: str = "sigmoid"
    min_fpr: float = 0.0
    max_fpr: float = 0.1
    soft_tail: bool = False
    scale: float = 1.0
    min_tpr: float = 0.0

    def __post_init__(self) -> None:
        if self.surrogate not in _SURROGATES:
            raise ValueError(f"surrogate must be one of {', '.join(_SURROGATES)}; got {self.surrogate!r}")
        check_corner(self.min_fpr, self.max_fpr, self.min_tpr)
        if self.soft_tail and self.min_fpr != 0:
            raise ValueError(f"min_fpr must be 0 for a soft tail; got {self.min_fpr!r}")
        if not (0 < self.scale < np.inf):
            raise ValueError(f"scale must be a finite number > 0; got {self.scale!r}")

    def sum_scale(self, m: float, n: float) -> float:
        """Return the total weight of the pairs."""
        b = window_end(n, self.max_fpr)
        if self.min_tpr > 0:
            m = float(soft_rank(np.array(m), (1.0 - self.min_tpr) * m)) if self.soft_tail else (1.0 - self.min_tpr) * m
        return m * (float(soft_rank(np.array(n), b)) if self.soft_tail else b - window_end(n, self.min_fpr))

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundWindowPairs:
        """Bind the loss to labels and weights."""
        return BoundWindowPairs(y, sample_weight, self)


class _Sums(NamedTuple):
    """Sums over the pairs of a sample, without the divisor.

    ``value`` has one entry per positive; the slopes and curvatures one per positive and one per piece in the window.
    The positives are those in ``selected``.
    """

    selected: Selected
    value: Array | None
    pos_slope: Array
    neg_slope: Array
    pos_bend: Array | None
    neg_bend: Array | None


class BoundWindowPairs(BoundLoss):
    """:class:`WindowPairs` bound to labels."""

    has_gradient_and_curvature = True

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None, loss: WindowPairs) -> None:
        super().__init__(y, sample_weight)
        self.loss = loss
        self.a, self.b = window_end(self.n, loss.min_fpr), window_end(self.n, loss.max_fpr)
        self.lowest = LowestPositives(self, loss.min_tpr, loss.soft_tail)
        self.norm = self.m * (loss.sum_scale(self.m, self.n) / self.m)
        self._uniform = bool((self.weight == 1.0).all())
        many = self.n_samples >= _MANY and bool(self.weight.all())
        self._has_cells = many and not self.lowest.is_part and loss.soft_tail and loss.surrogate == "sigmoid"
        self.has_curvature = self.has_split = loss.surrogate != "sigmoid"
        self.convex = loss.surrogate != "sigmoid" and self.a == 0
        self.has_kinks = self.convex and not loss.soft_tail and (self.b < self.n or self.lowest.is_part)

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient; the weights of the negatives are constant between two ties."""
        return self.minorant(scores, 0.0)

    def at(self, scores: Array) -> Evaluation:
        """Return an object that computes several bounds of a convex loss at the same scores."""
        return PairsEvaluation(self, scores)

    def minorant(self, scores: ArrayLike, width: float) -> tuple[float, Array]:
        """Return an affine minorant in which the selection of the rows is smoothed over ``width``.

        Any shares of the negatives in [0, 1] with the sum ``b`` give a valid minorant, and so do shares of positives.
        """
        pieces, sums = self._sums(scores, value=True, width=width if self.has_kinks else 0.0)
        assert sums.value is not None
        value = float(sums.selected.weight @ sums.value) / self.norm
        return value, self._rows(pieces, sums.selected, -sums.pos_slope, sums.neg_slope, self.loss.scale)

    def gradient_and_curvature(self, scores: ArrayLike) -> tuple[Array, Array]:
        """Return the gradient, and the diagonal of the Hessian or an upper bound of it.

        For a soft tail of the sigmoid and many rows, ranks are computed from rounded scores, see :class:`WindowPairs`.
        """
        s = self._checked(scores)
        if self._has_cells and np.ptp(s) < _RANK_SPAN * self.loss.scale:
            gradient = self._gradient_by_cells(s)
        else:
            pieces, sums = self._sums(s, bend=True)
            gradient = self._rows(pieces, sums.selected, -sums.pos_slope, sums.neg_slope, self.loss.scale)
            if sums.pos_bend is not None and sums.neg_bend is not None:
                curvature = self._rows(pieces, sums.selected, sums.pos_bend, sums.neg_bend, self.loss.scale**2)
                return gradient, self._at_least(curvature)
        return gradient, self._at_least(np.abs(gradient) / self.loss.scale)

    def _at_least(self, curvature: Array) -> Array:
        """Return the curvature with a positive lower limit for rows of non-zero weight."""
        least = max(_LEAST * float(curvature.sum()) / (self.m + self.n), _TINY)
        return np.maximum(curvature, least if self._uniform else least * self.weight, out=curvature)

    def _gradient_by_cells(self, s: Array) -> Array:
        """Return the gradient of the sigmoid with a soft tail, without sorting: negatives in a cell count as tied."""
        z = s / self.loss.scale
        # All rows are in the same arrays, because selecting the negatives would take longer than the sums.
        weight = self._tail_weights(z)
        sums = SoftplusSums(z[self.positive], z, self.positive_weight, weight)
        norm = self.norm * self.loss.scale
        gradient = sums.of_negatives(2)
        gradient *= weight
        gradient /= norm
        gradient[self.positive] = self.positive_weight * sums.of_positives(2) / -norm
        return gradient

    def _tail_weights(self, z: Array) -> Array:
        """Return the weights of the negatives in a soft tail, 0 for positives, if those in a cell count as tied."""
        low, high = float(z.min()), float(z.max())
        n_cells = int((high - low) * _RANK_DENSITY) + 1
        weight: Array = self.weight * self.is_negative
        cell = np.empty(z.size, dtype=np.int32)
        for rows in blocks(z.size):
            cell[rows] = (z[rows] - low) * _RANK_DENSITY
        held: Array = np.bincount(cell, weight, minlength=n_cells).astype(np.float64, copy=False)
        # Cells in ascending order of the scores, ranks from the top.
        share = -np.diff(soft_rank(prefix(held[::-1])[::-1], self.b))
        share = np.divide(share, held, out=np.zeros(n_cells), where=held > 0)
        for rows in blocks(z.size):
            weight[rows] *= share.take(cell[rows])
        return weight

    def split(self) -> tuple[BoundLoss, BoundLoss]:
        """Return the parts of the sum on the windows [0, b] and [0, a]."""
        if self.convex or not self.has_split:
            return super().split()
        parts = [
            BoundWindowPairs(~self.is_negative, self.weight, replace(self.loss, min_fpr=0.0, max_fpr=rate))
            for rate in (self.loss.max_fpr, self.loss.min_fpr)
        ]
        for part in parts:
            part.norm = self.norm
        return parts[0], parts[1]

    def curvature(self, scores: ArrayLike, count: int | None, width: float = 0.0) -> Pairs:
        """Sample pairs by their second derivative, and pairs of rows of one class at the end of its selection.

        The selection of negatives has a kink where the score equals that of rank ``b``; its curvature is the density of
        negatives there times their covariance, which is half the mean outer product of their differences. The selection
        of positives with ``min_tpr > 0`` has the same kink.
        """
        if count is None or not self.has_curvature:
            return super().curvature(scores, count, width)
        s = self._checked(scores)
        width = width if self.has_kinks else 0.0
        selected, pieces = self.lowest.select(s, width), self._pieces(s, width)
        pos = s[selected.rows]
        inside = prefix(pieces.window_row_weights())
        low, high = _bend_range(self.loss.surrogate)
        bands = [np.searchsorted(-pieces.row_score, self.loss.scale * end - pos, side="left") for end in (low, high)]
        i, j, mass = sample_bands(selected.weight, bands[0], bands[1], inside, count)
        unit = self.norm * self.loss.scale**2 * max(i.size, 1)
        bend = _second_derivative(self.loss.surrogate, (pieces.row_score[j] - pos[i]) / self.loss.scale)
        parts = [Pairs(selected.rows[i], pieces.rows[j], bend * (mass / unit))]
        if self.has_kinks and self.b < self.n:
            end = float(pieces.score[pieces.stop - 1])
            slope = selected.weight @ _slope(self.loss.surrogate, (end - pos) / self.loss.scale)
            parts.append(self._selection_pairs(s, self.negative, end, float(slope), width, max(count // 2, 1)))
        if self.has_kinks and self.lowest.is_part:
            end = float(pos.max())
            slope = pieces.weight @ _slope(self.loss.surrogate, (pieces.score - end) / self.loss.scale)
            parts.append(self._selection_pairs(s, self.positive, end, float(slope), width, max(count // 2, 1)))
        return Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _selection_pairs(self, s: Array, rows: Index, end: float, slope: float, width: float, count: int) -> Pairs:
        """Sample pairs of rows of one class close to the end of its selection.

        ``slope`` is the rate at which the loss of a row at the end changes with its score, without the divisor.
        """
        spread = float(np.sqrt(s[self.positive].var() + s[self.negative].var()))
        half = max(0.2 * spread, width / 2)
        band = rows[np.abs(s[rows] - end) < half]
        if band.size < 2:
            return no_pairs()
        band = band[np.argsort(s[band])]  # the sample must not depend on the order of the rows
        line = prefix(self.weight[band])
        drawn = band[systematic(line, count)]
        jump = slope / (self.norm * self.loss.scale)
        partner = shifted(drawn)
        return Pairs(drawn, partner, np.full(count, jump * line[-1] / (4 * half * count)))

    def _rows(self, pieces: Pieces, selected: Selected, of_positives: Array, of_pieces: Array, unit: float) -> Array:
        """Return one coefficient per row, from sums per selected positive and per piece in the window."""
        norm = self.norm * unit
        inside = np.zeros(pieces.score.size)
        inside[pieces.start : pieces.stop] = pieces.weight[pieces.start : pieces.stop] * of_pieces / norm
        return scatter(
            self.n_samples,
            selected.rows,
            selected.weight * of_positives / norm,
            pieces.rows,
            pieces.row_coefficients(inside),
        )

    def _sums(
        self, scores: ArrayLike, *, value: bool = False, bend: bool = False, width: float = 0.0
    ) -> tuple[Pieces, _Sums]:
        s = self._checked(scores)
        selected, pieces = self.lowest.select(s, width), self._pieces(s, width)
        inside = slice(pieces.start, pieces.stop)
        pos, neg = s[selected.rows] / self.loss.scale, pieces.score[inside] / self.loss.scale
        if self.loss.surrogate == "squared_hinge":
            return pieces, _squared_hinge_sums(pos, neg, selected, pieces.weight[inside])
        sums = SoftplusSums(pos, neg, selected.weight, pieces.weight[inside])
        order = _SMOOTH[self.loss.surrogate]
        bend = bend and order == 0
        return pieces, _Sums(
            selected,
            sums.of_positives(order) if value else None,
            sums.of_positives(order + 1),
            sums.of_negatives(order + 1),
            sums.of_positives(2) if bend else None,
            sums.of_negatives(2) if bend else None,
        )

    def _pieces(self, s: Array, width: float) -> Pieces:
        if not self.loss.soft_tail:
            return cut(s, self, self.a, self.b, width=width)
        pieces = cut(s, self, 0.0, self.n, merge_ties=True)
        return replace(pieces, weight=np.diff(soft_rank(prefix(pieces.weight), self.b)))


class PairsEvaluation(Evaluation):
    """Values and affine minorants of :class:`BoundWindowPairs` at given scores."""

    loss: BoundWindowPairs

    def _computed(self, width: float) -> tuple[float, Array]:
        return self.loss.minorant(self.scores, width)


def _slope(surrogate: str, x: Array) -> Array:
    """Return the derivative of a convex charge in ``x``, the score of the negative minus that of the positive."""
    return softplus(1, x) if surrogate == "logistic" else 2.0 * np.maximum(1.0 + x, 0.0)


def _second_derivative(surrogate: str, x: Array) -> Array:
    return softplus(2, x) if surrogate == "logistic" else np.full(x.size, 2.0)


def _bend_range(surrogate: str) -> tuple[float, float]:
    """Return the range of ``-x`` outside of which the second derivative is zero or negligible."""
    return (-_FLAT, _FLAT) if surrogate == "logistic" else (-np.inf, 1.0)


def _squared_hinge_sums(pos: Array, neg: Array, selected: Selected, neg_weight: Array) -> _Sums:
    """Return the sums for the squared hinge, from the first three moments of the active negatives of each positive."""
    # Margins 1 - s_i + z_j = gap_i + depth_j, with both measured from a common origin.
    origin = neg[0]
    gap, depth = 1.0 - (pos - origin), neg - origin
    active = np.searchsorted(-neg, 1.0 - pos, side="left")
    zeroth, first, second = (prefix(neg_weight * depth**power)[active] for power in range(3))
    reached = charged(active, selected.weight, neg.size)
    reached_gap = charged(active, selected.weight * gap, neg.size)
    return _Sums(
        selected,
        gap**2 * zeroth + 2 * gap * first + second,
        2 * (gap * zeroth + first),
        2 * (reached_gap + depth * reached),
        2 * zeroth,
        2 * reached,
    )
