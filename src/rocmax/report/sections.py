"""Variables of the report's template: tables, tests and histograms, with the plots of the page."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import fisher_exact, norm

from rocmax import metrics
from rocmax._support import Array, Bools
from rocmax.measures import Measure, find_measure
from rocmax.metrics.curve import Curve, score_blocks
from rocmax.metrics.rates import PeriodRates, rate_interval, rates_by_period, wilson, worth_rows
from rocmax.metrics.uncertainty import compare_measures, estimate_with_delong, holds_enough, interval_notes
from rocmax.report.page import (
    DASHES,
    LAYOUT,
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
    saved_point,
    sliders,
)

N_RESAMPLES = 1000
# Verdicts on a lower and an upper limit that do not hold.
BROKEN = ("below the limit", "above the limit")


def measures(model: ReportModel, data: TestData, watch: Callable[[Curve], None] | None = None) -> list[dict[str, Any]]:
    """Return the measures of a model with confidence intervals; ``watch`` is called with the curve of each resample."""
    tops = map(find_measure, ("break_even_point", "average_precision"))
    chosen = [find_measure("roc_auc"), *_range_measures(data), *tops]
    options: dict[str, Any] = {"n_resamples": N_RESAMPLES, "random_state": data.seed, "groups": data.groups}
    found = estimate_with_delong(
        [(measure, {}) for measure in chosen], data.positive, model.scores, watch=watch, **options
    )
    return [{"title": measure.title, **estimate._asdict()} for measure, estimate in zip(chosen, found, strict=True)]


def tests(models: list[ReportModel], data: TestData) -> list[dict[str, Any]]:
    """Return the paired tests of every model against the first."""
    found = []
    for other in models[1:]:
        pair = data.positive, models[0].scores, other.scores
        results = [("AUC, DeLong", metrics.delong_test(*pair, groups=data.groups))]
        chosen = _range_measures(data)
        if chosen:
            if (result := _delong(pair, data)) is not None:
                results.append((f"{chosen[0].title}, DeLong", result))
            options: dict[str, Any] = {"n_resamples": N_RESAMPLES, "random_state": data.seed, "groups": data.groups}
            tested = compare_measures([(measure, {}) for measure in chosen], *pair, **options)
            results += [(f"{m.title}, bootstrap", test) for m, test in zip(chosen, tested, strict=True)]
        found += [{"pair": f"{models[0].name} - {other.name}", "what": what, "result": r} for what, r in results]
    return found


def saved_threshold(model: ReportModel, data: TestData) -> list[dict[str, Any]]:
    """Compare the rates at the threshold of the model with its limits, on the test rows; one entry for each limit."""
    point, found = saved_point(model, data), []
    every = np.ones_like(data.positive)
    for name, limit, hits, rows, of in (
        ("TPR >=", model.min_tpr, model.predicted, data.positive, "of the class"),
        ("FPR <=", model.max_fpr, model.predicted, ~data.positive, "of the class"),
        ("precision >=", model.min_precision, data.positive, model.predicted, "flagged"),
        ("alerts <=", model.capacity, model.predicted, every, "in all"),
    ):
        if limit is None:
            continue
        required = name.endswith(">=")
        low, high, size = (0.0, 1.0, 0.0)
        if rows.any():
            low, high, size = rate_interval(hits[rows], None if data.groups is None else data.groups[rows])
        size_text = f"{int(size)} {of}" if data.groups is None else f"groups worth {int(size)} independent rows"
        verdict = _against_limit((low, high), size, size_text, limit, required)
        found.append(
            {
                "name": model.name,
                "limit": f"{name} {100 * limit:.4g} %",
                "fpr": point["fp"] / data.n_negative,
                "tpr": point["tp"] / data.n_positive,
                "rate": float(hits[rows].mean()) if rows.any() else None,
                "low": low,
                "high": high,
                "verdict": verdict,
                "broken": verdict in BROKEN,
            }
        )
    return found


def histogram(model: ReportModel, data: TestData) -> dict[str, Any]:
    """Return the plot of the scores of both classes, each as shares of its class."""
    low, high = np.quantile(model.scores, [LAYOUT.tail, 1 - LAYOUT.tail])
    low, high = (low, high) if high > low else (low - 0.5, low + 0.5)
    edges = np.linspace(low, high, LAYOUT.n_bins + 1)
    inside = np.clip(model.scores, low, high)
    shares = [
        np.histogram(inside[rows], edges)[0] / max(1, np.count_nonzero(rows))
        for rows in (~data.positive, data.positive)
    ]
    top = 1.05 * max(float(share.max()) for share in shares)
    saved = saved_point(model, data)["threshold"]
    axes = Axes(model.name, "Score", "Rows of the class (%)", (low, high), (0.0, top), plain_x=True)
    return {
        **axes.frame(),
        "areas": [{"d": axes.steps(edges, share), "kind": kind} for share, kind in zip(shares, "np", strict=True)],
        "saved": axes.at(saved, 0.0)[0] if saved is not None and low <= saved <= high else None,
        "scale": axes.scale(),
    }


def score_groups(model: ReportModel, data: TestData) -> dict[str, Any]:
    """Return the share of positives in ten groups of rows with neighboring scores.

    With probabilities, the groups are formed by them, and the mean probability of each group is compared with the
    observed share.
    """
    values = model.scores if model.probabilities is None else model.probabilities
    groups = []
    for rows in _equal_groups(values):
        share = float(data.positive[rows].mean())
        size = rows.size if data.groups is None else worth_rows(data.positive[rows], data.groups[rows])
        low, high = wilson(share * size, size)
        predicted = None if model.probabilities is None else float(values[rows].mean())
        groups.append({"rows": rows.size, "share": share, "low": low, "high": high, "mean": predicted})
    return {"name": model.name, "plot": _group_plot(model, groups), "groups": groups}


def by_segment(models: list[ReportModel], data: TestData) -> list[dict[str, Any]]:
    """Return the rates at the saved threshold in each segment, with intervals, and tests against the other rows."""
    found: list[dict[str, Any]] = []
    for segment in data.segments:
        positives, negatives = segment.rows & data.positive, segment.rows & ~data.positive
        rates = [
            {
                "name": model.name,
                "tpr": _rate(model.predicted, positives, data),
                "fpr": _rate(model.predicted, negatives, data),
                "gaps": {
                    "tpr": _gap(model.predicted, positives, data.positive & ~segment.rows, data),
                    "fpr": _gap(model.predicted, negatives, ~data.positive & ~segment.rows, data),
                },
            }
            for model in models
        ]
        sizes = {"rows": int(segment.rows.sum()), "positives": int(positives.sum())}
        found.append({"segment": segment.name, **sizes, "models": rates})
    # Of two segments, each is the rest of the other: their tests are the same.
    mirrored = len(found) == 2 and np.array_equal(data.segments[0].rows, ~data.segments[1].rows)
    tested = [entry["gaps"] for segment in found[: 1 if mirrored else None] for entry in segment["models"]]
    gaps = [gap for each in tested for gap in each.values() if gap is not None]
    for gap, p in zip(gaps, holm([gap["p"] for gap in gaps]), strict=True):
        gap["adjusted"] = p
    if mirrored:
        for first, second in zip(found[0]["models"], found[1]["models"], strict=True):
            for name, gap in first["gaps"].items():
                second["gaps"][name] = gap and gap | {"difference": -gap["difference"]}
    return found


def holm(p_values: list[float]) -> list[float]:
    """Return p-values adjusted by Holm's method, which bounds the probability of any false finding.

    S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(order.size, 0, -1)
    adjusted = np.empty(order.size)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * np.asarray(p_values)[order]))
    found: list[float] = adjusted.tolist()
    return found


def largest_gaps(segments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the largest gap of each rate of each model, with its segment; significant ones come first."""
    gaps = [
        {"segment": segment["segment"], "name": entry["name"], "rate": rate.upper(), **gap}
        for segment in segments
        for entry in segment["models"]
        for rate, gap in entry["gaps"].items()
        if gap is not None
    ]
    gaps.sort(key=lambda gap: (gap["adjusted"] >= 0.05, -abs(gap["difference"])))
    # The first of each kind.
    return list({(gap["name"], gap["rate"]): gap for gap in reversed(gaps)}.values())[::-1]


def _gap(predicted: Bools, rows: Bools, rest: Bools, data: TestData) -> dict[str, Any] | None:
    """Return the difference between the rates of some rows and the others, with the p-value; None without rows.

    Fisher's exact test or, with groups, the test of two proportions for the numbers of rows that the groups are worth.
    """
    sides = [predicted[side] for side in (rows, rest)]
    if not all(side.size for side in sides):
        return None
    shares = [float(side.mean()) for side in sides]
    if data.groups is None:
        p = fisher_exact([[side.sum(), (~side).sum()] for side in sides]).pvalue
    else:
        sizes = [worth_rows(predicted[side], data.groups[side]) for side in (rows, rest)]
        pooled = float(np.average(shares, weights=sizes))
        error = math.sqrt(pooled * (1 - pooled) * sum(1 / size for size in sizes))
        p = 1.0 if error == 0 else 2 * norm.sf(abs(shares[0] - shares[1]) / error)
    return {"difference": shares[0] - shares[1], "p": float(p)}


def feature_bars(features: list[Feature]) -> list[dict[str, Any]]:
    """Return the features with the lengths of their bars in percent of the longest."""
    largest = max((abs(feature.value) for feature in features), default=1.0) or 1.0
    return [{"feature": feature, "length": 100 * abs(feature.value) / largest} for feature in features]


def _range_measures(data: TestData) -> list[Measure]:
    """Return the measures of the range of interest, if it is not the whole curve."""
    low, high = data.window
    limited, required = data.window != (0.0, 1.0), data.min_tpr > 0
    area = find_measure("partial_auc", min_fpr=low, max_fpr=high, min_tpr=data.min_tpr)
    return [
        *([area] if limited or required else []),
        *([find_measure("tpr_at_fpr", max_fpr=high)] if limited else []),
        *([find_measure("fpr_at_tpr", min_tpr=data.min_tpr)] if required else []),
    ]


def _delong(pair: tuple[Any, ...], data: TestData) -> metrics.Comparison | None:
    """Return DeLong's test in the range of interest, or None if it has too few rows or a curve does not enter it."""
    limits = {"min_fpr": data.window[0], "max_fpr": data.window[1], "min_tpr": data.min_tpr}
    if not all(holds_enough(pair[0], scores, **limits) for scores in pair[1:]):
        return None
    return metrics.delong_test(*pair, **limits, groups=data.groups)


def _against_limit(interval: tuple[float, float], size: float, size_text: str, limit: float, required: bool) -> str:
    """Return what the interval of a rate says about its limit, which is a lower one if the rate is required."""
    low, high = interval
    if high < limit if required else low > limit:
        return BROKEN[0] if required else BROKEN[1]
    if low >= limit if required else high <= limit:
        return "within the limit"
    # With fewer rows, the interval includes the limit even if no row is on the wrong side.
    needed = math.ceil(math.log(0.025) / math.log(limit if required else 1 - limit))
    if size < needed:
        return f"too few rows: {size_text}, at least {needed} are needed"
    return "not decided: the interval includes the limit"


def _equal_groups(values: Array) -> list[NDArray[np.intp]]:
    """Return the rows of at most ten groups of about equal size; rows with equal values stay together."""
    order = np.argsort(values, kind="stable")
    cuts = np.searchsorted(values[order], np.quantile(values, np.linspace(0, 1, LAYOUT.n_groups + 1)[1:-1]), "right")
    return [rows for rows in np.split(order, np.unique(cuts)) if rows.size]


def _group_plot(model: ReportModel, groups: list[dict[str, Any]]) -> dict[str, Any]:
    with_means = model.probabilities is not None
    top = min(1.0, 1.05 * max(max(group["high"], group["mean"] or 0.0) for group in groups))
    if with_means:
        axes = Axes(model.name, "Predicted probability (%)", "Observed share (%)", (0.0, top), (0.0, top))
    else:
        ends = (0.0, len(groups) + 1.0)
        axes = Axes(model.name, "Group, by score", "Positives (%)", ends, (0.0, top), plain_x=True)
    marks = []
    for number, group in enumerate(groups, start=1):
        x = group["mean"] if with_means else number
        marks.append([*axes.at(x, group["share"]), axes.at(x, group["low"])[1], axes.at(x, group["high"])[1]])
    guess = [*axes.at(0.0, 0.0), *axes.at(top, top)] if with_means else None
    return {**axes.frame(), "marks": marks, "guess": guess}


def over_time(models: list[ReportModel], data: TestData) -> list[dict[str, Any]]:
    """Return the rates of each model by period at its saved threshold, with a plot; none without times."""
    if data.times is None:
        return []
    found = []
    for model in models:
        periods = rates_by_period(data.times, model.predicted, data.positive, data.groups)
        limits = [("fpr", "False-positive rate (%)", model.max_fpr), ("tpr", "True-positive rate (%)", model.min_tpr)]
        plots = [_period_plot(periods, *limit) for limit in limits if limit[2] is not None] or [
            _period_plot(periods, *limits[0])
        ]
        found.append({"name": model.name, "periods": periods, "plots": plots})
    return found


def _period_plot(periods: list[PeriodRates], side: str, title: str, limit: float | None) -> dict[str, Any]:
    rates = [getattr(period, side) for period in periods]
    top = max([rate["high"] for rate in rates if rate is not None] + [limit or 0.0])
    top = min(1.0, 1.1 * top)
    axes = Axes(title, "Period", title, (0.0, len(periods) + 1.0), (0.0, top), plain_x=True)
    marks = [
        [*axes.at(i, rate["rate"]), axes.at(i, rate["low"])[1], axes.at(i, rate["high"])[1]]
        for i, rate in enumerate(rates, 1)
        if rate is not None
    ]
    line = None if limit is None else [*axes.at(0.0, limit), *axes.at(len(periods) + 1.0, limit)]
    return {**axes.frame(), "marks": marks, "guess": line}


def _rate(predicted: NDArray[np.bool_], rows: NDArray[np.bool_], data: TestData) -> dict[str, float] | None:
    total = int(np.count_nonzero(rows))
    if total == 0:
        return None
    count = int(np.count_nonzero(predicted & rows))
    size = total if data.groups is None else worth_rows(predicted[rows], data.groups[rows])
    low, high = wilson(count / total * size, size)
    return {"rate": count / total, "low": low, "high": high}


# Variables of the template.


def view(models: list[ReportModel], data: TestData) -> dict[str, Any]:
    """Return the variables of the template."""
    ranked = [
        RankedModel(model, score_blocks(data.positive, model.scores), np.unique(model.scores)[::-1]) for model in models
    ]
    bands = [Bands(data) for _ in models]
    # The intervals of the measures and the bands come from the same resamples.
    estimates = [measures(model, data, each.add) for model, each in zip(models, bands, strict=True)]
    plots = roc_plots(ranked, data, [each.limits() for each in bands])
    numbers = sliders(ranked, data)
    histograms = [histogram(model, data) for model in models]
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
        "score_groups": [score_groups(model, data) for model in models],
        "models": [
            {
                "model": model,
                "number": number,
                "estimates": found,
                "notes": interval_notes((each["title"], each["caution"]) for each in found),
                "features": feature_bars(model.features),
            }
            for number, (model, found) in enumerate(zip(models, estimates, strict=True))
        ],
        "tests": tests(models, data),
        "saved_thresholds": (limits := [entry for model in models for entry in saved_threshold(model, data)]),
        "rates_shown": any(not entry["limit"].startswith(("FPR", "TPR")) for entry in limits),
        "reconciled": any(model.facts for model in models),
        "n_effects": LAYOUT.n_effects,
        "segments": (segments := by_segment(models, data)),
        "largest_gaps": largest_gaps(segments),
        "over_time": over_time(models, data),
        "numbers": numbers,
    }


def _marks(axes: Axes, numbers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the places of the saved thresholds in a plot of ROC curves, of those that are in it."""
    found = []
    for number, model in enumerate(numbers["models"]):
        fpr, tpr = model["saved"]["fp"] / numbers["negatives"], model["saved"]["tp"] / numbers["positives"]
        if axes.x_range[0] <= fpr <= axes.x_range[1] and axes.y_range[0] <= tpr <= axes.y_range[1]:
            x, y = axes.at(fpr, tpr)
            found.append({"x": x, "y": y, "color": number % len(DASHES)})
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
