"""Line search on the slope of a convex function of one variable."""

from __future__ import annotations

import math
from collections.abc import Callable


def find_zero(
    slope: Callable[[float], float], slope_at_zero: float, *, rtol: float, largest: float, max_evals: int
) -> float:
    """Return a step at which an increasing ``slope`` is small; always the last step that was evaluated.

    Starts at 1, doubles while the slope is negative, then interpolates between the ends, never closer than a tenth to
    either, until ``|slope| <= rtol * |slope(0)|``. A step that would pass ``largest`` stops there.
    """
    low, low_slope = 0.0, slope_at_zero
    high, high_slope = None, 0.0
    t = min(1.0, largest)
    for evals in range(1, max_evals + 1):
        now = slope(t)
        if abs(now) <= rtol * abs(slope_at_zero) or evals == max_evals:
            break
        if now < 0:
            if t >= largest:
                break
            low, low_slope = t, now
        else:
            high, high_slope = t, now
        if high is None:
            t = min(2 * t, largest)
        else:
            rise = high_slope - low_slope
            # Rounding can make the ends equal, and an overflow infinite.
            share = -low_slope / rise if 0.0 < rise < math.inf else 0.5
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    return t
