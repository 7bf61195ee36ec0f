"""Groups of features: every feature in one group and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def group_labels(groups: Any, n_features: int) -> NDArray[np.intp]:
    """Return the number of the group of each feature, 0, 1, ... without holes.

    Parameters
    ----------
    groups : array-like of shape (n_features,), or list of array-likes of int
        One label per feature (numbers or words), or one array of feature indices per group. The indices must name
        every feature once.
    n_features : int
        Number of features.

    Examples
    --------
    >>> from rocmax.penalties import group_labels
    >>> group_labels([[0, 2], [1]], 3)
    array([0, 1, 0])
    >>> group_labels(["dose", "age", "dose"], 3)
    array([1, 0, 1])
    """
    if groups is None:
        raise ValueError("groups needs one label per feature, or a list of index arrays; got None")
    items = list(groups)
    if not items or np.ndim(items[0]) == 0:
        return _from_labels(items, n_features)
    return _from_indices(items, n_features)


def _from_labels(labels: list[Any], n_features: int) -> NDArray[np.intp]:
    if len(labels) != n_features or any(np.ndim(label) for label in labels):
        raise ValueError(
            f"groups needs {n_features} labels, one per feature, or a list of index arrays; got {len(labels)} labels"
        )
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.intp)


def _from_indices(groups: list[Any], n_features: int) -> NDArray[np.intp]:
    arrays = [np.asarray(group) for group in groups]
    for p, group in enumerate(arrays):
        if group.ndim != 1 or group.size == 0 or group.dtype.kind not in "iu":
            raise ValueError(
                f"groups needs arrays of feature indices, one dimension, none empty; group {p} has dtype {group.dtype} "
                f"and shape {group.shape}"
            )
    index = np.concatenate(arrays)
    if index.min() < 0 or index.max() >= n_features:
        raise ValueError(f"groups needs feature indices from 0 to {n_features - 1}; got {index.min()} to {index.max()}")
    count = np.bincount(index, minlength=n_features)
    if (count > 1).any():
        raise ValueError(f"groups must not overlap; these features are in several: {np.flatnonzero(count > 1)[:5]}")
    if (count == 0).any():
        raise ValueError(f"groups must cover all features; these are in none: {np.flatnonzero(count == 0)[:5]}")
    label = np.empty(n_features, dtype=np.intp)
    label[index] = np.repeat(np.arange(len(arrays)), [group.size for group in arrays])
    return label
