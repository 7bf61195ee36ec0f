"""What the commands say about bad files, bad models and bad calls."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import zipfile

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from helpers.commands import FIT, ROCMAX, run
from rocmax.cli.app import app


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
    "header.csv": (b"x,label\n", "has a header but no rows"),
    "ragged.csv": (b"x,label\n1,fraud\n2,ok,3\n", "ragged.csv, line 3: 3 fields where the header has 2 columns"),
    "binary.csv": (b"x,label\n1,caf\xe9\n2,\x00\n", "line 2: byte 0xe9 is not UTF-8"),
    "other.csv": (b"x,class\n1,fraud\n2,ok\n", "has no column 'label'"),
    "short.csv.gz": (gzip.compress(os.urandom(50_000).hex().encode())[:20_000], "ends in the middle of its gzip data"),
    "directory.csv": (None, "is a directory; pass a file"),
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


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    """A model of one column, x, like that of the bad files."""
    folder = tmp_path_factory.mktemp("small")
    x = np.random.default_rng(0).normal(size=80).round(3)
    label = np.where(np.arange(80) % 4 == 0, "fraud", "ok")
    pd.DataFrame({"x": x + (label == "fraud"), "label": label}).to_csv(folder / "a.csv", index=False)
    options = ["--target", "label", "--positive", "fraud", "--no-tune", "--out", folder / "small.rocmax"]
    run("fit", folder / "a.csv", *options)
    return folder / "small.rocmax"


@pytest.mark.parametrize("command", ["predict", "evaluate", "compare", "report"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_of_the_other_commands(tmp_path, small_model, command, name):
    """In one process, which is quicker; test_bad_training_files runs the program itself."""
    content, message = BAD_FILES[name]
    path, out = tmp_path / name, tmp_path / ("out.html" if command == "report" else "out.csv")
    path.mkdir() if content is None else path.write_bytes(content)
    if command == "predict" and name in ("other.csv", "one_class.csv"):
        return  # no labels are needed to predict
    if command == "compare":
        args = [path, "--target", "label", "--positive", "fraud", "--out", out]
    else:
        target = [] if command == "predict" else ["--target", "label"]
        args = [small_model, path, *target, *([] if command == "evaluate" else ["--out", out])]
    done = CliRunner().invoke(app, [command, *map(str, args)])
    assert done.exit_code == 1, done.output
    known = {"one_class.csv": "one class only: 'ok' (2"}
    assert known.get(name, message) in done.stderr
    assert done.stdout == ""
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


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
    assert "line 701: column 'amount' must be numeric" in done.stderr
    done = run("predict", path, folder / "test.csv", "--out", folder / "scores.txt", code=1)
    assert "must end in .csv, .parquet or .jsonl" in done.stderr
    done = run("evaluate", path, folder / "test.csv", "--target", "country", code=1)
    assert "a label in each row" in done.stderr
    assert not out.exists()
    assert not list(folder.glob(".*.part"))


def test_bad_models(folder, fitted):
    (folder / "text.rocmax").write_text("no model")
    done = run("predict", folder / "text.rocmax", folder / "test.csv", code=1)
    assert "is not a model file of rocmax" in done.stderr
    done = run("evaluate", folder / "none.rocmax", folder / "test.csv", code=1)
    assert "does not exist" in done.stderr
    with zipfile.ZipFile(fitted[0]) as archive, zipfile.ZipFile(folder / "old.rocmax", "w") as other:
        header = json.loads(archive.read("rocmax.json"))
        other.writestr("rocmax.json", json.dumps({**header, "format": 0, "rocmax": "0.0.1"}))
        other.writestr("model.skops", archive.read("model.skops"))
    done = run("predict", folder / "old.rocmax", folder / "test.csv", code=1)
    assert "was saved by rocmax 0.0.1 in file format 0" in done.stderr


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
