"""Balls: projections against a general solver and exact arithmetic, their laws, support functions and refusals."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracles import balls as oracles_balls
from rocmax.penalties import Ball, ElasticNetBall, GroupBall, L1Ball, L2Ball, SquaredL2, group_labels

LABELS = [0, 1, 1, 2, 2, 2, 0, 3, 3, 1]
MAKERS = {
    "l2": L2Ball,
    "l1": L1Ball,
    "elastic-0": lambda r: ElasticNetBall(r, 0.0),
    "elastic-0.001": lambda r: ElasticNetBall(r, 0.001),
    "elastic-0.4": lambda r: ElasticNetBall(r, 0.4),
    "elastic-1": lambda r: ElasticNetBall(r, 1.0),
    "group": lambda r: GroupBall(r, LABELS, 10),
    "group-singles": lambda r: GroupBall(r, np.arange(10), 10),
    "group-one": lambda r: GroupBall(r, np.zeros(10, dtype=int), 10),
}
every_ball = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)

numbers = st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from([0.0, 1.0, -1.0, 0.5])
vectors = arrays(np.float64, 10, elements=numbers)
radii = st.floats(1e-4, 1e4)


def points(seed, count=12):
    """Random points of many sizes: with ties, zeros, and the zero vector itself."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        v = rng.standard_normal(10) * 10.0 ** rng.uniform(-2, 2)
        kind = rng.integers(4)
        if kind == 1:
            v = np.round(v)
        elif kind == 2:
            v = np.full(10, v[0]) * rng.choice([-1, 1], 10)
        elif kind == 3:
            v[rng.random(10) < 0.6] = 0.0
        yield v, 10.0 ** rng.uniform(-2, 2)
    yield np.zeros(10), 1.0


# Projections


@every_ball
def test_projection_is_that_of_a_general_solver(make):
    for v, radius in points(0):
        ball = make(radius)
        ours, other = ball.project(v), oracles_balls.project(ball, v)
        scale = max(1.0, float(np.abs(v).max()))
        assert np.abs(ours - other).max() <= 1e-5 * scale
        # The general solver is less precise in the entries than in the distance, which its point may undercut by
        # what it leaves the set.
        distance, its = np.sum((ours - v) ** 2), np.sum((other - v) ** 2)
        outside = max(ball.value(other) / radius - 1.0, 0.0)
        assert distance <= its * (1 + 1e-10) + 4 * outside * scale**2 + 1e-10 * scale**2


@pytest.mark.parametrize("kappa", [1.0, 0.7, 0.1, 0.001])
def test_projection_in_exact_arithmetic(kappa):
    for v, radius in points(1, count=25):
        ball = ElasticNetBall(radius, kappa)
        exact = oracles_balls.project_exactly(ball, v)
        assert np.linalg.norm(ball.project(v) - exact) <= 1e-10 * np.linalg.norm(exact)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_projection_from_far_away_keeps_its_digits(size):
    v = size + np.linspace(-0.4, 0.4, 10)
    for kappa in (1.0, 0.5):
        ball = ElasticNetBall(1.0, kappa)
        exact = oracles_balls.project_exactly(ball, v, digits=40)
        assert np.linalg.norm(ball.project(v) - exact) <= 1e-10 * np.linalg.norm(exact)


@every_ball
@settings(max_examples=60, deadline=None)
@given(v=vectors, radius=radii)
def test_projection_meets_its_optimality_inequality(make, v, radius):
    # u is the projection if it is in the set and (v - u) @ (w - u) <= 0 for all w there: (v - u) @ u = support(v - u).
    ball = make(radius)
    u = ball.project(v)
    assert ball.value(u) <= radius * (1 + 1e-12)
    rest = v - u
    assert ball.support(rest) <= rest @ u + 1e-10 * (np.abs(rest) @ np.abs(u) + radius * np.abs(rest).max()) + 1e-200


@every_ball
@settings(max_examples=40, deadline=None)
@given(v=vectors, other=vectors, radius=radii)
def test_projection_brings_points_no_further_apart_and_stays_in_the_set(make, v, other, radius):
    ball = make(radius)
    u = ball.project(v)
    scale = np.abs(v).max() + np.abs(other).max()
    assert np.linalg.norm(u - ball.project(other)) <= np.linalg.norm(v - other) * (1 + 1e-12) + 1e-12 * scale
    np.testing.assert_allclose(ball.project(u), u, rtol=1e-9, atol=1e-12 * np.abs(u).max())
    assert (u * v >= 0).all()


@every_ball
def test_points_of_the_set_stay_where_they_are_and_nothing_is_written(make):
    ball = make(100.0)
    v = np.linspace(-1, 1, 10)
    v.flags.writeable = False
    np.testing.assert_array_equal(ball.project(v), v)
    assert not np.shares_memory(ball.project(v), v)
    far = 1e4 * v
    far.flags.writeable = False
    assert ball.value(ball.project(far)) == pytest.approx(100.0, rel=1e-12)


def test_one_weight():
    for ball in (L2Ball(2.0), L1Ball(2.0), GroupBall(2.0, [[0]], 1)):
        np.testing.assert_allclose(ball.project(np.array([-3.0])), [-2.0])
    # 0.5 u + 0.25 u^2 = 2
    np.testing.assert_allclose(ElasticNetBall(2.0, 0.5).project(np.array([5.0])), [2.0])


def test_balls_that_are_the_same_set():
    for v, radius in points(2):
        np.testing.assert_allclose(L1Ball(radius).project(v), GroupBall(radius, np.arange(10), 10).project(v))
        np.testing.assert_allclose(L2Ball(radius).project(v), GroupBall(radius, np.zeros(10), 10).project(v))
        np.testing.assert_allclose(L2Ball(np.sqrt(2 * radius)).project(v), ElasticNetBall(radius, 0.0).project(v))
        shuffled = GroupBall(radius, [[1, 2, 9], [0, 6], [7, 8], [3, 4, 5]], 10)
        np.testing.assert_allclose(GroupBall(radius, LABELS, 10).project(v), shuffled.project(v), rtol=1e-14)


@pytest.mark.parametrize("name", ["l2", "l1", "elastic", "group"])
def test_a_million_weights_take_less_than_a_second(name):
    d = 1_000_000
    v = np.random.default_rng(0).standard_normal(d)
    balls = {
        "l2": lambda: L2Ball(5.0),
        "l1": lambda: L1Ball(5.0),
        "elastic": lambda: ElasticNetBall(5.0, 0.3),
        "group": lambda: GroupBall(5.0, np.arange(d) // 7, d),
    }
    ball = balls[name]()
    start = time.process_time()
    u = ball.project(v)
    assert time.process_time() - start < 1.0
    assert ball.value(u) == pytest.approx(5.0, rel=1e-10)


# Support functions and Jacobians


@every_ball
@settings(max_examples=60, deadline=None)
@given(g=vectors, w=vectors, radius=radii)
def test_support_is_above_every_product_and_attained_far_out(make, g, w, radius):
    ball = make(radius)
    largest = ball.support(g)
    u = ball.project(w)
    assert g @ u <= largest + 1e-12 * (np.abs(g) @ np.abs(u)) + 1e-200
    if np.abs(g).max() > 1e-3:
        # The projection of a point far out in the direction of g tends to the maximiser.
        far = ball.project(g / np.abs(g).max() * 1e7 * ball.reach())
        assert g @ far >= largest * (1 - 1e-4)
    assert ball.support(np.zeros(10)) == 0.0


@every_ball
def test_reach_is_the_largest_norm(make):
    for _, radius in points(3, count=5):
        ball = make(radius)
        norms = [np.linalg.norm(ball.project(1e5 * max(radius, 1.0) * e)) for e in np.eye(10)]
        assert max(norms) == pytest.approx(ball.reach(), rel=1e-9)
        rng = np.random.default_rng(0)
        assert all(
            np.linalg.norm(ball.project(1e3 * radius * rng.standard_normal(10))) <= ball.reach() * (1 + 1e-9)
            for _ in range(20)
        )


@every_ball
def test_jacobian_is_the_derivative_of_the_projection(make):
    rng = np.random.default_rng(4)
    for _ in range(10):
        v, ball = 3.0 * rng.standard_normal(10), make(10.0 ** rng.uniform(-1, 2))
        differences = np.array([(ball.project(v + 1e-6 * e) - ball.project(v - 1e-6 * e)) / 2e-6 for e in np.eye(10)])
        G = rng.standard_normal((4, 10))
        np.testing.assert_allclose(ball.jacobian_gram(v, G, G @ G.T), G @ differences @ G.T, atol=1e-6)


def test_counts_of_features_and_groups():
    w = np.array([0.0, 1.0, 1.0, 0, 0, 2.0, 0, 0, 0, 0])
    assert L1Ball(1.0).n_used(w) == 3
    assert GroupBall(1.0, LABELS, 10).n_used(w) == 2
    np.testing.assert_allclose(GroupBall(1.0, LABELS, 10).norms(w), [0.0, np.sqrt(2.0), 2.0, 0.0])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_norms_of_groups_survive_squares_out_of_range(scale):
    norms = GroupBall(1.0, [0, 0, 1], 3).norms(scale * np.array([3.0, 4.0, 1.0]))
    np.testing.assert_allclose(norms, [5.0 * scale, scale])


# Refusals


@every_ball
@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan])
def test_radius_above_zero(make, radius):
    with pytest.raises(ValueError, match=r"radius must be a finite number > 0.*got"):
        make(radius)


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
def test_l1_ratio_is_a_share(share):
    with pytest.raises(ValueError, match="l1_ratio must be between 0 and 1; got"):
        ElasticNetBall(1.0, share)
    with pytest.raises(ValueError, match="use ElasticNetBall"):
        L1Ball(1.0, 0.5)


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        (None, "got None"),
        ([0, 1], "must be 3 labels, one per feature.*got 2 labels"),
        ([], "got 0 labels"),
        ([0, [1], 2], "got 3 labels"),
        ([[0, 1], [1, 2]], r"must not overlap.*\[1\]"),
        ([[0, 0], [1, 2]], r"must not overlap.*\[0\]"),
        ([[0], [2]], r"must cover all features.*\[1\]"),
        ([[0, 1], [3]], "indices in groups must be between 0 and 2; got 0 to 3"),
        ([[0, 1], [-1]], "indices in groups must be between 0 and 2; got -1 to 1"),
        ([[0, 1, 2], []], "must be non-empty .*got group 1 with"),
        ([[0.0, 1.0, 2.0]], "got group 0 with dtype float64"),
        ([[[0, 1, 2]]], "got group 0 with .*shape"),
    ],
)
def test_groups_that_are_none(groups, text):
    with pytest.raises(ValueError, match=text):
        group_labels(groups, 3)


def test_labels_of_groups_may_be_words_or_numbers():
    np.testing.assert_array_equal(group_labels(["b", "a", "b"], 3), [1, 0, 1])
    np.testing.assert_array_equal(group_labels(np.array([7, 7, 3]), 3), [1, 1, 0])
    np.testing.assert_array_equal(group_labels((np.array([2]), np.array([0, 1])), 3), [1, 1, 0])


def test_a_ball_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Ball(1.0)


def test_groups_get_the_number_of_features_of_the_data():
    groups = [[0, 2], [1]]
    with pytest.raises(ValueError, match="n_features of GroupBall must be set before it is used; got None"):
        GroupBall(2.0, groups).value(np.ones(3))
    fitted = GroupBall(2.0, groups).for_features(3)
    assert fitted.value(np.array([3.0, 1.0, 4.0])) == 6.0
    assert fitted.for_features(3) is fitted
    with pytest.raises(ValueError, match="the data must have n_features=3 features, as GroupBall; got 4 features"):
        fitted.for_features(4)
    for ball in (L1Ball(2.0), L2Ball(2.0), ElasticNetBall(2.0)):
        assert ball.for_features(4) is ball


@pytest.mark.parametrize("C", [0.0, -1.0, np.inf, np.nan])
def test_the_weight_of_the_loss_is_positive_and_finite(C):
    with pytest.raises(ValueError, match="C must be a finite number > 0; got"):
        SquaredL2(C)
