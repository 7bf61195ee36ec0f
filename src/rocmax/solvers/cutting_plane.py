"""Cutting planes: the QP over cuts, the bundle, and the one-slack method as published for SVM-pAUC.

After one more cut, only a few active-set exchanges are needed. General QP solvers take several milliseconds and have no
warm start; on small data they would dominate the fit time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgesv

from rocmax._support import Array, Parameters
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import SquaredL2
from rocmax.solvers.base import (
    Callback,
    Cuts,
    Progress,
    Result,
    gap_rounding,
    invalid_bound,
    require,
    spread,
    valid_gap,
)

# Small quadratic program over the simplex, for the lower bound from cuts, with a warm start.


# Number of times that a singular system is solved with a larger ridge; the last ridge dominates the system.
_MAX_RIDGES = 12


def minimize_on_simplex(Q: Array, p: Array, start: Array, max_steps: int = 1000) -> Array:
    """Minimize ``1/2 a'Qa - p'a`` over ``a >= 0, sum(a) = 1`` by an active-set method.

    ``Q`` must be positive semidefinite and ``start`` feasible. Every iterate is feasible, so the result gives a valid
    bound even after early stopping.
    """
    a = start.copy()
    scale = float(np.abs(Q).max(initial=0.0) + np.abs(p).max(initial=0.0)) or 1.0
    ridge = 1e-16 * scale
    support = a.nonzero()[0]
    for _ in range(max_steps):
        now, target = a[support], _on_support(Q, p, support, ridge)
        if target[-1] < 0 and now[-1] == 0:
            # The weight of the cut that entered last must grow. If the cuts are dependent, the system is singular, and
            # its solution far away along a line on which the curvature is zero; rounding decides on its sign.
            target = 2.0 * now - target
        if target.min() > 0:
            a.fill(0.0)
            a[support] = target
            slope = Q @ a - p
            entering = int(slope.argmin())
            if a[entering] > 0 or slope[entering] >= slope[support].min() - 1e-15 * scale:
                break
            support = np.append(support, entering)
        else:
            # Move towards the target until the first weight reaches zero, and remove it from the support.
            falling = target <= 0
            fall = now[falling] - target[falling]
            step = float(np.min(now[falling][fall > 0] / fall[fall > 0], initial=1.0))
            now = now + step * (target - now)
            gone = falling & (now <= 1e-15)
            # The system cannot be solved accurately because its entries differ too much in size; keep the last weights.
            if gone.all() or not np.isfinite(now).all():
                break
            a[support] = np.where(gone, 0.0, now)
            support = support[~gone]
    a = np.maximum(a, 0.0)
    result: Array = a / a.sum()
    return result


def _on_support(Q: Array, p: Array, support: NDArray[np.intp], ridge: float) -> Array:
    """Minimize over the affine hull of the support."""
    k = support.size
    system, right = np.ones((k + 1, k + 1)), np.ones(k + 1)
    system[:k, :k] = Q.take(support, 0).take(support, 1)
    system[k, k] = 0.0
    right[:k] = p[support]
    diagonal = system.reshape(-1)[: k * (k + 2) : k + 2]
    for _ in range(_MAX_RIDGES):
        diagonal += ridge
        solution, singular = dgesv(system, right)[2:]
        if not singular:
            weights: Array = solution[:k]
            return weights
        ridge *= 1e3  # cuts that are equal up to rounding error
    # Any feasible weights give a valid bound.
    return np.full(k, 1.0 / k)


# Cuts of a convex loss, and the lower bound of the optimum that they give.


# Number of cuts for which there is room at first.
_FEWEST_ROWS = 16


class Bundle:
    r"""Cuts :math:`R(w) \ge b_k + g_k \cdot w` and the optimum of the problem with ``R`` replaced by their maximum.

    That optimum is a lower bound of :math:`\min_w \frac12|w|^2 + C R(w)`. Its dual is

    .. math:: \max_{\alpha \ge 0, \sum \alpha = 1} \; C \sum_k \alpha_k b_k - \tfrac12 C^2 |\sum_k \alpha_k g_k|^2,

    with the minimizer :math:`w = -C \sum_k \alpha_k g_k`. Every feasible ``alpha`` gives a valid bound.
    At ``max_cuts``, cuts with zero weight are dropped; if there are few of them, light cuts are merged into one.
    """

    def __init__(self, C: float, max_cuts: int) -> None:
        self._C = C
        self._max_cuts = max_cuts
        # One row per cut; these arrays have more rows than cuts, so that most cuts are added without a copy.
        self._gradients = np.empty((0, 0))
        self._products = np.empty((0, 0))
        self._offset = np.empty(0)
        self._alpha = np.empty(0)
        self._minimizer = np.empty(0)
        self._tables: list[Array | None] = []
        self.bound: float = -np.inf

    @property
    def _g(self) -> Array:
        return self._gradients[: self._offset.size]

    @property
    def _gram(self) -> Array:
        return self._products[: self._offset.size, : self._offset.size]

    def start(self, cuts: Cuts) -> None:
        """Fill an empty bundle with valid cuts; if there are too many, with the last ones."""
        if not cuts.offset.size:
            return
        self._gradients = cuts.gradient[-self._max_cuts :].copy()
        self._offset = cuts.offset[-self._max_cuts :]
        self._tables = cuts.tables[-self._max_cuts :]
        self._products = self._g @ self._g.T
        # Start from the best single cut.
        alone = self._offset - 0.5 * self._C * np.diagonal(self._gram)
        self._improve((np.arange(alone.size) == alone.argmax()).astype(np.float64))

    def cuts(self) -> Cuts:
        """Return the active cuts and the most recent ones, in the order in which they were added."""
        keep = self._useful()
        return Cuts(self._g[keep], self._offset[keep], [self._tables[i] for i in keep])

    def add(self, g: Array, offset: float, tables: Array | None = None) -> None:
        """Add the cut ``offset + g @ w`` and improve the bound."""
        if self._offset.size >= self._max_cuts:
            self._make_room()
        k = self._offset.size
        if k == len(self._gradients):
            self._reserve(min(max(2 * k, _FEWEST_ROWS), max(k + 1, self._max_cuts)), g.size)
        self._gradients[k] = g
        self._offset = np.append(self._offset, offset)
        self._products[k, : k + 1] = self._products[: k + 1, k] = self._g @ g
        self._tables.append(tables)
        self._improve(np.append(self._alpha, 0.0 if k else 1.0))

    def _reserve(self, n_rows: int, n_features: int) -> None:
        """Make arrays for more cuts."""
        k, gradients, products = self._offset.size, self._gradients, self._products
        self._gradients, self._products = np.empty((n_rows, n_features)), np.empty((n_rows, n_rows))
        if k:
            self._gradients[:k], self._products[:k, :k] = gradients, products

    def _improve(self, start: Array) -> None:
        """Find the best mixture of the cuts from a feasible start, and update the bound."""
        self._alpha = minimize_on_simplex(self._gram, self._offset / self._C, start)
        active = np.flatnonzero(self._alpha)
        # Use the minimizer, not the Gram matrix, to avoid cancellation between similar cuts.
        self._minimizer = w = -self._C * (self._alpha[active] @ self._g[active])
        self.bound = max(self.bound, self._C * float(self._alpha @ self._offset) - 0.5 * float(w @ w))

    def minimizer(self) -> Array:
        """Return the minimizer of the problem with the cuts in place of the loss."""
        return self._minimizer.copy()

    def minimizer_error(self) -> float:
        """Return a bound on the rounding error in the norm of :meth:`minimizer`, from the cancellation of the cuts."""
        size = self._alpha @ np.sqrt(np.diagonal(self._gram))
        return float(64 * np.finfo(np.float64).eps * self._C * size)

    def value(self, w: Array) -> float:
        """Return the maximum of the cuts at ``w``."""
        return float(np.max(self._offset + self._g @ w))

    def _useful(self) -> NDArray[np.intp]:
        # Besides the active cuts, the most recent ones are the most likely to become active again.
        return np.union1d(np.flatnonzero(self._alpha), np.arange(self._offset.size)[-self._max_cuts // 4 :])

    def _make_room(self) -> None:
        active = np.flatnonzero(self._alpha)
        if active.size <= self._max_cuts // 2:
            keep = self._useful()
            self._gradients, self._products = self._g[keep], self._gram[np.ix_(keep, keep)]
            self._tables = [self._tables[i] for i in keep]
            self._offset, self._alpha = self._offset[keep], self._alpha[keep]
            return
        by_weight = active[np.argsort(self._alpha[active])]
        light, heavy = np.split(by_weight, [active.size // 2])
        share = self._alpha[light].sum()
        merged = self._alpha[light] @ self._g[light] / share
        merged_offset = self._alpha[light] @ self._offset[light] / share
        merged_tables = _mixed([self._tables[i] for i in light], self._alpha[light] / share)
        self._gradients = np.vstack([self._g[heavy], merged])
        self._tables = [self._tables[i] for i in heavy] + [merged_tables]
        self._offset = np.append(self._offset[heavy], merged_offset)
        self._alpha = np.append(self._alpha[heavy], share)
        self._products = self._g @ self._g.T


def _mixed(tables: list[Array | None], share: Array) -> Array | None:
    """Return the tables of a mixture of cuts."""
    parts = [part * (alpha, 1.0, 1.0) for part, alpha in zip(tables, share, strict=True) if part is not None]
    return np.concatenate(parts) if parts else None


# One-slack cutting-plane method, as published for SVM-pAUC.


@dataclass(frozen=True)
class CuttingPlane(Parameters):
    r"""Minimize :math:`\frac12|w|^2 + C R(w)` for a convex loss by the one-slack cutting-plane method.

    This is Algorithm 1 of Narasimhan and Agarwal. Each iteration solves the quadratic program

    .. math:: \min_{w,\, \xi \ge 0} \; \tfrac12|w|^2 + C\xi \quad \text{subject to} \quad
              \xi \ge b_k + g_k \cdot w \text{ for all constraints } k \text{ so far,}

    starting without constraints, and adds the most violated constraint at its solution ``w``, the tangent of the loss
    there. The algorithm stops when this constraint is violated by at most ``tol``,
    :math:`R(w) \le \xi +` ``tol``, and returns the last ``w``. No constraint is dropped, and there is no line search.

    The objective at the last iterate is within ``C * tol`` of the minimum, but it can be higher than at an earlier
    iterate, or at zero weights. Where zero weights are optimal, the certified solvers return them; this algorithm stops
    at a small vector near zero, which ranks well for some values of ``C`` and at random for others, so that ``C`` must
    be chosen on held-out rows.

    Parameters
    ----------
    tol : float, default=1e-4
        Tolerance for stopping, the :math:`\epsilon` of the paper: the largest violation of a constraint, in units of
        the loss. It is absolute, unlike that of the other solvers.
    max_iter : ...
        If it is reached, the last iterate is returned.

    Notes
    -----
    ``C`` is that of the papers: the losses of the partial AUC are means over the pairs in the window, with the factor
    :math:`1/(m(j_\beta - j_\alpha))` on both the errors and the score differences, as in KDD 2013, section 4, and in
    the proof of Proposition 2 of the 2017 paper. Eq. 6 of the latter, read for a subset of :math:`j_\beta` negatives,
    has the factor :math:`1/(m j_\beta)` on the score differences, which for :math:`\alpha > 0` contradicts that proof.

    The papers leave open which of several equally violated constraints is added. Here, tied negatives share the places
    in the window, so that the result does not depend on the order of the rows. At zero weights, where all negatives are
    tied, the first constraint is therefore the difference of the class means.

    References
    ----------
    Joachims, "Training linear SVMs in linear time", KDD 2006.
    Narasimhan and Agarwal, "SVM_pAUC^tight: a new support vector method for optimizing partial AUC based on a tight
    convex upper bound", KDD 2013, Algorithm 1.
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.losses import PairwiseHinge
    >>> from rocmax.operators import as_operator
    >>> from rocmax.penalties import SquaredL2
    >>> from rocmax.solvers import CuttingPlane
    >>> X, y = np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [1, 0, 0]
    >>> result = CuttingPlane(tol=1e-6).solve(as_operator(X), PairwiseHinge().bind(y), SquaredL2(C=1.0))
    >>> result.w.round(3), result.converged
    (array([ 0.4, -0.2]), True)
    """

    tol: float = 1e-4
    max_iter: int = 500

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: SquaredL2,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Run the algorithm; with ``w0``, the tangent of the loss at ``w0`` is the first constraint.

        The result is the last iterate, which can be worse than ``w0``.
        """
        require("CuttingPlane", loss, penalty, (SquaredL2,), convex=True)
        run = _Run(CountingOperator(operator), loss, penalty, self.max_iter + 2)
        if w0 is not None and np.any(w0):
            run.add_constraint(np.array(w0, dtype=np.float64))
        trace: list[Progress] = []
        violation = np.inf
        while violation > self.tol and len(trace) < self.max_iter:
            w, slack, bound = run.minimizer()
            value = run.add_constraint(w)
            violation = value - slack
            objective = penalty.value(w) + penalty.C * value
            trace.append(Progress(objective, bound, run.operator.passes))
            if callback is not None:
                callback(trace[-1])
        rounding = gap_rounding(operator, objective - bound, abs(objective) + penalty.C * spread(run.scores))
        gap, valid = valid_gap(objective - bound, rounding, self.tol, penalty.C)
        converged = violation <= self.tol and valid
        message = _message(violation, self.tol, objective, len(trace))
        if not valid:
            message = invalid_bound("CuttingPlane", f"gap {gap:.3g} at objective {objective:.6g}", self.tol)
        return Result(w, objective, gap, len(trace), converged, message, trace)


class _Run:
    """Data, loss and constraints of a run; the first constraint is that the slack is not negative."""

    def __init__(self, operator: CountingOperator, loss: BoundLoss, penalty: SquaredL2, max_cuts: int) -> None:
        self.operator, self._loss = operator, loss
        self.bundle = Bundle(penalty.C, max_cuts)
        self.bundle.add(np.zeros(operator.shape[1]), 0.0)
        self.scores = np.empty(0)

    def minimizer(self) -> tuple[Array, float, float]:
        """Solve the quadratic program; return the weights, the slack and the value of the dual problem."""
        w = self.bundle.minimizer()
        if np.linalg.norm(w) <= self.bundle.minimizer_error():
            w = np.zeros_like(w)  # the direction of a rounding error would rank the rows
        return w, self.bundle.value(w), self.bundle.bound

    def add_constraint(self, w: Array) -> float:
        """Add the most violated constraint at ``w``; return the loss there."""
        self.scores = scores = self.operator.matvec(w) if w.any() else np.zeros(self.operator.shape[0])
        value, coefficients = self._loss.value_and_gradient(scores)
        if value < 0 and value < -1e-9 * (1.0 + float(np.abs(coefficients) @ np.abs(scores))):
            raise ValueError(
                f"CuttingPlane requires a loss that is never negative, because its slack is not; got "
                f"{type(self._loss).__name__} with the value {value:.3g}; use OCAS"
            )
        self.bundle.add(self.operator.rmatvec(coefficients), value - float(coefficients @ scores))
        return value


def _message(violation: float, tol: float, objective: float, n_iter: int) -> str:
    reached = f"violation {violation:.3g} at objective {objective:.6g} after {n_iter} iterations"
    if violation <= tol:
        return f"CuttingPlane converged: {reached}"
    return f"CuttingPlane did not reach its tolerance: {reached}, tol={tol:g}; raise max_iter or tol, or lower C"
