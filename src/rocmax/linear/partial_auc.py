"""Linear classifiers for the partial AUC, with a given strength or with built-in cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from rocmax._folds import Split, check_splits, folds, given_splits, is_behind, with_groups
from rocmax._support import Array, check_corner, counted
from rocmax._validation import TrainingSet, check_choice, check_number, check_training_set, random_source
from rocmax.base import MeasureMixin
from rocmax.linear.base import (
    CUTTING_PLANE_REMEDY,
    LinearScoreClassifier,
    NormConstraintMixin,
    check_constraint_parameters,
    check_solver_parameters,
    full_auc,
    penalized_solver,
    solve_linear,
)
from rocmax.linear.refine import STEP, WindowRefinement
from rocmax.linear.select import (
    CLASSIFIERS,
    HINGE,
    SAFE,
    TIGHT,
    TIGHT_ABOVE,
    Fold,
    Route,
    StartTrials,
    group_specs,
    mean_result,
)
from rocmax.linear.sharded import FitFilesMixin, ShardedRefinement, ShardedSet
from rocmax.losses import Loss, PairwiseHinge, PartialAUCHinge, PartialAUCRamp, PartialAUCStructural
from rocmax.measures import Measure, PartialAUCMeasure
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import CCCP, LBFGS, Callback, Progress, Result

# Linear classifier for the partial AUC.


class PartialAUCClassifier(FitFilesMixin, NormConstraintMixin, MeasureMixin, LinearScoreClassifier):
    r"""Linear classifier that maximizes the area under the ROC curve in a range of rates.

    The range is given by two false-positive rates, a lower limit on the true-positive rate, or both.

    Parameters
    ----------
    min_fpr
    max_fpr : ...
        A limit of one percent false positives is ``max_fpr=0.01``.
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
    min_tpr : ...
        Only the part of the curve above it is maximized, for applications that must not miss positives: ``min_tpr=0.8,
        max_fpr=1.0`` is the area above 80 percent true positives. With both limits, it is the two-way partial AUC.
    constraint
    C : ...
        With ``loss="auto"``, small values keep the model close to the starting point and large values optimize the
        partial AUC of the training rows only. The penalty is scaled by the number of examples in the window per
        feature.
    radius : float, default=None
        Upper bound on :math:`\Omega(w)`. Required with a constraint, and only allowed with one.
    l1_ratio
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
    tol : ...
        For losses that are not convex, the fit stops when an iteration reduces the objective by less than ``tol``,
        relatively.
    max_iter, pos_label, verbose, warm_start

    Attributes
    ----------
    coef_
    intercept_ : ndarray of shape (1,)
        Minus the lowest threshold whose false-positive rate on the training rows is at most ``max_fpr``. With
        ``min_tpr > 0``, minus the highest threshold whose true-positive rate on them is at least ``min_tpr``.
    classes_, objective_, dual_gap_
    n_iter_
    trace_, n_features_in_, feature_names_in_

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


# Linear classifier for the partial AUC with built-in cross-validation.


# From this number of rows on, starting points on all rows are fitted less accurately, to guide the fits in the folds.
# On few rows, the choice of a starting point can depend on their last digits, and time does not matter.
_GUIDED_ROWS = 10_000


class PartialAUCClassifierCV(MeasureMixin, LinearScoreClassifier):
    r"""Partial-AUC classifier that selects the starting point and ``C`` by cross-validation.

    With ``loss="auto"``, the fit of ``PartialAUCClassifier(loss="auto")`` is run on the training part of each fold.
    First, a number of starting points are fitted: logistic regression with and without balanced class weights, the
    linear support vector machine, each with several regularization strengths, and the full AUC. Additional candidates
    depend on few rows: the tight convex loss, minimized by Algorithm 1 of Narasimhan and Agarwal, which stops early,
    for ``min_fpr > 0`` the hinge loss on the window, and logistic regressions for clusters of similar positives (two,
    three and four clusters by k-means, if there are enough positives): in a narrow window, the best linear score may
    detect only one cluster. Such a candidate is dropped if it has zero weights in a fold, if it is far behind the best
    of the other starting points in the first fold, behind it in each of the first three folds, or behind it by more
    than one standard error after half of the folds; it is used only if its models are similar in all folds. The other
    starting points are dropped if they are behind the best by more than two standard errors after half of the folds.
    The starting points whose partial AUC on the held-out rows is within half a standard error of the best are averaged.
    Candidates for clusters that are better on the held-out rows than all others are averaged separately. Their mean is
    used if the resulting score is higher by more than two standard errors.

    With ``min_tpr > 0`` all clusters have to be detected, so there are no candidates for single clusters. The held-out
    scores depend on few positives and hardly rank the starting points. Therefore the tight loss is not dropped early.
    It counts as much as all other starting points together, and twice as much if its best one is better than the best
    of the others; it is left out if it is behind by more than one and a half standard errors.

    From this mean, models are fitted along a path of values of ``C``, each initialized with the previous solution.
    ``C = 0``, the starting point, is always part of the path. The models within one standard error of the best are
    averaged, excluding values of ``C`` larger than the best, to reduce overfitting. The standard errors are those of
    the paired difference to the best over the folds. Finally, the models of all folds are averaged.

    Models are averaged rather than selected because the partial AUC depends on few rows: the held-out scores can
    identify bad candidates, but cannot reliably rank the good ones. The mean of linear scores with unit standard
    deviation is again a linear score, with less variance.

    With another loss, :class:`PartialAUCClassifier` is fitted for each ``C`` on the training part of each fold. The
    value of ``C`` with the best mean partial AUC on the held-out rows is selected, and its models of all folds are
    averaged, also with unit standard deviation. There is no refit on all rows, so with a single split the fitted model
    of the selected ``C`` is kept. With ``solver="cutting_plane"`` and a single split, this is how Narasimhan and
    Agarwal (2017) tune ``C``, from :math:`10^{-5}` to :math:`10^4`; they do not state whether they refit.

    Parameters
    ----------
    min_fpr, max_fpr
    loss : {"auto", "tight", "structural", "hinge"}, default="auto"
        Loss to minimize, as in :class:`PartialAUCClassifier`; "auto" requires ``solver="certified"``.
    min_tpr
    Cs : array-like of float, default=(0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
        Values of ``C`` to try; with ``loss="auto"``, 0 is always included.
    cv : int, cross-validation generator or iterable, default=None
        Cross-validation splits. None takes five stratified folds, repeated twice; fewer folds if a class has fewer than
        five rows. With ``groups``, the folds of None and of an int keep groups together, and other splits must do so.
    solver : {"certified", "cutting_plane"}, default="certified"
        Solver of the penalized problem. "certified" finds the minimum, with a certified duality gap. "cutting_plane" is
        Algorithm 1 of Narasimhan and Agarwal, :class:`~rocmax.solvers.CuttingPlane`: it stops when no constraint is
        violated by more than ``tol``, which is absolute (:math:`10^{-4}` in the paper), and returns its last iterate,
        even where zero weights have a lower objective.
    tol : float, default=1e-3
        Tolerance for stopping of each fit, as in :class:`PartialAUCClassifier`.
    max_iter
    n_jobs : int, default=None
        Number of fits that run in parallel, as in joblib: None means 1, -1 all processors.
    random_state : ...
        Used only for the default folds.
    pos_label, verbose

    Attributes
    ----------
    C_ : float
        Value of ``C`` with the best mean held-out score, the smallest of ties; 0 is the starting point.
    Cs_ : ndarray of shape (n_values,)
        All values of ``C``, in ascending order; with ``loss="auto"``, starting with 0.
    averaged_Cs_ : ndarray
        Values of ``C`` whose models were averaged; the last is ``C_``.
    scores_ : ndarray of shape (n_folds, n_values)
        Partial AUC of the held-out rows along the path.
    starts_ : list of str
        Starting points that were averaged: "logistic", "balanced" (logistic regression with balanced class weights),
        "svc", "auc", "tight", "hinge" or "group 1 of 2", with the weight of the loss on standardized features, such as
        "logistic, C=0.1". Empty if ``loss`` is not "auto".
    start_scores_ : dict
        Mean held-out partial AUC of each starting point, over the folds in which it was fitted. Empty if ``loss`` is
        not "auto".
    coef_
    intercept_ : ndarray of shape (1,)
        Minus the lowest threshold whose false-positive rate on the training rows is at most ``max_fpr``. With
        ``min_tpr > 0``, minus the highest threshold whose true-positive rate on them is at least ``min_tpr``.
    classes_
    objective_ : float
        The bounded loss of the model on the training rows. If ``loss`` is not "auto", the mean over the folds of the
        objective of the selected fits.
    dual_gap_ : float
        NaN with ``loss="auto"``, because the loss is not convex; otherwise the mean over the folds.
    n_iter_ : int
        Largest number of iterations of a fit.
    n_features_in_, feature_names_in_

    See Also
    --------
    PartialAUCClassifier : Linear classifier for the partial AUC with a given ``C``.

    References
    ----------
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017, section 8 and Appendix B.2.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import PartialAUCClassifierCV
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = PartialAUCClassifierCV(max_fpr=0.1, Cs=[0.3, 3], random_state=0).fit(X, y)
    >>> model.scores_.shape
    (10, 3)
    >>> bool(model.C_ in model.Cs_)
    True

    The published method, with the published choice of ``C``:

    >>> from sklearn.model_selection import StratifiedShuffleSplit
    >>> published = PartialAUCClassifierCV(
    ...     max_fpr=0.1, loss="tight", Cs=[1e-3, 1e-2, 0.1], solver="cutting_plane", tol=1e-4,
    ...     cv=StratifiedShuffleSplit(1, test_size=0.3, random_state=0),
    ... ).fit(X, y)
    >>> published.scores_.shape
    (1, 3)
    """

    warm_start = False
    # The default applies to models that were saved by versions without this parameter.
    min_tpr: float = 0.0

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        loss: str = "auto",
        *,
        min_tpr: float = 0.0,
        Cs: Any = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0),
        cv: Any = None,
        solver: str = "certified",
        tol: float = 1e-3,
        max_iter: int = 500,
        n_jobs: int | None = None,
        random_state: Any = None,
        pos_label: Any = None,
        verbose: bool = False,
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.loss = loss
        self.min_tpr = min_tpr
        self.Cs = Cs
        self.cv = cv
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.pos_label = pos_label
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PartialAUCClassifierCV:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training rows. The features should be standardized, so that the penalty affects all of them equally.
        y, sample_weight
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer. No group is in both parts of a split, and folds by default or by
            number are those of :class:`~sklearn.model_selection.StratifiedGroupKFold`.

        Returns
        -------
        self
        """
        self._check_parameters()
        data = check_training_set(self, X, y, sample_weight, self.pos_label)
        self._fit_to(with_groups(data, groups))
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_corner(self.min_fpr, self.max_fpr, self.min_tpr)
        check_choice("loss", self.loss, ("auto", "tight", "structural", "hinge"))
        check_solver_parameters(self.solver, self.loss, ("tight", "structural", "hinge"))
        if np.ndim(self.Cs) != 1 or np.size(self.Cs) == 0:
            raise ValueError(f"Cs must be a list of at least one number > 0; got {self.Cs!r}")
        for value in self.Cs:
            check_number("each of Cs", value, above=0.0)

    def _minimize(self, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        window, Cs = (self.min_fpr, self.max_fpr, self.min_tpr), np.unique(np.asarray(self.Cs, dtype=np.float64))
        folds = [Fold(data, *split, window, self.tol, self.max_iter) for split in self._splits(data)]
        parallel = Parallel(n_jobs=self.n_jobs)
        if self.loss != "auto":
            return self._best_fits(parallel, folds, Cs, callback)
        trials = self._trials(parallel, folds, data)
        self.start_scores_ = trials.means()
        # Above a true-positive rate, held-out scores depend on few positives and hardly rank the starting points.
        choices = trials.choices(data, with_tight=self.min_tpr > 0)
        routes = [Route(starts, parallel, folds, trials.weights, Cs) for starts in choices]
        # Clusters must be better by two standard errors: there are several of them, and the best may be so by chance.
        route = routes[-1] if is_behind(routes[0].best_scores, routes[-1].best_scores, 2.0) else routes[0]
        self.starts_ = [f"{spec.kind}, C={spec.C:g}" for spec in (trials.specs[k] for k in np.unique(route.starts))]
        self.Cs_, self.scores_ = np.concatenate([[0.0], Cs]), route.scores
        self.C_, self.averaged_Cs_ = float(self.Cs_[route.best]), self.Cs_[route.averaged]
        w = route.model()
        loss = self._make_measure().soft_loss(STEP).bind(data.positive, data.weight)
        objective = loss.value_and_gradient(as_operator(data.X).matvec(w))[0]
        trace = [Progress(objective, np.nan, 1)]
        if callback is not None:
            callback(trace[0])
        message = f"mean of the starting points {self.starts_} and of C={self.averaged_Cs_.tolist()}"
        return Result(w, objective, np.nan, route.n_iter, True, message, trace)

    def _trials(self, parallel: Parallel, folds: list[Fold], data: TrainingSet) -> StartTrials:
        """Fit the starting points in the folds."""
        whole = WindowRefinement(data, folds[0].window, self.tol, self.max_iter)
        whole.is_guide = data.X.shape[0] >= _GUIDED_ROWS
        # Clusters of positives are for models that detect one of them; above a true-positive rate, all count.
        groups = whole.groups() if self.min_tpr == 0 else {}
        of_groups = group_specs(groups)
        for spec in (*CLASSIFIERS, *of_groups):
            whole.start_of(spec, groups)
        trials = StartTrials(parallel, folds, groups, whole.solutions)
        trials.add(SAFE, race=self.min_tpr == 0)
        if self.min_tpr > 0:
            trials.add(TIGHT_ABOVE)
        trials.add_promising([*(TIGHT if self.min_tpr == 0 else ()), *(HINGE if self.min_fpr > 0 else ()), *of_groups])
        return trials

    def _best_fits(self, parallel: Parallel, folds: list[Fold], Cs: Array, callback: Callback | None) -> Result:
        """Fit the given loss for each ``C`` in each fold; return the mean of the models of the best ``C``."""
        models = [self._classifier(float(C)) for C in Cs]
        fitted = parallel(delayed(Fold.fits)(fold, models) for fold in counted("fold", folds))
        self.Cs_, self.scores_ = Cs, np.array([scores for scores, _, _ in fitted])
        best = int(np.argmax(self.scores_.mean(axis=0)))
        self.C_, self.averaged_Cs_ = float(Cs[best]), Cs[best : best + 1]
        self.starts_, self.start_scores_ = [], {}
        result = mean_result([(results[best], spreads[best]) for _, results, spreads in fitted])
        if callback is not None:
            callback(result.trace[0])
        n_iter = max(each.n_iter for _, results, _ in fitted for each in results)
        return replace(result, n_iter=n_iter, message=f"C={self.C_:g}: {result.message}")

    def _classifier(self, C: float) -> PartialAUCClassifier:
        shared = {name: getattr(self, name) for name in ("min_tpr", "solver", "tol", "max_iter")}
        return PartialAUCClassifier(self.min_fpr, self.max_fpr, self.loss, C=C, **shared)

    def _remedy(self) -> str:
        return self._classifier(1.0)._remedy()

    def _make_measure(self) -> Measure:
        return PartialAUCMeasure(self.min_fpr, self.max_fpr, self.min_tpr)

    def _splits(self, data: TrainingSet) -> list[Split]:
        """Return training and held-out rows, as indices of the rows with non-zero weight."""
        if self.cv is None:
            rng = random_source(self.random_state)
            return check_splits(folds(data.positive, 5, rng, data.kept_groups, n_repeats=2), data)
        return given_splits(data, self.cv)
