"""Classifiers for measures of decisions: precision at k, break-even point, F-beta, G-mean."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import fbeta_score

from rocmax._validate import TrainingSet, check_number
from rocmax._window import check_top, top_weight
from rocmax.estimators._base import LinearScoreClassifier
from rocmax.estimators._threshold import at_top, best_measure
from rocmax.estimators.linear import solve_linear
from rocmax.losses import BreakEven, FBeta, FreeShift, GMean, Loss, PrecisionAtK
from rocmax.metrics import break_even_point, g_mean_score, precision_at_k
from rocmax.solvers import Callback, CuttingPlane, Result

Array = NDArray[np.float64]


class ComposedClassifier(LinearScoreClassifier):
    """Linear classifier on a loss that has subgradients only, with a certified gap."""

    C: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, above=0.0)

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss to minimise."""

    def _minimize(self, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        return solve_linear(CuttingPlane(self.tol, self.max_iter), self._loss(), data, self.C, w0, callback)

    def _remedy(self) -> str:
        return (
            "The optimum of this convex loss is at zero weights: no direction puts the mean of the positives above "
            "the mean of as many of the highest negatives. Use PartialAUCClassifier, which does not collapse, or a "
            "model of probabilities in scikit-learn's TunedThresholdClassifierCV."
        )


class PrecisionAtKClassifier(ComposedClassifier):
    r"""Linear classifier for the precision among the ``k`` highest scores.

    .. math:: \min_w \; \tfrac12 |w|^2 + C \, R(Xw)

    with the convex, shift-invariant bound :class:`rocmax.losses.PrecisionAtK`. A row is predicted positive if its score
    is among what were the top ``k`` of the training rows.

    Parameters
    ----------
    k : int or float
        An integer is a number of rows; a float, above 0 and at most 1, a fraction of all rows.
    C : float
        Weight of the loss.
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    max_iter : int
        Largest number of iterations, two passes over the data each.
    pos_label : object, optional
        The positive class; by default ``classes_[1]``, the larger label.
    verbose : bool
        Whether to report progress on standard error.
    warm_start : bool
        Whether to start from the last fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The minimum.
    dual_gap_ : float
        Certified distance from the optimum.
    n_iter_ : int
        Number of iterations.
    trace_ : list of Progress
        Objective, bound and passes over the data, one entry per iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if `X` had any.

    Notes
    -----
    A small ``k`` on hard data makes zero weights the optimum for every ``C``, as for the convex bounds of the partial
    AUC: where, in every direction, the mean of the positives is at most that of the ``k`` highest negatives. The fit
    then warns.

    References
    ----------
    Kar, Narasimhan and Jain, "Surrogate functions for maximizing precision at the top", ICML 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import PrecisionAtKClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = PrecisionAtKClassifier(k=0.05).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    def __init__(
        self,
        k: float = 0.1,
        *,
        C: float = 10.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.k = k
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_top(self.k)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Only k rows are labelled positive, however many are: the accuracy can be as low as that asks for.
        tags.classifier_tags.poor_score = True
        return tags

    def _loss(self) -> Loss:
        return PrecisionAtK(self.k)

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        total = float(scores.size if data.weight is None else data.weight.sum())
        return at_top(scores, data.positive, data.weight, top_weight(self.k, total))

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        return precision_at_k(y, scores, k=self.k, sample_weight=sample_weight, pos_label=pos_label)

    def _remedy(self) -> str:
        return (
            "The optimum of this convex loss is at zero weights: no direction puts the mean of the positives above "
            "the mean of the k highest negatives. Use a k nearer to the number of positives, or "
            "PartialAUCClassifier, which does not collapse."
        )


class BreakEvenClassifier(ComposedClassifier):
    r"""Linear classifier for the precision-recall break-even point.

    .. math:: \min_w \; \tfrac12 |w|^2 + C \, R(Xw)

    with the convex bound :class:`rocmax.losses.BreakEven`. As many training rows as there are positives are predicted
    positive.

    Parameters
    ----------
    C : float
        Weight of the loss.
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    max_iter : int
        Largest number of iterations, two passes over the data each.
    pos_label : object, optional
        The positive class; by default ``classes_[1]``, the larger label.
    verbose : bool
        Whether to report progress on standard error.
    warm_start : bool
        Whether to start from the last fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The minimum.
    dual_gap_ : float
        Certified distance from the optimum.
    n_iter_ : int
        Number of iterations.
    trace_ : list of Progress
        Objective, bound and passes over the data, one entry per iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if `X` had any.

    Notes
    -----
    Hard data make zero weights the optimum for every ``C``: where, in every direction, the mean of the positives is at
    most the mean of as many of the highest negatives. For normal classes of equal variance that is so below an AUC of
    0.74 with 30 % positives, 0.89 with 10 %, 0.93 with 5 %. The fit then warns.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import BreakEvenClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = BreakEvenClassifier().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.88
    """

    def __init__(
        self,
        *,
        C: float = 10.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _loss(self) -> Loss:
        return BreakEven()

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        m = float(data.positive.sum() if data.weight is None else data.weight[data.positive].sum())
        return at_top(scores, data.positive, data.weight, m)

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        return break_even_point(y, scores, sample_weight=sample_weight, pos_label=pos_label)


class FBetaClassifier(ComposedClassifier):
    r"""Linear classifier for :math:`F_\beta`.

    .. math:: \min_{w, b} \; \tfrac12 |w|^2 + C \, R(Xw + b)

    with the convex bound :class:`rocmax.losses.FBeta`; the intercept is not penalised. Last, the threshold is moved to
    where the training rows have the best :math:`F_\beta`.

    Parameters
    ----------
    beta : float
        Weight of the recall, above 0.
    C : float
        Weight of the loss.
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    max_iter : int
        Largest number of iterations, two passes over the data each.
    pos_label : object, optional
        The positive class; by default ``classes_[1]``, the larger label.
    verbose : bool
        Whether to report progress on standard error.
    warm_start : bool
        Whether to start from the last fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The minimum.
    dual_gap_ : float
        Certified distance from the optimum.
    n_iter_ : int
        Number of iterations.
    trace_ : list of Progress
        Objective, bound and passes over the data, one entry per iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if `X` had any.

    Notes
    -----
    Hard data make zero weights the optimum for every ``C``: where, in every direction, the mean of the positives is at
    most the mean of as many of the highest negatives. For normal classes of equal variance that is so below an AUC of
    0.74 with 30 % positives, 0.89 with 10 %, 0.93 with 5 %. The fit then warns.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import FBetaClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = FBetaClassifier(beta=1.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.9
    """

    def __init__(
        self,
        beta: float = 1.0,
        *,
        C: float = 10.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.beta = beta
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("beta", self.beta, above=0.0)

    def _loss(self) -> Loss:
        return FreeShift(FBeta(self.beta))

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return best_measure(scores, data.positive, data.weight, FBeta(self.beta).measure)

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        truth = np.asarray(y) == pos_label
        return float(fbeta_score(truth, scores > 0, beta=self.beta, sample_weight=sample_weight, zero_division=0.0))


class GMeanClassifier(ComposedClassifier):
    r"""Linear classifier for the geometric mean of the rates of both classes that are predicted right.

    .. math:: \min_{w, b} \; \tfrac12 |w|^2 + C \, R(Xw + b)

    with the convex bound :class:`rocmax.losses.GMean`; the intercept is not penalised. Last, the threshold is moved to
    where the training rows have the best G-mean.

    Parameters
    ----------
    C : float
        Weight of the loss.
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    max_iter : int
        Largest number of iterations, two passes over the data each.
    pos_label : object, optional
        The positive class; by default ``classes_[1]``, the larger label.
    verbose : bool
        Whether to report progress on standard error.
    warm_start : bool
        Whether to start from the last fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The minimum.
    dual_gap_ : float
        Certified distance from the optimum.
    n_iter_ : int
        Number of iterations.
    trace_ : list of Progress
        Objective, bound and passes over the data, one entry per iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if `X` had any.

    Notes
    -----
    Hard data make zero weights the optimum for every ``C``: where, in every direction, the mean of the positives is at
    most the mean of as many of the highest negatives. For normal classes of equal variance that is so below an AUC of
    0.74 with 30 % positives, 0.89 with 10 %, 0.93 with 5 %. The fit then warns.

    References
    ----------
    Kubat and Matwin, "Addressing the curse of imbalanced training sets: one-sided selection", ICML 1997.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import GMeanClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = GMeanClassifier().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.96
    """

    def __init__(
        self,
        *,
        C: float = 10.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _loss(self) -> Loss:
        return FreeShift(GMean())

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return best_measure(scores, data.positive, data.weight, GMean().measure)

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        return g_mean_score(np.asarray(y) == pos_label, scores > 0, sample_weight=sample_weight)
