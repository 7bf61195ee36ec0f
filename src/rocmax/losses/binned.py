r"""Scores in bins: histograms of both classes, and convex losses on them with bounds of the exact loss.

The scores of each class are grouped into bins; a bin has a total weight and the mean score of its members. Let ``P s``
be the scores with each replaced by the mean of its bin. For a convex loss ``R`` that does not depend on the order of
the rows, ``P s`` is a mean of permutations of ``s`` within the bins, so :math:`R(Ps) \le R(s)`. A subgradient ``c`` at
``P s`` that is constant within the bins satisfies :math:`c \cdot Ps = c \cdot s`, so

.. math:: R(s') \ge R(Ps) + c \cdot (s' - s) \quad \text{for all } s',

a valid cut of the exact loss. On the other side, moving the members of each bin to the two ends of the bin, with the
same mean, gives scores of which ``s`` is a mean of permutations; their loss is an upper bound of :math:`R(s)`. Both
differ from :math:`R(s)` by O(h^2) for bins of width ``h``, and both cost O(B) for ``B`` bins.

Bins are sums over rows, so those of parts of the data add up to those of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocmax._support import Array, Index
from rocmax.losses.base import BoundLoss, Evaluation, Loss, Pairs
from rocmax.losses.ranks import blocks

# Histograms of scores: a bin is a row with a weight.


# Largest number of bins per class: the numbers of the bins have 16 bits, one of them for the class.
MAX_BINS = -int(np.iinfo(np.int16).min)
# Share of the bins for the scores far below and for those far above the others, if there are any.
_TAIL = 1 / 16

Cells = NDArray[np.uint16]
Bind = Callable[[ArrayLike, ArrayLike], BoundLoss]


@dataclass(frozen=True)
class ScoreGrid:
    """Bins of equal width on a central range of scores, and wider ones of equal width below and above it.

    Scores outside ``least`` and ``largest`` are counted in the first and the last bin. The bins remain valid, because
    :class:`Bins` records the actual range.

    Parameters
    ----------
    least, low, high, largest : float
        Ends of the three ranges, in ascending order. Without scores far from the others, ``least == low`` and
        ``high == largest``.
    n_bins : int
        Number of bins for each class, from 1 to 32,768.

    Examples
    --------
    >>> from rocmax.losses import ScoreGrid
    >>> ScoreGrid.covering([0.0, 1.0, 4.0], n_bins=4).edges
    array([0., 1., 2., 3., 4.])
    """

    least: float
    low: float
    high: float
    largest: float
    n_bins: int

    def __post_init__(self) -> None:
        ends = (self.least, self.low, self.high, self.largest)
        if not np.isfinite(ends).all() or any(a > b for a, b in pairwise(ends)):
            raise ValueError(f"the ends of the ranges must be finite and ascending; got {ends}")
        if not 1 <= self.n_bins <= MAX_BINS:
            raise ValueError(f"n_bins must be from 1 to {MAX_BINS}; got {self.n_bins!r}")
        if self._sizes[1] < 1 or (self.low == self.high and self.least < self.largest):
            raise ValueError(f"there must be bins in a central range of non-zero length; got {self}")

    @classmethod
    def covering(cls, scores: ArrayLike, n_bins: int) -> ScoreGrid:
        """Return a grid for finite scores; a few scores far from the others do not widen the central bins.

        Given a sample of the scores that contains the smallest and the largest one, the grid covers all of them.
        """
        s = np.asarray(scores)
        least, largest = float(s.min()), float(s.max())
        part = s[:: max(1, s.size // (2 * n_bins))]  # as many scores as bins of both classes
        ends = int(0.01 * (part.size - 1)), int(np.ceil(0.99 * (part.size - 1)))
        first, last = np.partition(part, ends)[list(ends)].astype(np.float64)
        low, high = max(least, 2 * first - last), min(largest, 2 * last - first)
        # Shorter tails than one tenth of the central range would save little.
        if n_bins < 64 or first == last or high - low >= 0.8 * (largest - least):
            low, high = least, largest
        return cls(least, low, high, largest, n_bins)

    @cached_property
    def _sizes(self) -> tuple[int, int, int]:
        """Number of bins below, inside and above the central range."""
        tail = max(1, int(_TAIL * self.n_bins))
        below, above = (tail if outside > 0 else 0 for outside in (self.low - self.least, self.largest - self.high))
        return below, self.n_bins - below - above, above

    @property
    def edges(self) -> Array:
        """Ends of the bins in ascending order, an array of shape (n_bins + 1,)."""
        below, inside, above = self._sizes
        return np.concatenate(
            [
                np.linspace(self.least, self.low, below, endpoint=False),
                np.linspace(self.low, self.high, inside, endpoint=False),
                np.linspace(self.high, self.largest, above + 1),
            ]
        )

    def cells(self, scores: Array, positive: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the bin of each score: its number, plus ``n_bins`` for a positive."""
        within = scores.size == 0 or (scores.min() >= self.least and scores.max() <= self.largest)
        return self._cells(scores, positive, bool(within))

    def _cells(self, scores: Array, positive: NDArray[np.bool_], within: bool) -> NDArray[np.intp]:
        """Return the bins of scores, which are all within the grid or not."""
        below, inside, above = self._sizes
        place = scores - self.low
        place *= _per_bin(inside, self.high - self.low)
        if below or above:
            np.floor(place, out=place)
            for outer in (place < 0, place >= inside):
                rows = np.flatnonzero(outer)
                place[rows] = self._outside(scores[rows])
            place += below
        if not within:
            np.clip(place, 0, self.n_bins - 1, out=place)
        cell = place.astype(np.intp)
        cell += np.multiply(positive, self.n_bins, dtype=np.intp)
        return cell

    def _outside(self, scores: Array) -> Array:
        """Return the bins of scores outside the central range, counted from its first bin."""
        below, inside, above = self._sizes
        left = (scores - self.low) * _per_bin(below, self.low - self.least)
        right = (scores - self.high) * _per_bin(above, self.largest - self.high)
        top = inside + np.clip(np.floor(right), 0 if above else -1, max(above - 1, -1))
        return np.where(scores < self.low, np.floor(left), top)


@dataclass(frozen=True)
class Bins:
    """Weights and sums of scores of the bins of a :class:`ScoreGrid`; ``+`` merges the bins of two sets of rows.

    Parameters
    ----------
    grid : ScoreGrid
        The grid.
    weight, total : ndarray of shape (2 * n_bins,)
        Sum of the weights and of weight times score in each bin: the negatives first, then the positives.
    lowest, highest : float
        Range of the scores, infinite and reversed without rows.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.losses import Bins, PairwiseHinge, ScoreGrid
    >>> scores, positive = np.array([0.0, 0.5, 1.0, 2.0]), np.array([False, False, True, True])
    >>> bins = Bins.count(ScoreGrid.covering(scores, n_bins=2), scores, positive)
    >>> bins.weight
    array([2., 0., 1., 1.])
    >>> bins.minorant(PairwiseHinge().bind)[0], bins.upper_bound(PairwiseHinge().bind)
    (0.125, 0.125)
    >>> PairwiseHinge().bind(positive).value_and_gradient(scores)[0]
    0.125
    """

    grid: ScoreGrid
    weight: Array
    total: Array
    lowest: float
    highest: float

    def __add__(self, other: Bins) -> Bins:
        if self.grid != other.grid:
            raise ValueError(f"both must have the same grid; got {self.grid} and {other.grid}")
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        return Bins(self.grid, self.weight + other.weight, self.total + other.total, lowest, highest)

    @classmethod
    def count(
        cls,
        grid: ScoreGrid,
        scores: Array,
        positive: NDArray[np.bool_],
        weight: Array | None = None,
        cells: Cells | None = None,
    ) -> Bins:
        """Count scores in the bins of a grid, in O(N) time and O(B) memory.

        Parameters
        ----------
        grid : ScoreGrid
            The grid.
        scores : ndarray of shape (n_rows,)
            Finite scores.
        positive : ndarray of bool of shape (n_rows,)
            Mask of the positive rows.
        weight : ndarray of shape (n_rows,), default=None
            Weights of the rows; None if all are 1.
        cells : ndarray of uint16 of shape (n_rows,), default=None
            Array that receives the bin of each row, as in :meth:`ScoreGrid.cells`.
        """
        size = 2 * grid.n_bins
        found, total = np.zeros(size), np.zeros(size)
        lowest, highest = np.inf, -np.inf
        for rows in blocks(scores.size):
            part = scores[rows].astype(np.float64, copy=False)
            low, high = float(part.min()), float(part.max())
            cell = grid._cells(part, positive[rows], grid.least <= low and high <= grid.largest)
            if weight is None:
                found += np.bincount(cell, minlength=size)
                total += np.bincount(cell, part, minlength=size)
            else:
                found += np.bincount(cell, weight[rows], minlength=size)
                total += np.bincount(cell, weight[rows] * part, minlength=size)
            if cells is not None:
                cells[rows] = cell
            lowest, highest = min(lowest, low), max(highest, high)
        return cls(grid, found, total, lowest, highest)

    @cached_property
    def _bound(self) -> list[tuple[Bind, BoundLoss]]:
        """The last loss, bound to the bins: several minorants of one loss are usually requested."""
        return []

    @cached_property
    def used(self) -> NDArray[np.intp]:
        """Numbers of the bins that are not empty."""
        return np.flatnonzero(self.weight)

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Ends of the bins that are not empty; the first and the last bin reach as far as the scores."""
        edges = self.grid.edges
        edges[0], edges[-1] = min(edges[0], self.lowest), max(edges[-1], self.highest)
        place = self.used % self.grid.n_bins
        return edges[place], edges[place + 1]

    @cached_property
    def rows(self) -> tuple[Array, NDArray[np.bool_], Array]:
        """Mean score, label and weight of each bin that is not empty."""
        weight = self.weight[self.used]
        return np.clip(self.total[self.used] / weight, *self._ends), self.used >= self.grid.n_bins, weight

    def spread(self) -> tuple[Array, NDArray[np.bool_], Array]:
        """Return score, label and weight of two rows for each bin, at its ends, with the mean of its members."""
        mean, positive, weight = self.rows
        low, high = self._ends
        share = np.divide(mean - low, high - low, out=np.ones_like(mean), where=high > low)
        scores, weights = np.concatenate([low, high]), np.concatenate([weight * (1.0 - share), weight * share])
        return scores, np.concatenate([positive, positive]), weights

    def sums(self, cells: Cells, values: Array, weight: Array | None = None) -> Array:
        """Return the sum of weight times value in each bin, an array of shape (2 * n_bins,)."""
        size = self.weight.size
        total = np.zeros(size)
        for rows in blocks(cells.size):
            part = values[rows] if weight is None else weight[rows] * values[rows]
            total += np.bincount(cells[rows], part, minlength=size)
        return total

    def minorant(self, bind: Bind, width: float = 0.0) -> tuple[float, Array]:
        """Return a lower bound of a convex loss, and the coefficients of a cut.

        Parameters
        ----------
        bind : callable
            The method :meth:`Loss.bind` of a convex loss that does not depend on the order of the rows.
        width : float, default=0.0
            Width of :meth:`Evaluation.minorant`.

        Returns
        -------
        value : float
            At most the loss at the scores.
        coefficients : ndarray of shape (2 * n_bins,)
            Coefficient per unit of weight of the rows in each bin. With the coefficients ``c`` of the rows, see
            ``row_coefficients``, ``value + c @ (s - scores) <= loss(s)`` for all ``s``.
        """
        scores, positive, weight = self.rows
        if not self._bound or self._bound[-1][0] is not bind:
            self._bound[:] = [(bind, bind(positive, weight))]
        value, coefficients = self._bound[-1][1].at(scores).minorant(width)
        found = np.zeros(self.weight.size)
        found[self.used] = coefficients / weight
        return value, found

    def upper_bound(self, bind: Bind) -> float:
        """Return an upper bound of a convex loss at the scores; ``bind`` as in :meth:`minorant`."""
        scores, positive, weight = self.spread()
        return bind(positive, weight).value_and_gradient(scores)[0]


def check_bins(n_bins: Any) -> None:
    """Raise ValueError if a number of bins is not an integer in the allowed range."""
    if isinstance(n_bins, bool) or not isinstance(n_bins, int) or not 1 <= n_bins <= MAX_BINS:
        raise ValueError(f"n_bins must be an integer from 1 to {MAX_BINS}; got {n_bins!r}")


def row_coefficients(coefficients: Array, cells: Cells, weight: Array | None = None) -> Array:
    """Return the coefficient of each row, from those of the bins per unit of weight."""
    found = np.empty(cells.size)
    for rows in blocks(cells.size):
        # Unlike the default, this mode writes to `out` without a buffer; all bins are in range.
        np.take(coefficients, cells[rows], out=found[rows], mode="clip")
        if weight is not None:
            found[rows] *= weight[rows]
    return found


def _per_bin(size: int, length: float) -> float:
    """Return the number of bins per unit of the score; 0 for an empty range.

    The factor keeps the largest score in the last bin.
    """
    return (1.0 - 1e-15) * size / length if length > 1e-300 * size else 0.0


# Convex losses on binned scores, with bounds of the exact loss.


# A subsample has more rows near the window: the highest-scored negatives of this multiple of its weight.
_BEYOND = 3.0


@dataclass(frozen=True)
class Binned(Loss):
    r"""Lower bound of a convex loss on ranks or pairs, computed from histograms of the scores in O(N).

    The scores of each class are grouped into ``n_bins`` bins of equal width, and the loss is evaluated on one row per
    bin, with the mean score and the total weight of its members. The result is at most the exact loss, and its gradient
    gives a valid cut of the exact loss: ``value + gradient @ (s - scores) <= loss(s)`` for every ``s``. ``upper_bound``
    of the bound loss is at least the exact loss. The difference of the two falls with the square of the bin width; see
    :class:`Bins`.

    Parameters
    ----------
    loss : Loss
        Convex, shift-invariant loss that does not depend on the order of the rows.
    n_bins : int, default=8192
        Number of bins for each class, from 1 to 32,768.

    Notes
    -----
    The bins follow the scores, so the value is convex only up to the distance of the two bounds. Cuts are valid at all
    scores.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.losses import Binned, PairwiseHinge
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(10_000) < 0.1
    >>> scores = rng.standard_normal(10_000) + y
    >>> exact = PairwiseHinge().bind(y).value_and_gradient(scores)[0]
    >>> bound = Binned(PairwiseHinge(), n_bins=1024).bind(y)
    >>> lower, upper = bound.value_and_gradient(scores)[0], bound.upper_bound(scores)
    >>> bool(lower <= exact <= upper), bool(upper - lower < 1e-5 * exact)
    (True, True)
    """

    loss: Loss
    n_bins: int = 8192

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss) or not self.loss.shift_invariant:
            raise ValueError(f"loss must be a shift-invariant loss; got {self.loss!r}")
        check_bins(self.n_bins)

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundBinned:
        """Bind the loss to labels and weights."""
        base = self.loss.bind(y, sample_weight)
        if not base.convex:
            raise ValueError(f"loss must be convex; got {self.loss!r}")
        return BoundBinned(base, self.loss.bind, self.n_bins)


class BoundBinned(BoundLoss):
    """:class:`Binned` bound to labels; ``bind`` binds the loss to the labels and weights of the bins.

    ``reach`` is the weight of the highest-scored negatives that the loss compares with the positives.
    """

    exact = False

    def __init__(self, base: BoundLoss, bind: Bind, n_bins: int, reach: float | None = None) -> None:
        self._share_sample(base)
        self.base, self.bind, self.n_bins = base, bind, n_bins
        self.reach = self.n if reach is None else reach
        self.has_kinks = base.has_kinks
        self.has_curvature = base.has_curvature
        # A view of one number, see BoundLoss, has stride 0.
        self.row_weight = None if base.weight.strides == (0,) else base.weight
        seen = self.row_weight is None or bool((self.row_weight > 0).all())
        self._unseen = None if seen else np.flatnonzero(base.weight == 0)
        self.is_positive = np.zeros(self.n_samples, dtype=bool)
        self.is_positive[self.positive] = True

    def at(self, scores: ArrayLike) -> BinnedEvaluation:
        """Count the scores in bins; all bounds at these scores are then computed from the bins."""
        s = self._checked(scores)
        if self._unseen is not None:
            s = s.copy()
            s[self._unseen] = s[self.positive[0]]
        return BinnedEvaluation(self, s)

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return the lower bound from the bins, and the gradient of the cut."""
        return self.at(scores).minorant(0.0)

    def upper_bound(self, scores: ArrayLike) -> float:
        """Return an upper bound of the exact loss."""
        return self.at(scores).upper

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Sample the Hessian of the exact loss."""
        return self.base.curvature(scores, count, width)

    def restrict(self, rows: Index, copies: Array) -> BoundLoss:
        """Return the exact loss on some rows."""
        return self.bind(self.is_positive[rows], self.weight[rows] * copies)


class BinnedEvaluation(Evaluation):
    """Bounds of a loss at given scores, from one histogram."""

    loss: BoundBinned

    def __init__(self, loss: BoundBinned, scores: Array) -> None:
        super().__init__(loss, scores)
        self._found: dict[float, tuple[float, Array]] = {}
        self._bind, self._weight = loss.bind, loss.row_weight
        self._cells: Cells = np.empty(scores.size, dtype=np.uint16)
        grid = ScoreGrid.covering(scores, loss.n_bins)
        self.bins = Bins.count(grid, scores, loss.is_positive, loss.row_weight, self._cells)

    @cached_property
    def upper(self) -> float:
        """Upper bound of the exact loss."""
        return self.bins.upper_bound(self._bind)

    def minorant(self, width: float) -> tuple[float, Array]:
        """Return a lower bound of the exact loss, and the gradient of a cut."""
        value, coefficients = self._of_bins(width)
        return value, row_coefficients(coefficients, self._cells, self._weight)

    def value(self, width: float) -> float:
        """Return the value of the minorant, without its gradient."""
        return self._of_bins(width)[0]

    def _of_bins(self, width: float) -> tuple[float, Array]:
        """Return the minorant with the coefficients of the bins, which are kept: they are small."""
        if width not in self._found:
            self._found[width] = self.bins.minorant(self._bind, width)
        return self._found[width]

    def slope(self, width: float, direction: Array) -> float:
        """Return the product of the gradient of the minorant with a vector of scores, from its sums in the bins."""
        coefficients = self._of_bins(width)[1]
        return float(coefficients @ self.bins.sums(self._cells, direction, self._weight))

    def refined(self) -> Evaluation:
        """Return bounds from four times as many bins; those of the exact loss if there would be too many."""
        loss, n_bins = self.loss, 4 * self.loss.n_bins
        finer = BoundBinned(loss.base, loss.bind, n_bins, loss.reach) if n_bins <= MAX_BINS else loss.base
        return finer.at(self.scores)

    def sample(self, size: int) -> tuple[Index, Array] | None:
        """Return positives and negatives at equal steps, with smaller steps for negatives near the window.

        None if the sample is not much larger than ``size``.
        """
        loss, n_bins = self.loss, self.bins.grid.n_bins
        if loss.n_samples < 3 * size:
            return None
        # Lowest bin with negatives that the loss compares with positives, now or after a step.
        above = np.cumsum(self.bins.weight[:n_bins][::-1])
        down = int(np.searchsorted(above, min(_BEYOND * loss.reach, (1.0 - 1e-12) * loss.n)))
        negative, first = self._cells < n_bins, n_bins - 1 - down
        top = np.flatnonzero(negative & (self._cells >= first))
        others = np.flatnonzero(negative & (self._cells < first))
        # The variance of the loss is about 1/m + 1/k for m positives and k negatives in the window.
        inside = min(1.0, loss.reach / float(above[down]))
        of_positives = np.sqrt(inside) / (1.0 + np.sqrt(inside))
        of_others = 0.1 if others.size else 0.0
        kept, copies = [], []
        for side, share in (
            (loss.positive, of_positives),
            (top, 1.0 - of_positives - of_others),
            (others, of_others),
        ):
            step = max(1, round(side.size / (share * size + 1)))
            kept.append(side[::step])
            copies.append(np.full(kept[-1].size, float(step)))
        return np.concatenate(kept), np.concatenate(copies)
