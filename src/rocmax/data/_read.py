"""The public readers: from a file or a data frame to features and labels, whole or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rocmax.data._table_source import Kind, Table, TableSource, _check_sizes


def read_columns(path: Any, *, delimiter: str | None = None) -> list[str] | None:
    """Return the names of the columns of a file; None for svmlight, which has no names.

    Parameters
    ----------
    path : str, Path or data frame
        As in :func:`read_table`.
    delimiter : str, default=None
        What separates the fields of a text table. None takes a comma, or a tab in tsv files.

    Returns
    -------
    list of str or None
        The names, in order.
    """
    return TableSource(path, delimiter=delimiter).columns


def read_table(
    path: Any,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Kind] | None = None,
    delimiter: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    max_bytes: int | None = None,
) -> Table:
    r"""Read a whole file.

    Parameters
    ----------
    path : str, Path or data frame
        A file that ends in .csv, .tsv, .parquet (.pq) or .svmlight (.svm, .libsvm); all but parquet may be compressed
        (.gz, .bz2, .zst). A DataFrame of pandas or polars is taken too.
    target : str, default=None
        The column with the labels. An svmlight file has its labels in front and takes no target.
    columns : sequence of str, default=None
        The features to read, in this order. None takes all columns but the target.
    types : dict, default=None
        "number" or "text" for columns whose type is not to be guessed.
    delimiter : str, default=None
        What separates the fields of a text table. None takes a comma, or a tab in tsv files.
    n_features : int, default=None
        Number of features of an svmlight file. None takes the largest index.
    zero_based : bool, default=False
        Whether an svmlight file counts its features from 0, not 1.
    max_bytes : int, default=None
        A compressed file is refused if it unpacks to more than this, and parquet if its columns take more. None
        stands for 256 MiB, or 100 times the size of the file if that is more. Other files have no limit.

    Returns
    -------
    Table
        ``X`` (DataFrame or CSR matrix) and ``y``.

    Raises
    ------
    DataError
        If the file cannot be used; the message names the line where there is one.

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
    return TableSource(path, delimiter=delimiter).read(
        target=target,
        columns=columns,
        types=types,
        n_features=n_features,
        zero_based=zero_based,
        max_bytes=max_bytes,
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
    n_features: int | None = None,
    zero_based: bool = False,
) -> Iterator[Table]:
    r"""Read a file of any size in batches, in bounded memory.

    With ``buffer_size`` the rows come in random order: that many rows are held, shuffled, and given out.
    Every row comes exactly once. A file that is sorted by class needs a buffer larger than its longest run of one
    class, or a shuffled file.

    Parameters
    ----------
    path : str, Path or data frame
        A file that ends in .csv, .tsv, .parquet (.pq) or .svmlight (.svm, .libsvm); all but parquet may be compressed
        (.gz, .bz2, .zst). A DataFrame of pandas or polars is taken too.
    target : str, default=None
        The column with the labels. An svmlight file has its labels in front and takes no target.
    batch_size : int, default=10000
        Number of rows in a batch; the last one may have fewer.
    buffer_size : int, default=None
        Number of rows to hold and shuffle, at least ``batch_size``. None keeps the order of the file.
    random_state : int, numpy.random.Generator or None, default=None
        Seed or generator of the order. Pass an int for reproducible results.
    columns : sequence of str, default=None
        The features to read, in this order. None takes all columns but the target.
    types : dict, default=None
        "number" or "text" for columns whose type is not to be guessed. The others are guessed from the first 4 MB of a
        text table; a later row that does not fit is an error that names it.
    delimiter : str, default=None
        What separates the fields of a text table. None takes a comma, or a tab in tsv files.
    n_features : int, default=None
        Number of features of an svmlight file. None takes the largest index. That takes a pass of its own.
    zero_based : bool, default=False
        Whether an svmlight file counts its features from 0, not 1.

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
    return TableSource(path, delimiter=delimiter).batches(
        target=target,
        batch_size=batch_size,
        buffer_size=buffer_size,
        random_state=random_state,
        columns=columns,
        types=types,
        n_features=n_features,
        zero_based=zero_based,
    )
