"""Labels and weights of many rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax.data.disk import DiskArray
from rocmax.data.errors import DataError

# Rows whose labels are encoded at a time, and the number of distinct labels that fit into a byte.
_BLOCK, _MOST_CLASSES = 1 << 20, 255


class LabelCodes:
    """Labels of many rows, stored as one byte per row."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._codes: list[NDArray[np.uint8]] = []

    def add(self, y: NDArray[Any]) -> None:
        """Add the labels of some rows."""
        values, place = np.unique(y, return_inverse=True)
        for value in values.tolist():
            self._known.setdefault(value, len(self._known))
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
        labels = np.asarray(y)
    if labels.shape != (size,):
        raise DataError(f"y must have shape ({size},), one label per row; got {labels.shape}")
    codes = LabelCodes()
    for start in range(0, size, _BLOCK):
        stop = min(start + _BLOCK, size)
        part = labels.read(start, stop) if isinstance(labels, DiskArray) else labels[start:stop]
        if part.dtype.kind == "f" and np.isnan(part).any():
            raise DataError(f"y must have a label for each row; got NaN in row {start + int(np.isnan(part).argmax())}")
        codes.add(part)
    return codes.finish()


def vector(name: str, values: Any, size: int) -> NDArray[Any]:
    """Return one number per row."""
    if isinstance(values, str | Path):
        values = np.load(values, allow_pickle=False)
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (size,):
        raise DataError(f"{name} must have shape ({size},), one value per row; got {found.shape}")
    return found
