"""The commands of docs/serving.md on a real table, with what they print, and a load test of the service.

``python -m benchmarks.workflow.serving`` writes benchmarks/results/serving.md. The table is telco-churn, customers of a
telephone company; two thirds are for the fit. It needs ``fastapi``, ``uvicorn`` and ``onnxruntime``, and curl. The page
has scores in Node if ``node`` finds ``onnxruntime-node`` (in ``NODE_PATH``, for example).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import onnxruntime
import pandas as pd

from benchmarks._shared.data import ROOT, data_directory
from benchmarks._shared.results import ONE_THREAD, markdown, publish
from benchmarks.workflow.production import run
from rocmax.tables import load_model, predict

SERVE = ROOT / "examples" / "serve"
COMMANDS = [
    "rocmax fit history.csv --target Churn --max-fpr 0.05 --confidence 0.95 --id customerID --model boosted "
    "--out churn.rocmax",
    "rocmax export churn.rocmax churn.onnx",
    "rocmax predict churn.rocmax new.csv --reasons 3 --out scores.csv",
]
START = "python app.py churn.rocmax churn.onnx --port 8000"
SEND = "curl -s 'http://127.0.0.1:8000/{path}' -H 'Content-Type: application/json' -d @{file}"
NODE = "node score.js churn.onnx new.csv"
LOAD = "python load.py http://127.0.0.1:8000 new.csv"


def write_tables(folder: Path) -> None:
    """Write the history and the new rows, without labels."""
    rows = pd.read_csv(data_directory() / "tables" / "telco-churn.csv.gz", dtype=str).sample(frac=1.0, random_state=0)
    last = len(rows) * 2 // 3
    rows.iloc[:last].to_csv(folder / "history.csv", index=False)
    rows.iloc[last:].drop(columns="Churn").to_csv(folder / "new.csv", index=False)


def write_requests(folder: Path) -> int:
    """Write requests: the row with the highest score, the same with two mistakes, and all rows; return the row."""
    kinds = load_model(folder / "churn.rocmax").facts.features or {}
    table = pd.read_csv(folder / "new.csv", na_values=" ")[list(kinds)]
    rows = json.loads(table.to_json(orient="records"))
    highest = int(pd.read_csv(folder / "scores.csv")["score"].idxmax())
    wrong = {("tenur" if name == "tenure" else name): value for name, value in rows[highest].items()}
    wrong["MonthlyCharges"] = str(wrong["MonthlyCharges"])
    for name, body in (("row", rows[highest]), ("wrong", wrong), ("rows", rows)):
        (folder / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
    return highest


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """Run the service while the block runs, and yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, str(SERVE / "app.py"), "churn.rocmax", "churn.onnx", "--port", port]
    with subprocess.Popen(command, cwd=folder, env={**os.environ, **ONE_THREAD}) as process:
        try:
            for _ in range(600):
                try:
                    urlopen(f"http://127.0.0.1:{port}/model").close()
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                raise SystemExit("the service did not answer within a minute")
            yield port
        finally:
            process.terminate()


def output(command: str, folder: Path, port: str) -> str:
    """Return what a command of the page prints, with the port of the service and the files of the examples."""
    words = [word.replace(":8000", f":{port}") for word in shlex.split(command)]
    scripts = {"load.py": SERVE / "load.py", "score.js": SERVE / "node" / "score.js", "python": Path(sys.executable)}
    words = [str(scripts.get(word, word)) for word in words]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.rstrip()


def block(command: str, printed: str) -> str:
    """Return a command and its output as they are in a terminal."""
    return f"```\n$ {command}\n{printed}".rstrip() + "\n```"


def agreement(scores: pd.DataFrame, expected: pd.DataFrame) -> str:
    """Say how far scores are from those of `rocmax predict`."""
    largest = float(np.abs(scores["score"] - expected["score"]).max())
    same = int((scores["label"] == expected["label"]).sum())
    return f"largest difference to `rocmax predict` {largest:.1e}, {same:,} of {len(expected):,} labels equal"


def least_milliseconds(call: Callable[[], Any], repeats: int = 30) -> float:
    """Return the least time of a call."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return 1000 * best


def one_row(folder: Path, place: int) -> str:
    """Return a table of the times of one flagged row in one process."""
    model, options = load_model(folder / "churn.rocmax"), onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "churn.onnx"), options)
    row = pd.read_csv(folder / "new.csv", na_values=" ").iloc[[place]]
    inputs = {
        name: row[[name]].to_numpy(np.float64 if kind == "number" else object)
        for name, kind in (model.facts.features or {}).items()
    }
    calls: dict[str, Callable[[], Any]] = {
        "the graph in onnxruntime": lambda: session.run(["score", "label"], inputs),
        "`predict(model, row)`": lambda: predict(model, row),
        "`model.reasons(row, 3)`": lambda: model.reasons(row, 3),
    }
    return markdown(["one row", "ms"], [[name, f"{least_milliseconds(call):.2f}"] for name, call in calls.items()])


def has_node() -> bool:
    """Return whether the scores in Node can be computed."""
    command = ["node", "-e", "require('onnxruntime-node')"]
    return shutil.which("node") is not None and subprocess.run(command, capture_output=True).returncode == 0


def main() -> None:
    """Run the commands."""
    os.environ |= ONE_THREAD
    packages = ", ".join(f"{name} {version(name)}" for name in ("onnxruntime", "fastapi", "uvicorn"))
    sections = [f"The commands of docs/serving.md, and all that they print. {packages}."]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        sections += [block(command, run(command, folder)) for command in COMMANDS]
        highest, expected = write_requests(folder), pd.read_csv(folder / "scores.csv")
        with service(folder) as port:
            sections.append(f"The service, which keeps running:\n\n{block(START, '')}")
            sections.append("The row with the highest score, and the same row with two mistakes:")
            for path, file in (("row?reasons=2", "row.json"), ("row", "wrong.json")):
                command = SEND.format(path=path, file=file)
                sections.append(block(command, output(command, folder, port)))
            rows = json.loads(output(SEND.format(path="rows?reasons=0", file="rows.json"), folder, port))["rows"]
            sections.append(f"All {len(rows):,} rows in one request: {agreement(pd.DataFrame(rows), expected)}.")
            sections.append(
                "Load test, five seconds for each line. The service is one process, and the test runs on the same "
                f"machine, next to other work: the load average at the start is {os.getloadavg()[0]:.1f} on "
                f"{os.cpu_count()} cores."
            )
            sections.append(block(LOAD, output(LOAD, folder, port)))
        sections.append(
            f"What one flagged row takes within a process, the least of 30 times:\n\n{one_row(folder, highest)}"
        )
        if has_node():
            printed = output(NODE, folder, "")
            (folder / "node.csv").write_text(f"{printed}\n", encoding="utf-8")
            shown = "\n".join([*printed.splitlines()[:3], "..."])
            said = agreement(pd.read_csv(folder / "node.csv"), expected)
            sections.append(f"Node, all rows: {said}.\n\n{block(NODE, shown)}")
    publish("serving", "A model behind HTTP, and in Node", sections)


if __name__ == "__main__":
    main()
