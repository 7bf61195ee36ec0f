"""Default method for all measures: minimize a bounded loss from a good starting point, with a penalty on the distance.

The cost of a row under a convex surrogate grows with its distance from the correct side. A few distant negatives can
dominate the loss, and the optimum can be at zero weights. A bounded loss does not have this problem, but it has local
minima and overfits. Therefore it is minimized from a good starting point, with a penalty on the distance from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rocmax._typing import Array, Bools, Index
from rocmax._validate import TrainingSet
from rocmax._window import window_end
from rocmax.estimators.linear._initial_weights import Solution, Solutions, StartProblem, StartSpec, fit_start
from rocmax.estimators.linear._positive_clusters import Labels, group, regroup
from rocmax.estimators.linear._solver_choice import MANY_ROWS, start_solver
from rocmax.estimators.linear._standardization import MAX_SQUARE, RowSample, standardized, weighted_spread
from rocmax.estimators.linear._top_rows import top_rows
from rocmax.losses import Loss, PartialAUCHinge
from rocmax.losses.anchored import Anchored
from rocmax.measures import Measure, PartialAUCMeasure, ROCAUCMeasure
from rocmax.operators import RotatedOperator, StandardizedOperator
from rocmax.penalties import SquaredL2, Unpenalized
from rocmax.solvers import LBFGS, Callback, Progress, Result

# Width of the step of the partial-AUC loss, in standard deviations of the scores of the starting point. Wider steps are
# closer to the convex losses; narrower steps have a non-zero gradient for fewer pairs.
STEP = 0.25
# Tolerance of the minimization, as a multiple of ``tol``. With the second one, which is for a path on many rows, it can
# end where progress is slow for a few iterations.
_ACCURATE, _ROUGH = 0.01, 0.1
# Factor between the number of examples per feature and the inverse weight of the penalty at C = 1.
TRUST = 0.1
# On many rows, fits begin with this part of them, or with this number of rows, in all or per feature, if that is more.
# The part is used if it has at most every third row. If it has fewer rows per feature than the last number, classifiers
# are fitted to all rows, beginning with the solution on the part.
_PART, _FEWEST_ROWS, _ROWS_PER_FEATURE, _LEAST_STEP, _ENOUGH_ROWS = 0.1, 10_000, 100, 3, 500
# Largest entry of the gradient at a solution at which fits in folds begin; it is larger on the rows of a fold.
_GUIDE_TOL = 1e-3
# Weight of the loss of starting points for a cluster of positives.
SUBGROUP_STRENGTH = 10.0
CLASSIFIER_KINDS = ("logistic", "balanced", "svc")
# Starting points of a fit without cross-validation: kind and weight of the loss, on standardized features.
STARTS = (("logistic", 1.0), ("auc", 10.0))


class Start(NamedTuple):
    """Starting point on standardized features: weights, and scores with unit standard deviation."""

    w: Array
    scores: Array


class Refinement(ABC):
    """Fit of starting points on standardized features, and minimization of the bounded loss from one of them.

    Parameters
    ----------
    data : TrainingSet
        Training data.
    loss : Loss
        Bounded loss, applied to scores with unit standard deviation.
    tol : float
        Tolerance for the starting points and the minimization.
    max_iter : int
        Maximum number of iterations of each fit.
    similar : dict, default=None
        Solutions of similar problems, such as :attr:`solutions` on all rows for a fit on the rows of a fold, at which
        the fits of starting points begin.
    units : StandardizedOperator, default=None
        Operator whose means and scales are used; None computes those of the rows.

    Attributes
    ----------
    solutions : dict
        Solutions of the classifiers that were fitted as starting points, by kind and weight of the loss.
    is_guide : bool
        Whether fits in folds begin at the solutions. They are less accurate then, but have the Hessian on all rows.
    """

    is_guide = False

    def __init__(
        self,
        data: TrainingSet,
        loss: Loss,
        tol: float,
        max_iter: int,
        similar: Solutions | None = None,
        units: StandardizedOperator | None = None,
    ) -> None:
        self._operator = standardized(data.X, data.weight) if units is None else units.like(data.X)
        self._scale = self._operator.scale
        self._data, self._tol, self._max_iter = data, tol, max_iter
        self._loss = loss.bind(data.positive, data.weight)
        self.solutions: Solutions = {}
        self._similar = similar or {}
        self._last: dict[str, Solution] = {}
        self._of_start: tuple[Start, float] | None = None
        self._measure_of_start: tuple[Start, float] | None = None

    @cached_property
    def _sample(self) -> RowSample | None:
        return RowSample(self._operator, self._data.weight) if self._operator.shape[1] <= MAX_SQUARE else None

    @cached_property
    def _whitening(self) -> Array | None:
        """Map from weights of uncorrelated features: in them, the penalty is isotropic."""
        return None if self._sample is None else self._sample.whitening()

    @cached_property
    def _every_row(self) -> RowSample | None:
        known = self.is_guide and self._sample is not None
        return RowSample(self._operator, self._data.weight, step=1) if known else None

    @abstractmethod
    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight at ``C = 1``; it grows with the number of relevant rows per feature."""

    @abstractmethod
    def _measure(self, scores: Array) -> float:
        """Return the measure on the training rows."""

    def start(self, kind: str, strength: float) -> Start:
        """Fit a starting point, "logistic", "balanced" or "svc", with the given weight of the loss."""
        positive, weight, key = self._data.positive, self._data.weight, (kind, strength)
        start, rows = self._classifier(kind, strength, positive, weight, key), self._every_row
        if rows is not None:
            v = self.solutions[key].v
            problem = StartProblem(kind, self._operator, positive, weight, strength, rows)
            self.solutions[key] = Solution(v, problem.hessian(v))
        return start

    def _classifier(
        self, kind: str, strength: float, positive: Bools, weight: Array | None, key: tuple[str, float]
    ) -> Start:
        """Fit a classifier, beginning at the solution of a similar problem: on all rows, or with a smaller weight."""
        near = self._similar.get(key) or self._last.get(kind)
        tol = self._tol * (0.1 if self._operator.shape[0] >= MANY_ROWS else 1e-2 if self._similar else 1e-3)
        tol = _GUIDE_TOL if self.is_guide else min(tol, 1e-4)
        problem = StartProblem(kind, self._operator, positive, weight, strength, self._sample)
        self._last[kind] = self.solutions[key] = fit_start(problem, tol, 10 * self._max_iter, near)
        return self._normalized(self.solutions[key].v[:-1])

    def mean_start(self, weights: Array) -> Start:
        """Return the mean of several starting points, given as weights in the original features."""
        return self._normalized(np.mean(weights, axis=0) * self._scale)

    def weights(self, start: Start) -> Array:
        """Return the weights of a starting point in the original features."""
        result: Array = start.w / self._scale
        return result

    def run(self, start: Start, C: float, w0: Array | None = None, callback: Callback | None = None) -> Result:
        """Minimize ``loss + 1/(2 C trust) Var(scores - start.scores)`` from ``start``, or from ``w0`` if better.

        The returned weights refer to the original features; the standard deviation of their scores is 1. The starting
        point is returned if ``C`` or the trust is zero, if its weights are zero, or if the measure on the training rows
        would decrease.
        """
        reach = self._reach(start, C)
        if reach == 0:
            return self._unmoved(start, callback)
        begin, objective = start, Anchored(self._loss, start.scores, 1.0 / reach)
        if w0 is not None and np.any(w0):
            other = self._normalized(w0 * self._scale)
            better = objective.value_and_gradient(other.scores)[0] < self._value(start)
            begin = other if better else start
        w = self._closer(objective, start, begin.w, _ACCURATE)
        self._release()
        return self._descended(objective, start, w, _ACCURATE, callback)[0]

    def path(self, start: Start, Cs: Iterable[float]) -> list[Result]:
        """Return the starting point and the results of :meth:`run` for ascending values of ``C``.

        Each minimization begins at the previous solution: its objective is not larger than that of the starting point.
        """
        results, begin = [self._unmoved(start)], start.w
        accuracy = _ROUGH if self._operator.shape[0] >= MANY_ROWS else _ACCURATE
        for C in Cs:
            reach = self._reach(start, float(C))
            if reach == 0:
                results.append(results[0])
                continue
            objective = Anchored(self._loss, start.scores, 1.0 / reach)
            w = self._closer(objective, start, begin, accuracy)
            result, (begin, _) = self._descended(objective, start, w, accuracy)
            results.append(result)
        return results

    def _reach(self, start: Start, C: float) -> float:
        """Return the inverse weight of the penalty; 0 if the starting point cannot be left."""
        return C * self.trust(start) if C > 0 and start.w.any() else 0.0

    def _unmoved(self, start: Start, callback: Callback | None = None) -> Result:
        trace = [Progress(self._value(start), np.nan, 1)]
        if callback is not None:
            callback(trace[0])
        return Result(start.w / self._scale, trace[0].objective, np.nan, 1, True, "the starting point", trace)

    def _descended(
        self, objective: Anchored, start: Start, begin: Array, accuracy: float, callback: Callback | None = None
    ) -> tuple[Result, Start]:
        """Minimize the objective from ``begin``; return the result, or ``start`` if better, and where it ended."""
        result = self._minimized(objective, begin, accuracy, callback)
        end = self._normalized(result.w)
        if not result.converged:
            message = (
                f"the minimization did not reach its tolerance: objective {result.objective:.6g} after {result.n_iter} "
                f"iterations, tol={self._tol:g}; raise max_iter or tol"
            )
            result = replace(result, message=message)
        if self._measure(end.scores) < self._measure_at(start):
            value = self._value(start)
            trace = [progress._replace(objective=value) for progress in result.trace]
            return replace(result, w=start.w / self._scale, objective=value, trace=trace), end
        return replace(result, w=end.w / self._scale), end

    def _minimized(self, objective: Anchored, w: Array, accuracy: float, callback: Callback | None = None) -> Result:
        """Minimize the objective from ``w`` by L-BFGS, in uncorrelated features if there are not too many."""
        descent, P = LBFGS(accuracy * self._tol, self._max_iter), self._whitening
        if P is None:
            return descent.solve(self._operator, objective, Unpenalized(), w, callback)
        rotated = RotatedOperator(self._operator, P)
        v = np.asarray(np.linalg.solve(P, w), dtype=np.float64)
        result = descent.solve(rotated, objective, Unpenalized(), v, callback)
        return replace(result, w=P @ result.w)

    def _closer(self, objective: Anchored, start: Start, begin: Array, accuracy: float) -> Array:
        """Return weights to begin with that are probably closer to the minimum than ``begin``."""
        return begin

    def _release(self) -> None:
        """Release copies of rows that are not needed for the minimization, once the whitening is known."""
        if self._whitening is not None:
            self.__dict__.pop("_sample", None)
        self.__dict__.pop("_part", None)

    def _value(self, start: Start) -> float:
        """Return the loss of a starting point, which is computed once."""
        if self._of_start is None or self._of_start[0] is not start:
            self._of_start = start, self._loss.value_and_gradient(start.scores)[0]
        return self._of_start[1]

    def _measure_at(self, start: Start) -> float:
        """Return the measure of a starting point, which is computed once."""
        if self._measure_of_start is None or self._measure_of_start[0] is not start:
            self._measure_of_start = start, self._measure(start.scores)
        return self._measure_of_start[1]

    def _normalized(self, w: Array) -> Start:
        scores = self._operator.matvec(w)
        spread = weighted_spread(scores, self._data.weight)
        scores /= spread
        return Start(w / spread, scores)


class WindowRefinement(Refinement):
    """Refinement for the partial AUC.

    Parameters
    ----------
    data : TrainingSet
        Training data.
    window : (float, float, float)
        Range of false-positive rates, and the lower limit on the true-positive rate.
    tol : float
        Tolerance for the starting points and the minimization.
    max_iter : int
        Maximum number of iterations of each fit.
    """

    def __init__(
        self,
        data: TrainingSet,
        window: tuple[float, float, float],
        tol: float,
        max_iter: int,
        similar: Solutions | None = None,
        units: StandardizedOperator | None = None,
    ) -> None:
        self._area: Measure = PartialAUCMeasure(*window)
        super().__init__(data, self._area.soft_loss(STEP), tol, max_iter, similar, units)
        self._window = window

    @cached_property
    def _part(self) -> Part | None:
        """Part of the rows on which fits begin; None if there are not many rows."""
        n_rows, n_features = self._operator.shape
        step = int(n_rows / max(_PART * n_rows, _FEWEST_ROWS, _ROWS_PER_FEATURE * n_features))
        if step < _LEAST_STEP:
            return None
        positive = self._data.positive
        rows = np.sort(np.concatenate([np.flatnonzero(positive)[::step], np.flatnonzero(~positive)[::step]]))
        weight = None if self._data.weight is None else self._data.weight[rows]
        data = self._data._replace(X=self._data.X[rows], positive=positive[rows], weight=weight)
        args = (self._window, self._tol, self._max_iter, self._similar, self._operator)
        return Part(WindowRefinement(data, *args), rows, step)

    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight, from the numbers of positives and of negatives in the window."""
        low, high, floor = self._window
        positives = (1.0 - floor) * self._loss.m
        held = 1.0 / (1.0 / positives + 1.0 / (window_end(self._loss.n, high) - window_end(self._loss.n, low)))
        return TRUST * held / self._operator.shape[1]

    def start(self, kind: str, strength: float) -> Start:
        """Fit a starting point; also "auc", the full AUC, and "tight" and "hinge", losses on the window.

        The tight convex loss is minimized by the cutting-plane algorithm of Narasimhan and Agarwal, which stops early
        where the minimum is at zero weights, and the hinge loss by CCCP from the full AUC.
        """
        if self._part is not None:
            # The losses of the classifiers are sums over the rows, the others are means.
            factor, part = (self._part.step if kind in CLASSIFIER_KINDS else 1), self._part.refinement
            start = part.start(kind, factor * strength)
            if kind not in CLASSIFIER_KINDS or self._part.rows.size >= _ENOUGH_ROWS * self._operator.shape[1]:
                return self._normalized(start.w)
            self._last[kind] = part._last[kind]
        if kind in CLASSIFIER_KINDS:
            return super().start(kind, strength)
        losses = {"auc": ROCAUCMeasure().convex_loss(), "tight": self._area.convex_loss()}
        loss: Loss = losses.get(kind) or PartialAUCHinge(*self._window)
        solver = start_solver(kind, self._tol, self._max_iter, self._operator.shape[0], self._window[2] > 0)
        w0 = self.start("auc", strength).w if kind == "hinge" else None
        return self._normalized(solver.solve(self._operator, self._data.bind(loss), SquaredL2(strength), w0).w)

    def start_of(self, spec: StartSpec, groups: dict[int, Labels]) -> Start:
        """Fit a starting point; one for a cluster is fitted to it and all negatives, or zero if it is empty.

        ``groups`` are the clusters of the rows, by the number of clusters.
        """
        if spec.n_groups == 0:
            return self.start(spec.kind, spec.C)
        if self._part is not None:
            here = {spec.n_groups: groups[spec.n_groups][self._part.rows]}
            start = self._part.refinement.start_of(spec._replace(C=self._part.step * spec.C), here)
            return self._normalized(start.w)
        labels = groups[spec.n_groups]
        members = labels == spec.group
        if not members.any():
            return self._normalized(np.zeros(self._operator.shape[1]))
        weight = np.ones(members.size) if self._data.weight is None else self._data.weight
        return self._classifier("logistic", spec.C, members, weight * (members | (labels < 0)), (spec.kind, spec.C))

    def groups(self) -> dict[int, Labels]:
        """Return clusters of similar positives, as a label for each row; see ``_positive_clusters.group``."""
        found = group(self._positives(), self._data.positive, self._data.weight)
        return {int(labels.max()) + 1: labels for labels in found}

    def regrouped(self, labels: Labels, size: int) -> Labels:
        """Cluster again, beginning with the labels of the rows from a clustering of more rows."""
        return regroup(self._positives(), self._data.positive, self._data.weight, labels, size)

    def _positives(self) -> Any:
        return self._operator.rows(np.flatnonzero(self._data.positive))

    def _closer(self, objective: Anchored, start: Start, begin: Array, accuracy: float) -> Array:
        """Return the minimum on a part of the rows, if there are many."""
        if self._part is None:
            return begin
        small = self._part.refinement
        anchored = Anchored(small._loss, small._normalized(start.w).scores, objective.strength)
        return small._minimized(anchored, begin, accuracy).w

    def best_start(self) -> Start:
        """Return the starting point with the largest training partial AUC; the first of ties, zero weights last."""
        best, highest = None, (False, 0.0)
        for spec in STARTS:
            start = self.start(*spec)
            reached = bool(start.w.any()), self._measure(start.scores)
            if best is None or reached > highest:
                best, highest = start, reached
        assert best is not None
        self._measure_of_start = best, highest[1]
        return best

    def _measure(self, scores: Array) -> float:
        data = top_rows(scores, self._data.positive, self._data.weight, self._window[1])
        return self._area.score(data[0], data[1], sample_weight=data[2], pos_label=True)


class Part(NamedTuple):
    """Fit on a part of the rows: all positives and negatives at equal distances."""

    refinement: WindowRefinement
    rows: Index
    step: int
