"""ONNX graphs give the scores and labels of the models, in onnxruntime."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import rocmax
from helpers.tables import payments, training_of
from rocmax.metrics import positive_scores
from rocmax.tables import Columns, Limits, Reading, fit_table, predict
from rocmax.tables.columns import date_features
from rocmax.tables.fit import FitSettings, evaluated, fit_rows
from rocmax.tables.onnx import SPACES, export_file, to_onnx
from rocmax.tables.tune import MODELS, PACKAGES

onnxruntime = pytest.importorskip("onnxruntime")


def fitted(X, labels, positive, name, window):
    training = training_of(X, labels, positive)
    limits = Limits(window[1], min_fpr=window[0], measure="partial_auc")
    settings = FitSettings(limits, name, 0.3, 0, tune=False)
    made = evaluated(training, settings, fit_rows(training, settings), [], lambda *notes: None)
    return made.model, made.facts


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
    rocmax.save(model, tmp_path / "m.rocmax", about=about.to_dict())
    export_file(tmp_path / "m.rocmax", tmp_path / "m.onnx")
    new = pd.concat([X, X.head(2).assign(city="unseen", country="XX"), X.head(2).assign(city=None, age=np.nan)])
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    scores, labels = session.run(["score", "label"], feed(new, about.features))
    np.testing.assert_allclose(scores, positive_scores(model, new, pos_label=positive), rtol=1e-9, atol=1e-12)
    assert labels.tolist() == model.predict(new).tolist()
    assert (tmp_path / "m.onnx").stat().st_size < 7000


@pytest.mark.parametrize("columns", [["amount", "age"], ["country"]])
def test_tables_of_one_kind(columns):
    frame = payments(300)
    model, about = fitted(frame[columns], frame["label"].to_numpy(), "fraud", "auc", (0.0, 0.2))
    session = onnxruntime.InferenceSession(to_onnx(model, about).SerializeToString())
    scores, _ = session.run(None, feed(frame[columns], about.features))
    np.testing.assert_allclose(scores, positive_scores(model, frame[columns], pos_label="fraud"), rtol=1e-9, atol=1e-12)


def test_sparse_rows():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4 == 0
    X = scipy.sparse.csr_matrix((rng.normal(size=(200, 6)) + y[:, None]) * (rng.random((200, 6)) < 0.5))
    model, about = fitted(X, y.astype(int), "1", "auto", (0.0, 0.2))
    session = onnxruntime.InferenceSession(to_onnx(model, about).SerializeToString())
    scores, labels = session.run(None, {"X": X.toarray()})
    np.testing.assert_allclose(scores, positive_scores(model, X, pos_label="1"), rtol=1e-9, atol=1e-12)
    assert labels.tolist() == model.predict(X).tolist()


def test_what_cannot_be_exported():
    frame = payments(300)
    rows, labels = frame[["amount"]].fillna(0), frame["label"].to_numpy()
    _, about = fitted(rows, labels, "fraud", "auc", (0.0, 0.2))
    with pytest.raises(ValueError, match=r"must be a linear, additive or boosted model .* got GaussianNB"):
        to_onnx(Pipeline([("table", StandardScaler()), ("model", GaussianNB())]).fit(rows, labels), about)
    named = frame[["amount"]].rename(columns={"amount": "score"})
    model, about = fitted(named, frame["label"].to_numpy(), "fraud", "auc", (0.0, 0.2))
    with pytest.raises(ValueError, match="rename the column 'score'"):
        to_onnx(model, about)


# The last two are known to no model; the others are trimmed, missing or known, as the table of the fit has them.
TEXTS = [
    "FR",
    " FR",
    "FR\t",
    "\u00a0DE ",
    "New York",
    " New York",
    "New  York",
    "é (.*)|?",
    "",
    "  ",
    "?",
    " ? ",
    "none",
]
TEXTS += ["NA", " NA", "nan", "None ", "(missing)", "12", "3.0", "True", "12.0", " 3", "TRUE", "fr", "unseen"]
# Forms of known categories, and unknown ones: only in new rows.
NEW_TEXTS = TEXTS[-5:]
FAMILIES = ["linear", "additive", "boosted", "ensemble"]


def messy(n_rows, seed):
    """A table of text: spaces, marks for missing values, and numbers up to the largest."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n_rows) < 0.3
    fields = {}
    for name in "abc":
        numbers = rng.normal(size=n_rows) * 10.0 ** rng.integers(-3, 4) + positive
        fields[name] = np.array([repr(number) for number in numbers.tolist()], dtype=object)
    fields["b"][rng.random(n_rows) < 0.2] = "-999"
    fields["c"][rng.random(n_rows) < 0.1] = ""
    fields["few"] = rng.choice(np.array(["3.5", "1"], dtype=object), n_rows)
    fields["few"][::9], fields["few"][::7] = "", "0"
    for name in ("shop", "city"):
        fields[name] = rng.choice(np.array(TEXTS[:-5], dtype=object), n_rows)
        fields[name][positive & (rng.random(n_rows) < 0.3)] = "FR "
    fields["day"] = np.array([f"2024-{month:02}-{day:02}" for month, day in rng.integers(1, 28, (n_rows, 2)) % 12 + 1])
    return pd.DataFrame(fields).assign(label=np.where(positive, "yes", "no"))


def hostile(n_rows, seed):
    frame, rng = messy(n_rows, seed), np.random.default_rng(seed)
    for name in ("a", "b", "c", "few"):
        odd = rng.choice(["1e30", "-1e100", "7e99", "5e-324", "-0.0", "-999.0", "", "NaN"], n_rows)
        frame[name] = np.where(rng.random(n_rows) < 0.1, odd, frame[name])
    for name in ("shop", "city"):
        frame[name] = np.where(rng.random(n_rows) < 0.2, rng.choice(NEW_TEXTS, n_rows), frame[name])
    return frame.drop(columns="label")


def fields(model, frame):
    """The inputs of a graph from the fields of a csv file, with the features of dates that the model computes."""
    found = {}
    days = pd.to_datetime(frame["day"])
    for name, kind in model.facts.features.items():
        if name.startswith("day "):
            parts = date_features("day", days, pd.Timestamp(model.facts.dates["day"].reference))
            found[name] = parts[name][:, np.newaxis]
        elif kind == "text":
            found[name] = frame[[name]].to_numpy(dtype=object)
        else:
            found[name] = frame[[name]].replace("", "nan").to_numpy(dtype=np.float64, copy=True)
    return found


@pytest.fixture(scope="module", params=FAMILIES)
def messy_model(request, tmp_path_factory):
    if request.param in PACKAGES:
        pytest.importorskip("lightgbm")
    path = tmp_path_factory.mktemp("messy") / "train.csv"
    messy(1500, 0).to_csv(path, index=False)
    options = {
        "model": request.param,
        "tune": False,
        "max_fpr": 0.2,
        "reading": Reading(na=["?", "none", "-999", "0"]),
        "columns": Columns(date="day"),
    }
    return fit_table(path, target="label", **options)


def test_the_graph_gives_what_predict_gives(messy_model, tmp_path):
    """Spaces, marks for missing values, unseen categories and extreme numbers, from fields of a csv file."""
    messy_model.save(tmp_path / "m.rocmax")
    export_file(tmp_path / "m.rocmax", tmp_path / "m.onnx")
    new = hostile(4000, 1)
    new.to_csv(tmp_path / "new.csv", index=False)
    expected = predict(messy_model, tmp_path / "new.csv")
    inputs = fields(messy_model, new)
    assert {"day month", "shop", "a"} <= inputs.keys()
    scores, labels = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(["score", "label"], inputs)
    np.testing.assert_allclose(scores, expected["score"], rtol=1e-9, atol=1e-9)
    assert labels.tolist() == expected["label"].tolist()
    assert set(labels) == {"yes", "no"}


@pytest.mark.parametrize("name", MODELS[1:])
def test_every_model_of_fit_is_exported(name):
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    table = payments(400).drop(columns=["customer", "since"])
    model = fit_table(table, target="label", positive="fraud", model=name, tune=False)
    session = onnxruntime.InferenceSession(to_onnx(model.model, model.facts).SerializeToString())
    inputs = feed(table, model.facts.features)
    assert session.run(["label"], inputs)[0].tolist() == predict(model, table)["label"].tolist()


def test_rows_that_predict_refuses_have_no_score_and_no_label(messy_model):
    new = hostile(60, 2)
    inputs = fields(messy_model, new)
    inputs["a"][::3], inputs["few"][1::3] = np.inf, -2e100
    session = onnxruntime.InferenceSession(to_onnx(messy_model.model, messy_model.facts).SerializeToString())
    scores, labels = session.run(["score", "label"], inputs)
    refused = np.arange(60) % 3 < 2
    np.testing.assert_array_equal(np.isnan(scores), refused)
    assert set(labels[refused]) == {""}
    assert set(labels[~refused]) <= {"yes", "no"}
    with pytest.raises(ValueError, match="inf"):
        predict(messy_model, new.assign(a=np.inf, b=1.0, c=1.0, few=1.0))
    with pytest.raises(ValueError, match="2e"):
        predict(messy_model, new.assign(a=1.0, b=1.0, c=1.0, few=-2e100))


def test_the_spaces_of_the_graph_are_those_of_arrow():
    pa, pc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.compute")
    chars = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
    trimmed = pc.utf8_trim_whitespace(pa.array(chars)).to_pylist()
    spaces = re.compile(re.sub(r"\\x\{(\w+)\}", lambda found: f"\\u{int(found[1], 16):04x}", SPACES))
    assert [char for char, rest in zip(chars, trimmed, strict=True) if not rest] == [
        c for c in chars if spaces.fullmatch(c)
    ]


def test_additive_models_of_columns_with_few_values():
    frame = payments(400).assign(empty=np.nan, two=np.arange(400) % 2.0, huge=np.arange(400) * 2e97)
    X = frame[["amount", "age", "empty", "two", "huge"]]
    model, about = fitted(X, frame["label"].to_numpy(), "fraud", "additive", (0.0, 0.2))
    session = onnxruntime.InferenceSession(to_onnx(model, about).SerializeToString())
    scores, labels = session.run(None, feed(X, about.features))
    np.testing.assert_allclose(scores, positive_scores(model, X, pos_label="fraud"), rtol=1e-9, atol=1e-12)
    assert labels.tolist() == model.predict(X).tolist()


def test_without_onnx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'rocmax\[onnx\]'"):
        to_onnx(None, {})
