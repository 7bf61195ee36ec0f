"""Files in batches: every row once, in order or shuffled within a buffer, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from rocmax.data import DataError, iter_batches, read_table
from rocmax.data import read as readers
from rocmax.data.read import find_source, rebatch, shuffled

N_ROWS = 2500


@pytest.fixture(params=["csv", "csv.gz", "parquet", "svm", "svm.bz2"])
def file(request, tmp_path_factory, monkeypatch):
    """A file whose first feature is the number of the row, read in small blocks."""
    monkeypatch.setattr(readers, "RULES", replace(readers.RULES, block=4096))
    path = tmp_path_factory.mktemp("batches") / f"rows.{request.param}"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"row": np.arange(N_ROWS) + 1.0, "x": rng.normal(size=N_ROWS).round(3)})
    labels = np.arange(N_ROWS) % 3 == 0
    if ".svm" in path.name:
        plain = path.with_name("plain")
        dump_svmlight_file(frame.to_numpy(), labels, str(plain), zero_based=False)
        content = plain.read_bytes()
        path.write_bytes(__import__("bz2").compress(content) if path.suffix == ".bz2" else content)
        return path, {}
    frame["label"] = np.where(labels, "yes", "no")
    frame.to_parquet(path, row_group_size=700) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path, {"target": "label"}


def row_numbers(X):
    return (X["row"].to_numpy() if isinstance(X, pd.DataFrame) else X.toarray()[:, 0]).astype(int) - 1


def test_batches_in_order_are_the_file(file):
    path, options = file
    whole = read_table(path, **options)
    batches = list(iter_batches(path, batch_size=400, **options))
    assert [X.shape[0] for X, _ in batches] == [400] * 6 + [100]
    assert np.concatenate([row_numbers(X) for X, _ in batches]).tolist() == list(range(N_ROWS))
    assert np.concatenate([y for _, y in batches]).tolist() == whole.y.tolist()
    if isinstance(whole.X, pd.DataFrame):
        pd.testing.assert_frame_equal(pd.concat([X for X, _ in batches], ignore_index=True), whole.X)


def test_a_buffer_shuffles_and_keeps_labels_with_rows(file):
    path, options = file
    whole = read_table(path, **options)

    def order(seed, buffer_size=1000):
        batches = list(iter_batches(path, batch_size=400, buffer_size=buffer_size, random_state=seed, **options))
        assert [X.shape[0] for X, _ in batches] == [400] * 6 + [100]
        rows = np.concatenate([row_numbers(X) for X, _ in batches])
        np.testing.assert_array_equal(np.concatenate([y for _, y in batches]), whole.y[rows])
        return rows

    rows = order(1)
    assert sorted(rows.tolist()) == list(range(N_ROWS))
    assert rows.tolist() == order(1).tolist() != order(2).tolist()
    # The first buffer holds the first thousand rows, of which 200 wait for the next.
    assert set(rows[:800].tolist()) < set(range(1000))
    assert np.corrcoef(np.arange(800), rows[:800])[0, 1] < 0.2
    assert sorted(order(1, 10_000).tolist()) == list(range(N_ROWS))


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 30), max_size=8),
    batch_size=st.integers(1, 20),
    extra=st.none() | st.integers(0, 30),
    seed=st.integers(0, 99),
)
def test_every_row_comes_once_and_none_comes_before_its_buffer(sizes, batch_size, extra, seed):
    stops = np.cumsum([0, *sizes])
    frames = [(pd.DataFrame({"row": np.arange(a, b)}), np.arange(a, b)) for a, b in pairwise(stops)]
    buffer_size = None if extra is None else batch_size + extra
    chunks = iter(frames) if extra is None else shuffled(iter(frames), buffer_size, np.random.default_rng(seed))
    batches = list(rebatch(chunks, batch_size))
    rows = np.concatenate([X["row"].to_numpy() for X, _ in batches]) if batches else np.array([])
    assert sorted(rows.tolist()) == list(range(stops[-1]))
    assert all(X["row"].tolist() == y.tolist() for X, y in batches)
    assert all(y.size == batch_size for _, y in batches[:-1])
    # A row cannot come out before the pool has reached it.
    held = buffer_size or 1
    assert all(row < place + held for place, row in enumerate(rows))


def test_later_blocks_are_of_the_types_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "RULES", replace(readers.RULES, block=64))
    path = tmp_path / "a.csv"
    path.write_text("x,z,label\n" + "1,,a\n" * 30 + "1.5,7,b\n")
    X = pd.concat([X for X, _ in iter_batches(path, target="label")])
    assert X["x"].iloc[-1] == 1.5
    assert X["z"].iloc[-1] == 7
    path.write_text("x,z,label\n" + "1,,a\n" * 30 + "one,7,b\n")
    with pytest.raises(DataError, match=r"line 32: column 'x' must be numeric.*got 'one'.*types=\{'x': 'text'\}"):
        list(iter_batches(path, target="label"))
    X = pd.concat([X for X, _ in iter_batches(path, target="label", types={"x": "text"})])
    assert X["x"].iloc[-1] == "one"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be an integer > 0; got 0"),
        ({"batch_size": 2.5}, "batch_size must be an integer"),
        ({"buffer_size": True}, "buffer_size must be an integer"),
        ({"batch_size": 100, "buffer_size": 50}, "buffer_size must be at least batch_size, 100; got 50"),
    ],
)
def test_bad_sizes_are_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        iter_batches("nothing.csv", **options)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet", "svm"])
def test_memory_does_not_grow_with_the_file(tmp_path, ending):
    """A file is read in less memory than it takes on disk."""
    path = tmp_path / f"large.{ending}"
    rng = np.random.default_rng(0)
    block = pd.DataFrame(rng.normal(size=(20_000, 20)).round(6), columns=[f"x{i}" for i in range(20)])
    if ending == "svm":
        dump_svmlight_file(block.to_numpy(), np.arange(20_000) % 2, str(path), zero_based=False)
        path.write_bytes(path.read_bytes() * 10)
    elif ending == "csv":
        text = block.to_csv(index=False).partition("\n")
        path.write_text(text[0] + "\n" + text[2] * 12)
    else:
        pd.concat([block] * 20).to_parquet(path, row_group_size=50_000, compression="none")
    program = (
        "import resource, sys\nfrom rocmax.data import iter_batches\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "batches = iter_batches(sys.argv[1], batch_size=5000, buffer_size=20000, random_state=0)\n"
        "next(batches); start = peak(); rows = 5000 + sum(X.shape[0] for X, y in batches); print(rows, peak() - start)"
    )
    run = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    rows, grown = run.stdout.split()
    assert int(rows) >= 200_000
    assert path.stat().st_size > 40e6
    assert float(grown) < 30


def test_row_groups_that_were_read_are_let_go(tmp_path):
    """Arrow holds a few row groups of a parquet file, not all that it has read so far."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rng, path = np.random.default_rng(0), tmp_path / "groups.parquet"
    table = pa.table({f"x{j}": rng.random(10_000) for j in range(10)})
    with parquet.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(100):
            writer.write_table(table)
    before, most = pa.total_allocated_bytes(), 0
    for X, _ in iter_batches(path, batch_size=10_000):
        assert X.shape == (10_000, 10)
        most = max(most, pa.total_allocated_bytes() - before)
    assert path.stat().st_size > 80e6
    assert most < 30e6


def test_batches_of_wide_parquet_files_are_short(tmp_path):
    frame = pd.DataFrame(np.zeros((30_000, 100)), columns=[f"f{i}" for i in range(100)])
    frame.to_parquet(tmp_path / "wide.parquet", row_group_size=1000)
    sizes = [table.nbytes for table in readers.parquet_chunks(find_source(tmp_path / "wide.parquet"), list(frame))]
    assert sum(sizes) >= frame.to_numpy().nbytes
    assert max(sizes) < 9_000_000
