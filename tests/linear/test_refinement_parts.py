"""Parts of the default fit: standardization without a copy, samples of rows, fits to part of the rows first."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from rocmax import PartialAUCClassifier
from rocmax.linear.refine import LogisticProblem, fit_logistic, top_rows
from rocmax.metrics import partial_auc_score
from rocmax.operators import standardized


def rows(n=300, d=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 3.0 * np.arange(d)).astype(dtype)
    X[:, 1] = 7.3  # constant
    return X, rng


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_are_standardized_as_by_scikit_learn(dtype, weighted):
    X, rng = rows(dtype=np.float64)
    X = np.round(10 * X).astype(dtype) if dtype is np.int64 else X.astype(dtype)
    weight = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    operator = standardized(X, weight)
    expected = StandardScaler().fit(X.astype(float), sample_weight=weight).transform(X.astype(float))
    w, c = rng.standard_normal(X.shape[1]), rng.standard_normal(len(X))
    tolerance = {"rtol": 1e-4, "atol": 1e-3} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(operator.matvec(w), expected @ w, **tolerance)
    np.testing.assert_allclose(operator.rmatvec(c), expected.T @ c, **tolerance)
    np.testing.assert_allclose(operator.rows(np.array([3, 1])), expected[[3, 1]], **tolerance)


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_columns_are_scaled_but_not_centered(weighted):
    X, rng = rows()
    X = np.where(np.abs(X) > 3, X, 0.0)
    weight = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    operator = standardized(sparse.csr_array(X), weight)
    expected = StandardScaler(with_mean=False).fit(sparse.csr_array(X), sample_weight=weight).transform(X)
    expected[:, np.ptp(X, axis=0) == 0] = 0.0  # a column that does not vary is left out
    w = rng.standard_normal(X.shape[1])
    np.testing.assert_allclose(operator.matvec(w), expected @ w, rtol=1e-9)
    np.testing.assert_allclose(operator.rows(slice(None)).toarray(), expected, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("value", [1.0, 0.1, 1e6 / 3])
def test_columns_that_do_not_vary_are_left_out(form, value):
    operator = standardized(form(np.full((7, 2), value)), np.arange(1.0, 8.0))
    assert not operator.matvec(np.array([1.0, -3.0])).any()
    assert not operator.rmatvec(np.arange(7.0)).any()
    assert not np.any(np.asarray(abs(operator.rows(slice(None))).sum()))
    assert (operator.scale == 1.0).all()


def test_a_fit_that_begins_elsewhere_ends_at_the_same_solution():
    X, rng = rows(n=2000)
    y = X[:, 0] + rng.standard_normal(2000) > np.quantile(X[:, 0], 0.8)
    operator = standardized(X, None)
    near = fit_logistic(LogisticProblem(operator, y, None, 0.01), 1e-6, 100)
    found = fit_logistic(LogisticProblem(operator, y, None, 1.0), 1e-8, 100, near)
    expected = LogisticRegression(tol=1e-10, max_iter=1000).fit(operator.rows(slice(None)), y)
    np.testing.assert_allclose(found[:-1], expected.coef_[0], rtol=1e-4, atol=1e-5)


def test_separable_rows_have_a_solution():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 100 == 0
    X = rng.standard_normal((2000, 4)) + 60.0 * y[:, None]
    operator = standardized(X, None)
    problem = LogisticProblem(operator, y, None, 1e4)
    found = fit_logistic(problem, 1e-8, 500)
    assert np.abs(problem.value_and_gradient(found)[1]).max() <= 1e-7
    assert operator.matvec(found[:-1])[y].min() > operator.matvec(found[:-1])[~y].max()


def test_a_tolerance_below_the_rounding_of_single_precision_ends(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)).astype(np.float32)
    y = X[:, 0] + rng.standard_normal(500) > 1
    operator, calls = standardized(X, None), []
    problem = LogisticProblem(operator, y, None, 1.0)
    evaluate = problem.value_and_gradient
    monkeypatch.setattr(problem, "value_and_gradient", lambda v: calls.append(v) or evaluate(v))
    found = fit_logistic(problem, 1e-14, 10_000)
    assert len(calls) < 500
    assert np.abs(evaluate(found)[1]).max() < 1e-5


@pytest.mark.parametrize("window", [(0.0, 0.05, 0.0), (0.02, 0.1, 0.0), (0.0, 0.3, 0.5), (0.0, 1.0, 0.0)])
@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_fewer_rows_have_the_same_partial_auc(window, decimals):
    rng = np.random.default_rng(1)
    positive = np.arange(333) % 7 == 0
    scores = np.round(rng.standard_normal(333) + positive, decimals)
    low, high, floor = window
    labels, fewer, weight = top_rows(scores, positive, None, high)
    assert high > 0.4 or fewer.size < scores.size
    options = {"min_fpr": low, "max_fpr": high, "min_tpr": floor}
    expected = partial_auc_score(positive, scores, **options)
    assert partial_auc_score(labels, fewer, sample_weight=weight, **options) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_are_fitted_as_well_as_by_logistic_regression(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 4)).astype(dtype)
    y = (rng.random(40_000) < 0.1).astype(int)
    easy = rng.random(40_000) < 0.5
    X[(y == 1) & easy, 0] += 3.0
    X[(y == 1) & ~easy, 1] += 1.5
    model = PartialAUCClassifier(max_fpr=0.05).fit(X, y)
    logistic = LogisticRegression().fit(X, y)
    assert model.score(X, y) >= partial_auc_score(y, logistic.decision_function(X), max_fpr=0.05)
    # Other units, and far from zero: the rows are not copied, but standardized all the same.
    other = PartialAUCClassifier(max_fpr=0.05).fit((X + 1) * np.array([100, 1, 0.01, 1], dtype=dtype), y)
    assert other.score((X + 1) * np.array([100, 1, 0.01, 1], dtype=dtype), y) == pytest.approx(
        model.score(X, y), abs=2e-3
    )


def test_memory_beyond_single_precision_rows():
    rng = np.random.default_rng(0)
    y = rng.random(300_000) < 0.05
    X = rng.standard_normal((y.size, 20), dtype=np.float32)
    X[y, :5] += 0.5
    model = PartialAUCClassifier(max_fpr=0.05).fit(X[:1000], y[:1000])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 60 * y.size
