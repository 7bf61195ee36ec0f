"""Model files: exact round trips, and refusals that execute nothing."""

from __future__ import annotations

import io
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import rocmax
from helpers.model_files import sealed, zipped
from helpers.tables import make_model, payments
from rocmax import (
    AUCClassifier,
    FPRThresholdClassifier,
    PartialAUCClassifier,
    TPRThresholdClassifier,
)
from rocmax.model_io import FORMAT, ModelFileError, load_with_facts

CALLED = []


def note(X):
    """Stands for code that a file wants to run."""
    CALLED.append(True)
    return X


def rows(seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(120) % 3 == 0
    return rng.normal(size=(120, 4)) + y[:, None], np.where(y, "fraud", "fine")


@pytest.mark.parametrize(
    "model",
    [
        AUCClassifier(),
        AUCClassifier("squared_hinge"),
        PartialAUCClassifier(pos_label="fraud"),
        FPRThresholdClassifier(make_pipeline(StandardScaler(), PartialAUCClassifier()), 0.2, random_state=0),
        FPRThresholdClassifier(LogisticRegression(), 0.2, confidence=0.5, random_state=0),
        TPRThresholdClassifier(LogisticRegression(), 0.8, confidence=0.5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_round_trip(tmp_path, model):
    X, y = rows()
    model.fit(X, y)
    rocmax.save(model, tmp_path / "m.rocmax", about={"seed": 3, "names": ["a"]})
    again, about = load_with_facts(tmp_path / "m.rocmax")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.get_params().keys() == model.get_params().keys()
    assert about == {"seed": 3, "names": ["a"]}
    assert (tmp_path / "m.rocmax").stat().st_size < 60_000


@pytest.mark.parametrize("name", ["linear", "additive", "auc", "logistic", "svm"])
def test_pipelines_of_the_command_line(tmp_path, name):
    frame = payments(300)
    X, y = frame[["amount", "age", "country"]], frame["label"].to_numpy()
    model = make_model(name, X, "fraud", 0.1).fit(X, y)
    rocmax.save(model, tmp_path / "m.rocmax")
    new = pd.DataFrame({"amount": [1.0, np.nan], "age": [30.0, 40.0], "country": [None, "new"]})
    np.testing.assert_array_equal(
        rocmax.load(tmp_path / "m.rocmax").decision_function(new), model.decision_function(new)
    )


def test_foreign_types_are_not_saved(tmp_path):
    X, y = rows()
    model = make_pipeline(FunctionTransformer(note), LogisticRegression()).fit(X, y)
    with pytest.raises(ModelFileError, match=r"types of rocmax, and of scikit-learn types .*; got test_model_io\.note"):
        rocmax.save(model, tmp_path / "m.rocmax")
    assert not (tmp_path / "m.rocmax").exists()


def test_a_value_that_skops_cannot_write_is_named(tmp_path):
    model = AUCClassifier().fit(*rows())
    model.table_ = {("a", 1): 2}
    with pytest.raises(ModelFileError, match=r"AUCClassifier contains a value that cannot be saved: keys must be str"):
        rocmax.save(model, tmp_path / "m.rocmax")


def packed(path, content, **header):
    described = {
        "format": FORMAT,
        "rocmax": "0.1.0",
        "scikit-learn": __import__("sklearn").__version__,
        "about": {},
        **header,
    }
    path.write_bytes(zipped(sealed(described, content), zipfile.ZIP_STORED))
    return path


def test_foreign_types_are_not_loaded_and_nothing_runs(tmp_path):
    X, y = rows()
    model = make_pipeline(FunctionTransformer(note), LogisticRegression()).fit(X, y)
    CALLED.clear()
    path = packed(tmp_path / "m.rocmax", skops.io.dumps(model))
    with pytest.raises(
        ModelFileError, match=r"was not loaded: it must contain only types of .*; got test_model_io\.note"
    ):
        rocmax.load(path)
    assert CALLED == []


class Bomb:
    def __reduce__(self):
        return note, (0,)


def test_a_pickle_is_refused_and_does_not_run(tmp_path):
    CALLED.clear()
    (tmp_path / "m.rocmax").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError, match="is not a model file of rocmax"):
        rocmax.load(tmp_path / "m.rocmax")
    packed(tmp_path / "n.rocmax", pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError, match="is damaged or was modified"):
        rocmax.load(tmp_path / "n.rocmax")
    assert CALLED == []


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "rocmax.demo.commands",
        "rocmax.model_io.save",
        "rocmax.linear.partial_auc.nothing",
        "rocmax.linear.partial_auc.Parallel",
    ],
)
def test_a_changed_type_is_refused(tmp_path, target):
    X, y = rows()
    content = skops.io.dumps(AUCClassifier().fit(X, y))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    module, _, name = target.rpartition(".")
    schema = json.loads(parts["schema.json"])
    assert schema["__class__"] == "AUCClassifier"
    schema["__class__"], schema["__module__"] = name, module
    parts["schema.json"] = json.dumps(schema).encode()
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as archive:
        for key, value in parts.items():
            archive.writestr(key, value)
    with pytest.raises(
        ModelFileError, match=f"only types of rocmax and scikit-learn; got .*{target}|damaged or was modified"
    ):
        rocmax.load(packed(tmp_path / "m.rocmax", changed.getvalue()))


def test_every_truncation_is_refused(tmp_path):
    X, y = rows()
    rocmax.save(AUCClassifier().fit(X, y), tmp_path / "m.rocmax")
    content = (tmp_path / "m.rocmax").read_bytes()
    for size in range(0, len(content) - 1, max(1, len(content) // 20)):
        (tmp_path / "cut.rocmax").write_bytes(content[:size])
        with pytest.raises(ModelFileError):
            rocmax.load(tmp_path / "cut.rocmax")


def test_other_versions(tmp_path):
    X, y = rows()
    content = skops.io.dumps(AUCClassifier().fit(X, y))
    with pytest.raises(ModelFileError, match=r"saved by rocmax 9\.0 in file format 9; rocmax .* reads format 3"):
        rocmax.load(packed(tmp_path / "m.rocmax", content, format=9, rocmax="9.0"))
    path = packed(tmp_path / "m.rocmax", content, **{"scikit-learn": "1.2.0"})
    with pytest.warns(UserWarning, match=r"saved with scikit-learn 1\.2\.0"):
        rocmax.load(path)
    for about in ([], None):
        with pytest.raises(ModelFileError, match="its header is damaged"):
            rocmax.load(packed(tmp_path / "m.rocmax", content, about=about))


def test_places_that_are_no_files(tmp_path):
    with pytest.raises(ModelFileError, match="is a directory"):
        rocmax.load(tmp_path)
    with pytest.raises(ModelFileError, match="does not exist"):
        rocmax.load(tmp_path / "none.rocmax")
    model = AUCClassifier().fit(*rows())
    with pytest.raises(IsADirectoryError):
        rocmax.save(model, tmp_path)
    with pytest.raises(FileNotFoundError):
        rocmax.save(model, tmp_path / "none" / "m.rocmax")
    assert list(tmp_path.iterdir()) == []
