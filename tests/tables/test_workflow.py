"""The workflow in Python, as a user calls it; and the command line, which gives the same models and numbers."""

from __future__ import annotations

import io
import json
import pickle
import sys
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import rocmax
from helpers.tables import SCRIPT, payments
from rocmax import metrics
from rocmax.cli.app import app
from rocmax.data import DataError
from rocmax.data import read as _csv
from rocmax.linear.auc import AUCClassifier
from rocmax.linear.partial_auc import PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.tables import (
    Columns,
    Limits,
    ParameterError,
    Running,
    TableModel,
    compare_models,
    evaluate,
    fit_table,
    load_model,
    predict,
    write_predictions,
    write_report,
)
from rocmax.tables import read as tables
from rocmax.tables import tune as tuning
from rocmax.tables.tune import TunedPipeline

GOAL = {"target": "label", "positive": "fraud", "max_fpr": 0.1, "columns": Columns(drop=["customer", "since"])}
FLAGS = ["--target", "label", "--positive", "fraud", "--max-fpr", "0.1", "--drop", "customer", "--drop", "since"]


def frame(n_rows=400, seed=0):
    table = payments(n_rows, seed)
    return table.assign(online=table["online"] == "true")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with train.csv and test.csv, and an untuned model of the first."""
    folder = tmp_path_factory.mktemp("workflow")
    frame().to_csv(folder / "train.csv", index=False)
    frame(300, 1).to_csv(folder / "test.csv", index=False)
    return folder, fit_table(folder / "train.csv", model="linear", tune=False, **GOAL)


def invoke(*args, code=0):
    done = CliRunner().invoke(app, [*map(str, args)])
    assert done.exit_code == code, done.output
    return done


def said(done):
    """What a command printed, without the frame and the lines of a terminal."""
    return " ".join((done.stdout + done.stderr).replace("│", " ").split())


def coef(model):
    return model.model.estimator_.named_steps["model"].coef_


def plain(facts):
    return {name: value for name, value in facts.items() if name not in ("fitted", "seconds", "out")}


# Tables of every kind give one model.


@pytest.mark.parametrize("form", ["pandas", "index", "polars", "parquet", "tsv.gz", "text of a path"])
def test_the_form_of_the_table_does_not_matter(made, tmp_path, form):
    folder, expected = made
    table = frame()
    if form == "index":
        table = table.set_index(np.arange(400) // 2)
    elif form == "polars":
        table = pl.from_pandas(table)
    elif form == "parquet":
        table.to_parquet(tmp_path / "a.parquet")
        table = tmp_path / "a.parquet"
    elif form == "tsv.gz":
        table.to_csv(tmp_path / "a.tsv.gz", sep="\t", index=False)
        table = tmp_path / "a.tsv.gz"
    elif form == "text of a path":
        table = str(folder / "train.csv")
    found = fit_table(table, model="linear", tune=False, **GOAL)
    np.testing.assert_allclose(coef(found), coef(expected), rtol=1e-12)
    assert found.held_out == pytest.approx(expected.held_out)
    assert found.facts.features == expected.facts.features


def test_labels_that_are_not_text():
    table = frame().assign(label=lambda t: t["label"] == "fraud")
    for positive in (None, True, "True", "true"):
        model = fit_table(table, tune=False, **{**GOAL, "positive": positive})
        assert (model.positive, model.facts.negative) == ("True", "False")
    numbers = table.assign(label=table["label"].astype(int))
    for positive in (1, 1.0, "1", None):
        assert fit_table(numbers, tune=False, **{**GOAL, "positive": positive}).positive == "1"


def test_an_svmlight_file(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4 == 0
    X = (rng.normal(size=(200, 5)) + y[:, None]) * (rng.random((200, 5)) < 0.6)
    dump_svmlight_file(X, y.astype(int), str(tmp_path / "a.svm"), zero_based=False)
    model = fit_table(tmp_path / "a.svm", max_fpr=0.2, tune=False)
    assert model.facts.features is None
    assert len(predict(model, tmp_path / "a.svm")) == 200
    assert evaluate(model, tmp_path / "a.svm").rows == {"positive": 50, "negative": 150}
    with pytest.raises(DataError, match="the model was fitted to an svmlight file, but the table has named columns"):
        predict(model, frame())


# Results.


def test_a_model_is_a_classifier_of_tables(made):
    _, model = made
    table = frame()
    found = predict(model, table, proba=True)
    assert model.classes_.tolist() == ["fraud", "ok"]
    assert model.pos_label == "fraud"
    assert (model.min_fpr, model.max_fpr, model.min_tpr) == (0.0, 0.1, 0.0)
    # Higher means positive, although "fraud" is the smaller label.
    scores = model.positive_scores(table)
    assert roc_auc_score(table["label"] == "fraud", scores) > 0.7
    # scikit-learn expects the sign of the larger label.
    assert np.array_equal(model.decision_function(table), -scores)
    assert np.array_equal(scores, found["score"])
    assert model.predict(table).tolist() == found["label"].tolist()
    assert np.array_equal(model.predict(table) == "fraud", scores > 0)
    np.testing.assert_allclose(model.predict_proba(table), np.column_stack([found.probability, 1 - found.probability]))


@pytest.mark.parametrize("kind", [int, float, bool])
def test_the_labels_of_a_model_have_the_type_of_the_target(kind):
    table = frame().assign(label=lambda rows: (rows["label"] == "fraud").astype(kind))
    model = fit_table(table, model="auc", tune=False, **{**GOAL, "positive": kind(1)})
    assert model.classes_.tolist() == [kind(0), kind(1)]
    assert model.predict(table).dtype == table["label"].to_numpy().dtype
    assert type(model.pos_label) is kind
    page = rocmax.report(model, table, table["label"])
    assert "amount" in page


def test_a_model_in_a_notebook(made):
    folder, model = made
    page = model._repr_html_()
    for text in (
        "TableModel(&#x27;linear&#x27;",
        "300 train, 100 held out",
        "95 % interval",
        model.notes[0],
        "Pipeline",
    ):
        assert text in page
    assert SCRIPT not in page
    marked = TableModel(model.model, replace(model.facts, positive=SCRIPT), notes=[SCRIPT], path=folder / SCRIPT)
    assert SCRIPT not in marked._repr_html_()
    model.save(folder / "shown.rocmax")
    assert str(folder / "shown.rocmax") in load_model(folder / "shown.rocmax")._repr_html_()


def test_a_report_of_a_model_from_python(made):
    _, model = made
    table = frame().iloc[model.held_out_rows]
    page = rocmax.report(model, table, table["label"], pos_label="fraud")
    assert "false-positive rates from 0 % to 10 %" in page
    assert "amount" in page
    other = make_pipeline(make_column_transformer(("passthrough", ["amount"])), LogisticRegression())
    models = {"ours": model, "amount only": other.fit(table, table["label"])}
    assert "amount only" in rocmax.report(models, table, table["label"], pos_label="fraud")
    with pytest.raises(DataError, match="column"):
        rocmax.report(model, table[["amount"]], table["label"], pos_label="fraud")


def test_a_model_and_its_facts(made, tmp_path):
    folder, model = made
    assert repr(model) == "TableModel('linear', positive='fraud', max_fpr=0.1)"
    assert model.facts.rows == {"train": 300, "held out": 100}
    assert model.held_out_rows.size == 100
    assert model.held_out["low"] <= model.held_out["value"] <= model.held_out["high"]
    # Scores have the threshold of the classifier subtracted, so that it is zero on their scale.
    assert (model.threshold, model.facts.offset) == (0.0, model.model.threshold_)
    few, narrow = model.notes
    assert few == "only 14 positive held-out rows: the measure is uncertain"
    assert narrow.endswith("may be too narrow: its region contains about 8.6 negatives; at least 10 are needed")
    model.save(tmp_path / "mine.rocmax")
    again = load_model(tmp_path / "mine.rocmax")
    assert again.name == "mine"
    assert again.facts == model.facts
    assert again.held_out_rows is None
    pd.testing.assert_frame_equal(predict(again, folder / "test.csv"), predict(model, folder / "test.csv"))


def test_evaluate(made):
    folder, model = made
    test = frame(300, 1)
    result = evaluate(model, test)
    y = (test["label"] == "fraud").to_numpy()
    np.testing.assert_array_equal(result.is_positive, y)
    assert result.measures["roc_auc"]["value"] == pytest.approx(roc_auc_score(y, result.scores))
    assert result.measures["partial_auc"]["value"] == pytest.approx(
        metrics.partial_auc_score(y, result.scores, max_fpr=0.1)
    )
    assert result.threshold["fp"] == int(np.sum(~y & (result.scores > 0)))
    assert json.loads(json.dumps(result.to_dict())) == evaluate(model, folder / "test.csv").to_dict()
    renamed = test.rename(columns={"label": "class"})
    assert evaluate(model, renamed, target="class").to_dict() == result.to_dict()


def test_predict(made, tmp_path):
    folder, model = made
    test = frame(300, 1).drop(columns="label").set_index(np.arange(300) + 7)
    found = predict(model, test)
    assert found.index.equals(test.index)
    assert found["label"].tolist() == np.where(found["score"] > 0, "fraud", "ok").tolist()
    counts = []
    summary = write_predictions(model, test, tmp_path / "a.csv", progress=counts.append)
    assert summary.rows == sum(counts) == 300
    assert summary.positive == int((found["score"] > 0).sum())
    written = pd.read_csv(tmp_path / "a.csv", float_precision="round_trip")
    np.testing.assert_array_equal(written["score"], found["score"])
    content = io.BytesIO()
    write_predictions(model, folder / "test.csv", content)
    assert content.getvalue() == (tmp_path / "a.csv").read_bytes()
    write_predictions(model, folder / "test.csv", tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), written, check_dtype=False)


def test_report(made, tmp_path):
    _, model = made
    write_report(model, frame(300, 1), tmp_path / "a.html")
    other = fit_table(frame(), model="logistic", tune=False, **GOAL)
    write_report([model, other], frame(300, 1), str(tmp_path / "b.html"))
    assert "the table" in (tmp_path / "a.html").read_text()
    assert "LogisticRegression" in (tmp_path / "b.html").read_text()
    with pytest.raises(ValueError, match="at least one model"):
        write_report([], frame(), tmp_path / "c.html")


def test_notes_come_at_once_and_with_the_result():
    heard = []
    model = fit_table(frame(), target="label", positive="fraud", tune=False, running=Running(notify=heard.append))
    assert heard == model.notes
    table = frame().assign(id=[f"id {i}" for i in range(400)])
    note, family, few, _ = fit_table(table, tune=False, **GOAL).notes
    assert few == "only 14 positive held-out rows: the measure is uncertain"
    assert family == "auto is linear: families are compared only with tune=True"
    assert (
        note
        == "'id' is left out (identifier): 400 different values in 400 rows; to use it: columns=Columns(text=['id'])"
    )


# What a name means, in a fit and in a comparison.


@pytest.mark.slow
def test_linear_is_decided_once():
    X, y = frame()[["amount", "age"]], frame()["label"].to_numpy()
    kinds = {"amount": "number", "age": "number"}
    cases = [
        (1.0, "roc_auc", True, AUCClassifier),
        (0.1, "partial_auc", True, PartialAUCClassifierCV),
        (0.1, "tpr_at_fpr", True, PartialAUCClassifier),
        (0.1, "partial_auc", False, PartialAUCClassifier),
    ]
    for max_fpr, measure, tune, kind in cases:
        limits = Limits(max_fpr, measure=measure)
        model = TunedPipeline("linear", kinds=kinds, limits=limits, positive="fraud", tune=tune).fit(X, y)
        assert type(model.pipeline_.named_steps["model"]) is kind
        assert (model.tuning_ is not None) == tune


@pytest.mark.parametrize("name", [pytest.param("linear", marks=pytest.mark.slow), "logistic"])
def test_a_comparison_fits_what_a_fit_fits(monkeypatch, name):
    made_by = []
    fit = TunedPipeline.fit
    monkeypatch.setattr(TunedPipeline, "fit", lambda self, *rows: made_by.append(fit(self, *rows)) or self)
    table = frame()
    fit_table(table, model=name, **GOAL)
    found = compare_models(table, models=[name], n_splits=2, **GOAL)
    fitted, *compared = made_by
    assert len(compared) == 2
    assert all(model.get_params() == fitted.get_params() for model in compared)
    labels = table["label"].to_numpy()
    splits = StratifiedShuffleSplit(2, test_size=0.3, random_state=0).split(labels, labels)
    for model, (_, test), score in zip(compared, splits, found.table.loc[name, "scores"], strict=True):
        assert model.tuning_["folds"] == 10
        scores = -model.decision_function(table[list(fitted.kinds)].iloc[test].astype({"online": float}))
        assert metrics.partial_auc_score(labels[test] == "fraud", scores, max_fpr=0.1) == pytest.approx(score)


def test_a_comparison_keeps_groups_together_in_its_folds(monkeypatch):
    asked = []
    splits = tuning.tuning_splits
    monkeypatch.setattr(tuning, "tuning_splits", lambda *args: asked.append(args[1]) or splits(*args))
    goal = {**GOAL, "columns": Columns(drop="since")}
    compare_models(frame(), models=["logistic"], group="customer", n_splits=2, **goal)
    assert [groups.size for groups in asked] != []
    assert all(set(groups) <= set(frame()["customer"]) for groups in asked)


def test_results_of_a_comparison(tmp_path):
    done = []
    options = {"models": "logistic", "n_splits": 2, "tune": False, "store": tmp_path / "store", **GOAL}
    found = compare_models(frame(), running=Running(progress=lambda *args: done.append(args)), **options)
    assert (found.measure, found.positive) == ("partial_auc", "fraud")
    assert done == [("fits", count, 2) for count in range(3)]
    found.save(tmp_path / "a.csv")
    assert list(pd.read_csv(tmp_path / "a.csv").columns)[-2:] == ["split_1", "split_2"]
    assert found.to_dict()[0]["p_value"] is None
    assert compare_models(frame(), **options).to_dict() == found.to_dict()


# Done once.


def test_headers_and_kinds_are_worked_out_once(made, monkeypatch):
    folder, model = made
    headers, kinds = [], []
    header, plan_values = _csv.csv_header, tables.plan_values
    monkeypatch.setattr(_csv, "csv_header", lambda *args: headers.append(args) or header(*args))
    monkeypatch.setattr(tables, "plan_values", lambda X, *args: kinds.append(X) or plan_values(X, *args))
    for number, call in enumerate(
        [
            lambda: fit_table(folder / "train.csv", group="customer", **{**GOAL, "tune": False}),
            lambda: compare_models(folder / "train.csv", models=["auc"], n_splits=2, tune=False, **GOAL),
            lambda: evaluate(model, folder / "test.csv"),
            lambda: predict(model, folder / "test.csv"),
        ],
        1,
    ):
        call()
        assert len(headers) == number
    assert len(kinds) == 2


# The command line is the same.


@pytest.mark.slow
def test_fits_are_those_of_the_command_line(made, tmp_path):
    folder, _ = made
    options = [*FLAGS, "--model", "linear", "--confidence", "0.9", "--seed", "3", "--test-size", "0.3"]
    done = invoke("fit", folder / "train.csv", *options, "--json", "--out", tmp_path / "cli.rocmax")
    settings = {"model": "linear", "confidence": 0.9, "random_state": 3, "test_size": 0.3}
    model = fit_table(folder / "train.csv", **settings, **GOAL)
    assert plain(json.loads(done.stdout)) == plain(json.loads(json.dumps(model.facts.to_dict())))
    saved = load_model(tmp_path / "cli.rocmax")
    np.testing.assert_array_equal(coef(saved), coef(model))
    model.save(tmp_path / "api.rocmax")
    printed = json.loads(invoke("evaluate", tmp_path / "cli.rocmax", folder / "test.csv", "--json").stdout)
    found = evaluate(model, folder / "test.csv").to_dict()
    assert {**printed, "model": "linear"} == json.loads(json.dumps(found))
    content = io.BytesIO()
    write_predictions(model, folder / "test.csv", content)
    assert invoke("predict", tmp_path / "cli.rocmax", folder / "test.csv").stdout.encode() == content.getvalue()
    # Models of both kinds are read by both.
    assert rocmax.load(tmp_path / "api.rocmax").threshold_ == saved.facts.offset


def test_comparisons_are_those_of_the_command_line(made):
    folder, _ = made
    options = ["--models", "auc,logistic", "--splits", "2", "--no-tune", "--json"]
    printed = json.loads(invoke("compare", folder / "train.csv", *FLAGS, *options).stdout)
    found = compare_models(folder / "train.csv", models=["auc", "logistic"], n_splits=2, tune=False, **GOAL).to_dict()
    for entry in printed["models"] + found:
        del entry["seconds"]
    assert printed["models"] == found
    assert {column["name"]: column["used"] for column in printed["columns"]}["customer"] is False


# Errors: parameters in Python, flags on the command line.

CALLS = [
    ({"positive": None}, "positive=...", ["--target", "label"], "--positive", 2),
    ({"target": None}, "pass the column with the labels: target=..., one of", [], "labels: --target, one of", 1),
    (
        {"limits": Limits(min_fpr=0.2)},
        "min_fpr must be less than max_fpr; got 0.2 and 0.1",
        ["--min-fpr", "0.2"],
        None,
        2,
    ),
    (
        {"max_fpr": 1.0, "limits": Limits(min_fpr=0.1)},
        "min_fpr requires a limit: max_fpr=...",
        ["--max-fpr", "1"],
        None,
        2,
    ),
    (
        {"model": "forest"},
        "model must be one of 'auto', 'linear', 'additive',",
        ["--model", "forest"],
        None,
        2,
    ),
    (
        {"limits": Limits(measure="accuracy")},
        "measure must be one of",
        ["--measure", "accuracy"],
        "--measure must be one of",
        2,
    ),
    ({"confidence": 2.0}, "confidence must be a number above 0 and below 1; got 2", ["--confidence", "2"], None, 2),
    ({"group": "label"}, "group must be another column than target", ["--group", "label"], None, 2),
]


@pytest.mark.parametrize(("change", "python", "flags", "command", "code"), CALLS)
def test_errors_name_parameters_or_flags(made, tmp_path, change, python, flags, command, code):
    folder, _ = made
    kind = ParameterError if code == 2 else DataError
    with pytest.raises(kind) as caught:
        fit_table(frame(), **{**GOAL, **change})
    assert python in str(caught.value)
    assert "--" not in str(caught.value)
    base = [] if "target" in change else ["--target", "label"]
    base += [] if {"positive", "target"} & set(change) else ["--positive", "fraud", "--max-fpr", "0.1"]
    more = ["--min-fpr", "0.1"] if change.get("max_fpr") == 1.0 else []
    done = invoke("fit", folder / "train.csv", *base, *flags, *more, "--out", tmp_path / "m", code=code)
    text = said(done)
    if command is None:
        command = python
        for name in ("min_fpr", "max_fpr", "model", "confidence", "group", "target"):
            command = command.replace(f"{name}=...", name)
            command = " ".join(
                f"--{word.replace('_', '-')}" if word.rstrip(",;") == name else word for word in command.split()
            )
    assert command in text
    assert "=..." not in text


BAD_VALUES = [
    ({"max_fpr": 2}, "max_fpr must be a number from 0 to 1; got 2"),
    ({"max_fpr": "0.1"}, "max_fpr must be a number from 0 to 1; got '0.1'"),
    ({"test_size": 0.99}, "test_size must be a number from 0.05 to 0.9; got 0.99"),
    ({"random_state": -1}, "random_state must be an integer from 0"),
    ({"random_state": None}, "random_state must be an integer from 0"),
    ({"random_state": 2**32}, "random_state must be an integer from 0"),
    (
        {"limits": Limits(measure="tpr_at_fpr"), "max_fpr": 1.0},
        r"limits=Limits\(measure='tpr_at_fpr'\) requires a limit: max_fpr=\.\.\.",
    ),
    ({"confidence": 0.9, "max_fpr": 1.0}, r"confidence requires a limit: max_fpr=\.\.\."),
]


@pytest.mark.parametrize(("change", "message"), BAD_VALUES)
def test_bad_values_come_before_the_table_is_read(change, message):
    with pytest.raises(ParameterError, match=message):
        fit_table("no such file.csv", **{**GOAL, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": []}, "models must be one of"),
        ({"models": ["auto", "forest"]}, "models must be one of 'auto', 'linear', 'additive', .*; got 'forest'"),
        ({"models": ["auc", "auc"]}, "models must be distinct names; got 'auc' more than once"),
        ({"n_splits": 1}, "n_splits must be an integer of at least 2; got 1"),
        ({"running": Running(n_jobs=0)}, "n_jobs must be a positive integer, or -1 for all processors; got 0"),
    ],
)
def test_bad_comparisons_come_before_the_table_is_read(change, message):
    with pytest.raises(ParameterError, match=message):
        compare_models("no such file.csv", **{**GOAL, **change})


def test_other_errors_are_written_with_flags_too(made, tmp_path):
    folder, model = made
    model.save(tmp_path / "m.rocmax")
    (tmp_path / "zero.svm").write_text("1 0:1\n-1 1:1\n" * 10)
    assert "pass --zero-based" in said(invoke("fit", tmp_path / "zero.svm", "--out", tmp_path / "n", code=1))
    with pytest.raises(DataError, match=r"pass reading=Reading\(zero_based=True\)"):
        fit_table(tmp_path / "zero.svm")
    odd = frame(300, 1)
    odd["age"] = odd["age"].astype(object)
    odd.loc[5, "age"] = "old"
    odd.to_csv(tmp_path / "odd.csv", index=False)
    text = said(invoke("predict", tmp_path / "m.rocmax", tmp_path / "odd.csv", code=1))
    assert text.endswith(
        "line 7: column 'age' must be numeric, as in earlier rows; got 'old'; to read it as a missing value: --na old"
    )
    small = said(invoke("evaluate", tmp_path / "m.rocmax", folder / "test.csv", "--max-bytes", "10", code=1))
    assert small.endswith("increase the limit (--max-bytes)")


def test_notes_are_written_with_flags(made, tmp_path):
    table = frame().assign(**{"my id": [f"id {i}" for i in range(400)]})
    table.to_csv(tmp_path / "a.csv", index=False)
    done = invoke("fit", tmp_path / "a.csv", *FLAGS, "--no-tune", "--out", tmp_path / "m")
    assert "'my id' is left out (identifier): 400 different values in 400 rows; to use it: --text 'my id'" in said(done)


def test_an_error_that_was_pickled_is_still_written_with_flags(monkeypatch, tmp_path):
    with pytest.raises(DataError, match="target=") as caught:
        fit_table(frame())
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)

    def fail(*args, **options):
        raise error

    monkeypatch.setattr(rocmax.tables, "fit_table", fail)
    assert "--target" in said(invoke("fit", tmp_path / "a.csv", "--target", "y", "--out", tmp_path / "m", code=1))


# Packages and files, before the work.


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("pyarrow", "data", lambda model, path: fit_table("none.csv", **GOAL)),
        ("pandas", "data", lambda model, path: compare_models("none.csv", **GOAL)),
        ("lightgbm", "boost", lambda model, path: compare_models("none.csv", models=["auc", "lightgbm"], **GOAL)),
        ("jinja2", "cli", lambda model, path: write_report(model, "none.csv", path / "a.html")),
        ("pyarrow", "data", lambda model, path: evaluate(model, "none.csv")),
        ("pyarrow", "data", lambda model, path: write_predictions(model, "none.csv", path / "a.csv")),
    ],
)
def test_missing_packages_are_named_before_the_work(made, tmp_path, monkeypatch, package, extra, call):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package}: pip install 'rocmax\[{extra}\]'"):
        call(made[1], tmp_path)


def test_outputs_are_checked_before_the_work(made, tmp_path):
    _, model = made
    frame(50, 1).to_csv(tmp_path / "a.csv", index=False)
    content = (tmp_path / "a.csv").read_bytes()
    with pytest.raises(ValueError, match="the output must not be an input"):
        write_predictions(model, tmp_path / "a.csv", tmp_path / "a.csv")
    with pytest.raises(ValueError, match="the output must not be an input"):
        write_report(model, tmp_path / "a.csv", str(tmp_path / "a.csv"))
    with pytest.raises(ValueError, match="the output must not be an input"):
        compare_models(tmp_path / "a.csv", store=tmp_path / "a.csv", **GOAL)
    assert (tmp_path / "a.csv").read_bytes() == content
    for call in (write_predictions, write_report):
        with pytest.raises(FileNotFoundError, match="is not a directory"):
            call(model, "none.csv", tmp_path / "no" / "such.csv")
    with pytest.raises(DataError, match=r"must end in \.csv, \.parquet or \.jsonl"):
        write_predictions(model, "none.csv", tmp_path / "a.txt")
    with pytest.raises(ParameterError, match="escape_formulas applies to csv files only"):
        write_predictions(model, "none.csv", tmp_path / "a.parquet", escape_formulas=True)


def test_models_without_facts_are_not_loaded(tmp_path):
    rocmax.save(AUCClassifier().fit([[0], [1]], [0, 1]), tmp_path / "plain.rocmax")
    with pytest.raises(ValueError, match=r"must be a model saved by `rocmax fit` or rocmax\.tables"):
        load_model(tmp_path / "plain.rocmax")


def test_fits_in_threads(made):
    _, expected = made
    found = []
    jobs = [threading.Thread(target=lambda: found.append(fit_table(frame(), tune=False, **GOAL))) for _ in range(3)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
    assert len(found) == 3
    for model in found:
        np.testing.assert_allclose(coef(model), coef(expected), rtol=1e-12)
