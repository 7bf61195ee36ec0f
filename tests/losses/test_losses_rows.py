"""The contract of a loss, continued: order and weights of rows, types, copies, memory."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.loss_cases import (
    every_loss,
    generic_sample,
    gradient_tolerance,
    law,
    samples,
    value_tolerance,
)
from rocmax.losses import (
    PairwiseHinge,
    PairwiseSquaredHinge,
    PartialAUCHinge,
    PartialAUCRamp,
    PartialAUCStructural,
    PartialAUCTight,
    WindowPairs,
)
from rocmax.losses.ranks import bandwidth, cut, prefix, systematic

# Rows and weights


@every_loss
@given(sample=samples(), data=st.data())
@law
def test_order_of_rows_does_not_matter(case, sample, data):
    y, weight, scores = sample
    order = np.array(data.draw(st.permutations(range(y.size))))
    value, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
    permuted_weight = None if weight is None else np.array(weight)[order]
    again, permuted = case.loss.bind(y[order], permuted_weight).value_and_gradient(scores[order])
    np.testing.assert_allclose(again, value, rtol=1e-10, atol=value_tolerance(case.loss, scores))
    np.testing.assert_allclose(permuted, gradient[order], rtol=1e-9, atol=gradient_tolerance(case.loss, scores))


@every_loss
@given(sample=samples())
@law
def test_tied_rows_share_in_proportion_to_weight(case, sample):
    y, weight, scores = sample
    weight = np.ones(y.size) if weight is None else np.array(weight)
    _, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
    share = gradient / weight
    for label in (True, False):
        for score in np.unique(scores[y == label]):
            tied = share[(y == label) & (scores == score)]
            slack = 10 * gradient_tolerance(case.loss, scores)
            np.testing.assert_allclose(tied, tied[0], rtol=1e-9, atol=slack)


@every_loss
@pytest.mark.parametrize("tied", [False, True])
def test_integer_weights_are_repeated_rows(case, tied):
    rng = np.random.default_rng(13)
    for _ in range(8):
        y, _, scores = generic_sample(rng, 5, 8)
        if tied:
            scores = np.where(y, scores, np.round(scores))
        weight = rng.integers(0, 4, y.size)
        weight[[np.argmax(y), np.argmin(y)]] = 2
        rows = np.repeat(np.arange(y.size), weight)
        value, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
        repeated, copies = case.loss.bind(y[rows]).value_and_gradient(scores[rows])
        np.testing.assert_allclose(value, repeated, rtol=1e-12, atol=1e-15)
        summed = np.bincount(rows, weights=copies, minlength=y.size)
        np.testing.assert_allclose(gradient, summed, rtol=1e-10, atol=1e-14)


@every_loss
@given(sample=samples())
@law
def test_integer_weights_are_repeated_rows_on_kinks(case, sample):
    y, weight, scores = sample
    weight = np.arange(y.size) % 3 + 1 if weight is None else np.ceil(weight).astype(int)
    rows = np.repeat(np.arange(y.size), weight)
    value = case.loss.bind(y, weight).value_and_gradient(scores)[0]
    repeated = case.loss.bind(y[rows]).value_and_gradient(scores[rows])[0]
    np.testing.assert_allclose(value, repeated, rtol=1e-10, atol=value_tolerance(case.loss, scores))


@every_loss
def test_a_row_may_be_split_into_parts(case):
    rng = np.random.default_rng(17)
    for _ in range(5):
        y, weight, scores = generic_sample(rng, weighted=True)
        bound = case.loss.bind(y, weight)
        value, gradient = bound.value_and_gradient(scores)
        first = weight * rng.uniform(0.1, 0.9, y.size)
        halves = case.loss.bind(np.tile(y, 2), np.concatenate([first, weight - first]))
        again, parts = halves.value_and_gradient(np.tile(scores, 2))
        np.testing.assert_allclose(again, value, rtol=1e-11)
        np.testing.assert_allclose(parts.reshape(2, -1).sum(axis=0), gradient, rtol=1e-9, atol=1e-13)


@every_loss
@pytest.mark.parametrize("factor", [1e-3, 0.1, 7.0, 1e5])
def test_the_unit_of_the_weights_does_not_matter(case, factor):
    y, weight, scores = generic_sample(np.random.default_rng(19), weighted=True)
    value, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
    scaled_value, scaled = case.loss.bind(y, factor * weight).value_and_gradient(scores)
    np.testing.assert_allclose(scaled_value, value, rtol=1e-10)
    np.testing.assert_allclose(scaled, gradient, rtol=1e-8, atol=1e-12)


@every_loss
def test_the_unit_of_equal_weights_does_not_matter(case):
    y, _, scores = generic_sample(np.random.default_rng(20), 30, 100)
    value, gradient = case.loss.bind(y).value_and_gradient(scores)
    for unit in (0.1, 1 / 3, 1e-15, 1e15):
        scaled_value, scaled = case.loss.bind(y, np.full(y.size, unit)).value_and_gradient(scores)
        np.testing.assert_allclose(scaled_value, value, rtol=1e-10)
        np.testing.assert_allclose(scaled, gradient, rtol=1e-8, atol=1e-12)


@every_loss
def test_a_row_of_weight_zero_is_absent(case):
    rng = np.random.default_rng(23)
    for _ in range(5):
        y, weight, scores = generic_sample(rng, 8, 15, weighted=True)
        weight[rng.permutation(y.size)[:6]] = 0.0
        weight[[np.argmax(y), np.argmin(y)]] = 1.5
        kept = weight > 0
        # The scores of absent rows are made to matter, if they were looked at.
        scores[~kept] = rng.choice([-50.0, 50.0], (~kept).sum())
        value, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
        expected, coefficients = case.loss.bind(y[kept], weight[kept]).value_and_gradient(scores[kept])
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(gradient[kept], coefficients, rtol=1e-12)
        assert not gradient[~kept].any()


# Types, copies, memory


@every_loss
def test_input_types(case):
    y, weight, scores = generic_sample(np.random.default_rng(29), weighted=True)
    scores = scores.astype(np.float32)
    value, gradient = case.loss.bind(y, weight).value_and_gradient(scores.astype(np.float64))
    wide = np.repeat(scores, 2)
    wide.setflags(write=False)
    for labels in (y, y.astype(int), y.astype(float), y.astype(np.uint8), y.tolist()):
        for vector in (scores, wide[::2], scores.tolist()):
            for weights in (weight, weight.tolist()):
                again, coefficients = case.loss.bind(labels, weights).value_and_gradient(vector)
                assert isinstance(again, float)
                assert coefficients.dtype == np.float64
                assert again == value
                np.testing.assert_array_equal(coefficients, gradient)
    whole = np.arange(y.size) % 5
    np.testing.assert_array_equal(
        case.loss.bind(y).value_and_gradient(whole)[1],
        case.loss.bind(y).value_and_gradient(whole.astype(float))[1],
    )


@every_loss
def test_nothing_is_written_to_or_shared_with_the_caller(case):
    y, weight, scores = generic_sample(np.random.default_rng(31), weighted=True)
    before = y.copy(), weight.copy(), scores.copy()
    bound = case.loss.bind(y, weight)
    value, gradient = bound.value_and_gradient(scores)
    kept = gradient.copy()
    for array, saved in zip((y, weight, scores), before, strict=True):
        np.testing.assert_array_equal(array, saved)
    gradient[:] = np.nan
    y[:], weight[:] = False, 0.0
    again, coefficients = bound.value_and_gradient(scores)
    assert again == value
    np.testing.assert_array_equal(coefficients, kept)


@every_loss
@pytest.mark.parametrize(
    "duplicate",
    [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
def test_copies_compute_the_same(case, duplicate):
    y, weight, scores = generic_sample(np.random.default_rng(37), weighted=True)
    bound = case.loss.bind(y, weight)
    value, gradient = bound.value_and_gradient(scores)
    for other in (duplicate(case.loss).bind(y, weight), duplicate(bound)):
        again, coefficients = other.value_and_gradient(scores)
        assert again == value
        np.testing.assert_array_equal(coefficients, gradient)
        assert (other.m, other.n, other.n_samples) == (bound.m, bound.n, bound.n_samples)


@pytest.mark.parametrize(
    "loss",
    [
        PairwiseHinge(),
        PairwiseSquaredHinge(),
        PartialAUCTight(0.05, 0.5),
        PartialAUCStructural(0.05, 0.5),
        PartialAUCHinge(0.05, 0.5),
        PartialAUCRamp(0.05, 0.5),
        WindowPairs("sigmoid", soft_tail=True),
        WindowPairs("squared_hinge", 0.05, 0.5),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_memory_grows_with_rows_not_with_pairs(loss):
    rng = np.random.default_rng(0)
    y = rng.random(200_000) < 0.5
    scores = rng.standard_normal(y.size) + y
    bound = loss.bind(y)
    tracemalloc.start()
    try:
        bound.value_and_gradient(scores)
        if bound.convex and bound.has_curvature:
            bound.at(scores).minorant(0.1)
            bound.curvature(scores, 1000)
        if bound.has_gradient_and_curvature:
            bound.gradient_and_curvature(scores)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6


# The rows in the window


@pytest.mark.parametrize("hidden", [0, 9, 10])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_top_of_many_rows_is_that_of_a_full_sort(hidden, weighted):
    # A part of the rows at equal distances bounds the scores to sort; here the largest are between these rows, or few.
    rng = np.random.default_rng(hidden)
    scores = rng.standard_normal(30_000).round(2)
    scores[np.arange(30_000) % 10 < hidden] -= 20.0
    y = rng.random(30_000) < 0.1
    weight = rng.integers(1, 4, 30_000).astype(float) if weighted else None
    bound = PartialAUCTight(0.0, 0.07).bind(y, weight)
    pieces = cut(scores, bound, 0.0, bound.b)
    order = np.argsort(-scores[~y], kind="stable")
    of_rows = np.ones(order.size) if weight is None else weight[~y][order]
    inside = np.diff(np.minimum(np.append(0.0, np.cumsum(of_rows)), bound.b))
    assert pieces.weight.sum() == pytest.approx(bound.b, rel=1e-12)
    assert pieces.weight @ pieces.score == pytest.approx(inside @ scores[~y][order], rel=1e-9)
    held = pieces.row_coefficients(pieces.weight) / bound.weight[pieces.rows]
    for score in np.unique(pieces.row_score):
        assert np.ptp(held[pieces.row_score == score]) < 1e-12


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [4, 8, 1000])
def test_systematic_sampling_takes_equal_steps(weighted, count):
    rng = np.random.default_rng(count)
    line = prefix(rng.random(50) * (rng.random(50) < 0.7) if weighted else np.ones(50))
    at = (np.arange(count) + 0.5) * (line[-1] / count)
    np.testing.assert_array_equal(systematic(line, count), np.searchsorted(line, at, side="right") - 1)


def test_bands_have_the_unit_of_the_scores():
    rng = np.random.default_rng(0)
    pos, neg = rng.normal(size=30), rng.normal(size=50)
    for scale in (1e-3, 7.0):
        assert bandwidth(scale * pos, scale * neg) == pytest.approx(scale * bandwidth(pos, neg))
