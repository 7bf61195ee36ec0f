"""Dates in text: the order of day and month is decided once for a column, and never guessed value by value."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmax.data import DataError
from rocmax.tables import Columns, Reading, evaluate, fit_table, load_model, plan_columns, predict, write_report
from rocmax.tables.read import Schema, read_training

QUICK = {"model": "logistic", "tune": False}
# How a date is written; the order of day and month in dates that end with the year, if any.
FORMS = {
    "%Y-%m-%d": None,
    "%Y/%m/%d": None,
    "%Y.%m.%d": None,
    "%Y%m%d": None,
    "%Y-%m-%dT%H:%M:%S": None,
    "%d %b %Y": None,
    "%B %d, %Y": None,
    "%d/%m/%Y": True,
    "%d.%m.%Y": True,
    "%d-%m-%Y": True,
    "%d/%m/%Y %H:%M": True,
    "%m/%d/%Y": False,
    "%m-%d-%Y": False,
    "%m/%d/%Y %H:%M": False,
}


def table_of(texts, name="when"):
    rng = np.random.default_rng(0)
    label = np.arange(len(texts)) % 2
    return pd.DataFrame({name: texts, "z": rng.normal(size=len(texts)), "label": label})


def written(days, form):
    return [day.strftime(form) for day in days]


def some_days(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    return [datetime.date(2019, 1, 1) + datetime.timedelta(int(i)) for i in rng.integers(0, 2000, n_rows)]


def test_a_table_with_iso_dates_gets_the_scores_of_the_same_dates_with_the_day_first(tmp_path):
    days = some_days()
    early = np.array([day.day <= 12 for day in days])
    assert early.sum() > 100
    for form in ("%d/%m/%Y", "%m/%d/%Y"):
        table_of(written(days, form)).to_csv(tmp_path / "a.csv", index=False)
        table_of(written(days, "%Y-%m-%d")).to_csv(tmp_path / "b.csv", index=False)
        model = fit_table(tmp_path / "a.csv", target="label", columns=Columns(date="when"), **QUICK)
        first, second = (predict(model, tmp_path / name) for name in ("a.csv", "b.csv"))
        pd.testing.assert_frame_equal(first, second)
        pd.testing.assert_frame_equal(first, predict(model, table_of(pd.to_datetime(pd.Series(days)))))


dates = st.dates(datetime.date(1950, 1, 1), datetime.date(2070, 12, 31))


@settings(max_examples=40)
@given(
    st.lists(dates, min_size=12, max_size=20),
    st.lists(dates, min_size=1, max_size=8),
    st.sampled_from(sorted(FORMS)),
    st.sampled_from(sorted(FORMS)),
)
def test_every_pair_of_forms_gives_the_true_dates_or_a_refusal(training_days, days, form, other):
    order, later_order = FORMS[form], FORMS[other]
    table = table_of(written(training_days, form))
    if order is not None and form != "%d.%m.%Y" and all(day.day <= 12 for day in training_days):
        with pytest.raises(DataError, match="the day or the month may come first"):
            read_training(table, Columns(target="label", date="when"))
        return
    training = read_training(table, Columns(target="label", date="when"))
    assert training.schema.dates["when"].day_first is order
    source = training.schema.open(table_of(written(days, other)), Reading())
    columns = source.read(**training.schema.read_options("the model", source)).X
    if later_order not in (None, order):
        if order is None or any(day.day > 12 for day in days):
            with pytest.raises(DataError, match="column 'when' must have dates"):
                training.schema.features_of(columns, source)
        return  # nothing but early days in the other order, which their values cannot show
    X = training.schema.features_of(columns, source)
    latest = max(training_days)
    truth = {
        "when year": [day.year for day in days],
        "when month": [day.month for day in days],
        "when weekday": [day.weekday() for day in days],
        "when age in days": [(latest - day).days for day in days],
    }
    for name in truth.keys() & set(X.columns):
        np.testing.assert_array_equal(X[name], truth[name])


def test_a_column_with_both_orders_is_refused_with_lines_and_values(tmp_path):
    texts = written(some_days(60), "%d/%m/%Y")
    texts[:3] = ["01/02/2020", "14/08/2020", "08/15/2020"]
    table_of(texts).to_csv(tmp_path / "a.csv", index=False)
    message = r"'14/08/2020' in .*a.csv, line 3, with the day first, and '08/15/2020' in .*a.csv, line 4, with"
    with pytest.raises(DataError, match=message):
        fit_table(tmp_path / "a.csv", target="label", columns=Columns(date="when"), **QUICK)


@pytest.mark.parametrize("use", [predict, evaluate, write_report])
def test_a_later_table_with_the_other_order_is_refused_with_line_and_value(tmp_path, use):
    model = fit_table(table_of(written(some_days(), "%d/%m/%Y")), target="label", columns=Columns(date="when"), **QUICK)
    assert model.facts.dates["when"].day_first is True
    path = tmp_path / "b.csv"
    table_of(["2024-01-02", "03/04/2024", *["08/14/2024"] * 10]).to_csv(path, index=False)
    message = r"must have dates with the day first; got '08/14/2024' in .*b.csv, line 4, with the month first"
    with pytest.raises(DataError, match=message):
        use(model, path, *([tmp_path / "r.html"] if use is write_report else []))


def test_a_stated_order_wins_over_the_one_of_the_model(tmp_path):
    days = some_days()
    model = fit_table(table_of(written(days, "%d/%m/%Y")), target="label", columns=Columns(date="when"), **QUICK)
    american = table_of(written(days, "%m/%d/%Y"))
    expected = predict(model, table_of(written(days, "%Y-%m-%d")))
    pd.testing.assert_frame_equal(predict(model, american, reading=Reading(day_first=False)), expected)
    iso = fit_table(table_of(written(days, "%Y-%m-%d")), target="label", columns=Columns(date="when"), **QUICK)
    with pytest.raises(
        DataError,
        match=r"begin with the year, .*: reading=Reading\(day_first=True\) or reading=Reading\(day_first=False\)",
    ):
        predict(iso, american)
    pd.testing.assert_frame_equal(
        predict(iso, american, reading=Reading(day_first=False)), predict(iso, table_of(written(days, "%Y-%m-%d")))
    )


def test_dates_that_fit_both_orders_need_a_word_or_dots(tmp_path):
    days = [day.replace(day=1 + day.day % 12) for day in some_days()]
    slashes = table_of(written(days, "%d/%m/%Y"))
    with pytest.raises(
        DataError,
        match=r"may come first; say which: reading=Reading\(day_first=True\) or reading=Reading\(day_first=False\)",
    ):
        fit_table(slashes, target="label", columns=Columns(date="when"), **QUICK)
    expected = table_of(pd.to_datetime(pd.Series(days)))
    for table, said in ((slashes, {"reading": Reading(day_first=True)}), (table_of(written(days, "%d.%m.%Y")), {})):
        model = fit_table(table, target="label", columns=Columns(date="when"), **QUICK, **said)
        model.save(tmp_path / "m.rocmax")
        again = load_model(tmp_path / "m.rocmax")
        assert again.facts.dates["when"].day_first is True
        pd.testing.assert_frame_equal(predict(again, table), predict(again, expected))
        noted = [note for note in model.notes if "the day is taken to be first" in note]
        assert len(noted) == (0 if said else 1)
    model = fit_table(slashes, target="label", columns=Columns(date="when"), reading=Reading(day_first=False), **QUICK)
    swapped = [day.replace(day=day.month, month=day.day) for day in days]
    pd.testing.assert_frame_equal(predict(model, slashes), predict(model, table_of(pd.to_datetime(pd.Series(swapped)))))


def test_a_date_is_no_number_with_separators(tmp_path):
    days = [datetime.date(2024, 8, 14), datetime.date(2023, 1, 31), datetime.date(2022, 12, 3), *some_days(300)]
    table = table_of(written(days, "%d.%m.%Y"))
    table["amount"] = [f"{1 + i}.{7 * i % 1000:03d},5" for i in range(len(days))]
    table.to_csv(tmp_path / "a.csv", index=False, sep=";", decimal=",")
    options = {"reading": Reading(decimal=",", thousands=".")}
    kinds = {column.name: column.kind for column in plan_columns(tmp_path / "a.csv", target="label", **options)}
    assert kinds == {"when": "date", "z": "number", "amount": "number"}
    model = fit_table(tmp_path / "a.csv", target="label", columns=Columns(date="when"), **QUICK, **options)
    assert {"when year", "when month", "amount"} <= set(model.facts.features)
    truth = table.assign(
        when=pd.to_datetime(pd.Series(days)), amount=[1000 * (1 + i) + 7 * i % 1000 + 0.5 for i in range(len(days))]
    )
    np.testing.assert_allclose(predict(model, tmp_path / "a.csv")["score"], predict(model, truth)["score"])


@pytest.mark.parametrize("value", ["03/04/24", "Mon 03/04/2024", "31/02/2024", "2024-13-01", "never"])
def test_what_is_no_unambiguous_date_is_refused(tmp_path, value):
    table = table_of([*written(some_days(60), "%d/%m/%Y"), value])
    table.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match=rf"column 'when' must .* dates.*; got '{value}' in .*a.csv, line 62"):
        fit_table(tmp_path / "a.csv", target="label", columns=Columns(date="when"), **QUICK)


def test_a_number_is_no_date():
    model = fit_table(table_of(written(some_days(60), "%Y%m%d")), target="label", columns=Columns(date="when"), **QUICK)
    numbers = table_of([20240814.5] * 60)
    with pytest.raises(DataError, match=r"column 'when' must contain dates; got the number 20240814.5"):
        predict(model, numbers)
    with pytest.raises(DataError, match="column 'when' must contain dates; got the number"):
        fit_table(numbers, target="label", columns=Columns(date="when"), **QUICK)


def test_the_options_of_a_model_fill_in_what_is_not_given():
    reading = Reading(decimal=",", thousands=".", na=("?",), skip_unlabeled=True)
    schema = Schema(positive="1", negative="0", reading=reading, zero_based=True)
    found = schema.read_as(Reading(na="-"))
    assert (found.decimal, found.thousands, found.na) == (",", ".", ("?", "-"))
    assert (found.skip_unlabeled, found.zero_based) == (True, True)
    other = schema.read_as(Reading(decimal=".", skip_unlabeled=False, zero_based=False))
    assert (other.decimal, other.thousands, other.skip_unlabeled, other.zero_based) == (".", None, False, False)
