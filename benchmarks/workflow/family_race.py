"""The family that ``auto`` chooses on large tables: on the first part of the rows, and in the race over growing parts.

``python -m benchmarks.workflow.family_race [--tables NAME ...]`` adds to benchmarks/results/family_race.jsonl, and
writes family_race.md. A table is split at random, with the seeds 0, 1, ...; the partial AUC up to FPR 5 % of each
family, fitted to all training rows, is measured on the test rows. "First part" is the rule before the race: the
simplest family within one standard error of the best on at most 4,000 rows of each class.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks._shared.results import RESULTS, markdown, publish
from benchmarks.peers.boosted import load
from rocmax.metrics import partial_auc_score, positive_scores
from rocmax.tables import Limits
from rocmax.tables.tune import TunedPipeline, compare_families, compared_parts

STORE = RESULTS / "family_race.jsonl"
FAMILIES = ("linear", "boosted")
MAX_FPR = 0.05
TRAINING_ROWS, TEST_ROWS = 33_750, 60_000
# Generated tables, by the height of a step in which three columns count together, which trees find in many rows only.
STEPS = {"steps of 0.7": 0.7, "steps of 1": 1.0}
REAL = ("adult", "bank-full", "covtype:5")


def steps(height: float, n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table in which one column is linear and three count by the sign of their product."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    score = X[:, 0] + height * np.sign(np.prod(X[:, 1:4], axis=1)) + rng.logistic(size=n_rows)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(10)]), score > 1


def split(name: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return the training rows with their labels, and the test rows with theirs."""
    if name in STEPS:
        return *steps(STEPS[name], TRAINING_ROWS, 2 * seed), *steps(STEPS[name], TEST_ROWS, 2 * seed + 1)
    X, labels = load(name)
    X = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    X = X.astype({column: object for column in X.columns if X[column].dtype == "category"})
    size = min(TRAINING_ROWS, labels.size * 3 // 4)
    train, test = train_test_split(np.arange(labels.size), train_size=size, stratify=labels, random_state=seed)
    test = test[:TEST_ROWS]
    return X.iloc[train], labels[train] == 1, X.iloc[test], labels[test] == 1


def cell(name: str, seed: int) -> dict[str, Any]:
    """Return what the first part and the race choose, their CPU seconds, and the test scores of the families."""
    X, positive, X_test, positive_test = split(name, seed)
    y = np.where(positive, "1", "0").astype(object)
    kinds = {name: "number" if dtype.kind == "f" else "text" for name, dtype in X.dtypes.items()}
    limits = Limits(MAX_FPR, measure="partial_auc")
    options = {"kinds": kinds, "limits": limits, "seed": seed}
    parts = compared_parts(positive, limits, seed)
    found: dict[str, Any] = {
        "set": name,
        "seed": seed,
        "rows": int(y.size),
        "parts": [int(rows.size) for rows in parts],
    }
    for way, used in (("first part", parts[:1]), ("race", parts)):
        start = time.process_time()
        result = compare_families({family: TunedPipeline(family, **options) for family in FAMILIES}, X, y, None, used)
        found[way] = {**result, "cpu": round(time.process_time() - start, 1)}
    simple = (row for row in found["first part"]["table"] if -row["difference"] <= row["difference_error"])
    found["first part"]["family"] = next(row["family"] for row in simple)
    found["test"] = {}
    for family in FAMILIES:
        model = TunedPipeline(family, **options).fit(X, y)
        scores = positive_scores(model, X_test, pos_label="1")
        found["test"][family] = partial_auc_score(positive_test, scores, max_fpr=MAX_FPR)
    return found


def read() -> list[dict[str, Any]]:
    """Return the cells that are there."""
    return [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []


def report() -> None:
    """Write the table."""
    rows = []
    for entry in read():
        first, race = entry["first part"], entry["race"]
        table = {row["family"]: row for row in first["table"]}
        rows.append(
            [
                entry["set"],
                str(entry["seed"]),
                *(f"{table[family]['mean']:.4f}" for family in FAMILIES),
                *(f"{entry['test'][family]:.4f}" for family in FAMILIES),
                first["family"],
                f"{race['family']} ({race['rows']:,} rows)",
                f"{entry['test'][race['family']] - entry['test'][first['family']]:+.4f}",
                *(f"{way['cpu']:.0f}" for way in (first, race)),
            ]
        )
    columns = ["table", "seed", "linear, first part", "boosted, first part", "linear, test", "boosted, test"]
    columns += ["first part chooses", "race chooses", "gain on the test rows", "CPU s, first part", "CPU s, race"]
    publish(
        "family_race",
        "The family that auto chooses on large tables",
        [
            f"Partial AUC up to FPR {MAX_FPR:g}; at most {TRAINING_ROWS:,} training rows, linear and boosted models. "
            '"First part" chooses the simplest family within one standard error of the best on at most 4,000 rows of '
            "each class; the race goes on with four times as many rows until a difference is clear. The scores of the "
            "first part are cross-validated, those on the test rows are of models fitted to all training rows. The CPU "
            "seconds are those of the comparison; after the first part, the chosen family is fitted anew to all rows, "
            "and after a race that ended on all rows it is not.",
            markdown(columns, rows),
        ],
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=[*STEPS, *REAL])
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    done = {(entry["set"], entry["seed"]) for entry in read()}
    warnings.simplefilter("ignore")  # starting points that stop early, which their scores show
    for seed in range(args.seeds):
        for name in args.tables:
            if (name, seed) not in done:
                with STORE.open("a") as out:
                    out.write(json.dumps(cell(name, seed)) + "\n")
    report()


if __name__ == "__main__":
    main()
