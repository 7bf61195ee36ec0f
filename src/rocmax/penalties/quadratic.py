"""Penalties that are added to the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rocmax._params import Parameters


@dataclass(frozen=True)
class SquaredL2(Parameters):
    """``1/2 |w|^2`` next to ``C`` times the loss, as in every support vector machine.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.

    Attributes
    ----------
    rotation_invariant : bool
        Whether a rotation of the weights changes nothing, so that a solver may work in the span of the rows.
    """

    C: float = 1.0
    rotation_invariant: ClassVar[bool] = True

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
class Unpenalized(Parameters):
    """No penalty on the weights, for a loss that holds the scores in place by itself.

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
