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
    """What a solver for kernel machines needs of the pairs.

    ``goal`` is the margin for a positive and 0 for a negative: a pair is short by the difference of ``goal - scores``.
    """

    margin: float
    n_samples: int
    goal: Array

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the multipliers at the scores, softened over ``width`` (0: not at all)."""

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a pair whose multiplier moves; the slope is zero on all others."""

    def slope(self, scores: Array, width: float, rows: Index) -> Callable[[Array], Array]:
        """Return ``v -> -D v`` with ``D`` the derivative of ``soft(scores, width).rows``: positive semidefinite.

        It is given on some rows that hold all of :meth:`moving`; several vectors are the rows of a matrix.
        """

    def anchored(self, scores: Array, width: float) -> PairSums | None:
        """Return the same pairs, softened from their multipliers at the scores; None where they are not listed."""
