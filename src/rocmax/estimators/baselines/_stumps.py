"""Decision stumps on features sorted once, and classifiers that are a weighted sum of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocmax._typing import Array

# Gains this close, relatively, are equal: rounding must not choose between features.
_DUST = 1e-10


class Stump(NamedTuple):
    """``1`` where a feature is above a threshold; ``gain`` is the sum of the coefficients there."""

    feature: int
    threshold: float
    gain: float

    def __call__(self, X: Array) -> Array:
        """Return 0 or 1 for each row."""
        return (X[:, self.feature] > self.threshold).astype(np.float64)


class SortedFeatures:
    """Columns sorted once, for many searches: each costs O(N d)."""

    def __init__(self, X: Array) -> None:
        self._order = np.argsort(X, axis=0, kind="stable")
        self._placed = np.take_along_axis(X, self._order, axis=0)
        # Between equal values there is no threshold.
        self._between = np.diff(self._placed, axis=0) > 0

    def best(self, coefficients: Array) -> Stump | None:
        """Return the stump with the largest absolute sum of coefficients; None if no feature varies.

        Of equals, the first feature and its lowest threshold.
        """
        return next(iter(self.leading(coefficients, 1)), None)

    def leading(self, coefficients: Array, count: int) -> list[Stump]:
        """Return the best stump of each of the ``count`` features that have the best ones, the largest first."""
        varies = np.flatnonzero(self._between.any(axis=0))
        if varies.size == 0:
            return []
        below = np.cumsum(coefficients[self._order], axis=0)
        above = np.where(self._between, below[-1] - below[:-1], 0.0)
        size = np.abs(above)
        most = size.max(axis=0)
        # Rounded, so that equal features keep their order.
        first = varies[np.argsort(-np.round(most[varies] / (most.max() or 1.0), 10), kind="stable")[:count]]
        places = np.argmax(size[:, first] >= (1 - _DUST) * most[first], axis=0)
        return [
            Stump(int(f), midpoint(self._placed[k, f], self._placed[k + 1, f]), float(above[k, f]))
            for f, k in zip(first, places, strict=True)
        ]


def midpoint(low: float, high: float) -> float:
    """Return a number between two, at least the lower and below the higher, whatever the rounding."""
    middle = 0.5 * low + 0.5 * high
    return float(middle) if low <= middle < high else float(low)


def stump_scores(stumps: list[Stump], weights: Array, X: Array) -> Array:
    """Return the weighted sum of stumps for each row."""
    scores = np.zeros(X.shape[0])
    for stump, weight in zip(stumps, weights, strict=True):
        scores += weight * stump(X)
    return scores
