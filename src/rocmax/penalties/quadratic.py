"""Penalties that are added to the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SquaredL2:
    """``1/2 |w|^2`` next to ``C`` times the loss, as in every support vector machine.

    Parameters
    ----------
    C : float
        Weight of the loss.
    """

    C: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.C < np.inf):
            raise ValueError(f"C needs a finite value > 0; got {self.C!r}")

    def value(self, w: NDArray[np.float64]) -> float:
        """Return ``1/2 |w|^2``."""
        return 0.5 * float(w @ w)

    def gradient(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``w``."""
        return w


@dataclass(frozen=True)
class Unpenalized:
    """No penalty on the weights, for a loss that holds the scores in place by itself."""

    C: float = 1.0

    def value(self, w: NDArray[np.float64]) -> float:
        """Return 0."""
        return 0.0

    def gradient(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return zeros."""
        return np.zeros_like(w)
