"""Progress: stages for a listener, and bars on a terminal only."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import time

import numpy as np
import pandas as pd
import pytest

from helpers.commands import ROCMAX
from rocmax.cli.screen import task_name
from rocmax.tables import Running, fit_table

# They start processes.
pytestmark = pytest.mark.slow


def table(n_rows=300):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    return pd.DataFrame({"x": rng.normal(size=n_rows) + y, "z": rng.normal(size=n_rows), "label": y})


def test_each_fold_and_family_is_reported():
    heard = []
    fit_table(table(), target="label", running=Running(progress=lambda *args: heard.append(args)))
    texts = [text for text, _, _ in heard]
    assert heard[0] == ("family 1 of 4: preparing linear", 0, None)
    assert ("family 1 of 4: tuning linear: fit 50 of 50", 50, 50) in heard
    assert "family 3 of 4: tuning boosted in 5 folds" in texts
    assert "family 4 of 4: tuning ensemble in 10 folds" in texts
    assert ("family 3 of 4: scoring boosted: fold 10 of 10", 10, 10) in heard
    assert texts[-1] == "evaluating on the held-out rows"
    # A listener hears of its own fit only.
    count = len(heard)
    fit_table(table(), target="label", model="logistic")
    assert len(heard) == count


def test_the_folds_of_a_partial_auc_fit_are_reported():
    heard = []
    fit_table(
        table(), target="label", max_fpr=0.2, model="linear", running=Running(progress=lambda *args: heard.append(args))
    )
    assert ("tuning linear: path over C, fold 10 of 10", 9, 10) in heard
    assert any(re.match(r"tuning linear: \d+ starting points, fold 3 of 10", text) for text, _, _ in heard)


def test_an_error_of_a_listener_is_not_lost():
    def stop(*args):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fit_table(table(), target="label", model="logistic", running=Running(progress=stop))


def test_the_name_of_a_fit_in_a_comparison():
    assert task_name(4, 10, 0) == "model 1 of 4, split 1 of 10"
    assert task_name(4, 10, 17) == "model 2 of 4, split 5 of 10"
    assert task_name(4, 10, 40) == "done"


def on_a_terminal(call, folder):
    """Run a command whose standard error is a terminal; return the time and the text of each output, and its end."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    start, times, seen = time.monotonic(), [], []
    with subprocess.Popen(call, cwd=folder, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            times.append(time.monotonic() - start)
            seen.append(part)
        process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 0
    return np.array([*times, time.monotonic() - start]), b"".join(seen).decode()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["fit", "--out", "m.rocmax", "--model", "logistic"], "saving the model"),
        (["compare", "--models", "logistic,auc", "--splits", "6"], "split 1 of 6"),
    ],
)
def test_bars_are_shown_on_a_terminal_only(tmp_path, command, shown):
    table(2000).to_csv(tmp_path / "a.csv", index=False)
    name, *options = command
    call = [ROCMAX, name, "a.csv", "--target", "label", *options]
    assert shown in on_a_terminal(call, tmp_path)[1]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert shown not in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.slow
def test_something_moves_all_the_time(tmp_path):
    """From the start, while packages are imported, to the end, while the model is saved."""
    rng = np.random.default_rng(0)
    y = rng.random(20_000) < 0.1
    wide = pd.DataFrame(rng.normal(size=(y.size, 20)) + np.outer(y, np.linspace(0, 0.5, 20))).round(4)
    wide.assign(label=y.astype(int)).to_csv(tmp_path / "a.csv", index=False)
    call = [ROCMAX, "fit", "a.csv", "--target", "label", "--max-fpr", "0.05", "--model", "linear", "--out", "m.rocmax"]
    times, text = on_a_terminal(call, tmp_path)
    assert "starting" in text
    assert "reading a.csv" in text
    assert "tuning linear" in text
    assert "saving the model" in text
    # More than once a second on average; other processes can keep a thread waiting for longer.
    assert times.size > times[-1]
