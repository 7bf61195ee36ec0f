"""Line search on the slope of a convex function of one variable."""

from __future__ import annotations

import math
from collections.abc import Callable


def find_zero(
    slope: Callable[[float], float], slope_at_zero: float, *, rtol: float, largest: float, max_evals: int
) -> float:
    """Return a step at which an increasing ``slope`` is close to zero; always the last step that was evaluated.

    The search starts at 1. While the slope is negative, the step is extrapolated from the last two slopes, to at least
    1.25 times and at most three times its length, and a quarter further than a straight line leads: slopes of losses
    that flatten near their minimum fall behind it. Then the search interpolates between the ends of the bracket, with a
    distance of at least a tenth of its length to both, until ``|slope| <= rtol * |slope(0)|``. Steps are at most
    ``largest``.
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
            change, distance = now - low_slope, t - low
            low, low_slope = t, now
        else:
            high, high_slope = t, now
        if high is None:
            further = 1.25 * -now * distance / change if change > 0 else math.inf
            t = min(t + min(max(further, 0.25 * t), 2 * t), largest)
        else:
            rise = high_slope - low_slope
            # The difference can be zero due to rounding, or infinite due to overflow.
            share = -low_slope / rise if 0.0 < rise < math.inf else 0.5
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    return t
