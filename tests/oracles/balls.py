"""Projections and optima over balls from a general conic solver and from exact arithmetic; slow and plain."""

from __future__ import annotations

from fractions import Fraction

import clarabel
import numpy as np
from scipy import sparse

from oracles.qp import solve_cone
from rocmax.penalties import ElasticNetBall, GroupBall, L2Ball


class Cones:
    """A conic program put together row by row: ``b - A x`` in a product of cones, the first variables the weights."""

    def __init__(self, d):
        self.n, self.blocks, self.bounds, self.cones = d, [], [], []

    def variables(self, count):
        start, self.n = self.n, self.n + count
        return np.arange(start, self.n)

    def add(self, cone, bound, *terms):
        """Ask for ``bound - sum of M @ x[index]`` in the cone."""
        self.blocks.append(terms)
        self.bounds.append(np.asarray(bound, dtype=np.float64))
        self.cones.append(cone(len(self.bounds[-1])))

    def at_most(self, bound, *terms):
        self.add(clarabel.NonnegativeConeT, bound, *terms)

    def in_cone(self, bound, *terms):
        self.add(clarabel.SecondOrderConeT, bound, *terms)

    def solve(self, quadratic, linear, tol):
        rows = []
        for terms, bound in zip(self.blocks, self.bounds, strict=True):
            block = np.zeros((bound.size, self.n))
            for M, index in terms:
                block[:, index] += M
            rows.append(block)
        grow = self.n - len(linear)
        P = np.diag(np.append(quadratic, np.zeros(grow)))
        q = np.append(linear, np.zeros(grow))
        A = sparse.csc_array(np.vstack(rows))
        return np.array(solve_cone(P, q, A, np.concatenate(self.bounds), self.cones, tol).x)

    def weights_in(self, ball, d):
        """Constrain the first ``d`` variables to the ball."""
        w = np.arange(d)
        first = np.vstack([np.zeros(d), np.eye(d)])
        if isinstance(ball, L2Ball):
            self.in_cone(np.append(ball.radius, np.zeros(d)), (-first, w))
        elif isinstance(ball, GroupBall):
            t = self.variables(ball.n_groups)
            for p in range(ball.n_groups):
                member = np.flatnonzero(ball.label == p)
                size, one = member.size, np.zeros((member.size + 1, 1))
                one[0] = -1.0
                own = -np.vstack([np.zeros(size), np.eye(size)])
                self.in_cone(np.zeros(size + 1), (one, t[[p]]), (own, member))
            self.at_most([ball.radius], (np.ones((1, t.size)), t))
        else:
            assert isinstance(ball, ElasticNetBall)
            t, square = self.variables(d), self.variables(1)
            for sign in (1.0, -1.0):
                self.at_most(np.zeros(d), (sign * np.eye(d), w), (-np.eye(d), t))
            # |w|^2 <= q as |(2 w, q - 1)| <= q + 1
            bound = np.concatenate([[1.0], np.zeros(d), [-1.0]])
            own = -2.0 * np.vstack([np.zeros(d), np.eye(d), np.zeros(d)])
            ends = np.zeros((d + 2, 1))
            ends[[0, -1]] = -1.0
            self.in_cone(bound, (own, w), (ends, square))
            kappa = ball.l1_ratio
            self.at_most([ball.radius], (np.full((1, d), kappa), t), (np.full((1, 1), 0.5 * (1 - kappa)), square))


def project(ball, v):
    """Return the nearest point of the ball by the general solver; entries are right to about 1e-7."""
    program = Cones(v.size)
    program.weights_in(ball, v.size)
    return program.solve(np.ones(v.size), -v, 1e-13)[: v.size]


def project_exactly(ball, v, digits=30):
    """Return the projection on an L1 or elastic-net ball: bisection on the multiplier in exact fractions."""
    kappa, radius, size = Fraction(ball.l1_ratio), Fraction(ball.radius), [abs(Fraction(x)) for x in v]

    def at(tau):
        return [max(x - kappa * tau, Fraction(0)) / (1 + (1 - kappa) * tau) for x in size]

    def value(u):
        return kappa * sum(u) + (1 - kappa) / 2 * sum(x * x for x in u)

    if value(size) <= radius:
        return np.array(v)
    low, high = Fraction(0), Fraction(1)
    while value(at(high)) > radius:
        high *= 2
    for _ in range(4 * digits):
        middle = (low + high) / 2
        low, high = (middle, high) if value(at(middle)) > radius else (low, middle)
    return np.copysign([float(x) for x in at(high)], v)


def minimum_in_ball(ball, X, y, max_fpr):
    """Return weights that minimize the tight loss of the window ``[0, max_fpr]`` over the ball.

    With ``n * max_fpr = b`` negatives in the window, the loss of a positive of score ``s`` is
    ``min over theta >= 0 of b theta + sum_j (1 + z_j - s - theta)_+``, divided by ``b``.
    """
    d, pos, neg = X.shape[1], X[y], X[~y]
    m, n = len(pos), len(neg)
    b = n * max_fpr
    program = Cones(d)
    theta, slack = program.variables(m), program.variables(m * n)
    of_positive = np.kron(np.eye(m), np.ones((n, 1)))
    difference = (neg[None] - pos[:, None]).reshape(-1, d)
    program.at_most(np.full(m * n, -1.0), (difference, np.arange(d)), (-of_positive, theta), (-np.eye(m * n), slack))
    program.at_most(np.zeros(m), (-np.eye(m), theta))
    program.at_most(np.zeros(m * n), (-np.eye(m * n), slack))
    linear = np.concatenate([np.zeros(d), np.full(m, b / (m * b)), np.full(m * n, 1 / (m * b))])
    program.weights_in(ball, d)
    return program.solve(np.zeros(linear.size), linear, 1e-11)[:d]
