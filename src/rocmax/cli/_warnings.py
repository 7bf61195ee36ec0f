"""Display of the warnings of a command: each text once, on one line."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rocmax._quiet import is_hushed


@contextmanager
def warnings_shown(show: Callable[[str], None]) -> Iterator[None]:
    """Call ``show`` once with the text of each warning; for commands, which do not share the process."""
    seen: set[str] = set()

    def note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        text = str(message)
        if text not in seen and not is_hushed(category):
            seen.add(text)
            show(text)

    with warnings.catch_warnings():
        # With its default filter, Python would count a suppressed warning as shown.
        warnings.simplefilter("always", UserWarning, append=True)
        warnings.showwarning = note
        yield
