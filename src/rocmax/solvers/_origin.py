"""Zero weights: where every certified run measures losses from, and what its tolerance is relative to.

On features of small scale nothing that can be gained shows in the objective: a relative gap of 1e-3 is met by zero
weights, and in the end the whole gain is below the rounding error of the loss. So losses, objectives and cuts are kept
as differences from zero weights, and a gap is compared with the gain as well as with the objective.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import Operator

# Below this change, relative to the loss of zero weights, the difference of two losses is mostly rounding.
_CLOSE = 1e-11
# How many rows tell the size of the features.
_ROWS_FOR_SIZE = 1000
_EPS = float(np.finfo(np.float64).eps)


class Origin:
    """A convex loss at zero weights.

    Parameters
    ----------
    operator : Operator
        The data.
    loss : BoundLoss
        The loss.

    Attributes
    ----------
    value : float
        The loss at zero weights.
    coefficients : ndarray
        Its gradient in the scores.
    """

    def __init__(self, operator: Operator, loss: BoundLoss) -> None:
        self._operator = operator
        self.value, self.coefficients = loss.value_and_gradient(np.zeros(operator.shape[0]))

    @cached_property
    def slope(self) -> Array:
        """The gradient in the weights, which takes one pass; exactly zero if it is no more than rounding."""
        slope = self._operator.rmatvec(self.coefficients)
        noise = _rounding_of_sums(self._operator, self.coefficients)
        return slope if float(np.linalg.norm(slope)) > noise else np.zeros_like(slope)

    def rise(self, value: float, coefficients: Array, scores: Array) -> float:
        """Return the loss at some scores minus that of zero weights.

        By convexity the product of coefficients and scores is an upper bound of that, and for scores near zero it is
        equal: there it is used, as the difference of the losses has no digits left.
        """
        rise = value - self.value
        return float(coefficients @ scores) if abs(rise) <= _CLOSE * abs(self.value) else rise

    def rounding(self, gain: float, C: float = 1.0) -> float:
        """Return the rounding error of an objective, where losses are compared by their difference."""
        size = C * abs(self.value)
        return 8 * _EPS * size if gain > _CLOSE * size else 0.0


def _rounding_of_sums(operator: Operator, coefficients: Array) -> float:
    """Return about how large rounding can make the norm of ``X.T @ coefficients``, estimated from some rows."""
    n_samples = coefficients.size
    rows = operator.rows(np.linspace(0, n_samples - 1, min(n_samples, _ROWS_FOR_SIZE)).astype(np.intp))
    size = np.asarray(abs(rows).mean(axis=0), dtype=np.float64).ravel()
    return float(8 * np.finfo(rows.dtype).eps * np.abs(coefficients).sum() * np.linalg.norm(size))
