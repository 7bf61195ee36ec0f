"""The measures by name, for scorers and intervals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score

from rocmax.metrics import areas, decisions, operating_points
from rocmax.metrics.curve import Blocks, RankedRows, rank_labels, rank_scores, score_blocks


class Measure(NamedTuple):
    """A public function, and what it computes from the curve once inputs are checked and sorted."""

    function: Callable[..., float]
    from_curve: Callable[..., float]
    ranked: Callable[..., RankedRows] = rank_scores
    greater_is_better: bool = True

    @property
    def takes_labels(self) -> bool:
        """Whether the second argument is predicted labels, not scores."""
        return self.ranked is rank_labels

    def blocks(self, *rows: Any) -> Blocks:
        """Check labels, values, weights and positive class, and join ties."""
        return self.ranked(*rows).blocks()


def area_under_roc(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: object = None
) -> float:
    """Area under the whole ROC curve, for either choice of the positive class.

    scikit-learn's own function takes no ``pos_label``.
    """
    return areas.roc_auc(score_blocks(y_true, y_score, sample_weight, pos_label).curve())


MEASURES: dict[str, Measure] = {
    "break_even_point": Measure(operating_points.break_even_point, operating_points.break_even),
    "fpr_at_tpr": Measure(operating_points.fpr_at_tpr, operating_points.best_fpr, greater_is_better=False),
    "g_mean_score": Measure(decisions.g_mean_score, decisions.g_mean, rank_labels),
    "partial_auc_score": Measure(areas.partial_auc_score, areas.partial_auc),
    "precision_at_k": Measure(operating_points.precision_at_k, operating_points.top_precision),
    "roc_auc_score": Measure(area_under_roc, areas.roc_auc),
    "tpr_at_fpr": Measure(operating_points.tpr_at_fpr, operating_points.best_tpr),
    "two_way_partial_auc_score": Measure(areas.two_way_partial_auc_score, areas.two_way_partial_auc),
    "weighted_relative_accuracy": Measure(
        decisions.weighted_relative_accuracy, decisions.relative_accuracy, rank_labels
    ),
}


def find_measure(measure: str | Callable[..., float], params: dict[str, Any]) -> tuple[Measure, dict[str, Any]]:
    """Return the measure and all its parameters, defaults filled in, or say what there is to choose from."""
    name = _name_of(measure)
    found = MEASURES[name]
    known = {
        key: parameter.default
        for key, parameter in inspect.signature(found.function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and key not in ("sample_weight", "pos_label")
    }
    unknown = [key for key in params if key not in known]
    if unknown:
        raise ValueError(f"{name} takes {_listed(known)}; got {_listed(unknown)}" + _hint(name, unknown))
    filled = {**known, **params}
    missing = [key for key, value in filled.items() if value is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"{name} needs a value for {_listed(missing)}; got {_listed(params)}")
    return found, filled


def _name_of(measure: str | Callable[..., float]) -> str:
    if isinstance(measure, str):
        for name in (measure, f"{measure}_score"):
            if name in MEASURES:
                return name
    if measure is roc_auc_score:
        return "roc_auc_score"
    for name, known in MEASURES.items():
        if measure is known.function:
            return name
    raise ValueError(f"measure needs to be one of {_listed(MEASURES)}, or that function; got {measure!r}")


def _hint(name: str, unknown: list[str]) -> str:
    if name == "roc_auc_score" and "max_fpr" in unknown:
        return "; use partial_auc_score with max_fpr, and standardize=True for scikit-learn's scale"
    return ""


def _listed(names: Any) -> str:
    return ", ".join(names) or "no parameters"
