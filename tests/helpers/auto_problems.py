"""Problems for the tests of the default fits."""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st


@st.composite
def problems(draw):
    """Rows with heavy tails or ties, labels of any balance, weights or none."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = draw(st.integers(12, 150)), draw(st.integers(1, 5))
    n_pos = draw(st.integers(1, n - 1))
    y = np.zeros(n, dtype=int)
    y[rng.permutation(n)[:n_pos]] = 1
    X = rng.standard_t(3, size=(n, d)) if draw(st.booleans()) else rng.normal(size=(n, d))
    X[:, 0] += draw(st.sampled_from([-1.0, 0.0, 0.5, 1.5, 4.0])) * y
    if draw(st.booleans()):
        X = np.round(2 * X)
    weight = rng.integers(1, 5, n).astype(float) if draw(st.booleans()) else None
    # With more than one value in each feature there is something to rank by.
    assume(np.ptp(X, axis=0).all())
    return X, y, weight
