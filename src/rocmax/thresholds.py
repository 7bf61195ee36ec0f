"""Thresholds that control the false-positive or the true-positive rate on new rows, and calibrated probabilities."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp
from scipy.stats import binom
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from rocmax._docstrings import publish
from rocmax._folds import cv_splitter, held_out_split
from rocmax._support import Array, Bools, Message, Parameter
from rocmax._validation import (
    check_target,
    class_scores,
    named_pos_label,
    one_majority_warning,
    random_source,
    towards,
    warn_if_majority,
)
from rocmax.measures import above_order, at_fpr, at_tpr, below_order
from rocmax.metrics.curve import group_numbers


def _has_probabilities(wrapper: Any) -> bool:
    return hasattr(getattr(wrapper, "estimator_", wrapper.estimator), "predict_proba")


def fit_params(wrapper: Any, params: dict[str, Any], groups: Any) -> dict[str, Any]:
    """Return the parameters for the ``fit`` of the wrapped estimator, with the groups if it takes them."""
    given = {name: value for name, value in params.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        passed = given if groups is None else {**given, "groups": groups}
        result: dict[str, Any] = process_routing(wrapper, "fit", **passed).estimator.fit
        return result
    takes_groups = groups is not None and has_fit_parameter(wrapper.estimator, "groups")
    return {**given, "groups": groups} if takes_groups else given


class Scored(NamedTuple):
    """Scores, labels, weights and groups (integers from 0) of the held-out rows."""

    scores: Array
    positive: NDArray[np.bool_]
    weight: Array | None
    groups: NDArray[np.intp] | None


class HeldOutThreshold(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Classifier that scores held-out rows, chooses a threshold on them and predicts with it.

    A subclass has the limit on a rate of one class, the negatives or the positives, as its second parameter.
    """

    rate: str = "row"  # of models that were saved before this parameter existed
    # The parameter with the limit, and the attribute with the number of held-out rows of the class.
    _limit: ClassVar[str]
    _counted: ClassVar[str]

    def __init__(
        self, estimator: Any, confidence: float | None, cv: Any, pos_label: Any, random_state: Any, rate: str
    ) -> None:
        self.estimator = estimator
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.rate = rate

    def fit(self, X: Any, y: Any, groups: Any = None, **params: Any) -> HeldOutThreshold:
        """Fit the estimator and choose the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training rows, in any format that the estimator accepts.
        y
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer. Rows of one group may depend on each other; a group is never split.
            They are passed on to an estimator whose ``fit`` takes ``groups``.
        **params : dict
            Parameters of the ``fit`` of the estimator, such as ``sample_weight``. The rate of the threshold is
            weighted, too; ``sample_weight`` is not allowed with ``confidence``.

        Returns
        -------
        self
        """
        self._check_parameters()
        held_out, limit = self._scored(X, y, groups, params), getattr(self, self._limit)
        scores, positive = held_out.scores, held_out.positive
        of_positives = self._limit == "min_tpr"
        members = positive if of_positives else ~positive
        n_rows = int(np.count_nonzero(members))
        setattr(self, self._counted, n_rows)
        self.violation_bound_ = math.nan
        self._count_groups(held_out, members)
        if self.confidence is None:
            rule = at_tpr if of_positives else at_fpr
            self.threshold_ = rule(scores, positive, self._weight(held_out, members), limit)
            return self
        # For positives, the error rate is that of missed ones, and low scores are the risk.
        max_rate, delta, required = (1 - limit if of_positives else limit), 1 - self.confidence, None
        risk = scores[members]
        if of_positives:
            risk, required = -risk, limit
        if held_out.groups is None:
            k, self.violation_bound_ = order_statistic(n_rows, max_rate, delta, required)
        else:
            k = group_order(risk, held_out.groups[members], max_rate, delta, self.rate, required)
            self.violation_bound_ = delta
        self.threshold_ = (below_order if of_positives else above_order)(scores, positive, k)
        return self

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
        X

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
        X

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
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self, "threshold_")
        index = self._positive_index()
        accepted = class_scores(self.estimator_, X, index) > self.threshold_
        return self.classes_[np.where(accepted, index, 1 - index)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes from the estimator; the threshold does not change them.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self, "estimator_")
        result: Array = self.estimator_.predict_proba(X)
        return result

    def get_metadata_routing(self) -> Any:
        """Return the routing of metadata: ``groups`` is for the choice of the threshold, all else for the estimator."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

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

    def _check_parameters(self) -> None:
        for name in (self._limit, "confidence"):
            value = getattr(self, name)
            if not (_is_share(value) or (name == "confidence" and value is None)):
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
            train, test = held_out_split(y, self.cv, random_state, groups)
            self.estimator_ = self._fitted_to(train, X, y, params)
            return class_scores(self.estimator_, _safe_indexing(X, test), index), positive[test], test
        scores = self._cross_validated(X, y, index, groups, params)
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return scores, positive, rows

    def _cross_validated(
        self, X: Any, y: NDArray[Any], index: int, groups: NDArray[np.intp] | None, params: dict[str, Any]
    ) -> Array:
        """Return the score of each row by the model of the fold that holds it out.

        ``cross_val_predict`` changes the filters of warnings of the whole process, and so of other threads.
        """
        folds = list(cv_splitter(self.cv, y, groups).split(X, y, groups))
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
        own = _check_method_params(X, params, train)
        return clone(self.estimator).fit(_safe_indexing(X, train), y[train], **own)


def _is_share(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(0 < value < 1)


class FPRThresholdClassifier(HeldOutThreshold):
    r"""Classifier with a threshold that limits the false-positive rate, with or without a guarantee.

    A row is predicted positive if its score is above ``threshold_``. Without ``confidence``, this is the lowest
    threshold whose false-positive rate on held-out negatives is at most ``max_fpr``. The rate on new rows is then close
    to the limit, and above it in about half of the cases. With ``confidence`` :math:`= 1 - \delta`, it is an order
    statistic of the scores of the ``n`` held-out negatives, :math:`t_{(k)}` with the smallest ``k`` for which

    .. math:: P\bigl(\mathrm{FPR} > \text{max\_fpr}\bigr) \le
        \sum_{j=k}^{n} \binom{n}{j} (1 - \text{max\_fpr})^j\, \text{max\_fpr}^{\,n-j} \le \delta.

    The bound is valid for every classifier and every distribution, provided that the held-out negatives are
    independent, have the same distribution as new negatives and were not used for training. The probability refers to
    the random draw of the held-out negatives.

    Rows of one customer, patient or device are not independent. With ``fit(X, y, groups=...)``, groups are held out as
    a whole, and the guarantee requires independent groups instead of independent rows: the threshold is the lowest at
    which a test of the groups rejects a rate above ``max_fpr``; see :ref:`the user guide <group-thresholds>`.

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
    random_state : ...
        Used only if ``cv`` is a float.
    rate : {"row", "group"}, default="row"
        Which rate the limit is for, if there are groups. "row" is the rate of all rows of the class, so that large
        groups count more. "group" is the mean over the groups of the rate in each, so that each group counts once. The
        two agree if the rate does not depend on the size of the group. If group sizes are very different, a guarantee
        for "row" requires many more groups, because it must allow for few large groups that differ from the others.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier.
    threshold_ : float
        Rows with a score above it are predicted positive. The score is the decision function, with the sign that makes
        high values indicate the positive class, or the probability of the positive class.
    n_negatives_ : int
        Number of held-out negatives.
    n_groups_ : int
        Number of groups with held-out negatives; only if ``fit`` was given groups.
    violation_bound_ : float
        Bound on the probability that the false-positive rate is above ``max_fpr``; NaN without ``confidence``.
        With groups, it is ``1 - confidence``.
    classes_
    positive_class_ : object
        The positive class.
    n_features_in_, feature_names_in_

    References
    ----------
    X. Tong, Y. Feng and J. J. Li (2018). Neyman-Pearson classification algorithms and NP receiver operating
    characteristics. Science Advances 4, eaao1659.

    I. Waudby-Smith and A. Ramdas (2024). Estimating means of bounded random variables by betting. Journal of the Royal
    Statistical Society B 86, 1-27.

    S. Bates, A. Angelopoulos, L. Lei, J. Malik and M. I. Jordan (2021). Distribution-free, risk-controlling prediction
    sets. Journal of the ACM 68(6), 43.

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

    _limit, _counted = "max_fpr", "n_negatives_"

    def __init__(
        self,
        estimator: Any,
        max_fpr: float = 0.05,
        *,
        confidence: float | None = None,
        cv: Any = 0.3,
        pos_label: Any = None,
        random_state: Any = None,
        rate: str = "row",
    ) -> None:
        super().__init__(estimator, confidence, cv, pos_label, random_state, rate)
        self.max_fpr = max_fpr


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
    provided that the held-out positives are independent, have the same distribution as new positives and were not used
    for training. The probability refers to the random draw of the held-out positives. Nothing is guaranteed for the
    number of false alarms.

    With ``fit(X, y, groups=...)``, the guarantee requires independent groups instead of independent rows, as in
    :class:`FPRThresholdClassifier`.

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
        Source of the held-out positives, as that of the negatives in :class:`FPRThresholdClassifier`.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes that of the estimator; if it has none, ``classes_[1]``, the larger
        label. Another label than that of the estimator is an error.
    random_state : ...
        Used only if ``cv`` is a float.
    rate : {"row", "group"}, default="row"
        Which rate the limit is for, if there are groups: that of all rows of the class, or the mean over the groups of
        the rate in each, see :class:`FPRThresholdClassifier`.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier.
    threshold_ : float
        Rows with a score above it are predicted positive. The score is the decision function, with the sign that makes
        high values indicate the positive class, or the probability of the positive class.
    n_positives_ : int
        Number of held-out positives.
    n_groups_ : int
        Number of groups with held-out positives; only if ``fit`` was given groups.
    violation_bound_ : float
        Bound on the probability that the true-positive rate is below ``min_tpr``; NaN without ``confidence``.
        With groups, it is ``1 - confidence``.
    classes_
    positive_class_ : object
        The positive class.
    n_features_in_, feature_names_in_

    References
    ----------
    X. Tong, Y. Feng and J. J. Li (2018). Neyman-Pearson classification algorithms and NP receiver operating
    characteristics. Science Advances 4, eaao1659.

    For groups, see :class:`FPRThresholdClassifier`.

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

    _limit, _counted = "min_tpr", "n_positives_"

    def __init__(
        self,
        estimator: Any,
        min_tpr: float = 0.95,
        *,
        confidence: float | None = None,
        cv: Any = 0.3,
        pos_label: Any = None,
        random_state: Any = None,
        rate: str = "row",
    ) -> None:
        super().__init__(estimator, confidence, cv, pos_label, random_state, rate)
        self.min_tpr = min_tpr


def order_statistic(
    n_rows: int, max_rate: float, delta: float, required_tpr: float | None = None, share: str = "cv"
) -> tuple[int, float]:
    """Return the smallest ``k`` whose order statistic exceeds an error rate with probability at most ``delta``.

    For the positives, of which it is the ``k``-th from the top, the error rate is one minus the required true-positive
    rate. ``share`` names the parameter with the fraction of held-out rows in the message about too few of them.
    """
    needed = math.ceil(math.log(delta) / math.log1p(-max_rate) - 1e-9)
    if n_rows < needed:
        limit, rows, change = _limit_text(max_rate, required_tpr)
        raise ValueError(
            Message(
                f"{limit} with confidence {1 - delta:g} requires at least {needed} held-out {rows}; got {n_rows}. Use "
                "more rows, hold out a larger fraction (",
                *(Parameter(share), "), ", *change, " or decrease ", Parameter("confidence")),
            )
        )
    orders = np.arange(1, n_rows + 1)
    bounds = binom.sf(orders - 1, n_rows, 1 - max_rate)
    k = int(orders[np.flatnonzero(bounds <= delta * (1 + 1e-9))[0]])
    return k, float(bounds[k - 1])


def _limit_text(max_rate: float, required_tpr: float | None) -> tuple[str, str, tuple[str, Parameter]]:
    """Return a limit, the rows it is about, and how to make it easier to keep."""
    if required_tpr is None:
        return f"a false-positive rate of at most {max_rate:g}", "negatives", ("increase ", Parameter("max_fpr"))
    return f"a true-positive rate of at least {required_tpr:g}", "positives", ("decrease ", Parameter("min_tpr"))


def group_order(
    risk: Array, groups: NDArray[np.intp], max_rate: float, delta: float, rate: str, required_tpr: float | None = None
) -> int:
    """Return how many rows of one class, those of the lowest risk, a threshold must place on the right side.

    It is the smallest number at which the evidence of :class:`GroupEvidence` against an error rate above the limit
    reaches ``1 / delta``. The evidence does not decrease with the number, so the smallest is found by bisection, and a
    wrong threshold requires that the evidence against a true hypothesis reaches ``1 / delta``.
    """
    _, group = np.unique(groups, return_inverse=True)
    evidence = GroupEvidence(np.bincount(group), max_rate, delta, rate)
    evidence.check(required_tpr)
    order = np.argsort(risk, kind="stable")
    low, high = 0, risk.size  # too few, and enough
    while high - low > 1:
        middle = (low + high) // 2
        errors = np.bincount(group[order[middle:]], minlength=evidence.n_groups)
        low, high = (low, middle) if evidence.is_enough(errors) else (middle, high)
    return high


class GroupEvidence:
    r"""Evidence from independent groups that an error rate is at most a limit; the formula is in docs/thresholds.md.

    Given the sizes :math:`n_g`, the numerator has the expectation :math:`\prod_g (1 - c_g p_g)` for the expected shares
    :math:`p_g` of errors, and the denominator is its maximum over all ways in which the rate can be above the limit.
    Thus the expectation of the evidence is at most 1 under that hypothesis, and it reaches :math:`1 / \delta` with
    probability at most :math:`\delta` (Markov). With ``rate="group"``, all :math:`n_g` are 1.
    """

    # Bets as multiples of the best one for groups whose rows all agree; the best bet is inversely proportional to the
    # standard deviation of the shares, which is smaller if they do not. Steps of 2 lose at most 15 % of the logarithm.
    BETS = (1.0, 2.0, 4.0)

    def __init__(self, sizes: NDArray[np.intp], max_rate: float, delta: float, rate: str) -> None:
        self.n_groups, self._sizes, self._max_rate, self._delta, self._rate = sizes.size, sizes, max_rate, delta, rate
        rows = sizes.astype(np.float64) if rate == "row" else np.ones(sizes.size)
        n_effective = rows.sum() ** 2 / (rows @ rows)
        best = math.sqrt(2 * math.log(1 / delta) / (n_effective * max_rate * (1 - max_rate)))
        bets = sorted({min(1.0, best * factor) for factor in self.BETS if factor**2 <= max(1.0, sizes.mean())})
        # The largest group of equal ones has c = bet.
        self._bets = np.minimum(1.0, np.outer(bets, rows * rows.sum() / (rows @ rows)))
        self._worst = np.array([_log_worst(bet, rows, max_rate) for bet in self._bets])

    def log_evidence(self, errors: NDArray[np.intp]) -> float:
        """Return the logarithm of the evidence, given the number of errors in each group."""
        with np.errstate(divide="ignore"):  # a group of errors only, and a bet of 1
            logs = np.log1p(-self._bets * (errors / self._sizes)).sum(axis=1)
        return float(logsumexp(logs - self._worst) - math.log(self._worst.size))

    def is_enough(self, errors: NDArray[np.intp]) -> bool:
        """Return whether the evidence allows the decision that the rate is at most the limit."""
        return self.log_evidence(errors) >= math.log(1 / self._delta) * (1 - 1e-12)

    def check(self, required_tpr: float | None, share: str = "cv") -> None:
        """Raise ValueError if there are too few groups even without errors; ``share`` as in `order_statistic`."""
        if self.is_enough(np.zeros(self.n_groups, dtype=np.intp)):
            return
        limit, rows, change = _limit_text(self._max_rate, required_tpr)
        exact = self._rate == "group" or np.ptp(self._sizes) == 0
        per_group = (
            () if self._rate == "group" else (", use ", Parameter("rate", "group", "{}, which counts each group once"))
        )
        raise ValueError(
            Message(
                f"{limit} with confidence {1 - self._delta:g} requires at least {'' if exact else 'about '}"
                f"{self._needed():,} independent groups with held-out {rows}{'' if exact else ' of these sizes'}; got "
                f"{self.n_groups}. Use more groups, hold out a larger fraction (",
                *(Parameter(share), "), ", *change, ", decrease ", Parameter("confidence"), *per_group),
            )
        )

    def _needed(self) -> int:
        """Return the number of groups, with sizes as here, that suffices without errors."""
        low, high = self.n_groups, 2 * self.n_groups
        while not self._suffice(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._suffice(middle) else (middle, high)
        return high

    def _suffice(self, n_groups: int) -> bool:
        sizes = np.resize(self._sizes, n_groups)
        evidence = GroupEvidence(sizes, self._max_rate, self._delta, self._rate)
        return evidence.is_enough(np.zeros(n_groups, dtype=np.intp))


def _log_worst(bets: Array, rows: Array, max_rate: float) -> float:
    """Return the largest sum of ``log(1 - bet * p)`` over shares ``p`` whose mean over all rows is at least a rate.

    The maximum is concave in ``p``; it is bounded from above by its Lagrange dual at every multiplier, and equals the
    dual at the multiplier at which the mean is the rate.
    """

    def shares(log_multiplier: float) -> Array:
        result: Array = np.clip(1 / bets - math.exp(-log_multiplier) / rows, 0.0, 1.0)
        return result

    def excess(log_multiplier: float) -> float:
        return float(rows @ shares(log_multiplier) - max_rate * rows.sum())

    # At the lower end all shares are 0, at the upper end all are at least the rate.
    lowest, highest = math.log((bets / rows).min()), -math.log((1 - max_rate) * rows.min())
    at = brentq(excess, lowest, highest + 1e-9)
    return float(np.log1p(-bets * shares(at)).sum() + math.exp(at) * excess(at))


# Probabilities of the positive class, calibrated on the scores of held-out rows.


def fit_calibration(scores: Array, positive: Bools, weight: Array | None = None) -> dict[str, Any]:
    r"""Return the function from scores to probabilities as plain values; it rises with the score.

    With few rows, it is a logistic function of the score, fitted to smoothed labels: positive rows count as
    :math:`(m + 1) / (m + 2)` positive and negative rows as :math:`1 / (n + 2)`, for :math:`m` positive and :math:`n`
    negative rows. With at least 1000 rows of each class, it is a centered isotonic regression: the log-odds are linear
    between the centers of the blocks of an isotonic regression, and have the slope of the logistic function beyond the
    first and the last one. Different scores thus have different probabilities, unless the slope is zero.

    References
    ----------
    J. Platt (2000). Probabilistic outputs for support vector machines. Advances in Large Margin Classifiers, 61-74.
    B. Zadrozny and C. Elkan (2002). Transforming classifier scores into accurate multiclass probability estimates. KDD.
    A. P. Oron and N. Flournoy (2017). Centered isotonic regression: point and interval estimation for dose-response
    studies. Statistics in Biopharmaceutical Research 9, 258-267.
    """
    weight = np.ones(scores.size) if weight is None else weight / weight.mean()
    slope, intercept = _logistic(scores, positive, weight)
    if min(_effective(weight[positive]), _effective(weight[~positive])) < 1000:
        return {"method": "sigmoid", "slope": slope, "intercept": intercept}
    centers, shares = _centered_isotonic(scores, positive, weight)
    return {"method": "isotonic", "scores": centers.tolist(), "probabilities": shares.tolist(), "slope": slope}


def calibrated(found: dict[str, Any], scores: Array) -> Array:
    """Return the probability of the positive class for scores, by the result of :func:`fit_calibration`."""
    if found["method"] == "sigmoid":
        return np.asarray(expit(found["slope"] * scores + found["intercept"]), dtype=np.float64)
    first, last = found["scores"][0], found["scores"][-1]
    inside = np.interp(scores, found["scores"], logit(found["probabilities"]))
    beyond = np.minimum(scores - first, 0.0) + np.maximum(scores - last, 0.0)
    return np.asarray(expit(inside + found["slope"] * beyond), dtype=np.float64)


def _logistic(scores: Array, positive: Bools, weight: Array) -> tuple[float, float]:
    """Return the slope, at least 0, and the intercept of a logistic regression on smoothed labels."""
    m, n = float(weight[positive].sum()), float(weight[~positive].sum())
    center, spread = float(np.average(scores, weights=weight)), float(np.std(scores)) or 1.0
    standard = ((scores - center) / spread)[:, np.newaxis]
    share = np.where(positive, (m + 1) / (m + 2), 1 / (n + 2))
    labels = np.repeat([1, 0], scores.size)
    counts = np.concatenate([weight * share, weight * (1 - share)])
    fitted = LogisticRegression(C=1e6).fit(np.concatenate([standard, standard]), labels, sample_weight=counts)
    slope = max(float(fitted.coef_[0, 0]), 0.0) / spread
    return slope, float(fitted.intercept_[0]) - slope * center


def _centered_isotonic(scores: Array, positive: Bools, weight: Array) -> tuple[Array, Array]:
    """Return the centers of the blocks of an isotonic regression and their shares of positives.

    A positive row of weight 1 below all scores and a negative one above them keep the shares above 0 and below 1.
    """
    values, place = np.unique(scores, return_inverse=True)
    mass = np.bincount(place, weight).astype(np.float64)
    hits = np.bincount(place, weight * positive).astype(np.float64)
    mass[[0, -1]] += 1.0
    hits[0] += 1.0
    shares = isotonic_regression(hits / mass, sample_weight=mass)
    starts = np.flatnonzero(np.append(True, np.diff(shares) > 0))
    sums = np.add.reduceat(mass, starts)
    return np.add.reduceat(mass * values, starts) / sums, np.add.reduceat(hits, starts) / sums


def _effective(weight: Array) -> float:
    """Return the number of rows of equal weight that say as much as the weighted ones."""
    return float(weight.sum() ** 2 / np.square(weight).sum())


__all__ = ["FPRThresholdClassifier", "TPRThresholdClassifier"]

# The names are exported by the package rocmax.
publish("rocmax", globals(), __all__)
