"""
Which corner of the curve
=========================

A fraud team can look at few alarms; a screening programme must not miss cases; others have both limits. These are three
different parts of the ROC curve, and the best model for one of them is not the best for the others.

Most positives are typical and far out in the first feature; one in five is atypical and visible in the second feature
only. A team that can look at few alarms is best served by the typical ones. A screening programme has to weigh the
second feature as much as the first.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from rocmax import PartialAUCClassifier, PartialROCDisplay
from rocmax.metrics import partial_auc_score, positive_scores


def sample(n_rows, seed):
    """Return four normal features and 10 % positive rows, of which one in five is atypical."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n_rows) % 10 == 0).astype(int)
    X = rng.standard_normal((n_rows, 4))
    atypical = rng.random(n_rows) < 0.2
    X[:, 0] += 3 * (y == 1) * ~atypical
    X[:, 1] += 3 * (y == 1) * atypical
    return X, y


X, y = sample(4000, seed=0)
X_test, y_test = sample(40_000, seed=1)

# %%
# The same classifier is fitted to three parts of the curve.

corners = {
    "fraud: FPR <= 2 %": {"max_fpr": 0.02},
    "screening: TPR >= 90 %": {"min_tpr": 0.9, "max_fpr": 1.0},
    "both: TPR >= 80 %, FPR <= 30 %": {"min_tpr": 0.8, "max_fpr": 0.3},
}
models = {"logistic regression": LogisticRegression()}
models |= {name: PartialAUCClassifier(**limits) for name, limits in corners.items()}
for name, model in models.items():
    w = model.fit(X, y).coef_[0]
    print(f"{name:32} weight of the second feature, relative to the first: {w[1] / w[0]:.2f}")

# %%
# Every model is measured in all three parts; the areas are fractions of the largest possible ones.

scores = {name: positive_scores(model, X_test) for name, model in models.items()}
print(f"{'trained for':32}" + "".join(f"{name.partition(':')[0]:>12}" for name in corners))
for name, values in scores.items():
    areas = [partial_auc_score(y_test, values, **limits) for limits in corners.values()]
    print(f"{name:32}" + "".join(f"{area:12.3f}" for area in areas))

# %%
# Each panel shows its own part of the curve, shaded, with a margin of a fifth on the side of each limit.

figure, axes = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
for ax, (name, limits) in zip(axes, corners.items(), strict=True):
    PartialROCDisplay.from_predictions(y_test, scores, n_resamples=0, inset=False, ax=ax, **limits)
    bottom = max(0.0, 1 - 1.2 * (1 - limits.get("min_tpr", 0.0)))
    ax.set(xlim=(0, min(1.0, 1.2 * limits["max_fpr"])), ylim=(bottom, 1), title=name)
    ax.set_aspect("auto")
plt.show()
