"""Measures of the workflow: those computed from scores on a range of rates, with intervals."""

from __future__ import annotations

from inspect import Parameter
from typing import Any

import numpy as np

from rocmax.measures import Measure, measure_names, pick_measure
from rocmax.metrics.delong import estimate_with_delong
from rocmax.metrics.registry import METRICS

# Parameters of measures that the workflow sets: the range of false-positive rates, and the required TPR.
WINDOW = ("min_fpr", "max_fpr")
LIMITS = (*WINDOW, "min_tpr")
N_RESAMPLES = 1000


def window_measure_names() -> list[str]:
    """Return the names of score measures without required parameters other than the range of false-positive rates.

    Threshold-based measures are left out because tuning uses scores.
    """
    return [
        name
        for name in measure_names()
        if not METRICS[name].takes_labels
        and all(key in WINDOW or default is not Parameter.empty for key, default in METRICS[name].parameters.items())
    ]


def window_measure(name: str, window: tuple[float, float], min_tpr: float = 0.0) -> Measure:
    """Return a measure, with the range of false-positive rates and the required TPR if it has them."""
    return pick_measure(name, dict(zip(LIMITS, (*window, min_tpr), strict=True)))


def usable_groups(groups: Any, positive: Any) -> tuple[Any, list[str]]:
    """Return the groups of labeled rows; None and a note if a class has too few of them for an interval."""
    if groups is None:
        return None, []
    counts = {name: np.unique(groups[side]).size for name, side in (("positive", positive), ("negative", ~positive))}
    few = [f"{name} rows of one group only" for name, count in counts.items() if count < 2]
    if not few:
        return groups, []
    return None, [f"{' and '.join(few)}: the confidence intervals are for independent rows and can be too narrow"]


def measured(name: str, about: dict[str, Any], positive: Any, scores: Any, groups: Any = None) -> dict[str, Any]:
    """Return the value of a measure with its confidence interval."""
    return all_measured([name], about, positive, scores, groups)[name]


def all_measured(
    names: list[str], about: dict[str, Any], positive: Any, scores: Any, groups: Any = None
) -> dict[str, dict[str, Any]]:
    """Return the values of measures with their confidence intervals, by name; groups are independent, or rows."""
    window = about["min_fpr"], about["max_fpr"]
    measures = [window_measure(name, window, about.get("min_tpr", 0.0)) for name in names]
    options: dict[str, Any] = {"n_resamples": N_RESAMPLES, "random_state": about["seed"], "groups": groups}
    found = estimate_with_delong([(measure, {}) for measure in measures], positive, scores, **options)
    return {
        measure.name: {**estimate._asdict(), **{key: measure.params[key] for key in LIMITS if key in measure.params}}
        for measure, estimate in zip(measures, found, strict=True)
    }
