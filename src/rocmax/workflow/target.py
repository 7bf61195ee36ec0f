"""Labels of a table as text, and the choice of the positive class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._messages import Message, Parameter, ParameterError
from rocmax.data import DataError

# Unambiguous pairs of labels; the second one is positive.
_CLEAR = (
    ("0", "1"),
    ("-1", "1"),
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("negative", "positive"),
    ("neg", "pos"),
)


class Target(NamedTuple):
    """Labels as text, the names of the two classes, and the type of the labels in the table."""

    labels: NDArray[Any]
    positive: str
    negative: str
    kind: str = "text"

    @property
    def is_positive(self) -> NDArray[np.bool_]:
        """Whether each row belongs to the positive class."""
        result: NDArray[np.bool_] = self.labels == self.positive
        return result


def make_target(values: Any, positive: Any, name: str = "the target") -> Target:
    """Return the binary target; with more than two labels, the positive class against the rest."""
    labels = as_text(values)
    positive = None if positive is None else as_text(np.asarray([positive]))[0]
    distinct, counts = np.unique(labels, return_counts=True)
    listed = ", ".join(f"{label!r} ({count})" for label, count in zip(distinct[:10], counts[:10], strict=True))
    listed += f", ... ({distinct.size} in all)" if distinct.size > 10 else ""
    if distinct.size < 2:
        raise DataError(f"{name} must have at least two values; got one class only: {listed}")
    if positive is None:
        pair = [label for label in _CLEAR if {text.lower() for text in distinct} == set(label)]
        if distinct.size > 2 or not pair:
            found = f"{name} has the values {listed}; select the positive one with "
            raise ParameterError(Message(found, Parameter("positive", ...)))
        positive = next(text for text in distinct if text.lower() == pair[0][1])
    chosen = (
        [text for text in distinct if text == positive]
        or [text for text in distinct if text.lower() == positive.lower()]
        or [text for text in distinct if same_label(text, positive)]
    )
    if not chosen:
        raise DataError(f"{name} has no value {positive!r}; its values are {listed}")
    if len(chosen) > 1:
        choices = ", ".join(map(repr, chosen))
        raise DataError(f"{name} has no value {positive!r}, but {choices}, which differ in case; pass one of them")
    rest = [str(text) for text in distinct if text != chosen[0]]
    negative = rest[0] if len(rest) == 1 else f"not {chosen[0]}"
    kind = label_kind(values) if len(rest) == 1 else "text"
    return Target(np.where(labels == chosen[0], chosen[0], negative), str(chosen[0]), negative, kind)


def label_kind(values: NDArray[Any]) -> str:
    """Return the type of labels: "integer", "number", "boolean" or "text"."""
    by_code = {"i": "integer", "u": "integer", "f": "number", "b": "boolean"}
    return by_code.get(values.dtype.kind, "text")


def typed_labels(labels: NDArray[Any], kind: str) -> NDArray[Any]:
    """Return labels, given as text, in the type of the target."""
    texts = labels.tolist()
    if kind == "integer":
        return np.array([int(text) for text in texts])
    if kind == "number":
        return np.array([float(text) for text in texts])
    if kind == "boolean":
        return np.array([text == "True" for text in texts])
    return np.array([str(text) for text in texts], dtype=object)


def same_label(first: str, second: str) -> bool:
    """Return whether two labels are the same number or truth value, such as 1, 1.0 and true."""
    values = [_value(text) for text in (first, second)]
    return values[0] is not None and values[0] == values[1]


def _value(text: str) -> float | None:
    words = {"true": 1.0, "false": 0.0}
    try:
        return words[text.lower()] if text.lower() in words else float(text)
    except ValueError:
        return None


def known_target(values: Any, positive: str, negative: str, name: str = "the target") -> Target:
    """Return the target for the classes of a fitted model."""
    target = Target(known_labels(values, positive, negative, name), positive, negative)
    if target.is_positive.all() or not target.is_positive.any():
        got = f"one class only: {str(target.labels[0])!r} ({target.labels.size} rows)"
        raise DataError(f"{name} must have both classes, {positive!r} and {negative!r}; got {got}")
    return target


def known_labels(values: Any, positive: str, negative: str, name: str = "the target") -> NDArray[Any]:
    """Return labels as the names of the classes of a fitted model."""
    labels = as_text(values)
    for text in sorted(set(labels.tolist()) - {positive, negative}):
        same = [label for label in (positive, negative) if same_label(text, label)]
        if same:
            labels = np.where(labels == text, same[0], labels)
    if negative != f"not {positive}":
        strange = sorted(set(labels.tolist()) - {positive, negative})
        if strange:
            raise DataError(
                f"the labels in {name} must be those of the model, {[negative, positive]}; got {strange[:5]}"
            )
    return np.where(labels == positive, positive, negative)


def as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Convert labels to text; numbers are exact, and integers have no decimal point."""
    if values.dtype.kind == "f":
        distinct, place = np.unique(values, return_inverse=True)
        texts = [np.format_float_positional(value, trim="-") for value in distinct + 0.0]  # -0 is 0
        return np.array(texts, dtype=object)[place]
    return np.array([str(value) for value in values.tolist()], dtype=object)
