"""What runs on the workers: shards of loaded partitions that answer the requests of the driver.

A shard belongs to the partitions that it was made of, which are results of dask tasks. The worker drops it with them:
when the driver releases the partitions, and when the scheduler notices that the driver is gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rocmax.backends.dask.partitions import LoadedPart
from rocmax.data.errors import DataError
from rocmax.data.rows import MemoryRows
from rocmax.sharded.shard import Part, Recipe, Shard


class PartFacts(NamedTuple):
    """Number, size, columns, labels and checksum of a partition."""

    number: int
    shape: tuple[int, int]
    names: list[Any] | None
    labels: NDArray[Any]
    checksum: int


class Request(NamedTuple):
    """Request to shards; see :meth:`~rocmax.sharded.shard.Shard.answer`."""

    shards: Sequence[str]
    recipes: Sequence[Recipe]
    drop: Sequence[int]
    method: str
    args: tuple[Any, ...]


class Answers(NamedTuple):
    """Answers of the shards of a worker, by name, and the time and the processor time that they took."""

    found: dict[str, Any]
    seconds: float
    cpu: float


class Failure(NamedTuple):
    """Error of a shard, in place of its answer."""

    error: Exception


class Missing(NamedTuple):
    """Answer if the worker does not have a partition or a shard."""


# One thread for all requests: a shard is not safe to be used by several, and the event loop stays free for heartbeats.
_THREAD = ThreadPoolExecutor(1, "rocmax")
# By worker, as a process can have several, and name.
_SHARDS: WeakValueDictionary[tuple[str, str], Shard] = WeakValueDictionary()


async def facts(keys: Sequence[str], dask_worker: Any) -> list[PartFacts] | Missing | Failure:
    """Return what the driver has to know of loaded partitions, given the names of their tasks."""
    parts = _parts(keys, dask_worker)
    return Missing() if parts is None else await _in_thread(_facts, parts)


async def make_shard(
    name: str, keys: Sequence[str], positive: Any, starts: dict[int, int], sums: dict[int, int], dask_worker: Any
) -> Missing | Failure | None:
    """Make a shard of loaded partitions; it replaces other shards of these partitions.

    Parameters
    ----------
    name : str
        Name of the shard.
    keys : sequence of str
        Names of the tasks that loaded the partitions.
    positive : object
        Label of the positive class.
    starts : dict
        Number of the first row of each partition, in the order of all partitions.
    sums : dict
        Checksum of each partition when it was read first; other values are an error.
    dask_worker : distributed.Worker
        The worker; dask sets it.
    """
    parts = _parts(keys, dask_worker)
    return (
        Missing() if parts is None else await _in_thread(_make, (dask_worker.id, name), parts, positive, starts, sums)
    )


async def answer(request: Request, dask_worker: Any) -> Answers | Failure:
    """Return the answers of the shards that are here."""
    found: Answers | Failure = await _in_thread(_answer, request, dask_worker.id)
    return found


def _parts(keys: Sequence[str], dask_worker: Any) -> list[LoadedPart] | None:
    try:
        return [dask_worker.data[key] for key in keys]
    except KeyError:
        return None


async def _in_thread(function: Callable[..., Any], *args: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(_THREAD, _caught, function, *args)


def _caught(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result or the error: an exception of a call on a worker means that the worker was lost."""
    try:
        with _threads().limit(limits=1, user_api="blas"):
            return function(*args)
    except Exception as error:
        # The frames of the traceback, which does not reach the driver, would keep the rows in memory.
        return Failure(error.with_traceback(None))


@cache
def _threads() -> ThreadpoolController:
    """Return the thread pools of the process; to find them takes some milliseconds."""
    return ThreadpoolController()


def _facts(parts: list[LoadedPart]) -> list[PartFacts]:
    return [
        PartFacts(
            part.number,
            part.X.shape,
            part.names,
            np.unique(part.y if part.weight is None else part.y[part.weight > 0]),
            part.checksum,
        )
        for part in parts
    ]


def _make(
    key: tuple[str, str], parts: list[LoadedPart], positive: Any, starts: dict[int, int], sums: dict[int, int]
) -> None:
    for part in parts:
        if part.checksum != sums[part.number]:
            raise DataError(
                f"partition {part.number} must have the same values whenever it is read; got other ones after the loss "
                "or the arrival of a worker. Its files have changed, or it is not computed in the same way each time: "
                "write the rows to files that do not change"
            )
    weights = [np.ones(part.y.size) if part.weight is None else part.weight for part in parts]
    weight = None if all(part.weight is None for part in parts) else np.concatenate(weights)
    labels = np.concatenate([np.asarray(part.y == positive, dtype=bool) for part in parts])
    sizes = [Part(part.number, part.X.shape[0], f"partition {part.number}") for part in parts]
    shard = Shard(MemoryRows([part.X for part in parts]), labels, weight, sizes, names=parts[0].names)
    shard.place(starts)
    _SHARDS[key] = shard
    for part in parts:
        part.shard = shard


def _answer(request: Request, worker: str) -> Answers:
    began, cpu = time.perf_counter(), time.thread_time()
    held = {name: shard for name in request.shards if (shard := _SHARDS.get((worker, name))) is not None}
    found = {
        name: shard.answer(request.recipes, request.drop, request.method, *request.args) for name, shard in held.items()
    }
    return Answers(found, time.perf_counter() - began, time.thread_time() - cpu)
