"""Solvers over balls: the contract, the certificate, and optima from a general solver."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from oracles import balls as oracles_balls
from oracles import brute
from rocmax.losses import PairwiseHinge, PairwiseSquaredHinge, PartialAUCRamp, PartialAUCStructural, PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import ElasticNetBall, GroupBall, L1Ball, L2Ball, SquaredL2
from rocmax.solvers import Progress, ProjectedSubgradient, ProximalBundle, Result, SmoothedNewton
from rocmax.solvers.proximal_bundle import ConstrainedBundle

BALLS = {
    "l2": lambda r=1.0: L2Ball(r),
    "l1": lambda r=1.0: L1Ball(r),
    "elastic": lambda r=1.0: ElasticNetBall(r, 0.4),
    "group": lambda r=1.0: GroupBall(r, [0, 0, 1, 1], 4),
}
LOSSES = {
    "hinge": PairwiseHinge(),
    "squared-hinge": PairwiseSquaredHinge(),
    "tight": PartialAUCTight(0, 0.3),
    "tight-inner": PartialAUCTight(0.2, 0.5),
    "structural": PartialAUCStructural(0.1, 0.4),
}
every_ball = pytest.mark.parametrize("make", BALLS.values(), ids=BALLS)
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
# The slow method gets a tolerance that it can meet.
SOLVERS = {"bundle": ProximalBundle(), "subgradient": ProjectedSubgradient(tol=0.1, max_iter=20000)}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def sample(seed, n=45, d=4, signal=1.0, weighted=False):
    """Two overlapping classes, some entries zero, weights with zeros and fractions."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    y[:2] = True, False
    X = rng.standard_normal((n, d)) + signal * y[:, None] * rng.random(d)
    X[rng.random((n, d)) < 0.4] = 0.0
    weight = rng.integers(0, 4, n) * rng.choice([0.5, 1.0, 1.3], n) if weighted else None
    if weighted:
        weight[:2] = 1.0
    return X, y, weight


def solve(solver, loss, X, y, ball, weight=None, w0=None, callback=None) -> Result:
    return solver.solve(as_operator(X), loss.bind(y, weight), ball, w0, callback)


# Contract


@every_solver
@every_ball
@every_loss
def test_result_tells_what_the_trace_tells(solver, make, loss):
    X, y, weight = sample(1, weighted=True)
    seen = []
    ball = make(0.5)
    result = solve(solver, loss, X, y, ball, weight, callback=seen.append)
    assert result.converged is True
    assert seen == result.trace
    assert all(type(entry) is Progress for entry in seen)
    assert result.n_iter == len(result.trace) >= 1
    assert result.objective == result.trace[-1].objective
    assert result.gap == pytest.approx(max(result.objective - result.trace[-1].bound, 0.0), abs=1e-15)
    assert result.gap <= solver.tol * result.objective
    assert ball.value(result.w) <= ball.radius * (1 + 1e-9)
    assert result.objective == pytest.approx(loss.bind(y, weight).value_and_gradient(X @ result.w)[0], rel=1e-9)
    assert type(solver).__name__ in result.message
    assert "not" not in result.message


@every_solver
@every_ball
def test_objectives_never_rise_bounds_never_fall_and_passes_are_honest(solver, make):
    class Counted:
        def __init__(self, X):
            self._operator, self.shape, self.calls = as_operator(X), X.shape, 0

        def matvec(self, w):
            self.calls += 1
            return self._operator.matvec(w)

        def rmatvec(self, c):
            self.calls += 1
            return self._operator.rmatvec(c)

        def rows(self, index):
            return self._operator.rows(index)

    X, y, _ = sample(2)
    operator = Counted(X)
    claims = []
    bound = PartialAUCTight(0, 0.3).bind(y)
    trace = solver.solve(
        operator, bound, make(2.0), np.ones(4), lambda entry: claims.append((entry.passes, operator.calls))
    ).trace
    assert all(claimed == counted for claimed, counted in claims)
    assert (np.diff([entry.objective for entry in trace]) <= 0).all()
    assert (np.diff([entry.bound for entry in trace]) >= 0).all()
    assert (np.diff([entry.passes for entry in trace]) > 0).all()


@every_solver
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_errors_in_the_callback_reach_the_caller(solver, error):
    X, y, _ = sample(0)

    def callback(entry):
        raise error

    with pytest.raises(error):
        solve(solver, PairwiseHinge(), X, y, L1Ball(1.0), callback=callback)


@every_solver
@every_ball
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_runs_repeat_bit_for_bit_and_write_nothing(solver, make, form):
    X, y, weight = sample(8, n=100, weighted=True)
    X = form(X)
    w0 = np.array([1.0, -1.0, 2.0, 0.0])
    for array in (w0, y, weight, X.data if sparse.issparse(X) else X):
        array.flags.writeable = False
    short = replace(solver, max_iter=200)
    one, two = (solve(short, PartialAUCTight(0, 0.3), X, y, make(), weight, w0) for _ in range(2))
    np.testing.assert_array_equal(one.w, two.w)
    assert one.trace == two.trace
    assert not np.shares_memory(one.w, w0)


@every_solver
@pytest.mark.parametrize("max_iter", [1, 5])
def test_a_run_that_is_too_short_says_so(solver, max_iter):
    X, y, _ = sample(5)
    short = type(solver)(tol=1e-9, max_iter=max_iter)
    result = solve(short, PartialAUCTight(0, 0.3), X, y, L1Ball(3.0))
    assert result.converged is False
    assert result.n_iter == len(result.trace) == max_iter
    assert result.gap > 1e-9 * result.objective
    for part in (type(solver).__name__, "tol=1e-09", "max_iter"):
        assert part in result.message


@every_solver
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("max_iter", [1, 3])
def test_never_ends_above_the_start(solver, scale, max_iter):
    for seed in range(4):
        X, y, _ = sample(seed)
        w0 = scale * np.random.default_rng(seed).standard_normal(4)
        loss, ball = PartialAUCTight(0, 0.3), L1Ball(2.0)
        result = solve(type(solver)(max_iter=max_iter), loss, X, y, ball, w0=w0)
        start = brute.partial_auc_tight(X @ ball.project(w0), y, None, min_fpr=0.0, max_fpr=0.3)[0]
        assert result.objective <= start * (1 + 1e-12)


@every_solver
def test_losses_that_are_not_convex_are_refused(solver):
    X, y, _ = sample(0)
    with pytest.raises(ValueError, match=f"{type(solver).__name__} requires a convex loss"):
        solve(solver, PartialAUCRamp(0, 0.4), X, y, L1Ball(1.0))


# Optima


@every_ball
@pytest.mark.parametrize("radius", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("max_fpr", [0.3, 1.0])
def test_optimum_is_that_of_a_general_solver(make, radius, max_fpr):
    for seed in range(2):
        X, y, _ = sample(seed, n=24)
        ball = make(radius)
        result = solve(ProximalBundle(tol=1e-7), PartialAUCTight(0, max_fpr), X, y, ball)
        other = ball.project(oracles_balls.minimum_in_ball(ball, X, y, max_fpr))
        value = brute.partial_auc_tight(X @ other, y, None, min_fpr=0.0, max_fpr=max_fpr)[0]
        assert result.converged
        assert result.objective == pytest.approx(value, rel=1e-6)
        assert result.objective - result.gap <= value * (1 + 1e-9)


@every_ball
@every_loss
def test_both_solvers_meet_within_their_gaps(make, loss):
    X, y, weight = sample(6, n=120, weighted=True)
    one = solve(ProximalBundle(tol=1e-6), loss, X, y, make(0.7), weight)
    two = solve(ProjectedSubgradient(tol=0.02, max_iter=20000), loss, X, y, make(0.7), weight)
    assert one.converged
    assert two.converged
    assert one.objective - one.gap <= two.objective * (1 + 1e-12)
    assert two.objective - two.gap <= one.objective * (1 + 1e-12)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("loss", [PairwiseHinge(), PartialAUCTight(0, 0.3), PartialAUCTight(0.1, 0.4)], ids=repr)
def test_ball_of_the_penalised_solution_has_the_same_solution(loss, C):
    X, y, _ = sample(3, n=400, d=6, signal=2.0)
    bound = loss.bind(y)
    penalized = SmoothedNewton(tol=1e-7).solve(as_operator(X), bound, SquaredL2(C))
    radius = float(np.linalg.norm(penalized.w))
    assert radius > 0
    held = ProximalBundle(tol=1e-7, max_iter=2000).solve(as_operator(X), bound, L2Ball(radius))
    value = bound.value_and_gradient(X @ penalized.w)[0]
    # No point of the ball has a loss that is lower by more than the penalized gap, nor is ours higher than by its own.
    assert -penalized.gap / C <= held.objective - value + 1e-12
    assert held.objective - value <= held.gap + 1e-12
    # The penalized objective is strongly convex, so the weights are near too.
    assert np.linalg.norm(held.w - penalized.w) <= 2 * np.sqrt(2 * (C * held.gap + penalized.gap)) + 1e-9


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(list(BALLS)), log_radius=st.floats(-2, 2))
def test_the_bound_is_below_the_loss_of_every_point(seed, name, log_radius):
    X, y, weight = sample(seed, n=30, weighted=True)
    ball, bound = BALLS[name](10.0**log_radius), PartialAUCTight(0, 0.4).bind(y, weight)
    result = ProximalBundle(max_iter=20).solve(as_operator(X), bound, ball)
    rng = np.random.default_rng(seed)
    for w in (*(3.0 * ball.radius * rng.standard_normal((30, 4))), result.w):
        value = bound.value_and_gradient(X @ ball.project(w))[0]
        assert result.trace[-1].bound <= value * (1 + 1e-9) + 1e-12


def test_bundle_keeps_its_bound_when_it_runs_out_of_room():
    X, y, _ = sample(1, n=300, d=4)
    bound, ball = PartialAUCTight(0, 0.2).bind(y), L1Ball(3.0)
    small, w = ConstrainedBundle(ball, 4, max_cuts=6), np.zeros(4)
    bounds, best = [], np.inf
    for _ in range(40):
        value, coefficients = bound.value_and_gradient(X @ w)
        small.add(X.T @ coefficients, value - coefficients @ (X @ w))
        best = min(best, value)
        w = small.improve(w, best)
        bounds.append(small.bound)
    full = ProximalBundle(tol=1e-8).solve(as_operator(X), bound, ball)
    assert (np.diff(bounds) >= 0).all()
    assert bounds[-1] <= full.objective * (1 + 1e-12)


def test_separable_data_end_at_zero_loss():
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.3
    X = rng.standard_normal((60, 200))
    X[:, 0] += 4 * y
    for ball in (L1Ball(50.0), L2Ball(20.0), ElasticNetBall(50.0, 0.3)):
        result = solve(ProximalBundle(), PartialAUCTight(0, 0.2), X, y, ball)
        assert result.converged
        assert result.objective <= 1e-5


def test_zero_loss_is_certified_up_to_rounding():
    X, y = np.array([[2.0], [1.8], [0.0], [-1.0]]), np.array([True, True, False, False])
    for make in (L1Ball, L2Ball):
        result = solve(ProximalBundle(), PairwiseHinge(), X, y, make(5.0))
        assert result.converged
        assert result.objective == 0.0
        assert result.gap <= 1e-13


def test_collapse_is_certified():
    rng = np.random.default_rng(0)
    y = rng.random(1000) < 0.3
    X = rng.standard_normal((1000, 4)) + 0.5 * y[:, None]
    for make in BALLS.values():
        result = solve(ProximalBundle(), PartialAUCTight(0, 0.05), X, y, make(2.0))
        assert result.converged
        assert not result.w.any()
        assert result.objective == pytest.approx(1.0)


# Sparsity and work


def test_the_features_that_matter_are_found():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 200))
    y = X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(3000) > 3.0
    loss = PartialAUCTight(0, 0.1)
    used = np.flatnonzero(solve(ProximalBundle(), loss, X, y, L1Ball(0.7)).w)
    assert set(used) >= set(range(5))
    assert used.size <= 15
    ball = GroupBall(0.7, np.arange(200) // 5, 200)
    result = solve(ProximalBundle(), loss, X, y, ball)
    assert ball.n_used(result.w) == 1
    assert result.w[:5].all()


@pytest.mark.parametrize("ball", [L1Ball(1.0), L2Ball(0.5), ElasticNetBall(1.0, 0.5)], ids=repr)
def test_far_fewer_passes_than_the_steps_of_the_paper(ball):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 30)) * np.linspace(0.3, 2.0, 30)
    y = X[:, :10].sum(axis=1) + rng.standard_normal(5000) > 4.0
    bound = PartialAUCTight(0, 0.1).bind(y)
    ours = ProximalBundle().solve(as_operator(X), bound, ball)
    passes = ours.trace[-1].passes
    assert ours.converged
    step = ball.radius / (10.0 if isinstance(ball, L2Ball) else 100.0)
    slow = ProjectedSubgradient(max_iter=5 * passes // 2, learning_rate=step).solve(as_operator(X), bound, ball)
    assert not slow.converged
    assert passes <= 80


def test_memory_is_that_of_the_non_zeros():
    rng = np.random.default_rng(0)
    places = rng.integers(400, size=200_000), rng.integers(50_000, size=200_000)
    X = sparse.csr_array((rng.random(200_000), places), shape=(400, 50_000))
    y = rng.random(400) < 0.1
    bound = PartialAUCTight(0, 0.1).bind(y)
    tracemalloc.start()
    result = ProximalBundle(max_iter=15).solve(as_operator(X), bound, ElasticNetBall(1.0, 0.01))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.w.any()
    # The dense matrix would take 160 MB; the cuts, 80 weight vectors, take 32 MB.
    assert peak < 80e6
