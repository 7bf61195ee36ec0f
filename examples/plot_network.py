"""
A network for the partial AUC
=============================

:class:`~rocmax.torch.PartialAUCLoss` takes the place of cross-entropy in the training of any network. The
network below is trained for false-positive rates of at most 1 %, by both losses on the same batches. This example needs
PyTorch (``pip install 'rocmax[torch]'``).

.. image:: /images/network.png
   :alt: Test partial AUC by epoch of a network trained by cross-entropy and by the loss of the window
   :width: 90 %
"""

# %%
# Generated payments: some honest customers look more suspicious than most frauds.

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

from rocmax.demo import make_payments
from rocmax.metrics import partial_auc_score
from rocmax.torch import PartialAUCLoss, StratifiedBatchSampler

MAX_FPR = 0.01
X, y = make_payments(seed=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
scaler = StandardScaler().fit(X)
X, X_test = (torch.tensor(scaler.transform(rows), dtype=torch.float32) for rows in (X, X_test))
y = torch.tensor(y, dtype=torch.float32)
# sphinx_gallery_thumbnail_path = 'images/network.png'

# %%
# ``StratifiedBatchSampler`` puts 64 frauds into every batch of 256. One percent of the other 192 are two rows; the loss
# counts those below them, too, with a weight that falls with the rank.


def train(loss, rate, seed):
    """Return the test partial AUC after each epoch."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(X.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    values = []
    batches = StratifiedBatchSampler(y, 256, positives=64)
    for _ in EPOCHS:
        for rows in batches:
            optimizer.zero_grad()
            loss(net(X[rows])[:, 0], y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            values.append(partial_auc_score(y_test, net(X_test)[:, 0].numpy(), max_fpr=MAX_FPR))
    return values


EPOCHS = np.arange(1, 15)
curves = {
    "cross-entropy": (nn.BCEWithLogitsLoss(), 1e-3, "#0072B2"),
    "PartialAUCLoss": (PartialAUCLoss(max_fpr=MAX_FPR), 1e-3, "#D55E00"),
}
figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
for name, (loss, rate, color) in curves.items():
    runs = np.array([train(loss, rate, seed) for seed in range(3)])
    ax.plot(EPOCHS, runs.mean(axis=0), color=color, marker="o", markersize=3, label=name)
    ax.fill_between(EPOCHS, runs.min(axis=0), runs.max(axis=0), color=color, alpha=0.15, linewidth=0)
ax.set(xlabel="epoch", ylabel="test partial AUC, FPR <= 1 %", ylim=(0, None))
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The lines are means of three seeds, the bands their range, all with one learning rate. The gain depends on the data
# and on tuning: :doc:`/networks` compares both losses on real sets with rates that are tuned for each, and finds a
# clear gain on one set of six.
