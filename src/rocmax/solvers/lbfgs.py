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
        goal = _Scaled(CountingOperator(operator), loss, penalty, np.asarray(w0, dtype=np.float64))
        trace: list[Progress] = []
        stopped: list[StopIteration] = []

        def note(_: Array) -> None:
            trace.append(Progress(goal.best[0], np.nan, goal.operator.passes))
            try:
                if callback is not None:
                    callback(trace[-1])
            except StopIteration as stop:
                # SciPy interprets StopIteration as a request to stop; it is raised again for the caller below.
                stopped.append(stop)
                raise

        options = {"maxiter": self.max_iter, "ftol": self.tol, "gtol": 0.0}
        run = minimize(goal, goal.best[1] / goal.size, jac=True, method="L-BFGS-B", callback=note, options=options)
        if stopped:
            raise stopped[0]
        if not trace:
            note(goal.best[1])
        return self._result(*goal.best, run.nit < self.max_iter, trace)

    def _result(self, objective: float, w: Array, converged: bool, trace: list[Progress]) -> Result:
        state = "ended" if converged else "did not reach its tolerance: raise max_iter or tol;"
        message = f"LBFGS {state} at objective {objective:.6g} after {len(trace)} iterations, tol={self.tol:g}"
        return Result(w, objective, np.nan, len(trace), converged, message, trace)


class _Scaled:
    """Objective in other units, and the best point so far.

    SciPy's tolerance is relative only for objectives above 1, so the objective is divided by its value at the start,
    which SciPy evaluates first. The first step has length 1; the weights are scaled so that this is a tenth of the norm
    of the start, to stay near the same local minimum.
    """

    def __init__(
        self, operator: CountingOperator, loss: BoundLoss, penalty: SquaredL2 | Unpenalized, start: Array
    ) -> None:
        self.operator, self._loss, self._penalty = operator, loss, penalty
        self.size = 0.1 * float(np.linalg.norm(start))
        self._unit: float | None = None
        self.best: tuple[float, Array] = (np.inf, start)

    def __call__(self, v: Array) -> tuple[float, Array]:
        """Return value and gradient for the weights ``v`` in units of ``size``."""
        w, C = self.size * v, self._penalty.C
        value, coefficients = self._loss.value_and_gradient(self.operator.matvec(w))
        total = self._penalty.value(w) + C * value
        if total < self.best[0]:
            self.best = (total, w)
        if self._unit is None:
            self._unit = total or 1.0
        gradient = self._penalty.gradient(w) + C * self.operator.rmatvec(coefficients)
        return total / self._unit, gradient * (self.size / self._unit)
