"""ONNX graphs of boosted trees give the scores and labels of the model, in onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import rocmax
from helpers.tables import column_kinds
from helpers.tree_models import table, tree_model
from rocmax.tables import fit_table
from rocmax.tables.onnx import export_file, to_onnx
from rocmax.tables.preprocess import common_levels, tree_preprocessing
from rocmax.tables.read import Schema

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("lightgbm")


def boosted(pos_label, categorical, n_models=1, rounds=20, **more):
    return rocmax.BoostedClassifier(
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
    model.models_ = [tree_model("lightgbm", X, y, categorical=(), **params)]
    return model


def frame(n, seed=0):
    X, y = table(seed, n, 40)
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(X[:, :3], columns=["a", "b", "c c"])
    found.insert(1, "city", [f"town {int(v)}" if v == v else None for v in X[:, 3]])
    found["shop"] = rng.choice(["x", "y", "", "z"], n)
    return found, np.where(y == 1, "fraud", "ok")


def preprocessing(X):
    kinds = column_kinds(X)
    return tree_preprocessing(kinds, common_levels(X, kinds))


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
    frame = pd.DataFrame(X, columns=names)
    return Pipeline([("table", preprocessing(frame).fit(frame)), ("model", model)])


ABOUT = Schema(positive="fraud", negative="ok", features={})


@pytest.mark.parametrize("pos_label", ["fraud", "ok"])
@pytest.mark.parametrize("n_rows", [300, 2000])
def test_mixed_tables(n_rows, pos_label):
    X, y = frame(n_rows)
    steps = preprocessing(X).fit(X)
    model = boosted(pos_label, [3, 4], 3).fit(steps.transform(X), y)
    new, _ = frame(300, 1)
    new.loc[:20, "city"] = "unseen"
    new.loc[10:30, "shop"] = "unseen"
    pipeline = Pipeline([("table", steps), ("model", model)])
    assert to_onnx(pipeline, ABOUT).ir_version == 12  # has splits by category
    scores, labels = run(pipeline, ABOUT, feed(new))
    # classes_ are fraud and ok: decisions above zero are ok
    expected = -model.decision_function(steps.transform(new))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    assert labels.tolist() == np.where(expected > 0, "fraud", "ok").tolist()


def test_thresholds_of_splits_and_tiny_numbers():
    X, y = table(2, 1000, 20)
    X, labels = X[:, :3], np.where(y == 1, "fraud", "ok")
    model = boosted("fraud", None, rounds=30).fit(X, labels)
    trees = model.models_[0]
    thresholds = trees.threshold
    chosen = np.random.default_rng(0).choice(thresholds[np.isfinite(thresholds)], (600, 3))
    new = X[:600].copy()
    new[:, :3] = np.concatenate([chosen[:200], np.nextafter(chosen[200:400], 9), np.nextafter(chosen[400:], -9)])
    new[::7, 0], new[::11, 1] = 1e-36, -1e-35
    assert trees.left.size > 300
    scores, _ = run(of_numbers(X, model), ABOUT, {f"x{i}": new[:, [i]] for i in range(3)})
    expected = -model.decision_function(new)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


def test_matrices_and_trees_of_one_leaf():
    X, y = table(3)
    labels = np.where(y == 1, "fraud", "ok")
    about = replace(ABOUT, features=None)
    for rows in (X[:, :3], np.ones((300, 2))):
        model = boosted("ok", None, 2).fit(rows, labels)
        pipeline = Pipeline([("table", FunctionTransformer().fit(rows)), ("model", model)])
        wrapped = SimpleNamespace(estimator_=pipeline, threshold_=0.5)
        scores, _ = run(wrapped, about, {"X": rows})
        np.testing.assert_allclose(scores, -model.decision_function(rows) - 0.5, rtol=0, atol=1e-5)


def test_nan_without_a_missing_direction():
    X, y = table(4)
    labels = np.where(y == 1, "fraud", "ok")
    model = boosted("fraud", None).fit(X[:, :3], labels)
    with_trees(model, X[:, :3], y, use_missing=False)
    pipeline = Pipeline([("table", FunctionTransformer().fit(X)), ("model", model)])
    scores, _ = run(pipeline, replace(ABOUT, features=None), {"X": X[:, :3]})
    np.testing.assert_allclose(scores, -model.decision_function(X[:, :3]), rtol=0, atol=1e-12)


def test_model_files_are_exported(tmp_path):
    X, y = frame(400)
    model = fit_table(X.assign(label=y), target="label", positive="fraud", model="boosted", tune=False)
    model.save(tmp_path / "m.rocmax")
    export_file(tmp_path / "m.rocmax", tmp_path / "m.onnx")
    scores, labels = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(["score", "label"], feed(X))
    np.testing.assert_allclose(scores, model.positive_scores(X), rtol=0, atol=1e-12)
    assert labels.tolist() == model.predict(X).tolist()


def test_versions_that_compute_wrong_scores_do_not_load_categories():
    X, y = frame(400)
    steps = preprocessing(X).fit(X)
    model = boosted("fraud", [3, 4]).fit(steps.transform(X), y)
    assert to_onnx(Pipeline([("table", steps), ("model", model)]), ABOUT).ir_version == 12
    numbers, y = table(5, 1000, 20)
    model = boosted("fraud", None).fit(numbers[:, :3], np.where(y == 1, "fraud", "ok"))
    assert to_onnx(of_numbers(numbers[:, :3], model), ABOUT).ir_version == 8


def test_what_cannot_be_exported():
    X, y = frame(200)
    numbers = X[["a", "b"]]
    pytest.importorskip("xgboost")
    model = boosted("fraud", None, engine="xgboost").fit(numbers.to_numpy(), y)
    with pytest.raises(ValueError, match=r"the trees must be those of LightGBM, .*; got those of XGBoost"):
        to_onnx(Pipeline([("table", preprocessing(numbers).fit(numbers)), ("model", model)]), ABOUT)
    named = numbers.rename(columns={"a": "label"})
    model = boosted("fraud", None).fit(named.to_numpy(), y)
    with pytest.raises(ValueError, match="rename the column 'label'"):
        to_onnx(Pipeline([("table", preprocessing(named).fit(named)), ("model", model)]), ABOUT)
