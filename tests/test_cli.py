"""The commands, run as a user runs them."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

import rocmax
from rocmax import metrics
from tables import payments

ROCMAX = str(Path(sys.executable).with_name("rocmax"))
FIT = ["--target", "label", "--positive", "fraud", "--max-fpr", "0.1", "--drop", "customer"]


def run(*args, code=0):
    done = subprocess.run([ROCMAX, *map(str, args)], capture_output=True, text=True, timeout=170)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    payments(1200, 0).to_csv(folder / "train.csv", index=False)
    payments(900, 1).to_csv(folder / "test.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    done = run("fit", folder / "train.csv", *FIT, "--out", folder / "model.rocmax")
    return folder / "model.rocmax", done


def test_fit_names_the_class_measures_and_saves(folder, fitted):
    path, done = fitted
    train = pd.read_csv(folder / "train.csv")
    count = int((train["label"] == "fraud").sum())
    assert f"positive class: 'fraud' ({count} rows)" in done.stdout
    assert "trained on 900 rows, 300 held out" in done.stdout
    assert "partial AUC, FPR 0 to 0.1: 0." in done.stdout
    assert "threshold for at most 10 % of false positives" in done.stdout
    assert "left out 'since': dates are not used" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    model = rocmax.load(path)
    held = json.loads(run("fit", folder / "train.csv", *FIT, "--out", path, "--json").stdout)["held_out"]
    assert held["low"] < held["value"] < held["high"]
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


def test_compare_tunes_writes_and_goes_on_where_it_was(folder):
    options = ["--models", "auto,auc,logistic,lightgbm", "--splits", "2", "--out", folder / "table.csv"]
    options += ["--resume", folder / "store.jsonl"]
    command = ["compare", folder / "train.csv", *FIT, *options]
    printed = run(*command).stdout
    table = pd.read_csv(folder / "table.csv", index_col="model")
    assert sorted(table.index) == ["auc", "auto", "lightgbm", "logistic"]
    assert table["mean"].is_monotonic_decreasing
    np.testing.assert_allclose(table["mean"], table[["split_1", "split_2"]].mean(axis=1))
    assert all(name in printed for name in table.index)
    lines = (folder / "store.jsonl").read_text().splitlines()
    assert len(lines) == 8
    again = json.loads(run(*command, "--json").stdout)
    assert {entry["model"]: entry["mean"] for entry in again} == pytest.approx(table["mean"].to_dict())
    assert (folder / "store.jsonl").read_text().splitlines() == lines


def test_groups_stay_on_one_side(folder):
    from rocmax.cli._fit import Options, _split, read_training

    training = read_training(folder / "train.csv", "label", "fraud", [], "customer", None, False)
    train, test = _split(training, Options((0.0, 0.1), "partial_auc", "auto", None, 0.25, 0))
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
        "--out",
        folder / "g",
    )


def test_confidence_and_too_few_negatives(folder, fitted):
    out = folder / "sure.rocmax"
    about = json.loads(run("fit", folder / "train.csv", *FIT, "--confidence", "0.9", "--out", out, "--json").stdout)
    assert 0 < about["violation_bound"] <= 0.1
    plain = json.loads(run("fit", folder / "train.csv", *FIT, "--out", folder / "p.rocmax", "--json").stdout)
    assert about["threshold"] > plain["threshold"]
    done = run(
        "fit", folder / "train.csv", *FIT[:-4], "--max-fpr", "0.001", "--confidence", "0.95", "--out", out, code=1
    )
    assert "needs at least 2995 held-out negatives" in done.stderr


def test_svmlight_in_and_out(folder):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(300) % 4 == 0, 1, -1)
    X = rng.normal(size=(300, 5)) * (rng.random((300, 5)) < 0.5) + (y[:, None] == 1)
    dump_svmlight_file(X, y, str(folder / "a.svm"), zero_based=False)
    done = run("fit", folder / "a.svm", "--max-fpr", "0.2", "--out", folder / "sparse.rocmax")
    assert "positive class: '1' (75 rows)" in done.stdout
    run("predict", folder / "sparse.rocmax", folder / "a.svm", "--out", folder / "sparse.csv")
    assert set(pd.read_csv(folder / "sparse.csv")["label"]) == {-1, 1}
    run("evaluate", folder / "sparse.rocmax", folder / "a.svm")
    done = run("predict", folder / "sparse.rocmax", folder / "train.csv", code=1)
    assert "was fitted to an svmlight file" in done.stderr


@pytest.mark.parametrize(
    ("labels", "options", "code", "message"),
    [
        (["fraud", "ok"], [], 2, "'fraud' (200), 'ok' (200)"),
        (["a", "b", "c"], [], 2, "'a' (134), 'b' (133), 'c' (133)"),
        (["a", "b", "c"], ["--positive", "b"], 0, "positive class: 'b' (133 rows); others: 267"),
        (["only"], [], 1, "one class only: 'only' (400)"),
        (["a", "b"], ["--positive", "z"], 1, "no value 'z'; its values are 'a' (200), 'b' (200)"),
    ],
)
def test_the_positive_class(tmp_path, labels, options, code, message):
    rng = np.random.default_rng(0)
    label = [labels[i % len(labels)] for i in range(400)]
    pd.DataFrame({"x": rng.normal(size=400), "label": label}).to_csv(tmp_path / "a.csv", index=False)
    done = run("fit", tmp_path / "a.csv", "--target", "label", *options, "--out", tmp_path / "m.rocmax", code=code)
    text = " ".join((done.stdout + done.stderr).replace("│", " ").split())
    assert message in text
    assert (tmp_path / "m.rocmax").exists() == (code == 0)


BAD_FILES = {
    "empty.csv": (b"", "empty.csv is empty"),
    "header.csv": (b"x,label\n", "has a header and no rows"),
    "ragged.csv": (b"x,label\n1,fraud\n2,ok,3\n", "ragged.csv, line 3: 3 fields where the header has 2 columns"),
    "semicolons.csv": (b"x;label\n1;fraud\n", "is the delimiter ';'?"),
    "latin.csv": (b"x,label\n1,caf\xe9\n", "line 2: byte 0xe9 is not UTF-8"),
    "other.csv": (b"x,class\n1,fraud\n2,ok\n", "has no column 'label'"),
    "short.csv.gz": (gzip.compress(os.urandom(50_000).hex().encode())[:20_000], "ends in the middle of its gzip data"),
    "directory.csv": (None, "is a directory; give one file"),
    "one_class.csv": (b"x,label\n1,ok\n2,ok\n", "got one class only: 'ok' (2)"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_training_files(tmp_path, name):
    content, message = BAD_FILES[name]
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    done = run("fit", path, "--target", "label", "--positive", "fraud", "--out", tmp_path / "m.rocmax", code=1)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m.rocmax").exists()


def test_a_place_that_cannot_be_written_is_refused_before_any_work(folder):
    out = folder / "none" / "m.rocmax"
    done = run("fit", folder / "no_such.csv", *FIT, "--out", out, code=1)
    assert "is not a directory, so m.rocmax cannot be written there" in done.stderr


def test_bad_prediction_files(folder, fitted):
    path, _ = fitted
    test = pd.read_csv(folder / "test.csv")
    test.drop(columns=["age", "country"]).to_csv(folder / "lacking.csv", index=False)
    out = folder / "never.csv"
    done = run("predict", path, folder / "lacking.csv", "--out", out, code=1)
    assert "has no column 'age', 'country'" in done.stderr
    text = (folder / "test.csv").read_text().splitlines()
    text[700] = "x," + text[700].partition(",")[2]
    (folder / "words.csv").write_text("\n".join(text) + "\n")
    done = run("predict", path, folder / "words.csv", "--out", out, code=1)
    assert "line 701: column 'amount' needs numbers" in done.stderr
    done = run("predict", path, folder / "test.csv", "--out", folder / "scores.txt", code=1)
    assert "ends in .csv or .parquet" in done.stderr
    done = run("evaluate", path, folder / "test.csv", "--target", "country", code=1)
    assert "a label in each row" in done.stderr
    assert not out.exists()
    assert not list(folder.glob(".*.part"))


def test_bad_models(folder, fitted):
    (folder / "text.rocmax").write_text("no model")
    done = run("predict", folder / "text.rocmax", folder / "test.csv", code=1)
    assert "is not a model file that rocmax saved" in done.stderr
    done = run("evaluate", folder / "none.rocmax", folder / "test.csv", code=1)
    assert "does not exist" in done.stderr
    with zipfile.ZipFile(fitted[0]) as archive, zipfile.ZipFile(folder / "old.rocmax", "w") as other:
        header = json.loads(archive.read("rocmax.json"))
        other.writestr("rocmax.json", json.dumps({**header, "format": 0, "rocmax": "0.0.1"}))
        other.writestr("model.skops", archive.read("model.skops"))
    done = run("predict", folder / "old.rocmax", folder / "test.csv", code=1)
    assert "was saved by rocmax 0.0.1 in file format 0" in done.stderr


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
    assert piped.stderr == f"900 rows: {folder / 'terminal.csv'}\n"
    assert piped.stdout == ""


@pytest.mark.parametrize(
    "args",
    [
        ["fit", "a.csv"],
        ["fit", "a.csv", "--out", "m", "--max-fpr", "2"],
        ["fit", "a.csv", "--out", "m", "--max-fpr", "0.1", "--min-fpr", "0.2"],
        ["fit", "a.csv", "--out", "m", "--model", "forest"],
        ["fit", "a.csv", "--out", "m", "--measure", "accuracy"],
        ["fit", "a.csv", "--out", "m", "--measure", "tpr_at_fpr"],
        ["fit", "a.csv", "--out", "m", "--confidence", "0.9"],
        ["compare", "a.csv", "--models", "auto,forest"],
        ["report", "a.csv", "--out", "r.html"],
        ["nothing"],
    ],
)
def test_bad_calls(args):
    done = run(*args, code=2)
    assert done.stdout == ""
    assert done.stderr


def test_verbose_shows_where():
    done = subprocess.run([ROCMAX, "fit", "none.csv", "--out", "m", "--verbose"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().endswith("Error: none.csv does not exist")


def test_version_and_help():
    assert run("--version").stdout == f"rocmax {rocmax.__version__}\n"
    listed = run("--help").stdout
    assert all(name in listed for name in ("demo", "fit", "predict", "evaluate", "compare", "report", "export"))


def test_demo(tmp_path):
    done = run("demo", "--out", tmp_path / "roc.svg")
    assert "PartialAUCClassifier catches" in done.stdout
    assert (tmp_path / "roc.svg").exists()
    run("demo", "--out", tmp_path / "roc.txt", code=2)


@pytest.mark.slow
def test_an_interrupted_prediction_leaves_no_file(folder, fitted):
    block = (folder / "test.csv").read_text().partition("\n")
    (folder / "long.csv").write_text(block[0] + "\n" + block[2] * 3000)
    out = folder / "interrupted.csv"
    command = [ROCMAX, "predict", fitted[0], folder / "long.csv", "--out", out]
    for stop in (signal.SIGTERM, signal.SIGINT):
        # A test run in the background ignores SIGINT, and so would what it starts.
        with subprocess.Popen(
            command,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            deadline = time.monotonic() + 100
            while not list(folder.glob(".interrupted.csv.*.part")) and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(stop)
            assert process.wait(60) == {signal.SIGTERM: 143, signal.SIGINT: 130}[stop]
        assert not out.exists()
        assert not list(folder.glob(".interrupted.csv.*.part"))


@pytest.mark.slow
def test_predict_in_bounded_memory(folder, fitted):
    """Memory does not grow with the rows; benchmarks/cli.py does it for five million."""
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
