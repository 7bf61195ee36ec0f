"""Losses for networks: the surrogates of :mod:`rocmax.losses` as modules of PyTorch, ``loss(scores, labels)``.

Values and gradients equal those of the losses on NumPy arrays. Everything is computed on the device of the
scores by sorting and cumulative sums, O(N log N) in the rows of the batch. Every function works on tensors of the size
of the batch, in which rows of the other class have weight zero, so that the host never waits for a value. Places in the
order, shares of a window and thresholds are found without a graph; what is left is a polynomial in the scores, which
autograd differentiates. What the threshold adds to the derivatives is added in closed form, for the first and the
second.
"""

from __future__ import annotations

import inspect
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

try:
    import torch
except ImportError as error:
    raise ImportError(f"losses for networks need PyTorch: pip install 'rocmax[torch]' ({error})") from error
from torch import Tensor
from torch.utils.data import Sampler

from rocmax._docstrings import publish
from rocmax._support import check_beta, check_corner, check_top

# Checks of what a loss for networks gets: parameters on the host, tensors without waiting for a device.


def check_surrogate(surrogate: str, known: tuple[str, ...], **of_step: float | None) -> None:
    """Raise ValueError if a surrogate is unknown, or has no step but was given parameters of one."""
    if surrogate not in known:
        raise ValueError(f"surrogate must be one of {', '.join(map(repr, known))}; got {surrogate!r}")
    stepped = "ramp" if "ramp" in known else "soft"
    if surrogate != stepped:
        for name, value in of_step.items():
            if value is not None:
                raise ValueError(f"{name} belongs to surrogate={stepped!r}; got {value!r} with {surrogate!r}")
    check_width(of_step["width"])
    margin = of_step.get("margin")
    if margin is not None and not (_is_number(margin) and math.isfinite(margin)):
        raise ValueError(f"margin must be a finite number or None; got {margin!r}")


def check_width(width: float | None) -> None:
    """Raise ValueError if the length of a step is not a finite number above 0."""
    if width is not None and not (_is_number(width) and 0 < width < math.inf):
        raise ValueError(f"width must be a finite number > 0; got {width!r}")


def check_memory(memory: Any, memory_steps: Any) -> None:
    """Raise ValueError if a number of rows to remember, or of steps to remember them for, is none."""
    if not is_count(memory) or memory < 0:
        raise ValueError(f"memory must be a number of rows, an integer >= 0; got {memory!r}")
    if not is_count(memory_steps) or memory_steps < 1:
        raise ValueError(f"memory_steps must be a number of training steps, an integer >= 1; got {memory_steps!r}")


def check_positives(positives: Any, batch_size: Any) -> int:
    """Return the number of positives in each batch, or raise ValueError if a batch has no place for both classes."""
    if not is_count(batch_size) or batch_size < 2:
        raise ValueError(f"batch_size must be an integer >= 2, one row of each class; got {batch_size!r}")
    if is_count(positives):
        count = int(positives)
    elif _is_number(positives) and 0 < positives < 1:
        count = max(1, round(positives * batch_size))
    else:
        raise ValueError(f"positives must be an integer (rows) or a share above 0 and below 1; got {positives!r}")
    if not 1 <= count < batch_size:
        raise ValueError(
            f"positives must leave a batch of {batch_size} rows with at least one of each class; got {positives!r}"
        )
    return count


def can_look(values: Tensor) -> bool:
    """Tell whether the host may read a value: not on a device, for whose answer it would wait, nor while compiling."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def is_count(value: Any) -> bool:
    """Tell whether a value is an integer."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def poison_if(bad: Tensor, message: Callable[[], str]) -> Tensor:
    """Return zero, or for a bad input raise ValueError; NaN where the host may not look."""
    if can_look(bad) and bool(bad):
        raise ValueError(message())
    return torch.where(bad, math.nan, 0.0)


def class_weights(labels: Tensor, sample_weight: Tensor | None, score: Tensor, work: torch.dtype) -> tuple[Tensor, ...]:
    """Return the weights of the rows as positives and as negatives, and NaN in place of an error on a device."""
    label = column("labels", labels, score)
    if label.is_complex():
        raise TypeError(f"labels need to be boolean or 0/1; got {label.dtype}")
    is_positive = label == 1
    odd = ~(is_positive | (label == 0))
    poison = poison_if(
        odd.any(), lambda: f"labels of a loss are boolean or 0/1; got values such as {label[odd][0].item():g}"
    )
    if sample_weight is None:
        weight = torch.ones_like(score, dtype=work)
    else:
        weight = column("sample_weight", sample_weight, score).detach().to(work)
        wrong = ~(torch.isfinite(weight) & (weight >= 0))
        poison = poison + poison_if(
            wrong.any(), lambda: f"sample_weight must be finite and >= 0; got {weight[wrong][0].item():g}"
        )
    return weight * is_positive, weight * ~is_positive, poison.to(work)


def column(name: str, values: Tensor, score: Tensor | None = None) -> Tensor:
    """Return a tensor of one dimension on the device of the scores, one entry per score."""
    if not isinstance(values, Tensor):
        raise TypeError(f"{name} need to be a torch.Tensor; got {type(values).__name__}")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} need shape (n,) or (n, 1), one entry per row; got {tuple(values.shape)}")
    if score is None:
        return values
    if values.shape != score.shape:
        raise ValueError(f"{name} need one entry per score, {score.numel()}; got {values.numel()}")
    if values.device != score.device:
        raise ValueError(f"{name} need to be on the device of the scores, {score.device}; got {values.device}")
    return values


# Sums over pairs and tables of sorted scores, in torch.


class BatchRows(NamedTuple):
    """BatchRows in descending order of score, with their weights as members of each class."""

    score: Tensor
    positive: Tensor
    negative: Tensor

    @property
    def origin(self) -> Tensor:
        """Return the score that sums are taken about, so that large scores cancel no digits."""
        return self.score.detach()[self.score.numel() // 2]


def sort_rows(score: Tensor, positive: Tensor, negative: Tensor) -> BatchRows:
    """Sort rows by falling score."""
    placed, order = torch.sort(score, descending=True)
    return BatchRows(placed, positive.gather(0, order), negative.gather(0, order))


def window_end(total: Tensor, rate: float) -> Tensor:
    """Return ``total * rate``; one that is close to an integer is that integer, as in the losses on NumPy arrays."""
    end = total * rate
    nearest = end.round()
    return torch.where((end - nearest).abs() <= 1e-9 * nearest, nearest, end)


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


def window_weight(rows: BatchRows, min_fpr: float, max_fpr: float, soft_tail: bool = False) -> tuple[Tensor, Tensor]:
    """Return the weight of each negative in the window or its tail, and the sum of these weights."""
    n = rows.negative.sum()
    start, stop = window_end(n, min_fpr), window_end(n, max_fpr)
    held = (lambda rank: soft_rank(rank, stop)) if soft_tail else between(start, stop)
    return rows.negative * shares(rows.score, rows.negative, held), held(n)


def lowest_positives(rows: BatchRows, min_tpr: float, soft_tail: bool = False) -> BatchRows:
    """Return the rows with the weights of the positives above a true-positive rate, those with the lowest scores.

    With a soft tail the others have a weight that falls with the rank from the lowest score.
    """
    if min_tpr == 0:
        return rows
    m = rows.positive.sum()
    size = window_end(m, 1.0 - min_tpr)
    held = (lambda rank: -soft_rank(m - rank, size)) if soft_tail else between(m - size, m)
    return rows._replace(positive=rows.positive * shares(rows.score, rows.positive, held))


def hinge_pairs(rows: BatchRows, weight: Tensor, power: int) -> Tensor:
    """Sum of ``(1 - (s_i - z_j))_+ ** power`` over pairs, for the power 1 or 2; ``weight`` is that of the negatives."""
    depth = rows.score - rows.origin
    gap = 1.0 - depth
    active = count_above(rows.score, rows.score - 1.0)
    zeroth, first = (prefix(values).gather(0, active) for values in (weight, weight * depth))
    if power == 1:
        return (rows.positive * (gap * zeroth + first)).sum()
    second = prefix(weight * depth**2).gather(0, active)
    return (rows.positive * (gap**2 * zeroth + 2 * gap * first + second)).sum()


def ramp_pairs(rows: BatchRows, weight: Tensor, half: float, margin: float) -> tuple[Tensor, Tensor]:
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


def without_gaps(rows: BatchRows, longest: float) -> BatchRows:
    """Shorten gaps between neighbors that no step reaches across, so that squares of scores cost no digits."""
    score = rows.score.detach()
    excess = (score[:-1] - score[1:] - longest).clamp(min=0.0)
    return rows._replace(score=rows.score + prefix(excess))


def top_bound(rows: BatchRows, k: Tensor) -> Tensor:
    """Return the convex upper bound of one minus the precision among the rows at the top that weigh ``k``."""
    m, n = rows.positive.sum(), rows.negative.sum()
    scale = 1.0 / or_one(torch.minimum(k, m))
    # Labeling a positive lowers the error by 1 / k.
    margin = 1.0 / or_one(k * scale)
    lowered = sort_rows(torch.where(rows.positive > 0, rows.score - margin, rows.score), rows.positive, rows.negative)
    weight = lowered.positive + lowered.negative
    taken = weight * shares(lowered.score, weight, between(torch.zeros_like(k), k))
    best = rows.positive * (k / or_one(m)).clamp(max=1.0) + rows.negative * ((k - m) / or_one(n)).clamp(min=0.0)
    labeled, referred = (taken * (lowered.score - rows.origin)).sum(), (best * (rows.score - rows.origin)).sum()
    return 1.0 + scale * (labeled - referred)


# Measures of decisions at a soft threshold, in torch.


@dataclass(frozen=True)
class _ThresholdSearch:
    """The search for the best threshold, as in :mod:`rocmax.losses`."""

    # Places next to a positive, in halves of a step.
    offsets: tuple[float, float, int] = (-1.0, 0.5, 4)
    # Positives, and then places, that are tried.
    most_places: int = 500
    close_looks: int = 4
    # Points along a bracket, and rounds of narrowing it.
    points: int = 13
    rounds: int = 3


_SEARCH = _ThresholdSearch()


def soft_precision_error(rows: BatchRows, k: Tensor, half: float) -> tuple[Tensor, Tensor]:
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


def soft_f_beta_error(rows: BatchRows, beta: float, half: float) -> tuple[Tensor, Tensor]:
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
    for _ in range(53):  # as many as a double has digits
        middle = (low + high) / 2
        below = is_below(middle)
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2


def _f_beta(tp: Tensor, fp: Tensor, m: Tensor, beta: float) -> Tensor:
    return (1 + beta**2) * tp / (beta**2 * or_one(m) + tp + fp)


def _best_threshold(rows: BatchRows, beta: float) -> Tensor:
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
    tried = near[:, None] + torch.linspace(*_SEARCH.offsets, dtype=dtype, device=device)
    found = torch.where(unseen[:, None], error(tried).round(decimals=12), torch.inf).reshape(-1)
    # Rounding must not choose between places that are equally good: the highest one is taken.
    by_place = torch.argsort(-tried.reshape(-1), stable=True)
    kept = by_place.gather(0, torch.argsort(found.gather(0, by_place), stable=True))[: _SEARCH.close_looks]
    theta, reach = tried.reshape(-1).gather(0, kept), 0.5
    points = torch.linspace(-1.0, 1.0, _SEARCH.points, dtype=dtype, device=device)
    for _ in range(_SEARCH.rounds):
        tried = theta[:, None] + reach * points
        lowest, best = error(tried).min(dim=1, keepdim=True)
        theta = tried.gather(1, best)[:, 0]
        reach *= 2 / (_SEARCH.points - 1)
    theta = theta.gather(0, lowest[:, 0].round(decimals=14).argmin().reshape(1))
    return _polished(rows, m, beta, theta, reach)


def _spread_positives(rows: BatchRows) -> tuple[Tensor, Tensor]:
    """Return the scores of evenly spread positives, and which of them are not repeated."""
    passed = (rows.positive > 0).cumsum(0)
    last = (passed[-1] - 1).clamp(min=0)
    grid = torch.arange(_SEARCH.most_places, dtype=rows.score.dtype, device=rows.score.device)
    rank = torch.minimum((grid * (last / (_SEARCH.most_places - 1))).long(), last)
    rank = torch.where(grid == _SEARCH.most_places - 1, last, rank)
    unseen = torch.cat([torch.ones_like(rank[:1], dtype=torch.bool), rank[1:] != rank[:-1]])
    # Ranks count from the lowest positive, the order of the rows from the highest.
    at = torch.searchsorted(passed, last + 1 - rank).clamp(max=passed.numel() - 1)
    return rows.score.gather(0, at), unseen


def _moments(score: Tensor, weight: Tensor) -> list[Tensor]:
    return [prefix(values) for values in (weight, weight * score, weight * score**2)]


def _soft_weight_above(score: Tensor, moments: list[Tensor], threshold: Tensor) -> Tensor:
    """Return the soft weight above each threshold, from prefix sums in descending order."""
    high, middle, low = (count_above(score, threshold + side) for side in (1.0, 0.0, -1.0))

    def squares(first: Tensor, last: Tensor, center: Tensor) -> Tensor:
        zero, one, two = (sums.gather(0, last) - sums.gather(0, first) for sums in moments)
        return two - 2.0 * center * one + center**2 * zero

    # (1 + u)^2 / 2 below the threshold, 1 - (1 - u)^2 / 2 above it.
    rising, falling = squares(middle, low, threshold - 1.0), squares(high, middle, threshold + 1.0)
    return (0.5 * (rising - falling) + moments[0].gather(0, middle)).clamp(min=0.0)


def _polished(rows: BatchRows, m: Tensor, beta: float, theta: Tensor, reach: float) -> Tensor:
    """Return where the derivative in the threshold vanishes, within a reach; the threshold itself if nowhere."""

    def rise(shift: Tensor) -> Tensor:
        return _rise(rows, rows.score - (theta + shift), m, beta)

    start, stop = torch.full_like(theta, -reach), torch.full_like(theta, reach)
    at_start = rise(start)
    root = _bisect(lambda shift: rise(shift) * at_start > 0, start, stop)
    return theta + torch.where(at_start * rise(stop) < 0, root, torch.zeros_like(root))


def _rise(rows: BatchRows, u: Tensor, m: Tensor, beta: float) -> Tensor:
    """Return the derivative of the error in the threshold, up to a positive factor; ``u`` is the scores above it."""
    above, slope = step(u), slope_of_step(u)
    tp, fp = ((weight * above).sum() for weight in (rows.positive, rows.negative))
    slope_p, slope_n = ((weight * slope).sum() for weight in (rows.positive, rows.negative))
    return (beta**2 * or_one(m) + fp) * slope_p - tp * slope_n


def _bend(rows: BatchRows, u: Tensor, m: Tensor, beta: float) -> Tensor:
    """Return the derivative of :func:`_rise` in the threshold."""
    above, side = step(u), torch.sign(u) * (u.abs() < 1.0)
    tp, fp = ((weight * above).sum() for weight in (rows.positive, rows.negative))
    side_p, side_n = ((weight * side).sum() for weight in (rows.positive, rows.negative))
    return (beta**2 * or_one(m) + fp) * side_p - tp * side_n


# Losses for networks: the surrogates of :mod:`rocmax.losses` as modules of PyTorch, ``loss(scores, labels)``.

__all__ = ["AUCLoss", "FBetaLoss", "PartialAUCLoss", "PrecisionAtKLoss", "StratifiedBatchSampler"]


class _ScoreLoss(torch.nn.Module):
    """A loss on the scores and labels of a batch, and perhaps of rows remembered from the batches before.

    A subclass says what the loss of sorted rows is. The memory is four buffers: scores, weights as positives and as
    negatives, and ages in steps; an empty place has weight zero.
    """

    # Whether rows are remembered by class. If not, the classes keep their proportions.
    _by_class = True
    # What to do where the gradient vanishes.
    _remedy = "Use a larger width"
    memory_score: Tensor
    memory_positive: Tensor
    memory_negative: Tensor
    memory_age: Tensor

    def __init__(self, memory: int, memory_steps: int) -> None:
        super().__init__()
        check_memory(memory, memory_steps)
        self.memory, self.memory_steps = int(memory), int(memory_steps)
        self._warned: set[str] = set()
        if self.memory:
            size = self.memory * (2 if self._by_class else 1)
            for name in ("memory_score", "memory_positive", "memory_negative", "memory_age"):
                self.register_buffer(name, torch.zeros(size))

    def forward(self, scores: Tensor, labels: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar.

        Parameters
        ----------
        scores : Tensor of shape (n,) or (n, 1)
            Floating-point scores, higher for the positive class.
        labels : Tensor of shape (n,) or (n, 1)
            Boolean or 0/1.
        sample_weight : Tensor of shape (n,) or (n, 1), default=None
            A row of weight ``v`` counts as ``v`` copies of itself; a row of weight zero is absent.

        Returns
        -------
        Tensor
            The loss, float32 or the precision of the scores if that is higher. It is zero where a class is absent.
        """
        score = column("scores", scores)
        if not score.is_floating_point():
            raise TypeError(f"scores need a floating-point tensor; got {score.dtype}")
        result = torch.promote_types(score.dtype, torch.float32)
        if score.numel() == 0:
            return score.sum().to(result)
        # Sums of many terms need digits; half precision has none to spare. MPS has no doubles.
        work = torch.float32 if score.device.type == "mps" else torch.float64
        positive, negative, poison = class_weights(labels, sample_weight, score, work)
        weight = positive + negative
        score = torch.where(weight > 0, score.to(work), 0.0)
        poison = poison + self._check(weight.sum()) + torch.where(torch.isfinite(score).all(), 0.0, torch.nan)
        batch = BatchRows(score, positive, negative)
        sample = batch
        if self.memory and self.training:
            sample = self._with_memory(batch)
            self._remember(batch)
        rows = sort_rows(*sample)
        both = (rows.positive.sum() > 0) & (rows.negative.sum() > 0)
        value, stuck = self._value(rows)
        if self.training and can_look(score):
            self._warn_of_few_rows(int((rows.positive > 0).sum()), int((rows.negative > 0).sum()))
            if stuck is not None and bool(stuck & both):
                self._warn_of_no_gradient(rows)
        # What is added is zero, or NaN if an input is not what it should be: then no gradient looks valid either.
        return (torch.where(both, value, 0.0) + poison * score.sum()).to(result)

    @abstractmethod
    def _value(self, rows: BatchRows) -> tuple[Tensor, Tensor | None]:
        """Return the loss of rows in descending order, and for a bounded loss whether its gradient vanishes."""

    def _few_rows(self, m: int, n: int) -> str | None:
        """Return what is wrong with ``m`` positives and ``n`` negatives for this measure, if anything."""
        return None

    def _warn_of_few_rows(self, m: int, n: int) -> None:
        if m == 0 or n == 0:
            found: str | None = f"a batch without {'positives' if m == 0 else 'negatives'} has no loss and no gradient"
        else:
            found = self._few_rows(m, n)
        if found:
            self._warn(
                "rows",
                f"{found}; got {m} positives and {n} negatives{', remembered ones included' if self.memory else ''}. "
                f"Draw batches with rocmax.torch.StratifiedBatchSampler, make them larger, or set memory",
            )

    def _warn_of_no_gradient(self, rows: BatchRows) -> None:
        score = rows.score.detach()
        spread = float(score[0] - score[-1])
        self._warn(
            "gradient",
            f"the gradient vanishes: at least half of the measure is lost and hardly a row is on the step; got scores "
            f"that spread over {spread:.3g} and width={getattr(self, 'width', None) or 1.0:g}. "
            f"{self._remedy}, or train by cross-entropy first",
        )

    def _warn(self, about: str, message: str) -> None:
        """Warn, once for each loss: a batch is one of thousands."""
        if about not in self._warned:
            self._warned.add(about)
            # Where the loss was called: above are forward and the two calls of a module around it.
            warnings.warn(f"{type(self).__name__}: {message}", UserWarning, stacklevel=6)

    def _check(self, total: Tensor) -> Tensor:
        """Return zero, or NaN (on the host: raise) if the loss cannot be had for a batch of this weight."""
        return torch.zeros_like(total)

    def extra_repr(self) -> str:
        """Return the parameters."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in inspect.signature(type(self)).parameters)

    def clear_memory(self) -> None:
        """Forget the remembered scores, for instance before training on other data."""
        if self.memory:
            for buffer in (self.memory_score, self.memory_positive, self.memory_negative, self.memory_age):
                buffer.zero_()

    def _with_memory(self, batch: BatchRows) -> BatchRows:
        """Return the rows of the batch and those of the memory.

        Remembered rows have no graph. What their gradient would have been is added to that of the rows of the batch,
        which stand for them.
        """
        if self.memory_score.device != batch.score.device:
            raise ValueError(
                f"the memory of the loss is on {self.memory_score.device}, the scores on {batch.score.device}; "
                f"move the loss: loss.to(scores.device)"
            )
        old = [b.to(batch.score.dtype) for b in (self.memory_score, self.memory_positive, self.memory_negative)]
        score, positive, negative = (torch.cat(parts) for parts in zip(batch, old, strict=True))
        size = batch.score.numel()
        ratio = torch.zeros_like(batch.score)
        for member in self._groups(positive, negative):
            share = member.sum() / or_one(member[:size].sum())
            ratio = torch.where(member[:size] > 0, share, ratio)
        constant = batch.score.detach()
        moved = constant + ratio * (batch.score - constant)
        return BatchRows(torch.cat([moved, score[size:]]), positive, negative)

    def _groups(self, positive: Tensor, negative: Tensor) -> tuple[Tensor, ...]:
        """Return the weights of the groups in which rows are remembered."""
        return (positive, negative) if self._by_class else (positive + negative,)

    def _remember(self, batch: BatchRows) -> None:
        """Put the rows of the batch into the memory, in place of the oldest ones and of those that are too old."""
        buffers = (self.memory_score, self.memory_positive, self.memory_negative, self.memory_age)
        finite = torch.isfinite(batch.score)
        new = [torch.where(finite, column.detach(), 0.0) for column in batch]
        columns = [
            torch.cat([column.to(old.dtype), old])
            for column, old in zip([*new, torch.zeros_like(new[0])], (*buffers[:3], buffers[3] + 1), strict=True)
        ]
        fresh = columns[3] < self.memory_steps
        kept = []
        for member in self._groups(columns[1], columns[2]):
            held = (member > 0) & fresh
            order = torch.argsort((~held).to(torch.uint8), stable=True)[: self.memory]
            present = held.gather(0, order)
            kept.append([torch.where(present, column.gather(0, order), 0.0) for column in columns])
        for buffer, parts in zip(buffers, zip(*kept, strict=True), strict=True):
            buffer.copy_(torch.cat(parts))


class _PairLoss(_ScoreLoss):
    """A loss on pairs of a positive and a negative."""

    _remedy = "Use surrogate='squared_hinge' or a larger width"

    def __init__(
        self, surrogate: str, width: float | None, margin: float | None, memory: int, memory_steps: int
    ) -> None:
        super().__init__(memory, memory_steps)
        self.surrogate, self.width, self.margin = surrogate, width, margin
        check_surrogate(surrogate, ("squared_hinge", "hinge", "ramp"), width=width, margin=margin)

    def _mean_cost(self, rows: BatchRows, weight: Tensor, held: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the mean cost of the pairs in a window, and for the ramp whether its gradient vanishes."""
        pairs = or_one(rows.positive.sum() * held)
        if self.surrogate == "ramp":
            half = _half(self.width)
            total, on_step = ramp_pairs(rows, weight, half, half if self.margin is None else self.margin)
            return total / pairs, is_stuck(total / pairs, on_step / pairs)
        return hinge_pairs(rows, weight, power=2 if self.surrogate == "squared_hinge" else 1) / pairs, None


class PartialAUCLoss(_PairLoss):
    """Loss for the partial AUC over a window of false-positive rates.

    Parameters
    ----------
    min_fpr, max_fpr : float, default=0.0 and 0.1
        The window, ``0 <= min_fpr < max_fpr <= 1``.
    min_tpr : ...
        Only the positives with the lowest scores, a share ``1 - min_tpr`` of them, are then compared.
    surrogate : {"squared_hinge", "hinge", "ramp"}, default="squared_hinge"
        What a pair of a positive and a negative inside the window costs:

        - "squared_hinge": ``max(0, 1 - difference) ** 2``, :class:`rocmax.losses.WindowPairs`. All wrong pairs have a
          gradient, the worse the larger.
        - "hinge": ``max(0, 1 - difference)``, :class:`rocmax.losses.PartialAUCHinge`.
        - "ramp": a smooth step from 1 to 0, :class:`rocmax.losses.PartialAUCRamp`. It is bounded, so a network cannot
          lower it by giving all rows the same score. A pair far on the wrong side has no gradient.
    soft_tail : bool, default=None
        Whether the negatives below the window count, too, with a weight of the end of the window by their rank: the
        window of a small batch is a handful of rows, and a loss on these alone is noise. The positives above
        ``min_tpr`` have such a tail as well. For the squared hinge and ``min_fpr=0`` only; None means there.
    width : float, default=None
        Length of the step in the scores, for the ramp: 1 if None.
    margin : float, default=None
        Score difference at the middle of the step, for the ramp: ``width / 2`` if None.
    memory : int, default=0
        How many recent scores of each class to remember, so that a small window is more than a fraction of one
        negative of the batch. Used and filled in training mode only.
    memory_steps : int, default=8
        For how many training steps a score is remembered. After a few steps of Adam, scores have moved little; after an
        epoch they are those of another network.

    Warns
    -----
    UserWarning
        In training mode on the CPU, once for each loss: if a batch, with the memory, has less than one negative in the
        window, less than one positive above ``min_tpr``, or rows of one class only; and if the ramp has no gradient.

    Notes
    -----
    The gradient of the rows in the batch is scaled by class, so that it estimates the gradient of all rows, the
    remembered ones included: a memory that holds copies of the batch changes neither value nor gradient. The memory
    consists of buffers: ``loss.to(device)`` moves it and ``state_dict`` holds it.

    Labels, weights and scores that are not valid raise an error on the CPU. On other devices the host would have to
    wait for that, so the loss is NaN instead, as it is in a compiled graph. Scores that are not finite give NaN on all
    devices.

    Second derivatives are exact without a memory, wherever the order of the scores does not change.

    Examples
    --------
    >>> import torch
    >>> from rocmax.torch import PartialAUCLoss
    >>> scores = torch.tensor([2.0, 1.5, 0.0, 0.0, 1.0, -1.0], requires_grad=True)
    >>> loss = PartialAUCLoss(max_fpr=0.5, soft_tail=False)(scores, torch.tensor([1, 0, 0, 1, 0, 0]))
    >>> loss.backward()
    >>> loss.item()
    2.625
    """

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        *,
        min_tpr: float = 0.0,
        surrogate: str = "squared_hinge",
        soft_tail: bool | None = None,
        width: float | None = None,
        margin: float | None = None,
        memory: int = 0,
        memory_steps: int = 8,
    ) -> None:
        super().__init__(surrogate, width, margin, memory, memory_steps)
        check_corner(min_fpr, max_fpr, min_tpr)
        self.min_fpr, self.max_fpr, self.min_tpr, self.soft_tail = min_fpr, max_fpr, min_tpr, soft_tail
        if soft_tail and not self._can_have_tail():
            raise ValueError(
                f"soft_tail is for surrogate='squared_hinge' and min_fpr=0; got {surrogate!r} and min_fpr={min_fpr:g}"
            )

    def _can_have_tail(self) -> bool:
        return self.surrogate == "squared_hinge" and self.min_fpr == 0

    def _value(self, rows: BatchRows) -> tuple[Tensor, Tensor | None]:
        tail = self._can_have_tail() if self.soft_tail is None else self.soft_tail
        rows = lowest_positives(rows, self.min_tpr, tail)
        return self._mean_cost(rows, *window_weight(rows, self.min_fpr, self.max_fpr, tail))

    def _few_rows(self, m: int, n: int) -> str | None:
        # One row, but for the rounding of the product.
        one, share = 1 - 1e-9, self.max_fpr - self.min_fpr
        if n * share < one:
            return (
                f"the false-positive rates from {self.min_fpr:g} to {self.max_fpr:g} hold {n * share:.2g} of a "
                f"negative and need one, so at least {math.ceil(one / share)} negatives"
            )
        if m * (1 - self.min_tpr) < one:
            return (
                f"the true-positive rates from {self.min_tpr:g} hold {m * (1 - self.min_tpr):.2g} of a positive and "
                f"need one, so at least {math.ceil(one / (1 - self.min_tpr))} positives"
            )
        return None


class AUCLoss(_PairLoss):
    """Loss for the area under the ROC curve.

    Parameters
    ----------
    surrogate : {"squared_hinge", "hinge", "ramp"}, default="squared_hinge"
        What a pair of a positive and a negative costs: :class:`rocmax.losses.PairwiseSquaredHinge`,
        :class:`rocmax.losses.PairwiseHinge`, or the bounded :class:`rocmax.losses.PartialAUCRamp` on the window [0, 1].
    width, margin, memory, memory_steps
        As in :class:`PartialAUCLoss`.

    Examples
    --------
    >>> import torch
    >>> from rocmax.torch import AUCLoss
    >>> AUCLoss()(torch.tensor([2.0, 1.5, 0.0, 0.0]), torch.tensor([1, 0, 1, 0])).item()
    1.875
    """

    def __init__(
        self,
        *,
        surrogate: str = "squared_hinge",
        width: float | None = None,
        margin: float | None = None,
        memory: int = 0,
        memory_steps: int = 8,
    ) -> None:
        super().__init__(surrogate, width, margin, memory, memory_steps)

    def _value(self, rows: BatchRows) -> tuple[Tensor, Tensor | None]:
        return self._mean_cost(rows, *window_weight(rows, 0.0, 1.0))


class PrecisionAtKLoss(_ScoreLoss):
    """Loss for the precision among the rows with the highest scores.

    Parameters
    ----------
    k : int, float or None
        An integer is a number of rows of the batch; a float, above 0 and at most 1, a fraction of its rows; None
        the number of positives, which makes it the break-even point.
    surrogate : {"soft", "convex"}, default="soft"
        "soft" is the measure with a smooth step for a threshold, :class:`rocmax.losses.SoftPrecision`: bounded.
        "convex" is an upper bound of the error, :class:`rocmax.losses.PrecisionAtK`.
    width : float, default=None
        Length of the soft step in the scores: 1 if None.
    memory : int, default=0
        How many recent rows to remember, of both classes in their proportions; otherwise as in
        :class:`PartialAUCLoss`. It needs ``k`` as a fraction or None.
    memory_steps : int, default=8
        For how many training steps a row is remembered.

    Notes
    -----
    The measure depends on the share of positives. On batches with another share than the data, such as those of
    :class:`StratifiedBatchSampler`, give weights that restore it.

    Examples
    --------
    >>> import torch
    >>> from rocmax.torch import PrecisionAtKLoss
    >>> PrecisionAtKLoss(k=1)(torch.tensor([1.5, 2.0, 0.0, 0.0]), torch.tensor([1, 0, 1, 0])).item()
    0.875
    """

    _by_class = False
    _remedy = "Use surrogate='convex' or a larger width"

    def __init__(
        self,
        k: float | None,
        *,
        surrogate: str = "soft",
        width: float | None = None,
        memory: int = 0,
        memory_steps: int = 8,
    ) -> None:
        super().__init__(memory, memory_steps)
        if k is not None:
            check_top(k)
        if self.memory and is_count(k):
            raise ValueError(f"a memory changes the number of rows: k must be a fraction (a float); got {k!r}")
        self.k, self.surrogate, self.width = k, surrogate, width
        check_surrogate(surrogate, ("soft", "convex"), width=width)

    def _check(self, total: Tensor) -> Tensor:
        if self.k is None or not is_count(self.k):
            return torch.zeros_like(total)
        few = self.k > total * (1 + 1e-9)
        return poison_if(few, lambda: f"k={self.k} rows at the top need a batch of at least that weight; got {total:g}")

    def _few_rows(self, m: int, n: int) -> str | None:
        if self.k is None or is_count(self.k) or (m + n) * self.k >= 1 - 1e-9:
            return None
        return f"k={self.k:g} holds {(m + n) * self.k:.2g} of a row and needs one, so {math.ceil(1 / self.k)} rows"

    def _value(self, rows: BatchRows) -> tuple[Tensor, Tensor | None]:
        m, n = rows.positive.sum(), rows.negative.sum()
        if self.k is None:
            k = m
        elif is_count(self.k):
            k = torch.full_like(m, float(self.k))
        else:
            k = window_end(m + n, float(self.k))
        if self.surrogate == "convex":
            return top_bound(rows, k), None
        return soft_precision_error(rows, k, _half(self.width))


class FBetaLoss(_ScoreLoss):
    """Loss for F-beta at the best threshold on the scores: the measure with a smooth step for the threshold.

    It equals :class:`rocmax.losses.SoftMeasure` with :class:`rocmax.losses.FBeta`: bounded, and a shift of all scores
    changes nothing, so a threshold is to be chosen after training.

    Parameters
    ----------
    beta
    width : float, default=None
        Length of the step in the scores: 1 if None.
    memory, memory_steps
        As in :class:`PrecisionAtKLoss`.

    Notes
    -----
    As for :class:`PrecisionAtKLoss`, the batches need the share of positives of the data, or weights that restore it.

    Examples
    --------
    >>> import torch
    >>> from rocmax.torch import FBetaLoss
    >>> loss = FBetaLoss(width=0.5)(torch.tensor([2.0, 1.5, 0.0, 0.0]), torch.tensor([1, 0, 1, 0]))
    >>> round(loss.item(), 4)
    0.3333
    """

    _by_class = False

    def __init__(
        self,
        beta: float = 1.0,
        *,
        width: float | None = None,
        memory: int = 0,
        memory_steps: int = 8,
    ) -> None:
        super().__init__(memory, memory_steps)
        check_beta(beta)
        check_width(width)
        self.beta, self.width = beta, width

    def _value(self, rows: BatchRows) -> tuple[Tensor, Tensor | None]:
        return soft_f_beta_error(rows, float(self.beta), _half(self.width))


class StratifiedBatchSampler(Sampler[list[int]]):
    """Batches with a fixed number of positives, for ``DataLoader(..., batch_sampler=...)``.

    In an epoch every negative is drawn once, in random order, and the batches hold equally many of them, but for one.
    The positives go round in random order, each as often as any other, but for one time.

    Parameters
    ----------
    labels : Tensor or array-like of shape (n,)
        The labels of all rows of the data set in its order, boolean or 0/1.
    batch_size : int
        The most rows of a batch.
    positives : int or float, default=0.25
        The positives of each batch: an integer is a number of rows, a float a share of ``batch_size``.
    generator : torch.Generator, default=None
        Source of the order. If None, each epoch takes a seed from the global one of PyTorch, as its samplers do.

    Attributes
    ----------
    positive_weight : float
        Weight of a positive that restores the share of positives in the data: the number of positives by the number of
        draws of positives in an epoch.

    Notes
    -----
    Within each class rows are drawn uniformly. True- and false-positive rates are shares of one class, so the losses
    for the AUC and the partial AUC estimate the same as on batches drawn at random, with less noise where positives are
    rare. Measures that depend on the share of positives need ``positive_weight``: :class:`PrecisionAtKLoss` and
    :class:`FBetaLoss` as the ``sample_weight`` of the positives; cross-entropy as ``pos_weight``, if its output is read
    as a probability.

    A share below that of the data leaves positives out of an epoch, others each time. With several processes, give each
    the rows and labels of its own part of the data.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from rocmax.torch import StratifiedBatchSampler
    >>> y = torch.arange(1000) % 50 == 0
    >>> batches = StratifiedBatchSampler(y, 128, positives=32, generator=torch.Generator().manual_seed(0))
    >>> loader = DataLoader(TensorDataset(torch.randn(1000, 3), y), batch_sampler=batches)
    >>> [(len(label), int(label.sum())) for _, label in loader][:2]
    [(122, 32), (121, 32)]
    """

    def __init__(
        self,
        labels: Any,
        batch_size: int,
        *,
        positives: float = 0.25,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        label = column("labels", torch.as_tensor(labels).cpu())
        odd = ~((label == 0) | (label == 1))
        if bool(odd.any()):
            raise ValueError(f"labels of a sampler are boolean or 0/1; got values such as {label[odd][0].item():g}")
        self.batch_size, self.positives, self.generator = batch_size, positives, generator
        self._per_batch = check_positives(positives, batch_size)
        self._positive, self._negative = ((label == value).nonzero()[:, 0] for value in (1, 0))
        m, n = self._positive.numel(), self._negative.numel()
        if m == 0 or n == 0:
            raise ValueError(f"labels of a sampler need both classes; got {m} positives and {n} negatives")
        self.positive_weight = m / (len(self) * self._per_batch)

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return -(-self._negative.numel() // (self.batch_size - self._per_batch))

    def __iter__(self) -> Iterator[list[int]]:
        """Draw the batches of an epoch, lists of rows."""
        generator = self.generator
        if generator is None:
            generator = torch.Generator().manual_seed(int(torch.empty((), dtype=torch.int64).random_()))
        m, drawn = self._positive.numel(), len(self) * self._per_batch
        rounds = [torch.randperm(m, generator=generator) for _ in range(-(-drawn // m))]
        positive = self._positive[torch.cat(rounds)[:drawn]]
        negative = self._negative[torch.randperm(self._negative.numel(), generator=generator)]
        for rows in zip(positive.reshape(len(self), -1), negative.tensor_split(len(self)), strict=True):
            yield torch.cat(rows).tolist()


def _half(width: float | None) -> float:
    return 0.5 if width is None else width / 2


publish("rocmax.torch", globals(), __all__)
