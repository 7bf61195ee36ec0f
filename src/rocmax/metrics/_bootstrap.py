"""Confidence intervals by resampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rocmax.metrics._curve import Array, Blocks
from rocmax.metrics._registry import find_measure


def bootstrap_interval(
    measure: str | Callable[..., float],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    **params: Any,
) -> tuple[float, float]:
    """Confidence interval of a measure by the stratified percentile bootstrap.

    Each resample draws as many positives as there are, from the positives and with replacement, and likewise
    the negatives. The interval runs from the ``(1 - confidence_level) / 2`` quantile of the measure over the
    resamples to the ``(1 + confidence_level) / 2`` quantile.

    Parameters
    ----------
    measure : str or callable
        A measure of this module or its name, the ending ``_score`` optional; ``"roc_auc"`` and scikit-learn's
        ``roc_auc_score`` too.
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Scores; predicted labels for a measure of labels.
    n_resamples : int, default=1000
        Number of resamples.
    confidence_level : float, default=0.95
        Between 0 and 1, both excluded.
    random_state : int, numpy.random.Generator or None, default=None
        An integer makes the interval repeat exactly.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row; see the notes.
    pos_label : object, default=None
        Label of the positive class; the larger one if None.
    **params
        Parameters of the measure, for example ``max_fpr=0.1``.

    Returns
    -------
    low, high : float
        Ends of the interval.

    Notes
    -----
    A resample is a vector of multiplicities, one multinomial draw in each class, and its value is the measure
    with these as weights: scores are sorted once.

    A weight is a number of copies here as everywhere, so a row of weight 100 counts as 100 independent
    observations. Where a weight only corrects for how rows were sampled, that interval is too narrow.
    If the weights of a class do not sum to a whole number, the nearest one is drawn and scaled to the sum.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall, chapter 13.

    Examples
    --------
    >>> from rocmax.metrics import bootstrap_interval
    >>> y, s = [0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 7, 4, 5, 6, 8]
    >>> low, high = bootstrap_interval("roc_auc", y, s, n_resamples=200, random_state=0)
    >>> 0 <= low < high <= 1
    True
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level needs to be above 0 and below 1; got {confidence_level!r}")
    found, filled = find_measure(measure, params)
    blocks = found.blocks(y_true, y_score, sample_weight, pos_label)
    rng = np.random.default_rng(random_state)
    values = np.empty(_at_least_one(n_resamples))
    for i in range(values.size):
        resample = Blocks(_redraw(blocks.negative, rng), _redraw(blocks.positive, rng))
        values[i] = found.from_curve(resample.curve(), **filled)
    low, high = np.quantile(values, ((1 - confidence_level) / 2, (1 + confidence_level) / 2))
    return float(low), float(high)


def _at_least_one(n_resamples: object) -> int:
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 1:
        raise ValueError(f"n_resamples needs to be an integer of at least 1; got {n_resamples!r}")
    return int(n_resamples)


def _redraw(weight: Array, rng: np.random.Generator) -> Array:
    """Redraw the copies of one class: rows that tie need not be told apart, so blocks are drawn, not rows."""
    total = float(weight.sum())
    n_copies = round(total)
    if n_copies < 1:
        raise ValueError(
            f"a bootstrap draws copies and needs weights that sum to at least 1 in each class; got {total:g} "
            "(scale sample_weight to numbers of copies)"
        )
    occupied = np.flatnonzero(weight)
    drawn = np.zeros(weight.size)
    drawn[occupied] = rng.multinomial(n_copies, weight[occupied] / total) * (total / n_copies)
    return drawn
