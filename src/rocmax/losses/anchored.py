"""A loss of the ranking alone, held near given scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss


class Anchored(BoundLoss):
    r"""A loss of standardised scores plus a penalty on how far they move from an anchor.

    .. math:: R(t) + \frac{\lambda}{2} \, \mathrm{Var}(t - t_0), \qquad t = s / \mathrm{sd}(s)

    Shift and scale of the scores do not matter, so a bounded loss cannot gain by making all scores alike. For
    standardised scores the penalty is :math:`\lambda (1 - \mathrm{corr}(s, s_0))`. The distance is measured in scores,
    not in weights: it does not depend on how features are scaled, and without evidence in the data the scores stay
    where they are.

    Parameters
    ----------
    base : BoundLoss
        The loss, with its labels; shift-invariant.
    anchor : ndarray of shape (n_samples,)
        The scores to stay near; standardised here.
    strength : float
        The factor of the penalty.
    """

    def __init__(self, base: BoundLoss, anchor: Array, strength: float) -> None:
        self._base, self._strength = base, strength
        self._share_sample(base)
        self.convex, self.smooth = False, base.smooth
        self._share = base.weight / base.weight.sum()
        self._anchor = self._standardized(anchor)[0]

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Value and gradient; scores that all tie are as far from the anchor as scores without relation to it."""
        standard, spread = self._standardized(self._checked(scores))
        value, gradient = self._base.value_and_gradient(standard)
        move = standard - self._anchor
        pull = self._strength * self._share * move
        slope = gradient + pull
        # Only the part of the slope along which mean and spread stay the same reaches the scores.
        slope -= self._share * (slope.sum() + float(slope @ standard) * standard)
        return value + 0.5 * float(pull @ move), slope / spread

    def _standardized(self, scores: Array) -> tuple[Array, float]:
        centred = scores - float(self._share @ scores)
        spread = float(np.sqrt(self._share @ centred**2))
        return (centred / spread, spread) if spread > 0 else (np.zeros_like(scores), 1.0)
