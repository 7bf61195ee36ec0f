"""Loss at zero weights, the reference for losses and tolerances of certified solvers.

For features of small scale, the possible decrease of the objective is small relative to the objective: zero weights
already have a relative gap of 1e-3, and the decrease can be below the rounding error of the loss. Losses, objectives
and cuts are therefore stored as differences from zero weights, and the gap is compared with the possible decrease as
well as with the objective.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss, Evaluation
from rocmax.operators import Operator, absolute_sum, zero_scores
from rocmax.solvers.base import gap_rounding

# Below this change, relative to the loss of zero weights, the difference of two losses is mostly rounding error.
_CLOSE = 1e-11
# Number of rows from which the scale of the features is estimated.
_ROWS_FOR_SIZE = 1000
_EPS = float(np.finfo(np.float64).eps)
# Number of scores whose spread is computed.
_SPREAD_ROWS = 100_000


class Origin:
    """Convex loss at zero weights.

    Parameters
    ----------
    operator : Operator
        The data.
    loss : BoundLoss
        The loss.

    """

    def __init__(self, operator: Operator, loss: BoundLoss) -> None:
        self._operator, self._at = operator, loss.at(zero_scores(operator))

    @property
    def value(self) -> float:
        """The loss at zero weights."""
        return self._at.value(0.0)

    @property
    def coefficients(self) -> Array:
        """Gradient of the loss in the scores; it is computed again for each use, because it is as large as the data."""
        return self._at.minorant(0.0)[1]

    @cached_property
    def slope(self) -> Array:
        """Gradient in the weights, computed in one pass; set to zero if it is within rounding error."""
        coefficients = self.coefficients
        slope = self._operator.rmatvec(coefficients)
        noise = _rounding_of_sums(self._operator, coefficients)
        return slope if (np.abs(slope) > noise).any() else np.zeros_like(slope)

    def rise(self, value: float, coefficients: Array, scores: Array) -> float:
        """Return the loss at some scores minus that of zero weights.

        By convexity the product of coefficients and scores is an upper bound of this difference, with equality for
        scores near zero. It is used there, where the difference of the losses suffers from cancellation.
        """
        rise, close = value - self.value, _CLOSE * abs(self.value)
        if abs(rise) > close:
            return rise
        # The loss can be that of zero weights far from them, where the product is not close to the difference.
        along = float(coefficients @ scores)
        return along if abs(along) <= close else rise

    def upper_rise(self, at: Evaluation) -> float:
        """Return an upper bound of the loss at some scores minus that of zero weights."""
        rise = at.upper - self.value
        if abs(rise) > _CLOSE * abs(self.value):
            return rise
        value, coefficients = at.minorant(0.0)
        return self.rise(value, coefficients, at.scores) + (at.upper - value)

    def error(self, gap: float, objective: float, scores: Any, C: float = 1.0) -> float:
        """Return an estimate of the rounding error of a gap, see :func:`gap_rounding`."""
        return gap_rounding(self._operator, gap, abs(objective) + C * (abs(self.value) + spread(scores)))

    def rounding(self, gain: float, C: float = 1.0) -> float:
        """Return the rounding error of an objective if losses are subtracted, and zero otherwise."""
        size = C * abs(self.value)
        return 8 * _EPS * size if gain > _CLOSE * size else 0.0


def _rounding_of_sums(operator: Operator, coefficients: Array) -> Array:
    """Return an estimate of the rounding error of ``X.T @ coefficients`` in each feature, from a sample of rows.

    Products of dense rows in single precision are computed from differences to means of double precision.
    """
    n_samples = operator.shape[0]
    rows = operator.rows(np.linspace(0, n_samples - 1, min(n_samples, _ROWS_FOR_SIZE)).astype(np.intp))
    eps = np.finfo(rows.dtype).eps
    if sparse.issparse(rows):
        size = eps * np.asarray(abs(rows).mean(axis=0), dtype=np.float64).ravel()
    else:
        mean = rows.mean(axis=0, dtype=np.float64)
        size = _EPS * np.abs(mean) + eps * np.abs(rows - mean).mean(axis=0)
    noise: Array = 8 * absolute_sum(coefficients) * size
    return noise


def spread(scores: Any) -> float:
    """Return the standard deviation of scores; of a part of them if they are a long array."""
    every = max(1, scores.size // _SPREAD_ROWS) if isinstance(scores, np.ndarray) else 1
    part = scores if every == 1 else scores[::every]
    if not isinstance(part, np.ndarray):
        return float(np.std(part))
    centred = part - part.mean()
    return math.sqrt(float(centred @ centred) / part.size)
