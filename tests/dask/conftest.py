"""A cluster of two worker processes, and rows in files, for the tests of the dask backend."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing import forkserver

import numpy as np
import pytest

from helpers.overlapping import overlapping_rows


@pytest.fixture(scope="session")
def cluster():
    """Two worker processes, which are started again when they are killed."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    # Workers are forked from a process that has imported all they need.
    multiprocessing.set_forkserver_preload(["distributed", "rocmax.dask"])
    forkserver.ensure_running()
    # On a busy machine, a killed worker takes longer than the default time to come back.
    options = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.deploy.lost-worker-timeout": "300s",
    }
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0, silence_logs=50
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        yield client


@pytest.fixture(scope="session")
def rows():
    return overlapping_rows(6000)


@pytest.fixture
def slow_rows(rows):
    """The rows as dask arrays of six partitions that take some time to load."""
    da = pytest.importorskip("dask.array")

    def slow(part):
        time.sleep(0.4)
        return part

    X, y = rows
    return da.from_array(X, chunks=(1000, 6)).map_blocks(slow, dtype=float), da.from_array(y, chunks=1000)


@pytest.fixture(scope="session")
def files(tmp_path_factory, rows):
    """The rows in files, as dask arrays of unknown chunk sizes that are read on the workers."""
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    folder = tmp_path_factory.mktemp("parts")
    load = dask.delayed(np.load)
    collections = []
    for name, array in zip("Xy", rows, strict=True):
        parts = []
        for i, part in enumerate(np.array_split(array, 5)):
            path = folder / f"{name}{i}.npy"
            np.save(path, part)
            parts.append(da.from_delayed(load(str(path)), (np.nan, *array.shape[1:]), array.dtype))
        collections.append(da.concatenate(parts, allow_unknown_chunksizes=True))
    return tuple(collections)
