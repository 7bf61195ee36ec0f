"""Published kernel machines: the 2-norm SVM and the asymmetric SVM."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from rocmax._support import Array, Bools, Index
from rocmax._validation import TrainingSet, check_number
from rocmax.base import ScoredClassifier
from rocmax.kernel.maps import KernelMixin
from rocmax.kernel.qp import GramNewton, Slope, Soft


class OffsetRows:
    r"""Rows with a hinge each and one offset, :math:`\min_b \mu b + \sum_i c_i (e_i - y_i (f(x_i) + b))_+`.

    The margin :math:`e_i` is 0 for a positive and 1 for a negative. The class has the methods of the sums over pairs
    that :class:`GramNewton` minimizes; ``base`` are the multipliers at which the smoothing is centered.
    """

    margin, resolution = 1.0, 1e-6

    def __init__(self, positive: Bools, cost: Array, mu: float, base: Array | float = 0.0) -> None:
        self.n_samples, self.lift = positive.size, mu
        self.positive, self.cost, self.base = positive, cost, base
        self.side, self.goal = np.where(positive, 1.0, -1.0), positive.astype(np.float64)

    def offset(self, scores: Array, width: float) -> float:
        """Return the offset at which the coefficients, smoothed with ``width``, add up to ``mu``."""
        # A coefficient is a piecewise linear function of the offset, which falls by the cost between these places.
        center = self.goal - 1.0 - scores + width * self.side * (self.base - 0.5)
        places = np.concatenate([center - 0.5 * width, center + 0.5 * width])
        order = np.argsort(places, kind="stable")
        places, slope = places[order], np.concatenate([self.cost, -self.cost])[order]
        if width <= 0:
            total = self.cost[self.positive].sum() - np.cumsum(np.where(slope > 0, slope, 0.0))
            return float(places[min(int(np.argmax(total <= self.lift)), places.size - 1)])
        total = np.append(0.0, np.cumsum(np.cumsum(slope)[:-1] * np.diff(places))) / width
        return float(np.interp(total[-1] - (self.lift + self.cost[~self.positive].sum()), total, places))

    def soft(self, scores: Array, width: float) -> Soft:
        """Return the sums of the multipliers at the scores, smoothed with ``width`` (0: no smoothing)."""
        offset = self.offset(scores, width)
        short = self.side * (self.goal - 1.0 - scores - offset)
        hinge = self.lift * offset + float(self.cost @ np.maximum(short, 0.0))
        share = self.cost * (np.clip(self.base + short / width, 0.0, 1.0) if width > 0 else short > 0)
        return Soft(hinge, float(share[~self.positive].sum()), self.side * share)

    def slope(self, scores: Array, width: float, rows: Index) -> Slope:
        """Return ``v -> -D v`` with ``D`` the derivative of ``soft(scores, width).rows`` on ``rows``."""
        d = np.where(self._free(scores, width), self.cost / width, 0.0)[rows]
        return lambda v: d * (v - ((v @ d) / d.sum())[..., np.newaxis])

    def moving(self, scores: Array, width: float) -> Index:
        """Return the examples with a free multiplier."""
        return np.flatnonzero(self._free(scores, width))

    def anchored(self, scores: Array, width: float) -> OffsetRows:
        """Return the rows with smoothing centered at the current multipliers."""
        base = self.side * self.soft(scores, width).rows / self.cost
        return OffsetRows(self.positive, self.cost, self.lift, base)

    def _free(self, scores: Array, width: float) -> Bools:
        level = self.base + self.side * (self.goal - 1.0 - scores - self.offset(scores, width)) / width
        return (level > 0) & (level < 1)


class TwoNormSVC(KernelMixin, ScoredClassifier):
    r"""Support vector machine with squared slack variables (2-norm SVM), based on libsvm.

    Minimizes :math:`\frac{1}{2} |f|^2 + \frac{C}{2} \sum_i \xi_i^2` with :math:`y_i (f(x_i) + b) \ge 1 - \xi_i`. This
    is equivalent to the hard-margin SVM with the kernel :math:`k'(x_i, x_j) = k(x_i, x_j) + \delta_{ij} / C`. Every
    training set is separable in the space of this kernel, so the training AUC with :math:`k'` is 1. New rows are scored
    with ``k``.

    In Rakotomamonjy (2004), the slack variables have the weight ``C`` in Eq. 14 and the kernel the term ``1 / C`` in
    Eq. 15; these differ by a factor of 2 in ``C``. Here ``C`` is that of the kernel.

    Parameters
    ----------
    kernel
    C : float, default=1.0
        Regularization parameter, the weight of the squared slacks. Must be positive. ``1 / C`` is added to the diagonal
        of the Gram matrix.
    gamma, degree, coef0
    tol : float, default=1e-3
        Tolerance for stopping: libsvm's bound on the violation of the optimality conditions.
    max_gram_mb, pos_label

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the support vectors.
    support_, support_vectors_
    threshold_ : float
        Minus the constant ``b`` of the SVM.
    augmented_scores_ : ndarray
        Scores of the training rows with non-zero weight, computed with ``k'``.
    objective_, classes_
    n_iter_ : int
        Number of iterations of libsvm.

    See Also
    --------
    rocmax.ROCSVC : Kernel machine that maximizes the AUC.

    References
    ----------
    Rakotomamonjy, "Optimizing area under ROC curve with SVMs", ROCAI 2004, section 3.6.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from rocmax.papers import TwoNormSVC
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> round(TwoNormSVC(C=1.0).fit(X, y).score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: float = 1.0,
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_gram_mb: float = 1000.0,
        pos_label: Any = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_gram_mb = max_gram_mb
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, above=0.0)
        check_number("tol", self.tol, above=0.0)

    def _learn(self, data: TrainingSet) -> Array:
        gram = self._gram(data)
        weight = np.ones(data.positive.size) if data.weight is None else data.weight
        lift = 1.0 / (self.C * weight)
        gram[np.diag_indices(weight.size)] += lift
        # The bound on the multipliers is never active: with the augmented kernel, the margin is hard. libsvm may cycle
        # on nearly identical rows; scikit-learn warns if max_iter is reached.
        machine = SVC(kernel="precomputed", C=1e12, tol=self.tol, max_iter=1_000_000, random_state=0)
        machine.fit(gram, data.positive)
        coefficients = np.zeros(weight.size)
        coefficients[machine.support_] = machine.dual_coef_[0]
        self.augmented_scores_ = gram @ coefficients
        scores = self.augmented_scores_ - lift * coefficients
        self._keep_support(data, coefficients)
        self._bias = float(machine.intercept_[0])
        slack = np.maximum(1.0 - np.where(data.positive, 1.0, -1.0) * (scores + self._bias), 0.0)
        self.objective_ = 0.5 * float(coefficients @ scores) + 0.5 * self.C * float(weight @ slack**2)
        self.n_iter_ = int(np.sum(machine.n_iter_))
        return scores

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return -self._bias


class AsymmetricSVC(KernelMixin, ScoredClassifier):
    r"""Asymmetric support vector machine for low false-positive rates.

    Minimizes, over the functions in the reproducing kernel Hilbert space and the level :math:`\rho` of the core,

    .. math::
        \frac{1}{2} |f|^2 - \mu \rho + \tau \sum_i \bigl(\rho - f(x_i^+)\bigr)_+
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
    kernel, gamma, degree, coef0
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol * (|objective_| + mu)``.
    max_iter, max_gram_mb, pos_label

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the support vectors.
    support_, support_vectors_
    threshold_ : float
        Level of the core.
    objective_, dual_gap_ : float
        The objective at the solution, and its duality gap.
    n_iter_ : int
        Number of Newton steps.
    classes_

    References
    ----------
    Wu, Lin, Chen and Chen, "Asymmetric support vector machines: low false-positive learning under the user tolerance",
    KDD 2008.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from rocmax.papers import AsymmetricSVC
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
        rows = OffsetRows(data.positive, self.tau * weight, self.mu)
        result, scores = GramNewton(self.tol, self.max_iter).solve(self._gram(data), rows, 1.0)
        if not result.converged:
            warnings.warn(f"AsymmetricSVC: {result.message}", ConvergenceWarning, stacklevel=3)
        self._keep_support(data, result.w)
        # Rows at the level of the core are in it, whatever the rounding errors of their scores.
        self._level = -rows.offset(scores, 0.0) - 1e-12 * float(np.abs(scores).max())
        self.objective_, self.dual_gap_, self.n_iter_ = result.objective, result.gap, result.n_iter
        return scores

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return self._level
