"""Partitions of dask collections: how they are divided, loaded on a worker and checked there."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._packages import need
from rocmax._sparse import canonical_csr
from rocmax._validate import WEIGHT_ADVICE, WEIGHT_SIZE, extreme_weights
from rocmax.data import DataError
from rocmax.data.disk import checksum

# Types of labels, by the kind of their array.
_TYPES = dict.fromkeys("biuf", "numbers") | {"U": "text", "T": "text", "S": "bytes"}


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
    names : list, default=None
        Names of the columns of a frame.

    Attributes
    ----------
    checksum : int
        Checksum of rows, labels and weights.
    """

    def __init__(
        self, number: int, X: Any, y: NDArray[Any], weight: NDArray[np.float64] | None, names: list[Any] | None
    ) -> None:
        self.number, self.X, self.y, self.weight, self.names = number, X, y, weight, names
        rows = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        self.checksum = checksum(*rows, y, weight)
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
    return _aligned(("X", X, 2), ("y", y, 1), ("sample_weight", sample_weight, 1))


def score_pieces(y_true: Any, y_score: Any, sample_weight: Any = None) -> list[tuple[Any, Any, Any]]:
    """Return delayed scores, labels and weights of each partition of dask Arrays or Series."""
    return _aligned(("y_score", y_score, 1), ("y_true", y_true, 1), ("sample_weight", sample_weight, 1))


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
        names, X = list(X.columns), _frame(number, X)
    elif sparse.issparse(X):
        X = canonical_csr(X)
    else:
        X = np.asarray(X.todense() if hasattr(X, "todense") else X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataError(
            f"partition {number}: X must be two-dimensional and numeric; got {X.ndim} dimensions, {X.dtype}"
        )
    labels = checked_labels(number, "y", y, X.shape[0])
    return LoadedPart(number, X, labels, checked_weight(number, weight, labels.size), names)


def checked_labels(number: int, name: str, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels of a partition; raise DataError if one is missing, or if they cannot be compared."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise DataError(f"partition {number}: {name} must have one label for each of {n_rows} rows; got {labels.shape}")
    missing = int(y.isna().sum()) if hasattr(y, "isna") else _count_missing(labels)
    if missing:
        raise DataError(f"partition {number}: {name} must have a label in each row; got {missing} missing")
    kinds = _kinds(labels)
    if len(kinds) > 1:
        raise DataError(f"partition {number}: {name} must have labels of one type; got {' and '.join(kinds)}")
    return labels


def checked_weight(number: int, weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights of a partition, if any; raise DataError if they are not weights."""
    if weight is None:
        return None
    required = f"partition {number}: sample_weight must be one finite number >= 0 for each row"
    try:
        found: NDArray[np.float64] = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{required}; got {np.asarray(weight).dtype}") from error
    if found.shape != (n_rows,):
        raise DataError(f"{required}; got shape {found.shape} for {n_rows} rows")
    bad = np.flatnonzero(~np.isfinite(found) | (found < 0))
    if bad.size:
        raise DataError(f"{required}; got {found[bad[0]]:g} in row {bad[0]} of the partition")
    extreme = np.flatnonzero(extreme_weights(found))
    if extreme.size:
        raise DataError(
            f"partition {number}: sample_weight must be {WEIGHT_SIZE}; got {found[extreme[0]]:g} in row {extreme[0]} "
            f"of the partition. {WEIGHT_ADVICE}"
        )
    return found


class LabelSet(NamedTuple):
    """Distinct labels, and the number of a partition that has some of them."""

    number: int
    labels: NDArray[Any]

    def joined(self, other: LabelSet) -> LabelSet:
        """Return the labels of both; raise DataError if they cannot be compared."""
        if not self.labels.size or not other.labels.size:
            return self if self.labels.size else other
        own, kinds = _kinds(self.labels), _kinds(other.labels)
        if own != kinds:
            raise DataError(
                f"partition {other.number}: labels must have the type of those in partition {self.number}, {own[0]}; "
                f"got {kinds[0]}"
            )
        return LabelSet(self.number, np.unique(np.concatenate([self.labels, other.labels])))


def check_some_rows(labels: NDArray[Any]) -> None:
    """Raise ValueError if there is no row, given the labels of all partitions."""
    if not labels.size:
        raise ValueError("the partitions must have rows with a weight > 0; got none")


def _kinds(labels: NDArray[Any]) -> list[str]:
    """Return the types of labels: those of one type can be compared."""
    if labels.dtype.kind != "O":
        return [_TYPES.get(labels.dtype.kind, str(labels.dtype))]
    numbers = (bool, int, float, np.number, np.bool_)
    types = set(map(type, labels.tolist()))
    return sorted(
        {
            "numbers" if issubclass(kind, numbers) else "text" if issubclass(kind, str) else kind.__name__
            for kind in types
        }
    )


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


def _aligned(*columns: tuple[str, Any, int]) -> list[tuple[Any, Any, Any]]:
    """Return the partitions of collections that belong together; given name, collection or None, and dimensions."""
    first = _blocks(*columns[0])
    found = [first]
    for name, collection, ndim in columns[1:]:
        blocks = (
            [None] * len(first) if collection is None and name == "sample_weight" else _blocks(name, collection, ndim)
        )
        if len(blocks) != len(first):
            raise ValueError(
                f"{name} must have the {len(first)} partitions of {columns[0][0]}; got {len(blocks)}. Use rechunk for "
                "an array and repartition for a data frame or a series"
            )
        found.append(blocks)
    return list(zip(*found, strict=True))


def _blocks(name: str, collection: Any, ndim: int) -> list[Any]:
    """Return the partitions of a dask collection as delayed values."""
    if not need("dask").is_dask_collection(collection) or not hasattr(collection, "to_delayed"):
        raise TypeError(f"{name} must be a dask Array, DataFrame or Series; got {type(collection).__name__}")
    if collection.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}; got {collection.ndim}")
    if hasattr(collection, "numblocks") and ndim == 2 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))
