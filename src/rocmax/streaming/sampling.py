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
        # Rows as they came, and which of them make up the sample: copies are made when there are many, not for each.
        self._parts: list[tuple[Any, Bools]] = []
        self._n_rows = 0
        self._kept: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.seen = 0

    def __len__(self) -> int:
        return self._kept.size

    def add(self, X: Any, y: Bools, rng: np.random.RandomState) -> None:
        """Show rows to the sample."""
        place = np.arange(self.seen, self.seen + y.size)
        full = place >= self._size
        # The row that is number t, counted from 0, comes to a random place of t + 1, and stays if that is one of ours.
        place[full] = (rng.random_sample(int(full.sum())) * (place[full] + 1)).astype(np.intp)
        self.seen += y.size
        new = np.flatnonzero(place < self._size)
        if not new.size:
            return
        self._kept = np.resize(self._kept, min(self.seen, self._size))
        # Of several rows for one place the last one stays, as if they had come one by one.
        self._kept[place[new]] = self._n_rows + np.arange(new.size)
        self._parts.append((X[new], y[new]))
        self._n_rows += new.size
        if self._n_rows > 2 * self._size:
            self.rows()

    def rows(self) -> tuple[Any, Bools]:
        """Return the rows of the sample and their labels."""
        if len(self._parts) > 1 or self._n_rows > len(self):
            X, y = stack([X for X, _ in self._parts]), np.concatenate([y for _, y in self._parts])
            self._parts = [(X[self._kept], y[self._kept])]
            self._kept, self._n_rows = np.arange(len(self)), len(self)
        return self._parts[0]


def stack(parts: list[Any]) -> Any:
    """Put rows below each other: as CSR if some of them are sparse, as those may be too many to be made dense."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)
