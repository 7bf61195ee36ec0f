"""What holds between the losses, and between a loss and the measure it stands for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.loss_cases import CASES, WINDOWS, generic_sample, law, magnitude, samples, value_tolerance
from oracles import brute
from rocmax.losses import (
    PairwiseHinge,
    PairwiseSquaredHinge,
    PartialAUCHinge,
    PartialAUCRamp,
    PartialAUCStructural,
    PartialAUCTight,
    WindowPairs,
)

every_window = pytest.mark.parametrize(("low", "high"), WINDOWS)


def value(loss, y, weight, scores):
    return loss.bind(y, weight).value_and_gradient(scores)[0]


def is_upper_bound(loss):
    """A step bounds the error when it has not begun to fall at a tie."""
    if isinstance(loss, PartialAUCRamp):
        return loss.margin is None or loss.margin >= loss.width / 2
    if isinstance(loss, WindowPairs):
        return loss.surrogate == "squared_hinge" and not loss.soft_tail
    return True


BOUNDS = {name: case.loss for name, case in CASES.items() if is_upper_bound(case.loss)}


@pytest.mark.parametrize("loss", BOUNDS.values(), ids=BOUNDS)
@given(sample=samples())
@law
def test_loss_bounds_the_error(loss, sample):
    y, weight, scores = sample
    ends = {"min_fpr": 0.0, "max_fpr": 1.0, "min_tpr": 0.0}
    window = {name: getattr(loss, name, default) for name, default in ends.items()}
    got = value(loss, y, weight, scores)
    error = 1 - brute.partial_auc(scores, y, weight, **window)
    # Stronger, and true as well: the error when every tied pair counts as lost.
    worst = 1 - brute.partial_auc(scores, y, weight, tie=0.0, **window)
    assert error <= worst
    assert worst <= got + 1e-10 * magnitude(got) + value_tolerance(loss, scores)


def test_a_step_that_has_begun_to_fall_at_a_tie_is_no_bound():
    y, scores = np.array([1, 0]), np.zeros(2)
    assert value(PartialAUCRamp(0.0, 1.0, width=1.0, margin=0.0), y, None, scores) == pytest.approx(0.5)
    assert value(PartialAUCRamp(0.0, 1.0, width=1.0, margin=-0.5), y, None, scores) == 0.0


@every_window
@given(sample=samples(scales=(0.0, 1.0, 5.0)))
@law
def test_a_steep_step_is_the_error_with_ties_as_one_half(low, high, sample):
    y, weight, scores = sample
    scores = np.round(scores)
    step = PartialAUCRamp(low, high, width=0.1, margin=0.0)
    error = 1 - brute.partial_auc(scores, y, weight, low, high)
    np.testing.assert_allclose(value(step, y, weight, scores), error, atol=1e-9)


@every_window
@given(sample=samples(scales=(0.0, 1.0, 5.0)))
@law
def test_a_steep_step_at_zero_margin_counts_ties_as_lost(low, high, sample):
    y, weight, scores = sample
    scores = np.round(scores)
    step = PartialAUCRamp(low, high, width=0.1)
    worst = 1 - brute.partial_auc(scores, y, weight, low, high, tie=0.0)
    np.testing.assert_allclose(value(step, y, weight, scores), worst, atol=1e-9)


@every_window
@given(sample=samples())
@law
def test_order_of_the_surrogates(low, high, sample):
    y, weight, scores = sample
    slack = 1e-10 * magnitude(scores) / (high - low)
    tight = value(PartialAUCTight(low, high), y, weight, scores)
    structural = value(PartialAUCStructural(low, high), y, weight, scores)
    hinge = value(PartialAUCHinge(low, high), y, weight, scores)
    eta = brute.zero_margin_terms(scores, y, weight, low, high, brute.BEFORE)
    extra = brute.zero_margin_terms(scores, y, weight, low, high, brute.AFTER)
    assert tight <= structural + slack
    assert tight <= hinge + eta + slack
    assert brute.tight_lower_bound(scores, y, weight, low, high) <= tight + slack
    # 003 Theorems 1, 2 and 4 together: the structural surrogate is the tight one plus what comes after.
    np.testing.assert_allclose(structural, tight + extra, rtol=1e-10, atol=slack)
    if low == 0:
        np.testing.assert_allclose(tight, hinge, rtol=1e-10, atol=slack)


@every_window
@given(sample=samples())
@law
def test_tight_is_hinge_and_eta_when_all_pairs_are_a_margin_apart(low, high, sample):
    y, weight, scores = sample
    scores = 2 * np.round(scores) + y
    tight = value(PartialAUCTight(low, high), y, weight, scores)
    hinge = value(PartialAUCHinge(low, high), y, weight, scores)
    eta = brute.zero_margin_terms(scores, y, weight, low, high, brute.BEFORE)
    np.testing.assert_allclose(tight, hinge + eta, rtol=1e-10, atol=1e-10 * magnitude(scores) / (high - low))


def test_hinge_may_exceed_tight():
    # The positive beats the negatives by less than 1, the one before the window too: only the hinge minds.
    y, scores = np.array([1, 0, 0]), np.array([0.9, 0.0, 0.0])
    assert value(PartialAUCHinge(0.5, 1.0), y, None, scores) == pytest.approx(0.1)
    assert value(PartialAUCTight(0.5, 1.0), y, None, scores) == 0.0


@every_window
@given(sample=samples())
@law
def test_tight_is_at_least_one_less_the_lead_over_the_top_negatives(low, high, sample):
    # The whole prefix is one candidate of the maximum: the reason for collapse to zero weights.
    y, weight, scores = sample
    full = brute.Sample(scores, y, weight, low, high)
    top = sum(length * z for _, z, length, place in full.pieces if place != brute.AFTER) / float(full.b)
    mean = sum(v * s for _, s, v in full.positives) / float(full.m)
    floor = 1 - high / (high - low) * (mean - top)
    tight = value(PartialAUCTight(low, high), y, weight, scores)
    assert tight >= floor - 1e-10 * magnitude(scores) / (high - low)


@given(sample=samples())
@law
def test_on_the_whole_range_all_hinges_are_one(sample):
    y, weight, scores = sample
    expected, expected_gradient = PairwiseHinge().bind(y, weight).value_and_gradient(scores)
    for cls in (PartialAUCTight, PartialAUCStructural, PartialAUCHinge):
        got, gradient = cls(0.0, 1.0).bind(y, weight).value_and_gradient(scores)
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12 * magnitude(scores))
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("high", [0.1, 0.3, 0.55, 1.0])
def test_from_zero_the_tight_and_the_hinge_loss_have_one_gradient(high):
    rng = np.random.default_rng(1)
    for weighted in (False, True):
        y, weight, scores = generic_sample(rng, 9, 21, weighted)
        _, tight = PartialAUCTight(0.0, high).bind(y, weight).value_and_gradient(scores)
        _, hinge = PartialAUCHinge(0.0, high).bind(y, weight).value_and_gradient(scores)
        np.testing.assert_allclose(tight, hinge, rtol=1e-10, atol=1e-13)


@every_window
def test_hinge_is_a_difference_of_losses_that_start_at_zero(low, high):
    y, weight, scores = generic_sample(np.random.default_rng(6), 9, 21, True)
    hinge = value(PartialAUCHinge(low, high), y, weight, scores)
    upper = high * value(PartialAUCTight(0.0, high), y, weight, scores)
    lower = low * value(PartialAUCTight(0.0, low), y, weight, scores) if low > 0 else 0.0
    np.testing.assert_allclose(hinge, (upper - lower) / (high - low), rtol=1e-9)


@given(sample=samples())
@law
def test_squared_hinge_lies_above_the_square_of_the_hinge(sample):
    y, weight, scores = sample
    hinge = value(PairwiseHinge(), y, weight, scores)
    squared = value(PairwiseSquaredHinge(), y, weight, scores)
    assert squared >= hinge**2 * (1 - 1e-10)


@every_window
@given(sample=samples(), cut=st.floats(0.1, 0.9))
@law
def test_windows_add_up(low, high, sample, cut):
    """The hinge and the step on two adjacent windows average to those on their union."""
    y, weight, scores = sample
    middle = round(low + cut * (high - low), 3)
    if not low < middle < high:
        return
    for cls in (PartialAUCHinge, PartialAUCRamp):
        left = value(cls(low, middle), y, weight, scores)
        right = value(cls(middle, high), y, weight, scores)
        whole = value(cls(low, high), y, weight, scores)
        parts = ((middle - low) * left + (high - middle) * right) / (high - low)
        np.testing.assert_allclose(parts, whole, rtol=1e-8, atol=1e-8 * magnitude(scores))


@pytest.mark.parametrize("min_tpr", [0.0, 0.5])
def test_the_divisor_of_a_sum_is_the_number_of_pairs_in_the_window(min_tpr):
    loss = PartialAUCTight(0.1, 0.3, min_tpr=min_tpr)
    assert loss.sum_scale(20, 100) == pytest.approx(20 * (1 - min_tpr) * 100 * 0.2)
