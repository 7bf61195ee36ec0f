"""The greedy combination and the asymmetric SVM against slow transcriptions and general solvers."""

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel

from oracles.qp import solve_cone
from rocmax.metrics import partial_auc_score
from rocmax.papers import AsymmetricSVC, GreedyPairClassifier


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


def asymmetric_dual(gram, y, cost, mu):
    """Optimum of the asymmetric machine's dual: box, and coefficients that sum up to ``mu``."""
    side, n = np.where(y == 1, 1.0, -1.0), y.size
    A = sparse.vstack([sparse.csr_array(side[None]), sparse.eye_array(n), -sparse.eye_array(n)])
    b = np.concatenate([[mu], cost, np.zeros(n)])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    solution = solve_cone(np.outer(side, side) * gram, -(y == 0).astype(float), A, b, cones)
    return side * np.array(solution.x), -solution.obj_val


@pytest.mark.parametrize(("mu", "tau"), [(0.05, 0.1), (0.001, 0.01), (5.0, 1.0), (0.5, 20.0)])
def test_the_asymmetric_machine_equals_a_general_solver(mu, tau):
    X, y = make_classification(50, 4, n_informative=2, n_redundant=0, flip_y=0.2, weights=[0.6], random_state=1)
    weight = np.random.default_rng(0).integers(1, 4, y.size).astype(float)
    model = AsymmetricSVC(mu, tau, gamma=0.5, tol=1e-8).fit(X, y, sample_weight=weight)
    gram = rbf_kernel(X, gamma=0.5)
    coefficients, optimum = asymmetric_dual(gram, y, tau * weight, mu)
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    assert model.dual_gap_ <= 1e-8 * (abs(model.objective_) + mu)
    np.testing.assert_allclose(model.decision_function(X) + model.threshold_, gram @ coefficients, atol=1e-4)


def test_the_level_of_the_core_rises_with_mu():
    X, y = make_classification(200, 4, flip_y=0.1, random_state=0)
    called = [np.mean(AsymmetricSVC(mu, 0.5, tol=1e-6).fit(X, y).predict(X)) for mu in (0.01, 5.0, 20.0)]
    assert called[0] >= called[1] >= called[2]
    assert called[0] > called[2]


def test_the_asymmetric_machine_refuses_a_level_without_bound():
    X, y = make_classification(50, random_state=0)
    with pytest.raises(ValueError, match="mu must be less than tau times the number of positives"):
        AsymmetricSVC(mu=10.0, tau=0.1).fit(X, y)
    with pytest.raises(ValueError, match="tau"):
        AsymmetricSVC(tau=0.0).fit(X, y)
    with pytest.warns(UserWarning, match="AsymmetricSVC: GramNewton did not reach its tolerance: gap"):
        AsymmetricSVC(tau=5.0, max_iter=1).fit(X, y)
