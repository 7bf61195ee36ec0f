"""Values in columns of numbers that are not numbers, and what to do about them."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rocmax._messages import Message, Parameter
from rocmax._validate import LARGEST
from rocmax.data import DataError, TableSource
from rocmax.data.values import parsed_numbers

# Texts that often stand for a missing value.
_SIGNS = ("?", "-", "--", "---", ".", "..", "*", "#n/a", "#na", "(null)", "#value!")
_WORDS = ("n/a", "na", "n.a.", "nan", "none", "null", "nil", "missing", "unknown")
MARKS = frozenset((*_SIGNS, *_WORDS))
# Share of numbers from which a column is one of numbers, and its other values are odd.
ALMOST_ALL = 0.95
_SIGNED = r"^[+-]?"
PERCENT = _SIGNED + r"\d+([.,]\d+)?\s*%$"
DECIMAL_COMMA = _SIGNED + r"\d+,\d+$"
GROUPED = _SIGNED + r"\d{1,3}([,. '’_]\d{3})+([.,]\d+)?$"
MAX_NAMED = 5


class OddColumn(NamedTuple):
    """Column of numbers with other values: the number of each, most frequent first."""

    name: str
    n_values: int
    counts: dict[str, int]


class Look(NamedTuple):
    """What the text of a column is: its numbers if it is a column of numbers, and the counts of its odd values."""

    numbers: Any
    odd: dict[str, int]


def look(column: Any, source: TableSource, declared: bool) -> Look | None:
    """Return the numbers of a column of text, or None if it is not a column of numbers.

    Parameters
    ----------
    column : Series of str
        Values.
    source : TableSource
        The table, which knows how numbers are written.
    declared : bool
        Whether the user says that it is a column of numbers.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.chunked_array([pa.array(column, pa.large_string(), from_pandas=True)])
    n_values = len(text) - text.null_count
    numbers, odd = parsed_numbers(text, source.text)
    if not declared:
        odd = pc.or_(odd, pc.fill_null(pc.match_substring_regex(text, PERCENT), False))
    counts = _counts(text.filter(odd))
    if declared:
        return Look(numbers, counts)
    n_odd = sum(counts.values())
    in_another_form = _matching(text, odd, f"({PERCENT})|({DECIMAL_COMMA})|({GROUPED})")
    marks = sum(count for value, count in counts.items() if value.lower() in MARKS)
    n_numbers = n_values - n_odd + in_another_form
    if n_numbers < 2 or n_numbers + marks < ALMOST_ALL * n_values:
        return None
    return Look(numbers, counts)


def check_sizes(X: Any, source: TableSource | None) -> None:
    """Raise DataError about an infinite number, or one too large to compute with, that names its column and line."""
    for name, column in X.items():
        if column.dtype.kind != "f":
            continue
        values = column.to_numpy()
        bad = values[np.abs(values) > LARGEST]
        if bad.size:
            decimal = "." if source is None else source.text.decimal
            found = None if source is None else source.find(name, partial(_is_huge, decimal=decimal))
            place, value = found or ("the table" if source is None else source.name, str(bad[0]))
            needed = f"column {name!r} must have numbers from -{LARGEST:g} to {LARGEST:g}; got {value}"
            raise DataError(Message(f"{place}: {needed}; to read it as missing: ", Parameter("na", [value])))


def _is_huge(text: str, decimal: str) -> bool:
    try:
        return abs(float(text.replace(decimal, ".").removesuffix("%"))) > LARGEST
    except ValueError:
        return False


def _matching(text: Any, among: Any, pattern: str) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(pc.match_substring_regex(text.filter(among), pattern)).as_py() or 0)


def _counts(values: Any) -> dict[str, int]:
    found = {entry["values"]: entry["counts"] for entry in values.value_counts().to_pylist()}
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def raise_odd(source: TableSource, columns: list[OddColumn]) -> None:
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
    raise DataError(Message(*parts))


def _described(source: TableSource, column: OddColumn) -> list[str | Parameter]:
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


def _advice(source: TableSource, column: OddColumn) -> list[str | Parameter]:
    values = list(column.counts)
    if all(re.match(PERCENT, value) for value in values):
        return ["to read per cent: ", Parameter("number", [column.name])]
    grouped = [value for value in values if re.match(GROUPED, value)]
    if len(grouped) == len(values):
        separator = next(mark for mark in re.findall(r"\D", values[0].lstrip("+-")))
        decimal = {",": ".", ".": ","}.get(separator, source.text.decimal)
        more = [Parameter("decimal", decimal, " {}")] if decimal != source.text.decimal else []
        return ["to read thousands: ", Parameter("thousands", separator), *more]
    if source.text.decimal == "." and all(re.match(DECIMAL_COMMA, value) for value in values):
        return ["to read a decimal comma: ", Parameter("decimal", ",")]
    if len(values) > 10:
        return ["correct them in the table"]
    return ["to read them as missing: ", Parameter("na", values)]
