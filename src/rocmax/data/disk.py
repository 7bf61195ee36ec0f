"""Arrays in files that are read and written in parts, without a memory map.

A memory map counts towards a limit on the address space with its whole size; explicit reads do not.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rocmax.data.errors import DataError

# Number of words in a sum of a checksum, and their distance, a prime: two rows that are exchanged change the sums.
_HEIGHT, _WIDTH = 128, 251


class DiskArray:
    """Array in C order in a file, of which some rows are in memory at a time.

    Parameters
    ----------
    path : str or Path
        The file.
    dtype : dtype
        Type of the values.
    shape : tuple of int
        Shape, one or two dimensions.
    offset : int, default=0
        Position of the first value in the file, in bytes.
    """

    def __init__(self, path: str | Path, dtype: DTypeLike, shape: Sequence[int], offset: int = 0) -> None:
        self.path, self.dtype, self.shape = Path(path), np.dtype(dtype), tuple(shape)
        self._offset = offset
        # Size, time and place of a file of the user, and checksums of the rows that were read; they must not change.
        self._stamp: tuple[int, ...] | None = None
        self._sums: dict[tuple[int, int], int] = {}
        self._row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))

    @classmethod
    def open(cls, path: str | Path) -> DiskArray:
        """Open a .npy file."""
        try:
            # Only the header is read; the map is closed with the array.
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} must be a .npy file with numbers; got an error: {error}") from error
        if not isinstance(array, np.memmap):
            raise DataError(f"{path} must be a .npy file with one array; got an archive")
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

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows from ``start`` to ``stop``.

        Raises
        ------
        DataError
            If the file of an array from :meth:`open` or :meth:`of_map` is another one than before: its size or time
            differs, or the checksum of rows that were read before.
        """
        found: NDArray[Any] = np.empty((max(min(stop, self.shape[0]) - start, 0), *self.shape[1:]), dtype=self.dtype)
        with self._opened("rb") as file:
            self._fill(file, found, start)
        if self._stamp is not None:
            now = checksum(found)
            if self._sums.setdefault((start, stop), now) != now:
                raise DataError(_changed(self.path, f"rows {start} to {min(stop, self.shape[0])} have other values"))
        return found

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Write rows from ``start`` on."""
        with writing_in(self.path.parent), self._opened("r+b") as file:
            file.seek(self._offset + start * self._row_bytes)
            left = memoryview(np.ascontiguousarray(values, dtype=self.dtype).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
            while left.nbytes:
                # Where the disk ends, only a part is written, and the next call raises the error.
                left = left[file.write(left) :]

    def rows(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Return some rows, read one by one in the order of the file."""
        found: NDArray[Any] = np.empty((index.size, *self.shape[1:]), dtype=self.dtype)
        with self._opened("rb") as file:
            for place in np.argsort(index, kind="stable"):
                self._fill(file, found[place : place + 1], int(index[place]))
        return found

    def slices(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[Any]:
        """Return several ranges of rows, one after the other."""
        ends = np.cumsum(stops - starts)
        found: NDArray[Any] = np.empty((int(ends[-1]) if ends.size else 0, *self.shape[1:]), dtype=self.dtype)
        with self._opened("rb") as file:
            for start, stop, end in zip(starts, stops, ends, strict=True):
                self._fill(file, found[end - (stop - start) : end], int(start))
        return found

    def _fill(self, file: BinaryIO, target: NDArray[Any], start: int) -> None:
        if not target.size:
            return
        file.seek(self._offset + start * self._row_bytes)
        view = memoryview(target).cast("B")  # type: ignore[arg-type]
        while view.nbytes:
            count = file.readinto(view)  # type: ignore[attr-defined]  # of a raw file
            if not count:
                end = start + len(target)
                raise DataError(f"{self.path} ends before row {end} of {self.shape[0]}; was it changed?")
            view = view[count:]

    def _opened(self, mode: str) -> BinaryIO:
        try:
            file = cast(BinaryIO, open(self.path, mode, buffering=0))  # noqa: SIM115  # closed by the caller
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if self._stamp is not None and file_stamp(file.fileno()) != self._stamp:
            file.close()
            raise DataError(_changed(self.path, "its size, its time or its place on the disk is another one"))
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
            total = _checksum_of_bytes(np.ascontiguousarray(values).reshape(-1).view(np.uint8), total)
    return total


def _checksum_of_bytes(values: NDArray[np.uint8], total: int) -> int:
    """Return a CRC of sums of words at a fixed distance, which take less time than the CRC of all bytes."""
    size = values.size - values.size % (8 * _WIDTH)
    words = values[:size].view(np.uint64).reshape(-1, _WIDTH)
    for start in range(0, len(words), _HEIGHT):
        total = zlib.crc32(words[start : start + _HEIGHT].sum(axis=0), total)
    return zlib.crc32(values[size:], total)  # type: ignore[arg-type]


def _changed(path: Path, how: str) -> str:
    return (
        f"{path} must not change while its rows are used: {how} than when it was read before. Fit to a copy of the "
        "file, or again when it is complete"
    )
