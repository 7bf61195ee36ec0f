"""What solvers ask of a loss beyond a subgradient: smoothing, curvature, splitting, Hessian products."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from helpers.loss_cases import (
    CONVEX,
    WINDOWS,
    assert_affine_minorant,
    every_convex_loss,
    generic_sample,
    law,
    magnitude,
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
)
from rocmax.losses.base import Tilted

WIDTHS = [1e-3, 0.1, 0.5, 1.0, 3.0, 100.0]
CURVED = {name: case for name, case in CONVEX.items() if case.loss.bind([1, 0]).has_curvature}
every_curved_loss = pytest.mark.parametrize("case", CURVED.values(), ids=CURVED)
USUAL = (0.0, 2.0**-10, 1.0, 1.0, 8.0)
every_window = pytest.mark.parametrize(("low", "high"), WINDOWS)


# Smoothing


@every_convex_loss
@given(sample=samples(), widths=st.lists(st.sampled_from([0.0, *WIDTHS]), min_size=1, max_size=5))
@law
def test_bounds_at_the_same_scores_do_not_depend_on_earlier_ones(case, sample, widths):
    y, weight, scores = sample
    bound = case.loss.bind(y, weight)
    here = bound.at(scores)
    for k, width in enumerate(widths):
        value, gradient = bound.at(scores).minorant(width)
        if k % 2:
            assert here.value(width) == pytest.approx(value, rel=1e-12, abs=1e-12)
        found = here.minorant(width)
        assert found[0] == pytest.approx(value, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-12, atol=1e-12)
        assert here.value(width) == found[0]


@pytest.mark.parametrize("width", [0.0, 0.3])
def test_an_evaluation_samples_the_same_pairs(width):
    y, weight, scores = generic_sample(np.random.default_rng(0), 50, 350, weighted=True)
    bound = PartialAUCTight(0.0, 0.1).bind(y, weight)
    here = bound.at(scores)
    here.minorant(1.0)
    if not bound.has_curvature:
        return
    for found, expected in zip(here.curvature(50, width), bound.curvature(scores, 50, width), strict=True):
        np.testing.assert_array_equal(found, expected)


@every_convex_loss
@given(sample=samples(vectors=3, scales=USUAL), width=st.sampled_from(WIDTHS))
@law
def test_smoothed_is_an_affine_minorant(case, sample, width):
    y, weight, base, *others = sample
    bound = case.loss.bind(y, weight)
    value, gradient = bound.at(base).minorant(width)
    assert isinstance(value, float)
    assert gradient.shape == y.shape
    loss = bound.value_and_gradient(base)[0]
    assert value <= loss + 1e-10 * (1 + abs(loss)) + value_tolerance(case.loss, base)
    # Nearby points are where a minorant that is too high shows; far ones test its slope.
    rng = np.random.default_rng(0)
    near = [base + size * rng.standard_normal(y.size) for size in (1e-3 * width, 0.3 * width, width, 1.0)]
    for other in [*others, *near, np.zeros(y.size), y.astype(float), 5.0 * y]:
        assert_affine_minorant(bound, base, other, value, gradient)


@every_convex_loss
@pytest.mark.parametrize("width", [0.01, 0.3, 2.0])
def test_smoothed_is_an_affine_minorant_on_a_larger_sample(case, width):
    rng = np.random.default_rng(7)
    for weighted in (False, True):
        y, weight, base = generic_sample(rng, 30, 90, weighted)
        bound = case.loss.bind(y, weight)
        value, gradient = bound.at(base).minorant(width)
        for size in (0.01, 0.1, 1.0, 10.0):
            for _ in range(10):
                assert_affine_minorant(bound, base, base + size * rng.standard_normal(y.size), value, gradient)
        step = np.zeros(y.size)
        for row in range(y.size):
            step[:] = 0.0
            step[row] = rng.choice([-1, 1]) * width
            assert_affine_minorant(bound, base, base + step, value, gradient)


@every_convex_loss
@given(sample=samples())
@law
def test_no_width_is_the_subgradient(case, sample):
    y, weight, scores = sample
    bound = case.loss.bind(y, weight)
    value, gradient = bound.value_and_gradient(scores)
    smoothed, coefficients = bound.at(scores).minorant(0.0)
    np.testing.assert_allclose(smoothed, value, rtol=1e-12, atol=value_tolerance(case.loss, scores))
    np.testing.assert_allclose(coefficients, gradient, rtol=1e-12, atol=1e-14)


@every_convex_loss
@given(sample=samples(scales=USUAL))
@law
def test_smoothed_value_tends_to_the_loss(case, sample):
    y, weight, scores = sample
    bound = case.loss.bind(y, weight)
    loss, _ = bound.value_and_gradient(scores)
    low, high = getattr(case.loss, "min_fpr", 0.0), getattr(case.loss, "max_fpr", 1.0)
    for width in (1e-2, 1e-4, 1e-6):
        value, _ = bound.at(scores).minorant(width)
        rounding = value_tolerance(case.loss, scores) / (high - low)
        assert loss - value <= 10 * width / (high - low) + 1e-10 * abs(loss) + rounding


@every_convex_loss
@given(sample=samples(), width=st.sampled_from(WIDTHS))
@law
def test_smoothed_coefficients_sum_to_zero(case, sample, width):
    y, weight, scores = sample
    _, gradient = case.loss.bind(y, weight).at(scores).minorant(width)
    assert abs(gradient.sum()) <= 1e-11 * (1.0 + np.abs(gradient).sum())


@every_convex_loss
@pytest.mark.parametrize(("scale", "width"), [(1.0, 1e-9), (1.0, 1e-12), (1e5, 1e-4)])
def test_smoothed_certifies_however_small_the_width(case, scale, width):
    rng = np.random.default_rng(15)
    for _ in range(10):
        y, _, scores = generic_sample(rng, 5, 11)
        scores = scale * np.round(2 * scores) / 2
        bound = case.loss.bind(y)
        loss, _ = bound.value_and_gradient(scores)
        value, gradient = bound.at(scores).minorant(width)
        assert value <= loss * (1 + 1e-11)
        np.testing.assert_allclose(value, loss, rtol=1e-8, atol=1e4 * width)
        for other in (0 * scores, scores + scale * rng.standard_normal(y.size)):
            assert_affine_minorant(bound, scores, other, value, gradient)


@pytest.mark.parametrize("cls", [PartialAUCTight, PartialAUCStructural])
def test_smoothed_gradient_is_continuous_at_the_end_of_the_window(cls):
    # The positives lie between the negatives of the window and the others: no pair is near its kink,
    # and which of the tied negatives are inside is all that changes.
    rng = np.random.default_rng(61)
    y = np.repeat([1, 0], [3, 20])
    bound = cls(0.0, 0.33).bind(y)
    for _ in range(20):
        scores = np.concatenate([[0.2, 0.3, 0.4], np.sort(rng.integers(2, 6, 20) / 4)])
        scores[3:13] -= 5.0
        step = 1e-8 * rng.standard_normal(y.size)
        (_, before), (_, after) = (bound.at(scores + sign * step).minorant(0.25) for sign in (-1, 1))
        np.testing.assert_allclose(after, before, atol=1e-5)


@pytest.mark.parametrize("cls", [PartialAUCTight, PartialAUCStructural])
def test_smoothed_gradient_is_continuous_where_a_positive_leaves_the_window(cls):
    # The positive starts below all 200 negatives and ends above them. On the way its best rank leaps over
    # many at once; smoothed, it passes few at a time.
    y = np.repeat([1, 0], [1, 200])
    negatives = np.random.default_rng(67).standard_normal(200)
    bound = cls(0.2, 0.5).bind(y)

    def longest_leap(width):
        path = np.arange(-4.0, 4.0, 0.01)
        held = [-bound.at(np.append(at, negatives)).minorant(width)[1][0] for at in path]
        return np.abs(np.diff(held)).max() * bound.m * bound.n * 0.3

    assert longest_leap(0.0) > 20
    assert longest_leap(0.5) < 6


@every_convex_loss
@given(sample=samples(scales=USUAL), width=st.sampled_from(WIDTHS), data=st.data())
@law
def test_order_of_rows_does_not_matter_to_smoothing(case, sample, width, data):
    y, weight, scores = sample
    order = np.array(data.draw(st.permutations(range(y.size))))
    value, gradient = case.loss.bind(y, weight).at(scores).minorant(width)
    permuted_weight = None if weight is None else np.array(weight)[order]
    again, permuted = case.loss.bind(y[order], permuted_weight).at(scores[order]).minorant(width)
    np.testing.assert_allclose(again, value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(permuted, gradient[order], rtol=1e-8, atol=1e-8)


@every_convex_loss
def test_smoothed_gives_nothing_to_absent_rows(case):
    y, weight, scores = generic_sample(np.random.default_rng(3), 8, 15, True)
    weight[[np.flatnonzero(y)[2], *np.flatnonzero(~y)[[0, 5]]]] = 0.0
    kept = weight > 0
    value, gradient = case.loss.bind(y, weight).at(scores).minorant(0.5)
    expected, coefficients = case.loss.bind(y[kept], weight[kept]).at(scores[kept]).minorant(0.5)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient[kept], coefficients, rtol=1e-10, atol=1e-14)
    assert not gradient[~kept].any()


# Curvature


@every_curved_loss
@given(sample=samples(), count=st.integers(2, 60), width=st.sampled_from([0.0, 0.1, 3.0]))
@law
def test_curvature_is_a_weighted_list_of_pairs(case, sample, count, width):
    y, weight, scores = sample
    bound = case.loss.bind(y, weight)
    pairs = bound.curvature(scores, count, width)
    assert len(pairs.first) == len(pairs.second) == len(pairs.weight)
    for rows in (pairs.first, pairs.second):
        assert np.issubdtype(np.asarray(rows).dtype, np.integer)
        assert ((rows >= 0) & (rows < y.size)).all()
    assert np.isfinite(pairs.weight).all()
    assert (pairs.weight >= 0).all()
    again = bound.curvature(scores, count, width)
    for got, expected in zip(again, pairs, strict=True):
        np.testing.assert_array_equal(got, expected)


@every_curved_loss
def test_curvature_of_a_single_pair(case):
    y, _, scores = generic_sample(np.random.default_rng(3), 30, 60)
    for vector in (scores, np.zeros(y.size)):
        pairs = case.loss.bind(y).curvature(vector, 1)
        assert np.isfinite(pairs.weight).all()
        assert (pairs.weight >= 0).all()


@every_curved_loss
def test_curvature_ignores_absent_rows(case):
    y, weight, scores = generic_sample(np.random.default_rng(3), 30, 60, True)
    absent = np.concatenate([np.flatnonzero(y)[:10], np.flatnonzero(~y)[:20]])
    weight[absent] = 0.0
    pairs = case.loss.bind(y, weight).curvature(scores, 500)
    used = pairs.weight > 0
    assert used.any()
    assert not np.isin(pairs.first[used], absent).any()
    assert not np.isin(pairs.second[used], absent).any()


def second_difference(bound, scores, direction, step):
    middle = bound.value_and_gradient(scores)[0]
    ends = [bound.value_and_gradient(scores + sign * step * direction)[0] for sign in (-1, 1)]
    return (sum(ends) - 2 * middle) / step**2


def curvature_sample(weighted, size=4000):
    rng = np.random.default_rng(41)
    y = np.arange(size) % 2 == 0
    weight = rng.integers(1, 4, size) if weighted else None
    scores = rng.standard_normal(size) + 1.2 * y
    noise = rng.standard_normal(size)
    directions = {
        "positives up": y.astype(float),
        "scale": scores,
        "noise": noise,
        "noise of positives": y * noise,
        "noise of negatives": ~y * noise,
    }
    return y, weight, scores, directions


def sampled_second_derivative(bound, scores, direction):
    pairs = bound.curvature(scores, 20_000)
    return pairs.weight @ (direction[pairs.first] - direction[pairs.second]) ** 2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "loss",
    [
        PairwiseHinge(),
        PairwiseSquaredHinge(),
        PartialAUCTight(0.0, 0.3),
        PartialAUCStructural(0.0, 0.3),
        PartialAUCStructural(0.0, 0.1),
    ],
    ids=repr,
)
def test_curvature_is_the_second_derivative(loss, weighted):
    y, weight, scores, directions = curvature_sample(weighted)
    bound = loss.bind(y, weight)
    for name, direction in directions.items():
        expected = second_difference(bound, scores, direction, 0.2)
        got = sampled_second_derivative(bound, scores, direction)
        if name == "scale" and isinstance(loss, PartialAUCStructural):
            continue  # the bands in which densities are measured are not narrow enough for this
        assert got == pytest.approx(expected, rel=0.25), name


@pytest.mark.parametrize("loss", [PartialAUCTight(0.2, 0.5), PartialAUCTight(0.05, 0.37)], ids=repr)
def test_curvature_of_a_late_window_is_an_upper_estimate(loss):
    # A positive that jumps over many negatives at once sees their mean; pairs of non-negative weight
    # add their spread to that, so only directions without such spread can be met.
    y, _, scores, directions = curvature_sample(False)
    bound = loss.bind(y)
    for name, direction in directions.items():
        expected = second_difference(bound, scores, direction, 0.2)
        got = sampled_second_derivative(bound, scores, direction)
        upper = 1.25 if name in ("positives up", "noise of positives", "scale") else 2.0
        assert 0.8 * expected <= got <= upper * expected, name


@pytest.mark.parametrize("loss", [PartialAUCRamp(), PartialAUCHinge(0.1, 0.5)], ids=lambda loss: type(loss).__name__)
def test_what_does_not_exist_is_refused_by_name(loss):
    bound = loss.bind([1, 0, 0])
    if isinstance(loss, PartialAUCRamp):
        with pytest.raises(TypeError, match="Ramp"):
            bound.split()
    with pytest.raises(TypeError, match="curvature"):
        bound.curvature(np.zeros(3), 10)


# Difference of convex losses


@every_window
@given(sample=samples(vectors=3))
@law
def test_split_is_a_difference_of_convex_losses(low, high, sample):
    y, weight, base, *others = sample
    bound = PartialAUCHinge(low, high).bind(y, weight)
    plus, minus = bound.split()
    for scores in (base, *others):
        whole = bound.value_and_gradient(scores)[0]
        parts = plus.value_and_gradient(scores)[0] - minus.value_and_gradient(scores)[0]
        np.testing.assert_allclose(parts, whole, rtol=1e-9, atol=1e-11 * magnitude(scores) / (high - low))
    for part in (plus, minus):
        assert part.convex
        value, gradient = part.value_and_gradient(base)
        assert gradient.shape == y.shape
        for other in others:
            assert_affine_minorant(part, base, other, value, gradient)
        smoothed, coefficients = part.at(base).minorant(0.3)
        for other in others:
            assert_affine_minorant(part, base, other, smoothed, coefficients)


@every_window
def test_split_gradients_subtract(low, high):
    rng = np.random.default_rng(43)
    for weighted in (False, True):
        y, weight, scores = generic_sample(rng, 9, 21, weighted)
        bound = PartialAUCHinge(low, high).bind(y, weight)
        plus, minus = bound.split()
        parts = plus.value_and_gradient(scores)[1] - minus.value_and_gradient(scores)[1]
        np.testing.assert_allclose(parts, bound.value_and_gradient(scores)[1], rtol=1e-8, atol=1e-12 / (high - low))


@every_window
def test_split_parts_have_curvature(low, high):
    y, weight, scores = generic_sample(np.random.default_rng(44), 40, 80, True)
    plus, _ = PartialAUCHinge(low, high).bind(y, weight).split()
    pairs = plus.curvature(scores, 200)
    assert (pairs.weight >= 0).all()
    assert pairs.weight.any()


def test_the_minorant_of_a_tilted_loss_is_tilted():
    rng = np.random.default_rng(0)
    y, _, scores = generic_sample(rng)
    tilt = rng.standard_normal(y.size)
    base = PartialAUCTight(0.0, 0.5).bind(y)
    value, gradient = base.at(scores).minorant(0.5)[:2]
    tilted, tilted_gradient = Tilted(base, tilt, 2.0).at(scores).minorant(0.5)[:2]
    assert tilted == pytest.approx(value - tilt @ scores + 2.0)
    np.testing.assert_allclose(tilted_gradient, gradient - tilt)


def test_the_weight_of_the_sampled_pairs_does_not_depend_on_their_number():
    y, weight, scores = generic_sample(np.random.default_rng(0), 40, 60, weighted=True)
    bound = PairwiseHinge().bind(y, weight)
    total = bound.curvature(scores, 200).weight.sum()
    assert total > 0
    for count in (1, 2, 7):
        assert bound.curvature(scores, count).weight.sum() == pytest.approx(total)


def test_pairs_at_a_jump_of_the_rank_reach_each_negative_that_it_passes():
    """The rank of the one positive jumps between the end of the window, 15, and the 1 negative above the positive."""
    negatives = np.sort(np.random.default_rng(0).normal(size=100))
    scores = np.append(negatives, 2.0)
    pairs = PartialAUCTight(0.1, 0.15).bind(np.arange(101) == 100).curvature(scores, 200)
    assert (negatives > 2.0).sum() == 1
    # Rows 85 to 98 lie in between; those near the score of the positive are at a kink as well.
    times = np.bincount(pairs.second[pairs.first == 100], minlength=101)
    assert (times[:85] == 0).all()
    assert np.ptp(times[85:96]) <= 2 < times[85:96].min()


def test_sampled_pairs_of_a_soft_selection_of_positives_are_of_those_that_are_selected_in_part():
    rng = np.random.default_rng(0)
    y, scores, width, selected = np.arange(500) % 2 == 0, rng.normal(size=500), 2.0, 0.6 * 250
    pairs = PartialAUCTight(0.0, 0.4, min_tpr=0.4).bind(y).curvature(scores, 50, width)
    both = y[pairs.first] & y[pairs.second]
    rows = np.concatenate([pairs.first[both], pairs.second[both]])
    # The lowest scores are selected, with a share that falls over the width; the shares add up to 60 %.
    end = brentq(lambda at: np.clip(0.5 + (at - scores[y]) / width, 0, 1).sum() - selected, -5, 5)
    assert rows.size > 20
    assert np.abs(scores[rows] - end).max() <= width / 2 * (1 + 1e-6)
