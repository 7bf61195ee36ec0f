"""Scorers for model selection in scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
from sklearn.metrics._scorer import _Scorer

from rocmax._response import class_scores, named_pos_label
from rocmax._typing import Array
from rocmax._validate import positive_index
from rocmax.metrics.registry import MetricLike, find_metric


class MeasureScorer(_Scorer):  # type: ignore[misc]  # scikit-learn has no types
    """Scorer of a measure for the positive class of the estimator; made by :func:`make_scorer`.

    It is a scorer of scikit-learn, which has one positive class for all estimators, in all other respects.
    """

    @property
    def pos_label(self) -> Any:
        """Label of the positive class; None for that of the estimator."""
        return self._kwargs["pos_label"]

    def for_estimators(self, estimators: Iterable[Any]) -> MeasureScorer:
        """Return the scorer for the positive class that it or the estimators name."""
        scorer = copy(self)
        label = named_pos_label(estimators, self.pos_label, "the scorer")
        scorer._kwargs = {**self._kwargs, "pos_label": label}
        return scorer

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float:
        params = self.for_estimators([estimator])._kwargs
        plain = _Scorer(self._score_func, self._sign, params, self._response_method)
        # Without method_caller: it shares a response between the scorers of a dictionary, and with it the sign of the
        # positive class of the first scorer.
        result: float = plain(estimator, X, y_true, **kwargs)
        return result


def positive_scores(estimator: Any, X: Any, *, pos_label: object = None) -> Array:
    """Return the scores of a fitted classifier in which higher means more likely positive, for the metrics.

    The classifiers of rocmax have a method of this name. The function is for all others too: those of scikit-learn,
    pipelines and searches, whose ``decision_function`` always refers to ``classes_[1]``.

    Parameters
    ----------
    estimator : estimator
        Fitted binary classifier with ``decision_function`` or ``predict_proba``.
    X : array-like of shape (n_samples, n_features)
        Rows.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the ``pos_label`` of the estimator, also in a pipeline or a search; if
        it has none, ``classes_[1]``, the larger label. Another label than that of the estimator is an error.

    Returns
    -------
    ndarray of shape (n_samples,)
        Decision values, negated if the positive class is ``classes_[0]``; for an estimator without
        ``decision_function``, the probabilities of the positive class.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rocmax import AUCClassifier
    >>> from rocmax.metrics import positive_scores, tpr_at_fpr
    >>> X, y = make_classification(n_samples=500, weights=[0.9], random_state=0)
    >>> label = np.where(y == 1, "fraud", "ok")
    >>> model = make_pipeline(StandardScaler(), AUCClassifier(pos_label="fraud")).fit(X, label)
    >>> tpr_at_fpr(label, positive_scores(model, X), max_fpr=0.1, pos_label="fraud") > 0.5
    True
    """
    label = named_pos_label([estimator], pos_label)
    return class_scores(estimator, X, positive_index(np.asarray(estimator.classes_), label))


def make_scorer(measure: MetricLike, *, pos_label: object = None, **params: Any) -> MeasureScorer:
    """Make a scikit-learn scorer from a measure.

    The scorer ``scorer(estimator, X, y, sample_weight=None)`` returns ``sign * measure(y, response, **params)``.
    The response is that of ``decision_function`` or, if the estimator has none, ``predict_proba``; for a measure of
    predicted labels it is that of ``predict``. The positive class is that of the estimator, and decision values are
    negated if it is ``classes_[0]``. The sign is -1 for ``fpr_at_tpr``, where lower is better, and 1 for all others.

    Parameters
    ----------
    measure : str, Measure or callable
        Name of a measure, one of :func:`rocmax.measures.measure_names`, with or without the suffix ``_score``; or a
        :class:`~rocmax.measures.Measure`; or the function itself, scikit-learn's ``roc_auc_score`` too.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the ``pos_label`` of the estimator, also in a pipeline or a search; if
        it has none, ``classes_[1]``, the larger label. Another label than that of the estimator is an error.
    **params
        Parameters of a measure given by its name or function, for example ``max_fpr=0.1``.

    Returns
    -------
    callable
        Scorer for ``GridSearchCV(scoring=...)``, ``cross_val_score`` and similar functions.

    References
    ----------
    :func:`sklearn.metrics.make_scorer`, whose scorers have one positive class for all estimators.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from rocmax.metrics import make_scorer
    >>> X, y = make_classification(n_samples=60, random_state=0)
    >>> scorer = make_scorer("partial_auc", max_fpr=0.2)
    >>> search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, scoring=scorer).fit(X, y)
    >>> bool(0 < search.best_score_ <= 1)
    True
    """
    found, filled = find_metric(measure, params)
    response = "predict" if found.takes_labels else ("decision_function", "predict_proba")
    return MeasureScorer(
        found.function, 1 if found.greater_is_better else -1, {"pos_label": pos_label, **filled}, response
    )
