"""Scale-invariant loss with a penalty on the distance from given scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.losses.bins import blocks


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
        self._base, self.strength = base, strength
        self._share_sample(base)
        self.convex, self.smooth = False, base.smooth
        # One number if all weights are equal, see BoundLoss.
        equal = base.weight.strides == (0,)
        self._share: Any = 1.0 / base.weight.size if equal else base.weight / base.weight.sum()
        self._anchor = self._standardized(anchor)[0]

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient; constant scores are standardised to zero.

        With the gradient ``g`` of the loss at the standardised scores ``t``, the weights ``p`` of the rows, which sum
        to 1, and the correlation ``c`` with the anchor ``t0``, the projection of the gradient on the directions that
        change neither mean nor standard deviation is ``g + p (strength (c t - t0) - sum(g) - (g . t) t)``.
        """
        standard, spread = self._standardized(self._checked(scores))
        value, slope = self._base.value_and_gradient(standard)
        # Half the mean square is 1 - c for standardised scores, without cancellation near the anchor.
        distance = 0.5 * self._mean_square(standard, self._anchor)
        used = np.flatnonzero(slope)
        total, along = float(slope[used].sum()), float(slope[used] @ standard[used])
        factor = self.strength * (1.0 - distance if spread > 0 else 0.0) - along
        # In place and by blocks, because temporary arrays of all rows take more memory than the loss.
        for rows in blocks(slope.size):
            part = factor * standard[rows]
            part -= self.strength * self._anchor[rows]
            part -= total
            part *= self._share_of(rows)
            slope[rows] += part
        slope /= spread or 1.0
        return value + self.strength * distance, slope

    def _standardized(self, scores: Array) -> tuple[Array, float]:
        """Return standardised scores and their standard deviation; zeros and 0 if it is zero."""
        mean = float(scores.mean()) if isinstance(self._share, float) else float(self._share @ scores)
        centred = scores - mean
        spread = float(np.sqrt(self._mean_square(centred)))
        if spread > 0:
            centred /= spread
        else:
            centred[:] = 0.0
        return centred, spread

    def _mean_square(self, values: Array, minus: Array | None = None) -> float:
        """Return the weighted mean square of values or of differences."""
        total = 0.0
        for rows in blocks(values.size):
            part = values[rows] if minus is None else values[rows] - minus[rows]
            total += float((part * self._share_of(rows)) @ part)
        return total

    def _share_of(self, rows: slice) -> Any:
        return self._share if isinstance(self._share, float) else self._share[rows]
