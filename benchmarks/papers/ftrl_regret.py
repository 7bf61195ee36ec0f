"""Regret of following the regularized leader against the number of rows, next to 1/sqrt(T).

Kar, Narasimhan and Jain (2014) prove that the regret of FTRL is O(1/sqrt(T)) (their Theorem 1 for precision at k,
Theorem 3 for the partial AUC) and give no figures. Here, ``FollowTheLeaderClassifier`` sees each stream in batches of
``SIZE`` rows, with ``eta`` fixed on the sum of the losses, and its regret against the best unregularized model of the
ball is recorded after every batch. Curves are means over ``RUNS`` orders of the rows. The slope is that of a line
through log(regret) against log(T), from the fifth batch on. Streams are kept in ``results/ftrl_regret.jsonl``, so an
interrupted run goes on where it stopped; ``--report`` only writes the table and the figure. About 5 minutes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import load_real
from benchmarks._shared.results import RESULTS, cpu_time, markdown, publish
from rocmax import FollowTheLeaderClassifier

CELLS = RESULTS / "ftrl_regret.jsonl"
FIGURE = RESULTS / "ftrl_regret.svg"
SETS = ("letter", "cod-rna", "ijcnn1")
MEASURES = ("roc_auc", "partial_auc", "precision_at_k")
N_BATCHES, SIZE, RUNS, FIRST = 40, 250, 3, 5
ETA, RADIUS = 1.0, 3.0


def stream(name: str, measure: str, run: int) -> dict[str, Any] | None:
    """Return the regret after every batch of one stream; None if the set is absent."""
    data = load_real(name)
    if data is None:
        return None
    kept = np.random.default_rng(run).permutation(data.y.size)[: N_BATCHES * SIZE]
    X, y = data.X[kept], data.y[kept]
    # The paper sets k to the share of the positives.
    model = FollowTheLeaderClassifier(measure, max_fpr=0.1, k=float(y.mean()), eta=ETA, radius=RADIUS)

    def follow() -> None:
        for start in range(0, y.size, SIZE):
            model.partial_fit(X[start : start + SIZE], y[start : start + SIZE], classes=[0, 1])

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first batches are small, and may collapse
        seconds, _ = cpu_time(follow)
    return {
        "set": name,
        "measure": measure,
        "run": run,
        "regret": [round(float(r), 6) for r in model.regret_],
        "error": round(float(model.regret_gap_.max()), 6),
        "seconds": round(seconds, 2),
    }


def slope(regret: np.ndarray) -> float:
    """Return the slope of log(regret) in log(T), from batch ``FIRST`` on."""
    t = np.arange(FIRST, regret.size + 1)
    return float(np.polyfit(np.log(t), np.log(regret[FIRST - 1 :]), 1)[0])


def read() -> list[dict[str, Any]]:
    """Return the streams computed so far."""
    return [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []


def run_all() -> None:
    """Compute the streams that are not there yet."""
    done = {(c["set"], c["measure"], c["run"]) for c in read()}
    with CELLS.open("a") as out:
        for run in range(RUNS):
            for name in SETS:
                for measure in MEASURES:
                    cell = None if (name, measure, run) in done else stream(name, measure, run)
                    if cell is not None:
                        print(name, measure, run, cell["regret"][-1], cell["seconds"], flush=True)
                        out.write(json.dumps(cell) + "\n")
                        out.flush()


def curves() -> dict[tuple[str, str], np.ndarray]:
    """Return the regret of each set and measure, one row per run."""
    cells = read()
    keys = [(name, measure) for name in SETS for measure in MEASURES]
    found = {key: [c["regret"] for c in cells if (c["set"], c["measure"]) == key] for key in keys}
    return {key: np.array(rows) for key, rows in found.items() if rows}


def draw(regret: dict[tuple[str, str], np.ndarray]) -> None:
    """Draw the mean regret of each measure against T, one panel per set, with 1/sqrt(T)."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "rocmax"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SETS), figsize=(11, 3.4), sharey=True, layout="constrained")
    t = SIZE * np.arange(1, N_BATCHES + 1)
    for name, ax in zip(SETS, axes, strict=True):
        for measure in MEASURES:
            if (name, measure) in regret:
                ax.loglog(t, regret[name, measure].mean(axis=0), label=measure)
        ax.loglog(t, np.sqrt(t[0] / t), "k:", label=r"$1/\sqrt{T}$")
        ax.set(title=name, xlabel="rows T")
    axes[0].set_ylabel("regret")
    axes[0].legend()
    figure.savefig(FIGURE, metadata={"Date": None})
    plt.close(figure)


def report() -> None:
    """Write the table and the figure."""
    regret, cells, rows = curves(), read(), []
    for (name, measure), runs in regret.items():
        slopes = [slope(run) for run in runs]
        mean = runs.mean(axis=0)
        at = [f"{mean[batch - 1]:.4f}" for batch in (FIRST, 10, 20, N_BATCHES)]
        spread = np.std(slopes, ddof=1) if len(slopes) > 1 else np.nan
        falls = "yes" if mean[N_BATCHES - 1] < mean[19] < mean[9] < mean[FIRST - 1] else "**no**"
        rows.append([name, measure, str(len(runs)), *at, falls, f"{np.mean(slopes):.2f} ± {spread:.2f}", "-0.50"])
    ends = [f"T = {batch * SIZE:,}" for batch in (FIRST, 10, 20, N_BATCHES)]
    text = (
        f"`FollowTheLeaderClassifier(eta={ETA:g}, radius={RADIUS:g})` on batches of {SIZE} rows in random order; "
        f"standardized features; partial AUC on [0, 0.1], k the share of the positives. Mean regret over the runs, and "
        f"the slope of log(regret) in log(T) from batch {FIRST} on, with its standard deviation over the runs, next to "
        f"that of the bound. The certified error of the regret is at most "
        f"{max(c['error'] for c in cells):.4f}. CPU time of all streams: {sum(c['seconds'] for c in cells):.0f} s."
    )
    header = ["set", "measure", "runs", *ends, "falls", "slope", "bound"]
    picture = f"![Regret against the number of rows, in logarithms, with the line of the bound]({FIGURE.name})"
    publish("ftrl_regret", "Regret of following the leader", [text, markdown(header, rows), picture])
    draw(regret)


def main() -> None:
    """Run the streams and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true", help="only write the table and the figure")
    if not parser.parse_args().report:
        run_all()
    report()


if __name__ == "__main__":
    main()
