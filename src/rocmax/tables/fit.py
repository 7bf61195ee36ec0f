"""Fit of a model and its threshold to a table, with an evaluation on held-out rows."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import sklearn
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

import rocmax
from rocmax._folds import FOLD_RULES, folds, held_out_split, some_rows
from rocmax._support import Array, Bools, Index, Message, Parameter, ParameterError, holding, hushed, listening, stage
from rocmax._threads import using_threads
from rocmax._validation import check_choice, check_range, class_scores, positive_index
from rocmax.costs import expected_cost
from rocmax.data import DataError, Reading
from rocmax.forward import Dependence, check_gap, time_text
from rocmax.metrics import positive_scores
from rocmax.tables.columns import Column, date_notes
from rocmax.tables.evaluate import (
    ScoredRows,
    chance_notes,
    corner_notes,
    duplicate_notes,
    later_value,
    leak_notes,
    limit_notes,
    measured,
    over_time,
    perfect_notes,
    rate_intervals,
    rates_of,
    resemblance,
    resemblance_notes,
    row_notes,
    usable_groups,
)
from rocmax.tables.model import Facts, TableModel, ValueShares, batch_scores, file_hashes, known_levels, risk_scores
from rocmax.tables.options import (
    HOLDERS,
    Columns,
    Limits,
    Running,
    check_limits,
    check_running,
    check_seed,
    chosen,
    trained_for,
    window_measure,
)
from rocmax.tables.read import Training, need_tables, read_training
from rocmax.tables.tune import (
    MODELS,
    BestFamily,
    check_table,
    compared_parts,
    families_for,
    fitted_again,
    need_package,
    tuned_model,
    tuning_splits,
    with_choices,
)
from rocmax.thresholds import (
    FPRThresholdClassifier,
    LimitThresholdClassifier,
    TPRThresholdClassifier,
    check_counts,
    column_texts,
    fit_calibration,
    level_of,
    naming,
    rows_enough,
    rows_of_values,
    rows_per_period,
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
    # None holds out no more than `HeldOutRules` says.
    test_size: float | None
    seed: int
    tune: bool = True
    refit: bool = False

    @property
    def most_held_out(self) -> float:
        """Fraction of the rows that is held out, unless fewer are enough."""
        return HELD_OUT.share if self.test_size is None else self.test_size

    def aimed(self, training: Training) -> FitSettings:
        """Return the settings with the limits that models are trained for."""
        return replace(self, limits=trained_for(self.limits, training.target.is_positive))

    def with_share(self, training: Training) -> FitSettings:
        """Return the settings with a capacity per period as a share of the rows."""
        limits, period = self.limits, self.limits.period
        if period is None:
            return self
        if training.times is None:
            raise ParameterError(Parameter("per", period), " requires times: ", Parameter("time", ...))
        rows = rows_per_period(training.times, period)

        def share(of: Limits) -> Limits:
            return of if of.capacity is None or of.capacity < 1 else replace(of, capacity=of.capacity / rows)

        block = None if limits.block is None else share(limits.block)
        known = replace(share(limits), per=limits.column or (), block=block)
        if known.capacity is None or known.capacity >= 1:
            raise ParameterError(
                Parameter("capacity", limits.capacity),
                f" per {period} must be less than the number of rows per {period}; got {rows:g} rows",
            )
        return replace(self, limits=known)


@dataclass(frozen=True)
class HeldOutRules:
    """How many rows are held out if no fraction is given: the smaller of a share and of what is enough.

    Attributes
    ----------
    share : float
        The largest fraction of the rows.
    given_away : float
        With as many rows of the limited class as are enough, a guarantee gives away at most this share of the limit, on
        average. Half of it would take four times as many rows: 108,001 negatives instead of 27,117 for 1 % at 95 %.
    width : float
        With as many rows of each class as are enough, the 95 % interval of any rate at a threshold is at most so wide,
        and that of the AUC is narrower.
    """

    share: float = 0.25
    given_away: float = 0.1
    width: float = 0.02


HELD_OUT = HeldOutRules()


def check_fit(
    limits: Limits,
    *,
    model: str,
    test_size: float | None,
    random_state: int,
    tune: bool,
    group: str | None = None,
    time: str | None = None,
    refit: bool = False,
) -> FitSettings:
    """Return the settings of a fit; raise ParameterError if they are invalid or incompatible."""
    limits = check_limits(limits)
    check_choice("model", model, MODELS)
    if limits.confidence is not None and not limits.limited:
        either = Parameter("max_fpr", ...), " or ", Parameter("min_tpr", ...)
        raise ParameterError(Parameter("confidence"), " requires a limit: ", *either)
    if limits.column is not None and limits.column == group:
        raise ParameterError(Parameter("per", group), " must be another column than ", Parameter("group"))
    if limits.rate == "group" and group is None:
        raise ParameterError(Parameter("rate", limits.rate), " requires groups: ", Parameter("group", ...))
    if test_size is not None:
        check_range("test_size", test_size, 0.05, 0.9, "a number from 0.05 to 0.9")
        test_size = float(test_size)
    for name, value, reason in (
        ("per", limits.column, ", as the fit to all rows has one threshold"),
        ("block", limits.block, ", as the fit to all rows has one threshold"),
        (
            "time",
            time,
            ": no later rows are left for the threshold, and models of earlier rows do not show where it is",
        ),
        (
            "confidence",
            limits.confidence,
            ": the guarantee is for a model that has not seen the rows of its threshold, and there are none after "
            "a fit to all of them; the threshold from cross-fitted scores has no guarantee",
        ),
    ):
        if refit and value is not None:
            raise ParameterError(Parameter("refit", True), " must not be given with ", Parameter(name), reason)
    check_seed(random_state)
    return FitSettings(limits, model, test_size, int(random_state), bool(tune), bool(refit))


# Titles of the parts of the rows.
PART_TITLES = {"train": "training", "calibration": "calibration", "held out": "held-out"}


class Parts(NamedTuple):
    """Rows of a fit: those of training, of the choice of the threshold, and of the test.

    Without times, the threshold is chosen on the test rows. With times, each part is later than the one before.
    """

    train: Index
    calibration: Index
    test: Index

    def by_name(self) -> dict[str, Index]:
        """Return the parts that differ, by their names in the metadata of a model."""
        between = {} if self.calibration is self.test else {"calibration": self.calibration}
        return {"train": self.train, **between, "held out": self.test}


class Fitted(NamedTuple):
    """Fitted model, the parts of the rows, the results of tuning and of the choice of a family, and the seconds.

    ``scores`` are those of the calibration rows, minus the threshold. ``weighted`` is whether the model was fitted with
    the costs as weights.
    """

    model: Any
    scores: Array
    parts: Parts
    tuning: dict[str, Any] | None
    seconds: float
    family: str
    families: dict[str, Any] | None
    # With costs: alerts on the calibration rows by thresholds that were chosen without them.
    flagged: Bools | None = None
    weighted: bool = False


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
    test_size: float | None = None,
    random_state: int = 0,
    running: Running | None = None,
) -> TableModel:
    """Fit a model to a table, choose a threshold, and evaluate it on held-out rows, as ``rocmax fit`` does.

    A fraction of the rows is held out. The model is chosen, tuned and fitted on the other rows. The model includes the
    preprocessing. For linear models, numbers are imputed and standardized, and text is one-hot encoded; for additive
    models, numbers become splines; for trees, numbers and missing values are not changed, and text becomes categories.
    With a limit on one of the rates, the threshold is chosen on the held-out rows.

    With ``Columns(time=...)``, the training rows are the earliest, the held-out rows the latest, and the threshold is
    chosen on calibration rows between them, so that neither the model nor the threshold has seen the held-out rows.

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
        - "ensemble": :class:`rocmax.EnsembleClassifier`, the weighted mean of boosted trees, extremely randomized trees
          and an additive model in ranks; requires LightGBM; not for svmlight files.
        - "auto": one of these families. Their cross-validated scores on the training rows are compared on the same
          folds, and the best is chosen. A large table is compared on growing parts of its rows until a difference is
          clear. Without tuning, it is "linear". The ensemble is compared for up to 20,000 training rows.
        - "auc": :class:`rocmax.AUCClassifier`, with any limit.
        - "logistic" and "svm": logistic regression and the linear support vector machine of scikit-learn.
        - "lightgbm": LightGBM's classifier with its defaults, except for the tuned number of leaves.
    tune : bool, default=True
        Whether to tune the model by cross-validation on its training rows.
    test_size : float, default=None
        Fraction of the rows that is held out; with times, half of it for calibration and half for the test. None is a
        quarter, or less if fewer rows are enough: independent rows with which a guarantee gives away at most a tenth of
        the limit, and with which intervals of rates are at most 0.02 wide.
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
        limits,
        model=model,
        test_size=test_size,
        random_state=random_state,
        tune=tune,
        group=columns.group,
        time=columns.time,
        refit=running.refit,
    )
    need_tables()
    need_package(model)
    check_running(running, "fit_table", "n_jobs")
    if running.refit and running.dask is not None:
        raise ParameterError(Parameter("refit", True), " is not possible with ", Parameter("dask"))
    with listening(running.progress), using_threads(running.threads):
        if running.dask is not None:
            from rocmax.tables.on_cluster import fit_on_cluster  # needs dask

            return fit_on_cluster(table, settings, columns, reading, running)
        training = read_training(table, columns, reading, settings.limits)
        if running.on_plan is not None:
            running.on_plan(training.schema.columns)
        found = fit_training(training, settings, running.tell)
        found = refitted(training, settings, found) if settings.refit else found
        found.facts = replace(found.facts, data=file_hashes(table))
        return found


def fit_training(training: Training, settings: FitSettings, tell: Callable[..., None]) -> TableModel:
    """Fit a model to training data in memory and evaluate it on the held-out rows."""
    check_table(settings.model, training.kinds)
    if settings.limits.costs is not None:
        settings.limits.costs.of(training.rows()).check(training.target.is_positive)
    given, settings = settings.limits, settings.with_share(training)
    parts = split_rows(training, settings)
    notes = [*training.notes, *_family_notes(training, settings, parts.train.size)]
    for name, rows in reversed(list(parts.by_name().items())[1:]):
        notes += row_notes(training.target.is_positive[rows], settings.limits, f"{PART_TITLES[name]} rows")
    notes += dropped_notes(training, parts)
    notes += duplicate_notes(training.X, parts.train, parts.test)
    notes += leak_notes(training.X, training.target.is_positive)
    tell(*notes)
    fitted = fit_rows(training, settings, parts)
    if settings.tune and fitted.tuning is None:
        notes.append("not tuned: one class has too few rows or groups for cross-validation")
        tell(notes[-1])
    if training.dated is not None:
        notes += date_notes(training.dated, measured_forward(training, settings.aimed(training), fitted.model))
        tell(notes[-1])
    return evaluated(training, replace(settings, limits=given), fitted, notes, tell)


def evaluated(
    training: Training,
    settings: FitSettings,
    fitted: Fitted,
    notes: list[str],
    tell: Callable[..., None],
    classes: dict[str, int] | None = None,
) -> TableModel:
    """Evaluate a fitted model on the held-out rows; return it with its metadata.

    ``classes`` are the sizes of the classes, if the training data are only a sample of the rows.
    """
    stage("evaluating on the held-out rows")
    limits, model, parts, test = settings.limits, fitted.model, fitted.parts, fitted.parts.test
    sharing = settings.with_share(training)
    exact, aim = sharing.limits, sharing.aimed(training).limits

    margins = fitted.scores
    on_calibration = on_test = _scored(training, parts.calibration, risks(model, margins, training, parts.calibration))
    if parts.calibration is not test:
        margins = batch_scores(model, training.rows(test), training.target.positive)
        on_test = _scored(training, test, risks(model, margins, training, test))
    scores, is_positive, flagged = on_test.scores, on_test.positive, margins > 0
    groups, found = usable_groups(on_test.groups, is_positive)
    by_name, narrow = measured([str(limits.measure)], aim, settings.seed, is_positive, scores, groups)
    held_out, rates = by_name[str(limits.measure)], rates_of(is_positive, flagged)
    found += narrow + corner_notes(is_positive, scores, aim) + chance_notes(held_out, rates, aim, is_positive)
    found += limit_notes(exact, rates, training, model)
    resembling, dated = None, []
    if training.times is not None:
        resembling = resemblance(aim, on_calibration, on_test, settings.seed)
        dated = [(training.times[parts.calibration], on_calibration), (training.times[test], on_test)]
    found += resemblance_notes(resembling, limits)
    found += perfect_notes(held_out["value"], training.X, training.target.is_positive)
    tell(*found)
    if classes is None:
        n_positive = int(training.target.is_positive.sum())
        classes = {"positive": n_positive, "negative": int(training.target.labels.size) - n_positive}
    facts = Facts(
        **{each.name: getattr(training.schema, each.name) for each in fields(training.schema)},
        rate=limits.rate,
        min_fpr=limits.window[0],
        max_fpr=limits.window[1],
        min_tpr=limits.min_tpr,
        min_precision=limits.min_precision,
        capacity=limits.capacity,
        capacity_share=exact.capacity,
        per=list(limits.per),
        block=None if limits.block is None else limits.block.to_dict(),
        costs=None if limits.costs is None else limits.costs.to_dict(),
        measure=str(limits.measure),
        model=settings.model,
        family=fitted.family,
        families=fitted.families,
        confidence=limits.confidence,
        offset=getattr(model, "threshold_", 0.0),
        thresholds=getattr(model, "thresholds_", None),
        binding=getattr(model, "binding_", None),
        violation_bound=None if limits.confidence is None else model.violation_bound_,
        tuning=fitted.tuning,
        seed=settings.seed,
        rows={name: int(rows.size) for name, rows in parts.by_name().items()}
        | ({"train": sum(classes.values()) - test.size} if training.times is None else {}),
        periods=None if training.times is None else periods_of(training, parts),
        held_out_groups=None if training.groups is None else int(np.unique(training.groups[test]).size),
        classes=classes,
        versions={"rocmax": rocmax.__version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__},
        fitted=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=round(fitted.seconds, 3),
        held_out=held_out,
        later=None if training.times is None else later_value(str(limits.measure), aim, dated),
        at_threshold=rates,
        savings=savings_of(training, settings, fitted, flagged, groups),
        over_time=None if training.times is None else over_time(training.times[test], flagged, is_positive, groups),
        resemblance=resembling,
        calibration=fit_calibration(on_calibration.scores, on_calibration.positive),
        shares=ValueShares(known_levels(model, training.kinds)).add(training.rows()).to_dict(),
        intervals=rate_intervals(is_positive, flagged, groups),
    )
    return TableModel(model, facts, notes=notes + found, held_out_rows=test)


def risks(model: Any, margins: Array, training: Training, rows: Index) -> Array:
    """Return scores of rows without the thresholds of single cases, by which the measures rank them."""
    return risk_scores(model, margins, training.rows(rows)) if _is_per_case(model) else margins


def _is_per_case(model: Any) -> bool:
    return getattr(model, "case_calibration_", None) is not None


def savings_of(
    training: Training, settings: FitSettings, fitted: Fitted, flagged: Bools, groups: Any
) -> dict[str, Any] | None:
    """Return the costs of the decisions on the held-out rows as plain values; None without costs.

    If the threshold was chosen on these rows, the decision for each is that of one chosen on the others.
    """
    if settings.limits.costs is None:
        return None
    rows, parts = fitted.parts.test, fitted.parts
    if parts.calibration is parts.test and fitted.flagged is not None:
        flagged = fitted.flagged
    case = settings.limits.costs.of(training.rows(rows))
    options: dict[str, Any] = {"groups": groups, "random_state": settings.seed}
    found = expected_cost(case, training.target.is_positive[rows], flagged, **options)
    return {"per_case": _is_per_case(fitted.model), "weighted": fitted.weighted, **found._asdict()}


def refitted(training: Training, settings: FitSettings, found: TableModel) -> TableModel:
    """Return the model after a fit to all rows, with a threshold from cross-fitted scores.

    The results on the held-out rows stay those of the model before.
    """
    settings = settings.with_share(training)
    X, labels, positive = training.X, training.target.labels, training.target.is_positive
    fitted = getattr(found.model, "estimator_", found.model)
    aim = trained_for(settings.limits, positive)
    weight = None
    if found.facts.savings is not None and found.facts.savings["weighted"]:
        weight = cost_weights(training, settings)

    def fitted_to(rows: Index) -> Any:
        splits = tuning_splits(positive[rows], some_rows(training.depends, rows), aim, settings.seed)
        return fitted_again(fitted, _safe_indexing(X, rows), labels[rows], splits, some_rows(weight, rows))

    scores = np.empty(positive.size)
    splits = folds(positive, FOLD_RULES.n_folds(positive.size), settings.seed, training.groups)
    for number, (train, test) in enumerate(splits):
        stage("fitting to all rows, in folds", number, len(splits))
        scores[test] = positive_scores(fitted_to(train), _safe_indexing(X, test), pos_label=training.target.positive)
    stage("fitting to all rows")
    model, margins = with_threshold(fitted_to(np.arange(positive.size)), training, settings, None, scores)
    margins = risks(model, margins, training, np.arange(positive.size))
    if settings.limits.costs is not None:
        del model.held_out_alerts_
    facts = replace(
        found.facts,
        offset=getattr(model, "threshold_", 0.0),
        binding=getattr(model, "binding_", None),
        rows=found.facts.rows | {"refit": positive.size},
        savings=None if found.facts.savings is None else found.facts.savings | {"per_case": _is_per_case(model)},
        calibration=fit_calibration(margins, positive),
    )
    return TableModel(model, facts, notes=found.notes)


def _scored(training: Training, rows: Index, scores: Array) -> ScoredRows:
    return ScoredRows(scores, training.target.is_positive[rows], some_rows(training.groups, rows))


def _family_notes(training: Training, settings: FitSettings, n_rows: int) -> list[str]:
    if settings.model != "auto":
        return []
    if not settings.tune:
        return [Message("auto is linear: families are compared only with ", Parameter("tune", True))]
    return families_for(training.kinds, n_rows)[1]


def fit_rows(training: Training, settings: FitSettings, parts: Parts | None = None) -> Fitted:
    """Fit a model on the training rows and choose the threshold on the calibration rows; ``parts`` are these rows."""
    labels, positive = training.target.labels, training.target.positive
    parts = split_rows(training, settings) if parts is None else parts
    train, chosen_on = parts.train, parts.calibration
    column = settings.limits.column
    values = None if column is None else column_texts(training.rows(chosen_on), column)
    check_enough(training.target.is_positive[chosen_on], settings, some_rows(training.groups, chosen_on), values)
    start = perf_counter()
    tuned = tuned_model(
        settings.model,
        kinds=training.kinds,
        limits=settings.aimed(training).limits,
        positive=positive,
        tune=settings.tune,
        seed=settings.seed,
    )
    tuned.fit(_safe_indexing(training.X, train), labels[train], some_rows(training.depends, train))
    family, families = (tuned.model_, tuned.families_) if isinstance(tuned, BestFamily) else (tuned.model, None)
    model, scores = with_threshold(tuned.pipeline_, training, settings, chosen_on)
    flagged, weighted = None, False
    if settings.limits.costs is not None:
        stage("fitting with the costs as weights")
        splits = tuning_splits(
            training.target.is_positive[train], some_rows(training.depends, train), tuned.limits, tuned.seed
        )
        weight = cost_weights(training, settings)[train]
        again = fitted_again(tuned.pipeline_, _safe_indexing(training.X, train), labels[train], splits, weight)
        other, margins = with_threshold(again, training, settings, chosen_on)
        weighted = bool(other.held_out_cost_ < model.held_out_cost_)
        model, scores = (other, margins) if weighted else (model, scores)
        flagged = model.held_out_alerts_
        del model.held_out_alerts_  # not to be saved with the model
    return Fitted(model, scores, parts, tuned.tuning_, perf_counter() - start, family, families, flagged, weighted)


def cost_weights(training: Training, settings: FitSettings) -> Array:
    """Return what a wrong decision costs in each row, relative to the mean."""
    assert settings.limits.costs is not None
    weight = settings.limits.costs.of(training.rows()).weight(training.target.is_positive)
    weight /= weight.mean()
    return weight


def with_threshold(
    pipeline: Any, training: Training, settings: FitSettings, rows: Index | None, scores: Array | None = None
) -> tuple[Any, Array]:
    """Return a fitted pipeline with a threshold from held-out rows, if there is a limit or costs.

    Return also the scores of these rows, minus the threshold. ``rows`` None are all rows; ``scores`` are those of the
    pipeline, unless they are given.
    """
    limits, X = settings.limits, training.rows(rows)
    options: dict[str, Any] = {"cv": "prefit", "pos_label": training.target.positive}
    scores = batch_scores(pipeline, X, training.target.positive) if scores is None else scores
    if not limits.limited and limits.costs is None:
        return pipeline, scores
    if limits.costs is not None:
        model: Any = LimitThresholdClassifier(pipeline, limits, random_state=settings.seed, **options)
    elif limits.extended:
        model = LimitThresholdClassifier(pipeline, limits, **options)
    elif limits.min_tpr > 0:
        model = TPRThresholdClassifier(
            pipeline, limits.min_tpr, confidence=limits.confidence, rate=limits.rate, **options
        )
    else:
        model = FPRThresholdClassifier(
            pipeline, limits.window[1], confidence=limits.confidence, rate=limits.rate, **options
        )
    labels, groups = training.target.labels, training.groups
    if rows is not None:
        labels, groups = labels[rows], some_rows(groups, rows)
    return model, model.choose_on(scores, X, labels, groups).margins(scores, X)


def check_enough(positive: Bools, settings: FitSettings, groups: Any = None, values: Any = None) -> None:
    """Raise the error about too few held-out rows or groups for a guarantee, before the expensive fit.

    ``values`` are those of the column whose values have thresholds of their own.
    """
    limits = settings.limits
    column = limits.column
    if not limits.extended and limits.min_tpr > 0:
        limits = replace(limits, max_fpr=1.0)
    parts = {"": positive | True} if column is None else rows_of_values(values, column)
    for value, rows in parts.items():
        with naming(column, value):
            check_counts(positive[rows], some_rows(groups, rows), limits, level_of(limits, len(parts)), "test_size")


def held_out_share(n_positives: int, n_negatives: int, settings: FitSettings) -> float:
    """Return the fraction of independent rows to hold out; the rule is for limits on the two rates."""
    if settings.test_size is not None or settings.limits.extended:
        return settings.most_held_out
    positives, negatives = enough_rows(settings.limits)
    return min(HELD_OUT.share, max(positives / n_positives, negatives / n_negatives))


def enough_rows(limits: Limits) -> tuple[int, int]:
    """Return the numbers of held-out positives and negatives that are enough, by `HeldOutRules`."""
    # The exact interval at a rate of one half, the widest: 1.96 standard errors on either side, and a row.
    for_width = math.ceil((float(norm.ppf(0.975)) / HELD_OUT.width) ** 2 + 2 / HELD_OUT.width)
    delta = 0.05 if limits.confidence is None else 1 - limits.confidence
    limited = [1 - limits.min_tpr if limits.min_tpr > 0 else 1.0, limits.window[1]]
    found = [1 if rate == 1.0 else rows_enough(rate, delta, HELD_OUT.given_away) for rate in limited]
    return max(for_width, found[0]), max(for_width, found[1])


def split_rows(training: Training, settings: FitSettings) -> Parts:
    """Return the parts of the rows; groups are not split. With times, half of those held out are calibration rows."""
    positive = training.target.is_positive
    fewest = int(min(positive.sum(), (~positive).sum()))
    if fewest < 4:
        raise DataError(f"each class must have at least 4 rows; got {fewest} in the smaller class")
    if training.times is not None:
        size = round(positive.size * settings.most_held_out / 2)
        return forward_parts(training, size, size)
    try:
        # How much the rows of a group, or of a period, say together is not known before the fit.
        sides = int(positive.sum()), int((~positive).sum())
        share = held_out_share(*sides, settings) if training.groups is None else settings.most_held_out
        train, test = held_out_split(positive, share, settings.seed, training.groups)
    except ValueError as error:
        raise DataError(str(error)) from None
    return Parts(train, test, test)


# Splits forward in time.


def forward_parts(training: Training, n_calibration: int, n_test: int) -> Parts:
    """Return the parts of the rows forward in time, with about so many calibration and test rows, which are the latest.

    The rows of each part are known, a gap later, when the next one begins, and have no group of a later part.
    """
    depends, positive, times = training.depends, training.target.is_positive, training.times
    assert isinstance(depends, Dependence)
    assert times is not None
    name, n_times = training.schema.time, np.unique(times).size
    if n_times < 3:
        raise DataError(
            f"column {name!r} must have at least three different times, for training, calibration and test rows; got "
            f"{n_times}"
        )
    parts = Parts(*depends.periods([n_calibration, n_test]))
    for title, rows in parts.by_name().items():
        n_positive = int(positive[rows].sum())
        if not 0 < n_positive < rows.size:
            when = f" from {time_text(times[rows].min())} to {time_text(times[rows].max())}" if rows.size else ""
            found: list[str | Parameter] = [
                f"the {PART_TITLES[title]} rows{when} must have rows of both classes; got {n_positive} positives among "
                f"{rows.size} rows. Choose another ",
                Parameter("test_size"),
            ]
            found += [" or a shorter ", Parameter("gap")] if training.schema.gap else []
            raise DataError(*found, "; ".join(["", *dropped_notes(training, parts)]))
    return parts


def periods_of(training: Training, parts: Parts) -> dict[str, Any]:
    """Return the first and the last time of each part, and the number of rows in no part, as plain values."""
    times = training.times
    assert times is not None
    as_plain = time_text if times.dtype.kind == "M" else float
    found: dict[str, Any] = {
        name: {"first": as_plain(times[rows].min()), "last": as_plain(times[rows].max())}
        for name, rows in parts.by_name().items()
    }
    return {**found, "dropped": dropped_rows(training, parts)}


def dropped_rows(training: Training, parts: Parts) -> dict[str, int]:
    """Return how many rows are in no part: with a label that is not known in time, and of a group of a later part."""
    assert training.times is not None
    ungrouped = Dependence(None, training.times, check_gap(training.schema.gap))
    later = np.zeros(training.times.size, dtype=bool)
    rest, late = ~later, 0
    for rows in (parts.test, parts.calibration):
        if rows.size:
            later[rows] = True
            before = rest & (training.times < training.times[rows].min())
            known = np.zeros_like(rest)
            known[ungrouped.known_before(before, later)] = True
            late, rest = late + int((before & ~known).sum()), known
    return {"gap": late, "group": training.times.size - sum(map(len, parts)) - late}


def measured_forward(training: Training, settings: FitSettings, model: Any) -> str:
    """Return how a model with the chosen parameters does on later rows and on random ones, as text.

    Two models are fitted to equally many rows. The text is empty if the dates cannot be read, or a part of a split
    lacks a class.
    """
    assert training.dated is not None
    try:
        times, rows = training.dated.times()
    except DataError:
        return ""
    limits = trained_for(settings.limits, training.target.is_positive)
    some = compared_parts(training.target.is_positive[rows], limits, settings.seed)[0]
    times, rows = times[some], rows[some]
    positive, groups = training.target.is_positive[rows], some_rows(training.groups, rows)
    train, test = Dependence(groups, times).periods([round(rows.size * settings.most_held_out)])
    try:
        by_chance = held_out_split(positive, test.size / rows.size, settings.seed, groups)
    except ValueError:
        return ""
    rng = np.random.default_rng(settings.seed)
    sizes = [min(map(len, both)) for both in zip((train, test), by_chance, strict=True)]
    splits = {
        name: [rng.permutation(part)[:size] for part, size in zip(split, sizes, strict=True)]
        for name, split in (("later", (train, test)), ("random", by_chance))
    }
    if any(not 0 < positive[part].sum() < part.size for split in splits.values() for part in split):
        return ""
    steps = getattr(model, "estimator_", model).named_steps
    X, labels = steps["table"].transform(_safe_indexing(training.X, rows)), training.target.labels[rows]
    found, candidate = {}, with_choices(steps["model"])
    if hasattr(candidate, "n_models"):
        candidate.set_params(n_models=1)  # a mean of several ensembles takes as many times as long
    stage("comparing the random split with one forward in time")
    for name, (fitted_on, part) in splits.items():
        with hushed(ConvergenceWarning):  # about a model that is not kept
            fitted = clone(candidate).fit(X[fitted_on], labels[fitted_on])
        scores = class_scores(fitted, X[part], positive_index(fitted.classes_, training.target.positive))
        values = measured([str(limits.measure)], limits, settings.seed, positive[part], scores, groups=None)[0]
        found[name] = values[str(limits.measure)]
    texts = [
        f"{value['value']:.4f} [{value['low']:.4f}, {value['high']:.4f}] on {name} rows"
        for name, value in found.items()
    ]
    return f" (with {sizes[0]:,} training rows, {window_measure(limits).title}: {', '.join(texts)})"


def dropped_notes(training: Training, parts: Parts) -> list[str]:
    """Return a note about the rows that are in no part of a split forward in time."""
    if training.times is None:
        return []
    dropped = dropped_rows(training, parts)
    reasons = {
        "gap": "as their labels were not known when the next part begins",
        "group": "as their groups have later rows among the calibration or the held-out rows",
    }
    return [f"{count:,} rows are left out, {reasons[key]}" for key, count in dropped.items() if count]
