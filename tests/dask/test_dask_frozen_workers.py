"""Fits on a cluster with a worker that is frozen, or that does not have the package: real processes, no hang."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402  # after the check that dask is there

from rocmax import PSAMClassifier  # noqa: E402
from rocmax.dask import DaskAUCClassifier, DaskPartialAUCClassifier, partial_fit, roc_auc_score  # noqa: E402
from rocmax.dask import cluster as cluster_module  # noqa: E402
from rocmax.dask.cluster import (  # noqa: E402
    DaskShards,
    Heartbeats,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]

WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "rocmax":
            raise ModuleNotFoundError("No module named 'rocmax'")

sys.meta_path.insert(0, Without())
"""


@contextlib.contextmanager
def scheduler(n_workers=0):
    """A scheduler with workers in this process, and its client."""
    options = {"processes": False, "protocol": "tcp", "threads_per_worker": 1, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=n_workers, dashboard_address=":0", **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextlib.contextmanager
def worker_process(client, *options, **environment):
    """A worker in a process of its own, without a nanny; returns the process and the address."""
    before = set(client.scheduler_info(n_workers=-1)["workers"])
    command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, "--no-nanny"]
    command += ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard", *options]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=os.environ | environment, **quiet)
    try:
        client.wait_for_workers(len(before) + 1, timeout=60)
        (address,) = set(client.scheduler_info(n_workers=-1)["workers"]) - before
        yield process, address
    finally:
        process.kill()  # also ends a process that is stopped
        process.wait()


def freeze_in_round(monkeypatch, number, pid):
    """Stop a process when a fit has come to a round."""
    run, stopped = DaskShards.run, []

    def freezing(self, *request):
        if self.rounds == number and not stopped:
            stopped.append(pid)
            os.kill(pid, signal.SIGSTOP)
        return run(self, *request)

    monkeypatch.setattr(DaskShards, "run", freezing)
    return stopped


def notice_at_once(monkeypatch, address):
    """Count one missing heartbeat of a worker as a long silence, and those of others, which may be busy, never."""
    silent = Heartbeats.silent

    def noticing(self, last_seen, limit):
        return [worker for worker in silent(self, last_seen, 0.0) if worker == address]

    monkeypatch.setattr(Heartbeats, "silent", noticing)


@pytest.fixture
def freezing_rows(rows):
    """The rows as dask arrays; a worker with FREEZES in its environment freezes when it loads a partition."""

    def load(part):
        if "FREEZES" in os.environ:
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.2)  # so that one worker does not load all of them
        return part

    X, y = rows
    return da.from_array(X, chunks=(1000, 6)).map_blocks(load, dtype=float), da.from_array(y, chunks=1000)


def measure(X, y, **given):
    return roc_auc_score(y, X[:, 0], **given).value


def stream(X, y, **given):
    return partial_fit(PSAMClassifier(random_state=0), X, y, [False, True], **given).coef_


def test_a_worker_without_the_package_is_named(files, tmp_path):
    preload = tmp_path / "without.py"
    preload.write_text(WITHOUT)
    with (
        scheduler(1) as client,
        worker_process(client, "--preload", str(preload)) as (_, address),
        pytest.raises(ImportError, match=rf"the worker {address} must have rocmax.*No module named 'rocmax'"),
    ):
        DaskAUCClassifier(client=client).fit(*files)


@pytest.mark.parametrize(
    "model", [DaskAUCClassifier(C=10.0, tol=1e-4), DaskPartialAUCClassifier(max_fpr=0.2)], ids=["auc", "auto"]
)
def test_a_frozen_worker_is_replaced(cluster, client, files, monkeypatch, model):
    model.set_params(client=client)
    expected = model.fit(*files)
    objective, coef = expected.objective_, expected.coef_.copy()
    worker = cluster.workers[0]
    address = worker.worker_address
    notice_at_once(monkeypatch, address)
    stopped = freeze_in_round(monkeypatch, 5, worker.pid)
    with pytest.warns(RuntimeWarning, match=f"no heartbeat for .* s from the worker {address}"):
        found = model.fit(*files)
    assert stopped
    assert found.objective_ == pytest.approx(objective, rel=1e-9)
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-6, atol=1e-9)
    client.wait_for_workers(2, timeout=60)


def test_a_worker_frozen_while_it_loads_a_partition(freezing_rows, monkeypatch):
    with scheduler(1) as client, worker_process(client, FREEZES="1") as (_, address):
        notice_at_once(monkeypatch, address)
        with pytest.warns(RuntimeWarning, match=f"from the worker {address}"):
            found = DaskAUCClassifier(client=client).fit(*freezing_rows)
        expected = DaskAUCClassifier(client=client).fit(*freezing_rows)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)


@pytest.mark.parametrize("call", [measure, stream], ids=["measure", "stream"])
def test_measures_and_streams_go_on_without_a_frozen_worker(rows, freezing_rows, monkeypatch, call):
    with (
        scheduler(1) as client,
        worker_process(client, FREEZES="1") as (_, address),
        dask.config.set(scheduler=client),
    ):
        notice_at_once(monkeypatch, address)
        with pytest.warns(RuntimeWarning, match=f"from the worker {address}"):
            found = call(*freezing_rows)
    with dask.config.set(scheduler="synchronous"):
        X, y = rows
        expected = call(da.from_array(X, chunks=(1000, 6)), da.from_array(y, chunks=1000))
    np.testing.assert_array_equal(found, expected)


def test_an_only_worker_that_is_frozen_is_named_in_the_error(files, monkeypatch):
    with scheduler() as client, worker_process(client) as (process, address):
        stopped = freeze_in_round(monkeypatch, 3, process.pid)
        with (
            pytest.warns(RuntimeWarning, match=f"no heartbeat for 10 s from the worker {address}"),
            pytest.raises(RuntimeError, match=rf"at least one worker; got none for 1 s, after {address} had stopped"),
        ):
            DaskAUCClassifier(client=client, timeout=1.0).fit(*files)
        assert stopped


def test_silence_is_counted_while_the_driver_waits(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(cluster_module.time, "monotonic", lambda: now[0])
    heartbeats = Heartbeats()

    def check(after, **last_seen):
        now[0] += after
        assert heartbeats.due()
        return heartbeats.silent(last_seen, limit=5.0)

    assert check(0, a=1.0, b=1.0) == []
    assert not heartbeats.due()
    # The driver was stopped for a minute, and the scheduler in its process, too.
    assert check(60, a=1.0, b=1.0) == []
    assert check(1, a=2.0, b=1.0) == []
    assert check(1, a=3.0, b=1.0) == []
    assert check(1.5, a=3.0, b=1.0) == ["b"]
    # A worker that is gone, and one that has come back.
    assert check(1, a=3.0) == []
    assert check(1, a=3.0, b=9.0) == []
    assert check(3, a=3.0, b=9.0) == ["a"]
