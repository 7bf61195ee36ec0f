"""Options of the table functions: few parameters, each given once, and found by their names in messages."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace

import pytest

import rocmax.tables
from helpers.commands import run
from helpers.tables import payments
from rocmax.data import DataError
from rocmax.tables import (
    Columns,
    Limits,
    ParameterError,
    Reading,
    Running,
    compare_models,
    evaluate,
    fit_table,
    plan_columns,
    predict,
)

QUICK = {"model": "logistic", "tune": False}


def test_no_function_has_many_parameters():
    functions = [getattr(rocmax.tables, name) for name in rocmax.tables.__all__]
    counts = {each.__name__: len(inspect.signature(each).parameters) for each in functions if inspect.isfunction(each)}
    same = dict.fromkeys(("fit_table", "compare_models", "plan"), 14)  # the table, its columns and limits alike
    written = {"write_predictions": 11, "write_report": 10}  # what is written, and how
    assert {name: count for name, count in counts.items() if count > 9} == same | written


def test_keywords_and_objects_mean_the_same():
    table = payments(300)
    columns = Columns(target="label", positive="fraud", group="customer", drop="since")
    limits = Limits(max_fpr=0.3, confidence=0.5)
    plain = {"target": "label", "positive": "fraud", "group": "customer", "max_fpr": 0.3, "confidence": 0.5}
    first = fit_table(table, columns=columns, limits=limits, **QUICK)
    second = fit_table(table, columns=Columns(drop="since"), **plain, **QUICK)
    assert replace(first.facts, fitted="", seconds=0) == replace(second.facts, fitted="", seconds=0)
    assert plan_columns(table, columns=columns) == plan_columns(
        table, target="label", positive="fraud", group="customer", columns=Columns(drop="since")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target": "label", "columns": Columns(target="customer")},
            r"target must be given once; got target='label' and columns=Columns\(target='customer'\)",
        ),
        ({"positive": "fraud", "columns": Columns(positive="ok")}, "positive must be given once"),
        ({"group": "customer", "columns": Columns(group="customer")}, "group must be given once"),
        (
            {"max_fpr": 0.1, "limits": Limits(max_fpr=1.0)},
            r"max_fpr must be given once; got max_fpr=0.1 and limits=Limits\(max_fpr=1.0\)",
        ),
    ],
)
def test_a_value_in_two_places_is_an_error(options, message):
    for function in (fit_table, compare_models):
        with pytest.raises(ParameterError, match=message):
            function("no such file.csv", **options)
    with pytest.raises(ParameterError, match="confidence must be given once"):
        fit_table("no such file.csv", max_fpr=0.1, confidence=0.9, limits=Limits(confidence=0.9))


@pytest.mark.parametrize("name", ["columns", "limits", "reading", "running"])
def test_objects_of_another_kind_are_errors(name):
    with pytest.raises(
        TypeError, match=rf"{name} must be a rocmax\.tables\.{name.title()} or None; got {{'na': '\?'}}"
    ):
        fit_table("no such file.csv", **{name: {"na": "?"}})


@pytest.mark.parametrize(
    ("function", "options", "name"),
    [
        (fit_table, {"running": Running(n_jobs=2)}, "n_jobs"),
        (compare_models, {"running": Running(dask="tcp://host:1")}, "dask"),
        (compare_models, {"limits": Limits(confidence=0.9, max_fpr=0.1)}, "confidence"),
        (compare_models, {"limits": Limits(rate="group")}, "rate"),
    ],
)
def test_options_that_a_function_does_not_use_are_errors(function, options, name):
    with pytest.raises(ParameterError, match=f"{name} must not be given: {function.__name__} does not use it; got "):
        function("no such file.csv", **options)


def test_readers_of_files_and_table_functions_name_what_they_take(tmp_path):
    table = payments(200)
    table["label"] = table["label"].astype(object)
    table.loc[3, "label"] = None
    table.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match=r": reading=Reading\(skip_unlabeled=True\)"):
        rocmax.data.read_table(tmp_path / "a.csv", target="label")
    with pytest.raises(DataError, match=r": reading=Reading\(skip_unlabeled=True\)"):
        fit_table(tmp_path / "a.csv", target="label", positive="fraud")


def test_the_reading_of_a_call_wins_over_that_of_the_model(tmp_path):
    table = payments(200).drop(columns=["customer", "since"])
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "b.csv", index=False, sep=";", decimal=",")
    model = fit_table(tmp_path / "a.csv", target="label", positive="fraud", **QUICK)
    german = Reading(delimiter=";", decimal=",")
    expected = predict(model, tmp_path / "a.csv")
    assert predict(model, tmp_path / "b.csv", reading=german).equals(expected)
    assert evaluate(model, tmp_path / "b.csv", reading=german).scores.tolist() == expected["score"].tolist()


def test_notes_in_the_json_of_a_command_do_not_name_objects_of_python(tmp_path):
    table = payments(200).drop(columns=["customer", "since"])
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "b.csv", index=False, sep=";")
    model = fit_table(tmp_path / "a.csv", target="label", positive="fraud", **QUICK)
    model.save(tmp_path / "m.rocmax")
    found = json.loads(run("evaluate", tmp_path / "m.rocmax", tmp_path / "b.csv", "--json").stdout)
    assert any(note.endswith("for another one: delimiter=...") for note in found["notes"])
    notes = evaluate(model, tmp_path / "b.csv").notes
    assert any(note.endswith("for another one: reading=Reading(delimiter=...)") for note in notes)
