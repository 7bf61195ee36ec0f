"""Output to the user: messages and progress on standard error, results on standard output."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

# Characters in names of files and columns that a terminal would obey instead of showing them: controls, except for line
# breaks and tabs, and those that change the direction of text.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Return a text in which the characters that a terminal would obey are written as escapes, such as \x1b."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


class _Screen(Console):
    """Console that shows what names contain, and does not obey it."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; text is made visible."""
        super().print(*(visible(each) if isinstance(each, str) else each for each in objects), **options)


screen = _Screen(stderr=True, highlight=False, markup=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(visible(text) + "\n")


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
    table = Table(*map(visible, columns), box=None if not terminal else Table().box, pad_edge=False)
    for row in rows:
        table.add_row(*(visible(cell).replace("\n", "\\n") for cell in row))
    out.print(table, width=None if terminal else 200, crop=False)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a status on a terminal while the block runs."""
    if not screen.is_terminal:
        yield
        return
    with screen.status(visible(text)):
        yield


@contextmanager
def stages(text: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield a function that shows what is done, with a bar and the time, on a terminal only."""
    if not screen.is_terminal:
        yield lambda text, done, total: None
        return
    with _bar(SpinnerColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task(visible(text), total=None)
        yield lambda text, done, total: bar.update(task, description=visible(text), completed=done, total=total)


@contextmanager
def counting(
    text: str, total: int | None = None, named: Callable[[int], str] | None = None
) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar, which is shown on a terminal only.

    Parameters
    ----------
    text : str
        What is counted.
    total : int or None, default=None
        Total, if it is known.
    named : callable or None, default=None
        Function that describes what comes after a count.
    """
    if not screen.is_terminal:
        yield lambda count: None
        return
    with _bar(TextColumn("{task.completed:,.0f}"), TimeRemainingColumn()) as bar:
        task = bar.add_task(text if named is None else f"{text}: {named(0)}", total=total)

        def advance(count: int) -> None:
            bar.advance(task, count)
            if named is not None:
                bar.update(task, description=f"{text}: {named(int(bar.tasks[0].completed))}")

        yield advance


def _bar(*more: Any) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), *more, TimeElapsedColumn())
    return Progress(*columns, console=screen, transient=True, refresh_per_second=4)


def task_name(models: int, splits: int, done: int) -> str:
    """Return which fit of a comparison comes after a number of fits."""
    if done >= models * splits:
        return "done"
    return f"model {done % models + 1} of {models}, split {done // models + 1} of {splits}"
