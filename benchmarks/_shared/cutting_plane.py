"""The one-slack cutting-plane method of the structural SVM papers, as a peer.

Joachims, "Training linear SVMs in linear time", KDD 2006; Narasimhan and Agarwal, ICML 2013 and KDD 2013, Algorithm 1:
add the cut at the minimiser of all cuts so far, and nothing else. It shares loss, quadratic program (warm-started)
and stopping rule with the solver it is compared to. As in the papers no cut is ever dropped, and there is no line
search; the best point counts, not the last, which only helps it.
"""

from __future__ import annotations

import numpy as np

from rocmax.losses import BoundLoss
from rocmax.operators import CountingOperator, Operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import Progress, Result
from rocmax.solvers._bundle import Bundle


def cutting_plane(
    operator: Operator, loss: BoundLoss, penalty: SquaredL2, tol: float = 1e-3, max_passes: int = 300
) -> Result:
    """Minimise ``1/2 |w|^2 + C R(w)`` until the relative gap is ``tol`` or the passes are spent."""
    data = CountingOperator(operator)
    bundle = Bundle(penalty.C, max_cuts=max_passes)
    w = best_w = np.zeros(data.shape[1])
    scores = np.zeros(data.shape[0])
    best, trace = np.inf, []
    while True:
        value, coefficients = loss.value_and_gradient(scores)
        objective = penalty.value(w) + penalty.C * value
        if objective < best:
            best, best_w = objective, w
        bundle.add(data.rmatvec(coefficients), value - float(coefficients @ scores))
        trace.append(Progress(best, bundle.bound, data.passes))
        converged = best - bundle.bound <= tol * best
        if converged or data.passes + 2 > max_passes:
            break
        w = bundle.minimizer()
        scores = data.matvec(w)
    gap = best - bundle.bound
    return Result(best_w, best, gap, len(trace), converged, "cutting plane", trace)
