"""Collapse of a convex surrogate of the partial AUC, compared with the default loss.

The data are two normal classes with increasing separation; the measure is the partial AUC up to an FPR of 5 %. Below a
certain separation, the optimum of the tight convex loss is at zero weights for every ``C``, and the model ranks at
random. The default loss is bounded and its solver starts from a model with a good ranking, so it does not collapse.
"""

import argparse
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from rocmax import PartialAUCClassifier
from rocmax.losses import PartialAUCRamp, PartialAUCTight

MAX_FPR = 0.05


def sample(separation: float, seed: int, n_rows: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Return five normal features, the first of which separates the classes, with 10 % positive rows."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n_rows) % 10 == 0).astype(int)
    X = rng.standard_normal((n_rows, 5))
    X[:, 0] += separation * y
    return X, y


def scores_by_separation(separations: np.ndarray) -> dict[str, list[float]]:
    """Return the test partial AUC of the tight and of the default loss."""
    result: dict[str, list[float]] = {"tight": [], "auto": []}
    for separation in separations:
        X, y = sample(separation, seed=0)
        X_test, y_test = sample(separation, seed=1, n_rows=40000)
        for loss, scores in result.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the collapse is expected
                model = PartialAUCClassifier(max_fpr=MAX_FPR, loss=loss, C=10).fit(X, y)
            scores.append(model.score(X_test, y_test))
    return result


def losses_along_the_best_direction(separation: float, sizes: np.ndarray) -> dict[str, list[float]]:
    """Return the values of both losses for the true direction, by norm of the weight vector."""
    X, y = sample(separation, seed=0)
    bound = {"tight": PartialAUCTight(max_fpr=MAX_FPR).bind(y), "ramp": PartialAUCRamp(max_fpr=MAX_FPR).bind(y)}
    return {name: [loss.value_and_gradient(size * X[:, 0])[0] for size in sizes] for name, loss in bound.items()}


def main() -> None:
    """Plot both panels."""
    parser = argparse.ArgumentParser(description="Plot the collapse.")
    parser.add_argument("--out", default="collapse.png")
    out = parser.parse_args().out
    separations = np.linspace(0.5, 3.5, 13)
    auc = norm.cdf(separations / np.sqrt(2))
    by_loss = scores_by_separation(separations)
    sizes = np.linspace(0, 3, 61)

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
    for separation, color in ((1.5, "#D55E00"), (3.0, "#0072B2")):
        values = losses_along_the_best_direction(separation, sizes)
        label = f"AUC {norm.cdf(separation / np.sqrt(2)):.2f}"
        left.plot(sizes, values["tight"], color=color, label=f"tight, {label}")
        left.plot(sizes, values["ramp"], color=color, linestyle="--", label=f"ramp, {label}")
    left.set(xlabel="norm of the weight vector", ylabel="loss", ylim=(0, 2), title="Loss along the best direction")
    left.legend(frameon=False)
    left.axhline(1.0, color="0.7", linewidth=0.8, zorder=0)
    right.plot(auc, by_loss["auto"], "o-", color="#D55E00", label='loss="auto"')
    right.plot(auc, by_loss["tight"], "s--", color="#0072B2", label='loss="tight"')
    right.set(xlabel="AUC of the best linear score", ylabel="test partial AUC, FPR <= 5 %", title="Test partial AUC")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=150)
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
