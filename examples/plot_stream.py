"""
A stream in batches
===================

Rows arrive in batches, and no batch is kept. :class:`~rocmax.MiniBatchClassifier` takes one step per batch for any of
the measures; ``partial_fit`` uses constant memory, however long the stream is. Here it is compared with a fit to all
rows at once, and with a stochastic method for the whole AUC.
"""

# %%
# Generated payments, in which the ranking at the top differs from the ranking of all rows. The test rows are
# not part of the stream. Features should have a common scale; the mean and the standard deviation are those of the
# first batch.

import numpy as np
from sklearn.model_selection import train_test_split

from rocmax.demo import make_payments

X, X_test, y, y_test = train_test_split(*make_payments(seed=0), test_size=0.25, random_state=0)
mean, std = X[:1000].mean(axis=0), X[:1000].std(axis=0)
X, X_test = (X - mean) / std, (X_test - mean) / std

# %%
# Positives are rare, so each batch of negatives is compared with a sample of 500 positives that the model keeps.

from rocmax import MiniBatchClassifier, PartialAUCClassifier, PSAMClassifier
from rocmax.metrics import partial_auc_score

MAX_FPR = 0.05
streams = {
    "mini-batches, partial AUC": MiniBatchClassifier(
        "partial_auc", max_fpr=MAX_FPR, reservoir_size=500, random_state=0
    ),
    "PSAM, AUC": PSAMClassifier(random_state=0),
}
seen, scores = [], {name: [] for name in streams}
for rows in np.split(np.arange(y.size), 30):
    seen.append(rows[-1] + 1)
    for name, model in streams.items():
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
        scores[name].append(partial_auc_score(y_test, model.positive_scores(X_test), max_fpr=MAX_FPR))
batch = PartialAUCClassifier(max_fpr=MAX_FPR).fit(X, y)

# %%

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
final = partial_auc_score(y_test, batch.positive_scores(X_test), max_fpr=MAX_FPR)
ax.axhline(final, color="0.5", linewidth=1.2)
ax.text(0, final + 0.005, "all rows at once", va="bottom", color="0.4")
for (name, values), color in zip(scores.items(), ("#D55E00", "#0072B2"), strict=True):
    ax.plot(seen, values, color=color, marker="o", markersize=3)
    ax.text(seen[-1], values[-1] - 0.012, name, ha="right", va="top", color=color)
ax.set(xlabel="rows seen", ylabel="test partial AUC, FPR <= 5 %", ylim=(0, 0.45))
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A file that is larger than memory is a stream, too: :func:`rocmax.data.iter_batches` reads it in batches and shuffles
# them in a buffer.
