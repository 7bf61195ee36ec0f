"""What the commands do about their outputs: inputs are never overwritten, and what must fail fails before the work."""

from __future__ import annotations

import csv
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import rocmax
from helpers.commands import ROCMAX
from helpers.signalled import started
from rocmax.cli.app import app
from rocmax.tables.model import escaped

# They start processes.
pytestmark = pytest.mark.slow

TARGET = ["--target", "label", "--positive", "=fraud"]


def table(n_rows):
    rng = np.random.default_rng(0)
    fraud = np.arange(n_rows) % 4 == 0
    x = (rng.normal(size=n_rows) + 2 * fraud).round(3)
    customer = pd.Series(np.arange(n_rows) // 2).map("c{}".format)
    return pd.DataFrame({"x": x, "customer": customer, "label": np.where(fraud, "=fraud", "ok")})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with t.csv, m.rocmax fitted to it, and big.csv."""
    folder = tmp_path_factory.mktemp("outputs")
    table(80).to_csv(folder / "t.csv", index=False)
    table(40_000).to_csv(folder / "big.csv", index=False)
    invoke("fit", folder / "t.csv", *TARGET, "--drop", "customer", "--no-tune", "--out", folder / "m.rocmax")
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """Copies of the small files, as the working directory."""
    for name in ("t.csv", "m.rocmax"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*args, code=0):
    """Run a command in this process, which is quicker."""
    done = CliRunner().invoke(app, [*map(str, args)])
    assert done.exit_code == code, done.output
    return done


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("way", ["plain", "symlink.csv", "hardlink.csv"])
@pytest.mark.parametrize(
    ("command", "victim"),
    [
        (["predict", "m.rocmax", "t.csv", "--out"], "t.csv"),
        (["predict", "m.rocmax", "t.csv", "--out"], "m.rocmax"),
        (["fit", "t.csv", *TARGET, "--out"], "t.csv"),
        (["compare", "t.csv", *TARGET, "--out"], "t.csv"),
        (["compare", "t.csv", *TARGET, "--resume"], "t.csv"),
        (["export", "m.rocmax"], "m.rocmax"),
        (["report", "m.rocmax", "t.csv", "--out"], "t.csv"),
        (["report", "m.rocmax", "t.csv", "--out"], "m.rocmax"),
    ],
)
def test_an_output_is_never_an_input(here, command, victim, way):
    out = here / victim if way == "plain" else here / way
    if way == "symlink.csv":
        out.symlink_to(victim)
    elif way == "hardlink.csv":
        out.hardlink_to(here / victim)
    before = contents(here)
    done = invoke(*command, out, code=1)
    assert f", the same file as the input {victim}" in done.stderr.replace("\n", " ")
    assert contents(here) == before
    assert out.is_symlink() == (way == "symlink.csv")


def test_two_outputs_are_two_files(here):
    done = invoke("compare", "t.csv", *TARGET, "--out", "a", "--resume", "./a", code=1)
    assert "--out and --resume must be different files; got a for both" in done.stderr


def test_export_in_python_is_guarded_too(here):
    onnx = pytest.importorskip("rocmax.tables.onnx")
    before = contents(here)
    with pytest.raises(ValueError, match="must be another file than the model file"):
        onnx.export_file(here / "m.rocmax", here / ".." / here.name / "m.rocmax")
    assert contents(here) == before


def test_standard_output_onto_the_input(here):
    before = contents(here)
    for args in (["predict", "m.rocmax", "t.csv"], ["predict", "m.rocmax", "t.csv", "--out", "/dev/stdout"]):
        with (here / "t.csv").open("a") as out:
            done = subprocess.run([ROCMAX, *args], stdout=out, stderr=subprocess.PIPE, text=True, timeout=170)
        assert done.returncode == 1
        assert "input t.csv" in done.stderr
    assert contents(here) == before


@pytest.mark.parametrize(
    "content", [b"x,label\n1,a\n", b"\x00\xff\n", b'{"key": "a"}\n[1]\n', b'{"score": 1}\n', b"\n\nx\n"]
)
def test_results_are_not_added_to_another_file(here, content):
    store = here / "store"
    store.write_bytes(content)
    # Before the table is read: this one does not exist.
    done = invoke("compare", "none.csv", *TARGET, "--resume", store, code=1)
    assert "the file of results must be new or written by compare" in done.stderr
    assert store.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b'{"ke', b'{"key": "ab', b'{"key": "a", "score": 1, "seconds": 2}\n'])
def test_a_store_of_a_killed_run_is_taken(here, content):
    (here / "store").write_bytes(content)
    command = ["compare", "t.csv", *TARGET, "--drop", "customer", "--models", "logistic", "--splits", "2"]
    invoke(*command, "--resume", "store")
    lines = (here / "store").read_bytes().splitlines()
    assert (here / "store").read_bytes().startswith(content)
    assert len(lines) == 2 + bool(content)


def test_modes_links_and_devices(here):
    out, link = here / "scores.csv", here / "link.csv"
    out.touch(0o600)
    link.symlink_to("scores.csv")
    invoke("predict", "m.rocmax", "t.csv", "--out", link)
    assert link.is_symlink()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert len(pd.read_csv(out)) == 80
    out.chmod(0o444)
    before = contents(here)
    for command in (["predict", "m.rocmax", "t.csv"], ["fit", "t.csv", *TARGET], ["report", "m.rocmax", "t.csv"]):
        done = invoke(*command, "--out", link, code=1)
        assert "write-protected (mode 0444)" in done.stderr
    invoke("export", "m.rocmax", out, code=1)
    assert contents(here) == before
    for command in (["predict", "m.rocmax", "t.csv"], ["fit", "t.csv", *TARGET, "--no-tune"]):
        invoke(*command, "--out", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["pipe", "pipe.parquet"])
def test_predictions_through_a_fifo(here, name):
    os.mkfifo(here / name)
    got = []
    reader = threading.Thread(target=lambda: got.append((here / name).read_bytes()))
    reader.start()
    invoke("predict", "m.rocmax", "t.csv", "--out", name)
    reader.join(30)
    (here / "got").write_bytes(got[0])
    read = pd.read_parquet if name.endswith("parquet") else pd.read_csv
    assert len(read(here / "got")) == 80
    assert stat.S_ISFIFO((here / name).stat().st_mode)


def test_a_full_disk_is_one_line_and_the_old_file_stays(made, here):
    (here / "scores.csv").write_bytes(b"old")
    done = subprocess.run(
        [ROCMAX, "predict", "m.rocmax", made / "big.csv", "--out", "scores.csv"],
        capture_output=True,
        text=True,
        timeout=170,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert (done.returncode, done.stderr) == (1, "Error: scores.csv: File too large\n")
    assert (here / "scores.csv").read_bytes() == b"old"
    assert sorted(contents(here)) == ["m.rocmax", "scores.csv", "t.csv"]


# What must fail, fails before anything is read: none.csv does not exist.

COMMANDS = {
    "fit": ["fit", "none.csv", *TARGET],
    "predict": ["predict", "none.rocmax", "none.csv"],
    "compare": ["compare", "none.csv", *TARGET],
    "report": ["report", "none.rocmax", "none.csv"],
    "export": ["export", "none.rocmax"],
}
PLACES = {
    "no/such/out.csv": "is not a directory, so out.csv cannot be written there",
    "t.csv/out.csv": "is not a directory, so out.csv cannot be written there",
    "a" * 300 + ".csv": "File name too long",
    ".": "the output must be a file; got the directory",
    "/proc/out.csv": "no file can be created in /proc",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", PLACES, ids=["folder", "file", "long", "directory", "proc"])
def test_places_are_checked_before_the_work(here, command, place):
    out = [place] if command == "export" else ["--out", place]
    done = invoke(*COMMANDS[command], *out, code=1)
    assert PLACES[place] in done.stderr
    assert "does not exist" not in done.stderr
    assert sorted(contents(here)) == ["m.rocmax", "t.csv"]
    if command == "compare":
        assert PLACES[place] in invoke(*COMMANDS[command], "--resume", place, code=1).stderr


@pytest.mark.parametrize("options", [["--min-fpr", "0.1"], ["--min-fpr", "0.1", "--max-fpr", "1"]])
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_window_needs_its_upper_end(here, command, options):
    done = invoke(*COMMANDS[command], *options, "--out", "out", code=2)
    assert "--min-fpr requires a limit" in done.stderr


def test_no_fits_at_a_time():
    assert "--jobs must be a positive integer" in invoke(*COMMANDS["compare"], "--jobs", "0", code=2).stderr


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("skops", [*COMMANDS["fit"], "--out", "out"], "io"),
        ("pyarrow", [*COMMANDS["predict"], "--out", "out.csv"], "data"),
        ("pandas", COMMANDS["compare"], "data"),
        ("lightgbm", [*COMMANDS["compare"], "--models", "auc,lightgbm"], "boost"),
        ("jinja2", [*COMMANDS["report"], "--out", "out"], "cli"),
        ("onnx", [*COMMANDS["export"], "out"], "onnx"),
    ],
)
def test_packages_are_checked_before_the_work(here, package, command, extra):
    program = f"import sys\nsys.modules[{package!r}] = None\nfrom rocmax.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True, timeout=170)
    assert done.returncode == 1
    assert f"pip install 'rocmax[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(contents(here)) == ["m.rocmax", "t.csv"]


# The end of standard output.


def test_a_reader_that_goes_away_ends_the_program_quietly(made):
    calls = [["predict", "m.rocmax", "big.csv"], ["--version"], ["--help"]]
    for args in calls:
        with subprocess.Popen([ROCMAX, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=made) as process:
            if args[0] == "predict":
                assert process.stdout.readline() == b'"score","label"\n'
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_standard_output_that_is_full(made):
    for args in (["predict", "m.rocmax", "t.csv"], ["--version"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [ROCMAX, *args], stdout=full, stderr=subprocess.PIPE, text=True, cwd=made, timeout=170
            )
        assert (done.returncode, done.stderr) == (1, "Error: standard output: No space left on device\n")


def test_standard_output_that_is_closed(here):
    """What prints is refused before the work; a command that only writes a file does its work."""
    for args in (COMMANDS["fit"], COMMANDS["predict"]):
        command = [ROCMAX, *args, *(["--out", "out"] if args[0] == "fit" else [])]
        done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, timeout=170)
        assert done.returncode == 1
        assert done.stderr == "Error: standard output must be open; redirect it to a file or to /dev/null\n"
    command = [ROCMAX, "predict", "m.rocmax", "t.csv", "--out", "out.csv"]
    subprocess.run(["sh", "-c", '"$@" >&- 2>&- <&-', "sh", *command], check=True, timeout=170)
    assert len(pd.read_csv(here / "out.csv")) == 80


# Models, groups and labels that need a word.


def test_models_saved_from_python_are_refused_in_words(here):
    rocmax.save(rocmax.AUCClassifier().fit([[0], [1]], [0, 1]), "plain.rocmax")
    rocmax.save(rocmax.AUCClassifier().fit([[0], [1]], [0, 1]), "noted.rocmax", about={"positive": "1", "note": "mine"})
    for name in ("plain.rocmax", "noted.rocmax"):
        for args in (["predict", name, "t.csv"], ["evaluate", name, "t.csv"], ["report", name, "t.csv", "--out", "r"]):
            done = invoke(*args, code=1)
            assert f"{name} must be a model saved by `rocmax fit` or rocmax.tables" in done.stderr.replace("\n", " ")
        assert "rocmax.load" in invoke("export", name, "x.onnx", code=1).stderr


@pytest.mark.parametrize("drop", [[], ["--drop", "customer"]])
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_rows_without_a_group(here, command, drop):
    frame = table(80)
    frame.loc[[7, 30], "customer"] = None
    frame.to_csv("g.csv", index=False)
    done = invoke(command, "g.csv", *TARGET, "--group", "customer", *drop, "--out", "out", code=1)
    said = done.stderr.replace("\n", " ")
    assert "column 'customer' must have a group in each row; got 2 of 80 rows without one (the first is row 8" in said
    assert not (here / "out").exists()


def test_labels_like_formulas(here):
    """Exact by default, so that other programs read the labels of the table; escaped on demand."""
    exact = list(csv.DictReader(invoke("predict", "m.rocmax", "t.csv").stdout.splitlines()))
    assert {row["label"] for row in exact} == {"=fraud", "ok"}
    safe = list(csv.DictReader(invoke("predict", "m.rocmax", "t.csv", "--escape-formulas").stdout.splitlines()))
    assert {row["label"] for row in safe} == {"'=fraud", "ok"}
    assert [row["score"] for row in safe] == [row["score"] for row in exact]
    done = invoke("predict", "m.rocmax", "t.csv", "--escape-formulas", "--out", "a.parquet", code=2)
    assert "--escape-formulas applies to csv files only" in done.stderr
    for label in ("=1+1", "+cmd", "-cmd", "@SUM(A1)", "\t=1", "\r=1", "-1+1", "-", "＝1"):
        assert escaped(label) == "'" + label
    for label in ("ok", "-1", "+1", "1e-5", "-2.5e+3", "a=1", "'=1", "", " =1"):
        assert escaped(label) == label


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT], ids=lambda s: s.name)
def test_an_interrupted_command_leaves_no_part(made, here, number):
    """SIGTERM and SIGINT: test_cli."""
    header, _, rows = (made / "big.csv").read_text().partition("\n")
    (here / "long.csv").write_text(header + "\n" + rows * 100)
    (here / "scores.csv").write_bytes(b"old")
    command = [ROCMAX, "predict", "m.rocmax", "long.csv", "--out", "scores.csv"]
    with started(command, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 100
        while not any(part.stat().st_size for part in here.glob(".rocmax-*.part")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 128 + number
    assert (here / "scores.csv").read_bytes() == b"old"
    assert not list(here.glob(".*.part"))
