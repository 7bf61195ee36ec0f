"""Labels and weights of many rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._validate import WEIGHT_ADVICE, WEIGHT_SIZE, extreme_weights
from rocmax.data.disk import DiskArray
from rocmax.data.errors import DataError

# Rows whose labels or weights are processed at a time, and the number of distinct labels that fit into a byte.
_BLOCK, _MOST_CLASSES = 1 << 20, 255


class LabelCodes:
    """Labels of many rows, stored as one byte per row."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._codes: list[NDArray[np.uint8]] = []

    def add(self, y: NDArray[Any], name: str = "y") -> None:
        """Add the labels of some rows; ``name`` is their name in messages."""
        try:
            values, place = np.unique(y, return_inverse=True)
        except TypeError:
            raise _mixed(name, y.tolist()) from None
        for value in values.tolist():
            self._known.setdefault(value, len(self._known))
        if len({isinstance(value, str) for value in self._known}) > 1:
            raise _mixed(name, self._known)
        if len(self._known) > _MOST_CLASSES:
            raise ValueError(f"Only binary classification is supported. Got more than {_MOST_CLASSES} classes")
        codes = np.array([self._known[value] for value in values.tolist()], dtype=np.uint8)
        self._codes.append(codes[place])

    def finish(self) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Return the distinct labels in ascending order, and the index of each label."""
        found = np.array(list(self._known))
        order = np.argsort(found)
        rank = np.empty(order.size, dtype=np.uint8)
        rank[order] = np.arange(order.size)
        return found[order], rank[np.concatenate(self._codes)] if self._codes else np.empty(0, dtype=np.uint8)


def encoded(y: Any, size: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Return the distinct labels in ascending order, and the index of each label."""
    labels: Any = DiskArray.open(y) if isinstance(y, str | Path) else DiskArray.of_map(y)
    if labels is None:
        # NumPy would turn the numbers in a list with numbers and text into text.
        labels = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if labels.shape != (size,):
        raise DataError(f"y must have shape ({size},), one label per row; got {labels.shape}")
    codes = LabelCodes()
    for start, part in _parts(labels):
        missing = _missing(part)
        if missing.any():
            row = int(missing.argmax())
            raise DataError(f"y must have a label for each row; got {part[row]} in row {start + row}")
        codes.add(part)
    return codes.finish()


def open_weights(values: Any, size: int) -> NDArray[np.float64] | DiskArray:
    """Return one weight per row, which stay on disk if they are there."""
    found: Any = DiskArray.open(values) if isinstance(values, str | Path) else DiskArray.of_map(values)
    try:
        found = np.asarray(values, dtype=np.float64) if found is None else found
    except (TypeError, ValueError):
        found = np.asarray(values)
    if found.dtype.kind not in "fiub":
        raise DataError(f"sample_weight must contain numbers; got dtype {found.dtype}")
    if found.shape != (size,):
        raise DataError(f"sample_weight must have shape ({size},), one value per row; got {found.shape}")
    for start, part in _parts(found):
        check_weights(part, "sample_weight", start)
    checked: NDArray[np.float64] | DiskArray = found
    return checked


def check_weights(values: NDArray[Any], name: str, first: int = 0, counted: str = "") -> None:
    """Raise DataError for a bad weight or one of extreme size; ``first`` is the number of the first row."""
    bad = ~((values >= 0) & (values < np.inf))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{name} must be finite, >= 0 and not all zero; got {values[row]} in row {first + row}{counted}"
        )
    extreme = extreme_weights(values)
    if extreme.any():
        row = int(extreme.argmax())
        raise DataError(
            f"{name} must be {WEIGHT_SIZE}; got {values[row]} in row {first + row}{counted}. {WEIGHT_ADVICE}"
        )


def _parts(values: NDArray[Any] | DiskArray) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the number of the first row and the values of some rows at a time."""
    for start in range(0, values.shape[0], _BLOCK):
        stop = min(start + _BLOCK, values.shape[0])
        yield start, values.read(start, stop) if isinstance(values, DiskArray) else values[start:stop]


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of labels that are NaN, None or missing in the sense of pandas."""
    if labels.dtype.kind != "O":
        missing: NDArray[np.bool_] = labels != labels
        return missing
    return np.array([value is None or type(value).__name__ == "NAType" or value != value for value in labels])


def _mixed(name: str, labels: Iterable[Any]) -> DataError:
    kinds = sorted({type(label).__name__ for label in labels})
    return DataError(f"{name} must have labels of one type, numbers or text; got {' and '.join(kinds)}")
