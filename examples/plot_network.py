"""
A network for the partial AUC
=============================

:class:`~rocmax.backends.torch.PartialAUCLoss` takes the place of cross-entropy in the training of any network. The
network below starts with cross-entropy and then trains for false-positive rates of at most 1 %. This example needs
PyTorch (``pip install 'rocmax[torch]'``).

.. image:: /images/network.png
   :alt: Test partial AUC by epoch: with the loss of the window it rises above cross-entropy after the switch
   :width: 90 %
"""

# sphinx_gallery_thumbnail_path = 'images/network.png'

# %%
# The positives are rare, and a group of negatives looks much like them: the top of the ranking differs from the rest.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from rocmax.backends.torch import PartialAUCLoss
from rocmax.metrics import partial_auc_score

MAX_FPR = 0.01


def sample(rng, n_rows):
    """Return ten features; positives depend on products of them, and 3 % of the negatives are close to positives."""
    X = rng.standard_normal((n_rows, 10))
    score = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * X[:, 4]
    y = score + 0.5 * rng.standard_normal(n_rows) > 2.8
    decoy = ~y & (rng.random(n_rows) < 0.03)
    X[decoy, :2] = np.sign(X[decoy, :2]) * (1.5 + np.abs(X[decoy, :2]) / 2)
    X[decoy, 1] *= np.sign(X[decoy, 0] * X[decoy, 1])
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


rng = np.random.default_rng(0)
X, y = sample(rng, 20_000)
X_test, y_test = sample(rng, 40_000)

# %%
# ``memory`` remembers scores of earlier batches: one percent of the negatives of a batch of 256 would be two or three
# rows.


def train(switch, seed, n_epochs=16):
    """Return the test partial AUC after each epoch; the loss of the window begins at the epoch ``switch``."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)
    entropy = nn.BCEWithLogitsLoss()
    window = PartialAUCLoss(max_fpr=MAX_FPR, width=2.0, margin=0.0, memory=1024)
    values = []
    for epoch in range(n_epochs):
        loss = entropy if epoch < switch else window
        for rows in torch.randperm(len(X)).split(256):
            optimiser.zero_grad()
            loss(net(X[rows])[:, 0], y[rows]).backward()
            optimiser.step()
        with torch.no_grad():
            values.append(partial_auc_score(y_test.numpy(), net(X_test)[:, 0].numpy(), max_fpr=MAX_FPR))
    return values


curves = {"cross-entropy": (16, "#0072B2"), "cross-entropy, then PartialAUCLoss": (6, "#D55E00")}
epochs = np.arange(1, 17)
figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
for name, (switch, color) in curves.items():
    runs = np.array([train(switch, seed) for seed in range(3)])
    ax.plot(epochs, runs.mean(axis=0), color=color, marker="o", markersize=3, label=name)
    ax.fill_between(epochs, runs.min(axis=0), runs.max(axis=0), color=color, alpha=0.15, linewidth=0)
ax.axvline(6, color="0.6", linewidth=0.8, linestyle=":")
ax.set(xlabel="epoch", ylabel="test partial AUC, FPR <= 1 %", ylim=(0, None))
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
