"""Registry of the metric functions by name, for scorers, intervals and :mod:`rocmax.measures`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score

from rocmax.metrics import areas, decisions, operating_points
from rocmax.metrics.curve import Blocks, Curve, RankedRows, rank_decisions, rank_labels, rank_scores, score_blocks


@dataclass(frozen=True)
class Metric:
    """Public metric function, and its computation from the ROC curve of validated and sorted inputs.

    Attributes
    ----------
    name : str
        Name of the function, without the suffix ``_score``.
    function : callable
        The public function of labels and of scores or predicted labels.
    from_curve : callable
        The same value from the ROC curve.
    ranked : callable
        Function that validates and sorts the inputs.
    greater_is_better : bool
        Whether higher values are better.
    one_class : bool
        Whether the function is defined if all labels are equal.
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
    return areas.roc_auc(score_blocks(y_true, y_score, sample_weight, pos_label).curve())


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("roc_auc", area_under_roc, areas.roc_auc),
        Metric("partial_auc", areas.partial_auc_score, areas.partial_auc),
        Metric("two_way_partial_auc", areas.two_way_partial_auc_score, areas.two_way_partial_auc),
        Metric("tpr_at_fpr", operating_points.tpr_at_fpr, operating_points.best_tpr),
        Metric("fpr_at_tpr", operating_points.fpr_at_tpr, operating_points.best_fpr, greater_is_better=False),
        Metric("precision_at_k", operating_points.precision_at_k, operating_points.top_precision),
        Metric("break_even_point", operating_points.break_even_point, operating_points.break_even),
        Metric("f_beta", decisions.f_beta_score, decisions.f_beta, rank_labels, one_class=True),
        Metric("g_mean", decisions.g_mean_score, decisions.g_mean, rank_labels),
        Metric(
            "weighted_relative_accuracy",
            decisions.weighted_relative_accuracy,
            decisions.relative_accuracy,
            rank_labels,
        ),
    )
}


# Curve of a perfect ranking, to try parameters on. It has more rows than any number of top rows in use.
_ROWS = 2.0**53
_PERFECT = Curve(fp=np.array([0.0, 0.0, _ROWS]), tp=np.array([0.0, _ROWS, _ROWS]))


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
    # Raises ValueError for values that the metric refuses.
    found.from_curve(_PERFECT, **filled)
    return found, filled


def named_metric(measure: str | Callable[..., float] | HasMetric) -> Metric:
    """Return the metric for a name, with or without ``_score``, or for a function."""
    if isinstance(measure, str):
        found = METRICS.get(measure) or METRICS.get(measure.removesuffix("_score"))
        if found is not None:
            return found
    if measure is roc_auc_score:
        return METRICS["roc_auc"]
    for metric in METRICS.values():
        if measure is metric.function:
            return metric
    raise ValueError(f"measure must be one of {_listed(METRICS)}, or that function; got {measure!r}")


def _hint(name: str, unknown: list[str]) -> str:
    if name == "roc_auc" and "max_fpr" in unknown:
        return "; use partial_auc_score with max_fpr, and standardize=True for scikit-learn's scale"
    return ""


def _listed(names: Any) -> str:
    return ", ".join(names) or "no parameters"
