"""Conversion of Arrow tables to features and labels of the types of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._messages import Message, Parameter
from rocmax.data._files import arrow
from rocmax.data._text_options import TextOptions
from rocmax.data.errors import DataError
from rocmax.data.values import marked_numbers, parsed_numbers, trimmed

# "parsed" are numbers that are read as text first; "raw" columns are not converted.
Kind = Literal["number", "text", "date", "parsed", "raw"]


class Table(NamedTuple):
    """Features, as a pandas DataFrame or a CSR matrix, and labels, which are None without a target."""

    X: Any
    y: NDArray[Any] | None


def as_table(
    source: Any, table: Any, target: str | None, types: Mapping[str, Kind], skip_unlabelled: bool = False
) -> Table:
    """Split an Arrow table into features, of the types of this module, and labels."""
    pa, labels = arrow(), None
    try:
        if target is not None:
            if skip_unlabelled:
                table = table.filter(_labelled_rows(table[target], source))
            labels = _labels(source, table[target], target)
            table = table.drop_columns([target])
        columns = zip(table.column_names, table.columns, strict=True)
        plain = [_plain(source, column, name, types.get(name)) for name, column in columns]
        frame = pa.table(plain, names=table.column_names).to_pandas()
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise DataError(f"{source.path} is damaged or has values out of range: {error}") from error
    for name in (name for name, kind in types.items() if kind == "raw" and name in frame.columns):
        frame[name] = _unconverted(table[name])
    return Table(frame, labels)


def _unconverted(column: Any) -> Any:
    """Return a column of pandas that keeps the values of an Arrow column, such as whole numbers with missing ones."""
    import pandas as pd

    return pd.Series(pd.arrays.ArrowExtensionArray(column))


def _labelled_rows(column: Any, source: Any) -> Any:
    import pyarrow.compute as pc

    if is_text(column.type):
        column = trimmed(column, source.text, source.format)
    return pc.invert(pc.is_null(column, nan_is_null=True))


def _labels(source: Any, column: Any, target: str) -> NDArray[Any]:
    if is_text(column.type):
        column = trimmed(column, source.text, source.format)
    labels = column.to_pandas().to_numpy()
    lacking = int(np.count_nonzero(np.isnan(labels))) if labels.dtype.kind == "f" else column.null_count
    if lacking:
        found = f"{source.path} must have a label in each row; got {lacking} missing in column {target!r}"
        raise DataError(Message(found, Parameter("skip_unlabelled", True, "; to leave these rows out: {}")))
    result: NDArray[Any] = labels
    return result


def labelled(source: Any, X: Any, y: NDArray[Any], skip_unlabelled: bool = False) -> Table:
    """Return the rows of an svmlight file; raise DataError for labels that are NaN unless they are left out."""
    lacking = np.isnan(y)
    if lacking.any() and skip_unlabelled:
        X, y = X[~lacking], y[~lacking]
    elif lacking.any():
        found = f"{source.path} must have a label in each row; got {np.count_nonzero(lacking)} that are not numbers"
        raise DataError(Message(found, Parameter("skip_unlabelled", True, "; to leave these rows out: {}")))
    return Table(X, y)


def _plain(source: Any, column: Any, name: str, declared: Kind | None) -> Any:
    """Cast a column to float64 or string; dates, and columns declared as raw, are not changed."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if declared == "raw" or (pa.types.is_temporal(kind) and declared in (None, "date")):
        return column
    if kind == pa.float64() and declared != "text":
        return _without_marks(column, source.text)
    if not (is_text(kind) or _is_number(kind) or pa.types.is_temporal(kind)):
        raise DataError(f"{source.path}: column {name!r} must contain numbers, text or dates; got {kind}")
    if is_text(kind) and declared in ("parsed", "number"):
        return _parsed(source, column, name)
    wanted = "number" if declared == "parsed" else declared or ("text" if is_text(kind) else "number")
    try:
        if wanted == "number":
            # Integers above 2**53 are rounded.
            return _without_marks(column.cast(pa.float64(), safe=False), source.text)
        return trimmed(column.cast(pa.string()), source.text, source.format)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{source.path}: column {name!r} must contain {wanted}s; got {kind} ({error})") from error


def _parsed(source: Any, column: Any, name: str) -> Any:
    """Return the numbers in a column of text, or truth values as 1 and 0; raise DataError for another value."""
    import pyarrow.compute as pc

    pa, text = arrow(), trimmed(column, source.text, source.format)
    word = pc.utf8_lower(text)
    if (
        len(text) > text.null_count
        and pc.all(pc.is_in(word.drop_null(), pa.array(["true", "false"], text.type))).as_py()
    ):
        return pc.equal(word, "true").cast(pa.float64())
    numbers, odd = parsed_numbers(text, source.text)
    others = text.filter(odd)
    if len(others):
        found = f"{source.path}: column {name!r} must contain numbers; got {others[0].as_py()!r} in {len(others)} row"
        advice = Parameter("na", others[0].as_py(), "; to read it as a missing value: {}")
        raise DataError(Message(f"{found}{'s' if len(others) > 1 else ''}", advice))
    return numbers


def _without_marks(column: Any, options: TextOptions) -> Any:
    """Return a column of numbers in which those that are marks for missing values are missing."""
    import pyarrow.compute as pc

    pa, marks = arrow(), marked_numbers(options.na)
    if not marks:
        return column
    return pc.if_else(pc.is_in(column, value_set=pa.array(marks, pa.float64())), pa.scalar(None, pa.float64()), column)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is one of strings."""
    of = arrow().types
    return bool(of.is_string(kind) or of.is_large_string(kind))


def _is_number(kind: Any) -> bool:
    of = arrow().types
    tests = of.is_integer, of.is_floating, of.is_boolean, of.is_null, of.is_decimal
    return any(test(kind) for test in tests)
