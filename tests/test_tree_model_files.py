"""Boosted models in model files: they come back as they were, and damaged trees do not reach their library."""

from __future__ import annotations

import copy
import io
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
from helpers.tree_file_worker import TASKS, array_members
from helpers.tree_models import ENGINES, table
from helpers.tree_mutations import array_file
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
    np.testing.assert_array_equal(again.contributions(X).values, model.contributions(X).values)
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
    assert b"booster" not in unzipped(content)["schema.json"].lower()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("left", 10**6, "left must be nodes of the same tree, or -1 in leaves; got one out of range"),
        ("feature", 4, "feature must be from 0 to 3; got 4"),
        ("set_start", 1, "set_start must divide the categories into one set for each node"),
        ("value", np.nan, "value must be finite"),
    ],
)
def test_damaged_trees(saved, tmp_path, engine, name, value, message):
    def change(inner):
        member = array_members(inner)[name]
        values = np.load(io.BytesIO(inner[member]))
        values[0] = value
        inner[member] = array_file(values)

    path = rewrite(saved[engine], tmp_path / "m.rocmax", change)
    with pytest.raises(ModelFileError, match=f"is damaged or was modified: .*{engine} trees are damaged: .*{message}"):
        rocmax.load(path)


def test_children_of_xgboost_come_after_their_parent(saved, tmp_path):
    # XGBoost reads beyond its memory in contributions otherwise.
    def change(inner):
        members = array_members(inner)
        left, right = (np.load(io.BytesIO(inner[members[name]])) for name in ("left", "right"))
        # A node before its sibling changes places with a child of the sibling: still a tree, but not in order.
        parent = next(p for p in np.flatnonzero(left >= 0) if left[p] < right[p] and left[right[p]] >= 0)
        sibling, child = left[parent], right[parent]
        left[parent], left[child] = left[child], sibling
        for name, values in (("left", left), ("right", right)):
            inner[members[name]] = array_file(values)

    path = rewrite(saved["xgboost"], tmp_path / "m.rocmax", change)
    with pytest.raises(ModelFileError, match="must be nodes after their parent"):
        rocmax.load(path)


@pytest.mark.slow
def test_mutated_files_do_not_end_the_process(saved):
    folder = Path(__file__).parent
    paths = os.pathsep.join([str(folder), str(Path(rocmax.__file__).parents[1])])
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-W",
        "ignore",
        "-m",
        "helpers.tree_file_worker",
        *map(str, saved.values()),
    ]
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
    state = rocmax.load(saved["lightgbm"]).models_[0].__getstate__()
    with pytest.raises(ValueError, match="the lightgbm trees are damaged"):
        TreeModel(**state | {"n_features": 1})


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_another_width(saved, engine):
    model = rocmax.load(saved[engine]).models_[0]
    for width in (3, 5):
        with pytest.raises(ValueError, match=f"X must have 4 features; got {width}"):
            model.predict(np.zeros((2, width)))
        with pytest.raises(ValueError, match=f"X must have 4 features; got {width}"):
            model.contributions(np.zeros((2, width)))
