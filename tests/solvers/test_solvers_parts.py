"""The parts of the certified solver: the small quadratic program, the bundle of cuts, the line search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import qp as oracles_qp
from rocmax.losses import BreakEven, PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, Cuts, SmoothedNewton
from rocmax.solvers.base import find_zero
from rocmax.solvers.cutting_plane import Bundle, minimize_on_simplex

# The quadratic program


def value(Q, p, a):
    return 0.5 * a @ Q @ a - p @ a


def distance(Q, p, a):
    """Bound on how far ``a`` is above the minimum: the most that a move to one corner can gain at first order."""
    slope = Q @ a - p
    return float(a @ slope - slope.min())


def assert_minimum(Q, p, a):
    assert a.shape == p.shape
    assert (a >= 0).all()
    assert a.sum() == pytest.approx(1.0, abs=1e-12)
    scale = np.abs(Q).max() + np.abs(p).max()
    assert distance(Q, p, a) <= 1e-9 * scale
    least = oracles_qp.on_simplex(Q, p)[1]
    assert value(Q, p, a) == pytest.approx(least, rel=1e-9, abs=1e-9 * scale)


def random_program(rng, k, rank, duplicated=False):
    cuts = rng.standard_normal((k, rank))
    p = rng.standard_normal(k)
    if duplicated:
        rows = rng.integers(0, k, k)
        cuts, p = cuts[rows], p[rows]
    return cuts @ cuts.T, p


def corner(k, i=0):
    return np.eye(k)[i]


@pytest.mark.parametrize("k", [1, 2, 3, 8, 30, 60])
@pytest.mark.parametrize("share", [0.3, 1.0, 1.5], ids=["singular", "square", "definite"])
def test_minimum_on_the_simplex(k, share):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        Q, p = random_program(rng, k, max(1, int(share * k)))
        everywhere = rng.random(k) + 0.01
        for start in (corner(k), corner(k, k - 1), everywhere / everywhere.sum()):
            assert_minimum(Q, p, minimize_on_simplex(Q, p, start))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_minimum_with_duplicated_cuts(scale):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Q, p = random_program(rng, 20, 5, duplicated=True)
        assert_minimum(scale * Q, scale * p, minimize_on_simplex(scale * Q, scale * p, corner(20)))


@pytest.mark.parametrize("p", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 2.0, 2.0], [-3.0, 0.0, -1.0]])
def test_minimum_of_a_linear_function(p):
    p = np.array(p)
    a = minimize_on_simplex(np.zeros((3, 3)), p, np.full(3, 1 / 3))
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1.0)
    assert p @ a == pytest.approx(p.max())


def test_one_variable_has_no_choice():
    for Q, p in ((0.0, 0.0), (4.0, -1.0), (1e12, 1e-12)):
        assert minimize_on_simplex(np.array([[Q]]), np.array([p]), np.ones(1)) == [1.0]


def test_all_cuts_the_same():
    Q, p = np.full((6, 6), 3.0), np.full(6, 0.5)
    assert_minimum(Q, p, minimize_on_simplex(Q, p, np.full(6, 1 / 6)))


def test_one_more_cut_after_another():
    # As the bundle uses it: the start is the last minimum with a zero for the new cut.
    rng = np.random.default_rng(3)
    cuts, p = rng.standard_normal((40, 6)), rng.standard_normal(40)
    a = np.empty(0)
    for k in range(1, 41):
        Q = cuts[:k] @ cuts[:k].T
        a = minimize_on_simplex(Q, p[:k], np.append(a, 0.0 if k > 1 else 1.0))
        assert_minimum(Q, p[:k], a)


def test_start_at_the_minimum_stays_there():
    Q, p = random_program(np.random.default_rng(5), 25, 4)
    a = minimize_on_simplex(Q, p, corner(25))
    again = minimize_on_simplex(Q, p, a)
    assert value(Q, p, again) == pytest.approx(value(Q, p, a), rel=1e-12)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 25), steps=st.integers(0, 30))
@settings(max_examples=150, deadline=None)
def test_every_iterate_is_feasible_and_no_worse_than_the_start(seed, k, steps):
    rng = np.random.default_rng(seed)
    Q, p = random_program(rng, k, int(rng.integers(1, k + 2)), duplicated=bool(rng.integers(2)))
    start = rng.random(k) * (rng.random(k) < 0.5)
    start[rng.integers(k)] += 0.1
    start /= start.sum()
    before = start.copy()
    a = minimize_on_simplex(Q, p, start, max_steps=steps)
    assert (a >= 0).all()
    assert a.sum() == pytest.approx(1.0, abs=1e-12)
    scale = np.abs(Q).max() + np.abs(p).max()
    assert value(Q, p, a) <= value(Q, p, start) + 1e-11 * scale
    np.testing.assert_array_equal(start, before)


# The bundle of cuts


def polyhedron(rng, count, d):
    """Cuts of a convex function that is bounded from below: their gradients have zero in their hull."""
    g = rng.standard_normal((count, d))
    return np.vstack([g, -g.mean(0)]), np.append(rng.standard_normal(count), 0.0)


def optimum(g, offset, C):
    """Minimum of ``1/2 |w|^2 + C max_k(offset_k + g_k w)``, from the dual over all cuts at once."""
    a, least = oracles_qp.on_simplex(C * g @ g.T, offset)
    w = -C * (a @ g)
    return -C * least, 0.5 * w @ w + C * (offset + g @ w).max()


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("max_cuts", [2, 3, 4, 6, 10, 1000])
def test_bound_is_valid_and_never_falls(C, max_cuts):
    for seed in range(4):
        g, offset = polyhedron(np.random.default_rng(seed), 120, 8)
        below, above = optimum(g, offset, C)
        assert above == pytest.approx(below, rel=1e-8, abs=1e-8)
        bundle = Bundle(C, max_cuts)
        bounds = [bundle.bound]
        for row, constant in zip(g, offset, strict=True):
            bundle.add(row, constant)
            bounds.append(bundle.bound)
        assert bounds[0] == -np.inf
        assert (np.diff(bounds[1:]) >= 0).all()
        assert bounds[-1] <= above + 1e-9 * (1 + abs(above))
        if max_cuts == 1000:
            assert bounds[-1] == pytest.approx(below, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("max_cuts", [4, 6, 12])
def test_memory_stays_within_the_limit(max_cuts):
    rng = np.random.default_rng(0)
    bundle = Bundle(10.0, max_cuts)
    for _ in range(100):
        bundle.add(rng.standard_normal(20), float(rng.standard_normal()))
        assert len(bundle._g) <= max_cuts
        assert bundle._alpha.size == bundle._offset.size == len(bundle._gram) == len(bundle._g)


@pytest.mark.parametrize("max_cuts", [6, 1000])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_cutting_planes_with_few_cuts_stay_below_the_optimum(C, max_cuts):
    # A run as a solver makes it, each cut taken at the minimizer of the ones before, with far more cuts than places.
    g, offset = polyhedron(np.random.default_rng(1), 200, 6)
    below, above = optimum(g, offset, C)
    bundle = Bundle(C, max_cuts)
    w, bounds = np.zeros(6), []
    for _ in range(150):
        active = int(np.argmax(offset + g @ w))
        bundle.add(g[active], offset[active])
        w = bundle.minimizer()
        bounds.append(bundle.bound)
    assert (np.diff(bounds) >= 0).all()
    assert bounds[-1] <= above + 1e-9 * (1 + abs(above))
    assert bounds[-1] > bounds[0]
    if max_cuts == 1000:
        assert bounds[-1] == pytest.approx(below, rel=1e-8)
        assert 0.5 * w @ w + C * (offset + g @ w).max() == pytest.approx(above, rel=1e-6)


def test_merged_cuts_keep_the_bound():
    # Orthogonal cuts all carry weight, so that room is only made by merging.
    bundle = Bundle(1.0, 8)
    for k in range(8):
        bundle.add(np.eye(40)[k], 1.0)
    before = bundle.bound
    bundle.add(np.eye(40)[8], 1.0)
    assert before == pytest.approx(1.0 - 0.5 / 8)
    assert before < bundle.bound <= 1.0 - 0.5 / 9 + 1e-12


def test_minimizer_is_that_of_the_cuts():
    C = 3.0
    g, offset = polyhedron(np.random.default_rng(2), 30, 5)
    bundle = Bundle(C, 1000)
    for row, constant in zip(g, offset, strict=True):
        bundle.add(row, constant)
    w = bundle.minimizer()
    assert 0.5 * w @ w + C * (offset + g @ w).max() == pytest.approx(bundle.bound, rel=1e-7)


def test_bound_is_valid_where_the_cuts_nearly_cancel():
    C, tiny = 1e8, 1e-8
    bundle = Bundle(C, 10)
    cuts = np.array([[1.0, tiny], [-1.0, tiny]])
    for g in cuts:
        bundle.add(g, tiny)
    w = np.array([0.0, -1.0])
    above = 0.5 * w @ w + C * (tiny + cuts @ w).max()
    assert bundle.bound <= above + 1e-6


# The line search


class Watched:
    """A slope that remembers where it was asked."""

    def __init__(self, slope):
        self._slope, self.asked, self.seen = slope, [], []

    def __call__(self, t):
        self.asked.append(t)
        self.seen.append(self._slope(t))
        return self.seen[-1]


@st.composite
def increasing_slopes(draw):
    """Increasing, piecewise linear, negative at zero; flat pieces and jumps included."""
    ends = draw(st.lists(st.floats(1e-3, 50), min_size=1, max_size=5, unique=True).map(sorted))
    rises = draw(st.lists(st.sampled_from([0.0, 1e-3, 0.5, 3.0]), min_size=len(ends), max_size=len(ends)))
    jumps = draw(st.lists(st.sampled_from([0.0, 0.1, 2.0]), min_size=len(ends), max_size=len(ends)))
    start = -draw(st.floats(1e-3, 10))
    last = draw(st.floats(0, 5))

    def slope(t):
        total, left = start + last * t, 0.0
        for end, rise, jump in zip(ends, rises, jumps, strict=True):
            total += rise * (min(t, end) - left) * (t > left) + jump * (t > end)
            left = end
        return total

    return slope, start


@given(
    problem=increasing_slopes(),
    rtol=st.sampled_from([0.0, 0.01, 0.1, 0.5]),
    largest=st.sampled_from([1e-3, 0.5, 1.0, 3.0, np.inf]),
    max_evals=st.integers(1, 30),
)
@settings(max_examples=300, deadline=None)
def test_line_search(problem, rtol, largest, max_evals):
    slope, at_zero = problem
    watched = Watched(slope)
    t = find_zero(watched, at_zero, rtol=rtol, largest=largest, max_evals=max_evals)
    # Callers keep what they computed in the last evaluation, so it has to be the one that counts.
    assert t == watched.asked[-1]
    assert watched.asked[0] == min(1.0, largest)
    assert 1 <= len(watched.asked) <= max_evals
    assert all(0 < asked <= largest for asked in watched.asked)
    small_enough = abs(watched.seen[-1]) <= rtol * abs(at_zero)
    at_the_end = t == largest and watched.seen[-1] < 0
    assert small_enough or at_the_end or len(watched.asked) == max_evals
    # Nothing is asked once the slope was small.
    assert all(abs(seen) > rtol * abs(at_zero) for seen in watched.seen[:-1])


@given(problem=increasing_slopes(), largest=st.sampled_from([0.5, 3.0, np.inf]))
@settings(max_examples=200, deadline=None)
def test_line_search_stays_inside_its_bracket(problem, largest):
    slope, at_zero = problem
    watched = Watched(slope)
    find_zero(watched, at_zero, rtol=0.01, largest=largest, max_evals=25)
    low, high = 0.0, np.inf
    for t, seen in zip(watched.asked, watched.seen, strict=True):
        assert low <= t <= high
        if np.isfinite(high):
            margin = 0.1 * (high - low) - 1e-12 * high
            assert low + margin <= t <= high - margin
        low, high = (t, high) if seen < 0 else (low, t)


@pytest.mark.parametrize("root", [1e-3, 0.3, 1.0, 7.0, 500.0])
def test_line_search_finds_the_zero_of_a_line(root):
    watched = Watched(lambda t: t - root)
    t = find_zero(watched, -root, rtol=1e-6, largest=np.inf, max_evals=50)
    assert t == pytest.approx(root, rel=1e-5)
    assert len(watched.asked) <= 2 + max(0, np.ceil(np.log2(root))) + 3 * max(0, -np.log10(root)) + 1


def test_line_search_extrapolates_the_last_two_slopes():
    # The slope rises by 0.8 up to 1, and by 0.1 per unit after that; the line through 0 and 1 would lead to 1.25.
    watched = Watched(lambda t: -1.0 + 0.8 * min(t, 1.0) + 0.1 * max(t - 1.0, 0.0))
    t = find_zero(watched, -1.0, rtol=0.01, largest=np.inf, max_evals=20)
    assert watched.asked[1] == pytest.approx(1.3125)
    # From 1 to 1.3125 the slope is that of the second part: a quarter further than its zero at 3.
    assert watched.asked[2] == pytest.approx(1.3125 + 1.25 * (3.0 - 1.3125))
    assert t == pytest.approx(3.0, abs=0.1)


def test_line_search_takes_the_longest_step_downhill():
    watched = Watched(lambda t: -1.0)
    assert find_zero(watched, -1.0, rtol=0.1, largest=6.0, max_evals=20) == 6.0
    assert watched.asked == [1.0, 3.0, 6.0]


def test_line_search_stops_after_the_last_evaluation():
    watched = Watched(lambda t: -1.0)
    assert find_zero(watched, -1.0, rtol=0.1, largest=np.inf, max_evals=4) == 27.0
    assert watched.asked == [1.0, 3.0, 9.0, 27.0]


def test_a_bundle_goes_on_from_the_cuts_of_another():
    C = 3.0
    g, offset = polyhedron(np.random.default_rng(2), 40, 5)
    first = Bundle(C, 1000)
    for row, constant in zip(g, offset, strict=True):
        first.add(row, constant)
    second = Bundle(C, 1000)
    second.start(first.cuts())
    assert second.bound == pytest.approx(first.bound, rel=1e-9)
    np.testing.assert_allclose(second.minimizer(), first.minimizer(), atol=1e-6)
    small = Bundle(C, 6)
    small.start(Cuts(g, offset, [None] * len(g)))
    assert len(small._g) == 6
    assert small.bound <= first.bound + 1e-9
    empty = Bundle(C, 6)
    empty.start(Cuts(np.empty((0, 5)), np.empty(0), []))
    assert empty.bound == -np.inf


def test_merged_cuts_mix_their_tables():
    bundle = Bundle(1.0, 8)
    for k in range(30):
        # The mean of the first entry over the tables of a cut is its offset here, and stays so when cuts are merged.
        offset = 1.0 + 0.001 * k
        bundle.add(np.eye(40)[k], offset, np.array([(0.25, offset, 0.0), (0.75, offset, 1.0)]))
    cuts = bundle.cuts()
    for offset, table in zip(cuts.offset, cuts.tables, strict=True):
        assert table[:, 0].sum() == pytest.approx(1.0)
        assert table[:, 0] @ table[:, 1] == pytest.approx(offset)
        assert table[:, 0] @ table[:, 2] == pytest.approx(0.75)
    assert max(map(len, cuts.tables)) > 2


@pytest.mark.parametrize(("kind", "loss"), [(OCAS, BreakEven()), (SmoothedNewton, PartialAUCTight(0.0, 0.3))])
def test_a_solver_with_its_own_cuts_is_done_at_once(kind, loss):
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.3
    X = rng.standard_normal((600, 5)) + y[:, None]
    none = Cuts(np.empty((0, 5)), np.empty(0), [])
    first = kind(1e-4, 500, none).solve(as_operator(X), loss.bind(y), SquaredL2(10.0))
    assert kind(1e-4).solve(as_operator(X), loss.bind(y), SquaredL2(10.0)).cuts is None
    again = kind(1e-4, 500, first.cuts).solve(as_operator(X), loss.bind(y), SquaredL2(10.0), first.w)
    assert first.n_iter > 3
    assert again.n_iter == 1
    assert again.gap <= first.gap * (1 + 1e-6)
