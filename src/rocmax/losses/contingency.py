"""Losses of decisions: any measure of true and false positives, precision at k, the break-even point.

For a table ``(tp, fp)`` only the ``tp`` highest-scored positives and the ``fp`` highest-scored negatives matter, so the
maximum over all labellings is a maximum over two positions. It is found by branch and bound: rectangles of positions,
each with an upper bound, are split until only the best table remains. All pairs of positions are enumerated only for
small samples, where this is fastest.

If the error is concave in ``fp``, the best ``fp`` for a given ``tp`` is found by bisection, and only intervals of
``tp`` are split. If it is also convex in ``tp``, as for F-beta, so is its maximum over ``fp``, which on an interval is
at most its chord; the sum of the labeled scores of the positives is concave, so the maximum of both is known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rocmax._rounding import DUST, top_weight
from rocmax._support import Array, Bools, Index, check_top
from rocmax.losses.base import BoundLoss, Evaluation, Loss
from rocmax.losses.ranks import FEW_PAIRS, CumulativeScores


@dataclass(frozen=True)
class SearchRules:
    """Numbers of the search; none of them changes its result."""

    # Parts into which a rectangle is split along each side. An interval is split into the square of this number, and
    # there are its cube at the beginning: the time of a step hardly depends on so few.
    parts: int = 8


RULES = SearchRules()


class Plane(NamedTuple):
    """Upper bound of the error on rectangles: ``level + tp_slope * (t - t1) + fp_slope * (f - f1)``."""

    level: Array
    tp_slope: Array
    fp_slope: Array


class TableCounts(NamedTuple):
    """Table with its value and the weights of the true and false positives."""

    value: float
    tp: float
    fp: float


def best_table(
    measure: BoundContingency, positives: CumulativeScores, negatives: CumulativeScores, shift: float = 0.0
) -> TableCounts:
    """Maximize ``error + (sum of the labeled scores - sum of the positives' scores) / m``.

    ``shift`` is added to all scores.
    """
    if (positives.size + 1) * (negatives.size + 1) <= FEW_PAIRS and not negatives.weighted:
        return _look_at_all(measure, positives, negatives, shift)
    search = _Search(measure, positives, negatives, shift)
    if measure.saddle:
        count = min(RULES.parts**3, positives.size)
        ends = search.split_intervals((np.arange(count + 1) * positives.size // count)[:, None])
        while ends.shape[1]:
            parts = np.arange(RULES.parts**2 + 1)[:, None]
            ends = search.split_intervals(ends[0] + parts * (ends[1] - ends[0]) // RULES.parts**2)
        return search.best
    cells = np.array([[0], [positives.size], [0], [negatives.size]])
    while cells.shape[1]:
        cells = search.refine(cells)
    return search.best


def _look_at_all(
    measure: BoundContingency, positives: CumulativeScores, negatives: CumulativeScores, shift: float
) -> TableCounts:
    m = positives.weight
    t, f = (ladder.position(np.arange(ladder.size + 1)) for ladder in (positives, negatives))
    gain_t = (positives.total - positives.total[-1] + shift * (t - m)) / m
    gain_f = (negatives.total + shift * f) / m
    value = measure.error(t[:, None], f[None, :])
    value += gain_t[:, None]
    value += gain_f
    i, j = divmod(int(value.argmax()), f.size)
    return TableCounts(float(value[i, j]), float(t[i]), float(f[j]))


class _Search:
    """State of a search: the sorted scores and the best table so far."""

    def __init__(
        self, measure: BoundContingency, positives: CumulativeScores, negatives: CumulativeScores, shift: float
    ) -> None:
        self._measure, self._positives, self._negatives, self._shift = measure, positives, negatives, shift
        self._m = positives.weight
        size = sum(ladder.weight * float(np.abs(ladder.falling[[0, -1]]).max()) for ladder in (positives, negatives))
        self._rounding = 4e-16 * (1.0 + size / self._m)
        self.best = TableCounts(-np.inf, 0.0, 0.0)

    def split_intervals(self, points: Index) -> Index:
        """Find the best ``fp`` at each point; return the intervals between points in a column that must be split.

        Points are numbers of positives, in ascending order in each column.
        """
        highest = self._best_over_fp(points.ravel()).reshape(points.shape)
        longer = np.nonzero(points[1:] - points[:-1] > 1)
        if not longer[0].size:
            return np.empty((2, 0), dtype=np.intp)
        ends = np.array([points[:-1][longer], points[1:][longer]])
        low, high = highest[:-1][longer], highest[1:][longer]
        t = self._positives.position(ends)
        slope = (high - low) / (t[1] - t[0])
        bound = low - slope * t[0] + self._along(self._positives, ends, slope)[1]
        bound -= (self._positives.total[-1] + self._shift * self._m) / self._m
        return ends[:, bound > self.best.value + self._rounding]

    def _best_over_fp(self, i: Index) -> Array:
        """Return the maximum over ``fp`` of error plus gain of the negatives for numbers of positives, by bisection."""
        t, size = self._positives.position(i), self._negatives.size
        low = np.zeros(i.size, dtype=np.intp)
        # From the largest power of two: add each step after which the sum still increases.
        for step in 1 << np.arange(size.bit_length())[::-1]:
            last = np.minimum(low + (step - 1), size - 1)
            f1, f2 = self._negatives.position(last), self._negatives.position(last + 1)
            gain = (self._negatives.falling[last] + self._shift) * ((f2 - f1) / self._m)
            better = self._measure.rise(t, f1, f2) + gain > 0
            better &= low + step <= size
            low += step * better
        f = self._negatives.position(low)
        highest = self._compare(i, f, self._negatives.total[low] + self._shift * f)
        if self._negatives.weighted:
            for j in (low - 1, low):
                inside = np.flatnonzero((j >= 0) & (j < size))
                for part in self._look_inside(i[inside], j[inside]):
                    highest[inside] = np.maximum(highest[inside], part)
        return highest

    def refine(self, cells: Index) -> Index:
        """Evaluate the cells, drop those that cannot contain a better table, and split the rest."""
        t = self._positives.position(cells[:2])
        f = self._negatives.position(cells[2:])
        plane = self._measure.plane(*t, *f)
        i, gain_t = self._along(self._positives, cells[:2], plane.tp_slope)
        j, gain_f = self._along(self._negatives, cells[2:], plane.fp_slope)
        bound = plane.level + gain_t - plane.tp_slope * t[0] + gain_f - plane.fp_slope * f[0]
        bound -= (self._positives.total[-1] + self._shift * self._m) / self._m
        # The plane is close to the error, so its maximizer is a good candidate.
        self._consider(i, j)
        cells = cells[:, bound > self.best.value + self._rounding]
        final = (cells[1] - cells[0] <= 1) & (cells[3] - cells[2] <= 1)
        for i in cells[:2, final]:
            self._consider(i, cells[2, final])
            self._consider(i, cells[3, final])
            before_end = cells[2, final] < self._negatives.size
            self._look_inside(i[before_end], cells[2, final][before_end])
        return _split(cells[:, ~final])

    def _along(self, ladder: CumulativeScores, ends: Index, slope: Array) -> tuple[Index, Array]:
        """Maximize gain plus slope times position between two boundaries; the sum is concave in the position."""
        i = np.clip(ladder.count_above(-slope * self._m - self._shift), *ends)
        position = ladder.position(i)
        return i, (ladder.total[i] + self._shift * position) / self._m + slope * position

    def _consider(self, i: Index, j: Index) -> None:
        """Compare the best table with those at the given boundaries."""
        f = self._negatives.position(j)
        self._compare(i, f, self._negatives.total[j] + self._shift * f)

    def _look_inside(self, i: Index, j: Index) -> list[Array]:
        """Compare the best table with those that include a part of the negative after boundary ``j``.

        The result is that of :meth:`_compare` for each of the candidates.
        """
        f1, f2 = self._negatives.position(j), self._negatives.position(j + 1)
        score = self._negatives.falling[j] + self._shift
        return [
            self._compare(i, f, self._negatives.total[j] + self._shift * f1 + (f - f1) * score)
            for f in self._measure.inside(self._positives.position(i), f1, f2, score)
        ]

    def _compare(self, i: Index, f: Array, gain_f: Array) -> Array:
        """Compare the best table with some others; return their values without the gain of the positives."""
        t = self._positives.position(i)
        part = self._measure.error(t, f) + gain_f / self._m
        if i.size == 0:
            return part
        gain_t = self._positives.total[i] - self._positives.total[-1] + self._shift * (t - self._m)
        value = part + gain_t / self._m
        k = int(value.argmax())
        if value[k] > self.best.value:
            self.best = TableCounts(float(value[k]), float(t[k]), float(f[k]))
        return part


def _split(cells: Index) -> Index:
    """Split each cell along both sides; adjacent cells share a boundary, so the parts cover the cell."""
    parts = np.arange(RULES.parts + 1)[:, None]
    t, f = (low + parts * (high - low) // RULES.parts for low, high in (cells[:2], cells[2:]))
    # If a side is shorter than the number of parts, empty parts are dropped; a side of length zero keeps one part.
    t_kept, f_kept = ((np.diff(e, axis=0) > 0) | ((e[-1] == e[0]) & (parts[1:] == 1)) for e in (t, f))
    kept = t_kept[:, None] & f_kept[None]
    sides = (t[:-1, None], t[1:, None], f[None, :-1], f[None, 1:])
    return np.array([np.broadcast_to(side, kept.shape)[kept] for side in sides])


# Losses for measures of the contingency table: F-beta, the G-mean and user-defined functions.


class ContingencyLoss(Loss):
    r"""Upper bound of one minus a measure of true and false positives.

    .. math:: \max_{\bar y \in \{0,1\}^N} \; 1 - \mathrm{measure}(tp, fp)
              + \frac1m \sum_i (\bar y_i - y_i) s_i

    with :math:`tp` and :math:`fp` the numbers of positives and negatives that :math:`\bar y` labels positive. The
    maximum includes the labels :math:`\bar y_i = 1[s_i > 0]`, so the loss is an upper bound of the error at the
    threshold 0. It depends on a shift of the scores; :class:`~rocmax.losses.FreeShift` minimizes over the shift.

    A subclass defines :meth:`measure`, which must not decrease with ``tp`` and must not increase with ``fp``. If more
    is known about its shape, :meth:`plane` makes the search faster.

    Integer weights are numbers of copies, and copies may get different labels. Rows with other weights may be labeled
    positive in any fraction.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    """

    shift_invariant: ClassVar[bool] = False
    # Whether rows can be labeled in part: the error is largest at the ends of a row, or where `inside` returns.
    knows_parts: ClassVar[bool] = False
    # Whether the error is convex in the true positives and concave in the false positives.
    saddle: ClassVar[bool] = False

    @abstractmethod
    def measure(self, tp: Array, fp: Array, m: float, n: float) -> Array:
        """Return the measure, at most 1, of ``tp`` of ``m`` positives and ``fp`` of ``n`` negatives."""

    def error(self, tp: Array, fp: Array, m: float, n: float) -> Array:
        """Return one minus the measure."""
        return 1.0 - self.measure(tp, fp, m, n)

    def plane(self, t1: Array, t2: Array, f1: Array, f2: Array, m: float, n: float) -> Plane:
        """Return a plane above one minus the measure on rectangles of tables; by default a bound from monotonicity."""
        level = 1.0 - self.measure(t1, f2, m, n)
        return Plane(level, np.zeros_like(level), np.zeros_like(level))

    def rise(self, tp: Array, f1: Array, f2: Array, m: float) -> Array:
        """Return the error at ``f2`` minus that at ``f1``, for a measure with ``saddle=True``."""
        raise TypeError(f"{type(self).__name__} does not implement the rise of the error")

    def inside(self, tp: Array, f1: Array, f2: Array, slope: Array, m: float) -> Array | None:
        """Return the maximizer in ``[f1, f2]`` of one minus the measure plus ``slope * fp``; None if it is an end."""
        return None

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundContingency:
        """Bind the loss to labels and weights."""
        return BoundContingency(self, y, sample_weight)

    def sum_scale(self, m: float, n: float) -> float:
        """Return the weight of the positives."""
        return m


class BoundContingency(BoundLoss):
    """:class:`ContingencyLoss` bound to labels."""

    def __init__(self, loss: ContingencyLoss, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        super().__init__(y, sample_weight)
        self._loss = loss
        self.saddle = loss.saddle
        self._plain = sample_weight is None or bool((self.weight[self.weight > 0] == 1.0).all())
        self._is_positive = ~self.is_negative if sample_weight is None else (self.weight > 0) & ~self.is_negative
        self._whole = self._plain or not np.any(self.weight % 1.0)
        if not loss.knows_parts:
            if not self._plain:
                self._check_copies()
            self._check_monotone()

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and subgradient, from the most violated labeling."""
        s = self._checked(scores)
        ladders = self.ladders(s)
        table = best_table(self, *ladders)
        return table.value, self.coefficients(s, *ladders, table)

    def ladders(self, scores: Array) -> tuple[CumulativeScores, CumulativeScores]:
        """Sort the scores of both classes."""
        return self._ladder(scores, self.positive), self._ladder(scores, self.negative)

    def _ladder(self, scores: Array, rows: Index) -> CumulativeScores:
        if self._plain:
            return CumulativeScores(scores[rows], None)
        if self._loss.knows_parts:
            return CumulativeScores(scores[rows], self.weight[rows])
        return CumulativeScores(scores[np.repeat(rows, self.weight[rows].astype(np.intp))], None)

    def coefficients(
        self, scores: Array, positives: CumulativeScores, negatives: CumulativeScores, table: TableCounts
    ) -> Array:
        """Return the subgradient of a table: the predicted minus the true positive labels, divided by ``m``."""
        unit = 1.0 / self.m
        fp_level, fp_part = negatives.cut(table.fp)
        tp_level, tp_part = positives.cut(table.tp)
        added = (scores >= fp_level) & self.is_negative
        lost = (scores < tp_level) & self._is_positive
        # Use 8-bit integers first: they take an eighth of the memory.
        gradient = np.multiply(added.view(np.int8) - lost.view(np.int8), unit)
        if fp_part < 1.0:
            gradient[(scores == fp_level) & self.is_negative] = fp_part * unit
        if tp_part < 1.0:
            gradient[(scores == tp_level) & self._is_positive] = (tp_part - 1.0) * unit
        if not self._plain:
            gradient *= self.weight
        result: Array = gradient
        return result

    def error(self, tp: Array, fp: Array) -> Array:
        """Return one minus the measure."""
        return self._loss.error(tp, fp, self.m, self.n)

    def plane(self, t1: Array, t2: Array, f1: Array, f2: Array) -> Plane:
        """Return a plane above the error on rectangles."""
        return self._loss.plane(t1, t2, f1, f2, self.m, self.n)

    def rise(self, tp: Array, f1: Array, f2: Array) -> Array:
        """Return the rise of the error between two numbers of false positives, see :meth:`ContingencyLoss.rise`."""
        return self._loss.rise(tp, f1, f2, self.m)

    def inside(self, tp: Array, f1: Array, f2: Array, score: Array) -> Sequence[Array]:
        """Return candidates between two boundaries of a negative; integers if the weights are integers."""
        best = None if self._plain else self._loss.inside(tp, f1, f2, score / self.m, self.m)
        if best is None:
            return ()
        return (np.floor(best), np.minimum(np.ceil(best), f2)) if self._whole else (best,)

    def _check_copies(self) -> None:
        name = type(self._loss).__name__
        if not self._whole:
            raise ValueError(
                f"sample_weight of {name} must be whole numbers, because the shape of its measure is unknown; got "
                f"weights such as {self.weight[self.weight % 1.0 > 0][0]:g}. FBeta and GMean accept any weights"
            )
        most = 50_000_000  # copies, which are made one by one
        if self.m + self.n > most:
            raise ValueError(f"the weights of {name} must sum to at most {most}; got {self.m + self.n:g}")

    def _check_monotone(self) -> None:
        """Raise ValueError if the measure is not finite, at most 1 and monotone on a grid; the search relies on it."""
        tp, fp = (np.linspace(0.0, weight, 33) for weight in (self.m, self.n))
        if self._whole:
            tp, fp = np.unique(np.rint(tp)), np.unique(np.rint(fp))
        error = np.broadcast_to(self.error(tp[:, None], fp[None, :]), (tp.size, fp.size))
        name = type(self._loss).__name__
        odd = error[~np.isfinite(error)]
        if odd.size:
            raise ValueError(f"the measure of {name} must be finite for every table; got {1.0 - odd[0]}")
        if error.min() < -DUST:
            raise ValueError(f"the measure of {name} must be at most 1; got {1.0 - error.min():g}")
        if (np.diff(error, axis=0) > DUST).any() or (np.diff(error, axis=1) < -DUST).any():
            raise ValueError(
                f"the measure of {name} must not decrease with the true positives and must not increase with the "
                "false positives"
            )


@dataclass(frozen=True)
class Contingency(ContingencyLoss):
    """Loss for a measure given as a function.

    Parameters
    ----------
    function : callable
        ``function(tp, fp, m, n)`` returns the measure for ``tp`` of ``m`` positives and ``fp`` of ``n`` negatives
        labeled positive, for arrays ``tp`` and ``fp``. It must be at most 1, increase with ``tp`` and decrease with
        ``fp``.

    Examples
    --------
    The Jaccard index:

    >>> from rocmax.losses import Contingency
    >>> jaccard = Contingency(lambda tp, fp, m, n: tp / (m + fp))
    >>> jaccard.bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.5
    """

    function: Callable[[Any, Any, float, float], Any]

    def measure(self, tp: Array, fp: Array, m: float, n: float) -> Array:
        """Return the value of the function."""
        return np.asarray(self.function(tp, fp, m, n), dtype=np.float64)


@dataclass(frozen=True)
class FBeta(ContingencyLoss):
    r"""Upper bound of one minus :math:`F_\beta = (1 + \beta^2) tp / (\beta^2 m + tp + fp)`.

    .. math:: \max_{\bar y} \; 1 - F_\beta + \frac1m \sum_i (\bar y_i - y_i) s_i

    The error is convex in ``tp`` and concave in ``fp``, so the best ``fp`` for a given ``tp`` is found by bisection.
    After sorting, a few thousand evaluations are sufficient.

    Parameters
    ----------
    beta : ...
        With 1 the measure is the harmonic mean of precision and recall; larger values give more weight to recall.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from rocmax.losses import FBeta
    >>> FBeta().bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.35
    """

    beta: float = 1.0
    knows_parts: ClassVar[bool] = True
    saddle: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.beta, bool) or not (0 < self.beta < np.inf):
            raise ValueError(f"beta must be a finite number > 0; got {self.beta!r}")

    def measure(self, tp: Array, fp: Array, m: float, n: float) -> Array:
        """Return F-beta."""
        square = self.beta**2
        return (1 + square) * tp / (square * m + tp + fp)

    def slopes(self, tp: float, fp: float, m: float, n: float) -> tuple[float, float]:
        """Return the derivatives of F-beta in ``tp`` and in ``fp``."""
        square = self.beta**2
        size = square * m + tp + fp
        return (1 + square) * (size - tp) / size**2, -(1 + square) * tp / size**2

    def rise(self, tp: Array, f1: Array, f2: Array, m: float) -> Array:
        """Return the difference of the errors."""
        square = self.beta**2
        size = square * m + tp
        return (1 + square) * tp * ((f2 - f1) / ((size + f1) * (size + f2)))

    def inside(self, tp: Array, f1: Array, f2: Array, slope: Array, m: float) -> Array:
        """Return the zero of the derivative in ``fp``."""
        square = self.beta**2
        falls = slope < 0
        root = np.sqrt((1 + square) * tp / np.where(falls, -slope, 1.0))
        return np.clip(np.where(falls, root - square * m - tp, f2), f1, f2)


@dataclass(frozen=True)
class GMean(ContingencyLoss):
    r"""Upper bound of one minus the geometric mean of the true-positive and the true-negative rate.

    .. math:: \max_{\bar y} \; 1 - \sqrt{\frac{tp}{m} \cdot \frac{n - fp}{n}} + \frac1m \sum_i (\bar y_i - y_i) s_i

    The error is convex in ``tp`` and in ``fp``, so planes through three corners bound it on rectangles.

    References
    ----------
    Kubat and Matwin, "Addressing the curse of imbalanced training sets: one-sided selection", ICML 1997.

    Examples
    --------
    >>> from rocmax.losses import GMean
    >>> GMean().bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.75
    """

    knows_parts: ClassVar[bool] = True

    def measure(self, tp: Array, fp: Array, m: float, n: float) -> Array:
        """Return the G-mean."""
        return np.sqrt(tp / m * np.maximum((n - fp) / n, 0.0))

    def slopes(self, tp: float, fp: float, m: float, n: float) -> tuple[float, float]:
        """Return the derivatives of the G-mean in ``tp`` and in ``fp``; zero where the G-mean is zero."""
        level = 0.5 * float(self.measure(np.asarray(tp), np.asarray(fp), m, n))
        return (level / tp, -level / (n - fp)) if level > 0 else (0.0, 0.0)

    def plane(self, t1: Array, t2: Array, f1: Array, f2: Array, m: float, n: float) -> Plane:
        """Return the plane through three corners, which is above the bilinear interpolation of all four."""
        (origin, up), (_, far) = ([1.0 - self.measure(t, f, m, n) for f in (f1, f2)] for t in (t1, t2))
        return Plane(origin, (far - up) / np.maximum(t2 - t1, 1e-300), (up - origin) / np.maximum(f2 - f1, 1e-300))


@dataclass(frozen=True)
class FreeShift(Loss):
    r"""A contingency loss at its best shift: :math:`\min_b R(s + b)`.

    This is the loss of a linear model with an unpenalized intercept. It is convex and invariant to a shift of the
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

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundFreeShift:
        """Bind the loss to labels and weights."""
        return BoundFreeShift(self.base.bind(y, sample_weight))

    def with_intercept(self) -> ContingencyLoss:
        """Return the loss for scores that include the shift."""
        return self.base

    def sum_scale(self, m: float, n: float) -> float:
        """Return the divisor of the base loss."""
        return self.base.sum_scale(m, n)


class BoundFreeShift(BoundLoss):
    """:class:`FreeShift` bound to labels; ``shift`` is the best shift of the last call.

    The subgradient is a mixture of the two labellings that are optimal on either side of the best shift, so the
    coefficients sum to zero.
    """

    def __init__(self, base: BoundContingency) -> None:
        self._base = base
        self._share_sample(base)
        self.shift = 0.0
        self._tables = [(0.0, 0.0), (self.m, self.n)]

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return the value at the best shift and a subgradient."""
        return self.solve(scores)[:2]

    def at(self, scores: Array) -> Evaluation:
        """Return an object that computes the loss at the scores, and the labellings of its cut."""
        return ShiftEvaluation(self, scores)

    def solve(self, scores: ArrayLike) -> tuple[float, Array, Array]:
        """Return the value, a subgradient, and the share, true and false positives of its two labellings.

        On average, they label ``m`` rows positive.
        """
        s = self._checked(scores)
        ladders = self._base.ladders(s)
        low, high, self.shift = self._bracket(*ladders)
        down, up = (t.tp + t.fp - self.m for t in (low, high))
        share = up / (up - down) if up > down else 1.0
        mixture = np.array([(share, low.tp, low.fp), (1.0 - share, high.tp, high.fp)])
        gradient = share * self._base.coefficients(s, *ladders, low)
        if share < 1.0:
            gradient += (1.0 - share) * self._base.coefficients(s, *ladders, high)
        return low.value, gradient, mixture

    def _bracket(
        self, positives: CumulativeScores, negatives: CumulativeScores
    ) -> tuple[TableCounts, TableCounts, float]:
        """Return the best shift and two optimal tables there, one that labels fewer rows than ``m`` and one more.

        Each table is a linear function of the shift, and their maximum is convex. Each iteration searches for the most
        violated table at the minimum of the maximum of the known lines, until no table is above it. Scores change
        little between calls, so the tables of previous calls are kept.
        """
        tp, fp = np.array(self._tables).T
        slope = (tp + fp - self.m) / self.m
        gain = positives.total_at(tp) - positives.total[-1] + negatives.total_at(fp)
        value = self._base.error(tp, fp) + gain / self.m
        for _ in range(200):
            low, high = _lowest_crossing(value, slope)
            shift = float((value[low] - value[high]) / (slope[high] - slope[low]))
            level = float(value[low] + slope[low] * shift)
            table = best_table(self._base, positives, negatives, shift)
            # If the scores are so large that rounding error exceeds the tolerance, a known table is found again.
            known = ((tp == table.tp) & (fp == table.fp)).any()
            if known or table.value <= level + 1e-13 * (1.0 + abs(level)):
                break
            rise = (table.tp + table.fp - self.m) / self.m
            if abs(rise) <= 1e-12:
                return table, table, shift
            tp, fp = np.append(tp, table.tp), np.append(fp, table.fp)
            value, slope = np.append(value, table.value - rise * shift), np.append(slope, rise)
        self._tables = [*zip(tp, fp, strict=True)]
        return TableCounts(level, tp[low], fp[low]), TableCounts(level, tp[high], fp[high]), shift


class ShiftEvaluation(Evaluation):
    """Value and cut of :class:`BoundFreeShift` at given scores."""

    loss: BoundFreeShift

    def _computed(self, width: float) -> tuple[float, Array]:
        value, gradient, self.tables = self.loss.solve(self.scores)
        return value, gradient


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


# Losses for the top of the ranking: precision at k, and the break-even point.


@dataclass(frozen=True)
class PrecisionAtK(Loss):
    r"""Upper bound of one minus the precision among the ``k`` highest scores.

    .. math:: \max_{|\bar y| = k} \; 1 - \frac{tp}{k}
              + \frac{1}{\min(k, m)} \Bigl( \sum_i \bar y_i s_i - \sum_i r_i s_i \Bigr)

    The reference :math:`r` is the mean over all best labellings: those with ``k`` of the positives, or all positives
    and ``k - m`` negatives. Hence :math:`r_i = \min(1, k/m)` for positives and :math:`\max(0, (k-m)/n)` for
    negatives. The loss is convex and shift-invariant. It is an upper bound of the error, because the top ``k`` rows are
    one of the labellings and no mean of sums of ``k`` scores exceeds the sum of the ``k`` highest scores.

    With ``reference="positives"``, :math:`r_i = y_i` and the factor is :math:`1/m`, as in the papers. This version is
    neither shift-invariant nor bounded below unless ``k = m``.

    Parameters
    ----------
    k
    reference : {"best", "positives"}, default="best"
        Reference labeling: the mean of the best labellings, or the true labels.

    References
    ----------
    Kar, Narasimhan and Jain, "Surrogate functions for maximizing precision at the top", ICML 2015: the mean over
    the labellings with ``k`` positives. Joachims, "A support vector method for multivariate performance measures",
    ICML 2005, and Kar, Narasimhan and Jain, "Online and stochastic gradient methods for non-decomposable loss
    functions", NIPS 2014: the reference to the positives.

    Examples
    --------
    >>> from rocmax.losses import PrecisionAtK
    >>> PrecisionAtK(k=1).bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.5
    """

    k: float
    reference: str = "best"

    def __post_init__(self) -> None:
        check_top(self.k)
        if self.reference not in ("best", "positives"):
            raise ValueError(f'reference must be "best" or "positives"; got {self.reference!r}')

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]
        """Whether the loss is invariant to a shift of all scores."""
        return self.reference == "best"

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundTop:
        """Bind the loss to labels and weights."""
        return BoundTop(y, sample_weight, self.k, self.reference)

    def sum_scale(self, m: float, n: float) -> float:
        """Return the weight of the rows labeled positive, or of the positives if it is smaller."""
        return min(m, top_weight(self.k, m + n)) if self.reference == "best" else m


@dataclass(frozen=True)
class BreakEven(Loss):
    r"""Upper bound of one minus the precision-recall break-even point.

    .. math:: \max_{|\bar y| = m} \; 1 - \frac{tp}{m} + \frac1m \sum_i (\bar y_i - y_i) s_i

    It equals :class:`PrecisionAtK` with ``k = m``, where precision equals recall and both references are the same.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from rocmax.losses import BreakEven
    >>> BreakEven().bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.25
    """

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundTop:
        """Bind the loss to labels and weights."""
        return BoundTop(y, sample_weight, None, "best")

    def sum_scale(self, m: float, n: float) -> float:
        """Return the weight of the positives."""
        return m


class BoundTop(BoundLoss):
    """:class:`PrecisionAtK` bound to labels; ``k=None`` stands for the weight of the positives."""

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None, k: float | None, reference: str) -> None:
        super().__init__(y, sample_weight)
        self.k = self.m if k is None else top_weight(k, self.m + self.n)
        if reference == "best":
            self._scale = 1.0 / min(self.k, self.m)
            of_positives, of_negatives = min(1.0, self.k / self.m), max(0.0, (self.k - self.m) / self.n)
        else:
            self._scale, of_positives, of_negatives = 1.0 / self.m, 1.0, 0.0
        present = self.weight > 0
        self._weight = None if (self.weight[present] == 1.0).all() else self.weight[present]
        self._present = None if present.all() else np.flatnonzero(present)
        self._reference = self.weight * np.where(self.is_negative, of_negatives, of_positives)

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and subgradient, from the ``k`` highest scores after subtracting the margin from positives."""
        s = self._checked(scores)
        # Labeling a positive lowers the error by 1 / k.
        lowered = s.copy()
        lowered[self.positive] -= 1.0 / (self.k * self._scale)
        taken, level = self._labelled(lowered)
        taken *= self.weight
        # Differences from the level keep the sums small; the level is added back with the total weight of each side.
        labeled = float(taken @ np.where(taken > 0, lowered - level, 0.0)) + self.k * level
        referred = float(self._reference @ np.where(self._reference > 0, s - level, 0.0))
        referred += float(self._reference.sum()) * level
        return 1.0 + self._scale * (labeled - referred), self._scale * (taken - self._reference)

    def _labelled(self, scores: Array) -> tuple[Array, float]:
        """Return the share of each row in the top rows, equal for tied ones, and the lowest score among them."""
        own = scores if self._present is None else scores[self._present]
        level, part = CumulativeScores(own.copy(), self._weight).cut(self.k)
        shares = np.where(own == level, part, (own > level).astype(np.float64))
        if self._present is None:
            return shares, level
        taken = np.zeros_like(scores)
        taken[self._present] = shares
        return taken, level


# Cuts of a loss, extended to additional rows.


class Growth(NamedTuple):
    """Numbers of previous positives and negatives, and labels and scores of the new rows at the current weights."""

    m_old: int
    n_old: int
    positive: Bools
    scores: Array


class GrownCuts(NamedTuple):
    """Cuts of the previous rows, extended to all rows, in terms of scores.

    The old gradients are multiplied by ``share``; each previous negative and positive adds one of ``of_classes`` to all
    gradients, and each new row one of ``of_rows``.
    """

    share: float
    offset: Array
    tables: list[Array | None]
    of_classes: Array = np.zeros(2)
    of_rows: Array | None = None


def grow_cuts(loss: Loss, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts | None:
    """Return cuts of a loss on all rows from cuts on previous rows; None for other losses than those of labels.

    A cut is the value of a choice of labels. A choice for the previous rows and any choice for the new rows together
    are a choice for all rows, whose terms are scaled for the new numbers of positives and negatives. With the best
    choice for the new rows at the current weights, the cut is nearly tight if the optimum moves little.
    """
    m_old, n_old = growth.m_old, growth.n_old
    m_new = int(np.count_nonzero(growth.positive))
    m, n = m_old + m_new, n_old + growth.positive.size - m_new
    if isinstance(loss, FreeShift):
        return grow_labels(loss, tables, growth, m, n)
    if isinstance(loss, BreakEven):
        return grow_top(m_old, m, offset, growth, m, n)
    if isinstance(loss, PrecisionAtK) and loss.reference == "best":
        return grow_top(top_weight(loss.k, m_old + n_old), top_weight(loss.k, m + n), offset, growth, m, n)
    return None


def grow_top(k_old: float, k: float, offset: Array, growth: Growth, m: int, n: int) -> GrownCuts:
    """Add the best labels of the new rows to labellings with ``k_old`` positive labels, so that there are ``k``."""
    # Labeling a positive lowers the error by 1 / k.
    divided = min(k, m)
    lowered = growth.scores - growth.positive * (divided / k)
    level, part = CumulativeScores(lowered.copy(), None).cut(k - k_old)
    taken = np.where(lowered == level, part, (lowered > level).astype(np.float64))
    tp = k_old * (1.0 - offset) + taken[growth.positive].sum()
    # The shares of a negative and of a positive in the mean of the best labellings.
    before, after = (
        np.array([max(0.0, (top - positives) / negatives), min(1.0, top / positives)])
        for top, positives, negatives in ((k_old, growth.m_old, growth.n_old), (k, m, n))
    )
    of_rows = (taken - after[growth.positive.astype(np.intp)]) / divided
    share = min(k_old, growth.m_old) / divided
    return GrownCuts(share, 1.0 - tp / k, [None] * offset.size, (before - after) / divided, of_rows)


def grow_labels(loss: FreeShift, tables: list[Array | None], growth: Growth, m: int, n: int) -> GrownCuts:
    """Couple mixtures of labellings, which label ``m`` rows on average, with the best mixture for the new rows."""
    m_new, of_rows = m - growth.m_old, None
    mixture = np.array([(1.0, m_new, 0.0)])  # the true labels, if the new rows have only one class
    if 0 < m_new < growth.positive.size:
        _, of_rows, mixture = loss.bind(growth.positive).solve(growth.scores)
        of_rows *= m_new / m
    grown = [couple(known, mixture) for known in tables if known is not None]
    offset = [float(t[:, 0] @ loss.base.error(t[:, 1], t[:, 2], m, n)) for t in grown]
    return GrownCuts(growth.m_old / m, np.array(offset), [*grown], of_rows=of_rows)


def couple(first: Array, second: Array) -> Array:
    """Couple two mixtures of tables in order of the number of labeled rows, and return the mixture of the sums."""
    (one, at), (two, by) = (_cumulated(mixture) for mixture in (first, second))
    ends = np.union1d(at, by)
    share = np.diff(ends, prepend=0.0)
    # Tiny shares are rounding error.
    ends, share = ends[share > 1e-12], share[share > 1e-12]
    i, j = (np.minimum(np.searchsorted(line, ends), line.size - 1) for line in (at, by))
    return np.column_stack([share / share.sum(), one[i, 1:] + two[j, 1:]])


def _cumulated(mixture: Array) -> tuple[Array, Array]:
    placed = mixture[np.argsort(mixture[:, 1] + mixture[:, 2])]
    return placed, np.cumsum(placed[:, 0])
