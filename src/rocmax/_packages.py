"""Optional packages: what each is for, and the extra that brings it."""

from __future__ import annotations

import importlib
from typing import Any

_PURPOSES = {
    "dask": ("fits on a cluster need", "dask"),
    "distributed": ("fits on a cluster need", "dask"),
    "jinja2": ("reports need", "cli"),
    "lightgbm": ("boosted trees need", "boost"),
    "onnx": ("exporting models needs", "onnx"),
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
