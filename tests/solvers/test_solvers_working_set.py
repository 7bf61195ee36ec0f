"""Iterations on the positives and the negatives with the highest scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rocmax.losses import Binned, PartialAUCStructural, PartialAUCTight
from rocmax.operators import CountingOperator, StandardizedOperator, as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, SmoothedNewton, smoothed_newton
from rocmax.solvers import acceleration as _working_set
from rocmax.solvers.certified import CertifiedRun

WINDOWS = [(0.0, 0.1, 0.0), (0.02, 0.08, 0.0), (0.0, 0.1, 0.4), (0.0, 0.0731, 0.0)]

# The loss on the rows


@given(
    seed=st.integers(0, 10_000),
    window=st.sampled_from(WINDOWS),
    reach=st.floats(1.0, 3.0),
    weighted=st.booleans(),
    tied=st.booleans(),
)
def test_loss_on_the_rows_is_a_lower_bound_and_exact_where_they_were_chosen(seed, window, reach, weighted, tied):
    rng = np.random.default_rng(seed)
    y = rng.random(150) < 0.05
    y[:2] = True, False
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], 150) if weighted else np.ones(150)
    weight[:2] = 1.0
    scores = rng.integers(0, 6, 150) * 0.5 if tied else rng.standard_normal(150)
    bound = PartialAUCTight(*window).bind(y, weight)
    rows = bound.at(scores).active(reach)
    if rows is None:
        assert bound.positive.size + reach * bound.b / bound.n * bound.n_negative > 0.4 * 150
        return
    small = bound.restrict(rows)
    assert (np.diff(rows) > 0).all()
    assert np.isin(bound.positive, rows).all()
    value, gradient = bound.value_and_gradient(scores)
    small_value, part = small.value_and_gradient(scores[rows])
    assert small_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(part, gradient[rows], rtol=1e-9, atol=1e-12)
    assert not np.delete(gradient, rows).any()
    for scale in (0.1, 1.0, 10.0):
        other = scores + scale * rng.standard_normal(150)
        assert small.value_and_gradient(other[rows])[0] <= bound.value_and_gradient(other)[0] * (1 + 1e-12)
    zero = np.zeros(150)
    assert small.value_and_gradient(zero[rows])[0] == pytest.approx(bound.value_and_gradient(zero)[0], rel=1e-12)


def test_losses_that_depend_on_most_rows_have_no_working_set():
    y = np.arange(200) % 10 == 0
    scores = np.linspace(-1, 1, 200)
    assert PartialAUCTight(max_fpr=0.05).bind(y).at(scores).active(3.0) is not None
    assert PartialAUCTight(max_fpr=0.5).bind(y).at(scores).active(3.0) is None
    assert PartialAUCTight(max_fpr=1.0).bind(y).at(scores).active(3.0) is None
    assert PartialAUCStructural(max_fpr=0.05).bind(y).at(scores).active(3.0) is None
    binned = Binned(PartialAUCTight(max_fpr=0.05), 64).bind(y)
    rows = binned.at(scores).active(3.0)
    assert binned.restrict(rows).exact
    assert rows.size < 60


def test_rows_of_a_lower_bound_contain_the_positives_and_the_window():
    y = np.arange(200) % 10 == 0
    bound = PartialAUCTight(max_fpr=0.05).bind(y)
    for rows in (np.arange(100, 200), np.flatnonzero(y)):
        with pytest.raises(ValueError, match="all 20 positives, and negatives of weight 9 or more"):
            bound.restrict(rows)


# Runs


def rare_positives():
    """Return 1,500 rows, eight per cent of them positive."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1500, 5)), np.arange(1500) % 12 == 0
    X[y] += [2.5, 2.0, 1.0, 0.0, 0.0]
    return X, y


def solve(solver, X, y, loss, C, callback=None):
    return solver.solve(as_operator(X), loss.bind(y), SquaredL2(C), callback=callback)


def by_ocas(X, y, loss, C):
    return solve(OCAS(tol=1e-5, max_iter=2000), X, y, loss, C)


@pytest.fixture
def small_sets(monkeypatch):
    """Use working sets for small matrices, and count them."""
    chosen = []
    switch = CertifiedRun._switch

    def counted(run, operator, loss, w, scores):
        chosen.append(loss.n_samples)
        switch(run, operator, loss, w, scores)

    monkeypatch.setattr(_working_set, "_MIN_SIZE", 0)
    monkeypatch.setattr(CertifiedRun, "_switch", counted)
    return chosen


@pytest.mark.parametrize("form", ["dense", "float32", "csr", "standardized"])
@pytest.mark.parametrize("window", [(0.0, 0.1, 0.0), (0.02, 0.06, 0.0), (0.0, 0.08, 0.5)])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_optimum_is_that_of_all_rows(small_sets, form, window, C):
    X, y = rare_positives()
    loss = PartialAUCTight(*window)
    data = {"dense": X, "float32": X.astype(np.float32), "csr": sparse.csr_array(X)}.get(form)
    if form == "standardized":
        data = StandardizedOperator(3.0 + 2.0 * X, np.full(5, 3.0), np.full(5, 2.0))
    result = solve(SmoothedNewton(tol=1e-4), data, y, loss, C)
    assert result.converged
    assert result.w.any()
    assert small_sets[0] < 0.5 * y.size
    assert small_sets[-1] == y.size  # the objective is that of all rows
    other = by_ocas(X, y, loss, C)
    assert abs(result.objective - other.objective) <= result.gap + other.gap + 1e-6 * other.objective
    scores = as_operator(data).matvec(result.w)
    exact = 0.5 * result.w @ result.w + C * loss.bind(y).value_and_gradient(scores)[0]
    assert result.objective == pytest.approx(exact, rel=1e-6)


def test_objectives_and_bounds_of_the_trace_are_those_of_all_rows(small_sets):
    X, y = rare_positives()
    trace = []
    result = solve(SmoothedNewton(tol=1e-5), X, y, PartialAUCTight(max_fpr=0.1), 100.0, trace.append)
    assert len(small_sets) == 2
    assert trace == result.trace
    objectives, bounds = (np.array([getattr(entry, name) for entry in trace]) for name in ("objective", "bound"))
    assert (np.diff(objectives) <= 0).all()
    assert (objectives >= result.objective).all()
    assert (bounds <= result.objective).all()


def test_a_set_that_lacks_rows_is_left_for_all_rows(small_sets, monkeypatch):
    X, y = rare_positives()
    loss = PartialAUCTight(max_fpr=0.1)
    # Chosen after the first step, and without a reserve: other negatives enter the window.
    monkeypatch.setattr(_working_set, "_SET_REACH", 1.0)
    monkeypatch.setattr(_working_set, "_NEAR", 1e9)
    result = solve(SmoothedNewton(tol=1e-4), X, y, loss, 100.0)
    assert result.converged
    assert len(small_sets) == 2
    # More iterations after the first objective below that of the point where the set was chosen.
    assert sum(entry.objective < result.trace[1].objective for entry in result.trace) > 1
    other = by_ocas(X, y, loss, 100.0)
    assert abs(result.objective - other.objective) <= result.gap + other.gap


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4, 5, 6])
def test_a_run_that_ends_early_has_the_objective_of_all_rows(small_sets, monkeypatch, max_iter):
    monkeypatch.setattr(_working_set, "_NEAR", 1e9)
    X, y = rare_positives()
    loss = PartialAUCTight(max_fpr=0.1)
    result = solve(SmoothedNewton(tol=1e-9, max_iter=max_iter), X, y, loss, 100.0)
    assert result.n_iter == max_iter
    exact = 0.5 * result.w @ result.w + 100.0 * loss.bind(y).value_and_gradient(X @ result.w)[0]
    assert result.objective == pytest.approx(exact, rel=1e-9)
    assert result.objective - result.gap <= by_ocas(X, y, loss, 100.0).objective * (1 + 1e-9)


def test_rows_that_only_give_a_start_have_no_working_set(small_sets, monkeypatch):
    monkeypatch.setattr(smoothed_newton, "_MANY_ROWS_WITH_KINKS", 1000)
    X, y = rare_positives()
    result = solve(SmoothedNewton(), X, y, PartialAUCTight(max_fpr=0.1), 100.0)
    assert result.converged
    assert len(small_sets) == 2
    assert small_sets[1] == y.size


def test_a_collapse_is_found_on_the_rows(small_sets):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 4))
    y = rng.random(4000) < 0.1
    X[y] += 0.1
    result = solve(SmoothedNewton(), X, y, PartialAUCTight(max_fpr=0.05), 1.0)
    assert result.converged
    assert not result.w.any()
    assert result.objective == pytest.approx(1.0)


def test_products_with_a_part_of_the_rows_count_as_that_part():
    X = np.ones((40, 3))
    operator = CountingOperator(as_operator(X), share=0.25)
    operator.matvec(np.ones(3))
    assert (operator.count, operator.passes) == (0.25, 1)
    for _ in range(3):
        operator.rmatvec(np.ones(40))
    assert (operator.count, operator.passes) == (1.0, 1)
    operator.matvec(np.ones(3))
    assert operator.passes == 2
