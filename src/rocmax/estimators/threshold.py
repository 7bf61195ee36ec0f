"""Threshold that controls the false-positive rate on new rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict, train_test_split
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from rocmax._response import class_scores, towards
from rocmax._thresholds import above_order, at_fpr
from rocmax._typing import Array
from rocmax._validate import check_target, random_source
from rocmax.estimators._passed_on import WrappedClassifier, row_params


class FPRThresholdClassifier(WrappedClassifier, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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
        Label of the positive class. None takes ``classes_[1]``, the larger label.
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
        self._check_parameters()
        X, y = indexable(X, y)
        y, self.classes_, index = check_target(y, self.pos_label)
        self.positive_class_ = self.classes_[index]
        weight = params.get("sample_weight")
        if weight is not None and np.unique(y[np.asarray(weight) > 0]).size < 2:
            raise ValueError("both classes must have rows with a positive sample_weight; got one class only")
        if weight is not None and self.confidence is not None:
            raise ValueError(
                "sample_weight must be None with confidence, whose guarantee is for equal weights; got weights"
            )
        scores, positive, rows = self._held_out(X, y, index, params)
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)[rows]
        self.n_negatives_ = int(np.count_nonzero(~positive))
        self.violation_bound_ = math.nan
        if self.confidence is None:
            self.threshold_ = at_fpr(scores, positive, weight, self.max_fpr)
        else:
            k, self.violation_bound_ = order_statistic(self.n_negatives_, self.max_fpr, 1 - self.confidence)
            self.threshold_ = above_order(scores, positive, k)
        return self

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
        check_is_fitted(self, "threshold_")
        index = self._positive_index()
        margin = class_scores(self.estimator_, X, index) - self.threshold_
        return towards(margin, index)

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

    def _check_parameters(self) -> None:
        limits = {"max_fpr": self.max_fpr} | ({} if self.confidence is None else {"confidence": self.confidence})
        for name, value in limits.items():
            if not _is_share(value):
                raise ValueError(f"{name} must be a number above 0 and below 1; got {value!r}")
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
                'with confidence, cv must be a fraction or "prefit", so that the held-out negatives are scored by one '
                f"model that was not trained on them; got {self.cv!r}"
            )

    def _held_out(
        self, X: Any, y: NDArray[Any], index: int, params: dict[str, Any]
    ) -> tuple[Array, NDArray[np.bool_], NDArray[np.intp]]:
        """Fit the estimator; return the scores, labels and places of the held-out rows."""
        positive, rows = y == self.classes_[index], np.arange(y.size)
        if isinstance(self.cv, str):
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            return class_scores(self.estimator_, X, index), positive, rows
        if _is_share(self.cv):
            train, test = train_test_split(
                rows, test_size=self.cv, stratify=y, random_state=random_source(self.random_state)
            )
            own = row_params(params, y.size, train)
            self.estimator_ = clone(self.estimator).fit(_safe_indexing(X, train), y[train], **own)
            return class_scores(self.estimator_, _safe_indexing(X, test), index), positive[test], test
        folds = check_cv(self.cv, y, classifier=True)
        method = "decision_function" if hasattr(self.estimator, "decision_function") else "predict_proba"
        response = cross_val_predict(clone(self.estimator), X, y, cv=folds, method=method, params=params or None)
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return towards(response, index), positive, rows


def _is_share(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(0 < value < 1)


def order_statistic(n_negatives: int, max_fpr: float, delta: float) -> tuple[int, float]:
    """Return the smallest ``k`` whose order statistic exceeds the limit with probability at most ``delta``."""
    needed = math.ceil(math.log(delta) / math.log1p(-max_fpr) - 1e-9)
    if n_negatives < needed:
        raise ValueError(
            f"a false-positive rate of at most {max_fpr:g} with confidence {1 - delta:g} requires at least {needed} "
            f"held-out negatives; got {n_negatives}. Use more rows, hold out a larger fraction (cv), increase "
            "max_fpr or decrease confidence"
        )
    orders = np.arange(1, n_negatives + 1)
    bounds = binom.sf(orders - 1, n_negatives, 1 - max_fpr)
    k = int(orders[np.flatnonzero(bounds <= delta * (1 + 1e-9))[0]])
    return k, float(bounds[k - 1])
