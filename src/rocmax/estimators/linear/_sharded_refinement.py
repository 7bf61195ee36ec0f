"""Default method for the partial AUC on rows in shards: the steps of :class:`WindowRefinement` with histograms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from rocmax._typing import Array
from rocmax._window import window_end
from rocmax.estimators.linear._refinement import STARTS, STEP, TRUST
from rocmax.estimators.linear._solver_choice import ROUGH_SHARE
from rocmax.estimators.linear.sharded import ShardedSet
from rocmax.measures import PartialAUCMeasure, ROCAUCMeasure
from rocmax.penalties import SquaredL2, Unpenalized
from rocmax.sharded.anchored import ShardedAnchored
from rocmax.sharded.vectors import Scores
from rocmax.solvers import LBFGS, Callback, Progress, Result, SmoothedNewton


class ShardedRefinement:
    """Fit of starting points, and minimization of the bounded loss from the better one, on rows in shards.

    Parameters
    ----------
    data : ShardedSet
        Training data; its features are standardized.
    window : (float, float, float)
        Range of false-positive rates, and the lower end of the range of true-positive rates.
    tol : float
        Tolerance for the starting points and the minimization.
    max_iter : int
        Maximum number of iterations of each fit.
    """

    def __init__(self, data: ShardedSet, window: tuple[float, float, float], tol: float, max_iter: int) -> None:
        self._data, self._window, self._tol, self._max_iter = data, window, tol, max_iter
        self._area = PartialAUCMeasure(*window)
        self._loss = self._area.soft_loss(STEP)

    def best_start(self) -> Scores:
        """Return the starting point with the largest partial AUC; the first of ties, zero weights last."""
        fits = {"logistic": self._logistic, "auc": self._auc}
        starts = [self._normalized(fits[kind](strength).w) for kind, strength in STARTS]
        return max(starts, key=lambda start: (start.any(), self._data.score(self._area, start)))

    def run(self, start: Scores, C: float, w0: Array | None = None, callback: Callback | None = None) -> Result:
        """Minimize the bounded loss with a penalty on the distance from ``start``, or from ``w0`` if better."""
        space = self._data.space
        low, high, floor = self._window
        positives = (1.0 - floor) * space.m
        held = 1.0 / (1.0 / positives + 1.0 / (window_end(space.n, high) - window_end(space.n, low)))
        reach = C * TRUST * held / space.n_features if start.any() else 0.0
        if reach == 0:
            value = self._data.bind(self._loss).value_and_gradient(start)[0]
            trace = [Progress(value, np.nan, 1)]
            if callback is not None:
                callback(trace[0])
            return Result(start.w, value, np.nan, 1, True, "the starting point", trace)
        objective = ShardedAnchored(self._data.bind(self._loss), start, 1.0 / reach)
        begin, value = start, objective.value_and_gradient(start)[0]
        if w0 is not None and np.any(w0):
            other = self._normalized(w0)
            begin = other if objective.value_and_gradient(other)[0] < value else start
        descent = LBFGS(0.01 * self._tol, self._max_iter)
        result = self._data.stage(
            lambda operator, solver, w: solver.solve(operator, objective, Unpenalized(), w, callback), descent, begin.w
        )
        ended = self._data.X.matvec(result.w)
        if self._data.score(self._area, ended) < self._data.score(self._area, start):
            trace = [progress._replace(objective=value) for progress in result.trace]
            return replace(result, w=start.w, objective=value, trace=trace)
        return replace(result, w=self._normalized(result.w).w)

    def _logistic(self, strength: float) -> Result:
        """Fit ``LogisticRegression(C=strength)``, by L-BFGS with one pass for each evaluation."""
        space = self._data.space
        total = space.m + space.n
        ridge = np.full(space.n_features + 1, 1.0 / (strength * total))
        ridge[-1] = 0.0

        def objective(x: Array) -> tuple[float, Array]:
            v, shift = space.raw(x[:-1])
            answers = space.ask((), "logistic", v, float(x[-1]) - shift, space.double)
            value, slope = sum(a[0] for a in answers), sum(a[2] for a in answers)
            gradient = (np.sum([a[1] for a in answers], axis=0) - space.mean * slope) / space.scale
            return float(value / total + 0.5 * ridge @ x**2), np.append(gradient, slope) / total + ridge * x

        options = {"maxiter": 10 * self._max_iter, "maxls": 50, "gtol": min(1e-4, 0.1 * self._tol)}

        def run(operator: Any, _: None, x: Array | None) -> Result:
            x = np.zeros(ridge.size) if x is None else x
            found: Any = minimize(
                objective, x, jac=True, method="L-BFGS-B", options=options, callback=lambda x: operator.save(x.copy())
            )
            return Result(found.x[:-1], float(found.fun), np.nan, int(found.nit), True, "logistic regression", [])

        return self._data.stage(run)

    def _auc(self, strength: float) -> Result:
        solver = SmoothedNewton(self._tol, max(1, round(ROUGH_SHARE * self._max_iter)))
        bound = self._data.bind(ROCAUCMeasure().convex_loss())
        return self._data.stage(lambda X, solver, w: solver.solve(X, bound, SquaredL2(strength), w), solver)

    def _normalized(self, w: Array) -> Scores:
        """Return scores with unit standard deviation."""
        scores: Scores = self._data.X.matvec(w)
        if not scores.any():
            return scores
        vector = next(iter(scores.terms))
        square, total, weight = (
            float(entry)
            for entry in np.sum(self._data.space.ask([vector], "gram", [vector.key]), axis=0)[[0, 0, 1], [0, 1, 1]]
        )
        spread = np.sqrt(max(square / weight - (total / weight) ** 2, 0.0)) or 1.0
        return (1.0 / spread) * scores
