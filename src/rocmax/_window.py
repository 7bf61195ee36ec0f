"""Parameters that losses and measures share: the window of false-positive rates, the top k, and beta."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

# A number this close to a limit, relatively, is at the limit: products of fractions and counts round.
_DUST = 1e-9
# Ends of a window closer than this, relatively, could be rounded to the same number of negatives.
_NARROWEST = 1e-8
# Rates below this overflow where they are divided by.
_LEAST_WIDTH = 1e-15


def check_window(min_fpr: Any, max_fpr: Any, *, any_width: bool = False) -> None:
    """Raise ValueError if a window is not ``0 <= min_fpr < max_fpr <= 1`` or too narrow, naming both ends.

    An area under a curve is defined for a window of any width; what counts negatives in the window is not.
    """
    numbers = all(isinstance(rate, Real) and not isinstance(rate, bool) for rate in (min_fpr, max_fpr))
    if not (numbers and 0 <= min_fpr < max_fpr <= 1):
        raise ValueError(
            f"the window of false-positive rates needs 0 <= min_fpr < max_fpr <= 1; "
            f"got min_fpr={min_fpr!r}, max_fpr={max_fpr!r}"
        )
    least = max(_NARROWEST * max_fpr, _LEAST_WIDTH)
    if not any_width and max_fpr - min_fpr < least:
        raise ValueError(
            f"the window of false-positive rates needs a width of at least {least:g}, or rounding closes it; "
            f"got min_fpr={min_fpr!r}, max_fpr={max_fpr!r}"
        )


def window_end(total: float, rate: float) -> float:
    """Return ``total * rate`` without floating-point dust.

    ``100 * 0.07`` is a little above 7 in floating point; taken at its word it would open a sliver of the eighth
    negative. A product this close to a whole number is that number.
    """
    end = total * rate
    nearest = float(round(end))
    return nearest if abs(end - nearest) <= _DUST * nearest else end


def check_top(k: Any) -> None:
    """Refuse a ``k`` that is neither a count (an integer >= 1) nor a fraction (a float above 0, at most 1)."""
    if isinstance(k, bool) or not isinstance(k, Real):
        raise ValueError(f"k needs to be an integer count or a float fraction; got {k!r}")
    if isinstance(k, Integral):
        if int(k) < 1:
            raise ValueError(f"k as a count needs to be at least 1; got {k!r}")
    elif not 0 < float(k) <= 1:
        raise ValueError(f"k as a fraction needs to be above 0 and at most 1; got {k!r} (a count is an int)")


def top_weight(k: Any, total: float) -> float:
    """Return the weight at the top that ``k`` stands for, in a sample of the given total weight."""
    check_top(k)
    if not isinstance(k, Integral):
        return window_end(total, float(k))
    if int(k) > total * (1 + _DUST):
        raise ValueError(f"k as a count needs to be from 1 to the total weight, {total:g}; got {k!r}")
    return float(int(k))


def check_rate(name: str, rate: Any) -> None:
    """Raise ValueError if a rate is not between 0 and 1."""
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) <= 1:
        raise ValueError(f"{name} needs to be between 0 and 1; got {rate!r}")


def check_region(min_tpr: Any, max_fpr: Any) -> None:
    """Raise ValueError if the region above a TPR and left of an FPR is empty or outside the unit square."""
    numbers = all(isinstance(rate, Real) and not isinstance(rate, bool) for rate in (min_tpr, max_fpr))
    if not (numbers and 0 <= min_tpr < 1 and 0 < max_fpr <= 1):
        raise ValueError(
            f"the region needs 0 <= min_tpr < 1 and 0 < max_fpr <= 1; got min_tpr={min_tpr!r}, max_fpr={max_fpr!r}"
        )


def check_beta(beta: Any) -> None:
    """Raise ValueError if the weight of the recall is not a finite number above 0."""
    if isinstance(beta, bool) or not isinstance(beta, Real) or not 0 < float(beta) < float("inf"):
        raise ValueError(f"beta needs a finite number > 0; got {beta!r}")
