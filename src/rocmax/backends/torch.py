"""Losses for networks: the surrogates of :mod:`rocmax.losses` as modules of PyTorch, ``loss(scores, labels)``.

Values and gradients equal those of the losses on NumPy arrays. Everything is computed on the device of the
scores by sorting and cumulative sums, O(N log N) in the rows of the batch, and the host never waits for a value.
"""

from __future__ import annotations

from abc import abstractmethod

try:
    import torch
except ImportError as error:
    raise ImportError(f"losses for networks need PyTorch: pip install 'rocmax[torch]' ({error})") from error
from torch import Tensor

from rocmax._window import check_beta, check_corner, check_top
from rocmax.backends._soft_tables import soft_f_beta_error, soft_precision_error
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
    check_memory,
    check_surrogate,
    check_width,
    class_weights,
    column,
    is_count,
    poison_if,
)

__all__ = ["AUCLoss", "FBetaLoss", "PartialAUCLoss", "PrecisionAtKLoss"]


class _ScoreLoss(torch.nn.Module):
    """A loss on the scores and labels of a batch, and perhaps of rows remembered from the batches before.

    A subclass says what the loss of sorted rows is. The memory is three buffers: scores, and weights as positives
    and as negatives; an empty place has weight zero.
    """

    # Whether rows are remembered by class. If not, the classes keep their proportions.
    _by_class = True
    memory_score: Tensor
    memory_positive: Tensor
    memory_negative: Tensor

    def __init__(self, memory: int) -> None:
        super().__init__()
        check_memory(memory)
        self.memory = int(memory)
        if self.memory:
            size = self.memory * (2 if self._by_class else 1)
            for name in ("memory_score", "memory_positive", "memory_negative"):
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
        # What is added is zero, or NaN if an input is not what it should be: then no gradient looks valid either.
        return (torch.where(both, self._value(rows), 0.0) + poison * score.sum()).to(result)

    @abstractmethod
    def _value(self, rows: Rows) -> Tensor:
        """Return the loss of rows in descending order."""

    def _check(self, total: Tensor) -> Tensor:
        """Return zero, or NaN (on the host: raise) if the loss cannot be had for a batch of this weight."""
        return torch.zeros_like(total)

    def clear_memory(self) -> None:
        """Forget the remembered scores, for instance before training on other data."""
        if self.memory:
            for buffer in (self.memory_score, self.memory_positive, self.memory_negative):
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
        """Put the rows of the batch into the memory, in place of the oldest ones."""
        buffers = (self.memory_score, self.memory_positive, self.memory_negative)
        finite = torch.isfinite(batch.score)
        new = (torch.where(finite, column.detach(), 0.0) for column in batch)
        columns = [torch.cat([column.to(old.dtype), old]) for column, old in zip(new, buffers, strict=True)]
        kept = []
        for member in self._groups(columns[1], columns[2]):
            order = torch.argsort((member <= 0).to(torch.uint8), stable=True)[: self.memory]
            present = member.gather(0, order) > 0
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
    surrogate : {"ramp", "hinge"}, default="ramp"
        What a pair of a positive and a negative inside the window costs:

        - "ramp": a smooth step from 1 to 0, :class:`rocmax.losses.PartialAUCRamp`. It is bounded, so a network cannot
          lower it by giving all rows the same score. A pair far on the wrong side has no gradient.
        - "hinge": ``max(0, 1 - difference)``, :class:`rocmax.losses.PartialAUCHinge`. All wrong pairs have a gradient,
          but on a small window equal scores for all rows can be its minimum.
    width : float, default=None
        Length of the step in the scores, for the ramp: 1 if None.
    margin : float, default=None
        Score difference at the middle of the step, for the ramp: ``width / 2`` if None.
    memory : int, default=0
        How many recent scores of each class to remember, so that a small window is more than a fraction of one
        negative of the batch. Used and filled in training mode only. A memory that is many times the batch holds
        scores of older weights.

    Notes
    -----
    The gradient of the rows in the batch is scaled by class, so that it estimates the gradient of all rows, the
    remembered ones included: a memory that holds copies of the batch changes neither value nor gradient. The memory
    consists of buffers: ``loss.to(device)`` moves it and ``state_dict`` holds it.

    Labels, weights and scores that are not valid raise an error on the CPU. On other devices the host would have to
    wait for that, so the loss is NaN instead. Scores that are not finite give NaN on all devices.

    Examples
    --------
    >>> import torch
    >>> from rocmax.backends.torch import PartialAUCLoss
    >>> scores = torch.tensor([2.0, 1.5, 0.0, 0.0, 1.0, -1.0], requires_grad=True)
    >>> loss = PartialAUCLoss(max_fpr=0.5)(scores, torch.tensor([1, 0, 0, 1, 0, 0]))
    >>> loss.backward()
    >>> round(loss.item(), 4)
    0.625
    """

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        *,
        min_tpr: float = 0.0,
        surrogate: str = "ramp",
        width: float | None = None,
        margin: float | None = None,
        memory: int = 0,
    ) -> None:
        super().__init__(memory)
        check_corner(min_fpr, max_fpr, min_tpr)
        self.min_fpr, self.max_fpr, self.min_tpr = min_fpr, max_fpr, min_tpr
        self.surrogate, self.width, self.margin = surrogate, width, margin
        check_surrogate(surrogate, ("ramp", "hinge"), width=width, margin=margin)

    def _value(self, rows: Rows) -> Tensor:
        rows = lowest_positives(rows, self.min_tpr)
        return _window_loss(rows, self.min_fpr, self.max_fpr, self.surrogate, self.width, self.margin)

    def extra_repr(self) -> str:
        """Return the parameters."""
        return _shown(self, "min_fpr", "max_fpr", "min_tpr", "surrogate", "width", "margin", "memory")


class AUCLoss(_ScoreLoss):
    """Loss for the area under the ROC curve.

    Parameters
    ----------
    surrogate : {"squared_hinge", "hinge", "ramp"}, default="squared_hinge"
        What a pair of a positive and a negative costs: :class:`rocmax.losses.PairwiseSquaredHinge`,
        :class:`rocmax.losses.PairwiseHinge`, or the bounded :class:`rocmax.losses.PartialAUCRamp` on the window [0, 1].
    width, margin, memory
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
    ) -> None:
        super().__init__(memory)
        self.surrogate, self.width, self.margin = surrogate, width, margin
        check_surrogate(surrogate, ("squared_hinge", "hinge", "ramp"), width=width, margin=margin)

    def _value(self, rows: Rows) -> Tensor:
        return _window_loss(rows, 0.0, 1.0, self.surrogate, self.width, self.margin)

    def extra_repr(self) -> str:
        """Return the parameters."""
        return _shown(self, "surrogate", "width", "margin", "memory")


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

    Examples
    --------
    >>> import torch
    >>> from rocmax.backends.torch import PrecisionAtKLoss
    >>> PrecisionAtKLoss(k=1, width=0.1)(torch.tensor([1.5, 2.0, 0.0, 0.0]), torch.tensor([1, 0, 1, 0])).item()
    1.0
    """

    _by_class = False

    def __init__(
        self, k: float | None, *, surrogate: str = "soft", width: float | None = None, memory: int = 0
    ) -> None:
        super().__init__(memory)
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

    def _value(self, rows: Rows) -> Tensor:
        m, n = rows.positive.sum(), rows.negative.sum()
        if self.k is None:
            k = m
        elif is_count(self.k):
            k = torch.full_like(m, float(self.k))
        else:
            k = window_end(m + n, float(self.k))
        return top_bound(rows, k) if self.surrogate == "convex" else soft_precision_error(rows, k, _half(self.width))

    def extra_repr(self) -> str:
        """Return the parameters."""
        return _shown(self, "k", "surrogate", "width", "memory")


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

    Examples
    --------
    >>> import torch
    >>> from rocmax.backends.torch import FBetaLoss
    >>> loss = FBetaLoss(width=0.5)(torch.tensor([2.0, 1.5, 0.0, 0.0]), torch.tensor([1, 0, 1, 0]))
    >>> round(loss.item(), 4)
    0.3333
    """

    _by_class = False

    def __init__(self, beta: float = 1.0, *, width: float | None = None, memory: int = 0) -> None:
        super().__init__(memory)
        check_beta(beta)
        check_width(width)
        self.beta, self.width = beta, width

    def _value(self, rows: Rows) -> Tensor:
        return soft_f_beta_error(rows, float(self.beta), _half(self.width))

    def extra_repr(self) -> str:
        """Return the parameters."""
        return _shown(self, "beta", "width", "memory")


def _window_loss(
    rows: Rows, min_fpr: float, max_fpr: float, surrogate: str, width: float | None, margin: float | None
) -> Tensor:
    """Return the mean cost of the pairs in a window."""
    weight, held = window_weight(rows, min_fpr, max_fpr)
    if surrogate == "ramp":
        half = _half(width)
        total = ramp_pairs(rows, weight, half, half if margin is None else margin)
    else:
        total = hinge_pairs(rows, weight, power=2 if surrogate == "squared_hinge" else 1)
    return total / or_one(rows.positive.sum() * held)


def _half(width: float | None) -> float:
    return 0.5 if width is None else width / 2


def _shown(module: torch.nn.Module, *names: str) -> str:
    return ", ".join(f"{name}={getattr(module, name)!r}" for name in names)
