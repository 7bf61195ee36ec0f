r"""Losses on pairs in a window with a sigmoid or squared charge: surrogates for trees and linear models.

Two methods compute :math:`\sum_j w_j S^{(k)}(z_j - s_i)` for the sigmoid function. For few pairs, all pairs are
evaluated in blocks. Otherwise the scores are assigned to cells of a fine grid, and the function is expanded about the
differences of their centers:

.. math:: S^{(k)}(c_l - c_k + h(u_j - u_i)) = \sum_{q < p} \frac{h^q}{q!} S^{(k+q)}(c_l - c_k) (u_j - u_i)^q + r,
          \qquad |u| \le 1/2.

The powers separate into moments of the sources in each cell and a polynomial for the targets in each cell, connected by
convolutions over the grid. The cost is O(N + G log G) for ``G`` cells. The remainder is at most
:math:`h^p \max|S^{(k+p)}| / p!`, which is below 2e-13 for 5 terms and 128 cells per unit, for :math:`k \le 1`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rocmax._rounding import window_end
from rocmax._support import Array, Index, check_corner
from rocmax.losses.base import BoundLoss, Loss, Pairs, scatter
from rocmax.losses.ranks import (
    FEW_PAIRS,
    LowestPositives,
    Pieces,
    Selected,
    blocks,
    charged,
    cut,
    prefix,
    sample_bands,
    soft_rank,
    without_gaps,
)

# Sums over pairs of the sigmoid function :math:`S(x) = 1/(1 + e^{-x})` and its derivatives.


@dataclass(frozen=True)
class GridRules:
    """Numbers of the sums over pairs.

    Attributes
    ----------
    terms, density : int
        Terms of the expansion and cells per unit; the module states the error.
    pairs_per_cell, most_cells : int
        A cell takes the time of this number of pairs; a larger grid would take too much memory.
    kept_length : int
        Kernels of transforms up to this length, 2.6 MB each, are kept for the next call.
    """

    terms: int = 5
    density: int = 128
    pairs_per_cell: int = 40
    most_cells: int = 1 << 21
    kept_length: int = 1 << 16


RULES = GridRules()
# Beyond this difference, S is 0 or 1 and its derivatives are 0 up to rounding error.
_FAR = float(-np.log(np.finfo(np.float64).eps))


def sigmoid(order: int, x: Array) -> Array:
    """Return the derivative of the given order of ``1 / (1 + exp(-x))``."""
    small = np.exp(-np.abs(x))
    if order == 1:
        # Not q (1 - q), which has no correct digits for large x.
        return small / (1.0 + small) ** 2
    q: Array = np.where(x >= 0, 1.0, small) / (1.0 + small)
    return np.asarray(_derivative(order)(q)) if order else q


@cache
def _derivative(order: int) -> np.poly1d:
    """Return a derivative of the sigmoid function as a polynomial in its value."""
    result = np.poly1d([1.0, 0.0])
    for _ in range(order):
        result = result.deriv() * np.poly1d([-1.0, 1.0, 0.0])
    return result


class SigmoidSums:
    """Sums over pairs of positives with scores ``pos`` and negatives with scores ``neg``."""

    def __init__(self, pos: Array, neg: Array, pos_weight: Array, neg_weight: Array) -> None:
        self._pos, self._neg, self._pos_weight, self._neg_weight = pos, neg, pos_weight, neg_weight
        self._grid: _Grid | None = None
        n_pairs = pos.size * neg.size
        if n_pairs <= FEW_PAIRS:
            return
        low, high = _range(pos, neg)
        if high - low > 100 * _FAR:
            pos, neg = without_gaps(pos, neg, _FAR)
            low, high = _range(pos, neg)
        if (high - low) * RULES.density <= min(RULES.most_cells, n_pairs / RULES.pairs_per_cell):
            self._grid = _Grid(pos, neg, pos_weight, neg_weight, low, high)

    def of_positives(self, order: int) -> Array:
        """Return the sum over the negatives for each positive."""
        if self._grid is not None:
            return self._grid.of_positives(order)
        return _direct(order, self._pos, self._neg, self._neg_weight, 1.0)

    def of_negatives(self, order: int) -> Array:
        """Return the sum over the positives for each negative."""
        if self._grid is not None:
            return self._grid.of_negatives(order)
        return _direct(order, self._neg, self._pos, self._pos_weight, -1.0)


class _Grid:
    """Positives and negatives on the cells of a grid."""

    def __init__(self, pos: Array, neg: Array, pos_weight: Array, neg_weight: Array, low: float, high: float) -> None:
        self.pos, self.neg = pos, neg
        self._low, self._size = low, int((high - low) * RULES.density) + 1
        self._length = 1 << (2 * self._size - 1).bit_length()
        self._pos_moments = self._moments(pos, pos_weight)
        self._neg_moments = self._moments(neg, neg_weight)

    def of_positives(self, order: int) -> Array:
        return self._evaluated(self._local(order, self._neg_moments, 1.0), self.pos)

    def of_negatives(self, order: int) -> Array:
        return self._evaluated(self._local(order, self._pos_moments, -1.0), self.neg)

    def _place(self, scores: Array) -> tuple[Index, Array]:
        """Return the cell of each score, and its position relative to the center of the cell in widths of a cell."""
        at = (scores - self._low) * RULES.density
        cell = at.astype(np.intp)
        np.minimum(cell, self._size - 1, out=cell)
        at -= cell
        at -= 0.5
        return cell, at

    def _moments(self, scores: Array, weight: Array) -> list[Any]:
        """Return the transforms of the moments of the sources in each cell."""
        found = np.zeros((RULES.terms, self._size))
        for rows in blocks(scores.size):
            cell, u = self._place(scores[rows])
            part = weight[rows]
            for power in range(RULES.terms):
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
        # Rounds of trees have grids of a few lengths; the kernels of a long grid would take much memory.
        kernels = (_kernels if self._length <= RULES.kept_length else _kernels.__wrapped__)(order, sign, self._length)
        sums = []
        for b in range(RULES.terms):
            terms = (comb(a + b, a) * kernels[a + b] * moments[a] for a in range(RULES.terms - b))
            sums.append((-1.0) ** b * np.fft.irfft(sum(terms), self._length)[: self._size])
        return np.array(sums)


@lru_cache(maxsize=8)
def _kernels(order: int, sign: float, length: int) -> list[Any]:
    """Return the conjugate transforms of the terms of the expansion, as functions of the distance in cells."""
    # Differences of a source and a target in cells; negative ones are at the end, as the transform requires.
    distance = np.arange(length, dtype=np.float64)
    distance[length // 2 :] -= length
    unit = sign / RULES.density
    x = unit * distance
    return [np.fft.rfft(sigmoid(order + q, x) * (unit**q / factorial(q))).conj() for q in range(RULES.terms)]


def _direct(order: int, targets: Array, sources: Array, weight: Array, sign: float) -> Array:
    """Return ``sum_j weight_j S^(order)(sign * (source_j - target_i))`` for each target, pair by pair."""
    found = np.empty(targets.size)
    rows = max(1, (1 << 18) // sources.size)  # arrays of pairs that stay in the cache
    for start in range(0, targets.size, rows):
        block = slice(start, start + rows)
        found[block] = sigmoid(order, sign * (sources - targets[block, None])) @ weight
    return found


def _range(one: Array, two: Array) -> tuple[float, float]:
    return float(min(one.min(), two.min())), float(max(one.max(), two.max()))


_SURROGATES = ("sigmoid", "squared_hinge")


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
    surrogate : {"sigmoid", "squared_hinge"}, default="sigmoid"
        The charge of a pair with the difference ``t``: :math:`1/(1 + e^t)`, bounded and not convex, or
        :math:`(1 - t)_+^2`, convex.
    min_fpr, max_fpr
    soft_tail : bool, default=False
        Whether negatives beyond the window have a weight that falls with their rank. Requires ``min_fpr=0``.
    scale : float, default=1.0
        Unit of the scores.
    min_tpr

    Notes
    -----
    The loss is continuous, even where two negatives exchange their ranks. Between such points the weights are constant
    and the gradient is exact; at a tie it is a subgradient or a generalized gradient. For the squared hinge and
    ``min_fpr=0`` the loss is convex: the weights do not increase with the rank, so it is a maximum over assignments of
    the weights to the negatives.

    The squared hinge is exact in O(N log N), by sorting and prefix sums. For few pairs the sums of the sigmoid are
    evaluated pair by pair; otherwise by expansions on a grid with 128 cells per unit of the scaled scores, in
    O(N log N + G log G) for ``G`` cells. The error of the mean over pairs is below 1e-12. Gaps between scores are
    shortened where this does not change the sums. Only if the scores spread over more than 16,000 units without gaps,
    the pairs are evaluated one by one, in O(mn) time and O(N) memory.

    The diagonal curvature of the squared hinge is that of the Hessian with constant weights :math:`v_j`. For the
    sigmoid it is the absolute gradient divided by ``scale``, an upper bound because :math:`|\varphi''| \le |\varphi'|`:
    a Newton step of a leaf is then at most ``scale``.

    References
    ----------
    Kar, Narasimhan and Jain, "Online and stochastic gradient methods for non-decomposable loss functions", NIPS 2014,
    Eq. 5, for the squared hinge on a window that starts at 0.

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

    The value and the slope and curvature of each selected positive, and slope and curvature of each piece in the
    window.
    """

    value: Array | None
    pos_slope: Array
    neg_slope: Array
    pos_bend: Array | None = None
    neg_bend: Array | None = None


class BoundWindowPairs(BoundLoss):
    """:class:`WindowPairs` bound to labels."""

    has_gradient_and_curvature = True

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None, loss: WindowPairs) -> None:
        super().__init__(y, sample_weight)
        self.loss = loss
        self.a, self.b = window_end(self.n, loss.min_fpr), window_end(self.n, loss.max_fpr)
        self.lowest = LowestPositives(self, loss.min_tpr, loss.soft_tail)
        self.norm = self.m * (loss.sum_scale(self.m, self.n) / self.m)
        self.convex = loss.surrogate == "squared_hinge" and self.a == 0

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient; the weights of the negatives are constant between two ties."""
        selected, pieces, sums = self._sums(scores, with_value=True)
        value = float(selected.weight @ sums.value) / self.norm  # type: ignore[operator]  # asked for
        return value, self._rows(pieces, selected, -sums.pos_slope, sums.neg_slope, self.loss.scale)

    def gradient_and_curvature(self, scores: ArrayLike) -> tuple[Array, Array]:
        """Return the gradient, and the diagonal of the Hessian or an upper bound of it."""
        selected, pieces, sums = self._sums(scores)
        gradient = self._rows(pieces, selected, -sums.pos_slope, sums.neg_slope, self.loss.scale)
        if sums.pos_bend is not None and sums.neg_bend is not None:
            curvature = self._rows(pieces, selected, sums.pos_bend, sums.neg_bend, self.loss.scale**2)
        else:
            curvature = np.abs(gradient) / self.loss.scale
        # A positive lower limit for rows of non-zero weight, small against the mean per unit of weight.
        least = max(1e-10 * float(curvature.sum()) / (self.m + self.n), 1e-100)
        return gradient, np.maximum(curvature, least * self.weight, out=curvature)

    def _rows(self, pieces: Pieces, selected: Selected, of_positives: Array, of_pieces: Array, unit: float) -> Array:
        """Return one coefficient per row, from sums per selected positive and per piece in the window."""
        norm = self.norm * unit
        inside = np.zeros(pieces.score.size)
        inside[pieces.start : pieces.stop] = pieces.weight[pieces.start : pieces.stop] * of_pieces / norm
        pos_coef = selected.weight * of_positives / norm
        return scatter(self.n_samples, selected.rows, pos_coef, pieces.rows, pieces.row_coefficients(inside))

    def _sums(self, scores: ArrayLike, *, with_value: bool = False) -> tuple[Selected, Pieces, _Sums]:
        s = self._checked(scores)
        selected, pieces = self.lowest.select(s), self._pieces(s)
        inside = slice(pieces.start, pieces.stop)
        pos, neg = s[selected.rows] / self.loss.scale, pieces.score[inside] / self.loss.scale
        if self.loss.surrogate == "squared_hinge":
            return selected, pieces, _squared_hinge_sums(pos, neg, selected.weight, pieces.weight[inside])
        sums = SigmoidSums(pos, neg, selected.weight, pieces.weight[inside])
        value = sums.of_positives(0) if with_value else None
        return selected, pieces, _Sums(value, sums.of_positives(1), sums.of_negatives(1))

    def _pieces(self, s: Array) -> Pieces:
        if not self.loss.soft_tail:
            return cut(s, self, self.a, self.b)
        pieces = cut(s, self, 0.0, self.n, merge_ties=True)
        return replace(pieces, weight=np.diff(soft_rank(prefix(pieces.weight), self.b)))


def _squared_hinge_sums(pos: Array, neg: Array, pos_weight: Array, neg_weight: Array) -> _Sums:
    """Return the sums for the squared hinge, from the first three moments of the active negatives of each positive."""
    # Margins 1 - s_i + z_j = gap_i + depth_j, with both measured from a common origin.
    origin = neg[0]
    gap, depth = 1.0 - (pos - origin), neg - origin
    active = np.searchsorted(-neg, 1.0 - pos, side="left")
    zeroth, first, second = (prefix(neg_weight * depth**power)[active] for power in range(3))
    reached = charged(active, pos_weight, neg.size)
    reached_gap = charged(active, pos_weight * gap, neg.size)
    return _Sums(
        gap**2 * zeroth + 2 * gap * first + second,
        2 * (gap * zeroth + first),
        2 * (reached_gap + depth * reached),
        2 * zeroth,
        2 * reached,
    )


@dataclass(frozen=True)
class PairwiseSquaredHinge(Loss):
    r"""Mean squared hinge loss over all pairs, the loss of the batch method BAM.

    .. math:: \frac{1}{mn} \sum_{i,j} \bigl(1 - (s_i - z_j)\bigr)_+^2

    Value and gradient are computed by sorting and prefix sums in O(N log N).

    References
    ----------
    Chapelle and Keerthi, "Efficient algorithms for ranking with SVMs", Information Retrieval 2010.

    Examples
    --------
    >>> from rocmax.losses import PairwiseSquaredHinge
    >>> PairwiseSquaredHinge().bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.875
    """

    def sum_scale(self, m: float, n: float) -> float:
        """Return the number of pairs."""
        return m * n

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundSquaredHinge:
        """Bind the loss to labels and weights."""
        return BoundSquaredHinge(y, sample_weight)


class BoundSquaredHinge(BoundWindowPairs):
    """:class:`PairwiseSquaredHinge` bound to labels: the squared hinge on a window that is the whole curve."""

    has_curvature = True

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        super().__init__(y, sample_weight, WindowPairs("squared_hinge", max_fpr=1.0))

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Sample pairs in the wrong order or within the margin, whose second derivative is 2."""
        s = self._checked(scores)
        pos, pieces = s[self.positive], cut(s, self, 0.0, self.n)
        low, high = (np.searchsorted(-pieces.row_score, end - pos, side="left") for end in (-np.inf, 1.0))
        inside = prefix(pieces.window_row_weights())
        i, j, mass = sample_bands(self.positive_weight, low, high, inside, count)
        weight = 2.0 * (mass / (self.norm * max(i.size, 1)))
        return Pairs(self.positive[i], pieces.rows[j], np.full(i.size, weight))
