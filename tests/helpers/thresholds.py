"""Scores and candidate thresholds."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def scored_rows(draw):
    """Few distinct scores, so that ties abound; both classes; weights or none."""
    n = draw(st.integers(2, 25))
    scores = np.array(draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), dtype=float)
    positive = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    positive[:2] = [True, False]
    weight = draw(st.none() | st.lists(st.floats(0.01, 10), min_size=n, max_size=n).map(np.array))
    return scores * draw(st.sampled_from([1e-9, 0.1, 1.0, 1e9])), positive, weight


def candidates(scores):
    """All sets of rows that a threshold can accept: none, then one more distinct score at a time."""
    values = sorted(set(scores), reverse=True)
    return [np.zeros(scores.size, dtype=bool)] + [scores >= value for value in values]
