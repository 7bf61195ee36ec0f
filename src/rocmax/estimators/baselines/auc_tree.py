"""Decision trees whose splits are chosen by the area under the ROC curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rocmax._typing import Array, Index
from rocmax._validate import TrainingSet, check_number
from rocmax.estimators._base import ScoredClassifier
from rocmax.estimators.baselines._stumps import midpoint

# Gains this close are equal: rounding must not choose between features.
_DUST = 1e-10


@dataclass(frozen=True)
class _Split:
    feature: int
    threshold: float


class AUCTreeClassifier(ScoredClassifier):
    r"""Decision tree that splits where the area under the local ROC curve is largest (AUCsplit).

    A split of a node with ``P`` positives and ``N`` negatives gives a ROC curve of its children, ordered by their share
    of positives. For two children, one of them with ``p`` positives and ``n`` negatives, its area is
    :math:`\frac12 + \frac12 |p/P - n/N|`: the split with the largest one is taken. A leaf scores its rows with the
    Laplace estimate :math:`(p + 1) / (p + n + 2)`.

    The paper's criterion and leaves; binary splits of numeric features at the middle between neighbouring values; no
    pruning, but the two limits below.

    Parameters
    ----------
    max_depth : int, default=None
        Maximum depth of the tree. None means no limit.
    min_samples_leaf : float, default=1
        Minimum total weight (number of rows) in a leaf.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.

    Attributes
    ----------
    feature_ : ndarray of int
        Feature of each node's split; -1 for a leaf.
    split_ : ndarray
        Threshold of each node's split: rows at or below it go left.
    left_, right_ : ndarray of int
        Children of each node; -1 for a leaf.
    value_ : ndarray
        Laplace estimate of each node.
    threshold_ : float
        Score above which a row is positive: the largest TPR - FPR on the training rows.
    classes_ : ndarray of shape (2,)
        The classes.

    References
    ----------
    Ferri, Flach and Hernandez-Orallo, "Learning decision trees using the area under the ROC curve", ICML 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import AUCTreeClassifier
    >>> X, y = make_classification(n_samples=500, weights=[0.9], random_state=0)
    >>> round(AUCTreeClassifier(max_depth=3).fit(X, y).score(X, y), 2)
    0.98
    """

    def __init__(self, max_depth: int | None = None, *, min_samples_leaf: float = 1, pos_label: Any = None) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        if self.max_depth is not None:
            check_number("max_depth", self.max_depth, above=0, integer=True)
        check_number("min_samples_leaf", self.min_samples_leaf, above=0.0)

    def _learn(self, data: TrainingSet) -> Array:
        weight = np.ones(data.positive.size) if data.weight is None else data.weight
        gain, cost = weight * data.positive, weight * ~data.positive
        feature: list[int] = []
        split: list[float] = []
        left: list[int] = []
        right: list[int] = []
        value: list[float] = []
        # Rows, depth, and where the parent notes the number of this node.
        waiting: list[tuple[Index, int, list[int] | None, int]] = [(np.arange(weight.size), 0, None, 0)]
        while waiting:
            rows, depth, note, parent = waiting.pop()
            node = len(value)
            if note is not None:
                note[parent] = node
            p, n = float(gain[rows].sum()), float(cost[rows].sum())
            value.append((p + 1.0) / (p + n + 2.0))
            left.append(-1)
            right.append(-1)
            limit = self.max_depth is not None and depth >= self.max_depth
            found = None if limit else best_split(data.X[rows], gain[rows], cost[rows], self.min_samples_leaf)
            feature.append(-1 if found is None else found.feature)
            split.append(0.0 if found is None else found.threshold)
            if found is not None:
                low = data.X[rows, found.feature] <= found.threshold
                waiting.append((rows[~low], depth + 1, right, node))
                waiting.append((rows[low], depth + 1, left, node))
        self.feature_, self.split_ = np.array(feature), np.array(split)
        self.left_, self.right_, self.value_ = np.array(left), np.array(right), np.array(value)
        return self._scores(data.X)

    def _scores(self, X: Any) -> Array:
        return self.value_[self._leaves(X)]

    def _leaves(self, X: Array) -> Index:
        """Return the leaf of each row."""
        node = np.zeros(X.shape[0], dtype=np.intp)
        moving = np.flatnonzero(self.feature_[node] >= 0)
        while moving.size:
            at = node[moving]
            low = X[moving, self.feature_[at]] <= self.split_[at]
            node[moving] = np.where(low, self.left_[at], self.right_[at])
            moving = moving[self.feature_[node[moving]] >= 0]
        return node


def best_split(X: Array, gain: Array, cost: Array, least: float) -> _Split | None:
    """Return the split with the largest local AUC; None if the node is pure or nothing can be split.

    Of equals, the first feature and its lowest threshold.
    """
    positives, negatives = gain.sum(), cost.sum()
    if positives <= 0 or negatives <= 0:
        return None
    order = np.argsort(X, axis=0, kind="stable")
    placed = np.take_along_axis(X, order, axis=0)
    p, n = np.cumsum(gain[order], axis=0)[:-1], np.cumsum(cost[order], axis=0)[:-1]
    low = p + n
    # A sum of weights may fall short of a whole number by rounding.
    allowed = (np.diff(placed, axis=0) > 0) & (low >= least - 1e-9) & (positives + negatives - low >= least - 1e-9)
    area = np.where(allowed, np.abs(p / positives - n / negatives), -1.0).T
    if area.max(initial=-1.0) <= _DUST:
        return None
    feature, place = np.unravel_index(int(np.argmax(area >= area.max() - _DUST)), area.shape)
    return _Split(int(feature), midpoint(placed[place, feature], placed[place + 1, feature]))
