"""Operators: every way to hold the data gives NumPy's products, without copies, and in fewer features where it pays."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from helpers.solver_cases import CONVEX, solve
from rocmax.losses import PairwiseHinge, PartialAUCTight
from rocmax.operators import (
    CountingOperator,
    MatrixOperator,
    StandardizedOperator,
    as_operator,
    product_rounding,
    row_space,
)
from rocmax.penalties import SquaredL2
from rocmax.solvers import SmoothedNewton

FORMS = {
    "dense": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
every_dtype = pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-13), (np.float32, 3e-6)])


def matrix(seed=0, n=60, d=7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[rng.random((n, d)) < 0.5] = 0.0
    return X


def assert_close(found, expected, rtol):
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * (np.abs(expected).max() + 1))


# Products


@every_form
@every_dtype
def test_products_are_those_of_numpy(form, dtype, rtol):
    X = matrix().astype(dtype)
    operator = as_operator(form(X))
    rng = np.random.default_rng(1)
    w, c = rng.standard_normal(7), rng.standard_normal(60)
    assert operator.shape == (60, 7)
    assert_close(operator.matvec(w), X.astype(float) @ w, rtol)
    assert_close(operator.rmatvec(c), X.astype(float).T @ c, rtol)


@pytest.mark.parametrize("form", ["dense", "fortran", "strided"])
@pytest.mark.parametrize("constant", [False, True])
def test_single_precision_columns_far_from_zero_keep_the_precision_of_their_differences(form, constant):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    X[:, 2] = 1e6 if constant else X[:, 2] - 1e6
    X[:, 3] += 1e5
    X = X.astype(np.float32)
    exact, operator = X.astype(float), as_operator(FORMS[form](X))
    w, c = rng.standard_normal(4), rng.standard_normal(3000)
    few = np.where(np.arange(3000) < 5, c, 0.0)
    assert_close(operator.matvec(w) - exact[0] @ w, exact @ w - exact[0] @ w, 1e-6)
    for sums_to_zero in (c - c.mean(), few - few.mean() * 600 * (few != 0)):
        assert_close(operator.rmatvec(sums_to_zero), exact.T @ sums_to_zero, 1e-6 * np.abs(sums_to_zero).sum())
    standard = StandardizedOperator(X, exact.mean(axis=0), exact.std(axis=0))
    scaled = (exact - exact.mean(axis=0)) * np.where(exact.std(axis=0) > 0, 1 / np.maximum(exact.std(axis=0), 1e-9), 0)
    assert_close(standard.matvec(w), scaled @ w, 1e-6)


def test_the_rounding_of_a_product_is_covered():
    rng = np.random.default_rng(0)
    for size in (1, 1e8, 1e15):
        c, s = rng.standard_normal(100_000), size * rng.standard_normal(100_000)
        exact = float(np.sum(c.astype(np.longdouble) * s))
        assert abs(float(c @ s) - exact) <= product_rounding(c, s) <= 1e-13 * (1 + np.abs(c).sum()) * np.abs(s).max()


@every_form
@every_dtype
def test_rows_come_as_the_data_are(form, dtype, rtol):
    X = matrix().astype(dtype)
    index = np.array([5, 0, 5, 59])
    rows = as_operator(form(X)).rows(index)
    assert sparse.issparse(rows) == sparse.issparse(form(X))
    assert rows.dtype == dtype
    np.testing.assert_array_equal(rows.toarray() if sparse.issparse(rows) else rows, X[index])


@every_form
def test_rows_can_be_changed_without_changing_the_data(form):
    X = form(matrix())
    before = X.copy()
    rows = as_operator(X).rows(np.arange(60))
    rows *= 2.0
    assert abs(X - before).max() == 0


@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), d=st.integers(1, 10), share=st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_both_products_are_of_one_matrix(seed, n, d, share):
    rng = np.random.default_rng(seed)
    X = matrix(seed, n, d)
    w, c = rng.standard_normal(d), rng.standard_normal(n) * (rng.random(n) < share)
    for form in (np.asarray, sparse.csr_array):
        operator = as_operator(form(X))
        assert c @ operator.matvec(w) == pytest.approx(operator.rmatvec(c) @ w, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_whole_numbers_are_multiplied_or_refused(form, dtype):
    X = (matrix() > 0).astype(dtype)
    w = np.full(7, 0.5)
    try:
        scores = as_operator(form(X)).matvec(w)
    except (TypeError, ValueError):
        return
    assert_close(scores, X.astype(float) @ w, 1e-13)


def test_an_operator_is_an_operator_already():
    operator = MatrixOperator(matrix())
    assert as_operator(operator) is operator


def test_counting():
    X = matrix()
    operator = CountingOperator(as_operator(X))
    assert operator.shape == X.shape
    assert operator.passes == 0
    np.testing.assert_array_equal(operator.matvec(np.ones(7)), X @ np.ones(7))
    assert operator.passes == 1
    np.testing.assert_array_equal(operator.rmatvec(np.ones(60)), X.T @ np.ones(60))
    assert operator.passes == 2
    np.testing.assert_array_equal(operator.rows(np.array([4])), X[[4]])
    assert operator.passes == 2


# Memory


def peak_of_a_solve(X, y, loss, C):
    operator, bound = as_operator(X), loss.bind(y)
    tracemalloc.start()
    try:
        result = SmoothedNewton().solve(operator, bound, SquaredL2(C))
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("loss", [PairwiseHinge(), PartialAUCTight(0.02, 0.2)], ids=repr)
def test_single_precision_is_not_copied_to_double(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 60), dtype=np.float32)
    y = rng.random(100_000) < 0.2
    X[y, :10] += 1.0
    result, peak = peak_of_a_solve(X, y, loss, 1.0)
    assert result.converged
    assert result.w.any()
    # A copy in double precision alone would take twice the size of the data.
    assert peak < X.nbytes


@pytest.mark.parametrize("loss", [PairwiseHinge(), PartialAUCTight(0, 0.2)], ids=repr)
def test_sparse_rows_are_not_made_dense(loss):
    n, d, filled = 2000, 50_000, 20
    rng = np.random.default_rng(0)
    columns = rng.integers(0, d, (n, filled))
    y = rng.random(n) < 0.3
    columns[y, :3] = rng.integers(0, 50, (y.sum(), 3))
    X = sparse.csr_array((np.ones(n * filled), columns.ravel(), np.arange(0, n * filled + 1, filled)), shape=(n, d))
    result, peak = peak_of_a_solve(X, y, loss, 1.0)
    assert result.converged
    assert result.w.any()
    assert peak < n * d * 8 / 8


# Fewer features


def wide(seed=0, n=20, d=70, rank=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) if rank is None else rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    X[rng.random((n, d)) < (0.3 if rank is None else 0.0)] = 0.0
    y = np.arange(n) % 3 == 0
    return X, y


wide_forms = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])


@wide_forms
@pytest.mark.parametrize("rank", [None, 5])
def test_rotation_keeps_scores_norms_and_products(form, rank):
    X, _ = wide(rank=rank)
    operator, lower, lift = row_space(as_operator(form(X)), form(X))
    size = operator.shape[1]
    assert operator.shape[0] == 20
    assert size == (20 if rank is None else rank)
    rng = np.random.default_rng(1)
    for v in rng.standard_normal((5, size)):
        w = lift(v)
        assert w.shape == (70,)
        assert np.linalg.norm(w) == pytest.approx(np.linalg.norm(v), rel=1e-9)
        np.testing.assert_allclose(lower(w), v, atol=1e-9 * np.abs(v).max())
        np.testing.assert_allclose(X @ w, operator.matvec(v), atol=1e-9)
    for w in rng.standard_normal((3, 20)) @ X:
        # A combination of rows is in their span, and comes back.
        np.testing.assert_allclose(lift(lower(w)), w, atol=1e-9 * np.abs(w).max())
    for w in rng.standard_normal((3, 70)):
        # Of any other weights the part that matters stays: the scores do not change, the norm does not grow.
        np.testing.assert_allclose(X @ lift(lower(w)), X @ w, atol=1e-9)
        assert np.linalg.norm(lower(w)) <= np.linalg.norm(w)


@wide_forms
@pytest.mark.parametrize("case", CONVEX, ids=lambda case: case.name)
def test_rotated_problem_has_the_same_optimum(form, case):
    X, y = wide(n=30, d=90)
    C = 0.1
    operator, lower, lift = row_space(as_operator(form(X)), form(X))
    solver, bound = SmoothedNewton(tol=1e-4), case.loss.bind(y)
    direct = solve(solver, case, form(X), y, C)
    rotated = solver.solve(operator, bound, SquaredL2(C))
    assert direct.converged
    assert rotated.converged
    assert abs(direct.objective - rotated.objective) <= max(direct.gap, rotated.gap) + 1e-12 * direct.objective
    assert case.objective(lift(rotated.w), X, y, C) == pytest.approx(rotated.objective, rel=1e-9)
    warm = solver.solve(operator, bound, SquaredL2(C), lower(direct.w))
    assert warm.objective <= direct.objective * (1 + 1e-9)


@wide_forms
def test_tall_data_stay_as_they_are(form):
    X = matrix()
    operator = as_operator(form(X))
    same, lower, lift = row_space(operator, form(X))
    w = np.ones(7)
    assert same is operator
    assert lower(w) is w
    assert lift(w) is w


@wide_forms
def test_data_without_any_value_stay_as_they_are(form):
    X = form(np.zeros((3, 5)))
    operator = as_operator(X)
    assert row_space(operator, X)[0] is operator


def test_repeated_rows_share_a_feature():
    X, _ = wide()
    X = np.vstack([X, X[:7]])
    operator, _, lift = row_space(as_operator(X), X)
    assert operator.shape == (27, 20)
    v = np.random.default_rng(2).standard_normal(20)
    np.testing.assert_allclose(X @ lift(v), operator.matvec(v), atol=1e-9)


def test_rotation_of_centred_data_in_single_precision():
    # Centered rows have one dimension less than their number.
    for seed in range(10):
        X, _ = wide(seed, n=40, d=120)
        X = (X - X.mean(0)).astype(np.float32)
        operator, lower, lift = row_space(as_operator(X), X)
        v = np.random.default_rng(1).standard_normal(operator.shape[1])
        assert np.linalg.norm(lift(v)) == pytest.approx(np.linalg.norm(v), rel=1e-3)
        np.testing.assert_allclose(lower(lift(v)), v, atol=1e-3)
