"""Performance measures, with the losses and thresholds that optimize them.

A :class:`Measure` combines the score of a measure, the losses to train for it and the choice of the threshold.
Estimators, scorers, intervals and the command line look it up by name with :func:`find_measure`. The names and
parameters are those of the functions in :mod:`rocmax.metrics`, without the suffix ``_score``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from rocmax import losses
from rocmax._docstrings import publish
from rocmax._rounding import DUST, join_ties, score_error, top_weight
from rocmax._support import (
    Array,
    Bools,
    Index,
    check_beta,
    check_floor,
    check_rate,
    check_top,
    check_window,
)
from rocmax.losses import Loss
from rocmax.metrics.scores import METRICS, Metric, find_metric, named_metric

_KINDS: dict[str, type[Measure]] = {}


class Measure:
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
    _title: ClassVar[str]
    trainable: ClassVar[bool] = True
    depends_on_class_ratio: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        # The registry is that of the metrics; the first class with the name of a metric is its measure.
        if vars(cls).get("name") in METRICS:
            _KINDS.setdefault(cls.name, cls)

    @property
    def params(self) -> dict[str, Any]:
        """Parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def metric(self) -> Metric:
        """Function that computes the measure; a custom measure returns its own ``Metric``."""
        return METRICS[self.name]

    @property
    def title(self) -> str:
        """Description of the measure, for tables and reports."""
        return self._title.format(**self.params)

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
        """
        return self

    def score(self, y_true: Any, decision: Any, *, sample_weight: Any = None, pos_label: Any = None) -> float:
        """Return the value of the measure.

        Parameters
        ----------
        y_true
        decision : array-like of shape (n_samples,)
            Scores minus the threshold: a value above 0 predicts the positive class. Ranking measures do not depend on
            the threshold.
        sample_weight, pos_label

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
    _title: ClassVar[str] = "AUC"
    depends_on_class_ratio: ClassVar[bool] = False

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
    """Base class of measures that are trained for by the partial AUC in a corner of the ROC curve."""

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
class TPRAtFPRMeasure(CornerMeasure):
    """True-positive rate at a limit on the false-positive rate; training uses the partial AUC below the limit.

    Parameters
    ----------
    max_fpr : float
        Limit on the false-positive rate, from 0 to 1.
    """

    max_fpr: float

    name: ClassVar[str] = "tpr_at_fpr"
    _title: ClassVar[str] = "TPR at FPR <= {max_fpr:g}"
    min_fpr = min_tpr = 0.0

    def __post_init__(self) -> None:
        check_rate("max_fpr", self.max_fpr)


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
    _title: ClassVar[str] = "FPR at TPR >= {min_tpr:g}"
    trainable: ClassVar[bool] = False
    depends_on_class_ratio: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_rate("min_tpr", self.min_tpr)


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
    _title: ClassVar[str] = "precision at k = {k:g}"

    def __post_init__(self) -> None:
        check_top(self.k)

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
    _title: ClassVar[str] = "break-even point"

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
class AveragePrecisionMeasure(Measure):
    """Average precision; the threshold is that of the break-even point, whose losses train for it."""

    name: ClassVar[str] = "average_precision"
    _title: ClassVar[str] = "average precision"

    convex_loss = BreakEvenPointMeasure.convex_loss
    soft_loss = BreakEvenPointMeasure.soft_loss
    threshold = BreakEvenPointMeasure.threshold


class TableMeasure(Measure):
    """Base class of measures of the predicted labels that have losses; the threshold has the largest value."""

    def _loss(self) -> losses.FBeta | losses.GMean:
        raise self._no_loss()

    def convex_loss(self) -> losses.Loss:
        """Return the structural hinge loss for the measure at the best shift of the scores."""
        return losses.FreeShift(self._loss())

    def soft_loss(self, width: float) -> losses.Loss:
        """Return the measure at a soft threshold."""
        return losses.SoftMeasure(self._loss(), width)

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the threshold with the largest value."""
        return best_measure(scores, positive, weight, self._loss().measure)


@dataclass(frozen=True)
class FBetaMeasure(TableMeasure):
    """F-beta score of the predicted labels.

    Parameters
    ----------
    beta
    """

    beta: float = 1.0

    name: ClassVar[str] = "f_beta"
    _title: ClassVar[str] = "F{beta:g}"

    def __post_init__(self) -> None:
        check_beta(self.beta)

    def _loss(self) -> losses.FBeta:
        return losses.FBeta(self.beta)


@dataclass(frozen=True)
class GMeanMeasure(TableMeasure):
    """Geometric mean of the true-positive and the true-negative rate of the predicted labels."""

    name: ClassVar[str] = "g_mean"
    _title: ClassVar[str] = "G-mean"

    def _loss(self) -> losses.GMean:
        return losses.GMean()


@dataclass(frozen=True)
class WeightedRelativeAccuracyMeasure(Measure):
    """Weighted relative accuracy of the predicted labels; not available for training."""

    name: ClassVar[str] = "weighted_relative_accuracy"
    _title: ClassVar[str] = "weighted relative accuracy"
    trainable: ClassVar[bool] = False


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


# Thresholds on scores: a row is predicted positive if its score is above the threshold.
Rate = Callable[[Array, Array, float, float], Array]


def at_fpr(scores: Array, positive: Bools, weight: Array | None, max_fpr: float) -> float:
    """Return the lowest threshold whose false-positive rate is at most ``max_fpr``.

    Which negatives are above it depends only on the negatives. The threshold is the midpoint to the next higher score.
    """
    highest = highest_rejected(scores, positive, weight, max_fpr)
    if highest is None:
        return _under(float(scores.min()))
    rejected, higher = _rejected_and_next(scores, highest)
    return _over(rejected) if higher is None else _between(rejected, higher)


def highest_rejected(scores: Array, positive: Bools, weight: Array | None, max_fpr: float) -> float | None:
    """Return the highest score of a negative that must be rejected for a false-positive rate of at most ``max_fpr``.

    None if no negative must be rejected.
    """
    negatives = scores[~positive]
    fp = None
    if weight is not None:
        order = np.argsort(-negatives)
        negatives, fp = negatives[order], np.cumsum(weight[~positive][order])
    n_within = _count_within(negatives.size, fp, max_fpr)
    if n_within == negatives.size:
        return None
    if fp is None:
        place = negatives.size - 1 - n_within
        negatives.partition(place)
        return float(negatives[place])
    return float(negatives[n_within])


def _count_within(size: int, cumulated: Array | None, rate: float) -> int:
    """Return how many of the first rows have a share of the weight of at most ``rate``; None for weights of 1."""
    if cumulated is None:
        return min(size, int(rate * float(size) * (1 + DUST)))
    return int(np.count_nonzero(cumulated <= rate * cumulated[-1] * (1 + DUST)))


def above_order(scores: Array, positive: Bools, k: int) -> float:
    """Return the threshold just above the ``k``-th smallest score of the negatives.

    The midpoint to the next score could lose true positives; a relative distance of 1e-9 is sufficient for rounding
    errors.
    """
    return just_above(scores, float(np.partition(scores[~positive], k - 1)[k - 1]))


def just_above(scores: Array, order: float) -> float:
    """Return a threshold just above one of the scores, and below the next higher one."""
    rejected, higher = _rejected_and_next(scores, order)
    near = float(np.nextafter(rejected + 1e-9 * abs(rejected), np.inf))
    return near if higher is None else min(near, _between(rejected, higher))


def at_tpr(scores: Array, positive: Bools, weight: Array | None, min_tpr: float) -> float:
    """Return the highest threshold whose true-positive rate is at least ``min_tpr``.

    Which positives are above it depends only on the positives. The threshold is the midpoint to the next lower score.
    """
    lowest = lowest_accepted(scores, positive, weight, min_tpr)
    if lowest is None:
        return _over(float(scores.max()))
    accepted, lower = _accepted_and_next(scores, lowest)
    return _under(accepted) if lower is None else _just_below(accepted, _between(lower, accepted))


def lowest_accepted(scores: Array, positive: Bools, weight: Array | None, min_tpr: float) -> float | None:
    """Return the lowest score of a positive that must be accepted for a true-positive rate of at least ``min_tpr``.

    None if no positive must be accepted.
    """
    found = highest_rejected(-scores, ~positive, weight, 1 - min_tpr)
    return None if found is None else -found


def below_order(scores: Array, positive: Bools, k: int) -> float:
    """Return the threshold just below the ``k``-th largest score of the positives.

    The midpoint to the next score could add false positives; a relative distance of 1e-9 is sufficient for rounding
    errors.
    """
    positives = scores[positive]
    accepted, lower = _accepted_and_next(scores, float(np.partition(positives, -k)[-k]))
    near = _just_below(accepted, accepted - 1e-9 * abs(accepted))
    return near if lower is None else max(near, _just_below(accepted, _between(lower, accepted)))


def best_youden(scores: Array, positive: Bools, weight: Array | None) -> float:
    """Return the threshold that maximizes the true-positive rate minus the false-positive rate.

    On many rows, only those in bins of the scores that can contain the threshold are sorted.
    """
    near = _near_best_youden(scores, positive, weight) if scores.size >= 50_000 else None
    if near is not None:
        rows, above = near
        part = None if weight is None else weight[rows]
        values, tp, fp = cumulated(scores[rows], positive[rows], part)
        found = tp / above.m - fp / above.n + above.difference
        n_accepted = 1 + int(np.flatnonzero(found >= found.max() - DUST)[0])
        if found.max() > 0 and n_accepted < values.size:
            return below(values, n_accepted)
    return best_measure(scores, positive, weight, lambda tp, fp, m, n: tp / m - fp / n)


def best_measure(scores: Array, positive: Bools, weight: Array | None, measure: Rate) -> float:
    """Return the threshold that maximizes ``measure(tp, fp, m, n)``; above all scores if the maximum is 0 or less."""
    values, tp, fp = cumulated(scores, positive, weight)
    found = measure(tp, fp, tp[-1], fp[-1])
    # Of thresholds with equal values up to rounding error, use the highest.
    n_accepted = 1 + int(np.flatnonzero(found >= found.max() - DUST)[0])
    return below(values, n_accepted if found.max() > 0 else 0)


class _Above(NamedTuple):
    """Weights of the classes, and true-positive minus false-positive rate of the rows above a part of the scores."""

    m: float
    n: float
    difference: float


def _near_best_youden(scores: Array, positive: Bools, weight: Array | None) -> tuple[Index, _Above] | None:
    """Return the rows near the best threshold; None if the scores hardly differ.

    In a bin, the difference of the rates is at most that above it plus the share of the positives in it. Bins that can
    contain the maximum are kept, with all bins between them and the next non-empty bin on each side.
    """
    low, high, n_bins = float(scores.min()), float(scores.max()), 4096
    if not high - low > 1e-6 * max(abs(low), abs(high)):
        return None
    cell = ((high - scores) * ((n_bins - 1e-9) / (high - low))).astype(np.int32)
    shares = []
    for side in (positive, ~positive):
        mass = np.bincount(cell[side], None if weight is None else weight[side], n_bins)
        shares.append((mass / mass.sum(), float(mass.sum())))
    (of_positives, m), (of_negatives, n) = shares
    difference = np.cumsum(of_positives - of_negatives)
    before = difference - (of_positives - of_negatives)
    used = np.flatnonzero(of_positives + of_negatives)
    can_win = np.flatnonzero((before + of_positives)[used] >= difference.max() - 2 * DUST)
    first, last = used[max(can_win[0] - 1, 0)], used[min(can_win[-1] + 1, used.size - 1)]
    return np.flatnonzero((cell >= first) & (cell <= last)), _Above(m, n, float(before[first]))


def at_top(scores: Array, positive: Bools, weight: Array | None, size: float) -> float:
    """Return the lowest threshold with at most a given weight of rows above it, but at least one distinct score."""
    values, tp, fp = cumulated(scores, positive, weight)
    return below(values, max(1, int(np.count_nonzero(tp + fp <= size * (1 + DUST)))))


def _rejected_and_next(scores: Array, cut: float) -> tuple[float, float | None]:
    """Return the highest score equal to ``cut`` up to rounding error, and the next higher score or None."""
    # In Python's floats, which overflow to infinity without a warning.
    tied = scores <= float(cut) + float(score_error(np.asarray(cut)))
    return float(scores[tied].max()), None if tied.all() else float(scores[~tied].min())


def _accepted_and_next(scores: Array, cut: float) -> tuple[float, float | None]:
    """Return the lowest score equal to ``cut`` up to rounding error, and the next lower score or None."""
    accepted, lower = _rejected_and_next(-scores, -cut)
    return -accepted, None if lower is None else -lower


def _just_below(accepted: float, threshold: float) -> float:
    """Return the threshold, but less than the accepted score, because a score must be above the threshold."""
    return min(threshold, float(np.nextafter(accepted, -np.inf)))


def cumulated(scores: Array, positive: Bools, weight: Array | None) -> tuple[Array, Array, Array]:
    """Return distinct scores in descending order, with the weights of positives and negatives at or above each."""
    values, block = np.unique(-join_ties(scores), return_inverse=True)
    weight = np.ones(scores.size) if weight is None else weight
    tp = np.cumsum(np.bincount(block, weight * positive, values.size))
    fp = np.cumsum(np.bincount(block, weight * ~positive, values.size))
    return -values, tp.astype(np.float64), fp.astype(np.float64)


def below(values: Array, n_accepted: int) -> float:
    """Return a threshold between the accepted and the rejected scores."""
    if n_accepted == 0:
        return _over(float(values[0]))
    if n_accepted == values.size:
        return _under(float(values[-1]))
    return _between(float(values[n_accepted]), float(values[n_accepted - 1]))


def _between(low: float, high: float) -> float:
    """Return the midpoint, so that rounding errors in later products do not change predictions."""
    return max(low, low / 2 + high / 2)


def _over(highest: float) -> float:
    return highest + max(1.0, abs(highest)) * 1e-6


def _under(lowest: float) -> float:
    return lowest - max(1.0, abs(lowest)) * 1e-6


__all__ = [
    "AveragePrecisionMeasure",
    "BreakEvenPointMeasure",
    "FBetaMeasure",
    "FPRAtTPRMeasure",
    "GMeanMeasure",
    "Measure",
    "PartialAUCMeasure",
    "PrecisionAtKMeasure",
    "ROCAUCMeasure",
    "TPRAtFPRMeasure",
    "WeightedRelativeAccuracyMeasure",
    "find_measure",
    "measure_names",
    "pick_measure",
]

publish("rocmax.measures", globals(), __all__)
