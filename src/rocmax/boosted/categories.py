"""Categorical columns: conversion of categories to the integer codes that trees use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._folds import with_groups
from rocmax._support import Array
from rocmax._validation import TrainingSet, check_training_set, is_missing, missing_values

Categories = dict[int, NDArray[Any]]
FROM_DTYPE = "from_dtype"


def check_table(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, *, dense: bool = False
) -> tuple[TrainingSet, Categories]:
    """Validate the rows of a table, with codes in place of categories, and find the categories.

    The estimator has the parameters ``categorical_features`` and ``pos_label``.
    """
    columns = categorical_columns(X, estimator.categorical_features)
    check_text(X, columns, estimator.categorical_features)
    categories = find_categories(X, columns)
    rows = encode_categories(X, categories)
    data = check_training_set(estimator, rows, y, sample_weight, estimator.pos_label, dense=dense, allow_missing=True)
    return with_groups(data, groups), categories


def categorical_columns(X: Any, requested: Any) -> list[int]:
    """Return the positions of the categorical columns, ascending, from the parameter ``categorical_features``."""
    if requested is None:
        return []
    if isinstance(requested, str):
        if requested != FROM_DTYPE:
            raise ValueError(f"categorical_features must be 'from_dtype', None or a list; got {requested!r}")
        # Of pandas and of polars.
        kinds = ("CategoricalDtype", "Categorical", "Enum")
        return [i for i, kind in enumerate(getattr(X, "dtypes", ())) if type(kind).__name__ in kinds]
    n_features, chosen = np.shape(X)[1], np.asarray(requested)
    if chosen.size == 0:
        return []
    if chosen.ndim != 1 or chosen.dtype.kind not in "biuOUT":
        raise ValueError(f"categorical_features must be a list of positions, names or booleans; got {requested!r}")
    if chosen.dtype.kind == "b":
        if chosen.size != n_features:
            raise ValueError(
                f"categorical_features must have one boolean for each of {n_features} features; got {chosen.size}"
            )
        return np.flatnonzero(chosen).tolist()
    if chosen.dtype.kind in "iu":
        strange = chosen[(chosen < 0) | (chosen >= n_features)]
        if strange.size:
            raise ValueError(f"categorical_features must be positions from 0 to {n_features - 1}; got {strange[0]}")
        return sorted({int(i) for i in chosen})
    names = list(getattr(X, "columns", ()))
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(f"categorical_features must be names of columns of X; got {str(unknown[0])!r}")
    return sorted({names.index(name) for name in chosen})


def check_text(X: Any, categorical: list[int], requested: Any) -> None:
    """Raise ValueError if a column that is not categorical, as ``requested``, has text that is not a number."""
    frame = hasattr(X, "columns")
    if not frame and not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUT"):
        return
    for i in sorted(set(range(X.shape[1])) - set(categorical)):
        values = _column(X, i)
        text = None if values.dtype.kind in "biufMm" else next(filter(_is_text, values.tolist()), None)
        if text is None:
            continue
        name, kind = (X.columns[i], list(X.dtypes)[i]) if frame else (i, values.dtype)
        if not (isinstance(requested, str) and requested == FROM_DTYPE):
            advice = f"Add {name!r} to"
        elif frame:
            advice = f"Convert it (pandas: astype('category'), polars: cast(pl.Categorical)), or pass [{name!r}] as"
        else:
            advice = f"Pass a data frame with columns of the category dtype, or [{i}] as"
        raise ValueError(
            "each column must have numbers, or the category dtype with categorical_features='from_dtype'; got the text "
            f"{text!r} in column {name!r} of dtype {kind}. {advice} categorical_features"
        )


def _is_text(value: Any) -> bool:
    """Return whether a value is text that is not a number."""
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def find_categories(X: Any, columns: list[int]) -> Categories:
    """Return the distinct values of each categorical column, in the order of their codes; missing values are left out.

    The categories of a data type come in its order, and without those that do not occur.
    """
    found: Categories = {}
    for i in columns:
        values = _column(X, i)
        present = values[~missing_values(values)]
        kinds = {type(value) for value in present.tolist()}
        # Values of different types cannot be compared.
        found[i] = np.unique(present if len(kinds) <= 1 else present.astype(str).astype(object))
    return found


def encode_categories(X: Any, categories: Categories) -> Any:
    """Return the rows with the codes of the categories in place of their values; unknown values are missing (NaN).

    Data frames remain data frames, so that the names of the columns can be checked.
    """
    if not categories:
        return X
    if hasattr(X, "columns"):
        columns = [
            _codes(_column(X, i), categories[i]) if i in categories else np.asarray(_series(X, i))
            for i in range(X.shape[1])
        ]
        return type(X)(dict(zip(X.columns, columns, strict=True)))
    if sparse.issparse(X):
        raise ValueError("categorical_features must be None for sparse X; got columns of categories")
    encoded = np.array(X, dtype=object if np.asarray(X).dtype.kind in "OUT" else np.float64)
    for i, known in categories.items():
        encoded[:, i] = _codes(_column(X, i), known)
    return encoded


def _codes(values: NDArray[Any], known: NDArray[Any]) -> Array:
    place = {value: float(code) for code, value in enumerate(known.tolist())}
    text = bool(known.size) and isinstance(known[0], str)
    items = values.tolist()
    if text:
        items = [value if is_missing(value) else str(value) for value in items]
    return np.array([np.nan if is_missing(value) else place.get(value, np.nan) for value in items], dtype=np.float64)


def _column(X: Any, i: int) -> NDArray[Any]:
    if hasattr(X, "columns"):
        values = np.asarray(_series(X, i))
        return values if values.dtype.kind in "biuf" else values.astype(object)
    if sparse.issparse(X):
        raise ValueError(f"categorical_features must be None for sparse X; got column {i}")
    return np.asarray(X)[:, i]


def _series(X: Any, i: int) -> Any:
    return X.iloc[:, i] if hasattr(X, "iloc") else X.to_series(i)
