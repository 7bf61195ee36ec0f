"""Asymmetric SVM: a one-class margin for the positives combined with a margin between the classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_number
from rocmax.estimators.base import ScoredClassifier
from rocmax.estimators.kernel.base import KernelMixin
from rocmax.kernels.offset_qp import OffsetNewton


class AsymmetricSVC(KernelMixin, ScoredClassifier):
    r"""Asymmetric support vector machine for low false-positive rates.

    Minimizes, over the functions in the reproducing kernel Hilbert space and the level :math:`\rho` of the core,

    .. math::
        \frac12 |f|^2 - \mu \rho + \tau \sum_i \bigl(\rho - f(x_i^+)\bigr)_+
        + \tau \sum_j \bigl(1 - \rho + f(x_j^-)\bigr)_+

    The first three terms are a one-class SVM of the positives with the core :math:`f \ge \rho`. The last term penalizes
    negatives less than a margin of 1 below the core. A large :math:`\mu` raises the level of the core, so that fewer
    rows are predicted positive.

    The original method combines a one-class (core) margin and a class margin with two parameters :math:`\mu` and
    :math:`\tau`, tuned in Narasimhan and Agarwal (2017) within [0.0005, 0.1] and [0.00005, 0.01]. The formula above is
    the closest form with these two terms; the text of the original paper was not available.

    Parameters
    ----------
    mu : float, default=0.05
        Weight of the level of the core. Must be less than ``tau`` times the number of positives, because the level is
        otherwise unbounded.
    tau : float, default=0.1
        Weight of the margin violations.
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        Kernel, which must be positive semidefinite. Its parameters are those of scikit-learn's ``SVC``.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of "rbf", "poly" and "sigmoid". "scale" is ``1 / (n_features * X.var())``, "auto" is ``1 /
        n_features``.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Independent term of the "poly" and "sigmoid" kernels.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol * (|objective_| + mu)``.
    max_iter : int, default=500
        Maximum number of iterations of the solver.
    max_gram_mb : float, default=1000.0
        Maximum size of the Gram matrix in megabytes; 1000 corresponds to 11,180 rows.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the support vectors.
    support_ : ndarray of shape (n_support,)
        Indices of the support vectors.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
        Support vectors; not available for "precomputed".
    threshold_ : float
        Level of the core.
    objective_, dual_gap_ : float
        The objective at the solution, and its duality gap.
    n_iter_ : int
        Number of Newton steps.
    classes_ : ndarray of shape (2,)
        The classes.

    References
    ----------
    Wu, Lin, Chen and Chen, "Asymmetric support vector machines: low false-positive learning under the user tolerance",
    KDD 2008.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from rocmax import AsymmetricSVC
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> round(AsymmetricSVC(tau=1.0).fit(X, y).score(X, y), 2)
    0.96
    """

    def __init__(
        self,
        mu: float = 0.05,
        tau: float = 0.1,
        *,
        kernel: Any = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        max_gram_mb: float = 1000.0,
        pos_label: Any = None,
    ) -> None:
        self.mu = mu
        self.tau = tau
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.max_gram_mb = max_gram_mb
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("mu", "tau", "tol"):
            check_number(name, getattr(self, name), above=0.0)
        check_number("max_iter", self.max_iter, above=0, integer=True)

    def _learn(self, data: TrainingSet) -> Array:
        weight = np.ones(data.positive.size) if data.weight is None else data.weight
        most = self.tau * float(weight[data.positive].sum())
        if self.mu >= most:
            raise ValueError(
                f"mu must be less than tau times the number of positives, {most:g}, because the level of the core is "
                f"otherwise unbounded; got {self.mu!r}"
            )
        side = np.where(data.positive, 1.0, -1.0)
        margin = np.where(data.positive, 0.0, 1.0)
        solver = OffsetNewton(self.tol, self.max_iter)
        result = solver.solve(self._gram(data), side, margin, self.tau * weight, self.mu)
        if not result.converged:
            reached = f"gap {result.gap:.3g} at objective {result.objective:.6g} after {result.n_iter} steps"
            text = f"AsymmetricSVC: {reached}, tol={self.tol:g}; raise max_iter or tol"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        self._keep_support(data, result.coefficients)
        self._level = -result.offset
        self.objective_, self.dual_gap_, self.n_iter_ = result.objective, result.gap, result.n_iter
        return result.scores

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return self._level
