"""The rivals as in Narasimhan and Agarwal (2017), whose models are linear: against slow transcriptions."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import make_classification

from rocmax.metrics import partial_auc_score
from rocmax.papers import GreedyPairClassifier, PAUCBoostClassifier
from rocmax.papers.trees import SmoothPartialAUC


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


def smooth_area(scores, y, window, inside=None):
    """The smooth partial AUC by sums over pairs; no ties. ``inside`` are scores that decide who is in the window."""
    part = shares(scores if inside is None else inside, y, window)
    total = sum(
        part[j] * norm.cdf(scores[i] - scores[j]) for i in np.flatnonzero(y == 1) for j in np.flatnonzero(y == 0)
    )
    return total / ((y == 1).sum() * part.sum())


def shares(scores, y, window):
    """Return the part of each negative whose rank is in the window; there are no ties."""
    negatives = np.flatnonzero(y == 0)
    a, b = window[0] * negatives.size, window[1] * negatives.size
    part = np.zeros(y.size)
    for rank, j in enumerate(negatives[np.argsort(-scores[negatives])]):
        part[j] = max(0.0, min(rank + 1, b) - max(rank, a))
    return part


def boost(X, y, window, rounds):
    """pAUCBoost on single standardized features: one Newton step for each, with derivatives as sums over pairs."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    beta = np.array([max((1.0, -1.0), key=lambda b, z=z: smooth_area(b * z, y, window)) for z in Z.T])
    scores, trace = np.zeros(y.size), []
    for _ in range(rounds):
        values = []
        for f, z in enumerate(Z.T):
            moved = scores + beta[f] * z
            part = shares(moved, y, window)
            slope = curvature = 0.0
            for i in np.flatnonzero(y == 1):
                for j in np.flatnonzero(part):
                    apart, change = moved[i] - moved[j], z[i] - z[j]
                    slope += part[j] * norm.pdf(apart) * change
                    curvature -= part[j] * apart * norm.pdf(apart) * change**2
            # Far away, the densities are zero in double precision, and the coefficient stays.
            beta[f] -= slope / curvature if curvature else 0.0
            values.append(smooth_area(scores + beta[f] * z, y, window))
        best = int(np.argmax(values))
        scores = scores + beta[best] * Z[:, best]
        trace.append((best, beta[best], area(y, scores, window)))
    return scores, trace


@pytest.mark.parametrize("window", [(0.05, 0.4), (0.0, 0.21)])
@pytest.mark.parametrize("seed", range(4))
def test_pauc_boost_is_that_of_its_paper(seed, window):
    X, y = rows(seed)
    model = PAUCBoostClassifier(*window, n_estimators=6).fit(X, y)
    expected, trace = boost(X, y, window, 6)
    found = model.decision_function(X)
    np.testing.assert_array_equal(model.features_, [f for f, _, _ in trace])
    np.testing.assert_allclose(model.weights_, [b for _, b, _ in trace], rtol=1e-7)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.train_partial_auc_[1:], [a for _, _, a in trace], atol=1e-9)
    assert model.train_partial_auc_[0] == pytest.approx(area(y, np.zeros(60), window))
    np.testing.assert_allclose(np.diff(found), np.diff(X @ model.coef_[0]), atol=1e-9 * np.abs(found).max())


@pytest.mark.parametrize("seed", range(4))
def test_the_derivatives_of_the_smooth_partial_auc_equal_differences_of_sums_over_pairs(seed):
    rng = np.random.default_rng(seed)
    y, scores, v, h = (np.arange(40) < 12).astype(int), rng.standard_normal(40), rng.standard_normal(40), 1e-4
    smooth = SmoothPartialAUC(y == 1, None, 0.1, 0.53)
    low, here, high = (smooth_area(scores + t * v, y, (0.1, 0.53), scores) for t in (-h, 0.0, h))
    slope, curvature = smooth.derivatives(scores, v)
    assert smooth.value(scores) == pytest.approx(here, rel=1e-12)
    assert slope == pytest.approx((high - low) / (2 * h), abs=1e-7)
    assert curvature == pytest.approx((high - 2 * here + low) / h**2, abs=1e-5)


def test_tied_negatives_share_the_window_of_the_smooth_partial_auc():
    # Four tied negatives, two of which are in the window: half of each, whatever the order of the rows.
    y, z = np.array([1, 0, 0, 0, 0]), np.array([1.0, 3.0, 2.0, 1.0, 0.0])
    smooth = SmoothPartialAUC(y == 1, None, 0.0, 0.5)
    assert smooth.value(np.zeros(5)) == pytest.approx(0.5)
    slope, curvature = smooth.derivatives(np.zeros(5), z)
    assert slope == pytest.approx(norm.pdf(0) * np.mean(1.0 - z[1:]))
    assert curvature == pytest.approx(0.0)


def test_scores_far_apart_have_zero_derivatives():
    smooth = SmoothPartialAUC(np.array([True, False, False]), None, 0.0, 1.0)
    assert smooth.derivatives(np.array([1e200, 0.0, -1e200]), np.array([1.0, 2.0, 3.0])) == (0.0, 0.0)


def test_pauc_boost_with_another_positive_class_weights_constant_features_and_bad_parameters():
    X, y = rows(1)
    X = np.column_stack([X, np.ones(60)])
    model = PAUCBoostClassifier(0.0, 0.5, n_estimators=5).fit(X, y)
    named = PAUCBoostClassifier(0.0, 0.5, n_estimators=5, pos_label="a").fit(X, np.where(y == 1, "a", "b"))
    np.testing.assert_allclose(named.coef_, -model.coef_)
    assert model.coef_[0, -1] == 0
    weighted = PAUCBoostClassifier(0.0, 0.5, n_estimators=5).fit(X, y, sample_weight=np.full(60, 2.0)).coef_
    np.testing.assert_allclose(weighted, model.coef_)
    for name, value in {"min_fpr": 0.5, "n_estimators": 0}.items():
        with pytest.raises(ValueError, match=name):
            PAUCBoostClassifier(**{name: value}).fit(X, y)


def test_pauc_boost_learns_one_informative_feature():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = np.column_stack([rng.standard_normal(400), rng.standard_normal(400) - 2.0 * y])
    model = PAUCBoostClassifier(0.0, 0.2, n_estimators=1).fit(X, y)
    assert model.features_.tolist() == [1]
    assert model.coef_[0, 1] < 0
    assert model.score(X, y) > 0.6
    assert np.mean(model.predict(X[y == 0]) == 1) <= 0.2
