"""Operating points: the saved thresholds, and the sliders for a limit on either rate and for costs."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from rocmax._typing import Array
from rocmax.report._content import RankedModel, ReportModel, TestData
from rocmax.report._curves import hull

N_STOPS = 160
# Quantile of the standard normal distribution for a 95 % interval.
Z95 = 1.959963984540054
# Significant digits of a threshold, if scores do not require more.
DIGITS = 5
# All doubles differ in this number of digits.
MOST_DIGITS = 17
DEFAULT_LIMIT = 0.1
DEFAULT_FLOOR = 0.8


def sliders(models: list[RankedModel], data: TestData) -> dict[str, Any]:
    """Return the numbers that the script of the page needs."""
    limits, floors = _limits(data), _floors(data)
    limit = data.window[1] if data.window[1] < 1 else DEFAULT_LIMIT
    floor = data.min_tpr or DEFAULT_FLOOR
    return {
        "limits": limits,
        "floors": floors,
        "start": int(np.argmin(np.abs(np.array(limits) - limit))),
        "floor_start": int(np.argmin(np.abs(np.array(floors) - floor))),
        "positives": data.n_positive,
        "negatives": data.n_negative,
        "positive_label": data.positive_label,
        "negative_label": negative_name(data),
        "models": [_points(model, data, limits, floors) for model in models],
    }


def headline(models: list[ReportModel], data: TestData) -> list[tuple[str, bool]]:
    """Return the sentence at the top of the page, the rates at the saved thresholds, as parts: text, whether bold.

    Thresholds that are chosen on the test rows, as those of the sliders, would give better rates than new rows have.
    """
    several = len(models) > 1
    parts = [("At their saved thresholds, " if several else "At its saved threshold, the model ", False)]
    for number, model in enumerate(models):
        point = saved_point(model, data)
        of_positive, of_negative = ("", "") if number else (f" rows of class {data.positive_label}", " of class ")
        start = (" and " if number == len(models) - 1 else ", ") if number else ""
        low, high, _ = rate_interval(model.predicted, data.positive, data)
        parts.append((f"{start}{model.name} finds " if several else "finds ", False))
        parts.append((f"{_round(100 * point['tp'] / data.n_positive)} of 100", True))
        found = f"{math.floor(100 * low)} to {math.ceil(100 * high)}"
        parts.append((f"{of_positive} ({found}) and flags ", False))
        low, high, _ = rate_interval(model.predicted, ~data.positive, data)
        parts.append((f"{_short(point['fp'] / data.n_negative, 3)} %", True))
        flagged = f"{_outward(low, -1)} to {_outward(high, 1)} %"
        parts.append((f"{of_negative}{'' if number else negative_name(data)} ({flagged})", False))
    return [*parts, (".", False)]


def saved_point(model: ReportModel, data: TestData) -> dict[str, Any]:
    """Return the counts at the saved threshold, and the threshold, or None if it is not one on the scores."""
    of_probability = model.probabilities is not None and np.array_equal(model.probabilities, model.scores)
    threshold = 0.5 if of_probability else 0.0
    return {
        "tp": int(np.count_nonzero(model.predicted & data.positive)),
        "fp": int(np.count_nonzero(model.predicted & ~data.positive)),
        "threshold": threshold if np.array_equal(model.scores > threshold, model.predicted) else None,
    }


def negative_name(data: TestData) -> str:
    """Return the label of the negative class, or a description of it."""
    return data.negative_label or f"not {data.positive_label}"


def wilson(count: float, total: float) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a proportion."""
    share, scale = count / total, 1 + Z95**2 / total
    center = (share + Z95**2 / (2 * total)) / scale
    half = Z95 / scale * np.sqrt(share * (1 - share) / total + Z95**2 / (4 * total**2))
    return max(0.0, float(center - half)), min(1.0, float(center + half))


def worth_rows(hits: NDArray[np.bool_], groups: NDArray[Any]) -> float:
    """Return the number of independent rows whose share of hits varies as much as that of these rows.

    It is the number of rows divided by the ratio of the variance of the share over groups and over rows, the design
    effect, and the number of groups if no or all rows are hits, which say nothing of that variance.
    """
    number = np.unique(groups, return_inverse=True)[1]
    n_groups, share = int(number.max()) + 1, float(hits.mean())
    if share in (0.0, 1.0) or n_groups < 2:
        return float(n_groups)
    deviations = np.bincount(number, hits - share)
    by_groups = n_groups / (n_groups - 1) * float(deviations @ deviations)
    return hits.size / max(1.0, by_groups / (hits.size * share * (1 - share)))


def rate_interval(predicted: NDArray[np.bool_], rows: NDArray[np.bool_], data: TestData) -> tuple[float, float, float]:
    """Return the 95 % confidence interval of a rate and the number of independent rows behind it.

    It is exact (Clopper and Pearson) if the rows are independent; with groups, it is approximate.
    """
    hits = predicted[rows]
    if data.groups is not None:
        size = worth_rows(hits, data.groups[rows])
        return *wilson(float(hits.mean()) * size, size), size
    interval = binomtest(int(hits.sum()), hits.size).proportion_ci(0.95, method="exact")
    return float(interval.low), float(interval.high), float(hits.size)


def _short(rate: float, digits: int) -> str:
    """Return a rate in percent with few digits."""
    return f"{float(f'{100 * rate:.{digits}g}'):.12g}"


def _outward(rate: float, side: int) -> str:
    """Return an end of an interval in percent with two digits after the point, rounded down or up."""
    rounded = math.floor(1e4 * rate) if side < 0 else math.ceil(1e4 * rate)
    return f"{rounded / 100:g}"


def _round(value: float) -> int:
    """Return the nearest integer, halves up."""
    return int(np.floor(value + 0.5))


def _limits(data: TestData) -> list[float]:
    """Return the limits of the slider: evenly spaced on a logarithmic scale, plus the ends of the FPR range."""
    lowest = max(1e-5, 1 / data.n_negative)
    stops = np.geomspace(min(lowest, 0.1), 1.0, N_STOPS)
    return sorted({float(f"{stop:.3g}") for stop in stops} | {end for end in data.window if end > 0})


def _floors(data: TestData) -> list[float]:
    """Return the floors of the slider: steps of one percent, finer at the upper end."""
    stops = {*np.round(np.arange(1, 100) / 100, 2).tolist(), 0.995, 0.999, 1.0}
    return sorted(stops | ({data.min_tpr} if data.min_tpr > 0 else set()))


def _points(model: RankedModel, data: TestData, limits: list[float], floors: list[float]) -> dict[str, Any]:
    """Return counts and thresholds at each position of the sliders, and the corners of the hull for the costs."""
    curve = model.blocks.curve()
    within = np.searchsorted(curve.fp, np.array(limits) * curve.n * (1 + 1e-9), "right") - 1
    reached = np.searchsorted(curve.tp, np.array(floors) * curve.m * (1 - 1e-9), "left")
    return {
        "name": model.model.name,
        "saved": saved_point(model.model, data),
        "limit": _at(curve.tp, curve.fp, model.levels, within),
        "floor": _at(curve.tp, curve.fp, model.levels, reached),
        "hull": _at(curve.tp, curve.fp, model.levels, hull(curve)),
    }


def _at(tp: Array, fp: Array, levels: Array, places: Any) -> dict[str, list[Any]]:
    ends = [np.inf, *levels.tolist(), -np.inf]
    return {
        "tp": tp[places].astype(int).tolist(),
        "fp": fp[places].astype(int).tolist(),
        "threshold": [_threshold(ends[place + 1], ends[place]) for place in places.tolist()],
    }


def _threshold(below: float, above: float) -> float:
    """Return a short number between two neighboring scores, the rejected one rounded up.

    Scores above it are the same as those above ``below``, so that it gives the counts that are shown with it.
    """
    if below == -np.inf:
        return -_threshold(-above, np.inf)
    if below == 0:  # has no digits to round: a power of ten
        power = 10.0 ** (math.floor(math.log10(min(above, 1.0))) - DIGITS)
        return power if power < above else below
    for digits in range(DIGITS, MOST_DIGITS + 1):
        context = Context(digits, ROUND_CEILING)
        rounded = context.create_decimal(Decimal(below))
        rounded = rounded if float(rounded) > below else context.next_plus(rounded)
        if below < float(rounded) < above:
            return float(rounded)
    return below  # no number is between them
