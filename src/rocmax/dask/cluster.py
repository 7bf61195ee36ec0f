"""Rows of dask collections on the workers of a cluster, and the calls to them; lost ones are made again.

A shard belongs to the partitions that it was made of, which are results of dask tasks. The worker drops it with them:
when the driver releases the partitions, and when the scheduler notices that the driver is gone.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import ThreadpoolController

from rocmax._support import need
from rocmax._validation import canonical_csr, missing_values
from rocmax.data import DataError
from rocmax.data.store import MemoryRows, check_weights, checksum
from rocmax.sharded.shard import Partition, Recipe, Shard


@dataclass(frozen=True)
class ClusterRules:
    """Numbers of calls to a cluster, each with its meaning."""

    # Seconds between two checks whether the workers of a pending call are still there.
    check: float = 1.0
    # Times that a request is repeated because of lost workers.
    attempts: int = 20


RULES = ClusterRules()
T = TypeVar("T")


# Calls of functions on the workers of a cluster, none of which waits for a worker that is gone.


class Cluster:
    """Workers of a cluster.

    Functions are called with ``Client.run``: a call does not become a task, so that it takes a few milliseconds, and
    an answer is either returned or known to be lost. The scheduler removes workers that send no heartbeats.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        if client.asynchronous:
            raise ValueError("client must be a synchronous distributed.Client; got one with asynchronous=True")
        if client.status in ("closing", "closed"):
            raise ValueError("client must be connected to a scheduler; got one that is closed")
        self.client, self.timeout = client, timeout
        self._address = client.scheduler.address

    def check_package(self, *modules: str) -> None:
        """Raise RuntimeError if a worker does not have this package or other modules that functions sent there need."""
        if workers := sorted(self.workers()):
            self.call(exec, [(workers, ("import " + ", ".join(["rocmax.dask.cluster", *modules]), {}))])

    def locate(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the worker that holds the result of a task, for each of some tasks that have one."""
        found = self._scheduler("who_has", keys=list(keys))
        return {key: min(workers) for key, workers in found.items() if workers}

    def loaded(self, futures: Mapping[int, Any]) -> dict[int, str]:
        """Wait until partitions, given by number, are in the memory of workers; return their workers."""
        waiting, found = set(futures), dict[int, str]()
        fine = time.monotonic()
        while True:
            keys = {futures[number].key: number for number in waiting}
            found.update((keys[key], worker) for key, worker in self.locate(keys).items())
            waiting.difference_update(found)
            if not waiting:
                return found
            for number in waiting:
                raise_error(number, futures[number])
            if self.working():
                fine = time.monotonic()
            elif time.monotonic() - fine > self.timeout:
                raise self.no_progress()
            time.sleep(RULES.check / 20)

    def working(self) -> bool:
        """Return whether some worker has tasks and is not paused."""
        status = {address: worker["status"] for address, worker in self._scheduler("identity")["workers"].items()}
        return any(
            tasks and status.get(address) == "running" for address, tasks in self._scheduler("processing").items()
        )

    def no_progress(self) -> RuntimeError:
        """Return the error if no worker loads a partition for some time."""
        if not self.workers():
            found = f"the cluster must have at least one worker; got none for {self.timeout:g} s. Start workers"
            return RuntimeError(f"{found}, or raise timeout; with checkpoint, the next fit continues")
        return RuntimeError(
            f"workers must load the partitions; got no worker with a running task for {self.timeout:g} s. Workers are "
            "paused if their memory is not sufficient: add workers or memory"
        )

    def call(self, function: Callable[..., Any], calls: Iterable[tuple[list[str], tuple[Any, ...]]]) -> dict[str, Any]:
        """Call a function on groups of workers, with arguments for each; return the answers of those not lost."""
        pending = [(self._start(function, args, workers), workers) for workers, args in calls]
        found: dict[str, Any] = {}
        try:
            for future, workers in pending:
                found |= self._wait(future, workers)
        finally:
            for future, _ in pending:
                future.cancel()
        for worker, answer in found.items():
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise RuntimeError(f"the worker {worker} failed: {type(answer).__name__}: {answer}") from answer
        return {worker: answer for worker, answer in found.items() if not isinstance(answer, OSError)}

    def workers(self) -> set[str]:
        """Return the addresses of the workers that the scheduler knows."""
        return set(self._scheduler("ncores"))

    def _start(self, function: Callable[..., Any], args: tuple[Any, ...], workers: list[str]) -> Future[dict[str, Any]]:
        call = self.client.run(function, *args, workers=workers, on_error="return", asynchronous=True)
        return asyncio.run_coroutine_threadsafe(call, self.client.loop.asyncio_loop)

    def _wait(self, future: Future[dict[str, Any]], workers: list[str]) -> dict[str, Any]:
        """Return the answers to a call, or none if a worker is gone and the scheduler still tries to connect to it."""
        while True:
            try:
                return future.result(timeout=RULES.check)
            except OSError as error:
                if future.done():
                    raise self._no_scheduler() from error
                if not self.workers().issuperset(workers):
                    return {}

    def _scheduler(self, operation: str, **arguments: Any) -> Any:
        # A client that has lost its scheduler ends up without one.
        method = getattr(self.client.scheduler, operation, None)
        if method is None:
            raise self._no_scheduler()
        try:
            # A scheduler that restarts workers may take some time to answer.
            return self.client.sync(method, callback_timeout=max(self.timeout, 30.0), **arguments)
        except OSError as error:
            raise self._no_scheduler() from error

    def _no_scheduler(self) -> RuntimeError:
        return RuntimeError(
            f"the scheduler must be reachable; {self._address} does not answer; with checkpoint, the next fit continues"
        )


def raise_error(number: int, future: Any) -> None:
    """Raise the error of a task that loads a partition, if there is one."""
    if future.status == "cancelled":
        raise DataError(
            f"partition {number} cannot be read again: its data were in the memory of a worker that was lost. Pass a "
            "collection that reads its partitions from files"
        )
    if future.status != "error":
        return
    error = future.exception()
    if isinstance(error, DataError):
        raise error
    raise DataError(f"partition {number} cannot be read: {type(error).__name__}: {error}") from error


# Partitions of dask collections: how they are divided, loaded on a worker and checked there.


@dataclass(eq=False)
class LoadedPartition:
    """Rows, labels and weights of a partition in the memory of a worker, and the names of the columns of a frame.

    ``shard`` is the one that the worker made of this partition and others: it lives as long as one of them.
    """

    number: int
    X: Any
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    names: list[Any] | None
    shard: Any = None

    def __post_init__(self) -> None:
        rows = (self.X.data, self.X.indices, self.X.indptr) if sparse.issparse(self.X) else (self.X,)
        self.checksum = checksum(*rows, self.y, self.weight)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "shard": None}


def load(number: int, delayed: tuple[Any, Any, Any]) -> Any:
    """Return a delayed :class:`LoadedPartition` of a new name, from the delayed values of :func:`aligned`."""
    return need("dask").delayed(_loaded, pure=False)(number, *delayed)


def _loaded(number: int, X: Any, y: Any, weight: Any) -> LoadedPartition:
    """Check a partition and convert it to arrays; errors name the partition."""
    names = None
    if hasattr(X, "iloc"):
        names, X = list(X.columns), _frame(number, X)
    elif sparse.issparse(X):
        X = canonical_csr(X)
    else:
        X = np.asarray(X.todense() if hasattr(X, "todense") else X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataError(
            f"partition {number}: X must be two-dimensional and numeric; got {X.ndim} dimensions, {X.dtype}"
        )
    labels = checked_labels(number, "y", y, X.shape[0])
    return LoadedPartition(number, X, labels, checked_weight(number, weight, labels.size), names)


def checked_labels(number: int, name: str, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels of a partition; raise DataError if one is missing, or if they cannot be compared."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise DataError(f"partition {number}: {name} must have one label for each of {n_rows} rows; got {labels.shape}")
    missing = int(missing_values(labels).sum())
    if missing:
        raise DataError(f"partition {number}: {name} must have a label in each row; got {missing} missing")
    kinds = _kinds(labels)
    if len(kinds) > 1:
        raise DataError(f"partition {number}: {name} must have labels of one type; got {' and '.join(kinds)}")
    return labels


def checked_weight(number: int, weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights of a partition, if any; raise DataError if they are not weights."""
    if weight is None:
        return None
    required = f"partition {number}: sample_weight must be one finite number >= 0 for each row"
    try:
        found: NDArray[np.float64] = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{required}; got {np.asarray(weight).dtype}") from error
    if found.shape != (n_rows,):
        raise DataError(f"{required}; got shape {found.shape} for {n_rows} rows")
    check_weights(found, f"partition {number}: sample_weight", counted=" of the partition")
    return found


class LabelSet(NamedTuple):
    """Distinct labels, and the number of a partition that has some of them."""

    number: int
    labels: NDArray[Any]

    def joined(self, other: LabelSet) -> LabelSet:
        """Return the labels of both; raise DataError if they cannot be compared."""
        if not self.labels.size or not other.labels.size:
            return self if self.labels.size else other
        own, kinds = _kinds(self.labels), _kinds(other.labels)
        if own != kinds:
            raise DataError(
                f"partition {other.number}: labels must have the type of those in partition {self.number}, {own[0]}; "
                f"got {kinds[0]}"
            )
        return LabelSet(self.number, np.unique(np.concatenate([self.labels, other.labels])))


def check_some_rows(labels: NDArray[Any]) -> None:
    """Raise ValueError if there is no row, given the labels of all partitions."""
    if not labels.size:
        raise ValueError("the partitions must have rows with a weight > 0; got none")


def _kinds(labels: NDArray[Any]) -> list[str]:
    """Return the types of labels: those of one type can be compared."""
    values = labels.tolist() if labels.dtype.kind == "O" else labels[:1].tolist()
    return sorted({"numbers" if isinstance(value, int | float | np.number) else "text" for value in values})


def _frame(number: int, frame: Any) -> NDArray[Any]:
    for name, kind in frame.dtypes.items():
        if kind.kind not in "fiub":
            raise DataError(f"partition {number}: column {name!r} must contain numbers; got {kind}")
    single = all(kind == np.float32 for kind in frame.dtypes)
    result: NDArray[Any] = frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return result


def aligned(**collections: Any) -> list[tuple[Any, ...]]:
    """Return the delayed partitions of collections that belong together; ``X`` has two dimensions, others have one.

    Arrays may have unknown chunk sizes and sparse chunks. Weights may be None.
    """
    found: list[list[Any]] = []
    for name, collection in collections.items():
        if collection is None and name == "sample_weight":
            found.append([None] * len(found[0]))
            continue
        found.append(_blocks(name, collection, 2 if name == "X" else 1))
        if len(found[-1]) != len(found[0]):
            raise ValueError(
                f"{name} must have the {len(found[0])} partitions of {next(iter(collections))}; got {len(found[-1])}. "
                "Use rechunk for an array and repartition for a data frame or a series"
            )
    return list(zip(*found, strict=True))


def _blocks(name: str, collection: Any, ndim: int) -> list[Any]:
    """Return the partitions of a dask collection as delayed values."""
    if not need("dask").is_dask_collection(collection) or not hasattr(collection, "to_delayed"):
        raise TypeError(f"{name} must be a dask Array, DataFrame or Series; got {type(collection).__name__}")
    if collection.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}; got {collection.ndim}")
    if hasattr(collection, "numblocks") and ndim == 2 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


# What runs on the workers: shards of loaded partitions that answer the requests of the driver.


class PartitionFacts(NamedTuple):
    """Number, size, columns, labels of rows with a weight, and checksum of a partition."""

    number: int
    shape: tuple[int, int]
    names: list[Any] | None
    labels: NDArray[Any]
    checksum: int


class Answers(NamedTuple):
    """Answers of the shards of a worker, by name, and the time and the processor time that they took."""

    found: dict[str, Any]
    seconds: float
    cpu: float


class Failure(NamedTuple):
    """Error of a function on a worker, in place of its result."""

    error: Exception


# By worker, as a process can have several, and name.
_SHARDS: WeakValueDictionary[tuple[str, str], Shard] = WeakValueDictionary()


async def on_partitions(
    function: Callable[..., Any], keys: Sequence[str], args: tuple[Any, ...], dask_worker: Any
) -> Any:
    """Call a function with the worker's name, loaded partitions, given by the names of their tasks, and arguments.

    The answer is None if the worker does not have one of the partitions.
    """
    try:
        loaded = [dask_worker.data[key] for key in keys]
    except KeyError:
        return None
    return await asyncio.get_running_loop().run_in_executor(_thread(), _caught, function, dask_worker.id, loaded, *args)


def changed(number: int) -> DataError:
    """Return the error for a partition whose values differ when it is read again."""
    return DataError(
        f"partition {number} must have the same values whenever it is read; got other ones after the loss or the "
        "arrival of a worker. Its files have changed, or it is not computed in the same way each time: write the rows "
        "to files that do not change"
    )


def _caught(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result or the error: an exception of a call on a worker means that the worker was lost."""
    try:
        with _threads().limit(limits=1, user_api="blas"):
            return function(*args)
    except Exception as error:
        # The frames of the traceback, which does not reach the driver, would keep the rows in memory.
        return Failure(error.with_traceback(None))


@cache
def _thread() -> ThreadPoolExecutor:
    """Return one thread for all requests: shards are not safe for several, and the event loop stays free."""
    return ThreadPoolExecutor(1, "rocmax")


@cache
def _threads() -> ThreadpoolController:
    """Return the thread pools of the process; to find them takes some milliseconds."""
    return ThreadpoolController()


def _facts(worker: str, loaded: list[LoadedPartition]) -> list[PartitionFacts]:
    """Return what the driver has to know of partitions."""
    used = [one.y if one.weight is None else one.y[one.weight > 0] for one in loaded]
    return [
        PartitionFacts(one.number, one.X.shape, one.names, np.unique(labels), one.checksum)
        for one, labels in zip(loaded, used, strict=True)
    ]


def _make_shard(
    worker: str, loaded: list[LoadedPartition], name: str, positive: Any, starts: dict[int, int], sums: dict[int, int]
) -> str:
    """Make a shard of partitions, which replaces other shards of these; return its name.

    It gets the number of the first row of each partition, and its checksum when it was read first.
    """
    for one in loaded:
        if one.checksum != sums[one.number]:
            raise changed(one.number)
    weights = [np.ones(one.y.size) if one.weight is None else one.weight for one in loaded]
    weight = None if all(one.weight is None for one in loaded) else np.concatenate(weights)
    labels = np.concatenate([np.asarray(one.y == positive, dtype=bool) for one in loaded])
    partitions = [
        Partition(one.number, one.X.shape[0], f"partition {one.number}", starts[one.number]) for one in loaded
    ]
    shard = Shard(MemoryRows([one.X for one in loaded]), labels, weight, partitions, names=loaded[0].names)
    _SHARDS[worker, name] = shard
    for one in loaded:
        one.shard = shard
    return name


def _answer(worker: str, loaded: list[LoadedPartition], names: Sequence[str], *request: Any) -> Answers:
    """Return the answers of those of some shards that are here, see :meth:`Shard.answer`."""
    began, cpu = time.perf_counter(), time.thread_time()
    held = {name: shard for name in names if (shard := _SHARDS.get((worker, name))) is not None}
    found = {name: shard.answer(*request) for name, shard in held.items()}
    return Answers(found, time.perf_counter() - began, time.thread_time() - cpu)


# Shards on the workers of a cluster, made again when a worker is lost.


class _Placed(NamedTuple):
    """Worker and partitions of a shard."""

    worker: str
    numbers: list[int]


class DaskShards:
    """Executor for shards on the workers of a cluster.

    The partitions are results of dask tasks, so that the scheduler loads those of a lost worker again on another one.
    The executor then makes new shards of them and repeats the request for these shards only; score vectors are computed
    again from their weights. ``seconds`` and ``cpu`` are the sums of the times of the slowest workers.

    Requests are not tasks of dask: with ten partitions on two workers, a round of tasks takes ten times as long, and
    each partition would send its own histograms instead of each worker.
    """

    def __init__(self, cluster: Cluster, delayed: list[tuple[Any, Any, Any]]) -> None:
        self._cluster = cluster
        self._shards: dict[str, _Placed] = {}
        self._names = (f"rocmax-{uuid.uuid4().hex}-{i}" for i in itertools.count())
        self._positive: Any = None
        self._starts: dict[int, int] = {}
        self._sums: dict[int, int] = {}
        self.rounds, self.seconds, self.cpu = 0, 0.0, 0.0
        cluster.check_package()
        self._futures = cluster.client.compute([load(number, one) for number, one in enumerate(delayed)])

    def facts(self) -> list[PartitionFacts]:
        """Return what is known of each partition, in order."""
        answers = self._on_partitions(_facts, range(len(self._futures)), lambda numbers: ())
        found = sorted((fact for _, _, facts in answers for fact in facts), key=lambda fact: fact.number)
        self._sums = {fact.number: fact.checksum for fact in found}
        return found

    def prepare(self, positive: Any, starts: dict[int, int]) -> None:
        """Make the shards, given the label of the positive class and the numbers of the first rows of partitions.

        It follows :meth:`facts`, whose checksums the partitions have to keep.
        """
        self._positive, self._starts = positive, starts
        self._form(range(len(self._futures)))

    def run(self, recipes: Sequence[Recipe], drop: Sequence[int], method: Callable[..., T], *args: Any) -> list[T]:
        """Return the answer of each shard."""
        self.rounds += 1
        answers: dict[str, T] = {}
        for _ in range(RULES.attempts):
            waiting = [name for name in self._shards if name not in answers]
            if not waiting:
                return [answers[name] for name in self._shards]
            workers = sorted({self._shards[name].worker for name in waiting})
            request = (waiting, list(recipes), list(drop), method, *args)
            found = self._cluster.call(on_partitions, [(workers, (_answer, (), request))])
            given: list[Answers] = [_checked(worker, answer) for worker, answer in found.items()]
            self.seconds += max((answer.seconds for answer in given), default=0.0)
            self.cpu += max((answer.cpu for answer in given), default=0.0)
            for answer in given:
                answers |= answer.found
            lost = [name for name in waiting if name not in answers]
            self._form([number for name in lost for number in self._shards.pop(name).numbers])
        raise too_many()

    def close(self) -> None:
        """Release the partitions, and with them the shards."""
        self._shards.clear()
        self._futures.clear()

    def _form(self, numbers: Iterable[int]) -> None:
        """Make shards of partitions, one on each worker."""

        def arguments(group: list[int]) -> tuple[Any, ...]:
            starts, sums = ({number: known[number] for number in group} for known in (self._starts, self._sums))
            return next(self._names), self._positive, starts, sums

        for worker, group, name in self._on_partitions(_make_shard, numbers, arguments):
            self._shards[name] = _Placed(worker, group)

    def _on_partitions(
        self, function: Callable[..., Any], numbers: Iterable[int], arguments: Callable[[list[int]], tuple[Any, ...]]
    ) -> list[tuple[str, list[int], Any]]:
        """Call a function on the workers of partitions; return worker, partitions and answer of each call."""
        waiting, found = set(numbers), list[tuple[str, list[int], Any]]()
        for _ in range(RULES.attempts):
            if not waiting:
                return found
            groups: dict[str, list[int]] = {}
            for number, worker in sorted(self._cluster.loaded({i: self._futures[i] for i in waiting}).items()):
                groups.setdefault(worker, []).append(number)
            calls = [
                ([worker], (function, [self._futures[number].key for number in group], arguments(group)))
                for worker, group in groups.items()
            ]
            for worker, given in self._cluster.call(on_partitions, calls).items():
                if _checked(worker, given) is not None:
                    found.append((worker, groups[worker], given))
                    waiting.difference_update(groups[worker])
        raise too_many()


def _checked(worker: str, found: Any) -> Any:
    if isinstance(found, Failure):
        found.error.add_note(f"The worker is {worker}.")
        raise found.error
    return found


def too_many() -> RuntimeError:
    """Return the error for too many losses of workers during one request."""
    return RuntimeError(
        f"workers must stay for the time of a request; got {RULES.attempts} losses of workers or partitions during "
        "one. Partitions are lost without their worker if its memory is not sufficient"
    )
