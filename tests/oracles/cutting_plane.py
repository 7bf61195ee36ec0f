"""Algorithm 1 of Narasimhan and Agarwal, transcribed: every constraint listed, and the quadratic program by clarabel.

KDD 2013, Algorithm 1, and Neural Computation 2017, Algorithm 1. The sample has to be tiny: a constraint is a subset of
``j_b`` negatives and an ordering of it and all positives (tight), or an ordering of all examples (structural). The
papers leave ties open. Among equally violated constraints, those with the fewest inverted pairs are averaged here,
which does not depend on the order of the rows.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse

from oracles.qp import solve_cone

EQUAL = 1e-9


class Constraints(NamedTuple):
    """``H_w = delta + (psi @ w)`` for each constraint, and its number of inverted pairs."""

    delta: np.ndarray
    psi: np.ndarray
    inverted: np.ndarray


def copies(X, y, weight):
    """Repeat each row as many times as its weight says."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    times = np.ones(len(y), dtype=int) if weight is None else np.asarray(weight, dtype=int)
    return np.repeat(X, times, axis=0), np.repeat(np.asarray(y, dtype=bool), times)


def ordering_matrices(m, n):
    """All matrices ``pi`` of the orderings of ``m`` positives and ``n`` negatives, and the negatives by rank."""
    seen = {}
    for order in permutations(range(m + n)):
        place = np.argsort(order)
        pi = place[:m, None] > place[None, m:]
        seen.setdefault(pi.tobytes(), (pi, [example - m for example in order if example >= m]))
    return list(seen.values())


def every_constraint(pos, neg, j_a, j_b, structural):
    """List ``Delta`` and ``phi(S, pi) - phi(S, pi*)``, both with the factor ``1 / (m (j_b - j_a))``."""
    m, n = len(pos), len(neg)
    delta, psi, inverted = [], [], []
    for subset in [tuple(range(n))] if structural else combinations(range(n), j_b):
        Z = neg[list(subset)]
        differences = pos[:, None] - Z[None]
        for pi, ranked in ordering_matrices(m, len(subset)):
            delta.append(pi[:, ranked[j_a:j_b]].sum())
            psi.append(-(pi[:, :, None] * differences).sum(axis=(0, 1)))
            inverted.append(pi.sum())
    norm = m * (j_b - j_a)
    return Constraints(np.array(delta) / norm, np.array(psi) / norm, np.array(inverted))


def most_violated(constraints, w):
    """Return ``H_w``, ``delta`` and ``psi`` of the most violated constraint."""
    H = constraints.delta + constraints.psi @ w
    best = H.max() - H <= EQUAL
    best &= constraints.inverted == constraints.inverted[best].min()
    return H.max(), constraints.delta[best].mean(), constraints.psi[best].mean(axis=0)


def solve_program(delta, psi, C, d):
    """Line 9: ``argmin 1/2 |w|^2 + C xi`` subject to ``xi >= 0`` and ``xi >= delta_k + psi_k @ w``."""
    if not delta:
        return np.zeros(d), 0.0
    P = np.diag(np.append(np.ones(d), 0.0))
    A = np.vstack([np.append(np.zeros(d), -1.0), np.column_stack([psi, -np.ones(len(delta))])])
    b = np.append(0.0, -np.array(delta))
    solution = solve_cone(P, np.append(np.zeros(d), C), A, b, [clarabel.NonnegativeConeT(b.size)])
    x = np.array(solution.x)
    return x[:d], x[d]


def algorithm_1(X, y, C, eps, j_a, j_b, weight=None, structural=False, max_iter=200):
    """Return the weights of every iteration; the last are the output."""
    X, y = copies(X, y, weight)
    constraints = every_constraint(X[y], X[~y], j_a, j_b, structural)
    delta, psi, iterates = [], [], []
    for _ in range(max_iter):
        w, xi = solve_program(delta, psi, C, X.shape[1])
        iterates.append(w)
        H, new_delta, new_psi = most_violated(constraints, w)
        delta.append(new_delta)
        psi.append(new_psi)
        if xi + eps >= H:
            return iterates
    raise AssertionError(f"no end after {max_iter} iterations")
