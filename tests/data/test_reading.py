"""What is found out about a file: delimiter and encoding of text, and the sheet of a workbook."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

from rocmax import AUCClassifier
from rocmax.data import DataError, Reading, RowStore, read_columns, read_table
from rocmax.data.read import TableSource

openpyxl = pytest.importorskip("openpyxl")

ROWS = [["x", "city", "label"], ["1.5", "Köln", "ok"], ["2", "Bonn", "no"], ["", "Aix", "ok"]]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252"])
def test_the_delimiter_and_the_encoding_are_detected(tmp_path, name, mark, encoding):
    path = tmp_path / name
    path.write_bytes("".join(mark.join(row) + "\n" for row in ROWS).encode(encoding))
    source = TableSource(path)
    X, y = source.read(target="label")
    assert X["city"].tolist() == ["Köln", "Bonn", "Aix"]
    np.testing.assert_array_equal(X["x"], [1.5, 2.0, np.nan])
    assert y.tolist() == ["ok", "no", "ok"]
    western = encoding in ("latin-1", "cp1252")
    assert (source.reading.delimiter, source.reading.encoding) == (mark, "cp1252" if western else "utf-8")
    usual = "\t" if name == "a.tsv" else ","
    said = " ".join(source.notes)
    assert (f"the delimiter {mark!r}" in said) == (mark != usual)
    assert ("the encoding cp1252" in said) == western


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("a;b;c\n1,5;2,5;x\n2,5;3;y\n", ["a", "b", "c"]),  # decimal commas
        ("price, net;price, gross;label\n1,5;2,5;x\n", ["price, net", "price, gross", "label"]),
        ("a,b\n1,x;y;z\n2,u;v;w\n", ["a", "b"]),  # lists in a field
        ('"a|b",c\n1,2\n', ["a|b", "c"]),
        ('a,b\n"1\n2",3\n4,5\n', ["a", "b"]),  # a line break in a field
        ("a;b\n1;2\n3;4;5\n", ["a", "b"]),  # a row that is too long, which the reader names
        ("only\n1\n2\n", ["only"]),
        ("\n\na;b\n1;2\n", ["a", "b"]),
    ],
)
def test_rows_decide_between_delimiters(tmp_path, content, names):
    (tmp_path / "a.csv").write_text(content)
    assert read_columns(tmp_path / "a.csv") == names


def test_what_is_given_wins_over_what_is_detected(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("a;b,c\nK\u00f6ln;1,2\n".encode("utf-8"))
    assert read_columns(path, Reading(delimiter=",")) == ["a;b", "c"]
    X = read_table(path, reading=Reading(delimiter=";", encoding="latin-1")).X
    assert X["a"].tolist() == ["K\u00c3\u00b6ln"]
    with pytest.raises(DataError, match=r"one column, 'a;b,c', if the delimiter is '\|'; is it ','\?"):
        read_columns(path, Reading(delimiter="|"))


def test_a_likely_form_counts_unless_the_file_shows_another(tmp_path):
    likely = Reading(delimiter=";", encoding="cp1250")
    path = tmp_path / "a.csv"
    path.write_bytes(b"a;b,c\n1;2,3\n")  # both marks are possible
    assert TableSource(path, likely=likely).columns == ["a", "b,c"]
    path.write_bytes("a;b\nŁódź;1\n".encode("cp1250"))
    source = TableSource(path, likely=likely)
    assert source.read().X["a"].tolist() == ["Łódź"]
    assert source.notes == []
    path.write_bytes(b"a;b\nx;1\n")
    assert TableSource(path, likely=Reading(encoding="utf-16")).columns == ["a", "b"]
    with pytest.raises(ValueError, match="delimiter must be one character; got ';;'"):
        TableSource(path, likely=Reading(delimiter=";;"))
    path.write_bytes("a,b\nŁódź,1\n".encode())
    source = TableSource(path, likely=likely)
    assert source.read().X["a"].tolist() == ["Łódź"]
    assert "the delimiter ',' and the encoding utf-8" in source.notes[0]


def test_a_letter_after_the_first_block_is_an_error_that_names_the_option(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + b"x,1\n" * (1 << 20) + b"caf\xe9,1\n")
    with pytest.raises(DataError, match=r"line 1048578: byte 0xe9 is not UTF-8; .* reading=Reading\(encoding=\.\.\.\)"):
        read_table(path)
    assert read_table(path, reading=Reading(encoding="latin-1")).X["a"].iloc[-1] == "café"


def test_files_of_one_table_may_be_written_in_different_ways(tmp_path):
    (tmp_path / "a.csv").write_bytes("x;city\n1;Köln\n".encode())
    (tmp_path / "b.csv").write_bytes("x,city\n2,Köln\n".encode("latin-1"))
    X = TableSource([tmp_path / "a.csv", tmp_path / "b.csv"]).read().X
    assert X.to_dict("list") == {"x": [1.0, 2.0], "city": ["Köln", "Köln"]}
    store = RowStore.from_files([tmp_path / "a.csv", tmp_path / "b.csv"], target="city", columns=["x"])
    assert store.shape == (2, 1)
    store.close()


def test_a_row_store_takes_the_encoding_that_its_error_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,city\n" + b"1.0,Bonn\n" * (1 << 19) + b"2.0,K\xf6ln\n")
    with pytest.raises(DataError, match=r"byte 0xf6 is not UTF-8; .* reading=Reading\(encoding=\.\.\.\)"):
        RowStore.from_files(path, target="city")
    with RowStore.from_files(path, target="city", reading=Reading(encoding="latin-1")) as store:
        assert store.shape == ((1 << 19) + 1, 1)
    path.write_bytes(b"x,city\n" + b"1,Bonn\n2,K\xf6ln\n" * 20)
    model = AUCClassifier(pos_label="Köln").fit_files(path, target="city", reading=Reading(encoding="latin-1"))
    assert model.classes_.tolist() == ["Bonn", "Köln"]


def workbook(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


MIXED = [
    ["amount", "city", "paid", "when", "code", "label"],
    [1.5, "Köln", True, datetime.datetime(2024, 1, 5), "007", "ok"],
    [],
    [None, "Aix,\nSud", False, datetime.datetime(2024, 2, 1, 10, 30), "010", "fraud"],
    [3, None, None, None, "011", "ok"],
]


def test_a_sheet_equals_the_csv_file_of_the_same_values(tmp_path):
    path = workbook(tmp_path / "a.xlsx", data=MIXED, empty=[])
    rows = 'amount,city,paid,when,code,label\n1.5,Köln,true,2024-01-05 00:00:00,007,ok\n\n,"Aix,\nSud",false,'
    (tmp_path / "a.csv").write_text(rows + "2024-02-01 10:30:00,010,fraud\n3,,,,011,ok\n")
    source = TableSource(path)
    assert source.reading.sheet == "data"
    assert source.zero_led(["amount", "code"]) == ["code"]
    assert source.places("amount", ["3"]) == {"3": f"{path}, row 5"}
    found, expected = source.read(target="label"), read_table(tmp_path / "a.csv", target="label")
    pd.testing.assert_frame_equal(found.X, expected.X)
    assert found.y.tolist() == expected.y.tolist()
    # Numbers are numbers with a decimal comma too, which text in cells may have.
    X = read_table(workbook(tmp_path / "b.xlsx", data=[["x"], [1.5], ["2,5"]]), reading=Reading(decimal=",")).X
    assert X["x"].tolist() == [1.5, 2.5]


def test_the_sheet_is_named_if_there_are_several(tmp_path):
    path = workbook(tmp_path / "a.xlsx", first=[["a"], [1]], second=[["b"], [2]])
    with pytest.raises(
        DataError, match=r"2 sheets, 'first', 'second'; pass the one to read: reading=Reading\(sheet=\.\.\.\)"
    ):
        read_columns(path)
    assert read_columns(path, Reading(sheet="second")) == ["b"]
    assert TableSource(path, likely=Reading(sheet="second")).columns == ["b"]
    with pytest.raises(DataError, match="no sheet 'third'; its sheets are 'first', 'second'"):
        read_columns(path, Reading(sheet="third"))
    single = workbook(tmp_path / "b.xlsx", other=[["c"], [3]])
    assert TableSource(single, likely=Reading(sheet="second")).columns == ["c"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "none of its sheets has values"),
        ([["a", "a"], [1, 2]], "distinct column names; got 'a' more than once"),
        ([["a"], [1, 7]], "row 2: the value '7' is to the right of the header"),
        ([["a"], ["=1+1"]], "cell A2: the value of its formula is not in the file; open the workbook"),
        ([["a"]], "has a header but no rows"),
    ],
)
def test_a_sheet_that_cannot_be_used_is_explained(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        read_table(workbook(tmp_path / "a.xlsx", data=rows))


def test_a_workbook_has_a_limit_and_needs_its_extra(tmp_path, monkeypatch):
    path = workbook(tmp_path / "a.xlsx", data=[["a", None, "b"], [1, None, 2]])
    assert read_columns(path) == ["a", "unnamed: 1", "b"]
    with pytest.raises(DataError, match=r"limit of 100 bytes decompressed; .*max_bytes=\.\.\."):
        read_table(path, reading=Reading(max_bytes=100))
    content = path.read_bytes()
    (tmp_path / "b.xlsx").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="is not an Excel workbook"):
        read_columns(tmp_path / "b.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"reading .xlsx files needs openpyxl: pip install 'rocmax\[excel\]'"):
        read_columns(path)


def test_damaged_workbooks_are_data_errors(tmp_path):
    content = workbook(tmp_path / "a.xlsx", data=[["x", "label"], *([i, "ok"] for i in range(20))]).read_bytes()
    rng, path, refused = np.random.default_rng(0), tmp_path / "b.xlsx", 0
    for _ in range(60):
        changed = bytearray(content)
        place = int(rng.integers(len(changed)))
        changed[place : place + int(rng.integers(1, 30))] = rng.bytes(int(rng.integers(0, 30)))
        path.write_bytes(bytes(changed))
        try:
            read_table(path, target="label")
        except DataError:
            refused += 1
    assert refused > 30


@pytest.mark.parametrize(
    ("text", "options", "number"),
    [
        ("1.234.567,5", {"decimal": ",", "thousands": "."}, 1234567.5),
        ("12,34,567", {"thousands": ","}, 1234567.0),
        ("1 234", {"thousands": " "}, 1234.0),
        ("1234,5", {"decimal": ",", "thousands": "."}, 1234.5),
        ("14.08.2024", {"decimal": ",", "thousands": "."}, None),
        ("1.5", {"decimal": ",", "thousands": "."}, None),
        ("1.5", {"decimal": ","}, None),
        ("1,5", {"thousands": ","}, None),
    ],
)
def test_a_thousands_separator_stands_between_groups_of_digits(text, options, number):
    frame = pd.DataFrame({"x": [text, "7"]})
    if number is None:
        with pytest.raises(DataError, match=f"must contain numbers; got '{text}'"):
            TableSource(frame, Reading(**options)).read(types={"x": "number"})
    else:
        assert TableSource(frame, Reading(**options)).read(types={"x": "number"}).X["x"].tolist() == [number, 7.0]
