"""The quick reader gives what the careful one gives, or leaves the file to it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.utils.fixes import parse_version

from rocmax.data import DataError, _csv, _quick, read_table

NAMES = ["label", "a", "b"]
NUMBERS = st.sampled_from(
    ["1", "2.5", "-3", "1e5", "007", "", "NA", "9007199254740993", "18446744073709551615", "1e400"]
)
WORDS = st.sampled_from(["red", "blue", "é", "true", "False", "nan", "None", "inf", "2024-01-05", "x y", ""])
ODD = st.text(alphabet="0123456789.eE+- xnaifNIF\r\0", max_size=5)
CELLS = st.one_of(NUMBERS, WORDS, ODD)


needs_new_pandas = pytest.mark.skipif(
    parse_version(pd.__version__) < parse_version("3.1"), reason="older versions of pandas leave all files to pyarrow"
)


def careful(path, **options):
    """What read_table gives without the quick reader."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_csv, "read_quickly", lambda *_: None)
        return read_table(path, **options)


def outcome(read, path, **options):
    try:
        X, y = read(path, **options)
    except DataError as error:
        return str(error)
    return X, y


def assert_same(path, **options):
    expected, got = outcome(careful, path, **options), outcome(read_table, path, **options)
    if isinstance(expected, str) or isinstance(got, str):
        assert got == expected
        return
    pd.testing.assert_frame_equal(got[0], expected[0], check_exact=True)
    assert (got[1] is None) == (expected[1] is None)
    if got[1] is not None:
        np.testing.assert_array_equal(got[1], expected[1])
        assert got[1].dtype == expected[1].dtype


def columns_of(kinds, n_rows):
    return st.tuples(*(st.lists(kind, min_size=n_rows, max_size=n_rows) for kind in kinds))


@st.composite
def tables(draw):
    kinds = draw(st.tuples(*[st.sampled_from([NUMBERS, WORDS, CELLS])] * 2))
    rows = [list(row) for row in zip(*draw(columns_of(kinds, draw(st.integers(1, 6)))), strict=True)]
    for row in rows:
        row.insert(0, draw(st.sampled_from(["0", "1", "yes", "no"])))
    if draw(st.booleans()):
        broken = rows[draw(st.integers(0, len(rows) - 1))]
        broken.append("1") if draw(st.booleans()) else broken.pop()
    return "\n".join(",".join(row) for row in [NAMES, *rows]) + draw(st.sampled_from(["", "\n", "\n\n", "\n \n"]))


@settings(deadline=None, max_examples=300)
@given(tables())
@example("label,a,b\n1,2,0\n1,2\n")
@example("label,a,b\n1,2,0\n1,2\n1,2,3,1\n")
@example("label,a,b\n1,2,0,5\n1,2,1,5\n")
@example("label,a,b\n0,+1,2\n1,3,4\n")
@example("label,a,b\n0, 1,2\n1,3,4\n")
@example("label,a,b\n+1,3,2\n-1,3,4\n")
@example("label,a,b\n0,1\0,2\n1,3,4\n")
@example("label,a,b\n0,True,2\n1,1,4\n")
@example("label,a,b\n0,NAN,NA\n1,1,18446744073709551615\n")
@example("label,a,b\n0,1,2\n \n1,3,4\n")
def test_every_file_is_read_as_by_the_careful_reader(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("quick") / "a.csv"
    path.write_bytes(text.encode())
    assert_same(path, target="label")
    assert_same(path, target="label", types={"a": "number", "b": "text"})


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a,b,label\n1,red,0\n2.5,,1\n", {}),
        ("a,b,label\r\n1,red,no\r\n,blue,yes\r\n", {}),
        ("\ufeffa;b;label\ntrue;1;0\nfalse;2;1\n", {"delimiter": ";"}),
        ("a,b,label\n1,01,0\n2,02,1", {"types": {"b": "text"}}),
        ("a,b,label\n1,red,0\n2,blue,1\n", {"columns": ["b", "a"]}),
    ],
)
@needs_new_pandas
def test_plain_files_are_read_quickly(tmp_path, monkeypatch, text, options):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert_same(path, target="label", **options)
    monkeypatch.setattr(_csv, "read", lambda *_: pytest.fail("the careful reader was asked"))
    assert len(read_table(path, target="label", **options).X) == 2


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_numbers_are_exact(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("exact") / "a.csv"
    path.write_text("a\n" + "".join(f"{number!r}\n" for number in numbers).replace("e+", "e"))
    np.testing.assert_array_equal(read_table(path).X["a"], numbers)


def test_an_older_pandas_is_not_asked(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("a\n1\n2\n")
    monkeypatch.setattr(pd, "__version__", "3.0.2")
    monkeypatch.setattr(pd, "read_csv", lambda *_, **__: pytest.fail("pandas was asked"))
    assert read_table(tmp_path / "a.csv").X["a"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("text", ["a\nred\n \nblue\n", "a\n1\n\n2\n", "a\n1\n2,3\n", "a\nred\n"])
def test_one_column(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    assert_same(tmp_path / "a.csv")


def test_a_column_that_changes_after_the_peek(tmp_path):
    """Types are those of the whole file, wherever the odd row is."""
    rows = ["1,red,0"] * (3 * _quick.PEEK)
    for odd in ("x,red,1", "1,5,1", "1,red,one", "1,red", "1,red,1,1", "2024-01-01,red,1"):
        for place in (1, 2 * _quick.PEEK, len(rows) - 1):
            changed = [*rows[:place], odd, *rows[place:]]
            (tmp_path / "a.csv").write_text("a,b,label\n" + "\n".join(changed) + "\n")
            assert_same(tmp_path / "a.csv", target="label")
