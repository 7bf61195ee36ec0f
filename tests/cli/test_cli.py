"""The commands, run as a user runs them."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

import rocmax
from helpers.commands import FIT, LINEAR, ROCMAX, run
from helpers.signalled import started
from helpers.tables import loud
from rocmax import metrics
from rocmax.cli.app import app


def test_fit_names_the_class_measures_and_saves(folder, fitted):
    path, done = fitted
    train = pd.read_csv(folder / "train.csv")
    count = int((train["label"] == "fraud").sum())
    assert f"positive class: 'fraud' ({count} rows)" in done.stdout
    assert "trained on 900 rows, 300 held out" in done.stdout
    assert "partial AUC, FPR 0 to 0.1: 0." in done.stdout
    assert "threshold for at most 10 % of false positives" in done.stdout
    assert "tuned in 10 folds of at most 720 training rows: C=" in done.stdout
    assert (
        "'since' is left out (date): dates are used only if they are declared; to use it: --date since" in done.stderr
    )
    assert "\x1b" not in done.stdout + done.stderr
    model = rocmax.load(path)
    about = json.loads(run("fit", folder / "train.csv", *FIT, *LINEAR, "--out", path, "--json").stdout)
    assert about["held_out"]["low"] < about["held_out"]["value"] < about["held_out"]["high"]
    classifier = model.estimator_.named_steps["model"]
    assert about["tuning"]["chosen"] == {"C": classifier.C_}
    assert about["tuning"]["starts"] == [classifier.start_]
    assert (about["tuning"]["folds"], about["tuning"]["rows in a fold"]) == (10, 720)
    # Preprocessing is inside the model, and was fitted to the training rows only.
    imputer = model.estimator_.named_steps["table"].named_transformers_["numbers"].steps[0][1]
    assert imputer.statistics_.size == 4
    assert model.estimator_.named_steps["table"].n_features_in_ == 5


def test_predict_writes_a_row_for_each_row_in_order(folder, fitted):
    path, _ = fitted
    test = pd.read_csv(folder / "test.csv")
    done = run("predict", path, folder / "test.csv", "--out", folder / "scores.csv")
    assert done.stdout == ""
    scores = pd.read_csv(folder / "scores.csv")
    model = rocmax.load(path)
    X = test[list(model.feature_names_in_)]
    decision = -model.decision_function(X)  # fraud is the first of the classes
    np.testing.assert_allclose(scores["score"], decision, rtol=1e-12)
    assert scores["label"].tolist() == model.predict(X).tolist()
    assert ((scores["score"] > 0) == (scores["label"] == "fraud")).all()
    # Columns in another order, with others among them, and parquet in and out.
    test[test.columns[::-1]].to_csv(folder / "turned.csv", index=False)
    test.drop(columns="label").to_parquet(folder / "test.parquet")
    for name in ("turned.csv", "test.parquet"):
        run("predict", path, folder / name, "--out", folder / "again.parquet")
        pd.testing.assert_frame_equal(pd.read_parquet(folder / "again.parquet"), scores, check_dtype=False)
    printed = run("predict", path, folder / "test.csv").stdout
    assert printed == (folder / "scores.csv").read_text()


def test_unknown_categories_and_missing_values_are_scored(folder, fitted):
    text = "amount,age,country,online,<script>alert(1)</script>\n,,,,\n1,2,XX,true,0.5\n"
    (folder / "odd.csv").write_text(text)
    run("predict", fitted[0], folder / "odd.csv", "--out", folder / "odd_scores.csv")
    assert np.isfinite(pd.read_csv(folder / "odd_scores.csv")["score"]).all()


def test_evaluate(folder, fitted):
    path, _ = fitted
    result = json.loads(run("evaluate", path, folder / "test.csv", "--target", "label", "--json").stdout)
    scores = pd.read_csv(folder / "scores.csv") if (folder / "scores.csv").exists() else None
    test = pd.read_csv(folder / "test.csv")
    model = rocmax.load(path)
    s = -model.decision_function(test[list(model.feature_names_in_)])
    y = test["label"] == "fraud"
    assert result["rows"] == {"positive": int(y.sum()), "negative": int((~y).sum())}
    assert result["measures"]["partial_auc"]["value"] == pytest.approx(metrics.partial_auc_score(y, s, max_fpr=0.1))
    assert result["measures"]["roc_auc"]["value"] == pytest.approx(metrics.roc_auc_score(y, s))
    assert result["threshold"]["fpr"] == pytest.approx(np.mean(s[~y] > 0))
    assert result["threshold"]["tpr"] == pytest.approx(np.mean(s[y] > 0))
    assert scores is None or np.allclose(scores["score"], s)
    printed = run("evaluate", path, folder / "test.csv", "--target", "label").stdout
    assert f"{result['measures']['roc_auc']['value']:.4f}" in printed
    assert "at the threshold: TPR" in printed


@pytest.mark.slow
def test_compare_tunes_writes_and_goes_on_where_it_was(folder):
    options = ["--models", "linear,auc,logistic,lightgbm", "--splits", "2", "--out", folder / "table.csv"]
    options += ["--resume", folder / "store.jsonl"]
    command = ["compare", folder / "train.csv", *FIT, *options]
    done = run(*command)
    printed = done.stdout
    assert (
        "'since' is left out (date): dates are used only if they are declared; to use it: --date since" in done.stderr
    )
    table = pd.read_csv(folder / "table.csv", index_col="model")
    assert sorted(table.index) == ["auc", "lightgbm", "linear", "logistic"]
    assert table["mean"].is_monotonic_decreasing
    np.testing.assert_allclose(table["mean"], table[["split_1", "split_2"]].mean(axis=1))
    assert printed.startswith("partial AUC, FPR 0 to 0.1 of class 'fraud', 2 splits, each model tuned")
    assert all(name in printed for name in table.index)
    lines = (folder / "store.jsonl").read_text().splitlines()
    assert len(lines) == 8
    again = json.loads(run(*command, "--json").stdout)
    assert {entry["model"]: entry["mean"] for entry in again["models"]} == pytest.approx(table["mean"].to_dict())
    assert (folder / "store.jsonl").read_text().splitlines() == lines


def test_the_format_of_the_table_does_not_matter(folder, tmp_path):
    frame = pd.read_csv(folder / "train.csv").drop(columns="since")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "b.tsv.gz", index=False, sep="\t")
    frame.to_csv(tmp_path / "c.csv.bz2", index=False)
    frame.to_csv(tmp_path / "d.csv", index=False, sep=";", quoting=csv.QUOTE_NONNUMERIC)
    frame.to_parquet(tmp_path / "e.parquet")
    found = []
    for path in sorted(tmp_path.glob("?.*")):
        more = ["--delimiter", ";"] if path.name == "d.csv" else []
        args = ["fit", path, *FIT, *more, "--no-tune", "--json", "--out", tmp_path / "model.rocmax"]
        done = CliRunner().invoke(app, list(map(str, args)))
        assert done.exit_code == 0, done.output
        found.append(json.loads(done.stdout)["held_out"])
    assert len(found) == 5
    assert all(entry == pytest.approx(found[0]) for entry in found)


@pytest.mark.parametrize("options", [["--model", "logistic"], [*LINEAR, "--measure", "tpr_at_fpr"], ["--model", "svm"]])
def test_other_models_and_measures_are_tuned_too(folder, options):
    about = json.loads(run("fit", folder / "train.csv", *FIT, *options, "--out", folder / "t", "--json").stdout)
    assert about["tuning"]["chosen"]["C"] in about["tuning"]["tried"]["C"]
    assert about["tuning"]["chosen"]["C"] == rocmax.load(folder / "t").estimator_.named_steps["model"].C
    done = run("fit", folder / "train.csv", *FIT, *options, "--no-tune", "--out", folder / "t")
    assert "\nnot tuned\n" in done.stdout
    assert rocmax.load(folder / "t").estimator_.named_steps["model"].C == 1.0


def test_tuning_pays(tmp_path):
    loud(3000).to_csv(tmp_path / "train.csv", index=False)
    loud(20_000, 1).to_csv(tmp_path / "new.csv", index=False)
    reached = []
    for option in ("--tune", "--no-tune"):
        model = tmp_path / f"m{option}.rocmax"
        run("fit", tmp_path / "train.csv", "--target", "label", "--max-fpr", "0.01", *LINEAR, option, "--out", model)
        result = json.loads(run("evaluate", model, tmp_path / "new.csv", "--json").stdout)
        reached.append(result["measures"]["partial_auc"]["value"])
    assert reached[0] > 0.1
    assert reached[0] > 3 * reached[1]


def test_too_few_rows_to_tune(tmp_path):
    rows = [f"{i}.5,{i % 2}" for i in range(4)] + ["9,0"] * 40
    (tmp_path / "a.csv").write_text("x,label\n" + "\n".join(rows * 2) + "\n")
    run("fit", tmp_path / "a.csv", "--target", "label", "--test-size", "0.5", "--out", tmp_path / "m")
    (tmp_path / "a.csv").write_text(
        "x,g,label\n" + "\n".join(f"{i * 7 % 13}.5,{i % 4 // 2},{i % 2}" for i in range(40)) + "\n"
    )
    options = ["--target", "label", "--group", "g", "--test-size", "0.5", "--out", tmp_path / "m"]
    done = run("fit", tmp_path / "a.csv", *options)
    assert "not tuned: one class has too few rows or groups for cross-validation" in done.stderr


def test_groups_stay_on_one_side(folder):
    from rocmax.tables import Columns, Limits
    from rocmax.tables.fit import FitSettings, split_rows
    from rocmax.tables.read import read_training

    training = read_training(folder / "train.csv", Columns(target="label", positive="fraud", group="customer"))
    train, _, test = split_rows(training, FitSettings(Limits(0.1), "auto", 0.25, 0))
    assert set(training.groups[train]) & set(training.groups[test]) == set()
    assert 0.15 < test.size / (train.size + test.size) < 0.35
    assert "customer" not in training.X
    run(
        "fit",
        folder / "train.csv",
        "--target",
        "label",
        "--positive",
        "fraud",
        "--group",
        "customer",
        *LINEAR,
        "--out",
        folder / "g",
    )


def test_confidence_and_too_few_negatives(folder, fitted):
    out = folder / "sure.rocmax"
    about = json.loads(
        run("fit", folder / "train.csv", *FIT, *LINEAR, "--confidence", "0.9", "--out", out, "--json").stdout
    )
    assert 0 < about["violation_bound"] <= 0.1
    plain = json.loads(run("fit", folder / "train.csv", *FIT, *LINEAR, "--out", folder / "p.rocmax", "--json").stdout)
    assert about["offset"] > plain["offset"]
    done = run(
        "fit", folder / "train.csv", *FIT[:-4], "--max-fpr", "0.001", "--confidence", "0.95", "--out", out, code=1
    )
    assert "requires at least 2995 held-out negatives" in done.stderr
    advice = "hold out a larger fraction (--test-size), increase --max-fpr or decrease --confidence"
    assert advice in " ".join(done.stderr.split())


def test_svmlight_in_and_out(folder):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(300) % 4 == 0, 1, -1)
    X = rng.normal(size=(300, 5)) * (rng.random((300, 5)) < 0.5) + (y[:, None] == 1)
    dump_svmlight_file(X, y, str(folder / "a.svm"), zero_based=False)
    done = run("fit", folder / "a.svm", "--max-fpr", "0.2", *LINEAR, "--out", folder / "sparse.rocmax")
    assert "positive class: '1' (75 rows)" in done.stdout
    run("predict", folder / "sparse.rocmax", folder / "a.svm", "--out", folder / "sparse.csv")
    assert set(pd.read_csv(folder / "sparse.csv")["label"]) == {-1, 1}
    run("evaluate", folder / "sparse.rocmax", folder / "a.svm")
    done = run("predict", folder / "sparse.rocmax", folder / "train.csv", code=1)
    assert "was fitted to an svmlight file" in done.stderr


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_only(folder, fitted):
    command = [ROCMAX, "predict", fitted[0], folder / "test.csv", "--out", folder / "terminal.csv"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(theirs)
        shown = b""
        # Linux ends a read from a terminal that nobody writes to any more with an error.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 4096):
                shown += part
        assert process.wait(100) == 0
    os.close(ours)
    assert b"rows scored" in shown
    assert b"\x1b[" in shown
    piped = run(*command[1:])
    assert piped.stderr.startswith("900 rows, ")
    assert f"classified as 'fraud': {folder / 'terminal.csv'}\n" in piped.stderr
    assert piped.stdout == ""


def test_version_and_help():
    assert run("--version").stdout == f"rocmax {rocmax.__version__}\n"
    listed = run("--help").stdout
    assert all(name in listed for name in ("demo", "fit", "predict", "evaluate", "compare", "report", "export"))


@pytest.mark.slow
def test_an_interrupted_prediction_leaves_no_file(folder, fitted):
    block = (folder / "test.csv").read_text().partition("\n")
    (folder / "long.csv").write_text(block[0] + "\n" + block[2] * 3000)
    out = folder / "interrupted.csv"
    command = [ROCMAX, "predict", fitted[0], folder / "long.csv", "--out", out]
    for stop in (signal.SIGTERM, signal.SIGINT):
        with started(command, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 100
            while not list(folder.glob(".rocmax-*.part")) and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(stop)
            assert process.wait(60) == {signal.SIGTERM: 143, signal.SIGINT: 130}[stop]
        assert not out.exists()
        assert not list(folder.glob(".rocmax-*.part"))


@pytest.mark.slow
def test_predict_in_bounded_memory(folder, fitted):
    """Memory does not grow with the rows; benchmarks/peers/command_line.py does it for five million."""
    block = (folder / "test.csv").read_text().partition("\n")
    peaks = []
    program = (
        "import resource, sys\nfrom rocmax.cli import main\ntry: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)"
    )
    for copies in (200, 600):
        (folder / "many.csv").write_text(block[0] + "\n" + block[2] * copies)
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                program,
                "predict",
                fitted[0],
                folder / "many.csv",
                "--out",
                folder / "many_scores.csv",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(float(done.stderr.split()[-1]))
        with (folder / "many_scores.csv").open() as file:
            assert sum(1 for _ in file) == 900 * copies + 1
    assert peaks[1] < peaks[0] + 60
