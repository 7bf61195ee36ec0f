"""Small quadratic program over the simplex, for the lower bound from cuts, with a warm start.

After one more cut, only a few active-set exchanges are needed. General QP solvers take several milliseconds and have no
warm start; on small data they would dominate the fit time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from rocmax._typing import Array

# Number of times that a singular system is solved with a larger ridge; the last ridge dominates the system.
_MAX_RIDGES = 12


def minimize_on_simplex(Q: Array, p: Array, start: Array, max_steps: int = 1000) -> Array:
    """Minimise ``1/2 a'Qa - p'a`` over ``a >= 0, sum(a) = 1`` by an active-set method.

    ``Q`` must be positive semidefinite and ``start`` feasible. Every iterate is feasible, so the result gives a valid
    bound even after early stopping.
    """
    a = start.copy()
    # The largest entry of a positive semidefinite matrix is on its diagonal.
    scale = float(Q.diagonal().max(initial=0.0) + np.abs(p).max(initial=0.0)) or 1.0
    ridge = 1e-16 * scale
    support = np.flatnonzero(a)
    slope = Q @ a - p
    # After one more cut, the start is the minimum on its support: no system is solved to find it again.
    on_support = slope[support]
    is_least = bool(on_support.max() - on_support.min() <= 1e-12 * scale)
    for _ in range(max_steps):
        if is_least:
            entering = int(slope.argmin())
            if a[entering] > 0 or slope[entering] >= slope[support].min() - 1e-15 * scale:
                break
            support = np.append(support, entering)
        target = _on_support(Q, p, support, ridge)
        now = a[support]
        if target[-1] < 0 and now[-1] == 0:
            # The weight of the cut that entered last must grow. If the cuts are dependent, the system is singular, and
            # its solution far away along a line on which the curvature is zero; rounding decides on its sign.
            target = 2.0 * now - target
        is_least = bool(target.min() > 0)
        if is_least:
            a[support] = target
            slope = Q @ a - p
            continue
        # Move towards the target until the first weight reaches zero, and remove it from the support.
        falling, rise = target <= 0, target - now
        step = float(np.divide(now, -rise, out=np.ones(now.size), where=falling & (rise < 0)).min())
        now += step * rise
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
    block = Q.take(support, axis=0).take(support, axis=1)
    block.flat[:: k + 1] += ridge
    # Where the weights sum to one, a constant added to all entries changes nothing. With it the matrix is positive
    # definite if the cuts are affinely independent, and a Cholesky factorization takes half the time of others.
    right = np.ones((2, k))
    right[0] = p.take(support)
    right[0] -= right[0, 0]
    _, solved, info = dposv((block + block.max()).T, right.T, overwrite_a=True, overwrite_b=True)
    if info == 0:
        free, constant = solved.T
        result: Array = free + ((1.0 - free.sum()) / constant.sum()) * constant
        return result
    return _with_ridges(block, p[support], ridge)


def _with_ridges(block: Array, right: Array, ridge: float) -> Array:
    """Solve the singular system of cuts that are dependent up to rounding error, with the least ridge that suffices."""
    k = right.size
    system = np.ones((k + 1, k + 1))
    system[:k, :k] = block
    system[k, k] = 0.0
    for _ in range(_MAX_RIDGES):
        try:
            return np.linalg.solve(system, np.append(right, 1.0))[:k]
        except np.linalg.LinAlgError:
            ridge *= 1e3  # cuts that are equal up to rounding error
            system[np.arange(k), np.arange(k)] += ridge
    # Any feasible weights give a valid bound.
    return np.full(k, 1.0 / k)
