"""How many rows are held out by default, and the fit to all rows at the end."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from helpers.commands import run
from rocmax.metrics import positive_scores
from rocmax.tables import Columns, Limits, ParameterError, Running, evaluate, fit_table, load_model, plan

LOGISTIC = {"target": "label", "model": "logistic", "tune": False}
REFIT = Running(refit=True)


def some_table(n=1200, rate=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    X = rng.normal(size=(n, 3)) + 0.8 * y[:, None]
    return pd.DataFrame(X, columns=list("abc")).assign(label=y)


# How many rows are held out


def test_a_small_table_holds_out_a_quarter_as_before():
    table = some_table()
    default, quarter = (fit_table(table, max_fpr=0.05, **LOGISTIC, **size) for size in ({}, {"test_size": 0.25}))
    np.testing.assert_array_equal(default.held_out_rows, quarter.held_out_rows)
    assert default.facts.offset == quarter.facts.offset


@pytest.mark.parametrize("limits", [Limits(0.1), Limits(min_tpr=0.8), Limits(0.1, capacity=0.2), Limits()])
def test_the_held_out_rows_are_scored_once(monkeypatch, limits):
    counts, scores = [], Pipeline.decision_function
    monkeypatch.setattr(Pipeline, "decision_function", lambda self, X: counts.append(len(X)) or scores(self, X))
    model = fit_table(some_table(), limits=limits, **LOGISTIC)
    assert counts == [model.facts.rows["held out"]] == [300]


def held_out(limits, **options):
    return plan(rows=4_000_000, positives=2_000_000, limits=limits, **options).held_out


@pytest.mark.parametrize(
    "limits", [Limits(0.01, 0.95), Limits(0.05, 0.9), Limits(min_tpr=0.99, confidence=0.95), Limits(0.01)]
)
def test_enough_rows_give_away_a_tenth_of_the_limit_and_fewer_give_away_more(limits):
    found = held_out(limits)
    n = found["negative"] if limits.min_tpr == 0 else found["positive"]
    max_rate = limits.max_fpr or 1 - limits.min_tpr
    delta = 1 - (limits.confidence or 0.95)

    def given_away(rows):
        allowed = int(binom.ppf(delta, rows, max_rate)) + 1
        while binom.cdf(allowed, rows, max_rate) > delta:
            allowed -= 1
        return 1 - (allowed + 1) / (rows + 1) / max_rate

    assert found["share"] < 0.25
    if n > 10_000:  # otherwise the width of the intervals decides
        assert max(given_away(rows) for rows in range(n, n + 300)) <= 0.1
        assert max(given_away(rows) for rows in range(n - 300, n - 1)) > 0.1
    for side in ("positive", "negative"):
        assert wide(found[side]) <= 0.02


def wide(n):
    low, high = binomtest(n // 2, n).proportion_ci(0.95, method="exact")
    return high - low


def test_without_a_limit_the_width_of_intervals_decides():
    found = held_out(None)
    assert found["positive"] == found["negative"]
    assert wide(found["positive"]) <= 0.02 < wide(found["positive"] - 150)


def test_a_given_fraction_is_respected():
    assert held_out(Limits(0.01, 0.95), test_size=0.25)["share"] == 0.25
    assert held_out(Limits(0.01, 0.95), test_size=0.5)["share"] == 0.5


def test_a_fit_to_many_rows_holds_out_what_the_plan_says():
    table = some_table(n=120_000, rate=0.5)
    model = fit_table(table, **LOGISTIC)
    found = plan(table, target="label")
    assert model.facts.rows["held out"] == found.held_out["positive"] + found.held_out["negative"]
    assert found.held_out["share"] < 0.17
    low, high = model.held_out["low"], model.held_out["high"]
    assert high - low < 0.02
    assert fit_table(table, test_size=0.25, **LOGISTIC).facts.rows["held out"] == 30_000
    by_group = table.assign(customer=np.arange(len(table)) // 2)
    grouped = fit_table(by_group, group="customer", **LOGISTIC).facts.rows["held out"]
    assert grouped == pytest.approx(30_000, rel=0.01)


# The fit to all rows


def cross_fitted(model, table, splits):
    """Return the scores of clones of the final model that have not seen the rows."""
    X, scores = table[["a", "b", "c"]], np.full(len(table), np.nan)
    for train, test in splits:
        fitted = clone(model.model.estimator_).fit(X.iloc[train], table["label"].astype(str).iloc[train])
        scores[test] = positive_scores(fitted, X.iloc[test], pos_label="1")
    return scores


@pytest.mark.parametrize("limits", [Limits(0.05), Limits(min_tpr=0.8), Limits(capacity=0.1)])
def test_the_threshold_of_a_refit_keeps_the_limit_on_cross_fitted_scores(limits):
    table, other = some_table(), some_table(20_000, seed=1)
    before = fit_table(table, limits=limits, **LOGISTIC)
    model = fit_table(table, limits=limits, running=REFIT, **LOGISTIC)
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(table, table["label"])
    above = cross_fitted(model, table, splits) > model.model.threshold_
    y = table["label"].to_numpy() == 1
    if limits.max_fpr:
        assert 0.05 - 1 / np.sum(~y) < above[~y].mean() <= 0.05
    elif limits.min_tpr:
        assert 0.8 <= above[y].mean() < 0.8 + 1 / np.sum(y)
    else:
        assert 0.1 - 1 / y.size < above.mean() <= 0.1
    # It is fitted to all rows.
    again = clone(model.model.estimator_).fit(table[["a", "b", "c"]], table["label"].astype(str))
    coef = [pipeline.named_steps["model"].coef_ for pipeline in (again, model.model.estimator_)]
    np.testing.assert_array_equal(*coef)
    # The results are those of the model before, and no row is left that the model has not seen.
    assert model.held_out == before.held_out
    assert model.facts.at_threshold == before.facts.at_threshold
    assert model.held_out_rows is None
    assert model.facts.rows == {**before.facts.rows, "refit": 1200}
    # Probabilities are those of the scores minus the threshold.
    probability = model.predict_proba(other)[:, 1]
    assert abs(probability.mean() - 0.3) < 0.03
    assert abs(evaluate(model, other).measures["roc_auc"]["value"] - 0.835) < 0.03


def test_a_refit_without_a_limit_has_the_threshold_of_the_model():
    table = some_table()
    model = fit_table(table, running=REFIT, **LOGISTIC)
    assert model.facts.offset == 0.0
    again = clone(model.model).fit(table[["a", "b", "c"]], table["label"].astype(str))
    np.testing.assert_array_equal(model.positive_scores(table), again.decision_function(table[["a", "b", "c"]]))


def test_a_refit_of_groups_does_not_split_them():
    table = some_table(2000).assign(customer=np.arange(2000) // 4)
    limits = Limits(0.1, rate="group")
    model = fit_table(table, group="customer", limits=limits, running=REFIT, **LOGISTIC)
    assert model.model.n_groups_ == table.loc[table["label"] == 0, "customer"].nunique()


@pytest.mark.parametrize("name", ["linear", "boosted"])
def test_tuned_models_are_refitted(name):
    table, other = some_table(), some_table(10_000, seed=1)
    model = fit_table(table, target="label", max_fpr=0.1, model=name, running=REFIT)
    result = evaluate(model, other)
    assert result.measures["roc_auc"]["value"] > 0.8
    assert abs(result.threshold["fpr"] - 0.1) < 0.04


def test_a_refit_is_refused_where_its_threshold_means_nothing():
    table = some_table()
    with pytest.raises(ParameterError, match="after a fit to all of them; the threshold from cross-fitted scores"):
        fit_table(table, max_fpr=0.05, confidence=0.9, running=REFIT, **LOGISTIC)
    timed = table.assign(day=np.arange(len(table)) // 10)
    with pytest.raises(ParameterError, match="no later rows are left for the threshold"):
        fit_table(timed, columns=Columns(target="label", time="day"), max_fpr=0.05, model="logistic", running=REFIT)
    with pytest.raises(ParameterError, match="must not be given with per"):
        fit_table(table, limits=Limits(0.05, per="a"), running=REFIT, **LOGISTIC)
    with pytest.raises(ParameterError, match="is not possible with dask"):
        fit_table(table, max_fpr=0.05, running=Running(refit=True, dask="tcp://nowhere:1"), **LOGISTIC)


def test_the_command_refits_and_says_so(tmp_path):
    some_table().to_csv(tmp_path / "t.csv", index=False)
    given = [
        "--target",
        "label",
        "--model",
        "logistic",
        "--no-tune",
        "--max-fpr",
        "0.05",
        "--out",
        tmp_path / "m.rocmax",
    ]
    text = run("fit", tmp_path / "t.csv", *given, "--refit").stdout
    assert "then fitted to all 1200 rows; the results above are those of the model before" in text
    assert load_model(tmp_path / "m.rocmax").facts.rows["refit"] == 1200
    assert json.loads(run("fit", tmp_path / "t.csv", *given, "--refit", "--json").stdout)["rows"]["refit"] == 1200
    refused = run("fit", tmp_path / "t.csv", *given, "--refit", "--confidence", "0.9", code=2).stderr
    assert "--refit must not be given with --confidence" in refused.replace("\n", " ").replace("│", "")
    page = tmp_path / "r.html"
    run("report", tmp_path / "m.rocmax", tmp_path / "t.csv", "--out", page)
    assert "then fitted to all 1200" in page.read_text()
