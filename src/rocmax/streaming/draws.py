"""Which rows next: random pairs, and samples of a stream that hold a fixed number of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


def uniform_pairs(positives: Index, negatives: Index, size: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """Draw pairs of a positive and a negative, with replacement.

    Row k of n is drawn with a probability that differs from 1/n by less than one part in ``2**32 / n``.

    Parameters
    ----------
    positives, negatives : ndarray of int
        Row numbers of both classes.
    size : int
        Number of pairs.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    first, second : ndarray of int
        Row numbers of the positives and of the negatives.
    """
    # NumPy's own bounded integers would take a sixth of the time of an epoch on sparse rows.
    from rocmax.streaming.loops import choose_pairs, run

    first, second = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    run(choose_pairs, rng.bit_generator.random_raw(size), positives, negatives, first, second)
    return first, second


def anchored_pairs(
    new: Index, positive: NDArray[np.bool_], positives: Index, negatives: Index, rng: np.random.Generator
) -> tuple[Index, Index]:
    """Pair every new row once, in random order, with a random row of the other class.

    Over the draws each pair that holds a new row is as likely as any other with a new row of that class, and no
    new row is left out, however short the block.

    Parameters
    ----------
    new : ndarray of int
        Numbers of the new rows.
    positive : ndarray of bool
        Labels of all rows at hand.
    positives, negatives : ndarray of int
        Row numbers of both classes; neither may be empty.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    first, second : ndarray of int
        Row numbers of the positives and of the negatives.
    """
    anchor = rng.permutation(new)
    first, second = uniform_pairs(positives, negatives, anchor.size, rng)
    is_positive = positive[anchor]
    return np.where(is_positive, anchor, first), np.where(is_positive, second, anchor)


def reservoir(held: Index, seen: int, new: Index, capacity: int, rng: np.random.Generator) -> Index:
    """Return a uniform sample of a stream, from the one held so far and the rows that came since.

    Vitter's algorithm R: the n-th row of the stream takes a random place with probability ``capacity / n``. The start
    of a stream is sampled at once.

    Parameters
    ----------
    held : ndarray of int
        Row numbers held so far: ``min(seen, capacity)`` of them.
    seen : int
        Number of rows that have come before.
    new : ndarray of int
        Row numbers, in the order in which they come.
    capacity : int
        Largest number of rows to hold.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    ndarray of int
        Row numbers held now.
    """
    if seen == 0 and new.size > capacity:
        return rng.choice(new, capacity, replace=False, shuffle=False)
    room = max(capacity - seen, 0)
    sample = np.concatenate([held, new[:room]])
    rest = new[room:]
    slot = (rng.random(rest.size) * (seen + room + 1 + np.arange(rest.size))).astype(np.int64)
    chosen = slot < capacity
    # Of several rows for one place the last one stays, as if they had come one by one.
    sample[slot[chosen]] = rest[chosen]
    return sample
