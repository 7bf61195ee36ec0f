"""Options that say how a table is written: the same for every command, stored in the model, and named in errors."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from rocmax.cli import app as commands
from rocmax.cli.app import app
from rocmax.cli.screen import running_flags

QUICK = ["--model", "logistic", "--no-tune"]
COMMANDS = typer.main.get_command(app).commands
OF_TABLES = ("fit", "predict", "evaluate", "report", "compare")


def flags(command):
    return {"--help"} | {flag for one in COMMANDS[command].params for flag in (*one.opts, *one.secondary_opts)}


def tried(command, *args):
    """Return the exit code of a command and all that it printed; each option that it names is one of its own."""
    done = CliRunner().invoke(app, [command, *map(str, args)])
    assert done.exit_code in (0, 1, 2), done.exception
    text = " ".join(done.output.replace("│", " ").split())
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert named <= flags(command), (command, text)
    return done.exit_code, text


def invoke(command, *args, code=0):
    found, text = tried(command, *args)
    assert found == code, text
    return text


def table(n_rows=240, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n_rows)
    return pd.DataFrame(
        {
            "größe": (rng.normal(size=n_rows) + label).round(3),
            "stadt": rng.choice(["Köln", "Bonn"], n_rows),
            "label": np.where(label, "yes", "no"),
        }
    )


def european(frame, path, missing="?"):
    """Write a table with semicolons, decimal commas and latin-1, one number and one label missing."""
    frame = frame.astype({"größe": object, "label": object})
    frame.loc[3, "größe"] = missing
    frame.loc[5, "label"] = ""
    frame["größe"] = [str(value).replace(".", ",") for value in frame["größe"]]
    frame.to_csv(path, index=False, sep=";", encoding="latin-1")
    return path


def test_every_command_that_reads_a_table_takes_the_same_reading_options():
    names = ("delimiter", "decimal", "thousands", "na", "encoding", "sheet", "day-first", "month-first")
    shared = {f"--{name}" for name in (*names, "skip-unlabeled", "zero-based", "max-bytes")}
    for command in OF_TABLES:
        assert shared <= flags(command), command


def test_later_commands_read_a_table_as_the_fit_did(tmp_path):
    train, test = (european(table(seed=seed), tmp_path / f"{seed}.csv") for seed in (0, 1))
    model, page = tmp_path / "m.rocmax", tmp_path / "page.html"
    given = ["--target", "label", "--decimal", ",", "--na", "?", "--skip-unlabeled", *QUICK]
    text = invoke("fit", train, *given, "--out", model)
    assert "has the delimiter ';' and the encoding cp1252, as its first rows show; for another one: --delimiter" in text
    assert "1 rows without a label are left out" in text
    for args in (["evaluate", model, test], ["report", model, test, "--out", page]):
        text = invoke(*args)
        assert "1 rows without a label are left out" in text
        assert "delimiter" not in text  # the same as in the fit
    text = invoke("predict", model, test, "--out", tmp_path / "p.csv")
    assert "missing values: 'größe' 0.4%" in text
    assert len(pd.read_csv(tmp_path / "p.csv")) == 240
    # Another table may be written in another way, which is said, and what is given wins.
    table(seed=1).to_csv(tmp_path / "plain.csv", index=False)
    text = invoke("predict", model, tmp_path / "plain.csv", "--decimal", ".", "--out", tmp_path / "q.csv")
    assert "has the delimiter ',' and the encoding utf-8" in text
    np.testing.assert_allclose(*(pd.read_csv(tmp_path / name)["score"].drop(3) for name in ("p.csv", "q.csv")))
    odd = european(table(seed=2), tmp_path / "odd.csv", missing="-")
    assert "to read it as a missing value: --na -" in invoke("predict", model, odd, code=1)
    invoke("predict", model, odd, "--na", "-", "--out", tmp_path / "r.csv")
    text = invoke("evaluate", model, test, "--no-skip-unlabeled", code=1)
    assert "to leave these rows out: --skip-unlabeled" in text
    assert "is not UTF-8; save the file as UTF-8, or pass its encoding: --encoding" in invoke(
        "evaluate", model, test, "--encoding", "utf-8", code=1
    )


def broken(folder):
    """Write tables that cannot be used, each for another reason."""
    rng = np.random.default_rng(0)
    base = pd.DataFrame({"x": rng.normal(size=60), "when": ["2024-01-14", "2023-02-20"] * 30, "code": ["a", "b"] * 30})
    base = base.assign(label=["no", "yes"] * 30)
    base.to_csv(folder / "good.csv", index=False)
    text = base.astype(object)
    cases = {
        "unlabeled": text.assign(label=[None, *base["label"][1:]]),
        "infinite": text.assign(x=["inf", *base["x"][1:]]),
        "huge": text.assign(x=["1e200", *base["x"][1:]]),
        "words": text.assign(x=["oops", *base["x"][1:]]),
        "doubtful": text.assign(when="03/04/2024"),
        "both orders": text.assign(when=["14/08/2024", "08/14/2024"] * 30),
        "no date": text.assign(when=["never", *base["when"][1:]]),
        "per cent": text.assign(x=[f"{i} %" for i in range(60)]),
        "commas": text.assign(x=[f"{i},5" for i in range(60)]),
        "grouped": text.assign(x=[f"{i + 1},000" for i in range(60)]),
        "one class": text.assign(label="no"),
        "three classes": text.assign(label=["a", "b", "c"] * 20),
        "no target": text.drop(columns="label"),
        "no x": text.drop(columns="x"),
    }
    for name, frame in cases.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    (folder / "binary.csv").write_bytes(b"x,when,code,label\n1,2024-01-14,caf\xe9\x00,no\n")
    (folder / "ragged.csv").write_bytes(b"x,when,code,label\n1,2,3\n")
    with pd.ExcelWriter(folder / "sheets.xlsx") as book:
        base.to_excel(book, sheet_name="one")
        base.to_excel(book, sheet_name="two")
    return [*(f"{name}.csv" for name in (*cases, "binary", "ragged")), "sheets.xlsx"]


def test_errors_name_no_option_that_the_command_lacks(tmp_path):
    """`tried` checks the options in each text."""
    names = broken(tmp_path)
    model, goal = tmp_path / "m.rocmax", ["--target", "label", "--date", "when"]
    invoke("fit", tmp_path / "good.csv", *goal, *QUICK, "--out", model)
    failed = dict.fromkeys(OF_TABLES, 0)
    for name in names:
        path = tmp_path / name
        calls = {
            "fit": [path, *goal, *QUICK, "--out", tmp_path / "n.rocmax"],
            "compare": [path, *goal, "--models", "logistic", "--no-tune", "--splits", "2"],
            "predict": [model, path, "--out", tmp_path / "p.csv"],
            "evaluate": [model, path],
            "report": [model, path, "--out", tmp_path / "r.html"],
        }
        for command, args in calls.items():
            failed[command] += tried(command, *args)[0] != 0
    assert min(failed.values()) >= 9, failed


def test_the_flags_that_messages_may_name_are_those_of_the_commands():
    for command in COMMANDS:
        known = {flag for flag in flags(command) if flag.startswith("-")} - {"--help"}
        with pytest.raises((typer.Exit, KeyError)):
            getattr(commands, command)(no_such_option=1)
        assert running_flags.get() == known


@pytest.mark.parametrize("value", ["1e200", "-1E+200", "inf", "-Infinity"])
def test_a_number_too_large_is_named_with_column_and_line(tmp_path, value):
    frame = table().rename(columns={"größe": "size"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    goal = ["--target", "label", *QUICK, "--out", tmp_path / "m.rocmax"]
    invoke("fit", tmp_path / "a.csv", *goal)
    bad = frame.astype({"size": object})
    bad.loc[7, "size"] = value
    bad.to_csv(tmp_path / "b.csv", index=False)
    message = f"b.csv, line 9: column 'size' must have numbers from -1e+100 to 1e+100; got {value}; to read it as"
    assert message in invoke("fit", tmp_path / "b.csv", *goal[:-1], tmp_path / "n.rocmax", code=1)
    for command in ("predict", "evaluate"):
        assert message in invoke(command, tmp_path / "m.rocmax", tmp_path / "b.csv", code=1)
    invoke("evaluate", tmp_path / "m.rocmax", tmp_path / "b.csv", f"--na={value}")


def test_names_do_not_drive_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    names = {"\x1b[31mred": rng.normal(size=100), "\u202eright": rng.choice(["a\x1b]0;x\x07", "b"], 100)}
    frame = pd.DataFrame({**names, "\x1b[2Jid": range(100), "label": rng.integers(0, 2, 100)})
    path = tmp_path / "a\x1b[5m.csv"
    frame.to_csv(path, index=False)
    outputs = [
        CliRunner().invoke(app, [command, *map(str, args)])
        for command, args in (
            ("fit", [path, "--target", "label", *QUICK, "--out", tmp_path / "m\u202e.rocmax"]),
            ("evaluate", [tmp_path / "m\u202e.rocmax", path]),
            ("predict", [tmp_path / "m\u202e.rocmax", path, "--out", tmp_path / "p\x1b.csv"]),
            ("predict", [tmp_path / "m\u202e.rocmax", tmp_path / "none\x1b[31m.csv"]),
            ("fit", [path, "--target", "\x1b[31mlabel", "--out", tmp_path / "n.rocmax"]),
            ("fit", [path, "--target", "label", "--text", "\x1b[31mred", "--drop", "\x1b[31mred", "--out", "n"]),
        )
    ]
    assert [done.exit_code for done in outputs] == [0, 0, 0, 1, 1, 2]
    for done in outputs:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", done.output), done.output
    assert "\\x1b[31mred" in outputs[0].output
    assert "\\u202eright" in outputs[0].output


def test_equal_codes_are_one_category_however_they_are_written(tmp_path):
    rng = np.random.default_rng(0)
    code, label = rng.integers(1, 4, 300), rng.integers(0, 2, 300)
    flag = rng.random(300) < 0.3 + 0.4 * label
    frame = pd.DataFrame({"region": code, "flag": np.where(flag, "True", "False"), "label": label})
    frame.to_parquet(tmp_path / "a.parquet")
    goal = ["--target", "label", "--text", "region", "--text", "flag", *QUICK, "--out", tmp_path / "m"]
    invoke("fit", tmp_path / "a.parquet", *goal)
    invoke("predict", tmp_path / "m", tmp_path / "a.parquet", "--out", tmp_path / "p.csv")
    expected = pd.read_csv(tmp_path / "p.csv")["score"]
    assert expected.nunique() == 6
    others = {
        "floats.csv": frame.assign(region=code.astype(float)),
        "floats.parquet": frame.assign(region=code.astype(float)),
        "bools.parquet": frame.assign(flag=flag),
        "bools.csv": frame.assign(flag=flag),
        "lower.csv": frame.assign(flag=np.where(flag, "true", "false")),
    }
    for name, other in others.items():
        other.to_csv(tmp_path / name, index=False) if name.endswith("csv") else other.to_parquet(tmp_path / name)
        text = invoke("predict", tmp_path / "m", tmp_path / name, "--out", tmp_path / "q.csv")
        assert "unknown categories" not in text
        np.testing.assert_allclose(pd.read_csv(tmp_path / "q.csv")["score"], expected)
    # Both forms in one training table are one category too.
    mixed = frame.assign(region=[f"{value}.0" if i % 2 else str(value) for i, value in enumerate(code)])
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    goal = ["--target", "label", "--text", "region", *QUICK, "--out", tmp_path / "n", "--json"]
    done = CliRunner().invoke(app, ["fit", *map(str, [tmp_path / "mixed.csv", *goal])])
    columns = {column["name"]: column for column in json.loads(done.stdout)["columns"]}
    assert columns["region"]["levels"] == 3


def test_truth_values_in_text_are_those_of_a_model_of_booleans(tmp_path):
    rng = np.random.default_rng(0)
    flag, label = rng.random(200) < 0.4, rng.integers(0, 2, 200)
    frame = pd.DataFrame({"flag": flag, "z": rng.normal(size=200), "label": label})
    frame.to_parquet(tmp_path / "a.parquet")
    invoke("fit", tmp_path / "a.parquet", "--target", "label", *QUICK, "--out", tmp_path / "m")
    frame.assign(flag=frame["flag"].map({True: "True", False: "False"})).to_parquet(tmp_path / "b.parquet")
    for name in ("a", "b"):
        invoke("predict", tmp_path / "m", tmp_path / f"{name}.parquet", "--out", tmp_path / f"{name}.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv"))


def test_a_workbook_from_the_shell(tmp_path):
    frame = table().assign(when=pd.date_range("2023-01-05", periods=240, freq="29h"))
    with pd.ExcelWriter(tmp_path / "a.xlsx") as book:
        frame.to_excel(book, sheet_name="data", index=False)
        pd.DataFrame({"note": ["x"]}).to_excel(book, sheet_name="remarks", index=False)
    frame.to_csv(tmp_path / "a.csv", index=False)
    goal = ["--target", "label", "--date", "when", *QUICK, "--out", tmp_path / "m"]
    text = invoke("fit", tmp_path / "a.xlsx", *goal, code=1)
    assert "2 sheets, 'data', 'remarks'; pass the one to read: --sheet" in text
    invoke("fit", tmp_path / "a.xlsx", *goal, "--sheet", "data")
    for name in ("a.xlsx", "a.csv"):
        invoke("predict", tmp_path / "m", tmp_path / name, "--out", tmp_path / f"{name}.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a.xlsx.csv"), pd.read_csv(tmp_path / "a.csv.csv"))
    assert "AUC" in invoke("evaluate", tmp_path / "m", tmp_path / "a.xlsx")


def test_the_order_of_dates_is_said_on_the_terminal(tmp_path):
    frame = table().assign(when=[f"{1 + i % 12:02d}.{1 + i % 7:02d}.202{i % 5}" for i in range(240)])
    frame.to_csv(tmp_path / "dots.csv", index=False)
    goal = ["--target", "label", "--date", "when", *QUICK, "--out", tmp_path / "m"]
    text = invoke("fit", tmp_path / "dots.csv", *goal)
    assert "the day is taken to be first, as it is usual with dots; to read the month first: --month-first" in text
    frame.assign(when=frame["when"].str.replace(".", "/")).to_csv(tmp_path / "slashes.csv", index=False)
    text = invoke("fit", tmp_path / "slashes.csv", *goal, code=1)
    assert "say which: --day-first or --month-first" in text
    invoke("fit", tmp_path / "slashes.csv", *goal, "--month-first")
