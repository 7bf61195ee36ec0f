"""Hinge surrogates of the partial AUC: tight and structural (convex), pairwise (a difference of convex losses)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocmax._typing import Array, Index
from rocmax._window import check_window, window_end
from rocmax.losses._sorted import Pieces, bandwidth, charged, cut, no_pairs, prefix, sample_bands, systematic
from rocmax.losses.base import BoundLoss, Loss, Pairs
from rocmax.losses.binned import BoundBinned
from rocmax.losses.growth import GrownCuts, Growth, grow_pairs


@dataclass(frozen=True)
class _WindowLoss(Loss):
    """Parameters shared by the losses on a window of false-positive rates."""

    min_fpr: float = 0.0
    max_fpr: float = 0.1

    batch_unbiased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_window(self.min_fpr, self.max_fpr)

    def sum_scale(self, m: float, n: float) -> float:
        """Return the number of pairs in the window."""
        return m * (window_end(n, self.max_fpr) - window_end(n, self.min_fpr))


class PartialAUCTight(_WindowLoss):
    r"""Tight convex surrogate of the partial AUC.

    With ``m`` positives of scores :math:`s_i`, the negatives' scores :math:`z_1 \ge z_2 \ge \dots` and the window
    :math:`(a, b]` of ranks, ``a = n * min_fpr`` and ``b = n * max_fpr``,

    .. math:: \frac{1}{m(b-a)} \sum_i \max_{0 \le r \le b} \sum_{j \le r} \bigl(1[j > a] - (s_i - z_j)\bigr).

    Ranks are real numbers: a negative that straddles an end of the window counts in part. For ``min_fpr=0`` the loss
    is the pairwise hinge on the negatives in the window. The cost is O(N + k log k) for ``k`` negatives up to the end
    of the window; the remaining negatives are not sorted.

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.

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
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    has_curvature: ClassVar[bool] = True

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundConvex:
        """Bind the loss to labels and weights."""
        return BoundConvex(y, sample_weight, self.min_fpr, self.max_fpr)

    def grow_cuts(self, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts | None:
        """Scale the cuts if ``min_fpr=0``; otherwise the first ranks change with new rows, and cuts cannot be kept."""
        return grow_pairs(self.sum_scale, offset, growth) if self.min_fpr == 0 else None


class PartialAUCStructural(_WindowLoss):
    r"""Structural-SVM surrogate of the partial AUC, looser than the tight one.

    It equals :class:`PartialAUCTight` with ``r`` up to ``n``; the negatives beyond the window have margin 0:

    .. math:: \frac{1}{m(b-a)} \sum_i \max_{0 \le r \le n} \sum_{j \le r} \bigl(1[a < j \le b] - (s_i - z_j)\bigr).

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.

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

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    has_curvature: ClassVar[bool] = True

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundConvex:
        """Bind the loss to labels and weights."""
        return BoundConvex(y, sample_weight, self.min_fpr, self.max_fpr, beyond=True)


class PartialAUCHinge(_WindowLoss):
    r"""Pairwise hinge on the negatives in the window; not convex when ``min_fpr > 0``.

    .. math:: \frac{1}{m(b-a)} \sum_i \sum_{a < j \le b} \bigl(1 - (s_i - z_j)\bigr)_+

    It equals ``(b * tight(0, b) - a * tight(0, a)) / (b - a)``, a difference of convex functions that
    ``bind(y).split()`` returns.

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.

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

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundLoss:
        """Bind the loss to labels and weights; with ``min_fpr=0`` this is the tight loss, and convex."""
        if self.min_fpr == 0:
            return BoundConvex(y, sample_weight, 0.0, self.max_fpr)
        return BoundHinge(y, sample_weight, self.min_fpr, self.max_fpr)


class _WindowBound(BoundLoss):
    """Loss in which each positive is compared with the top-ranked negatives, up to a rank that depends on it."""

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None, min_fpr: float, max_fpr: float) -> None:
        super().__init__(y, sample_weight)
        self.a, self.b = window_end(self.n, min_fpr), window_end(self.n, max_fpr)
        self.norm = self.m * (self.b - self.a)

    def _charge(self, pieces: Pieces, rows: Index, charges: list[tuple[Index, Array]], first: int = 0) -> Array:
        """Return the gradient if each positive is paired with the pieces ``first:end``.

        ``charges`` contains pairs of ``end`` and a weight, each an array over the positives in ``rows``; all other
        positives are paired with the whole window.
        """
        count = prefix(pieces.weight)
        coefficient = self.positive_weight * (count[pieces.stop] - count[first])
        coefficient[rows] = np.sum([weight * (count[end] - count[first]) for end, weight in charges], axis=0)
        reached = np.sum([charged(end, weight, pieces.score.size) for end, weight in charges], axis=0)
        reached[: pieces.stop] += self.m - float(self.positive_weight[rows].sum())
        reached[:first] = 0.0
        return self._scatter(
            self.positive,
            coefficient / -self.norm,
            pieces.rows,
            pieces.row_coefficients(reached * pieces.weight / self.norm),
        )


class BoundConvex(_WindowBound):
    """Tight loss or, with ``beyond=True``, structural loss, bound to labels.

    With the window [0, 1] it is the pairwise hinge loss for the full AUC.
    """

    def __init__(
        self,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        min_fpr: float,
        max_fpr: float,
        beyond: bool = False,
    ) -> None:
        super().__init__(y, sample_weight, min_fpr, max_fpr)
        self.min_fpr, self.max_fpr, self.beyond = min_fpr, max_fpr, beyond
        self.has_kinks = self.a > 0 or self.b < self.n

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and subgradient, by searches in the sorted window and prefix sums."""
        return self.smoothed(scores, 0.0)

    def smoothed(self, scores: ArrayLike, width: float) -> tuple[float, Array]:
        """Return an affine minorant in which two choices are smoothed over ``width`` in the scores.

        The first is the selection of the negatives inside the window: any shares in [0, 1] with a sum of at most ``b``
        give a valid minorant. The second is the rank of each positive, left of the window or inside it: any mixture of
        ranks gives a valid minorant.
        """
        s = self._checked(scores)
        pos = s[self.positive]
        pieces = self._cut(s, width)
        rows, limit = self._searched(pos, pieces)
        late, early, share, value = self._ranks(pos[rows], pieces, width)
        weight = self.positive_weight[rows]
        charges = [(late, weight * share)]
        if pieces.start:
            charges.append((early, weight * (1.0 - share)))
        total = float(weight @ value)
        if rows.size < pos.size:
            # For the other positives the maximum is at the end of the window and linear in their scores.
            count, moment = pieces.cumulated()
            others = self.m - float(weight.sum())
            scores_sum = float(self.positive_weight @ np.minimum(pos, limit)) - float(weight.sum()) * limit
            total += others * (moment[pieces.stop] - count[pieces.start])
            total -= (scores_sum - others * (pieces.origin + 1.0)) * count[pieces.stop]
        return float(total) / self.norm, self._charge(pieces, rows, charges)

    def _searched(self, pos: Array, pieces: Pieces) -> tuple[Index, float]:
        """Return the positives that require a search, in ascending order, and the lowest score that requires one.

        For a low-scored positive, all negatives in the window contribute and no search is needed; with a small window
        this is the case for most positives. Searches for sorted keys are several times faster.
        """
        if self.beyond or pieces.weight.size == 1:
            return np.argsort(pos), -np.inf
        margin = 0.0 if pieces.start else 1.0
        limit = float(pieces.score[pieces.stop - 1]) + margin
        rows = np.flatnonzero(pos - margin >= pieces.score[pieces.stop - 1])
        return rows[np.argsort(pos[rows])], limit

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Sample pairs at each of the kinks of the loss.

        The hinge has a kink at ``s_i - z_j = 1``; its curvature is the density of pairs there times their outer
        products. The selection of negatives has a kink where ``z`` equals the score of rank ``b``; its curvature is the
        density of negatives there times their covariance, which is half the mean outer product of their differences.
        With ``min_fpr > 0`` the rank of a positive can also jump; the curvature is the density of positives close to a
        jump times the outer product with the negatives in between.
        """
        s = self._checked(scores)
        pos = s[self.positive]
        half = bandwidth(pos, s[self.negative])
        order = np.argsort(pos)
        pos = pos[order]
        pieces = self._cut(s, width)
        late, early, share, _ = self._ranks(pos, pieces, max(width, half))
        inside, beyond = prefix(pieces.window_row_weights()), late > pieces.stop
        in_window = (share >= 0.5) & ~beyond
        part = max(count // 2, 1)
        # For a positive whose rank is outside the window, the kink is at margin 0, not 1.
        parts = [self._kink_pairs(order, np.where(in_window, pos - 1.0, pos), ~beyond, pieces, inside, half, count)]
        if beyond.any():
            outside = prefix(pieces.row_weight) - inside
            parts.append(self._kink_pairs(order, pos, beyond, pieces, outside, half, part))
        if self.b < self.n:
            parts.append(self._selection_pairs(order, pos, s, pieces, max(half, width / 2), part))
        if pieces.start:
            parts.append(self._jump_pairs(order, pieces, late, early, share, max(half, width), part))
        return Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def thinned(self, size: int) -> tuple[Index, BoundLoss] | None:
        """Return every k-th positive and every l-th negative; None for a narrow window, which would keep too few."""
        if self.n_samples < 3 * size or self.a > 0 or self.b < 0.05 * self.n:
            return None
        kept = [side[:: max(1, 2 * side.size // size)] for side in (self.positive, self.negative)]
        rows = np.sort(np.concatenate(kept))
        return rows, self._on(~self.is_negative[rows], self.weight[rows])

    def binned(self, n_bins: int) -> BoundLoss:
        """Return bounds of this loss from histograms of the scores."""
        return BoundBinned(self, self._on, n_bins, self.n if self.beyond else self.b)

    def _on(self, y: ArrayLike, sample_weight: ArrayLike) -> BoundConvex:
        """Bind the loss to other rows."""
        other = BoundConvex(y, sample_weight, self.min_fpr, self.max_fpr, self.beyond)
        other.norm *= self.norm / (self.m * (self.b - self.a))
        return other

    def _cut(self, s: Array, width: float) -> Pieces:
        return cut(s, self, self.a, self.b, width=width, rest=self.beyond)

    def _ranks(self, pos: Array, pieces: Pieces, width: float) -> tuple[Index, Index, Array, Array]:
        """Return two ranks for each positive, the share of the first, and the value.

        The sum over ranks is concave left of the window, inside it and right of it, so each part has one candidate:
        the last negative with a positive contribution. The candidates inside and right of the window coincide at its
        end, so only the choice between them and the candidate left of the window is smoothed.
        """
        count, moment = pieces.cumulated()
        from_origin = pos - pieces.origin
        start, stop = pieces.start, pieces.stop
        late = pieces.count_above(pos - 1.0, start, stop)
        value = moment[late] - (from_origin - 1.0) * count[late] - count[start]
        if self.beyond:
            rank = pieces.count_above(pos, stop)
            right_value = moment[rank] - from_origin * count[rank] + (count[stop] - count[start])
            late, value = np.where(right_value > value, rank, late), np.maximum(value, right_value)
        if not start:
            return late, np.zeros_like(late), np.ones(pos.size), value
        early = pieces.count_above(pos, 0, start)
        early_value = moment[early] - from_origin * count[early]
        gain = value - early_value
        if width > 0:
            jump = np.maximum(count[late] - count[early], 1e-9 * self.b)
            share = np.clip(0.5 + gain / (width * jump), 0.0, 1.0)
        else:
            share = (gain >= 0).astype(np.float64)
        return late, early, share, share * value + (1.0 - share) * early_value

    def _kink_pairs(
        self,
        order: Index,
        kink: Array,
        member: NDArray[np.bool_],
        pieces: Pieces,
        line: Array,
        half: float,
        count: int,
    ) -> Pairs:
        """Sample pairs of positives in ``member`` and negatives within ``half`` of their kink, weighted by ``line``."""
        low, high = (np.searchsorted(-pieces.row_score, -(kink + side)) for side in (half, -half))
        i, j, mass = sample_bands(self.positive_weight[order] * member, low, high, line, count)
        weight = mass / (2 * half * self.norm * max(i.size, 1))
        return Pairs(self.positive[order[i]], pieces.rows[j], np.full(i.size, weight))

    def _selection_pairs(self, order: Index, pos: Array, s: Array, pieces: Pieces, half: float, count: int) -> Pairs:
        """Sample pairs of negatives close to the end of the window."""
        end = pieces.score[pieces.stop - 1]
        band = np.flatnonzero(self.is_negative & (np.abs(s - end) < half))
        bends = (pos - 1.0 < end) & (pos >= end) if self.beyond else pos - 1.0 < end
        active = self.positive_weight[order][bends].sum()
        if band.size < 2 or active == 0:
            return no_pairs()
        band = band[np.argsort(s[band])]  # the sample must not depend on the order of the rows
        line = prefix(self.weight[band])
        drawn = band[systematic(line, count)]
        partner = np.roll(drawn, int(0.6180339887498949 * count))
        density = active * line[-1] / (2 * half * self.norm)
        return Pairs(drawn, partner, np.full(count, density / (2 * count)))

    def _jump_pairs(
        self, order: Index, pieces: Pieces, late: Index, early: Index, share: Array, width: float, count: int
    ) -> Pairs:
        over = prefix(pieces.weight)
        jump = np.where((share > 0) & (share < 1), over[late] - over[early], 0.0)
        line = prefix(self.positive_weight[order] * jump)
        if line[-1] == 0:
            return no_pairs()
        i = systematic(line, count)
        # The negatives in between are sampled evenly, with a golden-ratio sequence.
        place = over[early[i]] + ((np.arange(count) * 0.6180339887498949) % 1.0) * jump[i]
        row_line = prefix(pieces.window_row_weights())
        j = np.clip(np.searchsorted(row_line, place, side="right") - 1, 0, pieces.rows.size - 1)
        weight = line[-1] / (width * self.norm * count)
        return Pairs(self.positive[order[i]], pieces.rows[j], np.full(count, weight))


class BoundHinge(_WindowBound):
    """:class:`PartialAUCHinge` with ``min_fpr > 0``, bound to labels."""

    convex = False

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None, min_fpr: float, max_fpr: float) -> None:
        super().__init__(y, sample_weight, min_fpr, max_fpr)
        self._plus, self._minus = (BoundConvex(y, sample_weight, 0.0, rate) for rate in (max_fpr, min_fpr))
        self._plus.norm = self._minus.norm = self.norm

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and generalised gradient, by one search in the sorted window."""
        s = self._checked(scores)
        pos = s[self.positive]
        pieces = cut(s, self, self.a, self.b)
        count, moment = pieces.cumulated()
        order = np.argsort(pos)
        pos, weight, first = pos[order], self.positive_weight[order], pieces.start
        end = pieces.count_above(pos - 1.0, first, pieces.stop)
        held = count[end] - count[first]
        value = (moment[end] - moment[first]) - (pos - 1.0 - pieces.origin) * held
        gradient = self._charge(pieces, order, [(end, weight)], first)
        return float(weight @ value) / self.norm, gradient

    def split(self) -> tuple[BoundLoss, BoundLoss]:
        """Return ``b/(b-a) * tight(0, b)`` and ``a/(b-a) * tight(0, a)``."""
        return self._plus, self._minus
