"""Errors about files that cannot be used."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence


class DataError(ValueError):
    """Error about a file, or a value in it, that cannot be used; the message names both and the requirement."""


def check_columns(path: object, wanted: Sequence[str], present: Sequence[str]) -> None:
    """Raise DataError if the file does not have all the wanted columns."""
    known = set(present)
    missing = [name for name in wanted if name not in known]
    if not missing:
        return
    near = difflib.get_close_matches(missing[0], present, 1)
    hint = f" (is it {near[0]!r}?)" if near else ""
    raise DataError(f"{path} has no column {_listed(missing)}{hint}; its columns are {_listed(present)}")


def check_names(columns: Sequence[str] | None) -> None:
    """Raise ValueError if a name is given twice, or a text for all names: it would be a list of characters."""
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names; got the text {columns!r}. For one column: [{columns!r}]")
    twice = _repeated(columns or ())
    if twice:
        raise ValueError(f"columns must be distinct; got {_listed(twice)} more than once")


def check_distinct(path: object, names: Sequence[str]) -> None:
    """Raise DataError if two columns have the same name."""
    twice = _repeated(names)
    if twice:
        raise DataError(f"{path} must have distinct column names; got {_listed(twice)} more than once")


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (f", ... ({len(names)} in all)" if len(names) > 10 else "")
