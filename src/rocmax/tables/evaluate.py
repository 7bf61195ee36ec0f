"""Evaluation of a model on labeled rows, and notes about results that the rows cannot support."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from rocmax._rounding import window_end
from rocmax._support import Array, Bools, Caution, Index, Message, Parameter, holding
from rocmax.costs import CaseCosts, Costs, expected_cost
from rocmax.data import DataError, Reading
from rocmax.data.read import check_columns
from rocmax.metrics import exchangeability_test, partial_auc_score, positive_scores
from rocmax.metrics.rates import RULES as PERIODS
from rocmax.metrics.rates import prediction_interval, rate_interval, rates_by_period
from rocmax.metrics.scores import METRICS
from rocmax.metrics.uncertainty import estimate_with_delong, interval_notes
from rocmax.tables.columns import read_times
from rocmax.tables.model import Facts, TableModel, known_levels, risk_scores
from rocmax.tables.options import HOLDERS, Limits, chosen, window_measure, window_measure_names
from rocmax.tables.read import Target, Training, group_values, known_target, need_tables, source_notes

# Measures with confidence intervals.


# Resamples of the bootstrap.
N_RESAMPLES = 1000


def usable_groups(groups: Any, positive: Any) -> tuple[Any, list[str]]:
    """Return the groups of labeled rows; None and a note if a class has too few of them for an interval."""
    if groups is None:
        return None, []
    counts = {name: np.unique(groups[side]).size for name, side in (("positive", positive), ("negative", ~positive))}
    few = [f"{name} rows of one group only" for name, count in counts.items() if count < 2]
    if not few:
        return groups, []
    return None, [f"{' and '.join(few)}: the confidence intervals are for independent rows and can be too narrow"]


def measured(
    names: list[str], limits: Limits, seed: int, positive: Any, scores: Any, groups: Any = None
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the values of measures with their confidence intervals, by name, and notes about too narrow ones.

    Groups are independent or, without groups, rows.
    """
    measures = [window_measure(limits, name) for name in names]
    options: dict[str, Any] = {"n_resamples": N_RESAMPLES, "random_state": seed, "groups": groups}
    found = estimate_with_delong([(measure, {}) for measure in measures], positive, scores, **options)
    by_name = {
        measure.name: {"value": each.value, "low": each.low, "high": each.high}
        | {key: measure.params[key] for key in ("min_fpr", "max_fpr", "min_tpr") if key in measure.params}
        for measure, each in zip(measures, found, strict=True)
    }
    return by_name, interval_notes((m.title, each.caution) for m, each in zip(measures, found, strict=True))


# Notes about results that the rows of a table cannot support.


@dataclass(frozen=True)
class NoteRules:
    """From where on a note is given; each is a convention that keeps notes rare, not a measurement."""

    # Number of rows of a class, and of rows that a limit allows on the wrong side, below which a result is uncertain.
    few_rows: int = 30
    few_above: int = 5
    # Share of held-out rows that are also training rows.
    duplicates: float = 0.01
    # Value of a measure, and AUC of one column, from which a column is suspected to contain the label.
    perfect: float = 0.9995
    leaking: float = 0.99
    most_suspects: int = 5
    # Values of a column that this share of a class has, and that are so many times as frequent as in the other class,
    # are suspected to be filled in after the label was known.
    leaked_share: float = 0.2
    leaked_ratio: float = 50
    # p-value that is called significant.
    significant: float = 0.05


RULES = NoteRules()


def row_notes(positive: Bools, limits: Limits, rows: str = "held-out rows") -> list[str]:
    """Return notes about classes with few rows, and about limits that few negatives or positives may exceed."""
    m, n = int(positive.sum()), int((~positive).sum())
    max_fpr, min_tpr = limits.window[1], limits.min_tpr
    few = [f"{count} {side}" for count, side in ((m, "positive"), (n, "negative")) if count < RULES.few_rows]
    notes = [f"only {' and '.join(few)} {rows}: the measure is uncertain"] if few else []
    if max_fpr < 1:
        start = f"a false-positive rate of at most {max_fpr:g} allows"
        notes += _limit_notes(start, max_fpr, n, "negative", rows)
    if min_tpr > 0:
        start = f"a true-positive rate of at least {min_tpr:g} allows missing"
        # Without the rounding error of 1 - 0.9.
        notes += _limit_notes(start, round(1 - min_tpr, 12), m, "positive", rows)
    return notes


def _limit_notes(start: str, rate: float, count: int, side: str, rows: str) -> list[str]:
    """Return a note if a rate allows few rows of a class."""
    above = window_end(count, rate)
    if above >= RULES.few_above:
        return []
    allowed = "none" if above < 1 else str(math.floor(above))
    return [
        f"{start} {allowed} of the {count:,} {side} {rows}: results at this limit are uncertain; "
        f"{RULES.few_above} of them would take {math.ceil(RULES.few_above / rate):,} {side} rows"
    ]


def corner_notes(positive: Bools, scores: Array, limits: Limits, rows: str = "held-out rows") -> list[str]:
    """Return a note if the ROC curve does not enter the corner of the limits of a model."""
    min_tpr, max_fpr = limits.min_tpr, limits.window[1]
    if min_tpr == 0 or partial_auc_score(positive, scores, min_tpr=min_tpr, max_fpr=max_fpr) > 0:
        return []
    return [
        f"the ROC curve of the {rows} does not enter the corner TPR >= {min_tpr:g}, FPR <= {max_fpr:g}, so that its "
        "partial AUC is 0; choose limits that the model can reach"
    ]


def limit_notes(limits: Limits, rates: Mapping[str, float], training: Training, model: Any) -> list[str]:
    """Return notes about what the limits of a fitted model depend on, and about one that is not kept."""
    notes: list[str] = []
    share = training.target.is_positive.mean()
    if not limits.extended and limits.min_tpr > 0 and rates["fpr"] > limits.window[1]:
        both = Parameter("min_tpr", limits.min_tpr), f" takes a false-positive rate of {rates['fpr']:.3g}, above "
        end = ", for which the model was trained; the threshold keeps the former"
        notes.append(Message(*both, Parameter("max_fpr", limits.window[1]), end))
    if limits.min_precision or (limits.block is not None and limits.block.min_precision):
        notes.append(f"precision holds for a share of positives of {share:.3g}, as here; with fewer, it is lower")
    if limits.column is not None:
        n_values = len(model.thresholds_)
        notes.append(
            f"{n_values} values of {limits.column!r} have thresholds of their own; other rows, the highest one"
        )
    return notes


def duplicate_notes(X: Any, train: Index, test: Index) -> list[str]:
    """Return a note if many held-out rows are equal to training rows."""
    if not hasattr(X, "columns"):
        return []
    import pandas as pd

    keys = pd.util.hash_pandas_object(X, index=False)
    count = int(keys.iloc[test].isin(keys.iloc[train]).sum())
    if count <= RULES.duplicates * test.size:
        return []
    return [
        f"{count:,} of {test.size:,} held-out rows have the same values as a training row: if they are the same cases, "
        "the measure is too high"
    ]


def perfect_notes(value: float, X: Any, positive: Bools) -> list[str]:
    """Return a note about a perfect result on held-out rows, with the columns that separate the classes of all rows."""
    if value < RULES.perfect:
        return []
    suspects = [] if not hasattr(X, "columns") else _suspects(X, positive)
    if not suspects:
        return ["the held-out rows are ranked perfectly; does a column contain the label?"]
    names = ", ".join(map(repr, suspects))
    return [
        Message(
            f"the held-out rows are ranked perfectly, and {names} alone would do; if it is known only after the label, "
            "leave it out: ",
            Parameter("drop", suspects),
        )
    ]


def chance_notes(held_out: Mapping[str, Any], rates: Mapping[str, float], limits: Limits, positive: Bools) -> list[str]:
    """Return warnings about a model that finds no positive held-out row, or whose result could be chance."""
    notes: list[str] = []
    if rates["tpr"] == 0:
        notes.append(
            Caution(
                f"the model finds none of the {int(positive.sum()):,} positive held-out rows: their scores are at most "
                "the saved threshold (TPR 0)"
            )
        )
    measure = window_measure(limits)
    # The TPR of constant scores is 0 or 1; random scores have the same TPR and FPR.
    at_limit = limits.measure == "tpr_at_fpr"
    by_chance = limits.window[1] if at_limit else measure.score(positive, np.zeros(positive.size))
    if held_out["low"] <= by_chance < 1 and by_chance > 0:
        notes.append(
            Caution(
                f"the {positive.size:,} held-out rows do not show that the model is better than chance: "
                f"{measure.title} {held_out['value']:.4f}, 95 % interval [{held_out['low']:.4f}, "
                f"{held_out['high']:.4f}]; random scores have {by_chance:.4f}"
            )
        )
    return notes


def leak_notes(X: Any, positive: Bools) -> list[str]:
    """Return a note about each column with values that one class often has and the other class never.

    The values are: all that are known or all that are missing; a category; and, for numbers, all that differ from the
    most frequent one. Large or small numbers are not looked at, because a good feature separates classes by them.
    """
    notes: list[str] = []
    sizes = np.array([np.count_nonzero(positive), np.count_nonzero(~positive)])
    for name in X.columns if hasattr(X, "columns") else ():
        for text, counts in _value_sets(X[name], positive):
            shares = counts / sizes
            # 0 of n rows exclude, with a confidence of 95 %, a share of more than 3 / n.
            least = RULES.leaked_ratio * np.maximum(shares, 3 / sizes)[::-1]
            if np.any(shares >= np.maximum(RULES.leaked_share, least)):
                rows = f"{shares[0]:.1%} of the positive rows and {shares[1]:.1%} of the others"
                wish = "if it is known only after the label, leave it out: "
                notes.append(Message(f"{name!r} {text} in {rows}; {wish}", Parameter("drop", [name])))
                break
    return notes[: RULES.most_suspects]


def _value_sets(column: Any, positive: Bools) -> Iterator[tuple[str, Array]]:
    """Yield sets of values, each with its description and the numbers of positive rows and of others in it."""
    filled = column.notna().to_numpy()
    sides = positive, ~positive
    sizes, known = (np.array([np.count_nonzero(side & rows) for side in sides]) for rows in (True, filled))
    if not filled.any():
        return
    if not filled.all():
        yield "is filled", known
        yield "is missing", sizes - known
    values = column.to_numpy() if column.dtype.kind == "f" else column
    by_side = [values[side & filled] for side in sides]
    if column.dtype.kind == "f":
        if any(_nearly_constant(*each) for each in zip(by_side, sizes, strict=True)):
            usual = column.value_counts().index[0]
            yield f"differs from {usual:g}", np.array([np.count_nonzero(each != usual) for each in by_side])
        return
    counts, counts_of = column.value_counts(), [each.value_counts() for each in by_side]
    for level in counts.index[counts >= RULES.leaked_share * sizes.min()]:
        yield f"is {level!r}", np.array([each.get(level, 0) for each in counts_of])


def _nearly_constant(known: Array, n_rows: int) -> bool:
    """Return whether nearly all rows of a class have one number: otherwise, it does not tell the classes apart."""
    few = n_rows / RULES.leaked_ratio
    if known.size <= 2 * few:
        return True
    # What nearly all have is the median.
    median = np.partition(known, known.size // 2)[known.size // 2]
    return bool(np.count_nonzero(known != median) <= few)


def split_notes(n_splits: int) -> list[str]:
    """Return a note if no difference between models can be significant."""
    least = 2.0 / 2.0**n_splits
    if least <= RULES.significant:
        return []
    enough = math.ceil(1 - math.log2(RULES.significant))
    return [
        Message(
            f"{n_splits} splits cannot give a p-value below {least:g}; use at least ", Parameter("n_splits", enough)
        )
    ]


def _suspects(X: Any, positive: Bools) -> list[str]:
    import pandas as pd

    found = []
    for name in X.columns:
        column = X[name]
        if column.dtype.kind != "f":
            # The share of positives of each category, as the score of its rows.
            labels = pd.Series(positive.astype(float))
            values = labels.groupby(column.fillna("").to_numpy()).transform("mean").to_numpy()
        else:
            values = column.fillna(column.median() if column.notna().any() else 0.0).to_numpy()
        if len(np.unique(values)) > 1:
            area = roc_auc_score(positive, values)
            if max(area, 1 - area) >= RULES.leaking:
                found.append(name)
    return found[: RULES.most_suspects]


# Evaluation of a model on labeled rows.


class ScoredRows(NamedTuple):
    """Scores, minus the threshold, of labeled rows, with their groups, if any."""

    scores: Array
    positive: Bools
    groups: Any = None


def resemblance(limits: Limits, earlier: ScoredRows, later: ScoredRows, seed: int) -> dict[str, Any] | None:
    """Return whether later rows resemble those that the threshold was chosen on; None without a limit on a rate.

    The "side" is the class that the limit is about; "then" and "now" are the shares of its rows above the threshold.
    The rows resemble each other unless the p-value of :func:`rocmax.metrics.exchangeability_test` is small.
    """
    if not limits.limited:
        return None
    of_positives = limits.min_tpr > 0
    own = [rows.positive == of_positives for rows in (earlier, later)]
    scores = [rows.scores[side] for rows, side in zip((earlier, later), own, strict=True)]
    rate = 1 - limits.min_tpr if of_positives else limits.window[1]
    grouped = earlier.groups is not None and later.groups is not None
    before, after = ((-values if of_positives else values) for values in scores)
    groups = (earlier.groups[own[0]], later.groups[own[1]]) if grouped else None
    p = exchangeability_test(before, after, rate, groups=groups, random_state=seed)
    then, now = (float((values > 0).mean()) for values in scores)
    side = "positive" if of_positives else "negative"
    return {"side": side, "then": then, "now": now, "p_value": p, "resembles": p > RULES.significant}


def resemblance_notes(found: dict[str, Any] | None, limits: Limits) -> list[str]:
    """Return a warning if the test rows do not resemble those that the threshold was chosen on."""
    if found is None or found["resembles"]:
        return []
    rate = "false-positive" if found["side"] == "negative" else "true-positive"
    promise = "" if limits.confidence is None else f", and the confidence of {limits.confidence:g} is not stated"
    return [
        Caution(
            f"the {rate} rate at the saved threshold moved from {found['then']:.1%} on the calibration rows to "
            f"{found['now']:.1%} on the later test rows, more than chance explains (p = {found['p_value']:.2g}): the "
            f"limit holds only if the future resembles the calibration rows{promise}"
        )
    ]


def later_value(name: str, aim: Limits, parts: list[tuple[NDArray[Any], ScoredRows]]) -> dict[str, Any] | None:
    """Return what to expect of a measure in a later period, from its values in periods after the training rows.

    Each part, times and rows, is divided into periods with equally many rows. The result has the ends "low" and "high"
    of the 95 % prediction interval and the number "periods"; it is None if fewer than three have rows of both classes.
    """
    measure, values = window_measure(aim, name), []
    for times, rows in parts:
        # Equal times are in one period.
        place = np.searchsorted(np.sort(times), times) * PERIODS.judged // times.size
        for number in range(PERIODS.judged):
            own = place == number
            if 0 < rows.positive[own].sum() < own.sum():
                values.append(measure.score(rows.positive[own], rows.scores[own]))
    if len(values) < PERIODS.judged:
        return None
    low, high = prediction_interval(values)
    return {"low": max(low, 0.0), "high": min(high, 1.0), "periods": len(values)}


class ScoredTable(NamedTuple):
    """Scores and decisions of a model on a labeled table; ``columns`` are its columns, from which ``X`` is made."""

    fitted: TableModel
    target: Target
    scores: Array
    predicted: Bools
    X: Any
    notes: list[str]
    groups: Any = None
    times: NDArray[Any] | None = None
    columns: Any = None
    costs: CaseCosts | None = None


@dataclass(frozen=True)
class TableEvaluation:
    """Result of a model on labeled rows.

    Attributes
    ----------
    model : str
        Name of the model.
    positive : str
        Label of the positive class.
    rows : dict
        Number of "positive" and "negative" rows.
    measures : dict of str to dict
        For each measure: "value", the limits "low" and "high" of its 95 % confidence interval, and the FPR range.
    threshold : dict
        Results of the decisions of the model: "tp", "fp", "tpr", "fpr", "precision", the share of "alerts", and the
        limits "max_fpr", "min_tpr", "min_precision" and "capacity", as a share of the rows.
    scores : ndarray of shape (n_rows,)
        Score of each row, above zero for the positive class; if each row has a threshold for its own costs, the
        log-odds of its risk.
    is_positive : ndarray of shape (n_rows,)
        Whether each row is of the positive class.
    notes : list of str
        Results that the rows cannot support.
    groups : int or None
        Number of groups whose rows depend on each other, so that intervals resample groups; None if rows are taken as
        independent: the model has no group column, or the table does not have it.
    costs : dict or None
        Mean cost per row of the decisions and their savings with the limits of 95 % intervals, and the cost if no row
        is flagged and if all are, as in :class:`rocmax.costs.CostEstimate`; None without costs.
    over_time : list of dict or None
        Rates at the threshold in each period: "name", "rows", "flagged", and "fpr" and "tpr" with the limits "low" and
        "high" of their 95 % confidence intervals; None if the model has no time column, or the table does not have it.
    """

    model: str
    positive: str
    rows: dict[str, int]
    measures: dict[str, dict[str, Any]]
    threshold: dict[str, Any]
    scores: Array
    is_positive: Bools
    notes: list[str] = field(default_factory=list)
    groups: int | None = None
    costs: dict[str, float] | None = None
    over_time: list[dict[str, Any]] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the arrays as plain values, for example for JSON."""
        names = ("model", "positive", "rows", "measures", "threshold", "notes", "groups", "costs", "over_time")
        return {name: getattr(self, name) for name in names}


@holding(HOLDERS)
def evaluate(
    model: TableModel,
    table: Any,
    *,
    target: str | None = None,
    costs: Costs | None = None,
    reading: Reading | None = None,
) -> TableEvaluation:
    """Evaluate a model on labeled rows, as ``rocmax evaluate`` does.

    Parameters
    ----------
    model : TableModel
        Model returned by :func:`fit_table` or :func:`load_model`.
    table
    target : str, default=None
        The column with the labels. None takes the name that it had in the table of the fit.
    costs : Costs, default=None
        What decisions cost. None takes the costs of the model, if the table has their columns.
    reading

    Returns
    -------
    TableEvaluation
        Measures with confidence intervals, and the results at the threshold.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.tables import evaluate, fit_table
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> model = fit_table(table, target="target", positive=0, max_fpr=0.05, tune=False)
    >>> result = evaluate(model, table.iloc[model.held_out_rows])
    >>> list(result.measures)
    ['partial_auc', 'roc_auc', 'tpr_at_fpr', 'break_even_point', 'average_precision']
    >>> result.threshold["fpr"] <= 0.05
    True
    """
    need_tables()
    return _evaluation(score_table(model, table, target, chosen(Reading, reading), costs))


def score_table(
    fitted: TableModel, table: Any, target: str | None, reading: Reading, costs: Costs | None = None
) -> ScoredTable:
    """Return scores, by which rows rank by risk, and decisions on a labeled table, with the costs of the rows."""
    facts = fitted.facts
    if costs is not None:
        costs.check()
    source = facts.open(table, reading)
    options = facts.read_options(fitted.place, source)
    if source.columns is not None:
        target = target or facts.target
        if target is None:
            advice = Message(f"pass the column with the labels of {source.name}: ", Parameter("target", ...))
            raise DataError(advice)
        options["target"] = target
    # Columns that no feature is made of, if the table has them.
    group, time = (name if name in (source.columns or ()) else None for name in (facts.group, facts.time))
    costs = _known_costs(facts, source, costs)
    known = (group, time, *(() if costs is None else costs.columns))
    extra = {name: "raw" for name in known if name is not None and name not in options["types"]}
    if extra:
        options |= {"columns": [*options["columns"], *extra], "types": {**options["types"], **extra}}
    columns, y = source.read(**options)
    X = columns
    groups = None if group is None else group_values(source.name, X[group])
    order = facts.time_day_first if reading.day_first is None else reading.day_first
    times = None if time is None else read_times(X[time], order, source)[0]
    levels = known_levels(fitted.model, facts.features)
    X = facts.features_of(X, source, day_first=reading.day_first, levels=levels)
    labels = known_target(y, facts.positive, facts.negative, f"column {target!r}" if target else "the target")
    predicted = fitted.model.predict(X) == facts.positive
    scores = risk_scores(fitted.model, positive_scores(fitted.model, X, pos_label=facts.positive), X)
    case = None
    if costs is not None:
        case = costs.of(
            X.assign(**{name: columns[name] for name in costs.columns if name not in X}) if costs.columns else X
        )
    return ScoredTable(fitted, labels, scores, predicted, X, source_notes(source), groups, times, columns, case)


def _known_costs(facts: Facts, source: Any, given: Costs | None) -> Costs | None:
    """Return the costs that are given, or those of the model if the table has their columns."""
    if given is not None:
        check_columns(source.name, given.columns, source.columns or ())
        return given
    own = facts.limits.costs
    return own if own is not None and set(own.columns) <= set(source.columns or ()) else None


def _evaluation(scored: ScoredTable) -> TableEvaluation:
    positive, predicted, facts = scored.target.is_positive, scored.predicted, scored.fitted.facts
    limits = facts.aim
    groups, notes = usable_groups(scored.groups, positive)
    notes += row_notes(positive, facts.limits, "rows")
    measures, narrow = measured(_measure_names(facts), limits, facts.seed, positive, scored.scores, groups)
    return TableEvaluation(
        model=scored.fitted.name,
        positive=scored.target.positive,
        rows={"positive": int(positive.sum()), "negative": int((~positive).sum())},
        measures=measures,
        threshold={
            "max_fpr": facts.max_fpr if facts.max_fpr < 1 else None,
            "min_tpr": facts.min_tpr or None,
            "min_precision": facts.min_precision or None,
            "capacity": facts.capacity_share,
            "tp": int(np.sum(positive & predicted)),
            "fp": int(np.sum(~positive & predicted)),
            **rates_of(positive, predicted),
        },
        scores=scored.scores,
        is_positive=positive,
        notes=scored.notes + notes + narrow + corner_notes(positive, scored.scores, limits, "rows"),
        groups=None if groups is None else int(np.unique(groups).size),
        costs=None
        if scored.costs is None
        else expected_cost(scored.costs, positive, predicted, groups=groups, random_state=facts.seed)._asdict(),
        over_time=None if scored.times is None else over_time(scored.times, predicted, positive, groups),
    )


def rates_of(positive: Bools, above: Bools) -> dict[str, Any]:
    """Return the rates of the rows above a threshold; the precision is None if there are none."""
    rates: dict[str, Any] = {"tpr": float(above[positive].mean()), "fpr": float(above[~positive].mean())}
    return {**rates, "precision": float(positive[above].mean()) if above.any() else None, "alerts": float(above.mean())}


def rate_intervals(positive: Bools, above: Bools, groups: Any) -> dict[str, list[float]]:
    """Return the ends of the 95 % confidence intervals of the rates of :func:`rates_of` that have rows."""
    sides = {"tpr": (above, positive), "fpr": (above, ~positive), "precision": (positive, above)}
    parts = {**sides, "alerts": (above, np.ones_like(above))}
    return {
        name: list(rate_interval(hits[rows], None if groups is None else groups[rows])[:2])
        for name, (hits, rows) in parts.items()
        if rows.any()
    }


def over_time(times: NDArray[Any], predicted: Bools, positive: Bools, groups: Any) -> list[dict[str, Any]]:
    """Return the rates in each period as plain values."""
    return [period.to_dict() for period in rates_by_period(times, predicted, positive, groups)]


def _measure_names(facts: Facts) -> list[str]:
    """Return the measures to report, the one of the model first; those of a limit only if there is one."""
    names = [facts.measure, *(name for name in window_measure_names() if name != facts.measure)]
    above = facts.min_tpr > 0
    if facts.aim.max_fpr == 1.0:
        kept = {"partial_auc"} if above else set()
        names = [name for name in names if "max_fpr" not in METRICS[name].parameters or name in kept]
    return [*names, "fpr_at_tpr"] if above else names
