"""k-means Nystroem features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_circles
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels, rbf_kernel
from sklearn.pipeline import make_pipeline

from rocmax import KMeansNystroem, PSAMClassifier


def sample(n=300, d=5, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * np.arange(1, d + 1)


def test_features_of_the_landmarks_give_their_kernel():
    model = KMeansNystroem(40, random_state=0).fit(sample())
    features = model.transform(model.components_)
    assert_allclose(features @ features.T, rbf_kernel(model.components_, gamma=model.gamma_), atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "linear", laplacian_kernel])
def test_with_each_row_a_landmark_the_kernel_is_exact(kernel):
    X = sample(60)
    model = KMeansNystroem(100, kernel=kernel, random_state=0).fit(X)
    features = model.transform(X)
    gamma = {"gamma": model.gamma_} if kernel == "rbf" else {}
    assert features.shape == (60, 60)
    expected = kernel(X, X) if callable(kernel) else pairwise_kernels(X, metric=kernel, **gamma)
    assert_allclose(features @ features.T, expected, atol=1e-7)


def test_parameters_reach_the_kernel():
    X = np.abs(sample(40))
    model = KMeansNystroem(50, kernel="poly", gamma=0.3, degree=2, coef0=1.5).fit(X)
    features = model.transform(X)
    expected = (0.3 * X @ X.T + 1.5) ** 2
    assert_allclose(features @ features.T, expected, atol=1e-6 * expected.max())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_bandwidth_is_the_mean_squared_distance_to_the_mean(form):
    X = sample()
    expected = np.square(X - X.mean(axis=0)).sum(axis=1).mean()
    model = KMeansNystroem(5, gamma="scale-to-mean", random_state=0)
    assert model.fit(form(X)).gamma_ == pytest.approx(1 / expected)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_gamma_is_that_of_the_other_kernels(form):
    X = sample()
    assert KMeansNystroem(5, random_state=0).fit(form(X)).gamma_ == pytest.approx(1 / (X.shape[1] * X.var()))
    assert KMeansNystroem(5, gamma="auto", random_state=0).fit(form(X)).gamma_ == 1 / X.shape[1]


def test_k_means_landmarks_beat_random_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 8)) + 4 * rng.integers(0, 3, (1500, 1))
    model = KMeansNystroem(30, random_state=0).fit(X)
    exact = rbf_kernel(X, gamma=model.gamma_)
    ours = model.transform(X)
    error = np.linalg.norm(exact - ours @ ours.T)
    rivals = []
    for seed in range(5):
        features = Nystroem(n_components=30, gamma=model.gamma_, random_state=seed).fit_transform(X)
        rivals.append(np.linalg.norm(exact - features @ features.T))
    assert error < min(rivals)


def test_batches_do_not_matter_and_sparse_rows_are_as_good():
    X = sample()
    model = KMeansNystroem(20, random_state=0).fit(X)
    whole = model.transform(X)
    assert_allclose(model.set_params(batch_size=7).transform(X), whole, atol=1e-9)
    assert_allclose(model.transform(sparse.csr_array(X)), whole, atol=1e-9)


def test_memory_is_bounded_by_batches():
    sizes = []

    def kernel(X, Y):
        sizes.append(X.shape[0])
        return rbf_kernel(X, Y)

    model = KMeansNystroem(20, kernel=kernel, batch_size=64, random_state=0).fit(sample())
    model.transform(sample())
    assert sizes == [20, 64, 64, 64, 64, 44]  # the landmarks first


def test_equal_rows_need_the_pseudo_inverse():
    X = np.repeat(sample(5), 20, axis=0)
    model = KMeansNystroem(100).fit(X)
    features = model.transform(X)
    assert np.isfinite(features).all()
    assert_allclose(features @ features.T, rbf_kernel(X, gamma=model.gamma_), atol=1e-7)
    constant = KMeansNystroem(3, random_state=0).fit(np.ones((3, 2)))
    assert constant.gamma_ == 1.0
    assert_allclose(np.square(constant.transform(np.ones((1, 2)))).sum(), 1.0)


def test_single_precision_stays():
    X = sample().astype(np.float32)
    model = KMeansNystroem(20, random_state=0).fit(X)
    single = model.transform(X)
    assert single.dtype == np.float32
    assert_allclose(single, model.transform(X.astype(np.float64)), atol=2e-3)


def test_names_and_seeds():
    model = KMeansNystroem(4, random_state=0).fit(sample())
    assert model.get_feature_names_out().tolist() == [f"kmeansnystroem{k}" for k in range(4)]
    assert_array_equal(model.components_, KMeansNystroem(4, random_state=0).fit(sample()).components_)


def test_pipeline_solves_what_a_line_cannot():
    X, y = make_circles(1200, noise=0.1, factor=0.5, random_state=0)
    model = make_pipeline(KMeansNystroem(50, random_state=0), PSAMClassifier(random_state=0)).fit(X[:800], y[:800])
    assert model.score(X[800:], y[800:]) > 0.98
    assert PSAMClassifier(random_state=0).fit(X[:800], y[:800]).score(X[800:], y[800:]) < 0.65


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer > 0; got 0"),
        ({"batch_size": 1.5}, "batch_size must be an integer > 0; got 1.5"),
        ({"max_iter": 0}, "max_iter must be an integer > 0; got 0"),
        ({"kernel": "gauss"}, "kernel must be one of 'linear', .*; got 'gauss'"),
        ({"kernel": "precomputed"}, "kernel must not be 'precomputed', .*; use ExactKernelMap"),
        ({"gamma": "mean"}, "gamma must be a finite number > 0; got 'mean'"),
        ({"gamma": -1.0}, "gamma must be a finite number > 0; got -1.0"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        KMeansNystroem(**parameters).fit(sample())
