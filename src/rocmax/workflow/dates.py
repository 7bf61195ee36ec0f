"""Columns of dates: how they are written, and the numbers that a model uses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from rocmax._messages import Message, Parameter
from rocmax.data import DataError, TableSource

# Dates with the year at the end or at the beginning, with or without a time.
_TIME = r"(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?)?"
YEAR_LAST = rf"(\d{{1,2}})[/.-](\d{{1,2}})[/.-](\d{{4}})({_TIME})"
YEAR_FIRST = rf"(\d{{4}})[/.-](\d{{1,2}})[/.-](\d{{1,2}})({_TIME})"
# ISO dates without separators, and dates with the name of the month: no order is in doubt, as the year has four digits.
COMPACT = r"\d{8}(?:T\d{4,6})?"
_MONTH = r"(?=.*\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b)"
_YEAR = r"(?=.*((?<=[a-z]-)|(?<![+\d-]))\d{4}(?!\d))"
NAMED = re.compile(rf"(?i){_MONTH}{_YEAR}(?!.*\d[/.-]\d+[/.-]\d).*")
SHORT_YEAR = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2}(\D.*)?")
PARTS = ("year", "month", "weekday", "hour", "age in days")
# Nobody writes the month first with dots.
_DOTTED = r"\d{1,2}\.\d{1,2}\.\d{4}.*"


def date_like(texts: Any) -> Any:
    """Return whether each text has the form of a date with separators."""
    return texts.str.fullmatch(f"(?:{YEAR_LAST}|{YEAR_FIRST})")


def find_order(name: str, texts: Any, given: bool | None, source: TableSource) -> tuple[bool | None, list[str]]:
    """Return whether the day comes before the month in a column, decided from all its values, and notes.

    Parameters
    ----------
    name : str
        Name of the column.
    texts : Series of str
        Its values.
    given : bool or None
        The order that the user has stated.
    source : TableSource
        The table.

    Returns
    -------
    tuple of (bool or None, list of str)
        None if no value has the year at its end, so that the order does not matter.

    Raises
    ------
    DataError
        If values contradict each other, or if each value could be read in both ways.
    """
    fields = texts.str.extract(f"^(?:{YEAR_LAST})$").dropna(subset=[0])
    if fields.empty or given is not None:
        return given, []
    first, second = fields[0].astype(int), fields[1].astype(int)
    days, months = texts[first.index[first > 12]], texts[first.index[second > 12]]
    if len(days) and len(months):
        both = [_placed(name, group.iloc[0], source) for group in (days, months)]
        raise DataError(
            f"column {name!r} must have dates in one order; got {both[0]}, with the day first, and {both[1]}, with the "
            "month first; write them as yyyy-mm-dd"
        )
    if len(days) or len(months):
        return bool(len(days)), []
    found = f"column {name!r} has dates such as {texts[first.index[0]]!r}, of which the day or the month may come first"
    if texts[first.index].str.fullmatch(_DOTTED).all():
        advice = Parameter("day_first", False, "; to read the month first: {}")
        return True, [Message(found, ": the day is taken to be first, as it is usual with dots", advice)]
    choices = Parameter("day_first", True), " or ", Parameter("day_first", False)
    raise DataError(Message(found, "; say which: ", *choices, ", or write them as yyyy-mm-dd"))


def parse_dates(name: str, column: Any, day_first: bool | None, source: TableSource | None = None) -> Any:
    """Return a column as dates without a time zone.

    Values that begin with the year are read as year, month and day, whatever the order of the others is.

    Parameters
    ----------
    name : str
        Name of the column.
    column : Series
        Text, dates, or objects that are dates.
    day_first : bool or None
        Whether the day comes before the month in dates that end with the year; None if such dates are not expected.
    source : TableSource or None, default=None
        The table, which knows the lines of values.

    Returns
    -------
    Series of datetime64
        Dates.

    Raises
    ------
    DataError
        If a value is not a date, or contradicts the order.
    """
    if column.dtype.kind == "M":
        dates = column
    else:
        known = column.dropna().drop_duplicates()
        if len(known) and known.dtype.kind == "f":
            raise DataError(f"column {name!r} must contain dates; got the number {known.iloc[0]}")
        if len(known) and not isinstance(known.iloc[0], str):
            dates = _from_objects(name, column)
        else:
            _check_order(name, known, day_first, source)
            found = _parsed(known, bool(day_first)).set_axis(known)
            dates = found.reindex(column).set_axis(column.index)
            odd = column[dates.isna() & column.notna()]
            if len(odd):
                raise _no_date(name, odd.iloc[0], source)
    return dates.dt.tz_localize(None) if dates.dt.tz is not None else dates


def _check_order(name: str, texts: Any, day_first: bool | None, source: TableSource | None) -> None:
    """Raise DataError if a date that ends with the year has another order, or if their order is not known."""
    fields = texts.str.extract(f"^(?:{YEAR_LAST})$").dropna(subset=[0])
    if fields.empty:
        return
    if day_first is None:
        got = _placed(name, texts[fields.index[0]], source)
        choices = Parameter("day_first", True), " or ", Parameter("day_first", False)
        needed = f"column {name!r} must have dates that begin with the year, as in the training table; got {got}"
        raise DataError(Message(needed, "; write them as yyyy-mm-dd, or say which part is first: ", *choices))
    month = fields[1 if day_first else 0].astype(int)
    against = texts[month.index[month > 12]]
    # A value such as 45/13/2024 is no date in either order.
    against = against[fields.loc[against.index, 0 if day_first else 1].astype(int) <= 12]
    if len(against):
        order = ("day", "month") if day_first else ("month", "day")
        got = _placed(name, against.iloc[0], source)
        found = f"column {name!r} must have dates with the {order[0]} first; got {got}, with the {order[1]} first"
        advice = Parameter("day_first", not day_first, "; if all dates of this table are written so: {}")
        raise DataError(Message(found, "; write them as yyyy-mm-dd", advice))


def _parsed(texts: Any, day_first: bool) -> Any:
    """Return dates in UTC, and NaT for what is not a date."""
    import pandas as pd

    iso = texts.where(texts.str.fullmatch(COMPACT))
    for pattern, order in ((YEAR_LAST, (2, 1, 0) if day_first else (2, 0, 1)), (YEAR_FIRST, (0, 1, 2))):
        fields = texts.str.extract(f"^(?:{pattern})$").dropna(subset=[0])
        year, month, day = (fields[place] for place in order)
        time = fields[3].str.replace(r"^([ T])(\d):", r"\g<1>0\2:", regex=True)
        time = time.str.replace(r" ([Z+-])", r"\1", regex=True)
        iso.loc[fields.index] = year + "-" + month.str.zfill(2) + "-" + day.str.zfill(2) + time
    dates = pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=True)
    named = texts[iso.isna()]
    named = named[[NAMED.fullmatch(text) is not None for text in named]]
    if len(named):
        dates.loc[named.index] = pd.to_datetime(named, format="mixed", errors="coerce", utc=True)
    return dates


def _no_date(name: str, value: str, source: TableSource | None) -> DataError:
    advice = Parameter("na", [value], "; to read it as a missing value: {}")
    if SHORT_YEAR.fullmatch(value):
        got = _placed(name, value, source)
        return DataError(f"column {name!r} must have dates with years of four digits; got {got}")
    return DataError(Message(f"column {name!r} must contain dates; got {_placed(name, value, source)}", advice))


def _placed(name: str, value: str, source: TableSource | None) -> str:
    """Return a value with its place in the table, if it is known."""
    places = {} if source is None else source.places(name, [value])
    return f"{value!r} in {places[value]}" if value in places else repr(value)


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
