"""The partial AUC above a true-positive rate and the two-way partial AUC: other routes to them, and their laws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from oracles.corners import auc_of_selected_rows, isic_2024, mean_over_pairs
from rocmax import metrics
from rocmax.measures import PartialAUCMeasure, find_measure
from rocmax.metrics import partial_auc_score

exactly = {"rel": 1e-12, "abs": 1e-12}
many = settings(deadline=None, max_examples=100)
rates = st.integers(0, 20).map(lambda i: Fraction(i, 20))
floors = st.integers(0, 19).map(lambda i: Fraction(i, 20))

PINNED = [
    ({}, 0.3890471442814414),
    ({"max_fpr": 0.1}, 0.008340824445701304),
    ({"min_fpr": 0.07, "max_fpr": 0.42}, 0.1495741861902286),
    ({"min_fpr": 0.07, "max_fpr": 0.42, "standardize": True}, 0.43680409681472093),
    ({"min_fpr": 0.07, "max_fpr": 0.42, "definition": "count"}, 0.07360774818401936),
    ({"definition": "count"}, 0.3329362561665652),
]


@st.composite
def samples(draw, max_rows=12, top_score=5):
    """Labels, scores with many ties, and weights of which some are fractions."""
    size = draw(st.integers(2, max_rows))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    assume(0 < y.sum() < size)
    s = np.array(draw(st.lists(st.integers(0, top_score), min_size=size, max_size=size)), dtype=float)
    weight = np.array(draw(st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]), min_size=size, max_size=size)))
    return y, s, weight


def without_mixed_ties(y, s):
    """Return scores in the same order in which no positive is tied with a negative."""
    return s + 0.25 * y


def region(a, b, t):
    return {"min_fpr": float(a), "max_fpr": float(b), "min_tpr": float(t)}


@many
@given(samples(), rates, rates, floors)
def test_area_is_the_mean_over_the_pairs_of_the_region(sample, a, b, t):
    y, s, weight = sample
    assume(a < b)
    s = without_mixed_ties(y, s)
    expected = mean_over_pairs(y, s, weight, a, b, t)
    assert partial_auc_score(y, s, sample_weight=weight, **region(a, b, t)) == pytest.approx(expected, **exactly)


@many
@given(samples(), st.data())
def test_tied_pairs_count_one_half_if_no_limit_is_inside_a_block(sample, data):
    y, s, weight = sample
    above = data.draw(st.sampled_from(sorted(set(s))))
    below = data.draw(st.sampled_from(sorted(set(s))))
    pos, neg = weight * (y == 1), weight * (y == 0)
    # Limits at the edges of blocks of ties.
    t, b = (Fraction(share) for share in (pos[s > above].sum() / pos.sum(), neg[s >= below].sum() / neg.sum()))
    assume(b > 0 and t < 1)
    expected = mean_over_pairs(y, s, weight, Fraction(0), b, t)
    got = partial_auc_score(y, s, sample_weight=weight, **region(0, b, t))
    assert got == pytest.approx(expected, abs=1e-9)


def test_a_limit_inside_a_block_follows_the_line():
    # The curve is the diagonal: the region is a triangle, not half of the pairs.
    y, s = [0, 0, 1, 1], [1, 1, 1, 1]
    assert partial_auc_score(y, s, min_tpr=0.5) == pytest.approx(0.5**2 / 2 / 0.5)
    assert partial_auc_score(y, s, min_tpr=0.25, max_fpr=0.75) == pytest.approx(0.5**2 / 2 / 0.75**2)
    assert partial_auc_score(y, s, min_tpr=0.5, max_fpr=0.5) == 0


@many
@given(samples(), rates, rates, floors)
def test_count_is_the_fraction_of_ordered_pairs_of_whole_rows(sample, a, b, t):
    y, s, _ = sample
    assume(a < b)
    weight = np.ones(y.size)
    m, n = int(y.sum()), int((1 - y).sum())
    whole = (
        Fraction(math.floor(n * a), n),
        Fraction(math.ceil(n * b), n),
        Fraction(m - math.ceil(m * (1 - t)), m),
    )
    expected = mean_over_pairs(y, s, weight, *whole, tie=0)
    got = partial_auc_score(y, s, definition="count", **region(a, b, t))
    assert got == pytest.approx(expected, **exactly)
    if whole == (a, b, t):
        apart = without_mixed_ties(y, s)
        area = partial_auc_score(y, apart, **region(a, b, t))
        assert partial_auc_score(y, apart, definition="count", **region(a, b, t)) == pytest.approx(area, **exactly)


def test_count_of_fractional_weights_splits_the_positive_on_the_edge():
    # Positives of weight 1.5, 1.5, 0.5 from the bottom; ceil(3.5 * 0.5) = 2.
    y, s, w = [1, 1, 1, 0, 0], [1, 3, 5, 2, 4], [1.5, 1.5, 0.5, 1, 1]
    got = partial_auc_score(y, s, min_tpr=0.5, definition="count", sample_weight=w)
    assert got == pytest.approx((1.5 * 0 + 0.5 * 0.5) / 2)


@many
@given(samples(), rates)
def test_exchanging_classes_and_signs_exchanges_the_limits(sample, b):
    y, s, weight = sample
    assume(b > 0)
    for options in ({}, {"normalize": False}, {"standardize": True}):
        left = partial_auc_score(y, s, max_fpr=float(b), sample_weight=weight, **options)
        above = partial_auc_score(1 - y, -s, min_tpr=1 - float(b), sample_weight=weight, **options)
        assert above == pytest.approx(left, **exactly)
    whole = {"sample_weight": np.ceil(weight), "definition": "count"}
    left = partial_auc_score(y, s, max_fpr=float(b), **whole)
    assert partial_auc_score(1 - y, -s, min_tpr=1 - float(b), **whole) == pytest.approx(left, **exactly)


@many
@given(samples(), rates, floors)
def test_exchanging_both_limits(sample, b, t):
    y, s, weight = sample
    assume(b > 0)
    expected = partial_auc_score(y, s, max_fpr=float(b), min_tpr=float(t), sample_weight=weight)
    got = partial_auc_score(1 - y, -s, max_fpr=1 - float(t), min_tpr=1 - float(b), sample_weight=weight)
    assert got == pytest.approx(expected, **exactly)


@many
@given(samples(), rates, floors)
def test_a_corner_is_at_most_each_one_sided_value(sample, b, t):
    """The positives of the corner are the lowest of those on the left; the negatives are the highest of those above."""
    y, s, weight = sample
    assume(b > 0)
    corner = partial_auc_score(y, s, max_fpr=float(b), min_tpr=float(t), sample_weight=weight)
    left = partial_auc_score(y, s, max_fpr=float(b), sample_weight=weight)
    above = partial_auc_score(y, s, min_tpr=float(t), sample_weight=weight)
    whole = partial_auc_score(y, s, sample_weight=weight)
    assert -1e-12 <= corner <= min(left, above) + 1e-12
    assert max(left, above) <= whole + 1e-12
    # The pairs of the corner are among the pairs of each one-sided region, and so are its errors.
    raw = (1 - float(t)) * float(b) * (1 - corner)
    assert raw <= min(float(b) * (1 - left), (1 - float(t)) * (1 - above)) + 1e-12


@many
@given(samples(), rates, rates, floors)
def test_raw_areas_add_up_over_adjoining_floors(sample, b, other, t):
    y, s, weight = sample
    assume(b > 0)
    rest = {"max_fpr": float(b), "sample_weight": weight, "normalize": False}
    low, high = sorted((float(t), float(other)))
    assume(low < high < 1)
    # The strip between two floors, from the heights of the curve cut at the upper one.
    strip = partial_auc_score(y, s, min_tpr=low, **rest) - partial_auc_score(y, s, min_tpr=high, **rest)
    assert -1e-12 <= strip <= float(b) * (high - low) + 1e-12
    normal = partial_auc_score(y, s, min_tpr=low, **{**rest, "normalize": True})
    assert normal * float(b) * (1 - low) == pytest.approx(partial_auc_score(y, s, min_tpr=low, **rest), **exactly)


def test_without_a_floor_nothing_changes():
    """Values from before there was a floor, to the last bit."""
    rng = np.random.default_rng(18)
    y, s, weight = rng.integers(0, 2, 50), rng.integers(0, 12, 50), rng.choice([0.1, 0.7, 1.0, 3.0], 50)
    for options, expected in PINNED:
        assert partial_auc_score(y, s, min_tpr=0.0, sample_weight=weight, **options) == expected
        assert partial_auc_score(y, s, sample_weight=weight, **options) == expected


@many
@given(samples(max_rows=40, top_score=30), st.sampled_from([0.8, 0.5, 0.9]))
def test_score_of_the_isic_challenge(sample, floor):
    y, s, _ = sample
    got = partial_auc_score(y, s, min_tpr=floor, normalize=False)
    assert got == pytest.approx(isic_2024(y, s, floor), **exactly)
    # The second published form, from scikit-learn's standardized area.
    width = 1 - floor
    scaled = roc_auc_score(1 - y, -s, max_fpr=width)
    assert got == pytest.approx(width**2 / 2 + (width - width**2 / 2) * 2 * (scaled - 0.5), **exactly)
    assert partial_auc_score(y, s, min_tpr=floor, standardize=True) == pytest.approx(scaled, **exactly)


def test_range_of_the_isic_score():
    y = np.repeat([0, 1], 10)
    assert partial_auc_score(y, y, min_tpr=0.8, normalize=False) == pytest.approx(0.2)
    assert partial_auc_score(y, -y, min_tpr=0.8, normalize=False) == 0
    assert partial_auc_score(y, np.zeros(20), min_tpr=0.8, normalize=False) == pytest.approx(0.02)


@pytest.mark.parametrize(("min_tpr", "max_fpr"), [(0.5, 0.1), (0.8, 0.5), (0.9, 1.0), (0.25, 0.3)])
def test_two_way_area_is_that_of_libauc(min_tpr, max_fpr):
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = rng.permutation(np.repeat([0, 1], [60, 40]))
        s = rng.normal(size=100) + y
        got = partial_auc_score(y, s, min_tpr=min_tpr, max_fpr=max_fpr)
        assert got == pytest.approx(auc_of_selected_rows(y, s, min_tpr, max_fpr), **exactly)


@many
@given(rates, rates, floors)
def test_standardized_scale_of_every_region(a, b, t):
    assume(a < b)
    y = np.array([0, 0, 0, 1, 1])
    assert partial_auc_score(y, y, standardize=True, **region(a, b, t)) == pytest.approx(1)
    assert partial_auc_score(y, np.zeros(5), standardize=True, **region(a, b, t)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"min_tpr": 1.0}, "min_tpr must be at least 0 and below 1; got 1.0"),
        ({"min_tpr": -0.1}, "min_tpr must be at least 0 and below 1; got -0.1"),
        ({"min_tpr": float("nan")}, "got nan"),
        ({"min_tpr": True}, "got True"),
        ({"min_tpr": "0.8"}, "got '0.8'"),
        ({"normalize": False, "standardize": True}, "standardize=True requires normalize=True; got normalize=False"),
        ({"normalize": False, "definition": "count"}, 'normalize=False requires definition="area"'),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        partial_auc_score([0, 1, 0, 1], [0, 1, 1, 0], **params)


@pytest.mark.parametrize(
    ("params", "title"),
    [
        ({"min_tpr": 0.8}, "partial AUC, TPR >= 0.8"),
        ({"min_tpr": 0.8, "max_fpr": 0.1}, "partial AUC, TPR >= 0.8, FPR 0 to 0.1"),
        ({"min_tpr": 0.8, "normalize": False}, "partial AUC, TPR >= 0.8, not normalized"),
        ({"max_fpr": 0.1}, "partial AUC, FPR 0 to 0.1"),
    ],
)
def test_the_measure_has_a_floor(params, title):
    measure = find_measure("partial_auc", **params)
    assert measure == PartialAUCMeasure(**params)
    assert measure.title == title
    y, s = [0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 7, 4, 5, 6, 8]
    assert measure.score(y, s) == partial_auc_score(y, s, **params)


def test_scorers_and_paired_tests_take_the_floor():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = (X[:, 0] + np.random.default_rng(1).normal(size=300) > 1).astype(int)
    model = LogisticRegression().fit(X, y)
    good, poor = model.decision_function(X), X[:, 1]
    limits = {"min_tpr": 0.7, "max_fpr": 0.9}
    scorer = metrics.make_scorer("partial_auc", **limits)
    assert scorer(model, X, y) == partial_auc_score(y, good, **limits)
    result = metrics.bootstrap_test("partial_auc", y, good, poor, n_resamples=200, random_state=0, **limits)
    expected = partial_auc_score(y, good, **limits) - partial_auc_score(y, poor, **limits)
    assert result.difference == pytest.approx(expected, **exactly)
    assert result.low < result.difference < result.high
    assert result.pvalue < 0.05
