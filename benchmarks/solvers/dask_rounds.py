"""Rounds, bytes and time of fits on a dask cluster of one and two worker processes, next to a cost model.

The model: time = passes * bytes of the rows / (bandwidth of a worker * workers) + vector work + rounds * latency. The
bandwidth is that of a gradient, the vector work is the median time of the requests without a pass times their number,
and the latency is the median time of an empty request. The workers run on this machine, with one
thread each. ``--rows`` and ``--features`` set the size.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections import defaultdict
from statistics import median
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np

from benchmarks._shared.results import markdown, publish
from rocmax.backends.dask import DaskAUCClassifier, DaskPartialAUCClassifier
from rocmax.backends.dask.actors import DaskShards

PASSES = ("moments", "summary", "gradient", "logistic")
MODELS = {
    "AUC": DaskAUCClassifier(C=1.0),
    "tight [0, 0.2]": DaskPartialAUCClassifier(0.0, 0.2, loss="tight", C=1.0),
}


class Watch:
    """Times and bytes of the requests of a fit, by their kind."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.sizes: dict[str, list[int]] = defaultdict(list)
        self.latency: list[float] = []
        self._run = DaskShards.run

    def __enter__(self) -> Watch:
        DaskShards.run = self._measured()  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        DaskShards.run = self._run  # type: ignore[method-assign]

    def _measured(self) -> Any:
        def run(shards: DaskShards, recipes: Any, drop: Any, method: str, *args: Any) -> Any:
            if not self.latency:
                for _ in range(30):
                    began = time.perf_counter()
                    self._run(shards, (), (), "has", -1)
                    self.latency.append(time.perf_counter() - began)
            began = time.perf_counter()
            answers = self._run(shards, recipes, drop, method, *args)
            self.seconds[method].append(time.perf_counter() - began)
            self.sizes[method].append(len(pickle.dumps((recipes, args))) + len(pickle.dumps(answers)))
            return answers

        return run


def generated(n_rows: int, n_features: int, n_chunks: int) -> tuple[Any, Any]:
    """Return rows that are generated on the workers; one in ten is positive, and shifted."""
    rng = da.random.default_rng(0)
    size = n_rows // n_chunks
    y = (rng.random(n_rows, chunks=size) < 0.1).astype(np.int8)
    X = rng.normal(size=(n_rows, n_features), chunks=(size, n_features)).astype(np.float32)
    return X + 2.0 * y[:, None] * (np.arange(n_features) == 0).astype(np.float32), y


def measure(model: Any, n_workers: int, n_rows: int, n_features: int) -> tuple[list[str], list[list[str]]]:
    """Fit on a cluster; return the line of the fit, and the lines of its kinds of requests."""
    X, y = generated(n_rows, n_features, 8)
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": 0}
    with (
        distributed.LocalCluster(n_workers=n_workers, silence_logs=50, **options) as cluster,
        distributed.Client(cluster),
        Watch() as watch,
    ):
        model.fit(X, y)
    seconds = {kind: sum(values) for kind, values in watch.seconds.items()}
    latency, rounds = median(watch.latency), sum(map(len, watch.seconds.values()))
    n_bytes = 4 * n_rows * n_features
    passes = sum(len(watch.seconds[kind]) for kind in PASSES)
    one = median(watch.seconds["gradient"]) - latency
    vectors = sum(
        max(median(values) - latency, 0.0) * len(values) for kind, values in watch.seconds.items() if kind not in PASSES
    )
    predicted = passes * one + vectors + rounds * latency
    line = [
        str(n_workers), str(model.n_iter_), str(passes), str(rounds), f"{1e3 * latency:.1f}",
        f"{n_bytes / one / n_workers / 1e9:.2f}", f"{sum(seconds.values()):.2f}", f"{predicted:.2f}",
    ]  # fmt: skip
    kinds = [
        [kind, str(n_workers), str(len(watch.seconds[kind])), f"{max(watch.sizes[kind]):,}", f"{seconds[kind]:.2f}"]
        for kind in sorted(seconds)
    ]
    return line, kinds


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    options = parser.parse_args(arguments)
    fits, kinds = [], []
    for name, model in MODELS.items():
        for n_workers in (1, 2):
            line, requests = measure(model, n_workers, options.rows, options.features)
            fits.append([name, *line])
            kinds += [[name, *request] for request in requests]
            print(" | ".join(fits[-1]), flush=True)
    head = [
        "fit",
        "workers",
        "iterations",
        "passes",
        "rounds",
        "ms per empty round",
        "GB/s per worker",
        "s",
        "s, model",
    ]
    text = f"{options.rows:,} rows of {options.features} float32 features, generated on the workers, tol 1e-3."
    sections = [
        text,
        markdown(head, fits),
        markdown(["fit", "request", "workers", "number", "bytes, largest", "s"], kinds),
    ]
    print("\n\n".join(sections))
    publish("dask_rounds", "Rounds of fits on a dask cluster", sections)


if __name__ == "__main__":
    with dask.config.set({"distributed.comm.timeouts.connect": "30s"}):
        main()
