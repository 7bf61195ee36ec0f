"""The default fit against published figures: all rows, 2/3-1/3 splits, CPU time as a multiple of LogisticRegression.

Published figures are the best linear row of Narasimhan and Agarwal (2017), Table 4, for [0.02, 0.05]. The last column
is no test: a fit to all rows for their partial AUC alone, scored on the same rows. A published figure above it is out
of reach of the linear models found here on this file.
Figures are kept in ``results/published.jsonl``, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from benchmarks._shared.tables import load, load_or_say
from rocmax import PartialAUCClassifier
from rocmax.metrics import partial_auc_score

TARGETS = [
    ("a9a", (0.02, 0.05), 0.4338),
    ("cod-rna", (0.02, 0.05), 0.9196),
    ("ijcnn1", (0.02, 0.05), 0.6798),
    ("ijcnn1", (0.0, 0.05), None),
    ("letter:Z", (0.0, 0.05), None),
    ("cod-rna", (0.0, 0.05), None),
    ("covtype", (0.0, 0.05), None),
]


def timed(fit: object) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    fit()
    return time.process_time() - start


def trial(X: np.ndarray, y: np.ndarray, window: tuple[float, float], C: float, seed: int) -> tuple[float, ...]:
    """Return the partial AUC of logistic regression and of the default fit, and the ratio of their CPU times."""
    X, X_test, y, y_test = train_test_split(X, y, train_size=2 / 3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    logistic, model = LogisticRegression(max_iter=1000), PartialAUCClassifier(*window, C=C)
    ratio = timed(lambda: model.fit(X, y)) / timed(lambda: logistic.fit(X, y))
    base = partial_auc_score(y_test, logistic.decision_function(X_test), min_fpr=window[0], max_fpr=window[1])
    return base, model.score(X_test, y_test), ratio


def seen(X: np.ndarray, y: np.ndarray, window: tuple[float, float]) -> float:
    """Return the partial AUC of all rows by a model that is fitted to them, with next to no penalty."""
    return PartialAUCClassifier(*window, C=1e6).fit(X, y).score(X, y)


def figures(name: str, low: float, high: float, C: float, seed: int) -> list[float] | None:
    """Return the figures of one split, or the score of the rows seen if ``seed`` is -1; None without the data."""
    if not load_or_say(name):
        return None
    X, y = load(name)
    return [seen(X, y, (low, high))] if seed < 0 else list(trial(X, y, (low, high), C, seed))


def main() -> None:
    """Run all targets and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    jobs = [
        (name, *window, C, seed)
        for name, window, _ in TARGETS
        for C, seed in [*product((1.0, 10.0), range(args.seeds)), (1e6, -1)]
    ]
    with threadpool_limits(1):
        found, seconds = kept("published", jobs, figures)
    rows = []
    for name, window, target in TARGETS:
        if (name, *window, 1e6, -1) not in found:
            continue
        one, ten = (np.mean([found[name, *window, C, s] for s in range(args.seeds)], axis=0) for C in (1.0, 10.0))
        figures_shown = [f"{value:.4f}" for value in (one[0], one[1], ten[1])]
        times = [f"{value:.1f}" for value in (one[2], ten[2])]
        (whole,) = found[name, *window, 1e6, -1]
        published = "" if target is None else f"{target:.4f}"
        rows.append([name, f"[{window[0]:g}, {window[1]:g}]", published, *figures_shown, *times, f"{whole:.4f}"])
    columns = ["set", "window", "published", "logistic", "auto, C=1", "auto, C=10", "x LR time, C=1", "x LR time, C=10"]
    publish(
        "published",
        'Published figures for linear models, and `PartialAUCClassifier` (loss="auto")',
        [
            running_time(seconds),
            f"Mean test partial AUC over {args.seeds} splits, all rows; time as a multiple of LogisticRegression on "
            "the same rows. Published: Narasimhan and Agarwal (2017), Table 4, best linear method. Rows seen: the "
            "score on all rows of a model fitted to them for their partial AUC alone, not a test.",
            markdown([*columns, "rows seen"], rows),
        ],
    )


if __name__ == "__main__":
    main()
