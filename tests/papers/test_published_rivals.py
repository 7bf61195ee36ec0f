"""The rivals as in Narasimhan and Agarwal (2017), whose models are linear: against slow transcriptions."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import make_classification

from rocmax.metrics import partial_auc_score
from rocmax.papers import GreedyPairClassifier, PAUCBoostClassifier


def area(y, scores, window):
    return partial_auc_score(y, np.round(scores, 9), min_fpr=window[0], max_fpr=window[1])


def rows(seed):
    return make_classification(60, 4, n_informative=2, n_redundant=0, weights=[0.6], random_state=seed)


def greedy(X, y, window, steps):
    """The greedy combination of the features without changes."""
    columns = sorted(X.T, key=lambda column: area(y, column, window), reverse=True)
    s = columns[0]
    for column in columns[1:]:
        tried = [(1 - k / steps) * s + k / steps * column for k in range(steps + 1)]
        areas = [area(y, t, window) for t in tried]
        s = tried[next(k for k, a in enumerate(areas) if a >= max(areas) - 1e-12)]
    return s


@pytest.mark.parametrize("seed", range(4))
def test_the_greedy_combination_of_raw_features(seed):
    X, y = rows(seed)
    model = GreedyPairClassifier(0.05, 0.4, n_steps=8, standardize=False, orient=False).fit(X, y)
    expected = greedy(X, y, (0.05, 0.4), 8)
    found = model.decision_function(X)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-9)
    assert (model.coef_ >= 0).all()


def test_a_feature_that_is_turned_round_contributes_only_if_features_are_oriented():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = np.column_stack([-2.0 * y + rng.standard_normal(400), rng.standard_normal(400)])
    turned, raw = (GreedyPairClassifier(0.0, 0.5, n_steps=10, orient=orient).fit(X, y) for orient in (True, False))
    assert turned.coef_[0, 0] < 0
    assert turned.score(X, y) > 0.7 > raw.score(X, y)


def shares(scores, y, window):
    """Return the part of each negative whose rank is in the window; there are no ties."""
    negatives = np.flatnonzero(y == 0)
    a, b = window[0] * negatives.size, window[1] * negatives.size
    part = np.zeros(y.size)
    for rank, j in enumerate(negatives[np.argsort(-scores[negatives])]):
        part[j] = max(0.0, min(rank + 1, b) - max(rank, a))
    return part


def boost(X, y, window, rounds):
    """pAUCBoost on single standardized features, from zero scores, by sums over pairs."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores, trace = np.zeros(y.size), [area(y, np.zeros(y.size), window)]
    for r in range(rounds):
        part = (y == 0) * (window[1] - window[0]) if r == 0 else shares(scores, y, window)
        gradient = np.zeros(y.size)
        for i in np.flatnonzero(y == 1):
            for j in np.flatnonzero(y == 0):
                density = part[j] * norm.pdf(scores[i] - scores[j])
                gradient[i] += density
                gradient[j] -= density
        slope = gradient @ Z
        tried = [
            scores + np.sign(slope[f]) * 2.0**power * Z[:, f]
            for f in np.argsort(-abs(slope), kind="stable")
            for power in range(2, -7, -1)
        ]
        areas = [area(y, t, window) for t in tried]
        if max(areas) <= trace[-1] + 1e-12:
            break
        scores = tried[next(k for k, value in enumerate(areas) if value >= max(areas) - 1e-12)]
        trace.append(max(areas))
    return scores, trace


@pytest.mark.parametrize("seed", range(4))
def test_pauc_boost_on_single_features(seed):
    X, y = rows(seed)
    model = PAUCBoostClassifier(0.05, 0.4, n_estimators=5, weak_learner="linear").fit(X, y)
    expected, trace = boost(X, y, (0.05, 0.4), 5)
    found = model.decision_function(X)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-9)
    np.testing.assert_allclose(model.train_partial_auc_, trace, atol=1e-9)
    np.testing.assert_allclose(np.diff(found), np.diff(X @ model.coef_[0]), atol=1e-9)
    assert model.features_.shape == model.weights_.shape


def test_single_features_as_weak_learners_with_another_positive_class_weights_and_constant_features():
    X, y = rows(1)
    X = np.column_stack([X, np.ones(60)])
    model = PAUCBoostClassifier(0.0, 0.5, n_estimators=5, weak_learner="linear").fit(X, y)
    named = PAUCBoostClassifier(0.0, 0.5, n_estimators=5, weak_learner="linear", pos_label="a")
    named.fit(X, np.where(y == 1, "a", "b"))
    np.testing.assert_allclose(named.coef_, -model.coef_)
    assert model.coef_[0, -1] == 0
    twice = PAUCBoostClassifier(0.0, 0.5, n_estimators=5, weak_learner="linear")
    weighted = twice.fit(X, y, sample_weight=np.full(60, 2.0)).coef_
    np.testing.assert_allclose(weighted, model.coef_)
    with pytest.raises(ValueError, match=r"weak_learner must be one of .*; got 'tree'"):
        PAUCBoostClassifier(weak_learner="tree").fit(X, y)
