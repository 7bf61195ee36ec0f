"""Columns of dates: how they are written, and the numbers that a model uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocmax._messages import Message, Parameter
from rocmax.data import DataError

# Dates with the year at the end or at the beginning, with or without a time.
_TIME = r"([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
YEAR_LAST = rf"\d{{1,2}}[/.-]\d{{1,2}}[/.-]\d{{4}}{_TIME}"
YEAR_FIRST = rf"\d{{4}}[/.-]\d{{1,2}}[/.-]\d{{1,2}}{_TIME}"
PARTS = ("year", "month", "weekday", "hour", "age in days")


def date_like(texts: Any) -> Any:
    """Return whether each text has the form of a date."""
    return texts.str.fullmatch(f"({YEAR_LAST})|({YEAR_FIRST})")


def day_first(name: str, texts: Any) -> bool | None:
    """Return whether the day comes before the month, as the values show; None for dates that start with the year.

    Raises
    ------
    DataError
        If each value could be read in both ways.
    """
    last = texts[texts.str.fullmatch(YEAR_LAST)]
    if last.empty:
        return None
    fields = last.str.extract(r"^(\d{1,2})[/.-](\d{1,2})").astype(int)
    first, second = int(fields[0].max()), int(fields[1].max())
    if first > 12 and second > 12:
        raise DataError(f"column {name!r} has dates with the day first and dates with the month first")
    if first <= 12 and second <= 12:
        found = f"column {name!r} has dates such as {last.iloc[0]!r}, of which the day or the month may come first"
        raise DataError(
            Message(found, "; write them as yyyy-mm-dd, or leave the column out: ", Parameter("drop", [name]))
        )
    return first > 12


def parse_dates(name: str, column: Any, day_comes_first: bool | None) -> Any:
    """Return a column as dates without a time zone; raise DataError for a value that is not a date."""
    import pandas as pd

    if column.dtype.kind == "M":
        dates = column
    else:
        known = column.dropna()
        if len(known) and not isinstance(known.iloc[0], str):
            dates = _from_objects(name, column)
        else:
            dates = pd.to_datetime(column, dayfirst=bool(day_comes_first), format="mixed", errors="coerce", utc=True)
            odd = column[dates.isna() & column.notna()]
            if len(odd):
                advice = Parameter("na", [odd.iloc[0]], "; to read it as a missing value: {}")
                raise DataError(Message(f"column {name!r} must contain dates; got {odd.iloc[0]!r}", advice))
    return dates.dt.tz_localize(None) if dates.dt.tz is not None else dates


def _from_objects(name: str, column: Any) -> Any:
    import pandas as pd

    try:
        return pd.to_datetime(column)
    except (TypeError, ValueError) as error:
        raise DataError(f"column {name!r} must contain dates; got {column.dropna().iloc[0]!r}") from error


def date_features(name: str, dates: Any, reference: Any) -> dict[str, Any]:
    """Return the numbers of a column of dates: year, month, weekday (Monday is 0), hour, and days until ``reference``.

    Parameters
    ----------
    name : str
        Name of the column, with which the names of the features start.
    dates : Series
        The dates.
    reference : Timestamp
        The latest date of the training rows.

    Returns
    -------
    dict of str to ndarray
        Values by the name of the feature.
    """
    of = dates.dt
    parts = (of.year, of.month, of.day_of_week, of.hour, (reference - dates) / np.timedelta64(1, "D"))
    return {
        f"{name} {part}": values.to_numpy(dtype=np.float64, na_value=np.nan)
        for part, values in zip(PARTS, parts, strict=True)
    }
