"""Public paths: where a public class or function says that it lives."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any


def set_public_module(public: str, namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Give classes and functions the name of the public module that exports them, as NumPy and SciPy do.

    Pickles, model files, reprs and documents then name the public path, whatever file the definition is in. A package
    calls this at the end of its ``__init__``.

    Parameters
    ----------
    public : str
        The public module.
    namespace : dict
        The ``globals()`` of the package that calls.
    names : iterable of str
        What to mark; values that are no classes or functions, and those of other packages, are left alone.
    """
    for name in names:
        value = namespace[name]
        ours = (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("rocmax.")
        if ours and value.__name__ == name:
            value.__module__ = public
