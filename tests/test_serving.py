"""The examples of examples/serve: an HTTP service in a process of its own, a load test, and scores in Node."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.tables import SCRIPT, payments
from rocmax.tables import Columns, Limits, fit_table, predict
from rocmax.tables.onnx import export_file

httpx = pytest.importorskip("httpx")
for package in ("fastapi", "uvicorn", "lightgbm", "onnx", "onnxruntime"):
    pytest.importorskip(package)

pytestmark = pytest.mark.slow  # they start processes

ROOT = Path(__file__).parents[1]
SERVE = ROOT / "examples" / "serve"
TABLES = Path(os.environ.get("ROCMAX_DATA", ROOT.parent / "shared" / "data")) / "tables"
# The processes import the package that the tests import.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}


class Served:
    """A model, new rows, and a client of the service."""

    def __init__(self, model, new, folder, client):
        self.model, self.new, self.folder, self.client = model, new, folder, client

    def rows(self, frame=None):
        """The rows as JSON, with null for missing values."""
        columns = (self.new if frame is None else frame)[list(self.model.facts.features)]
        return json.loads(columns.to_json(orient="records"))

    def post(self, path, body, code=200):
        answer = self.client.post(path, json=body)
        assert answer.status_code == code, answer.text
        return answer.json()


def split_table(name):
    """Rows for the fit and new rows, and the options of the fit."""
    if name == "payments":
        columns = Columns(target="label", positive="fraud", drop=["since", "customer"])
        return payments(1500), payments(300, 1), {"columns": columns, "model": "ensemble"}
    if not (TABLES / "telco-churn.csv.gz").exists():
        pytest.skip("the raw table is not there")
    frame = pd.read_csv(TABLES / "telco-churn.csv.gz", na_values=" ").sample(frac=1.0, random_state=0)
    return frame[:4000], frame[4000:4400], {"columns": Columns(target="Churn", id="customerID"), "model": "boosted"}


def wait_until_it_answers(client, process, log):
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            client.get("/model")
        except httpx.ConnectError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"no answer in a minute: {log.read_text()}")


@pytest.fixture(scope="module", params=["payments", "telco-churn"])
def served(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    history, new, options = split_table(request.param)
    limits = Limits(max_fpr=0.1, confidence=0.9)
    model = fit_table(history, tune=False, limits=limits, **options)
    model.save(folder / "m.rocmax")
    export_file(folder / "m.rocmax", folder / "m.onnx")
    new = new.reset_index(drop=True)
    new.to_csv(folder / "new.csv", index=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log.txt"
    command = [sys.executable, SERVE / "app.py", folder / "m.rocmax", folder / "m.onnx", "--port", str(port)]
    with (
        log.open("w") as file,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
        subprocess.Popen(command, env=ENVIRONMENT, stdout=file, stderr=file) as process,
    ):
        try:
            wait_until_it_answers(client, process, log)
            yield Served(model, new, folder, client)
        finally:
            process.terminate()


def test_scores_are_those_of_predict(served):
    expected = predict(served.model, served.folder / "new.csv")
    found = pd.DataFrame(served.post("/rows?reasons=0", served.rows())["rows"])
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-9, atol=1e-9)
    assert found["label"].tolist() == expected["label"].tolist()
    assert found["flagged"].tolist() == (expected["score"] > 0).tolist()
    assert 0 < found["flagged"].sum() < len(found)
    assert not any(found["reasons"])
    for row, score in zip(served.rows()[:5], expected["score"], strict=False):
        assert served.post("/row", row)["score"] == pytest.approx(score, rel=1e-9, abs=1e-9)


def test_missing_values_spaces_and_unknown_text_are_those_of_predict(served):
    new = served.new.head(40).astype(object)
    kinds = served.model.facts.features
    for place, (name, kind) in enumerate(kinds.items()):
        new.loc[place % 7 :: 7, name] = None
        if kind == "text":
            new.loc[1::3, name] = new.loc[1::3, name].map(lambda text: text and f" {text}\t")
            new.loc[place % 5 :: 11, name] = "never seen"
    new.to_csv(served.folder / "odd.csv", index=False)
    expected = predict(served.model, served.folder / "odd.csv")
    found = pd.DataFrame(served.post("/rows", served.rows(new))["rows"])
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-9, atol=1e-9)
    nothing = served.post("/row", dict.fromkeys(kinds))
    assert nothing["score"] == pytest.approx(predict(served.model, pd.DataFrame([dict.fromkeys(kinds)]))["score"][0])


def test_flagged_rows_have_the_largest_contributions_as_reasons(served):
    rows, found = served.rows(), served.post("/rows?reasons=2", served.rows())["rows"]
    parts = served.model.contributions(served.folder / "new.csv")
    assert parts.columns == list(served.model.facts.features)
    for row, answer, values in zip(rows, found, parts.values, strict=True):
        assert [reason["column"] for reason in answer["reasons"]] == (
            [parts.columns[i] for i in np.argsort(-np.abs(values), kind="stable")[:2]] if answer["score"] > 0 else []
        )
        for reason in answer["reasons"]:
            assert reason["value"] == row[reason["column"]]
            assert reason["effect"] == pytest.approx(values[parts.columns.index(reason["column"])], abs=1e-9)


def test_all_reasons_add_up_to_the_score(served):
    flagged = int(np.argmax(predict(served.model, served.new)["score"]))
    answer = served.post(f"/row?reasons={len(served.model.facts.features)}", served.rows()[flagged])
    reference = served.model.contributions(served.new).reference[flagged]
    effects = [reason["effect"] for reason in answer["reasons"]]
    assert sum(effects) + reference == pytest.approx(answer["score"], abs=1e-9)


def test_the_limit_is_in_each_answer(served):
    limit = {"max_fpr": 0.1, "min_tpr": None, "others": [], "rate": "row", "confidence": 0.9, "threshold": 0.0}
    row = served.rows()[0]
    assert served.post("/row", row)["limit"] == limit
    assert served.post("/rows", [row, row])["limit"] == limit
    about = served.client.get("/model").json()
    assert about["limit"] == limit
    assert about["columns"] == served.model.facts.features
    assert about["positive"] == served.model.positive
    assert about["held_out"] == served.model.facts.at_threshold


def first(served, kind):
    return next(name for name, of in served.model.facts.features.items() if of == kind)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("number", "six", "must be a number or null; got 'six'"),
        ("number", "6", "must be a number or null; got '6'"),
        ("number", True, "must be a number or null; got True"),
        ("number", [1], "must be a number or null; got [1]"),
        ("number", 1e101, "must be at most 1e100; got 1e+101"),
        ("text", 3, "must be text or null; got 3"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(served, kind, value, text):
    row, name = served.rows()[0], first(served, kind)
    refused = {**row, name: value}
    assert served.post("/row", refused, 422) == {"detail": [f"column {name!r} {text}"]}
    assert served.post("/rows", [row, refused], 422) == {"detail": [f"row 2: column {name!r} {text}"]}


def test_wrong_columns_are_refused(served):
    row, name = served.rows()[0], first(served, "number")
    rest = {key: value for key, value in row.items() if key != name}
    missing, near = f"column {name!r} is missing; the value may be null", f"(is it {name!r}?)"
    assert served.post("/row", rest, 422) == {"detail": [missing]}
    assert served.post("/rows", [row, {**rest, f"{name}_": 1}], 422) == {
        "detail": [f"row 2: {missing}", f"row 2: the model has no column '{name}_' {near}"]
    }
    many = served.post("/rows", [rest] * 50, 422)["detail"]
    assert many == [*(f"row {i}: {missing}" for i in range(1, 11)), "and 40 more errors"]


def test_other_bad_requests_are_refused(served):
    row, n_columns = served.rows()[0], len(served.model.facts.features)
    assert served.post("/rows", [], 422)["detail"] == ["the body must have at least one row; got []"]
    assert served.post("/rows", row, 422)["detail"][0].startswith("the body must be a list of rows; got {")
    assert served.post("/row", [row], 422)["detail"][0].startswith("the body must be an object with a value for each")
    assert served.post("/rows", [3], 422)["detail"] == ["row 1 must be an object with a value for each column; got 3"]
    (text,) = served.post(f"/rows?reasons={n_columns + 1}", [row], 422)["detail"]
    assert text == f"reasons: Input should be less than or equal to {n_columns}; got '{n_columns + 1}'"
    headers = {"Content-Type": "application/json"}
    name = first(served, "number")
    for body in (b'{"a":', json.dumps({**row, name: float("nan")}).encode()):
        answer = served.client.post("/row", content=body, headers=headers)
        assert answer.status_code == 422
    assert answer.json() == {"detail": [f"column {name!r} must be a finite number or null; got nan"]}


def test_the_load_test_prints_its_figures(served):
    url = str(served.client.base_url)
    options = ["--connections", "1", "2", "--rows", "1", "20", "--reasons", "0", "1", "--seconds", "0.3"]
    command = [sys.executable, SERVE / "load.py", url, served.folder / "new.csv", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    names = ["reasons", "connections", "rows per request", "requests/s", "rows/s", "median ms", "95 % ms", "99 % ms"]
    assert re.split(r" {2,}", header) == names
    figures = np.array([line.split() for line in lines], dtype=float)
    assert figures[:, :3].tolist() == [[k, c, n] for k in (0, 1) for n in (1, 20) for c in (1, 2)]
    np.testing.assert_allclose(figures[:, 4], figures[:, 3] * figures[:, 2], rtol=0.1, atol=0.6)
    # A connection has one request at a time, so the median is at most twice the mean of the time that one takes.
    assert (figures[:, 5] <= 2 * 1000 * figures[:, 1] / figures[:, 3] + 0.1).all()
    assert (np.diff(figures[:, 5:], axis=1) >= 0).all()


def service():
    """The module of the service."""
    spec = importlib.util.spec_from_file_location("serving_app", SERVE / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def saved(folder, name, **options):
    model = fit_table(payments(400), positive="fraud", max_fpr=0.2, tune=False, **options)
    model.save(folder / f"{name}.rocmax")
    export_file(folder / f"{name}.rocmax", folder / f"{name}.onnx")
    return folder / f"{name}.rocmax", folder / f"{name}.onnx"


def test_what_cannot_be_served_is_refused_at_the_start(tmp_path):
    scorer = service().Scorer
    plain = Columns(target="label", drop=["since", "customer"])
    linear, graph = saved(tmp_path, "linear", columns=plain, model="linear")
    assert scorer(linear, graph).kinds.keys() >= {"amount", SCRIPT}
    additive, _ = saved(tmp_path, "additive", columns=plain, model="additive")
    with pytest.raises(
        ValueError, match=r"linear\.onnx is of another model: it gives .* where .*additive\.rocmax gives"
    ):
        scorer(additive, graph)
    dated = saved(tmp_path, "dated", columns=Columns(target="label", date="since", drop="customer"), model="linear")
    with pytest.raises(ValueError, match=r"a model of numbers and categories; .* dates \['since'\]"):
        scorer(*dated)


def test_what_the_guide_shows_is_what_the_commands_printed():
    results = (ROOT / "benchmarks" / "results" / "serving.md").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    found = re.findall(r"^```(?:pycon)?\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    blocks = [block for block in found if block.startswith("$ ")]
    assert len(blocks) == 5
    assert {line for block in blocks for line in block.splitlines()} - set(results.splitlines()) == set()
    for words, name in (
        ("from Python takes", "predict(model, row)"),
        ("row with its reasons", "model.reasons(row, 3)"),
    ):
        (printed,) = re.findall(rf"\| `{re.escape(name)}` +\| ([\d.]+)", results)
        assert re.search(rf"{words}.* {float(printed):.0f} ms", guide)


# Scores in Node.


def node(*args, code=0):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    found = subprocess.run(
        ["node", "-e", "require('onnxruntime-node')"], cwd=SERVE / "node", capture_output=True, check=False
    )
    if found.returncode:
        pytest.skip("onnxruntime-node is not installed")
    command = ["node", SERVE / "node" / "score.js", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_scores_in_node_are_those_of_predict(served):
    odd = served.new.copy().astype(object)
    for place, (name, kind) in enumerate(served.model.facts.features.items()):
        odd.loc[place % 7 :: 7, name] = None
        if kind == "text":
            odd.loc[place % 5 :: 11, name] = 'unseen, "quoted"\nin two lines'
    odd.to_csv(served.folder / "odd.csv", index=False)
    odd.to_json(served.folder / "odd.json", orient="records")
    expected = predict(served.model, served.folder / "odd.csv")
    for table in ("odd.csv", "odd.json"):
        done = node(served.folder / "m.onnx", served.folder / table)
        (served.folder / "node.csv").write_text(done.stdout)
        found = pd.read_csv(served.folder / "node.csv")
        np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-9, atol=1e-9)
        assert found["label"].tolist() == expected["label"].tolist()


def test_node_names_what_is_wrong_with_a_table(served):
    name = first(served, "number")
    rows = served.rows()[:2]
    path = served.folder / "bad.json"
    for value, text in (("six", 'must be a number, or empty; got "six"'), (None, "is missing")):
        bad = {key: of for key, of in rows[1].items() if key != name} | ({name: value} if value else {})
        path.write_text(json.dumps([rows[0], bad]))
        done = node(served.folder / "m.onnx", path, code=1)
        assert done.stderr == f"Error: row 2: column '{name}' {text}\n"
        assert done.stdout == ""
    (served.folder / "bad.csv").write_text("a,b\n1\n")
    done = node(served.folder / "m.onnx", served.folder / "bad.csv", code=1)
    assert done.stderr == "Error: row 1 must have 2 fields, as the header has; got 1\n"
