"""JSON models of XGBoost, read and checked without XGBoost.

XGBoost checks the types in the JSON, but not the indices of nodes, features and categories: one that is out of range
can end the process. Everything is therefore checked here before XGBoost reads it. The format is that of
``Booster.save_raw("json")`` in XGBoost 2 and 3.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any

import numpy as np

from rocmax._typing import Array
from rocmax.backends._trees import (
    BELOW,
    IN_SET,
    NAN_IS_MISSING,
    Bools,
    Ints,
    Trees,
    check_range,
    check_structure,
    within,
)

# Objectives, and whether base_score is a probability. A custom objective is stored under the name of the default.
_OBJECTIVES = {"binary:logistic": True, "binary:logitraw": False, "reg:squarederror": False}
_LEARNER = ("attributes", "feature_names", "feature_types", "gradient_booster", "learner_model_param", "objective")
_LEARNER_PARAM = ("base_score", "boost_from_average", "num_class", "num_feature", "num_target")
_MODEL = ("gbtree_model_param", "iteration_indptr", "tree_info", "trees")
_NODE_NUMBERS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
_NODE_INTEGERS = ("default_left", "left_children", "parents", "right_children", "split_indices", "split_type")
_SETS = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
_TREE = (*_NODE_NUMBERS, *_NODE_INTEGERS, *_SETS, "id", "tree_param")
_TREE_PARAM = ("num_deleted", "num_feature", "num_nodes", "size_leaf_vector")
_NO_PARENT = 2**31 - 1
_MAX_FEATURES = 10_000_000
_MAX_SINGLE = float(np.finfo(np.float32).max)
_MAX_NODES = 2**31 - 1
# XGBoost stores each set as bits up to its largest category: limits of a category and of the bits of all sets.
_MAX_CATEGORY = 2**24
_MAX_BITS = 2**30


def read_xgboost(text: str, n_features: int) -> Trees:
    """Return the trees of a JSON model.

    Parameters
    ----------
    text : str
        The model.
    n_features : int
        Number of features.

    Returns
    -------
    Trees
        The trees.

    Raises
    ------
    ValueError
        If the text is not a valid model.
    """
    if not text.isascii() or "\\" in text:
        raise ValueError("the model must consist of ASCII characters without backslashes")
    if n_features > _MAX_FEATURES:
        raise ValueError(f"n_features must be at most {_MAX_FEATURES}; got {n_features}")
    try:
        content = json.loads(text, object_pairs_hook=_distinct, parse_constant=_read_constant)
    except RecursionError:
        raise ValueError("the model must be JSON without deep nesting") from None
    model = _object("the model", content, ("learner", "version"))
    version = _integers("version", model["version"])
    if version.size != 3 or version[0] < 2:
        raise ValueError(f"version must be 2.0.0 or later; got {str(model['version'])[:40]}")
    learner = _object("learner", model["learner"], _LEARNER)
    _check_columns(learner, n_features)
    return _Nodes(_booster_trees(learner["gradient_booster"]), n_features).trees(_constant(learner, n_features))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("keys of a JSON object must be distinct")
    return found


def _read_constant(name: str) -> float:
    # Before version 3.1, splits by category have the threshold NaN.
    if name != "NaN":
        raise ValueError(f"numbers must be finite; got {name}")
    return float("nan")


def _object(name: str, value: Any, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a JSON object after checking its keys."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a JSON object; got {type(value).__name__}")
    if not set(keys) <= value.keys() <= {*keys, *optional}:
        raise ValueError(f"{name} must have the keys {', '.join(keys)}; got {', '.join(value)[:200]}")
    return value


def _array(name: str, value: Any, kind: type) -> list[Any]:
    if not isinstance(value, list) or not set(map(type, value)) <= {kind}:
        raise ValueError(f"{name} must be a JSON array of type {kind.__name__}")
    return value


def _integers(name: str, value: Any) -> Ints:
    try:
        return np.array(_array(name, value, int), dtype=np.int64)
    except OverflowError:
        raise ValueError(f"{name} must be integers of 64 bits") from None


def _numbers(name: str, value: Any, ignored: Bools | None = None) -> Array:
    """Return finite numbers; those that are ignored become 0."""
    found = np.array(_array(name, value, float), dtype=np.float64)
    if ignored is not None:
        found[ignored] = 0.0
    if not np.all(np.abs(found) <= _MAX_SINGLE):
        raise ValueError(f"{name} must be finite in single precision")
    return found


def _parameter(name: str, value: Any, *allowed: int) -> None:
    """Check an integer parameter, which XGBoost writes as a string."""
    if value not in [str(number) for number in allowed]:
        raise ValueError(f"{name} must be {' or '.join(map(str, allowed))}; got {str(value)[:40]!r}")


def _check_columns(learner: dict[str, Any], n_features: int) -> None:
    attributes = learner["attributes"]
    if not isinstance(attributes, dict) or not all(isinstance(value, str) for value in attributes.values()):
        raise ValueError("attributes must be a JSON object of strings")
    if learner["feature_names"] != []:
        raise ValueError("feature_names must be empty: columns have no names in tree models")
    if len(_array("feature_types", learner["feature_types"], str)) not in (0, n_features):
        raise ValueError(f"feature_types must have 0 or {n_features} values; got {len(learner['feature_types'])}")
    if wrong := set(learner["feature_types"]) - {"float", "i", "int", "q", "c"}:
        raise ValueError(f"feature_types must be float, i, int, q or c; got {wrong.pop()[:40]!r}")


def _constant(learner: dict[str, Any], n_features: int) -> float:
    """Return base_score as a margin."""
    parameters = _object("learner_model_param", learner["learner_model_param"], _LEARNER_PARAM)
    _parameter("num_feature", parameters["num_feature"], n_features)
    _parameter("num_class", parameters["num_class"], 0, 1)
    _parameter("num_target", parameters["num_target"], 1)
    _parameter("boost_from_average", parameters["boost_from_average"], 0, 1)
    objective = _object("objective", learner["objective"], ("name", "reg_loss_param"))
    if not isinstance(objective["name"], str) or objective["name"] not in _OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(_OBJECTIVES)}; got {str(objective['name'])[:40]!r}")
    loss = _object("reg_loss_param", objective["reg_loss_param"], ("scale_pos_weight",))
    if _decimal("scale_pos_weight", loss["scale_pos_weight"]) < 0:
        raise ValueError(f"scale_pos_weight must be at least 0; got {loss['scale_pos_weight']}")
    score = _decimal("base_score", parameters["base_score"])
    if not _OBJECTIVES[objective["name"]]:
        return float(score)
    if not 0 < score < 1:
        raise ValueError(f"base_score must be a probability between 0 and 1; got {score}")
    return float(-np.log(np.float32(1) / score - np.float32(1)))


def _decimal(name: str, value: Any) -> np.float32:
    """Return a number that XGBoost writes as a string; since version 3.1, base_score is written as [number]."""
    pattern = r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,2})?"
    if not isinstance(value, str) or not re.fullmatch(rf"{pattern}|\[{pattern}\]", value):
        raise ValueError(f"{name} must be a number; got {str(value)[:40]!r}")
    found = float(value.strip("[]"))
    if abs(found) > _MAX_SINGLE:
        raise ValueError(f"{name} must be finite in single precision; got {value}")
    return np.float32(found)


def _booster_trees(booster: Any) -> list[dict[str, Any]]:
    name = booster.get("name") if isinstance(booster, dict) else None
    if name != "gbtree":
        raise ValueError(f"gradient_booster must be gbtree; got {str(name)[:40]!r}")
    model = _object("gradient_booster", booster, ("model", "name"))["model"]
    _object("model", model, _MODEL, ("cats",))
    trees = _array("trees", model["trees"], dict)
    parameters = _object("gbtree_model_param", model["gbtree_model_param"], ("num_parallel_tree", "num_trees"))
    _parameter("num_trees", parameters["num_trees"], len(trees))
    _parameter("num_parallel_tree", parameters["num_parallel_tree"], 1)
    cats = _object("cats", model.get("cats", {}), (), ("enc", "feature_segments", "sorted_idx"))
    if any(value != [] for value in cats.values()) or len(cats) not in (0, 3):
        raise ValueError("cats must have no entries: categories must be integers from 0")
    if not np.array_equal(_integers("iteration_indptr", model["iteration_indptr"]), np.arange(len(trees) + 1)):
        raise ValueError("iteration_indptr must be 0, 1, 2, ... up to the number of trees")
    if _array("tree_info", model["tree_info"], int) != [0] * len(trees):
        raise ValueError("tree_info must be 0 for each tree")
    return trees


class _Nodes:
    """Nodes of all trees, one array per property."""

    def __init__(self, found: list[dict[str, Any]], n_features: int) -> None:
        self.found, self.n_features = found, n_features
        sizes = []
        for place, tree in enumerate(found):
            _object("a tree", tree, _TREE)
            if type(tree["id"]) is not int or tree["id"] != place:
                raise ValueError(f"id of tree {place} must be {place}; got {str(tree['id'])[:40]}")
            sizes.append(len(_array("left_children", tree["left_children"], int)))
            parameters = _object("tree_param", tree["tree_param"], _TREE_PARAM)
            _parameter("num_nodes", parameters["num_nodes"], sizes[-1])
            _parameter("num_feature", parameters["num_feature"], n_features)
            _parameter("num_deleted", parameters["num_deleted"], 0)
            _parameter("size_leaf_vector", parameters["size_leaf_vector"], 0, 1)
        self.sizes = np.array(sizes, dtype=np.int64)
        check_range("num_nodes", self.sizes, 1, _MAX_NODES)
        self.root = np.cumsum(self.sizes) - self.sizes
        self.tree_of_node = np.repeat(np.arange(len(found)), self.sizes)

    def integers(self, name: str) -> Ints:
        self._check_sizes(name)
        return _integers(name, list(chain.from_iterable(tree[name] for tree in self.found)))

    def numbers(self, name: str, ignored: Bools | None = None) -> Array:
        self._check_sizes(name)
        return _numbers(name, list(chain.from_iterable(tree[name] for tree in self.found)), ignored)

    def _check_sizes(self, name: str) -> None:
        for place, (tree, size) in enumerate(zip(self.found, self.sizes, strict=True)):
            if not isinstance(tree[name], list) or len(tree[name]) != size:
                raise ValueError(f"{name} of tree {place} must be an array of {size} values")

    def trees(self, constant: float) -> Trees:
        """Check all properties and return the trees."""
        left, right = self._children("left_children"), self._children("right_children")
        split = left >= 0
        if np.any(split != (right >= 0)):
            raise ValueError("left_children and right_children must have their leaves, -1, at the same nodes")
        self._check_parents(left, right)
        feature, kind, to_left = (self.integers(name) for name in ("split_indices", "split_type", "default_left"))
        check_range("split_indices", feature, 0, self.n_features)
        check_range("split_type", kind, 0, 2)
        check_range("default_left", to_left, 0, 2)
        for name in ("base_weights", "loss_changes"):
            self.numbers(name)
        # Contributions divide by it.
        if np.any(self.numbers("sum_hessian")[split] <= 0):
            raise ValueError("sum_hessian must be above 0 for splits")
        by_set = kind == 1
        condition = self.numbers("split_conditions", by_set)
        if np.any(by_set & ~split):
            raise ValueError("split_type must be 0 for leaves")
        sizes, category = self._sets(np.flatnonzero(by_set))
        found = Trees(
            n_features=self.n_features,
            constant=constant,
            single=True,
            tiny=0.0,
            root=self.root,
            # XGBoost sends the categories of a set to the right.
            left=np.where(by_set, right, left),
            right=np.where(by_set, left, right),
            feature=np.where(split, feature, 0),
            threshold=np.where(split & ~by_set, condition, 0.0).astype(np.float32).astype(np.float64),
            comparison=np.where(by_set, IN_SET, BELOW),
            missing=np.full(split.size, NAN_IS_MISSING),
            default_left=(to_left == 1) != by_set,
            value=np.where(split, 0.0, condition).astype(np.float32).astype(np.float64),
            set_start=np.concatenate([[0], np.cumsum(sizes)]),
            category=category,
        )
        check_structure(found)
        return found

    def _children(self, name: str) -> Ints:
        child = self.integers(name)
        if np.any((child < -1) | (child >= self.sizes[self.tree_of_node])):
            raise ValueError(f"{name} must be nodes of the tree; got one out of range")
        return np.where(child >= 0, child + self.root[self.tree_of_node], -1)

    def _check_parents(self, left: Ints, right: Ints) -> None:
        parents = self.integers("parents")
        expected = np.full(parents.size, _NO_PARENT)
        for child in (left, right):
            split = np.flatnonzero(child >= 0)
            expected[child[split]] = split - self.root[self.tree_of_node[split]]
        if np.any(parents != expected):
            raise ValueError("parents must be the nodes that have the others as children")

    def _sets(self, by_set: Ints) -> tuple[Ints, Ints]:
        """Return the number of categories of each node, and the categories of all nodes."""
        parts = {name: [_integers(name, tree[name]) for tree in self.found] for name in _SETS}
        nodes = [own + start for own, start in zip(parts["categories_nodes"], self.root, strict=True)]
        if not np.array_equal(np.concatenate(nodes), by_set):
            raise ValueError("categories_nodes must be the nodes with split_type 1, ascending")
        for category, size, start in zip(
            parts["categories"], parts["categories_sizes"], parts["categories_segments"], strict=True
        ):
            check_range("categories_sizes", size, 1, category.size + 1)
            if size.sum() != category.size or not np.array_equal(start, np.cumsum(size) - size):
                raise ValueError("categories_sizes and categories_segments must divide the categories into sets")
        size, category = np.concatenate(parts["categories_sizes"]), np.concatenate(parts["categories"])
        if size.size != by_set.size:
            raise ValueError("categories_sizes must have one value for each of categories_nodes")
        check_range("categories", category, 0, _MAX_CATEGORY)
        if np.any((np.diff(category) <= 0) & (within(size)[1:] > 0)):
            raise ValueError("categories must be distinct and ascending within a set")
        if size.size and np.sum(category[np.cumsum(size) - 1] + 1) > _MAX_BITS:
            raise ValueError(f"categories must need at most {_MAX_BITS} bits")
        sizes = np.zeros(self.tree_of_node.size, dtype=np.int64)
        sizes[by_set] = size
        return sizes, category
