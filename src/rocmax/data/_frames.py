"""Data frames in memory, converted through Arrow, so that they give the same types as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rocmax.data._files import arrow
from rocmax.data._text_options import TextOptions
from rocmax.data.errors import DataError, check_distinct

BATCH_ROWS = 1 << 16


class FrameSource(NamedTuple):
    """Data frame; ``path`` is its name in messages."""

    frame: Any
    path: str = "the table"
    format: str = "frame"
    text: TextOptions = TextOptions()


def is_frame(value: Any) -> bool:
    """Return whether a value is a pandas, polars or pyarrow table, that is, whether it exports to Arrow."""
    # Early versions of polars 1 have to_arrow only.
    exports = hasattr(value, "__arrow_c_stream__") or hasattr(value, "to_arrow")
    return exports and hasattr(value, "columns")


def header(source: FrameSource) -> list[str]:
    """Return the column names."""
    names = list(getattr(source.frame, "column_names", source.frame.columns))
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        raise DataError(f"{source.path} must have column names that are strings; got {strange[0]!r}")
    if not names:
        raise DataError(f"{source.path} has no columns")
    check_distinct(source.path, names)
    return names


def read(source: FrameSource, columns: Sequence[str]) -> Any:
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
    if table.num_rows == 0:
        raise DataError(f"{source.path} has columns but no rows")
    return table


def parts(source: FrameSource, columns: Sequence[str]) -> Iterator[Any]:
    """Yield Arrow tables of up to `BATCH_ROWS` rows."""
    table = read(source, columns)
    for start in range(0, table.num_rows, BATCH_ROWS):
        yield table.slice(start, BATCH_ROWS)
