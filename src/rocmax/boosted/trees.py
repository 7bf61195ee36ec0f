"""Fitted tree ensembles of LightGBM and XGBoost, kept as the text of the engine's own model format.

LightGBM's own parser trusts the text: an index out of range ends the process. Every line is therefore checked here
before LightGBM reads it. The format is that of version v4, written by ``Booster.model_to_string``.

XGBoost checks the types in the JSON, but not the indices of nodes, features and categories: one that is out of range
can end the process. Everything is therefore checked here before XGBoost reads it. The format is that of
``Booster.save_raw("json")`` in XGBoost 2 and 3.

LightGBM and XGBoost read models in C++ and trust them. A model with an index out of range can end the process or read
other memory, so that the text of a model file must be checked first, here, without them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._support import Array, need

# Tree ensembles as arrays, independent of the library that fitted them.


Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Comparisons of a split. A value goes to the left if it is at most the threshold (LightGBM), below the threshold, with
# both in single precision (XGBoost), or if its category is in the set of the split.
AT_MOST, BELOW, IN_SET = 0, 1, 2
# Values that follow the default direction of a split: NaN; or NaN and zero. With NAN_IS_ZERO, NaN is compared as zero.
NAN_IS_ZERO, ZERO_IS_MISSING, NAN_IS_MISSING = 0, 1, 2
# LightGBM and XGBoost process trees by recursion: deeper trees could overflow the stack.
MAX_DEPTH = 2000


class Trees(NamedTuple):
    """Sum of regression trees and a constant.

    The nodes of all trees are numbered consecutively, tree by tree, and the first node of a tree is its root.

    Attributes
    ----------
    n_features : int
        Number of features.
    constant : float
        Constant of the sum.
    single : bool
        Whether features are rounded to single precision before they are compared.
    tiny : float
        Features of at most this magnitude are read as zero.
    root : ndarray of shape (n_trees,)
        Root of each tree.
    left, right : ndarray of shape (n_nodes,)
        Children of each node; -1 for leaves.
    feature : ndarray of shape (n_nodes,)
        Feature of each split; 0 for leaves.
    threshold : ndarray of shape (n_nodes,)
        Threshold of each split; 0 for leaves and for splits by category.
    comparison : ndarray of shape (n_nodes,)
        Comparison of each split: `AT_MOST`, `BELOW` or `IN_SET`.
    missing : ndarray of shape (n_nodes,)
        Missing values of each split: `NAN_IS_ZERO`, `ZERO_IS_MISSING` or `NAN_IS_MISSING`.
    default_left : ndarray of shape (n_nodes,)
        Whether missing values go to the left.
    value : ndarray of shape (n_nodes,)
        Value of each leaf; 0 for splits.
    set_start : ndarray of shape (n_nodes + 1,)
        The categories of node i are ``category[set_start[i]:set_start[i + 1]]``; none if it does not split by category.
    category : ndarray
        Categories of all sets, ascending within a set.
    """

    n_features: int
    constant: float
    single: bool
    tiny: float
    root: Ints
    left: Ints
    right: Ints
    feature: Ints
    threshold: Array
    comparison: Ints
    missing: Ints
    default_left: Bools
    value: Array
    set_start: Ints
    category: Ints


def check_structure(trees: Trees) -> None:
    """Raise ValueError unless each tree is a tree: all nodes are reached from its root, each in one way."""
    splits = np.flatnonzero(trees.left >= 0)
    children = np.concatenate([trees.left[splits], trees.right[splits]])
    parents = np.bincount(children, minlength=trees.left.size)
    parents[trees.root] += 1
    if np.any(parents != 1):
        node = int(np.flatnonzero(parents != 1)[0])
        tree = int(np.searchsorted(trees.root, node, side="right")) - 1
        raise ValueError(f"each node of tree {tree} must be the root or the child of one node")
    level, reached = trees.root, 0
    for _ in range(MAX_DEPTH + 1):
        reached += level.size
        inner = level[trees.left[level] >= 0]
        level = np.concatenate([trees.left[inner], trees.right[inner]])
        if not level.size:
            break
    else:
        raise ValueError(f"trees must have a depth of at most {MAX_DEPTH}; got a deeper one")
    if reached != trees.left.size:
        raise ValueError("trees must not contain cycles; got nodes that cannot be reached from the root")


def within(counts: Ints) -> Ints:
    """Return the numbers 0, 1, ..., counts[i] - 1 for each i, one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def check_range(name: str, values: Ints, low: int, high: int | Ints) -> None:
    """Raise ValueError unless low <= values < high."""
    wrong = (values < low) | (values >= high)
    if np.any(wrong):
        raise ValueError(f"{name} must be from {low} to {int(np.max(high)) - 1}; got {int(values[wrong][0])}")


# Text models of LightGBM, read and checked without LightGBM.


END = "end of trees\n"
# Lines of the header, in order, with the pattern of their values; the last three have one value per feature or tree.
_HEADER = {
    "version": "v4",
    "num_class": "1",
    "num_tree_per_iteration": "1",
    "label_index": "0",
    "max_feature_idx": r"[0-9]{1,9}",
    "objective": r"binary sigmoid:(0\.0*)?[1-9][0-9]{0,8}(\.[0-9]{1,20})?|custom",
    "feature_names": r"[!-~]+( [!-~]+)*",
    "monotone_constraints": r"(-1|0|1)( (-1|0|1))*",
    "feature_infos": r"[\[\]0-9.:e+n\-ao]+( [\[\]0-9.:e+n\-ao]+)*",
    "tree_sizes": r"[0-9]{1,10}( [0-9]{1,10})*",
}
_OPTIONAL = ("objective", "monotone_constraints")
# Lines of a tree, in order.
_LINES = (
    "num_leaves",
    "num_cat",
    "split_feature",
    "split_gain",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_value",
    "leaf_weight",
    "leaf_count",
    "internal_value",
    "internal_weight",
    "internal_count",
    "is_linear",
    "shrinkage",
)
_PLACE_OF_SETS = _LINES.index("is_linear")
_LINES_WITH_SETS = (*_LINES[:_PLACE_OF_SETS], "cat_boundaries", "cat_threshold", *_LINES[_PLACE_OF_SETS:])
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
# LightGBM's kZeroThreshold: smaller values are read as zero.
_TINY = float(np.float32(1e-35))
_LARGEST = 2**31
_MAX_NUMBER = np.finfo(np.float64).max
# Words of 32 categories in all sets, which are expanded to one number per category.
_MAX_WORDS = 2**23


def shorten_lightgbm(text: str) -> str:
    """Return the text without what follows the trees: importances and parameters, which predictions do not need."""
    before, end, _ = text.partition(f"\n{END}")
    return before + end


def read_lightgbm(text: str, n_features: int) -> Trees:
    """Return the trees of a text model.

    Parameters
    ----------
    text : str
        Model without what follows its trees.
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
    if not text.isascii():
        raise ValueError("the model must consist of ASCII characters")
    head, _, body = text.partition("\n\n")
    header = _read_header(head)
    for name in ("feature_names", "feature_infos", "monotone_constraints"):
        if name in header and header[name].count(" ") + 1 != n_features:
            raise ValueError(f"{name} must have {n_features} values; got {header[name].count(' ') + 1}")
    if int(header["max_feature_idx"]) != n_features - 1:
        raise ValueError(f"max_feature_idx must be {n_features - 1}; got {header['max_feature_idx']}")
    sizes = [int(size) for size in header["tree_sizes"].split()]
    return _Blocks(_tree_lines(body, sizes)).trees(n_features)


def _read_header(head: str) -> dict[str, str]:
    first, *lines = head.split("\n")
    if first != "tree":
        raise ValueError(f"the first line must be 'tree'; got {first[:40]!r}")
    if "average_output" in lines:
        raise ValueError("the trees must be summed; got average_output, as in random forests")
    header: dict[str, str] = {}
    expected = iter(_HEADER)
    for line in lines:
        name, _, value = line.partition("=")
        if name not in expected:  # advances the iterator: lines in another order are not found either
            raise ValueError(f"lines of the header must be {', '.join(_HEADER)}, in this order; got {line[:40]!r}")
        if not re.fullmatch(_HEADER[name], value):
            raise ValueError(f"{name} has an unsupported value: {value[:40]!r}")
        header[name] = value
    absent = [name for name in _HEADER if name not in header and name not in _OPTIONAL]
    if absent:
        raise ValueError(f"the header must have a line {absent[0]!r}; got none")
    return header


def _tree_lines(body: str, sizes: list[int]) -> list[dict[str, str]]:
    """Return the lines of each tree by name."""
    found, start = [], 0
    for place, size in enumerate(sizes):
        lines = body[start : start + size].split("\n")
        start += size
        if lines[0] != f"Tree={place}" or lines[-3:] != ["", "", ""]:
            raise ValueError(f"tree_sizes must be the sizes of the trees; tree {place} has another size")
        entries = [line.partition("=") for line in lines[1:-3]]
        names = tuple(name for name, _, _ in entries)
        if names not in (_LINES, _LINES_WITH_SETS):
            raise ValueError(f"tree {place} must have the lines {', '.join(_LINES)}, in this order; got others")
        found.append({name: value for name, _, value in entries})
    if body[start:] not in (END, f"\n{END}"):
        raise ValueError(f"the trees must be followed by {END.strip()!r}; got {body[start : start + 40]!r}")
    return found


class _Blocks:
    """Values of all trees, one array per kind of line."""

    def __init__(self, lines: list[dict[str, str]]) -> None:
        self.lines = lines
        self.leaves = self.integers("num_leaves", np.ones(len(lines), dtype=np.int64))
        check_range("num_leaves", self.leaves, 1, _LARGEST)
        self.splits = self.leaves - 1

    def integers(self, name: str, counts: Ints) -> Ints:
        return self._values(name, counts, r"[-0-9 ]*", int, np.int64)

    def numbers(self, name: str, counts: Ints, largest: float = _MAX_NUMBER) -> Array:
        found = self._values(name, counts, r"[-+.0-9eEinf ]*", float, np.float64)
        if not np.all((found >= -_MAX_NUMBER) & (found <= largest)):
            raise ValueError(f"{name} must be finite numbers")
        return found

    def _values(self, name: str, counts: Ints, pattern: str, read: Callable[[str], Any], kind: type) -> NDArray[Any]:
        """Return the values of one line of all trees, of which the tree i must have counts[i]."""
        values = [tree.get(name, "") for tree in self.lines]
        found = np.array([value.count(" ") + 1 if value else 0 for value in values], dtype=np.int64)
        wrong = np.flatnonzero(found != counts)
        if wrong.size:
            place = int(wrong[0])
            raise ValueError(f"{name} of tree {place} must have {counts[place]} values; got {found[place]}")
        joined = " ".join(value for value in values if value)
        tokens = joined.split()
        if not re.fullmatch(pattern, joined) or len(tokens) != found.sum():
            raise ValueError(f"{name} must be numbers with one space between them")
        try:
            return np.fromiter(map(read, tokens), dtype=kind, count=len(tokens))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name} must be numbers: {error}") from None

    def trees(self, n_features: int) -> Trees:
        """Check all lines and return the trees."""
        splits, leaves = self.splits, self.leaves
        self._check_other_lines()
        feature = self.integers("split_feature", splits)
        check_range("split_feature", feature, 0, n_features)
        decision = self.integers("decision_type", splits)
        check_range("decision_type", decision, 0, 12)  # 12 and more: missing type 3
        # Nodes of a tree: its splits, then its leaves.
        root = np.cumsum(splits + leaves) - splits - leaves
        places = within(splits)
        node = np.repeat(root, splits) + places
        leaf = np.repeat(root + splits, leaves) + within(leaves)
        n_nodes = int((splits + leaves).sum())
        left, right = np.full(n_nodes, -1, dtype=np.int64), np.full(n_nodes, -1, dtype=np.int64)
        left[node], right[node] = self._children("left_child", root), self._children("right_child", root)
        threshold, sizes, category = self._thresholds(decision)
        trees = Trees(
            n_features=n_features,
            constant=0.0,
            single=False,
            tiny=_TINY,
            root=root,
            left=left,
            right=right,
            feature=_spread(node, feature, n_nodes),
            threshold=_spread(node, threshold, n_nodes),
            comparison=_spread(node, np.where(decision & _CATEGORICAL, IN_SET, AT_MOST), n_nodes),
            missing=_spread(node, decision >> 2, n_nodes),
            default_left=_spread(node, decision & _DEFAULT_LEFT != 0, n_nodes),
            value=_spread(leaf, self.numbers("leaf_value", leaves), n_nodes),
            set_start=np.concatenate([[0], np.cumsum(_spread(node, sizes, n_nodes))]),
            category=category,
        )
        check_structure(trees)
        return trees

    def _check_other_lines(self) -> None:
        """Check what predictions do not need: LightGBM reads it all the same."""
        one, inner = np.ones(len(self.lines), dtype=np.int64), self.splits > 0
        if np.any(self.integers("is_linear", one)):
            raise ValueError("the leaves must be constant; got linear trees")
        self.numbers("shrinkage", one)
        self.numbers("split_gain", self.splits)
        self.numbers("internal_value", self.splits)
        self.numbers("internal_weight", self.splits)
        check_range("internal_count", self.integers("internal_count", self.splits), 0, _LARGEST)
        # A tree of one leaf may be written without them.
        given = {
            name: np.where(inner | np.array([bool(tree[name]) for tree in self.lines], dtype=bool), self.leaves, 0)
            for name in ("leaf_weight", "leaf_count")
        }
        self.numbers("leaf_weight", given["leaf_weight"])
        check_range("leaf_count", self.integers("leaf_count", given["leaf_count"]), 0, _LARGEST)

    def _children(self, name: str, root: Ints) -> Ints:
        """Return children as nodes; in the text, a negative number ~i is the leaf i."""
        child = self.integers(name, self.splits)
        splits = np.repeat(self.splits, self.splits)
        if np.any((child < -splits - 1) | (child >= splits)):
            raise ValueError(f"{name} must be nodes of the tree; got one out of range")
        return np.repeat(root, self.splits) + np.where(child >= 0, child, splits - child - 1)

    def _thresholds(self, decision: Ints) -> tuple[Array, Ints, Ints]:
        """Return the threshold and the number of categories of each split, and the categories of all splits."""
        # An infinite threshold separates missing values from all others.
        threshold = self.numbers("threshold", self.splits, np.inf)
        n_sets = self.integers("num_cat", np.ones(len(self.lines), dtype=np.int64))
        if any(("cat_threshold" in tree) != (n > 0) for tree, n in zip(self.lines, n_sets, strict=True)):
            raise ValueError("cat_boundaries and cat_threshold must be in the trees with num_cat > 0, and in no others")
        by_set = np.flatnonzero(decision & _CATEGORICAL)
        tree = np.repeat(np.arange(len(self.lines)), self.splits)[by_set]
        if np.any(np.bincount(tree, minlength=len(self.lines)) != n_sets):
            raise ValueError("num_cat must be the number of splits by category of the tree")
        start, size, words = self._words(n_sets)
        chosen = threshold[by_set]
        if np.any((chosen < 0) | (chosen >= n_sets[tree]) | (chosen != np.floor(chosen))):
            raise ValueError("threshold of a split by category must be the number of a set of categories")
        place = (np.cumsum(n_sets) - n_sets)[tree] + chosen.astype(np.int64)
        if np.unique(place).size != place.size:
            raise ValueError("threshold of a split by category must be another set of categories for each split")
        within_set = within(size[place])
        chosen_words = words[np.repeat(start[place], size[place]) + within_set].astype("<u4")
        bits = np.unpackbits(chosen_words.view(np.uint8), bitorder="little").reshape(-1, 32)
        word, bit = np.nonzero(bits)
        sizes = np.zeros(decision.size, dtype=np.int64)
        split_of_word = np.repeat(by_set, size[place])
        sizes += np.bincount(split_of_word[word], minlength=decision.size)
        threshold[by_set] = 0.0
        return threshold, sizes, 32 * within_set[word] + bit

    def _words(self, n_sets: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the first word and the number of words of each set, and the words of all sets."""
        with_sets = n_sets[n_sets > 0]
        bounds = self.integers("cat_boundaries", np.where(n_sets > 0, n_sets + 1, 0))
        last = np.cumsum(with_sets + 1) - 1
        first = last - with_sets
        steps = np.delete(np.diff(bounds), last[:-1])
        if np.any(bounds[first] != 0) or np.any(steps <= 0) or np.any(bounds >= _MAX_WORDS):
            raise ValueError(f"cat_boundaries must start at 0, increase, and stay below {_MAX_WORDS}")
        n_words = np.zeros(n_sets.size, dtype=np.int64)
        n_words[n_sets > 0] = bounds[last]
        if n_words.sum() >= _MAX_WORDS:
            raise ValueError(f"cat_threshold must have fewer than {_MAX_WORDS} values")
        words = self.integers("cat_threshold", n_words)
        check_range("cat_threshold", words, 0, 2**32)
        return np.cumsum(steps) - steps, steps, words


def _spread(places: Ints, values: NDArray[Any], size: int) -> NDArray[Any]:
    found = np.zeros(size, dtype=values.dtype)
    found[places] = values
    return found


# JSON models of XGBoost, read and checked without XGBoost.


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


# Text of a fitted tree ensemble: reading, and checking before a library builds a model from it.


MAX_TEXT = 2**27
_READERS: dict[str, Callable[[str, int], Trees]] = {"lightgbm": read_lightgbm, "xgboost": read_xgboost}
_FIELDS = {"engine": str, "n_features": int, "text": str}


def shorten_text(engine: str, text: str) -> str:
    """Return the text of a model without the parts that predictions do not need.

    Parameters
    ----------
    engine : {"lightgbm", "xgboost"}
        Library that wrote the text.
    text : str
        Text of the model.

    Returns
    -------
    str
        Text that the library still reads.
    """
    return shorten_lightgbm(text) if engine == "lightgbm" else text


def read_trees(engine: str, text: str, n_features: int) -> Trees:
    """Return the trees of a model.

    Parameters
    ----------
    engine : {"lightgbm", "xgboost"}
        Library that wrote the text.
    text : str
        Text of the model, as returned by :func:`shorten_text`.
    n_features : int
        Number of features.

    Returns
    -------
    Trees
        The trees.

    Raises
    ------
    ValueError
        If the text is not a valid model with ``n_features`` features.
    """
    if engine not in _READERS:
        raise ValueError(f"engine must be one of {', '.join(_READERS)}; got {engine[:40]!r}")
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1; got {n_features}")
    if len(text) > MAX_TEXT:
        raise ValueError(f"the text of a model must have at most {MAX_TEXT:,} characters; got {len(text):,}")
    try:
        return _READERS[engine](text, n_features)
    except ValueError as error:
        raise ValueError(f"the {engine} trees are damaged: {error}") from None


def check_tree_model(state: Any) -> None:
    """Check the state of a tree model that comes from a file.

    Parameters
    ----------
    state : dict
        The fields ``engine``, ``text`` and ``n_features``.

    Raises
    ------
    ValueError
        If fields are absent, of another type, or if the text is not a valid model.
    """
    if not isinstance(state, dict) or state.keys() != _FIELDS.keys():
        raise ValueError(f"a tree model must have the fields {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if type(state[name]) is not kind:
            raise ValueError(
                f"{name} of a tree model must be of type {kind.__name__}; got {type(state[name]).__name__}"
            )
    read_trees(state["engine"], state["text"], state["n_features"])


# Fitted tree ensembles of LightGBM and XGBoost, kept as the text of the engine's own model format.


class TreeModel:
    """Ensemble of trees, fitted by LightGBM or XGBoost.

    The booster of the engine is created from the text when it is first needed. It is neither copied nor pickled, and
    scores before and after saving are equal.

    Parameters
    ----------
    engine : {"lightgbm", "xgboost"}
        Library that fitted the trees.
    text : str
        The model: LightGBM's text format, of which only the trees are kept, or XGBoost's JSON format.
    n_features : int
        Number of features.
    """

    def __init__(self, engine: str, text: str, n_features: int) -> None:
        # What is fitted can be loaded again.
        self.__setstate__({"engine": engine, "text": shorten_text(engine, text), "n_features": n_features})

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("engine", "text", "n_features")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Before the engine reads the text: a damaged model could end the process.
        check_tree_model(state)
        self.engine: str = state["engine"]
        self.text: str = state["text"]
        self.n_features: int = state["n_features"]

    def predict(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the sum of the leaf values of each row, on the scale of log-odds.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Rows. Missing values are NaN, categories are integer codes.
        n_jobs : int or None, default=None
            Number of threads; None for the default of the engine.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores in double precision.
        """
        self._check_width(X)
        if self.engine == "lightgbm":
            scores = self._booster().predict(lightgbm_rows(X), raw_score=True, **_threads(n_jobs))
        else:
            scores = self._xgboost(n_jobs).predict(xgboost_rows(X, n_jobs), output_margin=True)
        return np.asarray(scores, dtype=np.float64)

    def contributions(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the contribution of each feature to the score of each row (SHAP values); the last column is constant.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Rows, as in :meth:`predict`.
        n_jobs : int or None, default=None
            Number of threads; None for the default of the engine.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1)
            Contributions, whose sum is the score.
        """
        self._check_width(X)
        if self.engine == "lightgbm":
            found = self._booster().predict(lightgbm_rows(X), pred_contrib=True, **_threads(n_jobs))
            found = found.toarray() if sparse.issparse(found) else found
        else:
            found = self._xgboost(n_jobs).predict(xgboost_rows(X, n_jobs), pred_contribs=True)
        return np.asarray(found, dtype=np.float64)

    def booster(self) -> Any:
        """Return the booster of the engine."""
        return self._booster()

    def importances(self) -> Array:
        """Return the sum of the gains of the splits on each feature."""
        if self.engine == "lightgbm":
            return np.asarray(self._booster().feature_importance("gain"), dtype=np.float64)
        found = np.zeros(self.n_features)
        for name, gain in self._booster().get_score(importance_type="total_gain").items():
            found[int(name[1:])] = gain
        return found

    def _check_width(self, X: Any) -> None:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} features; got {X.shape[1]}")

    def _xgboost(self, n_jobs: int | None) -> Any:
        """Return the ensemble of XGBoost with a number of threads, which it does not take in a prediction."""
        booster = self._booster()
        if self.__dict__.get("_n_jobs") != n_jobs:
            booster.set_param("nthread", n_jobs or 0)
            self._n_jobs = n_jobs
        return booster

    def _booster(self) -> Any:
        if "_built" not in self.__dict__:
            self._built = _lightgbm_booster(self.text) if self.engine == "lightgbm" else _xgboost_booster(self.text)
        return self._built


def _lightgbm_booster(text: str) -> Any:
    return need("lightgbm").Booster(model_str=text)


def _xgboost_booster(text: str) -> Any:
    booster = need("xgboost").Booster()
    booster.load_model(bytearray(text.encode()))
    # Names of the form f0, f1, ... are required by get_score; other names would be compared with those of the data.
    booster.feature_names = None
    return booster


def lightgbm_rows(X: Any) -> Any:
    """Return rows for LightGBM, which does not accept sparse arrays, only sparse matrices."""
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def xgboost_rows(X: Any, n_jobs: int | None) -> Any:
    """Return rows for XGBoost, which would treat the zeros of a sparse matrix as missing."""
    return need("xgboost").DMatrix(X.toarray() if sparse.issparse(X) else X, nthread=n_jobs)


def _threads(n_jobs: int | None) -> dict[str, int]:
    return {} if n_jobs is None else {"num_threads": n_jobs}
