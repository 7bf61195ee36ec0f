"""Losses for networks: the surrogates of :mod:`rocmax.losses` as modules of PyTorch, ``loss(scores, labels)``.

Values and gradients equal those of the losses on NumPy arrays. Everything is computed on the device of the
scores by sorting and cumulative sums, O(N log N) in the rows of the batch. Every function works on tensors of the size
of the batch, in which rows of the other class have weight zero, so that the host never waits for a value. Places in the
order, shares of a window and thresholds are found without a graph; what is left is a polynomial in the scores, which
autograd differentiates. What the threshold adds to the gradient is added in closed form.
"""

from __future__ import annotations

import inspect
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

try:
    import torch
except ImportError as error:
    raise ImportError(f"losses for networks need PyTorch: pip install 'rocmax[torch]' ({error})") from error
from torch import Tensor
from torch.utils.data import Sampler

from rocmax._docstrings import publish
from rocmax._support import check_corner, check_top

# Checks of what a loss for networks gets: parameters on the host, tensors without waiting for a device.


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


def squared_hinge(rows: BatchRows, weight: Tensor, held: Tensor) -> Tensor:
    """Return the mean of ``(1 - (s_i - z_j))_+ ** 2`` over pairs; the weights of the negatives sum to ``held``."""
    depth = rows.score - rows.origin
    gap = 1.0 - depth
    active = count_above(rows.score, rows.score - 1.0)
    zeroth, first, second = (prefix(weight * depth**power).gather(0, active) for power in range(3))
    total = (rows.positive * (gap**2 * zeroth + 2 * gap * first + second)).sum()
    return total / or_one(rows.positive.sum() * held)


# The precision at a soft threshold, in torch.


def soft_true_positives(rows: BatchRows, k: Tensor, half: float) -> tuple[Tensor, Tensor]:
    """Return the positives above a soft threshold that rows of weight ``k`` pass, and how many a raised one passes.

    The second number bounds the gradient.
    """
    weight = rows.positive + rows.negative
    last = torch.searchsorted(weight.cumsum(0), (k * (1 - 1e-12)).reshape(1)).clamp(max=weight.numel() - 1)
    # The row that completes the top is on the step, or just beside it.
    u = (rows.score - rows.score.detach().gather(0, last)) / half
    with torch.no_grad():
        low, high = -torch.ones_like(k), torch.ones_like(k)
        for _ in range(53):  # as many as a double has digits
            middle = (low + high) / 2
            below = (weight * step(u - middle)).sum() > k
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        near = u - (low + high) / 2
        of_positives, of_negatives = ((part * slope_of_step(near)).sum() for part in (rows.positive, rows.negative))
    u = u - (low + high) / 2
    # A row that rises lifts the threshold, too: a Newton step from the threshold, which is zero, has its derivative.
    held, total = (weight * step(u)).sum(), or_one(of_positives + of_negatives)
    tp = (rows.positive * step(u - (held - held.detach()) / total)).sum()
    return tp, of_positives * of_negatives / total


def step(u: Tensor) -> Tensor:
    """Return the smooth step from 0 at -1 to 1 at 1."""
    u = u.clamp(-1.0, 1.0)
    return 0.5 + u - 0.5 * u * u.abs()


def slope_of_step(u: Tensor) -> Tensor:
    """Return the derivative of the step."""
    return (1.0 - u.abs()).clamp(min=0.0)


# Losses for networks: the surrogates of :mod:`rocmax.losses` as modules of PyTorch, ``loss(scores, labels)``.

__all__ = ["AUCLoss", "PartialAUCLoss", "PrecisionAtKLoss", "StratifiedBatchSampler"]


class _ScoreLoss(torch.nn.Module):
    """A loss on the scores and labels of a batch, and perhaps of rows remembered from the batches before.

    A subclass says what the loss of sorted rows is. The memory is four buffers: scores, weights as positives and as
    negatives, and ages in steps; an empty place has weight zero.
    """

    # Whether rows are remembered by class. If not, the classes keep their proportions.
    _by_class = True
    memory_score: Tensor

    def __init__(self, memory: int, memory_steps: int) -> None:
        super().__init__()
        if not is_count(memory) or memory < 0:
            raise ValueError(f"memory must be a number of rows, an integer >= 0; got {memory!r}")
        if not is_count(memory_steps) or memory_steps < 1:
            raise ValueError(f"memory_steps must be a number of training steps, an integer >= 1; got {memory_steps!r}")
        self.memory, self.memory_steps = int(memory), int(memory_steps)
        self._warned: set[str] = set()
        if self.memory:
            size = self.memory * (2 if self._by_class else 1)
            for name in ("score", "positive", "negative", "age"):
                self.register_buffer(f"memory_{name}", torch.zeros(size))

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
        value = self._value(rows)
        if self.training and can_look(score):
            self._warn_of_few_rows(int((rows.positive > 0).sum()), int((rows.negative > 0).sum()))
        # What is added is zero, or NaN if an input is not what it should be: then no gradient looks valid either.
        return (torch.where(both, value, 0.0) + poison * score.sum()).to(result)

    @abstractmethod
    def _value(self, rows: BatchRows) -> Tensor:
        """Return the loss of rows in descending order."""

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

    def _warn(self, about: str, message: str) -> None:
        """Warn, once for each loss: a batch is one of thousands."""
        if about not in self._warned:
            self._warned.add(about)
            # Where the loss was called: above are a method, forward and the two calls of a module around it.
            warnings.warn(f"{type(self).__name__}: {message}", UserWarning, stacklevel=6)

    def _check(self, total: Tensor) -> Tensor:
        """Return zero, or NaN (on the host: raise) if the loss cannot be had for a batch of this weight."""
        return torch.zeros_like(total)

    def extra_repr(self) -> str:
        """Return the parameters."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in inspect.signature(type(self)).parameters)

    def clear_memory(self) -> None:
        """Forget the remembered scores, for instance before training on other data."""
        for buffer in self.buffers():
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
        *old, _ = (buffer.to(batch.score.dtype) for buffer in self.buffers())
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
        *buffers, age = self.buffers()
        finite = torch.isfinite(batch.score)
        new = [*(torch.where(finite, column.detach(), 0.0) for column in batch), torch.zeros_like(batch.score)]
        columns = [torch.cat([n.to(age.dtype), old]) for n, old in zip(new, [*buffers, age + 1], strict=True)]
        fresh = columns[3] < self.memory_steps
        kept = []
        for member in self._groups(columns[1], columns[2]):
            held = (member > 0) & fresh
            order = torch.argsort((~held).to(torch.uint8), stable=True)[: self.memory]
            present = held.gather(0, order)
            kept.append([torch.where(present, column.gather(0, order), 0.0) for column in columns])
        for buffer, parts in zip(self.buffers(), zip(*kept, strict=True), strict=True):
            buffer.copy_(torch.cat(parts))


class PartialAUCLoss(_ScoreLoss):
    """Loss for the partial AUC over a window of false-positive rates.

    Parameters
    ----------
    min_fpr, max_fpr : float, default=0.0 and 0.1
        The window, ``0 <= min_fpr < max_fpr <= 1``.
    min_tpr : ...
        Only the positives with the lowest scores, a share ``1 - min_tpr`` of them, are then compared.
    soft_tail : bool, default=None
        Whether the negatives below the window count, too, with a weight of the end of the window by their rank: the
        window of a small batch is a handful of rows, and a loss on these alone is noise. The positives above
        ``min_tpr`` have such a tail as well. It needs ``min_fpr=0``; None means there.
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
        window, less than one positive above ``min_tpr``, or rows of one class only.

    Notes
    -----
    A pair of a positive and a negative costs ``max(0, 1 - difference) ** 2``, as in
    :class:`rocmax.losses.WindowPairs`. All wrong pairs have a gradient, the worse the larger.

    The gradient of the rows in the batch is scaled by class, so that it estimates the gradient of all rows, the
    remembered ones included: a memory that holds copies of the batch changes neither value nor gradient. The memory
    consists of buffers: ``loss.to(device)`` moves it and ``state_dict`` holds it.

    Labels, weights and scores that are not valid raise an error on the CPU. On other devices the host would have to
    wait for that, so the loss is NaN instead, as it is in a compiled graph. Scores that are not finite give NaN on all
    devices.

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
        soft_tail: bool | None = None,
        memory: int = 0,
        memory_steps: int = 8,
    ) -> None:
        super().__init__(memory, memory_steps)
        check_corner(min_fpr, max_fpr, min_tpr)
        self.min_fpr, self.max_fpr, self.min_tpr, self.soft_tail = min_fpr, max_fpr, min_tpr, soft_tail
        if soft_tail and min_fpr > 0:
            raise ValueError(f"soft_tail needs min_fpr=0; got min_fpr={min_fpr:g}")

    def _value(self, rows: BatchRows) -> Tensor:
        tail = self.min_fpr == 0 if self.soft_tail is None else self.soft_tail
        rows = lowest_positives(rows, self.min_tpr, tail)
        return squared_hinge(rows, *window_weight(rows, self.min_fpr, self.max_fpr, tail))

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


class AUCLoss(_ScoreLoss):
    """Loss for the area under the ROC curve, :class:`rocmax.losses.PairwiseSquaredHinge`.

    Parameters
    ----------
    memory, memory_steps
        As in :class:`PartialAUCLoss`.

    Examples
    --------
    >>> import torch
    >>> from rocmax.torch import AUCLoss
    >>> AUCLoss()(torch.tensor([2.0, 1.5, 0.0, 0.0]), torch.tensor([1, 0, 1, 0])).item()
    1.875
    """

    def __init__(self, *, memory: int = 0, memory_steps: int = 8) -> None:
        super().__init__(memory, memory_steps)

    def _value(self, rows: BatchRows) -> Tensor:
        return squared_hinge(rows, rows.negative, rows.negative.sum())


class PrecisionAtKLoss(_ScoreLoss):
    """Loss for the precision among the rows with the highest scores: the measure with a smooth step for a threshold.

    It equals :class:`rocmax.losses.SoftPrecision`: bounded, so a network with random weights can be without a gradient.

    Parameters
    ----------
    k : int, float or None
        An integer is a number of rows of the batch; a float, above 0 and at most 1, a fraction of its rows; None
        the number of positives, which makes it the break-even point.
    width : float, default=1.0
        Length of the step in the scores.
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

    def __init__(
        self,
        k: float | None,
        *,
        width: float = 1.0,
        memory: int = 0,
        memory_steps: int = 8,
    ) -> None:
        super().__init__(memory, memory_steps)
        if k is not None:
            check_top(k)
        if self.memory and is_count(k):
            raise ValueError(f"a memory changes the number of rows: k must be a fraction (a float); got {k!r}")
        if not (_is_number(width) and 0 < width < math.inf):
            raise ValueError(f"width must be a finite number > 0; got {width!r}")
        self.k, self.width = k, width

    def _check(self, total: Tensor) -> Tensor:
        if self.k is None or not is_count(self.k):
            return torch.zeros_like(total)
        few = self.k > total * (1 + 1e-9)
        return poison_if(few, lambda: f"k={self.k} rows at the top need a batch of at least that weight; got {total:g}")

    def _few_rows(self, m: int, n: int) -> str | None:
        if self.k is None or is_count(self.k) or (m + n) * self.k >= 1 - 1e-9:
            return None
        return f"k={self.k:g} holds {(m + n) * self.k:.2g} of a row and needs one, so {math.ceil(1 / self.k)} rows"

    def _value(self, rows: BatchRows) -> Tensor:
        m, n = rows.positive.sum(), rows.negative.sum()
        if self.k is None:
            k = m
        elif is_count(self.k):
            k = torch.full_like(m, float(self.k))
        else:
            k = window_end(m + n, float(self.k))
        tp, moved = soft_true_positives(rows, k, self.width / 2)
        if self.training and can_look(tp) and bool((m > 0) & (n > 0)):
            most, spread = torch.minimum(k, m), rows.score.detach()[0] - rows.score.detach()[-1]
            # At random scores half is lost, so a loss above that has not started. The gradient is at most twice the
            # share on the step, by the width.
            if bool((tp <= 0.5 * most) & (moved < 0.01 * most)):
                self._warn(
                    "gradient",
                    "the gradient vanishes: at least half of the measure is lost and hardly a row is on the step; got "
                    f"scores that spread over {float(spread):.3g} and width={self.width:g}. "
                    "Use a larger width, or train by cross-entropy first",
                )
        return 1.0 - tp / or_one(k)


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
        draws of positives in an epoch. Measures that depend on that share need it: :class:`PrecisionAtKLoss` as the
        ``sample_weight`` of the positives, cross-entropy as ``pos_weight``, if its output is read as a probability.

    Notes
    -----
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
        if not is_count(batch_size) or batch_size < 2:
            raise ValueError(f"batch_size must be an integer >= 2, one row of each class; got {batch_size!r}")
        if not is_count(positives) and not (_is_number(positives) and 0 < positives < 1):
            raise ValueError(f"positives must be an integer (rows) or a share above 0 and below 1; got {positives!r}")
        self.batch_size, self.positives, self.generator = batch_size, positives, generator
        self._per_batch = int(positives) if is_count(positives) else max(1, round(positives * batch_size))
        if not 1 <= self._per_batch < batch_size:
            raise ValueError(
                f"positives must leave a batch of {batch_size} rows with at least one of each class; got {positives!r}"
            )
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


publish("rocmax.torch", globals(), __all__)
