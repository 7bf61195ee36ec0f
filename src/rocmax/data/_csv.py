"""Text tables, read with pyarrow; Python's csv module locates the line of an error."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from rocmax._messages import Message, Parameter
from rocmax.data._files import Bounded, Source, arrow
from rocmax.data._text_options import UTF8, TextOptions
from rocmax.data.errors import DataError, check_distinct

# Large enough for wide rows and small compared to memory; a row must fit into a block.
BLOCK_SIZE = 1 << 22
FIELD_BYTES = 32
DELIMITERS = ",;\t|"
# A header of 100,000 names of ordinary length takes a tenth of this.
HEADER_BYTES = 1 << 24
# What detection looks at: as much as one block for the encoding, and the rows that a person would look at for the
# delimiter.
SAMPLE_BYTES, SAMPLE_ROWS = BLOCK_SIZE, 100
# The encoding of Western European text that is not UTF-8. It has the letters of latin-1 at the same places, and
# printable characters where latin-1 has control characters, which no text contains.
WESTERN = "cp1252"
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")


def detected(source: Source, likely: Mapping[str, Any]) -> TextOptions:
    """Return the options of a text table, with the delimiter and the encoding that its first rows show if not given.

    Parameters
    ----------
    source : Source
        The file.
    likely : mapping
        "delimiter" and "encoding" of similar tables, which this one has too unless its content shows others.
    """
    options = source.text
    if options.delimiter is not None and options.encoding is not None:
        return options
    with source.open() as stream:
        sample = stream.read(SAMPLE_BYTES)
    encoding = options.encoding or _found_encoding(sample, likely.get("encoding"))
    if options.delimiter is not None:
        return replace(options, encoding=encoding)
    default = "\t" if source.format == "tsv" else ","
    text = codecs.getincrementaldecoder(_with_mark(encoding))("replace").decode(sample)
    complete = len(sample) < SAMPLE_BYTES
    return replace(options, encoding=encoding, delimiter=_found_delimiter(text, complete, default, likely))


def _found_encoding(sample: bytes, likely: str | None) -> str:
    """Return the encoding of the first bytes of a text."""
    if sample.isascii():
        fits = likely is not None and _decoded(sample, likely) == sample.decode("ascii")
        return likely if likely is not None and fits else UTF8
    if _decoded(sample, UTF8) is not None:
        return UTF8
    if likely is not None and likely != UTF8 and _decoded(sample, likely) is not None:
        return likely
    is_text = not _CONTROL.search(sample) and _decoded(sample, WESTERN) is not None
    return WESTERN if is_text else UTF8  # where nothing fits, the reader names the first byte that is not UTF-8


def _decoded(sample: bytes, encoding: str) -> str | None:
    """Return the first bytes of a text, of which the last character may be cut off; None if they are not decoded."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeError:
        return None


def _found_delimiter(text: str, complete: bool, default: str, likely: Mapping[str, Any]) -> str:
    """Return the delimiter with which most rows have as many fields as the header, and most fields if several do."""
    usual: str | None = likely.get("delimiter")
    found: str = usual or default
    best = (0.0, 0)
    # A comma is also a decimal mark and a mark of prose, so that others come first where all else is equal.
    for mark in sorted(dict.fromkeys([found, *DELIMITERS]), key=lambda mark: mark == ","):
        lengths: list[int] = []
        with suppress(csv.Error):
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
            lengths.extend(len(row) for row in islice((row for row in rows if row), SAMPLE_ROWS + 1))
        if not complete and len(lengths) <= SAMPLE_ROWS:
            lengths = lengths[: max(1, len(lengths) - 1)]  # the last row is cut off
        if not lengths or lengths[0] < 2:
            continue
        share = lengths.count(lengths[0]) / len(lengths)
        if mark == usual and share == 1.0:
            found = mark
            break
        if (share, lengths[0]) > best:
            best, found = (share, lengths[0]), mark
    return found


def header(source: Source) -> list[str]:
    """Return the column names."""
    separator = _separator(source)
    too_long = f"{source.path}, line 1: the header is longer than {HEADER_BYTES:,} bytes; is this a text table?"
    with source.open() as stream:
        bounded = cast(Any, io.BufferedReader(Bounded(stream, HEADER_BYTES, too_long)))
        try:
            names = next(filter(None, csv.reader(_lines(source, bounded), delimiter=separator)), [])
        except UnicodeDecodeError:
            raise _not_decoded(source) from None
        except csv.Error as error:
            raise DataError(f"{source.path}, line 1: the header cannot be used: {error}; shorten the names") from error
    if not names:
        raise DataError(f"{source.path} is empty: it has no header")
    check_distinct(source.path, names)
    other = [mark for mark in DELIMITERS if mark in names[0] and mark != separator]
    if len(names) == 1 and other:
        raise DataError(
            f"{source.path} has one column, {names[0]!r}, if the delimiter is {separator!r}; is it {other[0]!r}?"
        )
    return names


def read(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> Any:
    """Return the whole file as an Arrow table; types are inferred from all rows."""
    pc = _module()
    if types:
        types = {**types, **_booleans(source, columns, types)}
    with source.native() as stream, _Explained(source, columns):
        table = pc.read_csv(
            stream,
            read_options=pc.ReadOptions(block_size=_block_size(source), encoding=_encoding(source)),
            parse_options=_parse_options(source),
            convert_options=_convert_options(source, columns, types),
        )
    if any(arrow().types.is_binary(kind) for kind in table.schema.types):
        raise _not_decoded(source)
    if table.num_rows == 0:
        raise DataError(f"{source.path} has a header but no rows")
    return table


def parts(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the file as Arrow batches; types that are not given are inferred from the first block."""
    pa, count = arrow(), 0
    declared = {**types, **_booleans(source, columns, types)}
    guessed = {name: _general(pa, kind) for name, kind in _first_types(source, columns, declared)}
    known = {**guessed, **declared}
    with source.native() as stream, _Explained(source, columns):
        for batch in _open(source, stream, columns, known):
            if batch.num_rows:
                count += batch.num_rows
                yield pa.Table.from_batches([batch])
    if count == 0:
        raise DataError(f"{source.path} has a header but no rows")


def _first_types(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> list[tuple[str, Any]]:
    with source.native() as stream, _Explained(source, columns):
        schema = _open(source, stream, columns, types).schema
    if any(arrow().types.is_binary(kind) for kind in schema.types):
        raise _not_decoded(source)
    return list(zip(schema.names, schema.types, strict=True))


def _booleans(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns declared as numbers that contain booleans, which must be read as booleans first."""
    pa = arrow()
    texts = {name: kind for name, kind in types.items() if pa.types.is_string(kind)}
    if len(texts) == len(types):
        return {}
    first = _first_types(source, columns, texts)
    return {name: kind for name, kind in first if name in types and pa.types.is_boolean(kind)}


def _general(pa: Any, kind: Any) -> Any:
    """Return a type that later blocks are likely to fit: float64 for integers and for columns without a value."""
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def _open(source: Source, stream: Any, columns: Sequence[str], types: Mapping[str, Any]) -> Any:
    pc = _module()
    return pc.open_csv(
        stream,
        read_options=pc.ReadOptions(block_size=_block_size(source), encoding=_encoding(source)),
        parse_options=_parse_options(source),
        convert_options=_convert_options(source, columns, types),
    )


class _Explained:
    """Context manager that converts pyarrow errors to DataError with the file and the line."""

    def __init__(self, source: Source, columns: Sequence[str]) -> None:
        self.source, self.columns = source, columns

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, arrow().ArrowInvalid | UnicodeDecodeError):
            return
        text = str(error)
        if isinstance(error, UnicodeDecodeError) or "UTF8" in text:
            raise _not_decoded(self.source) from error
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
            rows = _rows(self.source, stream)
            width = len(next(rows)[1])
            for number, row in rows:
                if len(row) != width:
                    fields = f"{len(row)} field{'s' if len(row) > 1 else ''}"
                    return DataError(f"{self.source.at(number)}: {fields} where the header has {width} columns")
        return DataError(f"{self.source.path} has a row whose length differs from that of the header: {_short(text)}")

    def _bad_value(self, column: str, value: str) -> DataError:
        line = lines_of(self.source, column, [value]).get(value)
        where = self.source.at(line) if line else str(self.source.path)
        found = f"{where}: column {column!r} must be numeric, as in earlier rows; got {_short(value)!r}"
        as_text = Parameter("types", {column: "text"}, " (to read the column as text: {})")
        missing = [Parameter("na", [value], "; to read it as a missing value: {}")] if _short(value) == value else []
        return DataError(Message(found, as_text, *missing))


def lines_of(source: Source, column: str, values: Sequence[str]) -> dict[str, int]:
    """Return the first line of each value of a column; a value that is not found is left out."""
    exact, found = {value.strip(): value for value in values}, {}
    for number, field in _fields(source, column):
        if field in exact:
            found[exact.pop(field)] = number
            if not exact:
                break
    return found


def first_line(source: Source, column: str, test: Callable[[str], bool]) -> tuple[int, str] | None:
    """Return the first line whose value of a column passes a test, and the value; None if there is none."""
    return next(((number, field) for number, field in _fields(source, column) if test(field)), None)


def _fields(source: Source, column: str) -> Iterator[tuple[int, str]]:
    """Yield the number of each line and its value of a column, without spaces around it."""
    with source.open() as stream, suppress(csv.Error):
        rows = _rows(source, stream)
        place = next(rows)[1].index(column)
        yield from ((number, row[place].strip()) for number, row in rows if len(row) > place)


def zero_led(source: Source, columns: Sequence[str]) -> list[str]:
    """Return the columns of whole numbers of which one is written with a leading zero, as far as the first block shows.

    Such numbers are codes: as numbers, they would lose their zeros.
    """
    pa = arrow()

    whole = [name for name, kind in _first_types(source, columns, {}) if pa.types.is_integer(kind)]
    if not whole:
        return []
    with source.native() as stream, _Explained(source, whole):
        first = _open(source, stream, whole, dict.fromkeys(whole, pa.string())).read_next_batch()
    led = [pa.compute.any(pa.compute.match_substring_regex(first[name], r"^\s*[+-]?0\d")).as_py() for name in whole]
    return [name for name, found in zip(whole, led, strict=True) if found]


def _rows(source: Source, stream: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line, or of the row of a sheet, and its fields; lines without any are left out."""
    # Bytes that cannot be decoded may be in another line than the error. Python's reader raises csv.Error for fields
    # longer than its limit, which pyarrow can read; the line is then unknown.
    rows = csv.reader(_lines(source, stream, "surrogateescape"), delimiter=_separator(source))
    for count, row in enumerate(rows, 1):
        if row:
            yield (count if source.format == "xlsx" else rows.line_num), row


def _block_size(source: Source) -> int:
    return max(BLOCK_SIZE, FIELD_BYTES * source.n_columns)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def _not_decoded(source: Source) -> DataError:
    encoding = _encoding(source)
    name = "UTF-8" if encoding == UTF8 else encoding
    advice = Message("; save the file as UTF-8, or pass its encoding: ", Parameter("encoding", ...))
    with source.open() as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                where = f"{source.at(number)}: byte 0x{line[error.start]:02x} is not {name}"
                return DataError(Message(where, *advice.parts))
    return DataError(Message(f"{source.path} must be encoded in {name}; got other bytes", *advice.parts))


def _lines(source: Source, stream: Any, errors: str = "strict") -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding=_with_mark(_encoding(source)), errors=errors, newline="")


def _encoding(source: Source) -> str:
    return source.text.encoding or UTF8


def _with_mark(encoding: str) -> str:
    """Return the encoding that skips a byte order mark, as pyarrow does."""
    return "utf-8-sig" if encoding == UTF8 else encoding


def _separator(source: Source) -> str:
    return source.text.delimiter or ("\t" if source.format == "tsv" else ",")


def _parse_options(source: Source) -> Any:
    # Searching for quotes takes about 1 % of the parsing time, and parsing is faster without them.
    options = {"newlines_in_values": True} if source.has_quotes() else {"quote_char": False}
    return _module().ParseOptions(delimiter=_separator(source), **options)


def _convert_options(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> Any:
    wanted = set(columns)
    known = {name: kind for name, kind in types.items() if name in wanted}
    return _module().ConvertOptions(
        include_columns=list(columns),
        column_types=known,
        null_values=source.text.missing,
        strings_can_be_null=True,
        decimal_point=source.text.decimal,
    )


def _module() -> Any:
    arrow()
    import pyarrow.csv

    return pyarrow.csv
