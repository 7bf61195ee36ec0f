"""Fitted tree ensembles of LightGBM and XGBoost as arrays.

At the end of a fit, the trees are read from the engine's own model format into arrays, which are what fitted models and
model files contain. For predictions, the arrays are written in that format again and loaded by the engine.

Both engines load models in C++ and trust them: an index out of range can end the process or read other memory. The
arrays are therefore checked whenever a model is created or loaded, without the engines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._support import Array, Bools, need
from rocmax.explain import fill

Ints = NDArray[np.int32]

# Comparisons of a split. A value goes to the left if it is at most the threshold (LightGBM), below the threshold, with
# both in single precision (XGBoost), or if its category is in the set of the split.
AT_MOST, BELOW, IN_SET = 0, 1, 2
# Values that follow the default direction of a split: NaN; or NaN and zero. With NAN_IS_ZERO, NaN is compared as zero.
NAN_IS_ZERO, ZERO_IS_MISSING, NAN_IS_MISSING = 0, 1, 2


@dataclass(frozen=True)
class TreeLimits:
    """Limits of what the engines can load: memory, and the stack."""

    # Both engines process trees by recursion.
    depth: int = 2000
    # They store one name per feature, and a set as bits up to its largest category.
    features: int = 10_000_000
    category: int = 2**24
    bits: int = 2**30


LIMITS = TreeLimits()


@dataclass(frozen=True)
class TreePasses:
    """Predictions of LightGBM take all trees for a row, then the next row: twice the time if the trees leave the cache.

    Many rows are therefore passed to some of the trees at a time.
    """

    # Fewer rows cost less than the calls. With 600 to 1,500 nodes at a time, predictions take about half the time; with
    # all 33,000 of 550 trees, they take 3.8 s for 200,000 rows, and 1.9 s so (CPU with 1 MB of cache for each core).
    rows: int = 5000
    nodes: int = 1000


PASSES = TreePasses()
_SCALARS = {"engine": str, "n_features": int, "base_score": float, "has_probabilities": bool}
_OF_NODES: dict[str, Any] = {
    "left": np.int32,
    "right": np.int32,
    "feature": np.int32,
    "threshold": np.float64,
    "comparison": np.int8,
    "missing": np.int8,
    "default_left": np.bool_,
    "value": np.float64,
    "gain": np.float64,
    "weight": np.float64,
    "count": np.int32,
}
_ARRAYS = {"root": np.int32, **_OF_NODES, "set_start": np.int32, "category": np.int32}


class TreeModel:
    """Sum of regression trees, fitted by LightGBM or XGBoost.

    The nodes of all trees are numbered consecutively, tree by tree, and the first node of a tree is its root. In trees
    of LightGBM, the splits come before the leaves. The booster of the engine is created when it is first needed, and is
    neither copied nor pickled.

    Attributes
    ----------
    engine : {"lightgbm", "xgboost"}
        Library that fitted the trees.
    n_features : int
        Number of features.
    base_score : float
        XGBoost's probability at the start.
    has_probabilities : bool
        Whether predictions of the booster are probabilities unless raw scores are requested.
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
        Value of each leaf, and the value that a split would have as a leaf.
    gain, weight, count : ndarray of shape (n_nodes,)
        Gain of each split; sum of the curvatures and, for LightGBM, number of the training rows in each node.
    set_start : ndarray of shape (n_nodes + 1,)
        The categories of node i are ``category[set_start[i]:set_start[i + 1]]``; none if it does not split by category.
    category : ndarray
        Categories of all sets, ascending within a set.
    """

    engine: str
    n_features: int
    base_score: float
    has_probabilities: bool
    root: Ints
    left: Ints
    right: Ints
    feature: Ints
    threshold: Array
    comparison: NDArray[np.int8]
    missing: NDArray[np.int8]
    default_left: Bools
    value: Array
    gain: Array
    weight: Array
    count: Ints
    set_start: Ints
    category: Ints

    def __init__(self, **state: Any) -> None:
        arrays = {name: np.ascontiguousarray(state[name], dtype=kind) for name, kind in _ARRAYS.items()}
        self.__setstate__(state | arrays)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*_SCALARS, *_ARRAYS)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_tree_model(state)
        self.__dict__.update(state)

    @property
    def single(self) -> bool:
        """Whether features are rounded to single precision before they are compared."""
        return self.engine == "xgboost"

    @property
    def tiny(self) -> float:
        """Features of at most this magnitude are read as zero: LightGBM's kZeroThreshold."""
        return 0.0 if self.single else float(np.float32(1e-35))

    @property
    def constant(self) -> float:
        """Constant of the sum."""
        return float(-np.log(np.float32(1) / np.float32(self.base_score) - np.float32(1))) if self.single else 0.0

    def predict(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the sum of the leaf values of each row, on the scale of log-odds, in double precision.

        Missing values of ``X``, an array or a CSR matrix, are NaN, and categories are integer codes. Without
        ``n_jobs``, the number of threads is the default of the engine.
        """
        everything: dict[str, Any] = {"raw_score": True}
        if self.engine == "xgboost" or sparse.issparse(X) or X.shape[0] < PASSES.rows:
            return self._of_engine(X, n_jobs, everything, {"output_margin": True})
        X = np.ascontiguousarray(X)
        step = max(1, PASSES.nodes * self.root.size // self.left.size)
        passes = (everything | {"start_iteration": i, "num_iteration": step} for i in range(0, self.root.size, step))
        return sum((self._of_engine(X, n_jobs, part, {}) for part in passes), np.zeros(X.shape[0]))

    def contributions(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the contribution of each feature to the score of each row (SHAP values); the last column is constant.

        The sum of the columns is the score. XGBoost adds in single precision: what rounding has lost is shared out in
        proportion to the contributions.
        """
        found = self._of_engine(X, n_jobs, {"pred_contrib": True}, {"pred_contribs": True})
        if self.single:
            found[:, :-1] = fill(found[:, :-1], self.predict(X, n_jobs) - found[:, -1])
        return found

    def _of_engine(self, X: Any, n_jobs: int | None, of_lightgbm: Any, of_xgboost: Any) -> Array:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} features; got {X.shape[1]}")
        booster = self.booster()
        if self.engine == "lightgbm":
            found = booster.predict(lightgbm_rows(X), **of_lightgbm, **threads(n_jobs))
        else:
            booster.set_param("nthread", n_jobs or 0)
            found = booster.predict(xgboost_rows(X, n_jobs), **of_xgboost)
        return np.asarray(found.toarray() if sparse.issparse(found) else found, dtype=np.float64)

    def importances(self) -> Array:
        """Return the sum of the gains of the splits on each feature."""
        split = self.left >= 0
        # The engines store gains in single precision.
        gain = self.gain[split].astype(np.float32).astype(np.float64)
        return np.asarray(np.bincount(self.feature[split], gain, self.n_features), dtype=np.float64)

    def booster(self) -> Any:
        """Return the booster of the engine."""
        if "_built" not in self.__dict__:
            self._built = _lightgbm_booster(self) if self.engine == "lightgbm" else _xgboost_booster(self)
        return self._built


# Checks of the arrays.


def check_tree_model(state: Any) -> None:
    """Raise ValueError unless the state of a tree model, perhaps from a file, is one that its engine can load."""
    if not isinstance(state, dict) or state.keys() != {*_SCALARS, *_ARRAYS}:
        raise ValueError(f"a tree model must have the fields {', '.join((*_SCALARS, *_ARRAYS))}")
    for name, kind in _SCALARS.items():
        got = type(state[name])
        if got is not kind:
            raise ValueError(f"{name} of a tree model must be of type {kind.__name__}; got {got.__name__}")
    for name, kind in _ARRAYS.items():
        value = state[name]
        # joblib loads large arrays as memory maps.
        if type(value) not in (np.ndarray, np.memmap) or value.ndim != 1 or value.dtype != kind:
            raise ValueError(f"{name} of a tree model must be a one-dimensional array of type {kind.__name__}")
    if state["engine"] not in ("lightgbm", "xgboost"):
        raise ValueError(f"engine must be lightgbm or xgboost; got {state['engine'][:40]!r}")
    trees: Any = SimpleNamespace(**state)
    try:
        _check_nodes(trees)
        _check_structure(trees)
        _check_sets(trees)
    except ValueError as error:
        raise ValueError(f"the {state['engine']} trees are damaged: {error}") from None


def _check_nodes(trees: Any) -> None:
    root, n_nodes, is_xgboost = trees.root, trees.left.size, trees.engine == "xgboost"
    if not 1 <= trees.n_features <= LIMITS.features:
        raise ValueError(f"n_features must be from 1 to {LIMITS.features}; got {trees.n_features}")
    if not 0 < trees.base_score < 1:
        raise ValueError(f"base_score must be a probability between 0 and 1; got {trees.base_score}")
    for name in _OF_NODES:
        if getattr(trees, name).size != n_nodes:
            raise ValueError(f"{name} must have {n_nodes} values; got {getattr(trees, name).size}")
    if not root.size or root[0] != 0 or np.any(np.diff(root) <= 0) or root[-1] >= n_nodes:
        raise ValueError(f"root must start at 0, increase, and stay below {n_nodes}")
    n_splits = np.add.reduceat(trees.left >= 0, root, dtype=np.int64)
    start, end = (np.repeat(bound, _sizes(trees)) for bound in (root, root + _sizes(trees)))
    split = trees.left >= 0
    for name in ("left", "right"):
        child = getattr(trees, name)
        if np.any(np.where(split, (child < start) | (child >= end), child != -1)):
            raise ValueError(f"{name} must be nodes of the same tree, or -1 in leaves; got one out of range")
        # XGBoost allots the memory for contributions in the order of the nodes.
        if is_xgboost and np.any(split & (child <= np.arange(n_nodes))):
            raise ValueError(f"{name} must be nodes after their parent")
    if not is_xgboost and np.any(split != (np.arange(n_nodes) < start + np.repeat(n_splits, _sizes(trees)))):
        raise ValueError("the splits of a tree must come before its leaves")
    _check_range("feature", trees.feature, trees.n_features)
    _check_range("missing", trees.missing, 3)
    _check_range("comparison", trees.comparison, 3)
    if np.any((trees.comparison == (AT_MOST if is_xgboost else BELOW)) & split):
        raise ValueError(f"comparison must be one of {trees.engine}")
    _check_range("count", trees.count, 2**31)
    largest = float(np.finfo(np.float32 if is_xgboost else np.float64).max)
    for name in ("threshold", "value", "gain", "weight"):
        # An infinite threshold of LightGBM separates missing values from all others.
        upper = np.inf if name == "threshold" and not is_xgboost else largest
        values = getattr(trees, name)
        if not np.all((values >= -largest) & (values <= upper)):
            raise ValueError(f"{name} must be finite")
    if is_xgboost and np.any(trees.weight[split] <= 0):  # contributions divide by it
        raise ValueError("weight must be above 0 for splits")


def _check_structure(trees: Any) -> None:
    """Raise ValueError unless each tree is a tree: all nodes are reached from its root, each in one way."""
    split = trees.left >= 0
    parents = np.bincount(np.concatenate([trees.left[split], trees.right[split]]), minlength=split.size)
    parents[trees.root] += 1
    if np.any(parents != 1):
        tree = int(np.searchsorted(trees.root, np.flatnonzero(parents != 1)[0], side="right")) - 1
        raise ValueError(f"each node of tree {tree} must be the root or the child of one node")
    level, reached = trees.root, 0
    for _ in range(LIMITS.depth + 1):
        reached += level.size
        inner = level[split[level]]
        level = np.concatenate([trees.left[inner], trees.right[inner]])
        if not level.size:
            break
    else:
        raise ValueError(f"trees must have a depth of at most {LIMITS.depth}; got a deeper one")
    if reached != split.size:
        raise ValueError("trees must not contain cycles; got nodes that cannot be reached from the root")


def _check_sets(trees: Any) -> None:
    start, category = trees.set_start, trees.category
    sizes = np.diff(start)
    if start.size != trees.left.size + 1 or start[0] != 0 or np.any(sizes < 0) or start[-1] != category.size:
        raise ValueError("set_start must divide the categories into one set for each node")
    by_set = trees.comparison == IN_SET
    if np.any((sizes > 0) & ~by_set) or np.any(by_set & (trees.left < 0)):
        raise ValueError("sets of categories must be those of the splits by category")
    if trees.engine == "xgboost" and np.any(sizes[by_set] == 0):
        raise ValueError("sets of categories of xgboost must not be empty")
    _check_range("category", category, LIMITS.category)
    new_set = np.zeros(category.size, dtype=bool)
    new_set[start[:-1][sizes > 0]] = True
    if np.any((np.diff(category) <= 0) & ~new_set[1:]):
        raise ValueError("categories must be distinct and ascending within a set")
    if np.sum(category[start[1:][sizes > 0] - 1] + 1, dtype=np.int64) > LIMITS.bits:
        raise ValueError(f"categories must need at most {LIMITS.bits} bits")


def _check_range(name: str, values: NDArray[Any], high: int) -> None:
    wrong = (values < 0) | (values >= high)
    if np.any(wrong):
        raise ValueError(f"{name} must be from 0 to {high - 1}; got {int(values[wrong][0])}")


def _sizes(trees: Any) -> Any:
    """Return the number of nodes of each tree."""
    return np.diff(trees.root, append=trees.left.size)


# The text format of LightGBM, version v4. It is read in place of `dump_model`, which takes four times as long, replaces
# infinite thresholds and nests as deeply as the trees.


def read_lightgbm(text: str, n_features: int) -> TreeModel:
    """Return the trees of a model that LightGBM has just written."""
    head, *blocks = text.partition("\nend of trees\n")[0].split("\nTree=")
    trees = [dict(line.split("=", 1) for line in block.split("\n")[1:] if line) for block in blocks]
    # The text of a tree of one leaf has no weight.
    trees = [tree | {name: tree[name] or "0" for name in ("leaf_weight", "leaf_count")} for tree in trees]

    def values(name: str, kind: Any) -> NDArray[Any]:
        return np.array(" ".join(tree.get(name, "") for tree in trees).split(), dtype=kind)

    leaves = values("num_leaves", np.int64)
    sizes = 2 * leaves - 1
    root = np.cumsum(sizes) - sizes
    is_split = np.arange(sizes.sum()) - np.repeat(root, sizes) < np.repeat(leaves - 1, sizes)

    def spread(of_splits: NDArray[Any], of_leaves: Any = 0) -> NDArray[Any]:
        found = np.zeros(is_split.size, dtype=of_splits.dtype)
        found[is_split], found[~is_split] = of_splits, of_leaves
        return found

    def children(name: str) -> NDArray[Any]:
        child, first = values(name, np.int64), np.repeat(root, leaves - 1)
        # In the text, a negative number ~i is the leaf i.
        return spread(first + np.where(child >= 0, child, np.repeat(leaves - 1, leaves - 1) + ~child), -1)

    decision = values("decision_type", np.int64)
    by_set = decision & 1 != 0
    threshold = values("threshold", np.float64)
    sets = _read_sets(trees, values("num_cat", np.int64), threshold[by_set].astype(np.int64))
    set_sizes = spread(np.zeros(decision.size, dtype=np.int64))
    set_sizes[np.flatnonzero(is_split)[by_set]] = [found.size for found in sets]
    return TreeModel(
        engine="lightgbm",
        n_features=n_features,
        base_score=0.5,
        has_probabilities="\nobjective=binary" in head,
        root=root,
        left=children("left_child"),
        right=children("right_child"),
        feature=spread(values("split_feature", np.int64)),
        threshold=spread(np.where(by_set, 0.0, threshold)),
        comparison=spread(np.where(by_set, IN_SET, AT_MOST)),
        missing=spread(decision >> 2),
        default_left=spread(decision & 2 != 0),
        value=spread(values("internal_value", np.float64), values("leaf_value", np.float64)),
        gain=spread(values("split_gain", np.float64)),
        weight=spread(values("internal_weight", np.float64), values("leaf_weight", np.float64)),
        count=spread(values("internal_count", np.int64), values("leaf_count", np.int64)),
        set_start=np.concatenate([[0], np.cumsum(set_sizes)]),
        category=np.concatenate([np.empty(0, dtype=np.int64), *sets]),
    )


def _read_sets(trees: list[dict[str, str]], n_sets: NDArray[Any], chosen: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the categories of each split by category; ``chosen`` is the number of its set in the tree."""
    found = []
    for tree, own in zip(trees, np.split(chosen, np.cumsum(n_sets)[:-1]), strict=True):
        if own.size:
            bounds = np.array(tree["cat_boundaries"].split(), dtype=np.int64)
            words = np.array(tree["cat_threshold"].split(), dtype="<u4")
            bits = [np.unpackbits(words[bounds[i] : bounds[i + 1]].view(np.uint8), bitorder="little") for i in own]
            found += [np.flatnonzero(row) for row in bits]
    return found


def write_lightgbm(model: TreeModel) -> str:
    """Return the model in LightGBM's text format."""
    names = " ".join(f"Column_{i}" for i in range(model.n_features))
    head = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0"]
    head += [f"max_feature_idx={model.n_features - 1}"]
    head += ["objective=binary sigmoid:1"] * model.has_probabilities
    head += [f"feature_names={names}", f"feature_infos={' '.join(['none'] * model.n_features)}", ""]
    ends = model.root + _sizes(model)
    blocks = [
        f"Tree={place}\n{_lightgbm_tree(model, int(start), int(end))}\n\n"
        for place, (start, end) in enumerate(zip(model.root, ends, strict=True))
    ]
    return "\n".join([*head, *blocks, "end of trees", ""])


def _lightgbm_tree(model: TreeModel, start: int, end: int) -> str:
    n_splits = (end - start) // 2
    splits, leaves = slice(start, start + n_splits), slice(start + n_splits, end)
    by_set = model.comparison[splits] == IN_SET
    threshold = model.threshold[splits].copy()
    threshold[by_set] = np.arange(np.count_nonzero(by_set))
    words = [_words(model, start + int(place)) for place in np.flatnonzero(by_set)]
    lines = {
        "num_leaves": [n_splits + 1],
        "num_cat": [len(words)],
        "split_feature": model.feature[splits],
        "split_gain": model.gain[splits],
        "threshold": threshold,
        "decision_type": by_set + 2 * model.default_left[splits] + 4 * model.missing[splits],
    }
    for name, child in (("left_child", model.left[splits] - start), ("right_child", model.right[splits] - start)):
        lines[name] = np.where(child < n_splits, child, ~(child - n_splits))
    for name in ("value", "weight", "count"):
        lines[f"leaf_{name}"], lines[f"internal_{name}"] = getattr(model, name)[leaves], getattr(model, name)[splits]
    if words:
        lines["cat_boundaries"] = np.cumsum([0, *map(len, words)])
        lines["cat_threshold"] = np.concatenate(words)
    lines |= {"is_linear": [0], "shrinkage": [1]}
    return "\n".join(f"{name}={' '.join(map(repr, np.asarray(values).tolist()))}" for name, values in lines.items())


def _words(model: TreeModel, node: int) -> NDArray[Any]:
    """Return the set of a split as words of 32 bits."""
    category = model.category[model.set_start[node] : model.set_start[node + 1]]
    bits = np.zeros(32 * (int(category.max(initial=0)) // 32 + 1), dtype=np.uint8)
    bits[category] = 1
    return np.packbits(bits, bitorder="little").view("<u4")


def _lightgbm_booster(model: TreeModel) -> Any:
    return need("lightgbm").Booster(model_str=write_lightgbm(model))


# The JSON format of XGBoost. It is written as by version 2, which later versions read.


def read_xgboost(text: str, n_features: int) -> TreeModel:
    """Return the trees of a model that XGBoost has just written."""
    learner = json.loads(text)["learner"]
    trees = learner["gradient_booster"]["model"]["trees"]

    def values(name: str, kind: Any) -> NDArray[Any]:
        return np.concatenate([np.array(tree[name], dtype=kind) for tree in trees])

    sizes = np.array([len(tree["left_children"]) for tree in trees])
    root = np.cumsum(sizes) - sizes
    left, right = (
        np.where(child >= 0, child + np.repeat(root, sizes), -1)
        for child in (values("left_children", np.int64), values("right_children", np.int64))
    )
    split, by_set = left >= 0, values("split_type", np.int64) == 1
    condition = values("split_conditions", np.float32)
    set_sizes = np.zeros(split.size, dtype=np.int64)
    set_sizes[by_set] = values("categories_sizes", np.int64)
    return TreeModel(
        engine="xgboost",
        n_features=n_features,
        # Since version 3.1, base_score is written as [number].
        base_score=float(np.float32(learner["learner_model_param"]["base_score"].strip("[]"))),
        has_probabilities=True,
        root=root,
        # XGBoost sends the categories of a set to the right.
        left=np.where(by_set, right, left),
        right=np.where(by_set, left, right),
        feature=np.where(split, values("split_indices", np.int64), 0),
        threshold=np.where(split & ~by_set, condition, 0.0),
        comparison=np.where(by_set, IN_SET, BELOW),
        missing=np.full(split.size, NAN_IS_MISSING),
        default_left=(values("default_left", np.int64) == 1) != by_set,
        value=np.where(split, values("base_weights", np.float32), condition),
        gain=values("loss_changes", np.float32),
        weight=values("sum_hessian", np.float32),
        count=np.zeros(split.size),
        set_start=np.concatenate([[0], np.cumsum(set_sizes)]),
        category=values("categories", np.int64),
    )


def write_xgboost(model: TreeModel) -> str:
    """Return the model in XGBoost's JSON format."""
    split, by_set = model.left >= 0, model.comparison == IN_SET
    first = np.repeat(model.root, _sizes(model))
    left, right = (
        np.where(split, np.where(by_set, swapped, child) - first, -1)
        for child, swapped in ((model.left, model.right), (model.right, model.left))
    )
    parents = np.full(split.size, 2**31 - 1)  # the parent of roots
    for child in (model.left, model.right):
        parents[child[split]] = (np.arange(split.size) - first)[split]
    columns = {
        "base_weights": _singles(model.value),
        "loss_changes": _singles(model.gain),
        "split_conditions": _singles(np.where(split, model.threshold, model.value)),
        "sum_hessian": _singles(model.weight),
        "default_left": (model.default_left != by_set).astype(int).tolist(),
        "left_children": left.tolist(),
        "right_children": right.tolist(),
        "parents": parents.tolist(),
        "split_indices": model.feature.tolist(),
        "split_type": by_set.astype(int).tolist(),
    }
    trees = []
    for place, (start, end) in enumerate(zip(model.root, model.root + _sizes(model), strict=True)):
        sizes = np.diff(model.set_start)[start:end][by_set[start:end]]
        trees.append(
            {name: values[start:end] for name, values in columns.items()}
            | {
                "categories": model.category[model.set_start[start] : model.set_start[end]].tolist(),
                "categories_nodes": np.flatnonzero(by_set[start:end]).tolist(),
                "categories_segments": (np.cumsum(sizes) - sizes).tolist(),
                "categories_sizes": sizes.tolist(),
                "id": place,
                "tree_param": _texts(
                    num_deleted=0, num_feature=model.n_features, num_nodes=int(end - start), size_leaf_vector=1
                ),
            }
        )
    booster = {
        "gbtree_model_param": _texts(num_parallel_tree=1, num_trees=len(trees)),
        "iteration_indptr": list(range(len(trees) + 1)),
        "tree_info": [0] * len(trees),
        "trees": trees,
    }
    learner = {
        "attributes": {},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": {"model": booster, "name": "gbtree"},
        "learner_model_param": _texts(
            base_score=str(np.float32(model.base_score)),
            boost_from_average=1,
            num_class=0,
            num_feature=model.n_features,
            num_target=1,
        ),
        "objective": {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}},
    }
    return json.dumps({"learner": learner, "version": [2, 0, 0]})


def _texts(**values: Any) -> dict[str, str]:
    """Return parameters as XGBoost writes them."""
    return {name: str(value) for name, value in values.items()}


def _singles(values: Array) -> list[float]:
    """Return the shortest numbers that are equal to these in single precision."""
    return [float(str(value)) for value in values.astype(np.float32)]


def _xgboost_booster(model: TreeModel) -> Any:
    booster = need("xgboost").Booster()
    booster.load_model(bytearray(write_xgboost(model).encode()))
    return booster


# Rows in the formats of the engines.


def lightgbm_rows(X: Any) -> Any:
    """Return rows for LightGBM, which does not accept sparse arrays, only sparse matrices."""
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def xgboost_rows(X: Any, n_jobs: int | None) -> Any:
    """Return rows for XGBoost, which would treat the zeros of a sparse matrix as missing."""
    return need("xgboost").DMatrix(X.toarray() if sparse.issparse(X) else X, nthread=n_jobs)


def threads(n_jobs: int | None) -> dict[str, int]:
    """Return the number of threads as an argument of LightGBM's predictions."""
    return {} if n_jobs is None else {"num_threads": n_jobs}
