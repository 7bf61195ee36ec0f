"""Each update rule against its transcription, step by step, on dense and CSR rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from oracles.stochastic import confidence_rule, pair_rule, reservoir_rule, saddle_rule
from rocmax.online import sampling as draws
from rocmax.online.base import Memory
from rocmax.online.loops import loop_form
from rocmax.online.psam import PairSteps
from rocmax.papers.streams import ConfidenceSteps, ReservoirSteps, SaddlePoint

FORMATS = {
    "dense": np.ascontiguousarray,
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "fortran": np.asfortranarray,
}


def sample(seed=0, n=30, d=6, density=0.5):
    """Rows with zeros, two equal rows of different classes, and an empty row."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    positive = rng.random(n) < 0.4
    positive[:4] = [True, False, True, False]
    X[1] = X[0]
    X[2] = 0
    return X, positive


def make_stream(X, positive, form, capacity=4, seed=0):
    return Memory(capacity).stream(FORMATS[form](X), positive, np.random.default_rng(seed), uniform=True)


def random_pairs(positive, size, seed=1):
    return draws.uniform_pairs(np.flatnonzero(positive), np.flatnonzero(~positive), size, np.random.default_rng(seed))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("proximal", [True, False])
@pytest.mark.parametrize(("gamma", "t0"), [(1e-8, 0.0), (1e-2, 3.0), (0.5, 10.0), (2.0, 0.0)])
@pytest.mark.parametrize(("rskip", "askip", "start"), [(1, 1, 0), (3, 2, 0), (16, 5, 7)])
def test_pair_steps_one_by_one(form, proximal, gamma, t0, rskip, askip, start):
    if not proximal and gamma < 1e-4:
        gamma = 1e-2  # a gradient step of length 1e8 leaves no digits to compare
    X, positive = sample()
    stream = make_stream(X, positive, form)
    first, second = random_pairs(positive, 60)
    method = PairSteps(X.shape[1], proximal, gamma, t0, rskip, askip, start)
    trace = pair_rule(X, zip(first, second, strict=True), gamma, t0, rskip, askip, proximal, start)
    scale = max(np.abs(w).max() for w, _ in trace)
    for k, (w, average) in enumerate(trace):
        method.steps(stream, first[k : k + 1], second[k : k + 1])
        _, factor, _, _ = method._state
        assert_allclose(factor * method._w, w, rtol=1e-9, atol=1e-10 * scale)
        assert_allclose(method.weights(), average, rtol=1e-9, atol=1e-10 * scale)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_blocks_do_not_matter(form):
    X, positive = sample(n=50)
    first, second = random_pairs(positive, 500)
    whole, parts = (PairSteps(X.shape[1], True, 1e-3, 5.0, 3, 2) for _ in range(2))
    stream = make_stream(X, positive, form)
    whole.steps(stream, first, second)
    for start in range(0, 500, 37):
        parts.steps(stream, first[start : start + 37], second[start : start + 37])
    assert_allclose(whole.weights(), parts.weights(), rtol=1e-12)


def test_long_runs_keep_their_digits():
    # The scale falls by 1e-12 on the way, so that the weights are multiplied out in between.
    X, positive = sample(n=40, d=5)
    first, second = random_pairs(positive, 6000)
    method = PairSteps(X.shape[1], True, 1e-2, 0.5, 1, 1)
    trace = pair_rule(X, zip(first, second, strict=True), 1e-2, 0.5, 1, 1, True)
    method.steps(make_stream(X, positive, "csr"), first, second)
    assert_allclose(method.weights(), trace[-1][1], rtol=1e-7)


def test_without_an_average_the_last_iterate_counts():
    X, positive = sample()
    first, second = random_pairs(positive, 40)
    method = PairSteps(X.shape[1], True, 1e-2, 1.0, 4, 1, np.inf)
    method.steps(make_stream(X, positive, "dense"), first, second)
    expected = pair_rule(X, zip(first, second, strict=True), 1e-2, 1.0, 4, 1, True)[-1][0]
    assert_allclose(method.weights(), expected, rtol=1e-10)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_automatic_t0_is_the_mean_squared_difference(form):
    X, positive = sample(n=60)
    first, second = random_pairs(positive, 300)
    method = PairSteps(X.shape[1], True, 1e-2, None, 4, 4)
    method.steps(make_stream(X, positive, form), first, second)
    assert method.t0 == pytest.approx(np.square(X[first] - X[second]).sum(axis=1).mean() / 1e-2)


def test_equal_rows_move_nothing_whatever_the_step():
    # Rounding must not turn a difference of zero into a direction, nor its square into a divisor.
    rng = np.random.default_rng(0)
    row = rng.standard_normal(7) * 1e3
    X, positive = np.array([row, row]), np.array([True, False])
    for form in ("dense", "csr"):
        method = PairSteps(7, True, 1e-12, 0.0, 4, 1)
        method.steps(make_stream(X, positive, form), np.array([0]), np.array([1]))
        assert not method.weights().any()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("radius", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("zeta", [0.1, 1.0])
def test_saddle_steps_one_by_one(form, radius, zeta):
    X, positive = sample()
    stream = make_stream(X, positive, form)
    rows = np.random.default_rng(3).integers(0, len(X), 80)
    method = SaddlePoint(X.shape[1], radius, zeta)
    for k, (_, mean) in enumerate(saddle_rule(X, positive, rows, zeta, radius)):
        method.steps(stream, rows[k : k + 1])
        assert_allclose(method.weights(), mean, rtol=1e-8, atol=1e-11)


def test_saddle_steps_in_one_go():
    X, positive = sample()
    rows = np.random.default_rng(3).integers(0, len(X), 500)
    method = SaddlePoint(X.shape[1], 0.02, 2.0)
    method.steps(make_stream(X, positive, "csr"), rows)
    assert_allclose(method.weights(), saddle_rule(X, positive, rows, 2.0, 0.02)[-1][1], rtol=1e-7)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("sequential", [True, False])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_reservoir_steps_one_by_one(form, sequential, C):
    X, positive = sample()
    stream = make_stream(X, positive, form)
    rng = np.random.default_rng(4)
    rows, draws = rng.integers(0, len(X), 80), rng.random(80)
    rows[:2] = np.flatnonzero(positive)[-2:]  # rows of one class, when there is none of the other
    method = ReservoirSteps(X.shape[1], C, sequential)
    trace, buffers = reservoir_rule(X, positive, rows, draws, C, 4, sequential)
    for k, w in enumerate(trace):
        method.steps(stream, rows[k : k + 1], draws[k : k + 1])
        assert_allclose(method.weights(), w, rtol=1e-8, atol=1e-10)
    for own in (False, True):
        assert stream.buffers[int(own)].tolist() == buffers[own]
        assert stream.seen[int(own)] == (positive[rows] == own).sum()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_confidence_steps_one_by_one(form, full, C):
    X, positive = sample()
    stream = make_stream(X, positive, form)
    rows = np.random.default_rng(5).integers(0, len(X), 60)
    method = ConfidenceSteps(X.shape[1], C, 0.52, full)
    for k, (mean, covariance) in enumerate(confidence_rule(X, positive, rows, C, 0.52, 4, full)):
        method.steps(stream, rows[k : k + 1])
        assert_allclose(method.weights(), mean, rtol=1e-8, atol=1e-11)
        expected = covariance if full else np.diag(covariance)
        assert_allclose(method._covariance, expected, rtol=1e-8, atol=1e-11)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-6, 10.0), st.floats(0.0, 100.0))
def test_dense_and_csr_agree(seed, gamma, t0):
    X, positive = sample(seed, n=20, d=9, density=0.3)
    first, second = random_pairs(positive, 50, seed)
    weights = []
    for form in ("dense", "csr"):
        method = PairSteps(9, True, gamma, t0, 4, 3)
        method.steps(make_stream(X, positive, form), first, second)
        weights.append(method.weights())
    assert_allclose(*weights, rtol=1e-8, atol=1e-9 * (1 + np.abs(weights[0]).max()))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-6, 10.0), st.floats(0.0, 100.0))
def test_a_proximal_step_minimises_its_objective(seed, gamma, t0):
    rng = np.random.default_rng(seed)
    X, positive = rng.standard_normal((4, 3)), np.array([True, False, True, False])
    method = PairSteps(3, True, gamma, t0, 1000, 1000)
    stream = make_stream(X, positive, "dense")
    method.steps(stream, np.array([0]), np.array([1]))
    before = method._w.copy()
    method.steps(stream, np.array([2]), np.array([3]))
    length, x = 1 / (gamma * (2 + t0)), X[2] - X[3]

    def objective(v):
        return length * max(0.0, 1 - v @ x) + (v - before) @ (v - before) / 2

    best = objective(method._w)
    for _ in range(50):
        other = method._w + rng.standard_normal(3) * 10.0 ** rng.integers(-4, 1)
        assert best <= objective(other) + 1e-9 * (1 + abs(best))


@pytest.mark.parametrize("average_of", [200_000])
def test_psam_reaches_the_optimum_of_its_objective(average_of):
    from rocmax import AUCClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + 0.5 * X[:, 1] + rng.standard_normal(300) > 0.8).astype(int)
    gamma = 0.05
    exact = AUCClassifier(C=1 / gamma, tol=1e-6).fit(X, y).coef_[0]
    method = PairSteps(4, True, gamma, 100.0, 16, 1)
    stream = make_stream(X, y == 1, "dense")
    method.steps(stream, *random_pairs(y == 1, average_of))
    assert np.linalg.norm(method.weights() - exact) < 0.02 * np.linalg.norm(exact)


def test_uniform_pairs_cover_all_pairs():
    rng = np.random.default_rng(0)
    first, second = draws.uniform_pairs(np.array([5, 7]), np.array([1, 2, 3]), 6000, rng)
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    assert pairs.shape[1] == 6
    assert counts.min() > 850
    assert counts.max() < 1150


def test_anchored_pairs_use_each_new_row_once():
    positive = np.array([True, False, True, False, False])
    new = np.array([2, 3, 4])
    for seed in range(20):
        first, second = draws.pairs_with_new_rows(
            new, positive, np.array([0, 2]), np.array([1, 3, 4]), np.random.default_rng(seed)
        )
        assert positive[first].all()
        assert not positive[second].any()
        assert first.size == 3
        assert {3, 4} <= set(second)
        assert 2 in first


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 7), max_size=8), st.integers(1, 6), st.integers(0, 1000))
def test_reservoir_holds_the_right_number_of_distinct_rows(blocks, capacity, seed):
    rng = np.random.default_rng(seed)
    held, seen = np.zeros(0, dtype=np.int64), 0
    for size in blocks:
        held = draws.reservoir(held, seen, seen + np.arange(size), capacity, rng)
        seen += size
        assert held.size == min(seen, capacity)
        assert np.unique(held).size == held.size
        assert held.size == 0 or held.max() < seen


def test_reservoir_is_uniform():
    counts = np.zeros(12)
    for seed in range(4000):
        rng = np.random.default_rng(seed)
        held = draws.reservoir(np.zeros(0, dtype=np.int64), 0, np.arange(5), 3, rng)
        counts[draws.reservoir(held, 5, np.arange(5, 12), 3, rng)] += 1
    assert np.abs(counts / 4000 - 3 / 12).max() < 0.03


def test_memory_keeps_rows_across_blocks():
    X, positive = sample(n=12)
    memory = Memory(3)
    stream = memory.stream(sparse.csr_array(X), positive, np.random.default_rng(0), uniform=False)
    stream.buffers[:] = [np.flatnonzero(~positive)[:3], np.flatnonzero(positive)[:3]]
    stream.seen[:] = [(~positive).sum(), positive.sum()]
    memory.keep(stream)
    later = memory.stream(X[:2], positive[:2], np.random.default_rng(0), uniform=False)
    assert later.new.tolist() == [6, 7]
    kept = np.concatenate([np.flatnonzero(~positive)[:3], np.flatnonzero(positive)[:3]])
    assert_allclose(later.X.toarray(), np.vstack([X[kept], X[:2]]))
    assert later.positive.tolist() == [False] * 3 + [True] * 3 + positive[:2].tolist()
    assert later.buffers.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_duplicates_in_csr_rows_are_summed_and_the_input_is_left_alone():
    X = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    data, indices, indptr = loop_form(X)
    assert data.tolist() == [3.0, 3.0]
    assert indices.tolist() == [1, 0]
    assert indptr.tolist() == [0, 1, 2]
    assert X.data.tolist() == [1.0, 2.0, 3.0]
