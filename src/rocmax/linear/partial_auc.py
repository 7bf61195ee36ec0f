"""Linear classifiers for the partial AUC, with a given strength or with built-in cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from rocmax._folds import Split, check_splits, folds, given_splits, with_groups
from rocmax._support import Array, Index, check_corner, counted
from rocmax._validation import TrainingSet, check_choice, check_number, check_training_set, random_source
from rocmax.base import MeasureMixin
from rocmax.linear.base import (
    CUTTING_PLANE_REMEDY,
    LinearScoreClassifier,
    RowsInMemory,
    check_constraint_parameters,
    check_solver_parameters,
    make_constraint,
    solver_for,
)
from rocmax.linear.refine import RULES, Start, WindowRefinement, weighted_spread
from rocmax.linear.sharded import FitFilesMixin
from rocmax.losses import Loss, PairwiseHinge, PartialAUCHinge, PartialAUCStructural
from rocmax.measures import Measure, PartialAUCMeasure
from rocmax.operators import as_operator, moments
from rocmax.penalties import Ball, SquaredL2
from rocmax.solvers import CCCP, Callback, Progress, Result

# One problem on a window, shared by the classifier with a given strength and the one with cross-validation.


@dataclass(frozen=True)
class WindowProblem:
    """Loss on a window of false-positive rates above a true-positive rate, its weight, and how it is minimized."""

    window: tuple[float, float, float]
    loss: str
    C: float
    solver: str
    tol: float
    max_iter: int

    def check(self, constraint: Any = None, radius: Any = None, l1_ratio: Any = None, groups: Any = None) -> None:
        """Raise ValueError if a parameter is invalid, or does not go with the others."""
        check_number("tol", self.tol, above=0.0)
        check_number("max_iter", self.max_iter, above=0, integer=True)
        check_number("C", self.C, above=0.0)
        check_corner(*self.window)
        check_constraint_parameters(constraint, radius, l1_ratio, groups)
        check_choice("loss", self.loss, ("auto", "tight", "structural", "hinge"))
        check_solver_parameters(self.solver, self.loss, ("tight", "structural", "hinge"), constraint)
        if constraint is not None and self.loss == "hinge" and self.window[0] > 0:
            raise ValueError(
                "with a constraint, loss must be convex; got 'hinge', which is not convex for min_fpr > 0; use "
                '"auto", "tight" or "structural"'
            )

    @property
    def measure(self) -> Measure:
        """The partial AUC of the window."""
        return PartialAUCMeasure(*self.window)

    @property
    def convex_loss(self) -> Loss:
        """The tight or the structural loss."""
        return PartialAUCStructural(*self.window) if self.loss == "structural" else self.measure.convex_loss()

    def minimize(self, data: RowsInMemory, w0: Array | None = None, callback: Callback | None = None) -> Result:
        """Minimize the penalized loss, from ``w0`` if it is better than the usual start."""
        if self.loss == "auto":
            refinement = WindowRefinement(data.standardized(), self.window, self.tol, self.max_iter)
            return refinement.run(refinement.logistic_start(), self.C, w0, callback)
        penalty = SquaredL2(self.C)
        if self.loss in ("tight", "structural") or (self.solver == "cutting_plane" and self.window[0] == 0):
            solver = solver_for(self.convex_loss, penalty, self.tol, self.max_iter, self.solver)
            return data.solve(solver, self.convex_loss, penalty, w0, callback)
        start = w0
        if start is None or not start.any():
            full_auc = solver_for(PairwiseHinge(), penalty, self.tol, max(self.max_iter, 100), self.solver)
            full = data.solve(full_auc, PairwiseHinge(), penalty)
            if not full.w.any():
                return full
            start = full.w
        inner = solver_for(PairwiseHinge(), penalty, self.tol, self.max_iter, self.solver)
        outer = CCCP(self.tol, self.max_iter, inner=inner)
        return data.solve(outer, PartialAUCHinge(*self.window), penalty, start, callback)

    def minimize_in(self, ball: Ball, data: RowsInMemory, w0: Array | None, callback: Callback | None = None) -> Result:
        """Minimize the convex loss in a ball; with "auto", that of the full AUC if its partial AUC is larger."""
        losses = [self.convex_loss]
        if self.loss == "auto" and self.window != (0.0, 1.0, 0.0):
            losses.append(PairwiseHinge())
        solver = solver_for(losses[0], ball, self.tol, self.max_iter)
        results = [data.solve(solver, loss, ball, w0, callback) for loss in losses]
        return max(results, key=lambda result: self.on_rows(data, result.w)) if len(results) > 1 else results[0]

    def on_rows(self, data: Any, w: Array) -> float:
        """Return the partial AUC of weights on rows."""
        area: float = data.score(self.measure, as_operator(data.X).matvec(w))
        return area

    def remedy(self, constrained: bool = False) -> str:
        """Return the part of a warning that explains zero weights."""
        if self.solver == "cutting_plane":
            return f'{CUTTING_PLANE_REMEDY} Or use loss="auto".'
        if self.loss == "auto":
            return "No feature separates the classes; check that the features vary."
        other = 'solver="cutting_plane" with C chosen on held-out rows'
        if self.loss == "hinge" and self.window[0] > 0:
            return f'Zero weights are a stationary point of this loss, which is not convex. Use loss="auto" or {other}.'
        other = "" if constrained else f"{other}, "
        positives = "lowest positives" if self.window[2] > 0 else "positives"
        return (
            f"The optimum of this convex loss is at zero weights: in no direction is the mean of the {positives} above "
            f'the mean of the negatives in the window. Use loss="auto", {other}widen the window, or raise a very '
            "small C."
        )


# Linear classifier for the partial AUC.


class PartialAUCClassifier(FitFilesMixin, MeasureMixin, LinearScoreClassifier):
    r"""Linear classifier that maximizes the area under the ROC curve in a range of rates.

    The range is given by two false-positive rates, a lower limit on the true-positive rate, or both.

    Parameters
    ----------
    min_fpr
    max_fpr : ...
        A limit of one percent false positives is ``max_fpr=0.01``.
    loss : {"auto", "tight", "structural", "hinge"}, default="auto"
        Loss to minimize:

        - "auto": minimizes a bounded loss on the pairs in the window, starting from logistic regression. A penalty on
          the change of the scores regularizes the fit towards this starting point. The fit cannot collapse to zero
          weights, and its partial AUC on the training rows is at least that of the starting point. Features are
          standardized internally, so their scale does not matter.
        - "tight": :math:`\frac{1}{2}|w|^2 + C R(w)` with the tight convex surrogate,
          :class:`~rocmax.losses.PartialAUCTight`.
        - "structural": the same with the looser :class:`~rocmax.losses.PartialAUCStructural`.
        - "hinge": the same with the pairwise hinge on the window, :class:`~rocmax.losses.PartialAUCHinge`, which is not
          convex if ``min_fpr > 0``; minimized by CCCP from the full-AUC solution.

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
    solver : ...
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
        self._problem().check(self.constraint, self.radius, self.l1_ratio, self.groups)

    def _problem(self) -> WindowProblem:
        window = (self.min_fpr, self.max_fpr, self.min_tpr)
        return WindowProblem(window, self.loss, self.C, self.solver, self.tol, self.max_iter)

    def _remedy(self) -> str:
        return self._problem().remedy(self.constraint is not None)

    def _minimize(self, data: RowsInMemory, w0: Array | None, callback: Callback | None) -> Result:
        problem = self._problem()
        if self.constraint is None or self.radius is None:
            return problem.minimize(data, w0, callback)
        ball = make_constraint(self.constraint, self.radius, self.l1_ratio, self.groups, data.X.shape[1])
        return problem.minimize_in(ball, data, w0, callback)

    def _make_measure(self) -> Measure:
        return self._problem().measure


# Linear classifier for the partial AUC with built-in cross-validation.


@dataclass(frozen=True)
class StartRules:
    """Tuned numbers of the search for a starting point."""

    # Weights of the losses of starting points, on standardized features.
    logistic: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    tight: tuple[float, ...] = (0.01, 1.0, 100.0)
    hinge: tuple[float, ...] = (100.0,)
    # Candidates other than logistic regression are dropped if they are behind the best of these in each of the first
    # folds, or have zero weights in one of them.
    trial: int = 3
    # Up to this number of values, the default folds are drawn twice, which gained 0.4 points of partial AUC on small
    # sets. Above it, dense rows are used in single precision, which takes about half of the time.
    few_values: int = 100_000


STARTS = StartRules()


@dataclass
class Fold:
    """One split: fit on the training rows, score on the held-out rows."""

    data: RowsInMemory
    train: Index
    test: Index
    problem: WindowProblem

    def starts(self, specs: list[tuple[str, float]]) -> tuple[list[float], list[Array]]:
        """Return the held-out partial AUC and the weights of each starting point.

        Zero weights score 0, not the partial AUC of a random ranking, which can exceed that of proper models.
        """
        fit = self._refinement()
        kinds: dict[str, Callable[[float], Start]] = {
            "logistic": fit.logistic_start,
            "balanced": lambda C: fit.logistic_start(C, balanced=True),
            "tight": fit.tight_start,
            "hinge": fit.hinge_start,
        }
        found = [fit.weights(kinds[kind](C)) for kind, C in specs]
        return self._scores(found, zero=0.0), found

    def path(self, start: Array, Cs: Array) -> tuple[list[float], list[Array], int]:
        """Return the held-out partial AUC and the weights along the path, and the largest number of iterations."""
        refinement = self._refinement()
        results = refinement.path(refinement.start_at(start), Cs)
        models = [result.w for result in results]
        return self._scores(models), models, max(result.n_iter for result in results)

    def fits(self, Cs: Array) -> tuple[list[float], list[Result], list[Array]]:
        """Return the held-out partial AUC, the result, and weights whose scores have unit standard deviation."""
        part = self.data.some(self.train)
        results = [replace(self.problem, C=float(C)).minimize(part) for C in Cs]
        operator = as_operator(part.X)
        units = [result.w / weighted_spread(operator.matvec(result.w), part.weight) for result in results]
        return self._scores([result.w for result in results], zero=0.0), results, units

    def with_all_rows(self) -> Fold:
        """Return a split that fits on all rows."""
        rows = np.arange(self.data.positive.size)
        return replace(self, train=rows, test=rows)

    def _refinement(self) -> WindowRefinement:
        problem = self.problem
        return WindowRefinement(
            self.data.some(self.train).standardized(), problem.window, problem.tol, problem.max_iter
        )

    def _scores(self, models: list[Array], zero: float | None = None) -> list[float]:
        """Return the held-out partial AUC of each model; ``zero``, if given, for zero weights."""
        part = self.data.some(self.test)
        operator = as_operator(part.X)
        return [
            zero if zero is not None and not w.any() else part.score(self.problem.measure, operator.matvec(w))
            for w in models
        ]


def _go_forward(folds: list[Fold]) -> bool:
    """Return whether all held-out rows of a split, as the latest ones of splits forward in time, train no model."""
    trained = np.unique(np.concatenate([fold.train for fold in folds]))
    return len(folds) > 1 and any(not np.isin(fold.test, trained).any() for fold in folds)


class PartialAUCClassifierCV(MeasureMixin, LinearScoreClassifier):
    r"""Partial-AUC classifier that selects the starting point and ``C`` by cross-validation.

    With ``loss="auto"``, the fit of ``PartialAUCClassifier(loss="auto")`` is run on the training part of each fold.
    First, candidates for the starting point are fitted: logistic regression with and without balanced class weights,
    with several regularization strengths; the tight convex loss, minimized by Algorithm 1 of Narasimhan and Agarwal,
    which stops early; and for ``min_fpr > 0`` the hinge loss on the window. The candidates with class weights or a loss
    on the window are dropped if they are behind the best logistic regression in each of the first three folds, or have
    zero weights in one of them. From the candidate with the best mean partial AUC on the held-out rows, models are
    fitted along a path of values of ``C``, each initialized with the previous solution. ``C = 0``, the starting point,
    is always part of the path. Dense rows of more than 100,000 values are used in single precision. The models of all
    folds with the best ``C`` are averaged: the mean of linear scores with
    unit standard deviation is again a linear score, with less variance. Splits forward in time, as those of
    :class:`rocmax.ForwardSplit`, would leave the latest rows out of all these models. If all held-out rows of one of
    several splits are in no training part, the model is therefore the fit of the chosen starting point and ``C`` to all
    rows.

    With another loss, :class:`PartialAUCClassifier` is fitted for each ``C`` on the training part of each fold. The
    value of ``C`` with the best mean partial AUC on the held-out rows is selected, and its models of all folds are
    averaged, scaled to unit standard deviation. Except with splits forward in time, there is no refit on all rows, so
    with a single split the fitted model of the selected ``C`` is kept. With ``solver="cutting_plane"`` and a single
    split, this is how Narasimhan and Agarwal (2017) tune ``C``, from :math:`10^{-5}` to :math:`10^4`; they do not state
    whether they refit.

    Parameters
    ----------
    min_fpr, max_fpr
    loss : {"auto", "tight", "structural", "hinge"}, default="auto"
        Loss to minimize, as in :class:`PartialAUCClassifier`; "auto" requires ``solver="certified"``.
    min_tpr
    Cs : array-like of float, default=(0.3, 3.0, 30.0, 300.0)
        Values of ``C`` to try; with ``loss="auto"``, 0 is always included.
    cv : int, cross-validation generator or iterable, default=None
        Cross-validation splits. None takes five stratified folds, repeated twice if there are at most 100,000 values;
        fewer folds if a class has fewer than five rows. With ``groups``, the folds of None and of an int keep groups
        together, and other splits must do so.
    solver
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
    scores_ : ndarray of shape (n_folds, n_values)
        Partial AUC of the held-out rows along the path.
    start_ : str
        The starting point: "logistic", "balanced" (logistic regression with balanced class weights), "tight" or
        "hinge", with the weight of the loss on standardized features, such as "logistic, C=0.1". Empty if ``loss`` is
        not "auto".
    start_scores_ : dict
        Mean held-out partial AUC of each candidate for the starting point. Empty if ``loss`` is not "auto".
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
        Cs: Any = (0.3, 3.0, 30.0, 300.0),
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
        data = RowsInMemory(*check_training_set(self, X, y, sample_weight, self.pos_label))
        self._fit_to(with_groups(data, groups))
        return self

    def _check_parameters(self) -> None:
        self._problem().check()
        if np.ndim(self.Cs) != 1 or np.size(self.Cs) == 0:
            raise ValueError(f"Cs must be a list of at least one number > 0; got {self.Cs!r}")
        for value in self.Cs:
            check_number("each of Cs", value, above=0.0)

    def _fit_to(self, data: Any) -> None:
        """Fit the models of the folds, and keep the mean of the best ones."""
        folds = [Fold(data, *split, self._problem()) for split in self._splits(data)]
        Cs = np.unique(np.asarray(self.Cs, dtype=np.float64))
        w = self._fit_path(folds, Cs) if self.loss == "auto" else self._fit_each(folds, Cs)
        callback = self._progress()
        if callback is not None:
            callback(Progress(self.objective_, self.objective_ - self.dual_gap_, 1))
        if self.loss == "auto" and not w.any():
            self._warn_collapsed()
        self._keep_weights(w, self._threshold(data, self._joined_scores(data, w)), data)
        self._feature_means_ = moments(data.X, data.weight)[0]
        if w.any():
            self._warn_if_constant(data.X, lambda rows: as_operator(rows).matvec(w))

    def _fit_path(self, folds: list[Fold], Cs: Array) -> Array:
        """Choose the starting point, then the value of ``C``; return the mean of the models of the folds."""
        data, scale = folds[0].data.in_single_precision(STARTS.few_values)
        folds = [replace(fold, data=data) for fold in folds]
        parallel = Parallel(n_jobs=self.n_jobs)
        starts = self._fit_starts(parallel, folds)
        begun = counted("path over C, fold", list(zip(folds, starts, strict=True)))
        paths = parallel(delayed(Fold.path)(fold, start, Cs) for fold, start in begun)
        self.Cs_, best = np.concatenate([[0.0], Cs]), self._choose([scores for scores, _, _ in paths])
        self.C_, self.n_iter_ = float(self.Cs_[best]), max(n_iter for _, _, n_iter in paths)
        w: Array = np.mean([models[best] for _, models, _ in paths], axis=0)
        if _go_forward(folds):
            everything = folds[0].with_all_rows()
            kind, _, C = self.start_.partition(", C=")
            start = everything.starts([(kind, float(C))])[1][0]
            w = everything.path(start, Cs[:best])[1][best]
        loss = self._make_measure().soft_loss(RULES.step).bind(data.positive, data.weight)
        self.objective_, self.dual_gap_ = loss.value_and_gradient(as_operator(data.X).matvec(w))[0], np.nan
        w /= scale
        return w

    def _fit_starts(self, parallel: Parallel, folds: list[Fold]) -> list[Array]:
        """Fit candidates for the starting point; return the weights of the best one in each fold."""

        def fitted(folds: list[Fold], specs: list[tuple[str, float]]) -> dict[tuple[str, float], Any]:
            text = f"{len(specs)} starting points, fold"
            found = parallel(delayed(Fold.starts)(fold, specs) for fold in counted(text, folds))
            return {spec: [(scores[k], weights[k]) for scores, weights in found] for k, spec in enumerate(specs)}

        def mean(spec: tuple[str, float]) -> float:
            return float(np.mean([score for score, _ in starts[spec]]))

        starts = fitted(folds, [("logistic", C) for C in STARTS.logistic])
        best = max(starts, key=mean)
        # Losses on the window depend on few rows and can collapse; most of these fits are behind.
        others = [("balanced", C) for C in STARTS.logistic] + [("tight", C) for C in STARTS.tight]
        if self.min_fpr > 0:
            others += [("hinge", C) for C in STARTS.hinge]
        trial = fitted(folds[: STARTS.trial], others)
        ahead = [
            spec
            for spec, fits in trial.items()
            if all(w.any() for _, w in fits)
            and any(score >= least for (score, _), (least, _) in zip(fits, starts[best], strict=False))
        ]
        if ahead:
            rest = fitted(folds[STARTS.trial :], ahead)
            starts.update({spec: trial[spec] + rest[spec] for spec in ahead})
            best = max(starts, key=mean)
        self.start_scores_ = {f"{kind}, C={C:g}": mean((kind, C)) for kind, C in starts}
        self.start_ = f"{best[0]}, C={best[1]:g}"
        return [w for _, w in starts[best]]

    def _fit_each(self, folds: list[Fold], Cs: Array) -> Array:
        """Fit the given loss for each ``C`` in each fold; return the mean of the models of the best ``C``."""
        fitted = Parallel(n_jobs=self.n_jobs)(delayed(Fold.fits)(fold, Cs) for fold in counted("fold", folds))
        self.Cs_, best = Cs, self._choose([scores for scores, _, _ in fitted])
        self.C_, self.start_, self.start_scores_ = float(Cs[best]), "", {}
        self.n_iter_ = max(each.n_iter for _, results, _ in fitted for each in results)
        chosen = [results[best] for _, results, _ in fitted]
        self.objective_ = float(np.mean([result.objective for result in chosen]))
        self.dual_gap_ = float(np.mean([result.gap for result in chosen]))
        if _go_forward(folds):
            _, chosen, units = folds[0].with_all_rows().fits(Cs[[best]])
            self._warn(replace(chosen[0], w=units[0], message=f"C={self.C_:g}: {chosen[0].message}"))
            return units[0]
        w: Array = chosen[0].w if len(folds) == 1 else np.mean([units[best] for _, _, units in fitted], axis=0)
        # The fit of a fold that did not converge, if there is one, explains the state of the mean.
        state = min(chosen, key=lambda result: result.converged)
        self._warn(replace(state, w=w, message=f"C={self.C_:g}: {state.message}"))
        return w

    def _choose(self, scores: list[list[float]]) -> int:
        self.scores_ = np.array(scores)
        return int(np.argmax(self.scores_.mean(axis=0)))

    def _problem(self) -> WindowProblem:
        window = (self.min_fpr, self.max_fpr, self.min_tpr)
        return WindowProblem(window, self.loss, 1.0, self.solver, self.tol, self.max_iter)

    def _remedy(self) -> str:
        return self._problem().remedy()

    def _make_measure(self) -> Measure:
        return self._problem().measure

    def _splits(self, data: TrainingSet) -> list[Split]:
        """Return training and held-out rows, as indices of the rows with non-zero weight."""
        if self.cv is None:
            rng = random_source(self.random_state)
            n_repeats = 2 if np.prod(data.X.shape) <= STARTS.few_values else 1
            return check_splits(folds(data.positive, 5, rng, data.kept_groups, n_repeats=n_repeats), data)
        return given_splits(data, self.cv)
