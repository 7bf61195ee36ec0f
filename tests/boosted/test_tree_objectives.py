"""Objectives and evaluation metrics for LightGBM and XGBoost, trained by the libraries themselves."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest

from oracles import brute
from rocmax.boosted import lightgbm as for_lightgbm
from rocmax.boosted import xgboost as for_xgboost
from rocmax.boosted.objective import DEFAULT_LOSS, MANY_ROWS, TreeObjective
from rocmax.losses import PartialAUCTight, WindowPairs
from rocmax.measures import find_measure, measure_names
from rocmax.metrics import f_beta_score, fpr_at_tpr, partial_auc_score

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")

PAUC = find_measure("partial_auc", max_fpr=0.1)
LIGHTGBM = {"num_leaves": 8, "verbose": -1, "num_threads": 1, "deterministic": True, "seed": 1}
XGBOOST = {"max_depth": 3, "nthread": 1, "seed": 1, "disable_default_eval_metric": True}


def rows(n=2000, seed=0, positives=0.1):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < positives
    X = rng.standard_normal((n, 6))
    X[:, 0] += 1.2 * y
    X[:, 1] *= np.where(y, 2.0, 1.0)
    return X, y.astype(int)


def train_lightgbm(X, y, objective, n_rounds=40, weight=None, **more):
    data = lgb.Dataset(X, y, weight=weight, params={"verbose": -1})
    return lgb.train({**LIGHTGBM, **more, "objective": objective}, data, n_rounds)


def train_xgboost(X, y, obj, n_rounds=40, weight=None, **more):
    return xgb.train({**XGBOOST, **more}, xgb.DMatrix(X, y, weight=weight), n_rounds, obj=obj)


def scores_of(engine, model, X):
    return model.predict(X) if engine == "lightgbm" else model.predict(xgb.DMatrix(X), output_margin=True)


ENGINES = {"lightgbm": (for_lightgbm, train_lightgbm), "xgboost": (for_xgboost, train_xgboost)}
every_engine = pytest.mark.parametrize("engine", ENGINES)


# The core


def test_gradient_and_curvature_of_the_window_rounds():
    rng = np.random.default_rng(1)
    y, scores = rng.random(60) < 0.3, 2.0 * rng.standard_normal(60)
    weight = rng.uniform(0.5, 2.0, 60)
    for given in (None, weight):
        total = 60.0  # weights are divided by their mean
        core = TreeObjective(y, given, 0)
        gradient, curvature = core(scores)
        arguments = {"max_fpr": 0.05, "soft_tail": True, "scale": 2.0}
        _, expected = brute.window_pairs(scores, y, given, "sigmoid", **arguments)
        factor = 0.1 * total / (np.abs(expected) / 2).sum()
        np.testing.assert_allclose(gradient, factor * expected, rtol=1e-8)
        np.testing.assert_allclose(curvature, np.abs(gradient) / 2, rtol=1e-6)
        np.testing.assert_allclose(curvature.sum(), 0.1 * total)
        # The factor is that of the first such round.
        again, _ = core(0.5 * scores)
        _, expected = brute.window_pairs(0.5 * scores, y, given, "sigmoid", **arguments)
        np.testing.assert_allclose(again, factor * expected, rtol=1e-8)


def test_the_study_s_formula():
    # Negatives weighted by min(1, b n / rank), g_i = -4 sum_j w_j q (1 - q) / W; up to one factor.
    rng = np.random.default_rng(2)
    y, f = np.arange(400) < 40, rng.standard_normal(400)
    z = f / 2
    neg = np.flatnonzero(~y)[np.argsort(-z[~y])]
    rank = np.arange(1, neg.size + 1) - 0.5
    w = np.minimum(1.0, 0.05 * neg.size / rank)
    q = 1 / (1 + np.exp(z[y][:, None] - z[neg]))
    expected = np.zeros(400)
    expected[y] = -4 * (q * (1 - q)) @ w / w.sum()
    expected[neg] = 4 * w * (q * (1 - q)).sum(axis=0) / w.sum()
    gradient, curvature = TreeObjective(y, None, 0, DEFAULT_LOSS)(f)
    scale = 0.1 * 400 / (np.abs(expected) / 2).sum()
    np.testing.assert_allclose(gradient, scale * expected, rtol=2e-3)
    np.testing.assert_allclose(curvature, scale * np.abs(expected) / 2, rtol=2e-3)


def test_binary_rounds_come_first_and_start_at_the_odds():
    y = np.repeat([True, False], [10, 90])
    core = TreeObjective(y, None, 2)
    gradient, curvature = core(np.full(100, 0.5))
    assert core.offset == pytest.approx(np.log(10 / 90) - 0.5)
    np.testing.assert_allclose(gradient, np.where(y, -0.9, 0.1))
    np.testing.assert_allclose(curvature, 0.09)
    assert abs(core(np.linspace(-1, 1, 100))[0].sum()) > 0.1
    assert abs(core(np.linspace(-1, 1, 100))[0].sum()) < 1e-12  # a loss on differences
    assert core.n_rounds == 3
    other = TreeObjective(y, np.where(y, 3.0, 1.0), 1)
    other(np.zeros(100))
    assert other.offset == pytest.approx(np.log(30 / 90))
    started = TreeObjective(y, None, 1)
    started(np.linspace(-1, 1, 100))
    assert started.offset == 0.0


@pytest.mark.parametrize("weighted", [False, True])
def test_the_window_of_many_rows_is_that_of_their_bins(weighted):
    rng = np.random.default_rng(2)
    y = rng.random(MANY_ROWS + 1) < 0.05
    scores = np.r_[-60.0, 2.0 * rng.standard_normal(y.size - 1) + 2.0 * y[1:]]
    weight = rng.uniform(0.5, 2.0, y.size) if weighted else None
    found, curvature = TreeObjective(y, weight, 0)(scores)
    relative = None if weight is None else weight / weight.mean()
    expected, exact = DEFAULT_LOSS.bind(y, relative).gradient_and_curvature(scores)
    # Both are scaled to curvatures with the mean 0.1.
    factor = 0.1 * (y.size if relative is None else relative.sum()) / exact.sum()
    for one, other in ((found, factor * expected), (curvature, factor * exact)):
        np.testing.assert_allclose(one, other, rtol=0.03, atol=1e-3 * np.abs(other).max())
    assert found[y].sum() == pytest.approx(-found[~y].sum())


def test_binary_rounds_with_large_scores():
    gradient, curvature = TreeObjective(np.array([True, False]), None, 1)(np.array([-1e4, -2e4]))
    np.testing.assert_allclose(gradient, [-1.0, 0.0])
    np.testing.assert_allclose(curvature, [0.0, 0.0])


def test_a_first_window_round_with_nothing_to_do():
    y = np.repeat([True, False], [10, 90])
    core = TreeObjective(y, None, 0, WindowPairs("squared_hinge"))
    for scores in (9.0 * y, -9.0 * y):
        for part in core(scores):
            assert np.isfinite(part.astype(np.float32)).all()


def test_a_loss_without_curvature_is_an_error():
    with pytest.raises(
        TypeError, match="loss must have a diagonal curvature, such as WindowPairs; got PartialAUCTight"
    ):
        TreeObjective(np.array([True, False]), None, 0, PartialAUCTight())


# Training


def test_binary_rounds_are_lightgbm_s_own():
    for weight in (None, np.random.default_rng(3).uniform(0.5, 2.0, 2000)):
        X, y = rows()
        ours = train_lightgbm(X, y, for_lightgbm.objective(n_warmup=10**6), weight=weight)
        theirs = train_lightgbm(X, y, "binary", weight=weight)
        odds = np.log(np.average(y, weights=weight) / (1 - np.average(y, weights=weight)))
        # Weights are divided by their mean, and both are in single precision.
        error = 1e-10 if weight is None else 1e-6
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X, raw_score=True) - odds, atol=error)


def test_binary_rounds_are_xgboost_s_own():
    X, y = rows()
    ours = train_xgboost(X, y, for_xgboost.objective(n_warmup=10**6), base_score=0.0)
    theirs = train_xgboost(X, y, None, objective="binary:logistic", base_score=y.mean())
    odds = np.log(y.mean() / (1 - y.mean()))
    expected = scores_of("xgboost", theirs, X)
    np.testing.assert_allclose(scores_of("xgboost", ours, X), expected - odds, atol=1e-4)


@every_engine
@pytest.mark.parametrize("soft_tail", [False, True])
@pytest.mark.parametrize("surrogate", ["sigmoid", "squared_hinge"])
def test_every_loss_can_be_trained(engine, surrogate, soft_tail):
    backend, train = ENGINES[engine]
    X, y = rows()
    loss = WindowPairs(surrogate, max_fpr=0.1, soft_tail=soft_tail, scale=2.0)
    models = [train(X, y, backend.objective(loss, n_warmup=5), n_rounds) for n_rounds in (5, 30)]
    start, end = (scores_of(engine, model, X).astype(np.float64) for model in models)
    assert loss.bind(y).value_and_gradient(end)[0] < 0.9 * loss.bind(y).value_and_gradient(start)[0]
    assert partial_auc_score(y, end, max_fpr=0.1) > partial_auc_score(y, start, max_fpr=0.1)


@every_engine
def test_the_default_improves_the_measure_on_other_rows(engine):
    backend, train = ENGINES[engine]
    X, y = rows(6000)
    test_X, test_y = rows(4000, seed=5)
    models = [train(X, y, backend.objective(n_warmup=10), n_rounds) for n_rounds in (1, 40)]
    start, end = (partial_auc_score(test_y, scores_of(engine, m, test_X), max_fpr=0.1) for m in models)
    assert end > start + 0.03


@every_engine
def test_window_rounds_lower_the_loss_more_than_binary_ones(engine):
    backend, train = ENGINES[engine]
    X, y = rows()
    window, binary = (
        DEFAULT_LOSS.bind(y).value_and_gradient(
            scores_of(engine, train(X, y, backend.objective(n_warmup=n_warmup)), X).astype(np.float64)
        )[0]
        for n_warmup in (10, 1000)
    )
    assert window < binary


@every_engine
def test_weights_are_copies(engine):
    backend, train = ENGINES[engine]
    X, y = rows(400, positives=0.3)
    X = np.round(X, 1)
    weight = np.random.default_rng(4).integers(1, 4, y.size)
    copies = np.repeat(np.arange(y.size), weight)
    # Settings in which a library itself does not distinguish weights and copies, nor weights of another scale.
    unlimited = {"tree_method": "exact", "reg_lambda": 0, "min_child_weight": 0}
    more = {"min_data_in_leaf": 1, "min_data_in_bin": 1} if engine == "lightgbm" else unlimited
    weighted = train(X, y, backend.objective(n_warmup=4), 12, weight, **more)
    repeated = train(X[copies], y[copies], backend.objective(n_warmup=4), 12, **more)
    first, second = (scores_of(engine, model, X) for model in (weighted, repeated))
    np.testing.assert_allclose(first, second, atol=2e-3)
    ignored = scores_of(engine, train(X, y, backend.objective(n_warmup=4), 12, **more), X)
    assert np.abs(ignored - first).max() > 0.05


@every_engine
def test_the_scale_of_the_weights_has_no_effect(engine):
    backend, train = ENGINES[engine]
    X, y = rows(400, positives=0.3)
    weight = np.random.default_rng(4).uniform(0.5, 2.0, y.size)
    expected = scores_of(engine, train(X, y, backend.objective(n_warmup=4), 12, weight), X)
    assert np.unique(expected).size > 50
    # With powers of two, there is no rounding.
    for scale in (2.0**-30, 2.0**20):
        found = scores_of(engine, train(X, y, backend.objective(n_warmup=4), 12, scale * weight), X)
        assert np.array_equal(found, expected)
        assert backend.evaluation(PAUC)(y, expected, scale * weight) == backend.evaluation(PAUC)(y, expected, weight)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_the_interface_for_scikit_learn():
    X, y = rows()
    weight = np.random.default_rng(6).uniform(0.5, 2.0, y.size)
    model = lgb.LGBMClassifier(
        n_estimators=40,
        objective=for_lightgbm.objective(n_warmup=10),
        **{"num_leaves": 8, "verbose": -1, "n_jobs": 1, "random_state": 1, "deterministic": True},
    )
    names = np.array(["no", "yes"])[y]
    model.fit(X, names, sample_weight=weight, eval_set=[(X, names)], eval_metric=for_lightgbm.evaluation(PAUC))
    native = train_lightgbm(X, y, for_lightgbm.objective(n_warmup=10), weight=weight)
    np.testing.assert_allclose(model.booster_.predict(X, raw_score=True), native.predict(X), atol=1e-9)
    assert "partial_auc" in model.evals_result_["training"]
    model = xgb.XGBClassifier(
        n_estimators=40,
        objective=for_xgboost.objective(n_warmup=10),
        max_depth=3,
        n_jobs=1,
        eval_metric=for_xgboost.evaluation(PAUC),
        random_state=1,
    )
    model.fit(X, y, sample_weight=weight, eval_set=[(X, y)], verbose=False)
    native = train_xgboost(X, y, for_xgboost.objective(n_warmup=10), weight=weight, base_score=0.0)
    np.testing.assert_allclose(model.predict(X, output_margin=True), scores_of("xgboost", native, X), atol=1e-5)
    last = model.evals_result()["validation_0"]["partial_auc"][-1]
    assert last == pytest.approx(PAUC.score(y, model.predict(X, output_margin=True)), abs=1e-5)


# Evaluation metrics


@pytest.mark.parametrize("name", [name for name in measure_names() if name != "weighted_relative_accuracy"])
def test_evaluation_is_the_measure(name):
    params = {
        "tpr_at_fpr": {"max_fpr": 0.1},
        "fpr_at_tpr": {"min_tpr": 0.8},
        "precision_at_k": {"k": 0.1},
        "partial_auc": {"max_fpr": 0.2},
    }
    measure = find_measure(name, **params.get(name, {}))
    rng = np.random.default_rng(7)
    y = (rng.random(300) < 0.3).astype(np.float32)
    scores, weight = rng.standard_normal(300) + y, rng.uniform(0.5, 2.0, 300).astype(np.float32)
    for v in (None, weight):
        threshold = measure.threshold(scores, y == 1, v) if measure.metric.takes_labels else 0.0
        expected = measure.score(y, scores - threshold, sample_weight=v, pos_label=1)
        data = lgb.Dataset(np.zeros((300, 1)), y, weight=v, params={"verbose": -1}).construct()
        found = for_lightgbm.evaluation(measure)(scores, data)
        assert found == (name, pytest.approx(expected), measure.metric.greater_is_better)
        matrix = xgb.DMatrix(np.zeros((300, 1)), y, weight=v)
        assert for_xgboost.evaluation(measure)(scores, matrix) == (name, pytest.approx(expected))
        assert for_xgboost.evaluation(measure)(y, scores, sample_weight=v) == pytest.approx(expected)


def test_evaluation_in_training_equals_the_metric():
    X, y = rows()
    test_X, test_y = rows(1000, seed=8)
    data = lgb.Dataset(X, y, params={"verbose": -1})
    found = {}
    model = lgb.train(
        {**LIGHTGBM, "objective": for_lightgbm.objective(n_warmup=5)},
        data,
        15,
        valid_sets=[lgb.Dataset(test_X, test_y, reference=data)],
        feval=[for_lightgbm.evaluation(PAUC), for_lightgbm.evaluation("f_beta", name="best_f1")],
        callbacks=[lgb.record_evaluation(found)],
    )
    scores = model.predict(test_X)
    expected = partial_auc_score(test_y, scores, max_fpr=0.1)
    assert found["valid_0"]["partial_auc"][-1] == pytest.approx(expected, abs=1e-12)
    best = max(f_beta_score(test_y, scores > t) for t in np.unique(scores)[:-1])
    assert found["valid_0"]["best_f1"][-1] == pytest.approx(best)
    found = {}
    model = xgb.train(
        XGBOOST,
        xgb.DMatrix(X, y),
        15,
        obj=for_xgboost.objective(n_warmup=5),
        custom_metric=for_xgboost.evaluation(PAUC),
        evals=[(xgb.DMatrix(test_X, test_y), "test")],
        evals_result=found,
        verbose_eval=False,
    )
    expected = partial_auc_score(test_y, scores_of("xgboost", model, test_X), max_fpr=0.1)
    assert found["test"]["partial_auc"][-1] == pytest.approx(expected, abs=2e-6)


def test_early_stopping():
    X, y = rows(600)
    test_X, test_y = rows(400, seed=9)
    data = lgb.Dataset(X, y, params={"verbose": -1})
    found = {}
    model = lgb.train(
        {**LIGHTGBM, "objective": for_lightgbm.objective(n_warmup=5), "learning_rate": 0.3},
        data,
        300,
        valid_sets=[lgb.Dataset(test_X, test_y, reference=data)],
        feval=for_lightgbm.evaluation(PAUC),
        callbacks=[lgb.early_stopping(10, verbose=False), lgb.record_evaluation(found)],
    )
    assert model.best_iteration == 1 + np.argmax(found["valid_0"]["partial_auc"]) < 290
    low = find_measure("fpr_at_tpr", min_tpr=0.8)
    model = lgb.train(
        {**LIGHTGBM, "objective": "binary", "metric": "none", "learning_rate": 0.3},
        data,
        300,
        valid_sets=[lgb.Dataset(test_X, test_y, reference=data)],
        feval=for_lightgbm.evaluation(low),
        callbacks=[lgb.early_stopping(10, verbose=False), lgb.record_evaluation(found)],
    )
    assert model.best_iteration == 1 + np.argmin(found["valid_0"]["fpr_at_tpr"])
    assert min(found["valid_0"]["fpr_at_tpr"]) == pytest.approx(
        fpr_at_tpr(test_y, model.predict(test_X, num_iteration=model.best_iteration), min_tpr=0.8)
    )
    found = {}
    model = xgb.train(
        XGBOOST,
        xgb.DMatrix(X, y),
        300,
        obj=for_xgboost.objective(n_warmup=5),
        verbose_eval=False,
        custom_metric=for_xgboost.evaluation(PAUC),
        evals=[(xgb.DMatrix(test_X, test_y), "test")],
        evals_result=found,
        early_stopping_rounds=10,
        maximize=True,
    )
    assert model.best_iteration == np.argmax(found["test"]["partial_auc"]) < 290


# State


def test_lightgbm_trains_a_copy_of_the_objective():
    X, y = rows()
    objective = for_lightgbm.objective(n_warmup=5)
    first, second = (train_lightgbm(X, y, objective, 15).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.isfinite(train_lightgbm(X[:500], y[:500], objective, 15).predict(X)).all()


@every_engine
def test_another_fit_with_other_data_is_an_error(engine):
    backend, _ = ENGINES[engine]
    X, y = rows(300)
    objective = backend.objective(n_warmup=2)
    make = partial(xgb.DMatrix) if engine == "xgboost" else partial(lgb.Dataset, params={"verbose": -1})
    first, second, weighted = make(X, y), make(X[:200], y[:200]), make(X, y, weight=np.full(300, 2.0))
    if engine == "lightgbm":
        for data in (first, second, weighted):
            data.construct()
    objective(np.zeros(300), first)
    objective(np.linspace(0, 1, 300), first)
    with pytest.raises(ValueError, match=r"other data \(200 rows\) after 2 rounds. Make a new objective"):
        objective(np.zeros(200), second)
    with pytest.raises(ValueError, match="labels or weights of other data"):
        objective(np.zeros(300), weighted)


def test_another_fit_with_the_same_data_starts_again():
    X, y = rows()
    objective = for_xgboost.objective(n_warmup=5)
    first, second = (scores_of("xgboost", train_xgboost(X, y, objective, 15), X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_is_for_another_fit(duplicate):
    y = np.arange(300) % 5 == 0
    objective = for_lightgbm.objective(WindowPairs("squared_hinge"), n_warmup=3)
    objective(y, np.zeros(300))
    other = duplicate(objective)
    assert (other.loss, other.n_warmup) == (objective.loss, 3)
    gradient, _ = other(y[:200], np.zeros(200))
    assert gradient.shape == (200,)


# Refusals


@pytest.mark.parametrize("given", [{"scale_pos_weight": 5.0}, {"is_unbalance": True}, {"unbalance": True}])
def test_class_weights_of_lightgbm_are_an_error(given):
    X, y = rows(300)
    with pytest.raises(ValueError, match="LightGBM ignores it for a callable objective; got"):
        train_lightgbm(X, y, for_lightgbm.objective(), 3, **given)


@every_engine
def test_bad_arguments(engine):
    backend, _ = ENGINES[engine]
    with pytest.raises(TypeError, match=r"loss must be a Loss.* got 'sigmoid'"):
        backend.objective("sigmoid")
    for n_warmup in (-1, 2.5, True):
        with pytest.raises(ValueError, match=f"n_warmup must be an integer .* got {n_warmup}"):
            backend.objective(n_warmup=n_warmup)
    with pytest.raises(ValueError, match=r"name must be a word.* got 'partial AUC'"):
        backend.evaluation(PAUC, name="partial AUC")
    with pytest.raises(ValueError, match="weighted_relative_accuracy"):
        backend.evaluation("weighted_relative_accuracy")
    with pytest.raises(ValueError, match="labels must be 0 or 1; got values"):
        backend.objective()(np.array([-1, 1]), np.zeros(2))
    with pytest.raises(ValueError, match="one class"):
        backend.objective()(np.array([1, 1]), np.zeros(2))
    with pytest.raises(ValueError, match=r"one-dimensional, for two classes; got shape \(2, 3\)"):
        backend.objective()(np.array([0, 1]), np.zeros((2, 3)))


def test_a_data_set_without_labels_is_an_error():
    class NoLabels:
        params = None

        def get_label(self):
            return None

        def get_weight(self):
            return None

    with pytest.raises(ValueError, match="must have labels; got none"):
        for_lightgbm.objective()(np.zeros(3), NoLabels())
