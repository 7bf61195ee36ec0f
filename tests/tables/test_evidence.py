"""Notes about columns that follow the label, and warnings about models that find nothing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rocmax.cli.app import app
from rocmax.tables import Columns, Limits, Reading, fit_table
from rocmax.tables.evaluate import leak_notes

TABLES = Path(os.environ.get("ROCMAX_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "tables"
QUICK = {"target": "label", "model": "linear", "tune": False}


def frauds(n_rows=2_000, seed=0):
    """A weak column of numbers and a weak category; 10 % are positive."""
    rng = np.random.default_rng(seed)
    fraud = rng.random(n_rows) < 0.1
    frame = pd.DataFrame({"amount": rng.normal(size=n_rows) + fraud, "country": rng.choice(["FR", "DE"], n_rows)})
    return frame, fraud, rng


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda hit: np.where(hit, 12.5, np.nan), "is filled"),
        (lambda hit: np.where(hit, np.nan, 12.5), "is missing"),
        (lambda hit: np.where(hit, 12.5, 0.0), "differs from 0"),
        (lambda hit: np.where(hit, "disputed", "open").astype(object), "is 'disputed'"),
        (lambda hit: np.where(hit, "C-17", None).astype(object), "is filled"),
    ],
)
def test_a_column_that_only_the_positives_have_is_named(make, found):
    frame, fraud, rng = frauds()
    hit = fraud & (rng.random(fraud.size) < 0.6)
    (note,) = leak_notes(frame.assign(chargeback=make(hit)), fraud)
    shares = f"in {hit[fraud].mean():.1%} of the positive rows and 0.0% of the others"
    assert note == (
        f"'chargeback' {found} {shares}; if it is known only after the label, leave it out: drop=['chargeback']"
    )
    # The classes may be the other way round.
    assert len(leak_notes(frame.assign(chargeback=make(hit)), ~fraud)) == 1


def test_the_note_about_a_leak_comes_with_the_fit():
    frame, fraud, rng = frauds()
    hit = fraud & (rng.random(fraud.size) < 0.6)
    paid = np.where(hit, rng.lognormal(size=fraud.size), np.nan)
    table = frame.assign(chargeback=paid, label=fraud.astype(int))
    assert any(note.startswith("'chargeback' is filled in ") for note in fit_table(table, **QUICK).notes)
    assert not any(
        "known only after" in note for note in fit_table(table, columns=Columns(drop="chargeback"), **QUICK).notes
    )


def test_columns_that_are_only_associated_with_the_label_are_not_named():
    frame, fraud, rng = frauds()
    strong = rng.normal(size=fraud.size) + 3.0 * fraud
    # Ten times as frequent among the positives, as a good category may be.
    flagged = np.where(rng.random(fraud.size) < np.where(fraud, 0.6, 0.06), "yes", "no").astype(object)
    often_missing = np.where(rng.random(fraud.size) < np.where(fraud, 0.9, 0.3), np.nan, 1.0 + strong)
    assert leak_notes(frame.assign(strong=strong, flagged=flagged, often=often_missing), fraud) == []


def test_few_rows_are_no_evidence_of_a_leak():
    frame, fraud, _ = frauds(60)
    assert leak_notes(frame.assign(chargeback=np.where(fraud, 1.0, np.nan)), fraud) == []


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("telco-churn", {"target": "Churn"}),
        ("titanic", {"target": "Survived"}),
        ("german-credit", {"target": "risk", "positive": 2}),
        ("horse-colic", {"target": "c23", "positive": 2, "reading": Reading(na="?", skip_unlabeled=True)}),
    ],
)
def test_no_column_of_a_real_table_is_suspected(file, options):
    path = TABLES / f"{file}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there; set ROCMAX_DATA to the folder that holds tables/{path.name}")
    notes = fit_table(path, model="linear", tune=False, **options).notes
    assert not [note for note in notes if "known only after" in note]


def useless(n_rows=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    return pd.DataFrame(X, columns=list("abc")).assign(label=(np.arange(n_rows) % 10 == 0).astype(int))


def test_a_model_that_finds_nothing_is_saved_with_a_warning(tmp_path):
    table = useless()
    table.to_csv(tmp_path / "a.csv", index=False)
    command = ["fit", tmp_path / "a.csv", "--target", "label", "--max-fpr", "0.01", "--out", tmp_path / "m.rocmax"]
    done = CliRunner().invoke(app, [*map(str, command), "--model", "linear", "--no-tune"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "m.rocmax").exists()
    assert "TPR 0.0000" in done.stdout
    assert "Warning: the model finds none of the 10 positive held-out rows" in done.stderr
    assert "Warning: the 100 held-out rows do not show that the model is better than chance: partial AUC" in done.stderr
    assert done.stderr.count("random scores have 0.0050") == 1


@pytest.mark.parametrize(
    ("options", "chance"),
    [
        ({}, "0.5000"),
        ({"max_fpr": 0.2}, "0.1000"),
        ({"max_fpr": 0.2, "limits": Limits(measure="tpr_at_fpr")}, "0.2000"),
        ({"limits": Limits(measure="break_even_point")}, "0.1000"),
        ({"limits": Limits(measure="average_precision")}, "0.1000"),
        ({"limits": Limits(min_tpr=0.5)}, "0.2500"),
    ],
)
def test_the_value_of_random_scores_is_that_of_the_measure(options, chance):
    notes = [note for note in fit_table(useless(), **QUICK, **options).notes if "better than chance" in note]
    assert [note.split("random scores have ")[1] for note in notes] == [chance]


def test_a_good_model_has_no_warning(tmp_path):
    frame, fraud, rng = frauds()
    table = frame.assign(strong=rng.normal(size=fraud.size) + 3 * fraud, label=fraud.astype(int))
    table.to_csv(tmp_path / "a.csv", index=False)
    command = ["fit", tmp_path / "a.csv", "--target", "label", "--max-fpr", "0.1", "--out", tmp_path / "m.rocmax"]
    done = CliRunner().invoke(app, [*map(str, command), "--model", "linear", "--no-tune"])
    assert done.exit_code == 0, done.output
    assert "Warning" not in done.stderr


def test_numbers_on_the_terminal_say_which_rows_they_come_from(tmp_path):
    frame, fraud, _ = frauds(400)
    frame.assign(label=fraud.astype(int)).to_csv(tmp_path / "a.csv", index=False)
    command = ["fit", tmp_path / "a.csv", "--target", "label", "--max-fpr", "0.2", "--out", tmp_path / "m.rocmax"]
    done = CliRunner().invoke(app, [*map(str, command), "--model", "linear"])
    assert done.exit_code == 0, done.output
    assert "in cross-validation on 300 training rows)" in done.stdout
    assert "on the held-out rows" in done.stdout
