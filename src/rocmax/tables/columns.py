"""Columns of a table: the kind of each, dates, identifiers, values that are no numbers, and whether a model uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._support import Array, Index, Message, Parameter
from rocmax._validation import LARGEST
from rocmax.data import DataError
from rocmax.data.read import TableSource, parsed_numbers
from rocmax.forward import check_times
from rocmax.tables.options import Columns
from rocmax.tables.preprocess import merged_forms

# Columns that identify rows, which a model must neither use nor store.


@dataclass(frozen=True)
class PlanRules:
    """From where on a column identifies rows, or is one of numbers, as on the tables of test_column_plan_real.py."""

    # Number of rows from which a column can be recognized as an identifier, and the fewest different values of one.
    min_rows: int = 30
    min_levels: int = 20
    # Share of distinct values from which text identifies rows, and the same for integers.
    many_texts: float = 0.5
    many_numbers: float = 0.9
    # Expected number of repeated values from which their absence shows that numbers were issued one by one.
    expected_repeats: int = 10
    # Numbers issued in a sequence are large and close to each other.
    large: int = 100_000
    narrow: float = 0.1
    # Mean number of rows for each value up to which an identifier of several rows, such as a customer, has few each.
    few_each: int = 50
    # Share of numbers from which a column is one of numbers with other values, and of dates for one of dates.
    almost_all: float = 0.95


RULES = PlanRules()
# Columns that a message names.
MAX_NAMED = 5
NAMED_ID = re.compile(r"(?i:(^|[\W_])(id|uuid|guid|key|index)$|^unnamed: 0$|^$)|[a-z]I[Dd]$")
# Names of columns that identify what several rows belong to. An index, such as that of prices, may be a quantity.
_SUBJECT = (
    "(account|acct|card|client|cust|customer|device|employee|household|member|merchant|patient|person|policy|student|"
    "subject|supplier|user|vendor)"
)
_NUMBERED = r"[\W_]*(id|uuid|guid|key|no|nr|num|number|code|ref)"
REPEATED_ID = re.compile(rf"(?i:(^|[\W_])(id|uuid|guid)$|^{_SUBJECT}({_NUMBERED})?$)|[a-z]I[Dd]$")
REPEATED_TEXT_ID = re.compile(rf"(?i:(^|[\W_]){_SUBJECT}{_NUMBERED}$)")


def identifying_text(n_values: int, levels: int) -> str | None:
    """Return why a column of text identifies rows, or None if it does not."""
    if levels > max(RULES.min_levels, RULES.many_texts * n_values):
        return f"{levels:,} different values in {n_values:,} rows"
    return None


def identifying_numbers(name: str, values: Array) -> str | None:
    """Return why a column of numbers identifies rows, as row numbers and issued numbers do, or None if it does not.

    - Each value is the one before plus 1.
    - All values have more than 15 digits.
    - No value is repeated, although independent draws from the same range would give repeated values.
    - Nearly all values are distinct, and they are large and close to each other, or the name is that of an identifier.
    """
    known = values[~np.isnan(values)]
    if known.size < RULES.min_rows or not np.isfinite(known[:2]).all() or not np.all(known == np.floor(known)):
        return None
    if known.size == values.size and abs(known[1] - known[0]) == 1 and np.all(np.diff(known) == known[1] - known[0]):
        return "row numbers"
    if np.abs(known).min() >= 2.0**53:  # larger integers are not exact as floating-point numbers
        return "integers of more than 15 digits"
    levels = np.unique(known).size
    if levels < RULES.many_numbers * known.size:
        return None
    spread = float(known.max() - known.min() + 1)
    if levels == known.size and known.size**2 / (2 * spread) >= RULES.expected_repeats:
        return f"{levels:,} integers without a repeated value, as numbers that were issued one by one"
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    if known.min() >= RULES.large and high - low <= RULES.narrow * middle:
        return f"{levels:,} different integers in {known.size:,} rows, close to each other"
    if NAMED_ID.search(name):
        return f"{levels:,} different integers in {known.size:,} rows, and the name of an identifier"
    return None


def repeated_identifier(name: str, n_values: int, levels: int, is_text: bool) -> str | None:
    """Return why a column identifies what several rows belong to, such as a customer, or None if it does not.

    The name is that of an identifier, and many values have few rows each. Text needs the name of a person or thing: it
    is never used as a quantity, and the identifier of a city is a fair category.
    """
    named = (REPEATED_TEXT_ID if is_text else REPEATED_ID).search(name)
    if n_values < RULES.min_rows or levels < RULES.min_levels or n_values > RULES.few_each * levels or not named:
        return None
    return f"{levels:,} different values, {n_values / levels:.2g} rows each, and the name of an identifier"


def is_free_text(column: Any) -> bool:
    """Return whether values are sentences rather than identifiers."""
    return bool(column.dropna().head(1000).str.count(r"\s+").mean() >= 5)


# Values in columns of numbers that are not numbers, and what to do about them.


# Texts that often stand for a missing value.
_SIGNS = ("?", "-", "--", "---", ".", "..", "*", "#n/a", "#na", "(null)", "#value!")
_WORDS = ("n/a", "na", "n.a.", "nan", "none", "null", "nil", "missing", "unknown")
MARKS = frozenset((*_SIGNS, *_WORDS))
_SIGNED = r"^[+-]?"
PERCENT = _SIGNED + r"\d+([.,]\d+)?\s*%$"
DECIMAL_COMMA = _SIGNED + r"\d+,\d+$"
GROUPED_DIGITS = _SIGNED + r"\d{1,3}([,. '’_]\d{3})+([.,]\d+)?$"
# Numbers in another form.
OTHER = f"({PERCENT})|({DECIMAL_COMMA})|({GROUPED_DIGITS})"


class MixedColumn(NamedTuple):
    """Column of numbers with other values: the number of each, most frequent first."""

    name: str
    n_values: int
    counts: dict[str, int]


class ParsedColumn(NamedTuple):
    """Text of a column of numbers: the numbers, and the counts of its other values."""

    numbers: Array
    others: dict[str, int]


def parsed_column(column: Any, source: TableSource, declared: bool) -> ParsedColumn | None:
    """Return the numbers of a column of text, or None if it is not one of numbers and not ``declared`` as one."""
    import pyarrow as pa

    # Each distinct value is parsed once.
    text = pa.array(column, pa.large_string(), from_pandas=True)
    text = (text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text).dictionary_encode()
    sizes = np.bincount(text.indices.drop_null().to_numpy(), minlength=len(text.dictionary))
    numbers, odd = parsed_numbers(text.dictionary, source.reading)
    values = zip(text.dictionary.to_pylist(), odd.to_pylist(), sizes.tolist(), strict=True)
    others = {value: n for value, is_odd, n in values if is_odd or (not declared and re.match(PERCENT, value))}
    others = dict(sorted(others.items(), key=lambda entry: -entry[1]))
    if not declared:
        marks = sum(n for value, n in others.items() if value.lower() in MARKS)
        n_values, in_another_form = int(sizes.sum()), sum(n for value, n in others.items() if re.match(OTHER, value))
        n_numbers = n_values - sum(others.values()) + in_another_form
        if n_numbers < 2 or n_numbers + marks < RULES.almost_all * n_values:
            return None
    return ParsedColumn(numbers.take(text.indices).to_numpy(zero_copy_only=False), others)


def check_sizes(X: Any, source: TableSource | None) -> None:
    """Raise DataError about an infinite number, or one too large to compute with, that names its column and line."""
    for name, column in X.items():
        if column.dtype.kind != "f":
            continue
        values = column.to_numpy()
        bad = values[np.abs(values) > LARGEST]
        if bad.size:
            decimal = (source and source.reading.decimal) or "."
            found = None if source is None else source.find(name, partial(_is_huge, decimal=decimal))
            place, value = found or ("the table" if source is None else source.name, str(bad[0]))
            needed = f"column {name!r} must have numbers from -{LARGEST:g} to {LARGEST:g}; got {value}"
            raise DataError(f"{place}: {needed}; to read it as missing: ", Parameter("na", [value]))


def _is_huge(text: str, decimal: str) -> bool:
    try:
        return abs(float(text.replace(decimal, ".").removesuffix("%"))) > LARGEST
    except ValueError:
        return False


def refuse_mixed(source: TableSource, columns: list[MixedColumn]) -> None:
    """Raise DataError about columns of numbers with other values; the message says where they are and what to pass."""
    if not columns:
        return
    parts: list[str | Parameter] = [f"{source.name} has columns of numbers with other values:"]
    for column in columns[:MAX_NAMED]:
        parts += ["\n", *_described(source, column)]
    if len(columns) > MAX_NAMED:
        parts.append(f"\n{len(columns) - MAX_NAMED} more columns have such values")
    names = [column.name for column in columns[:MAX_NAMED]]
    parts += [
        "\nTo use them as categories: ",
        Parameter("text", names),
        "; to leave them out: ",
        Parameter("drop", names),
    ]
    raise DataError(*parts)


def _described(source: TableSource, column: MixedColumn) -> list[str | Parameter]:
    first = list(column.counts)[:3]
    # The message begins with the name of the table, so that of a single file is not repeated.
    places = {value: at.removeprefix(f"{source.name}, ") for value, at in source.places(column.name, first).items()}
    found = [
        f"{value!r} in {column.counts[value]:,} row{'s' if column.counts[value] > 1 else ''}"
        + (f" (first in {places[value]})" if value in places else "")
        for value in first
    ]
    more = f" and {len(column.counts) - 3} other values" if len(column.counts) > 3 else ""
    n_numbers = column.n_values - sum(column.counts.values())
    text = f"{column.name!r}: {n_numbers:,} numbers, and {', '.join(found)}{more}; "
    return [text, *_advice(source, column)]


def _advice(source: TableSource, column: MixedColumn) -> list[str | Parameter]:
    values = list(column.counts)
    if all(re.match(PERCENT, value) for value in values):
        return ["to read per cent: ", Parameter("number", [column.name])]
    grouped = [value for value in values if re.match(GROUPED_DIGITS, value)]
    if len(grouped) == len(values):
        separator = next(mark for mark in re.findall(r"\D", values[0].lstrip("+-")))
        decimal = {",": ".", ".": ","}.get(separator, source.reading.decimal)
        more = [Parameter("decimal", decimal, " {}")] if decimal != source.reading.decimal else []
        return ["to read thousands: ", Parameter("thousands", separator), *more]
    if source.reading.decimal == "." and all(re.match(DECIMAL_COMMA, value) for value in values):
        return ["to read a decimal comma: ", Parameter("decimal", ",")]
    if len(values) > 10:
        return ["correct them in the table"]
    return ["to read them as missing: ", Parameter("na", values)]


# Columns of dates: how they are written, and the numbers that a model uses.


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


def find_order(
    name: str, texts: Any, given: bool | None, source: TableSource | None = None
) -> tuple[bool | None, list[str]]:
    """Return whether the day comes before the month in a column, decided from all its values, and notes.

    It is None if no value has the year at its end, so that the order does not matter.
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
    raise DataError(found, "; say which: ", *choices, ", or write them as yyyy-mm-dd")


def parse_dates(name: str, column: Any, day_first: bool | None, source: TableSource | None = None) -> Any:
    """Return a column as dates without a time zone.

    Values that begin with the year are read as year, month and day, whatever the order of the others is.
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
        raise DataError(needed, "; write them as yyyy-mm-dd, or say which part is first: ", *choices)
    month = fields[1 if day_first else 0].astype(int)
    against = texts[month.index[month > 12]]
    # A value such as 45/13/2024 is no date in either order.
    against = against[fields.loc[against.index, 0 if day_first else 1].astype(int) <= 12]
    if len(against):
        order = ("day", "month") if day_first else ("month", "day")
        got = _placed(name, against.iloc[0], source)
        found = f"column {name!r} must have dates with the {order[0]} first; got {got}, with the {order[1]} first"
        advice = Parameter("day_first", not day_first, "; if all dates of this table are written so: {}")
        raise DataError(found, "; write them as yyyy-mm-dd", advice)


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
    return DataError(f"column {name!r} must contain dates; got {_placed(name, value, source)}", advice)


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


def read_times(column: Any, day_first: bool | None, source: TableSource) -> tuple[NDArray[Any], bool | None, list[str]]:
    """Return the time of each row, a number or a date; the order of dates, and notes.

    Raise DataError for a value that is missing, or that is neither.
    """
    import pandas as pd

    name = str(column.name)
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(
            f"{source.name}: column {name!r} must have a time in each row; got {missing.size} of {column.size} rows "
            f"without one (the first is row {missing[0] + 1} after the header); fill them in or remove these rows"
        )
    notes: list[str] = []
    if column.dtype.kind not in "fM" and isinstance(column.iloc[0], str):
        found = parsed_column(column, source, False)
        if found is None:
            day_first, notes = find_order(name, column, day_first, source)
        elif found.others:
            first = next(iter(found.others))
            raise DataError(f"column {name!r} must have a time in each row; got {_placed(name, first, source)}")
        else:
            column = pd.Series(found.numbers)
    if column.dtype.kind == "M" and column.dt.tz is not None:
        column = column.dt.tz_convert("UTC")
    times = column if column.dtype.kind == "f" else parse_dates(name, column, day_first, source)
    try:
        return check_times(times.to_numpy(), f"column {name!r}"), day_first, notes
    except ValueError as error:
        raise DataError(f"{source.name}: {error}") from None


def date_features(name: str, dates: Any, reference: Any) -> dict[str, Any]:
    """Return the numbers of a column of dates; the age in days is that at ``reference``, and Monday is weekday 0."""
    of = dates.dt
    parts = (of.year, of.month, of.day_of_week, of.hour, (reference - dates) / np.timedelta64(1, "D"))
    return {
        f"{name} {part}": values.to_numpy(dtype=np.float64, na_value=np.nan)
        for part, values in zip(PARTS, parts, strict=True)
    }


# Plan of the columns of a table: the kind of each, and whether a model uses it.


DROPPED = "dropped"
CARRIED = "carried to the output"
GROUPED = "rows of one group are never split"
TIMED = "rows are split forward in time"
TIMES = "times of day"


@dataclass(frozen=True)
class Column:
    """Column of a table in the plan of a fit.

    Attributes
    ----------
    name : str
        Name.
    kind : str
        "number", "category", "date", "identifier", "text" (free text), "group", "time", or "not read" for a dropped
        column.
    missing : int or None
        Number of missing values; None for a column that is not read.
    levels : int or None
        Number of different values of a column of text, or of one that identifies what several rows belong to; None for
        others.
    used : bool
        Whether the model uses the column.
    reason : str
        Why it is left out; otherwise empty, or a remark.
    """

    name: str
    kind: str
    missing: int | None
    levels: int | None
    used: bool
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as plain values, for example for JSON."""
        return {**asdict(self), "reason": str(self.reason)}


class Planned(NamedTuple):
    """Plan of the columns that were read, with their values: numbers, text or dates."""

    columns: list[Column]
    values: dict[str, Any]
    parsed: list[str]


def plan_values(X: Any, source: TableSource, declared: Columns, codes: Sequence[str]) -> Planned:
    """Return the plan of the columns of a frame; raise DataError about columns of numbers with other values.

    ``codes`` are columns of integers that are written with leading zeros.
    """
    plan: list[Column] = []
    values: dict[str, Any] = {}
    parsed: list[str] = []
    mixed: list[MixedColumn] = []
    for name in X.columns:
        column = X[name]
        is_number, is_date = name in declared.number, name in declared.date
        if column.dtype.kind == "f" and not (is_date and column.notna().any()):
            plan.append(_number(name, column.to_numpy(), is_number))
        elif column.dtype.kind == "M" or not _holds_text(column) or is_date:
            plan.append(_date(name, column, is_date))
        elif name in declared.text or name in codes or (found := parsed_column(column, source, is_number)) is None:
            column = merged_forms(column)
            plan.append(_text(name, column, name in declared.text, name in codes))
        else:
            if found.others:
                mixed.append(MixedColumn(name, int(column.notna().sum()), found.others))
            column = found.numbers
            plan.append(_number(name, column, is_number))
            parsed.append(name)
        values[name] = column
    refuse_mixed(source, mixed)
    return Planned(plan, values, parsed)


def not_read(declared: Columns) -> Iterator[Column]:
    """Yield the columns that are not features."""
    for name in declared.drop:
        if name not in (declared.group, declared.time):
            yield Column(name, "not read", None, None, False, DROPPED)
    for name in declared.id:
        if name not in (declared.group, declared.time):
            yield Column(name, "identifier", None, None, False, CARRIED)
    if declared.group is not None:
        yield Column(declared.group, "group", 0, None, False, GROUPED)
    if declared.time is not None and declared.time not in declared.date:
        yield Column(declared.time, "time", 0, None, False, TIMED)


def plan_notes(plan: Sequence[Column]) -> list[str]:
    """Return a note for each column that is left out without a wish of the user."""
    flags = {"identifier": "text", "text": "text", "date": "date"}
    notes: list[str] = []
    for column in plan:
        if column.used or column.reason in (DROPPED, CARRIED, GROUPED, TIMED):
            continue
        number = column.kind == "identifier" and column.levels is None
        flag = "number" if number else flags.get(column.kind)
        advice: list[str | Parameter] = []
        if flag is not None and column.reason != TIMES:
            advice = ["; to use it: ", Parameter(flag, [column.name])]
        reason = column.reason.parts if isinstance(column.reason, Message) else (column.reason,)
        notes.append(Message(f"{column.name!r} is left out ({column.kind}): ", *reason, *advice))
    return notes


class Dated(NamedTuple):
    """Column of dates as it was read, and the order of day and month if it is given."""

    values: Any
    day_first: bool | None

    def times(self) -> tuple[NDArray[Any], Index]:
        """Return the dates that are known, and their rows; raise DataError if they cannot be read."""
        rows = np.flatnonzero(self.values.notna())
        name, known = str(self.values.name), self.values.iloc[rows]
        order = find_order(name, known, self.day_first)[0] if isinstance(known.iloc[0], str) else self.day_first
        return check_times(parse_dates(name, known, order).to_numpy()), rows


def most_dated(planned: Planned, day_first: bool | None) -> Dated | None:
    """Return the column of dates with the fewest missing values, of those that differ between rows."""
    dates = [planned.values[each.name] for each in planned.columns if each.kind == "date" and each.reason != TIMES]
    varied = [values for values in dates if values.nunique() > 1]
    return Dated(max(varied, key=lambda values: values.count()), day_first) if varied else None


def date_notes(dated: Dated | None, measured: str = "") -> list[str]:
    """Return a note about a random split of rows that have dates, with what was measured about it."""
    if dated is None:
        return []
    found = f"the split is random, although {dated.values.name!r} has dates, so that results on later rows may be worse"
    return [Message(f"{found}{measured}; to hold out the latest rows: ", Parameter("time", str(dated.values.name)))]


def marked_categories(X: Any, plan: Sequence[Column]) -> list[str]:
    """Return a note about categories that look like marks for missing values."""
    found: dict[str, list[str]] = {}
    for column in plan:
        if column.used and column.kind == "category":
            for level in X[column.name].dropna().unique():
                if level.lower() in MARKS and not level[0].isalpha():
                    found.setdefault(level, []).append(column.name)
    return [
        Message(
            f"{level!r} is used as a category of {', '.join(map(repr, names))}; to read it as missing: ",
            Parameter("na", [level]),
        )
        for level, names in found.items()
    ]


def _holds_text(column: Any) -> bool:
    known = column.dropna()
    return bool(known.empty or isinstance(known.iloc[0], str))


def _number(name: str, values: Any, declared: bool) -> Column:
    missing = int(np.count_nonzero(np.isnan(values)))
    if missing == values.size:
        return Column(name, "number", missing, None, False, "no values")
    if not declared:
        if np.nanmin(values) == np.nanmax(values):
            return Column(name, "number", missing, None, False, "one value only")
        reason = identifying_numbers(name, values)
        if reason is not None:
            return Column(name, "identifier", missing, None, False, reason)
        known = values[~np.isnan(values)]
        if np.all(known == np.floor(known)):
            levels = np.unique(known).size
            reason = repeated_identifier(name, known.size, levels, is_text=False)
            if reason is not None:
                return Column(name, "identifier", missing, levels, False, _with_group(name, reason))
    return Column(name, "number", missing, None, True)


def _with_group(name: str, reason: str) -> Message:
    return Message(f"{reason}; to keep the rows of a value together: ", Parameter("group", name))


def _text(name: str, column: Any, declared: bool, is_code: bool) -> Column:
    counts = column.value_counts()
    levels, n_values = counts.size, int(counts.sum())
    missing = column.size - n_values
    if n_values == 0:
        return Column(name, "category", missing, levels, False, "no values")
    if declared:
        return Column(name, "category", missing, levels, True)
    if levels == 1 and missing == 0:
        return Column(name, "category", missing, levels, False, "one value only")
    reason = identifying_text(n_values, levels)
    if counts[date_like(counts.index)].sum() >= RULES.almost_all * n_values:
        return _date(name, column, False)
    if reason is not None:
        return Column(name, "text" if is_free_text(column) else "identifier", missing, levels, False, reason)
    reason = repeated_identifier(name, n_values, levels, is_text=True)
    if reason is not None:
        return Column(name, "identifier", missing, levels, False, _with_group(name, reason))
    return Column(name, "category", missing, levels, True, "codes with leading zeros" if is_code else "")


def _date(name: str, column: Any, declared: bool) -> Column:
    missing = int(column.isna().sum())
    known = column.dropna()
    plain = column.dtype.kind in "Mf" or known.empty
    if not plain and not isinstance(known.iloc[0], str) and not hasattr(known.iloc[0], "year"):
        return Column(name, "date", missing, None, False, TIMES)
    return Column(name, "date", missing, None, declared, "" if declared else "dates are used only if they are declared")
