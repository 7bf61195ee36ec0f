"""Export of linear and boosted models with their preprocessing to ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from rocmax._atomic import same_file, write_file
from rocmax._packages import need
from rocmax._response import direction
from rocmax._typing import Array
from rocmax._validate import positive_index
from rocmax.backends._onnx_graph import Graph
from rocmax.backends._onnx_trees import TREE_OPSET, is_boosted, read_boosted, tree_scores
from rocmax.model_io import load_fitted
from rocmax.workflow.preprocessing import MISSING

# The graph is built without skl2onnx, which maps scalers and linear classifiers to ONNX-ML operators in single
# precision: its scores, and its decisions near the threshold, would differ from those of the model. It would also
# require a converter for each estimator of rocmax. Here, scaling and threshold are part of one sum of doubles.
ML_OPSET = 3


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
    """Return the ONNX graph of a linear or boosted model and its preprocessing.

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
    pipeline = getattr(model, "estimator_", model)
    classifier: Any = pipeline.named_steps["model"] if isinstance(pipeline, Pipeline) else pipeline
    labels = [about["negative"], about["positive"]]
    if isinstance(pipeline, Pipeline) and is_boosted(classifier):
        return _boosted_graph(onnx, model, about)
    linear = _linear(model, about)
    build = Graph(onnx, _input_names([*linear.numbers, *linear.texts]), ML_OPSET)
    terms = []
    if linear.numbers:
        terms.append(_number_term(build, linear, about["features"] is None))
    terms += [build.text_values(i, name, *entry) for i, (name, entry) in enumerate(linear.texts.items())]
    total = terms[0]
    for step, term in enumerate(terms[1:]):
        total = build.node("Add", [total, term], f"sum_{step}")
    return build.finish(total, linear.constant, labels)


def _boosted_graph(onnx: Any, model: Any, about: dict[str, Any]) -> Any:
    pipeline = getattr(model, "estimator_", model)
    classifier = pipeline.named_steps["model"]
    boosted = read_boosted(pipeline.named_steps["table"], classifier)
    one_matrix = about["features"] is None
    build = Graph(onnx, _input_names(["X"] if one_matrix else boosted.columns), TREE_OPSET)
    mean = tree_scores(build, boosted, one_matrix)
    # High scores of the trees indicate the class pos_label, which need not be the positive class.
    sign = direction(positive_index(classifier.classes_, classifier.pos_label))
    sign *= direction(positive_index(classifier.classes_, about["positive"]))
    if sign < 0:
        mean = build.node("Neg", [mean], "reversed")
    constant = -sign * float(classifier.threshold_) - float(getattr(model, "threshold_", 0.0))
    return build.finish(mean, constant, [about["negative"], about["positive"]])


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


def _number_term(build: Graph, linear: _Linear, one_matrix: bool) -> str:
    """Impute missing numbers and return the weighted sum."""
    if one_matrix:
        matrix = build.input("X", linear.weights.size)
    else:
        matrix = build.node("Concat", [build.input(name, 1) for name in linear.numbers], "numbers", axis=1)
    missing = build.node("IsNaN", [matrix], "missing")
    filled = build.node("Where", [missing, build.constant("fill", linear.fill[np.newaxis, :]), matrix], "filled")
    return build.node("MatMul", [filled, build.constant("weights", linear.weights[:, np.newaxis])], "weighed")


def _linear(model: Any, about: dict[str, Any]) -> _Linear:
    pipeline = getattr(model, "estimator_", model)
    classifier: Any = pipeline.named_steps["model"] if isinstance(pipeline, Pipeline) else pipeline
    if not isinstance(pipeline, Pipeline) or not hasattr(classifier, "coef_"):
        raise ValueError(
            f"the model must be a linear or boosted model of `rocmax fit`; got {type(classifier).__name__}"
        )
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
        if not isinstance(imputer, SimpleImputer):
            raise ValueError(
                "numbers must be imputed and standardized for export; additive models cannot be exported: the column "
                f"{numbers[0]!r} has {type(imputer).__name__}"
            )
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
    infrequent = getattr(encoder, "infrequent_categories_", [None] * len(encoder.categories_))
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
