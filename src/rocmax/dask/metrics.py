"""Measures of scores in dask collections: from histograms with an error bound, then exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._rounding import DUST
from rocmax._support import Array, Index, check_floor, check_rate, check_window, need
from rocmax._validation import check_flag, positive_index
from rocmax.dask.cluster import LabelSet, Tasks, aligned, check_some_rows, checked_labels, checked_weight
from rocmax.data import DataError
from rocmax.losses.binned import ScoreGrid, check_bins
from rocmax.metrics.curve import distinct_scores

# Scores of partitions on the workers: sorted once, then counted in bins and fetched from them.


@dataclass(frozen=True)
class MeasureRules:
    """Numbers of the measures, each with its meaning."""

    # Scores of several partitions from which the driver estimates their range, and bins for cells that are divided.
    samples: int = 8192
    # Distinct scores that the driver fetches at a time, in cells that have at most half as many.
    fetched: int = 1_000_000


RULES = MeasureRules()


class ScorePartition(NamedTuple):
    """Distinct scores of a partition in ascending order and the sums of their weights, for each of its labels."""

    number: int
    labels: NDArray[Any]
    scores: list[Array]
    weights: list[Array]

    def classes(self, positive: Any) -> Iterator[tuple[bool, Array, Array]]:
        """Return whether a class is the positive one, its scores and their weights."""
        return zip((self.labels == positive).tolist(), self.scores, self.weights, strict=True)


class Summary(NamedTuple):
    """Labels of some partitions and a sample of their scores with the smallest and the largest one."""

    labels: LabelSet
    sample: Array


class Counts(NamedTuple):
    """Weights of both classes in some bins, number of scores, and the smallest and the largest score."""

    negative: Array
    positive: Array
    size: Array
    low: Array
    high: Array


class Distinct(NamedTuple):
    """Distinct scores in ascending order, and the weights of both classes."""

    scores: Array
    negative: Array
    positive: Array


def load_scores(number: int, y_score: Any, y_true: Any, sample_weight: Any) -> ScorePartition:
    """Check the scores, labels and weights of a partition, and sort the scores; errors name the partition."""
    scores = _numbers(number, y_score)
    y = checked_labels(number, "y_true", y_true, scores.size)
    weight = checked_weight(number, sample_weight, scores.size)
    if weight is not None:
        used = weight > 0
        scores, y, weight = scores[used], y[used], weight[used]
    labels = np.unique(y)
    if labels.size > 2:
        raise DataError(f"partition {number}: y_true must have two classes; got {labels.size}: {labels[:5].tolist()}")
    found = [
        distinct_scores(scores[rows], None if weight is None else weight[rows]) for rows in (y == v for v in labels)
    ]
    return ScorePartition(number, labels, [values for values, _ in found], [sums for _, sums in found])


def summarize(part: ScorePartition) -> Summary:
    """Return labels and a sample of the scores of a partition."""
    scores = np.concatenate([*part.scores, np.empty(0)])
    ends = [values[[0, -1]] for values in part.scores]
    sample = np.concatenate([scores[:: max(1, 16 * scores.size // RULES.samples)], *ends])
    return Summary(LabelSet(part.number, part.labels), sample)


def join_summaries(parts: list[Summary]) -> Summary:
    """Return labels and a sample of the scores of several partitions."""
    sample = np.concatenate([part.sample for part in parts])
    if sample.size > RULES.samples:
        sample = np.append(sample[:: sample.size // RULES.samples + 1], [sample.min(), sample.max()])
    return Summary(reduce(LabelSet.joined, (part.labels for part in parts)), sample)


def count(part: ScorePartition, edges: Array, positive: Any) -> Counts:
    """Count scores in bins ``edges[i] <= score < edges[i + 1]``."""
    n_bins = edges.size - 1
    weights = np.zeros((2, n_bins))
    size, low, high = np.zeros(n_bins), np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    for is_positive, scores, weight in part.classes(positive):
        starts = np.searchsorted(scores, edges)
        sizes = np.diff(starts)
        used = sizes > 0
        cell = np.repeat(np.arange(n_bins), sizes)
        weights[int(is_positive)] += np.bincount(cell, weight[starts[0] : starts[-1]], n_bins)
        size += sizes
        low[used] = np.minimum(low[used], scores[starts[:-1][used]])
        high[used] = np.maximum(high[used], scores[starts[1:][used] - 1])
    return Counts(weights[0], weights[1], size, low, high)


def join_counts(parts: list[Counts]) -> Counts:
    """Return the counts of several partitions."""
    negative, positive, size = (np.sum([part[i] for part in parts], axis=0) for i in range(3))
    return Counts(
        negative,
        positive,
        size,
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
    )


def distinct(part: ScorePartition, low: Array, high: Array, positive: Any) -> Distinct:
    """Return the distinct scores in disjoint ranges, ``low[i] <= score <= high[i]`` in ascending order."""
    found = [Distinct(*np.empty((3, 0)))]
    for is_positive, scores, weight in part.classes(positive):
        inside = _ranges(np.searchsorted(scores, low), np.searchsorted(scores, high, side="right"))
        weights = np.zeros((2, inside.size))
        weights[int(is_positive)] = weight[inside]
        found.append(Distinct(scores[inside], *weights))
    return join_distinct(found)


def join_distinct(parts: list[Distinct]) -> Distinct:
    """Return the distinct scores of several partitions."""
    scores, negative, positive = (np.concatenate(column) for column in zip(*parts, strict=True))
    values, place = np.unique(scores, return_inverse=True)
    return Distinct(values, _sums(place, negative, values.size), _sums(place, positive, values.size))


def _numbers(number: int, y_score: Any) -> Array:
    values = np.asarray(y_score)
    if values.ndim != 1 or np.iscomplexobj(values):
        raise DataError(
            f"partition {number}: y_score must have one number for each row; got shape {values.shape}, {values.dtype}"
        )
    try:
        # The sum gives both zeros the same sign.
        scores: Array = values.astype(np.float64) + 0.0
    except (TypeError, ValueError) as error:
        raise DataError(f"partition {number}: y_score must contain numbers; got {values.dtype}: {error}") from error
    if not np.isfinite(scores).all():
        raise DataError(f"partition {number}: y_score must be finite; got NaN or infinity")
    return scores


def _sums(place: Index, weight: Array, size: int) -> Array:
    """Return the sum of the weights at each place."""
    return np.bincount(place, weight, size).astype(np.float64, copy=False)


def _ranges(starts: Index, stops: Index) -> Index:
    """Return the numbers from each start to its stop."""
    sizes = stops - starts
    found: Index = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return found


# Cells of an ROC curve: bins of scores, which become smaller until the distinct scores in them can be fetched.


class Cells(NamedTuple):
    """Ranges of scores in descending order, and what the ROC curve does there.

    If the smallest score is the largest one, the cell is a point of the curve. ``fp`` and ``tp`` are the weights of
    negatives and positives above the cell, ``size`` a bound on the number of distinct scores.
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
    """Scores of dask collections in cells that are not empty; the weights of all negatives and positives are n and m.

    Partitions are read once, and kept on the workers while this object exists.
    """

    def __init__(
        self, y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any, n_bins: int, timeout: float
    ) -> None:
        check_bins(n_bins)
        load = need("dask").delayed(load_scores, pure=False)
        delayed = aligned(y_score=y_score, y_true=y_true, sample_weight=sample_weight)
        self._tasks = Tasks(timeout)
        self._parts = self._tasks.persist([load(number, *one) for number, one in enumerate(delayed)])
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
        small = cells.size <= RULES.fetched / 2
        if not small.all():
            large = cells.take(~small)
            yield _inside(large, self._count(_edges(large)))
        cells = cells.take(small)
        portion = np.cumsum(cells.size) // (RULES.fetched / 2)
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
    numbers = np.maximum(4, RULES.samples * cells.size / cells.size.sum()).astype(np.intp)
    found = [np.nextafter(cells.high, np.inf)]
    for low, high, number in zip(cells.low, cells.high, numbers, strict=True):
        # Bins of equal width serve most scores. In the order of the representable numbers, few rounds suffice for all.
        first, last = _ranks(np.array([low, high]))
        step = max(np.uint64(1), (last - first) // np.uint64(number))
        found += [_between(low, high, number), _numbers_of_ranks(np.arange(first, last, step, dtype=np.uint64))]
    return np.unique(np.concatenate(found))


def _between(low: float, high: float, number: int) -> Array:
    """Return numbers of equal distance from ``low`` to ``high``, without the latter."""
    share = np.arange(number) / number
    return np.clip(low * (1.0 - share) + high * share, low, high)


def _ranks(values: Array) -> NDArray[np.uint64]:
    """Return the ranks of numbers among all that can be represented."""
    bits, sign = values.view(np.uint64), np.uint64(1 << 63)
    return np.where(bits & sign, ~bits, bits | sign)


def _numbers_of_ranks(ranks: NDArray[np.uint64]) -> Array:
    """Return the numbers of given ranks."""
    sign = np.uint64(1 << 63)
    return np.where(ranks & sign, ranks ^ sign, ~ranks).view(np.float64)


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


# Measures of scores in dask collections: from histograms with an error bound, then exact.


class Estimate(NamedTuple):
    """Value of a measure and a bound on its error, which is zero for an exact value.

    Examples
    --------
    >>> from rocmax.dask import Estimate
    >>> Estimate(0.75, 0.001).value
    0.75
    """

    value: float
    error: float


def roc_auc_score(
    y_true: Any,
    y_score: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 8192,
    exact: bool = True,
    timeout: float = 60.0,
) -> Estimate:
    """Area under the ROC curve of scores in a dask collection.

    Each partition is read once. Its distinct scores and their weights stay in the memory of the workers, or of this
    process without a cluster, until the value is known.

    Parameters
    ----------
    y_true : dask Array or Series of shape (n_samples,)
        Two classes, of any type.
    y_score : dask Array or Series of shape (n_samples,)
        Higher means more likely positive; with the partitions of ``y_true``.
    sample_weight : dask Array or Series of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label, n_bins, exact, timeout

    Returns
    -------
    Estimate
        The value, and a bound on its error.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax.dask import roc_auc_score
    >>> y, scores = da.from_array([0, 1, 0, 1], chunks=2), da.from_array([0.1, 0.4, 0.35, 0.2], chunks=2)
    >>> roc_auc_score(y, scores)
    Estimate(value=0.75, error=0.0)
    """
    return partial_auc_score(
        y_true,
        y_score,
        sample_weight=sample_weight,
        pos_label=pos_label,
        n_bins=n_bins,
        exact=exact,
        timeout=timeout,
    )


def partial_auc_score(
    y_true: Any,
    y_score: Any,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 8192,
    exact: bool = True,
    timeout: float = 60.0,
) -> Estimate:
    """Area under the ROC curve between two false-positive rates, divided by the width of the range.

    The definition is that of :func:`rocmax.metrics.partial_auc_score` with ``definition="area"``.

    Parameters
    ----------
    y_true : dask Array or Series of shape (n_samples,)
        Two classes, of any type.
    y_score : dask Array or Series of shape (n_samples,)
        Higher means more likely positive; with the partitions of ``y_true``.
    min_fpr, max_fpr
    min_tpr : float, default=0.0
        Lower end of the range of true-positive rates, at least 0 and below 1.
    sample_weight : dask Array or Series of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label, n_bins, exact, timeout

    Returns
    -------
    Estimate
        The value, and a bound on its error.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax.dask import partial_auc_score
    >>> y, scores = da.from_array([0, 1, 0, 1], chunks=2), da.from_array([0.1, 0.4, 0.35, 0.2], chunks=2)
    >>> partial_auc_score(y, scores, max_fpr=0.5)
    Estimate(value=0.5, error=0.0)
    """
    check_flag("exact", exact)
    check_window(min_fpr, max_fpr, any_width=True)
    check_floor(min_tpr)
    scores = ScoreCells(y_true, y_score, sample_weight, pos_label, n_bins, timeout)
    low, high = scores.n * min_fpr, scores.n * max_fpr
    # The area above the lower end of the range of true-positive rates.
    cells = scores.cells._replace(tp=scores.cells.tp - scores.m * min_tpr)
    scale = scores.m * (1.0 - min_tpr) * (high - low)
    if exact:
        return Estimate(_area(scores, cells, low, high) / scale, 0.0)
    tied = _areas(cells.fp, cells.tp, cells.negative, cells.positive, low, high)
    # The curve of a cell lies inside a rectangle above its first point, and a cell with one score is a straight line.
    width = np.where(cells.low < cells.high, _width(cells, low, high), 0.0)
    least, largest = (width * np.maximum(height, 0.0) for height in (cells.tp, cells.tp + cells.positive))
    error = np.where(width > 0, np.maximum(tied - least, largest - tied), 0.0)
    return Estimate(float(tied.sum()) / scale, float(error.sum()) / scale)


def tpr_at_fpr(
    y_true: Any,
    y_score: Any,
    *,
    max_fpr: float,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 8192,
    exact: bool = True,
    timeout: float = 60.0,
) -> Estimate:
    """Largest true-positive rate of a threshold whose false-positive rate is at most ``max_fpr``.

    The definition is that of :func:`rocmax.metrics.tpr_at_fpr`.

    Parameters
    ----------
    y_true : dask Array or Series of shape (n_samples,)
        Two classes, of any type.
    y_score : dask Array or Series of shape (n_samples,)
        Higher means more likely positive; with the partitions of ``y_true``.
    max_fpr : float
        Limit on the false-positive rate, from 0 to 1.
    sample_weight : dask Array or Series of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label, n_bins, exact, timeout

    Returns
    -------
    Estimate
        The value, and a bound on its error.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax.dask import tpr_at_fpr
    >>> y, scores = da.from_array([0, 1, 0, 1], chunks=2), da.from_array([0.1, 0.4, 0.35, 0.2], chunks=2)
    >>> tpr_at_fpr(y, scores, max_fpr=0.4)
    Estimate(value=0.5, error=0.0)
    """
    check_flag("exact", exact)
    check_rate("max_fpr", max_fpr)
    scores = ScoreCells(y_true, y_score, sample_weight, pos_label, n_bins, timeout)
    allowed = scores.n * max_fpr * (1 + DUST)
    cells = scores.cells
    while True:
        cell = int(np.searchsorted(cells.fp + cells.negative, allowed, side="right"))
        if cell == cells.fp.size:
            return Estimate(float(cells.tp[-1] + cells.positive[-1]) / scores.m, 0.0)
        within = cells.low[cell] < cells.high[cell]
        if not (exact and within):
            error = float(cells.positive[cell]) / scores.m if within else 0.0
            return Estimate(float(cells.tp[cell]) / scores.m, error)
        cells = next(scores.parts_of(cells.take([cell])))


def fpr_at_tpr(
    y_true: Any,
    y_score: Any,
    *,
    min_tpr: float,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 8192,
    exact: bool = True,
    timeout: float = 60.0,
) -> Estimate:
    """Smallest false-positive rate of a threshold whose true-positive rate is at least ``min_tpr``; lower is better.

    The definition is that of :func:`rocmax.metrics.fpr_at_tpr`.

    Parameters
    ----------
    y_true : dask Array or Series of shape (n_samples,)
        Two classes, of any type.
    y_score : dask Array or Series of shape (n_samples,)
        Higher means more likely positive; with the partitions of ``y_true``.
    min_tpr : float
        Required true-positive rate, from 0 to 1.
    sample_weight : dask Array or Series of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label, n_bins, exact, timeout

    Returns
    -------
    Estimate
        The value, and a bound on its error.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax.dask import fpr_at_tpr
    >>> y, scores = da.from_array([0, 1, 0, 1], chunks=2), da.from_array([0.1, 0.4, 0.35, 0.2], chunks=2)
    >>> fpr_at_tpr(y, scores, min_tpr=0.8)
    Estimate(value=0.5, error=0.0)
    """
    check_flag("exact", exact)
    check_rate("min_tpr", min_tpr)
    scores = ScoreCells(y_true, y_score, sample_weight, pos_label, n_bins, timeout)
    required = scores.m * min_tpr * (1 - DUST)
    if required == 0:
        return Estimate(0.0, 0.0)
    cells = scores.cells
    while True:
        # The sums of the parts of a cell can differ from its weight by rounding error.
        cell = min(int(np.searchsorted(cells.tp + cells.positive, required)), cells.tp.size - 1)
        before, inside = float(cells.fp[cell]) / scores.n, float(cells.negative[cell]) / scores.n
        if cells.low[cell] == cells.high[cell]:
            return Estimate(before + inside, 0.0)
        if not exact:
            return Estimate(before, inside)
        cells = next(scores.parts_of(cells.take([cell])))


def _area(scores: ScoreCells, cells: Cells, low: float, high: float) -> float:
    """Return the area below the curve in cells, exactly."""
    tied = _areas(cells.fp, cells.tp, cells.negative, cells.positive, low, high)
    matters = (_width(cells, low, high) > 0) & (cells.positive > 0) & (cells.tp + cells.positive > 0)
    inexact = matters & (cells.low < cells.high)
    parts = scores.parts_of(cells.take(inexact))
    return float(tied[~inexact].sum()) + sum(_area(scores, part, low, high) for part in parts)


def _width(cells: Cells, low: float, high: float) -> Array:
    """Return the part of each cell inside a window of false positives."""
    width: Array = np.clip(cells.fp + cells.negative, low, high) - np.clip(cells.fp, low, high)
    return width


def _areas(x: Array, y: Array, dx: Array, dy: Array, low: float, high: float) -> Array:
    """Return the area below each of some straight lines, from ``(x, y)`` to ``(x + dx, y + dy)``, and above zero.

    Only the part inside a window of ``x`` counts.
    """
    left, right = np.clip(x, low, high), np.clip(x + dx, low, high)
    slope = np.divide(dy, dx, out=np.zeros_like(dy), where=dx > 0)
    start, end = y + slope * (left - x), y + slope * (right - x)
    rise = end - start
    crossing = np.divide(end**2, 2 * rise, out=np.zeros_like(rise), where=(start < 0) & (end > 0))
    result: Array = (right - left) * np.where(start < 0, crossing, (start + end) / 2)
    return result
