"""Extremely randomized trees of scikit-learn as arrays.

A model file must not contain scikit-learn's own trees, whose nodes are read in C without a check. The arrays are
checked when they are loaded, take a fifth of the memory, and do not depend on the version of scikit-learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree._tree import NODE_DTYPE, TREE_LEAF, TREE_UNDEFINED, Tree
from sklearn.utils import gen_batches

from rocmax._support import Array, Bools
from rocmax._validation import CHECKING

# The range of single precision, in which the trees compare values.
SINGLES = np.finfo(np.float32).min, np.finfo(np.float32).max


# Of more rows, each tree gets a bootstrap sample of this size: it is grown until its leaves are pure, and the time and
# the size of a model file must be bounded.
MOST_ROWS = 10_000
# Paths from leaves to roots that are in memory at a time.
MOST_PATHS = 1_000_000
_ARRAYS: dict[str, Any] = {
    "root": np.int32,
    "right": np.int32,
    "feature": np.int32,
    "value": np.float32,
    "share": np.float32,
    "missing_left": np.bool_,
}


class Forest:
    """Mean of classification trees; the score of a row is its mean share of positives in the leaves.

    The nodes of all trees are numbered consecutively, tree by tree, each tree from its root in depth-first order: the
    left child of a split is the next node.

    Attributes
    ----------
    n_features : int
        Number of features.
    root : ndarray of shape (n_trees,)
        Root of each tree.
    right : ndarray of shape (n_nodes,)
        Right child of each split; 0 for leaves.
    feature : ndarray of shape (n_nodes,)
        Feature of each split; 0 for leaves. A value, in single precision, goes to the left if it is at most the
        threshold.
    value : ndarray of shape (n_nodes,)
        Threshold of each split, and share of positives in each leaf.
    share : ndarray of shape (n_nodes,)
        Share of positives among the training rows of each node.
    missing_left : ndarray of shape (n_nodes,)
        Whether missing values go to the left.
    """

    n_features: int
    root: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    value: NDArray[np.float32]
    share: NDArray[np.float32]
    missing_left: Bools

    def __init__(self, n_features: int, **arrays: Any) -> None:
        state = {name: np.ascontiguousarray(arrays[name], dtype=kind) for name, kind in _ARRAYS.items()}
        self.__setstate__({"n_features": n_features, **state})

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_features", *_ARRAYS)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_forest(state)
        self.__dict__.update(state)

    def predict(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the score of each row of a dense array, with NaN for missing values."""
        scores = np.zeros(X.shape[0])
        for values in self._each("predict", X, n_jobs):
            scores += values[:, 0]
        return scores / self.root.size

    def contributions(self, X: Any, n_jobs: int | None = None) -> tuple[Array, Array]:
        """Return what each feature adds to the score of each row, and for each row the score without it.

        On the path of a row through a tree, the feature of each split gets the change of the share of positives from
        the split to its child. What all features add is the share in the leaf minus the share in the root.
        """
        n_rows, n_features = X.shape
        split = np.flatnonzero(self.right)
        parent = np.full(self.right.size, -1)
        parent[split + 1] = parent[self.right[split]] = split
        share, found = self.share.astype(np.float64), np.zeros((n_rows, n_features))
        for some in gen_batches(n_rows, max(1, MOST_PATHS // self.root.size)):
            leaves = np.array(list(self._each("apply", X[some], n_jobs)))
            node = np.ravel(leaves + self.root[:, np.newaxis])
            place = np.tile(np.arange(leaves.shape[1]) * n_features, self.root.size)
            while (inner := np.flatnonzero(parent[node] >= 0)).size:
                node, place = node[inner], place[inner]
                above = parent[node]
                change = np.bincount(place + self.feature[above], share[node] - share[above], found[some].size)
                found[some] += change.reshape(-1, n_features)
                node = above
        return found / self.root.size, np.full(n_rows, share[self.root].mean())

    def _each(self, method: str, X: Any, n_jobs: int | None) -> Any:
        """Yield what a method of each tree returns for rows."""
        if X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} features; got {X.shape[1]}")
        if "_built" not in self.__dict__:
            self._built = [_tree(self, *ends) for ends in zip(self.root, self.ends, strict=True)]
        rows = in_single_precision(X)
        # The trees release the lock of the interpreter.
        run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        return run(delayed(getattr(tree, method))(rows) for tree in self._built)

    @property
    def ends(self) -> NDArray[np.int32]:
        """Number of the node after the last one of each tree."""
        return np.append(self.root[1:], np.int32(self.right.size))


def grow_forest(X: Any, positive: Bools, weight: Array | None, n_trees: int, seed: int, n_jobs: int | None) -> Forest:
    """Return extremely randomized trees that are fitted to the rows of a dense array."""
    many = X.shape[0] > MOST_ROWS
    model = ExtraTreesClassifier(
        n_trees, bootstrap=many, max_samples=MOST_ROWS if many else None, n_jobs=n_jobs, random_state=seed
    )
    with CHECKING, np.errstate(over="ignore", invalid="ignore"):  # of sums and differences of huge values
        model.fit(in_single_precision(X), positive, weight)
    return join_forests([_read(tree.tree_) for tree in model.estimators_])


def join_forests(forests: list[Forest]) -> Forest:
    """Return the mean of all trees of some forests."""
    starts = np.cumsum([0, *(forest.right.size for forest in forests)])[:-1]
    joined = {name: np.concatenate([getattr(forest, name) for forest in forests]) for name in _ARRAYS}
    joined["root"] = np.concatenate([forest.root + start for forest, start in zip(forests, starts, strict=True)])
    moved = [np.where(forest.right > 0, forest.right + at, 0) for forest, at in zip(forests, starts, strict=True)]
    return Forest(forests[0].n_features, **(joined | {"right": np.concatenate(moved)}))


def in_single_precision(X: Any) -> NDArray[np.float32]:
    """Return rows in single precision; values beyond its range become the largest ones."""
    singles: NDArray[np.float32] = np.clip(X, *SINGLES).astype(np.float32)
    return singles


def check_forest(state: Any) -> None:
    """Raise ValueError unless the state of a forest, perhaps from a file, has trees that predictions can go through."""
    if not isinstance(state, dict) or state.keys() != {"n_features", *_ARRAYS}:
        raise ValueError(f"a forest must have the fields n_features, {', '.join(_ARRAYS)}")
    for name, kind in _ARRAYS.items():
        value = state[name]
        # joblib loads large arrays as memory maps.
        if type(value) not in (np.ndarray, np.memmap) or value.ndim != 1 or value.dtype != kind:
            raise ValueError(f"{name} of a forest must be a one-dimensional array of type {kind.__name__}")
    n_features, root, right = state["n_features"], state["root"], state["right"]
    if type(n_features) is not int or n_features < 1:
        raise ValueError(f"n_features of a forest must be an integer of at least 1; got {n_features!r}")
    if any(state[name].size != right.size for name in ("feature", "value", "share", "missing_left")):
        raise ValueError("the arrays of a forest must have one value for each node")
    if not root.size or root[0] != 0 or np.any(np.diff(root) <= 0) or root[-1] >= right.size:
        raise ValueError("root of a forest must start at 0, increase, and be less than the number of nodes")
    # A path only goes forward, so it ends, and it ends in its tree.
    ends = np.repeat(np.append(root[1:], right.size), np.diff(root, append=right.size))
    if np.any((right != 0) & ((right <= np.arange(right.size) + 1) | (right >= ends))):
        raise ValueError("right of a forest must be later nodes of the same tree, or 0 in leaves; got one out of range")
    if np.any((state["feature"] < 0) | (state["feature"] >= n_features)):
        raise ValueError(f"feature of a forest must be from 0 to {n_features - 1}; got one out of range")
    # An infinite threshold separates missing values from all others.
    if np.any(np.isnan(state["value"])) or not np.all(np.isfinite(state["value"][right == 0])):
        raise ValueError("value of a forest must be numbers, and finite in leaves")
    if not np.all(np.isfinite(state["share"])) or np.any((state["share"] != state["value"])[right == 0]):
        raise ValueError("share of a forest must be finite, and equal to value in leaves")


def _read(tree: Any) -> Forest:
    """Return a tree of a fitted forest for two classes, the second of which is the positive one."""
    leaf = tree.children_left == TREE_LEAF
    # The largest number in single precision that is not above the threshold: comparisons stay the same.
    threshold = tree.threshold.astype(np.float32)
    threshold = np.where(threshold > tree.threshold, np.nextafter(threshold, np.float32(-np.inf)), threshold)
    return Forest(
        int(tree.n_features),
        root=[0],
        right=np.where(leaf, 0, tree.children_right),
        feature=np.where(leaf, 0, tree.feature),
        value=np.where(leaf, tree.value[:, 0, 1], threshold),
        share=tree.value[:, 0, 1],
        missing_left=tree.missing_go_to_left.astype(bool) & ~leaf,
    )


def _tree(forest: Forest, start: int, end: int) -> Any:
    """Return a tree of scikit-learn with the nodes of one tree."""
    right = forest.right[start:end]
    split = right > 0
    nodes = np.zeros(right.size, dtype=NODE_DTYPE)
    nodes["left_child"] = np.where(split, np.arange(right.size) + 1, TREE_LEAF)
    nodes["right_child"] = np.where(split, right - start, TREE_LEAF)
    nodes["feature"] = np.where(split, forest.feature[start:end], TREE_UNDEFINED)
    nodes["threshold"] = forest.value[start:end]
    nodes["missing_go_to_left"] = forest.missing_left[start:end]
    tree = Tree(forest.n_features, np.array([1], dtype=np.intp), 1)
    values = forest.value[start:end].astype(np.float64).reshape(-1, 1, 1)
    tree.__setstate__({"max_depth": right.size, "node_count": right.size, "nodes": nodes, "values": values})
    return tree
