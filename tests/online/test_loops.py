"""Compiling: once per machine, and late."""

import os
import subprocess
import sys

import numpy as np
import pytest

from rocmax.online import loops

FIT = """
import numpy as np
from rocmax import PSAMClassifier
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5))
y = (X[:, 0] > 0).astype(int)
PSAMClassifier(random_state=0).fit(X, y)
"""


def fit_in_new_process(directory):
    """Return the compiled loops in the directory after a fit, with the times at which they were written."""
    run = subprocess.run(
        [sys.executable, "-c", FIT],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(directory)},
    )
    assert run.stderr == ""
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*.nbc")}


@pytest.mark.slow
def test_a_loop_is_compiled_once_per_machine(tmp_path):
    stored = fit_in_new_process(tmp_path)
    assert stored
    assert fit_in_new_process(tmp_path) == stored


def test_operations_are_for_compiled_code_only():
    with pytest.raises(NotImplementedError, match="compiled code only"):
        loops.row_dot(np.eye(2), 0, np.ones(2))


def test_without_a_place_for_the_cache_loops_compile_still(monkeypatch):
    real = loops.njit

    def refuse(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(*args, **options)

    monkeypatch.setattr(loops, "njit", refuse)
    assert loops._loop(lambda x: x + 1)(2) == 3


def test_rows_of_a_memory_map_are_accepted():
    rng = np.random.default_rng(0)
    X, index = rng.standard_normal((6, 3)), np.array([0, 1, 2])
    frozen = X.copy()
    frozen.flags.writeable = False
    results = []
    for rows in (X, frozen):
        v, u, work = np.zeros(3), np.zeros(3), np.zeros(3)
        loops.pair_steps(rows, index, index + 3, v, u, work, (0, 1.0, 0.0, 0), (0.1, 1.0, 4, 4, 0.0, True))
        results.append(v)
    assert np.array_equal(*results)
    assert results[0].any()
