"""Text models of LightGBM, read and checked without LightGBM.

LightGBM's own parser trusts the text: an index out of range ends the process. Every line is therefore checked here
before LightGBM reads it. The format is that of version v4, written by ``Booster.model_to_string``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array
from rocmax.backends._trees import AT_MOST, IN_SET, Ints, Trees, check_range, check_structure, within

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
