"""Sums over rows in double precision, of which those of several sets of rows can be merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._sparse import canonical_csr
from rocmax._typing import Array

# Values of a dense chunk that are copied at a time.
_BLOCK = 1 << 16


class Moments(NamedTuple):
    """Total weight, mean and sum of squared distances from the mean of each feature."""

    weight: float
    mean: Array
    square: Array

    def merged(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows (Chan, Golub and LeVeque 1979)."""
        total = self.weight + other.weight
        if total == 0:
            return self
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.weight / total)
        square = self.square + other.square + apart**2 * (self.weight * other.weight / total)
        return Moments(total, mean, square)


def row_blocks(start: int, chunk: Any) -> Iterator[tuple[slice, Any]]:
    """Yield a few rows of a chunk at a time: a copy of all of a dense chunk would take as much memory as the chunk."""
    step = chunk.shape[0] if sparse.issparse(chunk) else max(1, _BLOCK // max(1, chunk.shape[1]))
    for first in range(0, chunk.shape[0], step):
        block = chunk[first : first + step]
        yield slice(start + first, start + first + block.shape[0]), block


def moments(chunk: Any, weight: Array | None) -> Moments:
    """Return the moments of some rows; those of a constant feature are exactly its value and 0."""
    weight = np.ones(chunk.shape[0]) if weight is None else weight
    total = float(weight.sum())
    if total == 0:
        return Moments(0.0, np.zeros(chunk.shape[1]), np.zeros(chunk.shape[1]))
    if sparse.issparse(chunk):
        return _sparse_moments(canonical_csr(chunk), weight, total)
    values = chunk.astype(np.float64)
    first = values[0].copy()
    values -= first
    apart = weight @ values / total
    values -= apart
    values *= values
    return Moments(total, first + apart, weight @ values)


def _sparse_moments(rows: Any, weight: Array, total: float) -> Moments:
    """Return the moments of sparse rows: those of the stored values, merged with those of the zeros."""
    n_rows, d = rows.shape
    column, values, share = rows.indices, rows.data.astype(np.float64), np.repeat(weight, np.diff(rows.indptr))
    stored = np.bincount(column, share, d)
    stored[np.bincount(column, minlength=d) == n_rows] = total
    first = np.zeros(d)
    first[column] = values
    values -= first[column]
    apart = np.bincount(column, share * values, d)
    np.divide(apart, stored, out=apart, where=stored > 0)
    values -= apart[column]
    values *= values
    values *= share
    mean = first + apart
    square = np.bincount(column, values, d) + mean**2 * (stored * (total - stored) / total)
    return Moments(total, mean * (stored / total), square)


def wave_sums(
    chunk: Any, positive: NDArray[np.bool_], weight: Array | None, v: Array, shift: float
) -> tuple[Array, Array]:
    """Return sums that identify some rows, whatever their order.

    Parameters
    ----------
    chunk : ndarray or CSR matrix
        The rows.
    positive : ndarray of bool
        Mask of the positive rows.
    weight : ndarray or None
        Weights of the rows; None if all are 1.
    v : ndarray
        Random weights of the features.
    shift : float
        Subtracted from the scores ``X @ v``.

    Returns
    -------
    waves : ndarray of shape (2, 2)
        Sums of cosine and sine of the scores of the negatives, then of the positives. They depend on the joint
        distribution of the features, and are smooth, so that rounding hardly changes them.
    sums : ndarray of shape (n_features,)
        Sums of the features of the positives.
    """
    values = chunk.astype(np.float64)
    s = values @ v - shift
    sides = np.stack([~positive, positive]) * (1.0 if weight is None else weight)
    return sides @ np.stack([np.cos(s), np.sin(s)], axis=1), values.T @ sides[1]
