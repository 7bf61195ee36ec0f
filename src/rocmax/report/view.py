"""Values of the report's template, and the report of a fitted classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rocmax._files import check_output, write_file
from rocmax._support import Array, check_floor, check_window, need
from rocmax._validation import class_scores, direction, named_pos_label, positive_index
from rocmax.base import MeasureMixin
from rocmax.metrics.curve import group_numbers, score_blocks
from rocmax.metrics.uncertainty import interval_notes
from rocmax.report import sections
from rocmax.report.page import (
    Axes,
    Bands,
    Feature,
    RankedModel,
    ReportModel,
    TestData,
    headline,
    lift_plot,
    negative_name,
    precision_recall_plot,
    roc_plots,
    sliders,
)
from rocmax.thresholds import FPRThresholdClassifier, TPRThresholdClassifier

# Variables of the template.


def view(models: list[ReportModel], data: TestData) -> dict[str, Any]:
    """Return the variables of the template."""
    ranked = [
        RankedModel(model, score_blocks(data.positive, model.scores), np.unique(model.scores)[::-1]) for model in models
    ]
    bands = [Bands(data) for _ in models]
    # The intervals of the measures and the bands come from the same resamples.
    estimates = [sections.measures(model, data, each.add) for model, each in zip(models, bands, strict=True)]
    plots = roc_plots(ranked, data, [each.limits() for each in bands])
    numbers = sliders(ranked, data)
    histograms = [sections.histogram(model, data) for model in models]
    numbers["panels"] = [axes.scale() for axes, _ in plots]
    numbers["histograms"] = [plot["scale"] for plot in histograms]
    return {
        "data": data,
        "negative_name": negative_name(data),
        "n_groups": None if data.groups is None else np.unique(data.groups).size,
        "range_text": _range_text(data),
        "headline": headline(models, data),
        "roc_plots": [{**plot, "saved": _marks(axes, numbers)} for axes, plot in plots],
        "other_plots": [precision_recall_plot(ranked, data), lift_plot(ranked, data)],
        "histograms": histograms,
        "score_groups": [sections.score_groups(model, data) for model in models],
        "models": [
            {
                "model": model,
                "number": number,
                "estimates": found,
                "notes": interval_notes((each["title"], each["caution"]) for each in found),
                "features": sections.feature_bars(model.features),
            }
            for number, (model, found) in enumerate(zip(models, estimates, strict=True))
        ],
        "tests": sections.tests(models, data),
        "saved_thresholds": [entry for model in models for entry in sections.saved_threshold(model, data)],
        "segments": sections.by_segment(models, data),
        "numbers": numbers,
    }


def _marks(axes: Axes, numbers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the places of the saved thresholds in a plot of ROC curves, of those that are in it."""
    found = []
    for number, model in enumerate(numbers["models"]):
        fpr, tpr = model["saved"]["fp"] / numbers["negatives"], model["saved"]["tp"] / numbers["positives"]
        if axes.x_range[0] <= fpr <= axes.x_range[1] and axes.y_range[0] <= tpr <= axes.y_range[1]:
            found.append({"x": round(float(axes.x(fpr)), 1), "y": round(float(axes.y(tpr)), 1), "color": number % 4})
    return found


def _range_text(data: TestData) -> str:
    """Return the range of interest in words, or an empty string if it is the whole curve."""
    low, high = (100 * end for end in data.window)
    parts = []
    if data.window != (0.0, 1.0):
        parts.append(f"false-positive rates from {low:g} % to {high:g} %")
    if data.min_tpr > 0:
        parts.append(f"true-positive rates of at least {100 * data.min_tpr:g} %")
    return " and ".join(parts)


# Report of a fitted classifier of scikit-learn's kind.


N_FEATURES = 15


def report_classifier(
    render: Callable[[list[ReportModel], TestData], str],
    model: Any,
    X: Any,
    y: Any,
    out: str | Path | None = None,
    *,
    pos_label: Any = None,
    min_fpr: float | None = None,
    max_fpr: float | None = None,
    min_tpr: float | None = None,
    random_state: int = 0,
    groups: Any = None,
) -> str:
    """Return the report of fitted classifiers; the parameters are those of :class:`rocmax.report.CallableReport`."""
    need("jinja2")
    models = dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
    if not models:
        raise ValueError("model must have at least one classifier; got none")
    given = {"min_fpr": min_fpr, "max_fpr": max_fpr, "min_tpr": min_tpr}
    low, high, floor = _limits(next(iter(models.values())), given)
    if out is not None:
        check_output(out)
    y = np.asarray(y)
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(f"y must have two classes; got {classes.size}")
    index = positive_index(classes, named_pos_label(models.values(), pos_label))
    positive = y == classes[index]
    entries = [_entry(name, fitted, X, classes[index]) for name, fitted in models.items()]
    data = TestData(
        "the test rows",
        positive,
        str(classes[index]),
        (low, high),
        _columns(X),
        random_state,
        negative_label=str(classes[1 - index]),
        min_tpr=floor,
        groups=group_numbers(groups, None, y),
    )
    page = render(entries, data)
    if out is not None:
        write_file(out, page.encode())
    return page


def _limits(model: Any, given: dict[str, Any]) -> list[float]:
    """Return the range of false-positive rates and the lower limit on the TPR; those not given are the model's."""
    final = _final(model)
    own = final._make_measure() if isinstance(final, MeasureMixin) else final
    limits = [
        getattr(own, name, default) if given[name] is None else given[name]
        for name, default in (("min_fpr", 0.0), ("max_fpr", 1.0), ("min_tpr", 0.0))
    ]
    check_window(*limits[:2], any_width=True)
    check_floor(limits[2])
    return [float(limit) for limit in limits]


def _entry(name: str, model: Any, X: Any, positive: Any) -> ReportModel:
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
        type(_final(model)).__name__,
        scores,
        np.asarray(model.predict(X)) == positive,
        features,
        feature_value=kind,
        probabilities=probabilities,
        max_fpr=_promised(model, positive, FPRThresholdClassifier, "max_fpr"),
        min_tpr=_promised(model, positive, TPRThresholdClassifier, "min_tpr"),
    )


def _promised(model: Any, positive: Any, kind: Any, limit: str) -> float | None:
    """Return the limit that the threshold of a model was chosen for, if the model is of the kind that has it."""
    final = _final(model)
    return float(getattr(final, limit)) if isinstance(final, kind) and final.positive_class_ == positive else None


def _final(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return getattr(model, "steps", [(None, model)])[-1][1]


def _features(model: Any, X: Any, index: int) -> tuple[list[Feature], str]:
    """Return the weights or importances of the last step, if it has any, and what they are."""
    if hasattr(model, "facts"):  # a TableModel, whose pipeline has labels as text, in its own order
        index, model = int(model.model.classes_[1] == model.positive), model.model
    # A threshold does not change the weights.
    model = getattr(model, "estimator_", model)
    final = _final(model)
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
