"""Rows, labels and weights on disk, read in chunks by fits that need less memory than the data."""

from __future__ import annotations

import glob
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._sparse import canonical_csr
from rocmax.data._conversion import Kind, Table
from rocmax.data._table_source import TableSource
from rocmax.data.disk import DiskArray
from rocmax.data.errors import DataError
from rocmax.data.rows import DenseFileRows, MemoryRows, Rows, SparseFileRows
from rocmax.data.sizes import parse_bytes

# A chunk takes a quarter of the memory; its products and the copy for its squares take less than another quarter each.
_SHARE = 4
# Rows whose labels are encoded at a time, and the number of distinct labels that fit into a byte.
_BLOCK, _MOST_CLASSES = 1 << 20, 255


class RowStore:
    """Rows with labels and weights that are read in chunks, for data that are larger than memory.

    Parameters
    ----------
    X : str, Path, ndarray or CSR matrix of shape (n_samples, n_features)
        Path of a .npy file, an array or memory map, or a CSR matrix whose arrays may be memory maps. Files, memory maps
        and contiguous rows of these, such as ``X[1000:]``, are read in chunks, in their precision. Other slices of maps
        and maps of mode "c", whose changes are not in the file, are used as arrays in memory.
    y : str, Path or array-like of shape (n_samples,)
        Labels, or the path of a .npy file with the labels.
    sample_weight : str, Path or array-like of shape (n_samples,), default=None
        Sample weights, or the path of a .npy file with the weights.
    max_memory : int or str, default="1GB"
        Memory for the rows that are in use at a time, in bytes or as a string such as "500MB". One chunk takes a
        quarter of it. Score vectors are kept on disk if they are larger than the limit.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and features.
    classes : ndarray
        The distinct labels, in ascending order.
    codes : ndarray of uint8 of shape (n_samples,)
        Index of the label of each row in ``classes``.
    weight : ndarray of shape (n_samples,) or None
        Sample weights.
    feature_names : list of str or None
        Names of the features, if the rows come from tables with a header.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rocmax.data import RowStore
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "X.npy"), np.arange(6.0).reshape(3, 2))
    ...     store = RowStore(Path(folder, "X.npy"), [0, 1, 1], max_memory=64)
    ...     [chunk.tolist() for chunk in store.chunks()]
    [[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]]]
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, *, max_memory: int | str = "1GB") -> None:
        self.max_memory = parse_bytes("max_memory", max_memory)
        self.rows = _open_rows(X, self.max_memory // _SHARE)
        self.shape = self.rows.shape
        self.classes, self.codes = y.finish() if isinstance(y, LabelCodes) else _encoded(y, self.shape[0])
        self.weight: NDArray[Any] | None = None
        if sample_weight is not None:
            self.weight = _vector("sample_weight", sample_weight, self.shape[0])
        self.feature_names: list[str] | None = None
        self._folder: Path | None = None

    @classmethod
    def from_files(
        cls,
        files: Any,
        *,
        target: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Kind] | None = None,
        delimiter: str | None = None,
        n_features: int | None = None,
        zero_based: bool = False,
        max_memory: int | str = "1GB",
        folder: str | Path | None = None,
    ) -> RowStore:
        """Convert csv, tsv, parquet or svmlight files once to a binary copy on disk, in bounded memory.

        Later passes read the copy, which is much faster than parsing text. :meth:`close` removes it.

        Parameters
        ----------
        files : str, Path or list
            A file, as in :func:`read_table`, a pattern such as ``"data/*.parquet"``, or a list of files. All files must
            have the same columns.
        target : str, default=None
            Name of the column with the labels. An svmlight file stores its labels itself and takes no target.
        weight : str, default=None
            Name of the column with sample weights.
        columns : sequence of str, default=None
            Features to read, in this order. If None, all columns except the target and the weights are read.
        types : dict, default=None
            "number" or "text" for columns whose type should not be inferred.
        delimiter : str, default=None
            Field delimiter of a text table. If None, a comma is used, or a tab for tsv files.
        n_features : int, default=None
            Number of features of svmlight files. If None, the largest index is used. This requires an extra pass.
        zero_based : bool, default=False
            Whether the feature indices of an svmlight file start at 0 instead of 1.
        max_memory : int or str, default="1GB"
            Memory for the rows that are in use at a time, as for :class:`RowStore`.
        folder : str or Path, default=None
            Folder for the copy, which takes 8 bytes a value. None uses the folder for temporary files.

        Returns
        -------
        RowStore
            The rows.
        """
        limit = parse_bytes("max_memory", max_memory)
        paths = find_files(files)
        home = Path(tempfile.mkdtemp(prefix="rocmax-rows-", dir=folder))
        try:
            options: dict[str, Any] = {
                "target": target,
                "types": types,
                "n_features": n_features,
                "zero_based": zero_based,
            }
            writer = _Writer(home)
            names: list[str] | None = None
            for path in paths:
                source = TableSource(path, delimiter=delimiter)
                names = _features(source, names, target, weight, columns)
                wanted = None if names is None else [*names, *([] if weight is None else [weight])]
                size = max(1, limit // _SHARE // (16 * (len(wanted) if wanted else 100)))
                for batch in source.batches(batch_size=size, columns=wanted, **options):
                    writer.add(path, batch, weight)
            store = cls(*writer.finish(limit // _SHARE), max_memory=limit)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        store.feature_names, store._folder = names, home
        return store

    def chunks(self) -> Iterator[Any]:
        """Yield the rows in chunks, each an array or a CSR matrix."""
        return (chunk for _, chunk in self.rows.chunks())

    def close(self) -> None:
        """Remove the binary copy made by :meth:`from_files`; the files of the user are not changed."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> RowStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def find_files(files: Any) -> list[Path]:
    """Return the files of a path, a pattern or a list of both; raise DataError if there is none."""
    given = [files] if isinstance(files, str | Path) else list(files)
    found = [
        path for name in given for path in (sorted(glob.glob(str(name))) if glob.has_magic(str(name)) else [str(name)])
    ]
    if not found:
        raise DataError(f"files must name at least one file; got {files!r}, which matches none")
    return [Path(path) for path in found]


def _features(
    source: TableSource, names: list[str] | None, target: str | None, weight: str | None, columns: Sequence[str] | None
) -> list[str] | None:
    """Return the names of the features; raise DataError if they differ from those of the first file."""
    if source.columns is None:
        if weight is not None:
            raise DataError(f"{source.name} is an svmlight file, which has no column {weight!r} with weights")
        return None
    if target is None:
        raise DataError(f"target must be the name of the column with the labels in {source.name}; got None")
    found = [name for name in (columns or source.columns) if name not in (target, weight)]
    if names is not None and found != names:
        other = sorted(set(found) ^ set(names)) or found
        raise DataError(f"{source.name} must have the columns of the first file, in the same order; got {other[:5]}")
    return found


class LabelCodes:
    """Labels of many rows, stored as one byte per row."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._codes: list[NDArray[np.uint8]] = []

    def add(self, y: NDArray[Any]) -> None:
        """Add the labels of some rows."""
        values, place = np.unique(y, return_inverse=True)
        for value in values.tolist():
            self._known.setdefault(value, len(self._known))
        if len(self._known) > _MOST_CLASSES:
            raise ValueError(f"Only binary classification is supported. Got more than {_MOST_CLASSES} classes")
        codes = np.array([self._known[value] for value in values.tolist()], dtype=np.uint8)
        self._codes.append(codes[place])

    def finish(self) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Return the distinct labels in ascending order, and the index of each label."""
        found = np.array(list(self._known))
        order = np.argsort(found)
        rank = np.empty(order.size, dtype=np.uint8)
        rank[order] = np.arange(order.size)
        return found[order], rank[np.concatenate(self._codes)] if self._codes else np.empty(0, dtype=np.uint8)


class _Writer:
    """Binary copy of batches: dense values or CSR arrays, labels and weights."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._labels, self._weights = folder, LabelCodes(), list[NDArray[Any]]()
        self._counts: list[NDArray[Any]] = []
        self._n_rows = self._n_features = 0

    def add(self, path: Path, batch: Table, weight: str | None) -> None:
        X, y = batch
        assert y is not None
        if weight is not None:
            self._weights.append(_numbers(path, X[[weight]])[:, 0])
            X = X.drop(columns=weight)
        self._labels.add(y)
        self._n_rows += X.shape[0]
        self._n_features = max(self._n_features, X.shape[1])
        if sparse.issparse(X):
            X = canonical_csr(X)
            self._counts.append(np.diff(X.indptr))
            self._append("data", X.data.astype(np.float64, copy=False))
            self._append("indices", X.indices.astype(np.int64, copy=False))
        else:
            self._append("values", _numbers(path, X))

    def finish(self, chunk_bytes: int) -> tuple[Rows, LabelCodes, NDArray[Any] | None]:
        labels = self._labels
        weight = np.concatenate(self._weights) if self._weights else None
        if not self._counts:
            shape = (self._n_rows, self._n_features)
            return DenseFileRows(DiskArray(self._folder / "values", np.float64, shape), chunk_bytes), labels, weight
        ends = np.append(0, np.cumsum(np.concatenate(self._counts), dtype=np.int64))
        self._append("indptr", ends)
        kinds = {"data": np.float64, "indices": np.int64, "indptr": np.int64}
        sizes = {"data": int(ends[-1]), "indices": int(ends[-1]), "indptr": ends.size}
        arrays = [DiskArray(self._folder / name, kind, (sizes[name],)) for name, kind in kinds.items()]
        return SparseFileRows(arrays[0], arrays[1], arrays[2], self._n_features, chunk_bytes), labels, weight

    def _append(self, name: str, values: NDArray[Any]) -> None:
        with (self._folder / name).open("ab") as file:
            np.ascontiguousarray(values).tofile(file)


def _numbers(path: Path, frame: Any) -> NDArray[np.float64]:
    for name, kind in frame.dtypes.items():
        if kind != np.float64:
            raise DataError(
                f"{path}: column {name!r} must contain numbers; got {kind}. Encode it, or omit it from columns"
            )
    result: NDArray[np.float64] = frame.to_numpy()
    return result


def _open_rows(X: Any, chunk_bytes: int) -> Rows:
    if isinstance(X, DenseFileRows | SparseFileRows | MemoryRows):
        return X
    if sparse.issparse(X):
        X = X.tocsr()
        data, indices, indptr = (DiskArray.of_map(part) for part in (X.data, X.indices, X.indptr))
        if data is not None and indices is not None and indptr is not None:
            return SparseFileRows(data, indices, indptr, X.shape[1], chunk_bytes)
        return MemoryRows([canonical_csr(X)])
    array: Any = DiskArray.open(X) if isinstance(X, str | Path) else DiskArray.of_map(X)
    if array is None:
        array = np.asarray(X)
    if len(array.shape) != 2 or array.dtype.kind not in "fiub" or array.shape[0] == 0:
        raise DataError(
            f"X must be a 2-D array of numbers with at least one row; got shape {array.shape} and dtype {array.dtype}"
        )
    return DenseFileRows(array, chunk_bytes) if isinstance(array, DiskArray) else MemoryRows([array])


def _encoded(y: Any, size: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    labels: Any = DiskArray.open(y) if isinstance(y, str | Path) else DiskArray.of_map(y)
    if labels is None:
        labels = np.asarray(y)
    if labels.shape != (size,):
        raise DataError(f"y must have shape ({size},), one label per row; got {labels.shape}")
    codes = LabelCodes()
    for start in range(0, size, _BLOCK):
        stop = min(start + _BLOCK, size)
        part = labels.read(start, stop) if isinstance(labels, DiskArray) else labels[start:stop]
        if part.dtype.kind == "f" and np.isnan(part).any():
            raise DataError(f"y must have a label for each row; got NaN in row {start + int(np.isnan(part).argmax())}")
        codes.add(part)
    return codes.finish()


def _vector(name: str, values: Any, size: int) -> NDArray[Any]:
    if isinstance(values, str | Path):
        values = np.load(values, allow_pickle=False)
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (size,):
        raise DataError(f"{name} must have shape ({size},), one value per row; got {found.shape}")
    return found
