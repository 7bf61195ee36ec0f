"""Reasons with every alert: the columns that moved a score most, in Python, in files and in the report."""

from __future__ import annotations

import html
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import Pipeline

from helpers.commands import run
from helpers.tables import SCRIPT, payments
from rocmax import ROCSVC
from rocmax.tables import (
    Columns,
    Limits,
    ParameterError,
    Running,
    fit_table,
    load_model,
    model,
    predict,
    write_predictions,
    write_report,
)
from rocmax.tables.reasons import EXPLAINED
from rocmax.tables.tune import MODELS

TABLES = Path(os.environ.get("ROCMAX_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "tables"
DATED = Columns(target="label", positive="fraud", date="since", id="customer")
USED = ["amount", "age", "country", "online", SCRIPT, "since"]


def fitted(family, n_rows=500, **options):
    if family in ("boosted", "ensemble", "lightgbm"):
        pytest.importorskip("lightgbm")
    return fit_table(payments(n_rows), columns=DATED, max_fpr=0.1, model=family, tune=False, **options)


@pytest.fixture(scope="module")
def additive():
    return fitted("additive")


def test_every_family_has_reasons():
    assert set(EXPLAINED) == set(MODELS) - {"auto"}


@pytest.mark.parametrize("family", EXPLAINED)
def test_contributions_of_columns_and_the_reference_are_the_score(family):
    found, new = fitted(family), payments(300, 1)
    parts = found.contributions(new)
    assert parts.columns == USED
    np.testing.assert_allclose(parts.values.sum(axis=1) + parts.reference, predict(found, new)["score"], atol=1e-9)
    assert np.ptp(parts.reference) == 0
    # The largest ones, by sorting each row in turn.
    reasons = found.reasons(new, 4)
    flagged = np.flatnonzero(found.positive_scores(new) > 0)
    assert 0 < flagged.size < len(new)
    assert reasons.index.tolist() == flagged.tolist()
    for place, row in zip(flagged, reasons.to_dict("records"), strict=True):
        sizes = dict(zip(parts.columns, parts.values[place], strict=True))
        ranked = [name for name in sorted(sizes, key=lambda name: -abs(sizes[name])) if sizes[name]][:4]
        assert [row[f"reason_{k}"] for k in range(1, len(ranked) + 1)] == ranked
        assert [row[f"reason_{k}_effect"] for k in range(1, len(ranked) + 1)] == [sizes[name] for name in ranked]
        for k, name in enumerate(ranked, 1):
            value = new[name].iloc[place]
            expected = "(missing)" if pd.isna(value) else f"{value:g}" if name == "age" else str(value)
            assert row[f"reason_{k}_value"] == expected


@pytest.mark.parametrize("family", ["linear", "additive", "logistic", "svm"])
def test_a_column_of_another_row_changes_the_score_by_the_difference(family):
    found, new = fitted(family), payments(200, 1)
    parts, scores = found.contributions(new), found.positive_scores(new)
    for j, name in enumerate(USED):
        changed = found.positive_scores(new.assign(**{name: new[name].iloc[3]}))
        np.testing.assert_allclose(changed - scores, parts.values[3, j] - parts.values[:, j], atol=1e-9)


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_contributions_refer_to_the_mean_of_the_training_rows(family):
    found, table = fitted(family), payments(500)
    trained = np.setdiff1d(np.arange(500), found.held_out_rows)
    np.testing.assert_allclose(found.contributions(table.iloc[trained]).values.mean(axis=0), 0, atol=1e-9)


def test_files_say_what_the_frame_says(additive, tmp_path, monkeypatch):
    new = payments(300, 1)
    # No row of the first batch is flagged.
    new = new.iloc[np.argsort(additive.positive_scores(new))].reset_index(drop=True)
    monkeypatch.setattr(model, "BATCH_SIZE", 50)
    additive.save(tmp_path / "m.rocmax")
    again = load_model(tmp_path / "m.rocmax")
    frame = predict(additive, new, reasons=2)
    names = [f"reason_{k}{end}" for k in (1, 2) for end in ("", "_value", "_effect")]
    assert frame.columns.tolist() == ["customer", "score", "label", *names]
    assert frame.loc[frame["score"] <= 0, names].isna().all(axis=None)
    assert frame.loc[frame["score"] > 0, names].notna().all(axis=None)
    for ending in ("csv", "parquet", "jsonl"):
        write_predictions(again, new, tmp_path / f"p.{ending}", reasons=2)
    text = {name: str for name in names if "effect" not in name}
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "p.csv", dtype=text), frame, check_dtype=False, rtol=1e-12, atol=1e-12
    )
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "p.parquet"), frame, check_dtype=False, rtol=1e-12)
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert len(lines) == 300
    for line, row in zip(lines, frame.to_dict("records"), strict=True):
        assert list(line) == ["customer", "score", "label", "reasons"]
        assert line["customer"] == row["customer"]
        assert len(line["reasons"]) == (2 if row["score"] > 0 else 0)
        for k, reason in enumerate(line["reasons"], 1):
            assert reason["column"] == row[f"reason_{k}"]
            assert reason["effect"] == pytest.approx(row[f"reason_{k}_effect"], abs=1e-12)
            if reason["column"] in ("amount", "age", SCRIPT):
                assert reason["value"] is None or reason["value"] == float(row[f"reason_{k}_value"])
            else:
                assert reason["value"] == row[f"reason_{k}_value"]
    write_predictions(again, new, tmp_path / "q.jsonl")
    lines = (tmp_path / "q.jsonl").read_text().splitlines()
    assert [list(json.loads(line)) for line in lines] == [["customer", "score", "label"]] * 300


def test_all_rows_on_request(additive):
    new = payments(100, 1)
    found = additive.reasons(new, 1, rows="all")
    assert found["reason_1"].notna().all()
    assert (found["reason_1_effect"] < 0).any()
    assert predict(additive, new.iloc[:3], reasons=6, reasons_for="all").shape == (3, 3 + 18)


@pytest.mark.parametrize("n", [0, -1, 7, 1.5, True, "3"])
def test_a_number_of_reasons_that_cannot_be_is_refused_before_the_table_is_read(additive, n, tmp_path):
    needed = "reasons must be an integer from 1 to 6, the number of columns of the model; got"
    for call in (
        lambda: predict(additive, "nowhere.csv", reasons=n),
        lambda: additive.reasons("nowhere.csv", n),
        lambda: write_predictions(additive, "nowhere.csv", tmp_path / "p.csv", reasons=n),
    ):
        with pytest.raises(ParameterError, match=needed):
            call()
    assert not list(tmp_path.iterdir())


def test_rows_that_are_not_known_or_not_asked_for(additive):
    with pytest.raises(ParameterError, match="reasons_for must be one of 'flagged', 'all'; got 'some'"):
        predict(additive, "nowhere.csv", reasons=1, reasons_for="some")
    with pytest.raises(ParameterError, match=r"reasons_for='all' requires reasons=\.\.\."):
        predict(additive, "nowhere.csv", reasons_for="all")


def test_a_family_without_reasons_names_those_that_have_them():
    table = payments(500).drop(columns=["since", "customer"])
    found = fit_table(table, target="label", positive="fraud", max_fpr=0.1, model="linear", tune=False)
    pipeline = found.model.estimator_
    rows = pipeline.named_steps["table"].transform(table)
    labels = table["label"].to_numpy()
    kernel = Pipeline([*pipeline.steps[:-1], ("model", ROCSVC(pos_label="fraud").fit(rows[:200], labels[:200]))])
    other = replace(found, model=kernel, facts=replace(found.facts, family="kernel"))
    families = (
        "reasons are for models of the families linear, additive, boosted, ensemble, auc, logistic, svm, lightgbm"
    )
    for call in (lambda: other.reasons("nowhere.csv"), lambda: other.contributions("nowhere.csv")):
        with pytest.raises(ParameterError, match=f"{families}; got kernel"):
            call()
    assert predict(other, table.iloc[:5]).columns.tolist() == ["score", "label"]


def test_a_model_of_an_earlier_version_says_to_fit_again(tmp_path):
    found, new = fitted("linear"), payments(200, 1)
    del found.model.estimator_.named_steps["model"]._feature_means_
    found.save(tmp_path / "old.rocmax")
    old = load_model(tmp_path / "old.rocmax")
    with pytest.raises(ParameterError, match=r"reasons: contributions refer to the means .* Fit it again"):
        old.reasons("nowhere.csv")
    assert old.predict(new).size == 200
    write_report(old, new, tmp_path / "r.html")
    assert "Sample alerts" not in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("family", ["linear", "ensemble"])
def test_a_table_of_numbers_alone_has_reasons(family):
    if family == "ensemble":
        pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    table["label"] = (table["a"] + rng.normal(size=300) > 1).astype(int)
    found = fit_table(table, target="label", max_fpr=0.1, model=family, tune=False)
    np.testing.assert_allclose(found.contributions(table).scores, found.positive_scores(table), atol=1e-9)
    assert found.reasons(table, 1)["reason_1"].isin(["a", "b"]).all()


def test_thresholds_by_the_value_of_a_column_are_in_the_reference():
    columns = Columns(target="label", positive="fraud", drop=["customer", "country", "since"])
    found = fit_table(
        payments(3000), columns=columns, limits=Limits(max_fpr=0.2, per="country"), model="linear", tune=False
    )
    new = payments(300, 1)
    parts = found.contributions(new)
    np.testing.assert_allclose(parts.scores, predict(found, new)["score"], atol=1e-9)
    assert np.unique(parts.reference).size > 2
    assert found.reasons(new)["reason_1"].isin(["amount", "age", "online", SCRIPT]).all()


def test_a_fit_to_all_rows_and_a_tuned_one_have_reasons():
    options = {"columns": DATED, "max_fpr": 0.1, "model": "logistic"}
    for found in (
        fit_table(payments(300), tune=False, running=Running(refit=True), **options),
        fit_table(payments(300), **options),
    ):
        new = payments(50, 1)
        np.testing.assert_allclose(found.contributions(new).scores, predict(found, new)["score"], atol=1e-9)


def test_features_of_a_file_without_names_have_numbers(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.5
    X = sparse.csr_array((rng.normal(size=(200, 5)) + np.outer(y, [0, 0, 3, 0, 0])) * (rng.random((200, 5)) < 0.6))
    dump_svmlight_file(X, y.astype(int), str(tmp_path / "a.svm"), zero_based=False)
    found = fit_table(tmp_path / "a.svm", model="linear", tune=False)
    parts = found.contributions(tmp_path / "a.svm")
    np.testing.assert_allclose(parts.scores, found.positive_scores(tmp_path / "a.svm"), atol=1e-9)
    np.testing.assert_allclose(parts.data.toarray(), X.toarray(), rtol=1e-15)
    reasons = found.reasons(tmp_path / "a.svm", 1)
    assert reasons["reason_1"].mode().tolist() == ["feature 3"]
    own = reasons[reasons["reason_1"] == "feature 3"]
    assert own["reason_1_value"].astype(float).tolist() == parts.data.toarray()[own.index, 2].tolist()


@pytest.mark.parametrize("family", ["additive", "ensemble"])
def test_the_command(family, tmp_path):
    trained = fitted(family)
    trained.save(tmp_path / "m.rocmax")
    new = payments(200, 1).assign(reason_1="kept").rename(columns={"label": "reasons"})
    new.to_csv(tmp_path / "new.csv", index=False)
    command = ["predict", tmp_path / "m.rocmax", tmp_path / "new.csv"]
    run(*command, "--reasons", 2, "--reasons-for", "all", "--keep", "reason_1", "--out", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert found.columns[:5].tolist() == ["customer", "reason_1_table", "score", "label", "reason_1"]
    expected = trained.reasons(new, 2, rows="all")
    assert (found["reason_1"] == expected["reason_1"]).all()
    np.testing.assert_allclose(found["reason_2_effect"], expected["reason_2_effect"], atol=1e-12)
    for options, text in (
        (["--reasons", 9], "--reasons must be an integer from 1 to 6"),
        (["--reasons-for", "all"], "--reasons-for all requires --reasons"),
        (["--reasons", 1, "--escape-formulas", "--out", tmp_path / "p.jsonl"], "--escape-formulas applies to csv"),
    ):
        assert text in " ".join(run(*command, *options, code=2).stderr.replace("│", " ").split())


def test_values_that_a_spreadsheet_would_compute_are_escaped(additive, tmp_path):
    new = payments(200, 1).assign(country="=1+1")
    write_predictions(additive, new, tmp_path / "p.csv", reasons=6, reasons_for="all", escape_formulas=True)
    found = pd.read_csv(tmp_path / "p.csv", dtype=str)
    values = {value for k in range(1, 7) for value in found.loc[found[f"reason_{k}"] == "country", f"reason_{k}_value"]}
    assert values == {"'=1+1"}


@pytest.mark.parametrize("family", ["additive", "lightgbm", "ensemble"])
def test_the_report_shows_sample_alerts_with_reasons(family, tmp_path):
    found, new = fitted(family, 600), payments(400, 1)
    new.loc[new.index % 3 == 0, "country"] = "Monaco"  # no training row has it
    write_report(found, new, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert SCRIPT not in page
    section = page.partition('<h2 id="alerts">')[2].partition("</section>")[0]
    assert "Monaco" not in section
    text, reasons = html.unescape(section), found.reasons(new, 3).sort_values("score", ascending=False, kind="stable")
    assert text.count('<th scope="row">') == 5
    places = np.linspace(0, len(reasons) - 1, 5).round().astype(int)
    for place, row in zip(reasons.index[places], reasons.iloc[places].to_dict("records"), strict=True):
        assert f'<th scope="row">{place + 1}</th>' in text
        assert f">{new['label'].iloc[place]}</td>" in text
        for k in (1, 2, 3):
            value = "(other)" if row[f"reason_{k}_value"] == "Monaco" else row[f"reason_{k}_value"]
            assert f"{row[f'reason_{k}']} = {value} ({row[f'reason_{k}_effect']:+.3g})" in text
    write_report(found, new, tmp_path / "none.html", alerts=0)
    assert 'id="alerts"' not in (tmp_path / "none.html").read_text()
    with pytest.raises(ParameterError, match="alerts must be an integer from 0 to 100; got -1"):
        write_report(found, new, tmp_path / "bad.html", alerts=-1)
    few = new[found.positive_scores(new) > 0].iloc[:2]
    rest = new[found.positive_scores(new) <= 0]
    write_report(found, pd.concat([few, rest]), tmp_path / "few.html")
    section = (tmp_path / "few.html").read_text().partition('<h2 id="alerts">')[2].partition("</section>")[0]
    assert section.count('<th scope="row">') == 2


@pytest.mark.parametrize("family", ["linear", "additive", "boosted"])
def test_reasons_on_a_real_table(family):
    path = TABLES / "telco-churn.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there; set ROCMAX_DATA to the folder that holds tables/{path.name}")
    if family == "boosted":
        pytest.importorskip("lightgbm")
    found = fit_table(path, target="Churn", max_fpr=0.05, model=family, tune=False)
    reasons, table = found.reasons(path, 3), pd.read_csv(path, dtype=str)
    parts = found.contributions(path)
    np.testing.assert_allclose(parts.scores, found.positive_scores(path), atol=1e-9)
    assert set(parts.columns) <= set(table.columns)
    for place, row in zip(reasons.index[:50], reasons.to_dict("records"), strict=False):
        for k in (1, 2, 3):
            value, kept = row[f"reason_{k}_value"], table[row[f"reason_{k}"]].iloc[place].strip()
            assert value == kept or float(value) == float(kept)
    said = {(row[f"reason_{k}"], row[f"reason_{k}_value"]) for row in reasons.to_dict("records") for k in (1, 2, 3)}
    assert {("Contract", "Month-to-month"), ("InternetService", "Fiber optic")} <= said
