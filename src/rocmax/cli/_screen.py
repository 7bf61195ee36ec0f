"""What a person sees: messages and progress on standard error, results on standard output."""

from __future__ import annotations

import functools
import json
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

# Errors whose text is meant for the user; anything else is a fault of the program and shows where.
USER_ERRORS = (ValueError, OSError, ImportError, TypeError)

screen = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
# Kinds of warnings that are not printed for now.
_HUSHED: list[type[Warning]] = []
# Texts that this command has printed, each of them once.
_SHOWN: set[str] = set()


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into one line and an exit code: 1 for bad data, 2 for a bad call (typer's own)."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        # So that files half written are removed when a job is ended.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            with warnings.catch_warnings():
                # All of them, as a warning that was not printed would keep Python from showing the next one like it.
                warnings.simplefilter("always", UserWarning, append=True)
                _SHOWN.clear()
                warnings.showwarning = _show_warning
                command(*args, **options)
        except USER_ERRORS as error:
            if options.get("verbose"):
                traceback.print_exc()
            screen.print(f"Error: {error}")
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            screen.print("Interrupted")
            raise typer.Exit(130) from None

    return run


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    text = str(message)
    if text not in _SHOWN and not any(issubclass(category, kind) for kind in _HUSHED):
        _SHOWN.add(text)
        screen.print(f"Warning: {text}")


@contextmanager
def hushed(category: type[Warning]) -> Iterator[None]:
    """Print no warnings of a kind. What Python keeps about warnings is left alone."""
    _HUSHED.append(category)
    try:
        yield
    finally:
        _HUSHED.remove(category)


def say(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")


def show_json(value: Any) -> None:
    """Print the result for machines."""
    say(json.dumps(value, indent=2))


def show_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table: with lines on a terminal, plain in a pipe."""
    out = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 200)
    table = Table(*columns, box=None if not sys.stdout.isatty() else Table().box, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    out.print(table)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal that something is under way."""
    if not screen.is_terminal:
        yield
        return
    with screen.status(text):
        yield


@contextmanager
def counting(text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Give a function that moves a progress bar; on a terminal only."""
    bar = Progress(
        TextColumn(text),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
        console=screen,
        disable=not screen.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task(text, total=total)
        yield lambda count: bar.advance(task, count)
