"""Test AUC of stochastic methods by number of epochs, compared with the batch fit.

The left panel shows an imbalanced sample with correlated features. The right panel shows classes that are not linearly
separable, with k-means Nystroem features. All features are standardized, and all parameters have their default values.
PSAM and ASAM are close to the batch solution after one or two epochs; SOLAM converges more slowly.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from rocmax import ASAMClassifier, AUCClassifier, KMeansNystroem, PSAMClassifier, SOLAMClassifier

EPOCHS = (1, 2, 3, 4, 5, 10, 30, 60)
METHODS = {
    "PSAM": (PSAMClassifier, "#D55E00", "o-"),
    "ASAM": (ASAMClassifier, "#0072B2", "s--"),
    "SOLAM": (SOLAMClassifier, "#009E73", "^:"),
}
SEEDS = range(3)


def linear_sample(rng: np.random.Generator, n_rows: int = 20000) -> tuple[np.ndarray, np.ndarray]:
    """Return thirty correlated features; the top 10 % of a noisy linear score are positive."""
    X = rng.standard_normal((n_rows, 30)) @ (np.eye(30) + 0.3 * rng.standard_normal((30, 30)))
    score = X @ rng.standard_normal(30)
    score += score.std() * rng.standard_normal(n_rows)
    return X, (score > np.quantile(score, 0.9)).astype(int)


def rings(rng: np.random.Generator, n_rows: int = 20000) -> tuple[np.ndarray, np.ndarray]:
    """Return five features; 10 % of the rows are positive, at an intermediate distance from the center."""
    y = (rng.random(n_rows) < 0.1).astype(int)
    X = rng.standard_normal((n_rows, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    inside = rng.random(n_rows) < 0.5
    distance = np.where(y == 1, 2.0, np.where(inside, 1.0, 3.0)) + 0.5 * rng.standard_normal(n_rows)
    return X * distance[:, np.newaxis], y


def curves(X: np.ndarray, y: np.ndarray) -> tuple[dict[str, np.ndarray], float]:
    """Return the mean test AUC by number of epochs, and the test AUC of the batch fit."""
    half = y.size // 2
    scaler = StandardScaler().fit(X[:half])
    X = scaler.transform(X)
    X, X_test, y, y_test = X[:half], X[half:], y[:half], y[half:]
    result = {}
    for name, (kind, _, _) in METHODS.items():
        scores = [[kind(max_iter=e, random_state=s).fit(X, y).score(X_test, y_test) for e in EPOCHS] for s in SEEDS]
        result[name] = np.mean(scores, axis=0)
    return result, AUCClassifier("squared_hinge", C=1000.0).fit(X, y).score(X_test, y_test)


def main() -> None:
    """Plot both panels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="convergence.png")
    out = parser.parse_args().out
    rng = np.random.default_rng(0)
    X, y = rings(rng)
    panels = {
        "Linear": linear_sample(rng),
        "k-means Nystroem, 100 landmarks": (
            KMeansNystroem(100, gamma="scale-to-mean", random_state=0).fit(X).transform(X),
            y,
        ),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
    for panel, (title, data) in zip(axes, panels.items(), strict=True):
        by_method, batch = curves(*data)
        panel.axhline(batch, color="0.6", linewidth=1, label="batch (BAM)")
        for name, (_, color, style) in METHODS.items():
            panel.plot(EPOCHS, by_method[name], style, color=color, label=name)
        panel.set(xscale="log", xlabel="epochs", ylabel="test AUC", title=title)
        panel.set_xticks(EPOCHS, [str(e) for e in EPOCHS])
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False)
    figure.savefig(out, dpi=150)
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
