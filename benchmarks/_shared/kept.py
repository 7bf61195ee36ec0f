"""Figures that are kept one by one, so that a long run can go on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks._shared.results import RESULTS, cpu_time


def kept(name: str, jobs: Iterable[tuple[Any, ...]], work: Callable[..., Any]) -> tuple[dict[Any, Any], float]:
    """Return ``work(*job)`` of each job, from ``results/<name>.jsonl`` or new, and the CPU seconds they took in all.

    A job is a tuple of texts and numbers; ``work`` returns what JSON can hold, or None to leave the job out.
    """
    path, done = RESULTS / f"{name}.jsonl", stored(name)
    wanted, total = {}, 0.0
    for job in jobs:
        if job not in done:
            seconds, found = cpu_time(lambda job=job: work(*job))
            if found is None:
                continue
            done[job] = found, round(seconds, 3)
            with path.open("a") as file:
                file.write(json.dumps([job, *done[job]]) + "\n")
            print(*job, f"{seconds:.1f} s", flush=True)
        wanted[job] = done[job][0]
        total += done[job][1]
    return wanted, total


def stored(name: str) -> dict[tuple[Any, ...], tuple[Any, float]]:
    """Return the figures of ``results/<name>.jsonl``, each with the CPU seconds it took."""
    path = RESULTS / f"{name}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {tuple(job): (found, seconds) for job, found, seconds in map(json.loads, lines)}


def forget(name: str, chosen: Callable[..., bool]) -> None:
    """Drop the figures of the jobs with ``chosen(*job)`` from ``results/<name>.jsonl``."""
    path = RESULTS / f"{name}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    path.write_text("".join(f"{line}\n" for line in lines if not chosen(*json.loads(line)[0])))


def running_time(seconds: float) -> str:
    """Return the sentence that every page starts with."""
    return f"Running time, one thread: {seconds / 60:.1f} minutes of CPU."
