"""Resident memory while a stream that is far larger than memory should hold goes by.

First a generated stream, batch by batch, through ``MiniBatchClassifier.partial_fit``: nothing of it is on disk, and
nothing is kept by the caller. Then files, written for the purpose and deleted afterwards, through
``rocmax.data.iter_batches`` in shuffled order into ``partial_fit``. Each runs in a process of its own. Resident memory
is read from ``/proc``, so the script needs Linux. ``--gigabytes`` and ``--file-gigabytes`` set the sizes.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sklearn.datasets import dump_svmlight_file

from benchmarks._shared.results import markdown, publish
from rocmax import MiniBatchClassifier
from rocmax.data import iter_batches

N_FEATURES = 50
BATCH = 20_000
# Lines of a table, evenly spread over the stream.
LINES = 10
# Parts of the size asked for: parsing svmlight takes much longer.
FORMATS = {"csv": 1.0, "parquet": 1.0, "svmlight": 0.3}


def resident() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak() -> float:
    """Return the largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def rows(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian rows of which one in twenty is positive, and shifted."""
    y = rng.random(size) < 0.05
    X = rng.standard_normal((size, N_FEATURES))
    X[:, :5] += y[:, np.newaxis]
    return X, y.astype(np.int64)


def watch(
    batches: Iterator[tuple[np.ndarray, np.ndarray]], total: float, size: Callable[..., float]
) -> list[list[str]]:
    """Consume the batches; return lines of amount read, rows, resident memory, its peak, and seconds."""
    model = MiniBatchClassifier("partial_auc", reservoir_size=500, random_state=0)
    start, table, done, n_rows = time.perf_counter(), [], 0.0, 0
    for X, y in batches:
        model.partial_fit(X, y, classes=[0, 1])
        done += size(X)
        n_rows += len(y)
        if done >= total * (len(table) + 1) / LINES * (1 - 1e-9):
            seconds = time.perf_counter() - start
            table.append([f"{done / 1e9:.2f}", f"{n_rows:,}", f"{resident():.0f}", f"{peak():.0f}", f"{seconds:.0f}"])
            print(" | ".join(table[-1]), flush=True)
    return table


def generated(gigabytes: float) -> list[list[str]]:
    """Return the lines of the generated stream."""
    rng = np.random.default_rng(0)
    n_batches = int(np.ceil(gigabytes * 1e9 / (BATCH * N_FEATURES * 8)))
    return watch((rows(rng, BATCH) for _ in range(n_batches)), gigabytes * 1e9, lambda X: X.nbytes)


def write(path: Path, size: float) -> int:
    """Write a file of about a size, block by block, and return its number of rows."""
    rng = np.random.default_rng(0)
    X, y = rows(rng, 100_000)
    X = X.round(4)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(N_FEATURES)}, "y": y})
    n_rows = 0
    if path.suffix == ".parquet":
        with pa.parquet.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
            while n_rows * N_FEATURES * 8 < size:
                writer.write_table(table)
                n_rows += len(y)
        return n_rows
    block = io.BytesIO()
    if path.suffix == ".csv":
        pa.csv.write_csv(table, block)
    else:
        dump_svmlight_file(X, y, block, zero_based=False)
    header, newline, body = block.getvalue().partition(b"\n") if path.suffix == ".csv" else (b"", b"", block.getvalue())
    with path.open("wb") as stream:
        stream.write(header + newline)
        while stream.tell() < size:
            stream.write(body)
            n_rows += len(y)
    return n_rows


def from_file(path: Path, n_rows: int) -> list[list[str]]:
    """Return the lines of a file; the amount is in bytes of the file."""
    target = {"n_features": N_FEATURES} if path.suffix == ".svmlight" else {"target": "y"}
    batches = iter_batches(path, batch_size=BATCH, buffer_size=100_000, random_state=0, **target)
    per_row = path.stat().st_size / n_rows
    return watch(batches, per_row * n_rows, lambda X: per_row * X.shape[0])


def alone(task: Callable[..., list[list[str]]], *arguments: object) -> list[list[str]]:
    """Run a task in a new process, so that its peak is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(task, arguments)


def main() -> None:
    """Run all streams and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10.5, help="size of the generated stream")
    parser.add_argument("--file-gigabytes", type=float, default=3.0, help="size of each file; 0 leaves the files out")
    args = parser.parse_args()
    header = ["GB read", "rows", "resident, MB", "peak, MB", "s"]
    sections = [
        f"Batches of {BATCH:,} rows of {N_FEATURES} features in double precision; the model keeps 500 positives, "
        "10,000 rows for its threshold, and a batch. Resident memory is that of the whole process, most of which is "
        "the interpreter with its libraries.",
        f"## Generated stream of {args.gigabytes:g} GB\n\n" + markdown(header, alone(generated, args.gigabytes)),
    ]
    for kind, part in FORMATS.items() if args.file_gigabytes else ():
        with tempfile.TemporaryDirectory() as folder:
            needed = 1.5e9 * args.file_gigabytes
            free = shutil.disk_usage(folder).free
            if free < needed:
                raise SystemExit(f"the files need {needed / 1e9:.1f} GB in {folder}; {free / 1e9:.1f} GB are free")
            path = Path(folder, f"stream.{kind}")
            n_rows = write(path, part * args.file_gigabytes * 1e9)
            table = alone(from_file, path, n_rows)
            title = f"## {kind}, {path.stat().st_size / 1e9:.2f} GB, shuffled within 100,000 rows"
            sections.append(f"{title}\n\n{markdown(header, table)}")
    quick = args.gigabytes < 10 or args.file_gigabytes == 0
    publish("stream_memory", "Memory while a stream goes by", sections, quick=quick)


if __name__ == "__main__":
    main()
