"""Confidence intervals and paired tests by resampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rocmax.metrics._curve import Array, Blocks, RankedRows
from rocmax.metrics._registry import find_measure

# Below this many copies per block, drawing copies and counting them is faster than drawing the counts.
_FEW_COPIES = 30


class Comparison(NamedTuple):
    """How much the first of two models is above the second, with an interval and the p-value of "no difference"."""

    difference: float
    low: float
    high: float
    pvalue: float


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
    with these as weights: scores are sorted once, and a resample takes O(N).

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
    check_level(confidence_level)
    found, filled = find_measure(measure, params)
    blocks = found.blocks(y_true, y_score, sample_weight, pos_label)
    rng = np.random.default_rng(random_state)
    curves = (resample.curve() for resample in resamples(blocks, _at_least_one(n_resamples), rng))
    return _middle(np.array([found.from_curve(curve, **filled) for curve in curves]), confidence_level)


def bootstrap_test(
    measure: str | Callable[..., float],
    y_true: ArrayLike,
    y_score: ArrayLike,
    y_score_other: ArrayLike,
    *,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    **params: Any,
) -> Comparison:
    r"""Compare two models on the same rows by the paired stratified bootstrap.

    Rows are redrawn in each class, and both models are measured on the same redrawn rows. With :math:`d^*_r` the
    difference of the measures in resample ``r`` of ``R``, the interval is that of the percentiles of
    :math:`d^*`, and the two-sided p-value is

    .. math:: \min\Bigl(1,\; 2\, \frac{1 + \min(\#\{d^*_r \le 0\}, \#\{d^*_r \ge 0\})}{R + 1}\Bigr),

    the level at which the interval ends at zero. It is never below ``2 / (R + 1)``.

    Parameters
    ----------
    measure : str or callable
        A measure of this module or its name, as in :func:`bootstrap_interval`.
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score, y_score_other : array-like of shape (n_samples,)
        Scores of the two models; predicted labels for a measure of labels.
    n_resamples : int, default=2000
        Number of resamples.
    confidence_level : float, default=0.95
        Level of the interval of the difference.
    random_state : int, numpy.random.Generator or None, default=None
        An integer makes the result repeat exactly.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row, as in :func:`bootstrap_interval`.
    pos_label : object, default=None
        Label of the positive class; the larger one if None.
    **params
        Parameters of the measure, for example ``max_fpr=0.1``.

    Returns
    -------
    Comparison
        ``difference`` (first minus second), ``low``, ``high`` and ``pvalue``.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall, chapters 13 and 15.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.metrics import bootstrap_test
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> good, poor = y + rng.normal(size=400), 0.2 * y + rng.normal(size=400)
    >>> result = bootstrap_test("partial_auc", y, good, poor, max_fpr=0.2, random_state=0)
    >>> result.difference > result.low > 0 and result.pvalue < 0.01
    True
    """
    check_level(confidence_level)
    found, filled = find_measure(measure, params)
    models = [found.ranked(y_true, values, sample_weight, pos_label) for values in (y_score, y_score_other)]
    rng = np.random.default_rng(random_state)

    def difference(counts: Array) -> float:
        first, second = (found.from_curve(model.blocks(counts).curve(), **filled) for model in models)
        return first - second

    drawn = np.array([difference(counts) for counts in _row_counts(models[0], _at_least_one(n_resamples), rng)])
    tail = 1 + min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    pvalue = min(1.0, 2.0 * float(tail) / (drawn.size + 1))
    return Comparison(difference(models[0].weight), *_middle(drawn, confidence_level), pvalue)


def check_level(confidence_level: float) -> None:
    """Refuse a confidence level that is not between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level needs to be above 0 and below 1; got {confidence_level!r}")


def resamples(blocks: Blocks, count: int, rng: np.random.Generator) -> Iterator[Blocks]:
    """Yield the blocks with redrawn weights: rows that tie need not be told apart, so blocks are drawn, not rows."""
    draw_negative, draw_positive = (_redrawer(weight, rng) for weight in blocks)
    for _ in range(count):
        yield Blocks(draw_negative(), draw_positive())


def _row_counts(rows: RankedRows, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield redrawn weights of the rows, class by class."""
    draws = [(members, _redrawer(rows.weight[members], rng)) for members in (~rows.positive, rows.positive)]
    for _ in range(count):
        counts = np.empty(rows.weight.size)
        for members, draw in draws:
            counts[members] = draw()
        yield counts


def _middle(values: Array, level: float) -> tuple[float, float]:
    low, high = np.quantile(values, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


def _at_least_one(n_resamples: object) -> int:
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 1:
        raise ValueError(f"n_resamples needs to be an integer of at least 1; got {n_resamples!r}")
    return int(n_resamples)


def _redrawer(weight: Array, rng: np.random.Generator) -> Callable[[], Array]:
    """Return a function that redraws the copies of one class."""
    total = float(weight.sum())
    n_copies = round(total)
    if n_copies < 1:
        raise ValueError(
            f"a bootstrap draws copies and needs weights that sum to at least 1 in each class; got {total:g} "
            "(scale sample_weight to numbers of copies)"
        )
    occupied = np.flatnonzero(weight)
    if n_copies < _FEW_COPIES * occupied.size and (weight == np.floor(weight)).all():
        owner = np.repeat(np.arange(weight.size), weight.astype(np.intp))
        return lambda: np.bincount(owner[rng.integers(n_copies, size=n_copies)], minlength=weight.size).astype(float)

    def draw() -> Array:
        drawn = np.zeros(weight.size)
        drawn[occupied] = rng.multinomial(n_copies, weight[occupied] / total) * (total / n_copies)
        return drawn

    return draw
