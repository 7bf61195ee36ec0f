"""Conversion of parts of any size to batches of one size, in order or shuffled within a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Part = tuple[Any, NDArray[Any] | None]


def rebatch(
    parts: Iterable[Part], batch_size: int, buffer_size: int | None, rng: np.random.Generator | None
) -> Iterator[Part]:
    """Yield batches of ``batch_size`` rows, shuffled within the buffer if a generator is given.

    Rows that remain after a full buffer stay in the pool for the next one, so that only the last batch can be smaller.
    """
    pool: list[Part] = []
    held, enough = 0, max(batch_size, buffer_size or 0)
    for part in parts:
        start, n_rows = 0, part[0].shape[0]
        while start < n_rows:
            stop = min(start + enough - held, n_rows)
            pool.append(_rows(part, slice(start, stop)))
            held, start = held + stop - start, stop
            if held == enough:
                whole = _permuted(_joined(pool), rng)
                full = held - held % batch_size
                yield from _split(whole, full, batch_size)
                pool, held = [_rows(whole, slice(full, held))], held - full
    if held:
        yield from _split(_permuted(_joined(pool), rng), held, batch_size)


def _split(part: Part, n_rows: int, size: int) -> Iterator[Part]:
    for start in range(0, n_rows, size):
        yield _rows(part, slice(start, min(start + size, n_rows)))


def _permuted(part: Part, rng: np.random.Generator | None) -> Part:
    return part if rng is None else _rows(part, rng.permutation(part[0].shape[0]))


def _rows(part: Part, index: Any) -> Part:
    X, y = part
    rows = X[index] if scipy.sparse.issparse(X) else X.iloc[index].reset_index(drop=True)
    return rows, None if y is None else y[index]


def _joined(pool: list[Part]) -> Part:
    if len(pool) == 1:
        return pool[0]
    matrices = [X for X, _ in pool]
    labels = None if pool[0][1] is None else np.concatenate([y for _, y in pool if y is not None])
    if scipy.sparse.issparse(matrices[0]):
        return scipy.sparse.vstack(matrices, format="csr"), labels
    import pandas as pd

    return pd.concat(matrices, ignore_index=True), labels
