"""Groups of like positives: where a window is narrow, a linear score may do best by finding one of them only."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.intp]

# Numbers of groups that are tried.
SIZES = (2, 3, 4)
# Fewest positives per group, on average: a start fitted to fewer is mostly noise.
_FEWEST = 50


def group(X: Any, positive: Bools, weight: Array | None) -> list[Labels]:
    """Split the positives by k-means, once for each number of groups that they suffice for.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Standardised rows.
    positive : ndarray of bool
        Which rows are positive.
    weight : ndarray, optional
        Weights of the rows.

    Returns
    -------
    list of ndarray of shape (n_samples,)
        The group of each row, -1 for negatives.
    """
    sizes = [size for size in SIZES if positive.sum() >= _FEWEST * size]
    return [_grouped(X, positive, weight, KMeans(size, n_init=3, random_state=0)) for size in sizes]


def regroup(X: Any, positive: Bools, weight: Array | None, labels: Labels, size: int) -> Labels:
    """Group some of the rows anew, beginning with the groups that all rows made.

    The groups keep their numbers, and rows that are not among these have no say beyond the beginning. If a group has
    lost all its rows, the others stay as they are.
    """
    rows = X[positive]
    members = [labels[positive] == k for k in range(size)]
    if not all(rows_of.any() for rows_of in members):
        return labels
    centres = np.vstack([np.asarray(rows[rows_of].mean(axis=0)).ravel() for rows_of in members])
    return _grouped(X, positive, weight, KMeans(size, init=centres, n_init=1, random_state=0))


def _grouped(X: Any, positive: Bools, weight: Array | None, model: KMeans) -> Labels:
    labels = np.full(positive.size, -1, dtype=np.intp)
    with warnings.catch_warnings():
        # Fewer distinct rows than groups leave groups empty, and those have no start.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels[positive] = model.fit_predict(X[positive], sample_weight=None if weight is None else weight[positive])
    return labels
