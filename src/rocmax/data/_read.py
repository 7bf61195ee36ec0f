"""Public readers of files and data frames, as a whole or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rocmax.data._conversion import Kind, Table
from rocmax.data._table_source import TableSource, _check_sizes


def read_columns(
    path: Any, *, delimiter: str | None = None, encoding: str | None = None, sheet: str | None = None
) -> list[str] | None:
    """Return the column names of a file, or None for an svmlight file, which has no column names.

    Parameters
    ----------
    path : str, Path or data frame
        Table, as in :func:`read_table`.
    delimiter : str, default=None
        Field delimiter of a text table. If None, it is detected from the header and the first rows.
    encoding : str, default=None
        The encoding of a text table. If None, it is detected in its first 4 MB: UTF-8, otherwise cp1252, a superset of
        latin-1.
    sheet : str, default=None
        Name of the sheet of an Excel workbook. If None, only one sheet may have values.

    Returns
    -------
    list of str or None
        Column names, in order.
    """
    return TableSource(path, delimiter=delimiter, encoding=encoding, sheet=sheet).columns


def read_table(
    path: Any,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Kind] | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    na: str | Sequence[str] = (),
    encoding: str | None = None,
    sheet: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    max_bytes: int | None = None,
    skip_unlabelled: bool = False,
) -> Table:
    r"""Read a whole file.

    Parameters
    ----------
    path : str, Path or data frame
        A file that ends in .csv, .tsv, .xlsx, .parquet (.pq) or .svmlight (.svm, .libsvm); text may be compressed (.gz,
        .bz2, .zst). A pandas or polars DataFrame is also accepted.
    target : str, default=None
        Name of the column with the labels. An svmlight file stores its labels itself and takes no target.
    columns : sequence of str, default=None
        Features to read, in this order. If None, all columns except the target are read.
    types : dict, default=None
        "number" or "text" for columns whose type should not be inferred.
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
    n_features : int, default=None
        Number of features of an svmlight file. If None, the largest index is used.
    zero_based : bool, default=False
        Whether the feature indices of an svmlight file start at 0 instead of 1.
    max_bytes : int, default=None
        Maximum decompressed size of a compressed file, and maximum size in memory of the columns of a parquet file. If
        None, the limit is 256 MiB, or 100 times the size of the file if that is larger. Other files have no limit.
    skip_unlabelled : bool, default=False
        Whether to leave out rows without a label, which are otherwise an error.

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
    source = TableSource(
        path,
        delimiter=delimiter,
        decimal=decimal,
        thousands=thousands,
        na=na,
        encoding=encoding,
        sheet=sheet,
        max_bytes=max_bytes,
    )
    return source.read(
        target=target,
        columns=columns,
        types=types,
        n_features=n_features,
        zero_based=zero_based,
        max_bytes=max_bytes,
        skip_unlabelled=skip_unlabelled,
    )


def iter_batches(
    path: Any,
    *,
    target: str | None = None,
    batch_size: int = 10_000,
    buffer_size: int | None = None,
    random_state: int | np.random.Generator | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Kind] | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    na: str | Sequence[str] = (),
    encoding: str | None = None,
    sheet: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    skip_unlabelled: bool = False,
) -> Iterator[Table]:
    r"""Read a file of any size in batches, in bounded memory.

    If ``buffer_size`` is given, the rows are returned in random order: the reader fills a buffer with that many rows,
    shuffles it, and returns batches from it. Every row is returned exactly once. If the file is sorted by class, the
    buffer must be larger than the longest run of one class; otherwise, shuffle the file first.

    Parameters
    ----------
    path : str, Path or data frame
        A file that ends in .csv, .tsv, .xlsx, .parquet (.pq) or .svmlight (.svm, .libsvm); text may be compressed (.gz,
        .bz2, .zst). A pandas or polars DataFrame is also accepted.
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
    n_features : int, default=None
        Number of features of an svmlight file. If None, the largest index is used. This requires an extra pass.
    zero_based : bool, default=False
        Whether the feature indices of an svmlight file start at 0 instead of 1.
    skip_unlabelled : bool, default=False
        Whether to leave out rows without a label, which are otherwise an error.

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
    source = TableSource(
        path, delimiter=delimiter, decimal=decimal, thousands=thousands, na=na, encoding=encoding, sheet=sheet
    )
    return source.batches(
        target=target,
        batch_size=batch_size,
        buffer_size=buffer_size,
        random_state=random_state,
        columns=columns,
        types=types,
        n_features=n_features,
        zero_based=zero_based,
        skip_unlabelled=skip_unlabelled,
    )
