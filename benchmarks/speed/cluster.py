"""Boosted trees on a cluster of two worker processes, next to XGBoost's own log loss there with the same trees."""

from __future__ import annotations

import importlib
import resource
import time
from typing import Any

import numpy as np

from benchmarks.speed.case import Case, Figures

N_ROWS, N_FEATURES, ROUNDS = 500_000, 30, 100


def _used() -> float:
    """Return the processor time of a worker process."""
    return time.process_time()


def boosted_trees() -> Figures:
    """Compare a fit of 100 rounds without a search, with its held-out rows and its fit to all rows, to 100 rounds."""
    arrays, distributed = importlib.import_module("dask.array"), importlib.import_module("distributed")
    on_dask = importlib.import_module("xgboost.dask")
    from rocmax.dask import DaskBoostedClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    y = (X[:, 0] + np.abs(X[:, 1]) + rng.normal(size=N_ROWS) > 2.5).astype(np.int64)
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        size = N_ROWS // 8
        rows, labels = client.persist(
            [arrays.from_array(X, chunks=(size, N_FEATURES)), arrays.from_array(y, chunks=size)]
        )

        client.run(importlib.import_module, "rocmax.dask.boosted")

        def timed(call: Any) -> float:
            before = sum(client.run(_used).values())
            call()
            return float(sum(client.run(_used).values()) - before)

        model = DaskBoostedClassifier(
            max_fpr=0.01, objective="window", max_leaf_nodes=31, n_estimators=ROUNDS, random_state=0
        )
        params = {"tree_method": "hist", "grow_policy": "lossguide", "max_depth": 0, "max_leaves": 31, "verbosity": 0}

        def peer() -> None:
            data = on_dask.DaskQuantileDMatrix(client, rows, labels)
            on_dask.train(client, {**params, "objective": "binary:logistic"}, data, num_boost_round=ROUNDS)

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = timed(lambda: model.fit(rows, labels))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        return Figures(
            seconds, timed(peer), grown, "CPU time of both workers; two fits: with held-out rows, and on all rows"
        )


CASES = [
    Case(
        f"trees on 2 workers, {N_ROWS:.0e} x {N_FEATURES}, {ROUNDS} rounds, window objective",
        "xgboost.dask, log loss, as many rounds",
        None,
        boosted_trees,
    )
]
