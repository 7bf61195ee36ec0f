"""Scores of partitions on the workers: sorted once, then counted in bins and fetched from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array, Index
from rocmax.backends.dask.partitions import LabelSet, checked_labels, checked_weight
from rocmax.data import DataError
from rocmax.metrics.curve import distinct_scores

# Scores of a partition, and of several together, from which the driver estimates their range.
_SAMPLE, _SAMPLES = 512, 8192


class ScorePart(NamedTuple):
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


def load_scores(number: int, y_score: Any, y_true: Any, sample_weight: Any) -> ScorePart:
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
    return ScorePart(number, labels, [values for values, _ in found], [sums for _, sums in found])


def summarize(part: ScorePart) -> Summary:
    """Return labels and a sample of the scores of a partition."""
    scores = np.concatenate([*part.scores, np.empty(0)])
    ends = [values[[0, -1]] for values in part.scores]
    sample = np.concatenate([scores[:: max(1, scores.size // _SAMPLE)], *ends])
    return Summary(LabelSet(part.number, part.labels), sample)


def join_summaries(parts: list[Summary]) -> Summary:
    """Return labels and a sample of the scores of several partitions."""
    sample = np.concatenate([part.sample for part in parts])
    if sample.size > _SAMPLES:
        sample = np.append(sample[:: sample.size // _SAMPLES + 1], [sample.min(), sample.max()])
    return Summary(reduce(LabelSet.joined, (part.labels for part in parts)), sample)


def count(part: ScorePart, edges: Array, positive: Any) -> Counts:
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


def distinct(part: ScorePart, low: Array, high: Array, positive: Any) -> Distinct:
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
