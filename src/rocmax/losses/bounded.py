"""Bounded losses: the ramp, the measure with a smooth step, and the scale that anchors them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from rocmax._rounding import top_weight, window_end
from rocmax._support import Array, Index, check_corner, check_top
from rocmax.losses.base import BoundLoss, Loss, scatter
from rocmax.losses.contingency import FBeta, GMean
from rocmax.losses.ranks import LowestPositives, blocks, cut, prefix, without_gaps


class Anchored(BoundLoss):
    r"""Loss of standardized scores plus a penalty on their distance from the scores of an anchor.

    .. math:: R(t) + \frac{\lambda}{2} \, \mathrm{Var}(t - t_0), \qquad t = s / \mathrm{sd}(s)

    The objective is invariant to shift and scale of the scores, so a bounded loss cannot be decreased by making all
    scores equal. For standardized scores the penalty is :math:`\lambda (1 - \mathrm{corr}(s, s_0))`. The distance is
    measured in scores, not in weights, so it does not depend on the scale of the features.
    """

    def __init__(self, base: BoundLoss, anchor: Array, strength: float) -> None:
        self._base, self.strength = base, strength
        self._share_sample(base)
        self.convex = False
        # One number if all weights are equal, see BoundLoss.
        equal = base.weight.strides == (0,)
        self._share: Any = 1.0 / base.weight.size if equal else base.weight / base.weight.sum()
        self._anchor = self._standardized(anchor)[0]

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient; constant scores are standardized to zero.

        With the gradient ``g`` of the loss at the standardized scores ``t``, the weights ``p`` of the rows, which sum
        to 1, and the correlation ``c`` with the anchor ``t0``, the projection of the gradient on the directions that
        change neither mean nor standard deviation is ``g + p (strength (c t - t0) - sum(g) - (g . t) t)``.
        """
        standard, spread = self._standardized(self._checked(scores))
        value, slope = self._base.value_and_gradient(standard)
        # Half the mean square is 1 - c for standardized scores, without cancellation near the anchor.
        distance = 0.5 * self._mean_square(standard, self._anchor)
        used = np.flatnonzero(slope)
        total, along = float(slope[used].sum()), float(slope[used] @ standard[used])
        factor = self.strength * (1.0 - distance if spread > 0 else 0.0) - along
        # In place and by blocks, because temporary arrays of all rows take more memory than the loss.
        for rows in blocks(slope.size):
            part = factor * standard[rows]
            part -= self.strength * self._anchor[rows]
            part -= total
            part *= self._share_of(rows)
            slope[rows] += part
        slope /= spread or 1.0
        return value + self.strength * distance, slope

    def _standardized(self, scores: Array) -> tuple[Array, float]:
        """Return standardized scores and their standard deviation; zeros and 0 if it is zero."""
        mean = float(scores.mean()) if isinstance(self._share, float) else float(self._share @ scores)
        centered = scores - mean
        spread = float(np.sqrt(self._mean_square(centered)))
        if spread > 0:
            centered /= spread
        else:
            centered[:] = 0.0
        return centered, spread

    def _mean_square(self, values: Array, minus: Array | None = None) -> float:
        """Return the weighted mean square of values or of differences."""
        total = 0.0
        for rows in blocks(values.size):
            part = values[rows] if minus is None else values[rows] - minus[rows]
            total += float((part * self._share_of(rows)) @ part)
        return total

    def _share_of(self, rows: slice) -> Any:
        return self._share if isinstance(self._share, float) else self._share[rows]


@dataclass(frozen=True)
class PartialAUCRamp(Loss):
    r"""Mean of a smooth step function over the pairs in the window; bounded and not convex.

    .. math:: \frac{1}{m(b-a)} \sum_i \sum_{a < j \le b} \varphi\bigl((s_i - z_j - \text{margin}) / h\bigr)

    with :math:`h = \text{width}/2` and the piecewise quadratic step :math:`\varphi(u) = 1` for
    :math:`u \le -1`, :math:`1 - (1+u)^2/2` up to 0, :math:`(1-u)^2/2` up to 1, and 0 beyond. Value and gradient are
    exact by sorting and prefix sums, O(N + k log k) for ``k`` negatives up to the end of the window. With
    ``min_tpr > 0`` the sum is over the ``(1 - min_tpr) * m`` positives with the lowest scores, and their number
    replaces ``m`` in the divisor.

    Parameters
    ----------
    min_fpr, max_fpr
    width : float, default=1.0
        Length of the step in the scores.
    margin : float, default=None
        Score difference at the middle of the step. None uses ``width / 2``, which makes the loss an upper bound of
        ``1 - partial AUC``; 0 counts a tie as one half, as the measure does.
    min_tpr

    Examples
    --------
    >>> from rocmax.losses import PartialAUCRamp
    >>> bound = PartialAUCRamp(max_fpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])[0]
    0.625
    """

    min_fpr: float = 0.0
    max_fpr: float = 0.1
    width: float = 1.0
    margin: float | None = None
    min_tpr: float = 0.0

    def __post_init__(self) -> None:
        check_corner(self.min_fpr, self.max_fpr, self.min_tpr)
        if not (0 < self.width < np.inf):
            raise ValueError(f"width must be a finite number > 0; got {self.width!r}")
        if self.margin is not None and not np.isfinite(self.margin):
            raise ValueError(f"margin must be a finite number or None; got {self.margin!r}")

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundRamp:
        """Bind the loss to labels and weights."""
        margin = self.width / 2 if self.margin is None else self.margin
        return BoundRamp(y, sample_weight, self.min_fpr, self.max_fpr, self.width / 2, margin, self.min_tpr)


class BoundRamp(BoundLoss):
    """:class:`PartialAUCRamp` bound to labels; ``half`` is half the width of the step."""

    convex = False

    def __init__(
        self,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        min_fpr: float,
        max_fpr: float,
        half: float,
        margin: float,
        min_tpr: float = 0.0,
    ) -> None:
        super().__init__(y, sample_weight)
        self.a, self.b = window_end(self.n, min_fpr), window_end(self.n, max_fpr)
        self.half, self.margin = half, margin
        self.lowest = LowestPositives(self, min_tpr)

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient; for each positive, the sorted negatives fall into three ranges."""
        s = self._checked(scores)
        selected = self.lowest.select(s)
        pos = s[selected.rows]
        pieces = cut(s, self, self.a, self.b)
        inside = slice(pieces.start, pieces.stop)
        score, weight = pieces.score[inside], pieces.weight[inside]
        # The step is 1 for all pairs of a low positive and 0 for all pairs of a high one; only the rest are searched.
        middle_score = pos - self.margin
        below = middle_score <= score[-1] - self.half
        near = np.flatnonzero(~below & (middle_score < score[0] + self.half))
        near = near[np.argsort(middle_score[near])]
        total = float(weight.sum()) * float(selected.weight @ below)
        v, norm = selected.weight[near], self.lowest.size * (self.b - self.a)
        value, slope, pull = self._near(middle_score[near], v, score, weight)
        pos_coef = np.zeros(pos.size)
        pos_coef[near] = v * slope / (-self.half * norm)
        piece_coef = np.zeros(pieces.score.size)
        piece_coef[inside] = weight * pull / (self.half * norm)
        rows = pieces.rows
        gradient = scatter(self.n_samples, selected.rows, pos_coef, rows, pieces.row_coefficients(piece_coef))
        return (total + float(v @ value)) / norm, gradient

    def _near(self, middle_score: Array, v: Array, score: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Return value and slope for each positive, and slope for each negative in the window."""
        if middle_score.size == 0:
            return middle_score, middle_score, np.zeros(score.size)
        # With u_ij = x_i - d_j: phi is 1 left of -1 (ranks below ``low``), quadratic up to ``middle`` and ``high``.
        if np.ptp(np.concatenate([middle_score, score])) >= 4e3 * self.half:
            middle_score, score = without_gaps(middle_score, score, 4 * self.half)
        origin = score[score.size // 2]
        x = (middle_score - origin) / self.half
        d = (score - origin) / self.half
        low, middle, high = ((-d).searchsorted(-(x + offset)) for offset in (1.0, 0.0, -1.0))
        moment = weight * d
        moments = prefix(weight), prefix(moment), prefix(moment * d)
        up_to_low, up_to_middle, up_to_high = ([sums[end] for sums in moments] for end in (low, middle, high))
        left = [end - start for start, end in zip(up_to_low, up_to_middle, strict=True)]
        right = [end - start for start, end in zip(up_to_middle, up_to_high, strict=True)]
        one = up_to_middle[0]  # phi = 1 - (1+u)^2/2 on the left range, 1 before it
        above, below = 1 + x, 1 - x
        linear_left, linear_right = above * left[0] - left[1], below * right[0] + right[1]  # sums of -phi'(u)
        square_left = above * (linear_left - left[1]) + left[2]
        square_right = below * (linear_right + right[1]) + right[2]
        slope = linear_left + linear_right
        return one + (square_right - square_left) / 2, slope, self._pull(v, x, d, low, middle, high)

    @staticmethod
    def _pull(v: Array, x: Array, d: Array, low: Index, middle: Index, high: Index) -> Array:
        """Return the sum of ``-phi'(x_i - d_j)`` over the positives, for each negative in the window.

        A positive adds ``1 + x_i - d_j`` to its left range and ``1 - x_i + d_j`` to its right range. Both are linear in
        ``d_j``, so two cumulative sums over the ends of the ranges are sufficient.
        """
        ends = np.concatenate([low, middle, high])

        def running(*steps: Array) -> Array:
            steps_at = np.bincount(ends, np.concatenate(steps), d.size + 1).astype(np.float64, copy=False)
            return np.cumsum(steps_at)[:-1]

        along = v * x
        constant = running(v + along, -2 * along, along - v)
        return constant + d * running(-v, 2 * v, -v)


# Bounded surrogates for threshold-based measures: the measure itself, evaluated with a smooth step.


# Positives, evenly spread, near which the best soft threshold is tried, and candidates that are refined: local minima
# of nearly equal value can only be compared after that.
_MOST_PLACES, _CLOSE_LOOKS = 500, 4


@dataclass(frozen=True)
class SoftMeasure(Loss):
    r"""One minus a measure of true and false positives at a soft threshold; bounded and not convex.

    .. math:: \min_\theta \; 1 - \mathrm{measure}(tp, fp), \qquad
              tp = \sum_{i:\, y_i = 1} \sigma(u_i), \quad fp = \sum_{i:\, y_i = 0} \sigma(u_i), \quad
              u_i = \frac{s_i - \theta}{\text{width}/2}

    with the piecewise quadratic step :math:`\sigma(u) = 0` for :math:`u \le -1`, :math:`(1+u)^2/2` up to 0,
    :math:`1 - (1-u)^2/2` up to 1, and 1 beyond. As ``width`` tends to 0, the loss tends to the error of the best
    threshold, unless scores are tied. The loss is minimized over the threshold, so it is invariant to a shift of the
    scores.

    Parameters
    ----------
    base : FBeta or GMean
        The measure, with its derivatives.
    width : float, default=1.0
        Length of the step in the scores.

    Notes
    -----
    The best threshold lies within half a width of a positive: elsewhere, raising the threshold removes negatives only.
    The search evaluates thresholds near the positives (at most 500, evenly spread) by sorting and prefix sums, and
    refines the few best candidates. The cost is O(N log N).

    Examples
    --------
    >>> from rocmax.losses import FBeta, SoftMeasure
    >>> bound = SoftMeasure(FBeta(), width=0.5).bind([1, 0, 1, 0])
    >>> round(bound.value_and_gradient([2.0, 1.5, 0.0, 0.0])[0], 4)
    0.3333
    >>> round(bound.threshold, 2)
    1.75
    """

    base: FBeta | GMean
    width: float = 1.0

    def __post_init__(self) -> None:
        _check_width(self.width)
        if not isinstance(self.base, FBeta | GMean):
            raise ValueError(f"base must be a measure with derivatives, FBeta or GMean; got {self.base!r}")

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundSoftMeasure:
        """Bind the loss to labels and weights."""
        return BoundSoftMeasure(self, y, sample_weight)


@dataclass(frozen=True)
class SoftPrecision(Loss):
    r"""One minus the precision among the ``k`` highest scores, at a soft threshold.

    .. math:: 1 - \frac1k \sum_{i:\, y_i = 1} \sigma(u_i), \qquad \theta \text{ such that } \sum_i \sigma(u_i) = k

    with the step function of :class:`SoftMeasure`. The loss is bounded and not convex.

    Parameters
    ----------
    k : int, float or None
        Number of rows as an int, or fraction of all rows, above 0 and at most 1, as a float. None takes the number of
        positives, which gives the break-even point.
    width : float, default=1.0
        Length of the step in the scores.

    Examples
    --------
    >>> from rocmax.losses import SoftPrecision
    >>> SoftPrecision(k=1, width=0.1).bind([1, 0, 1, 0]).value_and_gradient([1.5, 2.0, 0.0, 0.0])[0]
    1.0
    """

    k: float | None
    width: float = 1.0

    def __post_init__(self) -> None:
        _check_width(self.width)
        if self.k is not None:
            check_top(self.k)

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundSoftPrecision:
        """Bind the loss to labels and weights."""
        return BoundSoftPrecision(self, y, sample_weight)


class BoundSoft(BoundLoss):
    """Measure at a soft threshold, bound to labels; ``threshold`` is that of the last call."""

    convex = False

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None, width: float) -> None:
        super().__init__(y, sample_weight)
        self.half = width / 2
        self.threshold = 0.0

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient; the derivative with respect to the threshold is zero and does not contribute."""
        s = self._checked(scores)
        positives, negatives = s[self.positive], s[self.negative]
        self.threshold = self._find(positives, negatives)
        sides = [
            (step(u := (part - self.threshold) / self.half), np.maximum(1.0 - np.abs(u), 0.0) / self.half)
            for part in (positives, negatives)
        ]
        (above_p, slope_p), (above_n, slope_n) = sides
        weight_n = self.weight[self.negative]
        slope_p, slope_n = self.positive_weight * slope_p, weight_n * slope_n
        value, of_positives, of_negatives = self._error(
            float(self.positive_weight @ above_p), float(weight_n @ above_n), float(slope_p.sum()), float(slope_n.sum())
        )
        return value, scatter(
            self.n_samples, self.positive, of_positives * slope_p, self.negative, of_negatives * slope_n
        )

    @abstractmethod
    def _find(self, positives: Array, negatives: Array) -> float:
        """Return the threshold for the scores of both classes."""

    @abstractmethod
    def _error(self, tp: float, fp: float, slope_p: float, slope_n: float) -> tuple[float, float, float]:
        """Return the error of a soft table and its derivatives with respect to the share of a positive and a negative.

        The slopes are the rates at which the entries of the table decrease with the threshold.
        """


class BoundSoftMeasure(BoundSoft):
    """:class:`SoftMeasure` bound to labels."""

    def __init__(self, loss: SoftMeasure, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        super().__init__(y, sample_weight, loss.width)
        self._base = loss.base

    def _error(self, tp: float, fp: float, slope_p: float, slope_n: float) -> tuple[float, float, float]:
        by_tp, by_fp = self._base.slopes(tp, fp, self.m, self.n)
        return float(1.0 - self._base.measure(np.asarray(tp), np.asarray(fp), self.m, self.n)), -by_tp, -by_fp

    def _find(self, positives: Array, negatives: Array) -> float:
        """Return the best threshold: a coarse search near the positives, then a refinement of the best candidates."""
        order = np.argsort(positives)
        spread = np.unique(np.linspace(0, order.size - 1, _MOST_PLACES).astype(np.intp))
        origin = positives[order[-1]]
        placed = (positives - origin) / self.half, (negatives - origin) / self.half
        if np.ptp(np.concatenate(placed)) >= 4e3:
            placed = without_gaps(*placed, 4.0)
        classes = [Shares(placed[0], self.positive_weight), Shares(placed[1], self.weight[self.negative])]
        # Near a positive, at steps of a quarter of the width.
        offsets = np.array([-1.0, -0.5, 0.0, 0.5])
        rows, offset = np.repeat(order[spread], offsets.size), np.tile(offsets, spread.size)
        near = placed[0][rows]
        # Among candidates that are equal up to rounding error, the highest threshold is chosen.
        error = np.round(self._errors(classes, near + offset), 12)
        kept = np.lexsort((-(near + offset), error))[:_CLOSE_LOOKS]
        # Each of three rounds on a grid makes the bracket a sixth as long; a search for a zero follows.
        near, offset, reach, points = near[kept], offset[kept], 0.5, np.linspace(-1.0, 1.0, 13)
        for _ in range(3):
            tried = offset[:, None] + reach * points
            error = self._errors(classes, near[:, None] + tried)
            best = np.argmin(error, axis=1)[:, None]
            offset, error = (np.take_along_axis(values, best, axis=1)[:, 0] for values in (tried, error))
            reach *= points[1] - points[0]
        k = int(np.argmin(np.round(error, 14)))
        middle = float(positives[rows[kept[k]]] + self.half * offset[k])
        return self._polished(positives, negatives, middle, self.half * reach)

    def _polished(self, positives: Array, negatives: Array, middle: float, reach: float) -> float:
        """Return the zero of the derivative with respect to the threshold, within ``reach`` of ``middle``."""
        sides = []
        for scores, weight in ((positives, self.positive_weight), (negatives, self.weight[self.negative])):
            u = (scores - middle) / self.half
            near = np.abs(u) < 1.0 + reach / self.half
            sides.append((u[near], weight[near], float(weight[u >= 1.0 + reach / self.half].sum())))

        def rise(shift: float) -> float:
            (tp, fp), (slope_p, slope_n) = zip(*(held(*side, shift / self.half) for side in sides), strict=True)
            by_tp, by_fp = self._base.slopes(tp, fp, self.m, self.n)
            result: float = by_tp * slope_p + by_fp * slope_n
            return result

        if rise(-reach) * rise(reach) >= 0:
            return middle
        return middle + float(brentq(rise, -reach, reach, xtol=1e-15 * self.half, rtol=1e-15))

    def _errors(self, classes: list[Shares], thresholds: Array) -> Array:
        tp, fp = (part.above(thresholds) for part in classes)
        return 1.0 - self._base.measure(tp, fp, self.m, self.n)


class BoundSoftPrecision(BoundSoft):
    """:class:`SoftPrecision` bound to labels; ``k`` is the total weight of the top rows."""

    def __init__(self, loss: SoftPrecision, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        super().__init__(y, sample_weight, loss.width)
        self.k = self.m if loss.k is None else top_weight(loss.k, self.m + self.n)
        self._all = np.concatenate([self.positive_weight, self.weight[self.negative]])

    def _error(self, tp: float, fp: float, slope_p: float, slope_n: float) -> tuple[float, float, float]:
        # Increasing a score also raises the threshold, by the row's share of the weight on the step.
        share = slope_p / (slope_p + slope_n) if slope_p + slope_n > 0 else 0.0
        return 1.0 - tp / self.k, (share - 1.0) / self.k, share / self.k

    def _find(self, positives: Array, negatives: Array) -> float:
        """Return the threshold above which the soft weight is ``k``, by bisection."""
        scores = np.concatenate([positives, negatives])
        order = np.argsort(-scores)
        last = int(np.searchsorted(np.cumsum(self._all[order]), self.k * (1 - 1e-12)))
        # The row at which the cumulative weight reaches ``k`` is on the step or next to it.
        middle = scores[order[min(last, order.size - 1)]]
        u = (scores - middle) / self.half
        sure = float(self._all[u >= 2.0].sum())
        near = np.abs(u) < 2.0
        u, weight = u[near], self._all[near]
        low, high = -1.0, 1.0
        for _ in range(53):
            theta = (low + high) / 2
            low, high = (theta, high) if held(u, weight, sure, theta)[0] > self.k else (low, theta)
        return float(middle + self.half * (low + high) / 2)


class Shares:
    """Soft weight of the rows of one class above a threshold, with scores in units of half the step width."""

    def __init__(self, place: Array, weight: Array) -> None:
        order = np.argsort(place)
        self._place, weight = place[order], weight[order]
        moments = (weight, weight * self._place, weight * self._place**2)
        self._sums = [prefix(values) for values in moments]

    def above(self, threshold: Array) -> Array:
        """Return the soft weight above each threshold."""
        low, middle, high = (np.searchsorted(self._place, threshold + side, side="left") for side in (-1.0, 0.0, 1.0))
        # (1 + u)^2 / 2 from low to middle, 1 - (1 - u)^2 / 2 from there to high, 1 above.
        rising = self._squares(low, middle, threshold - 1.0)
        falling = self._squares(middle, high, threshold + 1.0)
        total = self._sums[0]
        result: Array = np.maximum(0.5 * (rising - falling) + total[-1] - total[middle], 0.0)
        return result

    def _squares(self, first: Index, last: Index, center: Array) -> Array:
        """Return the sum of ``weight * (place - center)^2`` over ranges of rows."""
        zero, one, two = (sums[last] - sums[first] for sums in self._sums)
        return two - 2.0 * center * one + center**2 * zero


def held(u: Array, weight: Array, sure: float, shift: float) -> tuple[float, float]:
    """Return the soft weight above a threshold and its rate of decrease, given the rows near it."""
    moved = u - shift
    return sure + float(weight @ step(moved)), float(weight @ np.maximum(1.0 - np.abs(moved), 0.0))


def step(u: Array) -> Array:
    """Return the smooth step from 0 at -1 to 1 at 1."""
    u = np.clip(u, -1.0, 1.0)
    return 0.5 + u - 0.5 * u * np.abs(u)


def _check_width(width: float) -> None:
    if not (0 < width < np.inf):
        raise ValueError(f"width must be a finite number > 0; got {width!r}")
