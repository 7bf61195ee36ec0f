"""Bounded surrogate of the partial AUC: a smooth step function on the pairs in the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array, Index
from rocmax._window import check_corner, window_end
from rocmax.losses._lowest import LowestPositives
from rocmax.losses._sorted import cut, prefix
from rocmax.losses.base import BoundLoss, Loss


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
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    width : float, default=1.0
        Length of the step in the scores.
    margin : float, default=None
        Score difference at the middle of the step. None uses ``width / 2``, which makes the loss an upper bound of
        ``1 - partial AUC``; 0 counts a tie as one half, as the measure does.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1.

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

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = False

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
        gradient = self.scatter(selected.rows, pos_coef, rows, pieces.row_coefficients(piece_coef))
        return (total + float(v @ value)) / norm, gradient

    def _near(self, middle_score: Array, v: Array, score: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Return value and slope for each positive, and slope for each negative in the window."""
        if middle_score.size == 0:
            return middle_score, middle_score, np.zeros(score.size)
        # With u_ij = x_i - d_j: phi is 1 left of -1 (ranks below ``low``), quadratic up to ``middle`` and ``high``.
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


def without_gaps(one: Array, two: Array, longest: float) -> tuple[Array, Array]:
    """Shorten gaps between scores that are longer than the step.

    The value of the step does not change for any pair, and sums of squared scores lose no precision.
    """
    both = np.concatenate([one, two])
    if np.ptp(both) < 1e3 * longest:
        return one, two
    order = np.argsort(both)
    placed = both[order]
    both[order] = np.concatenate([[0.0], np.cumsum(np.minimum(np.diff(placed), longest))])
    return both[: one.size], both[one.size :]
