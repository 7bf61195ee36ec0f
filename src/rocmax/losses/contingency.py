"""Losses for measures of the contingency table: F-beta, the G-mean and user-defined functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array, Index
from rocmax.losses._cumulative import CumulativeScores
from rocmax.losses._worst_labelling import Plane, Table, best_table
from rocmax.losses.base import BoundLoss, Loss

# Maximum number of copies of weighted rows for a measure of unknown shape.
_MOST_COPIES = 50_000_000
# Grid points per axis on which a measure is checked, and the tolerance for rounding error.
_GRID = 33
_SLACK = 1e-12


class ContingencyLoss(Loss):
    r"""Upper bound of one minus a measure of true and false positives.

    .. math:: \max_{\bar y \in \{0,1\}^N} \; 1 - \mathrm{measure}(tp, fp)
              + \frac1m \sum_i (\bar y_i - y_i) s_i

    with :math:`tp` and :math:`fp` the numbers of positives and negatives that :math:`\bar y` labels positive. The
    maximum includes the labels :math:`\bar y_i = 1[s_i > 0]`, so the loss is an upper bound of the error at the
    threshold 0. It depends on a shift of the scores; :class:`~rocmax.losses.FreeShift` minimises over the shift.

    A subclass defines :meth:`measure`, which must not decrease with ``tp`` and must not increase with ``fp``. If more
    is known about its shape, :meth:`plane` makes the search faster.

    Integer weights are numbers of copies, and copies may get different labels. Rows with other weights may be labelled
    positive in any fraction.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    shift_invariant: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = False
    # Whether rows can be labelled in part: the error is largest at the ends of a row, or where `inside` returns.
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
        """Return the maximiser in ``[f1, f2]`` of one minus the measure plus ``slope * fp``; None if it is an end."""
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
        """Return value and subgradient, from the most violated labelling."""
        s = self._checked(scores)
        ladders = self.ladders(s)
        table = self.best(*ladders, 0.0)
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

    def best(self, positives: CumulativeScores, negatives: CumulativeScores, shift: float) -> Table:
        """Return the most violated table with ``shift`` added to all scores."""
        return best_table(self, positives, negatives, shift)

    def coefficients(
        self, scores: Array, positives: CumulativeScores, negatives: CumulativeScores, table: Table
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
        if self.m + self.n > _MOST_COPIES:
            raise ValueError(f"the weights of {name} must sum to at most {_MOST_COPIES}; got {self.m + self.n:g}")

    def _check_monotone(self) -> None:
        """Raise ValueError if the measure is not finite, at most 1 and monotone on a grid; the search relies on it."""
        tp, fp = (np.linspace(0.0, weight, _GRID) for weight in (self.m, self.n))
        if self._whole:
            tp, fp = np.unique(np.rint(tp)), np.unique(np.rint(fp))
        error = np.broadcast_to(self.error(tp[:, None], fp[None, :]), (tp.size, fp.size))
        name = type(self._loss).__name__
        odd = error[~np.isfinite(error)]
        if odd.size:
            raise ValueError(f"the measure of {name} must be finite for every table; got {1.0 - odd[0]}")
        if error.min() < -_SLACK:
            raise ValueError(f"the measure of {name} must be at most 1; got {1.0 - error.min():g}")
        if (np.diff(error, axis=0) > _SLACK).any() or (np.diff(error, axis=1) < -_SLACK).any():
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
        labelled positive, for arrays ``tp`` and ``fp``. It must be at most 1, increase with ``tp`` and decrease with
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
    beta : float, default=1.0
        Weight of the recall, above 0. With 1 the measure is the harmonic mean of precision and recall; larger values
        give more weight to recall.

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

    def plane(self, t1: Array, t2: Array, f1: Array, f2: Array, m: float, n: float) -> Plane:
        """Return a plane above the chord in ``tp`` between the tangents in ``fp`` at its ends, exact at ``t1``."""
        level = 1.0 - self.measure(t1, f1, m, n)
        other = 1.0 - self.measure(t2, f1, m, n)
        square = self.beta**2
        at_t1, at_t2 = ((1 + square) * t / (square * m + t + f1) ** 2 for t in (t1, t2))
        steeper = np.maximum(at_t2 - at_t1, 0.0) * (f2 - f1)
        return Plane(level, (other - level + steeper) / np.maximum(t2 - t1, 1e-300), at_t1)

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
