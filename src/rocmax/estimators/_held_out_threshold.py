"""Base of the classifiers with a threshold from held-out rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedGroupKFold, check_cv, train_test_split
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from rocmax._response import class_scores, named_pos_label, towards
from rocmax._splits import split_groups
from rocmax._typing import Array
from rocmax._validate import check_target, one_majority_warning, random_source, warn_if_majority
from rocmax.estimators._passed_on import WrappedClassifier, fit_params, row_params
from rocmax.metrics.curve import group_numbers


class Scored(NamedTuple):
    """Scores, labels, weights and groups (integers from 0) of the held-out rows."""

    scores: Array
    positive: NDArray[np.bool_]
    weight: Array | None
    groups: NDArray[np.intp] | None


class HeldOutThreshold(WrappedClassifier, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Classifier that scores held-out rows, chooses a threshold on them and predicts with it.

    A subclass stores ``estimator``, ``confidence``, ``cv``, ``pos_label``, ``random_state``, ``rate`` and its limit,
    and sets ``threshold_`` in ``fit``.
    """

    estimator: Any
    confidence: float | None
    cv: Any
    pos_label: Any
    random_state: Any
    rate: str = "row"  # of models that were saved before this parameter existed
    threshold_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    @property
    def n_features_in_(self) -> int:
        """Number of features of the fitted estimator."""
        check_is_fitted(self, "estimator_")
        result: int = self.estimator_.n_features_in_
        return result

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features of the fitted estimator."""
        check_is_fitted(self, "estimator_")
        result: NDArray[Any] = self.estimator_.feature_names_in_
        return result

    def decision_function(self, X: Any) -> Array:
        """Return the score of each row minus the threshold; positive values indicate ``classes_[1]``.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decision values.
        """
        margin = self.positive_scores(X)
        return towards(margin, self._positive_index())

    def positive_scores(self, X: Any) -> Array:
        """Return the score of each row minus the threshold; higher means more likely positive, whatever the labels.

        Rows with a value above 0 are predicted positive.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The values of ``decision_function``, negated if the positive class is ``classes_[0]``.
        """
        check_is_fitted(self, "threshold_")
        return class_scores(self.estimator_, X, self._positive_index()) - self.threshold_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row: positive if its score is above the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self, "threshold_")
        index = self._positive_index()
        accepted = class_scores(self.estimator_, X, index) > self.threshold_
        return self.classes_[np.where(accepted, index, 1 - index)]

    def _positive_index(self) -> int:
        return int(np.flatnonzero(self.classes_ == self.positive_class_)[0])

    def _scored(self, X: Any, y: Any, groups: Any, params: dict[str, Any]) -> Scored:
        """Store the classes and fit the estimator; return what is known of the held-out rows."""
        X, y, groups = indexable(X, y, groups)
        pos_label = named_pos_label([self.estimator], self.pos_label, type(self).__name__)
        y, self.classes_, index = check_target(y, pos_label)
        self.positive_class_ = self.classes_[index]
        if groups is None and self.rate == "group":
            raise ValueError('rate="group" requires the group of each row: fit(X, y, groups=...); got no groups')
        weight = params.get("sample_weight")
        if weight is not None and np.unique(y[np.asarray(weight) > 0]).size < 2:
            raise ValueError("both classes must have rows with a positive sample_weight; got one class only")
        if weight is not None and self.confidence is not None:
            raise ValueError(
                "sample_weight must be None with confidence, whose guarantee is for equal weights; got weights"
            )
        number = group_numbers(groups, None, y)
        params = fit_params(self, params, groups)
        with one_majority_warning(pos_label):
            if pos_label is None:
                counts = np.bincount(y == self.positive_class_, weight, 2)
                warn_if_majority(type(self).__name__, self.classes_, *counts)
            scores, positive, rows = self._held_out(X, y, index, number, params)
        return Scored(
            scores,
            positive,
            None if weight is None else np.asarray(weight, dtype=np.float64)[rows],
            None if number is None else number[rows],
        )

    def _count_groups(self, held_out: Scored, members: NDArray[np.bool_]) -> None:
        """Store the number of groups with rows of a class; without groups, remove that of an earlier fit."""
        if held_out.groups is not None:
            self.n_groups_ = int(np.unique(held_out.groups[members]).size)
        elif hasattr(self, "n_groups_"):
            del self.n_groups_

    def _weight(self, held_out: Scored, members: NDArray[np.bool_]) -> Array | None:
        """Return the weights of the rows for the rate of a class; each group has the weight 1 with ``rate="group"``."""
        if self.rate == "row" or held_out.groups is None:
            return held_out.weight
        weight = np.ones(members.size) if held_out.weight is None else held_out.weight.copy()
        own = held_out.groups[members]
        total = np.bincount(own, weight[members])
        weight[members] = np.divide(weight[members], total[own], out=weight[members], where=total[own] > 0)
        return weight

    def _check_parameters(self, limit: str) -> None:
        checked = {limit: getattr(self, limit)} | ({} if self.confidence is None else {"confidence": self.confidence})
        for name, value in checked.items():
            if not _is_share(value):
                raise ValueError(f"{name} must be a number above 0 and below 1; got {value!r}")
        if self.rate not in ("row", "group"):
            raise ValueError(f'rate must be "row" or "group"; got {self.rate!r}')
        if not (hasattr(self.estimator, "decision_function") or hasattr(self.estimator, "predict_proba")):
            raise TypeError(
                f"estimator must have decision_function or predict_proba; got {self.estimator!r}, which has neither"
            )
        single = self.cv == "prefit" if isinstance(self.cv, str) else _is_share(self.cv)
        if isinstance(self.cv, str) and not single:
            raise ValueError(
                f'cv must be a fraction, a number of folds, a cross-validation generator or "prefit"; got {self.cv!r}'
            )
        if self.confidence is not None and not single:
            raise ValueError(
                'with confidence, cv must be a fraction or "prefit", so that the held-out rows are scored by one '
                f"model that was not trained on them; got {self.cv!r}"
            )

    def _held_out(
        self, X: Any, y: NDArray[Any], index: int, groups: NDArray[np.intp] | None, params: dict[str, Any]
    ) -> tuple[Array, NDArray[np.bool_], NDArray[np.intp]]:
        """Fit the estimator; return the scores, labels and places of the held-out rows."""
        positive, rows = y == self.classes_[index], np.arange(y.size)
        if isinstance(self.cv, str):
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            return class_scores(self.estimator_, X, index), positive, rows
        if _is_share(self.cv):
            random_state = random_source(self.random_state)
            if groups is None:
                train, test = train_test_split(rows, test_size=self.cv, stratify=y, random_state=random_state)
            else:
                train, test = split_groups(positive, groups, self.cv, random_state)
            self.estimator_ = self._fitted_to(train, X, y, params)
            return class_scores(self.estimator_, _safe_indexing(X, test), index), positive[test], test
        scores = self._cross_validated(X, y, index, groups, params)
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return scores, positive, rows

    def _cross_validated(
        self, X: Any, y: NDArray[Any], index: int, groups: NDArray[np.intp] | None, params: dict[str, Any]
    ) -> Array:
        """Return the score of each row by the model of the fold that holds it out.

        ``cross_val_predict`` changes the filters of warnings of the whole process, also for other threads.
        """
        by_group = groups is not None and (self.cv is None or isinstance(self.cv, int | np.integer))
        # Without a number of folds, there are five, as by default in scikit-learn.
        splitter = StratifiedGroupKFold(self.cv or 5) if by_group else check_cv(self.cv, y, classifier=True)
        folds = list(splitter.split(X, y, groups))
        times = np.bincount(np.concatenate([test for _, test in folds]), minlength=y.size)
        row = int((times != 1).argmax())
        if times[row] != 1:
            raise ValueError(f"cv must hold out each row exactly once; got row {row}, held out {times[row]} times")
        scores = np.empty(y.size)
        for train, test in folds:
            model = self._fitted_to(train, X, y, params)
            scores[test] = class_scores(model, _safe_indexing(X, test), index)
        return scores

    def _fitted_to(self, train: NDArray[np.intp], X: Any, y: NDArray[Any], params: dict[str, Any]) -> Any:
        own = row_params(params, y.size, train)
        return clone(self.estimator).fit(_safe_indexing(X, train), y[train], **own)


def _is_share(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(0 < value < 1)
