"""Groups of features; each feature belongs to exactly one group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def group_labels(groups: Any, n_features: int) -> NDArray[np.intp]:
    """Return the index of the group of each feature, from consecutive indices 0, 1, ....

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
        raise ValueError("groups must be one label per feature, or a list of index arrays; got None")
    items = list(groups)
    if not items or np.ndim(items[0]) == 0:
        return _from_labels(items, n_features)
    return _from_indices(items, n_features)


def _from_labels(labels: list[Any], n_features: int) -> NDArray[np.intp]:
    if len(labels) != n_features or any(np.ndim(label) for label in labels):
        raise ValueError(
            f"groups must be {n_features} labels, one per feature, or a list of index arrays; got {len(labels)} labels"
        )
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.intp)


def _from_indices(groups: list[Any], n_features: int) -> NDArray[np.intp]:
    arrays = [np.asarray(group) for group in groups]
    for p, group in enumerate(arrays):
        if group.ndim != 1 or group.size == 0 or group.dtype.kind not in "iu":
            raise ValueError(
                f"groups must be non-empty one-dimensional arrays of feature indices; got group {p} with dtype "
                f"{group.dtype} and shape {group.shape}"
            )
    index = np.concatenate(arrays)
    if index.min() < 0 or index.max() >= n_features:
        raise ValueError(
            f"feature indices in groups must be between 0 and {n_features - 1}; got {index.min()} to {index.max()}"
        )
    count = np.bincount(index, minlength=n_features)
    if (count > 1).any():
        raise ValueError(f"groups must not overlap; got features in several groups: {np.flatnonzero(count > 1)[:5]}")
    if (count == 0).any():
        raise ValueError(f"groups must cover all features; got features in no group: {np.flatnonzero(count == 0)[:5]}")
    label = np.empty(n_features, dtype=np.intp)
    label[index] = np.repeat(np.arange(len(arrays)), [group.size for group in arrays])
    return label
