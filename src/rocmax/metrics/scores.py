"""Metric functions, their registry by name, and scorers for model selection."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn import metrics as sklearn_metrics
from sklearn.metrics._scorer import _Scorer

from rocmax._rounding import DUST, top_weight, window_end
from rocmax._support import Array, check_beta, check_floor, check_rate, check_window
from rocmax._validation import class_scores, named_pos_label, positive_index
from rocmax.metrics.curve import (
    Blocks,
    Curve,
    RankedRows,
    rank_decisions,
    rank_labels,
    rank_scores,
    score_blocks,
)


def partial_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    standardize: bool = False,
    normalize: bool = True,
    definition: Literal["area", "count"] = "area",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Area under a part of the ROC curve, as a fraction of the largest possible area.

    The part is limited by two false-positive rates, ``a = min_fpr`` and ``b = max_fpr``, and by the true-positive rate
    ``t = min_tpr``; with the last two, it is the two-way partial AUC. With the empirical ROC curve drawn with straight
    lines between its points (a block of tied scores is one line), the ``"area"`` is

    .. math:: \frac{1}{(b-a)(1-t)} \int_a^b \max(\mathrm{TPR}(f) - t, 0)\, df,

    which is exact even if ``a`` or ``b`` falls inside a step, or if the curve crosses ``t`` on a line. The ``"count"``
    is the fraction of the pairs in which the positive has the higher score, over the negatives of rank
    ``floor(n a) < j <= ceil(n b)`` from the top and the ``ceil(m (1 - t))`` positives with the lowest scores.

    Parameters
    ----------
    y_true, y_score, min_fpr, max_fpr, min_tpr
    standardize : bool, default=False
        Whether to standardize the area as proposed by McClish: 1 for a perfect ranking and 0.5 for the diagonal. With
        ``min_fpr=0`` and ``min_tpr=0`` this equals ``sklearn.metrics.roc_auc_score(max_fpr=...)``.
    normalize : bool, default=True
        Whether to divide the area by that of a perfect ranking, ``(b - a) (1 - t)``.
    definition : {"area", "count"}, default="area"
        Definition of the score. A count is neither standardized nor an area without ``normalize``.
    sample_weight, pos_label

    Returns
    -------
    float
        Between 0 and 1, higher is better. Without ``min_tpr``, an uninformative score has the area ``(a + b) / 2``, or
        0.5 if standardized.

    References
    ----------
    McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 1989. Jiang, Metz and Nishikawa, Radiology
    1996 (above a true-positive rate). Narasimhan and Agarwal, Neural Computation 2017, Eq. 2 (the count). Yang, Lu, Lyu
    and Hu, "Two-way partial AUC and its properties", Statistical Methods in Medical Research 2019.

    Examples
    --------
    >>> from rocmax.metrics import partial_auc_score
    >>> y = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> s = [9.9, 8.7, 3.3, 2.1, 7.6, 5.3, 4.9, 4.4, 0.8]
    >>> partial_auc_score(y, s, max_fpr=0.2)
    0.5
    >>> round(partial_auc_score(y, s, max_fpr=0.2, standardize=True), 4)
    0.7222
    >>> round(partial_auc_score(y, s, min_tpr=0.5), 4)
    0.2
    """
    return partial_auc(
        score_blocks(y_true, y_score, sample_weight, pos_label).curve(),
        min_fpr=min_fpr,
        max_fpr=max_fpr,
        min_tpr=min_tpr,
        standardize=standardize,
        normalize=normalize,
        definition=definition,
    )


def partial_auc(
    curve: Curve,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    standardize: bool = False,
    normalize: bool = True,
    definition: Literal["area", "count"] = "area",
) -> float:
    """Compute :func:`partial_auc_score` from the curve."""
    check_window(min_fpr, max_fpr, any_width=definition == "area")
    check_floor(min_tpr)
    if standardize and not normalize:
        raise ValueError("standardize=True requires normalize=True; got normalize=False")
    if definition == "count":
        if standardize or not normalize:
            wrong = "standardize=True" if standardize else "normalize=False"
            raise ValueError(f'{wrong} requires definition="area"; got definition="count"')
        return _ordered_pairs(curve, min_fpr, max_fpr, min_tpr)
    if definition != "area":
        raise ValueError(f'definition must be "area" or "count"; got {definition!r}')
    area = _area(curve, min_fpr, max_fpr, floor=min_tpr)
    largest = (max_fpr - min_fpr) * (1 - min_tpr)
    if standardize:
        left = max(min_fpr, min_tpr)
        diagonal = max(max_fpr - left, 0.0) * ((left - min_tpr) + (max_fpr - min_tpr)) / 2
        return 0.5 * (1 + (area - diagonal) / (largest - diagonal))
    return area / largest if normalize else area


def roc_auc(curve: Curve) -> float:
    """Return the area under the whole curve."""
    return _area(curve, 0.0, 1.0)


def _ordered_pairs(curve: Curve, min_fpr: float, max_fpr: float, min_tpr: float) -> float:
    """Return the fraction of correctly ordered pairs in the region; ties count as incorrect."""
    start = math.floor(window_end(curve.n, min_fpr))
    # Fractional weights can sum to less than the next integer.
    stop = min(math.ceil(window_end(curve.n, max_fpr)), curve.n)
    lowest = curve.m if min_tpr == 0 else min(math.ceil(window_end(curve.m, 1 - min_tpr)), curve.m)
    inside = np.diff(np.clip(curve.fp, start, stop))
    above = np.maximum(curve.tp[:-1] - (curve.m - lowest), 0.0)
    return float(inside @ (above / lowest)) / (stop - start)


def _area(curve: Curve, start: float, stop: float, floor: float = 0.0) -> float:
    """Return the area between the curve and the height ``floor`` for rates from ``start`` to ``stop``."""
    fpr, tpr = curve.fp / curve.n, curve.tp / curve.m
    # On a vertical step, use the upper end at the left end of the window and the lower end at its right end.
    first = int(np.searchsorted(fpr, start, "right"))
    last = int(np.searchsorted(fpr, stop, "left"))
    x = np.concatenate(([start], fpr[first:last], [stop]))
    y = np.concatenate(([_between(fpr, tpr, first, start)], tpr[first:last], [_between(fpr, tpr, last, stop)]))
    if y[0] < floor:
        cut = int(np.searchsorted(y, floor))
        if cut == y.size:
            return 0.0
        x = np.concatenate(([_between(y, x, cut, floor)], x[cut:]))
        y = np.concatenate(([floor], y[cut:]))
    return float(np.trapezoid(y - floor, x))


def _between(x: Array, y: Array, i: int, at: float) -> float:
    """Return the height at ``at`` of the line from point ``i - 1`` to point ``i``, which must differ in ``x``."""
    return float(y[i - 1] + (y[i] - y[i - 1]) * ((at - x[i - 1]) / (x[i] - x[i - 1])))


# Measures of predicted labels.


def f_beta_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""F-beta score of predicted labels, the weighted harmonic mean of precision and recall.

    .. math:: F_\beta = \frac{(1 + \beta^2)\, tp}{\beta^2 m + tp + fp}

    with :math:`tp` of :math:`m` positives and :math:`fp` negatives predicted positive, as
    :func:`sklearn.metrics.fbeta_score`; 0 if there are no true or predicted positives.

    Parameters
    ----------
    y_true : ...
        One class is sufficient if ``y_pred`` or ``pos_label`` determines the positive class.
    y_pred
    beta
    sample_weight, pos_label

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    Examples
    --------
    >>> from rocmax.metrics import f_beta_score
    >>> f_beta_score([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    0.8
    """
    return f_beta(rank_labels(y_true, y_pred, sample_weight, pos_label, one_class=True).blocks().curve(), beta=beta)


def g_mean_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Geometric mean of the true-positive and the true-negative rate of predicted labels.

    .. math:: \sqrt{\mathrm{TPR} \cdot \mathrm{TNR}}

    Unlike accuracy, it is zero for a model that always predicts the majority class.

    Parameters
    ----------
    y_true, y_pred, sample_weight
    pos_label : ...
        The value is the same for either.

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    References
    ----------
    Kubat and Matwin, "Addressing the curse of imbalanced training sets: one-sided selection", ICML 1997.

    Examples
    --------
    >>> from rocmax.metrics import g_mean_score
    >>> g_mean_score([0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 1])
    0.5
    """
    return g_mean(rank_labels(y_true, y_pred, sample_weight, pos_label).blocks().curve())


def weighted_relative_accuracy(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Weighted relative accuracy (WRAcc) of predicted labels.

    The difference between the precision and the share of positives, times the share of predicted positives:

    .. math::
        P(\hat y = +)\,\bigl(P(y = + \mid \hat y = +) - P(y = +)\bigr)
        = P(y = +)\, P(y = -)\, (\mathrm{TPR} - \mathrm{FPR}).

    This is the unscaled form, between -1/4 and 1/4. Rakotomamonjy (2004, Table 1) uses four times this value.

    Parameters
    ----------
    y_true, y_pred, sample_weight
    pos_label : ...
        The value is the same for either.

    Returns
    -------
    float
        0 for uninformative predictions, ``P(y = +) P(y = -)`` for perfect predictions.

    References
    ----------
    Lavrac, Flach and Zupan, "Rule evaluation measures: a unifying view", ILP 1999. Rakotomamonjy, "Optimizing area
    under ROC curve with SVMs", ROCAI 2004.

    Examples
    --------
    >>> from rocmax.metrics import weighted_relative_accuracy
    >>> weighted_relative_accuracy([0, 0, 1, 1], [0, 0, 1, 1])
    0.25
    """
    return relative_accuracy(rank_labels(y_true, y_pred, sample_weight, pos_label).blocks().curve())


def f_beta(curve: Curve, *, beta: float) -> float:
    """Compute :func:`f_beta_score` from the curve of two blocks."""
    check_beta(beta)
    square, tp = beta**2, float(curve.tp[1])
    size = square * curve.m + tp + float(curve.fp[1])
    return (1 + square) * tp / size if size > 0 else 0.0


def g_mean(curve: Curve) -> float:
    """Compute :func:`g_mean_score` from the curve of two blocks."""
    tpr, fpr = _rates(curve)
    return math.sqrt(tpr * (1 - fpr))


def relative_accuracy(curve: Curve) -> float:
    """Compute :func:`weighted_relative_accuracy` from the curve of two blocks."""
    tpr, fpr = _rates(curve)
    share = curve.m / (curve.m + curve.n)
    return share * (1 - share) * (tpr - fpr)


def _rates(curve: Curve) -> tuple[float, float]:
    """Return the true- and the false-positive rate of the predictions."""
    return float(curve.tp[1]) / curve.m, float(curve.fp[1]) / curve.n


# Measures of one point of the ROC curve or of the top-ranked rows.


def tpr_at_fpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    max_fpr: float,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Largest true-positive rate of a threshold whose false-positive rate is at most ``max_fpr``.

    .. math:: \max_t \{ \mathrm{TPR}(t) : \mathrm{FPR}(t) \le \text{max\_fpr} \}

    The rate is attained by an actual threshold: there is no interpolation, tied scores are on the same side of the
    threshold, and the threshold above all scores (both rates 0) is included.

    Parameters
    ----------
    y_true, y_score
    max_fpr : float
        Limit on the false-positive rate, from 0 to 1.
    sample_weight, pos_label

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    Examples
    --------
    >>> from rocmax.metrics import tpr_at_fpr
    >>> tpr_at_fpr([0, 0, 0, 0, 1, 1], [1, 2, 3, 5, 4, 6], max_fpr=0.2)
    0.5
    """
    return best_tpr(score_blocks(y_true, y_score, sample_weight, pos_label).curve(), max_fpr=max_fpr)


def fpr_at_tpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    min_tpr: float,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Smallest false-positive rate of a threshold whose true-positive rate is at least ``min_tpr``.

    .. math:: \min_t \{ \mathrm{FPR}(t) : \mathrm{TPR}(t) \ge \text{min\_tpr} \}

    There is no interpolation, as in :func:`tpr_at_fpr`.

    Parameters
    ----------
    y_true, y_score
    min_tpr : float
        Required true-positive rate, from 0 to 1.
    sample_weight, pos_label

    Returns
    -------
    float
        Between 0 and 1; **lower** is better.

    Examples
    --------
    >>> from rocmax.metrics import fpr_at_tpr
    >>> fpr_at_tpr([0, 0, 0, 0, 1, 1], [1, 2, 3, 5, 4, 6], min_tpr=0.9)
    0.25
    """
    return best_fpr(score_blocks(y_true, y_score, sample_weight, pos_label).curve(), min_tpr=min_tpr)


def precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: float,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Share of positives among the ``k`` highest scores.

    .. math:: \frac{1}{k} \sum_{\text{top } k} 1[y = \text{positive}]

    Rows tied at the cutoff count in proportion: the value is the expectation over a random order of tied rows.

    Parameters
    ----------
    y_true, y_score
    k : ...
        If a fraction is not an integer number of rows, the last row counts in part.
    sample_weight, pos_label

    Returns
    -------
    float
        Between 0 and 1, higher is better; a perfect ranking reaches ``min(1, m / k)`` with ``m`` positives.

    Examples
    --------
    >>> from rocmax.metrics import precision_at_k
    >>> y, s = [1, 0, 1, 0, 0], [5, 4, 3, 3, 1]
    >>> precision_at_k(y, s, k=2)
    0.5
    >>> precision_at_k(y, s, k=3)  # one place for two tied rows, a positive and a negative
    0.5
    """
    return top_precision(score_blocks(y_true, y_score, sample_weight, pos_label).curve(), k=k)


def break_even_point(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Precision-recall break-even point: the precision among as many top rows as there are positives.

    With ``m`` positives, the precision is ``tp / k`` and the recall ``tp / m``, which are equal at ``k = m``. It is
    :func:`precision_at_k` with this ``k``.

    Parameters
    ----------
    y_true, y_score, sample_weight, pos_label

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    Examples
    --------
    >>> from rocmax.metrics import break_even_point
    >>> break_even_point([1, 1, 0, 0], [4, 2, 3, 1])
    0.5
    """
    return break_even(score_blocks(y_true, y_score, sample_weight, pos_label).curve())


def average_precision_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Average precision: the mean, over the positives, of the precision at the threshold that just reaches each.

    .. math:: \sum_t \frac{tp_t - tp_{t-1}}{m}\, \frac{tp_t}{tp_t + fp_t}

    over the distinct scores from the highest down, as :func:`sklearn.metrics.average_precision_score`. It is the area
    under the precision-recall curve as a step function, without interpolation. A random ranking has about the share of
    positives, so values of tables with different shares cannot be compared.

    Parameters
    ----------
    y_true, y_score, sample_weight, pos_label

    Returns
    -------
    float
        Above 0 and at most 1, higher is better.

    Examples
    --------
    >>> from rocmax.metrics import average_precision_score
    >>> average_precision_score([1, 0, 1, 0, 0], [5, 4, 3, 2, 1])
    0.8333333333333333
    """
    return average_precision(score_blocks(y_true, y_score, sample_weight, pos_label).curve())


def best_tpr(curve: Curve, *, max_fpr: float) -> float:
    """Compute :func:`tpr_at_fpr` from the curve."""
    check_rate("max_fpr", max_fpr)
    last = np.searchsorted(curve.fp, curve.n * max_fpr * (1 + DUST), "right") - 1
    return float(curve.tp[last]) / curve.m


def best_fpr(curve: Curve, *, min_tpr: float) -> float:
    """Compute :func:`fpr_at_tpr` from the curve."""
    check_rate("min_tpr", min_tpr)
    first = np.searchsorted(curve.tp, curve.m * min_tpr * (1 - DUST), "left")
    return float(curve.fp[first]) / curve.n


def top_precision(curve: Curve, *, k: float) -> float:
    """Compute :func:`precision_at_k` from the curve."""
    count = top_weight(k, curve.n + curve.m)
    return float(np.interp(count, curve.fp + curve.tp, curve.tp)) / count


def break_even(curve: Curve) -> float:
    """Compute :func:`break_even_point` from the curve."""
    return float(np.interp(curve.m, curve.fp + curve.tp, curve.tp)) / curve.m


def average_precision(curve: Curve) -> float:
    """Compute :func:`average_precision_score` from the curve."""
    gained = np.diff(curve.tp)
    found = gained > 0
    tp, fp = curve.tp[1:][found], curve.fp[1:][found]
    return float(gained[found] @ (tp / (tp + fp))) / curve.m


# Registry of the metric functions by name, for scorers, intervals and :mod:`rocmax.measures`.


@dataclass(frozen=True)
class Metric:
    """Public metric function of labels and scores or predicted labels, and its computation from a ROC curve.

    ``ranked`` validates and sorts the inputs; ``one_class`` is whether the function is defined if all labels are equal.
    """

    name: str
    function: Callable[..., float]
    from_curve: Callable[..., float]
    ranked: Callable[..., RankedRows] = rank_scores
    greater_is_better: bool = True
    one_class: bool = False

    @property
    def takes_labels(self) -> bool:
        """Whether the second argument contains predicted labels instead of scores."""
        return self.ranked is rank_labels

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters with their defaults; ``inspect.Parameter.empty`` if a value is required."""
        return {
            key: parameter.default
            for key, parameter in inspect.signature(self.function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and key not in ("sample_weight", "pos_label")
        }

    def blocks(self, *rows: Any) -> Blocks:
        """Validate labels, values, weights and the positive class, and return the blocks of ties."""
        return self.ranked(*rows).blocks()

    def of_decision(
        self, y_true: ArrayLike, decision: ArrayLike, sample_weight: ArrayLike | None, pos_label: object, **params: Any
    ) -> float:
        """Return the value for decision values, of which those above 0 predict the positive class."""
        if not self.takes_labels:
            return self.function(y_true, decision, sample_weight=sample_weight, pos_label=pos_label, **params)
        rows = rank_decisions(y_true, decision, sample_weight, pos_label, one_class=self.one_class)
        return self.from_curve(rows.blocks().curve(), **params)


class HasMetric(Protocol):
    """Measure with a metric function and parameters, such as a :class:`rocmax.measures.Measure`."""

    @property
    def metric(self) -> Metric:
        """Metric function."""

    @property
    def params(self) -> dict[str, Any]:
        """Parameters by name."""


MetricLike = str | HasMetric | Callable[..., float]


def area_under_roc(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: object = None
) -> float:
    """Return the area under the ROC curve, with a choice of the positive class.

    The function of scikit-learn has no ``pos_label``.
    """
    return roc_auc(score_blocks(y_true, y_score, sample_weight, pos_label).curve())


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("roc_auc", area_under_roc, roc_auc),
        Metric("partial_auc", partial_auc_score, partial_auc),
        Metric("tpr_at_fpr", tpr_at_fpr, best_tpr),
        Metric("fpr_at_tpr", fpr_at_tpr, best_fpr, greater_is_better=False),
        Metric("precision_at_k", precision_at_k, top_precision),
        Metric("break_even_point", break_even_point, break_even),
        Metric("average_precision", average_precision_score, average_precision),
        Metric("f_beta", f_beta_score, f_beta, rank_labels, one_class=True),
        Metric("g_mean", g_mean_score, g_mean, rank_labels),
        Metric(
            "weighted_relative_accuracy",
            weighted_relative_accuracy,
            relative_accuracy,
            rank_labels,
        ),
    )
}


def find_metric(measure: MetricLike, params: dict[str, Any]) -> tuple[Metric, dict[str, Any]]:
    """Return the metric and all its parameters, including defaults; raise ValueError for bad names and values."""
    if not isinstance(measure, str) and isinstance(getattr(measure, "metric", None), Metric):
        if params:
            raise ValueError(
                f"parameters must not be passed with a Measure, which has its own: {measure!r}; got {_listed(params)}"
            )
        return measure.metric, measure.params  # type: ignore[union-attr]  # a measure, as it has a metric
    found = named_metric(measure)
    known = found.parameters
    unknown = [key for key in params if key not in known]
    if unknown:
        raise ValueError(f"{found.name} accepts {_listed(known)}; got {_listed(unknown)}" + _hint(found.name, unknown))
    filled = {**known, **params}
    missing = [key for key, value in filled.items() if value is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"{found.name} requires a value for {_listed(missing)}; got {_listed(params)}")
    # Raises ValueError for values that the metric refuses. The curve, that of a perfect ranking, has more rows than any
    # number of top rows in use.
    rows = 2.0**53
    found.from_curve(Curve(fp=np.array([0.0, 0.0, rows]), tp=np.array([0.0, rows, rows])), **filled)
    return found, filled


def named_metric(measure: str | Callable[..., float] | HasMetric) -> Metric:
    """Return the metric for a name, with or without ``_score``, or for a function."""
    if isinstance(measure, str):
        found = METRICS.get(measure) or METRICS.get(measure.removesuffix("_score"))
        if found is not None:
            return found
    for metric in METRICS.values():
        if measure is metric.function or measure is getattr(sklearn_metrics, f"{metric.name}_score", metric):
            return metric
    raise ValueError(f"measure must be one of {_listed(METRICS)}, or that function; got {measure!r}")


def _hint(name: str, unknown: list[str]) -> str:
    if name == "roc_auc" and "max_fpr" in unknown:
        return "; use partial_auc_score with max_fpr, and standardize=True for scikit-learn's scale"
    return ""


def _listed(names: Any) -> str:
    return ", ".join(names) or "no parameters"


# Scorers for model selection in scikit-learn.


class MeasureScorer(_Scorer):  # type: ignore[misc]  # scikit-learn has no types
    """Scorer of a measure for the positive class of the estimator; made by :func:`make_scorer`.

    It is a scorer of scikit-learn, which has one positive class for all estimators, in all other respects.
    """

    @property
    def pos_label(self) -> Any:
        """Label of the positive class; None for that of the estimator."""
        return self._kwargs["pos_label"]

    def for_estimators(self, estimators: Iterable[Any]) -> MeasureScorer:
        """Return the scorer for the positive class that it or the estimators name."""
        scorer = copy(self)
        label = named_pos_label(estimators, self.pos_label, "the scorer")
        scorer._kwargs = {**self._kwargs, "pos_label": label}
        return scorer

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float:
        params = self.for_estimators([estimator])._kwargs
        plain = _Scorer(self._score_func, self._sign, params, self._response_method)
        # Without method_caller: it shares a response between the scorers of a dictionary, and with it the sign of the
        # positive class of the first scorer.
        result: float = plain(estimator, X, y_true, **kwargs)
        return result


def positive_scores(estimator: Any, X: Any, *, pos_label: object = None) -> Array:
    """Return the scores of a fitted classifier in which higher means more likely positive, for the metrics.

    The classifiers of rocmax have a method of this name. The function is for all others too: those of scikit-learn,
    pipelines and searches, whose ``decision_function`` always refers to ``classes_[1]``.

    Parameters
    ----------
    estimator : estimator
        Fitted binary classifier with ``decision_function`` or ``predict_proba``.
    X
    pos_label : ...
        ``pos_label`` of the estimator, also in a pipeline or a search, comes first; another one is an error.

    Returns
    -------
    ndarray of shape (n_samples,)
        Decision values, negated if the positive class is ``classes_[0]``; for an estimator without
        ``decision_function``, the probabilities of the positive class.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax import AUCClassifier
    >>> from rocmax.metrics import positive_scores
    >>> X, y = np.arange(6.0)[:, None], np.array(["ok", "ok", "ok", "fraud", "fraud", "fraud"])
    >>> model = AUCClassifier(pos_label="fraud").fit(X, y)
    >>> bool((positive_scores(model, X)[3:] > positive_scores(model, X)[:3]).all())
    True
    """
    label = named_pos_label([estimator], pos_label)
    return class_scores(estimator, X, positive_index(np.asarray(estimator.classes_), label))


def make_scorer(measure: MetricLike, *, pos_label: object = None, **params: Any) -> MeasureScorer:
    """Make a scikit-learn scorer from a measure.

    The scorer ``scorer(estimator, X, y, sample_weight=None)`` returns ``sign * measure(y, response, **params)``.
    The response is that of ``decision_function`` or, if the estimator has none, ``predict_proba``; for a measure of
    predicted labels it is that of ``predict``. The positive class is that of the estimator, and decision values are
    negated if it is ``classes_[0]``. The sign is -1 for ``fpr_at_tpr``, where lower is better, and 1 for all others.

    Parameters
    ----------
    measure
    pos_label : ...
        ``pos_label`` of the estimator, also in a pipeline or a search, comes first; another one is an error.
    **params
        Parameters of a measure given by its name or function, for example ``max_fpr=0.1``.

    Returns
    -------
    callable
        Scorer for ``GridSearchCV(scoring=...)``, ``cross_val_score`` and similar functions.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from rocmax.metrics import make_scorer
    >>> X, y = make_classification(n_samples=60, random_state=0)
    >>> scorer = make_scorer("partial_auc", max_fpr=0.2)
    >>> bool((cross_val_score(LogisticRegression(), X, y, scoring=scorer) > 0).all())
    True
    """
    found, filled = find_metric(measure, params)
    response = "predict" if found.takes_labels else ("decision_function", "predict_proba")
    return MeasureScorer(
        found.function, 1 if found.greater_is_better else -1, {"pos_label": pos_label, **filled}, response
    )
