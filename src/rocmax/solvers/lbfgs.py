"""Local minimisation of losses that need not be convex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from rocmax._params import Parameters
from rocmax._typing import Array
from rocmax.losses.base import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import SquaredL2, Unpenalized
from rocmax.solvers.base import Callback, Progress, Result, require


@dataclass(frozen=True)
class LBFGS(Parameters):
    r"""Minimise :math:`\frac12|w|^2 + C R(w)` from a given start by L-BFGS (SciPy's).

    The loss need not be convex. The result is never worse than the start; it has no certificate, and its gap is NaN.

    Parameters
    ----------
    tol : float, default=1e-6
        Tolerance for stopping: the solver stops when an iteration reduces the objective by less than ``tol``,
        relatively.
    max_iter : int, default=200
        Maximum number of iterations.
    """

    tol: float = 1e-6
    max_iter: int = 200
    needs_start: ClassVar[bool] = True

    def solve(
        self,
        operator: Operator,
        loss: BoundLoss,
        penalty: SquaredL2 | Unpenalized,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimise from ``w0``, which must not be zero, because all scores are tied there."""
        require("LBFGS", loss, penalty, (SquaredL2, Unpenalized))
        if w0 is None or not np.any(w0):
            raise ValueError("w0 of LBFGS must not be zero, where a bounded loss is flat; got zero weights or None")
        op, trace = CountingOperator(operator), list[Progress]()
        start = np.asarray(w0, dtype=np.float64)
        best: tuple[float, Array] = (np.inf, start)
        # SciPy's tolerance is relative only for objectives above 1, so the objective is divided by its value at the
        # start. The first step has length 1; the weights are scaled so that this is a tenth of the norm of the start,
        # to stay near the same local minimum.
        size = 0.1 * float(np.linalg.norm(start))
        first = loss.value_and_gradient(op.matvec(start))
        unit, at_start = penalty.value(start) + penalty.C * first[0] or 1.0, [first]
        del first

        def objective(v: Array) -> tuple[float, Array]:
            nonlocal best
            w = size * v
            # SciPy evaluates the start first.
            value, coefficients = at_start.pop() if at_start else loss.value_and_gradient(op.matvec(w))
            total = penalty.value(w) + penalty.C * value
            if total < best[0]:
                best = (total, w)
            return total / unit, (penalty.gradient(w) + penalty.C * op.rmatvec(coefficients)) * (size / unit)

        stopped: list[StopIteration] = []

        def note(_: Array) -> None:
            trace.append(Progress(best[0], np.nan, op.passes))
            try:
                if callback is not None:
                    callback(trace[-1])
            except StopIteration as stop:
                # SciPy interprets StopIteration as a request to stop; it is raised again for the caller below.
                stopped.append(stop)
                raise

        options = {"maxiter": self.max_iter, "ftol": self.tol, "gtol": 0.0}
        run = minimize(objective, start / size, jac=True, method="L-BFGS-B", callback=note, options=options)
        if stopped:
            raise stopped[0]
        if not trace:
            note(best[1])
        return self._result(*best, run.nit < self.max_iter, trace)

    def _result(self, objective: float, w: Array, converged: bool, trace: list[Progress]) -> Result:
        state = "ended" if converged else "did not reach its tolerance: raise max_iter or tol;"
        message = f"LBFGS {state} at objective {objective:.6g} after {len(trace)} iterations, tol={self.tol:g}"
        return Result(w, objective, np.nan, len(trace), converged, message, trace)
