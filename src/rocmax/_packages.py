"""Optional packages: what each is for, and the extra that brings it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

_PURPOSES = {
    "dask": ("fits on a cluster need", "dask"),
    "distributed": ("fits on a cluster need", "dask"),
    "jinja2": ("reports need", "cli"),
    "lightgbm": ("boosted trees need", "boost"),
    "onnx": ("exporting models needs", "onnx"),
    "openpyxl": ("reading .xlsx files needs", "excel"),
    "pandas": ("tables need", "data"),
    "pyarrow": ("reading tables needs", "data"),
    "skops": ("saving and loading models needs", "cli"),
    "xgboost": ("the engine xgboost needs", "xgboost"),
}


def need(package: str) -> Any:
    """Import an optional package.

    Parameters
    ----------
    package : str
        Its name.

    Returns
    -------
    module
        The package.

    Raises
    ------
    ImportError
        If it cannot be imported; the message says what it is for and how to install it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        purpose, extra = _PURPOSES[package]
        raise ImportError(f"{purpose} {package}: pip install 'rocmax[{extra}]' ({error})") from error


# Adapters of array libraries in scikit-learn. A search for all estimators, as in skops, imports them, and with them the
# libraries that are installed: PyTorch and Dask alone take longer than a fit to a small table.
_ADAPTERS = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch"))


class _AdapterRefusal:
    """Finder of modules that refuses the adapters of array libraries in the thread that made it."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError for an adapter, which a search for estimators skips; leave other modules to others."""
        if name.startswith(_ADAPTERS) and get_ident() == self._thread:
            raise ImportError(f"{name} is not needed")


@contextmanager
def without_array_libraries() -> Iterator[None]:
    """Keep scikit-learn's search for estimators from importing array libraries; imports elsewhere do not change."""
    finder = _AdapterRefusal()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
