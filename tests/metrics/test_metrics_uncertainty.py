"""DeLong's variance, paired tests, and whether intervals and tests do what their level says."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from helpers.simulated_scores import SHIFT, TRUTH, delong_error, draw, true_rate
from rocmax import metrics

WINDOWS = [(0.0, 1.0), (0.0, 0.13), (0.07, 0.41), (0.33, 1.0)]


every_window = pytest.mark.parametrize("window", WINDOWS)


def sample(n_negative=40, n_positive=25, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n_negative, n_positive])
    scores = rng.normal(size=y.size) + y
    other = 0.5 * scores + rng.normal(size=y.size)
    return (y, scores, other) if digits is None else (y, scores.round(digits), other.round(digits))


def delong_covariance(y, *models):
    """Transcription of the paper: structural components from the full table of pairs."""
    tables = []
    for scores in models:
        x, z = scores[y == 1], scores[y == 0]
        psi = (x[:, None] > z[None, :]) + 0.5 * (x[:, None] == z[None, :])
        tables.append((psi.mean(axis=1), psi.mean(axis=0)))
    by_positive, by_negative = (np.cov([table[i] for table in tables]) for i in (0, 1))
    return np.atleast_2d(by_positive / np.sum(y == 1) + by_negative / np.sum(y == 0))


@pytest.mark.parametrize("digits", [None, 1, 0])
def test_delong_equals_the_papers_formula(digits):
    y, first, second = sample(digits=digits)
    covariance = delong_covariance(y, first, second)
    for i, scores in enumerate((first, second)):
        assert delong_error(y, scores) == pytest.approx(np.sqrt(covariance[i, i]), rel=1e-9)
    result = metrics.delong_test(y, first, second)
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert result.difference == pytest.approx(metrics.roc_auc_score(y, first) - metrics.roc_auc_score(y, second))
    assert result.pvalue == pytest.approx(2 * norm.sf(abs(result.difference) / error))
    assert result.high - result.low == pytest.approx(2 * norm.ppf(0.975) * error)


def test_delong_on_hanley_and_mcneils_ratings():
    """Stata's manual (roctab) gives 0.8932 with a DeLong standard error of 0.0307 for these 109 ratings."""
    ratings = np.concatenate([np.repeat(np.arange(5), [33, 6, 6, 11, 2]), np.repeat(np.arange(5), [3, 2, 2, 11, 33])])
    y = np.repeat([0, 1], [58, 51])
    area = metrics.roc_auc_score(y, ratings)
    assert area == pytest.approx(0.8932, abs=5e-5)
    assert delong_error(y, ratings) == pytest.approx(0.0307, abs=5e-5)


@pytest.mark.filterwarnings("ignore:the window contains")
@every_window
def test_the_variance_is_that_of_the_influence_of_the_rows(window):
    """The influence of a row is the slope of the measure in the weight of that row."""
    y, scores, _ = sample()
    a, b = window

    def measure(weight):
        return metrics.partial_auc_score(y, scores, min_fpr=a, max_fpr=b, sample_weight=weight)

    slopes, step = np.empty(y.size), 1e-6
    for i in range(y.size):
        up, down = np.ones(y.size), np.ones(y.size)
        up[i], down[i] = 1 + step, 1 - step
        slopes[i] = (measure(up) - measure(down)) / (2 * step)
    variance = 0.0
    for label in (0, 1):
        influence = slopes[y == label] * np.sum(y == label)
        assert influence.mean() == pytest.approx(0, abs=1e-6)
        variance += influence.var(ddof=1) / influence.size
    assert delong_error(y, scores, min_fpr=a, max_fpr=b) == pytest.approx(np.sqrt(variance), rel=1e-5)


@pytest.mark.filterwarnings("ignore:the window contains", "ignore:DeLong's interval")
@settings(deadline=None, max_examples=100)
@given(
    values=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=2, max_size=12),
    other=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=2, max_size=12),
    window=st.sampled_from(WINDOWS),
)
def test_weights_are_copies_and_the_area_is_the_measure(values, other, window):
    scores, weight = np.array(values + other).T
    y = np.repeat([0, 1], [len(values), len(other)])
    copies = np.repeat(np.arange(y.size), weight)
    limits = dict(zip(("min_fpr", "max_fpr"), window, strict=True))
    got = metrics.delong_interval(y, scores, sample_weight=weight, **limits)
    assert got == pytest.approx(metrics.delong_interval(y[copies], scores[copies], **limits), abs=1e-9)
    area = metrics.partial_auc_score(y, scores, sample_weight=weight, **limits)
    assert got[0] - 1e-12 <= area <= got[1] + 1e-12
    shifted = metrics.delong_test(y, 3 * scores + 1, scores, sample_weight=weight, **limits)
    assert shifted.difference == pytest.approx(0, abs=1e-12)
    assert shifted.pvalue == 1.0


def test_a_perfect_ranking_has_no_estimated_variance():
    assert metrics.delong_test([0, 0, 1, 1], [1, 2, 3, 4], [4, 3, 2, 1]) == (1.0, 1.0, 1.0, 0.0)


def test_one_row_of_a_class_is_not_enough():
    with pytest.raises(ValueError, match="at least two rows of each class; got weights that sum to 1"):
        metrics.delong_interval([0, 0, 1], [1, 2, 3])
    with pytest.raises(ValueError, match="confidence_level must be above 0 and below 1"):
        metrics.delong_interval([0, 0, 1, 1], [1, 2, 3, 4], confidence_level=1.0)


def test_the_positive_class_of_the_tests():
    y, first, second = sample()
    named = np.where(y == 1, "fraud", "ok")
    for test in (metrics.delong_test, lambda *a, **k: metrics.bootstrap_test("roc_auc", *a, random_state=0, **k)):
        assert test(named, first, second, pos_label="fraud") == test(y, first, second)
        swapped = test(y, second, first)
        assert swapped.difference == pytest.approx(-test(y, first, second).difference)


def test_paired_bootstrap_agrees_with_redrawn_rows():
    y, first, second = sample(60, 50)
    x, z = (np.stack([first[y == label], second[y == label]]) for label in (1, 0))
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(3000):
        i, j = rng.integers(50, size=50), rng.integers(60, size=60)
        drawn.append(
            metrics.partial_auc_score(y, np.concatenate([z[0][j], x[0][i]]), max_fpr=0.3)
            - metrics.partial_auc_score(y, np.concatenate([z[1][j], x[1][i]]), max_fpr=0.3)
        )
    got = metrics.bootstrap_test("partial_auc", y, first, second, max_fpr=0.3, n_resamples=3000, random_state=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (got.low, got.high) == pytest.approx((low, high), abs=0.1 * (high - low))
    assert got.pvalue == pytest.approx(2 * min(np.mean(np.array(drawn) <= 0), np.mean(np.array(drawn) >= 0)), abs=0.03)


def test_a_paired_test_is_sharper_than_two_intervals():
    y, first, _ = sample(300, 200)
    second = first + 0.3 * np.random.default_rng(1).normal(size=y.size)
    result = metrics.bootstrap_test("roc_auc", y, first, second, random_state=0)
    low, high = metrics.bootstrap_interval("roc_auc", y, first, random_state=0)
    assert result.high - result.low < 0.6 * (high - low)
    assert metrics.bootstrap_test("roc_auc", y, first, first, n_resamples=50, random_state=0).pvalue == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTH)
def test_coverage_of_bootstrap_intervals(name):
    params, truth = TRUTH[name]
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(250):
        y, scores = draw(rng)
        values = (scores > SHIFT / 2).astype(int) if name == "g_mean" else scores
        low, high = metrics.bootstrap_interval(name, y, values, n_resamples=200, random_state=rng, **params)
        covered.append(low <= truth <= high)
    assert 0.925 <= np.mean(covered) <= 0.975


@pytest.mark.slow
@pytest.mark.parametrize("window", [(0.0, 1.0), (0.02, 0.2), (0.0, 0.1)])
def test_coverage_of_delong_intervals(window):
    truth = quad(true_rate, *window)[0] / (window[1] - window[0])
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(2000):
        low, high = metrics.delong_interval(*draw(rng), min_fpr=window[0], max_fpr=window[1])
        covered.append(low <= truth <= high)
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("window", [(0.0, 1.0), (0.0, 0.1)])
def test_paired_tests_reject_as_often_as_they_say(window):
    """Two models of the same quality: a p-value below 0.05 in 5 % of the samples."""
    limits = dict(zip(("min_fpr", "max_fpr"), window, strict=True))
    rng = np.random.default_rng(4)
    pvalues = {"delong": [], "bootstrap": []}
    for i in range(1000):
        y, first = draw(rng)
        shared = first - SHIFT * y
        second = 0.8 * shared + 0.6 * rng.normal(size=y.size) + SHIFT * y
        pvalues["delong"].append(metrics.delong_test(y, first, second, **limits).pvalue)
        if i < 150:
            result = metrics.bootstrap_test(
                "partial_auc", y, first, second, n_resamples=200, random_state=rng, **limits
            )
            pvalues["bootstrap"].append(result.pvalue)
    assert 0.03 <= np.mean(np.array(pvalues["delong"]) < 0.05) <= 0.07
    assert 0.02 <= np.mean(np.array(pvalues["bootstrap"]) < 0.05) <= 0.085


@pytest.mark.filterwarnings("ignore:DeLong's interval")
@pytest.mark.parametrize("law", ["normal", "exponential"])
@pytest.mark.parametrize(("area", "n_positive", "n_negative"), [(0.8, 5, 100), (0.98, 30, 30), (0.95, 500, 5)])
def test_intervals_of_the_auc_cover_it_with_few_rows_of_a_class(law, area, n_positive, n_negative):
    """The logit of the area with DeLong's variance covers 89, 89 and 82 % of normal scores; no interval is a point."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [n_negative, n_positive])
    covered, n_samples = 0, 300
    for _ in range(n_samples):
        if law == "normal":
            scores = rng.normal(size=y.size) + np.sqrt(2) * norm.ppf(area) * y
        else:
            scores = rng.exponential(np.where(y == 1, area / (1 - area), 1.0))
        low, high = metrics.delong_interval(y, scores)
        assert low < high
        covered += low <= area <= high
    assert covered >= 0.92 * n_samples


def test_a_perfect_ranking_has_an_interval():
    """With 3 / n as the upper limit of what was never seen: 10 positives, all above all negatives."""
    low, high = metrics.delong_interval(np.repeat([0, 1], [200, 10]), np.arange(210.0))
    assert high == 1.0
    assert 0.6 < low < 0.9
    low, high = metrics.delong_interval(np.repeat([1, 0], [200, 10]), np.arange(210.0))
    assert low == 0.0
    assert 0.1 < high < 0.4


def of_classes(n_negative, n_positive, wrong=0):
    """Return labels and scores that rank all rows correctly, except for some positives below all negatives."""
    scores = np.arange(float(n_negative + n_positive))
    scores[scores.size - wrong :] -= 2 * scores.size
    return np.repeat([0, 1], [n_negative, n_positive]), scores


def test_delong_warns_below_ten_rows_of_a_class():
    """Nothing warns with ten; benchmarks/results/interval_coverage.md shows 90 to 93 % with five."""
    for classes in ((200, 10), (10, 200)):
        metrics.delong_interval(*of_classes(*classes, wrong=2))
    for classes in ((200, 9), (9, 200)):
        with pytest.warns(
            UserWarning, match="a class has 9 independent rows; at least 10 are needed. Use more"
        ) as found:
            metrics.delong_interval(*of_classes(*classes, wrong=2))
        assert len(found) == 1
        assert found[0].filename == __file__
    y, scores = of_classes(200, 30, wrong=2)
    groups = np.where(y == 1, np.arange(230) % 4, np.arange(230))
    with pytest.warns(UserWarning, match="a class has 4 independent groups; at least 10 are needed"):
        metrics.delong_interval(y, scores, groups=groups)


NEAR_ONE = "its value {} is {} from 1; at least {} is needed with {} independent rows of the smaller class"


@pytest.mark.parametrize(
    ("name", "params", "classes", "message"),
    [
        ("roc_auc", {}, (200, 9, 2), "a class has 9 independent rows; at least 10 are needed. Use delong_interval or"),
        ("tpr_at_fpr", {"max_fpr": 0.1}, (200, 9, 2), "a class has 9 independent rows; .* are needed. Use more rows"),
        ("tpr_at_fpr", {"max_fpr": 0.1}, (200, 20, 1), None),
        ("tpr_at_fpr", {"max_fpr": 0.1}, (200, 20, 0), NEAR_ONE.format(1, 0, 0.05, 20)),
        ("roc_auc", {}, (200, 20, 1), None),
        ("roc_auc", {}, (20, 200, 1), NEAR_ONE.format(0.995, 0.005, 0.05, 20)),
        ("partial_auc", {"max_fpr": 0.1, "normalize": False}, (200, 20, 1), None),
        ("partial_auc", {"max_fpr": 0.1, "normalize": False}, (200, 20, 0), NEAR_ONE.format(1, 0, 0.05, 20)),
        ("partial_auc", {"max_fpr": 0.1}, (90, 20, 2), "its region contains about 9 negatives; at least 10 are needed"),
        ("partial_auc", {"max_fpr": 0.1}, (100, 20, 2), None),
        (
            "partial_auc",
            {"min_tpr": 0.6},
            (100, 20, 2),
            "its region contains about 8 positives; at least 10 are needed",
        ),
        ("precision_at_k", {"k": 5}, (100, 20, 2), NEAR_ONE.format(1, 0, 0.05, 20)),
        ("precision_at_k", {"k": 1.0}, (100, 20, 2), None),
    ],
)
def test_the_bootstrap_warns_where_it_covers_less_often(name, params, classes, message):
    y, scores = of_classes(*classes)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        metrics.bootstrap_interval(name, y, scores, n_resamples=50, random_state=0, **params)
    assert [entry.filename for entry in found] == [__file__] * (message is not None)
    if message is not None:
        assert re.search(f"the interval of {name} covers less often than its level: {message}", str(found[0].message))
