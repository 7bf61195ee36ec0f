"""Measures of scores in dask collections: from histograms with an error bound, then exact."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rocmax._typing import Array
from rocmax._validate import check_flag
from rocmax._window import check_floor, check_rate, check_window
from rocmax.backends.dask.cells import Cells, ScoreCells
from rocmax.metrics.curve import DUST


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
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    n_bins : int, default=8192
        Number of bins of the histogram for each class.
    exact : bool, default=True
        Whether the distinct scores of bins with both classes are fetched, at most a million at a time, for the exact
        value; bins with more are divided first. If False, the value is that with ties within bins, and ``error``
        bounds its difference from the exact value.
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
        Whether the distinct scores of bins with both classes are fetched, at most a million at a time, for the exact
        value; bins with more are divided first. If False, the value is that with ties within bins, and ``error``
        bounds its difference from the exact value.
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
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    n_bins : int, default=8192
        Number of bins of the histogram for each class.
    exact : bool, default=True
        Whether the bin with the threshold is divided until it has at most a million distinct scores, which are then
        fetched for the exact value. If False, ``error`` bounds the difference from the exact value.
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
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    n_bins : int, default=8192
        Number of bins of the histogram for each class.
    exact : bool, default=True
        Whether the bin with the threshold is divided until it has at most a million distinct scores, which are then
        fetched for the exact value. If False, ``error`` bounds the difference from the exact value.
    timeout : float, default=60.0
        Seconds for which workers are awaited, as in :func:`partial_auc_score`.

    Returns
    -------
    Estimate
        The value, and a bound on its error.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax.backends.dask import fpr_at_tpr
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
