"""Test partial AUC of `BoostedClassifier` compared with LightGBM and XGBoost, with their defaults and tuned.

One cell is a data set and a seed: at most ``--rows`` training rows (two thirds of a smaller set), at most 20,000 test
rows, both stratified. All models see the columns as they come: categories and missing values are left to the engines.
The other models are

- LightGBM and XGBoost with their defaults (100 rounds);
- LightGBM tuned by logloss: 6, 15, 31 or 63 leaves, and the learning rate, limit of rounds, folds and random subsets of
  `BoostedClassifier`, the number of rounds by early stopping, then fitted to all rows with subsets and seeds like it,
  half the learning rate, twice the rounds. Once as a single model, and once as the mean of three, as
  `BoostedClassifier`.

Scores are kept in ``results/boosted.jsonl``, so an interrupted run goes on where it stopped. ``--report`` only writes
the table.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks._shared.data import data_directory
from benchmarks._shared.results import markdown, publish
from benchmarks._shared.tables import load as load_numbers
from rocmax import BoostedClassifier
from rocmax.metrics import partial_auc_score

CELLS = Path(__file__).parents[1] / "results" / "boosted.jsonl"
LIMITS = (0.01, 0.05)
# The rules of `BoostedClassifier` were chosen on these sets, partly with the same splits; the others were not
# looked at before.
SEEN = [
    "abalone", "spambase", "higgs_small", "susy_30k", "adult", "ijcnn1", "covtype:5", "letter:Q", "a9a", "letter:K",
    "bank-full",
]  # fmt: skip
UNSEEN = [
    "cod-rna", "connect-4", "covtype:2", "covtype:4", "letter:A", "letter:O", "letter:S", "letter:Z", "telco-churn",
]  # fmt: skip
TABLES = {
    "bank-full": ("term deposit", "yes", ["duration"]),
    "german-credit": ("risk", 2, []),
    "telco-churn": ("Churn", "Yes", ["customerID"]),
}
OURS, OTHERS = "BoostedClassifier", ["LightGBM", "XGBoost", "LightGBM by logloss", "LightGBM by logloss x 3"]
SIZES, RATE, ROUNDS, PATIENCE = (6, 15, 31, 63), 0.1, 250, 100
SUBSETS = {"bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.8}
TEST_ROWS = 20_000


def load(name: str) -> tuple[Any, np.ndarray] | None:
    """Return the columns and labels of a set, or None if its file is absent; ``set:class`` picks a positive class."""
    return load_table(name) if name in TABLES else load_numbers(name)


def load_table(name: str) -> tuple[pd.DataFrame, np.ndarray] | None:
    """Return a csv file as a data frame with categorical columns; identifiers and columns that leak are left out."""
    path = data_directory() / "tables" / f"{name}.csv.gz"
    if not path.exists():
        return None
    target, positive, dropped = TABLES[name]
    with gzip.open(path) as file:
        frame = pd.read_csv(file, na_values=[" ", "?"], skipinitialspace=True)
    y = (frame.pop(target) == positive).to_numpy().astype(int)
    frame = frame.drop(columns=dropped)
    for column in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[column])
        frame[column] = frame[column].astype(np.float64) if numeric else frame[column].astype("category")
    return frame, y


def folds_of(y: np.ndarray, seed: int) -> list[Any]:
    """Return the folds in which LightGBM is tuned."""
    return list(StratifiedKFold(5, shuffle=True, random_state=seed).split(y, y))


def tuned(X: Any, y: np.ndarray, seed: int, metric: str = "binary_logloss", sign: int = 1) -> list[Any]:
    """Return three refits of LightGBM with the size and rounds of the best mean of a metric in cross-validation.

    ``sign`` is 1 if lower is better, -1 otherwise.
    """
    fixed = {"objective": "binary", "verbose": -1, "num_threads": 1, "learning_rate": RATE, **SUBSETS}
    best = (np.inf, 0, 0)
    for size in SIZES:
        found = lightgbm.cv(
            {**fixed, "num_leaves": size, "seed": seed},
            lightgbm.Dataset(X, y, params={"verbose": -1}),
            ROUNDS,
            folds=folds_of(y, seed),
            metrics=metric,
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )[f"valid {metric}-mean"]
        rounds = int(np.argmin(sign * np.asarray(found)))
        best = min(best, (sign * found[rounds], size, rounds + 1))
    _, size, rounds = best
    params = {**fixed, "num_leaves": size, "learning_rate": RATE / 2}
    rows = lightgbm.Dataset(X, y, params={"verbose": -1})
    return [lightgbm.train({**params, "seed": 1000 * seed + i}, rows, round(2 * 1.25**0.5 * rounds)) for i in range(3)]


def our_scores(X: Any, y: np.ndarray, X_test: Any, seed: int) -> dict[str, np.ndarray]:
    """Return the test scores of our model."""
    model = BoostedClassifier(max_fpr=max(LIMITS), n_jobs=1, random_state=seed).fit(X, y)
    return {OURS: model.decision_function(X_test)}


def scores(X: Any, y: np.ndarray, X_test: Any, seed: int) -> dict[str, np.ndarray]:
    """Return the test scores of every method."""
    plain = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, random_state=seed).fit(X, y)
    other = xgboost.XGBClassifier(n_jobs=1, random_state=seed, enable_categorical=True).fit(X, y)
    by_logloss = [model.predict(X_test, raw_score=True) for model in tuned(X, y, seed)]
    return {
        **our_scores(X, y, X_test, seed),
        "LightGBM": plain.predict(X_test, raw_score=True),
        "XGBoost": other.predict(X_test, output_margin=True),
        "LightGBM by logloss": by_logloss[0],
        "LightGBM by logloss x 3": np.mean(by_logloss, axis=0),
    }


def split(name: str, seed: int, rows: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return training rows with their labels, and test rows with theirs."""
    X, y = load(name)
    train, test = train_test_split(
        np.arange(y.size), train_size=min(rows, y.size * 2 // 3), stratify=y, random_state=seed
    )
    if test.size > TEST_ROWS:
        test, _ = train_test_split(test, train_size=TEST_ROWS, stratify=y[test], random_state=seed)
    take = X.iloc.__getitem__ if isinstance(X, pd.DataFrame) else X.__getitem__
    return take(train), y[train], take(test), y[test]


def cell(name: str, seed: int, rows: int, found_by: Callable[..., dict[str, np.ndarray]] = scores) -> dict[str, Any]:
    """Score all methods on one split, for both windows: the fits do not depend on a window of at most 0.1."""
    X, y, X_test, y_test = split(name, seed, rows)
    start = time.process_time()
    found = found_by(X, y, X_test, seed)
    return {
        "set": name,
        "seed": seed,
        "rows": int(y.size),
        "positives": int(y.sum()),
        "seconds": round(time.process_time() - start, 1),
        "scores": {
            method: [partial_auc_score(y_test, decision, max_fpr=limit) for limit in LIMITS]
            for method, decision in found.items()
        },
    }


def read() -> list[dict[str, Any]]:
    """Return the cells that are there."""
    return [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []


def run(seeds: int, rows: int, jobs: int) -> None:
    """Compute the cells that are not there yet."""
    done = {(cell["set"], cell["seed"]) for cell in read()}
    present = [name for name in SEEN + UNSEEN if load(name) is not None]
    for name in set(SEEN + UNSEEN) - set(present):
        print(f"skipped {name}: not in the data directory (set ROCMAX_DATA)")
    wanted = [(name, seed, rows) for seed, name in product(range(seeds), present) if (name, seed) not in done]
    results = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(cell)(*key) for key in wanted)
    with CELLS.open("a") as out:
        for result in results:
            out.write(json.dumps(result) + "\n")
            out.flush()


def run_ours(rows: int, jobs: int) -> None:
    """Compute our scores of the cells anew; those of the others, and the time of the cells, stay."""
    cells = read()
    results = Parallel(n_jobs=jobs)(delayed(cell)(c["set"], c["seed"], rows, our_scores) for c in cells)
    for old, new in zip(cells, results, strict=True):
        old["scores"] = {**old["scores"], **new["scores"]}
    CELLS.write_text("".join(json.dumps(c) + "\n" for c in cells))


def differences(cells: list[dict[str, Any]], other: str) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the mean of our score minus the other's, and its standard error, by set and window."""
    found = {}
    for name in dict.fromkeys(cell["set"] for cell in cells):
        gains = np.array([np.subtract(c["scores"][OURS], c["scores"][other]) for c in cells if c["set"] == name])
        for i, _ in enumerate(LIMITS):
            error = float(gains[:, i].std(ddof=1) / len(gains) ** 0.5) if len(gains) > 1 else np.nan
            found[name, i] = float(gains[:, i].mean()), error
    return found


def summary(cells: list[dict[str, Any]]) -> str:
    """Return the numbers of set-window pairs won and lost against each of the others."""
    lines = []
    for label, names in (("all", SEEN + UNSEEN), ("not used for the design", UNSEEN)):
        part = [cell for cell in cells if cell["set"] in names]
        for other in OTHERS:
            found = differences(part, other).values()
            ahead, behind = (sum(sign * mean > error for mean, error in found) for sign in (1, -1))
            mean = float(np.mean([mean for mean, _ in found]))
            lines.append([label, other, str(len(found)), str(ahead), str(behind), f"{mean:+.4f}"])
    return markdown(
        [
            "sets",
            "compared with",
            "pairs",
            "ahead by more than one SE",
            "behind by more than one SE",
            "mean difference",
        ],
        lines,
    )


def table(cells: list[dict[str, Any]]) -> str:
    """Return the mean test partial AUC of each method, with the difference to the others."""
    lines = []
    for name, (i, limit) in product(dict.fromkeys(c["set"] for c in cells), enumerate(LIMITS)):
        part = [c for c in cells if c["set"] == name]
        means = [np.mean([c["scores"][method][i] for c in part]) for method in (OURS, *OTHERS)]
        gains = [differences(part, other)[name, i] for other in OTHERS]
        note = "" if name in UNSEEN else "*"
        first = [name + note, f"{limit:g}", str(part[0]["rows"]), str(part[0]["positives"])]
        lines.append([*first, f"{means[0]:.4f}", *(
            f"{mean:.4f} ({gain:+.4f} ± {error:.4f})" for mean, (gain, error) in zip(means[1:], gains, strict=True)
        )])  # fmt: skip
    return markdown(["set", "FPR up to", "rows", "positives", OURS, *OTHERS], lines)


def report() -> None:
    """Write the tables."""
    order = {name: i for i, name in enumerate(SEEN + UNSEEN)}
    cells = sorted(read(), key=lambda c: (order[c["set"]], c["seed"]))
    seeds = sorted({c["seed"] for c in cells})
    minutes = sum(c["seconds"] for c in cells) / 60
    publish(
        "boosted",
        "Boosted trees for the partial AUC, compared with LightGBM and XGBoost",
        [
            f"Mean test partial AUC over {len(seeds)} random splits, and in parentheses our score minus the other's "
            "with its standard error (SE) over the splits. An asterisk marks the sets on which the rules of "
            "`BoostedClassifier` were chosen. LightGBM by logloss is tuned on the same grid and folds, and fitted to "
            f"all rows alike, as one model and as the mean of three. {minutes:.0f} CPU minutes in all.",
            summary(cells),
            table(cells),
        ],
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--ours", action="store_true", help="compute the scores of BoostedClassifier anew")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if args.ours:
        run_ours(args.rows, args.jobs)
    elif not args.report:
        run(args.seeds, args.rows, args.jobs)
    report()


if __name__ == "__main__":
    main()
