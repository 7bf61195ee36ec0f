"""Tables that were changed: they are read, or refused with a DataError."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from helpers.tables import payments
from rocmax.data import DataError, Reading, iter_batches, read_table


@pytest.fixture(scope="module")
def contents():
    """One table in each format, as bytes."""
    frame = payments(40).assign(count=np.arange(40))
    text, parquet, svmlight = frame.to_csv(index=False).encode(), io.BytesIO(), io.BytesIO()
    frame.to_parquet(parquet)
    frame.to_parquet(plain := io.BytesIO(), compression="none", use_dictionary=False)
    numbers = frame[["amount", "count"]].to_numpy()
    dump_svmlight_file(numbers, np.arange(40) % 2, svmlight, zero_based=False)
    return {
        "csv": text,
        "tsv": frame.to_csv(index=False, sep="\t").encode(),
        "csv.gz": gzip.compress(text, mtime=0),
        "csv.bz2": __import__("bz2").compress(text),
        "parquet": parquet.getvalue(),
        "pq": plain.getvalue(),
        "svmlight": svmlight.getvalue(),
    }


ODD = [b"\xff", b"\0", b'"', b"\n", b"\r", b",", b"\t", b"1e999", b":", b" ", b"", b"\xef\xbb\xbf", b"-", b"9" * 30]


def mutated(content, rng):
    """Flip bits, put odd bytes somewhere, move or drop a part, or cut the end off."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        place, kind = int(rng.integers(len(changed) or 1)), rng.integers(5)
        if kind == 0:
            changed[place : place + 1] = bytes([int(rng.integers(256))])
        elif kind == 1:
            changed[place:place] = ODD[rng.integers(len(ODD))]
        elif kind == 2:
            del changed[place : place + int(rng.integers(1, 20))]
        elif kind == 3:
            start = int(rng.integers(len(changed) or 1))
            changed[place:place] = changed[start : start + 30]
        elif rng.random() < 0.3:
            del changed[place:]
    return bytes(changed)


def outcome(read):
    """What was read, as text, or that it was refused."""
    try:
        table = read()
    except DataError:
        return None
    return (table.X.toarray() if hasattr(table.X, "toarray") else table.X).__repr__(), str(table.y)


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "csv.bz2", "parquet", "pq", "svmlight"])
def test_a_changed_table_is_read_or_refused(tmp_path, contents, ending):
    rng = np.random.default_rng(sum(ending.encode()))
    path, refused = tmp_path / f"a.{ending}", 0
    named = {} if ending == "svmlight" else {"target": "label"}
    n_features = {"n_features": 2} if ending == "svmlight" else {}
    for _ in range(60):
        path.write_bytes(mutated(contents[ending], rng))
        found = outcome(lambda: read_table(path, **named, **n_features))
        refused += found is None
        try:
            batches = list(iter_batches(path, **named, **n_features, batch_size=15))
        except DataError:
            continue
        assert all(len(batch.y) for batch in batches)
    assert refused > 5


@pytest.mark.parametrize("ending", ["csv", "parquet", "svmlight"])
def test_every_truncation(tmp_path, contents, ending):
    path, content = tmp_path / f"a.{ending}", contents[ending]
    for size in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:size])
        outcome(lambda: read_table(path))


def test_a_long_field(tmp_path):
    """Python's csv module refuses fields over 131,072 characters, and it is asked about headers and faults."""
    path, long = tmp_path / "a.csv", "x" * 140_000
    path.write_text(f"{long},label\n1,0\n")
    with pytest.raises(DataError, match=r"a\.csv, line 1: the header cannot be used: field larger than .*131072"):
        read_table(path)
    path.write_text(f"a,label\n{long},0\nb,1\n")
    assert len(read_table(path).X["a"][0]) == 140_000
    with pytest.raises(DataError, match=r"column 'a' must be numeric.*got 'xxxx") as caught:
        read_table(path, types={"a": "number"})
    assert len(str(caught.value)) < 600
    path.write_text(f"a,label\n{long},0\nb,1,2\n")
    with pytest.raises(DataError, match="has a row whose length differs from that of the header"):
        read_table(path)


def test_a_header_without_end(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(bytes(2**25)))
    for read in (read_table, lambda path: list(iter_batches(path))):
        with pytest.raises(DataError, match="the header is longer than 16,777,216 bytes"):
            read(path)


@pytest.mark.parametrize("before", [1, 3000])
def test_bad_bytes_and_a_ragged_row(tmp_path, before):
    """Whichever is reported, its line is named, also beyond the part of the file that is read with the header."""
    path, lines = tmp_path / "a.csv", (before + 2, before + 3)
    for first, second in [(b"1,2,3", b"4,\xe9"), (b"1," + b"x" * 300 + b"\xe9,3", b"4,5"), (b"4,\xe9", b"1,2,3")]:
        path.write_bytes(b"a,label\n" + b"1,2\n" * before + first + b"\n" + second + b"\n")
        for read in (read_table, lambda path: list(iter_batches(path))):
            with pytest.raises(DataError, match=rf"a\.csv, line ({lines[0]}|{lines[1]}): (3 fields|byte 0xe9)"):
                read(path)


def test_a_column_without_a_name_is_read_as_declared(tmp_path):
    (tmp_path / "a.csv").write_text(",b,label\n01,1,0\n02,2,1\n")
    pd.DataFrame({"": ["01", "02"], "b": [1, 2], "label": [0, 1]}).to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        path = tmp_path / name
        for X in (read_table(path, types={"": "text"}).X, next(iter_batches(path, types={"": "text"})).X):
            assert X[""].tolist() == ["01", "02"]
            assert X["b"].tolist() == [1.0, 2.0]


def test_an_index_out_of_range(tmp_path):
    (tmp_path / "a.svm").write_text("1 99999999999999999999:1\n0 1:1\n")
    with pytest.raises(DataError, match="feature index outside the range"):
        read_table(tmp_path / "a.svm")


def test_labels_that_are_not_numbers(tmp_path):
    (tmp_path / "a.svm").write_text("nan 1:1\n0 1:1\n")
    for read in (read_table, lambda path: list(iter_batches(path))):
        with pytest.raises(DataError, match="must have a label in each row; got 1 that are not numbers"):
            read(tmp_path / "a.svm")


@pytest.mark.parametrize("ending", ["csv.gz", "csv.zst", "svmlight.gz"])
def test_a_small_file_does_not_fill_the_memory(tmp_path, ending):
    import pyarrow as pa

    path, row = tmp_path / f"a.{ending}", b"1,0\n" if ending.startswith("csv") else b"1 1:1\n"
    content = (b"a,label\n" if ending.startswith("csv") else b"") + row * 500_000
    path.write_bytes(
        gzip.compress(content) if ending.endswith("gz") else pa.Codec("zstd").compress(content, asbytes=True)
    )
    with pytest.raises(DataError, match=r"must not exceed the limit of 1,000,000 bytes decompressed.*max_bytes=\.\.\."):
        read_table(path, reading=Reading(max_bytes=10**6))
    assert read_table(path, reading=Reading(max_bytes=len(content))).X.shape == (500_000, 1 + ending.startswith("csv"))


def test_parquet_that_stands_for_many_values(tmp_path):
    pd.DataFrame({"a": np.zeros(10**6)}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="must not exceed the limit of 1,000,000 bytes decompressed"):
        read_table(tmp_path / "a.parquet", reading=Reading(max_bytes=10**6))
    assert len(read_table(tmp_path / "a.parquet").X) == 10**6


def test_the_limit_is_checked_and_plain_text_has_none(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n22\n")
    assert len(read_table(tmp_path / "a.csv", reading=Reading(max_bytes=1)).X) == 2
    with pytest.raises(ValueError, match="max_bytes must be an integer of at least 1, or None; got 0"):
        read_table(tmp_path / "a.csv", reading=Reading(max_bytes=0))


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(DataError, match="cannot be read: File name too long"):
        read_table(tmp_path / ("a" * 300 + ".csv"))
