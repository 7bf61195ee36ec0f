"""Coordinates of the plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rocmax._typing import Array

WIDTH, HEIGHT = 420, 380
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 10, 46
MAX_POINTS = 400


@dataclass(frozen=True)
class Panel:
    """Axes of a plot: false-positive rates from ``low`` to ``high``, true-positive rates from ``floor`` to 1.

    The range ``window`` of false-positive rates, above the true-positive rate ``min_tpr``, is shaded.
    """

    title: str
    low: float
    high: float
    window: tuple[float, float]
    min_tpr: float = 0.0
    floor: float = 0.0

    def x(self, fpr: Any) -> Any:
        """Return the x coordinate of a false-positive rate."""
        return LEFT + (fpr - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)

    def y(self, tpr: Any) -> Any:
        """Return the y coordinate of a true-positive rate."""
        return TOP + (1 - tpr) / (1 - self.floor) * (HEIGHT - TOP - BOTTOM)

    def frame(self) -> dict[str, Any]:
        """Return the coordinates of the frame, the ticks and the shaded range."""
        shown = (*self.window, self.min_tpr) != (0.0, 1.0, 0.0)
        steps, heights = np.linspace(self.low, self.high, 6), np.linspace(self.floor, 1, 6)
        first = max(self.low, self.floor)
        return {
            "title": self.title,
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "top": TOP,
            "bottom": HEIGHT - BOTTOM,
            "window": self._shade() if shown else None,
            "x_ticks": [(round(self.x(rate), 1), f"{100 * rate:.3g}") for rate in steps],
            "y_ticks": [(round(self.y(rate), 1), f"{100 * rate:.3g}") for rate in heights],
            "diagonal": [round(v, 1) for v in (self.x(first), self.y(first), self.x(self.high), self.y(self.high))]
            if first < self.high
            else None,
        }

    def _shade(self) -> dict[str, float]:
        """Return the shaded rectangle."""
        start, stop = max(self.low, self.window[0]), min(self.high, self.window[1])
        bottom = self.y(max(self.floor, self.min_tpr))
        return {
            "x": round(self.x(start), 1),
            "width": round(self.x(stop) - self.x(start), 1),
            "height": round(bottom - TOP, 1),
        }

    def scale(self) -> dict[str, float]:
        """Return the scale that the script uses to place a marker."""
        return {
            "low": self.low,
            "high": self.high,
            "floor": self.floor,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "top": TOP,
            "bottom": HEIGHT - BOTTOM,
        }


def curve_path(panel: Panel, fpr: Array, tpr: Array) -> str:
    """Return the SVG path of a curve within a panel, reduced to at most `MAX_POINTS` points."""
    inside = np.flatnonzero((fpr >= panel.low) & (fpr <= panel.high))
    x = np.concatenate(([panel.low], fpr[inside], [panel.high]))
    y = np.concatenate(([np.interp(panel.low, fpr, tpr)], tpr[inside], [np.interp(panel.high, fpr, tpr)]))
    if panel.low == 0.0:
        y[0] = 0.0
    if panel.floor > 0:
        x, y = _above(x, y, panel.floor)
    if x.size > MAX_POINTS:
        # Use even steps along the curve, not along one axis, to keep the shape of its steep part.
        along, up = np.abs(np.diff(x, prepend=x[0])), np.abs(np.diff(y, prepend=y[0]))
        way = np.cumsum(along / (panel.high - panel.low) + up / (1 - panel.floor))
        keep = np.unique(np.searchsorted(way, np.linspace(0, way[-1], MAX_POINTS)))
        x, y = x[keep], y[keep]
    if x.size == 0:
        return ""
    points = [f"{a:.1f} {b:.1f}" for a, b in zip(panel.x(x), panel.y(y), strict=True)]
    return "M" + "L".join(points)


def _above(x: Array, y: Array, floor: float) -> tuple[Array, Array]:
    """Return the part of a curve above a height, from the point where it reaches it; empty if it does not."""
    first = int(np.searchsorted(y, floor))
    if first in (0, y.size):
        return x[first:], y[first:]
    entry = np.interp(floor, y[first - 1 : first + 1], x[first - 1 : first + 1])
    return np.append(entry, x[first:]), np.append(floor, y[first:])
