"""Checks of what a loss for networks gets: parameters on the host, tensors without waiting for a device."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor


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
    if isinstance(memory, bool) or not is_count(memory) or memory < 0:
        raise ValueError(f"memory must be a number of rows, an integer >= 0; got {memory!r}")
    if isinstance(memory_steps, bool) or not is_count(memory_steps) or memory_steps < 1:
        raise ValueError(f"memory_steps must be a number of training steps, an integer >= 1; got {memory_steps!r}")


def check_positives(positives: Any, batch_size: Any) -> int:
    """Return the number of positives in each batch, or raise ValueError if a batch has no place for both classes."""
    if isinstance(batch_size, bool) or not is_count(batch_size) or batch_size < 2:
        raise ValueError(f"batch_size must be an integer >= 2, one row of each class; got {batch_size!r}")
    if is_count(positives) and not isinstance(positives, bool):
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
    """Tell whether a number is an integer."""
    return isinstance(value, Integral)


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
