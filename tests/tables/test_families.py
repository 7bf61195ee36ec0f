"""Families of models: each through all steps, and the choice among them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from helpers.tables import payments
from rocmax import metrics
from rocmax.cli.app import app
from rocmax.data import DataError
from rocmax.tables import (
    Columns,
    Limits,
    Running,
    compare_models,
    evaluate,
    fit_table,
    load_model,
    predict,
    write_report,
)
from rocmax.tables import tune as tuning
from rocmax.tables.tune import (
    FAMILIES,
    MODELS,
    compare_families,
    compared_parts,
    families_for,
    family_table,
    tuning_text,
)

GOAL = {"target": "label", "positive": "fraud", "max_fpr": 0.2, "columns": Columns(drop=["customer", "since"])}


def linear_table(n_rows, seed=0):
    """Ten columns, in which the score is linear."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    y = X.sum(axis=1) + rng.normal(size=n_rows) > 0
    return pd.DataFrame(X, columns=list("abcdefghij")).assign(label=y.astype(int))


def additive_table(n_rows, seed=0):
    """Six columns, each of which counts by its distance from zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    y = np.abs(X).sum(axis=1) + 0.5 * rng.normal(size=n_rows) > 6 * np.sqrt(2 / np.pi)
    return pd.DataFrame(X, columns=list("abcdef")).assign(label=y.astype(int))


def crossed_table(n_rows, seed=0):
    """Two columns, which count only together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    return pd.DataFrame(X, columns=list("ab")).assign(label=(X[:, 0] * X[:, 1] > 0).astype(int))


# Every model, through all steps.


@pytest.mark.parametrize("name", MODELS)
def test_every_model_on_a_mixed_table(tmp_path, name):
    model = fit_table(payments(300), model=name, tune=False, **GOAL)
    model.save(tmp_path / "m.rocmax")
    again = load_model(tmp_path / "m.rocmax")
    assert again.facts.model == name
    assert again.family == ("linear" if name == "auto" else name)
    new = payments(200, 1)
    new.loc[:4, "country"] = "unknown"
    new.loc[5:9, "amount"] = np.nan
    new.loc[10, "amount"] = 1e12
    found = predict(again, new)
    pd.testing.assert_frame_equal(found, predict(model, new))
    assert np.isfinite(found["score"]).all()
    assert found["label"].tolist() == np.where(found["score"] > 0, "fraud", "ok").tolist()
    result = evaluate(again, new)
    assert result.measures["roc_auc"]["value"] > 0.7
    write_report(again, new, tmp_path / "report.html")
    assert "amount" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("auto", "additive", "ensemble")])
def test_every_model_on_sparse_rows(tmp_path, name):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4 == 0
    X = sparse.csr_array((rng.normal(size=(200, 5)) + y[:, None]) * (rng.random((200, 5)) < 0.6))
    dump_svmlight_file(X, y.astype(int), str(tmp_path / "a.svm"), zero_based=False)
    model = fit_table(tmp_path / "a.svm", model=name, max_fpr=0.2, tune=False)
    model.save(tmp_path / "m.rocmax")
    again = load_model(tmp_path / "m.rocmax")
    pd.testing.assert_frame_equal(predict(again, tmp_path / "a.svm"), predict(model, tmp_path / "a.svm"))
    write_report(again, tmp_path / "a.svm", tmp_path / "report.html")


@pytest.mark.parametrize("name", ["additive", "boosted", "lightgbm"])
@pytest.mark.parametrize("measure", ["roc_auc", "tpr_at_fpr"])
@pytest.mark.slow
def test_new_models_are_tuned(name, measure):
    found = fit_table(payments(240), model=name, limits=Limits(measure=measure), **GOAL)
    assert found.facts.tuning["folds"] == (5 if name == "boosted" else 10)
    assert found.facts.tuning["chosen"].keys() >= found.facts.tuning["tried"].keys()
    assert json.loads(json.dumps(found.facts.to_dict())) == found.facts.to_dict()


def test_additive_models_are_additive():
    table = payments(300)
    model = fit_table(table, model="additive", tune=False, **GOAL)
    rows = {"amount": [0.3, 8.0], "country": ["FR", "<b>é</b>"], "age": [np.nan, 70.0]}
    base = table.head(40).drop(columns="label")
    for first in rows:
        for second in rows:
            if first == second:
                continue
            score = {
                (i, j): predict(model, base.assign(**{first: rows[first][i], second: rows[second][j]}))["score"]
                for i in (0, 1)
                for j in (0, 1)
            }
            both = score[1, 1] - score[0, 1]
            np.testing.assert_allclose(both, score[1, 0] - score[0, 0], atol=1e-9)


# The choice.


def test_the_best_mean_is_chosen_and_the_table_says_how_clear_it_is():
    steps = np.array([0.01, -0.01, 0.01, -0.01])
    scores = {"linear": 0.5 + steps, "additive": np.full(4, 0.545), "boosted": 0.55 - steps}
    table = family_table(scores, dict.fromkeys(scores, 1.0))
    gap = scores["boosted"] - scores["linear"]
    assert table[0]["difference"] == pytest.approx(-0.05)
    assert table[0]["difference_error"] == pytest.approx(gap.std(ddof=1) / 2)
    assert table[0]["standard_error"] == pytest.approx(steps.std(ddof=1) / 2)
    # Additive is 0.005 below the best, and the standard error of that is 0.0058.
    assert [row["chosen"] for row in table] == [False, False, True]
    same = family_table({"linear": [0.5, 0.6], "boosted": [0.5, 0.6]}, {"linear": 1.0, "boosted": 1.0})
    assert [row["chosen"] for row in same] == [True, False]
    single = family_table({"linear": [0.5], "boosted": [0.6]}, {"linear": 1.0, "boosted": 1.0})
    assert [row["chosen"] for row in single] == [False, True]
    assert single[0]["standard_error"] is single[0]["difference_error"] is None


@pytest.mark.parametrize(
    ("make", "family"), [(linear_table, "linear"), (additive_table, "additive"), (crossed_table, "ensemble")]
)
@pytest.mark.slow
def test_auto_chooses_the_family_of_the_data(tmp_path, make, family):
    model = fit_table(make(400), target="label")
    assert model.family == family
    assert repr(model) == f"TableModel('auto', family='{family}', positive='1')"
    found = model.facts.families
    assert found["family"] == family
    assert (found["rows"], found["folds"], found["rows in a fold"]) == (300, 10, 240)
    assert [row["family"] for row in found["table"]] == list(FAMILIES)
    assert [row["family"] for row in found["table"] if row["chosen"]] == [family]
    assert max(row["difference"] for row in found["table"]) == 0
    model.save(tmp_path / "m.rocmax")
    assert load_model(tmp_path / "m.rocmax").facts.families == found
    # The model is the one of that name.
    named = fit_table(make(400), target="label", model=family)
    new = make(300, 1)
    pd.testing.assert_frame_equal(predict(model, new), predict(named, new))
    assert named.facts.families is None
    write_report(model, new, tmp_path / "report.html")
    assert f"chosen: {family}" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_the_table_is_printed(tmp_path):
    crossed_table(200).to_csv(tmp_path / "a.csv", index=False)
    command = ["fit", tmp_path / "a.csv", "--target", "label", "--out", tmp_path / "m.rocmax"]
    done = CliRunner().invoke(app, [*map(str, command)])
    assert done.exit_code == 0, done.output
    where = "in cross-validation on 150 training rows, in 10 folds of at most 120 training rows"
    assert f"families: AUC {where}" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    (chosen,) = (line for line in lines if line[-1:] == ["chosen"])
    assert chosen[0] == "boosted"
    assert all(any(line[:1] == [name] for line in lines) for name in FAMILIES)


def test_without_lightgbm(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    heard = []
    table = linear_table(60)[["a", "b", "label"]]
    model = fit_table(table, target="label", running=Running(notify=heard.append))
    assert [row["family"] for row in model.facts.families["table"]] == ["linear", "additive"]
    assert heard == model.notes
    assert "the family boosted is left out: boosted trees need lightgbm: pip install 'rocmax[boost]'" in heard[0]
    for name in ("boosted", "ensemble", "lightgbm"):
        with pytest.raises(ImportError, match=r"rocmax\[boost\]"):
            fit_table("no such file.csv", target="label", model=name)
    found = compare_models(table, target="label", n_splits=2, tune=False)
    assert sorted(found.table.index) == ["additive", "linear", "logistic"]
    left_out = [f"the family {name} is left out" for name in ("boosted", "ensemble")]
    assert [note.split(":")[0] for note in found.notes[:-1]] == left_out


def test_svmlight_files_have_no_additive_model(tmp_path):
    table = linear_table(60)
    dump_svmlight_file(table.drop(columns="label"), table["label"], str(tmp_path / "a.svm"), zero_based=False)
    with pytest.raises(DataError, match="the model additive requires a table with columns; got svmlight data"):
        fit_table(tmp_path / "a.svm", model="additive")
    with pytest.raises(DataError, match="the model additive requires a table with columns"):
        compare_models(tmp_path / "a.svm", models=["linear", "additive"])
    assert families_for(None, 60)[0] == ["linear", "boosted"]
    found = compare_models(tmp_path / "a.svm", n_splits=2, tune=False)
    assert sorted(found.table.index) == ["boosted", "linear", "logistic"]
    reason = "is left out: it requires a table with columns, not svmlight data"
    assert found.notes[:-1] == [f"the family {name} {reason}" for name in ("additive", "ensemble")]
    assert found.notes[-1] == "2 splits cannot give a p-value below 0.5; use at least n_splits=6"


def test_wide_tables_are_compared_without_the_additive_family(monkeypatch):
    kinds = {"a": "number", "b": "number", "c": "text"}
    assert families_for(kinds, 60) == (list(FAMILIES), [])
    monkeypatch.setattr(tuning, "RULES", replace(tuning.RULES, max_spline_columns=1))
    found, (note,) = families_for(kinds, 60)
    assert found == ["linear", "boosted", "ensemble"]
    assert note.startswith("the family additive is left out: 2 numeric columns")


def test_large_tables_are_compared_without_the_ensemble():
    assert families_for({"a": "number"}, 20_000) == (list(FAMILIES), [])
    found, (note,) = families_for({"a": "number"}, 20_001)
    assert found == ["linear", "additive", "boosted"]
    assert note == "the family ensemble is left out: 20,001 rows are too many for the time of a comparison"


def test_an_ensemble_is_tuned_saved_evaluated_and_fitted_to_all_rows(tmp_path):
    table, new = crossed_table(300), crossed_table(200, 1)
    model = fit_table(table, target="label", model="ensemble", max_fpr=0.2, running=Running(refit=True))
    weights = model.facts.tuning["chosen"]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert model.facts.rows["refit"] == 300
    assert model.model.estimator_.named_steps["model"].weights_ == weights
    model.save(tmp_path / "m.rocmax")
    again = load_model(tmp_path / "m.rocmax")
    pd.testing.assert_frame_equal(predict(again, new), predict(model, new))
    write_report(again, new, tmp_path / "report.html")
    assert "tuned in 10 folds" in tuning_text(model.facts.tuning)


@pytest.mark.slow
def test_groups_are_not_split_in_the_choice(monkeypatch):
    asked = []
    splits = tuning.tuning_splits
    monkeypatch.setattr(tuning, "tuning_splits", lambda *args, **more: asked.append(args[1]) or splits(*args, **more))
    table = linear_table(160)[["a", "b", "label"]].assign(who=[f"p{i // 4}" for i in range(160)])
    model = fit_table(table, target="label", group="who")
    assert model.facts.families["folds"] == 10
    assert len(asked) == 1 + len(FAMILIES)
    assert all(set(groups) <= set(table["who"]) for groups in asked)


def test_too_few_rows_to_compare():
    table = linear_table(40).assign(who=["p", "q"] * 20)
    model = fit_table(table, target="label", group="who", test_size=0.5)
    assert model.family == "linear"
    assert model.facts.families is None
    assert "not tuned: one class has too few rows or groups for cross-validation" in model.notes


@pytest.mark.slow
def test_a_large_table_is_decided_on_a_part_of_it_if_the_part_is_clear(monkeypatch):
    monkeypatch.setattr(tuning, "RULES", replace(tuning.RULES, max_compared=50, max_compared_in_window=1))
    model = fit_table(crossed_table(400), target="label")
    assert model.facts.families["rows"] == 100
    assert model.facts.families["rows in a fold"] == 80
    assert model.facts.tuning["rows in a fold"] == 240
    new = crossed_table(1000, 1)
    assert metrics.roc_auc_score(new["label"], predict(model, new)["score"]) > 0.9


def rare_steps(n_rows, seed):
    """A linear column, and a step in which two others count together: trees find it in many rows only."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    score = 2 * X[:, 0] + 1.5 * np.sign(X[:, 1] * X[:, 2]) + rng.logistic(size=n_rows)
    return pd.DataFrame(X, columns=list("abcdef")).assign(label=(score > 0).astype(int))


@pytest.mark.slow
def test_a_family_that_wins_with_many_rows_only_is_chosen(monkeypatch):
    monkeypatch.setattr(tuning, "RULES", replace(tuning.RULES, max_compared=60, max_compared_in_window=1))
    monkeypatch.setattr(tuning, "families_for", lambda kinds, n_rows: (["linear", "boosted"], []))
    model = fit_table(rare_steps(1_600, 2), target="label")
    assert model.family == "boosted"
    assert model.facts.families["rows"] > 120


class Curve:
    """A family with given scores by the number of rows, the same in all folds but for a pattern."""

    def __init__(self, **by_rows):
        self.by_rows = {int(rows[1:]): value for rows, value in by_rows.items()}
        self.asked = []

    def fit(self, X, y, groups):
        self.asked.append(y.size)
        self.tuning_ = {"folds": 4, "rows in a fold": y.size * 3 // 4}
        return self

    def held_out_scores(self, X, y, groups):
        mean, spread = self.by_rows[y.size]
        return mean + spread * np.array([-1.0, 1.0, -1.0, 1.0])


def raced(sizes, n_rows, **curves):
    """Compare families with given curves on parts of these sizes."""
    models = {name: Curve(**curve) for name, curve in curves.items()}
    found = compare_families(models, np.zeros((n_rows, 1)), np.zeros(n_rows), None, [np.arange(n) for n in sizes])
    return found, {name: model.asked for name, model in models.items()}


def test_families_within_the_noise_of_a_part_are_compared_on_more_rows():
    # The measured case behind the rule: a lead of half a standard error on a tenth of the rows, a large one on all.
    found, asked = raced(
        [10, 100],
        100,
        linear={"n10": (0.0710, 0.0), "n100": (0.038, 0.0)},
        boosted={"n10": (0.0798, 0.0277), "n100": (0.110, 0.01)},
    )
    assert found["family"] == "boosted"
    assert asked == {"linear": [10, 100], "boosted": [10, 100]}
    assert [row["rows"] for row in found["table"]] == [100, 100]
    assert (found["rows"], found["rows in a fold"]) == (100, 75)


def test_a_clear_lead_of_the_more_flexible_family_is_decided_on_the_first_part():
    found, asked = raced(
        [10, 100], 100, linear={"n10": (0.5, 0.0)}, additive={"n10": (0.55, 0.01)}, boosted={"n10": (0.7, 0.01)}
    )
    assert found["family"] == "boosted"
    assert asked == {"linear": [10], "additive": [10], "boosted": [10]}


def test_a_lead_of_the_simpler_family_is_checked_with_more_rows():
    curves = {"linear": {"n10": (0.7, 0.0), "n40": (0.7, 0.0), "n100": (0.7, 0.0)}}
    crossing = {"n10": (0.5, 0.01), "n40": (0.6, 0.01), "n100": (0.8, 0.01)}
    found, asked = raced([10, 40, 100], 100, **curves, boosted=crossing)
    assert found["family"] == "boosted"
    assert asked["linear"] == [10, 40, 100]
    # More rows do not help the flexible family: the rest is not spent on it.
    flat = {"n10": (0.5, 0.01), "n40": (0.5, 0.01)}
    found, asked = raced([10, 40, 100], 100, **curves, boosted=flat)
    assert found["family"] == "linear"
    assert asked["boosted"] == [10, 40]


def test_families_that_are_out_keep_the_result_of_their_last_part():
    found, asked = raced(
        [10, 100],
        100,
        linear={"n10": (0.5, 0.0)},
        additive={"n10": (0.69, 0.0), "n100": (0.70, 0.0)},
        boosted={"n10": (0.70, 0.05), "n100": (0.705, 0.02)},
    )
    assert asked == {"linear": [10], "additive": [10, 100], "boosted": [10, 100]}
    assert [row["rows"] for row in found["table"]] == [10, 100, 100]
    assert [row["difference"] for row in found["table"]] == pytest.approx([-0.2, -0.005, 0.0])
    assert [row["chosen"] for row in found["table"]] == [False, False, True]


def test_parts_keep_the_rare_class_and_the_window_and_end_with_all_rows():
    positive = np.arange(100_000) % 50 == 0
    sizes = [(positive[rows].sum(), rows.size) for rows in compared_parts(positive, Limits(), 0)]
    assert sizes == [(2_000, 6_000), (2_000, 18_000), (2_000, 100_000)]
    first, last = compared_parts(positive, Limits(0.002), 0)
    assert (positive[first].sum(), first.size, last.size) == (2_000, 22_000, 100_000)
    assert np.all(np.diff(first) > 0)
    (rows,) = compared_parts(positive[:20_000], Limits(0.001), 0)
    np.testing.assert_array_equal(rows, np.arange(20_000))
    found = [rows.size for rows in compared_parts(np.arange(1_000_000) % 2 == 0, Limits(), 0)]
    assert found == [8_000, 32_000, 128_000, 1_000_000]


def test_after_two_parts_the_most_flexible_family_and_the_best_of_the_others_go_on():
    _, asked = raced(
        [10, 20, 40],
        100,
        linear={"n10": (0.70, 0.2), "n20": (0.71, 0.2), "n40": (0.71, 0.0)},
        additive={"n10": (0.70, 0.2), "n20": (0.70, 0.2), "n40": (0.72, 0.0)},
        boosted={"n10": (0.65, 0.2), "n20": (0.66, 0.2), "n40": (0.72, 0.2)},
    )
    assert asked == {"linear": [10, 20, 40], "additive": [10, 20], "boosted": [10, 20, 40]}
