"""SOLAM: stochastic steps on a saddle-point formulation of the squared loss on pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rocmax._typing import Array, RowNumbers
from rocmax.streaming.base import RowBlock, mean_squared_length

_N_MEASURED = 1000


@dataclass
class SaddlePoint:
    r"""Projected descent in :math:`(w, a, b)` and ascent in :math:`\alpha`, steps :math:`\zeta/\sqrt t`.

    Parameters
    ----------
    n_features : int
        Number of weights.
    radius : float
        Bound on :math:`|w|`; with :math:`\kappa` the length of the longest row so far, :math:`|a|, |b| \le`
        ``radius`` :math:`\kappa` and :math:`|\alpha| \le 2` ``radius`` :math:`\kappa`.
    zeta : float or None
        Scale of the steps; None for 1 divided by the mean of :math:`|x|^2` over the first rows.
    average : bool, default=True
        Whether the model is the mean of the iterates, weighted by their steps, or the last one.
    """

    n_features: int
    radius: float
    zeta: float | None
    average: bool = True
    _v: Array = field(init=False)
    _u: Array = field(init=False)
    # Step number, scale, weight and total of the average, a, b, alpha, p, longest row.
    _state: tuple[float, ...] = (0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        self._v, self._u = np.zeros(self.n_features), np.zeros(self.n_features)

    def epoch(self, stream: RowBlock) -> None:
        """Process the new rows once, in random order."""
        for rows in stream.shuffled_blocks():
            self.steps(stream, rows)

    def steps(self, stream: RowBlock, rows: RowNumbers) -> None:
        """Take one step for each of the given rows."""
        from rocmax.streaming._compile import run
        from rocmax.streaming.loops import saddle_steps

        if self.zeta is None:
            self.zeta = 1.0 / (mean_squared_length(stream.X[rows[:_N_MEASURED]]) or 1.0)
        self._state = run(
            saddle_steps, stream.loop_form, stream.positive, rows, self._v, self._u, *self._state,
            float(self.zeta), float(self.radius),
        )  # fmt: skip

    def weights(self) -> Array:
        """Return the weighted mean of the iterates, or the last one."""
        _, scale, weight, total, *_ = self._state
        return (weight * self._v - self._u) / total if self.average and total else scale * self._v
