"""Plan of the columns of a table, without a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rocmax.workflow.column_plan import Column
from rocmax.workflow.tables import Reading, need_tables, read_training


def plan_columns(
    table: Any,
    *,
    target: str | None = None,
    positive: Any = None,
    text: str | Sequence[str] = (),
    number: str | Sequence[str] = (),
    date: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    id: str | Sequence[str] = (),
    group: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    na: str | Sequence[str] = (),
    encoding: str | None = None,
    sheet: str | None = None,
    day_first: bool | None = None,
    skip_unlabelled: bool | None = None,
    max_bytes: int | None = None,
) -> list[Column]:
    """Return what a fit would do with each column of a table.

    - A column of numbers is used as numbers, also if a few of its values are missing. Other values in it are an error,
      which says where they are and what to pass.
    - Text is used as categories, unless nearly every row has its own value: then it is an identifier or free text, and
      is left out. Whole numbers with leading zeros are codes, and are used as categories.
    - Row numbers, and other whole numbers that were issued one by one, are identifiers, and are left out.
    - A column with the name of an identifier, many values and few rows each, such as a number of customers, is left
      out; a note proposes it for ``group``.
    - Dates are left out, unless they are declared.
    - A column with one value, or without any, is left out.

    Parameters
    ----------
    table : str, Path, list of them, file or data frame
        A file (csv, tsv, xlsx, parquet or svmlight, text also compressed), or a DataFrame of pandas or polars.
    target : str, default=None
        The column with the labels. An svmlight file has its labels in front and takes no target.
    positive : object, default=None
        Label of the positive class. None is enough where there is no doubt: 0 and 1, "no" and "yes".
    text : str or sequence of str, default=()
        Columns to use as categories, such as whole numbers that are codes.
    number : str or sequence of str, default=()
        Columns to use as numbers. A per cent sign after a number is ignored.
    date : str or sequence of str, default=()
        Columns of dates to use: year, month, weekday, hour, and age in days at the latest date of the training table.
    drop : str or sequence of str, default=()
        Columns to leave out.
    id : str or sequence of str, default=()
        Columns that identify rows: the model does not use them, and predictions are written with them.
    group : str, default=None
        A column; rows with the same value in it stay on one side of every split.
    delimiter : str, default=None
        What separates the fields of a text table. None takes what the header and the first rows show.
    decimal : {".", ","}, default=None
        The decimal mark of numbers in a text table. None takes that of the model, and a point in a fit.
    thousands : str, default=None
        A character between groups of digits of numbers. None takes that of the model, and none in a fit.
    na : str or sequence of str, default=()
        Values that are missing, in addition to the empty field, NA, N/A, NaN, null and None, and those of the model.
    encoding : str, default=None
        The encoding of a text table, such as "latin-1". None takes what its first 4 MB show: UTF-8, otherwise that of
        the model or cp1252, which contains the characters of latin-1.
    sheet : str, default=None
        Name of the sheet of an Excel workbook. None takes that of the model, or the only one with values.
    day_first : bool, default=None
        Whether the day comes before the month in dates that end with the year, such as 03/04/2024. None takes the order
        of the model; in a fit, the values of a column show it.
    skip_unlabelled : bool, default=None
        Whether to leave out rows without a label, which are otherwise an error. None does as the fit of the model did.
    max_bytes : int, default=None
        Maximum number of bytes that a compressed file may unpack to, as in :func:`rocmax.data.read_table`.

    Returns
    -------
    list of Column
        A description of each column except the target: its kind, missing values, levels, and whether it is used. The
        list is empty for an svmlight file.

    Examples
    --------
    >>> import pandas as pd
    >>> from rocmax.workflow import plan_columns
    >>> table = pd.DataFrame(
    ...     {"row": range(100), "size": [1.5, 2.5] * 50, "color": ["red", "blue"] * 50, "label": [0, 1] * 50}
    ... )
    >>> [(column.name, column.kind, column.used) for column in plan_columns(table, target="label")]
    [('row', 'identifier', False), ('size', 'number', True), ('color', 'category', True)]
    """
    need_tables()
    training = read_training(
        table,
        target=target,
        positive=positive,
        group=group,
        reading=Reading(
            delimiter=delimiter,
            decimal=decimal,
            thousands=thousands,
            na=na,
            encoding=encoding,
            sheet=sheet,
            day_first=day_first,
            skip_unlabelled=skip_unlabelled,
            max_bytes=max_bytes,
        ),
        text=text,
        number=number,
        date=date,
        drop=drop,
        id=id,
    )
    return training.plan
