"""Export of models with their preprocessing to ONNX graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

from rocmax import __version__
from rocmax._files import same_file, write_file
from rocmax._support import Array, need
from rocmax._validation import LARGEST, direction, positive_index
from rocmax.boosted.classifier import BoostedClassifier
from rocmax.boosted.trees import AT_MOST, BELOW, IN_SET, NAN_IS_MISSING, NAN_IS_ZERO, TreeModel
from rocmax.data.read import MISSING_TEXT, marked_numbers
from rocmax.ensemble import EnsembleClassifier, end_slopes
from rocmax.features import SplineFeatures
from rocmax.forest import SINGLES, Forest
from rocmax.tables.model import load_model
from rocmax.tables.preprocess import MISSING, other_forms
from rocmax.tables.read import Schema

# Builder of ONNX graphs with the inputs and outputs of exported models.


@dataclass(frozen=True)
class OnnxVersions:
    """Versions of the operators and of the file format (ir); the lowest that have what a graph needs."""

    opset: int = 18
    ir: int = 8
    # RegexFullMatch, for text columns, is of this version. It runs in onnxruntime 1.17 or later.
    text_opset: int = 20
    text_ir: int = 9
    # The operators of ai.onnx.ml of linear models.
    ml_opset: int = 3
    # TreeEnsemble of version 5 compares and sums in double precision, as LightGBM does, and has splits by category. The
    # TreeEnsembleRegressor of earlier versions has neither: its scores are of single precision.
    tree_opset: int = 5
    # onnxruntime before version 1.24 computes wrong scores, without an error, for splits by category. It does not read
    # graphs of this version of the file format either.
    sets_ir: int = 12


VERSIONS = OnnxVersions()
# The characters that Arrow's utf8_trim_whitespace and Python's str.strip remove, as a class of a regular expression.
SPACES = r"[\x{9}-\x{d}\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"
_NOTHING = r"[^\x{0}-\x{10ffff}]"


class Marks(NamedTuple):
    """Text that is always missing, text that is unless it is a category, numbers, and inputs without marks.

    The inputs without marks, ``computed``, are features of dates.
    """

    texts: tuple[str, ...] = ("",)
    usual: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    computed: frozenset[str] = frozenset()


class TextValues(NamedTuple):
    """Number that stands for each category of a text column, for missing values, and for all other text."""

    known: dict[str, float]
    missing: float
    unknown: float


class Graph:
    """Builder of a graph, which collects nodes, constants and inputs."""

    def __init__(self, onnx: Any, columns: set[str], ml_opset: int, marks: Marks) -> None:
        self.onnx, self.ml_opset, self.marks = onnx, ml_opset, marks
        self.opset, self.ir_version = VERSIONS.opset, VERSIONS.ir
        # Internal values have a prefix that no column name has.
        self.prefix = "rocmax."
        while any(name.startswith(self.prefix) for name in columns):
            self.prefix += "_"
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """Add an operation whose output is internal, and return the name of the output."""
        return self.output(kind, inputs, self.prefix + name, **attributes)

    def output(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operation and return the name of its output."""
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], name=f"make_{output}", **attributes))
        return output

    def doubles(self, truths: str, name: str) -> str:
        """Return 1 where a truth value is true, otherwise 0."""
        return self.node("Cast", [truths], name, to=self.onnx.TensorProto.DOUBLE)

    def any_of(self, truths: str, name: str) -> str:
        """Return whether one of the truth values of a row is true, as a column."""
        axis = self.constant(f"axis_{name}", np.array([1], dtype=np.int64))
        count = self.node("ReduceSum", [self.doubles(truths, f"ones_{name}"), axis], f"count_{name}", keepdims=1)
        return self.node("Greater", [count, self.constant(f"none_{name}", np.array(0.0))], name)

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add an array and return its name."""
        self.constants.append(self.onnx.numpy_helper.from_array(value, self.prefix + name))
        return self.prefix + name

    def strings(self, name: str, values: list[str]) -> str:
        """Add an array of strings and return its name."""
        encoded = [value.encode() for value in values]
        kind = self.onnx.TensorProto.STRING
        self.constants.append(self.onnx.helper.make_tensor(self.prefix + name, kind, [len(encoded)], encoded))
        return self.prefix + name

    def input(self, name: str, width: int, text: bool = False) -> str:
        """Add an input of the graph and return its name."""
        kind = self.onnx.TensorProto.STRING if text else self.onnx.TensorProto.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [None, width]))
        return name

    def number(self, place: int, name: str) -> str:
        """Return the numbers of an input column, with NaN for marks for missing values."""
        column = self.input(name, 1)
        if not self.marks.numbers or name in self.marks.computed:
            return column
        marks = self.constant(f"marks_{place}", np.array([self.marks.numbers]))
        found = self.any_of(self.node("Equal", [column, marks], f"is_mark_{place}"), f"is_marked_{place}")
        return self.node("Where", [found, self.constant(f"nan_{place}", np.array(np.nan)), column], f"number_{place}")

    def _model(self) -> Any:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        outputs = [
            helper.make_tensor_value_info("score", types.DOUBLE, [None]),
            helper.make_tensor_value_info("label", types.STRING, [None]),
        ]
        graph = helper.make_graph(self.nodes, "rocmax", self.inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", self.ml_opset)]
        model = helper.make_model(graph, opset_imports=versions, producer_name="rocmax", producer_version=__version__)
        model.ir_version = min(self.ir_version, VERSIONS.text_ir)
        self.onnx.checker.check_model(model)  # refuses versions that are newer than its own
        model.ir_version = self.ir_version
        return model

    def text_values(self, place: int, name: str, text: TextValues) -> str:
        """Return the number that stands for each value of a text column, after spaces around it are removed.

        No operator of ONNX removes spaces. Each distinct number has a code in binary, and a regular expression tells
        for each bit whether it is set: the expressions list the text whose codes have this bit.
        """
        self.opset, self.ir_version = VERSIONS.text_opset, max(self.ir_version, VERSIONS.text_ir)
        numbers = {repr(float(text.unknown)): float(text.unknown)}
        listed: dict[str, list[str]] = {}
        for value, number in self._texts(text).items():
            key = repr(float(number))
            numbers.setdefault(key, float(number))
            listed.setdefault(key, []).append(value)
        column = self.input(name, 1, text=True)
        bits = []
        for bit in range(max(1, (len(numbers) - 1).bit_length())):
            chosen = [value for code, key in enumerate(numbers) if code >> bit & 1 for value in listed[key]]
            pattern = f"{SPACES}(?:{'|'.join(map(_quoted, chosen))}){SPACES}" if chosen else _NOTHING
            bits.append(self.node("RegexFullMatch", [column], f"bit_{place}_{bit}", pattern=pattern))
        joined = self.doubles(self.node("Concat", bits, f"bits_{place}", axis=1), f"digits_{place}")
        powers = self.constant(f"powers_{place}", 2.0 ** np.arange(len(bits))[:, np.newaxis])
        code = self.node("MatMul", [joined, powers], f"sum_of_bits_{place}")
        code = self.node("Cast", [code], f"code_{place}", to=self.onnx.TensorProto.INT64)
        values = self.constant(f"values_{place}", np.array(list(numbers.values())))
        return self.node("Gather", [values, code], f"value_{place}")

    def _texts(self, text: TextValues) -> dict[str, float]:
        """Return the number of all text that stands for another number than unknown text does."""
        missing = {*self.marks.texts, *(mark for mark in self.marks.usual if mark not in text.known)}
        # No value equals a category with spaces around it, because these are removed from the values.
        found = {name: number for name, number in text.known.items() if name.strip() == name}
        # Other forms of a category are that category, as in predictions.
        found |= {form: found[name] for name in sorted(found) for form in other_forms(name) if form not in text.known}
        found |= dict.fromkeys(sorted(missing), text.missing)
        return {name: number for name, number in found.items() if repr(float(number)) != repr(float(text.unknown))}

    def refuse_large(self, matrix: str, score: str) -> str:
        """Return the score, but NaN for rows with an infinite number or one that is too large, which models refuse."""
        size = self.node("Abs", [matrix], "sizes_of_numbers")
        large = self.node("Greater", [size, self.constant("largest", np.array(LARGEST))], "is_large")
        refused = self.any_of(large, "refused")
        return self.node("Where", [refused, self.constant("no_score", np.array(np.nan)), score], "valid")

    def finish(self, total: str, constant: float, labels: list[str]) -> Any:
        """Return the model with the score ``total + constant`` and the labels of scores up to 0 and above 0.

        The label of a score that is NaN is the empty string.
        """
        shifted = self.node("Add", [total, self.constant("constant", np.array([constant]))], "shifted")
        shape = self.constant("flat", np.array([-1], dtype=np.int64))
        score = self.output("Reshape", [shifted, shape], "score")
        above = self.node("Greater", [score, self.constant("zero", np.array(0.0))], "above")
        side = self.node("Cast", [above], "side", to=self.onnx.TensorProto.INT64)
        none = self.constant("no_label", np.array(len(labels), dtype=np.int64))
        place = self.node("Where", [self.node("IsNaN", [score], "is_nan"), none, side], "place")
        self.output("Gather", [self.strings("labels", [*labels, ""]), place], "label")
        return self._model()


def _quoted(text: str) -> str:
    """Return a regular expression, in the syntax of RE2, that matches a text and nothing else."""
    plain = (char.isprintable() and char not in r"\.+*?()|[]{}^$" for char in text)
    return "".join(char if is_plain else rf"\x{{{ord(char):x}}}" for char, is_plain in zip(text, plain, strict=True))


# Boosted trees as nodes of ONNX graphs.


class TreeInputs(NamedTuple):
    """Names of the inputs of trees, and the codes of text columns by position."""

    columns: list[str]
    texts: dict[int, TextValues]


def tree_inputs(table: Any, classifier: Any) -> TreeInputs:
    """Return the inputs of a fitted classifier with categories and its preprocessing."""
    if isinstance(table, FunctionTransformer):  # a matrix
        return TreeInputs([str(place) for place in range(classifier.n_features_in_)], {})
    parts = {part: [str(table.feature_names_in_[i]) for i in places] for part, _, places in table.transformers_}
    texts = {}
    if parts["texts"]:
        encoder = table.named_transformers_["texts"].steps[-1][1]
        for place, levels in enumerate(encoder.categories_, start=len(parts["numbers"])):
            # The trees know the frequent ones of the codes of the encoder, by their position.
            kept = {float(code): float(i) for i, code in enumerate(classifier.categories_[place])}
            known = {str(level): kept.get(float(code), np.nan) for code, level in enumerate(levels)}
            texts[place] = TextValues(known, known.get(MISSING, np.nan), np.nan)
    return TreeInputs([*parts["numbers"], *parts["texts"]], texts)


def tree_rows(build: Graph, inputs: TreeInputs, one_matrix: bool) -> str:
    """Add the inputs of trees to a graph and return them as a matrix, with codes of categories."""
    if one_matrix:
        return build.input("X", len(inputs.columns))
    columns = [
        build.text_values(place, name, inputs.texts[place]) if place in inputs.texts else build.number(place, name)
        for place, name in enumerate(inputs.columns)
    ]
    return build.node("Concat", columns, "features", axis=1)


def boosted_score(build: Graph, rows: str, classifier: BoostedClassifier) -> str:
    """Add boosted trees to a graph and return the mean score of the models."""
    ensembles = classifier.models_
    if any(trees.single for trees in ensembles):
        raise ValueError("the trees must be those of LightGBM, as in models of `rocmax fit`; got those of XGBoost")
    size = build.node("Abs", [rows], "size")
    near = build.node("LessOrEqual", [size, build.constant("tiny", np.array(ensembles[0].tiny))], "near_zero")
    matrix = build.node("Where", [near, build.constant("exact_zero", np.array(0.0)), rows], "cleared")
    if any(trees.category.size for trees in ensembles):
        build.ir_version = VERSIONS.sets_ir
    total = build.node("TreeEnsemble", [matrix], "trees", domain="ai.onnx.ml", **_attributes(build, ensembles))
    constant = sum(trees.constant for trees in ensembles)
    shifted = build.node("Add", [total, build.constant("base", np.array(constant))], "total")
    return build.node("Div", [shifted, build.constant("models", np.array(float(len(ensembles))))], "mean")


def forest_score(build: Graph, rows: str, forest: Forest) -> str:
    """Add a forest to a graph, which compares in single precision, and return its mean score."""
    ends = [
        build.constant(f"{side}_single", np.array(end, float))
        for side, end in zip(("min", "max"), SINGLES, strict=True)
    ]
    clipped = build.node("Clip", [rows, *ends], "clipped")
    singles = build.node("Cast", [clipped], "singles", to=build.onnx.TensorProto.FLOAT)
    matrix = build.node("Cast", [singles], "rounded", to=build.onnx.TensorProto.DOUBLE)
    split = forest.right > 0
    value = forest.value.astype(np.float64)
    trees: Any = SimpleNamespace(
        root=forest.root,
        left=np.where(split, np.arange(split.size) + 1, -1),
        right=np.where(split, forest.right, -1),
        feature=forest.feature,
        threshold=value,
        value=value,
        comparison=np.full(split.size, AT_MOST),
        missing=np.full(split.size, NAN_IS_MISSING),
        default_left=forest.missing_left,
        set_start=np.zeros(split.size + 1, dtype=np.int64),
        category=np.empty(0),
    )
    total = build.node("TreeEnsemble", [matrix], "forest", domain="ai.onnx.ml", **_attributes(build, [trees]))
    return build.node("Div", [total, build.constant("n_trees", np.array(float(forest.root.size)))], "forest_mean")


def _attributes(build: Graph, ensembles: list[TreeModel]) -> dict[str, Any]:
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
        "aggregate_function": 1,  # sum
        "post_transform": 0,  # none
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


def _nodes(trees: TreeModel) -> dict[str, NDArray[Any]]:
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
        # Codes of TreeEnsemble: 6 for members of a set, 1 for below, 0 for at most.
        "mode": np.select([filled, trees.comparison[split] == BELOW], [6, 1], 0),
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


def _missing_true(trees: TreeModel, split: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether missing values go to the side on which the comparison is true."""
    as_zero = trees.missing[split] == NAN_IS_ZERO
    found: NDArray[np.bool_] = np.where(as_zero, trees.threshold[split] >= 0, trees.default_left[split])
    # LightGBM sends missing values to the right in splits by category.
    found[trees.comparison[split] == IN_SET] = False
    return found


# Export of linear, additive and boosted models with their preprocessing to ONNX graphs.


# The graph is built without skl2onnx, which maps scalers and linear classifiers to ONNX-ML operators in single
# precision: its scores, and its decisions near the threshold, would differ from those of the model. It would also
# require a converter for each estimator of rocmax. Here, everything is computed in doubles, in the order of the model.


class _Numbers(NamedTuple):
    """Columns of numbers: what missing values are replaced by, splines if there are any, mean, scale and weights.

    Missing values of a matrix without column names are not replaced.
    """

    names: list[str]
    fill: Array | None
    splines: SplineFeatures | None
    mean: Array
    scale: Array
    weights: Array


class _Linear(NamedTuple):
    """Score as a sum: weighted numbers, a number for each category of each text column, and a constant."""

    numbers: _Numbers | None
    texts: dict[str, TextValues]
    constant: float


def export_file(model_path: Path, out: Path, *, max_bytes: int | None = None) -> None:
    """Export a model file to an ONNX file."""
    if same_file(model_path, out):
        raise ValueError(f"out must be another file than the model file; got {out}")
    fitted = load_model(model_path, max_bytes=max_bytes)
    write_file(out, to_onnx(fitted.model, fitted.facts).SerializeToString())


def to_onnx(model: Any, about: Schema) -> Any:
    """Return the ONNX graph of a linear, additive or boosted model, or of an ensemble of these, and its preprocessing.

    The inputs are the columns by name, each of shape (n_rows, 1): numbers as doubles, with NaN for missing values, and
    text as strings, with the empty string for missing values. Spaces around text are removed, and the marks for missing
    values of the fit are missing. A column of dates enters as the features that were computed from it. A model fitted
    to svmlight data has one matrix ``X`` as its input. The outputs are ``score``, above zero for the positive class,
    and ``label``. For a row that :func:`rocmax.tables.predict` refuses, because a number is infinite or above 1e100,
    the score is NaN and the label is the empty string.
    """
    onnx = _onnx()
    for name, limit in (
        ("thresholds_", "for the values of a column"),
        ("block_threshold_", "for review and for block"),
        ("case_calibration_", "for the costs of each row"),
    ):
        if getattr(model, name, None) is not None:
            raise ValueError(f"an ONNX graph has one threshold; the model has several, {limit}. Use rocmax predict")
    pipeline = getattr(model, "estimator_", model)
    classifier: Any = pipeline.named_steps["model"] if isinstance(pipeline, Pipeline) else pipeline
    if isinstance(pipeline, Pipeline) and isinstance(classifier, BoostedClassifier | EnsembleClassifier):
        return _tree_graph(onnx, model, about)
    linear = _linear(model, about)
    names = [] if linear.numbers is None else linear.numbers.names
    build = Graph(onnx, _input_names([*names, *linear.texts]), VERSIONS.ml_opset, _marks(about))
    terms = []
    if linear.numbers is not None:
        terms.append(_number_term(build, linear.numbers, about.features is None))
    terms += [build.text_values(len(names) + i, *entry) for i, entry in enumerate(linear.texts.items())]
    total = terms[0]
    for step, term in enumerate(terms[1:]):
        total = build.node("Add", [total, term], f"sum_{step}")
    return build.finish(total, linear.constant, [about.negative, about.positive])


def _marks(about: Schema) -> Marks:
    """Return the values that are missing in the tables of a model."""
    marks = [mark.strip() for mark in about.reading.na]
    computed = (name for date in about.dates.values() for name in date.features)
    return Marks(("", *marks), MISSING_TEXT, tuple(marked_numbers(marks)), frozenset(computed))


def _tree_graph(onnx: Any, model: Any, about: Schema) -> Any:
    pipeline = getattr(model, "estimator_", model)
    classifier = pipeline.named_steps["model"]
    inputs = tree_inputs(pipeline.named_steps["table"], classifier)
    one_matrix = about.features is None
    build = Graph(onnx, _input_names(["X"] if one_matrix else inputs.columns), VERSIONS.tree_opset, _marks(about))
    rows = tree_rows(build, inputs, one_matrix)
    add = boosted_score if isinstance(classifier, BoostedClassifier) else _ensemble_score
    mean = build.refuse_large(rows, add(build, rows, classifier))
    # High scores of the trees indicate the class pos_label, which need not be the positive class.
    sign = direction(positive_index(classifier.classes_, classifier.pos_label))
    sign *= direction(positive_index(classifier.classes_, about.positive))
    if sign < 0:
        mean = build.node("Neg", [mean], "reversed")
    constant = -sign * float(classifier.threshold_) - float(getattr(model, "threshold_", 0.0))
    return build.finish(mean, constant, [about.negative, about.positive])


def _ensemble_score(build: Graph, rows: str, classifier: EnsembleClassifier) -> str:
    """Add the members of an ensemble to a graph and return the weighted mean of the log-odds of their ranks."""
    terms = []
    for name, member in classifier.members_.items():
        if isinstance(member, Forest):
            score = forest_score(build, rows, member)
        elif isinstance(member, BoostedClassifier):
            score = boosted_score(build, rows, member)
        else:
            score = _additive_score(build, rows, member, classifier.categories_)
        weight = build.constant(f"weight_{name}", np.array(classifier.weights_[name]))
        terms.append(
            build.node("Mul", [_rank(build, name, score, classifier.rank_tables_[name]), weight], f"part_{name}")
        )
    return build.node("Sum", terms, "ensemble")


def _rank(build: Graph, name: str, score: str, table: Array) -> str:
    """Return the log-odds of the rank of a score: a sum of rises between the knots, and of lines beyond them."""
    (knots, odds), parts = table, []
    for side, knot, slope, kind in zip(("low", "high"), knots[[0, -1]], end_slopes(table), ("Min", "Max"), strict=True):
        rise = build.node("Sub", [score, build.constant(f"{side}_knot_{name}", np.array(knot))], f"{side}_{name}")
        beyond = build.node(kind, [rise, build.constant(f"{side}_zero_{name}", np.array(0.0))], f"beyond_{side}_{name}")
        parts.append(
            build.node("Mul", [beyond, build.constant(f"{side}_slope_{name}", np.array(slope))], f"{side}_line_{name}")
        )
    if knots.size > 1:
        above = build.node("Sub", [score, build.constant(f"knots_{name}", knots[np.newaxis, :-1])], f"above_{name}")
        width = build.constant(f"knot_widths_{name}", np.diff(knots)[np.newaxis, :])
        ends = [build.constant(f"{side}_{name}", np.array(end)) for side, end in (("least", 0.0), ("most", 1.0))]
        shares = build.node("Clip", [build.node("Div", [above, width], f"over_{name}"), *ends], f"shares_{name}")
        parts.append(
            build.node(
                "MatMul", [shares, build.constant(f"rises_{name}", np.diff(odds)[:, np.newaxis])], f"rank_{name}"
            )
        )
    return build.node("Sum", [*parts, build.constant(f"first_{name}", np.array(odds[:1]))], f"odds_{name}")


def _additive_score(build: Graph, rows: str, member: Pipeline, categories: dict[int, NDArray[Any]]) -> str:
    """Add the additive member of an ensemble to a graph and return its score."""
    table, coef = member.named_steps["table"], member.named_steps["model"].coef_[0]
    constant = build.constant("intercept", member.named_steps["model"].intercept_)
    terms, places = [constant], {name: columns for name, _, columns in table.transformers_}
    n_features = 0
    if "numbers" in places:
        splines, scaler = (step for _, step in table.named_transformers_["numbers"].steps)
        n_features = scaler.scale_.size
        numbers = _Numbers([], splines.medians_, splines, scaler.mean_, scaler.scale_, coef[:n_features])
        chosen = build.constant("number_places", np.array(places["numbers"], dtype=np.int64))
        terms.append(_weighed(build, numbers, build.node("Gather", [rows, chosen], "splined", axis=1)))
    if "categories" in places:
        known = table.named_transformers_["categories"].categories_
        weights = np.split(coef[n_features:], np.cumsum([each.size for each in known])[:-1])
        for place, codes, values in zip(places["categories"], known, weights, strict=True):
            n_codes = categories[place].size
            by_code = np.zeros(n_codes + 1)  # the last one is that of missing values
            by_code[np.where(np.isnan(codes), n_codes, codes).astype(np.int64)] = values
            at = build.constant(f"place_{place}", np.array([place], dtype=np.int64))
            code = build.node("Gather", [rows, at], f"code_of_{place}", axis=1)
            last = build.constant(f"last_{place}", np.array(float(n_codes)))
            filled = build.node(
                "Where", [build.node("IsNaN", [code], f"no_code_{place}"), last, code], f"filled_{place}"
            )
            index = build.node("Cast", [filled], f"index_{place}", to=build.onnx.TensorProto.INT64)
            terms.append(build.node("Gather", [build.constant(f"effects_{place}", by_code), index], f"effect_{place}"))
    return build.node("Sum", terms, "additive")


def _input_names(columns: list[str]) -> set[str]:
    """Return the names of columns after checking that inputs can have them."""
    names = set(columns)
    taken = {"score", "label"} & names
    if taken:
        raise ValueError(
            f"ONNX inputs must not be named 'score' or 'label', which are outputs; rename the column {taken.pop()!r}"
        )
    if "" in names:
        raise ValueError("ONNX inputs must have nonempty names; got a column named ''; rename it and fit again")
    return names


def _number_term(build: Graph, numbers: _Numbers, one_matrix: bool) -> str:
    """Return the weighted sum of numbers, in the order of operations of the model."""
    if one_matrix:
        matrix = build.input("X", numbers.weights.size)
    else:
        columns = [build.number(place, name) for place, name in enumerate(numbers.names)]
        matrix = build.node("Concat", columns, "numbers", axis=1)
    return build.refuse_large(matrix, _weighed(build, numbers, matrix))


def _weighed(build: Graph, numbers: _Numbers, matrix: str) -> str:
    """Return the weighted sum of the features of a matrix of numbers; missing ones are imputed."""
    if numbers.fill is not None:
        missing = build.node("IsNaN", [matrix], "missing")
        fill = build.constant("fill", numbers.fill[np.newaxis, :])
        matrix = build.node("Where", [missing, fill, matrix], "filled")
    features = matrix
    if numbers.splines is not None:
        features = _spline_features(build, numbers.splines, matrix, missing)
    centered = build.node("Sub", [features, build.constant("means", numbers.mean[np.newaxis, :])], "centered")
    scaled = build.node("Div", [centered, build.constant("scales", numbers.scale[np.newaxis, :])], "scaled")
    return build.node("MatMul", [scaled, build.constant("weights", numbers.weights[:, np.newaxis])], "weighed")


def _spline_features(build: Graph, splines: SplineFeatures, filled: str, missing: str) -> str:
    """Return the output of :class:`rocmax.SplineFeatures` for columns whose missing values are filled."""
    low, width, column = [], [], []
    for place, knots in enumerate(splines.knots_):
        # The feature of a constant column is zero: a rise over an infinite width.
        low.append(knots[:-1] / 2 if knots.size > 1 else np.zeros(1))
        width.append(np.diff(knots / 2) if knots.size > 1 else np.full(1, np.inf))
        column.append(np.full(low[-1].size, place))
    halves = build.node("Div", [filled, build.constant("two", np.array(2.0))], "halves")
    repeated = build.node("Gather", [halves, build.constant("of_spline", np.concatenate(column))], "repeated", axis=1)
    above = build.node("Sub", [repeated, build.constant("knots", np.concatenate(low)[np.newaxis, :])], "above_knot")
    rise = build.node("Div", [above, build.constant("widths", np.concatenate(width)[np.newaxis, :])], "rise")
    ends = [build.constant("least", np.array(0.0)), build.constant("most", np.array(1.0))]
    clipped = build.node("Clip", [rise, *ends], "splines")
    if not splines.missing_.size:
        return clipped
    places = build.constant("can_be_missing", splines.missing_.astype(np.int64))
    chosen = build.node("Gather", [missing, places], "lacks", axis=1)
    indicators = build.doubles(chosen, "indicators")
    return build.node("Concat", [clipped, indicators], "with_indicators", axis=1)


def _linear(model: Any, about: Schema) -> _Linear:
    pipeline = getattr(model, "estimator_", model)
    classifier: Any = pipeline.named_steps["model"] if isinstance(pipeline, Pipeline) else pipeline
    if not isinstance(pipeline, Pipeline) or not hasattr(classifier, "coef_"):
        raise ValueError(
            "the model must be a linear, additive or boosted model of `rocmax fit`, or an ensemble; got "
            f"{type(classifier).__name__}"
        )
    sign = direction(positive_index(classifier.classes_, about.positive))
    coef = sign * classifier.coef_[0]
    constant = sign * float(np.ravel(classifier.intercept_)[0]) - float(getattr(model, "threshold_", 0.0))
    table = pipeline.named_steps["table"]
    if isinstance(table, MaxAbsScaler):
        names = [str(i) for i in range(coef.size)]
        return _Linear(_Numbers(names, None, None, np.zeros(coef.size), table.scale_, coef), {}, constant)
    columns = {
        name: [str(table.feature_names_in_[place]) for place in places] for name, _, places in table.transformers_
    }
    texts, n_features, numbers = columns["texts"], 0, None
    if columns["numbers"]:
        first, scaler = (step for _, step in table.named_transformers_["numbers"].steps)
        n_features = scaler.scale_.size
        splines = first if isinstance(first, SplineFeatures) else None
        fill = first.statistics_ if splines is None else splines.medians_
        weights = coef[:n_features]
        numbers = _Numbers(columns["numbers"], fill, splines, scaler.mean_, scaler.scale_, weights)
    values = _category_values(table.named_transformers_["texts"].steps[-1][1], coef[n_features:]) if texts else []
    return _Linear(numbers, dict(zip(texts, values, strict=True)), constant)


def _category_values(encoder: Any, coef: Array) -> list[TextValues]:
    """Return the weights of the categories of each text column; an unknown category has none."""
    sizes = [len(categories) for categories in encoder.categories_]
    weights = [block.tolist() for block in np.split(coef, np.cumsum(sizes)[:-1])]
    known = [dict(zip(*both, strict=True)) for both in zip(encoder.categories_, weights, strict=True)]
    return [TextValues(values, values.get(MISSING, 0.0), 0.0) for values in known]


def _onnx() -> Any:
    need("onnx")
    import onnx
    import onnx.numpy_helper

    return onnx
