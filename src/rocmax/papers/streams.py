"""Published online methods: ASAM, SOLAM, and OAM and CBR, which compare each row with a buffer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from rocmax._support import Array, RowNumbers
from rocmax._validation import check_choice, check_number
from rocmax.online.base import RULES, RowBlock, RowSteps, StochasticClassifier, mean_squared_length
from rocmax.online.psam import PairParameters


class ASAMClassifier(PairParameters, StochasticClassifier):
    r"""Accelerated stochastic AUC maximization: gradient steps of a smooth hinge loss on pairs.

    The method is that of :class:`~rocmax.PSAMClassifier`, but with gradient steps of a hinge loss that is quadratic
    between 0 and 1:

    .. math::

        w \leftarrow w + \frac{1}{\alpha (t + t_0)} \min\bigl((1 - w \cdot x)_+, 1\bigr)\, x, \qquad x = x_i - x_j.

    Unlike a proximal step, a gradient step can be too long, so `t0` is more important.

    Parameters
    ----------
    alpha
        As in :class:`~rocmax.PSAMClassifier`.
    t0 : "auto" or float, default="auto"
        Offset of the step number, at least 0. "auto" takes the mean of :math:`|x|^2` over the first pairs, divided by
        ``alpha``: the longest stable first step.
    rskip, askip, average, max_iter, tol, buffer_size
        As in :class:`~rocmax.PSAMClassifier`.
    pos_label, random_state

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        See :class:`~rocmax.PSAMClassifier`.

    References
    ----------
    Khalid, Ray and Chitsaz, "Scalable nonlinear AUC maximization methods", ECML PKDD 2018, with the loss of Khalid,
    Chitsaz and Ray, "Proximal stochastic AUC maximization", 2019, section III.A.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import ASAMClassifier
    >>> X, y = make_classification(n_samples=2000, weights=[0.9], random_state=0)
    >>> model = ASAMClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.97
    True
    """

    _proximal = False


class SOLAMClassifier(StochasticClassifier):
    r"""Stochastic online AUC maximization: a saddle-point formulation of the squared loss on pairs.

    The mean of :math:`(1 - w \cdot (x_i - x_j))^2` over pairs is, up to a constant and a factor, the minimum over
    :math:`(w, a, b)` of the maximum over :math:`\alpha` of the mean over single rows of

    .. math::

        F = (1-p)(w \cdot x - a)^2 [y=1] + p (w \cdot x - b)^2 [y=-1]
            + 2(1+\alpha)\bigl(p\, w \cdot x [y=-1] - (1-p)\, w \cdot x [y=1]\bigr) - p(1-p)\alpha^2

    where p is the fraction of positives, estimated from the rows so far. Step t is a descent step in :math:`(w, a, b)`
    and an ascent step in :math:`\alpha`, :math:`\zeta/\sqrt t` times the gradient for one row, followed by the
    projection: :math:`|w| \le R`, :math:`|a|, |b| \le R\kappa`, :math:`|\alpha| \le 2R\kappa` for the length
    :math:`\kappa` of the longest row so far. The model is the mean of the iterates, weighted by their steps. No rows
    have to be stored for training.

    Parameters
    ----------
    radius : float, default=1.0
        Upper bound R on the L2 norm of the weights.
    learning_rate : "auto" or float, default="auto"
        Length of the first step, :math:`\zeta`. "auto" takes 1 divided by the mean of :math:`|x|^2` over the first
        rows.
    max_iter, tol
        As in :class:`~rocmax.PSAMClassifier`.
    buffer_size : int, default=100
        Number of rows of each class that ``partial_fit`` stores, a uniform sample of all rows so far, to choose the
        threshold.
    pos_label, random_state

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        See :class:`~rocmax.PSAMClassifier`.

    References
    ----------
    Ying, Wen and Lyu, "Stochastic online AUC maximization", NeurIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import SOLAMClassifier
    >>> X, y = make_classification(n_samples=2000, weights=[0.9], random_state=0)
    >>> model = SOLAMClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.97
    True
    """

    def __init__(
        self,
        radius: float = 1.0,
        *,
        learning_rate: float | str = "auto",
        max_iter: int = 15,
        tol: float | None = None,
        buffer_size: int = 100,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.buffer_size = buffer_size
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("radius", self.radius, above=0.0)
        if self.learning_rate != "auto":
            check_number("learning_rate", self.learning_rate, above=0.0)

    def _make_method(self, n_features: int) -> SaddlePoint:
        zeta = None if isinstance(self.learning_rate, str) else float(self.learning_rate)
        return SaddlePoint(n_features, self.radius, zeta)

    def _remember(self, stream: RowBlock) -> None:
        stream.remember()


@dataclass
class ReservoirSteps(RowSteps):
    """OAM: hinge steps on pairs with uniform samples of the other class; see :class:`OAMClassifier`.

    ``sequential`` takes a passive-aggressive step for each pair in turn instead of one gradient step.
    """

    C: float
    sequential: bool

    def steps(self, stream: RowBlock, rows: RowNumbers, draws: Array | None = None) -> None:
        """Take the steps for the given rows; the draws from [0, 1) determine their positions in the buffers."""
        from rocmax.online.loops import buffer_steps

        draws = stream.rng.random(rows.size) if draws is None else draws
        buffer_steps(
            stream.loop_form, stream.positive, rows, draws, stream.buffers, stream.seen,
            self._w, np.zeros(self.n_features), np.zeros(stream.buffers.shape[1], dtype=np.int64),
            float(self.C), self.sequential,
        )  # fmt: skip


@dataclass
class ConfidenceSteps(RowSteps):
    """CBR: soft confidence-weighted steps on pairs with the last rows of the other class; see :class:`CBRClassifier`.

    The weights are the mean. ``phi`` is the quantile of the normal distribution for the confidence; ``full`` says
    whether the covariance is a full matrix or diagonal.
    """

    C: float
    phi: float
    full: bool
    _covariance: Array = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._covariance = np.eye(self.n_features) if self.full else np.ones(self.n_features)

    def steps(self, stream: RowBlock, rows: RowNumbers) -> None:
        """Take the steps for the given rows."""
        from rocmax.online.loops import confidence_steps

        confidence_steps(
            stream.loop_form, stream.positive, rows, stream.buffers, stream.seen,
            self._w, self._covariance, np.zeros(self.n_features, dtype=np.int64), np.zeros(self.n_features),
            np.zeros(self.n_features), float(self.C), float(self.phi),
        )  # fmt: skip


@dataclass
class SaddlePoint(RowSteps):
    r"""Projected descent in :math:`(w, a, b)` and ascent in :math:`\alpha`; see :class:`SOLAMClassifier`.

    The steps are :math:`\zeta/\sqrt t`; without ``zeta``, it is 1 divided by the mean of :math:`|x|^2` over the first
    rows. The iterate is ``scale * _w``.
    """

    radius: float
    zeta: float | None
    _u: Array = field(init=False)
    # Step number, scale, weight and total of the average, a, b, alpha, p, longest row.
    _state: tuple[float, ...] = (0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._u = np.zeros(self.n_features)

    def comparisons(self, stream: RowBlock) -> int:
        """Return the number of rows that a row is compared with: itself."""
        return 1

    def steps(self, stream: RowBlock, rows: RowNumbers) -> None:
        """Take one step for each of the given rows."""
        from rocmax.online.loops import saddle_steps

        if self.zeta is None:
            self.zeta = 1.0 / (mean_squared_length(stream.X[rows[: RULES.measured]]) or 1.0)
        self._state = saddle_steps(
            stream.loop_form, stream.positive, rows, self._w, self._u, self._state, float(self.zeta), float(self.radius)
        )

    def weights(self) -> Array:
        """Return the mean of the iterates, weighted by their steps."""
        weight, total = self._state[2:4]
        return (weight * self._w - self._u) / total if total else self._w


class OAMClassifier(StochasticClassifier):
    r"""Online AUC maximization with reservoirs: hinge steps against samples of the other class.

    Each row is paired with the rows :math:`x'` of the other class in a reservoir, :math:`z = y(x - x')`, with
    :math:`C_t = C \max(1, n'/\mathrm{buffer\_size})` for :math:`n'` rows of that class so far:

    - ``update="sequential"``: for each :math:`z` in turn,
      :math:`w \leftarrow w + \min(C_t/2, (1 - w \cdot z)_+/|z|^2)\, z`;
    - ``update="gradient"``: :math:`w \leftarrow w + \frac{C_t}{2} \sum_{z: w \cdot z < 1} z`.

    The factor 1/2 accounts for the fact that each pair occurs twice, once for each of its rows.

    Parameters
    ----------
    update : {"sequential", "gradient"}, default="sequential"
        Update rule; see above.
    C : float, default=1e-6
        Weight of the loss of a pair in a step. Must be positive.
    buffer_size : int, default=100
        Number of rows of each class in the buffers.
    max_iter, tol
        As in :class:`~rocmax.PSAMClassifier`.
    pos_label, random_state

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        See :class:`~rocmax.PSAMClassifier`.

    See Also
    --------
    rocmax.PSAMClassifier : Stochastic method with less expensive steps and a better ranking.

    References
    ----------
    Zhao, Jin, Yang and Hoi, "Online AUC maximization", ICML 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import OAMClassifier
    >>> X, y = make_classification(n_samples=2000, weights=[0.9], random_state=0)
    >>> model = OAMClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        update: str = "sequential",
        *,
        C: float = 1e-6,
        buffer_size: int = 100,
        max_iter: int = 1,
        tol: float | None = None,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.update = update
        self.C = C
        self.buffer_size = buffer_size
        self.max_iter = max_iter
        self.tol = tol
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("update", self.update, ("sequential", "gradient"))
        check_number("C", self.C, above=0.0)

    def _make_method(self, n_features: int) -> ReservoirSteps:
        return ReservoirSteps(n_features, self.C, self.update == "sequential")


class CBRClassifier(StochasticClassifier):
    r"""Confidence-weighted bipartite ranking: second-order steps against the last rows of the other class.

    The weights are normally distributed, :math:`w \sim N(\mu, \Sigma)`, with initial values :math:`\mu = 0` and
    :math:`\Sigma = I`. Each row is paired in turn with the rows :math:`x'` of the other class in a first-in-first-out
    buffer. Let :math:`z = y (x - x')`, :math:`m = \mu \cdot z`, :math:`v = z^\top \Sigma z`, and :math:`\phi` the
    quantile of the normal distribution for the probability `confidence`. If the pair is not ranked correctly with this
    probability, that is, if :math:`m < \phi \sqrt v`, the soft confidence-weighted update (SCW-I) is made:

    .. math::

        \alpha = \min\Bigl(C, \frac{-m\psi + \sqrt{m^2\phi^4/4 + v\phi^2\xi}}{v\xi}\Bigr), \quad
        \sqrt u = \frac{-\alpha v \phi + \sqrt{\alpha^2 v^2 \phi^2 + 4v}}{2}, \quad
        \beta = \frac{\alpha\phi}{\sqrt u + v\alpha\phi}, \\
        \mu \leftarrow \mu + \alpha \Sigma z, \qquad \Sigma \leftarrow \Sigma - \beta\, \Sigma z z^\top \Sigma,

    with :math:`\psi = 1 + \phi^2/2` and :math:`\xi = 1 + \phi^2`. The model is :math:`\mu`.

    Parameters
    ----------
    covariance : {"full", "diagonal"}, default="full"
        Form of :math:`\Sigma`. The cost of a pair is quadratic in the number of features if "full", and linear in the
        number of stored values of its rows if "diagonal".
    C : float, default=1e-4
        Upper bound on the step. Must be positive.
    confidence : float, default=0.7
        Probability with which a pair should be ranked correctly, above 0.5 and below 1.
    buffer_size : int, default=50
        Number of rows of each class in the buffers.
    max_iter, tol
        As in :class:`~rocmax.PSAMClassifier`.
    pos_label, random_state

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        See :class:`~rocmax.PSAMClassifier`.

    References
    ----------
    Khalid, Ray and Chitsaz, "Confidence-weighted bipartite ranking", ADMA 2016.
    Wang, Zhao and Hoi, "Exact soft confidence-weighted learning", ICML 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import CBRClassifier
    >>> X, y = make_classification(n_samples=2000, weights=[0.9], random_state=0)
    >>> model = CBRClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.97
    True
    """

    def __init__(
        self,
        covariance: str = "full",
        *,
        C: float = 1e-4,
        confidence: float = 0.7,
        buffer_size: int = 50,
        max_iter: int = 1,
        tol: float | None = None,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.covariance = covariance
        self.C = C
        self.confidence = confidence
        self.buffer_size = buffer_size
        self.max_iter = max_iter
        self.tol = tol
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("covariance", self.covariance, ("full", "diagonal"))
        check_number("C", self.C, above=0.0)
        check_number("confidence", self.confidence, above=0.5)
        if not self.confidence < 1.0:
            raise ValueError(f"confidence must be a probability between 0.5 and 1; got {self.confidence!r}")

    def _make_method(self, n_features: int) -> ConfidenceSteps:
        if self.covariance == "full" and n_features > 10_000:  # 800 MB
            raise ValueError(
                f'with covariance="full", the number of features must be at most 10000; got {n_features}. '
                'Use covariance="diagonal".'
            )
        return ConfidenceSteps(n_features, self.C, float(ndtri(self.confidence)), self.covariance == "full")
