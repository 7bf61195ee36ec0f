"""Test AUC of the stochastic methods against the number of passes, as in Figure 1 of Khalid, Chitsaz and Ray (2019).

The paper's figure has passes of 1, 2, 3, 4, 5, 10, 30 and 60 and means of 3 runs; its values are not printed. Sets,
splits and tuning are those of ``papers/stochastic_auc.py``, with the parameters chosen there for one pass count. Cells
are kept in ``results/stochastic_epochs.jsonl``, so an interrupted run goes on where it stopped. About 5 minutes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import data_directory
from benchmarks._shared.results import RESULTS, markdown, publish
from benchmarks.papers.stochastic_auc import TEXT, load, tune

CELLS = RESULTS / "stochastic_epochs.jsonl"
SETS = ("spambase", "ijcnn1", "a9a", "cod-rna")
METHODS = ("PSAM", "ASAM", "SOLAM")
EPOCHS = (1, 2, 3, 4, 5, 10, 30, 60)
RUNS = 3


def read() -> list[dict[str, Any]]:
    """Return the cells computed so far."""
    return [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []


def curve(name: str, method: str, run: int) -> dict[str, Any]:
    """Return the test AUC after each number of passes."""
    X, X_test, y, y_test = load(name, run)
    with threadpool_limits(1):
        model, parameters = tune(method, X, y, name in TEXT, run)
        auc = [100 * model.set_params(max_iter=n, tol=None).fit(X, y).score(X_test, y_test) for n in EPOCHS]
    return {"set": name, "method": method, "run": run, "auc": [round(a, 4) for a in auc], "parameters": parameters}


def main() -> None:
    """Compute the curves that are not there yet, and write the table."""
    done = {(c["set"], c["method"], c["run"]) for c in read()}
    present = [name for name in SETS if (data_directory() / f"{name}.npz").exists()]
    with CELLS.open("a") as out:
        for run in range(RUNS):
            for name in present:
                for method in METHODS:
                    if (name, method, run) not in done:
                        cell = curve(name, method, run)
                        print(cell, flush=True)
                        out.write(json.dumps(cell) + "\n")
                        out.flush()
    rows = []
    for name in present:
        for method in METHODS:
            auc = np.array([c["auc"] for c in read() if (c["set"], c["method"]) == (name, method)])
            rows.append([name, method, *(f"{a:.2f}" for a in auc.mean(axis=0))])
    text = f"Test AUC in per cent after a number of passes, mean of {RUNS} runs."
    header = ["set", "method", *map(str, EPOCHS)]
    publish("stochastic_epochs", "Stochastic AUC maximisation by the number of passes", [text, markdown(header, rows)])


if __name__ == "__main__":
    main()
