"""Tree models as text: what is read gives the library's scores, and damaged text is refused by name."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.tree_models import ENGINES, custom, engine_scores, table, tree_text
from oracles.trees import predict_plain
from rocmax.boosted.trees import MAX_DEPTH, MAX_TEXT, check_tree_model, read_trees, shorten_text

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
    np.testing.assert_allclose(predict_plain(trees, new), engine_scores("lightgbm", text, new), rtol=0, atol=1e-12)


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw", "reg:squarederror", custom])
@pytest.mark.parametrize("base_score", [None, 0.3])
def test_base_score_of_xgboost(objective, base_score):
    X, y = table(3)
    given = {} if base_score is None else {"base_score": base_score}
    text = tree_text("xgboost", X, y, objective=objective, **given)
    trees = read_trees("xgboost", text, 4)
    np.testing.assert_allclose(predict_plain(trees, X), engine_scores("xgboost", text, X), rtol=0, atol=1e-5)
    older = re.sub(r'"base_score":"\[(.*?)\]"', r'"base_score":"\1"', text)
    assert read_trees("xgboost", older, 4).constant == trees.constant


def test_models_that_are_a_constant():
    X, y = np.ones((40, 2)), np.arange(40) % 4 == 0
    for engine in ENGINES:
        text = tree_text(engine, X, y.astype(int), categorical=())
        trees = read_trees(engine, text, 2)
        expected = engine_scores(engine, text, X, ())
        np.testing.assert_allclose(predict_plain(trees, X), expected, rtol=0, atol=TOLERANCE[engine])


def test_custom_objectives_and_constraints_of_lightgbm():
    X, y = table(4)
    for more in ({"objective": custom}, {"monotone_constraints": [1, 0, -1, 0]}):
        text = tree_text("lightgbm", X, y, **more)
        trees = read_trees("lightgbm", text, 4)
        np.testing.assert_array_equal(predict_plain(trees, X), engine_scores("lightgbm", text, X))


def test_shorter_text_gives_the_same_model():
    lightgbm = pytest.importorskip("lightgbm")
    from helpers.tree_models import lightgbm_booster

    X, y = table(5)
    booster = lightgbm_booster(X, y)
    text = booster.model_to_string()
    shorter = shorten_text("lightgbm", text)
    again = lightgbm.Booster(model_str=shorter)
    assert shorter.endswith("\nend of trees\n")
    assert shorten_text("lightgbm", shorter) == shorter
    np.testing.assert_array_equal(again.predict(X, pred_contrib=True), booster.predict(X, pred_contrib=True))
    np.testing.assert_array_equal(again.feature_importance("gain"), booster.feature_importance("gain"))
    with pytest.raises(ValueError, match="the trees must be followed by 'end of trees'"):
        read_trees("lightgbm", text, 4)


@pytest.fixture(scope="module")
def texts():
    return {engine: tree_text(engine, *table(0)) for engine in ENGINES}


LIGHTGBM_DAMAGE = [
    (r"^tree\n", "forest\n", "the first line must be 'tree'"),
    (r"version=v4", "version=v9", "version has an unsupported value: 'v9'"),
    (r"num_class=1", "num_class=3", "num_class has an unsupported value: '3'"),
    (r"max_feature_idx=3", "max_feature_idx=2", "max_feature_idx must be 3; got 2"),
    (r"label_index=0\n", "", "the header must have a line 'label_index'"),
    (r"label_index=0\n", "label_index=0\nlabel_index=0\n", "lines of the header must be .* got 'label_index=0'"),
    (r"feature_names=Column_0 ", "feature_names=", "feature_names must have 4 values; got 3"),
    (r"\nobjective=.*", "\nobjective=multiclass num_class:3", "objective has an unsupported value"),
    (r"\nobjective=.*", "\nobjective=binary sigmoid:-1", "objective has an unsupported value"),
    (r"\nfeature_names", "\naverage_output\nfeature_names", "the trees must be summed; got average_output"),
    (r"tree_sizes=\d", "tree_sizes=9", "tree_sizes must be the sizes of the trees; tree 0 has another size"),
    (r"num_leaves=6", "num_leaves=7", "of tree 0 must have 6 values; got 5"),
    (r"num_leaves=6", "num_leaves=0", "num_leaves must be from 1 to 2147483647; got 0"),
    (r"num_leaves=6", "num_leaves=99999999999999999999", "num_leaves must be numbers: "),
    (r"is_linear=0", "is_linear=1", "the leaves must be constant; got linear trees"),
    (r"split_feature=\d", "split_feature=4", "split_feature must be from 0 to 3; got 4"),
    (r"split_feature=\d", "split_feature=-1", "split_feature must be from 0 to 3; got -1"),
    (r"left_child=\S+", "left_child=0", "each node of tree 0 must be the root or the child of one node"),
    (r"left_child=\S+", "left_child=5", "left_child must be nodes of the tree; got one out of range"),
    (r"right_child=\S+", "right_child=-7", "right_child must be nodes of the tree; got one out of range"),
    (r"decision_type=\d+", "decision_type=14", "decision_type must be from 0 to 11; got 14"),
    (r"leaf_value=\S+", "leaf_value=nan", "leaf_value must be numbers with one space between them"),
    (r"leaf_value=\S+", "leaf_value=inf", "leaf_value must be finite numbers"),
    (r"leaf_value=\S+", "leaf_value=1e999", "leaf_value must be finite numbers"),
    (r"leaf_value=\S+", "leaf_value=1e", "leaf_value must be numbers: "),
    (r"leaf_value=\S+", "leaf_value=1_0", "leaf_value must be numbers with one space between them"),
    (r"leaf_value=\S+ ", "leaf_value= ", "leaf_value must be numbers with one space between them"),
    (r"leaf_count=\S+", "leaf_count=-1", "leaf_count must be from 0 to 2147483647; got -1"),
    (r"leaf_value", "leaf_values", "tree 0 must have the lines num_leaves, .*, in this order"),
    (r"num_cat=[1-9]", "num_cat=9", "num_cat must be the number of splits by category of the tree"),
    (r"cat_boundaries=0", "cat_boundaries=1", "cat_boundaries must start at 0, increase"),
    (r"cat_boundaries=0 \d+", "cat_boundaries=0 8388608", "cat_boundaries must start at 0, increase, and stay below"),
    (r"cat_threshold=\d+", "cat_threshold=-1", "cat_threshold must be from 0 to 4294967295; got -1"),
    (r"cat_threshold=\d+", "cat_threshold=4294967296", "cat_threshold must be from 0 to 4294967295"),
    (r"end of trees\n", "", "the trees must be followed by 'end of trees'; got ''"),
    (r"leaf_count=\S+", "leaf_count=²", "the model must consist of ASCII characters"),
]


def keep_sizes(text):
    """Write the sizes of the trees anew, after a change of a tree."""
    head, _, body = text.partition("\n\n")
    starts = [place.start() for place in re.finditer("^Tree=", body, re.M)]
    ends = [*starts[1:], body.find("end of trees") if "end of trees" in body else len(body)]
    sizes = " ".join(str(end - start) for start, end in zip(starts, ends, strict=True))
    return re.sub("tree_sizes=.*", f"tree_sizes={sizes}", head) + "\n\n" + body


@pytest.mark.parametrize(("old", "new", "message"), LIGHTGBM_DAMAGE, ids=[new for _, new, _ in LIGHTGBM_DAMAGE])
def test_damaged_text_of_lightgbm(texts, old, new, message):
    text, changes = re.subn(old, new, texts["lightgbm"], count=1)
    assert changes == 1
    if not new.startswith("tree_sizes"):
        text = keep_sizes(text)
    with pytest.raises(ValueError, match=f"the lightgbm trees are damaged: .*{message}"):
        read_trees("lightgbm", text, 4)


def edited(text, path, value):
    model = json.loads(text)
    node = model
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value(node[path[-1]]) if callable(value) else value
    return json.dumps(model)


MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 0)
PARAM = ("learner", "learner_model_param")


def first(value):
    return lambda values: [value, *values[1:]]


XGBOOST_DAMAGE = [
    (("version",), [1, 7, 0], "version must be 2.0.0 or later"),
    (("version",), ["3", 0, 0], "version must be a JSON array of type int"),
    (("learner",), [], "learner must be a JSON object; got list"),
    (("learner", "more"), 1, "learner must have the keys attributes, "),
    (("learner", "attributes"), {"a": 1}, "attributes must be a JSON object of strings"),
    (("learner", "feature_names"), ["a", "b", "c", "d"], "feature_names must be empty"),
    (("learner", "feature_types"), ["q"], "feature_types must have 0 or 4 values; got 1"),
    (("learner", "feature_types"), ["q", "q", "q", "z"], "feature_types must be float, i, int, q or c; got 'z'"),
    (("learner", "objective", "name"), "multi:softmax", "objective must be one of binary:logistic, "),
    (("learner", "gradient_booster", "name"), "dart", "gradient_booster must be gbtree; got 'dart'"),
    (("learner", "objective", "reg_loss_param", "scale_pos_weight"), "-1", "scale_pos_weight must be at least 0"),
    ((*TREE, "sum_hessian"), first(0.0), "sum_hessian must be above 0 for splits"),
    ((*PARAM, "num_feature"), "5", "num_feature must be 4; got '5'"),
    ((*PARAM, "num_class"), "3", "num_class must be 0 or 1; got '3'"),
    ((*PARAM, "num_target"), "2", "num_target must be 1; got '2'"),
    ((*PARAM, "base_score"), "[1E0]", "base_score must be a probability between 0 and 1; got 1.0"),
    ((*PARAM, "base_score"), "[5E-1,5E-1]", "base_score must be a number"),
    ((*PARAM, "base_score"), "nan", "base_score must be a number; got 'nan'"),
    ((*PARAM, "base_score"), "1E99", "base_score must be finite in single precision"),
    ((*MODEL, "gbtree_model_param", "num_trees"), "4", "num_trees must be 5; got '4'"),
    ((*MODEL, "gbtree_model_param", "num_parallel_tree"), "2", "num_parallel_tree must be 1; got '2'"),
    ((*MODEL, "tree_info"), [0, 0, 0, 0, 1], "tree_info must be 0 for each tree"),
    ((*MODEL, "iteration_indptr"), [0, 5], "iteration_indptr must be 0, 1, 2"),
    ((*MODEL, "cats"), {"enc": [{}], "feature_segments": [], "sorted_idx": []}, "cats must have no entries"),
    ((*TREE, "id"), 1, "id of tree 0 must be 0; got 1"),
    ((*TREE, "tree_param", "num_nodes"), "9999999", r"num_nodes must be \d+; got '9999999'"),
    ((*TREE, "tree_param", "size_leaf_vector"), "2", "size_leaf_vector must be 0 or 1; got '2'"),
    ((*TREE, "tree_param", "num_deleted"), "1", "num_deleted must be 0; got '1'"),
    ((*TREE, "left_children"), first(99), "left_children must be nodes of the tree; got one out of range"),
    ((*TREE, "left_children"), first(-2), "left_children must be nodes of the tree; got one out of range"),
    ((*TREE, "left_children"), first(-1), "must have their leaves, -1, at the same nodes"),
    ((*TREE, "left_children"), first(2**80), "left_children must be integers of 64 bits"),
    ((*TREE, "left_children"), first(True), "left_children must be a JSON array of type int"),
    ((*TREE, "left_children"), lambda values: [2, *values[1:]], "parents must be the nodes"),
    ((*TREE, "parents"), first(0), "parents must be the nodes that have the others as children"),
    ((*TREE, "split_indices"), first(4), "split_indices must be from 0 to 3; got 4"),
    ((*TREE, "split_type"), lambda values: [*values[:-1], 1], "split_type must be 0 for leaves"),
    ((*TREE, "split_type"), first(2), "split_type must be from 0 to 1; got 2"),
    ((*TREE, "default_left"), first(2), "default_left must be from 0 to 1; got 2"),
    (
        (*TREE, "split_conditions"),
        lambda values: [*values[:-1], 1e39],
        "split_conditions must be finite in single precision",
    ),
    ((*TREE, "base_weights"), first(float("nan")), "base_weights must be finite in single precision"),
    ((*TREE, "base_weights"), first(float("inf")), "numbers must be finite; got Infinity"),
    ((*TREE, "sum_hessian"), lambda values: values[:-1], r"sum_hessian of tree 0 must be an array of \d+ values"),
    ((*TREE, "categories"), first(-1), "categories must be from 0 to 16777215; got -1"),
    ((*TREE, "categories"), first(2**24), "categories must be from 0 to 16777215; got 16777216"),
    ((*TREE, "categories"), first(80), "categories must be distinct and ascending within a set"),
    ((*TREE, "categories_nodes"), first(-1), "categories_nodes must be the nodes with split_type 1"),
    ((*TREE, "categories_sizes"), first(0), r"categories_sizes must be from 1 to \d+; got 0"),
    ((*TREE, "categories_segments"), first(1), "categories_sizes and categories_segments must divide"),
]


@pytest.mark.parametrize(
    ("path", "value", "message"), XGBOOST_DAMAGE, ids=[f"{p[-1]}-{m[:30]}" for p, _, m in XGBOOST_DAMAGE]
)
def test_damaged_text_of_xgboost(texts, path, value, message):
    text = edited(texts["xgboost"], path, value)
    with pytest.raises(ValueError, match=f"the xgboost trees are damaged: .*{message}"):
        read_trees("xgboost", text, 4)


def test_json_that_is_not_read_alike_by_all(texts):
    for text, message in (
        (texts["xgboost"][:-1], "Expecting ',' delimiter"),
        (texts["xgboost"].replace('"id":0', '"id":0,"id":0'), "keys of a JSON object must be distinct"),
        (texts["xgboost"].replace("gbtree", "gbtr\\u0065e"), "without backslashes"),
        ("[" * 10**5, "JSON without deep nesting"),
    ):
        with pytest.raises(ValueError, match=message):
            read_trees("xgboost", text, 4)


def chain_text(depth):
    """LightGBM's text of a tree in which each split has one leaf, so that the last one is ``depth`` deep."""
    number = range(depth)

    def line(name, values):
        return f"{name}={' '.join(map(str, values))}\n"

    tree = "Tree=0\n" + line("num_leaves", [depth + 1]) + line("num_cat", [0]) + line("split_feature", [0] * depth)
    tree += line("split_gain", [1] * depth) + line("threshold", number) + line("decision_type", [2] * depth)
    tree += line("left_child", [~i for i in number]) + line("right_child", [*range(1, depth), ~depth])
    tree += line("leaf_value", range(depth + 1)) + line("leaf_weight", [1] * (depth + 1))
    tree += line("leaf_count", [1] * (depth + 1)) + line("internal_value", [0] * depth)
    tree += line("internal_weight", [1] * depth) + line("internal_count", range(depth + 1, 1, -1))
    tree += "is_linear=0\nshrinkage=1\n\n\n"
    head = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=0\n"
    head += "objective=binary sigmoid:1\nfeature_names=Column_0\nfeature_infos=[0:1]\n"
    return f"{head}tree_sizes={len(tree)}\n\n{tree}end of trees\n"


def test_deep_trees():
    X = np.array([[-1.0], [5.5], [1e6]])
    text = chain_text(MAX_DEPTH)
    assert engine_scores("lightgbm", text, X).tolist() == [0.0, 6.0, MAX_DEPTH]
    assert predict_plain(read_trees("lightgbm", text, 1), X).tolist() == [0.0, 6.0, MAX_DEPTH]
    with pytest.raises(ValueError, match=f"trees must have a depth of at most {MAX_DEPTH}; got a deeper one"):
        read_trees("lightgbm", chain_text(MAX_DEPTH + 1), 1)


def test_cycles_beside_the_tree():
    # Nodes 1 and 2 are children of each other; each node has one parent.
    text = (
        chain_text(3)
        .replace("left_child=-1 -2 -3", "left_child=-1 2 1")
        .replace("right_child=1 2 -4", "right_child=-2 -3 -4")
    )
    with pytest.raises(ValueError, match="trees must not contain cycles"):
        read_trees("lightgbm", keep_sizes(text), 1)


def test_state_of_a_model(texts):
    state = {"engine": "lightgbm", "text": texts["lightgbm"], "n_features": 4}
    check_tree_model(state)
    for change, message in (
        ({"more": 1}, "a tree model must have the fields engine, n_features, text"),
        ({"engine": "catboost"}, "engine must be one of lightgbm, xgboost; got 'catboost'"),
        ({"engine": "xgboost"}, "the xgboost trees are damaged: Expecting value"),
        ({"engine": None}, "engine of a tree model must be of type str; got NoneType"),
        ({"text": b""}, "text of a tree model must be of type str; got bytes"),
        ({"n_features": 4.0}, "n_features of a tree model must be of type int; got float"),
        ({"n_features": True}, "n_features of a tree model must be of type int; got bool"),
        ({"n_features": 0}, "n_features must be at least 1; got 0"),
        ({"n_features": 5}, "feature_names must have 5 values; got 4"),
        ({"text": " " * (MAX_TEXT + 1)}, "the text of a model must have at most 134,217,728 characters"),
    ):
        with pytest.raises(ValueError, match=message):
            check_tree_model(state | change)
    with pytest.raises(ValueError, match="must have the fields"):
        check_tree_model(None)
    with pytest.raises(ValueError, match="n_features must be at most 10000000"):
        read_trees("xgboost", texts["xgboost"], 10**8)
