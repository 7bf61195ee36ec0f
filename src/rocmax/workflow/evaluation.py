"""Evaluation of a model on labeled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rocmax._messages import Message, Parameter
from rocmax._typing import Array, Bools
from rocmax.data import DataError
from rocmax.metrics.registry import METRICS
from rocmax.workflow.evidence import corner_notes, row_notes
from rocmax.workflow.measuring import all_measured, usable_groups, window_measure_names
from rocmax.workflow.models import positive_scores
from rocmax.workflow.shift import known_levels
from rocmax.workflow.table_model import TableModel
from rocmax.workflow.tables import (
    Reading,
    feature_options,
    group_values,
    model_features,
    need_tables,
    source_notes,
    table_source,
)
from rocmax.workflow.target import Target, known_target


class Scored(NamedTuple):
    """Scores and decisions of a model on a labeled table."""

    fitted: TableModel
    target: Target
    scores: Array
    predicted: Bools
    X: Any
    notes: list[str]
    groups: Any = None


@dataclass(frozen=True)
class Evaluation:
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
        Results of the decisions of the model: "tp", "fp", "tpr", "fpr", "precision" and the limits "max_fpr" and
        "min_tpr".
    scores : ndarray of shape (n_rows,)
        Score of each row, above zero for the positive class.
    is_positive : ndarray of shape (n_rows,)
        Whether each row is of the positive class.
    notes : list of str
        Results that the rows cannot support.
    groups : int or None
        Number of groups whose rows depend on each other, so that intervals resample groups; None if rows are taken as
        independent: the model has no group column, or the table does not have it.
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

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the arrays as plain values, for example for JSON."""
        names = ("model", "positive", "rows", "measures", "threshold", "notes", "groups")
        return {name: getattr(self, name) for name in names}


def evaluate(
    model: TableModel,
    table: Any,
    *,
    target: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    na: str | Sequence[str] = (),
    encoding: str | None = None,
    sheet: str | None = None,
    day_first: bool | None = None,
    skip_unlabelled: bool | None = None,
    zero_based: bool | None = None,
    max_bytes: int | None = None,
) -> Evaluation:
    """Evaluate a model on labeled rows, as ``rocmax evaluate`` does.

    Parameters
    ----------
    model : TableModel
        Model returned by :func:`fit_table` or :func:`load_model`.
    table : str, Path, list of them, file or data frame
        A file (csv, tsv, xlsx, parquet or svmlight, text also compressed), or a DataFrame of pandas or polars.
        Columns are found by name.
    target : str, default=None
        The column with the labels. None takes the name that it had in the table of the fit.
    delimiter : str, default=None
        What separates the fields of a text table. None takes what the header and the first rows show.
    decimal : {".", ","}, default=None
        The decimal mark of numbers in a text table. None takes that of the model, and a point in a fit.
    thousands : str, default=None
        A character between groups of digits of numbers. None takes that of the model, and none in a fit.
    na : str or sequence of str, default=()
        Values that are missing, in addition to the empty field, NA, N/A, NaN, null and None, and those of the model.
    encoding : str, default=None
        The encoding of a text table, such as "latin-1". None takes what its first 4 MB show: UTF-8, otherwise that of
        the model or cp1252, which contains the characters of latin-1.
    sheet : str, default=None
        Name of the sheet of an Excel workbook. None takes that of the model, or the only one with values.
    day_first : bool, default=None
        Whether the day comes before the month in dates that end with the year, such as 03/04/2024. None takes the order
        of the model; in a fit, the values of a column show it.
    skip_unlabelled : bool, default=None
        Whether to leave out rows without a label, which are otherwise an error. None does as the fit of the model did.
    zero_based : bool, default=None
        Whether an svmlight file counts its features from 0, not 1. None does as the fit of the model did.
    max_bytes : int, default=None
        Maximum number of bytes that a compressed file may unpack to, as in :func:`rocmax.data.read_table`.

    Returns
    -------
    Evaluation
        Measures with confidence intervals, and the results at the threshold.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.workflow import evaluate, fit_table
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> model = fit_table(table, target="target", positive=0, max_fpr=0.05, tune=False)
    >>> result = evaluate(model, table.iloc[model.held_out_rows])
    >>> list(result.measures)
    ['partial_auc', 'roc_auc', 'tpr_at_fpr', 'break_even_point']
    >>> result.threshold["fpr"] <= 0.05
    True
    """
    need_tables()
    return _evaluation(
        score_table(
            model,
            table,
            target,
            Reading(
                delimiter=delimiter,
                decimal=decimal,
                thousands=thousands,
                na=na,
                encoding=encoding,
                sheet=sheet,
                day_first=day_first,
                skip_unlabelled=skip_unlabelled,
                zero_based=zero_based,
                max_bytes=max_bytes,
            ),
        )
    )


def score_table(fitted: TableModel, table: Any, target: str | None, reading: Reading) -> Scored:
    """Return scores and decisions on a labeled table."""
    facts = fitted.facts
    source, reading = table_source(facts, table, reading), reading.for_model(facts)
    options = feature_options(facts, fitted.place, source, reading.zero_based)
    if source.columns is not None:
        target = target or facts["target"]
        if target is None:
            advice = Message(f"pass the column with the labels of {source.name}: ", Parameter("target", ...))
            raise DataError(advice)
        options["target"] = target
    group = facts.get("group")
    if group is not None and group in (source.columns or ()) and group not in options["types"]:
        options |= {"columns": [*options["columns"], group], "types": {**options["types"], group: "raw"}}
    else:
        group = None
    X, y = source.read(**options, max_bytes=reading.max_bytes, skip_unlabelled=bool(reading.skip_unlabelled))
    groups = None if group is None else group_values(source.name, X[group])
    levels = known_levels(fitted.model, facts["features"])
    X = model_features(facts, X, source, day_first=reading.day_first, levels=levels)
    name = f"column {target!r}" if target else "the target"
    labels = known_target(y, facts["positive"], facts["negative"], name)
    predicted = fitted.model.predict(X) == facts["positive"]
    scores = positive_scores(fitted.model, X, facts["positive"])
    return Scored(fitted, labels, scores, predicted, X, source_notes(source), groups)


def _evaluation(scored: Scored) -> Evaluation:
    positive, predicted, facts = scored.target.is_positive, scored.predicted, scored.fitted.facts
    names = _measure_names(facts)
    groups, notes = usable_groups(scored.groups, positive)
    notes += row_notes(positive, facts["max_fpr"], facts.get("min_tpr", 0.0), "rows")
    tp, fp = int(np.sum(positive & predicted)), int(np.sum(~positive & predicted))
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    return Evaluation(
        model=scored.fitted.name,
        positive=scored.target.positive,
        rows={"positive": n_positive, "negative": n_negative},
        measures=all_measured(names, facts, positive, scored.scores, groups),
        threshold={
            "max_fpr": facts["max_fpr"] if facts["max_fpr"] < 1 else None,
            "min_tpr": facts.get("min_tpr") or None,
            "tp": tp,
            "fp": fp,
            "tpr": tp / n_positive,
            "fpr": fp / n_negative,
            "precision": tp / (tp + fp) if tp + fp else None,
        },
        scores=scored.scores,
        is_positive=positive,
        notes=scored.notes + notes + corner_notes(positive, scored.scores, facts, "rows"),
        groups=None if groups is None else int(np.unique(groups).size),
    )


def _measure_names(facts: dict[str, Any]) -> list[str]:
    """Return the measures to report, the one of the model first; those of a limit only if there is one."""
    names = [facts["measure"], *(name for name in window_measure_names() if name != facts["measure"])]
    above = bool(facts.get("min_tpr"))
    if facts["max_fpr"] == 1.0:
        kept = {"partial_auc"} if above else set()
        names = [name for name in names if "max_fpr" not in METRICS[name].parameters or name in kept]
    return [*names, "fpr_at_tpr"] if above else names
