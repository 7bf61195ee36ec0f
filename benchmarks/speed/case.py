"""A case of the speed page: two calls on the same data, which take turns in one process."""

from __future__ import annotations

import resource
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks._shared.results import cpu_time


class Figures(NamedTuple):
    """CPU seconds of rocmax and of its peer, growth of the peak memory in MB during the call of rocmax, and remarks."""

    seconds: float
    peer_seconds: float
    megabytes: float
    remark: str = ""


class Case(NamedTuple):
    """A name, what it is compared with, the largest ratio that is the goal (None: no goal), and what measures it."""

    name: str
    peer: str
    goal: float | None
    measure: Callable[[], Figures | None]


def side_by_side(
    ours: Callable[[], Any], peer: Callable[[], Any], remark: Callable[[Any, Any], str], budget: float = 6.0
) -> Figures:
    """Call both, in turns while there is time; return the least CPU seconds of each. ``remark`` gets both results."""
    warnings.simplefilter("ignore")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, found = cpu_time(ours)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    peer_seconds, other = cpu_time(peer)
    spent = first = seconds + peer_seconds
    while spent + first <= budget:
        seconds = min(seconds, again := cpu_time(ours)[0])
        peer_seconds = min(peer_seconds, and_again := cpu_time(peer)[0])
        spent += again + and_again
    return Figures(seconds, peer_seconds, grown, remark(found, other))
