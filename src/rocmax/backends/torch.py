"""Losses for networks: the surrogates of :mod:`rocmax.losses` as modules of PyTorch, ``loss(scores, labels)``.

Values and gradients equal those of the losses on NumPy arrays. Everything is computed on the device of the
scores by sorting and cumulative sums, O(N log N) in the rows of the batch, and the host never waits for a value.
:class:`StratifiedBatchSampler` draws batches with enough positives.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

try:
    import torch
except ImportError as error:
    raise ImportError(f"losses for networks need PyTorch: pip install 'rocmax[torch]' ({error})") from error
from torch import Tensor
from torch.utils.data import Sampler

from rocmax._window import check_beta, check_corner, check_top
from rocmax.backends._soft_tables import is_stuck, soft_f_beta_error, soft_precision_error
from rocmax.backends._sorted_tensors import (
    Rows,
    hinge_pairs,
    lowest_positives,
    or_one,
    ramp_pairs,
    sort_rows,
    top_bound,
    window_end,
    window_weight,
)
from rocmax.backends._tensor_inputs import (
    can_look,
    check_memory,
    check_positives,
    check_surrogate,
    check_width,
    class_weights,
    column,
    is_count,
    poison_if,
)

__all__ = ["AUCLoss", "FBetaLoss", "PartialAUCLoss", "PrecisionAtKLoss", "StratifiedBatchSampler"]

# How many training steps a remembered score is used for. Scores follow the weights: after a few steps of Adam they have
# moved little, after an epoch they are those of another network.
_MEMORY_STEPS = 8
_MEMORY = ("memory", "memory_steps")


class _ScoreLoss(torch.nn.Module):
    """A loss on the scores and labels of a batch, and perhaps of rows remembered from the batches before.

    A subclass says what the loss of sorted rows is. The memory is four buffers: scores, weights as positives and as
    negatives, and ages in steps; an empty place has weight zero.
    """

    # Whether rows are remembered by class. If not, the classes keep their proportions.
    _by_class = True
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
        batch = Rows(score, positive, negative)
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
    def _value(self, rows: Rows) -> tuple[Tensor, Tensor | None]:
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
                f"Draw batches with rocmax.backends.torch.StratifiedBatchSampler, make them larger, or set memory",
            )

    def _warn_of_no_gradient(self, rows: Rows) -> None:
        score = rows.score.detach()
        spread = float(score[0] - score[-1])
        self._warn(
            "gradient",
            f"the gradient vanishes: at least half of the measure is lost and hardly a row is on the step; got scores "
            f"that spread over {spread:.3g} and width={getattr(self, 'width', None) or 1.0:g}. "
            f"{self._instead()}, or train by cross-entropy first",
        )

    def _instead(self) -> str:
        """Return what to do where the gradient vanishes."""
        return "Use a larger width"

    def _warn(self, about: str, message: str) -> None:
        """Warn, once for each loss: a batch is one of thousands."""
        if about not in self._warned:
            self._warned.add(about)
            # Where the loss was called: above are forward and the two calls of a module around it.
            warnings.warn(f"{type(self).__name__}: {message}", UserWarning, stacklevel=6)

    def _check(self, total: Tensor) -> Tensor:
        """Return zero, or NaN (on the host: raise) if the loss cannot be had for a batch of this weight."""
        return torch.zeros_like(total)

    def clear_memory(self) -> None:
        """Forget the remembered scores, for instance before training on other data."""
        if self.memory:
            for buffer in (self.memory_score, self.memory_positive, self.memory_negative, self.memory_age):
                buffer.zero_()

    def _with_memory(self, batch: Rows) -> Rows:
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
        return Rows(torch.cat([moved, score[size:]]), positive, negative)

    def _groups(self, positive: Tensor, negative: Tensor) -> tuple[Tensor, ...]:
        """Return the weights of the groups in which rows are remembered."""
        return (positive, negative) if self._by_class else (positive + negative,)

    def _remember(self, batch: Rows) -> None:
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


class PartialAUCLoss(_ScoreLoss):
    """Loss for the partial AUC over a window of false-positive rates.

    Parameters
    ----------
    min_fpr, max_fpr : float, default=0.0 and 0.1
        The window, ``0 <= min_fpr < max_fpr <= 1``.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1. Only the positives with the lowest scores,
        a share ``1 - min_tpr`` of them, are then compared.
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
        For how many training steps a score is remembered. A score of older weights is no longer that of its row.

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
    >>> from rocmax.backends.torch import PartialAUCLoss
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
        memory_steps: int = _MEMORY_STEPS,
    ) -> None:
        super().__init__(memory, memory_steps)
        check_corner(min_fpr, max_fpr, min_tpr)
        self.min_fpr, self.max_fpr, self.min_tpr = min_fpr, max_fpr, min_tpr
        self.surrogate, self.soft_tail, self.width, self.margin = surrogate, soft_tail, width, margin
        check_surrogate(surrogate, ("squared_hinge", "hinge", "ramp"), width=width, margin=margin)
        if soft_tail and not self._can_have_tail():
            raise ValueError(
                f"soft_tail is for surrogate='squared_hinge' and min_fpr=0; got {surrogate!r} and min_fpr={min_fpr:g}"
            )

    def _can_have_tail(self) -> bool:
        return self.surrogate == "squared_hinge" and self.min_fpr == 0

    def _value(self, rows: Rows) -> tuple[Tensor, Tensor | None]:
        tail = self._can_have_tail() if self.soft_tail is None else self.soft_tail
        rows = lowest_positives(rows, self.min_tpr, tail)
        window = window_weight(rows, self.min_fpr, self.max_fpr, tail)
        return _window_loss(rows, window, self.surrogate, self.width, self.margin)

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

    def _instead(self) -> str:
        return "Use surrogate='squared_hinge' or a larger width"

    def extra_repr(self) -> str:
        """Return the parameters."""
        return _shown(self, "min_fpr", "max_fpr", "min_tpr", "surrogate", "soft_tail", "width", "margin", *_MEMORY)


class AUCLoss(_ScoreLoss):
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
    >>> from rocmax.backends.torch import AUCLoss
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
        memory_steps: int = _MEMORY_STEPS,
    ) -> None:
        super().__init__(memory, memory_steps)
        self.surrogate, self.width, self.margin = surrogate, width, margin
        check_surrogate(surrogate, ("squared_hinge", "hinge", "ramp"), width=width, margin=margin)

    def _value(self, rows: Rows) -> tuple[Tensor, Tensor | None]:
        return _window_loss(rows, window_weight(rows, 0.0, 1.0), self.surrogate, self.width, self.margin)

    def _instead(self) -> str:
        return "Use surrogate='squared_hinge' or a larger width"

    def extra_repr(self) -> str:
        """Return the parameters."""
        return _shown(self, "surrogate", "width", "margin", *_MEMORY)


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
    >>> from rocmax.backends.torch import PrecisionAtKLoss
    >>> PrecisionAtKLoss(k=1)(torch.tensor([1.5, 2.0, 0.0, 0.0]), torch.tensor([1, 0, 1, 0])).item()
    0.875
    """

    _by_class = False

    def __init__(
        self,
        k: float | None,
        *,
        surrogate: str = "soft",
        width: float | None = None,
        memory: int = 0,
        memory_steps: int = _MEMORY_STEPS,
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

    def _value(self, rows: Rows) -> tuple[Tensor, Tensor | None]:
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

    def _instead(self) -> str:
        return "Use surrogate='convex' or a larger width"

    def extra_repr(self) -> str:
        """Return the parameters."""
        return _shown(self, "k", "surrogate", "width", *_MEMORY)


class FBetaLoss(_ScoreLoss):
    """Loss for F-beta at the best threshold on the scores: the measure with a smooth step for the threshold.

    It equals :class:`rocmax.losses.SoftMeasure` with :class:`rocmax.losses.FBeta`: bounded, and a shift of all scores
    changes nothing, so a threshold is to be chosen after training.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of the recall, above 0.
    width : float, default=None
        Length of the step in the scores: 1 if None.
    memory : int, default=0
        How many recent rows to remember, of both classes in their proportions; otherwise as in
        :class:`PartialAUCLoss`.
    memory_steps : int, default=8
        For how many training steps a row is remembered.

    Notes
    -----
    As for :class:`PrecisionAtKLoss`, the batches need the share of positives of the data, or weights that restore it.

    Examples
    --------
    >>> import torch
    >>> from rocmax.backends.torch import FBetaLoss
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
        memory_steps: int = _MEMORY_STEPS,
    ) -> None:
        super().__init__(memory, memory_steps)
        check_beta(beta)
        check_width(width)
        self.beta, self.width = beta, width

    def _value(self, rows: Rows) -> tuple[Tensor, Tensor | None]:
        return soft_f_beta_error(rows, float(self.beta), _half(self.width))

    def extra_repr(self) -> str:
        """Return the parameters."""
        return _shown(self, "beta", "width", *_MEMORY)


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
    >>> from rocmax.backends.torch import StratifiedBatchSampler
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


def _window_loss(
    rows: Rows, window: tuple[Tensor, Tensor], surrogate: str, width: float | None, margin: float | None
) -> tuple[Tensor, Tensor | None]:
    """Return the mean cost of the pairs in a window, and for the ramp whether its gradient vanishes."""
    weight, held = window
    pairs = or_one(rows.positive.sum() * held)
    if surrogate == "ramp":
        half = _half(width)
        total, on_step = ramp_pairs(rows, weight, half, half if margin is None else margin)
        return total / pairs, is_stuck(total / pairs, on_step / pairs)
    return hinge_pairs(rows, weight, power=2 if surrogate == "squared_hinge" else 1) / pairs, None


def _half(width: float | None) -> float:
    return 0.5 if width is None else width / 2


def _shown(module: torch.nn.Module, *names: str) -> str:
    return ", ".join(f"{name}={getattr(module, name)!r}" for name in names)
