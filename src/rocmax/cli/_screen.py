"""Output to the user: messages and progress on standard error, results on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
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


@contextmanager
def aside(on: bool) -> Iterator[None]:
    """Print results on standard error while the block runs, because standard output has the content of a file."""
    if not on:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def show_table(columns: list[str], rows: list[list[str]], console: Console | None = None) -> None:
    """Print a table, with borders on a terminal and without in a pipe; on standard output if no console is given."""
    terminal = sys.stdout.isatty() if console is None else console.is_terminal
    out = console or Console(highlight=False, markup=False)
    table = Table(*columns, box=None if not terminal else Table().box, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    out.print(table, width=None if terminal else 200, crop=False)


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
