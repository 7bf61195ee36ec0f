"""Display of the plan of the columns."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rocmax._messages import render
from rocmax.cli._checks import as_flag
from rocmax.cli._screen import screen, show_table

# Columns that are used and shown, of tables with many.
MAX_SHOWN = 40


def show_plan(plan: list[Any]) -> None:
    """Print the plan of the columns on standard error: all that are left out, and the first of those used."""
    used = [column for column in plan if column.used]
    shown = [column for column in plan if not column.used or column in used[:MAX_SHOWN]]
    if plan:
        show_table(["column", "kind", "missing", "levels", "use"], [_row(column) for column in shown], screen)
    if len(used) > MAX_SHOWN:
        kinds = Counter(column.kind for column in used[MAX_SHOWN:])
        screen.print("and " + ", ".join(f"{count:,} of kind {kind}" for kind, count in kinds.items()) + ", used")


def _row(column: Any) -> list[str]:
    missing, levels = ("" if value is None else f"{value:,}" for value in (column.missing, column.levels))
    reason = render(column.reason, as_flag)
    use = ("used" if column.used else "left out") + (f": {reason}" if reason else "")
    return [column.name, column.kind, missing, levels, use]
