"""Scores of a classifier for one class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array


def class_scores(estimator: Any, X: Any, index: int) -> Array:
    """Return scores for ``classes_[index]`` from ``decision_function`` or, if it does not exist, ``predict_proba``.

    NaN and infinite scores are an error: comparisons with NaN are false, so every threshold would seem to reject it.
    """
    if hasattr(estimator, "decision_function"):
        name, scores = "decision_function", towards(estimator.decision_function(X), index)
    else:
        name, scores = "predict_proba", towards(estimator.predict_proba(X), index)
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise ValueError(
            f"{name} of {type(estimator).__name__} must give finite scores; got {bad.size} NaN or infinite values in "
            f"{scores.size} rows, the first is {scores[bad[0]]} in row {bad[0]}. Check the features of these rows and "
            "how the estimator was fitted"
        )
    return scores


def towards(response: NDArray[Any], index: int) -> Array:
    """Convert decision values or probabilities to scores for ``classes_[index]``, or such scores to decision values."""
    if response.ndim == 2:
        return response[:, index].astype(np.float64)
    return direction(index) * response.astype(np.float64, copy=False)


def direction(index: int) -> float:
    """Return the sign that converts decision values (positive: ``classes_[1]``) to scores for ``classes_[index]``."""
    return 1.0 if index == 1 else -1.0
