"""Compiling: once per machine, late, and not in silence if it takes long."""

import io
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from rocmax.online import loops
from rocmax.online import loops as _compile

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
    assert run.stderr == ""  # a pipe gets no notice
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*.nbc")}


@pytest.mark.slow
def test_a_loop_is_compiled_once_per_machine(tmp_path):
    stored = fit_in_new_process(tmp_path)
    assert stored
    assert fit_in_new_process(tmp_path) == stored


def slow_compile(monkeypatch, terminal):
    """Compile a loop that takes over a second, with standard error on a terminal or not."""
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    compiled = []

    def slow(signatures, **options):
        time.sleep(1.3)
        compiled.extend(signatures)
        return lambda function: function

    monkeypatch.setattr(_compile, "njit", slow)
    loop = _compile._loop()(lambda x: x + 1)
    assert [_compile.run(loop, 3), _compile.run(loop, 4)] == [4, 5]
    assert len(compiled) == 1
    return stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_compile_is_announced_on_a_terminal_only(monkeypatch, terminal):
    said = slow_compile(monkeypatch, terminal)
    assert said == ("rocmax: compiling a loop for this machine; this is done once and takes a few seconds\n" * terminal)


def test_one_version_serves_writable_and_read_only_rows():
    rng = np.random.default_rng(0)
    X, index = rng.standard_normal((6, 3)), np.array([0, 1, 2])
    frozen = X.copy()
    frozen.flags.writeable = False
    results = []
    for rows in (X, frozen):
        v, u, work = np.zeros(3), np.zeros(3), np.zeros(3)
        state = (0, 1.0, 0.0, 0)
        _compile.run(loops.pair_steps, rows, index, index + 3, v, u, work, state, (0.1, 1.0, 4, 4, 0.0, True))
        results.append(v)
    assert np.array_equal(*results)
    assert results[0].any()
    kinds = [str(kinds[1]) for kinds in _compile._READY if kinds[0] is loops.pair_steps]
    assert {"array(float64, 2d, C)", "readonly array(float64, 2d, C)"} <= set(kinds)
    versions = [compiled for kinds, compiled in _compile._READY.items() if kinds[0] is loops.pair_steps]
    dense = [v for v in versions if "float64, 2d, C" in str(v.signatures[0][0])]
    assert len({id(v) for v in dense}) == 1


def test_operations_are_for_compiled_code_only():
    with pytest.raises(NotImplementedError, match="compiled code only"):
        loops.row_dot(np.eye(2), 0, np.ones(2))


def test_without_a_place_for_the_cache_loops_compile_still(monkeypatch):
    real = _compile.njit

    def refuse(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(*args, **options)

    monkeypatch.setattr(_compile, "njit", refuse)
    assert _compile.run(_compile._loop()(lambda x: x + 1), 2) == 3


def test_other_errors_of_the_compiler_come_through(monkeypatch):
    def fail(*args, **options):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(_compile, "njit", fail)
    with pytest.raises(RuntimeError, match="out of luck"):
        _compile.run(_compile._loop()(lambda x: x + 1), 2)
