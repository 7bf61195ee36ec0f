"""Accelerations of the certified solver: steps on a part of the rows, and a working set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._support import Array, Index
from rocmax.losses.base import BoundLoss, Evaluation
from rocmax.operators import CountingOperator, MatrixOperator, StandardizedOperator, as_operator, zero_scores
from rocmax.solvers.base import find_zero, spread
from rocmax.solvers.certified import CertifiedRun, Iterate, newton_direction

# Part of the rows of a large sample, drawn with unequal probabilities.


# Rows from which the scale of the features is estimated, and rows in a block.
_ROWS_FOR_SCALE, _BLOCK = 50_000, 20_000


def leverage(rows: Callable[[Any], Any], n_samples: int) -> Array:
    """Return the sum of the squared features of each row, each divided by its mean over a sample of rows.

    Up to a factor, this is the leverage if the features are uncorrelated. ``rows`` returns the rows of an index or a
    slice.
    """
    some = rows(np.linspace(0, n_samples - 1, min(n_samples, _ROWS_FOR_SCALE)).astype(np.intp))
    scale = np.asarray(_squares(some).mean(axis=0), dtype=np.float64).ravel()
    # A feature that is zero in all rows of the sample is taken as the rarest of the others.
    seen = scale > 0
    scale[~seen] = scale[seen].min() if seen.any() else 1.0
    found = np.empty(n_samples)
    for start in range(0, n_samples, _BLOCK):
        block = slice(start, start + _BLOCK)
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


# Least number of rows, and greatest number of features, for these steps.
_MIN_ROWS, _MAX_FEATURES = 30_000, 500
# They begin after this number of iterations if the relative gap is still above this multiple of the tolerance, and end
# after this number of iterations that reduce the gap by less than a tenth.
_AFTER, _FAR, _SLOW = 4, 100.0, 4
# Share of the rows of a class in the part, and least number of them.
_SHARE, _LEAST = 0.12, 5_000
# A row counts as close to a kink if this multiple of the width, times its relative size, takes it there. Rows that are
# not close are in the part with a small probability: their ranks matter.
_REACH, _FLOOR = 10.0, 0.02
# Smoothing error at the beginning, relative to the tolerance and the objective; and the aim for an update of the
# offsets, relative to the tolerance, with the least factor by which it changes the width.
_ERROR, _AIM, _LEAST_FACTOR = 3.0, 0.5, 0.1
# The solution on the part has at most this share of the gap, or of the tolerance, left.
_LEFT, _LEFT_OF_TOL, _INNER_ITERATIONS = 0.01, 0.02, 30


class PartSteps:
    r"""Steps to the minimiser of the smoothed objective on a part of the rows.

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

    Parameters
    ----------
    run : CertifiedRun
        The run that takes the steps.
    tol : float
        Tolerance of the run.

    References
    ----------
    Shamir, Srebro and Zhang, "Communication-efficient distributed optimization using an approximate Newton-type
    method", ICML 2014.
    Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
    Mathematics of Operations Research 1976.
    """

    def __init__(self, run: CertifiedRun, tol: float) -> None:
        self._run, self._tol = run, tol
        n_samples, n_features = run.operator.shape
        self._possible = (
            n_samples >= _MIN_ROWS
            and n_features <= _MAX_FEATURES
            and isinstance(run.operator.operator, MatrixOperator | StandardizedOperator)
            and run.loss.has_kinks
            and run.loss.has_local_curvature
        )
        self._leverage = self._offset = np.empty(0)
        self._error = 0.0

    def wanted(self, n_iter: int, slow: int, gap: float) -> bool:
        """Return whether the next step should be one of these, from the state of the run."""
        if self._offset.size:
            self._possible &= slow < _SLOW
        elif self._possible and n_iter >= _AFTER and gap > _FAR * self._tol and self._run.best.w.any():
            self._begin()
        return self._possible and self._offset.size > 0

    def step(self) -> bool:
        """Take a step; return False, and take none, if the solution on the part does not reduce the objective."""
        run = self._run
        gap = run.best.objective + run.gain
        residual = run.at.w + run.C * run.gradient
        if 0.5 * float(residual @ residual) <= self._error and self._error > 0.2 * self._tol * run.unit:
            self._update_offsets()
            run.cut()
            residual = run.at.w + run.C * run.gradient
        step = self._solve(residual, max(_LEFT * gap, _LEFT_OF_TOL * self._tol * run.unit))
        along = run.operator.matvec(step)
        slope = float(run.at.w @ step + run.C * (run.coefficients @ along))
        self._possible = slope < 0
        if self._possible:
            t = run.search(step, along, slope, run.width, start=run.at.scores + run.width * self._offset)
            run.here = run.loss.at(run.at.scores + t * along)
            run.move(step, t)
            self._take_cut()
        return self._possible

    def _begin(self) -> None:
        """Choose random offsets and the first width at the best point."""
        run = self._run
        self._leverage = leverage(run.operator.operator.rows, run.loss.n_samples)
        run.operator.count += 1.0
        self._offset = np.random.default_rng(0).random(run.loss.n_samples) - 0.5
        run.at, run.here = run.best, run.loss.at(run.best.scores)
        run.width = max(run.width, 1e-3 * spread(run.at.scores))
        wanted = _ERROR * self._tol * (run.base + run.best.objective) / run.C
        for _ in range(12):
            error = run.here.value(0.0) - self._cut()[0]
            factor = float(np.clip(wanted / max(error, 1e-300), 0.1, 10.0))
            if 0.8 < factor < 1.25:
                break
            run.width *= factor
        self._take_cut()
        run.cut()

    def _evaluate(self) -> Evaluation:
        return self._run.loss.at(self._run.at.scores + self._run.width * self._offset)

    def _cut(self) -> tuple[float, Array]:
        """Return the value of the cut at the current scores, and its coefficients."""
        here = self._evaluate()
        value, coefficients = here.minorant(self._run.width)
        return value + float(coefficients @ (self._run.at.scores - here.scores)), coefficients

    def _take_cut(self) -> None:
        run = self._run
        value, run.coefficients = self._cut()
        run.rise = value - run.origin.value
        self._error = run.C * (run.here.value(0.0) - value)

    def _update_offsets(self) -> None:
        """Set the offsets from the shares of the rows, and reduce the width if the smoothing error is too large."""
        run = self._run
        for rows, sign in ((run.loss.positive, -1.0), (run.loss.negative, 1.0)):
            share = np.abs(run.coefficients[rows]) / run.loss.weight[rows]
            self._offset[rows] = sign * (share / (share.max() or 1.0) - 0.5)
        run.width *= float(np.clip(_AIM * self._tol * run.unit / self._error, _LEAST_FACTOR, 1.0))
        self._take_cut()

    def _part(self) -> tuple[Index, BoundLoss]:
        """Draw rows by their leverage and the change of their coefficients; return them, and the loss on them."""
        run, loss = self._run, self._run.loss
        scores = run.at.scores + run.width * self._offset
        kept, copies = [], []
        for side in (loss.positive, loss.negative):
            rows = side[np.argsort(scores[side])]
            s, coefficient = scores[rows], run.coefficients[rows] / loss.weight[rows]
            size = self._leverage[rows] / float(self._leverage.mean() or 1.0)
            far = _REACH * run.width * np.sqrt(size)
            change = np.abs(np.interp(s + far, s, coefficient) - np.interp(s - far, s, coefficient))
            change /= float(np.abs(coefficient).max()) or 1.0
            chance = inclusion_probabilities((change + _FLOOR) * size, max(_SHARE * rows.size, _LEAST))
            drawn = draw(chance)
            weight = 1.0 / chance[drawn]
            kept.append(rows[drawn])
            copies.append(weight * (loss.weight[rows].sum() / (weight @ loss.weight[kept[-1]])))
        every = np.concatenate(kept)
        return every, loss.restrict(every, np.concatenate(copies))

    def _solve(self, residual: Array, allowed: float) -> Array:
        """Return the step to the minimiser on a part of the rows, by Newton's method.

        ``residual`` is the gradient of the objective. A cut leaves half of its squared norm, at most ``allowed``.
        """
        run, width = self._run, self._run.width
        rows, loss = self._part()
        part = as_operator(run.operator.rows(rows))
        w, here = run.at.w, loss.at(run.at.scores[rows] + width * self._offset[rows])
        linear = run.gradient - part.rmatvec(here.minorant(width)[1])
        for _ in range(_INNER_ITERATIONS):
            if 0.5 * float(residual @ residual) <= allowed:
                break
            step = newton_direction(part, here.curvature(None, width), run.C, residual, False)
            line = _Line(run.C, w + run.C * linear, step, part.matvec(step), here, width)
            t = find_zero(line.slope, float(residual @ step), rtol=0.1, largest=np.inf, max_evals=12)
            w, here = w + t * step, line.here
            residual = w + run.C * (part.rmatvec(here.minorant(width)[1]) + linear)
        return w - run.at.w


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


# Iterations of the certified solver on the rows that determine the loss.


# The working set is used for matrices of at least this size, where products take most of the time, and for at most this
# number of rows: it is a copy of rows, and must not take much memory.
_MIN_SIZE, _MAX_ROWS = 500_000, 250_000
# The set is chosen when the gap, relative to the objective, is at most this: until then the scores change much.
_NEAR = 20.0
# Number of negatives in the set, relative to those up to the end of the window.
_SET_REACH = 3.0
# Number of slow iterations in a row after which all rows are used again.
_SET_SLOW = 3


class WorkingSet:
    """Rows that determine the loss near the solution: for a narrow window, positives and high-scored negatives.

    The loss on these rows is a lower bound of the loss on all rows, so that its cuts are valid for all rows. When the
    run has converged on them, the objective of all rows is computed, which needs one pass over the data. It is the same
    unless another row has entered the window; then the run continues on all rows.

    Parameters
    ----------
    run : CertifiedRun
        The run.
    binned : callable
        Function that returns a large loss on bins, and None for a small one.
    """

    def __init__(self, run: CertifiedRun, binned: Callable[[BoundLoss], BoundLoss | None]) -> None:
        self._run, self._binned = run, binned
        self._whole: tuple[CountingOperator, BoundLoss, Iterate] | None = None
        self._possible = (
            run.loss.n_samples <= _MAX_ROWS
            and run.operator.shape[0] * run.operator.shape[1] >= _MIN_SIZE
            and not run.returns_cuts
            and run.loss.has_kinks
            and isinstance(run.operator.operator, MatrixOperator | StandardizedOperator)
        )

    @property
    def is_used(self) -> bool:
        """Whether the run is on the working set."""
        return self._whole is not None

    def choose(self, gap: float) -> None:
        """Continue the run on a working set, if there is a small one and the gap is small enough; only once."""
        run = self._run
        if not self._possible or gap > _NEAR or not run.at.w.any():
            return
        self._possible = False
        rows = run.here.active(_SET_REACH)
        if rows is None:
            return
        loss = run.loss.restrict(rows)
        loss = self._binned(loss) or loss
        share = rows.size / run.loss.n_samples
        operator = CountingOperator(as_operator(run.operator.rows(rows)), share)
        operator.count = run.operator.count + share
        self._whole = run.operator, run.loss, run.best
        best_scores, is_best = run.best.scores[rows], run.best is run.at
        run.switch(operator, loss, run.at.w, run.at.scores[rows])
        run.best = run.at if is_best else run.point(run.best.w, loss.at(best_scores))
        run.known = self._whole[2]
        run.take_minorant()

    def leave_if_slow(self, slow: int) -> None:
        """Continue the run on all rows if it makes little progress."""
        if self.is_used and slow >= _SET_SLOW:
            self.leave()
            self._run.take_minorant()
            self._run.cut()

    def leave(self) -> bool:
        """Compute the objective of all rows at the best point; return whether the run was on the working set."""
        if self._whole is None:
            return False
        run, (operator, loss, best) = self._run, self._whole
        operator.count = run.operator.count
        w = run.best.w
        run.switch(operator, loss, w, operator.matvec(w) if w.any() else zero_scores(operator))
        run.best = min(best, run.at, key=lambda point: point.objective)
        run.known = self._whole = None
        return True
