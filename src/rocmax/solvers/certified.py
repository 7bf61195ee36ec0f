"""Run of a certified solver: cuts, bounds, the step from a point, and OCAS."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rocmax._support import Array, Index, Parameters
from rocmax.losses.base import BoundLoss, Evaluation, Pairs
from rocmax.operators import CountingOperator, Operator, product_rounding, zero_scores
from rocmax.penalties import SquaredL2
from rocmax.solvers.base import (
    Callback,
    Cuts,
    Origin,
    Progress,
    Result,
    find_zero,
    finish,
    newton_direction,
    require,
    spread,
    valid_gap,
)
from rocmax.solvers.cutting_plane import Bundle

# Shared state and steps of the certified solvers.


@dataclass(frozen=True)
class NewtonRules:
    """Tuned numbers of the certified solvers; ``benchmarks/results/ablation.md`` has what their mechanisms gain."""

    # A run ends after this number of iterations without progress; after this number of iterations that reduce the gap
    # by less than a tenth, cutting-plane and Newton steps alternate.
    stuck: int = 40
    slow: int = 3
    # Pairs per feature in a Hessian, for a number of features within these limits. Near the solution: one pair for this
    # number of rows, within these limits, so that the time of a Hessian is a part of that of a pass.
    pairs: int = 64
    features: tuple[int, int] = (25, 300)
    rows_per_pair: int = 50
    pairs_near_solution: tuple[int, int] = (60, 200)
    # On large samples, Hessians use about this share of the rows, within these limits.
    part: float = 0.15
    part_rows: tuple[int, int] = (30_000, 300_000)
    # First width of the smoothing in standard deviations of the scores, and the smoothing error, relative to the
    # objective, at a start close to the solution. A width is kept while its error is within these multiples of the
    # allowed one.
    soft: float = 0.3
    settled: float = 0.001
    kept_error: tuple[float, float] = (0.4, 1.2)
    # Above this number of features, Newton systems are solved by conjugate gradients instead of Cholesky factorization:
    # on 20,000 dense rows, 500 features take a tenth of the time. Rows then move nearly on their own and Newton steps
    # on little smoothing are short, so that the smoothing is reduced only when the smoothed problem is solved up to its
    # error: 64 instead of 150 iterations on sector, 132 instead of 337 on farm-ads.
    most_dense: int = 300
    # From this number of rows on, the loss is computed from bins, and the start is the solution on a part of the rows.
    # A loss with kinks needs more rows: parts of the rows have few negatives in the window.
    many_rows: int = 15_000
    many_rows_with_kinks: int = 50_000
    # Such a start: share of the rows, pairs per feature in a Hessian, tolerance, and maximum number of iterations.
    subsample: float = 0.1
    subsample_pairs: int = 30
    subsample_tol: float = 1e-2
    subsample_iterations: int = 6
    # Allowed distance of the bounds from bins, relative to the tolerance. They are compared if the gap is at most this
    # multiple of the tolerance.
    bin_error: float = 0.1
    near: float = 30.0
    # A decrease of this size, relative to the objective and to the decrease predicted at zero weights, is a rounding
    # error. Scores are computed from the weights again after this number of steps, whose rounding errors add up, or if
    # the scores since the last time were larger than the present ones by this factor.
    nothing: float = 64 * float(np.finfo(np.float64).eps)
    renewal: int = 16
    drift: float = 50.0


RULES = NewtonRules()


def thinned(here: Evaluation, size: int) -> tuple[Index, BoundLoss] | None:
    """Return about ``size`` rows and the loss on them; None if there are few rows, or the loss has no such sample."""
    found = here.sample(size)
    return None if found is None else (found[0], here.loss.restrict(*found))


# Called with the number of iterations and the number of slow iterations in a row.
Step = Callable[[int, int], None]


@dataclass(frozen=True)
class Iterate:
    """Weight vector with its scores, and its loss and objective relative to those of zero weights."""

    w: Array
    scores: Array
    rise: float
    objective: float


class CertifiedRun:
    """State of a run: the current point, the best point, the cuts and the smoothing.

    Losses, objectives and cuts are differences from those of zero weights. The loss of a point is an upper bound, and
    that of a cut a lower bound, if the loss is computed from bins.
    """

    def __init__(
        self,
        operator: CountingOperator,
        loss: BoundLoss,
        C: float,
        w0: Array | None,
        cuts: Cuts | None = None,
        pairs_per_feature: int = RULES.pairs,
    ) -> None:
        n_samples, n_features = operator.shape
        self.operator, self.loss, self.C = operator, loss, C
        self.bundle = Bundle(C, max_cuts=min(max(2 * min(n_features, n_samples), 60), 200))
        self.returns_cuts = cuts is not None
        self.origin = Origin(operator, loss)
        w = np.zeros(n_features) if w0 is None else np.array(w0, dtype=np.float64)
        # The gradient at zero weights, if it is needed, before the value: both are then computed at once.
        self.rise, self.coefficients = 0.0, np.empty(0) if w.any() else self.origin.coefficients
        self.base = C * self.origin.value
        if cuts is not None:
            self.bundle.start(cuts._replace(offset=np.minimum(cuts.offset - self.origin.value, 0.0)))
        # Enough pairs to estimate a matrix of this size, and at most all pairs.
        wanted = pairs_per_feature * int(np.clip(n_features, *RULES.features))
        self.n_pairs = min(wanted, loss.n_positive * loss.n_negative)
        self.width = 0.0
        self.slack = 0.15  # allowed smoothing error, relative to `unit`
        self.zero = self.at = self.best = Iterate(np.zeros(n_features), zero_scores(operator), 0.0, 0.0)
        self.here = loss.at(operator.matvec(w)) if w.any() else self.origin.at
        if w.any():
            self.at = self.point(w, self.here)
            self.rise, self.coefficients = self._minorant(self.here, 0.0)
            self.best = min(self.best, self.at, key=lambda point: point.objective)
        self.gradient = np.empty(0)
        self._moves, self._drift, self._spread = 0, 0.0, 0.0
        # Point, loss and gradients before a step towards the minimizer of the cuts; Newton steps go on from there.
        self._left: tuple[Iterate, Evaluation, Array, Array] | None = None

    @property
    def gain(self) -> float:
        """Upper bound of the possible decrease of the objective from zero weights."""
        return -self.bundle.bound

    @property
    def unit(self) -> float:
        """Scale of the tolerance: the best objective, or the possible decrease from zero weights if it is smaller.

        If the best point is not zero, the possible decrease is the bound from the cuts. At zero weights this bound
        equals the gap, so the decrease predicted by the gradient for a linear loss is used instead.
        """
        gain = self.gain if self.best.w.any() else self._promise
        return min(abs(self.base + self.best.objective), gain)

    @property
    def _promise(self) -> float:
        """Decrease of a step from zero weights along the gradient if the loss were linear."""
        return 0.5 * self.C**2 * float(self.origin.slope @ self.origin.slope)

    def _drop_rounding(self) -> None:
        """Return to zero weights if the cuts show that any decrease is within rounding error."""
        small = self.best.w.any() and self.gain <= RULES.nothing * abs(self.base)
        # The predicted decrease takes a pass, and is needed only here.
        if small and self.gain <= RULES.nothing * self._promise:
            self.best = self.zero

    def iterate(
        self,
        solver: str,
        tol: float,
        max_iter: int,
        callback: Callback | None,
        step: Step,
    ) -> Result:
        """Iterate until the gap is at most ``tol`` times :attr:`unit`, progress stalls, or ``max_iter`` is reached."""
        trace: list[Progress] = []
        smallest_gap, slow, unmoved = np.inf, 0, 0
        while True:
            self.cut()
            self._drop_rounding()
            gap = self.best.objective + self.gain
            slow = slow + 1 if gap > 0.9 * smallest_gap else 0
            unmoved = unmoved + 1 if gap > (1 - 1e-3) * smallest_gap else 0
            smallest_gap = min(gap, smallest_gap)
            converged = self._has_converged(tol)
            ends = converged or unmoved >= RULES.stuck or len(trace) + 1 >= max_iter
            if ends and not self._has_valid_bound(tol):
                # The scores of the best point are sums of steps. Those of its weights give the objective to report.
                self.best = self.point(self.best.w, self.loss.at(self.operator.matvec(self.best.w)))
                gap, converged = self.best.objective + self.gain, self._has_converged(tol)
            best = self.base + self.best.objective
            trace.append(Progress(best, self.base - self.gain, self.operator.passes))
            if callback is not None:
                callback(trace[-1])
            if ends:
                result = finish(self.best.w, best, gap, self.unit, converged, trace, solver, tol, self._rounding(gap))
                return replace(result, cuts=self._cuts()) if self.returns_cuts else result
            if gap <= RULES.near * tol * self.unit:
                self._refine(tol)
            step(len(trace), slow)

    def _has_converged(self, tol: float) -> bool:
        rounding = self.origin.rounding(self.gain, self.C) if self.best.w.any() else 0.0
        return self.best.objective + self.gain <= max(tol * self.unit, rounding)

    def _has_valid_bound(self, tol: float) -> bool:
        gap = self.best.objective + self.gain
        return valid_gap(gap, self._rounding(gap), tol, self.unit)[1]

    def _rounding(self, gap: float) -> float:
        return self.origin.error(gap, self.base + self.best.objective, self.best.scores, self.C)

    def _refine(self, tol: float) -> None:
        """Use finer bins, or the exact loss, if the bounds at the current point are too far apart."""
        allowed = RULES.bin_error * tol
        while not self.loss.exact and self.C * (self.here.upper - self.here.value(0.0)) > allowed * self.unit:
            self.here = self.here.refined()
            self.loss = self.here.loss
            was_best = self.best is self.at
            self.at = self.point(self.at.w, self.here)
            self.best = self.at if was_best else self.best

    def cut(self) -> None:
        """Compute the gradient from the current coefficients and add it as a cut."""
        at_zero = not self.at.w.any() and not self.width
        self.gradient = self.origin.slope if at_zero else self.operator.rmatvec(self.coefficients)
        product = float(self.coefficients @ self.at.scores)
        # At zero weights, a cut can exceed the loss only by rounding error.
        offset = min(self.rise - product - product_rounding(self.coefficients, self.at.scores), 0.0)
        self.bundle.add(self.gradient, offset, self.here.tables)

    def take_minorant(self) -> None:
        """Compute the coefficients of the next cut at the current point."""
        self.rise, self.coefficients = self._minorant(self.here, self.width)

    def settle(self, slack: float, width: float = 0.0) -> None:
        """Start with little smoothing, for a start near the optimum: with the given width, or with a given error."""
        if not self.loss.has_kinks or not self.at.w.any():
            return
        self.slack, self.width = slack, width
        if not width:
            self.width = RULES.soft * spread(self.at.scores)
            for _ in range(3):
                self._adapt_width(self._smoothing_error())
        self.take_minorant()

    def newton_step(self, smallest_slack: float, is_slow: bool) -> None:
        """Take a Newton step on the smoothed objective, then choose the next amount of smoothing."""
        if self._left is not None and self._left[0].objective < self.at.objective:
            self.at, self.here, self.gradient, self.coefficients = self._left
        self._left = None
        is_sample = self.n_pairs < self.loss.n_positive * self.loss.n_negative
        gradient, is_dense = self.at.w + self.C * self.gradient, self.at.w.size <= RULES.most_dense
        step = newton_direction(self.operator, self._pairs(), self.C, gradient, is_sample, is_dense)
        along = self.operator.matvec(step)
        slope = float(self.at.w @ step + self.C * (self.coefficients @ along))
        self.coefficients = np.empty(0)  # not needed any more, and as large as the scores
        if slope < 0:
            self._move(step, self._search(step, along, slope, self.width))
        if self.loss.has_kinks:
            # Half the squared norm of the gradient is what the smoothed problem can still gain.
            if is_dense or is_slow or 0.5 * float(gradient @ gradient) <= self.slack * self.unit:
                self.slack = max(0.15 * self.slack, smallest_slack)
            if self.width == 0:
                self.width = RULES.soft * spread(self.at.scores)
            elif self.best.w.any():
                self._adapt_width(self._smoothing_error())
            else:
                self._keep_or_reduce_width()
        self.take_minorant()

    def _smoothing_error(self) -> float:
        """Return the error of the smoothed loss at the current point; both values are from the same bins."""
        return self.here.value(0.0) - self.here.value(self.width)

    def _adapt_width(self, error: float) -> None:
        """Adapt the width to the allowed smoothing error, which grows with the square of the width.

        A width that is about right is kept. The scale is :attr:`unit` with the decrease reached so far instead of its
        bound, which is too large at first.
        """
        scale = min(self.unit, -self.best.objective) if self.best.w.any() else self.unit
        wanted = self.slack * scale / self.C
        narrow, wide = RULES.kept_error
        if error > 0 and not narrow * wanted <= error <= wide * wanted:
            self.width *= min(max(math.sqrt(wanted / error), 0.1), 3.0)

    def _keep_or_reduce_width(self) -> None:
        """Adapt the width if no better point than zero weights is known.

        Near zero weights all pairs have a positive loss, and scores and width of a minimizer of the smoothed objective
        have the same unknown scale. The cut is exact at zero weights for every width, so the width is changed only if
        the cut has an error there.
        """
        rise, coefficients = self._minorant(self.here, self.width)
        error = float(coefficients @ self.at.scores) - rise
        if error > self.slack * self.unit / self.C:
            self._adapt_width(error)
        else:
            self.width = max(self.width, RULES.soft * spread(self.at.scores))

    def cutting_plane_step(self) -> None:
        """Take a step from the best point towards the minimizer of the cuts; the next cut is slightly beyond it."""
        self._left = self.at, self.here, self.gradient, self.coefficients
        self.at = self.best
        step = self.bundle.minimizer() - self.at.w
        along = self.operator.matvec(step)
        _, coefficients = self.loss.at(self.at.scores).minorant(0.0)
        slope = float(self.at.w @ step + self.C * (coefficients @ along))
        start, t = self.at, 0.0
        if slope < 0:
            t = self._search(step, along, slope, 0.0, largest=1.0, max_evals=25)
            self._move(step, t)
        self.at = start
        t += 0.1 * (1.0 - t)
        self.here = self.loss.at(start.scores + t * along)
        self._move(step, t)
        self.rise, self.coefficients = self._minorant(self.here, 0.0)

    def _pairs(self) -> Pairs:
        """Return pairs that sample the Hessian, of a part of the rows of a large sample."""
        thin = thinned(self.here, int(np.clip(RULES.part * self.loss.n_samples, *RULES.part_rows)))
        if thin is None:
            return self.here.curvature(self.n_pairs, self.width)
        rows, small = thin
        pairs = small.curvature(self.at.scores[rows], self.n_pairs, self.width)
        return Pairs(rows[pairs.first], rows[pairs.second], pairs.weight)

    def _search(
        self,
        step: Array,
        along: Array,
        slope: float,
        width: float,
        *,
        largest: float = np.inf,
        max_evals: int = 12,
    ) -> float:
        """Return a step size at which the slope is close to zero."""
        scores = self.at.scores
        linear, quadratic = float(self.at.w @ step), float(step @ step)

        def slope_at(t: float) -> float:
            self.here = self.loss.at(scores + t * along)
            return linear + t * quadratic + self.C * self.here.slope(width, along)

        return find_zero(slope_at, slope, rtol=0.1, largest=largest, max_evals=max_evals)

    def _move(self, step: Array, t: float) -> None:
        """Take a step to the point whose loss is :attr:`here`."""
        w = self.at.w + t * step
        self._moves += 1
        before, self._spread = self._spread, spread(self.here.scores)
        self._drift += before + self._spread
        if self._moves % RULES.renewal == 0 or self._drift > RULES.drift * self._spread:
            self._drift = 0.0
            self.here = self.loss.at(self.operator.matvec(w))
        self.at = self.point(w, self.here)
        decrease = self.best.objective - self.at.objective
        rounding = 0.0 if self.best.w.any() else RULES.nothing * min(abs(self.base), self._promise)
        if decrease > rounding:
            self.best = self.at

    def point(self, w: Array, here: Evaluation) -> Iterate:
        """Return weights with their scores and their objective."""
        rise = self.origin.upper_rise(here)
        return Iterate(w, here.scores, rise, 0.5 * float(w @ w) + self.C * rise)

    def _minorant(self, here: Evaluation, width: float) -> tuple[float, Array]:
        """Return the value of a minorant minus the loss of zero weights, and its coefficients."""
        value, coefficients = here.minorant(width)
        return self.origin.rise(value, coefficients, here.scores), coefficients

    def _cuts(self) -> Cuts:
        cuts = self.bundle.cuts()
        return cuts._replace(offset=cuts.offset + self.origin.value)


# Cutting-plane method with a line search, for convex losses that provide only subgradients.


@dataclass(frozen=True)
class OCAS(Parameters):
    r"""Minimize :math:`\frac{1}{2}|w|^2 + C R(w)` for a convex loss by cutting planes, with a certified duality gap.

    Each iteration minimizes the cutting-plane model, performs a line search from the best point to that minimizer, and
    computes the next cut slightly beyond the result of the line search. It needs two passes over the data; the line
    search works on the scores.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when the gap is at most ``tol`` times the objective, and at most
        ``tol`` times the improvement of the objective over zero weights. At zero weights, the solver stops when the gap
        is at most ``tol`` times the decrease predicted by the gradient there.
    max_iter
    cuts : Cuts, default=None
        Valid cuts to start from, possibly none; the result then contains the final cuts. None starts without cuts and
        returns none.

    References
    ----------
    Franc and Sonnenburg, "Optimized cutting plane algorithm for support vector machines", ICML 2008.
    """

    tol: float = 1e-3
    max_iter: int = 500
    cuts: Cuts | None = None

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: SquaredL2,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimize from ``w0`` (zero if None); the result is never worse than ``w0`` or zero weights."""
        require("OCAS", loss, penalty, (SquaredL2,), convex=True)
        run = CertifiedRun(CountingOperator(operator), loss, penalty.C, w0, self.cuts)
        return run.iterate("OCAS", self.tol, self.max_iter, callback, lambda *_: run.cutting_plane_step())
