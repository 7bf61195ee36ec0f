"""Svmlight files, read with scikit-learn."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from sklearn.datasets import load_svmlight_file

from rocmax._messages import Message, Parameter
from rocmax.data._files import Source
from rocmax.data.errors import DataError

BLOCK_SIZE = 1 << 23
MAX_LINE = 1 << 28
_LINE = re.compile(rb"\s*(#.*)?$|\s*[^\s:#]+(\s+(qid|\d+):[^\s:#]+)*\s*(#.*)?$")


def parts(source: Source, n_features: int | None, zero_based: bool) -> Iterator[tuple[Any, Any]]:
    """Yield matrices of the same width and labels; if ``n_features`` is None, the file is read twice."""
    if n_features is None:
        n_features = max(X.shape[1] for X, _ in _parsed(source, None, zero_based))
    yield from _parsed(source, n_features, zero_based)


def read(source: Source, n_features: int | None, zero_based: bool) -> tuple[Any, Any]:
    """Return the features and the labels of the whole file."""
    with source.open() as stream:
        X, y = _parse(source, io.BytesIO(stream.read()), n_features, zero_based)
    if y.size == 0:
        raise DataError(f"{source.path} has no rows")
    return X, y


def _parsed(source: Source, n_features: int | None, zero_based: bool) -> Iterator[tuple[Any, Any]]:
    rows = 0
    with source.open() as stream:
        while block := stream.read(BLOCK_SIZE):
            rest = stream.readline(MAX_LINE)
            if len(rest) == MAX_LINE:
                raise DataError(f"{source.path} has a line longer than the limit of {MAX_LINE:,} bytes")
            X, y = _parse(source, io.BytesIO(block + rest), n_features, zero_based)
            if y.size:
                rows += y.size
                yield X, y
    if rows == 0:
        raise DataError(f"{source.path} has no rows")


def _parse(source: Source, content: BinaryIO, n_features: int | None, zero_based: bool) -> tuple[Any, Any]:
    try:
        result: tuple[Any, Any] = load_svmlight_file(content, n_features=n_features, zero_based=zero_based)
        return result
    except (ValueError, OverflowError) as error:
        raise _explained(source, error, n_features) from error


def _explained(source: Source, error: Exception, n_features: int | None) -> DataError:
    text = str(error)
    if "index 0" in text:
        return DataError(Message(f"{source.path} has a feature index 0; pass ", Parameter("zero_based", True)))
    if "n_features was set" in text:
        return DataError(f"{source.path} has more than the requested {n_features} features")
    if isinstance(error, OverflowError):
        return DataError(f"{source.path} has a feature index outside the range of integers")
    with source.open() as stream:
        for number, line in enumerate(stream, 1):
            if not _LINE.match(line):
                shown = line[:60].decode("utf-8", "replace").rstrip()
                return DataError(f"{source.path}, line {number}: must be 'label index:value ...'; got {shown!r}")
    return DataError(f"{source.path} is not an svmlight file: {text}")
