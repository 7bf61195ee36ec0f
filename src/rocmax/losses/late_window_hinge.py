"""Pairwise hinge loss on a window of false-positive rates that does not start at 0, bound to labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax.losses._sorted import cut
from rocmax.losses.base import BoundLoss
from rocmax.losses.window_hinge import BoundConvex, WindowBound


class BoundHinge(WindowBound):
    """:class:`PartialAUCHinge` with ``min_fpr > 0``, bound to labels."""

    convex = False

    def __init__(
        self, y: ArrayLike, sample_weight: ArrayLike | None, min_fpr: float, max_fpr: float, min_tpr: float = 0.0
    ) -> None:
        super().__init__(y, sample_weight, min_fpr, max_fpr, min_tpr)
        self._plus, self._minus = (BoundConvex(y, sample_weight, 0.0, rate, min_tpr) for rate in (max_fpr, min_fpr))
        self._plus.norm = self._minus.norm = self.norm

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and generalised gradient, by one search in the sorted window."""
        s = self._checked(scores)
        selected = self.lowest.select(s)
        pos = s[selected.rows]
        pieces = cut(s, self, self.a, self.b)
        count, moment = pieces.cumulated
        order = np.argsort(pos)
        pos, weight, first = pos[order], selected.weight[order], pieces.start
        end = pieces.count_above(pos - 1.0, first, pieces.stop)
        held = count[end] - count[first]
        value = (moment[end] - moment[first]) - (pos - 1.0 - pieces.origin) * held
        gradient = self.scatter(*self.charge(pieces, selected, order, [(end, weight)], first))
        return float(weight @ value) / self.norm, gradient

    def split(self) -> tuple[BoundLoss, BoundLoss]:
        """Return ``b/(b-a) * tight(0, b)`` and ``a/(b-a) * tight(0, a)``, for the same ``min_tpr``."""
        return self._plus, self._minus
