"""Small quadratic program over the simplex, for the lower bound from cuts, with a warm start.

After one more cut, only a few active-set exchanges are needed. General QP solvers take several milliseconds and have no
warm start; on small data they would dominate the fit time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgesv

from rocmax._typing import Array

# Number of times that a singular system is solved with a larger ridge; the last ridge dominates the system.
_MAX_RIDGES = 12


def minimize_on_simplex(Q: Array, p: Array, start: Array, max_steps: int = 1000) -> Array:
    """Minimise ``1/2 a'Qa - p'a`` over ``a >= 0, sum(a) = 1`` by an active-set method.

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
    """Minimise over the affine hull of the support."""
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
