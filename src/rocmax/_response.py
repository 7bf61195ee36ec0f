"""Scores of any classifier in the direction of one class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array


def class_scores(estimator: Any, X: Any, index: int) -> Array:
    """Score each row for ``classes_[index]``: by ``decision_function``, or ``predict_proba`` where there is none."""
    if hasattr(estimator, "decision_function"):
        return towards(estimator.decision_function(X), index)
    return towards(estimator.predict_proba(X), index)


def towards(response: NDArray[Any], index: int) -> Array:
    """Turn what a classifier answers into scores for ``classes_[index]``, or such scores into decisions."""
    if response.ndim == 2:
        return response[:, index].astype(np.float64)
    return direction(index) * response.astype(np.float64, copy=False)


def direction(index: int) -> float:
    """Return the factor between decisions, positive for ``classes_[1]``, and scores for ``classes_[index]``."""
    return 1.0 if index == 1 else -1.0
