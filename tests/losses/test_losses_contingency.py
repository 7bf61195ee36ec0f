"""Losses of the contingency table: F-beta, G-mean, a user's measure, and their best shift."""

import copy
import pickle
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.contingency_cases import (
    BETAS,
    CASES,
    Accuracy,
    assert_minorants,
    every_known_shape,
    every_loss,
    f_beta,
    jaccard,
    law,
    samples,
)
from oracles import brute
from rocmax.losses import Contingency, FBeta, FreeShift, GMean
from rocmax.losses import contingency as _worst_labelling
from rocmax.losses.contingency import SearchRules


def evaluate(loss, y, scores, weight=None):
    """Value and coefficients by looking at all tables, and by branch and bound."""
    found = []
    for small in (10**9, 0):
        with mock.patch.object(_worst_labelling, "FEW_PAIRS", small):
            found.append(loss.bind(y, weight).value_and_gradient(scores))
    return found


def value_of(gradient, scores, y, measure, weight=1.0):
    """``1 - measure + gradient @ scores`` at the table that the coefficients stand for."""
    m, n = np.sum(weight * y), np.sum(weight * ~y)
    tp, fp = m * (1 + gradient[y].sum()), m * gradient[~y].sum()
    # Sums of coefficients are a little off whole numbers, and off the ends.
    tp, fp = (float(np.clip(np.round(count, 9), 0, end)) for count, end in ((tp, m), (fp, n)))
    return 1 - float(measure(tp, fp, m, n)) + gradient @ scores


# Values


@every_loss
@given(sample=samples())
@law
def test_value_is_the_largest_of_all_labellings(loss, measure, sample):
    y, scores = sample
    errors, coefficients = brute.contingency_by_enumeration(y, measure)
    every = errors + coefficients @ scores
    for value, gradient in evaluate(loss, y, scores):
        assert type(value) is float
        assert value == pytest.approx(every.max(), abs=1e-11)
        # The coefficients are those of a labeling that attains it, tied rows sharing.
        assert gradient.shape == y.shape
        assert (gradient * np.where(y, -1, 1) >= 0).all()
        assert (np.abs(gradient) <= 1 / y.sum() + 1e-15).all()


def test_value_is_that_of_the_coefficients():
    rng = np.random.default_rng(1)
    for loss, measure in CASES.values():
        y = rng.permutation(np.repeat([True, False], [20, 60]))
        scores = np.round(rng.standard_normal(80) + y, 1)
        for value, gradient in evaluate(loss, y, scores):
            assert value == pytest.approx(value_of(gradient, scores, y, measure), abs=1e-12)


@every_loss
@pytest.mark.parametrize(("m", "n"), [(1, 700), (300, 900), (400, 1), (90, 90)])
def test_value_on_larger_samples_is_the_largest_of_all_tables(loss, measure, m, n):
    for seed, scale in enumerate((0.0, 0.01, 0.3, 1.0, 5.0)):
        rng = np.random.default_rng(seed)
        y = rng.permutation(np.repeat([True, False], [m, n]))
        scores = scale * (rng.standard_normal(m + n) + y) + rng.uniform(-1, 1)
        if seed % 2:
            scores = np.round(scores, 1)
        expected = brute.contingency_tables(scores, y, measure)[0].max()
        for value, _ in evaluate(loss, y, scores):
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-11)


@every_known_shape
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
def test_planes_are_above_the_error(loss, measure, data):
    m, n = data.draw(st.integers(1, 50)), data.draw(st.integers(1, 500))
    t1, t2 = sorted(data.draw(st.tuples(st.floats(0, m), st.floats(0, m))))
    f1, f2 = sorted(data.draw(st.tuples(st.floats(0, n), st.floats(0, n))))
    plane = loss.plane(*(np.array([end]) for end in (t1, t2, f1, f2)), m, n)
    t, f = np.linspace(t1, t2, 12)[:, None], np.linspace(f1, f2, 12)[None, :]
    above = plane.level + plane.tp_slope * (t - t1) + plane.fp_slope * (f - f1)
    assert (above >= 1 - loss.measure(t, f, m, n) - 1e-12).all()


@every_known_shape
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("share", [0.02, 0.5])
def test_large_samples_are_not_searched_through(loss, measure, scale, share):
    # At zero scores, where every fit starts, all tables without true positives tie.
    rng = np.random.default_rng(0)
    y = rng.permutation(50_000) < share * 50_000
    scores = scale * (rng.standard_normal(50_000) + 2.0 * y)
    looked_at = []
    search = _worst_labelling._Search
    refine, split = search.refine, search.split_intervals
    with (
        mock.patch.object(search, "refine", lambda self, c: looked_at.append(c.shape[1]) or refine(self, c)),
        mock.patch.object(search, "split_intervals", lambda self, c: looked_at.append(c.size) or split(self, c)),
    ):
        value, gradient = loss.bind(y).value_and_gradient(scores)
    assert 0 < sum(looked_at) < 20_000
    assert value == pytest.approx(value_of(gradient, scores, y, measure), abs=1e-9)


@pytest.mark.parametrize("weighted", [None, "whole", "parts"])
@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("parts", [2, 3, 8])
def test_split_intervals_contain_the_best_table(weighted, beta, parts):
    rng = np.random.default_rng(parts)
    for scale in (1e-6, 0.03, 1.0, 1e4):
        y = rng.permutation(120) < 40
        weight = {None: None, "whole": rng.integers(1, 4, 120), "parts": rng.uniform(0.2, 3.0, 120)}[weighted]
        scores = scale * np.round(rng.standard_normal(120) + y, 1)
        search = mock.patch.multiple(_worst_labelling, FEW_PAIRS=0, RULES=SearchRules(parts))
        with search:
            value = FBeta(beta).bind(y, weight).value_and_gradient(scores)[0]
        # The rectangles of the general search, which does not use that the error is concave in the false positives.
        with mock.patch.object(_worst_labelling, "FEW_PAIRS", 0), mock.patch.object(FBeta, "saddle", False):
            expected = FBeta(beta).bind(y, weight).value_and_gradient(scores)[0]
        assert value == pytest.approx(expected, rel=1e-13)


# Convexity and bounds


@every_loss
@given(sample=samples(vectors=5, largest=14))
@law
def test_coefficients_are_a_subgradient_from_many_points(loss, measure, sample):
    y, *points = sample
    bound = loss.bind(y)
    assert_minorants(bound, points)


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_subgradient_on_larger_samples(loss, measure, weighted):
    rng = np.random.default_rng(3)
    y = rng.permutation(np.repeat([True, False], [40, 400]))
    bound = loss.bind(y, rng.integers(0, 4, 440) if weighted else None)
    points = [scale * (rng.standard_normal(440) + y) for scale in (0.0, 0.01, 0.3, 1.0, 1.0, 10.0)]
    assert_minorants(bound, points)


@every_loss
@given(sample=samples(largest=14))
@law
def test_loss_is_at_least_the_error_of_the_threshold_zero(loss, measure, sample):
    y, scores = sample
    value = loss.bind(y).value_and_gradient(scores)[0]
    for accepted in (scores > 0, scores >= 0):
        error = 1 - measure((accepted & y).sum(), (accepted & ~y).sum(), y.sum(), (~y).sum())
        assert value >= error - 1e-12
    assert value >= -1e-12


@every_loss
def test_gradient_is_the_slope_where_there_is_one(loss, measure):
    rng = np.random.default_rng(5)
    y = rng.permutation(np.repeat([True, False], [7, 13]))
    for weight in (None, rng.integers(1, 4, 20)):
        bound = loss.bind(y, weight)
        scores = 0.5 * rng.standard_normal(20) + y
        gradient = bound.value_and_gradient(scores)[1]
        for row, step in enumerate(1e-7 * np.eye(20)):
            up, down = (bound.value_and_gradient(scores + d)[0] for d in (step, -step))
            assert (up - down) / 2e-7 == pytest.approx(gradient[row], abs=1e-6)


# Weights and rows


@every_loss
@given(sample=samples(largest=14), data=st.data())
@law
def test_whole_weights_are_repeated_rows(loss, measure, sample, data):
    y, scores = sample
    weight = np.array(data.draw(st.lists(st.integers(0, 4), min_size=y.size, max_size=y.size)))
    weight[[np.argmax(y), np.argmin(y)]] += 1
    rows = np.repeat(np.arange(y.size), weight)
    expected = brute.contingency_tables(scores[rows], y[rows], measure)[0].max()
    for value, gradient in evaluate(loss, y, scores, weight) + evaluate(loss, y[rows], scores[rows]):
        assert value == pytest.approx(expected, abs=1e-11)
        assert gradient.size in (y.size, rows.size)


@pytest.mark.parametrize("beta", BETAS)
def test_copies_of_a_heavy_negative_are_labelled_apart(beta):
    y = np.repeat([True, False], [3, 3])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weight = rng.integers(1, 30, 6)
        m, heavy = weight[y].sum(), 3 * weight[y].sum()
        weight[3] = heavy
        # With all positives labeled, one more copy of the heavy negative gains as much as it loses at this many.
        share = rng.uniform(0.1, 0.9) * heavy / m
        scores = np.array([9.0, 8.0, 7.0, -(1 + beta**2) / (1 + beta**2 + share) ** 2, -5.0, -6.0])
        rows = np.repeat(np.arange(6), weight)
        expected = brute.contingency_tables(scores[rows], y[rows], f_beta(beta))[0].max()
        value, gradient = FBeta(beta).bind(y, weight).value_and_gradient(scores)
        assert value == pytest.approx(expected, abs=1e-14)
        assert gradient[3] * m == pytest.approx(share * m, abs=1.0)
        assert gradient[3] * m == pytest.approx(np.rint(gradient[3] * m), abs=1e-9)


@every_loss
def test_coefficients_of_whole_weights_are_sums_over_copies(loss, measure):
    rng = np.random.default_rng(2)
    y = rng.permutation(np.repeat([True, False], [9, 21]))
    scores, weight = rng.standard_normal(30) + y, rng.integers(1, 5, 30)
    rows = np.repeat(np.arange(30), weight)
    for (_, gradient), (_, copies) in zip(
        evaluate(loss, y, scores, weight), evaluate(loss, y[rows], scores[rows]), strict=True
    ):
        np.testing.assert_allclose(gradient, np.bincount(rows, copies), rtol=1e-12, atol=1e-15)


@every_known_shape
@given(sample=samples(largest=14), data=st.data())
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
def test_other_weights_are_labelled_in_any_part(loss, measure, sample, data):
    y, scores = sample
    # One odd weight, so that not all are whole.
    weight = np.array(data.draw(st.lists(st.integers(1, 40), min_size=y.size, max_size=y.size))) / 8 + 1 / 16
    value, gradient = loss.bind(y, weight).value_and_gradient(scores)
    fine = brute.contingency_tables(scores, y, measure, weight, parts=700)[0].max()
    assert fine - 1e-11 <= value <= fine + 1e-3
    # The value is attained, by the parts that the coefficients tell.
    assert value == pytest.approx(value_of(gradient, scores, y, measure, weight), abs=1e-6)


@every_known_shape
def test_subgradient_with_other_weights(loss, measure):
    rng = np.random.default_rng(7)
    y = rng.permutation(np.repeat([True, False], [15, 60]))
    bound = loss.bind(y, rng.uniform(0.05, 9.0, 75))
    points = [scale * (rng.standard_normal(75) + y) for scale in (0.0, 0.01, 0.3, 1.0, 1.0, 10.0)]
    assert_minorants(bound, points)


@every_loss
@given(sample=samples(largest=14), data=st.data())
@law
def test_order_of_rows_does_not_matter(loss, measure, sample, data):
    y, scores = sample
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=y.size, max_size=y.size)))
    order = np.array(data.draw(st.permutations(range(y.size))))
    for small in (10**9, 0):
        with mock.patch.object(_worst_labelling, "FEW_PAIRS", small):
            value, gradient = loss.bind(y, weight).value_and_gradient(scores)
            again, other = loss.bind(y[order], weight[order]).value_and_gradient(scores[order])
        # Binary fractions of few digits: sums are exact in any order.
        assert value == again
        np.testing.assert_array_equal(gradient[order], other)


@every_loss
@pytest.mark.parametrize("outer", [lambda loss: loss, FreeShift], ids=["plain", "free"])
def test_rows_of_weight_zero_are_absent(loss, measure, outer):
    rng = np.random.default_rng(4)
    y = rng.permutation(np.repeat([True, False], [12, 30]))
    weight = rng.integers(1, 3, 42) if not loss.knows_parts else rng.uniform(0.5, 2, 42)
    scores = rng.standard_normal(42) + y
    absent = rng.random(42) < 0.3
    for given_weight in (np.where(absent, 0, 1), np.where(absent, 0, weight)):
        noisy = np.where(absent, rng.choice([np.nan, np.inf, 1e9], 42), scores)
        value, gradient = outer(loss).bind(y, given_weight).value_and_gradient(noisy)
        kept = outer(loss).bind(y[~absent], given_weight[~absent])
        expected, rest = kept.value_and_gradient(scores[~absent])
        assert value == expected
        np.testing.assert_array_equal(gradient[~absent], rest)
        assert not gradient[absent].any()


# A user's measure


def test_a_function_and_a_subclass_are_the_same_loss():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([True, False], [150, 600]))
    scores = rng.standard_normal(750) + y
    given_function = Contingency(lambda tp, fp, m, n: (tp + n - fp) / (m + n)).bind(y).value_and_gradient(scores)
    subclass = Accuracy().bind(y).value_and_gradient(scores)
    assert given_function[0] == subclass[0]
    np.testing.assert_array_equal(given_function[1], subclass[1])


def test_accuracy_is_a_sum_of_hinges():
    # 1 - accuracy is a sum over rows, so the maximum splits: max(0, margin + s) for negatives, max(0, margin - s).
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([True, False], [150, 600]))
    scores = 0.3 * rng.standard_normal(750) + 0.1 * y
    expected = np.maximum(0, 1 / 750 + np.where(y, -1, 1) * scores / 150).sum()
    assert Accuracy().bind(y).value_and_gradient(scores)[0] == pytest.approx(expected, rel=1e-12)


def test_f_beta_given_as_a_function_is_f_beta():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([True, False], [150, 600]))
    for beta in BETAS:
        scores = rng.standard_normal(750) + y
        one = Contingency(f_beta(beta)).bind(y).value_and_gradient(scores)[0]
        assert one == pytest.approx(FBeta(beta).bind(y).value_and_gradient(scores)[0], rel=1e-12)


@pytest.mark.parametrize(
    "measure",
    [
        lambda tp, fp, m, n: 1 - tp / m + 0 * fp,
        lambda tp, fp, m, n: fp / n + 0 * tp,
        lambda tp, fp, m, n: np.where(tp == 2, 0.9, tp / m) + 0 * fp,
    ],
    ids=["falls-with-tp", "grows-with-fp", "one-table"],
)
def test_a_measure_that_is_not_monotone_is_refused(measure):
    y = np.repeat([True, False], [4, 9])
    with pytest.raises(
        ValueError, match="Contingency must not decrease with the true positives and must not increase with the false"
    ):
        Contingency(measure).bind(y)


@pytest.mark.parametrize(("bad", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_measure_that_is_not_finite_is_refused(bad, shown):
    y = np.repeat([True, False], [4, 9])
    with pytest.raises(ValueError, match=f"Contingency must be finite for every table; got {shown}$"):
        Contingency(lambda tp, fp, m, n: np.where((tp == 0) & (fp == 0), bad, tp / (m + fp))).bind(y)


def test_a_measure_above_one_is_refused():
    with pytest.raises(ValueError, match="Contingency must be at most 1; got 3"):
        Contingency(lambda tp, fp, m, n: tp - 0 * fp).bind([1, 1, 1, 0])


def test_a_measure_of_unknown_shape_needs_whole_weights():
    with pytest.raises(ValueError, match=r"sample_weight of Contingency must be whole numbers.*such as 0\.5"):
        Contingency(jaccard).bind([1, 0, 1], [1.0, 0.5, 2.0])
    with pytest.raises(ValueError, match=r"must sum to at most 50000000; got 1e\+09"):
        Contingency(jaccard).bind([1, 0], [1.0, 1e9 - 1])


# Bad input and copies


@pytest.mark.parametrize("beta", [0, -1.0, np.inf, np.nan, True])
def test_bad_beta(beta):
    with pytest.raises(ValueError, match="beta must be a finite number > 0; got"):
        FBeta(beta)


@every_loss
@pytest.mark.parametrize("outer", [lambda loss: loss, FreeShift], ids=["plain", "free"])
def test_bad_input(loss, measure, outer):
    loss = outer(loss)
    with pytest.raises(ValueError, match="one class"):
        loss.bind([1, 1, 1])
    bound = loss.bind([1, 0, 0])
    with pytest.raises(ValueError, match=r"scores must have shape \(3,\)"):
        bound.value_and_gradient([1.0, 2.0])
    with pytest.raises(ValueError, match="NaN or infinity"):
        bound.value_and_gradient([1.0, np.nan, 0.0])


@pytest.mark.parametrize(
    "loss",
    [FBeta(0.5), GMean(), Contingency(jaccard), FreeShift(FBeta(2)), FreeShift(GMean())],
    ids=["FBeta", "GMean", "Jaccard", "FreeShift-FBeta", "FreeShift-GMean"],
)
def test_copies_and_pickles_are_the_same_loss(loss):
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat([True, False], [30, 90]))
    scores = rng.standard_normal(120) + y
    bound = loss.bind(y)
    expected = bound.value_and_gradient(scores)
    for other in (
        pickle.loads(pickle.dumps(loss)).bind(y),
        copy.deepcopy(loss).bind(y),
        pickle.loads(pickle.dumps(bound)),
        copy.deepcopy(bound),
    ):
        value, gradient = other.value_and_gradient(scores)
        assert value == pytest.approx(expected[0], rel=1e-14)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-12, atol=1e-16)


@every_loss
def test_scores_stay_as_they_were(loss, measure):
    scores = np.random.default_rng(0).standard_normal(200)
    y = scores + np.random.default_rng(1).standard_normal(200) > 0
    before = scores.copy()
    scores.flags.writeable = False
    for outer in (loss, FreeShift(loss)):
        for weight in (None, np.full(200, 2)):
            outer.bind(y, weight).value_and_gradient(scores)
    np.testing.assert_array_equal(scores, before)
    single = loss.bind(y).value_and_gradient(scores.astype(np.float32))[0]
    assert single == pytest.approx(loss.bind(y).value_and_gradient(scores)[0], rel=1e-5)


@every_loss
def test_flags(loss, measure):
    assert not loss.shift_invariant
    assert FreeShift(loss).shift_invariant
    assert FreeShift(loss).bind([1, 0]).convex
    assert loss.bind([1, 0]).convex
