"""Scale-invariant loss with a penalty on the distance from given scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss


class Anchored(BoundLoss):
    r"""Loss of standardised scores plus a penalty on their distance from an anchor.

    .. math:: R(t) + \frac{\lambda}{2} \, \mathrm{Var}(t - t_0), \qquad t = s / \mathrm{sd}(s)

    The objective is invariant to shift and scale of the scores, so a bounded loss cannot be decreased by making all
    scores equal. For standardised scores the penalty is :math:`\lambda (1 - \mathrm{corr}(s, s_0))`. The distance is
    measured in scores, not in weights, so it does not depend on the scale of the features.

    Parameters
    ----------
    base : BoundLoss
        Shift-invariant loss, bound to labels.
    anchor : ndarray of shape (n_samples,)
        Reference scores; they are standardised internally.
    strength : float
        Strength :math:`\lambda` of the penalty.
    """

    def __init__(self, base: BoundLoss, anchor: Array, strength: float) -> None:
        self._base, self._strength = base, strength
        self._share_sample(base)
        self.convex, self.smooth = False, base.smooth
        self._share = base.weight / base.weight.sum()
        self._anchor = self._standardized(anchor)[0]

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient; constant scores are standardised to zero."""
        standard, spread = self._standardized(self._checked(scores))
        value, gradient = self._base.value_and_gradient(standard)
        move = standard - self._anchor
        pull = self._strength * self._share * move
        slope = gradient + pull
        # Project out the directions that change the mean or the standard deviation of the scores.
        slope -= self._share * (slope.sum() + float(slope @ standard) * standard)
        return value + 0.5 * float(pull @ move), slope / spread

    def _standardized(self, scores: Array) -> tuple[Array, float]:
        centred = scores - float(self._share @ scores)
        spread = float(np.sqrt(self._share @ centred**2))
        return (centred / spread, spread) if spread > 0 else (np.zeros_like(scores), 1.0)
