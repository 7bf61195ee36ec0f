"""Scorers for model selection in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sklearn.metrics

from rocmax.metrics.registry import MetricLike, find_metric


def make_scorer(measure: MetricLike, *, pos_label: object = None, **params: Any) -> Callable[..., float]:
    """Make a scikit-learn scorer from a measure.

    The scorer ``scorer(estimator, X, y, sample_weight=None)`` returns ``sign * measure(y, response, **params)``.
    The response is that of ``decision_function`` or, if the estimator has none, ``predict_proba``; for a measure of
    predicted labels it is that of ``predict``. scikit-learn negates the response if ``pos_label`` is the first class of
    the estimator. The sign is -1 for ``fpr_at_tpr``, where lower is better, and 1 for all others.

    Parameters
    ----------
    measure : str, Measure or callable
        Name of a measure, one of :func:`rocmax.measures.measure_names`, with or without the suffix ``_score``; or a
        :class:`~rocmax.measures.Measure`; or the function itself, scikit-learn's ``roc_auc_score`` too.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    **params
        Parameters of a measure given by its name or function, for example ``max_fpr=0.1``.

    Returns
    -------
    callable
        Scorer for ``GridSearchCV(scoring=...)``, ``cross_val_score`` and similar functions.

    References
    ----------
    :func:`sklearn.metrics.make_scorer`, which builds the scorer.

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
    result: Callable[..., float] = sklearn.metrics.make_scorer(
        found.function,
        response_method="predict" if found.takes_labels else ("decision_function", "predict_proba"),
        greater_is_better=found.greater_is_better,
        pos_label=pos_label,
        **filled,
    )
    return result
