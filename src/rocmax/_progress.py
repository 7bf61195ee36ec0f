"""Progress of long steps, for a listener such as a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Listener = Callable[[str, int, int | None], None]
Item = TypeVar("Item")

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_part: ContextVar[str] = ContextVar("part", default="")


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Call a function with each stage while the block runs."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(text: str) -> Iterator[None]:
    """Put a text before the name of each stage while the block runs, such as "family 2 of 3"; parts may be nested."""
    token = _part.set(f"{_part.get()}{text}: ")
    try:
        yield
    finally:
        _part.reset(token)


def stage(text: str, done: int = 0, total: int | None = None) -> None:
    """Tell the listener, if there is one, what is done now, and how much of it."""
    listener = _listener.get()
    if listener is not None:
        listener(_part.get() + text, done, total)


def counted(text: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, and report each of them as a stage."""
    for number, item in enumerate(items, 1):
        stage(f"{text} {number} of {len(items)}", number - 1, len(items))
        yield item


class CountedScorer:
    """Scorer that reports each call, to count the fits of a search.

    Parameters
    ----------
    scorer : callable
        The scorer.
    text : str
        What is done.
    total : int
        Number of calls.
    """

    def __init__(self, scorer: Callable[..., float], text: str, total: int) -> None:
        self._scorer, self._text, self._total, self._done = scorer, text, total, 0

    def __call__(self, *args: Any, **kwargs: Any) -> float:
        """Return the score."""
        value = self._scorer(*args, **kwargs)
        self._done += 1
        stage(f"{self._text}: fit {self._done} of {self._total}", self._done, self._total)
        return value
