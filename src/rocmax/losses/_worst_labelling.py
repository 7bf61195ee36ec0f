"""Exact search for the most violated labelling of a measure of true and false positives.

For a table ``(tp, fp)`` only the ``tp`` highest-scored positives and the ``fp`` highest-scored negatives matter, so the
maximum over all labellings is a maximum over two positions. It is found by branch and bound: rectangles of positions,
each with an upper bound, are split until only the best table remains. All pairs of positions are enumerated only for
small samples, where this is fastest.

If the error is concave in ``fp``, the best ``fp`` for a given ``tp`` is found by bisection, and only intervals of
``tp`` are split. If it is also convex in ``tp``, as for F-beta, so is its maximum over ``fp``, which on an interval is
at most its chord; the sum of the labelled scores of the positives is concave, so the maximum of both is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from rocmax._typing import Array, Index
from rocmax.losses._cumulative import CumulativeScores

# Up to this number of tables, all are enumerated.
_SMALL = 30_000
# Number of parts into which a rectangle is split along each side.
_PARTS = 8
# Number of intervals of true positives at the beginning, and of parts into which one is split. The time of a step
# hardly depends on their number up to about this.
_INTERVALS, _INTERVAL_PARTS = 512, 64


class Plane(NamedTuple):
    """Upper bound of the error on rectangles: ``level + tp_slope * (t - t1) + fp_slope * (f - f1)``."""

    level: Array
    tp_slope: Array
    fp_slope: Array


class TableError(Protocol):
    """Interface of a measure for the search: the error, and bounds of it on rectangles of tables.

    ``saddle`` is whether the error is convex in ``tp`` and concave in ``fp``.
    """

    def error(self, tp: Array, fp: Array) -> Array:
        """Return one minus the measure."""

    def plane(self, t1: Array, t2: Array, f1: Array, f2: Array) -> Plane:
        """Return a plane above the error on each rectangle."""

    saddle: bool

    def rise(self, tp: Array, f1: Array, f2: Array) -> Array:
        """Return the error at ``f2`` minus that at ``f1``, if the error is convex in ``tp`` and concave in ``fp``."""

    def inside(self, tp: Array, f1: Array, f2: Array, score: Array) -> Sequence[Array]:
        """Return candidates for ``fp`` between two boundaries of one negative that may be better than both ends."""


class Table(NamedTuple):
    """Table with its value and the weights of the true and false positives."""

    value: float
    tp: float
    fp: float


def best_table(
    measure: TableError, positives: CumulativeScores, negatives: CumulativeScores, shift: float = 0.0
) -> Table:
    """Maximise ``error + (sum of the labelled scores - sum of the positives' scores) / m``.

    ``shift`` is added to all scores.
    """
    if (positives.size + 1) * (negatives.size + 1) <= _SMALL and not negatives.weighted:
        return _look_at_all(measure, positives, negatives, shift)
    search = _Search(measure, positives, negatives, shift)
    if measure.saddle:
        count = min(_INTERVALS, positives.size)
        ends = search.split_intervals((np.arange(count + 1) * positives.size // count)[:, None])
        while ends.shape[1]:
            parts = np.arange(_INTERVAL_PARTS + 1)[:, None]
            ends = search.split_intervals(ends[0] + parts * (ends[1] - ends[0]) // _INTERVAL_PARTS)
        return search.best
    cells = np.array([[0], [positives.size], [0], [negatives.size]])
    while cells.shape[1]:
        cells = search.refine(cells)
    return search.best


def _look_at_all(measure: TableError, positives: CumulativeScores, negatives: CumulativeScores, shift: float) -> Table:
    m = positives.weight
    t, f = (ladder.position(np.arange(ladder.size + 1)) for ladder in (positives, negatives))
    gain_t = (positives.total - positives.total[-1] + shift * (t - m)) / m
    gain_f = (negatives.total + shift * f) / m
    value = measure.error(t[:, None], f[None, :])
    value += gain_t[:, None]
    value += gain_f
    i, j = divmod(int(value.argmax()), f.size)
    return Table(float(value[i, j]), float(t[i]), float(f[j]))


class _Search:
    """State of a search: the sorted scores and the best table so far."""

    def __init__(
        self, measure: TableError, positives: CumulativeScores, negatives: CumulativeScores, shift: float
    ) -> None:
        self._measure, self._positives, self._negatives, self._shift = measure, positives, negatives, shift
        self._m = positives.weight
        size = sum(ladder.weight * float(np.abs(ladder.falling[[0, -1]]).max()) for ladder in (positives, negatives))
        self._rounding = 4e-16 * (1.0 + size / self._m)
        self.best = Table(-np.inf, 0.0, 0.0)

    def split_intervals(self, points: Index) -> Index:
        """Find the best ``fp`` at each point; return the intervals between points in a column that must be split.

        Points are numbers of positives, in ascending order in each column.
        """
        highest = self._best_over_fp(points.ravel()).reshape(points.shape)
        longer = np.nonzero(points[1:] - points[:-1] > 1)
        if not longer[0].size:
            return np.empty((2, 0), dtype=np.intp)
        ends = np.array([points[:-1][longer], points[1:][longer]])
        low, high = highest[:-1][longer], highest[1:][longer]
        t = self._positives.position(ends)
        slope = (high - low) / (t[1] - t[0])
        bound = low - slope * t[0] + self._along(self._positives, ends, slope)[1]
        bound -= (self._positives.total[-1] + self._shift * self._m) / self._m
        return ends[:, bound > self.best.value + self._rounding]

    def _best_over_fp(self, i: Index) -> Array:
        """Return the maximum over ``fp`` of error plus gain of the negatives for numbers of positives, by bisection."""
        t, size = self._positives.position(i), self._negatives.size
        low = np.zeros(i.size, dtype=np.intp)
        # From the largest power of two: add each step after which the sum still increases.
        for step in 1 << np.arange(size.bit_length())[::-1]:
            last = np.minimum(low + (step - 1), size - 1)
            f1, f2 = self._negatives.position(last), self._negatives.position(last + 1)
            gain = (self._negatives.falling[last] + self._shift) * ((f2 - f1) / self._m)
            better = self._measure.rise(t, f1, f2) + gain > 0
            better &= low + step <= size
            low += step * better
        f = self._negatives.position(low)
        highest = self._compare(i, f, self._negatives.total[low] + self._shift * f)
        if self._negatives.weighted:
            for j in (low - 1, low):
                inside = np.flatnonzero((j >= 0) & (j < size))
                for part in self._look_inside(i[inside], j[inside]):
                    highest[inside] = np.maximum(highest[inside], part)
        return highest

    def refine(self, cells: Index) -> Index:
        """Evaluate the cells, drop those that cannot contain a better table, and split the rest."""
        t = self._positives.position(cells[:2])
        f = self._negatives.position(cells[2:])
        plane = self._measure.plane(*t, *f)
        i, gain_t = self._along(self._positives, cells[:2], plane.tp_slope)
        j, gain_f = self._along(self._negatives, cells[2:], plane.fp_slope)
        bound = plane.level + gain_t - plane.tp_slope * t[0] + gain_f - plane.fp_slope * f[0]
        bound -= (self._positives.total[-1] + self._shift * self._m) / self._m
        # The plane is close to the error, so its maximiser is a good candidate.
        self._consider(i, j)
        cells = cells[:, bound > self.best.value + self._rounding]
        final = (cells[1] - cells[0] <= 1) & (cells[3] - cells[2] <= 1)
        for i in cells[:2, final]:
            self._consider(i, cells[2, final])
            self._consider(i, cells[3, final])
            before_end = cells[2, final] < self._negatives.size
            self._look_inside(i[before_end], cells[2, final][before_end])
        return _split(cells[:, ~final])

    def _along(self, ladder: CumulativeScores, ends: Index, slope: Array) -> tuple[Index, Array]:
        """Maximise gain plus slope times position between two boundaries; the sum is concave in the position."""
        i = np.clip(ladder.count_above(-slope * self._m - self._shift), *ends)
        position = ladder.position(i)
        return i, (ladder.total[i] + self._shift * position) / self._m + slope * position

    def _consider(self, i: Index, j: Index) -> None:
        """Compare the best table with those at the given boundaries."""
        f = self._negatives.position(j)
        self._compare(i, f, self._negatives.total[j] + self._shift * f)

    def _look_inside(self, i: Index, j: Index) -> list[Array]:
        """Compare the best table with those that include a part of the negative after boundary ``j``.

        The result is that of :meth:`_compare` for each of the candidates.
        """
        f1, f2 = self._negatives.position(j), self._negatives.position(j + 1)
        score = self._negatives.falling[j] + self._shift
        return [
            self._compare(i, f, self._negatives.total[j] + self._shift * f1 + (f - f1) * score)
            for f in self._measure.inside(self._positives.position(i), f1, f2, score)
        ]

    def _compare(self, i: Index, f: Array, gain_f: Array) -> Array:
        """Compare the best table with some others; return their values without the gain of the positives."""
        t = self._positives.position(i)
        part = self._measure.error(t, f) + gain_f / self._m
        if i.size == 0:
            return part
        gain_t = self._positives.total[i] - self._positives.total[-1] + self._shift * (t - self._m)
        value = part + gain_t / self._m
        k = int(value.argmax())
        if value[k] > self.best.value:
            self.best = Table(float(value[k]), float(t[k]), float(f[k]))
        return part


def _split(cells: Index) -> Index:
    """Split each cell along both sides; adjacent cells share a boundary, so the parts cover the cell."""
    parts = np.arange(_PARTS + 1)[:, None]
    t, f = (low + parts * (high - low) // _PARTS for low, high in (cells[:2], cells[2:]))
    # If a side is shorter than the number of parts, empty parts are dropped; a side of length zero keeps one part.
    t_kept, f_kept = ((np.diff(e, axis=0) > 0) | ((e[-1] == e[0]) & (parts[1:] == 1)) for e in (t, f))
    kept = t_kept[:, None] & f_kept[None]
    sides = (t[:-1, None], t[1:, None], f[None, :-1], f[None, 1:])
    return np.array([np.broadcast_to(side, kept.shape)[kept] for side in sides])
