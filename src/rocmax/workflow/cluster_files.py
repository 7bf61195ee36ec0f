"""Parquet files that the workers of a cluster read: which they are, and whether they belong together."""

from __future__ import annotations

import glob
import importlib
import re
from functools import reduce
from typing import Any, NamedTuple

from rocmax._messages import Message, Parameter, ParameterError
from rocmax._packages import need
from rocmax.backends.dask.tasks import Tasks
from rocmax.data import DataError

_ENDINGS = (".parquet", ".pq")


class _Schema(NamedTuple):
    """A file, and the kind of each of its columns; None if a column has no values."""

    path: str
    kinds: dict[str, str | None]


def cluster_table(tasks: Tasks, files: Any) -> Any:
    """Return parquet files as a dask DataFrame.

    Raises DataError if a file does not exist, or if it has other columns than the first one, or other kinds of values.

    Parameters
    ----------
    tasks : Tasks
        Tasks on the cluster.
    files : str, Path or list of them
        Files or patterns.
    """
    need("dask")
    given = files if isinstance(files, list | tuple) else [files]
    # The two slashes of an address become one in a Path.
    names = [re.sub(r"^(\w{2,}):/(?!/)", r"\1://", str(name)) for name in given]
    for name in names:
        if not name.endswith(_ENDINGS):
            raise ParameterError(Message(Parameter("dask"), f" requires parquet files; got {name}"))
    tasks.reduce(_schema, _common, [path for name in names for path in _found(name)])
    return importlib.import_module("dask.dataframe").read_parquet(names)


def _found(name: str) -> list[str]:
    """Return the files of a name, a pattern or a directory with the name of a file, as dask writes them."""
    system, path = importlib.import_module("fsspec.core").url_to_fs(name)
    if system.isfile(path):
        return [name]
    if not system.exists(path) and not glob.has_magic(path):
        raise DataError(f"{name} does not exist")
    roots = [path] if system.isdir(path) else system.glob(path)
    found = sorted(each for root in roots for each in system.find(root) if each.endswith(_ENDINGS))
    if not found:
        raise DataError(f"no file matches {name!r}")
    return [system.unstrip_protocol(each) if "://" in name else each for each in found]


def _schema(path: str) -> _Schema:
    parquet = importlib.import_module("pyarrow.parquet")
    try:
        with importlib.import_module("fsspec").open(path, "rb") as file:
            schema = parquet.read_schema(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    return _Schema(path, {field.name: _kind(field.type) for field in schema})


def _kind(of: Any) -> str | None:
    types = importlib.import_module("pyarrow").types
    if types.is_dictionary(of):
        return _kind(of.value_type)
    if types.is_null(of):
        return None
    if types.is_integer(of) or types.is_floating(of) or types.is_decimal(of):
        return "numbers"
    if types.is_temporal(of):
        return "dates"
    return "text" if types.is_string(of) or types.is_large_string(of) or types.is_string_view(of) else str(of)


def _common(schemas: list[_Schema]) -> _Schema:
    return reduce(_pair, schemas)


def _pair(first: _Schema, other: _Schema) -> _Schema:
    """Return the kinds of the columns of two files, or raise an error that names the second one."""
    lacking = [name for name in first.kinds if name not in other.kinds]
    extra = [name for name in other.kinds if name not in first.kinds]
    if lacking or extra:
        found = f"no column {lacking[0]!r}" if lacking else f"the column {extra[0]!r}"
        raise DataError(f"{other.path} must have the columns of {first.path}; got {found}")
    for name, kind in first.kinds.items():
        got = other.kinds[name]
        if kind != got and None not in (kind, got):
            raise DataError(f"column {name!r} of {other.path} must have {kind}, as in {first.path}; got {got}")
    return _Schema(first.path, {name: kind or other.kinds[name] for name, kind in first.kinds.items()})
