"""Decision tree with splits chosen by the area under the ROC curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rocmax._typing import Array, Index
from rocmax._validate import TrainingSet, check_number
from rocmax.estimators.base import ScoredClassifier
from rocmax.estimators.baselines._stumps import midpoint

# Tolerance within which gains are considered equal, so that rounding errors do not affect the choice.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class _Split:
    feature: int
    threshold: float


class AUCTreeClassifier(ScoredClassifier):
    r"""Decision tree with splits that maximize the area under the local ROC curve (AUCsplit).

    A split of a node with ``P`` positives and ``N`` negatives defines a ROC curve of its children, ordered by their
    fraction of positives. For two children, one of them with ``p`` positives and ``n`` negatives, the area under the
    curve is :math:`\frac12 + \frac12 |p/P - n/N|`; the split with the largest area is chosen. The score of a leaf is
    the Laplace estimate :math:`(p + 1) / (p + n + 2)`.

    The criterion and the scores of the leaves are those of the paper. Splits of numeric features are binary, at the
    midpoint between neighboring values. There is no pruning; the size is limited by the two parameters below.

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
        Feature used by the split of each node; -1 for a leaf.
    split_ : ndarray
        Threshold of the split of each node: rows at or below it go to the left child.
    left_, right_ : ndarray of int
        Children of each node; -1 for a leaf.
    value_ : ndarray
        Laplace estimate of each node.
    threshold_ : float
        Score above which a row is predicted positive; it maximizes TPR - FPR on the training rows.
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

    def _remedy(self) -> str:
        return (
            "The tree has no split: a leaf must have a total weight of at least "
            f"min_samples_leaf={self.min_samples_leaf:g}. Decrease it, divide the weights by their "
            "mean, or check that the features differ between the classes."
        )

    def _learn(self, data: TrainingSet) -> Array:
        weight = np.ones(data.positive.size) if data.weight is None else data.weight
        gain, cost = weight * data.positive, weight * ~data.positive
        feature: list[int] = []
        split: list[float] = []
        left: list[int] = []
        right: list[int] = []
        value: list[float] = []
        # Rows, depth, and the list and position in which to store the index of the node.
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
    """Return the split with the largest local AUC; None if the node is pure or no split is possible.

    Ties are resolved by the first feature and its lowest threshold.
    """
    positives, negatives = gain.sum(), cost.sum()
    if positives <= 0 or negatives <= 0:
        return None
    order = np.argsort(X, axis=0, kind="stable")
    placed = np.take_along_axis(X, order, axis=0)
    p, n = np.cumsum(gain[order], axis=0)[:-1], np.cumsum(cost[order], axis=0)[:-1]
    low = p + n
    # Tolerance for rounding errors in sums of weights.
    allowed = (np.diff(placed, axis=0) > 0) & (low >= least - 1e-9) & (positives + negatives - low >= least - 1e-9)
    area = np.where(allowed, np.abs(p / positives - n / negatives), -1.0).T
    if area.max(initial=-1.0) <= _ROUNDING:
        return None
    feature, place = np.unravel_index(int(np.argmax(area >= area.max() - _ROUNDING)), area.shape)
    return _Split(int(feature), midpoint(placed[place, feature], placed[place + 1, feature]))
