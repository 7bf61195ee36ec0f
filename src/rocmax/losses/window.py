"""Hinge losses on the window of false-positive rates: AUC, tight, structural and pairwise partial AUC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocmax._rounding import window_end
from rocmax._support import Array, Index, check_corner
from rocmax.losses.base import BoundLoss, Evaluation, Loss, Pairs, scatter
from rocmax.losses.binned import BoundBinned
from rocmax.losses.ranks import (
    GOLDEN,
    Descending,
    LowestPositives,
    Pieces,
    Selected,
    band_sample,
    bandwidth,
    charged,
    cut,
    descending,
    no_pairs,
    prefix,
    sample_bands,
    systematic,
)


class Coefficients(NamedTuple):
    """Rows of positives and of negatives with their coefficients in a gradient; those of other rows are zero."""

    pos_rows: Index
    pos_coef: Array
    neg_rows: Index
    neg_coef: Array

    def product(self, vector: Array) -> float:
        """Return the product of the gradient with a vector."""
        return float(self.pos_coef @ vector[self.pos_rows]) + float(self.neg_coef @ vector[self.neg_rows])


class WindowEvaluation(Evaluation):
    """Values and affine minorants of :class:`BoundConvex` at given scores.

    If they are few, the sorted negatives are kept, for bounds of the same or a smaller width.
    """

    loss: BoundConvex

    def __init__(self, loss: BoundConvex, scores: Array) -> None:
        super().__init__(loss, scores)
        self._ranked: tuple[float, Descending] | None = None
        self._sparse: tuple[float, Coefficients] | None = None

    def _computed(self, width: float) -> tuple[float, Array]:
        found = self._coefficients(width)
        return self._values[width], scatter(self.loss.n_samples, *found)

    def _coefficients(self, width: float) -> Coefficients:
        """Return the non-zero part of the gradient, which is kept until another width is asked for."""
        if self._sparse is None or self._sparse[0] != width:
            self._values[width], charges = self.loss.charges(self.scores, width, self._pieces(width))
            self._sparse = width, self.loss.charge(*charges)
        return self._sparse[1]

    def slope(self, width: float, direction: Array) -> float:
        """Return the product of the gradient of the minorant with a vector of scores."""
        return self._coefficients(width).product(direction)

    def value(self, width: float) -> float:
        """Return the value of the minorant, without its gradient."""
        if width not in self._values:
            self._values[width] = self.loss.charges(self.scores, width, self._pieces(width))[0]
        return self._values[width]

    def curvature(self, count: int, width: float) -> Pairs:
        """Return pairs that sample the Hessian; see :meth:`BoundConvex.curvature`."""
        return self.loss.pairs(self.scores, count, width, self._pieces(width))

    def sample(self, size: int) -> tuple[Index, Array] | None:
        """Return every k-th positive and every l-th negative; None for a narrow window, which would keep too few."""
        loss = self.loss
        narrow = loss.b < 0.05 * loss.n or loss.lowest.size < 0.05 * loss.m
        if loss.n_samples < 3 * size or loss.a > 0 or narrow:
            return None
        kept = [side[:: max(1, 2 * side.size // size)] for side in (loss.positive, loss.negative)]
        rows = np.sort(np.concatenate(kept))
        return rows, np.ones(rows.size)

    def _pieces(self, width: float) -> Pieces:
        if self._ranked is None or self._ranked[0] < width:
            loss = self.loss
            ranked = descending(self.scores, loss, loss.b, width, loss.beyond)
            if ranked.rows.size > loss.n_samples / 4:  # too much memory to keep
                return loss.cut(self.scores, width, ranked)
            self._ranked = width, ranked
        return self.loss.cut(self.scores, width, self._ranked[1])


# Hinge losses on a window of false-positive rates and above a true-positive rate, bound to labels.


_EPS = float(np.finfo(np.float64).eps)


class _Charges(NamedTuple):
    """Arguments of :meth:`WindowBound.charge`."""

    pieces: Pieces
    selected: Selected
    rows: Index
    charges: list[tuple[Index, Array]]


class WindowBound(BoundLoss):
    """Loss in which positives are compared with the top-ranked negatives, up to a rank that depends on the positive.

    With ``min_tpr > 0`` only the positives with the lowest scores are compared.
    """

    def __init__(
        self, y: ArrayLike, sample_weight: ArrayLike | None, min_fpr: float, max_fpr: float, min_tpr: float
    ) -> None:
        super().__init__(y, sample_weight)
        self.a, self.b = window_end(self.n, min_fpr), window_end(self.n, max_fpr)
        self.lowest = LowestPositives(self, min_tpr)
        self.norm = self.lowest.size * (self.b - self.a)

    def charge(
        self, pieces: Pieces, selected: Selected, rows: Index, charges: list[tuple[Index, Array]], first: int = 0
    ) -> Coefficients:
        """Return the gradient if each selected positive is paired with the pieces ``first:end``.

        ``charges`` contains pairs of ``end`` and a weight, each an array over ``rows`` of the selected positives; all
        others are paired with the whole window.
        """
        count = pieces.cumulated[0]
        coefficient = selected.weight * ((count[pieces.stop] - count[first]) / -self.norm)
        reached = np.zeros(pieces.score.size)
        of_rows = np.zeros(rows.size)
        for end, weight in charges:
            of_rows += weight * (count[end] - count[first])
            reached += charged(end, weight, pieces.score.size)
        coefficient[rows] = of_rows / -self.norm
        reached[: pieces.stop] += selected.total - float(selected.weight[rows].sum())
        reached[:first] = 0.0
        reached *= pieces.weight
        reached /= self.norm
        return Coefficients(selected.rows, coefficient, pieces.rows, pieces.row_coefficients(reached))


class BoundConvex(WindowBound):
    """Tight loss or, with ``beyond=True``, structural loss, bound to labels.

    With the window [0, 1] it is the pairwise hinge loss for the full AUC.
    """

    has_curvature = True

    def __init__(
        self,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        min_fpr: float,
        max_fpr: float,
        min_tpr: float = 0.0,
        beyond: bool = False,
    ) -> None:
        super().__init__(y, sample_weight, min_fpr, max_fpr, min_tpr)
        self.min_fpr, self.max_fpr, self.min_tpr, self.beyond = min_fpr, max_fpr, min_tpr, beyond
        self.has_kinks = self.a > 0 or self.b < self.n or self.lowest.is_part

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and subgradient, by searches in the sorted window and prefix sums."""
        return self.at(scores).minorant(0.0)

    def at(self, scores: ArrayLike) -> Evaluation:
        """Return an object that computes several bounds at the same scores, and sorts the negatives once."""
        return WindowEvaluation(self, self._checked(scores))

    def charges(self, s: Array, width: float, pieces: Pieces) -> tuple[float, _Charges]:
        """Return the value of a minorant, and the arguments of :meth:`charge` for its gradient.

        Three choices are smoothed over ``width`` in the scores. The first is the selection of the negatives inside the
        window: any shares in [0, 1] with a sum of at most ``b`` give a valid minorant. With ``min_tpr > 0``, the same
        holds for the selection of the positives. The last is the rank of each positive, left of the window or inside
        it: any mixture of ranks gives a valid minorant.
        """
        selected = self.lowest.select(s, width)
        pos = s[selected.rows]
        rows, limit = self._searched(pos, pieces)
        late, early, share, value = self._ranks(pos[rows], pieces, width)
        weight = selected.weight[rows]
        charges = [(late, weight * share), (early, weight * (1.0 - share))] if pieces.start else [(late, weight)]
        total = float(weight @ value)
        if rows.size < pos.size:
            # For the other positives the maximum is at the end of the window and linear in their scores.
            count, moment = pieces.cumulated
            searched = float(weight.sum())
            others, limit = selected.total - searched, limit - pieces.origin
            scores_sum = float(selected.weight @ np.minimum(pos - pieces.origin, limit)) - searched * limit
            total += others * (moment[pieces.stop] - count[pieces.start])
            total -= (scores_sum - others) * count[pieces.stop]
        return float(total) / self.norm, _Charges(pieces, selected, rows, charges)

    def _searched(self, pos: Array, pieces: Pieces) -> tuple[Index, float]:
        """Return the positives that require a search, in ascending order, and the lowest score that requires one.

        For a low-scored positive, all negatives in the window contribute and no search is needed; with a small window
        this is the case for most positives. Searches for sorted keys are several times faster.
        """
        if self.beyond:
            return np.argsort(pos), -np.inf
        margin = 0.0 if pieces.start else 1.0
        limit = float(pieces.score[pieces.stop - 1]) + margin
        rows = (pos - margin >= pieces.score[pieces.stop - 1]).nonzero()[0]
        return rows[pos[rows].argsort()], limit

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Sample pairs at each of the kinks of the loss.

        The hinge has a kink at ``s_i - z_j = 1``; its curvature is the density of pairs there times their outer
        products. The selection of negatives has a kink where ``z`` equals the score of rank ``b``; its curvature is the
        density of negatives there times their covariance, which is half the mean outer product of their differences.
        The selection of positives with ``min_tpr > 0`` has the same kink. With ``min_fpr > 0`` the rank of a positive
        can also jump; the curvature is the density of positives close to a jump times the outer product with the
        negatives in between.
        """
        s = self._checked(scores)
        return self.pairs(s, count, width, self.cut(s, width))

    def pairs(self, s: Array, count: int, width: float, pieces: Pieces) -> Pairs:
        """Return the pairs of :meth:`curvature`."""
        half = bandwidth(s[self.positive], s[self.is_negative])
        near = self._ascending(s, self.lowest.select(s, width))
        pos = s[near.rows]
        late, early, share, _ = self._ranks(pos, pieces, max(width, half))
        inside, beyond = prefix(pieces.window_row_weights()), late > pieces.stop
        in_window = (share >= 0.5) & ~beyond
        part = max(count // 2, 1)
        # For a positive whose rank is outside the window, the kink is at margin 0, not 1.
        parts = [self._kink_pairs(near, np.where(in_window, pos - 1.0, pos), ~beyond, pieces, inside, half, count)]
        if beyond.any():
            # Not a difference of prefix sums, which rounding can make decrease.
            outside = prefix(np.maximum(pieces.row_weight - pieces.window_row_weights(), 0.0))
            parts.append(self._kink_pairs(near, pos, beyond, pieces, outside, half, part))
        bands = half, width / 2
        if self.b < self.n:
            end = float(pieces.score[pieces.stop - 1]) + width / 2
            slope = self._slope_at_end(near, pos, end)
            parts += self._selection_pairs(s, self.negative, end, slope, bands, part)
        if self.lowest.is_part:
            over = prefix(pieces.weight)
            slope = float(share[-1] * over[late[-1]] + (1.0 - share[-1]) * over[early[-1]])
            end = float(pos[-1]) - width / 2
            parts += self._selection_pairs(s, self.positive, end, slope, bands, part)
        if pieces.start:
            parts.append(self._jump_pairs(near, pieces, late, early, share, max(half, width), part))
        return Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def restrict(self, rows: Index, copies: Array) -> BoundLoss:
        """Return the loss on some rows."""
        return self._on(~self.is_negative[rows], self.weight[rows] * copies)

    def binned(self, n_bins: int) -> BoundLoss:
        """Return bounds of this loss from histograms of the scores."""
        return BoundBinned(self, self._on, n_bins, self.n if self.beyond else self.b)

    def _on(self, y: ArrayLike, sample_weight: ArrayLike) -> BoundConvex:
        """Bind the loss to other rows."""
        other = BoundConvex(y, sample_weight, self.min_fpr, self.max_fpr, self.min_tpr, self.beyond)
        other.norm *= self.norm / (self.lowest.size * (self.b - self.a))
        return other

    def cut(self, s: Array, width: float, ranked: Descending | None = None) -> Pieces:
        """Return the negatives in the window."""
        return cut(s, self, self.a, self.b, width=width, rest=self.beyond, ranked=ranked)

    def _ranks(self, pos: Array, pieces: Pieces, width: float) -> tuple[Index, Index, Array, Array]:
        """Return two ranks for each positive, the share of the first, and the value.

        The sum over ranks is concave left of the window, inside it and right of it, so each part has one candidate:
        the last negative with a positive contribution. The candidates inside and right of the window coincide at its
        end, so only the choice between them and the candidate left of the window is smoothed.
        """
        count, moment = pieces.cumulated
        from_origin = pos - pieces.origin
        start, stop = pieces.start, pieces.stop
        late = pieces.count_above(pos - 1.0, start, stop)
        value = moment[late] - (from_origin - 1.0) * count[late] - count[start]
        if self.beyond:
            rank = pieces.count_above(pos, stop)
            right_value = moment[rank] - from_origin * count[rank] + (count[stop] - count[start])
            late, value = np.where(right_value > value, rank, late), np.maximum(value, right_value)
        if not start:
            return late, np.zeros(late.size, dtype=np.intp), np.ones(pos.size), value
        early = pieces.count_above(pos, 0, start)
        early_value = moment[early] - from_origin * count[early]
        gain = value - early_value
        if width > 0:
            jump = np.maximum(count[late] - count[early], 1e-9 * self.b)
            share = np.clip(0.5 + gain / (width * jump), 0.0, 1.0)
        else:
            share = (gain >= 0).astype(np.float64)
        return late, early, share, share * value + (1.0 - share) * early_value

    @staticmethod
    def _ascending(s: Array, selected: Selected) -> Selected:
        order = s[selected.rows].argsort()
        return Selected(selected.rows[order], selected.weight[order], selected.total)

    def _kink_pairs(
        self,
        near: Selected,
        kink: Array,
        member: NDArray[np.bool_],
        pieces: Pieces,
        line: Array,
        half: float,
        count: int,
    ) -> Pairs:
        """Sample pairs of positives in ``member`` and negatives within ``half`` of their kink, weighted by ``line``."""
        down = -pieces.row_score
        low, high = (down.searchsorted(-(kink + side)) for side in (half, -half))
        i, j, mass = sample_bands(near.weight * member, low, high, line, count)
        weight = mass / (2 * half * self.norm * max(i.size, 1))
        return Pairs(near.rows[i], pieces.rows[j], np.full(i.size, weight))

    def _slope_at_end(self, near: Selected, pos: Array, end: float) -> float:
        """Return the rate at which the loss of a negative at the end of the window grows with its score."""
        bends = (pos - 1.0 < end) & (pos >= end) if self.beyond else pos - 1.0 < end
        return float(near.weight[bends].sum())

    def _selection_pairs(
        self, s: Array, rows: Index, end: float, slope: float, halves: tuple[float, float], count: int
    ) -> list[Pairs]:
        """Sample pairs of rows of one class close to the end of its selection.

        The curvature of a soft selection is the density of the rows with a share between 0 and 1 times their
        covariance. If there are only few such rows, they do not vary in all directions, and rows in a wider band are
        added. ``slope`` is the rate at which the loss of a row at the end changes with its score, without the divisor.
        """
        wide, soft = halves
        edge = _edge(soft, end) if soft > 0 else 0.0
        offset = s[rows] - end
        near = (np.abs(offset) <= max(edge, wide)).nonzero()[0]
        # The sample must not depend on the order of the rows.
        near = near[offset[near].argsort()]
        rows, offset = rows[near], offset[near]
        low, high = offset.searchsorted(-edge), offset.searchsorted(edge, side="right")
        inside = rows[low:high] if soft > 0 else rows[:0]
        if soft >= wide or inside.size >= 2 * count:
            return [self._band_pairs(inside, slope, soft, count)]
        around = rows[offset.searchsorted(-wide, side="right") : offset.searchsorted(wide)]
        if inside.size < 100:  # too few for their density
            return [self._band_pairs(around, slope, wide, count)]
        rest = 1.0 - inside.size / (2 * count)
        density = [float(self.weight[band].sum()) / half for band, half in ((around, wide), (inside, soft))]
        share = 1.0 - rest * min(1.0, density[0] / density[1])
        pairs = self._band_pairs(inside, slope, soft, count), self._band_pairs(around, slope, wide, count)
        return [part._replace(weight=part.weight * each) for part, each in zip(pairs, (share, rest), strict=True)]

    def _band_pairs(self, band: Index, slope: float, half: float, count: int) -> Pairs:
        """Sample pairs of rows of one class in a band around the end of its selection; they are in order of score."""
        return band_sample(band, self.weight, slope, 2 * half * self.norm, count)

    def _jump_pairs(
        self, near: Selected, pieces: Pieces, late: Index, early: Index, share: Array, width: float, count: int
    ) -> Pairs:
        over = prefix(pieces.weight)
        jump = np.where((share > 0) & (share < 1), over[late] - over[early], 0.0)
        line = prefix(near.weight * jump)
        if line[-1] == 0:
            return no_pairs()
        i = systematic(line, count)
        # The negatives in between are sampled evenly, with a golden-ratio sequence.
        place = over[early[i]] + ((np.arange(count) * GOLDEN) % 1.0) * jump[i]
        row_line = prefix(pieces.window_row_weights())
        j = np.clip(np.searchsorted(row_line, place, side="right") - 1, 0, pieces.rows.size - 1)
        weight = line[-1] / (width * self.norm * count)
        return Pairs(near.rows[i], pieces.rows[j], np.full(count, weight))


def _edge(half: float, end: float) -> float:
    """Return half the width of a band, a little wider: the last row of a soft selection is at its edge.

    Rounding must not decide whether that row is inside.
    """
    return half * (1 + 1e-9) + 8 * _EPS * abs(end)


class BoundHinge(WindowBound):
    """:class:`PartialAUCHinge` with ``min_fpr > 0``, bound to labels."""

    convex = False
    has_split = True

    def __init__(
        self, y: ArrayLike, sample_weight: ArrayLike | None, min_fpr: float, max_fpr: float, min_tpr: float = 0.0
    ) -> None:
        super().__init__(y, sample_weight, min_fpr, max_fpr, min_tpr)
        self._plus, self._minus = (BoundConvex(y, sample_weight, 0.0, rate, min_tpr) for rate in (max_fpr, min_fpr))
        self._plus.norm = self._minus.norm = self.norm

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and generalized gradient, by one search in the sorted window."""
        s = self._checked(scores)
        selected = self.lowest.select(s)
        pos = s[selected.rows]
        pieces = cut(s, self, self.a, self.b)
        count, moment = pieces.cumulated
        order = np.argsort(pos)
        pos, weight, first = pos[order], selected.weight[order], pieces.start
        end = pieces.count_above(pos - 1.0, first, pieces.stop)
        held = count[end] - count[first]
        value = (moment[end] - moment[first]) - (pos - 1.0 - pieces.origin) * held
        gradient = scatter(self.n_samples, *self.charge(pieces, selected, order, [(end, weight)], first))
        return float(weight @ value) / self.norm, gradient

    def split(self) -> tuple[BoundLoss, BoundLoss]:
        """Return ``b/(b-a) * tight(0, b)`` and ``a/(b-a) * tight(0, a)``, for the same ``min_tpr``."""
        return self._plus, self._minus


# Losses on all pairs of a positive and a negative example: surrogates of the full AUC.


@dataclass(frozen=True)
class PairwiseHinge(Loss):
    r"""Mean hinge loss over all pairs, the surrogate loss of SVM-AUC.

    .. math:: \frac{1}{mn} \sum_{i,j} \bigl(1 - (s_i - z_j)\bigr)_+

    It equals :class:`PartialAUCTight` on the window [0, 1]. The cost is O(N log N).

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from rocmax.losses import PairwiseHinge
    >>> PairwiseHinge().bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.0
    """

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundConvex:
        """Bind the loss to labels and weights."""
        return BoundConvex(y, sample_weight, 0.0, 1.0)

    def sum_scale(self, m: float, n: float) -> float:
        """Return the number of pairs."""
        return m * n


# Hinge surrogates of the partial AUC: tight and structural (convex), pairwise (a difference of convex losses).


@dataclass(frozen=True)
class _WindowLoss(Loss):
    """Parameters shared by the losses on a window of false-positive rates and above a true-positive rate."""

    min_fpr: float = 0.0
    max_fpr: float = 0.1
    min_tpr: float = 0.0

    def __post_init__(self) -> None:
        check_corner(self.min_fpr, self.max_fpr, self.min_tpr)

    def sum_scale(self, m: float, n: float) -> float:
        """Return the number of pairs in the window."""
        return (1.0 - self.min_tpr) * m * (window_end(n, self.max_fpr) - window_end(n, self.min_fpr))


class PartialAUCTight(_WindowLoss):
    r"""Tight convex surrogate of the partial AUC.

    With ``m`` positives of scores :math:`s_i`, the negatives' scores :math:`z_1 \ge z_2 \ge \dots` and the window
    :math:`(a, b]` of ranks, ``a = n * min_fpr`` and ``b = n * max_fpr``,

    .. math:: \frac{1}{m(b-a)} \sum_i \max_{0 \le r \le b} \sum_{j \le r} \bigl(1[j > a] - (s_i - z_j)\bigr).

    Ranks are real numbers: a negative that straddles an end of the window counts in part. For ``min_fpr=0`` the loss
    is the pairwise hinge on the negatives in the window. The cost is O(N + k log k) for ``k`` negatives up to the end
    of the window; the remaining negatives are not sorted.

    With ``min_tpr > 0`` the sum is over the ``(1 - min_tpr) * m`` positives with the lowest scores, and their number
    replaces ``m`` in the divisor. Only these positives determine the curve above ``min_tpr``. Their ranks are
    real numbers, too. No term increases with the score of its positive, so the sum is a maximum over all subsets of
    positives of that size, and convex. Swapping the classes and the sign of the scores turns ``max_fpr=b`` into
    ``min_tpr=1-b, max_fpr=1``.

    Parameters
    ----------
    min_fpr, max_fpr, min_tpr

    References
    ----------
    Narasimhan and Agarwal, "SVM_pAUC^tight: a new support vector method for optimizing partial AUC based on a tight
    convex upper bound", KDD 2013.

    Examples
    --------
    >>> from rocmax.losses import PartialAUCTight
    >>> bound = PartialAUCTight(max_fpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> value, gradient = bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])
    >>> value
    1.25
    >>> gradient
    array([-0.25,  0.5 ,  0.  , -0.5 ,  0.25,  0.  ])

    Only the pairs of the lower positive, for true-positive rates above one half:

    >>> bound = PartialAUCTight(max_fpr=0.5, min_tpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])[0]
    2.25
    """

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundConvex:
        """Bind the loss to labels and weights."""
        return BoundConvex(y, sample_weight, self.min_fpr, self.max_fpr, self.min_tpr)


class PartialAUCStructural(_WindowLoss):
    r"""Structural-SVM surrogate of the partial AUC, looser than the tight one.

    It equals :class:`PartialAUCTight` with ``r`` up to ``n``, even if ``min_tpr > 0``; the negatives beyond the window
    have margin 0:

    .. math:: \frac{1}{m(b-a)} \sum_i \max_{0 \le r \le n} \sum_{j \le r} \bigl(1[a < j \le b] - (s_i - z_j)\bigr).

    Parameters
    ----------
    min_fpr, max_fpr, min_tpr

    References
    ----------
    Narasimhan and Agarwal, "A structural SVM based approach for optimizing partial AUC", ICML 2013.

    Examples
    --------
    >>> from rocmax.losses import PartialAUCStructural
    >>> bound = PartialAUCStructural(max_fpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])[0]
    1.25
    """

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundConvex:
        """Bind the loss to labels and weights."""
        return BoundConvex(y, sample_weight, self.min_fpr, self.max_fpr, self.min_tpr, beyond=True)


class PartialAUCHinge(_WindowLoss):
    r"""Pairwise hinge on the negatives in the window; not convex when ``min_fpr > 0``.

    .. math:: \frac{1}{m(b-a)} \sum_i \sum_{a < j \le b} \bigl(1 - (s_i - z_j)\bigr)_+

    With ``min_tpr > 0`` only the positives with the lowest scores are in the sum, as in :class:`PartialAUCTight`. The
    loss equals ``(b * tight(0, b) - a * tight(0, a)) / (b - a)``, a difference of convex functions that
    ``bind(y).split()`` returns.

    Parameters
    ----------
    min_fpr, max_fpr, min_tpr

    References
    ----------
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017, Eq. 9 and section 6.

    Examples
    --------
    >>> from rocmax.losses import PartialAUCHinge
    >>> bound = PartialAUCHinge(min_fpr=0.25, max_fpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])[0]
    1.0
    """

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundLoss:
        """Bind the loss to labels and weights; with ``min_fpr=0`` this is the tight loss, and convex."""
        if self.min_fpr == 0:
            return BoundConvex(y, sample_weight, 0.0, self.max_fpr, self.min_tpr)
        return BoundHinge(y, sample_weight, self.min_fpr, self.max_fpr, self.min_tpr)
