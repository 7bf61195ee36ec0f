"""Shared helpers of the displays: line styles and new figures."""

from __future__ import annotations

from typing import Any

# Colors of Okabe and Ito, which color-blind readers can distinguish; the dashes distinguish them in grayscale.
STYLES = (
    ("#D55E00", "solid"),
    ("#0072B2", (0, (5, 2))),
    ("#009E73", (0, (1, 1))),
    ("#CC79A7", (0, (5, 1.5, 1, 1.5))),
)


def new_axes(*shape: int, size: tuple[float, float] = (6.4, 6.0)) -> Any:
    """Return the axes of a new figure; raise ImportError with instructions if matplotlib is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"displays require matplotlib: pip install 'rocmax[plot]' ({error})") from error
    return plt.subplots(*shape, figsize=size, layout="constrained")[1]
