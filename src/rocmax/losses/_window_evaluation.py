"""Bounds of a loss on a window at given scores, from negatives that are sorted once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rocmax._typing import Array, Index
from rocmax.losses._sorted import Descending, Pieces, descending
from rocmax.losses.base import Evaluation, Pairs

if TYPE_CHECKING:
    from rocmax.losses.window_hinge import BoundConvex

# Largest part of the rows that is kept in sorted order for further bounds at the same scores.
_KEPT = 0.25


class Coefficients(NamedTuple):
    """Rows of positives and of negatives with their coefficients in a gradient; those of other rows are zero."""

    pos_rows: Index
    pos_coef: Array
    neg_rows: Index
    neg_coef: Array

    def product(self, vector: Array) -> float:
        """Return the product of the gradient with a vector."""
        return float(self.pos_coef @ vector[self.pos_rows]) + float(self.neg_coef @ vector[self.neg_rows])


class WindowEvaluation(Evaluation):
    """Values and affine minorants of :class:`BoundConvex` at given scores.

    If they are few, the sorted negatives are kept, for bounds of the same or a smaller width.
    """

    loss: BoundConvex

    def __init__(self, loss: BoundConvex, scores: Array) -> None:
        super().__init__(loss, scores)
        self._ranked: tuple[float, Descending] | None = None
        self._sparse: tuple[float, Coefficients] | None = None

    def _computed(self, width: float) -> tuple[float, Array]:
        found = self._coefficients(width)
        return self._values[width], self.loss.scatter(*found)

    def _coefficients(self, width: float) -> Coefficients:
        """Return the non-zero part of the gradient, which is kept until another width is asked for."""
        if self._sparse is None or self._sparse[0] != width:
            self._values[width], charges = self.loss.charges(self.scores, width, self._pieces(width))
            self._sparse = width, self.loss.charge(*charges)
        return self._sparse[1]

    def slope(self, width: float, direction: Array) -> float:
        """Return the product of the gradient of the minorant with a vector of scores."""
        return self._coefficients(width).product(direction)

    def value(self, width: float) -> float:
        """Return the value of the minorant, without its gradient."""
        if width not in self._values:
            self._values[width] = self.loss.charges(self.scores, width, self._pieces(width))[0]
        return self._values[width]

    def curvature(self, count: int, width: float) -> Pairs:
        """Return pairs that sample the Hessian; see :meth:`BoundConvex.curvature`."""
        return self.loss.pairs(self.scores, count, width, self._pieces(width))

    def _pieces(self, width: float) -> Pieces:
        if self._ranked is None or self._ranked[0] < width:
            loss = self.loss
            ranked = descending(self.scores, loss, loss.b, width, loss.beyond)
            if ranked.rows.size > _KEPT * loss.n_samples:
                return loss.cut(self.scores, width, ranked)
            self._ranked = width, ranked
        return self.loss.cut(self.scores, width, self._ranked[1])
