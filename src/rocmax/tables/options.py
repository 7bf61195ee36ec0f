"""Options of the table functions: columns, limits, how a table is read, how a call runs; and their validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter as Argument
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rocmax._support import Bools, Listener, Parameter, ParameterError
from rocmax._validation import check_choice, check_range
from rocmax.costs import Costs
from rocmax.data import Reading
from rocmax.forward import check_gap
from rocmax.limits import Limits as Limits  # exported from here, too
from rocmax.limits import checked
from rocmax.measures import Measure, measure_names, pick_measure
from rocmax.metrics.scores import METRICS


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are: the target, the groups, and columns whose use is declared.

    Parameters
    ----------
    target, positive, group
    time : str, default=None
        Column with the time of each row, numbers or dates. Every split is then forward in time: the held-out rows are
        the latest ones, and folds train on earlier rows than those they are scored on. The model does not use the
        column. If it is also declared in ``date``, the model uses its month, weekday and hour, but not its year and
        age, which do not have the same values later.
    gap : float, timedelta or str, default=None
        With ``time``, how long it takes until the label of a row is known: a number if the times are numbers, otherwise
        a time span or text such as "30d", with the unit s, min, h, d or w. Training rows end so long before the
        held-out ones begin.
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
    time: str | None = None
    gap: Any = None
    id: str | Sequence[str] = ()
    text: str | Sequence[str] = ()
    number: str | Sequence[str] = ()
    date: str | Sequence[str] = ()
    drop: str | Sequence[str] = ()


@dataclass(frozen=True)
class Running:
    """Where a call runs, whom it tells what it does, and whether it ends with a fit to all rows.

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
        without tuning or, with ``model="boosted"``, boosted trees. Only samples of at most 100,000 training rows, for
        the plan of the columns and the preprocessing, and as many held-out rows are fetched.
    refit : bool, default=False
        Whether :func:`fit_table` ends with a fit of the chosen model to all rows. Its threshold is chosen on
        cross-fitted scores: that of each row by a model that has not seen it. The measure and the rates are those of
        the model before, on the rows that were held out from it. Not with a confidence or times, as no row is then left
        that the model has not seen, and no later one.
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
    refit: bool = False
    notify: Callable[[str], None] | None = None
    on_plan: Callable[[list[Any]], None] | None = None
    progress: Listener | None = None

    def tell(self, *notes: str) -> None:
        """Pass on notes."""
        if self.notify is not None:
            for note in notes:
                self.notify(note)


@dataclass(frozen=True)
class Watching:
    """How the labels of later rows come, and what their columns are, for :func:`monitor_table`.

    Parameters
    ----------
    labeled : {"all", "alerts"}, default="all"
        Which rows get labels, sooner or later: all of them, independently of their score, or flagged ones and, with
        ``audit``, a sample of the others.
    audit : float, default=None
        Probability with which each row that is not flagged is sampled for a label; a floor on the true-positive rate
        requires it with ``labeled="alerts"``. Without it, an error says how large it must be.
    power : float, default=0.8
        Probability with which that audit has to notice, within ten batches, that twice as many positives are missed.
    threshold : float, default=0.0
        Rows with a score above it are flagged: 0 for the threshold of the model, or one that was proposed.
    id : str or sequence of str, default=()
        Columns that identify rows, which late labels require. () takes the identifiers of the fit.
    time : str, default=None
        Column of dates, by whose latest a batch is named.
    target : str, default=None
        Column of the labels. None takes the name that it had in the table of the fit.
    name : str, default=None
        Name of this batch. None takes its latest date, or its number if there are no dates.
    review : str or Path, default=None
        File of csv to write, with the rows of this batch to label: those that are flagged and, with an audit, those
        that were sampled.

    Examples
    --------
    >>> from rocmax.tables import Watching
    >>> Watching(labeled="alerts", audit=0.02, id="payment").power
    0.8
    """

    labeled: str = "all"
    audit: float | None = None
    power: float = 0.8
    threshold: float = 0.0
    id: str | Sequence[str] = ()
    time: str | None = None
    target: str | None = None
    name: str | None = None
    review: str | Path | None = None


Options = TypeVar("Options", Columns, Limits, Reading, Running, Watching)

# Parameters of the objects that are keywords of the functions, too.
PLAIN = ("target", "positive", "group", "max_fpr", "confidence")
# What the other parameters are written in, for messages.
HOLDERS = {f"cost_{each.name}": "limits=Limits" for each in fields(Costs)} | {
    field.name: f"{kind.__name__.lower()}={kind.__name__}"
    for kind in (Columns, Limits, Reading, Running)
    for field in fields(kind)
    if field.name not in PLAIN
}
# The same for the watch of a model, whose limits are those of the fit unless others are given.
WATCHED = HOLDERS | {
    each.name: f"{kind.__name__.lower()}={kind.__name__}" for kind in (Limits, Watching) for each in fields(kind)
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


def carried_columns(limits: Limits | None, costs: bool = True) -> dict[str, str]:
    """Return the columns on which thresholds depend, with the parameters that name them; with or without costs."""
    if limits is None:
        return {}
    found = {} if limits.column is None else {limits.column: "per"}
    if limits.costs is None or not costs:
        return found
    return found | {name: f"cost_{kind}" for kind, name in limits.costs.to_dict().items() if isinstance(name, str)}


# In which ways a column with a role may be declared as well.
SHARED = {"group": ("id", "drop"), "time": ("id", "drop", "date")}
MEASURES = tuple(window_measure_names())


def check_declared(columns: Columns) -> Columns:
    """Return columns with tuples of names; raise ParameterError if one is declared in two ways."""
    kinds = ("text", "number", "date", "drop", "id")
    found: dict[str, Any] = {kind: names_of(getattr(columns, kind)) for kind in kinds}
    owner: dict[str, str] = {}
    for key in ("target", "group", "time"):
        name = getattr(columns, key)
        if name in owner:
            raise ParameterError(Parameter(key), " must be another column than ", Parameter(owner[name]))
        if name is not None:
            owner[name] = key
    if columns.gap is not None:
        if columns.time is None:
            raise ParameterError(Parameter("gap"), " requires the time of each row: ", Parameter("time", ...))
        try:
            check_gap(columns.gap)
        except ValueError as error:
            raise ParameterError(Parameter("gap"), str(error).removeprefix("gap")) from None
    for key, names in found.items():
        for name in names:
            # A group or a time may also be carried to the output or dropped, and a time may give the month.
            if owner.get(name, key) != key and key not in SHARED.get(owner[name], ()):
                both = Parameter(owner[name]), " and ", Parameter(key)
                raise ParameterError(*both, f" must be different columns; got {name!r} for both")
            owner.setdefault(name, key)
    return replace(columns, **found)


def names_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def check_limits(limits: Limits) -> Limits:
    """Return limits with numbers and the name of a measure; raise ParameterError if they are invalid or incompatible.

    The default measure is the partial AUC with a limit, and the AUC without.
    """
    known = checked(limits)
    if known.block is not None and not known.limited:
        raise ParameterError(Parameter("block"), " requires a limit for review: ", Parameter("max_fpr", ...))
    return replace(known, measure=_check_measure(known))


def trained_for(limits: Limits, positive: Bools) -> Limits:
    """Return limits with the false-positive rate up to which models are trained and measured.

    A capacity and a floor on precision bound the rate by the share of positives: of the rows, at most the capacity can
    be false alarms, and with a precision ``p``, there are at most ``(1 - p) / p`` of them for each positive. With a
    floor on the true-positive rate, whose corner of the ROC curve could be out of reach, only ``max_fpr`` counts.
    """
    if limits.min_tpr > 0:
        return limits
    n_positive = int(np.count_nonzero(positive))
    n_negative = positive.size - n_positive
    bounds = [limits.window[1]]
    if limits.capacity is not None:
        bounds.append(limits.capacity * positive.size / n_negative)
    if limits.min_precision > 0:
        bounds.append((1 / limits.min_precision - 1) * n_positive / n_negative)
    # Up to a single negative, there is nothing to compare.
    least = 2 * limits.min_fpr or min(1.0, 5 / n_negative)
    return limits if len(bounds) == 1 else replace(limits, max_fpr=min(1.0, max(min(bounds), least)))


def _check_measure(limits: Limits) -> str:
    measure, (_, max_fpr) = limits.measure, limits.window
    if measure is None and limits.costs is not None and not limits.limited:
        return "average_precision"
    if measure is None:
        return "partial_auc" if limits.limited else "roc_auc"
    name = measure.removesuffix("_score") if isinstance(measure, str) else measure
    check_choice("measure", name, MEASURES)
    named, limit = Parameter("measure", name), Parameter("max_fpr", ...)
    if name == "tpr_at_fpr" and max_fpr == 1.0:
        raise ParameterError(named, " requires a limit: ", limit)
    return name


def check_running(running: Running, function: str, *others: str) -> None:
    """Raise ParameterError for an invalid number of threads, or if ``others``, which are not used, are set."""
    if running.threads is not None:
        needed = "a positive integer, or None to follow the size of the table"
        check_range("threads", running.threads, 1, math.inf, needed, integer=True)
    refuse(function, running, *others)


def check_watching(watching: Watching) -> None:
    """Raise ParameterError for a way of labeling that is not known, or a number that is none."""
    check_choice("labeled", watching.labeled, ("all", "alerts"))
    if watching.audit is not None:
        check_range("audit", watching.audit, 0.0, 1.0, "a probability above 0 and at most 1")
    check_range("power", watching.power, 0.0, 1.0, "a probability above 0 and below 1", open_ends=True)
    check_range("threshold", watching.threshold, -math.inf, math.inf, "a number", open_ends=True)


def refuse(function: str, options: Columns | Limits | Running, *names: str) -> None:
    """Raise ParameterError if options that a function does not use are set."""
    for name in names:
        value = getattr(options, name)
        if value != getattr(type(options), name):
            raise ParameterError(Parameter(name), f" must not be given: {function} does not use it; got {value!r}")


def check_seed(random_state: Any) -> None:
    """Raise ParameterError if a seed is not an integer that NumPy and scikit-learn accept."""
    needed = "an integer from 0 to 2**32 - 1, which is saved with the model"
    check_range("random_state", random_state, 0, 2**32 - 1, needed, integer=True)
