"""Options of the table functions: columns, limits, how a table is read, how a call runs; and their validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter as Argument
from typing import Any, TypeVar

import numpy as np

from rocmax._support import Listener, Message, Parameter, ParameterError
from rocmax._validation import check_choice
from rocmax.data import Reading
from rocmax.measures import Measure, measure_names, pick_measure
from rocmax.metrics.scores import METRICS


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are: the target, the groups, and columns whose use is declared.

    Parameters
    ----------
    target, positive, group
    id : str or sequence of str, default=()
        Columns that identify rows: the model does not use them, and predictions are written with them.
    text : str or sequence of str, default=()
        Columns to use as categories, such as integers that are codes.
    number : str or sequence of str, default=()
        Columns to use as numbers. A per cent sign after a number is ignored.
    date : str or sequence of str, default=()
        Columns of dates to use: year, month, weekday, hour, and age in days at the latest date of the training table.
    drop : str or sequence of str, default=()
        Columns to leave out.

    Examples
    --------
    >>> import pandas as pd
    >>> from rocmax.tables import Columns, plan_columns
    >>> table = pd.DataFrame({"ward": [1, 2] * 50, "size": [1.5, 2.5] * 50, "label": [0, 1] * 50})
    >>> plan = plan_columns(table, columns=Columns(target="label", text="ward"))
    >>> [(column.name, column.kind) for column in plan]
    [('ward', 'category'), ('size', 'number')]
    """

    target: str | None = None
    positive: Any = None
    group: str | None = None
    id: str | Sequence[str] = ()
    text: str | Sequence[str] = ()
    number: str | Sequence[str] = ()
    date: str | Sequence[str] = ()
    drop: str | Sequence[str] = ()


@dataclass(frozen=True)
class Limits:
    """What a model is trained for: a measure, and limits on the rates that its threshold keeps.

    Parameters
    ----------
    max_fpr : float, default=None
        Limit on the false-positive rate; None or 1 for no limit.
    confidence : float, default=None
        Probability with which the limit is kept on new rows, as in :class:`rocmax.FPRThresholdClassifier` or, with
        ``min_tpr``, in :class:`rocmax.TPRThresholdClassifier`.
    min_fpr : float, default=0.0
        Lower end of the window of false-positive rates.
    min_tpr : float, default=0.0
        Required true-positive rate; 0 for no limit. The threshold then reaches it, even with a limit on the
        false-positive rate, in which case the model is fitted to the corner of both.
    measure : str, default=None
        Measure to tune for and to report: "roc_auc", "partial_auc", "two_way_partial_auc" (the partial AUC with both
        limits), "tpr_at_fpr" or "break_even_point". None takes the partial AUC with a limit, and the AUC without.
    rate : {"row", "group"}, default="row"
        Which rate a limit is for, if there are groups: that of all rows, or the mean over the groups of the rate in
        each, as in :class:`rocmax.FPRThresholdClassifier`.

    Examples
    --------
    >>> from rocmax.tables import Limits
    >>> Limits(min_tpr=0.9, max_fpr=0.2, confidence=0.95).measure is None
    True
    """

    max_fpr: float | None = None
    confidence: float | None = None
    min_fpr: float = 0.0
    min_tpr: float = 0.0
    measure: str | None = None
    rate: str = "row"

    @property
    def window(self) -> tuple[float, float]:
        """Range of false-positive rates."""
        return self.min_fpr, 1.0 if self.max_fpr is None else self.max_fpr

    @property
    def limited(self) -> bool:
        """Whether there is a limit on one of the rates."""
        return self.window != (0.0, 1.0) or self.min_tpr > 0


@dataclass(frozen=True)
class Running:
    """Where a call runs, and whom it tells what it does.

    Parameters
    ----------
    threads : int, default=None
        Number of threads of the trees and of BLAS. None takes one thread for BLAS and for the trees one for each
        2,000,000 values of the table, at most the cores that the process may use; ``OMP_NUM_THREADS`` is respected.
        With None, parallel fits share the cores.
    n_jobs : int, default=None
        Number of fits of :func:`compare_models` that run in parallel, as in joblib: None means 1, -1 all processors.
    dask : str or distributed.Client, default=None
        Scheduler of a dask cluster, whose workers read the parquet files of :func:`fit_table` and fit a linear model
        without tuning. Only samples of at most 100,000 training rows, for the plan of the columns and the
        preprocessing, and as many held-out rows are fetched.
    notify : callable, default=None
        Called with each note as soon as it is known. The notes are in the result, too.
    on_plan : callable, default=None
        Called with the plan of the columns, as returned by :func:`plan_columns`, before the fit.
    progress : callable, default=None
        Called with what is done now, how much of it is done, and the total, which is None if it is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.tables import Running, fit_table
    >>> table = load_breast_cancer(as_frame=True).frame.assign(constant=1.0)
    >>> told = Running(notify=print)
    >>> model = fit_table(table, target="target", positive=0, model="linear", tune=False, running=told)
    'constant' is left out (number): one value only
    """

    threads: int | None = None
    n_jobs: int | None = None
    dask: Any = None
    notify: Callable[[str], None] | None = None
    on_plan: Callable[[list[Any]], None] | None = None
    progress: Listener | None = None

    def tell(self, note: str) -> None:
        """Pass on a note."""
        if self.notify is not None:
            self.notify(note)


Options = TypeVar("Options", Columns, Limits, Reading, Running)

# Parameters of the objects that are keywords of the functions, too.
PLAIN = ("target", "positive", "group", "max_fpr", "confidence")
# What the other parameters are written in, for messages.
HOLDERS = {
    field.name: f"{kind.__name__.lower()}={kind.__name__}"
    for kind in (Columns, Limits, Reading, Running)
    for field in fields(kind)
    if field.name not in PLAIN
}


def chosen(kind: type[Options], given: Options | None, **keywords: Any) -> Options:
    """Return the options of a kind, with those given as keywords; raise an error for one that is given twice."""
    name = kind.__name__
    options = kind() if given is None else given
    if not isinstance(options, kind):
        raise TypeError(f"{name.lower()} must be a rocmax.tables.{name} or None; got {options!r}")
    own = {key: value for key, value in keywords.items() if value is not None}
    for key, value in own.items():
        if getattr(options, key) is not None:
            both = f"{key}={value!r} and {name.lower()}={name}({key}={getattr(options, key)!r})"
            raise ParameterError(f"{key} must be given once; got {both}")
    return replace(options, **own)


# Measures of tables: those computed from scores on a range of rates, which tuning can use.


def window_measure_names() -> list[str]:
    """Return the names of score measures whose only required parameters are the range of false-positive rates."""
    return [
        name
        for name in measure_names()
        if not METRICS[name].takes_labels
        and all(
            key in ("min_fpr", "max_fpr") or default is not Argument.empty
            for key, default in METRICS[name].parameters.items()
        )
    ]


def window_measure(limits: Limits, name: str | None = None) -> Measure:
    """Return a measure by name, or that of the limits, with the limits that it has as parameters."""
    min_fpr, max_fpr = limits.window
    given = {"min_fpr": min_fpr, "max_fpr": max_fpr, "min_tpr": limits.min_tpr}
    return pick_measure(name or str(limits.measure), given)


# Validation.


# With both limits, the two-way partial AUC is the partial AUC.
TWO_WAY = "two_way_partial_auc"
MEASURES = (*window_measure_names(), TWO_WAY)


def check_declared(columns: Columns) -> Columns:
    """Return columns with tuples of names; raise ParameterError if one is declared in two ways."""
    kinds = ("text", "number", "date", "drop", "id")
    found: dict[str, Any] = {kind: names_of(getattr(columns, kind)) for kind in kinds}
    target, group = columns.target, columns.group
    owner: dict[str, str] = {} if target is None else {target: "target"}
    if group is not None:
        if group == target:
            raise ParameterError(Message(Parameter("group"), " must be another column than ", Parameter("target")))
        owner[group] = "group"
    for key, names in found.items():
        for name in names:
            # A group may also be carried to the output or dropped.
            if owner.get(name, key) != key and (owner[name], key) not in (("group", "id"), ("group", "drop")):
                both = Message(Parameter(owner[name]), " and ", Parameter(key))
                raise ParameterError(Message(*both.parts, f" must be different columns; got {name!r} for both"))
            owner.setdefault(name, key)
    return replace(columns, **found)


def names_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def check_limits(limits: Limits) -> Limits:
    """Return limits with numbers and the name of a measure; raise ParameterError if they are invalid or incompatible.

    The default measure is the partial AUC with a limit, and the AUC without.
    """
    (min_fpr, max_fpr), min_tpr = limits.window, limits.min_tpr
    for name, value in (("min_fpr", min_fpr), ("max_fpr", max_fpr)):
        check_range(name, value, 0.0, 1.0, "a number from 0 to 1")
    low, limit = Parameter("min_fpr"), Parameter("max_fpr", ...)
    if not min_fpr < max_fpr:
        found = f"; got {min_fpr:g} and {max_fpr:g}"
        raise ParameterError(Message(low, " must be less than ", Parameter("max_fpr"), found))
    if min_fpr > 0 and max_fpr == 1.0:
        raise ParameterError(Message(low, " requires a limit: ", limit, f", above {min_fpr:g} and below 1"))
    check_range("min_tpr", min_tpr, 0.0, math.nextafter(1.0, 0.0), "a number of at least 0 and below 1")
    measure = _check_measure(limits.measure, max_fpr, min_tpr)
    return replace(limits, min_fpr=float(min_fpr), max_fpr=float(max_fpr), min_tpr=float(min_tpr), measure=measure)


def _check_measure(measure: str | None, max_fpr: float, min_tpr: float) -> str:
    if measure is None:
        return "roc_auc" if max_fpr == 1.0 and min_tpr == 0.0 else "partial_auc"
    name = measure.removesuffix("_score") if isinstance(measure, str) else measure
    check_choice("measure", name, MEASURES)
    named, limit = Parameter("measure", name), Parameter("max_fpr", ...)
    if name == "tpr_at_fpr" and max_fpr == 1.0:
        raise ParameterError(Message(named, " requires a limit: ", limit))
    if name == TWO_WAY and (max_fpr == 1.0 or min_tpr == 0.0):
        raise ParameterError(Message(named, " requires both limits: ", limit, " and ", Parameter("min_tpr", ...)))
    return "partial_auc" if name == TWO_WAY else name


def check_running(running: Running, function: str, other: str) -> None:
    """Raise ParameterError for an invalid number of threads, or if ``other``, which a function does not use, is set."""
    if running.threads is not None:
        needed = "a positive integer, or None to follow the size of the table"
        check_range("threads", running.threads, 1, math.inf, needed, integer=True)
    refuse(function, running, other)


def refuse(function: str, options: Columns | Limits | Running, *names: str) -> None:
    """Raise ParameterError if options that a function does not use are set."""
    for name in names:
        value = getattr(options, name)
        if value != getattr(type(options), name):
            raise ParameterError(
                Message(Parameter(name), f" must not be given: {function} does not use it; got {value!r}")
            )


def check_seed(random_state: Any) -> None:
    """Raise ParameterError if a seed is not an integer that NumPy and scikit-learn accept."""
    needed = "an integer from 0 to 2**32 - 1, which is saved with the model"
    check_range("random_state", random_state, 0, 2**32 - 1, needed, integer=True)


def check_range(
    name: str, value: Any, low: float, high: float, needed: str, *, open_ends: bool = False, integer: bool = False
) -> None:
    """Raise ParameterError if a value is not a number, or integer, between two others."""
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    number = isinstance(value, kinds) and not isinstance(value, bool)
    if not number or not (low < value < high if open_ends else low <= value <= high):
        got = f"{value:g}" if number and not integer else repr(value)
        raise ParameterError(Message(Parameter(name), f" must be {needed}; got {got}"))
