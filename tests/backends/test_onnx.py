"""ONNX graphs give the scores and labels of the models, in onnxruntime."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import rocmax
from helpers.tables import payments
from rocmax.backends.onnx import export_file, to_onnx
from rocmax.workflow.fitting import fit_rows, make_facts
from rocmax.workflow.models import positive_scores
from rocmax.workflow.preprocessing import column_kinds
from rocmax.workflow.settings import FitSettings
from rocmax.workflow.tables import Training
from rocmax.workflow.target import make_target

onnxruntime = pytest.importorskip("onnxruntime")


def fitted(X, labels, positive, name, window):
    kinds = None if scipy.sparse.issparse(X) else column_kinds(X)
    training = Training(X, make_target(labels, positive), None, kinds)
    settings = FitSettings(window, "partial_auc", name, None, 0.3, 0, tune=False)
    found = fit_rows(training, settings)
    return found.model, make_facts(training, settings, "label", found)


def feed(X, features):
    return {
        name: X[[name]].to_numpy() if kind == "number" else X[[name]].fillna("").to_numpy(dtype=object)
        for name, kind in features.items()
    }


@pytest.mark.parametrize("name", ["auto", "auc", "logistic", "svm"])
@pytest.mark.parametrize("positive", ["fraud", "ok"])
@pytest.mark.parametrize("window", [(0.0, 0.1), (0.0, 1.0)])
def test_mixed_tables(tmp_path, name, positive, window):
    frame = payments(500)
    frame["city"] = [f"town {i % 90}" for i in range(500)]  # more categories than are kept
    X = frame[["amount", "age", "country", "<script>alert(1)</script>", "city"]]
    model, about = fitted(X, frame["label"].to_numpy(), positive, name, window)
    rocmax.save(model, tmp_path / "m.rocmax", about=about)
    export_file(tmp_path / "m.rocmax", tmp_path / "m.onnx")
    new = pd.concat([X, X.head(2).assign(city="unseen", country="XX"), X.head(2).assign(city=None, age=np.nan)])
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    scores, labels = session.run(["score", "label"], feed(new, about["features"]))
    np.testing.assert_allclose(scores, positive_scores(model, new, positive), rtol=1e-9, atol=1e-12)
    assert labels.tolist() == model.predict(new).tolist()
    assert (tmp_path / "m.onnx").stat().st_size < 6000


@pytest.mark.parametrize("columns", [["amount", "age"], ["country"]])
def test_tables_of_one_kind(columns):
    frame = payments(300)
    model, about = fitted(frame[columns], frame["label"].to_numpy(), "fraud", "auc", (0.0, 0.2))
    session = onnxruntime.InferenceSession(to_onnx(model, about).SerializeToString())
    scores, _ = session.run(None, feed(frame[columns], about["features"]))
    np.testing.assert_allclose(scores, positive_scores(model, frame[columns], "fraud"), rtol=1e-9, atol=1e-12)


def test_sparse_rows():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4 == 0
    X = scipy.sparse.csr_matrix((rng.normal(size=(200, 6)) + y[:, None]) * (rng.random((200, 6)) < 0.5))
    model, about = fitted(X, y.astype(int), "1", "auto", (0.0, 0.2))
    session = onnxruntime.InferenceSession(to_onnx(model, about).SerializeToString())
    scores, labels = session.run(None, {"X": X.toarray()})
    np.testing.assert_allclose(scores, positive_scores(model, X, "1"), rtol=1e-9, atol=1e-12)
    assert labels.tolist() == model.predict(X).tolist()


def test_what_cannot_be_exported():
    frame = payments(300)
    rows, labels = frame[["amount"]].fillna(0), frame["label"].to_numpy()
    _, about = fitted(rows, labels, "fraud", "auc", (0.0, 0.2))
    with pytest.raises(ValueError, match=r"must be a linear or boosted model .* got GaussianNB"):
        to_onnx(Pipeline([("table", StandardScaler()), ("model", GaussianNB())]).fit(rows, labels), about)
    named = frame[["amount"]].rename(columns={"amount": "score"})
    model, about = fitted(named, frame["label"].to_numpy(), "fraud", "auc", (0.0, 0.2))
    with pytest.raises(ValueError, match="rename the column 'score'"):
        to_onnx(model, about)


def test_additive_models_cannot_be_exported():
    frame = payments(300)
    model, about = fitted(frame[["amount"]], frame["label"].to_numpy(), "fraud", "additive", (0.0, 0.2))
    with pytest.raises(ValueError, match="additive models cannot be exported: the column 'amount' has SplineFeatures"):
        to_onnx(model, about)


def test_without_onnx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'rocmax\[onnx\]'"):
        to_onnx(None, {})
