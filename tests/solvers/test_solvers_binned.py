"""Certified fits on many rows, where losses are computed from bins: the gap is a true bound on the exact problem."""

import numpy as np
import pytest
from scipy import sparse

from rocmax.losses import Binned, PairwiseHinge, PartialAUCStructural, PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import SmoothedNewton
from rocmax.solvers.base import Cuts

N_ROWS, N_FEATURES = 60_000, 4
NO_CUTS = Cuts(np.empty((0, N_FEATURES)), np.empty(0), [])
LOSSES = {
    "full AUC": PairwiseHinge(),
    "window": PartialAUCTight(0.0, 0.1),
    "narrow window": PartialAUCTight(0.02, 0.05),
    "structural": PartialAUCStructural(0.0, 0.2),
}


def problem(tails=None, shift=2.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_FEATURES)) if tails is None else rng.standard_t(tails, (N_ROWS, N_FEATURES))
    y = rng.random(N_ROWS) < 0.1
    X[y] += shift * np.array([1.0, 0.5, 0.0, -0.5])
    return X, y, rng.uniform(0.5, 2.0, N_ROWS)


def exact_objective(loss, X, y, weight, w, C):
    value = loss.bind(y, weight).value_and_gradient(X @ w)[0]
    return 0.5 * w @ w + C * value


def assert_certified(result, loss, X, y, weight, C, tol):
    """The reported objective is above the exact one, and the reported gap above the distance to the optimum."""
    assert result.converged
    at = exact_objective(loss, X, y, weight, result.w, C)
    assert at <= result.objective * (1 + 1e-12)
    assert result.objective - at <= 0.2 * tol * result.objective
    # A start from given cuts, even none, computes the loss from all rows.
    reference = SmoothedNewton(1e-5, cuts=NO_CUTS).solve(as_operator(X), loss.bind(y, weight), SquaredL2(C), result.w)
    assert reference.converged
    assert result.objective - result.gap <= reference.objective
    assert result.objective - reference.objective <= result.gap + reference.gap


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_gap_bounds_the_distance_to_the_exact_optimum(loss):
    X, y, weight = problem()
    result = SmoothedNewton().solve(as_operator(X), loss.bind(y, weight), SquaredL2(10.0))
    assert_certified(result, loss, X, y, weight, 10.0, 1e-3)


def test_heavy_tails_and_a_small_tolerance_are_certified():
    X, y, _ = problem(tails=1.5)
    result = SmoothedNewton(1e-4).solve(as_operator(X), PairwiseHinge().bind(y), SquaredL2(10.0))
    assert_certified(result, PairwiseHinge(), X, y, None, 10.0, 1e-4)


def test_single_precision_and_sparse_rows_have_the_same_optimum():
    X, y, _ = problem()
    X[np.abs(X) < 0.5] = 0.0
    results = [
        SmoothedNewton().solve(as_operator(rows), PairwiseHinge().bind(y), SquaredL2(10.0))
        for rows in (X, X.astype(np.float32), sparse.csr_array(X))
    ]
    for result in results[1:]:
        assert result.objective == pytest.approx(results[0].objective, rel=1e-3)


def test_a_collapse_on_many_rows_is_certified():
    X, y, _ = problem(shift=0.2)
    result = SmoothedNewton().solve(as_operator(X), PartialAUCTight(0.0, 0.05).bind(y), SquaredL2(10.0))
    assert result.converged
    assert not result.w.any()


def test_a_start_is_used_and_never_made_worse():
    X, y, _ = problem()
    best = SmoothedNewton(1e-5).solve(as_operator(X), PairwiseHinge().bind(y), SquaredL2(10.0))
    again = SmoothedNewton().solve(as_operator(X), PairwiseHinge().bind(y), SquaredL2(10.0), best.w)
    assert again.n_iter == 1
    assert again.objective <= best.objective * (1 + 1e-4)


def test_subsamples_are_denser_near_the_window():
    X, y, weight = problem()
    scores = X @ np.array([1.0, 0.5, 0.0, -0.5])
    loss = PartialAUCTight(0.0, 0.05)
    rows, small = loss.bind(y, weight).binned(1024).at(scores).thinned(6000)
    assert np.unique(rows).size == rows.size
    assert 4000 < rows.size < 9000
    negatives = rows[~y[rows]]
    high = scores[negatives] >= np.quantile(scores[~y], 0.85)
    assert high.mean() > 0.5
    exact = loss.bind(y, weight).value_and_gradient(scores)[0]
    assert small.value_and_gradient(scores[rows])[0] == pytest.approx(exact, rel=0.05)
    assert Binned(loss, 64).bind(y).at(scores).thinned(N_ROWS) is None
