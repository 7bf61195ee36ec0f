"""Rows, labels and weights on disk, read in chunks by fits that need less memory than the data."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._progress import stage
from rocmax._sparse import canonical_csr
from rocmax._validate import check_flag
from rocmax.data._binary_copy import BinaryCopy, feature_names, find_files
from rocmax.data._conversion import Kind
from rocmax.data._labels import LabelCodes, encoded, open_weights
from rocmax.data._table_source import TableSource
from rocmax.data.disk import DiskArray, file_stamp
from rocmax.data.errors import DataError, check_names
from rocmax.data.rows import DenseFileRows, MemoryRows, Rows, SparseFileRows
from rocmax.data.sizes import parse_bytes

# A chunk takes a quarter of the memory; its products and the copy for its squares take less than another quarter each.
_SHARE = 4


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
        Sample weights, or the path of a .npy file with the weights. Those in files and memory maps are read in parts.
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
        Sample weights. Those in files are read when this attribute is used; a fit reads them in parts.
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
        self._rows = _open_rows(X, self.max_memory // _SHARE)
        self.shape = self._rows.shape
        self.classes, self.codes = y.finish() if isinstance(y, LabelCodes) else encoded(y, self.shape[0])
        self._weight: NDArray[Any] | DiskArray | None = None
        if sample_weight is not None:
            given = isinstance(sample_weight, DiskArray)
            self._weight = sample_weight if given else open_weights(sample_weight, self.shape[0])
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
        delimiter: str | None = None,
        n_features: int | None = None,
        zero_based: bool = False,
        skip_unlabelled: bool = False,
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
            Field delimiter of a text table. If None, it is detected from the header and the first rows.
        n_features : int, default=None
            Number of features of svmlight files. If None, the largest index is used. This requires an extra pass.
        zero_based : bool, default=False
            Whether the feature indices of an svmlight file start at 0 instead of 1.
        skip_unlabelled : bool, default=False
            Whether to leave out rows without a label, which are otherwise an error.
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
        check_flag("zero_based", zero_based)
        check_flag("skip_unlabelled", skip_unlabelled)
        check_names(columns)
        paths = find_files(files)
        options: dict[str, Any] = {
            "target": target,
            "types": types,
            "n_features": n_features,
            "zero_based": zero_based,
            "skip_unlabelled": skip_unlabelled,
        }
        home = _new_folder(folder)
        try:
            copy = BinaryCopy(home, skip_unlabelled)
            names: list[str] | None = None
            for path in paths:
                before = file_stamp(path)
                source = TableSource(path, delimiter=delimiter)
                names = feature_names(source, names, target, weight, columns)
                wanted = None if names is None else [*names, *([] if weight is None else [weight])]
                size = max(1, limit // _SHARE // (16 * (len(wanted) if wanted else 100)))
                first = 0
                for batch in source.batches(batch_size=size, columns=wanted, **options):
                    copy.add(path, first, batch, weight)
                    first += batch.X.shape[0]
                    stage(f"converting {path.name}", copy.n_rows)
                if file_stamp(path) != before:
                    raise DataError(f"{path} must not change while it is read; got another size or time at its end")
            store = cls(*copy.finish(limit // _SHARE), max_memory=limit)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        store.feature_names, store.folder = names, home
        return store

    @property
    def rows(self) -> Rows:
        """The rows, which are read in chunks."""
        self._check_open()
        return self._rows

    @property
    def stored_weight(self) -> NDArray[Any] | DiskArray | None:
        """Sample weights, in memory or on disk."""
        self._check_open()
        return self._weight

    @property
    def weight(self) -> NDArray[Any] | None:
        """Sample weights."""
        found = self.stored_weight
        return found.read(0, self.shape[0]).astype(np.float64, copy=False) if isinstance(found, DiskArray) else found

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


def _open_rows(X: Any, chunk_bytes: int) -> Rows:
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
