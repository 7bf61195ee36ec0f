"""Thresholds on scores that fit a measure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rocmax._rounding import join_ties, score_error
from rocmax._typing import Array

Measure = Callable[[Array, Array, float, float], Array]

# A rate this close above its limit, relatively, is at the limit: 7/100 and 0.07 differ in floating point.
_DUST = 1e-9


def at_fpr(scores: Array, positive: NDArray[np.bool_], weight: Array | None, max_fpr: float) -> float:
    """Return the lowest threshold whose false-positive rate is at most ``max_fpr``.

    Only the negatives decide which of them are above it. It lies half-way to the next higher score.
    """
    order = np.argsort(-scores[~positive])
    negatives = scores[~positive][order]
    fp = np.cumsum(np.ones(negatives.size) if weight is None else weight[~positive][order])
    n_within = int(np.count_nonzero(fp <= max_fpr * fp[-1] * (1 + _DUST)))
    if n_within == negatives.size:
        return _under(float(scores.min()))
    rejected, higher = _rejected_and_next(scores, negatives[n_within])
    return _over(rejected) if higher is None else _between(rejected, higher)


def above_order(scores: Array, positive: NDArray[np.bool_], k: int) -> float:
    """Return the threshold just above the ``k``-th smallest score of the negatives.

    Half-way to the next score would give away true positives; a billionth of the score is enough for rounding.
    """
    order = float(np.partition(scores[~positive], k - 1)[k - 1])
    rejected, higher = _rejected_and_next(scores, order)
    near = float(np.nextafter(rejected + 1e-9 * abs(rejected), np.inf))
    return near if higher is None else min(near, _between(rejected, higher))


def best_youden(scores: Array, positive: NDArray[np.bool_], weight: Array | None) -> float:
    """Return the threshold of the largest difference between true- and false-positive rate."""
    return best_measure(scores, positive, weight, lambda tp, fp, m, n: tp / m - fp / n)


def best_measure(scores: Array, positive: NDArray[np.bool_], weight: Array | None, measure: Measure) -> float:
    """Return the threshold with the largest ``measure(tp, fp, m, n)``; above all scores if none is above 0."""
    values, tp, fp = _cumulated(scores, positive, weight)
    found = measure(tp, fp, tp[-1], fp[-1])
    # Rounding must not choose between thresholds that are equally good: the highest one is taken.
    n_accepted = 1 + int(np.flatnonzero(found >= found.max() - _DUST)[0])
    return _below(values, n_accepted if found.max() > 0 else 0)


def at_top(scores: Array, positive: NDArray[np.bool_], weight: Array | None, size: float) -> float:
    """Return the lowest threshold above which lie rows of at most a given weight, but at least one score."""
    values, tp, fp = _cumulated(scores, positive, weight)
    return _below(values, max(1, int(np.count_nonzero(tp + fp <= size * (1 + _DUST)))))


def _rejected_and_next(scores: Array, cut: float) -> tuple[float, float | None]:
    """Return the highest score that equals ``cut`` up to rounding, and the lowest one above it, if there is one."""
    tied = scores <= cut + float(score_error(np.asarray(cut)))
    return float(scores[tied].max()), None if tied.all() else float(scores[~tied].min())


def _cumulated(scores: Array, positive: NDArray[np.bool_], weight: Array | None) -> tuple[Array, Array, Array]:
    """Distinct scores, descending, with the weight of positives and negatives at or above each."""
    values, block = np.unique(-join_ties(scores), return_inverse=True)
    weight = np.ones(scores.size) if weight is None else weight
    tp = np.cumsum(np.bincount(block, weight * positive, values.size))
    fp = np.cumsum(np.bincount(block, weight * ~positive, values.size))
    return -values, tp.astype(np.float64), fp.astype(np.float64)


def _below(values: Array, n_accepted: int) -> float:
    """Return a threshold between the accepted scores and the rest."""
    if n_accepted == 0:
        return _over(float(values[0]))
    if n_accepted == values.size:
        return _under(float(values[-1]))
    return _between(float(values[n_accepted]), float(values[n_accepted - 1]))


def _between(low: float, high: float) -> float:
    """Return a threshold half-way, so that rounding in a later product cannot move a row across it."""
    return max(low, low / 2 + high / 2)


def _over(highest: float) -> float:
    return highest + max(1.0, abs(highest)) * 1e-6


def _under(lowest: float) -> float:
    return lowest - max(1.0, abs(lowest)) * 1e-6
