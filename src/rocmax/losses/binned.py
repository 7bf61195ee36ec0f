"""Convex losses on binned scores, with bounds of the exact loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array, Index
from rocmax.losses.base import BoundLoss, Evaluation, Loss, Pairs
from rocmax.losses.bins import MAX_BINS, Bind, Bins, Cells, ScoreGrid, check_bins, row_coefficients

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

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = False

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
    """:class:`Binned` bound to labels.

    Parameters
    ----------
    base : BoundLoss
        The loss, bound to the labels of the rows.
    bind : callable
        Function that binds the loss to the labels and weights of the bins.
    n_bins : int
        Number of bins for each class.
    reach : float, default=None
        Weight of the highest-scored negatives that the loss compares with the positives; None for all negatives.
    """

    exact = False

    def __init__(self, base: BoundLoss, bind: Bind, n_bins: int, reach: float | None = None) -> None:
        self._share_sample(base)
        self.base, self.bind, self.n_bins = base, bind, n_bins
        self.reach = self.n if reach is None else reach
        self.smooth, self.has_kinks = False, base.has_kinks
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

    def smoothed(self, scores: ArrayLike, width: float) -> tuple[float, Array]:
        """Return an affine minorant of the exact loss, smoothed as that of the exact loss."""
        return self.at(scores).minorant(width)

    def upper_bound(self, scores: ArrayLike) -> float:
        """Return an upper bound of the exact loss."""
        return self.at(scores).upper

    def has(self, method: str) -> bool:
        """Return whether an optional method exists: only those on the curvature of the exact loss, if it has them."""
        return method in ("curvature", "local_curvature") and self.base.has(method)

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Sample the Hessian of the exact loss."""
        return self.base.curvature(scores, count, width)

    def thinned(self, size: int) -> tuple[Index, BoundLoss] | None:
        """Return about ``size`` rows and the exact loss on these rows."""
        return self.base.thinned(size)

    def working_set(self, scores: Array, reach: float) -> tuple[Index, BoundLoss] | None:
        """Return some rows and the exact loss on these rows."""
        return self.base.working_set(scores, reach)

    def on_rows(self, rows: Index, copies: Array) -> BoundLoss:
        """Return the exact loss on some rows."""
        return self.base.on_rows(rows, copies)

    def finer(self) -> BoundLoss:
        """Return the loss with four times as many bins; the exact loss if there would be too many."""
        n_bins = 4 * self.n_bins
        return BoundBinned(self.base, self.bind, n_bins, self.reach) if n_bins <= MAX_BINS else self.base


class BinnedEvaluation(Evaluation):
    """Bounds of a loss at given scores, from one histogram."""

    def __init__(self, loss: BoundBinned, scores: Array) -> None:
        super().__init__(loss, scores)
        self._found: dict[float, tuple[float, Array]] = {}
        self._bind, self._weight, self._reach = loss.bind, loss.row_weight, loss.reach
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

    def thinned(self, size: int) -> tuple[Index, BoundLoss] | None:
        """Return positives and negatives at equal steps, with smaller steps for negatives near the window.

        None if the sample is not much larger than ``size``.
        """
        loss, n_bins = self.loss, self.bins.grid.n_bins
        if loss.n_samples < 3 * size:
            return None
        # Lowest bin with negatives that the loss compares with positives, now or after a step.
        above = np.cumsum(self.bins.weight[:n_bins][::-1])
        down = int(np.searchsorted(above, min(_BEYOND * self._reach, (1.0 - 1e-12) * loss.n)))
        negative, first = self._cells < n_bins, n_bins - 1 - down
        top = np.flatnonzero(negative & (self._cells >= first))
        others = np.flatnonzero(negative & (self._cells < first))
        # The variance of the loss is about 1/m + 1/k for m positives and k negatives in the window.
        inside = min(1.0, self._reach / float(above[down]))
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
        rows = np.concatenate(kept)
        return rows, self._bind(self._cells[rows] >= n_bins, loss.weight[rows] * np.concatenate(copies))
