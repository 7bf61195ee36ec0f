"""Test partial AUC of `EnsembleClassifier`, `BoostedClassifier` and extremely randomized trees.

The sets, splits and windows are those of `benchmarks.peers.boosted`; both windows judge one fit. The other models
are

- `BoostedClassifier` with its defaults;
- extremely randomized trees of scikit-learn: 500, otherwise with the defaults, on codes of the categories;
- the mean of these two in the logarithms of their ranks among the test rows.

The rules of `EnsembleClassifier` were chosen on splits with the seeds 100 and 101, which are not reported.

Scores are kept in ``results/ensemble.jsonl``, so an interrupted run goes on where it stopped. ``--report`` only writes
the tables.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import cpu_time, markdown, publish
from benchmarks.peers.boosted import LIMITS, SEEN, TEST_ROWS, UNSEEN, load
from rocmax import BoostedClassifier, EnsembleClassifier
from rocmax.metrics import partial_auc_score

OURS, TODAY, FOREST, MEAN = "EnsembleClassifier", "BoostedClassifier", "extremely randomized trees", "mean of the two"
METHODS = (OURS, TODAY, FOREST, MEAN)
ROWS = 5000


def rows_of(name: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return training and test rows with categorical columns, as `benchmarks.peers.boosted` splits them."""
    X, y = load(name)
    train, test = train_test_split(
        np.arange(y.size), train_size=min(ROWS, y.size * 2 // 3), stratify=y, random_state=seed
    )
    if test.size > TEST_ROWS:
        test, _ = train_test_split(test, train_size=TEST_ROWS, stratify=y[test], random_state=seed)
    X = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    return X.iloc[train], y[train], X.iloc[test], y[test]


def coded(X: pd.DataFrame) -> np.ndarray:
    """Return the rows with the codes of categories, and NaN for missing ones."""
    columns = [
        X[name].cat.codes.replace(-1, np.nan) if isinstance(X[name].dtype, pd.CategoricalDtype) else X[name]
        for name in X.columns
    ]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


def log_ranks(scores: np.ndarray) -> np.ndarray:
    """Return minus the logarithm of the share of rows that rank at least as high."""
    return -np.log(rankdata(-scores) / scores.size)


def compared(name: str, seed: int, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the test scores and CPU seconds of each method, for both windows; of ours only if others are known."""
    X, y, X_test, y_test = rows_of(name, seed)

    def ours(model: Any) -> np.ndarray:
        return model.fit(X, y).decision_function(X_test)

    def forest() -> np.ndarray:
        model = ExtraTreesClassifier(500, n_jobs=1, random_state=seed)
        return model.fit(coded(X), y).predict_proba(coded(X_test))[:, 1]

    spent, found = {}, {}
    # Neither window is above 0.1, so that the fits do not depend on it.
    window = {"max_fpr": max(LIMITS), "n_jobs": 1, "random_state": seed}
    spent[OURS], found[OURS] = cpu_time(lambda: ours(EnsembleClassifier(**window)))
    if known is not None:
        areas = [partial_auc_score(y_test, found[OURS], max_fpr=limit) for limit in LIMITS]
        seconds = {**known["seconds"], OURS: round(spent[OURS], 2)}
        return {**known, "seconds": seconds, "scores": {**known["scores"], OURS: areas}}
    spent[TODAY], found[TODAY] = cpu_time(lambda: ours(BoostedClassifier(**window)))
    spent[FOREST], found[FOREST] = cpu_time(forest)
    found[MEAN], spent[MEAN] = log_ranks(found[TODAY]) + log_ranks(found[FOREST]), spent[TODAY] + spent[FOREST]
    return {
        "rows": int(y.size),
        "positives": int(y.sum()),
        "seconds": {method: round(seconds, 2) for method, seconds in spent.items()},
        "scores": {
            method: [partial_auc_score(y_test, scores, max_fpr=limit) for limit in LIMITS]
            for method, scores in found.items()
        },
    }


def gains(cells: dict[Any, Any], other: str) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the mean of our score minus the other's, and its standard error, by set and window."""
    found = {}
    for name in dict.fromkeys(name for name, _ in cells):
        part = [cell["scores"] for (each, _), cell in cells.items() if each == name]
        lead = np.array([np.subtract(scores[OURS], scores[other]) for scores in part])
        for i, _ in enumerate(LIMITS):
            error = float(lead[:, i].std(ddof=1) / len(lead) ** 0.5) if len(lead) > 1 else np.nan
            found[name, i] = float(lead[:, i].mean()), error
    return found


def summary(cells: dict[Any, Any]) -> str:
    """Return the mean differences to the others, and how often we are ahead or behind."""
    lines = []
    for other in METHODS[1:]:
        found = gains(cells, other)
        means = np.array([mean for mean, _ in found.values()])
        by_set = np.array([np.mean([found[name, i][0] for i in range(len(LIMITS))]) for name, i in found if i == 0])
        ahead, behind = (sum(sign * mean > 0 for mean, _ in found.values()) for sign in (1, -1))
        clear = sum(mean < -2 * error for mean, error in found.values())
        error = by_set.std(ddof=1) / by_set.size**0.5
        mean = f"{means.mean():+.4f} ± {error:.4f}"
        lines.append([other, str(means.size), mean, str(ahead), str(behind), str(clear)])
    return markdown(["compared with", "pairs", "mean difference", "ahead", "behind", "behind by two SE"], lines)


def table(cells: dict[Any, Any]) -> str:
    """Return the mean score of each method by set and window, with our difference to the others."""
    lines = []
    for name, (i, limit) in product(dict.fromkeys(name for name, _ in cells), enumerate(LIMITS)):
        part = [cell for (each, _), cell in cells.items() if each == name]
        line = [name, f"{limit:g}", str(part[0]["rows"]), str(part[0]["positives"])]
        line.append(f"{np.mean([cell['scores'][OURS][i] for cell in part]):.4f}")
        for other in METHODS[1:]:
            gain, error = gains(cells, other)[name, i]
            known = "" if np.isnan(error) else f" ± {error:.4f}"
            line.append(f"{np.mean([cell['scores'][other][i] for cell in part]):.4f} ({gain:+.4f}{known})")
        lines.append(line)
    return markdown(["set", "FPR up to", "rows", "positives", *METHODS], lines)


def times(cells: dict[Any, Any]) -> str:
    """Return the CPU seconds of a fit and of the predictions, by set."""
    names = dict.fromkeys(name for name, _ in cells)
    lines = [
        [
            name,
            *(f"{np.mean([c['seconds'][m] for (each, _), c in cells.items() if each == name]):.1f}" for m in METHODS),
        ]
        for name in names
    ]
    means = [f"{np.mean([cell['seconds'][method] for cell in cells.values()]):.1f}" for method in METHODS]
    return markdown(["set", *METHODS], [*lines, ["mean", *means]])


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ours", action="store_true", help="compute the scores of EnsembleClassifier anew")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    path = Path(__file__).parents[1] / "results" / "ensemble.jsonl"
    if args.ours:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            line[1] = compared(*line[0], line[1])
            print(*line[0], flush=True)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    there = {tuple(json.loads(line)[0]) for line in path.read_text().splitlines()} if path.exists() else set()
    names = [name for name in SEEN + UNSEEN if load(name) is not None]
    jobs = [(name, seed) for seed, name in product(range(args.seeds), names)]
    cells, seconds = kept("ensemble", [job for job in jobs if not args.report or job in there], compared)
    n_sets, n_seeds = (len(set(values)) for values in zip(*cells, strict=True))
    parts = [
        f"{running_time(seconds)} Mean test partial AUC on {n_sets} sets, at most {n_seeds} random splits of each. "
        "In parentheses our score minus the other's, with its standard error (SE) over several splits. The mean of the "
        "two is one of the logarithms of the ranks. The standard error of a mean difference is that over the sets.",
        summary(cells),
        table(cells),
        "CPU seconds of a fit and of the scores of the test rows, one thread:",
        times(cells),
    ]
    publish("ensemble", "Ensembles for the partial AUC, compared with boosted trees", parts)


if __name__ == "__main__":
    main()
