"""Certified gaps on data whose scale makes rounding errors large."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from oracles import qp
from rocmax import AUCClassifier
from rocmax.losses import PairwiseHinge, PartialAUCStructural, PartialAUCTight
from rocmax.operators import MatrixOperator, as_operator
from rocmax.penalties import L2Ball, SquaredL2
from rocmax.solvers import OCAS, CuttingPlane, ProjectedSubgradient, ProximalBundle, SmoothedNewton

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


def rows_beside_a_constant(seed, dtype):
    """Return rows of scales up to 1e8 beside a column that does not vary, or hardly."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + rng.standard_normal(40) > 0.5
    X *= 10.0 ** rng.uniform(0, 8)
    column = np.full(40, 10.0 ** rng.uniform(0, 8) * rng.choice([-1, 1]), dtype=np.float32)
    if seed % 3 == 1:
        column[::2] = np.nextafter(column[0], np.float32(np.inf))
    elif seed % 3 == 2:
        column[20] = 0.0
    return np.column_stack([X, column]).astype(dtype), y


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_objective_and_bound_hold_beside_columns_that_do_not_vary(form, dtype):
    n_certified = 0
    for seed in range(24):
        X, y = rows_beside_a_constant(seed, dtype)
        C = 10.0 ** (seed % 5 - 1)
        loss = PairwiseHinge().bind(y)
        solver = (SmoothedNewton(), OCAS(), CuttingPlane(1e-4))[seed % 3]
        result = solver.solve(as_operator(form(X)), loss, SquaredL2(C))
        exact = X.astype(np.float64)
        exact -= exact.mean(axis=0)

        def objective(w, exact=exact, loss=loss, C=C):
            return 0.5 * w @ w + C * loss.value_and_gradient(exact @ w)[0]

        # Weights of a general solver, on columns of unit scale and with less extreme a penalty, for a second optimum.
        unit = np.abs(exact).max()
        other = qp.pairwise(exact / unit, y, min(C * unit**2, 1e6)).w / unit
        least = min(objective(result.w), objective(other))
        # Rounding errors of products are relative to the differences of the scores.
        rounding = 8 * np.finfo(dtype).eps * (least + C * np.std(exact @ result.w))
        assert result.objective == pytest.approx(objective(result.w), rel=1e-8, abs=rounding), seed
        assert result.objective - result.gap <= least * (1 + 1e-8) + rounding, seed
        if result.converged and not isinstance(solver, CuttingPlane):
            assert result.objective <= least * (1 + 2e-3), seed
            n_certified += 1
    assert n_certified >= 10


@pytest.mark.parametrize("solver", [ProximalBundle(), ProjectedSubgradient(max_iter=100)])
def test_bounds_hold_under_a_norm_constraint_beside_columns_that_do_not_vary(solver):
    for seed in range(12):
        X, y = rows_beside_a_constant(seed, np.float32)
        exact = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
        ball, loss = L2Ball(3.0 / np.abs(exact).max()), PairwiseHinge().bind(y)
        result = solver.solve(as_operator(X), loss, ball)
        other = ProximalBundle().solve(as_operator(exact), loss, ball)
        least = min(loss.value_and_gradient(exact @ w)[0] for w in (result.w, other.w))
        assert result.objective == pytest.approx(loss.value_and_gradient(exact @ result.w)[0], rel=1e-6), seed
        assert result.objective - result.gap <= least * (1 + 1e-6), seed


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("constant", [1.0, 1e4, 1e8])
def test_a_constant_column_does_not_change_a_fit_with_more_features_than_rows(form, constant):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 50)), rng.random(20) < 0.4
    alone = AUCClassifier().fit(X, y)
    model = AUCClassifier().fit(form(np.column_stack([X, np.full(20, constant)])), y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-9)
    np.testing.assert_allclose(model.coef_[0, :-1], alone.coef_[0], atol=1e-9)


class WrongGradients(MatrixOperator):
    """Rows whose products do not fit together, as if rounding errors were large."""

    def rmatvec(self, c):
        return 0.5 * super().rmatvec(c)


@pytest.mark.parametrize(
    ("solver", "penalty"),
    [
        (SmoothedNewton(), SquaredL2(1.0)),
        (OCAS(), SquaredL2(1.0)),
        (CuttingPlane(), SquaredL2(1.0)),
        (ProximalBundle(), L2Ball(0.5)),
        (ProjectedSubgradient(max_iter=50), L2Ball(0.5)),
    ],
)
def test_a_bound_above_the_objective_is_not_called_converged(solver, penalty):
    rng = np.random.default_rng(0)
    y = rng.random(100) < 0.4
    X = rng.standard_normal((100, 3)) + y[:, None]
    result = solver.solve(WrongGradients(X), PairwiseHinge().bind(y), penalty)
    assert not result.converged
    assert result.gap < 0
    assert result.gap == pytest.approx(result.objective - result.trace[-1].bound)
    assert f"{type(solver).__name__} did not converge to tol={solver.tol:g}: gap {result.gap:.3g}" in result.message
    assert "use rows of dtype float64" in result.message


def test_a_fit_whose_bound_is_above_its_objective_warns(monkeypatch):
    monkeypatch.setattr(MatrixOperator, "rmatvec", lambda self, c: 0.5 * (self._X.T @ c))
    rng = np.random.default_rng(0)
    y = rng.random(100) < 0.4
    X = rng.standard_normal((100, 3)) + y[:, None]
    with pytest.warns(ConvergenceWarning, match="AUCClassifier: SmoothedNewton did not converge to tol=0.001: gap -"):
        model = AUCClassifier().fit(X, y)
    assert model.dual_gap_ < 0
