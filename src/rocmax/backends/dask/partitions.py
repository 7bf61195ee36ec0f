"""Partitions of dask collections: how they are divided, loaded on a worker and checked there."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._packages import need
from rocmax._sparse import canonical_csr
from rocmax.data import DataError


class LoadedPart(NamedTuple):
    """Rows, labels and weights of a partition, in the memory of a worker."""

    number: int
    X: Any
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    names: list[str] | None


def split(X: Any, y: Any, sample_weight: Any = None) -> list[Any]:
    """Return one delayed :class:`LoadedPart` per partition of dask collections; parameters as in :func:`pieces`."""
    return [load(number, piece) for number, piece in enumerate(pieces(X, y, sample_weight))]


def load(number: int, piece: tuple[Any, Any, Any], again: bool = False) -> Any:
    """Return a delayed :class:`LoadedPart`.

    With ``again``, all its tasks have new names: the scheduler may still assign the old ones to a lost worker.
    """
    if again:
        clone = importlib.import_module("dask.graph_manipulation").clone
        piece = tuple(None if value is None else clone(value) for value in piece)  # type: ignore[assignment]
    return need("dask").delayed(load_part, pure=False)(number, *piece)


def pieces(X: Any, y: Any, sample_weight: Any = None) -> list[tuple[Any, Any, Any]]:
    """Return delayed rows, labels and weights of each partition of dask collections.

    Parameters
    ----------
    X : dask Array or DataFrame
        Rows. An array may have unknown chunk sizes and sparse chunks.
    y : dask Array or Series
        Labels, with the partitions of ``X``.
    sample_weight : dask Array or Series, default=None
        Weights, with the partitions of ``X``.
    """
    rows, labels = _blocks("X", X, 2), _blocks("y", y, 1)
    weights = [None] * len(rows) if sample_weight is None else _blocks("sample_weight", sample_weight, 1)
    for name, blocks in (("y", labels), ("sample_weight", weights)):
        if len(blocks) != len(rows):
            raise ValueError(f"{name} must have the {len(rows)} partitions of X; got {len(blocks)}")
    return list(zip(rows, labels, weights, strict=True))


def warn_if_in_memory(*collections: Any) -> None:
    """Warn if partitions are held by workers only, so that they cannot be read again after the loss of a worker."""
    futures_of = need("distributed").client.futures_of
    if any(futures_of(collection) for collection in collections if collection is not None):
        warnings.warn(
            "the data are in the memory of the workers (persisted or scattered) and may not be readable again: if a "
            "worker is lost, the fit may fail. Pass a collection that reads its partitions from files to avoid this",
            UserWarning,
            stacklevel=4,
        )


def load_part(number: int, X: Any, y: Any, weight: Any) -> LoadedPart:
    """Check a partition and convert it to arrays; errors name the partition."""
    names = None
    if hasattr(X, "iloc"):
        names, X = [str(name) for name in X.columns], _frame(number, X)
    elif sparse.issparse(X):
        X = canonical_csr(X)
    else:
        X = np.asarray(X.todense() if hasattr(X, "todense") else X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataError(
            f"partition {number}: X must be two-dimensional and numeric; got {X.ndim} dimensions, {X.dtype}"
        )
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise DataError(f"partition {number}: y must have one label for each of {X.shape[0]} rows; got {labels.shape}")
    missing = (
        np.isnan(labels) if labels.dtype.kind == "f" else np.array([value is None for value in labels], dtype=bool)
    )
    if missing.any():
        raise DataError(f"partition {number}: y must have a label in each row; got {missing.sum()} missing")
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        if weight.shape != labels.shape or not np.isfinite(weight).all() or (weight < 0).any():
            raise DataError(f"partition {number}: sample_weight must be one finite number >= 0 for each row")
    return LoadedPart(number, X, labels, weight, names)


def _frame(number: int, frame: Any) -> NDArray[Any]:
    for name, kind in frame.dtypes.items():
        if kind.kind not in "fiub":
            raise DataError(f"partition {number}: column {name!r} must contain numbers; got {kind}")
    values = frame.to_numpy()
    result: NDArray[Any] = values if values.dtype == np.float32 else values.astype(np.float64, copy=False)
    return result


def _blocks(name: str, collection: Any, ndim: int) -> list[Any]:
    """Return the partitions of a dask collection as delayed values."""
    if not need("dask").is_dask_collection(collection) or not hasattr(collection, "to_delayed"):
        raise TypeError(f"{name} must be a dask Array, DataFrame or Series; got {type(collection).__name__}")
    if collection.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}; got {collection.ndim}")
    if hasattr(collection, "numblocks") and ndim == 2 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))
