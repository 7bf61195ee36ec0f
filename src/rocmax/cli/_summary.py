"""Display of the summary of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocmax.cli._checks import note
from rocmax.cli._options import STDOUT
from rocmax.cli._screen import screen

MAX_NAMED = 5


def show_summary(found: Any, positive: str, out: Path | None) -> None:
    """Print how many rows were scored and flagged, and what was unusual about their values, on standard error."""
    share = f" ({found.positive / found.rows:.1%})" if found.rows else ""
    place = "" if out in (None, STDOUT) else f": {out}"
    screen.print(f"{found.rows} rows, {found.positive}{share} classified as {positive!r}{place}")
    for kind, title in (("missing", "missing values"), ("unknown", "unknown categories")):
        shares = sorted(found.shares[kind].items(), key=lambda entry: -entry[1])
        if shares:
            named = ", ".join(f"{name!r} {value:.1%}" for name, value in shares[:MAX_NAMED])
            more = f" and {len(shares) - MAX_NAMED} more columns" if len(shares) > MAX_NAMED else ""
            screen.print(f"{title}: {named}{more}")
    for text in found.notes:
        note(text)
    for warning in found.warnings:
        screen.print(f"Warning: {warning}")
