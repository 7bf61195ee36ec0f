"""Number of threads: by the work, unless the user says it."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from typer.testing import CliRunner

from helpers.tables import payments
from rocmax import BoostedClassifier, _threads
from rocmax import tables as workflow
from rocmax._support import ParameterError
from rocmax._threads import BLAS_VARIABLES, WORK_PER_THREAD, engine_threads, using_threads
from rocmax.boosted import engines as boosting
from rocmax.cli.app import app
from rocmax.tables import Columns, Running, compare_models, fit_table


@pytest.fixture(autouse=True)
def eight_cores_and_no_variables(monkeypatch):
    for name in BLAS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_threads, "cpu_count", lambda: 8)
    monkeypatch.setattr(_threads, "threadpool_info", list)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_threads_follow_the_work_and_the_cores():
    assert [engine_threads(None, n * WORK_PER_THREAD // 2) for n in (0, 1, 3, 4, 15, 1000)] == [1, 1, 1, 2, 7, 8]


def test_a_number_of_the_user_wins(monkeypatch):
    assert engine_threads(3, 10) == 3
    assert engine_threads(-1, 10) == 8
    assert engine_threads(-2, 10) == 7
    with using_threads(5):
        assert engine_threads(None, 10) == 5
        assert engine_threads(2, 10) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert engine_threads(3, 10) == 3
    # None is the default of the engine, which reads the variable.
    assert engine_threads(None, 10) is engine_threads(None, 100 * WORK_PER_THREAD) is None
    with pytest.raises(ValueError, match="n_jobs must be None, a positive integer, or -1 for all cores; got 0"):
        engine_threads(0, 10)


def test_limits_by_threadpoolctl_are_respected(monkeypatch):
    monkeypatch.setattr(_threads, "threadpool_info", threadpool_info)
    with threadpool_limits(1):
        assert engine_threads(None, 100 * WORK_PER_THREAD) == 1


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(("n_jobs", "expected"), [(None, {1}), (3, {3})])
def test_the_engine_gets_the_number(monkeypatch, engine, n_jobs, expected):
    pytest.importorskip(engine)
    seen = set()
    made = boosting.TreeData.__init__

    def spy(self, *args, **more):
        seen.add(more["n_jobs"])
        made(self, *args, **more)

    monkeypatch.setattr(boosting.TreeData, "__init__", spy)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = BoostedClassifier("roc_auc", engine=engine, n_jobs=n_jobs, max_leaf_nodes=4, n_models=1, random_state=0)
    model.fit(X, X[:, 0] > 0)
    assert seen == expected
    assert model.get_params()["n_jobs"] == n_jobs
    np.testing.assert_allclose(model.contributions(X).sum(axis=1), model.decision_function(X), rtol=1e-4, atol=1e-4)


def test_a_fit_of_a_table_has_one_thread_of_blas_and_restores_the_others(monkeypatch):
    seen = {}
    table = payments(100)
    goal = {
        "target": "label",
        "positive": "fraud",
        "model": "linear",
        "tune": False,
        "columns": Columns(drop=["customer", "since"]),
    }
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        fit_table(table, **goal, running=Running(on_plan=lambda plan: seen.setdefault("default", blas_threads())))
        fit_table(
            table, **goal, running=Running(threads=2, on_plan=lambda plan: seen.setdefault("given", blas_threads()))
        )
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
        fit_table(table, **goal, running=Running(on_plan=lambda plan: seen.setdefault("variable", blas_threads())))
        assert blas_threads() == before
    assert set(seen["default"]) == {1}
    assert seen["given"] == seen["variable"] == before


def test_limits_of_several_threads_are_undone_once():
    both, left = Barrier(2), Barrier(2)

    def work(first):
        with using_threads(None):
            both.wait(timeout=30)
            if not first:
                left.wait(timeout=30)
        if first:
            left.wait(timeout=30)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, [True, False]))
        assert blas_threads() == before


def test_an_error_restores_the_threads():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(RuntimeError), using_threads(1):
            raise RuntimeError
        assert blas_threads() == before
        assert engine_threads(None, 10 * WORK_PER_THREAD) == 8


@pytest.mark.parametrize("function", [fit_table, compare_models])
@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_bad_number_of_threads_is_refused_before_the_table_is_read(function, threads):
    with pytest.raises(ParameterError, match="threads must be a positive integer, or None to follow the size"):
        function("no such file.csv", target="label", running=Running(threads=threads))


def test_the_command_line_waits_passively_unless_told_otherwise():
    code = "import os, sys; sys.argv = ['rocmax', '--version']\nfrom rocmax.cli import _run_app\ntry:\n    _run_app()\n"
    code += "except SystemExit:\n    pass\nprint(os.environ['OMP_WAIT_POLICY'])"
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
