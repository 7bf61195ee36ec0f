"""A loss held near given scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rocmax.losses.base import Array, BoundLoss


class Anchored(BoundLoss):
    r"""A loss plus a penalty on how far the scores move from an anchor.

    .. math:: R(s) + \frac{\lambda}{2} \, \mathrm{Var}(s - s_0)

    The distance is measured in scores, not in weights: it does not depend on how features are scaled, and without
    evidence in the data the scores stay where they are. A common shift of all scores is no move.

    Parameters
    ----------
    base : BoundLoss
        The loss, with its labels.
    anchor : ndarray of shape (n_samples,)
        The scores to stay near.
    strength : float
        The factor of the penalty.
    """

    def __init__(self, base: BoundLoss, anchor: Array, strength: float) -> None:
        self._base, self._anchor, self._strength = base, anchor, strength
        self._share_sample(base)
        self.convex, self.smooth = base.convex, base.smooth
        self._share = base.weight / base.weight.sum()

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Value and gradient of the sum."""
        value, gradient = self._base.value_and_gradient(scores)
        move = np.asarray(scores, dtype=np.float64) - self._anchor
        move = move - float(self._share @ move)
        pull = self._strength * self._share * move
        return value + 0.5 * float(pull @ move), gradient + pull
