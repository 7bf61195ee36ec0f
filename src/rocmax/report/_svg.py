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
    """Axes of a plot: false-positive rates from ``low`` to ``high``, true-positive rates from 0 to 1."""

    title: str
    low: float
    high: float
    window: tuple[float, float]

    def x(self, fpr: Any) -> Any:
        """Return the x coordinate of a false-positive rate."""
        return LEFT + (fpr - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)

    def y(self, tpr: Any) -> Any:
        """Return the y coordinate of a true-positive rate."""
        return TOP + (1 - tpr) * (HEIGHT - TOP - BOTTOM)

    def frame(self) -> dict[str, Any]:
        """Return the coordinates of the frame, the ticks and the shaded range."""
        start, stop = max(self.low, self.window[0]), min(self.high, self.window[1])
        shown = self.window != (0.0, 1.0)
        steps = np.linspace(self.low, self.high, 6)
        return {
            "title": self.title,
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "top": TOP,
            "bottom": HEIGHT - BOTTOM,
            "window": (round(self.x(start), 1), round(self.x(stop) - self.x(start), 1)) if shown else None,
            "x_ticks": [(round(self.x(rate), 1), f"{100 * rate:.3g}") for rate in steps],
            "y_ticks": [(round(self.y(rate), 1), f"{100 * rate:.0f}") for rate in np.linspace(0, 1, 6)],
            "diagonal": [
                round(v, 1) for v in (self.x(self.low), self.y(self.low), self.x(self.high), self.y(self.high))
            ],
        }

    def scale(self) -> dict[str, float]:
        """Return the scale that the script uses to place a marker."""
        return {
            "low": self.low,
            "high": self.high,
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
    if x.size > MAX_POINTS:
        # Use even steps along the curve, not along one axis, to keep the shape of its steep part.
        way = np.cumsum(np.abs(np.diff(x, prepend=x[0])) / (panel.high - panel.low) + np.abs(np.diff(y, prepend=y[0])))
        keep = np.unique(np.searchsorted(way, np.linspace(0, way[-1], MAX_POINTS)))
        x, y = x[keep], y[keep]
    points = [f"{a:.1f} {b:.1f}" for a, b in zip(panel.x(x), panel.y(y), strict=True)]
    return "M" + "L".join(points)
