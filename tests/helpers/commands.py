"""The commands of the program."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

ROCMAX = str(Path(sys.executable).with_name("rocmax"))
# The options of the model that most tests use.
FIT = ["--target", "label", "--positive", "fraud", "--max-fpr", "0.1", "--drop", "customer"]
# The model of tests that are not about models.
LINEAR = ["--model", "linear"]


class Done(NamedTuple):
    """What a command printed, and its exit code."""

    stdout: str
    stderr: str
    returncode: int


def run(*args, code=0):
    """Run a command in this process, which saves the time to start one; its exit code must be the given one."""
    from typer.testing import CliRunner

    from rocmax.cli.app import app

    # The program has warnings shown by its own rules, not raised as those of tests are.
    with warnings.catch_warnings():
        warnings.resetwarnings()
        result = CliRunner().invoke(app, list(map(str, args)), prog_name="rocmax")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return Done(result.stdout, result.stderr, result.exit_code)


def run_program(*args, code=0):
    """Run the installed program as a user does."""
    done = subprocess.run([ROCMAX, *map(str, args)], capture_output=True, text=True, timeout=170)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done
