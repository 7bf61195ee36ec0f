"""Work with scikit-learn: reports of any classifier, probabilities and weights through thresholds, column selectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import rocmax
from rocmax.metrics import make_scorer


def data(n_rows=400):
    X, y = make_classification(n_rows, 6, weights=[0.7], random_state=0)
    return pd.DataFrame(X, columns=list("abcdef")), np.where(y == 1, "fraud", "fine")


def classifiers():
    from lightgbm import LGBMClassifier

    return {
        "logistic": LogisticRegression(),
        "pipeline": make_pipeline(StandardScaler(), LinearSVC()),
        "lightgbm": LGBMClassifier(n_estimators=5, verbose=-1),
        "calibrated": CalibratedClassifierCV(rocmax.AUCClassifier(pos_label="fraud"), cv=2),
        "threshold": rocmax.FPRThresholdClassifier(rocmax.AUCClassifier(), 0.2, cv=2, pos_label="fraud"),
    }


@pytest.mark.parametrize("name", ["logistic", "pipeline", "lightgbm", "calibrated", "threshold"])
def test_a_report_in_one_call(tmp_path, name):
    X, y = data()
    model = classifiers()[name].fit(X[:200], y[:200])
    page = rocmax.report(model, X[200:], y[200:], tmp_path / "a.html", pos_label="fraud", max_fpr=0.2)
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    assert page.startswith("<!doctype html>")
    assert "fraud" in page
    assert len(page.encode()) < 300_000


def test_a_report_of_several_models_and_bad_calls(tmp_path):
    X, y = data()
    models = {"first": LogisticRegression(), "second": LinearSVC()}
    for model in models.values():
        model.fit(X.to_numpy()[:200], y[:200])
    page = rocmax.report(models, X.to_numpy()[200:], y[200:])
    assert "first" in page
    assert "second" in page
    for call, message in (
        (lambda: rocmax.report({}, X, y), "at least one classifier"),
        (lambda: rocmax.report(LogisticRegression(), X, y), "must be a fitted classifier with the class 'fraud'"),
        (lambda: rocmax.report(models["first"], X, np.arange(400)), "y must have two classes; got 400"),
        (lambda: rocmax.report(models["first"], X, y, min_fpr=0.5, max_fpr=0.2), "min_fpr < max_fpr"),
        (lambda: rocmax.report(models["first"], X, y, min_tpr=1.0), "min_tpr must be at least 0 and below 1; got 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(OSError, match="is not a directory"):
        rocmax.report(models["first"], X, y, tmp_path / "none" / "a.html")


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        (rocmax.PartialAUCClassifier(min_tpr=0.9, max_fpr=1.0), {}, "true-positive rates of at least 90 %"),
        (rocmax.PartialAUCClassifier(max_fpr=0.3), {}, "false-positive rates from 0 % to 30 %"),
        (rocmax.PartialAUCClassifier(max_fpr=0.3), {"max_fpr": 1.0}, None),
        (
            make_pipeline(StandardScaler(), rocmax.PartialAUCClassifier(min_tpr=0.5, max_fpr=0.5)),
            {"min_tpr": 0.6},
            "false-positive rates from 0 % to 50 % and true-positive rates of at least 60 %",
        ),
        (rocmax.TPRThresholdClassifier(LogisticRegression(), 0.7), {}, "true-positive rates of at least 70 %"),
        (rocmax.MiniBatchClassifier("f_beta", min_tpr=0.9), {}, None),
        (LogisticRegression(), {"min_tpr": 0.9}, "true-positive rates of at least 90 %"),
        (LogisticRegression(), {}, None),
    ],
)
def test_the_range_of_a_report_is_that_of_the_model(model, given, expected):
    X, y = (part[:200] for part in data())
    page = rocmax.report(clone(model).fit(X, y), X, y, **given)
    if expected is None:
        assert "Range of interest" not in page
    else:
        assert f"Range of interest: {expected}" in page


def test_a_report_shows_the_weights_of_the_classifier_in_a_threshold():
    X, y = data()
    X = X.to_numpy()
    model = rocmax.FPRThresholdClassifier(LogisticRegression(), 0.2, cv=2, pos_label="fraud").fit(X, y)
    assert "feature 1" in rocmax.report(model, X, y, pos_label="fraud")


def test_probabilities_pass_through_a_threshold():
    X, y = data()
    inner = LogisticRegression()
    model = rocmax.FPRThresholdClassifier(inner, 0.2, cv=2, pos_label="fraud").fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))
    without = rocmax.FPRThresholdClassifier(LinearSVC(), 0.2, cv=2).fit(X, y)
    assert not hasattr(without, "predict_proba")
    assert not hasattr(rocmax.FPRThresholdClassifier(LinearSVC()), "predict_proba")


@pytest.mark.parametrize("cv", [2, 0.5, "prefit"])
def test_weights_pass_through_a_threshold(cv):
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    inner = LogisticRegression()
    if cv == "prefit":
        inner.fit(X, y)
    options = {"cv": cv, "pos_label": "fraud", "random_state": 0}
    model = rocmax.FPRThresholdClassifier(inner, 0.2, **options).fit(X, y, sample_weight=weight)
    if cv == 2:
        expected = LogisticRegression().fit(X, y, sample_weight=weight).coef_
        np.testing.assert_allclose(model.estimator_.coef_, expected)
    ones = rocmax.FPRThresholdClassifier(inner, 0.2, **options).fit(X, y, sample_weight=np.ones(y.size))
    plain = rocmax.FPRThresholdClassifier(inner, 0.2, **options).fit(X, y)
    assert ones.threshold_ == pytest.approx(plain.threshold_)
    if cv == "prefit":
        negative = y == "fine"
        above = model.predict(X)[negative] == "fraud"
        assert np.average(above, weights=weight[negative]) <= 0.2 + 1e-9
    with pytest.raises(ValueError, match="sample_weight must be None with confidence"):
        rocmax.FPRThresholdClassifier(LogisticRegression(), 0.2, confidence=0.9).fit(X, y, sample_weight=weight)


def test_weights_are_routed_through_a_threshold():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        model = rocmax.FPRThresholdClassifier(inner, 0.2, cv=2, pos_label="fraud")
        model.set_score_request(sample_weight=True)
        scores = cross_val_score(model, X, y, cv=2, params={"sample_weight": weight})
    assert scores.shape == (2,)


def test_a_scorer_is_passed_as_an_object():
    X, y = data()
    scorer = make_scorer("partial_auc", max_fpr=0.2, pos_label="fraud")
    assert cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=2).shape == (2,)


@pytest.mark.parametrize(
    "selector", [make_column_selector(dtype_include=np.number), make_column_selector(pattern="^[ab]$")]
)
def test_pipelines_with_column_selectors_are_saved(tmp_path, selector):
    X, y = data()
    X = X.assign(city=np.where(X["a"] > 0, "Rome", "Oslo"))
    texts = make_column_selector(dtype_exclude=np.number)
    table = make_column_transformer((StandardScaler(), selector), (OneHotEncoder(), texts))
    model = make_pipeline(table, rocmax.AUCClassifier()).fit(X, y)
    rocmax.save(model, tmp_path / "a.rocmax")
    again = rocmax.load(tmp_path / "a.rocmax")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
