"""Steps towards the solution on a part of the rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from helpers.solver_cases import sample, solve, tight
from rocmax.losses import PartialAUCTight
from rocmax.operators import MatrixOperator, StandardizedOperator, as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import SmoothedNewton, acceleration
from rocmax.solvers.acceleration import draw, inclusion_probabilities, leverage
from rocmax.solvers.certified import CertifiedRun

# The part of the rows

sizes = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60).map(np.array)


@given(size=sizes, share=st.floats(0.01, 2.0))
def test_probabilities_are_proportional_up_to_one_and_have_the_sum(size, share):
    count = share * size.size
    chance = inclusion_probabilities(size, count)
    assert ((chance > 0) & (chance <= 1)).all()
    assert chance.sum() == pytest.approx(min(count, size.size))
    free = chance < 1
    ratio = chance[free] / size[free]
    if free.any():
        assert np.ptp(ratio) <= 1e-9 * ratio.max()
        # A row that is always drawn would have a probability of at least 1.
        assert (size[~free] * ratio.max() >= 1 - 1e-9).all()


@given(chance=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60).map(np.array))
def test_number_of_consecutive_rows_drawn_is_close_to_the_sum_of_their_probabilities(chance):
    drawn = np.zeros(chance.size)
    drawn[draw(chance)] = 1.0
    assert (drawn[chance == 1.0] == 1.0).all()
    excess = np.concatenate([[0.0], np.cumsum(drawn - chance)])
    assert np.ptp(excess) <= 1.0 + 1e-9


@pytest.mark.parametrize("form", ["dense", "csr", "standardized"])
def test_leverage_is_the_sum_of_squares_in_units_of_their_means(form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((45_000, 4)) * [1.0, 10.0, 0.1, 1.0]
    X[:, 3] = rng.random(45_000) < 0.01
    operator, rows = MatrixOperator(X), X
    if form == "csr":
        operator = MatrixOperator(sparse.csr_array(X))
    elif form == "standardized":
        operator = StandardizedOperator(X, X.mean(axis=0), X.std(axis=0))
        rows = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = (rows**2 / (rows**2).mean(axis=0)).sum(axis=1)
    np.testing.assert_allclose(leverage(operator.rows, 45_000), expected, rtol=1e-9)


def test_leverage_of_a_feature_that_the_sample_of_rows_does_not_show_is_large():
    X = np.ones((120_000, 2))
    X[:, 1] = 0.0
    X[1, 1] = 5.0  # not among the 50,000 rows at equal distances
    found = leverage(MatrixOperator(X).rows, 120_000)
    assert found[1] == 26.0
    assert (np.delete(found, 1) == 1.0).all()


# The steps


@pytest.fixture
def early(monkeypatch):
    """Begin with the first iteration, also on small samples, with a part of a third of the rows."""
    rules = replace(acceleration.RULES, rows=0, after=1, far=0.0, share=0.3, least=20, iterations=10)
    monkeypatch.setattr(acceleration, "RULES", rules)
    taken = []
    step = CertifiedRun.part_step

    def counted(run, parts):
        taken.append(step(run, parts))
        return taken[-1]

    monkeypatch.setattr(CertifiedRun, "part_step", counted)
    return taken


@pytest.mark.parametrize(
    "case", [tight(0, 1, 0.8), tight(0, 1, 0.55), tight(0, 0.3, 0.5), tight(0, 0.3)], ids=lambda case: case.name
)
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_optimum_and_certificate(early, case, C, weighted):
    _, y, weight = sample(1, 80, weighted=weighted)
    X = np.random.default_rng(2).standard_normal((80, 3)) + 2.0 * y[:, None]
    found = case.optimum(X, y, C, weight)
    above = case.objective(found.w, X, y, C, weight)
    for form in (np.asarray, sparse.csr_array):
        result = solve(SmoothedNewton(), case, form(X), y, C, weight)
        assert result.converged
        assert found.dual * (1 - 1e-8) <= result.objective <= found.dual + 1.001e-3 * result.objective
        assert max(entry.bound for entry in result.trace) <= above * (1 + 1e-10)
    assert sum(early) > 0


def rare_features(n=40_000, seed=0):
    """Rows with binary features, some of them rare, in units of their standard deviations."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    rate = np.geomspace(2e-4, 0.3, 30)
    shown = rng.random((n, 30)) < rate * np.where(y[:, None], rng.uniform(0.5, 2.0, 30), 1.0)
    X = np.column_stack([shown, rng.standard_normal((n, 5)) + 0.8 * y[:, None]])
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.slow
def test_rare_features_need_few_passes(monkeypatch):
    X, y = rare_features()
    loss = PartialAUCTight(max_fpr=1.0, min_tpr=0.9).bind(y)
    by_parts = SmoothedNewton().solve(as_operator(X), loss, SquaredL2(100.0))
    monkeypatch.setattr(acceleration, "RULES", replace(acceleration.RULES, rows=10**6))
    without = SmoothedNewton().solve(as_operator(X), loss, SquaredL2(100.0))
    assert by_parts.converged
    assert without.converged
    assert abs(by_parts.objective - without.objective) <= by_parts.gap + without.gap
    assert by_parts.trace[-1].passes < without.trace[-1].passes
    bound = max(entry.bound for entry in by_parts.trace)
    assert bound <= min(by_parts.objective, without.objective)
    scores = X @ by_parts.w
    assert by_parts.objective == pytest.approx(
        0.5 * by_parts.w @ by_parts.w + 100.0 * loss.value_and_gradient(scores)[0], rel=1e-12
    )


@pytest.mark.parametrize("loss", [PartialAUCTight(0.02, 0.1), PartialAUCTight(max_fpr=1.0)], ids=["window", "no kinks"])
def test_other_losses_do_without_these_steps(early, loss):
    _, y, _ = sample(1, 150)
    X = np.random.default_rng(2).standard_normal((150, 3)) + y[:, None]
    assert SmoothedNewton().solve(as_operator(X), loss.bind(y), SquaredL2(10.0)).converged
    assert not early
