"""The contract of sums over pairs: what a solver for kernel machines needs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Soft(NamedTuple):
    """Multipliers at some scores, summed up.

    ``hinge`` is the sum of ``weight * max(t, 0)``, ``total`` the sum of ``weight * a``, and ``rows`` has for each
    example the sum over its pairs, with plus for a positive and minus for a negative.
    """

    hinge: float
    total: float
    rows: Array


class PairSums(Protocol):
    """What a solver for kernel machines needs of the pairs."""

    margin: float
    n_samples: int

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the multipliers at the scores, softened over ``width`` (0: not at all)."""

    def slope(self, scores: Array, width: float) -> Callable[[Array], Array]:
        """Return ``v -> -D v`` with ``D`` the derivative of ``soft(scores, width).rows``: positive semidefinite."""

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a pair whose multiplier moves; the slope is zero on all others."""

    def slope_matrix(self, scores: Array, width: float, rows: Index) -> Array:
        """Return the matrix of :meth:`slope` on some rows that hold all of :meth:`moving`."""

    def anchored(self, scores: Array, width: float) -> PairSums | None:
        """Return the same pairs, softened from their multipliers at the scores; None where they are not listed."""
