"""Rows on disk: the same rows from every format, in chunks of bounded size."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from rocmax import AUCClassifier
from rocmax.data import DataError, Reading, RowStore, iter_batches, read_table
from rocmax.data.store import DiskArray, parse_bytes

RNG = np.random.default_rng(0)
X = np.where(RNG.random((50, 4)) < 0.5, RNG.normal(size=(50, 4)), 0.0)
X[0] = 1.0
Y = np.arange(50) % 3 == 0
WEIGHT = RNG.random(50)


def dense(store):
    return np.concatenate([chunk.toarray() if sparse.issparse(chunk) else chunk for chunk in store.chunks()])


def frame():
    return pd.DataFrame(X, columns=list("abcd")).assign(label=np.where(Y, "yes", "no"), w=WEIGHT)


def csr_maps(folder):
    """Return a CSR matrix whose arrays are memory maps."""
    rows = sparse.csr_matrix(X)
    arrays = []
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(rows, name))
        arrays.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return sparse.csr_matrix(tuple(arrays), shape=rows.shape, copy=False)


@pytest.mark.parametrize("form", ["npy", "fortran", "integers", "half", "memmap", "array", "csr", "csr maps"])
def test_arrays(tmp_path, form):
    values = X.astype({"integers": np.int32, "half": np.float16}.get(form, float))
    np.save(tmp_path / "X.npy", np.asfortranarray(values) if form == "fortran" else values)
    np.save(tmp_path / "y.npy", Y)
    given = {
        "memmap": lambda: np.load(tmp_path / "X.npy", mmap_mode="r"),
        "array": lambda: X,
        "csr": lambda: sparse.csr_matrix(X),
        "csr maps": lambda: csr_maps(tmp_path),
    }.get(form, lambda: tmp_path / "X.npy")()
    if form == "fortran":
        with pytest.raises(DataError, match=r"X.npy must have one or two dimensions in C order"):
            RowStore(given, Y)
        return
    store = RowStore(given, tmp_path / "y.npy", WEIGHT, max_memory=1000)
    np.testing.assert_array_equal(dense(store), values)
    assert {chunk.dtype for chunk in store.chunks()} == {np.dtype(np.float32 if form == "half" else np.float64)}
    assert store.classes.tolist() == [False, True]
    np.testing.assert_array_equal(store.codes, Y)
    np.testing.assert_array_equal(store.weight, WEIGHT)
    index = np.array([49, 3, 3, 0])
    found = store.rows.rows(index)
    np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, values[index])
    if form not in ("array", "csr"):
        assert sum(1 for _ in store.chunks()) > 3


PARTS = {
    "last rows": (lambda a: a[10:], True),
    "first rows": (lambda a: a[:40], True),
    "slice of a slice": (lambda a: a[5:][3:-2], True),
    "reshaped": (lambda a: a[10:].reshape(20, 8), True),
    "other type": (lambda a: a[10:].view(np.int64), True),
    "array": (lambda a: np.asarray(a)[10:], True),
    "every second row": (lambda a: a[::2], False),
    "reversed": (lambda a: a[::-1], False),
    "columns": (lambda a: a[:, 1:], False),
    "transposed": (lambda a: a.T, False),
}


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("part", PARTS)
def test_parts_of_memory_maps(tmp_path, part, mode):
    cut, in_order = PARTS[part]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "w.npy", WEIGHT)
    rows, labels, weight = (np.load(tmp_path / f"{name}.npy", mmap_mode=mode) for name in "Xyw")
    if mode != "r":
        rows[20], labels[20], weight[20] = -7.0, not labels[20], 7.0
    given = cut(rows)
    some = np.s_[-len(given) :]
    store = RowStore(given, labels[some], weight[some], max_memory=1000)
    np.testing.assert_array_equal(dense(store), given)
    np.testing.assert_array_equal(store.rows.rows(np.array([3, 0])), given[[3, 0]])
    np.testing.assert_array_equal(store.classes[store.codes], labels[some])
    np.testing.assert_array_equal(store.weight, weight[some])
    # Parts of the file are read in chunks; everything else is an array in memory.
    assert (sum(1 for _ in store.chunks()) > 1) == (in_order and mode != "c")


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet"])
def test_tables(tmp_path, ending):
    for part, rows in enumerate((slice(0, 20), slice(20, 50))):
        path = tmp_path / f"part-{part}.{ending}"
        table = frame()[rows]
        if ending == "parquet":
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    with RowStore.from_files(
        str(tmp_path / f"part-*.{ending}"), target="label", weight="w", max_memory=2000, folder=tmp_path
    ) as store:
        np.testing.assert_allclose(dense(store), X, rtol=1e-12)
        np.testing.assert_allclose(store.weight, WEIGHT, rtol=1e-12)
        assert store.classes.tolist() == ["no", "yes"]
        assert store.feature_names == list("abcd")
        copies = list(tmp_path.glob("rocmax-rows-*"))
        assert len(copies) == 1
    assert not copies[0].exists()


def test_svmlight(tmp_path):
    for part, rows in enumerate((slice(0, 30), slice(30, 50))):
        dump_svmlight_file(X[rows], Y[rows].astype(int), str(tmp_path / f"{part}.svm"), zero_based=False)
    with RowStore.from_files([tmp_path / "0.svm", tmp_path / "1.svm"], n_features=4, max_memory=2000) as store:
        np.testing.assert_allclose(dense(store), X)
        np.testing.assert_array_equal(store.codes, Y)
        np.testing.assert_allclose(store.rows.rows(np.array([49, 0])).toarray(), X[[49, 0]])


@pytest.mark.parametrize("ending", ["csv", "parquet", "svm"])
def test_rows_without_a_label(tmp_path, ending):
    path, lacking = tmp_path / f"rows.{ending}", np.arange(50) % 7 == 0
    options = {} if ending == "svm" else {"target": "label", "columns": list("abcd")}
    if ending == "svm":
        dump_svmlight_file(X, np.where(lacking, 9, Y), str(path), zero_based=False)
        path.write_text(re.sub(r"(?m)^9 ", "nan ", path.read_text()))
    else:
        table = frame().assign(label=np.where(lacking, None, frame()["label"]))
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    with pytest.raises(DataError, match=r"label in each row; got 8 .*out: reading=Reading\(skip_unlabeled=True\)"):
        RowStore.from_files(path, **options)
    with RowStore.from_files(path, **options, reading=Reading(skip_unlabeled=True), max_memory=1000) as store:
        np.testing.assert_allclose(dense(store), X[~lacking], rtol=1e-12)
        np.testing.assert_array_equal(store.codes, Y[~lacking])
    # The parameter of the message exists wherever the message does.
    for read in (read_table, lambda *args, **given: next(iter_batches(*args, **given))):
        with pytest.raises(DataError, match=r"reading=Reading\(skip_unlabeled=True\)"):
            read(path, **options)
        found, y = read(path, **options, reading=Reading(skip_unlabeled=True))
        assert found.shape == ((~lacking).sum(), 4)
        assert y.size == found.shape[0]


@pytest.mark.parametrize("ending", ["csv", "svm"])
def test_no_labels_at_all(tmp_path, ending):
    path, options = tmp_path / f"rows.{ending}", {} if ending == "svm" else {"target": "label"}
    if ending == "svm":
        path.write_text("nan 1:2\nnan 2:3\n")
    else:
        frame().assign(label=None).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"must have rows with a label; got none"):
        RowStore.from_files(path, **options, reading=Reading(skip_unlabeled=True))
    with pytest.raises(DataError, match=r"rows.* must have labels( in column 'label')?; got none"):
        read_table(path, **options, reading=Reading(skip_unlabeled=True))


def refused(every, folder):
    """Check the messages about files and options, and that no copy is left."""
    for files, options, message in every:
        with pytest.raises(ValueError, match=message):
            RowStore.from_files(files, folder=folder, **({"max_memory": 500} | options))
    assert not list(folder.glob("rocmax-rows-*"))


def test_bad_files(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().drop(columns="c").to_csv(tmp_path / "b.csv", index=False)
    frame().assign(a="text").to_csv(tmp_path / "c.csv", index=False)
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "e.svm").write_text("0 1:1\n1 1:2\n")
    named, good = {"target": "label"}, tmp_path / "a.csv"
    every = [
        ([good], {}, "target must be the name of the column with the labels"),
        (tmp_path / "*.parquet", named, r"no file matches .*\*.parquet"),
        ([good, tmp_path / "b.csv"], named, r"b.csv must have the columns of .*a.csv; got no column 'c'"),
        (tmp_path / "c.csv", named, r"column 'a' must contain numbers"),
        (good, named | {"max_memory": "lots"}, "max_memory must be a number of bytes"),
        (good, named | {"columns": []}, r"columns must name at least one feature of .*a.csv; got \[\]"),
        (good, named | {"columns": ["label"]}, r"columns must name at least one feature"),
        (good, named | {"columns": ["a", "b", "a"]}, "columns must be distinct; got 'a' more than once"),
        (good, {"target": "w", "weight": "w"}, "weight must be another column than target; got 'w' for both"),
        (tmp_path / "e.svm", {"columns": ["a"]}, r"e.svm is an svmlight file, which has no column names; got columns"),
        (good, named | {"columns": "a"}, r"columns must be a list of names; got the text 'a'. For one column: \['a'\]"),
        (tmp_path / "X.npy", {}, r"X.npy has no labels. .* pass a RowStore: fit_files\(RowStore\(X, y\)\)"),
    ]
    refused(every, tmp_path)
    with pytest.raises(TypeError, match=r"files must be .* RowStore; got ndarray. .*fit_files\(RowStore\(X, y\)\)"):
        RowStore.from_files(X)
    with pytest.raises(ValueError, match="columns must be a list of names; got the text 'a'"):
        read_table(good, columns="a")
    with pytest.raises(DataError, match=r"folder must be a directory that can be written to; got .*none: No such file"):
        RowStore.from_files(good, target="label", folder=tmp_path / "none")


def test_bad_values_in_files(tmp_path):
    at = np.arange(50) == 17
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().assign(c=np.where(at, np.nan, X[:, 2])).to_csv(tmp_path / "b.csv", index=False)
    frame().assign(w=np.where(at, -1.0, WEIGHT)).to_parquet(tmp_path / "c.parquet")
    frame().assign(label=Y.astype(int)).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "e.svm").write_text("0 1:1\n1 1:2 3:nan\n")
    named, good, labeled = {"target": "label"}, tmp_path / "a.csv", Reading(skip_unlabeled=True)
    every = [
        ([good, tmp_path / "b.csv"], named, r"b.csv: column 'c' must contain finite numbers; got nan in row 17\."),
        (
            tmp_path / "b.csv",
            named | {"reading": labeled},
            r"got nan in row 17 of those with a label\.",
        ),
        (tmp_path / "c.parquet", named | {"weight": "w"}, r"c.parquet: column 'w' must be .*>= 0; got -1.0 in row 17"),
        ([good, tmp_path / "d.csv"], named, r"d.csv must have labels of one type, numbers or text; got \w+ and str"),
        (tmp_path / "e.svm", {}, r"e.svm: column 2 must contain finite numbers; got nan in row 1\."),
    ]
    refused(every, tmp_path)


def test_bad_arrays(tmp_path):
    with pytest.raises(DataError, match="X must be a 2-D array of numbers"):
        RowStore(np.zeros(3), [0, 1, 1])
    with pytest.raises(DataError, match=r"y must have shape \(50,\)"):
        RowStore(X, [0, 1])
    with pytest.raises(DataError, match=r"y must have a label for each row; got nan in row 7"):
        RowStore(X, np.where(np.arange(50) == 7, np.nan, Y))
    for missing in (None, np.nan, pd.NA):
        labels = np.where(Y, "yes", "no").astype(object)
        labels[7] = missing
        with pytest.raises(DataError, match=rf"y must have a label for each row; got {missing} in row 7"):
            RowStore(X, labels)
    with pytest.raises(DataError, match=r"y must have labels of one type, numbers or text; got bool and str"):
        RowStore(X, [*Y[:-1].tolist(), "yes"])
    with pytest.raises(DataError, match=r"sample_weight must have shape"):
        RowStore(X, Y, [1.0])
    for bad in (["a"] * 50, [None] * 49 + [{}]):
        with pytest.raises(DataError, match=r"sample_weight must contain numbers; got dtype (<U1|object)"):
            RowStore(X, Y, bad)
    for bad in (np.nan, np.inf, -1.0):
        with pytest.raises(DataError, match=rf"sample_weight must be finite and >= 0; got {bad} in row 7"):
            RowStore(X, Y, np.where(np.arange(50) == 7, bad, WEIGHT))
    for bad in (1e-200, 2e150):
        with pytest.raises(
            DataError, match=rf"sample_weight must be from 1e-100 to 1e\+100, .* got {re.escape(str(bad))} in row 7"
        ):
            RowStore(X, Y, np.where(np.arange(50) == 7, bad, WEIGHT))
    for empty in (X[:, :0], X[:0], sparse.csr_matrix((50, 0)), sparse.csr_matrix((0, 4))):
        with pytest.raises(DataError, match=r"at least one row and one column; got shape \(\d+, \d\)"):
            RowStore(empty, Y)
    (tmp_path / "X.npy").write_bytes(b"no array")
    with pytest.raises(DataError, match=r"X.npy must be a .npy file"):
        RowStore(tmp_path / "X.npy", Y)
    np.save(tmp_path / "X.npy", X)
    array = DiskArray.open(tmp_path / "X.npy")
    (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:-20])
    with pytest.raises(DataError, match=r"X.npy must not change while its rows are used: its size, its time"):
        array[0:50]
    short = DiskArray(tmp_path / "X.npy", np.float64, (50, 4), 128)
    with pytest.raises(DataError, match=r"X.npy ends before row 50 of 50; was it changed"):
        short[0:50]


def test_a_closed_store(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    with RowStore.from_files(tmp_path / "a.csv", target="label", weight="w", folder=tmp_path) as store:
        assert store.folder.parent == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    for use in (store.chunks, lambda: store.rows, lambda: store.weight, lambda: AUCClassifier().fit_files(store)):
        with pytest.raises(ValueError, match=r"the RowStore must be open; .* with RowStore.from_files"):
            use()
    with RowStore(X, Y) as arrays:  # nothing is removed
        pass
    np.testing.assert_array_equal(dense(arrays), X)


@pytest.mark.parametrize(("text", "size"), [("1GB", 10**9), ("2 GiB", 2 << 30), ("1.5kb", 1500), (64, 64), ("7", 7)])
def test_sizes(text, size):
    assert parse_bytes("max_memory", text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", 0, True, None, "1XB", float("inf")])
def test_bad_sizes(text):
    with pytest.raises(ValueError, match="max_memory must be a number of bytes or a string"):
        parse_bytes("max_memory", text)
