"""Number of threads: by the work, unless the user says it."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from joblib import cpu_count
from threadpoolctl import threadpool_info, threadpool_limits
from typer.testing import CliRunner

from helpers.tables import payments
from rocmax import BoostedClassifier
from rocmax import tables as workflow
from rocmax.boosted import engines as boosting
from rocmax.cli.app import app
from rocmax.tables import Columns, ParameterError, Running, compare_models, fit_table

GOAL = {
    "target": "label",
    "positive": "fraud",
    "model": "linear",
    "tune": False,
    "columns": Columns(drop=["customer", "since"]),
}
CORES = cpu_count()
# Values of the rows for which an engine gets one more thread, as the reference says.
PER_THREAD = 2_000_000


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


class EnoughError(Exception):
    """The engine has been called."""


@pytest.fixture
def engine_calls(monkeypatch):
    """The threads that engines get; they do nothing else."""
    seen = []

    def spy(self, *args, **more):
        seen.append(args[-1].n_jobs)
        raise EnoughError

    monkeypatch.setattr(boosting.TreeData, "__init__", spy)
    return seen


@pytest.fixture
def engine_threads(engine_calls):
    """Return a function: the threads that the engine gets for a number of values."""

    def threads(n_jobs, n_values, most=8):
        X = np.zeros((n_values // 10, 10), np.float32)
        X[::2] = 1.0
        with threadpool_limits(most, user_api="openmp"), pytest.raises(EnoughError):
            BoostedClassifier("roc_auc", n_jobs=n_jobs, max_leaf_nodes=4, n_models=1).fit(X, X[:, 0] > 0)
        return engine_calls[-1]

    return threads


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_threads_follow_the_work_and_the_cores(engine_threads):
    sizes = [1000, PER_THREAD, 2 * PER_THREAD - 10, 2 * PER_THREAD]
    assert [engine_threads(None, n_values) for n_values in sizes] == [1, 1, 1, min(2, CORES)]


def test_a_number_of_the_user_wins(engine_threads, monkeypatch):
    assert engine_threads(3, 1000) == 3
    assert engine_threads(-1, 1000) == CORES
    assert engine_threads(-2, 1000) == max(1, CORES - 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert engine_threads(3, 1000) == 3
    # None is the default of the engine, which reads the variable.
    assert engine_threads(None, 1000) is engine_threads(None, 2 * PER_THREAD) is None
    with pytest.raises(ValueError, match="n_jobs must be None, a positive integer, or -1 for all cores; got 0"):
        BoostedClassifier(n_jobs=0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])


def test_the_number_of_a_fit_of_a_table_is_that_of_its_engine(engine_calls):
    with pytest.raises(EnoughError):
        fit_table(payments(100), **GOAL | {"model": "boosted"}, running=Running(threads=5))
    assert engine_calls == [5]


def test_limits_by_threadpoolctl_are_respected(engine_threads):
    assert engine_threads(None, 2 * PER_THREAD, most=1) == 1


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(("n_jobs", "expected"), [(None, {1}), (3, {3})])
def test_the_engine_gets_the_number(monkeypatch, engine, n_jobs, expected):
    pytest.importorskip(engine)
    seen = set()
    made = boosting.TreeData.__init__

    def spy(self, *args, **more):
        seen.add(args[-1].n_jobs)
        made(self, *args, **more)

    monkeypatch.setattr(boosting.TreeData, "__init__", spy)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = BoostedClassifier("roc_auc", engine=engine, n_jobs=n_jobs, max_leaf_nodes=4, n_models=1, random_state=0)
    model.fit(X, X[:, 0] > 0)
    assert seen == expected
    assert model.get_params()["n_jobs"] == n_jobs
    np.testing.assert_allclose(model.contributions(X).scores, model.decision_function(X), rtol=0, atol=1e-9)


def test_a_fit_of_a_table_has_one_thread_of_blas_and_restores_the_others(monkeypatch):
    seen = {}
    table = payments(100)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        fit_table(table, **GOAL, running=Running(on_plan=lambda plan: seen.setdefault("default", blas_threads())))
        fit_table(
            table, **GOAL, running=Running(threads=2, on_plan=lambda plan: seen.setdefault("given", blas_threads()))
        )
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
        fit_table(table, **GOAL, running=Running(on_plan=lambda plan: seen.setdefault("variable", blas_threads())))
        assert blas_threads() == before
    assert set(seen["default"]) == {1}
    assert seen["given"] == seen["variable"] == before


def test_limits_of_several_threads_are_undone_once():
    both, left = Barrier(2), Barrier(2)

    def fit(first):
        def wait(_):
            both.wait(timeout=60)
            if not first:
                left.wait(timeout=60)

        fit_table(payments(100), **GOAL, running=Running(on_plan=wait))
        if first:
            left.wait(timeout=60)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(fit, [True, False]))
        assert blas_threads() == before


def test_an_error_restores_the_threads(engine_threads):
    def fail(_):
        raise EnoughError

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(EnoughError):
            fit_table(payments(100), **GOAL, running=Running(threads=1, on_plan=fail))
        assert blas_threads() == before
    assert engine_threads(None, 2 * PER_THREAD) == min(2, CORES)


@pytest.mark.parametrize("function", [fit_table, compare_models])
@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_bad_number_of_threads_is_refused_before_the_table_is_read(function, threads):
    with pytest.raises(ParameterError, match="threads must be a positive integer, or None to follow the size"):
        function("no such file.csv", target="label", running=Running(threads=threads))


def test_the_command_line_waits_passively_unless_told_otherwise():
    code = "import atexit, os, sys; sys.argv = ['rocmax', '--version']\nfrom rocmax.cli import main\n"
    code += "atexit.register(lambda: print(os.environ['OMP_WAIT_POLICY']))\nmain()"
    free = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    for environment, expected in ((free, "PASSIVE"), ({**free, "OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        assert done.stdout.split()[-1] == expected


@pytest.mark.parametrize(("command", "function"), [("fit", "fit_table"), ("compare", "compare_models")])
def test_the_command_line_passes_the_number(monkeypatch, tmp_path, command, function):
    seen = []

    def stop(*args, running, **more):
        seen.append(running.threads)
        raise ValueError("enough")

    monkeypatch.setattr(workflow, function, stop)
    for options in ([], ["--threads", "3"]):
        done = CliRunner().invoke(app, [command, str(tmp_path / "a.csv"), "--out", str(tmp_path / "b.csv"), *options])
        assert "enough" in done.stderr
    assert seen == [None, 3]
