"""Published kernel machines: the 2-norm SVM and the asymmetric SVM."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from rocmax._support import Array
from rocmax._validation import TrainingSet, check_number
from rocmax.base import ScoredClassifier
from rocmax.kernel.maps import KernelMixin
from rocmax.kernel.qp import solve_system
from rocmax.solvers.base import find_zero


class OffsetResult(NamedTuple):
    """Coefficients, offset, scores ``K @ coefficients``, objective, gap, number of steps, and convergence."""

    coefficients: Array
    offset: float
    scores: Array
    objective: float
    gap: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class OffsetNewton:
    r"""Minimize :math:`\frac12|f|^2 + \mu b + \sum_i c_i (t_i)_+` with :math:`t_i = e_i - y_i (f(x_i) + b)`.

    Each row has a side :math:`y_i = \pm 1`, a margin :math:`e_i` and a cost :math:`c_i`. The multipliers
    :math:`c_i\,\mathrm{clip}(t_i/h, 0, 1)`, smoothed with a width ``h``, turn the optimality conditions into a smooth
    equation in one coefficient per row and the offset. It is solved by Newton's method for a decreasing sequence of
    widths. At a solution, the multipliers are feasible for the dual, and the gap is the sum of the violations of
    complementarity over the rows. It must be at most ``tol`` times ``|objective| + mu``, and at most ``tol`` times the
    possible decrease from zero coefficients with the best offset.
    """

    tol: float = 1e-3
    max_iter: int = 500

    def solve(self, gram: Array, side: Array, margin: Array, cost: Array, mu: float) -> OffsetResult:
        """Minimize from zero coefficients."""
        run = _OffsetNewton(gram, side, margin, cost, mu)
        gap, n_iter, converged = np.inf, 0, False
        while n_iter < self.max_iter:
            n_iter += 1
            if run.solved():
                gap = run.softening()
                converged = gap <= self.tol * run.unit(gap)
                if converged:
                    break
                run.soften_less()
            run.step()
        return OffsetResult(run.beta, run.offset, run.scores, run.objective(), gap, n_iter, converged)


class _OffsetNewton:
    """Current point and its multipliers."""

    def __init__(self, gram: Array, side: Array, margin: Array, cost: Array, mu: float) -> None:
        self.gram, self.side, self.margin, self.cost, self.mu = gram, side, margin, cost, mu
        self.beta, self.scores = np.zeros(side.size), np.zeros(side.size)
        # Midpoint of the margins of the two sides, so that no multiplier starts at a bound.
        self.offset = -0.5 * float(np.ptp(margin))
        self.width, self.base = 4.0, np.zeros(side.size)
        # For zero scores, the objective is piecewise linear in the offset, with kinks at the margins of the rows.
        self.at_zero = min(self._value(0.0, self.scores, float(offset)) for offset in np.unique(side * margin))

    def soften_less(self) -> None:
        """Reduce the width; a narrow one, which rounding errors limit, is centered at the current multipliers."""
        if self.width > 1e-3:
            self.width *= 0.2
        else:
            self.base = np.clip(self.level(self.scores, self.offset), 0.0, 1.0)

    def level(self, scores: Array, offset: float) -> Array:
        """Return the multipliers before clipping to [0, 1]."""
        return self.base + self.short(scores, offset) / self.width

    def short(self, scores: Array, offset: float) -> Array:
        return self.margin - self.side * (scores + offset)

    def target(self, scores: Array, offset: float) -> Array:
        """Return the coefficients defined by the multipliers at the given point."""
        return self.side * self.cost * np.clip(self.level(scores, offset), 0.0, 1.0)

    def objective(self) -> float:
        return self._value(float(self.beta @ self.scores), self.scores, self.offset)

    def _value(self, squared_norm: float, scores: Array, offset: float) -> float:
        hinge = float(self.cost @ np.maximum(self.short(scores, offset), 0.0))
        return 0.5 * squared_norm + self.mu * offset + hinge

    def unit(self, gap: float) -> float:
        """Return the value to which the tolerance is relative.

        It is not less than the accuracy of the smoothed problems.
        """
        size = abs(self.objective()) + self.mu
        return min(size, max(self.at_zero - self.objective() + gap, 1e-6 * size))

    def softening(self) -> float:
        """Return the sum over the rows of the hinge minus multiplier times margin violation."""
        t = self.short(self.scores, self.offset)
        share = np.clip(self.level(self.scores, self.offset), 0.0, 1.0)
        return float(self.cost @ (np.maximum(t, 0.0) - share * t))

    def solved(self) -> bool:
        target = self.target(self.scores, self.offset)
        rest = np.abs(target - self.beta).max()
        return bool(max(rest, abs(target.sum() - self.mu)) <= 1e-9 * self.cost.sum())

    def step(self) -> None:
        """Take a Newton step in the coefficients and the offset, with a line search on the smoothed objective."""
        target = self.target(self.scores, self.offset)
        rest, excess = target - self.beta, float(target.sum() - self.mu)
        level = self.level(self.scores, self.offset)
        rows = np.flatnonzero((level > 0) & (level < 1))
        slope = self.cost[rows] / self.width
        outside = rest.copy()
        outside[rows] = 0.0
        reached = slope * (self.gram[rows] @ outside)
        system = np.zeros((rows.size + 1, rows.size + 1))
        system[:-1, :-1] = slope[:, None] * self.gram[np.ix_(rows, rows)]
        system[-1, :-1] = system[:-1, :-1].sum(axis=0)
        system[:-1, -1] = slope
        # The ridge makes the system regular if all multipliers are at their bounds.
        system[-1, -1] = slope.sum() + 1e-6 * self.cost.sum() / self.width
        system[np.arange(rows.size), np.arange(rows.size)] += 1.0
        found = solve_system(system, np.append(rest[rows] - reached, excess - reached.sum()), self.gram)
        step = outside
        step[rows] = found[:-1]
        self._move(step, self.gram @ step, float(found[-1]))

    def _move(self, step: Array, along: Array, shift: float) -> None:
        linear, quadratic = float(self.beta @ along) + self.mu * shift, float(step @ along)

        def slope_at(t: float) -> float:
            target = self.target(self.scores + t * along, self.offset + t * shift)
            return linear + t * quadratic - float(target @ (along + shift))

        t = find_zero(slope_at, slope_at(0.0), rtol=0.01, largest=np.inf, max_evals=30)
        self.beta, self.scores, self.offset = self.beta + t * step, self.scores + t * along, self.offset + t * shift


class TwoNormSVC(KernelMixin, ScoredClassifier):
    r"""Support vector machine with squared slack variables (2-norm SVM), based on libsvm.

    Minimizes :math:`\frac12 |f|^2 + \frac{C}{2} \sum_i \xi_i^2` with :math:`y_i (f(x_i) + b) \ge 1 - \xi_i`. This
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
