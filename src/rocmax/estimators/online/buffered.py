"""Linear online classifiers that compare each row with a buffer of rows of the other class."""

from __future__ import annotations

from typing import Any

from scipy.special import ndtri

from rocmax._validate import check_choice, check_number
from rocmax.estimators.online.base import StochasticClassifier
from rocmax.streaming.buffers import ConfidenceSteps, ReservoirSteps

# The covariance matrix for this number of features takes 800 MB.
_MOST_FEATURES = 10_000


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
    max_iter : int, default=1
        Maximum number of passes over the rows in ``fit``.
    tol : float, default=None
        Tolerance for stopping: ``fit`` stops after a pass that changes the weights by at most ``tol`` times their norm.
        None means that all ``max_iter`` passes are made.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
        global generator is never used.

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        See :class:`PSAMClassifier`.

    See Also
    --------
    PSAMClassifier : Stochastic method with less expensive steps and a better ranking.

    References
    ----------
    Zhao, Jin, Yang and Hoi, "Online AUC maximization", ICML 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import OAMClassifier
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
    buffer. If :math:`z = y(x - x')` is not ranked correctly with probability `confidence`, the soft confidence-weighted
    update (SCW-I) moves :math:`\mu` along :math:`\Sigma z`, by at most `C`, and reduces :math:`\Sigma` in this
    direction. The model is :math:`\mu`. The formulas are in
    ``rocmax.streaming.buffers.ConfidenceSteps``.

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
    max_iter : int, default=1
        Maximum number of passes over the rows in ``fit``.
    tol : float, default=None
        Tolerance for stopping: ``fit`` stops after a pass that changes the weights by at most ``tol`` times their norm.
        None means that all ``max_iter`` passes are made.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
        global generator is never used.

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        See :class:`PSAMClassifier`.

    References
    ----------
    Khalid, Ray and Chitsaz, "Confidence-weighted bipartite ranking", ADMA 2016.
    Wang, Zhao and Hoi, "Exact soft confidence-weighted learning", ICML 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import CBRClassifier
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
        if self.covariance == "full" and n_features > _MOST_FEATURES:
            raise ValueError(
                f'with covariance="full", the number of features must be at most {_MOST_FEATURES}; got {n_features}. '
                'Use covariance="diagonal".'
            )
        return ConfidenceSteps(n_features, self.C, float(ndtri(self.confidence)), self.covariance == "full")
