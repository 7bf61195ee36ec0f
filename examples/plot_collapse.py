"""
When a convex loss collapses
============================

A convex loss penalizes a pair of a positive and a negative by how far it is out of order. Among the negatives with the
highest scores many pairs are out of order, and the loss can be smallest where all weights are zero: the model then
ranks at random, for every ``C``. The default loss of :class:`~rocmax.PartialAUCClassifier` is bounded and its solver
starts from a model with a good ranking, so it does not collapse.

The data are two normal classes with increasing separation; the measure is the partial AUC up to an FPR of 5 %.
"""

# %%

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from rocmax import PartialAUCClassifier
from rocmax.losses import PartialAUCRamp, PartialAUCTight

MAX_FPR = 0.05


def sample(separation, seed, n_rows=6000):
    """Return five normal features, the first of which separates the classes, with 10 % positive rows."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n_rows) % 10 == 0).astype(int)
    X = rng.standard_normal((n_rows, 5))
    X[:, 0] += separation * y
    return X, y


# %%
# Both losses along the best direction, by the norm of the weight vector. The tight convex loss is 1 at zero. If the
# classes overlap, every step away from zero increases it.


def losses_along_the_best_direction(separation, sizes):
    """Return the values of both losses for the true direction."""
    X, y = sample(separation, seed=0)
    bound = {"tight": PartialAUCTight(max_fpr=MAX_FPR).bind(y), "ramp": PartialAUCRamp(max_fpr=MAX_FPR).bind(y)}
    return {name: [loss.value_and_gradient(size * X[:, 0])[0] for size in sizes] for name, loss in bound.items()}


# %%
# The partial AUC of fits with both losses on test rows. A fit that collapses says so in a ``ConvergenceWarning``, which
# is expected here.


def test_scores(separation):
    """Return the test partial AUC of the tight and of the default loss."""
    X, y = sample(separation, seed=0)
    X_test, y_test = sample(separation, seed=1, n_rows=40000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [PartialAUCClassifier(max_fpr=MAX_FPR, loss=loss, C=10).fit(X, y) for loss in ("tight", "auto")]
    return [model.score(X_test, y_test) for model in models]


# %%

separations = np.linspace(0.5, 3.5, 13)
tight, auto = np.transpose([test_scores(separation) for separation in separations])
auc = norm.cdf(separations / np.sqrt(2))
sizes = np.linspace(0, 3, 61)

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
for separation, color in ((1.5, "#D55E00"), (3.0, "#0072B2")):
    values = losses_along_the_best_direction(separation, sizes)
    label = f"AUC {norm.cdf(separation / np.sqrt(2)):.2f}"
    left.plot(sizes, values["tight"], color=color, label=f"tight, {label}")
    left.plot(sizes, values["ramp"], color=color, linestyle="--", label=f"ramp, {label}")
left.set(xlabel="norm of the weight vector", ylabel="loss", ylim=(0, 2), title="Loss along the best direction")
left.axhline(1.0, color="0.7", linewidth=0.8, zorder=0)
right.plot(auc, auto, "o-", color="#D55E00", label='loss="auto"')
right.plot(auc, tight, "s--", color="#0072B2", label='loss="tight"')
right.set(xlabel="AUC of the best linear score", ylabel="test partial AUC, FPR <= 5 %", title="Test partial AUC")
for ax in (left, right):
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
