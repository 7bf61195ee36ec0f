"""Follow the regularized leader: the optimal model for all rows so far, after every batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._response import direction
from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_block, check_number, random_source
from rocmax.estimators._measure_parameter import MeasureParameterMixin
from rocmax.estimators.linear.base import LinearScoreClassifier
from rocmax.estimators.online._fixed_parameters import check_unchanged, fixed_parameters
from rocmax.estimators.online._leader import Leader, Update
from rocmax.measures import Measure
from rocmax.operators import as_operator
from rocmax.solvers import Callback, Result

# Parameters that may change between calls of partial_fit: each solve uses all rows and the current values. The seed is
# used only for the order of the rows in fit.
_FREE = ("eta", "compute_regret", "tol", "max_iter", "n_batches", "random_state", "verbose")


class FollowTheLeaderClassifier(MeasureParameterMixin, LinearScoreClassifier):
    r"""Linear classifier that is optimal for all rows so far after each batch (follow the regularized leader, FTRL).

    .. math:: w_{t+1} = \arg\min_{|w| \le \mathrm{radius}} \; \ell_t(w) + \tfrac{\eta}{2} |w|^2

    with :math:`\ell_t` the convex loss of the measure on the batches :math:`1, \dots, t`, as a sum. Because
    :math:`\eta` is fixed and the sum grows, the penalty becomes weaker relative to the loss with every batch. Each
    problem is solved to a certified gap, starting from the previous weights and, if the loss supports it, from the
    previous cutting planes, converted to the larger sample. All rows are kept in memory.

    ``eta``, ``tol``, ``max_iter`` and ``compute_regret`` may be changed between calls of ``partial_fit``; the measure,
    its parameters, ``radius`` and ``pos_label`` may not.

    The current model is evaluated on each batch before it is updated. ``regret_`` is the difference between the loss of
    these models and that of the best model in hindsight.

    Parameters
    ----------
    measure : str or Measure, default="partial_auc"
        Measure to train for: "roc_auc", "partial_auc", "two_way_partial_auc", "tpr_at_fpr", "precision_at_k",
        "break_even_point", "f_beta" or "g_mean", whose convex loss is minimized. An object of :mod:`rocmax.measures`
        has its own parameters.
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0. Used by "partial_auc".
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1. Used by "partial_auc"
        and "two_way_partial_auc"; also the limit of "tpr_at_fpr".
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1. Used by "partial_auc" and
        "two_way_partial_auc".
    k : int or float, default=0.1
        Number of rows as an int, or fraction of all rows, above 0 and at most 1, as a float. Used by "precision_at_k".
        ``fit`` converts a number to a fraction of the training rows. ``partial_fit`` requires a fraction, because the
        total number of rows is unknown.
    beta : float, default=1.0
        Weight of the recall, above 0. Used by "f_beta".
    reference : {"best", "positives"}, default="best"
        Reference labelling in the convex loss of the precision at k, see :class:`~rocmax.losses.PrecisionAtK`:
        "positives" is that of the papers. Must be "best" for other measures.
    eta : float, default=1.0
        Regularization parameter, the weight of the penalty against the sum of the losses. Must be positive.
    radius : float, default=10.0
        Upper bound on the L2 norm of the weights, of the models and of the best model in hindsight. Must be positive.
    average : bool, default=False
        Whether the model is the mean of :math:`w_1, \dots, w_T`, the models that were evaluated on the batches, instead
        of the leader :math:`w_{T+1}` (online-to-batch conversion). For one batch, this is :math:`w_1 = 0`.
    compute_regret : bool, default=True
        Whether to compute the regret. This requires a second problem to be solved for each batch, unless the leader is
        on the surface of the ball.
    n_batches : int, default=10
        Number of batches of equal size into which ``fit`` divides the rows, in random order. 1 is equivalent to
        the batch fit.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``, and at most
        ``tol`` times the improvement of the objective over zero weights.
    max_iter : int, default=500
        Maximum number of iterations of the solver.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
        global generator is never used.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    verbose : bool, default=False
        Whether to report progress on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the leader, or the mean of the weights with ``average``.
    intercept_ : ndarray of shape (1,)
        Minus the threshold, chosen on all rows so far as in the batch classifier of the same measure.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The objective of the leader on all rows so far, divided by ``eta``: :math:`\frac12 |w|^2` plus the mean loss
        times :math:`c_t / \eta`, see Notes.
    dual_gap_ : float
        The objective minus a certified lower bound on its minimum.
    regret_ : ndarray of shape (n_batches_so_far,)
        Regret after each batch, see Notes; 0 until both classes have been seen, NaN without ``compute_regret``.
    regret_gap_ : ndarray of shape (n_batches_so_far,)
        Certified error of the regret, which is at least ``regret_`` and at most ``regret_ + regret_gap_``.
    passes_ : ndarray of shape (n_batches_so_far,)
        Number of passes over the rows for each batch, including those for the regret and the conversion of cuts.
    n_iter_ : int
        Number of iterations of the last update; 1 until both classes have been seen.
    trace_ : list of Progress
        Objective, bound and passes over the data of the last update: one entry per iteration, or, if the leader is on
        the surface of the ball, one entry per penalized problem.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if `X` had any.

    Notes
    -----
    *Regret.* The loss on the rows :math:`Z_{1:t}` is not a sum over batches. Therefore the loss of a batch
    is defined as its contribution: with :math:`\ell_t = c_t R_{1:t}`, the penalty of :math:`w_t` on batch :math:`t` is
    :math:`L_t(w_t) = \ell_t(w_t) - \ell_{t-1}(w_t)`. The factor :math:`c_t` turns the mean loss into a sum:
    :math:`mn` for the AUC; for the partial AUC, :math:`mn` times the width of the window times
    :math:`1 - \mathrm{min\_tpr}`; :math:`\min(k, m)` for precision at k, :math:`m` for the others. The penalties of one
    model add up to :math:`\ell_T`, so that

    .. math:: \mathrm{regret}_T = \frac{1}{c_T} \sum_{t=1}^T L_t(w_t) - \min_{|w| \le \mathrm{radius}} R_{1:T}(w)

    is the mean penalty of the models :math:`w_t` minus that of the best model in hindsight, which is not regularized.
    This is the regret of Kar et al. (their Eq. 6 and section 3.2), normalized as in their Theorem 3. The first model is
    :math:`w_1 = 0`.

    *Averaging.* For independent batches, the expected loss of the mean of :math:`w_1, \dots, w_T` is bounded by that of
    the best model plus the regret (their Theorem 4).

    *Ball.* If the penalized solution without the ball is outside of it, the leader is the solution for a stronger
    penalty whose norm is the radius. It is also the best model in hindsight.

    *Cuts.* For precision at k, break-even point, F-beta and G-mean, the previous cuts reduce the number of passes. For
    the AUC and the partial AUC with ``min_fpr=0``, they are scaled and have little effect; the previous weights are
    more important. For ``min_fpr > 0``, only the previous weights are used.

    References
    ----------
    Kar, Narasimhan and Jain, "Online and stochastic gradient methods for non-decomposable loss functions", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import FollowTheLeaderClassifier
    >>> X, y = make_classification(n_samples=5000, weights=[0.9], random_state=0)
    >>> model = FollowTheLeaderClassifier("roc_auc")
    >>> for start in range(0, 5000, 500):
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500], classes=[0, 1])
    >>> bool(model.dual_gap_ <= 1e-3 * model.objective_)
    True
    >>> model.regret_.size, bool(model.regret_[-1] < 0.2 * model.regret_[0])
    (10, True)
    """

    warm_start = False
    _leader: Leader
    _fixed: dict[str, Any]

    def __init__(
        self,
        measure: str | Measure = "partial_auc",
        *,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        min_tpr: float = 0.0,
        k: float = 0.1,
        beta: float = 1.0,
        reference: str = "best",
        eta: float = 1.0,
        radius: float = 10.0,
        average: bool = False,
        compute_regret: bool = True,
        n_batches: int = 10,
        tol: float = 1e-3,
        max_iter: int = 500,
        random_state: Any = None,
        pos_label: Any = None,
        verbose: bool = False,
    ) -> None:
        self.measure = measure
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.min_tpr = min_tpr
        self.k = k
        self.beta = beta
        self.reference = reference
        self.eta = eta
        self.radius = radius
        self.average = average
        self.compute_regret = compute_regret
        self.n_batches = n_batches
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.pos_label = pos_label
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> FollowTheLeaderClassifier:  # type: ignore[override]
        """Fit the model to the rows in batches, in random order; rows of earlier calls are discarded.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training rows. The features should be standardized, so that the penalty affects all of them equally.
        y : array-like of shape (n_samples,)
            Two classes, of any type.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        super().fit(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> FollowTheLeaderClassifier:
        """Evaluate the model on a batch, then update it to the optimum for all rows so far.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            New rows, which are kept together with those of earlier calls.
        y : array-like of shape (n_samples,)
            Class labels; a batch may contain only one of the classes.
        classes : array-like of shape (2,), default=None
            The two classes; required in the first call.

        Returns
        -------
        self : object
            The estimator.
        """
        self._check_parameters()
        measure = self._stream_measure()
        block = check_block(self, X, y, classes, self.pos_label)
        if getattr(self, "_leader", None) is None:
            self.classes_ = block.classes
            self._begin(block.X.shape[1])
        check_unchanged(self, self._fixed)
        self._take(measure, block.X, block.positive, self._progress())
        result, rows = self._model(), self._leader
        sign = direction(block.positive_index)
        threshold = 0.0
        if rows.has_both():
            self._warn(rows.result)
            threshold = measure.threshold(as_operator(rows.X).matvec(result.w), rows.positive)
        self.coef_ = sign * result.w[np.newaxis, :]
        self.intercept_ = np.array([-sign * threshold])
        self.objective_, self.dual_gap_ = result.objective, result.gap
        self.n_iter_, self.trace_ = result.n_iter, result.trace
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_measure()
        check_number("eta", self.eta, above=0.0)
        check_number("radius", self.radius, above=0.0)
        check_number("n_batches", self.n_batches, above=0, integer=True)

    def _begin(self, n_features: int) -> None:
        self._leader = Leader(n_features)
        self._fixed = fixed_parameters(self, _FREE)

    def _take(self, measure: Measure, X: Any, positive: NDArray[np.bool_], callback: Callback | None) -> None:
        leader = self._leader
        update = Update(self.eta, self.radius, self.tol, self.max_iter, self.compute_regret, callback)
        leader.take(X, positive, self._convex_loss(measure), update)
        self.regret_, self.regret_gap_ = np.array(leader.regret), np.array(leader.regret_gap)
        self.passes_ = np.array(leader.passes)

    def _model(self) -> Result:
        """Return the leader, with the mean of the models in place of its weights if they are averaged."""
        leader = self._leader
        return replace(leader.result, w=leader.mean_w) if self.average else leader.result

    def _minimize(self, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        order = random_source(self.random_state).permutation(data.positive.size)
        measure = self._make_measure().as_fraction(order.size)
        self._begin(data.X.shape[1])
        for part in np.array_split(order, min(self.n_batches, order.size)):
            self._take(measure, data.X[part], data.positive[part], callback)
        return self._model()

    def _remedy(self) -> str:
        if self.average and self._leader.result.w.any():
            return "With average, the model after the first batch is w_1 = 0. Use more batches."
        return (
            "The optimum of the convex loss of this measure is at zero weights, because the classes overlap strongly. "
            'Use a batch classifier with loss="auto", which does not collapse.'
        )
