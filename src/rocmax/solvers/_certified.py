"""The state that certified solvers share: points, cuts, and the steps between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss, Pairs
from rocmax.operators import CountingOperator, Operator
from rocmax.solvers._bundle import Bundle
from rocmax.solvers._origin import Origin
from rocmax.solvers.base import Callback, Cuts, Progress, Result, finish
from rocmax.solvers.line_search import find_zero

# Above this many features the Newton system is solved by conjugate gradients instead of Cholesky.
_MAX_DENSE = 2000
# Iterations without any progress after which a run ends.
_STUCK = 40
# On large samples, Hessians and rough line searches use this many rows.
_THIN_ROWS = 100_000
# A gain this small, relative to the objective and to what the slope at zero promises, is rounding.
_NOTHING = 64 * float(np.finfo(np.float64).eps)


# Called with the number of iterations, how many of the last were slow, and the gap relative to what is to be gained.
Step = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Iterate:
    """A weight vector with its scores, and by how much its loss and its objective are above those of zero weights."""

    w: Array
    scores: Array
    rise: float
    objective: float


class CertifiedRun:
    """State of one run: the point at hand, the best point, the cuts and the smoothing.

    Losses, objectives and cuts are differences from those of zero weights.
    """

    def __init__(
        self, operator: CountingOperator, loss: BoundLoss, C: float, w0: Array | None, cuts: Cuts | None = None
    ) -> None:
        n_samples, n_features = operator.shape
        self.operator, self.loss, self.C = operator, loss, C
        self.bundle = Bundle(C, max_cuts=int(np.clip(2 * min(n_features, n_samples), 60, 200)))
        self.hands_on = cuts is not None
        self.origin = Origin(operator, loss)
        self.base = C * self.origin.value
        if cuts is not None:
            self.bundle.start(cuts._replace(offset=np.minimum(cuts.offset - self.origin.value, 0.0)))
        # Enough pairs to estimate a matrix of this size; all of them where they are few.
        self.n_pairs = min(int(np.clip(100 * n_features, 4000, 30000)), loss.positive.size * loss.negative.size)
        self.thin = loss.thinned(_THIN_ROWS)
        self.width = 0.0
        self.slack = 0.15  # allowed smoothing error relative to what is to be gained
        self.zero = self.at = self.best = Iterate(np.zeros(n_features), np.zeros(n_samples), 0.0, 0.0)
        self.rise, self.coefficients = 0.0, self.origin.coefficients
        if w0 is not None and np.any(w0):
            w = np.array(w0, dtype=np.float64)
            scores = operator.matvec(w)
            self.rise, self.coefficients = self._smoothed(scores, 0.0)
            self.at = self._point(w, scores, self.rise)
            self.best = min(self.best, self.at, key=lambda point: point.objective)
        self.gradient = np.empty(0)

    @property
    def gain(self) -> float:
        """Upper bound on what any weights gain from zero weights."""
        return -self.bundle.bound

    @property
    def unit(self) -> float:
        """What the tolerance is relative to: the best objective, or what is to be gained from zero if that is less.

        At a point other than zero that is the most that the cuts allow. At zero the gap itself is that much, so it
        is compared with what the slope there promises: the gain of a step along it if the loss were linear.
        """
        gain = self.gain if self.best.w.any() else self._promise
        return min(abs(self.base + self.best.objective), gain)

    @property
    def _promise(self) -> float:
        """What a step from zero along the slope there would gain if the loss were linear."""
        return 0.5 * self.C**2 * float(self.origin.slope @ self.origin.slope)

    def _drop_rounding(self) -> None:
        """Return to zero weights if the cuts show that nothing is to be gained: all other weights are rounding then."""
        if self.best.w.any() and self.gain <= _NOTHING * min(abs(self.base), self._promise):
            self.best = self.zero

    def iterate(self, solver: str, tol: float, max_iter: int, callback: Callback | None, step: Step) -> Result:
        """Cut and step until the gap is at most ``tol`` times :attr:`unit`, nothing moves, or ``max_iter``."""
        trace: list[Progress] = []
        smallest_gap, slow, unmoved = np.inf, 0, 0
        while True:
            self.cut()
            self._drop_rounding()
            best, gap = self.base + self.best.objective, self.best.objective + self.gain
            trace.append(Progress(best, self.base - self.gain, self.operator.passes))
            if callback is not None:
                callback(trace[-1])
            rounding = self.origin.rounding(self.gain, self.C) if self.best.w.any() else 0.0
            converged = gap <= max(tol * self.unit, rounding)
            slow = slow + 1 if gap > 0.9 * smallest_gap else 0
            unmoved = unmoved + 1 if gap > (1 - 1e-3) * smallest_gap else 0
            smallest_gap = min(gap, smallest_gap)
            if converged or unmoved >= _STUCK or len(trace) >= max_iter:
                result = finish(self.best.w, best, gap, self.unit, converged, trace, solver, tol)
                return replace(result, cuts=self._cuts()) if self.hands_on else result
            step(len(trace), slow, gap / (self.unit or 1.0))

    def cut(self) -> None:
        """Turn the coefficients at hand into a gradient, and that into a cut."""
        at_zero = not self.at.w.any() and not self.width
        self.gradient = self.origin.slope if at_zero else self.operator.rmatvec(self.coefficients)
        # At zero weights, no cut is above the loss but for rounding.
        offset = min(self.rise - float(self.coefficients @ self.at.scores), 0.0)
        # The coefficients are those of the loss's last call, and so are the tables.
        self.bundle.add(self.gradient, offset, self.loss.tables())

    def settle(self, slack: float) -> None:
        """Start with the smoothing of the end of a run, for a start that is near the optimum."""
        if not self.loss.has_kinks or not self.at.w.any():
            return
        self.slack = slack
        self.width = 0.3 * float(np.std(self.at.scores))
        for _ in range(3):
            self.rise, self.coefficients = self._smoothed(self.at.scores, self.width)
            self._adapt_width(self.at.rise - self.rise)
        self.rise, self.coefficients = self._smoothed(self.at.scores, self.width)

    def newton_step(self, smallest_slack: float, rough: bool) -> None:
        """Step along the Newton direction of the smoothed objective, then choose the next smoothing.

        With ``rough``, a large sample is thinned for the line search.
        """
        pairs = self._pairs()
        is_sample = self.n_pairs < self.loss.positive.size * self.loss.negative.size
        step = _newton_direction(self.operator, pairs, self.C, self.at.w + self.C * self.gradient, is_sample)
        along = self.operator.matvec(step)
        slope = float(self.at.w @ step + self.C * (self.coefficients @ along))
        if slope < 0:
            if rough and self.thin is not None:
                t = self._rough_search(*self.thin, step, along)
                self.rise, self.coefficients = self._smoothed(self.at.scores + t * along, self.width)
            else:
                t = self._search(step, along, slope, self.width, rtol=0.1, largest=np.inf, max_evals=12)
            self._move(step, along, t, exact=None if self.width else self.rise)
        if not self.loss.has_kinks:
            return
        self.slack = max(0.15 * self.slack, smallest_slack)
        if self.width == 0:
            self.width = 0.3 * float(np.std(self.at.scores))
        else:
            self._adapt_width(self.at.rise - self.rise)
        self.rise, self.coefficients = self._smoothed(self.at.scores, self.width)

    def _adapt_width(self, error: float) -> None:
        """Bring the error of the smoothing, which grows with the square of its width, to what is allowed."""
        if error > 0:
            wanted = self.slack * self.unit / self.C
            self.width *= float(np.clip(np.sqrt(wanted / error), 0.1, 3.0))

    def cutting_plane_step(self) -> None:
        """Step from the best point towards the minimiser of the cuts; the cut is taken a little further on."""
        self.at = self.best
        step = self.bundle.minimizer() - self.at.w
        along = self.operator.matvec(step)
        _, coefficients = self._smoothed(self.at.scores, 0.0)
        slope = float(self.at.w @ step + self.C * (coefficients @ along))
        t = self._search(step, along, slope, 0.0, rtol=0.1, largest=1.0, max_evals=25) if slope < 0 else 0.0
        start = self.at
        self._move(step, along, t, exact=self.rise if slope < 0 else None)
        self.at = start
        t += 0.1 * (1.0 - t)
        self.rise, self.coefficients = self._smoothed(start.scores + t * along, 0.0)
        self._move(step, along, t, exact=self.rise)

    def _pairs(self) -> Pairs:
        if self.thin is None:
            return self.loss.curvature(self.at.scores, self.n_pairs, self.width)
        rows, small = self.thin
        pairs = small.curvature(self.at.scores[rows], self.n_pairs, self.width)
        return Pairs(rows[pairs.first], rows[pairs.second], pairs.weight)

    def _rough_search(self, rows: NDArray[np.intp], small: BoundLoss, step: Array, along: Array) -> float:
        scores, part = self.at.scores[rows], along[rows]
        linear, quadratic = float(self.at.w @ step), float(step @ step)

        def slope_at(t: float) -> float:
            _, coefficients = small.smoothed(scores + t * part, self.width)
            return linear + t * quadratic + self.C * float(coefficients @ part)

        return find_zero(slope_at, slope_at(0.0), rtol=0.1, largest=np.inf, max_evals=12)

    def _search(
        self,
        step: Array,
        along: Array,
        slope: float,
        width: float,
        *,
        rtol: float,
        largest: float,
        max_evals: int,
    ) -> float:
        linear, quadratic = float(self.at.w @ step), float(step @ step)

        def slope_at(t: float) -> float:
            self.rise, self.coefficients = self._smoothed(self.at.scores + t * along, width)
            return linear + t * quadratic + self.C * float(self.coefficients @ along)

        return find_zero(slope_at, slope, rtol=rtol, largest=largest, max_evals=max_evals)

    def _move(self, step: Array, along: Array, t: float, exact: float | None) -> None:
        """Take the step; ``exact`` is the rise of the loss there, if known."""
        self.at = self._point(self.at.w + t * step, self.at.scores + t * along, exact)
        if self.at.objective < self.best.objective:
            self.best = self.at

    def _point(self, w: Array, scores: Array, rise: float | None = None) -> Iterate:
        rise = self._smoothed(scores, 0.0)[0] if rise is None else rise
        return Iterate(w, scores, rise, 0.5 * float(w @ w) + self.C * rise)

    def _smoothed(self, scores: Array, width: float) -> tuple[float, Array]:
        """Return the rise of the loss above that of zero weights, exact if the width is zero, and the coefficients."""
        value, coefficients = self.loss.smoothed(scores, width) if width else self.loss.value_and_gradient(scores)
        return self.origin.rise(value, coefficients, scores), coefficients

    def _cuts(self) -> Cuts:
        cuts = self.bundle.cuts()
        return cuts._replace(offset=cuts.offset + self.origin.value)


def _newton_direction(operator: Operator, pairs: Pairs, C: float, gradient: Array, is_sample: bool) -> Array:
    """Solve ``(I + C H) p = -gradient``, with ``H`` given by weighted pairs of rows."""
    if pairs.weight.size == 0:
        return -gradient
    d = gradient.size
    difference = operator.rows(pairs.first) - operator.rows(pairs.second)
    weight = C * pairs.weight
    if d > _MAX_DENSE:
        system = LinearOperator(
            (d, d), matvec=lambda v: v + difference.T @ (weight * (difference @ v)), dtype=np.float64
        )
        value: Array = cg(system, -gradient, rtol=0.1, maxiter=30)[0]
        return value
    root = np.sqrt(weight).astype(difference.dtype)
    if sparse.issparse(difference):
        difference = sparse.diags_array(root) @ difference
        hessian = (difference.T @ difference).toarray().astype(np.float64)
    else:
        difference *= root[:, None]
        hessian = (difference.T @ difference).astype(np.float64, copy=False)
    # A sample misses directions that few rows have; the ridge keeps steps along them short.
    ridge = 1e-3 * np.trace(hessian) / d if is_sample else 0.0
    hessian[np.diag_indices(d)] += 1.0 + ridge
    try:
        found: Array = -linalg.cho_solve(linalg.cho_factor(hessian), gradient)
        return found
    except linalg.LinAlgError:
        # Features of very different size: rounding made the matrix indefinite. The diagonal alone still helps.
        result: Array = -gradient / np.diagonal(hessian)
        return result
