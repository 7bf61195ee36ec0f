"""CPU time and memory of the default linear fit and of its cross-validated form, next to logistic regression.

Each case runs in a process of its own, with one thread: CPU time of ``fit``, the least of several interleaved repeats,
as a multiple of that of ``LogisticRegression`` or ``LogisticRegressionCV`` on the same rows, and the growth of the peak
memory of the process during the first fit. Cases are kept in ``results/default_fit_speed.jsonl``, so an interrupted run
goes on where it stopped; ``--case`` runs one of them. The whole run takes about 3 minutes of CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from benchmarks._shared.data import standardize, synthetic
from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import cpu_time, interleaved, markdown, publish
from benchmarks._shared.tables import load, load_or_say
from benchmarks.papers.published import TARGETS
from benchmarks.solvers.scale_speed import shifted
from rocmax import PartialAUCClassifier, PartialAUCClassifierCV

# Data, window and the largest multiple of the time of logistic regression that is the goal.
CASES: list[tuple[str, float, float, float]] = [
    *((name, *window, 3.0) for name, window, _ in TARGETS),
    *((f"float32 {size} x 20", 0.0, 0.05, 4.0) for size in ("1e5", "1e6", "5e6")),
    ("cross-validation, isotropic 20000 x 50", 0.0, 0.1, 5.0),
    ("cross-validation, correlated 20000 x 50", 0.0, 0.1, 5.0),
]
MEMORY_GOAL = 60
# The default values of C of the cross-validated fit, and the starting point; and its folds.
N_VALUES, N_FOLDS = 5, 5


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of a case."""
    if name.startswith("float32"):
        return shifted(int(float(name.split()[1])), 20, 0.05, np.float32)
    if name.startswith("cross-validation, isotropic"):
        return synthetic(20_000, 50)[1:]
    if name.startswith("cross-validation"):
        X, y = make_classification(20_000, 50, n_informative=15, weights=[0.9], class_sep=0.7, random_state=0)
        return standardize(X), y
    X, y = load(name)
    return standardize(X), y


def estimators(name: str, window: tuple[float, float]) -> tuple[Any, Any]:
    """Return the default fit and the baseline of a case."""
    if name.startswith("cross-validation"):
        baseline = LogisticRegressionCV(Cs=N_VALUES, cv=N_FOLDS, max_iter=1000)
        return PartialAUCClassifierCV(*window, random_state=0), baseline
    return PartialAUCClassifier(*window), LogisticRegression(max_iter=1000)


def measure(name: str, low: float, high: float) -> list[float]:
    """Return the CPU seconds of the fit and of the baseline, and the memory in bytes per row, in this process."""
    warnings.simplefilter("ignore")
    X, y = rows_of(name)
    fit, baseline = estimators(name, (low, high))
    for model in (fit, baseline):
        model.fit(X[:500], np.arange(500) % 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    spent, _ = cpu_time(lambda: fit.fit(X, y))
    memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / y.size
    repeats = int(np.clip(6.0 / spent, 2, 10))
    times = interleaved({"fit": lambda: fit.fit(X, y), "baseline": lambda: baseline.fit(X, y)}, repeats)
    return [min(spent, times["fit"]), times["baseline"], memory]


def in_own_process(name: str, low: float, high: float) -> list[float] | None:
    """Run a case in a process of its own, with one thread; None without the data."""
    if not name.startswith(("float32", "cross-validation")) and not load_or_say(name):
        return None
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.solvers.default_fit_speed", "--case", name, str(low), str(high)]
    done = subprocess.run(command, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run the cases and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs=3, metavar=("DATA", "LOW", "HIGH"), help="measure one case, print it as JSON")
    args = parser.parse_args()
    if args.case:
        print(json.dumps(measure(args.case[0], float(args.case[1]), float(args.case[2]))))
        return
    found, _ = kept("default_fit_speed", [case[:3] for case in CASES], in_own_process)
    rows, total = [], 0.0
    for name, low, high, goal in CASES:
        if (name, low, high) not in found:
            continue
        spent, baseline, memory = found[name, low, high]
        ratio, total = spent / baseline, total + 4 * (spent + baseline)
        of_memory = f"{memory:.0f}{'' if memory <= MEMORY_GOAL else ' FAIL'}" if name.startswith("float32") else ""
        verdict = "PASS" if ratio <= goal else "FAIL"
        times = (f"{spent:.3f}", f"{baseline:.3f}", f"{ratio:.2f}", f"{goal:g}", verdict, of_memory)
        rows.append((name, f"[{low:g}, {high:g}]", *times))
    header = ("data", "window", "CPU s", "logistic, CPU s", "ratio", "goal", "", f"bytes a row (goal {MEMORY_GOAL})")
    publish(
        "default_fit_speed",
        "CPU time of the default linear fit, next to logistic regression",
        [
            running_time(total),
            "`PartialAUCClassifier()`, standardized features, all rows, next to `LogisticRegression(max_iter=1000)`; "
            f"cross-validation: `PartialAUCClassifierCV()` next to `LogisticRegressionCV(Cs={N_VALUES}, cv={N_FOLDS})`,"
            " which has as many values and folds. One thread, the least of several repeats that take turns. Memory is "
            "the growth of the peak of the process beyond the data.",
            markdown(header, rows),
        ],
    )


if __name__ == "__main__":
    main()
