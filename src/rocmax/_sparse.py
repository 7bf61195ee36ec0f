"""Sparse rows in the one form that the rest of the package relies on."""

from __future__ import annotations

from typing import Any

import numpy as np


def canonical_csr(X: Any) -> Any:
    """Return sparse rows as CSR with sorted columns, each stored once, and 32-bit indices where those suffice.

    Entries stored twice are summed, in double precision unless they are single precision. The given matrix is left
    alone, and nothing is copied that is in this form already. Values that are no real numbers, and arrays that are not
    two-dimensional, are returned unchanged: scikit-learn's validation rejects them.

    Parameters
    ----------
    X : sparse matrix or array
        Rows, in any format of SciPy.

    Raises
    ------
    ValueError
        If an index of a CSR or CSC matrix lies outside the matrix.
    """
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return X
    if X.format in ("csr", "csc"):
        # Another object on the same memory: SciPy notes on the object whether its indices are sorted, and such a note
        # can be out of date.
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
    """Raise ValueError if an index points outside: compiled loops would read memory that is not theirs."""
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is a sparse matrix of shape {X.shape} with wrong indices: {error}") from error


def _with_short_indices(rows: Any) -> Any:
    """Return rows with 32-bit indices, which liblinear and k-means need, unless the matrix is too large for them."""
    most = np.iinfo(np.int32).max
    if rows.indices.dtype == np.int32 or max(*rows.shape, rows.nnz) > most:
        return rows
    parts = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return type(rows)(parts, shape=rows.shape)
