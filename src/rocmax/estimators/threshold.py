"""Thresholds that control the false-positive or the true-positive rate on new rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import binom

from rocmax._thresholds import above_order, at_fpr, at_tpr, below_order
from rocmax.estimators._held_out_threshold import HeldOutThreshold


class FPRThresholdClassifier(HeldOutThreshold):
    r"""Classifier with a threshold that limits the false-positive rate, with or without a guarantee.

    A row is predicted positive if its score is above ``threshold_``. Without ``confidence``, this is the lowest
    threshold whose false-positive rate on held-out negatives is at most ``max_fpr``. The rate on new rows is then close
    to the limit, and above it in about half of the cases. With ``confidence`` :math:`= 1 - \delta`, it is an order
    statistic of the scores of the ``n`` held-out negatives, :math:`t_{(k)}` with the smallest ``k`` for which

    .. math:: P\bigl(\mathrm{FPR} > \text{max\_fpr}\bigr) \le
        \sum_{j=k}^{n} \binom{n}{j} (1 - \text{max\_fpr})^j\, \text{max\_fpr}^{\,n-j} \le \delta.

    The bound is valid for every classifier and every distribution, provided that the held-out negatives have the same
    distribution as new negatives and were not used for training. The probability refers to the random draw of the
    held-out negatives.

    Parameters
    ----------
    estimator : estimator
        Classifier with ``decision_function`` or ``predict_proba``.
    max_fpr : float, default=0.05
        Limit on the false-positive rate, above 0 and below 1.
    confidence : float, default=None
        Probability with which the limit is satisfied, above 0 and below 1. It requires at least ``log(1 - confidence) /
        log(1 - max_fpr)`` held-out negatives. None gives no guarantee.
    cv : float, int, cross-validation generator, iterable or "prefit", default=0.3
        Source of the held-out negatives. A float is the fraction of rows, stratified by class, that is held out; the
        estimator is fitted on the other rows. With "prefit", the estimator must be fitted already, and the rows passed
        to ``fit`` must not have been used to train it. An int or a generator uses the cross-validated scores of all
        rows and then fits the estimator on all rows. This uses the data more efficiently, but gives no guarantee, and
        is not allowed with ``confidence``.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes that of the estimator; if it has none, ``classes_[1]``, the larger
        label. Another label than that of the estimator is an error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
        global generator is never used. Used only if ``cv`` is a float.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier.
    threshold_ : float
        Rows with a score above it are predicted positive. The score is the decision function, with the sign that makes
        high values indicate the positive class, or the probability of the positive class.
    n_negatives_ : int
        Number of held-out negatives.
    violation_bound_ : float
        Bound on the probability that the false-positive rate is above ``max_fpr``; NaN without ``confidence``.
    classes_ : ndarray of shape (2,)
        The classes.
    positive_class_ : object
        The positive class.
    n_features_in_ : int
        Number of features, if the estimator has this attribute.
    feature_names_in_ : ndarray
        Names of the features, if the estimator has this attribute.

    References
    ----------
    X. Tong, Y. Feng and J. J. Li (2018). Neyman-Pearson classification algorithms and NP receiver operating
    characteristics. Science Advances 4, eaao1659.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from rocmax import FPRThresholdClassifier
    >>> X, y = make_classification(n_samples=4000, weights=[0.9], random_state=0)
    >>> model = FPRThresholdClassifier(LogisticRegression(), max_fpr=0.02, confidence=0.95, random_state=0)
    >>> model = model.fit(X[:2000], y[:2000])
    >>> float(model.predict(X[2000:])[y[2000:] == 0].mean()) <= 0.02
    True
    """

    def __init__(
        self,
        estimator: Any,
        max_fpr: float = 0.05,
        *,
        confidence: float | None = None,
        cv: Any = 0.3,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_fpr = max_fpr
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **params: Any) -> FPRThresholdClassifier:
        """Fit the estimator and choose the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training rows, in any format that the estimator accepts.
        y : array-like of shape (n_samples,)
            Two classes, of any type.
        **params : dict
            Parameters of the ``fit`` of the estimator, such as ``sample_weight``. The false-positive rate of the
            threshold is weighted, too; ``sample_weight`` is not allowed with ``confidence``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters("max_fpr")
        scores, positive, weight = self._scored(X, y, params)
        self.n_negatives_ = int(np.count_nonzero(~positive))
        self.violation_bound_ = math.nan
        if self.confidence is None:
            self.threshold_ = at_fpr(scores, positive, weight, self.max_fpr)
        else:
            k, self.violation_bound_ = order_statistic(self.n_negatives_, self.max_fpr, 1 - self.confidence)
            self.threshold_ = above_order(scores, positive, k)
        return self


class TPRThresholdClassifier(HeldOutThreshold):
    r"""Classifier with a threshold that reaches a true-positive rate, with or without a guarantee.

    A row is predicted positive if its score is above ``threshold_``. Without ``confidence``, this is the highest
    threshold whose true-positive rate on held-out positives is at least ``min_tpr``. The rate on new rows is then close
    to the limit, and below it in about half of the cases. With ``confidence`` :math:`= 1 - \delta`, the threshold is
    just below an order statistic of the scores of the ``m`` held-out positives, :math:`s_{(k)}` with the largest ``k``
    for which

    .. math:: P\bigl(\mathrm{TPR} < \text{min\_tpr}\bigr) \le
        \sum_{j=0}^{k-1} \binom{m}{j} (1 - \text{min\_tpr})^j\, \text{min\_tpr}^{\,m-j} \le \delta.

    This is the rule of :class:`FPRThresholdClassifier` with the classes exchanged: the share of missed positives, the
    false-negative rate, is at most ``1 - min_tpr``. The bound is valid for every classifier and every distribution,
    provided that the held-out positives have the same distribution as new positives and were not used for training.
    The probability refers to the random draw of the held-out positives. Nothing is guaranteed for the number of false
    alarms.

    Parameters
    ----------
    estimator : estimator
        Classifier with ``decision_function`` or ``predict_proba``.
    min_tpr : float, default=0.95
        Required true-positive rate, above 0 and below 1. A limit ``r`` on the false-negative rate is ``1 - r`` here.
    confidence : float, default=None
        Probability with which the limit is satisfied, above 0 and below 1. It requires at least ``log(1 - confidence) /
        log(min_tpr)`` held-out positives. None gives no guarantee.
    cv : float, int, cross-validation generator, iterable or "prefit", default=0.3
        Source of the held-out positives. A float is the fraction of rows, stratified by class, that is held out; the
        estimator is fitted on the other rows. With "prefit", the estimator must be fitted already, and the rows passed
        to ``fit`` must not have been used to train it. An int or a generator uses the cross-validated scores of all
        rows and then fits the estimator on all rows. This uses the data more efficiently, but gives no guarantee, and
        is not allowed with ``confidence``.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes that of the estimator; if it has none, ``classes_[1]``, the larger
        label. Another label than that of the estimator is an error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
        global generator is never used. Used only if ``cv`` is a float.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier.
    threshold_ : float
        Rows with a score above it are predicted positive. The score is the decision function, with the sign that makes
        high values indicate the positive class, or the probability of the positive class.
    n_positives_ : int
        Number of held-out positives.
    violation_bound_ : float
        Bound on the probability that the true-positive rate is below ``min_tpr``; NaN without ``confidence``.
    classes_ : ndarray of shape (2,)
        The classes.
    positive_class_ : object
        The positive class.
    n_features_in_ : int
        Number of features, if the estimator has this attribute.
    feature_names_in_ : ndarray
        Names of the features, if the estimator has this attribute.

    References
    ----------
    X. Tong, Y. Feng and J. J. Li (2018). Neyman-Pearson classification algorithms and NP receiver operating
    characteristics. Science Advances 4, eaao1659.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from rocmax import TPRThresholdClassifier
    >>> X, y = make_classification(n_samples=4000, weights=[0.8], random_state=0)
    >>> model = TPRThresholdClassifier(LogisticRegression(), min_tpr=0.9, confidence=0.95, random_state=0)
    >>> model = model.fit(X[:2000], y[:2000])
    >>> float(model.predict(X[2000:])[y[2000:] == 1].mean()) >= 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        min_tpr: float = 0.95,
        *,
        confidence: float | None = None,
        cv: Any = 0.3,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.min_tpr = min_tpr
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **params: Any) -> TPRThresholdClassifier:
        """Fit the estimator and choose the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training rows, in any format that the estimator accepts.
        y : array-like of shape (n_samples,)
            Two classes, of any type.
        **params : dict
            Parameters of the ``fit`` of the estimator, such as ``sample_weight``. The true-positive rate of the
            threshold is weighted, too; ``sample_weight`` is not allowed with ``confidence``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters("min_tpr")
        scores, positive, weight = self._scored(X, y, params)
        self.n_positives_ = int(np.count_nonzero(positive))
        self.violation_bound_ = math.nan
        if self.confidence is None:
            self.threshold_ = at_tpr(scores, positive, weight, self.min_tpr)
        else:
            k, self.violation_bound_ = order_statistic(
                self.n_positives_, 1 - self.min_tpr, 1 - self.confidence, required_tpr=self.min_tpr
            )
            self.threshold_ = below_order(scores, positive, k)
        return self


def order_statistic(n_rows: int, max_rate: float, delta: float, required_tpr: float | None = None) -> tuple[int, float]:
    """Return the smallest ``k`` whose order statistic exceeds an error rate with probability at most ``delta``.

    The order statistics are those of the scores of one class, from its low end for the negatives and from its high end
    for the positives, where the error rate is one minus the required true-positive rate.
    """
    needed = math.ceil(math.log(delta) / math.log1p(-max_rate) - 1e-9)
    if n_rows < needed:
        if required_tpr is None:
            limit, rows, change = f"a false-positive rate of at most {max_rate:g}", "negatives", "increase max_fpr"
        else:
            limit, rows, change = f"a true-positive rate of at least {required_tpr:g}", "positives", "decrease min_tpr"
        raise ValueError(
            f"{limit} with confidence {1 - delta:g} requires at least {needed} held-out {rows}; got {n_rows}. Use more "
            f"rows, hold out a larger fraction (cv), {change} or decrease confidence"
        )
    orders = np.arange(1, n_rows + 1)
    bounds = binom.sf(orders - 1, n_rows, 1 - max_rate)
    k = int(orders[np.flatnonzero(bounds <= delta * (1 + 1e-9))[0]])
    return k, float(bounds[k - 1])
