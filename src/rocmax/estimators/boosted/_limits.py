"""Validation of the inputs of the tree engines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._validate import TrainingSet

# Largest absolute value for XGBoost, which computes in single precision, and largest ratio of weights.
_LARGEST_SINGLE = 1e37


def check_limits(data: TrainingSet, engine: str) -> None:
    """Raise ValueError if values or weights do not fit into the single precision of the engines."""
    if engine == "xgboost":
        values = data.X.data if sparse.issparse(data.X) else data.X
        present = values[~np.isnan(values)]
        largest = float(np.abs(present).max()) if present.size else 0.0
        if largest > _LARGEST_SINGLE:
            raise ValueError(
                f'absolute values in X must be at most {_LARGEST_SINGLE:g} with engine="xgboost"; got {largest:.3g}'
            )
    if data.weight is not None:
        mean, least = float(data.weight.mean()), float(data.weight.min())
        if least < mean / _LARGEST_SINGLE:
            raise ValueError(
                f"sample_weight must be zero or at least {1 / _LARGEST_SINGLE:g} times its mean, because the engines "
                f"compute in single precision; got a mean of {mean:.3g} and a least value of {least:.3g}. Use zero to "
                "leave out a row"
            )


def directions(given: Any, n_features: int, names: NDArray[Any] | None, categorical: list[int]) -> list[int] | None:
    """Return the direction of each feature from the parameter ``monotonic_cst``, or None without constraints."""
    if given is None:
        return None
    if isinstance(given, dict):
        known = [] if names is None else list(names)
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"monotonic_cst must have names of columns of X as keys; got {unknown[0]!r}")
        given = [given.get(name, 0) for name in known]
    found = np.asarray(given)
    if found.shape != (n_features,) or not np.isin(found, (-1, 0, 1)).all():
        raise ValueError(f"monotonic_cst must have a value -1, 0 or 1 for each of {n_features} features; got {given!r}")
    constrained = [i for i in categorical if found[i]]
    if constrained:
        raise ValueError(
            f"monotonic_cst must be 0 for categorical columns; got {found[constrained[0]]} for column {constrained[0]}"
        )
    return [int(value) for value in found]
