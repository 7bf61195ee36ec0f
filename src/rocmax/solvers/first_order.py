"""First-order methods: L-BFGS, and projected subgradients with a certified gap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from rocmax._support import Array, Parameters
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import Ball, SquaredL2, Unpenalized
from rocmax.solvers.base import Callback, Origin, Progress, Result, finish, require
from rocmax.solvers.proximal_bundle import FLOOR

# Local minimization of losses that need not be convex.


@dataclass(frozen=True)
class LBFGS(Parameters):
    r"""Minimize :math:`\frac{1}{2}|w|^2 + C R(w)` from a given start by L-BFGS (SciPy's).

    The loss need not be convex. The result is never worse than the start; it has no certificate, and its gap is NaN.

    Parameters
    ----------
    tol : float, default=1e-6
        Tolerance for stopping: the solver stops when an iteration reduces the objective by less than ``tol``,
        relatively.
    max_iter
    """

    tol: float = 1e-6
    max_iter: int = 200
    needs_start: ClassVar[bool] = True

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: SquaredL2 | Unpenalized,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimize from ``w0``, which must not be zero, because all scores are tied there."""
        require("LBFGS", loss, penalty, (SquaredL2, Unpenalized))
        if w0 is None or not np.any(w0):
            raise ValueError("w0 of LBFGS must not be zero, where a bounded loss is flat; got zero weights or None")
        goal = _Scaled(CountingOperator(operator), loss, penalty, np.asarray(w0, dtype=np.float64))
        trace: list[Progress] = []
        stopped: list[StopIteration] = []

        def note(_: Array) -> None:
            trace.append(Progress(goal.best[0], np.nan, goal.operator.passes))
            try:
                if callback is not None:
                    callback(trace[-1])
            except StopIteration as stop:
                # SciPy interprets StopIteration as a request to stop; it is raised again for the caller below.
                stopped.append(stop)
                raise

        options = {"maxiter": self.max_iter, "ftol": self.tol, "gtol": 0.0}
        run = minimize(goal, goal.best[1] / goal.size, jac=True, method="L-BFGS-B", callback=note, options=options)
        if stopped:
            raise stopped[0]
        if not trace:
            note(goal.best[1])
        return self._result(*goal.best, run.nit < self.max_iter, trace)

    def _result(self, objective: float, w: Array, converged: bool, trace: list[Progress]) -> Result:
        state = "ended" if converged else "did not reach its tolerance: raise max_iter or tol;"
        message = f"LBFGS {state} at objective {objective:.6g} after {len(trace)} iterations, tol={self.tol:g}"
        return Result(w, objective, np.nan, len(trace), converged, message, trace)


class _Scaled:
    """Objective in other units, and the best point so far.

    SciPy's tolerance is relative only for objectives above 1, so the objective is divided by its value at the start,
    which SciPy evaluates first. The first step has length 1; the weights are scaled so that this is a tenth of the norm
    of the start, to stay near the same local minimum.
    """

    def __init__(
        self, operator: CountingOperator, loss: BoundLoss, penalty: SquaredL2 | Unpenalized, start: Array
    ) -> None:
        self.operator, self._loss, self._penalty = operator, loss, penalty
        self.size = 0.1 * float(np.linalg.norm(start))
        self._unit: float | None = None
        self.best: tuple[float, Array] = (np.inf, start)

    def __call__(self, v: Array) -> tuple[float, Array]:
        """Return value and gradient for the weights ``v`` in units of ``size``."""
        w, C = self.size * v, self._penalty.C
        value, coefficients = self._loss.value_and_gradient(self.operator.matvec(w))
        total = self._penalty.value(w) + C * value
        if total < self.best[0]:
            self.best = (total, w)
        if self._unit is None:
            self._unit = total or 1.0
        gradient = self._penalty.gradient(w) + C * self.operator.rmatvec(coefficients)
        return total / self._unit, gradient * (self.size / self._unit)


# Projected subgradient method, with a certified gap.


@dataclass(frozen=True)
class ProjectedSubgradient(Parameters):
    r"""Minimize :math:`R(w)` under a norm constraint by steps :math:`w_{t+1} = P_W(w_t - \frac{\eta_0}{\sqrt t} g_t)`.

    The best iterate is returned. Every subgradient gives a cut, and the mean of the cuts, weighted by the step
    lengths, is a cut as well; its minimum under the constraint is a lower bound of the optimum. The mean is restarted
    at every power of two, so that early cuts are discarded. The gap converges at the rate of the method,
    :math:`O(1/\sqrt t)`; :class:`ProximalBundle` solves the same problem in far fewer passes.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when the gap is at most ``tol`` times the loss, or ``1e-3 tol`` times
        the loss of zero weights, and at most ``tol`` times the improvement over zero weights. At zero weights, the
        solver stops when the gap is at most ``tol`` times the decrease predicted by the gradient there.
    max_iter
    learning_rate : "auto" or float, default="auto"
        Length of the first step, :math:`\eta_0`. "auto" uses the largest norm under the constraint divided by the norm
        of the first subgradient, as in the convergence analysis of the method.

    References
    ----------
    Narasimhan and Agarwal, "SVM_pAUC^tight: a new support vector method for optimizing partial AUC based on a tight
    convex upper bound", KDD 2013, Algorithm 3.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.losses import PartialAUCTight
    >>> from rocmax.operators import as_operator
    >>> from rocmax.penalties import L2Ball
    >>> from rocmax.solvers import ProjectedSubgradient
    >>> X, y = make_classification(500, 10, class_sep=2.0, random_state=0)
    >>> loss = PartialAUCTight(max_fpr=0.3).bind(y)
    >>> result = ProjectedSubgradient(tol=0.02).solve(as_operator(X), loss, L2Ball(radius=0.5))
    >>> result.converged, result.gap <= 0.02 * result.objective
    (True, True)
    """

    tol: float = 1e-3
    max_iter: int = 5000
    learning_rate: float | str = "auto"

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: Ball,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimize from the projection of ``w0`` (zero if None); the result is never worse than the start."""
        require("ProjectedSubgradient", loss, penalty, (Ball,), convex=True)
        op = CountingOperator(operator)
        w = np.zeros(op.shape[1]) if w0 is None else penalty.project(np.array(w0, dtype=np.float64))
        scores = op.matvec(w) if w.any() else np.zeros(op.shape[0])
        origin, cuts = Origin(op, loss), _MeanCut(penalty, w.size)
        best, best_w, best_scores = np.inf, w, scores
        step = None if self.learning_rate == "auto" else float(self.learning_rate)
        trace: list[Progress] = []
        while True:
            value, coefficients = loss.value_and_gradient(scores)
            rise = origin.rise(value, coefficients, scores)
            if rise < best:
                best, best_w, best_scores = rise, w, scores
            gradient = op.rmatvec(coefficients) if w.any() else origin.slope
            if step is None:
                step = penalty.reach() / (float(np.linalg.norm(gradient)) or 1.0)
            length = step / math.sqrt(len(trace) + 1)
            cuts.add(gradient, min(rise - float(coefficients @ scores), 0.0), length)
            trace.append(Progress(origin.value + best, origin.value + cuts.bound, op.passes))
            if callback is not None:
                callback(trace[-1])
            gap = best - cuts.bound
            gain = -cuts.bound if best_w.any() else penalty.support(-origin.slope)
            unit = min(max(origin.value + best, FLOOR * origin.value), gain)
            converged = gap <= self.tol * unit
            if converged or len(trace) >= self.max_iter:
                break
            w = penalty.project(w - length * gradient)
            scores = op.matvec(w)
        objective = origin.value + best
        rounding = origin.error(gap, objective, best_scores)
        return finish(
            penalty.inside(best_w), objective, gap, unit, converged, trace, "ProjectedSubgradient", self.tol, rounding
        )


class _MeanCut:
    """Weighted means of the cuts since the last power of two and since the previous one."""

    def __init__(self, ball: Ball, n_features: int) -> None:
        self._ball = ball
        self._sums = [(np.zeros(n_features), 0.0, 0.0), (np.zeros(n_features), 0.0, 0.0)]
        self._count = 0
        self.bound: float = -np.inf

    def add(self, g: Array, offset: float, weight: float) -> None:
        """Add a cut to both means and improve the bound."""
        self._count += 1
        if self._count & (self._count - 1) == 0:
            self._sums = [(np.zeros_like(g), 0.0, 0.0), self._sums[0]]
        self._sums = [(s + weight * g, b + weight * offset, total + weight) for s, b, total in self._sums]
        for mean, level, total in self._sums:
            self.bound = max(self.bound, float(level - self._ball.support(-mean)) / total)
