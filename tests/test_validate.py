"""The shared checks of parameters, rows, labels and weights."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from rocmax import AUCClassifier
from rocmax._rounding import window_end
from rocmax._support import check_window
from rocmax._validation import check_choice, check_number, check_rows, check_training_set

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 1, 0])


def check(X=X, y=Y, sample_weight=None, pos_label=None):
    return check_training_set(AUCClassifier(), X, y, sample_weight, pos_label)


# Numbers and words.


@given(st.floats() | st.integers(), st.sampled_from([-1.0, 0.0, 0.5]))
@settings(max_examples=200, deadline=None)
def test_a_number_is_finite_and_above_the_limit(value, above):
    if np.isfinite(float(value)) and value > above:
        check_number("C", value, above=above)
    else:
        with pytest.raises(ValueError, match=re.escape(f"C must be a finite number > {above:g}; got {value!r}")):
            check_number("C", value, above=above)


@pytest.mark.parametrize("value", [1, 2.5, np.float64(1), np.float32(0.5), np.int32(3), np.uint8(1)])
def test_numbers_of_numpy_are_numbers(value):
    check_number("C", value, above=0.0)


@pytest.mark.parametrize("value", ["1", None, True, np.True_, [1.0], (1,), np.ones(1), 1j, object])
def test_other_things_are_not_numbers(value):
    with pytest.raises(ValueError, match=re.escape(f"C must be a finite number > 0; got {value!r}")):
        check_number("C", value, above=0.0)


@pytest.mark.parametrize("value", [1, np.int64(7), np.uint8(1)])
def test_integers(value):
    check_number("max_iter", value, above=0, integer=True)


@pytest.mark.parametrize("value", [0, -3, 1.0, np.float64(5), True, "1", None, np.inf, np.nan])
def test_other_things_are_not_integers(value):
    with pytest.raises(ValueError, match=re.escape(f"max_iter must be an integer > 0; got {value!r}")):
        check_number("max_iter", value, above=0, integer=True)


def test_choices_are_listed():
    check_choice("loss", "b", ("a", "b"))
    for value in ("c", "A", "", None, 0, ["a"]):
        with pytest.raises(ValueError, match=re.escape(f"loss must be one of 'a', 'b'; got {value!r}")):
            check_choice("loss", value, ("a", "b"))


# The window.


@given(st.floats(-0.5, 1.5) | st.floats(), st.floats(-0.5, 1.5) | st.floats())
@settings(max_examples=200, deadline=None)
def test_a_window_lies_in_the_unit_interval(low, high):
    if 0 <= low < high <= 1:
        check_window(low, high, any_width=True)
    else:
        with pytest.raises(ValueError, match=re.escape(f"got min_fpr={low!r}, max_fpr={high!r}")):
            check_window(low, high)


@given(st.integers(1, 10**6), st.integers(0, 1000))
@settings(max_examples=300, deadline=None)
def test_whole_ends_are_whole(total, thousandths):
    end = window_end(float(total), thousandths / 1000)
    assert end == pytest.approx(total * thousandths / 1000, rel=1e-9)
    if total * thousandths % 1000 == 0:
        assert end == total * thousandths // 1000


# Rows, labels, weights.


def test_plain_data_pass_unchanged():
    data = check()
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.positive, Y == 1)
    assert data.weight is None
    assert data.classes.tolist() == [0, 1]
    assert data.positive_index == 1


@pytest.mark.parametrize(("pos_label", "index"), [(None, 1), ("a", 0), ("b", 1)])
def test_the_positive_class(pos_label, index):
    data = check(y=np.array(["a", "b"])[Y], pos_label=pos_label)
    assert data.positive_index == index
    np.testing.assert_array_equal(data.positive, index == Y)
    assert data.positive.dtype == bool


@pytest.mark.parametrize("pos_label", ["c", 0, np.nan, "", b"a"])
def test_an_unknown_positive_class(pos_label):
    with pytest.raises(
        ValueError, match=re.escape(f"pos_label must be one of the classes ['a', 'b']; got {pos_label!r}")
    ):
        check(y=np.array(["a", "b"])[Y], pos_label=pos_label)


@given(st.lists(st.integers(0, 3), min_size=6, max_size=6))
@settings(max_examples=60, deadline=None)
def test_rows_of_weight_zero_are_dropped(weight):
    weight = np.array(weight)
    kept = weight > 0
    if len(set(Y[kept])) == 2:
        for rows in (X, sparse.csr_array(X)):
            data = check(X=rows, sample_weight=weight)
            dense = data.X.toarray() if sparse.issparse(data.X) else data.X
            np.testing.assert_array_equal(dense, X[kept])
            np.testing.assert_array_equal(data.positive, Y[kept] == 1)
            np.testing.assert_array_equal(data.weight, weight[kept])
            assert data.weight.dtype == np.float64
    else:
        with pytest.raises(ValueError, match=r"got one class|at least one value > 0|at least one non-zero number"):
            check(sample_weight=weight)


def test_a_third_class_of_weight_zero_does_not_count():
    data = check(y=[0, 1, 2, 1, 0, 2], sample_weight=[1, 1, 0, 1, 1, 0])
    assert data.classes.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"Only binary classification is supported. Got 3 classes: \[0, 1, 2\]"):
        check(y=[0, 1, 2, 1, 0, 2], sample_weight=[1, 1, 0, 1, 1, 0.5])


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(np.float64, np.float64), (np.float32, np.float32), (np.int64, np.float64), (np.int8, np.float64)],
)
def test_precision_is_kept(dtype, kept):
    assert check(X=X.astype(dtype)).X.dtype == kept
    assert check(X=sparse.csr_array(X.astype(dtype))).X.dtype == kept


def test_floating_point_rows_are_not_copied():
    for rows in (X, np.asfortranarray(X), X.astype(np.float32)):
        assert np.shares_memory(check(X=rows).X, rows)
    rows = sparse.csr_array(X)
    assert np.shares_memory(check(X=rows).X.data, rows.data)


def test_other_sparse_formats_become_rows():
    for kind in (sparse.csc_array, sparse.coo_array, sparse.lil_array):
        assert check(X=kind(X)).X.format == "csr"


def test_rows_to_be_scored():
    model = AUCClassifier()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        check_rows(model, X)
    model.fit(X, Y)
    np.testing.assert_array_equal(check_rows(model, X[:2]), X[:2])
    with pytest.raises(ValueError, match="X has 1 features, but AUCClassifier is expecting 2 features"):
        check_rows(model, X[:, :1])
