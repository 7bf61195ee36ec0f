"""Base class of the linear classifiers, norm constraints, and the solver for a penalty."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from rocmax._rounding import join_ties, join_ties_near, product_error, score_error
from rocmax._support import Array, stack_level
from rocmax._validation import TrainingSet, check_choice, check_number, check_rows, check_training_set, direction
from rocmax.base import Decision
from rocmax.explain import Contributions, linear_contributions
from rocmax.linear.refine import StandardizedRows
from rocmax.losses import Loss
from rocmax.measures import Measure
from rocmax.operators import as_operator, moments, row_space, standardized
from rocmax.penalties import Ball, ElasticNetBall, GroupBall, L1Ball, L2Ball
from rocmax.solvers import Callback, CuttingPlane, Result, choose_solver
from rocmax.solvers.base import Progress, Solver


class LinearDecision:
    """Mixin with the decision function of a linear model; must precede ``Decision`` in the list of bases."""

    coef_: Array
    intercept_: Array
    takes_sparse = True

    def decision_function(self, X: Any) -> Array:
        """Return the score of each row minus the threshold; positive values indicate ``classes_[1]``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision_values
        """
        X = check_rows(self, X)
        result: Array = as_operator(X).matvec(self.coef_[0]) + self.intercept_[0]
        return result

    def contributions(self, X: Any) -> Contributions:
        """Return the contribution of each feature to the decision value of each row.

        It is the weight of the feature times the difference of its value to the mean of the training rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        rocmax.explain.Contributions
            Contributions, and the decision value of the mean row, to which they refer.
        """
        return linear_contributions(self, check_rows(self, X), X)

    def _decision_error(self, X: Any, decision: Array) -> Array:
        return product_error(check_rows(self, X), self.coef_[0]) + score_error(self.intercept_)


class LinearScoreClassifier(LinearDecision, Decision, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class: fit a linear score by minimizing a loss, then choose a threshold for the measure."""

    tol: float
    max_iter: int
    verbose: int | bool
    warm_start: bool

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearScoreClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training rows. The features should be standardized, so that the penalty affects all of them equally.
        y, sample_weight

        Returns
        -------
        self
        """
        self._check_parameters()
        self._fit_to(RowsInMemory(*check_training_set(self, X, y, sample_weight, self.pos_label)))
        return self

    def _fit_to(self, data: RowsInMemory) -> None:
        """Fit the model to validated data."""
        sign = direction(data.positive_index)
        start = self._previous_weights(data.X.shape[1])
        result = self._minimize(data, None if start is None else sign * start, self._progress())
        self._warn(result)
        self._keep(result, result.w, self._threshold(data, self._joined_scores(data, result.w)), data)
        self._feature_means_ = moments(data.X, data.weight)[0]
        if result.w.any():
            self._warn_if_constant(data.X, lambda rows: as_operator(rows).matvec(result.w))

    def _previous_weights(self, n_features: int) -> Array | None:
        """Return the weights of the previous fit for a warm start, if there is one."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        found: Array = self.coef_[0]
        if found.size != n_features:
            raise ValueError(
                f"with warm_start, X must have the {found.size} features of the previous fit; got {n_features} features"
            )
        return found

    def _joined_scores(self, data: TrainingSet, w: Array) -> Array:
        """Return the training scores; those that determine the threshold, with ties joined."""
        scores = as_operator(data.X).matvec(w)
        if not w.any():
            return scores
        place = self._score_at_threshold(data, scores)
        if place is None:
            return join_ties(scores, product_error(data.X, w))
        return join_ties_near(scores, place, lambda rows: product_error(data.X[rows], w))

    def _keep(self, result: Result, w: Array, threshold: float, data: Any) -> None:
        """Set the attributes of a fitted model with the weights ``w`` of the original features."""
        self._keep_weights(w, threshold, data)
        self.objective_ = result.objective
        self.dual_gap_ = result.gap
        self.n_iter_ = result.n_iter
        self.trace_ = result.trace

    def _keep_weights(self, w: Array, threshold: float, data: Any) -> None:
        sign = direction(data.positive_index)
        self.classes_ = data.classes
        # As in scikit-learn, positive decision values indicate classes_[1], whether or not it is the positive class.
        self.coef_ = sign * w[np.newaxis, :]
        self.intercept_ = np.array([-sign * threshold])

    def _minimize(self, data: RowsInMemory, w0: Array | None, callback: Callback | None) -> Result:
        """Minimize the loss with a suitable solver; a class with several fits overrides :meth:`_fit_to` instead."""
        raise NotImplementedError

    def _fit_constrained(self, loss: Loss, data: RowsInMemory, w0: Array | None, callback: Callback | None) -> Result:
        """Minimize the loss under the norm constraint of an estimator that has one."""
        own: Any = self
        ball = make_constraint(own.constraint, own.radius, own.l1_ratio, own.groups, data.X.shape[1])
        return data.solve(solver_for(loss, ball, self.tol, self.max_iter), loss, ball, w0, callback)

    @abstractmethod
    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        """Return the score above which a row is predicted positive."""

    def _score_at_threshold(self, data: TrainingSet, scores: Array) -> float | None:
        """Return the score of the row that determines the threshold; None if all rows have to be compared."""
        return None

    def _remedy(self) -> str:
        """Return the part of the warning that explains zero weights and how to avoid them."""
        return "In no direction is the mean of the positives above that of the negatives; check that the features vary."

    def _check_parameters(self) -> None:
        check_number("tol", self.tol, above=0.0)
        check_number("max_iter", self.max_iter, above=0, integer=True)

    def _progress(self) -> Callback | None:
        if not self.verbose:
            return None
        name = type(self).__name__

        def report(progress: Progress) -> None:
            sys.stderr.write(
                f"{name}: objective {progress.objective:.6g}, bound {progress.bound:.6g}, "
                f"{progress.passes} passes over the data\n"
            )

        return report

    def _warn(self, result: Result) -> None:
        name, text = type(self).__name__, ""
        if not result.converged:
            still = "" if result.w.any() else ". The weights are still zero, so the model ranks at random"
            text = f"{name}: {result.message}{still}"
        elif not result.w.any():
            self._warn_collapsed()
        if text:
            warnings.warn(text, ConvergenceWarning, stacklevel=stack_level())

    def _warn_collapsed(self) -> None:
        name = type(self).__name__
        text = f"{name} collapsed: the fit ended at zero weights, so the model ranks at random. {self._remedy()}"
        warnings.warn(text, ConvergenceWarning, stacklevel=stack_level())


class RowsInMemory(TrainingSet):
    """Training rows in memory; those in files or on a cluster have the same methods.

    See :class:`~rocmax.linear.sharded.ShardedSet`.
    """

    def solve(
        self,
        solver: Solver,
        loss: Loss,
        penalty: Any,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Run a solver on the rows, in the row space if its dimension is smaller than the number of features.

        The solution is the same for rotation-invariant penalties.
        """
        operator, bound = as_operator(self.X), self.bind(loss)
        if not penalty.rotation_invariant:
            return solver.solve(operator, bound, penalty, w0, callback)
        rotated, lower, lift = row_space(operator, self.X, loss.shift_invariant)
        result = solver.solve(rotated, bound, penalty, None if w0 is None else lower(w0), callback)
        w = lift(result.w)
        # The rotation does not change a norm, but its rounding error does.
        return replace(result, w=penalty.inside(w) if isinstance(penalty, Ball) else w)

    def score(self, measure: Measure, scores: Array) -> float:
        """Return a measure of scores."""
        return measure.score(self.positive, scores, sample_weight=self.weight, pos_label=True)

    def some(self, rows: Any) -> RowsInMemory:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return self._replace(X=self.X[rows], positive=self.positive[rows], weight=weight)

    def in_single_precision(self, few_values: int) -> tuple[RowsInMemory, Any]:
        """Return dense rows of more than a few values with standardized features, and the scales of these.

        Products with rows in single precision take half of the time, and a search needs no more digits.
        """
        if sparse.issparse(self.X) or self.X.size <= few_values:
            return self, 1.0
        operator = standardized(self.X, self.weight)
        return self._replace(X=operator.rows(slice(None)).astype(np.float32)), operator.scale

    def standardized(self) -> StandardizedRows:
        """Return the rows with standardized features."""
        return StandardizedRows(self)


# Fits under a norm constraint: validation of the parameters, and the solver.


CONSTRAINTS = ("l2", "l1", "elasticnet", "group")


def check_constraint_parameters(constraint: Any, radius: Any, l1_ratio: Any, groups: Any) -> None:
    """Raise ValueError if the parameters of a norm constraint are invalid or inconsistent."""
    if constraint is not None:
        check_choice("constraint", constraint, CONSTRAINTS)
    if radius is not None:
        check_number("radius", radius, above=0.0)
    if constraint is None and radius is not None:
        raise ValueError(
            f"radius must be None if constraint is None; got {radius!r}. Pass constraint as one of "
            f"{', '.join(map(repr, CONSTRAINTS))}, or radius=None for the penalized problem with C"
        )
    if constraint is not None and radius is None:
        raise ValueError(
            f"with constraint={constraint!r}, radius must be a number > 0, the bound on the norm of the weights; got "
            "None (rocmax.partial_auc_path fits the model for several radii)"
        )
    if constraint == "elasticnet":
        number = isinstance(l1_ratio, int | float | np.integer | np.floating) and not isinstance(l1_ratio, bool)
        if not number or not 0 <= l1_ratio <= 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1; got {l1_ratio!r}")
    if constraint == "group" and groups is None:
        raise ValueError(
            "with constraint='group', groups must be one label per feature or a list of index arrays; got None"
        )
    if constraint != "group" and groups is not None:
        raise ValueError(f"groups must be None unless constraint='group'; got groups and constraint={constraint!r}")


def make_constraint(constraint: str, radius: float, l1_ratio: float, groups: Any, n_features: int) -> Ball:
    """Return the norm constraint."""
    if constraint == "l1":
        return L1Ball(radius)
    if constraint == "elasticnet":
        return ElasticNetBall(radius, l1_ratio)
    if constraint == "group":
        return GroupBall(radius, groups, n_features)
    return L2Ball(radius)


# Solvers for the penalized problem: certified or published cutting-plane method.


SOLVERS = ("certified", "cutting_plane")
CUTTING_PLANE_REMEDY = (
    "At zero weights no constraint is violated by more than tol. Lower C or tol, and check that the features vary."
)


def check_solver_parameters(solver: Any, loss: str, losses: tuple[str, ...], constraint: str | None = None) -> None:
    """Raise ValueError if the solver is unknown, or does not support the loss or the constraint."""
    check_choice("solver", solver, SOLVERS)
    if solver == "certified":
        return
    if constraint is not None:
        raise ValueError(f"with solver={solver!r}, constraint must be None; got {constraint!r}")
    check_choice(f"with solver={solver!r}, loss", loss, losses)


def solver_for(loss: Loss, penalty: Any, tol: float, max_iter: int, solver: str = "certified") -> Solver:
    """Return the published solver of a penalized problem, or the one that suits the loss and the penalty."""
    if solver == "cutting_plane":
        return CuttingPlane(tol, max_iter)
    # On two rows, a loss has the properties that it has on all rows.
    return choose_solver(loss.bind([False, True]), penalty, tol, max_iter)
