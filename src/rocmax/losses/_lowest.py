"""Selection of the positives with the lowest scores, which are those above a true-positive rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rocmax._typing import Array, Bools, Index
from rocmax._window import window_end
from rocmax.losses._sorted import cut, prefix, soft_rank
from rocmax.losses.base import BoundLoss


class Selected(NamedTuple):
    """Rows of positives, the weight of each that is selected, and the sum of these weights."""

    rows: Index
    weight: Array
    total: float


@dataclass(frozen=True)
class _Mirrored:
    """Positives in the role of the negatives: with minus the scores, :func:`cut` ranks them from the lowest score."""

    negative: Index
    is_negative: Bools
    weight: Array
    n: float

    @property
    def n_negative(self) -> int:
        """Number of rows."""
        return self.negative.size


class LowestPositives:
    """Positives of the lowest scores with a share ``1 - min_tpr`` of the weight.

    A threshold below a positive of these ranks has a true-positive rate above ``min_tpr``. A positive that straddles
    the end is selected in part, and tied positives share their selected weight, as the negatives of a window do.

    Parameters
    ----------
    sample : BoundLoss
        Sample with the positives and the weights.
    min_tpr : float
        True-positive rate above which the positives are selected; 0 selects all.
    soft_tail : bool, default=False
        Whether the other positives have the share ``size / rank``, which falls with the rank from the lowest score,
        instead of 0.

    Attributes
    ----------
    size : float
        Weight of the positives above ``min_tpr``.
    is_part : bool
        Whether the positives differ in their shares.
    """

    def __init__(self, sample: BoundLoss, min_tpr: float, soft_tail: bool = False) -> None:
        self._all = Selected(sample.positive, sample.positive_weight, sample.m)
        self.size = sample.m if min_tpr == 0 else window_end(sample.m, 1.0 - min_tpr)
        self.is_part, self._soft_tail = self.size < sample.m, soft_tail
        if self.is_part:
            is_positive = ~sample.is_negative & (sample.weight > 0)
            self._mirrored = _Mirrored(sample.positive, is_positive, sample.weight, sample.m)

    def select(self, scores: Array, width: float = 0.0) -> Selected:
        """Return the selected positives, in ascending order of score unless all are selected.

        With ``width > 0`` the end is soft: a positive of score ``s`` is selected with the share
        ``clip(1/2 + (theta - s)/width, 0, 1)``, where ``theta`` is such that the total weight does not change.
        """
        if not self.is_part:
            return self._all
        if self._soft_tail:
            return self._with_tail(scores)
        pieces = cut(-scores, self._mirrored, 0.0, self.size, width=width)
        weight = pieces.window_row_weights()
        rows = weight > 0
        return Selected(pieces.rows[rows], weight[rows], float(weight.sum()))

    def _with_tail(self, scores: Array) -> Selected:
        pieces = cut(-scores, self._mirrored, 0.0, self._mirrored.n, merge_ties=True)
        weight = pieces.row_coefficients(np.diff(soft_rank(prefix(pieces.weight), self.size)))
        return Selected(pieces.rows, weight, float(weight.sum()))
