"""Warnings of a command: one line each, printed once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rocmax._quiet import is_hushed


@contextmanager
def warnings_shown(show: Callable[[str], None]) -> Iterator[None]:
    """Pass the text of each warning on once, while a command runs: it has the process for itself."""
    seen: set[str] = set()

    def note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        text = str(message)
        if text not in seen and not is_hushed(category):
            seen.add(text)
            show(text)

    with warnings.catch_warnings():
        # Python itself would take a warning that was hushed for one that was shown.
        warnings.simplefilter("always", UserWarning, append=True)
        warnings.showwarning = note
        yield
