"""CPU seconds of `rocmax fit` while other processes keep all cores busy, by the number of threads.

``python -m benchmarks.workflow.threads [--repeats 3]`` writes benchmarks/results/threads.md. The tables are telco-churn
and bank-full, in the folder tables of the data (the environment variable ROCMAX_DATA), and a generated one that is
large enough for more than one thread.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import isinf, isnan
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from benchmarks._shared.data import data_directory
from benchmarks._shared.results import ONE_THREAD, command_cpu_time, machine, markdown
from rocmax._threads import WORK_PER_THREAD

OUT = Path(__file__).parents[1] / "results" / "threads.md"
TABLES = data_directory() / "tables"
GOAL = 1.3
BUSY = "while True: pass"
CORES = joblib.cpu_count()
# What `rocmax fit` did before: as many threads as cores, which wait actively.
WAYS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "one thread": ((), ONE_THREAD),
    "default": ((), {}),
    (ACTIVE := "all cores, active"): (("--threads", str(CORES)), {"OMP_WAIT_POLICY": "ACTIVE"}),
}
# It is stopped after so many times the CPU seconds of one thread.
MOST = 3


def generated(rows: int) -> pd.DataFrame:
    """Return a table with 20 columns of numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 20)).round(3)
    label = X[:, 0] + X[:, 1] * X[:, 2] + rng.logistic(size=rows) > 2
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(20)]).assign(label=label.astype(int))


def cases(folder: Path, large: int) -> dict[str, list[Any]]:
    """Return the commands, by name."""
    telco = pd.read_csv(TABLES / "telco-churn.csv.gz").head(1_666)
    telco.to_csv(folder / "telco.csv", index=False)
    generated(large).to_parquet(folder / "large.parquet")
    limit = ["--max-fpr", "0.05"]
    return {
        "telco-churn, 1,666 rows": [folder / "telco.csv", "--target", "Churn", *limit],
        "bank-full, 45,211 rows": [TABLES / "bank-full.csv.gz", "--target", "term deposit", *limit],
        f"generated, {large:,} rows, boosted": [
            *(folder / "large.parquet", "--target", "label"), *limit, "--model", "boosted", "--no-tune"
        ],
    }  # fmt: skip


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep all cores busy while the block runs."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(CORES)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main() -> None:
    """Time every case in turn and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, default=250_000, help="rows of the generated table")
    parser.add_argument("--tables", type=int, default=3, help="number of tables, from the smallest")
    args = parser.parse_args()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder, busy_cores():
        out = Path(folder, "model.rocmax")
        for name, command in list(cases(Path(folder), args.large).items())[: args.tables]:
            seconds: dict[str, list[float]] = {way: [] for way in WAYS}
            for repeat in range(args.repeats):
                for way, (options, variables) in WAYS.items():
                    if way == ACTIVE and (repeat or rows):
                        continue  # it takes long, and is for comparison only
                    most = round(MOST * seconds["one thread"][0]) if way == ACTIVE else None
                    whole = ("fit", *command, *options, "--out", out)
                    seconds[way].append(command_cpu_time(*whole, variables=variables, most=most))
                    print(name, way, seconds[way], flush=True)
            rows.append(row(name, seconds))
            write(rows, args.repeats)  # after each table, because the later ones take long


def row(name: str, seconds: dict[str, list[float]]) -> list[str]:
    """Return the row of a table."""
    least = [min(taken, default=float("nan")) for taken in seconds.values()]
    ratio = least[1] / least[0]
    shown = ["not run" if isnan(value) else f"over {MOST} x" if isinf(value) else f"{value:.1f}" for value in least]
    return [name, *shown, f"{ratio:.2f}", "met" if ratio <= GOAL else "not met"]


def write(rows: list[list[str]], repeats: int) -> None:
    """Write the page."""
    columns = ["table", *WAYS, "default / one thread", f"goal: at most {GOAL:g}"]
    text = f"""# CPU seconds of a fit on a busy machine

`python -m benchmarks.workflow.threads`: `rocmax fit --max-fpr 0.05`, whole commands, while {CORES} other processes keep
the {CORES} cores busy; the least of {repeats} runs of each in turn. "One thread" sets `OMP_NUM_THREADS=1`. The default
takes a thread for each {WORK_PER_THREAD:,} values of the table, and threads wait passively. "All cores, active" is
`--threads {CORES}` with `OMP_WAIT_POLICY=ACTIVE`, run once, for the first table, and stopped after {MOST} times (x) the
CPU seconds of one thread.

{machine()}

{markdown(columns, rows)}
"""
    OUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
