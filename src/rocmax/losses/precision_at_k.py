"""Losses for the top of the ranking: precision at k, and the break-even point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax._window import check_top, top_weight
from rocmax.losses._cumulative import CumulativeScores
from rocmax.losses.base import BoundLoss, Loss
from rocmax.losses.growth import GrownCuts, Growth, grow_top


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
    k : int or float
        Number of rows as an int, or fraction of all rows, above 0 and at most 1, as a float.
    reference : {"best", "positives"}, default="best"
        Reference labelling: the mean of the best labellings, or the true labels.

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
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = False

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
        """Return the weight of the rows labelled positive, or of the positives if it is smaller."""
        return min(m, top_weight(self.k, m + n)) if self.reference == "best" else m

    def grow_cuts(self, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts | None:
        """Add the best labels of the new rows."""
        if self.reference != "best":
            return None
        k_old, k = (top_weight(self.k, m + n) for m, n in ((growth.m_old, growth.n_old), (growth.m, growth.n)))
        return grow_top(k_old, k, offset, growth)


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

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    batch_unbiased: ClassVar[bool] = False

    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundTop:
        """Bind the loss to labels and weights."""
        return BoundTop(y, sample_weight, None, "best")

    def sum_scale(self, m: float, n: float) -> float:
        """Return the weight of the positives."""
        return m

    def grow_cuts(self, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts:
        """Add the best labels of the new rows."""
        return grow_top(growth.m_old, growth.m, offset, growth)


class BoundTop(BoundLoss):
    """:class:`PrecisionAtK` bound to labels; ``k=None`` stands for the weight of the positives.

    Attributes
    ----------
    k : float
        Total weight of the top rows.
    """

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
        # Labelling a positive lowers the error by 1 / k.
        lowered = s.copy()
        lowered[self.positive] -= 1.0 / (self.k * self._scale)
        taken, level = self._labelled(lowered)
        taken *= self.weight
        # Differences from the level keep the sums small; the level is added back with the total weight of each side.
        labelled = float(taken @ np.where(taken > 0, lowered - level, 0.0)) + self.k * level
        referred = float(self._reference @ np.where(self._reference > 0, s - level, 0.0))
        referred += float(self._reference.sum()) * level
        return 1.0 + self._scale * (labelled - referred), self._scale * (taken - self._reference)

    def _labelled(self, scores: Array) -> tuple[Array, float]:
        if self._present is None:
            return label_top(scores, self.k, self._weight)
        taken = np.zeros_like(scores)
        taken[self._present], level = label_top(scores[self._present], self.k, self._weight)
        return taken, level


def label_top(scores: Array, k: float, weight: Array | None = None) -> tuple[Array, float]:
    """Return the share of each row in the top rows of total weight ``k``, and the lowest score among them.

    Tied rows get equal shares.
    """
    level, part = CumulativeScores(scores.copy(), weight).cut(k)
    return np.where(scores == level, part, (scores > level).astype(np.float64)), level
