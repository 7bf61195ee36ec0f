"""Algorithm 1 as published: each iterate next to a transcription, and what the last one guarantees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from helpers.solver_cases import DIFFERENCE, HINGE, a_start, every_convex_case, sample, solve, tight
from oracles import brute
from oracles import qp as oracles_qp
from oracles.cutting_plane import algorithm_1
from rocmax.losses import PartialAUCHinge, PartialAUCStructural, PartialAUCTight
from rocmax.losses.base import BoundLoss
from rocmax.operators import as_operator
from rocmax.penalties import L2Ball, SquaredL2
from rocmax.solvers import CCCP, CuttingPlane, SmoothedNewton, cutting_plane
from rocmax.solvers.cutting_plane import minimize_on_simplex


def tiny(seed, weighted=False):
    """Three positives and five negatives in two dimensions, or as many copies of fewer rows."""
    rng = np.random.default_rng(seed)
    y = np.array([1, 1, 0, 0, 0, 0] if weighted else [1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)
    X = rng.standard_normal((y.size, 2)) + 1.5 * y[:, None]
    X[2, 0] = X[-1, 1] = 0.0
    return X, y, np.array([2, 1, 1, 2, 1, 1]) if weighted else None


def iterates(loss, X, y, weight, C, eps, count):
    """The weights after 1, 2, ... iterations, and the result of the run to its end."""
    bound, operator = loss.bind(y, weight), as_operator(X)
    runs = [CuttingPlane(eps, k).solve(operator, bound, SquaredL2(C)) for k in range(1, count + 1)]
    assert [run.n_iter for run in runs] == list(range(1, count + 1))
    assert [run.converged for run in runs] == [False] * (count - 1) + [True]
    return [run.w for run in runs]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights"])
@pytest.mark.parametrize("ranks", [(0, 2), (1, 3), (2, 4)], ids=str)
def test_algorithm_1_step_by_step_tight(weighted, ranks):
    X, y, weight = tiny(1, weighted)
    loss = PartialAUCTight(ranks[0] / 5, ranks[1] / 5)
    for C in (0.3, 30.0):
        expected = algorithm_1(X, y, C, 1e-3, *ranks, weight=weight)
        assert len(expected) >= 3
        for rows in (X, sparse.csr_array(X)):
            found = iterates(loss, rows, y, weight, C, 1e-3, len(expected))
            np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("ranks", [(0, 2), (1, 3)], ids=str)
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_algorithm_1_step_by_step_structural(ranks, C):
    X, y, _ = tiny(2)
    expected = algorithm_1(X, y, C, 1e-3, *ranks, structural=True)
    loss = PartialAUCStructural(ranks[0] / 5, ranks[1] / 5)
    found = iterates(loss, X, y, None, C, 1e-3, len(expected))
    np.testing.assert_allclose(found, expected, atol=2e-5)


@every_convex_case
@pytest.mark.parametrize("weighted", [False, True])
def test_the_last_iterate_is_within_the_tolerance_of_the_optimum(case, weighted):
    X, y, weight = sample(3, weighted=weighted)
    for C in (0.1, 10.0):
        result = solve(CuttingPlane(1e-3), case, X, y, C, weight)
        assert result.converged
        assert "CuttingPlane converged: violation" in result.message
        optimum = case.optimum(X, y, C, weight)
        assert result.objective == pytest.approx(case.objective(result.w, X, y, C, weight))
        assert result.objective - result.gap <= optimum.primal + 1e-6 * C
        assert result.gap <= 1e-3 * C * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(0.0, 0.3), (0.1, 0.4), (0.0, 1.0)]), st.floats(1e-4, 100.0))
def test_rows_in_another_order_give_the_same_objective(seed, window, C):
    X, y, weight = sample(seed, n=20, d=3, weighted=True)
    order = np.random.default_rng(seed).permutation(y.size)
    case = tight(*window)
    one = solve(CuttingPlane(1e-3), case, X, y, C, weight)
    two = solve(CuttingPlane(1e-3), case, X[order], y[order], C, weight[order])
    bound = 1e-3 * C
    assert one.objective == pytest.approx(two.objective, abs=2 * bound)
    assert max(one.gap, two.gap) <= bound * (1 + 1e-9)


def collapsing(seed=0, n=400):
    """Classes that overlap so much that zero weights are optimal in [0, 0.1]."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4 == 0
    X = rng.standard_normal((n, 3))
    X[:, 0] += 1.2 * y
    return X, y


def test_where_the_loss_collapses_the_last_iterate_is_small_and_informative():
    X, y = collapsing()
    case, C = tight(0.0, 0.1), 1e-5
    exact = solve(SmoothedNewton(), case, X, y, C)
    assert not exact.w.any()
    result = solve(CuttingPlane(1e-4), case, X, y, C)
    assert result.converged
    assert result.objective > exact.objective
    assert result.objective - exact.objective <= C * 1e-4
    assert 0 < np.linalg.norm(result.w) < 1e-4
    assert result.w[0] > 2 * np.abs(result.w[1:]).max()


def test_a_minimizer_that_cancels_to_rounding_error_is_zero():
    X, y = collapsing()
    result = solve(CuttingPlane(1e-4), tight(0.0, 0.1), X, y, 10.0)
    assert result.converged
    np.testing.assert_array_equal(result.w, 0.0)


def test_the_trace_has_one_entry_per_iteration_and_the_last_is_the_result():
    X, y, _ = sample(1)
    seen = []
    result = solve(CuttingPlane(1e-4), HINGE, X, y, 10.0, callback=seen.append)
    assert seen == result.trace
    assert len(seen) == result.n_iter
    assert seen[-1].objective == result.objective
    bounds = [progress.bound for progress in seen]
    assert bounds == sorted(bounds)
    assert [progress.passes for progress in seen[:2]] == [1, 3]  # zero weights have known scores


def test_an_unfinished_run_returns_its_last_iterate_and_says_so():
    X, y, _ = sample(1)
    result = solve(CuttingPlane(1e-6, max_iter=4), HINGE, X, y, 10.0)
    assert not result.converged
    assert result.n_iter == 4
    assert "did not reach its tolerance: violation" in result.message
    assert "tol=1e-06; raise max_iter or tol, or lower C" in result.message
    assert result.objective == pytest.approx(HINGE.objective(result.w, X, y, 10.0))


def test_a_start_is_the_place_of_the_first_constraint():
    X, y, _ = sample(1)
    start = a_start(X, 3.0)
    plain, warm = (solve(CuttingPlane(1e-4), HINGE, X, y, 10.0, w0=w0) for w0 in (None, start))
    assert warm.objective == pytest.approx(plain.objective, abs=2e-3)
    _, coefficients = HINGE.loss.bind(y).value_and_gradient(X @ start)
    first = solve(CuttingPlane(1e-4, max_iter=1), HINGE, X, y, 1e-3, w0=start)
    np.testing.assert_allclose(first.w, -1e-3 * X.T @ coefficients)


def test_what_it_does_not_support():
    X, y, _ = sample(1)
    with pytest.raises(ValueError, match="CuttingPlane requires a convex loss; got BoundHinge"):
        solve(CuttingPlane(), DIFFERENCE, X, y, 1.0)
    with pytest.raises(ValueError, match="CuttingPlane requires the penalty SquaredL2; got L2Ball"):
        CuttingPlane().solve(as_operator(X), HINGE.loss.bind(y), L2Ball(1.0))


class Margin(BoundLoss):
    """A loss that falls without end."""

    def value_and_gradient(self, scores):
        direction = np.where(self.is_negative, 1.0, -1.0) / self.n_samples
        return float(direction @ scores), direction


def test_a_negative_loss_is_an_error():
    X, y, _ = sample(1)
    with pytest.raises(ValueError, match=r"requires a loss that is never negative.*got Margin with the value -"):
        CuttingPlane().solve(as_operator(X), Margin(y), SquaredL2(1.0), a_start(X) + 5 * (X[y].mean(0) - X[~y].mean(0)))


def test_a_loss_below_zero_by_a_rounding_error_is_none():
    X, y, _ = sample(1)

    class Rounded(Margin):
        def value_and_gradient(self, scores):
            return -1e-12, np.zeros(self.n_samples)

    result = CuttingPlane().solve(as_operator(X), Rounded(y), SquaredL2(1.0))
    assert result.converged
    assert abs(result.objective) <= 1e-11


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 6), st.booleans(), st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=150, deadline=None)
def test_the_small_program_is_solved(seed, size, rank, rounded, unit):
    """Also with dependent and equal cuts, from any start: no vertex lies below the tangent at the solution."""
    rng = np.random.default_rng(seed)
    rows, p = rng.standard_normal((size, rank)), rng.standard_normal(size)
    if rounded:
        rows, p = np.round(rows), np.round(p)
    Q, p = unit * rows @ rows.T, unit * p
    start = rng.dirichlet(np.ones(size)) * (rng.random(size) < 0.5)
    start = start / start.sum() if start.any() else np.eye(size)[0]
    values = [0.5 * start @ Q @ start - p @ start]
    for most in (1, 2, 3, 1000):
        a = minimize_on_simplex(Q, p, start, most)
        assert (a >= 0).all()
        assert a.sum() == pytest.approx(1.0, abs=1e-9)
        values.append(0.5 * a @ Q @ a - p @ a)
    scale = np.abs(Q).max() + np.abs(p).max()
    assert (np.diff(values) <= 1e-9 * scale).all()
    slope = Q @ a - p
    assert a @ slope - slope.min() <= 1e-8 * scale


@pytest.mark.parametrize(("seed", "rank", "size"), [(10404, 5, 14), (64092, 4, 14)])
def test_the_small_program_is_solved_if_rounding_decides_on_a_sign(seed, rank, size):
    """The cut that enters depends on the others, and the solution of the singular system has a negative weight."""
    rng = np.random.default_rng(seed)
    rng.integers(2, 6), rng.integers(rank + 3, 16)
    rows, p = rng.standard_normal((size, rank)), rng.standard_normal(size)
    rows[:, 0] += 1
    a = minimize_on_simplex(rows @ rows.T, p, np.eye(size)[0])
    slope = rows @ (rows.T @ a) - p
    assert a @ slope - slope.min() <= 1e-12


def test_a_weight_that_reaches_zero_in_the_last_step_is_zero():
    # The smallest value on the line through the two vertices is at (1.5, -0.5).
    found = minimize_on_simplex(np.eye(2), np.array([2.0, 0.0]), np.array([0.5, 0.5]), 1)
    np.testing.assert_allclose(found, [1.0, 0.0])


def test_the_small_program_ends_on_a_system_that_stays_singular():
    for start in ([0.3, 0.7], [1.0, 0.0]):
        found = minimize_on_simplex(np.zeros((2, 2)), np.zeros(2), np.array(start))
        assert found.sum() == pytest.approx(1.0)
        assert (found >= 0).all()
    np.testing.assert_allclose(minimize_on_simplex(np.zeros((3, 3)), np.zeros(3), np.full(3, 1 / 3)), 1 / 3)


def test_where_even_a_ridge_underflows_the_weights_are_equal_and_feasible():
    found = cutting_plane._on_support(np.zeros((3, 3)), np.full(3, 1e-310), np.arange(3), 0.0)
    np.testing.assert_allclose(found, 1 / 3)


def test_dependent_cuts_do_not_stop_the_quadratic_program():
    """A cut enters in the span of the others, with the wrong sign after rounding."""
    X, y, weight = sample(135, n=30, d=3, weighted=True)
    order = np.random.default_rng(135).permutation(y.size)
    C = 79.05124236270716
    result = solve(CuttingPlane(1e-3), tight(0.1, 0.4), X[order], y[order], C, weight[order])
    assert result.gap <= 1e-3 * C


def test_cccp_with_the_published_inner_solver():
    X, y, weight = sample(4, n=60, weighted=True)
    for C in (1.0, 10.0):
        start = solve(CuttingPlane(1e-5), HINGE, X, y, C, weight).w
        certified = solve(CCCP(1e-4), DIFFERENCE, X, y, C, weight, start)
        published = solve(CCCP(1e-4, inner=CuttingPlane(1e-5)), DIFFERENCE, X, y, C, weight, start)
        assert published.converged
        assert published.objective <= DIFFERENCE.objective(start, X, y, C, weight)
        assert published.objective == pytest.approx(certified.objective, rel=2e-2)


def algorithm_4(X, y, C, w, a, b, tau):
    """The concave-convex procedure of the paper: each convex problem by a QP over constraints, until little is gained.

    Plus and minus are b/(b-a) and a/(b-a) times the tight loss of [0, b] and [0, a].
    """
    objectives = [0.5 * w @ w + C * brute.partial_auc_hinge(X @ w, y, None, a, b)[0]]
    while len(objectives) < 2 or objectives[-2] - objectives[-1] > tau:
        slope = X.T @ brute.partial_auc_tight(X @ w, y, None, 0.0, a)[1]
        w = oracles_qp.partial_auc(X, y, C * b / (b - a), None, 0.0, b, linear=-C * a / (b - a) * slope).w
        objectives.append(0.5 * w @ w + C * brute.partial_auc_hinge(X @ w, y, None, a, b)[0])
    return objectives


@pytest.mark.parametrize("tau", [1e-1, 1e-3])
@pytest.mark.parametrize("C", [1.0, 10.0])
def test_cccp_with_the_absolute_tolerance_of_the_paper(C, tau):
    X, y, _ = sample(4, n=40)
    case, start = DIFFERENCE, np.full(X.shape[1], 0.3)
    expected = algorithm_4(X, y, C, start, DIFFERENCE.loss.min_fpr, DIFFERENCE.loss.max_fpr, tau)
    result = solve(CCCP(1e-7, inner=SmoothedNewton(1e-7, 2000), tau=tau), case, X, y, C, None, start)
    found = [entry.objective for entry in result.trace]
    assert result.converged
    np.testing.assert_allclose(found, np.minimum.accumulate(expected[1:]), rtol=1e-4)


def test_the_absolute_tolerance_of_cccp_does_not_depend_on_the_objective():
    X, y, _ = sample(4, n=60)
    start = np.full(X.shape[1], 0.3)
    first = solve(CCCP(1e-4), DIFFERENCE, X, y, 100.0, None, start)
    assert first.objective > 10
    assert len(first.trace) > 1
    one = solve(CCCP(1e-4, tau=1e3), DIFFERENCE, X, y, 100.0, None, start)
    assert one.converged
    assert len(one.trace) == 1
    stopped = solve(CCCP(1e-4, 1, tau=1e-9), DIFFERENCE, X, y, 100.0, None, start)
    assert not stopped.converged
    assert "raise max_iter or tau" in stopped.message


def test_cccp_on_a_convex_loss_is_its_inner_solver():
    X, y, _ = sample(4)
    bound = PartialAUCHinge(0.0, 0.4).bind(y)
    inner = CuttingPlane(1e-3)
    one, two = (solver.solve(as_operator(X), bound, SquaredL2(1.0)) for solver in (CCCP(inner=inner), inner))
    np.testing.assert_array_equal(one.w, two.w)
