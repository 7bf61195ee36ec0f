"""Delayed functions on partitions: on a cluster, or without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rocmax._packages import need
from rocmax._validate import check_number
from rocmax.backends.dask.cluster import Cluster, raise_error
from rocmax.data import DataError

# Number of results that one task combines, so that the driver receives one.
_FAN_IN = 16


class Tasks:
    """Tasks that wait for workers as the estimators do: they raise an error if there is none for a long time.

    Parameters
    ----------
    timeout : float
        Seconds for which workers are awaited, as in :class:`~rocmax.backends.dask.cluster.Cluster`.
    client : distributed.Client, default=None
        Client of the cluster. None takes the one that ``dask.compute`` would use; without any, tasks run on the
        scheduler of ``dask.config``.
    """

    def __init__(self, timeout: float, client: Any = None) -> None:
        check_number("timeout", timeout, above=0.0)
        client = _current_client() if client is None else client
        self._cluster = None if client is None else Cluster(client, timeout)
        if self._cluster is not None:
            self._cluster.check_packages(self._cluster.workers())

    def compute(self, values: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        """Return the values of dask collections.

        Parameters
        ----------
        values : sequence of dask collections
            What to compute.
        parts : sequence of Delayed
            Partitions from which it is computed. If that fails, the error names the first one that cannot be read.
        """
        if self._cluster is None:
            return self._named(lambda: list(need("dask").compute(*values)), parts)
        futures = self._cluster.client.compute(list(values))
        try:
            found: list[Any] = self._cluster.gather(futures)
        except DataError:
            raise
        except Exception:
            if any(future.status in ("error", "cancelled") for future in futures):
                self._check(parts)
            raise
        return found

    def persist(self, parts: Sequence[Any]) -> list[Any]:
        """Return delayed partitions that are loaded once and kept in memory, as long as the result exists."""
        if self._cluster is None:
            return self._named(lambda: list(need("dask").persist(*parts)), parts)
        return list(self._cluster.client.persist(list(parts)))

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[list[Any]], Any], parts: Sequence[Any], *args: Any
    ) -> Any:
        """Return the value of a function for all partitions together.

        Parameters
        ----------
        function : callable
            Function of a partition and ``args``.
        combine : callable
            Function that makes one value of a list of values.
        parts : sequence of Delayed
            The partitions.
        *args : object
            Arguments, which are sent once.
        """
        delayed = need("dask").delayed
        shared = [delayed(arg, traverse=False) for arg in args]
        values = [delayed(function)(part, *shared) for part in parts]
        while len(values) > 1:
            values = [delayed(combine)(values[i : i + _FAN_IN]) for i in range(0, len(values), _FAN_IN)]
        return self.compute(values, parts)[0]

    def _named(self, call: Callable[[], list[Any]], parts: Sequence[Any]) -> list[Any]:
        try:
            return call()
        except DataError:
            raise
        except Exception:
            self._check(parts)
            raise

    def _check(self, parts: Sequence[Any]) -> None:
        """Raise DataError for the first partition that cannot be read, if there is one."""
        touched = [need("dask").delayed(_touch)(part) for part in parts]
        if self._cluster is None:
            for number, value in enumerate(touched):
                try:
                    value.compute()
                except Exception as error:
                    raise DataError(f"partition {number} cannot be read: {type(error).__name__}: {error}") from error
            return
        for number, future in enumerate(self._cluster.client.compute(touched)):
            try:
                self._cluster.gather([future])
            except Exception:
                raise_error(number, future)
                raise


def _current_client() -> Any:
    """Return the client that ``dask.compute`` would use, if any."""
    get = need("dask").base.get_scheduler()
    client = getattr(get, "__self__", None)
    return client if hasattr(client, "scheduler") else None


def _touch(part: Any) -> None:
    """Depend on a partition."""
