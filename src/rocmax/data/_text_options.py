"""How values are written in a text table."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from rocmax._messages import Message, Parameter, ParameterError

# Every value is looked up in this list, so a longer list is slower.
MISSING = ("", " ", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
UTF8 = "utf-8"


@dataclass(frozen=True)
class TextOptions:
    """Delimiter, decimal point, thousands separator, further marks for missing values, and encoding of a table.

    A delimiter or an encoding that is None is to be detected.
    """

    delimiter: str | None = None
    decimal: str = "."
    thousands: str | None = None
    na: tuple[str, ...] = ()
    encoding: str | None = None

    @property
    def missing(self) -> list[str]:
        """Fields that are missing values, with a space on either side for marks that were passed."""
        marks = [form for mark in self.na for form in (mark, f" {mark}", f"{mark} ")]
        return [*MISSING, *marks]


def text_options(
    delimiter: str | None, decimal: str, thousands: str | None, na: str | Sequence[str], encoding: str | None
) -> TextOptions:
    """Return the options after checking them; raise ParameterError if one is invalid."""
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ParameterError(Message(Parameter("delimiter"), f" must be one character; got {delimiter!r}"))
    if decimal not in (".", ","):
        raise ParameterError(Message(Parameter("decimal"), f" must be '.' or ','; got {decimal!r}"))
    if thousands is not None and (not isinstance(thousands, str) or len(thousands) != 1 or thousands.isalnum()):
        needed = " must be one character that is neither a letter nor a digit"
        raise ParameterError(Message(Parameter("thousands"), f"{needed}; got {thousands!r}"))
    if thousands == decimal:
        both = Message(Parameter("thousands"), " and ", Parameter("decimal"), f" must differ; got {decimal!r} for both")
        raise ParameterError(both)
    marks = (na,) if isinstance(na, str) else tuple(na)
    if any(not isinstance(mark, str) for mark in marks):
        raise ParameterError(Message(Parameter("na"), f" must be text; got {marks!r}"))
    return TextOptions(delimiter, decimal, thousands, tuple(mark.strip() for mark in marks), _encoding(encoding))


def _encoding(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        return codecs.lookup(name).name
    except (LookupError, TypeError):
        needed = " must be the name of a text encoding, such as latin-1 or cp1252"
        raise ParameterError(Message(Parameter("encoding"), f"{needed}; got {name!r}")) from None
