"""The window of false-positive rates: one check and one rounding rule for losses and measures."""

from __future__ import annotations

from numbers import Real
from typing import Any


def check_window(min_fpr: Any, max_fpr: Any) -> None:
    """Refuse a window that is not ``0 <= min_fpr < max_fpr <= 1``, naming both ends."""
    numbers = all(isinstance(rate, Real) and not isinstance(rate, bool) for rate in (min_fpr, max_fpr))
    if not (numbers and 0 <= min_fpr < max_fpr <= 1):
        raise ValueError(
            f"the window of false-positive rates needs 0 <= min_fpr < max_fpr <= 1; "
            f"got min_fpr={min_fpr!r}, max_fpr={max_fpr!r}"
        )


def window_end(total: float, rate: float) -> float:
    """Return ``total * rate`` without floating-point dust.

    ``100 * 0.07`` is a little above 7 in floating point; taken at its word it would open a sliver of the eighth
    negative. A product this close to a whole number is that number.
    """
    end = total * rate
    nearest = float(round(end))
    return nearest if abs(end - nearest) <= 1e-9 * nearest else end
