"""What a streaming method works on, and what it has to offer."""

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

# Steps between returns to Python: short enough to be interrupted, long enough to cost nothing. A row that meets a
# buffer counts for as many steps as the buffer holds rows.
BLOCK = 1 << 16


@dataclass
class RowBlock:
    """The rows at hand: those that a method remembers, then the new ones.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Rows.
    positive : ndarray of bool
        Their labels.
    new : ndarray of int
        Numbers of the new rows.
    buffers : ndarray of int of shape (2, capacity)
        Numbers of the remembered rows: of negatives, of positives.
    seen : ndarray of int of shape (2,)
        How many rows of each class have come so far; the first ``min(seen, capacity)`` places of a buffer are in use.
    rng : numpy.random.Generator
        Source of all draws.
    uniform : bool
        Whether a pass draws pairs from all rows at hand, instead of pairing each new row once.
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
        """Yield the numbers of the new rows in random order, block by block."""
        order, size = self.rng.permutation(self.new), max(BLOCK // steps_per_row, 1)
        for start in range(0, order.size, size):
            yield order[start : start + size]

    def remember(self) -> None:
        """Let the new rows into the buffers, as uniform samples of all rows of their class."""
        capacity = self.buffers.shape[1]
        is_positive = self.positive[self.new]
        for own, new in enumerate((self.new[~is_positive], self.new[is_positive])):
            held = self.buffers[own, : min(self.seen[own], capacity)]
            sample = reservoir(held, int(self.seen[own]), new, capacity, self.rng)
            self.buffers[own, : sample.size] = sample
            self.seen[own] += new.size


class Method(Protocol):
    """A streaming method: weights that change with each row or pair."""

    def epoch(self, stream: RowBlock) -> None:
        """Make one pass over the new rows."""

    def weights(self) -> Array:
        """Return the weights of the model: averaged, if the method averages."""


@dataclass
class Memory:
    """Rows that outlive a call of ``partial_fit``: up to ``capacity`` of each class."""

    capacity: int
    seen: RowNumbers = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    rows: Any = None

    def stream(self, X: Any, positive: NDArray[np.bool_], rng: np.random.Generator, uniform: bool) -> RowBlock:
        """Put the remembered rows before the new ones."""
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
        """Remember the rows that the buffers name now."""
        held = np.minimum(stream.seen, self.capacity)
        self.seen = stream.seen
        self.rows = stream.X[np.concatenate([stream.buffers[0, : held[0]], stream.buffers[1, : held[1]]])]


def loop_form(X: Any) -> Any:
    """Return a matrix as compiled loops take it: C-ordered array, or CSR parts without duplicates."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X)
    X = canonical_csr(X)
    return X.data, X.indices, X.indptr


def mean_squared_length(rows: Any) -> float:
    """Return the mean of ``|x|^2`` over rows."""
    values = rows.data if sparse.issparse(rows) else rows
    return float(np.square(values, dtype=np.float64).sum() / rows.shape[0])


def _stack(old: Any, new: Any) -> Any:
    """Stack rows in the format of the new ones."""
    if sparse.issparse(new):
        return sparse.vstack([sparse.csr_array(old), new], format="csr")
    return np.vstack([old.toarray() if sparse.issparse(old) else old, new])
