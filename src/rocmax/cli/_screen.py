"""Output to the user: messages and progress on standard error, results on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

screen = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")


def show_json(value: Any) -> None:
    """Print the result as JSON."""
    say(json.dumps(value, indent=2))


def show_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table, with borders on a terminal and without in a pipe."""
    out = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 200)
    table = Table(*columns, box=None if not sys.stdout.isatty() else Table().box, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    out.print(table)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a status on a terminal while the block runs."""
    if not screen.is_terminal:
        yield
        return
    with screen.status(text):
        yield


@contextmanager
def counting(text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar, which is shown on a terminal only."""
    if not screen.is_terminal:
        yield lambda count: None
        return
    bar = Progress(
        TextColumn(text),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
    )
    with bar:
        task = bar.add_task(text, total=total)
        yield lambda count: bar.advance(task, count)
