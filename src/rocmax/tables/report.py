"""HTML report of models on one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rocmax._files import check_not_input, check_output, write_file
from rocmax._support import Array, Bools, Parameter, holding, need
from rocmax._validation import check_range, positive_index
from rocmax.costs import CaseCosts
from rocmax.data import DataError, Reading
from rocmax.report import Alert, Change, Feature, ReportModel, Segment, TestData, features_of, render
from rocmax.report.page import LAYOUT
from rocmax.tables.evaluate import ScoredTable, score_table, usable_groups
from rocmax.tables.model import TITLES, Facts, TableModel, ValueShares, known_levels
from rocmax.tables.options import HOLDERS, chosen
from rocmax.tables.preprocess import MISSING
from rocmax.tables.read import need_tables
from rocmax.tables.reasons import Reasons
from rocmax.tables.tune import family_text, tuning_text
from rocmax.thresholds import calibrated

# What stands for a category of few rows.
OTHER = "(other)"


@holding(HOLDERS)
def write_report(
    models: TableModel | Sequence[TableModel],
    table: Any,
    out: str | Path,
    *,
    target: str | None = None,
    segment: str | None = None,
    alerts: int = 5,
    reading: Reading | None = None,
    notify: Callable[[str], None] | None = None,
) -> None:
    """Write an HTML report of models on a labeled table, as ``rocmax report`` does.

    The page contains the decision at a limit on the false-positive rate or a floor on the true-positive rate, with
    sliders for both; curves with confidence bands, costs, scores, measures and paired tests, results by segment, and
    the most important columns. It is self-contained: no other file is loaded.

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
    files = [file for file in (table, *(model.path for model in fitted)) if isinstance(file, str | Path)]
    check_not_input(out, files)
    check_output(out)
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
    page = render(
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
            **({} if first.costs is None else {"costs": _mean_costs(first.costs, first.target.is_positive)}),
        ),
    )
    write_file(out, page.encode())


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
    )


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

    They are the spread of the contributions of the columns of a linear or additive model, the gain of trees, and the
    weights of linear models without columns, or of an earlier version.
    """
    classifier, asked = pipeline.named_steps["model"], Reasons(pipeline, entry.fitted.facts, entry.fitted.family, 1)
    if hasattr(classifier, "coef_") and hasattr(entry.X, "columns") and asked.has_any():
        return _contributions(asked, entry), "standard deviation of its contribution"
    found, kind = features_of(pipeline, None, positive_index(classifier.classes_, entry.target.positive))
    return [replace(feature, name=feature.name.partition("__")[2] or feature.name) for feature in found], kind


def _contributions(asked: Reasons, entry: ScoredTable) -> list[Feature]:
    """Return the standard deviation of the contribution of each column to the score of a linear or additive model.

    Numeric columns of linear models have the sign of their effect.
    """
    rows = LAYOUT.contribution_rows
    made = asked.contributions(entry.X.head(rows), entry.columns.head(rows))
    found = []
    for name, part in zip(made.columns, made.values.T, strict=True):
        directed = entry.fitted.family != "additive" and name in asked.numbers
        direction = _direction(made.data[name].to_numpy(dtype=np.float64), part) if directed else 0
        found.append(Feature(name, float(np.std(part)), direction))
    return sorted(found, key=lambda feature: -feature.value)[: LAYOUT.n_features]


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
