"""The rows that determine the partial AUC, so that its computation need not sort all rows."""

from __future__ import annotations

import numpy as np

from rocmax._typing import Array, Bools


def top_rows(scores: Array, positive: Bools, weight: Array | None, max_fpr: float) -> tuple[Bools, Array, Array | None]:
    """Return labels, scores and weights with the same ROC curve up to a false-positive rate, of fewer rows.

    The rows with lower scores are joined to one of each class. With weights, all rows are returned.
    """
    m = int(np.count_nonzero(positive))
    n = positive.size - m
    k = int(max_fpr * n) + 2
    if weight is not None or 2 * k > n:
        return positive, scores, weight
    negative = scores[~positive]
    lowest = float(np.partition(negative, n - k)[n - k])
    used = np.flatnonzero(scores >= lowest)
    labels = positive[used]
    m_used = int(np.count_nonzero(labels))
    copies = np.append(np.ones(used.size), [m - m_used, n - (used.size - m_used)])
    return np.append(labels, [True, False]), np.append(scores[used], [lowest - 1.0] * 2), copies
