"""Reading of tables for training, or for a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._messages import Message, Parameter, ParameterError
from rocmax._packages import need
from rocmax.data import DataError, TableSource
from rocmax.data.errors import check_columns
from rocmax.workflow.preprocessing import column_kinds
from rocmax.workflow.target import Target, make_target


@dataclass(frozen=True)
class Training:
    """Features, labels and groups of a table; ``kinds`` is the kind of each column, or None for a sparse matrix."""

    X: Any
    target: Target
    groups: NDArray[Any] | None = None
    kinds: dict[str, str] | None = None
    notes: list[str] = field(default_factory=list)


def need_tables() -> None:
    """Raise ImportError if a package required for tables is missing."""
    for package in ("pandas", "pyarrow"):
        need(package)


def read_training(
    table: Any,
    *,
    target: str | None = None,
    positive: Any = None,
    drop: str | Sequence[str] = (),
    group: str | None = None,
    delimiter: str | None = None,
    zero_based: bool = False,
    max_bytes: int | None = None,
) -> Training:
    """Read features, labels and groups, with notes about ignored columns."""
    source = TableSource(table, delimiter=delimiter)
    dropped = [drop] if isinstance(drop, str) else list(drop)
    if source.columns is None:
        if dropped or group is not None:
            raise DataError(f"{source.name} is an svmlight file, which has no column names to drop or to group by")
        X, y = source.read(target=target, zero_based=zero_based, max_bytes=max_bytes)
        return Training(X, make_target(y, positive))
    if target is None:
        names = ", ".join(map(repr, source.columns[:20]))
        raise DataError(Message("pass the column with the labels: ", Parameter("target", ...), f", one of {names}"))
    if group == target:
        raise ParameterError(Message(Parameter("group"), " must be another column than ", Parameter("target")))
    grouped = [] if group is None else [group]
    check_columns(source.name, [target, *dropped, *grouped], source.columns)
    unwanted = {target, *dropped, *grouped}
    features = [name for name in source.columns if name not in unwanted]
    X, y = source.read(target=target, columns=features + grouped, max_bytes=max_bytes)
    groups = None if group is None else _groups(source.name, X[group])
    kinds = column_kinds(X[features])
    if not kinds:
        raise DataError(f"{source.name} has no usable column: {', '.join(map(repr, features)) or 'all are dropped'}")
    left_out = [name for name in features if name not in kinds]
    X = X[list(kinds)]
    return Training(X, make_target(y, positive, f"column {target!r}"), groups, kinds, _notes(X, kinds, left_out))


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
    check_columns(source.name, list(features), source.columns)
    return {"columns": list(features), "types": features}


def _notes(X: Any, kinds: dict[str, str], left_out: list[str]) -> list[str]:
    notes = [f"{name!r} is ignored: dates are not supported" for name in left_out]
    for name, kind in kinds.items():
        if kind == "text" and (distinct := X[name].nunique()) > max(20, 0.5 * len(X)):
            found = f"{name!r} is text with {distinct} values in {len(X)} rows; drop it if it is an identifier ("
            notes.append(Message(found, Parameter("drop", [name]), ")"))
    return notes


def _groups(table: str, column: Any) -> NDArray[Any]:
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(
            f"{table}: column {column.name!r} must have a group in each row; got {missing.size} of {column.size} rows "
            f"without one (the first is row {missing[0] + 1} after the header); fill them in or remove these rows"
        )
    result: NDArray[Any] = column.astype(str).to_numpy()
    return result
