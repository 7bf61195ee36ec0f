"""Measures of scores in dask collections, from one pass, with a bound on the error."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._support import Array, check_floor, check_rate, check_window, need
from rocmax._validation import check_number, positive_index
from rocmax.dask.cluster import LabelSet, aligned, check_some_rows, checked_labels, checked_weight
from rocmax.data import DataError
from rocmax.metrics.curve import Blocks, Curve
from rocmax.metrics.scores import best_fpr, best_tpr, partial_auc

# Histograms of scores, made on the workers and merged in pairs. With few distinct scores, each has its own cell.


class Histogram(NamedTuple):
    """Smallest and largest score of each cell that is not empty, in ascending order, and the weight of each label.

    A cell holds the scores whose ranks among all floating-point numbers agree in all but the last ``level`` bits, so
    that the cells of two histograms can be joined.
    """

    labels: LabelSet
    level: int
    low: Array
    high: Array
    weight: Array


def histogram(number: int, y_score: Any, y_true: Any, sample_weight: Any, n_bins: int) -> Histogram:
    """Check the scores, labels and weights of a partition, and count the scores; errors name the partition."""
    scores = _numbers(number, y_score)
    y = checked_labels(number, "y_true", y_true, scores.size)
    weight = checked_weight(number, sample_weight, scores.size)
    weight = np.ones(scores.size) if weight is None else weight
    scores, y, weight = scores[weight > 0], y[weight > 0], weight[weight > 0]
    labels = np.unique(y)
    if labels.size > 2:
        raise DataError(f"partition {number}: y_true must have two classes; got {labels.size}: {labels[:5].tolist()}")
    weights = np.array([np.where(y == label, weight, 0.0) for label in labels]).reshape(labels.size, scores.size)
    return merged([Histogram(LabelSet(number, labels), 0, scores, scores, weights)], n_bins)


def merged(parts: list[Histogram], n_bins: int) -> Histogram:
    """Return the histogram of several partitions; neighboring cells are joined until there are at most ``n_bins``."""
    labels = reduce(LabelSet.joined, (part.labels for part in parts))
    if labels.labels.size > 2:
        positive_index(labels.labels, None)  # raises the error
    weight = np.concatenate([_by_label(part, labels.labels) for part in parts], axis=1)
    low, high = (np.concatenate([part[i] for part in parts]) for i in (2, 3))
    order = np.argsort(low)
    ranks, level = _ranks(low[order]), max(part.level for part in parts)
    while np.count_nonzero(np.diff(ranks >> np.uint64(level))) >= n_bins:
        level += 1
    first = np.flatnonzero(np.diff(ranks >> np.uint64(level), prepend=~ranks[:1] >> np.uint64(level)))
    if not first.size:
        return Histogram(labels, level, low, high, weight)
    joined = np.maximum.reduceat(high[order], first), np.add.reduceat(weight[:, order], first, axis=1)
    return Histogram(labels, level, low[order][first], *joined)


def joined(parts: list[Any], n_bins: int) -> Histogram:
    """Compute delayed histograms of partitions on the workers, where they are merged in pairs, and return their sum."""
    dask = need("dask")
    while len(parts) > 1:
        parts = [dask.delayed(merged)(parts[i : i + 2], n_bins) for i in range(0, len(parts), 2)]
    found: Histogram = dask.compute(*parts)[0]
    return found


def _by_label(part: Histogram, labels: NDArray[Any]) -> Array:
    """Return the weights of a histogram with one row for each of all labels."""
    found = np.zeros((labels.size, part.low.size))
    found[np.searchsorted(labels, part.labels.labels)] = part.weight
    return found


def _ranks(values: Array) -> NDArray[np.uint64]:
    """Return the ranks of numbers among all that can be represented."""
    bits, sign = values.view(np.uint64), np.uint64(1 << 63)
    return np.where(bits & sign, ~bits, bits | sign)


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


class CurveBounds(NamedTuple):
    """ROC curve that is a straight line inside each cell, and the lowest and the highest one that the cells allow."""

    straight: Curve
    lowest: Curve
    highest: Curve

    def between(self, metric: Callable[..., float], **params: Any) -> tuple[float, float]:
        """Return the smaller and the larger value of a measure of the lowest and the highest curve."""
        ends = metric(self.lowest, **params), metric(self.highest, **params)
        return min(ends), max(ends)


def curve(y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any, n_bins: int) -> CurveBounds:
    """Return the ROC curve of dask collections, each partition of which is read once."""
    check_number("n_bins", n_bins, above=1, integer=True)
    delayed = enumerate(aligned(y_score=y_score, y_true=y_true, sample_weight=sample_weight))
    count = need("dask").delayed(histogram, pure=False)
    found = joined([count(number, *one, n_bins) for number, one in delayed], n_bins)
    labels = found.labels.labels
    check_some_rows(labels)
    index = positive_index(labels, pos_label)
    straight = Blocks(found.weight[1 - index, ::-1], found.weight[index, ::-1]).curve()
    fp, tp = straight
    # Inside a cell of several scores, the curve may first go right or first go up; that of one score is straight.
    wide = np.flatnonzero((found.low < found.high)[::-1]) + 1
    right = Curve(np.insert(fp, wide, fp[wide]), np.insert(tp, wide, tp[wide - 1]))
    up = Curve(np.insert(fp, wide, fp[wide - 1]), np.insert(tp, wide, tp[wide]))
    return CurveBounds(straight, right, up)


# The measures.


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
    n_bins: int = 100_000,
) -> Estimate:
    """Area under the ROC curve of scores in a dask collection.

    Labels, scores and weights are dask Arrays or Series with the same partitions. Each partition is read once, by the
    workers or, without a cluster, in this process.

    Parameters
    ----------
    y_true, y_score, sample_weight, pos_label, n_bins

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
    return partial_auc_score(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label, n_bins=n_bins)


def partial_auc_score(
    y_true: Any,
    y_score: Any,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 100_000,
) -> Estimate:
    """Area under the ROC curve between two false-positive rates, divided by the width of the range.

    The definition is that of :func:`rocmax.metrics.partial_auc_score` with ``definition="area"``. Labels, scores and
    weights are dask Arrays or Series with the same partitions.

    Parameters
    ----------
    y_true, y_score
    min_fpr, max_fpr
    min_tpr : float, default=0.0
        Lower end of the range of true-positive rates, at least 0 and below 1.
    sample_weight, pos_label, n_bins

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
    check_window(min_fpr, max_fpr, any_width=True)
    check_floor(min_tpr)
    found = curve(y_true, y_score, sample_weight, pos_label, n_bins)
    limits: dict[str, Any] = {"min_fpr": min_fpr, "max_fpr": max_fpr, "min_tpr": min_tpr}
    value = partial_auc(found.straight, **limits)
    low, high = found.between(partial_auc, **limits)
    return Estimate(value, max(value - low, high - value))


def tpr_at_fpr(
    y_true: Any,
    y_score: Any,
    *,
    max_fpr: float,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 100_000,
) -> Estimate:
    """Largest true-positive rate of a threshold whose false-positive rate is at most ``max_fpr``.

    The definition is that of :func:`rocmax.metrics.tpr_at_fpr`. Labels, scores and weights are
    dask Arrays or Series with the same partitions.

    Parameters
    ----------
    y_true, y_score
    max_fpr : float
        Limit on the false-positive rate, from 0 to 1.
    sample_weight, pos_label, n_bins

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
    check_rate("max_fpr", max_fpr)
    low, high = curve(y_true, y_score, sample_weight, pos_label, n_bins).between(best_tpr, max_fpr=max_fpr)
    return Estimate(low, high - low)


def fpr_at_tpr(
    y_true: Any,
    y_score: Any,
    *,
    min_tpr: float,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 100_000,
) -> Estimate:
    """Smallest false-positive rate of a threshold whose true-positive rate is at least ``min_tpr``; lower is better.

    The definition is that of :func:`rocmax.metrics.fpr_at_tpr`. Labels, scores and weights are
    dask Arrays or Series with the same partitions.

    Parameters
    ----------
    y_true, y_score
    min_tpr : float
        Required true-positive rate, from 0 to 1.
    sample_weight, pos_label, n_bins

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
    check_rate("min_tpr", min_tpr)
    low, high = curve(y_true, y_score, sample_weight, pos_label, n_bins).between(best_fpr, min_tpr=min_tpr)
    return Estimate(low, high - low)
