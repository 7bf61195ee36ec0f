"""One-slack cutting-plane method, as published for SVM-pAUC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocmax._params import Parameters
from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import SquaredL2
from rocmax.solvers._bundle import Bundle
from rocmax.solvers._zero_weights import spread
from rocmax.solvers.base import Callback, Progress, Result, gap_rounding, invalid_bound, require, valid_gap


@dataclass(frozen=True)
class CuttingPlane(Parameters):
    r"""Minimise :math:`\frac12|w|^2 + C R(w)` for a convex loss by the one-slack cutting-plane method.

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
    max_iter : int, default=500
        Maximum number of iterations. If it is reached, the last iterate is returned.

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
