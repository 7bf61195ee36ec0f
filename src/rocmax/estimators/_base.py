"""What all classifiers here do with a decision: predict, and be judged by their measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rocmax._rounding import join_ties

Array = NDArray[np.float64]


class Decision(ABC):
    """Predictions and score from ``decision_function``; comes before ``BaseEstimator`` among the bases."""

    classes_: NDArray[Any]
    pos_label: Any
    takes_sparse: ClassVar[bool]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of BaseEstimator, which follows this class
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = self.takes_sparse
        return tags

    @abstractmethod
    def decision_function(self, X: Any) -> Array:
        """Return the decision of each row; positive values speak for ``classes_[1]``."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(np.intp)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the measure that this estimator trains for, on the given rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            The measure.
        """
        decision = self.decision_function(X)
        decision = join_ties(decision, self._decision_error(X, decision))
        positive = self.classes_[1] if self.pos_label is None else self.pos_label
        if positive != self.classes_[1]:
            decision = -decision
        return self._measure(y, decision, sample_weight, positive)

    @abstractmethod
    def _decision_error(self, X: Any, decision: Array) -> Array:
        """Return how far rounding may move each decision."""

    @abstractmethod
    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        """Return the measure that this estimator trains for."""
