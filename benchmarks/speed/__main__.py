"""CPU time and memory of what users wait for, next to what they would use instead: ``python -m benchmarks.speed``.

Each module of this folder has a list ``CASES``. A case runs in a process of its own, with one thread, and both sides
take turns in it. Figures are kept in ``results/speed.jsonl``, so an interrupted run goes on where it stopped;
``--only wide`` runs the cases of one module again, and a part of a case's name after it chooses among them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys

import benchmarks.speed
from benchmarks._shared.kept import forget, kept, running_time
from benchmarks._shared.results import ONE_THREAD, markdown, publish
from benchmarks.speed.case import Case

MODULES = sorted(m.name for m in pkgutil.iter_modules(benchmarks.speed.__path__) if m.name not in ("__main__", "case"))


def cases(module: str) -> list[Case]:
    """Return the cases of a module."""
    found: list[Case] = importlib.import_module(f"benchmarks.speed.{module}").CASES
    return found


def in_own_process(module: str, name: str) -> list[object] | None:
    """Measure a case in a process of its own, with one thread; None without its data."""
    command = [sys.executable, "-m", "benchmarks.speed", "--case", module, name]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, text=True, check=True)
    found: list[object] | None = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run the cases and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs=2, metavar=("MODULE", "NAME"), help="measure one case, print it as JSON")
    parser.add_argument("--only", nargs="+", metavar=("MODULE", "NAME"), help="measure the cases of one module again")
    args = parser.parse_args()
    if args.case:
        (measure,) = (case.measure for case in cases(args.case[0]) if case.name == args.case[1])
        print(json.dumps(measure()))
        return
    if args.only:
        module, part = args.only[0], " ".join(args.only[1:])
        forget("speed", lambda of, name: of == module and part in name)
    jobs = [(module, case.name) for module in MODULES for case in cases(module)]
    if args.only:
        jobs = [job for job in jobs if job[0] == args.only[0]]
    kept("speed", jobs, in_own_process)
    found, _ = kept("speed", [(m, c.name) for m in MODULES for c in cases(m)], lambda *_: None)
    total, rows = 0.0, []
    for module in MODULES:
        for case in cases(module):
            if (module, case.name) in found:
                seconds, peer, megabytes, remark = found[module, case.name]
                total += seconds + peer
                ratio = seconds / peer
                verdict = "" if case.goal is None else "met" if ratio <= case.goal else "missed"
                goal = "" if case.goal is None else f"{case.goal:g}"
                times = (f"{seconds:.2f}", f"{peer:.2f}", f"{ratio:.2f}", goal, verdict, f"{megabytes:,.0f}")
                rows.append((case.name, case.peer, *times, remark))
    header = ("case", "peer", "CPU s", "peer, CPU s", "ratio", "goal", "", "MB beyond the data", "remarks")
    publish(
        "speed",
        "What users wait for",
        [
            running_time(total),
            "`python -m benchmarks.speed`: each case in a process of its own, with one thread; both sides take turns, "
            "and the least CPU time of each counts.",
            markdown(header, rows),
        ],
    )


if __name__ == "__main__":
    main()
