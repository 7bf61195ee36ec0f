"""Plan of the columns: identifiers, odd values in columns of numbers, dates, declared columns, several files."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from helpers.model_files import unpacked
from helpers.table_twins import calls, churn, passengers
from rocmax.data import DataError
from rocmax.data.read import TableSource
from rocmax.tables import (
    Columns,
    ParameterError,
    Reading,
    Running,
    compare_models,
    evaluate,
    fit_table,
    load_model,
    plan_columns,
    predict,
    write_report,
)
from rocmax.tables.columns import identifying_numbers, identifying_text

RNG = np.random.default_rng(0)
QUICK = {"model": "logistic", "tune": False}


def column(name, table, **options):
    return next(entry for entry in plan_columns(table, target="label", **options) if entry.name == name)


def with_column(values, n_rows=400):
    rng = np.random.default_rng(1)
    return pd.DataFrame({"x": values, "z": rng.normal(size=n_rows), "label": rng.integers(0, 2, n_rows)})


def text_numbers(odd, n_rows=400):
    values = pd.Series(np.random.default_rng(2).normal(size=n_rows).round(3)).astype(str).astype(object)
    for place, value in odd.items():
        values[place] = value
    return with_column(values, n_rows)


@pytest.mark.parametrize(
    ("odd", "found", "python"),
    [
        ({7: "oops"}, "399 numbers, and 'oops' in 1 row (first in line 9)", "reading=Reading(na=['oops'])"),
        (
            dict.fromkeys(range(200), "?"),
            "200 numbers, and '?' in 200 rows (first in line 2)",
            "reading=Reading(na=['?'])",
        ),
        (dict.fromkeys(range(400), "12.3%"), "'12.3%' in 400 rows (first in line 2)", "columns=Columns(number=['x'])"),
        (dict.fromkeys(range(300), "0,53"), "'0,53' in 300 rows (first in line 2)", "reading=Reading(decimal=',')"),
        (dict.fromkeys(range(300), "1,234.5"), "'1,234.5' in 300 rows", "reading=Reading(thousands=',')"),
        (dict.fromkeys(range(400), "1.234,5"), "'1.234,5' in 400 rows", "reading=Reading(thousands='.', decimal=',')"),
        ({i: f"bad{i}" for i in range(12)}, "and 9 other values", "correct them in the table"),
    ],
)  # fmt: skip
def test_odd_values_are_named_with_their_line_and_what_to_pass(tmp_path, odd, found, python):
    path = tmp_path / "a.csv"
    text_numbers(odd).to_csv(path, index=False)
    with pytest.raises(DataError, match="columns of numbers with other values") as caught:
        plan_columns(path, target="label")
    assert found in str(caught.value)
    assert str(caught.value).startswith(f"{path} has columns")
    assert python in str(caught.value)
    assert "columns=Columns(text=['x']); to leave them out: columns=Columns(drop=['x'])" in str(caught.value)


@pytest.mark.parametrize(
    ("odd", "options", "value"),
    [
        ({7: "oops"}, {"reading": Reading(na="oops")}, None),
        ({7: " ? "}, {"reading": Reading(na=["?"])}, None),
        ({7: "   "}, {}, None),
        ({7: "12.3%"}, {"columns": Columns(number="x")}, 12.3),
        ({7: "1,234.5"}, {"reading": Reading(thousands=",")}, 1234.5),
        ({7: "-999"}, {"reading": Reading(na="-999")}, None),
    ],
)
@pytest.mark.parametrize("form", ["file", "frame"])
def test_what_was_advised_is_enough(tmp_path, odd, options, value, form):
    table = text_numbers(odd)
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False)
    source = path if form == "file" else table
    model = fit_table(source, target="label", **QUICK, **options)
    assert model.facts.features == {"x": "number", "z": "number"}
    entry = next(column for column in model.facts.columns if column.name == "x")
    assert entry.missing == (value is None)
    # Later tables are read in the same way, without options, in files and frames.
    scores = predict(model, source)["score"]
    number = pd.to_numeric(table["x"].astype(str).str.strip(), errors="coerce").where(lambda x: x != -999)
    number[7] = np.nan if value is None else value
    expected = predict(model, table.assign(x=number))["score"]
    np.testing.assert_allclose(scores, expected)
    assert evaluate(model, source).measures["roc_auc"]["value"] > 0


def test_decimal_commas_and_encodings(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"größe": rng.normal(size=200), "stadt": rng.choice(["Köln", "Bonn"], 200), "label": rng.integers(0, 2, 200)}
    )
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False, sep=";", decimal=",", encoding="latin-1")
    options = {"reading": Reading(delimiter=";", decimal=",", encoding="latin-1")}
    model = fit_table(path, target="label", **QUICK, **options)
    assert model.facts.features == {"größe": "number", "stadt": "text"}
    np.testing.assert_allclose(
        predict(model, path, reading=Reading(delimiter=";"))["score"], predict(model, table)["score"]
    )
    with pytest.raises(DataError, match=r"line 1: byte 0xf6 is not UTF-8; .* reading=Reading\(encoding=\.\.\.\)"):
        fit_table(path, target="label", reading=Reading(encoding="utf-8"))


def test_categories_that_look_like_missing_values_get_a_note():
    table = with_column(RNG.choice(["a", "b", "?"], 400))
    model = fit_table(table, target="label", **QUICK)
    assert "'?' is used as a category of 'x'; to read it as missing: reading=Reading(na=['?'])" in model.notes
    assert column("x", table, reading=Reading(na="?")).missing > 0


DRAW = np.random.default_rng(0)
SEVERAL = {
    "in order": (np.arange(100), "row numbers"),
    "backwards": (np.arange(100)[::-1] + 7, "row numbers"),
    "shuffled": (DRAW.permutation(100), "issued one by one"),
    "some of them": (DRAW.choice(150, 100, replace=False), "issued one by one"),
    "with a gap": (np.append(np.arange(99.0), np.nan), "issued one by one"),
    "hospital numbers": (530_000 + DRAW.choice(9_000, 300), "close to each other"),
    "long numbers": (10**17 + 7 * DRAW.integers(0, 10**6, 300), "more than 15 digits"),
    "amounts": (DRAW.lognormal(8, 1, 300).round(), None),
    "ages": (DRAW.integers(18, 90, 300), None),
    "few rows": (np.arange(20), None),
    "fractions": (np.arange(100) + 0.5, None),
    "infinite": (np.full(100, np.inf), None),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_numbers_that_identify_rows(name):
    values, expected = SEVERAL[name]
    found = identifying_numbers("x", np.asarray(values, dtype=float))
    assert (found is None) == (expected is None)
    assert expected is None or expected in found


def test_the_name_of_an_identifier():
    values = np.random.default_rng(0).choice(10**9, 500)
    assert identifying_numbers("amount", values.astype(float)) is None
    for name in ("id", "customer_id", "customerId", "ID", "Unnamed: 0", "order key"):
        assert identifying_numbers(name, values.astype(float)) is not None
    assert identifying_numbers("paid", values.astype(float)) is None
    assert identifying_text(1000, 501) is not None
    assert identifying_text(1000, 499) is None
    assert identifying_text(30, 20) is None


def customers(n_rows=2_000, n_customers=200):
    """Rows of customers, with quantities that have as few rows for each value."""
    rng = np.random.default_rng(0)
    who = rng.integers(0, n_customers, n_rows)
    return pd.DataFrame(
        {
            "amount": rng.lognormal(4, 1, n_rows).round(),
            "age": rng.integers(18, 90, n_rows),
            "zip": rng.integers(10_000, 10_400, n_rows),
            "price_index": rng.integers(50, 250, n_rows),
            "customers": rng.integers(0, 300, n_rows),
            "accounts_paid": rng.integers(0, 100, n_rows),
            "city_id": [f"town {i % 100}" for i in who],
            "label": rng.integers(0, 2, n_rows),
        }
    ).assign(who=who)


@pytest.mark.parametrize("name", ["customer_id", "customerId", "CustomerID", "user", "account number", "cust_no", "id"])
@pytest.mark.parametrize("text", [False, True])
def test_a_number_of_a_customer_that_repeats_is_not_a_quantity(name, text):
    if text and name in ("user", "id"):
        pytest.skip("text is never used as a quantity; it needs the name of a person or thing")
    table = customers()
    values = 1_000 + 7 * table.pop("who")
    table[name] = "C" + values.astype(str) if text else values
    heard = []
    model = fit_table(table, target="label", model="linear", tune=False, running=Running(notify=heard.append))
    left_out = {column.name: column.kind for column in model.facts.columns if not column.used}
    assert left_out == {name: "identifier"}
    (note,) = (note for note in heard if "left out" in note)
    assert note == (
        f"'{name}' is left out (identifier): 200 different values, 10 rows each, and the name of an identifier; "
        f"to keep the rows of a value together: group={name!r}; to use it: columns=Columns(text=[{name!r}])"
    )
    # Each of the proposals works.
    assert fit_table(table, target="label", model="linear", tune=False, group=name).facts.columns[-1].kind == "group"
    used = plan_columns(table, target="label", columns=Columns(text=name))
    assert {column.name: column.kind for column in used}[name] == "category"


def test_a_code_with_many_rows_each_is_not_an_identifier():
    table = customers(n_customers=30).rename(columns={"who": "customer_id"})
    plan = {column.name: column for column in plan_columns(table, target="label")}
    assert (plan["customer_id"].kind, plan["customer_id"].used) == ("number", True)


def test_identifiers_can_be_used_if_they_are_declared():
    table = with_column(np.arange(400))
    assert not column("x", table).used
    assert column("x", table, columns=Columns(number="x")).used
    named = with_column([f"c{i}" for i in range(400)])
    assert not column("x", named).used
    assert column("x", named, columns=Columns(text="x")).used


def test_free_text_constants_and_columns_without_values():
    words = [" ".join(f"w{i * 7 % 31}{j}" for j in range(8)) + str(i) for i in range(400)]
    assert column("x", with_column(words)).kind == "text"
    assert column("x", with_column(np.ones(400))).reason == "one value only"
    assert column("x", with_column(["a"] * 400)).reason == "one value only"
    assert column("x", with_column([None] * 400)).reason == "no values"
    with pytest.raises(DataError, match="no usable column"):
        plan_columns(with_column(np.ones(400)).drop(columns="z"), target="label")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": Columns(text="x", drop="x")}, "text and drop must be different columns; got 'x' for both"),
        ({"columns": Columns(drop="label")}, "target and drop must be different columns"),
        ({"group": "label"}, "group must be another column than target"),
        ({"reading": Reading(decimal=";")}, r"decimal must be '\.' or ','; got ';'"),
        ({"reading": Reading(thousands=".")}, r"thousands and decimal must differ; got '\.' for both"),
        ({"reading": Reading(thousands="ab")}, "thousands must be one character"),
        ({"reading": Reading(encoding="klingon")}, "encoding must be the name of a text encoding, .*; got 'klingon'"),
        ({"reading": Reading(na=3)}, "na must be text|not iterable"),
    ],
)
def test_bad_declarations(options, message):
    with pytest.raises((ParameterError, TypeError), match=message):
        plan_columns(with_column(np.arange(400)), target="label", **options)
    with pytest.raises(DataError, match="has no column 'nope'"):
        plan_columns(with_column(np.arange(400)), target="label", columns=Columns(text="nope"))


DATES = {
    "day first": ("%d/%m/%Y", True),
    "month first": ("%m/%d/%Y", False),
    "dots": ("%d.%m.%Y %H:%M", True),
    "iso": ("%Y-%m-%d", None),
    "iso with time": ("%Y-%m-%d %H:%M:%S", None),
}


@pytest.mark.parametrize("form", DATES)
def test_dates_become_numbers(tmp_path, form):
    written, day_first = DATES[form]
    days = pd.Series(pd.date_range("2023-01-05 07:00", periods=400, freq="29h"))
    table = with_column(days.dt.strftime(written))
    table.to_csv(tmp_path / "a.csv", index=False)
    left_out = column("x", tmp_path / "a.csv")
    assert (left_out.kind, left_out.used) == ("date", False)
    model = fit_table(tmp_path / "a.csv", target="label", columns=Columns(date="x"), **QUICK)
    parts = ["x year", "x month", "x weekday", "x age in days"]
    parts += ["x hour"] if "%H" in written else []
    assert set(model.facts.features) == {*parts, "z"}
    assert model.facts.dates["x"].day_first is (None if form.startswith("iso") else day_first)
    by_file = predict(model, tmp_path / "a.csv")["score"]
    np.testing.assert_allclose(predict(model, table)["score"], by_file)
    shown = days.dt.floor("min" if "%H" in written else "D")
    np.testing.assert_allclose(predict(model, table.assign(x=shown))["score"], by_file)


def test_dates_that_cannot_be_used(tmp_path):
    doubtful = with_column(["03/04/2024", "05/06/2023"] * 200)
    with pytest.raises(DataError, match="the day or the month may come first"):
        fit_table(doubtful, target="label", columns=Columns(date="x"), **QUICK)
    with pytest.raises(
        DataError, match=r"column 'x' must contain dates; got 'never'; .*reading=Reading\(na=\['never'\]\)"
    ):
        fit_table(with_column(["2024-01-02", "never"] * 200), target="label", columns=Columns(date="x"), **QUICK)
    with pytest.raises(DataError, match="'x year'; rename"):
        fit_table(
            with_column(pd.date_range("2020", periods=400, freq="7D")).assign(**{"x year": RNG.normal(size=400)}),
            target="label", columns=Columns(date="x"), **QUICK,
        )  # fmt: skip


def test_rows_without_a_label():
    table = with_column(RNG.normal(size=400)).astype({"label": object})
    table.loc[[3, 5], "label"] = None
    with pytest.raises(DataError, match=r"got 2 missing in column 'label'; .*: reading=Reading\(skip_unlabeled=True\)"):
        fit_table(table, target="label", **QUICK)
    model = fit_table(table, target="label", reading=Reading(skip_unlabeled=True), **QUICK)
    assert sum(model.facts.rows.values()) == 398
    assert "2 rows without a label are left out" in model.notes


def test_several_files_are_one_table(tmp_path):
    table = with_column(RNG.choice(["1", "2", "b"], 400))
    table.loc[:199, "x"] = "1"  # a column of numbers in the first file alone
    for i in range(2):
        table.iloc[200 * i : 200 * (i + 1)].to_csv(tmp_path / f"part-{i}.csv", index=False)
    table.to_csv(tmp_path / "all.csv", index=False)
    whole = fit_table(tmp_path / "all.csv", target="label", **QUICK)
    for several in (tmp_path / "part-*.csv", [tmp_path / "part-0.csv", str(tmp_path / "part-1.csv")]):
        model = fit_table(several, target="label", **QUICK)
        assert model.facts.features == {"x": "text", "z": "number"}
        assert model.held_out == whole.held_out
        np.testing.assert_array_equal(predict(model, several), predict(whole, tmp_path / "all.csv"))
        assert evaluate(model, several).rows == evaluate(whole, tmp_path / "all.csv").rows
    with pytest.raises(DataError, match="no file matches"):
        TableSource(tmp_path / "none-*.csv")
    table.drop(columns="z").to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(DataError, match=r"other.csv must have the columns of .*all.csv; got no column 'z'"):
        TableSource([tmp_path / "all.csv", tmp_path / "other.csv"])
    with pytest.raises(TypeError, match="got none"):
        TableSource([])


def test_an_open_file_is_a_table():
    content = with_column(RNG.normal(size=400)).to_csv(index=False).encode()
    model = fit_table(io.BytesIO(content), target="label", **QUICK)
    assert len(predict(model, io.BytesIO(content))) == 400
    with pytest.raises(DataError, match="standard input is empty"):
        TableSource(io.BytesIO(b""))


@pytest.mark.parametrize("model", ["logistic", "lightgbm", "additive"])
@pytest.mark.parametrize("declared", [False, True])
def test_no_file_contains_an_identifier(tmp_path, model, declared):
    """Search the bytes of all files for identifiers, even if the user declares them to be categories."""
    table = passengers().merge(churn()[["customerID"]], left_index=True, right_index=True)
    rng = np.random.default_rng(0)
    table["visitor"] = [f"visitor-{i:05d}" for i in rng.permutation(len(table)) // 3]  # three rows each
    options = (
        {"columns": Columns(text=["customerID", "name", "ticket", "cabin"])}
        if declared
        else {"columns": Columns(id="customerID")}
    )
    fitted = fit_table(table, target="survived", model=model, tune=False, **options)
    fitted.save(tmp_path / "model.rocmax")
    write_report(fitted, table, tmp_path / "report.html")
    names = ["model.rocmax", "report.html"]
    if model != "additive":
        from rocmax.tables.onnx import export_file

        export_file(tmp_path / "model.rocmax", tmp_path / "model.onnx")
        names.append("model.onnx")
    content = b"".join(unpacked(tmp_path / name) for name in names)
    secrets = [*table["customerID"], *table["name"], *table["ticket"], *table["visitor"], *table["cabin"].dropna()]
    counts = table["ticket"].value_counts()
    common = set(counts.index[counts >= 5]) if declared else set()
    long_enough = {secret for secret in secrets if len(secret) >= 6} - common
    assert len(long_enough) > 600
    assert [secret for secret in long_enough if secret.encode() in content] == []


def test_identifiers_are_carried_to_the_output(tmp_path):
    table = churn()
    table.to_csv(tmp_path / "a.csv", index=False)
    model = fit_table(tmp_path / "a.csv", target="churn", columns=Columns(id="customerID"), **QUICK)
    model.save(tmp_path / "m.rocmax")
    found = predict(load_model(tmp_path / "m.rocmax"), tmp_path / "a.csv")
    assert found.columns.tolist() == ["customerID", "score", "label"]
    assert found["customerID"].tolist() == table["customerID"].tolist()
    assert "customerID" not in predict(model, table.drop(columns="customerID"))


def test_a_comparison_has_the_same_plan():
    found = compare_models(
        calls(), models=["logistic"], target="term deposit", n_splits=6, tune=False, columns=Columns(drop="month")
    )
    left_out = {column.name: column.reason for column in found.columns if not column.used}
    assert left_out == {"called": "dates are used only if they are declared", "month": "dropped"}
    assert any(
        "'called' is left out (date)" in note and "columns=Columns(date=['called'])" in note for note in found.notes
    )
