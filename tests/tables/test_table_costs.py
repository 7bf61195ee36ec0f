"""Costs in a table: chosen in the fit, saved, used by predictions, evaluations, reports and the command."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from rocmax.cli.app import app
from rocmax.costs import expected_cost
from rocmax.tables import (
    Columns,
    Costs,
    Limits,
    ParameterError,
    Running,
    compare_models,
    evaluate,
    fit_table,
    load_model,
    plan,
    predict,
    write_report,
)
from rocmax.tables.onnx import to_onnx

TABLES = Path(os.environ.get("ROCMAX_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "tables"
COSTS = Costs(false_alarm=2, miss="amount", review=1)
OPTIONS = {"target": "y", "model": "linear", "tune": False}


def payments(n_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows))
    fraud = rng.random(n_rows) < expit(2 * a + b - 3)
    days = pd.date_range("2024-01-01", periods=n_rows, freq="15min").astype(str)
    return pd.DataFrame(
        {"a": a, "b": b, "amount": rng.lognormal(2, 1.5, n_rows).round(2), "day": days, "y": fraud.astype(int)}
    )


@pytest.fixture(scope="module")
def table():
    return payments()


@pytest.fixture(scope="module")
def model(table):
    return fit_table(table, limits=Limits(costs=COSTS), columns=Columns(drop=("amount", "day")), **OPTIONS)


def test_a_fit_reports_what_its_decisions_save(table, model):
    found, rows = model.facts.savings, table.iloc[model.held_out_rows]
    assert found["per_case"]
    case, positive = COSTS.of(rows), rows.y.to_numpy() == 1
    none = case.spent(positive, np.zeros(positive.size, dtype=bool)).mean()
    assert found["none"] == pytest.approx(none)
    assert 0.1 < found["savings_low"] < found["savings"] < found["savings_high"] < 1
    assert found["cost"] == pytest.approx((1 - found["savings"]) * min(found["none"], found["all"]))
    # The decisions that it counts are of rules that have not seen the row; those of the saved rule are cheaper.
    saved = expected_cost(case, positive, predict(model, rows).label.to_numpy() == 1, random_state=0)
    assert saved.cost == pytest.approx(found["cost"], rel=0.1)
    assert model.facts.measure == "average_precision"
    assert not hasattr(model.model, "held_out_alerts_")


def test_predictions_of_each_row_follow_its_costs(table, model, tmp_path):
    model.save(tmp_path / "model.rocmax")
    loaded, new = load_model(tmp_path / "model.rocmax"), payments(500, seed=1)
    assert loaded.facts.limits == Limits(costs=COSTS, max_fpr=1.0, measure="average_precision")
    found = predict(loaded, new.drop(columns=["y", "day"]), proba=True)
    pays = found.probability * (new.amount - 1) > (1 - found.probability) * 3
    # Probabilities are calibrated again on all held-out rows.
    assert (pays == (found.label == 1)).mean() > 0.98
    dearer = predict(loaded, new.assign(amount=10 * new.amount))
    assert (dearer.score >= found.score).all()
    assert dearer.label.sum() > found.label.sum()
    np.testing.assert_allclose(predict(loaded, new.assign(amount=5.0), proba=True).probability, found.probability)
    with pytest.raises(ValueError, match="'amount'"):
        predict(loaded, new.drop(columns="amount"))
    with pytest.raises(ValueError, match=r"column 'amount', which is cost_miss, .* got -3.0 in row 5"):
        predict(loaded, new.assign(amount=np.where(np.arange(500) == 4, -3.0, new.amount)))
    with pytest.raises(ValueError, match="for the costs of each row"):
        to_onnx(loaded.model, loaded.facts)


def test_an_evaluation_counts_the_costs_of_its_rows(table, model):
    new = payments(800, seed=2)
    found = evaluate(model, new)
    flagged, positive = predict(model, new).label.to_numpy() == 1, new.y.to_numpy() == 1
    by_hand = expected_cost(COSTS.of(new), positive, flagged, random_state=0)
    assert found.costs == pytest.approx(by_hand._asdict())
    assert json.loads(json.dumps(found.to_dict()))["costs"] == found.costs
    other = Costs(miss=50, review=2)
    assert evaluate(model, new, costs=other).costs["cost"] == expected_cost(other.of(new), positive, flagged).cost
    # The measures rank by risk, not by what is at stake.
    by_risk = evaluate(fit_table(table, columns=Columns(drop=("amount", "day")), **OPTIONS), new).measures["roc_auc"]
    assert found.measures["roc_auc"]["value"] == pytest.approx(by_risk["value"], abs=0.05)
    one = fit_table(table, limits=Limits(costs=COSTS, max_fpr=0.3), **OPTIONS)
    assert evaluate(one, new.drop(columns="amount").assign(amount=1.0)).costs is not None


def test_one_threshold_does_not_need_the_column_of_costs(table):
    columns = Columns(drop=("amount", "day"))
    model = fit_table(table, limits=Limits(costs=COSTS, capacity=0.02), columns=columns, **OPTIONS)
    assert not model.facts.savings["per_case"]
    assert model.facts.at_threshold["alerts"] <= 0.02
    assert model.facts.binding == "capacity"
    new = payments(500, seed=1)
    pd.testing.assert_frame_equal(predict(model, new.drop(columns="amount")), predict(model, new))
    assert evaluate(model, new.drop(columns="amount")).costs is None
    assert evaluate(model, new).costs is not None
    with pytest.raises(ValueError, match="has no column 'price'"):
        evaluate(model, new, costs=Costs(miss="price", review=1))


@pytest.mark.parametrize("name", ["linear", "boosted"])
def test_rows_in_time_order_and_a_fit_to_all_rows(table, name):
    limits = Limits(costs=COSTS)
    later = fit_table(table, limits=limits, columns=Columns(time="day"), **{**OPTIONS, "model": name})
    rows = table.iloc[later.held_out_rows]
    flagged = predict(later, rows).label.to_numpy() == 1
    # The threshold is chosen on earlier rows, so the saved rule is the one that is counted.
    own = expected_cost(COSTS.of(rows), rows.y.to_numpy() == 1, flagged, random_state=0)
    assert {key: later.facts.savings[key] for key in own._asdict()} == pytest.approx(own._asdict())
    options = {**OPTIONS, "model": name, "columns": Columns(drop="day"), "limits": limits}
    refit = fit_table(table, running=Running(refit=True), **options)
    before = fit_table(table, **options)
    same = ("cost", "none", "all", "weighted")
    assert {key: refit.facts.savings[key] for key in same} == {key: before.facts.savings[key] for key in same}
    assert evaluate(refit, payments(3000, seed=3)).costs["savings"] > 0.1


def test_a_report_starts_at_the_costs(table, model, tmp_path):
    new = payments(600, seed=4)
    write_report(model, new, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert 'id="cost-alarm" type="number" min="0" step="any" value="3"' in page
    assert "false_alarm 2.0, miss amount, review 1.0" in page
    worth = (new.amount - 1)[new.y == 1].mean()
    assert f'id="cost-miss" type="number" min="0" step="any" value="{worth:.6g}"' in page
    plain = fit_table(table, columns=Columns(drop="day"), **OPTIONS)
    write_report(plain, new, tmp_path / "plain.html")
    assert 'id="cost-miss" type="number" min="0" step="any" value="10"' in (tmp_path / "plain.html").read_text()


@pytest.mark.parametrize(
    ("change", "limits", "message"),
    [
        (
            {"amount": -1.0},
            Limits(costs=COSTS),
            r"column 'amount', .* got -1.0 in row 1 after the header, and 2,999 more",
        ),
        ({"amount": None}, Limits(costs=COSTS), "column 'amount', .* got (nan|None) in row 1"),
        ({}, Limits(costs=Costs(miss="price", review=1)), "no column 'price'"),
        ({}, Limits(costs=Costs(miss="y", review=1)), "cost_miss='y'.* must be another column than target"),
        ({}, Limits(costs=Costs(review=1)), "what a miss costs: limits=Limits"),
        ({}, Limits(costs=COSTS, min_tpr=0.5), "min_tpr must not be given with costs"),
    ],
)
def test_bad_costs_are_refused_before_the_fit(table, change, limits, message):
    def no_fit(*_):
        raise AssertionError("the fit began")

    with pytest.raises(ValueError, match=message):
        fit_table(table.assign(**change), limits=limits, running=Running(progress=no_fit), **OPTIONS)


def test_what_does_not_use_costs_says_so(table):
    limits = Limits(costs=COSTS)
    with pytest.raises(ParameterError, match="costs must not be given: compare_models does not use it"):
        compare_models(table, target="y", limits=limits)
    with pytest.raises(ParameterError, match="costs must not be given: a plan is for limits"):
        plan(table, target="y", limits=limits)
    with pytest.raises(ParameterError, match="costs is not possible with dask"):
        fit_table("t.parquet", limits=replace(limits), running=Running(dask="tcp://none:1"), **OPTIONS)


def test_the_commands_of_the_guide_on_a_real_table(tmp_path):
    path = TABLES / "telco-churn.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there; set ROCMAX_DATA to the folder that holds tables/{path.name}")

    def run(*words, code=0):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == code, done.output
        return done

    out = tmp_path / "churn.rocmax"
    named = ["--target", "Churn", "--positive", "Yes"]
    costs = ["--cost-false-alarm", "5", "--cost-miss", "MonthlyCharges", "--cost-review", "1"]
    done = run("fit", path, *named, *costs, "--model", "linear", "--out", out)
    assert "costs (false alarm 5.0, miss MonthlyCharges, review 1.0): " in done.stdout
    assert "cost per row 3." in done.stdout
    assert "savings 3" in done.stdout
    assert load_model(out).facts.savings["savings_low"] > 0.2
    found = json.loads(run("evaluate", out, path, "--json").stdout)
    assert found["costs"]["savings"] > 0.2
    assert "savings -" in run("evaluate", out, path, "--cost-miss", "50", "--cost-review", "2").stdout
    done = run("fit", path, *named, "--cost-miss", "TotalCharges", "--out", tmp_path / "no.rocmax", code=1)
    text = "'TotalCharges', which is --cost-miss, must have a number of at least 0 in each row; got nan in row 489"
    assert text in done.stderr
    done = run("fit", path, *named, "--cost-review", "1", "--out", tmp_path / "no.rocmax", code=2)
    assert "--cost-miss" in done.stderr
    assert not (tmp_path / "no.rocmax").exists()
