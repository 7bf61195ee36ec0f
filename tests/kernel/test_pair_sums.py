"""Sums over pairs with multipliers: listed and sorted agree with a plain double loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmax.kernel.qp import ListedPairs, SortedPairs


def sample(seed, n=14, ties=False):
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.arange(n) < 5)
    scores = rng.integers(-3, 4, n) / 2.0 if ties else rng.standard_normal(n)
    return positive, rng.integers(1, 4, n).astype(float), scores


def all_pairs(positive, weight, margin, base=0.0):
    first, second = (a.ravel() for a in np.meshgrid(np.flatnonzero(positive), np.flatnonzero(~positive), indexing="ij"))
    return ListedPairs(positive.size, first, second, weight[first] * weight[second], margin, base)


def by_hand(positive, weight, scores, margin, width):
    hinge, total, rows = 0.0, 0.0, np.zeros(positive.size)
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            t = margin - (scores[i] - scores[j])
            share = float(t > 0) if width == 0 else min(max(t / width, 0.0), 1.0)
            w = weight[i] * weight[j]
            hinge += w * max(t, 0.0)
            total += w * share
            rows[i] += w * share
            rows[j] -= w * share
    return hinge, total, rows


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("width", [0.0, 0.3, 1.0, 5.0])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), margin=st.sampled_from([0.5, 1.0, 2.0]))
def test_sums_equal_a_double_loop(ties, width, seed, margin):
    positive, weight, scores = sample(seed, ties=ties)
    expected = by_hand(positive, weight, scores, margin, width)
    for pairs in (SortedPairs(positive, weight, margin), all_pairs(positive, weight, margin)):
        for found, wanted in zip(pairs.soft(scores, width), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-11)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_slope_is_minus_the_derivative_of_the_row_sums(seed):
    positive, weight, scores = sample(seed)
    step, v = 1e-7, np.random.default_rng(seed).standard_normal(positive.size)
    sorted_pairs, listed = SortedPairs(positive, weight), all_pairs(positive, weight, 1.0)
    finite = (listed.soft(scores + step * v, 0.8).rows - listed.soft(scores - step * v, 0.8).rows) / (-2 * step)
    for pairs in (sorted_pairs, listed):
        rows = pairs.moving(scores, 0.8)
        for held in (rows, np.arange(positive.size)):
            slope, found = pairs.slope(scores, 0.8, held), np.zeros(positive.size)
            found[held] = slope(v[held])
            np.testing.assert_allclose(found, finite, atol=1e-5)
            np.testing.assert_allclose(slope(np.stack([v[held], 2 * v[held]])), [found[held], 2 * found[held]])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_multipliers_that_move_are_the_slope_times_what_rows_lack_of_their_goal(seed):
    positive, weight, scores = sample(seed)
    t = 0.9 - (scores[positive][:, None] - scores[~positive])
    part = np.where((t > 0) & (t < 0.8), t / 0.8, 0.0) * np.outer(weight[positive], weight[~positive])
    expected = np.zeros(positive.size)
    expected[positive], expected[~positive] = part.sum(axis=1), -part.sum(axis=0)
    for pairs in (SortedPairs(positive, weight, 0.9), all_pairs(positive, weight, 0.9)):
        found = pairs.slope(scores, 0.8, np.arange(positive.size))(pairs.goal - scores)
        np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("width", [0.5, 0.8, 2.0])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_rows_that_move_are_those_of_pairs_with_a_multiplier_between_zero_and_one(width, seed):
    positive, weight, scores = sample(seed, ties=True)
    t = 1.0 - (scores[positive][:, None] - scores[~positive])
    free = (t > 0) & (t < width)
    moves = np.zeros(positive.size, dtype=bool)
    moves[positive], moves[~positive] = free.any(axis=1), free.any(axis=0)
    for pairs in (SortedPairs(positive, weight), all_pairs(positive, weight, 1.0)):
        np.testing.assert_array_equal(pairs.moving(scores, width), np.flatnonzero(moves))


def test_anchored_multipliers_start_from_the_old_ones():
    positive, weight, scores = sample(3)
    pairs = all_pairs(positive, weight, 1.0)
    anchored = pairs.anchored(scores, 0.7)
    t = 1.0 - (scores[pairs.first] - scores[pairs.second])
    expected = np.clip(np.clip(t / 0.7, 0, 1) + t / 0.2, 0, 1)
    np.testing.assert_allclose(anchored.multipliers(scores, 0.2), expected)
    assert SortedPairs(positive, weight).anchored(scores, 0.7) is None
