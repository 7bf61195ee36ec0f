"""Objective of boosted trees on scores, labels and weights, independent of the library that grows the trees."""

from __future__ import annotations

import numpy as np

from rocmax._typing import Array, Bools
from rocmax.losses import Loss, WindowPairs

# The objective of the default: pairs charged by a sigmoid, negatives beyond the first 5 % with falling weights.
DEFAULT_LOSS = WindowPairs("sigmoid", max_fpr=0.05, soft_tail=True, scale=2.0)
# Sum of the curvatures in the first round of the loss, per unit of weight. It makes limits on the sum of the curvatures
# in a leaf comparable with those of the binary objective.
_CURVATURE = 0.1
# Sum of the curvatures below which all pairs are in order; a larger factor would overflow if they were not later on.
_LEAST_CURVATURE = 1e-9


def relative_weights(weight: Array | None) -> Array | None:
    """Return the weights divided by the mean of those above zero, so that their scale has no effect on the trees.

    The limits and penalties of the engines on the sum of the curvatures in a leaf are for weights of about one: with
    small weights, no leaf would be split.
    """
    if weight is None:
        return None
    weight = np.asarray(weight, dtype=np.float64)
    present = weight[weight > 0]
    return weight / present.mean() if present.size else weight


class TreeObjective:
    """Gradient and curvature for each round of one fit: binary log loss first, then a loss of :mod:`rocmax.losses`.

    An object belongs to one fit: it counts the rounds.

    Parameters
    ----------
    labels : ndarray of bool
        Whether a row is positive.
    weight : ndarray or None
        Weights of the rows, of which only the ratios matter; None if all are equal.
    warmup : int
        Number of rounds of binary log loss at the start.
    loss : Loss, default=None
        A loss whose bound form has ``gradient_and_curvature``; None is ``DEFAULT_LOSS``.

    Attributes
    ----------
    offset : float
        Constant that is added to the scores for the binary log loss. If all scores are equal in the first round, it
        raises them to the logarithm of the odds; otherwise it is 0. The scores of the model do not contain it.
    n_rounds : int
        Number of rounds so far.
    """

    def __init__(self, labels: Bools, weight: Array | None, warmup: int, loss: Loss | None = None) -> None:
        weight = relative_weights(weight)
        self._bound = (DEFAULT_LOSS if loss is None else loss).bind(labels, weight)
        if not self._bound.has("gradient_and_curvature"):
            raise TypeError(f"loss must have a diagonal curvature, such as WindowPairs; got {loss!r}")
        self._sign = np.where(labels, 1.0, -1.0)
        self._weight = None if weight is None else self._bound.weight
        self._warmup = warmup
        self._factor: float | None = None
        self.offset = 0.0
        self.n_rounds = 0

    def __call__(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient and curvature of the next round, one each per row."""
        scores = np.asarray(scores, dtype=np.float64)
        if self.n_rounds == 0 and (scores == scores[0]).all():
            self.offset = float(np.log(self._bound.m / self._bound.n)) - float(scores[0])
        self.n_rounds += 1
        if self.n_rounds <= self._warmup:
            return self._binary(scores + self.offset)
        gradient, curvature = self._bound.gradient_and_curvature(scores)
        if self._factor is None:
            total = max(float(curvature.sum()), _LEAST_CURVATURE)
            self._factor = _CURVATURE * (self._bound.m + self._bound.n) / total
        gradient *= self._factor
        curvature *= self._factor
        return gradient, curvature

    def _binary(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient and second derivative of the log loss, by the formulas of LightGBM."""
        with np.errstate(over="ignore"):
            size = 1.0 / (1.0 + np.exp(self._sign * scores))
        gradient, curvature = -self._sign * size, size * (1.0 - size)
        if self._weight is not None:
            gradient *= self._weight
            curvature *= self._weight
        return gradient, curvature
