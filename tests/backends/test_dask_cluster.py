"""Fits on a real cluster of two processes: the local result, checkpoints and bad input."""

from __future__ import annotations

import importlib.util
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import rocmax
from helpers.overlapping import overlapping_rows
from rocmax.data import DataError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402  # after the check that dask is there

from rocmax.backends.dask import DaskAUCClassifier, DaskPartialAUCClassifier  # noqa: E402
from rocmax.backends.dask.actors import DaskShards  # noqa: E402

pytestmark = pytest.mark.slow
N = 9000


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    return overlapping_rows(N)


@pytest.fixture(scope="module")
def files(tmp_path_factory, rows):
    """Rows in files, as dask arrays of unknown chunk sizes that are read on the workers."""
    X, y = rows
    folder = tmp_path_factory.mktemp("parts")
    load = dask.delayed(np.load)
    parts = []
    for i, part in enumerate(np.array_split(np.arange(N), 5)):
        np.save(folder / f"X{i}.npy", X[part])
        np.save(folder / f"y{i}.npy", y[part])
        parts.append((load(str(folder / f"X{i}.npy")), load(str(folder / f"y{i}.npy"))))
    unknown = (np.nan,)
    return (
        da.concatenate(
            [da.from_delayed(x, (np.nan, X.shape[1]), float) for x, _ in parts], allow_unknown_chunksizes=True
        ),
        da.concatenate([da.from_delayed(y, unknown, bool) for _, y in parts], allow_unknown_chunksizes=True),
    )


def local_fit(model, X, y, weight=None):
    return clone(model).fit(StandardScaler().fit_transform(X, sample_weight=weight), y, sample_weight=weight)


TIGHT = {"min_fpr": 0.0, "max_fpr": 0.2, "loss": "tight", "C": 10.0}


@pytest.mark.parametrize(
    ("on_cluster", "plain"),
    [
        (DaskAUCClassifier(C=10.0), rocmax.AUCClassifier(C=10.0)),
        (DaskPartialAUCClassifier(**TIGHT), rocmax.PartialAUCClassifier(**TIGHT)),
        (DaskPartialAUCClassifier(0.0, 0.2), rocmax.PartialAUCClassifier(0.0, 0.2)),
        (
            DaskPartialAUCClassifier(0.0, 0.2, "structural", constraint="l1", radius=1.0),
            rocmax.PartialAUCClassifier(0.0, 0.2, "structural", constraint="l1", radius=1.0),
        ),
        (DaskPartialAUCClassifier(0.05, 0.3, "hinge", C=10.0), rocmax.PartialAUCClassifier(0.05, 0.3, "hinge", C=10.0)),
    ],
    ids=["auc", "tight", "auto", "structural l1", "cccp"],
)
def test_the_result_is_that_of_a_local_fit(client, rows, files, on_cluster, plain):
    X, y = rows
    expected = local_fit(plain, X, y)
    found = clone(on_cluster).fit(*files)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    local = found.to_local()
    assert type(local) is type(plain)
    assert local.get_params() == plain.get_params()
    np.testing.assert_array_equal(found.predict(files[0]).compute(), local.predict(X))
    assert found.score(*files) == pytest.approx(local.score(X, y), abs=1e-9)
    if isinstance(plain, rocmax.PartialAUCClassifier):
        assert local.predict(X[~y]).sum() == int(plain.max_fpr * (~y).sum())


def test_chunkings_weights_sparse_chunks_and_frames(client, rows):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 3, N).astype(float)
    expected = local_fit(rocmax.AUCClassifier(), X, y, weight).objective_
    order = np.argsort(~y, kind="stable")  # partitions with one class, and one without a row of weight
    weight[order[:1000]] = np.where(np.arange(1000) < 500, 0.0, weight[order[:1000]])
    expected = local_fit(rocmax.AUCClassifier(), X, y, weight).objective_
    arrays = [array[order] for array in (X, y, weight)]
    found = []
    for chunks in ((N, 6), (500, 3)):
        rows_, labels, weights = (da.from_array(a, chunks=chunks[: a.ndim]) for a in arrays)
        found.append(DaskAUCClassifier(client=client).fit(rows_, labels, weights).objective_)
    as_sparse = da.from_array(arrays[0], chunks=(2500, 6)).map_blocks(sparse.csr_matrix)
    labels, weights = (da.from_array(a, chunks=2500) for a in arrays[1:])
    found.append(DaskAUCClassifier().fit(as_sparse, labels, weights).objective_)
    names = [f"f{i}" for i in range(6)]
    table = frames.from_pandas(
        pandas.DataFrame(arrays[0], columns=names).assign(y=arrays[1], w=arrays[2]), npartitions=3
    )
    model = DaskAUCClassifier().fit(table[names], table["y"], table["w"])
    found.append(model.objective_)
    assert model.feature_names_in_.tolist() == names
    assert model.predict(table[names]).compute().shape == (N,)
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_a_checkpoint_continues(client, rows, files, tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    model = DaskPartialAUCClassifier(**TIGHT, tol=1e-4, checkpoint=path)
    uninterrupted = clone(model).fit(*files)
    assert not path.exists()
    run = DaskShards.run

    def stop(self, *request):
        if self.rounds > 18:
            raise KeyboardInterrupt
        return run(self, *request)

    monkeypatch.setattr(DaskShards, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(*files)
    monkeypatch.setattr(DaskShards, "run", run)
    assert path.exists()
    with pytest.raises(ValueError, match="checkpoint must be of the same data and parameters"):
        clone(model).set_params(C=5.0).fit(*files)
    X, y = rows
    other = da.from_array(X + 1e-3 * np.arange(6), chunks=(3000, 6)), da.from_array(y, chunks=3000)
    with pytest.raises(ValueError, match="checkpoint must be of the same data and parameters"):
        clone(model).fit(*other)
    resumed = clone(model).fit(*files)
    assert resumed.objective_ == pytest.approx(uninterrupted.objective_, rel=2e-4)
    assert resumed.n_iter_ < uninterrupted.n_iter_
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="checkpoint must be a file written by a fit"):
        clone(model).fit(*files)
    with pytest.raises(ValueError, match='with checkpoint, loss must be "tight" or "structural"'):
        DaskPartialAUCClassifier(checkpoint=path).fit(*files)


def generated(n, chunks=10):
    """Rows that are generated on the workers."""
    rng = da.random.default_rng(0)
    y = (rng.random(n, chunks=n // chunks) < 0.1).astype(np.int8)
    return rng.normal(size=(n, 2), chunks=(n // chunks, 2)).astype(np.float32) + 1.5 * y[:, None], y


def test_memory_of_the_driver_and_bytes_per_round_do_not_depend_on_the_rows(client, monkeypatch):
    run, peaks, largest = DaskShards.run, [], []

    def measured(self, *request):
        answers = run(self, *request)
        largest[-1][request[2]] = max(largest[-1].get(request[2], 0), len(pickle.dumps((request, answers))))
        return answers

    monkeypatch.setattr(DaskShards, "run", measured)
    for n in (10**5, 10**6, 10**7):
        X, y = generated(n)
        largest.append({})
        tracemalloc.start()
        DaskAUCClassifier(tol=0.05, sample_rows=2000, max_iter=5).fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 1.5 * peaks[0] + 1e6
    for method, size in largest[0].items():
        assert max(sizes[method] for sizes in largest) < 1.3 * size + 1e5, method


def test_bad_partitions_are_named(client, rows):
    X, y = rows
    labels = da.from_array(y, chunks=3000)
    missing = np.where(np.arange(N) == 4000, np.nan, y)
    with pytest.raises(DataError, match="partition 1: y must have a label in each row; got 1 missing"):
        DaskAUCClassifier().fit(da.from_array(X, chunks=(3000, 6)), da.from_array(missing, chunks=3000))
    values = X.copy()
    values[7000, 2] = np.inf
    with pytest.raises(ValueError, match=r"got inf in row 1000, column 2 of partition 2"):
        DaskAUCClassifier().fit(da.from_array(values, chunks=(3000, 6)), labels)
    lost = da.from_delayed(dask.delayed(np.load)("no such file.npy"), (3000, 6), float)
    with pytest.raises(DataError, match=r"partition 1 cannot be read: FileNotFoundError.*no such file"):
        DaskAUCClassifier().fit(da.concatenate([da.from_array(X[:3000], chunks=(3000, 6)), lost]), labels[:6000])
    wide = [da.from_array(X[:3000, :k], chunks=(3000, k)).to_delayed()[0, 0] for k in (6, 5)]
    ragged = da.concatenate([da.from_delayed(part, (3000, 6), float) for part in wide])
    with pytest.raises(DataError, match="partition 1 must have the columns of partition 0, 6; got 5"):
        DaskAUCClassifier().fit(ragged, labels[:6000])
    with pytest.raises(DataError, match=r"partition 0: y must have one label for each of 3000 rows; got \(2000,\)"):
        DaskAUCClassifier().fit(da.from_array(X[:3000], chunks=(3000, 6)), labels[:2000].rechunk(2000))
    with pytest.raises(ValueError, match="y must have two classes; got one class"):
        DaskAUCClassifier().fit(da.from_array(X, chunks=(3000, 6)), da.zeros(N, chunks=3000, dtype=int))
    with pytest.raises(TypeError, match="X must be a dask Array, DataFrame or Series; got ndarray"):
        DaskAUCClassifier().fit(X, y)


def test_data_in_the_memory_of_workers_are_announced(client, files):
    persisted = [array.persist() for array in files]
    distributed.wait(persisted)
    with pytest.warns(UserWarning, match="may not be readable again"):
        DaskAUCClassifier().fit(*persisted)


def test_a_worker_without_the_package_is_named(client, files, monkeypatch):
    real = distributed.Client.run

    def without(self, function, *args, **options):
        found = real(self, function, *args, **options)
        return dict.fromkeys(found) if function is importlib.util.find_spec else found

    monkeypatch.setattr(distributed.Client, "run", without)
    with pytest.raises(ImportError, match=r"the worker tcp://.* must have rocmax"):
        DaskAUCClassifier().fit(*files)


def test_no_worker_is_an_error_after_the_timeout(files):
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as empty,
        pytest.raises(RuntimeError, match=r"the cluster must have at least one worker; got none for 0.5 s"),
    ):
        DaskAUCClassifier(client=empty, timeout=0.5).fit(*files)


def test_without_a_client(files, monkeypatch):
    def missing():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", missing)
    with pytest.raises(ValueError, match=r"client must be a distributed.Client"):
        DaskAUCClassifier().fit(*files)
