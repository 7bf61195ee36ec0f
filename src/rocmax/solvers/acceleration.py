"""Acceleration of the certified solver: steps on a part of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._support import Array, Index
from rocmax.losses.base import BoundLoss, Evaluation
from rocmax.operators import CountingOperator, MatrixOperator, Operator, StandardizedOperator, as_operator
from rocmax.solvers.base import find_zero, newton_direction

# Part of the rows of a large sample, drawn with unequal probabilities.


@dataclass(frozen=True)
class PartRules:
    """Tuned numbers of the steps on a part of the rows; ``benchmarks/results/ablation.md`` has what the steps gain."""

    # Least number of rows, and largest number of features; rows of a block and of the sample for the scale of features.
    rows: int = 30_000
    features: int = 500
    block: int = 50_000
    # The steps begin after this number of iterations if the relative gap is still above this multiple of the tolerance,
    # and end after this number of iterations that reduce the gap by less than a tenth.
    after: int = 4
    far: float = 100.0
    slow: int = 4
    # Share of the rows of a class in the part, and least number of them.
    share: float = 0.12
    least: int = 5_000
    # A row counts as close to a kink if this multiple of the width, times its relative size, takes it there. Rows that
    # are not close are in the part with this small probability: their ranks matter.
    reach: float = 10.0
    floor: float = 0.02
    # Smoothing error at the beginning, relative to the tolerance and the objective; and the aim for an update of the
    # offsets, relative to the tolerance, with the least factor by which it changes the width.
    error: float = 3.0
    aim: float = 0.5
    least_factor: float = 0.1
    # The solution on the part has at most this share of the gap, or of the tolerance, left.
    left: float = 0.01
    left_of_tol: float = 0.02
    iterations: int = 30


RULES = PartRules()


def leverage(rows: Callable[[Any], Any], n_samples: int) -> Array:
    """Return the sum of the squared features of each row, each divided by its mean over a sample of rows.

    Up to a factor, this is the leverage if the features are uncorrelated. ``rows`` returns the rows of an index or a
    slice.
    """
    some = rows(np.linspace(0, n_samples - 1, min(n_samples, RULES.block)).astype(np.intp))
    scale = np.asarray(_squares(some).mean(axis=0), dtype=np.float64).ravel()
    # A feature that is zero in all rows of the sample is taken as the rarest of the others.
    seen = scale > 0
    scale[~seen] = scale[seen].min() if seen.any() else 1.0
    found = np.empty(n_samples)
    for start in range(0, n_samples, RULES.block):
        block = slice(start, start + RULES.block)
        found[block] = _squares(rows(block)) @ (1.0 / scale)
    return found


def inclusion_probabilities(size: Array, count: float) -> Array:
    """Return probabilities in proportion to ``size``, but at most 1, whose sum is ``count``; 1 if there are fewer."""
    if count >= size.size:
        return np.ones(size.size)
    chance = np.zeros(size.size)
    certain = np.zeros(size.size, dtype=bool)
    while True:
        rest = size * ~certain
        chance = np.where(certain, 1.0, rest * ((count - np.count_nonzero(certain)) / rest.sum()))
        over = (chance >= 1.0) & ~certain
        if not over.any():
            return chance
        certain |= over


def draw(chance: Array) -> NDArray[np.intp]:
    """Draw rows with the given probabilities by systematic sampling, in the order of the rows.

    Among any consecutive rows, the number drawn differs from the sum of their probabilities by less than 1.
    """
    passed = np.floor(np.cumsum(chance) + 0.5)
    return np.flatnonzero(np.diff(passed, prepend=0.0))


def _squares(X: Any) -> Any:
    return X.multiply(X).tocsr() if sparse.issparse(X) else X * X


# Steps of the certified solver towards the solution on a part of the rows, for many rows close to kinks.


class SmoothedPoint(NamedTuple):
    """Weights and scores, the coefficients and the gradient of a minorant of the loss there, and its width."""

    w: Array
    scores: Array
    coefficients: Array
    gradient: Array
    width: float


class PartSteps:
    r"""Steps to the minimizer of the smoothed objective on a part of the rows.

    If many rows lie close to a kink, as rows with a rare binary feature do, a Newton step on a sampled Hessian misses
    most of the curvature that it meets, and the line search makes it short. Here, a step is the solution of the problem
    on a part of the rows, plus a linear term that makes its gradient at the current point that of all rows, as in DANE.
    A row belongs to the part with a probability in proportion to its leverage and to the change of its coefficient over
    the distance that it may move. The remaining rows, whose coefficients hardly change, are represented by the linear
    term. A step needs two passes over all rows.

    The loss is evaluated at scores with an offset for each row: the cut at any scores is valid, and the offsets spread
    the scores that a kink attracts over the width of the smoothing. At first they are random. When the smoothed problem
    is solved up to its smoothing error, they are set to the width times the shares of the rows in the selection, minus
    one half. This is the update of an augmented Lagrangian method for the shares; it reduces the smoothing error
    without a much smaller width.

    References
    ----------
    Shamir, Srebro and Zhang, "Communication-efficient distributed optimization using an approximate Newton-type
    method", ICML 2014.
    Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
    Mathematics of Operations Research 1976.
    """

    def __init__(self, operator: CountingOperator, loss: BoundLoss, C: float, tol: float) -> None:
        self._C, self._tol = C, tol
        n_samples, n_features = operator.shape
        self._possible = (
            n_samples >= RULES.rows
            and n_features <= RULES.features
            and isinstance(operator.operator, MatrixOperator | StandardizedOperator)
            and loss.has_kinks
            and loss.has_local_curvature
        )
        self._leverage = self._offset = np.empty(0)
        self._error = 0.0

    @property
    def have_begun(self) -> bool:
        """Whether there are offsets of the scores."""
        return self._offset.size > 0

    def wanted(self, n_iter: int, slow: int, gap: float, w: Array) -> bool:
        """Return whether the next step should be one of these, from the progress of the run and its best weights."""
        if self.have_begun:
            self._possible &= slow < RULES.slow
            return self._possible
        return self._possible and n_iter >= RULES.after and gap > RULES.far * self._tol and bool(w.any())

    def end(self) -> None:
        """Take no further steps."""
        self._possible = False

    def begin(self, operator: Operator) -> None:
        """Compute the leverage of the rows, in one pass, and choose random offsets."""
        n_samples = operator.shape[0]
        self._leverage = leverage(operator.rows, n_samples)
        self._offset = np.random.default_rng(0).random(n_samples) - 0.5

    def first_width(self, here: Evaluation, scores: Array, width: float, objective: float) -> float:
        """Return a width for which the smoothing error is in proportion to the tolerance and the objective."""
        wanted = RULES.error * self._tol * objective / self._C
        for _ in range(12):
            error = here.value(0.0) - self.cut(here.loss, here, scores, width)[0]
            factor = float(np.clip(wanted / max(error, 1e-300), 0.1, 10.0))
            if 0.8 < factor < 1.25:
                break
            width *= factor
        return width

    def shifted(self, scores: Array, width: float) -> Array:
        """Return the scores with their offsets, at which the loss is evaluated."""
        return scores + width * self._offset

    def cut(self, loss: BoundLoss, here: Evaluation, scores: Array, width: float) -> tuple[float, Array]:
        """Return the value of the cut at the scores, and its coefficients; ``here`` has the loss without smoothing."""
        at = loss.at(self.shifted(scores, width))
        minorant, coefficients = at.minorant(width)
        value = minorant + float(coefficients @ (scores - at.scores))
        self._error = self._C * (here.value(0.0) - value)
        return value, coefficients

    def are_solved(self, residual: Array, unit: float) -> bool:
        """Return whether the smoothed problem is solved up to its smoothing error, which is still too large."""
        return 0.5 * float(residual @ residual) <= self._error and self._error > 0.2 * self._tol * unit

    def update_offsets(self, loss: BoundLoss, coefficients: Array, unit: float) -> float:
        """Set the offsets from the shares of the rows; return the factor of the width, below 1 for a large error."""
        for rows, sign in ((loss.positive, -1.0), (loss.negative, 1.0)):
            share = np.abs(coefficients[rows]) / loss.weight[rows]
            self._offset[rows] = sign * (share / (share.max() or 1.0) - 0.5)
        return float(np.clip(RULES.aim * self._tol * unit / self._error, RULES.least_factor, 1.0))

    def _part(self, loss: BoundLoss, at: SmoothedPoint) -> tuple[Index, BoundLoss]:
        """Draw rows by their leverage and the change of their coefficients; return them, and the loss on them."""
        scores = self.shifted(at.scores, at.width)
        kept, copies = [], []
        for side in (loss.positive, loss.negative):
            rows = side[np.argsort(scores[side])]
            s, coefficient = scores[rows], at.coefficients[rows] / loss.weight[rows]
            size = self._leverage[rows] / float(self._leverage.mean() or 1.0)
            far = RULES.reach * at.width * np.sqrt(size)
            change = np.abs(np.interp(s + far, s, coefficient) - np.interp(s - far, s, coefficient))
            change /= float(np.abs(coefficient).max()) or 1.0
            chance = inclusion_probabilities((change + RULES.floor) * size, max(RULES.share * rows.size, RULES.least))
            drawn = draw(chance)
            weight = 1.0 / chance[drawn]
            kept.append(rows[drawn])
            copies.append(weight * (loss.weight[rows].sum() / (weight @ loss.weight[kept[-1]])))
        every = np.concatenate(kept)
        return every, loss.restrict(every, np.concatenate(copies))

    def step(self, operator: Operator, loss: BoundLoss, at: SmoothedPoint, gap: float, unit: float) -> Array:
        """Return the step to the minimizer on a part of the rows, by Newton's method.

        ``gap`` is that of the run, and ``unit`` what its tolerance is relative to. Half of the squared norm of the
        gradient of the objective is what a cut leaves.
        """
        C, width, allowed = self._C, at.width, max(RULES.left * gap, RULES.left_of_tol * self._tol * unit)
        rows, small = self._part(loss, at)
        part = as_operator(operator.rows(rows))
        w, here = at.w, small.at(at.scores[rows] + width * self._offset[rows])
        linear = at.gradient - part.rmatvec(here.minorant(width)[1])
        residual = w + C * at.gradient
        for _ in range(RULES.iterations):
            if 0.5 * float(residual @ residual) <= allowed:
                break
            step = newton_direction(part, here.curvature(None, width), C, residual, False)
            line = _Line(C, w + C * linear, step, part.matvec(step), here, width)
            t = find_zero(line.slope, float(residual @ step), rtol=0.1, largest=np.inf, max_evals=12)
            w, here = w + t * step, line.here
            residual = w + C * (part.rmatvec(here.minorant(width)[1]) + linear)
        return w - at.w


class _Line:
    """Smoothed objective along a step, with the gradient ``constant`` of the penalty and the linear term."""

    def __init__(self, C: float, constant: Array, step: Array, along: Array, start: Evaluation, width: float) -> None:
        self._C, self._along, self._start, self._width = C, along, start, width
        self._linear, self._quadratic = float(constant @ step), float(step @ step)
        self.here = start

    def slope(self, t: float) -> float:
        """Return the slope after a step of size ``t``, whose loss is then :attr:`here`."""
        self.here = self._start.loss.at(self._start.scores + t * self._along)
        return self._linear + t * self._quadratic + self._C * self.here.slope(self._width, self._along)
