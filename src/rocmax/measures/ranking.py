"""Measures of the ROC curve: areas under the curve or a part of it, and single points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rocmax import losses
from rocmax._thresholds import at_fpr, at_tpr, best_youden, highest_rejected, lowest_accepted
from rocmax._typing import Array, Bools
from rocmax._window import check_floor, check_rate, check_region, check_window
from rocmax.measures.base import Measure


@dataclass(frozen=True)
class ROCAUCMeasure(Measure):
    """Area under the ROC curve; the threshold maximises TPR - FPR.

    Examples
    --------
    >>> from rocmax.measures import find_measure
    >>> measure = find_measure("roc_auc")
    >>> measure.score([0, 1, 0, 1], [0.1, 0.4, 0.2, 0.3])
    1.0
    """

    name: ClassVar[str] = "roc_auc"
    depends_on_class_ratio: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """The measure in words."""
        return "AUC"

    def convex_loss(self) -> losses.Loss:
        """Return the pairwise hinge loss."""
        return losses.PairwiseHinge()

    def soft_loss(self, width: float) -> losses.Loss:
        """Return the ramp on all pairs."""
        return losses.PartialAUCRamp(0.0, 1.0, width, margin=0.0)

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the threshold with the largest TPR - FPR."""
        return best_youden(scores, positive, weight)


class CornerMeasure(Measure):
    """Base class of measures that are trained for by the partial AUC in a corner of the ROC curve.

    Attributes
    ----------
    min_fpr, max_fpr : float
        Range of false-positive rates; ``max_fpr`` is also the limit of the threshold.
    min_tpr : float
        Lower limit on the true-positive rate. If it is above 0, the threshold reaches it.
    """

    min_fpr: float
    max_fpr: float
    min_tpr: float

    depends_on_class_ratio: ClassVar[bool] = False

    def convex_loss(self) -> losses.Loss:
        """Return the tight convex surrogate."""
        return losses.PartialAUCTight(self.min_fpr, self.max_fpr, self.min_tpr)

    def soft_loss(self, width: float) -> losses.Loss:
        """Return the ramp on the pairs in the corner."""
        return losses.PartialAUCRamp(self.min_fpr, self.max_fpr, width, margin=0.0, min_tpr=self.min_tpr)

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the lowest threshold whose false-positive rate is at most ``max_fpr``.

        With ``min_tpr > 0``, return the highest threshold whose true-positive rate is at least ``min_tpr``.
        """
        if self.min_tpr > 0:
            return at_tpr(scores, positive, weight, self.min_tpr)
        return at_fpr(scores, positive, weight, self.max_fpr)

    def score_at_threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float | None:
        """Return the score of the row that determines the threshold."""
        if self.min_tpr > 0:
            return lowest_accepted(scores, positive, weight, self.min_tpr)
        return highest_rejected(scores, positive, weight, self.max_fpr)


@dataclass(frozen=True)
class PartialAUCMeasure(CornerMeasure):
    """Partial AUC on a range of false-positive rates or above a true-positive rate.

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=1.0
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1. Also the limit on the
        false-positive rate of the threshold.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1. If it is above 0, the threshold reaches it.
    standardize : bool, default=False
        Whether the score is standardized, see :func:`rocmax.metrics.partial_auc_score`.
    normalize : bool, default=True
        Whether the score is a fraction of the largest area; the area itself if False.
    definition : {"area", "count"}, default="area"
        Definition of the score, see there. Neither this parameter nor the two before affect training.

    Examples
    --------
    >>> from rocmax.measures import PartialAUCMeasure
    >>> measure = PartialAUCMeasure(max_fpr=0.1)
    >>> measure.convex_loss()
    PartialAUCTight(min_fpr=0.0, max_fpr=0.1, min_tpr=0.0)
    """

    min_fpr: float = 0.0
    max_fpr: float = 1.0
    min_tpr: float = 0.0
    standardize: bool = False
    normalize: bool = True
    definition: Literal["area", "count"] = "area"

    name: ClassVar[str] = "partial_auc"

    def __post_init__(self) -> None:
        check_window(self.min_fpr, self.max_fpr, any_width=True)
        check_floor(self.min_tpr)

    @property
    def title(self) -> str:
        """The measure in words."""
        kind = "standardized " if self.standardize else ""
        parts = [f"{kind}partial AUC"]
        if self.min_tpr > 0:
            parts.append(f"TPR >= {self.min_tpr:g}")
        if self.min_tpr == 0 or (self.min_fpr, self.max_fpr) != (0, 1):
            parts.append(f"FPR {self.min_fpr:g} to {self.max_fpr:g}")
        if self.definition == "count":
            parts.append("count of pairs")
        if not self.normalize:
            parts.append("not normalized")
        return ", ".join(parts)


@dataclass(frozen=True)
class TwoWayPartialAUCMeasure(CornerMeasure):
    """Area under the ROC curve above a true-positive rate and left of a false-positive rate.

    It is :class:`PartialAUCMeasure` with these two limits, in training and in value.

    Parameters
    ----------
    min_tpr : float
        Lower limit on the true-positive rate, at least 0 and below 1.
    max_fpr : float
        Right edge of the region, ``0 < max_fpr <= 1``.

    Examples
    --------
    >>> from rocmax.measures import TwoWayPartialAUCMeasure
    >>> TwoWayPartialAUCMeasure(min_tpr=0.8, max_fpr=0.3).convex_loss()
    PartialAUCTight(min_fpr=0.0, max_fpr=0.3, min_tpr=0.8)
    """

    min_tpr: float
    max_fpr: float

    name: ClassVar[str] = "two_way_partial_auc"
    min_fpr = 0.0

    def __post_init__(self) -> None:
        check_region(self.min_tpr, self.max_fpr)

    @property
    def title(self) -> str:
        """The measure in words."""
        return f"two-way partial AUC, TPR >= {self.min_tpr:g}, FPR <= {self.max_fpr:g}"


@dataclass(frozen=True)
class TPRAtFPRMeasure(CornerMeasure):
    """True-positive rate at a limit on the false-positive rate; training uses the partial AUC below the limit.

    Parameters
    ----------
    max_fpr : float
        Limit on the false-positive rate, from 0 to 1.
    """

    max_fpr: float

    name: ClassVar[str] = "tpr_at_fpr"
    min_fpr = min_tpr = 0.0

    def __post_init__(self) -> None:
        check_rate("max_fpr", self.max_fpr)

    @property
    def title(self) -> str:
        """The measure in words."""
        return f"TPR at FPR <= {self.max_fpr:g}"


@dataclass(frozen=True)
class FPRAtTPRMeasure(Measure):
    """False-positive rate at a required true-positive rate (lower is better); not available for training.

    Parameters
    ----------
    min_tpr : float
        Required true-positive rate, from 0 to 1.
    """

    min_tpr: float

    name: ClassVar[str] = "fpr_at_tpr"
    trainable: ClassVar[bool] = False
    depends_on_class_ratio: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_rate("min_tpr", self.min_tpr)

    @property
    def title(self) -> str:
        """The measure in words."""
        return f"FPR at TPR >= {self.min_tpr:g}"
