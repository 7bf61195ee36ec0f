"""Which part of the ROC curve matters: fraud detection, screening, or both limits at once.

Most positives are typical and far out in the first feature; one in five is atypical and visible in the second feature
only. A team that can look at few alarms is best served by the typical ones. A screening programme that must not miss
cases has to weigh the second feature as much as the first. The same classifier is fitted to three parts of the curve,
and every model is measured on all three.
"""

import argparse
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from rocmax import PartialAUCClassifier, PartialROCDisplay
from rocmax.metrics import partial_auc_score

CORNERS = {
    "fraud: FPR <= 2 %": {"max_fpr": 0.02},
    "screening: TPR >= 90 %": {"min_tpr": 0.9, "max_fpr": 1.0},
    "both: TPR >= 80 %, FPR <= 30 %": {"min_tpr": 0.8, "max_fpr": 0.3},
}


def sample(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return four normal features and 10 % positive rows, of which one in five is atypical."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n_rows) % 10 == 0).astype(int)
    X = rng.standard_normal((n_rows, 4))
    atypical = rng.random(n_rows) < 0.2
    X[:, 0] += 3 * (y == 1) * ~atypical
    X[:, 1] += 3 * (y == 1) * atypical
    return X, y


def test_scores() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the labels of the test rows, and the scores of logistic regression and of one model per corner."""
    X, y = sample(4000, seed=0)
    X_test, y_test = sample(40_000, seed=1)
    models = {name: PartialAUCClassifier(**limits) for name, limits in CORNERS.items()}
    fitted = {"logistic regression": LogisticRegression().fit(X, y)} | {
        name: model.fit(X, y) for name, model in models.items()
    }
    for name, model in fitted.items():
        print(f"{name:32} weights of the two informative features: {model.coef_[0, 0]:.2f}, {model.coef_[0, 1]:.2f}")
    return y_test, {name: model.decision_function(X_test) for name, model in fitted.items()}


def print_table(y: np.ndarray, scores: Mapping[str, np.ndarray]) -> None:
    """Print the area of every model in every corner, as a fraction of the largest possible area."""
    print(f"\n{'model':32}" + "".join(f"{name.partition(':')[0]:>12}" for name in CORNERS))
    for model, values in scores.items():
        areas = [partial_auc_score(y, values, **limits) for limits in CORNERS.values()]
        print(f"{model:32}" + "".join(f"{area:12.3f}" for area in areas))


def main() -> None:
    """Fit the models, print the table and plot the three corners."""
    parser = argparse.ArgumentParser(description="Plot three corners of the ROC curve.")
    parser.add_argument("--out", default="corners.png")
    out = parser.parse_args().out
    y, scores = test_scores()
    print_table(y, scores)
    figure, axes = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
    for ax, (name, limits) in zip(axes, CORNERS.items(), strict=True):
        display = PartialROCDisplay.from_predictions(y, scores, n_resamples=0, inset=False, ax=ax, **limits)
        for line, values in zip(display.lines_, scores.values(), strict=True):
            line.set_label(f"{line.get_label()}: {partial_auc_score(y, values, **limits):.3f}")
        # The part itself, with a margin of a fifth on the side of each limit.
        bottom = limits.get("min_tpr", 0.0)
        ax.set(xlim=(0, min(1.0, 1.2 * limits["max_fpr"])), ylim=(max(0.0, 1 - 1.2 * (1 - bottom)), 1), title=name)
        ax.set_aspect("auto")
        ax.legend(loc="lower right", fontsize="small", title="area in the shaded part")
    figure.savefig(out, dpi=110)
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
