"""Binary copy of tables, which is read much faster than text."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._sparse import canonical_csr
from rocmax.data._conversion import Table
from rocmax.data._labels import LabelCodes, check_weights
from rocmax.data._table_source import TableSource
from rocmax.data.disk import DiskArray, writing_in
from rocmax.data.errors import DataError
from rocmax.data.rows import DenseFileRows, Rows, SparseFileRows

_ARRAYS = (
    "For arrays and .npy files, pass a RowStore: fit_files(RowStore(X, y)), where X and y may be paths of .npy files"
)


def find_files(files: Any) -> list[Path]:
    """Return the files of a path, a pattern or a list of both; raise DataError if there is none."""
    given = list(files) if isinstance(files, list | tuple) else [files]
    if not all(isinstance(name, str | Path) for name in given):
        kind = next(type(name).__name__ for name in given if not isinstance(name, str | Path))
        raise TypeError(f"files must be a path, a pattern, a list of paths or a RowStore; got {kind}. {_ARRAYS}")
    found = [
        path for name in given for path in (sorted(glob.glob(str(name))) if glob.has_magic(str(name)) else [str(name)])
    ]
    if not found:
        raise DataError(f"files must name at least one file; got {files!r}, which matches none")
    for path in found:
        if path.lower().endswith((".npy", ".npz")):
            raise DataError(f"{path} has no labels. {_ARRAYS}")
    return [Path(path) for path in found]


def feature_names(
    source: TableSource, names: list[str] | None, target: str | None, weight: str | None, columns: Sequence[str] | None
) -> list[str] | None:
    """Return the names of the features; raise DataError if they differ from those of the first file."""
    if source.columns is None:
        if weight is not None:
            raise DataError(f"{source.name} is an svmlight file, which has no column {weight!r} with weights")
        if columns is not None:
            raise DataError(f"{source.name} is an svmlight file, which has no column names; got columns={columns!r}")
        return None
    if target is None:
        raise DataError(f"target must be the name of the column with the labels in {source.name}; got None")
    if weight == target:
        raise DataError(f"weight must be another column than target; got {target!r} for both")
    found = [name for name in (source.columns if columns is None else columns) if name not in (target, weight)]
    if not found:
        raise DataError(
            f"columns must name at least one feature of {source.name}; got {columns}. None reads all columns"
        )
    if names is not None and found != names:
        other = sorted(set(found) ^ set(names)) or found
        raise DataError(f"{source.name} must have the columns of the first file, in the same order; got {other[:5]}")
    return found


class BinaryCopy:
    """Binary copy of batches: dense values or CSR arrays, labels and weights.

    Parameters
    ----------
    folder : Path
        Folder for the files.
    skip_unlabelled : bool, default=False
        Whether rows without a label were left out, so that messages count the others only.

    Attributes
    ----------
    n_rows : int
        Number of rows so far.
    """

    def __init__(self, folder: Path, skip_unlabelled: bool = False) -> None:
        self._folder, self._labels, self._weighted = folder, LabelCodes(), False
        self._counts: list[NDArray[Any]] = []
        self._counted = " of those with a label" if skip_unlabelled else ""
        self.n_rows = self._n_features = 0

    def add(self, path: Path, first: int, batch: Table, weight: str | None) -> None:
        """Append a batch of a file, whose first row has the number ``first`` in the file."""
        X, y = batch
        assert y is not None
        if weight is not None:
            found = _numbers(path, X[[weight]])[:, 0]
            check_weights(found, f"{path}: column {weight!r}", first, self._counted)
            self._append("weight", found)
            self._weighted = True
            X = X.drop(columns=weight)
        self._labels.add(y, str(path))
        self.n_rows += X.shape[0]
        self._n_features = max(self._n_features, X.shape[1])
        if sparse.issparse(X):
            X = canonical_csr(X)
            self._check_finite(path, first, X.data, lambda i: (np.searchsorted(X.indptr, i, "right") - 1, X.indices[i]))
            self._counts.append(np.diff(X.indptr))
            self._append("data", X.data.astype(np.float64, copy=False))
            self._append("indices", X.indices.astype(np.int64, copy=False))
        else:
            values = _numbers(path, X)
            self._check_finite(path, first, values, lambda i: (i // X.shape[1], repr(X.columns[i % X.shape[1]])))
            self._append("values", values)

    def _check_finite(self, path: Path, first: int, values: NDArray[Any], place: Callable[[int], Any]) -> None:
        """Raise DataError with the file, the row and the column of the first value that is not finite."""
        if np.isfinite(values).all():
            return
        entry = int(np.isfinite(values).argmin())
        row, column = place(entry)
        raise DataError(
            f"{path}: column {column} must contain finite numbers; got {values.flat[entry]} in row "
            f"{first + row}{self._counted}. Fill in missing values, or omit the column from columns"
        )

    def finish(self, chunk_bytes: int) -> tuple[Rows, LabelCodes, DiskArray | None]:
        """Return the rows, the labels and the weights."""
        if not self.n_rows:
            raise DataError("the files must have rows with a label; got none")
        labels = self._labels
        weight = DiskArray(self._folder / "weight", np.float64, (self.n_rows,)) if self._weighted else None
        if not self._counts:
            shape = (self.n_rows, self._n_features)
            return DenseFileRows(DiskArray(self._folder / "values", np.float64, shape), chunk_bytes), labels, weight
        ends = np.append(0, np.cumsum(np.concatenate(self._counts), dtype=np.int64))
        self._append("indptr", ends)
        kinds = {"data": np.float64, "indices": np.int64, "indptr": np.int64}
        sizes = {"data": int(ends[-1]), "indices": int(ends[-1]), "indptr": ends.size}
        arrays = [DiskArray(self._folder / name, kind, (sizes[name],)) for name, kind in kinds.items()]
        return SparseFileRows(arrays[0], arrays[1], arrays[2], self._n_features, chunk_bytes), labels, weight

    def _append(self, name: str, values: NDArray[Any]) -> None:
        # Not `tofile`, whose error for a full disk has no reason.
        with writing_in(self._folder), (self._folder / name).open("ab") as file:
            file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _numbers(path: Path, frame: Any) -> NDArray[np.float64]:
    for name, kind in frame.dtypes.items():
        if kind != np.float64:
            raise DataError(
                f"{path}: column {name!r} must contain numbers; got {kind}. Encode it, or omit it from columns"
            )
    result: NDArray[np.float64] = frame.to_numpy()
    return result
