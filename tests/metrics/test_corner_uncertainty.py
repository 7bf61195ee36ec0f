"""Intervals and tests of the partial AUC above a true-positive rate."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm, t

from helpers.simulated_scores import SHIFT, delong_error, draw, true_rate
from rocmax import metrics
from rocmax.metrics.uncertainty import holds_enough

REGIONS = [
    {"min_tpr": 0.8},
    {"min_tpr": 0.4, "max_fpr": 0.5},
    {"min_tpr": 0.2, "min_fpr": 0.05, "max_fpr": 0.6},
    {"min_tpr": 0.1, "min_fpr": 0.3, "max_fpr": 0.6},
]


@pytest.mark.filterwarnings("ignore:the window contains", "ignore:DeLong's interval")
@pytest.mark.parametrize("limits", REGIONS, ids=str)
@pytest.mark.parametrize("digits", [None, 1])
def test_the_variance_is_that_of_the_influence_of_each_row(limits, digits):
    """The influence of a row is the derivative of the area in its weight."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [37, 29])
    scores = rng.normal(size=y.size) + 1.2 * y
    scores = scores if digits is None else scores.round(digits)

    def area(weight):
        return metrics.partial_auc_score(y, scores, sample_weight=weight, **limits)

    variance, step = 0.0, 1e-5
    for label in (0, 1):
        members = np.flatnonzero(y == label)
        influence = []
        for row in members:
            moved = [np.ones(y.size), np.ones(y.size)]
            moved[0][row] += step
            moved[1][row] -= step
            influence.append((area(moved[0]) - area(moved[1])) / (2 * step) * members.size)
        variance += np.var(influence, ddof=1) / members.size
    assert delong_error(y, scores, **limits) == pytest.approx(np.sqrt(variance), rel=1e-4)


@pytest.mark.filterwarnings("ignore:the window contains", "ignore:DeLong's interval")
@settings(deadline=None, max_examples=100)
@given(
    values=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=2, max_size=12),
    other=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=2, max_size=12),
    rate=st.sampled_from([0.05, 0.2, 0.3, 0.5, 0.77]),
    floor=st.sampled_from([0.0, 0.1, 0.5]),
)
def test_exchanging_classes_and_signs_exchanges_the_limits(values, other, rate, floor):
    scores, weight = np.array(values + other, dtype=float).T
    y = np.repeat([0, 1], [len(values), len(other)])
    plain = {"max_fpr": rate, "min_tpr": floor, "sample_weight": weight}
    swapped = {"max_fpr": 1 - floor, "min_tpr": 1 - rate, "sample_weight": weight}
    area = metrics.partial_auc_score(y, scores, **plain)
    assume(area > 1e-9 or floor == 0)
    low, high = metrics.delong_interval(y, scores, **plain)
    assert low - 1e-9 <= area <= high + 1e-9
    second = np.roll(scores, 1)
    try:
        got = metrics.delong_interval(1 - y, -scores, **swapped)
        difference = metrics.delong_test(1 - y, -scores, -second, **swapped)
    except ValueError as error:
        # One of the curves does not enter the region.
        assert "that reaches it at" in str(error)  # noqa: PT017
        return
    assert got == pytest.approx((low, high), abs=1e-9)
    assert difference == pytest.approx(metrics.delong_test(y, scores, second, **plain), abs=1e-7)


@pytest.mark.parametrize("limits", [{"min_tpr": 0.8}, {"min_tpr": 0.4, "max_fpr": 0.4}], ids=str)
def test_the_bootstrap_has_the_same_spread(limits):
    y, scores = draw(np.random.default_rng(0))
    error = delong_error(y, scores, **limits)
    low, high = metrics.bootstrap_interval("partial_auc", y, scores, n_resamples=1000, random_state=0, **limits)
    assert (high - low) / 2 / norm.ppf(0.975) == pytest.approx(error, rel=0.1)


def test_a_curve_outside_the_region_has_no_variance():
    y, scores = draw(np.random.default_rng(0))
    limits = {"min_tpr": 0.9, "max_fpr": 0.1}
    assert metrics.partial_auc_score(y, scores, **limits) == 0
    message = r"reaches a true-positive rate of min_tpr=0.9 left of .* max_fpr=0.1; got .* at 0\.\d+\. Use bootstrap"
    with pytest.raises(ValueError, match=message):
        metrics.delong_interval(y, scores, **limits)
    with pytest.raises(ValueError, match=message):
        metrics.delong_test(y, y + 0.0, scores, **limits)
    with pytest.warns(UserWarning, match="its value 0 is 0 from 0; at least .* is needed"):
        low, high = metrics.bootstrap_interval("partial_auc", y, scores, n_resamples=50, random_state=0, **limits)
    assert (low, high) == (0, 0)


def test_few_positives_above_the_floor_are_announced():
    y, scores = draw(np.random.default_rng(0))
    for call in (metrics.delong_interval, lambda y, s, **k: metrics.delong_test(y, s, s[::-1], **k)):
        with pytest.warns(UserWarning, match=r"the window contains about 20 positives; .* at least 30") as found:
            call(y, scores, min_tpr=0.9)
        assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics.delong_interval(y, scores, min_tpr=0.85)
    assert holds_enough(y, scores, min_tpr=0.85)
    assert not holds_enough(y, scores, min_tpr=0.9)


def test_only_rows_between_the_ends_of_the_curve_in_the_corner_count():
    """A corner that the curve hardly enters contains few rows, however many there are beside the curve."""
    y = np.repeat([0, 1], [1000, 200])

    def scores_of(*blocks):
        """Scores with the given numbers of positives and negatives in turn, from the highest score down."""
        order = np.repeat(np.arange(len(blocks)) % 2 == 0, blocks)
        return -np.r_[np.flatnonzero(~order), np.flatnonzero(order)].astype(float)

    # TPR 0.5 at FPR 0, TPR 0.8 at FPR 0.1; and TPR 0.5 at FPR 0.09, TPR 0.56 at FPR 0.1.
    scores, late = scores_of(100, 50, 60, 50, 40, 900), scores_of(0, 90, 112, 10, 88, 900)
    limits = {"min_tpr": 0.5, "max_fpr": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert holds_enough(y, scores, **limits)
        metrics.delong_interval(y, scores, **limits)
    assert not holds_enough(y, late, **limits)
    with pytest.warns(UserWarning, match="about") as found:
        metrics.delong_test(y, scores, late, **limits)
    texts = [str(warning.message).partition(";")[0] for warning in found]
    assert texts == ["the window contains about 10 negatives", "the window contains about 12 positives"]
    assert not holds_enough(y, -scores, **limits)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"min_tpr": 0.8}, {"min_tpr": 0.4, "max_fpr": 0.4}], ids=str)
def test_coverage_and_size(limits):
    """Intervals cover the area of the population, and a test of two equal models rejects in 5 % of the samples."""
    floor, rate = limits["min_tpr"], limits.get("max_fpr", 1.0)
    truth = quad(lambda f: max(true_rate(f) - floor, 0), 0, rate, limit=200)[0] / (1 - floor) / rate
    rng = np.random.default_rng(0)
    covered, rejected = [], []
    for _ in range(2000):
        y, first = draw(rng)
        second = 0.8 * (first - SHIFT * y) + 0.6 * rng.normal(size=y.size) + SHIFT * y
        low, high = metrics.delong_interval(y, first, **limits)
        covered.append(low <= truth <= high)
        rejected.append(metrics.delong_test(y, first, second, **limits).pvalue < 0.05)
    # Three standard errors of 2,000 samples are 0.015. With 40 positives above the floor, coverage is 0.94.
    assert 0.93 <= np.mean(covered) <= 0.965
    assert 0.035 <= np.mean(rejected) <= 0.065


@pytest.mark.filterwarnings("ignore:the window contains", "ignore:DeLong's interval")
@pytest.mark.parametrize(
    ("m", "min_tpr", "n", "max_fpr"), [(10, 0.95, 50, 1.0), (40, 0.9, 12, 0.05), (40, 0.5, 90, 0.5)]
)
def test_the_interval_of_a_perfect_corner_is_that_of_the_auc_of_its_rows(m, min_tpr, n, max_fpr):
    """All areas whose distance to 1 is within Student's quantile for ten degrees of freedom, in standard errors."""
    y, scores = np.repeat([0, 1], [n, m]), np.repeat([0.0, 1.0], [n, m])
    low, high = metrics.delong_interval(y, scores, min_tpr=min_tpr, max_fpr=max_fpr)
    inside = max(1.0, m * (1 - min_tpr)), max(1.0, n * max_fpr)

    def variance(theta):
        """Of Hanley and McNeil, the larger one of the two classes exchanged."""
        first, second = theta / (2 - theta) - theta**2, 2 * theta**2 / (1 + theta) - theta**2
        each = [(a - 1) * first + (b - 1) * second for a, b in (inside, inside[::-1])]
        return (theta * (1 - theta) + max(each)) / (inside[0] * inside[1])

    quantile = t.ppf(0.975, 10)
    assert low == pytest.approx(brentq(lambda theta: 1 - theta - quantile * np.sqrt(variance(theta)), 0, 1 - 1e-6))
    assert high == 1.0
