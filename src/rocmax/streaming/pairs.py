"""PSAM and ASAM: steps on random pairs, with scheduled shrinking and averaging."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rocmax._typing import Array, RowNumbers
from rocmax.streaming.base import BLOCK, RowBlock, mean_squared_length
from rocmax.streaming.sampling import pairs_with_new_rows, uniform_pairs

_N_MEASURED = 1000


@dataclass
class PairSteps:
    r"""Steps on one pair :math:`x = x_i - x_j` at a time, of length at most :math:`\lambda_t = 1/(\alpha(t + t_0))`.

    Parameters
    ----------
    n_features : int
        Number of weights.
    proximal : bool
        PSAM, :math:`w \leftarrow w + \min(\lambda_t, (1 - w \cdot x)_+ / |x|^2)\, x`; otherwise ASAM,
        :math:`w \leftarrow w + \lambda_t \min((1 - w \cdot x)_+, 1)\, x`.
    alpha : float
        Weight of the penalty :math:`\frac\alpha2 |w|^2`.
    t0 : float or None
        Offset of the step number; None for the mean of :math:`|x|^2` over the first pairs divided by ``alpha``.
    rskip : int
        Number of steps between two shrinkings :math:`w \leftarrow (1 - \mathrm{rskip}/(t + t_0))\, w`.
    askip : int
        Number of steps between two iterates that are added to the average.
    average_from : float, default=0.0
        Number of the step after which averaging starts; infinity for no average.
    """

    n_features: int
    proximal: bool
    alpha: float
    t0: float | None
    rskip: int
    askip: int
    average_from: float = 0.0
    _v: Array = field(init=False)
    _u: Array = field(init=False)
    _state: tuple[int, float, float, int] = (0, 1.0, 0.0, 0)

    def __post_init__(self) -> None:
        self._v, self._u = np.zeros(self.n_features), np.zeros(self.n_features)

    def epoch(self, stream: RowBlock) -> None:
        """Take one step per new row if there are rows of both classes."""
        positives, negatives = np.flatnonzero(stream.positive), np.flatnonzero(~stream.positive)
        if not (positives.size and negatives.size):
            return
        if stream.uniform:
            for start in range(0, stream.new.size, BLOCK):
                size = min(BLOCK, stream.new.size - start)
                self.steps(stream, *uniform_pairs(positives, negatives, size, stream.rng))
        else:
            self.steps(stream, *pairs_with_new_rows(stream.new, stream.positive, positives, negatives, stream.rng))

    def steps(self, stream: RowBlock, first: RowNumbers, second: RowNumbers) -> None:
        """Take one step for each of the given pairs of a positive and a negative."""
        # Imported here because the import of numba takes longer than many fits.
        from rocmax.streaming._compile import run
        from rocmax.streaming.loops import pair_steps

        if self.t0 is None:
            difference = stream.X[first[:_N_MEASURED]] - stream.X[second[:_N_MEASURED]]
            self.t0 = mean_squared_length(difference) / self.alpha
        self._state = run(
            pair_steps, stream.loop_form, first, second, self._v, self._u, np.zeros(self.n_features), *self._state,
            float(self.alpha), float(self.t0), self.rskip, self.askip, float(self.average_from), self.proximal,
        )  # fmt: skip

    def weights(self) -> Array:
        """Return the average, or the last iterate if averaging has not started."""
        _, scale, weight, count = self._state
        return (weight * self._v - self._u) / count if count else scale * self._v
