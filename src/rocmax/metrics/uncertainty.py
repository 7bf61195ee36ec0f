"""Confidence intervals and paired tests: bootstrap and DeLong."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm, t

from rocmax._rounding import DUST
from rocmax._support import Array, check_floor, check_window, stack_level
from rocmax.metrics.curve import Blocks, Curve, RankedRows, group_numbers, rank_scores
from rocmax.metrics.scores import Metric, MetricLike, find_metric

# Bootstrap resamples as multiplicities of blocks of ties or, in large samples, of groups of blocks.


@dataclass(frozen=True)
class IntervalRules:
    """Numbers of the intervals and tests; the coverage is in benchmarks/results/interval_coverage.md.

    Attributes
    ----------
    few_copies : int
        Below this number of copies per block, drawing and counting copies is faster than drawing the counts.
    n_exact : int
        Up to this number of distinct scores, blocks are not grouped.
    fineness : int
        The standard deviation of a rank in a resample is at least this number of groups.
    min_rows : int
        With fewer rows of a class, intervals do not reach their level. Those of the bootstrap do not, either, with
        fewer rows of a class in the region of a partial AUC, or with a value less than one row away from 0 or 1. The
        variance of Hanley and McNeil is worth this number of degrees of freedom beside DeLong's; with fewer, the
        interval covers less than 93 % with 5 positives and exponential scores.
    min_in_region : int
        In regions with fewer rows of a class, DeLong's intervals and tests do not reach their level; docs/measures.md.
    """

    few_copies: int = 30
    n_exact: int = 20_000
    fineness: int = 5
    min_rows: int = 10
    min_in_region: int = 30


RULES = IntervalRules()


def resamples(blocks: Blocks, count: int, rng: np.random.Generator, depth: float = 1.0) -> Iterator[Blocks]:
    """Yield the blocks with resampled weights; blocks of tied rows are drawn instead of rows.

    With more than ``n_exact`` blocks, neighboring blocks are grouped; see :func:`group_starts`.
    """
    starts = group_starts(blocks, depth)
    weight = np.concatenate([np.add.reduceat(of_class, starts) for of_class in blocks])
    place = np.flatnonzero(weight)
    rows = RankedRows(place >= starts.size, weight[place], place % starts.size, starts.size)
    return (drawn[0] for drawn in paired_resamples([rows], count, rng, depth))


def _grouped(rows: RankedRows, depth: float) -> RankedRows:
    """Return the rows with groups of neighboring blocks as their blocks."""
    starts = group_starts(rows.blocks(), depth)
    group = np.searchsorted(starts, np.arange(rows.n_blocks), "right") - 1
    return rows._replace(block=group[rows.block], n_blocks=starts.size)


def paired_resamples(
    models: Sequence[RankedRows], count: int, rng: np.random.Generator, depth: float = 1.0
) -> Iterator[list[Blocks]]:
    """Yield the blocks of several models of the same rows, with the same resampled rows for each model."""
    models = [_grouped(rows, depth) for rows in models]
    draws = [_redrawer(models, members, rng) for members in (~models[0].positive, models[0].positive)]
    for _ in range(count):
        negatives, positives = (draw() for draw in draws)
        yield [Blocks(*classes) for classes in zip(negatives, positives, strict=True)]


def cluster_resamples(
    models: Sequence[RankedRows], groups: NDArray[np.intp], count: int, rng: np.random.Generator, depth: float = 1.0
) -> Iterator[list[Blocks]]:
    """Yield the blocks of several models of the same rows, with resampled groups of rows.

    Groups with positives only, with negatives only, and with both are resampled separately. Thus every resample has
    both classes, and groups of one row each are resampled as rows are.
    """
    models = [_grouped(rows, depth) for rows in models]
    positive, weight = models[0].positive, models[0].weight
    kinds = np.bincount(groups, positive) > 0, np.bincount(groups, ~positive) > 0
    strata = [np.flatnonzero(one & two) for one, two in (kinds, (~kinds[0], kinds[1]), (kinds[0], ~kinds[1]))]
    times = np.zeros(kinds[0].size)
    for _ in range(count):
        for members in strata:
            times[members] = np.bincount(rng.integers(max(1, members.size), size=members.size), minlength=members.size)
        drawn = weight * times[groups]
        yield [rows.blocks(drawn) for rows in models]


def n_independent(positive: NDArray[np.bool_], weight: Array, groups: NDArray[np.intp] | None) -> float:
    """Return the number of independent rows, or groups, of the class that has fewer."""
    if groups is None:
        return float(min(weight[positive].sum(), weight[~positive].sum()))
    return float(min(np.unique(groups[members]).size for members in (positive, ~positive)))


def group_starts(blocks: Blocks, depth: float = 1.0) -> NDArray[np.intp]:
    r"""Return the first block of each group of neighboring blocks; blocks are not grouped up to ``n_exact`` blocks.

    In a resample the number of rows above a score of rank ``j``, counted from the nearer end, has a standard deviation
    of about :math:`\sqrt{j}`. A group there has :math:`\sqrt{j} / 5` rows of either class, and one row near the ends.
    Treating groups as ties changes a measure by a tenth of its standard error on average and leaves at most
    :math:`15 (\sqrt{n} + \sqrt{m})` groups. All blocks beyond the false-positive rate ``depth`` form one group.
    """
    if blocks.negative.size <= RULES.n_exact:
        return np.arange(blocks.negative.size)
    new = np.ones(blocks.negative.size, dtype=bool)
    new[1:] = (np.diff(_places(blocks.negative)) > 0) | (np.diff(_places(blocks.positive)) > 0)
    if depth < 1:
        reach = depth * float(blocks.negative.sum())
        # Ten standard deviations beyond the rate, which no resample reaches.
        beyond = np.cumsum(blocks.negative) > reach + 10 * np.sqrt(reach) + 100
        new &= ~beyond
        new[np.argmax(beyond)] = True
    return np.flatnonzero(new)


def _places(weight: Array) -> Array:
    """Return an integer for each block that increases by one per fifth of a standard deviation of the rank."""
    before = np.cumsum(weight) - weight
    half = float(weight.sum()) / 2
    rising, falling = np.minimum(before, half), np.clip(2 * half - before, 0.0, half)
    result: Array = np.floor(2 * RULES.fineness * (np.sqrt(rising) + np.sqrt(half) - np.sqrt(falling)))
    return result


def _redrawer(
    models: Sequence[RankedRows], members: NDArray[np.bool_], rng: np.random.Generator
) -> Callable[[], list[Array]]:
    """Return a function that resamples the rows of one class and counts them in the blocks of each model."""
    weight, sizes = models[0].weight[members], [rows.n_blocks for rows in models]
    places = [rows.block[members] for rows in models]
    total = float(weight.sum())
    n_copies = round(total)
    if n_copies < 1:
        raise ValueError(
            f"sample_weight must sum to at least 1 in each class, because the bootstrap draws copies; got {total:g}; "
            "scale sample_weight to numbers of copies"
        )
    if n_copies >= RULES.few_copies * weight.size or not (weight == np.floor(weight)).all():

        def weigh() -> list[Array]:
            drawn = rng.multinomial(n_copies, weight / total) * (total / n_copies)
            counts = (np.bincount(place, drawn, size) for place, size in zip(places, sizes, strict=True))
            return [summed.astype(np.float64, copy=False) for summed in counts]

        return weigh
    copies = weight.astype(np.intp)
    apart = np.ones(weight.size, dtype=bool)
    if weight.size > RULES.n_exact:
        # Rows that are in the last block of every model need not be distinguished.
        apart = np.any([place < size - 1 for place, size in zip(places, sizes, strict=True)], axis=0)
    owned = [np.repeat(place[apart], copies[apart]) for place in places]
    n_owned = owned[0].size

    def count() -> list[Array]:
        n_apart = n_owned if n_owned == n_copies else rng.binomial(n_copies, n_owned / n_copies)
        rows = rng.integers(max(1, n_owned), size=n_apart)
        found = [np.bincount(place.take(rows), minlength=size) for place, size in zip(owned, sizes, strict=True)]
        for counts in found:
            counts[-1] += n_copies - n_apart
        return [counts.astype(np.float64) for counts in found]

    return count


# A measure or its name, and its parameters.
Named = tuple[MetricLike, dict[str, Any]]


class IntervalEstimate(NamedTuple):
    """Value of a measure, its confidence interval, and why that covers less often than its level, if it does."""

    value: float
    low: float
    high: float
    caution: str = ""


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

    Each resample draws the positives with replacement from the positives, and the negatives from the negatives; with
    groups, whole groups are drawn: those with positives only, with negatives only, and with both, separately. The ends
    of the interval are the quantiles of the measure over the resamples at :math:`\Phi(\pm q \sqrt{n / (n - 1)})`, with
    ``n`` the number of rows of the smaller class and ``q`` the ``(1 + confidence_level) / 2`` quantile of Student's
    distribution with ``n - 1`` degrees of freedom.

    Parameters
    ----------
    measure, y_true
    y_score : array-like of shape (n_samples,)
        Scores; predicted labels for a measure of labels.
    n_resamples : int, default=1000
        Number of resamples.
    confidence_level
    random_state : int, numpy.random.Generator or None, default=None
        Seed or generator of the resamples. Pass an int for reproducible results.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row: a row of weight 100 counts as 100 independent observations, so weights that only
        correct for the sampling of the rows give an interval that is too narrow.
    pos_label, groups
    **params
        Parameters of a measure given by its name or function, for example ``max_fpr=0.1``.

    Returns
    -------
    low, high : float
        Ends of the interval.

    Warns
    -----
    UserWarning
        If the interval covers less often than its level, because a class or the region of the measure has few rows or
        groups, or because the value is near 0 or 1; the user guide has the rules.

    Notes
    -----
    Scores are sorted once, and each resample takes O(N). With more than 20,000 distinct scores, neighboring ones are
    grouped and treated as ties; a resample then takes O(sqrt(N)), and the difference is below the error of resampling.

    References
    ----------
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13. Hesterberg, "What teachers should know
    about the bootstrap", The American Statistician 2015 (the expanded interval). Davison and Hinkley, Bootstrap Methods
    and their Application, 1997, section 3.8 (groups).

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
    estimate = estimate_measures([(measure, params)], y_true, y_score, **options)[0]
    if estimate.caution:
        name = find_metric(measure, params)[0].name
        warnings.warn(
            f"the interval of {name} covers less often than its level: {estimate.caution}. Use "
            f"{'delong_interval or more rows' if name == 'roc_auc' else 'more rows'}",
            UserWarning,
            stacklevel=stack_level(),
        )
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

    Both models are evaluated on the same resamples of :func:`bootstrap_interval`. With :math:`d^*_r` the difference of
    the measures in resample ``r`` of ``R``, the ends of the interval are percentiles of :math:`d^*`, and the two-sided
    p-value is

    .. math:: \min\Bigl(1,\; 2\, \frac{1 + \min(\#\{d^*_r \le 0\}, \#\{d^*_r \ge 0\})}{R + 1}\Bigr),

    the significance level at which the interval ends at zero. It is never below ``2 / (R + 1)``.

    Parameters
    ----------
    measure, y_true
    y_score, y_score_other : array-like of shape (n_samples,)
        Scores of both models; predicted labels for a measure of labels.
    n_resamples : int, default=2000
        Number of resamples.
    confidence_level
    random_state : int, numpy.random.Generator or None, default=None
        Seed or generator of the resamples. Pass an int for reproducible results.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row, as in :func:`bootstrap_interval`.
    pos_label, groups
    **params
        Parameters of a measure given by its name or function, for example ``max_fpr=0.1``.

    Returns
    -------
    Comparison
        ``difference`` (first minus second), ``low``, ``high`` and ``pvalue``.

    References
    ----------
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 and 15.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.metrics import bootstrap_test
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> good, poor = y + rng.normal(size=400), 0.2 * y + rng.normal(size=400)
    >>> bootstrap_test("partial_auc", y, good, poor, max_fpr=0.2, random_state=0).pvalue < 0.01
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
) -> list[IntervalEstimate]:
    """Return several measures of the same scores with intervals, as :func:`bootstrap_interval` computes them.

    All measures use the same resamples, so the cost is little more than for one measure. ``watch`` is called with the
    curve of each resample, for what else is computed from them.
    """
    check_level(confidence_level)
    found = [find_metric(name, params) for name, params in measures]
    rows = found[0][0].ranked(y_true, y_score, sample_weight, pos_label)
    number = group_numbers(groups, sample_weight, y_true)
    blocks = rows.blocks()
    whole = blocks.curve()
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
    tail = tail_share(confidence_level, n_fewest)
    estimates = []
    for (measure, filled), column in zip(found, np.array(drawn).T, strict=True):
        estimate = IntervalEstimate(float(measure.from_curve(whole, **filled)), *_middle(column, tail))
        caution = _few_in_class(n_fewest, number) or _few_in_area(measure, filled, whole)
        caution = caution or _near_end(measure, filled, whole, estimate, n_fewest, number)
        estimates.append(estimate._replace(caution=caution))
    return estimates


def _few_in_class(n_fewest: float, groups: NDArray[np.intp] | None) -> str:
    """Return a text if a class has too few independent rows, or groups, for an interval."""
    if n_fewest >= RULES.min_rows * (1 - DUST):
        return ""
    return f"a class has {n_fewest:.4g} independent {_units(groups)}; at least {RULES.min_rows} are needed"


def _few_in_area(measure: Metric, filled: dict[str, Any], curve: Curve) -> str:
    """Return a text if the region of a partial AUC contains too few rows of a class for an interval."""
    if measure.name != "partial_auc":
        return ""
    width, height = filled.get("max_fpr", 1.0) - filled.get("min_fpr", 0.0), 1 - filled.get("min_tpr", 0.0)
    inside = (curve.n * width, "negatives"), (curve.m * height, "positives")
    few = [f"{count:.3g} {name}" for count, name in inside if count < RULES.min_rows * (1 - DUST)]
    return f"its region contains about {' and '.join(few)}; at least {RULES.min_rows} are needed" if few else ""


def _near_end(
    measure: Metric,
    filled: dict[str, Any],
    curve: Curve,
    estimate: IntervalEstimate,
    n_fewest: float,
    groups: NDArray[np.intp] | None,
) -> str:
    """Return a text if a value is so near to 0 or 1 that resamples hardly contain what makes it differ."""
    value = estimate.value
    if measure.name == "partial_auc":
        value = measure.from_curve(curve, **{**filled, "standardize": False, "normalize": True})
    distance = max(0.0, min(value, 1 - value))
    if measure.name in ("roc_auc", "partial_auc", "tpr_at_fpr") and not filled.get("min_tpr"):
        near = n_fewest * distance < 1 - DUST
    else:
        near = estimate.low == estimate.high and estimate.low in (0.0, 1.0)
    if not near:
        return ""
    return (
        f"its value {value:.4g} is {distance:.2g} from {round(value)}; at least {1 / n_fewest:.2g} is "
        f"needed with {n_fewest:.4g} independent {_units(groups)} of the smaller class"
    )


def _units(groups: NDArray[np.intp] | None) -> str:
    return "rows" if groups is None else "groups"


def interval_notes(cautions: Iterable[tuple[str, str]]) -> list[str]:
    """Return a note for each reason for which 95 % intervals cover less often, from titles of measures and reasons."""
    measures: dict[str, list[str]] = {}
    for title, caution in cautions:
        if caution:
            measures.setdefault(caution, []).append(title)
    return [
        f"the 95 % interval{'s' * (len(names) > 1)} of {'; '.join(names)} may be too narrow: {caution}"
        for caution, names in measures.items()
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


# Confidence intervals and paired tests from the variance of the area, without resampling.


class _Region(NamedTuple):
    """Limits of a region; by default, the whole curve."""

    min_fpr: float = 0.0
    max_fpr: float = 1.0
    min_tpr: float = 0.0


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
    are the influence of each row on the area: the ends of the window are quantiles of the negatives, whose effect, the
    TPR there, the clipping accounts for. A lower limit on the true-positive rate is a quantile of the positives in the
    same way. With groups, the deviations of the values from their means are summed in each group (Obuchowski 1997).

    The interval of the AUC contains all :math:`\theta` with

    .. math:: |\theta - \widehat{A}| \le q\, \sqrt{\rho\, V(\theta)}, \qquad
        \rho = \frac{d\, \widehat{\mathrm{var}} / V(\widehat{A}) + 10}{d + 10}.

    :math:`V(\theta)` is Hanley and McNeil's variance for exponential scores, the larger of the two values if the
    classes are exchanged; ``d`` are the degrees of freedom of the estimated variance, from the fourth moments of the
    values; and ``q`` is the quantile of Student's distribution with ``d + 10`` degrees of freedom. With many rows, this
    is the interval from DeLong's variance, which is often too small with few rows of a class.

    The interval of a partial AUC is the normal interval of its logit, transformed back; if the area is 0 or 1, it is
    the interval of the AUC with the numbers of rows in the region.

    Parameters
    ----------
    y_true, y_score, min_fpr, max_fpr, min_tpr
    confidence_level
    sample_weight, pos_label, groups

    Returns
    -------
    low, high : float
        Ends of the interval, between 0 and 1 and never equal.

    Warns
    -----
    UserWarning
        If a limited region contains fewer than 30 rows of a limited class (in a corner, the rows between the points
        where the curve enters and leaves it), or if a class has fewer than 10 rows, or groups. The interval then covers
        less often than its level, as does that of :func:`bootstrap_interval`.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, Biometrics 1988. Pepe, The Statistical Evaluation of Medical Tests, 2003, section
    5.2. Obuchowski, Biometrics 1997. Hanley and McNeil, Radiology 1982. Newcombe, Statistics in Medicine 2006.

    Examples
    --------
    >>> from rocmax.metrics import delong_interval
    >>> y, s = [0] * 10 + [1] * 10, [*range(10), *range(5, 15)]
    >>> low, high = delong_interval(y, s)
    >>> round(low, 3), round(high, 3)
    (0.629, 0.963)
    """
    check_level(confidence_level)
    rows = rank_scores(y_true, y_score, sample_weight, pos_label)
    number = group_numbers(groups, sample_weight, y_true)
    placements = _placements(rows, min_fpr, max_fpr, min_tpr)
    ends = _delong_interval(rows, placements, _Region(min_fpr, max_fpr, min_tpr), confidence_level, number)
    _warn_if_few(placements)
    if few := _few_in_class(n_independent(rows.positive, rows.weight, number), number):
        warnings.warn(
            f"DeLong's interval covers less often than its level: {few}. Use more rows; the bootstrap covers less "
            "often still",
            UserWarning,
            stacklevel=stack_level(),
        )
    return ends


def _delong_interval(
    rows: RankedRows,
    placements: _Placements,
    limits: _Region,
    level: float,
    groups: NDArray[np.intp] | None,
) -> tuple[float, float]:
    """Return the interval of :func:`delong_interval`."""
    spread = _spread(rows, placements.values, groups)
    area = placements.area
    if limits != _Region() and spread.variance > 0 and 0 < area < 1:
        reach = norm.ppf((1 + level) / 2) * math.sqrt(spread.variance) / (area * (1 - area))
        low, high = expit(logit(area) + np.array([-reach, reach]))
        return float(low), float(high)
    in_region = spread._replace(
        n_positives=max(1.0, spread.n_positives * (1 - limits.min_tpr)),
        n_negatives=max(1.0, spread.n_negatives * (limits.max_fpr - limits.min_fpr)),
    )
    return _interval(area, in_region, level)


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

    The variance of the difference is that of :func:`delong_interval` for the row-wise differences of the placement
    values. Under the null hypothesis, ``difference / standard error`` is asymptotically normal.

    Parameters
    ----------
    y_true, y_score
    y_score_other : array-like of shape (n_samples,)
        Scores of the other model.
    min_fpr, max_fpr, min_tpr
    confidence_level
    sample_weight, pos_label, groups

    Returns
    -------
    Comparison
        ``difference`` (first minus second), ``low``, ``high`` and ``pvalue``.

    Warns
    -----
    UserWarning
        If a limited region contains fewer than 30 rows of a limited class; p-values are then usually too small.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, Biometrics 1988.

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
) -> list[IntervalEstimate]:
    """Return several measures with intervals, as ``estimate_measures``; that of the AUC is :func:`delong_interval`'s.

    With few rows of a class, the bootstrap covers the AUC less often, and its interval is a point if all pairs are in
    the right order. A class with one row, or group, has no variance, and the bootstrap's interval is kept.
    """
    found = estimate_measures(measures, y_true, y_score, groups=groups, **options)
    rows, number = rank_scores(y_true, y_score, None, None), group_numbers(groups, None, y_true)
    n_fewest = n_independent(rows.positive, rows.weight, number)
    if n_fewest < 2:
        return found
    names = [find_metric(measure, params)[0].name for measure, params in measures]
    if "roc_auc" not in names:
        return found
    ends = _delong_interval(rows, _placements(rows, *_Region()), _Region(), 0.95, number)
    caution = _few_in_class(n_fewest, number)
    return [
        IntervalEstimate(each.value, *ends, caution) if name == "roc_auc" else each
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
    return [f"{count:.3g} {name}" for name, count in counts.items() if count < RULES.min_in_region * (1 - DUST)]


def _warn_if_few(*models: _Placements) -> None:
    for count in _few(*models):
        warnings.warn(
            f"the window contains about {count}; DeLong's variance requires at least {RULES.min_in_region} and is not "
            "reliable with fewer. Use more rows or a wider window; the bootstrap is hardly more accurate",
            UserWarning,
            stacklevel=stack_level(),
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
    centered = values - np.average(values, weights=weight)
    second, fourth = (float(weight @ centered**power) / count for power in (2, 4))
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
    ratio = (df * spread.variance / law(inside) + RULES.min_rows) / (df + RULES.min_rows)
    reach = float(t.ppf((1 + level) / 2, df + RULES.min_rows)) ** 2 * ratio

    def excess(theta: float) -> float:
        return (theta - area) ** 2 - reach * law(theta)

    low = 0.0 if area <= DUST else float(brentq(excess, 0.0, inside))
    high = 1.0 if area >= 1 - DUST else float(brentq(excess, inside, 1.0))
    return min(low, area), max(high, area)


def expected_auc_interval(
    area: float, n_positives: float, n_negatives: float, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval that :func:`delong_interval` has for exponential scores with an area."""
    variance = _hanley_mcneil(area, n_positives, n_negatives)
    return _interval(area, _Spread(variance, math.inf, n_positives, n_negatives), level)


def _hanley_mcneil(theta: float, m: float, n: float) -> float:
    """Return the variance of an area for exponential scores, the larger one if the classes may be exchanged."""
    either = theta * (1 - theta) ** 2 / (2 - theta), theta**2 * (1 - theta) / (1 + theta)
    more, fewer = max(m, n) - 1, min(m, n) - 1
    return (theta * (1 - theta) + more * max(either) + fewer * min(either)) / (m * n)
