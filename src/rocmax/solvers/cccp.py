"""Concave-convex procedure for a loss given as a difference of convex losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rocmax._support import Array, Parameters
from rocmax.losses.base import BoundLoss, Tilted
from rocmax.operators import CountingOperator, Operator, zero_scores
from rocmax.penalties import SquaredL2
from rocmax.solvers.base import Callback, Progress, Result, Solver, require
from rocmax.solvers.smoothed_newton import SmoothedNewton


@dataclass(frozen=True)
class CCCP(Parameters):
    r"""Minimize :math:`\frac{1}{2}|w|^2 + C(f(w) - g(w))`, ``f`` and ``g`` convex, by linearising ``g``.

    Each outer step replaces ``g`` by its tangent at the current weights, which gives a convex upper bound of the
    objective that is exact there, and minimizes this bound with another solver. Steps that would increase the objective
    are not taken. The procedure stops when the decrease in a step is less than ``tol`` times the objective, or ``tol``
    times the decrease from zero weights if that is smaller; the paper compares it with a fixed ``tau``. The result is a
    stationary point; it has no certificate, and its gap is NaN.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when an outer step reduces the objective by less than ``tol``,
        relatively. Also the tolerance of the inner problems if ``inner=None``.
    max_iter : int, default=100
        Maximum number of outer steps.
    inner_max_iter : int, default=500
        Maximum number of iterations of the inner solver if ``inner=None``.
    inner : Solver, default=None
        Solver of the inner problems; None is :class:`SmoothedNewton` with ``tol`` and ``inner_max_iter``. With
        :class:`CuttingPlane`, the first constraint of each inner problem is that of the current weights.
    tau : float, default=None
        If given, the rule of the paper is used instead of the relative one: the solver stops when an outer step reduces
        the objective by at most ``tau``, whatever the size of the objective (0.001 in the paper).

    References
    ----------
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017, Algorithm 4.
    """

    tol: float = 1e-3
    max_iter: int = 100
    inner_max_iter: int = 500
    inner: Solver | None = None
    tau: float | None = None
    needs_start: ClassVar[bool] = True

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: SquaredL2,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimize from ``w0`` (the solution for ``f`` alone if None); the result is never worse than the start."""
        inner = self.inner
        if inner is None:
            inner = SmoothedNewton(tol=self.tol, max_iter=self.inner_max_iter)
        if loss.convex:
            return inner.solve(operator, loss, penalty, w0, callback)
        require("CCCP", loss, penalty, (SquaredL2,), split=True)
        plus, minus = loss.split()
        counted = CountingOperator(operator)
        w = inner.solve(counted, plus, penalty).w if w0 is None else np.array(w0, dtype=np.float64)
        scores = counted.matvec(w)
        objective = penalty.value(w) + penalty.C * loss.value_and_gradient(scores)[0]
        at_zero = penalty.C * loss.value_and_gradient(zero_scores(counted))[0]
        trace: list[Progress] = []
        converged = False
        while not converged and len(trace) < self.max_iter:
            value, tilt = minus.value_and_gradient(scores)
            tangent = Tilted(plus, tilt, float(tilt @ scores) - value)
            step = inner.solve(counted, tangent, penalty, w)
            new_w = step.w
            new_scores = counted.matvec(new_w)
            new_objective = penalty.value(new_w) + penalty.C * loss.value_and_gradient(new_scores)[0]
            fall = objective - new_objective
            # The decrease is compared with the total decrease from zero weights, because features may be small.
            relative = self.tol * min(abs(objective), abs(at_zero - min(objective, new_objective)))
            little = fall <= (relative if self.tau is None else self.tau)
            converged, stuck = step.converged and little, little and not step.converged
            if new_objective < objective:
                w, scores, objective = new_w, new_scores, new_objective
            trace.append(Progress(objective, np.nan, counted.passes))
            if callback is not None:
                callback(trace[-1])
            if stuck:
                break  # further progress of the inner solver is unlikely
        name, limit = ("tol", self.tol) if self.tau is None else ("tau", self.tau)
        state = "converged" if converged else f"did not reach its tolerance: raise max_iter or {name};"
        message = f"CCCP {state} objective {objective:.6g} after {len(trace)} outer steps, {name}={limit:g}"
        return Result(w, objective, np.nan, len(trace), converged, message, trace)
