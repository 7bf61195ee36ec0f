"""PSAM: steps on random pairs, with scheduled shrinking and averaging."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rocmax._support import Array, RowNumbers
from rocmax._validation import check_number
from rocmax.online.base import RULES, RowBlock, RowSteps, StochasticClassifier, mean_squared_length
from rocmax.online.sampling import pairs_with_new_rows, uniform_pairs


class PairParameters:
    """Common parameters of PSAM and ASAM; must precede ``StochasticClassifier`` in the list of bases."""

    _proximal: bool

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        t0: float | str = "auto",
        rskip: int = 16,
        askip: int = 16,
        average: bool | int = True,
        max_iter: int = 15,
        tol: float | None = None,
        buffer_size: int = 100,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.t0 = t0
        self.rskip = rskip
        self.askip = askip
        self.average = average
        self.max_iter = max_iter
        self.tol = tol
        self.buffer_size = buffer_size
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]  # of StochasticClassifier
        check_number("alpha", self.alpha, above=0.0)
        check_number("rskip", self.rskip, above=0, integer=True)
        check_number("askip", self.askip, above=0, integer=True)
        number = isinstance(self.t0, int | float | np.integer | np.floating) and 0 <= self.t0 < np.inf
        if self.t0 != "auto" and not number:
            raise ValueError(f"t0 must be 'auto' or a number >= 0; got {self.t0!r}")
        if not isinstance(self.average, bool | np.bool_):
            check_number("average", self.average, above=0, integer=True)

    def _make_method(self, n_features: int) -> PairSteps:
        t0 = None if isinstance(self.t0, str) else float(self.t0)
        start: float = self.average
        if isinstance(start, bool | np.bool_):
            start = 0.0 if start else np.inf
        return PairSteps(n_features, self._proximal, self.alpha, t0, self.rskip, self.askip, float(start))

    def _remember(self, stream: RowBlock) -> None:
        stream.remember()


class PSAMClassifier(PairParameters, StochasticClassifier):
    r"""Proximal stochastic AUC maximization.

    Minimizes the mean of :math:`(1 - w \cdot (x_i - x_j))_+` over all pairs of a positive and a negative plus
    :math:`\frac\alpha2 |w|^2`. Step t draws a random pair, :math:`x = x_i - x_j`, and takes the proximal step of its
    hinge loss, which moves to the hyperplane :math:`w \cdot x = 1`, or towards it if the distance exceeds the maximum
    step length:

    .. math::

        w \leftarrow w + \lambda_t \min\Bigl(\frac{(1 - w \cdot x)_+}{\lambda_t |x|^2}, 1\Bigr)\, x, \qquad
        \lambda_t = \frac{1}{\alpha (t + t_0)}.

    Every `rskip` steps :math:`w \leftarrow (1 - \mathrm{rskip}/(t + t_0))\, w`; every `askip` steps the iterate
    is added to an average, which is the model. The number of steps in a pass equals the number of rows. The cost of a
    step, including shrinking and averaging, is proportional to the number of stored values of its two rows. The steps
    are compiled by numba (``pip install 'rocmax[streams]'``); without it, they take about a hundred times as long.

    Parameters
    ----------
    alpha : float, default=1e-4
        Weight of the penalty :math:`\frac\alpha2 |w|^2`. Must be positive. With small values, the
        model is regularized mainly by averaging.
    t0 : "auto" or float, default="auto"
        Offset of the step number, at least 0. "auto" takes the mean of :math:`|x|^2` over the first pairs, divided by
        ``alpha``: the first steps then at most reduce the loss of a pair from 1 to 0. With a small number such as
        ``rskip``, the first steps are long and the penalty is effective from the start.
    rskip : int, default=16
        Number of steps between two shrinkings :math:`w \leftarrow (1 - \mathrm{rskip}/(t + t_0))\, w`. The total
        shrinkage and its cost are nearly independent of it.
    askip : int, default=16
        Number of steps between two iterates that are added to the average.
    average : bool or int, default=True
        Whether the model is the average of the iterates or the last one. An int is the number of steps after which
        averaging begins.
    max_iter : int, default=15
        Maximum number of passes over the rows in ``fit``.
    tol : float, default=None
        Tolerance for stopping: ``fit`` stops after a pass that changes the weights by at most ``tol`` times their norm.
        None means that all ``max_iter`` passes are made.
    buffer_size : int, default=100
        Number of rows of each class that ``partial_fit`` stores, a uniform sample of all rows so far. They are used to
        form pairs with the rows of later blocks, and to choose the threshold.
    pos_label, random_state

    Attributes
    ----------
    coef_
    intercept_ : ndarray of shape (1,)
        Minus the threshold that maximizes TPR - FPR, on at most 10,000 training rows (`fit`), or on the block and the
        stored rows (`partial_fit`).
    classes_
    n_iter_ : int
        Number of passes of `fit` plus number of calls of `partial_fit`.
    n_features_in_, feature_names_in_

    See Also
    --------
    AUCClassifier : Batch solver for the same objective (``loss="hinge"``), with a certified gap.
    KMeansNystroem : Feature map for a kernel; a pipeline of both is the nonlinear variant.

    References
    ----------
    Khalid, Chitsaz and Ray, "Proximal stochastic AUC maximization", 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import PSAMClassifier
    >>> X, y = make_classification(n_samples=2000, weights=[0.9], random_state=0)
    >>> model = PSAMClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.97
    True
    """

    _proximal = True


@dataclass
class PairSteps(RowSteps):
    r"""Steps on one pair :math:`x = x_i - x_j` at a time, of length at most :math:`\lambda_t = 1/(\alpha(t + t_0))`.

    The steps are those of PSAM (``proximal``) or ASAM, see :class:`PSAMClassifier` and
    :class:`~rocmax.papers.ASAMClassifier`. Averaging starts after step ``average_from``; never if it is infinite.
    """

    proximal: bool
    alpha: float
    t0: float | None
    rskip: int
    askip: int
    average_from: float = 0.0
    _u: Array = field(init=False)
    _state: tuple[int, float, float, int] = (0, 1.0, 0.0, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._u = np.zeros(self.n_features)

    def epoch(self, stream: RowBlock) -> None:
        """Take one step per new row if there are rows of both classes."""
        positives, negatives = np.flatnonzero(stream.positive), np.flatnonzero(~stream.positive)
        if not (positives.size and negatives.size):
            return
        if stream.uniform:
            for start in range(0, stream.new.size, RULES.block):
                size = min(RULES.block, stream.new.size - start)
                self.steps(stream, *uniform_pairs(positives, negatives, size, stream.rng))
        else:
            self.steps(stream, *pairs_with_new_rows(stream.new, stream.positive, positives, negatives, stream.rng))

    def steps(self, stream: RowBlock, first: RowNumbers, second: RowNumbers) -> None:  # type: ignore[override]  # pairs
        """Take one step for each of the given pairs of a positive and a negative."""
        from rocmax.online.loops import pair_steps

        if self.t0 is None:
            difference = stream.X[first[: RULES.measured]] - stream.X[second[: RULES.measured]]
            self.t0 = mean_squared_length(difference) / self.alpha
        alpha, t0, start = float(self.alpha), float(self.t0), float(self.average_from)
        rules = (alpha, t0, self.rskip, self.askip, start, self.proximal)
        work = np.zeros(self.n_features)
        self._state = pair_steps(stream.loop_form, first, second, self._w, self._u, work, self._state, rules)

    def weights(self) -> Array:
        """Return the average, or the last iterate if averaging has not started."""
        _, scale, weight, count = self._state
        return (weight * self._w - self._u) / count if count else scale * self._w
