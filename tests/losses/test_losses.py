"""The contract of a loss, run for every loss: values, gradients, flags."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.loss_cases import (
    CASES,
    assert_affine_minorant,
    every_loss,
    generic_sample,
    gradient_tolerance,
    law,
    magnitude,
    samples,
    value_tolerance,
)
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


def every_loss_that(claim):
    """Parametrise over the losses whose bound form fits; a window that starts at 0 may make a loss convex."""
    chosen = {name: case for name, case in CASES.items() if claim(case.loss.bind([1, 0]))}
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen)


# Values


@every_loss
@given(sample=samples())
@law
def test_value_is_that_of_the_pair_loop(case, sample):
    y, weight, scores = sample
    value, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
    expected, _ = case.oracle(scores, y, weight)
    assert isinstance(value, float)
    assert gradient.shape == y.shape
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=value_tolerance(case.loss, scores))


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient_on_a_larger_sample(case, weighted):
    y, weight, scores = generic_sample(np.random.default_rng(3), 40, 103, weighted)
    value, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
    expected, expected_gradient = case.oracle(scores, y, weight)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("m", "n"), [(1, 4), (2, 3), (2, 4), (3, 3)])
def test_values_are_those_of_enumerated_orderings(m, n, seed):
    rng = np.random.default_rng(seed)
    pos, neg = rng.normal(0.5, 1.0, m), rng.normal(0.0, 1.0, n)
    if seed % 3 == 2:
        pos, neg = np.round(2 * pos) / 2, np.round(2 * neg) / 2
    y, scores = np.repeat([1, 0], [m, n]), np.concatenate([pos, neg])
    for j_a in range(n):
        for j_b in range(j_a + 1, n + 1):
            window = {"min_fpr": j_a / n, "max_fpr": j_b / n}
            for cls, oracle, enumerated in [
                (PartialAUCTight, brute.partial_auc_tight, brute.tight_by_enumeration),
                (PartialAUCStructural, brute.partial_auc_structural, brute.structural_by_enumeration),
                (PartialAUCHinge, brute.partial_auc_hinge, brute.hinge_by_definition),
            ]:
                expected = enumerated(pos, neg, j_a, j_b)
                looped = oracle(scores, y, **window)[0]
                value = cls(**window).bind(y).value_and_gradient(scores)[0]
                np.testing.assert_allclose(looped, expected, rtol=1e-10, atol=1e-13)
                np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-13)
            error = 1 - brute.partial_auc(scores, y, tie=0.0, **window)
            np.testing.assert_allclose(error, brute.error_by_definition(pos, neg, j_a, j_b), atol=1e-12)


def test_the_example_of_the_paper():
    # Narasimhan and Agarwal (2017), section 2.1; the second scoring function is the better one in [0.1, 0.2].
    y = np.repeat([1, 0], [4, 5])
    first = [9.1, 6.8, 6.1, 5.7, 8.5, 8.1, 4.2, 3.6, 2.3]
    second = [9.9, 8.7, 3.3, 2.1, 7.6, 5.3, 4.9, 4.4, 0.8]
    assert brute.partial_auc(first, y) > brute.partial_auc(second, y)
    window = {"min_fpr": 0.1, "max_fpr": 0.2}
    assert brute.partial_auc(first, y, **window) == pytest.approx(0.25)
    assert brute.partial_auc(second, y, **window) == pytest.approx(0.5)
    step = PartialAUCRamp(**window, width=1e-6, margin=0.0).bind(y)
    assert step.value_and_gradient(first)[0] == pytest.approx(0.75)
    assert step.value_and_gradient(second)[0] == pytest.approx(0.5)


@every_loss
def test_all_scores_equal(case):
    # No ranking at all: every convex surrogate here is 1, which is what makes the zero model attractive.
    y = np.repeat([1, 0], [3, 11])
    for constant in (0.0, 2.5, -1e6):
        value, _ = case.loss.bind(y).value_and_gradient(np.full(14, constant))
        np.testing.assert_allclose(value, case.oracle(np.zeros(14), y)[0], rtol=1e-12)
        if case.loss.bind(y).convex and not isinstance(case.loss, WindowPairs):
            np.testing.assert_allclose(value, 1.0, rtol=1e-12)


@every_loss
def test_one_example_per_class(case):
    for difference in (-2.0, 0.0, 0.3, 5.0):
        scores = np.array([difference, 0.0])
        value = case.loss.bind([1, 0]).value_and_gradient(scores)[0]
        np.testing.assert_allclose(value, case.oracle(scores, [1, 0])[0], rtol=1e-10, atol=1e-14)


@every_loss
def test_a_large_common_offset_costs_no_precision(case):
    y, _, scores = generic_sample(np.random.default_rng(8), 20, 50)
    scores = scores + 1e6
    value, gradient = case.loss.bind(y).value_and_gradient(scores)
    expected, expected_gradient = case.oracle(scores, y)
    np.testing.assert_allclose(value, expected, rtol=1e-7)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-9)


@every_loss
@pytest.mark.parametrize("outlier", [-1e6, 1e6])
def test_an_inactive_outlier_costs_no_precision(case, outlier):
    y, _, scores = generic_sample(np.random.default_rng(9), 20, 50)
    row = np.flatnonzero(y if outlier > 0 else ~y)[0]
    scores[row] = outlier
    value, gradient = case.loss.bind(y).value_and_gradient(scores)
    expected, expected_gradient = case.oracle(scores, y)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("outlier", [1e4, 1e6])
def test_an_outlier_costs_a_bounded_loss_no_precision(outlier):
    # It is on a flat part of the step for every other score: only its rank may matter.
    y, _, scores = generic_sample(np.random.default_rng(9), 20, 50)
    bound = PartialAUCRamp(0.0, 0.5).bind(y)
    for rows in (np.flatnonzero(~y)[:1], np.array([np.argmax(y), np.argmin(y)])):
        scores[rows] = outlier
        value, gradient = bound.value_and_gradient(scores)
        expected, expected_gradient = brute.partial_auc_ramp(scores, y, None, 0.0, 0.5)
        np.testing.assert_allclose(value, expected, rtol=1e-6)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls", [PartialAUCTight, PartialAUCStructural, PartialAUCHinge, PartialAUCRamp])
@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [(0.0, 0.07, 0, 7), (0.0, 0.29, 0, 29), (0.07, 0.14, 7, 14), (0.28, 0.57, 28, 57), (0.55, 0.58, 55, 58)],
)
def test_rounding_opens_no_sliver_of_a_negative(cls, low, high, first, last):
    # 100 * 0.07 > 7, 100 * 0.28 > 28 and 100 * 0.29 < 29 in floating point.
    y = np.repeat([1, 0], [3, 100])
    negatives = np.linspace(2.0, -2.0, 100)
    scores = np.concatenate([[-3.0, -3.1, -3.2], negatives])
    # A step wide enough to have a slope on every pair.
    options = {"width": 20.0, "margin": 0.0} if cls is PartialAUCRamp else {}
    bound = cls(low, high, **options).bind(y)
    value, gradient = bound.value_and_gradient(scores)
    touched = np.flatnonzero(gradient[3:])
    if cls is PartialAUCHinge or cls is PartialAUCRamp:
        assert (touched.min(), touched.max() + 1) == (first, last)
    elif cls is PartialAUCTight:
        assert (touched.min(), touched.max() + 1) == (0, last)
    if cls is PartialAUCHinge:
        expected = brute.hinge_by_definition(scores[:3], negatives, first, last)
        np.testing.assert_allclose(value, expected, rtol=1e-13)


# Gradients


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_is_the_slope_of_the_value(case, weighted):
    rng = np.random.default_rng(11)
    for _ in range(4):
        y, weight, scores = generic_sample(rng, weighted=weighted)
        bound = case.loss.bind(y, weight)
        _, gradient = bound.value_and_gradient(scores)
        for _ in range(5):
            step = 1e-6 * rng.standard_normal(y.size)
            above = bound.value_and_gradient(scores + step)[0]
            below = bound.value_and_gradient(scores - step)[0]
            np.testing.assert_allclose((above - below) / 2, gradient @ step, rtol=1e-5, atol=1e-13)


@every_loss
@given(data=st.data())
@law
def test_gradient_is_that_of_the_pair_loop_where_negatives_tie(case, data):
    # Positives keep off the grid of the negatives, so no pair is on a kink and only ties remain.
    y, weight, scores = data.draw(samples())
    shift = data.draw(st.floats(0.01, 0.2))
    scores = np.where(y, np.linspace(-1, 2, y.size) + shift / np.sqrt(2), np.round(scores % 4 * 2) / 2)
    value, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
    expected, expected_gradient = case.oracle(scores, y, weight)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-8, atol=1e-11)


@every_loss
@given(sample=samples())
@law
def test_positives_pull_up_and_negatives_down(case, sample):
    y, weight, scores = sample
    _, gradient = case.loss.bind(y, weight).value_and_gradient(scores)
    assert np.isfinite(gradient).all()
    slack = gradient_tolerance(case.loss, scores) + 1e-12 * np.abs(gradient).max()
    assert (gradient[y] <= slack).all()
    assert (gradient[~y] >= -slack).all()


@every_loss
@given(sample=samples(), shift=st.floats(-100, 100))
@law
def test_shift_invariance(case, sample, shift):
    y, weight, scores = sample
    assert type(case.loss).shift_invariant
    bound = case.loss.bind(y, weight)
    value, gradient = bound.value_and_gradient(scores)
    slack = y.size * gradient_tolerance(case.loss, scores)
    assert abs(gradient.sum()) <= slack + 1e-12 * np.abs(gradient).sum()
    moved = bound.value_and_gradient(scores + shift)[0]
    shifted = value_tolerance(case.loss, np.abs(scores) + abs(shift))
    rounding = shifted + 1e-14 * magnitude(scores, shift) * (1 + np.abs(gradient).sum())
    np.testing.assert_allclose(moved, value, rtol=1e-10, atol=10 * rounding)


@pytest.mark.parametrize(
    "loss",
    [
        PairwiseHinge(),
        PairwiseSquaredHinge(),
        *(cls(0.0, high) for cls in (PartialAUCTight, PartialAUCStructural, PartialAUCHinge) for high in (0.4, 1.0)),
        PartialAUCHinge(0.2, 0.6),
    ],
    ids=repr,
)
def test_a_pair_on_the_kink_is_inactive(loss):
    y = np.repeat([1, 0], [2, 5])
    scores = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    value, gradient = loss.bind(y).value_and_gradient(scores)
    assert value == 0.0
    assert not gradient.any()
    # One negative more than the kink allows is active alone.
    if getattr(loss, "min_fpr", 0.0) == 0.0:
        scores[3] = 0.5
        _, gradient = loss.bind(y).value_and_gradient(scores)
        assert np.flatnonzero(gradient).tolist() == [0, 1, 3]


def test_a_pair_on_the_kink_is_inactive_inside_a_late_window():
    # The negatives before the window are above the positive, so the window counts; its pair is on the kink.
    y = np.array([1, 0, 0, 0, 0])
    scores = np.array([1.0, 3.0, 2.0, 0.0, -1.0])
    for cls in (PartialAUCTight, PartialAUCStructural):
        value, gradient = cls(0.5, 0.75).bind(y).value_and_gradient(scores)
        assert value == pytest.approx(3.0)
        np.testing.assert_allclose(gradient, [-2.0, 1.0, 1.0, 0.0, 0.0])


# Convexity and the other flags


def test_flags_say_what_is_known():
    y, _, _ = generic_sample(np.random.default_rng(0))
    for loss in (PairwiseHinge(), PairwiseSquaredHinge(), PartialAUCTight(0.1, 0.5), PartialAUCStructural(0.1, 0.5)):
        assert loss.bind(y).convex
    assert PartialAUCHinge(0.0, 0.5).bind(y).convex
    for loss in (
        PartialAUCHinge(0.1, 0.5),
        PartialAUCRamp(),
        WindowPairs("sigmoid"),
        WindowPairs("squared_hinge", 0.1, 0.5),
    ):
        assert not loss.bind(y).convex


@every_loss_that(lambda bound: bound.convex)
@pytest.mark.parametrize("weighted", [False, True])
def test_subgradient_inequality(case, weighted):
    """From many base points and scales: all ties, nearly ties, the usual, and huge."""
    rng = np.random.default_rng(5)
    y, weight, _ = generic_sample(rng, 5, 11, weighted)
    bound = case.loss.bind(y, weight)
    scales = (0.0, 1e-3, 0.3, 1.0, 30.0, 1e6)
    for base_scale in scales:
        for _ in range(4):
            base = base_scale * rng.standard_normal(y.size)
            if rng.random() < 0.5:
                base = np.round(base)
            value, gradient = bound.value_and_gradient(base)
            for scale in scales:
                other = scale * rng.standard_normal(y.size) + rng.integers(0, 2) * base
                assert_affine_minorant(bound, base, other, value, gradient)


@every_loss_that(lambda bound: bound.convex)
@given(sample=samples(vectors=2))
@law
def test_subgradient_inequality_between_tied_points(case, sample):
    y, weight, base, other = sample
    bound = case.loss.bind(y, weight)
    assert_affine_minorant(bound, base, other, *bound.value_and_gradient(base))


@every_loss_that(lambda bound: not bound.convex)
def test_what_claims_no_convexity_has_none(case):
    """A witness for each loss not called convex: a chord below the curve."""
    rng = np.random.default_rng(21)
    bound = case.loss.bind(np.repeat([1, 0], [2, 13]))
    for _ in range(4000):
        first, second = rng.normal(0.0, 1.0, (2, 15)) * rng.choice([0.3, 1.0, 3.0])
        ends = bound.value_and_gradient(first)[0] + bound.value_and_gradient(second)[0]
        if bound.value_and_gradient((first + second) / 2)[0] > ends / 2 + 1e-6:
            return
    pytest.fail("no witness against convexity found")


def test_the_squared_hinge_on_all_pairs_has_a_continuous_gradient():
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], [4, 9])
    bound = PairwiseSquaredHinge().bind(y)
    for _ in range(50):
        scores = rng.integers(-2, 3, y.size) / 2
        _, gradient = bound.value_and_gradient(scores)
        _, near = bound.value_and_gradient(scores + 1e-8 * rng.standard_normal(y.size))
        np.testing.assert_allclose(near, gradient, atol=1e-5)


@pytest.mark.parametrize("loss", [PairwiseHinge(), PairwiseSquaredHinge()])
def test_batch_means_of_losses_on_all_pairs_are_unbiased(loss):
    """The mean over all batches of two positives and three negatives is the value on all rows."""
    y, _, scores = generic_sample(np.random.default_rng(2), 4, 5)
    positives, negatives = np.flatnonzero(y), np.flatnonzero(~y)
    batches = [np.array(p + q) for p in combinations(positives, 2) for q in combinations(negatives, 3)]
    mean = np.mean([loss.bind(y[b]).value_and_gradient(scores[b])[0] for b in batches])
    np.testing.assert_allclose(mean, loss.bind(y).value_and_gradient(scores)[0], rtol=1e-12)
