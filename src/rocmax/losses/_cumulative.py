"""Cumulative sums of the scores of one class in descending order."""

from __future__ import annotations

import numpy as np

from rocmax._typing import Array, Index


class CumulativeScores:
    """Rows of one class in descending order of score, with cumulative sums.

    A position is a cumulative weight: position ``t`` selects the top rows of total weight ``t``, the last row
    possibly in part. Boundary ``i`` is the position after the ``i`` highest-scored rows.

    Parameters
    ----------
    scores : ndarray
        Scores of the rows, in any order. Without weights they are sorted in place.
    weight : ndarray or None
        Weights of the rows; None if all are 1.
    """

    def __init__(self, scores: Array, weight: Array | None) -> None:
        self.weighted = weight is not None  # whether a row can be selected in part
        if weight is None:
            # Sorting values is several times faster than argsort.
            scores.sort()
            self.rising = scores
            self.falling = self.rising[::-1]
            self._position = None
            self.total = _sums(self.falling)
        else:
            order = np.argsort(-scores, kind="stable")
            self.falling = scores[order]
            self.rising = self.falling[::-1]
            self._position = _sums(weight[order])
            self.total = _sums(weight[order] * self.falling)

    @property
    def weight(self) -> float:
        """Total weight of the rows, the last position."""
        return float(self.size if self._position is None else self._position[-1])

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.falling.size

    def position(self, boundary: Index) -> Array:
        """Return the weight above each boundary."""
        return boundary.astype(np.float64) if self._position is None else self._position[boundary]

    def total_at(self, position: Array) -> Array:
        """Return the sum of weight times score above each position."""
        if self._position is None:
            return self.total[np.rint(position).astype(np.intp)]
        return np.interp(position, self._position, self.total)

    def count_above(self, level: Array) -> Index:
        """Return the number of rows with a score above each level."""
        return self.size - np.searchsorted(self.rising, level, "right")

    def cut(self, position: float) -> tuple[float, float]:
        """Return the score above which rows are selected at a position, and the selected fraction of rows tied at it.

        Tied rows are selected in equal proportion.
        """
        if position <= 0:
            return np.inf, 0.0
        last = np.ceil(position) if self._position is None else self._position.searchsorted(position, "left")
        level = self.falling[min(int(last), self.size) - 1]
        start, stop = (self.size - int(self.rising.searchsorted(level, side)) for side in ("right", "left"))
        if self._position is not None:
            start, stop = self._position[start], self._position[stop]
        return float(level), min(float((position - start) / (stop - start)), 1.0)


def _sums(values: Array) -> Array:
    sums = np.empty(values.size + 1)
    sums[0] = 0.0
    np.cumsum(values, out=sums[1:])
    return sums
