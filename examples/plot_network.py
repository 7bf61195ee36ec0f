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

# %%
# The payments of ``make demo``: some honest customers look more suspicious than most frauds.

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

from rocmax.backends.torch import PartialAUCLoss
from rocmax.demo import make_payments
from rocmax.metrics import partial_auc_score

MAX_FPR = 0.01
X, y = make_payments(seed=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
scaler = StandardScaler().fit(X)
X, X_test = (torch.tensor(scaler.transform(rows), dtype=torch.float32) for rows in (X, X_test))
y = torch.tensor(y, dtype=torch.float32)
# sphinx_gallery_thumbnail_path = 'images/network.png'

# %%
# ``memory`` remembers scores of earlier batches: one percent of the negatives of a batch of 256 would be two or three
# rows.


def train(switch, seed):
    """Return the test partial AUC after each epoch; the loss of the window begins after the epoch ``switch``."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(X.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    entropy = nn.BCEWithLogitsLoss()
    window = PartialAUCLoss(max_fpr=MAX_FPR, width=6.0, margin=0.0, memory=1024)
    values = []
    for epoch in EPOCHS:
        loss = entropy if epoch <= switch else window
        for rows in torch.randperm(len(X)).split(256):
            optimiser.zero_grad()
            loss(net(X[rows])[:, 0], y[rows]).backward()
            optimiser.step()
        with torch.no_grad():
            values.append(partial_auc_score(y_test, net(X_test)[:, 0].numpy(), max_fpr=MAX_FPR))
    return values


EPOCHS = np.arange(1, 15)
curves = {"cross-entropy": (EPOCHS[-1], "#0072B2"), "cross-entropy, then PartialAUCLoss": (7, "#D55E00")}
figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
for name, (switch, color) in curves.items():
    runs = np.array([train(switch, seed) for seed in range(3)])
    ax.plot(EPOCHS, runs.mean(axis=0), color=color, marker="o", markersize=3, label=name)
    ax.fill_between(EPOCHS, runs.min(axis=0), runs.max(axis=0), color=color, alpha=0.15, linewidth=0)
ax.axvline(7.5, color="0.6", linewidth=0.8, linestyle=":")
ax.set(xlabel="epoch", ylabel="test partial AUC, FPR <= 1 %", ylim=(0, None))
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The lines are means of three seeds, the bands their range. The gain depends on the data: :doc:`/networks` compares
# both losses on real sets, on one of which there is none.
