"""Solver for kernel machines with a weighted offset: Newton steps with smoothed multipliers, one per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rocmax._typing import Array
from rocmax.kernels._linear_systems import solve_system
from rocmax.solvers.line_search import find_zero

# Factor by which the width of the smoothing is reduced after each smoothed problem, and its minimum. At the minimum,
# the smoothing is centered at the current multipliers (method of multipliers), because rounding errors limit the width.
_SHRINK, _NARROWEST = 0.2, 1e-3
# Tolerance for the optimality conditions of a smoothed problem, relative to the total weight of the rows.
_SOLVED = 1e-9
# Minimum decrease from zero coefficients, relative to the objective, in the stopping criterion: for smaller values the
# gap would have to be below the accuracy of the smoothed problems.
_SMALLEST_GAIN = 1e-6


class OffsetResult(NamedTuple):
    """Coefficients, offset, scores ``K @ coefficients``, objective, gap, number of steps, and convergence."""

    coefficients: Array
    offset: float
    scores: Array
    objective: float
    gap: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class OffsetNewton:
    r"""Minimize :math:`\frac12|f|^2 + \mu b + \sum_i c_i (t_i)_+` with :math:`t_i = e_i - y_i (f(x_i) + b)`.

    Each row has a side :math:`y_i = \pm 1`, a margin :math:`e_i` and a cost :math:`c_i`. The multipliers
    :math:`c_i\,\mathrm{clip}(t_i/h, 0, 1)`, smoothed with a width ``h``, turn the optimality conditions into a smooth
    equation in one coefficient per row and the offset. It is solved by Newton's method for a decreasing sequence of
    widths. At a solution, the multipliers are feasible for the dual, and the gap is the sum of the violations of
    complementarity over the rows.

    Parameters
    ----------
    tol : float
        Tolerance for stopping: the gap must be at most ``tol`` times ``|objective| + mu``, and at most ``tol`` times
        the possible decrease from zero coefficients with the best offset.
    max_iter : int
        Maximum number of Newton steps.
    """

    tol: float = 1e-3
    max_iter: int = 500

    def solve(self, gram: Array, side: Array, margin: Array, cost: Array, mu: float) -> OffsetResult:
        """Minimize from zero coefficients."""
        run = _OffsetNewton(gram, side, margin, cost, mu)
        gap, n_iter, converged = np.inf, 0, False
        while n_iter < self.max_iter:
            n_iter += 1
            if run.solved():
                gap = run.softening()
                converged = gap <= self.tol * run.unit(gap)
                if converged:
                    break
                run.soften_less()
            run.step()
        return OffsetResult(run.beta, run.offset, run.scores, run.objective(), gap, n_iter, converged)


class _OffsetNewton:
    """Current point and its multipliers."""

    def __init__(self, gram: Array, side: Array, margin: Array, cost: Array, mu: float) -> None:
        self.gram, self.side, self.margin, self.cost, self.mu = gram, side, margin, cost, mu
        self.beta, self.scores = np.zeros(side.size), np.zeros(side.size)
        # Midpoint of the margins of the two sides, so that no multiplier starts at a bound.
        self.offset = -0.5 * float(np.ptp(margin))
        self.width, self.base = 4.0, np.zeros(side.size)
        # For zero scores, the objective is piecewise linear in the offset, with kinks at the margins of the rows.
        self.at_zero = min(self._value(0.0, self.scores, float(offset)) for offset in np.unique(side * margin))

    def soften_less(self) -> None:
        if self.width > _NARROWEST:
            self.width *= _SHRINK
        else:
            self.base = np.clip(self.level(self.scores, self.offset), 0.0, 1.0)

    def level(self, scores: Array, offset: float) -> Array:
        """Return the multipliers before clipping to [0, 1]."""
        return self.base + self.short(scores, offset) / self.width

    def short(self, scores: Array, offset: float) -> Array:
        return self.margin - self.side * (scores + offset)

    def target(self, scores: Array, offset: float) -> Array:
        """Return the coefficients defined by the multipliers at the given point."""
        return self.side * self.cost * np.clip(self.level(scores, offset), 0.0, 1.0)

    def objective(self) -> float:
        return self._value(float(self.beta @ self.scores), self.scores, self.offset)

    def _value(self, squared_norm: float, scores: Array, offset: float) -> float:
        hinge = float(self.cost @ np.maximum(self.short(scores, offset), 0.0))
        return 0.5 * squared_norm + self.mu * offset + hinge

    def unit(self, gap: float) -> float:
        """Return the value to which the tolerance is relative."""
        size = abs(self.objective()) + self.mu
        return min(size, max(self.at_zero - self.objective() + gap, _SMALLEST_GAIN * size))

    def softening(self) -> float:
        """Return the sum over the rows of the hinge minus multiplier times margin violation."""
        t = self.short(self.scores, self.offset)
        share = np.clip(self.level(self.scores, self.offset), 0.0, 1.0)
        return float(self.cost @ (np.maximum(t, 0.0) - share * t))

    def solved(self) -> bool:
        target = self.target(self.scores, self.offset)
        rest = np.abs(target - self.beta).max()
        return bool(max(rest, abs(target.sum() - self.mu)) <= _SOLVED * self.cost.sum())

    def step(self) -> None:
        """Take a Newton step in the coefficients and the offset, with a line search on the smoothed objective."""
        target = self.target(self.scores, self.offset)
        rest, excess = target - self.beta, float(target.sum() - self.mu)
        level = self.level(self.scores, self.offset)
        rows = np.flatnonzero((level > 0) & (level < 1))
        slope = self.cost[rows] / self.width
        outside = rest.copy()
        outside[rows] = 0.0
        reached = slope * (self.gram[rows] @ outside)
        system = np.zeros((rows.size + 1, rows.size + 1))
        system[:-1, :-1] = slope[:, None] * self.gram[np.ix_(rows, rows)]
        system[-1, :-1] = system[:-1, :-1].sum(axis=0)
        system[:-1, -1] = slope
        # The ridge makes the system regular if all multipliers are at their bounds.
        system[-1, -1] = slope.sum() + 1e-6 * self.cost.sum() / self.width
        system[np.arange(rows.size), np.arange(rows.size)] += 1.0
        found = solve_system(system, np.append(rest[rows] - reached, excess - reached.sum()), self.gram)
        step = outside
        step[rows] = found[:-1]
        self._move(step, self.gram @ step, float(found[-1]))

    def _move(self, step: Array, along: Array, shift: float) -> None:
        linear, quadratic = float(self.beta @ along) + self.mu * shift, float(step @ along)

        def slope_at(t: float) -> float:
            target = self.target(self.scores + t * along, self.offset + t * shift)
            return linear + t * quadratic - float(target @ (along + shift))

        t = find_zero(slope_at, slope_at(0.0), rtol=0.01, largest=np.inf, max_evals=30)
        self.beta, self.scores, self.offset = self.beta + t * step, self.scores + t * along, self.offset + t * shift
