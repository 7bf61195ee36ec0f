r"""Extension of cuts of a loss to additional rows.

The loss is a maximum over choices of labels, and a cut is the value of one choice. A choice for the previous
rows and any choice for the new rows together are a choice for all rows. They give a cut of the larger problem after its
terms are scaled for the new numbers of positives and negatives. With ``'`` for all rows, ``S`` for the previous rows
and ``N`` for the new rows:

- Labels of which ``k`` are positive (precision at k, break-even point): labels of :math:`S` with :math:`k_S` positive
  ones and the best labels of :math:`N`, at the current weights, with :math:`k' - k_S`. The error :math:`1 - tp/k'` and
  the reference are those of all rows.
- Any labels (F-beta, G-mean at the best shift): a cut is a mixture of labellings that on average label :math:`m` rows.
  It is coupled with the best such mixture for :math:`N`, so that on average :math:`m'` rows are labeled. The error is
  that of the summed tables, with :math:`m'` and :math:`n'`.

Both remain nearly tight if the new optimum is close to the previous one. Cuts of losses on pairs are not extended: they
would contain the old pairs only, and saved no passes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from rocmax._rounding import top_weight
from rocmax._support import Array, Bools
from rocmax.losses.base import Loss
from rocmax.losses.contingency import BreakEven, FreeShift, PrecisionAtK
from rocmax.losses.ranks import CumulativeScores


class Growth(NamedTuple):
    """Numbers of previous positives and negatives, and labels and scores of the new rows at the current weights."""

    m_old: int
    n_old: int
    positive: Bools
    scores: Array

    @property
    def m(self) -> int:
        """Number of all positives."""
        return self.m_old + int(np.count_nonzero(self.positive))

    @property
    def n(self) -> int:
        """Number of all negatives."""
        return self.n_old + self.positive.size - int(np.count_nonzero(self.positive))


class GrownCuts(NamedTuple):
    """Cuts of the previous rows, extended to all rows, in terms of scores.

    The old gradients are multiplied by ``share``; each previous negative and positive adds one of ``of_classes`` to all
    gradients, and each new row one of ``of_rows``.
    """

    share: float
    offset: Array
    tables: list[Array | None]
    of_classes: Array = np.zeros(2)
    of_rows: Array | None = None


@singledispatch
def grow_cuts(loss: Loss, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts | None:
    """Return cuts of a loss on all rows from cuts on previous rows; None if the cuts cannot be extended."""
    return None


@grow_cuts.register
def _of_labels(loss: FreeShift, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts:
    added = None
    if 0 < np.count_nonzero(growth.positive) < growth.positive.size:
        added = loss.bind(growth.positive).solve(growth.scores)[1:]
    return grow_labels(loss.base.error, tables, growth, added)


@grow_cuts.register
def _of_top(loss: PrecisionAtK, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts | None:
    if loss.reference != "best":
        return None
    k_old, k = (top_weight(loss.k, m + n) for m, n in ((growth.m_old, growth.n_old), (growth.m, growth.n)))
    return grow_top(k_old, k, offset, growth)


@grow_cuts.register
def _of_break_even(loss: BreakEven, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts:
    return grow_top(growth.m_old, growth.m, offset, growth)


def grow_top(k_old: float, k: float, offset: Array, growth: Growth) -> GrownCuts:
    """Add the best labels of the new rows to labellings with ``k_old`` positive labels, so that there are ``k``."""
    # Labeling a positive lowers the error by 1 / k.
    divided = min(k, growth.m)
    lowered = growth.scores - growth.positive * (divided / k)
    level, part = CumulativeScores(lowered.copy(), None).cut(k - k_old)
    taken = np.where(lowered == level, part, (lowered > level).astype(np.float64))
    tp = k_old * (1.0 - offset) + taken[growth.positive].sum()
    before, after = _reference(k_old, growth.m_old, growth.n_old), _reference(k, growth.m, growth.n)
    return GrownCuts(
        min(k_old, growth.m_old) / divided,
        1.0 - tp / k,
        [None] * offset.size,
        (before - after) / divided,
        (taken - after[growth.positive.astype(np.intp)]) / divided,
    )


def grow_labels(
    error: Callable[[Array, Array, float, float], Array],
    tables: list[Array | None],
    growth: Growth,
    added: tuple[Array, Array] | None,
) -> GrownCuts:
    """Couple mixtures of labellings with the best mixture for the new rows.

    ``added`` contains the subgradient and the tables of the loss on the new rows; None if the new rows have only one
    class, in which case the true labels are used.
    """
    m_new = float(np.count_nonzero(growth.positive))
    mixture = np.array([(1.0, m_new, 0.0)]) if added is None else added[1]
    grown = [couple(known, mixture) for known in tables if known is not None]
    offset = [float(t[:, 0] @ error(t[:, 1], t[:, 2], growth.m, growth.n)) for t in grown]
    of_rows = None if added is None else m_new / growth.m * added[0]
    return GrownCuts(growth.m_old / growth.m, np.array(offset), [*grown], of_rows=of_rows)


def couple(first: Array, second: Array) -> Array:
    """Couple two mixtures of tables in order of the number of labeled rows, and return the mixture of the sums."""
    (one, at), (two, by) = (_cumulated(mixture) for mixture in (first, second))
    ends = np.union1d(at, by)
    share = np.diff(ends, prepend=0.0)
    # Tiny shares are rounding error.
    ends, share = ends[share > 1e-12], share[share > 1e-12]
    i, j = (np.minimum(np.searchsorted(line, ends), line.size - 1) for line in (at, by))
    return np.column_stack([share / share.sum(), one[i, 1:] + two[j, 1:]])


def _reference(k: float, m: float, n: float) -> Array:
    """Return the share of a negative and of a positive in the mean of the best labellings with ``k`` positives."""
    return np.array([max(0.0, (k - m) / n), min(1.0, k / m)])


def _cumulated(mixture: Array) -> tuple[Array, Array]:
    placed = mixture[np.argsort(mixture[:, 1] + mixture[:, 2])]
    return placed, np.cumsum(placed[:, 0])
