"""Rows, labels and weights on disk, read in chunks by fits that need less memory than the data.

Files are read and written explicitly, not through memory maps. A map counts towards a limit on the address space with
its whole size, and where a file was shortened or the disk is full, it ends the process with a bus error.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from rocmax._support import stage
from rocmax._validation import WEIGHT_ADVICE, WEIGHT_SIZE, canonical_csr, extreme_weights, missing_values
from rocmax.data.read import RULES as READERS
from rocmax.data.read import DataError, Kind, Reading, Table, TableSource, check_names, parameter_names

# A chunk takes a quarter of the memory; its products and the copy for its squares take less than another quarter each.
SHARE = 4


def parse_bytes(name: str, size: Any) -> int:
    """Return a size in bytes; a string may have a unit such as "MB" or "GiB"."""
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGT])(I?)B|B?)\s*", size.upper())
        number = 0.0
        if found is not None:
            power = " KMGT".index(found[2] or " ")
            number = float(found[1]) * (1024 if found[3] else 1000) ** power
    else:
        number = size if isinstance(size, int | float) and not isinstance(size, bool) else 0.0
    if not 1 <= number < np.inf:
        raise ValueError(f"{name} must be a number of bytes or a string such as '500MB' or '2GiB'; got {size!r}")
    return int(number)


# Arrays in files that are read and written in blocks, without a memory map.


class DiskArray:
    """Array in C order in a file, of which some rows are in memory at a time."""

    def __init__(self, path: str | Path, dtype: DTypeLike, shape: Sequence[int], offset: int = 0) -> None:
        self.path, self.dtype, self.shape = Path(path), np.dtype(dtype), tuple(shape)
        self._offset = offset
        # Size, time and place of a file of the user, which must not change.
        self._stamp: tuple[int, ...] | None = None
        self._row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))

    @classmethod
    def open(cls, path: str | Path) -> DiskArray:
        """Open a .npy file."""
        try:
            # Only the header is read; the map is closed with the array.
            array = open_memmap(path, mode="r")
        except (OSError, ValueError) as error:
            raise DataError(f"{path} must be a .npy file with numbers; got an error: {error}") from error
        found = cls.of_map(array)
        if found is None:
            order = "C" if array.flags.c_contiguous else "Fortran"
            raise DataError(
                f"{path} must have one or two dimensions in C order, row after row; got shape {array.shape} in {order} "
                "order. Save numpy.ascontiguousarray(X)"
            )
        return found

    @classmethod
    def of_map(cls, array: Any) -> DiskArray | None:
        """Return the part of a file that an array maps; None for an array whose values must be read from memory.

        Such arrays are those without a file, those that are not contiguous, and copy-on-write maps, whose changes are
        not in the file.
        """
        if not isinstance(array, np.ndarray) or array.ndim not in (1, 2) or not array.flags.c_contiguous:
            return None
        # A slice of a map has the name and the offset of the whole map, which is the last array in the chain of bases.
        whole: Any = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if not isinstance(whole, np.memmap) or whole.filename is None or whole.mode == "c":
            return None
        if whole.mode != "r":
            whole.flush()
        start = whole.offset + array.ctypes.data - whole.ctypes.data
        found = cls(whole.filename, array.dtype, array.shape, start)
        found._stamp = file_stamp(found.path)
        return found

    @classmethod
    def create(cls, path: Path, dtype: DTypeLike, shape: Sequence[int]) -> DiskArray:
        """Create a file with zeros, which take no space on the disk before they are written."""
        found = cls(path, dtype, shape)
        with writing_in(path.parent), path.open("wb") as file:
            file.truncate(found._row_bytes * found.shape[0])
        return found

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        found: NDArray[Any] = np.empty((max(stop - start, 0), *self.shape[1:]), dtype=self.dtype)
        with self._opened("rb") as file:
            self._fill(file, found, start)
        return found

    def __setitem__(self, rows: slice, values: NDArray[Any]) -> None:
        with writing_in(self.path.parent), self._opened("r+b") as file:
            file.seek(self._offset + rows.start * self._row_bytes)
            file.write(np.ascontiguousarray(values, dtype=self.dtype).reshape(-1).view(np.uint8))

    def rows(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Return some rows."""
        return self.slices(index, index + 1)

    def slices(self, starts: NDArray[np.integer], stops: NDArray[np.integer]) -> NDArray[Any]:
        """Return several ranges of rows, one after the other, read in the order of the file."""
        ends = np.cumsum(stops - starts)
        found: NDArray[Any] = np.empty((int(ends[-1]) if ends.size else 0, *self.shape[1:]), dtype=self.dtype)
        with self._opened("rb") as file:
            for i in np.argsort(starts, kind="stable"):
                self._fill(file, found[ends[i] - (stops[i] - starts[i]) : ends[i]], int(starts[i]))
        return found

    def _fill(self, file: Any, target: NDArray[Any], start: int) -> None:
        file.seek(self._offset + start * self._row_bytes)
        if target.size and file.readinto(memoryview(target).cast("B")) < target.nbytes:  # type: ignore[arg-type]
            end = start + len(target)
            raise DataError(f"{self.path} ends before row {end} of {self.shape[0]}; was it changed?")

    def _opened(self, mode: str) -> Any:
        try:
            file = open(self.path, mode)  # noqa: SIM115  # closed by the caller
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if self._stamp is not None and file_stamp(file.fileno()) != self._stamp:
            file.close()
            raise DataError(
                f"{self.path} must not change while its rows are used: its size, its time or its place on the disk is "
                "another one than before. Fit to a copy of the file, or again when it is complete"
            )
        return file


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Turn errors of writing, such as a full disk, into a DataError with the name of the folder."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"folder must have space for a binary copy of the rows and for score vectors; got {folder}: "
            f"{error.strerror or error}. Pass another folder, or remove files from that disk"
        ) from error


def file_stamp(file: Path | int) -> tuple[int, ...]:
    """Return size, time of the last change and place on the disk of a file: if one differs, the file was changed."""
    found = os.stat(file)
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev


def checksum(*arrays: NDArray[Any] | None) -> int:
    """Return a checksum of the values, types and shapes of arrays of numbers, None or text."""
    total = 0
    for array in arrays:
        # Text of variable length, and objects, are pointers in memory.
        values = array.astype(str) if array is not None and array.dtype.kind in "OT" else array
        total = zlib.crc32(repr(None if values is None else (values.dtype.str, values.shape)).encode(), total)
        if values is not None and values.size:
            content: Any = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
            total = zlib.crc32(content, total)
    return total


# Rows that are read in chunks: in memory, in .npy files, or in CSR arrays in files.


class MemoryRows:
    """Rows in memory, in one or several chunks."""

    def __init__(self, chunks: Sequence[Any]) -> None:
        self._chunks = [chunk.astype(_precision(chunk.dtype), copy=False) for chunk in chunks]
        self._first = np.cumsum([0, *(chunk.shape[0] for chunk in chunks)])
        self.shape = (int(self._first[-1]), int(chunks[0].shape[1]))
        self.dtype = np.result_type(*(chunk.dtype for chunk in self._chunks))

    def chunks(self) -> Iterator[tuple[int, Any]]:
        """Yield the chunks."""
        return ((int(first), chunk) for first, chunk in zip(self._first, self._chunks, strict=False) if chunk.shape[0])

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return some rows, with the rows of each chunk in order."""
        if len(self._chunks) == 1 or not index.size:
            return self._chunks[0][index]
        place = np.searchsorted(self._first, index, side="right") - 1
        found = [self._chunks[i][index[place == i] - self._first[i]] for i in np.unique(place)]
        joined = sparse.vstack(found, format="csr") if any(map(sparse.issparse, found)) else np.concatenate(found)
        return joined[np.argsort(np.argsort(place, kind="stable"))]


class DenseFileRows:
    """Dense rows in a file."""

    def __init__(self, array: DiskArray, chunk_bytes: int) -> None:
        self._array = array
        self.shape = (array.shape[0], array.shape[1])
        self.dtype = _precision(array.dtype)
        self._step = max(1, chunk_bytes // max(1, self.shape[1] * self.dtype.itemsize))

    def chunks(self) -> Iterator[tuple[int, Any]]:
        """Read the chunks in the order of the file."""
        for start in range(0, self.shape[0], self._step):
            yield start, self._array[start : start + self._step].astype(self.dtype, copy=False)

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Read some rows."""
        return self._array.rows(index).astype(self.dtype, copy=False)


class SparseFileRows:
    """CSR rows in three files."""

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
            ends = self._indptr[start : start + self._step + 1]
            data = self._data[int(ends[0]) : int(ends[-1])].astype(self.dtype, copy=False)
            indices = self._indices[int(ends[0]) : int(ends[-1])]
            yield start, sparse.csr_matrix((data, indices, ends - ends[0]), shape=(ends.size - 1, self.shape[1]))

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Read some rows."""
        starts, stops = self._indptr.rows(index), self._indptr.rows(index + 1)
        data = self._data.slices(starts, stops).astype(self.dtype, copy=False)
        indptr = np.append(0, np.cumsum(stops - starts))
        shape = (index.size, self.shape[1])
        return sparse.csr_matrix((data, self._indices.slices(starts, stops), indptr), shape=shape)


RowChunks = MemoryRows | DenseFileRows | SparseFileRows


def _precision(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the products: sums of many rows need more digits than those of half precision."""
    return np.promote_types(dtype, np.float32) if dtype.kind == "f" else np.dtype(np.float64)


# Labels and weights of many rows.


class LabelCodes:
    """Labels of many rows, stored as one byte per row."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._codes: list[NDArray[np.uint8]] = []

    def add(self, y: NDArray[Any], name: str = "y") -> None:
        """Add the labels of some rows; ``name`` is their name in messages."""
        try:
            values, place = np.unique(y, return_inverse=True)
        except TypeError:
            raise _mixed(name, y.tolist()) from None
        for value in values.tolist():
            self._known.setdefault(value, len(self._known))
        if len({isinstance(value, str) for value in self._known}) > 1:
            raise _mixed(name, self._known)
        if len(self._known) > np.iinfo(np.uint8).max:
            raise ValueError(f"Only binary classification is supported. Got more than {np.iinfo(np.uint8).max} classes")
        codes = np.array([self._known[value] for value in values.tolist()], dtype=np.uint8)
        self._codes.append(codes[place])

    def finish(self) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Return the distinct labels in ascending order, and the index of each label."""
        found = np.array(list(self._known))
        order = np.argsort(found)
        rank = np.empty(order.size, dtype=np.uint8)
        rank[order] = np.arange(order.size)
        return found[order], rank[np.concatenate(self._codes)] if self._codes else np.empty(0, dtype=np.uint8)


def encoded(y: Any, size: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Return the distinct labels in ascending order, and the index of each label."""
    labels: Any = DiskArray.open(y) if isinstance(y, str | Path) else DiskArray.of_map(y)
    if labels is None:
        # NumPy would turn the numbers in a list with numbers and text into text.
        labels = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if labels.shape != (size,):
        raise DataError(f"y must have shape ({size},), one label per row; got {labels.shape}")
    codes = LabelCodes()
    step = READERS.block // 8
    for start in range(0, size, step):
        block = labels[start : start + step]
        missing = missing_values(block)
        if missing.any():
            row = int(missing.argmax())
            raise DataError(f"y must have a label for each row; got {block[row]} in row {start + row}")
        codes.add(block)
    return codes.finish()


def loaded_weights(values: Any, size: int) -> NDArray[np.float64]:
    """Return one weight per row, in memory."""
    found: Any = DiskArray.open(values)[:] if isinstance(values, str | Path) else np.asarray(values)
    try:
        found = found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must contain numbers; got dtype {found.dtype}") from error
    if found.shape != (size,):
        raise DataError(f"sample_weight must have shape ({size},), one value per row; got {found.shape}")
    check_weights(found, "sample_weight")
    weights: NDArray[np.float64] = found
    return weights


def check_weights(values: NDArray[Any], name: str, first: int = 0, counted: str = "") -> None:
    """Raise DataError for a bad weight or one of extreme size; ``first`` is the number of the first row."""
    bad = ~((values >= 0) & (values < np.inf))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"{name} must be finite and >= 0; got {values[row]} in row {first + row}{counted}")
    extreme = extreme_weights(values)
    if extreme.any():
        row = int(extreme.argmax())
        raise DataError(
            f"{name} must be {WEIGHT_SIZE}; got {values[row]} in row {first + row}{counted}. {WEIGHT_ADVICE}"
        )


def _mixed(name: str, labels: Iterable[Any]) -> DataError:
    kinds = sorted({type(label).__name__ for label in labels})
    return DataError(f"{name} must have labels of one type, numbers or text; got {' and '.join(kinds)}")


# Binary copy of tables, which is read much faster than text.


_ARRAYS = (
    "For arrays and .npy files, pass a RowStore: fit_files(RowStore(X, y)), where X and y may be paths of .npy files"
)


def open_tables(
    files: Any, reading: Reading | None, target: str | None, weight: str | None, columns: Sequence[str] | None
) -> tuple[TableSource, list[str] | None]:
    """Return the files as one table, and the names of the features; None for svmlight files."""
    check_names(columns)
    for name in files if isinstance(files, list | tuple) else [files]:
        if not isinstance(name, str | Path):
            kind = type(name).__name__
            raise TypeError(f"files must be a path, a pattern, a list of paths or a RowStore; got {kind}. {_ARRAYS}")
        if str(name).lower().endswith((".npy", ".npz")):
            raise DataError(f"{name} has no labels. {_ARRAYS}")
    source = TableSource(files, reading)
    if source.columns is None:
        if weight is not None or columns is not None:
            got = f"weight={weight!r}" if columns is None else f"columns={columns!r}"
            raise DataError(f"{source.name} is an svmlight file, which has no column names; got {got}")
        return source, None
    if target is None:
        raise DataError(f"target must be the name of the column with the labels in {source.name}; got None")
    if weight == target:
        raise DataError(f"weight must be another column than target; got {target!r} for both")
    found = [name for name in (source.columns if columns is None else columns) if name not in (target, weight)]
    if not found:
        raise DataError(
            f"columns must name at least one feature of {source.name}; got {columns}. None reads all columns"
        )
    return source, found


class BinaryCopy:
    """Binary copy of batches: dense values or CSR arrays, labels and weights."""

    def __init__(self, folder: Path, skip_unlabeled: bool = False) -> None:
        self._folder, self._labels, self._weights = folder, LabelCodes(), list[Any]()
        self._counts: list[NDArray[Any]] = []
        self._counted = " of those with a label" if skip_unlabeled else ""
        self.n_rows = self._n_features = 0

    def add(self, path: Path, first: int, batch: Table, weight: str | None) -> None:
        """Append a batch of a file, whose first row has the number ``first`` in the file."""
        X, y = batch
        assert y is not None
        if weight is not None:
            found = _numbers(path, X[[weight]])[:, 0]
            check_weights(found, f"{path}: column {weight!r}", first, self._counted)
            self._weights.append(found)
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

    def finish(self, chunk_bytes: int) -> tuple[RowChunks, LabelCodes, Any]:
        """Return the rows, the labels and the weights."""
        if not self.n_rows:
            raise DataError("the files must have rows with a label; got none")
        labels = self._labels
        weight = np.concatenate(self._weights) if self._weights else None
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


# Rows, labels and weights together.


class RowStore:
    """Rows with labels and weights that are read in chunks, for data that are larger than memory.

    Parameters
    ----------
    X : str, Path, ndarray or CSR matrix of shape (n_samples, n_features)
        Path of a .npy file, an array or memory map, or a CSR matrix whose arrays may be memory maps. The files must not
        change afterwards: other values raise a :class:`~rocmax.data.DataError`. Files, memory maps
        and contiguous rows of these, such as ``X[1000:]``, are read in chunks, in their precision. Other slices of maps
        and maps of mode "c", whose changes are not in the file, are used as arrays in memory.
    y : str, Path or array-like of shape (n_samples,)
        Labels, or the path of a .npy file with the labels.
    sample_weight : str, Path or array-like of shape (n_samples,), default=None
        Sample weights, or the path of a .npy file with the weights. They are kept in memory.
    max_memory : int or str, default="1GB"
        Target for the memory of a fit, in bytes or as a string such as "500MB"; from about 10 MB on, it is kept to.
        One chunk takes a quarter of it. Score vectors are kept on disk if they are larger than half of it.

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
    folder : Path or None
        Folder of the binary copy made by :meth:`from_files`, which :meth:`close` removes.

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
        self._rows = _open_rows(X, self.max_memory // SHARE)
        self.shape = self._rows.shape
        self.classes, self.codes = y.finish() if isinstance(y, LabelCodes) else encoded(y, self.shape[0])
        self._weight = None if sample_weight is None else loaded_weights(sample_weight, self.shape[0])
        self.feature_names: list[str] | None = None
        self.folder: Path | None = None
        self._closed = False

    @classmethod
    def from_files(
        cls,
        files: Any,
        *,
        target: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Kind] | None = None,
        n_features: int | None = None,
        reading: Reading | None = None,
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
        target
        weight : str, default=None
            Name of the column with sample weights.
        columns, types
        n_features : ...
            This requires an extra pass.
        reading
        max_memory : int or str, default="1GB"
            Target for the memory of a fit, as for :class:`RowStore`. The readers of the files have buffers of their
            own, for blocks of text and for row groups of parquet files, which are not part of it.
        folder : str or Path, default=None
            Folder for the copy, which takes 8 bytes a value, and for score vectors. None uses the folder for temporary
            files.

        Returns
        -------
        RowStore
            The rows.
        """
        limit = parse_bytes("max_memory", max_memory)
        options: dict[str, Any] = {"target": target, "types": types, "n_features": n_features}
        with parameter_names():
            whole, names = open_tables(files, reading, target, weight, columns)
            home = _new_folder(folder)
            try:
                copy = BinaryCopy(home, bool(whole.reading.skip_unlabeled))
                wanted = None if names is None else [*names, *([] if weight is None else [weight])]
                size = max(1, limit // SHARE // (16 * (len(wanted) if wanted else 100)))
                for path in whole.paths:
                    before, first = file_stamp(path), 0
                    for batch in TableSource(path, reading).batches(batch_size=size, columns=wanted, **options):
                        copy.add(path, first, batch, weight)
                        first += batch.X.shape[0]
                        stage(f"converting {path.name}", copy.n_rows)
                    if file_stamp(path) != before:
                        raise DataError(f"{path} must not change while it is read; got another size or time at its end")
                store = cls(*copy.finish(limit // SHARE), max_memory=limit)
            except BaseException:
                shutil.rmtree(home, ignore_errors=True)
                raise
        store.feature_names, store.folder = names, home
        return store

    @property
    def rows(self) -> RowChunks:
        """The rows, which are read in chunks."""
        self._check_open()
        return self._rows

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Sample weights."""
        self._check_open()
        return self._weight

    def chunks(self) -> Iterator[Any]:
        """Yield the rows in chunks, each an array or a CSR matrix."""
        return (chunk for _, chunk in self.rows.chunks())

    def close(self) -> None:
        """Remove the binary copy made by :meth:`from_files`; the files of the user are not changed."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder, self._closed = None, True

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(
                "the RowStore must be open; got one whose binary copy was removed by close() or at the end of a with "
                "statement. Make another one with RowStore.from_files"
            )

    def __enter__(self) -> RowStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _new_folder(parent: str | Path | None) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="rocmax-rows-", dir=parent))
    except OSError as error:
        raise DataError(f"folder must be a directory that can be written to; got {parent}: {error.strerror}") from error


def _open_rows(X: Any, chunk_bytes: int) -> RowChunks:
    if isinstance(X, DenseFileRows | SparseFileRows | MemoryRows):
        return X
    if sparse.issparse(X):
        _check_shape(X)
        X = X.tocsr()
        data, indices, indptr = (DiskArray.of_map(part) for part in (X.data, X.indices, X.indptr))
        if data is not None and indices is not None and indptr is not None:
            return SparseFileRows(data, indices, indptr, X.shape[1], chunk_bytes)
        return MemoryRows([canonical_csr(X)])
    array: Any = DiskArray.open(X) if isinstance(X, str | Path) else DiskArray.of_map(X)
    if array is None:
        array = np.asarray(X)
    _check_shape(array)
    return DenseFileRows(array, chunk_bytes) if isinstance(array, DiskArray) else MemoryRows([array])


def _check_shape(array: Any) -> None:
    if len(array.shape) != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise DataError(
            "X must be a 2-D array of numbers with at least one row and one column; got shape "
            f"{array.shape} and dtype {array.dtype}"
        )
