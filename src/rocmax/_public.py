"""Public module paths of classes and functions."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any


def set_public_module(public: str, namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Set the ``__module__`` of classes and functions to the public module that exports them, as NumPy and SciPy do.

    Pickles, model files, reprs and the documentation then use the public path, independent of the file of the
    definition. A package calls this function at the end of its ``__init__``.

    Parameters
    ----------
    public : str
        The public module.
    namespace : dict
        The ``globals()`` of the calling package.
    names : iterable of str
        Names to process; objects that are not classes or functions, or are from other packages, are not changed.
    """
    for name in names:
        value = namespace[name]
        ours = (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("rocmax.")
        if ours and value.__name__ == name:
            value.__module__ = public
