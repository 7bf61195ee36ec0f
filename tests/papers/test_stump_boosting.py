"""RankBoost and AUC trees against slow transcriptions of their papers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from rocmax.papers import AUCTreeClassifier, RankBoostClassifier
from rocmax.papers.trees import SortedFeatures, midpoint


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
    stump = SortedFeatures(X).best(c)
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
