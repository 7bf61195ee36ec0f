"""Fits on a cluster that loses workers, its driver, or data: the same result, or a clear error, and never a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone

from helpers.lost_workers import kill_one

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402  # after the check that dask is there

from rocmax.dask import DaskAUCClassifier, DaskPartialAUCClassifier  # noqa: E402
from rocmax.dask.cluster import DaskShards  # noqa: E402
from rocmax.data import DataError  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]

TIGHT = {"max_fpr": 0.2, "loss": "tight", "C": 10.0, "tol": 1e-4}


def shards_on_worker():
    """Return the number of shards in the process of a worker."""
    import gc

    from rocmax.sharded.shard import Shard

    return sum(type(one) is Shard for one in gc.get_objects())


def wait_until_released(client):
    """Fail if the workers keep shards for a minute."""
    deadline = time.monotonic() + 60
    while any(client.run(shards_on_worker).values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(client.run(shards_on_worker).values())


@pytest.mark.parametrize(
    "model",
    [DaskAUCClassifier(C=10.0, tol=1e-4), DaskPartialAUCClassifier(**TIGHT), DaskPartialAUCClassifier(max_fpr=0.2)],
    ids=["auc", "tight", "auto"],
)
def test_three_lost_workers_do_not_change_the_result(cluster, client, files, monkeypatch, model):
    expected = clone(model).fit(*files)
    run, kills = DaskShards.run, {3: 0.0, 8: 0.001, 14: 0.004}

    def losing(self, *request):
        if self.rounds in kills:
            kill_one(cluster, kills.pop(self.rounds))
        return run(self, *request)

    monkeypatch.setattr(DaskShards, "run", losing)
    found = clone(model).fit(*files)
    assert not kills
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    assert found.n_rounds_ == expected.n_rounds_


def test_a_worker_lost_while_partitions_are_loaded(cluster, client, slow_rows):
    expected = DaskAUCClassifier().fit(*slow_rows).objective_
    kill_one(cluster, 0.5)
    assert DaskAUCClassifier().fit(*slow_rows).objective_ == pytest.approx(expected, rel=1e-9)


def test_rows_are_released_after_a_fit(client, files):
    DaskAUCClassifier().fit(*files)
    wait_until_released(client)


def not_possible(shard, *args):
    raise ArithmeticError("not possible")


def test_an_error_on_a_worker_is_raised_with_its_name(client, files, monkeypatch):
    run = DaskShards.run

    def failing(self, recipes, drop, method, *args):
        return run(self, recipes, drop, not_possible if self.rounds == 4 else method, *args)

    monkeypatch.setattr(DaskShards, "run", failing)
    with pytest.raises(ArithmeticError, match="not possible") as caught:
        DaskAUCClassifier().fit(*files)
    assert "The worker is tcp://" in "".join(caught.value.__notes__)
    wait_until_released(client)


DRIVER = """
import os, pickle, signal, sys
from distributed import Client
from rocmax.dask.cluster import DaskShards
address, stop, given = sys.argv[1], int(sys.argv[2]), sys.argv[3]
run = DaskShards.run
def stopping(self, *request):
    if self.rounds == stop:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(self, *request)
DaskShards.run = stopping
with open(given, "rb") as file:
    model, X, y, options = pickle.load(file)
client = Client(address)
model.fit(X, y, **options)
"""


def test_a_killed_driver_continues_from_its_checkpoint(client, cluster, rows, files, tmp_path):
    pickle = pytest.importorskip("cloudpickle")
    model, options = DaskPartialAUCClassifier(**TIGHT), {"checkpoint": tmp_path / "fit.npz"}
    uninterrupted = clone(model).fit(*files)
    given = tmp_path / "given"
    given.write_bytes(pickle.dumps((model, *files, options)))
    command = [sys.executable, "-c", DRIVER, cluster.scheduler_address, "22", str(given)]
    ended = subprocess.run(command, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "fit.npz").exists()
    with pytest.raises(ValueError, match="checkpoint must be of the same data and parameters"):
        clone(model).set_params(C=5.0).fit(*files, **options)
    X, y = rows
    swapped = X.copy()
    swapped[[7, 8], 3] = swapped[[8, 7], 3]
    for other, size in (((swapped, y), 1200), ((X, np.roll(y, 1)), 1200), ((X, y), 3000)):
        collections = da.from_array(other[0], chunks=(size, 6)), da.from_array(other[1], chunks=size)
        with pytest.raises(ValueError, match="checkpoint must be of the same data and parameters"):
            clone(model).fit(*collections, **options)
    resumed = clone(model).fit(*files, **options)
    assert resumed.objective_ == pytest.approx(uninterrupted.objective_, rel=2e-4)
    assert resumed.n_iter_ < uninterrupted.n_iter_
    assert not (tmp_path / "fit.npz").exists()
    # The workers have dropped the rows of the killed driver.
    wait_until_released(client)


@pytest.mark.parametrize(
    ("parameters", "stop"),
    [
        ({"max_fpr": 0.2}, 12),
        ({"max_fpr": 0.2}, 40),
        ({"min_fpr": 0.05, "max_fpr": 0.3, "loss": "hinge", "C": 10.0}, 30),
        ({"max_fpr": 0.2, "loss": "structural", "constraint": "l1", "radius": 1.0}, 15),
    ],
    ids=["auto, logistic", "auto, descent", "cccp", "constraint"],
)
def test_a_checkpoint_of_every_loss(client, files, tmp_path, monkeypatch, parameters, stop):
    path = tmp_path / "fit.npz"
    model = DaskPartialAUCClassifier(**parameters)
    uninterrupted = clone(model).fit(*files)
    assert uninterrupted.n_rounds_ > stop
    run = DaskShards.run

    def interrupted(self, *request):
        if self.rounds == stop:
            raise KeyboardInterrupt
        return run(self, *request)

    monkeypatch.setattr(DaskShards, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(*files, checkpoint=path)
    monkeypatch.setattr(DaskShards, "run", run)
    assert path.exists()
    resumed = clone(model).fit(*files, checkpoint=path)
    assert resumed.objective_ == pytest.approx(uninterrupted.objective_, rel=2e-3)
    assert resumed.n_rounds_ < uninterrupted.n_rounds_


def test_a_checkpoint_must_be_one(client, files, tmp_path):
    path = tmp_path / "fit.npz"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="checkpoint must be a file written by a fit"):
        DaskAUCClassifier().fit(*files, checkpoint=path)
    with pytest.raises(OSError, match="directory"):
        DaskAUCClassifier().fit(*files, checkpoint=tmp_path)


def test_data_that_cannot_be_read_again_are_named(cluster, client, rows, monkeypatch):
    X, y = rows
    held = client.scatter([X[:3000], X[3000:]])
    scattered = da.concatenate([da.from_delayed(dask.delayed(part), (3000, 6), float) for part in held])
    run = DaskShards.run

    def losing(self, *request):
        if self.rounds == 3:
            for nanny in cluster.workers.values():
                os.kill(nanny.pid, signal.SIGKILL)
        return run(self, *request)

    monkeypatch.setattr(DaskShards, "run", losing)
    with pytest.raises(DataError, match=r"partition \d cannot be read again: its data were in the memory of a worker"):
        DaskAUCClassifier().fit(scattered, da.from_array(y, chunks=3000), timeout=20)


def test_no_worker_is_an_error_after_the_timeout(files):
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as empty,
    ):
        with pytest.raises(RuntimeError, match=r"the cluster must have at least one worker; got none for 0.5 s"):
            DaskAUCClassifier().fit(*files, timeout=0.5)
        cluster.scale(1)
        empty.wait_for_workers(1, timeout=60)
        run = DaskShards.run

        def losing(self, *request):
            if self.rounds == 3:
                cluster.scale(0)
            return run(self, *request)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DaskShards, "run", losing)
            with pytest.raises(RuntimeError, match=r"the cluster must have at least one worker; got none for 0.5 s"):
                DaskAUCClassifier().fit(*files, timeout=0.5)


def pause(dask_worker):
    dask_worker.status = distributed.core.Status.paused


def test_paused_workers_are_an_error(files):
    # Without a limit, the worker does not check its memory and stays paused.
    options = {"n_workers": 1, "processes": False, "memory_limit": 0}
    with (
        distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(pause)
        with pytest.raises(RuntimeError, match="workers must load the partitions; got no worker with a running task"):
            DaskAUCClassifier().fit(*files, timeout=1)


def test_a_lost_scheduler_is_an_error(files):
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
        pytest.MonkeyPatch.context() as patch,
    ):
        run = DaskShards.run

        def losing(self, *request):
            if self.rounds == 3:
                client.loop.add_callback(cluster.scheduler.close)
                time.sleep(0.5)
            return run(self, *request)

        patch.setattr(DaskShards, "run", losing)
        with pytest.raises(RuntimeError, match="the scheduler must be reachable"):
            DaskAUCClassifier().fit(*files, timeout=5)


@pytest.mark.parametrize("name", ["X", "y"])
def test_a_partition_with_other_values_after_a_lost_worker_is_named(cluster, client, rows, tmp_path, monkeypatch, name):
    load, collections = dask.delayed(np.load), []
    for letter, array in zip("Xy", rows, strict=True):
        parts = []
        for i, part in enumerate(np.array_split(array, 4)):
            np.save(tmp_path / f"{letter}{i}.npy", part)
            path = str(tmp_path / f"{letter}{i}.npy")
            parts.append(da.from_delayed(load(path), (np.nan, *array.shape[1:]), array.dtype))
        collections.append(da.concatenate(parts, allow_unknown_chunksizes=True))
    run = DaskShards.run

    def losing(self, *request):
        if self.rounds == 3:
            for i in range(4):
                path = tmp_path / f"{name}{i}.npy"
                np.save(path, np.load(path)[::-1])
            # All of them: a single one may have no partition.
            for nanny in cluster.workers.values():
                os.kill(nanny.pid, signal.SIGKILL)
        return run(self, *request)

    monkeypatch.setattr(DaskShards, "run", losing)
    with pytest.raises(DataError, match=r"partition \d must have the same values whenever it is read; got other ones"):
        DaskAUCClassifier(C=10.0).fit(*collections)
    wait_until_released(client)
