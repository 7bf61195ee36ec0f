"""Losses on all pairs of a positive and a negative example: surrogates of the full AUC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax.losses._sorted import charged, cut, prefix, sample_bands
from rocmax.losses.base import BoundLoss, Loss, Pairs
from rocmax.losses.growth import GrownCuts, Growth, grow_pairs
from rocmax.losses.window_hinge import BoundConvex


@dataclass(frozen=True)
class PairwiseHinge(Loss):
    r"""Mean hinge loss over all pairs, the surrogate loss of SVM-AUC.

    .. math:: \frac{1}{mn} \sum_{i,j} \bigl(1 - (s_i - z_j)\bigr)_+

    It equals :class:`PartialAUCTight` on the window [0, 1]. The cost is O(N log N).

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from rocmax.losses import PairwiseHinge
    >>> PairwiseHinge().bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.0
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = True
    has_curvature: ClassVar[bool] = True

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundConvex:
        """Bind the loss to labels and weights."""
        return BoundConvex(y, sample_weight, 0.0, 1.0)

    def sum_scale(self, m: float, n: float) -> float:
        """Return the number of pairs."""
        return m * n

    def grow_cuts(self, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts:
        """Scale the cuts."""
        return grow_pairs(self.sum_scale, offset, growth)


@dataclass(frozen=True)
class PairwiseSquaredHinge(Loss):
    r"""Mean squared hinge loss over all pairs, the loss of the batch method BAM.

    .. math:: \frac{1}{mn} \sum_{i,j} \bigl(1 - (s_i - z_j)\bigr)_+^2

    The value, the gradient and Hessian products are computed by sorting and prefix sums in O(N log N).

    References
    ----------
    Chapelle and Keerthi, "Efficient algorithms for ranking with SVMs", Information Retrieval 2010.

    Examples
    --------
    >>> from rocmax.losses import PairwiseSquaredHinge
    >>> PairwiseSquaredHinge().bind([1, 0, 1, 0]).value_and_gradient([2.0, 1.5, 0.0, 0.0])[0]
    1.875
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    batch_unbiased: ClassVar[bool] = True

    def sum_scale(self, m: float, n: float) -> float:
        """Return the number of pairs."""
        return m * n

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundSquaredHinge:
        """Bind the loss to labels and weights."""
        return BoundSquaredHinge(y, sample_weight)


class BoundSquaredHinge(BoundLoss):
    """:class:`PairwiseSquaredHinge` bound to labels."""

    smooth = True

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient, from the first three moments of the active negatives of each positive."""
        s = self._checked(scores)
        pos = s[self.positive]
        pieces = cut(s, self, 0.0, self.n)
        # Margins 1 - s_i + z_j = gap_i + depth_j, with both measured from a common origin.
        gap = 1.0 - (pos - pieces.origin)
        depth = pieces.score - pieces.origin
        active = pieces.count_above(pos - 1.0)
        zeroth, first, second = (prefix(pieces.weight * depth**power)[active] for power in range(3))
        weight, norm = self.positive_weight, self.m * self.n
        value = weight @ (gap**2 * zeroth + 2 * gap * first + second) / norm
        pos_coef = -2 * weight * (gap * zeroth + first) / norm
        reached = charged(active, weight, pieces.score.size)
        reached_gap = charged(active, weight * gap, pieces.score.size)
        neg_coef = pieces.row_coefficients(2 * pieces.weight * (reached_gap + depth * reached) / norm)
        return float(value), self.scatter(self.positive, pos_coef, pieces.rows, neg_coef)

    def hessian_product(self, scores: ArrayLike) -> Callable[[Array], Array]:
        """Return ``v -> H v`` for the generalised Hessian in the scores; pairs at the kink are excluded."""
        s = self._checked(scores)
        pos = s[self.positive]
        pieces = cut(s, self, 0.0, self.n)
        active = pieces.count_above(pos - 1.0)
        row_active = pieces.row_index(active)
        rows = pieces.rows
        weight, norm = self.positive_weight, self.m * self.n
        zeroth = prefix(pieces.row_weight)[row_active]
        reached = charged(row_active, weight, rows.size)

        def product(vector: Array) -> Array:
            v_pos, v_neg = vector[self.positive], vector[rows]
            first = prefix(pieces.row_weight * v_neg)[row_active]
            pos_part = 2 * weight * (v_pos * zeroth - first) / norm
            reached_v = charged(row_active, weight * v_pos, rows.size)
            neg_part = 2 * pieces.row_weight * (v_neg * reached - reached_v) / norm
            return self.scatter(self.positive, pos_part, rows, neg_part)

        return product

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Sample the active pairs, each with second derivative 2."""
        s = self._checked(scores)
        pos = s[self.positive]
        pieces = cut(s, self, 0.0, self.n)
        active = pieces.row_index(pieces.count_above(pos - 1.0))
        i, j, mass = sample_bands(self.positive_weight, np.zeros_like(active), active, prefix(pieces.row_weight), count)
        weight = np.full(i.size, 2 * mass / (self.m * self.n * max(i.size, 1)))
        return Pairs(self.positive[i], pieces.rows[j], weight)
