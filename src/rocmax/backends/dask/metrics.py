"""Measures of scores in dask collections: from histograms with an error bound, then exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._packages import need
from rocmax._typing import Array
from rocmax._validate import positive_index
from rocmax._window import check_floor, check_window
from rocmax.backends.dask.partitions import split
from rocmax.backends.dask.tasks import Tasks
from rocmax.losses.bins import Bins, ScoreGrid

# Rows that the driver fetches at a time for an exact value.
_FETCHED = 1_000_000


class Estimate(NamedTuple):
    """Value of a measure and a bound on its error, which is zero for an exact value.

    Examples
    --------
    >>> from rocmax.backends.dask import Estimate
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

    Parameters
    ----------
    y_true : dask Array or Series of shape (n_samples,)
        Two classes, of any type.
    y_score : dask Array or Series of shape (n_samples,)
        Higher means more likely positive; with the partitions of ``y_true``.
    sample_weight : dask Array or Series of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    n_bins : int, default=8192
        Number of bins of the histogram for each class.
    exact : bool, default=True
        Whether the rows of bins with both classes are fetched, at most a million at a time, for the exact value. If
        False, the value is that with ties within bins, and ``error`` bounds its difference from the exact value.
    timeout : float, default=60.0
        Seconds for which workers are awaited if a cluster has none, or if none of them does anything, and after which
        a worker that sends no heartbeats is given up, but at least 10.

    Returns
    -------
    Estimate
        The value, and a bound on its error.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax.backends.dask import roc_auc_score
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
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=1.0
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    min_tpr : float, default=0.0
        Lower end of the range of true-positive rates, at least 0 and below 1.
    sample_weight : dask Array or Series of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    n_bins : int, default=8192
        Number of bins of the histogram for each class.
    exact : bool, default=True
        Whether the rows of bins with both classes are fetched, at most a million at a time, for the exact value. If
        False, the value is that with ties within bins, and ``error`` bounds its difference from the exact value.
    timeout : float, default=60.0
        Seconds for which workers are awaited if a cluster has none, or if none of them does anything, and after which
        a worker that sends no heartbeats is given up, but at least 10.

    Returns
    -------
    Estimate
        The value, and a bound on its error.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax.backends.dask import partial_auc_score
    >>> y, scores = da.from_array([0, 1, 0, 1], chunks=2), da.from_array([0.1, 0.4, 0.35, 0.2], chunks=2)
    >>> partial_auc_score(y, scores, max_fpr=0.5)
    Estimate(value=0.5, error=0.0)
    """
    check_window(min_fpr, max_fpr, any_width=True)
    check_floor(min_tpr)
    found = _Histogram(y_true, y_score, sample_weight, pos_label, n_bins, timeout)
    negative, positive = found.weights()
    n, m = float(negative.sum()), float(positive.sum())
    low, high = n * min_fpr, n * max_fpr
    # The area above the lower end of the range of true-positive rates.
    fp, tp = np.cumsum(negative) - negative, np.cumsum(positive) - positive - m * min_tpr
    tied = _areas(fp, tp, negative, positive, low, high)
    width = np.clip(fp + negative, low, high) - np.clip(fp, low, high)
    scale = m * (1.0 - min_tpr) * (high - low)
    if not exact:
        # The curve of a bin lies inside a rectangle above its first point.
        least, largest = (width * np.maximum(height, 0.0) for height in (tp, tp + positive))
        error = np.maximum(tied - least, largest - tied)
        return Estimate(float(tied.sum()) / scale, float(error.sum()) / scale)
    area = float(tied.sum())
    for cells in found.batches(np.flatnonzero((width > 0) & (positive > 0) & (tp + positive > 0))):
        cell, neg, pos = found.blocks(cells)
        # Blocks of one bin start at the corner of the bin.
        first = np.searchsorted(cell, cell)
        x, y = (np.cumsum(values) - values for values in (neg, pos))
        x, y = fp[cell] + x - x[first], tp[cell] + y - y[first]
        area += float(_areas(x, y, neg, pos, low, high).sum() - tied[cells].sum())
    return Estimate(area / scale, 0.0)


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
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    n_bins : int, default=8192
        Number of bins of the histogram for each class.
    exact : bool, default=True
        Whether the rows of the bin with the threshold are fetched for the exact value. If False, ``error`` bounds the
        difference from the exact value.
    timeout : float, default=60.0
        Seconds for which workers are awaited, as in :func:`partial_auc_score`.

    Returns
    -------
    Estimate
        The value, and a bound on its error.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax.backends.dask import tpr_at_fpr
    >>> y, scores = da.from_array([0, 1, 0, 1], chunks=2), da.from_array([0.1, 0.4, 0.35, 0.2], chunks=2)
    >>> tpr_at_fpr(y, scores, max_fpr=0.4)
    Estimate(value=0.5, error=0.0)
    """
    found = _Histogram(y_true, y_score, sample_weight, pos_label, n_bins, timeout)
    negative, positive = found.weights()
    n, m = float(negative.sum()), float(positive.sum())
    allowed = n * max_fpr * (1 + 1e-12)
    fp = np.cumsum(negative)
    cell = int(np.searchsorted(fp, allowed, side="right"))
    reached = float(positive[:cell].sum()) / m
    if cell == fp.size:
        return Estimate(reached, 0.0)
    if not exact:
        error = float(positive[cell]) / m
        return Estimate(reached, error)
    _, neg, pos = found.blocks(np.array([cell]))
    below = fp[cell] - negative[cell] + np.cumsum(neg) <= allowed
    return Estimate(reached + float(pos[below].sum()) / m, 0.0)


class _Histogram:
    """Histogram of scores in partitions, and their rows in some bins. Bins are numbered from the highest score."""

    def __init__(
        self, y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any, n_bins: int, timeout: float
    ) -> None:
        columns = y_score.to_frame() if hasattr(y_score, "to_frame") else y_score[:, None]
        self._parts = split(columns, y_true, sample_weight)
        self._tasks = Tasks(timeout)
        facts = self._each(_facts)
        classes = np.unique(np.concatenate([labels for labels, _, _ in facts if labels.size] or [np.empty(0)]))
        self._positive = classes[positive_index(classes, pos_label)]
        self.grid = ScoreGrid.covering(np.concatenate([sample for _, sample, _ in facts]), n_bins)
        parts = self._each(_bins, self.grid, self._positive)
        self.bins: Bins = sum(parts[1:], parts[0])
        self._row_weight = float(self.bins.weight.sum()) / sum(size for _, _, size in facts)

    def weights(self) -> tuple[Array, Array]:
        """Return the weights of negatives and positives in each bin."""
        n_bins = self.grid.n_bins
        return self.bins.weight[:n_bins][::-1], self.bins.weight[n_bins:][::-1]

    def batches(self, cells: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Divide bins so that their rows fit into memory."""
        negative, positive = self.weights()
        rows = (negative + positive)[cells] / self._row_weight
        group = (np.cumsum(rows) // _FETCHED).astype(np.intp)
        return [cells[group == g] for g in np.unique(group)]

    def blocks(self, cells: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array, Array]:
        """Return bin, weight of negatives and weight of positives of each distinct score in some bins."""
        parts = self._each(_rows, self.grid, self.grid.n_bins - 1 - cells, self._positive)
        score, label, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        values, place = np.unique(-score, return_inverse=True)
        cell = self.grid.n_bins - 1 - self.grid.cells(-values, np.zeros(values.size, dtype=bool))
        positive = np.bincount(place, weight * label, values.size).astype(np.float64)
        return cell, np.bincount(place, weight * ~label, values.size).astype(np.float64), positive

    def _each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return the value of a function for each partition."""
        delayed = need("dask").delayed(function)
        return self._tasks.compute([delayed(part, *args) for part in self._parts], self._parts)


def _facts(part: Any) -> tuple[NDArray[Any], Array, int]:
    """Return the labels, and some of the scores with the smallest and the largest one."""
    scores = _scores(part)
    labels = np.unique(part.y if part.weight is None else part.y[part.weight > 0])
    if not scores.size:
        return labels, scores, 0
    return labels, np.append(scores[:: max(1, scores.size // 512)], [scores.min(), scores.max()]), scores.size


def _scores(part: Any) -> Array:
    scores = np.asarray(part.X, dtype=np.float64)[:, 0]
    if not np.isfinite(scores).all():
        raise ValueError(f"partition {part.number}: y_score must be finite; got NaN or infinity")
    return scores


def _bins(part: Any, grid: ScoreGrid, positive: Any) -> Bins:
    return Bins.count(grid, _scores(part), part.y == positive, part.weight)


def _rows(part: Any, grid: ScoreGrid, cells: Any, positive: Any) -> tuple[Array, NDArray[np.bool_], Array]:
    scores = _scores(part)
    inside = np.isin(grid.cells(scores, np.zeros(scores.size, dtype=bool)), cells)
    weight = np.ones(scores.size) if part.weight is None else part.weight
    return scores[inside], (part.y == positive)[inside], weight[inside]


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
