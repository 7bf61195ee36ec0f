"""Tree models: what is read gives the library's scores, and damaged arrays are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.tree_models import (
    ENGINES,
    custom,
    engine_scores,
    lightgbm_booster,
    read_trees,
    table,
    tree_model,
    tree_text,
    xgboost_booster,
    xgboost_matrix,
)
from oracles.trees import predict_plain
from rocmax.boosted.trees import LIMITS, PASSES, TreeModel, check_tree_model

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")
TOLERANCE = {"lightgbm": 1e-12, "xgboost": 1e-5}


def new_rows(trees, seed):
    """Other rows: unknown categories, and the thresholds themselves with their neighbors."""
    rng = np.random.default_rng(seed)
    X = table(seed, 120)[0]
    values = trees.threshold[np.isfinite(trees.threshold)]
    chosen = rng.choice(values, (80, 3))
    X[:80, :3] = np.select(
        [rng.random((80, 3)) < 0.3, rng.random((80, 3)) < 0.5],
        [np.nextafter(chosen, np.inf), np.nextafter(chosen, -np.inf)],
        chosen,
    )
    return X


@settings(max_examples=25, deadline=None)
@given(
    engine=st.sampled_from(ENGINES),
    seed=st.integers(0, 10**6),
    n=st.integers(20, 200),
    n_categories=st.integers(1, 90),
    rounds=st.integers(1, 6),
)
def test_scores_are_those_of_the_library(engine, seed, n, n_categories, rounds):
    X, y = table(seed, n, n_categories)
    y[:2] = 0, 1
    text = tree_text(engine, X, y, rounds=rounds)
    trees = read_trees(engine, text, 4)
    new = new_rows(trees, seed)
    new[:, 3] = np.where(new[:, 3] < n_categories, new[:, 3], np.nan)
    expected = engine_scores(engine, text, new)
    np.testing.assert_array_equal(trees.predict(new, 1), expected)
    np.testing.assert_allclose(predict_plain(trees, new), expected, rtol=0, atol=TOLERANCE[engine])


@pytest.mark.parametrize("zero_as_missing", [False, True])
@pytest.mark.parametrize("use_missing", [False, True])
def test_missing_values_of_lightgbm(zero_as_missing, use_missing):
    X, y = table(1)
    text = tree_text("lightgbm", X, y, rounds=10, zero_as_missing=zero_as_missing, use_missing=use_missing)
    trees = read_trees("lightgbm", text, 4)
    new = new_rows(trees, 2)
    new[:20, 3] = 1000
    new[20:30, 3] = -1
    expected = engine_scores("lightgbm", text, new)
    np.testing.assert_array_equal(trees.predict(new, 1), expected)
    np.testing.assert_allclose(predict_plain(trees, new), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("base_score", [None, 0.3])
def test_base_score_of_xgboost(base_score):
    X, y = table(3)
    text = tree_text("xgboost", X, y, **({} if base_score is None else {"base_score": base_score}))
    trees = read_trees("xgboost", text, 4)
    expected = engine_scores("xgboost", text, X)
    np.testing.assert_array_equal(trees.predict(X, 1), expected)
    np.testing.assert_allclose(predict_plain(trees, X), expected, rtol=0, atol=1e-5)


def test_models_that_are_a_constant():
    X, y = np.ones((40, 2)), np.arange(40) % 4 == 0
    for engine in ENGINES:
        text = tree_text(engine, X, y.astype(int), categorical=())
        trees = read_trees(engine, text, 2)
        expected = engine_scores(engine, text, X, ())
        np.testing.assert_array_equal(trees.predict(X, 1), expected)
        np.testing.assert_allclose(predict_plain(trees, X), expected, rtol=0, atol=TOLERANCE[engine])


def test_custom_objectives_and_constraints_of_lightgbm():
    X, y = table(4)
    for more in ({"objective": custom}, {"monotone_constraints": [1, 0, -1, 0]}):
        text = tree_text("lightgbm", X, y, **more)
        trees = read_trees("lightgbm", text, 4)
        np.testing.assert_array_equal(predict_plain(trees, X), engine_scores("lightgbm", text, X))


@pytest.mark.parametrize("objective", ["binary", custom])
def test_the_booster_of_lightgbm_is_the_fitted_one(objective):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = table(5)
    booster = lightgbm_booster(X, y, objective=objective)
    trees = read_trees("lightgbm", booster.model_to_string(), 4)
    again = lightgbm.Booster(model_str=booster.model_to_string())
    np.testing.assert_array_equal(trees.booster().predict(X), booster.predict(X))
    np.testing.assert_array_equal(trees.contributions(X, 1), booster.predict(X, pred_contrib=True))
    np.testing.assert_array_equal(trees.importances(), again.feature_importance("gain"))
    np.testing.assert_array_equal(trees.booster().feature_importance("gain"), again.feature_importance("gain"))
    kept, expected = trees.booster().dump_model()["tree_info"], again.dump_model()["tree_info"]
    assert [tree["tree_structure"] for tree in kept] == [tree["tree_structure"] for tree in expected]


def test_the_booster_of_xgboost_is_the_fitted_one():
    X, y = table(5)
    booster = xgboost_booster(X, y)
    trees = read_trees("xgboost", booster.save_raw("json").decode(), 4)
    rows = xgboost_matrix(X)
    np.testing.assert_array_equal(trees.booster().predict(rows, validate_features=False), booster.predict(rows))
    # The engine adds in single precision; what is lost is shared out, so that the sum is the score.
    found, score = trees.contributions(X, 1), booster.predict(rows, output_margin=True)
    np.testing.assert_allclose(found, booster.predict(rows, pred_contribs=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), score, rtol=0, atol=1e-12)
    gains = booster.get_score(importance_type="total_gain")
    np.testing.assert_allclose(trees.importances(), [gains.get(f"f{i}", 0.0) for i in range(4)], rtol=1e-6)


def test_many_rows_are_scored_by_some_trees_at_a_time():
    X, y = table(6, 6000)
    trees = tree_model("lightgbm", X, y, rounds=60, num_leaves=31)
    assert trees.left.size > 2 * PASSES.nodes
    assert len(X) >= PASSES.rows
    np.testing.assert_allclose(trees.predict(X, 1), trees.booster().predict(X, raw_score=True), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(trees.predict(np.asfortranarray(X), 1), trees.predict(X, 1))


@pytest.fixture(scope="module")
def states():
    return {engine: tree_model(engine, *table(0)).__getstate__() for engine in ENGINES}


def first(value):
    return lambda values: np.r_[value, values[1:]].astype(values.dtype)


def last(value):
    return lambda values: np.r_[values[:-1], value].astype(values.dtype)


def shorter(values):
    return values[:-1]


BOTH = [
    ("n_features", lambda _: 3, "feature must be from 0 to 2; got 3"),
    ("n_features", lambda _: 0, "n_features must be from 1 to 10000000; got 0"),
    ("n_features", lambda _: 10**8, "n_features must be from 1 to 10000000; got 100000000"),
    ("base_score", lambda _: 1.0, "base_score must be a probability between 0 and 1; got 1.0"),
    ("base_score", lambda _: float("nan"), "base_score must be a probability between 0 and 1; got nan"),
    ("root", first(1), "root must start at 0, increase, and stay below"),
    ("root", last(10**6), "root must start at 0, increase, and stay below"),
    ("root", lambda values: values[:0], "root must start at 0, increase, and stay below"),
    ("root", shorter, "each node of tree 3 must be|the splits of a tree must come before its leaves"),
    ("left", first(10**6), "left must be nodes of the same tree, or -1 in leaves; got one out of range"),
    ("left", first(-2), "left must be nodes of the same tree|right must be nodes of the same tree"),
    ("left", first(-1), "right must be nodes of the same tree, or -1 in leaves; got one out of range"),
    (
        "left",
        first(0),
        "each node of tree 0 must be the root or the child of one node|must be nodes after their parent",
    ),
    ("right", first(50), "right must be nodes of the same tree, or -1 in leaves; got one out of range"),
    ("right", shorter, r"right must have \d+ values; got \d+"),
    ("feature", first(4), "feature must be from 0 to 3; got 4"),
    ("feature", first(-1), "feature must be from 0 to 3; got -1"),
    ("comparison", first(3), "comparison must be from 0 to 2; got 3"),
    ("comparison", last(2), "sets of categories must be those of the splits by category"),
    ("comparison", lambda values: np.minimum(values, 1), "comparison must be one of|must be those of the splits"),
    ("missing", first(3), "missing must be from 0 to 2; got 3"),
    ("threshold", first(np.nan), "threshold must be finite"),
    ("threshold", first(-np.inf), "threshold must be finite"),
    ("value", last(np.inf), "value must be finite"),
    ("gain", first(np.nan), "gain must be finite"),
    ("weight", first(np.inf), "weight must be finite"),
    ("count", first(-1), "count must be from 0 to 2147483647; got -1"),
    ("set_start", last(10**6), "set_start must divide the categories into one set for each node"),
    ("set_start", first(1), "set_start must divide the categories into one set for each node"),
    ("set_start", shorter, "set_start must divide the categories into one set for each node"),
    ("category", first(-1), "category must be from 0 to 16777215; got -1"),
    ("category", first(2**24), "category must be from 0 to 16777215; got 16777216"),
    ("category", first(80), "categories must be distinct and ascending within a set"),
    ("category", shorter, "set_start must divide the categories"),
]
DAMAGE = [(engine, *damage) for engine in ENGINES for damage in BOTH] + [
    ("xgboost", "weight", first(0.0), "weight must be above 0 for splits"),
    ("xgboost", "threshold", first(np.inf), "threshold must be finite"),
    ("xgboost", "value", last(1e39), "value must be finite"),
    ("lightgbm", "comparison", first(1), "comparison must be one of lightgbm"),
]


@pytest.mark.parametrize(("engine", "field", "change", "message"), DAMAGE)
def test_damaged_arrays(states, engine, field, change, message):
    state = states[engine]
    with pytest.raises(ValueError, match=f"the {engine} trees are damaged: .*({message})"):
        check_tree_model(state | {field: change(state[field])})


def chain(depth):
    """State of a tree in which each split has one leaf, so that the last one is ``depth`` deep."""
    splits, n_nodes = np.arange(depth), 2 * depth + 1
    right = np.r_[splits[1:], 2 * depth, np.full(depth + 1, -1)]
    columns = {"left": np.r_[depth + splits, np.full(depth + 1, -1)], "right": right}
    columns |= {"threshold": np.r_[splits, np.zeros(depth + 1)], "value": np.r_[np.zeros(depth), np.arange(depth + 1)]}
    columns |= {name: np.ones(n_nodes) for name in ("gain", "weight", "count")}
    columns |= {name: np.zeros(n_nodes) for name in ("feature", "comparison", "missing", "default_left")}
    more = {"root": [0], "set_start": np.zeros(n_nodes + 1), "category": []}
    return {"engine": "lightgbm", "n_features": 1, "base_score": 0.5, "has_probabilities": True, **columns, **more}


def test_deep_trees():
    X = np.array([[-1.0], [5.5], [1e6]])
    model = TreeModel(**chain(LIMITS.depth))
    assert model.predict(X, 1).tolist() == predict_plain(model, X).tolist() == [0.0, 6.0, LIMITS.depth]
    with pytest.raises(ValueError, match=f"trees must have a depth of at most {LIMITS.depth}; got a deeper one"):
        TreeModel(**chain(LIMITS.depth + 1))


def test_cycles_beside_the_tree():
    # Nodes 1 and 2 are children of each other; each node has one parent.
    state = chain(3)
    state["left"][:3], state["right"][:3] = [3, 2, 1], [4, 5, 6]
    with pytest.raises(ValueError, match="trees must not contain cycles"):
        TreeModel(**state)


def test_an_infinite_threshold_separates_missing_values():
    state = chain(1)
    state["threshold"][0], state["missing"][0] = np.inf, 2
    assert TreeModel(**state).predict(np.array([[1e308], [np.nan]]), 1).tolist() == [0.0, 1.0]


def test_sets_need_a_limited_number_of_bits():
    state = chain(65) | {"set_start": np.minimum(np.arange(132), 65), "category": np.full(65, 2**24 - 1)}
    state["comparison"] = np.r_[np.full(65, 2), np.zeros(66)]
    with pytest.raises(ValueError, match="categories must need at most 1073741824 bits"):
        TreeModel(**state)


def test_state_of_a_model(states):
    state = states["lightgbm"]
    check_tree_model(state)
    for change, message in (
        ({"more": 1}, "a tree model must have the fields engine, n_features, base_score"),
        ({"engine": "catboost"}, "engine must be lightgbm or xgboost; got 'catboost'"),
        ({"engine": "xgboost"}, "the xgboost trees are damaged: comparison must be one of xgboost"),
        ({"engine": None}, "engine of a tree model must be of type str; got NoneType"),
        ({"n_features": 4.0}, "n_features of a tree model must be of type int; got float"),
        ({"n_features": True}, "n_features of a tree model must be of type int; got bool"),
        ({"left": state["left"].tolist()}, "left of a tree model must be a one-dimensional array of type int32"),
        ({"left": state["left"].astype(float)}, "left of a tree model must be a one-dimensional array of type int32"),
        ({"left": state["left"][None]}, "left of a tree model must be a one-dimensional array of type int32"),
    ):
        with pytest.raises(ValueError, match=message):
            check_tree_model(state | change)
    with pytest.raises(ValueError, match="must have the fields"):
        check_tree_model(None)
