"""Conversion of sparse matrices to the canonical CSR format that the package uses."""

from __future__ import annotations

from typing import Any

import numpy as np


def canonical_csr(X: Any) -> Any:
    """Return sparse rows as CSR with sorted indices, no duplicates, and 32-bit indices if possible.

    Duplicate entries are summed, in single precision for float32 and in double precision otherwise. The input is not
    modified, and it is not copied if it already has this format. Arrays that are not two-dimensional or not of a real
    data type are returned unchanged: scikit-learn's validation rejects them.

    Parameters
    ----------
    X : sparse matrix or array
        Rows in any of SciPy's sparse formats.

    Raises
    ------
    ValueError
        If an index of a CSR or CSC matrix is out of bounds.
    """
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return X
    if X.format in ("csr", "csc"):
        # A new object that shares the memory: SciPy caches on the object whether the indices are sorted, and the cached
        # value can be out of date.
        X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        _check_indices(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return _with_short_indices(rows)


def _check_indices(X: Any) -> None:
    """Raise ValueError if an index is out of bounds: compiled loops would read invalid memory."""
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(
            f"X must be a sparse matrix with valid indices; got shape {X.shape} with invalid indices: {error}"
        ) from error


def _with_short_indices(rows: Any) -> Any:
    """Convert indices to 32 bits, as required by liblinear and k-means, unless the matrix is too large."""
    most = np.iinfo(np.int32).max
    if rows.indices.dtype == np.int32 or max(*rows.shape, rows.nnz) > most:
        return rows
    parts = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return type(rows)(parts, shape=rows.shape)
