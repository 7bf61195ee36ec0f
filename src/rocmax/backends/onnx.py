"""Export of linear, additive and boosted models with their preprocessing to ONNX graphs."""

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
from rocmax.backends._onnx_graph import Graph, Marks, TextValues
from rocmax.backends._onnx_trees import TREE_OPSET, is_boosted, read_boosted, tree_scores
from rocmax.data.values import MISSING_TEXT, marked_numbers
from rocmax.estimators import SplineFeatures
from rocmax.model_io import load_fitted
from rocmax.workflow.preprocessing import MISSING

# The graph is built without skl2onnx, which maps scalers and linear classifiers to ONNX-ML operators in single
# precision: its scores, and its decisions near the threshold, would differ from those of the model. It would also
# require a converter for each estimator of rocmax. Here, everything is computed in doubles, in the order of the model.
ML_OPSET = 3


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
    """Return the ONNX graph of a linear, additive or boosted model and its preprocessing.

    The inputs are the columns by name, each of shape (n_rows, 1): numbers as doubles, with NaN for missing values, and
    text as strings, with the empty string for missing values. Spaces around text are removed, and the marks for missing
    values of the fit are missing. A column of dates enters as the features that were computed from it. A model fitted
    to svmlight data has one matrix ``X`` as its input. The outputs are ``score``, above zero for the positive class,
    and ``label``. For a row that :func:`rocmax.workflow.predict` refuses, because a number is infinite or above 1e100,
    the score is NaN and the label is the empty string.

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
    if isinstance(pipeline, Pipeline) and is_boosted(classifier):
        return _boosted_graph(onnx, model, about)
    linear = _linear(model, about)
    names = [] if linear.numbers is None else linear.numbers.names
    build = Graph(onnx, _input_names([*names, *linear.texts]), ML_OPSET, _marks(about))
    terms = []
    if linear.numbers is not None:
        terms.append(_number_term(build, linear.numbers, about["features"] is None))
    terms += [build.text_values(len(names) + i, *entry) for i, entry in enumerate(linear.texts.items())]
    total = terms[0]
    for step, term in enumerate(terms[1:]):
        total = build.node("Add", [total, term], f"sum_{step}")
    return build.finish(total, linear.constant, [about["negative"], about["positive"]])


def _marks(about: dict[str, Any]) -> Marks:
    """Return the values that are missing in the tables of a model."""
    marks = [mark.strip() for mark in about.get("reading", {}).get("na", [])]
    computed = (name for entry in about.get("dates", {}).values() for name in entry["features"])
    return Marks(("", *marks), MISSING_TEXT, tuple(marked_numbers(marks)), frozenset(computed))


def _boosted_graph(onnx: Any, model: Any, about: dict[str, Any]) -> Any:
    pipeline = getattr(model, "estimator_", model)
    classifier = pipeline.named_steps["model"]
    boosted = read_boosted(pipeline.named_steps["table"], classifier)
    one_matrix = about["features"] is None
    build = Graph(onnx, _input_names(["X"] if one_matrix else boosted.columns), TREE_OPSET, _marks(about))
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


def _number_term(build: Graph, numbers: _Numbers, one_matrix: bool) -> str:
    """Impute missing numbers and return the weighted sum, in the order of operations of the model."""
    if one_matrix:
        matrix = build.input("X", numbers.weights.size)
    else:
        columns = [build.number(place, name) for place, name in enumerate(numbers.names)]
        matrix = build.node("Concat", columns, "numbers", axis=1)
    if numbers.fill is not None:
        missing = build.node("IsNaN", [matrix], "missing")
        fill = build.constant("fill", numbers.fill[np.newaxis, :])
        matrix = build.node("Where", [missing, fill, matrix], "filled")
    features = matrix
    if numbers.splines is not None:
        features = _spline_features(build, numbers.splines, matrix, missing)
    centered = build.node("Sub", [features, build.constant("means", numbers.mean[np.newaxis, :])], "centered")
    scaled = build.node("Div", [centered, build.constant("scales", numbers.scale[np.newaxis, :])], "scaled")
    weighed = build.node("MatMul", [scaled, build.constant("weights", numbers.weights[:, np.newaxis])], "weighed")
    return build.refuse_large(matrix, weighed)


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


def _linear(model: Any, about: dict[str, Any]) -> _Linear:
    pipeline = getattr(model, "estimator_", model)
    classifier: Any = pipeline.named_steps["model"] if isinstance(pipeline, Pipeline) else pipeline
    if not isinstance(pipeline, Pipeline) or not hasattr(classifier, "coef_"):
        raise ValueError(
            f"the model must be a linear, additive or boosted model of `rocmax fit`; got {type(classifier).__name__}"
        )
    sign = direction(positive_index(classifier.classes_, about["positive"]))
    coef = sign * classifier.coef_[0]
    constant = sign * float(np.ravel(classifier.intercept_)[0]) - float(getattr(model, "threshold_", 0.0))
    table = pipeline.named_steps["table"]
    if isinstance(table, MaxAbsScaler):
        names = [str(i) for i in range(coef.size)]
        return _Linear(_Numbers(names, None, None, np.zeros(coef.size), table.scale_, coef), {}, constant)
    columns = {name: _column_names(table, chosen) for name, _, chosen in table.transformers_}
    texts, n_features, numbers = columns["texts"], 0, None
    if columns["numbers"]:
        first, scaler = (step for _, step in table.named_transformers_["numbers"].steps)
        n_features = scaler.scale_.size
        splines = first if isinstance(first, SplineFeatures) else None
        if splines is None and not isinstance(first, SimpleImputer):
            raise ValueError(
                "numbers must be imputed or splines, and then standardized, for export; the column "
                f"{columns['numbers'][0]!r} has {type(first).__name__}"
            )
        fill = first.statistics_ if splines is None else splines.medians_
        weights = coef[:n_features]
        numbers = _Numbers(columns["numbers"], fill, splines, scaler.mean_, scaler.scale_, weights)
    values = _category_values(table.named_transformers_["texts"].steps, coef[n_features:]) if texts else []
    return _Linear(numbers, dict(zip(texts, values, strict=True)), constant)


def _column_names(table: Any, columns: Any) -> list[str]:
    """Return column names; models saved by earlier versions store names instead of positions."""
    return [name if isinstance(name, str) else str(table.feature_names_in_[name]) for name in columns]


def _category_values(steps: list[tuple[str, Any]], coef: Array) -> list[TextValues]:
    """Return the weights of the categories of each text column."""
    encoder = steps[-1][1]
    infrequent = getattr(encoder, "infrequent_categories_", [None] * len(encoder.categories_))
    found, start = [], 0
    for categories, rare in zip(encoder.categories_, infrequent, strict=True):
        few = set() if rare is None else set(rare)
        frequent = [str(category) for category in categories if category not in few]
        width = len(frequent) + bool(few)
        block = coef[start : start + width].tolist()
        start += width
        other = block[-1] if few else 0.0
        known = dict(zip(frequent, block, strict=False))
        found.append(TextValues(known, known.get(MISSING, other), other))
    return found


def _onnx() -> Any:
    need("onnx")
    import onnx
    import onnx.numpy_helper

    return onnx
