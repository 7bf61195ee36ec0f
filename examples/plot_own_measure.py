"""
A measure of your own
=====================

Any measure of true and false positives can be trained for. Here it is the Jaccard index: TP / (TP + FN + FP). Unlike
the AUC, it decreases with every false positive, regardless of the number of negatives.
"""

# %%
# A function of the counts is enough: ``tp`` of ``m`` positives and ``fp`` of ``n`` negatives are predicted positive.
# :class:`~rocmax.losses.Contingency` makes a loss of it, which trains a :class:`~rocmax.ScoreClassifier`, chooses its
# threshold and is its score.

import matplotlib.pyplot as plt
import numpy as np

from rocmax import ScoreClassifier
from rocmax.losses import Contingency, PairwiseHinge
from rocmax.penalties import SquaredL2


def jaccard(tp, fp, m, n):
    """Return the Jaccard index."""
    return tp / (m + fp)


measure = Contingency(jaccard)
models = {
    "the Jaccard index": ScoreClassifier(measure, SquaredL2(C=100.0)),
    "the AUC": ScoreClassifier(PairwiseHinge(), SquaredL2(C=100.0), threshold=measure),
}

# %%
# Most positives are in one cluster (right), and a fifth of them are among the negatives (top left), where detecting
# them would cause many false positives.


def sample(rng, n_rows=4000):
    """Return negatives around zero, positives to the right, and a fifth of the positives among the negatives."""
    y = rng.random(n_rows) < 0.1
    X = rng.standard_normal((n_rows, 2))
    among = rng.random(n_rows) < 0.2
    X[y & ~among] += (3.5, 0.0)
    X[y & among] += (-1.0, 1.5)
    return X, y


rng = np.random.default_rng(0)
train, (X, y) = sample(rng), sample(rng)

# %%
# The AUC counts all positives equally, so its decision boundary is tilted towards the second cluster. The model trained
# for the Jaccard index ignores this cluster. Both models use the threshold with the best Jaccard index on the training
# rows.

figure, (plane, curve) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
shown = slice(0, 1500)
plane.scatter(*X[shown][~y[shown]].T, s=6, color="0.75", label="negative")
plane.scatter(*X[shown][y[shown]].T, s=8, color="0.2", label="positive")
flagged = np.arange(1, y.size + 1)
for (name, model), color, style in zip(models.items(), ("#D55E00", "#0072B2"), ("-", "--"), strict=True):
    model.fit(*train)
    w, b = model.coef_[0], model.intercept_[0]
    x2 = np.array([-4.0, 5.0])
    plane.plot(-(b + w[1] * x2) / w[0], x2, style, color=color, label=f"trained for {name}")
    decision = model.positive_scores(X)
    tp = np.cumsum(y[np.argsort(-decision)])
    value = jaccard(tp, flagged - tp, y.sum(), (~y).sum())
    chosen = np.count_nonzero(decision > 0)
    curve.plot(flagged, value, style, color=color, label=f"trained for {name}: {model.score(X, y):.2f}")
    curve.plot(chosen, value[chosen - 1], "o", color=color)
plane.set(xlim=(-4.0, 7.0), ylim=(-4.0, 5.0), xlabel="feature 1", ylabel="feature 2", title="Test rows")
curve.set(xscale="log", xlim=(10, y.size), ylim=(0.0, 0.8))
curve.set(xlabel="rows predicted positive", ylabel="Jaccard index", title="Test Jaccard index (dots: thresholds)")
for ax, place in ((plane, "lower left"), (curve, "upper left")):
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small", loc=place)
plt.show()
