"""What all classifiers share: scores, decisions, and the measure that they optimize."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from rocmax._rounding import join_ties, score_error
from rocmax._support import Array, check_beta, check_corner, check_top, stack_level
from rocmax._validation import (
    TrainingSet,
    check_choice,
    check_rows,
    check_training_set,
    direction,
    positive_index,
    towards,
)
from rocmax.losses import Loss, PrecisionAtK
from rocmax.measures import Measure, ROCAUCMeasure, pick_measure


class Decision(ABC):
    """Mixin with ``predict`` and ``score``; must precede ``BaseEstimator`` in the list of bases."""

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
        """Return the decision value of each row; positive values indicate ``classes_[1]``."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        scores = self.positive_scores(X)
        index = positive_index(self.classes_, self.pos_label)
        return self.classes_[np.where(scores > 0, index, 1 - index)]

    def positive_scores(self, X: Any) -> Array:
        """Return scores in which higher means more likely positive, whatever the order of the labels.

        These are the scores for :mod:`rocmax.metrics`. Rows with a score above 0 are predicted positive.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            The values of ``decision_function``, negated if the positive class is ``classes_[0]``.
        """
        decision = self.decision_function(X)
        return towards(decision, positive_index(self.classes_, self.pos_label))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the measure that this estimator optimizes, computed on the given rows.

        Parameters
        ----------
        X
        y : array-like of shape (n_samples,)
            True class labels.
        sample_weight

        Returns
        -------
        float
            Value of the measure.
        """
        decision = self.decision_function(X)
        decision = join_ties(decision, self._decision_error(X, decision))
        index = positive_index(self.classes_, self.pos_label)
        return self._measure(y, towards(decision, index), sample_weight, self.classes_[index])

    def _warn_if_constant(self, X: Any, scores_of: Callable[[Any], Array]) -> None:
        """Warn if all training rows have the same score although they differ; ``scores_of`` scores validated rows.

        Each ``fit`` that a user calls ends with it once; fits to folds inside an estimator do not.
        """
        if _all_equal(X, scores_of) and _rows_differ(X):
            text = f"{type(self).__name__}: all training rows have the same score, so the model ranks at random. "
            warnings.warn(text + self._remedy(), ConvergenceWarning, stacklevel=stack_level())

    def _remedy(self) -> str:
        """Return the part of the warning that explains a constant score and how to avoid it."""
        return "Check that the features differ between the classes."

    @abstractmethod
    def _decision_error(self, X: Any, decision: Array) -> Array:
        """Return a bound on the rounding error of each decision value."""

    @abstractmethod
    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        """Return the measure that this estimator optimizes."""


class MeasureMixin(ABC):
    """Mixin that derives the threshold and ``score`` from the measure that the estimator optimizes."""

    @abstractmethod
    def _make_measure(self) -> Measure:
        """Return the measure that this estimator optimizes."""

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return self._make_measure().threshold(scores, data.positive, data.weight)

    def _score_at_threshold(self, data: TrainingSet, scores: Array) -> float | None:
        return self._make_measure().score_at_threshold(scores, data.positive, data.weight)

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        return self._make_measure().score(y, scores, sample_weight=sample_weight, pos_label=pos_label)


class ScoredClassifier(MeasureMixin, Decision, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class for classifiers with nonlinear scores: fit a score, then choose a threshold."""

    threshold_: float
    takes_sparse = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ScoredClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y, sample_weight

        Returns
        -------
        self
        """
        self._check_parameters()
        data = check_training_set(self, X, y, sample_weight, self.pos_label, dense=not self.takes_sparse)
        self.classes_ = data.classes
        scores = self._learn(data)
        self.threshold_ = self._threshold(data, scores)
        if scores.min() == scores.max():
            self._warn_if_constant(data.X, lambda rows: np.zeros(rows.shape[0]))
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the score of each row minus the threshold; positive values indicate ``classes_[1]``.

        Parameters
        ----------
        X

        Returns
        -------
        decision_values
        """
        X = check_rows(self, X, dense=not self.takes_sparse)
        return self._sign() * (self._scores(X) - self.threshold_)

    def _decision_error(self, X: Any, decision: Array) -> Array:
        return score_error(np.abs(decision) + abs(self.threshold_))

    def _sign(self) -> float:
        """Return the sign that converts scores for the positive class to decision values."""
        return direction(positive_index(self.classes_, self.pos_label))

    @abstractmethod
    def _learn(self, data: TrainingSet) -> Array:
        """Fit the model and return the scores of the training rows; high scores indicate the positive class."""

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Return the scores of rows."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""

    def _make_measure(self) -> Measure:
        return ROCAUCMeasure()


def _all_equal(X: Any, scores_of: Callable[[Any], Array]) -> bool:
    """Return whether all rows have the same score."""
    # In blocks: the first one nearly always has two different scores.
    first = scores_of(X[:1])[0]
    return all((scores_of(X[rows]) == first).all() for rows in gen_batches(X.shape[0], 1000))


def _rows_differ(X: Any) -> bool:
    """Return whether there are two different rows; missing values are equal."""
    if sparse.issparse(X):
        return bool((X.max(axis=0) != X.min(axis=0)).nnz)
    parts = (X[rows] for rows in gen_batches(X.shape[0], 1000))
    return not all(np.array_equal(rows, np.broadcast_to(X[0], rows.shape), equal_nan=True) for rows in parts)


REFERENCES = ("best", "positives")


class MeasureParameterMixin(MeasureMixin):
    """Mixin that creates the measure from ``measure`` and the parameters of the measures."""

    measure: str | Measure
    min_fpr: float
    max_fpr: float
    k: float
    beta: float
    # The default applies to models that were saved by versions without this parameter.
    min_tpr: float = 0.0
    # A parameter only of estimators that minimize the convex loss.
    reference: str = "best"

    def _make_measure(self) -> Measure:
        names = ("min_fpr", "max_fpr", "min_tpr", "k", "beta")
        offered = {name: getattr(self, name) for name in names}
        return pick_measure(self.measure, offered, to_train=True)

    def _check_measure(self) -> None:
        check_corner(self.min_fpr, self.max_fpr, self.min_tpr)
        check_top(self.k)
        check_beta(self.beta)
        check_choice("reference", self.reference, REFERENCES)
        # The loss can have stricter limits than the measure: the TPR at an FPR of 0 can be computed, but not optimized.
        self._convex_loss(self._make_measure())

    def _convex_loss(self, measure: Measure) -> Loss:
        """Return the convex loss of a measure, with the reference labeling for the precision at k."""
        loss = measure.convex_loss()
        if self.reference == "best":
            return loss
        if not isinstance(loss, PrecisionAtK):
            raise ValueError(f"reference must be 'best' unless measure is precision_at_k; got {self.reference!r}")
        return replace(loss, reference=self.reference)

    def _stream_measure(self) -> Measure:
        """Return the measure for a stream of unknown length."""
        measure = self._make_measure()
        if measure.counts_rows:
            raise ValueError(
                f"in partial_fit, k must be a fraction of the rows, a float above 0 and at most 1, because the total "
                f"number of rows is unknown; got {measure!r}"
            )
        return measure
