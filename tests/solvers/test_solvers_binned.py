"""Certified fits on many rows, where losses are computed from bins: the gap is a true bound on the exact problem."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from rocmax import AUCClassifier
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


@pytest.mark.parametrize("mean", [0.0, 3e5])
def test_single_precision_columns_far_from_zero_are_certified(mean):
    X, y, weight = problem()
    single = (X + mean * np.array([1.0, 0.0, -1.0, 0.5])).astype(np.float32)
    result = SmoothedNewton().solve(as_operator(single), PairwiseHinge().bind(y, weight), SquaredL2(10.0))
    assert result.converged
    exact = single.astype(np.float64) - mean * np.array([1.0, 0.0, -1.0, 0.5])
    at = exact_objective(PairwiseHinge(), exact, y, weight, result.w, 10.0)
    assert at == pytest.approx(result.objective, rel=1e-4)
    best = SmoothedNewton(1e-5).solve(as_operator(exact), PairwiseHinge().bind(y, weight), SquaredL2(10.0))
    assert result.objective - result.gap <= best.objective * (1 + 1e-6)


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
    binned = loss.bind(y, weight).binned(1024)
    rows, copies = binned.at(scores).sample(6000)
    small = binned.restrict(rows, copies)
    assert np.unique(rows).size == rows.size
    assert 4000 < rows.size < 9000
    negatives = rows[~y[rows]]
    high = scores[negatives] >= np.quantile(scores[~y], 0.85)
    assert high.mean() > 0.5
    exact = loss.bind(y, weight).value_and_gradient(scores)[0]
    assert small.value_and_gradient(scores[rows])[0] == pytest.approx(exact, rel=0.05)
    assert Binned(loss, 64).bind(y).at(scores).sample(N_ROWS) is None


@pytest.mark.parametrize("max_fpr", [0.05, 0.1])
def test_a_collapse_of_a_large_sample_is_certified_in_few_passes(max_fpr):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 10))
    y = rng.random(60_000) < 0.09
    X[y] += 1.2 / np.sqrt(10)
    loss = PartialAUCTight(max_fpr=max_fpr).bind(y)
    result = SmoothedNewton(tol=1e-3).solve(as_operator(X), loss, SquaredL2(100.0))
    assert not result.w.any()
    assert result.converged
    assert result.trace[-1].passes <= 9
    # An independent witness: no better point along the mean difference, where the exact loss is evaluated.
    along = X @ (X[y].mean(axis=0) - X[~y].mean(axis=0))
    assert min(loss.value_and_gradient(t * along)[0] for t in (1e-3, 1e-2, 0.1, 1.0)) >= 1.0


def test_the_memory_of_a_fit_on_single_precision_rows_is_bounded():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 20), dtype=np.float32)
    y = rng.random(1_000_000) < 0.05
    X[y] += np.float32(0.3)
    tracemalloc.start()
    AUCClassifier(C=100.0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 60 * y.size
