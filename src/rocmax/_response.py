"""The positive class of a classifier, and its scores for one class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array


def named_pos_label(estimators: Iterable[Any], pos_label: Any = None, caller: str = "pos_label") -> Any:
    """Return the positive class that ``pos_label`` or the estimators name; None if none of them does.

    An estimator names a class by its parameter ``pos_label``. A pipeline has that of its last step, and a search or
    another estimator that wraps estimators has theirs.

    Raises
    ------
    ValueError
        If two of them name different classes.
    """
    first, label = caller, pos_label
    for name, found in (pair for estimator in estimators for pair in _named_by(estimator)):
        if label is None:
            first, label = name, found
        elif found != label:
            raise ValueError(
                f"pos_label must be the same everywhere; got {_text(label)} from {first} and {_text(found)} from "
                f"{name}. Set it in one place only"
            )
    return label


def _named_by(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Yield the positive classes that an estimator and those in it name, each with the name of the one that does."""
    own = getattr(estimator, "pos_label", None)
    if own is not None:
        yield type(estimator).__name__, own
    for inner in _inside(estimator):
        for name, label in _named_by(inner):
            yield name, _in_classes_of(estimator, inner, label)


def _inside(estimator: Any) -> list[Any]:
    """Return the estimators that determine the output of one that wraps them, fitted ones if there are any."""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:
        return [steps[-1][-1]]
    for name in ("best_estimator_", "final_estimator_", "estimators_", "estimator_", "estimator"):
        found = getattr(estimator, name, None)
        if found is not None:
            return found if isinstance(found, list) else [found]
    return []


def _in_classes_of(outer: Any, inner: Any, label: Any) -> Any:
    """Return the label of a class in the outer estimator: bagging, for example, fits with the codes 0 and 1."""
    known, own = (np.asarray(getattr(model, "classes_", ())) for model in (outer, inner))
    if known.shape == own.shape == (2,) and not np.array_equal(known, own) and label in own.tolist():
        return known[own.tolist().index(label)]
    return label


def _text(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


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
