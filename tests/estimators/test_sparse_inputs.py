"""Sparse rows mean what ``toarray`` says, however they are stored, and are never changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import rocmax
from helpers.every_estimator import MODELS, SPARSE, STREAMS, output, rows

X, Y = rows()


def messy(dense, seed=0, kind=sparse.csr_matrix, index=np.int32):
    """Return the same matrix with entries in random order, some of them in two parts and some zeros stored."""
    rng = np.random.default_rng(seed)
    data, indices, indptr = [], [], [0]
    for row in dense:
        columns = np.flatnonzero((row != 0) | (rng.random(row.size) < 0.1))
        part = np.where(rng.random(columns.size) < 0.5, 0.5 * row[columns], 0.0)
        columns, values = np.concatenate([columns, columns]), np.concatenate([row[columns] - part, part])
        order = rng.permutation(columns.size)
        data += values[order].tolist()
        indices += columns[order].tolist()
        indptr.append(len(indices))
    made = kind(dense.shape, dtype=dense.dtype)
    made.data, made.indices = np.array(data, dtype=dense.dtype), np.array(indices, dtype=index)
    made.indptr = np.array(indptr, dtype=index)
    return made


def parts(X):
    return X.data.copy(), X.indices.copy(), X.indptr.copy()


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_order_and_duplicates_do_not_change_the_model(name, kind):
    plain, shuffled = kind(X), messy(X, kind=kind)
    assert not shuffled.has_canonical_format
    before = parts(shuffled)
    one, two = clone(MODELS[name]).fit(plain, Y), clone(MODELS[name]).fit(shuffled, Y)
    # Halves are exact, so that the two matrices are equal to the last digit.
    np.testing.assert_allclose(output(two, plain), output(one, plain), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(output(two, shuffled), output(one, plain), rtol=1e-9, atol=1e-12)
    for old, new in zip(before, parts(shuffled), strict=True):
        np.testing.assert_array_equal(new, old)


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_format_is_taken(name):
    expected = output(clone(MODELS[name]).fit(sparse.csr_array(X), Y), sparse.csr_array(X))
    model = clone(MODELS[name]).fit(sparse.csc_array(X), Y)
    for make in (sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix, sparse.dok_array, sparse.bsr_matrix):
        np.testing.assert_allclose(output(model, make(X)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_wide_indices_give_the_same_model(name):
    wide = messy(X, kind=sparse.csr_array, index=np.int64)
    assert wide.indices.dtype == np.int64
    expected = clone(MODELS[name]).fit(sparse.csr_array(X), Y)
    model = clone(MODELS[name]).fit(wide, Y)
    np.testing.assert_allclose(output(model, wide), output(expected, sparse.csr_array(X)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blocks_of_a_stream_may_be_stored_in_any_order(name):
    one, two = clone(MODELS[name]), clone(MODELS[name])
    for start in range(0, 150, 50):
        part = slice(start, start + 50)
        one.partial_fit(sparse.csr_array(X[part]), Y[part], classes=["fraud", "ok"])
        two.partial_fit(messy(X[part]), Y[part], classes=["fraud", "ok"])
    np.testing.assert_allclose(two.coef_, one.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(two.intercept_, one.intercept_, rtol=1e-9, atol=1e-12)


SCORER = rocmax.AUCClassifier().fit(
    np.random.default_rng(0).standard_normal((40, 4)) + np.arange(40)[:, None] % 2, np.arange(40) % 2
)
entries = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-50, 50)), min_size=0, max_size=30)


@given(entries, st.sampled_from(["csr", "csc", "coo", "bsr"]), st.sampled_from([np.float64, np.float32, np.int64]))
@settings(max_examples=200)
def test_any_stored_entries_mean_their_sum(entries, form, dtype):
    triples = np.array(entries, dtype=np.int64).reshape(-1, 3)
    expected = np.zeros((5, 4))
    np.add.at(expected, (triples[:, 0], triples[:, 1]), triples[:, 2])
    given_rows = sparse.coo_array((triples[:, 2].astype(dtype), (triples[:, 0], triples[:, 1])), shape=(5, 4))
    if form == "csr":
        order = np.argsort(triples[:, 0], kind="stable")
        indptr = np.searchsorted(triples[order, 0], np.arange(6))
        given_rows = sparse.csr_array((triples[order, 2].astype(dtype), triples[order, 1], indptr), shape=(5, 4))
    elif form != "coo":
        given_rows = given_rows.asformat(form)
    before = given_rows.copy()
    np.testing.assert_allclose(
        SCORER.decision_function(given_rows), SCORER.decision_function(expected), rtol=1e-5, atol=1e-4
    )
    np.testing.assert_array_equal(given_rows.data, before.data)


def test_small_integers_do_not_overflow_when_they_are_summed():
    twice = sparse.csr_array((np.array([100, 100], dtype=np.int8), [0, 0], [0, 2]), shape=(1, 4))
    np.testing.assert_allclose(SCORER.decision_function(twice), SCORER.decision_function([[200.0, 0, 0, 0]]))


def test_an_old_note_on_the_format_is_not_believed():
    shuffled = messy(X)
    shuffled.has_canonical_format = True
    model = rocmax.AUCClassifier()
    expected = clone(model).fit(sparse.csr_array(X), Y).coef_
    np.testing.assert_allclose(model.fit(shuffled, Y).coef_, expected, rtol=1e-9, atol=1e-12)


def test_an_infinite_sum_is_rejected():
    twice = sparse.csr_array((np.full(5, 1.5e308), [0, 0, 0, 1, 1], [0, 2, 3, 4, 5]), shape=(4, 2))
    with pytest.raises(ValueError, match="infinity"):
        rocmax.AUCClassifier().fit(twice, [0, 1, 0, 1])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("name", ["AUCClassifier", "PSAMClassifier"])
def test_an_index_outside_the_matrix_is_rejected(name, kind):
    broken = kind(X)
    broken.indices = broken.indices.copy()
    broken.indices[3] = 10_000_000
    with pytest.raises(ValueError, match=r"with invalid indices: .*must be <"):
        clone(MODELS[name]).fit(broken, Y)
    model = clone(MODELS[name]).fit(X, Y)
    with pytest.raises(ValueError, match=r"with invalid indices: .*must be <"):
        model.predict(broken)
