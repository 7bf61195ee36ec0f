"""Conversion of cutting planes of a loss to a larger set of rows; see :mod:`rocmax.losses.growth`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rocmax._typing import Array, Bools
from rocmax.losses import Growth, Loss
from rocmax.operators import Operator, as_operator
from rocmax.solvers import Cuts


class GrowingRows(NamedTuple):
    """All rows with their scores at the current weights; the cuts are based on the first ``n_old`` rows.

    ``sums`` are the sums of the old rows by class, negatives first.
    """

    X: Any
    operator: Operator
    positive: Bools
    scores: Array
    n_old: int
    sums: Array

    def counts(self, *, old: bool = False) -> tuple[int, int]:
        """Return the numbers of positives and negatives."""
        positive = self.positive[: self.n_old] if old else self.positive
        m = int(np.count_nonzero(positive))
        return m, positive.size - m


def class_sums(X: Any, positive: Bools) -> Array:
    """Return the sums of the rows by class, negatives first."""
    operator = as_operator(X)
    return np.array([operator.rmatvec((positive == side).astype(np.float64)) for side in (False, True)])


def no_cuts(n_features: int) -> Cuts:
    """Return an empty set of cuts."""
    return Cuts(np.empty((0, n_features)), np.empty(0), [])


def carry(loss: Loss, cuts: Cuts, rows: GrowingRows) -> Cuts:
    """Return the cuts for all rows; none if the loss does not support it or a class was missing before."""
    nothing = no_cuts(cuts.gradient.shape[1])
    if not len(cuts.offset) or not min(rows.counts(old=True)):
        return nothing
    new = slice(rows.n_old, None)
    growth = Growth(*rows.counts(old=True), rows.positive[new], rows.scores[new])
    grown = loss.grow_cuts(cuts.offset, cuts.tables, growth)
    if grown is None:
        return nothing
    gradient = grown.share * cuts.gradient
    if grown.of_rows is not None:
        gradient += grown.of_classes @ rows.sums + as_operator(rows.X[new]).rmatvec(grown.of_rows)
    return Cuts(gradient, grown.offset, grown.tables)
