"""Labels as text without loss, doubtful names of the positive class, and odd names of columns in ONNX."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from helpers.tables import column_kinds, make_model
from rocmax.cli.app import app
from rocmax.data import DataError
from rocmax.tables.onnx import to_onnx
from rocmax.tables.preprocess import MISSING
from rocmax.tables.read import Schema, as_text, make_target


def test_labels_that_differ_in_case_only():
    labels = np.array(["Fraud", "FRAUD", "ok"] * 4)
    with pytest.raises(DataError, match=r"no value 'fraud', but 'FRAUD', 'Fraud', which differ in case; pass one"):
        make_target(labels, "fraud")
    assert make_target(labels, "Fraud").is_positive.sum() == 4
    assert make_target(labels, "OK").positive == "ok"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.sampled_from("fd"))
def test_numbers_as_text_are_exact(values, kind):
    with np.errstate(over="ignore"):
        numbers = np.array(values, dtype=kind)
    texts = as_text(numbers)
    np.testing.assert_array_equal(texts.astype(float).astype(kind), numbers)
    assert len(set(texts)) == len(set(numbers.tolist()))


def test_whole_numbers_have_no_point():
    assert as_text(np.array([1000001.0, 1000002.0, -1.0, -0.0, 0.1])).tolist() == [
        "1000001",
        "1000002",
        "-1",
        "0",
        "0.1",
    ]
    assert as_text(np.array([0.1, 16777216.0], dtype=np.float32)).tolist() == ["0.1", "16777216"]
    assert as_text(np.array([2.0**53])).tolist() == as_text(np.array([2**53])).tolist()


@pytest.mark.parametrize("ending", ["csv", "svmlight"])
def test_large_labels_stay_apart(tmp_path, ending):
    rng = np.random.default_rng(0)
    numbers = [1000001, 1000002] * 20
    x = rng.normal(size=40) + np.arange(40) % 2
    if ending == "csv":
        text = "x,label\n" + "".join(f"{v:.3f},{n}.0\n" for v, n in zip(x, numbers, strict=True))
    else:
        text = "".join(f"{n} 1:{v:.3f}\n" for v, n in zip(x, numbers, strict=True))
    (tmp_path / f"a.{ending}").write_text(text)
    target = ["--target", "label"] if ending == "csv" else []
    options = [*target, "--positive", "1000002", "--no-tune", "--out", str(tmp_path / "m.rocmax")]
    done = CliRunner().invoke(app, ["fit", str(tmp_path / f"a.{ending}"), *options])
    assert done.exit_code == 0, done.output
    assert "positive class: '1000002' (20 rows)" in done.stdout
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "m.rocmax"), str(tmp_path / f"a.{ending}")])
    assert done.exit_code == 0, done.output


def test_the_limit_on_the_command_line(tmp_path):
    import gzip

    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x,label\n" + b"1,0\n2,1\n" * 1000))
    options = ["--target", "label", "--max-bytes", "1000", "--out", str(tmp_path / "m.rocmax")]
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "a.csv.gz"), *options])
    assert done.exit_code == 1
    assert "must not exceed the limit of 1,000 bytes decompressed" in done.stderr


def table(names):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3 == 0
    X = pd.DataFrame(rng.normal(size=(90, len(names))) + y[:, None], columns=names)
    return X, np.where(y, "fraud", "ok")


def about(X):
    return Schema(features=column_kinds(X), positive="fraud", negative="ok")


def scores(model, X, rows):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(model, about(X)).SerializeToString())
    return session.run(["score"], {name: rows[[name]].to_numpy() for name in X.columns})[0]


def test_columns_named_like_inner_values_of_the_graph():
    X, y = table(["rocmax.numbers", "rocmax._filled", "make_score", "rocmax.value_0"])
    model = make_model("logistic", X, "fraud").fit(X, y)
    np.testing.assert_allclose(scores(model, X, X), -model.decision_function(X), rtol=1e-9)


def test_a_column_without_a_name_is_not_exported():
    X, y = table(["", "a"])
    model = make_model("logistic", X, "fraud").fit(X, y)
    with pytest.raises(ValueError, match="nonempty names; got a column named ''; rename it and fit again"):
        to_onnx(model, about(X))


WORDS = pd.DataFrame({"a": ["x", "y", "", "unseen", MISSING]}, dtype=object)


@pytest.mark.parametrize("empty", [None, "", MISSING])
def test_an_empty_text_is_missing_in_model_and_graph(empty):
    _, y = table(["a"])
    X = pd.DataFrame({"a": np.where(y == "fraud", "x", "y")}, dtype=object)
    X.loc[::4, "a"] = empty
    model = make_model("logistic", X, "fraud").fit(X, y)
    expected = -model.decision_function(WORDS)
    np.testing.assert_allclose(scores(model, X, WORDS), expected, rtol=1e-9, atol=1e-12)
    missing = pd.DataFrame({"a": [None, np.nan, ""]}, dtype=object)
    assert np.ptp(model.decision_function(missing)) == 0


def test_an_empty_text_is_missing_to_the_graph_also_if_it_is_a_category_of_the_model():
    """Because predict reads an empty text as a missing value before the model sees it."""
    _, y = table(["a"])
    X = pd.DataFrame({"a": np.where(y == "fraud", "x", "y")}, dtype=object)
    X.loc[::4, "a"] = ""
    steps = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=MISSING),
        OneHotEncoder(handle_unknown="ignore"),
    )
    columns = ColumnTransformer([("numbers", "passthrough", []), ("texts", steps, [0])])
    model = Pipeline([("table", columns), ("model", LogisticRegression())]).fit(X, y)
    read = WORDS.replace("", None).astype(object)
    read = read.where(read.notna(), np.nan)
    np.testing.assert_allclose(scores(model, X, WORDS), -model.decision_function(read), rtol=1e-9, atol=1e-12)
