"""A floor on the true-positive rate from a table to a threshold, a comparison and a page."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.tables import payments
from rocmax import PartialAUCClassifier, PartialAUCClassifierCV, TPRThresholdClassifier
from rocmax.cli.app import app
from rocmax.metrics import fpr_at_tpr, partial_auc_score
from rocmax.tables import (
    Columns,
    Limits,
    ParameterError,
    Running,
    compare_models,
    evaluate,
    fit_table,
    write_report,
)
from rocmax.tables.evaluate import row_notes
from rocmax.tables.options import check_limits
from rocmax.tables.tune import make_classifier

# No model for this table reaches it.
HIGH_CORNER = {"limits": Limits(min_tpr=0.95), "max_fpr": 0.01}
GOAL = {
    "target": "label",
    "positive": "fraud",
    "columns": Columns(drop=["customer", "since"]),
    "model": "linear",
    "tune": False,
}
FLAGS = ["--target", "label", "--positive", "fraud", "--drop", "customer", "--drop", "since"]


@pytest.fixture(scope="module")
def table():
    return payments(600)


@pytest.fixture(scope="module")
def screening(table):
    return fit_table(table, limits=Limits(min_tpr=0.8), **GOAL)


def test_the_threshold_reaches_the_floor_on_the_held_out_rows(table, screening):
    assert isinstance(screening.model, TPRThresholdClassifier)
    classifier = screening.model.estimator_.named_steps["model"]
    assert isinstance(classifier, PartialAUCClassifier)
    assert (classifier.min_fpr, classifier.max_fpr, classifier.min_tpr) == (0.0, 1.0, 0.8)
    assert repr(screening) == "TableModel('linear', positive='fraud', min_tpr=0.8)"
    assert screening.facts.measure == "partial_auc"
    held_out = table.iloc[screening.held_out_rows]
    result = evaluate(screening, held_out)
    assert 0.8 <= result.threshold["tpr"] < 0.8 + 1 / result.rows["positive"]
    assert (result.threshold["min_tpr"], result.threshold["max_fpr"]) == (0.8, None)
    limits = {"min_tpr": 0.8}
    positive = result.is_positive
    assert list(result.measures) == ["partial_auc", "roc_auc", "break_even_point", "average_precision", "fpr_at_tpr"]
    assert result.measures["partial_auc"]["value"] == partial_auc_score(positive, result.scores, **limits)
    assert result.measures["fpr_at_tpr"]["value"] == fpr_at_tpr(positive, result.scores, **limits)
    assert screening.held_out["value"] == result.measures["partial_auc"]["value"]


def test_both_limits(table):
    corner = fit_table(table, limits=Limits(min_tpr=0.5), max_fpr=0.3, **GOAL)
    assert repr(corner) == "TableModel('linear', positive='fraud', max_fpr=0.3, min_tpr=0.5)"
    result = evaluate(corner, table.iloc[corner.held_out_rows])
    assert result.threshold["tpr"] >= 0.5
    assert (result.threshold["min_tpr"], result.threshold["max_fpr"]) == (0.5, 0.3)
    assert {"partial_auc", "tpr_at_fpr", "fpr_at_tpr"} <= set(result.measures)
    expected = partial_auc_score(result.is_positive, result.scores, min_tpr=0.5, max_fpr=0.3)
    assert result.measures["partial_auc"]["value"] == expected


def test_every_model_takes_the_floor():
    folds = [(np.arange(8), np.arange(8))]
    tuned = make_classifier("linear", check_limits(Limits(min_tpr=0.9)), "1", 0, folds)
    assert isinstance(tuned, PartialAUCClassifierCV)
    assert (tuned.max_fpr, tuned.min_tpr) == (1.0, 0.9)
    boosted = make_classifier("boosted", check_limits(Limits(0.2, min_tpr=0.5)), "1", 0)
    assert (boosted.measure, boosted.max_fpr, boosted.min_tpr) == ("partial_auc", 0.2, 0.5)


def test_the_guarantee_is_for_the_floor(table):
    model = fit_table(table, limits=Limits(min_tpr=0.7), confidence=0.9, test_size=0.5, **GOAL)
    assert model.facts.violation_bound <= 0.1
    with pytest.raises(
        ValueError, match=r"true-positive rate of at least 0.99 .* requires at least 299 held-out posit"
    ):
        fit_table(table, limits=Limits(min_tpr=0.99), confidence=0.95, **GOAL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": Limits(min_tpr=1.0)}, "min_tpr must be a number of at least 0 and below 1; got 1"),
        ({"limits": Limits(min_tpr="0.8")}, "min_tpr must be a number of at least 0 and below 1; got '0.8'"),
        ({"confidence": 0.9}, "confidence requires a limit: max_fpr=... or limits=Limits(min_tpr=...)"),
        ({"limits": Limits(min_tpr=0.8, measure="tpr_at_fpr")}, "requires a limit: max_fpr=..."),
    ],
)
def test_bad_parameters(table, options, message):
    with pytest.raises(ParameterError) as error:
        fit_table(table, **{**GOAL, **options})
    assert message in str(error.value)
    if "confidence" not in options:
        with pytest.raises(ParameterError):
            compare_models(table, models=["linear"], target="label", positive="fraud", tune=False, **options)


def test_the_page_is_about_the_floor(table, screening, tmp_path):
    held_out = table.iloc[screening.held_out_rows]
    write_report([screening, screening], held_out, tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Range of interest: true-positive rates of at least 80 %" in page
    assert "Rates at the saved threshold" in page
    assert "TPR >= 80 %" in page
    assert "TPR >= 80 %: not decided: the interval includes the limit." in page  # the threshold reaches it just so
    value = evaluate(screening, held_out).measures["fpr_at_tpr"]["value"]
    assert f"{value:.4f}" in page


def test_a_page_of_models_with_different_limits(table, screening, tmp_path):
    alerts, corner = (fit_table(table, **limits, **GOAL) for limits in ({"max_fpr": 0.1}, HIGH_CORNER))
    write_report([screening, alerts, corner], table, tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    cells = re.findall(r'data-label="limit">(.*?)</td>.*?data-label="result">(.*?)</td>', page)
    assert [limit for limit, _ in cells] == ["TPR >= 80 %", "FPR <= 10 %", "TPR >= 95 %", "FPR <= 1 %"]
    assert cells[-1][1] == "above the limit"


def test_few_positives_above_the_floor_are_noted(table):
    model = fit_table(table, limits=Limits(min_tpr=0.9), **GOAL)
    n_positive = int((table.iloc[model.held_out_rows]["label"] == "fraud").sum())
    assert 10 <= n_positive < 30
    note = f"a true-positive rate of at least 0.9 allows missing {n_positive // 10} of the {n_positive} positive"
    uncertain = "rows: results at this limit are uncertain; 5 of them would take 50 positive rows"
    assert f"{note} held-out {uncertain}" in model.notes
    assert f"{note} {uncertain}" in evaluate(model, table.iloc[model.held_out_rows]).notes


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((1.0, 0.0), []),
        ((1.0, 0.9), ["allows missing 3 of the 30 positive"]),
        ((1.0, 0.99), ["allows missing none of the 30 positive"]),
        ((0.1, 0.8), ["allows 4 of the 40 negative"]),
        ((0.01, 0.85), ["allows none of the 40 negative", "allows missing 4 of the 30 positive"]),
    ],
)
def test_notes_of_few_rows_beyond_a_limit(rates, expected):
    notes = row_notes(np.arange(70) < 30, Limits(rates[0], min_tpr=rates[1]))
    assert len(notes) == len(expected)
    for note, text in zip(notes, expected, strict=True):
        assert text in note


def test_a_curve_outside_the_corner_is_noted(table):
    told = []
    model = fit_table(table, running=Running(notify=told.append), **HIGH_CORNER, **GOAL)
    assert model.held_out["value"] == 0
    note = "does not enter the corner TPR >= 0.95, FPR <= 0.01, so that its partial AUC is 0"
    assert [note in text for text in model.notes].count(True) == 1
    assert told == model.notes
    held_out = table.iloc[model.held_out_rows]
    assert any(f"the ROC curve of the rows {note}" in text for text in evaluate(model, held_out).notes)
    inside = fit_table(table, limits=Limits(min_tpr=0.5), max_fpr=0.3, **GOAL)
    assert not any("corner" in text for text in inside.notes + evaluate(inside, held_out).notes)


def test_the_commands(table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)

    def invoke(*args, code=0):
        done = CliRunner().invoke(app, [str(arg) for arg in args])
        assert done.exit_code == code, done.output
        return done.stdout if "--json" in args else done.output

    fit = ["fit", tmp_path / "t.csv", *FLAGS, "--model", "linear", "--no-tune", "--out", tmp_path / "m.rocmax"]
    text = invoke(*fit, "--min-tpr", "0.8")
    assert "threshold for at least 80 % of true positives: " in text
    assert "partial AUC, TPR >= 0.8: " in text
    text = invoke("evaluate", tmp_path / "m.rocmax", tmp_path / "t.csv")
    assert "(at least 0.8), FPR " in text
    assert "FPR at TPR >= 0.8" in text
    text = invoke(*fit, "--min-tpr", "0.95", "--max-fpr", "0.01")
    assert re.search(r"TPR [\d.]+ \(at least 0.95\), FPR [\d.]+ \(limit 0.01\) on the held-out rows", text)
    assert "does not enter the corner" in text
    facts = json.loads(invoke(*fit, "--min-tpr", "0.6", "--max-fpr", "0.2", "--json"))
    assert (facts["min_tpr"], facts["max_fpr"], facts["held_out"]["min_tpr"]) == (0.6, 0.2, 0.6)
    compared = ["compare", tmp_path / "t.csv", *FLAGS, "--models", "linear,logistic", "--splits", "2", "--no-tune"]
    assert "partial AUC" in invoke(*compared, "--min-tpr", "0.8")
    for value in ("1", "-0.1", "nan"):
        assert "--min-tpr must be a number of at least 0 and below 1" in invoke(*fit, "--min-tpr", value, code=2)


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_the_help_says_which_floors_are_accepted(command):
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    words = " ".join(re.sub(r"\x1b\[[\d;]*m|[│╭╮╰╯─]", " ", text).split())
    about = words.partition("--min-tpr")[2].partition("--measure")[0]
    assert "at least 0 and below 1" in about
    assert "Without --max-fpr, there is no limit on the false-positive rate." in about
    assert "<=x<=" not in about
