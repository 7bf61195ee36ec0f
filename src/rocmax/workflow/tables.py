"""Reading of tables for training, or for a fitted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._messages import Message, Parameter
from rocmax._packages import need
from rocmax.data import DataError, TableSource
from rocmax.data.errors import check_columns
from rocmax.workflow.column_plan import (
    Column,
    Declared,
    check_declared,
    marked_categories,
    not_read,
    plan_notes,
    plan_values,
)
from rocmax.workflow.dates import date_features, day_first, parse_dates
from rocmax.workflow.target import Target, make_target


class Reading(NamedTuple):
    """How the values of a table are written, and how much of it may be read."""

    delimiter: str | None = None
    decimal: str = "."
    thousands: str | None = None
    na: str | Sequence[str] = ()
    encoding: str | None = None
    zero_based: bool = False
    max_bytes: int | None = None
    skip_unlabelled: bool = False

    def source(self, table: Any) -> TableSource:
        """Return the table."""
        return TableSource(
            table,
            delimiter=self.delimiter,
            decimal=self.decimal,
            thousands=self.thousands,
            na=self.na,
            encoding=self.encoding,
        )

    def facts(self) -> dict[str, Any]:
        """Return what later tables of a model have in common with this one."""
        marks = [self.na] if isinstance(self.na, str) else list(self.na)
        return {"decimal": self.decimal, "thousands": self.thousands, "na": marks, "encoding": self.encoding}


@dataclass(frozen=True)
class Training:
    """Features, labels and groups of a table, and what is needed to read other tables in the same way.

    ``kinds`` is the kind of each feature, or None for a sparse matrix; ``plan`` describes the columns of the table.
    ``parsed`` are columns of numbers that are read as text, ``dates`` columns of dates, and ``ids`` columns that are
    carried to the output. ``group`` is the column of the groups.
    """

    X: Any
    target: Target
    groups: NDArray[Any] | None = None
    kinds: dict[str, str] | None = None
    notes: list[str] = field(default_factory=list)
    plan: list[Column] = field(default_factory=list)
    parsed: list[str] = field(default_factory=list)
    dates: dict[str, dict[str, Any]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    reading: Reading = field(default_factory=Reading)
    group: str | None = None


def need_tables() -> None:
    """Raise ImportError if a package required for tables is missing."""
    for package in ("pandas", "pyarrow"):
        need(package)


def read_training(
    table: Any,
    *,
    target: str | None = None,
    positive: Any = None,
    group: str | None = None,
    reading: Reading | None = None,
    **columns: str | Sequence[str],
) -> Training:
    """Read features, labels and groups, with the plan of the columns and notes; ``columns`` are the declared ones."""
    reading = reading or Reading()
    declared = check_declared(target=target, group=group, **columns)
    source = reading.source(table)
    if source.columns is None:
        return _read_sparse(source, target, positive, group, declared, reading)
    if target is None:
        names = ", ".join(map(repr, source.columns[:20]))
        raise DataError(Message("pass the column with the labels: ", Parameter("target", ...), f", one of {names}"))
    grouped = [] if group is None else [group]
    check_columns(source.name, [target, *declared.names, *grouped], source.columns)
    unwanted = {target, *declared.drop, *declared.id, *grouped}
    features = [name for name in source.columns if name not in unwanted]
    codes = source.zero_led([name for name in features if name not in declared.names])
    types: dict[str, Any] = {**dict.fromkeys([*declared.text, *codes], "text"), **dict.fromkeys(declared.date, "date")}
    X, y = source.read(
        target=target,
        columns=features + grouped,
        types=types,
        max_bytes=reading.max_bytes,
        skip_unlabelled=reading.skip_unlabelled,
    )
    planned = plan_values(X[features], source, declared, codes)
    frame, kinds, dates = _features(planned.values, planned.columns)
    if not kinds:
        raise DataError(f"{source.name} has no usable column: {', '.join(map(repr, features)) or 'all are dropped'}")
    notes = [*plan_notes(planned.columns), *marked_categories(frame, planned.columns)]
    if source.n_skipped:
        notes.append(f"{source.n_skipped:,} rows without a label are left out")
    return Training(
        frame,
        make_target(y, positive, f"column {target!r}"),
        None if group is None else group_values(source.name, X[group]),
        kinds,
        notes,
        [*planned.columns, *not_read(declared, group)],
        [name for name in planned.parsed if name in kinds],
        dates,
        list(declared.id),
        reading,
        group,
    )


def _read_sparse(
    source: TableSource, target: str | None, positive: Any, group: str | None, declared: Declared, reading: Reading
) -> Training:
    if declared.names or group is not None:
        raise DataError(f"{source.name} is an svmlight file, which has no column names to drop, declare or group by")
    X, y = source.read(target=target, zero_based=reading.zero_based, max_bytes=reading.max_bytes)
    return Training(X, make_target(y, positive), reading=reading)


def _features(
    values: Mapping[str, Any], plan: Sequence[Column]
) -> tuple[Any, dict[str, str], dict[str, dict[str, Any]]]:
    """Return the frame of the features, their kinds, and how to read the columns of dates."""
    import pandas as pd

    found: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    dates: dict[str, dict[str, Any]] = {}
    for column in plan:
        if not column.used:
            continue
        if column.kind != "date":
            found[column.name] = values[column.name]
            kinds[column.name] = "number" if column.kind == "number" else "text"
            continue
        parts, dates[column.name] = _date_parts(column.name, values[column.name])
        taken = [name for name in parts if name in values]
        if taken:
            raise DataError(f"the date {column.name!r} and another column must not both give {taken[0]!r}; rename it")
        found |= parts
        kinds |= dict.fromkeys(parts, "number")
    return pd.DataFrame(found), kinds, dates


def _date_parts(name: str, column: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the features of a column of dates that are not constant, and what is needed to compute them again."""
    known = column.dropna()
    is_text = column.dtype.kind != "M" and len(known) and isinstance(known.iloc[0], str)
    first = day_first(name, known) if is_text else None
    dates = parse_dates(name, column, first)
    reference = dates.max()
    parts = {
        key: part
        for key, part in date_features(name, dates, reference).items()
        if not np.all(np.isnan(part)) and np.nanmin(part) < np.nanmax(part)
    }
    return parts, {"day_first": first, "reference": str(reference), "features": list(parts)}


def table_source(facts: Mapping[str, Any], table: Any, delimiter: str | None) -> TableSource:
    """Return a table for a model, written as the table of its fit."""
    return Reading(delimiter, **facts.get("reading", {})).source(table)


def feature_options(facts: dict[str, Any], model: str, source: TableSource) -> dict[str, Any]:
    """Return the options to read the columns of a model; raise DataError if the table does not have them.

    Parameters
    ----------
    facts : dict
        Metadata of the model.
    model : str
        Name of the model in messages.
    source : TableSource
        The table.
    """
    features = facts["features"]
    if source.columns is None:
        if features is not None:
            raise DataError(f"{model} was fitted to named columns, but {source.name} is an svmlight file")
        return {"n_features": facts["n_features"], "zero_based": facts["zero_based"]}
    if features is None:
        raise DataError(f"{model} was fitted to an svmlight file, but {source.name} has named columns")
    dates = facts.get("dates", {})
    derived = {feature for entry in dates.values() for feature in entry["features"]}
    types = {name: kind for name, kind in features.items() if name not in derived}
    types |= dict.fromkeys(facts.get("parsed", ()), "parsed") | dict.fromkeys(dates, "date")
    check_columns(source.name, list(types), source.columns)
    return {"columns": list(types), "types": types}


def model_features(facts: dict[str, Any], X: Any) -> Any:
    """Return the features of a model from the columns that were read with :func:`feature_options`."""
    import pandas as pd

    dates = facts.get("dates", {})
    if not dates:
        return X if facts["features"] is None else X[list(facts["features"])]
    parts: dict[str, Any] = {}
    for name, entry in dates.items():
        found = parse_dates(name, X[name], entry["day_first"])
        parts |= date_features(name, found, pd.Timestamp(entry["reference"]))
    return pd.concat([X, pd.DataFrame(parts, index=X.index)], axis=1)[list(facts["features"])]


def group_values(table: str, column: Any) -> NDArray[Any]:
    """Return the group of each row as text; raise DataError if a row has none."""
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(
            f"{table}: column {column.name!r} must have a group in each row; got {missing.size} of {column.size} rows "
            f"without one (the first is row {missing[0] + 1} after the header); fill them in or remove these rows"
        )
    result: NDArray[Any] = column.astype(str).to_numpy()
    return result
