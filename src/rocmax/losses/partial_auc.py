"""Hinge surrogates of the partial AUC: tight and structural (convex), pairwise (a difference of convex losses)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax._window import check_corner, window_end
from rocmax.losses.base import BoundLoss, Loss
from rocmax.losses.growth import GrownCuts, Growth, grow_pairs
from rocmax.losses.late_window_hinge import BoundHinge
from rocmax.losses.window_hinge import BoundConvex


@dataclass(frozen=True)
class _WindowLoss(Loss):
    """Parameters shared by the losses on a window of false-positive rates and above a true-positive rate."""

    min_fpr: float = 0.0
    max_fpr: float = 0.1
    min_tpr: float = 0.0

    batch_unbiased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_corner(self.min_fpr, self.max_fpr, self.min_tpr)

    def sum_scale(self, m: float, n: float) -> float:
        """Return the number of pairs in the window."""
        return (1.0 - self.min_tpr) * m * (window_end(n, self.max_fpr) - window_end(n, self.min_fpr))


class PartialAUCTight(_WindowLoss):
    r"""Tight convex surrogate of the partial AUC.

    With ``m`` positives of scores :math:`s_i`, the negatives' scores :math:`z_1 \ge z_2 \ge \dots` and the window
    :math:`(a, b]` of ranks, ``a = n * min_fpr`` and ``b = n * max_fpr``,

    .. math:: \frac{1}{m(b-a)} \sum_i \max_{0 \le r \le b} \sum_{j \le r} \bigl(1[j > a] - (s_i - z_j)\bigr).

    Ranks are real numbers: a negative that straddles an end of the window counts in part. For ``min_fpr=0`` the loss
    is the pairwise hinge on the negatives in the window. The cost is O(N + k log k) for ``k`` negatives up to the end
    of the window; the remaining negatives are not sorted.

    With ``min_tpr > 0`` the sum is over the ``(1 - min_tpr) * m`` positives with the lowest scores, and their number
    replaces ``m`` in the divisor. Only these positives determine the curve above ``min_tpr``. Their ranks are
    real numbers, too. No term increases with the score of its positive, so the sum is a maximum over all subsets of
    positives of that size, and convex. Swapping the classes and the sign of the scores turns ``max_fpr=b`` into
    ``min_tpr=1-b, max_fpr=1``.

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1.

    References
    ----------
    Narasimhan and Agarwal, "SVM_pAUC^tight: a new support vector method for optimizing partial AUC based on a tight
    convex upper bound", KDD 2013.

    Examples
    --------
    >>> from rocmax.losses import PartialAUCTight
    >>> bound = PartialAUCTight(max_fpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> value, gradient = bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])
    >>> value
    1.25
    >>> gradient
    array([-0.25,  0.5 ,  0.  , -0.5 ,  0.25,  0.  ])

    Only the pairs of the lower positive, for true-positive rates above one half:

    >>> bound = PartialAUCTight(max_fpr=0.5, min_tpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])[0]
    2.25
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    has_curvature: ClassVar[bool] = True

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundConvex:
        """Bind the loss to labels and weights."""
        return BoundConvex(y, sample_weight, self.min_fpr, self.max_fpr, self.min_tpr)

    def grow_cuts(self, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts | None:
        """Scale the cuts if ``min_fpr=0``; otherwise the first ranks change with new rows, and cuts cannot be kept."""
        return grow_pairs(self.sum_scale, offset, growth) if self.min_fpr == 0 else None


class PartialAUCStructural(_WindowLoss):
    r"""Structural-SVM surrogate of the partial AUC, looser than the tight one.

    It equals :class:`PartialAUCTight` with ``r`` up to ``n``, also if ``min_tpr > 0``; the negatives beyond the window
    have margin 0:

    .. math:: \frac{1}{m(b-a)} \sum_i \max_{0 \le r \le n} \sum_{j \le r} \bigl(1[a < j \le b] - (s_i - z_j)\bigr).

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1.

    References
    ----------
    Narasimhan and Agarwal, "A structural SVM based approach for optimizing partial AUC", ICML 2013.

    Examples
    --------
    >>> from rocmax.losses import PartialAUCStructural
    >>> bound = PartialAUCStructural(max_fpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])[0]
    1.25
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    has_curvature: ClassVar[bool] = True

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundConvex:
        """Bind the loss to labels and weights."""
        return BoundConvex(y, sample_weight, self.min_fpr, self.max_fpr, self.min_tpr, beyond=True)


class PartialAUCHinge(_WindowLoss):
    r"""Pairwise hinge on the negatives in the window; not convex when ``min_fpr > 0``.

    .. math:: \frac{1}{m(b-a)} \sum_i \sum_{a < j \le b} \bigl(1 - (s_i - z_j)\bigr)_+

    With ``min_tpr > 0`` only the positives with the lowest scores are in the sum, as in :class:`PartialAUCTight`. The
    loss equals ``(b * tight(0, b) - a * tight(0, a)) / (b - a)``, a difference of convex functions that
    ``bind(y).split()`` returns.

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1.

    References
    ----------
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017, Eq. 9 and section 6.

    Examples
    --------
    >>> from rocmax.losses import PartialAUCHinge
    >>> bound = PartialAUCHinge(min_fpr=0.25, max_fpr=0.5).bind([1, 0, 0, 1, 0, 0])
    >>> bound.value_and_gradient([2.0, 1.5, 0.0, 0.0, 1.0, -1.0])[0]
    1.0
    """

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundLoss:
        """Bind the loss to labels and weights; with ``min_fpr=0`` this is the tight loss, and convex."""
        if self.min_fpr == 0:
            return BoundConvex(y, sample_weight, 0.0, self.max_fpr, self.min_tpr)
        return BoundHinge(y, sample_weight, self.min_fpr, self.max_fpr, self.min_tpr)
