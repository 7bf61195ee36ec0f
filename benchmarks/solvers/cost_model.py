"""Cost model of fits on a cluster: predictions next to measurements, and a large fit on paper.

    time = passes * bytes of the rows / bandwidth + score requests * rows * time per row + rounds * latency

Bandwidth, time per row and latency are those of a fit of fewer rows on one worker. The numbers of passes, requests over
the scores and rounds are those of the fit that is predicted. Bandwidth and time per row scale with the workers. The
time of loading is not part of it. The first two terms are compared with the processor time of the slowest worker in
each round, and the last one with the other time of the rounds: the workers may share the machine with other programs.
The sum of all terms is compared with the time of all rounds.
"""

from __future__ import annotations

import argparse
import os
from statistics import median
from typing import Any, NamedTuple

from benchmarks._shared.results import markdown, publish
from benchmarks.solvers.dask_rounds import Round, cluster, generated, watched
from rocmax.dask import DaskAUCClassifier, DaskPartialAUCClassifier

MODELS = {"AUC": DaskAUCClassifier(), "tight [0, 0.2]": DaskPartialAUCClassifier(0.0, 0.2, loss="tight")}
# Requests that read the rows; all others read score vectors.
PASSES = ("moments", "summary", "gradient", "logistic")
# Bytes of an answer with a histogram: weight and total score in each bin, and the sums of two vectors.
HISTOGRAM_BYTES = 4 * 2 * 8192 * 8
# Newton systems of a fit, rows of the sample for each of them, and the largest number of pairs of rows.
SYSTEMS, SAMPLE_ROWS, PAIRS = 3, 20_000, 30_000


class Counts(NamedTuple):
    """Numbers of passes over the rows, of requests over the scores, and of rounds."""

    passes: int
    requests: int
    rounds: int

    @classmethod
    def of(cls, rounds: list[Round]) -> Counts:
        """Count the rounds of a fit."""
        passes = sum(found.kind in PASSES for found in rounds)
        return cls(passes, len(rounds) - passes, len(rounds))


class Model(NamedTuple):
    """Bandwidth of a worker in bytes per second, its time per row of a score request, and the latency of a round."""

    bandwidth: float
    row_time: float
    latency: float

    @classmethod
    def fitted(cls, rounds: list[Round], n_rows: int, n_bytes: int) -> Model:
        """Return the model of a fit on one worker."""
        counts = Counts.of(rounds)
        passes = sum(found.cpu for found in rounds if found.kind in PASSES)
        requests = sum(found.cpu for found in rounds if found.kind not in PASSES)
        latency = median(found.seconds - found.work for found in rounds)
        return cls(counts.passes * n_bytes / passes, requests / counts.requests / n_rows, latency)

    def work(self, counts: Counts, n_rows: float, n_bytes: float, workers: int) -> float:
        """Return the predicted time of a worker."""
        return (counts.passes * n_bytes / self.bandwidth + counts.requests * n_rows * self.row_time) / workers


def measure(estimator: Any, n_workers: int, n_rows: int, n_features: int) -> list[Round]:
    """Fit on a cluster; return the rounds."""
    X, y = generated(n_rows, n_features)
    with cluster(n_workers), watched() as rounds:
        estimator.fit(X, y)
    return rounds


def on_paper(counts: Counts, options: argparse.Namespace) -> list[str]:
    """Return the sections on a fit of many rows on many workers."""
    o = options
    per_worker = 4 * o.paper_rows * o.paper_features / o.paper_workers
    d = o.paper_features
    to_driver = counts.requests * o.paper_workers * HISTOGRAM_BYTES + 4 * SYSTEMS * SAMPLE_ROWS * d
    parts = {
        "loading from storage, once": per_worker / (o.storage * 1e9),
        f"{counts.passes} passes over the rows": counts.passes * per_worker / (o.bandwidth * 1e9),
        f"{counts.requests} requests over the scores": counts.requests
        * o.paper_rows
        / o.paper_workers
        * o.row_time
        * 1e-9,
        f"latency of {counts.rounds} rounds": counts.rounds * o.latency * 1e-3,
        "histograms and Hessian samples to the driver": to_driver / (o.network * 1e9),
        f"{SYSTEMS} Newton systems on the driver": SYSTEMS * (2 * PAIRS * d**2 + d**3 / 3) / (o.arithmetic * 1e9),
    }
    lines = [[name, f"{seconds:.1f}"] for name, seconds in parts.items()]
    text = (
        f"On paper: {o.paper_rows:,.0f} rows of {o.paper_features:,} float32 features on {o.paper_workers} workers, "
        f"{per_worker / 1e9:.0f} GB of rows and {40 * o.paper_rows / o.paper_workers / 1e9:.1f} GB of scores on each, "
        f"with the passes and rounds of the AUC fit on two workers. Assumed: {o.storage:g} GB/s from storage and "
        f"{o.bandwidth:g} GB/s of products on a worker, {o.row_time:g} ns per row of a request over the scores, "
        f"{o.latency:g} ms per round, {o.network:g} GB/s into the driver, {o.arithmetic:g} Gflop/s on the driver. The "
        f"numbers of passes, rounds and Newton systems are those of d = {o.features} features. A Newton system of "
        f"d = {d:,} takes 2 d^2 flops for each of at most {PAIRS:,} pairs of rows, and d^3 / 3 for its Cholesky factor."
    )
    return [text, markdown(["part", "s"], [*lines, ["in all", f"{sum(parts.values()):.1f}"]])]


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--calibration-rows", type=int, default=250_000)
    parser.add_argument("--paper-rows", type=float, default=1e9)
    parser.add_argument("--paper-features", type=int, default=1000)
    parser.add_argument("--paper-workers", type=int, default=100)
    parser.add_argument("--storage", type=float, default=0.2, help="GB/s that a worker reads from storage")
    parser.add_argument("--bandwidth", type=float, default=2.0, help="GB/s of products with the rows on a worker")
    parser.add_argument("--row-time", type=float, default=50.0, help="ns per row of a request over the scores")
    parser.add_argument("--latency", type=float, default=50.0, help="ms per round")
    parser.add_argument("--network", type=float, default=1.0, help="GB/s into the driver")
    parser.add_argument("--arithmetic", type=float, default=50.0, help="Gflop/s of matrix products on the driver")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Measure, predict, print and write the tables."""
    o = parsed(arguments)
    lines, auc = [], Counts(0, 0, 0)
    for name, estimator in MODELS.items():
        small = measure(estimator, 1, o.calibration_rows, o.features)
        model = Model.fitted(small, o.calibration_rows, 4 * o.calibration_rows * o.features)
        for workers in (1, 2):
            rounds = measure(estimator, workers, o.rows, o.features)
            counts = Counts.of(rounds)
            auc = counts if name == "AUC" else auc
            predicted = model.work(counts, o.rows, 4 * o.rows * o.features, workers)
            overhead = counts.rounds * model.latency
            work, other = sum(found.cpu for found in rounds), sum(found.seconds - found.work for found in rounds)
            lines.append([
                name, str(workers), str(counts.passes), str(counts.requests), str(counts.rounds),
                f"{model.bandwidth / 1e9:.2f}", f"{1e9 * model.row_time:.0f}", f"{predicted:.2f}", f"{work:.2f}",
                f"{work / predicted:.2f}", f"{overhead:.2f}", f"{other:.2f}", f"{predicted + overhead:.2f}",
                f"{sum(found.seconds for found in rounds):.2f}",
            ])  # fmt: skip
            print(" | ".join(lines[-1]), flush=True)
    head = [
        "fit", "workers", "passes", "score requests", "rounds", "GB/s", "ns per row", "worker, s, predicted",
        "worker, CPU s, measured", "ratio", "overhead, s, predicted", "overhead, s, measured", "in all, s, predicted",
        "in all, s, measured",
    ]  # fmt: skip
    text = (
        f"{o.rows:,} rows of {o.features} float32 features; the parameters of the model come from a fit of "
        f"{o.calibration_rows:,} rows on one worker. Load average of the machine at the end: {os.getloadavg()[0]:.1f} "
        f"on {os.cpu_count()} cores."
    )
    sections = [text, markdown(head, lines), *on_paper(auc, o)]
    print("\n\n".join(sections))
    publish("cost_model", "Cost model of fits on a cluster", sections)


if __name__ == "__main__":
    main()
