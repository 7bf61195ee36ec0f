"""Solver for kernel machines on pairs: Newton steps with smoothed multipliers, certified by the pairwise dual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.linalg import blas

from rocmax._support import Array, Index
from rocmax.solvers.base import Callback, Progress, Result, find_zero, finish


def solve_system(system: Array, right: Array, gram: Array, **options: Any) -> Array:
    """Solve a linear system made from a kernel matrix ``gram``; raise ValueError if it is singular.

    ``options`` are those of :func:`scipy.linalg.solve`.
    """
    try:
        return np.asarray(linalg.solve(system, right, **options))
    except linalg.LinAlgError as error:
        raise ValueError(
            "the kernel matrix must have values of similar magnitude, so that linear systems with it can be solved in "
            f"double precision; got values up to {np.abs(gram).max():.3g}. Scale the features"
        ) from error


Slope = Callable[[Array], Array]


@dataclass(frozen=True)
class PairNewtonRules:
    """Numbers of the solver, measured on three sets of 600 to 1500 rows with C from 1e-4 to 100."""

    # Largest fraction of the rows for which a block of the Gram matrix is copied; copying all costs up to 90 %.
    largest_block: float = 0.6
    # Largest number of rows for Gaussian elimination, which replaces conjugate gradients once they take more than one
    # iteration per this number of rows: about the same cost. Either method alone takes up to ten times as long.
    most_eliminated: int = 1600
    rows_per_iteration: int = 12
    # Conjugate gradients: most iterations without elimination, and relative tolerance of the residual.
    cg_iterations: int = 60
    cg_rtol: float = 0.3
    # Range of the factor by which the width of the smoothing is reduced.
    shrink: tuple[float, float] = (0.05, 0.5)
    # Width, relative to the margin, below which the smoothing is centered at the current multipliers if possible:
    # rounding errors limit the width, and relative gaps below 1e-8 need it.
    anchor: float = 1e-3
    # Most pairs that are stored, so that their multipliers are known, which gaps below 1e-8 need; more are summed by
    # sorting, which takes a tenth of the time at 60,000 pairs.
    most_listed: int = 10_000
    # Iterations without progress after which the solver stops.
    stuck: int = 30


RULES = PairNewtonRules()


class GramSystem:
    """Solve :math:`(I + S K) p = r` where the slope ``S`` is zero outside a subset of the rows.

    The system is symmetric in the inner product defined by ``K``. The solution, and every iterate of conjugate
    gradients from zero, is a multiple of ``r`` plus a vector supported on these rows. Given ``K r``, only the block of
    ``K`` for these rows is required. ``products`` counts products with ``K``; one with a block counts as the fraction
    of ``K`` in the block.
    """

    def __init__(self, gram: Array) -> None:
        self._gram = gram
        self.rows, self._block = np.arange(gram.shape[0]), gram
        # Conjugate gradients become slower during a run, so they are not used again once elimination was faster.
        self._direct = False
        self.products = 0.0

    def product(self, vector: Array) -> Array:
        """Return ``K @ vector``."""
        self.products += 1.0
        return _times(self._gram, vector)

    def absolute_product(self, vector: Array) -> float:
        """Return the sum of the absolute values of the terms of ``vector @ K @ vector``, without a copy of ``K``."""
        sizes = np.abs(vector)
        return sum(float(size * (np.abs(row) @ sizes)) for size, row in zip(sizes, self._gram, strict=True) if size)

    def cover(self, moving: Index) -> Index:
        """Prepare the block of ``K`` for the rows ``moving``, or for all rows; return the rows."""
        n_samples = self._gram.shape[0]
        if moving.size > RULES.largest_block * n_samples:
            self.rows, self._block = np.arange(n_samples), self._gram
        elif not np.array_equal(moving, self.rows):
            self.rows, self._block = moving, self._gram[np.ix_(moving, moving)]
        return self.rows

    def solve(self, slope: Slope, right: Array, right_scores: Array) -> tuple[Array, Array]:
        """Return ``p`` and ``K p``, given ``K r`` and the slope on the rows of the last call of :meth:`cover`."""
        if self.rows.size == 0:
            return right, right_scores
        edge, corner = right_scores[self.rows], float(right @ right_scores)
        found = None if self._direct and edge.size <= RULES.most_eliminated else self._by_gradients(slope, edge, corner)
        if found is None:
            self._direct = True
            found = 1.0, self._by_elimination(slope, edge)
        share, part = found
        step = np.zeros(right.size)
        step[self.rows] = part
        return share * right + step, share * right_scores + self.product(step)

    def _by_elimination(self, slope: Slope, edge: Array) -> Array:
        system = slope(self._block)
        system[np.diag_indices(edge.size)] += 1.0
        options = {"overwrite_a": True, "transposed": True, "check_finite": False}
        return solve_system(system, -slope(edge), self._gram, **options)

    def _by_gradients(self, slope: Slope, edge: Array, corner: float) -> tuple[float, Array] | None:
        """Return the factor of the right-hand side and the vector on the rows; None if elimination is faster."""
        can_eliminate = edge.size <= RULES.most_eliminated
        step, left = np.zeros(edge.size + 1), np.append(np.zeros(edge.size), 1.0)
        way, way_scores, size = left.copy(), np.append(edge, corner), corner
        # A right-hand side of zero norm is rounding error: there is no direction to follow.
        if corner <= 0:
            return None if can_eliminate else (1.0, step[:-1])
        for _ in range(edge.size // RULES.rows_per_iteration if can_eliminate else RULES.cg_iterations):
            image = way.copy()
            image[:-1] += slope(way_scores[:-1])
            length = size / float(way_scores @ image)
            step += length * way
            left -= length * image
            left_scores = self._bordered(left, edge, corner)
            new = float(left @ left_scores)
            if new <= RULES.cg_rtol**2 * corner:
                return float(step[-1]), step[:-1]
            way = left + (new / size) * way
            way_scores = left_scores + (new / size) * way_scores
            size = new
        return None if can_eliminate else (float(step[-1]), step[:-1])

    def _bordered(self, vector: Array, edge: Array, corner: float) -> Array:
        """Return the product with the Gram matrix of the rows, bordered by the right-hand side (last entry)."""
        self.products += (edge.size / self._gram.shape[0]) ** 2
        out = np.empty(vector.size)
        out[:-1] = _times(self._block, vector[:-1]) + vector[-1] * edge
        out[-1] = float(edge @ vector[:-1]) + corner * vector[-1]
        return out


def _times(matrix: Array, vector: Array) -> Array:
    # A symmetric product reads only half of the matrix, and its speed is limited by memory access.
    return np.asarray(blas.dsymv(1.0, matrix.T, vector))


# Sums over pairs of a positive and a negative in the dual of a kernel machine.


class Soft(NamedTuple):
    """Sums of the multipliers at given scores.

    ``hinge`` is the sum of ``weight * max(t, 0)``, ``total`` the sum of ``weight * a``, and ``rows`` contains
    for each example the sum over its pairs, with a positive sign for positives and a negative sign for negatives.
    """

    hinge: float
    total: float
    rows: Array


class ListedPairs:
    """Explicit list of pairs of a positive (``first``) and a negative (``second``).

    The smoothing is centered at the multipliers ``base``. ``goal`` is the margin for a positive and 0 for a negative:
    the margin violation of a pair is the difference of ``goal - scores``.
    """

    lift, resolution = 0.0, float(np.finfo(np.float64).eps)

    def __init__(
        self,
        n_samples: int,
        first: Index,
        second: Index,
        weight: Array | None = None,
        margin: float = 1.0,
        base: Array | float = 0.0,
    ) -> None:
        self.n_samples, self.margin = n_samples, margin
        self.first, self.second = first, second
        self.weight = np.ones(first.size) if weight is None else weight
        self.base = base
        self.goal = np.zeros(n_samples)
        self.goal[first] = margin

    def multipliers(self, scores: Array, width: float) -> Array:
        """Return one multiplier in [0, 1] per pair."""
        t = self._short(scores)
        return np.clip(self.base + t / width, 0.0, 1.0) if width > 0 else (t > 0).astype(np.float64)

    def anchored(self, scores: Array, width: float) -> ListedPairs:
        """Return the pairs with smoothing centered at the current multipliers."""
        base = self.multipliers(scores, width)
        return ListedPairs(self.n_samples, self.first, self.second, self.weight, self.margin, base)

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the sums of the multipliers at the scores, smoothed with ``width`` (0: no smoothing)."""
        share = self.weight * self.multipliers(scores, width)
        rows: Array = np.bincount(self.first, share, self.n_samples).astype(np.float64)
        rows -= np.bincount(self.second, share, self.n_samples)
        hinge = float(self.weight @ np.maximum(self._short(scores), 0.0))
        return Soft(hinge, float(share.sum()), rows)

    def slope(self, scores: Array, width: float, rows: Index) -> Callable[[Array], Array]:
        """Return ``v -> -D v`` with ``D`` the derivative of ``soft(scores, width).rows``: positive semidefinite.

        It is the product with the graph Laplacian of the pairs with free multipliers, restricted to rows that contain
        all of :meth:`moving`. Several vectors are passed as the rows of a matrix.
        """
        matrix = self._graph(scores, width)[rows][:, rows]
        return lambda v: (matrix @ v.T).T

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a free multiplier; the slope is zero for all others."""
        return np.flatnonzero(self._graph(scores, width).diagonal() > 0)

    def _short(self, scores: Array) -> Array:
        return self.margin - (scores[self.first] - scores[self.second])

    def _graph(self, scores: Array, width: float) -> sparse.csr_array:
        level = self.base + self._short(scores) / width
        moving = (level > 0) & (level < 1)
        i, j, w = self.first[moving], self.second[moving], self.weight[moving] / width
        row, column = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        value = np.concatenate([w, w, -w, -w])
        return sparse.csr_array((value, (row, column)), shape=(self.n_samples, self.n_samples))


class SortedPairs:
    """All pairs of a positive and a negative, computed by sorting and prefix sums in O(N log N) time and O(N) memory.

    The weight of a pair is the product of the weights of its two examples.
    """

    lift, resolution = 0.0, float(np.finfo(np.float64).eps)

    def __init__(self, positive: NDArray[np.bool_], weight: Array | None = None, margin: float = 1.0) -> None:
        weight = np.ones(positive.size) if weight is None else weight
        self.n_samples, self.margin = positive.size, margin
        self.weight, self._is_positive = weight, positive
        self.goal = np.where(positive, margin, 0.0)
        self.positive, self.negative = np.flatnonzero(positive), np.flatnonzero(~positive)
        self.positive_weight, self.negative_weight = weight[self.positive], weight[self.negative]

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the sums of the multipliers at the scores."""
        # The margin violation of a pair is high - low, where low includes the margin; both relative to the median
        # score.
        origin = float(np.median(scores))
        low = scores[self.positive] - self.margin - origin
        high = scores[self.negative] - origin
        up, hinge = _above(low, high, self.negative_weight, width)
        down, _ = _above(-high, -low, self.positive_weight, width)
        rows = np.zeros(self.n_samples)
        rows[self.positive] = self.positive_weight * up
        rows[self.negative] = -self.negative_weight * down
        return Soft(float(self.positive_weight @ hinge), float(self.positive_weight @ up), rows)

    def slope(self, scores: Array, width: float, rows: Index) -> Callable[[Array], Array]:
        """Return the product with the graph Laplacian of the pairs with free multipliers."""
        at = self._is_positive[rows]
        first, second = np.flatnonzero(at), np.flatnonzero(~at)
        low, high = scores[rows[first]] - self.margin, scores[rows[second]]
        first_weight, second_weight = self.weight[rows[first]], self.weight[rows[second]]
        sums_up = _Band(low, high, second_weight, width)
        sums_down = _Band(-high, -low, first_weight, width)
        degree_up, degree_down = sums_up(np.ones(high.size)), sums_down(np.ones(low.size))

        def product(v: Array) -> Array:
            at_first, at_second = v[..., first], v[..., second]
            out = np.empty(v.shape)
            out[..., first] = (first_weight / width) * (at_first * degree_up - sums_up(at_second))
            out[..., second] = (second_weight / width) * (at_second * degree_down - sums_down(at_first))
            return out

        return product

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a free multiplier."""
        low, high = scores[self.positive] - self.margin, scores[self.negative]
        up = _Band(low, high, self.negative_weight, width)(np.ones(high.size)) > 0
        down = _Band(-high, -low, self.positive_weight, width)(np.ones(low.size)) > 0
        return np.sort(np.concatenate([self.positive[up], self.negative[down]]))

    def anchored(self, scores: Array, width: float) -> None:
        """Return None, because multipliers are not stored."""


def _above(low: Array, high: Array, weight: Array, width: float) -> tuple[Array, Array]:
    """Return, for each ``low``, weighted sums of ``clip((high - low) / width, 0, 1)`` and of ``(high - low)_+``."""
    order = np.argsort(high)
    placed, weight = high[order], weight[order]
    count, mass = _prefix(weight), _prefix(weight * placed)
    start = np.searchsorted(placed, low, side="right")
    hinge = (mass[-1] - mass[start]) - low * (count[-1] - count[start])
    if width <= 0:
        return count[-1] - count[start], hinge
    full = np.searchsorted(placed, low + width, side="left")
    part = (mass[full] - mass[start]) - low * (count[full] - count[start])
    # Rounding errors of the prefix sums could exceed the range.
    part = np.clip(part / width, 0.0, count[full] - count[start])
    return count[-1] - count[full] + part, hinge


class _Band:
    """Weighted sums of values over the entries of ``high`` in ``(low, low + width)``, for each entry of ``low``.

    Values are summed along their last axis.
    """

    def __init__(self, low: Array, high: Array, weight: Array, width: float) -> None:
        self._order = np.argsort(high)
        placed = high[self._order]
        self._weight = weight[self._order]
        self._start = np.searchsorted(placed, low, side="right")
        self._stop = np.maximum(np.searchsorted(placed, low + width, side="left"), self._start)

    def __call__(self, values: Array) -> Array:
        sums = _prefix(self._weight * values[..., self._order])
        return sums[..., self._stop] - sums[..., self._start]


def _prefix(values: Array) -> Array:
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums


class PairSums(Protocol):
    """What the solver needs to know about the pairs.

    ``lift`` is 0 unless the objective can be negative; ``resolution`` is the rounding error of sums, relative to the
    objective.
    """

    n_samples: int
    margin: float
    goal: Array
    lift: float
    resolution: float

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the sums of the multipliers at the scores, smoothed with ``width`` (0: no smoothing)."""

    def slope(self, scores: Array, width: float, rows: Index) -> Slope:
        """Return minus the derivative of ``soft(scores, width).rows``, restricted to rows that contain ``moving``."""

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a free multiplier."""

    def anchored(self, scores: Array, width: float) -> PairSums | None:
        """Return the pairs with smoothing centered at the current multipliers; None if these are not stored."""


class PairIterate(NamedTuple):
    """One coefficient per example, the scores ``K @ coefficients``, and the objective."""

    coefficients: Array
    scores: Array
    objective: float


@dataclass(frozen=True)
class GramNewton:
    r"""Minimize :math:`\frac{1}{2}|f|^2 + C \sum_{ij} (\rho - (f(x_i) - f(x_j)))_+` in the space of a kernel.

    With multipliers :math:`\alpha_{ij} = C\,\mathrm{clip}(t_{ij}/h, 0, 1)`, where :math:`t_{ij}` is the margin
    violation of the pair and :math:`h` a width, the stationarity condition is :math:`\beta = \beta(K\beta)`: the
    coefficient of a row is the sum of the multipliers of its pairs. It is solved by Newton's method for a decreasing
    sequence of widths. The multipliers are always feasible for the dual, so the dual objective is a certified lower
    bound: the gap is the sum of the violations of the complementarity conditions over the pairs, plus half the squared
    distance from stationarity. The pairs are not stored in a table, and the Gram matrix is not factorized; an iteration
    of conjugate gradients costs one product with the block of the rows with free multipliers.

    The gap must be at most ``tol`` times the objective, and at most ``tol`` times the possible decrease from zero.
    """

    tol: float = 1e-3
    max_iter: int = 500

    def solve(self, gram: Array, pairs: PairSums, C: float, callback: Callback | None = None) -> tuple[Result, Array]:
        """Minimize from zero coefficients; return the result, with one coefficient per example, and the scores."""
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
            if converged or unmoved >= RULES.stuck or len(trace) >= self.max_iter:
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
        size = abs(self.best.objective) + self.pairs.lift
        return min(size, max(self.at_zero - self.bound, self.pairs.resolution * size))

    def step(self, tol: float) -> None:
        """Take a Newton step on the smoothed problem; reduce the smoothing if the problem is solved."""
        rest, rest_scores = self.target - self.beta, self.target_scores - self.scores
        # The gap between the point and its multipliers is softening + distance / 2.
        distance = float(rest @ rest_scores)
        softening = self.C * (self.pairs.soft(self.scores, 0.0).hinge - self._total_short())
        if distance <= softening:
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
        narrow = self.width <= RULES.anchor * self.pairs.margin
        anchored = self.pairs.anchored(self.scores, self.width) if narrow else None
        if anchored is not None:
            self.pairs = anchored
        elif self._follow(float(np.clip(wanted, *RULES.shrink))):
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

    def result(self, converged: bool, tol: float, trace: list[Progress]) -> tuple[Result, Array]:
        """Return the best point and its scores."""
        best = self.best
        # The terms of the squared norm can be much larger than the norm.
        size = best.objective + self.system.absolute_product(best.coefficients)
        rounding = 64 * float(np.finfo(np.float64).eps) * size
        gap = best.objective - self.bound
        args = (best.coefficients, best.objective, gap, self.unit(), converged, trace)
        return finish(*args, "GramNewton", tol, rounding), best.scores
