"""Certified gaps on data whose scale makes rounding errors large."""

import numpy as np
import pytest

from rocmax.losses import PairwiseHinge, PartialAUCStructural, PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, SmoothedNewton, smoothed_newton

SOLVERS = [SmoothedNewton(max_iter=100), OCAS(max_iter=200)]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("start", [None, np.array([1.0])])
def test_a_start_whose_loss_is_that_of_zero_weights(solver, start):
    # At the weight 1 the loss is 1, as at zero; its slope leads away from there, and the optimum is 7/8.
    X, y = np.array([[2.0], [-1.0], [0.0]]), np.array([1, 1, 0])
    result = solver.solve(as_operator(X), PairwiseHinge().bind(y), SquaredL2(1.0), start)
    assert result.converged
    assert result.objective - result.gap <= 0.875 + 1e-12
    assert result.objective == pytest.approx(0.875, rel=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_large_constant_column_does_not_hide_the_slope_of_others(solver):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    small = 0.01 * (rng.standard_normal((200, 1)) + 2.5 * y[:, None])
    loss = PairwiseHinge().bind(y)
    alone = OCAS(tol=1e-6, max_iter=1000).solve(as_operator(small), loss, SquaredL2(1e4))
    X = np.column_stack([np.full(200, 1e13), small])
    result = solver.solve(as_operator(X), loss, SquaredL2(1e4))
    assert result.w.any()
    assert result.objective - result.gap <= alone.objective
    assert result.objective == pytest.approx(alone.objective, rel=0.01)


@pytest.mark.parametrize("window", [(0.0, 0.1), (0.5, 1.0)])
@pytest.mark.parametrize("loss", [PartialAUCStructural, PartialAUCTight])
def test_scores_and_weights_of_extreme_size(monkeypatch, loss, window):
    monkeypatch.setattr(smoothed_newton, "_MANY_ROWS", 20)
    monkeypatch.setattr(smoothed_newton, "_MANY_ROWS_WITH_KINKS", 20)
    monkeypatch.setattr(SmoothedNewton, "_binned", lambda self, bound: bound.binned(4))
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = 1e8 * (rng.standard_normal((30, 1)) > 0.5), rng.random(30) < 0.3
        y[:2] = True, False
        bound = loss(*window).bind(y, 10.0 ** rng.uniform(-8, 8, 30))
        result = SmoothedNewton(max_iter=100).solve(as_operator(X), bound, SquaredL2(1e4), np.array([-2.0]))
        grid = np.append(0.0, np.outer([1.0, -1.0], 10.0 ** np.linspace(-10, -5, 60)).ravel())
        least = min(0.5 * w**2 + 1e4 * bound.value_and_gradient(X[:, 0] * w)[0] for w in grid)
        assert result.objective - result.gap <= least * (1 + 1e-6)
