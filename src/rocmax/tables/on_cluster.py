"""Fit of a linear model to parquet files on the workers of a dask cluster."""

from __future__ import annotations

import glob
import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from rocmax._support import Index, Message, Parameter, ParameterError, need, stage
from rocmax.dask import DaskAUCClassifier, DaskPartialAUCClassifier
from rocmax.dask.cluster import Tasks
from rocmax.data import DataError, Reading
from rocmax.tables.evaluate import row_notes
from rocmax.tables.fit import FitSettings, Fitted, check_enough, evaluated, with_threshold
from rocmax.tables.model import TableModel
from rocmax.tables.options import Columns, Running
from rocmax.tables.preprocess import common_levels
from rocmax.tables.read import Schema, Training, known_labels, read_training
from rocmax.tables.tune import make_preprocessing

# Parquet files that the workers of a cluster read: which they are, and whether they belong together.


_ENDINGS = (".parquet", ".pq")


class _Schema(NamedTuple):
    """A file, and the kind of each of its columns; None if a column has no values."""

    path: str
    kinds: dict[str, str | None]


def cluster_table(tasks: Tasks, files: Any) -> Any:
    """Return parquet files as a dask DataFrame.

    Raises DataError if a file does not exist, or if it has other columns than the first one, or other kinds of values.
    """
    need("dask")
    given = files if isinstance(files, list | tuple) else [files]
    # The two slashes of an address become one in a Path.
    names = [re.sub(r"^(\w{2,}):/(?!/)", r"\1://", str(name)) for name in given]
    for name in names:
        if not name.endswith(_ENDINGS):
            raise ParameterError(Message(Parameter("dask"), f" requires parquet files; got {name}"))
    tasks.reduce(_schema, _common, [path for name in names for path in _found(name)])
    return importlib.import_module("dask.dataframe").read_parquet(names)


def _found(name: str) -> list[str]:
    """Return the files of a name, a pattern or a directory with the name of a file, as dask writes them."""
    system, path = importlib.import_module("fsspec.core").url_to_fs(name)
    if system.isfile(path):
        return [name]
    if not system.exists(path) and not glob.has_magic(path):
        raise DataError(f"{name} does not exist")
    roots = [path] if system.isdir(path) else system.glob(path)
    found = sorted(each for root in roots for each in system.find(root) if each.endswith(_ENDINGS))
    if not found:
        raise DataError(f"no file matches {name!r}")
    return [system.unstrip_protocol(each) if "://" in name else each for each in found]


def _schema(path: str) -> _Schema:
    parquet = importlib.import_module("pyarrow.parquet")
    try:
        with importlib.import_module("fsspec").open(path, "rb") as file:
            schema = parquet.read_schema(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    return _Schema(path, {field.name: _kind(field.type) for field in schema})


def _kind(of: Any) -> str | None:
    types = importlib.import_module("pyarrow").types
    if types.is_dictionary(of):
        return _kind(of.value_type)
    if types.is_null(of):
        return None
    if types.is_integer(of) or types.is_floating(of) or types.is_decimal(of):
        return "numbers"
    if types.is_temporal(of):
        return "dates"
    return "text" if types.is_string(of) or types.is_large_string(of) or types.is_string_view(of) else str(of)


def _common(schemas: list[_Schema]) -> _Schema:
    return reduce(_pair, schemas)


def _pair(first: _Schema, other: _Schema) -> _Schema:
    """Return the kinds of the columns of two files, or raise an error that names the second one."""
    lacking = [name for name in first.kinds if name not in other.kinds]
    extra = [name for name in other.kinds if name not in first.kinds]
    if lacking or extra:
        found = f"no column {lacking[0]!r}" if lacking else f"the column {extra[0]!r}"
        raise DataError(f"{other.path} must have the columns of {first.path}; got {found}")
    for name, kind in first.kinds.items():
        got = other.kinds[name]
        if kind != got and None not in (kind, got):
            raise DataError(f"column {name!r} of {other.path} must have {kind}, as in {first.path}; got {got}")
    return _Schema(first.path, {name: kind or other.kinds[name] for name, kind in first.kinds.items()})


# Fit of a linear model to parquet files on the workers of a dask cluster.


# Rows of each kind, training and held-out, that are fetched.
FETCHED = 100_000
_NOT_TUNED = "not tuned: on a cluster, the linear model is fitted with its defaults"


class _Prepared(NamedTuple):
    """What a worker needs to prepare a partition: the preprocessing, and how to read the columns and the labels.

    ``none`` are the features of a partition without rows, which the preprocessing does not take.
    """

    schema: Schema
    table: Any
    target: str
    classes: tuple[str, str]
    none: Any


def fit_on_cluster(
    files: Any, settings: FitSettings, columns: Columns, reading: Reading, running: Running
) -> TableModel:
    """Fit a linear model on the workers of a cluster, with the threshold and the evaluation from fetched rows."""
    target = _check(settings, columns)
    with _client(running.dask) as client:
        stage("reading samples on the cluster")
        read = _read(client, files, settings, columns, reading)
        training, test = read.training, read.test
        if running.on_plan is not None:
            running.on_plan(training.schema.columns)
        notes = [*training.notes, *([_NOT_TUNED] if settings.tune else [])]
        notes += row_notes(training.target.is_positive[test], settings.limits)
        for note in notes:
            running.tell(note)
        check_enough(training.target.is_positive[test], settings)
        start = perf_counter()
        stage("fitting on the cluster")
        pipeline = _fit(client, read, settings, target)
    model = with_threshold(pipeline, training, settings, test)
    fitted = Fitted(model, test, None, perf_counter() - start, "linear", None)
    return evaluated(training, settings, fitted, notes, running.tell, read.classes)


class _Read(NamedTuple):
    """Training rows on the cluster, fetched rows with those that are held out, and the sizes of the classes."""

    train: Any
    training: Training
    test: Index
    classes: dict[str, int]


def _read(client: Any, files: Any, settings: FitSettings, columns: Columns, reading: Reading) -> _Read:
    """Divide the rows, and fetch samples of training rows and of held-out rows."""
    tasks = Tasks(client=client)
    table = cluster_table(tasks, files)
    skip = bool(reading.skip_unlabeled)
    counts = _label_counts(tasks, table, columns.target, skip)
    if skip:
        table = table.dropna(subset=[columns.target])
    train, sample, held = _split(tasks, table, settings, int(counts.sum()))
    training = read_training(need("pandas").concat([sample, held], ignore_index=True), columns, reading)
    target, test = training.target, np.arange(len(sample), len(sample) + len(held))
    # Also raises an error for labels that the samples do not have.
    labels = known_labels(counts.index.to_numpy(), target.positive, target.negative)
    sizes = counts.to_numpy()
    names = ("positive", target.positive), ("negative", target.negative)
    classes = {name: int(sizes[labels == label].sum()) for name, label in names}
    if len(set(target.labels[test].tolist())) < 2:
        raise DataError(f"the {test.size} held-out rows must have both classes; got one. Hold out more rows")
    return _Read(train, training, test, classes)


def _check(settings: FitSettings, columns: Columns) -> str:
    """Return the target; raise ParameterError for what is not possible on a cluster."""
    if columns.target is None:
        raise ParameterError(Message(Parameter("dask"), " requires ", Parameter("target", ...)))
    if settings.model not in ("auto", "linear"):
        wanted = Parameter("model"), " must be auto or linear with ", Parameter("dask")
        raise ParameterError(Message(*wanted, f"; got {settings.model}"))
    if columns.group is not None:
        raise ParameterError(Message(Parameter("group"), " is not possible with ", Parameter("dask")))
    return columns.target


@contextmanager
def _client(scheduler: Any) -> Iterator[Any]:
    distributed = need("distributed")
    if isinstance(scheduler, distributed.Client):
        yield scheduler
        return
    try:
        _check_address(scheduler, distributed.comm)
        client = distributed.Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise OSError(f"the scheduler {scheduler} must be reachable; {error}") from error
    with client:
        yield client


def _check_address(scheduler: Any, comm: Any) -> None:
    """Raise ValueError for a bad address: a client of one writes a traceback when it is deleted."""
    if isinstance(scheduler, str) and comm.parse_address(scheduler)[0] not in ("inproc", "ucx"):
        comm.get_address_host_port(scheduler)


def _label_counts(tasks: Tasks, table: Any, target: Any, skip_unlabeled: bool) -> Any:
    """Return the number of rows of each label; raise DataError if labels are missing and not to be skipped."""
    if target not in table.columns:
        raise DataError(f"the files have no column {target!r}; their columns are {', '.join(map(repr, table.columns))}")
    (counts,) = _computed(tasks, table, table[target].value_counts(dropna=False))
    missing = counts.index.isna()
    if missing.any() and not skip_unlabeled:
        parts = table[[target]].to_delayed()
        sums = _computed(tasks, table, *(need("dask").delayed(_count_missing)(part) for part in parts))
        first = int(np.flatnonzero(sums)[0])
        skip = Parameter("skip_unlabeled", True)
        found = f"partition {first} must have a label in each row of column {target!r}; got {int(sums[first])} missing"
        raise DataError(Message(found, "; to leave such rows out: ", skip))
    return counts[~missing]


def _split(tasks: Tasks, table: Any, settings: FitSettings, n_rows: int) -> tuple[Any, Any, Any]:
    """Return the training rows, a sample of them, and the held-out rows."""
    share = min(settings.test_size, FETCHED / max(n_rows, 1))
    train, held = table.random_split([1 - share, share], random_state=settings.seed)
    rest = max(n_rows * (1 - share), 1.0)
    sample = train.sample(frac=min(1.0, FETCHED / rest), random_state=settings.seed)
    return train, *_computed(tasks, table, sample, held)


def _computed(tasks: Tasks, table: Any, *collections: Any) -> Any:
    """Return the values of collections; if this fails, raise an error that names the first bad partition."""
    return tasks.compute(collections, table.to_delayed())


def _fit(client: Any, read: _Read, settings: FitSettings, target: str) -> Pipeline:
    """Fit the preprocessing on the sample, and the classifier on all training rows."""
    train, training = read.train, read.training
    sample = training.X.iloc[: read.test[0]]
    table = make_preprocessing("linear", training.kinds, common_levels(sample, training.kinds)).fit(sample)
    classes = training.target.positive, training.target.negative
    example = table.transform(sample.iloc[:1])
    prepared = need("dask").delayed(_Prepared(training.schema, table, target, classes, example[:0]), pure=True)
    arrays = importlib.import_module("dask.array")
    rows, labels = [], []
    for number, part in enumerate(train.to_delayed()):
        both = need("dask").delayed(_prepare, nout=2)(number, part, prepared)
        rows.append(arrays.from_delayed(both[0], (np.nan, example.shape[1]), example.dtype))
        labels.append(arrays.from_delayed(both[1], (np.nan,), object))
    X, y = (arrays.concatenate(parts, allow_unknown_chunksizes=True) for parts in (rows, labels))
    common: dict[str, Any] = {"client": client, "standardize": False}
    common["pos_label"] = training.target.positive
    limits = settings.limits
    if limits.limited:
        model: Any = DaskPartialAUCClassifier(*limits.window, min_tpr=limits.min_tpr, **common)
    else:
        model = DaskAUCClassifier(**common)
    return Pipeline([("table", table), ("model", model.fit(X, y).to_local())])


def _prepare(number: int, frame: Any, prepared: _Prepared) -> tuple[Any, Any]:
    """Return the features and the labels of a partition."""
    if not len(frame):
        return prepared.none, np.empty(0, dtype=object)
    schema = prepared.schema
    source = schema.open(frame, Reading())
    try:
        X, y = source.read(target=prepared.target, **schema.read_options("the model", source))
        labels = known_labels(y, *prepared.classes)
    except DataError as error:
        raise DataError(f"partition {number}: {error}") from error
    return prepared.table.transform(schema.features_of(X)), labels


def _count_missing(frame: Any) -> int:
    return int(frame.isna().to_numpy().sum())
