"""Shards on the workers of a cluster, made again when a worker is lost."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from rocmax.backends.dask.cluster import Cluster, Patience, no_progress, raise_error
from rocmax.backends.dask.partitions import load
from rocmax.backends.dask.worker import Failure, Missing, PartFacts, Request, answer, facts, make_shard
from rocmax.sharded.shard import Recipe

# Times that a request is repeated because of lost workers.
_ATTEMPTS = 20
# Seconds between two checks for idle workers, and between two looks at partitions that are being loaded.
_REBALANCE, _LOOK = 1.0, 0.2


class _Placed(NamedTuple):
    """Worker and partitions of a shard."""

    worker: str
    numbers: list[int]


class DaskShards:
    """Executor for shards on the workers of a cluster.

    The partitions are results of dask tasks, so that the scheduler loads those of a lost worker again on another one.
    The executor then makes new shards of them and repeats the request for these shards only; score vectors are computed
    again from their weights. Partitions move if some worker has far more of them than others, in particular to
    workers that arrive during the fit.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    parts : list of tuple
        The partitions, see :func:`~rocmax.backends.dask.partitions.pieces`.

    Attributes
    ----------
    rounds : int
        Number of requests.
    seconds, cpu : float
        Time and processor time of the slowest worker in each request, summed.
    """

    def __init__(self, cluster: Cluster, parts: list[tuple[Any, Any, Any]]) -> None:
        self._cluster, self._parts = cluster, parts
        self._futures: dict[int, Any] = {}
        self._shards: dict[str, _Placed] = {}
        self._names = (f"rocmax-{uuid.uuid4().hex}-{i}" for i in itertools.count())
        self._positive: Any = None
        self._starts: dict[int, int] = {}
        self._sums: dict[int, int] = {}
        # Worker that a partition was moved to.
        self._wanted: dict[int, str] = {}
        self._seen: set[str] = set()
        self._next_check = 0.0
        self.rounds, self.seconds, self.cpu = 0, 0.0, 0.0
        cluster.check_packages(cluster.workers())
        self._load(range(len(parts)))

    def facts(self) -> list[PartFacts]:
        """Return what is known of each partition, in order."""
        found: list[PartFacts] = []
        for _, _, answers in self._on_partitions(facts, self._futures, lambda _, keys: (keys,)):
            found += answers
        self._sums = {fact.number: fact.checksum for fact in found}
        return sorted(found, key=lambda fact: fact.number)

    def prepare(self, positive: Any, starts: dict[int, int]) -> None:
        """Make the shards, given the label of the positive class and the numbers of the first rows of partitions.

        It follows :meth:`facts`, whose checksums the partitions have to keep.
        """
        self._positive, self._starts = positive, starts
        self._form(self._futures)

    def run(self, recipes: Sequence[Recipe], drop: Sequence[int], method: str, *args: Any) -> list[Any]:
        """Return the answer of each shard."""
        self.rounds += 1
        self._rebalance()
        answers: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            waiting = [name for name in self._shards if name not in answers]
            if not waiting:
                return [answers[name] for name in self._shards]
            workers = sorted({self._shards[name].worker for name in waiting})
            request = Request(waiting, list(recipes), list(drop), method, args)
            given = {
                worker: _checked(worker, found)
                for worker, found in self._cluster.broadcast(answer, (request,), workers).items()
            }
            self.seconds += max((found.seconds for found in given.values()), default=0.0)
            self.cpu += max((found.cpu for found in given.values()), default=0.0)
            for found in given.values():
                answers |= found.found
            lost = [name for name in waiting if name not in answers]
            self._form([number for name in lost for number in self._shards.pop(name).numbers])
        raise _too_many()

    def close(self) -> None:
        """Release the partitions, and with them the shards."""
        self._shards.clear()
        self._futures.clear()

    def _load(self, numbers: Iterable[int], worker: str | None = None) -> None:
        """Start to load partitions, on a given worker or anywhere."""
        numbers = list(numbers)
        futures = self._cluster.client.compute([load(number, self._parts[number], worker) for number in numbers])
        self._futures.update(zip(numbers, futures, strict=True))
        for number in numbers:
            self._wanted.pop(number, None)
        if worker is not None:
            self._wanted.update(dict.fromkeys(numbers, worker))

    def _form(self, numbers: Iterable[int]) -> None:
        """Make shards of partitions, one on each worker."""
        names: dict[tuple[int, ...], str] = {}

        def arguments(group: list[int], keys: list[str]) -> tuple[Any, ...]:
            name = names[tuple(group)] = next(self._names)
            starts, sums = ({number: known[number] for number in group} for known in (self._starts, self._sums))
            return name, keys, self._positive, starts, sums

        for worker, group, _ in self._on_partitions(make_shard, numbers, arguments):
            self._shards[names[tuple(group)]] = _Placed(worker, group)

    def _on_partitions(
        self,
        function: Callable[..., Any],
        numbers: Iterable[int],
        arguments: Callable[[list[int], list[str]], tuple[Any, ...]],
    ) -> list[tuple[str, list[int], Any]]:
        """Call a function on the workers of partitions; return worker, partitions and answer of each call."""
        waiting, found = set(numbers), list[tuple[str, list[int], Any]]()
        for _ in range(_ATTEMPTS):
            if not waiting:
                return found
            groups: dict[str, list[int]] = {}
            for number, worker in sorted(self._locate(waiting).items()):
                groups.setdefault(worker, []).append(number)
            calls = {
                worker: arguments(group, [self._futures[number].key for number in group])
                for worker, group in groups.items()
            }
            for worker, given in self._cluster.each(function, calls).items():
                if not isinstance(_checked(worker, given), Missing):
                    found.append((worker, groups[worker], given))
                    waiting.difference_update(groups[worker])
        raise _too_many()

    def _locate(self, numbers: Iterable[int]) -> dict[int, str]:
        """Wait until partitions are loaded; return their workers."""
        waiting, found = set(numbers), dict[int, str]()
        patience = Patience(self._cluster.timeout, no_progress("load the partitions", self._cluster.timeout))
        pause = 0.005
        while True:
            keys = {self._futures[number].key: number for number in waiting}
            found.update((keys[key], worker) for key, worker in self._cluster.locate(keys).items())
            waiting.difference_update(found)
            if not waiting:
                return found
            for number in waiting:
                raise_error(number, self._futures[number])
            self._cluster.give_up_frozen()
            # If all workers of a cluster are lost, dask assigns a task with a preferred worker to no new one.
            workers = self._cluster.workers()
            self._load([number for number in waiting if self._wanted.get(number, workers[0]) not in workers])
            patience.check(self._cluster.working())
            time.sleep(pause)
            pause = min(2 * pause, _LOOK)

    def _rebalance(self) -> None:
        """Move partitions from workers that have many to workers that have few, if the set of workers has changed."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + _REBALANCE
        listed = self._cluster.listed()
        held: dict[str, list[int]] = {worker: [] for worker in listed}
        for placed in self._shards.values():
            held.setdefault(placed.worker, []).extend(placed.numbers)
        if listed == self._seen or not held.keys() <= listed:
            return
        self._cluster.check_packages(listed - self._seen)
        self._seen = listed
        donors = set()
        for donor, receiver, number in moves(held):
            donors.add(donor)
            self._load([number], receiver)
        changed = [name for name, placed in self._shards.items() if placed.worker in donors]
        self._form([number for name in changed for number in self._shards.pop(name).numbers])


def moves(held: dict[str, list[int]]) -> list[tuple[str, str, int]]:
    """Return which partitions move so that no worker has many more than others: from, to, number.

    Parameters
    ----------
    held : dict
        Partitions of each worker; modified.
    """
    share = -(-sum(map(len, held.values())) // len(held))
    found = []
    for donor in sorted(held):
        # A partition that moves is read again: small differences stay.
        if len(held[donor]) <= share + share // 4:
            continue
        while len(held[donor]) > share:
            receiver = min(sorted(held), key=lambda worker: len(held[worker]))
            held[receiver].append(held[donor].pop())
            found.append((donor, receiver, held[receiver][-1]))
    return found


def _checked(worker: str, found: Any) -> Any:
    if isinstance(found, Failure):
        found.error.add_note(f"The worker is {worker}.")
        raise found.error
    return found


def _too_many() -> RuntimeError:
    return RuntimeError(
        f"workers must stay for the time of a request; got {_ATTEMPTS} losses of workers or partitions during one. "
        "Partitions are lost without their worker if its memory is not sufficient"
    )
