"""Single standardized features as weak learners."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocmax._typing import Array
from rocmax._validate import TrainingSet
from rocmax.estimators.baselines._standardized import standardized


class SingleFeature(NamedTuple):
    """A feature, times a factor; ``gain`` is the sum of its values with the coefficients."""

    feature: int
    scale: float
    gain: float

    def __call__(self, X: Array) -> Array:
        """Return the scaled feature; a shift of the scores is irrelevant."""
        result: Array = self.scale * X[:, self.feature]
        return result


class SingleFeatures:
    """Standardized features of a training set.

    Attributes
    ----------
    scale : ndarray of shape (n_features,)
        Factors that scale the features to a deviation of 1; 0 for constant features.
    """

    def __init__(self, data: TrainingSet) -> None:
        self._Z, self.scale = standardized(data)

    def leading(self, coefficients: Array, count: int) -> list[SingleFeature]:
        """Return the ``count`` features with the largest absolute sums, in descending order of the gain."""
        gain = coefficients @ self._Z
        size = np.abs(gain)
        # Rounding preserves the order of features with equal gains.
        order = np.argsort(-np.round(size / (size.max() or 1.0), 10), kind="stable")[:count]
        return [SingleFeature(int(f), float(self.scale[f]), float(gain[f])) for f in order if self.scale[f] > 0]
