"""Compiling: once per machine, and late."""

import json
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


WITHOUT_NUMBA = """
import sys, warnings, json
import numpy as np
from scipy import sparse
if {blocked}:
    sys.modules["numba"] = None
from rocmax import PSAMClassifier
from rocmax.papers import ASAMClassifier, CBRClassifier, OAMClassifier, SOLAMClassifier
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
X[rng.random(X.shape) < 0.3] = 0.0
y = (X[:, 0] > 0).astype(int)
found = {{}}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for model in (
        PSAMClassifier(max_iter=3, random_state=0), ASAMClassifier(max_iter=3, random_state=0),
        SOLAMClassifier(max_iter=3, random_state=0), OAMClassifier(C=0.1, random_state=0),
        OAMClassifier("gradient", C=0.1, random_state=0), CBRClassifier(C=0.1, random_state=0),
        CBRClassifier("diagonal", C=0.1, random_state=0),
    ):
        for form in (np.asarray, sparse.csr_array):
            for kind in ("float64", "float32"):
                found[f"{{model}} {{form.__name__}} {{kind}}"] = model.fit(form(X.astype(kind)), y).coef_[0].tolist()
print(json.dumps([found, [str(w.message) for w in caught if "numba" in str(w.message)]]))
"""


def fits(blocked):
    """Return the coefficients of each method on each kind of rows, and warnings about numba."""
    command = [sys.executable, "-c", WITHOUT_NUMBA.format(blocked=blocked)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_without_numba_the_numbers_are_the_same_and_a_warning_says_so_once():
    compiled, nothing = fits(blocked=False)
    plain, warned = fits(blocked=True)
    assert nothing == []
    assert len(warned) == 1
    assert "Install rocmax[streams]" in warned[0]
    assert plain.keys() == compiled.keys()
    for name, coefficients in compiled.items():
        # Compiled sums may be in another order, and squares of single precision are rounded to it.
        rtol = 1e-5 if name.endswith("float32") else 1e-9
        np.testing.assert_allclose(plain[name], coefficients, rtol=rtol, atol=rtol * np.abs(coefficients).max())
        assert np.any(coefficients)


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
