"""
Curved boundaries: kernels
==========================

The positives lie in two places, with negatives on all sides. No straight line ranks them well. Two ways to a curved
score: the ROC-SVM, which solves the kernel problem for the AUC exactly, and features with which every linear model
becomes a kernel machine.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np


def sample(rng, n_rows):
    """Return two clusters of positives, 15 % of the rows, among scattered negatives."""
    y = rng.random(n_rows) < 0.15
    centers = np.where(rng.random((n_rows, 1)) < 0.5, (-1.5, 0.8), (1.5, -0.8))
    noise = rng.standard_normal((n_rows, 2))
    return np.where(y[:, np.newaxis], centers + 0.55 * noise, 1.7 * noise), y


rng = np.random.default_rng(0)
X, y = sample(rng, 1500)
X_test, y_test = sample(rng, 20_000)

# %%
# :class:`~rocmax.ROCSVC` takes the kernels of scikit-learn's ``SVC``; its time and memory grow with the square of the
# number of rows. :class:`~rocmax.KMeansNystroem` gives features, one for each of a few landmarks, whose inner products
# are close to the kernel, and suits any number of rows and any of the linear models.

from sklearn.pipeline import make_pipeline

from rocmax import ROCSVC, AUCClassifier, KMeansNystroem, PartialAUCClassifier
from rocmax.metrics import partial_auc_score, positive_scores, roc_auc_score

MAX_FPR = 0.1
models = {
    "linear, AUC": AUCClassifier(),
    "ROC-SVM": ROCSVC(gamma=0.5),
    "20 landmarks, partial AUC": make_pipeline(
        KMeansNystroem(20, gamma=0.5, random_state=0), PartialAUCClassifier(max_fpr=MAX_FPR, C=0.1)
    ),
}
scores = {name: positive_scores(model.fit(X, y), X_test) for name, model in models.items()}

# %%
# Each panel shows the score as shades and its threshold for 10 % of false alarms on the test rows as a line. Twenty
# landmarks come close to the exact solution.

grid = np.stack(np.meshgrid(np.linspace(-4.5, 4.5, 120), np.linspace(-4, 4, 110)), axis=-1)
figure, axes = plt.subplots(1, 3, figsize=(12.0, 4.0), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    values = positive_scores(model, grid.reshape(-1, 2)).reshape(grid.shape[:2])
    threshold = np.quantile(scores[name][~y_test], 1 - MAX_FPR)
    ax.contourf(grid[..., 0], grid[..., 1], values, levels=12, cmap="Greys", alpha=0.4)
    ax.contour(grid[..., 0], grid[..., 1], values, levels=[threshold], colors="#D55E00", linewidths=2)
    ax.scatter(*X[~y].T, s=4, color="0.45", linewidth=0)
    ax.scatter(*X[y].T, s=10, color="#0072B2", linewidth=0)
    auc, part = roc_auc_score(y_test, scores[name]), partial_auc_score(y_test, scores[name], max_fpr=MAX_FPR)
    ax.set_title(f"{name}\nAUC {auc:.2f}, partial AUC {part:.2f}", fontsize="medium")
    ax.set(xlim=(-4.5, 4.5), ylim=(-4, 4))
plt.show()

# %%
# Up to a few thousand rows, :class:`~rocmax.ExactKernelMap` gives features whose inner products are exactly the kernel,
# for every loss and every linear estimator.
