"""Thresholds on training scores that fit a measure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Measure = Callable[[Array, Array, float, float], Array]

# A rate this close above its limit, relatively, is at the limit: 7/100 and 0.07 differ in floating point.
_DUST = 1e-9


def at_fpr(scores: Array, positive: NDArray[np.bool_], weight: Array | None, max_fpr: float) -> float:
    """Return the lowest threshold whose false-positive rate is at most ``max_fpr``."""
    values, _, fp = _cumulated(scores, positive, weight)
    n_accepted = int(np.count_nonzero(fp <= max_fpr * fp[-1] * (1 + _DUST)))
    return _below(values, n_accepted)


def above_order(scores: Array, positive: NDArray[np.bool_], k: int) -> float:
    """Return the threshold just above the ``k``-th smallest score of the negatives.

    Half-way to the next score would give away true positives; a billionth of the scores' size is enough for rounding.
    """
    joined = join_ties(scores)
    order = np.sort(joined[~positive])[k - 1]
    higher = joined[joined > order]
    step = 1e-9 * max(np.abs(joined).max(), np.finfo(float).tiny)
    return float(order + (min(step, (higher.min() - order) / 2) if higher.size else step))


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


def join_ties(scores: Array) -> Array:
    """Make scores equal that differ by rounding only.

    A product rounds equal rows differently, depending on where they stand in memory; what was a tie must stay one.
    """
    order = np.argsort(scores)
    placed = scores[order]
    new = np.diff(placed, prepend=-np.inf) > 1e-12 * max(abs(placed[0]), abs(placed[-1]))
    joined = np.empty_like(scores)
    joined[order] = placed[np.flatnonzero(new)][np.cumsum(new) - 1]
    return joined


def _cumulated(scores: Array, positive: NDArray[np.bool_], weight: Array | None) -> tuple[Array, Array, Array]:
    """Distinct scores, descending, with the weight of positives and negatives at or above each."""
    values, block = np.unique(-join_ties(scores), return_inverse=True)
    weight = np.ones(scores.size) if weight is None else weight
    tp = np.cumsum(np.bincount(block, weight * positive, values.size))
    fp = np.cumsum(np.bincount(block, weight * ~positive, values.size))
    return -values, tp.astype(np.float64), fp.astype(np.float64)


def _below(values: Array, n_accepted: int) -> float:
    """Return a threshold between the accepted scores and the rest.

    Half-way between two scores, so that rounding in a later product cannot move a row across it.
    """
    if n_accepted == 0:
        return float(values[0] + max(1.0, abs(values[0])) * 1e-6)
    if n_accepted == values.size:
        return float(values[-1] - max(1.0, abs(values[-1])) * 1e-6)
    return float((values[n_accepted - 1] + values[n_accepted]) / 2)
