"""A table as people have them, from the first error to predictions, in the shell as a user would."""

from __future__ import annotations

import json
import struct

import numpy as np
import pandas as pd
import pytest

from helpers.commands import run_program as run
from helpers.model_files import unpacked

# They start processes.
pytestmark = pytest.mark.slow

QUICK = ["--target", "churned", "--model", "logistic", "--no-tune"]
FLAGS = ["--na", "oops", "--na", "?", "--number", "share", "--date", "joined", "--text", "region", "--id", "account"]


def customers(n_rows=600, seed=0):
    """Numbers with odd cells, shares in per cent, dates day first, codes, and three kinds of identifiers."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < 0.3
    paid = (rng.gamma(2.0, 40.0, n_rows) * (1 - 0.5 * y)).round(2).astype(str).astype(object)
    paid[7] = "oops"
    calls = rng.poisson(2 + 3 * y).astype(str).astype(object)
    calls[::9] = "?"
    joined = pd.Timestamp("2021-03-05") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D")
    return pd.DataFrame(
        {
            "account": rng.choice(10**9, n_rows, replace=False) + 10**9,
            "email": [f"user{k:07d}@example.org" for k in rng.permutation(10**6)[:n_rows]],
            "row": np.arange(n_rows),
            "paid": paid,
            "calls": calls,
            "share": [f"{value:.1f}%" for value in 100 * rng.random(n_rows)],
            "joined": joined.strftime("%d/%m/%Y"),
            "region": rng.integers(1, 7, n_rows),
            "churned": np.where(y, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    table = customers()
    table.to_csv(folder / "all.csv", index=False)
    table[:300].to_csv(folder / "part-1.csv", index=False)
    table[300:].to_csv(folder / "part-2.csv", index=False)
    customers(200, seed=1).to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def model(shop):
    """The model of both parts, which are one table."""
    run("fit", shop / "part-*.csv", *QUICK, *FLAGS, "--max-fpr", "0.1", "--out", shop / "m.rocmax")
    return shop / "m.rocmax"


def test_the_error_names_all_columns_and_flags_at_once(shop):
    done = run("fit", shop / "all.csv", *QUICK, "--out", shop / "none.rocmax", code=1)
    lines = done.stderr.splitlines()
    assert lines[0].endswith("all.csv has columns of numbers with other values:")
    assert lines[1] == "'paid': 599 numbers, and 'oops' in 1 row (first in line 9); to read them as missing: --na oops"
    assert lines[2].startswith("'calls': 533 numbers, and '?' in 67 rows (first in line 2); ")
    assert lines[2].endswith("--na '?'")
    assert lines[3].endswith("to read per cent: --number share")
    assert done.stdout == ""
    assert not (shop / "none.rocmax").exists()


def test_the_plan_after_the_flags(shop, model):
    done = run("fit", shop / "all.csv", *QUICK, *FLAGS, "--json", "--out", shop / "again.rocmax")
    plan = {
        column["name"]: (column["kind"], column["missing"], column["used"])
        for column in json.loads(done.stdout)["columns"]
    }
    assert plan == {
        "account": ("identifier", None, False),
        "email": ("identifier", 0, False),
        "row": ("identifier", 0, False),
        "paid": ("number", 1, True),
        "calls": ("number", 67, True),
        "share": ("number", 0, True),
        "joined": ("date", 0, True),
        "region": ("category", 0, True),
    }  # fmt: skip
    assert "'email' is left out (identifier): 600 different values in 600 rows; to use it: --text email" in done.stderr
    assert "'row' is left out (identifier): row numbers" in done.stderr
    # Without the flag, dates are named and left out.
    flags = [flag for flag in FLAGS if flag not in ("--date", "joined")]
    done = run("fit", shop / "all.csv", *QUICK, *flags, "--out", shop / "again.rocmax")
    assert (
        "'joined' is left out (date): dates are used only if they are declared; to use it: --date joined" in done.stderr
    )


def test_predictions_can_be_joined(shop, model):
    run("predict", model, shop / "new.csv", "--keep", "email", "--proba", "--out", shop / "p.csv")
    found, new = pd.read_csv(shop / "p.csv"), customers(200, seed=1)
    assert found.columns.tolist() == ["account", "email", "score", "label", "probability"]
    assert found["email"].tolist() == new["email"].tolist()
    assert found["account"].tolist() == new["account"].tolist()
    assert set(found["label"]) <= {"yes", "no"}
    assert ((found["score"] > 0) == (found["label"] == "yes")).all()
    assert found["probability"].between(0, 1).all()
    done = run("predict", model, shop / "new.csv", "--keep", "nothing", "--out", shop / "q.csv", code=1)
    assert "has no column 'nothing'" in done.stderr


def test_no_identifier_is_in_the_files_of_the_commands(shop, model):
    """Neither as text nor as a number of 8 bytes."""
    run("report", model, shop / "all.csv", "--out", shop / "page.html")
    run("export", model, shop / "m.onnx")
    content = b"".join(unpacked(shop / name) for name in ("m.rocmax", "page.html", "m.onnx"))
    table = customers()
    forms = [str(value).encode() for value in (*table["account"], *table["email"])]
    forms += [struct.pack(kind, value) for value in table["account"].tolist() for kind in ("<d", "<q")]
    assert [form for form in forms if form in content] == []
    # The search finds what is there.
    assert b"part-1.csv" in content or b"calls" in content


def test_other_numbers_need_other_flags(shop):
    table = customers()[["share", "churned"]].assign(price=lambda t: t["share"].str.rstrip("%").str.replace(".", ","))
    table[["price", "churned"]].to_csv(shop / "comma.csv", index=False)
    done = run("fit", shop / "comma.csv", *QUICK, "--out", shop / "c.rocmax", code=1)
    assert "to read a decimal comma: --decimal ," in done.stderr
    done = run("fit", shop / "comma.csv", *QUICK, "--decimal", ",", "--json", "--out", shop / "c.rocmax")
    assert json.loads(done.stdout)["columns"][0]["kind"] == "number"
