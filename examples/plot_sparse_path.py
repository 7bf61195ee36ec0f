"""
Few features, or few groups
===========================

A measurement can be expensive, and a model with few features is easier to explain. :func:`~rocmax.partial_auc_path`
fits models for the partial AUC with a bound on a norm of the weights, from zero weights to many features.
"""

# %%
# The data have 60 features in 12 groups of 5; three groups are informative, each with strong and weak features.

import matplotlib.pyplot as plt
import numpy as np

from rocmax import partial_auc_path
from rocmax.displays import PartialAUCPathDisplay

GROUPS = np.arange(60) // 5


def sample(seed, n_rows=3000):
    """Return normal features; 10 % of the rows are positive, by a score of the first 15 features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 60))
    score = X[:, :15] @ np.tile([1.0, 0.8, 0.6, 0.4, 0.2], 3) + rng.standard_normal(n_rows)
    return X, (score > np.quantile(score, 0.9)).astype(int)


X, y = sample(seed=0)
X_test, y_test = sample(seed=1, n_rows=20000)

# %%
# As the radius increases, the L1 path adds single features, and the group path adds whole groups. Both reach their best
# partial AUC on test rows with few features or groups.

figure, axes = plt.subplots(2, 2, figsize=(10.5, 8.4), layout="constrained")
for row, params in zip(axes, ({"constraint": "l1"}, {"constraint": "group", "groups": GROUPS}), strict=True):
    path = partial_auc_path(X, y, max_fpr=0.1, n_radii=16, **params)
    PartialAUCPathDisplay.from_path(path, X_test, y_test, axes=row)
    row[0].set_title(f'Weights, constraint="{params["constraint"]}"')
plt.show()
