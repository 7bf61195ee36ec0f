"""Linear classifier for the partial AUC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_choice, check_number
from rocmax._window import check_corner
from rocmax.estimators.base import MeasureMixin
from rocmax.estimators.linear._constraint import NormConstraintMixin, check_constraint_parameters
from rocmax.estimators.linear._refinement import WindowRefinement
from rocmax.estimators.linear._sharded_refinement import ShardedRefinement
from rocmax.estimators.linear._solver_choice import CUTTING_PLANE_REMEDY, check_solver_parameters, penalized_solver
from rocmax.estimators.linear.base import LinearScoreClassifier, full_auc, solve_linear
from rocmax.estimators.linear.files import FitFilesMixin
from rocmax.estimators.linear.sharded import ShardedSet
from rocmax.losses import (
    Loss,
    PairwiseHinge,
    PartialAUCHinge,
    PartialAUCRamp,
    PartialAUCStructural,
)
from rocmax.measures import Measure, PartialAUCMeasure
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import CCCP, LBFGS, Callback, Result


class PartialAUCClassifier(FitFilesMixin, NormConstraintMixin, MeasureMixin, LinearScoreClassifier):
    r"""Linear classifier that maximizes the area under the ROC curve in a range of rates.

    The range is given by two false-positive rates, a lower limit on the true-positive rate, or both.

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1. A limit of one percent
        false positives is ``max_fpr=0.01``.
    loss : {"auto", "tight", "structural", "hinge", "ramp"}, default="auto"
        Loss to minimize:

        - "auto": minimizes a bounded loss on the pairs in the window, starting from logistic regression or the full-AUC
          solution, whichever has the larger partial AUC on the training rows. A penalty on the change of the scores
          regularizes the fit towards this starting point. The fit cannot collapse to zero weights, and its partial AUC
          on the training rows is at least that of the starting point. Features are standardized internally, so their
          scale does not matter.
        - "tight": :math:`\frac12|w|^2 + C R(w)` with the tight convex surrogate,
          :class:`~rocmax.losses.PartialAUCTight`.
        - "structural": the same with the looser :class:`~rocmax.losses.PartialAUCStructural`.
        - "hinge": the same with the pairwise hinge on the window, :class:`~rocmax.losses.PartialAUCHinge`, which is not
          convex if ``min_fpr > 0``; minimized by CCCP from the full-AUC solution.
        - "ramp": the same with the bounded :class:`~rocmax.losses.PartialAUCRamp`; the result is a local minimum near
          the full-AUC solution.

        With a ``constraint`` the loss must be convex: "tight", "structural", or "hinge" with ``min_fpr=0``.
        In this case, "auto" fits both the tight loss and the hinge on all pairs (the full AUC), and returns the fit
        with the larger partial AUC on the training rows, so it does not collapse when the tight loss does.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1. Only the part of the curve above it is maximized,
        for applications that must not miss positives: ``min_tpr=0.8, max_fpr=1.0`` is the area above 80 percent true
        positives. With both limits, it is the two-way partial AUC.
    constraint : {"l2", "l1", "elasticnet", "group"}, default=None
        Norm constraint on the weights. None adds the penalty :math:`\frac12|w|^2` to ``C`` times the loss. Otherwise
        the loss alone is minimized, subject to :math:`\Omega(w) \le` ``radius``, and ``C`` is not used: "l2"
        :math:`|w|_2`, "l1" :math:`|w|_1` (few features), "elasticnet" :math:`\kappa|w|_1 + \frac{1-\kappa}{2}|w|_2^2`
        (more features, and correlated ones together), "group" :math:`\sum_p |w_p|_2` (few groups of features). The
        features should have a common scale.
    C : float, default=1.0
        Regularization parameter, the weight of the loss against the penalty. Must be positive. With ``loss="auto"``,
        small values keep the model close to the starting point and large values optimize the partial AUC of the
        training rows only. The penalty is scaled by the number of examples in the window per feature.
    radius : float, default=None
        Upper bound on :math:`\Omega(w)`. Required with a constraint, and only allowed with one.
    l1_ratio : float, default=0.5
        The :math:`\kappa` of ``constraint="elasticnet"``, from 0 to 1.
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``: one label per feature, or the indices of the features of each group. Every
        feature is in exactly one group.
    solver : {"certified", "cutting_plane"}, default="certified"
        Solver of the penalized problem. "certified" finds the minimum, with a certified duality gap. "cutting_plane" is
        Algorithm 1 of Narasimhan and Agarwal, :class:`~rocmax.solvers.CuttingPlane`: it stops when no constraint is
        violated by more than ``tol``, which is absolute (:math:`10^{-4}` in the paper), and returns its last iterate,
        even where zero weights have a lower objective.
        It requires the loss "tight", "structural" or "hinge", without a ``constraint``; with "hinge" and
        ``min_fpr > 0`` it solves the inner problems of CCCP and computes their starting point.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``, and at most
        ``tol`` times the improvement of the objective over zero weights. For losses that are not convex, the fit stops
        when an iteration reduces the objective by less than ``tol``, relatively.
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
        Minus the lowest threshold whose false-positive rate on the training rows is at most ``max_fpr``. With
        ``min_tpr > 0``, minus the highest threshold whose true-positive rate on them is at least ``min_tpr``.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The objective at the solution.
    dual_gap_ : float
        The objective minus a certified lower bound on its minimum; NaN where the loss is not convex.
    n_iter_ : int
        Iterations.
    trace_ : list of Progress
        Objective, bound and passes over the data, one entry per iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if `X` had any.

    See Also
    --------
    AUCClassifier : Linear classifier for the full AUC.

    Notes
    -----
    The convex losses can collapse if the classes overlap strongly: if in no direction the mean of the positives (with
    ``min_tpr > 0``, of the lowest ones) is above the mean of the negatives in the window, zero weights are optimal for
    every ``C``. The fit then issues a
    ``ConvergenceWarning``. With ``solver="cutting_plane"`` the fit stops close to zero weights instead. Its last
    iterate ranks well for some values of ``C`` and at random for others: choose ``C`` on held-out rows, for example
    with :class:`PartialAUCClassifierCV`.

    References
    ----------
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import PartialAUCClassifier
    >>> X, y = make_classification(n_samples=2000, weights=[0.9], class_sep=0.8, random_state=0)
    >>> model = PartialAUCClassifier(max_fpr=0.05).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.94
    >>> float((model.predict(X[y == 0]) == 1).mean()) <= 0.05
    True

    The area above 80 percent true positives, and a threshold that reaches them:

    >>> model = PartialAUCClassifier(min_tpr=0.8, max_fpr=1.0).fit(X, y)
    >>> float((model.predict(X[y == 1]) == 1).mean()) >= 0.8
    True
    """

    # The default applies to models that were saved by versions without this parameter.
    min_tpr: float = 0.0

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        loss: str = "auto",
        *,
        min_tpr: float = 0.0,
        constraint: str | None = None,
        C: float = 1.0,
        radius: float | None = None,
        l1_ratio: float = 0.5,
        groups: Any = None,
        solver: str = "certified",
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.loss = loss
        self.min_tpr = min_tpr
        self.constraint = constraint
        self.C = C
        self.radius = radius
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, above=0.0)
        check_corner(self.min_fpr, self.max_fpr, self.min_tpr)
        check_constraint_parameters(self.constraint, self.radius, self.l1_ratio, self.groups)
        check_choice("loss", self.loss, ("auto", "tight", "structural", "hinge", "ramp"))
        check_solver_parameters(self.solver, self.loss, ("tight", "structural", "hinge"), self.constraint)
        if self.constraint is not None and (self.loss == "ramp" or (self.loss == "hinge" and self.min_fpr > 0)):
            raise ValueError(
                f"with a constraint, loss must be convex; got {self.loss!r}, which is not convex"
                f'{" for min_fpr > 0" if self.loss == "hinge" else ""}; use "auto", "tight" or "structural"'
            )

    def _remedy(self) -> str:
        if self.solver == "cutting_plane":
            return f'{CUTTING_PLANE_REMEDY} Or use loss="auto".'
        if self.loss in ("auto", "ramp"):
            return "No feature separates the classes; check that the features vary."
        other = 'solver="cutting_plane" with C chosen on held-out rows'
        if self.loss == "hinge" and self.min_fpr > 0:
            return f'Zero weights are a stationary point of this loss, which is not convex. Use loss="auto" or {other}.'
        other = f"{other}, " if self.constraint is None else ""
        positives = "lowest positives" if self.min_tpr > 0 else "positives"
        return (
            f"The optimum of this convex loss is at zero weights: in no direction is the mean of the {positives} above "
            f'the mean of the negatives in the window. Use loss="auto", {other}widen the window, or raise a very '
            "small C."
        )

    def _minimize(self, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        if self.constraint is not None:
            return self._minimize_constrained(data, w0, callback)
        window = (self.min_fpr, self.max_fpr, self.min_tpr)
        if self.loss == "auto":
            kind: Any = WindowRefinement if isinstance(data, TrainingSet) else ShardedRefinement
            refinement = kind(data, window, self.tol, self.max_iter)
            result: Result = refinement.run(refinement.best_start(), self.C, w0, callback)
            return result
        solver, penalty = penalized_solver(self.solver, self.tol, self.max_iter), SquaredL2(self.C)
        if self.loss in ("tight", "structural") or (self.solver == "cutting_plane" and self.min_fpr == 0):
            return solve_linear(solver, self._convex_loss(), data, penalty, w0, callback)
        if self.loss == "hinge" and w0 is not None and w0.any():
            start = w0
        else:
            full = full_auc(data, penalty, penalized_solver(self.solver, self.tol, max(self.max_iter, 100)))
            if not full.w.any():
                return full
            start = full.w
        if self.loss == "hinge":
            outer = CCCP(self.tol, self.max_iter, inner=solver)
            return solve_linear(outer, PartialAUCHinge(*window), data, penalty, start, callback)
        if w0 is not None and self._on_training_rows(data, w0) > self._on_training_rows(data, start):
            start = w0
        return self._descend(data, start, callback)

    def _minimize_constrained(self, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        result = self._fit_constrained(self._convex_loss(), data, w0, callback)
        if self.loss != "auto" or (self.min_fpr, self.max_fpr, self.min_tpr) == (0.0, 1.0, 0.0):
            return result
        other = self._fit_constrained(PairwiseHinge(), data, w0, callback)
        better = self._on_training_rows(data, other.w) > self._on_training_rows(data, result.w)
        return other if better else result

    def _descend(self, data: TrainingSet, start: Array, callback: Callback | None) -> Result:
        """Minimize the ramp loss from ``start``; return ``start`` if it has a larger partial AUC on the training rows.

        For small ``C`` the penalty dominates, so that a lower objective can have a worse ranking.
        """
        loss, penalty = PartialAUCRamp(self.min_fpr, self.max_fpr, min_tpr=self.min_tpr), SquaredL2(self.C)
        result = solve_linear(LBFGS(self.tol, self.max_iter), loss, data, penalty, start, callback)
        if self._on_training_rows(data, result.w) >= self._on_training_rows(data, start):
            return result
        value = data.bind(loss).value_and_gradient(as_operator(data.X).matvec(start))[0]
        objective = penalty.value(start) + penalty.C * value
        trace = [progress._replace(objective=objective) for progress in result.trace]
        return replace(result, w=start, objective=objective, trace=trace)

    def _make_measure(self) -> Measure:
        return PartialAUCMeasure(self.min_fpr, self.max_fpr, self.min_tpr)

    def _convex_loss(self) -> Loss:
        if self.loss == "structural":
            return PartialAUCStructural(self.min_fpr, self.max_fpr, self.min_tpr)
        return self._make_measure().convex_loss()

    def _on_training_rows(self, data: Any, w: Array) -> float:
        scores: Any = as_operator(data.X).matvec(w)
        if isinstance(data, ShardedSet):
            return data.score(self._make_measure(), scores)
        return self._measure(data.positive, scores, data.weight, True)
