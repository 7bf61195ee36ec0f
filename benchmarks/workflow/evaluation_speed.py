"""CPU seconds of `evaluate` and of `report` with two models on large tables, whole commands, and the reports' size.

``python -m benchmarks.workflow.evaluation_speed [--rows 100000 1000000]`` writes
benchmarks/results/evaluation_speed.md. The tables have four features, 5 % positives and hardly any ties; the models are
fitted to 20,000 rows for FPR <= 5 %.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._shared.results import command_cpu_time, machine, markdown

OUT = Path(__file__).parents[1] / "results" / "evaluation_speed.md"
MODELS = ("linear", "logistic")


def write_table(path, n_rows, rng):
    y = rng.random(n_rows) < 0.05
    X = rng.normal(size=(n_rows, 4)) + np.outer(y, [1.5, 0.8, 0.0, 0.0])
    pd.DataFrame(X.round(5), columns=list("abcd")).assign(label=y.astype(int)).to_csv(path, index=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    sizes = parser.parse_args().rows
    rng = np.random.default_rng(0)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "train.csv", 20_000, rng)
        models = [folder / f"{kind}.rocmax" for kind in MODELS]
        for kind, model in zip(MODELS, models, strict=True):
            options = ["--target", "label", "--positive", "1", "--max-fpr", "0.05", "--no-tune", "--model", kind]
            command_cpu_time("fit", folder / "train.csv", *options, "--out", model)
        for size in sizes:
            write_table(folder / "test.csv", size, rng)
            one = command_cpu_time("evaluate", models[0], folder / "test.csv")
            two = command_cpu_time("report", *models, folder / "test.csv", "--out", folder / "page.html")
            kilobytes = (folder / "page.html").stat().st_size / 1000
            rows.append([f"{size:,}", f"{one:.1f}", f"{two:.1f}", f"{kilobytes:.0f}"])
    table = markdown(["rows", "`rocmax evaluate`", "`rocmax report`, two models", "size of the report, kB"], rows)
    text = f"""# CPU seconds of an evaluation

`python -m benchmarks.workflow.evaluation_speed --rows {" ".join(map(str, sizes))}`: one run of each whole command,
on one thread: the start of the program, reading, scoring, four measures with intervals from 1,000 resamples; the report
has paired tests, too.

{machine()}

{table}
"""
    OUT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
