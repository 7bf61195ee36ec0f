"""Scale-invariant loss with a penalty on the distance from given scores, on shards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.sharded.objective import ShardedLoss
from rocmax.sharded.vectors import Binned, Coefficients, Linear, Scores


class ShardedAnchored(BoundLoss):
    r"""The objective of :class:`~rocmax.losses.anchored.Anchored` for scores in shards.

    .. math:: R(t) + \frac{\lambda}{2} \, \mathrm{Var}(t - t_0), \qquad t = s / \mathrm{sd}(s)

    Parameters
    ----------
    base : ShardedLoss
        Shift-invariant loss; it is evaluated on bins.
    anchor : Scores
        Reference scores; they are standardised internally.
    strength : float
        Strength :math:`\lambda` of the penalty.
    """

    convex = False

    def __init__(self, base: ShardedLoss, anchor: Scores, strength: float) -> None:
        self._base, self._anchor, self._strength = base, anchor, strength
        self._share_sample(base)

    def value_and_gradient(self, scores: Any) -> tuple[float, Any]:
        """Return value and gradient; constant scores are standardised to zero."""
        (mean, spread), (mean_0, spread_0), correlation = self._moments(scores)
        bins, sums = self._base.bins_at(scores)
        value, slopes = bins.minorant(lambda y, w: _Standardized(self._base.bind(y, w), mean, spread))
        total, strength = self._base.m + self._base.n, self._strength
        rise = float(slopes @ bins.weight)
        along = float(slopes @ (bins.total - mean * bins.weight)) / spread + strength * (1.0 - correlation)
        # Project out the directions that change the mean or the standard deviation of the scores.
        own = (strength - along) / (total * spread**2)
        coefficients = Coefficients(
            scores.space,
            [
                Binned(scores, bins, slopes, sums, 1.0 / spread),
                Linear(scores, -mean, own),
                Linear(self._anchor, -mean_0, -strength / (total * spread * spread_0)),
                Linear(scores.space.product(np.zeros_like(scores.w)), 1.0, -rise / (total * spread)),
            ],
        )
        return value + strength * (1.0 - correlation), coefficients

    def _moments(self, scores: Scores) -> tuple[tuple[float, float], tuple[float, float], float]:
        """Return mean and standard deviation of the scores and of the anchor, and their correlation."""
        vectors = list(dict.fromkeys([*scores.terms, *self._anchor.terms]))
        gram = np.sum(self._base.space.ask(vectors, "gram", [vector.key for vector in vectors]), axis=0)
        weight = float(gram[-1, -1])
        mean = gram[-1, :-1] / weight
        covariance = gram[:-1, :-1] / weight - np.outer(mean, mean)
        one, two = (np.array([s.terms.get(vector, 0.0) for vector in vectors]) for s in (scores, self._anchor))
        spread, spread_0 = (float(np.sqrt(max(a @ covariance @ a, 0.0))) or 1.0 for a in (one, two))
        correlation = float(one @ covariance @ two) / (spread * spread_0)
        return (float(mean @ one), spread), (float(mean @ two), spread_0), min(correlation, 1.0)


class _Standardized(BoundLoss):
    """Loss of standardised scores, with the gradient in these."""

    def __init__(self, base: BoundLoss, mean: float, spread: float) -> None:
        self._base, self._mean, self._spread = base, mean, spread

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient."""
        return self._base.value_and_gradient((np.asarray(scores) - self._mean) / self._spread)
