"""Pairs of all rows close to a kink, which represent the Hessian of a smoothed loss.

Sampling in proportion to the weights misses rows of small weight. If such a row differs from all others, as one with a
rare feature does, the Hessian lacks a direction of large curvature. Here, every row close to a kink is in a pair.
"""

from __future__ import annotations

import numpy as np

from rocmax._typing import Array, Index
from rocmax.losses._lowest import Selected
from rocmax.losses._sorted import no_pairs, prefix, systematic
from rocmax.losses.base import Pairs

_GOLDEN = 0.6180339887498949


def pairs_of_band(scores: Array, band: Index, weight: Array, density: float) -> Pairs:
    """Return pairs for ``density`` times the scatter matrix of the rows ``band`` of one class.

    Each row is paired with one that is drawn in proportion to its weight. The mean outer product of the differences of
    two independent draws is twice the covariance.
    """
    if band.size < 2 or density == 0:
        return no_pairs()
    band = band[np.argsort(scores[band])]
    partner = np.roll(band[systematic(prefix(weight[band]), band.size)], int(_GOLDEN * band.size))
    return Pairs(band, partner, 0.5 * density * weight[band])


def pairs_near_kink(first: Selected, kink: Array, second: Selected, score: Array, half: float) -> list[Pairs]:
    """Return pairs of rows whose score is within ``half`` of the kink of the other row.

    ``kink`` is ascending, and ``score``, that of the rows in ``second``, descending. The weight of all pairs (i, j)
    in the band, the product of the two weights divided by ``2 * half``, is counted once by drawing a partner for every
    i and once for every j, each with one half.
    """
    row, weight = second.rows[::-1], second.weight[::-1]
    score = score[::-1]
    i, partner, of_first = _partners(first.weight, kink, weight, score, half)
    j, other, of_second = _partners(weight, score, first.weight, kink, half)
    scale = 0.25 / half
    return [Pairs(first.rows[i], row[partner], scale * of_first), Pairs(first.rows[other], row[j], scale * of_second)]


def _partners(
    weight: Array, place: Array, others: Array, other_place: Array, half: float
) -> tuple[Index, Index, Array]:
    """Draw for each row one of the others within ``half`` of its place, in proportion to their weights.

    Both places are ascending. Rows without others nearby are left out.

    Returns
    -------
    row, other : ndarray of int
        The pairs.
    mass : ndarray
        Weight of the row times the weight of all others near it.
    """
    line = prefix(others)
    low, high = (np.searchsorted(other_place, place + side) for side in (-half, half))
    mass = weight * (line[high] - line[low])
    row = np.flatnonzero(mass > 0)
    low, high = low[row], high[row]
    at = line[low] + ((np.arange(row.size) * _GOLDEN) % 1.0) * (line[high] - line[low])
    other = np.clip(np.searchsorted(line, at, side="right") - 1, low, high - 1)
    return row, other, mass[row]
