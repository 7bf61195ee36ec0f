"""Shards on the workers of a cluster, one actor per worker, replaced when a worker is lost."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rocmax._packages import need
from rocmax.backends.dask.partitions import LoadedPart, load
from rocmax.data import DataError
from rocmax.data.rows import MemoryRows
from rocmax.sharded.shard import Part, Recipe, Shard

# Seconds between two checks whether the worker of a pending request is still there, and for which a replacement of a
# lost worker is awaited before its partitions go to the others.
_CHECK, _GRACE = 1.0, 5.0


class PartFacts(NamedTuple):
    """Number, size, columns and labels of a partition."""

    number: int
    shape: tuple[int, int]
    names: list[str] | None
    labels: NDArray[Any]


class ShardActor:
    """Actor that holds some partitions and answers the requests of the driver.

    Parameters
    ----------
    parts : sequence of LoadedPart
        The partitions.
    """

    def __init__(self, parts: Sequence[LoadedPart]) -> None:
        self._parts = list(parts)
        self._shard: Shard | None = None
        # Made once: it searches all libraries of the process.
        self._threads = ThreadpoolController()

    def facts(self) -> list[PartFacts]:
        """Return what the driver has to know of the partitions."""
        return [PartFacts(part.number, part.X.shape, part.names, _labels(part)) for part in self._parts]

    def prepare(self, positive: Any, starts: dict[int, int]) -> None:
        """Make the shard, given the label of the positive class and the numbers of the first rows of partitions."""
        parts = self._parts
        weights = [np.ones(part.y.size) if part.weight is None else part.weight for part in parts]
        weight = None if all(part.weight is None for part in parts) else np.concatenate(weights)
        labels = np.concatenate([part.y == positive for part in parts])
        sizes = [Part(part.number, part.X.shape[0]) for part in parts]
        self._shard = Shard(MemoryRows([part.X for part in parts]), labels, weight, sizes)
        self._shard.place(starts)

    def answer(self, recipes: Sequence[Recipe], drop: Sequence[int], method: str, args: tuple[Any, ...]) -> Any:
        """Return the answer of the shard, or the error that it raised."""
        assert self._shard is not None
        try:
            with self._threads.limit(limits=1, user_api="blas"):
                return self._shard.answer(recipes, drop, method, *args)
        except Exception as error:
            return _Failed(error)


class _Failed(NamedTuple):
    """Error of a request; an exception of an actor call means that the worker was lost."""

    error: Exception


class _Placed(NamedTuple):
    """Worker and partitions of an actor, and the future that made it."""

    worker: str
    numbers: list[int]
    future: Any


class DaskShards:
    """Executor for shards on the workers of a cluster.

    A request to a lost worker is repeated: its partitions are read again by a replacement, or by the other workers, and
    the score vectors are computed again from their weights.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    parts : list of tuple
        The partitions, see :func:`~rocmax.backends.dask.partitions.pieces`.
    timeout : float
        Seconds for which a worker is awaited if there is none.

    Attributes
    ----------
    rounds : int
        Number of requests.
    """

    def __init__(self, client: Any, parts: list[tuple[Any, Any, Any]], timeout: float) -> None:
        self._client, self._parts, self._timeout = client, parts, timeout
        self._shards: dict[Any, _Placed] = {}
        self._prepared: tuple[Any, dict[int, int]] | None = None
        self.rounds = 0
        workers = self._workers()
        _check_packages(client, workers)
        groups = np.array_split(np.arange(len(parts)), len(workers))
        self._place({worker: group.tolist() for worker, group in zip(workers, groups, strict=True) if group.size})

    def facts(self) -> list[PartFacts]:
        """Return what is known of each partition, in order."""
        found = [fact for facts in self._each("facts") for fact in facts]
        return sorted(found, key=lambda fact: fact.number)

    def prepare(self, positive: Any, starts: dict[int, int]) -> None:
        """Tell the shards which label is positive, and where their partitions are among all rows."""
        self._prepared = positive, starts
        self._each("prepare", positive, starts)

    def run(self, recipes: Sequence[Recipe], drop: Sequence[int], method: str, *args: Any) -> list[Any]:
        """Return the answer of each shard."""
        self.rounds += 1
        answers = self._each("answer", list(recipes), list(drop), method, args)
        for answer in answers:
            if isinstance(answer, _Failed):
                raise answer.error
        return answers

    def close(self) -> None:
        """Release the actors, and with them the rows."""
        self._shards.clear()

    def _each(self, method: str, *args: Any) -> list[Any]:
        """Call a method of each actor; replace lost ones, and call it on the replacements."""
        answers: dict[Any, Any] = {}
        while True:
            pending = {actor: self._call(actor, method, args) for actor in self._shards if actor not in answers}
            if not pending:
                return list(answers.values())
            lost = []
            for actor, future in pending.items():
                try:
                    answers[actor] = self._result(future, self._shards[actor].worker)
                except _LostError:
                    lost.append(actor)
            if lost:
                self._replace(lost)

    def _call(self, actor: Any, method: str, args: tuple[Any, ...]) -> Any:
        try:
            return getattr(actor, method)(*args)
        except (OSError, RuntimeError):
            return None  # the client knows already that the worker is gone

    def _result(self, future: Any, worker: str) -> Any:
        while future is not None:
            try:
                return future.result(timeout=_CHECK)
            except TimeoutError:
                if worker not in self._client.nthreads():
                    break
            except Exception as error:
                if worker in self._client.nthreads() and not isinstance(error, OSError | RuntimeError | ValueError):
                    raise
                break
        raise _LostError

    def _replace(self, lost: list[Any]) -> None:
        """Load the partitions of lost workers again, on a new worker or divided among the others."""
        placed = [self._shards.pop(actor) for actor in lost]
        # The scheduler would wait for the lost worker to make the actor and its partitions again.
        self._client.cancel([place.future for place in placed], force=True)
        numbers = sorted(number for place in placed for number in place.numbers)
        used = {place.worker for place in self._shards.values()}
        # A lost worker can be listed for some time.
        gone = {place.worker for place in placed}
        began = time.monotonic()
        while True:
            workers = self._workers()
            others = [worker for worker in workers if worker not in gone]
            new = [worker for worker in others if worker not in used]
            if new or time.monotonic() - began > _GRACE:
                break
            time.sleep(0.1)
        chosen = new or others or workers
        _check_packages(self._client, chosen)
        divided = np.array_split(np.array(numbers), len(chosen))
        groups = {worker: group.tolist() for worker, group in zip(chosen, divided, strict=True) if group.size}
        self._place(groups, again=True)

    def _place(self, groups: dict[str, list[int]], again: bool = False) -> None:
        """Load partitions on workers, and make an actor for each worker."""
        wait = need("distributed").wait
        futures = {
            worker: self._client.compute(
                [load(i, self._parts[i], again) for i in numbers], workers=[worker], allow_other_workers=False
            )
            for worker, numbers in groups.items()
        }
        failed: list[int] = []
        for worker, numbers in groups.items():
            while True:
                try:
                    wait(futures[worker], timeout=_CHECK)
                    break
                except TimeoutError:
                    if worker not in self._client.nthreads():
                        break
            if worker not in self._client.nthreads():
                self._client.cancel(futures[worker], force=True)
                failed += numbers
                continue
            self._raise_errors(numbers, futures[worker])
            made = self._client.submit(
                ShardActor, futures[worker], actor=True, workers=[worker], allow_other_workers=False, pure=False
            )
            try:
                actor = made.result(timeout=self._timeout)
                if self._prepared is not None:
                    self._result(actor.prepare(*self._prepared), worker)
            except (OSError, RuntimeError, TimeoutError, _LostError):
                self._client.cancel([made, *futures[worker]], force=True)
                failed += numbers
                continue
            self._shards[actor] = _Placed(worker, numbers, made)
        if failed:
            workers = self._workers()
            divided = np.array_split(np.array(failed), len(workers))
            groups = {worker: group.tolist() for worker, group in zip(workers, divided, strict=True) if group.size}
            self._place(groups, again=True)

    def _raise_errors(self, numbers: list[int], futures: list[Any]) -> None:
        for number, future in zip(numbers, futures, strict=True):
            if future.status not in ("error", "cancelled", "lost"):
                continue
            error = future.exception() if future.status == "error" else RuntimeError(future.status)
            if isinstance(error, DataError):
                raise error
            if "KilledWorker" in type(error).__name__:
                raise RuntimeError(f"partition {number} cannot be loaded: its workers were killed ({error})") from error
            raise DataError(f"partition {number} cannot be read: {type(error).__name__}: {error}") from error

    def _workers(self) -> list[str]:
        """Return the addresses of the workers; wait if there is none."""
        began = time.monotonic()
        while not (found := self._client.nthreads()):
            if time.monotonic() - began > self._timeout:
                raise RuntimeError(
                    f"the cluster must have at least one worker; got none for {self._timeout:g} s. Start workers, or "
                    "raise timeout; with checkpoint, the next fit continues"
                )
            time.sleep(0.1)
        return sorted(found)


class _LostError(Exception):
    """The worker of an actor was lost."""


def _labels(part: LoadedPart) -> NDArray[Any]:
    """Return the labels of the rows with non-zero weight, without repetition."""
    return np.unique(part.y if part.weight is None else part.y[part.weight > 0])


def _check_packages(client: Any, workers: list[str]) -> None:
    """Raise ImportError if a worker does not have this package."""
    found = client.run(importlib.util.find_spec, "rocmax", workers=workers, on_error="return")
    for worker, spec in found.items():
        if spec is None:
            raise ImportError(
                f"the worker {worker} must have rocmax; it cannot be imported there. Install rocmax[dask]"
            )
