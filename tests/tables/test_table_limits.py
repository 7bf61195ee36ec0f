"""Limits on precision, on alerts and for each value of a column, in fits of tables and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rocmax import LimitThresholdClassifier
from rocmax.cli.app import app
from rocmax.tables import (
    Columns,
    Limits,
    ParameterError,
    compare_models,
    evaluate,
    fit_table,
    load_model,
    predict,
    write_predictions,
    write_report,
)
from rocmax.tables.onnx import to_onnx

OPTIONS = {"target": "y", "model": "linear", "tune": False, "test_size": 0.5}


@pytest.fixture(scope="module")
def table():
    """Rows of 60 days, 100 a day, with a country that is a feature and a branch that is a code."""
    rng = np.random.default_rng(0)
    n = 6000
    x = rng.normal(size=(n, 3))
    country = rng.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2])
    y = x[:, 0] + x[:, 1] + 0.5 * (country == "B") + 0.5 * rng.logistic(size=n) > 2
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) // 100, unit="D")
    found = pd.DataFrame(x, columns=list("abc")).assign(country=country, branch=rng.integers(1, 3, n), y=y.astype(int))
    return found.assign(day=days.strftime("%Y-%m-%d"))


@pytest.fixture(scope="module")
def three_way(table):
    limits = Limits(max_fpr=0.1, per="country", block=Limits(max_fpr=0.02), confidence=0.8)
    return fit_table(table, limits=limits, columns=Columns(drop="day"), **OPTIONS)


def shares(model, table):
    """Precision, FPR and share of alerts among the rows that a model has chosen its threshold on."""
    held_out = table.iloc[model.held_out_rows]
    flagged, positive = predict(model, held_out).label.to_numpy() == 1, held_out.y.to_numpy() == 1
    return positive[flagged].mean(), flagged[~positive].mean(), flagged.mean()


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_fit_keeps_a_floor_on_precision_and_says_what_it_depends_on(table, confidence):
    model = fit_table(table, limits=Limits(min_precision=0.7, confidence=confidence), **OPTIONS)
    precision, _, alerts = shares(model, table)
    assert precision >= 0.7
    assert model.facts.binding == "min_precision"
    assert model.facts.at_threshold["precision"] == precision
    assert model.facts.at_threshold["alerts"] == alerts
    share = table.y.mean()
    assert f"precision holds for a share of positives of {share:.3g}, as here; with fewer, it is lower" in model.notes
    # Trained up to the rate of false alarms at which all positives are found with this precision.
    assert model.held_out["max_fpr"] == pytest.approx(share / (1 - share) * 3 / 7)
    assert model.facts.max_fpr == 1.0
    assert next(iter(evaluate(model, table).measures)) == "partial_auc"
    assert evaluate(model, table).measures["partial_auc"]["max_fpr"] == model.held_out["max_fpr"]


def test_a_share_of_alerts_is_a_capacity_and_the_range_to_train_for(table):
    model = fit_table(table, limits=Limits(capacity=0.02), **OPTIONS)
    assert shares(model, table)[2] == 0.02
    assert model.held_out["max_fpr"] == pytest.approx(0.02 / (1 - table.y.mean()))


def test_a_capacity_per_day_is_a_share_of_the_rows_of_a_day(table):
    limits = Limits(capacity=3, per="day", max_fpr=0.5)
    model = fit_table(table, limits=limits, columns=Columns(time="day"), **OPTIONS)
    assert model.facts.capacity_share == pytest.approx(0.03)
    assert (model.facts.capacity, model.facts.per, model.facts.binding) == (3, ["day"], "capacity")
    share = fit_table(table, limits=Limits(capacity=0.03, max_fpr=0.5), columns=Columns(time="day"), **OPTIONS)
    assert share.model.threshold_ == model.model.threshold_
    assert model.facts.limits.period == "day"
    assert evaluate(model, table).threshold["capacity"] == pytest.approx(0.03)


def test_what_cannot_be_kept_together_is_refused_and_a_corner_says_so(table):
    with pytest.raises(
        ParameterError, match=r"cannot be kept together .*; the nearest: limits=Limits\(min_precision=0"
    ):
        fit_table(table, limits=Limits(min_tpr=0.9, min_precision=0.9), **OPTIONS)
    # Both rates alone are a corner to train for, and the threshold reaches the TPR.
    corner = fit_table(table, limits=Limits(min_tpr=0.9), max_fpr=0.02, **OPTIONS)
    assert corner.facts.at_threshold["tpr"] >= 0.9
    (note,) = [text for text in corner.notes if "takes a false-positive rate" in text]
    assert f"{corner.facts.at_threshold['fpr']:.3g}, above max_fpr=0.02" in note


def test_each_value_of_a_feature_has_its_threshold(table, three_way):
    assert isinstance(three_way.model, LimitThresholdClassifier)
    assert list(three_way.facts.thresholds) == ["A", "B", "C"]
    held_out = table.iloc[three_way.held_out_rows]
    scores = predict(three_way, held_out).score.to_numpy()
    for value in "ABC":
        rows = (held_out.country == value) & (held_out.y == 0)
        assert 0 < (scores[rows] > 0).mean() <= 0.1
    raw = scores + held_out.country.map(three_way.facts.thresholds)
    for country in (None, "D"):
        strict = predict(three_way, held_out.assign(country=country)).score
        assert strict.max() < raw.max()
    assert any("3 values of 'country' have thresholds of their own" in text for text in three_way.notes)


@pytest.mark.parametrize("columns", [Columns(drop="branch"), Columns(text="branch"), Columns(number="branch")])
def test_the_column_may_be_a_feature_of_any_kind_or_none(table, columns, tmp_path):
    model = fit_table(table.drop(columns="day"), limits=Limits(max_fpr=0.1, per="branch"), columns=columns, **OPTIONS)
    assert list(model.facts.thresholds) == ["1", "2"]
    table.to_csv(tmp_path / "later.csv", index=False)
    from_file = predict(model, tmp_path / "later.csv")
    pd.testing.assert_frame_equal(from_file, predict(model, table))
    with pytest.raises(ValueError, match="branch"):
        predict(model, table.drop(columns="branch"))


def test_three_decisions_are_written_and_counted(table, three_way, tmp_path):
    found = predict(three_way, table)
    assert set(found.decision) == {"approve", "review", "block"}
    np.testing.assert_array_equal(found.decision == "approve", found.label == 0)
    assert found[found.decision == "block"].score.min() > 0
    summary = write_predictions(three_way, table, tmp_path / "out.csv")
    assert (summary.positive, summary.blocked) == ((found.label == 1).sum(), (found.decision == "block").sum())
    written = pd.read_csv(tmp_path / "out.csv")
    assert written.decision.tolist() == found.decision.tolist()


def test_a_saved_model_keeps_its_limits(table, three_way, tmp_path):
    three_way.save(tmp_path / "model.rocmax")
    loaded = load_model(tmp_path / "model.rocmax")
    assert loaded.facts.limits == three_way.facts.limits
    assert loaded.facts.limits.block == Limits(max_fpr=0.02, min_fpr=0.0)
    pd.testing.assert_frame_equal(predict(loaded, table), predict(three_way, table))
    assert json.loads(json.dumps(three_way.facts.to_dict()))["thresholds"] == three_way.facts.thresholds


def test_a_report_names_the_limits(table, tmp_path):
    limits = Limits(max_fpr=0.1, min_precision=0.6, capacity=0.2, per="branch", block=Limits(min_precision=0.8))
    model = fit_table(table, limits=limits, columns=Columns(drop=("day", "branch")), **OPTIONS)
    write_report(model, table, tmp_path / "report.html", segment="branch")
    page = (tmp_path / "report.html").read_text()
    for text in (
        "FPR &lt;= 10 %",
        "precision &gt;= 60 %",
        "alerts &lt;= 20 % of rows",
        "each value of &#39;branch&#39;",
    ):
        assert text in page
    assert "block: precision &gt;= 0.8" in page


def test_several_thresholds_are_no_graph(three_way):
    with pytest.raises(ValueError, match="an ONNX graph has one threshold; the model has several"):
        to_onnx(three_way.model, three_way.facts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": Limits(capacity=5, per="day")}, "per='day') requires times: columns=Columns(time=...)"),
        ({"limits": Limits(capacity=5)}, "requires a period"),
        ({"limits": Limits(block=Limits(max_fpr=0.1))}, "requires a limit for review: max_fpr=..."),
        ({"limits": Limits(max_fpr=0.1, per="land")}, "land"),
        ({"limits": Limits(max_fpr=0.1, per="y")}, "must be another column than target"),
        ({"limits": Limits(max_fpr=0.1, per="branch"), "group": "branch"}, "must be another column than group"),
        ({"limits": Limits(capacity=500, per="day"), "columns": Columns(time="day")}, "rows per day; got 100 rows"),
        (
            {"limits": Limits(capacity=5, per="month"), "columns": Columns(time="day")},
            "requires times in at least 3 periods, as the first and the last may be cut off; got 2",
        ),
        ({"limits": Limits(min_precision=0.999, confidence=0.95)}, "held-out positives; got"),
    ],
)
def test_bad_limits_are_refused_before_the_fit(table, options, message, monkeypatch):
    monkeypatch.setattr("rocmax.tables.fit.tuned_model", lambda *args, **kwargs: pytest.fail("fitted"))
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the messages differ
        fit_table(table, **{**OPTIONS, **options})
    assert message in str(refused.value)


@pytest.mark.parametrize("limits", [Limits(min_precision=0.5), Limits(max_fpr=0.1, per="country")])
def test_a_comparison_chooses_no_threshold(table, limits):
    with pytest.raises(ParameterError, match="must not be given: compare_models does not use it"):
        compare_models(table, target="y", limits=limits)


def test_the_command_line_has_the_same_names(table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    model, out = tmp_path / "model.rocmax", tmp_path / "out.csv"
    options = "--target y --model linear --no-tune --time day --max-fpr 0.1 --min-precision 0.5 --capacity 8 --per day"
    options += f" --per country --block-min-precision 0.7 --out {model}"
    found = CliRunner().invoke(app, ["fit", str(tmp_path / "table.csv"), *options.split()])
    assert found.exit_code == 0, found.output
    assert (
        "precision >= 50 %, alerts <= 8 per day, for each value of 'country', block: precision >= 0.7" in found.output
    )
    assert "limit reached first" in found.output
    limits = load_model(model).facts.limits
    assert (limits.max_fpr, limits.min_precision, limits.capacity) == (0.1, 0.5, 8)
    assert (limits.per, limits.block.min_precision) == (("day", "country"), 0.7)
    found = CliRunner().invoke(app, ["predict", str(model), str(tmp_path / "table.csv"), "--out", str(out)])
    assert "to block and the others to review" in found.output
    found = CliRunner().invoke(app, ["evaluate", str(model), str(tmp_path / "table.csv")])
    assert "(at least 0.5), alerts" in found.output
    assert "(limit 8.00%)" in found.output
    asked = ["fit", str(tmp_path / "table.csv"), "--target", "y", "--capacity", "8", "--out", str(model)]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 2
    assert "--capacity 8" in found.output
