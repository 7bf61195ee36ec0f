"""
A threshold with a guarantee
============================

At most 5 % of the negatives may be flagged. Three ways to choose the threshold of the same classifier are compared on
200 random training sets: on the training rows, on held-out rows, and on held-out rows with a guarantee.
"""

# %%
# The classes are normal, so the false-positive rate of a linear model on new rows is known exactly.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from rocmax import FPRThresholdClassifier

MAX_FPR = 0.05
N_FEATURES = 20


def sample(rng, n_rows=1000):
    """Return normal features with 20 % positive rows, whose mean is shifted."""
    y = (np.arange(n_rows) % 5 == 0).astype(int)
    return rng.standard_normal((n_rows, N_FEATURES)) + 0.4 * y[:, np.newaxis], y


def rate(w, threshold, shift):
    """Return the probability that a row whose mean is ``shift`` has a score above the threshold."""
    return norm.sf((threshold - shift * w.sum()) / np.linalg.norm(w))


# %%
# :class:`~rocmax.FPRThresholdClassifier` works with any classifier. It trains on a part of the rows and chooses the
# threshold on the negatives among the others. With ``confidence=0.95``, the limit is exceeded on new rows for at most
# 5 % of the training sets, whatever the distribution of the data.


def thresholds(X, y):
    """Return the weights and the threshold of each rule."""
    w = LogisticRegression().fit(X, y).coef_[0]
    yield w, np.quantile(X[y == 0] @ w, 1 - MAX_FPR)
    for confidence in (None, 0.95):
        model = FPRThresholdClassifier(LogisticRegression(), max_fpr=MAX_FPR, confidence=confidence, random_state=0)
        model.fit(X, y)
        w, b = model.estimator_.coef_[0], model.estimator_.intercept_[0]
        yield w, model.threshold_ - b


RULES = ("training rows", "held-out rows", "held-out rows,\nconfidence 95 %")
rng = np.random.default_rng(0)
found = np.array([[(rate(w, t, 0.0), rate(w, t, 0.4)) for w, t in thresholds(*sample(rng))] for _ in range(200)])

# %%
# A threshold that keeps the limit on the training rows exceeds it on new rows in most cases: the model has been fitted
# to these rows. With held-out rows the rate is close to the limit on average, but too high in about half of the cases.
# The guarantee has a price: some positives are missed.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained", width_ratios=(3, 2))
colors = ("#999999", "#0072B2", "#D55E00")
for position, color in enumerate(colors):
    fpr, tpr = found[:, position].T
    left.scatter(fpr, position + rng.uniform(-0.25, 0.25, fpr.size), s=9, color=color, alpha=0.6, linewidth=0)
    above = np.mean(fpr > MAX_FPR)
    left.text(0.128, position, f"{100 * above:.0f} % above", va="center", ha="right")
    right.barh(position, tpr.mean(), color=color, height=0.5)
    right.text(tpr.mean() + 0.01, position, f"{tpr.mean():.2f}", va="center")
left.axvline(MAX_FPR, color="0.2", linewidth=1)
left.text(MAX_FPR, -0.62, " limit", va="bottom")
left.set(yticks=range(3), yticklabels=RULES, xlabel="false-positive rate on new rows", xlim=(0, 0.13))
right.set(yticks=[], xlabel="mean true-positive rate on new rows", xlim=(0, 0.75))
for ax in (left, right):
    ax.set_ylim(2.6, -0.65)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
