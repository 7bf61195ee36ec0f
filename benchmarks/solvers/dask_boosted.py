"""Boosted trees on a cluster of two worker processes against one process: partial AUC on test rows, five seeds.

Both get the same training rows and search in the same way; one process uses folds, as by default, with XGBoost and one
model. On the cluster, a quarter of the rows of each partition is held out. The bytes are those that a worker adds to a
round of XGBoost: the arrays that the objective and the held-out score exchange.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import dask.array as da
import distributed
import numpy as np
import xgboost
from sklearn.model_selection import train_test_split

from benchmarks._shared.data import load_real
from benchmarks._shared.results import markdown, publish
from rocmax import BoostedClassifier, metrics
from rocmax.dask import DaskBoostedClassifier
from rocmax.dask.boosted import SharedObjective, SharedScore
from rocmax.losses import WindowPairs
from rocmax.measures import PartialAUCMeasure

MAX_FPR = 0.01


def largest_round(n_rows: int = 10_000) -> int:
    """Return the bytes that a worker adds to a round with the window objective in which held-out rows are scored."""
    sent = 0

    def counted(values: Any, operation: Any) -> Any:
        nonlocal sent
        sent += values.nbytes
        return values

    rng = np.random.default_rng(0)
    rows, scores = xgboost.DMatrix(np.zeros((n_rows, 1)), rng.random(n_rows) < 0.1), rng.normal(size=n_rows)
    plain, xgboost.collective.allreduce = xgboost.collective.allreduce, counted
    try:
        SharedObjective(WindowPairs(), 0, 9, None)(scores, rows)
        SharedScore(PartialAUCMeasure(0.0, MAX_FPR), 9, 10)(scores, rows)
    finally:
        xgboost.collective.allreduce = plain
    return sent


def scores_of(name: str, seed: int, n_train: int, objective: str) -> list[float]:
    """Return the partial AUC of one process and of the cluster on the test rows of a split."""
    found = load_real(name)
    assert found is not None
    X, y = np.asarray(found.X, dtype=np.float64), np.asarray(found.y) > 0
    train, test, labels, expected = train_test_split(X, y, train_size=n_train, stratify=y, random_state=seed)
    options: dict[str, Any] = {"max_fpr": MAX_FPR, "objective": objective, "random_state": seed}
    one = BoostedClassifier(**options, engine="xgboost", n_models=1, n_jobs=1).fit(train, labels)
    size = -(-n_train // 6)
    rows = da.from_array(train, chunks=(size, train.shape[1])), da.from_array(labels, chunks=size)
    cluster = DaskBoostedClassifier(**options).fit(*rows).to_local()
    return [
        float(metrics.partial_auc_score(expected, model.decision_function(test), max_fpr=MAX_FPR))
        for model in (one, cluster)
    ]


def main() -> None:
    """Run the fits and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", nargs="+", default=["ijcnn1"])
    options = parser.parse_args()
    cluster_options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0"}
    table = []
    with distributed.LocalCluster(**cluster_options) as cluster, distributed.Client(cluster):
        for name in options.data:
            for objective in ("binary", "auto"):
                pairs = [scores_of(name, seed, options.rows, objective) for seed in range(options.seeds)]
                one, many = np.array(pairs).T
                error = float(np.std(many - one, ddof=1)) / np.sqrt(len(pairs)) if len(pairs) > 1 else float("nan")
                table.append([name, objective, f"{one.mean():.4f}", f"{many.mean():.4f}"])
                table[-1].append(f"{(many - one).mean():+.4f} +- {error:.4f}")
                print(table[-1], pairs, flush=True)
    sections = [
        f"Partial AUC for FPR <= {MAX_FPR:g} on the rows not used for training, {options.rows:,} training rows, "
        f"means over {options.seeds} splits with their standard error. Bytes that a worker adds to a round at most: "
        f"{largest_round():,}. Load average of the machine at the end: {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores.",
        markdown(["data", "objective", "one process", "two workers", "difference"], table),
    ]
    print("\n\n".join(sections))
    publish("dask_boosted", "Boosted trees on a cluster against one process", sections)


if __name__ == "__main__":
    main()
