"""Truncated Newton method for smooth losses with Hessian products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from rocmax._support import Array, Parameters
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import SquaredL2
from rocmax.solvers.base import Callback, Origin, Progress, Result, find_zero, finish, require


@dataclass(frozen=True)
class TruncatedNewton(Parameters):
    r"""Minimize :math:`\frac{1}{2}|w|^2 + C R(w)` for a smooth convex loss by Newton's method with conjugate gradients.

    The objective is strongly convex with modulus 1, so :math:`\frac{1}{2} |\nabla F(w)|^2` is an upper bound of the
    suboptimality; it is the certified gap. The Newton system is solved to a tolerance that decreases with the
    gradient. Each conjugate-gradient iteration needs two passes over the data; the line search works on the scores and
    needs no pass.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance for stopping: the solver stops when the gap is at most ``tol`` times the objective, and at most
        ``tol`` times the improvement of the objective over zero weights.
    max_iter
    """

    tol: float = 1e-3
    max_iter: int = 100

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: SquaredL2,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimize from ``w0`` (zero if None); the result is never worse than ``w0``."""
        require("TruncatedNewton", loss, penalty, (SquaredL2,), convex=True, smooth=True, hessian_product=True)
        op, C = CountingOperator(operator), penalty.C
        origin = Origin(op, loss)
        w, scores, rise, coefficients = np.zeros(op.shape[1]), np.zeros(op.shape[0]), 0.0, origin.coefficients
        if w0 is not None and np.any(w0):
            w = np.array(w0, dtype=np.float64)
            scores = op.matvec(w)
            value, coefficients = loss.value_and_gradient(scores)
            rise = origin.rise(value, coefficients, scores)
        trace: list[Progress] = []
        base, gain = C * origin.value, np.inf
        while True:
            gradient = w + C * (op.rmatvec(coefficients) if w.any() else origin.slope)
            change = penalty.value(w) + C * rise
            gap = 0.5 * float(gradient @ gradient)
            gain = min(gain, gap - change)
            trace.append(Progress(base + change, base - gain, op.passes))
            if callback is not None:
                callback(trace[-1])
            unit = min(base + change, gain)
            converged = gap <= max(self.tol * unit, origin.rounding(gain, C))
            if converged or len(trace) >= self.max_iter:
                break
            step = _newton_step(op, loss, C, scores, gradient)
            along = op.matvec(step)
            linear, quadratic = float(w @ step), float(step @ step)

            def slope(t: float) -> float:
                nonlocal rise, coefficients
                value, coefficients = loss.value_and_gradient(scores + t * along)  # noqa: B023
                rise = origin.rise(value, coefficients, scores + t * along)  # noqa: B023
                return linear + t * quadratic + C * float(coefficients @ along)  # noqa: B023

            t = find_zero(slope, float(gradient @ step), rtol=0.1, largest=np.inf, max_evals=20)
            w, scores = w + t * step, scores + t * along
        # The gap is half a squared norm, which cannot be negative.
        return finish(w, base + change, gap, unit, converged, trace, "TruncatedNewton", self.tol, 0.0)


def _newton_step(op: CountingOperator, loss: BoundLoss, C: float, scores: Array, gradient: Array) -> Array:
    """Solve ``(I + C X'HX) step = -gradient`` to a tolerance that decreases with the gradient."""
    product = loss.hessian_product(scores)
    d = gradient.size
    system = LinearOperator((d, d), matvec=lambda v: v + C * op.rmatvec(product(op.matvec(v))), dtype=np.float64)
    norm = float(np.linalg.norm(gradient))
    step, _ = cg(system, -gradient, rtol=min(0.1, np.sqrt(norm / (1.0 + C))), maxiter=max(10, min(d, 100)))
    result: Array = step
    return result
