"""ROC curve from labels, scores and weights, with validation of the inputs and the treatment of ties."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocmax._support import Array
from rocmax._validation import check_groups


class Curve(NamedTuple):
    """Weights of the negatives and of the positives above each threshold, from zero to the total weight."""

    fp: Array
    tp: Array

    @property
    def n(self) -> float:
        """Weight of all negatives."""
        return float(self.fp[-1])

    @property
    def m(self) -> float:
        """Weight of all positives."""
        return float(self.tp[-1])


class Blocks(NamedTuple):
    """Weight of each class in each block of tied scores, in descending order; sufficient for every measure."""

    negative: Array
    positive: Array

    def curve(self) -> Curve:
        """Return the cumulative weights of the blocks."""
        fp, tp = (np.concatenate(([0.0], np.cumsum(weight))) for weight in self)
        return Curve(fp, tp)


class RankedRows(NamedTuple):
    """Class, weight and block of tied scores (in descending order) of each row with non-zero weight."""

    positive: NDArray[np.bool_]
    weight: Array
    block: NDArray[np.intp]
    n_blocks: int

    def blocks(self, weight: Array | None = None) -> Blocks:
        """Return the sums of the given weights (by default those of the rows) by class and block."""
        weight = self.weight if weight is None else weight
        place = self.block + self.n_blocks * self.positive
        sums = np.bincount(place, weight, 2 * self.n_blocks).astype(np.float64, copy=False)
        return Blocks(sums[: self.n_blocks], sums[self.n_blocks :])


def distinct_scores(scores: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """Return the distinct scores in ascending order and the sums of their weights, or the numbers of their rows."""
    if weight is None:
        values, counts = np.unique(scores, return_counts=True)
        return values, counts.astype(np.float64)
    values, place = np.unique(scores, return_inverse=True)
    return values, np.bincount(place, weight, values.size).astype(np.float64, copy=False)


def rank_scores(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None = None, pos_label: object = None
) -> RankedRows:
    """Validate scores and find their blocks of ties."""
    labels, scores, weight = _present_rows(y_true, _numbers("y_score", y_score), "y_score", sample_weight)
    _check_finite("y_score", scores)
    positive = labels == _classes(labels, pos_label)[1]
    distinct, rank = np.unique(scores, return_inverse=True)
    return RankedRows(positive, weight, distinct.size - 1 - rank, distinct.size)


def rank_labels(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    *,
    one_class: bool = False,
) -> RankedRows:
    """Validate predicted labels; the rows predicted positive are the first of two blocks.

    With ``one_class``, the true labels may all be equal if the predicted labels or ``pos_label`` determine the positive
    class.
    """
    labels, predicted, weight = _present_rows(y_true, _column("y_pred", y_pred), "y_pred", sample_weight)
    classes = _classes(labels, pos_label, predicted if one_class else None)
    unknown = set(predicted.tolist()) - set(classes)
    if unknown:
        raise ValueError(
            f"y_pred must contain predicted labels, each one of {classes}; got {_few(unknown)} "
            "(this measure is computed from labels, not from scores)"
        )
    return RankedRows(labels == classes[1], weight, (predicted != classes[1]).astype(np.intp), 2)


def rank_decisions(
    y_true: ArrayLike,
    decision: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    *,
    one_class: bool = False,
) -> RankedRows:
    """Validate decision values; rows above 0 are predicted positive and are the first of two blocks."""
    labels, values, weight = _present_rows(y_true, _numbers("decision", decision), "decision", sample_weight)
    _check_finite("decision", values)
    classes = _classes(labels, pos_label, labels if one_class else None)
    return RankedRows(labels == classes[1], weight, (~(values > 0)).astype(np.intp), 2)


def score_blocks(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None = None, pos_label: object = None
) -> Blocks:
    """Return the blocks of tied scores."""
    return rank_scores(y_true, y_score, sample_weight, pos_label).blocks()


def group_numbers(
    groups: ArrayLike | None, sample_weight: ArrayLike | None, y_true: ArrayLike
) -> NDArray[np.intp] | None:
    """Return the groups of the rows with non-zero weight as integers from 0; None without groups."""
    if groups is None:
        return None
    values = check_groups(groups, np.asarray(y_true).size)
    present = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0
    result = np.unique(values[present], return_inverse=True)[1].astype(np.intp)
    if result.max(initial=0) == 0:
        raise ValueError("groups must have at least two groups, which are independent of each other; got one")
    return result


def _present_rows(
    y_true: ArrayLike, values: NDArray[Any], name: str, sample_weight: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """Return labels, values and weights of the rows with non-zero weight."""
    labels = _column("y_true", y_true)
    if labels.size != values.size:
        raise ValueError(f"y_true and {name} must have the same length; got {labels.size} and {values.size}")
    if sample_weight is None:
        return labels, values, np.ones(labels.size)
    weight = _numbers("sample_weight", sample_weight).astype(np.float64)
    if weight.size != labels.size:
        raise ValueError(f"y_true and sample_weight must have the same length; got {labels.size} and {weight.size}")
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError(f"sample_weight must be finite and >= 0; got {weight.min()} to {weight.max()}")
    present = weight > 0
    if weight.size and not present.any():
        raise ValueError(f"sample_weight must contain a value > 0; got {weight.size} zeros")
    return labels[present], values[present], weight[present]


def _classes(labels: NDArray[Any], pos_label: object, predicted: NDArray[Any] | None = None) -> list[Any]:
    """Return the negative and the positive label; if all labels are equal, the predicted labels are used as well."""
    try:
        classes = np.unique(labels).tolist()
        if len(classes) == 1 and predicted is not None:
            return _one_class(classes[0], predicted, pos_label)
    except TypeError:
        raise ValueError(f"the labels in y_true must be of one type; got {_few(labels.tolist())}") from None
    if any(label != label for label in classes):
        raise ValueError("y_true must contain a label in each row; got NaN")
    if len(classes) < 2:
        got = f"one class: {classes}" if classes else "no rows"
        raise ValueError(f"y_true must contain two classes among the rows of non-zero weight; got {got}")
    if len(classes) > 2:
        raise ValueError(f"y_true must contain exactly two classes; got {len(classes)}: {_few(classes)}")
    if pos_label is None:
        found: list[Any] = classes
        return found
    if pos_label not in classes:
        raise ValueError(f"pos_label must be one of the labels {classes}; got {pos_label!r}")
    result: list[Any] = classes if pos_label == classes[1] else classes[::-1]
    return result


def _one_class(label: Any, predicted: NDArray[Any], pos_label: object) -> list[Any]:
    """Return both classes if there is one true label; the other class is None if it is unknown."""
    others = [other for other in np.unique(predicted).tolist() if other != label]
    if pos_label is None and not others:
        raise ValueError(f"pos_label must be given if all labels, true and predicted, are equal; got {label!r} only")
    if pos_label is None:
        return sorted([label, others[0]])
    if pos_label == label:
        return [others[0] if others else None, label]
    return [label, pos_label]


def _numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    array = _column(name, values)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must contain numbers; got {_few(array.tolist())}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must contain real numbers; got values of type {array.dtype}")
    return array


def _check_finite(name: str, scores: NDArray[Any]) -> None:
    bad = scores[~np.isfinite(scores)]
    if bad.size:
        raise ValueError(f"{name} must be finite; got {bad.size} NaN or infinite values, the first is {bad[0]}")


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one value per row; got an array of shape {array.shape}")
    return array


def _few(values: Any) -> str:
    """Show the first few of many values."""
    listed = list(values)
    return ", ".join(map(repr, listed[:5])) + (", ..." if len(listed) > 5 else "")
