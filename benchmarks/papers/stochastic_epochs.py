"""Test AUC of the stochastic methods against the number of passes, as in Figure 1 of Khalid, Chitsaz and Ray (2019).

The paper's figure has passes of 1, 2, 3, 4, 5, 10, 30 and 60 and means of 3 runs; its values are not printed. Sets,
splits and tuning are those of ``papers/stochastic_auc.py``; the parameters are chosen there for the default number of
passes. Curves are kept in ``results/stochastic_epochs.jsonl``, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import data_directory
from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import RESULTS, markdown, publish
from benchmarks.papers.stochastic_auc import TEXT, load, tune

SETS = ("spambase", "ijcnn1", "a9a", "cod-rna")
METHODS = ("PSAM", "ASAM", "SOLAM")
EPOCHS = (1, 2, 3, 4, 5, 10, 30, 60)
RUNS = 3


def curve(name: str, method: str, run: int) -> list[float] | None:
    """Return the test AUC in percent after each number of passes."""
    if not (data_directory() / f"{name}.npz").exists():
        return None
    X, X_test, y, y_test = load(name, run)
    model, _ = tune(method, X, y, name in TEXT, run)
    scores = (model.set_params(max_iter=n, tol=None).fit(X, y).score(X_test, y_test) for n in EPOCHS)
    return [round(100 * score, 4) for score in scores]


def curves(found: dict[Any, Any], name: str, method: str) -> np.ndarray:
    """Return the curves of a method on a set, one row for each run."""
    return np.array([found[name, method, run] for run in range(RUNS)])


def draw(found: dict[Any, Any], present: list[str]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(present), 3.2), layout="constrained")
    panels = figure.subplots(1, len(present), squeeze=False)[0]
    for axes, name in zip(panels, present, strict=True):
        for method, marker in zip(METHODS, "os^", strict=True):
            axes.plot(EPOCHS, curves(found, name, method).mean(axis=0), marker=marker, markersize=4, label=method)
        axes.set(xscale="log", xticks=EPOCHS, xticklabels=EPOCHS, xlabel="passes", title=name)
        axes.minorticks_off()
    panels[0].set_ylabel("test AUC, percent")
    panels[0].legend()
    figure.savefig(RESULTS / "stochastic_epochs.png", dpi=100)


def main() -> None:
    jobs = [(name, method, run) for run in range(RUNS) for name in SETS for method in METHODS]
    with threadpool_limits(1):
        found, seconds = kept("stochastic_epochs", jobs, curve)
    present = [name for name in SETS if (name, METHODS[0], 0) in found]
    if not present:
        return
    draw(found, present)
    rows = [
        (name, method, *(f"{auc:.2f}" for auc in curves(found, name, method).mean(axis=0)))
        for name in present
        for method in METHODS
    ]
    text = (
        f"Test AUC in percent after a number of passes, mean of {RUNS} runs, as in the paper, which prints no values "
        "of its figure. The paper: PSAM is near its best AUC after the first pass on most sets."
    )
    picture = "![Test AUC by the number of passes](stochastic_epochs.png)"
    title = "Stochastic AUC maximization by the number of passes (Khalid, Chitsaz and Ray 2019, Figure 1)"
    table = markdown(("set", "method", *map(str, EPOCHS)), rows)
    publish("stochastic_epochs", title, [running_time(seconds), text, table, picture])


if __name__ == "__main__":
    main()
