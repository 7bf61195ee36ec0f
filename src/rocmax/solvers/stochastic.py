"""Stochastic subgradient steps on mini-batches: one pass over a stream, with the memory of one batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._support import Array
from rocmax.losses.base import Loss


class MiniBatchSteps:
    r"""Projected subgradient steps :math:`w \leftarrow \Pi(w - \eta t^{-1/2} g)`, one per batch, and their mean.

    For a loss that depends on a shift of the scores, an intercept can be updated as well.

    Parameters
    ----------
    loss : Loss
        A convex loss; it is bound to each batch.
    n_features : int
        Number of features.
    learning_rate : float or None
        Length of the first step. With None, a step along the difference of the class means, which is the direction of
        every loss at zero weights, separates the mean scores by the margin 1.
    radius : float
        Upper bound on the L2 norm of the weights, to which each step is projected; may be infinite.
    average : {"linear", "uniform"}, default="linear"
        Weights of the steps in the mean: proportional to the number of the step, so that early steps have little
        influence, or equal.
    fit_intercept : bool, default=True
        Whether to update an intercept if the loss depends on a shift of the scores.

    Attributes
    ----------
    w, b : ndarray, float
        Current weights and intercept.
    mean_w, mean_b : ndarray, float
        Means of the weights and of the intercept after each step.
    n_steps : int
        Number of steps so far.

    References
    ----------
    Kar, Narasimhan and Jain, "Online and stochastic gradient methods for non-decomposable loss functions", NIPS 2014;
    Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization", ICML 2013, for the linear weights.
    """

    def __init__(
        self,
        loss: Loss,
        n_features: int,
        learning_rate: float | None,
        radius: float,
        average: str = "linear",
        fit_intercept: bool = True,
    ) -> None:
        self._loss, self._learning_rate, self._radius = loss, learning_rate, radius
        self._uniform, self._moves_intercept = average == "uniform", fit_intercept and not loss.shift_invariant
        self.w = np.zeros(n_features)
        self.mean_w = np.zeros(n_features)
        self.b = self.mean_b = 0.0
        self.n_steps = 0

    def step(self, X: Any, positive: NDArray[np.bool_], weight: Array | None) -> None:
        """Take a step along the subgradient of one batch, which must contain both classes."""
        if self._learning_rate is None:
            apart = np.asarray(X[positive].mean(axis=0) - X[~positive].mean(axis=0)).ravel()
            size = float(apart @ apart)
            self._learning_rate = 1.0 / size if size > 0 else None
        loss = self._loss.bind(positive, weight)
        _, coefficients = loss.value_and_gradient(X @ self.w + self.b)
        gradient = coefficients @ X
        slope = float(coefficients.sum()) if self._moves_intercept else 0.0
        self.n_steps += 1
        length = (self._learning_rate or 0.0) / np.sqrt(self.n_steps)
        self.w = self.w - length * gradient
        self.b -= length * slope
        norm = float(np.sqrt(self.w @ self.w))
        if norm > self._radius:
            self.w *= self._radius / norm
        share = 1.0 / self.n_steps if self._uniform else 2.0 / (self.n_steps + 1.0)
        self.mean_w += share * (self.w - self.mean_w)
        self.mean_b += share * (self.b - self.mean_b)
