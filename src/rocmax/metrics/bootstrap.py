"""Confidence intervals and paired tests by the bootstrap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, t

from rocmax._typing import Array
from rocmax.metrics.curve import Blocks, Curve, group_numbers
from rocmax.metrics.registry import Metric, MetricLike, find_metric
from rocmax.metrics.resamples import cluster_resamples, n_independent, paired_resamples, resamples

# With fewer rows of a class, intervals do not reach their level; see benchmarks/results/interval_coverage.md.
MIN_IN_CLASS = 10
# A measure or its name, and its parameters.
Named = tuple[MetricLike, dict[str, Any]]


class Estimate(NamedTuple):
    """Value of a measure and its confidence interval."""

    value: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Difference of a measure between two models, with its interval and the p-value for no difference."""

    difference: float
    low: float
    high: float
    pvalue: float


def bootstrap_interval(
    measure: MetricLike,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    **params: Any,
) -> tuple[float, float]:
    r"""Confidence interval of a measure by the stratified percentile bootstrap.

    Each resample draws the positives with replacement from the positives, and the negatives from the negatives; the
    number of rows of each class does not change. The ends of the interval are quantiles of the measure over the
    resamples: those at :math:`\Phi(\pm q \sqrt{n / (n - 1)})`, with ``n`` the number of rows of the smaller class and
    ``q`` the ``(1 + confidence_level) / 2`` quantile of Student's distribution with ``n - 1`` degrees of freedom. With
    many rows, these are the ``(1 - confidence_level) / 2`` and ``(1 + confidence_level) / 2`` quantiles.

    With groups, whole groups are drawn: groups with positives only, with negatives only, and with both, separately.

    Parameters
    ----------
    measure : str, Measure or callable
        Name of a measure, one of :func:`rocmax.measures.measure_names`, with or without the suffix ``_score``; or a
        :class:`~rocmax.measures.Measure`; or the function itself, scikit-learn's ``roc_auc_score`` too.
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Scores; predicted labels for a measure of labels.
    n_resamples : int, default=1000
        Number of resamples.
    confidence_level : float, default=0.95
        Confidence level of the interval, above 0 and below 1.
    random_state : int, numpy.random.Generator or None, default=None
        Seed or generator of the resamples. Pass an int for reproducible results.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row. See the notes.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, such as a customer. Rows of one group may depend on each other; groups are independent. None
        means independent rows.
    **params
        Parameters of a measure given by its name or function, for example ``max_fpr=0.1``.

    Returns
    -------
    low, high : float
        Ends of the interval.

    Warns
    -----
    UserWarning
        If a class has fewer than 10 rows, or groups. The interval then covers less often than its level.

    Notes
    -----
    A resample is a vector of multiplicities, from one multinomial draw in each class, and its value is the measure with
    the multiplicities as weights. Scores are sorted once, and each resample takes O(N). With more than 20,000 distinct
    scores, neighbouring scores are grouped and treated as ties. Near the rank ``j``, counted from the nearer end of the
    class, a group has ``sqrt(j) / 5`` rows, a fifth of the standard deviation of that rank in a resample; near the ends
    scores are not grouped. A resample then takes O(sqrt(N)), and the difference to the interval without groups is below
    the error of the resampling.

    A weight is a number of copies, so a row of weight 100 counts as 100 independent observations. If weights only
    correct for the sampling of the rows, the interval is too narrow. If the weights of a class do not sum to an
    integer, the nearest integer number of rows is drawn and scaled to the sum.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall, chapter 13.

    T. C. Hesterberg (2015). What teachers should know about the bootstrap: resampling in the undergraduate statistics
    curriculum. The American Statistician 69, 371-386 (the expanded percentile interval).

    A. C. Davison and D. V. Hinkley (1997). Bootstrap Methods and their Application. Cambridge, section 3.8 (groups).

    Examples
    --------
    >>> from rocmax.metrics import bootstrap_interval
    >>> y, s = [0] * 10 + [1] * 10, [*range(10), *range(5, 15)]
    >>> low, high = bootstrap_interval("roc_auc", y, s, n_resamples=200, random_state=0)
    >>> 0 <= low < high <= 1
    True
    """
    options: dict[str, Any] = {"sample_weight": sample_weight, "pos_label": pos_label, "groups": groups}
    options |= {"n_resamples": n_resamples, "confidence_level": confidence_level, "random_state": random_state}
    estimate = estimate_measures([(measure, params)], y_true, y_score, warn_if_few=True, **options)[0]
    return estimate.low, estimate.high


def bootstrap_test(
    measure: MetricLike,
    y_true: ArrayLike,
    y_score: ArrayLike,
    y_score_other: ArrayLike,
    *,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    **params: Any,
) -> Comparison:
    r"""Compare two models on the same rows by the paired stratified bootstrap.

    Rows are resampled within each class, or groups as in :func:`bootstrap_interval`, and both models are evaluated on
    the same resamples. With :math:`d^*_r` the difference of the measures in resample ``r`` of ``R``, the ends of the
    interval are percentiles of :math:`d^*`, and the two-sided p-value is

    .. math:: \min\Bigl(1,\; 2\, \frac{1 + \min(\#\{d^*_r \le 0\}, \#\{d^*_r \ge 0\})}{R + 1}\Bigr),

    the significance level at which the interval ends at zero. It is never below ``2 / (R + 1)``.

    Parameters
    ----------
    measure : str, Measure or callable
        Name of a measure, one of :func:`rocmax.measures.measure_names`, with or without the suffix ``_score``; or a
        :class:`~rocmax.measures.Measure`; or the function itself, scikit-learn's ``roc_auc_score`` too.
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Scores; predicted labels for a measure of labels.
    y_score_other : array-like of shape (n_samples,)
        Scores of the other model. Predicted labels for a measure of labels.
    n_resamples : int, default=2000
        Number of resamples.
    confidence_level : float, default=0.95
        Confidence level of the interval of the difference, above 0 and below 1.
    random_state : int, numpy.random.Generator or None, default=None
        Seed or generator of the resamples. Pass an int for reproducible results.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row. See the notes of :func:`bootstrap_interval`.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, such as a customer. Rows of one group may depend on each other; groups are independent. None
        means independent rows.
    **params
        Parameters of a measure given by its name or function, for example ``max_fpr=0.1``.

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
    options: dict[str, Any] = {"sample_weight": sample_weight, "pos_label": pos_label, "groups": groups}
    options |= {"n_resamples": n_resamples, "confidence_level": confidence_level, "random_state": random_state}
    return compare_measures([(measure, params)], y_true, y_score, y_score_other, **options)[0]


def estimate_measures(
    measures: Sequence[Named],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    watch: Callable[[Curve], None] | None = None,
    warn_if_few: bool = False,
) -> list[Estimate]:
    """Return several measures of the same scores with intervals, as :func:`bootstrap_interval` computes them.

    All measures use the same resamples, so the cost is little more than for one measure. ``watch`` is called with the
    curve of each resample, for what else is computed from them.
    """
    check_level(confidence_level)
    found = [find_metric(name, params) for name, params in measures]
    rows = found[0][0].ranked(y_true, y_score, sample_weight, pos_label)
    number = group_numbers(groups, sample_weight, y_true)
    blocks = rows.blocks()
    values = [measure.from_curve(blocks.curve(), **filled) for measure, filled in found]
    rng, size = np.random.default_rng(random_state), _at_least_one(n_resamples)
    if number is None:
        redrawn = resamples(blocks, size, rng, _depth(found))
    else:
        redrawn = (models[0] for models in cluster_resamples([rows], number, size, rng, _depth(found)))
    drawn = []
    for each in redrawn:
        curve = each.curve()
        drawn.append([measure.from_curve(curve, **filled) for measure, filled in found])
        if watch is not None:
            watch(curve)
    n_fewest = n_independent(rows.positive, rows.weight, number)
    if warn_if_few and n_fewest < MIN_IN_CLASS:
        warnings.warn(
            f"a class has {n_fewest:g} independent {'rows' if number is None else 'groups'}; with fewer than "
            f"{MIN_IN_CLASS}, intervals of the bootstrap cover less often than their level. Use more rows or, for the "
            "AUC, delong_interval",
            UserWarning,
            stacklevel=3,
        )
    tail = tail_share(confidence_level, n_fewest)
    return [
        Estimate(float(value), *_middle(column, tail)) for value, column in zip(values, np.array(drawn).T, strict=True)
    ]


def compare_measures(
    measures: Sequence[Named],
    y_true: ArrayLike,
    y_score: ArrayLike,
    y_score_other: ArrayLike,
    *,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
) -> list[Comparison]:
    """Compare two models by several measures, as :func:`bootstrap_test` does, all on the same resamples."""
    check_level(confidence_level)
    found = [find_metric(name, params) for name, params in measures]
    ranked = found[0][0].ranked
    models = [ranked(y_true, values, sample_weight, pos_label) for values in (y_score, y_score_other)]
    rng = np.random.default_rng(random_state)

    def differences(pair: Sequence[Blocks]) -> list[float]:
        first, second = (blocks.curve() for blocks in pair)
        return [measure.from_curve(first, **filled) - measure.from_curve(second, **filled) for measure, filled in found]

    values = differences([model.blocks() for model in models])
    number = group_numbers(groups, sample_weight, y_true)
    size, depth = _at_least_one(n_resamples), _depth(found)
    if number is None:
        pairs = paired_resamples(models, size, rng, depth)
    else:
        pairs = cluster_resamples(models, number, size, rng, depth)
    drawn = np.array([differences(pair) for pair in pairs])
    tail = (1 - confidence_level) / 2
    return [
        Comparison(value, *_middle(column, tail), _two_sided(column))
        for value, column in zip(values, drawn.T, strict=True)
    ]


def _two_sided(drawn: Array) -> float:
    tail = 1 + min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    return min(1.0, 2.0 * float(tail) / (drawn.size + 1))


def _depth(found: Sequence[tuple[Metric, dict[str, Any]]]) -> float:
    """Return the false-positive rate beyond which the curve affects none of the measures."""
    return max(float(filled.get("max_fpr", 1.0)) for _, filled in found)


def check_level(confidence_level: float) -> None:
    """Raise ValueError if a confidence level is not between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be above 0 and below 1; got {confidence_level!r}")


def tail_share(level: float, n: float) -> float:
    """Return the share of the resamples beyond each end of an interval, given the size of the smaller class.

    The spread of the resamples is too small by the factor ``sqrt((n - 1) / n)``, and their quantiles, like those of the
    normal distribution, do not allow for the error of the estimated spread.
    """
    if n <= 1:
        return 0.0
    return float(norm.cdf(t.ppf((1 - level) / 2, n - 1) * np.sqrt(n / (n - 1))))


def _middle(values: Array, tail: float) -> tuple[float, float]:
    low, high = np.quantile(values, (tail, 1 - tail))
    return float(low), float(high)


def _at_least_one(n_resamples: object) -> int:
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 1:
        raise ValueError(f"n_resamples must be an integer >= 1; got {n_resamples!r}")
    return int(n_resamples)
