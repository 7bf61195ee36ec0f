"""Optima from a general conic solver, written to be checked against the definitions, not to be fast.

Every problem is ``min 1/2 |w|^2 + C R(X w)`` with one slack for each pair, so the samples have to be small. The
losses on a window are put as the dual of their inner maximum. For a positive of score ``s`` and negatives of score
``z_j`` and weight ``v_j``, with ``q_j`` in ``[0, v_j]`` the part of a negative that is charged and ``r`` their sum,

- tight:       max over q with r <= b of  sum_j q_j (z_j - s) + (r - a)_+
- structural:  max over q of              sum_j q_j (z_j - s) + clip(r - a, 0, b - a)

Both are the larger of two linear programs, one for each branch of the last term, and the dual of each is a minimum
over one price ``theta`` of

    b theta - constant + sum_j v_j (margin + z_j - s - theta)_+

with margin 0 and constant 0 in the first branch, and margin 1 and constant a in the second. The price is any number
>= 0 for the tight loss; for the structural one it is 0 in the first branch and at most 1 in the second.

Above a true-positive rate, positives of the total weight ``M = (1 - min_tpr) m`` are chosen, those with the largest of
these values ``h_i``. The dual of that choice is the minimum over a price of ``M price + sum_i v_i (h_i - price)_+``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import clarabel
import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Optimum:
    """Weights of the general solver and its lower bound; the objective at ``w`` is for the caller to evaluate."""

    w: np.ndarray
    primal: float
    dual: float


def solve_cone(P, q, A, b, cones, tol=1e-11):
    """Minimize ``1/2 x'Px + q'x`` subject to ``b - A x`` in the cones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.max_iter = 500
    P = sparse.triu(sparse.csc_matrix(P)).tocsc()
    solution = clarabel.DefaultSolver(P, q, sparse.csc_matrix(A), b, cones, settings).solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise AssertionError(f"the general solver ended with {solution.status}")
    return solution


class _Program:
    """A quadratic program ``1/2 x'Px + q'x, G x <= h`` put together block by block."""

    def __init__(self):
        self.n = 0
        self.quadratic, self.linear, self.rows, self.bounds = [], [], [], []

    def variables(self, count, quadratic=0.0, linear=0.0):
        start, self.n = self.n, self.n + count
        self.quadratic.append(np.broadcast_to(quadratic, count))
        self.linear.append(np.broadcast_to(linear, count))
        return np.arange(start, self.n)

    def at_most(self, bound, *terms):
        """Ask for ``sum of M @ x[index] <= bound`` over the terms ``(M, index)``."""
        self.rows.append([(sparse.csr_array(M), index) for M, index in terms])
        self.bounds.append(np.broadcast_to(bound, self.rows[-1][0][0].shape[0]))

    def solve(self):
        blocks = []
        for terms in self.rows:
            block = sparse.csr_array((terms[0][0].shape[0], self.n))
            for M, index in terms:
                place = sparse.csr_array(
                    (np.ones(index.size), (np.arange(index.size), index)), shape=(index.size, self.n)
                )
                block = block + M @ place
            blocks.append(block)
        G, h = sparse.vstack(blocks), np.concatenate(self.bounds)
        P = sparse.diags_array(np.concatenate(self.quadratic))
        return solve_cone(P, np.concatenate(self.linear), G, h, [clarabel.NonnegativeConeT(h.size)])


class _Sample:
    """Rows by class with their weights, and every pair of them: pair ``k = i * n + j``."""

    def __init__(self, X, y, weight, offset):
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        offset = np.zeros(len(y)) if offset is None else np.asarray(offset, dtype=np.float64)
        y = np.asarray(y).astype(bool) & (weight > 0)
        other = ~np.asarray(y) & (weight > 0)
        self.d, self.m_rows, self.n_rows = X.shape[1], int(y.sum()), int(other.sum())
        self.pos_weight, self.neg_weight = weight[y], weight[other]
        self.m, self.n = self.pos_weight.sum(), self.neg_weight.sum()
        self.difference = (X[other][None] - X[y][:, None]).reshape(-1, self.d)
        self.offset = (offset[other][None] - offset[y][:, None]).ravel()
        self.pair_weight = np.outer(self.pos_weight, self.neg_weight).ravel()
        self.of_positive = sparse.kron(sparse.eye_array(self.m_rows), np.ones((self.n_rows, 1)))
        self.sum_of_positive = sparse.kron(sparse.eye_array(self.m_rows), self.neg_weight[None])

    def end(self, rate):
        return float(sum(Fraction(v) for v in self.neg_weight) * Fraction(str(rate)))


def pairwise(X, y, C, weight=None, power=1, offset=None):
    """Optimum for the mean over all pairs of ``(1 - (s_i - s_j))_+ ** power``, with scores ``X w + offset``."""
    sample, program = _Sample(X, y, weight, offset), _Program()
    w = program.variables(sample.d, quadratic=1.0)
    share = C * sample.pair_weight / (sample.m * sample.n)
    cost = {"linear": share} if power == 1 else {"quadratic": 2 * share}
    slack = program.variables(share.size, **cost)
    one = sparse.eye_array(share.size)
    program.at_most(0.0, (-one, slack))
    program.at_most(-1.0 - sample.offset, (sample.difference, w), (-one, slack))
    solution = program.solve()
    return Optimum(np.array(solution.x)[w], solution.obj_val, solution.obj_val_dual)


def partial_auc(X, y, C, weight=None, min_fpr=0.0, max_fpr=1.0, structural=False, offset=None, linear=0.0, min_tpr=0.0):
    """Optimum for the tight or the structural loss on a window plus ``linear @ w``, with scores ``X w + offset``."""
    sample, program = _Sample(X, y, weight, offset), _Program()
    a, b = sample.end(min_fpr), sample.end(max_fpr)
    w = program.variables(sample.d, quadratic=1.0, linear=linear)
    unit = C / (sample.m * (1 - min_tpr) * (b - a))
    worst = program.variables(sample.m_rows, linear=0.0 if min_tpr else unit * sample.pos_weight)
    if min_tpr:
        _charge_the_worst(program, worst, sample.m * (1 - min_tpr), sample.pos_weight, unit)
    each, pairs = sparse.eye_array(sample.m_rows), sparse.eye_array(sample.pair_weight.size)
    for margin, constant, largest_price in ((0.0, 0.0, 0.0), (1.0, a, 1.0)):
        price = program.variables(sample.m_rows)
        slack = program.variables(sample.pair_weight.size)
        program.at_most(0.0, (-each, price))
        if structural:
            program.at_most(largest_price, (each, price))
        program.at_most(0.0, (-pairs, slack))
        program.at_most(-margin - sample.offset, (sample.difference, w), (-sample.of_positive, price), (-pairs, slack))
        program.at_most(constant, (b * each, price), (sample.sum_of_positive, slack), (-each, worst))
    solution = program.solve()
    return Optimum(np.array(solution.x)[w], solution.obj_val, solution.obj_val_dual)


def _charge_the_worst(program, values, total, weight, unit):
    """Add ``unit`` times the sum of the largest ``values``: ``total`` in all, and each at most ``weight`` times."""
    price = program.variables(1, linear=unit * total)
    above = program.variables(values.size, linear=unit * weight)
    each = sparse.eye_array(values.size)
    program.at_most(0.0, (-each, above))
    program.at_most(0.0, (each, values), (-np.ones((values.size, 1)), price), (-each, above))


def over_labellings(X, C, errors, coefficients, intercept=False):
    """Optimum for ``max over k of errors[k] + coefficients[k] @ (X w + b)``, one constraint for each labeling ``k``.

    ``b`` is 0, or free and without penalty. The last entry of the optimum's ``w`` is ``b`` if there is one.
    """
    program = _Program()
    w = program.variables(X.shape[1], quadratic=1.0)
    terms = [(coefficients @ X, w)]
    if intercept:
        b = program.variables(1)
        terms.append((coefficients.sum(1)[:, None], b))
    worst = program.variables(1, linear=C)
    program.at_most(-errors, *terms, (-np.ones((errors.size, 1)), worst))
    solution = program.solve()
    return Optimum(np.array(solution.x)[:-1], solution.obj_val, solution.obj_val_dual)


def on_simplex(Q, p):
    """Minimum of ``1/2 a'Qa - p'a`` over ``a >= 0, sum(a) = 1``."""
    k = p.size
    scale = np.abs(Q).max() + np.abs(p).max() or 1.0
    A = sparse.vstack([np.ones((1, k)), -sparse.eye_array(k)])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(k)]
    solution = solve_cone(Q / scale, -p / scale, A, np.append(1.0, np.zeros(k)), cones)
    return np.array(solution.x), scale * solution.obj_val_dual
