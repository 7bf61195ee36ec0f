"""Fits on a real cluster of two processes: the local result, and errors that name what is wrong."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import rocmax
from rocmax.data import DataError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402  # after the check that dask is there

from rocmax.dask import (  # noqa: E402
    DaskAUCClassifier,
    DaskPartialAUCClassifier,
    partial_auc_score,
    roc_auc_score,
    tpr_at_fpr,
)
from rocmax.dask.cluster import DaskShards  # noqa: E402
from rocmax.sharded.shard import Shard  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]


def local_fit(model, X, y, weight=None):
    return clone(model).fit(StandardScaler().fit_transform(X, sample_weight=weight), y, sample_weight=weight)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("AUC", {"C": 10.0}),
        ("PartialAUC", {"max_fpr": 0.2, "loss": "tight", "C": 10.0}),
        ("PartialAUC", {"max_fpr": 0.2}),
        ("PartialAUC", {"max_fpr": 0.2, "loss": "structural", "constraint": "l1", "radius": 1.0}),
        ("PartialAUC", {"min_fpr": 0.05, "max_fpr": 0.3, "loss": "hinge", "C": 10.0}),
        ("PartialAUC", {"max_fpr": 0.5, "min_tpr": 0.4, "loss": "tight", "C": 10.0}),
        ("AUC", {"constraint": "group", "radius": 0.5, "groups": [0, 0, 1, 1, 2, 2]}),
    ],
    ids=["auc", "tight", "auto", "structural l1", "cccp", "corner", "group"],
)
def test_the_result_is_that_of_a_local_fit(client, rows, files, kind, parameters):
    X, y = rows
    plain = getattr(rocmax, f"{kind}Classifier")(**parameters)
    on_cluster = {"AUC": DaskAUCClassifier, "PartialAUC": DaskPartialAUCClassifier}[kind](**parameters)
    expected = local_fit(plain, X, y)
    found = on_cluster.fit(*files)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    local = found.to_local()
    assert type(local) is type(plain)
    assert local.get_params() == plain.get_params()
    np.testing.assert_array_equal(found.predict(files[0]).compute(), local.predict(X))
    assert found.score(*files) == pytest.approx(local.score(X, y), abs=1e-9)
    if kind == "PartialAUC" and not plain.min_tpr:
        assert local.predict(X[~y]).sum() == int(plain.max_fpr * (~y).sum())


def test_chunkings_weights_sparse_chunks_and_frames(client, rows):
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    order = np.argsort(~y, kind="stable")  # partitions with one class, and one without a row of weight
    weight[order[:400]] = 0.0
    expected = local_fit(rocmax.AUCClassifier(), X, y, weight).objective_
    arrays = [array[order] for array in (X, y, weight)]
    found = []
    for chunks in ((y.size, 6), (400, 3)):
        collections = (da.from_array(a, chunks=chunks[: a.ndim]) for a in arrays)
        found.append(DaskAUCClassifier().fit(*collections).objective_)
    as_sparse = da.from_array(arrays[0], chunks=(2500, 6)).map_blocks(sparse.csr_matrix)
    labels, weights = (da.from_array(a, chunks=2500) for a in arrays[1:])
    found.append(DaskAUCClassifier().fit(as_sparse, labels, weights).objective_)
    names = [f"f{i}" for i in range(6)]
    frame = pandas.DataFrame(arrays[0], columns=names).assign(y=arrays[1], w=arrays[2])
    table = frames.from_pandas(frame, npartitions=3)
    model = DaskAUCClassifier().fit(table[names], table["y"], table["w"])
    found.append(model.objective_)
    assert model.feature_names_in_.tolist() == names
    assert model.predict(table[names]).compute().shape == y.shape
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_partitions_without_rows(client, rows):
    X, y = rows
    parts = [slice(0, 0), slice(0, 4000), slice(4000, 4000), slice(4000, 6000), slice(6000, 6000)]

    def joined(array):
        delayed = [dask.delayed(array[part]) for part in parts]
        chunks = [da.from_delayed(part, (np.nan, *array.shape[1:]), array.dtype) for part in delayed]
        return da.concatenate(chunks, allow_unknown_chunksizes=True)

    found = DaskAUCClassifier().fit(joined(X), joined(y.astype(int)))
    assert found.objective_ == pytest.approx(local_fit(rocmax.AUCClassifier(), X, y).objective_, rel=2e-3)


def test_the_label_of_the_positives(client, rows):
    X, y = rows
    words = np.where(y, "fraud", "ok")
    collections = da.from_array(X, chunks=(2000, 6)), da.from_array(words, chunks=2000)
    model = DaskPartialAUCClassifier(max_fpr=0.2, pos_label="fraud").fit(*collections)
    assert model.classes_.tolist() == ["fraud", "ok"]
    assert model.score(*collections) == pytest.approx(model.to_local().score(X, words), abs=1e-9)
    assert model.score(*collections) > 0.3


def test_a_client_that_is_not_the_default_one(cluster, rows):
    X, y = rows
    collections = da.from_array(X, chunks=(2000, 6)), da.from_array(y, chunks=2000)
    with distributed.Client(cluster, set_as_default=False) as client, client.as_current():
        model = DaskAUCClassifier().fit(*collections)
        assert model.score(*collections) == pytest.approx(model.to_local().score(X, y), abs=1e-9)
    with config_context(enable_metadata_routing=True):
        copied = clone(DaskPartialAUCClassifier(max_fpr=0.3).set_fit_request(sample_weight=True))
    assert copied.max_fpr == 0.3
    assert copied.get_metadata_routing().fit.requests["sample_weight"] is True
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.to_local().predict(X))


def test_integers_and_parameters_that_are_not_changed(client):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (600, 3))
    y = X[:, 0] + rng.normal(0, 2, 600) > 5
    model = DaskAUCClassifier()
    before = model.get_params()
    model.fit(da.from_array(X, chunks=(200, 3)), da.from_array(y, chunks=200))
    assert model.get_params() == before
    assert model.objective_ == pytest.approx(local_fit(rocmax.AUCClassifier(), X, y).objective_, rel=2e-3)


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
        DaskAUCClassifier(tol=0.05, max_iter=5).fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    print("bytes per round:", largest)
    assert max(peaks) < 1.2 * peaks[0] + 1e6
    # Two workers, and for each of 8192 bins fewer than ten numbers.
    assert max(max(sizes.values()) for sizes in largest) < 2 * 10 * 8 * 8192
    # Distinct scores near the threshold, each with label and weight: at most as many as bins of both classes.
    assert max(sizes.pop(Shard.between) for sizes in largest) < 1.1 * 17 * 2 * 8192
    # A hundred times as many rows; sometimes one of the workers loads all of them, and there is one answer.
    for method, size in largest[0].items():
        assert max(sizes.get(method, 0) for sizes in largest) < 2.2 * size + 1e4, method


def test_measures_on_the_cluster(client, rows, files):
    X, y = rows
    parts = files[1], files[0][:, 0]
    assert roc_auc_score(*parts).value == pytest.approx(rocmax.metrics.partial_auc_score(y, X[:, 0]), abs=1e-12)
    found = partial_auc_score(*parts, max_fpr=0.1, n_bins=2000)
    assert abs(found.value - rocmax.metrics.partial_auc_score(y, X[:, 0], max_fpr=0.1)) <= found.error < 0.01
    found = tpr_at_fpr(*parts, max_fpr=0.1)
    assert found.value == pytest.approx(rocmax.metrics.tpr_at_fpr(y, X[:, 0], max_fpr=0.1), abs=1e-12)
    lost = da.from_delayed(dask.delayed(np.load)("no such file.npy"), (1200,), float)
    with pytest.raises(FileNotFoundError, match="no such file"):
        roc_auc_score(files[1].blocks[:2], da.concatenate([parts[1].blocks[0], lost]))


def test_bytes_that_measures_fetch_do_not_depend_on_the_rows(client, monkeypatch):
    compute, fetched = dask.compute, []

    def measured(*values):
        answer = compute(*values)
        fetched.append(len(pickle.dumps(answer)))
        return answer

    monkeypatch.setattr(dask, "compute", measured)
    for n in (10**5, 10**6):
        X, y = generated(n)
        tpr_at_fpr(y, X[:, 0], max_fpr=0.1, n_bins=10_000)
        partial_auc_score(y, X[:, 0], max_fpr=0.01, n_bins=10_000)
    assert len(fetched) == 4
    assert max(fetched) < 1.1 * 4 * 8 * 10_000


def test_bad_partitions_are_named(client, rows):
    X, y = rows[0], rows[1]
    labels, features = da.from_array(y, chunks=2000), da.from_array(X, chunks=(2000, 6))
    for missing in (np.nan, None):
        bad = da.from_array(np.where(np.arange(y.size) == 3000, missing, y), chunks=2000)
        with pytest.raises(DataError, match="partition 1: y must have a label in each row; got 1 missing"):
            DaskAUCClassifier().fit(features, bad)
    mixed = np.where(np.arange(y.size) == 3000, "1", y.astype(object))
    with pytest.raises(DataError, match="partition 1: y must have labels of one type; got numbers and text"):
        DaskAUCClassifier().fit(features, da.from_array(mixed, chunks=2000))
    parts = [y[:2000].astype(int), y[2000:4000].astype(int).astype(str)]
    words = da.concatenate([da.from_delayed(dask.delayed(part), (2000,), object) for part in parts])
    with pytest.raises(DataError, match=r"partition 1: .* type of those in partition 0, numbers; got text"):
        DaskAUCClassifier().fit(features[:4000], words)
    values = X.copy()
    values[5000, 2] = np.inf
    with pytest.raises(ValueError, match=r"got inf in row 1000, column 2 of partition 2"):
        DaskAUCClassifier().fit(da.from_array(values, chunks=(2000, 6)), labels)
    lost = da.from_delayed(dask.delayed(np.load)("no such file.npy"), (2000, 6), float)
    with pytest.raises(DataError, match=r"partition 1 cannot be read: FileNotFoundError.*no such file"):
        DaskAUCClassifier().fit(da.concatenate([features[:2000], lost]), labels[:4000])
    wide = [da.from_array(X[:2000, :k], chunks=(2000, k)).to_delayed()[0, 0] for k in (6, 5)]
    ragged = da.concatenate([da.from_delayed(part, (2000, 6), float) for part in wide])
    with pytest.raises(DataError, match="partition 1 must have the columns of partition 0, 6; got 5"):
        DaskAUCClassifier().fit(ragged, labels[:4000])
    with pytest.raises(DataError, match=r"partition 0: y must have one label for each of 2000 rows; got \(1000,\)"):
        DaskAUCClassifier().fit(features[:2000], labels[:1000].rechunk(1000))
    with pytest.raises(
        DataError,
        match=r"partition 2: sample_weight must be finite and >= 0; got -1.0 in row 1001 of the",
    ):
        DaskAUCClassifier().fit(features, labels, da.from_array(np.where(np.arange(6000) > 5000, -1, 1), chunks=2000))
    with pytest.raises(ValueError, match="y must have two classes; got one class"):
        DaskAUCClassifier().fit(features, da.zeros(6000, chunks=2000, dtype=int))
    with pytest.raises(TypeError, match="X must be a dask Array, DataFrame or Series; got ndarray"):
        DaskAUCClassifier().fit(X, y)
    with pytest.raises(ValueError, match='loss must be "hinge"; got "squared_hinge"'):
        DaskAUCClassifier(loss="squared_hinge").fit(features, labels)


def test_bad_columns_of_frames_are_named(client):
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")

    def table(name, value):
        return pandas.DataFrame({"a": [1.0, 2.0], name: [value, value], "y": [0, 1]})

    def joined(*tables):
        return frames.from_delayed([dask.delayed(part) for part in tables], meta=tables[0], verify_meta=False)

    good = table("b", 1.0)
    other = joined(good, table("c", 1.0))
    features = other.map_partitions(lambda part: part.drop(columns="y"), meta=good[["a", "b"]], enforce_metadata=False)
    with pytest.raises(
        DataError, match=r"partition 1 must have the columns of partition 0, \['a', 'b'\]; got \['a', 'c'"
    ):
        DaskAUCClassifier().fit(features, other["y"])
    text = joined(good, table("b", "high"))
    with pytest.raises(DataError, match="partition 1: column 'b' must contain numbers"):
        DaskAUCClassifier().fit(text[["a", "b"]], text["y"])


def test_without_a_client(files, monkeypatch):
    def missing():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", missing)
    with pytest.raises(ValueError, match=r"a distributed.Client must have been created"):
        DaskAUCClassifier().fit(*files)


def test_an_unfitted_model(client, files):
    with pytest.raises(NotFittedError):
        DaskAUCClassifier().to_local()
    model = DaskAUCClassifier()
    with pytest.raises(DataError):
        model.fit(files[0], files[1].astype(float) * np.nan)
    with pytest.raises(NotFittedError):
        model.predict(files[0])
