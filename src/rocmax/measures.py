"""Performance measures, with the losses and thresholds that optimize them.

A :class:`Measure` combines the score of a measure, the losses to train for it and the choice of the threshold.
Estimators, scorers, intervals and the command line look it up by name with :func:`find_measure`. The names and
parameters are those of the functions in :mod:`rocmax.metrics`, without the suffix ``_score``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

from rocmax import losses
from rocmax._support import Array, Bools, publish
from rocmax._window import check_beta, check_floor, check_rate, check_region, check_top, check_window, top_weight
from rocmax.losses import Loss
from rocmax.metrics.scores import METRICS, Metric, find_metric, named_metric
from rocmax.metrics.thresholds import (
    at_fpr,
    at_top,
    at_tpr,
    best_measure,
    best_youden,
    highest_rejected,
    lowest_accepted,
)

# Base class of the measures.


class Measure(ABC):
    """Performance measure of a classifier.

    A subclass is a frozen dataclass whose fields are the parameters of the measure. It can be passed to every estimator
    with a parameter ``measure``, to :func:`rocmax.metrics.make_scorer`, and to the bootstrap intervals and tests.

    Attributes
    ----------
    name : str
        Name of the measure.
    trainable : bool
        Whether the measure has losses for training.
    depends_on_class_ratio : bool
        Whether the value depends on the share of positives. If one class is subsampled, weights are then required.
    """

    name: ClassVar[str]
    trainable: ClassVar[bool] = True
    depends_on_class_ratio: ClassVar[bool] = True

    @property
    def params(self) -> dict[str, Any]:
        """Parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def metric(self) -> Metric:
        """Function that computes the measure; a custom measure returns its own ``Metric``."""
        return METRICS[self.name]

    @property
    @abstractmethod
    def title(self) -> str:
        """Description of the measure, for tables and reports."""

    @property
    def counts_rows(self) -> bool:
        """Whether a parameter is a number of rows, so that the measure depends on the size of the sample."""
        return False

    def as_fraction(self, n_rows: float) -> Measure:
        """Return the measure with numbers of rows converted to fractions of ``n_rows``, for use on parts of a sample.

        Parameters
        ----------
        n_rows : float
            Number of rows of the whole sample, or their total weight.

        Returns
        -------
        Measure
            The measure; itself if no parameter is a number of rows.
        """
        return self

    def score(self, y_true: Any, decision: Any, *, sample_weight: Any = None, pos_label: Any = None) -> float:
        """Return the value of the measure.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, of two classes.
        decision : array-like of shape (n_samples,)
            Scores minus the threshold: a value above 0 predicts the positive class. Ranking measures do not depend on
            the threshold.
        sample_weight
        pos_label : object, default=None
            The positive class; the larger label if None.

        Returns
        -------
        float
            The value. Higher is better, unless ``metric.greater_is_better`` is False.
        """
        return self.metric.of_decision(y_true, decision, sample_weight, pos_label, **self.params)

    def convex_loss(self) -> Loss:
        """Return the convex loss for the measure, which is invariant to a shift of the scores."""
        raise self._no_loss()

    def soft_loss(self, width: float) -> Loss:
        """Return the bounded loss for the measure, with a step of the given width in the scores."""
        raise self._no_loss()

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the threshold for the measure, chosen on training scores."""
        raise self._no_loss()

    def score_at_threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float | None:
        """Return the score of the row that determines the threshold; None if all rows have to be compared.

        Scores that differ from it by rounding error only are treated as ties. A measure with a :meth:`threshold` of its
        own that is derived from another measure must define this method, too.
        """
        return None

    @classmethod
    def check_trainable(cls) -> None:
        """Raise ValueError if the measure has no loss for training; the message lists the measures that have one."""
        if not cls.trainable:
            raise cls._no_loss()

    @classmethod
    def _no_loss(cls) -> ValueError:
        # Imported here because the registry imports this module.

        names = ", ".join(measure_names(trainable=True))
        return ValueError(
            f"the measure to optimize must be one of {names}; got {cls.name!r}, which has no training loss and is only "
            "available in scorers, intervals and comparisons"
        )


# Measures of the ROC curve: areas under the curve or a part of it, and single points.


@dataclass(frozen=True)
class ROCAUCMeasure(Measure):
    """Area under the ROC curve; the threshold maximizes TPR - FPR.

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
    min_fpr
    max_fpr : ...
        Also the limit on the false-positive rate of the threshold.
    min_tpr : ...
        If it is above 0, the threshold reaches it.
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
    min_tpr
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


# Threshold-based measures: of the top-ranked rows, and of predicted labels.


@dataclass(frozen=True)
class PrecisionAtKMeasure(Measure):
    """Precision among the ``k`` highest scores.

    Parameters
    ----------
    k

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
    beta
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


# Registry of the measures by name.


_KINDS: dict[str, type[Measure]] = {
    kind.name: kind
    for kind in (
        ROCAUCMeasure,
        PartialAUCMeasure,
        TwoWayPartialAUCMeasure,
        TPRAtFPRMeasure,
        FPRAtTPRMeasure,
        PrecisionAtKMeasure,
        BreakEvenPointMeasure,
        FBetaMeasure,
        GMeanMeasure,
        WeightedRelativeAccuracyMeasure,
    )
}


def measure_names(*, trainable: bool = False) -> list[str]:
    """Return the names of the measures.

    Parameters
    ----------
    trainable : bool, default=False
        Whether to return only the measures that have a loss for training.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> from rocmax.measures import measure_names
    >>> [name for name in measure_names() if name not in measure_names(trainable=True)]
    ['fpr_at_tpr', 'weighted_relative_accuracy']
    """
    return [name for name, kind in _KINDS.items() if kind.trainable or not trainable]


def find_measure(measure: str | Measure | Callable[..., float], **params: Any) -> Measure:
    """Return a measure by its name.

    Parameters
    ----------
    measure : str, Measure or callable
        One of :func:`measure_names`, with or without the suffix ``_score``; or a measure, which is returned unchanged;
        or a function of :mod:`rocmax.metrics`.
    **params
        Parameters of the measure, those of the function in :mod:`rocmax.metrics`, with its defaults.

    Returns
    -------
    Measure
        The measure.

    Raises
    ------
    ValueError
        If the measure or a parameter is unknown, or if a parameter without a default is missing. The message lists the
        valid names.

    Examples
    --------
    >>> from rocmax.measures import find_measure
    >>> find_measure("tpr_at_fpr", max_fpr=0.01).title
    'TPR at FPR <= 0.01'
    """
    metric, filled = find_metric(measure, params)
    return measure if isinstance(measure, Measure) else _KINDS[metric.name](**filled)


def pick_measure(
    measure: str | Measure | Callable[..., float], offered: Mapping[str, Any], *, to_train: bool = False
) -> Measure:
    """Return a measure by its name, with the applicable subset of the given parameters.

    This is for callers with one set of parameters for all measures, such as estimators and the command line.

    Parameters
    ----------
    measure : str, Measure or callable
        One of :func:`measure_names`, with or without the suffix ``_score``; or a measure, which is returned unchanged;
        or a function of :mod:`rocmax.metrics`. A ``Measure`` keeps its own parameters.
    offered : mapping of str to object
        Values of parameters; those that the measure does not have are ignored.
    to_train : bool, default=False
        Whether to raise ValueError for a measure that has no loss for training.

    Returns
    -------
    Measure
        The measure.

    Examples
    --------
    >>> from rocmax.measures import pick_measure
    >>> pick_measure("precision_at_k", {"max_fpr": 0.1, "k": 0.05})
    PrecisionAtKMeasure(k=0.05)
    """
    if isinstance(measure, Measure):
        if to_train:
            measure.check_trainable()
        return measure
    metric = named_metric(measure)
    if to_train:
        # Checked before the parameters, which may be missing for a measure without a loss.
        _KINDS[metric.name].check_trainable()
    return find_measure(measure, **{name: offered[name] for name in metric.parameters if name in offered})


__all__ = [
    "BreakEvenPointMeasure",
    "FBetaMeasure",
    "FPRAtTPRMeasure",
    "GMeanMeasure",
    "Measure",
    "PartialAUCMeasure",
    "PrecisionAtKMeasure",
    "ROCAUCMeasure",
    "TPRAtFPRMeasure",
    "TwoWayPartialAUCMeasure",
    "WeightedRelativeAccuracyMeasure",
    "find_measure",
    "measure_names",
    "pick_measure",
]

publish("rocmax.measures", globals(), __all__)
