"""Values of text columns: spaces, marks for missing values, and numbers with other signs than those of Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rocmax.data._files import arrow
from rocmax.data._text_options import MISSING, TextOptions

# Text that is missing in files of text.
MISSING_TEXT = tuple(dict.fromkeys(mark.strip() for mark in MISSING))

EXPONENT = r"([eE][+-]?\d+)?$"


def trimmed(column: Any, options: TextOptions, file_format: str = "frame") -> Any:
    """Return a column of strings without spaces around the values; empty values and marks are missing."""
    import pyarrow.compute as pc

    pa = arrow()
    text = pc.utf8_trim_whitespace(column)
    # A parquet file or a data frame has missing values of its own, and "NA" is a country there.
    usual = MISSING_TEXT if file_format in ("csv", "tsv", "xlsx") else ("",)
    marks = pa.array([*usual, *(mark for mark in options.na if mark)], type=text.type)
    return pc.if_else(pc.is_in(text, value_set=marks), pa.scalar(None, text.type), text)


def marked_numbers(marks: Sequence[str]) -> list[float]:
    """Return the numbers among the marks for missing values."""
    found = []
    for mark in marks:
        with suppress(ValueError):
            found.append(float(mark))
    return [*found, -0.0] if 0.0 in found else found  # two zeros for Arrow, one for everybody else


def parsed_numbers(column: Any, options: TextOptions) -> tuple[Any, Any]:
    """Return the numbers in a column of trimmed strings, and whether each value is something else.

    A per cent sign after a number is ignored, as is the thousands separator between groups of three digits, or of two
    before the last group, as in India. Where else a separator is, as in the date 14.08.2024, there is no number.
    """
    import pyarrow.compute as pc

    pa = arrow()
    text = pc.replace_substring_regex(column, r"\s*%$", "")
    point = re.escape(options.decimal)
    if options.thousands is not None:
        mark = re.escape(options.thousands)
        pattern = rf"^[+-]?\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}}({point}\d*)?{EXPONENT}"
        grouped = pc.match_substring_regex(text, pattern)
        text = pc.if_else(grouped, pc.replace_substring(text, options.thousands, ""), text)
    number = pc.match_substring_regex(text, rf"^[+-]?(\d+{point}?\d*|{point}\d+){EXPONENT}")
    if options.decimal == ",":
        text = pc.replace_substring(text, ",", ".")
    odd = pc.fill_null(pc.invert(number), False)
    return pc.if_else(number, text, pa.scalar(None, text.type)).cast(pa.float64()), odd
