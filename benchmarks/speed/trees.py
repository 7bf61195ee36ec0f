"""Boosted trees: fits compared with a search by hand with LightGBM, and predictions with its default model."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import lightgbm
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.speed.case import Case, Figures, side_by_side
from rocmax import BoostedClassifier
from rocmax.metrics import partial_auc_score

COLUMNS, NEW_ROWS, TEST_ROWS = 30, 1_000_000, 20_000
SIZES, RATE, ROUNDS, PATIENCE = (6, 31), 0.1, 250, 100
FIXED = {"objective": "binary", "verbose": -1, "num_threads": 1, "learning_rate": RATE}


@cache
def table(n_rows: int) -> tuple[Any, ...]:
    """Return training rows and labels, and test rows and labels."""
    X, y = make_classification(
        n_rows + TEST_ROWS,
        COLUMNS,
        n_informative=15,
        n_clusters_per_class=4,
        weights=[0.95],
        flip_y=0.02,
        random_state=0,
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=TEST_ROWS, stratify=y, random_state=0)
    return X_train, y_train, X_test, y_test


def by_hand(X: Any, y: Any) -> Any:
    """Return LightGBM with the size and rounds of the highest AUC on the folds of `BoostedClassifier`, one refit."""
    many = len(y) > 30_000
    folds = list(StratifiedKFold(4 if many else 5 if len(y) <= 20_000 else 3, shuffle=True, random_state=0).split(X, y))
    best = (-np.inf, 0, 0)
    for size in SIZES:
        found = lightgbm.cv(
            {**FIXED, "num_leaves": size},
            lightgbm.Dataset(X, y, params={"verbose": -1}),
            ROUNDS,
            folds=folds[:1] if many else folds,
            metrics="auc",
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )["valid auc-mean"]
        best = max(best, (max(found), size, int(np.argmax(found)) + 1))
    _, size, rounds = best
    return lightgbm.train({**FIXED, "num_leaves": size}, lightgbm.Dataset(X, y, params={"verbose": -1}), rounds)


def fit(n_rows: int, n_models: int) -> Figures:
    """Measure a fit."""
    X, y, X_test, y_test = table(n_rows)

    def remark(ours: BoostedClassifier, peer: Any) -> str:
        scores = ours.decision_function(X_test), peer.predict(X_test, raw_score=True, num_threads=1)
        values = [partial_auc_score(y_test, found, max_fpr=0.1) for found in scores]
        return (
            f"partial AUC {values[0]:.3f}, by hand {values[1]:.3f}; {len(ours.models_)} x {ours.n_estimators_} trees, "
            f"by hand {peer.num_trees()}"
        )

    ours = BoostedClassifier(n_models=n_models, n_jobs=1, random_state=0)
    return side_by_side(lambda: ours.fit(X, y), lambda: by_hand(X, y), remark)


def predict(n_rows: int, n_models: int) -> Figures:
    """Measure the decision values of a million rows by a model of some rows."""
    X, y, *_ = table(n_rows)
    rng = np.random.default_rng(0)
    new = X[rng.integers(0, n_rows, NEW_ROWS)] + 0.1 * rng.normal(size=(NEW_ROWS, COLUMNS))
    ours = BoostedClassifier(n_models=n_models, n_jobs=1, random_state=0).fit(X, y)
    peer = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, random_state=0).fit(X, y)
    return side_by_side(
        lambda: ours.decision_function(new),
        lambda: peer.predict(new, raw_score=True),
        lambda *_: f"{len(ours.models_)} x {ours.n_estimators_} trees of {ours.max_leaf_nodes_} leaves",
    )


def cases(what: str, peer: str, goal: float, measure: Any, sizes: tuple[int, ...]) -> list[Case]:
    """Return the cases of some numbers of training rows, with the default number of models and with one."""
    return [
        Case(f"{what} {n:,} x {COLUMNS}, {models}", peer, goal, partial(measure, n, n_models))
        for n in sizes
        for n_models, models in ((3, "three models (default)"), (1, "n_models=1"))
    ]


CASES = [
    *cases("BoostedClassifier,", "LightGBM, search by hand", 1.5, fit, (5_000, 50_000, 500_000)),
    *cases(f"{NEW_ROWS:,} rows scored after a fit to", "LightGBM, defaults", 3.0, predict, (5_000, 50_000)),
]
