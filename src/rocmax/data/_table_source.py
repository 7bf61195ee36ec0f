"""Source of a table: a file or a data frame, read as a whole or in batches, with the header parsed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rocmax._messages import Message, Parameter
from rocmax.data import _csv, _frames, _parquet, _svmlight
from rocmax.data._conversion import Kind, Table, as_table, is_text, labelled
from rocmax.data._excel import DELIMITER as SHEET_DELIMITER
from rocmax.data._excel import SheetCopy
from rocmax.data._files import Source, Spool, arrow, find_sources
from rocmax.data._frames import FrameSource
from rocmax.data._shuffle import rebatch
from rocmax.data._text_options import UTF8, TextOptions, text_options
from rocmax.data.errors import DataError, check_columns, check_names

# Formats that are read as text; sheets are copied to text.
TEXT_FORMATS = ("csv", "tsv", "xlsx")


class TableSource:
    """File or data frame with known columns; the header is parsed once, even if the rows are read several times.

    Parameters
    ----------
    table : str, Path, list of them, file or data frame
        File, as in :func:`read_table`, or a pattern such as ``part-*.csv``; several files with the same columns; a
        binary file that is open for reading csv; or a pandas or polars DataFrame, or a pyarrow Table.
    delimiter : str, default=None
        Field delimiter of a text table. If None, it is detected from the header and the first rows.
    decimal : {".", ","}, default="."
        The decimal mark of numbers in a text table.
    thousands : str, default=None
        A character between groups of digits of numbers that are written as text.
    na : str or sequence of str, default=()
        Values that are missing, in addition to the empty field, NA, N/A, NaN, null and None.
    encoding : str, default=None
        The encoding of a text table. If None, it is detected in its first 4 MB: UTF-8, otherwise cp1252, a superset of
        latin-1.
    sheet : str, default=None
        Name of the sheet of an Excel workbook. If None, only one sheet may have values.
    max_bytes : int, default=None
        Maximum decompressed size of a compressed file, and maximum size in memory of the columns of a parquet file. If
        None, the limit is 256 MiB, or 100 times the size of the file if that is larger. Other files have no limit. It
        counts for Excel workbooks, which are read at once; :meth:`read` has the limit for other files.
    likely : dict, default=None
        "delimiter", "encoding" and "sheet" of similar tables, which this one has too unless its content shows others.
        They count only where the parameters of these names are None.

    Attributes
    ----------
    name : str
        Path of the file, or "the table" for a data frame.
    columns : list of str or None
        Column names, in order; None for an svmlight file, which has no column names.
    text : TextOptions
        How values are written. The delimiter and the encoding are those of the first file.
    sheet : str or None
        Name of the sheet of the first Excel workbook.
    notes : list of str
        Delimiters and encodings that were detected and are neither the default nor ``likely``.
    n_skipped : int
        Number of rows without a label that the last call of :meth:`read` left out.

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

    def __init__(
        self,
        table: Any,
        *,
        delimiter: str | None = None,
        decimal: str = ".",
        thousands: str | None = None,
        na: str | Sequence[str] = (),
        encoding: str | None = None,
        sheet: str | None = None,
        max_bytes: int | None = None,
        likely: Mapping[str, Any] | None = None,
    ) -> None:
        options = text_options(delimiter, decimal, thousands, na, encoding)
        likely = _checked(likely or {})
        self.n_skipped = 0
        self._spool = Spool(table) if hasattr(table, "read") else None
        self._sources: list[Any] = _sources(table, options, self._spool)
        self._sheets: list[SheetCopy] = []
        for i, source in enumerate(self._sources):
            if source.format == "xlsx":
                copy = SheetCopy(source, sheet, likely.get("sheet"), decimal, max_bytes)
                self._sheets.append(copy)
                written = replace(options, delimiter=SHEET_DELIMITER, encoding=UTF8)
                self._sources[i] = source._replace(content=copy.path, text=written)
            elif source.format in ("csv", "tsv"):
                self._sources[i] = source._replace(text=_csv.detected(source, likely))
        self.text: TextOptions = self._sources[0].text
        self.sheet = self._sheets[0].sheet if self._sheets else None
        self.notes = _detection_notes(self._sources, options, likely)
        self.columns = _header(self._sources[0])
        for i, source in enumerate(self._sources):
            if i:
                _check_same(self._sources[0], self.columns, source)
            if isinstance(source, Source):
                self._sources[i] = source._replace(n_columns=len(self.columns or ()))
        self.name = str(self._sources[0].path)
        if len(self._sources) > 1:
            self.name += f" and {len(self._sources) - 1} more"

    def read(
        self,
        *,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Kind] | None = None,
        n_features: int | None = None,
        zero_based: bool = False,
        max_bytes: int | None = None,
        skip_unlabelled: bool = False,
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
        skip_unlabelled : bool, default=False
            Whether to leave out rows without a label, which are otherwise an error.

        Returns
        -------
        Table
            ``X`` (DataFrame or CSR matrix) and ``y``.
        """
        sources = [_limited(source, max_bytes) for source in self._sources]
        if sources[0].format == "svmlight":
            _no_names(sources[0], target, columns)
            if len(sources) > 1:
                raise DataError(f"svmlight files must be passed one at a time; got {self.name}")
            X, y = _svmlight.read(sources[0], n_features, zero_based)
            n_rows, found = X.shape[0], labelled(sources[0], X, y, skip_unlabelled)
        else:
            names, declared = self._resolve(target, columns, types)
            table = _joined(sources, names, declared, max_bytes)
            n_rows, found = table.num_rows, as_table(sources[0], table, target, types or {}, skip_unlabelled)
        self.n_skipped = int(n_rows - found.X.shape[0])
        if self.n_skipped and self.n_skipped == n_rows:
            where = "" if target is None else f" in column {target!r}"
            raise DataError(f"{sources[0].path} must have labels{where}; got none")
        return found

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
        skip_unlabelled: bool = False,
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
        skip_unlabelled : bool, default=False
            Whether to leave out rows without a label, which are otherwise an error.

        Returns
        -------
        iterator of Table
            ``X`` (DataFrame or CSR matrix) and ``y``.
        """
        _check_sizes(batch_size, buffer_size)
        source: Any = self._sources[0]
        if source.format == "svmlight":
            _no_names(source, target, columns)
            pairs = (pair for one in self._sources for pair in _svmlight.parts(one, n_features, zero_based))
            parts: Iterator[Any] = (labelled(source, *pair, skip_unlabelled) for pair in pairs)
        else:
            names, declared = self._resolve(target, columns, types)
            pieces = (piece for one in self._sources for piece in _pieces(one, names, declared))
            parts = (as_table(source, piece, target, types or {}, skip_unlabelled) for piece in pieces)
        rng = None if buffer_size is None else np.random.default_rng(random_state)
        return (Table(*batch) for batch in rebatch(parts, batch_size, buffer_size, rng))

    def places(self, column: str, values: Sequence[str]) -> dict[str, str]:
        """Return where values of a column first occur, such as "train.csv, line 7"; a value may be missing.

        Parameters
        ----------
        column : str
            Name of the column.
        values : sequence of str
            Values, without spaces around them.

        Returns
        -------
        dict of str to str
            Places by value.
        """
        found: dict[str, str] = {}
        for source in self._sources:
            rest = [value for value in values if value not in found]
            if not rest or source.format not in TEXT_FORMATS:
                break
            found |= {value: source.at(n) for value, n in _csv.lines_of(source, column, rest).items()}
        return found

    def find(self, column: str, test: Callable[[str], bool]) -> tuple[str, str] | None:
        """Return the place of the first value of a column of a text table that passes a test, and the value.

        Parameters
        ----------
        column : str
            Name of the column.
        test : callable
            Function of a value, without spaces around it, that returns a bool.

        Returns
        -------
        tuple of str or None
            Place, such as "train.csv, line 7", and value; None if there is none or the table is not a text table.
        """
        for source in self._sources:
            found = _csv.first_line(source, column, test) if source.format in TEXT_FORMATS else None
            if found is not None:
                return source.at(found[0]), found[1]
        return None

    def zero_led(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of text tables in which whole numbers have leading zeros, as codes have.

        Parameters
        ----------
        columns : sequence of str
            Columns to look at.

        Returns
        -------
        list of str
            Their names.
        """
        first = self._sources[0]
        return _csv.zero_led(first, columns) if columns and first.format in TEXT_FORMATS else []

    def _resolve(
        self, target: str | None, columns: Sequence[str] | None, types: Mapping[str, Kind] | None
    ) -> tuple[list[str], dict[str, Any]]:
        """Return the columns to read, with the target last, and the Arrow types of those that are declared."""
        check_names(columns)
        present = self.columns or []
        wanted = list(present if columns is None else columns)
        check_columns(self.name, wanted + ([] if target is None else [target]), present)
        names = [name for name in wanted if name != target] + ([] if target is None else [target])
        pa = arrow()
        text = dict.fromkeys(("text", "date", "parsed", "raw"), pa.string())
        kinds = {"number": pa.float64(), **text}
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


def _sources(table: Any, options: TextOptions, spool: Spool | None) -> list[Any]:
    """Return the files or the data frame of a table."""
    if spool is not None:
        return [Source(Path(spool.name), "csv", None, text=options, content=spool.path)]
    if _frames.is_frame(table):
        arrow()
        return [FrameSource(table, text=options)]
    several = isinstance(table, list | tuple)
    paths = list(table) if several else [table]
    if not paths or not all(isinstance(path, str | Path) for path in paths):
        got = "none" if not paths else f"a value of type {type(table).__name__}"
        raise TypeError(f"table must be a path, a list of paths, or a pandas or polars DataFrame; got {got}")
    return [source._replace(text=options) for path in paths for source in find_sources(path)]


def _checked(likely: Mapping[str, Any]) -> dict[str, Any]:
    """Return how similar tables are written; raise ParameterError if a value is invalid."""
    options = text_options(likely.get("delimiter"), ".", None, (), likely.get("encoding"))
    return {"delimiter": options.delimiter, "encoding": options.encoding, "sheet": likely.get("sheet")}


def _detection_notes(sources: list[Any], options: TextOptions, likely: Mapping[str, Any]) -> list[str]:
    """Return a note about each kind of file whose delimiter or encoding was detected and is not the expected one."""
    notes: dict[tuple[str, ...], str] = {}
    for source in sources:
        if source.format not in ("csv", "tsv"):
            continue
        usual = likely.get("delimiter") or ("\t" if source.format == "tsv" else ",")
        found: dict[str, str] = {}
        if options.delimiter is None and source.text.delimiter != usual:
            found["delimiter"] = repr(source.text.delimiter)
        if options.encoding is None and source.text.encoding != (likely.get("encoding") or UTF8):
            found["encoding"] = source.text.encoding
        if found:
            text = " and ".join(f"the {name} {value}" for name, value in found.items())
            others = (part for name in found for part in (" or ", Parameter(name, ...)))
            advice = Message(f"{source.path} has {text}, as its first rows show; for another one: ", *list(others)[1:])
            notes.setdefault(tuple(found.values()), advice)
    return list(notes.values())


def _header(source: Any) -> list[str] | None:
    if isinstance(source, FrameSource):
        return _frames.header(source)
    if source.format == "parquet":
        return _parquet.header(source)
    return None if source.format == "svmlight" else _csv.header(source)


def _check_same(first: Any, columns: list[str] | None, source: Any) -> None:
    """Raise DataError if another file of the same table has other columns."""
    names = _header(source)
    if (names is None) != (columns is None):
        raise DataError(f"{first.path} and {source.path} must both have column names, or neither of them")
    if names is not None and columns is not None and set(names) != set(columns):
        lacking = [name for name in columns if name not in set(names)]
        other = f"no column {lacking[0]!r}" if lacking else f"the column {(set(names) - set(columns)).pop()!r}"
        raise DataError(f"{source.path} must have the columns of {first.path}; got {other}")


def _limited(source: Any, max_bytes: int | None) -> Any:
    return source.limited(max_bytes) if isinstance(source, Source) else source


def _joined(sources: list[Any], names: list[str], declared: dict[str, Any], max_bytes: int | None) -> Any:
    """Return the rows of all files as one Arrow table; a column that is text in one file is text in all."""
    tables = [_whole(source, names, declared, max_bytes) for source in sources]
    if len(tables) == 1:
        return tables[0]
    pa = arrow()
    mixed = [
        name
        for name in names
        if len({table.schema.field(name).type for table in tables}) > 1
        and any(is_text(kind) or pa.types.is_temporal(kind) for kind in (t.schema.field(name).type for t in tables))
    ]
    if mixed:
        declared = {**declared, **dict.fromkeys(mixed, pa.string())}
        tables = [_whole(source, names, declared, max_bytes) for source in sources]
    for source, table in zip(sources[1:], tables[1:], strict=True):
        try:
            pa.unify_schemas([tables[0].schema, table.schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise DataError(
                f"the columns of {source.path} must have the types of those of {sources[0].path}; {error}"
            ) from error
    return pa.concat_tables(tables, promote_options="permissive")


def _whole(source: Any, names: list[str], declared: dict[str, Any], max_bytes: int | None) -> Any:
    if isinstance(source, FrameSource):
        return _frames.read(source, names)
    if source.format == "parquet":
        _parquet.check_size(source, names, max_bytes)
        return arrow().concat_tables(_parquet.parts(source, names))
    return _csv.read(source, names, declared)


def _pieces(source: Any, names: list[str], declared: dict[str, Any]) -> Iterator[Any]:
    if isinstance(source, FrameSource):
        return _frames.parts(source, names)
    if source.format == "parquet":
        return _parquet.parts(source, names)
    return _csv.parts(source, names, declared)
