"""Test partial AUC above a true-positive rate: the default fit and baselines, each tuned on the same inner folds.

The protocol is that of :mod:`benchmarks.peers.partial_auc`: rows (at most ``--rows``) are split 2/3 to 1/3, features
standardised on the training part, every method tuned on the same five stratified folds of it and scored on the rest.
The windows are TPR >= 0.9, and the corner TPR >= 0.5, FPR <= 0.1. Scores are kept in ``results/tpr_floor.jsonl``, so an
interrupted run goes on where it stopped; ``--minutes`` limits one run, ``--report`` only writes the table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from benchmarks.peers.partial_auc import load_or_say, split
from rocmax import AUCClassifier, PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.metrics import make_scorer, partial_auc_score

SEEDS = 5
# (min_tpr, max_fpr)
CORNERS = [(0.9, 1.0), (0.5, 0.1)]
# Sets of partial_auc.py with two positives of the test part or more above a TPR of 0.9.
SETS = [
    "pima", "ionosphere", "abalone", "adult", "cod-rna", "ijcnn1", "letter:A", "letter:K", "letter:O", "letter:Q",
    "letter:S", "letter:Z", "spambase", "covtype", "a9a", "connect-4",
]  # fmt: skip
METHODS = ["auto", "logistic", "logistic balanced", "full AUC", "tight", "structural"]
LEGEND = (
    "Mean test partial AUC of `PartialAUCClassifierCV` (auto) over the seeds, then auto minus each baseline with the "
    "standard error of the paired difference. **Bold**: auto is behind by more than one standard error. Above a "
    "true-positive rate alone, no negatives lie beyond the window, and the structural loss equals the tight one."
)


def model(method: str, floor: float, limit: float, folds: list[Any]) -> Any:
    """Return a method, tuned on the folds."""
    if method == "auto":
        return PartialAUCClassifierCV(min_tpr=floor, max_fpr=limit, cv=folds)
    wide, convex = [0.01, 0.1, 1.0, 10.0], [1.0, 100.0]
    window = {"min_tpr": floor, "max_fpr": limit, "max_iter": 40}
    estimator, grid = {
        "logistic": (LogisticRegression(max_iter=1000), wide),
        "logistic balanced": (LogisticRegression(max_iter=1000, class_weight="balanced"), wide),
        "full AUC": (AUCClassifier(), convex),
        "tight": (PartialAUCClassifier(loss="tight", **window), convex),
        "structural": (PartialAUCClassifier(loss="structural", **window), convex),
    }[method]
    scoring = make_scorer("partial_auc", min_tpr=floor, max_fpr=limit)
    return GridSearchCV(estimator, {"C": grid}, scoring=scoring, cv=folds)


rows_of = cache(split)


def score(name: str, floor: float, limit: float, seed: int, rows: int, method: str) -> float:
    """Return the test partial AUC of a method on one split."""
    X, X_test, y, y_test = rows_of(name, seed, rows)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # baselines may collapse or stop early, which their scores show
        fitted = model(method, floor, limit, folds).fit(X, y)
    return float(partial_auc_score(y_test, fitted.decision_function(X_test), min_tpr=floor, max_fpr=limit))


def difference(scores: dict[str, np.ndarray], method: str) -> tuple[float, float]:
    """Return the mean of auto minus a baseline, and its standard error."""
    gain = scores["auto"] - scores[method]
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(gain.size))


def text(mean: float, error: float) -> str:
    """Return a difference as a cell of the table."""
    cell = f"{mean:+.4f} ± {error:.4f}"
    return f"**{cell}**" if mean < -error else cell


def report(found: dict[Any, float], rows: int, seconds: float) -> None:
    """Write the table of the sets for which all scores are there, and how often auto is ahead and behind."""
    sections = [running_time(seconds), f"At most {rows} rows of a set, {SEEDS} seeds. {LEGEND}"]
    for floor, limit in CORNERS:
        lines, gains = [], []
        for name in SETS:
            scores = {m: [found.get((name, floor, limit, k, rows, m)) for k in range(SEEDS)] for m in METHODS}
            if any(value is None for values in scores.values() for value in values):
                continue
            arrays = {method: np.array(values) for method, values in scores.items()}
            gains.append([difference(arrays, method) for method in METHODS[1:]])
            lines.append((name, f"{arrays['auto'].mean():.4f}", *(text(*gain) for gain in gains[-1])))
        if not lines:
            continue
        title = f"## TPR >= {floor:g}" + (f", FPR <= {limit:g}" if limit < 1 else "")
        sections += [title, markdown(("set", "auto", *METHODS[1:]), lines), summary(np.array(gains))]
    publish("tpr_floor", "Test partial AUC above a true-positive rate", sections)


def summary(gains: np.ndarray) -> str:
    """Return how often auto is ahead and behind, for differences and standard errors of sets by baselines."""
    mean, error = gains[..., 0], gains[..., 1]
    ahead, behind, far_behind = mean > error, mean < -error, mean < -2 * error
    lines = [
        f"- {len(gains)} sets: ahead of every baseline by more than one standard error on {ahead.all(axis=1).sum()}, "
        f"behind a baseline by more than one on {behind.any(axis=1).sum()}, by more than two on "
        f"{far_behind.any(axis=1).sum()}"
    ]
    for k, method in enumerate(METHODS[1:]):
        lines.append(
            f"- against {method}: ahead by more than one standard error on {ahead[:, k].sum()}, behind by more than "
            f"one on {behind[:, k].sum()}, by more than two on {far_behind[:, k].sum()}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the cells and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000, help="largest number of rows taken of a set")
    parser.add_argument("--minutes", type=float, default=np.inf, help="CPU minutes of this run")
    parser.add_argument("--report", action="store_true", help="only write the table")
    args = parser.parse_args()
    most = 0.0 if args.report else 60 * args.minutes

    def work(*job: Any) -> float | None:
        return score(*job) if time.process_time() < most else None

    jobs = [
        (name, *corner, seed, args.rows, method)
        for name, corner, seed, method in product(filter(load_or_say, SETS), CORNERS, range(SEEDS), METHODS)
    ]
    found, seconds = kept("tpr_floor", jobs, work)
    report(found, args.rows, seconds)


if __name__ == "__main__":
    main()
