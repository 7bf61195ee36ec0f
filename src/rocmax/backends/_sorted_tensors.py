"""Sums over pairs and tables of sorted scores, in torch.

Every function works on tensors of the size of the batch, whatever the numbers of each class: rows of the other class
have weight zero. So nothing depends on values that the host would have to wait for. Places in the order and shares
of a window are found without a graph; what is left is a polynomial in the scores, which autograd differentiates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

# A product this close to a whole number, relatively, is that number, as in the losses on NumPy arrays.
_DUST = 1e-9


class Rows(NamedTuple):
    """Rows in descending order of score, with their weights as members of each class."""

    score: Tensor
    positive: Tensor
    negative: Tensor

    @property
    def origin(self) -> Tensor:
        """Return the score that sums are taken about, so that large scores cancel no digits."""
        return self.score.detach()[self.score.numel() // 2]


def sort_rows(score: Tensor, positive: Tensor, negative: Tensor) -> Rows:
    """Sort rows by falling score."""
    placed, order = torch.sort(score, descending=True)
    return Rows(placed, positive.gather(0, order), negative.gather(0, order))


def window_end(total: Tensor, rate: float) -> Tensor:
    """Return ``total * rate`` without floating-point dust."""
    end = total * rate
    nearest = end.round()
    return torch.where((end - nearest).abs() <= _DUST * nearest, nearest, end)


def or_one(value: Tensor) -> Tensor:
    """Return what to divide by: the value if it is above zero, else 1."""
    return torch.where(value > 0, value, torch.ones_like(value))


def prefix(values: Tensor) -> Tensor:
    """Prefix sums with a leading zero."""
    return torch.cat([values.new_zeros(1), values.cumsum(0)])


def count_above(score: Tensor, level: Tensor, *, equal: bool = False) -> Tensor:
    """Return how many rows of a descending order have a score above each level, or equal to it."""
    return torch.searchsorted(-score.detach(), -level.detach(), right=equal)


def shares(score: Tensor, weight: Tensor, held: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the share of each row, where the rows of a descending order hold ``held(rank)`` up to each rank.

    A rank is a cumulated weight. Tied rows have the same share.
    """
    sums = prefix(weight)
    above = sums.gather(0, count_above(score, score))
    upto = sums.gather(0, count_above(score, score, equal=True))
    return (held(upto) - held(above)) / or_one(upto - above)


def between(start: Tensor, stop: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what ranks hold if those between two count fully and the others not at all."""
    return lambda rank: torch.minimum(torch.maximum(rank, start), stop) - start


def soft_rank(rank: Tensor, stop: Tensor) -> Tensor:
    """Return the integral of ``min(1, stop / t)`` from 0 to each rank."""
    stop = or_one(stop)
    return torch.minimum(rank, stop) + stop * torch.log(torch.maximum(rank, stop) / stop)


def window_weight(rows: Rows, min_fpr: float, max_fpr: float, soft_tail: bool = False) -> tuple[Tensor, Tensor]:
    """Return the weight of each negative in the window or its tail, and the sum of these weights."""
    n = rows.negative.sum()
    start, stop = window_end(n, min_fpr), window_end(n, max_fpr)
    held = (lambda rank: soft_rank(rank, stop)) if soft_tail else between(start, stop)
    return rows.negative * shares(rows.score, rows.negative, held), held(n)


def lowest_positives(rows: Rows, min_tpr: float, soft_tail: bool = False) -> Rows:
    """Return the rows with the weights of the positives above a true-positive rate, those with the lowest scores.

    With a soft tail the others have a weight that falls with the rank from the lowest score.
    """
    if min_tpr == 0:
        return rows
    m = rows.positive.sum()
    size = window_end(m, 1.0 - min_tpr)
    held = (lambda rank: -soft_rank(m - rank, size)) if soft_tail else between(m - size, m)
    return rows._replace(positive=rows.positive * shares(rows.score, rows.positive, held))


def hinge_pairs(rows: Rows, weight: Tensor, power: int) -> Tensor:
    """Sum of ``(1 - (s_i - z_j))_+ ** power`` over pairs, for the power 1 or 2; ``weight`` is that of the negatives."""
    depth = rows.score - rows.origin
    gap = 1.0 - depth
    active = count_above(rows.score, rows.score - 1.0)
    zeroth, first = (prefix(values).gather(0, active) for values in (weight, weight * depth))
    if power == 1:
        return (rows.positive * (gap * zeroth + first)).sum()
    second = prefix(weight * depth**2).gather(0, active)
    return (rows.positive * (gap**2 * zeroth + 2 * gap * first + second)).sum()


def ramp_pairs(rows: Rows, weight: Tensor, half: float, margin: float) -> tuple[Tensor, Tensor]:
    """Return the sum over pairs of a step down from 1 to 0, and the weight of the pairs that are on the step.

    The step is within ``half`` of the score difference ``margin``.
    """
    rows = without_gaps(rows, abs(margin) + 2 * half)
    middle_score = rows.score - margin
    # Ranks below ``low`` cost 1; the step is quadratic from there to ``middle`` and from there to ``high``.
    low, middle, high = (count_above(rows.score, middle_score + side) for side in (half, 0.0, -half))
    x, d = ((score - rows.origin) / half for score in (middle_score, rows.score))
    moments = [prefix(values) for values in (weight, weight * d, weight * d**2)]
    at_low, at_middle, at_high = ([sums.gather(0, place) for sums in moments] for place in (low, middle, high))
    left = [stop - start for start, stop in zip(at_low, at_middle, strict=True)]
    right = [stop - start for start, stop in zip(at_middle, at_high, strict=True)]
    square_left = (1 + x) ** 2 * left[0] - 2 * (1 + x) * left[1] + left[2]
    square_right = (1 - x) ** 2 * right[0] + 2 * (1 - x) * right[1] + right[2]
    total = (rows.positive * (at_middle[0] + (square_right - square_left) / 2)).sum()
    return total, (rows.positive * (at_high[0] - at_low[0])).sum()


def without_gaps(rows: Rows, longest: float) -> Rows:
    """Shorten gaps between neighbours that no step reaches across, so that squares of scores cost no digits."""
    score = rows.score.detach()
    excess = (score[:-1] - score[1:] - longest).clamp(min=0.0)
    return rows._replace(score=rows.score + prefix(excess))


def top_bound(rows: Rows, k: Tensor) -> Tensor:
    """Return the convex upper bound of one minus the precision among the rows at the top that weigh ``k``."""
    m, n = rows.positive.sum(), rows.negative.sum()
    scale = 1.0 / or_one(torch.minimum(k, m))
    # Labelling a positive lowers the error by 1 / k.
    margin = 1.0 / or_one(k * scale)
    lowered = sort_rows(torch.where(rows.positive > 0, rows.score - margin, rows.score), rows.positive, rows.negative)
    weight = lowered.positive + lowered.negative
    taken = weight * shares(lowered.score, weight, between(torch.zeros_like(k), k))
    best = rows.positive * (k / or_one(m)).clamp(max=1.0) + rows.negative * ((k - m) / or_one(n)).clamp(min=0.0)
    labelled, referred = (taken * (lowered.score - rows.origin)).sum(), (best * (rows.score - rows.origin)).sum()
    return 1.0 + scale * (labelled - referred)
