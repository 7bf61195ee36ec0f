"""The certified solver on windows above a true-positive rate, against the general conic solver."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from helpers.solver_cases import sample, solve, structural, tight
from rocmax.operators import as_operator
from rocmax.penalties import L2Ball
from rocmax.solvers import OCAS, ProximalBundle, SmoothedNewton

# Above a TPR, both limits, and a window of FPRs that does not begin at 0; the ends cut a row on either side.
CORNERS = [
    tight(0, 1, 0.8),
    tight(0, 1, 0.55),
    tight(0, 0.3, 0.5),
    tight(0.1, 0.4, 0.3),
    structural(0, 0.3, 0.5),
    structural(0.1, 0.4, 0.3),
]
every_corner = pytest.mark.parametrize("case", CORNERS, ids=lambda case: case.name)
# Precision of the general solver.
EXACT = 1e-8


def separated(n, weighted=False):
    """Classes far enough apart that the lowest positives do not make zero weights the optimum."""
    X, y, weight = sample(1, n, weighted=weighted)
    return np.random.default_rng(2).standard_normal(X.shape) + 1.3 * y[:, None], y, weight


@cache
def problem(case, C, weighted):
    X, y, weight = separated(45, weighted)
    return X, y, weight, case.optimum(X, y, C, weight)


@every_corner
@pytest.mark.parametrize("weighted", [False, True])
def test_formulation_has_the_value_of_the_loss_at_any_scores(case, weighted):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        _, y, weight = sample(seed, 14, 1, weighted=weighted)
        for scores in (rng.standard_normal(14), np.round(rng.standard_normal(14))):
            found = case.optimum(np.zeros((14, 1)), y, 2.0, weight, offset=scores)
            expected = 2.0 * case.slow(scores, y, weight)[0]
            assert found.dual == pytest.approx(expected, rel=1e-7, abs=1e-8)


@every_corner
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_optimum_and_certificate(case, C, weighted):
    X, y, weight, found = problem(case, C, weighted)
    above = case.objective(found.w, X, y, C, weight)
    assert above == pytest.approx(found.dual, rel=EXACT)
    for form in (np.asarray, sparse.csr_array):
        for tol in (1e-3, 1e-6):
            result = solve(SmoothedNewton(tol=tol), case, form(X), y, C, weight)
            assert result.converged
            assert result.objective <= found.dual + (tol + EXACT) * result.objective
            assert result.objective >= found.dual * (1 - EXACT)
            assert max(entry.bound for entry in result.trace) <= above * (1 + 1e-10)


def test_these_optima_are_not_at_zero_weights():
    for case in CORNERS:
        assert np.abs(problem(case, 10.0, False)[3].w).max() > 0.1


@every_corner
def test_optimum_where_the_curvature_is_a_sample(case):
    X, y, _ = separated(150)
    assert y.sum() * (~y).sum() > 4000
    found = case.optimum(X, y, 30.0)
    result = solve(SmoothedNewton(tol=1e-6), case, X, y, 30.0)
    assert result.converged
    assert result.objective <= found.dual + (1e-6 + EXACT) * result.objective


@every_corner
def test_other_solvers_meet_at_the_same_optimum(case):
    X, y, weight, found = problem(case, 10.0, True)
    result = solve(OCAS(tol=1e-4), case, X, y, 10.0, weight)
    assert result.converged
    assert result.objective == pytest.approx(found.dual, rel=2e-4)
    # The minimum of the penalized problem is also the minimum of the loss on the ball through it.
    ball = L2Ball(float(np.linalg.norm(found.w)))
    result = ProximalBundle(tol=1e-4).solve(as_operator(X), case.loss.bind(y, weight), ball)
    assert result.converged
    assert result.objective == pytest.approx(case.slow(X @ found.w, y, weight)[0], rel=2e-4)
