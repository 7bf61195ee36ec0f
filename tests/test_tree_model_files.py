"""Boosted models in model files: they come back as they were, and damaged trees do not reach their library."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import skops.io

import rocmax
from helpers.model_files import rewrite, unzipped
from helpers.tree_file_worker import TASKS, change_texts
from helpers.tree_models import ENGINES, table
from helpers.tree_mutations import resized
from rocmax.boosted.trees import TreeModel
from rocmax.model_io import ModelFileError

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")
X, Y = table(0, 300)


def fitted(engine, objective="binary"):
    model = rocmax.BoostedClassifier(
        engine=engine,
        objective=objective,
        max_leaf_nodes=5,
        n_estimators=3,
        n_models=2,
        categorical_features=[3],
        random_state=0,
        n_jobs=1,
    )
    return model.fit(X, np.where(Y == 1, "fraud", "fine"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    paths = {}
    for engine in ENGINES:
        paths[engine] = tmp_path_factory.mktemp(engine) / "m.rocmax"
        rocmax.save(fitted(engine), paths[engine])
    return paths


def same(model, again):
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.contributions(X), model.contributions(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    assert again.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("objective", ["binary", "window"])
def test_a_loaded_model_predicts_the_same(tmp_path, engine, objective):
    model = fitted(engine, objective)
    rocmax.save(model, tmp_path / "m.rocmax")
    same(model, rocmax.load(tmp_path / "m.rocmax"))
    same(model, pickle.loads(pickle.dumps(model)))
    same(model, copy.deepcopy(model))


@pytest.mark.parametrize("engine", ENGINES)
def test_only_known_types_are_in_the_file(saved, engine):
    content = unzipped(saved[engine].read_bytes())["model.skops"]
    found = set(skops.io.get_untrusted_types(data=content))
    assert found == {"rocmax.BoostedClassifier", "rocmax.boosted.TreeModel"}
    schema = json.loads(unzipped(content)["schema.json"])
    assert "booster" not in json.dumps(schema).lower().replace("gradient_booster", "")


@pytest.mark.parametrize(
    ("engine", "old", "new", "message"),
    [
        ("lightgbm", "left_child=", "left_child=1000000 ", "left_child of tree 0 must have 4 values; got 5"),
        ("lightgbm", "max_feature_idx=3", "max_feature_idx=9", "max_feature_idx must be 3; got 9"),
        ("lightgbm", "end of trees\n", "end of trees\n\nparameters:\n", "the trees must be followed by 'end of trees'"),
        ("xgboost", '"split_indices":[', '"split_indices":[1000000,', r"split_indices of tree 0 must be an array of"),
        ("xgboost", '"num_nodes":"', '"num_nodes":"9', r"num_nodes must be \d+; got '9\d+'"),
        ("xgboost", '"name":"gbtree"', '"name":"gblinear"', "gradient_booster must be gbtree; got 'gblinear'"),
    ],
)
def test_damaged_trees(saved, tmp_path, engine, old, new, message):
    def change(text):
        assert old in text
        text = text.replace(old, new, 1)
        return resized(text) if engine == "lightgbm" else text

    path = rewrite(saved[engine], tmp_path / "m.rocmax", change_texts(change))
    with pytest.raises(ModelFileError, match=f"is damaged or was modified: .*{engine} trees are damaged: .*{message}"):
        rocmax.load(path)


@pytest.mark.slow
def test_mutated_files_do_not_end_the_process(saved):
    folder = Path(__file__).parent
    paths = os.pathsep.join([str(folder), str(Path(rocmax.__file__).parents[1])])
    command = [sys.executable, "-W", "ignore", "-m", "helpers.tree_file_worker", *map(str, saved.values())]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for counts, (_, n) in zip(found, 2 * TASKS, strict=True):
        assert sum(counts.values()) == n
        assert counts["refused"] > 0.3 * n
        assert counts["accepted"] > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_files_that_end_early_and_their_size(saved, tmp_path, engine):
    content = saved[engine].read_bytes()
    for size in np.random.default_rng(0).integers(0, len(content), 40):
        (tmp_path / "m.rocmax").write_bytes(content[:size])
        with pytest.raises(ModelFileError):
            rocmax.load(tmp_path / "m.rocmax")
    with pytest.raises(ModelFileError, match="must not exceed the limit of 3,000 bytes decompressed"):
        rocmax.load(saved[engine], max_bytes=3000)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_the_library_the_extra_is_named(saved, monkeypatch, engine):
    monkeypatch.setitem(sys.modules, engine, None)
    model = rocmax.load(saved[engine])
    extra = {"lightgbm": "boost", "xgboost": "xgboost"}[engine]
    with pytest.raises(ImportError, match=rf"pip install 'rocmax\[{extra}\]'"):
        model.decision_function(X)


def test_trees_that_could_not_be_loaded_are_not_built(saved):
    text = rocmax.load(saved["lightgbm"]).models_[0].text
    with pytest.raises(ValueError, match="the lightgbm trees are damaged"):
        TreeModel("lightgbm", text.replace("num_leaves=5", "num_leaves=50"), 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_another_width(saved, engine):
    model = rocmax.load(saved[engine]).models_[0]
    for width in (3, 5):
        with pytest.raises(ValueError, match=f"X must have 4 features; got {width}"):
            model.predict(np.zeros((2, width)))
        with pytest.raises(ValueError, match=f"X must have 4 features; got {width}"):
            model.contributions(np.zeros((2, width)))
