"""`rocmax export`: what onnxruntime gives is what `rocmax predict` gives."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline

import rocmax
from helpers.commands import run
from rocmax import model_io
from rocmax.tables.preprocess import preprocessing


def test_export_gives_the_scores_of_predict(folder, fitted):
    onnxruntime = pytest.importorskip("onnxruntime")
    path, _ = fitted
    done = run("export", path, folder / "model.onnx")
    assert (done.stdout, done.stderr) == ("", f"exported: {folder / 'model.onnx'}\n")
    run("predict", path, folder / "test.csv", "--out", folder / "expected.csv")
    expected, test = pd.read_csv(folder / "expected.csv"), pd.read_csv(folder / "test.csv")
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    rows = {}
    for entry in session.get_inputs():
        column = test[[entry.name]]
        rows[entry.name] = column.fillna("").to_numpy(object) if "string" in entry.type else column.to_numpy(float)
    assert sorted(rows) == sorted(["amount", "age", "country", "online", "<script>alert(1)</script>"])
    scores, labels = session.run(["score", "label"], rows)
    np.testing.assert_allclose(scores, expected["score"], rtol=1e-9, atol=1e-12)
    assert labels.tolist() == expected["label"].tolist()


def test_what_cannot_be_exported(folder, fitted):
    pytest.importorskip("onnx")
    out = folder / "never.onnx"
    frame = pd.read_csv(folder / "train.csv")
    bayes = Pipeline([("table", preprocessing({"amount": "number", "age": "number"}, {})), ("model", GaussianNB())])
    bayes.fit(frame[["amount", "age"]], frame["label"])
    rocmax.save(bayes, folder / "bayes.rocmax", about=model_io.load_with_facts(fitted[0])[1])
    done = run("export", folder / "bayes.rocmax", out, code=1)
    assert (
        "the model must be a linear, additive or boosted model of `rocmax fit`, or an ensemble; got GaussianNB"
        in done.stderr
    )
    done = run("export", folder / "train.csv", out, code=1)
    assert "is not a model file of rocmax" in done.stderr
    done = run("export", fitted[0], folder / "none" / "m.onnx", code=1)
    assert "is not a directory, so m.onnx cannot be written there" in done.stderr
    run("export", fitted[0], code=2)
    program = "import sys\nsys.modules['onnx'] = None\nfrom rocmax.cli import main\nmain()"
    command = [sys.executable, "-c", program, "export", str(fitted[0]), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: exporting models needs onnx: pip install 'rocmax[onnx]'")
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()
