"""Threshold-based measures: of the top-ranked rows, and of predicted labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar

from rocmax import losses
from rocmax._thresholds import at_top, best_measure
from rocmax._typing import Array, Bools
from rocmax._window import check_beta, check_top, top_weight
from rocmax.measures.base import Measure


@dataclass(frozen=True)
class PrecisionAtKMeasure(Measure):
    """Precision among the ``k`` highest scores.

    Parameters
    ----------
    k : int or float
        Number of rows as an int, or fraction of all rows, above 0 and at most 1, as a float.

    Examples
    --------
    >>> from rocmax.measures import PrecisionAtKMeasure
    >>> PrecisionAtKMeasure(k=50).as_fraction(1000)
    PrecisionAtKMeasure(k=0.05)
    """

    k: float

    name: ClassVar[str] = "precision_at_k"

    def __post_init__(self) -> None:
        check_top(self.k)

    @property
    def title(self) -> str:
        """The measure in words."""
        return f"precision at k = {self.k:g}"

    @property
    def counts_rows(self) -> bool:
        """Whether ``k`` is a number of rows."""
        return isinstance(self.k, Integral)

    def as_fraction(self, n_rows: float) -> PrecisionAtKMeasure:
        """Return the measure with ``k`` as a fraction."""
        return replace(self, k=top_weight(self.k, n_rows) / n_rows) if self.counts_rows else self

    def convex_loss(self) -> losses.Loss:
        """Return the structural hinge loss for the precision at k."""
        return losses.PrecisionAtK(self.k)

    def soft_loss(self, width: float) -> losses.Loss:
        """Return the precision at a soft threshold."""
        return losses.SoftPrecision(self.k, width)

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the threshold with ``k`` rows above it."""
        total = float(scores.size if weight is None else weight.sum())
        return at_top(scores, positive, weight, top_weight(self.k, total))


@dataclass(frozen=True)
class BreakEvenPointMeasure(Measure):
    """Precision-recall break-even point: the precision at ``k``, with ``k`` the number of positives."""

    name: ClassVar[str] = "break_even_point"

    @property
    def title(self) -> str:
        """The measure in words."""
        return "break-even point"

    def convex_loss(self) -> losses.Loss:
        """Return the structural hinge loss for the break-even point."""
        return losses.BreakEven()

    def soft_loss(self, width: float) -> losses.Loss:
        """Return the break-even point at a soft threshold."""
        return losses.SoftPrecision(None, width)

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the threshold with as many rows above it as there are positives."""
        total = float(positive.sum() if weight is None else weight[positive].sum())
        return at_top(scores, positive, weight, total)


@dataclass(frozen=True)
class FBetaMeasure(Measure):
    """F-beta score of the predicted labels.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of the recall, above 0.
    """

    beta: float = 1.0

    name: ClassVar[str] = "f_beta"

    def __post_init__(self) -> None:
        check_beta(self.beta)

    @property
    def title(self) -> str:
        """The measure in words."""
        return f"F{self.beta:g}"

    def convex_loss(self) -> losses.Loss:
        """Return the structural hinge loss for F-beta at the best shift of the scores."""
        return losses.FreeShift(losses.FBeta(self.beta))

    def soft_loss(self, width: float) -> losses.Loss:
        """Return F-beta at a soft threshold."""
        return losses.SoftMeasure(losses.FBeta(self.beta), width)

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the threshold with the largest F-beta."""
        return best_measure(scores, positive, weight, losses.FBeta(self.beta).measure)


@dataclass(frozen=True)
class GMeanMeasure(Measure):
    """Geometric mean of the true-positive and the true-negative rate of the predicted labels."""

    name: ClassVar[str] = "g_mean"

    @property
    def title(self) -> str:
        """The measure in words."""
        return "G-mean"

    def convex_loss(self) -> losses.Loss:
        """Return the structural hinge loss for the G-mean at the best shift of the scores."""
        return losses.FreeShift(losses.GMean())

    def soft_loss(self, width: float) -> losses.Loss:
        """Return the G-mean at a soft threshold."""
        return losses.SoftMeasure(losses.GMean(), width)

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the threshold with the largest G-mean."""
        return best_measure(scores, positive, weight, losses.GMean().measure)


@dataclass(frozen=True)
class WeightedRelativeAccuracyMeasure(Measure):
    """Weighted relative accuracy of the predicted labels; not available for training."""

    name: ClassVar[str] = "weighted_relative_accuracy"
    trainable: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """The measure in words."""
        return "weighted relative accuracy"
