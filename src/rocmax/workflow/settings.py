"""Validation of the parameters of the workflow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocmax._messages import Message, Parameter, ParameterError
from rocmax.workflow.measuring import window_measure_names
from rocmax.workflow.models import MODELS

# With both limits, the two-way partial AUC is the partial AUC.
TWO_WAY = "two_way_partial_auc"
MEASURES = (*window_measure_names(), TWO_WAY)
# What the limit of a threshold counts once if there are groups.
RATES = ("row", "group")
LEAST_TEST_SHARE, LARGEST_TEST_SHARE = 0.05, 0.9


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit, validated by :func:`check_fit`."""

    window: tuple[float, float]
    measure: str
    model: str
    confidence: float | None
    test_size: float
    seed: int
    tune: bool = True
    min_tpr: float = 0.0
    rate: str = "row"


def check_fit(
    *,
    min_fpr: float,
    max_fpr: float,
    min_tpr: float,
    measure: str | None,
    model: str,
    confidence: float | None,
    test_size: float,
    random_state: int,
    tune: bool,
    rate: str = "row",
    group: str | None = None,
) -> FitSettings:
    """Return the settings of a fit; raise ParameterError if they are invalid or incompatible."""
    window, floor = check_window(min_fpr, max_fpr), check_floor(min_tpr)
    chosen = check_measure(measure, max_fpr, floor)
    check_choice("model", model, MODELS)
    if confidence is not None:
        _check_range("confidence", confidence, 0.0, 1.0, "a number above 0 and below 1", open_ends=True)
        if max_fpr == 1.0 and floor == 0.0:
            limits = Parameter("max_fpr", ...), " or ", Parameter("min_tpr", ...)
            raise ParameterError(Message(Parameter("confidence"), " requires a limit: ", *limits))
    check_choice("rate", rate, RATES)
    if rate == "group" and group is None:
        raise ParameterError(Message(Parameter("rate", rate), " requires groups: ", Parameter("group", ...)))
    needed = f"a number from {LEAST_TEST_SHARE} to {LARGEST_TEST_SHARE}"
    _check_range("test_size", test_size, LEAST_TEST_SHARE, LARGEST_TEST_SHARE, needed)
    check_seed(random_state)
    return FitSettings(window, chosen, model, confidence, float(test_size), int(random_state), bool(tune), floor, rate)


def check_window(min_fpr: float, max_fpr: float) -> tuple[float, float]:
    """Return the range of false-positive rates."""
    for name, value in (("min_fpr", min_fpr), ("max_fpr", max_fpr)):
        _check_range(name, value, 0.0, 1.0, "a number from 0 to 1")
    low, high = Parameter("min_fpr"), Parameter("max_fpr")
    if not min_fpr < max_fpr:
        raise ParameterError(Message(low, " must be less than ", high, f"; got {min_fpr:g} and {max_fpr:g}"))
    if min_fpr > 0 and max_fpr == 1.0:
        limit = Parameter("max_fpr", ...)
        raise ParameterError(Message(low, " requires a limit: ", limit, f", above {min_fpr:g} and below 1"))
    return float(min_fpr), float(max_fpr)


def check_floor(min_tpr: float) -> float:
    """Return the required true-positive rate."""
    _check_range("min_tpr", min_tpr, 0.0, math.nextafter(1.0, 0.0), "a number of at least 0 and below 1")
    return float(min_tpr)


def check_measure(measure: str | None, max_fpr: float, min_tpr: float = 0.0) -> str:
    """Return the name of the measure; the default is the partial AUC with a limit, and the AUC without."""
    if measure is None:
        return "roc_auc" if max_fpr == 1.0 and min_tpr == 0.0 else "partial_auc"
    chosen = measure.removesuffix("_score") if isinstance(measure, str) else measure
    check_choice("measure", chosen, MEASURES)
    named, limit = Parameter("measure", chosen), Parameter("max_fpr", ...)
    if chosen == "tpr_at_fpr" and max_fpr == 1.0:
        raise ParameterError(Message(named, " requires a limit: ", limit))
    if chosen == TWO_WAY and (max_fpr == 1.0 or min_tpr == 0.0):
        raise ParameterError(Message(named, " requires both limits: ", limit, " and ", Parameter("min_tpr", ...)))
    return "partial_auc" if chosen == TWO_WAY else chosen


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise ParameterError if a value is not one of the choices."""
    if value not in choices:
        raise ParameterError(Message(Parameter(name), f" must be one of {', '.join(choices)}; got {value!r}"))


def check_count(name: str, value: Any, least: int, needed: str) -> None:
    """Raise ParameterError if a value is not an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(Message(Parameter(name), f" must be {needed}; got {value!r}"))


def check_threads(threads: Any) -> None:
    """Raise ParameterError if a number of threads is neither None nor a positive integer."""
    if threads is not None:
        check_count("threads", threads, 1, "a positive integer, or None to follow the size of the table")


def check_seed(random_state: Any) -> None:
    """Raise ParameterError if a seed is not an integer that NumPy and scikit-learn accept."""
    needed = "an integer from 0 to 2**32 - 1, which is saved with the model"
    check_count("random_state", random_state, 0, needed)
    if random_state >= 2**32:
        raise ParameterError(Message(Parameter("random_state"), f" must be {needed}; got {random_state!r}"))


def _check_range(name: str, value: Any, low: float, high: float, needed: str, *, open_ends: bool = False) -> None:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not (low < value < high if open_ends else low <= value <= high):
        got = f"{value:g}" if number else repr(value)
        raise ParameterError(Message(Parameter(name), f" must be {needed}; got {got}"))
