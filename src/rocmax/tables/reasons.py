"""Reasons: the columns that moved the score of a row most, with their values, in the terms of the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, gen_batches

from rocmax._support import Array, Index, Parameter, ParameterError
from rocmax._validation import check_choice, check_range, direction, is_missing, positive_index
from rocmax.explain import Contributions, check_explained, contributions, sums
from rocmax.tables.preprocess import MISSING
from rocmax.tables.read import Schema

# Families of `rocmax fit` whose scores are sums of contributions.
EXPLAINED = ("linear", "additive", "boosted", "ensemble", "auc", "logistic", "svm", "lightgbm")
FLAGGED = "flagged"
ENDINGS = ("", "_value", "_effect")
# Contributions that are in memory at a time.
MOST_VALUES = 10_000_000


class Top(NamedTuple):
    """Reasons of rows, one column for each rank: names, values as text, and effects; None for no reason.

    An effect above zero has raised the score.
    """

    columns: NDArray[Any]
    values: NDArray[Any]
    effects: NDArray[Any]


@dataclass(frozen=True)
class Reasons:
    """The ``n`` columns that moved the scores of rows most, for flagged rows or for "all" rows."""

    model: Any
    schema: Schema
    family: str
    n: int
    rows: str = FLAGGED

    def has_any(self) -> bool:
        """Return whether the model has reasons."""
        try:
            check_explained(self.model)
        except (TypeError, ValueError):
            return False
        return True

    def check(self) -> None:
        """Raise ParameterError unless the model has reasons, as many of them."""
        check_choice("reasons_for", self.rows, (FLAGGED, "all"))
        try:
            check_explained(self.model)
        except TypeError:
            known = ", ".join(EXPLAINED)
            needed = f" are for models of the families {known}; got {self.family}"
            raise ParameterError(Parameter("reasons"), needed) from None
        except ValueError as error:
            raise ParameterError(Parameter("reasons"), f": {error}") from None
        n_columns = len(self.columns)
        needed = f"an integer from 1 to {n_columns}, the number of columns of the model"
        check_range("reasons", self.n, 1, n_columns, needed, integer=True)

    @cached_property
    def owners(self) -> list[str]:
        """Column of the table that each feature is made from."""
        schema = self.schema
        if schema.features is None:
            return [f"feature {i + 1}" for i in range(schema.n_features)]
        dated = {feature: name for name, date in schema.dates.items() for feature in date.features}
        return [dated.get(name, name) for name in schema.features]

    @cached_property
    def columns(self) -> list[str]:
        """Columns of the table that the model uses."""
        return list(dict.fromkeys(self.owners))

    def contributions(self, X: Any, table: Any) -> Contributions:
        """Return the contributions of the columns to the scores of rows; ``table`` has their dates."""
        import pandas as pd

        found, owners, columns = contributions(self.model, X), self.owners, self.columns
        sign = direction(positive_index(self.model.classes_, self.schema.positive))
        values = sign * found.values
        if len(owners) > len(columns):
            # Parts of dates.
            values = values @ sums(np.array([columns.index(name) for name in owners]), len(columns))
        if self.schema.features is not None:
            dates = self.schema.dates
            X = pd.DataFrame({name: (table if name in dates else X)[name].to_numpy() for name in columns})
        return Contributions(values, sign * found.reference, columns, X)

    def of_rows(self, X: Any, table: Any, rows: Index) -> Top:
        """Return the reasons of some rows, those with the largest effect first; columns without an effect are none."""
        if not rows.size:
            return Top(*[np.empty((0, self.n), dtype=object)] * 3)
        size = max(1, MOST_VALUES // len(self.owners))
        parts = []
        for some in gen_batches(rows.size, size):
            own = _safe_indexing(X, rows[some])
            found = self.contributions(own, _safe_indexing(table, rows[some]) if self.schema.dates else own)
            order = np.argsort(-np.abs(found.values), axis=1, kind="stable")[:, : self.n]
            effects = np.take_along_axis(found.values, order, axis=1)
            columns, values = np.array(found.columns, dtype=object)[order], np.empty(order.shape, dtype=object)
            for place in np.unique(order):
                row, rank = np.nonzero(order == place)
                values[row, rank] = _texts(found.data, found.columns[place], place, row)
            top = [part.astype(object) for part in (columns, values, effects)]
            for part in top:
                part[effects == 0] = None
            parts.append(top)
        return Top(*map(np.concatenate, zip(*parts, strict=True)))

    def output(self, X: Any, table: Any, scores: Array) -> dict[str, Any]:
        """Return the columns of the output, as Arrow arrays; rows that are not explained have nulls."""
        import pyarrow as pa

        rows = np.arange(scores.size) if self.rows == "all" else np.flatnonzero(scores > 0)
        top, place = self.of_rows(X, table, rows), np.full(scores.size, -1)
        place[rows] = np.arange(rows.size)
        places, kinds = pa.array(place, mask=place < 0), (pa.string(), pa.string(), pa.float64())
        return {
            f"reason_{number + 1}{ending}": pa.array(part[:, number], kind).take(places)
            for number in range(self.n)
            for ending, part, kind in zip(ENDINGS, top, kinds, strict=True)
        }

    def nested(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row of the output with its reasons as one list, and numbers as numbers."""
        numbers, found = self.numbers, []
        for number in range(1, self.n + 1):
            column, value, effect = (row.pop(f"reason_{number}{ending}") for ending in ENDINGS)
            if column is not None:
                value = None if value == MISSING else float(value) if column in numbers else value
                found.append({"column": column, "value": value, "effect": effect})
        return row | {"reasons": found}

    @cached_property
    def numbers(self) -> set[str]:
        """Columns of numbers."""
        kinds = self.schema.features
        return set(self.columns) if kinds is None else {name for name, kind in kinds.items() if kind == "number"}


def _texts(data: Any, name: str, place: int, rows: Index) -> list[str]:
    """Return values of a column as they are written in a table."""
    if hasattr(data, "columns"):
        values = data[name].iloc[rows].tolist()
    else:
        part = data[rows, [place]]
        values = np.ravel(part.toarray() if hasattr(part, "toarray") else part).tolist()
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    if is_missing(value) or value == "":
        return MISSING
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
