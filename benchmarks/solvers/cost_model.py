"""Time of a fit on a cluster on paper, from a cost model; nothing is measured here.

time = loading + passes * bytes of the rows / bandwidth + histograms * rows * time per row + rounds * latency
+ bytes to the driver / its network. The numbers of passes, rounds and histograms are those of ``dask_rounds.py`` for
the AUC; the other assumptions are the defaults of the arguments.
"""

from __future__ import annotations

import argparse

from benchmarks._shared.results import markdown, publish

# Bytes of an answer with a histogram: weight and total score in each bin, and the sums of two vectors.
HISTOGRAM_BYTES = 4 * 2 * 8192 * 8


def main(arguments: list[str] | None = None) -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=18)
    parser.add_argument("--histograms", type=int, default=6)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--storage", type=float, default=0.2, help="GB/s that a worker reads from storage")
    parser.add_argument("--bandwidth", type=float, default=5.0, help="GB/s of products with the rows on a worker")
    parser.add_argument("--row-time", type=float, default=50.0, help="ns per row of a request over the scores")
    parser.add_argument("--latency", type=float, default=50.0, help="ms per round")
    parser.add_argument("--network", type=float, default=1.0, help="GB/s into the driver")
    parser.add_argument("--sample", type=int, default=20_000, help="rows of the Hessian sample")
    o = parser.parse_args(arguments)
    per_worker = 4 * o.rows * o.features / o.workers
    to_driver = o.histograms * o.workers * HISTOGRAM_BYTES + 4 * o.iterations * o.sample * o.features
    parts = {
        "loading from storage, once": per_worker / (o.storage * 1e9),
        f"{o.passes} passes over the rows": o.passes * per_worker / (o.bandwidth * 1e9),
        f"{o.histograms} requests over the scores": o.histograms * o.rows / o.workers * o.row_time * 1e-9,
        f"latency of {o.rounds} rounds": o.rounds * o.latency * 1e-3,
        "histograms and Hessian samples to the driver": to_driver / (o.network * 1e9),
    }
    lines = [[name, f"{seconds:.1f}"] for name, seconds in parts.items()]
    sections = [
        f"{o.rows:,.0f} rows of {o.features:,} float32 features on {o.workers} workers: {per_worker / 1e9:.0f} GB of "
        f"rows on each, and {40 * o.rows / o.workers / 1e9:.1f} GB of scores. Assumed: {o.storage:g} GB/s from storage "
        f"and {o.bandwidth:g} GB/s of products on a worker, {o.row_time:g} ns per row of such a request, "
        f"{o.latency:g} ms per round, {o.network:g} GB/s into the driver.",
        markdown(["part", "s"], [*lines, ["in all", f"{sum(parts.values()):.1f}"]]),
    ]
    print("\n\n".join(sections))
    publish("cost_model", "A fit on a large cluster, on paper", sections)


if __name__ == "__main__":
    main()
