"""The command ``rocmax fit --dask`` on a real cluster."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rocmax.data import DataError
from rocmax.metrics import partial_auc_score
from rocmax.tables import Limits, Reading, Running, fit_table, load_model, predict

pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")
typer_testing = pytest.importorskip("typer.testing")
from rocmax.tables import on_cluster  # noqa: E402  # after the check that dask is there

pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(scope="module")
def address():
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch):
    monkeypatch.setattr(on_cluster, "FETCHED", 900)


def payments(n, seed=0):
    rng = np.random.default_rng(seed)
    fraud = rng.random(n) < 0.1
    amount = rng.normal(size=n) + 1.5 * fraud
    amount[::50] = np.nan
    shop = np.where(rng.random(n) < 0.3 + 0.4 * fraud, "web", "street")
    return pd.DataFrame({"amount": amount, "age": rng.normal(size=n), "shop": shop, "label": fraud.astype(int)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("payments")
    table = payments(6000)
    for i in range(4):
        table[1500 * i : 1500 * (i + 1)].to_parquet(folder / f"part{i}.parquet")
    return folder


def run(*arguments):
    from rocmax.cli.app import app

    return typer_testing.CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_fit_on_a_cluster(address, folder, tmp_path):
    out = tmp_path / "model.rocmax"
    pattern = folder / "*.parquet"
    options = ["--target", "label", "--max-fpr", "0.1", "--out", out]
    done = run("fit", pattern, "--dask", address, *options, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["rows"]["train"] + facts["rows"]["held out"] == 6000
    assert facts["classes"]["positive"] == int(payments(6000)["label"].sum())
    assert facts["features"] == {"amount": "number", "age": "number", "shop": "text"}
    local = fit_table(pattern, target="label", max_fpr=0.1, model="linear", tune=False)
    new = payments(6000, seed=1)
    scores, expected = (predict(model, new)["score"].to_numpy() for model in (load_model(out), local))
    assert np.corrcoef(scores, expected)[0, 1] > 0.99
    assert (scores[new["label"] == 0] > 0).mean() == pytest.approx(0.1, abs=0.03)


def test_boosted_trees_with_a_guarantee(address, folder, tmp_path):
    pytest.importorskip("xgboost")
    out = tmp_path / "model.rocmax"
    options = ["--target", "label", "--max-fpr", "0.1", "--confidence", "0.9", "--model", "boosted", "--no-tune"]
    done = run("fit", folder / "*.parquet", "--dask", address, *options, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["model"] == "boosted"
    new = payments(6000, seed=1)
    found = predict(load_model(out), new)["score"].to_numpy()
    assert np.mean(found[new["label"] == 0] > 0) < 0.1
    local = fit_table(folder / "*.parquet", target="label", max_fpr=0.1, model="boosted", tune=False)
    value, expected = (
        partial_auc_score(new["label"], scores, max_fpr=0.1)
        for scores in (found, predict(local, new)["score"].to_numpy())
    )
    assert value == pytest.approx(expected, abs=0.03)


def test_fit_without_a_limit(address, folder):
    model = fit_table(folder / "*.parquet", target="label", model="linear", tune=False, running=Running(dask=address))
    assert model.facts.measure == "roc_auc"
    assert model.held_out["value"] > 0.8


def test_fit_with_a_required_rate(address, folder):
    model = fit_table(
        folder / "*.parquet",
        target="label",
        limits=Limits(min_tpr=0.8),
        model="linear",
        tune=False,
        running=Running(dask=address),
    )
    assert model.facts.at_threshold["tpr"] >= 0.8
    assert model.model.estimator_.named_steps["model"].min_tpr == 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "additive"], "--model must be auto, linear or boosted with --dask"),
        (["--group", "shop"], "--group is not possible with --dask"),
        (["--target", "no"], "the files have no column 'no'"),
    ],
)
def test_what_is_not_possible(address, folder, tmp_path, options, message):
    start = ["fit", folder / "*.parquet", "--dask", address, "--target", "label", "--out", tmp_path / "model.rocmax"]
    done = run(*start, *options)
    assert done.exit_code != 0
    assert message in " ".join(done.output.replace("│", " ").split())


def test_other_files_and_schedulers(address, tmp_path):
    csv = tmp_path / "a.csv"
    payments(10).to_csv(csv)
    done = run("fit", csv, "--dask", address, "--target", "label", "--out", tmp_path / "model.rocmax")
    assert "--dask requires parquet files" in " ".join(done.output.replace("│", " ").split())


def write_three(folder, change):
    """Write three files, the second one with a change; return the options of a fit."""
    for i in range(3):
        table = payments(500, seed=i).assign(label=lambda rows: np.where(rows["label"] == 1, "yes", "no"))
        (change(table) if i == 1 else table).to_parquet(folder / f"part{i}.parquet")
    return {"target": "label", "positive": "yes", "model": "linear", "tune": False}


def test_a_partition_without_a_label_is_named(address, tmp_path):
    options = write_three(tmp_path, lambda table: table.assign(label=table["label"].where(table.index != 7)))
    with pytest.raises(ValueError, match="partition 1 must have a label in each row"):
        fit_table(tmp_path / "*.parquet", **options, running=Running(dask=address))
    model = fit_table(
        tmp_path / "*.parquet", **options, running=Running(dask=address), reading=Reading(skip_unlabeled=True)
    )
    assert model.facts.classes["positive"] + model.facts.classes["negative"] == 1499


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda table: table.drop(columns="age"),
            r"part1.parquet must have the columns of .*part0.parquet; the difference is \['age'\]",
        ),
        (
            lambda table: table.assign(extra=1),
            r"part1.parquet must have the columns of .*; the difference is \['extra'\]",
        ),
        (
            lambda table: table.assign(age="old"),
            r"part1.parquet must have columns of the types of .*part0.parquet; .* age .*double vs large_string",
        ),
    ],
)
def test_a_file_with_other_columns_is_named(address, tmp_path, change, message):
    options = write_three(tmp_path, change)
    with pytest.raises(DataError, match=message):
        fit_table(tmp_path / "*.parquet", **options, running=Running(dask=address))


def test_files_that_do_not_exist_or_are_not_parquet(address, tmp_path):
    options = {"target": "label", "model": "linear", "tune": False, "running": Running(dask=address)}
    with pytest.raises(DataError, match=r"no file matches .*no\*.parquet"):
        fit_table(tmp_path / "no*.parquet", **options)
    with pytest.raises(DataError, match=r"no.parquet does not exist"):
        fit_table(tmp_path / "no.parquet", **options)
    (tmp_path / "bad.parquet").write_text("something else")
    with pytest.raises(DataError, match=r"bad.parquet cannot be read: ArrowInvalid"):
        fit_table(tmp_path / "bad.parquet", **options)


def test_columns_without_values_and_directories(address, tmp_path):
    folder = tmp_path / "data.parquet"
    folder.mkdir()
    options = write_three(folder, lambda table: table.assign(age=None, amount=np.arange(500)))
    model = fit_table(folder, **options, running=Running(dask=address))
    assert model.facts.features["age"] == "number"


@pytest.mark.parametrize("scheduler", ["nonsense", "foo://x:1", "tcp://localhost"])
def test_no_client_is_made_of_a_bad_address(folder, monkeypatch, scheduler):
    """Such a client writes a traceback when it is deleted."""
    monkeypatch.setattr(distributed.Client, "__init__", lambda *_, **__: pytest.fail("there must be no client"))
    with pytest.raises(OSError, match=f"the scheduler {scheduler} must be reachable; (missing|unknown)"):
        fit_table(folder / "*.parquet", target="label", model="linear", tune=False, running=Running(dask=scheduler))


def test_a_label_that_the_samples_do_not_have(address, tmp_path, monkeypatch):
    monkeypatch.setattr(on_cluster, "FETCHED", 300)
    table = payments(5000).assign(label=lambda rows: np.where(rows["label"] == 1, "yes", "no"))
    table.loc[7, "label"] = "perhaps"
    table.to_parquet(tmp_path / "part0.parquet")
    with pytest.raises(ValueError, match="perhaps"):
        fit_table(
            tmp_path / "part0.parquet",
            target="label",
            positive="yes",
            model="linear",
            tune=False,
            running=Running(dask=address),
        )


def test_partitions_without_rows_or_labels(address, tmp_path):
    table = payments(3000)
    table[:1500].to_parquet(tmp_path / "a.parquet")
    table[1500:].to_parquet(tmp_path / "b.parquet")
    expected = fit_table(str(tmp_path / "*.parquet"), target="label", max_fpr=0.1, running=Running(dask=address))
    table[:0].to_parquet(tmp_path / "c.parquet")
    table[:20].assign(label=pd.array([None] * 20, dtype="Int64")).to_parquet(tmp_path / "d.parquet")
    options = {"target": "label", "max_fpr": 0.1, "reading": Reading(skip_unlabeled=True)}
    found = fit_table(str(tmp_path / "*.parquet"), running=Running(dask=address), **options)
    assert sum(found.facts.classes.values()) == sum(expected.facts.classes.values()) == 3000
