"""What a number of rows allows, before a fit: rows for a guarantee, widths of intervals, rows until an alarm."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import beta

from rocmax import monitor
from rocmax._folds import some_rows
from rocmax._rounding import window_end
from rocmax._support import Index, Parameter, ParameterError, holding
from rocmax._validation import check_range
from rocmax.data import Reading
from rocmax.metrics.uncertainty import expected_auc_interval
from rocmax.tables.fit import FitSettings, check_fit, held_out_share, split_rows
from rocmax.tables.options import HOLDERS, Columns, Limits, chosen
from rocmax.tables.read import Training, need_tables, read_training
from rocmax.thresholds import GroupEvidence, order_statistic, rows_needed


@dataclass(frozen=True)
class RowPlanRules:
    """Numbers of a plan.

    Attributes
    ----------
    n_samples : int
        Simulated watches; the median has a standard error of about 2 %.
    most_errors : int
        Errors after which a watch is ended: the rate is too close to the limit to be noticed.
    most_rows : int
        More rows than this are not looked for.
    """

    n_samples: int = 2000
    most_errors: int = 500
    most_rows: int = 10**12


RULES = RowPlanRules()


@dataclass(frozen=True)
class RowPlan:
    """What a number of rows allows.

    Attributes
    ----------
    limits : dict
        "max_fpr" and "min_tpr", None where there is no limit; "confidence" and "rate".
    rows : dict
        Number of "positive" and "negative" rows.
    held_out : dict
        The same among the held-out rows, and their "share" of the rows. With times, they are the rows of the test.
    guarantee : dict or None
        About the rate that is limited; None without a limit. Its "rows" are "negatives" or "positives", of which
        "held_out" are held out. With a confidence, "needed" of them are required, for which the table must have
        "rows_needed" rows, and "kept" says whether there are as many. "expected" is the mean over samples of the rate
        on new rows, between "low" and "high" in 90 % of the samples, for scores without ties; "given_away" is the
        relative distance of the mean to the limit, and "violation_bound" the probability of a rate beyond it. Without
        a confidence, the threshold is between two held-out scores, and the rate up to 1 / "held_out" better. With
        groups, "groups" are held out, "groups_needed" required, and the rate depends on how alike the rows of a group
        are.
    intervals : dict of dict
        For "fpr", "tpr" and "roc_auc", an assumed "value" and the ends "low" and "high" and the "width" of its 95 %
        confidence interval. The intervals of rates are exact binomial ones. That of the AUC is for exponential scores
        (Hanley and McNeil 1982). With groups, they are those of as many rows as there are groups: rows of a group that
        are less alike have narrower ones.
    width : dict of dict or None
        For each interval, the number of "held_out" rows with which it has the width that was asked for, and of "rows"
        of a table of which the largest share, a quarter or ``test_size``, is held out.
    monitor : dict or None
        How soon :class:`rocmax.monitor.Monitor` notices errors at twice the limit, the "rate", if the labels of all
        rows are known and it looks after each row: the "median" number of labels of the limited class until the alarm,
        the number "nine_in_ten" within which nine of ten alarms come, and the number of "rows" with the median. If only
        alerts are reviewed, "alerts_only" is the median number of rows, None if the rate is not noticed. None without a
        limit, or if twice the limit is not a rate.

    References
    ----------
    J. A. Hanley and B. J. McNeil (1982). The meaning and use of the area under a receiver operating characteristic
    (ROC) curve. Radiology 143, 29-36.
    """

    limits: dict[str, Any]
    rows: dict[str, int]
    held_out: dict[str, Any]
    guarantee: dict[str, Any] | None
    intervals: dict[str, dict[str, float]]
    width: dict[str, dict[str, Any]] | None
    monitor: dict[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for example for JSON."""
        return asdict(self)


@holding(HOLDERS)
def plan(
    table: Any = None,
    *,
    target: str | None = None,
    positive: Any = None,
    group: str | None = None,
    max_fpr: float | None = None,
    confidence: float | None = None,
    columns: Columns | None = None,
    limits: Limits | None = None,
    reading: Reading | None = None,
    rows: int | None = None,
    positives: int | None = None,
    test_size: float | None = None,
    auc: float = 0.8,
    width: float | None = None,
) -> RowPlan:
    """Return what the rows of a table, or a number of rows, allow, as ``rocmax plan`` does; nothing is fitted.

    Parameters
    ----------
    table : str, Path, list of them, file or data frame, default=None
        The table that a model is to be fitted to, as in :func:`fit_table`. None requires ``rows`` and ``positives``.
    target : str, default=None
        Name of the column with the labels.
    positive, group
    max_fpr : float, default=None
        Limit on the false-positive rate; None or 1 for no limit.
    confidence : float, default=None
        Probability with which the limit is to be kept on new rows.
    columns : Columns, default=None
        What the columns of the table are, as in :func:`fit_table`.
    limits : Limits, default=None
        Limits, as in :func:`fit_table`.
    reading
    rows : int, default=None
        Number of rows, if there is no table.
    positives : int, default=None
        Number of positive rows, if there is no table.
    test_size : float, default=None
        Fraction of the rows that is held out, as in :func:`fit_table`.
    auc : float, default=0.8
        The AUC that is assumed for the width of its interval.
    width : float, default=None
        Width of an interval, from its lower to its upper end, for which the number of rows is wanted.

    Returns
    -------
    RowPlan
        Rows for the guarantee, widths of intervals, and rows until an alarm.

    Examples
    --------
    >>> from rocmax.tables import plan
    >>> found = plan(rows=10_000, positives=200, max_fpr=0.01, confidence=0.95)
    >>> found.guarantee["needed"], found.guarantee["held_out"], round(found.guarantee["expected"], 4)
    (299, 2450, 0.0069)
    """
    declared = chosen(Columns, columns, target=target, positive=positive, group=group)
    limits = chosen(Limits, limits, max_fpr=max_fpr, confidence=confidence)
    known = "known" if table is None else declared.group
    settings = check_fit(limits, model="auto", test_size=test_size, random_state=0, tune=False, group=known)
    for name in ("min_precision", "capacity", "per", "block", "costs"):
        if getattr(settings.limits, name):
            reason = ": a plan is for limits on the false-positive rate and floors on the true-positive rate"
            raise ParameterError(Parameter(name), " must not be given", reason)
    check_range("auc", auc, 0.5, 1.0, "a number from 0.5 to 1")
    if width is not None:
        check_range("width", width, 0.0, 1.0, "a number above 0 and below 1", open_ends=True)
    if table is None:
        sizes = _counted(rows, positives, declared, settings)
    elif rows is not None or positives is not None:
        given = Parameter("rows"), " and ", Parameter("positives")
        raise ParameterError(*given, " must not be given with a table, which has its own")
    else:
        need_tables()
        sizes = _measured(read_training(table, declared, chosen(Reading, reading)), settings)
    limits, held_out = settings.limits, sizes.held_out
    found = {"max_fpr": limits.max_fpr if limits.window[1] < 1 else None, "min_tpr": limits.min_tpr or None}
    guarantee = _guarantee(sizes, limits)
    assumed = _assumed(guarantee, limits, auc)
    intervals = {}
    for name, value in assumed.items():
        low, high = _interval(name, value, *sizes.independent)
        intervals[name] = {"value": value, "low": low, "high": high, "width": high - low}
    return RowPlan(
        limits={**found, "confidence": limits.confidence, "rate": limits.rate},
        rows={"positive": sizes.rows[0], "negative": sizes.rows[1]},
        held_out={"positive": held_out[0], "negative": held_out[1], "share": sum(held_out) / sum(sizes.rows)},
        guarantee=guarantee,
        intervals=intervals,
        width=None if width is None else {name: _collect(name, assumed[name], width, sizes) for name in assumed},
        monitor=_watch(limits, sizes.rows[0] / sum(sizes.rows)),
    )


# Numbers of rows.


class _Sizes(NamedTuple):
    """Numbers of positive and negative rows.

    ``chosen_on`` and ``held_out`` are those for the threshold and for the test, which differ only if there are times,
    and ``share`` is the largest fraction that is held out for either. ``groups`` are the sizes of the groups of either
    class among the rows for the threshold and for the test.
    """

    rows: tuple[int, int]
    share: float
    chosen_on: tuple[int, int]
    held_out: tuple[int, int]
    groups: tuple[tuple[Index, Index], tuple[Index, Index]] | None = None

    @property
    def independent(self) -> tuple[int, int]:
        """Numbers of independent held-out rows or groups of either class."""
        return self.held_out if self.groups is None else (self.groups[1][0].size, self.groups[1][1].size)


def _counted(rows: int | None, positives: int | None, declared: Columns, settings: FitSettings) -> _Sizes:
    """Return the sizes from given numbers."""
    if declared != Columns():
        raise ParameterError("columns describe a table, and there is none; pass the table")
    if rows is None or positives is None:
        both = Parameter("rows", ...), " and ", Parameter("positives", ...)
        raise ParameterError("pass a table, or the numbers of its rows: ", *both)
    if settings.limits.rate == "group":
        raise ParameterError(Parameter("rate", "group"), " requires a table with groups")
    needed = f"an integer from 8 to {RULES.most_rows:,}"
    check_range("rows", rows, 8, RULES.most_rows, needed, integer=True)
    needed = f"an integer from 4 to {rows - 4:,}, so that each class has at least 4 of the {rows:,} rows"
    check_range("positives", positives, 4, rows - 4, needed, integer=True)
    counts = int(positives), int(rows - positives)
    # As the stratified split of a table does, up to one row.
    total = math.ceil(held_out_share(*counts, settings) * rows)
    first = round(total * counts[0] / rows)
    held_out = first, total - first
    return _Sizes(counts, settings.most_held_out, held_out, held_out)


def _measured(training: Training, settings: FitSettings) -> _Sizes:
    """Return the sizes of a table, with the split that a fit makes."""
    positive = training.target.is_positive
    parts = split_rows(training, settings)
    counts, chosen_on, held_out = (
        (int(side.sum()), int((~side).sum())) for side in (positive, positive[parts.calibration], positive[parts.test])
    )
    sizes = _Sizes(counts, settings.most_held_out / (1 if training.times is None else 2), chosen_on, held_out)
    if training.groups is None:
        return sizes

    def sides(rows: Index) -> tuple[Index, Index]:
        groups, side = some_rows(training.groups, rows), positive[rows]
        first, second = (np.unique(groups[one], return_counts=True)[1] for one in (side, ~side))
        return first, second

    return sizes._replace(groups=(sides(parts.calibration), sides(parts.test)))


# The guarantee.


def _guarantee(sizes: _Sizes, limits: Limits) -> dict[str, Any] | None:
    """Return what is known about the limited rate before the fit."""
    if not limits.limited:
        return None
    of_positives = limits.min_tpr > 0
    max_rate = round(1 - limits.min_tpr, 12) if of_positives else limits.window[1]
    side = 0 if of_positives else 1
    n = sizes.chosen_on[side]
    found: dict[str, Any] = {"rows": ("positives", "negatives")[side], "held_out": n}
    if sizes.groups is not None:
        return found | _for_groups(sizes.groups[0][side], max_rate, limits)
    if limits.confidence is None:
        return found | _expected(n, n - math.floor(window_end(n, max_rate)), max_rate, of_positives)
    needed = rows_needed(max_rate, 1 - limits.confidence)
    found |= {
        "needed": needed,
        "kept": n >= needed,
        "rows_needed": math.ceil(needed * sum(sizes.rows) / (sizes.rows[side] * sizes.share)),
    }
    if n < needed:
        return found
    return found | _expected(n, order_statistic(n, max_rate, 1 - limits.confidence)[0], max_rate, of_positives)


def _for_groups(sizes: Index, max_rate: float, limits: Limits) -> dict[str, Any]:
    if limits.confidence is None:
        return {"groups": sizes.size}
    evidence = GroupEvidence(sizes, max_rate, 1 - limits.confidence, limits.rate)
    kept = evidence.is_enough(np.zeros(evidence.n_groups, dtype=np.intp))
    needed = {"groups": evidence.n_groups, "groups_needed": evidence.needed(), "kept": kept}
    return needed | ({"violation_bound": 1 - limits.confidence} if kept else {})


def _expected(n: int, order: int, max_rate: float, of_positives: bool) -> dict[str, float]:
    """Return the distribution of the rate on new rows, if the threshold is an order statistic of ``n`` rows.

    The share of the distribution of scores beyond the ``k``-th of ``n`` independent ones has the distribution
    Beta(n - k + 1, k), for any continuous distribution.
    """
    law = beta(n - order + 1, order)
    low, mean, high = float(law.ppf(0.05)), (n - order + 1) / (n + 1), float(law.ppf(0.95))
    given_away, beyond = 1 - mean / max_rate, float(law.sf(max_rate))
    if of_positives:
        low, mean, high = 1 - high, 1 - mean, 1 - low
    return {"expected": mean, "low": low, "high": high, "given_away": given_away, "violation_bound": beyond}


# Intervals.


def _assumed(guarantee: dict[str, Any] | None, limits: Limits, auc: float) -> dict[str, float]:
    """Return the value of each measure whose interval is wanted: the rate of the threshold, where that is known."""
    found = {}
    expected = (guarantee or {}).get("expected")
    floor, limit = limits.min_tpr, limits.window[1]
    if limit < 1:
        found["fpr"] = limit if expected is None or floor > 0 else expected
    if limits.limited:
        found["tpr"] = (floor if expected is None else expected) if floor > 0 else 0.5  # the widest
    return {**found, "roc_auc": auc}


def _interval(name: str, value: float, positive: float, negative: float) -> tuple[float, float]:
    """Return the confidence interval of a measure with numbers of rows, which need not be integers."""
    if name == "roc_auc":
        return expected_auc_interval(value, positive, negative, 0.95)
    n = positive if name == "tpr" else negative
    hits, tail = value * n, 0.025
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.isf(tail, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


def _collect(name: str, value: float, width: float, sizes: _Sizes) -> dict[str, Any]:
    """Return the numbers of held-out rows and of all rows with which an interval has a width."""
    if sizes.groups is not None:
        raise ParameterError(
            Parameter("width"),
            " must not be given with groups: how many rows it takes depends on how alike the rows of a group are",
        )
    total = sum(sizes.held_out)
    positive, negative = (count / total for count in sizes.held_out)

    def wide(n: int) -> bool:
        low, high = _interval(name, value, positive * n, negative * n)
        return high - low > width

    # With less than two rows of a class, there is no interval of the AUC.
    low = math.ceil(2 / min(positive, negative))
    high = low if not wide(low) else max(total, low + 1)
    while wide(high):
        low, high = high, 2 * high
        if high > RULES.most_rows:
            limit = f" requires more than {RULES.most_rows:,} rows; got {width:g}"
            raise ParameterError(Parameter("width"), limit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide(middle) else (low, middle)
    return {"held_out": high, "rows": math.ceil(high / sizes.share)}


# Rows until an alarm.


def _watch(limits: Limits, share: float) -> dict[str, Any] | None:
    """Return how soon a monitor notices twice as many errors as allowed; ``share`` is that of the positives."""
    of_positives = limits.min_tpr > 0
    allowed = 1 - limits.min_tpr if of_positives else limits.window[1]
    rate = 2 * allowed
    if not limits.limited or rate >= 1:
        return None
    level = 1 - (limits.confidence or 0.95)
    alarms = np.sort(_alarms(allowed, rate, level, 0.09))
    median, late = (int(alarms[round(each * alarms.size)]) for each in (0.5, 0.9))
    found: dict[str, Any] = {"rate": 1 - rate if of_positives else rate, "median": median, "nine_in_ten": late}
    found["rows"] = math.ceil(median / (share if of_positives else 1 - share))
    if not of_positives:
        # False alarms among all rows.
        reviewed = _alarms(allowed, rate * (1 - share), level, 0.49)
        middle = float(np.median(reviewed))
        found["alerts_only"] = int(middle) if np.isfinite(middle) else None
    return found


def _alarms(allowed: float, rate: float, level: float, open_share: float) -> Any:
    """Return how many rows the monitor needs in simulated watches.

    The evidence rises with an error only. Errors are simulated until a share of the watches is open, whose alarms are
    infinite here. The bets that start later have too little weight to matter.
    """
    won, lost = monitor.bets(1 - allowed, allowed)
    rng = np.random.default_rng(0)
    first = monitor.RULES.first
    rows, alarms, errors = np.zeros(RULES.n_samples), np.full(RULES.n_samples, np.inf), 0
    while np.isinf(alarms).mean() > open_share and errors < RULES.most_errors:
        errors += 1
        rows += rng.geometric(rate, RULES.n_samples)
        open_ = np.isinf(alarms)
        wealth = errors * won + (rows[open_, None] - errors) * lost
        evidence = np.logaddexp(logsumexp(wealth, axis=1) - np.log(won.size) + np.log(first), np.log1p(-first))
        ended = evidence >= -np.log(level)
        alarms[np.flatnonzero(open_)[ended]] = rows[open_][ended]
    return alarms
