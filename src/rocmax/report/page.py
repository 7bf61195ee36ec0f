"""Content of the report's page: models and test rows, curves, axes and operating points."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from rocmax._support import Array, Index
from rocmax.metrics.curve import Blocks, Curve
from rocmax.metrics.rates import rate_interval
from rocmax.metrics.uncertainty import n_independent, tail_share

# What a report is made of: models with their scores, and the test rows.


@dataclass(frozen=True)
class Feature:
    """Importance of a feature; ``direction`` is 1 or -1 if larger values raise or lower the score, otherwise 0.

    ``effects`` are values, or ranges of them, each with its number of rows and its mean contribution to the score.
    """

    name: str
    value: float
    direction: int = 0
    effects: list[tuple[str, int, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Alert:
    """Flagged row: its place in the table, from 1, score and class, and the columns that moved the score most.

    Each reason is a name, a value, and what it added to the score.
    """

    row: int
    score: float
    label: str
    reasons: list[tuple[str, str, float]]


@dataclass(frozen=True)
class Reconciled:
    """Number that was printed by the fit, and the same number here, each with the ends of its 95 % interval."""

    what: str
    then: tuple[float, float, float]
    now: tuple[float, float, float]

    @property
    def differs(self) -> bool:
        """Whether the 95 % interval of the difference, made from both intervals, leaves out zero.

        R. G. Newcombe (1998). Interval estimation for the difference between independent proportions. Statistics in
        Medicine 17, 873-890, method 10; any two intervals can be put together in this way.
        """
        below, above = sorted((self.then, self.now))
        return above[0] - below[0] > math.hypot(below[2] - below[0], above[0] - above[1])


@dataclass(frozen=True)
class ReportModel:
    """Model with its scores on the test rows; ``reconciled`` is None if the fit has stored no intervals."""

    name: str
    kind: str
    scores: Array
    predicted: NDArray[np.bool_]
    features: list[Feature] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    max_fpr: float | None = None
    feature_value: str = "weight"
    probabilities: Array | None = None
    min_tpr: float | None = None
    alerts: list[Alert] = field(default_factory=list)
    min_precision: float | None = None
    # Largest share of flagged rows.
    capacity: float | None = None
    reconciled: list[Reconciled] | None = None


@dataclass(frozen=True)
class RankedModel:
    """Model with the blocks of ties of its scores, in descending order, and the score of each block."""

    model: ReportModel
    blocks: Blocks
    levels: Array


@dataclass(frozen=True)
class Segment:
    """Part of the test rows, for results by segment."""

    name: str
    rows: NDArray[np.bool_]


@dataclass(frozen=True)
class Change:
    """Difference between the training rows and the test rows in one column: what it is about, then and now."""

    column: str
    what: str
    then: str
    now: str


@dataclass(frozen=True)
class TestData:
    """Test rows: classes, the range of rates, a summary of the columns, segments and changes since training.

    Rows of one of the ``groups`` may depend on each other; None if all rows are independent. ``times`` are numbers or
    dates, None if they are not known.
    """

    source: str
    positive: NDArray[np.bool_]
    positive_label: str
    window: tuple[float, float]
    columns: list[tuple[str, str, float]]
    seed: int = 0
    negative_label: str | None = None
    min_tpr: float = 0.0
    segment_column: str | None = None
    segments: list[Segment] = field(default_factory=list)
    changes: list[Change] | None = None
    groups: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    # What a false alarm and a miss cost more than the right decision, for the start of the sliders.
    costs: tuple[float, float] = (1.0, 10.0)
    # Of the model card: what a person has written, and where the test rows come from.
    card: list[tuple[str, str]] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)

    __test__ = False  # not a test class of pytest

    @property
    def n_positive(self) -> int:
        """Number of positives."""
        return int(np.count_nonzero(self.positive))

    @property
    def n_negative(self) -> int:
        """Number of negatives."""
        return int(self.positive.size - self.n_positive)


# Axes of the plots, and paths in their coordinates.


@dataclass(frozen=True)
class PageLayout:
    """Sizes of the plots, in units of the SVG, and how much of a curve is drawn; style.css has the other sizes."""

    width: int = 420
    height: int = 340
    # Margins for the labels of the axes.
    left: int = 52
    right: int = 14
    top: int = 10
    bottom: int = 46
    # Names of curves: distance between two, distance to the frame, and length.
    line_height: int = 15
    padding: int = 6
    label_length: int = 28
    # Points of a line, and of a band or a lift curve, which are smooth; more would make the file larger.
    max_points: int = 300
    n_grid: int = 80
    # Positions of the slider of false-positive rates.
    n_stops: int = 160
    # Bins of the scores, the share of scores beyond them at each end, and groups of neighboring scores.
    n_bins: int = 40
    tail: float = 0.001
    n_groups: int = 10
    # Significant digits of a threshold, if scores do not require more.
    digits: int = 5
    # Features, and segments by the values of a column. Rows whose contributions give the spread.
    n_features: int = 15
    # Of these, how many have their effects shown, and for how many ranges of numbers or categories.
    n_effects: int = 5
    n_segments: int = 12
    contribution_rows: int = 1_000
    # Where the sliders start for models without limits.
    max_fpr: float = 0.1
    min_tpr: float = 0.8


LAYOUT = PageLayout()
_FRAME: dict[str, float] = {
    "left": LAYOUT.left,
    "right": LAYOUT.width - LAYOUT.right,
    "top": LAYOUT.top,
    "bottom": LAYOUT.height - LAYOUT.bottom,
}


@dataclass(frozen=True)
class Axes:
    """Axes of a plot, in rates from 0 to 1 that are shown in percent, or in plain numbers.

    ``shaded`` is a rectangle (left, right, bottom, top) in the units of the axes, or None.
    """

    title: str
    x_label: str
    y_label: str
    x_range: tuple[float, float] = (0.0, 1.0)
    y_range: tuple[float, float] = (0.0, 1.0)
    shaded: tuple[float, float, float, float] | None = None
    log_x: bool = False
    plain_x: bool = False
    plain_y: bool = False

    def x(self, value: Any) -> Any:
        """Return the horizontal coordinate of a value."""
        low, high = self.x_range
        if self.log_x:
            low, high, value = np.log10(low), np.log10(high), np.log10(value)
        return LAYOUT.left + (value - low) / (high - low) * (LAYOUT.width - LAYOUT.left - LAYOUT.right)

    def y(self, value: Any) -> Any:
        """Return the vertical coordinate of a value."""
        low, high = self.y_range
        return LAYOUT.top + (high - value) / (high - low) * (LAYOUT.height - LAYOUT.top - LAYOUT.bottom)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the rounded coordinates of a point."""
        return _short(self.x(x)), _short(self.y(y))

    def frame(self) -> dict[str, Any]:
        """Return the coordinates of the frame, the ticks and the shaded rectangle."""
        if self.log_x:
            steps = 10.0 ** np.arange(np.ceil(np.log10(self.x_range[0]) - 1e-9), np.log10(self.x_range[1]) + 1e-9)
        else:
            steps = ticks(*self.x_range)
        scale_x, scale_y = (1 if plain else 100 for plain in (self.plain_x, self.plain_y))
        return {
            "title": self.title,
            "x_label": self.x_label,
            "y_label": self.y_label,
            "width": LAYOUT.width,
            "height": LAYOUT.height,
            **_FRAME,
            "shaded": self._rectangle(),
            "x_ticks": [(_short(self.x(step)), f"{scale_x * step:.3g}") for step in steps],
            "y_ticks": [(_short(self.y(step)), f"{scale_y * step:.3g}") for step in ticks(*self.y_range)],
        }

    def scale(self) -> dict[str, float]:
        """Return the scale that the script uses to place a marker."""
        return {
            "low": self.x_range[0],
            "high": self.x_range[1],
            "bottom_value": self.y_range[0],
            "top_value": self.y_range[1],
            **_FRAME,
        }

    def line(self, x: Array, y: Array) -> str:
        """Return the path of a line, reduced to at most `PageLayout.max_points` points."""
        x, y = self._reduced(x, y)
        return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(self.x(x), self.y(y), strict=True))

    def area(self, x: Array, low: Array, high: Array) -> str:
        """Return the closed path of the area between two lines."""
        return self.line(np.append(x, x[::-1]), np.append(high, low[::-1])) + "Z"

    def steps(self, edges: Array, heights: Array) -> str:
        """Return the closed path of a histogram."""
        x = np.concatenate(([edges[0]], np.repeat(edges[1:-1], 2), [edges[-1]]))
        return self.area(x, np.zeros(x.size), np.repeat(heights, 2))

    def _rectangle(self) -> tuple[float, float, float, float] | None:
        if self.shaded is None:
            return None
        left, right, bottom, top = self.shaded
        left, right = max(left, self.x_range[0]), min(right, self.x_range[1])
        bottom, top = max(bottom, self.y_range[0]), min(top, self.y_range[1])
        x, y = self.x(left), self.y(top)
        return _short(x), _short(y), _short(self.x(right) - x), _short(max(0.0, self.y(bottom) - y))

    def _reduced(self, x: Array, y: Array) -> tuple[Array, Array]:
        if x.size <= LAYOUT.max_points:
            return x, y
        # Even steps along the curve, not along one axis, keep the shape of its steep part.
        across, up = np.abs(np.diff(self.x(x), prepend=self.x(x[0]))), np.abs(np.diff(self.y(y), prepend=self.y(y[0])))
        way = np.cumsum(across + up)
        keep = np.unique(np.append(np.searchsorted(way, np.linspace(0, way[-1], LAYOUT.max_points)), x.size - 1))
        return x[keep], y[keep]


def ticks(low: float, high: float) -> Array:
    """Return round values between two ends, at most seven."""
    for size in 10.0 ** np.floor(np.log10(high - low)) * np.array([0.1, 0.2, 0.5, 1.0, 2.0, 5.0]):
        first, last = np.ceil(low / size - 1e-6), np.floor(high / size + 1e-6)
        if last - first <= 6:
            break
    result: Array = np.arange(first, last + 0.5) * size + 0.0  # no negative zero
    return result


def _short(value: Any) -> float:
    return round(float(value), 1)


# ROC, precision-recall and lift curves as plots with confidence bands.


# Dash patterns, which distinguish the curves without colors; the colors are those of Okabe and Ito.
DASHES = ("", "6 3", "2 2", "8 3 2 3")
FPR, TPR = "False-positive rate (%)", "True-positive rate (%)"


Band = tuple[Array, Array]


class Bands:
    """Pointwise 95 % confidence bands of the true-positive rate, from the curves of bootstrap resamples."""

    def __init__(self, data: TestData) -> None:
        ranges = [(0.0, 1.0), data.window] if _has_range(data) else [(0.0, 1.0)]
        self._places = np.concatenate([np.linspace(*ends, LAYOUT.n_grid) for ends in ranges])
        self._rates: list[Array] = []
        number = None if data.groups is None else np.unique(data.groups, return_inverse=True)[1]
        self._tail = tail_share(0.95, n_independent(data.positive, np.ones(data.positive.size), number))

    def add(self, curve: Curve) -> None:
        """Add the curve of a resample."""
        self._rates.append(np.interp(self._places, curve.fp / curve.n, curve.tp / curve.m))

    def limits(self) -> list[Band]:
        """Return the lower and upper ends of each band."""
        ends = np.quantile(self._rates, [self._tail, 1 - self._tail], axis=0).reshape(2, -1, LAYOUT.n_grid)
        return list(zip(*ends, strict=True))


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
    return {**axes.frame(), "lines": lines, "guess": [*axes.at(0.0, chance), *axes.at(1.0, chance)]}


def lift_plot(models: list[RankedModel], data: TestData) -> dict[str, Any]:
    """Return the plot of the lift against the share of rows with the highest scores."""
    lowest = max(1e-3, 10 / data.positive.size)
    lines: list[tuple[Array, Array]] = []
    grid = np.geomspace(min(lowest, 0.5), 1.0, LAYOUT.n_grid)
    for model in models:
        fp, tp = model.blocks.curve()
        # Within a block of ties, rows are taken in random order, which gives a straight line.
        lines.append((grid, np.interp(grid, (fp + tp) / (fp[-1] + tp[-1]), tp / tp[-1]) / grid))
    top = max(1.2, 1.05 * max(float(lift.max()) for _, lift in lines))
    axes = Axes(
        "Lift", "Rows with the highest scores (%)", "Lift", (grid[0], 1.0), (0.0, top), log_x=True, plain_y=True
    )
    drawn = [_line(axes, model, i, *lines[i]) for i, model in enumerate(models)]
    return {**axes.frame(), "lines": drawn, "guess": [*axes.at(grid[0], 1.0), *axes.at(1.0, 1.0)]}


def hull(curve: Curve) -> Index:
    """Return the places of the vertices of the convex hull of a ROC curve; the cost is lowest at one of them."""
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
    grid = np.linspace(*axes.x_range, LAYOUT.n_grid)
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
    guess = [*axes.at(start, start), *axes.at(end, end)] if axes.y_range[0] <= start else None
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

    Curves that end in the upper right corner are labeled below it, where there is space.
    """
    lowest, highest = _FRAME["bottom"] - LAYOUT.padding, _FRAME["top"] + LAYOUT.line_height
    crowded = all(tpr >= 1.0 for _, _, tpr in ends)
    wanted = [lowest if crowded else float(axes.y(tpr)) - 8 for _, _, tpr in ends]
    places, last = {}, lowest + LAYOUT.line_height
    for i in sorted(range(len(ends)), key=lambda i: -wanted[i]):
        last = min(wanted[i], last - LAYOUT.line_height)
        places[i] = last
    down = max(0.0, highest - last)
    return [
        {"name": name if len(name) <= LAYOUT.label_length else name[: LAYOUT.label_length - 1] + "…", "color": color}
        | {"x": _FRAME["right"] - LAYOUT.padding, "y": round(places[i] + down, 1)}
        for i, (name, color, _) in enumerate(ends)
    ]


# Operating points: the saved thresholds, and the sliders for a limit on either rate and for costs.


def sliders(models: list[RankedModel], data: TestData) -> dict[str, Any]:
    """Return the numbers that the script of the page needs."""
    limits, floors = _limits(data), _floors(data)
    limit = data.window[1] if data.window[1] < 1 else LAYOUT.max_fpr
    floor = data.min_tpr or LAYOUT.min_tpr
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
    """Return the sentence at the top of the page, on the saved thresholds, as parts: text, whether bold.

    Thresholds that are chosen on the test rows, as those of the sliders, would give better rates than new rows have.
    """
    several = len(models) > 1
    parts = [("At their saved thresholds, " if several else "At its saved threshold, the model ", False)]
    for number, model in enumerate(models):
        point = saved_point(model, data)
        of_positive = "" if number else f" rows of class {data.positive_label}"
        start = "; " if number else ""
        low, high, _ = interval_of(model, data.positive, data)
        parts.append((f"{start}{model.name} finds " if several else "finds ", False))
        parts.append((f"{_round(100 * point['tp'] / data.n_positive)} of 100", True))
        found = f"{math.floor(100 * low)} to {math.ceil(100 * high)}"
        n_alerts = point["tp"] + point["fp"]
        parts.append((f"{of_positive} ({found}) and raises ", False))
        parts.append((alert_text(n_alerts, data), True))
        if n_alerts:
            right = data.positive[model.predicted]
            low, high, _ = rate_interval(right, None if data.groups is None else data.groups[model.predicted])
            parts += [(", of which ", False), (f"{_round(100 * point['tp'] / n_alerts)} of 100", True)]
            parts.append((f" are right ({math.floor(100 * low)} to {math.ceil(100 * high)})", False))
    return [*parts, (".", False)]


def alert_text(n_alerts: int, data: TestData) -> str:
    """Return the number of alerts per day, with the days from the first to the last row, or per 10,000 rows."""
    unit, size = "10,000 rows", data.positive.size / 10_000
    if data.times is not None and data.times.dtype.kind == "M":
        ends = np.array([data.times.min(), data.times.max()]).astype("datetime64[D]")
        unit, size = "day", int(np.diff(ends)[0].astype(int)) + 1
    count = float(f"{n_alerts / size:.3g}")
    return f"{count:,.12g} alert{'' if count == 1 else 's'} per {unit}" if n_alerts else "no alerts"


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


def interval_of(model: ReportModel, rows: NDArray[np.bool_], data: TestData) -> tuple[float, float, float]:
    """Return the 95 % confidence interval of the share of flagged rows, and the number of independent rows of it."""
    return rate_interval(model.predicted[rows], None if data.groups is None else data.groups[rows])


def _round(value: float) -> int:
    """Return the nearest integer, halves up."""
    return int(np.floor(value + 0.5))


def _limits(data: TestData) -> list[float]:
    """Return the limits of the slider: evenly spaced on a logarithmic scale, plus the ends of the FPR range."""
    lowest = max(1e-5, 1 / data.n_negative)
    stops = np.geomspace(min(lowest, 0.1), 1.0, LAYOUT.n_stops)
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
        power = 10.0 ** (math.floor(math.log10(min(above, 1.0))) - LAYOUT.digits)
        return power if power < above else below
    for digits in range(LAYOUT.digits, 18):  # all doubles differ in 17 digits
        context = Context(digits, ROUND_CEILING)
        rounded = context.create_decimal(Decimal(below))
        rounded = rounded if float(rounded) > below else context.next_plus(rounded)
        if below < float(rounded) < above:
            return float(rounded)
    return below  # no number is between them
