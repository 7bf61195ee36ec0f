"""Export of linear models with their preprocessing to ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from rocmax import __version__
from rocmax._atomic import same_file, write_file
from rocmax._packages import need
from rocmax._response import direction
from rocmax._typing import Array
from rocmax._validate import positive_index
from rocmax.model_io import load_fitted
from rocmax.workflow.preprocessing import MISSING

# The graph is built without skl2onnx, which maps scalers and linear classifiers to ONNX-ML operators in single
# precision: its scores, and its decisions near the threshold, would differ from those of the model. It would also
# require a converter for each estimator of rocmax. Here, scaling and threshold are part of one sum of doubles.
OPSET, ML_OPSET = 18, 3


class _Linear(NamedTuple):
    """Score as a sum: weighted imputed numbers, a value for each category of each text column, and a constant."""

    numbers: list[str]
    fill: Array
    weights: Array
    texts: dict[str, tuple[list[str], Array]]
    constant: float


def export_file(model_path: Path, out: Path, *, max_bytes: int | None = None) -> None:
    """Export a model file to an ONNX file.

    Parameters
    ----------
    model_path : Path
        Model saved by ``rocmax fit``.
    out : Path
        ONNX file to write.
    max_bytes : int or None, default=None
        Maximum decompressed size of the model file, in bytes, as in :func:`rocmax.load`.
    """
    if same_file(model_path, out):
        raise ValueError(f"out must be another file than the model file; got {out}")
    model, about = load_fitted(model_path, max_bytes=max_bytes)
    write_file(out, to_onnx(model, about).SerializeToString())


def to_onnx(model: Any, about: dict[str, Any]) -> Any:
    """Return the ONNX graph of a linear model and its preprocessing.

    The inputs are the columns by name, each of shape (n_rows, 1): numbers as doubles, with NaN for missing values, and
    text as strings, with the empty string for missing values. A model fitted to svmlight data has one matrix ``X`` as
    its input. The outputs are ``score``, above zero for the positive class, and ``label``.

    Parameters
    ----------
    model : estimator
        Model saved by ``rocmax fit``.
    about : dict
        Metadata saved with the model.

    Returns
    -------
    onnx.ModelProto
        The graph.
    """
    onnx = _onnx()
    linear = _linear(model, about)
    columns = {*linear.numbers, *linear.texts}
    taken = {"score", "label"} & columns
    if taken:
        raise ValueError(
            f"ONNX inputs must not be named 'score' or 'label', which are outputs; rename the column {taken.pop()!r}"
        )
    if "" in columns:
        raise ValueError("ONNX inputs must have nonempty names; got a column named ''; rename it and fit again")
    build = _Graph(onnx, columns)
    terms = []
    if linear.numbers:
        terms.append(_number_term(build, linear, about["features"] is None))
    terms += [_text_term(build, i, name, *entry) for i, (name, entry) in enumerate(linear.texts.items())]
    total = terms[0]
    for step, term in enumerate(terms[1:]):
        total = build.node("Add", [total, term], f"sum_{step}")
    shifted = build.node("Add", [total, build.constant("constant", np.array([linear.constant]))], "shifted")
    shape = build.constant("flat", np.array([-1], dtype=np.int64))
    score = build.output("Reshape", [shifted, shape], "score")
    above = build.node("Greater", [score, build.constant("zero", np.array(0.0))], "above")
    place = build.node("Cast", [above], "place", to=onnx.TensorProto.INT64)
    names = build.strings("labels", [about["negative"], about["positive"]])
    build.output("Gather", [names, place], "label")
    return build.model()


class _Graph:
    """Builder of a graph, which collects nodes, constants and inputs."""

    def __init__(self, onnx: Any, columns: set[str]) -> None:
        self.onnx = onnx
        # Internal values have a prefix that no column name has.
        self.prefix = "rocmax."
        while any(name.startswith(self.prefix) for name in columns):
            self.prefix += "_"
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        return self.output(kind, inputs, self.prefix + name, **attributes)

    def output(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], name=f"make_{output}", **attributes))
        return output

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(value, self.prefix + name))
        return self.prefix + name

    def strings(self, name: str, values: list[str]) -> str:
        encoded = [value.encode() for value in values]
        kind = self.onnx.TensorProto.STRING
        self.constants.append(self.onnx.helper.make_tensor(self.prefix + name, kind, [len(encoded)], encoded))
        return self.prefix + name

    def input(self, name: str, width: int, text: bool = False) -> str:
        kind = self.onnx.TensorProto.STRING if text else self.onnx.TensorProto.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [None, width]))
        return name

    def model(self) -> Any:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        outputs = [
            helper.make_tensor_value_info("score", types.DOUBLE, [None]),
            helper.make_tensor_value_info("label", types.STRING, [None]),
        ]
        graph = helper.make_graph(self.nodes, "rocmax", self.inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=versions, producer_name="rocmax", producer_version=__version__)
        model.ir_version = 8
        self.onnx.checker.check_model(model)
        return model


def _number_term(build: _Graph, linear: _Linear, one_matrix: bool) -> str:
    """Impute missing numbers and return the weighted sum."""
    if one_matrix:
        matrix = build.input("X", linear.weights.size)
    else:
        matrix = build.node("Concat", [build.input(name, 1) for name in linear.numbers], "numbers", axis=1)
    missing = build.node("IsNaN", [matrix], "missing")
    filled = build.node("Where", [missing, build.constant("fill", linear.fill[np.newaxis, :]), matrix], "filled")
    return build.node("MatMul", [filled, build.constant("weights", linear.weights[:, np.newaxis])], "weighed")


def _text_term(build: _Graph, place: int, name: str, categories: list[str], values: Array) -> str:
    """Return the value of each category; the last one is for unknown categories."""
    code = build.node(
        "LabelEncoder",
        [build.input(name, 1, text=True)],
        f"code_{place}",
        domain="ai.onnx.ml",
        keys_strings=categories,
        values_int64s=list(range(len(categories))),
        default_int64=len(categories),
    )
    return build.node("Gather", [build.constant(f"values_{place}", values), code], f"value_{place}")


def _linear(model: Any, about: dict[str, Any]) -> _Linear:
    pipeline = getattr(model, "estimator_", model)
    classifier: Any = pipeline.named_steps["model"] if isinstance(pipeline, Pipeline) else pipeline
    if not isinstance(pipeline, Pipeline) or not hasattr(classifier, "coef_"):
        raise ValueError(f"the model must be a linear model of `rocmax fit`; got {type(classifier).__name__}")
    sign = direction(positive_index(classifier.classes_, about["positive"]))
    coef = sign * classifier.coef_[0]
    constant = sign * float(np.ravel(classifier.intercept_)[0]) - float(getattr(model, "threshold_", 0.0))
    table = pipeline.named_steps["table"]
    if isinstance(table, MaxAbsScaler):
        names = [str(i) for i in range(coef.size)]
        return _Linear(names, np.zeros(coef.size), coef / table.scale_, {}, constant)
    columns = {name: _column_names(table, chosen) for name, _, chosen in table.transformers_}
    numbers, texts = columns["numbers"], columns["texts"]
    weights, fill = np.zeros(0), np.zeros(0)
    if numbers:
        imputer, scaler = (step for _, step in table.named_transformers_["numbers"].steps)
        fill, weights = imputer.statistics_, coef[: len(numbers)] / scaler.scale_
        constant -= float(weights @ scaler.mean_)
    values = _category_values(table.named_transformers_["texts"].steps, coef[len(numbers) :]) if texts else []
    return _Linear(numbers, fill, weights, dict(zip(texts, values, strict=True)), constant)


def _column_names(table: Any, columns: Any) -> list[str]:
    """Return column names; models saved by earlier versions store names instead of positions."""
    return [name if isinstance(name, str) else str(table.feature_names_in_[name]) for name in columns]


def _category_values(steps: list[tuple[str, Any]], coef: Array) -> list[tuple[list[str], Array]]:
    """Return the categories and their weights for each text column; the last weight is for unknown categories."""
    encoder = steps[-1][1]
    # ONNX has no missing strings: the empty string represents them, as in the model. In models of earlier versions,
    # the empty string is not missing.
    empty_is_missing = any(getattr(step, "missing_values", None) == "" for _, step in steps)
    infrequent = encoder.infrequent_categories_
    found, start = [], 0
    for categories, rare in zip(encoder.categories_, infrequent, strict=True):
        few = set() if rare is None else set(rare)
        frequent = [category for category in categories if category not in few]
        width = len(frequent) + bool(few)
        block = coef[start : start + width]
        start += width
        other = float(block[-1]) if few else 0.0
        weight = dict(zip(frequent, block, strict=False))
        names = [str(category) for category in categories]
        values = [float(weight.get(category, other)) for category in categories]
        if empty_is_missing:
            names, values = ["", *names], [dict(zip(names, values, strict=True)).get(MISSING, other), *values]
        found.append((names, np.array([*values, other])))
    return found


def _onnx() -> Any:
    need("onnx")
    import onnx
    import onnx.numpy_helper

    return onnx
