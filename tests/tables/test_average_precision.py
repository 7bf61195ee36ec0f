"""The average precision from the command line to the trees: trained for, tuned by, evaluated and compared."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score
from typer.testing import CliRunner

from rocmax import BoostedClassifier, PartialAUCClassifier
from rocmax.boosted.search import selection_score
from rocmax.cli.app import app
from rocmax.measures import find_measure
from rocmax.tables import Limits, evaluate, fit_table, load_model, predict, write_report

TABLES = Path(os.environ.get("ROCMAX_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "tables"
LIMITS = Limits(measure="average_precision")


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(1500, 6, weights=[0.85], class_sep=0.8, flip_y=0.05, random_state=0)
    return pd.DataFrame(X, columns=list("abcdef")).assign(y=y)


@pytest.mark.parametrize(
    ("name", "tune"), [("linear", True), ("linear", False), ("boosted", False), ("logistic", True)]
)
def test_a_table_is_fitted_and_evaluated(table, name, tune, tmp_path):
    model = fit_table(table[:1000], target="y", limits=LIMITS, model=name, tune=tune)
    found = evaluate(model, table[1000:]).measures
    expected = average_precision_score(table.y[1000:], predict(model, table[1000:]).score)
    assert found["average_precision"]["value"] == pytest.approx(expected)
    assert found["average_precision"]["low"] < expected < found["average_precision"]["high"]
    assert model.facts.measure == next(iter(found)) == "average_precision"
    held_out = table.iloc[model.held_out_rows]
    assert model.held_out["value"] == pytest.approx(average_precision_score(held_out.y, predict(model, held_out).score))
    write_report(model, table[1000:], tmp_path / "report.html")
    cell = f'<td data-label="average precision"><span>{expected:.4f}<br>'
    assert cell in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(("share", "expected"), [(0.2, 0.25), (0.01, 0.02), (0.6, 0.5)])
def test_linear_models_are_trained_for_as_many_negatives_as_positives(share, expected):
    rng = np.random.default_rng(0)
    y = (np.arange(2000) < 2000 * share).astype(int)
    frame = pd.DataFrame({"a": rng.normal(size=2000) + y, "b": rng.normal(size=2000), "y": y})
    fitted = fit_table(frame, target="y", limits=LIMITS, model="linear", tune=False).model.named_steps["model"]
    assert isinstance(fitted, PartialAUCClassifier)
    assert fitted.max_fpr == pytest.approx(expected, abs=0.002)
    limited = fit_table(
        frame, target="y", max_fpr=0.3, limits=Limits(measure="average_precision"), model="linear", tune=False
    )
    assert limited.model.estimator_.named_steps["model"].max_fpr == 0.3


def test_trees_are_selected_by_it(table):
    X, y = table.drop(columns="y"), table.y.to_numpy()
    model = BoostedClassifier("average_precision", n_models=1, random_state=0).fit(X, y)
    rng = np.random.default_rng(1)
    scores, weight = rng.integers(0, 20, y.size).astype(float), rng.random(y.size)
    score = selection_score(find_measure("average_precision"))(y == 1, scores, weight)
    assert score == pytest.approx(average_precision_score(y, scores, sample_weight=weight))
    assert model.used_objective_ == "binary"
    assert model.score(X, y) == pytest.approx(average_precision_score(y, model.decision_function(X)))
    # The threshold is that of the break-even point on held-out scores: about as many alerts as positives.
    assert (model.predict(X) == 1).sum() == pytest.approx(y.sum(), rel=0.2)


def test_the_commands_on_a_real_table(tmp_path):
    path = TABLES / "german-credit.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there; set ROCMAX_DATA to the folder that holds tables/{path.name}")

    def run(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.stdout

    named = ["--target", "risk", "--positive", "2", "--measure", "average_precision"]
    assert "average precision: 0." in run("fit", path, *named, "--model", "linear", "--out", tmp_path / "m.rocmax")
    value = load_model(tmp_path / "m.rocmax").held_out["value"]
    assert value > 0.45  # 0.3 by chance
    found = json.loads(run("evaluate", tmp_path / "m.rocmax", path, "--json"))["measures"]
    assert next(iter(found)) == "average_precision"
    text = run("compare", path, *named, "--models", "linear,logistic", "--splits", "2", "--no-tune")
    assert text.startswith("average precision of class '2', 2 splits")
