"""Fits in time order: rates by period, and the confidence that is stated only if later rows resemble earlier ones."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from helpers.commands import run
from rocmax.metrics import partial_auc_score
from rocmax.metrics.rates import prediction_interval
from rocmax.tables import Columns, Limits, evaluate, fit_table, write_report
from rocmax.tables.evaluate import ScoredRows, later_value


def days(n_rows=6000, moved=0.0, seed=0):
    """Return two years of rows; from the 20th month on, the negatives move towards the positives."""
    rng = np.random.default_rng(seed)
    share = np.sort(rng.random(n_rows))
    positive = rng.random(n_rows) < 0.2
    X = rng.normal(size=(n_rows, 3))
    X[:, 0] += np.where(positive, 2.0, moved * (share > 20 / 24))
    day = np.datetime64("2023-01-01", "s") + (share * 730 * 86_400).astype("timedelta64[s]")
    return pd.DataFrame(X, columns=list("abc")).assign(day=day, label=np.where(positive, "yes", "no"))


def fitted(frame, **limits):
    limits = limits or {"max_fpr": 0.05, "confidence": 0.95}
    columns = Columns(target="label", positive="yes", time="day")
    return fit_table(frame, columns=columns, limits=Limits(**limits), model="linear", tune=False)


@pytest.fixture(scope="module")
def steady():
    return fitted(days())


@pytest.fixture(scope="module")
def moved():
    return fitted(days(moved=1.5))


def test_the_rates_by_period_are_those_of_the_test_rows(steady):
    frame = days()
    test = frame.iloc[steady.held_out_rows]
    flagged = steady.positive_scores(test) > 0
    of_negatives = (test["label"] == "no").to_numpy()
    months = test["day"].dt.strftime("%Y-%m").to_numpy()
    found = steady.facts.over_time
    assert [period["name"] for period in found] == sorted(set(months))
    for period in found:
        rows = months == period["name"]
        assert period["rows"] == rows.sum()
        assert period["flagged"] == flagged[rows].sum()
        assert period["fpr"]["rate"] == flagged[rows & of_negatives].mean()
        assert period["fpr"]["low"] <= period["fpr"]["rate"] <= period["fpr"]["high"]


def test_a_later_period_is_predicted_from_the_periods_after_the_training_rows(steady, moved):
    for model, frame in ((steady, days()), (moved, days(moved=1.5))):
        ends = [model.facts.periods[part] for part in ("calibration", "held out")]
        values = []
        for part in ends:
            rows = frame[frame["day"].between(part["first"], part["last"])]
            for third in np.array_split(np.arange(len(rows)), 3):
                some = rows.iloc[third]
                values.append(partial_auc_score(some["label"] == "yes", model.positive_scores(some), max_fpr=0.05))
        # Ends of the parts are printed to the second, and thirds may differ by a row: the interval is close, not equal.
        half = t.ppf(0.975, 5) * np.std(values, ddof=1) * np.sqrt(7 / 6)
        low, high = np.clip([np.mean(values) - half, np.mean(values) + half], 0, 1)
        assert model.facts.later["periods"] == 6
        assert [model.facts.later["low"], model.facts.later["high"]] == pytest.approx([low, high], abs=0.02)
    widths = [model.facts.later["high"] - model.facts.later["low"] for model in (steady, moved)]
    assert widths[1] > 2 * widths[0]


def test_prediction_intervals_contain_the_next_value_in_95_percent():
    draws = np.random.default_rng(0).normal(0.4, 0.1, size=(4000, 7))
    inside = [low <= row[6] <= high for row in draws for low, high in [prediction_interval(row[:6])]]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.01)


def test_periods_without_both_classes_do_not_count_and_two_predict_nothing():
    limits = Limits(max_fpr=0.5, measure="partial_auc")
    scores, positive = np.tile([0.0, 1.0, 2.0], 10), np.tile([False, True, False], 10)
    rows, times = ScoredRows(scores, positive), np.arange(30)
    assert later_value("partial_auc", limits, [(times, rows), (times, rows)])["periods"] == 6
    # The positives are in the last period only.
    rare = ScoredRows(scores, positive & (times > 25))
    assert later_value("partial_auc", limits, [(times, rare), (times, rows)])["periods"] == 4
    assert later_value("partial_auc", limits, [(times, rare), (times, rare)]) is None
    # Equal times are in one period.
    assert later_value("partial_auc", limits, [(times // 15, rows), (times, rows)])["periods"] == 5


def test_the_shares_above_the_threshold_then_and_now(moved):
    frame = days(moved=1.5)
    now = moved.positive_scores(frame.iloc[moved.held_out_rows]) > 0
    negative = (frame["label"].iloc[moved.held_out_rows] == "no").to_numpy()
    assert moved.facts.resemblance["now"] == now[negative].mean() == moved.facts.at_threshold["fpr"]
    assert moved.facts.resemblance["then"] <= 0.05
    assert moved.facts.resemblance["side"] == "negative"


def test_rows_that_resemble_the_calibration_rows_earn_the_confidence(steady):
    assert steady.facts.resemblance["resembles"]
    assert not any("resembles" in note for note in steady.notes)


def test_rows_that_moved_do_not_earn_it(moved):
    assert not moved.facts.resemblance["resembles"]
    assert moved.facts.resemblance["p_value"] < 1e-3
    (note,) = (note for note in moved.notes if "resembles" in note)
    then, now = (f"{moved.facts.resemblance[when]:.1%}" for when in ("then", "now"))
    assert f"moved from {then} on the calibration rows to {now} on the later test rows" in note
    assert "the limit holds only if the future resembles the calibration rows" in note


def test_a_floor_on_the_true_positive_rate_is_judged_on_positives():
    frame = days()
    late = frame["day"] > "2024-10-15"
    frame.loc[late & (frame["label"] == "yes"), "a"] -= 1.5
    found = fitted(frame, min_tpr=0.9, confidence=0.95).facts.resemblance
    assert found["side"] == "positive"
    assert found["then"] >= 0.9 > found["now"]
    assert not found["resembles"]


def test_without_a_limit_or_without_times_nothing_is_judged():
    assert fitted(days(2000), measure="roc_auc").facts.resemblance is None
    found = fit_table(days(2000).drop(columns="day"), target="label", max_fpr=0.1, model="linear", tune=False).facts
    assert found.over_time is None
    assert found.resemblance is None


def test_the_command_states_the_confidence_only_if_it_is_earned(tmp_path):
    options = ["--target", "label", "--positive", "yes", "--time", "day", "--max-fpr", "0.05", "--confidence", "0.95"]
    promise = "at most 5 % of false positives with confidence 0.95"
    for shift, earned in ((0.0, True), (1.5, False)):
        days(moved=shift).to_csv(tmp_path / "t.csv", index=False)
        others = ["--model", "linear", "--no-tune", "--out", tmp_path / "m.rocmax"]
        done = run("fit", tmp_path / "t.csv", *options, *others)
        assert (promise in done.stdout) == earned
        assert ("the limit holds only if the future resembles the calibration rows" in done.stderr) != earned
        assert "rates at the threshold by period (limit 5 %):" in done.stdout
        assert "#" in done.stdout
    shown = run("evaluate", tmp_path / "m.rocmax", tmp_path / "t.csv").stdout
    assert "rates at the threshold by period" in shown
    found = json.loads(run("evaluate", tmp_path / "m.rocmax", tmp_path / "t.csv", "--json").stdout)
    assert [period["name"] for period in found["over_time"]][:2] == ["2023 Q1", "2023 Q2"]


def test_the_report_has_the_rates_over_time(moved, tmp_path):
    write_report(moved, days(moved=1.5), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Rates over time at the saved threshold" in page
    assert "2024 Q4" in page
    assert "the later test rows of the fit differ from them" in page
    write_report(moved, days().drop(columns="day"), tmp_path / "r.html")
    assert "Rates over time" not in (tmp_path / "r.html").read_text()


def test_an_evaluation_needs_no_times(moved):
    assert evaluate(moved, days().drop(columns="day")).over_time is None
    assert len(evaluate(moved, days()).over_time) == 8
