"""Ensembles: forests as arrays, ranks that do not depend on a batch, weights chosen on held-out rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier

from rocmax import BoostedClassifier, EnsembleClassifier, ForwardSplit, FPRThresholdClassifier, load, save
from rocmax import forest as forests
from rocmax.ensemble import (
    EnsembleRules,
    candidate_weights,
    log_odds,
    rank_table,
    raw_contributions,
    raw_scores,
    slopes,
)
from rocmax.explain import contributions
from rocmax.forest import Forest, check_forest, grow_forest, join_forests

pytest.importorskip("lightgbm")
# Boosted trees that take no time.
FEW = {"max_leaf_nodes": 4, "n_estimators": 10, "n_models": 1}


def rows(n=400, missing=0.1, seed=0):
    X, y = make_classification(n, 8, weights=[0.8], flip_y=0.1, random_state=seed)
    X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
    return X, y


def small(**params):
    return EnsembleClassifier(
        **{"boosted": BoostedClassifier(**FEW), "n_trees": 20, "n_jobs": 1, "random_state": 0} | params
    )


class Fitted:
    """What `rank_table` asks of training rows, all of which are held out once."""

    def __init__(self, weight):
        self.weight, self.folds = weight, [(None, np.arange(weight.size))]

    def some(self, index):
        return None, None, self.weight[index]


# Forests


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_forest_scores_as_the_trees_of_scikit_learn(missing):
    X, y = rows(missing=missing)
    new, _ = rows(missing=missing, seed=1)
    weight = np.random.default_rng(0).uniform(0.5, 2, y.size)
    theirs = ExtraTreesClassifier(30, random_state=5).fit(X, y, weight).predict_proba(new)[:, 1]
    ours = grow_forest(X, y == 1, weight, 30, 5, None)
    np.testing.assert_allclose(ours.predict(new), theirs, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(ours.predict(new, 2), ours.predict(new))


def walk(forest, tree, row):
    """Return the leaf value of a row in one tree, by the definition in the docstring of Forest."""
    node = forest.root[tree]
    while forest.right[node]:
        value = np.float32(row[forest.feature[node]])
        left = forest.missing_left[node] if np.isnan(value) else value <= forest.value[node]
        node = node + 1 if left else forest.right[node]
    return forest.value[node]


def test_a_forest_is_the_mean_of_walks_to_leaves():
    X, y = rows(200)
    forest = join_forests([grow_forest(X, y == 1, None, n, n, None) for n in (3, 2)])
    assert forest.root.size == 5
    expected = [np.mean([walk(forest, tree, row) for tree in range(5)]) for row in X]
    np.testing.assert_allclose(forest.predict(X), expected, rtol=1e-6)


def test_values_beyond_single_precision_are_compared_as_the_largest():
    X, y = rows(200, missing=0)
    forest = grow_forest(X * 1e300, y == 1, None, 5, 0, None)
    assert np.isfinite(forest.predict(X * 1e300)).all()
    with pytest.raises(ValueError, match="8 features; got 3"):
        forest.predict(X[:, :3])


def test_the_share_of_a_node_is_that_of_the_training_rows_that_reach_it():
    X, y = rows(200)
    weight = np.random.default_rng(0).uniform(0.5, 2, y.size)
    forest = grow_forest(X, y == 1, weight, 3, 0, None)
    for start, end in zip(forest.root, forest.ends, strict=True):
        reached = {start: np.arange(y.size)}
        for node in range(start, end):
            inside = reached[node]
            assert forest.share[node] == pytest.approx(np.average(y[inside], weights=weight[inside]), rel=1e-6)
            if forest.right[node]:
                value = X[inside, forest.feature[node]].astype(np.float32)
                left = np.where(np.isnan(value), forest.missing_left[node], value <= forest.value[node])
                reached[node + 1], reached[forest.right[node]] = inside[left], inside[~left]


@pytest.mark.parametrize("most", [1_000_000, 15])
def test_contributions_of_a_forest_are_the_changes_of_the_share_on_the_paths(most, monkeypatch):
    monkeypatch.setattr(forests, "MOST_PATHS", most)
    X, y = rows(300)
    new, _ = rows(50, missing=0.3, seed=1)
    forest = grow_forest(X, y == 1, None, 6, 2, None)

    def add(found, node, row):
        if forest.right[node]:
            value, feature = np.float32(row[forest.feature[node]]), forest.feature[node]
            left = forest.missing_left[node] if np.isnan(value) else value <= forest.value[node]
            child = node + 1 if left else forest.right[node]
            found[feature] += (float(forest.share[child]) - float(forest.share[node])) / forest.root.size
            add(found, child, row)

    expected = np.zeros(new.shape)
    for found, row in zip(expected, new, strict=True):
        for root in forest.root:
            add(found, root, row)
    values, reference = forest.contributions(new, 2)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(reference, y.mean(), rtol=1e-6)
    np.testing.assert_allclose(values.sum(axis=1) + reference, forest.predict(new), rtol=0, atol=1e-12)


def test_trees_of_many_rows_get_bootstrap_samples(monkeypatch):
    X, y = rows(400)
    monkeypatch.setattr(forests, "MOST_ROWS", 100)
    theirs = ExtraTreesClassifier(10, bootstrap=True, max_samples=100, random_state=0).fit(X, y)
    forest = grow_forest(X, y == 1, None, 10, 0, None)
    np.testing.assert_allclose(forest.predict(X), theirs.predict_proba(X)[:, 1], rtol=1e-6, atol=1e-12)
    assert np.diff(forest.ends, prepend=0).max() < 2 * 100


def damages():
    def put(name, place, value):
        return lambda state: state[name].__setitem__(place, value)

    yield "start at 0", put("root", 0, 1)
    yield "later nodes of the same tree", put("right", 0, 1)
    yield "later nodes of the same tree", put("right", 0, 10**6)
    yield "later nodes of the same tree", put("right", 0, -3)
    yield "feature of a forest must be from 0 to 7", put("feature", 0, 8)
    yield "feature of a forest must be from 0 to 7", put("feature", 0, -1)
    yield "value of a forest", put("value", -1, np.inf)
    yield "value of a forest", put("value", 0, np.nan)
    yield "share of a forest must be finite, and equal to value in leaves", put("share", 0, np.nan)
    yield "share of a forest must be finite, and equal to value in leaves", put("share", -1, 0.25)
    yield "one value for each node", lambda state: state.update(share=state["share"][:-1])
    yield "one value for each node", lambda state: state.update(value=state["value"][:-1])
    yield "type float32", lambda state: state.update(value=state["value"].astype(float))
    yield "n_features of a forest", lambda state: state.update(n_features=0)
    yield "must have the fields", lambda state: state.pop("right")


@pytest.mark.parametrize(("message", "damage"), list(damages()))
def test_damaged_forests_are_refused(message, damage):
    X, y = rows(100)
    state = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in grow_forest(X, y == 1, None, 2, 0, None).__getstate__().items()
    }
    check_forest(state)
    damage(state)
    with pytest.raises(ValueError, match=message):
        Forest.__new__(Forest).__setstate__(state)


# Ranks


def test_ranks_are_the_log_odds_of_the_shares_below():
    scores = np.random.default_rng(0).normal(size=60)
    table = rank_table(Fitted(np.ones(60)), scores)
    share = np.array([(scores < s).mean() + (scores == s).mean() / 2 for s in scores])
    np.testing.assert_allclose(log_odds(table, scores), np.log(share / (1 - share)), rtol=1e-9, atol=1e-9)


def test_a_weight_is_a_number_of_copies_in_ranks():
    rng = np.random.default_rng(0)
    scores, copies = rng.integers(0, 30, 50).astype(float), rng.integers(1, 4, 50)
    weighted = rank_table(Fitted(copies.astype(float)), scores)
    np.testing.assert_allclose(weighted, rank_table(Fitted(np.ones(copies.sum())), np.repeat(scores, copies)))


def test_ranks_rise_everywhere_and_keep_the_order_of_many_scores():
    rng = np.random.default_rng(0)
    table = rank_table(Fitted(np.ones(5000)), rng.lognormal(size=5000))
    assert table.shape[1] <= 100
    new = np.sort(rng.lognormal(sigma=3, size=2000))
    assert new[-1] > table[0, -1]
    assert new[0] < table[0, 0]
    assert (np.diff(log_odds(table, new)) > 0).all()
    assert (log_odds(rank_table(Fitted(np.ones(5)), np.zeros(5)), np.array([-1.0, 0.0, 1.0])) == 0).all()


def test_slopes_are_those_of_the_way_from_the_reference_to_the_score():
    table = rank_table(Fitted(np.ones(500)), np.random.default_rng(0).normal(size=500))
    start, scores = np.full(60, 0.1), np.linspace(-4, 4, 60)
    expected = [(log_odds(table, s) - log_odds(table, 0.1)) / (s - 0.1) for s in scores]
    np.testing.assert_allclose(slopes(table, start, scores), expected, rtol=1e-9)
    # Where rounding decides the difference, the slope is that of the piece that starts at the reference.
    place = np.searchsorted(table[0], 0.1)
    piece = np.diff(table[1, [place - 1, place]]) / np.diff(table[0, [place - 1, place]])
    near = np.array([0.1, np.nextafter(0.1, 1), np.nextafter(0.1, 0), 0.1 + 1e-12])
    np.testing.assert_allclose(slopes(table, np.full(4, 0.1), near), np.repeat(piece, 4), rtol=1e-6)
    constant = rank_table(Fitted(np.ones(5)), np.zeros(5))
    assert (slopes(constant, np.zeros(2), np.array([0.0, 1.0])) == 0).all()


# Weights


def test_greedy_selection_adds_the_best_member_in_each_step():
    target = {"a": 0.6, "b": 0.4, "c": 0.0}

    def judge(weights):
        total = sum(weights.values())
        return [-sum(abs(weights[name] / total - share) for name, share in target.items())]

    found = candidate_weights(["a", "b", "c"], judge)
    # All subsets with equal weights; a, then b, then a, b and a once more.
    assert {tuple(np.round(list(each.values()), 9)) for each in found} >= {(1, 0, 0), (1 / 2, 1 / 2, 0), (0.6, 0.4, 0)}
    assert len(found) == len({tuple(each.values()) for each in found})
    assert max(judge(each) for each in found) == pytest.approx([0.0])


def test_the_score_is_the_weighted_mean_of_the_ranks_of_the_members():
    X, y = rows()
    model = small(members={"boosted": 3, "extra_trees": 1}).fit(X, y)
    assert model.weights_ == {"boosted": 0.75, "extra_trees": 0.25}
    assert model.cv_results_["weights"] == []
    parts = {name: log_odds(model.rank_tables_[name], raw_scores(member, X)) for name, member in model.members_.items()}
    expected = 0.75 * parts["boosted"] + 0.25 * parts["extra_trees"] - model.threshold_
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12)


def test_the_boosted_member_is_the_boosted_classifier_with_the_same_seed():
    X, y = rows()
    alone = BoostedClassifier(max_leaf_nodes=4, n_models=1, n_jobs=1, random_state=3).fit(X, y)
    tuned = BoostedClassifier(max_leaf_nodes=4, n_models=1)
    model = small(members=["boosted"], boosted=tuned, random_state=3).fit(X, y)
    np.testing.assert_array_equal(model.members_["boosted"].decision_function(X), alone.decision_function(X))


def test_a_score_does_not_depend_on_the_other_rows():
    X, y = rows()
    model = small(members={"boosted": 1, "extra_trees": 1, "additive": 1}).fit(X, y)
    whole = model.decision_function(X)
    np.testing.assert_allclose([model.decision_function(row[None])[0] for row in X[:40]], whole[:40], rtol=1e-12)


@pytest.mark.parametrize("boosted", [BoostedClassifier(**FEW), BoostedClassifier(n_estimators=10, n_models=1)])
def test_no_row_is_scored_by_a_model_that_was_fitted_to_it(boosted):
    # Labels at random: the members fit them, and only scores of held-out rows do not show it.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 5)), rng.random(1000) < 0.3
    for name in ("boosted", "extra_trees", "additive"):
        model = small(measure="roc_auc", members=[name], boosted=boosted).fit(X, y)
        assert 0.4 < model.fold_scores_.mean() < 0.6
    assert small(measure="roc_auc", members=["extra_trees"]).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_the_weights_are_the_mean_of_those_within_a_standard_error_of_the_best(seed):
    # One linear column: the other members add little to the additive one.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + 0.5 * rng.logistic(size=600) > 1
    model = small(measure="roc_auc", boosted=BoostedClassifier(max_leaf_nodes=2, n_estimators=5)).fit(X, y)
    found = list(zip(*model.cv_results_.values(), strict=True))
    best = max(found, key=lambda each: each[1])
    close = []
    for weights, mean, scores in found:
        assert mean == pytest.approx(np.mean(scores))
        behind = np.subtract(best[2], scores)
        if np.mean(behind) <= np.std(behind, ddof=1) / len(scores) ** 0.5 + 1e-12:
            close.append(weights)
    expected = {name: np.mean([weights[name] for weights in close]) for name in close[0]}
    assert model.weights_ == pytest.approx({name: weight for name, weight in expected.items() if weight > 0})
    assert set(model.members_) == set(model.rank_tables_) == set(model.weights_)


@pytest.mark.slow
def test_an_ensemble_ranks_better_than_boosted_trees_where_both_kinds_of_trees_err():
    X, digit = load_digits(return_X_y=True)
    train, test = np.arange(digit.size) % 2 == 0, np.arange(digit.size) % 2 == 1
    scores = {}
    for name, model in (("both", EnsembleClassifier), ("boosted", BoostedClassifier)):
        fitted = model(max_fpr=0.05, n_jobs=1, random_state=0).fit(X[train], digit[train] == 8)
        scores[name] = fitted.score(X[test], digit[test] == 8)
    assert scores["both"] > scores["boosted"]


# Data


def test_categories_missing_values_and_names():
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame({"a": rng.normal(size=n), "shop": pd.Categorical(rng.choice(["x", "y", "z"], n))})
    y = (X["shop"] == "x") & (X["a"] > 0)
    X.loc[::9, "a"] = np.nan
    X.loc[::11, "shop"] = None
    members = {"boosted": 1, "extra_trees": 1, "additive": 1}
    model = small(members=members).fit(X, y)
    assert model.feature_names_in_.tolist() == ["a", "shop"]
    assert model.score(X, y) > 0.8
    other = X.head(3).assign(shop=pd.Categorical(["w", None, "x"]))
    unknown, missing, _ = model.decision_function(other.assign(a=0.5))
    assert unknown == missing


def test_folds_forward_in_time_grow_the_forest_on_all_rows():
    X, y = rows()
    cv = ForwardSplit(3, time=np.arange(y.size))
    model = small(members=["extra_trees"], cv=cv).fit(X, y)
    expected = grow_forest(X, y == 1, None, 20, np.random.RandomState(0).randint(2**30), None)
    np.testing.assert_array_equal(model.members_["extra_trees"].predict(X), expected.predict(X))


def test_few_rows_have_no_folds_and_equal_weights():
    X, y = rows()
    model = small(n_trees=12).fit(X[:30], y[:30])
    assert model.members_["extra_trees"].root.size == 12
    assert set(model.weights_.values()) == {1 / 3}


def test_a_group_is_on_one_side_of_each_fold():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(200), 5)
    y = np.repeat(rng.random(200) < 0.4, 5)
    # A column that names the group: only folds that split groups can learn from it.
    X = np.column_stack([groups + rng.normal(scale=0.01, size=1000), rng.normal(size=1000)])
    split = small(measure="roc_auc", members=["extra_trees"]).fit(X, y)
    kept = small(measure="roc_auc", members=["extra_trees"]).fit(X, y, groups=groups)
    assert split.fold_scores_.mean() > 0.7
    assert kept.fold_scores_.mean() < 0.6


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"members": ["trees"]}, r"members must be distinct names of .*; got \['trees'\]"),
        ({"members": []}, "members must be"),
        ({"members": "boosted"}, "members must be"),
        ({"members": ["boosted", "boosted"]}, "members must be"),
        ({"members": {"boosted": 0}}, "the weight of boosted"),
        ({"n_trees": 0}, "n_trees"),
        ({"boosted": ExtraTreesClassifier()}, "boosted must be a BoostedClassifier or None; got ExtraTreesClassifier"),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(ValueError, match=message):
        small(**params).fit(*rows(60))


def test_sparse_rows_are_refused():
    X, y = rows(100, missing=0)
    with pytest.raises(TypeError, match="dense data is required"):
        small().fit(sparse.csr_array(X), y)


def test_engines_of_xgboost_are_members():
    pytest.importorskip("xgboost")
    X, y = rows()
    model = small(members={"boosted": 1, "xgboost": 1}).fit(X, y)
    assert [member.engine for member in model.members_.values()] == ["lightgbm", "xgboost"]


# Contributions


def mixed(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "constant"]).assign(constant=1.0)
    X["shop"] = pd.Categorical(rng.choice(["x", "y", "z"], n))
    y = X["a"] * X["b"] + (X["shop"] == "x") + rng.normal(size=n) > 1.5
    X.loc[::9, "a"] = np.nan
    X.loc[::11, "shop"] = None
    return X, y.to_numpy()


@pytest.mark.parametrize("engine", ["boosted", "xgboost"])
@pytest.mark.parametrize("weight", [None, np.arange(500) % 3 + 0.5])
def test_contributions_are_those_of_the_members_scaled_to_their_ranks(engine, weight):
    pytest.importorskip("lightgbm" if engine == "boosted" else engine)
    (X, positive), members = mixed(), {engine: 2, "extra_trees": 1, "additive": 3}
    new, _ = mixed(80, 1)
    new["shop"] = new["shop"].cat.set_categories(["y", "x", "new"]).fillna("new")
    found = {}
    for pos, other in ("ab", "ba"):
        y = np.where(positive, pos, other)
        model = small(members=members, pos_label=pos).fit(X, y, sample_weight=weight)
        found[pos] = model.contributions(new)
        np.testing.assert_allclose(found[pos].scores, model.decision_function(new), rtol=0, atol=1e-9)
        assert np.ptp(found[pos].reference) == 0
        assert found[pos].columns == list(X)
    np.testing.assert_array_equal(found["a"].values, -found["b"].values)
    # Row by row, with the scores of the members, which are sums themselves.
    expected, reference = np.zeros(new.shape), -model.threshold_
    rows = model.encode(new)
    for name, member in model.members_.items():
        values, start = raw_contributions(member, rows)
        np.testing.assert_allclose(values.sum(axis=1) + start, raw_scores(member, rows), rtol=0, atol=1e-9)
        at = log_odds(model.rank_tables_[name], start[0])
        reference += model.weights_[name] * at
        for i, score in enumerate(raw_scores(member, rows)):
            slope = (log_odds(model.rank_tables_[name], score) - at) / (score - start[0])
            expected[i] += model.weights_[name] * slope * values[i]
    np.testing.assert_allclose(found["a"].values, -expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found["a"].reference, -reference, rtol=1e-9)
    assert (np.abs(found["a"].values).mean(axis=0) > 0.1).tolist() == [True, True, False, True]


def test_the_reference_of_the_additive_member_is_the_score_of_the_mean_training_features():
    X, y = rows(missing=0)
    weight = np.arange(y.size) % 4 + 0.5
    member = small(members=["additive"]).fit(X, y, sample_weight=weight).members_["additive"]
    mean = np.average(member[0].transform(X), axis=0, weights=weight)
    _, start = raw_contributions(member, X)
    np.testing.assert_allclose(start, member[1].decision_function(mean[None])[0], rtol=1e-9)


def test_blocks_of_rows_have_the_contributions_of_all_of_them(monkeypatch):
    (X, y), members = mixed(), {"boosted": 1, "extra_trees": 1, "additive": 1}
    model = small(members=members).fit(X, y)
    whole = model.contributions(X)
    monkeypatch.setattr("rocmax.ensemble.RULES", EnsembleRules(most_rows=70))
    np.testing.assert_allclose(model.contributions(X).values, whole.values, rtol=1e-9, atol=1e-12)
    alone = [model.contributions(X.iloc[[place]]).values[0] for place in range(20)]
    np.testing.assert_allclose(alone, whole.values[:20], rtol=1e-9, atol=1e-12)


def test_contributions_of_few_rows_and_of_scores_that_are_constant():
    X, y = rows(30, missing=0)
    model = small().fit(X, y)
    np.testing.assert_allclose(model.contributions(X).scores, model.decision_function(X), rtol=0, atol=1e-9)
    flat = small(members={"boosted": 1, "extra_trees": 1, "additive": 1}).fit(np.ones((60, 2)), np.arange(60) < 20)
    found = flat.contributions(np.ones((3, 2)))
    np.testing.assert_allclose(found.scores, flat.decision_function(np.ones((3, 2))), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.values, 0, atol=1e-9)


def test_a_threshold_classifier_has_the_contributions_of_its_ensemble():
    X, y = mixed()
    inner = small(members={"boosted": 1, "extra_trees": 1, "additive": 1})
    model = FPRThresholdClassifier(inner, 0.2, random_state=0).fit(X, y)
    found = contributions(model, X)
    np.testing.assert_allclose(found.scores, model.decision_function(X), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.values, model.estimator_.contributions(X).values)


# Files


def test_a_saved_ensemble_scores_alike(tmp_path):
    X, y = rows()
    model = small(members={"boosted": 1, "extra_trees": 1, "additive": 1}).fit(X, y)
    save(model, tmp_path / "m.rocmax")
    again = load(tmp_path / "m.rocmax")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.contributions(X).values, model.contributions(X).values)
