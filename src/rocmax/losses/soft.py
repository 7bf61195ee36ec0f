"""Bounded surrogates for threshold-based measures: the measure itself, evaluated with a smooth step."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from rocmax._typing import Array, Index
from rocmax._window import check_top, top_weight
from rocmax.losses._sorted import prefix
from rocmax.losses.base import BoundLoss, Loss
from rocmax.losses.ramp import without_gaps

# Offsets from a positive at which the threshold is tried, in units of half the width.
_OFFSETS = np.array([-1.0, -0.5, 0.0, 0.5])
# Maximum number of positives near which the best threshold is searched.
_MOST_PLACES = 500
# Number of candidates that are refined: local minima of nearly equal value can only be compared after refinement.
_CLOSE_LOOKS = 4
# Grid points in a bracket, and number of refinement rounds. Each round reduces the bracket to a sixth.
_POINTS = np.linspace(-1.0, 1.0, 13)
_ROUNDS = 3


class SmoothMeasure(Protocol):
    """Measure of true and false positives with derivatives, such as ``FBeta`` and ``GMean``."""

    def measure(self, tp: Array, fp: Array, m: float, n: float) -> Array:
        """Return the measure."""

    def slopes(self, tp: float, fp: float, m: float, n: float) -> tuple[float, float]:
        """Return the derivatives with respect to ``tp`` and ``fp``."""


@dataclass(frozen=True)
class SoftMeasure(Loss):
    r"""One minus a measure of true and false positives at a soft threshold; bounded and not convex.

    .. math:: \min_\theta \; 1 - \mathrm{measure}(tp, fp), \qquad
              tp = \sum_{i:\, y_i = 1} \sigma(u_i), \quad fp = \sum_{i:\, y_i = 0} \sigma(u_i), \quad
              u_i = \frac{s_i - \theta}{\text{width}/2}

    with the piecewise quadratic step :math:`\sigma(u) = 0` for :math:`u \le -1`, :math:`(1+u)^2/2` up to 0,
    :math:`1 - (1-u)^2/2` up to 1, and 1 beyond. As ``width`` tends to 0, the loss tends to the error of the best
    threshold, unless scores are tied. The loss is minimised over the threshold, so it is invariant to a shift of the
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

    base: SmoothMeasure
    width: float = 1.0

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_width(self.width)
        if not hasattr(self.base, "slopes"):
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

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_width(self.width)
        if self.k is not None:
            check_top(self.k)

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundSoftPrecision:
        """Bind the loss to labels and weights."""
        return BoundSoftPrecision(self, y, sample_weight)


class BoundSoft(BoundLoss):
    """Measure at a soft threshold, bound to labels.

    Attributes
    ----------
    threshold : float
        The threshold of the last call.
    """

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
        return value, self.scatter(self.positive, of_positives * slope_p, self.negative, of_negatives * slope_n)

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
        placed = without_gaps((positives - origin) / self.half, (negatives - origin) / self.half, 4.0)
        classes = [Shares(placed[0], self.positive_weight), Shares(placed[1], self.weight[self.negative])]
        rows, offset = np.repeat(order[spread], _OFFSETS.size), np.tile(_OFFSETS, spread.size)
        near = placed[0][rows]
        # Among candidates that are equal up to rounding error, the highest threshold is chosen.
        error = np.round(self._errors(classes, near + offset), 12)
        kept = np.lexsort((-(near + offset), error))[:_CLOSE_LOOKS]
        near, offset, reach = near[kept], offset[kept], 0.5
        for _ in range(_ROUNDS):
            tried = offset[:, None] + reach * _POINTS
            error = self._errors(classes, near[:, None] + tried)
            best = np.argmin(error, axis=1)[:, None]
            offset, error = (np.take_along_axis(values, best, axis=1)[:, 0] for values in (tried, error))
            reach *= _POINTS[1] - _POINTS[0]
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
    """:class:`SoftPrecision` bound to labels.

    Attributes
    ----------
    k : float
        Total weight of the top rows.
    """

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
    """Soft weight of the rows of one class above a threshold, with scores in units of half the step width.

    Parameters
    ----------
    place : ndarray
        Scaled scores of the rows.
    weight : ndarray
        Weights of the rows.
    """

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

    def _squares(self, first: Index, last: Index, centre: Array) -> Array:
        """Return the sum of ``weight * (place - centre)^2`` over ranges of rows."""
        zero, one, two = (sums[last] - sums[first] for sums in self._sums)
        return two - 2.0 * centre * one + centre**2 * zero


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
