"""Rounds of fits on a dask cluster: overhead, bytes, and memory of the driver, for more and more rows.

The rows are generated on two worker processes of this machine, with one thread each. The overhead of a round is its
time minus the time of the slowest worker in it. The bytes are those of the pickled request and of all answers. The
memory of the driver is the peak of what Python allocates (tracemalloc) during another fit of the same rows with a
larger tolerance, with the scheduler in the same process.
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any, NamedTuple

import dask.array as da
import distributed
import numpy as np
from sklearn.base import clone

from benchmarks._shared.results import markdown, publish
from rocmax.dask import DaskAUCClassifier, DaskPartialAUCClassifier
from rocmax.dask.cluster import DaskShards

MODELS = {
    "AUC": DaskAUCClassifier(),
    "tight [0, 0.2]": DaskPartialAUCClassifier(0.0, 0.2, loss="tight"),
}


class Round(NamedTuple):
    """Kind of a request, its time, time and processor time of its slowest worker, and its bytes out and back."""

    kind: str
    seconds: float
    work: float
    cpu: float
    sent: int
    received: int


@contextmanager
def watched() -> Iterator[list[Round]]:
    """Record the requests of fits."""
    rounds: list[Round] = []
    run = DaskShards.run

    def measured(shards: DaskShards, recipes: Any, drop: Any, method: Any, *args: Any) -> Any:
        work, cpu, began = shards.seconds, shards.cpu, time.perf_counter()
        answers = run(shards, recipes, drop, method, *args)
        seconds = time.perf_counter() - began
        sizes = len(pickle.dumps((recipes, drop, method, args))), len(pickle.dumps(answers))
        rounds.append(Round(method.__name__, seconds, shards.seconds - work, shards.cpu - cpu, *sizes))
        return answers

    DaskShards.run = measured  # type: ignore[method-assign]
    try:
        yield rounds
    finally:
        DaskShards.run = run  # type: ignore[method-assign]


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    """Start worker processes with one thread each."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": 0}
    with (
        distributed.LocalCluster(n_workers=n_workers, silence_logs=50, **options) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


def generated(n_rows: int, n_features: int, n_chunks: int = 8) -> tuple[Any, Any]:
    """Return rows that are generated on the workers; one in ten is positive, and shifted along the first feature."""
    rng = da.random.default_rng(0)
    size = -(-n_rows // n_chunks)
    y = (rng.random(n_rows, chunks=size) < 0.1).astype(np.int8)
    X = rng.standard_normal((n_rows, n_features), chunks=(size, n_features), dtype=np.float32)
    return X + 2.0 * y[:, None] * (np.arange(n_features) == 0).astype(np.float32), y


def peak_memory(model: Any, X: Any, y: Any) -> float:
    """Return the peak of the memory that Python allocates in this process during a fit, in MB."""
    tracemalloc.start()
    clone(model).set_params(tol=0.01).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--features", type=int, default=10)
    options = parser.parse_args(arguments)
    fits, kinds = [], []
    with cluster(2):
        for name, model in MODELS.items():
            by_rows: dict[str, list[int]] = {}
            for n_rows in options.rows:
                X, y = generated(n_rows, options.features)
                with watched() as rounds:
                    model.fit(X, y)
                overheads = sorted(1e3 * (found.seconds - found.work) for found in rounds)
                largest = max(found.sent + found.received for found in rounds if found.kind != "sample")
                fits.append([
                    name, f"{n_rows:,}", str(len(rounds)), f"{median(overheads):.1f}",
                    f"{quantiles(overheads, n=10)[-1]:.1f}", f"{1e3 * median(r.work for r in rounds):.1f}",
                    f"{largest / 1e3:,.0f}", f"{peak_memory(model, X, y):.1f}",
                ])  # fmt: skip
                print(" | ".join(fits[-1]), flush=True)
                for found in rounds:
                    by_rows.setdefault(found.kind, [0] * len(options.rows))
                    place = options.rows.index(n_rows)
                    by_rows[found.kind][place] = max(by_rows[found.kind][place], found.sent + found.received)
            kinds += [
                [name, kind, *(f"{size / 1e3:,.1f}" for size in sizes)] for kind, sizes in sorted(by_rows.items())
            ]
    head = [
        "fit", "rows", "rounds", "overhead, ms, median", "overhead, ms, 90 %", "workers, ms, median",
        "largest round, kB", "driver, peak MB",
    ]  # fmt: skip
    sections = [
        f"Rows of {options.features} float32 features, generated on two workers; tol 1e-3, 8,192 bins for each class. "
        "The largest round is without those for the Hessian sample, which fetch at most 20,000 rows. Load average of "
        f"the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
        markdown(head, fits),
        "Bytes of the largest round of each kind, request and answers of both workers, in kB:",
        markdown(["fit", "request", *(f"{n:,} rows" for n in options.rows)], kinds),
    ]
    print("\n\n".join(sections))
    publish("dask_rounds", "Rounds of fits on a dask cluster", sections)


if __name__ == "__main__":
    main()
