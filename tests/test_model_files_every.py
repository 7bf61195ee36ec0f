"""Every estimator, however its rows were stored, comes back from a model file as it was."""

from __future__ import annotations

import inspect
import io
import json
import pydoc
import zipfile

import numpy as np
import pytest
import sklearn
import skops.io
from scipy import sparse
from sklearn.base import clone

import rocmax
import rocmax.model_io
from helpers.every_estimator import DENSE_ONLY, MODELS, STREAMS, output, rows
from helpers.model_files import sealed, zipped
from rocmax.model_io import FORMAT

KINDS = {"dense": np.asarray, "csr_matrix": sparse.csr_matrix, "csr_array": sparse.csr_array}
CASES = [(name, kind) for name in MODELS for kind in KINDS if kind == "dense" or name not in DENSE_ONLY]
X, Y = rows()


def again(model, folder):
    rocmax.save(model, folder / "m.rocmax")
    return rocmax.load(folder / "m.rocmax")


def state(model):
    return [model.coef_, model.intercept_, model.n_iter_]


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_loaded_model_predicts_the_same(tmp_path, name, kind):
    model = clone(MODELS[name]).fit(KINDS[kind](X), Y)
    loaded = again(model, tmp_path)
    for other in ("dense",) if name in DENSE_ONLY else KINDS:
        new = KINDS[other](rows(40, seed=1)[0])
        # A loaded matrix may have the other memory order, and sums in another order.
        np.testing.assert_allclose(output(loaded, new), output(model, new), rtol=1e-7, atol=1e-12)
        if hasattr(model, "predict"):
            assert loaded.predict(new).tolist() == model.predict(new).tolist()


@pytest.mark.parametrize("start", ["partial_fit", "fit"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stream_goes_on_after_loading(tmp_path, name, kind, start):
    make = KINDS[kind]
    model = clone(MODELS[name])
    if start == "fit":
        model.fit(make(X[:70]), Y[:70])
    else:
        model.partial_fit(make(X[:70]), Y[:70], classes=["fraud", "ok"])
    loaded = again(model, tmp_path)
    for part in (slice(70, 100), slice(100, 150)):
        for one in (model, loaded):
            one.partial_fit(make(X[part]), Y[part])
        loaded = again(loaded, tmp_path)
    for one, other in zip(state(model), state(loaded), strict=True):
        np.testing.assert_array_equal(other, one)


def test_a_precomputed_kernel_from_sparse_rows(tmp_path):
    gram = sparse.csr_array(X @ X.T)
    model = rocmax.ROCSVC("precomputed", C=0.01).fit(gram, Y)
    np.testing.assert_allclose(again(model, tmp_path).decision_function(gram), model.decision_function(gram), rtol=1e-9)


def write_archive(path, content):
    header = {"format": FORMAT, "rocmax": rocmax.__version__, "scikit-learn": sklearn.__version__, "about": {}}
    path.write_bytes(zipped(sealed(header, content)))


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_wrong_indices_in_a_file_are_refused(tmp_path, suffix):
    model = rocmax.ROCSVC("linear", C=0.01).fit(sparse.csr_array(X), Y)
    model.support_vectors_.indices[0] = 10_000_000
    content = skops.io.dumps(model)
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "schema.json":
                part = part.replace(b".npz", suffix.encode())
            new.writestr(name.replace(".npz", suffix), part)
    write_archive(tmp_path / "m.rocmax", changed.getvalue())
    with pytest.raises(rocmax.model_io.ModelFileError, match=r"is damaged or was modified: .*must be <"):
        rocmax.load(tmp_path / "m.rocmax")


class Attributes:
    """Object whose attributes are those of sparse rows."""


def test_sparse_rows_given_by_their_attributes_are_refused(tmp_path):
    """The loader of objects sets attributes without a check; skops before 0.15 stored sparse arrays like this."""
    model = rocmax.ROCSVC("linear", C=0.01).fit(sparse.csr_array(X), Y)
    rows, model.support_vectors_ = model.support_vectors_, Attributes()
    vars(model.support_vectors_).update(vars(rows))
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "schema.json":
                schema = json.loads(part)
                node = schema["content"]["content"]["support_vectors_"]
                assert (node["__class__"], node["__loader__"]) == ("Attributes", "ObjectNode")
                node.update(__class__="csr_array", __module__="scipy.sparse._csr")
                part = json.dumps(schema)
            new.writestr(name, part)
    write_archive(tmp_path / "m.rocmax", changed.getvalue())
    with pytest.raises(rocmax.model_io.ModelFileError, match=r"sparse rows must be stored .* got ObjectNode"):
        rocmax.load(tmp_path / "m.rocmax")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_skops_reads_a_model_with_the_list_of_trusted_types(name):
    model = clone(MODELS[name]).fit(X, Y)
    content = skops.io.dumps(model)
    trusted = rocmax.trusted_types()
    assert set(skops.io.get_untrusted_types(data=content)) <= set(trusted)
    np.testing.assert_allclose(output(skops.io.loads(content, trusted=trusted), X), output(model, X), atol=1e-12)


def test_the_list_of_trusted_types_has_no_functions_and_nothing_that_a_file_may_not_have():
    names = rocmax.trusted_types()
    assert {name.partition(".")[0] for name in names} == {"rocmax", "numpy", "scipy", "sklearn"}
    assert all(inspect.isclass(pydoc.locate(name)) for name in names)
    assert not {"rocmax.load", "rocmax.report", "builtins.eval", "numpy.load"} & set(names)
    assert "rocmax.boosted.TreeModel" in names


# MLflow has warnings of its own about deprecated parts of other packages.
@pytest.mark.filterwarnings("ignore")
def test_mlflow_saves_and_loads_a_model_with_the_list_of_trusted_types(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow_sklearn = pytest.importorskip("mlflow.sklearn")
    model = clone(MODELS["BoostedClassifier"]).fit(X, Y)
    folder = str(tmp_path / "model")
    options = {"serialization_format": "skops", "pip_requirements": []}
    with pytest.raises(Exception, match="trusted"):
        mlflow_sklearn.save_model(model, str(tmp_path / "other"), **options)
    mlflow_sklearn.save_model(model, folder, skops_trusted_types=rocmax.trusted_types(), **options)
    assert np.array_equal(mlflow_sklearn.load_model(folder).decision_function(X), model.decision_function(X))
