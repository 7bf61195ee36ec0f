"""Labels and columns of tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from helpers.tables import column_kinds, make_model, payments
from rocmax.data import DataError
from rocmax.metrics import positive_scores
from rocmax.tables import ParameterError
from rocmax.tables.preprocess import common_levels, preprocessing
from rocmax.tables.read import known_target, make_target
from rocmax.tables.tune import NO_LIMIT, make_classifier


@pytest.mark.parametrize(
    ("values", "named", "positive", "negative"),
    [
        ([0, 1], None, "1", "0"),
        ([-1.0, 1.0], None, "1", "-1"),
        ([False, True], None, "True", "False"),
        (["no", "yes"], None, "yes", "no"),
        (["Yes", "No"], None, "Yes", "No"),
        (["negative", "positive"], None, "positive", "negative"),
        (["fraud", "ok"], "fraud", "fraud", "ok"),
        (["fraud", "ok"], "OK", "ok", "fraud"),
        ([1, 2], "1", "1", "2"),
        ([0.5, 2], "0.5", "0.5", "2"),
        (["a", "b", "c"], "b", "b", "not b"),
    ],
)
def test_which_class_is_positive(values, named, positive, negative):
    y = np.array(values * 5)
    target = make_target(y, named)
    assert (target.positive, target.negative) == (positive, negative)
    assert target.is_positive.sum() == 5
    assert set(target.labels) == {positive, negative}


def test_doubtful_labels():
    with pytest.raises(ParameterError, match=r"'a' \(2\), 'b' \(1\); select the positive one with positive=\.\.\."):
        make_target(np.array(["a", "b", "a"]), None)
    with pytest.raises(ParameterError, match=r"\(12 in all\)"):
        make_target(np.arange(12), None)
    with pytest.raises(DataError, match="one class only"):
        make_target(np.array([1, 1]), None)
    with pytest.raises(DataError, match="no value 'c'"):
        make_target(np.array(["a", "b"]), "c")


def test_labels_for_a_model_that_knows_its_classes():
    assert known_target(np.array([0, 1, 1]), "1", "0").is_positive.tolist() == [False, True, True]
    assert known_target(np.array(["x", "b"]), "b", "not b").labels.tolist() == ["not b", "b"]
    with pytest.raises(DataError, match=r"must be those of the model, .*; got \['2'\]"):
        known_target(np.array([0, 2]), "1", "0")
    with pytest.raises(DataError, match=r"one class only: '0' \(2 rows\)"):
        known_target(np.array([0, 0]), "1", "0")


@pytest.mark.parametrize("name", ["linear", "additive", "auc", "logistic", "svm", "lightgbm"])
def test_scores_speak_for_the_positive_class(name):
    frame = payments(400)
    X, y = frame[["amount", "age", "country", "<script>alert(1)</script>"]], frame["label"].to_numpy()
    for positive in ("fraud", "ok"):
        scores = positive_scores(make_model(name, X, positive, 0.2).fit(X, y), X, pos_label=positive)
        assert np.mean(scores[y == positive]) > np.mean(scores[y != positive])


def test_preprocessing_learns_from_the_training_rows_only():
    frame = payments(400)
    X, y = frame[["amount", "age", "country"]], frame["label"].to_numpy()
    model = make_model("logistic", X[:200], "fraud").fit(X[:200], y[:200])
    numbers = model.named_steps["table"].named_transformers_["numbers"]
    assert numbers.steps[0][1].statistics_ == pytest.approx(X[:200][["amount", "age"]].median())
    filled = X[:200][["amount", "age"]].fillna(X[:200][["amount", "age"]].median())
    assert numbers.steps[1][1].mean_ == pytest.approx(filled.mean())


def test_missing_packages(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"rocmax\[boost\]"):
        make_classifier("lightgbm", NO_LIMIT, "1", 0)


def test_preprocessing_matches_columns_by_name():
    X = pd.DataFrame({"t": ["a", "b", "a"], "n": [1.0, np.nan, 4.0], "u": ["x", None, "y"], "m": [3.0, 1.0, 2.0]})
    table = preprocessing(column_kinds(X), common_levels(X, column_kinds(X))).fit(X)
    expected = scipy.sparse.csr_array(table.transform(X)).toarray()
    found = scipy.sparse.csr_array(table.transform(X[["m", "u", "n", "t"]].assign(other=1.0))).toarray()
    np.testing.assert_array_equal(found, expected)
    assert table.feature_names_in_.tolist() == ["t", "n", "u", "m"]
    assert table.get_feature_names_out()[:2].tolist() == ["numbers__n", "numbers__m"]
