"""Axes of the plots, and paths in their coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rocmax._typing import Array

WIDTH, HEIGHT = 420, 340
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 10, 46
MAX_POINTS = 300


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
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value: Any) -> Any:
        """Return the vertical coordinate of a value."""
        low, high = self.y_range
        return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)

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
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "top": TOP,
            "bottom": HEIGHT - BOTTOM,
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
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "top": TOP,
            "bottom": HEIGHT - BOTTOM,
        }

    def line(self, x: Array, y: Array) -> str:
        """Return the path of a line, reduced to at most `MAX_POINTS` points."""
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
        if x.size <= MAX_POINTS:
            return x, y
        # Even steps along the curve, not along one axis, keep the shape of its steep part.
        across, up = np.abs(np.diff(self.x(x), prepend=self.x(x[0]))), np.abs(np.diff(self.y(y), prepend=self.y(y[0])))
        way = np.cumsum(across + up)
        keep = np.unique(np.append(np.searchsorted(way, np.linspace(0, way[-1], MAX_POINTS)), x.size - 1))
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
