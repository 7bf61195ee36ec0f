"""How many negatives a batch should hold where the convex loss is almost flat: the partial AUC on covtype.

2PMB with as many positives as negatives in a batch, five passes, for several step lengths (relative to the automatic
one) and three seeds: the convex loss on the training rows and the partial AUC on the test rows, next to the batch
solution.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import load_real
from benchmarks._shared.results import markdown, publish
from rocmax import MiniBatchClassifier, PartialAUCClassifier
from rocmax.losses import PartialAUCTight

SIZES = (125, 250, 500, 1000, 2000)
FACTORS = (0.1, 0.3, 1.0)
SEEDS = range(3)


def main() -> None:
    """Run the grid and write the report."""
    data = load_real("covtype")
    if data is None:
        return
    X, X_test, y, y_test = train_test_split(data.X, data.y, train_size=2 / 3, stratify=data.y, random_state=0)
    loss = PartialAUCTight(0.0, 0.1).bind(y == 1)
    apart = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    eta = 1.0 / float(apart @ apart)

    def judged(model: MiniBatchClassifier | PartialAUCClassifier) -> tuple[float, float]:
        return loss.value_and_gradient(X @ model.coef_[0])[0], model.score(X_test, y_test)

    with threadpool_limits(1):
        value, score = judged(PartialAUCClassifier(loss="tight", C=10.0).fit(X, y))
        rows = [["batch solution", "", f"{value:.4f}", f"{score:.4f}"]]
        for size in SIZES:
            for factor in FACTORS:
                options = {"batch_size": size, "reservoir_size": size, "max_iter": 5, "learning_rate": factor * eta}
                fits = [MiniBatchClassifier("partial_auc", random_state=seed, **options).fit(X, y) for seed in SEEDS]
                value, score = np.mean([judged(model) for model in fits], axis=0)
                rows.append([f"{size}", f"{factor:g}", f"{value:.4f}", f"{score:.4f}"])
                print(" | ".join(rows[-1]), flush=True)
    table = markdown(["negatives of a batch", "step length", "training loss", "test partial AUC"], rows)
    publish("minibatch_sizes", "Negatives of a batch: the partial AUC on covtype", ["Means of three seeds.", table])


if __name__ == "__main__":
    main()
