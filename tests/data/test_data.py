"""Reading whole files: formats, types, and what is said about bad ones."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.datasets import dump_svmlight_file

from rocmax import data
from rocmax.data import DataError, Reading, read_columns, read_table
from rocmax.data.read import TableSource

MIXED = 'age,city,paid,when,label\n31,Lyon,true,2024-01-05,ok\n,"Aix, Sud",false,2024-02-01,fraud\n2.5,,,,ok\n'


def packed(path, text):
    content = text.encode() if isinstance(text, str) else text
    if path.suffix == ".gz":
        content = gzip.compress(content)
    elif path.suffix == ".bz2":
        content = bz2.compress(content)
    elif path.suffix == ".zst":
        content = pa.Codec("zstd").compress(content, asbytes=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".CSV"])
def test_mixed_types_of_a_csv(tmp_path, ending):
    X, y = read_table(packed(tmp_path / f"a{ending}", MIXED), target="label")
    assert list(X.columns) == ["age", "city", "paid", "when"]
    np.testing.assert_array_equal(X["age"], [31, np.nan, 2.5])
    assert X["city"][:2].tolist() == ["Lyon", "Aix, Sud"]
    assert X["city"].isna().tolist() == [False, False, True]
    np.testing.assert_array_equal(X["paid"], [1, 0, np.nan])
    assert X["when"][0] == pd.Timestamp("2024-01-05") or str(X["when"][0]) == "2024-01-05"
    assert y.tolist() == ["ok", "fraud", "ok"]


def test_tabs_delimiters_and_a_byte_order_mark(tmp_path):
    text = MIXED.replace('"Aix, Sud"', "Aix")
    expected = read_table(packed(tmp_path / "a.csv", text), target="label").X
    for name, content, delimiter in [
        ("a.tsv", text.replace(",", "\t"), None),
        ("b.csv", text.replace(",", ";"), ";"),
        ("c.csv", "\ufeff" + text, None),
        ("d.csv", text.replace("\n", "\r\n"), None),
    ]:
        got = read_table(packed(tmp_path / name, content), target="label", reading=Reading(delimiter=delimiter))
        pd.testing.assert_frame_equal(got.X, expected)


def test_marks_for_missing_values_may_have_spaces_around_them(tmp_path):
    text = "city,sum,label\nNA, NA ,a\n NA,5,a\n nan  ,-0,b\n? ,0,b\nNAM,7,a\n"
    X = read_table(packed(tmp_path / "a.csv", text), target="label", reading=Reading(na=["?", "0"])).X
    assert X["city"].isna().tolist() == [True, True, True, True, False]
    X = read_table(tmp_path / "a.csv", target="label", types={"sum": "parsed"}, reading=Reading(na=["?", "0"])).X
    np.testing.assert_array_equal(X["sum"], [np.nan, 5, 0, np.nan, 7])
    frame = pd.DataFrame({"city": ["NA", " NA", "?"], "sum": [-0.0, 0.0, 1.0]})
    X = TableSource(frame, Reading(na=["?", "0"])).read().X
    assert X["city"].isna().tolist() == [False, False, True]  # Namibia
    assert X["sum"].isna().tolist() == [True, True, False]


def test_columns_are_chosen_and_ordered(tmp_path):
    path = packed(tmp_path / "a.csv", MIXED)
    assert read_columns(path) == ["age", "city", "paid", "when", "label"]
    X, y = read_table(path, columns=["paid", "age"])
    assert (list(X.columns), y) == (["paid", "age"], None)


def test_types_can_be_declared(tmp_path):
    path = packed(tmp_path / "a.csv", "code,x\n01,1\n02,2\n")
    assert read_table(path, types={"code": "text"}).X["code"].tolist() == ["01", "02"]
    with pytest.raises(DataError, match=r"line 3: column 'x' must be numeric.*got 'two'"):
        read_table(packed(tmp_path / "b.csv", "code,x\n01,1\n02,two\n"), types={"x": "number"})
    with pytest.raises(ValueError, match=r"'number' or 'text'.*got 'int'"):
        read_table(path, types={"x": "int"})


def test_words_for_missing_values(tmp_path):
    words = ["NA", "N/A", "NaN", "nan", "null", "NULL", "None", ""]
    path = packed(tmp_path / "a.csv", "x,t,z\n" + "".join(f"{word},{word},0\n" for word in words) + "1,a,0\n")
    X = read_table(path).X
    assert X["x"].isna().tolist() == X["t"].isna().tolist() == [True] * 8 + [False]


def test_declared_numbers_may_be_booleans_and_large(tmp_path):
    path = packed(tmp_path / "a.csv", "flag,id,x\ntrue,123456789012345678,1\nfalse,2,\n")
    types = {"flag": "number", "id": "number"}
    for X in (read_table(path).X, read_table(path, types=types).X, next(data.iter_batches(path, types=types)).X):
        assert X["flag"].tolist() == [1.0, 0.0]
        assert X["id"].tolist() == [123456789012345678.0, 2.0]


def test_parquet_equals_csv(tmp_path):
    frame = pd.read_csv(packed(tmp_path / "a.csv", MIXED))
    frame["label"] = frame["label"].astype("category")
    frame["count"] = np.array([1, 2, 3], dtype=np.int8)
    frame.drop(columns="when").to_parquet(tmp_path / "a.parquet")
    X, y = read_table(tmp_path / "a.parquet", target="label")
    text = str(pd.Series(["a"]).dtype)  # object before pandas 3
    assert X.dtypes.astype(str).to_dict() == {"age": "float64", "city": text, "paid": "float64", "count": "float64"}
    assert y.tolist() == ["ok", "fraud", "ok"]
    pd.testing.assert_frame_equal(
        X[["age", "city", "paid"]], read_table(tmp_path / "a.csv", columns=["age", "city", "paid"]).X
    )


@pytest.mark.parametrize("ending", [".svm", ".libsvm.gz", ".svmlight.zst"])
def test_svmlight(tmp_path, ending):
    rng = np.random.default_rng(0)
    A, labels = rng.integers(0, 3, (20, 4)).astype(float), np.arange(20) % 2
    dump_svmlight_file(A, labels, str(tmp_path / "plain"), zero_based=False)
    path = packed(tmp_path / f"a{ending}", (tmp_path / "plain").read_bytes())
    X, y = read_table(path)
    np.testing.assert_array_equal(X.toarray(), A)
    np.testing.assert_array_equal(y, labels)
    assert read_table(path, n_features=9).X.shape == (20, 9)
    assert read_columns(path) is None


BAD = {
    "empty": ("a.csv", b"", "a.csv is empty"),
    "only a header": ("a.csv", b"x,label\n", "has a header but no rows"),
    "blank": ("a.csv", b"\n\n", "is empty: it has no header"),
    "ragged": ("a.csv", b'x,label\n1,a\n"2\n3",b\n4,c,5\n', r"a.csv, line 5: 3 fields where the header has 2 columns"),
    "short row": ("a.csv", b"x,y,label\n1,2,a\n1\n", r"line 3: 1 field where the header has 3 columns"),
    "utf-16": ("a.csv", "x,label\n1,a\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8"),
    "no target": (
        "a.csv",
        b"x,Label\n1,a\n",
        r"has no column 'label' \(is it 'Label'\?\); its columns are 'x', 'Label'",
    ),
    "twice": ("a.csv", b"x,x,label\n1,2,a\n", "distinct column names; got 'x' more than once"),
    "missing label": ("a.csv", b"x,label\n1,a\n2,\n", "a label in each row; got 1 missing in column 'label'"),
    "no gzip": ("a.csv.gz", b"x,label\n1,a\n", "is not a gzip file, although its name says so"),
    "no bz2": ("a.csv.bz2", b"x,label\n1,a\n", "is not a bz2 file"),
    "no parquet": ("a.parquet", b"x,label\n1,a\n", "is not a parquet file, although its name says so"),
    "format": ("a.xls", b"1", "'a.xls' must end in one of .csv"),
    "no workbook": ("a.xlsx", b"x,label\n1,a\n", "is not an Excel workbook, although its name says so"),
    "binary": ("a.csv", b"x,label\n1,caf\xe9\n2,\x00\n", "line 2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
    "no ending": ("a", b"1", "'a' must end in one of"),
    "only packed": ("a.gz", b"1", "'a.gz' must end in one of"),
    "packed parquet": ("a.parquet.gz", b"1", "must be decompressed first"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_explained(tmp_path, case):
    name, content, message = BAD[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / name, target="label")
    with pytest.raises(DataError, match=message):
        list(data.iter_batches(tmp_path / name, target="label"))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.csv.zst"])
def test_a_truncated_archive(tmp_path, name):
    rows = np.random.default_rng(0).integers(0, 10**9, 20_000)
    path = packed(tmp_path / name, "x,label\n" + "".join(f"{x},{x % 2}\n" for x in rows))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="ends in the middle"):
        read_table(path, target="label")
    with pytest.raises(DataError, match="ends in the middle"):
        list(data.iter_batches(path, target="label"))


def test_a_directory_and_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="is a directory; pass a file"):
        read_table(tmp_path)
    with pytest.raises(DataError, match=r"no\.csv does not exist"):
        read_table(tmp_path / "no.csv")


def test_a_truncated_parquet_and_nested_columns(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"x": [1, 2], "label": ["a", "b"], "list": [[1], [2]]}), path)
    with pytest.raises(DataError, match="column 'list' must contain numbers, text or dates; got list"):
        read_table(path, target="label")
    with pytest.raises(DataError, match="column 'label' must contain numbers; got 'a' in 2 rows"):
        read_table(path, columns=["label"], types={"label": "number"})
    pyarrow.parquet.write_table(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    with pytest.raises(DataError, match="has columns but no rows"):
        read_table(tmp_path / "none.parquet")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="is not a parquet file"):
        read_table(path)


def test_parquet_files_with_other_types_are_named(tmp_path):
    for name, values in (("a", [1.0, 2.0]), ("b", [1, 2]), ("c", ["1", "2"])):
        pyarrow.parquet.write_table(pa.table({"x": values, "label": [0, 1]}), tmp_path / f"{name}.parquet")
    a, b, c = (tmp_path / f"{name}.parquet" for name in "abc")
    assert read_table([a, b], target="label").X["x"].tolist() == [1.0, 2.0, 1.0, 2.0]
    with pytest.raises(DataError, match=r"c.parquet must have the types of those of .*a.parquet; .*x has incompatible"):
        read_table([a, b, c], target="label")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"1 0:1\n", {}, r"has a feature index 0; pass reading=Reading\(zero_based=True\)"),
        (b"1 1:1\n0 5:1\n", {"n_features": 3}, "more than the requested 3 features"),
        (b"1 1:1\n0 x\n", {}, "line 2: must be 'label index:value ...'; got '0 x'"),
        (b"# nothing\n", {}, "has no rows"),
        (b"1 1:1\n", {"target": "label"}, "stores its labels itself"),
    ],
)
def test_bad_svmlight_files(tmp_path, content, options, message):
    (tmp_path / "a.svm").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "a.svm", **options)
    with pytest.raises(DataError, match=message):
        list(data.iter_batches(tmp_path / "a.svm", **options))


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = packed(tmp_path / "a.csv", MIXED)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'rocmax\[data\]'"):
        read_table(path)
