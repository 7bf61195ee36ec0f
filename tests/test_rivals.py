"""The greedy combination and the asymmetric SVM against slow transcriptions and general solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification

from rocmax import GreedyPairClassifier
from rocmax.metrics import partial_auc_score


def greedy(X, y, window, steps):
    """The greedy combination, feature by feature, with no care for speed."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)

    def area(s):
        return partial_auc_score(y, np.round(s, 9), min_fpr=window[0], max_fpr=window[1])

    columns = [z if area(z) >= area(-z) else -z for z in Z.T]
    columns.sort(key=area, reverse=True)
    s = columns[0]
    for column in columns[1:]:
        tried = [(1 - k / steps) * s + k / steps * column for k in range(steps + 1)]
        areas = [area(t) for t in tried]
        s = tried[next(k for k, a in enumerate(areas) if a >= max(areas) - 1e-12)]
    return s


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_greedy_combination_equals_a_slow_transcription(seed):
    X, y = make_classification(60, 4, n_informative=2, n_redundant=0, weights=[0.6], random_state=seed)
    model = GreedyPairClassifier(0.05, 0.4, n_steps=8).fit(X, y)
    expected = greedy(X, y, (0.05, 0.4), 8)
    found = model.decision_function(X)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-8)
    assert (np.diff(model.train_partial_auc_) >= -1e-12).all()
    assert model.train_partial_auc_[-1] == pytest.approx(model.score(X, y))


def test_the_greedy_combination_refuses_what_makes_no_sense():
    X, y = make_classification(60, random_state=0)
    with pytest.raises(ValueError, match="n_steps"):
        GreedyPairClassifier(n_steps=0).fit(X, y)
    with pytest.raises(ValueError, match="min_fpr"):
        GreedyPairClassifier(0.3, 0.2).fit(X, y)
