"""Compiling: once per machine, late, and not in silence if it takes long."""

import io
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from rocmax import _jit

FIT = """
import time
import numpy as np
from rocmax import PSAMClassifier
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5))
y = (X[:, 0] > 0).astype(int)
model = PSAMClassifier(random_state=0)
start = time.process_time()
model.fit(X, y)
print(time.process_time() - start)
start = time.process_time()
model.fit(X, y)
print(time.process_time() - start)
"""


def fit_in_new_process(directory):
    run = subprocess.run(
        [sys.executable, "-c", FIT],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(directory)},
    )
    assert run.stderr == ""  # a pipe gets no notice
    first, second = map(float, run.stdout.split())
    return first - second


@pytest.mark.slow
def test_the_first_use_is_cheap_once_the_machine_has_compiled(tmp_path):
    cold = fit_in_new_process(tmp_path)
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert stored
    warm = min(fit_in_new_process(tmp_path) for _ in range(3))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == stored  # nothing was compiled again
    assert warm < cold
    assert warm < 1.0


def slow_compile(monkeypatch, terminal):
    """Compile a loop that takes over a second, with standard error on a terminal or not."""
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)

    class Slow:
        overloads = ()
        compiled = 0

        class py_func:  # noqa: N801
            def __code__(x):  # noqa: N805
                return x

            __code__ = __code__.__code__

        def disable_compile(self, off=True):
            pass

        def compile(self, signature):
            time.sleep(1.3)
            self.compiled += 1

        def __call__(self, x):
            return x

    loop = Slow()
    monkeypatch.setitem(_jit._WRITTEN, loop, frozenset())
    assert _jit.run(loop, 3) == 3
    assert loop.compiled == 1
    return stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_compile_is_announced_on_a_terminal_only(monkeypatch, terminal):
    said = slow_compile(monkeypatch, terminal)
    assert said == ("rocmax: compiling a loop for this machine; this happens once and takes a few seconds\n" * terminal)


def test_one_version_serves_writable_and_read_only_rows():
    rng = np.random.default_rng(0)
    X, index = rng.standard_normal((6, 3)), np.array([0, 1, 2])
    frozen = X.copy()
    frozen.flags.writeable = False
    results = []
    for rows in (X, frozen):
        v, u, work = np.zeros(3), np.zeros(3), np.zeros(3)
        state = (0, 1.0, 0.0, 0)
        _jit.run(_jit.pair_steps, rows, index, index + 3, v, u, work, *state, 0.1, 1.0, 4, 4, 0.0, True)
        results.append(v)
    assert np.array_equal(*results)
    assert results[0].any()
    types = [str(signature[0]) for signature in _jit.pair_steps.signatures]
    assert types.count("readonly array(float64, 2d, C)") <= 1
    assert "array(float64, 2d, C)" not in types


def test_operations_are_for_compiled_code_only():
    with pytest.raises(NotImplementedError, match="compiled code only"):
        _jit.row_dot(np.eye(2), 0, np.ones(2))


def test_without_a_place_for_the_cache_loops_compile_still(monkeypatch):
    real = _jit.njit

    def refuse(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(*args, **options)

    monkeypatch.setattr(_jit, "njit", refuse)
    loop = _jit._loop("x")(lambda x: x + 1)
    assert _jit.run(loop, 2) == 3
    del _jit._WRITTEN[loop]
