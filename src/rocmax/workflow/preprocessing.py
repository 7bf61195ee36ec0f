"""Column kinds and the preprocessing of each kind."""

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


def preprocessing(kinds: dict[str, str] | None) -> Any:
    """Return the preprocessing: numbers are imputed and standardized, text is one-hot encoded.

    Parameters
    ----------
    kinds : dict or None
        Kind of each column, as returned by :func:`column_kinds`. The table to fit must have exactly these columns in
        this order; later tables are matched by column name. None for a sparse matrix, which is only scaled.

    Returns
    -------
    transformer
        Unfitted transformer.
    """
    if kinds is None:
        return MaxAbsScaler().set_output(transform="default")
    # Positions instead of names: ColumnTransformer looks up each name with list.index, which takes quadratic time.
    numbers = [i for i, kind in enumerate(kinds.values()) if kind == "number"]
    texts = [i for i, kind in enumerate(kinds.values()) if kind == "text"]
    number_steps = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    text_steps = make_pipeline(
        # Older versions of pandas use None for missing text. The empty string is missing too, as in csv and ONNX.
        *(SimpleImputer(missing_values=none, strategy="constant", fill_value=MISSING) for none in (np.nan, None, "")),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES),
    )
    transformer = ColumnTransformer([("numbers", number_steps, numbers), ("texts", text_steps, texts)])
    # One-hot columns are sparse, which data frames do not support: ignore the global output setting of scikit-learn.
    return transformer.set_output(transform="default")
