"""Penalties that are added to the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rocmax._params import Parameters


@dataclass(frozen=True)
class SquaredL2(Parameters):
    """L2 regularization: the objective is ``1/2 |w|^2`` plus ``C`` times the loss, as in support vector machines.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.

    Attributes
    ----------
    rotation_invariant : bool
        Whether the penalty is invariant to rotations of the weights, so that a solver may work in the span of the rows.
    """

    C: float = 1.0
    rotation_invariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (0 < self.C < np.inf):
            raise ValueError(f"C must be a finite number > 0; got {self.C!r}")

    def value(self, w: NDArray[np.float64]) -> float:
        """Return ``1/2 |w|^2``."""
        return 0.5 * float(w @ w)

    def gradient(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``w``."""
        return w


@dataclass(frozen=True)
class Unpenalized(Parameters):
    """No penalty on the weights, for a loss that regularizes the scores itself.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    """

    C: float = 1.0
    rotation_invariant: ClassVar[bool] = True

    def value(self, w: NDArray[np.float64]) -> float:
        """Return 0."""
        return 0.0

    def gradient(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return zeros."""
        return np.zeros_like(w)
