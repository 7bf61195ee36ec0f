"""Comparison of models by held-out scores, taking standard errors into account."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array
from rocmax._validate import TrainingSet
from rocmax.operators import as_operator


def agreement(weights: Array, data: TrainingSet) -> float:
    """Return the mean correlation between the scores of linear models; 0 if one has zero weights, 1 for one model."""
    if not weights.any(axis=1).all():
        return 0.0
    if len(weights) == 1:
        return 1.0
    scores = [as_operator(data.X).matvec(w) for w in weights]
    covariance = np.cov(scores, aweights=data.weight)
    spread = np.sqrt(np.diag(covariance))
    if not spread.all():
        return 0.0
    correlation = covariance / np.outer(spread, spread)
    return float(correlation[np.triu_indices(len(weights), 1)].mean())


def close_to_best(scores: Array, errors: float = 1.0) -> NDArray[np.intp]:
    """Return the columns whose mean is within ``errors`` standard errors of the best mean.

    The standard error is that of the paired difference over the rows (folds).
    """
    best = int(np.argmax(scores.mean(axis=0)))
    behind = scores[:, [best]] - scores
    n_folds = scores.shape[0]
    error = behind.std(axis=0, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(scores.shape[1])
    return np.flatnonzero(behind.mean(axis=0) <= errors * error)


def clearly_above(scores: Array, others: Array) -> bool:
    """Return whether the mean of ``scores`` exceeds that of ``others`` by more than two standard errors (paired)."""
    gain = scores - others
    return bool(gain.mean() > 2.0 * gain.std(ddof=1) / np.sqrt(gain.size)) if gain.size > 1 else bool(gain[0] > 0)
