r"""Cuts of a loss on some rows, made into cuts of the loss on those rows and more.

A cut is the value of one choice among those of which the loss is the maximum: which labels, or which pairs. A choice
for the rows so far and any choice for the new rows are together a choice for all rows, so they give a cut of the larger
problem, once its terms are scaled for the new numbers of positives and negatives. With ``'`` for all rows, ``S`` for
those so far and ``N`` for the new ones:

- Labels of which ``k`` are positive (precision at k, break-even point): labels of :math:`S` with :math:`k_S` positive
  ones and the best labels of :math:`N`, at the weights at hand, with :math:`k' - k_S`. The error :math:`1 - tp/k'` and
  the reference are those of all rows.
- Any labels (F-beta, G-mean at the best shift): a cut is a mixture of labellings that on average label :math:`m` rows.
  It is drawn together with the best such mixture for :math:`N`, so that on average :math:`m'` rows are labelled. The
  error is that of the summed tables, with :math:`m'` and :math:`n'`.
- Pairs (AUC, partial AUC from 0): pairs of :math:`S` are pairs of all rows, and :math:`b_S = \beta n_S` negatives may
  be in a window of :math:`b'`, so :math:`m' b' R' \ge m_S b_S R_S`. Pairs with a new row are left out: they would have
  to use the same negatives in the window, which a cut does not tell.

The first two stay nearly as high as they were if the next optimum is near. The third sinks by the share of the new
pairs; the Newton steps that those losses allow hardly need it.

A partial AUC from above 0 has no such cuts: its first ranks are charged without a margin, and which rows they are
changes with the new ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rocmax._typing import Array, Bools
from rocmax._window import top_weight, window_end
from rocmax.losses import BreakEven, FreeShift, Loss, PairwiseHinge, PartialAUCTight, PrecisionAtK
from rocmax.losses._cumulative import CumulativeScores
from rocmax.operators import Operator, as_operator
from rocmax.solvers import Cuts


class Growth(NamedTuple):
    """All rows with their scores at the weights at hand, of which the first ``n_old`` made the cuts.

    ``sums`` are the sums of these old rows by class, negatives first.
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
    """Return no cuts at all."""
    return Cuts(np.empty((0, n_features)), np.empty(0), [])


def carry(loss: Loss, cuts: Cuts, growth: Growth) -> Cuts:
    """Return the cuts for all rows, or none if the loss does not allow it or there were not both classes before."""
    if len(cuts.offset) and min(growth.counts(old=True)):
        if isinstance(loss, PairwiseHinge) or (isinstance(loss, PartialAUCTight) and loss.min_fpr == 0):
            return _pairs(loss, cuts, growth)
        if isinstance(loss, BreakEven | PrecisionAtK):
            return _top(loss, cuts, growth)
        if isinstance(loss, FreeShift):
            return _labels(loss, cuts, growth)
    return no_cuts(cuts.gradient.shape[1])


def norm(loss: Loss, m: float, n: float) -> float:
    """Return by what a loss is divided: the sums of the papers are this times the loss."""
    if isinstance(loss, PairwiseHinge):
        return m * n
    if isinstance(loss, PartialAUCTight):
        return m * (window_end(n, loss.max_fpr) - window_end(n, loss.min_fpr))
    return min(m, _top_size(loss, m, n))


def _pairs(loss: Loss, cuts: Cuts, growth: Growth) -> Cuts:
    share = norm(loss, *growth.counts(old=True)) / norm(loss, *growth.counts())
    return Cuts(share * cuts.gradient, share * cuts.offset, cuts.tables)


def _top(loss: Loss, cuts: Cuts, growth: Growth) -> Cuts:
    new = slice(growth.n_old, None)
    (m, n), (m_old, n_old) = growth.counts(), growth.counts(old=True)
    k, k_old = _top_size(loss, m, n), _top_size(loss, m_old, n_old)
    labelled = min(k_old, m_old) * cuts.gradient + _reference(k_old, m_old, n_old) @ growth.sums
    # Labelling a positive lowers the error by 1 / k.
    lowered = growth.scores[new] - growth.positive[new] * (min(k, m) / k)
    level, part = CumulativeScores(lowered.copy(), None).cut(k - k_old)
    taken = np.where(lowered == level, part, (lowered > level).astype(np.float64))
    labelled += as_operator(growth.X[new]).rmatvec(taken)
    tp = k_old * (1.0 - cuts.offset) + taken[growth.positive[new]].sum()
    sums = growth.sums + class_sums(growth.X[new], growth.positive[new])
    gradient = (labelled - _reference(k, m, n) @ sums) / min(k, m)
    return Cuts(gradient, 1.0 - tp / k, cuts.tables)


def _top_size(loss: Loss, m: float, n: float) -> float:
    """Return how many rows are labelled positive; as many as there are positives unless the loss has a ``k``."""
    return top_weight(loss.k, m + n) if isinstance(loss, PrecisionAtK) else float(m)


def _reference(k: float, m: float, n: float) -> Array:
    """Return the share of a negative and of a positive in the mean of the best labellings with ``k`` positives."""
    return np.array([max(0.0, (k - m) / n), min(1.0, k / m)])


def _labels(loss: FreeShift, cuts: Cuts, growth: Growth) -> Cuts:
    new, labels = slice(growth.n_old, None), growth.positive[growth.n_old :]
    (m, n), (m_old, _) = growth.counts(), growth.counts(old=True)
    m_new = float(np.count_nonzero(labels))
    # With one class only, the true labels.
    added, mixture = np.zeros_like(cuts.gradient[0]), np.array([(1.0, m_new, 0.0)])
    if 0 < m_new < labels.size:
        bound = loss.bind(labels)
        _, slope = bound.value_and_gradient(growth.scores[new])
        added, mixture = m_new * as_operator(growth.X[new]).rmatvec(slope), bound.tables()
    tables = [couple(known, mixture) for known in cuts.tables if known is not None]
    offset = [float(t[:, 0] @ (1.0 - loss.base.measure(t[:, 1], t[:, 2], m, n))) for t in tables]
    return Cuts((m_old * cuts.gradient + added) / m, np.array(offset), [*tables])


def couple(first: Array, second: Array) -> Array:
    """Draw two mixtures of tables together, those that label few rows with each other; return the sums."""
    (one, at), (two, by) = (_cumulated(mixture) for mixture in (first, second))
    ends = np.union1d(at, by)
    share = np.diff(ends, prepend=0.0)
    # Slivers are rounding.
    ends, share = ends[share > 1e-12], share[share > 1e-12]
    i, j = (np.minimum(np.searchsorted(line, ends), line.size - 1) for line in (at, by))
    return np.column_stack([share / share.sum(), one[i, 1:] + two[j, 1:]])


def _cumulated(mixture: Array) -> tuple[Array, Array]:
    placed = mixture[np.argsort(mixture[:, 1] + mixture[:, 2])]
    return placed, np.cumsum(placed[:, 0])
