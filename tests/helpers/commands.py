"""The program, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROCMAX = str(Path(sys.executable).with_name("rocmax"))
# The options of the model that most tests use.
FIT = ["--target", "label", "--positive", "fraud", "--max-fpr", "0.1", "--drop", "customer"]
# The model of tests that are not about models.
LINEAR = ["--model", "linear"]


def run(*args, code=0):
    done = subprocess.run([ROCMAX, *map(str, args)], capture_output=True, text=True, timeout=170)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done
