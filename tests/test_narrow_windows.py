"""Windows of false-positive rates whose ends are almost the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmax import PartialAUCClassifier
from rocmax.metrics import delong_interval, partial_auc_score
from rocmax.papers import PAUCBoostClassifier

TOO_NARROW = [(0.999999999, 1.0), (0.5 - 1e-12, 0.5), (0.5, 0.5 + 1e-12), (0.0, 5e-324), (np.nextafter(1, 0), 1.0)]


def sample(n=60):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3 == 0
    return rng.normal(size=(n, 3)) + y[:, None], y


@pytest.mark.parametrize("window", TOO_NARROW)
@pytest.mark.parametrize(
    "call",
    [
        lambda X, y, a, b: partial_auc_score(y, X[:, 0], min_fpr=a, max_fpr=b, definition="count"),
        lambda X, y, a, b: delong_interval(y, X[:, 0], min_fpr=a, max_fpr=b),
        lambda X, y, a, b: PartialAUCClassifier(a, b).fit(X, y),
        lambda X, y, a, b: PAUCBoostClassifier(a, b).fit(X, y),
    ],
    ids=["count", "delong", "tight", "boosting"],
)
def test_a_window_that_rounding_closes_is_an_error(window, call):
    with pytest.raises(ValueError, match=r"max_fpr - min_fpr must be at least .*; got min_fpr="):
        call(*sample(), *map(float, window))


@settings(deadline=None, max_examples=200)
@given(
    n=st.integers(1, 10**6),
    stop=st.floats(1e-6, 1.0),
    width=st.floats(1.1e-8, 1.0),
    definition=st.sampled_from(["area", "count"]),
)
def test_every_other_window_has_a_measure(n, stop, width, definition):
    """Weights stand for many negatives, so that the ends fall on and near whole numbers of them."""
    y, scores, weight = [1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0], [1.0, n, 2.0, n]
    start = max(0.0, stop * (1 - width))
    value = partial_auc_score(y, scores, min_fpr=start, max_fpr=stop, definition=definition, sample_weight=weight)
    assert 0 <= value <= 1 + 1e-6
