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

from rocmax.dask import DaskAUCClassifier, DaskPartialAUCClassifier  # noqa: E402
from rocmax.dask.cluster import DaskShards  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]

# A worker sends no heartbeats while it imports the package.
LOADED = "--preload", "rocmax.dask.cluster"
WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "rocmax":
            raise ModuleNotFoundError("No module named 'rocmax'")

sys.meta_path.insert(0, Without())
"""


@contextlib.contextmanager
def scheduler(n_workers=0, processes=False):
    """A scheduler that gives a worker up after 20 seconds without a heartbeat, its workers and its client."""
    options = {"protocol": "tcp", "threads_per_worker": 1, "silence_logs": 50, "memory_limit": 0}
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": "20s"}),
        distributed.LocalCluster(
            n_workers=n_workers, processes=processes, dashboard_address=":0", **options
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        if n_workers:
            client.wait_for_workers(n_workers, timeout=120)
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


def test_a_worker_without_the_package_is_named(files, tmp_path):
    preload = tmp_path / "without.py"
    preload.write_text(WITHOUT)
    with (
        scheduler() as client,
        worker_process(client, "--preload", str(preload)) as (_, address),
        pytest.raises(RuntimeError, match=f"the worker {address} failed: .* No module named 'rocmax'"),
    ):
        DaskAUCClassifier().fit(*files)


@pytest.mark.parametrize(
    "model", [DaskAUCClassifier(C=10.0, tol=1e-4), DaskPartialAUCClassifier(max_fpr=0.2)], ids=["auc", "auto"]
)
def test_a_frozen_worker_is_replaced(files, monkeypatch, model):
    with scheduler(2, processes=True) as client:
        expected = model.fit(*files)
        objective, coef = expected.objective_, expected.coef_.copy()
        worker = client.cluster.workers[0]
        stopped = freeze_in_round(monkeypatch, 5, worker.pid)
        found = model.fit(*files)
        assert stopped
        assert found.objective_ == pytest.approx(objective, rel=1e-9)
        np.testing.assert_allclose(found.coef_, coef, rtol=1e-6, atol=1e-9)
        client.wait_for_workers(2, timeout=60)
        assert worker.pid not in stopped


def test_a_worker_frozen_while_it_loads_a_partition(freezing_rows):
    with scheduler(1) as client, worker_process(client, *LOADED, FREEZES="1") as (_, address):
        found = DaskAUCClassifier().fit(*freezing_rows)
        assert address not in client.scheduler_info(n_workers=-1)["workers"]
        expected = DaskAUCClassifier().fit(*freezing_rows)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)


def test_an_only_worker_that_is_frozen_is_an_error(files, monkeypatch):
    with scheduler() as client, worker_process(client, *LOADED) as (process, _):
        stopped = freeze_in_round(monkeypatch, 3, process.pid)
        with pytest.raises(RuntimeError, match="at least one worker; got none for 1 s"):
            DaskAUCClassifier().fit(*files, timeout=1.0)
        assert stopped
