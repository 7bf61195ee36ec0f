"""Thresholds that control the false-positive or the true-positive rate on new rows, and calibrated probabilities."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import bdtr, expit, logit, logsumexp, rel_entr
from scipy.stats import beta, binom
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, has_fit_parameter

from rocmax._docstrings import publish
from rocmax._folds import cv_splitter, folds, held_out_split, most_folds
from rocmax._rounding import DUST, join_ties
from rocmax._support import Array, Bools, Message, Parameter, ParameterError
from rocmax._validation import (
    CHECKING,
    check_target,
    class_scores,
    direction,
    named_pos_label,
    one_majority_warning,
    random_source,
    towards,
    warn_if_majority,
)
from rocmax.costs import CaseCosts, cheapest_threshold
from rocmax.explain import Contributions, contributions
from rocmax.forward import ForwardSplit
from rocmax.limits import PERIODS, Limits, checked
from rocmax.measures import above_order, at_fpr, at_tpr, below, below_order, cumulated, just_above
from rocmax.metrics.curve import group_numbers
from rocmax.metrics.rates import calendar


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
    """Scores, labels, weights and groups (integers from 0) of the held-out rows, and their places among all rows."""

    scores: Array
    positive: NDArray[np.bool_]
    weight: Array | None = None
    groups: NDArray[np.intp] | None = None
    places: NDArray[np.intp] | None = None

    def of(self, rows: Bools) -> Scored:
        """Return some of the rows."""
        found: dict[str, Any] = {name: None if each is None else each[rows] for name, each in self._asdict().items()}
        return Scored(**found)


class HeldOutThreshold(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Classifier that scores held-out rows, chooses a threshold on them and predicts with it."""

    rate: str = "row"  # of models that were saved before this parameter existed
    # The parameter with the limit, and the attributes with the number of held-out rows of the classes it is about.
    _limit: ClassVar[str]
    _counted: ClassVar[tuple[str, ...]]

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
        return self._choose_on(self._scored(X, y, groups, params), X)

    def choose_on(self, scores: Array, X: Any, y: Any, groups: Any = None) -> HeldOutThreshold:
        """Choose the threshold for a fitted estimator (``cv="prefit"``) whose scores of held-out rows are known.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Scores of rows that the estimator has not seen; higher means more likely positive.
        X, y, groups

        Returns
        -------
        self
        """
        self._check_parameters()
        return self._choose_on(self._scored(X, y, groups, {}, scores), X)

    def _choose_on(self, held_out: Scored, X: Any) -> HeldOutThreshold:
        members = {"n_negatives_": ~held_out.positive, "n_positives_": held_out.positive}
        for name in self._counted:
            setattr(self, name, int(np.count_nonzero(members[name])))
        if held_out.groups is not None:
            counted = np.any([members[name] for name in self._counted], axis=0)
            self.n_groups_ = int(np.unique(held_out.groups[counted]).size)
        elif hasattr(self, "n_groups_"):  # of an earlier fit
            del self.n_groups_
        self._choose(held_out, self._limits(), X)
        return self

    def _choose(self, held_out: Scored, limits: Limits, X: Any) -> None:
        """Choose the threshold."""
        delta = None if limits.confidence is None else 1 - limits.confidence
        self.threshold_, _, self.violation_bound_ = choose_threshold(held_out, limits, delta)

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
        decision_values
        """
        return towards(self.positive_scores(X), self._positive_index())

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
        return self.margins(class_scores(self.estimator_, X, self._positive_index()), X)

    def margins(self, scores: Array, X: Any) -> Array:
        """Return known scores of rows minus the threshold.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Scores of the estimator; higher means more likely positive.
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            The values of :meth:`positive_scores`.
        """
        margin: Array = self._ranked(scores) - self._at(X)
        return margin

    def contributions(self, X: Any) -> Contributions:
        """Return the contribution of each column to the decision value of each row.

        Parameters
        ----------
        X

        Returns
        -------
        rocmax.explain.Contributions
            Contributions of the estimator, and its reference minus the threshold.
        """
        check_is_fitted(self, "threshold_")
        found = contributions(self.estimator_, X)
        return replace(found, reference=found.reference - direction(self._positive_index()) * self._at(X))

    def _ranked(self, scores: Array) -> Array:
        """Return the scores on the scale of the thresholds."""
        return scores

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
        accepted, index = self.positive_scores(X) > 0, self._positive_index()
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

    def _scored(self, X: Any, y: Any, groups: Any, params: dict[str, Any], known: Array | None = None) -> Scored:
        """Store the classes and fit the estimator; return what is known of the held-out rows."""
        X, y, groups = indexable(X, y, groups)
        pos_label = named_pos_label([self.estimator], self.pos_label, type(self).__name__)
        y, self.classes_, index = check_target(y, pos_label)
        self.positive_class_ = self.classes_[index]
        if groups is None and self._limits().rate == "group":
            raise ValueError('rate="group" requires the group of each row: fit(X, y, groups=...); got no groups')
        weight = params.get("sample_weight")
        if weight is not None and np.unique(y[np.asarray(weight) > 0]).size < 2:
            raise ValueError("both classes must have rows with a positive sample_weight; got one class only")
        if weight is not None and self._limits().confidence is not None:
            raise ValueError(
                "sample_weight must be None with confidence, whose guarantee is for equal weights; got weights"
            )
        number = group_numbers(groups, None, y)
        params = fit_params(self, params, groups)
        with one_majority_warning(pos_label):
            if pos_label is None:
                counts = np.bincount(y == self.positive_class_, weight, 2)
                warn_if_majority(type(self).__name__, self.classes_, *counts)
            scores, positive, rows = self._held_out(X, y, index, number, params, known)
        return Scored(
            scores,
            positive,
            None if weight is None else np.asarray(weight, dtype=np.float64)[rows],
            None if number is None else number[rows],
            rows,
        )

    def _at(self, X: Any) -> Any:
        """Return the threshold, or that of each row."""
        return self.threshold_

    def _limits(self) -> Limits:
        """Return the limits as one object."""
        return Limits(confidence=self.confidence, rate=self.rate, **{self._limit: getattr(self, self._limit)})

    def _check_limits(self) -> None:
        for name in (self._limit, "confidence"):
            value = getattr(self, name)
            if not (_is_share(value) or (name == "confidence" and value is None)):
                raise ValueError(f"{name} must be a number above 0 and below 1; got {value!r}")
        if self.rate not in ("row", "group"):
            raise ValueError(f'rate must be "row" or "group"; got {self.rate!r}')

    def _check_parameters(self) -> None:
        self._check_limits()
        if not (hasattr(self.estimator, "decision_function") or hasattr(self.estimator, "predict_proba")):
            raise TypeError(
                f"estimator must have decision_function or predict_proba; got {self.estimator!r}, which has neither"
            )
        single = self.cv == "prefit" if isinstance(self.cv, str) else _is_share(self.cv)
        if isinstance(self.cv, str) and not single:
            raise ValueError(
                f'cv must be a fraction, a number of folds, a cross-validation generator or "prefit"; got {self.cv!r}'
            )
        if self._limits().confidence is not None and not single:
            raise ValueError(
                'with confidence, cv must be a fraction or "prefit", so that the held-out rows are scored by one '
                f"model that was not trained on them; got {self.cv!r}"
            )

    def _held_out(
        self,
        X: Any,
        y: NDArray[Any],
        index: int,
        groups: NDArray[np.intp] | None,
        params: dict[str, Any],
        known: Array | None,
    ) -> tuple[Array, NDArray[np.bool_], NDArray[np.intp]]:
        """Fit the estimator; return the scores, labels and places of the held-out rows."""
        positive, rows = y == self.classes_[index], np.arange(y.size)
        if isinstance(self.cv, str):
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            return class_scores(self.estimator_, X, index) if known is None else known, positive, rows
        if _is_share(self.cv):
            random_state = random_source(self.random_state)
            train, test = held_out_split(y, self.cv, random_state, groups)
            self.estimator_ = self._fitted_to(train, X, y, params)
            return class_scores(self.estimator_, _safe_indexing(X, test), index), positive[test], test
        scores, rows = self._cross_validated(X, y, index, groups, params)
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return scores, positive[rows], rows

    def _cross_validated(
        self, X: Any, y: NDArray[Any], index: int, groups: NDArray[np.intp] | None, params: dict[str, Any]
    ) -> tuple[Array, NDArray[np.intp]]:
        """Return the score of each held-out row by the model of the fold that holds it out, and the places of the rows.

        Splits forward in time hold out the rows of all periods but the first one, other splits all rows.
        ``cross_val_predict`` changes the filters of warnings of the whole process, and so of other threads.
        """
        folds = list(cv_splitter(self.cv, y, groups).split(X, y, groups))
        times = np.bincount(np.concatenate([test for _, test in folds]), minlength=y.size)
        forward = isinstance(self.cv, ForwardSplit | TimeSeriesSplit)
        row = int((times > 1 if forward else times != 1).argmax())
        if times[row] > 1 or (times[row] == 0 and not forward):
            raise ValueError(f"cv must hold out each row exactly once; got row {row}, held out {times[row]} times")
        scores = np.empty(y.size)
        for train, test in folds:
            model = self._fitted_to(train, X, y, params)
            scores[test] = class_scores(model, _safe_indexing(X, test), index)
        rows = np.flatnonzero(times)
        if np.unique(y[rows]).size < 2:
            only = f"{y[rows].tolist()[0]!r} only, in {rows.size} rows"
            raise ValueError(f"the rows that cv holds out must have both classes; got {only}")
        return scores[rows], rows

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
    estimator
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
        is not allowed with ``confidence``. :class:`rocmax.ForwardSplit`, and scikit-learn's ``TimeSeriesSplit``, use
        the scores of the held-out periods, which are all but the first one.
    pos_label : ...
        ``pos_label`` of the estimator comes first; another one is an error.
    random_state : ...
        Used only if ``cv`` is a float.
    rate : {"row", "group"}, default="row"
        Which rate the limit is for, if there are groups. "row" is the rate of all rows of the class, so that large
        groups count more. "group" is the mean over the groups of the rate in each, so that each group counts once. The
        two agree if the rate does not depend on the size of the group. If group sizes are very different, a guarantee
        for "row" requires many more groups, because it must allow for few large groups that differ from the others.

    Attributes
    ----------
    estimator_, threshold_
    n_negatives_ : int
        Number of held-out negatives.
    n_groups_ : int
        Number of groups with held-out negatives; only if ``fit`` was given groups.
    violation_bound_ : float
        Bound on the probability that the false-positive rate is above ``max_fpr``; NaN without ``confidence``.
        With groups, it is ``1 - confidence``.
    classes_, positive_class_, n_features_in_, feature_names_in_

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

    _limit, _counted = "max_fpr", ("n_negatives_",)

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
    estimator
    min_tpr : float, default=0.95
        Required true-positive rate, above 0 and below 1. A limit ``r`` on the false-negative rate is ``1 - r`` here.
    confidence : float, default=None
        Probability with which the limit is satisfied, above 0 and below 1. It requires at least ``log(1 - confidence) /
        log(min_tpr)`` held-out positives. None gives no guarantee.
    cv : float, int, cross-validation generator, iterable or "prefit", default=0.3
        Source of the held-out positives, as that of the negatives in :class:`FPRThresholdClassifier`.
    pos_label : ...
        ``pos_label`` of the estimator comes first; another one is an error.
    random_state : ...
        Used only if ``cv`` is a float.
    rate : {"row", "group"}, default="row"
        Which rate the limit is for, if there are groups: that of all rows of the class, or the mean over the groups of
        the rate in each, see :class:`FPRThresholdClassifier`.

    Attributes
    ----------
    estimator_, threshold_
    n_positives_ : int
        Number of held-out positives.
    n_groups_ : int
        Number of groups with held-out positives; only if ``fit`` was given groups.
    violation_bound_ : float
        Bound on the probability that the true-positive rate is below ``min_tpr``; NaN without ``confidence``.
        With groups, it is ``1 - confidence``.
    classes_, positive_class_, n_features_in_, feature_names_in_

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

    _limit, _counted = "min_tpr", ("n_positives_",)

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


class LimitThresholdClassifier(HeldOutThreshold):
    r"""Classifier with a threshold that keeps several limits, with or without a guarantee.

    It does for any :class:`Limits` what :class:`FPRThresholdClassifier` and
    :class:`TPRThresholdClassifier` do for one rate: limits on the false-positive rate and on the share of alerts,
    floors on precision and on the true-positive rate, alone and together, with a threshold for each value of a column,
    and with a second threshold, above which rows are to be blocked. With ``limits.costs``, the threshold is the
    cheapest that keeps the limits, or each row has one for its own costs; see :doc:`/costs`.

    Without ``confidence``, the threshold is the lowest that keeps all limits on the held-out rows; with a floor on the
    true-positive rate, the highest that does. With ``confidence``, all limits hold together on new rows, with that
    probability over the draw of the held-out rows. For a rate, the test is the binomial one of
    :class:`FPRThresholdClassifier`; for precision, a fixed sequence of binomial tests from the highest scores down
    (Learn then Test). The limits on alerts need no correction for their number; a floor on the true-positive rate,
    the values of a column and a second threshold share ``1 - confidence`` equally (Bonferroni). The sequence assumes
    that a precision that has fallen below the floor stays there at lower thresholds.

    Parameters
    ----------
    estimator
    limits : Limits
        The limits, the confidence and the rate. ``capacity`` must be a share; ``per`` is a column of `X`, a data frame.
        Both ``max_fpr`` and ``min_tpr`` are kept; ``measure`` and ``min_fpr`` are not used.
    cv : float, int, cross-validation generator, iterable or "prefit", default=0.3
        Source of the held-out rows, as in :class:`FPRThresholdClassifier`.
    pos_label : ...
        ``pos_label`` of the estimator comes first; another one is an error.
    random_state : ...
        Used only if ``cv`` is a float.

    Attributes
    ----------
    estimator_
    threshold_ : float
        Rows with a score above it are predicted positive. With a column of ``per``, it is the highest threshold of a
        value, and that of rows with another value or none.
    thresholds_ : dict
        Threshold of each value of the column, as text.
    block_threshold_ : float
        The second threshold; only with ``limits.block``. With a column, the highest one.
    block_thresholds_ : dict
        Second threshold of each value of the column.
    binding_ : str or dict
        The limit that determines the threshold, or that of each value.
    n_negatives_, n_positives_ : int
        Numbers of held-out rows.
    n_groups_ : int
        Number of groups of held-out rows; only if ``fit`` was given groups.
    violation_bound_ : float
        Bound on the probability that a limit is broken; NaN without ``confidence``.
    case_calibration_ : dict or None
        With costs: the function from scores to probabilities, if each row has a threshold for its own costs.
    held_out_alerts_ : ndarray of bool
        With costs: for each held-out row, whether it is flagged by a threshold that was chosen on the others.
    held_out_cost_ : float
        With costs: the mean cost of these decisions.
    classes_, positive_class_, n_features_in_, feature_names_in_

    References
    ----------
    A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan and L. Lei (2025). Learn then test: calibrating predictive
    algorithms to achieve risk control. Annals of Applied Statistics 19(2).

    B. L. Wiens (2003). A fixed sequence Bonferroni procedure for testing multiple endpoints. Pharmaceutical Statistics
    2, 211-215.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from rocmax import Limits, LimitThresholdClassifier
    >>> X, y = make_classification(n_samples=4000, weights=[0.8], class_sep=2.0, random_state=0)
    >>> limits = Limits(max_fpr=0.1, min_precision=0.85, capacity=0.3, confidence=0.95)
    >>> model = LimitThresholdClassifier(LogisticRegression(), limits, random_state=0).fit(X[:2000], y[:2000])
    >>> model.binding_
    'min_precision'
    >>> alerts = model.predict(X[2000:])
    >>> float(y[2000:][alerts == 1].mean()) >= 0.85
    True
    """

    _counted = ("n_negatives_", "n_positives_")
    # Of models without costs.
    case_calibration_: dict[str, Any] | None = None
    binding_: str | dict[str, str]

    def __init__(
        self, estimator: Any, limits: Limits, *, cv: Any = 0.3, pos_label: Any = None, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.limits = limits
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def decide(self, X: Any) -> NDArray[Any]:
        """Return the decision for each row: "block" above the second threshold, "review" above the first.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            "approve", "review" or, with ``limits.block``, "block".
        """
        return decisions(self.positive_scores(X), self.block_margin(X))

    def block_margin(self, X: Any) -> Array:
        """Return by how much the second threshold of each row is above the first.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``positive_scores`` above which rows are to be blocked; infinity without ``limits.block``.
        """
        check_is_fitted(self, "threshold_")
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if self.limits.block is None:
            return np.full(n_rows, np.inf)
        margin: Array = self._at(X, "block_threshold") - self._at(X) + np.zeros(n_rows)
        return margin

    def _limits(self) -> Limits:
        return self.limits

    def _check_limits(self) -> None:
        if not isinstance(self.limits, Limits):
            raise TypeError(f"limits must be rocmax.Limits; got {self.limits!r}")
        limits = checked(self.limits)
        if not limits.limited and limits.costs is None:
            needed = "limits must have a limit, such as Limits(max_fpr=0.01), or costs"
            raise ParameterError(f"{needed}; got {self.limits!r}")
        if limits.period is not None:
            raise ParameterError(
                Message(
                    Parameter("capacity", limits.capacity),
                    f" per {limits.period} must be a share of the rows here: divide it by the number of rows per "
                    f"{limits.period}; rocmax.tables.fit_table does so, with a column of times",
                )
            )

    def _at(self, X: Any, name: str = "threshold") -> Any:
        """Return the first or second threshold, or that of each row."""
        if self._of_case():
            return self.case_thresholds(X)
        strictest = getattr(self, f"{name}_")
        if self.limits.column is None:
            return strictest
        known = getattr(self, f"{name}s_")
        return np.array([known.get(value, strictest) for value in column_texts(X, self.limits.column)])

    def case_thresholds(self, X: Any) -> Array:
        """Return the log-odds of a positive above which an alert pays in each row; 0 if all rows have one threshold.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            The sum with ``positive_scores`` ranks rows by their risk alone.
        """
        if self._of_case():
            return self.limits.costs.of(X).log_odds()  # type: ignore[union-attr]  # there are costs
        return np.zeros(_num_samples(X))

    def _of_case(self) -> bool:
        """Return whether each row has a threshold for its own costs."""
        return self.limits.costs is not None and self.case_calibration_ is not None

    def contributions(self, X: Any) -> Contributions:
        """Return the contribution of each column to the decision value, or to the score if costs decide case by case.

        Parameters
        ----------
        X

        Returns
        -------
        rocmax.explain.Contributions
            Contributions of the estimator, and its reference, minus the threshold unless costs decide case by case.
        """
        check_is_fitted(self, "threshold_")
        return contributions(self.estimator_, X) if self._of_case() else super().contributions(X)

    def _ranked(self, scores: Array) -> Array:
        return log_odds(self.case_calibration_, scores) if self._of_case() else scores  # type: ignore[arg-type]

    def _choose_by_costs(self, held_out: Scored, limits: Limits, X: Any) -> None:
        """Choose the cheapest threshold that keeps the limits, and whether each row has its own.

        The two rules are compared on held-out rows that have not chosen them.
        """
        assert limits.costs is not None
        case = limits.costs.of(X).some(held_out.places)
        case.check(held_out.positive)
        delta = None if limits.confidence is None else 1 - limits.confidence
        limit = choose_threshold(held_out, limits, delta) if limits.limited else None
        lowest = -math.inf if limit is None else limit.threshold
        splits: list[Any] = [(slice(None), slice(None))]
        kinds = [False]
        if most_folds(held_out.positive, held_out.groups) >= 2:
            splits = folds(held_out.positive, 5, random_source(self.random_state), held_out.groups)
            kinds += [True] if limits.costs.columns and not limits.limited else []
        alerts = {of_case: np.zeros(held_out.scores.size, dtype=bool) for of_case in kinds}
        for of_case, flagged in alerts.items():
            for train, test in splits:
                rule = cost_rule(held_out.of(train), case.some(train), of_case, lowest)
                flagged[test] = rule.alerts(held_out.scores[test], case.some(test))
        spent = {
            of_case: float(np.average(case.spent(held_out.positive, flagged), None, held_out.weight))
            for of_case, flagged in alerts.items()
        }
        of_case = min(spent, key=lambda kind: spent[kind])
        found = cost_rule(held_out, case, of_case, lowest)
        self.threshold_, self.case_calibration_ = found.threshold, found.calibration
        self.held_out_alerts_, self.held_out_cost_ = alerts[of_case], spent[of_case]
        self.binding_ = limit.binding if limit is not None and found.threshold == lowest else "costs"
        self.violation_bound_ = math.nan if limit is None else limit.bound

    def _choose(self, held_out: Scored, limits: Limits, X: Any) -> None:
        limits = checked(limits)
        if limits.costs is not None:
            self._choose_by_costs(held_out, limits, X)
            return
        parts = {"": held_out}
        if limits.column is not None:
            values = column_texts(X, limits.column)[held_out.places]
            parts = {value: held_out.of(rows) for value, rows in rows_of_values(values, limits.column).items()}
        level = level_of(limits, len(parts))
        firsts: dict[str, Choice] = {}
        seconds: dict[str, float] = {}
        for value, part in parts.items():
            with naming(limits.column, value):
                first = firsts[value] = choose_threshold(part, limits, level)
                if limits.block is not None:
                    own = replace(limits.block, rate=limits.rate)
                    seconds[value] = choose_threshold(part, own, level, first[:2]).threshold
        self.threshold_ = max(first.threshold for first in firsts.values())
        alone = firsts[""].bound if limits.block is None and "" in firsts else math.nan
        self.violation_bound_ = 1 - limits.confidence if limits.confidence and math.isnan(alone) else alone
        by_value = {value: first.binding for value, first in firsts.items()}
        self.binding_ = by_value.get("", by_value)
        if limits.column is not None:
            self.thresholds_ = {value: first.threshold for value, first in firsts.items()}
        if limits.block is not None:
            self.block_threshold_, self.block_thresholds_ = max(seconds.values()), seconds


def rows_per_period(times: NDArray[Any], period: str) -> float:
    """Return the mean number of rows in a period, of all periods between the first and the last one.

    These two may be cut off, so there must be at least one more.
    """
    if times.dtype.kind != "M":
        raise ValueError(Message(Parameter("per", period), " requires dates or times; got a column of numbers"))
    number = calendar(times, PERIODS[period]).astype(np.int64)
    n_inside = int(number.max() - number.min()) - 1
    if n_inside < 1:
        raise ValueError(
            Message(
                Parameter("per", period),
                f" requires times in at least 3 periods, as the first and the last may be cut off; got {n_inside + 2}",
            )
        )
    return float(np.count_nonzero((number > number.min()) & (number < number.max())) / n_inside)


def level_of(limits: Limits, n_parts: int) -> float | None:
    """Return the allowed probability of an error of one threshold; those of all values, and the second, share it."""
    n_thresholds = n_parts * (1 if limits.block is None else 2)
    return None if limits.confidence is None else (1 - limits.confidence) / n_thresholds


def rows_of_values(values: NDArray[Any], column: str) -> dict[str, Bools]:
    """Return which rows have each value of a column, without rows that have none."""
    found = {value: values == value for value in sorted({value for value in values if value})}
    if not found:
        raise ValueError(f"column {column!r} must have a value in some held-out rows; got none")
    return found


def decisions(margin: Array, block: Array) -> NDArray[Any]:
    """Return "approve", "review" or "block" for scores minus the first threshold."""
    return np.where(margin > block, "block", np.where(margin > 0, "review", "approve"))


def column_texts(X: Any, column: str) -> NDArray[Any]:
    """Return the values of a column of a data frame as text, integers without a decimal point; "" if missing."""
    if not hasattr(X, "columns") or column not in X.columns:
        known = ", ".join(map(repr, X.columns[:10])) if hasattr(X, "columns") else "no columns"
        raise ValueError(Message(Parameter("per"), f" must be a column of the rows; got {column!r}, known: {known}"))
    values = X[column]
    missing = np.asarray(values.isna())
    texts = np.array([f"{each:.15g}" if isinstance(each, float) else str(each) for each in values], dtype=object)
    texts[missing] = ""
    return texts


@contextmanager
def naming(column: str | None, value: str) -> Iterator[None]:
    """Name the value of a column in errors about its rows."""
    try:
        yield
    except ValueError as error:
        if column is None:
            raise
        text = error.args[0]
        parts = text.parts if isinstance(text, Message) else (str(text),)
        raise type(error)(Message(f"{column} = {value!r}: ", *parts)) from None


# The choice of a threshold for limits, alone and together.


class Choice(NamedTuple):
    """A threshold, the limit that determines it, and a bound on the probability that a limit is broken, or NaN."""

    threshold: float
    binding: str
    bound: float = math.nan


@dataclass(frozen=True)
class PrecisionRules:
    """Where the tests of a floor on precision start, going down from the highest scores."""

    # A start is the smallest number of alerts at which a precision this far between the floor and 1 is enough evidence;
    # the second number is its part of the allowed probability of an error.
    starts: tuple[tuple[float, float], ...] = ((0.4, 0.7), (0.15, 0.3))
    # Numbers of alerts that are tested with groups, where a test takes long.
    grid: int = 40


PRECISION = PrecisionRules()


class CostRule(NamedTuple):
    """A threshold, and the calibration of scores if each row has a threshold for its own costs."""

    threshold: float
    calibration: dict[str, Any] | None

    def alerts(self, scores: Array, case: CaseCosts) -> Bools:
        """Return which rows are flagged."""
        found: Bools = scores > self.threshold
        if self.calibration is not None:
            found = log_odds(self.calibration, scores) > case.log_odds()
        return found


def cost_rule(held_out: Scored, case: CaseCosts, of_case: bool, lowest: float) -> CostRule:
    """Return the cheapest threshold of at least ``lowest`` on held-out rows, or the rule of each case."""
    gain = case.gain(held_out.positive) * (1.0 if held_out.weight is None else held_out.weight)
    threshold = cheapest_threshold(held_out.scores, gain, lowest)
    return CostRule(threshold, fit_calibration(*held_out[:3]) if of_case else None)


def choose_threshold(
    held_out: Scored, limits: Limits, delta: float | None, at_least: tuple[float, str] | None = None
) -> Choice:
    r"""Return the threshold that keeps all limits, on the held-out rows or on new rows with probability 1 - ``delta``.

    Limits on alerts are broken together below the highest of the thresholds at which one of them is just kept, so an
    error requires an error in the test of that one limit, and no correction for their number is needed. A floor on the
    true-positive rate is broken above a threshold; it and the limits on alerts get half of ``delta`` each.
    ``at_least`` is another lower bound of the threshold, and its name.
    """
    alerts, floor = limits.on_alerts, limits.min_tpr
    level = delta / 2 if delta is not None and floor and alerts else delta
    if "min_precision" in alerts:
        check_counts(held_out.positive, held_out.groups, limits, delta)
    rates = {name: rate_threshold(held_out, limits, name, level) for name in alerts if name != "min_precision"}
    bounds = [*((found[0], name) for name, found in rates.items()), *([at_least] if at_least else [])]
    highest = max(bounds, key=lambda bound: bound[0]) if bounds else None
    lowest = rate_threshold(held_out, limits, "min_tpr", level) if floor else None
    if len(rates) + bool(floor) == 1 and "min_precision" not in alerts and at_least is None:
        (name, (threshold, bound)) = next(iter(rates.items()), ("min_tpr", lowest or (math.nan, math.nan)))
        return Choice(threshold, name, bound)
    cuts = ScoreCuts(*cumulated(held_out.scores, held_out.positive, held_out.weight))
    most = cuts.values.size if highest is None else int(np.count_nonzero(cuts.values > highest[0]))
    least = 0 if lowest is None else int(np.count_nonzero(cuts.values > lowest[0]))
    kept = np.ones(cuts.values.size, dtype=bool)
    if "min_precision" in alerts:
        kept = precise_cuts(cuts, alerts["min_precision"], level, held_out)
    # Numbers of distinct scores that may be above the threshold.
    allowed = 1 + np.flatnonzero(kept[:most])
    allowed = allowed[allowed >= least]
    bound = math.nan if delta is None else delta
    if allowed.size == 0 and (floor or most > 0):
        raise ParameterError(_refusal(cuts, held_out, limits, level, kept[:most], least))
    n_accepted = 0 if allowed.size == 0 else int(allowed[0] if floor else allowed[-1])
    if lowest is not None and n_accepted == least:
        return Choice(lowest[0], "min_tpr", bound)
    if highest is not None and n_accepted == most:
        return Choice(*highest, bound)
    if delta is None or n_accepted == cuts.values.size:
        return Choice(below(cuts.values, n_accepted), "min_precision", bound)
    return Choice(just_above(held_out.scores, float(cuts.values[n_accepted])), "min_precision", bound)


class ScoreCuts(NamedTuple):
    """Distinct scores in descending order, and the weights of positives and negatives at or above each."""

    values: Array
    tp: Array
    fp: Array


def rate_threshold(held_out: Scored, limits: Limits, name: str, delta: float | None) -> tuple[float, float]:
    """Return the threshold for one of the limits on a rate, and a bound on the probability that it is broken.

    The rate is that of the rows of one class above the threshold, or of all rows for ``capacity``; for ``min_tpr`` it
    is the rate of missed positives, so that low scores are the risk.
    """
    scores, positive, groups = held_out.scores, held_out.positive, held_out.groups
    positive = np.zeros_like(positive) if name == "capacity" else positive
    floor, limit = name == "min_tpr", float(limits.on_alerts.get(name, limits.min_tpr))
    members = positive if floor else ~positive
    if delta is None:
        weight = _rate_weight(held_out, members, limits.rate)
        return (at_tpr if floor else at_fpr)(scores, positive, weight, limit), math.nan
    max_rate, risk = (1 - limit, -scores) if floor else (limit, scores)
    if groups is None:
        k, bound = order_statistic(int(np.count_nonzero(members)), max_rate, delta, name)
    else:
        k, bound = group_order(risk[members], groups[members], max_rate, delta, limits.rate, name), delta
    return (below_order if floor else above_order)(scores, positive, k), bound


def check_counts(
    positive: Bools, groups: NDArray[Any] | None, limits: Limits, delta: float | None, share: str = "cv"
) -> None:
    """Raise ValueError if there are too few held-out rows, or groups, for the guarantee of one of the limits."""
    if delta is None:
        return
    if limits.block is not None:
        check_counts(positive, groups, limits.block, delta, share)
    names = [*limits.on_alerts, *(["min_tpr"] if limits.min_tpr else [])]
    delta = delta / 2 if limits.min_tpr and len(names) > 1 else delta
    for name in names:
        limit = limits.on_alerts.get(name, limits.min_tpr)
        members = {"max_fpr": ~positive, "capacity": positive | True}.get(name, positive)
        max_rate = 1 - limit if name.startswith("min") else limit
        if groups is None or name == "min_precision":
            level = delta * PRECISION.starts[0][1] if name == "min_precision" else delta
            order_statistic(int(np.count_nonzero(members)), max_rate, level, name, share)
        else:
            sizes = np.unique(groups[members], return_counts=True)[1]
            GroupEvidence(sizes, max_rate, delta, limits.rate).check(name, share)


def precise_cuts(cuts: ScoreCuts, floor: float, delta: float | None, held_out: Scored | None = None) -> Bools:
    """Return at which cuts the precision is at least a floor, on the held-out rows or, by tests, on new rows.

    Given the number of alerts above a threshold, that of the positives among them is binomial. The tests go down from
    the highest scores and stop at the first that fails, so the first threshold with too low a precision is wrongly
    passed with probability ``delta`` at most (fixed-sequence testing). They start at several numbers of alerts, which
    share ``delta``; a sequence that arrives at the next start adds the part of that one to its own (fallback). The
    held-out rows are needed for their groups only.
    """
    alerts = cuts.tp + cuts.fp
    if delta is None:
        return np.asarray(cuts.tp >= floor * alerts * (1 - DUST))
    tested, p_values = np.arange(alerts.size), binom.sf(cuts.tp - 1, alerts, floor)
    starts: list[float] = [*first_alerts(floor, delta)]
    if held_out is not None and held_out.groups is not None:
        starts = [each * math.sqrt(held_out.groups.size / np.unique(held_out.groups).size) for each in starts]
        tested, p_values = _group_p_values(cuts, held_out, held_out.groups, floor, delta, starts[0])
    first = [int(np.count_nonzero(alerts[tested] < start)) for start in starts]
    kept, level = np.zeros(alerts.size, dtype=bool), 0.0
    for (_, part), begin, end in zip(PRECISION.starts, first, [*first[1:], tested.size], strict=True):
        level += part * delta
        failed = np.flatnonzero(p_values[begin:end] > level * (1 + DUST))
        kept[tested[begin : begin + failed[0] if failed.size else end]] = True
        level = 0.0 if failed.size else level
    return kept


def first_alerts(floor: float, delta: float) -> list[int]:
    """Return the numbers of alerts at which the tests of a precision start; see `PrecisionRules`."""
    found = []
    for gap, part in PRECISION.starts:
        share = floor + gap * (1 - floor)
        # Chernoff's bound on the number; the evidence does not always grow with it, as the positives are integers.
        most = -math.log(part * delta) / (rel_entr(share, floor) + rel_entr(1 - share, 1 - floor))
        n = np.arange(1, math.ceil(most) + 1)
        found.append(int(n[(binom.sf(np.ceil(n * share) - 1, n, floor) <= part * delta).argmax()]))
    return found


def _group_p_values(
    cuts: ScoreCuts, held_out: Scored, groups: NDArray[np.intp], floor: float, delta: float, start: float
) -> tuple[NDArray[np.intp], Array]:
    """Return some cuts, and the reciprocal of the evidence of the groups of the alerts above each of them."""
    alerts, scores = cuts.tp + cuts.fp, join_ties(held_out.scores)
    wanted = np.geomspace(start, max(start, alerts[-1]), PRECISION.grid)
    tested = np.unique(np.minimum(np.searchsorted(alerts, wanted), alerts.size - 1))
    found = []
    for cut in cuts.values[tested]:
        rows = scores >= cut
        _, group = np.unique(groups[rows], return_inverse=True)
        errors = np.bincount(group, ~held_out.positive[rows]).astype(np.intp)
        evidence = GroupEvidence(np.bincount(group), 1 - floor, delta, "row")
        found.append(math.exp(-max(evidence.log_evidence(errors), 0.0)))
    return tested, np.array(found)


def _rate_weight(held_out: Scored, members: Bools, rate: str) -> Array | None:
    """Return the weights of the rows for the rate of a class; each group has the weight 1 with ``rate="group"``."""
    if rate == "row" or held_out.groups is None:
        return held_out.weight
    weight = np.ones(members.size) if held_out.weight is None else held_out.weight.copy()
    own = held_out.groups[members]
    total = np.bincount(own, weight[members])
    weight[members] = np.divide(weight[members], total[own], out=weight[members], where=total[own] > 0)
    return weight


def _refusal(
    cuts: ScoreCuts, held_out: Scored, limits: Limits, delta: float | None, kept: Bools, least: int
) -> Message:
    """Return why no cut keeps all limits, with the nearest limits that one keeps.

    ``kept`` says which cuts have enough precision, of those that the other limits on alerts allow; ``least`` is the
    number of the first that reaches the floor on the true-positive rate.
    """
    alerts, most = limits.on_alerts, kept.size
    sure = "" if delta is None else " with this confidence"
    wanted = [part for name in alerts for part in (Parameter(name, alerts[name]), ", ")][:-1]
    if not limits.min_tpr:
        nearest = Parameter("min_precision", _best_precision(cuts, held_out, delta, 1, most))
        return Message("no threshold keeps ", *wanted, sure, " on the held-out rows; the nearest is ", nearest)
    needed: list[str | Parameter] = []
    n_positive, n_negative = float(cuts.tp[-1]), float(cuts.fp[-1])
    tp, fp = (float(each[max(least, 1) - 1]) for each in (cuts.tp, cuts.fp))
    shares = {"max_fpr": (fp, n_negative), "capacity": (tp + fp, n_positive + n_negative)}
    exact = delta if held_out.groups is None else None
    for name in alerts:
        if name == "min_precision":
            value = _best_precision(cuts, held_out, delta, least, max(most, least))
        else:
            value = _rounded(_bound(*shares[name], exact, upper=True), up=True)
        if (value < alerts[name]) if name == "min_precision" else (value > alerts[name]):
            needed += [Parameter(name, value), " and "]
    reached = np.flatnonzero(kept)
    hits = float(cuts.tp[reached[-1]]) if reached.size else 0.0
    tpr = _rounded(_bound(hits, n_positive, exact, upper=False), up=False)
    both = Parameter("min_tpr", limits.min_tpr), " and ", *wanted, " cannot be kept together on the held-out rows"
    needed[-1:] = [" instead"] if needed else []
    if tpr > 0:
        needed += [", or " if needed else "", Parameter("min_tpr", tpr)]
    return Message(*both, sure, "; the nearest: ", *needed)


def _bound(hits: float, n: float, delta: float | None, *, upper: bool) -> float:
    """Return the rate, or its Clopper-Pearson bound."""
    if delta is None or (hits == n if upper else hits == 0):
        return hits / n
    return float(beta.ppf(1 - delta, hits + 1, n - hits) if upper else beta.ppf(delta, hits, n - hits + 1))


def _best_precision(cuts: ScoreCuts, held_out: Scored, delta: float | None, least: int, most: int) -> float:
    """Return the largest floor on precision that some cut from ``least`` to ``most`` keeps, to three digits."""
    grid = np.arange(1, 1000) / 1000

    def keeps(floor: float) -> bool:
        return bool(precise_cuts(cuts, floor, delta, held_out)[max(least, 1) - 1 : most].any())

    n_kept = bisect_left(grid, True, key=lambda floor: not keeps(floor))
    return float(grid[n_kept - 1]) if n_kept else 0.0


def _rounded(value: float, *, up: bool) -> float:
    """Return a rate with three digits after its zeros, rounded to the side on which it is easier to keep."""
    if value in (0.0, 1.0):
        return value
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    return (math.ceil(value * scale - DUST) if up else math.floor(value * scale + DUST)) / scale


def order_statistic(
    n_rows: int, max_rate: float, delta: float, name: str = "max_fpr", share: str = "cv"
) -> tuple[int, float]:
    """Return the smallest ``k`` whose order statistic exceeds an error rate with probability at most ``delta``.

    For the positives, of which it is the ``k``-th from the top, the error rate is one minus the required true-positive
    rate. ``name`` names the parameter with the limit, and ``share`` that with the fraction of held-out rows, in the
    message about too few of them.
    """
    needed = rows_needed(max_rate, delta)
    if n_rows < needed:
        limit, rows, change = _limit_text(max_rate, name)
        raise ValueError(
            Message(
                f"{limit} with confidence {1 - delta:g} requires at least {needed} held-out {rows}; got {n_rows}. Use "
                "more rows, hold out a larger fraction (",
                *(Parameter(share), "), ", *change, " or decrease ", Parameter("confidence")),
            )
        )

    def enough(k: int) -> bool:
        return bool(binom.sf(k - 1, n_rows, 1 - max_rate) <= delta * (1 + 1e-9))

    k = 1 + bisect_left(range(1, n_rows), True, key=enough)  # the bound falls with the order, and all rows are enough
    return k, float(binom.sf(k - 1, n_rows, 1 - max_rate))


def rows_needed(max_rate: float, delta: float) -> int:
    """Return the smallest number of rows with which `order_statistic` can keep a limit."""
    return math.ceil(math.log(delta) / math.log1p(-max_rate) - 1e-9)


def rows_enough(max_rate: float, delta: float, share: float) -> int:
    """Return the number of rows from which on the threshold of `order_statistic` gives away at most a share of a limit.

    With ``n`` rows of which ``a`` may be on the wrong side, the expected rate is ``(a + 1) / (n + 1)``. It falls from
    each number of rows with which ``a`` rises to the number before the next one.
    """

    def fewest(allowed: int) -> int:
        return _first_from(allowed + 1, lambda n: bool(bdtr(allowed, n, max_rate) <= delta * (1 + 1e-9)))

    return fewest(_first_from(0, lambda allowed: (allowed + 1) / fewest(allowed + 1) >= (1 - share) * max_rate))


def _first_from(start: int, enough: Callable[[int], bool]) -> int:
    """Return the first integer from a start on that is enough, as all later ones are."""
    size = 1
    while not enough(start + size - 1):
        size *= 2
    return start + bisect_left(range(start, start + size - 1), True, key=enough)


def _limit_text(max_rate: float, name: str) -> tuple[str, str, tuple[str, Parameter]]:
    """Return a limit, the rows it is about, and how to make it easier to keep; ``name`` is that of its parameter."""
    what, rows = {
        "max_fpr": ("a false-positive rate", "negatives"),
        "min_tpr": ("a true-positive rate", "positives"),
        "min_precision": ("a precision", "positives"),
        "capacity": ("a share of alerts", "rows"),
    }[name]
    floor = name.startswith("min")
    limit = f"at least {1 - max_rate:g}" if floor else f"at most {max_rate:g}"
    return f"{what} of {limit}", rows, ("decrease " if floor else "increase ", Parameter(name))


def group_order(
    risk: Array, groups: NDArray[np.intp], max_rate: float, delta: float, rate: str, name: str = "max_fpr"
) -> int:
    """Return how many rows of one class, those of the lowest risk, a threshold must place on the right side.

    It is the smallest number at which the evidence of :class:`GroupEvidence` against an error rate above the limit
    reaches ``1 / delta``. The evidence does not decrease with the number, so the smallest is found by bisection, and a
    wrong threshold requires that the evidence against a true hypothesis reaches ``1 / delta``.
    """
    _, group = np.unique(groups, return_inverse=True)
    evidence = GroupEvidence(np.bincount(group), max_rate, delta, rate)
    evidence.check(name)
    order = np.argsort(risk, kind="stable")

    def enough(k: int) -> bool:
        return evidence.is_enough(np.bincount(group[order[k:]], minlength=evidence.n_groups))

    return 1 + bisect_left(range(1, risk.size), True, key=enough)


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

    def check(self, name: str = "max_fpr", share: str = "cv") -> None:
        """Raise ValueError if there are too few groups even without errors; see `order_statistic` for the names."""
        if self.is_enough(np.zeros(self.n_groups, dtype=np.intp)):
            return
        limit, rows, change = _limit_text(self._max_rate, name)
        exact = self._rate == "group" or np.ptp(self._sizes) == 0
        per_group = (
            () if self._rate == "group" else (", use ", Parameter("rate", "group", "{}, which counts each group once"))
        )
        raise ValueError(
            Message(
                f"{limit} with confidence {1 - self._delta:g} requires at least {'' if exact else 'about '}"
                f"{self.needed():,} independent groups with held-out {rows}{'' if exact else ' of these sizes'}; got "
                f"{self.n_groups}. Use more groups, hold out a larger fraction (",
                *(Parameter(share), "), ", *change, ", decrease ", Parameter("confidence"), *per_group),
            )
        )

    def needed(self) -> int:
        """Return the number of groups, with sizes as here, that suffices without errors."""
        return _first_from(1, self._suffice)

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
    with CHECKING:
        slope, intercept = _logistic(scores, positive, weight)
        if min(_effective(weight[positive]), _effective(weight[~positive])) < 1000:
            return {"method": "sigmoid", "slope": slope, "intercept": intercept}
        centers, shares = _centered_isotonic(scores, positive, weight)
    return {"method": "isotonic", "scores": centers.tolist(), "probabilities": shares.tolist(), "slope": slope}


def calibrated(found: dict[str, Any], scores: Array) -> Array:
    """Return the probability of the positive class for scores, by the result of :func:`fit_calibration`."""
    return np.asarray(expit(log_odds(found, scores)), dtype=np.float64)


def log_odds(found: dict[str, Any], scores: Array) -> Array:
    """Return the log-odds of the positive class for scores, by the result of :func:`fit_calibration`."""
    if found["method"] == "sigmoid":
        return np.asarray(found["slope"] * scores + found["intercept"], dtype=np.float64)
    first, last = found["scores"][0], found["scores"][-1]
    inside = np.interp(scores, found["scores"], logit(found["probabilities"]))
    beyond = np.minimum(scores - first, 0.0) + np.maximum(scores - last, 0.0)
    return np.asarray(inside + found["slope"] * beyond, dtype=np.float64)


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


__all__ = ["FPRThresholdClassifier", "LimitThresholdClassifier", "TPRThresholdClassifier"]

# The names are exported by the package rocmax.
publish("rocmax", globals(), __all__)
