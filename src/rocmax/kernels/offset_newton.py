"""Kernel machines with a free offset that is paid for: Newton steps on softened multipliers, one per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from rocmax._typing import Array
from rocmax.solvers.line_search import find_zero

# By how much the softening shrinks once its problem is solved, and how narrow it may become; from there on softening
# starts from the multipliers at hand (the method of multipliers), as those of a tiny width would be lost to rounding.
_SHRINK, _NARROWEST = 0.2, 1e-3
# Rest of the optimality conditions, relative to the total weight of the rows, at which a softened problem is solved.
_SOLVED = 1e-9
# Least gain from zero, relative to the objective, that the tolerance is measured against: with smaller ones the gap
# would have to be below what the softened problems are solved to.
_SMALLEST_GAIN = 1e-6


class OffsetResult(NamedTuple):
    """Coefficients, offset, scores ``K @ coefficients``, objective, gap, steps, and whether ``tol`` was met."""

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
    :math:`c_i\,\mathrm{clip}(t_i/h, 0, 1)`, softened over a width ``h``, turn the optimality conditions into a smooth
    equation in one coefficient per row and the offset. Newton's method solves it for a falling sequence of widths; then
    the multipliers are feasible for the dual, and the gap is the sum over the rows of what they break of
    complementarity.

    Parameters
    ----------
    tol : float
        Stop when the gap is at most ``tol`` times ``|objective| + mu`` and ``tol`` times what is to be gained from
        zero coefficients with the best offset.
    max_iter : int
        Largest number of Newton steps.
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
        return OffsetResult(run.beta, run.offset, run.scores, run.objective(), max(gap, 0.0), n_iter, converged)


class _OffsetNewton:
    """The point at hand and its multipliers."""

    def __init__(self, gram: Array, side: Array, margin: Array, cost: Array, mu: float) -> None:
        self.gram, self.side, self.margin, self.cost, self.mu = gram, side, margin, cost, mu
        self.beta, self.scores = np.zeros(side.size), np.zeros(side.size)
        # Half-way between the margins of the two sides, so that no multiplier starts at an end of its range.
        self.offset = -0.5 * float(np.ptp(margin))
        self.width, self.base = 4.0, np.zeros(side.size)
        # With zero scores the objective is piecewise linear in the offset, with kinks where a row meets its margin.
        self.at_zero = min(self._value(0.0, self.scores, float(offset)) for offset in np.unique(side * margin))

    def soften_less(self) -> None:
        if self.width > _NARROWEST:
            self.width *= _SHRINK
        else:
            self.base = np.clip(self.level(self.scores, self.offset), 0.0, 1.0)

    def level(self, scores: Array, offset: float) -> Array:
        """Multipliers before they are clipped to [0, 1]."""
        return self.base + self.short(scores, offset) / self.width

    def short(self, scores: Array, offset: float) -> Array:
        return self.margin - self.side * (scores + offset)

    def target(self, scores: Array, offset: float) -> Array:
        """Coefficients that the multipliers at some point sum up to."""
        return self.side * self.cost * np.clip(self.level(scores, offset), 0.0, 1.0)

    def objective(self) -> float:
        return self._value(float(self.beta @ self.scores), self.scores, self.offset)

    def _value(self, squared_norm: float, scores: Array, offset: float) -> float:
        hinge = float(self.cost @ np.maximum(self.short(scores, offset), 0.0))
        return 0.5 * squared_norm + self.mu * offset + hinge

    def unit(self, gap: float) -> float:
        """Return what the tolerance is relative to."""
        size = abs(self.objective()) + self.mu
        return min(size, max(self.at_zero - self.objective() + gap, _SMALLEST_GAIN * size))

    def softening(self) -> float:
        """Sum over the rows of hinge minus multiplier times shortfall."""
        t = self.short(self.scores, self.offset)
        share = np.clip(self.level(self.scores, self.offset), 0.0, 1.0)
        return float(self.cost @ (np.maximum(t, 0.0) - share * t))

    def solved(self) -> bool:
        target = self.target(self.scores, self.offset)
        rest = np.abs(target - self.beta).max()
        return bool(max(rest, abs(target.sum() - self.mu)) <= _SOLVED * self.cost.sum())

    def step(self) -> None:
        """Take a Newton step in the coefficients and the offset, with a line search on the softened objective."""
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
        # Where no multiplier moves, nothing holds the offset; the ridge does.
        system[-1, -1] = slope.sum() + 1e-6 * self.cost.sum() / self.width
        system[np.arange(rows.size), np.arange(rows.size)] += 1.0
        found = linalg.solve(system, np.append(rest[rows] - reached, excess - reached.sum()))
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
