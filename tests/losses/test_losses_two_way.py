"""Losses above a true-positive rate: laws that tie them to the losses on a window of false-positive rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.loss_cases import CORNERS, WINDOWED, generic_sample, law, magnitude, samples
from oracles import brute
from rocmax.losses import PartialAUCHinge, PartialAUCRamp, PartialAUCStructural, PartialAUCTight

CLASSES = (PartialAUCTight, PartialAUCStructural, PartialAUCHinge, PartialAUCRamp)
# The structural loss also charges the negatives beyond a window, so its two sides differ.
PAIRWISE = [PartialAUCTight, PartialAUCHinge, PartialAUCRamp]
every_class = pytest.mark.parametrize("cls", CLASSES)
rates = st.sampled_from([0.05, 0.125, 0.3, 0.5, 0.77, 1.0])


def evaluate(loss, y, weight, scores):
    return loss.bind(y, weight).value_and_gradient(scores)


@pytest.mark.parametrize("seed", range(4))
def test_values_are_maxima_over_subsets_of_positives(seed):
    m, n = 3, 3
    rng = np.random.default_rng(seed)
    pos, neg = rng.normal(0.5, 1.0, m), rng.normal(0.0, 1.0, n)
    if seed % 2:
        pos, neg = np.round(2 * pos) / 2, np.round(2 * neg) / 2
    y, scores = np.repeat([1, 0], [m, n]), np.concatenate([pos, neg])
    enumerations = (brute.tight_by_enumeration, brute.structural_by_enumeration, brute.hinge_by_definition)
    for size in (1, 2):
        for j_a, j_b in ((0, 1), (0, 3), (1, 2), (1, 3)):
            window = {"min_fpr": j_a / n, "max_fpr": j_b / n, "min_tpr": 1 - size / m}
            for (cls, oracle), enumerated in zip(WINDOWED, enumerations, strict=True):
                expected = brute.over_subsets_of_positives(enumerated, pos, neg, j_a, j_b, size)
                np.testing.assert_allclose(oracle(scores, y, **window)[0], expected, rtol=1e-10, atol=1e-13)
                value = evaluate(cls(**window), y, None, scores)[0]
                np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("cls", PAIRWISE)
@given(sample=samples(), rate=rates)
@law
def test_swapped_classes_and_signs_turn_a_limit_into_a_floor(cls, sample, rate):
    y, weight, scores = sample
    one = evaluate(cls(max_fpr=rate), ~y, weight, -scores)
    two = evaluate(cls(max_fpr=1.0, min_tpr=1 - rate), y, weight, scores)
    np.testing.assert_allclose(two[0], one[0], rtol=1e-9, atol=1e-12 * magnitude(scores))
    np.testing.assert_allclose(two[1], -one[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cls", PAIRWISE)
@given(sample=samples(), limit=rates, share=rates)
@law
def test_a_corner_is_its_own_mirror_image(cls, sample, limit, share):
    y, weight, scores = sample
    one = evaluate(cls(max_fpr=limit, min_tpr=1 - share), y, weight, scores)
    two = evaluate(cls(max_fpr=share, min_tpr=1 - limit), ~y, weight, -scores)
    np.testing.assert_allclose(two[0], one[0], rtol=1e-9, atol=1e-12 * magnitude(scores))
    # A pair on the kink of the hinge is on the kink in both, and the shares of ties are in proportion to the weights.
    np.testing.assert_allclose(two[1], -one[1], rtol=1e-9, atol=1e-9)


@every_class
@given(sample=samples(), limit=rates, share=rates)
@law
def test_a_corner_lies_between_bounds_from_the_two_one_sided_windows(cls, sample, limit, share):
    # The pairs of the corner are the worst of either window, and the sum over all pairs of a window is not smaller.
    y, weight, scores = sample
    corner = evaluate(cls(max_fpr=limit, min_tpr=1 - share), y, weight, scores)[0]
    below_limit = evaluate(cls(max_fpr=limit), y, weight, scores)[0]
    slack = 1e-9 * magnitude(scores)
    assert below_limit - slack <= corner <= below_limit / share + slack / share
    if cls is not PartialAUCStructural:
        above_floor = evaluate(cls(max_fpr=1.0, min_tpr=1 - share), y, weight, scores)[0]
        assert above_floor - slack <= corner <= above_floor / limit + slack / limit


@pytest.mark.parametrize(("low", "high", "floor"), CORNERS)
@given(sample=samples(scales=(0.0, 1.0, 5.0)))
@law
def test_a_steep_step_is_the_error_in_the_corner(low, high, floor, sample):
    y, weight, scores = sample
    scores = np.round(scores)
    step = PartialAUCRamp(low, high, width=0.1, margin=0.0, min_tpr=floor)
    error = 1 - brute.partial_auc(scores, y, weight, low, high, min_tpr=floor)
    np.testing.assert_allclose(evaluate(step, y, weight, scores)[0], error, atol=1e-9)


# Twelve rows, and their losses on the window (0.125, 0.5] as computed before the losses had min_tpr.
LABELS = np.array([0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0], dtype=bool)
SCORES = np.array([0.25, 1.5, -0.75, 2.0, 0.5, 0.5, -0.25, 1.25, -1.5, 2.25, 0.0, 0.75])
WEIGHT = np.array([1.0, 2, 1, 3, 1, 2, 1, 1, 1, 4, 2, 5])
RECORDED = [
    (PartialAUCTight, None, 31 / 24, np.array([0, -3, 0, 3, -4, 2, -4, 3, 0, 0, 0, 3]) / 12),
    (PartialAUCTight, WEIGHT, 5 / 6, np.array([0, -4, 0, 6, -2, 0, -2, 1, 0, -3, 0, 4]) / 12),
    (PartialAUCStructural, None, 65 / 48, np.array([1, -3, 0, 3, -4, 2, -6, 3, 0, 0, 1, 3]) / 12),
    (PartialAUCStructural, WEIGHT, 175 / 192, np.array([1, -16, 0, 24, -9, 2, -14, 4, 0, -12, 2, 18]) / 48),
    (PartialAUCHinge, None, 15 / 16, np.array([0, -2, 0, 0, -3, 2, -3, 3, 0, 0, 0, 3]) / 12),
    (PartialAUCHinge, WEIGHT, 65 / 96, np.array([0, -6, 0, 4, -3, 0, -3, 2, 0, -2, 0, 8]) / 24),
    (PartialAUCRamp, None, 7 / 12, np.array([0, -2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]) / 12),
    (PartialAUCRamp, WEIGHT, 27 / 64, np.array([0, -5, 0, 2, 0, 0, 0, 1, 0, -2, 0, 4]) / 24),
]


@pytest.mark.parametrize(("cls", "weight", "value", "gradient"), RECORDED)
def test_a_floor_of_zero_changes_no_bit(cls, weight, value, gradient):
    found = evaluate(cls(0.125, 0.5, min_tpr=0.0), LABELS, weight, SCORES)
    assert found[0] == value
    assert (found[1] == gradient).all()


@every_class
@given(sample=samples())
@law
def test_the_loss_is_continuous_where_the_floor_reaches_zero(cls, sample):
    """Without a floor, and with one that excludes a millionth of a positive, different code computes the loss."""
    y, weight, scores = sample
    one = evaluate(cls(0.0, 0.3), y, weight, scores)
    two = evaluate(cls(0.0, 0.3, min_tpr=1e-6), y, weight, scores)
    np.testing.assert_allclose(two[0], one[0], rtol=1e-5, atol=1e-5 * magnitude(scores))
    np.testing.assert_allclose(two[1], one[1], rtol=1e-5, atol=1e-5)


def test_a_selection_by_anything_but_the_score_is_lower():
    # What makes the loss convex: the lowest positives are the worst subset.
    rng = np.random.default_rng(0)
    y, _, scores = generic_sample(rng, 10, 20)
    worst = evaluate(PartialAUCTight(max_fpr=0.2, min_tpr=0.6), y, None, scores)[0]
    for _ in range(50):
        kept = rng.choice(np.flatnonzero(y), 4, replace=False)
        rows = np.concatenate([kept, np.flatnonzero(~y)])
        assert evaluate(PartialAUCTight(max_fpr=0.2), y[rows], None, scores[rows])[0] <= worst + 1e-12


@every_class
@pytest.mark.parametrize("floor", [-0.1, 1.0, 1.5, float("nan"), True, "0.5", None])
def test_a_floor_outside_its_range_is_an_error(cls, floor):
    with pytest.raises(ValueError, match=r"min_tpr must be at least 0 and below 1; got "):
        cls(min_tpr=floor)


def test_a_floor_too_close_to_one_is_an_error():
    with pytest.raises(ValueError, match=r"1 - min_tpr must be at least 1e-08, because of rounding errors; got 0.9999"):
        PartialAUCTight(min_tpr=1 - 1e-10)


# Curvature


@pytest.mark.parametrize("window", [(0.0, 0.1, 0.0), (0.0, 1.0, 0.9), (0.0, 0.2, 0.5)])
@pytest.mark.parametrize("clumped", [False, True], ids=["smooth", "clumped"])
def test_sampled_curvature_is_that_of_the_smoothed_gradient(window, clumped):
    rng = np.random.default_rng(0)
    y = rng.random(20_000) < 0.3
    scores = rng.standard_normal(y.size) + y
    direction = rng.standard_normal(y.size)
    bound = PartialAUCTight(*window).bind(y)
    width = 0.02
    if clumped:  # many rows of both classes close to the ends of their selections
        for rows, end in ((y, np.quantile(scores[y], 1.0 - window[2])), (~y, np.quantile(scores[~y], 1.0 - window[1]))):
            near = np.flatnonzero(rows)[::20]
            scores[near] = end + 0.2 * width * rng.standard_normal(near.size)
    step = 1e-3 * width
    change = [bound.at(scores + sign * step * direction).minorant(width)[1] @ direction for sign in (1.0, -1.0)]
    wanted = (change[0] - change[1]) / (2 * step)
    pairs = bound.curvature(scores, 20_000, width)
    found = pairs.weight @ (direction[pairs.first] - direction[pairs.second]) ** 2
    assert found == pytest.approx(wanted, rel=0.5)
