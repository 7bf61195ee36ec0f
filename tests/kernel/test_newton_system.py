"""Newton systems on a part of the Gram matrix: against dense algebra on the whole."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import pairwise_kernels

from rocmax.kernel import qp
from rocmax.kernel.maps import Kernel
from rocmax.kernel.qp import GramNewton, GramSystem, ListedPairs, PairNewtonRules, SortedPairs


def system(seed, n=120, n_moving=40, strength=1.0):
    """A Gram matrix, a slope on some rows as a matrix of all of them, those rows, and a right side."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    gram = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    rows = np.sort(rng.permutation(n)[:n_moving])
    factor = rng.standard_normal((n_moving, n_moving))
    slope = np.zeros((n, n))
    slope[np.ix_(rows, rows)] = strength * factor @ factor.T / n_moving
    return gram, slope, rows, rng.standard_normal(n)


def on_rows(slope, rows):
    block = slope[np.ix_(rows, rows)]
    return lambda v: v @ block


@pytest.mark.parametrize("n_moving", [0, 1, 40, 71, 72, 73, 120])
def test_elimination_solves_the_whole_system(n_moving, monkeypatch):
    monkeypatch.setattr("rocmax.kernel.qp.RULES", PairNewtonRules(cg_rtol=0.0))
    gram, slope, moving, right = system(0, n_moving=n_moving)
    solver = GramSystem(gram)
    rows = solver.cover(moving)
    assert rows.size == (n_moving if n_moving <= 72 else 120)
    found, scores = solver.solve(on_rows(slope, rows), right, gram @ right)
    np.testing.assert_allclose(found, np.linalg.solve(np.eye(120) + slope @ gram, right), atol=1e-9)
    np.testing.assert_allclose(scores, gram @ found, atol=1e-9)


@pytest.mark.parametrize("strength", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("steps", [1, 3, 200])
def test_conjugate_gradients_on_a_part_are_those_on_the_whole(strength, steps, monkeypatch):
    rules = PairNewtonRules(most_eliminated=0, cg_iterations=steps, cg_rtol=1e-6)
    monkeypatch.setattr("rocmax.kernel.qp.RULES", rules)
    gram, slope, moving, right = system(1, strength=strength)
    found = {}
    for name, rows in (("part", moving), ("whole", np.arange(120))):
        solver = GramSystem(gram)
        held = solver.cover(rows)
        found[name], scores = solver.solve(on_rows(slope, held), right, gram @ right)
        np.testing.assert_allclose(scores, gram @ found[name], atol=1e-8)
        # Every iterate goes downhill, however early the steps end.
        assert right @ scores > 0
    # Rounding adds up over many steps; few ones agree to the last digits.
    np.testing.assert_allclose(gram @ found["part"], gram @ found["whole"], atol=1e-9 if steps < 10 else 1e-4)


def test_conjugate_gradients_end_at_their_tolerance(monkeypatch):
    rules = PairNewtonRules(most_eliminated=0, cg_iterations=500, cg_rtol=1e-4)
    monkeypatch.setattr("rocmax.kernel.qp.RULES", rules)
    gram, slope, moving, right = system(1, strength=3.0)
    solver = GramSystem(gram)
    found, scores = solver.solve(on_rows(slope, solver.cover(moving)), right, gram @ right)
    # The tolerance is for the norm of what is left, in the metric of the Gram matrix.
    left = right - (found + slope @ scores)
    assert left @ gram @ left <= 1e-8 * (right @ gram @ right)


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**10])
def test_the_tolerance_of_conjugate_gradients_is_relative(unit, monkeypatch):
    rules = PairNewtonRules(most_eliminated=0, cg_iterations=500, cg_rtol=1e-2)
    monkeypatch.setattr("rocmax.kernel.qp.RULES", rules)
    gram, slope, moving, right = system(1, strength=3.0)
    found = []
    for scale in (1.0, unit):
        solver = GramSystem(gram)
        found.append(solver.solve(on_rows(slope, solver.cover(moving)), scale * right, scale * (gram @ right))[0])
    np.testing.assert_allclose(found[1], unit * found[0], rtol=1e-9)


def test_a_product_with_a_block_counts_as_its_part_of_the_matrix(monkeypatch):
    monkeypatch.setattr("rocmax.kernel.qp.RULES", PairNewtonRules(most_eliminated=0, cg_iterations=3, cg_rtol=0.0))
    gram, slope, moving, right = system(1)
    solver = GramSystem(gram)
    solver.solve(on_rows(slope, solver.cover(moving)), right, gram @ right)
    # Three iterations with a third of the rows, and one product with the whole matrix.
    assert solver.products == pytest.approx(3 / 9 + 1)


@pytest.mark.parametrize(("most", "is_exact"), [(39, False), (40, True)])
def test_elimination_is_for_at_most_as_many_rows_as_its_limit(most, is_exact, monkeypatch):
    rules = PairNewtonRules(most_eliminated=most, cg_iterations=2, cg_rtol=0.0)
    monkeypatch.setattr("rocmax.kernel.qp.RULES", rules)
    gram, slope, moving, right = system(0, strength=10.0)
    solver = GramSystem(gram)
    found, _ = solver.solve(on_rows(slope, solver.cover(moving)), right, gram @ right)
    assert np.allclose(found, np.linalg.solve(np.eye(120) + slope @ gram, right), atol=1e-9) == is_exact


def test_a_system_that_gradients_solve_at_once_is_not_eliminated(monkeypatch):
    monkeypatch.setattr("rocmax.kernel.qp.solve_system", None)
    gram, slope, moving, right = system(1, strength=1e-3)
    solver = GramSystem(gram)
    found, scores = solver.solve(on_rows(slope, solver.cover(moving)), right, gram @ right)
    left = right - (found + slope @ scores)
    assert left @ gram @ left <= 0.3**2 * (right @ gram @ right)


@pytest.mark.parametrize("most", [0, 1600])
def test_nothing_is_solved_for_where_nothing_is_left(most, monkeypatch):
    monkeypatch.setattr("rocmax.kernel.qp.RULES", PairNewtonRules(most_eliminated=most))
    gram, slope, moving, right = system(3)
    solver = GramSystem(gram)
    rows = solver.cover(moving)
    for found in solver.solve(on_rows(slope, rows), 0 * right, 0 * right):
        np.testing.assert_array_equal(found, np.zeros(120))


@pytest.mark.parametrize("ratio", [0.9, 0.5])
def test_a_step_to_a_smaller_width_solves_the_problem_there_if_the_free_multipliers_stay(ratio, monkeypatch):
    monkeypatch.setattr("rocmax.kernel.qp.RULES", PairNewtonRules(cg_rtol=0.0))
    rng = np.random.default_rng(0)
    gram = Kernel("rbf", 0.3, 3, 0.0).gram(rng.standard_normal((30, 3)))
    pairs, C = SortedPairs(np.arange(30) % 3 == 0), 1e-3
    run = qp._PairNewton(gram, pairs, C)

    def is_solved():
        return np.allclose(run.beta, C * pairs.soft(run.scores, run.width).rows, rtol=1e-9, atol=1e-12)

    # With so small a C, the multipliers of all pairs are free, and one step solves the problem.
    run.certify()
    step, along = run.system.solve(run._slope(), run.target, run.target_scores)
    run._move(step, along, -float(run.target @ along))
    run.certify()
    assert is_solved()
    assert run._follow(ratio)
    assert run.width == 4.0 * ratio
    assert is_solved()


@pytest.mark.parametrize("ratio", [0.9, 0.5])
def test_a_step_to_a_smaller_width_from_elsewhere_solves_the_problem_there(ratio, monkeypatch):
    monkeypatch.setattr("rocmax.kernel.qp.RULES", PairNewtonRules(cg_rtol=0.0))
    rng = np.random.default_rng(0)
    gram = Kernel("rbf", 0.3, 3, 0.0).gram(rng.standard_normal((30, 3)))
    pairs, C = SortedPairs(np.arange(30) % 3 == 0), 1e-3
    run = qp._PairNewton(gram, pairs, C)
    run.beta = 0.02 * rng.standard_normal(30)
    run.scores = gram @ run.beta
    run.soft = pairs.soft(run.scores, run.width)
    run.certify()
    assert run._follow(ratio)
    # The multipliers of all pairs are free before and after, so that one step is enough.
    np.testing.assert_allclose(run.beta, C * pairs.soft(run.scores, 4.0 * ratio).rows, rtol=1e-9, atol=1e-12)


def smoothed(gram, positive, C, beta, width):
    """The objective with a smoothed hinge, by a table of the pairs."""
    scores = gram @ beta
    t = 1.0 - (scores[positive][:, None] - scores[~positive])
    hinge = np.where(t < width, np.maximum(t, 0.0) ** 2 / (2 * width), t - width / 2)
    return 0.5 * beta @ scores + C * hinge.sum()


@pytest.mark.parametrize("follows", [False, True])
def test_a_search_along_a_step_starts_from_the_slope_of_the_smoothed_objective(follows, monkeypatch):
    rng = np.random.default_rng(0)
    gram, positive, C = Kernel("rbf", 0.3, 3, 0.0).gram(rng.standard_normal((30, 3))), np.arange(30) % 3 == 0, 0.05
    run = qp._PairNewton(gram, SortedPairs(positive), C)
    run.beta = 0.2 * rng.standard_normal(30)
    run.scores = gram @ run.beta
    run.soft = run.pairs.soft(run.scores, run.width)
    run.certify()
    moves = []
    monkeypatch.setattr("rocmax.kernel.qp._PairNewton._move", lambda run, *args: moves.append(args))
    if follows:
        run._follow(0.5)
    else:
        run.step(1e-3)
    ((step, along, slope),) = moves
    np.testing.assert_allclose(along, gram @ step, atol=1e-10)
    ends = [smoothed(gram, positive, C, run.beta + h * step, run.width) for h in (-1e-6, 1e-6)]
    assert slope < 0
    assert slope == pytest.approx((ends[1] - ends[0]) / 2e-6, rel=1e-4)


def test_the_width_falls_to_where_the_smoothing_takes_half_of_the_tolerance(monkeypatch):
    monkeypatch.setattr("rocmax.kernel.qp.RULES", PairNewtonRules(cg_rtol=0.0))
    rng = np.random.default_rng(0)
    gram, positive, C = Kernel("rbf", 0.3, 3, 0.0).gram(rng.standard_normal((30, 3))), np.arange(30) % 3 == 0, 1e-3
    run = qp._PairNewton(gram, SortedPairs(positive), C)
    run.certify()
    run._move(*run.system.solve(run._slope(), run.target, run.target_scores), -1.0)
    run.certify()
    t = 1.0 - (run.scores[positive][:, None] - run.scores[~positive])
    softening = C * (np.maximum(t, 0.0) - np.clip(t / 4.0, 0.0, 1.0) * t).sum()
    run.step(0.6 * softening / run.unit())
    assert run.width == pytest.approx(0.3 * 4.0)


def test_the_gap_is_small_next_to_the_possible_decrease_from_zero():
    X = np.random.default_rng(0).standard_normal((100, 2))
    gram, C, tol = X @ X.T, 1e-2, 1e-2
    seen = []
    result, scores = GramNewton(tol).solve(gram, SortedPairs(np.arange(100) % 2 == 0), C, seen.append)
    at_zero = C * 50 * 50
    assert result.converged
    # Labels do not depend on the rows: the decrease is much smaller than the objective.
    assert at_zero - result.objective < 0.05 * at_zero
    assert result.gap <= tol * (at_zero - (result.objective - result.gap)) * (1 + 1e-9)
    np.testing.assert_allclose(scores, gram @ result.w)
    assert seen == result.trace


def test_without_pairs_zero_is_the_solution():
    none = np.empty(0, dtype=np.intp)
    result, scores = GramNewton().solve(np.eye(4), ListedPairs(4, none, none), 1.0)
    assert result.converged
    assert result.n_iter == 1
    np.testing.assert_array_equal([result.w, scores], 0.0)


def test_a_run_whose_steps_change_nothing_ends(monkeypatch):
    monkeypatch.setattr("rocmax.kernel.qp.RULES", PairNewtonRules(stuck=5))
    monkeypatch.setattr("rocmax.kernel.qp._PairNewton.step", lambda run, tol: None)
    gram, pairs = np.eye(4), SortedPairs(np.array([True, False, True, False]))
    result, _ = GramNewton(1e-9).solve(gram, pairs, 0.1)
    assert not result.converged
    # The first iteration improves on nothing, and five more change nothing.
    assert result.n_iter == 6


def test_following_the_multipliers_needs_few_steps(monkeypatch):
    X, y = make_classification(400, 15, n_informative=6, flip_y=0.0, weights=[0.8], random_state=1)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    gram = Kernel("rbf", 1 / 15, 3, 0.0).gram(X)
    pairs, C = SortedPairs(y == 1), 10.0 / y.sum()
    followed, _ = GramNewton(1e-6).solve(gram, pairs, C)
    shrink = lambda run, ratio: setattr(run, "width", run.width * ratio)  # noqa: E731
    monkeypatch.setattr("rocmax.kernel.qp._PairNewton._follow", shrink)
    unguided, _ = GramNewton(1e-6).solve(gram, pairs, C)
    assert followed.converged
    assert followed.objective == pytest.approx(unguided.objective, rel=2e-6)
    assert followed.n_iter < 0.5 * unguided.n_iter


SETTINGS = {
    "linear": {},
    "poly": {"gamma": 0.2, "degree": 2, "coef0": 1.0},
    "rbf": {"gamma": 0.2},
    "sigmoid": {"gamma": 0.2, "coef0": 1.0},
}


@pytest.mark.parametrize("kernel", SETTINGS)
@pytest.mark.parametrize("n", [3, 256, 257, 600])
def test_gram_matrix_by_blocks_is_that_of_scikit_learn(kernel, n, monkeypatch):
    monkeypatch.setattr("rocmax.kernel.maps.check_mercer", lambda gram, kernel: None)
    X = np.random.default_rng(n).standard_normal((n, 3))
    made = Kernel(kernel, 0.2, 2, 1.0).gram(X)
    np.testing.assert_allclose(made, pairwise_kernels(X, metric=kernel, **SETTINGS[kernel]), atol=1e-13)
    np.testing.assert_array_equal(made[:256, 256:], made[256:, :256].T)
