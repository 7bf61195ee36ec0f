"""What is said about a file that cannot be used."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence


class DataError(ValueError):
    """A file, or a value in it, that cannot be used; the message names both and what is needed."""


def check_columns(path: object, wanted: Sequence[str], present: Sequence[str]) -> None:
    """Refuse names that the file does not have."""
    known = set(present)
    missing = [name for name in wanted if name not in known]
    if not missing:
        return
    near = difflib.get_close_matches(missing[0], present, 1)
    hint = f" (is it {near[0]!r}?)" if near else ""
    raise DataError(f"{path} has no column {_listed(missing)}{hint}; its columns are {_listed(present)}")


def check_distinct(path: object, names: Sequence[str]) -> None:
    """Refuse a header that names two columns alike."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"{path} needs columns of different names; got {_listed(twice)} more than once")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (f", ... ({len(names)} in all)" if len(names) > 10 else "")
