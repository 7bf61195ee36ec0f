"""Data structures and interface of the streaming methods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._sparse import canonical_csr
from rocmax._typing import Array, RowNumbers
from rocmax.streaming.sampling import reservoir

# Number of steps between returns to Python: small enough for interrupts, large enough for a negligible overhead. A row
# that is compared with a buffer counts as one step per row of the buffer.
BLOCK = 1 << 16


@dataclass
class RowBlock:
    """Rows of one pass: the stored rows, followed by the new rows.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Rows.
    positive : ndarray of bool
        Labels of the rows.
    new : ndarray of int
        Indices of the new rows.
    buffers : ndarray of int of shape (2, capacity)
        Indices of the stored rows: negatives first, then positives.
    seen : ndarray of int of shape (2,)
        Number of rows of each class so far; the first ``min(seen, capacity)`` entries of a buffer are used.
    rng : numpy.random.Generator
        Random generator.
    uniform : bool
        Whether a pass draws pairs from all rows instead of pairing each new row once.
    """

    X: Any
    positive: NDArray[np.bool_]
    new: RowNumbers
    buffers: RowNumbers
    seen: RowNumbers
    rng: np.random.Generator
    uniform: bool = True
    loop_form: Any = field(init=False)

    def __post_init__(self) -> None:
        self.loop_form = loop_form(self.X)

    def shuffled_blocks(self, steps_per_row: int = 1) -> Iterator[RowNumbers]:
        """Yield blocks of indices of the new rows, in random order."""
        order, size = self.rng.permutation(self.new), max(BLOCK // steps_per_row, 1)
        for start in range(0, order.size, size):
            yield order[start : start + size]

    def remember(self) -> None:
        """Update the buffers, which are uniform samples of all rows of each class, with the new rows."""
        capacity = self.buffers.shape[1]
        is_positive = self.positive[self.new]
        for own, new in enumerate((self.new[~is_positive], self.new[is_positive])):
            held = self.buffers[own, : min(self.seen[own], capacity)]
            sample = reservoir(held, int(self.seen[own]), new, capacity, self.rng)
            self.buffers[own, : sample.size] = sample
            self.seen[own] += new.size


class Method(Protocol):
    """Interface of a streaming method."""

    def epoch(self, stream: RowBlock) -> None:
        """Make one pass over the new rows."""

    def weights(self) -> Array:
        """Return the weights of the model, averaged if the method uses averaging."""


@dataclass
class Memory:
    """Rows stored between calls of ``partial_fit``: up to ``capacity`` rows of each class."""

    capacity: int
    seen: RowNumbers = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    rows: Any = None

    def stream(self, X: Any, positive: NDArray[np.bool_], rng: np.random.Generator, uniform: bool) -> RowBlock:
        """Return a block with the stored rows followed by the new rows."""
        held = np.minimum(self.seen, self.capacity)
        buffers = np.zeros((2, self.capacity), dtype=np.int64)
        buffers[0, : held[0]] = np.arange(held[0])
        buffers[1, : held[1]] = held[0] + np.arange(held[1])
        n_old = int(held.sum())
        if n_old:
            X = _stack(self.rows, X)
            positive = np.concatenate([np.repeat([False, True], held), positive])
        return RowBlock(X, positive, np.arange(n_old, positive.size), buffers, self.seen, rng, uniform)

    def keep(self, stream: RowBlock) -> None:
        """Store the rows of the current buffers."""
        held = np.minimum(stream.seen, self.capacity)
        self.seen = stream.seen
        self.rows = stream.X[np.concatenate([stream.buffers[0, : held[0]], stream.buffers[1, : held[1]]])]


def loop_form(X: Any) -> Any:
    """Return a matrix in the format of the compiled loops: C-ordered array, or CSR arrays without duplicates."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X)
    X = canonical_csr(X)
    return X.data, X.indices, X.indptr


def mean_squared_length(rows: Any) -> float:
    """Return the mean of ``|x|^2`` over the rows."""
    values = rows.data if sparse.issparse(rows) else rows
    return float(np.square(values, dtype=np.float64).sum() / rows.shape[0])


def _stack(old: Any, new: Any) -> Any:
    """Stack rows in the format of the new rows."""
    if sparse.issparse(new):
        return sparse.vstack([sparse.csr_array(old), new], format="csr")
    return np.vstack([old.toarray() if sparse.issparse(old) else old, new])
