"""Solver for kernel machines on pairs: Newton steps with smoothed multipliers, certified by the pairwise dual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rocmax._typing import Array
from rocmax.kernels._newton_system import GramSystem, Slope
from rocmax.kernels.pair_sums import PairSums, Soft
from rocmax.solvers.base import Callback, Progress, invalid_bound, valid_gap
from rocmax.solvers.line_search import find_zero


class PairIterate(NamedTuple):
    """One coefficient per example, the scores ``K @ coefficients``, and the objective."""

    coefficients: Array
    scores: Array
    objective: float


# A smoothed problem is solved if its residual is at most this multiple of the smoothing error.
_SOLVED = 1.0
# Range of the factor by which the width of the smoothing is reduced.
_SHRINK = (0.05, 0.5)
# Width, relative to the margin, below which the smoothing is centered at the current multipliers if possible, because
# rounding errors limit the width.
_ANCHOR = 1e-3
# Number of iterations without progress after which the solver stops.
_STUCK = 30
# Rounding error of the objective and its bound, in multiples of the machine epsilon.
_UNITS = 64


@dataclass(frozen=True)
class GramResult:
    """Result of :class:`GramNewton`.

    Attributes
    ----------
    coefficients : ndarray
        One coefficient per example; at the optimum, ``C`` times the sum of the multipliers of its pairs, with a
        negative sign for negatives.
    scores : ndarray
        ``K @ coefficients``.
    objective : float
        Objective at the solution.
    gap : float
        The objective minus the largest dual objective found: an upper bound on the distance from the optimum.
    n_iter : int
        Number of iterations, at least 1.
    converged : bool
        Whether the tolerance was reached.
    message : str
        Description of the termination.
    trace : list of Progress
        One entry per iteration.
    """

    coefficients: Array
    scores: Array
    objective: float
    gap: float
    n_iter: int
    converged: bool
    message: str
    trace: list[Progress]


@dataclass(frozen=True)
class GramNewton:
    r"""Minimize :math:`\frac12|f|^2 + C \sum_{ij} (\rho - (f(x_i) - f(x_j)))_+` in the space of a kernel.

    With multipliers :math:`\alpha_{ij} = C\,\mathrm{clip}(t_{ij}/h, 0, 1)`, where :math:`t_{ij}` is the margin
    violation of the pair and :math:`h` a width, the stationarity condition is :math:`\beta = \beta(K\beta)`: the
    coefficient of a row is the sum of the multipliers of its pairs. It is solved by Newton's method for a decreasing
    sequence of widths. The multipliers are always feasible for the dual, so the dual objective is a certified lower
    bound: the gap is the sum of the violations of the complementarity conditions over the pairs, plus half the squared
    distance from stationarity. The pairs are not stored in a table, and the Gram matrix is not factorized; an iteration
    of conjugate gradients costs one product with the block of the rows with free multipliers.

    Parameters
    ----------
    tol : float
        Tolerance for stopping: the gap must be at most ``tol`` times the objective, and at most ``tol`` times the
        possible decrease from zero.
    max_iter : int
        Maximum number of Newton steps.
    """

    tol: float = 1e-3
    max_iter: int = 500

    def solve(self, gram: Array, pairs: PairSums, C: float, callback: Callback | None = None) -> GramResult:
        """Minimize from zero coefficients."""
        run = _PairNewton(gram, pairs, C)
        trace: list[Progress] = []
        smallest, unmoved = np.inf, 0
        while True:
            run.certify()
            trace.append(Progress(run.best.objective, run.bound, round(run.system.products)))
            if callback is not None:
                callback(trace[-1])
            gap = run.best.objective - run.bound
            converged = gap <= self.tol * run.unit()
            unmoved = unmoved + 1 if gap > 0.999 * smallest else 0
            smallest = min(smallest, gap)
            if converged or unmoved >= _STUCK or len(trace) >= self.max_iter:
                return run.result(converged, self.tol, trace)
            run.step(self.tol)


class _PairNewton:
    """State of the solver: current point, multipliers and best point."""

    def __init__(self, gram: Array, pairs: PairSums, C: float) -> None:
        self.system, self.pairs, self.C = GramSystem(gram), pairs, C
        self.beta, self.scores = np.zeros(pairs.n_samples), np.zeros(pairs.n_samples)
        # With this width, all multipliers are free at zero scores, and the first step is a least-squares fit.
        self.width = 4.0 * pairs.margin
        self.bound = -np.inf
        self.at_zero = C * pairs.soft(self.scores, 0.0).hinge
        self.soft: Soft = pairs.soft(self.scores, self.width)
        self.target = self.target_scores = self.beta
        self.best = PairIterate(self.beta, self.scores, np.inf)

    def certify(self) -> None:
        """Update the lower bound from the current multipliers, and the best point."""
        self.target = self.C * self.soft.rows
        self.target_scores = self.system.product(self.target)
        half_norm = 0.5 * float(self.target @ self.target_scores)
        self.bound = max(self.bound, self.C * self.pairs.margin * self.soft.total - half_norm)
        for beta, scores in ((self.beta, self.scores), (self.target, self.target_scores)):
            objective = 0.5 * float(beta @ scores) + self.C * self.pairs.soft(scores, 0.0).hinge
            if objective <= self.best.objective:
                self.best = PairIterate(beta, scores, objective)

    def unit(self) -> float:
        """Return the value to which the tolerance is relative.

        It is the objective or, if smaller, the possible decrease from zero, but at least the rounding error of the
        objective.
        """
        gain = max(self.at_zero - self.bound, np.finfo(float).eps * self.at_zero)
        return min(self.best.objective, gain)

    def step(self, tol: float) -> None:
        """Take a Newton step on the smoothed problem; reduce the smoothing if the problem is solved."""
        rest, rest_scores = self.target - self.beta, self.target_scores - self.scores
        # The gap between the point and its multipliers is softening + distance / 2.
        distance = float(rest @ rest_scores)
        softening = self.C * (self.pairs.soft(self.scores, 0.0).hinge - self._total_short())
        if distance <= _SOLVED * softening:
            if self._soften_less(0.5 * tol * self.unit() / softening):
                return
            rest, rest_scores = self.target - self.beta, self.target_scores - self.scores
        step, along = self.system.solve(self._slope(), rest, rest_scores)
        self._move(step, along, -float(rest @ along))

    def _slope(self, factor: float = 1.0) -> Slope:
        """Return the derivative of the multipliers at the current scores, on the rows of the system."""
        rows = self.system.cover(self.pairs.moving(self.scores, self.width))
        slope = self.pairs.slope(self.scores, self.width, rows)
        return lambda v: (factor * self.C) * slope(v)

    def _soften_less(self, wanted: float) -> bool:
        """Reduce the smoothing; return whether a step was taken."""
        anchored = self.pairs.anchored(self.scores, self.width) if self.width <= _ANCHOR * self.pairs.margin else None
        if anchored is not None:
            self.pairs = anchored
        elif self._follow(float(np.clip(wanted, *_SHRINK))):
            return True
        self.soft = self.pairs.soft(self.scores, self.width)
        self.target = self.C * self.soft.rows
        self.target_scores = self.system.product(self.target)
        return False

    def _follow(self, ratio: float) -> bool:
        """Reduce the width and take a Newton step for the same free multipliers; return False if it is no descent step.

        The set of free multipliers at the optimum depends little on the width, so the current set is a better guess
        than the pairs within the new width at the current scores.
        """
        slope = self._slope(1.0 / ratio)
        moving = np.zeros(self.beta.size)
        rows = self.system.rows
        moving[rows] = slope((self.pairs.goal - self.scores)[rows])
        rest = self.target + (1.0 - ratio) * moving - self.beta
        step, along = self.system.solve(slope, rest, self.system.product(rest))
        self.width *= ratio
        downhill = float((self.C * self.pairs.soft(self.scores, self.width).rows - self.beta) @ along)
        if downhill > 0:
            self._move(step, along, -downhill)
        return downhill > 0

    def _total_short(self) -> float:
        """Return the sum over the pairs of multiplier times margin violation at the current scores."""
        return self.pairs.margin * self.soft.total - float(self.soft.rows @ self.scores)

    def _move(self, step: Array, along: Array, slope: float) -> None:
        linear, quadratic = float(self.beta @ along), float(step @ along)

        def slope_at(t: float) -> float:
            self.soft = self.pairs.soft(self.scores + t * along, self.width)
            return linear + t * quadratic - self.C * float(self.soft.rows @ along)

        t = find_zero(slope_at, slope, rtol=0.1, largest=np.inf, max_evals=20)
        self.beta, self.scores = self.beta + t * step, self.scores + t * along

    def result(self, converged: bool, tol: float, trace: list[Progress]) -> GramResult:
        """Return the result with a message."""
        best = self.best
        # Products with the Gram matrix have terms of the size of the squared norm.
        size = best.objective + float(np.abs(best.coefficients) @ np.abs(best.scores))
        rounding = _UNITS * float(np.finfo(np.float64).eps) * size
        gap, valid = valid_gap(best.objective - self.bound, rounding, tol, self.unit())
        reached = f"gap {gap:.3g} at objective {best.objective:.6g} after {len(trace)} iterations"
        if not valid:
            converged, message = False, invalid_bound("GramNewton", reached, tol)
        elif converged:
            message = f"GramNewton converged: {reached}"
        else:
            message = f"GramNewton did not reach its tolerance: {reached}, tol={tol:g}; raise max_iter or tol"
        return GramResult(best.coefficients, best.scores, best.objective, gap, len(trace), converged, message, trace)
