"""Values and weights whose squares leave floating point: an error that says which, or more precision."""

import numpy as np
import pytest
from scipy import sparse

from rocmax import AUCClassifier, PartialAUCClassifierCV
from rocmax.papers import CBRClassifier, SOLAMClassifier, TwoNormSVC


def blobs():
    rng = np.random.default_rng(0)
    y = (np.arange(40) % 2).astype(int)
    X = rng.standard_normal((40, 3))
    X[:, 0] += 2 * y
    return X, y


def test_rows_that_made_the_quadratic_program_loop():
    with pytest.raises(ValueError, match=r"must be at most 1e\+100.*got 4e\+155 in column 0"):
        AUCClassifier().fit([[1e155], [2e155], [3e155], [4e155]], [0, 1, 0, 1])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_large_column_is_named(form):
    X, y = blobs()
    X[:, 1] *= 1e120
    with pytest.raises(ValueError, match=r"values in X must be .* in column 1\. .* standardize"):
        AUCClassifier().fit(form(X), y)


def test_a_large_column_of_a_table_is_named():
    pandas = pytest.importorskip("pandas")
    X, y = blobs()
    table = pandas.DataFrame(X * [1.0, 1.0, -1e150], columns=["age", "size", "income"])
    with pytest.raises(ValueError, match=r"values in X must be .* in column 'income'"):
        AUCClassifier().fit(table, y)


@pytest.mark.parametrize("model", [PartialAUCClassifierCV(cv=2), CBRClassifier(), TwoNormSVC()])
def test_rows_times_1e160(model):
    X, y = blobs()
    with pytest.raises(ValueError, match="squares overflow"):
        model.fit(X * 1e160, y)


def test_rows_that_are_too_small():
    X, y = blobs()
    with pytest.raises(ValueError, match=r"largest absolute value in X must be at least 1e-100.* underflow; got"):
        AUCClassifier().fit(X * 1e-160, y)


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_weights_out_of_range(weight):
    X, y = blobs()
    with pytest.raises(ValueError, match="sample_weight must be from 1e-100 to 1e"):
        PartialAUCClassifierCV(cv=2).fit(X, y, sample_weight=np.full(40, weight))


def test_weights_of_zero_are_no_small_weights():
    X, y = blobs()
    model = AUCClassifier().fit(X, y, sample_weight=np.where(np.arange(40) < 20, 0.0, 1.0))
    np.testing.assert_allclose(model.coef_, AUCClassifier().fit(X[20:], y[20:]).coef_, rtol=1e-6)


def test_steps_that_leave_floating_point_say_so():
    X, y = blobs()
    with pytest.raises(ValueError, match="SOLAMClassifier: the weights must be finite"):
        SOLAMClassifier(random_state=0).fit(X * 1e-99, y)


@pytest.mark.parametrize("scale", [1e-37, 1e37])
def test_extreme_single_precision_is_widened(scale):
    X, y = blobs()
    single = (X * scale).astype(np.float32)
    model = AUCClassifier(C=1.0 / scale**2).fit(single, y)
    assert model.score(single, y) == pytest.approx(AUCClassifier().fit(X, y).score(X, y), abs=0.01)
