"""Small tools of every package: types, public names, parameters, messages, optional packages, progress."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from itertools import groupby
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Bools = NDArray[np.bool_]
# Row indices for compiled loops.
RowNumbers = NDArray[np.int64]


# Messages that name parameters: in Python as ``target=...``, on the command line as ``--target``.


# What the parameters that the running function takes inside an object are written in, such as ``reading=Reading``.
_holders: ContextVar[Mapping[str, str]] = ContextVar("holders", default=MappingProxyType({}))


@contextmanager
def _setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a context variable while the block runs."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def holding(holders: Mapping[str, str]) -> Iterator[None]:
    """Write some parameters of messages inside an object in Python, such as ``reading=Reading(na=...)``."""
    with _setting(_holders, holders):
        yield


class Parameter(NamedTuple):
    """A parameter named in a message.

    Without a value it is the name alone; with Ellipsis as its value it stands for "give a value here".
    ``within`` is the text around it, which a reader without that parameter is not shown.
    """

    name: str
    value: Any = None
    within: str = "{}"

    def as_keyword(self) -> str:
        """Return the parameter as a keyword of a call."""
        if self.value is None:
            return self.name
        return f"{self.name}={'...' if self.value is ... else repr(self.value)}"


class Message(str):
    """Text for readers of Python that remembers which of its parts name parameters."""

    parts: tuple[str | Parameter, ...]

    def __new__(cls, *parts: str | Parameter) -> Self:
        """Put the parts together; neighbors in one object are written in one."""
        texts: list[str] = []
        for holder, group in groupby(parts, _holder):
            found = list(group)
            if holder is None:
                texts += [_rendered(part, Parameter.as_keyword) for part in found]
                continue
            held = [part for part in found if isinstance(part, Parameter)]
            values = ", ".join(part.as_keyword() for part in held)
            texts.append(held[0].within.format(f"{holder}({values})"))
        message = super().__new__(cls, "".join(texts))
        message.parts = parts
        return message


def _holder(part: str | Parameter) -> str | None:
    """Return what a parameter with a value is written in; a name alone is written as it is."""
    return _holders.get().get(part.name) if isinstance(part, Parameter) and part.value is not None else None


class Caution(Message):
    """Message about a result that should not be used as it is; the command line prints it as a warning."""


class MessageError(ValueError):
    """Error with a text, or with the parts of a message that names parameters."""

    def __init__(self, *parts: str | Parameter) -> None:
        super().__init__(Message(*parts) if len(parts) > 1 else parts[0])


class ParameterError(MessageError):
    """A parameter, or a combination of them, that cannot be used; the command line counts it as a bad call."""


def render(text: object, write: Callable[[Parameter], str | None]) -> str:
    """Return a text with its parameters written in another way; None leaves a parameter out, with the text around it.

    The text is a Message, an exception that was made from one, or anything else, which is written by ``str``.
    """
    if isinstance(text, BaseException) and text.args:
        text = text.args[0]
    return "".join(_rendered(part, write) for part in text.parts) if isinstance(text, Message) else str(text)


def _rendered(part: str | Parameter, write: Callable[[Parameter], str | None]) -> str:
    if not isinstance(part, Parameter):
        return part
    written = write(part)
    return "" if written is None else part.within.format(written)


# Optional packages: what each is for, and the extra that brings it.


_PURPOSES: dict[str, tuple[str, str | None]] = {
    "dask": ("fits on a cluster need", "dask"),
    "distributed": ("fits on a cluster need", "dask"),
    "jinja2": ("reports need", "cli"),
    "lightgbm": ("boosted trees need", "boost"),
    "onnx": ("exporting models needs", "onnx"),
    "openpyxl": ("reading .xlsx files needs", "excel"),
    "pandas": ("tables need", "data"),
    "shap": ("explanations for shap need", None),
    "pyarrow": ("reading tables needs", "data"),
    "skops": ("saving and loading models needs", "io"),
    "xgboost": ("the engine xgboost needs", "xgboost"),
}


def need(package: str) -> Any:
    """Import an optional package; the message of an ImportError says what it is for and how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        purpose, extra = _PURPOSES[package]
        wanted = package if extra is None else f"'rocmax[{extra}]'"
        raise ImportError(f"{purpose} {package}: pip install {wanted} ({error})") from error


# Access to the parameters of immutable objects by name, as in scikit-learn's estimators.


class Parameters:
    """Mixin with ``get_params``; each constructor parameter must be stored under its name.

    Losses, penalties and solvers are immutable: they can be shared, hashed and used as default values. Therefore there
    is no ``set_params``; ``dataclasses.replace`` returns a new object.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of nested objects, as ``part__name``.

        Returns
        -------
        dict
            Parameter names mapped to their values.
        """
        # The fields of a dataclass would miss the parameters of a subclass that has its own constructor.
        listed = inspect.signature(type(self)).parameters
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in listed.values()):
            raise TypeError(f"{type(self).__name__} must name its parameters; its constructor takes *args or **kwargs")
        params = {name: getattr(self, name) for name in listed}
        if deep:
            for name, part in list(params.items()):
                if hasattr(part, "get_params") and not isinstance(part, type):
                    params |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return params


# Checks of the parameters that losses and measures share: rates, ``k`` and ``beta``.


# Minimum relative width of a window: the ends of a narrower one could be rounded to the same number of negatives.
_NARROWEST = 1e-8


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, Real) and not isinstance(value, bool) for value in values)


def check_window(min_fpr: Any, max_fpr: Any, *, any_width: bool = False) -> None:
    """Raise ValueError if a window does not satisfy ``0 <= min_fpr < max_fpr <= 1`` or is too narrow.

    ``any_width=True`` disables the check of the width. An area under a curve is defined for a window of any width;
    quantities that count the negatives in the window are not.
    """
    if not (_are_numbers(min_fpr, max_fpr) and 0 <= min_fpr < max_fpr <= 1):
        raise ValueError(
            f"min_fpr and max_fpr must satisfy 0 <= min_fpr < max_fpr <= 1; "
            f"got min_fpr={min_fpr!r}, max_fpr={max_fpr!r}"
        )
    least = max(_NARROWEST * max_fpr, 1e-15)  # dividing by a smaller width can overflow
    if not any_width and max_fpr - min_fpr < least:
        raise ValueError(
            f"max_fpr - min_fpr must be at least {least:g}, because of rounding errors; "
            f"got min_fpr={min_fpr!r}, max_fpr={max_fpr!r}"
        )


def check_corner(min_fpr: Any, max_fpr: Any, min_tpr: Any) -> None:
    """Raise ValueError if a window, or the range of true-positive rates above ``min_tpr``, is invalid or too narrow."""
    check_window(min_fpr, max_fpr)
    check_floor(min_tpr)
    if 1 - float(min_tpr) < _NARROWEST:
        raise ValueError(f"1 - min_tpr must be at least {_NARROWEST:g}, because of rounding errors; got {min_tpr!r}")


def check_top(k: Any) -> None:
    """Raise ValueError if ``k`` is neither a count (an integer >= 1) nor a fraction (a float in (0, 1])."""
    if not _are_numbers(k):
        raise ValueError(f"k must be an integer count or a float fraction; got {k!r}")
    if isinstance(k, Integral):
        if int(k) < 1:
            raise ValueError(f"k as a count must be at least 1; got {k!r}")
    elif not 0 < float(k) <= 1:
        raise ValueError(f"k as a fraction must be above 0 and at most 1; got {k!r} (a count must be an int)")


def check_rate(name: str, rate: Any) -> None:
    """Raise ValueError if a rate is not between 0 and 1."""
    if not (_are_numbers(rate) and 0 <= rate <= 1):
        raise ValueError(f"{name} must be between 0 and 1; got {rate!r}")


def check_floor(min_tpr: Any) -> None:
    """Raise ValueError if a lower limit on the true-positive rate is not at least 0 and below 1."""
    if not (_are_numbers(min_tpr) and 0 <= min_tpr < 1):
        raise ValueError(f"min_tpr must be at least 0 and below 1; got {min_tpr!r}")


def check_beta(beta: Any) -> None:
    """Raise ValueError if ``beta`` is not a finite number greater than 0."""
    if not (_are_numbers(beta) and 0 < beta < float("inf")):
        raise ValueError(f"beta must be a finite number > 0; got {beta!r}")


# Progress of long steps, for a listener such as a progress bar.


Listener = Callable[[str, int, int | None], None]
Item = TypeVar("Item")

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_part: ContextVar[str] = ContextVar("part", default="")


def listening(listener: Listener | None) -> AbstractContextManager[None]:
    """Call a function with each stage while the block runs."""
    return _setting(_listener, listener)


def part(text: str) -> AbstractContextManager[None]:
    """Put a text before the name of each stage while the block runs, such as "family 2 of 3"; parts may be nested."""
    return _setting(_part, f"{_part.get()}{text}: ")


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


# Warnings: where they point to, and kinds that whoever shows them need not show for now.


def stack_level() -> int:
    """Return the ``stacklevel`` with which the caller's warning points to the call from outside of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "rocmax":
        frame, level = frame.f_back, level + 1
    return level


_HUSHED: list[type[Warning]] = []


@contextmanager
def hushed(category: type[Warning]) -> Iterator[None]:
    """Say that warnings of a kind are not worth showing; the filters of Python, which all threads share, stay."""
    _HUSHED.append(category)
    try:
        yield
    finally:
        _HUSHED.remove(category)


def is_hushed(category: type[Warning]) -> bool:
    """Whether warnings of a kind need not be shown."""
    return any(issubclass(category, kind) for kind in _HUSHED)
