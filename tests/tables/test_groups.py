"""Groups of dependent rows in fits, evaluations and reports of tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import rocmax
from rocmax import FPRThresholdClassifier
from rocmax.cli.app import app
from rocmax.data import DataError
from rocmax.metrics import delong_interval, positive_scores
from rocmax.metrics.rates import worth_rows
from rocmax.tables import Limits, evaluate, fit_table, load_model, write_report

OPTIONS = {"target": "label", "positive": "fraud", "model": "linear", "tune": False}


def customers(n_groups=400, size=5, seed=0, classes="mixed"):
    """Return a table of customers with an effect that their rows share."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    fraud = rng.random(groups.size) < 0.3 if classes == "mixed" else (np.arange(n_groups) % 3 == 0)[groups]
    shared = rng.normal(size=(n_groups, 2))[groups] + 0.3 * rng.normal(size=(groups.size, 2))
    a, b = (shared + fraud[:, None]).T
    return pd.DataFrame(
        {"a": a, "b": b, "customer": [f"c{g}" for g in groups], "label": np.where(fraud, "fraud", "ok")}
    )


@pytest.mark.parametrize("rate", ["row", "group"])
def test_the_guarantee_of_a_fit_is_for_groups(rate):
    table = customers()
    fitted = fit_table(table, **OPTIONS, max_fpr=0.1, confidence=0.9, group="customer", limits=Limits(rate=rate))
    held_out = table.iloc[fitted.held_out_rows]
    assert set(held_out.customer).isdisjoint(table.drop(held_out.index).customer)
    assert fitted.facts.group == "customer"
    assert fitted.facts.held_out_groups == held_out.customer.nunique() == 100
    pipeline = fitted.model.estimator_
    chosen = FPRThresholdClassifier(pipeline, 0.1, confidence=0.9, cv="prefit", pos_label="fraud", rate=rate)
    chosen.fit(held_out[["a", "b"]], held_out.label.to_numpy(), groups=held_out.customer.to_numpy())
    assert fitted.model.threshold_ == chosen.threshold_
    for_rows = FPRThresholdClassifier(pipeline, 0.1, confidence=0.9, cv="prefit", pos_label="fraud")
    for_rows.fit(held_out[["a", "b"]], held_out.label.to_numpy())
    assert fitted.model.threshold_ > for_rows.threshold_


def test_too_few_groups_are_an_error_before_the_fit():
    """The 75 held-out rows would be enough for independent rows, which need 29."""
    with pytest.raises(
        ValueError, match=r"requires at least about 36 independent groups with held-out negatives.*; got 15"
    ):
        fit_table(customers(60), **OPTIONS, max_fpr=0.1, confidence=0.95, group="customer")
    with pytest.raises(
        ValueError, match=r"fraction \(test_size\), decrease min_tpr, decrease confidence, use limits=Limits\(rate='gr"
    ):
        fit_table(customers(60), **OPTIONS, confidence=0.95, group="customer", limits=Limits(min_tpr=0.9))
    with pytest.raises(ValueError, match="requires groups"):
        fit_table(customers(60), **OPTIONS, max_fpr=0.1, limits=Limits(rate="group"))
    one = customers(40).assign(label=lambda t: np.where(t.customer == "c1", "fraud", "ok"))
    with pytest.raises(DataError, match="both the training and the held-out rows must have both classes"):
        fit_table(one, **OPTIONS, max_fpr=0.1, group="customer")


@pytest.mark.parametrize("measure", ["roc_auc", "partial_auc"])
def test_intervals_of_fits_and_evaluations_are_for_groups(measure, tmp_path):
    """Rows that are almost copies of each other, with one class per customer: the interval is twice as wide."""
    table = customers(classes="pure")
    options = {**OPTIONS, "max_fpr": 0.5, "limits": Limits(measure=measure)}
    fitted = fit_table(table, **options, group="customer")
    fitted.save(tmp_path / "a.rocmax")
    fitted = load_model(tmp_path / "a.rocmax")
    new = customers(seed=1, classes="pure")
    with_groups, without = evaluate(fitted, new), evaluate(fitted, new.drop(columns="customer"))
    assert (with_groups.groups, without.groups) == (400, None)
    widths = [result.measures[measure]["high"] - result.measures[measure]["low"] for result in (with_groups, without)]
    assert widths[0] > 1.7 * widths[1]
    assert with_groups.measures[measure]["value"] == without.measures[measure]["value"]
    held_out = fitted.held_out
    assert held_out["high"] - held_out["low"] > 1.7 * widths[1]


def test_one_group_of_positives_is_noted():
    fitted = fit_table(customers(), **OPTIONS, max_fpr=0.5, group="customer")
    new = customers(seed=1).assign(label=lambda t: np.where(t.customer == "c1", "fraud", "ok"))
    result = evaluate(fitted, new)
    assert result.groups is None
    assert any("positive rows of one group only" in note for note in result.notes)
    with pytest.raises(DataError, match="must have a group in each row"):
        evaluate(fitted, new.assign(customer=[None, *new.customer[1:]]))


def test_few_groups_are_noted_with_the_intervals(tmp_path):
    """Notes, not warnings of Python, in evaluations, fits and reports; the report has them on its page."""
    few = customers(30, 10, classes="pure")
    fitted = fit_table(few, **OPTIONS, max_fpr=0.5, group="customer")
    narrow = "the 95 % interval of partial AUC, FPR 0 to 0.5 may be too narrow: a class has {} independent"
    assert sum(note.startswith(narrow.format(2)) for note in fitted.notes) == 1
    new = customers(24, 10, seed=1, classes="pure")
    (note,) = (note for note in evaluate(fitted, new).notes if "too narrow" in note)
    assert note.startswith("the 95 % intervals of partial AUC, FPR 0 to 0.5; AUC; TPR at FPR <= 0.5; break")
    assert note.endswith("a class has 8 independent groups; at least 10 are needed")
    write_report([fitted], new, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "may be too narrow: a class has 8 independent groups; at least 10 are needed." in page
    enough = customers(60, 5, seed=1, classes="pure")
    assert not [note for note in evaluate(fitted, enough).notes if "too narrow" in note]
    write_report([fitted], enough, tmp_path / "b.html")
    assert "too narrow: a class" not in (tmp_path / "b.html").read_text()


def test_reports_resample_groups(tmp_path):
    table = customers(classes="pure")
    first, second = (fit_table(table, **OPTIONS, max_fpr=limit, group="customer") for limit in (0.5, 0.2))
    new = customers(seed=1, classes="pure")
    pages = []
    for name, rows in (("groups", new), ("rows", new.drop(columns="customer"))):
        write_report([first, second], rows, tmp_path / f"{name}.html")
        pages.append((tmp_path / f"{name}.html").read_text())
    low, high = (evaluate(first, new).measures["roc_auc"][end] for end in ("low", "high"))
    shown = f"{low:.4f}", f"{high:.4f}"
    assert all(end in pages[0] for end in shown)
    assert not all(end in pages[1] for end in shown)
    assert ["bootstrap of the test groups" in page for page in pages] == [True, False]


def test_a_report_of_a_classifier_takes_groups():
    table = customers(classes="pure")
    model = LogisticRegression().fit(table[["a", "b"]], table.label)
    page = rocmax.report(model, table[["a", "b"]], table.label, pos_label="fraud", groups=table.customer)
    assert "1330 of class ok, in 400 groups, whose rows depend on each other." in page
    low, high = delong_interval(
        table.label == "fraud", -model.decision_function(table[["a", "b"]]), groups=table.customer
    )
    assert f"{low:.4f}" in page
    assert f"{high:.4f}" in page


def test_rows_of_a_group_are_worth_fewer_independent_rows():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(2000), 5)
    assert worth_rows(rng.random(groups.size) < 0.1, groups) == pytest.approx(groups.size, rel=0.1)
    assert worth_rows((rng.random(2000) < 0.1)[groups], groups) == pytest.approx(2000, rel=0.01)
    assert worth_rows(np.zeros(groups.size, dtype=bool), groups) == 2000


def test_the_command_names_flags_if_groups_are_too_few(tmp_path):
    customers(60).to_csv(tmp_path / "t.csv", index=False)
    arguments = ["fit", tmp_path / "t.csv", "--target", "label", "--positive", "fraud", "--max-fpr", 0.1, "--no-tune"]
    arguments += ["--group", "customer", "--confidence", 0.95, "--out", tmp_path / "m"]
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 1
    advice = "hold out a larger fraction (--test-size), increase --max-fpr, decrease --confidence, use --rate group,"
    assert advice in " ".join(done.stderr.split())


def test_the_command_says_which_rate_and_which_groups(tmp_path):
    customers().to_csv(tmp_path / "t.csv", index=False)
    run = CliRunner()
    arguments = ["fit", tmp_path / "t.csv", "--target", "label", "--positive", "fraud", "--max-fpr", 0.1]
    arguments += ["--confidence", 0.9, "--group", "customer", "--model", "linear", "--no-tune", "--out", tmp_path / "m"]
    for rate, text in (("row", "among all rows"), ("group", "in the mean over groups")):
        result = run.invoke(app, [*map(str, arguments), "--rate", rate])
        assert result.exit_code == 0, result.output
        said = " ".join(result.output.split())
        assert f"at most 10 % of false positives {text} with confidence 0.9 for independent groups" in said
        assert "on the held-out rows of 100 groups" in said
    result = run.invoke(app, ["evaluate", str(tmp_path / "m"), str(tmp_path / "t.csv")])
    assert "the intervals are for 400 independent groups" in result.output


def test_scores_of_the_model_are_those_of_its_threshold():
    """The threshold with groups is subtracted from the scores, as without."""
    table = customers()
    fitted = fit_table(table, **OPTIONS, max_fpr=0.1, confidence=0.9, group="customer")
    X = table[["a", "b"]]
    scores = positive_scores(fitted.model, X, pos_label="fraud")
    np.testing.assert_array_equal(scores > 0, fitted.model.predict(X) == "fraud")
