"""Parquet files, read with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rocmax._decompression import beyond_limit, unpack_limit
from rocmax.data._files import Source, arrow
from rocmax.data.errors import DataError, check_distinct

# Rows of a batch, and its size in bytes if each value takes eight.
BATCH_ROWS, _BATCH_BYTES = 1 << 16, 1 << 23


def header(source: Source) -> list[str]:
    """Return the column names."""
    with _open(source) as file:
        names = list(file.schema_arrow.names)
    check_distinct(source.path, names)
    return names


def parts(source: Source, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the file as Arrow tables; one row group and one table of limited size are in memory."""
    pa = arrow()
    with _open(source) as file:
        if file.metadata.num_rows == 0:
            raise DataError(f"{source.path} has columns but no rows")
        try:
            for batch in file.iter_batches(_batch_rows(len(columns)), columns=list(columns)):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).select(list(columns))
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{source.path} is damaged: {error}") from error


def _batch_rows(n_columns: int) -> int:
    """Return the rows of a batch, which spans several row groups if these are smaller."""
    return max(1, min(BATCH_ROWS, _BATCH_BYTES // (8 * max(1, n_columns))))


def check_size(source: Source, columns: Sequence[str], max_bytes: int | None) -> None:
    """Raise DataError if the columns exceed the limit in memory: equal values are stored in very few bytes."""
    limit = unpack_limit(source.path.stat().st_size, max_bytes)
    with _open(source) as file:
        if 8 * file.metadata.num_rows * len(columns) > limit:
            raise DataError(beyond_limit(source.path, limit))


def _open(source: Source) -> Any:
    pa = arrow()
    import pyarrow.parquet

    try:
        # With pre_buffer, all row groups stay in memory until the file is closed.
        return pyarrow.parquet.ParquetFile(source.path, pre_buffer=False)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{source.path} is not a parquet file, although its name says so: {error}") from error
