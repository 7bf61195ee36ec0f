"""Variables of the template."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocmax.metrics.curve import score_blocks
from rocmax.report import _sections as sections
from rocmax.report._axes import Axes
from rocmax.report._content import RankedModel, ReportModel, TestData
from rocmax.report._curves import Bands, lift_plot, precision_recall_plot, roc_plots
from rocmax.report._operating import headline, negative_name, sliders


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
        "range_text": _range_text(data),
        "headline": headline(models, data),
        "roc_plots": [{**plot, "saved": _marks(axes, numbers)} for axes, plot in plots],
        "other_plots": [precision_recall_plot(ranked, data), lift_plot(ranked, data)],
        "histograms": histograms,
        "score_groups": [sections.score_groups(model, data) for model in models],
        "models": [
            {"model": model, "number": number, "estimates": found, "features": sections.feature_bars(model.features)}
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
