"""How often a monitor calls a limit broken that holds, and how soon it notices one that is.

``python -m benchmarks.metrics.monitoring [--samples 1000]`` writes benchmarks/results/monitoring.md. Rows are drawn one
by one, so the truth is known, and every row is a batch of its own. Peer: ``RiskMonitoring`` of MAPIE (``pip install
mapie``) on the same rows, with the limit as its threshold. The evidence is computed for all samples at once, by a
recursion that the tests compare with :class:`rocmax.monitor.Monitor`. Figures are kept in ``results/monitoring.jsonl``.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import cpu_time, markdown, publish
from rocmax.monitor import Monitor, bets, start_weights, starts_period

Array = NDArray[Any]
LIMIT, CONFIDENCE = 0.01, 0.95
LOOKS = 100_000
# Rates of rows that a limit of 1 % allows: at the edge, below, and changing from row to row.
ALLOWED = {
    "1 %": lambda t: np.full(t.size, LIMIT),
    "0.5 %": lambda t: np.full(t.size, LIMIT / 2),
    "0 to 1 %, random": lambda t: LIMIT * np.random.default_rng(t.size).random(t.size),
    "0.2 % and 1 % in turns of 10,000": lambda t: np.where(t // 10_000 % 2, LIMIT, 0.2 * LIMIT),
}


def first_alarms(hits: Array, limit: float, confidence: float) -> Array:
    """Return the number of rows until the limit is called broken, for each row of ``hits``; -1 for never."""
    n_samples, n_rows = hits.shape
    won, lost = (np.exp(log) for log in bets(1.0 - limit, limit))
    numbers = np.array([number for number in range(n_rows) if starts_period(number)])
    weights = dict(zip(numbers.tolist(), start_weights(numbers.astype(float)), strict=True))
    waiting, wealth = 1.0, np.zeros((n_samples, won.size))
    alarms = np.full(n_samples, -1)
    for row in range(n_rows):
        weight = weights.get(row, 0.0)
        waiting -= weight
        wealth = (wealth + weight / won.size) * np.where(hits[:, row, None], won, lost)
        alarms[(alarms < 0) & (wealth.sum(axis=1) + waiting >= 1.0 / (1.0 - confidence))] = row + 1
    return alarms


def mapie_alarms(hits: Array, limit: float, confidence: float) -> Array:
    """Return the same for RiskMonitoring."""
    from mapie.exchangeability_testing import RiskMonitoring

    alarms = []
    for sample in hits:
        monitor = RiskMonitoring("fpr", test_level=1.0 - confidence, threshold=limit, warn=False)
        monitor.update(np.zeros(sample.size, dtype=int), sample.astype(int))
        above = np.flatnonzero(monitor.online_risk_lower_bound_sequence_history > limit)
        alarms.append(int(above[0]) + 1 if above.size else -1)
    return np.array(alarms)


def work(kind: str, *job: Any) -> Any:
    """Return the figures of a job."""
    if kind == "allowed":
        name, n_samples = job
        rates = ALLOWED[name](np.arange(LOOKS))
        rng = np.random.default_rng(list(ALLOWED).index(name))
        found = first_alarms(rng.random((n_samples, LOOKS), dtype=np.float32) < rates, LIMIT, CONFIDENCE)
        return float((found >= 0).mean())
    if kind == "broken":
        rate, before, n_samples = job
        rng = np.random.default_rng(round(1e4 * rate) + before)
        n_rows = before + round(400 / rate)
        rates = np.where(np.arange(n_rows) < before, LIMIT / 2, rate)
        hits = rng.random((n_samples, n_rows)) < rates
        figures = []
        for alarms in (first_alarms(hits, LIMIT, CONFIDENCE), mapie_alarms(hits, LIMIT, CONFIDENCE)):
            delay = np.where(alarms < 0, np.inf, alarms) - before
            middle = float(np.median(delay))
            figures.append([middle if np.isfinite(middle) else None, float((alarms >= 0).mean())])
        return figures
    if kind == "alerts":
        rate, positives, n_samples = job
        rng = np.random.default_rng(round(1e4 * rate))
        hits = rng.random((n_samples, round(400 / rate))) < rate * (1.0 - positives)
        alarms = first_alarms(hits, LIMIT, CONFIDENCE)
        # A share of the rows are negatives.
        middle = float(np.median(np.where(alarms < 0, np.inf, alarms))) * (1.0 - positives)
        return [middle if np.isfinite(middle) else None, float((alarms >= 0).mean())]
    return through_the_command(*job) if kind == "command" else counted(*job)


def counted(n_rows: int, size: int) -> list[float]:
    """Return the CPU seconds and the bytes of the state for batches of a size, with scores of all magnitudes."""
    rng = np.random.default_rng(0)
    monitor = Monitor(LIMIT, min_tpr=0.3, min_precision=0.5, capacity=0.05)
    draws = [(rng.standard_cauchy(size) - 2.0, (rng.random(size) < 0.02).astype(float)) for _ in range(1000)]

    def watch() -> None:
        for number in range(n_rows // size):
            monitor.update(*draws[number % 1000], label="2026-01-01 00:00:00")

    seconds, _ = cpu_time(watch)
    return [seconds, len(monitor.to_json())]


def through_the_command(n_rows: int) -> list[float]:
    """Return the CPU seconds of the command for a batch and for as many late labels, its memory, and the state."""
    import pandas as pd

    from rocmax.tables import fit_table

    rng = np.random.default_rng(0)
    y = rng.random(n_rows) < 0.05
    table = pd.DataFrame((rng.normal(size=(n_rows, 6)) + y[:, None]).round(4), columns=list("abcdef"))
    table = table.assign(country=rng.choice(["FR", "DE", "IT"], n_rows), payment=np.arange(n_rows), label=y.astype(int))
    with TemporaryDirectory() as folder:
        model, batch, labels = (str(Path(folder, name)) for name in ("m.rocmax", "batch.csv", "labels.csv"))
        training = table.drop(columns="payment").head(20_000)
        fit_table(training, target="label", max_fpr=LIMIT, model="linear", tune=False).save(model)
        table.drop(columns="label").to_csv(batch, index=False)
        table[["payment", "label"]].to_csv(labels, index=False)
        command = [sys.executable, "-m", "rocmax", "monitor", model]
        found: list[float] = []
        for arguments in ([batch, "--id", "payment"], ["--labels", labels]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([*command, *arguments], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        found += [after.ru_maxrss / 1000, Path(folder, "m.monitor.json").stat().st_size]
        return found


def main() -> None:
    """Run the simulations and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1000)
    n_samples = parser.parse_args().samples
    allowed = [("allowed", name, n_samples) for name in ALLOWED]
    broken = [("broken", rate, 0, n_samples // 5) for rate in (0.02, 0.015)]
    broken += [("broken", rate, 20_000, n_samples // 20) for rate in (0.02, 0.015)]
    alerts = [("alerts", rate, 0.05, n_samples // 5) for rate in (0.02, 0.015)]
    sizes = [("counted", *job) for job in ((10_000_000, 1000), (1_000_000, 100), (100_000, 1))]
    commands = [("command", n_rows) for n_rows in (1_000_000,)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=FutureWarning)
        found, seconds = kept("monitoring", [*allowed, *broken, *alerts, *sizes, *commands], work)
    lines = []
    for job in broken:
        (ours, noticed), (theirs, peer) = found[job]
        ratio = "" if ours is None or theirs is None else f"{ours / theirs:.2f}"
        texts = ["never" if value is None else f"{value:,.0f}" for value in (ours, theirs)]
        shares = [f"{100 * share:.1f} %" for share in (noticed, peer)]
        lines.append(
            [f"{100 * job[1]:g} %", f"{job[2]:,}", str(job[3]), texts[0], shares[0], texts[1], shares[1], ratio]
        )
    publish("monitoring", "Monitoring a limit of 1 % on the false-positive rate, at a confidence of 95 %", [
        running_time(seconds),
        f"`python -m benchmarks.metrics.monitoring --samples {n_samples}`: {n_samples} samples of each setting; one "
        "negative at a time, and a look after each. Broken limits have fewer samples, as the table says.",
        f"## The limit holds\n\nShare of samples in which it was called broken within {LOOKS:,} looks; at most 5 % is "
        "allowed.\n\n"
        + markdown(["false-positive rate", "called broken"], [[j[1], f"{100 * found[j]:.1f} %"] for j in allowed]),
        "## The limit is broken\n\nMedian number of negatives from the change to the alarm. Before it, the rate is "
        f"0.5 %. `RiskMonitoring` is that of MAPIE {version('mapie')}, with the limit as its threshold and a level of "
        "5 %, on the same rows.\n\n"
        + markdown(
            ["rate", "negatives before", "samples", "rocmax", "noticed", "RiskMonitoring", "noticed", "ratio"],
            lines,
        ),
        "## Labels of alerts alone\n\n5 % of the rows are positive, and only flagged rows get labels: false alarms "
        "are counted among all rows. Median number of negatives until the alarm, if the "
        "limit is broken from the start.\n\n"
        + markdown(
            ["rate", "labels of alerts", "noticed", "labels of all rows", "ratio"],
            [
                [
                    f"{100 * j[1]:g} %",
                    f"{found[j][0]:,.0f}",
                    f"{100 * found[j][1]:.1f} %",
                    f"{found[k][0][0]:,.0f}",
                    f"{found[j][0] / found[k][0][0]:.2f}",
                ]
                for j, k in zip(alerts, broken, strict=False)
            ],
        ),
        "## Time and size of the state\n\nFour limits are watched; the scores are from a Cauchy distribution, whose "
        "magnitudes fill many bins.\n\n"
        + markdown(
            ["rows", "rows in a batch", "CPU seconds", "state, kB"],
            [[f"{j[1]:,}", f"{j[2]:,}", f"{found[j][0]:.1f}", f"{found[j][1] / 1000:.1f}"] for j in sizes],
        )
        + "\n\nThe command `rocmax monitor`, on a csv file with seven features and identifiers, and then with a file "
        "of the labels of all rows; CPU seconds include the start of the program.\n\n"
        + markdown(
            ["rows", "batch, CPU seconds", "labels, CPU seconds", "memory, MB", "state, kB"],
            [
                [
                    f"{j[1]:,}",
                    *(f"{value:.1f}" for value in found[j][:2]),
                    f"{found[j][2]:,.0f}",
                    f"{found[j][3] / 1000:.1f}",
                ]
                for j in commands
            ],
        ),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
