"""Selection of thresholds on scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._rounding import join_ties, score_error
from rocmax._support import Array

Measure = Callable[[Array, Array, float, float], Array]

# Relative tolerance for rounding errors in rates: 7/100 and 0.07 can differ in floating point.
_ROUNDING = 1e-9
# From this number of rows on, the best threshold is first located in this number of bins.
_MANY_ROWS, _BINS = 50_000, 4096


def at_fpr(scores: Array, positive: NDArray[np.bool_], weight: Array | None, max_fpr: float) -> float:
    """Return the lowest threshold whose false-positive rate is at most ``max_fpr``.

    Which negatives are above it depends only on the negatives. The threshold is the midpoint to the next higher score.
    """
    highest = highest_rejected(scores, positive, weight, max_fpr)
    if highest is None:
        return _under(float(scores.min()))
    rejected, higher = _rejected_and_next(scores, highest)
    return _over(rejected) if higher is None else _between(rejected, higher)


def highest_rejected(scores: Array, positive: NDArray[np.bool_], weight: Array | None, max_fpr: float) -> float | None:
    """Return the highest score of a negative that must be rejected for a false-positive rate of at most ``max_fpr``.

    None if no negative must be rejected.
    """
    negatives = scores[~positive]
    fp = None
    if weight is not None:
        order = np.argsort(-negatives)
        negatives, fp = negatives[order], np.cumsum(weight[~positive][order])
    n_within = _count_within(negatives.size, fp, max_fpr)
    if n_within == negatives.size:
        return None
    if fp is None:
        place = negatives.size - 1 - n_within
        negatives.partition(place)
        return float(negatives[place])
    return float(negatives[n_within])


def _count_within(size: int, cumulated: Array | None, rate: float) -> int:
    """Return how many of the first rows have a share of the weight of at most ``rate``; None for weights of 1."""
    if cumulated is None:
        return min(size, int(rate * float(size) * (1 + _ROUNDING)))
    return int(np.count_nonzero(cumulated <= rate * cumulated[-1] * (1 + _ROUNDING)))


def above_order(scores: Array, positive: NDArray[np.bool_], k: int) -> float:
    """Return the threshold just above the ``k``-th smallest score of the negatives.

    The midpoint to the next score could lose true positives; a relative distance of 1e-9 is sufficient for rounding
    errors.
    """
    order = float(np.partition(scores[~positive], k - 1)[k - 1])
    rejected, higher = _rejected_and_next(scores, order)
    near = float(np.nextafter(rejected + 1e-9 * abs(rejected), np.inf))
    return near if higher is None else min(near, _between(rejected, higher))


def at_tpr(scores: Array, positive: NDArray[np.bool_], weight: Array | None, min_tpr: float) -> float:
    """Return the highest threshold whose true-positive rate is at least ``min_tpr``.

    Which positives are above it depends only on the positives. The threshold is the midpoint to the next lower score.
    """
    lowest = lowest_accepted(scores, positive, weight, min_tpr)
    if lowest is None:
        return _over(float(scores.max()))
    accepted, lower = _accepted_and_next(scores, lowest)
    return _under(accepted) if lower is None else _just_below(accepted, _between(lower, accepted))


def lowest_accepted(scores: Array, positive: NDArray[np.bool_], weight: Array | None, min_tpr: float) -> float | None:
    """Return the lowest score of a positive that must be accepted for a true-positive rate of at least ``min_tpr``.

    None if no positive must be accepted.
    """
    found = highest_rejected(-scores, ~positive, weight, 1 - min_tpr)
    return None if found is None else -found


def below_order(scores: Array, positive: NDArray[np.bool_], k: int) -> float:
    """Return the threshold just below the ``k``-th largest score of the positives.

    The midpoint to the next score could add false positives; a relative distance of 1e-9 is sufficient for rounding
    errors.
    """
    positives = scores[positive]
    accepted, lower = _accepted_and_next(scores, float(np.partition(positives, -k)[-k]))
    near = _just_below(accepted, accepted - 1e-9 * abs(accepted))
    return near if lower is None else max(near, _just_below(accepted, _between(lower, accepted)))


def best_youden(scores: Array, positive: NDArray[np.bool_], weight: Array | None) -> float:
    """Return the threshold that maximizes the true-positive rate minus the false-positive rate.

    On many rows, only those in bins of the scores that can contain the threshold are sorted.
    """
    near = _near_best_youden(scores, positive, weight) if scores.size >= _MANY_ROWS else None
    if near is not None:
        rows, above = near
        part = None if weight is None else weight[rows]
        values, tp, fp = _cumulated(scores[rows], positive[rows], part)
        found = tp / above.m - fp / above.n + above.difference
        n_accepted = 1 + int(np.flatnonzero(found >= found.max() - _ROUNDING)[0])
        if found.max() > 0 and n_accepted < values.size:
            return _below(values, n_accepted)
    return best_measure(scores, positive, weight, lambda tp, fp, m, n: tp / m - fp / n)


def best_measure(scores: Array, positive: NDArray[np.bool_], weight: Array | None, measure: Measure) -> float:
    """Return the threshold that maximizes ``measure(tp, fp, m, n)``; above all scores if the maximum is 0 or less."""
    values, tp, fp = _cumulated(scores, positive, weight)
    found = measure(tp, fp, tp[-1], fp[-1])
    # Of thresholds with equal values up to rounding error, use the highest.
    n_accepted = 1 + int(np.flatnonzero(found >= found.max() - _ROUNDING)[0])
    return _below(values, n_accepted if found.max() > 0 else 0)


class _Above(NamedTuple):
    """Weights of the classes, and true-positive minus false-positive rate of the rows above a part of the scores."""

    m: float
    n: float
    difference: float


def _near_best_youden(
    scores: Array, positive: NDArray[np.bool_], weight: Array | None
) -> tuple[NDArray[np.intp], _Above] | None:
    """Return the rows near the best threshold; None if the scores hardly differ.

    In a bin, the difference of the rates is at most that above it plus the share of the positives in it. Bins that can
    contain the maximum are kept, with all bins between them and the next non-empty bin on each side.
    """
    low, high = float(scores.min()), float(scores.max())
    if not high - low > 1e-6 * max(abs(low), abs(high)):
        return None
    cell = ((high - scores) * ((_BINS - 1e-9) / (high - low))).astype(np.int32)
    shares = []
    for side in (positive, ~positive):
        mass = np.bincount(cell[side], None if weight is None else weight[side], _BINS)
        shares.append((mass / mass.sum(), float(mass.sum())))
    (of_positives, m), (of_negatives, n) = shares
    difference = np.cumsum(of_positives - of_negatives)
    before = difference - (of_positives - of_negatives)
    used = np.flatnonzero(of_positives + of_negatives)
    can_win = np.flatnonzero((before + of_positives)[used] >= difference.max() - 2 * _ROUNDING)
    first, last = used[max(can_win[0] - 1, 0)], used[min(can_win[-1] + 1, used.size - 1)]
    return np.flatnonzero((cell >= first) & (cell <= last)), _Above(m, n, float(before[first]))


def at_top(scores: Array, positive: NDArray[np.bool_], weight: Array | None, size: float) -> float:
    """Return the lowest threshold with at most a given weight of rows above it, but at least one distinct score."""
    values, tp, fp = _cumulated(scores, positive, weight)
    return _below(values, max(1, int(np.count_nonzero(tp + fp <= size * (1 + _ROUNDING)))))


def _rejected_and_next(scores: Array, cut: float) -> tuple[float, float | None]:
    """Return the highest score equal to ``cut`` up to rounding error, and the next higher score or None."""
    # In Python's floats, which overflow to infinity without a warning.
    tied = scores <= float(cut) + float(score_error(np.asarray(cut)))
    return float(scores[tied].max()), None if tied.all() else float(scores[~tied].min())


def _accepted_and_next(scores: Array, cut: float) -> tuple[float, float | None]:
    """Return the lowest score equal to ``cut`` up to rounding error, and the next lower score or None."""
    tied = scores >= float(cut) - float(score_error(np.asarray(cut)))
    return float(scores[tied].min()), None if tied.all() else float(scores[~tied].max())


def _just_below(accepted: float, threshold: float) -> float:
    """Return the threshold, but less than the accepted score, because a score must be above the threshold."""
    return min(threshold, float(np.nextafter(accepted, -np.inf)))


def _cumulated(scores: Array, positive: NDArray[np.bool_], weight: Array | None) -> tuple[Array, Array, Array]:
    """Return distinct scores in descending order, with the weights of positives and negatives at or above each."""
    values, block = np.unique(-join_ties(scores), return_inverse=True)
    weight = np.ones(scores.size) if weight is None else weight
    tp = np.cumsum(np.bincount(block, weight * positive, values.size))
    fp = np.cumsum(np.bincount(block, weight * ~positive, values.size))
    return -values, tp.astype(np.float64), fp.astype(np.float64)


def _below(values: Array, n_accepted: int) -> float:
    """Return a threshold between the accepted and the rejected scores."""
    if n_accepted == 0:
        return _over(float(values[0]))
    if n_accepted == values.size:
        return _under(float(values[-1]))
    return _between(float(values[n_accepted]), float(values[n_accepted - 1]))


def _between(low: float, high: float) -> float:
    """Return the midpoint, so that rounding errors in later products do not change predictions."""
    return max(low, low / 2 + high / 2)


def _over(highest: float) -> float:
    return highest + max(1.0, abs(highest)) * 1e-6


def _under(lowest: float) -> float:
    return lowest - max(1.0, abs(lowest)) * 1e-6
