"""Text tables, read with pyarrow; Python's csv module locates the line of an error."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from rocmax._messages import Message, Parameter
from rocmax.data._files import Bounded, Source, arrow
from rocmax.data.errors import DataError, check_distinct

# Large enough for wide rows and small compared to memory; a row must fit into a block.
BLOCK_SIZE = 1 << 22
FIELD_BYTES = 32
DELIMITERS = ",;\t|"
# A header of 100,000 names of ordinary length takes a tenth of this.
HEADER_BYTES = 1 << 24
# Every value is looked up in this list, so a longer list is slower.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]


def header(source: Source, delimiter: str | None) -> list[str]:
    """Return the column names."""
    separator = _separator(source, delimiter)
    too_long = f"{source.path}, line 1: the header is longer than {HEADER_BYTES:,} bytes; is this a text table?"
    with source.open() as stream:
        bounded = cast(Any, io.BufferedReader(Bounded(stream, HEADER_BYTES, too_long)))
        try:
            names = next(csv.reader(_lines(bounded), delimiter=separator), [])
        except UnicodeDecodeError:
            raise _not_utf8(source) from None
        except csv.Error as error:
            raise DataError(f"{source.path}, line 1: the header cannot be used: {error}; shorten the names") from error
    if not names:
        raise DataError(f"{source.path} is empty: it has no header")
    check_distinct(source.path, names)
    other = [mark for mark in DELIMITERS if mark in names[0]]
    if len(names) == 1 and other:
        raise DataError(
            f"{source.path} has one column, {names[0]!r}, if the delimiter is {separator!r}; is it {other[0]!r}?"
        )
    return names


def read(source: Source, columns: Sequence[str], types: Mapping[str, Any], delimiter: str | None) -> Any:
    """Return the whole file as an Arrow table; types are inferred from all rows."""
    pc = _module()
    if types:
        types = {**types, **_booleans(source, columns, types, delimiter)}
    with source.native() as stream, _Explained(source, columns, delimiter):
        table = pc.read_csv(
            stream,
            read_options=pc.ReadOptions(block_size=_block_size(source)),
            parse_options=_parse_options(source, delimiter),
            convert_options=_convert_options(columns, types),
        )
    if any(arrow().types.is_binary(kind) for kind in table.schema.types):
        raise _not_utf8(source)
    if table.num_rows == 0:
        raise DataError(f"{source.path} has a header but no rows")
    return table


def parts(source: Source, columns: Sequence[str], types: Mapping[str, Any], delimiter: str | None) -> Iterator[Any]:
    """Yield the file as Arrow batches; types that are not given are inferred from the first block."""
    pa, count = arrow(), 0
    declared = {**types, **_booleans(source, columns, types, delimiter)}
    guessed = {name: _general(pa, kind) for name, kind in _first_types(source, columns, declared, delimiter)}
    known = {**guessed, **declared}
    with source.native() as stream, _Explained(source, columns, delimiter):
        for batch in _open(source, stream, columns, known, delimiter):
            if batch.num_rows:
                count += batch.num_rows
                yield pa.Table.from_batches([batch])
    if count == 0:
        raise DataError(f"{source.path} has a header but no rows")


def _first_types(
    source: Source, columns: Sequence[str], types: Mapping[str, Any], delimiter: str | None
) -> list[tuple[str, Any]]:
    with source.native() as stream, _Explained(source, columns, delimiter):
        schema = _open(source, stream, columns, types, delimiter).schema
    if any(arrow().types.is_binary(kind) for kind in schema.types):
        raise _not_utf8(source)
    return list(zip(schema.names, schema.types, strict=True))


def _booleans(
    source: Source, columns: Sequence[str], types: Mapping[str, Any], delimiter: str | None
) -> dict[str, Any]:
    """Return the columns declared as numbers that contain booleans, which must be read as booleans first."""
    pa = arrow()
    texts = {name: kind for name, kind in types.items() if pa.types.is_string(kind)}
    if len(texts) == len(types):
        return {}
    first = _first_types(source, columns, texts, delimiter)
    return {name: kind for name, kind in first if name in types and pa.types.is_boolean(kind)}


def _general(pa: Any, kind: Any) -> Any:
    """Return a type that later blocks are likely to fit: float64 for integers and for columns without a value."""
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def _open(source: Source, stream: Any, columns: Sequence[str], types: Mapping[str, Any], delimiter: str | None) -> Any:
    pc = _module()
    return pc.open_csv(
        stream,
        read_options=pc.ReadOptions(block_size=_block_size(source)),
        parse_options=_parse_options(source, delimiter),
        convert_options=_convert_options(columns, types),
    )


class _Explained:
    """Context manager that converts pyarrow errors to DataError with the file and the line."""

    def __init__(self, source: Source, columns: Sequence[str], delimiter: str | None) -> None:
        self.source, self.columns, self.delimiter = source, columns, delimiter

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, arrow().ArrowInvalid | UnicodeDecodeError):
            return
        text = str(error)
        if isinstance(error, UnicodeDecodeError) or "UTF8" in text:
            raise _not_utf8(self.source) from error
        if "Expected" in text and "columns" in text:
            raise self._ragged(text) from error
        bad = re.search(r"In CSV column #(\d+).*conversion error to (\w+): invalid value '(.*)'", text, re.DOTALL)
        if bad:
            raise self._bad_value(self.columns[int(bad[1])], bad[3]) from error
        if "straddling" in text:
            raise DataError(
                f"{self.source.path} has a row longer than the limit of {_block_size(self.source):,} bytes"
            ) from error
        raise DataError(f"{self.source.path} is not a text table: {_short(text)}") from error

    def _ragged(self, text: str) -> DataError:
        with self.source.open() as stream, suppress(csv.Error):
            rows = self._rows(stream)
            width = len(next(rows))
            for row in rows:
                if row and len(row) != width:
                    fields = f"{len(row)} field{'s' if len(row) > 1 else ''}"
                    return DataError(
                        f"{self.source.path}, line {rows.line_num}: {fields} where the header has {width} columns"
                    )
        return DataError(f"{self.source.path} has a row whose length differs from that of the header: {_short(text)}")

    def _bad_value(self, column: str, value: str) -> DataError:
        line = None
        with self.source.open() as stream, suppress(csv.Error):
            rows = self._rows(stream)
            place = next(rows).index(column)
            line = next((rows.line_num for row in rows if len(row) > place and row[place] == value), None)
        where = f"{self.source.path}, line {line}" if line else str(self.source.path)
        advice = Parameter("types", {column: "text"}, " (to read the column as text: {})")
        return DataError(
            Message(f"{where}: column {column!r} must be numeric, as in earlier rows; got {_short(value)!r}", advice)
        )

    def _rows(self, stream: Any) -> Any:
        # Bytes that are not UTF-8 may be in another line than the error. Python's reader raises csv.Error for fields
        # longer than its limit, which pyarrow can read; the line is then unknown.
        return csv.reader(_lines(stream, "surrogateescape"), delimiter=_separator(self.source, self.delimiter))


def _block_size(source: Source) -> int:
    return max(BLOCK_SIZE, FIELD_BYTES * source.n_columns)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def _not_utf8(source: Source) -> DataError:
    with source.open() as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return DataError(
                    f"{source.path}, line {number}: byte 0x{line[error.start]:02x} is not UTF-8; save the file as UTF-8"
                )
    return DataError(f"{source.path} must be encoded in UTF-8; got other bytes")


def _lines(stream: Any, errors: str = "strict") -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors=errors, newline="")


def _separator(source: Source, delimiter: str | None) -> str:
    if delimiter is not None and len(delimiter) != 1:
        raise DataError(f"delimiter must be one character; got {delimiter!r}")
    return delimiter or ("\t" if source.format == "tsv" else ",")


def _parse_options(source: Source, delimiter: str | None) -> Any:
    # Searching for quotes takes about 1 % of the parsing time, and parsing is faster without them.
    options = {"newlines_in_values": True} if source.has_quotes() else {"quote_char": False}
    return _module().ParseOptions(delimiter=_separator(source, delimiter), **options)


def _convert_options(columns: Sequence[str], types: Mapping[str, Any]) -> Any:
    wanted = set(columns)
    known = {name: kind for name, kind in types.items() if name in wanted}
    return _module().ConvertOptions(
        include_columns=list(columns), column_types=known, null_values=MISSING, strings_can_be_null=True
    )


def _module() -> Any:
    arrow()
    import pyarrow.csv

    return pyarrow.csv
