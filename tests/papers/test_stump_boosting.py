"""RankBoost, pAUCBoost and AUC trees against slow transcriptions of their papers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from rocmax.papers import AUCTreeClassifier, PAUCBoostClassifier, RankBoostClassifier
from rocmax.papers.trees import SmoothPartialAUC, SortedFeatures, midpoint


def tiny(seed, n=16, d=3, levels=6):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d)).astype(float)
    y = rng.permutation(np.arange(n) < n // 3).astype(int)
    return X, y


def all_stumps(X):
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for low, high in pairwise(values):
            yield feature, (low + high) / 2


def rank_boost(X, y, rounds):
    """RankBoost with a table of pair weights, as in the paper's Figure 1, and its third method for the weights."""
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    D = np.full((positive.size, negative.size), 1.0 / (positive.size * negative.size))
    F, losses = np.zeros(y.size), [1.0]
    for _ in range(rounds):
        best = None
        for feature, threshold in all_stumps(X):
            h = (X[:, feature] > threshold).astype(float)
            r = sum(D[a, b] * (h[i] - h[j]) for a, i in enumerate(positive) for b, j in enumerate(negative))
            if best is None or abs(r) > abs(best[0]) + 1e-9:
                best = r, h
        r = np.clip(best[0], -(1 - 1e-6), 1 - 1e-6)
        alpha = 0.5 * np.log((1 + r) / (1 - r))
        F += alpha * best[1]
        D *= np.exp(alpha * (best[1][negative][None] - best[1][positive][:, None]))
        losses.append(losses[-1] * D.sum())
        D /= D.sum()
    return F, losses


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_rank_boost_equals_a_table_of_pairs(seed):
    X, y = tiny(seed)
    model = RankBoostClassifier(5).fit(X, y)
    scores, losses = rank_boost(X, y, len(model.stumps_))
    np.testing.assert_allclose(model.decision_function(X) + model.threshold_, scores, atol=1e-8)
    np.testing.assert_allclose(model.train_loss_, losses, rtol=1e-8)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_loss_of_rank_boost_never_rises_and_bounds_the_error(seed):
    X, y = make_classification(60, 4, n_informative=2, n_redundant=0, flip_y=0.2, random_state=seed)
    model = RankBoostClassifier(40).fit(X, y)
    assert (np.diff(model.train_loss_) <= 1e-12).all()
    scores = model.decision_function(X)
    pairs = np.exp(scores[y == 0][None] - scores[y == 1][:, None])
    assert model.train_loss_[-1] == pytest.approx(pairs.mean(), rel=1e-8)
    assert 1 - model.score(X, y) <= model.train_loss_[-1] + 1e-12


def test_rank_boost_ends_where_no_stump_helps():
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    with pytest.warns(ConvergenceWarning, match="all training rows have the same score"):
        model = RankBoostClassifier(10).fit(X, [0, 0, 1, 1])
    assert model.stumps_ == []
    np.testing.assert_array_equal(model.train_loss_, [1.0])
    assert RankBoostClassifier(3).fit(np.zeros((4, 2)), [0, 1, 0, 1]).stumps_ == []


def test_a_perfect_stump_gets_a_finite_weight():
    model = RankBoostClassifier(5).fit(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1])
    assert np.isfinite(model.weights_).all()
    assert model.score(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]) == 1.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_best_stump_is_the_best_of_all(seed):
    X, _ = tiny(seed)
    c = np.random.default_rng(seed).standard_normal(X.shape[0])
    (stump,) = SortedFeatures(X).leading(c, 1)
    gains = {(f, t): c[X[:, f] > t].sum() for f, t in all_stumps(X)}
    assert abs(stump.gain) == pytest.approx(max(map(abs, gains.values())))
    assert gains[stump.feature, stump.threshold] == pytest.approx(stump.gain)


def test_a_midpoint_never_reaches_the_higher_end():
    low = 1.0
    high = np.nextafter(low, 2.0)
    assert low <= midpoint(low, high) < high


def local_auc(y, low):
    """Area of the ROC curve of a split, its two sides ordered by their share of positives."""
    share = np.where(low, y[low].mean(), y[~low].mean())
    return roc_auc_score(y, share)


def slow_tree(X, y, depth):
    """Laplace scores of a tree that takes the split with the best local AUC, by trying all of them."""
    score = np.full(y.size, (y.sum() + 1) / (y.size + 2))
    if depth == 0 or y.min() == y.max():
        return score
    tried = [(local_auc(y, X[:, f] <= t), f, t) for f, t in all_stumps(X)]
    best = max((area for area, _, _ in tried), default=0.5)
    if best <= 0.5 + 1e-9:
        return score
    _, feature, threshold = next(entry for entry in tried if entry[0] >= best - 1e-9)
    low = X[:, feature] <= threshold
    score[low], score[~low] = slow_tree(X[low], y[low], depth - 1), slow_tree(X[~low], y[~low], depth - 1)
    return score


@pytest.mark.parametrize("depth", [1, 2, 4])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_tree_equals_a_slow_transcription(depth, seed):
    X, y = tiny(seed, n=20)
    model = AUCTreeClassifier(depth).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X) + model.threshold_, slow_tree(X, y, depth), atol=1e-12)


def test_the_tree_keeps_its_limits():
    X, y = make_classification(300, 5, flip_y=0.2, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, y.size).astype(float)
    model = AUCTreeClassifier(min_samples_leaf=20).fit(X, y, sample_weight=weight)
    leaf = model._leaves(X)
    assert min(weight[leaf == node].sum() for node in np.unique(leaf)) >= 20
    assert (model.feature_[leaf] == -1).all()
    assert AUCTreeClassifier(2).fit(X, y).value_.size <= 7


def slow_smooth(scores, y, a, b):
    """The smooth partial AUC by a double loop over distinct negative scores; no ties."""
    negative = np.sort(scores[y == 0])[::-1]
    inside = [(z, min(j + 1, b) - max(j, a)) for j, z in enumerate(negative) if min(j + 1, b) > max(j, a)]
    total = sum(part * norm.cdf(s - z) for s in scores[y == 1] for z, part in inside)
    return total / ((y == 1).sum() * (b - a))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_slope_of_the_smooth_partial_auc_equals_differences_of_a_double_loop(seed):
    rng = np.random.default_rng(seed)
    y, scores = np.arange(25) < 8, rng.standard_normal(25)
    smooth = SmoothPartialAUC(y, None, 0.1, 0.5)
    v = rng.standard_normal(25)
    step = 1e-6
    up, down = (slow_smooth(scores + t * v, y.astype(int), 1.7, 8.5) for t in (step, -step))
    finite = (up - down) / (2 * step)
    assert smooth.gradient(scores) @ v == pytest.approx(finite, abs=1e-6)


def test_pauc_boost_learns_from_binary_features():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (1000, 6)).astype(float)
    y = (X[:, :3].sum(axis=1) + rng.standard_normal(1000) > 2.5).astype(int)
    assert PAUCBoostClassifier(0.02, 0.05, n_estimators=10).fit(X, y).score(X, y) > 0.19


def test_tied_negatives_share_the_window():
    y = np.array([1, 0, 0, 0, 0])
    gradient = SmoothPartialAUC(y == 1, None, 0.0, 0.5).gradient(np.zeros(5))
    np.testing.assert_allclose(gradient[1:], gradient[1])
    assert gradient.sum() == pytest.approx(0.0)


def test_pauc_boost_never_falls_and_beats_chance():
    X, y = make_classification(600, 8, weights=[0.8], flip_y=0.1, random_state=0)
    model = PAUCBoostClassifier(0.0, 0.1, n_estimators=30).fit(X, y)
    assert (np.diff(model.train_partial_auc_) > 0).all()
    assert model.score(X, y) > 0.5
    assert np.mean(model.predict(X[y == 0]) == 1) <= 0.1
    for name, value in {"min_fpr": 0.5, "n_estimators": 0}.items():
        with pytest.raises(ValueError, match=name):
            PAUCBoostClassifier(**{name: value}).fit(X, y)
