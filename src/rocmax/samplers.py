"""Which rows come next: batches of a stream, and a sample of it in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Bools = NDArray[np.bool_]


class Buffer:
    """Rows of a stream, handed on in batches of one size; what is left over waits for more.

    Parameters
    ----------
    size : int
        Rows in a batch.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._X: Any = None
        self._y: Bools = np.empty(0, dtype=bool)

    def __len__(self) -> int:
        return self._y.size

    def push(self, X: Any, y: Bools) -> Iterator[tuple[Any, Bools]]:
        """Add rows and return the batches that are full now."""
        if len(self):
            X, y = stack([self._X, X]), np.concatenate([self._y, y])
        end = y.size - y.size % self._size
        # Copies: the caller's arrays are the caller's.
        self._X, self._y = X[end:].copy(), y[end:].copy()
        return ((X[i : i + self._size], y[i : i + self._size]) for i in range(0, end, self._size))


class Reservoir:
    """A uniform sample of all rows seen, in bounded memory.

    Parameters
    ----------
    size : int
        Largest number of rows kept.

    Attributes
    ----------
    seen : int
        Number of rows seen.

    References
    ----------
    Vitter, "Random sampling with a reservoir", ACM Transactions on Mathematical Software 1985, algorithm R.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: list[Any] = []
        self._labels: list[bool] = []
        self.seen = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, X: Any, y: Bools, rng: np.random.RandomState) -> None:
        """Show rows to the sample."""
        place = np.arange(self.seen, self.seen + y.size)
        full = place >= self._size
        # The row that is number t, counted from 0, comes to a random place of t + 1, and stays if that is one of ours.
        place[full] = (rng.random_sample(int(full.sum())) * (place[full] + 1)).astype(np.intp)
        self.seen += y.size
        for i in np.flatnonzero(place < self._size):
            row = X[[i]].copy()
            if place[i] == len(self._rows):
                self._rows.append(row)
                self._labels.append(bool(y[i]))
            else:
                self._rows[place[i]] = row
                self._labels[place[i]] = bool(y[i])

    def rows(self) -> tuple[Any, Bools]:
        """Return the rows of the sample and their labels."""
        return stack(self._rows), np.array(self._labels, dtype=bool)


def stack(parts: list[Any]) -> Any:
    """Put rows below each other, dense or sparse."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
