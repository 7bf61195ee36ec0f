"""Tables with a time: training, calibration and test rows follow each other, and so do folds and comparisons."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from rocmax.data import DataError
from rocmax.forward import Dependence
from rocmax.tables import (
    Columns,
    Limits,
    ParameterError,
    Reading,
    Running,
    compare_models,
    evaluate,
    fit_table,
    load_model,
    plan_columns,
    predict,
)
from rocmax.tables.options import check_limits
from rocmax.tables.tune import boosted_splits, tuning_splits

QUICK = {"target": "label", "positive": "fraud", "model": "logistic", "tune": False}
LIMIT = check_limits(Limits(max_fpr=0.1))


def payments(n=1200, seed=0, drift=0.0):
    """Payments of 120 days, in random order. With drift, what fraud looks like turns around."""
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 120, n)
    fraud = rng.random(n) < 0.3
    moved = fraud * (1.5 - drift * day / 120)
    return pd.DataFrame(
        {
            "when": (pd.Timestamp("2023-11-20") + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d"),
            "day": day,
            "a": rng.normal(size=n) + moved,
            "b": rng.normal(size=n),
            "customer": [f"c{i}" for i in rng.integers(0, 5000, n)],
            "label": np.where(fraud, "fraud", "ok"),
        }
    )


def parts_of(model, table, gap=0, groups=None):
    """Rows of training, calibration and test from the periods of a model, from their definitions."""
    day = table["day"].to_numpy()
    periods = model.facts.periods
    first, last = ({n: periods[n][end] for n in ("train", "calibration", "held out")} for end in ("first", "last"))
    days = {
        name: sorted(table.loc[table["when"] == value, "day"].iloc[0] for value in (first[name], last[name]))
        for name in first
    }
    test = np.flatnonzero(day >= days["held out"][0])
    calibration = (day >= days["calibration"][0]) & (day < days["held out"][0]) & (day + gap <= days["held out"][0])
    if groups is not None:
        calibration &= ~table[groups].isin(table[groups].iloc[test]).to_numpy()
    calibration = np.flatnonzero(calibration)
    train = (day < days["calibration"][0]) & (day + gap <= days["calibration"][0])
    if groups is not None:
        later = table[groups].iloc[np.concatenate([calibration, test])]
        train &= ~table[groups].isin(later).to_numpy()
    return np.flatnonzero(train), calibration, test


@pytest.mark.parametrize("group", [None, "customer"])
@pytest.mark.parametrize("gap", [0, 7])
def test_the_parts_follow_each_other_and_their_rows_are_counted(group, gap):
    table = payments()
    columns = Columns(time="when", gap=f"{gap}d" if gap else None, group=group, drop=("day", "customer"))
    model = fit_table(table, max_fpr=0.1, columns=columns, **QUICK)
    train, calibration, test = parts_of(model, table, gap, group)
    facts = model.facts
    assert facts.rows == {"train": train.size, "calibration": calibration.size, "held out": test.size}
    np.testing.assert_array_equal(model.held_out_rows, test)
    assert abs(test.size - 150) <= 10
    assert abs(calibration.size - 150) <= 10
    dropped = facts.periods["dropped"]
    assert sum(dropped.values()) == len(table) - train.size - calibration.size - test.size
    assert (dropped["gap"] > 0) == (gap > 0)
    assert (dropped["group"] > 0) == (group is not None)
    notes = [note for note in model.notes if "left out, as their" in note]
    reasons = {"gap": "labels were not known", "group": "groups have later rows"}
    expected = [f"{count} rows are left out, as their {reasons[key]}" for key, count in dropped.items() if count]
    assert [note.startswith(text) for note, text in zip(notes, expected, strict=True)] == [True] * len(expected)
    assert (facts.time, facts.gap) == ("when", columns.gap)


def test_the_threshold_comes_from_the_calibration_rows_and_its_rates_from_later_ones():
    table = payments(3000)
    columns = Columns(time="when", gap="3d", drop=("day", "customer"))
    model = fit_table(table, max_fpr=0.1, confidence=0.9, columns=columns, **QUICK)
    train, calibration, test = parts_of(model, table, 3)
    negative = (table["label"] == "ok").to_numpy()
    assert model.model.n_negatives_ == negative[calibration].sum()
    found = evaluate(model, table.iloc[test])
    assert model.facts.at_threshold == {key: found.threshold[key] for key in ("tpr", "fpr", "precision", "alerts")}
    # Test rows change nothing; calibration rows change the threshold and nothing else; training rows change the model.
    scores = model.model.estimator_.decision_function(table[["a", "b"]])
    for rows, same_model, same_threshold in ((test, True, True), (calibration, True, False), (train, False, False)):
        other = table.copy()
        other.loc[rows, "a"] = np.random.default_rng(1).permutation(other.loc[rows, "a"]) + 0.5
        again = fit_table(other, max_fpr=0.1, confidence=0.9, columns=columns, **QUICK)
        moved = again.model.estimator_.decision_function(table[["a", "b"]])
        assert np.array_equal(moved, scores) == same_model
        assert (again.facts.offset == model.facts.offset) == same_threshold
        if same_model and same_threshold:
            assert again.facts.calibration == model.facts.calibration


def test_rows_of_no_part_train_nothing():
    table = payments()
    columns = Columns(time="when", gap="10d", group="customer", drop="day")
    model = fit_table(table, max_fpr=0.1, columns=columns, **QUICK)
    unused = np.setdiff1d(np.arange(len(table)), np.concatenate(parts_of(model, table, 10, "customer")))
    assert unused.size > 50
    other = table.copy()
    other.loc[unused, ["a", "b"]] = 1e3
    again = fit_table(other, max_fpr=0.1, columns=columns, **QUICK)
    np.testing.assert_array_equal(again.positive_scores(table), model.positive_scores(table))


@pytest.mark.parametrize("form", ["number", "%d/%m/%Y", "%d %b %Y", "parquet", "zone", "date"])
def test_a_time_in_any_form_gives_the_same_parts(form, tmp_path):
    table = payments().drop(columns="customer")
    expected = fit_table(table.drop(columns="day"), columns=Columns(time="when", gap="5d"), **QUICK)
    gap, dates = "5d", pd.to_datetime(table["when"])
    path = tmp_path / "a.csv"
    if form == "number":
        table["when"], gap = table["day"], 5
    elif form == "parquet":
        table["when"], path = dates, tmp_path / "a.parquet"
    elif form == "zone":
        table["when"], path = dates.dt.tz_localize("Asia/Tokyo"), tmp_path / "a.parquet"
    elif form == "date":
        table["when"], path = dates.dt.date, tmp_path / "a.parquet"
    else:
        table["when"] = dates.dt.strftime(form)
    table = table.drop(columns="day")
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path)
    model = fit_table(path, columns=Columns(time="when", gap=gap), **QUICK)
    np.testing.assert_array_equal(model.held_out_rows, expected.held_out_rows)
    assert model.facts.rows == expected.facts.rows
    assert model.facts.time_day_first == (True if form == "%d/%m/%Y" else None)


def test_the_model_keeps_the_periods_and_needs_no_time_later(tmp_path):
    table = payments().drop(columns="day")
    model = fit_table(table, max_fpr=0.1, columns=Columns(time="when", gap="5d"), **QUICK)
    model.save(tmp_path / "m.rocmax")
    again = load_model(tmp_path / "m.rocmax")
    assert again.facts == model.facts
    facts = json.loads(json.dumps(model.facts.to_dict()))
    assert (facts["time"], facts["gap"], facts["periods"]) == ("when", "5d", model.facts.periods)
    later = table.drop(columns="when")
    np.testing.assert_array_equal(predict(again, later)["score"], predict(model, table)["score"])
    assert evaluate(again, later).threshold == evaluate(model, table).threshold


@pytest.mark.parametrize("gap", [pd.Timedelta(days=5), "120h", "432000s"])
def test_a_gap_is_kept_as_text(gap):
    table = payments().drop(columns="day")
    model = fit_table(table, columns=Columns(time="when", gap=gap), **QUICK)
    assert model.facts.gap == (gap if isinstance(gap, str) else "432000s")
    same = fit_table(table, columns=Columns(time="when", gap="5d"), **QUICK)
    assert model.facts.periods == same.facts.periods


def test_the_time_is_no_feature_unless_it_is_declared_as_a_date():
    table = payments()[["when", "a", "label"]]
    plan = {
        column.name: column
        for column in plan_columns(table, target="label", positive="fraud", columns=Columns(time="when"))
    }
    assert (plan["when"].kind, plan["when"].used, plan["when"].reason) == (
        "time",
        False,
        "rows are split forward in time",
    )
    model = fit_table(table, columns=Columns(time="when"), **QUICK)
    assert list(model.facts.features) == ["a"]
    # The year and the age are always new later.
    model = fit_table(table, columns=Columns(time="when", date="when"), **QUICK)
    assert set(model.facts.features) == {"a", "when month", "when weekday"}
    assert len(predict(model, table)) == len(table)
    model = fit_table(table, columns=Columns(date="when"), **QUICK)
    assert {"when year", "when age in days"} < set(model.facts.features)
    carried = fit_table(table, columns=Columns(time="when", id="when"), **QUICK)
    assert list(predict(carried, table)["when"]) == list(table["when"])


def test_folds_of_a_table_go_forward():
    table = payments(2000)
    positive, day = (table["label"] == "fraud").to_numpy(), table["day"].to_numpy(dtype=float)
    groups = table["customer"].to_numpy()
    depends = Dependence(groups, day, 4.0)
    for splits in (tuning_splits(positive, depends, LIMIT, 0), boosted_splits(positive, depends, 0)):
        assert len(splits) == 5
        for train, test in splits:
            assert (day[train] + 4 <= day[test].min()).all()
            assert not np.intersect1d(groups[train], groups[test]).size
        starts = [day[test].min() for _, test in splits]
        assert starts == sorted(starts)
    # A large table has one fold: the last one, with the most training rows.
    many = np.arange(40_000) % 3 == 0
    ((train, test),) = boosted_splits(many, Dependence(None, np.arange(40_000.0)), 0)
    assert (train.size, test.size, test.max()) == (32_000, 8_000, 39_999)
    # Without enough times of both classes, there are no folds.
    assert tuning_splits(positive, Dependence(None, positive.astype(float)), LIMIT, 0) == []


@pytest.mark.parametrize("model", ["auto", "linear", "boosted", "logistic"])
def test_each_kind_of_model_is_tuned_forward(model):
    if model == "boosted":
        pytest.importorskip("lightgbm")
    table = payments(800)
    columns = Columns(time="when", gap="3d", drop=("day", "customer"))
    found = fit_table(table, max_fpr=0.2, columns=columns, **(QUICK | {"model": model, "tune": True}))
    assert found.facts.tuning["folds"] == 5
    # Each row is held out at most once, and those of the first period never.
    assert found.facts.tuning["held-out rows"] < 0.9 * found.facts.rows["train"]
    assert found.held_out["value"] > 0.2


# Random splits of tables with dates


def test_a_date_without_a_time_gets_a_note_with_the_difference():
    table = payments(4000, drift=3.0).drop(columns=["day", "customer"])
    model = fit_table(table, columns=Columns(), **QUICK)
    (note,) = [note for note in model.notes if note.startswith("the split is random")]
    pattern = r"although 'when' has dates.*\(with ([\d,]+) training rows, AUC: (\S+) \[.*\] on later rows, (\S+) \["
    rows, later, by_chance = re.search(pattern, note).groups()
    assert note.endswith("to hold out the latest rows: columns=Columns(time='when')")
    forward = fit_table(table, columns=Columns(time="when"), **QUICK)
    assert float(by_chance) - float(later) > 0.2
    assert abs(float(later) - forward.held_out["value"]) < 0.1
    assert int(rows.replace(",", "")) < len(table)
    assert not any("the split is random" in note for note in forward.notes)
    # What was measured does not change the model.
    plain = fit_table(table.drop(columns="when"), **QUICK)
    assert plain.held_out == model.held_out


@pytest.mark.parametrize("model", ["linear", "boosted", "lightgbm", "additive", "svm"])
@pytest.mark.parametrize("tune", [True, False])
def test_the_difference_is_measured_for_each_model(model, tune):
    if model in ("boosted", "lightgbm"):
        pytest.importorskip("lightgbm")
    table = payments(400, drift=3.0).drop(columns=["day"])
    found = fit_table(table, group="customer", max_fpr=0.2, **(QUICK | {"model": model, "tune": tune}))
    assert any("training rows, partial AUC, FPR 0 to 0.2" in note for note in found.notes)


def test_dates_that_say_nothing_get_no_note():
    table = payments(300).drop(columns="day")
    same, missing, unclear = (table.assign(when=values) for values in ("2024-05-01", None, "03/04/2024"))
    for frame in (same, missing, unclear, table.drop(columns="when")):
        assert not any("the split is random" in note for note in fit_table(frame, **QUICK).notes)
    # Dates whose order is in doubt differ, but cannot be read.
    unclear["when"] = np.where(np.arange(300) < 150, "03/04/2024", "05/04/2024")
    (note,) = [note for note in fit_table(unclear, **QUICK).notes if "the split is random" in note]
    assert "training rows" not in note
    read = fit_table(unclear, reading=Reading(day_first=True), **QUICK)
    assert any("on later rows" in note for note in read.notes)


# Comparisons


def test_a_comparison_goes_forward():
    table = payments(2000, drift=3.0)
    options = {"target": "label", "positive": "fraud", "models": ["logistic", "auc"], "tune": False, "n_splits": 6}
    columns = Columns(time="when", gap="4d", drop=("day", "customer"))
    found = compare_models(table, columns=columns, **options)
    assert found.time == "when"
    note, dropped = (note for note in found.notes if "split" in note)
    assert note.startswith("each split tests on one of 6 periods from 2024-01-")
    assert "a ranking only" in note
    assert "earlier rows of a split are left out" in dropped
    day, y = table["day"].to_numpy(), (table["label"] == "fraud").to_numpy()
    splits = Dependence(None, day.astype(float), 4.0).forward(6, 0.5 / 6)
    X, expected = table[["a", "b"]].to_numpy(), []
    for train, test in splits:
        scale = StandardScaler().fit(X[train])
        model = LogisticRegression(max_iter=1000).fit(scale.transform(X[train]), y[train])
        expected.append(roc_auc_score(y[test], model.decision_function(scale.transform(X[test]))))
    np.testing.assert_allclose(found.table.loc["logistic", "scores"], expected, rtol=1e-6)
    by_chance = compare_models(table, columns=Columns(drop=("day", "customer")), **options)
    assert by_chance.time is None
    assert any("the split is random, although 'when' has dates" in note for note in by_chance.notes)
    grouped = compare_models(table, columns=Columns(time="when", group="customer", drop="day"), **options)
    assert grouped.table.loc["logistic", "scores"] != found.table.loc["logistic", "scores"]


# Bad input


def bad(change):
    table = payments(300)
    return change(table)


def with_value(row, value):
    def change(table):
        table.loc[row, "when"] = value
        return table

    return change


BAD_TABLES = {
    "unparsable": (with_value(7, "soon"), {}, "column 'when' must contain dates; got 'soon' in a.csv, line 9"),
    "missing": (with_value(7, ""), {}, r"column 'when' must have a time in each row; got 1 of 300 .* row 8 after the"),
    "no number": (
        lambda table: with_value(7, "soon")(table.assign(when=table["day"].astype(object))),
        {},
        "column 'when' must have a time in each row; got 'soon' in a.csv, line 9",
    ),
    "infinite": (
        lambda table: with_value(7, np.inf)(table.assign(when=table["day"].astype(float))),
        {},
        "column 'when' must be known for each row; got inf in row 7",
    ),
    "two orders": (
        lambda table: table.assign(when=["25/12/2023", "12/25/2023"] * 150),
        {},
        "column 'when' must have dates in one order; got '25/12/2023' in a.csv, line 2, with the day first",
    ),
    "unclear order": (
        lambda table: table.assign(when=["03/04/2023", "05/04/2023"] * 150),
        {},
        "column 'when' has dates such as '03/04/2023', of which the day or the month may come first; say which",
    ),
    "one period": (
        lambda table: table.assign(when="2024-01-01"),
        {},
        "column 'when' must have at least three different times, .* got 1",
    ),
    "two periods": (
        lambda table: table.assign(when=np.where(table["day"] < 60, "2024-01-01", "2024-01-02")),
        {},
        "column 'when' must have at least three different times, .* got 2",
    ),
    "no positives at the end": (
        lambda table: table.assign(label=np.where(table["day"] > 104, "ok", table["label"])),
        {},
        "the held-out rows from 2024-03-.* must have rows of both classes; got 0 positives among 3. rows. Choose",
    ),
    "no negatives at the end": (
        lambda table: table.assign(label=np.where(table["day"] > 104, "fraud", table["label"])),
        {},
        r"the held-out rows from 2024-03-.* must have rows of both classes; got (3.) positives among \1 rows",
    ),
    "long gap": (
        lambda table: table,
        {"gap": "100d"},
        "the training rows must have rows of both classes; got 0 positives among 0 rows. Choose another test_size or a "
        "shorter gap; 2.. rows are left out, as their labels were not known",
    ),
    "groups everywhere": (
        lambda table: table.assign(customer=[f"c{i % 3}" for i in range(300)]),
        {"group": "customer"},
        "must have rows of both classes; got 0 positives among 0 rows. .*; 2.. rows are left out, as their groups",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_times_that_cannot_be_used(name, tmp_path, monkeypatch):
    change, options, message = BAD_TABLES[name]
    bad(change).drop(columns="day").to_csv(tmp_path / "a.csv", index=False)
    monkeypatch.setattr("rocmax.tables.fit.fit_rows", lambda *_: pytest.fail("the fit began"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        fit_table("a.csv", columns=Columns(time="when", **options), **QUICK)


BAD_CALLS = [
    ({"gap": "3d"}, "gap requires the time of each row"),
    ({"time": "when", "gap": "soon"}, "gap must be a number and a unit, such as 30d"),
    ({"time": "when", "gap": -1}, "gap must be at least 0; got -1"),
    ({"time": "when", "gap": 3}, "gap must be a time span, such as 30d, as the times are dates; got 3"),
    ({"time": "day", "gap": "3d"}, "gap must be a number, as the times are numbers; got 259200s"),
    ({"time": "label"}, "time must be another column than target"),
    ({"time": "when", "group": "when"}, "time must be another column than group"),
    ({"time": "when", "number": "when"}, "time and number must be different columns"),
]


@pytest.mark.parametrize(("options", "message"), BAD_CALLS, ids=[message for _, message in BAD_CALLS])
def test_columns_that_contradict_each_other(options, message):
    for function in (fit_table, compare_models):
        with pytest.raises(ParameterError, match=message):
            function(payments(100), target="label", positive="fraud", columns=Columns(**options))


def test_an_unknown_column_and_a_file_without_names(tmp_path):
    with pytest.raises(DataError, match="has no column 'then'"):
        fit_table(payments(100), columns=Columns(time="then"), **QUICK)
    (tmp_path / "a.svmlight").write_text("1 1:1\n-1 1:2\n" * 10)
    with pytest.raises(DataError, match="no column names to drop, declare, group or order by"):
        fit_table(tmp_path / "a.svmlight", columns=Columns(time="when"), model="logistic", tune=False)


def test_a_cluster_has_no_times():
    pytest.importorskip("distributed")
    with pytest.raises(ParameterError, match="time is not possible with dask"):
        fit_table("a.parquet", target="label", columns=Columns(time="when"), running=Running(dask="tcp://127.0.0.1:1"))


def test_too_few_calibration_rows_for_a_guarantee_are_an_error_before_the_fit():
    with pytest.raises(ValueError, match="requires at least 299 held-out negatives; got 99"):
        fit_table(payments(1200), max_fpr=0.01, confidence=0.95, columns=Columns(time="when"), **QUICK)


def test_a_comparison_says_which_split_lacks_a_class():
    table = payments(300)
    table["label"] = np.where(table["day"] > 100, "ok", table["label"])
    with pytest.raises(
        DataError, match=r"the test rows of split \d+ of 10 must have both classes; got 'ok' only, in 1"
    ):
        compare_models(table, target="label", positive="fraud", columns=Columns(time="when"), tune=False)
