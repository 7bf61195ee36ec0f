"""The command line on large tables: reading against pandas, `fit` against logistic regression, memory of `predict`.

`fit` is tuned, as by default, and logistic regression is not.

``python -m benchmarks.peers.command_line [--repeats 3]`` writes benchmarks/results/command_line.md. Contestants
alternate in one run, so that a loaded machine slows both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from rocmax.data import read_table

OUT = Path(__file__).parents[1] / "results" / "command_line.md"
ROCMAX = str(Path(sys.executable).with_name("rocmax"))
N_ROWS, N_FEATURES, N_LONG = 100_000, 50, 5_000_000

# The same pipeline and split, with pandas and logistic regression.
PEER = """
import sys
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from rocmax.tables.preprocess import common_levels, preprocessing
frame = pd.read_csv(sys.argv[1])
X, y = frame.drop(columns="label"), frame["label"].to_numpy()
X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
kinds = {name: "number" if dtype.kind == "f" else "text" for name, dtype in X.dtypes.items()}
model = make_pipeline(preprocessing(kinds, common_levels(X, kinds)), LogisticRegression(max_iter=1000)).fit(X, y)
print(roc_auc_score(y_test, model.decision_function(X_test)))
"""
MEMORY = """
import resource, sys
from rocmax.cli import main
try: main()
finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
"""


def timed(call, clock):
    start = clock()
    call()
    return clock() - start


def make_tables(numbers, mixed):
    """Write the table of numbers, and one with ten columns of text and some fields missing instead."""
    rng = np.random.default_rng(0)
    y = rng.random(N_ROWS) < 0.05
    X = rng.normal(size=(N_ROWS, N_FEATURES)) + 0.3 * y[:, None] * (np.arange(N_FEATURES) < 10)
    frame = pd.DataFrame(X.round(5), columns=[f"x{i}" for i in range(N_FEATURES)])
    frame.assign(label=y.astype(int)).to_csv(numbers, index=False)
    for name in frame.columns[-10:]:
        frame[name] = rng.choice(["red", "green", "blue", "a longer name"], N_ROWS)
    frame = frame.mask(rng.random(frame.shape) < 0.02)
    frame.assign(label=y.astype(int)).to_csv(mixed, index=False)


def run(*args):
    return subprocess.run([*map(str, args)], check=True, capture_output=True, text=True)


def predict_long(folder, table):
    """Time and peak memory of scoring files of two sizes."""
    lines = table.read_text().splitlines(keepends=True)
    small = [line.split(",")[:5] for line in lines]
    head = ",".join(small[0]) + ",label\n"
    train = [",".join(row) + "," + line.rpartition(",")[2] for row, line in zip(small[1:], lines[1:], strict=True)]
    (folder / "train.csv").write_text(head + "".join(train[:20_000]))
    options = ["--target", "label", "--max-fpr", "0.05", "--model", "linear", "--out", folder / "m.rocmax"]
    run(ROCMAX, "fit", folder / "train.csv", *options)
    block, rows = "".join(train), []
    for size in (N_LONG // 5, N_LONG):
        with (folder / "long.csv").open("w") as file:
            file.write(head)
            for _ in range(size // N_ROWS):
                file.write(block)
        command = [sys.executable, "-c", MEMORY, "predict", folder / "m.rocmax", folder / "long.csv"]
        start = time.perf_counter()
        done = run(*command, "--out", folder / "scores.csv")
        seconds = time.perf_counter() - start
        rows.append((size, (folder / "long.csv").stat().st_size / 1e6, seconds, float(done.stderr.split()[-1])))
    return rows


def race(contestants, repeats, clock):
    """Return the median time of each, taken in turns."""
    times = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, call in contestants.items():
            times[name].append(timed(call, clock))
    return {name: median(found) for name, found in times.items()}


def read_rows(tables, repeats):
    text = ""
    for kind, table in tables.items():
        calls = {"rocmax": partial(read_table, table, target="label"), "pandas": partial(pd.read_csv, table)}
        found = race(calls, repeats, time.process_time)
        ratio = found["rocmax"] / found["pandas"]
        text += f"| reading {kind}: `rocmax.data.read_table` | {found['rocmax']:.3f} | {ratio:.2f} |\n"
        text += f"| reading {kind}: `pandas.read_csv` | {found['pandas']:.3f} | 1 |\n"
    return text


def fit_rows(folder, table, repeats):
    calls = {"peer": partial(run, sys.executable, "-c", PEER, table)}
    for limit in ("0.05", "0.01"):
        options = ["--target", "label", "--max-fpr", limit, "--model", "linear", "--out", folder / "model.rocmax"]
        calls[f"`rocmax fit --model linear --max-fpr {limit}`"] = partial(run, ROCMAX, "fit", table, *options)
    calls["`rocmax fit --model linear --max-fpr 0.01 --no-tune`"] = partial(
        run, ROCMAX, "fit", table, *options, "--no-tune"
    )
    found = race(calls, repeats, time.perf_counter)
    peer = found.pop("peer")
    text = "".join(f"| {name}, the whole command | {time:.1f} | {time / peer:.2f} |\n" for name, time in found.items())
    return text + f"| a script with pandas and logistic regression, same preprocessing and split | {peer:.1f} | 1 |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = {"numbers": folder / "table.csv", "mixed columns": folder / "mixed.csv"}
        make_tables(*tables.values())
        text = f"""# The command line on large tables

`python -m benchmarks.peers.command_line --repeats {repeats}`: medians of {repeats} runs ({5 * repeats} of reading),
taken in turns. Reading is measured in CPU time, commands by the clock.

| {N_ROWS:,} rows, {N_FEATURES} features, csv | seconds | ratio |
|---|---|---|
{read_rows(tables, 5 * repeats)}{fit_rows(folder, tables["numbers"], repeats)}
| `rocmax predict`, rows | file, MB | seconds | peak memory, MB |
|---|---|---|---|
"""
        for size, mb, seconds, peak in predict_long(folder, tables["numbers"]):
            text += f"| {size:,} | {mb:.0f} | {seconds:.0f} | {peak:.0f} |\n"
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
