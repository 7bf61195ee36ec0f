"""Greedy linear combination of features for the partial AUC."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocmax._rounding import join_ties
from rocmax._support import Array, check_window
from rocmax._validation import TrainingSet, check_number
from rocmax.base import ScoredClassifier
from rocmax.measures import Measure, PartialAUCMeasure
from rocmax.papers.trees import standardized


class GreedyPairClassifier(ScoredClassifier):
    r"""Greedy linear combination of features for the partial AUC.

    The features are standardized, the sign of each is chosen to maximize its partial AUC, and they are sorted by their
    partial AUC. Starting from the best feature, the current combination ``s`` and the next feature ``x`` are combined
    to :math:`(1 - \lambda) s + \lambda x` with the :math:`\lambda \in \{0, 1/k, 2/k, \dots, 1\}` that maximizes the
    partial AUC on the training rows; the smallest in case of ties. Therefore the partial AUC on the training rows does
    not decrease.

    Known from the literature: the method finds a linear combination by combining two scores at a time for the largest
    partial AUC, with one parameter (100 in Narasimhan and Agarwal (2017)) for the number of intervals. The order, the
    choice of the signs, and convex combinations of standardized scores are choices of this implementation. The original
    method combines classifiers; here features are combined, as in Narasimhan and Agarwal (2017). With
    ``standardize=False`` and ``orient=False``, the features are combined without changes.

    Parameters
    ----------
    min_fpr, max_fpr
    n_steps : int, default=100
        Number of intervals ``k`` of the grid for each weight.
    standardize : bool, default=True
        Whether to standardize the features.
    orient : bool, default=True
        Whether to choose the signs of the features. Without it, all weights are at least 0 and a feature whose low
        values indicate positives cannot contribute.
    pos_label

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features; positive scores indicate ``classes_[1]``.
    order_ : ndarray of shape (n_features,)
        The features in the order in which they were added.
    train_partial_auc_ : ndarray of shape (n_features,)
        Partial AUC of the training rows after each feature.
    threshold_ : float
        The lowest threshold whose false-positive rate on the training rows is at most ``max_fpr``.
    classes_

    References
    ----------
    Ricamato and Tortorella, "Partial AUC maximization in a linear combination of dichotomizers", Pattern Recognition
    2011.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import GreedyPairClassifier
    >>> X, y = make_classification(n_samples=500, n_features=6, weights=[0.9], random_state=0)
    >>> model = GreedyPairClassifier(max_fpr=0.1).fit(X, y)
    >>> bool(model.train_partial_auc_[-1] >= model.train_partial_auc_[0])
    True
    """

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        *,
        n_steps: int = 100,
        standardize: bool = True,
        orient: bool = True,
        pos_label: Any = None,
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.n_steps = n_steps
        self.standardize = standardize
        self.orient = orient
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        check_window(self.min_fpr, self.max_fpr)
        check_number("n_steps", self.n_steps, above=0, integer=True)

    def _learn(self, data: TrainingSet) -> Array:
        Z, scale = standardized(data) if self.standardize else (data.X, np.ones(data.X.shape[1]))
        sides = (1.0, -1.0) if self.orient else (1.0,)
        alone = np.array([[self._area(data, side * column) for side in sides] for column in Z.T])
        turned = np.where(alone[:, -1] > alone[:, 0] + 1e-12, -1.0, 1.0)
        self.order_ = np.argsort(-np.round(alone.max(axis=1), 12), kind="stable")
        coefficients, trace = np.zeros(Z.shape[1]), []
        scores = np.zeros(data.positive.size)
        for place, feature in enumerate(self.order_):
            column = turned[feature] * Z[:, feature]
            share, area = (1.0, alone[feature].max()) if place == 0 else self._best_share(data, scores, column)
            coefficients *= 1.0 - share
            coefficients[feature] = share * turned[feature] * scale[feature]
            scores = (1.0 - share) * scores + share * column
            trace.append(area)
        self.train_partial_auc_ = np.array(trace)
        self.coef_ = self._sign() * coefficients[np.newaxis, :]
        return self._scores(data.X)

    def _best_share(self, data: TrainingSet, scores: Array, column: Array) -> tuple[float, float]:
        shares = np.linspace(0.0, 1.0, self.n_steps + 1)
        areas = np.array([self._area(data, (1.0 - share) * scores + share * column) for share in shares])
        best = int(np.argmax(areas >= areas.max() - 1e-12))
        return float(shares[best]), float(areas[best])

    def _area(self, data: TrainingSet, scores: Array) -> float:
        return self._measure(data.positive, join_ties(scores), data.weight, True)

    def _scores(self, X: Any) -> Array:
        result: Array = self._sign() * (X @ self.coef_[0])
        return result

    def _make_measure(self) -> Measure:
        return PartialAUCMeasure(self.min_fpr, self.max_fpr)
