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
    min_tpr: float | None = None


@dataclass(frozen=True)
class TestData:
    """Test rows: classes, the range of false-positive rates, the required TPR, and a summary of the columns."""

    source: str
    positive: NDArray[np.bool_]
    positive_label: str
    window: tuple[float, float]
    columns: list[tuple[str, str, float]]
    seed: int = 0
    min_tpr: float = 0.0

    __test__ = False  # not a test class of pytest


def view(models: list[ReportModel], data: TestData) -> dict[str, Any]:
    """Return the variables of the template."""
    panels = _panels(data)
    rows = [_row(model, data, number) for number, model in enumerate(models)]
    return {
        "data": data,
        "n_positive": int(data.positive.sum()),
        "n_negative": int((~data.positive).sum()),
        "region_text": _region_text(data),
        "panels": [
            {**panel.frame(), "paths": [_path(panel, model, data, i) for i, model in enumerate(models)]}
            for panel in panels
        ],
        "models": rows,
        "tests": _tests(models, data),
        "calibration": [entry for model in models if (entry := _calibration(model, data))],
        "calibration_title": "True-positive rate" if data.min_tpr > 0 else "False-positive rate",
        "slider": {
            "limits": _stops(_limits(data), data.window[1] if data.window[1] < 1 else 0.1),
            "floors": _stops(_floors(data), data.min_tpr or 0.9),
            "positives": int(data.positive.sum()),
            "negatives": int((~data.positive).sum()),
            "panels": [panel.scale() for panel in panels],
            "models": [_operating(model, data) for model in models],
        },
    }


def _has_window(data: TestData) -> bool:
    return data.window != (0.0, 1.0)


def _region_text(data: TestData) -> str | None:
    """Return the region of the curve that the models are fitted to, or None if it is the whole curve."""
    parts = [f"TPR at least {100 * data.min_tpr:g} %"] if data.min_tpr > 0 else []
    parts += [f"FPR {100 * data.window[0]:g} % to {100 * data.window[1]:g} %"] if _has_window(data) else []
    return ", ".join(parts) or None


def _stops(values: list[float], start: float) -> dict[str, Any]:
    """Return the values of a slider, and the place of the one closest to ``start``."""
    return {"values": values, "start": int(np.argmin(np.abs(np.array(values) - start)))}


def _floors(data: TestData) -> list[float]:
    """Return the values of the slider for the required TPR: evenly spaced from 50 %, plus the one of the models."""
    return sorted({round(0.5 + 0.005 * i, 3) for i in range(101)} | ({data.min_tpr} if data.min_tpr > 0 else set()))


def _limits(data: TestData) -> list[float]:
    """Return the values of the slider: evenly spaced on a logarithmic scale, plus the ends of the FPR range."""
    lowest = max(1e-5, 1 / np.count_nonzero(~data.positive))
    stops = np.geomspace(min(lowest, 0.1), 1.0, N_STOPS)
    return sorted({float(f"{stop:.3g}") for stop in stops} | {end for end in data.window if end > 0})


def _panels(data: TestData) -> list[Panel]:
    whole = Panel("Full ROC curve", 0.0, 1.0, data.window, data.min_tpr)
    if not _has_window(data) and data.min_tpr == 0:
        return [whole]
    title = "FPR range" if data.min_tpr == 0 else "TPR range" if not _has_window(data) else "Corner"
    return [whole, Panel(title, *data.window, data.window, data.min_tpr, data.min_tpr)]


def _path(panel: Panel, model: ReportModel, data: TestData, number: int) -> dict[str, Any]:
    d = curve_path(panel, *_curve(model.scores, data.positive))
    return {"d": d, "dash": DASHES[number % len(DASHES)], "color": number % 4}


def _curve(scores: Array, positive: NDArray[np.bool_]) -> tuple[Array, Array]:
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)
    tp, fp = np.cumsum(positive[order])[last], np.cumsum(~positive[order])[last]
    return np.append(0.0, fp / fp[-1]), np.append(0.0, tp / tp[-1])


def _operating(model: ReportModel, data: TestData) -> dict[str, Any]:
    """Return the counts and the threshold of the best operating point at each value of the two sliders."""
    order = np.argsort(-model.scores, kind="stable")
    placed = model.scores[order]
    last = np.append(np.diff(placed) != 0, True)
    tp = np.append(0, np.cumsum(data.positive[order])[last])
    fp = np.append(0, np.cumsum(~data.positive[order])[last])
    threshold = np.append(np.nextafter(placed[0], np.inf), placed[last])
    within = np.searchsorted(fp, np.array(_limits(data)) * fp[-1] * (1 + 1e-9), "right") - 1
    reached = np.searchsorted(tp, np.array(_floors(data)) * tp[-1] * (1 - 1e-9))
    found: dict[str, Any] = {"name": model.name}
    for slider, stops in (("limits", within), ("floors", reached)):
        found[slider] = {
            "tp": tp[stops].tolist(),
            "fp": fp[stops].tolist(),
            "threshold": [float(f"{value:.5g}") for value in threshold[stops]],
        }
    return found


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
    """Return the measures of the region, if it is not the whole curve."""
    low, high = data.window
    found = []
    if _region_text(data):
        found.append(find_measure("partial_auc", min_fpr=low, max_fpr=high, min_tpr=data.min_tpr))
    if _has_window(data):
        found.append(find_measure("tpr_at_fpr", max_fpr=high))
    if data.min_tpr > 0:
        found.append(find_measure("fpr_at_tpr", min_tpr=data.min_tpr))
    return found


def _tests(models: list[ReportModel], data: TestData) -> list[dict[str, Any]]:
    """Return the paired tests of every model against the first."""
    found = []
    for other in models[1:]:
        pair = data.positive, models[0].scores, other.scores
        results = [("AUC, DeLong", metrics.delong_test(*pair))]
        measures = _window_measures(data)
        if measures:
            if (test := _delong(pair, data)) is not None:
                results.append((f"{measures[0].title}, DeLong", test))
            options: dict[str, Any] = {"n_resamples": N_RESAMPLES, "random_state": data.seed}
            tested = compare_measures([(measure, {}) for measure in measures], *pair, **options)
            results += [(f"{m.title}, bootstrap", test) for m, test in zip(measures, tested, strict=True)]
        found += [{"pair": f"{models[0].name} - {other.name}", "what": what, "result": r} for what, r in results]
    return found


def _delong(pair: tuple[Any, ...], data: TestData) -> metrics.Comparison | None:
    """Return DeLong's test of the region, or None if it has too few rows or a curve does not enter it."""
    low, high = data.window
    n_positives = int(data.positive.sum())
    entered = all(metrics.partial_auc_score(pair[0], s, max_fpr=high, min_tpr=data.min_tpr) > 0 for s in pair[1:])
    if not entered or not holds_enough(data.positive.size - n_positives, low, high, n_positives, data.min_tpr):
        return None
    return metrics.delong_test(*pair, min_fpr=low, max_fpr=high, min_tpr=data.min_tpr)


def _calibration(model: ReportModel, data: TestData) -> dict[str, Any] | None:
    """Compare the rate at the threshold of the model on the test rows with the limit that determined the threshold."""
    fp, tp = (int(np.sum(model.predicted & side)) for side in (~data.positive, data.positive))
    n, m = int(np.sum(~data.positive)), int(np.sum(data.positive))
    if model.min_tpr is not None:
        count, size, limit, text = tp, m, model.min_tpr, f"TPR >= {100 * model.min_tpr:.4g} %"
    elif model.max_fpr is not None:
        count, size, limit, text = fp, n, model.max_fpr, f"FPR <= {100 * model.max_fpr:.4g} %"
    else:
        return None
    interval = binomtest(count, size).proportion_ci(0.95, method="exact")
    return {
        "name": model.name,
        "limit": text,
        "fpr": fp / n,
        "tpr": tp / m,
        "low": float(interval.low),
        "high": float(interval.high),
        "verdict": _verdict(count / size, interval, limit, model.min_tpr is not None),
    }


def _verdict(rate: float, interval: Any, limit: float, required: bool) -> str:
    wrong = "below the limit" if required else "above the limit"
    if (rate >= limit) if required else (rate <= limit):
        return "within the limit"
    sure = interval.high < limit if required else interval.low > limit
    return wrong if sure else f"{wrong}, but not significantly"
