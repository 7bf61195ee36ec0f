"""Calls of functions on the workers of a cluster, none of which waits for a worker that is gone or frozen."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from rocmax.data import DataError

# Seconds between two checks whether the workers of a pending call are still there.
_CHECK = 1.0
# Seconds for which an answer of the scheduler is awaited.
_PATIENCE = 30.0
# Seconds that the nanny of a frozen worker has to end it.
_END = 10.0
# Smallest number of seconds without a heartbeat after which a worker is given up, and the addition for each worker: the
# more workers there are, the longer is the interval between heartbeats.
_SHORTEST_SILENCE, _PER_WORKER = 10.0, 0.05
# What a worker must be able to do. A function of this package could not be sent to a worker that does not have it.
_IMPORT = "import rocmax.backends.dask.worker"


class Cluster:
    """Workers of a cluster.

    Functions are called with ``Client.run``: a call does not become a task, so that it takes a few milliseconds, and
    an answer is either returned or known to be lost.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    timeout : float
        Seconds for which workers are awaited if there is none, or if none of them does anything, and after which a
        worker without heartbeats is given up.
    advice : str, default=""
        What else a user can do without workers; the end of the error.
    """

    def __init__(self, client: Any, timeout: float, advice: str = "") -> None:
        if client.asynchronous:
            raise ValueError("client must be a synchronous distributed.Client; got one with asynchronous=True")
        if client.status in ("closing", "closed"):
            raise ValueError("client must be connected to a scheduler; got one that is closed")
        self.client, self.timeout, self._advice = client, timeout, advice
        self._heartbeats, self._given_up = Heartbeats(), list[str]()

    def workers(self) -> list[str]:
        """Return the addresses of the workers; wait if there is none."""
        patience = Patience(self.timeout, _no_worker(self.timeout, self._given_up) + self._advice)
        while not (found := self.listed()):
            patience.check(False)
            time.sleep(0.1)
        return sorted(found)

    def listed(self) -> set[str]:
        """Return the addresses of the workers that the scheduler knows."""
        return set(self._scheduler("ncores"))

    def locate(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the worker that holds the result of a task, for each of some tasks that have one."""
        found = self._scheduler("who_has", keys=list(keys))
        return {key: min(workers) for key, workers in found.items() if workers}

    def working(self) -> bool:
        """Return whether some worker has tasks and is not paused."""
        status = {address: worker["status"] for address, worker in self._scheduler("identity")["workers"].items()}
        return any(
            tasks and status.get(address) == "running" for address, tasks in self._scheduler("processing").items()
        )

    def broadcast(self, function: Callable[..., Any], args: tuple[Any, ...], workers: list[str]) -> dict[str, Any]:
        """Call a function on several workers; return the answers of those that are not lost."""
        return self._answers([(self._start(function, args, workers), workers)])

    def each(self, function: Callable[..., Any], args: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Call a function with other arguments on each worker; return the answers of those that are not lost."""
        return self._answers([(self._start(function, own, [worker]), [worker]) for worker, own in args.items()])

    def gather(self, futures: list[Any]) -> Any:
        """Wait for tasks, and return their results or raise the error of one of them."""
        patience = Patience(self.timeout, no_progress("run the tasks", self.timeout))
        call = self.client.gather(futures, asynchronous=True)
        pending = asyncio.run_coroutine_threadsafe(call, self.client.loop.asyncio_loop)
        try:
            while not wait([pending], timeout=_CHECK).done:
                self.give_up_frozen()
                self.workers()
                patience.check(all(future.done() for future in futures) or self.working())
            return pending.result()
        finally:
            pending.cancel()

    def check_packages(self, workers: Iterable[str]) -> None:
        """Raise ImportError if a worker does not have this package, or a package that it needs."""
        workers = list(workers)
        for worker, answer in self._received([(self._start(exec, (_IMPORT, {}), workers), workers)]).items():
            if isinstance(answer, ImportError):
                raise ImportError(
                    f"the worker {worker} must have rocmax; it cannot be imported there ({answer}). Install "
                    "rocmax[dask] on all workers"
                ) from answer

    def give_up_frozen(self) -> None:
        """Remove workers that have not sent a heartbeat for a long time; their nannies, if any, start new ones.

        Such a process is stopped, or its machine is not reachable. Until it is removed, the scheduler waits for it.
        """
        if not self._heartbeats.due():
            return
        workers = self._scheduler("identity", n_workers=-1)["workers"]
        limit = max(self.timeout, _SHORTEST_SILENCE + _PER_WORKER * len(workers))
        frozen = self._heartbeats.silent({address: worker["last_seen"] for address, worker in workers.items()}, limit)
        if not frozen:
            return
        self._given_up += frozen
        warnings.warn(
            f"no heartbeat for {limit:g} s from the worker{'s' if len(frozen) > 1 else ''} {', '.join(frozen)}: the "
            "others go on without, and load the partitions again. If a worker is only busy, raise timeout",
            RuntimeWarning,
            stacklevel=2,
        )
        self._scheduler(
            "restart_workers",
            workers=frozen,
            timeout=_END,
            wait_for_workers=False,
            on_error="return",
            stimulus_id="rocmax-frozen-worker",
        )

    def _start(self, function: Callable[..., Any], args: tuple[Any, ...], workers: list[str]) -> Future[dict[str, Any]]:
        call = self.client.run(function, *args, workers=workers, on_error="return", asynchronous=True)
        return asyncio.run_coroutine_threadsafe(call, self.client.loop.asyncio_loop)

    def _answers(self, pending: list[tuple[Future[dict[str, Any]], list[str]]]) -> dict[str, Any]:
        found = self._received(pending)
        for worker, answer in found.items():
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise RuntimeError(f"the worker {worker} failed: {type(answer).__name__}: {answer}") from answer
        return {worker: answer for worker, answer in found.items() if not isinstance(answer, OSError)}

    def _received(self, pending: list[tuple[Future[dict[str, Any]], list[str]]]) -> dict[str, Any]:
        """Return the answers to calls, including errors, of the workers that are not gone."""
        found: dict[str, Any] = {}
        try:
            for future, workers in pending:
                found |= self._wait(future, workers)
        finally:
            for future, _ in pending:
                future.cancel()
        return found

    def _wait(self, future: Future[dict[str, Any]], workers: list[str]) -> dict[str, Any]:
        """Return the answers to a call, or none if a worker is gone and the scheduler still tries to connect to it."""
        while True:
            try:
                return future.result(timeout=_CHECK)
            except OSError as error:
                if future.done():
                    raise self._no_scheduler() from error
                self.give_up_frozen()
                if not self.listed().issuperset(workers):
                    return {}

    def _scheduler(self, operation: str, **arguments: Any) -> Any:
        method = getattr(self.client.scheduler, operation)
        try:
            return self.client.sync(method, callback_timeout=_PATIENCE, **arguments)
        except OSError as error:
            raise self._no_scheduler() from error

    def _no_scheduler(self) -> RuntimeError:
        return RuntimeError(
            f"the scheduler must be reachable; {self.client.scheduler.address} does not answer{self._advice}"
        )


class Patience:
    """Limit on the time for which something is not as it should be.

    Parameters
    ----------
    seconds : float
        The limit.
    message : str
        Message of the error.
    """

    def __init__(self, seconds: float, message: str) -> None:
        self._seconds, self._message = seconds, message
        self._fine = time.monotonic()

    def check(self, fine: bool) -> None:
        """Raise RuntimeError if the last call with True is too long ago."""
        now = time.monotonic()
        if fine:
            self._fine = now
        elif now - self._fine > self._seconds:
            raise RuntimeError(self._message)


class Heartbeats:
    """Time for which each worker has not sent a heartbeat, while the driver waited."""

    def __init__(self) -> None:
        self._checked = -np.inf
        self._last: dict[str, float] = {}
        self._silence: dict[str, float] = {}

    def due(self) -> bool:
        """Return whether the last check is long enough ago."""
        return time.monotonic() - self._checked >= _CHECK

    def silent(self, last_seen: dict[str, float], limit: float) -> list[str]:
        """Return the workers without a new heartbeat for more than ``limit`` seconds.

        Parameters
        ----------
        last_seen : dict
            Times of the last heartbeats, by the clock of the scheduler. They are only compared with each other.
        limit : float
            The limit in seconds.
        """
        now = time.monotonic()
        # Not more than some checks: while the driver or the scheduler is stopped, no heartbeat is received.
        passed, self._checked = min(now - self._checked, 2 * _CHECK), now
        self._silence = {
            worker: self._silence.get(worker, 0.0) + passed if self._last.get(worker) == seen else 0.0
            for worker, seen in last_seen.items()
        }
        self._last = last_seen
        return [worker for worker, seconds in self._silence.items() if seconds > limit]


def _no_worker(seconds: float, given_up: list[str]) -> str:
    lost = f", after {', '.join(given_up)} had stopped to send heartbeats" if given_up else ""
    return (
        f"the cluster must have at least one worker; got none for {seconds:g} s{lost}. Start workers, or raise timeout"
    )


def no_progress(work: str, seconds: float) -> str:
    """Return the message if no worker runs a task for some time."""
    return (
        f"workers must {work}; got no worker with a running task for {seconds:g} s. Workers are paused if "
        "their memory is not sufficient: add workers or memory"
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
