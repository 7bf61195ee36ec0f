"""Solvers without a certificate: they never rise, end where a further step does not pay, and say what they are."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from helpers.solver_cases import DIFFERENCE, RAMP, Case, a_start, sample, solve
from oracles import brute
from oracles import qp as oracles_qp
from rocmax.losses import PartialAUCHinge, PartialAUCRamp
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2, Unpenalized
from rocmax.solvers import CCCP, LBFGS, SmoothedNewton

WINDOWS = [(0.2, 0.5), (0.05, 0.2), (0.5, 1.0)]
every_window = pytest.mark.parametrize(("low", "high"), WINDOWS)
every_strength = pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])


def window_hinge(low, high):
    slow = partial(brute.partial_auc_hinge, min_fpr=low, max_fpr=high)
    return Case(f"hinge[{low:g},{high:g}]", PartialAUCHinge(low, high), slow)


# CCCP


@every_window
@every_strength
@pytest.mark.parametrize("start", [None, 0.1, 10.0])
def test_cccp_never_rises(low, high, C, start):
    case = window_hinge(low, high)
    for seed, weighted in ((0, False), (1, True)):
        X, y, weight = sample(seed, 50, 4, weighted=weighted)
        w0 = None if start is None else a_start(X, start)
        result = solve(CCCP(tol=1e-4), case, X, y, C, weight, w0)
        objectives = [entry.objective for entry in result.trace]
        assert result.converged
        assert (np.diff(objectives) <= 0).all()
        if w0 is not None:
            assert objectives[0] <= case.objective(w0, X, y, C, weight) * (1 + 1e-12)
        assert result.objective == pytest.approx(case.objective(result.w, X, y, C, weight), rel=1e-10)


@every_window
@every_strength
def test_cccp_ends_where_the_last_step_paid_less_than_the_tolerance(low, high, C):
    case, tol = window_hinge(low, high), 1e-3
    X, y, _ = sample(2, 50, 4)
    result = solve(CCCP(tol=tol), case, X, y, C, w0=a_start(X))
    start = case.objective(a_start(X), X, y, C)
    objectives = np.array([start, *(entry.objective for entry in result.trace)])
    # Relative to the objective, or to what was gained from zero weights if that is less.
    gained = case.objective(np.zeros(4), X, y, C) - objectives[1:]
    falls, little = -np.diff(objectives), tol * np.minimum(objectives[:-1], np.abs(gained))
    assert result.converged
    assert falls[-1] <= little[-1]
    assert (falls[:-1] > little[:-1]).all()


@every_window
@every_strength
def test_cccp_is_stationary_on_a_sample_without_noticeable_kinks(low, high, C):
    # On a few dozen rows the solution of a step lies on ties, and any move off them opens new ways down.
    case, tol = window_hinge(low, high), 1e-3
    X, y, _ = sample(4, 1000, 5)
    result = solve(CCCP(tol=tol), case, X, y, C)
    further = solve(CCCP(tol=tol, max_iter=1), case, X, y, C, w0=result.w)
    assert result.converged
    assert further.objective <= result.objective
    assert further.objective >= result.objective * (1 - 2 * tol)


@every_window
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_step_of_cccp_minimises_the_tangent_problem(low, high, C):
    # plus - minus with plus = b/(b-a) tight(0, b), minus = a/(b-a) tight(0, a); the step linearises minus.
    case, tol = window_hinge(low, high), 1e-5
    for seed, weighted in ((0, False), (1, True)):
        X, y, weight = sample(seed, 40, 4, weighted=weighted)
        w0 = a_start(X, 0.3)
        value, slope = brute.partial_auc_tight(X @ w0, y, weight, 0.0, low)
        share = low / (high - low)

        def tangent(w, X=X, y=y, weight=weight, w0=w0, value=value, slope=slope, share=share):
            plus = high / (high - low) * brute.partial_auc_tight(X @ w, y, weight, 0.0, high)[0]
            return 0.5 * w @ w + C * (plus - share * (value + slope @ (X @ (w - w0))))

        found = oracles_qp.partial_auc(
            X, y, C * high / (high - low), weight, 0.0, high, linear=-C * share * (X.T @ slope)
        )
        least = tangent(found.w)
        step = solve(CCCP(tol=tol, max_iter=1), case, X, y, C, weight, w0)
        assert tangent(w0) == pytest.approx(case.objective(w0, X, y, C, weight), rel=1e-9)
        assert least < tangent(w0)
        assert least <= tangent(step.w) + 1e-8 * least
        assert tangent(step.w) <= least * (1 + 2 * tol)


@every_window
def test_cccp_does_not_move_from_its_own_fixed_point(low, high):
    case = window_hinge(low, high)
    X, y, _ = sample(3, 50, 4)
    w = None
    for _ in range(30):
        result = solve(CCCP(tol=1e-6, max_iter=1), case, X, y, 10.0, w0=w)
        if w is not None and np.array_equal(result.w, w):
            break
        w = result.w
    again = solve(CCCP(tol=1e-6), case, X, y, 10.0, w0=w)
    assert again.converged
    assert again.objective >= result.objective * (1 - 1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_cccp_beats_the_start_without_the_concave_part(C):
    case = window_hinge(0.2, 0.5)
    X, y, _ = sample(5, 80, 5)
    plus, _ = case.loss.bind(y).split()
    convex = SmoothedNewton().solve(as_operator(X), plus, SquaredL2(C))
    result = solve(CCCP(), case, X, y, C)
    assert result.objective <= case.objective(convex.w, X, y, C) * (1 + 1e-12)


@pytest.mark.parametrize("high", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("start", [None, 1.0])
def test_cccp_from_the_first_rank_is_the_convex_problem(high, start):
    X, y, weight = sample(6, weighted=True)
    w0 = None if start is None else a_start(X)
    bound = PartialAUCHinge(0, high).bind(y, weight)
    one = CCCP(tol=1e-4).solve(as_operator(X), bound, SquaredL2(10.0), w0)
    two = SmoothedNewton(tol=1e-4).solve(as_operator(X), bound, SquaredL2(10.0), w0)
    np.testing.assert_array_equal(one.w, two.w)
    assert one.trace == two.trace
    assert (one.objective, one.gap, one.converged) == (two.objective, two.gap, True)


def test_one_step_of_cccp_on_sparse_rows_is_one_on_dense_rows():
    # Later steps may part: rounding decides between ties, and the problem has more than one stationary point.
    X, y, _ = sample(7, 60, 5)
    one, two = (
        solve(CCCP(tol=1e-6, max_iter=1), DIFFERENCE, form(X), y, 10.0, w0=a_start(X))
        for form in (np.asarray, sparse.csr_array)
    )
    assert one.objective == pytest.approx(two.objective, rel=1e-4)


# LBFGS


@every_window
@every_strength
@pytest.mark.parametrize("scale", [0.01, 1.0, 20.0])
def test_descent_never_ends_above_its_start(low, high, C, scale):
    ramp = Case("ramp", PartialAUCRamp(low, high), partial(brute.partial_auc_ramp, min_fpr=low, max_fpr=high))
    for case in (window_hinge(low, high), ramp):
        X, y, weight = sample(8, 40, 4, weighted=True)
        w0 = a_start(X, scale)
        result = solve(LBFGS(max_iter=50), case, X, y, C, weight, w0)
        objectives = [entry.objective for entry in result.trace]
        assert (np.diff(objectives) <= 0).all()
        assert result.objective <= case.objective(w0, X, y, C, weight) * (1 + 1e-12)
        assert result.objective == pytest.approx(case.objective(result.w, X, y, C, weight), rel=1e-10)


def test_descent_stays_where_it_cannot_improve():
    X, y, _ = sample(8, 40, 4)
    found = solve(LBFGS(tol=1e-12), RAMP, X, y, 10.0, w0=a_start(X))
    again = solve(LBFGS(), RAMP, X, y, 10.0, w0=found.w)
    assert again.n_iter <= 3
    assert again.objective <= found.objective
    assert again.objective >= found.objective * (1 - 1e-4)


class Pit:
    """A loss that is 1 at given scores and 2 anywhere else, whatever its gradient promises."""

    def __init__(self, bottom):
        self._bottom = bottom

    def value_and_gradient(self, scores):
        at_the_bottom = np.allclose(scores, self._bottom, rtol=0, atol=1e-12)
        return (1.0 if at_the_bottom else 2.0), np.ones(scores.size)


def test_descent_returns_the_best_point_it_saw():
    X, _, _ = sample(8, 40, 4)
    w0 = a_start(X)
    result = LBFGS().solve(as_operator(X), Pit(X @ w0), Unpenalized(), w0)
    np.testing.assert_allclose(result.w, w0, rtol=1e-12)
    assert result.objective == 1.0


def test_descent_evaluates_no_point_twice():
    X, y, _ = sample(9, 400, 5)
    bound, seen = PartialAUCRamp(max_fpr=0.5).bind(y), []
    value_and_gradient = bound.value_and_gradient
    bound.value_and_gradient = lambda scores: seen.append(scores) or value_and_gradient(scores)
    LBFGS().solve(as_operator(X), bound, SquaredL2(10.0), a_start(X))
    assert len(seen) > 3
    assert min(np.abs(one - two).max() for one, two in pairwise(seen)) > 1e-9


def test_descent_improves_on_a_model_for_the_whole_curve():
    X, y, _ = sample(9, 400, 5)
    loss = PartialAUCRamp(0, 0.1)
    start = SmoothedNewton().solve(as_operator(X), PartialAUCHinge(0, 1).bind(y), SquaredL2(100.0)).w
    before = loss.bind(y).value_and_gradient(X @ start)[0]
    result = LBFGS().solve(as_operator(X), loss.bind(y), Unpenalized(), start)
    assert result.converged
    assert result.objective == loss.bind(y).value_and_gradient(X @ result.w)[0]
    assert result.objective < before


@pytest.mark.parametrize("case", [DIFFERENCE, RAMP], ids=lambda case: case.name)
def test_descent_reaches_a_point_where_the_gradient_is_small(case):
    X, y, _ = sample(10, 300, 3)
    C = 5.0
    result = solve(LBFGS(tol=1e-10), case, X, y, C, w0=a_start(X, 0.5))
    bound = case.loss.bind(y)

    def gradient(w):
        return w + C * (X.T @ bound.value_and_gradient(X @ w)[1])

    assert np.linalg.norm(gradient(result.w)) < 0.1 * np.linalg.norm(gradient(a_start(X, 0.5)))
