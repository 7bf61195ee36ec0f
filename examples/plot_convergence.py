"""
Stochastic methods by epochs
============================

The methods that step on single pairs or rows, compared with the batch fit. All parameters have their default values.
PSAM and ASAM are close to the batch solution after one or two epochs; SOLAM converges more slowly.
"""

# %%
# Two samples: correlated features with rare positives, and classes that no straight line separates, with k-means
# Nystroem features.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from rocmax import AUCClassifier, KMeansNystroem, PSAMClassifier
from rocmax.papers import ASAMClassifier, SOLAMClassifier


def linear_sample(rng, n_rows=12000):
    """Return thirty correlated features; the top 10 % of a noisy linear score are positive."""
    X = rng.standard_normal((n_rows, 30)) @ (np.eye(30) + 0.3 * rng.standard_normal((30, 30)))
    score = X @ rng.standard_normal(30)
    score += score.std() * rng.standard_normal(n_rows)
    return X, (score > np.quantile(score, 0.9)).astype(int)


def rings(rng, n_rows=12000):
    """Return landmark features of rows of which 10 % are positive, at an intermediate distance from the center."""
    y = (rng.random(n_rows) < 0.1).astype(int)
    X = rng.standard_normal((n_rows, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    inside = rng.random(n_rows) < 0.5
    distance = np.where(y == 1, 2.0, np.where(inside, 1.0, 3.0)) + 0.5 * rng.standard_normal(n_rows)
    X *= distance[:, np.newaxis]
    return KMeansNystroem(100, gamma="scale-to-mean", random_state=0).fit_transform(X), y


rng = np.random.default_rng(0)
panels = {"Linear": linear_sample(rng), "k-means Nystroem, 100 landmarks": rings(rng)}

# %%
# Half of the rows are for training. Features are standardized: the steps have the same length in all directions.

EPOCHS = (1, 2, 3, 5, 10, 30)
METHODS = {
    "PSAM": (PSAMClassifier, "#D55E00", "o-"),
    "ASAM": (ASAMClassifier, "#0072B2", "s--"),
    "SOLAM": (SOLAMClassifier, "#009E73", "^:"),
}


def draw(ax, X, y):
    """Plot the mean test AUC of each method over two seeds by number of epochs, and that of the batch fit."""
    half = y.size // 2
    X = StandardScaler().fit(X[:half]).transform(X)
    X, X_test, y, y_test = X[:half], X[half:], y[:half], y[half:]
    batch = AUCClassifier("squared_hinge", C=1000.0).fit(X, y).score(X_test, y_test)
    ax.axhline(batch, color="0.6", linewidth=1, label="batch (BAM)")
    for name, (kind, color, style) in METHODS.items():
        fits = [[kind(max_iter=n, random_state=seed).fit(X, y) for n in EPOCHS] for seed in range(2)]
        scores = [[fit.score(X_test, y_test) for fit in row] for row in fits]
        ax.plot(EPOCHS, np.mean(scores, axis=0), style, color=color, label=name)


figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
for ax, (title, data) in zip(axes, panels.items(), strict=True):
    draw(ax, *data)
    ax.set(xscale="log", xlabel="epochs", ylabel="test AUC", title=title)
    ax.set_xticks(EPOCHS, [str(n) for n in EPOCHS])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
plt.show()
