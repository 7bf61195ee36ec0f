"""The contract of every solver: what it may be asked, what it hands back, and what it must not touch."""

import numpy as np
import pytest
from scipy import sparse

from helpers.solver_cases import (
    DIFFERENCE,
    HINGE,
    RAMP,
    SQUARED_HINGE,
    Case,
    a_start,
    every_convex_case,
    sample,
    solve,
    structural,
    tight,
)
from oracles import brute
from rocmax.losses import (
    BreakEven,
    FreeShift,
    GMean,
)
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import CCCP, LBFGS, OCAS, Progress, Result, SmoothedNewton


def g_mean_at_best_shift(scores, y, weight=None):
    """The G-mean loss at its best shift; its error is convex along each row, so tables end at rows."""
    return brute.at_best_shift(*brute.contingency_tables(scores, y, GMean().measure, weight)), None


def break_even(scores, y, weight=None):
    m = y.sum() if weight is None else weight[y].sum()
    return brute.top_by_filling(scores, y, m, weight), None


# Losses that have nothing but subgradients.
G_MEAN = Case("g-mean", FreeShift(GMean()), g_mean_at_best_shift)


BREAK_EVEN = Case("break-even", BreakEven(), break_even)


CERTIFIED_RUNS = [
    pytest.param(SmoothedNewton, HINGE, id="SmoothedNewton-hinge"),
    pytest.param(SmoothedNewton, SQUARED_HINGE, id="SmoothedNewton-squared-hinge"),
    pytest.param(SmoothedNewton, tight(0, 0.3), id="SmoothedNewton-tight"),
    pytest.param(SmoothedNewton, tight(0.2, 0.5), id="SmoothedNewton-tight-inner"),
    pytest.param(SmoothedNewton, structural(0.1, 0.4), id="SmoothedNewton-structural"),
    pytest.param(SmoothedNewton, SQUARED_HINGE, id="SmoothedNewton, squared hinge"),
    pytest.param(OCAS, HINGE, id="OCAS-hinge"),
    pytest.param(OCAS, tight(0.2, 0.5), id="OCAS-tight-inner"),
    pytest.param(OCAS, G_MEAN, id="OCAS-g-mean"),
    pytest.param(OCAS, BREAK_EVEN, id="OCAS-break-even"),
]


OTHER_RUNS = [
    pytest.param(CCCP, DIFFERENCE, id="CCCP"),
    pytest.param(LBFGS, DIFFERENCE, id="LBFGS-hinge"),
    pytest.param(LBFGS, RAMP, id="LBFGS-ramp"),
]


every_run = pytest.mark.parametrize(("solver", "case"), CERTIFIED_RUNS + OTHER_RUNS)


every_certified_run = pytest.mark.parametrize(("solver", "case"), CERTIFIED_RUNS)


CERTIFIED = (SmoothedNewton, OCAS)


# Result and trace


@every_run
@pytest.mark.parametrize("weighted", [False, True])
def test_result_tells_what_the_trace_tells(solver, case, weighted):
    X, y, weight = sample(1, weighted=weighted)
    result = solve(solver(), case, X, y, 20.0, weight, a_start(X))
    assert isinstance(result, Result)
    assert result.converged is True
    assert result.n_iter == len(result.trace) >= 1
    assert all(type(entry) is Progress for entry in result.trace)
    assert result.w.shape == (X.shape[1],)
    assert result.w.dtype == np.float64
    last = result.trace[-1]
    assert result.objective == last.objective
    if solver in CERTIFIED:
        assert result.gap == pytest.approx(last.objective - last.bound, rel=1e-6)
        assert result.gap <= solver().tol * result.objective
    else:
        assert np.isnan(result.gap)
        assert np.isnan([entry.bound for entry in result.trace]).all()


@every_run
@pytest.mark.parametrize("C", [0.1, 1000.0])
def test_objective_is_that_of_the_weights(solver, case, C):
    # The scores are updated along the way; their error must not show in the objective. The linear program behind the
    # objective at the best shift is solved to 1e-10 only.
    X, y, weight = sample(2, weighted=True)
    result = solve(solver(tol=1e-6), case, X, y, C, weight, a_start(X))
    assert result.objective == pytest.approx(case.objective(result.w, X, y, C, weight), rel=1e-9)


@every_run
def test_objectives_never_rise_and_passes_grow(solver, case):
    for seed, scale in ((0, 1e-3), (1, 1.0), (2, 30.0)):
        X, y, _ = sample(seed)
        trace = solve(solver(tol=1e-5), case, X, y, 50.0, w0=a_start(X, scale)).trace
        assert (np.diff([entry.objective for entry in trace]) <= 0).all()
        assert (np.diff([entry.passes for entry in trace]) > 0).all()
        assert trace[0].passes >= 1


@every_certified_run
def test_bounds_never_fall(solver, case):
    for seed, scale in ((0, 0.0), (1, 1e-3), (2, 1.0), (3, 30.0)):
        X, y, _ = sample(seed)
        # Features of different size bend the path.
        X = X * [100.0, 1.0, 10.0, 1.0]
        w0 = a_start(X, scale) if scale else None
        trace = solve(solver(tol=1e-5), case, X, y, 1000.0, w0=w0).trace
        assert (np.diff([entry.bound for entry in trace]) >= 0).all()


class Counted:
    """An operator that counts from outside what a solver claims from inside."""

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


@every_run
def test_passes_are_counted_honestly(solver, case):
    X, y, _ = sample(3)
    operator = Counted(X)
    seen = []
    solver().solve(
        operator,
        case.loss.bind(y),
        SquaredL2(10.0),
        a_start(X),
        lambda entry: seen.append((entry.passes, operator.calls)),
    )
    assert all(claimed == counted for claimed, counted in seen)


# Callback


@every_run
def test_callback_gets_every_entry_of_the_trace_once(solver, case):
    X, y, _ = sample(4)
    seen = []
    result = solve(solver(), case, X, y, 20.0, w0=a_start(X), callback=seen.append)
    assert seen == result.trace or np.isnan(result.gap)
    assert [entry[::2] for entry in seen] == [entry[::2] for entry in result.trace]
    assert all(type(entry) is Progress for entry in seen)


class StoppedError(Exception):
    pass


@every_run
@pytest.mark.parametrize("error", [StoppedError, KeyboardInterrupt])
def test_errors_in_the_callback_reach_the_caller(solver, case, error):
    X, y, _ = sample(4)

    def callback(entry):
        raise error

    with pytest.raises(error):
        solve(solver(), case, X, y, 20.0, w0=a_start(X), callback=callback)


def test_stop_iteration_in_the_callback_of_descent_reaches_the_caller():
    X, y, _ = sample(4)

    def callback(entry):
        raise StopIteration

    with pytest.raises((StopIteration, RuntimeError)):
        solve(LBFGS(), RAMP, X, y, 20.0, w0=a_start(X), callback=callback)


# Limits


@every_certified_run
def test_one_iteration_is_not_enough_and_says_so(solver, case):
    X, y, _ = sample(5)
    result = solve(solver(tol=1e-6, max_iter=1), case, X, y, 100.0)
    assert result.converged is False
    assert result.n_iter == len(result.trace) == 1
    assert result.gap > 1e-6 * result.objective
    for part in (solver.__name__, f"gap {result.gap:.3g}", "tol=1e-06", "max_iter"):
        assert part in result.message


@pytest.mark.parametrize(("solver", "case"), OTHER_RUNS)
def test_one_iteration_without_a_certificate_says_so(solver, case):
    X, y, _ = sample(5)
    result = solve(solver(tol=1e-9, max_iter=1), case, X, y, 100.0, w0=a_start(X))
    assert result.converged is False
    assert result.n_iter == len(result.trace) == 1
    for part in (solver.__name__, "tol=1e-09", "max_iter"):
        assert part in result.message


@every_run
def test_message_of_a_converged_run_does_not_complain(solver, case):
    X, y, _ = sample(5)
    message = solve(solver(), case, X, y, 1.0, w0=a_start(X)).message
    assert message.startswith(solver.__name__)
    assert "not" not in message
    assert "raise" not in message


# Starts


@every_run
@pytest.mark.parametrize("scale", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize("max_iter", [1, 3, 100])
def test_never_ends_above_the_start(solver, case, scale, max_iter):
    for seed in range(3):
        X, y, _ = sample(seed)
        w0 = a_start(X, scale, seed)
        result = solve(solver(max_iter=max_iter), case, X, y, 10.0, w0=w0)
        assert result.objective <= case.objective(w0, X, y, 10.0) * (1 + 1e-12)


@every_convex_case
@pytest.mark.parametrize("max_iter", [1, 2, 500])
def test_a_start_worse_than_zero_costs_nothing(case, max_iter):
    X, y, _ = sample(0)
    C = 10.0
    direction = X[y].mean(0) - X[~y].mean(0)
    result = solve(SmoothedNewton(max_iter=max_iter), case, X, y, C, w0=-50.0 * direction)
    assert case.objective(-50.0 * direction, X, y, C) > C
    assert result.objective <= C
    if max_iter == 500:
        cold = solve(SmoothedNewton(), case, X, y, C)
        assert result.converged
        assert abs(result.objective - cold.objective) <= max(result.gap, cold.gap)


@every_convex_case
def test_zero_start_is_no_start(case):
    X, y, _ = sample(6)
    cold = solve(SmoothedNewton(), case, X, y, 10.0)
    zero = solve(SmoothedNewton(), case, X, y, 10.0, w0=np.zeros(X.shape[1]))
    assert_same(cold, zero)


@every_convex_case
def test_a_start_at_the_optimum_needs_few_iterations(case):
    X, y, _ = sample(7, n=2000, d=8, signal=3.0)
    best = solve(SmoothedNewton(tol=1e-5), case, X, y, 1.0)
    warm = solve(SmoothedNewton(), case, X, y, 1.0, w0=best.w)
    assert best.converged
    assert warm.converged
    assert warm.n_iter <= 2
    assert warm.objective <= best.objective * (1 + 1e-12)


# No side effects


def assert_same(one, two):
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(np.array(one.trace), np.array(two.trace))
    assert (one.objective, one.n_iter, one.message) == (two.objective, two.n_iter, two.message)


@every_run
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_runs_repeat_bit_for_bit(solver, case, form):
    X, y, weight = sample(8, n=150, d=6, weighted=True)
    one_solver = solver(tol=1e-5)
    args = (case, form(X), y, 50.0, weight, a_start(X))
    first = solve(one_solver, *args)
    other_X, other_y, _ = sample(9, d=3)
    solve(one_solver, case, other_X, other_y, 1.0, w0=a_start(other_X))
    assert_same(first, solve(one_solver, *args))


@every_run
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inputs_stay_as_they_were(solver, case, dtype):
    X, y, weight = sample(8, n=150, weighted=True)
    X = X.astype(dtype)
    w0 = a_start(X)
    matrix = sparse.csr_array(X)
    given = (X, y, weight, w0, matrix.data, matrix.indices, matrix.indptr)
    before = [array.copy() for array in given]
    for array in given:
        array.flags.writeable = False
    for form in (X, matrix):
        result = solve(solver(), case, form, y, 50.0, weight, w0)
        assert not np.shares_memory(result.w, w0)
    for now, then in zip(given, before, strict=True):
        np.testing.assert_array_equal(now, then)


@every_run
def test_start_may_be_any_array_of_numbers(solver, case):
    X, y, _ = sample(6)
    expected = solve(solver(), case, X, y, 5.0, w0=np.array([1.0, -1.0, 2.0, 0.0]))
    for w0 in (np.array([1, -1, 2, 0]), np.array([1, -1, 2, 0], dtype=np.float32)):
        assert_same(expected, solve(solver(), case, X, y, 5.0, w0=w0))


# Refusals


@pytest.mark.parametrize("case", [RAMP, DIFFERENCE], ids=lambda case: case.name)
@pytest.mark.parametrize("solver", CERTIFIED)
def test_solvers_with_a_certificate_refuse_a_loss_that_is_not_convex(solver, case):
    X, y, _ = sample(0)
    with pytest.raises(ValueError, match=f"{solver.__name__} requires a convex loss.*use LBFGS, or CCCP"):
        solve(solver(), case, X, y, 1.0)


@pytest.mark.parametrize("w0", [None, np.zeros(4)])
def test_descent_refuses_to_start_from_zero(w0):
    X, y, _ = sample(0)
    with pytest.raises(ValueError, match=r"w0 of LBFGS must not be zero"):
        solve(LBFGS(), RAMP, X, y, 1.0, w0=w0)


def test_cccp_refuses_a_loss_that_is_no_difference():
    X, y, _ = sample(0)
    with pytest.raises((TypeError, ValueError), match="difference of convex"):
        solve(CCCP(), RAMP, X, y, 1.0)


@pytest.mark.parametrize("C", [0.0, -1.0, np.inf, np.nan])
def test_penalty_refuses_a_useless_weight_of_the_loss(C):
    with pytest.raises(ValueError, match="C must be a finite number > 0"):
        SquaredL2(C)
