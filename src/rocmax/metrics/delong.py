"""Confidence intervals and paired tests from the variance of the area, without resampling."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm, t

from rocmax._typing import Array
from rocmax._window import check_floor, check_window
from rocmax.metrics.bootstrap import Comparison, Estimate, Named, check_level, estimate_measures
from rocmax.metrics.curve import DUST, RankedRows, group_numbers, rank_scores
from rocmax.metrics.registry import find_metric
from rocmax.metrics.resamples import n_independent

# In regions with fewer rows of a class, intervals and tests do not reach their nominal level; see docs/measures.md.
MIN_IN_REGION = 30
# Degrees of freedom that Hanley and McNeil's variance is worth beside DeLong's; with fewer, the interval covers less
# than 93 % with 5 positives and exponential scores, see benchmarks/results/interval_coverage.md.
PRIOR_DF = 10.0


class _OutsideRegionError(ValueError):
    """The curve does not enter the region."""


class _Placements(NamedTuple):
    """Partial AUC of the region, the contribution of each row to it (up to a constant for each class), and counts.

    The counts are the numbers of negatives and of positives in the region, infinite for a class without a limit.
    """

    area: float
    values: Array
    n_negatives: float
    n_positives: float


class _Spread(NamedTuple):
    """Variance of an area, its degrees of freedom, and the numbers of independent rows or groups of each class."""

    variance: float
    df: float
    n_positives: float
    n_negatives: float


def delong_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
) -> tuple[float, float]:
    r"""Confidence interval of the AUC, or of the partial AUC, by DeLong's variance.

    With :math:`V_i` the share of the window in which positive ``i`` is above the threshold and
    :math:`V_j = \mathrm{TPR}(\mathrm{clip}(f_j, a, b)) / (b - a)` for the negative at false-positive rate :math:`f_j`,

    .. math:: \widehat{\mathrm{var}} = \frac{s^2(V_i)}{m} + \frac{s^2(V_j)}{n}.

    For the window from 0 to 1 these are DeLong's placement values (a tie counts one half). For a narrower window they
    are the influence of each row on the area. This includes the effect of estimating the ends of the window: the ends
    are quantiles of the negatives, and the effect of an end is the TPR there, which the clipping accounts for. A lower
    limit on the true-positive rate is a quantile of the positives in the same way: the window starts where the curve
    reaches ``t = min_tpr``, if that is later than ``a``, the TPR is clipped to ``t`` from below, and both values are
    divided by ``1 - t``. With groups, the deviations of the values from their means, divided by ``m`` or ``n``, are
    summed in each group, and the variance is that of a sum over independent groups (Obuchowski 1997).

    The interval of the AUC contains all :math:`\theta` with

    .. math:: |\theta - \widehat{A}| \le q\, \sqrt{\rho\, V(\theta)}, \qquad
        \rho = \frac{d\, \widehat{\mathrm{var}} / V(\widehat{A}) + 10}{d + 10}.

    :math:`V(\theta)` is Hanley and McNeil's variance for exponential scores, the larger of the two values if the
    classes are exchanged; ``d`` are the degrees of freedom of the estimated variance, from the fourth moments of the
    values; and ``q`` is the quantile of Student's distribution with ``d + 10`` degrees of freedom. With many rows, this
    is the interval from DeLong's variance. With few rows of a class, or if nearly all pairs are in the right order,
    that variance is often too small, and the interval relies on :math:`V(\theta)`. With groups, :math:`V(\theta)` has
    the numbers of groups in place of the numbers of rows.

    The interval of a partial AUC is the normal interval of its logit, transformed back; if the area is 0 or 1, it is
    the interval of the AUC with the numbers of rows in the region. An interval lies between 0 and 1 and is never of
    zero width.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Higher means more likely positive.
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=1.0
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1.
    confidence_level : float, default=0.95
        Confidence level of the interval, above 0 and below 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, such as a customer. Rows of one group may depend on each other; groups are independent. None
        means independent rows.

    Returns
    -------
    low, high : float
        Ends of the interval.

    Warns
    -----
    UserWarning
        If a window narrower than the whole curve contains fewer than 30 negatives, or if a region with ``min_tpr > 0``
        contains fewer than 30 positives. In a corner, these are the rows between the point where the curve enters it
        and the point where it leaves it. The coverage of the interval is then below its level, as is that of
        :func:`bootstrap_interval`.

    References
    ----------
    E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988). Comparing the areas under two or more correlated
    receiver operating characteristic curves: a nonparametric approach. Biometrics 44, 837-845.

    M. S. Pepe (2003). The Statistical Evaluation of Medical Tests for Classification and Prediction. Oxford, 5.2.

    N. A. Obuchowski (1997). Nonparametric analysis of clustered ROC curve data. Biometrics 53, 567-578.

    J. A. Hanley and B. J. McNeil (1982). The meaning and use of the area under a receiver operating characteristic
    (ROC) curve. Radiology 143, 29-36.

    R. G. Newcombe (2006). Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part 2:
    asymptotic methods and evaluation. Statistics in Medicine 25, 559-573.

    Examples
    --------
    >>> from rocmax.metrics import delong_interval
    >>> y, s = [0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 7, 4, 5, 6, 8]
    >>> low, high = delong_interval(y, s)
    >>> round(low, 3), round(high, 3)
    (0.344, 0.97)
    """
    check_level(confidence_level)
    rows = rank_scores(y_true, y_score, sample_weight, pos_label)
    placements = _placements(rows, min_fpr, max_fpr, min_tpr)
    _warn_if_few(placements)
    spread = _spread(rows, placements.values, group_numbers(groups, sample_weight, y_true))
    area = placements.area
    if (min_fpr, max_fpr, min_tpr) != (0.0, 1.0, 0.0) and spread.variance > 0 and 0 < area < 1:
        reach = norm.ppf((1 + confidence_level) / 2) * math.sqrt(spread.variance) / (area * (1 - area))
        low, high = expit(logit(area) + np.array([-reach, reach]))
        return float(low), float(high)
    in_region = spread._replace(
        n_positives=max(1.0, spread.n_positives * (1 - min_tpr)),
        n_negatives=max(1.0, spread.n_negatives * (max_fpr - min_fpr)),
    )
    return _interval(area, in_region, confidence_level)


def delong_test(
    y_true: ArrayLike,
    y_score: ArrayLike,
    y_score_other: ArrayLike,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
) -> Comparison:
    r"""Compare the AUC, or the partial AUC, of two models on the same rows by DeLong's paired test.

    The variance of the difference is DeLong's variance, as in :func:`delong_interval`, of the row-wise differences of
    the placement values of the two models. Under the null hypothesis, ``difference / standard error`` is asymptotically
    normal.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Higher means more likely positive.
    y_score_other : array-like of shape (n_samples,)
        Scores of the other model.
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=1.0
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1.
    confidence_level : float, default=0.95
        Confidence level of the interval of the difference, above 0 and below 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, such as a customer. Rows of one group may depend on each other; groups are independent. None
        means independent rows.

    Returns
    -------
    Comparison
        ``difference`` (first minus second), ``low``, ``high`` and ``pvalue``.

    Warns
    -----
    UserWarning
        If a window narrower than the whole curve contains fewer than 30 negatives, or if a region with ``min_tpr > 0``
        contains fewer than 30 positives, for one of the models. The p-value is then not reliable, and usually too
        small.

    References
    ----------
    E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988). Biometrics 44, 837-845.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.metrics import delong_test
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> good, poor = y + rng.normal(size=400), 0.2 * y + rng.normal(size=400)
    >>> delong_test(y, good, poor).pvalue < 0.001
    True
    """
    check_level(confidence_level)
    models = [rank_scores(y_true, scores, sample_weight, pos_label) for scores in (y_score, y_score_other)]
    first, second = (_placements(rows, min_fpr, max_fpr, min_tpr) for rows in models)
    _warn_if_few(first, second)
    difference = first.area - second.area
    number = group_numbers(groups, sample_weight, y_true)
    error = math.sqrt(_spread(models[0], first.values - second.values, number).variance)
    if error == 0.0:
        return Comparison(difference, difference, difference, 1.0 if difference == 0.0 else 0.0)
    reach = norm.ppf((1 + confidence_level) / 2) * error
    return Comparison(
        difference, float(difference - reach), float(difference + reach), float(2 * norm.sf(abs(difference) / error))
    )


def estimate_with_delong(
    measures: Sequence[Named], y_true: ArrayLike, y_score: ArrayLike, *, groups: ArrayLike | None = None, **options: Any
) -> list[Estimate]:
    """Return several measures with intervals, as ``estimate_measures``; that of the AUC is :func:`delong_interval`'s.

    With few rows of a class, the bootstrap covers the AUC less often, and its interval is a point if all pairs are in
    the right order. A class with one row, or group, has no variance, and the bootstrap's interval is kept.
    """
    found = estimate_measures(measures, y_true, y_score, groups=groups, **options)
    rows = rank_scores(y_true, y_score, None, None)
    if n_independent(rows.positive, rows.weight, group_numbers(groups, None, y_true)) < 2:
        return found
    names = [find_metric(measure, params)[0].name for measure, params in measures]
    return [
        Estimate(each.value, *delong_interval(y_true, y_score, groups=groups)) if name == "roc_auc" else each
        for name, each in zip(names, found, strict=True)
    ]


def holds_enough(
    y_true: ArrayLike, y_score: ArrayLike, *, min_fpr: float = 0.0, max_fpr: float = 1.0, min_tpr: float = 0.0
) -> bool:
    """Return whether a region has enough rows for the normal approximation; always true for the whole curve."""
    rows = rank_scores(y_true, y_score, None, None)
    try:
        placements = _placements(rows, min_fpr, max_fpr, min_tpr)
    except _OutsideRegionError:
        return False
    return not _few(placements)


def _few(*models: _Placements) -> list[str]:
    """Return the numbers of rows that are too small, the smallest of the models, as texts."""
    counts = {
        "negatives": min(model.n_negatives for model in models),
        "positives": min(model.n_positives for model in models),
    }
    return [f"{count:.3g} {name}" for name, count in counts.items() if count < MIN_IN_REGION * (1 - DUST)]


def _warn_if_few(*models: _Placements) -> None:
    for count in _few(*models):
        warnings.warn(
            f"the window contains about {count}; DeLong's variance requires at least {MIN_IN_REGION} and is not "
            "reliable with fewer. Use more rows or a wider window; the bootstrap is hardly more accurate",
            UserWarning,
            stacklevel=3,
        )


def _placements(rows: RankedRows, min_fpr: float, max_fpr: float, min_tpr: float) -> _Placements:
    """Return the area and the placement values; within ties, the curve is linear and values are averaged."""
    check_window(min_fpr, max_fpr)
    check_floor(min_tpr)
    curve = rows.blocks().curve()
    fpr, tpr = curve.fp / curve.n, curve.tp / curve.m
    low, low_height = _start(fpr, tpr, min_fpr, max_fpr, min_tpr)
    start, stop = fpr[:-1], fpr[1:]
    largest = (max_fpr - min_fpr) * (1 - min_tpr)
    above = (_ramp(max_fpr, start, stop) - _ramp(low, start, stop)) / largest
    heights = _clipped_mean(fpr, tpr, low, max_fpr, low_height) / largest
    values = np.where(rows.positive, above[rows.block], heights[rows.block])
    members = rows.positive
    area = float(rows.weight[members] @ values[members]) / curve.m - min_tpr * (max_fpr - low) / largest
    negatives = curve.n * (max_fpr - low) if (min_fpr, max_fpr) != (0.0, 1.0) else math.inf
    positives = curve.m * (_height(fpr, tpr, max_fpr, "left") - min_tpr) if min_tpr > 0 else math.inf
    return _Placements(area, values, negatives, positives)


def _start(fpr: Array, tpr: Array, min_fpr: float, max_fpr: float, min_tpr: float) -> tuple[float, float]:
    """Return the false-positive rate from which the curve is in the region, and the height of the region's left end."""
    entry = -math.inf
    if min_tpr > 0:
        i = int(np.searchsorted(tpr, min_tpr * (1 + DUST), "right"))
        part = np.clip((min_tpr - tpr[i - 1]) / (tpr[i] - tpr[i - 1]), 0.0, 1.0)
        entry = float(fpr[i - 1] + part * (fpr[i] - fpr[i - 1]))
    if entry >= max_fpr:
        raise _OutsideRegionError(
            f"DeLong's variance requires a curve that reaches a true-positive rate of min_tpr={min_tpr:g} left of the "
            f"false-positive rate max_fpr={max_fpr:g}; got a curve that reaches it at {entry:.3g}. Use "
            "bootstrap_interval or bootstrap_test"
        )
    if entry >= min_fpr:
        return entry, min_tpr
    return min_fpr, _height(fpr, tpr, min_fpr, "right")


def _ramp(at: float, start: Array, stop: Array) -> Array:
    """Return the integral up to ``at`` of a function that increases linearly from 0 to 1 on each block."""
    length = stop - start
    inside = np.clip(at - start, 0.0, length)
    part = np.divide(inside, length, out=np.zeros_like(length), where=length > 0)
    return 0.5 * inside * part + np.maximum(at - stop, 0.0)


def _clipped_mean(fpr: Array, tpr: Array, low: float, high: float, low_height: float) -> Array:
    """Return the mean over each block of the TPR at the FPR clipped to the window; 0 for blocks without negatives.

    Left of the window, the TPR is ``low_height``.
    """
    area = np.concatenate(([0.0], np.cumsum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2)))

    def integral(at: Array) -> Array:
        left = np.clip(np.searchsorted(fpr, at, "right") - 1, 0, fpr.size - 2)
        part = at - fpr[left]
        length = fpr[left + 1] - fpr[left]
        slope = np.divide(tpr[left + 1] - tpr[left], length, out=np.zeros_like(part), where=length > 0)
        return area[left] + part * (tpr[left] + 0.5 * slope * part)

    start, stop = fpr[:-1], fpr[1:]
    total = integral(np.clip(stop, low, high)) - integral(np.clip(start, low, high))
    total += low_height * np.maximum(np.minimum(stop, low) - start, 0.0)
    total += _height(fpr, tpr, high, "left") * np.maximum(stop - np.maximum(start, high), 0.0)
    return np.divide(total, stop - start, out=np.zeros_like(total), where=stop > start)


def _height(fpr: Array, tpr: Array, at: float, side: str) -> float:
    """Return the TPR at an FPR; on a vertical step, the upper end for ``side="right"`` and the lower end otherwise."""
    place = int(np.clip(np.searchsorted(fpr, at, "right" if side == "right" else "left"), 1, fpr.size - 1))
    length = fpr[place] - fpr[place - 1]
    if length == 0:
        return float(tpr[place])
    return float(tpr[place - 1] + (tpr[place] - tpr[place - 1]) * (at - fpr[place - 1]) / length)


def area_and_variance(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    groups: ArrayLike | None = None,
) -> tuple[float, float]:
    """Return the area in a region and DeLong's variance of it."""
    rows = rank_scores(y_true, y_score, None, None)
    placements = _placements(rows, min_fpr, max_fpr, min_tpr)
    return placements.area, _spread(rows, placements.values, group_numbers(groups, None, y_true)).variance


def _spread(rows: RankedRows, values: Array, groups: NDArray[np.intp] | None) -> _Spread:
    """Return the variance of the mean over the positives plus the mean over the negatives.

    With groups, the covariance of the two means, from groups with rows of both classes, is part of it.
    """
    if groups is None:
        parts = [_class_part(rows, values, members) for members in (rows.positive, ~rows.positive)]
        variance, uncertainty = (sum(column) for column in list(zip(*parts, strict=True))[:2])
        return _Spread(_or_zero(variance), _degrees(variance, uncertainty), parts[0][2], parts[1][2])
    sums, counts, variance = [], [], 0.0
    for members, name in ((rows.positive, "positives"), (~rows.positive, "negatives")):
        own, weight = groups[members], rows.weight[members]
        share = weight / weight.sum() * (values[members] - np.average(values[members], weights=weight))
        sums.append(np.bincount(own, share, int(groups.max()) + 1).astype(np.float64, copy=False))
        counts.append(np.unique(own).size)
        if counts[-1] < 2:
            raise ValueError(f"DeLong's variance requires at least two groups with {name}; got {counts[-1]}")
        variance += counts[-1] / (counts[-1] - 1) * float(sums[-1] @ sums[-1])
    n_groups = np.unique(groups).size
    variance = _or_zero(variance + 2 * n_groups / (n_groups - 1) * float(sums[0] @ sums[1]))
    total = (sums[0] + sums[1])[np.unique(groups)] * n_groups
    df = _degrees(*_moments(total, np.ones(n_groups))[:2])
    return _Spread(variance, df, float(counts[0]), float(counts[1]))


def _class_part(rows: RankedRows, values: Array, members: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the variance of the mean over a class, the variance of that estimate, and the number of rows."""
    weight = rows.weight[members]
    if weight.sum() <= 1:
        raise ValueError(
            f"DeLong's variance requires at least two rows of each class; got weights that sum to {weight.sum():g}"
        )
    return _moments(values[members], weight)


def _moments(values: Array, weight: Array) -> tuple[float, float, float]:
    """Return the variance of a mean, the variance of that estimate from the fourth moment, and the number of values."""
    count = float(weight.sum())
    centred = values - np.average(values, weights=weight)
    second, fourth = (float(weight @ centred**power) / count for power in (2, 4))
    uncertainty = max(0.0, fourth - second**2 * (count - 3) / (count - 1)) / count**3
    return second / (count - 1), uncertainty, count


def _or_zero(variance: float) -> float:
    """Return a variance, 0 if it is a rounding error."""
    return variance if variance > DUST**2 else 0.0


def _degrees(variance: float, uncertainty: float) -> float:
    """Return the degrees of freedom of an estimated variance; 0 for a variance of 0, which says nothing."""
    if _or_zero(variance) == 0.0:
        return 0.0
    return math.inf if uncertainty == 0.0 else 2 * variance**2 / uncertainty


def _interval(area: float, spread: _Spread, level: float) -> tuple[float, float]:
    """Return the areas that are compatible with an estimated one and its variance."""

    def law(theta: float) -> float:
        return _hanley_mcneil(theta, spread.n_positives, spread.n_negatives)

    inside = min(max(area, DUST), 1 - DUST)
    # Few rows can have a large number of degrees of freedom by chance.
    df = min(spread.df, spread.n_positives + spread.n_negatives - 2)
    ratio = (df * spread.variance / law(inside) + PRIOR_DF) / (df + PRIOR_DF)
    reach = float(t.ppf((1 + level) / 2, df + PRIOR_DF)) ** 2 * ratio

    def excess(theta: float) -> float:
        return (theta - area) ** 2 - reach * law(theta)

    low = 0.0 if area <= DUST else float(brentq(excess, 0.0, inside))
    high = 1.0 if area >= 1 - DUST else float(brentq(excess, inside, 1.0))
    return min(low, area), max(high, area)


def _hanley_mcneil(theta: float, m: float, n: float) -> float:
    """Return the variance of an area for exponential scores, the larger one if the classes may be exchanged."""
    either = theta * (1 - theta) ** 2 / (2 - theta), theta**2 * (1 - theta) / (1 + theta)
    more, fewer = max(m, n) - 1, min(m, n) - 1
    return (theta * (1 - theta) + more * max(either) + fewer * min(either)) / (m * n)
