"""Inset of a ROC plot: place of the inset and of the legend below the curves, and lines from the range to the inset."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array

# Right edge of the inset's labels and of the legend, and distance to the curves, as fractions of the axes.
RIGHT, DISTANCE = 0.98, 0.03
# Positions of the left edge to try, the smallest height of an inset, and its height if there is no room for it.
_LEFTS, _LOWEST, _FORCED = np.linspace(0.3, 0.62, 17), 0.22, 0.35
# Height of a line of text, and mean width of a character, in multiples of the font size.
_LINE, _CHARACTER = 1.4, 0.56
# Largest width of a legend.
_WIDEST = 0.68

Box = tuple[float, float, float, float]
Point = tuple[float, float]


class TextSize(NamedTuple):
    """Width of a character and height of a line of a font size, as fractions of the axes."""

    width: float
    height: float


def text_size(ax: Any, size: str) -> TextSize:
    """Return the size of text in axes of equal aspect; it is an upper estimate, because layouts only shrink margins."""
    from matplotlib.font_manager import FontProperties

    box = ax.get_window_extent()
    # Axes of equal aspect are a square in their box; labels outside can take a tenth of it in a later layout.
    side = 0.9 * min(box.width, box.height) * 72 / ax.figure.dpi
    points = FontProperties(size=size).get_size_in_points()
    return TextSize(_CHARACTER * points / side, _LINE * points / side)


class LegendText:
    """Labels of a legend, broken into lines, and the place of the legend.

    Parameters
    ----------
    labels : list of str
        Labels.
    text : TextSize
        Size of the text.

    Attributes
    ----------
    labels : list of str
        Labels with line breaks, so that the legend takes at most `_WIDEST` of the axes.
    size : tuple of float
        Width and height of the legend, as fractions of the axes.
    """

    def __init__(self, labels: list[str], text: TextSize) -> None:
        # In front of the text there are a line of two font sizes and a space.
        handle = 3.2 / _CHARACTER * text.width
        characters = max(8, int((_WIDEST - handle) / text.width))
        self.labels = [_broken(label, characters) for label in labels]
        lines = [line for label in self.labels for line in label.split("\n")]
        self.size = (handle + max(map(len, lines)) * text.width, (len(lines) + 0.5) * text.height)

    def options(self, box: Box | None) -> dict[str, Any]:
        """Return the options of ``Axes.legend`` for a legend above the inset or, without one, in the corner."""
        height = DISTANCE / 2 if box is None else box[1] + box[3] + DISTANCE / 3
        return {
            "loc": "lower right",
            "bbox_to_anchor": (RIGHT, height),
            "edgecolor": "none",
            "framealpha": 0.8,
            "fontsize": "small",
            "handlelength": 2.0,
            "borderaxespad": 0.0,
            "borderpad": 0.2,
            "labelspacing": 0.25,
        }


def _broken(label: str, characters: int) -> str:
    """Return a label in lines of at most a number of characters; a measure at its end is broken only if it must be."""
    name, bracket, measure = label.rpartition(" (")
    if len(label) <= characters or not bracket:
        return textwrap.fill(label, characters)
    return f"{textwrap.fill(name, characters)}\n{textwrap.fill(f'({measure}', characters)}"


def label_inset(inset: Any) -> None:
    """Set tick labels of an inset that stay below and on the right of it, away from the lines to its left edge."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    low, high = inset.get_xlim()
    middle = (low * high) ** 0.5 if inset.get_xscale() == "log" else (low + high) / 2
    inset.xaxis.set_major_locator(FixedLocator([low, middle, high]))
    inset.xaxis.set_major_formatter(FixedFormatter([f"{value:.2g}" for value in (low, middle, high)]))
    inset.xaxis.set_minor_locator(NullLocator())
    for label, side in zip(inset.get_xticklabels(), ("left", "center", "right"), strict=True):
        label.set_horizontalalignment(side)
    inset.yaxis.tick_right()
    inset.locator_params(axis="y", nbins=4)
    inset.tick_params(labelsize="x-small")


def frame(ax: Any, enlarged: Box, lines: list[tuple[Point, Point]]) -> None:
    """Draw the frame of the enlarged range and the lines to the inset."""
    left, bottom, width, height = enlarged
    x, y = [left, left + width, left + width, left, left], [bottom, bottom, bottom + height, bottom + height, bottom]
    ax.plot(x, y, color="0.4", linewidth=0.8, zorder=1, gid="range")
    for (x0, y0), (x1, y1) in lines:
        ax.plot([x0, x1], [y0, y1], color="0.4", linewidth=0.8, zorder=1, gid="connector")


def lowest_curve(bands: list[tuple[Array, Array]], at: Array) -> Array:
    """Return the lowest height of several curves at false-positive rates, for boxes that must lie below all of them."""
    result: Array = np.min([np.interp(at, fpr, tpr) for fpr, tpr in bands], axis=0)
    return result


def place(
    bands: list[tuple[Array, Array]], legend: tuple[float, float], labels: TextSize, forced: bool = False
) -> Box | None:
    """Return left, bottom, width and height of the largest inset below the curves, with the legend above it.

    Parameters
    ----------
    bands : list of (ndarray, ndarray)
        False-positive rates and heights of the curves, or of the lower ends of their bands.
    legend : tuple of float
        Width and height of the legend, which is right-aligned above the inset.
    labels : TextSize
        Size of the tick labels.
    forced : bool, default=False
        Whether to return a box that covers curves if there is no room below them.

    Returns
    -------
    tuple of float or None
        The box in fractions of the axes; None if there is no room for an inset.
    """
    # Tick labels are below the inset and, with up to five characters and the length of a tick, on its right.
    bottom, right = 1.8 * labels.height, RIGHT - 7 * labels.width
    below = lowest_curve(bands, np.minimum(_LEFTS, RIGHT - legend[0])) - DISTANCE - legend[1]
    # The inset itself must also lie below the curves, which rise to the right.
    heights = np.minimum(below, lowest_curve(bands, _LEFTS) - DISTANCE) - bottom
    best = int(np.argmax(heights * (right - _LEFTS)))
    if heights[best] >= _LOWEST:
        return float(_LEFTS[best]), bottom, float(right - _LEFTS[best]), float(min(heights[best], 0.55))
    return (0.42, bottom, right - 0.42, _FORCED) if forced else None


def connectors(range_box: Box, inset_box: Box, curves: list[tuple[Array, Array]]) -> list[tuple[Point, Point]]:
    """Return the lines from corners of the range to corners of the inset that cross no curve and neither box.

    Parameters
    ----------
    range_box, inset_box : tuple of float
        Left, bottom, width and height, in the coordinates of the curves.
    curves : list of (ndarray, ndarray)
        Points of the curves and of the ends of their bands.

    Returns
    -------
    list of pairs of points
        At most one line from each of the lower right and the upper right corner of the range, to the corners of the
        inset's left edge.
    """
    left, bottom, width, height = range_box
    inset_left, inset_bottom, _, inset_height = inset_box
    if inset_left <= left + width:
        return []
    candidates = [
        ((left + width, bottom), (inset_left, inset_bottom)),
        ((left + width, bottom + height), (inset_left, inset_bottom + inset_height)),
    ]
    return [line for line in candidates if not any(_crosses(line, x, y) for x, y in curves)]


def _crosses(line: tuple[Point, Point], x: Array, y: Array) -> bool:
    """Return whether a segment has a point in common with a polygonal curve."""
    (x0, y0), (x1, y1) = line

    def side(px: Array, py: Array) -> Array:
        result: Array = (x1 - x0) * (py - y0) - (y1 - y0) * (px - x0)
        return result

    ends = side(x, y)
    dx, dy = np.diff(x), np.diff(y)
    first = dx * (y0 - y[:-1]) - dy * (x0 - x[:-1])
    second = dx * (y1 - y[:-1]) - dy * (x1 - x[:-1])
    meets: NDArray[np.bool_] = (ends[:-1] * ends[1:] <= 0) & (first * second <= 0) & ((dx != 0) | (dy != 0))
    return bool(meets.any())
