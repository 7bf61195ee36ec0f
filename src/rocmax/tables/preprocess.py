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
MAX_CATEGORIES = 50
# Values of fewer training rows are not stored: they would identify rows.
MIN_ROWS_OF_CATEGORY = 5

Levels = dict[str, list[str]]


def column_kinds(X: Any) -> dict[str, str]:
    """Return the kind, "number" or "text", of each column that a model can use; columns of dates are left out."""
    kinds = {}
    for name, dtype in X.dtypes.items():
        if dtype.kind == "f":
            kinds[name] = "number"
        elif dtype.kind != "M" and str(dtype) in ("str", "object", "string", "large_string"):
            first = X[name].dropna()
            if first.empty or isinstance(first.iloc[0], str):
                kinds[name] = "text"
    return kinds


def common_levels(X: Any, kinds: dict[str, str] | None) -> Levels | None:
    """Return the values of text columns that a model stores: the most frequent ones, each of several rows.

    Parameters
    ----------
    X : DataFrame or sparse matrix
        Training rows.
    kinds : dict or None
        Kind of each column, as returned by :func:`column_kinds`.

    Returns
    -------
    dict of str to list of str, or None
        At most `MAX_CATEGORIES` values of each text column, of at least `MIN_ROWS_OF_CATEGORY` rows each, and
        "(missing)" if values are missing. None for a sparse matrix.
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


def preprocessing(kinds: dict[str, str] | None, levels: Levels | None = None) -> Any:
    """Return the preprocessing of linear models: numbers are imputed and standardized, text is one-hot encoded.

    Parameters
    ----------
    kinds : dict or None
        Kind of each column, as returned by :func:`column_kinds`. The table to fit must have exactly these columns in
        this order; later tables are matched by column name. None for a sparse matrix, which is only scaled.
    levels : dict or None, default=None
        Categories of each text column, as returned by :func:`common_levels`. If None, the encoder chooses them.

    Returns
    -------
    transformer
        Unfitted transformer.
    """
    if kinds is None:
        return MaxAbsScaler().set_output(transform="default")
    numbers, texts = _positions(kinds)
    return _table([("numbers", _number_steps(), numbers), ("texts", _text_steps(levels), texts)])


def additive_preprocessing(kinds: dict[str, str], levels: Levels | None = None) -> Any:
    """Return the preprocessing of additive models: numbers become splines, text is one-hot encoded.

    No feature depends on two columns, so a linear model of the features is additive in the columns.

    Parameters
    ----------
    kinds : dict
        Kind of each column, as returned by :func:`column_kinds`.
    levels : dict or None, default=None
        Categories of each text column, as in :func:`preprocessing`.

    Returns
    -------
    transformer
        Unfitted transformer.
    """
    numbers, texts = _positions(kinds)
    splines = make_pipeline(SplineFeatures(), StandardScaler())
    return _table([("numbers", splines, numbers), ("texts", _text_steps(levels), texts)])


def tree_preprocessing(kinds: dict[str, str] | None, levels: Levels | None = None) -> Any:
    """Return the preprocessing of trees: numbers and missing values are not changed, text becomes category codes.

    Parameters
    ----------
    kinds : dict or None
        Kind of each column, as returned by :func:`column_kinds`. None for a sparse matrix, which is not changed.
    levels : dict or None, default=None
        Categories of each text column, as in :func:`preprocessing`.

    Returns
    -------
    transformer
        Unfitted transformer. Its output has the numbers first, then the codes; an unknown category is NaN.
    """
    if kinds is None:
        return FunctionTransformer(accept_sparse=True).set_output(transform="default")
    numbers, texts = _positions(kinds)
    chosen = {"max_categories": MAX_CATEGORIES} if levels is None else {"categories": list(levels.values())}
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, dtype=np.float64, **chosen)
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
    if levels is None:
        encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES)
    else:
        encoder = OneHotEncoder(categories=list(levels.values()), handle_unknown="ignore")
    return make_pipeline(*_fill_text(), encoder)
