"""Which scores are equal up to rounding: the one rule, used by thresholds and by ``score``.

A product rounds equal rows differently, depending on where they stand in memory and how many rows are scored at once;
what was a tie must stay one. How far a score may be off is a matter of that score alone: another row, however extreme,
never makes two scores a tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rocmax._typing import Array

# Sums of a few thousand products, added up in different orders, differ by less than this many units of rounding.
_UNITS = 32
# For a product in double precision the bound is this many times larger: a solver that was run to the end leaves
# differences of that size between rows that are tied at its optimum. In single precision it would join too much.
_SOLVED = 128
# Scores in a run longer than this many errors are crowded, not tied: joining them would join scores that differ.
_LONGEST_RUN = 4
# Numbers in a block of rows whose absolute values are taken.
_BLOCK = 1_000_000


def score_error(size: Array) -> Array:
    """Return how far scores in double precision may be off, given the size of what was added up to make them."""
    return np.asarray(_UNITS * np.finfo(np.float64).eps * np.abs(size))


def product_error(X: Any, w: Array) -> Array:
    """Return how far each entry of ``X @ w`` may be off, in the precision of ``X``: the row's own terms decide."""
    weight = np.abs(w)
    size = np.empty(X.shape[0])
    step = X.shape[0] if sparse.issparse(X) else max(1, _BLOCK // max(1, X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, X.shape[0], max(1, step)):
            rows = slice(start, start + step)
            size[rows] = abs(X[rows]) @ weight
    single = X.dtype == np.float32
    units = np.finfo(np.float32).eps / np.finfo(np.float64).eps if single else _SOLVED
    return units * score_error(np.where(np.isfinite(size), size, 0.0))


def join_ties(scores: Array, error: Array | None = None) -> Array:
    """Make scores equal that differ by rounding only.

    A run of scores, each within the errors of itself and of the next one, becomes a tie at its highest score. A run
    that is several errors long is left as it is: there, scores lie so close that rounding cannot be told from
    a difference.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Finite scores.
    error : ndarray of shape (n,), default=None
        How far each may be off; by default some units in its last place.

    Returns
    -------
    ndarray of shape (n,)
        The scores, none of them lower than it was.
    """
    error = score_error(scores) if error is None else error
    order = np.argsort(scores)
    placed, reach = scores[order], error[order]
    with np.errstate(over="ignore"):
        apart = np.diff(placed) > np.minimum(reach[1:], reach[:-1])
    first = np.flatnonzero(np.append(True, apart))
    last = np.append(first[1:], placed.size) - 1
    with np.errstate(over="ignore"):
        tied = placed[last] - placed[first] <= _LONGEST_RUN * np.minimum.reduceat(reach, first)
    run = np.repeat(np.arange(first.size), last - first + 1)
    joined = np.empty_like(scores)
    joined[order] = np.where(tied[run], placed[last][run], placed)
    return joined
