"""Fit of a model and its threshold to a table, with an evaluation on held-out rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.utils import _safe_indexing

import rocmax
from rocmax._folds import held_out_split
from rocmax._support import Array, Bools, Index, Message, Parameter, ParameterError, holding, listening, stage
from rocmax._threads import using_threads
from rocmax._validation import check_choice
from rocmax.data import DataError, Reading
from rocmax.metrics import positive_scores
from rocmax.tables.columns import Column
from rocmax.tables.evaluate import (
    chance_notes,
    corner_notes,
    duplicate_notes,
    leak_notes,
    measured,
    perfect_notes,
    row_notes,
    usable_groups,
)
from rocmax.tables.model import Facts, TableModel, ValueShares, known_levels
from rocmax.tables.options import (
    HOLDERS,
    Columns,
    Limits,
    Running,
    check_limits,
    check_range,
    check_running,
    check_seed,
    chosen,
)
from rocmax.tables.read import Training, need_tables, read_training
from rocmax.tables.tune import MODELS, BestFamily, check_table, families_for, need_package, tuned_model
from rocmax.thresholds import (
    FPRThresholdClassifier,
    GroupEvidence,
    TPRThresholdClassifier,
    fit_calibration,
    order_statistic,
)

# Plan of the columns of a table, without a fit.


@holding(HOLDERS)
def plan_columns(
    table: Any,
    *,
    target: str | None = None,
    positive: Any = None,
    group: str | None = None,
    columns: Columns | None = None,
    reading: Reading | None = None,
) -> list[Column]:
    """Return what a fit would do with each column of a table.

    - A column of numbers is used as numbers, even if a few of its values are missing. Other values in it are an error,
      which says where they are and what to pass.
    - Text is used as categories, unless nearly every row has its own value: then it is an identifier or free text, and
      is left out. Integers with leading zeros are codes, and are used as categories.
    - Row numbers, and other integers that were issued one by one, are identifiers, and are left out.
    - A column with the name of an identifier, many values and few rows each, such as a number of customers, is left
      out; a note proposes it for ``group``.
    - Dates are left out, unless they are declared.
    - A column with one value, or without any, is left out.

    Parameters
    ----------
    table, target
    positive, group
    columns : Columns, default=None
        What the columns are, where the table does not show it: categories, numbers, dates, identifiers, and columns to
        leave out. It may have the target, the positive class and the groups, too.
    reading

    Returns
    -------
    list of Column
        A description of each column except the target: its kind, missing values, levels, and whether it is used. The
        list is empty for an svmlight file.

    Examples
    --------
    >>> import pandas as pd
    >>> from rocmax.tables import plan_columns
    >>> table = pd.DataFrame(
    ...     {"row": range(100), "size": [1.5, 2.5] * 50, "color": ["red", "blue"] * 50, "label": [0, 1] * 50}
    ... )
    >>> [(column.name, column.kind, column.used) for column in plan_columns(table, target="label")]
    [('row', 'identifier', False), ('size', 'number', True), ('color', 'category', True)]
    """
    need_tables()
    declared = chosen(Columns, columns, target=target, positive=positive, group=group)
    return read_training(table, declared, chosen(Reading, reading)).schema.columns


# Fit of a model and its threshold to a table, with an evaluation on held-out rows.


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit, validated by :func:`check_fit`."""

    limits: Limits
    model: str
    test_size: float
    seed: int
    tune: bool = True


def check_fit(
    limits: Limits, *, model: str, test_size: float, random_state: int, tune: bool, group: str | None = None
) -> FitSettings:
    """Return the settings of a fit; raise ParameterError if they are invalid or incompatible."""
    limits = check_limits(limits)
    check_choice("model", model, MODELS)
    if limits.confidence is not None:
        check_range("confidence", limits.confidence, 0.0, 1.0, "a number above 0 and below 1", open_ends=True)
        if limits.window[1] == 1.0 and limits.min_tpr == 0.0:
            either = Parameter("max_fpr", ...), " or ", Parameter("min_tpr", ...)
            raise ParameterError(Message(Parameter("confidence"), " requires a limit: ", *either))
    check_choice("rate", limits.rate, ("row", "group"))
    if limits.rate == "group" and group is None:
        raise ParameterError(Message(Parameter("rate", limits.rate), " requires groups: ", Parameter("group", ...)))
    check_range("test_size", test_size, 0.05, 0.9, "a number from 0.05 to 0.9")
    check_seed(random_state)
    return FitSettings(limits, model, float(test_size), int(random_state), bool(tune))


class Fitted(NamedTuple):
    """Fitted model, its held-out rows, the results of tuning and of the choice of a family, and the time in seconds."""

    model: Any
    test: Index
    tuning: dict[str, Any] | None
    seconds: float
    family: str
    families: dict[str, Any] | None


@holding(HOLDERS)
def fit_table(
    table: Any,
    *,
    target: str | None = None,
    positive: Any = None,
    group: str | None = None,
    max_fpr: float | None = None,
    confidence: float | None = None,
    columns: Columns | None = None,
    limits: Limits | None = None,
    reading: Reading | None = None,
    model: str = "auto",
    tune: bool = True,
    test_size: float = 0.25,
    random_state: int = 0,
    running: Running | None = None,
) -> TableModel:
    """Fit a model to a table, choose a threshold, and evaluate it on held-out rows, as ``rocmax fit`` does.

    A fraction of the rows is held out. The model is chosen, tuned and fitted on the other rows. The model includes the
    preprocessing. For linear models, numbers are imputed and standardized, and text is one-hot encoded; for additive
    models, numbers become splines; for trees, numbers and missing values are not changed, and text becomes categories.
    With a limit on one of the rates, the threshold is chosen on the held-out rows.

    Parameters
    ----------
    table, target, positive
    group : str, default=None
        A column; rows with the same value in it stay on one side of every split. The guarantee of ``confidence`` and
        the confidence intervals then require independent groups, not independent rows.
    max_fpr : float, default=None
        Limit on the false-positive rate; None or 1 for no limit.
    confidence : float, default=None
        Probability with which the limit is kept on new rows, as in :class:`rocmax.FPRThresholdClassifier` or, with
        ``min_tpr``, in :class:`rocmax.TPRThresholdClassifier`.
    columns : Columns, default=None
        What the columns are, where the table does not show it: categories, numbers, dates, identifiers, and columns to
        leave out. It may have the target, the positive class and the groups, too.
    limits : Limits, default=None
        What to train for: a measure, a required true-positive rate, a window of false-positive rates. It may have the
        limits that are keywords, too.
    reading
    model : str, default="auto"
        Name of the model:

        - "linear": :class:`rocmax.AUCClassifier` without a limit on either rate. With a limit, it is
          :class:`rocmax.PartialAUCClassifierCV` if the model is tuned for the partial AUC, and
          :class:`rocmax.PartialAUCClassifier` otherwise.
        - "additive": the same classifier on splines of each numeric column, so that the score is a sum of one function
          per column; not for svmlight files.
        - "boosted": :class:`rocmax.BoostedClassifier`, an ensemble of trees; requires LightGBM.
        - "auto": one of these families. Their cross-validated scores on the training rows are compared on the same
          folds, and the best is chosen. A large table is compared on growing parts of its rows until a difference is
          clear. Without tuning, it is "linear".
        - "auc": :class:`rocmax.AUCClassifier`, with any limit.
        - "logistic" and "svm": logistic regression and the linear support vector machine of scikit-learn.
        - "lightgbm": LightGBM's classifier with its defaults, except for the tuned number of leaves.
    tune : bool, default=True
        Whether to tune the model by cross-validation on its training rows.
    test_size : float, default=0.25
        Fraction of the rows that is held out.
    random_state : int, default=0
        Seed of all random draws. It is saved with the model.
    running

    Returns
    -------
    TableModel
        Fitted model and its metadata.

    Raises
    ------
    ParameterError
        If parameters are invalid or incompatible; a subclass of ValueError.
    DataError
        If the table cannot be used; a subclass of ValueError.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.tables import fit_table
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> model = fit_table(table, target="target", positive=0, max_fpr=0.05, model="linear", tune=False)
    >>> model
    TableModel('linear', positive='0', max_fpr=0.05)
    >>> model.facts.rows
    {'train': 426, 'held out': 143}
    >>> bool(model.held_out["value"] > 0.9)
    True
    """
    columns = chosen(Columns, columns, target=target, positive=positive, group=group)
    limits = chosen(Limits, limits, max_fpr=max_fpr, confidence=confidence)
    reading, running = chosen(Reading, reading), chosen(Running, running)
    settings = check_fit(
        limits, model=model, test_size=test_size, random_state=random_state, tune=tune, group=columns.group
    )
    need_tables()
    need_package(model)
    check_running(running, "fit_table", "n_jobs")
    with listening(running.progress), using_threads(running.threads):
        if running.dask is not None:
            from rocmax.tables.on_cluster import fit_on_cluster  # needs dask

            return fit_on_cluster(table, settings, columns, reading, running)
        training = read_training(table, columns, reading)
        if running.on_plan is not None:
            running.on_plan(training.schema.columns)
        return fit_training(training, settings, running.tell)


def fit_training(training: Training, settings: FitSettings, tell: Callable[[str], None]) -> TableModel:
    """Fit a model to training data in memory and evaluate it on the held-out rows."""
    check_table(settings.model, training.kinds)
    notes = [*training.notes, *_family_notes(training, settings)]
    train, test = split_rows(training, settings)
    notes += row_notes(training.target.is_positive[test], settings.limits)
    notes += duplicate_notes(training.X, train, test)
    notes += leak_notes(training.X, training.target.is_positive)
    for note in notes:
        tell(note)
    fitted = fit_rows(training, settings, (train, test))
    if settings.tune and fitted.tuning is None:
        notes.append("not tuned: one class has too few rows or groups for cross-validation")
        tell(notes[-1])
    return evaluated(training, settings, fitted, notes, tell)


def evaluated(
    training: Training,
    settings: FitSettings,
    fitted: Fitted,
    notes: list[str],
    tell: Callable[[str], None],
    classes: dict[str, int] | None = None,
) -> TableModel:
    """Evaluate a fitted model on the held-out rows; return it with its metadata.

    ``classes`` are the sizes of the classes, if the training data are only a sample of the rows.
    """
    stage("evaluating on the held-out rows")
    limits, model, test = settings.limits, fitted.model, fitted.test
    scores = positive_scores(model, _safe_indexing(training.X, test), pos_label=training.target.positive)
    is_positive = training.target.is_positive[test]
    groups, found = usable_groups(_rows(training.groups, test), is_positive)
    by_name, narrow = measured([str(limits.measure)], limits, settings.seed, is_positive, scores, groups)
    held_out, rates = by_name[str(limits.measure)], rates_at_zero(is_positive, scores)
    found += narrow + corner_notes(is_positive, scores, limits) + chance_notes(held_out, rates, limits, is_positive)
    for note in found + perfect_notes(held_out["value"], training.X, training.target.is_positive):
        notes.append(note)
        tell(note)
    if classes is None:
        n_positive = int(training.target.is_positive.sum())
        classes = {"positive": n_positive, "negative": int(training.target.labels.size) - n_positive}
    facts = Facts(
        **{each.name: getattr(training.schema, each.name) for each in fields(training.schema)},
        rate=limits.rate,
        min_fpr=limits.window[0],
        max_fpr=limits.window[1],
        min_tpr=limits.min_tpr,
        measure=str(limits.measure),
        model=settings.model,
        family=fitted.family,
        families=fitted.families,
        confidence=limits.confidence,
        offset=getattr(model, "threshold_", 0.0),
        violation_bound=None if limits.confidence is None else model.violation_bound_,
        tuning=fitted.tuning,
        seed=settings.seed,
        rows={"train": sum(classes.values()) - test.size, "held out": int(test.size)},
        held_out_groups=None if training.groups is None else int(np.unique(training.groups[test]).size),
        classes=classes,
        versions={"rocmax": rocmax.__version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__},
        fitted=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=round(fitted.seconds, 3),
        held_out=held_out,
        at_threshold=rates,
        calibration=fit_calibration(scores, is_positive),
        shares=ValueShares(known_levels(model, training.kinds)).add(training.X).to_dict(),
    )
    return TableModel(model, facts, notes=notes, held_out_rows=test)


def rates_at_zero(positive: Bools, scores: Array) -> dict[str, float]:
    """Return the true- and false-positive rates of the rows with a score above zero."""
    above = scores > 0
    return {"tpr": float(above[positive].mean()), "fpr": float(above[~positive].mean())}


def _family_notes(training: Training, settings: FitSettings) -> list[str]:
    if settings.model != "auto":
        return []
    if not settings.tune:
        return [Message("auto is linear: families are compared only with ", Parameter("tune", True))]
    return families_for(training.kinds)[1]


def fit_rows(training: Training, settings: FitSettings, parts: tuple[Index, Index] | None = None) -> Fitted:
    """Fit a model on the training rows and choose the threshold on the held-out rows; ``parts`` are these rows."""
    labels, positive = training.target.labels, training.target.positive
    train, test = split_rows(training, settings) if parts is None else parts
    check_enough(training.target.is_positive[test], settings, _rows(training.groups, test))
    start = perf_counter()
    tuned = tuned_model(
        settings.model,
        kinds=training.kinds,
        limits=settings.limits,
        positive=positive,
        tune=settings.tune,
        seed=settings.seed,
    )
    tuned.fit(_safe_indexing(training.X, train), labels[train], _rows(training.groups, train))
    family, families = (tuned.model_, tuned.families_) if isinstance(tuned, BestFamily) else (tuned.model, None)
    model = with_threshold(tuned.pipeline_, training, settings, test)
    return Fitted(model, test, tuned.tuning_, perf_counter() - start, family, families)


def with_threshold(pipeline: Any, training: Training, settings: FitSettings, test: Index) -> Any:
    """Return a fitted pipeline with a threshold from the held-out rows, if there is a limit on one of the rates."""
    limits = settings.limits
    options: dict[str, Any] = {
        "confidence": limits.confidence,
        "cv": "prefit",
        "pos_label": training.target.positive,
        "rate": limits.rate,
    }
    if not limits.limited:
        return pipeline
    if limits.min_tpr > 0:
        model: Any = TPRThresholdClassifier(pipeline, limits.min_tpr, **options)
    else:
        model = FPRThresholdClassifier(pipeline, limits.window[1], **options)
    groups = _rows(training.groups, test)
    return model.fit(_safe_indexing(training.X, test), training.target.labels[test], groups=groups)


def _rows(groups: Any, rows: Index) -> Any:
    """Return the groups of some rows; None without groups."""
    return None if groups is None else groups[rows]


def check_enough(positive: Bools, settings: FitSettings, groups: Any = None) -> None:
    """Raise the error about too few held-out rows or groups for a guarantee, before the expensive fit."""
    limits = settings.limits
    if limits.confidence is None:
        return
    delta, floor = 1 - limits.confidence, limits.min_tpr or None
    max_rate = limits.window[1] if floor is None else 1 - floor
    side = positive == (floor is not None)
    if groups is not None:
        sizes = np.unique(groups[side], return_counts=True)[1]
        GroupEvidence(sizes, max_rate, delta, limits.rate).check(floor, share="test_size")
    else:
        order_statistic(int(side.sum()), max_rate, delta, required_tpr=floor, share="test_size")


def split_rows(training: Training, settings: FitSettings) -> tuple[Index, Index]:
    """Return the training rows and the held-out rows; groups are not split."""
    positive = training.target.is_positive
    fewest = int(min(positive.sum(), (~positive).sum()))
    if fewest < 4:
        raise DataError(f"each class must have at least 4 rows; got {fewest} in the smaller class")
    try:
        return held_out_split(positive, settings.test_size, settings.seed, training.groups)
    except ValueError as error:
        raise DataError(str(error)) from None
