"""Sizes in bytes, given as numbers or strings."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {f"{prefix}IB": 1024**power for power, prefix in enumerate("KMGT", 1)}


def parse_bytes(name: str, size: Any) -> int:
    """Return a size in bytes; a string may have a unit such as "MB" or "GiB"."""
    if isinstance(size, int | float) and not isinstance(size, bool) and 1 <= size < float("inf"):
        return int(size)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size) if isinstance(size, str) else None
    if found is None or found[2].upper() not in _UNITS or float(found[1]) * _UNITS[found[2].upper()] < 1:
        raise ValueError(f"{name} must be a number of bytes or a string such as '500MB' or '2GiB'; got {size!r}")
    return int(float(found[1]) * _UNITS[found[2].upper()])
