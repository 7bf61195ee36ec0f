"""ONNX graphs of boosted trees give the scores and labels of the model, in onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

import rocmax
from helpers.tree_models import ENGINES, table, tree_text
from rocmax.boosted.trees import TreeModel, read_trees
from rocmax.tables.model import Facts
from rocmax.tables.onnx import export_file, to_onnx
from rocmax.tables.read import Schema

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")


def boosted(engine, pos_label, categorical, n_models=1, rounds=20, **more):
    return rocmax.BoostedClassifier(
        engine=engine,
        objective="binary",
        max_leaf_nodes=6,
        n_estimators=rounds,
        n_models=n_models,
        categorical_features=categorical,
        pos_label=pos_label,
        random_state=0,
        n_jobs=1,
        **more,
    )


def with_trees(model, X, y, **params):
    """Replace the trees of a fitted model by those of LightGBM with other parameters."""
    text = tree_text("lightgbm", X, y, categorical=(), **params)
    model.models_ = [TreeModel("lightgbm", text, X.shape[1])]
    return model


def frame(n, seed=0):
    X, y = table(seed, n, 40)
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(X[:, :3], columns=["a", "b", "c c"])
    found.insert(1, "city", [f"town {int(v)}" if v == v else None for v in X[:, 3]])
    found["shop"] = rng.choice(["x", "y", "", "z"], n)
    return found, np.where(y == 1, "fraud", "ok")


def preprocessing(names, max_categories=None):
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=max_categories, dtype=np.float64
    )
    fill = [
        SimpleImputer(missing_values=none, strategy="constant", fill_value="(missing)") for none in (np.nan, None, "")
    ]
    numbers, texts = (
        [i for i, name in enumerate(names) if (name in ("city", "shop")) == text] for text in (False, True)
    )
    return ColumnTransformer([("numbers", "passthrough", numbers), ("texts", make_pipeline(*fill, encoder), texts)])


def feed(X):
    return {
        name: X[[name]].to_numpy() if X[name].dtype.kind == "f" else X[[name]].fillna("").to_numpy(dtype=object)
        for name in X.columns
    }


def run(model, about, inputs):
    session = onnxruntime.InferenceSession(to_onnx(model, about).SerializeToString())
    return session.run(["score", "label"], inputs)


def of_numbers(X, model):
    """Pipeline of a model whose columns are numbers with the names x0, x1, ..."""
    names = [f"x{i}" for i in range(X.shape[1])]
    steps = ColumnTransformer([("numbers", "passthrough", list(range(X.shape[1])))])
    return Pipeline([("table", steps.fit(pd.DataFrame(X, columns=names))), ("model", model)])


ABOUT = Schema(positive="fraud", negative="ok", features={})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("pos_label", ["fraud", "ok"])
@pytest.mark.parametrize("max_categories", [None, 20])
def test_mixed_tables(engine, pos_label, max_categories):
    X, y = frame(2000)
    steps = preprocessing(X.columns, max_categories).fit(X)
    model = boosted(engine, pos_label, [3, 4], 3).fit(steps.transform(X), y)
    new, _ = frame(300, 1)
    new.loc[:20, "city"] = "unseen"
    new.loc[10:30, "shop"] = "unseen"
    pipeline = Pipeline([("table", steps), ("model", model)])
    assert to_onnx(pipeline, ABOUT).ir_version == 12  # has splits by category
    scores, labels = run(pipeline, ABOUT, feed(new))
    # classes_ are fraud and ok: decisions above zero are ok
    expected = -model.decision_function(steps.transform(new))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12 if engine == "lightgbm" else 1e-5)
    assert labels.tolist() == np.where(expected > 0, "fraud", "ok").tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_thresholds_of_splits_and_tiny_numbers(engine):
    X, y = table(2, 1000, 20)
    labels = np.where(y == 1, "fraud", "ok")
    model = boosted(engine, "fraud", [3], rounds=30).fit(X, labels)
    trees = read_trees(engine, model.models_[0].text, 4)
    thresholds = trees.threshold
    chosen = np.random.default_rng(0).choice(thresholds[np.isfinite(thresholds)], (600, 3))
    new = X[:600].copy()
    new[:, :3] = np.concatenate([chosen[:200], np.nextafter(chosen[200:400], 9), np.nextafter(chosen[400:], -9)])
    new[::7, 0], new[::11, 1] = 1e-36, -1e-35
    assert (trees.category.size > 0, trees.left.size > 300) == (True, True)
    scores, _ = run(of_numbers(X, model), ABOUT, {f"x{i}": new[:, [i]] for i in range(4)})
    expected = -model.decision_function(new)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12 if engine == "lightgbm" else 1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_matrices_and_trees_of_one_leaf(engine):
    X, y = table(3)
    labels = np.where(y == 1, "fraud", "ok")
    about = replace(ABOUT, features=None)
    for rows in (X[:, :3], np.ones((300, 2))):
        model = boosted(engine, "ok", None, 2).fit(rows, labels)
        pipeline = Pipeline([("table", FunctionTransformer().fit(rows)), ("model", model)])
        wrapped = SimpleNamespace(estimator_=pipeline, threshold_=0.5)
        scores, _ = run(wrapped, about, {"X": rows})
        np.testing.assert_allclose(scores, -model.decision_function(rows) - 0.5, rtol=0, atol=1e-5)


def test_nan_without_a_missing_direction():
    X, y = table(4)
    labels = np.where(y == 1, "fraud", "ok")
    model = boosted("lightgbm", "fraud", None).fit(X[:, :3], labels)
    with_trees(model, X[:, :3], y, use_missing=False)
    pipeline = Pipeline([("table", FunctionTransformer().fit(X)), ("model", model)])
    scores, _ = run(pipeline, replace(ABOUT, features=None), {"X": X[:, :3]})
    np.testing.assert_allclose(scores, -model.decision_function(X[:, :3]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_model_files_are_exported(tmp_path, engine):
    X, y = frame(400)
    model = Pipeline([("table", preprocessing(X.columns)), ("model", boosted(engine, "fraud", [3, 4]))]).fit(X, y)
    results = {key: {} for key in ("rows", "classes", "versions", "held_out", "at_threshold", "calibration", "shares")}
    facts = Facts(**vars(ABOUT), model="boosted", family="boosted", fitted="", seconds=0.0, **results)
    rocmax.save(model, tmp_path / "m.rocmax", about=facts.to_dict())
    export_file(tmp_path / "m.rocmax", tmp_path / "m.onnx")
    scores, labels = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(["score", "label"], feed(X))
    np.testing.assert_allclose(scores, -model.decision_function(X), rtol=0, atol=1e-5)
    assert labels.tolist() == model.predict(X).tolist()


def test_versions_that_compute_wrong_scores_do_not_load_categories():
    X, y = table(5, 1000, 20)
    labels = np.where(y == 1, "fraud", "ok")
    for columns, categorical, version in ((4, [3], 12), (3, None, 8)):
        model = boosted("lightgbm", "fraud", categorical).fit(X[:, :columns], labels)
        assert to_onnx(of_numbers(X[:, :columns], model), ABOUT).ir_version == version


def test_what_cannot_be_exported():
    X, y = frame(200)
    numbers = X[["a", "b"]]
    model = boosted("lightgbm", "fraud", None).fit(numbers.to_numpy(), y)
    with_trees(model, numbers.to_numpy(), y == "fraud", zero_as_missing=True, rounds=30)
    steps = ColumnTransformer([("numbers", "passthrough", [0, 1])]).fit(numbers)
    with pytest.raises(ValueError, match=r"zero must not be a missing value .* in column '[ab]'"):
        to_onnx(Pipeline([("table", steps), ("model", model)]), ABOUT)
    steps = ColumnTransformer([("numbers", StandardScaler(), [0, 1])]).fit(numbers)
    with pytest.raises(ValueError, match="column 'a' has StandardScaler"):
        to_onnx(Pipeline([("table", steps), ("model", model)]), ABOUT)
    steps = ColumnTransformer([("texts", OneHotEncoder(), [0])]).fit(X[["shop"]])
    with pytest.raises(ValueError, match="column 'shop' has OneHotEncoder"):
        to_onnx(Pipeline([("table", steps), ("model", model)]), ABOUT)
    X4, y4 = table(6)
    model = boosted("lightgbm", "fraud", [3]).fit(X4, np.where(y4 == 1, "fraud", "ok"))
    with pytest.raises(ValueError, match="columns of a matrix must be numbers for export; column 3 has categories"):
        to_onnx(Pipeline([("table", FunctionTransformer().fit(X4)), ("model", model)]), replace(ABOUT, features=None))
    named = numbers.rename(columns={"a": "label"})
    steps = ColumnTransformer([("numbers", "passthrough", [0, 1])]).fit(named)
    model = boosted("lightgbm", "fraud", None).fit(named.to_numpy(), y)
    with pytest.raises(ValueError, match="rename the column 'label'"):
        to_onnx(Pipeline([("table", steps), ("model", model)]), ABOUT)
