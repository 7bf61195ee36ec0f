"""Kernel machines on pairs: Newton steps on softened multipliers, certified by the pairwise dual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import blas

from rocmax.losses.pair_base import PairSums, Soft
from rocmax.solvers._line_search import find_zero
from rocmax.solvers.base import Callback, Progress

Array = NDArray[np.float64]


class Point(NamedTuple):
    """One coefficient per example, the scores ``K @ coefficients``, and the objective there."""

    coefficients: Array
    scores: Array
    objective: float


# Up to this many rows with moving multipliers the Newton system is solved by elimination; above, by conjugate
# gradients.
_MAX_DENSE = 1600
# By how much the softening may shrink at once when its own error is most of the gap.
_SHRINK = (0.15, 0.5)
# From this width on, relative to the margin, softening starts from the multipliers at hand where that is possible: the
# multipliers of an ever smaller width would be lost to rounding.
_ANCHOR = 1e-3
# Iterations without any progress after which a run ends.
_STUCK = 30
# Conjugate gradients: most steps, and the size of the rest at which they end.
_CG_STEPS, _CG_RTOL = 60, 0.3


@dataclass(frozen=True)
class GramResult:
    """What :class:`GramNewton` returns.

    Attributes
    ----------
    coefficients : ndarray
        One coefficient per example; at the optimum ``C`` times the sum of the multipliers of its pairs, minus for a
        negative.
    scores : ndarray
        ``K @ coefficients``.
    objective : float
        The objective there.
    gap : float
        The objective minus the largest dual objective of any multipliers met: a bound on the distance from the optimum.
    n_iter : int
        Iterations, at least 1.
    converged : bool
        Whether the tolerance was met.
    message : str
        One sentence on how the run ended.
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
    r"""Minimise :math:`\frac12|f|^2 + C \sum_{ij} (\rho - (f(x_i) - f(x_j)))_+` in the space of a kernel.

    With multipliers :math:`\alpha_{ij} = C\,\mathrm{clip}(t_{ij}/h, 0, 1)`, where :math:`t_{ij}` is what the pair is
    short of the margin and :math:`h` a width, stationarity reads :math:`\beta = \beta(K\beta)`: the coefficient of a
    row is the sum of the multipliers of its pairs. Newton's method solves that for a falling sequence of widths. Each
    set of multipliers is feasible for the dual, so the dual objective certifies: the gap is the sum over the pairs of
    what they break of the complementarity conditions, plus half the squared distance from stationarity. No table of
    pairs and no factor of the Gram matrix is made; a conjugate-gradient step costs one product with it.

    Parameters
    ----------
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    max_iter : int
        Largest number of Newton steps.
    """

    tol: float = 1e-3
    max_iter: int = 500

    def solve(self, gram: Array, pairs: PairSums, C: float, callback: Callback | None = None) -> GramResult:
        """Minimise from zero."""
        run = _Run(gram, pairs, C)
        trace: list[Progress] = []
        smallest, unmoved = np.inf, 0
        while True:
            run.certify()
            trace.append(Progress(run.best.objective, run.bound, run.products))
            if callback is not None:
                callback(trace[-1])
            gap = run.best.objective - run.bound
            converged = gap <= self.tol * run.best.objective
            unmoved = unmoved + 1 if gap > 0.999 * smallest else 0
            smallest = min(smallest, gap)
            if converged or unmoved >= _STUCK or len(trace) >= self.max_iter:
                return run.result(converged, self.tol, trace)
            run.step(self.tol)


class _Run:
    """State of one run: the point at hand, its multipliers, and the best certified point."""

    def __init__(self, gram: Array, pairs: PairSums, C: float) -> None:
        self.gram, self.pairs, self.C = gram, pairs, C
        self.beta, self.scores = np.zeros(pairs.n_samples), np.zeros(pairs.n_samples)
        # At zero scores every pair is then in the middle of the softened range, and the first step is a least-squares
        # fit.
        self.width = 4.0 * pairs.margin
        self.bound, self.products = -np.inf, 0
        self.soft: Soft = pairs.soft(self.scores, self.width)
        self.target = self.target_scores = self.beta
        self.best = Point(self.beta, self.scores, np.inf)

    def certify(self) -> None:
        """Bound the optimum by the multipliers at hand; keep the better of the point and the sum of them."""
        self.target = self.C * self.soft.rows
        self.target_scores = self._product(self.target)
        half_norm = 0.5 * float(self.target @ self.target_scores)
        self.bound = max(self.bound, self.C * self.pairs.margin * self.soft.total - half_norm)
        for beta, scores in ((self.beta, self.scores), (self.target, self.target_scores)):
            objective = 0.5 * float(beta @ scores) + self.C * self.pairs.soft(scores, 0.0).hinge
            if objective <= self.best.objective:
                self.best = Point(beta, scores, objective)

    def step(self, tol: float) -> None:
        """Take a Newton step on the softened problem; soften less where that is solved well enough."""
        rest, rest_scores = self.target - self.beta, self.target_scores - self.scores
        # The gap between the point and its multipliers is softening + distance / 2.
        distance = float(rest @ rest_scores)
        softening = self.C * (self.pairs.soft(self.scores, 0.0).hinge - self._total_short())
        if distance <= 0.3 * softening:
            self._soften_less(0.5 * tol * self.best.objective / softening)
            rest, rest_scores = self.target - self.beta, self.target_scores - self.scores
        step, along = self._direction(rest, rest_scores)
        self._move(step, along, -float(rest @ along))

    def _soften_less(self, wanted: float) -> None:
        anchored = self.pairs.anchored(self.scores, self.width) if self.width <= _ANCHOR * self.pairs.margin else None
        if anchored is None:
            self.width *= float(np.clip(wanted, *_SHRINK))
        else:
            self.pairs = anchored
        self.soft = self.pairs.soft(self.scores, self.width)
        self.target = self.C * self.soft.rows
        self.target_scores = self._product(self.target)

    def _total_short(self) -> float:
        """Sum over the pairs of multiplier times shortfall at the scores at hand."""
        return self.pairs.margin * self.soft.total - float(self.soft.rows @ self.scores)

    def _move(self, step: Array, along: Array, slope: float) -> None:
        linear, quadratic = float(self.beta @ along), float(step @ along)

        def slope_at(t: float) -> float:
            self.soft = self.pairs.soft(self.scores + t * along, self.width)
            return linear + t * quadratic - self.C * float(self.soft.rows @ along)

        t = find_zero(slope_at, slope, rtol=0.1, largest=np.inf, max_evals=20)
        self.beta, self.scores = self.beta + t * step, self.scores + t * along

    def _direction(self, rest: Array, rest_scores: Array) -> tuple[Array, Array]:
        """Solve ``(I + C S K) p = rest`` with ``S`` the slope of the multipliers; return ``p`` and ``K p``."""
        rows = self.pairs.moving(self.scores, self.width)
        if rows.size > _MAX_DENSE:
            return self._conjugate_gradients(rest, rest_scores)
        # The slope is zero outside some rows, so outside them the solution is the right side.
        slope = self.C * self.pairs.slope_matrix(self.scores, self.width, rows)
        block = self.gram[np.ix_(rows, rows)]
        right = rest[rows] - slope @ (rest_scores[rows] - block @ rest[rows])
        system = slope @ block
        system[np.diag_indices(rows.size)] += 1.0
        step = rest.copy()
        step[rows] = linalg.solve(system, right, overwrite_a=True)
        return step, self._product(step)

    def _conjugate_gradients(self, rest: Array, rest_scores: Array) -> tuple[Array, Array]:
        """Conjugate gradients in the inner product of the kernel, in which the system is symmetric."""
        slope = self.pairs.slope(self.scores, self.width)
        step, along = np.zeros(rest.size), np.zeros(rest.size)
        left, left_scores = rest.copy(), rest_scores.copy()
        way, way_scores = left.copy(), left_scores.copy()
        size = first = float(left @ left_scores)
        for _ in range(_CG_STEPS):
            image = way + self.C * slope(way_scores)
            length = size / float(way_scores @ image)
            step += length * way
            along += length * way_scores
            left -= length * image
            left_scores -= length * self._product(image)
            new = float(left @ left_scores)
            if new <= _CG_RTOL**2 * first:
                break
            way = left + (new / size) * way
            way_scores = left_scores + (new / size) * way_scores
            size = new
        return step, along

    def _product(self, vector: Array) -> Array:
        # A symmetric product reads half of the matrix, and memory is what it waits for.
        self.products += 1
        return blas.dsymv(1.0, self.gram.T, vector)

    def result(self, converged: bool, tol: float, trace: list[Progress]) -> GramResult:
        """Word the end of the run."""
        best, gap = self.best, max(self.best.objective - self.bound, 0.0)
        reached = f"gap {gap:.3g} at objective {best.objective:.6g} after {len(trace)} iterations"
        if converged:
            message = f"GramNewton converged: {reached}"
        else:
            message = f"GramNewton did not reach its tolerance: {reached}, tol={tol:g}; raise max_iter or tol"
        return GramResult(best.coefficients, best.scores, best.objective, gap, len(trace), converged, message, trace)
