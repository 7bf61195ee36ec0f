"""Comparison of estimators on the same splits, and of models by name on one table."""

from __future__ import annotations

import functools
import inspect
import json
import math
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import joblib
import numpy as np
from joblib import Parallel, delayed
from joblib.hashing import NumpyHasher
from numpy.typing import NDArray
from scipy.stats import wilcoxon
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import has_fit_parameter

from rocmax._docstrings import publish
from rocmax._files import append_line, check_not_input, check_output, write_file
from rocmax._folds import cv_splitter, has_times, standard_error
from rocmax._support import Listener, Parameter, ParameterError, holding, need
from rocmax._threads import using_threads
from rocmax._validation import (
    check_choice,
    check_range,
    check_target,
    one_majority_warning,
    random_source,
    warn_if_majority,
)
from rocmax.data import DataError, Reading
from rocmax.forward import Dependence, time_text
from rocmax.metrics import make_scorer
from rocmax.metrics.scores import MeasureScorer
from rocmax.tables.columns import Column, date_notes
from rocmax.tables.evaluate import split_notes
from rocmax.tables.options import (
    HOLDERS,
    Columns,
    Limits,
    Running,
    check_limits,
    check_running,
    check_seed,
    chosen,
    refuse,
    window_measure,
)
from rocmax.tables.read import need_tables, read_training
from rocmax.tables.tune import MODELS, check_table, families_for, need_package, tuned_model

# Hash of the content of an object: the same in every process, different if any part of the content differs.


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_CODE = (types.FunctionType, types.MethodType, functools.partial, types.CodeType, type)


def content_key(value: Any) -> str:
    """Return a hash of the content of an object.

    The hash is that of joblib, which knows functions and classes by their names only. Here, it includes the version of
    their package. For functions and classes of a script, or of a package without a version, it includes their code and
    the functions and constants that the code uses. Mutable global variables, such as lists, are not included.
    """
    try:
        result: str = _ContentHasher("sha1").hash(value)
        return result
    except Exception as error:  # pickling an unknown object can raise any error
        raise TypeError(f"the content of a parameter cannot be identified across runs ({error})") from error


class _Part:
    """Mark of a value whose content is taken from `_ContentHasher` and not from its pickle."""


class _ContentHasher(NumpyHasher):  # type: ignore[misc]  # joblib has no types
    """Hash of joblib, with the code of functions and classes, and the order of dictionaries, which can matter."""

    def save(self, value: Any) -> None:
        """Add a value; joblib would see the order of an array in memory, and no masks and no code of methods."""
        if isinstance(value, types.MethodType):
            value = (types.MethodType, value.__func__, value.__self__)
        if isinstance(value, np.ma.MaskedArray):
            value = (np.ma.MaskedArray, value.data, np.ma.getmaskarray(value))
        elif isinstance(value, np.ndarray) and not value.flags.c_contiguous:
            value = value.copy(order="C")
        super().save(value)

    def memoize(self, value: Any) -> None:
        """Remember a value, so that cycles end; not a tuple, as equal tuples may or may not be one object."""
        if not isinstance(value, tuple):
            super().memoize(value)

    def reducer_override(self, value: Any) -> Any:
        """Return the name and the content of what joblib would not tell apart."""
        if value is _Part:
            return NotImplemented
        if type(value) is dict:
            return _Part, ("dict",), list(value.items())
        if type(value) in (set, frozenset):
            return _Part, (type(value).__name__, sorted(map(content_key, value)))
        if isinstance(value, types.CodeType):
            return _Part, (value.co_name, value.co_code, value.co_consts, value.co_names, value.co_varnames)
        if isinstance(value, types.ModuleType):
            return _Part, (value.__name__, _version(value.__name__))
        if isinstance(value, types.FunctionType | type):
            version = _version(value.__module__)
            name = (value.__module__, value.__qualname__, version)
            if version is not None:
                return _Part, name
            # The state comes after the name is remembered: a function can use itself.
            return _Part, name, _of_function(value) if isinstance(value, types.FunctionType) else _of_class(value)
        return NotImplemented


def _of_function(function: types.FunctionType) -> tuple[Any, ...]:
    names = sorted(set(_names(function.__code__)) & function.__globals__.keys())
    used = {name: function.__globals__[name] for name in names}
    used = {name: entry for name, entry in used.items() if isinstance(entry, (*_PLAIN, tuple, *_CODE))}
    cells = [_content(cell) for cell in function.__closure__ or ()]
    return function.__code__, function.__defaults__, function.__kwdefaults__, cells, used


def _of_class(kind: type) -> tuple[Any, ...]:
    members = [_function(entry) for _, entry in sorted(vars(kind).items())]
    return kind.__bases__, [entry for entry in members if isinstance(entry, _CODE)], _source(kind)


def _function(member: Any) -> Any:
    """Return the function that a member of a class wraps, or the member itself."""
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    return member.fget if isinstance(member, property) else member


def _source(kind: type) -> Any:
    """Return the source code of a class, or its plain attributes if there is no source code."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return {name: entry for name, entry in sorted(vars(kind).items()) if isinstance(entry, _PLAIN)}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty cell: a function that refers to itself while it is being defined
        return None


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals that a code object, or one nested in it, may use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


@functools.cache
def _version(module: str) -> str | None:
    """Return the version of the package of a module, or None if it has no version."""
    package = module.partition(".")[0]
    if package == "__main__":
        return None
    if package in sys.stdlib_module_names:
        return sys.version
    version = getattr(sys.modules.get(package), "__version__", None)
    return version if isinstance(version, str) else None


# Comparison of estimators on one data set.


Split = tuple[NDArray[np.intp], NDArray[np.intp]]

# Start of each line of a store.
_LINE_START = b'{"key": '


def compare(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    scoring: Any,
    param_grids: Mapping[str, Any] | None = None,
    n_splits: int = 10,
    test_size: float = 0.3,
    inner_cv: int = 3,
    groups: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """Compare estimators on the same repeated random splits.

    Every split uses the same test rows for all estimators. An estimator with a grid is tuned for the same measure by
    inner cross-validation on the training rows. For each estimator, the result has the mean score over the splits, its
    standard error, and the p-value of the paired Wilcoxon signed-rank test against the estimator with the best mean.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators to compare, by name.
    X, y
    scoring : str, Measure or callable
        A measure or its name, as in :func:`rocmax.metrics.make_scorer`; or a scorer, for example
        ``make_scorer("partial_auc", max_fpr=0.1, pos_label="fraud")``, for which higher is better. All estimators are
        scored for one positive class: the ``pos_label`` of the scorer or of the estimators that have one. Different
        labels are an error.
    param_grids : dict of str to dict, default=None
        Parameter grids by name, as in ``GridSearchCV``. An estimator without a grid is not tuned.
    n_splits : int, default=10
        Number of random splits, stratified by class (or by group, if there are groups).
    test_size : float, default=0.3
        Fraction of the rows in each test set.
    inner_cv : int, default=3
        Number of folds of the inner cross-validation.
    groups : array-like of shape (n_samples,), default=None
        Group of each row. A group is never in both the training and the test rows of a split. The groups of the
        training rows are passed to an estimator without a grid if its ``fit`` accepts ``groups``.
    random_state
    n_jobs : int, default=None
        Number of fits that run in parallel, as in joblib: None means 1, -1 all processors.
    store : str or Path, default=None
        File of results, with one line for each fit. Fits whose results are in the file are skipped, so that an
        interrupted comparison can be resumed. Results of other data or settings in the file are ignored. A result is
        identified by the data, the split, all parameters of the estimator, its grid, the scorer and the versions of
        their packages; functions and classes of a script are identified by their code.
    progress : callable, default=None
        Called with 1 after each fit.

    Returns
    -------
    pandas.DataFrame
        Indexed by name, best mean first: ``mean``, ``standard_error``, ``p_value`` (NaN for the best),
        ``seconds`` (mean time of a fit, including tuning) and ``scores`` (list, one per split).

    Notes
    -----
    The test sets of different splits overlap, so the p-values are smaller than those of independent samples: use them
    as a ranking only. :func:`rocmax.metrics.delong_test` compares two models on one test set.

    References
    ----------
    J. Demsar (2006). Statistical comparisons of classifiers over multiple data sets. JMLR 7, 1-30.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from rocmax import AUCClassifier, compare
    >>> X, y = make_classification(n_samples=300, random_state=0)
    >>> models = {"auc": AUCClassifier(), "logistic": LogisticRegression()}
    >>> table = compare(models, X, y, scoring="roc_auc", n_splits=3)
    >>> sorted(table.index), list(table.columns)
    (['auc', 'logistic'], ['mean', 'standard_error', 'p_value', 'seconds', 'scores'])
    """
    need("pandas")
    if not estimators:
        raise ValueError("estimators must have at least one entry; got none")
    unknown = set(param_grids or {}) - set(estimators)
    if unknown:
        raise ValueError(f"the names in param_grids must be names of estimators; got {sorted(unknown)}")
    scoring = scoring if callable(scoring) else make_scorer(scoring)
    X, y = indexable(X, y)
    y = np.asarray(y)
    ours = isinstance(scoring, MeasureScorer)
    if ours:
        scoring = scoring.for_estimators(estimators.values())
    splits = list(_splits(y, groups, n_splits, test_size, random_state))
    tasks = [
        _Task(name, estimator, (param_grids or {}).get(name), number, split, scoring, inner_cv)
        for number, split in enumerate(splits)
        for name, estimator in estimators.items()
    ]
    with one_majority_warning(scoring.pos_label if ours else None):
        if ours and scoring.pos_label is None:
            labels, classes, index = check_target(y, None)
            warn_if_majority("compare", classes, *np.bincount(labels == classes[index], minlength=2))
        return _table(list(estimators), _run(tasks, X, y, groups, n_jobs, store, progress), n_splits)


class _Task(NamedTuple):
    """One estimator on one split."""

    name: str
    estimator: Any
    grid: Any
    number: int
    split: Split
    scoring: Any
    inner_cv: int

    def key(self, data: str) -> str:
        """Return the key of the result; ``data`` is the hash of rows, classes and groups."""
        # The clone is the estimator that is fitted.
        settings = (clone(self.estimator), self.grid, self.scoring, self.inner_cv, self.split)
        try:
            return content_key((data, settings))
        except TypeError as error:
            raise TypeError(f"{self.name!r} cannot be saved in a store: {error}. Use store=None") from error

    def run(self, X: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> tuple[float, float]:
        """Fit, with tuning if there is a grid; return the score on the test rows and the time in seconds."""
        train, test = self.split
        rows, labels = _safe_indexing(X, train), y[train]
        start = perf_counter()
        if self.grid is None:
            known = {} if groups is None else {"groups": groups[train]}
            takes_groups = has_fit_parameter(self.estimator, "groups")
            model = clone(self.estimator).fit(rows, labels, **(known if takes_groups else {}))
        else:
            own = None if groups is None else groups[train]
            folds = cv_splitter(self.inner_cv, labels, own)
            model = GridSearchCV(self.estimator, self.grid, scoring=self.scoring, cv=folds)
            model.fit(rows, labels, groups=own)
        seconds = perf_counter() - start
        best = getattr(model, "best_estimator_", model)
        return float(self.scoring(best, _safe_indexing(X, test), y[test])), seconds


def _splits(y: NDArray[Any], groups: Any, n_splits: int, test_size: float, random_state: Any) -> Iterator[Split]:
    if has_times(groups):
        yield from _forward_splits(y, groups, n_splits)
        return
    seed = random_source(random_state)
    if groups is None:
        yield from StratifiedShuffleSplit(n_splits, test_size=test_size, random_state=seed).split(y, y)
        return
    for train, test in GroupShuffleSplit(n_splits, test_size=test_size, random_state=seed).split(y, y, groups):
        if np.unique(y[train]).size < 2 or np.unique(y[test]).size < 2:
            raise ValueError("each split by groups must have both classes; got one class only (too few groups)")
        yield train, test


def _forward_splits(y: NDArray[Any], depends: Dependence, n_splits: int) -> list[Split]:
    """Return splits that test on consecutive periods of the later half of the rows, and train on what is before."""
    try:
        splits = depends.forward(n_splits, 0.5 / n_splits)
    except ValueError as error:
        raise DataError(str(error)) from None
    for number, parts in enumerate(splits, 1):
        for name, rows in zip(("training", "test"), parts, strict=True):
            if np.unique(y[rows]).size < 2:
                got = f"{y[rows].tolist()[0]!r} only, in {rows.size} rows" if rows.size else "no rows"
                few = Parameter("n_splits"), ", a shorter ", Parameter("gap")
                start = f"the {name} rows of split {number} of {n_splits} must have both classes; got {got}"
                raise DataError(f"{start}. Use fewer ", *few, " or more rows")
    return splits


def _forward_notes(y: NDArray[Any], depends: Dependence, n_splits: int) -> list[str]:
    """Return notes about splits forward in time: their periods, and how many earlier rows train no model."""
    splits, times = _forward_splits(y, depends, n_splits), depends.times
    assert times is not None
    starts = [times[test].min() for _, test in splits]
    notes = [
        f"each split tests on one of {n_splits} periods from {time_text(starts[0])} on, and trains on the rows before; "
        "periods differ and training rows overlap, so that the p-values are a ranking only"
    ]
    dropped = [int((times < start).sum()) - train.size for start, (train, _) in zip(starts, splits, strict=True)]
    if any(dropped):
        size = f"{min(dropped):,} to {max(dropped):,} earlier rows of a split are left out"
        notes.append(f"{size}: their labels were not known when its test rows begin, or their groups are among these")
    return notes


def _run(
    tasks: list[_Task],
    X: Any,
    y: NDArray[Any],
    groups: Any,
    n_jobs: int | None,
    store: str | Path | None,
    progress: Callable[[int], None] | None,
) -> list[tuple[float, float]]:
    """Return the score and the seconds of each task; those whose results are in the store are not run."""
    groups = groups if groups is None or has_times(groups) else np.asarray(groups)
    known: dict[str, tuple[float, float]] = {}
    keys: list[str] = []
    if store is not None:
        known, data = read_store(store), joblib.hash((X, y, groups))
        keys = [task.key(data) for task in tasks]
    # Results of this run are indexed by task: two estimators with the same key are fitted separately.
    done = {i: known[key] for i, key in enumerate(keys) if key in known}
    todo = [i for i in range(len(tasks)) if i not in done]
    advance = progress or (lambda count: None)
    advance(len(tasks) - len(todo))
    jobs = (delayed(tasks[i].run)(X, y, groups) for i in todo)
    for i, (score, seconds) in zip(todo, Parallel(n_jobs=n_jobs, return_as="generator")(jobs), strict=True):
        done[i] = (score, seconds)
        if store is not None:
            line = {"key": keys[i], "model": tasks[i].name, "split": tasks[i].number, "score": score}
            append_line(store, json.dumps({**line, "seconds": seconds}))
        advance(1)
    return [done[i] for i in range(len(tasks))]


def read_store(store: str | Path) -> dict[str, tuple[float, float]]:
    """Return the results in a store; empty if the file does not exist."""
    path = Path(store)
    check_output(path)
    if not path.exists():
        return {}
    if not path.is_file():
        raise ValueError(f"the file of results must be a regular file; got {path}")
    known = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.startswith(_LINE_START) and not _LINE_START.startswith(line.rstrip()):
                raise ValueError(
                    f"the file of results must be new or written by compare; got {path}, whose line {number} is "
                    "not a result"
                )
            try:
                entry = json.loads(line)
                known[entry["key"]] = (entry["score"], entry["seconds"])
            except (ValueError, KeyError, TypeError):
                continue  # incomplete line of a run that was killed; the fit is repeated
    return known


def _table(names: list[str], results: list[tuple[float, float]], n_splits: int) -> Any:
    by_split = np.array(results).reshape(n_splits, len(names), 2)
    scores = {name: by_split[:, i, 0] for i, name in enumerate(names)}
    best = max(names, key=lambda name: scores[name].mean())
    rows = {
        name: {
            "mean": scores[name].mean(),
            "standard_error": standard_error(scores[name]) if n_splits > 1 else np.nan,
            "p_value": np.nan if name == best else _wilcoxon(scores[best] - scores[name]),
            "seconds": float(by_split[:, i, 1].mean()),
            "scores": scores[name].tolist(),
        }
        for i, name in enumerate(names)
    }
    table = need("pandas").DataFrame.from_dict(rows, orient="index")
    return table.sort_values("mean", ascending=False, kind="stable")


def _wilcoxon(differences: NDArray[np.float64]) -> float:
    # With zeros, which the test drops, SciPy before 1.15 uses the normal approximation even for a few splits.
    differences = differences[differences != 0]
    if differences.size == 0:
        return 1.0
    return float(wilcoxon(differences).pvalue)


publish("rocmax", globals(), ("compare",))


# Comparison of models, given by name, on one table.


@dataclass(frozen=True)
class ModelComparison:
    """Result of models on the same splits of a table, which are random or, with times, forward in time.

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
    time : str or None
        Column by which the splits go forward in time; None for random splits.
    """

    table: Any
    measure: str
    positive: str
    notes: list[str]
    columns: list[Column] = field(default_factory=list)
    title: str = ""
    time: str | None = None

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


@holding(HOLDERS)
def compare_models(
    table: Any,
    *,
    models: Sequence[str] | None = None,
    target: str | None = None,
    positive: Any = None,
    group: str | None = None,
    max_fpr: float | None = None,
    columns: Columns | None = None,
    limits: Limits | None = None,
    reading: Reading | None = None,
    tune: bool = True,
    n_splits: int = 10,
    store: str | Path | None = None,
    random_state: int = 0,
    running: Running | None = None,
) -> ModelComparison:
    """Compare models on the same splits of a table, each fitted as :func:`fit_table` would fit it.

    Every model is tuned on the training rows of each split, in up to ten folds, so a comparison takes about
    ``n_splits`` times as long as single fits. The command ``rocmax compare`` calls this function.

    The splits are random. With the time of each row, ``Columns(time=...)``, they go forward in time: the later half of
    the rows is divided into ``n_splits`` periods, and each split tests on one of them and trains on the rows before.

    Parameters
    ----------
    table
    models : sequence of str, default=None
        Names, as in :func:`fit_table`. None takes the families of ``model="auto"`` and "logistic", except those that
        the table or the installed packages do not allow. "auto" is slow, because it compares the families on the
        training rows of each split.
    target, positive, group
    max_fpr : float, default=None
        Limit on the false-positive rate; None or 1 for no limit.
    columns : Columns, default=None
        What the columns are, where the table does not show it: categories, numbers, dates, identifiers, and columns to
        leave out. It may have the target, the positive class and the groups, too.
    limits : Limits, default=None
        What to train for: a measure, a required true-positive rate, a window of false-positive rates. It may have the
        limits that are keywords, too. No threshold is chosen, so that ``confidence`` and ``rate`` are errors.
    reading
    tune : bool, default=True
        Whether to tune each model by cross-validation on its training rows.
    n_splits : int, default=10
        Number of splits. Each test set has 30 % of the rows; with times, it is one period.
    store : str, Path, default=None
        A file of results, to go on after a stop, as in :func:`rocmax.compare`.
    random_state : int, default=0
        Seed of all random draws.
    running

    Returns
    -------
    ModelComparison
        Result of the comparison.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.tables import compare_models
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> found = compare_models(
    ...     table, models=["auc", "logistic"], target="target", positive=0, n_splits=2, tune=False
    ... )
    >>> sorted(found.table.index), found.measure
    (['auc', 'logistic'], 'roc_auc')
    """
    columns = chosen(Columns, columns, target=target, positive=positive, group=group)
    given, running = chosen(Limits, limits, max_fpr=max_fpr), chosen(Running, running)
    refuse("compare_models", given, "confidence", "rate", "min_precision", "capacity", "per", "block", "costs")
    limits = check_limits(given)
    check_running(running, "compare_models", "dask", "refit")
    names = _check(models, n_splits, running.n_jobs, random_state, store, table)
    training = read_training(table, columns, chosen(Reading, reading))
    if running.on_plan is not None:
        running.on_plan(training.schema.columns)
    families, left_out = families_for(training.kinds, training.X.shape[0])
    if models is None:
        names = [*families, "logistic"]
    compared = models is None or ("auto" in names and tune)
    notes = [*training.notes, *(left_out if compared else ()), *split_notes(n_splits), *date_notes(training.dated)]
    depends = training.depends
    if isinstance(depends, Dependence):
        notes += _forward_notes(training.target.labels, depends, n_splits)
    for name in names:
        check_table(name, training.kinds)
    running.tell(*notes)
    side, measure = training.target.positive, window_measure(limits)
    shared: dict[str, Any] = {"kinds": training.kinds, "limits": limits, "positive": side, "tune": tune}
    with using_threads(running.threads):
        found = compare(
            {name: tuned_model(name, **shared, seed=random_state) for name in names},
            training.X,
            training.target.labels,
            scoring=make_scorer(measure, pos_label=side),
            n_splits=n_splits,
            groups=depends,
            random_state=random_state,
            n_jobs=running.n_jobs,
            store=store,
            progress=None if running.progress is None else _counting(running.progress, len(names) * n_splits),
        )
    return ModelComparison(found, measure.name, side, notes, training.schema.columns, measure.title, columns.time)


def _counting(progress: Listener, total: int) -> Callable[[int], None]:
    """Return a function that counts fits for a listener."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("fits", done, total)

    return advance


def _check(
    models: Sequence[str] | None, n_splits: Any, n_jobs: Any, random_state: Any, store: Any, table: Any
) -> list[str]:
    """Return the names of the models; raise an error for invalid parameters before the table is read."""
    names = [models] if isinstance(models, str) else list(models or [])
    for name in names if names or models is None else [""]:
        check_choice("models", name, MODELS)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(Parameter("models"), f" must be distinct names; got {twice[0]!r} more than once")
    check_range("n_splits", n_splits, 2, math.inf, "an integer of at least 2", integer=True)
    if n_jobs == 0:
        raise ParameterError(Parameter("n_jobs"), " must be a positive integer, or -1 for all processors; got 0")
    check_seed(random_state)
    need_tables()
    for name in names:
        need_package(name)
    if store is not None:
        if isinstance(table, str | Path):
            check_not_input(store, [table])
        read_store(store)  # raises an error for any other file
    return names
