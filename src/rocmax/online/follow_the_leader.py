r"""Follow the regularized leader: the optimal model for all rows so far, after every batch.

Let :math:`w(c)` be the minimizer of :math:`\frac{1}{2}|w|^2 + c R(w)` without the ball. Its norm increases with ``c``.
If :math:`|w(C)| \le r`, it is the solution. Otherwise, the solution is :math:`w(c)` for the ``c < C`` with
:math:`|w(c)| = r`, which also minimizes ``R`` in the ball. For every ``c <= C``, with the minimum :math:`P(c)`,

.. math:: \frac{C}{c} P(c) - \frac{1}{2} \Bigl(\frac{C}{c} - 1\Bigr) r^2

is a lower bound of the optimum. It is exact at the right ``c``, and its error is quadratic in the error of ``c``. A few
solves, each from the weights and cuts of the last one, are therefore enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._support import Array, Bools
from rocmax._validation import Block, TrainingSet, check_number, random_source
from rocmax.base import MeasureParameterMixin
from rocmax.linear.base import LinearScoreClassifier
from rocmax.losses import BoundLoss, Loss
from rocmax.losses.contingency import Growth, grow_cuts
from rocmax.measures import Measure
from rocmax.online.base import BatchStreamMixin
from rocmax.online.sampling import stack
from rocmax.operators import CountingOperator, Operator, as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, Callback, Cuts, Progress, Result, SmoothedNewton
from rocmax.solvers.base import finish, gap_rounding


class GrowingRows(NamedTuple):
    """All rows with their scores at the current weights; the cuts are based on the first ``n_old`` rows.

    ``sums`` are the sums of the old rows by class, negatives first.
    """

    X: Any
    operator: Operator
    positive: Bools
    scores: Array
    n_old: int
    sums: Array

    def counts(self, *, old: bool = False) -> tuple[int, int]:
        """Return the numbers of positives and negatives."""
        positive = self.positive[: self.n_old] if old else self.positive
        m = int(np.count_nonzero(positive))
        return m, positive.size - m


def class_sums(X: Any, positive: Bools) -> Array:
    """Return the sums of the rows by class, negatives first."""
    operator = as_operator(X)
    return np.array([operator.rmatvec((positive == side).astype(np.float64)) for side in (False, True)])


def no_cuts(n_features: int) -> Cuts:
    """Return an empty set of cuts."""
    return Cuts(np.empty((0, n_features)), np.empty(0), [])


def carry(loss: Loss, cuts: Cuts, rows: GrowingRows) -> Cuts:
    """Return the cuts for all rows; none if the loss does not support it or a class was missing before."""
    nothing = no_cuts(cuts.gradient.shape[1])
    if not len(cuts.offset) or not min(rows.counts(old=True)):
        return nothing
    new = slice(rows.n_old, None)
    growth = Growth(*rows.counts(old=True), rows.positive[new], rows.scores[new])
    grown = grow_cuts(loss, cuts.offset, cuts.tables, growth)
    if grown is None:
        return nothing
    gradient = grown.share * cuts.gradient
    if grown.of_rows is not None:
        gradient += grown.of_classes @ rows.sums + as_operator(rows.X[new]).rmatvec(grown.of_rows)
    return Cuts(gradient, grown.offset, grown.tables)


@dataclass(frozen=True)
class BallRules:
    """Numbers of the search for ``c``, and of the stopping rules."""

    # Maximum number of values of c, and the largest factor between two of them.
    max_rounds: int = 40
    largest_factor: float = 1000.0
    # Share of the tolerance for the gap of the penalized problems; the rest is for the error of c.
    share: float = 0.4
    # Limits of the slope of log |w(c)| in log c: the norm is at most proportional to c.
    slopes: tuple[float, float] = (0.05, 1.0)
    # Lower limit of the loss in the stopping rule, relative to the loss of zero weights: it can be 0 on separable data.
    # The regret is a difference of losses, so that the loss in hindsight needs no more than an absolute error.
    floor: float = 1e-3
    floor_in_hindsight: float = 1.0


RULES = BallRules()


@dataclass(frozen=True)
class Warm:
    """Start of a solve: weights, valid cuts, and the value of ``c`` at which the previous solution was on the ball.

    If the previous solution was inside the ball, ``c`` is infinite.
    """

    w: Array
    cuts: Cuts
    c: float = 1.0


@dataclass(frozen=True)
class BallProblem:
    """The rows with a convex loss, and the radius of the ball."""

    operator: CountingOperator
    loss: BoundLoss
    radius: float
    max_iter: int
    callback: Callback | None

    @property
    def at_zero(self) -> float:
        """Loss of zero weights."""
        return self.loss.value_and_gradient(np.zeros(self.operator.shape[0]))[0]

    def penalized(self, c: float, tol: float, warm: Warm) -> Result:
        """Solve the penalized problem without the ball."""
        kind = SmoothedNewton if self.loss.has_curvature else OCAS
        solver = kind(tol, self.max_iter, warm.cuts)
        return solver.solve(self.operator, self.loss, SquaredL2(c), warm.w, self.callback)

    def solve(self, C: float, tol: float, warm: Warm, floor: float) -> tuple[Result, Warm]:
        """Minimize in the ball; return the result, and the start of the next solve.

        The gap is at most ``tol`` times the objective, or ``floor`` times the objective of zero weights if it is
        larger, and at most ``tol`` times the improvement over zero weights.
        """
        search = _RadiusSearch(self, C, tol, floor)
        c, inner = min(C, warm.c), tol
        for _ in range(RULES.max_rounds):
            result = self.penalized(c, inner, warm)
            warm = Warm(result.w, result.cuts or warm.cuts, c)
            norm = float(np.linalg.norm(result.w))
            if c == C and norm <= self.radius:
                return result, replace(warm, c=np.inf)
            search.add(c, result, norm)
            if search.converged or not result.converged:
                break
            inner = min(inner, search.inner_tolerance(c, result))
            c = search.next(c, norm)
        return search.result(), warm


class _RadiusSearch:
    """Search for the weight ``c`` of the loss at which the norm is the radius."""

    def __init__(self, ball: BallProblem, C: float, tol: float, floor: float) -> None:
        self._ball, self._C, self._tol = ball, C, tol
        self._zero = C * ball.at_zero
        self._floor = floor * self._zero
        self._w, self._objective, self._bound = np.zeros(ball.operator.shape[1]), self._zero, -np.inf
        self._trace: list[Progress] = []
        self._n_iter = 0
        self._last: tuple[float, float] | None = None
        self._low, self._high = 0.0, np.inf
        self._slope = 0.5

    @property
    def _gap(self) -> float:
        return self._objective - self._bound

    @property
    def _unit(self) -> float:
        return min(max(abs(self._objective), self._floor), self._zero - self._bound)

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self._gap <= self._tol * self._unit

    def add(self, c: float, result: Result, norm: float) -> None:
        """Use a solution of a penalized problem: its bound, and its projection to the surface of the ball."""
        ball, ratio = self._ball, self._C / c
        bound = ratio * (result.objective - result.gap) - 0.5 * (ratio - 1.0) * ball.radius**2
        self._bound = max(self._bound, bound)
        if norm > 0:
            w = result.w * (ball.radius / norm)
            value = ball.loss.value_and_gradient(ball.operator.matvec(w))[0]
            objective = 0.5 * ball.radius**2 + self._C * value
            if objective < self._objective:
                self._w, self._objective = w, objective
        self._n_iter += result.n_iter
        self._trace.append(Progress(self._objective, self._bound, ball.operator.passes))

    def inner_tolerance(self, c: float, result: Result) -> float:
        """Return the tolerance at which the gap of the penalized problem is a share of the allowed gap."""
        return RULES.share * self._tol * self._unit * (c / self._C) / abs(result.objective)

    def next(self, c: float, norm: float) -> float:
        """Return the next value of ``c``: a secant step in logarithms, inside the bracket."""
        radius = self._ball.radius
        if norm <= radius:
            self._low = max(self._low, c)
        else:
            self._high = min(self._high, c)
        if self._high <= self._low * (1 + 1e-9):
            # The norm is that of an approximate solution, so that both ends can be wrong; the tolerance is tighter now.
            self._low, self._high = c / 1.1, c * 1.1
        if self._last is not None and norm > 0 and self._last[1] > 0 and self._last[0] != c:
            slope = np.log(norm / self._last[1]) / np.log(c / self._last[0])
            self._slope = float(np.clip(slope, *RULES.slopes))
        self._last = (c, norm)
        step = (radius / norm) ** (1.0 / self._slope) if norm > 0 else np.inf
        new = c * float(np.clip(step, 1.0 / RULES.largest_factor, RULES.largest_factor))
        if not self._low < new < self._high:
            new = float(np.sqrt(self._low * self._high)) if self._low > 0 and np.isfinite(self._high) else new
        return min(new, self._C)

    def result(self) -> Result:
        """Return the best point in the ball."""
        args = (self._w, self._objective, self._gap, self._unit, self.converged, self._trace)
        rounding = gap_rounding(self._ball.operator, self._gap, self._zero + abs(self._objective))
        return replace(finish(*args, "FollowTheLeader", self._tol, rounding), n_iter=self._n_iter)


class Leader:
    """All rows so far and the optimal model on them (the leader); zero weights until both classes have been seen.

    ``mean_w`` is the mean of the models that were evaluated, one per batch. The regret is at most
    ``regret + regret_gap``.
    """

    def __init__(self, n_features: int) -> None:
        self.X: Any = None
        self.positive: Bools = np.empty(0, dtype=bool)
        self.result = Result(np.zeros(n_features), 0.0, 0.0, 1, True, "one class only", [Progress(0.0, 0.0, 0)])
        self.mean_w = np.zeros(n_features)
        self.regret: list[float] = []
        self.regret_gap: list[float] = []
        self.passes: list[int] = []
        self._cuts = no_cuts(n_features)
        self._c = 1.0
        self._hindsight: tuple[Array, float] | None = None
        self._sums = np.zeros((2, n_features))
        self._played = 0.0

    def has_both(self) -> bool:
        """Return whether both classes have been seen."""
        return bool(self.positive.any() and not self.positive.all())

    def take(
        self, X: Any, positive: Bools, loss: Loss, model: FollowTheLeaderClassifier, callback: Callback | None
    ) -> None:
        """Evaluate the leader on a batch, add the batch to the rows, and compute the next leader of the classifier."""
        sums, n_old = self._sums, self.positive.size
        self.mean_w = self.mean_w + (self.result.w - self.mean_w) / (len(self.passes) + 1)
        self._append(X, positive)
        if not self.has_both():
            self.regret.append(0.0)
            self.regret_gap.append(0.0)
            self.passes.append(0)
            return
        operator = CountingOperator(as_operator(self.X))
        rows = GrowingRows(self.X, operator, self.positive, operator.matvec(self.result.w), n_old, sums)
        bound = loss.bind(self.positive)
        scale = loss.sum_scale(*rows.counts())
        self._played += scale * bound.value_and_gradient(rows.scores)[0] - _loss_before(loss, rows)
        problem = BallProblem(operator, bound, model.radius, model.max_iter, callback)
        warm = Warm(self.result.w, carry(loss, self._cuts, rows), self._c)
        self.result, warm = problem.solve(scale / model.eta, model.tol, warm, RULES.floor)
        self._cuts, self._c = warm.cuts, warm.c
        best, gap = np.nan, np.nan
        if model.compute_regret:
            best, gap = self._in_hindsight(problem, scale / model.eta, model.tol)
        self.regret.append(self._played / scale - best)
        self.regret_gap.append(gap)
        self.passes.append(operator.passes)

    def _in_hindsight(self, problem: BallProblem, C: float, tol: float) -> tuple[float, float]:
        """Return the smallest loss found in the ball, and its distance from a lower bound.

        It is the loss of the leader if the leader is on the surface of the ball. Otherwise the penalty is reduced until
        it is below the tolerance everywhere in the ball.
        """
        result, radius = self.result, problem.radius
        weak = 0.5 * radius**2 / (tol * problem.at_zero)
        if weak > C and float(np.linalg.norm(result.w)) < radius * (1 - 1e-12):
            w, c = self._hindsight or (result.w, np.inf)
            C = weak
            result, warm = problem.solve(C, tol, Warm(w, self._cuts, c), RULES.floor_in_hindsight)
            self._hindsight = (warm.w, warm.c)
        penalty = 0.5 * float(result.w @ result.w)
        return (result.objective - penalty) / C, (result.gap + 0.5 * radius**2 - penalty) / C

    def _append(self, X: Any, positive: Bools) -> None:
        """Add rows."""
        if self.X is None:
            self.X, self.positive = X.copy(), positive.copy()
        else:
            self.X, self.positive = stack([self.X, X]), np.concatenate([self.positive, positive])
        self._sums = self._sums + class_sums(X, positive)


def _loss_before(loss: Loss, rows: GrowingRows) -> float:
    """Return the sum of the loss on the old rows at the current weights; zero if a class was missing."""
    m, n = rows.counts(old=True)
    if not min(m, n):
        return 0.0
    bound = loss.bind(rows.positive[: rows.n_old])
    return loss.sum_scale(m, n) * bound.value_and_gradient(rows.scores[: rows.n_old])[0]


class FollowTheLeaderClassifier(BatchStreamMixin, MeasureParameterMixin, LinearScoreClassifier):  # type: ignore[misc]  # no weights
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
    measure, min_fpr, max_fpr, min_tpr, k, beta, reference
        As in :class:`MiniBatchClassifier`.
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
    tol, max_iter, random_state, pos_label, verbose

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the leader, or the mean of the weights with ``average``.
    intercept_ : ndarray of shape (1,)
        Minus the threshold, chosen on all rows so far as in the batch classifier of the same measure.
    classes_
    objective_ : float
        The objective of the leader on all rows so far, divided by ``eta``: :math:`\frac{1}{2} |w|^2` plus the mean loss
        times :math:`c_t / \eta`, see Notes.
    dual_gap_
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
    n_features_in_, feature_names_in_

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

    # Each solve uses all rows and the current values. The seed is used only for the order of the rows in fit.
    _free = ("eta", "compute_regret", "tol", "max_iter", "n_batches", "random_state", "verbose")
    _leader: Leader

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

    def _make_state(self, measure: Measure, n_features: int) -> None:
        self._leader = Leader(n_features)

    def _update(self, measure: Measure, block: Block) -> None:
        self._take(measure, block.X, block.positive, self._progress())
        result, rows = self._model(), self._leader
        threshold = 0.0
        if rows.has_both():
            self._warn(rows.result)
            threshold = measure.threshold(as_operator(rows.X).matvec(result.w), rows.positive)
        self._keep(result, result.w, threshold, block)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_measure()
        check_number("eta", self.eta, above=0.0)
        check_number("radius", self.radius, above=0.0)
        check_number("n_batches", self.n_batches, above=0, integer=True)

    def _take(self, measure: Measure, X: Any, positive: NDArray[np.bool_], callback: Callback | None) -> None:
        leader = self._leader
        leader.take(X, positive, self._convex_loss(measure), self, callback)
        self.regret_, self.regret_gap_ = np.array(leader.regret), np.array(leader.regret_gap)
        self.passes_ = np.array(leader.passes)

    def _model(self) -> Result:
        """Return the leader, with the mean of the models in place of its weights if they are averaged."""
        leader = self._leader
        return replace(leader.result, w=leader.mean_w) if self.average else leader.result

    def _minimize(self, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        order = random_source(self.random_state).permutation(data.positive.size)
        measure = self._make_measure().as_fraction(order.size)
        self._make_state(measure, data.X.shape[1])
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
