"""Comparison of models, given by name, on one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocmax._atomic import check_not_input, write_file
from rocmax._messages import Message, Parameter, ParameterError
from rocmax._threads import using_threads
from rocmax.metrics import make_scorer
from rocmax.workflow.column_plan import Column
from rocmax.workflow.comparison import compare, read_store
from rocmax.workflow.evidence import split_notes
from rocmax.workflow.families import families_for
from rocmax.workflow.measuring import window_measure
from rocmax.workflow.models import MODELS, check_table, need_package
from rocmax.workflow.settings import (
    check_choice,
    check_count,
    check_floor,
    check_measure,
    check_seed,
    check_threads,
    check_window,
)
from rocmax.workflow.tables import Reading, need_tables, read_training
from rocmax.workflow.tuning import TunedPipeline


@dataclass(frozen=True)
class ModelComparison:
    """Result of models on the same random splits of a table.

    Attributes
    ----------
    table : pandas.DataFrame
        Table returned by :func:`rocmax.compare`, best mean first.
    measure : str
        Name of the measure.
    positive : str
        Label of the positive class.
    notes : list of str
        Remarks on the input table, for example ignored columns.
    columns : list of Column
        Plan of the columns, as returned by :func:`plan_columns`.
    title : str
        Measure in words, with its range of rates.
    """

    table: Any
    measure: str
    positive: str
    notes: list[str]
    columns: list[Column] = field(default_factory=list)
    title: str = ""

    def save(self, path: str | Path) -> None:
        """Write the table as csv, with one column for the scores of each split.

        Parameters
        ----------
        path : str or Path
            Output file; it is written atomically.
        """
        scores = self.table["scores"].apply(list)
        wide = self.table.drop(columns="scores")
        for number in range(len(scores.iloc[0])):
            wide[f"split_{number + 1}"] = [values[number] for values in scores]
        write_file(path, wide.to_csv(index_label="model", lineterminator="\n").encode())

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows of the table as plain values, for example for JSON; NaN becomes None."""
        return [
            {"model": name, **{key: None if isinstance(v, float) and math.isnan(v) else v for key, v in row.items()}}
            for name, row in self.table.to_dict(orient="index").items()
        ]


def compare_models(
    table: Any,
    *,
    models: Sequence[str] | None = None,
    target: str | None = None,
    positive: Any = None,
    max_fpr: float = 1.0,
    min_fpr: float = 0.0,
    min_tpr: float = 0.0,
    measure: str | None = None,
    tune: bool = True,
    text: str | Sequence[str] = (),
    number: str | Sequence[str] = (),
    date: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    id: str | Sequence[str] = (),
    group: str | None = None,
    n_splits: int = 10,
    n_jobs: int = 1,
    threads: int | None = None,
    store: str | Path | None = None,
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
    random_state: int = 0,
    notify: Callable[[str], None] | None = None,
    on_plan: Callable[[list[Column]], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> ModelComparison:
    """Compare models on the same random splits of a table, each fitted as :func:`fit_table` would fit it.

    Every model is tuned on the training rows of each split, in up to ten folds, so a comparison takes about
    ``n_splits`` times as long as single fits. The command ``rocmax compare`` calls this function.

    Parameters
    ----------
    table : str, Path, list of them, file or data frame
        A file (csv, tsv, xlsx, parquet or svmlight, text also compressed), or a DataFrame of pandas or polars.
    models : sequence of str, default=None
        Names, as in :func:`fit_table`. None takes "linear", "additive", "boosted" and "logistic", except those that
        the table or the installed packages do not allow. "auto" is slow, because it compares the families on the
        training rows of each split.
    target : str, default=None
        The column with the labels. An svmlight file has its labels in front and takes no target.
    positive : object, default=None
        Label of the positive class. None is enough where there is no doubt: 0 and 1, "no" and "yes".
    max_fpr : float, default=1.0
        Limit on the false-positive rate; 1 for no limit.
    min_fpr : float, default=0.0
        Lower end of the window of false-positive rates.
    min_tpr : float, default=0.0
        Required true-positive rate; 0 for no limit.
    measure : str, default=None
        Measure to tune for and to compare, as in :func:`fit_table`.
    tune : bool, default=True
        Whether to tune each model by cross-validation on its training rows.
    text : str or sequence of str, default=()
        Columns to use as categories, such as whole numbers that are codes.
    number : str or sequence of str, default=()
        Columns to use as numbers. A per cent sign after a number is ignored.
    date : str or sequence of str, default=()
        Columns of dates to use: year, month, weekday, hour, and age in days at the latest date of the training table.
    drop : str or sequence of str, default=()
        Columns to leave out.
    id : str or sequence of str, default=()
        Columns that identify rows: the model does not use them, and predictions are written with them.
    group : str, default=None
        A column; rows with the same value in it stay on one side of every split.
    n_splits : int, default=10
        Number of random splits. Each test set has 30 % of the rows.
    n_jobs : int, default=1
        Number of fits that run in parallel, as in joblib: None means 1, -1 all processors.
    threads : int, default=None
        Number of threads of the trees and of BLAS. None takes one thread for BLAS and for the trees one for each
        2,000,000 values of the table, at most the cores that the process may use; ``OMP_NUM_THREADS`` is respected.
        With None, parallel fits share the cores.
    store : str, Path, default=None
        A file of results, to go on after a stop, as in :func:`rocmax.compare`.
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
    random_state : int, default=0
        Seed of all random draws.
    notify : callable, default=None
        Called with each note as soon as it is known.
    on_plan : callable, default=None
        Called with the plan of the columns, as returned by :func:`plan_columns`, before the fit.
    progress : callable, default=None
        Called with 1 after each fit.

    Returns
    -------
    ModelComparison
        Result of the comparison.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.workflow import compare_models
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> found = compare_models(
    ...     table, models=["auc", "logistic"], target="target", positive=0, n_splits=2, tune=False
    ... )
    >>> sorted(found.table.index), found.measure
    (['auc', 'logistic'], 'roc_auc')
    """
    window, floor = check_window(min_fpr, max_fpr), check_floor(min_tpr)
    chosen = check_measure(measure, max_fpr, floor)
    check_threads(threads)
    names = _check(models, n_splits, n_jobs, random_state, store, table)
    training = read_training(
        table,
        target=target,
        positive=positive,
        group=group,
        reading=Reading(
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
        text=text,
        number=number,
        date=date,
        drop=drop,
        id=id,
    )
    if on_plan is not None:
        on_plan(training.plan)
    families, left_out = families_for(training.kinds)
    if models is None:
        names = [*families, "logistic"]
    compared = models is None or ("auto" in names and tune)
    notes = [*training.notes, *(left_out if compared else ()), *split_notes(n_splits)]
    for name in names:
        check_table(name, training.kinds)
    tell = notify or (lambda note: None)
    for note in notes:
        tell(note)
    side = training.target.positive
    in_range = window_measure(chosen, window, floor)
    shared: dict[str, Any] = {"kinds": training.kinds, "window": window, "measure": chosen, "positive": side}
    shared["min_tpr"] = floor
    with using_threads(threads):
        found = compare(
            {name: TunedPipeline(name, **shared, tune=tune, seed=random_state) for name in names},
            training.X,
            training.target.labels,
            scoring=make_scorer(in_range, pos_label=side),
            n_splits=n_splits,
            groups=training.groups,
            random_state=random_state,
            n_jobs=n_jobs,
            store=store,
            progress=progress,
        )
    return ModelComparison(found, chosen, side, notes, training.plan, in_range.title)


def _check(
    models: Sequence[str] | None, n_splits: Any, n_jobs: Any, random_state: Any, store: Any, table: Any
) -> list[str]:
    """Return the names of the models; raise an error for invalid parameters before the table is read."""
    names = [models] if isinstance(models, str) else list(models or [])
    for name in names if names or models is None else [""]:
        check_choice("models", name, MODELS)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(Message(Parameter("models"), f" must be distinct names; got {twice[0]!r} more than once"))
    check_count("n_splits", n_splits, 2, "an integer of at least 2")
    if n_jobs == 0:
        raise ParameterError(
            Message(Parameter("n_jobs"), " must be a positive integer, or -1 for all processors; got 0")
        )
    check_seed(random_state)
    need_tables()
    for name in names:
        need_package(name)
    if store is not None:
        if isinstance(table, str | Path):
            check_not_input(store, [table])
        read_store(store)  # raises an error for any other file
    return names
