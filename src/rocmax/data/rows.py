"""Rows that are read in chunks: in memory, in .npy files, or in CSR arrays in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax.data.disk import DiskArray


class Rows(Protocol):
    """Rows of numbers that are read in chunks."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def chunks(self) -> Iterator[tuple[int, Any]]:
        """Yield the number of the first row of each chunk, and the chunk, an array or a CSR matrix."""

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return some rows."""


class MemoryRows:
    """Rows in memory, in one or several parts.

    Parameters
    ----------
    parts : sequence of ndarray or CSR matrix
        The parts, with equal numbers of columns.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = [part.astype(_precision(part.dtype), copy=False) for part in parts]
        self._first = np.cumsum([0, *(part.shape[0] for part in parts)])
        self.shape = (int(self._first[-1]), int(parts[0].shape[1]))
        self.dtype = np.result_type(*(part.dtype for part in self._parts))

    def chunks(self) -> Iterator[tuple[int, Any]]:
        """Yield the parts."""
        return ((int(first), part) for first, part in zip(self._first, self._parts, strict=False) if part.shape[0])

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return some rows, with the rows of each part in order."""
        if len(self._parts) == 1:
            return self._parts[0][index]
        part_of = np.searchsorted(self._first, index, side="right") - 1
        order = np.argsort(part_of, kind="stable")
        found = [self._parts[p][index[part_of == p] - self._first[p]] for p in np.unique(part_of)]
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        if not found:
            return self._parts[0][:0]
        joined = sparse.vstack(found, format="csr") if any(map(sparse.issparse, found)) else np.concatenate(found)
        return joined[back]


class DenseFileRows:
    """Dense rows in a file.

    Parameters
    ----------
    array : DiskArray
        The rows.
    chunk_bytes : int
        Approximate size of a chunk in memory.
    """

    def __init__(self, array: DiskArray, chunk_bytes: int) -> None:
        self._array = array
        self.shape = (array.shape[0], array.shape[1])
        self.dtype = _precision(array.dtype)
        self._step = max(1, chunk_bytes // max(1, self.shape[1] * self.dtype.itemsize))

    def chunks(self) -> Iterator[tuple[int, Any]]:
        """Read the chunks in the order of the file."""
        for start in range(0, self.shape[0], self._step):
            yield start, self._array.read(start, start + self._step).astype(self.dtype, copy=False)

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Read some rows."""
        return self._array.rows(index).astype(self.dtype, copy=False)


class SparseFileRows:
    """CSR rows in three files.

    Parameters
    ----------
    data, indices, indptr : DiskArray
        The arrays of the CSR format.
    n_features : int
        Number of columns.
    chunk_bytes : int
        Approximate size of a chunk in memory.
    """

    def __init__(
        self, data: DiskArray, indices: DiskArray, indptr: DiskArray, n_features: int, chunk_bytes: int
    ) -> None:
        self._data, self._indices, self._indptr = data, indices, indptr
        self.shape = (indptr.shape[0] - 1, n_features)
        self.dtype = _precision(data.dtype)
        stored = data.shape[0] * (data.dtype.itemsize + indices.dtype.itemsize) + self.shape[0] * 8
        self._step = max(1, int(chunk_bytes * self.shape[0] / max(1, stored)))

    def chunks(self) -> Iterator[tuple[int, Any]]:
        """Read the chunks in the order of the files."""
        for start in range(0, self.shape[0], self._step):
            yield start, self._slice(start, start + self._step)

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Read some rows."""
        starts, stops = self._indptr.rows(index), self._indptr.rows(index + 1)
        data = self._data.slices(starts, stops).astype(self.dtype, copy=False)
        indptr = np.append(0, np.cumsum(stops - starts))
        shape = (index.size, self.shape[1])
        return sparse.csr_matrix((data, self._indices.slices(starts, stops), indptr), shape=shape)

    def _slice(self, start: int, stop: int) -> Any:
        ends = self._indptr.read(start, min(stop, self.shape[0]) + 1)
        data = self._data.read(int(ends[0]), int(ends[-1])).astype(self.dtype, copy=False)
        indices = self._indices.read(int(ends[0]), int(ends[-1]))
        return sparse.csr_matrix((data, indices, ends - ends[0]), shape=(ends.size - 1, self.shape[1]))


def _precision(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the products: sums of many rows need more digits than those of half precision."""
    return np.promote_types(dtype, np.float32) if dtype.kind == "f" else np.dtype(np.float64)
