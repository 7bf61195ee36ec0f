"""Readers of csv, tsv, parquet and svmlight files and of data frames, as a whole or in batches."""

from __future__ import annotations

import codecs
import csv
import datetime
import difflib
import glob
import hashlib
import importlib
import io
import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, cast

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from rocmax._files import LEAST_LIMIT, beyond_limit, unpack_limit
from rocmax._support import Message, MessageError, Parameter, ParameterError, holding, need
from rocmax._validation import check_number

# Errors about files that cannot be used.


class DataError(MessageError):
    """Error about a file, or a value in it, that cannot be used; the message names both and the requirement."""


def check_columns(path: object, wanted: Sequence[str], present: Sequence[str]) -> None:
    """Raise DataError if the file does not have all the wanted columns."""
    known = set(present)
    missing = [name for name in wanted if name not in known]
    if not missing:
        return
    near = difflib.get_close_matches(missing[0], present, 1)
    hint = f" (is it {near[0]!r}?)" if near else ""
    raise DataError(f"{path} has no column {_listed(missing)}{hint}; its columns are {_listed(present)}")


def check_names(columns: Sequence[str] | None) -> None:
    """Raise ValueError if a name is given twice, or a text for all names: it would be a list of characters."""
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names; got the text {columns!r}. For one column: [{columns!r}]")
    twice = _repeated(columns or ())
    if twice:
        raise ValueError(f"columns must be distinct; got {_listed(twice)} more than once")


def check_distinct(path: object, names: Sequence[str]) -> None:
    """Raise DataError if two columns have the same name."""
    twice = _repeated(names)
    if twice:
        raise DataError(f"{path} must have distinct column names; got {_listed(twice)} more than once")


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (f", ... ({len(names)} in all)" if len(names) > 10 else "")


# How a table is written, and the limits of the readers.


@dataclass(frozen=True)
class ReaderRules:
    """Numbers of the readers, each with its reason."""

    # Bytes of a text or svmlight file, and about those of half a batch of a parquet file, that are in memory at a time,
    # and in which detection looks: large enough for wide rows, small compared to memory. A row must fit into a block.
    block: int = 1 << 22
    field_bytes: int = 32
    # A header of 100,000 names of ordinary length takes a tenth of this.
    header_bytes: int = 1 << 24
    # Rows that a person would look at for the delimiter.
    sample_rows: int = 100


RULES = ReaderRules()
# Every value is looked up in this list, so a longer list is slower.
MISSING = ("", " ", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
# Text that is missing in files of text.
MISSING_TEXT = tuple(dict.fromkeys(mark.strip() for mark in MISSING))
UTF8 = "utf-8"


@dataclass(frozen=True)
class Reading:
    r"""How the values of a table are written, and how much of it may be read.

    None stands for the default: what is stored in the model for a later table, what is detected, or the usual value.

    Parameters
    ----------
    delimiter : str, default=None
        What separates the fields of a text table. None takes what the header and the first rows show.
    decimal : {".", ","}, default=None
        The decimal mark of numbers in a text table. None takes that of the model, and a point otherwise.
    thousands : str, default=None
        A character between groups of digits of numbers that are written as text. None takes that of the model.
    na : str or sequence of str, default=()
        Values that are missing, in addition to the empty field, NA, N/A, NaN, null and None, and those of the model.
    encoding : str, default=None
        The encoding of a text table, such as "latin-1". None takes what its first 4 MB show: UTF-8, otherwise that of
        the model or cp1252, which contains the characters of latin-1.
    sheet : str, default=None
        Name of the sheet of an Excel workbook. None takes that of the model, or the only one with values.
    day_first : bool, default=None
        Whether the day comes before the month in dates that end with the year, such as 03/04/2024. None takes the order
        of the model; in a fit, the values of a column show it. The readers of :mod:`rocmax.data` do not use it.
    skip_unlabeled : bool, default=None
        Whether to leave out rows without a label, which are otherwise an error. None does as the fit of the model did.
        Predictions need no labels and leave no row out.
    zero_based : bool, default=None
        Whether an svmlight file counts its features from 0, not 1. None does as the fit of the model did.
    max_bytes : int, default=None
        Maximum decompressed size of a compressed file or a workbook, and maximum size in memory of the columns of a
        parquet file that is read whole. None takes 256 MiB, or 100 times the size of the file if that is larger. Other
        files have no limit.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rocmax.data import Reading, read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.csv")
    ...     _ = path.write_text("size;label\n1,5;0\n?;1\n2,5;1\n")
    ...     X, y = read_table(path, target="label", reading=Reading(decimal=",", na="?"))
    >>> X["size"].tolist()
    [1.5, nan, 2.5]
    """

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    na: str | Sequence[str] = ()
    encoding: str | None = None
    sheet: str | None = None
    day_first: bool | None = None
    skip_unlabeled: bool | None = None
    zero_based: bool | None = None
    max_bytes: int | None = None


def checked_reading(reading: Reading) -> Reading:
    """Return how to read a table, with a decimal mark and a tuple of marks; raise ParameterError for bad options."""
    delimiter, decimal, thousands = reading.delimiter, reading.decimal or ".", reading.thousands
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ParameterError(Message(Parameter("delimiter"), f" must be one character; got {delimiter!r}"))
    if decimal not in (".", ","):
        raise ParameterError(Message(Parameter("decimal"), f" must be '.' or ','; got {decimal!r}"))
    if thousands is not None and (not isinstance(thousands, str) or len(thousands) != 1 or thousands.isalnum()):
        needed = " must be one character that is neither a letter nor a digit"
        raise ParameterError(Message(Parameter("thousands"), f"{needed}; got {thousands!r}"))
    if thousands == decimal:
        both = Message(Parameter("thousands"), " and ", Parameter("decimal"), f" must differ; got {decimal!r} for both")
        raise ParameterError(both)
    marks = (reading.na,) if isinstance(reading.na, str) else tuple(reading.na)
    if any(not isinstance(mark, str) for mark in marks):
        raise ParameterError(Message(Parameter("na"), f" must be text; got {marks!r}"))
    try:
        encoding = None if reading.encoding is None else codecs.lookup(reading.encoding).name
    except (LookupError, TypeError):
        needed = " must be the name of a text encoding, such as latin-1 or cp1252"
        raise ParameterError(Message(Parameter("encoding"), f"{needed}; got {reading.encoding!r}")) from None
    return replace(reading, decimal=decimal, na=tuple(mark.strip() for mark in marks), encoding=encoding)


# Detection of the format of a file, and how to open it.


FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


class Source(NamedTuple):
    """Existing file, with the format and the compression that its name indicates; or a data frame."""

    path: Path
    format: Literal["csv", "tsv", "xlsx", "parquet", "svmlight", "frame"]
    compression: str | None = None
    limit: int | None = None
    n_columns: int = 0
    reading: Reading = Reading()
    # The file to open if the path is only the name of its content, such as "standard input".
    content: Path | None = None
    frame: Any = None

    @property
    def file(self) -> Path:
        """The file to open."""
        return self.content or self.path

    def at(self, number: int) -> str:
        """Return a place in the file for messages: a line of text, or a row of a sheet."""
        return f"{self.path}, {'row' if self.format == 'xlsx' else 'line'} {number}"

    def limited(self) -> Source:
        """Return the source with a limit on the decompressed size; uncompressed files have no limit."""
        size = 0 if self.compression is None else self.file.stat().st_size
        limit = unpack_limit(size, self.reading.max_bytes)
        return self if self.compression is None else self._replace(limit=limit)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the decompressed content for Python; raise DataError if it cannot be decompressed."""
        with self._unpacked() as stream:
            yield cast(BinaryIO, io.BufferedReader(stream))

    @contextmanager
    def native(self) -> Iterator[Any]:
        """Open the decompressed content for pyarrow, which reads its own streams faster than those of Python."""
        with self._unpacked() as stream:
            yield stream if self.limit is None else arrow().PythonFile(stream, mode="r")

    @contextmanager
    def _unpacked(self) -> Iterator[Any]:
        pa = arrow()
        try:
            with pa.input_stream(str(self.file), compression=self.compression) as stream:
                limit = self.limit
                yield stream if limit is None else Bounded(stream, limit, beyond_limit(self.path, limit))
        except OSError as error:
            raise self.broken(error) from error

    def broken(self, error: OSError) -> DataError:
        """Return the DataError for a file that could not be read completely."""
        if "runcated" in str(error) or "nd of" in str(error):
            return DataError(f"{self.path} ends in the middle of its {self.compression} data; copy it again")
        if self.compression is not None and error.errno is None:
            return DataError(f"{self.path} is not a {self.compression} file, although its name says so ({error})")
        return DataError(f"{self.path} cannot be read: {error.strerror or error}")


class Bounded(io.RawIOBase):
    """Stream that raises DataError after more than ``limit`` bytes were read from it."""

    def __init__(self, stream: Any, limit: int, message: str) -> None:
        self._stream, self._limit, self._message = stream, limit, message
        self._count = 0

    def readable(self) -> bool:
        """Return True, as :mod:`io` requires for an input stream."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer and count the bytes."""
        count = self._stream.readinto(buffer)
        self._count += count
        if self._count > self._limit:
            raise DataError(self._message)
        return int(count)


def copied(stream: Any) -> tuple[Any, str]:
    """Return a temporary copy of an open file, whose header and rows are read separately, and the name of the file."""
    copy = tempfile.NamedTemporaryFile(suffix=".csv")  # noqa: SIM115  # removed when this object is
    shutil.copyfileobj(stream, copy)
    copy.flush()
    name = getattr(stream, "name", None)
    name = "standard input" if name in ("<stdin>", 0) or not isinstance(name, str) else name
    if copy.tell() == 0:
        raise DataError(f"{name} is empty")
    return copy, name


def find_sources(path: str | Path) -> list[Source]:
    """Return the files of a path, or of a pattern such as ``part-*.csv`` if there is no file of that name."""
    if glob.has_magic(str(path)) and not Path(path).exists():
        found = sorted(glob.glob(str(path)))
        if not found:
            raise DataError(f"no file matches {str(path)!r}")
        return [find_source(name) for name in found]
    return [find_source(path)]


def find_source(path: str | Path) -> Source:
    """Check that the file exists and derive its format from its name."""
    path = Path(path)
    try:
        if path.is_dir():
            raise DataError(f"{path} is a directory; pass a file")
        if not path.exists():
            raise DataError(f"{path} does not exist")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    kind = suffixes[-2 if compression else -1] if len(suffixes) > bool(compression) else ""
    if kind not in FORMATS:
        raise DataError(
            f"{path.name!r} must end in one of {', '.join(FORMATS)}, "
            f"followed by {', '.join(COMPRESSIONS)} if it is compressed"
        )
    if FORMATS[kind] in ("parquet", "xlsx") and compression:
        raise DataError(f"{path} must be decompressed first: {FORMATS[kind]} files are compressed internally")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path} is empty")
    return Source(path, cast(Any, FORMATS[kind]), compression)


def arrow() -> Any:
    """Import pyarrow; raise an error with installation instructions if it is missing."""
    need("pandas")  # pyarrow converts its tables to pandas
    found = need("pyarrow")
    importlib.import_module("pyarrow.compute")
    return found


# Values of text columns: spaces, marks for missing values, decimal commas and separators of thousands.


EXPONENT = r"([eE][+-]?\d+)?$"


def trimmed(column: Any, reading: Reading, file_format: str = "frame") -> Any:
    """Return a column of strings without spaces around the values; empty values and marks are missing."""
    pa = arrow()
    pc = pa.compute
    text = pc.utf8_trim_whitespace(column)
    # A parquet file or a data frame has missing values of its own, and "NA" is a country there.
    usual = MISSING_TEXT if file_format in ("csv", "tsv", "xlsx") else ("",)
    marks = pa.array([*usual, *(mark for mark in reading.na if mark)], type=text.type)
    return pc.if_else(pc.is_in(text, value_set=marks), pa.scalar(None, text.type), text)


def marked_numbers(marks: Sequence[str]) -> list[float]:
    """Return the numbers among the marks for missing values."""
    found = []
    for mark in marks:
        with suppress(ValueError):
            found.append(float(mark))
    return [*found, -0.0] if 0.0 in found else found  # two zeros for Arrow, one for everybody else


def parsed_numbers(column: Any, reading: Reading) -> tuple[Any, Any]:
    """Return the numbers in a column of trimmed strings, and whether each value is something else.

    A per cent sign after a number is ignored, as is the thousands separator between groups of three digits, or of two
    before the last group, as in India. Where else a separator is, as in the date 14.08.2024, there is no number.
    """
    pa = arrow()
    pc = pa.compute
    text = pc.replace_substring_regex(column, r"\s*%$", "")
    point = re.escape(reading.decimal or ".")
    if reading.thousands is not None:
        mark = re.escape(reading.thousands)
        pattern = rf"^[+-]?\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}}({point}\d*)?{EXPONENT}"
        grouped = pc.match_substring_regex(text, pattern)
        text = pc.if_else(grouped, pc.replace_substring(text, reading.thousands, ""), text)
    number = pc.match_substring_regex(text, rf"^[+-]?(\d+{point}?\d*|{point}\d+){EXPONENT}")
    if reading.decimal == ",":
        text = pc.replace_substring(text, ",", ".")
    odd = pc.fill_null(pc.invert(number), False)
    return pc.if_else(number, text, pa.scalar(None, text.type)).cast(pa.float64()), odd


# Conversion of Arrow tables to features and labels of the types of this package.


# "parsed" are numbers that are read as text first; "raw" columns are not converted.
Kind = Literal["number", "text", "date", "parsed", "raw"]


class Table(NamedTuple):
    """Features, as a pandas DataFrame or a CSR matrix, and labels, which are None without a target."""

    X: Any
    y: NDArray[Any] | None


def as_table(source: Source, table: Any, target: str | None, types: Mapping[str, Kind]) -> Table:
    """Split an Arrow table into features, of the types of this module, and labels."""
    pa, pd, labels = arrow(), need("pandas"), None
    pc = pa.compute
    try:
        if target is not None:
            column, table = table[target], table.drop_columns([target])
            if is_text(column.type):
                column = trimmed(column, source.reading, source.format)
            if source.reading.skip_unlabeled:
                labeled_rows = pc.invert(pc.is_null(column, nan_is_null=True))
                column, table = column.filter(labeled_rows), table.filter(labeled_rows)
            labels = _labels(source, column, target)
        columns = zip(table.column_names, table.columns, strict=True)
        plain = [_plain(source, column, name, types.get(name)) for name, column in columns]
        frame = pa.table(plain, names=table.column_names).to_pandas()
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise DataError(f"{source.path} is damaged or has values out of range: {error}") from error
    for name in (name for name, kind in types.items() if kind == "raw" and name in frame.columns):
        # Keeps the values, such as integers with missing ones.
        frame[name] = pd.Series(pd.arrays.ArrowExtensionArray(table[name]))
    return Table(frame, labels)


def _labels(source: Source, column: Any, target: str) -> NDArray[Any]:
    labels: NDArray[Any] = column.to_pandas().to_numpy()
    lacking = int(np.count_nonzero(np.isnan(labels))) if labels.dtype.kind == "f" else column.null_count
    if lacking:
        raise _unlabeled(source, f"{lacking} missing in column {target!r}")
    return labels


def _unlabeled(source: Source, got: str) -> DataError:
    found = f"{source.path} must have a label in each row; got {got}"
    return DataError(Message(found, Parameter("skip_unlabeled", True, "; to leave these rows out: {}")))


def labeled(source: Source, X: Any, y: NDArray[Any]) -> Table:
    """Return the rows of an svmlight file; raise DataError for labels that are NaN unless they are left out."""
    lacking = np.isnan(y)
    if lacking.any() and not source.reading.skip_unlabeled:
        raise _unlabeled(source, f"{np.count_nonzero(lacking)} that are not numbers")
    return Table(X[~lacking], y[~lacking]) if lacking.any() else Table(X, y)


def _plain(source: Source, column: Any, name: str, declared: Kind | None) -> Any:
    """Cast a column to float64 or string; dates, and columns declared as raw, are not changed."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if declared == "raw" or (pa.types.is_temporal(kind) and declared in (None, "date")):
        return column
    if kind == pa.float64() and declared != "text":
        return _without_marks(column, source.reading)
    if not (is_text(kind) or _is_number(kind) or pa.types.is_temporal(kind)):
        raise DataError(f"{source.path}: column {name!r} must contain numbers, text or dates; got {kind}")
    if is_text(kind) and declared in ("parsed", "number"):
        return _parsed(source, column, name)
    wanted = "number" if declared == "parsed" else declared or ("text" if is_text(kind) else "number")
    try:
        if wanted == "number":
            # Integers above 2**53 are rounded.
            return _without_marks(column.cast(pa.float64(), safe=False), source.reading)
        return trimmed(column.cast(pa.string()), source.reading, source.format)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{source.path}: column {name!r} must contain {wanted}s; got {kind} ({error})") from error


def _parsed(source: Source, column: Any, name: str) -> Any:
    """Return the numbers in a column of text, or truth values as 1 and 0; raise DataError for another value."""
    pa, text = arrow(), trimmed(column, source.reading, source.format)
    pc, word = pa.compute, pa.compute.utf8_lower(text)
    if (
        len(text) > text.null_count
        and pc.all(pc.is_in(word.drop_null(), pa.array(["true", "false"], text.type))).as_py()
    ):
        return pc.equal(word, "true").cast(pa.float64())
    numbers, odd = parsed_numbers(text, source.reading)
    others = text.filter(odd)
    if len(others):
        found = f"{source.path}: column {name!r} must contain numbers; got {others[0].as_py()!r} in {len(others)} row"
        advice = Parameter("na", others[0].as_py(), "; to read it as a missing value: {}")
        raise DataError(Message(f"{found}{'s' if len(others) > 1 else ''}", advice))
    return numbers


def _without_marks(column: Any, reading: Reading) -> Any:
    """Return a column of numbers in which those that are marks for missing values are missing."""
    pa, marks = arrow(), marked_numbers(reading.na)
    if not marks:
        return column
    pc = pa.compute
    return pc.if_else(pc.is_in(column, value_set=pa.array(marks, pa.float64())), pa.scalar(None, pa.float64()), column)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is one of strings."""
    of = arrow().types
    return bool(of.is_string(kind) or of.is_large_string(kind))


def _is_number(kind: Any) -> bool:
    of = arrow().types
    tests = of.is_integer, of.is_floating, of.is_boolean, of.is_null, of.is_decimal
    return any(test(kind) for test in tests)


# Text tables, read with pyarrow; Python's csv module locates the line of an error.


DELIMITERS = ",;\t|"
# The encoding of Western European text that is not UTF-8. It has the letters of latin-1 at the same places, and
# printable characters where latin-1 has control characters, which no text contains.
WESTERN = "cp1252"
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")


def detected(source: Source, likely: Reading) -> Reading:
    """Return how a text table is written, with the delimiter and the encoding that its first rows show if not given.

    Those of similar tables, ``likely``, are taken unless the content shows others.
    """
    reading = source.reading
    if reading.delimiter is not None and reading.encoding is not None:
        return reading
    with source.open() as stream:
        sample = stream.read(RULES.block)
    encoding = reading.encoding or _found_encoding(sample, likely.encoding)
    if reading.delimiter is not None:
        return replace(reading, encoding=encoding)
    default = "\t" if source.format == "tsv" else ","
    text = codecs.getincrementaldecoder(_with_mark(encoding))("replace").decode(sample)
    complete = len(sample) < RULES.block
    return replace(reading, encoding=encoding, delimiter=_found_delimiter(text, complete, default, likely.delimiter))


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


def _found_delimiter(text: str, complete: bool, default: str, usual: str | None) -> str:
    """Return the delimiter with which most rows have as many fields as the header, and most fields if several do."""
    found: str = usual or default
    best = (0.0, 0)
    # A comma is also a decimal mark and a mark of prose, so that others come first where all else is equal.
    for mark in sorted(dict.fromkeys([found, *DELIMITERS]), key=lambda mark: mark == ","):
        lengths: list[int] = []
        with suppress(csv.Error):
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
            lengths.extend(len(row) for row in islice((row for row in rows if row), RULES.sample_rows + 1))
        if not complete and len(lengths) <= RULES.sample_rows:
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


def csv_header(source: Source) -> list[str]:
    """Return the column names."""
    separator, most = _separator(source), RULES.header_bytes
    too_long = f"{source.path}, line 1: the header is longer than {most:,} bytes; is this a text table?"
    with source.open() as stream:
        bounded = cast(Any, io.BufferedReader(Bounded(stream, most, too_long)))
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


def csv_table(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> Any:
    """Return the whole file as an Arrow table; types are inferred from all rows."""
    if types:
        types = {**types, **_booleans(source, columns, types)}
    with _opened_csv(source, columns, types, whole=True) as table:
        return table


def csv_chunks(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the file as Arrow tables; types that are not given are inferred from the first block."""
    pa = arrow()
    declared = {**types, **_booleans(source, columns, types)}
    # Later blocks are likely to fit float64 where the first has integers or no value.
    wide = {
        name: pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind
        for name, kind in _first_types(source, columns, declared)
    }
    with _opened_csv(source, columns, {**wide, **declared}) as reader:
        yield from (pa.Table.from_batches([batch]) for batch in reader)


@contextmanager
def _opened_csv(source: Source, columns: Sequence[str], types: Mapping[str, Any], whole: bool = False) -> Iterator[Any]:
    """Open columns of a file as an Arrow reader, or read them as a table; errors of pyarrow get the file and line."""
    pa, wanted = arrow(), set(columns)
    import pyarrow.csv as pc

    known = {name: kind for name, kind in types.items() if name in wanted}
    marks = [form for mark in source.reading.na for form in (mark, f" {mark}", f"{mark} ")]
    try:
        with source.native() as stream:
            found = (pc.read_csv if whole else pc.open_csv)(
                stream,
                read_options=pc.ReadOptions(block_size=_block_size(source), encoding=_csv_encoding(source)),
                parse_options=pc.ParseOptions(delimiter=_separator(source), newlines_in_values=True),
                convert_options=pc.ConvertOptions(
                    include_columns=list(columns),
                    column_types=known,
                    null_values=[*MISSING, *marks],
                    strings_can_be_null=True,
                    decimal_point=source.reading.decimal or ".",
                ),
            )
            if any(pa.types.is_binary(kind) for kind in found.schema.types):
                raise _not_decoded(source)
            yield found
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _csv_error(source, columns, error) from error


def _first_types(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> list[tuple[str, Any]]:
    with _opened_csv(source, columns, types) as reader:
        return list(zip(reader.schema.names, reader.schema.types, strict=True))


def _booleans(source: Source, columns: Sequence[str], types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns declared as numbers that contain booleans, which must be read as booleans first."""
    pa = arrow()
    texts = {name: kind for name, kind in types.items() if pa.types.is_string(kind)}
    if len(texts) == len(types):
        return {}
    first = _first_types(source, columns, texts)
    return {name: kind for name, kind in first if name in types and pa.types.is_boolean(kind)}


def _csv_error(source: Source, columns: Sequence[str], error: Exception) -> DataError:
    """Return the error for one of pyarrow, with the file and, if it can be found, the line."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError) or "UTF8" in text:
        return _not_decoded(source)
    if "Expected" in text and "columns" in text:
        return _ragged(source, text)
    bad = re.search(r"In CSV column #(\d+).*conversion error to (\w+): invalid value '(.*)'", text, re.DOTALL)
    if bad:
        column, value = columns[int(bad[1])], bad[3]
        line = csv_lines_of(source, column, [value]).get(value)
        where = source.at(line) if line else str(source.path)
        found = f"{where}: column {column!r} must be numeric, as in earlier rows; got {_short(value)!r}"
        as_text = Parameter("types", {column: "text"}, " (to read the column as text: {})")
        missing = [Parameter("na", [value], "; to read it as a missing value: {}")] if _short(value) == value else []
        return DataError(Message(found, as_text, *missing))
    if "straddling" in text:
        return DataError(f"{source.path} has a row longer than the limit of {_block_size(source):,} bytes")
    return DataError(f"{source.path} is not a text table: {_short(text)}")


def _ragged(source: Source, text: str) -> DataError:
    with source.open() as stream, suppress(csv.Error):
        rows = _csv_rows(source, stream)
        width = len(next(rows)[1])
        for number, row in rows:
            if len(row) != width:
                fields = f"{len(row)} field{'s' if len(row) > 1 else ''}"
                return DataError(f"{source.at(number)}: {fields} where the header has {width} columns")
    return DataError(f"{source.path} has a row whose length differs from that of the header: {_short(text)}")


def csv_lines_of(source: Source, column: str, values: Sequence[str]) -> dict[str, int]:
    """Return the first line of each value of a column; a value that is not found is left out."""
    exact, found = {value.strip(): value for value in values}, {}
    for number, field in csv_fields(source, column):
        if field in exact:
            found[exact.pop(field)] = number
            if not exact:
                break
    return found


def csv_fields(source: Source, column: str) -> Iterator[tuple[int, str]]:
    """Yield the number of each line and its value of a column, without spaces around it."""
    with source.open() as stream, suppress(csv.Error):
        rows = _csv_rows(source, stream)
        place = next(rows)[1].index(column)
        yield from ((number, row[place].strip()) for number, row in rows if len(row) > place)


def zero_led(source: Source, columns: Sequence[str]) -> list[str]:
    """Return the columns of integers of which one is written with a leading zero, as far as the first block shows.

    Such numbers are codes: as numbers, they would lose their zeros.
    """
    pa = arrow()
    whole = [name for name, kind in _first_types(source, columns, {}) if pa.types.is_integer(kind)]
    if not whole:
        return []
    with _opened_csv(source, whole, dict.fromkeys(whole, pa.string())) as reader:
        first = reader.read_next_batch()
    led = [pa.compute.any(pa.compute.match_substring_regex(first[name], r"^\s*[+-]?0\d")).as_py() for name in whole]
    return [name for name, found in zip(whole, led, strict=True) if found]


def _csv_rows(source: Source, stream: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line, or of the row of a sheet, and its fields; lines without any are left out."""
    # Bytes that cannot be decoded may be in another line than the error. Python's reader raises csv.Error for fields
    # longer than its limit, which pyarrow can read; the line is then unknown.
    rows = csv.reader(_lines(source, stream, "surrogateescape"), delimiter=_separator(source))
    for count, row in enumerate(rows, 1):
        if row:
            yield (count if source.format == "xlsx" else rows.line_num), row


def _block_size(source: Source) -> int:
    return max(RULES.block, RULES.field_bytes * source.n_columns)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def _not_decoded(source: Source) -> DataError:
    encoding = _csv_encoding(source)
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
    return io.TextIOWrapper(stream, encoding=_with_mark(_csv_encoding(source)), errors=errors, newline="")


def _csv_encoding(source: Source) -> str:
    return source.reading.encoding or UTF8


def _with_mark(encoding: str) -> str:
    """Return the encoding that skips a byte order mark, as pyarrow does."""
    return "utf-8-sig" if encoding == UTF8 else encoding


def _separator(source: Source) -> str:
    return source.reading.delimiter or ("\t" if source.format == "tsv" else ",")


# Data frames in memory, converted through Arrow, so that they give the same types as files.


def is_frame(value: Any) -> bool:
    """Return whether a value is a pandas, polars or pyarrow table, that is, whether it exports to Arrow."""
    # Early versions of polars 1 have to_arrow only.
    exports = hasattr(value, "__arrow_c_stream__") or hasattr(value, "to_arrow")
    return exports and hasattr(value, "columns")


def frame_header(source: Source) -> list[str]:
    """Return the column names."""
    names = list(getattr(source.frame, "column_names", source.frame.columns))
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        raise DataError(f"{source.path} must have column names that are strings; got {strange[0]!r}")
    if not names:
        raise DataError(f"{source.path} has no columns")
    check_distinct(source.path, names)
    return names


def frame_table(source: Source, columns: Sequence[str]) -> Any:
    """Return the given columns as an Arrow table."""
    pa, names = arrow(), list(columns)
    frame = source.frame
    try:
        if hasattr(frame, "iloc"):
            # The index of pandas is not a column.
            table = pa.Table.from_pandas(frame[names], preserve_index=False)
        else:
            chosen = frame.select(names)
            # Without to_arrow, polars exports string views.
            table = chosen.to_arrow() if hasattr(chosen, "to_arrow") else pa.table(chosen)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{source.path} has a column that contains neither numbers, text nor dates: {error}") from error
    return table


def frame_chunks(source: Source, columns: Sequence[str]) -> Iterator[Any]:
    """Yield Arrow tables of a limited number of rows."""
    table, n_rows = frame_table(source, columns), _batch_rows(columns)
    for start in range(0, table.num_rows, n_rows):
        yield table.slice(start, n_rows)


def _batch_rows(columns: Sequence[str]) -> int:
    """Return the rows of two blocks if each value takes eight bytes."""
    return max(1, 2 * RULES.block // (8 * max(1, len(columns))))


# Parquet files, read with pyarrow.


def parquet_header(source: Source) -> list[str]:
    """Return the column names."""
    with _open_parquet(source) as file:
        names = list(file.schema_arrow.names)
    check_distinct(source.path, names)
    return names


def parquet_chunks(source: Source, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the file as Arrow tables; one row group and one table of limited size are in memory."""
    pa = arrow()
    with _open_parquet(source) as file:
        try:
            for batch in file.iter_batches(_batch_rows(columns), columns=list(columns)):
                yield pa.Table.from_batches([batch]).select(list(columns))
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{source.path} is damaged: {error}") from error


def check_parquet_size(source: Source, columns: Sequence[str]) -> None:
    """Raise DataError if the columns exceed the limit in memory: equal values are stored in very few bytes."""
    limit = unpack_limit(source.path.stat().st_size, source.reading.max_bytes)
    with _open_parquet(source) as file:
        if 8 * file.metadata.num_rows * len(columns) > limit:
            raise DataError(beyond_limit(source.path, limit))


def _open_parquet(source: Source) -> Any:
    pa = arrow()
    import pyarrow.parquet

    try:
        # With pre_buffer, all row groups stay in memory until the file is closed.
        return pyarrow.parquet.ParquetFile(source.path, pre_buffer=False)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{source.path} is not a parquet file, although its name says so: {error}") from error


# Sheets of Excel workbooks, read with openpyxl and copied to csv files, whose values they are read like.


SHEET_DELIMITER = ","


def sheet_copy(source: Source, likely: str | None) -> tuple[Any, str]:
    """Return a temporary copy of a sheet as a csv file, and the name of the sheet.

    Row n of the sheet is record n of the copy; rows without values are empty lines.
    """
    sheet, table = _sheet(source, likely)
    copy = tempfile.NamedTemporaryFile(  # noqa: SIM115  # removed when this object is
        "w", suffix=".csv", encoding="utf-8", newline=""
    )
    writer, width = csv.writer(copy, delimiter=SHEET_DELIMITER, lineterminator="\n"), 0
    for number, texts in enumerate(table, 1):
        filled = _filled(texts)
        if filled and not width:
            width = filled
            texts = [text or f"unnamed: {i}" for i, text in enumerate(texts)]  # the names of pandas
        elif filled > width:
            found = f"{source.at(number)}: the value {texts[filled - 1]!r} is to the right of the header"
            raise DataError(f"{found}; name its column, or delete it")
        writer.writerow([*texts, *[""] * width][:width] if filled else [])
    copy.flush()
    return copy, sheet


def _sheet(source: Source, likely: str | None) -> tuple[str, list[list[str]]]:
    """Return the name and the cells of the sheet to read, as they are written in a csv file."""
    load, sheet = need("openpyxl").load_workbook, source.reading.sheet
    _check_workbook(source)
    try:
        with closing(load(source.path, read_only=True, data_only=True, keep_links=False)) as book:
            sheets = {each.title: each for each in book.worksheets}
            sheet = likely if sheet is None and likely in sheets else sheet
            shown = [name for name, each in sheets.items() if each.sheet_state == "visible"]
            wanted = [name for name in sheets if name == sheet or (sheet is None and name in shown)]
            tables = {name: _cells(sheets[name], source.reading.decimal or ".") for name in wanted}
    except Exception as error:  # openpyxl raises errors of all kinds for damaged files
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{source.path} is not an Excel workbook, or is damaged ({reason})") from error
    if sheet is not None and not tables:
        raise DataError(f"{source.path} has no sheet {sheet!r}; its sheets are {_listed(list(sheets))}")
    filled = {name: table for name, table in tables.items() if any(map(_filled, table))}
    if not filled:
        raise DataError(f"{source.path} is empty: none of its sheets has values")
    if len(filled) > 1:
        found = f"{source.path} has {len(filled)} sheets, {_listed(list(filled))}; pass the one to read: "
        raise DataError(Message(found, Parameter("sheet", ...)))
    (name, table) = next(iter(filled.items()))
    _refuse_lost_formulas(source, name, table)
    return name, table


def _cells(sheet: Any, decimal: str) -> list[list[str]]:
    sheet.reset_dimensions()  # those that a file declares may be wrong
    return [[_text(cell, decimal) for cell in row] for row in sheet.rows]


def _filled(texts: list[str]) -> int:
    """Return the number of the last cell of a row with a value."""
    return max((i for i, text in enumerate(texts, 1) if text), default=0)


def _refuse_lost_formulas(source: Source, sheet: str, table: list[list[str]]) -> None:
    """Raise DataError if the value of a formula is not in the file, and would be lost."""
    with zipfile.ZipFile(source.path) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        if not any(mark in archive.read(name) for name in sheets for mark in (b"<f>", b"<f ")):
            return
    with closing(need("openpyxl").load_workbook(source.path, read_only=True)) as book:
        for cell in (cell for row in book[sheet].iter_rows() for cell in row if cell.data_type == "f"):
            if "".join(table[cell.row - 1][cell.column - 1 : cell.column]) == "":
                raise DataError(
                    f"{source.path}, cell {cell.coordinate}: the value of its formula is not in the file; open the "
                    "workbook in a spreadsheet program and save it there"
                )


def _check_workbook(source: Source) -> None:
    """Raise DataError if a file is not a workbook or too large."""
    try:
        limit = unpack_limit(source.path.stat().st_size, source.reading.max_bytes)
        with zipfile.ZipFile(source.path) as archive:
            # zipfile reads no more of a member than this.
            if sum(member.file_size for member in archive.infolist()) > limit:
                raise DataError(beyond_limit(source.path, limit))
    except zipfile.BadZipFile as error:
        raise DataError(f"{source.path} is not an Excel workbook, although its name says so ({error})") from error
    except OSError as error:
        raise source.broken(error) from error


def _text(cell: Any, decimal: str) -> str:
    """Return a value as it is written in a csv file."""
    if cell.data_type == "e":  # such as a division by zero
        return "nan"
    value = cell.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return (str(int(value)) if value.is_integer() else repr(value)).replace(".", decimal)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return "" if value is None else str(value)


# Svmlight files, read with scikit-learn.


_LINE = re.compile(rb"\s*(#.*)?$|\s*[^\s:#]+(\s+(qid|\d+):[^\s:#]+)*\s*(#.*)?$")


def svmlight_chunks(source: Source, n_features: int | None) -> Iterator[tuple[Any, Any]]:
    """Yield matrices of the same width and labels; if ``n_features`` is None, the file is read twice."""
    if n_features is None:
        n_features = max(X.shape[1] for X, _ in _parsed_svmlight(source, None))
    yield from _parsed_svmlight(source, n_features)


def svmlight_matrix(source: Source, n_features: int | None) -> tuple[Any, Any]:
    """Return the features and the labels of the whole file."""
    with source.open() as stream:
        X, y = _parse(source, io.BytesIO(stream.read()), n_features)
    if y.size == 0:
        raise DataError(f"{source.path} has no rows")
    return X, y


def _parsed_svmlight(source: Source, n_features: int | None) -> Iterator[tuple[Any, Any]]:
    rows = 0
    with source.open() as stream:
        while block := stream.read(RULES.block):
            rest = stream.readline(LEAST_LIMIT)
            if len(rest) == LEAST_LIMIT:
                raise DataError(f"{source.path} has a line longer than the limit of {LEAST_LIMIT:,} bytes")
            X, y = _parse(source, io.BytesIO(block + rest), n_features)
            if y.size:
                rows += y.size
                yield X, y
    if rows == 0:
        raise DataError(f"{source.path} has no rows")


def _parse(source: Source, content: BinaryIO, n_features: int | None) -> tuple[Any, Any]:
    try:
        result: tuple[Any, Any] = load_svmlight_file(
            content, n_features=n_features, zero_based=bool(source.reading.zero_based)
        )
        return result
    except (ValueError, OverflowError) as error:
        raise _explained(source, error, n_features) from error


def _explained(source: Source, error: Exception, n_features: int | None) -> DataError:
    text = str(error)
    if "index 0" in text:
        return DataError(Message(f"{source.path} has a feature index 0; pass ", Parameter("zero_based", True)))
    if "n_features was set" in text:
        return DataError(f"{source.path} has more than the requested {n_features} features")
    if isinstance(error, OverflowError):
        return DataError(f"{source.path} has a feature index outside the range of integers")
    with source.open() as stream:
        for number, line in enumerate(stream, 1):
            if not _LINE.match(line):
                shown = line[:60].decode("utf-8", "replace").rstrip()
                return DataError(f"{source.path}, line {number}: must be 'label index:value ...'; got {shown!r}")
    return DataError(f"{source.path} is not an svmlight file: {text}")


# Conversion of chunks of any size to batches of one size.


def rebatch(chunks: Iterable[Table], size: int) -> Iterator[Table]:
    """Yield batches of ``size`` rows; the last one can be smaller."""
    pool: list[Table] = []
    held = 0
    for chunk in chunks:
        start, n_rows = 0, chunk[0].shape[0]
        while start < n_rows:
            stop = min(start + size - held, n_rows)
            pool.append(_pool_rows(chunk, slice(start, stop)))
            held, start = held + stop - start, stop
            if held == size:
                yield _joined_pool(pool)
                pool, held = [], 0
    if held:
        yield _joined_pool(pool)


def shuffled(chunks: Iterable[Table], size: int, rng: np.random.Generator) -> Iterator[Table]:
    """Yield buffers of ``size`` rows in random order."""
    for rows in rebatch(chunks, size):
        yield _pool_rows(rows, rng.permutation(rows[0].shape[0]))


def _pool_rows(chunk: Table, index: Any) -> Table:
    X, y = chunk
    rows = X[index] if scipy.sparse.issparse(X) else X.iloc[index].reset_index(drop=True)
    return Table(rows, None if y is None else y[index])


def _joined_pool(pool: list[Table]) -> Table:
    if len(pool) == 1:
        return pool[0]
    matrices = [X for X, _ in pool]
    labels = None if pool[0][1] is None else np.concatenate([y for _, y in pool if y is not None])
    if scipy.sparse.issparse(matrices[0]):
        return Table(scipy.sparse.vstack(matrices, format="csr"), labels)
    return Table(need("pandas").concat(matrices, ignore_index=True), labels)


# Source of a table: a file or a data frame, read as a whole or in batches, with the header parsed once.


# Formats that are read as text; sheets are copied to text.
TEXT_FORMATS = ("csv", "tsv", "xlsx")


class TableSource:
    """File or data frame with known columns; the header is parsed once, even if the rows are read several times.

    ``table`` is what :func:`read_table` reads, several files with the same columns, or a binary file that is open for
    reading csv. ``likely`` is how similar tables are written: their delimiter, encoding and sheet are taken if
    ``reading`` has none and the content shows no others.

    ``name`` is the path of the file, or "the table"; ``columns`` are the names, None for an svmlight file; ``reading``
    has the delimiter, the encoding and the sheet that were found in the first file; ``notes`` are those on detected
    delimiters and encodings that are not the expected ones; ``n_skipped`` is the number of rows without a label that
    the last call of :meth:`read` left out.
    """

    def __init__(self, table: Any, reading: Reading | None = None, *, likely: Reading | None = None) -> None:
        reading, likely = checked_reading(reading or Reading()), checked_reading(likely or Reading())
        self.n_skipped = 0
        # Temporary copies, removed with this object.
        self._copies: list[Any] = []
        if hasattr(table, "read"):
            copy, name = copied(table)
            self._copies.append(copy)
            self._sources = [Source(Path(name), "csv", reading=reading, content=Path(copy.name))]
        else:
            self._sources = _sources(table, reading)
        for i, source in enumerate(self._sources):
            if source.format == "xlsx":
                copy, sheet = sheet_copy(source, likely.sheet)
                self._copies.append(copy)
                written = replace(reading, delimiter=SHEET_DELIMITER, encoding=UTF8, sheet=sheet)
                self._sources[i] = source._replace(content=Path(copy.name), reading=written)
            elif source.format in ("csv", "tsv"):
                self._sources[i] = source._replace(reading=detected(source, likely))
        self.reading: Reading = self._sources[0].reading
        self.notes = _detection_notes(self._sources, reading, likely)
        self.columns = _header(self._sources[0])
        for i, source in enumerate(self._sources):
            if i:
                _check_same(self._sources[0], self.columns, source)
            self._sources[i] = source._replace(n_columns=len(self.columns or ()))
        self.paths = [source.path for source in self._sources]
        self.name = str(self._sources[0].path)
        if len(self._sources) > 1:
            self.name += f" and {len(self._sources) - 1} more"

    def digest(self, name: str = "") -> int:
        """Return a hash of the whole content, of 64 bits, by which a table can be recognized.

        Parameters
        ----------
        name : str, default=""
            What else is part of the hash.

        Returns
        -------
        int
            The hash. Copies of a file have the same; the same rows in another format have not.
        """
        found = hashlib.blake2b(name.encode(), digest_size=8)
        for source in self._sources:
            if source.format == "frame":
                frame = frame_table(source, self.columns or ()).to_pandas()
                found.update(repr(self.columns).encode())
                found.update(need("pandas").util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
                continue
            with source.file.open("rb") as file:
                while piece := file.read(RULES.block):
                    found.update(piece)
        return int.from_bytes(found.digest(), "little")

    def read(
        self,
        *,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Kind] | None = None,
        n_features: int | None = None,
    ) -> Table:
        """Read all rows."""
        sources = [source.limited() for source in self._sources]
        if sources[0].format == "svmlight":
            _no_names(sources[0], target, columns)
            if len(sources) > 1:
                raise DataError(f"svmlight files must be passed one at a time; got {self.name}")
            X, y = svmlight_matrix(sources[0], n_features)
            n_rows, found = X.shape[0], labeled(sources[0], X, y)
        else:
            names, declared = self._resolve(target, columns, types)
            table = _joined(sources, names, declared)
            n_rows, found = table.num_rows, as_table(sources[0], table, target, types or {})
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
    ) -> Iterator[Table]:
        """Read the rows in batches; the parameters are those of :func:`iter_batches`."""
        _check_sizes(batch_size, buffer_size)
        source = self._sources[0]
        if source.format == "svmlight":
            _no_names(source, target, columns)
            pairs = (pair for one in self._sources for pair in svmlight_chunks(one, n_features))
            chunks: Iterator[Any] = (labeled(source, *pair) for pair in pairs)
        else:
            names, declared = self._resolve(target, columns, types)
            tables = (table for one in self._sources for table in _chunks(one, names, declared))
            chunks = (as_table(source, table, target, types or {}) for table in tables)
        if buffer_size is not None:
            chunks = shuffled(chunks, buffer_size, np.random.default_rng(random_state))
        return rebatch(chunks, batch_size)

    def places(self, column: str, values: Sequence[str]) -> dict[str, str]:
        """Return where values of a column first occur, such as "train.csv, line 7"; a value may be missing."""
        found: dict[str, str] = {}
        for source in self._sources:
            rest = [value for value in values if value not in found]
            if not rest or source.format not in TEXT_FORMATS:
                break
            found |= {value: source.at(n) for value, n in csv_lines_of(source, column, rest).items()}
        return found

    def find(self, column: str, test: Callable[[str], bool]) -> tuple[str, str] | None:
        """Return the place of the first value of a column of a text table that passes a test, and the value."""
        texts = (source for source in self._sources if source.format in TEXT_FORMATS)
        fields = ((source, *field) for source in texts for field in csv_fields(source, column))
        return next(((source.at(number), value) for source, number, value in fields if test(value)), None)

    def zero_led(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of text tables in which integers have leading zeros, as codes have."""
        first = self._sources[0]
        return zero_led(first, columns) if columns and first.format in TEXT_FORMATS else []

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
    check_number("batch_size", batch_size, above=0, integer=True)
    if buffer_size is not None:
        check_number("buffer_size", buffer_size, above=0, integer=True)
        if buffer_size < batch_size:
            raise ValueError(f"buffer_size must be at least batch_size, {batch_size}; got {buffer_size!r}")


def _no_names(source: Source, target: str | None, columns: Sequence[str] | None) -> None:
    if target is not None or columns is not None:
        raise DataError(f"{source.path} is an svmlight file, which stores its labels itself and has no column names")


def _sources(table: Any, reading: Reading) -> list[Source]:
    """Return the files or the data frame of a table."""
    if is_frame(table):
        arrow()
        return [Source(Path("the table"), "frame", reading=reading, frame=table)]
    several = isinstance(table, list | tuple)
    paths = list(table) if several else [table]
    if not paths or not all(isinstance(path, str | Path) for path in paths):
        got = "none" if not paths else f"a value of type {type(table).__name__}"
        raise TypeError(f"table must be a path, a list of paths, or a pandas or polars DataFrame; got {got}")
    return [source._replace(reading=reading) for path in paths for source in find_sources(path)]


def _detection_notes(sources: list[Source], reading: Reading, likely: Reading) -> list[str]:
    """Return a note about each kind of file whose delimiter or encoding was detected and is not the expected one."""
    notes: dict[tuple[str, ...], str] = {}
    for source in sources:
        if source.format not in ("csv", "tsv"):
            continue
        usual = likely.delimiter or ("\t" if source.format == "tsv" else ",")
        found: dict[str, str] = {}
        if reading.delimiter is None and source.reading.delimiter != usual:
            found["delimiter"] = repr(source.reading.delimiter)
        if reading.encoding is None and source.reading.encoding != (likely.encoding or UTF8):
            found["encoding"] = str(source.reading.encoding)
        if found:
            text = " and ".join(f"the {name} {value}" for name, value in found.items())
            others = (part for name in found for part in (" or ", Parameter(name, ...)))
            advice = Message(f"{source.path} has {text}, as its first rows show; for another one: ", *list(others)[1:])
            notes.setdefault(tuple(found.values()), advice)
    return list(notes.values())


def _header(source: Source) -> list[str] | None:
    if source.format == "frame":
        return frame_header(source)
    if source.format == "parquet":
        return parquet_header(source)
    return None if source.format == "svmlight" else csv_header(source)


def _check_same(first: Source, columns: list[str] | None, source: Source) -> None:
    """Raise DataError if another file of the same table has other columns."""
    names = _header(source)
    if (names is None) != (columns is None):
        raise DataError(f"{first.path} and {source.path} must both have column names, or neither of them")
    if names is not None and columns is not None and set(names) != set(columns):
        lacking = [name for name in columns if name not in set(names)]
        other = f"no column {lacking[0]!r}" if lacking else f"the column {(set(names) - set(columns)).pop()!r}"
        raise DataError(f"{source.path} must have the columns of {first.path}; got {other}")


def _joined(sources: list[Source], names: list[str], declared: dict[str, Any]) -> Any:
    """Return the rows of all files as one Arrow table; a column that is text in one file is text in all."""
    tables = [_whole(source, names, declared) for source in sources]
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
        tables = [_whole(source, names, declared) for source in sources]
    for source, table in zip(sources[1:], tables[1:], strict=True):
        try:
            pa.unify_schemas([tables[0].schema, table.schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise DataError(
                f"the columns of {source.path} must have the types of those of {sources[0].path}; {error}"
            ) from error
    return pa.concat_tables(tables, promote_options="permissive")


def _whole(source: Source, names: list[str], declared: dict[str, Any]) -> Any:
    if source.format in TEXT_FORMATS:
        table = csv_table(source, names, declared)
    elif source.format == "frame":
        table = frame_table(source, names)
    else:
        check_parquet_size(source, names)
        table = arrow().concat_tables(_chunks(source, names, declared))
    if table.num_rows == 0:
        raise _no_rows(source)
    return table


def _chunks(source: Source, names: list[str], declared: dict[str, Any]) -> Iterator[Any]:
    """Yield the rows as Arrow tables of limited size."""
    if source.format in TEXT_FORMATS:
        found = csv_chunks(source, names, declared)
    else:
        found = (frame_chunks if source.format == "frame" else parquet_chunks)(source, names)
    empty = True
    for table in found:
        if table.num_rows:
            empty = False
            yield table
    if empty:
        raise _no_rows(source)


def _no_rows(source: Source) -> DataError:
    return DataError(f"{source.path} has {'a header' if source.format in TEXT_FORMATS else 'columns'} but no rows")


# Public readers of files and data frames, as a whole or in batches.


def parameter_names() -> Any:
    """Return a context in which messages name the options of reading as :class:`Reading` does."""
    return holding({field.name: "reading=Reading" for field in fields(Reading)})


def read_columns(path: Any, reading: Reading | None = None) -> list[str] | None:
    """Return the column names of a file, or None for an svmlight file, which has no column names.

    Parameters
    ----------
    path, reading

    Returns
    -------
    list of str or None
        Column names, in order.
    """
    with parameter_names():
        return TableSource(path, reading).columns


def read_table(
    path: Any,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Kind] | None = None,
    n_features: int | None = None,
    reading: Reading | None = None,
) -> Table:
    r"""Read a whole file.

    Parameters
    ----------
    path, target, columns, types, n_features, reading

    Returns
    -------
    Table
        ``X`` (DataFrame or CSR matrix) and ``y``.

    Raises
    ------
    DataError
        If the file cannot be used. The message names the line if it is known.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rocmax.data import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "payments.csv")
    ...     _ = path.write_text("amount,country,label\n10,FR,ok\n,DE,fraud\n")
    ...     X, y = read_table(path, target="label")
    >>> X["amount"].tolist(), X["country"].tolist(), y.tolist()
    ([10.0, nan], ['FR', 'DE'], ['ok', 'fraud'])
    """
    with parameter_names():
        source = TableSource(path, reading)
        return source.read(target=target, columns=columns, types=types, n_features=n_features)


def iter_batches(
    path: Any,
    *,
    target: str | None = None,
    batch_size: int = 10_000,
    buffer_size: int | None = None,
    random_state: int | np.random.Generator | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Kind] | None = None,
    n_features: int | None = None,
    reading: Reading | None = None,
) -> Iterator[Table]:
    r"""Read a file of any size in batches, in bounded memory.

    If ``buffer_size`` is given, the rows are returned in random order: the reader fills a buffer with that many rows,
    shuffles it, and returns batches from it. Every row is returned exactly once. If the file is sorted by class, the
    buffer must be larger than the longest run of one class; otherwise, shuffle the file first.

    Parameters
    ----------
    path, target
    batch_size : int, default=10000
        Number of rows in a batch; the last batch may have fewer.
    buffer_size : int, default=None
        Number of rows in the shuffle buffer, at least ``batch_size``. If None, the order of the file is kept.
    random_state : int, numpy.random.Generator or None, default=None
        Seed or generator of the order. Pass an int for reproducible results.
    columns
    types : ...
        Types are inferred from the first 4 MB of a text table; a later row with another type is an error that
        names the line.
    n_features : ...
        This requires an extra pass.
    reading

    Yields
    ------
    Table
        ``X`` (DataFrame or CSR matrix) and ``y``.

    Raises
    ------
    DataError
        If the file cannot be used.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rocmax.data import iter_batches
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "numbers.csv")
    ...     _ = path.write_text("x,label\n" + "".join(f"{i},{i % 2}\n" for i in range(5)))
    ...     batches = [X["x"].tolist() for X, y in iter_batches(path, target="label", batch_size=2)]
    >>> batches
    [[0.0, 1.0], [2.0, 3.0], [4.0]]
    """
    _check_sizes(batch_size, buffer_size)
    with parameter_names():
        found = TableSource(path, reading).batches(
            target=target,
            batch_size=batch_size,
            buffer_size=buffer_size,
            random_state=random_state,
            columns=columns,
            types=types,
            n_features=n_features,
        )
    return _held(found)


def _held(batches: Iterator[Table]) -> Iterator[Table]:
    """Yield batches; only while one is read, messages name the parameters of :func:`iter_batches`."""
    while True:
        with parameter_names():
            batch = next(batches, None)
        if batch is None:
            return
        yield batch
