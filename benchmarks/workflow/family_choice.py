"""Regret of ``auto``: the family that it chooses against the better of linear and boosted in hindsight.

One cell is a data set, a seed and a window: at most ``--rows`` training rows (two thirds of a smaller set), at most
20,000 test rows. The linear, the additive and the boosted model are tuned and compared as in ``rocmax fit``; LightGBM
with its defaults is fitted to the same rows. Cells are kept in ``results/family_choice.jsonl``, so an interrupted run
goes on where it stopped; ``--report`` only writes the table.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import product
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from benchmarks._shared.results import RESULTS, markdown, publish
from benchmarks.peers.boosted import load
from rocmax.metrics import partial_auc_score, positive_scores
from rocmax.tables import Limits
from rocmax.tables.tune import TunedPipeline, compare_families, families_for

STORE = RESULTS / "family_choice.jsonl"
SMALL = ["credit", "german-credit", "ionosphere", "kddcup06_test", "oil", "pima", "spectf", "wdbc", "wpbc", "yeast_me2"]
LARGE = [
    "abalone", "adult", "a9a", "bank-full", "cod-rna", "connect-4", "covtype:5", "higgs_small", "ijcnn1", "letter:K",
    "letter:Q", "spambase", "susy_30k", "telco-churn",
]  # fmt: skip
LIMITS = (0.05, 0.01)
TEST_ROWS = 20_000
# A window needs a handful of negatives in the test part.
FEWEST_NEGATIVES = 5
# Standard errors within which the simplest family is taken; auto takes the best mean.
RULES = (0.0, 0.25, 1.0, 2.0)


def cell(name: str, seed: int, max_fpr: float, rows: int) -> dict[str, Any] | None:
    """Fit all families and LightGBM; return the table of the choice with the scores on the test rows."""
    X, labels = load(name)
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    train, test = train_test_split(
        np.arange(labels.size), train_size=min(rows, labels.size * 2 // 3), stratify=labels, random_state=seed
    )
    if test.size > TEST_ROWS:
        test, _ = train_test_split(test, train_size=TEST_ROWS, stratify=labels[test], random_state=seed)
    if (labels[test] == 0).sum() * max_fpr < FEWEST_NEGATIVES:
        return None
    start = time.process_time()
    plain = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1).fit(X.iloc[train], labels[train])
    scores = {"LightGBM": plain.predict(X.iloc[test], raw_score=True)}
    table = X.astype({column: object for column in X.columns if X[column].dtype == "category"})
    kinds = {name: "number" if dtype.kind == "f" else "text" for name, dtype in table.dtypes.items()}
    y = np.where(labels == 1, "1", "0").astype(object)
    options = {"kinds": kinds, "limits": Limits(max_fpr, measure="partial_auc"), "seed": seed}
    models = {family: TunedPipeline(family, **options) for family in families_for(kinds)[0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # starting points that stop early, which their scores show
        found = compare_families(models, table.iloc[train], y[train], None)["table"]
    scores |= {family: positive_scores(model, table.iloc[test], pos_label="1") for family, model in models.items()}
    return {
        "set": name,
        "seed": seed,
        "max_fpr": max_fpr,
        "rows": int(train.size),
        "seconds": round(time.process_time() - start, 1),
        "table": found,
        "test": {key: partial_auc_score(labels[test], values, max_fpr=max_fpr) for key, values in scores.items()},
    }


def read() -> list[dict[str, Any]]:
    """Return the cells that are there."""
    return [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []


def run(seeds: int, rows: int, jobs: int) -> None:
    """Compute the cells that are not there yet."""
    done = {(entry["set"], entry["seed"], entry["max_fpr"]) for entry in read()}
    present = [name for name in SMALL + LARGE if load(name) is not None]
    for name in set(SMALL + LARGE) - set(present):
        print(f"skipped {name}: not in the data directory (set ROCMAX_DATA)")
    wanted = [key for key in ((n, s, m) for s, m, n in product(range(seeds), LIMITS, present)) if key not in done]
    results = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(cell)(*key, rows) for key in wanted)
    with STORE.open("a") as out:
        for result in results:
            if result is not None:
                out.write(json.dumps(result) + "\n")
                out.flush()


def chosen(entry: dict[str, Any], errors: float) -> str:
    """Return the simplest family within a number of standard errors of the best."""
    rows = entry["table"]
    return next(row["family"] for row in rows if -row["difference"] <= errors * (row["difference_error"] or 0.0))


def mean_and_error(values: list[float]) -> str:
    """Return a mean with its standard error over the sets."""
    return f"{np.mean(values):+.4f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"


def by_set(entries: list[dict[str, Any]], value: Any) -> list[float]:
    """Return the mean of a value over the cells of each set and window."""
    keys = dict.fromkeys((entry["set"], entry["max_fpr"]) for entry in entries)
    return [
        float(np.mean([value(entry) for entry in entries if (entry["set"], entry["max_fpr"]) == key])) for key in keys
    ]


def rules_table(entries: list[dict[str, Any]]) -> str:
    """Return the mean regret of some rules of choice."""
    rows = []
    for label, names in (("all", SMALL + LARGE), ("2,000 rows or more", LARGE), ("fewer than 2,000 rows", SMALL)):
        part = [entry for entry in entries if entry["set"] in names]
        for errors in RULES:

            def regret(entry: dict[str, Any], errors: float = errors) -> float:
                return max(entry["test"]["linear"], entry["test"]["boosted"]) - entry["test"][chosen(entry, errors)]

            families = [chosen(entry, errors) for entry in part]
            rule = "best mean" if errors == 0 else f"simplest within {errors:g} SE"
            counts = [str(families.count(name)) for name in ("linear", "additive", "boosted")]
            rows.append([label, rule, str(len(part)), mean_and_error(by_set(part, regret)), *counts])
    return markdown(["sets", "rule", "fits", "mean regret", "linear", "additive", "boosted"], rows)


def gains_table(entries: list[dict[str, Any]]) -> str:
    """Return the mean gain of ``auto`` and of each family over LightGBM with its defaults."""
    rows = []
    for label, names in (("2,000 rows or more", LARGE), ("fewer than 2,000 rows", SMALL)):
        for max_fpr in LIMITS:
            part = [entry for entry in entries if entry["set"] in names and entry["max_fpr"] == max_fpr]
            if not part:
                continue
            of = {"auto": lambda e: e["test"][chosen(e, 0.0)]}
            of |= {name: lambda e, name=name: e["test"][name] for name in ("linear", "boosted")}
            gains = [
                mean_and_error(by_set(part, lambda e, score=score: score(e) - e["test"]["LightGBM"]))
                for score in of.values()
            ]
            rows.append([label, f"{max_fpr:g}", str(len({entry["set"] for entry in part})), *gains])
    return markdown(["rows", "FPR up to", "sets", "auto", "linear", "boosted"], rows)


def report() -> None:
    """Write the tables."""
    entries = read()
    minutes = sum(entry["seconds"] for entry in entries) / 60
    publish(
        "family_choice",
        "The family that auto chooses",
        [
            f"Test partial AUC after fits to at most {max(entry['rows'] for entry in entries)} rows, random splits of "
            f"each set: {len({entry['seed'] for entry in entries})}, {minutes:.0f} CPU minutes. The regret is the "
            "score of the better of the linear and the boosted model on the test rows, minus that of the chosen model; "
            "it is negative where the additive model is chosen and better than both. `auto` takes the best mean; the "
            "other rules take the simplest family within some standard errors (SE) of it. Means over sets and windows, "
            "with standard errors over them.",
            rules_table(entries),
            "Test partial AUC minus that of LightGBM with its defaults, means over sets with standard errors:",
            gains_table(entries),
        ],
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        run(args.seeds, args.rows, args.jobs)
    report()


if __name__ == "__main__":
    main()
