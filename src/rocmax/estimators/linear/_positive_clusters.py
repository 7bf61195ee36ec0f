"""Groups of like positives: where a window is narrow, a linear score may do best by finding one of them only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.utils.extmath import row_norms

from rocmax._typing import Array, Bools
from rocmax._validate import CHECKING

Labels = NDArray[np.intp]

# Numbers of groups that are tried.
SIZES = (2, 3, 4)
# Fewest positives per group, on average: a start fitted to fewer is mostly noise.
_FEWEST = 50
# Rows nearer to each other than this share of the longest row are the same to k-means, which squares distances.
_SAME = 1e-6


def group(X: Any, positive: Bools, weight: Array | None) -> list[Labels]:
    """Split the positives by k-means, once for each number of groups that they suffice for.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Standardised rows.
    positive : ndarray of bool
        Which rows are positive.
    weight : ndarray, default=None
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
    rows = X[positive]
    distinct = _distinct(rows)
    if distinct.max() + 1 < model.n_clusters:
        # Each kind of row is a group; the other groups are empty, and have no start.
        labels[positive] = distinct
    else:
        with CHECKING:
            labels[positive] = model.fit_predict(rows, sample_weight=None if weight is None else weight[positive])
    return labels


def _distinct(rows: Any) -> Labels:
    """Return numbers that are equal for equal rows: their places along a random direction."""
    direction = np.random.RandomState(0).standard_normal(rows.shape[1])
    places = np.asarray(rows @ (direction / np.linalg.norm(direction)))
    order = np.argsort(places, kind="stable")
    longest = np.sqrt(row_norms(rows, squared=True).max())
    numbers = np.empty(places.size, dtype=np.intp)
    numbers[order] = np.append(0, np.cumsum(np.diff(places[order]) > _SAME * longest))
    return numbers
