"""Validation of parameters shared by losses and measures: the range of false-positive rates, ``k`` and ``beta``."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

# Relative tolerance for rounding errors in products of fractions and counts.
_ROUNDING = 1e-9
# Minimum relative width of a window: the ends of a narrower one could be rounded to the same number of negatives.
_NARROWEST = 1e-8
# Minimum absolute width of a window: dividing by a smaller width can overflow.
_LEAST_WIDTH = 1e-15


def check_window(min_fpr: Any, max_fpr: Any, *, any_width: bool = False) -> None:
    """Raise ValueError if a window does not satisfy ``0 <= min_fpr < max_fpr <= 1`` or is too narrow.

    ``any_width=True`` disables the check of the width. An area under a curve is defined for a window of any width;
    quantities that count the negatives in the window are not.
    """
    numbers = all(isinstance(rate, Real) and not isinstance(rate, bool) for rate in (min_fpr, max_fpr))
    if not (numbers and 0 <= min_fpr < max_fpr <= 1):
        raise ValueError(
            f"min_fpr and max_fpr must satisfy 0 <= min_fpr < max_fpr <= 1; "
            f"got min_fpr={min_fpr!r}, max_fpr={max_fpr!r}"
        )
    least = max(_NARROWEST * max_fpr, _LEAST_WIDTH)
    if not any_width and max_fpr - min_fpr < least:
        raise ValueError(
            f"max_fpr - min_fpr must be at least {least:g}, because of rounding errors; "
            f"got min_fpr={min_fpr!r}, max_fpr={max_fpr!r}"
        )


def check_corner(min_fpr: Any, max_fpr: Any, min_tpr: Any) -> None:
    """Raise ValueError if a window, or the range of true-positive rates above ``min_tpr``, is invalid or too narrow."""
    check_window(min_fpr, max_fpr)
    check_floor(min_tpr)
    if 1 - float(min_tpr) < _NARROWEST:
        raise ValueError(f"1 - min_tpr must be at least {_NARROWEST:g}, because of rounding errors; got {min_tpr!r}")


def window_end(total: float, rate: float) -> float:
    """Return ``total * rate``, corrected for rounding error.

    ``100 * 0.07`` is slightly larger than 7 in floating point, which would include a small part of the eighth
    negative. A product within the rounding error of an integer is rounded to that integer.
    """
    end = total * rate
    nearest = float(round(end))
    return nearest if abs(end - nearest) <= _ROUNDING * nearest else end


def check_top(k: Any) -> None:
    """Raise ValueError if ``k`` is neither a count (an integer >= 1) nor a fraction (a float in (0, 1])."""
    if isinstance(k, bool) or not isinstance(k, Real):
        raise ValueError(f"k must be an integer count or a float fraction; got {k!r}")
    if isinstance(k, Integral):
        if int(k) < 1:
            raise ValueError(f"k as a count must be at least 1; got {k!r}")
    elif not 0 < float(k) <= 1:
        raise ValueError(f"k as a fraction must be above 0 and at most 1; got {k!r} (a count must be an int)")


def top_weight(k: Any, total: float) -> float:
    """Return the weight of the top ``k`` rows in a sample with the given total weight."""
    check_top(k)
    if not isinstance(k, Integral):
        return window_end(total, float(k))
    if int(k) > total * (1 + _ROUNDING):
        raise ValueError(f"k as a count must be from 1 to the total weight, {total:g}; got {k!r}")
    return float(int(k))


def check_rate(name: str, rate: Any) -> None:
    """Raise ValueError if a rate is not between 0 and 1."""
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) <= 1:
        raise ValueError(f"{name} must be between 0 and 1; got {rate!r}")


def check_floor(min_tpr: Any) -> None:
    """Raise ValueError if a lower limit on the true-positive rate is not at least 0 and below 1."""
    if isinstance(min_tpr, bool) or not isinstance(min_tpr, Real) or not 0 <= float(min_tpr) < 1:
        raise ValueError(f"min_tpr must be at least 0 and below 1; got {min_tpr!r}")


def check_region(min_tpr: Any, max_fpr: Any) -> None:
    """Raise ValueError if the region above a TPR and left of an FPR is empty or outside the unit square."""
    numbers = all(isinstance(rate, Real) and not isinstance(rate, bool) for rate in (min_tpr, max_fpr))
    if not (numbers and 0 <= min_tpr < 1 and 0 < max_fpr <= 1):
        raise ValueError(
            f"min_tpr and max_fpr must satisfy 0 <= min_tpr < 1 and 0 < max_fpr <= 1; "
            f"got min_tpr={min_tpr!r}, max_fpr={max_fpr!r}"
        )


def check_beta(beta: Any) -> None:
    """Raise ValueError if ``beta`` is not a finite number greater than 0."""
    if isinstance(beta, bool) or not isinstance(beta, Real) or not 0 < float(beta) < float("inf"):
        raise ValueError(f"beta must be a finite number > 0; got {beta!r}")
