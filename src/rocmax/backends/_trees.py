"""Tree ensembles as arrays, independent of the library that fitted them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array

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
