"""Content of the page, computed from scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from rocmax import metrics
from rocmax._typing import Array
from rocmax.measures import Measure, find_measure
from rocmax.metrics.bootstrap import compare_measures, estimate_measures
from rocmax.metrics.delong import holds_enough
from rocmax.report._svg import Panel, curve_path

# Dash patterns, which distinguish the curves without colors; the colors are those of Okabe and Ito.
DASHES = ("", "6 3", "2 2", "8 3 2 3")
N_STOPS = 160
N_RESAMPLES = 1000
PER = 10_000


@dataclass(frozen=True)
class ReportModel:
    """Model with its scores on the test rows."""

    name: str
    kind: str
    scores: Array
    predicted: NDArray[np.bool_]
    features: list[tuple[str, float]] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    max_fpr: float | None = None
    feature_value: str = "weight"


@dataclass(frozen=True)
class TestData:
    """Test rows: classes, the range of false-positive rates, and a summary of the columns."""

    source: str
    positive: NDArray[np.bool_]
    positive_label: str
    window: tuple[float, float]
    columns: list[tuple[str, str, float]]
    seed: int = 0

    __test__ = False  # not a test class of pytest


def view(models: list[ReportModel], data: TestData) -> dict[str, Any]:
    """Return the variables of the template."""
    limits = _limits(data)
    panels = _panels(data)
    rows = [_row(model, data, number) for number, model in enumerate(models)]
    return {
        "data": data,
        "n_positive": int(data.positive.sum()),
        "n_negative": int((~data.positive).sum()),
        "window_text": _window_text(data.window),
        "has_window": data.window != (0.0, 1.0),
        "panels": [
            {**panel.frame(), "paths": [_path(panel, model, data, i) for i, model in enumerate(models)]}
            for panel in panels
        ],
        "models": rows,
        "tests": _tests(models, data),
        "calibration": [entry for model in models if (entry := _calibration(model, data))],
        "slider": {
            "limits": limits,
            "start": int(np.argmin(np.abs(np.array(limits) - (data.window[1] if data.window[1] < 1 else 0.1)))),
            "positives": int(data.positive.sum()),
            "negatives": int((~data.positive).sum()),
            "panels": [panel.scale() for panel in panels],
            "models": [_operating(model, data, limits) for model in models],
        },
    }


def _window_text(window: tuple[float, float]) -> str:
    return f"FPR {100 * window[0]:g} % to {100 * window[1]:g} %"


def _limits(data: TestData) -> list[float]:
    """Return the values of the slider: evenly spaced on a logarithmic scale, plus the ends of the FPR range."""
    lowest = max(1e-5, 1 / np.count_nonzero(~data.positive))
    stops = np.geomspace(min(lowest, 0.1), 1.0, N_STOPS)
    return sorted({float(f"{stop:.3g}") for stop in stops} | {end for end in data.window if end > 0})


def _panels(data: TestData) -> list[Panel]:
    whole = Panel("Full ROC curve", 0.0, 1.0, data.window)
    if data.window == (0.0, 1.0):
        return [whole]
    return [whole, Panel("FPR range", data.window[0], data.window[1], data.window)]


def _path(panel: Panel, model: ReportModel, data: TestData, number: int) -> dict[str, Any]:
    d = curve_path(panel, *_curve(model.scores, data.positive))
    return {"d": d, "dash": DASHES[number % len(DASHES)], "color": number % 4}


def _curve(scores: Array, positive: NDArray[np.bool_]) -> tuple[Array, Array]:
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)
    tp, fp = np.cumsum(positive[order])[last], np.cumsum(~positive[order])[last]
    return np.append(0.0, fp / fp[-1]), np.append(0.0, tp / tp[-1])


def _operating(model: ReportModel, data: TestData, limits: list[float]) -> dict[str, Any]:
    """Return the counts and the threshold of the best operating point within each limit."""
    order = np.argsort(-model.scores, kind="stable")
    placed = model.scores[order]
    last = np.append(np.diff(placed) != 0, True)
    tp = np.append(0, np.cumsum(data.positive[order])[last])
    fp = np.append(0, np.cumsum(~data.positive[order])[last])
    threshold = np.append(np.nextafter(placed[0], np.inf), placed[last])
    stops = np.searchsorted(fp, np.array(limits) * fp[-1] * (1 + 1e-9), "right") - 1
    return {
        "name": model.name,
        "tp": tp[stops].tolist(),
        "fp": fp[stops].tolist(),
        "threshold": [float(f"{value:.5g}") for value in threshold[stops]],
    }


def _row(model: ReportModel, data: TestData, number: int) -> dict[str, Any]:
    measures = [find_measure("roc_auc"), *_window_measures(data), find_measure("break_even_point")]
    found = estimate_measures(
        [(measure, {}) for measure in measures],
        data.positive,
        model.scores,
        n_resamples=N_RESAMPLES,
        random_state=data.seed,
    )
    estimates = [
        {"title": measure.title, **estimate._asdict()} for measure, estimate in zip(measures, found, strict=True)
    ]
    largest = max((abs(weight) for _, weight in model.features), default=1.0) or 1.0
    features = [(name, weight, 100 * abs(weight) / largest) for name, weight in model.features]
    return {"model": model, "number": number, "estimates": estimates, "features": features}


def _window_measures(data: TestData) -> list[Measure]:
    """Return the measures of the range of false-positive rates, if it is not [0, 1]."""
    if data.window == (0.0, 1.0):
        return []
    low, high = data.window
    return [find_measure("partial_auc", min_fpr=low, max_fpr=high), find_measure("tpr_at_fpr", max_fpr=high)]


def _tests(models: list[ReportModel], data: TestData) -> list[dict[str, Any]]:
    """Return the paired tests of every model against the first."""
    found = []
    for other in models[1:]:
        pair = data.positive, models[0].scores, other.scores
        results = [("AUC, DeLong", metrics.delong_test(*pair))]
        measures = _window_measures(data)
        if measures:
            low, high = data.window
            if holds_enough(int(np.sum(~data.positive)), low, high):
                results.append((f"{measures[0].title}, DeLong", metrics.delong_test(*pair, min_fpr=low, max_fpr=high)))
            options: dict[str, Any] = {"n_resamples": N_RESAMPLES, "random_state": data.seed}
            tested = compare_measures([(measure, {}) for measure in measures], *pair, **options)
            results += [(f"{m.title}, bootstrap", test) for m, test in zip(measures, tested, strict=True)]
        found += [{"pair": f"{models[0].name} - {other.name}", "what": what, "result": r} for what, r in results]
    return found


def _calibration(model: ReportModel, data: TestData) -> dict[str, Any] | None:
    """Compare the false-positive rate at the threshold of the model on the test rows with the limit."""
    if model.max_fpr is None:
        return None
    fp, n = int(np.sum(model.predicted & ~data.positive)), int(np.sum(~data.positive))
    interval = binomtest(fp, n).proportion_ci(0.95, method="exact")
    if interval.low > model.max_fpr:
        verdict = "above the limit"
    elif fp / n <= model.max_fpr:
        verdict = "within the limit"
    else:
        verdict = "above the limit, but not significantly"
    return {
        "name": model.name,
        "limit": model.max_fpr,
        "rate": fp / n,
        "low": float(interval.low),
        "high": float(interval.high),
        "tpr": float(np.mean(model.predicted[data.positive])),
        "verdict": verdict,
    }
