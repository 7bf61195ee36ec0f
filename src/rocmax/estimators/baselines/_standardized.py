"""Standardized features of a training set."""

from __future__ import annotations

import numpy as np

from rocmax._typing import Array
from rocmax._validate import TrainingSet


def standardized(data: TrainingSet) -> tuple[Array, Array]:
    """Return the features with mean 0 and deviation 1, and their factors; a constant feature has the factor 0."""
    weight = np.ones(data.positive.size) if data.weight is None else data.weight
    mean = np.average(data.X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((data.X - mean) ** 2, axis=0, weights=weight))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-12)
    return (data.X - mean) * scale, scale
