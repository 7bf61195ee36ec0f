"""``ROCSVC`` with its defaults next to ``SVC`` with its own."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from benchmarks.speed.case import Case, Figures, side_by_side
from rocmax import ROCSVC

N_TEST = 2000


def against_svc(n: int, negatives: float) -> Figures:
    """Fit both to the same rows; the remark has the gap and the AUC of each on other rows."""
    X, y = make_classification(
        n + N_TEST, 20, n_informative=8, weights=[negatives], flip_y=0.05, class_sep=0.7, random_state=0
    )

    def remark(ours: Any, peer: Any) -> str:
        auc = [roc_auc_score(y[n:], model.decision_function(X[n:])) for model in (ours, peer)]
        return f"gap {ours.dual_gap_ / ours.objective_:.1e}; AUC {auc[0]:.4f}, SVC {auc[1]:.4f}"

    return side_by_side(lambda: ROCSVC().fit(X[:n], y[:n]), lambda: SVC().fit(X[:n], y[:n]), remark)


CASES = [
    Case(
        f"ROCSVC(), {n:,} x 20 rows, {1 - negatives:.0%} positive", "SVC()", 5.0 if n >= 2000 else None,
        partial(against_svc, n, negatives),
    )
    for n in (500, 2000, 5000)
    for negatives in (0.5, 0.9)
]  # fmt: skip
