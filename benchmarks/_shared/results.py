"""Timing and tables shared by the benchmarks."""

from __future__ import annotations

import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

RESULTS = Path(os.environ.get("ROCMAX_RESULTS") or Path(__file__).resolve().parents[1] / "results")
ROCMAX = str(Path(sys.executable).with_name("rocmax"))


def cpu_time(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call, which another load on the machine hardly changes, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def command_cpu_time(*args: Any, variables: dict[str, str] = ONE_THREAD, most: int | None = None) -> float:
    """Run a command of rocmax, on one thread by default; return the CPU seconds that it and its children took.

    It is stopped after ``most`` CPU seconds, and the result is infinite.
    """
    others = {name: value for name, value in os.environ.items() if name not in (*ONE_THREAD, "OMP_WAIT_POLICY")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    limit = [] if most is None else ["prlimit", f"--cpu={most}"]
    command = [*limit, ROCMAX, *map(str, args)]
    done = subprocess.run(command, check=most is None, capture_output=True, env={**others, **variables})
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return float("inf")
    done.check_returncode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def interleaved(calls: dict[Any, Callable[[], Any]], repeats: int) -> dict[Any, float]:
    """Return the least CPU time of each call; the calls take turns, so that a slow spell hits all of them."""
    best: dict[Any, float] = {}
    for _ in range(repeats):
        for key, call in calls.items():
            best[key] = min(best.get(key, float("inf")), cpu_time(call)[0])
    return best


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a markdown table with aligned columns."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    text = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines]
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([text[0], rule, *text[1:]])


def with_error(values: Iterable[float], digits: int = 4, sign: str = "") -> str:
    """Return the mean of the results of several splits, and its standard error if there is more than one."""
    figures = list(values)
    error = f" ± {stdev(figures) / len(figures) ** 0.5:.{digits}f}" if len(figures) > 1 else ""
    return f"{fmean(figures):{sign}.{digits}f}{error}"


def machine() -> str:
    """Describe what the figures depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}"


def publish(name: str, title: str, sections: Iterable[str], quick: bool = False) -> None:
    """Write a report; a quick run never overwrites a full one."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'_quick' if quick else ''}.md"
    path.write_text("\n\n".join([f"# {title}", machine(), *sections]) + "\n", encoding="utf-8")
    print(f"wrote {path}")
