"""Scores of a classifier for one class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array


def class_scores(estimator: Any, X: Any, index: int) -> Array:
    """Return scores for ``classes_[index]`` from ``decision_function`` or, if it does not exist, ``predict_proba``."""
    if hasattr(estimator, "decision_function"):
        return towards(estimator.decision_function(X), index)
    return towards(estimator.predict_proba(X), index)


def towards(response: NDArray[Any], index: int) -> Array:
    """Convert decision values or probabilities to scores for ``classes_[index]``, or such scores to decision values."""
    if response.ndim == 2:
        return response[:, index].astype(np.float64)
    return direction(index) * response.astype(np.float64, copy=False)


def direction(index: int) -> float:
    """Return the sign that converts decision values (positive: ``classes_[1]``) to scores for ``classes_[index]``."""
    return 1.0 if index == 1 else -1.0
