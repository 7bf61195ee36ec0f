"""Columns that identify rows, which a model must neither use nor store."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from rocmax._typing import Array

# Number of rows from which a column can be recognized as an identifier.
MIN_ROWS = 30
# Share of distinct values from which text identifies rows, and the same for whole numbers.
MANY_TEXTS, MANY_NUMBERS = 0.5, 0.9
MIN_LEVELS = 20
# Expected number of repeated values from which their absence shows that numbers were issued one by one.
EXPECTED_REPEATS = 10
# Numbers issued in a sequence are large and close to each other.
LARGE, NARROW = 100_000, 0.1
# Larger whole numbers are not exact as floating-point numbers.
EXACT = 2.0**53
NAMED_ID = re.compile(r"(?i:(^|[\W_])(id|uuid|guid|key|index)$|^unnamed: 0$|^$)|[a-z]I[Dd]$")
# Names of columns that identify what several rows belong to. An index, such as that of prices, may be a quantity.
_SUBJECT = (
    "(account|acct|card|client|cust|customer|device|employee|household|member|merchant|patient|person|policy|student|"
    "subject|supplier|user|vendor)"
)
_NUMBERED = r"[\W_]*(id|uuid|guid|key|no|nr|num|number|code|ref)"
REPEATED_ID = re.compile(rf"(?i:(^|[\W_])(id|uuid|guid)$|^{_SUBJECT}({_NUMBERED})?$)|[a-z]I[Dd]$")
REPEATED_TEXT_ID = re.compile(rf"(?i:(^|[\W_]){_SUBJECT}{_NUMBERED}$)")
# Mean number of rows for each value up to which such a column has few rows each.
FEW_EACH = 50


def identifying_text(n_values: int, levels: int) -> str | None:
    """Return why a column of text identifies rows, or None if it does not."""
    if levels > max(MIN_LEVELS, MANY_TEXTS * n_values):
        return f"{levels:,} different values in {n_values:,} rows"
    return None


def identifying_numbers(name: str, values: Array) -> str | None:
    """Return why a column of numbers identifies rows, as row numbers and issued numbers do, or None if it does not.

    - Each value is the one before plus 1.
    - All values have more than 15 digits.
    - No value is repeated, although independent draws from the same range would give repeated values.
    - Nearly all values are distinct, and they are large and close to each other, or the name is that of an identifier.

    Parameters
    ----------
    name : str
        Name of the column.
    values : ndarray of float
        Values.
    """
    known = values[~np.isnan(values)]
    if known.size < MIN_ROWS or not np.isfinite(known[:2]).all() or not np.all(known == np.floor(known)):
        return None
    if known.size == values.size and abs(known[1] - known[0]) == 1 and np.all(np.diff(known) == known[1] - known[0]):
        return "row numbers"
    if np.abs(known).min() >= EXACT:
        return "whole numbers of more than 15 digits"
    levels = np.unique(known).size
    if levels < MANY_NUMBERS * known.size:
        return None
    spread = float(known.max() - known.min() + 1)
    if levels == known.size and known.size**2 / (2 * spread) >= EXPECTED_REPEATS:
        return f"{levels:,} whole numbers without a repeated value, as numbers that were issued one by one"
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    if known.min() >= LARGE and high - low <= NARROW * middle:
        return f"{levels:,} different whole numbers in {known.size:,} rows, close to each other"
    if NAMED_ID.search(name):
        return f"{levels:,} different whole numbers in {known.size:,} rows, and the name of an identifier"
    return None


def repeated_identifier(name: str, n_values: int, levels: int, is_text: bool) -> str | None:
    """Return why a column identifies what several rows belong to, such as a customer, or None if it does not.

    The name is that of an identifier, and many values have few rows each. Text needs the name of a person or thing: it
    is never used as a quantity, and the identifier of a city is a fair category.

    Parameters
    ----------
    name : str
        Name of the column.
    n_values : int
        Number of rows with a value.
    levels : int
        Number of different values.
    is_text : bool
        Whether the values are text; otherwise, they are whole numbers.
    """
    named = (REPEATED_TEXT_ID if is_text else REPEATED_ID).search(name)
    if n_values < MIN_ROWS or levels < MIN_LEVELS or n_values > FEW_EACH * levels or not named:
        return None
    return f"{levels:,} different values, {n_values / levels:.2g} rows each, and the name of an identifier"


def is_free_text(column: Any) -> bool:
    """Return whether values are sentences rather than identifiers."""
    return bool(column.dropna().head(1000).str.count(r"\s+").mean() >= 5)
