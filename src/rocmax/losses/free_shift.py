"""Losses for measures of the contingency table at the best shift of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax.losses._cumulative import CumulativeScores
from rocmax.losses._worst_labelling import Table
from rocmax.losses.base import BoundLoss, Loss
from rocmax.losses.contingency import BoundContingency, ContingencyLoss
from rocmax.losses.growth import GrownCuts, Growth, grow_labels

# Maximum number of tables evaluated in one call, and number of tables kept for the next call.
_MOST_TABLES = 200
_KEPT = 60
# Tolerance for rounding error.
_SLACK = 1e-12


@dataclass(frozen=True)
class FreeShift(Loss):
    r"""A contingency loss at its best shift: :math:`\min_b R(s + b)`.

    This is the loss of a linear model with an unpenalised intercept. It is convex and invariant to a shift of the
    scores, so solvers do not need an intercept.

    Parameters
    ----------
    base : ContingencyLoss
        The loss :math:`R`.

    Examples
    --------
    >>> from rocmax.losses import FBeta, FreeShift
    >>> FreeShift(FBeta()).bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.25
    """

    base: ContingencyLoss
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = False

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundFreeShift:
        """Bind the loss to labels and weights."""
        return BoundFreeShift(self.base.bind(y, sample_weight))

    def with_intercept(self) -> ContingencyLoss:
        """Return the loss for scores that include the shift."""
        return self.base

    def sum_scale(self, m: float, n: float) -> float:
        """Return the divisor of the base loss."""
        return self.base.sum_scale(m, n)

    def grow_cuts(self, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts:
        """Combine the labellings of the cuts with the best labellings of the new rows."""
        added = None
        if 0 < np.count_nonzero(growth.positive) < growth.positive.size:
            bound = self.bind(growth.positive)
            added = bound.value_and_gradient(growth.scores)[1], bound.tables()
        return grow_labels(self.base.error, tables, growth, added)


class BoundFreeShift(BoundLoss):
    """:class:`FreeShift` bound to labels.

    The subgradient is a mixture of the two labellings that are optimal on either side of the best shift, so the
    coefficients sum to zero.

    Attributes
    ----------
    shift : float
        The best shift of the last call.
    """

    def __init__(self, base: BoundContingency) -> None:
        self._base = base
        self._share_sample(base)
        self.shift = 0.0
        self._mixture = np.empty((0, 3))
        self._tables = [(0.0, 0.0), (self.m, self.n)]

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return the value at the best shift and a subgradient."""
        s = self._checked(scores)
        ladders = self._base.ladders(s)
        low, high, self.shift = self._bracket(*ladders)
        down, up = (t.tp + t.fp - self.m for t in (low, high))
        share = up / (up - down) if up > down else 1.0
        self._mixture = np.array([(share, low.tp, low.fp), (1.0 - share, high.tp, high.fp)])
        gradient = share * self._base.coefficients(s, *ladders, low)
        if share < 1.0:
            gradient += (1.0 - share) * self._base.coefficients(s, *ladders, high)
        return low.value, gradient

    def tables(self) -> Array:
        """Return the two tables of the last call with their shares; on average they label ``m`` rows positive."""
        return self._mixture

    def _bracket(self, positives: CumulativeScores, negatives: CumulativeScores) -> tuple[Table, Table, float]:
        """Return the best shift and two optimal tables there, one that labels fewer rows than ``m`` and one more.

        Each table is a linear function of the shift, and their maximum is convex. Each iteration searches for the most
        violated table at the minimum of the maximum of the known lines, until no table is above it. Scores change
        little between calls, so the tables of previous calls are kept.
        """
        tp, fp = np.array(self._tables).T
        slope = (tp + fp - self.m) / self.m
        gain = positives.total_at(tp) - positives.total[-1] + negatives.total_at(fp)
        value = self._base.error(tp, fp) + gain / self.m
        for _ in range(_MOST_TABLES):
            low, high = _lowest_crossing(value, slope)
            shift = float((value[low] - value[high]) / (slope[high] - slope[low]))
            level = float(value[low] + slope[low] * shift)
            table = self._base.best(positives, negatives, shift)
            # If the scores are so large that rounding error exceeds the tolerance, a known table is found again.
            known = ((tp == table.tp) & (fp == table.fp)).any()
            if known or table.value <= level + 1e-13 * (1.0 + abs(level)):
                break
            rise = (table.tp + table.fp - self.m) / self.m
            if abs(rise) <= _SLACK:
                return table, table, shift
            tp, fp = np.append(tp, table.tp), np.append(fp, table.fp)
            value, slope = np.append(value, table.value - rise * shift), np.append(slope, rise)
        # The first two tables, the empty and the full one, are always kept.
        self._tables = [*self._tables[:2], *zip(tp[2:][-_KEPT:], fp[2:][-_KEPT:], strict=True)]
        return Table(level, tp[low], fp[low]), Table(level, tp[high], fp[high]), shift


def _lowest_crossing(value: Array, slope: Array) -> tuple[int, int]:
    """Return a decreasing and an increasing line that cross at the minimum of the maximum of all lines."""
    low, high = 0, 1
    for _ in range(value.size):
        shift = (value[low] - value[high]) / (slope[high] - slope[low])
        top = int(np.argmax(value + slope * shift))
        if top in (low, high) or value[top] + slope[top] * shift <= value[low] + slope[low] * shift:
            break
        low, high = (top, high) if slope[top] < 0 else (low, top)
    return low, high
