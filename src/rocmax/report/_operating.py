"""Operating points of the sliders: a limit on the false-positive rate, a floor on the true-positive rate, and costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array
from rocmax.report._content import RankedModel, TestData
from rocmax.report._curves import hull

N_STOPS = 160
# Quantile of the standard normal distribution for a 95 % interval.
Z95 = 1.959963984540054
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
        "by_floor": data.min_tpr > 0,
        "positives": data.n_positive,
        "negatives": data.n_negative,
        "positive_label": data.positive_label,
        "negative_label": negative_name(data),
        "models": [_points(model, data, limits, floors) for model in models],
    }


def verdict(numbers: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the sentence at the top of the page for the first positions of the sliders, as parts: text, whether bold.

    The script of the page writes the same sentence for the other positions.
    """
    by_floor, several = numbers["by_floor"], len(numbers["models"]) > 1
    positive, negative = f"class {numbers['positive_label']}", f"class {numbers['negative_label']}"
    if by_floor:
        place = numbers["floor_start"]
        parts = [("To find at least ", False), (f"{_short(numbers['floors'][place], 4)} of 100", True)]
        parts.append((f" rows of {positive}, ", False))
    else:
        place = numbers["start"]
        parts = [("If at most ", False), (f"{_short(numbers['limits'][place], 3)} %", True)]
        parts.append((f" of {negative} may be flagged, ", False))
    for number, model in enumerate(numbers["models"]):
        if number:
            parts.append((" and " if number == len(numbers["models"]) - 1 else ", ", False))
        count = model["floor"]["fp"][place] if by_floor else model["limit"]["tp"][place]
        total = numbers["negatives"] if by_floor else numbers["positives"]
        rate, low, high = (
            _short(share, 3) if by_floor else str(_round(100 * share))
            for share in (count / total, *wilson(count, total))
        )
        who = f"{model['name']} {'flags' if by_floor else 'finds'} " if several else ""
        what = f" of {negative}" if by_floor else f" rows of {positive}"
        does = "" if several else (" are flagged" if by_floor else " are found")
        parts += [(who, False), (rate + (" %" if by_floor else " of 100"), True)]
        parts.append(((what if number == 0 else "") + f"{does} ({low} to {high})", False))
    return [*parts, (".", False)]


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


def _short(rate: float, digits: int) -> str:
    """Return a rate in percent with so few digits as the script of the page shows."""
    return f"{float(f'{100 * rate:.{digits}g}'):.12g}"


def _round(value: float) -> int:
    """Return the nearest integer, halves up, as the script of the page does."""
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
    threshold = np.append(np.nextafter(model.levels[0], np.inf), model.levels)
    within = np.searchsorted(curve.fp, np.array(limits) * curve.n * (1 + 1e-9), "right") - 1
    reached = np.searchsorted(curve.tp, np.array(floors) * curve.m * (1 - 1e-9), "left")
    return {
        "name": model.model.name,
        "limit": _at(curve.tp, curve.fp, threshold, within),
        "floor": _at(curve.tp, curve.fp, threshold, reached),
        "hull": _at(curve.tp, curve.fp, threshold, hull(curve)),
    }


def _at(tp: Array, fp: Array, threshold: Array, places: Any) -> dict[str, list[Any]]:
    return {
        "tp": tp[places].astype(int).tolist(),
        "fp": fp[places].astype(int).tolist(),
        "threshold": [float(f"{value:.5g}") for value in threshold[places]],
    }
