"""Reading of tables for training, or for a fitted model, and what a model stores about its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from rocmax._folds import Groups
from rocmax._support import Parameter, ParameterError, need
from rocmax.data import DataError, Reading
from rocmax.data.read import TableSource, check_columns
from rocmax.forward import Dependence, check_gap, gap_value
from rocmax.tables.columns import (
    Column,
    Dated,
    check_sizes,
    date_features,
    find_order,
    marked_categories,
    most_dated,
    not_read,
    parse_dates,
    plan_notes,
    plan_values,
    read_times,
)
from rocmax.tables.options import Columns, Limits, carried_columns, check_declared, names_of
from rocmax.tables.preprocess import known_forms

# Labels of a table as text, and the choice of the positive class.


# Unambiguous pairs of labels; the second one is positive.
_CLEAR = (
    ("0", "1"),
    ("-1", "1"),
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("negative", "positive"),
    ("neg", "pos"),
)


class Target(NamedTuple):
    """Labels as text, the names of the two classes, and the type of the labels in the table."""

    labels: NDArray[Any]
    positive: str
    negative: str
    kind: str = "text"

    @property
    def is_positive(self) -> NDArray[np.bool_]:
        """Whether each row belongs to the positive class."""
        result: NDArray[np.bool_] = self.labels == self.positive
        return result


def make_target(values: Any, positive: Any, name: str = "the target") -> Target:
    """Return the binary target; with more than two labels, the positive class against the rest."""
    labels = as_text(values)
    positive = None if positive is None else as_text(np.asarray([positive]))[0]
    distinct, counts = np.unique(labels, return_counts=True)
    listed = ", ".join(f"{label!r} ({count})" for label, count in zip(distinct[:10], counts[:10], strict=True))
    listed += f", ... ({distinct.size} in all)" if distinct.size > 10 else ""
    if distinct.size < 2:
        raise DataError(f"{name} must have at least two values; got one class only: {listed}")
    if positive is None:
        pair = [label for label in _CLEAR if {text.lower() for text in distinct} == set(label)]
        if distinct.size > 2 or not pair:
            found = f"{name} has the values {listed}; select the positive one with "
            raise ParameterError(found, Parameter("positive", ...))
        positive = next(text for text in distinct if text.lower() == pair[0][1])
    chosen = (
        [text for text in distinct if text == positive]
        or [text for text in distinct if text.lower() == positive.lower()]
        or [text for text in distinct if same_label(text, positive)]
    )
    if not chosen:
        raise DataError(f"{name} has no value {positive!r}; its values are {listed}")
    if len(chosen) > 1:
        choices = ", ".join(map(repr, chosen))
        raise DataError(f"{name} has no value {positive!r}, but {choices}, which differ in case; pass one of them")
    rest = [str(text) for text in distinct if text != chosen[0]]
    negative = rest[0] if len(rest) == 1 else f"not {chosen[0]}"
    kind = label_kind(values) if len(rest) == 1 else "text"
    return Target(np.where(labels == chosen[0], chosen[0], negative), str(chosen[0]), negative, kind)


def label_kind(values: NDArray[Any]) -> str:
    """Return the type of labels: "integer", "number", "boolean" or "text"."""
    by_code = {"i": "integer", "u": "integer", "f": "number", "b": "boolean"}
    return by_code.get(values.dtype.kind, "text")


def typed_labels(labels: NDArray[Any], kind: str) -> NDArray[Any]:
    """Return labels, given as text, in the type of the target."""
    convert: Any = {"integer": int, "number": float, "boolean": "True".__eq__}.get(kind)  # None for text
    found = [str(text) if convert is None else convert(text) for text in labels.tolist()]
    return np.array(found, dtype=object if convert is None else None)


def same_label(first: str, second: str) -> bool:
    """Return whether two labels are the same number or truth value, such as 1, 1.0 and true."""
    values = [_value(text) for text in (first, second)]
    return values[0] is not None and values[0] == values[1]


def _value(text: str) -> float | None:
    words = {"true": 1.0, "false": 0.0}
    try:
        return words[text.lower()] if text.lower() in words else float(text)
    except ValueError:
        return None


def known_target(values: Any, positive: str, negative: str, name: str = "the target") -> Target:
    """Return the target for the classes of a fitted model."""
    target = Target(known_labels(values, positive, negative, name), positive, negative)
    if target.is_positive.all() or not target.is_positive.any():
        got = f"one class only: {str(target.labels[0])!r} ({target.labels.size} rows)"
        raise DataError(f"{name} must have both classes, {positive!r} and {negative!r}; got {got}")
    return target


def known_labels(values: Any, positive: str, negative: str, name: str = "the target") -> NDArray[Any]:
    """Return labels as the names of the classes of a fitted model."""
    labels = as_text(values)
    for text in sorted(set(labels.tolist()) - {positive, negative}):
        same = [label for label in (positive, negative) if same_label(text, label)]
        if same:
            labels = np.where(labels == text, same[0], labels)
    if negative != f"not {positive}":
        strange = sorted(set(labels.tolist()) - {positive, negative})
        if strange:
            raise DataError(
                f"the labels in {name} must be those of the model, {[negative, positive]}; got {strange[:5]}"
            )
    return np.where(labels == positive, positive, negative)


def as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Convert labels to text; numbers are exact, and integers have no decimal point."""
    if values.dtype.kind == "f":
        distinct, place = np.unique(values, return_inverse=True)
        texts = [np.format_float_positional(value, trim="-") for value in distinct + 0.0]  # -0 is 0
        return np.array(texts, dtype=object)[place]
    return np.array([str(value) for value in values.tolist()], dtype=object)


# What a model stores about its table, so that other tables are read in the same way.


@dataclass(frozen=True)
class DateColumn:
    """How a column of dates is read: the order of day and month, the latest date, and the features made from it."""

    day_first: bool | None
    reference: str
    features: list[str]


# Options of reading that later tables of a model have in common with that of its fit.
_STORED = ("delimiter", "decimal", "thousands", "na", "encoding", "sheet", "skip_unlabeled")


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Labels and columns of a training table.

    ``features`` is the kind of each feature, or None for a sparse matrix; ``columns`` is the plan of the columns.
    ``parsed`` are columns of numbers that are read as text, ``ids`` columns that are carried to the output, ``reading``
    how values are written, ``group`` the column of the groups, and ``time`` that of the times, with the
    order of day and month in it, if that matters, and the ``gap``.
    """

    target: str | None = None
    positive: str
    negative: str
    label_type: str = "text"
    features: dict[str, str] | None = None
    n_features: int = 0
    zero_based: bool = False
    columns: list[Column] = field(default_factory=list)
    reading: Reading = field(default_factory=Reading)
    parsed: list[str] = field(default_factory=list)
    dates: dict[str, DateColumn] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    group: str | None = None
    time: str | None = None
    time_day_first: bool | None = None
    gap: float | str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found["columns"] = [column.to_dict() for column in self.columns]
        found["reading"] = {name: getattr(self.reading, name) for name in _STORED} | {"na": list(self.reading.na)}
        found["dates"] = {name: asdict(date) for name, date in self.dates.items()}
        return found

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the object whose plain values are given; raise TypeError if they are not the fields."""
        reading = Reading(**values.get("reading", {}))
        made = {
            "columns": [Column(**column) for column in values.get("columns", ())],
            "reading": replace(reading, na=tuple(reading.na)),
            "dates": {name: DateColumn(**date) for name, date in values.get("dates", {}).items()},
        }
        return cls(**{**values, **made})

    def read_as(self, reading: Reading) -> Reading:
        """Return how to read a later table: as that of the fit, except for what is given."""
        own, stored = reading, self.reading
        if reading.decimal is None:  # otherwise, the stored thousands separator may be the decimal mark
            own = replace(own, decimal=stored.decimal, thousands=reading.thousands or stored.thousands)
        if reading.skip_unlabeled is None:
            own = replace(own, skip_unlabeled=stored.skip_unlabeled)
        if reading.zero_based is None:
            own = replace(own, zero_based=self.zero_based)
        return replace(own, na=(*stored.na, *names_of(reading.na)))

    def open(self, table: Any, reading: Reading) -> TableSource:
        """Return a table, written as that of the fit where ``reading`` says nothing else."""
        stored = self.reading
        likely = Reading(delimiter=stored.delimiter, encoding=stored.encoding, sheet=stored.sheet)
        return TableSource(table, self.read_as(reading), likely=likely)

    def read_options(self, model: str, source: TableSource) -> dict[str, Any]:
        """Return the options to read the columns of a model; raise DataError if the table does not have them."""
        if source.columns is None:
            if self.features is not None:
                raise DataError(f"{model} was fitted to named columns, but {source.name} is an svmlight file")
            return {"n_features": self.n_features}
        if self.features is None:
            raise DataError(f"{model} was fitted to an svmlight file, but {source.name} has named columns")
        derived = {feature for date in self.dates.values() for feature in date.features}
        types = {name: kind for name, kind in self.features.items() if name not in derived}
        types |= dict.fromkeys(self.parsed, "parsed") | dict.fromkeys(self.dates, "date")
        check_columns(source.name, list(types), source.columns)
        return {"columns": list(types), "types": types}

    def features_of(
        self,
        X: Any,
        source: TableSource | None = None,
        *,
        day_first: bool | None = None,
        levels: Mapping[str, set[str]] | None = None,
    ) -> Any:
        """Return the features from the columns that were read with :meth:`read_options`.

        ``day_first`` is the order of the dates of this table, None for that of the fit. Another form of one of the
        known categories ``levels``, such as 1.0 for 1, is replaced by it.
        """
        import pandas as pd

        if self.features is None:
            return X
        parts: dict[str, Any] = {}
        for name, date in self.dates.items():
            found = parse_dates(name, X[name], date.day_first if day_first is None else day_first, source)
            parts |= date_features(name, found, pd.Timestamp(date.reference))
        if parts:
            X = pd.concat([X, pd.DataFrame(parts, index=X.index)], axis=1)
        X = X[list(self.features)]
        check_sizes(X, source)
        return X.assign(**{name: known_forms(X[name], of) for name, of in levels.items()}) if levels else X


# Reading of tables for training.


@dataclass(frozen=True)
class Training:
    """Features, labels and groups of a table, and what is needed to read other tables in the same way."""

    X: Any
    target: Target
    schema: Schema
    groups: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)
    times: NDArray[Any] | None = None
    # A column of dates, if the rows are not split by time.
    dated: Dated | None = None
    # Columns that are no features, but on which thresholds depend.
    more: Any = None

    def rows(self, rows: Any = None) -> Any:
        """Return the features of some rows, or of all, with the other columns on which thresholds depend."""
        X = self.X if self.more is None else self.X.assign(**{name: self.more[name].to_numpy() for name in self.more})
        return X if rows is None else _safe_indexing(X, rows)

    @property
    def depends(self) -> Groups:
        """What splits of the rows respect: the groups, with the times and the gap if there are times."""
        return self.groups if self.times is None else Dependence(self.groups, self.times, check_gap(self.schema.gap))

    @property
    def kinds(self) -> dict[str, str] | None:
        """Kind of each feature; None for a sparse matrix."""
        return self.schema.features


def _training(X: Any, y: Any, source: TableSource, declared: Columns, reading: Reading, **known: Any) -> Training:
    """Return the training data; ``known`` are the groups, times, dates, notes, and fields of the schema."""
    target = make_target(y, declared.positive, f"column {declared.target!r}" if declared.target else "the target")
    notes = known.pop("notes", [])
    rows = {name: known.pop(name) for name in ("groups", "times", "more", "dated") if name in known}
    written = {name: getattr(source.reading, name) for name in _STORED}
    stored = Reading(**{**written, "na": tuple(written["na"]), "skip_unlabeled": bool(reading.skip_unlabeled)})
    schema = Schema(
        target=declared.target,
        positive=target.positive,
        negative=target.negative,
        label_type=target.kind,
        n_features=int(X.shape[1]),
        reading=stored,
        ids=list(declared.id),
        group=declared.group,
        time=declared.time,
        gap=declared.gap if declared.gap is None or isinstance(declared.gap, str) else gap_value(declared.gap),
        **known,
    )
    return Training(X, target, schema, notes=[*source_notes(source), *notes], **rows)


def need_tables() -> None:
    """Raise ImportError if a package required for tables is missing."""
    for package in ("pandas", "pyarrow"):
        need(package)


def read_training(
    table: Any, columns: Columns, reading: Reading | None = None, limits: Limits | None = None
) -> Training:
    """Read features, labels and groups, with the plan of the columns and notes; and the columns of ``limits``."""
    reading = reading or Reading()
    declared = check_declared(columns)
    target, group, time = declared.target, declared.group, declared.time
    source = TableSource(table, reading)
    named = [*declared.text, *declared.number, *declared.date, *declared.drop, *declared.id]
    more = carried_columns(limits)
    named += [name for name in (group, time, *more) if name is not None]
    if source.columns is None:
        if named:
            raise DataError(
                f"{source.name} is an svmlight file, which has no column names to drop, declare, group or order by"
            )
        return _read_sparse(source, declared, reading)
    if target is None:
        names = ", ".join(map(repr, source.columns[:20]))
        raise DataError("pass the column with the labels: ", Parameter("target", ...), f", one of {names}")
    check_columns(source.name, [target, *named], source.columns)
    roles = [name for name in (group, time) if name is not None and name not in declared.date]
    unwanted = {target, *declared.drop, *declared.id, *roles}
    features = [name for name in source.columns if name not in unwanted]
    codes = source.zero_led([name for name in features if name not in named])
    types: dict[str, Any] = {**dict.fromkeys([*declared.text, *codes], "text"), **dict.fromkeys(declared.date, "date")}
    if target in more:
        raise ParameterError(Parameter(more[target], target), " must be another column than ", Parameter("target"))
    roles += [name for name in more if name not in [*features, *roles]]
    X, y = source.read(target=target, columns=features + roles, types=types)
    none: tuple[None, None, list[str]] = (None, None, [])
    times, order, time_notes = none if time is None else _times(X[time], declared, reading.day_first, source)
    planned = plan_values(X[features], source, declared, codes)
    frame, kinds, dates, date_notes = _features(planned.values, planned.columns, reading.day_first, source, time)
    if not kinds:
        raise DataError(f"{source.name} has no usable column: {', '.join(map(repr, features)) or 'all are dropped'}")
    check_sizes(frame, source)
    carried = [name for name in more if name not in kinds]
    return _training(
        frame,
        y,
        source,
        declared,
        reading,
        groups=None if group is None else group_values(source.name, X[group]),
        times=times,
        more=X[carried] if carried else None,
        time_day_first=order,
        dated=None if time is not None else most_dated(planned, reading.day_first),
        notes=[
            *plan_notes(planned.columns),
            *dict.fromkeys([*date_notes, *time_notes]),
            *marked_categories(frame, planned.columns),
        ],
        features=kinds,
        columns=[*planned.columns, *not_read(declared)],
        parsed=[name for name in planned.parsed if name in kinds],
        dates=dates,
    )


def _times(
    column: Any, declared: Columns, day_first: bool | None, source: TableSource
) -> tuple[NDArray[Any], bool | None, list[str]]:
    """Return the times of the rows, the order of dates, and notes; raise ParameterError for a gap of another kind."""
    found = read_times(column, day_first, source)
    try:
        Dependence(None, found[0], check_gap(declared.gap))
    except ValueError as error:
        raise ParameterError(Parameter("gap"), str(error).removeprefix("gap")) from None
    return found


def source_notes(source: TableSource) -> list[str]:
    """Return notes about how a table is written, and about rows that were left out."""
    skipped = f"{source.n_skipped:,} rows without a label are left out"
    return [*source.notes, *([skipped] if source.n_skipped else [])]


def _read_sparse(source: TableSource, columns: Columns, reading: Reading) -> Training:
    X, y = source.read(target=columns.target)
    return _training(X, y, source, columns, reading, zero_based=bool(reading.zero_based))


def _features(
    values: Mapping[str, Any], plan: Sequence[Column], day_first: bool | None, source: TableSource, time: str | None
) -> tuple[Any, dict[str, str], dict[str, DateColumn], list[str]]:
    """Return the frame of the features, their kinds, how to read the columns of dates, and notes about these."""
    import pandas as pd

    found: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    dates: dict[str, DateColumn] = {}
    notes: list[str] = []
    for column in plan:
        if not column.used:
            continue
        if column.kind != "date":
            found[column.name] = values[column.name]
            kinds[column.name] = "number" if column.kind == "number" else "text"
            continue
        steady = column.name == time
        parts, dates[column.name], said = _date_parts(column.name, values[column.name], day_first, source, steady)
        notes += said
        taken = [name for name in parts if name in values]
        if taken:
            raise DataError(f"the date {column.name!r} and another column must not both give {taken[0]!r}; rename it")
        found |= parts
        kinds |= dict.fromkeys(parts, "number")
    return pd.DataFrame(found), kinds, dates, notes


def _date_parts(
    name: str, column: Any, day_first: bool | None, source: TableSource, steady: bool
) -> tuple[dict[str, Any], DateColumn, list[str]]:
    """Return the features of a column of dates that are not constant, how to compute them again, and notes.

    Those of a column that orders the rows are ``steady``: without the year and the age, which are always new later.
    """
    known = column.dropna()
    is_text = column.dtype.kind != "M" and len(known) and isinstance(known.iloc[0], str)
    first, notes = find_order(name, known, day_first, source) if is_text else (day_first, [])
    dates = parse_dates(name, column, first, source)
    reference = dates.max()
    parts = {
        key: part
        for key, part in date_features(name, dates, reference).items()
        if not np.all(np.isnan(part))
        and np.nanmin(part) < np.nanmax(part)
        and not (steady and key.endswith((" year", " age in days")))
    }
    return parts, DateColumn(first, str(reference), list(parts)), notes


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
