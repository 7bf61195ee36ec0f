"""Linear classifiers for the top of the ranking: precision at k and the break-even point."""

from __future__ import annotations

from typing import Any

from rocmax._validate import check_choice
from rocmax._window import check_top
from rocmax.estimators.linear._threshold_based import ThresholdBasedMixin
from rocmax.estimators.linear.base import LinearScoreClassifier
from rocmax.losses import Loss, PrecisionAtK
from rocmax.measures import BreakEvenPointMeasure, Measure, PrecisionAtKMeasure


class PrecisionAtKClassifier(ThresholdBasedMixin, LinearScoreClassifier):
    r"""Linear classifier for the precision among the ``k`` highest scores.

    A row is predicted positive if its score is above the threshold that separates the top ``k`` training rows.

    Parameters
    ----------
    k : int or float, default=0.1
        Number of rows as an int, or fraction of all rows, above 0 and at most 1, as a float.
    loss : {"auto", "convex"}, default="auto"
        Loss to minimize:

        - "auto": minimizes a soft version of the measure, :class:`~rocmax.losses.SoftPrecision`, starting from logistic
          regression. A penalty on the change of the scores regularizes the fit towards this starting point. The fit
          cannot collapse to zero weights, and the measure on the training rows is at least that of the starting point.
          Features are standardized internally, so their scale does not matter.
        - "convex": minimizes :math:`\frac12|w|^2 + C R(Xw)` with a convex bound, :class:`~rocmax.losses.PrecisionAtK`,
          to a certified gap. If the classes overlap strongly, the optimum can be at zero weights.
    C : float, default=10.0
        Regularization parameter, the weight of the loss against the penalty. Must be positive. With ``loss="auto"``,
        small values keep the model close to the starting point and large values optimize the soft measure only, if its
        gradient at the starting point exceeds sampling noise.
    start_C : float, default=1.0
        Regularization parameter of the logistic regression from which ``loss="auto"`` starts.
    reference : {"best", "positives"}, default="best"
        Reference labelling in the convex loss of the precision at k, see :class:`~rocmax.losses.PrecisionAtK`:
        "positives" is that of the papers. Must be "best" with ``loss="auto"``.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``, and at most
        ``tol`` times the improvement of the objective over zero weights. With ``loss="auto"``, it stops when an
        iteration reduces the objective by less than ``tol / 100``, relatively.
    max_iter : int, default=500
        Maximum number of iterations of the solver.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    verbose : bool, default=False
        Whether to report progress on standard error.
    warm_start : bool, default=False
        Whether to start from the solution of the previous fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The objective at the solution.
    dual_gap_ : float
        The objective minus a certified lower bound on its minimum; NaN with "auto".
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
    The objective of "auto" is described in :class:`FBetaClassifier`; only the soft measure differs.

    With "convex", zero weights are optimal for every ``C`` if, in every direction, the mean of the positives is at most
    that of the ``k`` highest negatives, as for the convex bounds of the partial AUC. This can occur for a small ``k``
    if the classes overlap strongly. The fit then issues a ``ConvergenceWarning``.

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
    0.98
    """

    def __init__(
        self,
        k: float = 0.1,
        loss: str = "auto",
        *,
        C: float = 10.0,
        start_C: float = 1.0,
        reference: str = "best",
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.k = k
        self.loss = loss
        self.C = C
        self.start_C = start_C
        self.reference = reference
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_top(self.k)
        check_choice("reference", self.reference, ("best", "positives"))
        if self.loss == "auto" and self.reference != "best":
            raise ValueError(f"reference must be 'best' with loss='auto'; got {self.reference!r}. Use loss='convex'")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Only k rows are predicted positive, whatever the number of positives, so that the accuracy can be low.
        tags.classifier_tags.poor_score = True
        return tags

    def _make_measure(self) -> Measure:
        return PrecisionAtKMeasure(self.k)

    def _convex_loss(self) -> Loss:
        return PrecisionAtK(self.k, self.reference)

    def _remedy(self) -> str:
        if self.loss == "auto":
            return super()._remedy()
        return (
            "The optimum of this convex loss is at zero weights: in no direction is the mean of the positives above "
            'the mean of the k highest negatives. Use loss="auto", which does not collapse, or a k closer to the '
            "number of positives."
        )


class BreakEvenClassifier(ThresholdBasedMixin, LinearScoreClassifier):
    r"""Linear classifier for the precision-recall break-even point.

    The number of training rows predicted positive equals the number of positives.

    Parameters
    ----------
    loss : {"auto", "convex"}, default="auto"
        Loss to minimize:

        - "auto": minimizes a soft version of the measure, :class:`~rocmax.losses.SoftPrecision`, starting from logistic
          regression. A penalty on the change of the scores regularizes the fit towards this starting point. The fit
          cannot collapse to zero weights, and the measure on the training rows is at least that of the starting point.
          Features are standardized internally, so their scale does not matter.
        - "convex": minimizes :math:`\frac12|w|^2 + C R(Xw)` with a convex bound, :class:`~rocmax.losses.BreakEven`,
          to a certified gap. If the classes overlap strongly, the optimum can be at zero weights.
    C : float, default=10.0
        Regularization parameter, the weight of the loss against the penalty. Must be positive. With ``loss="auto"``,
        small values keep the model close to the starting point and large values optimize the soft measure only, if its
        gradient at the starting point exceeds sampling noise.
    start_C : float, default=1.0
        Regularization parameter of the logistic regression from which ``loss="auto"`` starts.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``, and at most
        ``tol`` times the improvement of the objective over zero weights. With ``loss="auto"``, it stops when an
        iteration reduces the objective by less than ``tol / 100``, relatively.
    max_iter : int, default=500
        Maximum number of iterations of the solver.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    verbose : bool, default=False
        Whether to report progress on standard error.
    warm_start : bool, default=False
        Whether to start from the solution of the previous fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The objective at the solution.
    dual_gap_ : float
        The objective minus a certified lower bound on its minimum; NaN with "auto".
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
    The objective of "auto" is described in :class:`FBetaClassifier`; only the soft measure differs.

    With "convex", zero weights are optimal for every ``C`` if, in every direction, the mean of the positives is at most
    the mean of the same number of highest negatives. For normally distributed classes of equal variance, this is the
    case below an AUC of 0.74 with 30 % positives, 0.89 with 10 %, 0.93 with 5 %. The fit then issues a
    ``ConvergenceWarning``.

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
        loss: str = "auto",
        *,
        C: float = 10.0,
        start_C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.C = C
        self.start_C = start_C
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _make_measure(self) -> Measure:
        return BreakEvenPointMeasure()
