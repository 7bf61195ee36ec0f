"""Detection of scores that are equal up to rounding error, used by thresholds and by ``score``.

Equal rows can have slightly different scores, because the rounding error of a product depends on the position in memory
and on the number of rows that are scored together. Such scores are treated as ties. The error bound of a score depends
only on the row itself: extreme values in other rows have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._support import Array, Index, check_top

# Relative tolerance for rounding errors in rates, cumulative weights, and products such as 100 * 0.07.
DUST = 1e-9


@dataclass(frozen=True)
class TieRules:
    """Numbers of the search for ties.

    Attributes
    ----------
    units : int
        Sums of a few thousand products differ by less than this multiple of the machine epsilon if the order changes.
    solved : int
        Factor of the error bound for products in double precision: the solution of a converged solver has differences
        of this size between rows that are tied at the optimum. In single precision it would join scores that differ.
    longest_run : int
        Maximum length of a run of ties, in multiples of the error bound: in longer runs, joined scores could differ.
    near : int
        Scores close to a given one that are examined first.
    """

    units: int = 32
    solved: int = 128
    longest_run: int = 4
    near: int = 1 << 12


TIES = TieRules()


def score_error(size: Array) -> Array:
    """Return the error bound of scores in double precision, given the sums of the absolute values of their terms."""
    return np.asarray(TIES.units * np.finfo(np.float64).eps * np.abs(size))


def product_error(X: Any, w: Array) -> Array:
    """Return the error bound of each entry of ``X @ w`` in the precision of ``X``, based on the terms of the row."""
    weight = np.abs(w)
    size = np.empty(X.shape[0])
    step = X.shape[0] if sparse.issparse(X) else max(1, 1_000_000 // max(1, X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, X.shape[0], max(1, step)):
            rows = slice(start, start + step)
            size[rows] = abs(X[rows]) @ weight
    single = X.dtype == np.float32
    units = np.finfo(np.float32).eps / np.finfo(np.float64).eps if single else TIES.solved
    return units * score_error(np.where(np.isfinite(size), size, 0.0))


def join_ties(scores: Array, error: Array | None = None) -> Array:
    """Set scores that differ only by rounding error to the same value; no score is decreased.

    A run of sorted scores in which neighbors differ by at most their error bounds, by default those of double
    precision, is set to its highest score. Runs longer than several error bounds are not changed: there, rounding
    errors cannot be distinguished from actual differences.
    """
    if scores.size == 0 or scores.min() == scores.max():
        return scores.copy()
    error = score_error(scores) if error is None else error
    order = np.argsort(scores)
    placed, reach = scores[order], error[order]
    del error
    close = _close_neighbors(placed, reach)
    first = np.flatnonzero(close & ~np.append(False, close[:-1]))
    last = np.flatnonzero(close & ~np.append(close[1:], False)) + 1
    if first.size:
        # Runs up to the last score end with the array, which `reduceat` cannot express by a position.
        bounds = np.column_stack([first, last + 1]).ravel()
        least = np.minimum.reduceat(reach, bounds[: bounds.size - int(bounds[-1] == reach.size)])[::2]
        del bounds
        with np.errstate(over="ignore"):
            tied = placed[last] - placed[first] <= TIES.longest_run * least
        first, last = first[tied], last[tied]
        steps = np.zeros(placed.size + 1, dtype=np.int8)
        # Where one run follows another, the two steps add up to zero.
        steps[first] += 1
        steps[last + 1] -= 1
        inside = np.cumsum(steps[:-1], dtype=np.int8).view(bool)
        placed[inside] = np.repeat(placed[last], last - first + 1)
    del reach
    joined = np.empty_like(scores)
    joined[order] = placed
    return joined


def join_ties_near(scores: Array, place: float, error: Callable[[Index], Array]) -> Array:
    """Join scores as :func:`join_ties`, in place, but only close to one of them; ``error`` returns bounds of rows.

    The scores equal to ``place`` up to rounding error, the next higher and the next lower ones are those of
    :func:`join_ties`; scores further away may differ.
    """
    size = TIES.near
    while 2 * size < scores.size:
        distance = np.abs(scores - place)
        distance.partition(size)
        radius = distance[size]
        del distance
        rows = np.flatnonzero((scores >= place - radius) & (scores <= place + radius))
        joined = join_ties(scores[rows], error(rows))
        values, at = np.unique(joined), joined[scores[rows] == place].max()
        # The outermost run on each side may be longer than the part of it in these rows.
        n_beside = min(np.count_nonzero(values < at), np.count_nonzero(values > at))
        if n_beside > 3 and radius > 2 * float(score_error(np.asarray(at))):
            scores[rows] = joined
            return scores
        size *= 16
    return join_ties(scores, error(np.arange(scores.size)))


def _close_neighbors(placed: Array, reach: Array) -> NDArray[np.bool_]:
    """Return whether each sorted score and the next one differ by at most their error bounds."""
    close, step = np.empty(placed.size - 1, dtype=bool), 1 << 15
    with np.errstate(over="ignore"):
        for start in range(0, close.size, step):
            score, error = (values[start : start + step + 1] for values in (placed, reach))
            close[start : start + step] = np.diff(score) <= np.minimum(error[1:], error[:-1])
    return close


def window_end(total: float, rate: float) -> float:
    """Return ``total * rate``, corrected for rounding error.

    ``100 * 0.07`` is slightly larger than 7 in floating point, which would include a small part of the eighth
    negative. A product within the rounding error of an integer is rounded to that integer.
    """
    end = total * rate
    nearest = float(round(end))
    return nearest if abs(end - nearest) <= DUST * nearest else end


def top_weight(k: Any, total: float) -> float:
    """Return the weight of the top ``k`` rows in a sample with the given total weight."""
    check_top(k)
    if not isinstance(k, Integral):
        return window_end(total, float(k))
    if int(k) > total * (1 + DUST):
        raise ValueError(f"k as a count must be from 1 to the total weight, {total:g}; got {k!r}")
    return float(int(k))
