"""What all classifiers share: predictions and score from a decision, and the fit path of scores that are not linear."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from rocmax._response import direction, towards
from rocmax._rounding import join_ties, score_error
from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_rows, check_training_set, positive_index
from rocmax.measures import Measure, ROCAUCMeasure


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
        sample_weight : array-like of shape (n_samples,), default=None
            Weights.

        Returns
        -------
        float
            The measure.
        """
        decision = self.decision_function(X)
        decision = join_ties(decision, self._decision_error(X, decision))
        index = positive_index(self.classes_, self.pos_label)
        return self._measure(y, towards(decision, index), sample_weight, self.classes_[index])

    @abstractmethod
    def _decision_error(self, X: Any, decision: Array) -> Array:
        """Return how far rounding may move each decision."""

    @abstractmethod
    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        """Return the measure that this estimator trains for."""


class MeasureMixin(ABC):
    """Threshold and score of an estimator from the measure that it trains for."""

    @abstractmethod
    def _make_measure(self) -> Measure:
        """Return the measure that this estimator trains for."""

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return self._make_measure().threshold(scores, data.positive, data.weight)

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        return self._make_measure().score(y, scores, sample_weight=sample_weight, pos_label=pos_label)


class ScoredClassifier(MeasureMixin, Decision, ClassifierMixin, BaseEstimator):
    """Fit a score, choose a threshold, judge by the AUC."""

    threshold_: float
    takes_sparse = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ScoredClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Two classes, of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight counts as a number of copies of its row.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        data = check_training_set(self, X, y, sample_weight, self.pos_label, dense=not self.takes_sparse)
        self.classes_ = data.classes
        scores = self._learn(data)
        self.threshold_ = self._threshold(data, scores)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the score of each row minus the threshold; positive values speak for ``classes_[1]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decisions. With ``pos_label=classes_[0]`` a *lower* value means more positive, as scikit-learn's scorers
            and displays expect.
        """
        X = check_rows(self, X, dense=not self.takes_sparse)
        return self._sign() * (self._scores(X) - self.threshold_)

    def _decision_error(self, X: Any, decision: Array) -> Array:
        return score_error(np.abs(decision) + abs(self.threshold_))

    def _sign(self) -> float:
        """Return the factor between scores for the positive class and decisions."""
        return direction(positive_index(self.classes_, self.pos_label))

    @abstractmethod
    def _learn(self, data: TrainingSet) -> Array:
        """Fit, and return the scores of the training rows; high ones speak for the positive class."""

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Return the scores of rows."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense."""

    def _make_measure(self) -> Measure:
        return ROCAUCMeasure()
