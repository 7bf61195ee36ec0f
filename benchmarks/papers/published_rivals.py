"""The rivals of Narasimhan and Agarwal (2017) as published: linear models only, with the grids of Appendix B.2.

``table4``: test partial AUC [0.02, 0.05] of pAUCBoost with single features as weak learners (100 rounds on letter, 25
on the others) and of the greedy combination of the features as they come (100 intervals), next to the same methods
with stumps and oriented features, and to the published figures.
``asvm``: the asymmetric SVM, which the paper ran only on windows [0, b] of sets that are not available; here on
[0, 0.1], next to the SVM for the full AUC. Its mu and tau come from the paper's ranges and are chosen on held-out rows.

Splits, preprocessing and training rows are those of ``papers/kernels.py``. Figures are kept in
``results/published_rivals.json``, so an interrupted run goes on where it stopped. About 10 minutes.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import data_directory, load_real, standardise
from benchmarks._shared.results import RESULTS, markdown, publish
from rocmax import AsymmetricSVC, AUCClassifier, GreedyPairClassifier, PAUCBoostClassifier
from rocmax.metrics import partial_auc_score

CELLS = RESULTS / "published_rivals.json"
SETS = ("a9a", "ijcnn1", "letter")
TRAIN_ROWS, ASVM_ROWS, N_SPLITS = 4000, 2000, 3
TABLE4 = {"min_fpr": 0.02, "max_fpr": 0.05}
ASVM = {"min_fpr": 0.0, "max_fpr": 0.1}
# Appendix B.2 gives the ends and the first step of both ranges.
MU = (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1)
TAU = (5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01)
PAPER = {
    "pAUCBoost": {"a9a": 0.4012, "ijcnn1": 0.4913, "letter": 0.4954},
    "greedy pairs": {"a9a": 0.3417, "ijcnn1": 0.1201, "letter": 0.2888},
}


def candidates(method: str, name: str, m: int) -> list[Any]:
    """Return the models of which held-out rows choose one."""
    rounds = 100 if name == "letter" else 25
    if method == "ASVM":
        # Larger mu have no solution.
        return [AsymmetricSVC("linear", mu=mu, tau=tau) for mu in MU for tau in TAU if mu < tau * m]
    if method == "SVM-AUC":
        return [AUCClassifier(C=10.0**power) for power in range(-2, 3)]
    if method.startswith("pAUCBoost"):
        kind = "linear" if "linear" in method else "stump"
        return [PAUCBoostClassifier(n_estimators=rounds, weak_learner=kind, **TABLE4)]
    raw = "raw" in method
    return [GreedyPairClassifier(n_steps=100, standardize=not raw, orient=not raw, **TABLE4)]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the standardised features and the labels; letter is Q against the rest."""
    if name != "letter":
        _, X, y = load_real(name)
        return X, y
    with np.load(data_directory() / "letter.npz") as z:
        return standardise(z["X"].astype(np.float64)), (z["label"] == 17).astype(np.int64)


def split_score(name: str, method: str, seed: int) -> float:
    """Return the test partial AUC on one random split."""
    X, y = load(name)
    asvm = method in ("ASVM", "SVM-AUC")
    window = ASVM if asvm else TABLE4
    train, test = train_test_split(np.arange(y.size), train_size=0.7, stratify=y, random_state=seed)
    train = np.random.default_rng(seed).permutation(train)[: ASVM_ROWS if asvm else TRAIN_ROWS]
    fit, held = train_test_split(train, train_size=0.7, stratify=y[train], random_state=seed)
    models = candidates(method, name, int(y[fit].sum()))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if len(models) > 1:
            found = [
                partial_auc_score(y[held], model.fit(X[fit], y[fit]).decision_function(X[held]), **window)
                for model in models
            ]
            models = [models[int(np.argmax(found))]]
        model = models[0].fit(X[train], y[train])
    return float(partial_auc_score(y[test], model.decision_function(X[test]), **window))


def known(key: str, work: Callable[[], float]) -> float:
    """Return a figure; work it out and keep it if it is new."""
    figures = json.loads(CELLS.read_text()) if CELLS.exists() else {}
    if key not in figures:
        figures[key] = work()
        CELLS.write_text(json.dumps(figures, indent=1) + "\n")
    return figures[key]


def table(methods: tuple[str, ...]) -> str:
    """Return the table of some methods."""
    rows = []
    for name in SETS:
        if not (data_directory() / f"{name}.npz").exists():
            continue
        for method in methods:
            scores = [
                known(f"{name} {method} {s}", lambda s=s, n=name, m=method: split_score(n, m, s))
                for s in range(N_SPLITS)
            ]
            published = PAPER.get(method.split(",")[0], {}).get(name)
            paper = "not to be had" if published is None else f"{published:.4f}"
            rows.append((name, method, f"{np.mean(scores):.4f} ± {np.std(scores, ddof=1):.4f}", paper))
            print(rows[-1], flush=True)
    return markdown(("set", "method", "here", "paper"), rows)


def main() -> None:
    """Work out both tables."""
    split = f"mean ± standard deviation over {N_SPLITS} random splits, 70 % for training, of which"
    four = f"Test partial AUC [0.02, 0.05], {split} {TRAIN_ROWS:,} rows at random are used; the paper used all."
    asvm = (
        f"Test partial AUC [0, 0.1], {split} {ASVM_ROWS:,} rows at random are used. mu from {MU[0]:g} to {MU[-1]:g} "
        f"and tau from {TAU[0]:g} to {TAU[-1]:g}, `C` from 0.01 to 100, chosen on 30 % of them."
    )
    methods = ("pAUCBoost, linear", "pAUCBoost, stumps", "greedy pairs, raw", "greedy pairs, oriented")
    sections = [
        "## Table 4",
        four,
        table(methods),
        "## Asymmetric SVM",
        asvm,
        table(("ASVM", "SVM-AUC")),
    ]
    publish("published_rivals", "Rivals of Narasimhan and Agarwal (2017) as published", sections)


if __name__ == "__main__":
    main()
