"""Contributions of columns to scores: exact sums, one contract for all models, and clear refusals."""

from __future__ import annotations

import sys
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import rocmax
from helpers.every_estimator import MODELS
from rocmax import AUCClassifier, Limits, LimitThresholdClassifier, SplineFeatures
from rocmax.explain import contributions
from rocmax.papers import GreedyPairClassifier, RankBoostClassifier

LINEAR = ["AUCClassifier", "AUCClassifier squared", "AUCClassifier l1", "PartialAUCClassifier", "PSAMClassifier"]
LINEAR += ["PartialAUCClassifierCV", "PrecisionAtKClassifier", "BreakEvenClassifier", "FBetaClassifier"]
LINEAR += ["ASAMClassifier", "SOLAMClassifier", "OAMClassifier", "CBRClassifier", "CBRClassifier diagonal"]
LINEAR += ["GMeanClassifier", "ScoreClassifier", "MiniBatchClassifier", "FollowTheLeaderClassifier"]
WRAPPED = ["FPRThresholdClassifier", "TPRThresholdClassifier", "LimitThresholdClassifier"]


def rows(n=200, seed=0, pos="b"):
    """Rows around means that are not zero; the positive class comes first or last in the order of labels."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    X = rng.normal(size=(n, 4)) * [1, 2, 3, 4] + [5, -3, 0.1, 100] + np.outer(y, [1.0, 1.0, 0.0, 3.0])
    return X, np.where(y, pos, {"a": "b", "b": "a"}[pos])


@pytest.mark.parametrize("pos", ["a", "b"])
@pytest.mark.parametrize("name", [*LINEAR, *WRAPPED])
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*the positive class is:UserWarning"
)
def test_linear_contributions_are_weights_times_differences_to_the_training_mean(name, pos):
    X, y = rows(pos=pos)
    model = clone(MODELS[name]).set_params(pos_label=pos).fit(X, y)
    new = rows(50, 1)[0]
    found = contributions(model, new)
    if name not in WRAPPED:  # these hold rows out
        expected = (new - X.mean(axis=0)) * model.coef_[0]
        np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.reference, model.decision_function(X.mean(0)[None])[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.reference, model.decision_function(new), rtol=0, atol=1e-9
    )
    np.testing.assert_array_equal(found.scores, found.values.sum(axis=1) + found.reference)
    assert found.columns == ["x0", "x1", "x2", "x3"]


def test_the_mean_is_that_of_the_weights_of_rows_sparse_or_dense():
    X, y = rows()
    X[np.abs(X) < 1] = 0
    weight = np.arange(y.size) % 3
    model = AUCClassifier().fit(X, y, sample_weight=weight)
    expected = model.decision_function(np.average(X, axis=0, weights=weight)[None])[0]
    for form in (X, sparse.csr_matrix(X)):
        found = AUCClassifier().fit(form, y, sample_weight=weight).contributions(form)
        np.testing.assert_allclose(found.reference, expected, rtol=1e-6)
        np.testing.assert_allclose(found.scores, model.decision_function(X), rtol=1e-6, atol=1e-6)


def test_files_and_arrays_have_the_same_contributions(tmp_path):
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("pqrs"))
    frame.assign(label=y).to_csv(tmp_path / "a.csv", index=False)
    for standardize in (True, False):
        model = AUCClassifier().fit_files(tmp_path / "a.csv", target="label", standardize=standardize)
        found = model.contributions(frame)
        np.testing.assert_allclose(found.scores, model.decision_function(frame), rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.values.mean(axis=0), 0, atol=1e-9)  # of the training rows


def test_a_stream_has_no_training_mean():
    X, y = rows()
    model = rocmax.MiniBatchClassifier("roc_auc", random_state=0).fit(X, y)
    assert model.contributions(X).values.shape == X.shape
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match="means of the training rows, which this MiniBatchClassifier does not have"):
        model.contributions(X)


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
def test_boosted_contributions_are_the_mean_of_those_of_the_engine(engine):
    package = pytest.importorskip(engine)
    X, y = rows(400)
    X[::7, 1] = np.nan
    model = rocmax.BoostedClassifier(
        engine=engine, objective="binary", max_leaf_nodes=6, n_estimators=20, n_models=3, random_state=0, pos_label="a"
    ).fit(X, y)
    found = model.contributions(X)
    raw = (
        [booster.predict(X, pred_contrib=True) for booster in model.boosters()]
        if engine == "lightgbm"
        else [booster.predict(package.DMatrix(X), pred_contribs=True) for booster in model.boosters()]
    )
    expected, exact = -np.mean(raw, axis=0), engine == "lightgbm"  # the positive class is the first one
    tolerance = {"rtol": 1e-9, "atol": 1e-12} if exact else {"rtol": 1e-4, "atol": 1e-6}
    np.testing.assert_allclose(found.values, expected[:, :-1], **tolerance)
    np.testing.assert_allclose(found.reference, expected[:, -1] + model.threshold_, **tolerance)
    np.testing.assert_allclose(found.scores, model.decision_function(X), rtol=0, atol=1e-9)


def shapley(score, row, background):
    """Shapley values of one row by all subsets of columns, with the others at the values of a background row."""
    n = row.size
    found = np.zeros(n)
    for j in range(n):
        others = [k for k in range(n) if k != j]
        for size in range(n):
            for subset in combinations(others, size):
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                without = background.copy()
                without[list(subset)] = row[list(subset)]
                with_j = without.copy()
                with_j[j] = row[j]
                found[j] += weight * (score(with_j[None])[0] - score(without[None])[0])
    return found


def test_additive_contributions_differ_by_the_shapley_values():
    X, y = rows(400)
    X[::9, 2] = np.nan
    model = make_pipeline(SplineFeatures(), StandardScaler(), AUCClassifier()).fit(X, y)
    found = contributions(model, X[:12])
    np.testing.assert_allclose(found.scores, model.decision_function(X[:12]), rtol=0, atol=1e-9)
    for i in range(1, 6):
        expected = shapley(model.decision_function, X[i], X[0])
        np.testing.assert_allclose(found.values[i] - found.values[0], expected, atol=1e-9)
    # The mean over the training rows is zero for each column: the reference is the score of the mean features.
    np.testing.assert_allclose(contributions(model, X).values.mean(axis=0), 0, atol=1e-9)


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Rome", "Oslo", "Bonn"], n, p=[0.5, 0.3, 0.2]),
            "size": rng.normal(size=n) + y,
            "color": np.where(y & (rng.random(n) < 0.5), "red", rng.choice(["red", "blue"], n)),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(40, 9, n)),
            "none": rng.normal(size=n),
        }
    )
    return frame, y.astype(int)


@pytest.mark.parametrize(
    "table",
    [
        ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age", "size"]),
                ("words", OneHotEncoder(drop="first"), ["color", "city"]),
                ("nothing", "drop", ["none"]),
            ]
        ),
        make_column_transformer(
            (OneHotEncoder(), [0]), (OneHotEncoder(), np.array([False, False, True, False, False])),
            (SplineFeatures(), slice(3, 4)), remainder="passthrough",
        ),
    ],
)  # fmt: skip
def test_one_hot_columns_and_indicators_add_up_to_their_column(table):
    frame, y = mixed()
    model = make_pipeline(table, AUCClassifier()).fit(frame, y)
    found = contributions(model, frame)
    assert found.columns == list(frame)
    np.testing.assert_allclose(found.scores, model.decision_function(frame), rtol=0, atol=1e-9)
    for j, name in enumerate(frame):
        # With the column of another row, the score changes by the difference of the contributions of this column.
        changed = model.decision_function(frame.assign(**{name: frame[name].iloc[0]})) - model.decision_function(frame)
        np.testing.assert_allclose(changed, found.values[0, j] - found.values[:, j], atol=1e-9)


def test_selected_columns_and_a_passed_through_step():
    X, y = rows()
    model = make_pipeline("passthrough", SelectKBest(k=2), FunctionTransformer(), AUCClassifier()).fit(X, y)
    found = contributions(model, X)
    kept = model[1].get_support()
    assert kept.sum() == 2
    assert (found.values[:, ~kept] == 0).all()
    assert (np.ptp(found.values[:, kept], axis=0) > 0).all()
    np.testing.assert_allclose(found.scores, model.decision_function(X), rtol=0, atol=1e-9)


def test_the_reference_has_the_threshold_of_each_row():
    frame, y = mixed(2000)
    inner = make_pipeline(make_column_transformer((StandardScaler(), ["size", "none"])), AUCClassifier())
    model = LimitThresholdClassifier(inner, Limits(max_fpr=0.1, per="city"), random_state=0).fit(frame, y)
    found = contributions(model, frame)
    np.testing.assert_allclose(found.scores, model.decision_function(frame), rtol=0, atol=1e-9)
    assert np.unique(found.reference).size == 3


def test_what_has_no_contributions_is_refused():
    X, y = rows()
    for model in (
        RankBoostClassifier(5),
        GreedyPairClassifier(n_steps=2),
        rocmax.ROCSVC(),
        rocmax.FPRThresholdClassifier(rocmax.ROCSVC(), 0.2, cv=2),
    ):
        with pytest.raises(TypeError, match=r"those of linear and additive models, BoostedClassifier and Ensemble"):
            contributions(model.fit(X, y), X)
    with pytest.raises(TypeError, match=r"require steps that make each feature from one column, .*; got PCA"):
        contributions(make_pipeline(PCA(2), AUCClassifier()).fit(X, y), X)
    halves = FunctionTransformer(lambda X: X[:, :2] + X[:, 2:])
    with pytest.raises(TypeError, match="got FunctionTransformer"):
        contributions(make_pipeline(halves, AUCClassifier()).fit(X, y), X)
    with pytest.raises(ValueError, match="this LogisticRegression does not have"):
        contributions(LogisticRegression().fit(X, y), X)
    with pytest.raises(NotFittedError):
        AUCClassifier().contributions(X)


def test_a_file_of_an_earlier_version_says_to_fit_again(tmp_path):
    X, y = rows()
    model = AUCClassifier().fit(X, y)
    rocmax.save(model, tmp_path / "m.rocmax")
    again = rocmax.load(tmp_path / "m.rocmax")
    np.testing.assert_array_equal(again.contributions(X).values, model.contributions(X).values)
    del again._feature_means_
    rocmax.save(again, tmp_path / "old.rocmax")
    with pytest.raises(ValueError, match=r"saved by an earlier version.* Fit it again"):
        rocmax.load(tmp_path / "old.rocmax").contributions(X)


def test_an_explanation_of_shap():
    shap = pytest.importorskip("shap")
    frame, y = mixed()
    table = make_column_transformer((OneHotEncoder(), ["city", "color"]), (StandardScaler(), ["size"]))
    model = make_pipeline(table, AUCClassifier()).fit(frame, y)
    found = contributions(model, frame)
    explanation = found.to_shap()
    assert isinstance(explanation, shap.Explanation)
    assert list(explanation.feature_names) == list(frame)
    np.testing.assert_array_equal(explanation.values, found.values)
    np.testing.assert_allclose(explanation.values.sum(1) + explanation.base_values, model.decision_function(frame))
    assert explanation.data[0, 0] == frame["city"].iloc[0]
    assert explanation[3].data[2] == frame["color"].iloc[3]


def test_shap_that_is_missing_is_named(monkeypatch):
    X, y = rows()
    found = AUCClassifier().fit(X, y).contributions(X)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="explanations for shap need shap: pip install shap"):
        found.to_shap()
