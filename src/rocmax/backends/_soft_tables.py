"""Measures of decisions at a soft threshold, in torch.

The threshold is found without a graph, by a fixed number of steps on the device; see :mod:`rocmax.losses` for what the
losses are. What the threshold adds to the derivatives is put back in closed form, for the first and the second.

Each loss comes with whether it is stuck: most of what can be won is lost, and hardly a row is on the step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rocmax.backends._sorted_tensors import Rows, count_above, or_one, prefix, without_gaps

# Bisections: as many as a double has digits.
_BISECTIONS = 53
# The search for the best threshold, as in rocmax.losses: places next to a positive in halves of a step, positives
# looked at, places looked at closely, points along a bracket and rounds of narrowing it.
_FIRST_OFFSET, _LAST_OFFSET, _OFFSETS = -1.0, 0.5, 4
_MOST_PLACES = 500
_CLOSE_LOOKS = 4
_POINTS = 13
_ROUNDS = 3


def soft_precision_error(rows: Rows, k: Tensor, half: float) -> tuple[Tensor, Tensor]:
    """Return one minus the precision above a soft threshold that rows of weight ``k`` pass, and whether it is stuck."""
    weight = rows.positive + rows.negative
    last = torch.searchsorted(weight.cumsum(0), (k * (1 - 1e-12)).reshape(1)).clamp(max=weight.numel() - 1)
    # The row that completes the top is on the step, or just beside it.
    u = (rows.score - rows.score.detach().gather(0, last)) / half
    with torch.no_grad():
        one, near = torch.ones_like(k), u.detach()
        threshold = _bisect(lambda shift: (weight * step(near - shift)).sum() > k, -one, one)
    u = u - threshold
    # A row that rises lifts the threshold, too. Newton steps from the threshold itself are zero; the derivatives of two
    # of them are those of the threshold, up to the third.
    lift, top = torch.zeros_like(k), (weight * step(u)).sum().detach()
    for _ in range(2):
        slope = (weight * slope_of_step(u - lift)).sum()
        lift = lift + ((weight * step(u - lift)).sum() - top) / or_one(slope)
    tp = (rows.positive * step(u - lift)).sum()
    with torch.no_grad():
        by_class = [(part * slope_of_step(u)).sum() for part in (rows.positive, rows.negative)]
        moved = by_class[0] * by_class[1] / or_one(by_class[0] + by_class[1])
        most = or_one(torch.minimum(k, rows.positive.sum()))
    return 1.0 - tp / or_one(k), is_stuck(1.0 - tp / most, moved / most)


def soft_f_beta_error(rows: Rows, beta: float, half: float) -> tuple[Tensor, Tensor]:
    """Return one minus F-beta at the best soft threshold, and whether it is stuck."""
    rows = without_gaps(rows, 4 * half)
    place = (rows.score - rows.origin) / half
    placed = rows._replace(score=place.detach())
    with torch.no_grad():
        theta = _best_threshold(placed, beta)
    u = place - theta
    above = step(u)
    m = rows.positive.sum()
    tp, fp = ((weight * above).sum() for weight in (rows.positive, rows.negative))
    error = 1.0 - _f_beta(tp, fp, m, beta)
    # At the best threshold the derivative in the threshold is zero, so it adds nothing to the first derivatives. From
    # the second ones it takes the square of how fast that zero moves, by the curvature in the threshold.
    rise, bend = _rise(rows, u, m, beta), _bend(rows, u.detach(), m, beta)
    factor = (1 + beta**2) / (beta**2 * or_one(m) + tp + fp).detach() ** 2
    moved = torch.where(bend > 0, factor / or_one(bend), torch.zeros_like(bend)) * (rise - rise.detach()) ** 2
    with torch.no_grad():
        reach = (rows.positive * slope_of_step(u)).sum() / or_one(m)
    return error - 0.5 * moved, is_stuck(error, reach)


def is_stuck(lost: Tensor, reach: Tensor) -> Tensor:
    """Tell whether at least half of what can be won is lost, and less than a hundredth is on the step.

    At random scores half is lost, so a loss that is above that has not started; the gradient is at most twice the share
    on the step, by the width.
    """
    return (lost.detach() >= 0.5) & (reach.detach() < 0.01)


def step(u: Tensor) -> Tensor:
    """Return the smooth step from 0 at -1 to 1 at 1."""
    u = u.clamp(-1.0, 1.0)
    return 0.5 + u - 0.5 * u * u.abs()


def slope_of_step(u: Tensor) -> Tensor:
    """Return the derivative of the step."""
    return (1.0 - u.abs()).clamp(min=0.0)


def _bisect(is_below: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> Tensor:
    """Return where a condition that holds at ``low`` ceases to."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = is_below(middle)
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2


def _f_beta(tp: Tensor, fp: Tensor, m: Tensor, beta: float) -> Tensor:
    return (1 + beta**2) * tp / (beta**2 * or_one(m) + tp + fp)


def _best_threshold(rows: Rows, beta: float) -> Tensor:
    """Return the best threshold: next to the positives first, then closely in the best places."""
    near, unseen = _spread_positives(rows)
    m = rows.positive.sum()
    classes = [_moments(rows.score, weight) for weight in (rows.positive, rows.negative)]

    def error(threshold: Tensor) -> Tensor:
        flat = threshold.reshape(-1)
        tp, fp = (_soft_weight_above(rows.score, moments, flat) for moments in classes)
        return (1.0 - _f_beta(tp, fp, m, beta)).reshape(threshold.shape)

    dtype, device = near.dtype, near.device
    # Made on the device: a tensor of Python numbers would be copied there.
    tried = near[:, None] + torch.linspace(_FIRST_OFFSET, _LAST_OFFSET, _OFFSETS, dtype=dtype, device=device)
    found = torch.where(unseen[:, None], error(tried).round(decimals=12), torch.inf).reshape(-1)
    # Rounding must not choose between places that are equally good: the highest one is taken.
    by_place = torch.argsort(-tried.reshape(-1), stable=True)
    kept = by_place.gather(0, torch.argsort(found.gather(0, by_place), stable=True))[:_CLOSE_LOOKS]
    theta, reach = tried.reshape(-1).gather(0, kept), 0.5
    points = torch.linspace(-1.0, 1.0, _POINTS, dtype=dtype, device=device)
    for _ in range(_ROUNDS):
        tried = theta[:, None] + reach * points
        lowest, best = error(tried).min(dim=1, keepdim=True)
        theta = tried.gather(1, best)[:, 0]
        reach *= 2 / (_POINTS - 1)
    theta = theta.gather(0, lowest[:, 0].round(decimals=14).argmin().reshape(1))
    return _polished(rows, m, beta, theta, reach)


def _spread_positives(rows: Rows) -> tuple[Tensor, Tensor]:
    """Return the scores of evenly spread positives, and which of them are not repeated."""
    passed = (rows.positive > 0).cumsum(0)
    last = (passed[-1] - 1).clamp(min=0)
    grid = torch.arange(_MOST_PLACES, dtype=rows.score.dtype, device=rows.score.device)
    rank = torch.minimum((grid * (last / (_MOST_PLACES - 1))).long(), last)
    rank = torch.where(grid == _MOST_PLACES - 1, last, rank)
    unseen = torch.cat([torch.ones_like(rank[:1], dtype=torch.bool), rank[1:] != rank[:-1]])
    # Ranks count from the lowest positive, the order of the rows from the highest.
    at = torch.searchsorted(passed, last + 1 - rank).clamp(max=passed.numel() - 1)
    return rows.score.gather(0, at), unseen


def _moments(score: Tensor, weight: Tensor) -> list[Tensor]:
    return [prefix(values) for values in (weight, weight * score, weight * score**2)]


def _soft_weight_above(score: Tensor, moments: list[Tensor], threshold: Tensor) -> Tensor:
    """Return the soft weight above each threshold, from prefix sums in descending order."""
    high, middle, low = (count_above(score, threshold + side) for side in (1.0, 0.0, -1.0))

    def squares(first: Tensor, last: Tensor, centre: Tensor) -> Tensor:
        zero, one, two = (sums.gather(0, last) - sums.gather(0, first) for sums in moments)
        return two - 2.0 * centre * one + centre**2 * zero

    # (1 + u)^2 / 2 below the threshold, 1 - (1 - u)^2 / 2 above it.
    rising, falling = squares(middle, low, threshold - 1.0), squares(high, middle, threshold + 1.0)
    return (0.5 * (rising - falling) + moments[0].gather(0, middle)).clamp(min=0.0)


def _polished(rows: Rows, m: Tensor, beta: float, theta: Tensor, reach: float) -> Tensor:
    """Return where the derivative in the threshold vanishes, within a reach; the threshold itself if nowhere."""

    def rise(shift: Tensor) -> Tensor:
        return _rise(rows, rows.score - (theta + shift), m, beta)

    start, stop = torch.full_like(theta, -reach), torch.full_like(theta, reach)
    at_start = rise(start)
    root = _bisect(lambda shift: rise(shift) * at_start > 0, start, stop)
    return theta + torch.where(at_start * rise(stop) < 0, root, torch.zeros_like(root))


def _rise(rows: Rows, u: Tensor, m: Tensor, beta: float) -> Tensor:
    """Return the derivative of the error in the threshold, up to a positive factor; ``u`` is the scores above it."""
    above, slope = step(u), slope_of_step(u)
    tp, fp = ((weight * above).sum() for weight in (rows.positive, rows.negative))
    slope_p, slope_n = ((weight * slope).sum() for weight in (rows.positive, rows.negative))
    return (beta**2 * or_one(m) + fp) * slope_p - tp * slope_n


def _bend(rows: Rows, u: Tensor, m: Tensor, beta: float) -> Tensor:
    """Return the derivative of :func:`_rise` in the threshold."""
    above, side = step(u), torch.sign(u) * (u.abs() < 1.0)
    tp, fp = ((weight * above).sum() for weight in (rows.positive, rows.negative))
    side_p, side_n = ((weight * side).sum() for weight in (rows.positive, rows.negative))
    return (beta**2 * or_one(m) + fp) * side_p - tp * side_n
