"""Soft measures of decisions: values by loops, gradients by differences, and what they become for narrow steps."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers.loss_cases import generic_sample, magnitude, samples
from oracles import brute
from rocmax.losses import Contingency, FBeta, GMean, SoftMeasure, SoftPrecision
from rocmax.metrics import break_even_point, precision_at_k

law = settings(max_examples=15, deadline=None, derandomize=True, database=None)


def f_beta(beta):
    """F-beta of a table, as in a textbook: from precision and recall."""

    def measure(tp, fp, m, n):
        if tp == 0:
            return 0.0
        precision, recall = tp / (tp + fp), tp / m
        return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)

    return measure


def g_mean(tp, fp, m, n):
    return math.sqrt(max(tp / m * (n - fp) / n, 0.0))


MEASURES = {
    "f1": (FBeta(), f_beta(1.0)),
    "f0.4": (FBeta(0.4), f_beta(0.4)),
    "f3": (FBeta(3.0), f_beta(3.0)),
    "g-mean": (GMean(), g_mean),
}
every_measure = pytest.mark.parametrize(("base", "measure"), MEASURES.values(), ids=MEASURES)
LOSSES = {
    **{f"{name}[{width}]": SoftMeasure(base, width) for name, (base, _) in MEASURES.items() for width in (0.25, 2.0)},
    "precision[0.3]": SoftPrecision(0.3, 0.5),
    "precision[4]": SoftPrecision(4, 0.5),
    "break-even": SoftPrecision(None, 1.0),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@st.composite
def distinct_samples(draw):
    """Labels of both classes and scores without ties, in any order; weights or none."""
    m, n = draw(st.integers(1, 6)), draw(st.integers(1, 10))
    y = np.array(draw(st.permutations([True] * m + [False] * n)))
    weight = draw(st.none() | st.lists(st.integers(1, 4).map(float), min_size=m + n, max_size=m + n))
    return y, weight, np.array(draw(st.permutations(range(m + n))), dtype=float)


# Values


@every_measure
@pytest.mark.parametrize("width", [0.125, 1.0, 6.0])
@given(sample=samples(scales=(0.0, 1.0, 1.0, 8.0)))
@law
def test_value_is_that_of_loops_at_the_threshold(base, measure, width, sample):
    y, weight, scores = sample
    bound = SoftMeasure(base, width).bind(y, weight)
    value, gradient = bound.value_and_gradient(scores)
    assert gradient.shape == y.shape
    expected = brute.soft_error(scores, y, bound.threshold, width, measure, weight)
    assert value == pytest.approx(expected, abs=1e-12)


@every_measure
@pytest.mark.parametrize("width", [0.125, 1.0, 6.0])
@given(sample=samples(scales=(0.0, 1.0, 1.0, 8.0)))
@law
def test_no_threshold_of_a_fine_grid_is_better(base, measure, width, sample):
    y, weight, scores = sample
    value, _ = SoftMeasure(base, width).bind(y, weight).value_and_gradient(scores)
    # Within half a width of a positive, on a grid of a fiftieth of that.
    for score in np.unique(scores[y]):
        for theta in score + width / 2 * np.linspace(-1.0, 1.0, 101):
            assert value <= brute.soft_error(scores, y, theta, width, measure, weight) + 1e-9


@every_measure
def test_no_threshold_is_better_on_a_larger_sample(base, measure):
    y, weight, scores = generic_sample(np.random.default_rng(0), 900, 2000, weighted=True)
    value, _ = SoftMeasure(base, 0.5).bind(y, weight).value_and_gradient(scores)
    grid = np.linspace(scores.min(), scores.max(), 60)
    assert value <= min(brute.soft_error(scores, y, theta, 0.5, measure, weight) for theta in grid)


@given(sample=samples(scales=(0.0, 1.0, 1.0, 8.0)), k=st.sampled_from([0.1, 0.35, 1, 2, 1.0, None]))
@law
def test_precision_is_that_of_loops_where_the_top_is_full(sample, k):
    y, weight, scores = sample
    bound = SoftPrecision(k, 0.75).bind(y, weight)
    value, _ = bound.value_and_gradient(scores)
    tp, fp = brute.soft_table(scores, y, bound.threshold, 0.75, weight)
    total = y.size if weight is None else sum(weight)
    size = k if isinstance(k, int) else k * total if k else bound.m
    assert bound.k == pytest.approx(size)
    assert tp + fp == pytest.approx(size, abs=1e-9 * total)
    assert value == pytest.approx(1 - tp / size, abs=1e-9)


@pytest.mark.parametrize("width", [0.5, 2.0])
def test_of_thresholds_with_a_full_top_the_highest_is_chosen(width):
    bound = SoftPrecision(2, width).bind([1, 0, 1, 0])
    bound.value_and_gradient([30.0, 20.0, 10.0, 0.0])
    # Half a width below the second row, its whole weight is above the threshold; so it is down to the third row.
    assert bound.threshold == pytest.approx(20.0 - width / 2, abs=1e-9)


@every_measure
@given(sample=distinct_samples())
@law
def test_a_narrow_step_gives_the_error_of_the_best_threshold(base, measure, sample):
    y, weight, scores = sample
    value, _ = SoftMeasure(base, 1e-3).bind(y, weight).value_and_gradient(scores)
    mass = np.ones(y.size) if weight is None else np.array(weight)
    m, n = mass[y].sum(), mass[~y].sum()
    best = max(measure(mass[y & (scores >= t)].sum(), mass[~y & (scores >= t)].sum(), m, n) for t in scores)
    assert value == pytest.approx(1 - best, abs=1e-9)


@given(sample=distinct_samples(), share=st.floats(0.05, 1.0))
@law
def test_a_narrow_step_gives_the_precision_at_k(sample, share):
    y, weight, scores = sample
    value, _ = SoftPrecision(share, 1e-3).bind(y, weight).value_and_gradient(scores)
    assert value == pytest.approx(1 - precision_at_k(y, scores, k=share, sample_weight=weight), abs=1e-9)
    value, _ = SoftPrecision(None, 1e-3).bind(y, weight).value_and_gradient(scores)
    assert value == pytest.approx(1 - break_even_point(y, scores, sample_weight=weight), abs=1e-9)


@every_loss
@given(sample=samples(scales=(1.0, 2.0**20)))
@law
def test_values_are_bounded(loss, sample):
    y, weight, scores = sample
    assume(y.size >= 4)  # the k of one of the losses
    value, _ = loss.bind(y, weight).value_and_gradient(scores)
    slack = 1e-12 + 1e-15 * magnitude(scores) / loss.width  # a threshold has no more digits than the scores
    assert -slack <= value <= 1 + slack


@every_measure
def test_classes_apart_have_no_loss_and_no_slope(base, measure):
    y = np.repeat([1, 0], [5, 20])
    value, gradient = SoftMeasure(base, 0.5).bind(y).value_and_gradient(np.where(y == 1, 3.0, -3.0))
    assert value == pytest.approx(0.0, abs=1e-15)
    assert not gradient.any()


# Gradients


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_is_the_slope_of_the_value(loss, weighted):
    rng = np.random.default_rng(11)
    for _ in range(5):
        y, weight, scores = generic_sample(rng, 9, 17, weighted=weighted)
        bound = loss.bind(y, weight)
        _, gradient = bound.value_and_gradient(scores)
        for _ in range(4):
            move = 1e-6 * rng.standard_normal(y.size)
            rise = bound.value_and_gradient(scores + move)[0] - bound.value_and_gradient(scores - move)[0]
            assert rise / 2 == pytest.approx(gradient @ move, rel=1e-4, abs=1e-12)


@every_loss
@pytest.mark.parametrize("offset", [0.0, -3.5, 1e5])
def test_a_shift_changes_nothing(loss, offset):
    y, weight, scores = generic_sample(np.random.default_rng(2), weighted=True)
    value, gradient = loss.bind(y, weight).value_and_gradient(scores)
    assert gradient.sum() == pytest.approx(0.0, abs=1e-9)
    shifted = loss.bind(y, weight)
    again, moved = shifted.value_and_gradient(scores + offset)
    assert again == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(moved, gradient, atol=1e-7)


@pytest.mark.parametrize("base", [FBeta(), FBeta(0.3), FBeta(2.5), GMean()])
def test_slopes_are_those_of_the_measure(base):
    rng = np.random.default_rng(0)
    for tp, fp in rng.uniform(1.0, 9.0, (20, 2)):
        by_tp, by_fp = base.slopes(tp, fp, 10.0, 30.0)
        up, down = (base.measure(tp + e, fp, 10.0, 30.0) for e in (1e-6, -1e-6))
        assert by_tp == pytest.approx((up - down) / 2e-6, rel=1e-6)
        up, down = (base.measure(tp, fp + e, 10.0, 30.0) for e in (1e-6, -1e-6))
        assert by_fp == pytest.approx((up - down) / 2e-6, rel=1e-6)
    assert GMean().slopes(0.0, 3.0, 10.0, 30.0) == (0.0, 0.0)


# Rows


@every_loss
def test_order_of_rows_does_not_matter(loss):
    rng = np.random.default_rng(3)
    y, weight, scores = generic_sample(rng, weighted=True)
    value, gradient = loss.bind(y, weight).value_and_gradient(scores)
    order = rng.permutation(y.size)
    again, permuted = loss.bind(y[order], weight[order]).value_and_gradient(scores[order])
    assert again == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(permuted, gradient[order], atol=1e-9)


@every_loss
def test_weights_are_copies_and_zero_is_absent(loss):
    rng = np.random.default_rng(4)
    y, _, scores = generic_sample(rng, 10, 25)
    weight = rng.integers(0, 4, y.size)
    rows = np.repeat(np.arange(y.size), weight)
    value, gradient = loss.bind(y, weight).value_and_gradient(scores)
    copied, each = loss.bind(y[rows], None).value_and_gradient(scores[rows])
    assert value == pytest.approx(copied, abs=1e-12)
    np.testing.assert_allclose(gradient, np.bincount(rows, each, y.size), atol=1e-9)


@every_loss
@pytest.mark.parametrize("outlier", [-1e6, 1e6])
def test_an_outlier_costs_no_precision(loss, outlier):
    y, _, scores = generic_sample(np.random.default_rng(9), 20, 50)
    row = np.flatnonzero(y if outlier > 0 else ~y)[0]
    near, far = scores.copy(), scores.copy()
    near[row], far[row] = np.sign(outlier) * 20.0, outlier
    (value, gradient), (again, other) = (loss.bind(y).value_and_gradient(s) for s in (near, far))
    assert again == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(other, gradient, atol=1e-6)


@every_loss
def test_copies_and_pickles_are_the_same_loss(loss):
    y, weight, scores = generic_sample(np.random.default_rng(5), weighted=True)
    value = loss.bind(y, weight).value_and_gradient(scores)[0]
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert twin == loss
        assert twin.bind(y, weight).value_and_gradient(scores)[0] == value


# Refusals


@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan])
def test_bad_width(width):
    with pytest.raises(ValueError, match="width must be a finite number > 0"):
        SoftMeasure(FBeta(), width)
    with pytest.raises(ValueError, match="width must be a finite number > 0"):
        SoftPrecision(0.1, width)


def test_a_measure_without_derivatives_is_refused():
    with pytest.raises(ValueError, match="base must be a measure with derivatives, FBeta or GMean; got Contingency"):
        SoftMeasure(Contingency(lambda tp, fp, m, n: tp / (m + fp)))


@pytest.mark.parametrize("k", [0, 1.5, True, "3"])
def test_bad_k(k):
    with pytest.raises(ValueError, match=r"k (as a|must be)"):
        SoftPrecision(k)


def test_k_beyond_the_rows():
    with pytest.raises(ValueError, match="from 1 to the total weight, 4; got 5"):
        SoftPrecision(5).bind([1, 0, 1, 0])


def test_scores_are_checked():
    for loss in LOSSES.values():
        bound = loss.bind([1, 0, 1, 0, 0])
        with pytest.raises(ValueError, match=r"scores must have shape \(5,\)"):
            bound.value_and_gradient([1.0, 2.0])
        with pytest.raises(ValueError, match="NaN or infinity"):
            bound.value_and_gradient([1.0, 2.0, np.nan, 0.0, 0.0])
