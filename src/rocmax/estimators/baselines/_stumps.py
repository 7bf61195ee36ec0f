"""Decision stumps on presorted features, and weighted sums of stumps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocmax._typing import Array

# Relative tolerance within which gains are considered equal, so that rounding errors do not affect the choice.
_ROUNDING = 1e-10


class Stump(NamedTuple):
    """Indicator of a feature above a threshold; ``gain`` is the sum of the coefficients of these rows."""

    feature: int
    threshold: float
    gain: float

    def __call__(self, X: Array) -> Array:
        """Return 0 or 1 for each row."""
        return (X[:, self.feature] > self.threshold).astype(np.float64)


class SortedFeatures:
    """Features sorted once, so that each search for the best stump costs O(N d)."""

    def __init__(self, X: Array) -> None:
        self._order = np.argsort(X, axis=0, kind="stable")
        self._placed = np.take_along_axis(X, self._order, axis=0)
        # Thresholds are possible only between different values.
        self._between = np.diff(self._placed, axis=0) > 0

    def best(self, coefficients: Array) -> Stump | None:
        """Return the stump with the largest absolute sum of coefficients; None if no feature varies.

        Ties are resolved by the first feature and its lowest threshold.
        """
        return next(iter(self.leading(coefficients, 1)), None)

    def leading(self, coefficients: Array, count: int) -> list[Stump]:
        """Return the best stump of each of the ``count`` best features, in descending order of the gain."""
        varies = np.flatnonzero(self._between.any(axis=0))
        if varies.size == 0:
            return []
        below = np.cumsum(coefficients[self._order], axis=0)
        above = np.where(self._between, below[-1] - below[:-1], 0.0)
        size = np.abs(above)
        most = size.max(axis=0)
        # Rounding preserves the order of features with equal gains.
        first = varies[np.argsort(-np.round(most[varies] / (most.max() or 1.0), 10), kind="stable")[:count]]
        places = np.argmax(size[:, first] >= (1 - _ROUNDING) * most[first], axis=0)
        return [
            Stump(int(f), midpoint(self._placed[k, f], self._placed[k + 1, f]), float(above[k, f]))
            for f, k in zip(first, places, strict=True)
        ]


def midpoint(low: float, high: float) -> float:
    """Return the midpoint; it is at least ``low`` and below ``high`` despite rounding errors."""
    middle = 0.5 * low + 0.5 * high
    return float(middle) if low <= middle < high else float(low)


def stump_scores(stumps: list[Stump], weights: Array, X: Array) -> Array:
    """Return the weighted sum of stumps for each row."""
    scores = np.zeros(X.shape[0])
    for stump, weight in zip(stumps, weights, strict=True):
        scores += weight * stump(X)
    return scores
