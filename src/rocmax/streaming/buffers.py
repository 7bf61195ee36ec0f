"""OAM and CBR: each row is compared with a buffer of rows of the other class."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rocmax._typing import Array, RowNumbers
from rocmax.streaming.base import RowBlock


@dataclass
class ReservoirSteps:
    r"""OAM: hinge steps on pairs with uniform samples of the other class.

    With :math:`z = y (x - x')` for each :math:`x'` in the buffer, and :math:`C_t = C \max(1, n'/\mathrm{capacity})`
    where :math:`n'` is the number of rows of the other class so far.

    Parameters
    ----------
    n_features : int
        Number of weights.
    C : float
        Weight of the loss.
    sequential : bool
        Whether to take a passive-aggressive step for each pair in turn,
        :math:`w \leftarrow w + \min(C_t/2, (1 - w \cdot z)_+/|z|^2)\, z`; otherwise one gradient
        step, :math:`w \leftarrow w + \frac{C_t}{2} \sum_{z: w \cdot z < 1} z`.
    """

    n_features: int
    C: float
    sequential: bool
    _w: Array = field(init=False)

    def __post_init__(self) -> None:
        self._w = np.zeros(self.n_features)

    def epoch(self, stream: RowBlock) -> None:
        """Process the new rows once, in random order."""
        for rows in stream.shuffled_blocks(stream.buffers.shape[1]):
            self.steps(stream, rows, stream.rng.random(rows.size))

    def steps(self, stream: RowBlock, rows: RowNumbers, draws: Array) -> None:
        """Take the steps for the given rows; the draws from [0, 1) determine their positions in the buffers."""
        from rocmax.streaming._compile import run
        from rocmax.streaming.loops import buffer_steps

        run(
            buffer_steps, stream.loop_form, stream.positive, rows, draws, stream.buffers, stream.seen,
            self._w, np.zeros(self.n_features), np.zeros(stream.buffers.shape[1], dtype=np.int64),
            float(self.C), self.sequential,
        )  # fmt: skip

    def weights(self) -> Array:
        """Return the last iterate."""
        return self._w.copy()


@dataclass
class ConfidenceSteps:
    r"""CBR: soft confidence-weighted steps on pairs with the last rows of the other class.

    The weights are normally distributed, :math:`N(\mu, \Sigma)`. With :math:`z = y (x - x')`, :math:`m = \mu \cdot z`,
    :math:`v = z^\top \Sigma z`, :math:`\psi = 1 + \phi^2/2`, :math:`\xi = 1 + \phi^2`, and if :math:`m < \phi \sqrt v`:

    .. math::

        \alpha = \min\Bigl(C, \frac{-m\psi + \sqrt{m^2\phi^4/4 + v\phi^2\xi}}{v\xi}\Bigr), \quad
        \sqrt u = \frac{-\alpha v \phi + \sqrt{\alpha^2 v^2 \phi^2 + 4v}}{2}, \quad
        \beta = \frac{\alpha\phi}{\sqrt u + v\alpha\phi}, \\
        \mu \leftarrow \mu + \alpha \Sigma z, \qquad \Sigma \leftarrow \Sigma - \beta\, \Sigma z z^\top \Sigma.

    Parameters
    ----------
    n_features : int
        Number of weights.
    C : float
        Upper bound on the step.
    phi : float
        Quantile of the normal distribution for the given confidence.
    full : bool
        Whether :math:`\Sigma` is a full matrix or diagonal.
    """

    n_features: int
    C: float
    phi: float
    full: bool
    _mean: Array = field(init=False)
    _covariance: Array = field(init=False)

    def __post_init__(self) -> None:
        self._mean = np.zeros(self.n_features)
        self._covariance = np.eye(self.n_features) if self.full else np.ones(self.n_features)

    def epoch(self, stream: RowBlock) -> None:
        """Process the new rows once, in random order."""
        for rows in stream.shuffled_blocks(stream.buffers.shape[1]):
            self.steps(stream, rows)

    def steps(self, stream: RowBlock, rows: RowNumbers) -> None:
        """Take the steps for the given rows."""
        from rocmax.streaming._compile import run
        from rocmax.streaming.loops import confidence_steps

        run(
            confidence_steps, stream.loop_form, stream.positive, rows, stream.buffers, stream.seen,
            self._mean, self._covariance, np.zeros(self.n_features, dtype=np.int64), np.zeros(self.n_features),
            np.zeros(self.n_features), float(self.C), float(self.phi),
        )  # fmt: skip

    def weights(self) -> Array:
        """Return the mean of the weights."""
        return self._mean.copy()
