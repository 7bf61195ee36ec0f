"""Warnings of a command: one line each, printed once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Kinds of warnings that are not printed for now.
_HUSHED: list[type[Warning]] = []


@contextmanager
def warnings_shown(show: Callable[[str], None]) -> Iterator[None]:
    """Pass the text of each warning on once, while a command runs: it has the process for itself."""
    seen: set[str] = set()

    def note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        text = str(message)
        if text not in seen and not any(issubclass(category, kind) for kind in _HUSHED):
            seen.add(text)
            show(text)

    with warnings.catch_warnings():
        # Python itself would take a warning that was hushed for one that was shown.
        warnings.simplefilter("always", UserWarning, append=True)
        warnings.showwarning = note
        yield


@contextmanager
def hushed(category: type[Warning]) -> Iterator[None]:
    """Print no warnings of a kind."""
    _HUSHED.append(category)
    try:
        yield
    finally:
        _HUSHED.remove(category)
