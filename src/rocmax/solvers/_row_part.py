"""Part of the rows of a large sample, drawn with unequal probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._typing import Array

# Rows from which the scale of the features is estimated, and rows in a block.
_ROWS_FOR_SCALE, _BLOCK = 50_000, 20_000


def leverage(rows: Callable[[Any], Any], n_samples: int) -> Array:
    """Return the sum of the squared features of each row, each divided by its mean over a sample of rows.

    Up to a factor, this is the leverage if the features are uncorrelated. ``rows`` returns the rows of an index or a
    slice.
    """
    some = rows(np.linspace(0, n_samples - 1, min(n_samples, _ROWS_FOR_SCALE)).astype(np.intp))
    scale = np.asarray(_squares(some).mean(axis=0), dtype=np.float64).ravel()
    # A feature that is zero in all rows of the sample is taken as the rarest of the others.
    seen = scale > 0
    scale[~seen] = scale[seen].min() if seen.any() else 1.0
    found = np.empty(n_samples)
    for start in range(0, n_samples, _BLOCK):
        block = slice(start, start + _BLOCK)
        found[block] = _squares(rows(block)) @ (1.0 / scale)
    return found


def inclusion_probabilities(size: Array, count: float) -> Array:
    """Return probabilities in proportion to ``size``, but at most 1, whose sum is ``count``; 1 if there are fewer."""
    if count >= size.size:
        return np.ones(size.size)
    chance = np.zeros(size.size)
    certain = np.zeros(size.size, dtype=bool)
    while True:
        rest = size * ~certain
        chance = np.where(certain, 1.0, rest * ((count - np.count_nonzero(certain)) / rest.sum()))
        over = (chance >= 1.0) & ~certain
        if not over.any():
            return chance
        certain |= over


def draw(chance: Array) -> NDArray[np.intp]:
    """Draw rows with the given probabilities by systematic sampling, in the order of the rows.

    Among any consecutive rows, the number drawn differs from the sum of their probabilities by less than 1.
    """
    passed = np.floor(np.cumsum(chance) + 0.5)
    return np.flatnonzero(np.diff(passed, prepend=0.0))


def _squares(X: Any) -> Any:
    return X.multiply(X).tocsr() if sparse.issparse(X) else X * X
