"""Cross-validated partial AUC next to cross-validated logistic regression, and the default fit on wide sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from benchmarks._shared.data import data_directory, standardize
from benchmarks.speed.case import Case, Figures, side_by_side
from rocmax import PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.metrics import partial_auc_score

MAX_FPR = 0.05
SIZES = [(4311, 36), (8767, 216), (2576, 1617)]
SPARSE = ["thrombin", "sector", "news20", "farm-ads"]


def area(model: Any, X: Any, y: Any) -> str:
    """Return the partial AUC of a model on some rows."""
    return f"{partial_auc_score(y, model.decision_function(X), max_fpr=MAX_FPR):.3f}"


def generated(n_rows: int, n_features: int) -> Figures:
    """Measure cross-validation on generated rows; as many other rows are for the test."""
    X, y = make_classification(
        2 * n_rows,
        n_features,
        n_informative=min(n_features // 3, 30),
        n_redundant=n_features // 4,
        weights=[0.85],
        class_sep=0.6,
        flip_y=0.03,
        random_state=0,
    )
    X = standardize(X)
    train, test = slice(None, n_rows), slice(n_rows, None)
    return side_by_side(
        lambda: PartialAUCClassifierCV(max_fpr=MAX_FPR, random_state=0).fit(X[train], y[train]),
        lambda: LogisticRegressionCV(Cs=4, cv=5).fit(X[train], y[train]),
        lambda found, other: f"test partial AUC {area(found, X[test], y[test])}, {area(other, X[test], y[test])}",
    )


def wide(name: str) -> Figures | None:
    """Measure the default fit on all rows of a sparse set; None without the set."""
    path = data_directory() / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path) as z:
        X, y = sparse.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])), z["y"]
    return side_by_side(
        lambda: PartialAUCClassifier(max_fpr=MAX_FPR).fit(X, y),
        lambda: LogisticRegression(solver="liblinear").fit(X, y),
        lambda found, other: f"training partial AUC {area(found, X, y)}, {area(other, X, y)}",
    )


CASES = [
    *(
        Case(
            f"PartialAUCClassifierCV, {n_rows:,} x {n_features:,}",
            "LogisticRegressionCV(Cs=4, cv=5)",
            5.0,
            lambda size=(n_rows, n_features): generated(*size),
        )
        for n_rows, n_features in SIZES
    ),
    *(Case(f"PartialAUCClassifier, {name}, sparse", "liblinear", 5.0, lambda name=name: wide(name)) for name in SPARSE),
]
