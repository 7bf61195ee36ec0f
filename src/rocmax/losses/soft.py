"""Bounded surrogates of measures of decisions: the measure itself, with a smooth step in place of the threshold."""

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

# Where the best threshold may lie next to a positive, in halves of a width.
_OFFSETS = np.array([-1.0, -0.5, 0.0, 0.5])
# Positives next to which the best threshold is looked for, at most.
_MOST_PLACES = 500
# Places that are looked at closely: basins of nearly equal depth are told apart by their bottoms only.
_CLOSE_LOOKS = 4
# Points along a bracket, and rounds of narrowing it: each takes a sixth.
_POINTS = np.linspace(-1.0, 1.0, 13)
_ROUNDS = 3


class SmoothMeasure(Protocol):
    """A measure of true and false positives, and its derivatives: ``FBeta`` or ``GMean``."""

    def measure(self, tp: Array, fp: Array, m: float, n: float) -> Array:
        """Return the measure."""

    def slopes(self, tp: float, fp: float, m: float, n: float) -> tuple[float, float]:
        """Return its derivatives in ``tp`` and ``fp``."""


@dataclass(frozen=True)
class SoftMeasure(Loss):
    r"""One minus a measure of true and false positives, with a smooth step for a threshold: bounded, not convex.

    .. math:: \min_\theta \; 1 - \mathrm{measure}(tp, fp), \qquad
              tp = \sum_{i:\, y_i = 1} \sigma(u_i), \quad fp = \sum_{i:\, y_i = 0} \sigma(u_i), \quad
              u_i = \frac{s_i - \theta}{\text{width}/2}

    with the piecewise quadratic step :math:`\sigma(u) = 0` for :math:`u \le -1`, :math:`(1+u)^2/2` up to 0,
    :math:`1 - (1-u)^2/2` up to 1, and 1 beyond. As ``width`` falls to 0 it becomes the error of the best threshold
    (that of a tie of all rows apart). The threshold is eliminated, so a shift of the scores changes nothing.

    Parameters
    ----------
    base : FBeta or GMean
        What knows the measure and its derivatives.
    width : float, default=1.0
        Length of the step in the scores.

    Notes
    -----
    The best threshold lies within half a width of a positive: elsewhere, a higher one loses negatives only. So it is
    looked for next to the positives (five hundred of them at most, evenly spread), by sorting and prefix sums, and
    then closely in the few best places. O(N log N).

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
            raise ValueError(f"SoftMeasure needs a measure with derivatives, FBeta or GMean; got {self.base!r}")

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundSoftMeasure:
        """Attach labels and weights."""
        return BoundSoftMeasure(self, y, sample_weight)


@dataclass(frozen=True)
class SoftPrecision(Loss):
    r"""One minus the precision among the ``k`` highest scores, with a smooth step for a threshold.

    .. math:: 1 - \frac1k \sum_{i:\, y_i = 1} \sigma(u_i), \qquad \theta \text{ such that } \sum_i \sigma(u_i) = k

    with the step of :class:`SoftMeasure`: bounded, not convex.

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
        """Attach labels and weights."""
        return BoundSoftPrecision(self, y, sample_weight)


class BoundSoft(BoundLoss):
    """A measure at a soft threshold, with its labels.

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
        """Value at the threshold, and the gradient; the threshold's own move adds nothing to it."""
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
        return value, self._scatter(self.positive, of_positives * slope_p, self.negative, of_negatives * slope_n)

    @abstractmethod
    def _find(self, positives: Array, negatives: Array) -> float:
        """Return the threshold for the scores of both classes."""

    @abstractmethod
    def _error(self, tp: float, fp: float, slope_p: float, slope_n: float) -> tuple[float, float, float]:
        """Return the error of a soft table, and its derivatives in a positive's and a negative's share.

        The slopes say how fast the table falls with the threshold.
        """


class BoundSoftMeasure(BoundSoft):
    """:class:`SoftMeasure` with its labels."""

    def __init__(self, loss: SoftMeasure, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        super().__init__(y, sample_weight, loss.width)
        self._base = loss.base

    def _error(self, tp: float, fp: float, slope_p: float, slope_n: float) -> tuple[float, float, float]:
        by_tp, by_fp = self._base.slopes(tp, fp, self.m, self.n)
        return float(1.0 - self._base.measure(np.asarray(tp), np.asarray(fp), self.m, self.n)), -by_tp, -by_fp

    def _find(self, positives: Array, negatives: Array) -> float:
        """Return the best threshold: near all positives first, then closely in the best places."""
        order = np.argsort(positives)
        spread = np.unique(np.linspace(0, order.size - 1, _MOST_PLACES).astype(np.intp))
        origin = positives[order[-1]]
        placed = without_gaps((positives - origin) / self.half, (negatives - origin) / self.half, 4.0)
        classes = [Shares(placed[0], self.positive_weight), Shares(placed[1], self.weight[self.negative])]
        rows, offset = np.repeat(order[spread], _OFFSETS.size), np.tile(_OFFSETS, spread.size)
        near = placed[0][rows]
        # Rounding must not choose between places that are equally good: the highest one is taken.
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
        """Return where the derivative in the threshold vanishes, within a reach of the middle."""
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
    """:class:`SoftPrecision` with its labels.

    Attributes
    ----------
    k : float
        Weight of the rows at the top.
    """

    def __init__(self, loss: SoftPrecision, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        super().__init__(y, sample_weight, loss.width)
        self.k = self.m if loss.k is None else top_weight(loss.k, self.m + self.n)
        self._all = np.concatenate([self.positive_weight, self.weight[self.negative]])

    def _error(self, tp: float, fp: float, slope_p: float, slope_n: float) -> tuple[float, float, float]:
        # A row that rises lifts the threshold, too, by its share of the rows on the step.
        share = slope_p / (slope_p + slope_n) if slope_p + slope_n > 0 else 0.0
        return 1.0 - tp / self.k, (share - 1.0) / self.k, share / self.k

    def _find(self, positives: Array, negatives: Array) -> float:
        """Return the threshold above which the shares of the rows weigh ``k``, by bisection."""
        scores = np.concatenate([positives, negatives])
        order = np.argsort(-scores)
        last = int(np.searchsorted(np.cumsum(self._all[order]), self.k * (1 - 1e-12)))
        # The row that completes the top is on the step, or just beside it.
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
    """Rows of one class on the axis of the scores, in units of half a step: how much of them is above a threshold.

    Parameters
    ----------
    place : ndarray
        Where the rows are.
    weight : ndarray
        Their weights.
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
        """Sum of ``weight * (place - centre)^2`` over ranges of rows."""
        zero, one, two = (sums[last] - sums[first] for sums in self._sums)
        return two - 2.0 * centre * one + centre**2 * zero


def held(u: Array, weight: Array, sure: float, shift: float) -> tuple[float, float]:
    """Return the soft weight above a threshold and how fast it falls, for rows near it and others surely above."""
    moved = u - shift
    return sure + float(weight @ step(moved)), float(weight @ np.maximum(1.0 - np.abs(moved), 0.0))


def step(u: Array) -> Array:
    """Return the smooth step from 0 at -1 to 1 at 1."""
    u = np.clip(u, -1.0, 1.0)
    return 0.5 + u - 0.5 * u * np.abs(u)


def _check_width(width: float) -> None:
    if not (0 < width < np.inf):
        raise ValueError(f"width needs a finite value > 0; got {width!r}")
