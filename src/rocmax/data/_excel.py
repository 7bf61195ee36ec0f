"""Sheets of Excel workbooks, copied to text tables, so that their values are read like those of csv files."""

from __future__ import annotations

import csv
import datetime
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rocmax._decompression import beyond_limit, unpack_limit
from rocmax._messages import Message, Parameter
from rocmax._packages import need
from rocmax.data._files import Source
from rocmax.data.errors import DataError

DELIMITER = ","


class SheetCopy:
    """Copy of a sheet as a csv file, which is removed when this object is.

    Row n of the sheet is record n of the copy; rows without values are empty lines.

    Parameters
    ----------
    source : Source
        The workbook.
    sheet : str or None
        Name of the sheet. If None, the workbook must have one sheet with values, or the sheet ``likely``.
    likely : str or None
        Name of the sheet of similar workbooks.
    decimal : str
        Decimal mark to write numbers with, as it is that of the numbers that are text.
    max_bytes : int or None
        Maximum decompressed size of the workbook.

    Attributes
    ----------
    path : Path
        The copy.
    sheet : str
        Name of the sheet.
    """

    def __init__(
        self, source: Source, sheet: str | None, likely: str | None, decimal: str, max_bytes: int | None
    ) -> None:
        openpyxl = need("openpyxl")
        has_formulas = _check(source, max_bytes)
        self._copy = tempfile.NamedTemporaryFile(  # noqa: SIM115  # removed when this object is
            "w", suffix=".csv", encoding="utf-8", newline=""
        )
        self.path = Path(self._copy.name)
        with ExitStack() as stack:
            book = stack.enter_context(_workbook(openpyxl, source, data_only=True))
            self.sheet = _chosen(source, book, sheet, likely)
            rows = _rows(source, book[self.sheet])
            if has_formulas:
                other = stack.enter_context(_workbook(openpyxl, source, data_only=False))
                rows = _checked(source, rows, _rows(source, other[self.sheet]))
            self._write(source, rows, decimal)
        self._copy.flush()

    def _write(self, source: Source, rows: Iterator[Any], decimal: str) -> None:
        writer = csv.writer(self._copy, delimiter=DELIMITER, lineterminator="\n")
        width = 0
        for number, cells in enumerate(rows, 1):
            texts = [_text(cell.value, decimal) for cell in cells]
            if not any(texts):
                self._copy.write("\n")
            elif not width:
                names = _names(texts)
                width = len(names)
                writer.writerow(names)
            else:
                over = next((text for text in texts[width:] if text), None)
                if over is not None:
                    found = f"{source.at(number)}: the value {over!r} is to the right of the header"
                    raise DataError(f"{found}; name its column, or delete it")
                writer.writerow([*texts[:width], *[""] * (width - len(texts))])
        if not width:
            raise DataError(f"{source.path} is empty: its sheet {self.sheet!r} has no values")


def _check(source: Source, max_bytes: int | None) -> bool:
    """Raise DataError if a file is not a workbook or too large; return whether a sheet has formulas."""
    try:
        limit = unpack_limit(source.path.stat().st_size, max_bytes)
        with zipfile.ZipFile(source.path) as archive:
            # zipfile reads no more of a member than this.
            if sum(member.file_size for member in archive.infolist()) > limit:
                raise DataError(beyond_limit(source.path, limit))
            sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
            return any(mark in archive.read(name) for name in sheets for mark in (b"<f>", b"<f "))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{source.path} is not an Excel workbook, although its name says so ({error})") from error
    except OSError as error:
        raise source.broken(error) from error


@contextmanager
def _workbook(openpyxl: Any, source: Source, data_only: bool) -> Iterator[Any]:
    try:
        book = openpyxl.load_workbook(source.path, read_only=True, data_only=data_only)
    except Exception as error:  # openpyxl raises errors of all kinds for damaged files
        raise _damaged(source, error) from error
    try:
        yield book
    finally:
        book.close()


def _chosen(source: Source, book: Any, sheet: str | None, likely: str | None) -> str:
    """Return the name of the sheet to read."""
    present = [each.title for each in book.worksheets]
    if sheet is not None:
        if sheet not in present:
            listed = ", ".join(map(repr, present))
            raise DataError(f"{source.path} has no sheet {sheet!r}; its sheets are {listed}")
        return sheet
    if likely in present:
        return str(likely)
    filled = [each.title for each in book.worksheets if each.sheet_state == "visible" and _has_values(source, each)]
    if not filled:
        raise DataError(f"{source.path} is empty: none of its sheets has values")
    if len(filled) > 1:
        listed = ", ".join(map(repr, filled))
        found = f"{source.path} has {len(filled)} sheets, {listed}; pass the one to read: "
        raise DataError(Message(found, Parameter("sheet", ...)))
    return str(filled[0])


def _has_values(source: Source, sheet: Any) -> bool:
    return any(cell.value is not None for row in _rows(source, sheet) for cell in row)


def _rows(source: Source, sheet: Any) -> Iterator[Any]:
    """Yield the cells of each row."""
    sheet.reset_dimensions()  # those that a file states may be wrong
    rows = sheet.iter_rows()
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except Exception as error:
            raise _damaged(source, error) from error
        yield row


def _damaged(source: Source, error: Exception) -> DataError:
    return DataError(f"{source.path} is not an Excel workbook, or is damaged ({type(error).__name__}: {error})")


def _checked(source: Source, rows: Iterator[Any], formulas: Iterator[Any]) -> Iterator[Any]:
    """Yield the cells of each row; raise DataError if the value of a formula is not in the file, and would be lost."""
    for cells, others in zip(rows, formulas, strict=True):
        for cell, formula in zip(cells, others, strict=False):
            if cell.value is None and formula.data_type == "f":
                raise DataError(
                    f"{source.path}, cell {formula.coordinate}: the value of its formula is not in the file; open the "
                    "workbook in a spreadsheet program and save it"
                )
        yield cells


def _names(texts: list[str]) -> list[str]:
    """Return the names in a header: without empty cells at its end, and with the names of pandas for other ones."""
    last = max(i for i, text in enumerate(texts) if text)
    return [text or f"unnamed: {i}" for i, text in enumerate(texts[: last + 1])]


def _text(value: Any, decimal: str) -> str:
    """Return a value as it is written in a csv file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return (str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)).replace(".", decimal)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return str(value)
