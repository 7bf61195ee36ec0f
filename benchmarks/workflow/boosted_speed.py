"""Time of ``rocmax fit --model boosted`` on 100,000 rows and 50 columns, against 300 rounds of LightGBM.

LightGBM reads the same parquet file and trains 300 rounds with its defaults on the rows that ``rocmax fit`` trains on
(three quarters). Both are whole processes with one thread, in turns; the table has the least CPU time of each, which
another load on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from sklearn.datasets import make_classification

from benchmarks._shared.results import markdown, publish

PLAIN = """
import sys
import lightgbm, pandas as pd
from sklearn.model_selection import train_test_split
table = pd.read_parquet(sys.argv[1])
X, _, y, _ = train_test_split(table.drop(columns="label"), table["label"], test_size=0.25, stratify=table["label"])
lightgbm.LGBMClassifier(n_estimators=300, verbose=-1).fit(X, y)
"""


def seconds(command: list[str]) -> float:
    """Return the CPU time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    subprocess.run(command, check=True, capture_output=True, env=os.environ | threads)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    X, y = make_classification(
        args.rows, 50, n_informative=15, n_clusters_per_class=4, weights=[0.95], flip_y=0.02, random_state=0
    )
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder) / "table.parquet", Path(folder) / "model.rocmax"
        pd.DataFrame(X, columns=[f"x{i}" for i in range(50)]).assign(label=y).to_parquet(path)
        rocmax = [sys.executable, "-m", "rocmax", "fit", str(path), "--target", "label", "--positive", "1"]
        commands = {
            "LightGBM, 300 rounds": [sys.executable, "-c", PLAIN, str(path)],
            "rocmax fit --model boosted": [*rocmax, "--max-fpr", "0.01", "--model", "boosted", "--out", str(model)],
            "rocmax fit (auto)": [*rocmax, "--max-fpr", "0.01", "--out", str(model)],
        }
        taken = {name: [] for name in commands}
        for _ in range(args.repeats):
            for name, command in commands.items():
                taken[name].append(seconds(command))
                print(f"{name}: {taken[name][-1]:.1f} s", flush=True)
    least = {name: min(values) for name, values in taken.items()}
    base = least["LightGBM, 300 rounds"]
    rows = [[name, f"{value:.1f}", f"{value / base:.1f}"] for name, value in least.items()]
    text = f"{args.rows} rows, 50 columns, 5 % positives, parquet; least CPU time of {args.repeats} runs, one thread."
    publish("boosted_speed", "Time of a boosted fit", [text, markdown(["process", "seconds", "ratio"], rows)])


if __name__ == "__main__":
    main()
