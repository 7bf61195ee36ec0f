"""The command line on large tables: reading against pandas, `fit` against logistic regression, memory of `predict`.

``python benchmarks/cli.py [--repeats 3]`` writes benchmarks/results/cli.md. Contestants alternate in one run, so that a
loaded machine slows both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from rocmax.data import read_table

OUT = Path(__file__).parent / "results" / "cli.md"
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
from rocmax.tabular import preprocessing
frame = pd.read_csv(sys.argv[1])
X, y = frame.drop(columns="label"), frame["label"].to_numpy()
X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
model = make_pipeline(preprocessing(X), LogisticRegression(max_iter=1000)).fit(X, y)
print(roc_auc_score(y_test, model.decision_function(X_test)))
"""
MEMORY = """
import resource, sys
from rocmax.cli import main
try: main()
finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
"""


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def make_table(path):
    rng = np.random.default_rng(0)
    y = rng.random(N_ROWS) < 0.05
    X = rng.normal(size=(N_ROWS, N_FEATURES)) + 0.3 * y[:, None] * (np.arange(N_FEATURES) < 10)
    frame = pd.DataFrame(X.round(5), columns=[f"x{i}" for i in range(N_FEATURES)])
    frame.assign(label=y.astype(int)).to_csv(path, index=False)


def run(*args):
    return subprocess.run([*map(str, args)], check=True, capture_output=True, text=True)


def predict_long(folder, table):
    """Time and peak memory of scoring files of two sizes."""
    lines = table.read_text().splitlines(keepends=True)
    small = [line.split(",")[:5] for line in lines]
    head = ",".join(small[0]) + ",label\n"
    train = [",".join(row) + "," + line.rpartition(",")[2] for row, line in zip(small[1:], lines[1:], strict=True)]
    (folder / "train.csv").write_text(head + "".join(train[:20_000]))
    run(ROCMAX, "fit", folder / "train.csv", "--target", "label", "--max-fpr", "0.05", "--out", folder / "m.rocmax")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "table.csv"
        make_table(table)
        times = {"rocmax read": [], "pandas read": [], "rocmax fit": [], "peer": []}
        fit = [ROCMAX, "fit", table, "--target", "label", "--max-fpr", "0.05", "--out", folder / "model.rocmax"]
        for _ in range(repeats):
            for _ in range(5):
                times["rocmax read"].append(timed(lambda: read_table(table, target="label")))
                times["pandas read"].append(timed(lambda: pd.read_csv(table)))
            times["rocmax fit"].append(timed(lambda: run(*fit)))
            times["peer"].append(timed(lambda: run(sys.executable, "-c", PEER, table)))
        found = {key: median(values) for key, values in times.items()}
        ratio = found["rocmax fit"] / found["peer"]
        long = predict_long(folder, table)
    text = f"""# The command line on large tables

`python benchmarks/cli.py --repeats {repeats}`: medians of {repeats} alternating runs.

| {N_ROWS:,} rows, {N_FEATURES} features, csv | seconds | ratio |
|---|---|---|
| `rocmax.data.read_table` | {found["rocmax read"]:.2f} | {found["rocmax read"] / found["pandas read"]:.2f} |
| `pandas.read_csv` | {found["pandas read"]:.2f} | 1 |
| `rocmax fit --max-fpr 0.05`, the whole command | {found["rocmax fit"]:.1f} | {ratio:.2f} |
| a script with pandas and logistic regression, same preprocessing, same split | {found["peer"]:.1f} | 1 |

| `rocmax predict`, rows | file, MB | seconds | peak memory, MB |
|---|---|---|---|
"""
    text += "".join(f"| {size:,} | {mb:.0f} | {seconds:.0f} | {peak:.0f} |\n" for size, mb, seconds, peak in long)
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
