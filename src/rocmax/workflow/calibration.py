"""Probabilities of the positive class for the scores of a model with metadata."""

from __future__ import annotations

from typing import Any

from rocmax._calibration import calibrated, fit_calibration
from rocmax._messages import Message, Parameter, ParameterError
from rocmax._typing import Array

__all__ = ["fit_calibration", "probabilities"]


def probabilities(facts: dict[str, Any], scores: Array) -> Array:
    """Return the calibrated probability of the positive class for scores of a model."""
    found = facts.get("calibration")
    if found is None:
        raise ParameterError(
            Message(Parameter("proba"), " requires a model with calibrated probabilities; fit this model again")
        )
    return calibrated(found, scores)
