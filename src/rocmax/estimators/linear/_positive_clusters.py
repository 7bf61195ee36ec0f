"""Clusters of similar positives: in a narrow window, the best linear score may detect only one of the clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.utils.extmath import row_norms

from rocmax._typing import Array, Bools
from rocmax._validate import CHECKING

Labels = NDArray[np.intp]

# Numbers of clusters to try.
SIZES = (2, 3, 4)
# Minimum mean number of positives per cluster: a starting point fitted to fewer rows is mostly noise.
_FEWEST = 50
# Relative distance, in units of the largest row norm, below which k-means cannot distinguish rows: it uses squares.
_SAME = 1e-6


def group(rows: Any, positive: Bools, weight: Array | None) -> list[Labels]:
    """Cluster the positives by k-means, once for each number of clusters for which there are enough positives.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_positives, n_features)
        Standardized rows of the positives.
    positive : ndarray of bool
        Mask of the positive rows.
    weight : ndarray, default=None
        Sample weights.

    Returns
    -------
    list of ndarray of shape (n_samples,)
        Cluster label of each row, -1 for negatives.
    """
    sizes = [size for size in SIZES if positive.sum() >= _FEWEST * size]
    return [_grouped(rows, positive, weight, KMeans(size, n_init=3, random_state=0)) for size in sizes]


def regroup(rows: Any, positive: Bools, weight: Array | None, labels: Labels, size: int) -> Labels:
    """Cluster a subset of the rows again, initialized with the clusters of all rows.

    The labels of the clusters are preserved. Rows outside the subset affect only the initialization. If a cluster has
    no rows in the subset, the labels are returned unchanged.
    """
    members = [labels[positive] == k for k in range(size)]
    if not all(rows_of.any() for rows_of in members):
        return labels
    centres = np.vstack([np.asarray(rows[rows_of].mean(axis=0)).ravel() for rows_of in members])
    return _grouped(rows, positive, weight, KMeans(size, init=centres, n_init=1, random_state=0))


def _grouped(rows: Any, positive: Bools, weight: Array | None, model: KMeans) -> Labels:
    labels = np.full(positive.size, -1, dtype=np.intp)
    distinct = _distinct(rows)
    if distinct.max() + 1 < model.n_clusters:
        # Each distinct row is a cluster. The remaining clusters are empty and have no starting point.
        labels[positive] = distinct
    else:
        with CHECKING:
            labels[positive] = model.fit_predict(rows, sample_weight=None if weight is None else weight[positive])
    return labels


def _distinct(rows: Any) -> Labels:
    """Return labels that are equal for equal rows, based on their projections on a random direction."""
    direction = np.random.RandomState(0).standard_normal(rows.shape[1])
    places = np.asarray(rows @ (direction / np.linalg.norm(direction)))
    order = np.argsort(places, kind="stable")
    longest = np.sqrt(row_norms(rows, squared=True).max())
    numbers = np.empty(places.size, dtype=np.intp)
    numbers[order] = np.append(0, np.cumsum(np.diff(places[order]) > _SAME * longest))
    return numbers
