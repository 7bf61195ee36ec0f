"""CPU time and memory of linear fits as the number of rows grows, next to logistic regression.

Each case runs in a process of its own: CPU time of ``fit`` in single-threaded mode, the least of several interleaved
repeats, as a multiple of scikit-learn's ``LogisticRegression()`` on the same rows, and the growth of the peak memory of
the process during the first fit. Finished cases are kept in a file, so an interrupted run can be continued.

Goals of the solver are for a gap of 1e-3 times the objective. The solver goes on until the gap is also at most 1e-3
times the decrease of the objective from zero weights, so two times and numbers of passes are given: up to the first
iteration with that gap, and to the end.

The sets ``synthetic`` have independent Gaussian features and the top 9 % of a noisy linear score as positives;
``shifted`` and ``float32`` are two Gaussian classes of equal covariance, on which small windows collapse to zero
weights.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

import rocmax
from benchmarks._shared.data import load_real, synthetic
from benchmarks._shared.kept import running_time
from benchmarks._shared.results import RESULTS, cpu_time, markdown, publish
from rocmax.losses import PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import SmoothedNewton
from rocmax.solvers.base import Progress

STORE = RESULTS / "scale_speed.jsonl"
TOL, C = 1e-3, 100.0
SIZES = (10_000, 100_000, 1_000_000, 5_000_000, 10_000_000)
HEADER = (
    "data",
    "fit",
    "CPU s",
    "x LR",
    "goal",
    "passes",
    "x LR, end",
    "passes, end",
    "gap, end",
    "bytes a row",
    "goals",
)
# Goals for the passes at a million rows, and for the memory of fits on float32 rows, where fixed costs do not count.
MOST_PASSES, PASSES_AT = 6, "synthetic 1e6"
MOST_BYTES, BYTES_FROM = 60, 1_000_000
# Goals for the time of the estimators are for at least this number of rows; fewer rows are for the growth.
TIMES_FROM = 100_000
MOST_GROWTH = 1.05

# Multiples of the time of logistic regression that each fit should not exceed: solver on its own, then estimators.
WINDOWS = {"[0, 1]": (0.0, 1.0), "[0, 0.1]": (0.0, 0.1), "[0.02, 0.05]": (0.02, 0.05)}
SOLVER_GOALS = {
    "synthetic 1e5": {"[0, 1]": 1.0, "[0, 0.1]": 1.0},
    "synthetic 1e6": {"[0, 1]": 0.5, "[0, 0.1]": 0.5, "[0.02, 0.05]": 1.0},
    "synthetic 1e7": {"[0, 1]": 0.5, "[0, 0.1]": 0.5},
    "shifted 1e6": {"[0, 1]": 1.0, "[0, 0.1]": 1.0},
    "ijcnn1": {"[0, 1]": 1.0, "[0, 0.1]": 1.0},
    "a9a": {"[0, 1]": 1.0},
    "letter": {"[0, 1]": 1.0, "[0, 0.1]": 1.0},
    "cod-rna": {"[0, 1]": 1.0, "[0, 0.1]": 1.0},
}
ESTIMATORS: dict[str, tuple[Callable[[], Any], float]] = {
    "AUCClassifier(C=100)": (lambda: rocmax.AUCClassifier(C=C), 1.5),
    "PartialAUCClassifier(max_fpr=0.05)": (lambda: rocmax.PartialAUCClassifier(max_fpr=0.05), 4.0),
    "PartialAUCClassifier(max_fpr=0.05, loss='tight', C=100)": (
        lambda: rocmax.PartialAUCClassifier(max_fpr=0.05, loss="tight", C=C),
        5.0,
    ),
}


def shifted(n_rows: int, n_features: int, positives: float, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return two Gaussian classes with equal isotropic covariance; the AUC of the best linear score is 0.86."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), dtype=dtype)
    y = rng.random(n_rows) < positives
    X[y] += dtype(1.5 / np.sqrt(n_features))
    return X, y.astype(np.int64)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name.startswith("float32"):
        return shifted(int(float(name.split()[1])), 20, 0.05, np.float32)
    if name == "shifted 1e6":
        return shifted(1_000_000, 50, 0.09, np.float64)
    if name.startswith("synthetic"):
        rows = int(float(name.split()[1]))
        data = synthetic(rows, {100_000: 100, 1_000_000: 50, 10_000_000: 20}[rows])
        if rows == 10_000_000:
            data = data._replace(X=data.X.astype(np.float32))
    else:
        data = load_real(name)
        if data is None:
            raise SystemExit(f"no file of {name}")
    return data.X, data.y


class Found(NamedTuple):
    """Outcome of a fit: seconds and passes up to the gap of the goals and to the end, last gap, and zero weights."""

    seconds: float
    passes: int
    end_seconds: float
    end_passes: int
    gap: float
    zero: bool


def fit_of(fit: str, X: np.ndarray, y: np.ndarray) -> Callable[[], Found]:
    """Return a call that fits once."""
    if fit in WINDOWS:

        def solve() -> Found:
            started, reached = time.process_time(), []

            def watch(progress: Progress) -> None:
                if progress.objective - progress.bound <= TOL * progress.objective:
                    reached.append((time.process_time() - started, progress.passes))

            loss = PartialAUCTight(*WINDOWS[fit]).bind(y)
            result = SmoothedNewton(TOL, 100).solve(as_operator(X), loss, SquaredL2(C), callback=watch)
            end = time.process_time() - started, result.trace[-1].passes
            return Found(*(reached or [end])[0], *end, result.gap / result.objective, not result.w.any())

        return solve

    def estimate() -> Found:
        started = time.process_time()
        model = ESTIMATORS[fit][0]().fit(X, y)
        end = time.process_time() - started, model.trace_[-1].passes
        return Found(*end, *end, float(model.dual_gap_ / model.objective_), not model.coef_.any())

    return estimate


def measure(name: str, fit: str) -> dict[str, Any]:
    """Measure one case in this process."""
    started = time.process_time()
    warnings.simplefilter("ignore")
    X, y = load(name)
    rocmax.AUCClassifier().fit(X[:500], np.arange(500) % 2)
    LogisticRegression().fit(X[:500], np.arange(500) % 2)
    call, before = fit_of(fit, X, y), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = [call()]
    memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / y.size
    logistic = cpu_time(lambda: LogisticRegression().fit(X, y))[0]
    for _ in range(int(np.clip(5.0 / (found[0].end_seconds + logistic), 1, 10))):
        logistic = min(logistic, cpu_time(lambda: LogisticRegression().fit(X, y))[0])
        found.append(call())
    least = {key: min(getattr(each, key) for each in found) for key in ("seconds", "end_seconds")}
    row = {"data": name, "fit": fit, "rows": y.size, **found[0]._replace(**least)._asdict(), "logistic": logistic}
    return {**row, "memory": memory, "took": time.process_time() - started}


def cases(sizes: tuple[int, ...]) -> list[tuple[str, str]]:
    solver = [(name, fit) for name, goals in SOLVER_GOALS.items() for fit in goals]
    return solver + [(f"float32 {size:.0e}".replace("e+0", "e"), fit) for size in sizes for fit in ESTIMATORS]


def goal(row: dict[str, Any]) -> float | None:
    """Return the goal for the time; None for an estimator on few rows."""
    if row["fit"] in WINDOWS:
        return SOLVER_GOALS[row["data"]][row["fit"]]
    return ESTIMATORS[row["fit"]][1] if row["rows"] >= TIMES_FROM else None


def goals(row: dict[str, Any]) -> dict[str, bool]:
    """Return the goals of a case, and whether it meets them."""
    most, found = goal(row), {}
    if most is not None:
        found[f"time <= {most:g} x LR"] = row["seconds"] <= most * row["logistic"] and not row["gap"] > TOL
    if row["data"] == PASSES_AT:
        found[f"passes <= {MOST_PASSES}"] = row["passes"] <= MOST_PASSES
    if row["fit"] in ESTIMATORS and row["rows"] >= BYTES_FROM:
        found[f"bytes a row <= {MOST_BYTES}"] = row["memory"] <= MOST_BYTES
    return found


def describe(row: dict[str, Any]) -> tuple[str, ...]:
    missed = [name for name, met in goals(row).items() if not met]
    verdict = "not met: " + ", ".join(missed) if missed else "met" if goals(row) else "none"
    gap = "none" if np.isnan(row["gap"]) else f"{row['gap']:.1e}"
    note = f"{verdict}; collapsed: w = 0" if row["zero"] else verdict
    ratio, end = (f"{row[key] / row['logistic']:.2f}" for key in ("seconds", "end_seconds"))
    wanted = "" if goal(row) is None else f"{goal(row):g}"
    cells = (row["data"], row["fit"], f"{row['seconds']:.3f}", ratio, wanted, str(row["passes"]))
    return (*cells, end, str(row["end_passes"]), gap, f"{row['memory']:.0f}", note)


def growth(rows: list[dict[str, Any]]) -> str:
    """Return the slope of the logarithm of the time against that of the number of rows, for each estimator."""
    lines = []
    for fit in ESTIMATORS:
        of_fit = [row for row in rows if row["fit"] == fit]
        if len(of_fit) > 1:
            slope = np.polyfit(*(np.log([row[key] for row in of_fit]) for key in ("rows", "seconds")), 1)[0]
            verdict = "met" if slope <= MOST_GROWTH else "not met"
            lines.append(f"- {fit}: {slope:.2f} (goal: at most {MOST_GROWTH}, {verdict})")
    return "\n".join(["## Slope of log time against log rows", "", *lines])


def summary(rows: list[dict[str, Any]]) -> str:
    """Count the goals that are met."""
    found = [met for row in rows for met in goals(row).values()]
    return f"{sum(found)} of {len(found)} goals on time, passes and memory are met."


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sets only; nothing is kept")
    parser.add_argument(
        "--report", action="store_true", help="measure nothing; write the table of the cases kept so far"
    )
    parser.add_argument("--case", nargs=2, metavar=("DATA", "FIT"), help="measure one case and print it as JSON")
    args = parser.parse_args(argv)
    if args.case:
        print(json.dumps(measure(*args.case)))
        return
    stored = STORE.read_text(encoding="utf-8").splitlines() if STORE.exists() and not args.quick else []
    rows = [json.loads(line) for line in stored]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    wanted = [("letter", "[0, 1]"), *cases(SIZES[:1])[-3:]] if args.quick else cases(SIZES)
    open_cases = [case for case in wanted if case not in {(row["data"], row["fit"]) for row in rows}]
    while open_cases and not args.report:
        case = open_cases.pop(0)
        command = [sys.executable, "-m", "benchmarks.solvers.scale_speed", "--case", *case]
        done = subprocess.run(command, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(describe(rows[-1]), flush=True)
        if not args.quick:
            with STORE.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    took = running_time(sum(row["took"] for row in rows))
    missing = [f"Not measured yet: {'; '.join(f'{data}, {fit}' for data, fit in open_cases)}."] if open_cases else []
    sections = [took, summary(rows), *missing, markdown(HEADER, map(describe, rows)), growth(rows)]
    publish("scale_speed", "Time and memory as the number of rows grows", sections, args.quick)


if __name__ == "__main__":
    main()
