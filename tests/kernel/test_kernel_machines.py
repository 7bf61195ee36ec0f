"""ROC-SVM and 2-norm SVM against general QPs, optimality conditions and the propositions of Rakotomamonjy (2004)."""

import clarabel
import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from oracles.qp import solve_cone
from rocmax import ROCSVC, AUCClassifier
from rocmax.kernel import qp as pair_qp
from rocmax.kernel.qp import GramNewton, ListedPairs, PairNewtonRules, SortedPairs
from rocmax.kernel.rocsvc import neighbor_pairs
from rocmax.papers import TwoNormSVC


def problem(n=40, seed=0, **options):
    options = {"n_informative": 3, "n_redundant": 0, "weights": [0.6], "flip_y": 0.2, "class_sep": 0.5} | options
    X, y = make_classification(n, 5, random_state=seed, **options)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def pairwise_dual(gram, first, second, weight, C, margin):
    """Optimum of Rakotomamonjy (2004)'s Eq. 12 with one variable per pair, by a general solver."""
    difference = gram[first] - gram[second]
    Q = difference[:, first] - difference[:, second]
    k = first.size
    A = sparse.vstack([sparse.eye_array(k), -sparse.eye_array(k)])
    b = np.concatenate([C * weight, np.zeros(k)])
    solution = solve_cone(Q, -margin * np.ones(k), A, b, [clarabel.NonnegativeConeT(2 * k)])
    return np.array(solution.x), -solution.obj_val


def listed(y):
    return tuple(a.ravel() for a in np.meshgrid(np.flatnonzero(y == 1), np.flatnonzero(y == 0), indexing="ij"))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize(("C", "margin"), [(0.01, 1.0), (1.0, 0.01), (5.0, 2.0)])
def test_objective_and_scores_equal_a_general_solver(kernel, C, margin):
    X, y = problem()
    model = ROCSVC(kernel, C=C, reduction="sum", margin=margin, gamma=0.3, degree=2, coef0=1.0, tol=1e-9).fit(X, y)
    gram = {"rbf": rbf_kernel(X, gamma=0.3), "poly": polynomial_kernel(X, gamma=0.3, degree=2, coef0=1.0)}.get(
        kernel, X @ X.T
    )
    first, second = listed(y)
    alpha, optimum = pairwise_dual(gram, first, second, np.ones(first.size), C, margin)
    assert model.objective_ == pytest.approx(optimum, rel=1e-7)
    expected = gram[:, first] @ alpha - gram[:, second] @ alpha
    np.testing.assert_allclose(model.decision_function(X) + model.threshold_, expected, atol=1e-4 * margin)


def test_weights_are_copies_in_the_pairwise_dual():
    X, y = problem()
    weight = np.random.default_rng(0).integers(0, 4, y.size).astype(float)
    keep = weight > 0
    model = ROCSVC(C=0.05, reduction="sum", gamma=0.3, tol=1e-9).fit(X, y, sample_weight=weight)
    first, second = listed(y[keep])
    share = weight[keep][first] * weight[keep][second]
    _, optimum = pairwise_dual(rbf_kernel(X[keep], gamma=0.3), first, second, share, 0.05, 1.0)
    assert model.objective_ == pytest.approx(optimum, rel=1e-7)
    assert set(model.support_) <= set(np.flatnonzero(keep))


@pytest.mark.parametrize("C", [0.01, 0.3])
def test_optimality_conditions_of_proposition_3_2_1(C):
    """There are multipliers that sum up to the coefficients, and each pair obeys its case."""
    X, y = problem(60)
    model = ROCSVC(C=C, reduction="sum", margin=0.5, gamma=0.3, tol=1e-12, max_iter=2000).fit(X, y)
    assert model.kkt_residual_ <= 1e-10
    coefficients = np.zeros(y.size)
    coefficients[model.support_] = model.dual_coef_[0]
    first, second = listed(y)
    scores = model.decision_function(X)
    apart = scores[first] - scores[second]
    eps = 1e-5
    bounds = np.column_stack([np.where(apart < 0.5 - eps, C, 0.0), np.where(apart > 0.5 + eps, 0.0, C)])
    incidence = sparse.csr_array(
        (np.repeat([1.0, -1.0], first.size), (np.concatenate([first, second]), np.tile(np.arange(first.size), 2)))
    )
    # The smallest possible error of the row sums over multipliers that obey the three cases.
    k, n = first.size, y.size
    A = sparse.vstack([sparse.hstack([incidence, -np.ones((n, 1))]), sparse.hstack([-incidence, -np.ones((n, 1))])])
    program = optimize.linprog(
        np.append(np.zeros(k), 1.0), A_ub=A, b_ub=np.append(coefficients, -coefficients), bounds=[*bounds, (0, None)]
    )
    assert program.status == 0
    assert program.fun <= 1e-5 * np.abs(coefficients).max()


def test_separable_data_give_the_direction_of_a_hard_margin_machine():
    """Proposition 3.4.1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) + np.repeat([[3.0], [-3.0]], 30, axis=0)
    y = np.repeat([1, 0], 30)
    for margin in (0.1, 2.0):
        model = ROCSVC("linear", C=100.0, reduction="sum", margin=margin, tol=1e-10).fit(X, y)
        w = model.dual_coef_[0] @ model.support_vectors_
        hard = SVC(kernel="linear", C=1e8, tol=1e-10).fit(X, y).coef_[0]
        np.testing.assert_allclose(w, margin / 2 * hard, rtol=1e-5)


def test_neighbour_pairs_equal_a_slow_transcription():
    X, y = problem(30)
    first, second = neighbor_pairs(rbf_kernel(X, gamma=0.2), y == 1, 3)
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    chosen = set()
    for j in negative:
        chosen |= set(sorted(positive, key=lambda i: np.linalg.norm(X[i] - X[j]))[:3])
    expected = {(i, j) for i in chosen for j in sorted(negative, key=lambda j: np.linalg.norm(X[i] - X[j]))[:3]}
    assert set(zip(first, second, strict=True)) == expected
    assert first.size == len(expected)


def test_neighbour_pairs_are_what_is_optimised():
    X, y = problem()
    model = ROCSVC(C=0.5, reduction="sum", margin=0.01, n_neighbors=4, gamma=0.3, tol=1e-9).fit(X, y)
    gram = rbf_kernel(X, gamma=0.3)
    first, second = neighbor_pairs(gram, y == 1, 4)
    _, optimum = pairwise_dual(gram, first, second, np.ones(first.size), 0.5, 0.01)
    assert model.objective_ == pytest.approx(optimum, rel=1e-7)
    assert model.n_pairs_ == first.size
    everything = ROCSVC(C=0.5, reduction="sum", margin=0.01, n_neighbors=1000, gamma=0.3, tol=1e-9).fit(X, y)
    assert everything.objective_ == pytest.approx(
        ROCSVC(C=0.5, reduction="sum", margin=0.01, gamma=0.3, tol=1e-9).fit(X, y).objective_
    )


def test_sorted_and_listed_pairs_meet_and_conjugate_gradients_too(monkeypatch):
    X, y = problem(300)
    gram, (first, second) = rbf_kernel(X, gamma=0.1), listed(y)
    direct, scores = GramNewton(1e-7).solve(gram, ListedPairs(y.size, first, second), 0.001)
    monkeypatch.setattr("rocmax.kernel.qp.RULES", PairNewtonRules(most_eliminated=0))
    by_gradients, _ = GramNewton(1e-7).solve(gram, SortedPairs(y == 1), 0.001)
    assert direct.converged
    assert by_gradients.converged
    assert direct.objective == pytest.approx(by_gradients.objective, rel=2e-7)
    np.testing.assert_allclose(scores, gram @ direct.w, atol=1e-9)


def test_linear_kernel_is_the_linear_auc_machine():
    X, y = problem(200)
    m, n = (y == 1).sum(), (y == 0).sum()
    kernel = ROCSVC("linear", C=5.0 / (m * n), reduction="sum", tol=1e-6).fit(X, y)
    linear = AUCClassifier(C=5.0, tol=1e-6).fit(X, y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=2e-6)


@pytest.mark.parametrize("estimator", [ROCSVC(gamma=0.3, tol=1e-8), TwoNormSVC(gamma=0.3, tol=1e-8)])
def test_precomputed_callable_and_csr_agree(estimator):
    X, y = problem()
    expected = estimator.fit(X, y).decision_function(X[:7])
    gram = rbf_kernel(X, gamma=0.3)
    estimator.set_params(kernel="precomputed")
    np.testing.assert_allclose(estimator.fit(gram, y).decision_function(gram[:7]), expected, atol=1e-6)
    weight = np.ones(y.size)
    weight[:9] = 0.0
    dropped = estimator.fit(gram, y, sample_weight=weight).decision_function(gram[:7])
    estimator.set_params(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3))
    np.testing.assert_allclose(estimator.fit(X, y).decision_function(X[:7]), expected, atol=1e-6)
    estimator.set_params(kernel="rbf")
    np.testing.assert_allclose(estimator.fit(X, y, sample_weight=weight).decision_function(X[:7]), dropped, atol=1e-6)
    sparse_X = sparse.csr_array(X)
    np.testing.assert_allclose(estimator.fit(sparse_X, y).decision_function(sparse_X[:7]), expected, atol=1e-6)


def test_gamma_is_that_of_scikit_learn():
    X, y = problem()
    for gamma in ("scale", "auto"):
        value = 1 / (5 * X.var()) if gamma == "scale" else 1 / 5
        a = ROCSVC(gamma=gamma, tol=1e-8).fit(X * 2, y).decision_function(X)
        b = ROCSVC(gamma=value / 4 if gamma == "scale" else value, tol=1e-8).fit(X * 2, y).decision_function(X)
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_a_gram_matrix_that_is_too_large_is_refused_before_it_is_made():
    X, y = problem(200)
    with pytest.raises(ValueError, match=r"at most max_gram_mb=0\.1 MB; got 200 rows, which take 0 MB.*KMeansNystroem"):
        ROCSVC(max_gram_mb=0.1).fit(X, y)


def test_a_matrix_that_is_no_kernel_is_refused():
    X, y = problem()
    bad = -rbf_kernel(X)
    with pytest.raises(ValueError, match="positive semidefinite"):
        ROCSVC("precomputed").fit(bad, y)
    bad = np.eye(y.size)
    bad[0, 1] = 0.5
    with pytest.raises(ValueError, match="symmetric"):
        TwoNormSVC("precomputed").fit(bad, y)
    with pytest.raises(ValueError, match="kernel must be one of"):
        ROCSVC("cosine-ish").fit(X, y)
    for name, value in (
        ("C", 0),
        ("margin", -1.0),
        ("n_neighbors", 0),
        ("gamma", -2.0),
        ("degree", 1.5),
        ("coef0", "a"),
    ):
        with pytest.raises(ValueError, match=name):
            ROCSVC(**{name: value}).fit(X, y)


def test_an_unfinished_fit_says_so():
    X, y = problem()
    with pytest.warns(UserWarning, match="ROCSVC: GramNewton did not reach its tolerance"):
        model = ROCSVC(C=10.0, reduction="sum", tol=1e-12, max_iter=2).fit(X, y)
    assert model.n_iter_ == 2


@pytest.mark.parametrize("estimator", [ROCSVC(C=0.1, reduction="sum"), TwoNormSVC()])
def test_the_positive_class_can_be_the_first_one(estimator):
    X, y = problem(80)
    label = np.where(y == 1, "a", "b")
    first = estimator.set_params(pos_label="a").fit(X, label)
    other = estimator.__class__(**estimator.get_params() | {"pos_label": None}).fit(X, y)
    assert first.score(X, label) == pytest.approx(other.score(X, y))
    assert first.score(X, label) == pytest.approx(roc_auc_score(y, -first.decision_function(X)))
    np.testing.assert_array_equal(first.predict(X) == "a", other.predict(X) == 1)


def two_norm_optimum(gram, y, C, weight):
    """Optimum of the 2-norm machine's dual, by a general solver."""
    sign = np.where(y == 1, 1.0, -1.0)
    n = y.size
    Q = np.outer(sign, sign) * (gram + np.diag(1 / (C * weight)))
    A = sparse.vstack([sparse.csr_array(sign[None]), -sparse.eye_array(n)])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    solution = solve_cone(Q, -np.ones(n), A, np.zeros(n + 1), cones)
    return sign * np.array(solution.x), -solution.obj_val


@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
def test_two_norm_machine_equals_a_general_solver(C):
    X, y = problem()
    weight = np.random.default_rng(1).integers(1, 4, y.size).astype(float)
    model = TwoNormSVC(C=C, gamma=0.3, tol=1e-8).fit(X, y, sample_weight=weight)
    gram = rbf_kernel(X, gamma=0.3)
    coefficients, optimum = two_norm_optimum(gram, y, C, weight)
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X) + model.threshold_, gram @ coefficients, atol=1e-5)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_two_norm_machine_ranks_all_pairs_in_its_own_space(C):
    """Proposition 3.6.1, also on labels that are pure noise."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 3)), rng.integers(0, 2, 80)
    model = TwoNormSVC(C=C, gamma=0.3).fit(X, y)
    assert roc_auc_score(y, model.augmented_scores_) == 1.0
    assert model.score(X, y) < 1.0


def test_a_bound_above_the_objective_is_not_called_converged(monkeypatch):
    certify = pair_qp._PairNewton.certify

    def too_high(self):
        certify(self)
        self.bound *= 1.5

    monkeypatch.setattr(pair_qp._PairNewton, "certify", too_high)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), np.arange(40) % 2
    with pytest.warns(ConvergenceWarning, match=r"ROCSVC: GramNewton did not converge to tol=0.001: gap -"):
        model = ROCSVC(C=0.01, reduction="sum").fit(X, y)
    assert model.dual_gap_ < 0
