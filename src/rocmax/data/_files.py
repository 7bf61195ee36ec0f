"""Detection of the format of a file, and how to open it."""

from __future__ import annotations

import glob
import io
import mmap
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, cast

from rocmax._decompression import beyond_limit, unpack_limit
from rocmax._packages import need
from rocmax.data._text_options import TextOptions
from rocmax.data.errors import DataError

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
    """Existing file, with the format and the compression that its name indicates."""

    path: Path
    format: Literal["csv", "tsv", "xlsx", "parquet", "svmlight"]
    compression: str | None
    limit: int | None = None
    n_columns: int = 0
    text: TextOptions = TextOptions()
    # The file to open if the path is only the name of its content, such as "standard input".
    content: Path | None = None

    @property
    def file(self) -> Path:
        """The file to open."""
        return self.content or self.path

    def at(self, number: int) -> str:
        """Return a place in the file for messages: a line of text, or a row of a sheet."""
        return f"{self.path}, {'row' if self.format == 'xlsx' else 'line'} {number}"

    def limited(self, max_bytes: int | None) -> Source:
        """Return the source with a limit on the decompressed size; uncompressed files have no limit."""
        if self.compression is None:
            unpack_limit(0, max_bytes)
            return self
        return self._replace(limit=unpack_limit(self.file.stat().st_size, max_bytes))

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

    def has_quotes(self) -> bool:
        """Return whether the file may contain quotes, and so line breaks in values; True for compressed files."""
        if self.compression is not None or not self.file.is_file():
            return True
        with self.file.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(b'"') >= 0

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
        result: int = count
        return result


class Spool:
    """Copy of an open file, because the header and the rows of a table are read separately.

    Parameters
    ----------
    stream : binary file
        File to copy.
    """

    def __init__(self, stream: Any) -> None:
        self._copy = tempfile.NamedTemporaryFile(suffix=".csv")  # noqa: SIM115  # removed when this object is
        shutil.copyfileobj(stream, self._copy)
        self._copy.flush()
        self.path = Path(self._copy.name)
        name = getattr(stream, "name", None)
        self.name = "standard input" if name in ("<stdin>", 0) or not isinstance(name, str) else name
        if self._copy.tell() == 0:
            raise DataError(f"{self.name} is empty")


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
    return need("pyarrow")
