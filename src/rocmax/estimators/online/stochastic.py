"""Linear classifiers that maximize the AUC by stochastic steps on pairs or single rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocmax._validate import check_number
from rocmax.estimators.online.base import StochasticClassifier
from rocmax.streaming.base import RowBlock
from rocmax.streaming.pairs import PairSteps
from rocmax.streaming.saddle import SaddlePoint


class _PairParameters:
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
        start = (
            {True: 0.0, False: np.inf}[bool(self.average)]
            if isinstance(self.average, bool | np.bool_)
            else self.average
        )
        return PairSteps(n_features, self._proximal, self.alpha, t0, self.rskip, self.askip, float(start))

    def _remember(self, stream: RowBlock) -> None:
        stream.remember()


class PSAMClassifier(_PairParameters, StochasticClassifier):
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
    step, including shrinking and averaging, is proportional to the number of stored values of its two rows.

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
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
        global generator is never used.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold that maximizes TPR - FPR, on at most 10,000 training rows (`fit`), or on the block and the
        stored rows (`partial_fit`).
    classes_ : ndarray of shape (2,)
        The classes.
    n_iter_ : int
        Number of passes of `fit` plus number of calls of `partial_fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if `X` had any.

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


class ASAMClassifier(_PairParameters, StochasticClassifier):
    r"""Accelerated stochastic AUC maximization: gradient steps of a smooth hinge loss on pairs.

    The method is that of :class:`PSAMClassifier`, but with gradient steps of a hinge loss that is quadratic between 0
    and 1:

    .. math::

        w \leftarrow w + \frac{1}{\alpha (t + t_0)} \min\bigl((1 - w \cdot x)_+, 1\bigr)\, x, \qquad x = x_i - x_j.

    Unlike a proximal step, a gradient step can be too long, so `t0` is more important.

    Parameters
    ----------
    alpha : float, default=1e-4
        Weight of the penalty :math:`\frac\alpha2 |w|^2`. Must be positive. With small values, the
        model is regularized mainly by averaging.
    t0 : "auto" or float, default="auto"
        Offset of the step number, at least 0. "auto" takes the mean of :math:`|x|^2` over the first pairs, divided by
        ``alpha``: the longest stable first step.
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
    Khalid, Ray and Chitsaz, "Scalable nonlinear AUC maximization methods", ECML PKDD 2018, with the loss of Khalid,
    Chitsaz and Ray, "Proximal stochastic AUC maximization", 2019, section III.A.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import ASAMClassifier
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
    average : bool, default=True
        Whether the model is the average of the iterates, weighted by their steps, or the last one.
    max_iter : int, default=15
        Maximum number of passes over the rows in ``fit``.
    tol : float, default=None
        Tolerance for stopping: ``fit`` stops after a pass that changes the weights by at most ``tol`` times their norm.
        None means that all ``max_iter`` passes are made.
    buffer_size : int, default=100
        Number of rows of each class that ``partial_fit`` stores, a uniform sample of all rows so far, to choose the
        threshold.
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
    Ying, Wen and Lyu, "Stochastic online AUC maximization", NeurIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import SOLAMClassifier
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
        average: bool = True,
        max_iter: int = 15,
        tol: float | None = None,
        buffer_size: int = 100,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.learning_rate = learning_rate
        self.average = average
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
        if not isinstance(self.average, bool | np.bool_):
            raise ValueError(f"average must be True or False; got {self.average!r}")

    def _make_method(self, n_features: int) -> SaddlePoint:
        zeta = None if isinstance(self.learning_rate, str) else float(self.learning_rate)
        return SaddlePoint(n_features, self.radius, zeta, bool(self.average))

    def _remember(self, stream: RowBlock) -> None:
        stream.remember()
