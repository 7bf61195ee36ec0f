"""Two overlapping classes on correlated features, for which the partial-AUC losses do not collapse."""

from __future__ import annotations

import numpy as np


def overlapping_rows(n=6000, d=6, seed=0, share=0.15, shift=2.0):
    """Return rows and boolean labels; the positives are shifted along the first feature, whose scale differs."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    X = rng.normal(size=(n, d)) + 0.3 * rng.normal(size=(n, 1))
    X[y, 0] += shift
    X[y, 1] += 0.5
    return X * np.array([3.0, *np.ones(d - 1)]) + 1.0, y
