"""Column kinds and the preprocessing of each kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from rocmax.features import SplineFeatures

MISSING = "(missing)"
# Most categories of a column that a model stores. Values of fewer training rows would identify rows.
MAX_CATEGORIES, MIN_ROWS_OF_CATEGORY = 50, 5

Levels = dict[str, list[str]]


def common_levels(X: Any, kinds: dict[str, str] | None) -> Levels | None:
    """Return the values of text columns that a model stores: the most frequent ones, each of several rows.

    They include "(missing)" if values are missing. ``kinds`` is the kind of each column, "number" or "text"; for a
    sparse matrix, it is None, and so is the result.
    """
    if kinds is None:
        return None
    found = {}
    for name in (name for name, kind in kinds.items() if kind == "text"):
        counts = X[name].replace("", None).value_counts()
        counts = counts[counts >= MIN_ROWS_OF_CATEGORY].sort_index(kind="stable")
        kept = counts.sort_values(ascending=False, kind="stable").index[:MAX_CATEGORIES].tolist()
        missing = [MISSING] if not kept or X[name].isna().any() or (X[name] == "").any() else []
        found[name] = sorted({*kept, *missing})
    return found


def other_forms(category: str) -> list[str]:
    """Return other ways to write the same integer or truth value: 1 and 1.0, True, true and TRUE."""
    if re.fullmatch(r"[+-]?\d+", category):
        return [f"{category}.0"]
    if re.fullmatch(r"[+-]?\d+\.0", category):
        return [category.removesuffix(".0")]
    word = category.lower()
    forms = [word, word.capitalize(), word.upper()] if word in ("true", "false") else []
    return [form for form in forms if form != category] if category in forms else []


def merged_forms(column: Any) -> Any:
    """Return a column of text in which each category has one form, the first in the order of text."""
    levels = set(column.dropna().unique())
    firsts = {level: min([level, *(form for form in other_forms(level) if form in levels)]) for level in levels}
    return _renamed(column, {level: first for level, first in firsts.items() if level != first})


def known_forms(column: Any, levels: Iterable[str]) -> Any:
    """Return a column of text in which other forms of known categories are replaced by these."""
    known = set(levels)
    by_form = {form: level for level in sorted(known) for form in other_forms(level) if form not in known}
    return _renamed(column, {form: by_form[form] for form in column.dropna().unique() if form in by_form})


def _renamed(column: Any, names: Mapping[str, str]) -> Any:
    return (
        column.map(lambda value: names.get(value, value), na_action="ignore").astype(column.dtype) if names else column
    )


def preprocessing(kinds: dict[str, str] | None, levels: Levels | None) -> Any:
    """Return the preprocessing of linear models: numbers are imputed and standardized, text is one-hot encoded.

    The table to fit must have exactly the columns ``kinds`` in this order; later tables are matched by column name. A
    sparse matrix, for which both parameters are None, is only scaled. ``levels`` are those of :func:`common_levels`.
    """
    if kinds is None:
        return MaxAbsScaler().set_output(transform="default")
    numbers, texts = _positions(kinds)
    return _table([("numbers", _number_steps(), numbers), ("texts", _text_steps(levels), texts)])


def additive_preprocessing(kinds: dict[str, str], levels: Levels | None) -> Any:
    """Return the preprocessing of additive models: numbers become splines, text is one-hot encoded.

    No feature depends on two columns, so a linear model of the features is additive in the columns.
    """
    numbers, texts = _positions(kinds)
    splines = make_pipeline(SplineFeatures(), StandardScaler())
    return _table([("numbers", splines, numbers), ("texts", _text_steps(levels), texts)])


def tree_preprocessing(kinds: dict[str, str] | None, levels: Levels | None) -> Any:
    """Return the preprocessing of trees: numbers and missing values are not changed, text becomes category codes.

    The output has the numbers first, then the codes; an unknown category is NaN. A sparse matrix is not changed.
    """
    if kinds is None:
        return FunctionTransformer(accept_sparse=True).set_output(transform="default")
    numbers, texts = _positions(kinds)
    encoder = OrdinalEncoder(
        categories=list((levels or {}).values()),
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        dtype=np.float64,
    )
    return _table([("numbers", "passthrough", numbers), ("texts", make_pipeline(*_fill_text(), encoder), texts)])


def text_places(kinds: dict[str, str] | None) -> list[int]:
    """Return the positions of the category codes in the output of :func:`tree_preprocessing`."""
    if kinds is None:
        return []
    numbers, texts = _positions(kinds)
    return list(range(len(numbers), len(numbers) + len(texts)))


def _positions(kinds: dict[str, str]) -> tuple[list[int], list[int]]:
    # Positions instead of names: ColumnTransformer looks up each name with list.index, which takes quadratic time.
    numbers = [i for i, kind in enumerate(kinds.values()) if kind == "number"]
    return numbers, [i for i, kind in enumerate(kinds.values()) if kind == "text"]


def _table(parts: list[tuple[str, Any, list[int]]]) -> Any:
    # One-hot columns are sparse, which data frames do not support: ignore the global output setting of scikit-learn.
    return ColumnTransformer(parts).set_output(transform="default")


def _number_steps() -> Any:
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())


def _fill_text() -> list[Any]:
    # Older versions of pandas use None for missing text. The empty string is missing too, as in csv and ONNX.
    return [SimpleImputer(missing_values=none, strategy="constant", fill_value=MISSING) for none in (np.nan, None, "")]


def _text_steps(levels: Levels | None) -> Any:
    encoder = OneHotEncoder(categories=list((levels or {}).values()), handle_unknown="ignore")
    return make_pipeline(*_fill_text(), encoder)
