"""Every measure against a slow oracle that a reader can check, and the laws that all of them obey."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score, confusion_matrix, roc_auc_score

from rocmax import metrics

exactly = {"rel": 1e-12, "abs": 1e-12}
many = settings(deadline=None, max_examples=60)
few = settings(deadline=None, max_examples=15)  # for laws that run once per measure

SCORED = [
    (metrics.partial_auc_score, {"min_fpr": 0.15, "max_fpr": 0.55}),
    (metrics.partial_auc_score, {"min_fpr": 0.15, "max_fpr": 0.55, "standardize": True}),
    (metrics.partial_auc_score, {"min_fpr": 0.15, "max_fpr": 0.55, "definition": "count"}),
    (metrics.partial_auc_score, {"min_tpr": 0.3, "max_fpr": 0.6}),
    (metrics.tpr_at_fpr, {"max_fpr": 0.3}),
    (metrics.fpr_at_tpr, {"min_tpr": 0.7}),
    (metrics.precision_at_k, {"k": 2}),
    (metrics.precision_at_k, {"k": 0.35}),
    (metrics.break_even_point, {}),
    (metrics.average_precision_score, {}),
]
LABELED = [(metrics.g_mean_score, {}), (metrics.weighted_relative_accuracy, {})]


def names(cases):
    return [function.__name__ + "-".join(map(str, params.values())) for function, params in cases]


@st.composite
def samples(draw, max_rows=12, top_score=5, max_weight=1):
    """Labels, scores with many ties, integer weights; both classes are there."""
    size = draw(st.integers(2, max_rows))

    def column(low, high):
        return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)))

    y, s, w = column(0, 1), column(0, top_score), column(min(1, max_weight - 1), max_weight)
    assume(set(y[w > 0]) == {0, 1})
    return y, s, w


rates = st.integers(0, 20).map(lambda i: Fraction(i, 20))


def roc_points(y, s):
    """Every threshold's pair of rates, as fractions, from above all scores downwards."""
    m, n = int(np.sum(y == 1)), int(np.sum(y == 0))
    above = [math.inf, *sorted(set(s.tolist()), reverse=True)]
    return [(Fraction(int(np.sum(s[y == 0] >= t)), n), Fraction(int(np.sum(s[y == 1] >= t)), m)) for t in above]


def exact_area(y, s, a, b, floor=Fraction(0)):
    """Sum over the lines of the curve of their area above ``floor`` inside ``[a, b]``, in fractions."""
    area = Fraction(0)
    for (x0, y0), (x1, y1) in itertools.pairwise(roc_points(y, s)):
        left, right = max(x0, a), min(x1, b)
        if left >= right:
            continue
        slope = (y1 - y0) / (x1 - x0)
        low, high = y0 + slope * (left - x0) - floor, y0 + slope * (right - x0) - floor
        if low >= 0:
            area += (right - left) * (low + high) / 2
        elif high > 0:
            area += high * high / slope / 2
    return area


@many
@given(samples(), rates, rates)
@example((np.array([0, 0, 0, 1, 1]), np.array([1, 3, 5, 4, 2]), np.ones(5)), Fraction(1, 4), Fraction(1, 2))
def test_area_is_that_under_the_interpolated_curve(sample, a, b):
    y, s, _ = sample
    assume(a < b)
    got = metrics.partial_auc_score(y, s, min_fpr=float(a), max_fpr=float(b))
    assert got == pytest.approx(float(exact_area(y, s, a, b) / (b - a)), **exactly)


def test_area_by_numerical_integration():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, 60), rng.integers(0, 25, 60) + 0.0
    points = np.array(roc_points(y, s), dtype=float)
    grid = 0.13 + (0.48 - 0.13) * (np.arange(200_000) + 0.5) / 200_000
    height = np.interp(grid, points[:, 0], points[:, 1])
    area = metrics.partial_auc_score(y, s, min_fpr=0.13, max_fpr=0.48)
    assert area == pytest.approx(height.mean(), abs=1e-5)
    both = metrics.partial_auc_score(y, s, min_tpr=0.2, max_fpr=0.48)
    grid = 0.48 * (np.arange(200_000) + 0.5) / 200_000
    height = np.interp(grid, points[:, 0], points[:, 1])
    assert both == pytest.approx(np.maximum(height - 0.2, 0).mean() / 0.8, abs=1e-5)


@many
@given(samples(max_weight=3), st.integers(1, 20))
def test_standardized_area_is_that_of_scikit_learn(sample, i):
    y, s, w = sample
    ours = metrics.partial_auc_score(y, s, max_fpr=i / 20, standardize=True, sample_weight=w)
    theirs = roc_auc_score(y[w > 0], s[w > 0], max_fpr=i / 20, sample_weight=w[w > 0])
    assert ours == pytest.approx(theirs, **exactly)


@many
@given(samples())
def test_whole_area_counts_pairs_and_halves_ties(sample):
    y, s, _ = sample
    pairs = [float(p > q) + 0.5 * (p == q) for p in s[y == 1] for q in s[y == 0]]
    assert metrics.partial_auc_score(y, s) == pytest.approx(np.mean(pairs), **exactly)
    assert metrics.roc_auc_score(y, s) == pytest.approx(np.mean(pairs), **exactly)


@many
@given(st.integers(1, 19), st.integers(1, 20))
def test_standardized_scale(i, j):
    assume(i < j)
    window = {"min_fpr": i / 20, "max_fpr": j / 20, "standardize": True}
    y = np.array([0, 0, 0, 1, 1])
    assert metrics.partial_auc_score(y, y, **window) == pytest.approx(1)
    assert metrics.partial_auc_score(y, np.zeros(5), **window) == pytest.approx(0.5)


@many
@given(samples(max_weight=3), rates, rates)
def test_count_is_the_fraction_of_ordered_pairs(sample, a, b):
    y, s, w = sample
    assume(a < b)
    rows = np.repeat(np.arange(y.size), w)
    positives, negatives = s[rows][y[rows] == 1], np.sort(s[rows][y[rows] == 0])[::-1]
    window = negatives[math.floor(a * negatives.size) : math.ceil(b * negatives.size)]
    expected = np.mean([p > q for p in positives for q in window])
    got = metrics.partial_auc_score(y, s, min_fpr=float(a), max_fpr=float(b), definition="count", sample_weight=w)
    assert got == pytest.approx(expected, **exactly)


def test_count_of_the_example_in_the_paper():
    y = [1] * 4 + [0] * 5
    f1 = [9.1, 6.8, 6.1, 5.7, 8.5, 8.1, 4.2, 3.6, 2.3]
    f2 = [9.9, 8.7, 3.3, 2.1, 7.6, 5.3, 4.9, 4.4, 0.8]
    count = {"definition": "count"}
    assert metrics.partial_auc_score(y, f1, **count) == pytest.approx(14 / 20)
    assert metrics.partial_auc_score(y, f2, **count) == pytest.approx(12 / 20)
    assert metrics.partial_auc_score(y, f1, min_fpr=0.1, max_fpr=0.2, **count) == pytest.approx(1 / 4)
    assert metrics.partial_auc_score(y, f2, min_fpr=0.1, max_fpr=0.2, **count) == pytest.approx(2 / 4)


def test_ties_in_a_count_are_errors_and_in_an_area_halves():
    y, s = [0, 0, 1, 1], [1, 1, 1, 1]
    assert metrics.partial_auc_score(y, s, definition="count") == 0
    assert metrics.partial_auc_score(y, s, definition="area") == 0.5


def test_count_of_fractional_weights_splits_the_negative_on_the_edge():
    # Negatives of weight 1.5, 1.5, 0.5 from the top; floor(3.5 * 0.3) = 1 and ceil(3.5 * 0.5) = 2.
    y, s, w = [0, 0, 0, 1, 1], [5, 3, 1, 4, 2], [1.5, 1.5, 0.5, 1, 1]
    window = {"min_fpr": 0.3, "max_fpr": 0.5, "definition": "count"}
    assert metrics.partial_auc_score(y, s, sample_weight=w, **window) == pytest.approx(0.5 * 0 + 0.5 * 0.5)
    # ceil(3.5) = 4 is more than there is: the window ends with the last negative.
    window["max_fpr"] = 1.0
    expected = (0.5 * 0 + 1.5 * 0.5 + 0.5 * 1) / 2.5
    assert metrics.partial_auc_score(y, s, sample_weight=w, **window) == pytest.approx(expected)


@many
@given(samples(max_weight=3), rates, rates, rates)
def test_area_adds_up_over_adjoining_windows(sample, a, b, c):
    y, s, w = sample
    a, b, c = sorted((float(a), float(b), float(c)))
    assume(a < b < c)

    def area(low, high):
        return (high - low) * metrics.partial_auc_score(y, s, min_fpr=low, max_fpr=high, sample_weight=w)

    assert area(a, b) + area(b, c) == pytest.approx(area(a, c), **exactly)


def test_a_window_may_cut_a_negative_in_two():
    y, s = np.array([0, 0, 1, 1]), np.array([4.0, 2.0, 3.0, 1.0])
    # The curve is at 0 up to a rate of 1/2 and at 1/2 from there on.
    assert metrics.partial_auc_score(y, s, min_fpr=0.4, max_fpr=0.8) == pytest.approx(0.5 * 0.3 / 0.4)
    assert metrics.partial_auc_score(y, s, min_fpr=0.1, max_fpr=0.3) == pytest.approx(0)
    assert metrics.partial_auc_score(y, s, min_fpr=0.6, max_fpr=0.7) == pytest.approx(0.5)


def test_the_narrowest_windows_are_finite():
    y, s = [0, 0, 0, 1, 1], [1, 2, 3, 0, 4]
    last = np.nextafter(1.0, 0.0)
    assert metrics.partial_auc_score(y, s, min_fpr=last) == pytest.approx(0.5)
    assert metrics.partial_auc_score(y, s, max_fpr=1e-300) == pytest.approx(0.5)


@many
@given(samples(), rates, rates)
def test_two_way_area(sample, t, b):
    y, s, _ = sample
    assume(t < 1 and b > 0)
    expected = exact_area(y, s, Fraction(0), b, floor=t) / ((1 - t) * b)
    got = metrics.partial_auc_score(y, s, min_tpr=float(t), max_fpr=float(b))
    assert got == pytest.approx(float(expected), **exactly)


def test_two_way_area_of_the_diagonal_is_a_triangle():
    got = metrics.partial_auc_score([0, 1], [0, 0], min_tpr=0.25, max_fpr=0.75)
    assert got == pytest.approx(0.5 * 0.5 * 0.5 / (0.75 * 0.75))


@many
@given(samples(max_weight=3))
def test_average_precision_is_that_of_scikit_learn_and_a_mean_over_the_positives(sample):
    y, s, w = sample
    ours = metrics.average_precision_score(y, s, sample_weight=w)
    assert ours == pytest.approx(average_precision_score(y[w > 0], s[w > 0], sample_weight=w[w > 0]), **exactly)
    rows = np.repeat(np.arange(y.size), w)
    precisions = [y[rows][s[rows] >= score].mean() for score in s[rows][y[rows] == 1]]
    assert ours == pytest.approx(np.mean(precisions), **exactly)
    names = np.where(y == 1, "fraud", "ok")
    assert metrics.average_precision_score(names, s, sample_weight=w, pos_label="fraud") == ours


@many
@given(samples(), rates)
def test_rates_at_a_limit_are_those_of_a_threshold(sample, rate):
    y, s, _ = sample
    points = roc_points(y, s)
    best_tpr = max(tpr for fpr, tpr in points if fpr <= rate)
    best_fpr = min(fpr for fpr, tpr in points if tpr >= rate)
    assert metrics.tpr_at_fpr(y, s, max_fpr=float(rate)) == pytest.approx(float(best_tpr), **exactly)
    assert metrics.fpr_at_tpr(y, s, min_tpr=float(rate)) == pytest.approx(float(best_fpr), **exactly)


@pytest.mark.parametrize("k", range(101))
@pytest.mark.parametrize("unit", [1.0, 0.1])
def test_rounding_does_not_move_a_limit(k, unit):
    # Negatives and positives take turns from the top, so rank and rate are the same thing.
    y, s = np.tile([0, 1], 100), -np.arange(200.0)
    weight = np.full(200, unit)
    for rate in {k / 100, k * 0.01, 1 - (100 - k) / 100}:
        assert metrics.tpr_at_fpr(y, s, max_fpr=rate, sample_weight=weight) == pytest.approx(k / 100)
        assert metrics.fpr_at_tpr(y, s, min_tpr=rate, sample_weight=weight) == pytest.approx(k / 100)
        if unit == 1 and k > 0:
            count = metrics.partial_auc_score(y, s, max_fpr=rate, definition="count")
            assert count == pytest.approx((k - 1) / 200)
        if unit == 1 and k < 100:
            count = metrics.partial_auc_score(y, s, min_fpr=rate, definition="count")
            assert count == pytest.approx((k + 99) / 200)


@many
@given(samples(max_rows=6, top_score=2), st.integers(1, 6))
def test_precision_is_the_mean_over_all_orders_of_tied_rows(sample, k):
    y, s, _ = sample
    assume(k <= y.size)
    orders = [sorted(order, key=lambda i: -s[i]) for order in itertools.permutations(range(y.size))]
    expected = np.mean([y[order[:k]].mean() for order in orders])
    assert metrics.precision_at_k(y, s, k=k) == pytest.approx(expected, **exactly)
    assert metrics.precision_at_k(y, s, k=k / y.size) == pytest.approx(expected, **exactly)
    if k == y.sum():
        assert metrics.break_even_point(y, s) == pytest.approx(expected, **exactly)


def test_precision_of_a_fraction_takes_part_of_a_row():
    assert metrics.precision_at_k([1, 0, 1, 0, 0], [5, 4, 3, 2, 1], k=0.5) == pytest.approx((1 + 0.5) / 2.5)
    assert metrics.precision_at_k([1, 0], [1, 2], k=1) == 0
    assert metrics.precision_at_k([1, 0], [1, 2], k=1.0) == 0.5
    assert metrics.precision_at_k([1, 0], [1, 2], k=np.int32(2), sample_weight=[3, 1]) == 0.5


@many
@given(samples(max_weight=3), st.data())
def test_measures_of_labels(sample, data):
    y, _, w = sample
    predicted = np.array(data.draw(st.lists(st.integers(0, 1), min_size=y.size, max_size=y.size)))
    (tn, fp), (fn, tp) = confusion_matrix(y, predicted, sample_weight=w, labels=[0, 1])
    g_mean = math.sqrt(tp / (tp + fn) * tn / (tn + fp))
    assert metrics.g_mean_score(y, predicted, sample_weight=w) == pytest.approx(g_mean, **exactly)
    total = tp + tn + fp + fn
    accuracy = 0.0 if tp + fp == 0 else (tp + fp) / total * (tp / (tp + fp) - (tp + fn) / total)
    got = metrics.weighted_relative_accuracy(y, predicted, sample_weight=w)
    assert got == pytest.approx(accuracy, **exactly)
    c = (tn + fp) / (tp + fn)
    informedness = balanced_accuracy_score(y[w > 0], predicted[w > 0], sample_weight=w[w > 0], adjusted=True)
    assert 4 * got == pytest.approx(4 * c * informedness / (1 + c) ** 2, **exactly)


@pytest.mark.parametrize(("measure", "params"), SCORED + LABELED, ids=names(SCORED + LABELED))
class TestLaws:
    """What holds for every measure; labels stand in for scores where a measure takes labels."""

    @staticmethod
    def values(measure, s):
        return (s > 2).astype(int) if (measure, {}) in LABELED else s

    @few
    @given(samples(max_weight=3))
    def test_integer_weights_are_repeated_rows(self, measure, params, sample):
        y, s, w = sample
        s, rows = self.values(measure, s), np.repeat(np.arange(y.size), w)
        expected = measure(y[rows], s[rows], **params)
        assert measure(y, s, sample_weight=w, **params) == pytest.approx(expected, **exactly)

    @few
    @given(samples())
    def test_a_row_of_weight_zero_is_absent(self, measure, params, sample):
        y, s, _ = sample
        s = self.values(measure, s)
        absent = [np.nan, np.inf, 7.0]
        got = measure(
            np.append(y, [0, 1, 2]),
            np.append(s, absent),
            sample_weight=np.append(np.ones(y.size), [0] * 3),
            **params,
        )
        assert got == pytest.approx(measure(y, s, **params), **exactly)

    @few
    @given(samples(max_weight=3), st.randoms(use_true_random=False))
    def test_the_order_of_rows_does_not_matter(self, measure, params, sample, random):
        y, s, w = sample
        s, order = self.values(measure, s), np.array(random.sample(range(y.size), y.size))
        expected = measure(y, s, sample_weight=w, **params)
        got = measure(y[order], s[order], sample_weight=w[order], **params)
        assert got == pytest.approx(expected, **exactly)

    @few
    @given(samples())
    def test_any_two_labels_do(self, measure, params, sample):
        y, s, _ = sample
        s = self.values(measure, s)
        for labels in (np.array(["ok", "spam"]), np.array([False, True]), np.array([-1.0, 1.0])):
            values = labels[s] if (measure, {}) in LABELED else s
            expected = measure(y, s, **params)
            assert measure(labels[y], values, **params) == expected
            assert measure(labels[y], values, pos_label=labels[1], **params) == expected
            turned = measure(1 - y, 1 - s if (measure, {}) in LABELED else s, **params)
            assert measure(labels[y], values, pos_label=labels[0], **params) == turned


@pytest.mark.parametrize(("measure", "params"), SCORED, ids=names(SCORED))
@few
@given(sample=samples(max_weight=3))
def test_only_the_order_of_scores_matters(measure, params, sample):
    y, s, w = sample
    expected = measure(y, s, sample_weight=w, **params)
    for moved in (np.exp(s), s**3 - 50, s.astype(np.float32) / 7, (s > -1) * 2**53 + s):
        assert measure(y, moved, sample_weight=w, **params) == expected


@pytest.mark.parametrize(("measure", "params"), SCORED, ids=names(SCORED))
def test_perfect_and_worst(measure, params):
    y = np.repeat([0, 1], 20)
    best, worst = measure(y, y, **params), measure(y, -y, **params)
    if measure is metrics.fpr_at_tpr:
        best, worst = worst, best
    assert best == pytest.approx(1)
    if params.get("standardize"):
        assert worst == pytest.approx(0.5 * (1 - 0.35 / 0.65))
    elif measure is metrics.average_precision_score:
        assert worst == 0.5  # all positives are tied below the negatives
    else:
        assert worst == 0


def test_perfect_and_worst_labels():
    y = np.array([0, 0, 0, 1])
    assert metrics.g_mean_score(y, y) == 1
    assert metrics.g_mean_score(y, 1 - y) == 0
    assert metrics.g_mean_score(y, np.zeros(4, int)) == 0
    assert metrics.weighted_relative_accuracy(y, y) == pytest.approx(3 / 16)
    assert metrics.weighted_relative_accuracy(y, 1 - y) == pytest.approx(-3 / 16)
    assert metrics.weighted_relative_accuracy(y, np.ones(4, int)) == 0
