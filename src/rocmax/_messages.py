"""Messages that name parameters: in Python as ``target=...``, on the command line as ``--target``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self


class Parameter(NamedTuple):
    """A parameter named in a message.

    Without a value it is the name alone; with Ellipsis as its value it stands for "give a value here".
    ``within`` is the text around it, which a reader without that parameter is not shown.
    """

    name: str
    value: Any = None
    within: str = "{}"

    def in_python(self) -> str:
        """Return the parameter as it is written in a call."""
        if self.value is None:
            return self.name
        return f"{self.name}={'...' if self.value is ... else repr(self.value)}"


class Message(str):
    """Text for readers of Python that remembers which of its parts name parameters."""

    parts: tuple[str | Parameter, ...]

    def __new__(cls, *parts: str | Parameter) -> Self:
        """Put the parts together."""
        text = "".join(_rendered(part, Parameter.in_python) for part in parts)
        message = super().__new__(cls, text)
        message.parts = parts
        return message


class Caution(Message):
    """Message about a result that should not be used as it is; the command line prints it as a warning."""


class ParameterError(ValueError):
    """A parameter, or a combination of them, that cannot be used; the command line counts it as a bad call."""


def render(text: object, write: Callable[[Parameter], str | None]) -> str:
    """Return a text with its parameters written in another way.

    Parameters
    ----------
    text : object
        A Message; an exception that was made from one; anything else is written as it is by ``str``.
    write : callable
        Turns a Parameter into text; None leaves it out, with the text around it.

    Returns
    -------
    str
        The text.
    """
    if isinstance(text, BaseException) and text.args:
        text = text.args[0]
    return "".join(_rendered(part, write) for part in text.parts) if isinstance(text, Message) else str(text)


def _rendered(part: str | Parameter, write: Callable[[Parameter], str | None]) -> str:
    if not isinstance(part, Parameter):
        return part
    written = write(part)
    return "" if written is None else part.within.format(written)
