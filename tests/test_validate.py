"""The checks that estimators and measures share: parameters, rows, labels and weights."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from rocmax import AUCClassifier, PartialAUCClassifier
from rocmax.metrics import partial_auc_score

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 1.0], [3.0, 7.0], [8.0, 2.0], [1.0, 0.0]])
Y = np.array([0, 1, 0, 1, 1, 0])


def fit(X=X, y=Y, sample_weight=None, **params):
    return AUCClassifier(**{"tol": 1e-9} | params).fit(X, y, sample_weight=sample_weight)


# Numbers and words


@given(st.floats(max_value=0.0) | st.integers(max_value=0) | st.sampled_from([np.nan, np.inf, -np.inf]))
@settings(max_examples=100, deadline=None)
def test_a_number_must_be_finite_and_above_the_limit(value):
    with pytest.raises(ValueError, match=re.escape(f"C must be a finite number > 0; got {value!r}")):
        fit(C=value)


@pytest.mark.parametrize("value", [1, 2.5, np.float64(1), np.float32(0.5), np.int32(3), np.uint8(1)])
def test_numbers_of_numpy_are_numbers(value):
    # The negative of an unsigned integer would be a large one.
    np.testing.assert_array_equal(fit(C=value).coef_, fit(C=float(value)).coef_)


@pytest.mark.parametrize("value", ["1", None, True, np.True_, [1.0], (1,), np.ones(1), 1j, object])
def test_other_things_are_not_numbers(value):
    with pytest.raises(ValueError, match=re.escape(f"C must be a finite number > 0; got {value!r}")):
        fit(C=value)


@pytest.mark.parametrize("value", [500, np.int64(700), np.uint8(200)])
def test_integers(value):
    np.testing.assert_array_equal(fit(max_iter=value).coef_, fit().coef_)


@pytest.mark.parametrize("value", [0, -3, 1.0, np.float64(5), True, "1", None, np.inf, np.nan])
def test_other_things_are_not_integers(value):
    with pytest.raises(ValueError, match=re.escape(f"max_iter must be an integer > 0; got {value!r}")):
        fit(max_iter=value)


@pytest.mark.parametrize("value", ["c", "TIGHT", "", None, 0, ["tight"]])
def test_choices_are_listed(value):
    with pytest.raises(ValueError, match=rf"loss must be one of .*'tight'.*; got {re.escape(repr(value))}"):
        PartialAUCClassifier(loss=value).fit(X, Y)


# The window


@given(st.floats(-0.5, 1.5) | st.floats(), st.floats(-0.5, 1.5) | st.floats())
@settings(max_examples=200, deadline=None)
def test_a_window_lies_in_the_unit_interval(low, high):
    if 0 <= low < high <= 1 and high - low > 1e-9:
        assert 0 <= partial_auc_score(Y, X[:, 0], min_fpr=low, max_fpr=high) <= 1
    elif not 0 <= low < high <= 1:
        with pytest.raises(ValueError, match=re.escape(f"got min_fpr={low!r}, max_fpr={high!r}")):
            partial_auc_score(Y, X[:, 0], min_fpr=low, max_fpr=high)


@given(st.integers(2, 300), st.integers(1, 999))
@settings(max_examples=300, deadline=None)
def test_a_window_that_ends_with_a_row_has_no_share_of_the_next_one(n_negatives, thousandths):
    # 100 * 0.07 is more than 7 in floating point.
    count, rest = divmod(n_negatives * thousandths, 1000)
    if rest == 0:
        y = np.append(np.zeros(n_negatives, int), 1)
        scores = np.append(-np.arange(float(n_negatives)), -0.5 - count)
        above = scores.copy()
        above[-1] += 0.9  # the positive row, from below the next negative to above it
        values = [partial_auc_score(y, s, max_fpr=thousandths / 1000) for s in (scores, above)]
        assert values == [0.0, 0.0]


# Rows, labels, weights


def test_plain_data():
    model = fit()
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 2


@pytest.mark.parametrize(("pos_label", "sign"), [(None, 1), ("a", -1), ("b", 1)])
def test_the_positive_class(pos_label, sign):
    model = fit(y=np.array(["a", "b"])[Y], pos_label=pos_label)
    assert model.classes_.tolist() == ["a", "b"]
    # Scores are for classes_[1], whichever class is the positive one.
    np.testing.assert_allclose(model.decision_function(X), fit().decision_function(X), rtol=1e-4, atol=1e-6)
    assert model.score(X, np.array(["a", "b"])[Y]) == fit().score(X, Y)


@pytest.mark.parametrize("pos_label", ["c", 0, np.nan, "", b"a"])
def test_an_unknown_positive_class(pos_label):
    with pytest.raises(
        ValueError, match=re.escape(f"pos_label must be one of the classes ['a', 'b']; got {pos_label!r}")
    ):
        fit(y=np.array(["a", "b"])[Y], pos_label=pos_label)


@pytest.mark.parametrize(
    "y", [[1, 2, 2, 1], [2.0, -1.0], [True, False], np.array([3, 250], np.uint8), ["b", "a"]], ids=str
)
def test_classes_are_those_of_unique(y):
    found = fit(X[: len(y)], y).classes_
    np.testing.assert_array_equal(found, np.unique(y))
    assert found.dtype == np.unique(y).dtype


def test_one_class_or_three():
    with pytest.raises(ValueError, match="y must have two classes; got one class"):
        fit(X[:2], [5, 5])
    with pytest.raises(ValueError, match=r"Only binary classification is supported\. Got 3 classes"):
        fit(X[:3], [0, 2, 1])


@given(st.lists(st.integers(0, 3), min_size=6, max_size=6))
@settings(max_examples=60, deadline=None)
def test_rows_of_weight_zero_are_dropped(weight):
    weight = np.array(weight)
    kept = weight > 0
    if len(set(Y[kept])) == 2:
        expected = fit(X[kept], Y[kept], weight[kept].astype(float)).coef_
        for rows in (X, sparse.csr_array(X)):
            np.testing.assert_allclose(fit(rows, Y, weight).coef_, expected, rtol=1e-9, atol=1e-12)
    else:
        with pytest.raises(ValueError, match=r"got one class|at least one value > 0|at least one non-zero number"):
            fit(sample_weight=weight)


def test_a_third_class_of_weight_zero_does_not_count():
    assert fit(y=[0, 1, 2, 1, 0, 2], sample_weight=[1, 1, 0, 1, 1, 0]).classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"Only binary classification is supported. Got 3 classes: \[0, 1, 2\]"):
        fit(y=[0, 1, 2, 1, 0, 2], sample_weight=[1, 1, 0, 1, 1, 0.5])


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floating_point_rows_are_not_copied(form, dtype):
    rows = form(np.random.default_rng(0).standard_normal((20_000, 50)).astype(dtype))
    model = fit(np.tile(X, (1, 25)))
    tracemalloc.start()
    try:
        model.decision_function(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.7 * 20_000 * 50 * np.dtype(dtype).itemsize


@pytest.mark.parametrize("dtype", [np.int64, np.int8])
def test_other_types_of_numbers_are_numbers(dtype):
    for form in (np.asarray, sparse.csr_array):
        np.testing.assert_allclose(fit(form(X.astype(dtype))).coef_, fit(form(X)).coef_, rtol=1e-4)


def test_other_sparse_formats_become_rows():
    expected = fit(sparse.csr_array(X))
    for kind in (sparse.csc_array, sparse.coo_array, sparse.lil_array):
        np.testing.assert_array_equal(fit(kind(X)).coef_, expected.coef_)
        np.testing.assert_array_equal(expected.decision_function(kind(X)), expected.decision_function(X))


def test_rows_to_be_scored():
    model = AUCClassifier()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.decision_function(X)
    model.fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X[:2]), X[:2] @ model.coef_[0] + model.intercept_)
    with pytest.raises(ValueError, match="X has 1 features, but AUCClassifier is expecting 2 features"):
        model.decision_function(X[:, :1])
