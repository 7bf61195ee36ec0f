"""Scores of one class from the top down: what labelling the best ones positive brings."""

from __future__ import annotations

import numpy as np

from rocmax._typing import Array, Index


class CumulativeScores:
    """Rows of one class by falling score, with sums from the top.

    A position is a weight: at position ``t`` the rows at the top that weigh ``t`` together are taken, the last one
    perhaps in part. Boundary ``i`` is the position behind the ``i`` best rows.

    Parameters
    ----------
    scores : ndarray
        Scores of the rows, in any order. Taken over: without weights they are sorted in place.
    weight : ndarray or None
        Weights of the rows; None if all are 1.
    """

    def __init__(self, scores: Array, weight: Array | None) -> None:
        self.weighted = weight is not None  # so that a row can be taken in part
        if weight is None:
            # Sorting values is several times faster than finding the order.
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
        """Weight of all rows, the last position."""
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
        """Return how many rows have a score above each level."""
        return self.size - np.searchsorted(self.rising, level, "right")

    def cut(self, position: float) -> tuple[float, float]:
        """Return the score above which rows are taken at a position, and the part that is taken of rows with it.

        Tied rows are taken alike.
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
