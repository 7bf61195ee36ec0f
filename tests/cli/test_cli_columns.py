"""Options about columns, as a user gives them, and what the commands print about columns and evidence."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from helpers.commands import run
from helpers.table_twins import calls, census, churn, horses, passengers
from rocmax.cli.app import app

QUICK = ["--model", "logistic", "--no-tune"]


def invoke(*args, code=0, **kwargs):
    done = CliRunner().invoke(app, [str(arg) for arg in args], **kwargs)
    assert done.exit_code == code, done.output + str(done.exception)
    return done


def said(done):
    """Return all that was printed, without the frames and line breaks of error messages."""
    return " ".join(done.output.replace("│", " ").split())


def typed(*args):
    """Return all that a command in a shell prints, without line breaks."""
    done = run(*args)
    return " ".join((done.stdout + done.stderr).split())


def write(table, folder, name="a.csv"):
    table.to_csv(folder / name, index=False)
    return folder / name


def test_the_plan_is_printed_before_the_fit(tmp_path):
    path = write(passengers(), tmp_path)
    done = run("fit", path, "--target", "survived", *QUICK, "--out", tmp_path / "m.rocmax")
    lines = [line.split() for line in done.stderr.splitlines()]
    assert lines[0] == ["column", "kind", "missing", "levels", "use"]
    assert ["class", "number", "0", "used"] in lines
    assert ["port", "category", "0", "3", "used"] in lines
    assert "left out: row numbers" in done.stderr
    assert "'name' is left out (identifier): 300 different values in 300 rows; to use it: --text name" in done.stderr
    assert "'passenger' is left out (identifier): row numbers; to use it: --number passenger" in done.stderr
    printed = json.loads(run("fit", path, "--target", "survived", *QUICK, "--out", tmp_path / "m", "--json").stdout)
    columns = {column["name"]: column for column in printed["columns"]}
    assert columns["cabin"]["used"] is False
    assert columns["cabin"]["missing"] == 225
    assert columns["fare"] == {
        "name": "fare", "kind": "number", "missing": 0, "levels": None, "used": True, "reason": "",
    }  # fmt: skip


def test_odd_values_are_named_with_flags(tmp_path):
    path = write(horses(), tmp_path)
    goal = ["--target", "outcome", "--positive", "2", "--out", tmp_path / "m.rocmax", *QUICK]
    text = said(invoke("fit", path, *goal, "--skip-unlabeled", code=1))
    assert "'temperature': 210 numbers, and '?' in 90 rows" in text
    assert "line 2); to read them as missing: --na '?'" in text
    assert "--text temperature --text pulse; to leave them out: --drop temperature --drop pulse" in text
    assert not (tmp_path / "m.rocmax").exists()
    text = said(invoke("fit", path, *goal, "--na", "?", code=1))
    assert "got 1 missing in column 'outcome'; to leave these rows out: --skip-unlabeled" in text
    text = said(invoke("fit", path, *goal, "--na", "?", "--skip-unlabeled", "--text", "hospital"))
    assert "1 rows without a label are left out" in text
    # The same marks are missing values in later tables.
    text = said(invoke("predict", tmp_path / "m.rocmax", path, "--out", tmp_path / "p.csv"))
    assert "missing values: 'temperature' 30.0%" in text
    assert "Warning" not in text


def test_compare_takes_the_same_options(tmp_path):
    path = write(horses(), tmp_path)
    options = ["--na", "?", "--skip-unlabeled", "--text", "lesion", "--id", "hospital", "--splits", "3", "--no-tune"]
    goal = ["--target", "outcome", "--positive", "2", "--models", "logistic,auc"]
    text = typed("compare", path, *goal, *options)
    assert "3 splits cannot give a p-value below 0.25; use at least --splits 6" in text
    assert "carried to the output" in text
    printed = json.loads(run("compare", path, *goal, *options, "--json").stdout)
    assert [column["kind"] for column in printed["columns"] if column["name"] == "lesion"] == ["category"]
    assert {entry["model"] for entry in printed["models"]} == {"logistic", "auc"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--text", "tenure", "--drop", "tenure"],
            "--text and --drop must be different columns; got 'tenure'",
        ),
        (["--decimal", ";"], "--decimal must be '.' or ','; got ';'"),
        (["--encoding", "klingon"], "--encoding must be the name of a text encoding"),
        (["--thousands", "ab"], "--thousands must be one character"),
    ],
)
def test_bad_options(tmp_path, options, message):
    path = write(churn(), tmp_path)
    done = invoke("fit", path, "--target", "churn", *options, "--out", tmp_path / "m", code=2)
    assert message in said(done)
    done = invoke("fit", path, "--target", "churn", "--number", "nope", "--out", tmp_path / "m", code=1)
    assert "has no column 'nope'" in said(done)


def test_dates_and_encodings_from_the_shell(tmp_path):
    path = tmp_path / "a.csv"
    calls().assign(city="Köln").to_csv(path, index=False, sep=";", encoding="cp1252")
    goal = ["--target", "term deposit", "--delimiter", ";", "--out", tmp_path / "m", *QUICK]
    assert "is not UTF-8; save the file as UTF-8, or pass its encoding: --encoding" in said(
        invoke("fit", path, *goal, "--encoding", "utf-8", code=1)
    )
    text = said(invoke("fit", path, *goal, "--encoding", "cp1252", "--date", "called", "--json"))
    assert '"called month": "number"' in text


def test_a_space_before_each_value(tmp_path):
    path = write(census(), tmp_path)
    done = invoke("fit", path, "--target", "income", "--positive", ">50K", "--out", tmp_path / "m", *QUICK)
    assert "positive class: '>50K'" in said(done)
    assert "'?' is used as a category of 'work'; to read it as missing: --na '?'" in said(done)


@pytest.mark.parametrize("positive", ["1", "1.0", "true", "True"])
@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], [False, True], ["false", "true"]])
def test_one_and_true_mean_what_the_file_means(tmp_path, positive, labels):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    table = pd.DataFrame({"x": rng.normal(size=200) + y, "label": np.array(labels)[y]})
    path = write(table, tmp_path)
    goal = ["--target", "label", "--positive", positive, "--out", tmp_path / "m", *QUICK]
    printed = json.loads(invoke("fit", path, *goal, "--json").stdout)
    assert printed["classes"]["positive"] == int(y.sum())
    invoke("predict", tmp_path / "m", path, "--out", tmp_path / "p.parquet")
    found = pd.read_parquet(tmp_path / "p.parquet")["label"]
    assert found.dtype == pd.read_csv(path)["label"].dtype
    invoke("evaluate", tmp_path / "m", write(table.assign(label=y), tmp_path, "b.csv"))


def leaking(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    return pd.DataFrame({"x": rng.normal(size=n_rows), "paid back": rng.normal(size=n_rows) + 20 * y, "label": y})


def test_a_perfect_score_names_the_suspects(tmp_path):
    path = write(leaking(400), tmp_path)
    done = run("fit", path, "--target", "label", *QUICK, "--out", tmp_path / "m.rocmax")
    assert "the held-out rows are ranked perfectly, and 'paid back' alone would do; " in done.stderr
    assert "leave it out: --drop 'paid back'" in done.stderr
    assert re.search(r"AUC: 1\.0000, 95 % interval \[0\.9\d+, 1\.0000\], on the held-out rows", done.stdout)


def test_a_perfect_score_of_few_rows_suspects_no_column(tmp_path):
    table = leaking(40)
    table["paid back"] -= 17 * table["label"]
    text = said(invoke("fit", write(table, tmp_path), "--target", "label", *QUICK, "--out", tmp_path / "m"))
    assert "the held-out rows are ranked perfectly; does a column contain the label?" in text
    assert "--drop" not in text


def test_too_few_rows_are_named_before_and_after(tmp_path):
    path = write(leaking(40).drop(columns="paid back"), tmp_path)
    text = typed("fit", path, "--target", "label", *QUICK, "--out", tmp_path / "m")
    assert "positive and" in text
    assert "held-out rows: the measure is uncertain" in text
    assert "rows: the measure is uncertain" in typed("evaluate", tmp_path / "m", path)
    path = write(leaking(2000).drop(columns="paid back"), tmp_path)
    text = typed("fit", path, "--target", "label", "--max-fpr", "0.0001", *QUICK, "--out", tmp_path / "m")
    assert "allows none of the 2" in text
    assert "5 of them would take 50,000 negative rows" in text


def test_rows_on_both_sides_of_the_split(tmp_path):
    table = leaking(200).drop(columns="paid back")
    path = write(pd.concat([table, table]), tmp_path)
    text = typed("fit", path, "--target", "label", *QUICK, "--out", tmp_path / "m")
    assert "held-out rows have the same values as a training row" in text


def sales(n=600):
    rng = np.random.default_rng(0)
    day, back = rng.integers(0, 120, n), rng.random(n) < 0.4
    when = (pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d")
    shop = [f"s{i}" for i in rng.integers(0, 900, n)]
    return pd.DataFrame({"when": when, "price": rng.normal(size=n) + back, "shop": shop, "back": back})


def test_a_fit_forward_in_time_prints_its_periods(tmp_path):
    path, out = write(sales(), tmp_path), ["--out", tmp_path / "m.rocmax"]
    options = ["--target", "back", "--max-fpr", "0.2", "--time", "when", "--gap", "5d", "--group", "shop", *QUICK]
    done = run("fit", path, *options, *out)
    lines = [line.split() for line in done.stdout.splitlines()]
    facts = json.loads(run("fit", path, *options, *out, "--json").stdout)
    periods, rows, dropped = facts["periods"], facts["rows"], facts["periods"]["dropped"]
    assert (facts["time"], facts["gap"]) == ("when", "5d")
    assert "forward in time by 'when' with a gap of 5d:" in done.stdout
    for title, name in (("training", "train"), ("calibration", "calibration"), ("test", "held out")):
        assert [title, str(rows[name]), periods[name]["first"], periods[name]["last"]] in lines
    assert f"left out: {dropped['gap']} rows for the gap, {dropped['group']} for groups with later rows" in done.stdout
    assert dropped["gap"] > 0 < dropped["group"]
    assert f"Note: {dropped['gap']} rows are left out, as their labels were not known" in done.stderr
    assert ["when", "time", "0", "left", "out:", "rows", "are", "split", "forward", "in", "time"] in [
        line.split() for line in done.stderr.splitlines()
    ]
    later = write(sales().drop(columns=["when", "shop"]), tmp_path, "later.csv")
    assert "at the threshold" in run("evaluate", tmp_path / "m.rocmax", later).stdout


def test_a_comparison_forward_in_time_says_so(tmp_path):
    path = write(sales(), tmp_path)
    done = invoke(
        "compare", path, "--target", "back", "--time", "when", "--drop", "shop", "--models", "logistic,auc",
        "--no-tune", "--splits", "6",
    )  # fmt: skip
    assert "AUC of class 'True', 6 splits forward in time by 'when', no model tuned" in said(done)
    assert "each split tests on one of 6 periods from 2024-0" in said(done)


def test_the_flags_for_time_are_named_in_notes_and_errors(tmp_path):
    path, out = write(sales(), tmp_path), ["--out", tmp_path / "m.rocmax"]
    options = ["fit", path, "--target", "back", "--drop", "shop", *QUICK, *out]
    text = said(invoke(*options))
    assert "although 'when' has dates" in text
    assert "to hold out the latest rows: --time when" in text
    assert "--gap requires the time of each row: --time" in said(invoke(*options, "--gap", "5d", code=2))
    found = said(invoke(*options, "--time", "when", "--gap", "5", code=2))
    assert "--gap must be a time span, such as 30d, as the times are dates; got 5" in found
    found = said(invoke(*options, "--time", "when", "--gap", "5y", code=2))
    assert "--gap must be a number and a unit, such as 30d" in found
    found = said(invoke(*options, "--time", "when", "--gap", "200d", code=1))
    assert "Choose another --test-size or a shorter --gap" in found
