"""Fit of a linear model or of boosted trees to parquet files on the workers of a dask cluster."""

from __future__ import annotations

import glob
import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from rocmax._support import Index, Parameter, ParameterError, need, stage
from rocmax.dask import DaskAUCClassifier, DaskBoostedClassifier, DaskPartialAUCClassifier
from rocmax.data import DataError, Reading
from rocmax.tables.evaluate import row_notes
from rocmax.tables.fit import FitSettings, Fitted, Parts, check_enough, evaluated, with_threshold
from rocmax.tables.model import TableModel
from rocmax.tables.options import Columns, Running
from rocmax.tables.preprocess import common_levels, text_places
from rocmax.tables.read import Schema, Training, known_labels, read_training
from rocmax.tables.tune import make_preprocessing

# Parquet files that the workers of a cluster read: which they are, and whether they belong together.


_ENDINGS = (".parquet", ".pq")


def cluster_table(files: Any) -> Any:
    """Return parquet files as a dask DataFrame.

    Raises DataError if a file does not exist, or if it has other columns than the first one, or other types.
    """
    need("dask")
    given = files if isinstance(files, list | tuple) else [files]
    # The two slashes of an address become one in a Path.
    names = [re.sub(r"^(\w{2,}):/(?!/)", r"\1://", str(name)) for name in given]
    for name in names:
        if not name.endswith(_ENDINGS):
            raise ParameterError(Parameter("dask"), f" requires parquet files; got {name}")
    _check_columns([path for name in names for path in _found(name)])
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


def _check_columns(paths: list[str]) -> None:
    """Raise DataError if a file has other columns than the first one, or columns of other types."""
    pa, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    first = None
    for path in paths:
        try:
            with importlib.import_module("fsspec").open(path, "rb") as file:
                schema = parquet.read_schema(file)
            first = schema if first is None else first
            if set(schema.names) != set(first.names):
                other = sorted(set(schema.names) ^ set(first.names))
                raise DataError(f"{path} must have the columns of {paths[0]}; the difference is {other[:5]}")
            first = pa.unify_schemas([first, schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise DataError(f"{path} must have columns of the types of those of {paths[0]}; {error}") from error
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{path} cannot be read: {type(error).__name__}: {error}") from error


# Fit to parquet files on the workers of a dask cluster.


# Rows of each kind, training and held-out, that are fetched.
FETCHED = 100_000
# Parameters of boosted trees without a search.
UNTUNED: dict[str, Any] = {"objective": "binary", "max_leaf_nodes": 31, "n_estimators": 100}
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
    """Fit a model on the workers of a cluster, with the threshold and the evaluation from fetched rows."""
    target = _check(settings, columns)
    family = "linear" if settings.model == "auto" else settings.model
    if family == "boosted":
        need("xgboost")
    with _client(running.dask) as client:
        stage("reading samples on the cluster")
        read = _read(client, files, settings, columns, reading)
        training, test = read.training, read.test
        if running.on_plan is not None:
            running.on_plan(training.schema.columns)
        notes = [*training.notes, *([_NOT_TUNED] if settings.tune and family == "linear" else [])]
        notes += row_notes(training.target.is_positive[test], settings.limits)
        running.tell(*notes)
        check_enough(training.target.is_positive[test], settings)
        start = perf_counter()
        stage("fitting on the cluster")
        pipeline = _fit(client, read, settings, target, family)
    model, scores = with_threshold(pipeline, training, settings, test)
    fitted = Fitted(model, scores, Parts(np.arange(test[0]), test, test), None, perf_counter() - start, family, None)
    return evaluated(training, settings, fitted, notes, running.tell, read.classes)


class _Read(NamedTuple):
    """Training rows on the cluster, fetched rows with those that are held out, and the sizes of the classes."""

    train: Any
    training: Training
    test: Index
    classes: dict[str, int]


def _read(client: Any, files: Any, settings: FitSettings, columns: Columns, reading: Reading) -> _Read:
    """Divide the rows, and fetch samples of training rows and of held-out rows."""
    table = cluster_table(files)
    skip = bool(reading.skip_unlabeled)
    counts = _label_counts(client, table, columns.target, skip)
    if skip:
        table = table.dropna(subset=[columns.target])
    train, sample, held = _split(client, table, settings, int(counts.sum()))
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
        raise ParameterError(Parameter("dask"), " requires ", Parameter("target", ...))
    if settings.model not in ("auto", "linear", "boosted"):
        wanted = Parameter("model"), " must be auto, linear or boosted with ", Parameter("dask")
        raise ParameterError(*wanted, f"; got {settings.model}")
    for name in ("group", "time", "min_precision", "capacity", "per", "block", "costs"):
        if getattr(columns if name in ("group", "time") else settings.limits, name):
            raise ParameterError(Parameter(name), " is not possible with ", Parameter("dask"))
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
        try:
            client.wait_for_workers(1, timeout=60)
        except TimeoutError as error:
            raise OSError(f"the scheduler {scheduler} must have workers; got none for 60 s") from error
        yield client


def _check_address(scheduler: Any, comm: Any) -> None:
    """Raise ValueError for a bad address: a client of one writes a traceback when it is deleted."""
    if isinstance(scheduler, str) and comm.parse_address(scheduler)[0] not in ("inproc", "ucx"):
        comm.get_address_host_port(scheduler)


def _label_counts(client: Any, table: Any, target: Any, skip_unlabeled: bool) -> Any:
    """Return the number of rows of each label; raise DataError if labels are missing and not to be skipped."""
    if target not in table.columns:
        raise DataError(f"the files have no column {target!r}; their columns are {', '.join(map(repr, table.columns))}")
    counts = client.compute(table[target].value_counts(dropna=False), sync=True)
    missing = counts.index.isna()
    if missing.any() and not skip_unlabeled:
        parts = table[[target]].to_delayed()
        sums = client.gather(client.compute([need("dask").delayed(_count_missing)(part) for part in parts]))
        first = int(np.flatnonzero(sums)[0])
        skip = Parameter("skip_unlabeled", True)
        found = f"partition {first} must have a label in each row of column {target!r}; got {int(sums[first])} missing"
        raise DataError(found, "; to leave such rows out: ", skip)
    return counts[~missing]


def _split(client: Any, table: Any, settings: FitSettings, n_rows: int) -> tuple[Any, Any, Any]:
    """Return the training rows, a sample of them, and the held-out rows."""
    share = min(settings.most_held_out, FETCHED / max(n_rows, 1))
    train, held = table.random_split([1 - share, share], random_state=settings.seed)
    rest = max(n_rows * (1 - share), 1.0)
    sample = train.sample(frac=min(1.0, FETCHED / rest), random_state=settings.seed)
    return train, *client.gather(client.compute([sample, held]))


def _fit(client: Any, read: _Read, settings: FitSettings, target: str, family: str) -> Pipeline:
    """Fit the preprocessing on the sample, and the classifier on all training rows."""
    train, training = read.train, read.training
    sample = training.X.iloc[: read.test[0]]
    table = make_preprocessing(family, training.kinds, common_levels(sample, training.kinds)).fit(sample)
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
    model, options = _model(family, settings, training)
    with client.as_current():
        return Pipeline([("table", table), ("model", model.fit(X, y, **options).to_local())])


def _model(family: str, settings: FitSettings, training: Training) -> tuple[Any, dict[str, Any]]:
    """Return the estimator for a cluster, and the options of its fit."""
    positive, limits = training.target.positive, settings.limits
    low, high = limits.window
    window: dict[str, Any] = {"min_fpr": low, "max_fpr": high, "min_tpr": limits.min_tpr, "pos_label": positive}
    if family == "boosted":
        untuned = {} if settings.tune else UNTUNED
        places = text_places(training.kinds) or None
        return DaskBoostedClassifier(**window, **untuned, categorical_features=places, random_state=settings.seed), {}
    if limits.limited:
        return DaskPartialAUCClassifier(**window), {"standardize": False}
    return DaskAUCClassifier(pos_label=positive), {"standardize": False}


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
