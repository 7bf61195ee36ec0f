"""Source of a table: a file or a data frame, read as a whole or in batches, with the header parsed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax.data import _csv, _frames, _parquet, _svmlight
from rocmax.data._files import Source, arrow, find_source
from rocmax.data._frames import FrameSource
from rocmax.data._shuffle import rebatch
from rocmax.data.errors import DataError, check_columns

Kind = Literal["number", "text"]


class Table(NamedTuple):
    """Features, as a pandas DataFrame or a CSR matrix, and labels, which are None without a target."""

    X: Any
    y: NDArray[Any] | None


class TableSource:
    """File or data frame with known columns; the header is parsed once, even if the rows are read several times.

    Parameters
    ----------
    table : str, Path or data frame
        File, as in :func:`read_table`; or a pandas or polars DataFrame, or a pyarrow Table.
    delimiter : str, default=None
        Field delimiter of a text table. If None, a comma is used, or a tab for tsv files.

    Attributes
    ----------
    name : str
        Path of the file, or "the table" for a data frame.
    columns : list of str or None
        Column names, in order; None for an svmlight file, which has no column names.

    Examples
    --------
    >>> import pandas as pd
    >>> from rocmax.data import TableSource
    >>> source = TableSource(pd.DataFrame({"amount": [10, None], "label": ["ok", "fraud"]}))
    >>> source.columns
    ['amount', 'label']
    >>> source.read(target="label").X["amount"].tolist()
    [10.0, nan]
    """

    def __init__(self, table: Any, *, delimiter: str | None = None) -> None:
        self._delimiter = delimiter
        self.columns: list[str] | None = None
        self._source: Source | FrameSource
        if _frames.is_frame(table):
            arrow()
            self._source = FrameSource(table)
            self.columns = _frames.header(self._source)
        elif isinstance(table, str | Path):
            self._source = find_source(table)
            if self._source.format == "parquet":
                self.columns = _parquet.header(self._source)
            elif self._source.format != "svmlight":
                self.columns = _csv.header(self._source, delimiter)
                self._source = self._source._replace(n_columns=len(self.columns))
        else:
            raise TypeError(
                f"table must be a path or a pandas or polars DataFrame; got a value of type {type(table).__name__}"
            )
        self.name = str(self._source.path)

    def read(
        self,
        *,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Kind] | None = None,
        n_features: int | None = None,
        zero_based: bool = False,
        max_bytes: int | None = None,
    ) -> Table:
        """Read all rows.

        Parameters
        ----------
        target : str, default=None
            Name of the column with the labels. An svmlight file stores its labels itself and takes no target.
        columns : sequence of str, default=None
            Features to read, in this order. If None, all columns except the target are read.
        types : dict, default=None
            "number" or "text" for columns whose type should not be inferred.
        n_features : int, default=None
            Number of features of an svmlight file. If None, the largest index is used.
        zero_based : bool, default=False
            Whether the feature indices of an svmlight file start at 0 instead of 1.
        max_bytes : int, default=None
            Maximum decompressed size of a compressed file, and maximum size in memory of the columns of a parquet file.
            If None, the limit is 256 MiB, or 100 times the size of the file if that is larger. Other files have no
            limit.

        Returns
        -------
        Table
            ``X`` (DataFrame or CSR matrix) and ``y``.
        """
        if isinstance(self._source, FrameSource):
            names, _ = self._resolve(target, columns, types)
            return _as_table(self._source, _frames.read(self._source, names), target, types or {})
        source = self._source.limited(max_bytes)
        if source.format == "svmlight":
            _no_names(source, target, columns)
            return _labelled(source, *_svmlight.read(source, n_features, zero_based))
        names, declared = self._resolve(target, columns, types)
        if source.format == "parquet":
            _parquet.check_size(source, names, max_bytes)
            table = arrow().concat_tables(_parquet.parts(source, names))
        else:
            table = _csv.read(source, names, declared, self._delimiter)
        return _as_table(source, table, target, types or {})

    def batches(
        self,
        *,
        target: str | None = None,
        batch_size: int = 10_000,
        buffer_size: int | None = None,
        random_state: int | np.random.Generator | None = None,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Kind] | None = None,
        n_features: int | None = None,
        zero_based: bool = False,
    ) -> Iterator[Table]:
        """Read the rows in batches.

        Parameters
        ----------
        target : str, default=None
            Name of the column with the labels. An svmlight file stores its labels itself and takes no target.
        batch_size : int, default=10000
            Number of rows in a batch; the last batch may have fewer.
        buffer_size : int, default=None
            Number of rows in the shuffle buffer, at least ``batch_size``. If None, the order of the file is kept.
        random_state : int, numpy.random.Generator or None, default=None
            Seed or generator of the order. Pass an int for reproducible results.
        columns : sequence of str, default=None
            Features to read, in this order. If None, all columns except the target are read.
        types : dict, default=None
            "number" or "text" for columns whose type should not be inferred. The other types are inferred
            from the first 4 MB of a text table; a later row with another type is an error that names the line.
        n_features : int, default=None
            Number of features of an svmlight file. If None, the largest index is used. This requires an extra pass.
        zero_based : bool, default=False
            Whether the feature indices of an svmlight file start at 0 instead of 1.

        Returns
        -------
        iterator of Table
            ``X`` (DataFrame or CSR matrix) and ``y``.
        """
        _check_sizes(batch_size, buffer_size)
        source: Any = self._source
        if source.format == "svmlight":
            _no_names(source, target, columns)
            pairs = _svmlight.parts(source, n_features, zero_based)
            parts: Iterator[Any] = (_labelled(source, *pair) for pair in pairs)
        else:
            names, declared = self._resolve(target, columns, types)
            pieces = self._pieces(names, declared)
            parts = (_as_table(source, piece, target, types or {}) for piece in pieces)
        rng = None if buffer_size is None else np.random.default_rng(random_state)
        return (Table(*batch) for batch in rebatch(parts, batch_size, buffer_size, rng))

    def _pieces(self, names: list[str], declared: dict[str, Any]) -> Iterator[Any]:
        if isinstance(self._source, FrameSource):
            return _frames.parts(self._source, names)
        if self._source.format == "parquet":
            return _parquet.parts(self._source, names)
        return _csv.parts(self._source, names, declared, self._delimiter)

    def _resolve(
        self, target: str | None, columns: Sequence[str] | None, types: Mapping[str, Kind] | None
    ) -> tuple[list[str], dict[str, Any]]:
        """Return the columns to read, with the target last, and the Arrow types of those that are declared."""
        present = self.columns or []
        wanted = list(present if columns is None else columns)
        check_columns(self.name, wanted + ([] if target is None else [target]), present)
        names = [name for name in wanted if name != target] + ([] if target is None else [target])
        pa = arrow()
        kinds = {"number": pa.float64(), "text": pa.string()}
        unknown = [kind for kind in (types or {}).values() if kind not in kinds]
        if unknown:
            raise ValueError(f"the values of types must be 'number' or 'text'; got {unknown[0]!r}")
        return names, {name: kinds[kind] for name, kind in (types or {}).items()}


def _check_sizes(batch_size: int, buffer_size: int | None) -> None:
    for name, value in (
        ("batch_size", batch_size),
        ("buffer_size", batch_size if buffer_size is None else buffer_size),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1; got {value!r}")
    if buffer_size is not None and buffer_size < batch_size:
        raise ValueError(f"buffer_size must be at least batch_size, {batch_size}; got {buffer_size!r}")


def _no_names(source: Any, target: str | None, columns: Sequence[str] | None) -> None:
    if target is not None or columns is not None:
        raise DataError(f"{source.path} is an svmlight file, which stores its labels itself and has no column names")


def _as_table(source: Any, table: Any, target: str | None, types: Mapping[str, Kind]) -> Table:
    """Split an Arrow table into features, of the types of this module, and labels."""
    pa, labels = arrow(), None
    names, columns = table.column_names, table.columns
    try:
        if target is not None:
            labels = _labels(source, columns.pop(names.index(target)), target)
            names.remove(target)
        plain = [_plain(source, column, name, types.get(name)) for name, column in zip(names, columns, strict=True)]
        return Table(pa.table(plain, names=names).to_pandas(), labels)
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise DataError(f"{source.path} is damaged or has values out of range: {error}") from error


def _labels(source: Any, column: Any, target: str) -> NDArray[Any]:
    labels = column.to_pandas().to_numpy()
    lacking = int(np.count_nonzero(np.isnan(labels))) if labels.dtype.kind == "f" else column.null_count
    if lacking:
        raise DataError(f"{source.path} must have a label in each row; got {lacking} missing in column {target!r}")
    result: NDArray[Any] = labels
    return result


def _labelled(source: Any, X: Any, y: NDArray[Any]) -> Table:
    lacking = int(np.count_nonzero(np.isnan(y)))
    if lacking:
        raise DataError(f"{source.path} must have a label in each row; got {lacking} that are not numbers")
    return Table(X, y)


def _plain(source: Any, column: Any, name: str, declared: Kind | None) -> Any:
    """Cast a column to float64 or string; dates are not changed."""
    pa = arrow()
    kind = column.type
    if kind == pa.float64() and declared != "text":
        return column
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if declared is None and pa.types.is_temporal(kind):
        return column
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_number = _is_number(kind)
    if not (is_text or is_number or pa.types.is_temporal(kind)):
        raise DataError(f"{source.path}: column {name!r} must contain numbers, text or dates; got {kind}")
    wanted = declared or ("text" if is_text else "number")
    try:
        # Integers above 2**53 are rounded.
        return column.cast(pa.float64(), safe=False) if wanted == "number" else column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{source.path}: column {name!r} must contain {wanted}s; got {kind} ({error})") from error


def _is_number(kind: Any) -> bool:
    of = arrow().types
    tests = of.is_integer, of.is_floating, of.is_boolean, of.is_null, of.is_decimal
    return any(test(kind) for test in tests)
