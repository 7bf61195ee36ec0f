"""Report of a fitted classifier of scikit-learn's kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rocmax._atomic import check_output, write_file
from rocmax._packages import need
from rocmax._response import class_scores, direction
from rocmax._typing import Array
from rocmax._validate import positive_index
from rocmax.report._content import Feature, ReportModel, TestData

N_FEATURES = 15


def report_classifier(
    render: Callable[[list[ReportModel], TestData], str],
    model: Any,
    X: Any,
    y: Any,
    out: str | Path | None = None,
    *,
    pos_label: Any = None,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    random_state: int = 0,
) -> str:
    """Return the report of fitted classifiers; the parameters are those of :class:`rocmax.report.CallableReport`."""
    need("jinja2")
    if not 0 <= min_fpr < max_fpr <= 1:
        raise ValueError(
            f"min_fpr must be at least 0 and less than max_fpr, at most 1; got {min_fpr!r} and {max_fpr!r}"
        )
    if out is not None:
        check_output(out)
    models = dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
    if not models:
        raise ValueError("model must have at least one classifier; got none")
    y = np.asarray(y)
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(f"y must have two classes; got {classes.size}")
    index = positive_index(classes, pos_label)
    positive = y == classes[index]
    entries = [_entry(name, fitted, X, classes[index], max_fpr) for name, fitted in models.items()]
    data = TestData(
        "the test rows",
        positive,
        str(classes[index]),
        (min_fpr, max_fpr),
        _columns(X),
        random_state,
        negative_label=str(classes[1 - index]),
    )
    page = render(entries, data)
    if out is not None:
        write_file(out, page.encode())
    return page


def _entry(name: str, model: Any, X: Any, positive: Any, max_fpr: float) -> ReportModel:
    known = np.asarray(getattr(model, "classes_", []))
    if positive not in known.tolist():
        raise ValueError(
            f"model must be a fitted classifier with the class {str(positive)!r}; got {name} with {known.tolist()}"
        )
    index = int(np.flatnonzero(known == positive)[0])
    scores = class_scores(model, X, index)
    probabilities = model.predict_proba(X)[:, index].astype(np.float64) if hasattr(model, "predict_proba") else None
    features, kind = _features(model, X, index)
    return ReportModel(
        name,
        type(getattr(model, "steps", [(None, model)])[-1][1]).__name__,
        scores,
        np.asarray(model.predict(X)) == positive,
        features,
        feature_value=kind,
        probabilities=probabilities,
    )


def _features(model: Any, X: Any, index: int) -> tuple[list[Feature], str]:
    """Return the weights or importances of the last step, if it has any, and what they are."""
    final = getattr(model, "steps", [(None, model)])[-1][1]
    if hasattr(final, "coef_"):
        weights, kind = direction(index) * np.ravel(final.coef_), "weight"
    elif hasattr(final, "feature_importances_"):
        weights, kind = np.asarray(final.feature_importances_, dtype=np.float64), "gain"
    else:
        return [], "weight"
    names = _names(model, X, weights)
    largest = np.argsort(-np.abs(weights), kind="stable")[:N_FEATURES]
    sign = np.sign(weights) if kind == "weight" else np.zeros(weights.size)
    return [Feature(names[i], float(weights[i]), int(sign[i])) for i in largest], kind


def _names(model: Any, X: Any, weights: Array) -> list[str]:
    if hasattr(model, "steps") and len(model.steps) > 1:
        try:
            names = list(map(str, model[:-1].get_feature_names_out()))
        except (AttributeError, ValueError):
            names = []
    else:
        names = list(map(str, getattr(X, "columns", [])))
    return names if len(names) == weights.size else [f"feature {i + 1}" for i in range(weights.size)]


def _columns(X: Any) -> list[tuple[str, str, float]]:
    if not hasattr(X, "iloc"):
        return []
    kinds = {name: "number" if dtype.kind in "fiub" else "text" for name, dtype in X.dtypes.items()}
    return [(str(name), kind, float(X[name].isna().mean())) for name, kind in kinds.items()]
