"""Sampling of rows: batches of a stream, reservoir samples and random pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._support import Array, Bools, RowNumbers


class Buffer:
    """Buffer that splits a stream of rows into batches of fixed size."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._X: Any = None
        self._y: Bools = np.empty(0, dtype=bool)

    def __len__(self) -> int:
        return self._y.size

    def push(self, X: Any, y: Bools) -> Iterator[tuple[Any, Bools]]:
        """Add rows and return an iterator over the full batches."""
        if len(self):
            X, y = stack([self._X, X]), np.concatenate([self._y, y])
        end = y.size - y.size % self._size
        # Copies, because the caller may modify the arrays.
        self._X, self._y = X[end:].copy(), y[end:].copy()
        return ((X[i : i + self._size], y[i : i + self._size]) for i in range(0, end, self._size))


class Reservoir:
    """Uniform sample of all rows seen, in bounded memory; see :func:`places`."""

    def __init__(self, size: int) -> None:
        self._size = size
        # Rows in order of arrival, and the indices of the sample. Rows are copied only when many have been replaced.
        self._parts: list[tuple[Any, Bools]] = []
        self._n_rows = 0
        self._kept: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.seen = 0

    def __len__(self) -> int:
        return self._kept.size

    def add(self, X: Any, y: Bools, rng: np.random.RandomState) -> None:
        """Update the sample with new rows."""
        place = places(self.seen, y.size, self._size, rng.random_sample)
        self.seen += y.size
        new = np.flatnonzero(place < self._size)
        if not new.size:
            return
        self._kept = np.resize(self._kept, min(self.seen, self._size))
        # If several rows have the same position, the last one is kept, as in sequential processing.
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
    """Stack rows vertically, as CSR if one of the parts is sparse."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)


def uniform_pairs(
    positives: RowNumbers, negatives: RowNumbers, size: int, rng: np.random.Generator
) -> tuple[RowNumbers, RowNumbers]:
    """Draw pairs of a positive and a negative, given the row indices of both classes, with replacement.

    Row k of n is drawn with a probability that differs from 1/n by less than one part in ``2**32 / n``.
    """
    # The upper and the lower half of 64 random bits: NumPy's bounded integers would take a sixth of an epoch.
    draws, half = rng.bit_generator.random_raw(size), np.uint64(32)
    upper, lower = draws >> half, draws & np.uint64(0xFFFFFFFF)
    first, second = (upper * np.uint64(positives.size)) >> half, (lower * np.uint64(negatives.size)) >> half
    return positives[first], negatives[second]


def pairs_with_new_rows(
    new: RowNumbers, positive: NDArray[np.bool_], positives: RowNumbers, negatives: RowNumbers, rng: np.random.Generator
) -> tuple[RowNumbers, RowNumbers]:
    """Pair every new row once, in random order, with a random row of the other class.

    ``positives`` and ``negatives`` are the row indices of both classes; neither may be empty. Each pair with a new row
    has the same probability as any other pair with a new row of this class.
    """
    anchor = rng.permutation(new)
    first, second = uniform_pairs(positives, negatives, anchor.size, rng)
    is_positive = positive[anchor]
    return np.where(is_positive, anchor, first), np.where(is_positive, second, anchor)


def reservoir(held: RowNumbers, seen: int, new: RowNumbers, capacity: int, rng: np.random.Generator) -> RowNumbers:
    """Return a uniform sample of a stream, given the sample ``held`` of the ``seen`` previous rows and the new rows."""
    if seen == 0 and new.size > capacity:
        return rng.choice(new, capacity, replace=False, shuffle=False)
    place = places(seen, new.size, capacity, rng.random)
    sample = np.resize(held, min(seen + new.size, capacity))
    kept = place < capacity
    # If several rows have the same position, the last one is kept, as in sequential processing.
    sample[place[kept]] = new[kept]
    return sample


def places(seen: int, n_new: int, size: int, draw: Callable[[int], Array]) -> RowNumbers:
    """Return the positions of new rows in a uniform sample of ``size`` rows, by Vitter's algorithm R (1985).

    Row t, counted from 0, is assigned a random position of t + 1, and is kept if the position is in the sample.
    """
    place = np.arange(seen, seen + n_new)
    full = place >= size
    place[full] = (draw(int(full.sum())) * (place[full] + 1)).astype(np.intp)
    return place
