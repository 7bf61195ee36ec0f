"""ROC, precision-recall and lift curves as plots with confidence bands."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from rocmax._typing import Array, Index
from rocmax.metrics.bootstrap import tail_share
from rocmax.metrics.curve import Curve
from rocmax.metrics.resamples import n_independent
from rocmax.report._axes import Axes
from rocmax.report._content import RankedModel, TestData

# Dash patterns, which distinguish the curves without colors; the colors are those of Okabe and Ito.
DASHES = ("", "6 3", "2 2", "8 3 2 3")
N_GRID = 80
LINE_HEIGHT = 15
LABEL_LENGTH = 28
FPR, TPR = "False-positive rate (%)", "True-positive rate (%)"


Band = tuple[Array, Array]


class Bands:
    """Pointwise 95 % confidence bands of the true-positive rate, from the curves of bootstrap resamples.

    Parameters
    ----------
    data : TestData
        Test rows. There is a band of the whole curve, and one of its range if there is one.
    """

    def __init__(self, data: TestData) -> None:
        ranges = [(0.0, 1.0), data.window] if _has_range(data) else [(0.0, 1.0)]
        self._places = np.concatenate([np.linspace(*ends, N_GRID) for ends in ranges])
        self._rates: list[Array] = []
        number = None if data.groups is None else np.unique(data.groups, return_inverse=True)[1]
        self._tail = tail_share(0.95, n_independent(data.positive, np.ones(data.positive.size), number))

    def add(self, curve: Curve) -> None:
        """Add the curve of a resample."""
        self._rates.append(np.interp(self._places, curve.fp / curve.n, curve.tp / curve.m))

    def limits(self) -> list[Band]:
        """Return the lower and upper ends of each band."""
        low, high = np.quantile(self._rates, [self._tail, 1 - self._tail], axis=0)
        return [(low[start : start + N_GRID], high[start : start + N_GRID]) for start in range(0, low.size, N_GRID)]


def roc_plots(models: list[RankedModel], data: TestData, bands: list[list[Band]]) -> list[tuple[Axes, dict[str, Any]]]:
    """Return the axes and the content of the plot of the whole ROC curve, and of its range if there is one."""
    shaded = (*data.window, data.min_tpr, 1.0) if _has_range(data) else None
    panels = [Axes("Whole curve", FPR, TPR, shaded=shaded)]
    if _has_range(data):
        low = min(float(in_range[0].min()) for _, in_range in bands)
        high = max(float(in_range[1].max()) for _, in_range in bands)
        heights = (data.min_tpr, 1.0) if data.min_tpr > 0 else _fitting(low, high)
        panels.append(Axes("Range of interest", FPR, TPR, data.window, heights))
    return [
        _roc_plot(axes, models, list(of_axes)) for axes, of_axes in zip(panels, zip(*bands, strict=True), strict=True)
    ]


def precision_recall_plot(models: list[RankedModel], data: TestData) -> dict[str, Any]:
    """Return the plot of the precision against the true-positive rate."""
    axes = Axes("Precision and recall", "Recall: true-positive rate (%)", "Precision (%)")
    lines = []
    for number, model in enumerate(models):
        fp, tp = model.blocks.curve()
        found = tp > 0
        recall, precision = tp[found] / tp[-1], tp[found] / (tp[found] + fp[found])
        lines.append(_line(axes, model, number, np.append(0.0, recall), np.append(precision[0], precision)))
    chance = data.n_positive / data.positive.size
    return {**axes.frame(), "lines": lines, "guess": _guess(axes, (0.0, chance), (1.0, chance))}


def lift_plot(models: list[RankedModel], data: TestData) -> dict[str, Any]:
    """Return the plot of the lift against the share of rows with the highest scores."""
    lowest = max(1e-3, 10 / data.positive.size)
    lines: list[tuple[Array, Array]] = []
    grid = np.geomspace(min(lowest, 0.5), 1.0, N_GRID)
    for model in models:
        fp, tp = model.blocks.curve()
        # Within a block of ties, rows are taken in random order, which gives a straight line.
        lines.append((grid, np.interp(grid, (fp + tp) / (fp[-1] + tp[-1]), tp / tp[-1]) / grid))
    top = max(1.2, 1.05 * max(float(lift.max()) for _, lift in lines))
    axes = Axes(
        "Lift", "Rows with the highest scores (%)", "Lift", (grid[0], 1.0), (0.0, top), log_x=True, plain_y=True
    )
    drawn = [_line(axes, model, i, *lines[i]) for i, model in enumerate(models)]
    return {**axes.frame(), "lines": drawn, "guess": _guess(axes, (grid[0], 1.0), (1.0, 1.0))}


def hull(curve: Curve) -> Index:
    """Return the places of the vertices of the convex hull of a ROC curve; the cost is lowest at one of them.

    Parameters
    ----------
    curve : Curve
        Cumulative weights of both classes.

    Returns
    -------
    ndarray of int
        Places in the curve, in its order.
    """
    # The lower right corner is always a vertex; it keeps the points from being collinear.
    points = np.column_stack((np.append(curve.fp, curve.n) / curve.n, np.append(curve.tp, 0.0) / curve.m))
    vertices = ConvexHull(points).vertices
    result: Index = np.sort(vertices[vertices < curve.fp.size])
    return result


def _has_range(data: TestData) -> bool:
    return data.window != (0.0, 1.0) or data.min_tpr > 0


def _fitting(low: float, high: float) -> tuple[float, float]:
    """Return a range of the y-axis that fits the curves, in steps of 10 % and at least 20 % wide."""
    bottom, top = np.floor(10 * low - 1e-9) / 10, np.ceil(10 * high + 1e-9) / 10
    bottom, top = max(0.0, float(bottom)), min(1.0, float(top))
    return (bottom, top) if top - bottom >= 0.2 - 1e-9 else (max(0.0, top - 0.2), max(top, 0.2))


def _roc_plot(axes: Axes, models: list[RankedModel], limits: list[Band]) -> tuple[Axes, dict[str, Any]]:
    grid = np.linspace(*axes.x_range, N_GRID)
    lines, bands, ends_at, floor = [], [], [], axes.y_range[0]
    for number, model in enumerate(models):
        curve = model.blocks.curve()
        low, high = limits[number]
        band = axes.area(grid, np.maximum(low, floor), np.maximum(high, floor))
        bands.append({"d": band, "color": number % len(DASHES)})
        fpr, tpr = curve.fp / curve.n, curve.tp / curve.m
        inside = (fpr >= axes.x_range[0]) & (fpr <= axes.x_range[1])
        ends = np.array(axes.x_range)
        # At a jump of the curve, the left end is the lower and the right end the higher value.
        left = float(np.interp(ends[0], fpr, tpr)) if ends[0] > 0 else 0.0
        right = float(np.interp(ends[1], fpr, tpr))
        x = np.concatenate((ends[:1], fpr[inside], ends[1:]))
        y = np.concatenate(([left], tpr[inside], [right]))
        lines.append(_line(axes, model, number, *_above(x, y, floor)))
        ends_at.append(max(right, floor))
    labels = _labels(axes, [(line["name"], line["color"], end) for line, end in zip(lines, ends_at, strict=True)])
    start, end = axes.x_range
    guess = _guess(axes, (start, start), (end, end)) if axes.y_range[0] <= start else None
    return axes, {**axes.frame(), "lines": lines, "bands": bands, "labels": labels, "guess": guess}


def _above(x: Array, y: Array, floor: float) -> tuple[Array, Array]:
    """Return the part of a curve from the point where it reaches a height; its end at that height if it does not."""
    first = int(np.searchsorted(y, floor))
    if first == 0:
        return x, y
    if first == y.size:
        return x[-1:], np.array([floor])
    entry = np.interp(floor, y[first - 1 : first + 1], x[first - 1 : first + 1])
    return np.append(entry, x[first:]), np.append(floor, y[first:])


def _line(axes: Axes, model: RankedModel, number: int, x: Array, y: Array) -> dict[str, Any]:
    return {
        "d": axes.line(x, y),
        "name": model.model.name,
        "dash": DASHES[number % len(DASHES)],
        "color": number % len(DASHES),
    }


def _labels(axes: Axes, ends: list[tuple[str, int, float]]) -> list[dict[str, Any]]:
    """Return the places of the names at the right ends of the curves, moved apart where they would overlap.

    Curves that end in the upper right corner are labelled below it, where there is space.
    """
    frame = axes.frame()
    lowest, highest = frame["bottom"] - 6, frame["top"] + LINE_HEIGHT
    crowded = all(tpr >= 1.0 for _, _, tpr in ends)
    wanted = [lowest if crowded else float(axes.y(tpr)) - 8 for _, _, tpr in ends]
    places, last = {}, lowest + LINE_HEIGHT
    for i in sorted(range(len(ends)), key=lambda i: -wanted[i]):
        last = min(wanted[i], last - LINE_HEIGHT)
        places[i] = last
    down = max(0.0, highest - last)
    return [
        {"name": name if len(name) <= LABEL_LENGTH else name[: LABEL_LENGTH - 1] + "…", "color": color}
        | {"x": frame["right"] - 6, "y": round(places[i] + down, 1)}
        for i, (name, color, _) in enumerate(ends)
    ]


def _guess(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> list[float]:
    """Return the ends of the line of random scores."""
    values = (axes.x(start[0]), axes.y(start[1]), axes.x(end[0]), axes.y(end[1]))
    return [round(float(value), 1) for value in values]
