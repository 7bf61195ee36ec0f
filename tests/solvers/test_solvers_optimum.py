"""Solvers against independent optima: the general conic solver, each other, SciPy, and cases known by theory."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import norm

from helpers.solver_cases import (
    CONVEX,
    HINGE,
    SQUARED_HINGE,
    every_convex_case,
    sample,
    solve,
    structural,
    tight,
)
from oracles import brute
from oracles import qp as oracles_qp
from rocmax.losses import (
    BreakEven,
    Contingency,
    FBeta,
    FreeShift,
    GMean,
    PairwiseHinge,
    PairwiseSquaredHinge,
    PartialAUCStructural,
    PartialAUCTight,
    PrecisionAtK,
)
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, SmoothedNewton

SIZES = {0: (30, 3), 1: (45, 4), 2: (60, 6)}
# Precision of the general solver; the bracket around its optimum is a little wider.
EXACT = 1e-8


@cache
def problem(case, C, weighted, seed):
    """A small sample and the ends between which its optimum lies."""
    X, y, weight = sample(seed, *SIZES[seed], weighted=weighted, signal=1.5)
    found = case.optimum(X, y, C, weight)
    # Any objective value is above the optimum, whatever the general solver thought of it.
    above = case.objective(found.w, X, y, C, weight)
    return X, y, weight, found.dual, above


# The oracle itself


@every_convex_case
@pytest.mark.parametrize("weighted", [False, True])
def test_formulation_has_the_value_of_the_loss_at_any_scores(case, weighted):
    # Without features only the scores that are given remain: the minimum is C times the loss there.
    for seed in range(4):
        rng = np.random.default_rng(seed)
        _, y, weight = sample(seed, 14, 1, weighted=weighted)
        for scores in (rng.standard_normal(14), 3 * rng.standard_normal(14), np.round(rng.standard_normal(14))):
            found = case.optimum(np.zeros((14, 1)), y, 2.0, weight, offset=scores)
            expected = 2.0 * case.slow(scores, y, weight)[0]
            assert found.dual == pytest.approx(expected, rel=1e-7, abs=1e-8)
            assert found.primal == pytest.approx(expected, rel=1e-7, abs=1e-8)


@every_convex_case
def test_general_solver_closes_its_own_gap(case):
    for C in (0.1, 10.0, 1000.0):
        for weighted in (False, True):
            *_, below, above = problem(case, C, weighted, 1)
            assert above == pytest.approx(below, rel=EXACT)


def test_formulations_of_the_same_loss_agree():
    X, y, weight = sample(0, weighted=True)
    one = oracles_qp.pairwise(X, y, 10.0, weight)
    for two in (
        oracles_qp.partial_auc(X, y, 10.0, weight),
        oracles_qp.partial_auc(X, y, 10.0, weight, structural=True),
    ):
        assert two.dual == pytest.approx(one.dual, rel=EXACT)


# Optimality and certificate


@every_convex_case
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("seed", SIZES)
def test_optimum_and_certificate(case, C, weighted, seed):
    X, y, weight, below, above = problem(case, C, weighted, seed)
    for form in (np.asarray, sparse.csr_array):
        for tol in (1e-3, 1e-6):
            result = solve(SmoothedNewton(tol=tol), case, form(X), y, C, weight)
            assert result.converged
            assert result.gap <= tol * result.objective
            assert result.objective <= below + (tol + EXACT) * result.objective
            assert result.objective >= below * (1 - EXACT)
            bounds = np.array([entry.bound for entry in result.trace])
            assert (bounds <= above * (1 + 1e-10)).all()


@pytest.mark.parametrize(
    "case", [HINGE, SQUARED_HINGE, tight(0, 0.3), tight(0.2, 0.5), structural(0.1, 0.4)], ids=lambda c: c.name
)
def test_optimum_where_the_curvature_is_a_sample(case):
    # More pairs than a solver looks at for its Newton step.
    X, y, _ = sample(3, n=170, d=4)
    assert y.sum() * (~y).sum() > 4000
    found = case.optimum(X, y, 30.0)
    for tol in (1e-3, 1e-6):
        result = solve(SmoothedNewton(tol=tol), case, X, y, 30.0)
        assert result.converged
        assert result.objective <= found.dual + (tol + EXACT) * result.objective
        assert result.objective - result.gap <= case.objective(found.w, X, y, 30.0) * (1 + 1e-10)


@pytest.mark.parametrize("case", CONVEX, ids=lambda c: c.name)
def test_certificate_holds_with_ties_and_repeated_rows(case):
    rng = np.random.default_rng(11)
    X = np.repeat(np.round(rng.standard_normal((15, 3))), 3, axis=0)
    y = rng.random(45) < 0.4
    X[y] += [1.0, 0.0, 0.0]
    for C in (1.0, 100.0):
        found = case.optimum(X, y, C)
        result = solve(SmoothedNewton(tol=1e-5), case, X, y, C)
        assert result.converged
        assert result.objective <= found.dual + (1e-5 + EXACT) * result.objective
        above = case.objective(found.w, X, y, C)
        assert max(entry.bound for entry in result.trace) <= above * (1 + 1e-10)


@pytest.mark.parametrize("case", CONVEX, ids=lambda c: c.name)
def test_single_precision_finds_the_optimum_of_its_data(case):
    X, y, weight = sample(2, 60, 5, weighted=True, signal=1.5)
    X = X.astype(np.float32)
    found = case.optimum(X, y, 10.0, weight)
    result = solve(SmoothedNewton(), case, X, y, 10.0, weight)
    assert result.converged
    assert case.objective(result.w, X, y, 10.0, weight) <= found.dual * (1 + 1.1e-3)
    assert result.objective - result.gap <= found.dual * (1 + 1e-5)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("case", [HINGE, tight(0, 0.3), tight(0.2, 0.5)], ids=lambda c: c.name)
def test_optimum_with_more_features_than_a_dense_hessian_may_have(case, form):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((24, 2100))
    X[rng.random(X.shape) < 0.9] = 0.0
    y = np.arange(24) % 3 == 0
    found = case.optimum(X, y, 1e-2)
    result = solve(SmoothedNewton(tol=1e-4), case, form(X), y, 1e-2)
    assert result.converged
    assert result.objective == pytest.approx(found.dual, rel=1.1e-4)
    assert result.objective - result.gap <= case.objective(found.w, X, y, 1e-2) * (1 + 1e-10)


@pytest.mark.parametrize(
    ("case", "n", "d", "shift", "C", "tol"),
    [(SQUARED_HINGE, 40, 7, 3.0, 1e4, 1e-3), (HINGE, 12, 36, 0.0, 1e5, 1e-4)],
    ids=["squared-hinge", "hinge"],
)
def test_certificate_where_the_optimum_is_small_next_to_the_cuts(case, n, d, shift, C, tol):
    # Separable data: the optimum stays where it is as C grows, and so must the bound.
    X, y, _ = sample(3, n, d, signal=0.0)
    X = X + shift * y[:, None]
    result = solve(SmoothedNewton(tol=tol), case, X, y, C)
    assert result.objective < 1.0
    assert result.converged


# Two solvers for one problem


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_the_squared_hinge_meets_another_solver(C, weighted, form):
    X, y, weight = sample(5, 600, 12, weighted=weighted)
    bound = PairwiseSquaredHinge().bind(y, weight)
    penalty = SquaredL2(C)

    def objective(w):
        value, coefficients = bound.value_and_gradient(X @ w)
        return 0.5 * w @ w + C * value, w + C * (X.T @ coefficients)

    other = minimize(objective, np.zeros(12), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9 * C})
    results = [
        solver.solve(as_operator(form(X)), bound, penalty)
        for solver in (*(SmoothedNewton(tol=tol) for tol in (1e-2, 1e-4, 1e-8)), OCAS(tol=1e-4))
    ]
    for one in results:
        assert one.converged
        assert -1e-12 * other.fun <= one.objective - other.fun + 1e-9 * other.fun
        assert one.objective - other.fun <= one.gap + 1e-9 * other.fun
        for two in results:
            # Each optimum lies within its own gap below its objective: the two intervals overlap.
            assert one.objective - one.gap <= two.objective * (1 + 1e-12)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_windows_that_are_the_same_loss_have_the_same_optimum(C):
    X, y, _ = sample(6, 300, 6)
    operator, penalty = as_operator(X), SquaredL2(C)
    solver = SmoothedNewton(tol=1e-5)
    one = solver.solve(operator, PairwiseHinge().bind(y), penalty)
    for loss in (PartialAUCTight(0, 1), PartialAUCStructural(0, 1)):
        two = solver.solve(operator, loss.bind(y), penalty)
        assert abs(one.objective - two.objective) <= max(one.gap, two.gap)


def test_integer_weights_are_repeated_rows():
    X, y, _ = sample(6, 60, 4)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    for case in CONVEX:
        one = solve(SmoothedNewton(tol=1e-6), case, X, y, 20.0, weight)
        two = solve(SmoothedNewton(tol=1e-6), case, X[rows], y[rows], 20.0)
        assert abs(one.objective - two.objective) <= max(one.gap, two.gap) + 1e-12 * one.objective


# Cutting planes, for losses of decisions


def all_cuts(loss, y):
    """Errors and coefficients of every labeling, and whether the intercept is free."""
    if isinstance(loss, FreeShift):
        return *brute.contingency_by_enumeration(y, loss.base.measure), True
    if isinstance(loss, BreakEven):
        return *brute.top_by_enumeration(y, int(y.sum()), "best"), False
    return *brute.top_by_enumeration(y, loss.k, loss.reference), False


def jaccard(tp, fp, m, n):
    return tp / (m + fp)


def name_of(loss):
    """A name that is the same in every process; that of a function is not."""
    return "FreeShift(Jaccard)" if loss == FreeShift(Contingency(jaccard)) else repr(loss)


DECISIONS = [
    *(FreeShift(FBeta(beta)) for beta in (0.3, 1, 2)),
    FreeShift(GMean()),
    FreeShift(Contingency(jaccard)),
    BreakEven(),
    *(PrecisionAtK(k) for k in (2, 6)),
    PrecisionAtK(2, "positives"),
]


@pytest.mark.parametrize("loss", DECISIONS, ids=name_of)
@pytest.mark.parametrize("C", [0.1, 10.0, 300.0])
def test_cutting_planes_against_one_constraint_for_each_labelling(loss, C):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = rng.permutation(np.repeat([True, False], [4, 6]))
        X = rng.standard_normal((10, 3)) + 0.8 * y[:, None]
        errors, coefficients, intercept = all_cuts(loss, y)
        found = oracles_qp.over_labellings(X, C, errors, coefficients, intercept)
        w = found.w[:3]
        above = 0.5 * w @ w + C * loss.bind(y).value_and_gradient(X @ w)[0]
        assert above == pytest.approx(found.dual, rel=1e-7, abs=1e-7)
        for form in (np.asarray, sparse.csr_array):
            result = OCAS(tol=1e-6).solve(as_operator(form(X)), loss.bind(y), SquaredL2(C))
            assert result.converged
            # As close as the tolerance, which counts relative to an objective of either sign.
            assert result.objective <= found.dual + (1e-6 + EXACT) * abs(result.objective) + 1e-9
            assert result.objective >= found.dual - EXACT * abs(found.dual) - 1e-9
            assert max(entry.bound for entry in result.trace) <= above + 1e-9 * (1 + abs(above))


@pytest.mark.parametrize("loss", [FreeShift(FBeta()), FreeShift(GMean()), BreakEven(), PrecisionAtK(5)], ids=repr)
def test_cutting_planes_with_weights_against_repeated_rows(loss):
    X, y, _ = sample(2, 60, 4, signal=2.0)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    for C in (1.0, 50.0):
        solver = OCAS(tol=1e-5)
        one = solver.solve(as_operator(X), loss.bind(y, weight), SquaredL2(C))
        two = solver.solve(as_operator(X[rows]), loss.bind(y[rows]), SquaredL2(C))
        assert one.converged
        assert abs(one.objective - two.objective) <= max(one.gap, two.gap) + 1e-12 * one.objective


@pytest.mark.parametrize("loss", [PairwiseHinge(), PartialAUCTight(0, 0.3), PartialAUCTight(0.2, 0.5)], ids=repr)
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_cutting_planes_meet_smoothed_newton(loss, C, weighted):
    X, y, weight = sample(5, 300, 6, weighted=weighted, signal=2.0)
    bound = loss.bind(y, weight)
    one = SmoothedNewton(tol=1e-6).solve(as_operator(X), bound, SquaredL2(C))
    for tol in (1e-2, 1e-4):
        two = OCAS(tol=tol).solve(as_operator(X), bound, SquaredL2(C))
        assert two.converged
        assert two.gap <= tol * two.objective
        # Each optimum lies within its own gap below its objective: the two intervals overlap.
        assert one.objective - one.gap <= two.objective * (1 + 1e-12)
        assert two.objective - two.gap <= one.objective * (1 + 1e-12)


# Collapse


def gaussians(auc, n=2000, d=4, seed=0, share=0.3):
    """Unit Gaussians whose best direction has this AUC."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return rng.standard_normal((n, d)) + y[:, None] * np.sqrt(2.0 / d) * norm.ppf(auc), y


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "loss", [PartialAUCTight(0, 0.05), PartialAUCTight(0.01, 0.05), PartialAUCStructural(0, 0.05)], ids=repr
)
def test_collapse_ends_at_zero_weights_exactly(loss, form, C):
    X, y = gaussians(0.8)
    result = SmoothedNewton().solve(as_operator(form(X)), loss.bind(y), SquaredL2(C))
    assert result.converged
    assert not result.w.any()
    assert result.objective == pytest.approx(C, rel=1e-12)
    assert 0 <= result.gap <= 1e-3 * C


def test_no_collapse_where_the_positives_are_above_the_window():
    X, y = gaussians(0.98)
    result = SmoothedNewton().solve(as_operator(X), PartialAUCTight(0, 0.05).bind(y), SquaredL2(10.0))
    assert result.converged
    assert result.objective < 9.0


@pytest.mark.parametrize("loss", [PartialAUCTight(0, 0.05), PartialAUCTight(0.01, 0.05)], ids=repr)
def test_collapse_in_single_precision(loss):
    # Near zero weights the scores all but tie, and the curvature outgrows single precision.
    for seed in range(8):
        X, y = gaussians(0.8, n=60, seed=seed)
        for C in (1.0, 100.0, 1e4):
            result = SmoothedNewton().solve(as_operator(X.astype(np.float32)), loss.bind(y), SquaredL2(C))
            assert result.converged
            assert not result.w.any()


@pytest.mark.parametrize(
    "change", [np.round, lambda X: X * [1e3, 1.0, 1.0, 1e-2]], ids=["rounded", "differently-scaled"]
)
def test_small_samples_near_collapse_end_with_a_result(change):
    case = tight(0, 0.05)
    for seed in range(28):
        X, y = gaussians(0.8, n=30, seed=seed)
        result = solve(SmoothedNewton(), case, change(X), y, 1e4)
        assert result.objective <= 1e4 * (1 + 1e-12)
        # Scores of this size carry errors that the steps along the way add up.
        assert result.objective == pytest.approx(case.objective(result.w, change(X), y, 1e4), rel=1e-7)


def test_certificate_with_one_large_feature():
    for seed in range(5):
        X, y = gaussians(0.8, n=30, seed=seed)
        assert solve(SmoothedNewton(), tight(0, 0.05), X * [1e3, 1.0, 1.0, 1e-2], y, 1e4).converged


# Work


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.1), (0.02, 0.05)])
@pytest.mark.parametrize(("C", "most"), [(1.0, 25), (100.0, 25), (1e4, 50)])
def test_passes_over_the_data(low, high, C, most):
    X, y = gaussians(0.967, n=20_000, d=30, share=0.2)
    result = SmoothedNewton().solve(as_operator(X), PartialAUCTight(low, high).bind(y), SquaredL2(C))
    assert result.converged
    assert result.w.any()
    assert result.trace[-1].passes <= most


# In these samples, weights beyond the window from a difference of sums had the wrong sign.
@pytest.mark.parametrize("seed", [71, 120, 237, 251])
def test_structural_loss_with_fractional_weights_reaches_the_optimum(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((25, 5)), rng.standard_normal(25) > 0.5
    y[:2] = True, False
    weight = rng.random(25)
    bound, penalty = PartialAUCStructural(0.0, 0.9).bind(y, weight), SquaredL2(1.0)
    result = SmoothedNewton().solve(as_operator(X), bound, penalty)
    least = oracles_qp.partial_auc(X, y, 1.0, weight, max_fpr=0.9, structural=True)
    assert result.converged
    assert result.objective == pytest.approx(least.primal, rel=1.5e-3)
    assert result.objective - result.gap <= least.primal * (1 + 1e-8)
    value, _ = brute.partial_auc_structural(X @ result.w, y, weight, max_fpr=0.9)
    assert result.objective == pytest.approx(penalty.value(result.w) + value, rel=1e-9)
