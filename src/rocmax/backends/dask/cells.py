"""Cells of an ROC curve: bins of scores, which become smaller until the distinct scores in them can be fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._packages import need
from rocmax._typing import Array
from rocmax._validate import positive_index
from rocmax.backends.dask.partitions import check_some_rows, score_pieces
from rocmax.backends.dask.scores import (
    Counts,
    Distinct,
    count,
    distinct,
    join_counts,
    join_distinct,
    join_summaries,
    load_scores,
    summarize,
)
from rocmax.backends.dask.tasks import Tasks
from rocmax.losses.bins import ScoreGrid, check_bins

# Distinct scores that the driver fetches at a time, and the number of bins for those cells that have more.
_FETCHED, _CUTS = 1_000_000, 4096
# Cells with fewer scores than this part of the limit are fetched together.
_SHARE = 0.5
_SIGN = np.uint64(1 << 63)


class Cells(NamedTuple):
    """Ranges of scores in descending order, and what the ROC curve does there.

    Attributes
    ----------
    low, high : ndarray
        Smallest and largest score. If they are equal, the cell is a point of the curve.
    fp, tp : ndarray
        Weights of negatives and positives above the cell.
    negative, positive : ndarray
        Weights of negatives and positives in the cell.
    size : ndarray
        Upper bound on the number of distinct scores.
    """

    low: Array
    high: Array
    fp: Array
    tp: Array
    negative: Array
    positive: Array
    size: Array

    def take(self, index: Any) -> Cells:
        """Return some of the cells."""
        return Cells(*(column[index] for column in self))


class ScoreCells:
    """Scores of dask collections in cells. Partitions are read once, and kept on the workers while this object exists.

    Parameters
    ----------
    y_true, y_score, sample_weight : dask Array or Series
        Labels, scores and weights, or None.
    pos_label : object
        Label of the positive class, or None.
    n_bins : int
        Number of cells.
    timeout : float
        Seconds for which workers are awaited.

    Attributes
    ----------
    cells : Cells
        The cells that are not empty.
    n, m : float
        Weights of all negatives and of all positives.
    """

    def __init__(
        self, y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any, n_bins: int, timeout: float
    ) -> None:
        check_bins(n_bins)
        load = need("dask").delayed(load_scores, pure=False)
        pieces = score_pieces(y_true, y_score, sample_weight)
        self._tasks = Tasks(timeout)
        self._parts = self._tasks.persist([load(number, *piece) for number, piece in enumerate(pieces)])
        labels, sample = self._tasks.reduce(summarize, join_summaries, self._parts)
        check_some_rows(labels.labels)
        self._positive = labels.labels[positive_index(labels.labels, pos_label)]
        counts = self._count(_first_edges(sample, n_bins))
        whole = np.zeros(1), np.zeros(1), counts.negative.sum(keepdims=True), counts.positive.sum(keepdims=True)
        self.n, self.m = float(whole[2][0]), float(whole[3][0])
        everything = Cells(sample.min(keepdims=True), sample.max(keepdims=True), *whole, counts.size.sum(keepdims=True))
        self.cells = _inside(everything, counts)

    def parts_of(self, cells: Cells) -> Iterator[Cells]:
        """Return the parts of cells: their distinct scores, in portions of limited size, or smaller cells."""
        small = cells.size <= _SHARE * _FETCHED
        if not small.all():
            large = cells.take(~small)
            yield _inside(large, self._count(_edges(large)))
        cells = cells.take(small)
        portion = np.cumsum(cells.size) // (_SHARE * _FETCHED)
        for number in np.unique(portion):
            yield self._fetched(cells.take(portion == number))

    def _count(self, edges: Array) -> Counts:
        found: Counts = self._tasks.reduce(count, join_counts, self._parts, edges, self._positive)
        return found

    def _fetched(self, cells: Cells) -> Cells:
        ranges = cells.low[::-1], cells.high[::-1]
        found: Distinct = self._tasks.reduce(distinct, join_distinct, self._parts, *ranges, self._positive)
        scores, negative, positive = found
        return _inside(cells, Counts(negative, positive, np.ones(scores.size), scores, scores))


def _first_edges(sample: Array, n_bins: int) -> Array:
    """Return the ends of bins that cover all scores."""
    low, high = float(sample.min()), float(sample.max())
    if np.isfinite(2 * (high - low)):
        inner = ScoreGrid.covering(sample, n_bins).edges[:-1]
    else:
        inner = _between(low, high, n_bins)
    return np.unique(np.append(inner, np.nextafter(high, np.inf)))


def _edges(cells: Cells) -> Array:
    """Return the ends of smaller bins inside cells."""
    numbers = np.maximum(4, _CUTS * cells.size / cells.size.sum()).astype(np.intp)
    found = [np.nextafter(cells.high, np.inf)]
    for low, high, number in zip(cells.low, cells.high, numbers, strict=True):
        # Bins of equal width serve most scores. In the order of the representable numbers, few rounds suffice for all.
        first, last = _ranks(np.array([low, high]))
        step = max(np.uint64(1), (last - first) // np.uint64(number))
        found += [_between(low, high, number), _numbers(np.arange(first, last, step, dtype=np.uint64))]
    return np.unique(np.concatenate(found))


def _between(low: float, high: float, number: int) -> Array:
    """Return numbers of equal distance from ``low`` to ``high``, without the latter."""
    share = np.arange(number) / number
    return np.clip(low * (1.0 - share) + high * share, low, high)


def _ranks(values: Array) -> NDArray[np.uint64]:
    """Return the ranks of numbers among all that can be represented."""
    bits = values.view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _numbers(ranks: NDArray[np.uint64]) -> Array:
    """Return the numbers of given ranks."""
    return np.where(ranks & _SIGN, ranks ^ _SIGN, ~ranks).view(np.float64)


def _inside(cells: Cells, counts: Counts) -> Cells:
    """Return the bins that are inside of cells and not empty, given in ascending order."""
    counts = Counts(*(column[counts.size > 0][::-1] for column in counts))
    cell = cells.low.size - np.searchsorted(cells.low[::-1], counts.low, side="right")
    inside = counts.low <= cells.high[np.minimum(cell, cells.low.size - 1)]
    inside &= cell < cells.low.size
    counts, cell = Counts(*(column[inside] for column in counts)), cell[inside]
    first = np.searchsorted(cell, cell)
    fp, tp = (np.cumsum(weight) - weight for weight in counts[:2])
    fp, tp = cells.fp[cell] + fp - fp[first], cells.tp[cell] + tp - tp[first]
    return Cells(counts.low, counts.high, fp, tp, counts.negative, counts.positive, counts.size)
