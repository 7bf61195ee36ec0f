"""Calls of functions on the workers of a cluster, none of which waits for a worker that is gone."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

# Seconds between two checks whether the workers of a pending call are still there.
_CHECK = 1.0
# Seconds for which an answer of the scheduler is awaited.
_PATIENCE = 30.0


class Cluster:
    """Workers of a cluster.

    Functions are called with ``Client.run``: a call does not become a task, so that it takes a few milliseconds, and
    an answer is either returned or known to be lost.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    timeout : float
        Seconds for which workers are awaited if there is none, or if none of them does anything.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        if client.asynchronous:
            raise ValueError("client must be a synchronous distributed.Client; got one with asynchronous=True")
        self.client, self.timeout = client, timeout

    def workers(self) -> list[str]:
        """Return the addresses of the workers; wait if there is none."""
        patience = Patience(self.timeout, _no_worker(self.timeout))
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

    def check_packages(self, workers: Iterable[str]) -> None:
        """Raise ImportError if a worker does not have this package."""
        for worker, spec in self.broadcast(importlib.util.find_spec, ("rocmax",), list(workers)).items():
            if spec is None:
                raise ImportError(
                    f"the worker {worker} must have rocmax; it cannot be imported there. Install rocmax[dask]"
                )

    def _start(self, function: Callable[..., Any], args: tuple[Any, ...], workers: list[str]) -> Future[dict[str, Any]]:
        call = self.client.run(function, *args, workers=workers, on_error="return", asynchronous=True)
        return asyncio.run_coroutine_threadsafe(call, self.client.loop.asyncio_loop)

    def _answers(self, pending: list[tuple[Future[dict[str, Any]], list[str]]]) -> dict[str, Any]:
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

    def _wait(self, future: Future[dict[str, Any]], workers: list[str]) -> dict[str, Any]:
        """Return the answers to a call, or none if a worker is gone and the scheduler still tries to connect to it."""
        while True:
            try:
                return future.result(timeout=_CHECK)
            except OSError as error:
                if future.done():
                    raise self._no_scheduler() from error
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
            f"the scheduler must be reachable; {self.client.scheduler.address} does not answer. With checkpoint, the "
            "next fit continues"
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


def _no_worker(seconds: float) -> str:
    return (
        f"the cluster must have at least one worker; got none for {seconds:g} s. Start workers, or raise timeout; with "
        "checkpoint, the next fit continues"
    )
