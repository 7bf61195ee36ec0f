"""Reading tables with many columns: CPU time against the number of columns, and preparing them for a model.

``python -m benchmarks.workflow.wide_tables [--quick]`` writes benchmarks/results/wide_tables.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from sklearn.datasets import dump_svmlight_file

from benchmarks._shared.results import interleaved, markdown, publish
from rocmax.data import iter_batches, read_columns, read_table
from rocmax.tables.preprocess import preprocessing

N_ROWS, SIZES = 12, (5_000, 20_000, 100_000)


def write(folder: Path, n_columns: int) -> dict[str, Path]:
    """Write the same numbers in three formats."""
    X, y = np.random.default_rng(0).normal(size=(N_ROWS, n_columns)).round(4), np.arange(N_ROWS) % 2
    names = [f"x{i}" for i in range(n_columns)]
    paths = {kind: folder / f"{n_columns}.{kind}" for kind in ("csv", "parquet", "svmlight")}
    with paths["csv"].open("w") as file:
        file.write(",".join([*names, "label"]) + "\n")
        for row, label in zip(X, y, strict=True):
            file.write(",".join(map(str, row)) + f",{label}\n")
    pyarrow.parquet.write_table(pa.table([*X.T, y], names=[*names, "label"]), paths["parquet"])
    dump_svmlight_file(X, y, str(paths["svmlight"]), zero_based=False)
    return paths


def calls(paths: dict[str, Path]) -> dict[str, Callable[[], Any]]:
    """Return what is measured for one number of columns."""
    csv, names = paths["csv"], read_columns(paths["csv"])
    declared = {"columns": names[:-1], "types": dict.fromkeys(names[:-1], "number")}
    table = read_table(csv, target="label").X
    kinds = dict.fromkeys(names[:-1], "number")
    return {
        "`read_columns`, csv": lambda: read_columns(csv),
        "`read_table`, csv": lambda: read_table(csv, target="label"),
        "`read_table`, csv, all types declared": lambda: read_table(csv, target="label", **declared),
        "`iter_batches`, csv, all types declared": lambda: list(iter_batches(csv, target="label", **declared)),
        "`read_table`, parquet": lambda: read_table(paths["parquet"], target="label"),
        "`read_table`, svmlight": lambda: read_table(paths["svmlight"]),
        "preprocessing of the command line": lambda: preprocessing(kinds, {}).fit_transform(table),
    }


def main() -> None:
    """Measure all sizes and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the two smaller sizes only")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    sizes = SIZES[:2] if args.quick else SIZES
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n_columns in sizes:
            for name, seconds in interleaved(calls(write(Path(folder), n_columns)), args.repeats).items():
                found.setdefault(name, []).append(seconds)
    growth = sizes[-1] / sizes[0]
    rows = [
        [name, *(f"{t:.3f}" for t in times), f"{times[-1] / times[0] / growth:.1f}"] for name, times in found.items()
    ]
    header = [f"{N_ROWS} rows", *(f"{n:,} columns, s" for n in sizes), "time per column, last to first"]
    text = (
        f"CPU seconds, the least of {args.repeats} repeats. Linear time has 1 in the last column, quadratic {growth:g}."
    )
    publish("wide_tables", "Tables with many columns", [text, markdown(header, rows)], quick=args.quick)


if __name__ == "__main__":
    main()
