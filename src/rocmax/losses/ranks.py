"""Sorted scores, prefix sums and samples of pairs: what all ranking losses are computed from.

This module implements the rule for ties: tied negatives share their places in the window in proportion to their
weights. As a result, no result depends on the order of the examples, and a row of weight two is equivalent to two rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.constants import golden

from rocmax._rounding import window_end
from rocmax._support import Array, Bools, Index
from rocmax.losses.base import BoundLoss, Pairs

# Multiples of the golden ratio are spread evenly modulo 1, whatever their number.
GOLDEN = golden - math.floor(golden)
# Up to this number of pairs, all are evaluated: that takes less time than a clever sum or search.
FEW_PAIRS = 50_000


@dataclass(frozen=True)
class Pieces:
    """Negatives in descending order of score, cut into pieces at the ends of a window.

    The rows are in blocks of ties (None: each row is one), and a piece is cut from a block (None: from the first ones,
    in order). Pieces ``start:stop`` are the window; those from ``stop`` on, if any, are the rest of the sample.
    """

    rows: Index
    row_score: Array
    row_weight: Array
    row_block: Index | None
    block_weight: Array
    score: Array
    weight: Array
    block: Index | None
    start: int
    stop: int

    @property
    def origin(self) -> float:
        """Return the score about which moments are computed, to avoid cancellation for large scores."""
        return float(self.score[0])

    @cached_property
    def cumulated(self) -> tuple[Array, Array]:
        """Prefix sums of the weights and of their moments about ``origin``, each with a leading zero."""
        return prefix(self.weight), prefix(self.weight * (self.score - self.origin))

    def count_above(self, threshold: Array, first: int = 0, last: int | None = None) -> Index:
        """Return the index of the first piece in ``first:last`` whose score is not above each threshold."""
        below: Index = (-self.score[first:last]).searchsorted(-threshold)
        return first + below

    def row_coefficients(self, piece_coefficient: Array) -> Array:
        """Share the coefficients of the pieces among the rows they came from."""
        n_blocks = self.block_weight.size
        if self.block is not None:
            per_block = np.bincount(self.block, piece_coefficient, minlength=n_blocks).astype(np.float64, copy=False)
        elif piece_coefficient.size == n_blocks:
            per_block = piece_coefficient
        else:
            per_block = np.zeros(n_blocks)
            per_block[: piece_coefficient.size] = piece_coefficient
        if self.row_block is None:
            return per_block
        return (per_block / self.block_weight)[self.row_block] * self.row_weight

    def row_index(self, block: Index) -> Index:
        """Return the first row of each block; the number of rows for a block past the end."""
        return block if self.row_block is None else np.searchsorted(self.row_block, block, side="left")

    def window_row_weights(self) -> Array:
        """Return the weight of each row inside ``0:stop``, row by row instead of piece by piece."""
        inside = self.weight.copy()
        inside[self.stop :] = 0.0
        return self.row_coefficients(inside)


def prefix(values: Array) -> Array:
    """Return prefix sums with a leading zero."""
    sums = np.empty(values.size + 1)
    sums[0] = 0.0
    np.add.accumulate(values, out=sums[1:])
    return sums


def blocks(size: int) -> Iterator[slice]:
    """Split rows into blocks whose arrays fit into the cache."""
    step = 1 << 15
    return (slice(start, start + step) for start in range(0, size, step))


def without_gaps(one: Array, two: Array, longest: float) -> tuple[Array, Array]:
    """Shorten gaps between scores that are longer than a pair can feel, so that sums of squares lose no precision."""
    both = np.concatenate([one, two])
    order = np.argsort(both)
    both[order] = prefix(np.minimum(np.diff(both[order]), longest))
    return both[: one.size], both[one.size :]


def soft_rank(rank: Array, b: float) -> Array:
    """Return the integral of ``min(1, b / t)`` from 0 to each rank."""
    total: Array = np.minimum(rank, b) + b * np.log(np.maximum(rank, b) / b)
    return total


def charged(ends: Index, weight: Array, size: int) -> Array:
    """Return the sum of ``weight`` over the positives whose range ``0:ends`` contains each position below ``size``."""
    ending = np.bincount(ends, weight, minlength=size + 1).astype(np.float64, copy=False)
    result: Array = np.add.accumulate(ending[::-1])[-2::-1]
    return result


def cut(
    scores: Array,
    sample: Ranked,
    start: float,
    stop: float,
    *,
    width: float = 0.0,
    rest: bool = False,
    merge_ties: bool = False,
    ranked: Descending | None = None,
) -> Pieces:
    """Split the negatives in descending order at the ranks ``start`` and ``stop``, which are cumulative weights.

    With ``width > 0`` the end at ``stop`` is soft: a negative of score ``z`` is inside with the share ``clip(1/2 + (z -
    theta)/width, 0, 1)``, where ``theta`` is such that the shares sum to ``stop``. ``rest`` includes the pieces beyond
    ``stop``. With ``merge_ties``, tied negatives are one piece, for weights that depend on the ranks of the pieces.
    ``ranked`` is the result of :func:`descending` for this or a larger width, if it is known.
    """
    full = stop >= sample.n * (1 - 1e-12)
    rows, row_score, row_weight = ranked or descending(scores, sample, stop, width, rest)
    # One piece has no rounding error where all rows are tied, as at zero weights, or tied rows are on both sides.
    merge_ties |= start > 0 or bool(row_score[0] == row_score[-1])
    row_block, score, weight = _blocks(row_score, row_weight) if merge_ties else (None, row_score, row_weight)
    if full:
        inside = weight
    elif width > 1e-12 * max(abs(score[0]), abs(score[-1])):
        inside = weight * _soft_share(score, weight, stop, width)
    else:  # with less width, a soft end equals a hard end up to rounding error
        inside = _first(score, weight, stop)
    # Shares decrease with the score, so the pieces inside the window come first.
    size = int(np.count_nonzero(inside))
    block, share, n_start = None, inside[:size], 0
    if start > 0:
        block, share, n_start = _split(score[:size], share, start)
    n_stop = share.size
    if rest:
        outside = weight - inside
        tail = np.flatnonzero(outside)
        block = np.concatenate([np.arange(size) if block is None else block, tail])
        share = np.concatenate([share, outside[tail]])
    elif not merge_ties:
        rows, row_score, row_weight, weight = rows[:size], row_score[:size], row_weight[:size], weight[:size]
    piece_score = score[:size] if block is None else score[block]
    return Pieces(rows, row_score, row_weight, row_block, weight, piece_score, share, block, n_start, n_stop)


class Descending(NamedTuple):
    """Rows in descending order of score, their scores and weights."""

    rows: Index
    score: Array
    weight: Array


def descending(scores: Array, sample: Ranked, stop: float, width: float = 0.0, rest: bool = False) -> Descending:
    """Return all negatives, or those that :func:`cut` needs for its parameters, in descending order of score."""
    every = rest or stop >= sample.n * (1 - 1e-12)
    return _sorted(scores, sample, sample.negative) if every else _top(scores, sample, stop, width)


def _sorted(scores: Array, sample: Ranked, rows: Index) -> Descending:
    score = scores[rows]
    order = (-score).argsort()
    rows = rows[order]
    return Descending(rows, score[order], sample.weight[rows])


def _blocks(score: Array, weight: Array) -> tuple[Index | None, Array, Array]:
    """Return the block of ties of each of the sorted rows, and scores and weights of the blocks."""
    is_first = np.ones(score.size, dtype=bool)
    np.not_equal(score[1:], score[:-1], out=is_first[1:])
    if is_first.all():
        return None, score, weight
    first = np.flatnonzero(is_first)
    return np.cumsum(is_first) - 1, score[first], np.add.reduceat(weight, first)


def _first(score: Array, weight: Array, stop: float) -> Array:
    """Return the part of the weight of each of the sorted rows up to the rank ``stop``, which ties share."""
    total = prefix(weight)
    last = min(int(total[1:].searchsorted(stop)), score.size - 1)
    down = -score
    low, high = int(down.searchsorted(down[last])), int(down.searchsorted(down[last], side="right"))
    inside = np.zeros(score.size)
    inside[:low] = weight[:low]
    inside[low:high] = weight[low:high] * min(1.0, (stop - total[low]) / (total[high] - total[low]))
    return inside


def _split(score: Array, weight: Array, at: float) -> tuple[Index, Array, int]:
    """Split the pieces that contain the rank ``at``; return places, weights and the number of pieces before it."""
    left = _first(score, weight, at)
    before, after = np.flatnonzero(left), np.flatnonzero(weight - left)
    block = np.concatenate([before, after])
    return block, np.concatenate([left[before], (weight - left)[after]]), before.size


def sample_bands(
    first_weight: Array, low: Index, high: Index, second_cumulated: Array, count: int
) -> tuple[Index, Index, float]:
    """Draw pairs (i, j) with ``low[i] <= j < high[i]`` by systematic sampling; return them and the weight of all pairs.

    The pair (i, j) is drawn with probability proportional to ``first_weight[i]`` times the weight of ``j``, whose
    prefix sums are given. Equal steps along the cumulative weight of all pairs need no random numbers and have less
    variance than independent draws.
    """
    start = second_cumulated[low]
    mass = first_weight * (second_cumulated[high] - start)
    line = prefix(mass)
    total = float(line[-1])
    if not total > 0:
        none = np.empty(0, dtype=np.intp)
        return none, none, 0.0
    i = systematic(line, count)
    at = (np.arange(count) + 0.5) * (total / count)
    place = start[i] + (at - line[i]) / first_weight[i]
    j = second_cumulated.searchsorted(place, side="right") - 1
    return i, np.minimum(np.maximum(j, low[i]), high[i] - 1), total


def systematic(line: Array, count: int) -> Index:
    """Draw ``count`` items with probability proportional to their weight, by equal steps along the prefix sums.

    The k-th step is at ``k + 1/2`` times the length of a step, so the number of steps before each end is known.
    """
    before = np.ceil(line * (count / line[-1]) - 0.5).astype(np.intp)
    before[-1] = count
    return np.repeat(np.arange(line.size - 1), np.diff(before))


def bandwidth(pos: Array, neg: Array) -> float:
    """Return the half-width of the bands in which densities are estimated, from the spread of the scores."""
    spread = math.sqrt(_variance(pos) + _variance(neg))
    return 0.2 * spread if spread > 0 else 1.0


def _variance(values: Array) -> float:
    centered = values - values.mean()
    return float(centered @ centered) / values.size


def band_sample(band: Index, weight: Array, slope: float, unit: float, count: int) -> Pairs:
    """Sample ``count`` pairs for ``slope / unit`` times the scatter matrix of the rows ``band`` of one class, in order.

    The mean outer product of the differences of two independent draws is twice the covariance.
    """
    if band.size < 2 or slope == 0:
        return no_pairs()
    line = prefix(weight[band])
    drawn = band[systematic(line, count)]
    partner = np.roll(drawn, int(GOLDEN * count))
    return Pairs(drawn, partner, np.full(count, slope * line[-1] / unit / (2 * count)))


def no_pairs() -> Pairs:
    """Return an empty sample of pairs."""
    none = np.empty(0, dtype=np.intp)
    return Pairs(none, none, np.empty(0))


def _top(scores: Array, sample: Ranked, stop: float, width: float) -> Descending:
    """Return all negatives that can lie inside ``stop``, including ties at the end, in descending order of score.

    Only the negatives above some score are sorted: at first that of a lower rank in a part of the rows, which is
    probably below the end of the window, then that of the least number of rows that can reach ``stop``.
    """
    size = sample.n_negative
    k = min(size, math.ceil(stop * size / sample.n))
    lowest = _below_rank(scores, sample.is_negative, k / size)
    while True:
        # The soft end reaches at most ``width`` below the score of rank ``stop``.
        near = scores >= lowest - width
        near &= sample.is_negative
        found = _sorted(scores, sample, near.nonzero()[0])
        if lowest == -np.inf or found.weight[: (-found.score).searchsorted(-lowest, side="right")].sum() >= stop:
            return found
        lowest = -np.inf if k == size else _of_rank(scores[sample.is_negative], k)
        k = min(size, 2 * k)


def _of_rank(values: Array, k: int) -> float:
    """Return the k-th largest value; ``values`` are reordered."""
    values.partition(values.size - k)
    return float(values[values.size - k])


def _below_rank(scores: Array, is_member: Bools, share: float) -> float:
    """Return a score that is probably exceeded by slightly more than a share of the members, from a part of them."""
    step = max(1, int(np.cbrt(scores.size) / 3))
    part = scores[::step][is_member[::step]]
    if step > 1:
        # A margin of two and a half standard errors: the score is nearly always low enough.
        share += 2.5 * math.sqrt(share / max(part.size, 1))
    k = math.ceil(share * part.size)
    return _of_rank(part, k) if k < part.size else -math.inf


def _soft_share(score: Array, weight: Array, stop: float, width: float) -> Array:
    """Return shares ``clip(1/2 + (score - theta)/width, 0, 1)`` of pieces in descending order that sum to ``stop``."""
    total = prefix(weight)
    middle = float(score[min(int(total[1:].searchsorted(stop)), score.size - 1)])
    # ``theta`` lies within half a width of the score at ``stop``, so only the pieces within a width of it can have a
    # fractional share; scores are measured from there to avoid cancellation.
    down = middle - score
    first, last = (int(down.searchsorted(side)) for side in (-width, width))
    down = down[first:last] / width
    near_weight = weight[first:last]
    sums, moments = prefix(near_weight), prefix(near_weight * down)

    def held(theta: float) -> tuple[float, float]:
        """Return the weight inside for the threshold ``theta``, and the weight of the pieces that are partly inside."""
        full = down.searchsorted(-(theta + 0.5), side="right")
        some = down.searchsorted(-(theta - 0.5), side="left")
        partial = float(sums[some] - sums[full])
        return before + float(sums[full] - moments[some] + moments[full]) + partial * (0.5 - theta), partial

    before, theta, low, high = float(total[first]), 0.0, -0.5, 0.5
    for _ in range(60):
        inside, partial = held(theta)
        if abs(inside - stop) <= 1e-13 * stop:
            break
        low, high = (theta, high) if inside > stop else (low, theta)
        # Between two kinks, the weight inside decreases by ``partial`` per unit of theta.
        theta += (inside - stop) / partial if partial > 0 else np.inf
        if not low < theta < high:
            theta = (low + high) / 2
    share = np.zeros(score.size)
    share[:first] = 1.0
    share[first:last] = np.minimum(np.maximum((0.5 - theta) - down, 0.0), 1.0)
    # For a valid minorant the total must not exceed ``stop``.
    return share * min(1.0, stop / float(share @ weight))


# Selection of the positives with the lowest scores, which are those above a true-positive rate.


class Selected(NamedTuple):
    """Rows of positives, the weight of each that is selected, and the sum of these weights."""

    rows: Index
    weight: Array
    total: float


@dataclass(frozen=True)
class _Mirrored:
    """Positives in the role of the negatives: with minus the scores, :func:`cut` ranks them from the lowest score."""

    negative: Index
    is_negative: Bools
    weight: Array
    n: float

    @property
    def n_negative(self) -> int:
        """Number of rows."""
        return self.negative.size


Ranked = BoundLoss | _Mirrored


class LowestPositives:
    """Positives of the lowest scores with a share ``1 - min_tpr`` of the weight.

    A threshold below a positive of these ranks has a true-positive rate above ``min_tpr``. A positive that straddles
    the end is selected in part, and tied positives share their selected weight, as the negatives of a window do. With
    ``soft_tail``, the other positives have the share ``size / rank``, from the lowest score, instead of 0.
    """

    def __init__(self, sample: BoundLoss, min_tpr: float, soft_tail: bool = False) -> None:
        self._all = Selected(sample.positive, sample.positive_weight, sample.m)
        self.size = sample.m if min_tpr == 0 else window_end(sample.m, 1.0 - min_tpr)
        self.is_part, self._soft_tail = self.size < sample.m, soft_tail
        if self.is_part:
            is_positive = ~sample.is_negative & (sample.weight > 0)
            self._mirrored = _Mirrored(sample.positive, is_positive, sample.weight, sample.m)

    def select(self, scores: Array, width: float = 0.0) -> Selected:
        """Return the selected positives, in ascending order of score unless all are selected.

        With ``width > 0`` the end is soft: a positive of score ``s`` is selected with the share
        ``clip(1/2 + (theta - s)/width, 0, 1)``, where ``theta`` is such that the total weight does not change.
        """
        if not self.is_part:
            return self._all
        if self._soft_tail:
            return self._with_tail(scores)
        pieces = cut(-scores, self._mirrored, 0.0, self.size, width=width)
        weight = pieces.window_row_weights()
        rows = weight > 0
        return Selected(pieces.rows[rows], weight[rows], float(weight.sum()))

    def _with_tail(self, scores: Array) -> Selected:
        pieces = cut(-scores, self._mirrored, 0.0, self._mirrored.n, merge_ties=True)
        weight = pieces.row_coefficients(np.diff(soft_rank(prefix(pieces.weight), self.size)))
        return Selected(pieces.rows, weight, float(weight.sum()))


# Cumulative sums of the scores of one class in descending order.


class CumulativeScores:
    """Rows of one class in descending order of score, with cumulative sums.

    A position is a cumulative weight: position ``t`` selects the top rows of total weight ``t``, the last row possibly
    in part. Boundary ``i`` is the position after the ``i`` highest-scored rows. Without weights, ``scores`` are sorted
    in place.
    """

    def __init__(self, scores: Array, weight: Array | None) -> None:
        self.weighted = weight is not None  # whether a row can be selected in part
        if weight is None:
            # Sorting values is several times faster than argsort.
            scores.sort()
            self.rising = scores
            self.falling = self.rising[::-1]
            self._position = None
            self.total = prefix(self.falling)
        else:
            order = np.argsort(-scores, kind="stable")
            self.falling = scores[order]
            self.rising = self.falling[::-1]
            self._position = prefix(weight[order])
            self.total = prefix(weight[order] * self.falling)

    @property
    def weight(self) -> float:
        """Total weight of the rows, the last position."""
        return float(self.size if self._position is None else self._position[-1])

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.falling.size

    def position(self, boundary: Index) -> Array:
        """Return the weight above each boundary."""
        return boundary.astype(np.float64) if self._position is None else self._position[boundary]

    def total_at(self, position: Array) -> Array:
        """Return the sum of weight times score above each position."""
        if self._position is None:
            return self.total[np.rint(position).astype(np.intp)]
        return np.interp(position, self._position, self.total)

    def count_above(self, level: Array) -> Index:
        """Return the number of rows with a score above each level."""
        return self.size - np.searchsorted(self.rising, level, "right")

    def cut(self, position: float) -> tuple[float, float]:
        """Return the score above which rows are selected at a position, and the selected fraction of rows tied at it.

        Tied rows are selected in equal proportion.
        """
        if position <= 0:
            return np.inf, 0.0
        last = np.ceil(position) if self._position is None else self._position.searchsorted(position, "left")
        level = self.falling[min(int(last), self.size) - 1]
        start, stop = (self.size - int(self.rising.searchsorted(level, side)) for side in ("right", "left"))
        if self._position is not None:
            start, stop = self._position[start], self._position[stop]
        return float(level), min(float((position - start) / (stop - start)), 1.0)
