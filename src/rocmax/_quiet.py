"""Kinds of warnings that whoever shows warnings need not show for now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_HUSHED: list[type[Warning]] = []


@contextmanager
def hushed(category: type[Warning]) -> Iterator[None]:
    """Say that warnings of a kind are not worth showing; the filters of Python, which all threads share, are not used.

    Parameters
    ----------
    category : type
        The kind of warnings.
    """
    _HUSHED.append(category)
    try:
        yield
    finally:
        _HUSHED.remove(category)


def is_hushed(category: type[Warning]) -> bool:
    """Whether warnings of a kind need not be shown."""
    return any(issubclass(category, kind) for kind in _HUSHED)
