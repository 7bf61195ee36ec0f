"""Regret of ``auto``: the family that it chooses against the better of linear and boosted in hindsight.

``python -m benchmarks.workflow.family_choice [--sets NAME ...] [--seeds N] [--rows N] [--max-fpr W ...]``

Every fit is a line of ``benchmarks/results/family_choice.jsonl``, so that an interrupted run goes on where it was. The
table compares rules of choice on the same fits: the family with the best mean, and the simplest within a number of
standard errors of the best, of which ``auto`` takes one.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import pandas as pd

from benchmarks._shared.data import load_real
from benchmarks._shared.results import RESULTS, markdown, publish
from rocmax import metrics
from rocmax._atomic import append_line
from rocmax.workflow.families import compare_families, families_for
from rocmax.workflow.models import positive_scores
from rocmax.workflow.tuning import TunedPipeline

SETS = ("abalone", "adult", "cod-rna", "credit", "higgs_small", "ijcnn1", "kddcup06_test", "oil", "pima", "spambase")
SETS += ("spectf", "susy_30k", "wdbc", "wpbc", "yeast_me2")
STORE = RESULTS / "family_choice.jsonl"
RULES = (0.0, 0.5, 1.0, 2.0)


def fits(name: str, seed: int, n_rows: int, max_fpr: float) -> dict[str, object] | None:
    """Fit every family to a random part of a set; return the table of the choice with the scores on test rows."""
    data = load_real(name)
    if data is None or n_rows > 0.75 * data.y.size:
        return None
    order = np.random.default_rng(seed).permutation(data.y.size)
    train, test = order[:n_rows], order[n_rows : n_rows + 20_000]
    columns = [f"x{i}" for i in range(data.X.shape[1])]
    kinds = dict.fromkeys(columns, "number")
    X, y = pd.DataFrame(data.X, columns=columns), np.where(data.y == data.y.max(), "1", "0").astype(object)
    options = {"kinds": kinds, "window": (0.0, max_fpr), "measure": "partial_auc", "seed": seed}
    models = {family: TunedPipeline(family, **options) for family in families_for(kinds)[0]}
    table = compare_families(models, X.iloc[train], y[train], None)["table"]
    for row in table:
        scores = positive_scores(models[row["family"]], X.iloc[test], "1")
        row["test"] = metrics.partial_auc_score(y[test] == "1", scores, max_fpr=max_fpr)
    return {"set": name, "seed": seed, "rows": n_rows, "max_fpr": max_fpr, "table": table}


def chosen(table: list[dict[str, float]], errors: float) -> dict[str, float]:
    """Return the simplest family within a number of standard errors of the best."""
    return next(row for row in table if -row["difference"] <= errors * row["difference_error"])


def regret(table: list[dict[str, float]], errors: float) -> float:
    """Return how much the choice is below the better of linear and boosted on the test rows."""
    best = max(row["test"] for row in table if row["family"] in ("linear", "boosted"))
    return best - chosen(table, errors)["test"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 3000, 10_000])
    parser.add_argument("--max-fpr", type=float, nargs="+", default=[0.01, 0.05])
    args = parser.parse_args()
    found = [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []
    done = {(entry["set"], entry["seed"], entry["rows"], entry["max_fpr"]) for entry in found}
    for seed in range(args.seeds):
        for n_rows in args.rows:
            for name in args.sets:
                for max_fpr in args.max_fpr:
                    if (name, seed, n_rows, max_fpr) not in done and (entry := fits(name, seed, n_rows, max_fpr)):
                        append_line(STORE, json.dumps(entry))
                        found.append(entry)
    rows = []
    for errors in RULES:
        values = np.array([regret(entry["table"], errors) for entry in found])
        families = [chosen(entry["table"], errors)["family"] for entry in found]
        counts = [str(families.count(name)) for name in ("linear", "additive", "boosted")]
        rule = "best mean" if errors == 0 else f"simplest within {errors:g} standard errors"
        error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
        rows.append([rule, f"{values.mean():+.4f}", f"{error:.4f}", f"{values.max():+.3f}", *counts])
    header = ["rule", "mean regret", "standard error", "largest", "linear", "additive", "boosted"]
    text = f"Partial AUC on test rows, {len(found)} fits of sets with {min(e['rows'] for e in found)} to "
    text += f"{max(e['rows'] for e in found)} training rows."
    publish("family_choice", "Regret of the choice of a family", [text, markdown(header, rows)])


if __name__ == "__main__":
    main()
