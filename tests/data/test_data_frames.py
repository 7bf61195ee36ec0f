"""Data frames arrive like files; the header of a file is parsed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmax.data import DataError, iter_batches, read_columns, read_table
from rocmax.data import read as readers
from rocmax.data.read import TableSource

FRAME = pd.DataFrame(
    {
        "n": [1.0, np.nan, 3.0],
        "whole": [1, 2, 3],
        "flag": [True, False, True],
        "text": ["a", None, "c"],
        "when": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]),
        "label": ["no", "yes", "no"],
    }
)


@pytest.mark.parametrize(
    "frame",
    [FRAME, FRAME.set_index(np.array([7, 7, 9])), pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)],
    ids=["pandas", "with an index", "polars", "pyarrow"],
)
def test_frames_arrive_like_files(tmp_path, frame):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    expected = read_table(tmp_path / "a.csv", target="label")
    found = read_table(frame, target="label")
    pd.testing.assert_frame_equal(found.X.drop(columns="when"), expected.X.drop(columns="when"))
    assert found.X["when"].dtype.kind == "M"
    assert found.y.tolist() == ["no", "yes", "no"]
    assert read_columns(frame) == list(FRAME.columns)
    assert [len(X) for X, _ in iter_batches(frame, batch_size=2, columns=["n"])] == [2, 1]


def test_categories_and_nullable_types():
    frame = pd.DataFrame(
        {
            "c": pd.Categorical(["a", "b", None]),
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "label": pd.Categorical([1, 0, 1]),
        }
    )
    X, y = read_table(frame, target="label")
    assert X["c"].tolist()[:2] == ["a", "b"]
    assert X["c"].isna().tolist() == [False, False, True]
    np.testing.assert_array_equal(X[["i", "b"]], [[1, 1], [np.nan, np.nan], [3, 0]])
    assert y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pd.DataFrame({0: [1]}), {}, "the table must have column names that are strings; got 0"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "the table must have distinct column names; got 'a'"),
        (pd.DataFrame(), {}, "the table has no columns"),
        (FRAME.head(0), {}, "the table has columns but no rows"),
        (FRAME, {"target": "lable"}, r"the table has no column 'lable' \(is it 'label'\?\)"),
        (FRAME, {"target": "text"}, "the table must have a label in each row; got 1 missing in column 'text'"),
        (pd.DataFrame({"a": [1, "x"]}), {}, "neither numbers, text nor dates"),
        (pd.DataFrame({"a": [[1], [2]]}), {}, "column 'a' must contain numbers, text or dates; got list"),
    ],
)
def test_a_frame_that_cannot_be_used(frame, options, message):
    with pytest.raises(DataError, match=message):
        read_table(frame, **options)


@pytest.mark.parametrize("value", [None, 3, [[1, 2]], np.zeros((2, 2)), FRAME["n"]])
def test_other_values_are_not_tables(value):
    with pytest.raises(TypeError, match="table must be a path, a list of paths, or a pandas or polars DataFrame; got"):
        TableSource(value)


def test_columns_that_are_not_asked_for_may_be_anything():
    frame = FRAME.assign(odd=[1, "x", object()])
    assert read_table(frame, columns=["n", "whole"], target="label").X.shape == (3, 2)


def test_the_header_is_parsed_once(tmp_path, monkeypatch):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    calls, header = [], readers.csv_header
    monkeypatch.setattr(readers, "csv_header", lambda *args: calls.append(args) or header(*args))
    source = TableSource(tmp_path / "a.csv")
    source.read(target="label")
    list(source.batches(columns=["n"]))
    assert len(calls) == 1


def test_a_row_may_be_as_long_as_its_columns_need(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "RULES", replace(readers.RULES, block=1 << 10))
    names = [f"c{i}" for i in range(2000)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(["0.12345678"] * 2000) + "\n")
    assert read_table(tmp_path / "a.csv").X.shape == (1, 2000)
    (tmp_path / "b.csv").write_text("a,b\n1," + "x" * 5000 + "\n2,y\n")
    with pytest.raises(DataError, match="a row longer than the limit of 1,024 bytes"):
        read_table(tmp_path / "b.csv")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_numbers_are_exact(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("exact") / "a.csv"
    path.write_text("a\n" + "".join(f"{number!r}\n" for number in numbers))
    np.testing.assert_array_equal(read_table(path).X["a"], numbers)
