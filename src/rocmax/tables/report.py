"""HTML report of models on one table."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rocmax._files import check_not_input, check_output, write_file
from rocmax._support import Array, Bools, Parameter, ParameterError, holding, need
from rocmax._validation import check_range, positive_index
from rocmax.costs import CaseCosts
from rocmax.data import DataError, Reading
from rocmax.report import (
    Alert,
    Change,
    Feature,
    Reconciled,
    ReportModel,
    Segment,
    TestData,
    features_of,
    page_and_card,
)
from rocmax.report.page import LAYOUT
from rocmax.tables.evaluate import ScoredTable, measured, rate_intervals, rates_of, score_table, usable_groups
from rocmax.tables.model import TITLES, Facts, TableModel, ValueShares, file_hashes, known_levels
from rocmax.tables.options import HOLDERS, chosen
from rocmax.tables.preprocess import MISSING
from rocmax.tables.read import need_tables
from rocmax.tables.reasons import Reasons
from rocmax.tables.tune import family_text, tuning_text
from rocmax.thresholds import calibrated

# What stands for a category of few rows.
OTHER = "(other)"
# What only a person knows, as keys of a model card.
CARD_KEYS = (
    "purpose",
    "owner",
    "contact",
    "intended_use",
    "not_for",
    "limitations",
    "data",
    "approved_by",
    "review_by",
    "notes",
)


@holding(HOLDERS)
def write_report(
    models: TableModel | Sequence[TableModel],
    table: Any,
    out: str | Path,
    *,
    target: str | None = None,
    segment: str | None = None,
    alerts: int = 5,
    card: str | Path | Mapping[str, Any] | None = None,
    card_out: str | Path | None = None,
    reading: Reading | None = None,
    notify: Callable[[str], None] | None = None,
) -> None:
    """Write an HTML report of models on a labeled table, as ``rocmax report`` does.

    The page contains the decision at a limit on the false-positive rate or a floor on the true-positive rate, with
    sliders for both; curves with confidence bands, costs, scores, measures and paired tests, results by segment, the
    most important columns with their effects, the numbers of the fit next to those of the table, and a model card. It
    is self-contained: no other file is loaded.

    Parameters
    ----------
    models : TableModel or sequence of TableModel
        One or more models with the same positive class. The paired tests compare the others with the first.
    table
    out : str or Path
        The page to write, which appears whole or not at all.
    target : str, default=None
        The column with the labels. None takes the name that it had in the table of the fit.
    segment : str, default=None
        Column of the first model by whose values the results are also given, with confidence intervals. Numbers are
        divided at their quartiles.
    alerts : int, default=5
        Number of flagged rows to show, with the columns that moved their scores most. 0 shows none: no value of a
        single row is then in the page.
    card : str, Path or mapping, default=None
        What only a person knows about the model, for the model card: a file that ends in ``.toml`` or ``.json``, or its
        content. The keys are "purpose", "owner", "contact", "intended_use", "not_for", "limitations", "data",
        "approved_by", "review_by" and "notes"; the values are text, numbers, dates, or lists of them.
    card_out : str or Path, default=None
        The model card, with the results, as Markdown. None writes none.
    reading
    notify : callable, default=None
        Called with each note as soon as it is known.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.tables import fit_table, write_report
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> model = fit_table(table, target="target", positive=0, max_fpr=0.05, tune=False)
    >>> with TemporaryDirectory() as folder:
    ...     write_report(model, table.iloc[model.held_out_rows], Path(folder, "report.html"))
    """
    need_tables()
    need("jinja2")
    fitted = [models] if isinstance(models, TableModel) else list(models)
    if not fitted:
        raise ValueError("models must have at least one model; got none")
    stated = read_card(card)
    files = [file for file in (table, card, *(model.path for model in fitted)) if isinstance(file, str | Path)]
    outputs = [out] if card_out is None else [out, card_out]
    for i, output in enumerate(outputs):
        check_not_input(output, [*files, *outputs[:i]])
        check_output(output)
    check_range("alerts", alerts, 0, 100, "an integer from 0 to 100", integer=True)
    reading = chosen(Reading, reading)
    scored = [score_table(model, table, target, reading) for model in fitted]
    first = scored[0]
    for note in dict.fromkeys(note for entry in scored for note in entry.notes):
        if notify is not None:
            notify(note)
    for other in scored[1:]:
        if not np.array_equal(other.target.is_positive, first.target.is_positive):
            raise DataError(
                f"models must have one positive class; got {first.target.positive!r} and {other.target.positive!r}"
            )
    names = _distinct([entry.fitted.name for entry in scored])
    facts = first.fitted.facts
    made = page_and_card(
        [_model(entry, name, alerts) for entry, name in zip(scored, names, strict=True)],
        TestData(
            Path(table).name if isinstance(table, str | Path) else "the table",
            first.target.is_positive,
            first.target.positive,
            facts.aim.window,
            _columns(first),
            facts.seed,
            negative_label=facts.negative,
            min_tpr=facts.min_tpr,
            segment_column=segment,
            segments=[] if segment is None else segments_of(first.X, segment),
            changes=_changes(first),
            groups=usable_groups(first.groups, first.target.is_positive)[0],
            times=first.times,
            card=stated,
            facts=_table_facts(first, table),
            **({} if first.costs is None else {"costs": _mean_costs(first.costs, first.target.is_positive)}),
        ),
    )
    for output, text in zip(outputs, made, strict=False):
        write_file(output, text.encode())


def read_card(card: str | Path | Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the entries of a model card, from a file or a mapping, in the order of ``CARD_KEYS``."""
    if card is None:
        return []
    if isinstance(card, str | Path):
        parsers: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": json.loads}
        parse = parsers.get(Path(card).suffix.lower())
        if parse is None:
            raise ParameterError(Parameter("card"), f" must end in {' or '.join(parsers)}; got {card}")
        try:
            found = parse(Path(card).read_text(encoding="utf-8-sig"))
        except ValueError as error:
            raise DataError(f"{card} is no {Path(card).suffix[1:].upper()}: {error}") from error
        card, name = found, str(card)
    else:
        name = "card"
    if not isinstance(card, Mapping):
        raise DataError(f"{name} must have keys and values; got {type(card).__name__}")
    unknown = [key for key in card if key not in CARD_KEYS]
    if unknown:
        raise DataError(f"{name} has unknown keys: {', '.join(map(repr, unknown))}; known: {', '.join(CARD_KEYS)}")
    return [(key.replace("_", " "), _card_text(name, key, card[key])) for key in CARD_KEYS if key in card]


def _card_text(name: str, key: str, value: Any) -> str:
    parts = value if isinstance(value, list | tuple) else [value]
    if not parts or not all(isinstance(part, str | int | float | date | time) and str(part).strip() for part in parts):
        raise DataError(f"{key!r} of {name} must be text, a number, a date, or a list of them; got {value!r}")
    return "; ".join(str(part).strip() for part in parts)


def _table_facts(entry: ScoredTable, table: Any) -> list[tuple[str, str]]:
    """Return where the test rows come from: files with their hashes, numbers of rows, and the period."""
    positive = entry.target.is_positive
    facts = [("test rows", f"{positive.size}, {np.count_nonzero(positive)} of them positive"), *_hash_facts(table)]
    if entry.times is not None:
        first, last = (str(end).removesuffix("T00:00:00") for end in (entry.times.min(), entry.times.max()))
        facts.append(("period of the test rows", f"{first} to {last}"))
    return facts


def _hash_facts(table: Any) -> list[tuple[str, str]]:
    return [(f"SHA-256 of {name}", digest) for name, digest in file_hashes(table)]


def _mean_costs(case: CaseCosts, positive: Bools) -> tuple[float, float]:
    """Return the mean cost of a false alarm, with its review, and what a miss costs more than a review."""
    gain = case.gain(positive)
    return float(-gain[~positive].mean()), max(float(gain[positive].mean()), 0.0)


def _changes(entry: ScoredTable) -> list[Change]:
    """Return the columns whose share of missing values or unknown categories differs from training."""
    facts = entry.fitted.facts
    shares = ValueShares(known_levels(entry.fitted.model, facts.features)).add(entry.X)
    return [
        Change(name, TITLES[kind], f"{then:.1%}", f"{now:.1%}") for kind, name, then, now in shares.moved(facts.shares)
    ]


def _distinct(names: list[str]) -> list[str]:
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _model(entry: ScoredTable, name: str, n_alerts: int) -> ReportModel:
    about = entry.fitted.facts
    facts = [
        ("fitted", about.fitted),
        *_hash_facts(entry.fitted.path),
        *[(f"SHA-256 of {file}, the training table", digest) for file, digest in about.data or ()],
        *_period_facts(about),
        ("model", about.model if about.model == entry.fitted.family else f"auto: {entry.fitted.family}"),
        *([("families", family_text(about.families))] if about.families else []),
        ("measure", about.measure),
        *([("measure in a later period", _later_text(about.later))] if about.later else []),
        ("rows", f"{about.rows['train']} to train, {about.rows['held out']} held out" + _refit_text(about)),
        ("tuning", tuning_text(about.tuning)),
        ("limit", _limit_text(about)),
        *([("costs", ", ".join(f"{name} {cost}" for name, cost in about.costs.items()))] if about.costs else []),
        ("confidence", _confidence_text(about)),
        ("seed", str(about.seed)),
        *((package, version) for package, version in about.versions.items()),
    ]
    pipeline = getattr(entry.fitted.model, "estimator_", entry.fitted.model)
    features, feature_value = _top_features(entry, pipeline)
    return ReportModel(
        name,
        type(pipeline.named_steps["model"]).__name__,
        entry.scores,
        entry.predicted,
        features,
        facts,
        about.max_fpr if about.max_fpr < 1 else None,
        feature_value,
        calibrated(about.calibration, entry.scores),
        min_tpr=about.min_tpr or None,
        alerts=_alerts(entry, n_alerts),
        min_precision=about.min_precision or None,
        capacity=about.capacity_share,
        reconciled=_reconciled(entry),
    )


def _period_facts(about: Facts) -> list[tuple[str, str]]:
    """Return the first and the last time of each part of the training table."""
    parts = [(name, part) for name, part in (about.periods or {}).items() if name != "dropped"]
    return [(f"period of the {name} rows", f"{part['first']} to {part['last']}") for name, part in parts]


def _reconciled(entry: ScoredTable) -> list[Reconciled] | None:
    """Return the numbers that the fit printed, next to those of this table."""
    about, positive = entry.fitted.facts, entry.target.is_positive
    if about.intervals is None:
        return None
    groups = usable_groups(entry.groups, positive)[0]
    measure = str(about.measure)
    now = measured([measure], about.aim, about.seed, positive, entry.scores, groups)[0][measure]
    ends = ("value", "low", "high")
    then = about.held_out
    found = [Reconciled(measure.replace("_", " "), *(tuple(part[end] for end in ends) for part in (then, now)))]
    rates, intervals = rates_of(positive, entry.predicted), rate_intervals(positive, entry.predicted, groups)
    titles = {"tpr": "TPR", "fpr": "FPR", "precision": "precision", "alerts": "share of flagged rows"}
    for name, title in titles.items():
        if name in about.intervals and name in intervals:
            low_high = about.intervals[name], intervals[name]
            values = about.at_threshold[name], rates[name]
            found.append(Reconciled(title, *((v, *pair) for v, pair in zip(values, low_high, strict=True))))
    return found


def _alerts(entry: ScoredTable, n_alerts: int) -> list[Alert]:
    """Return flagged rows with their reasons, evenly spaced from the highest score to the lowest.

    Categories that the model does not store, because few rows have them, are not shown.
    """
    facts, flagged = entry.fitted.facts, np.flatnonzero(entry.predicted)
    asked = Reasons(entry.fitted.model, facts, facts.family, 1)
    if not n_alerts or not flagged.size or not asked.has_any():
        return []
    asked = replace(asked, n=min(3, len(asked.columns)))
    flagged = flagged[np.argsort(-entry.scores[flagged], kind="stable")]
    rows = flagged[np.unique(np.linspace(0, flagged.size - 1, n_alerts).round().astype(np.intp))]
    levels, found = known_levels(entry.fitted.model, facts.features), []
    for row, *parts in zip(rows.tolist(), *asked.of_rows(entry.X, entry.columns, rows), strict=True):
        reasons = [
            (name, value if name not in levels or value in {*levels[name], MISSING} else OTHER, effect)
            for name, value, effect in zip(*parts, strict=True)
            if name is not None
        ]
        found.append(Alert(row + 1, float(entry.scores[row]), str(entry.target.labels[row]), reasons))
    return found


def _later_text(later: dict[str, Any]) -> str:
    periods = f"{later['periods']} periods after the training rows"
    return f"{later['low']:.4f} to {later['high']:.4f}, if it differs as the {periods} do"


def _refit_text(about: Facts) -> str:
    return f", then fitted to all {about.rows['refit']}" if "refit" in about.rows else ""


def _limit_text(about: Facts) -> str:
    limits = [f"TPR >= {100 * about.min_tpr:g} %"] if about.min_tpr else []
    limits += [f"FPR <= {100 * about.max_fpr:g} %"] if about.max_fpr < 1 else []
    return ", ".join([*limits, *about.more_limits()]) or "none"


def _confidence_text(about: Facts) -> str:
    if about.confidence is None:
        return "none"
    found = about.resemblance
    if found is None or found["resembles"]:
        return f"{about.confidence:g}"
    return (
        f"{about.confidence:g} for rows like the calibration rows; the later test rows of the fit differ from them "
        f"(rate {found['then']:.1%}, then {found['now']:.1%}, p = {found['p_value']:.2g})"
    )


def segments_of(X: Any, column: str) -> list[Segment]:
    """Return the parts of a table by the values of a column, the most frequent first.

    Numbers with many values are divided at their quartiles. Rare values form one part, and missing ones another.
    """
    import pandas as pd

    if not hasattr(X, "columns") or column not in X.columns:
        known = ", ".join(map(str, X.columns[:10])) if hasattr(X, "columns") else "no columns"
        raise DataError(Parameter("segment"), f" must be a column of the model; got {column!r}, known: {known}")
    values = X[column]
    if pd.api.types.is_numeric_dtype(values) and values.nunique() > LAYOUT.n_segments:
        values = pd.qcut(values, 4, duplicates="drop")
    names = values.astype(str).to_numpy(dtype=object)
    missing = values.isna().to_numpy()
    counts = pd.Series(names[~missing]).value_counts()
    kept = list(counts.index[: LAYOUT.n_segments])
    if isinstance(values.dtype, pd.CategoricalDtype) and values.cat.ordered:
        kept = [str(level) for level in values.cat.categories if str(level) in set(kept)]
    found = [Segment(name, (names == name) & ~missing) for name in kept]
    rare = ~missing & ~np.isin(names, kept)
    if rare.any():
        found.append(Segment(f"{counts.size - len(kept)} other values", rare))
    return found + ([Segment("missing", missing)] if missing.any() else [])


def _top_features(entry: ScoredTable, pipeline: Any) -> tuple[list[Feature], str]:
    """Return the most important features of a model, and what their values are.

    They are the spread of the contributions of the columns and, for tables without columns or models of an earlier
    version, the weights of linear models or the gain of trees.
    """
    classifier, asked = pipeline.named_steps["model"], Reasons(pipeline, entry.fitted.facts, entry.fitted.family, 1)
    if hasattr(entry.X, "columns") and asked.has_any():
        return _contributions(asked, entry), "standard deviation of its contribution"
    found, kind = features_of(pipeline, None, positive_index(classifier.classes_, entry.target.positive))
    return [replace(feature, name=feature.name.partition("__")[2] or feature.name) for feature in found], kind


def _contributions(asked: Reasons, entry: ScoredTable) -> list[Feature]:
    """Return the standard deviation of the contribution of each column to the score, with its mean over values.

    Numeric columns of linear models have the sign of their effect.
    """
    n_rows = entry.scores.size
    rows = np.linspace(0, n_rows - 1, min(n_rows, LAYOUT.contribution_rows)).round().astype(np.intp)
    made = asked.contributions(entry.X.iloc[rows], entry.columns.iloc[rows])
    levels = known_levels(asked.model, entry.fitted.facts.features)
    directed = hasattr(asked.model.named_steps["model"], "coef_") and entry.fitted.family != "additive"
    found = []
    for name, part in zip(made.columns, made.values.T, strict=True):
        number = name in asked.numbers
        direction = _direction(made.data[name].to_numpy(dtype=np.float64), part) if directed and number else 0
        # Dates are neither.
        known = None if number else levels.get(name)
        effects = _effects(made.data[name], part, known) if number or known is not None else []
        found.append(Feature(name, float(np.std(part)), direction, effects))
    return sorted(found, key=lambda feature: -feature.value)[: LAYOUT.n_features]


def _effects(values: Any, part: Array, levels: set[str] | None) -> list[tuple[str, int, float]]:
    """Return the mean contribution of a column by its values: of fifths of the numbers, or of frequent categories.

    Categories that the model does not store, because few rows have them, are not shown.
    """
    import pandas as pd

    missing = values.isna().to_numpy()
    names = np.full(values.size, MISSING, dtype=object)
    if levels is not None:
        known = values.isin(levels).to_numpy()
        order = list(values[known].value_counts().index[: LAYOUT.n_effects])
        names[~missing] = OTHER
        shown = values.isin(order).to_numpy()
        names[shown] = values[shown].astype(str)
    else:
        numbers = values.to_numpy(dtype=np.float64)[~missing]
        distinct = np.unique(numbers)
        cuts, order = distinct[1:], [f"{value:.4g}" for value in distinct]
        if distinct.size > LAYOUT.n_effects:
            cuts = np.unique(np.quantile(numbers, np.arange(1, LAYOUT.n_effects) / LAYOUT.n_effects))
            texts = [f"{cut:.4g}" for cut in cuts]
            between = [f"{low} to {high}" for low, high in pairwise(texts)]
            order = [f"below {texts[0]}", *between, f"{texts[-1]} and above"]
        names[~missing] = np.array(order, dtype=object)[np.searchsorted(cuts, numbers, "right")]
    means = pd.Series(part).groupby(names).agg(["size", "mean"])
    return [
        (name, int(means.loc[name, "size"]), float(means.loc[name, "mean"]))
        for name in dict.fromkeys([*order, OTHER, MISSING])
        if name in means.index
    ]


def _direction(values: Array, part: Array) -> int:
    """Return 1 or -1 if a contribution rises or falls with the values, 0 if there is none."""
    known = np.isfinite(values)
    if not known.any() or np.ptp(part[known]) == 0:
        return 0
    return int(np.sign(np.dot(values[known] - values[known].mean(), part[known] - part[known].mean())))


def _columns(entry: ScoredTable) -> list[tuple[str, str, float]]:
    features = entry.fitted.facts.features
    if features is None:
        return []
    return [(name, kind, float(entry.X[name].isna().mean())) for name, kind in features.items()]
