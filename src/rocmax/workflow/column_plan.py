"""Plan of the columns of a table: the kind of each, and whether a model uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from rocmax._messages import Message, Parameter, ParameterError
from rocmax.data import TableSource
from rocmax.workflow.dates import date_like
from rocmax.workflow.identifiers import identifying_numbers, identifying_text, is_free_text, repeated_identifier
from rocmax.workflow.odd_values import ALMOST_ALL, MARKS, OddColumn, look, raise_odd
from rocmax.workflow.preprocessing import merged_forms

DROPPED = "dropped"
CARRIED = "carried to the output"
GROUPED = "rows of one group are never split"
TIMES = "times of day"


@dataclass(frozen=True)
class Column:
    """Column of a table in the plan of a fit.

    Attributes
    ----------
    name : str
        Name.
    kind : str
        "number", "category", "date", "identifier", "text" (free text), "group", or "not read" for a dropped column.
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


class Declared(NamedTuple):
    """Columns whose kind or use the user has declared."""

    text: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    id: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """All declared columns."""
        return [name for names in self for name in names]


def check_declared(*, target: str | None, group: str | None, **columns: str | Sequence[str]) -> Declared:
    """Return the declared columns; raise ParameterError if one is declared in two ways."""
    found = {key: (names,) if isinstance(names, str) else tuple(names) for key, names in columns.items()}
    owner: dict[str, str] = {} if target is None else {target: "target"}
    if group is not None:
        if group == target:
            raise ParameterError(Message(Parameter("group"), " must be another column than ", Parameter("target")))
        owner[group] = "group"
    for key, names in found.items():
        for name in names:
            # A group may also be carried to the output or dropped.
            if owner.get(name, key) != key and (owner[name], key) not in (("group", "id"), ("group", "drop")):
                both = Message(Parameter(owner[name]), " and ", Parameter(key))
                raise ParameterError(Message(*both.parts, f" must be different columns; got {name!r} for both"))
            owner.setdefault(name, key)
    return Declared(**found)


class Planned(NamedTuple):
    """Plan of the columns that were read, with their values: numbers, text or dates."""

    columns: list[Column]
    values: dict[str, Any]
    parsed: list[str]


def plan_values(X: Any, source: TableSource, declared: Declared, codes: Sequence[str]) -> Planned:
    """Return the plan of the columns of a frame; raise DataError about odd values in columns of numbers.

    Parameters
    ----------
    X : DataFrame
        Columns of numbers, text and dates.
    source : TableSource
        Their table.
    declared : Declared
        What the user has declared.
    codes : sequence of str
        Columns of whole numbers that are codes, because they are written with leading zeros.
    """
    plan: list[Column] = []
    values: dict[str, Any] = {}
    parsed: list[str] = []
    odd: list[OddColumn] = []
    for name in X.columns:
        column = X[name]
        if column.dtype.kind == "f" and not (name in declared.date and column.notna().any()):
            plan.append(_number(name, column.to_numpy(), name in declared.number))
        elif column.dtype.kind == "M" or not _holds_text(column):
            plan.append(_date(name, column, name in declared.date))
        elif name in declared.date:
            plan.append(_date(name, column, True))
        else:
            found = None if name in declared.text or name in codes else look(column, source, name in declared.number)
            if found is None:
                column = merged_forms(column)
                plan.append(_text(name, column, name in declared.text, name in codes))
            else:
                numbers = found.numbers.to_numpy()
                plan.append(_number(name, numbers, name in declared.number))
                column = numbers
                parsed.append(name)
                if found.odd:
                    n_values = int(X[name].notna().sum())
                    odd.append(OddColumn(name, n_values, found.odd))
        values[name] = column
    raise_odd(source, odd)
    return Planned(plan, values, parsed)


def not_read(declared: Declared, group: str | None) -> Iterator[Column]:
    """Yield the columns that are not features."""
    for name in declared.drop:
        if name != group:
            yield Column(name, "not read", None, None, False, DROPPED)
    for name in declared.id:
        if name != group:
            yield Column(name, "identifier", None, None, False, CARRIED)
    if group is not None:
        yield Column(group, "group", 0, None, False, GROUPED)


def plan_notes(plan: Sequence[Column]) -> list[str]:
    """Return a note for each column that is left out without a wish of the user."""
    flags = {"identifier": "text", "text": "text", "date": "date"}
    notes: list[str] = []
    for column in plan:
        if column.used or column.reason in (DROPPED, CARRIED, GROUPED):
            continue
        number = column.kind == "identifier" and column.levels is None
        flag = "number" if number else flags.get(column.kind)
        advice: list[str | Parameter] = []
        if flag is not None and column.reason != TIMES:
            advice = ["; to use it: ", Parameter(flag, [column.name])]
        reason = column.reason.parts if isinstance(column.reason, Message) else (column.reason,)
        notes.append(Message(f"{column.name!r} is left out ({column.kind}): ", *reason, *advice))
    return notes


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
    missing, levels = int(column.isna().sum()), int(column.nunique())
    n_values = len(column) - missing
    if n_values == 0:
        return Column(name, "category", missing, levels, False, "no values")
    if declared:
        return Column(name, "category", missing, levels, True)
    if levels == 1 and missing == 0:
        return Column(name, "category", missing, levels, False, "one value only")
    reason = identifying_text(n_values, levels)
    if n_values and date_like(column.dropna()).mean() >= ALMOST_ALL:
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
    if (
        column.dtype.kind != "M"
        and column.dtype.kind != "f"
        and len(known)
        and not isinstance(known.iloc[0], str)
        and not hasattr(known.iloc[0], "year")
    ):
        return Column(name, "date", missing, None, False, TIMES)
    return Column(name, "date", missing, None, declared, "" if declared else "dates are used only if they are declared")
