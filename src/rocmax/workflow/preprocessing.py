"""Kinds of columns, and what is done to them before a model sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

MISSING = "(missing)"
MAX_CATEGORIES = 50


def column_kinds(X: Any) -> dict[str, str]:
    """Kind of each column that a model can use, "number" or "text"; dates are not among them."""
    kinds = {}
    for name, dtype in X.dtypes.items():
        if dtype.kind == "f":
            kinds[name] = "number"
        elif dtype.kind != "M" and str(dtype) in ("str", "object", "string", "large_string"):
            first = X[name].dropna()
            if first.empty or isinstance(first.iloc[0], str):
                kinds[name] = "text"
    return kinds


def preprocessing(kinds: dict[str, str] | None) -> Any:
    """Return transformers: imputed and standardised numbers, one-hot text; a sparse matrix is scaled only.

    Parameters
    ----------
    kinds : dict or None
        The kind of each column, as :func:`column_kinds` gives it; None for a sparse matrix.
    """
    if kinds is None:
        return MaxAbsScaler().set_output(transform="default")
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    texts = [name for name, kind in kinds.items() if kind == "text"]
    number_steps = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    text_steps = make_pipeline(
        # Older versions of pandas have None in text; an empty text is missing too, as in a csv file and in ONNX.
        *(SimpleImputer(missing_values=none, strategy="constant", fill_value=MISSING) for none in (np.nan, None, "")),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES),
    )
    transformer = ColumnTransformer([("numbers", number_steps, numbers), ("texts", text_steps, texts)])
    # One-hot columns are sparse, which data frames do not take, whatever output scikit-learn was asked for.
    return transformer.set_output(transform="default")
