"""Boosted trees on a cluster: the objective of one process, its quality, and fits that lose workers or their driver."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_classification

from helpers.lost_workers import kill_one
from rocmax import BoostedClassifier, metrics
from rocmax.boosted.objective import TreeObjective
from rocmax.data import DataError
from rocmax.losses import WindowPairs
from rocmax.measures import PartialAUCMeasure

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
xgboost = pytest.importorskip("xgboost")
import dask.array as da  # noqa: E402  # after the check that dask is there

from rocmax.dask import DaskBoostedClassifier, partial_auc_score  # noqa: E402
from rocmax.dask import boosted as module  # noqa: E402
from rocmax.dask.boosted import Grower, SharedObjective, SharedScore  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]

LOSS = WindowPairs("sigmoid", max_fpr=0.05, soft_tail=True, scale=2.0)
SMALL = {"max_leaf_nodes": 6, "n_estimators": 20, "random_state": 0}


def scored(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.1
    return y, rng.normal(size=n) + 1.5 * y, rng.uniform(0.2, 3.0, n)


def matrix(y, weight=None):
    return xgboost.DMatrix(np.zeros((y.size, 1)), label=y.astype(float), weight=weight)


def together(monkeypatch, calls):
    """Return the results of calls of several workers, whose exchanges are sums and minima over threads."""
    barrier, given, lock = threading.Barrier(len(calls)), {}, threading.Lock()

    def allreduce(values, operation):
        with lock:
            given[threading.get_ident()] = values
        barrier.wait()
        parts = [given[key] for key in sorted(given)]
        found = np.sum(parts, axis=0) if operation == xgboost.collective.Op.SUM else np.min(parts, axis=0)
        barrier.wait()
        return found

    monkeypatch.setattr(xgboost.collective, "allreduce", allreduce)
    found = [None] * len(calls)

    def run(i):
        found[i] = calls[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_that_of_one_process(weighted):
    y, scores, weight = scored()
    weight = weight / weight.mean() if weighted else None
    one, many = TreeObjective(y, weight, 1, LOSS), SharedObjective(LOSS, 1, 0, None)
    rows = matrix(y, weight)
    start = np.zeros(y.size)
    np.testing.assert_allclose(many(start, rows), one(start), rtol=1e-6, atol=1e-9)
    for expected, found in zip(one(scores), many(scores, rows), strict=True):
        # A bin is 0.002 wide, a thousandth of the scale of the loss.
        assert np.abs(found - expected).max() < 5e-3 * np.abs(expected).max()
        assert found.sum() == pytest.approx(expected.sum(), rel=1e-3, abs=1e-6)


def test_workers_compute_together_what_one_computes_alone(monkeypatch):
    y, scores, weight = scored()
    weight = weight.astype(np.float32)
    plan = SharedObjective(LOSS, 0, 0, None), SharedScore(PartialAUCMeasure(0.0, 0.05), 9, 20)
    alone = [one(scores, matrix(y, weight)) for one in plan]
    parts = np.array_split(np.arange(y.size), 3)
    parts.append(np.arange(0))  # a worker without rows
    objectives = [SharedObjective(LOSS, 0, 0, None) for _ in parts]
    found = together(
        monkeypatch,
        [lambda o=o, p=p: o(scores[p], matrix(y[p], weight[p])) for o, p in zip(objectives, parts, strict=True)],
    )
    np.testing.assert_allclose(np.concatenate(found, axis=1), alone[0], rtol=1e-9)
    assert len({one.factor for one in objectives}) == 1
    measures = [SharedScore(PartialAUCMeasure(0.0, 0.05), 9, 20) for _ in parts]
    found = together(
        monkeypatch,
        [lambda o=o, p=p: o(scores[p], matrix(y[p], weight[p])) for o, p in zip(measures, parts, strict=True)],
    )
    assert [value for _, value in found] == pytest.approx([alone[1][1]] * 4)


def test_the_held_out_score_is_the_measure_up_to_the_bins():
    y, scores, weight = scored()
    weight = weight.astype(np.float32)
    found = SharedScore(PartialAUCMeasure(0.0, 0.2), 9, 20)(scores, matrix(y, weight))
    expected = metrics.partial_auc_score(y, scores, max_fpr=0.2, sample_weight=weight)
    assert found == ("score", pytest.approx(expected, abs=2e-3))


def test_a_worker_adds_at_most_256_kb_to_a_round(monkeypatch):
    y, scores, _ = scored()
    sent = []
    monkeypatch.setattr(xgboost.collective, "allreduce", lambda values, _: sent.append(values.nbytes) or values)
    SharedObjective(LOSS, 0, 9, None)(scores, matrix(y))
    SharedScore(PartialAUCMeasure(0.0, 0.05), 9, 20)(scores, matrix(y))
    assert 100_000 < sum(sent) <= 256_000


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(9000, 12, n_informative=8, weights=[0.9], class_sep=0.8, random_state=1)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    return X[:6000], y[:6000], X[6000:], y[6000:]


def collections(X, y, size=1500):
    return da.from_array(X, chunks=(size, X.shape[1])), da.from_array(y, chunks=size)


@pytest.mark.parametrize("objective", ["binary", "window"])
def test_a_fit_is_about_that_of_one_process(client, data, objective):
    X, y, test, labels = data
    options = {**SMALL, "objective": objective, "n_estimators": 60, "max_fpr": 0.1}
    many = DaskBoostedClassifier(**options).fit(*collections(X, y))
    one = BoostedClassifier(engine="xgboost", n_models=1, **options).fit(X, y)
    assert many.used_objective_ == objective
    assert many.n_estimators_ == 60
    found, expected = (
        metrics.partial_auc_score(labels, model.decision_function(test), max_fpr=0.1)
        for model in (many.to_local(), one)
    )
    assert found == pytest.approx(expected, abs=0.03)
    local = many.to_local()
    assert np.corrcoef(local.decision_function(test), one.decision_function(test))[0, 1] > 0.97
    assert local.predict(test)[labels == 0].mean() == pytest.approx(0.1, abs=0.04)
    rows = collections(test, labels)
    np.testing.assert_array_equal(many.predict(rows[0]).compute(), local.predict(test))
    assert many.score(*rows) == pytest.approx(found, abs=1e-9)
    scores = many.positive_scores(rows[0])
    assert partial_auc_score(rows[1], scores, max_fpr=0.1).value == pytest.approx(found, abs=1e-9)
    # Probabilities are calibrated on held-out rows.
    share = local.predict_proba(test)[:, 1]
    assert share.mean() == pytest.approx(labels.mean(), abs=0.03)


def test_the_search_finds_size_rounds_and_objective(client, data, capsys):
    X, y, test, labels = data
    model = DaskBoostedClassifier(max_fpr=0.1, learning_rate=0.3, random_state=0, verbose=True)
    model.fit(*collections(X, y))
    tried = model.cv_results_
    assert tried["objective"] == ["binary", "binary", "window"]
    assert tried["max_leaf_nodes"][:2] == [6, 31]
    best = int(np.argmax(tried["mean_score"]))
    assert (model.max_leaf_nodes_, model.n_estimators_) == (tried["max_leaf_nodes"][best], tried["n_estimators"][best])
    assert "6 leaves, binary: held-out score" in capsys.readouterr().err
    one = BoostedClassifier(engine="xgboost", n_models=1, max_fpr=0.1, random_state=0).fit(X, y)
    found, expected = (
        metrics.partial_auc_score(labels, fitted.decision_function(test), max_fpr=0.1)
        for fitted in (model.to_local(), one)
    )
    assert found > expected - 0.05


def test_categories_weights_names_and_labels(client):
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 4000
    shop = rng.choice(["web", "street", "phone"], n)
    amount = rng.normal(size=n)
    chance = expit(2.0 * (shop == "phone") + amount - 2.0)
    label = np.where(rng.random(n) < chance, "fraud", "ok")
    weight = rng.integers(0, 3, n).astype(float)
    table = pandas.DataFrame({"shop": shop, "amount": amount, "label": label, "weight": weight})
    table.loc[::40, "shop"] = None
    frame = frames.from_pandas(table, npartitions=3)
    options = {**SMALL, "max_fpr": 0.2, "categorical_features": ["shop"], "pos_label": "fraud"}
    model = DaskBoostedClassifier(**options).fit(frame[["shop", "amount"]], frame["label"], frame["weight"])
    assert model.classes_.tolist() == ["fraud", "ok"]
    assert model.categories_[0].tolist() == ["phone", "street", "web"]
    assert model.feature_names_in_.tolist() == ["shop", "amount"]
    local = model.to_local()
    rows = table[["shop", "amount"]]
    one = BoostedClassifier(engine="xgboost", n_models=1, **options).fit(rows, label, weight)
    assert np.corrcoef(local.positive_scores(rows), one.positive_scores(rows))[0, 1] > 0.97
    found = model.positive_scores(frame[["shop", "amount"]]).compute()
    np.testing.assert_allclose(found, local.positive_scores(rows))
    numbers = frames.from_pandas(table.assign(shop=shop), npartitions=3)
    with pytest.raises(DataError, match=r"partition \d: .*got the text '\w+' in column 'shop'"):
        DaskBoostedClassifier(**SMALL).fit(numbers[["shop", "amount"]], numbers["label"])


def test_what_is_refused(client, data):
    X, y, _, _ = data
    with pytest.raises(ValueError, match="objective must be one of"):
        DaskBoostedClassifier(objective="ranking").fit(*collections(X, y))
    with pytest.raises(DataError, match=r"partition \d: absolute values in X must be at most 1e"):
        DaskBoostedClassifier(**SMALL).fit(*collections(np.where(X > 2, np.inf, X), y))
    with pytest.raises(ValueError, match="y must have two classes; got one class"):
        DaskBoostedClassifier(**SMALL).fit(*collections(X, y * 0))
    with pytest.raises(DataError, match=r"partition \d: y must have a label in each row"):
        DaskBoostedClassifier(**SMALL).fit(*collections(X, np.where(np.arange(y.size) == 5000, np.nan, y)))


def rows_in_files(folder, X, y):
    """Return the rows as dask arrays that workers read from files."""
    load, found = dask.delayed(np.load), []
    for name, array in (("X", X), ("y", y)):
        parts = []
        for i, part in enumerate(np.array_split(array, 4)):
            np.save(folder / f"{name}{i}.npy", part)
            path = str(folder / f"{name}{i}.npy")
            parts.append(da.from_delayed(load(path), (np.nan, *array.shape[1:]), array.dtype))
        found.append(da.concatenate(parts, allow_unknown_chunksizes=True))
    return found


def interrupt(monkeypatch, at, action):
    """Do something before a number of times that the trees grow."""
    grow, count = Grower._train, [0]

    def interrupted(self, *args):
        count[0] += 1
        if count[0] == at:
            action()
        return grow(self, *args)

    monkeypatch.setattr(Grower, "_train", interrupted)
    return count


def test_a_killed_worker_does_not_change_what_is_fitted(cluster, client, data, tmp_path, monkeypatch):
    X, y, test, labels = data
    monkeypatch.setattr(module, "RULES", module.ClusterTreeRules(rounds=20))
    rows = rows_in_files(tmp_path, X, y)
    model = DaskBoostedClassifier(max_leaf_nodes=6, n_estimators=60, max_fpr=0.1, objective="window", random_state=0)
    expected = clone(model).fit(*rows).to_local().decision_function(test)
    count = interrupt(monkeypatch, 2, lambda: kill_one(cluster, 0.6))
    found = clone(model).fit(*rows).to_local()
    assert count[0] >= 6  # held-out rows and all rows, three steps each
    assert np.corrcoef(found.decision_function(test), expected)[0, 1] > 0.95
    scores = [
        metrics.partial_auc_score(labels, values, max_fpr=0.1) for values in (found.decision_function(test), expected)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.03)


def test_a_checkpoint_goes_on_where_the_fit_ended(client, data, tmp_path, monkeypatch):
    X, y, test, _ = data
    monkeypatch.setattr(module, "RULES", module.ClusterTreeRules(rounds=20))
    rows, path = rows_in_files(tmp_path, X, y), tmp_path / "fit.npz"
    model = DaskBoostedClassifier(max_leaf_nodes=6, n_estimators=60, objective="window", random_state=0)
    expected = clone(model).fit(*rows).to_local()

    def stop():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        interrupt(patch, 3, stop)
        with pytest.raises(KeyboardInterrupt):
            clone(model).fit(*rows, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint must be of the same data and parameters"):
        clone(model).set_params(max_leaf_nodes=7).fit(*rows, checkpoint=path)
    content = path.read_bytes()
    path.write_bytes(content[:-40])
    with pytest.raises(ValueError, match="checkpoint must be a file written by a fit"):
        clone(model).fit(*rows, checkpoint=path)
    path.write_bytes(content)
    count = interrupt(monkeypatch, 0, stop)
    found = clone(model).fit(*rows, checkpoint=path).to_local()
    assert count[0] == 4  # one step of the window objective, and three of the model on all rows
    assert not path.exists()
    # Rows are divided among the workers in another way in each fit, and with them XGBoost's bins of the features.
    assert np.corrcoef(found.decision_function(test), expected.decision_function(test))[0, 1] > 0.95


def test_no_worker_is_an_error_after_the_timeout(data):
    X, y, _, _ = data
    options = {"n_workers": 0, "processes": False, "dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(**options) as empty,
        distributed.Client(empty),
        pytest.raises(RuntimeError, match=r"the cluster must have at least one worker; got none for 0.5 s"),
    ):
        DaskBoostedClassifier(**SMALL).fit(*collections(X, y), timeout=0.5)


def test_other_values_after_a_lost_worker_are_named(cluster, client, data, tmp_path, monkeypatch):
    X, y, _, _ = data
    monkeypatch.setattr(module, "RULES", module.ClusterTreeRules(rounds=10))
    rows = rows_in_files(tmp_path, X, y)

    def change():
        for i in range(4):
            path = tmp_path / f"X{i}.npy"
            np.save(path, np.load(path)[::-1])
        for nanny in cluster.workers.values():
            os.kill(nanny.pid, signal.SIGKILL)

    interrupt(monkeypatch, 2, change)
    with pytest.raises(DataError, match=r"partition \d must have the same values whenever it is read"):
        DaskBoostedClassifier(**SMALL).fit(*rows)
