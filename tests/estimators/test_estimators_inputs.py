"""What the estimators accept, and how they refuse: what was got and what is needed."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from helpers.linear_models import fresh, main_models, parametrize, sample
from rocmax import AUCClassifier, PartialAUCClassifier

X, Y = sample()
PARTIAL = PartialAUCClassifier(max_fpr=0.3)
both = pytest.mark.parametrize("model", [AUCClassifier(), PARTIAL], ids=["auc", "partial"])
three_models = parametrize(["auc-hinge", "tight", "auto"])


def holed(value):
    other = X.copy()
    other[3, 1] = value
    return other


# Refusals.


@three_models
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"X contains NaN(.|\n)*does not accept missing values"),
        (np.inf, r"X contains infinity or a value too large"),
        (-np.inf, r"X contains infinity or a value too large"),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_that_are_not_finite(model, value, message, kind):
    with pytest.raises(ValueError, match=message):
        fresh(model).fit(kind(holed(value)), Y)
    fitted = fresh(model).fit(X, Y)
    for method in (fitted.predict, fitted.decision_function):
        with pytest.raises(ValueError, match=message):
            method(kind(holed(value)))
    with pytest.raises(ValueError, match=message):
        fitted.score(kind(holed(value)), Y)


@both
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(60), r"y must have two classes; got one class: \[0.0\]"),
        (np.full(60, "ok"), r"y must have two classes; got one class: \['ok'\]"),
        (np.arange(60) % 3, r"Only binary classification is supported. Got 3 classes: \[0, 1, 2\]"),
        (np.array(list("abc") * 20), r"Only binary classification.*Got 3 classes: \['a', 'b', 'c'\]"),
        (np.linspace(0, 1, 60), r"Unknown label type: continuous.*discrete"),
        (np.where(Y == 1, 1.0, np.nan), "y contains NaN"),
        (Y[:-1], r"inconsistent numbers of samples: \[60, 59\]"),
        (np.stack([Y, Y], axis=1), r"1d array.*\(60, 2\)"),
        (None, "requires y to be passed, but the target y is None"),
        # As every classifier of scikit-learn does.
        (Y.astype(object), "Unknown label type: unknown.*expects discrete classes"),
    ],
)
def test_bad_labels(model, y, message):
    with pytest.raises(ValueError, match=message):
        fresh(model).fit(X, y)


@both
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.where(np.arange(60) == 5, -1.0, 1.0), "Negative values.*sample_weight"),
        # Newer versions of scikit-learn refuse them first.
        (np.zeros(60), "must have at least one value > 0; got 60 zeros|must contain at least one non-zero number"),
        (np.where(Y == 1, 1.0, 0.0), r"two classes; got one class: \[1\].*zero weight"),
        (np.where(Y == 0, 1.0, 0.0), r"two classes; got one class: \[0\].*zero weight"),
        (np.where(np.arange(60) == 5, np.nan, 1.0), "sample_weight contains NaN"),
        (np.where(np.arange(60) == 5, np.inf, 1.0), "sample_weight contains infinity"),
        (np.ones(59), r"sample_weight.shape == \(59,\), expected \(60,\)"),
        (np.ones((60, 1)), "weights must be 1D|[Ss]ample weights must be 1D"),
    ],
)
def test_bad_weights(model, weight, message):
    with pytest.raises(ValueError, match=message):
        fresh(model).fit(X, Y, weight)


@pytest.mark.parametrize("loss", ["auto", "tight"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.3, 0.3),
        (0.5, 0.2),
        (-0.1, 0.5),
        (0.0, 1.1),
        (0.0, 0.0),
        (1.0, 1.0),
        (0.0, -0.1),
        (np.nan, 0.5),
        (0.0, np.nan),
        (0, 10),
        ("0", 0.1),
        (0.0, "0.1"),
        (None, 0.1),
        (0.0, None),
    ],
)
def test_bad_windows(loss, low, high):
    with pytest.raises(ValueError, match=rf"0 <= min_fpr < max_fpr <= 1.*got min_fpr={low!r}, max_fpr={high!r}"):
        PartialAUCClassifier(low, high, loss=loss).fit(X, Y)


@three_models
@pytest.mark.parametrize("name", ["C", "tol"])
@pytest.mark.parametrize("value", [0, 0.0, -1, -0.5, np.nan, np.inf, -np.inf, "1", "auto", None, True, [1.0]])
def test_bad_numbers(model, name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name} must be a finite number > 0; got {value!r}")):
        fresh(model, **{name: value}).fit(X, Y)


@three_models
@pytest.mark.parametrize("value", [0, -1, 10.0, 0.5, np.nan, np.inf, "10", None, True])
def test_bad_iteration_limits(model, value):
    with pytest.raises(ValueError, match=re.escape(f"max_iter must be an integer > 0; got {value!r}")):
        fresh(model, max_iter=value).fit(X, Y)


@pytest.mark.parametrize("value", ["tight", "Hinge", "", None, 1, ["hinge"]])
def test_unknown_loss_of_the_auc(value):
    with pytest.raises(ValueError, match=re.escape(f"loss must be one of 'hinge', 'squared_hinge'; got {value!r}")):
        AUCClassifier(value).fit(X, Y)


@pytest.mark.parametrize("value", ["squared_hinge", "AUTO", "", None, 1, ["tight"]])
def test_unknown_loss_of_the_partial_auc(value):
    words = "'auto', 'tight', 'structural', 'hinge'"
    with pytest.raises(ValueError, match=re.escape(f"loss must be one of {words}; got {value!r}")):
        PartialAUCClassifier(loss=value).fit(X, Y)


@both
@pytest.mark.parametrize(("labels", "value"), [((0, 1), 2), ((0, 1), "1"), ((0, 1), -1), (("no", "yes"), "Yes")])
def test_unknown_positive_label(model, labels, value):
    with pytest.raises(
        ValueError, match=re.escape(f"pos_label must be one of the classes {list(labels)}; got {value!r}")
    ):
        fresh(model, pos_label=value).fit(X, np.array(labels)[Y])


@three_models
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_wrong_number_of_features(model, kind):
    fitted = fresh(model).fit(X, Y)
    for method in (fitted.predict, fitted.decision_function, lambda rows: fitted.score(rows, Y)):
        with pytest.raises(ValueError, match=r"X has 2 features, but .*Classifier is expecting 3 features"):
            method(kind(X[:, :2]))


@three_models
def test_wrong_number_of_features_for_a_warm_start(model):
    fitted = fresh(model, warm_start=True).fit(X, Y)
    with pytest.raises(
        ValueError, match="with warm_start, X must have the 3 features of the previous fit; got 2 features"
    ):
        fitted.fit(X[:, :2], Y)
    fitted.set_params(warm_start=False).fit(X[:, :2], Y)
    assert fitted.coef_.shape == (1, 2)


@both
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[:, 0], "Expected 2D array, got 1D array"),
        (X[:, :0], r"0 feature\(s\) \(shape=\(60, 0\)\) while a minimum of 1 is required"),
        (X[:0], r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.full((60, 3), "a"), "could not convert string to float: .*'a'"),
        (X + 1j, "Complex data not supported"),
    ],
)
def test_bad_rows(model, rows, message):
    with pytest.raises(ValueError, match=message):
        fresh(model).fit(rows, Y[: len(rows)])


@both
def test_score_needs_both_classes(model):
    fitted = fresh(model).fit(X, Y)
    with pytest.raises(ValueError, match="one class"):
        fitted.score(X[Y == 1], Y[Y == 1])


@both
def test_a_refused_fit_leaves_an_unfitted_estimator(model):
    model = fresh(model, C=-1.0)
    with pytest.raises(ValueError, match="C must be"):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_")]


# What must work.


def check_fitted(model, rows, labels):
    """Everything that holds for any fit."""
    n, d = rows.shape
    assert model.coef_.shape == (1, d)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.objective_)
    assert model.n_iter_ >= 1
    assert np.isfinite(model.decision_function(rows)).all()
    assert model.predict(rows).shape == (n,)
    assert set(model.predict(rows)) <= set(model.classes_)
    assert 0 <= model.score(rows, labels) <= 1 + 1e-12


def check_ranks_well(model, rows, labels, least=0.85):
    """The fit found the informative feature."""
    positive = np.asarray(labels) == model.classes_[1]
    assert roc_auc_score(positive, model.decision_function(rows)) > least
    predicted = model.predict(rows) == model.classes_[1]
    assert predicted[positive].mean() > predicted[~positive].mean() + 0.2
    if hasattr(model, "max_fpr"):
        assert predicted[~positive].mean() <= model.max_fpr


def extra_column(value):
    return np.column_stack([X, np.full(60, value)])


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def with_64_bit_indices(array):
    matrix = sparse.csr_array(array)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


ROWS = {
    "list": X.tolist(),
    "float32": X.astype(np.float32),
    "Fortran order": np.asfortranarray(X),
    "every second row": np.repeat(X, 2, axis=0)[::2],
    "big-endian": X.astype(">f8"),
    "read-only": read_only(X),
    "integers": np.round(4 * X).astype(int),
    "booleans": X > 0.8,
    "objects": X.astype(object),
    "CSR matrix": sparse.csr_matrix(X),
    "CSR array": sparse.csr_array(X),
    "CSR float32": sparse.csr_array(X.astype(np.float32)),
    "CSR with 64-bit indices": with_64_bit_indices(X),
    "CSC": sparse.csc_array(X),
    "pandas": pd.DataFrame(X, columns=["a", "b", "c"]),
    "polars": pl.DataFrame(X, schema=["a", "b", "c"]),
    "one feature": X[:, :1],
    "tied scores": np.round(X[:, :1]),
    "constant column": extra_column(5.0),
    "constant column that rounds": extra_column(0.1),
    "duplicate column": np.column_stack([X, X[:, 0]]),
    "far from zero": X + 1e6,
    "indicators": (np.column_stack([t < X for t in (-1, 0, 0.5, 1, 1.5, 2)])).astype(float),
}


@main_models
@pytest.mark.parametrize("rows", [pytest.param(rows, id=name) for name, rows in ROWS.items()])
def test_kinds_of_rows(model, rows):
    model = fresh(model).fit(rows, Y)
    rows = np.array(rows) if isinstance(rows, list) else rows
    check_fitted(model, rows, Y)
    # The optimum of the tight loss on the booleans uses two of the three columns, and has an AUC of 0.74.
    check_ranks_well(model, rows, Y, least=0.7)


def categories(labels):
    return pd.Series(pd.Categorical(labels))


LABELS = {
    "strings": np.array(["no", "yes"])[Y],
    "booleans": Y == 1,
    "minus and plus one": 2 * Y - 1,
    "floats": Y.astype(float),
    "objects": np.array(["no", "yes"], dtype=object)[Y],
    "large integers": np.array([7, 2**40])[Y],
    "unsigned": Y.astype(np.uint8),
    "list": Y.tolist(),
    "list of strings": np.array(["no", "yes"])[Y].tolist(),
    "pandas": pd.Series(Y, index=np.arange(60)[::-1]),
    "pandas strings": pd.Series(np.array(["no", "yes"])[Y]),
    "categories": categories(np.array(["no", "yes"])[Y]),
    "polars": pl.Series(Y),
    "read-only": read_only(Y),
}


@three_models
@pytest.mark.parametrize("labels", [pytest.param(labels, id=name) for name, labels in LABELS.items()])
def test_kinds_of_labels(model, labels):
    plain = np.asarray(labels)
    fitted = fresh(model).fit(X, labels)
    np.testing.assert_array_equal(fitted.classes_, np.unique(plain))
    check_fitted(fitted, X, labels)
    check_ranks_well(fitted, X, plain)
    expected = fresh(model).fit(X, Y)
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    np.testing.assert_array_equal(fitted.predict(X) == fitted.classes_[1], expected.predict(X) == 1)
    assert fitted.score(X, labels) == expected.score(X, Y)


def test_a_column_of_labels_is_flattened_with_scikit_learn_s_warning():
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        model = AUCClassifier().fit(X, Y[:, None])
    np.testing.assert_array_equal(model.coef_, AUCClassifier().fit(X, Y).coef_)


@three_models
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_features(model, frame):
    data = dict(zip(["age", "income", "children"], X.T, strict=True))
    model = fresh(model).fit(frame(data), Y)
    assert model.feature_names_in_.tolist() == ["age", "income", "children"]
    np.testing.assert_allclose(model.coef_, fresh(model).fit(X, Y).coef_, atol=0.01)
    with pytest.raises(ValueError, match=r"feature names(.|\n)*same order"):
        model.predict(frame({name: data[name] for name in ["income", "age", "children"]}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


def test_weights_of_any_kind():
    weight = np.arange(60) % 3 + 1
    expected = fresh(PARTIAL).fit(X, Y, weight.astype(float)).coef_
    for given in (weight, weight.tolist(), pd.Series(weight), pl.Series(weight), weight.astype(np.float32)):
        np.testing.assert_allclose(fresh(PARTIAL).fit(X, Y, given).coef_, expected, rtol=1e-9)
    np.testing.assert_allclose(fresh(PARTIAL).fit(X, Y, 1.0).coef_, fresh(PARTIAL).fit(X, Y).coef_, rtol=1e-9)


def fit_or_collapse(model, rows, labels):
    """Fit, with no warning but a ConvergenceWarning; return those."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, labels)
    assert [w for w in caught if w.category is not ConvergenceWarning] == []
    return [str(w.message) for w in caught]


@main_models
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e8 + 0.1])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_constant_matrix_is_never_ranked_silently(model, value, kind):
    rows, labels = kind(np.full((20, 3), value)), np.arange(20) % 2
    model = fresh(model)
    messages = fit_or_collapse(model, rows, labels)
    check_fitted(model, rows, labels)
    assert len(messages) == 1
    assert np.unique(model.predict(rows)).size == 1


@main_models
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_more_features_than_rows(model, kind):
    rng = np.random.default_rng(0)
    rows = kind(np.where(rng.random((14, 40)) < 0.5, rng.normal(size=(14, 40)), 0.0))
    labels = np.arange(14) % 2
    model = fresh(model, C=10.0).fit(rows, labels)
    check_fitted(model, rows, labels)
    assert model.score(rows, labels) > 0.95


@main_models
def test_duplicate_rows(model):
    rows, labels = np.repeat(X, 3, axis=0), np.repeat(Y, 3)
    model = fresh(model).fit(rows, labels)
    check_fitted(model, rows, labels)
    check_ranks_well(model, rows, labels)


@main_models
def test_rows_that_occur_in_both_classes(model):
    rows, labels = np.concatenate([X, X[:10]]), np.concatenate([Y, 1 - Y[:10]])
    model = fresh(model, C=10.0)
    fit_or_collapse(model, rows, labels)
    check_fitted(model, rows, labels)


@main_models
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("d", [1, 3])
def test_one_row_of_each_class(model, order, d):
    rows = np.zeros((2, d))
    rows[1] = 2.0
    rows, labels = rows[::order], np.array([0, 1])[::order]
    model = fresh(model).fit(rows, labels)
    check_fitted(model, rows, labels)
    assert model.score(rows, labels) == pytest.approx(1.0, abs=1e-12)
    assert (model.coef_ > 0).all()
    np.testing.assert_array_equal(model.predict(rows), labels)


@main_models
def test_two_equal_rows_of_different_class(model):
    rows, labels = np.ones((2, 2)), np.array([0, 1])
    model = fresh(model)
    assert len(fit_or_collapse(model, rows, labels)) == 1
    check_fitted(model, rows, labels)


@main_models
@pytest.mark.parametrize("label", [0, 1])
def test_a_single_row_of_a_class(model, label):
    labels = np.full(60, 1 - label)
    labels[7] = label
    rows = X.copy()
    rows[7, 0] = 6.0 if label else -6.0
    model = fresh(model, C=10.0).fit(rows, labels)
    check_fitted(model, rows, labels)
    assert model.score(rows, labels) == pytest.approx(1.0, abs=1e-12)


@main_models
def test_perfect_separation(model):
    rows = np.column_stack([Y, X[:, 1]]).astype(float)
    model = fresh(model, C=100.0).fit(rows, Y)
    check_fitted(model, rows, Y)
    assert model.score(rows, Y) == pytest.approx(1.0, abs=1e-12)
    assert (model.predict(rows)[Y == 1] == 1).all()


@main_models
@pytest.mark.parametrize("scale", [1e8, [1e8, 1.0, 1e-8], [1.0, 1e8, 1e8]], ids=["all", "mixed", "uninformative"])
def test_huge_features(model, scale):
    # With large features C = 1 is a nearly unpenalized problem: it may stay unconverged, and must say so.
    rows = X * scale
    model = fresh(model)
    messages = fit_or_collapse(model, rows, Y)
    assert len(messages) <= 1
    check_fitted(model, rows, Y)
    if scale == 1e8:
        check_ranks_well(model, rows, Y)


@main_models
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiny_features(model, dtype):
    # With tiny features zero weights are within the tolerance of the optimum at C = 1: rank well, or say so.
    rows = (1e-8 * X).astype(dtype)
    model = fresh(model)
    messages = fit_or_collapse(model, rows, Y)
    assert len(messages) <= 1
    check_fitted(model, rows, Y)
    if not messages:
        check_ranks_well(model, rows, Y)


@main_models
@pytest.mark.parametrize("C", [1e-30, 1e-9, 1e9, 1e30])
def test_extreme_strengths(model, C):
    model = fresh(model, C=C)
    messages = fit_or_collapse(model, X, Y)
    assert len(messages) <= 1
    check_fitted(model, X, Y)
    if not messages:
        check_ranks_well(model, X, Y)


@pytest.mark.parametrize("loss", ["auto", "tight", "structural", "hinge"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 1e-3), (0.02, 0.021), (0.5, 1.0), (0.999, 1.0), (0, 1)])
def test_extreme_windows(loss, bounds):
    model = PartialAUCClassifier(*bounds, loss=loss, C=10.0)
    fit_or_collapse(model, X, Y)
    check_fitted(model, X, Y)
    if loss == "auto":
        assert roc_auc_score(Y, model.decision_function(X)) > 0.8


def test_scikit_learn_s_tags():
    for model in (AUCClassifier(), PARTIAL):
        tags = model.__sklearn_tags__()
        assert tags.input_tags.sparse
        assert not tags.classifier_tags.multi_class
        assert not tags.input_tags.allow_nan
