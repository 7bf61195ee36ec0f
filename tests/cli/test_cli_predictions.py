"""Output of `predict`: kept columns, probabilities, the summary; standard input and output; several files."""

from __future__ import annotations

import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from helpers.commands import ROCMAX, run
from rocmax import BoostedClassifier
from rocmax.cli.app import app
from rocmax.tables import Columns, evaluate, fit_table, predict

pytestmark = pytest.mark.slow

QUICK = ["--model", "logistic", "--no-tune"]


def people(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < 0.3
    return pd.DataFrame(
        {
            "number": 10**17 + np.arange(n_rows) * 7,
            "sex": rng.choice(["m", "f"], n_rows),
            "size": (rng.normal(size=n_rows) + y).round(3),
            "note": ["=1+1" if i % 2 else "ok" for i in range(n_rows)],
            "label": np.where(y, 2, 1),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    people(600).to_csv(folder / "train.csv", index=False)
    people(200, 1).to_csv(folder / "new.csv", index=False)
    goal = ["--target", "label", "--positive", "2", "--max-fpr", "0.2", "--id", "number", "--drop", "note"]
    done = run("fit", folder / "train.csv", *goal, *QUICK, "--out", folder / "m.rocmax")
    return folder, done


def invoke(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.output + str(done.exception)
    return done


def test_columns_are_kept(made):
    folder, _ = made
    new = pd.read_csv(folder / "new.csv")
    invoke("predict", folder / "m.rocmax", folder / "new.csv", "--keep", "note", "--out", folder / "p.csv")
    found = pd.read_csv(folder / "p.csv")
    assert found.columns.tolist() == ["number", "note", "score", "label"]
    assert found["number"].tolist() == new["number"].tolist()
    assert found["note"].tolist() == new["note"].tolist()
    assert set(found["label"]) == {1, 2}
    invoke("predict", folder / "m.rocmax", folder / "new.csv", "--keep-all", "--proba", "--out", folder / "p.parquet")
    wide = pd.read_parquet(folder / "p.parquet")
    assert wide.columns.tolist() == [
        "number", "sex", "size", "note", "label_table", "score", "label", "probability",
    ]  # fmt: skip
    joined = new.merge(found, on="number", suffixes=("", "_predicted"))
    assert len(joined) == 200
    new.to_parquet(folder / "new.parquet")
    invoke("predict", folder / "m.rocmax", folder / "new.parquet", "--out", folder / "q.parquet")
    assert pd.read_parquet(folder / "q.parquet")["number"].tolist() == new["number"].tolist()
    escaped = invoke("predict", folder / "m.rocmax", folder / "new.csv", "--keep", "note", "--escape-formulas").stdout
    assert "'=1+1" in escaped
    assert "has no column 'nope'" in invoke(
        "predict", folder / "m.rocmax", folder / "new.csv", "--keep", "nope", code=1
    ).output.replace("\n", " ")


def test_one_scale_of_scores(made):
    folder, done = made
    assert "threshold for at most 20 % of false positives: score above 0; TPR " in done.stdout
    invoke("predict", folder / "m.rocmax", folder / "new.csv", "--out", folder / "p.csv")
    found = pd.read_csv(folder / "p.csv")
    assert ((found["score"] > 0) == (found["label"] == 2)).all()
    from rocmax.tables import load_model

    model = load_model(folder / "m.rocmax")
    assert model.threshold == 0.0
    np.testing.assert_allclose(evaluate(model, folder / "new.csv").scores, found["score"])


def test_the_summary_warns_of_a_shift(made):
    folder, _ = made
    done = run("predict", folder / "m.rocmax", folder / "new.csv", "--out", folder / "p.csv")
    assert "200 rows, " in done.stderr
    assert "classified as '2'" in done.stderr
    assert "Warning" not in done.stderr
    pd.read_csv(folder / "new.csv").assign(sex="unknown", size=None).to_csv(folder / "odd.csv", index=False)
    done = run("predict", folder / "m.rocmax", folder / "odd.csv", "--out", folder / "p.csv")
    assert "missing values: 'size' 100.0%" in done.stderr
    assert "unknown categories: 'sex' 100.0%" in done.stderr
    assert "Warning: the share of missing values differs from training: 'size' 100.0% (training: 0.0%)" in done.stderr
    assert "Warning: the share of unknown categories differs from training: 'sex' 100.0%" in done.stderr


def test_pipes(made):
    folder, _ = made
    train, new = ((folder / name).read_bytes() for name in ("train.csv", "new.csv"))
    goal = ["--target", "label", "--positive", "2", "--drop", "note", *QUICK]
    command = [ROCMAX, "fit", "-", *goal, "--out", "-"]
    fitted = subprocess.run(command, input=train, capture_output=True, timeout=170)
    assert fitted.returncode == 0, fitted.stderr
    assert b"positive class: '2'" in fitted.stderr
    (folder / "piped.rocmax").write_bytes(fitted.stdout)
    command = [ROCMAX, "predict", folder / "piped.rocmax", "-", "--out", "-"]
    scored = subprocess.run(command, input=new, capture_output=True, timeout=170)
    assert scored.returncode == 0, scored.stderr
    assert len(scored.stdout.splitlines()) == 201
    assert scored.stderr.startswith(b"200 rows, ")
    assert b"/dev/stdout" not in scored.stderr
    measured = subprocess.run(
        [ROCMAX, "evaluate", folder / "piped.rocmax", "-"], input=new, capture_output=True, timeout=170
    )
    assert b"on standard input: " in measured.stdout
    empty = subprocess.run([ROCMAX, "fit", "-", *goal, "--out", "-"], input=b"", capture_output=True, timeout=170)
    assert (empty.returncode, empty.stdout) == (1, b"")
    assert b"Error: standard input is empty" in empty.stderr
    command = [ROCMAX, "fit", "-", "--target", "label", "--out", "-"]
    bad = subprocess.run(command, input=b"x,label\n1,2\n2,1,3\n", capture_output=True, timeout=170)
    assert b"standard input, line 3: 3 fields where the header has 2 columns" in bad.stderr


def test_a_closed_pipe_ends_quietly(made):
    folder, _ = made
    pd.concat([people(20_000, seed) for seed in range(3)]).to_csv(folder / "many.csv", index=False)
    command = f"{ROCMAX} predict {folder / 'm.rocmax'} {folder / 'many.csv'} | head -n 2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=170)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


def test_several_files_and_patterns(made):
    folder, _ = made
    new = pd.read_csv(folder / "new.csv")
    for i in range(2):
        new.iloc[100 * i : 100 * (i + 1)].to_csv(folder / f"part-{i}.csv", index=False)
    whole = invoke("predict", folder / "m.rocmax", folder / "new.csv").stdout
    assert invoke("predict", folder / "m.rocmax", folder / "part-0.csv", folder / "part-1.csv").stdout == whole
    assert invoke("predict", folder / "m.rocmax", folder / "part-*.csv").stdout == whole
    done = invoke("evaluate", folder / "m.rocmax", folder / "part-0.csv", folder / "part-1.csv")
    assert "part-0.csv and 1 more: " in done.stdout.replace("\n", " ")
    goal = ["--target", "label", "--positive", "2", "--drop", "note", *QUICK]
    assert "trained on 150 rows" in invoke("fit", folder / "part-*.csv", *goal, "--out", folder / "n.rocmax").stdout
    done = invoke("predict", folder / "m.rocmax", folder / "part-0.csv", "-", code=2)
    assert "standard input (-) must be the only table" in done.output
    assert "no file matches" in invoke("predict", folder / "m.rocmax", folder / "none-*.csv", code=1).output


@pytest.mark.parametrize("n_rows", [1200, 80_000])
def test_probabilities_are_calibrated(n_rows):
    rng = np.random.default_rng(0)
    size = 3 * rng.normal(size=n_rows) - 2
    table = pd.DataFrame({"size": size, "label": (rng.random(n_rows) < 1 / (1 + np.exp(-size))).astype(int)})
    model = fit_table(table, target="label", model="logistic", tune=False)
    fresh = np.sort(3 * rng.normal(size=50_000) - 2)
    predicted = predict(model, pd.DataFrame({"size": fresh}), proba=True)
    found = predicted["probability"].to_numpy()
    assert (np.diff(found) > 0).all()
    assert found.min() > 0
    assert found.max() < 1
    truth = 1 / (1 + np.exp(-fresh))
    assert np.abs(found - truth).mean() < (0.05 if n_rows < 10_000 else 0.015)
    # Log-odds are linear in the score with few rows, and follow the shares of positives with many.
    log_odds = np.log(found / (1 - found))
    scores = predicted["score"].to_numpy()
    bend = np.abs(log_odds - np.polyval(np.polyfit(scores, log_odds, 1), scores)).max()
    assert (bend < 1e-6) == (n_rows < 10_000)


def test_probabilities_do_not_depend_on_the_unit_of_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = rng.random(2000) < 1 / (1 + np.exp(-2 * X[:, 0]))
    weight = rng.integers(1, 4, 2000).astype(float)
    model = BoostedClassifier(max_leaf_nodes=4, n_estimators=20, n_models=1, random_state=0)
    found, same, plain = (
        clone(model).fit(X, y, sample_weight=unit).predict_proba(X) for unit in (weight, 0.01 * weight, None)
    )
    np.testing.assert_allclose(found, same, rtol=1e-3)
    assert np.abs(found - plain).max() > 1e-3


def test_probabilities_of_scores_that_say_nothing():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=400), "label": np.arange(400) % 4 == 0})
    model = fit_table(table, target="label", positive=True, model="logistic", tune=False)
    found = predict(model, table.drop(columns="label"), proba=True).sort_values("score")["probability"].to_numpy()
    assert ((found > 0.05) & (found < 0.5)).all()
    assert (np.diff(found) >= 0).all()


def test_probabilities_from_python():
    model = fit_table(
        people(600), target="label", positive=2, model="logistic", tune=False, columns=Columns(drop="note")
    )
    found = predict(model, people(200, 1), proba=True, keep=["note"])
    assert found.columns.tolist() == ["note", "score", "label", "probability"]
    assert found["label"].dtype.kind == "i"
    order = np.argsort(found["score"].to_numpy())
    assert (np.diff(found["probability"].to_numpy()[order]) >= 0).all()
