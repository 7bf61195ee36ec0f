"""Boosted trees as nodes of ONNX graphs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

from rocmax._packages import need
from rocmax._typing import Array
from rocmax.backends._onnx_graph import Graph, TextValues
from rocmax.backends._tree_text import read_trees
from rocmax.backends._trees import BELOW, IN_SET, NAN_IS_ZERO, ZERO_IS_MISSING, Ints, Trees

# TreeEnsemble of version 5 compares and sums in double precision, as LightGBM does, and has splits by category. The
# TreeEnsembleRegressor of earlier versions has neither: its scores are of single precision.
TREE_OPSET = 5
# onnxruntime before version 1.24 computes wrong scores, without an error, for splits by category. It does not read
# graphs of this version of the file format either.
_IR_VERSION_OF_SETS = 12
_AT_MOST_MODE, _BELOW_MODE, _MEMBER_MODE = 0, 1, 6
_SUM, _NO_TRANSFORM = 1, 0


class Boosted(NamedTuple):
    """Inputs of boosted trees, and the trees.

    Attributes
    ----------
    columns : list of str
        Names of the features, in the order of the trees.
    texts : dict
        Position of each text column: the codes of its categories.
    codes : dict
        Position of each column of numbers that are categories: the categories in the order of their codes.
    ensembles : list of Trees
        Trees of each model; the score is the mean of the models.
    """

    columns: list[str]
    texts: dict[int, TextValues]
    codes: dict[int, Array]
    ensembles: list[Trees]


def is_boosted(classifier: Any) -> bool:
    """Return whether a fitted classifier consists of tree models."""
    models = getattr(classifier, "models_", [])
    return len(models) > 0 and all(hasattr(model, "engine") and hasattr(model, "text") for model in models)


def read_boosted(table: Any, classifier: Any) -> Boosted:
    """Return the inputs and the trees of a fitted boosted classifier with its preprocessing.

    Parameters
    ----------
    table : transformer
        Preprocessing: numbers are passed through and text columns are ordinally encoded, or a matrix is passed through.
    classifier : estimator
        Fitted boosted classifier.

    Returns
    -------
    Boosted
        The inputs and the trees.
    """
    columns, texts = _columns(table, classifier.n_features_in_)
    codes = {}
    for place, categories in classifier.categories_.items():
        if place in texts:
            known, *others = texts[place]
            codes_of = _codes(np.array([*known.values(), *others]), categories).tolist()
            texts[place] = TextValues(dict(zip(known, codes_of[:-2], strict=True)), *codes_of[-2:])
        elif np.asarray(categories).dtype.kind in "fiu":
            codes[place] = np.asarray(categories, dtype=np.float64)
        else:
            raise ValueError(f"categories must be text or numbers for export; column {columns[place]!r} has others")
    ensembles = [read_trees(model.engine, model.text, model.n_features) for model in classifier.models_]
    for trees in ensembles:
        _check_missing(trees, columns)
    return Boosted(columns, texts, codes, ensembles)


def tree_scores(build: Graph, boosted: Boosted, one_matrix: bool) -> str:
    """Add the inputs and the trees to a graph and return the mean score of the models."""
    double, single = build.onnx.TensorProto.DOUBLE, build.onnx.TensorProto.FLOAT
    if one_matrix and boosted.codes:
        raise ValueError(f"columns of a matrix must be numbers for export; column {min(boosted.codes)} has categories")
    if one_matrix:
        matrix = build.input("X", len(boosted.columns))
    else:
        parts = [_column(build, boosted, place) for place in range(len(boosted.columns))]
        matrix = build.node("Concat", parts, "features", axis=1)
    rows = matrix
    if boosted.ensembles[0].single:
        matrix = build.node("Cast", [matrix], "single", to=single)
        matrix = build.node("Cast", [matrix], "rounded", to=double)
    tiny = boosted.ensembles[0].tiny
    if tiny > 0:
        size = build.node("Abs", [matrix], "size")
        near = build.node("LessOrEqual", [size, build.constant("tiny", np.array(tiny))], "near_zero")
        matrix = build.node("Where", [near, build.constant("exact_zero", np.array(0.0)), matrix], "cleared")
    if any(trees.category.size for trees in boosted.ensembles):
        build.ir_version = _IR_VERSION_OF_SETS
    total = build.node("TreeEnsemble", [matrix], "trees", domain="ai.onnx.ml", **_attributes(build, boosted.ensembles))
    constant = sum(trees.constant for trees in boosted.ensembles)
    shifted = build.node("Add", [total, build.constant("base", np.array(constant))], "total")
    mean = build.node("Div", [shifted, build.constant("models", np.array(float(len(boosted.ensembles))))], "mean")
    return build.refuse_large(rows, mean)


def _column(build: Graph, boosted: Boosted, place: int) -> str:
    """Add the input of one column and return its numbers or codes."""
    name = boosted.columns[place]
    if place in boosted.texts:
        return build.text_values(place, name, boosted.texts[place])
    column = build.number(place, name)
    if place not in boosted.codes:
        return column
    categories = boosted.codes[place]
    same = build.node("Equal", [column, build.constant(f"known_{place}", categories[np.newaxis, :])], f"same_{place}")
    hit = build.doubles(same, f"hit_{place}")
    # Codes from 1, so that the sum is 0 for a value that is not a category.
    ranks = build.constant(f"ranks_{place}", np.arange(1.0, categories.size + 1)[:, np.newaxis])
    rank = build.node("MatMul", [hit, ranks], f"rank_{place}")
    code = build.node("Sub", [rank, build.constant(f"one_{place}", np.array(1.0))], f"category_{place}")
    known = build.node("GreaterOrEqual", [code, build.constant(f"first_{place}", np.array(0.0))], f"is_known_{place}")
    return build.node("Where", [known, code, build.constant(f"none_{place}", np.array(np.nan))], f"coded_{place}")


def _columns(table: Any, n_features: int) -> tuple[list[str], dict[int, TextValues]]:
    """Return the names of the features, and the categories and values of the text columns by position."""
    if isinstance(table, FunctionTransformer) and table.func is None:
        return [str(place) for place in range(n_features)], {}
    columns: list[str] = []
    texts: dict[int, TextValues] = {}
    for _, step, chosen in table.transformers_ if isinstance(table, ColumnTransformer) else [("", table, ["?"])]:
        names = [str(table.feature_names_in_[place]) for place in chosen] if len(chosen) else []
        if not names or (isinstance(step, str) and step == "drop"):
            continue
        if step == "passthrough" or (isinstance(step, FunctionTransformer) and step.func is None):
            columns += names
            continue
        encoder = step.steps[-1][1] if hasattr(step, "steps") else step
        if not isinstance(encoder, OrdinalEncoder):
            raise ValueError(
                "columns of a boosted model must be passed through or ordinally encoded for export; column "
                f"{names[0]!r} has {type(encoder).__name__}"
            )
        texts |= dict(enumerate(_encoded(step, encoder.categories_), start=len(columns)))
        columns += names
    return columns, texts


def _encoded(step: Any, categories: list[NDArray[Any]]) -> list[TextValues]:
    """Return the codes of the categories of each text column."""
    # The fitted transformer itself encodes them: it knows about missing, empty and infrequent strings.
    known = [[str(value) for value in own if isinstance(value, str)] for own in categories]
    rows = max(map(len, known)) + 2
    table: Any = np.full((rows, len(known)), "", dtype=object)
    for place, names in enumerate(known):
        table[: len(names), place] = names
        table[-1, place] = max(names, key=len, default="") + "?"  # unknown; the row before it is missing
    if hasattr(step, "feature_names_in_"):
        table = need("pandas").DataFrame(table, columns=step.feature_names_in_)
    values = np.asarray(step.transform(table), dtype=np.float64)
    return [
        TextValues(dict(zip(names, column.tolist(), strict=False)), *column[-2:].tolist())
        for names, column in zip(known, values.T, strict=True)
    ]


def _codes(values: Array, categories: NDArray[Any]) -> Array:
    """Return the position of each value in the categories; NaN if it is not one of them."""
    same = values[:, np.newaxis] == np.asarray(categories, dtype=np.float64)[np.newaxis, :]
    if same.shape[1] == 0:  # every value of the training rows was rare
        return np.full(same.shape[0], np.nan)
    return np.where(same.any(axis=1), np.argmax(same, axis=1), np.nan)


def _check_missing(trees: Trees, columns: list[str]) -> None:
    wrong = np.flatnonzero((trees.left >= 0) & (trees.missing == ZERO_IS_MISSING))
    if wrong.size:
        column = columns[trees.feature[wrong[0]]]
        raise ValueError(f"zero must not be a missing value (zero_as_missing) for export; it is in column {column!r}")


def _attributes(build: Graph, ensembles: list[Trees]) -> dict[str, Any]:
    """Return the attributes of TreeEnsemble for the sum of all trees."""
    parts = [_nodes(trees) for trees in ensembles]
    n_nodes = np.cumsum([0] + [len(part["mode"]) for part in parts])
    n_leaves = np.cumsum([0] + [len(part["weight"]) for part in parts])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    node_shift, leaf_shift = (np.repeat(n[:-1], np.diff(n_nodes)) for n in (n_nodes, n_leaves))
    for side in ("true", "false"):
        joined[side] = joined[side] + np.where(joined[f"{side}_is_leaf"], leaf_shift, node_shift)
    root_shift = np.repeat(n_nodes[:-1], [len(part["root"]) for part in parts])
    tensor = build.onnx.numpy_helper.from_array
    found = {
        "aggregate_function": _SUM,
        "post_transform": _NO_TRANSFORM,
        "n_targets": 1,
        "tree_roots": (joined["root"] + root_shift).tolist(),
        "nodes_featureids": joined["feature"].tolist(),
        "nodes_modes": tensor(joined["mode"].astype(np.uint8), "modes"),
        "nodes_splits": tensor(joined["threshold"].astype(np.float64), "splits"),
        "nodes_missing_value_tracks_true": joined["missing_true"].astype(np.int64).tolist(),
        "nodes_truenodeids": joined["true"].tolist(),
        "nodes_trueleafs": joined["true_is_leaf"].astype(np.int64).tolist(),
        "nodes_falsenodeids": joined["false"].tolist(),
        "nodes_falseleafs": joined["false_is_leaf"].astype(np.int64).tolist(),
        "leaf_targetids": [0] * int(n_leaves[-1]),
        "leaf_weights": tensor(joined["weight"].astype(np.float64), "weights"),
    }
    if joined["member"].size:
        found["membership_values"] = tensor(joined["member"].astype(np.float64), "members")
    return found


def _nodes(trees: Trees) -> dict[str, NDArray[Any]]:
    """Return splits and leaves, numbered separately, as TreeEnsemble has them."""
    is_leaf = trees.left < 0
    # TreeEnsemble requires a split in each tree: a tree of one leaf gets one with the leaf on both sides.
    alone = trees.root[is_leaf[trees.root]]
    split = np.concatenate([np.flatnonzero(~is_leaf), alone])
    left, right = (np.concatenate([child[~is_leaf], alone]) for child in (trees.left, trees.right))
    number = np.where(is_leaf, np.cumsum(is_leaf), np.cumsum(~is_leaf)) - 1
    root = number[trees.root]
    root[is_leaf[trees.root]] = split.size - alone.size + np.arange(alone.size)
    size, by_set = np.diff(trees.set_start)[split], trees.comparison[split] == IN_SET
    # A set without categories is a comparison that is never true.
    filled, never = by_set & (size > 0), by_set & (size == 0)
    return {
        "root": root,
        "feature": trees.feature[split],
        "mode": np.select([filled, trees.comparison[split] == BELOW], [_MEMBER_MODE, _BELOW_MODE], _AT_MOST_MODE),
        "threshold": np.where(never, -np.inf, trees.threshold[split]),
        "missing_true": _missing_true(trees, split),
        "true": number[left],
        "true_is_leaf": is_leaf[left],
        "false": number[right],
        "false_is_leaf": is_leaf[right],
        "weight": trees.value[is_leaf],
        # Each set ends with NaN.
        "member": np.insert(trees.category.astype(np.float64), trees.set_start[split + 1][filled], np.nan),
    }


def _missing_true(trees: Trees, split: Ints) -> NDArray[np.bool_]:
    """Return whether missing values go to the side on which the comparison is true."""
    as_zero = trees.missing[split] == NAN_IS_ZERO
    found = np.where(as_zero, trees.threshold[split] >= 0, trees.default_left[split])
    # LightGBM sends missing values to the right in splits by category.
    found[(trees.comparison[split] == IN_SET) & (not trees.single)] = False
    return found
