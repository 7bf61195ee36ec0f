"""Partitions of dask collections: how they are divided, loaded on a worker and checked there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._packages import need
from rocmax._sparse import canonical_csr
from rocmax.data import DataError


class LoadedPart:
    """Rows, labels and weights of a partition, in the memory of a worker.

    Parameters
    ----------
    number : int
        Number of the partition.
    X : ndarray or CSR matrix
        The rows.
    y : ndarray
        The labels.
    weight : ndarray, default=None
        The weights; None if all are 1.
    names : list of str, default=None
        Names of the columns.
    """

    def __init__(
        self, number: int, X: Any, y: NDArray[Any], weight: NDArray[np.float64] | None, names: list[str] | None
    ) -> None:
        self.number, self.X, self.y, self.weight, self.names = number, X, y, weight, names
        # The shard that a worker made of this partition and others: it lives as long as one of them.
        self.shard: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "shard": None}


def split(X: Any, y: Any, sample_weight: Any = None) -> list[Any]:
    """Return one delayed :class:`LoadedPart` per partition of dask collections; parameters as in :func:`pieces`."""
    return [load(number, piece) for number, piece in enumerate(pieces(X, y, sample_weight))]


def load(number: int, piece: tuple[Any, Any, Any], worker: str | None = None) -> Any:
    """Return a delayed :class:`LoadedPart`, with a new name in each call, to be kept by a given worker if possible."""
    dask = need("dask")
    where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
    with dask.annotate(**where):
        return dask.delayed(load_part, pure=False)(number, *piece)


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


def warn_if_lost(client: Any, *collections: Any) -> None:
    """Warn if some partitions cannot be read again after the loss of a worker.

    Persisted partitions are computed again after the loss of a worker. Scattered data are lost with their worker.
    """
    futures_of = need("distributed").client.futures_of
    held = [future for collection in collections if collection is not None for future in futures_of(collection)]
    if held and client.run_on_scheduler(_scattered, [future.key for future in held]):
        warnings.warn(
            "some partitions exist only in the memory of workers (scattered data) and cannot be read again: if such a "
            "worker is lost, the fit fails. Pass a collection that reads its partitions from files to avoid this",
            UserWarning,
            stacklevel=3,
        )


def _scattered(keys: list[Any], dask_scheduler: Any = None) -> bool:
    """Return whether some keys, or keys from which they are computed, have no task that computes them."""
    seen: set[Any] = set()
    stack = [dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks]
    while stack:
        task = stack.pop()
        if task.run_spec is None:
            return True
        if task.key not in seen:
            seen.add(task.key)
            stack.extend(task.dependencies)
    return False


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
    missing = int(y.isna().sum()) if hasattr(y, "isna") else _count_missing(labels)
    if missing:
        raise DataError(f"partition {number}: y must have a label in each row; got {missing} missing")
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        if weight.shape != labels.shape or not np.isfinite(weight).all() or (weight < 0).any():
            raise DataError(f"partition {number}: sample_weight must be one finite number >= 0 for each row")
    return LoadedPart(number, X, labels, weight, names)


def _count_missing(labels: NDArray[Any]) -> int:
    if labels.dtype.kind == "O":
        return sum(label is None or label != label for label in labels.tolist())
    return int(np.isnan(labels).sum()) if labels.dtype.kind == "f" else 0


def _frame(number: int, frame: Any) -> NDArray[Any]:
    for name, kind in frame.dtypes.items():
        if kind.kind not in "fiub":
            raise DataError(f"partition {number}: column {name!r} must contain numbers; got {kind}")
    single = all(kind == np.float32 for kind in frame.dtypes)
    result: NDArray[Any] = frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
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
