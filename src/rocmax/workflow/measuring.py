"""The measures of the workflow: those of scores on a window of false-positive rates, with their intervals."""

from __future__ import annotations

from inspect import Parameter
from typing import Any

from rocmax.measures import Measure, measure_names, pick_measure
from rocmax.metrics.bootstrap import estimate_measures
from rocmax.metrics.registry import METRICS

# Parameters of measures that the workflow knows: the window of false-positive rates.
WINDOW = ("min_fpr", "max_fpr")
N_RESAMPLES = 1000


def window_measure_names() -> list[str]:
    """Return the measures of scores that need no parameter but the window of false-positive rates.

    Measures of decisions are left out, because tuning compares scores.
    """
    return [
        name
        for name in measure_names()
        if not METRICS[name].takes_labels
        and all(key in WINDOW or default is not Parameter.empty for key, default in METRICS[name].parameters.items())
    ]


def window_measure(name: str, window: tuple[float, float]) -> Measure:
    """Return a measure, on the window if it has one."""
    return pick_measure(name, dict(zip(WINDOW, window, strict=True)))


def measured(name: str, about: dict[str, Any], positive: Any, scores: Any) -> dict[str, Any]:
    """Return a measure of the scores with its interval."""
    return all_measured([name], about, positive, scores)[name]


def all_measured(names: list[str], about: dict[str, Any], positive: Any, scores: Any) -> dict[str, dict[str, Any]]:
    """Return measures of the scores with their intervals, by name."""
    measures = [window_measure(name, (about["min_fpr"], about["max_fpr"])) for name in names]
    found = estimate_measures(
        [(measure, {}) for measure in measures], positive, scores, n_resamples=N_RESAMPLES, random_state=about["seed"]
    )
    return {
        measure.name: {**estimate._asdict(), **{key: measure.params[key] for key in WINDOW if key in measure.params}}
        for measure, estimate in zip(measures, found, strict=True)
    }
