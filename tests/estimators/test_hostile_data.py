"""Every public estimator on hostile data: each fit ends in time, with finite scores or a clear ValueError."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import rocmax
from helpers import hostile

N_SHARES = 2


def test_hostile_list_holds_every_estimator():
    public = [getattr(rocmax, name) for name in rocmax.__all__]
    fitted = {kind for kind in public if inspect.isclass(kind) and hasattr(kind, "fit")}
    assert fitted == {type(estimator) for estimator in hostile.ESTIMATORS}


@pytest.mark.slow
@pytest.mark.parametrize("share", range(N_SHARES))
def test_hostile_fits_end(share):
    program = Path(hostile.__file__)
    run = subprocess.run(
        [sys.executable, str(program), str(share), str(N_SHARES)], capture_output=True, text=True, timeout=900
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert lines, run.stderr
    assert lines[-1] == {"done": share}, f"ended at {lines[-1]}: {run.stderr[-3000:]}"
    assert [line["wrong"] for line in lines if "wrong" in line] == []
