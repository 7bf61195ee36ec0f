"""Losses for the top of the ranking: precision at k with both references, and the break-even point."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.contingency_cases import assert_minorants, samples
from oracles import brute
from rocmax.losses import BreakEven, PrecisionAtK
from rocmax.metrics import break_even_point, precision_at_k

REFERENCES = ("best", "positives")
every_reference = pytest.mark.parametrize("reference", REFERENCES)
law = settings(max_examples=40, deadline=None, derandomize=True, database=None)
some_weights = st.lists(st.integers(1, 24).map(lambda k: k / 8), min_size=14, max_size=14).map(np.array)


def evaluate(loss, y, scores, weight=None):
    return loss.bind(y, weight).value_and_gradient(scores)


# Values


@every_reference
@given(sample=samples(), data=st.data())
@law
def test_value_is_the_largest_of_all_labellings_with_k_positives(reference, sample, data):
    y, scores = sample
    k = data.draw(st.integers(1, y.size))
    errors, coefficients = brute.top_by_enumeration(y, k, reference)
    every = errors + coefficients @ scores
    value, gradient = evaluate(PrecisionAtK(k, reference), y, scores)
    assert type(value) is float
    assert value == pytest.approx(every.max(), abs=1e-11)
    # Tied rows share, so the coefficients are a mean of those labellings that attain the value.
    attained = coefficients[every >= every.max() - 1e-12]
    assert (gradient >= attained.min(0) - 1e-12).all()
    assert (gradient <= attained.max(0) + 1e-12).all()


@given(sample=samples())
@law
def test_break_even_is_the_largest_of_all_labellings_with_m_positives(sample):
    y, scores = sample
    for reference in REFERENCES:
        errors, coefficients = brute.top_by_enumeration(y, int(y.sum()), reference)
        assert evaluate(BreakEven(), y, scores)[0] == pytest.approx((errors + coefficients @ scores).max(), abs=1e-11)


@every_reference
@given(sample=samples(largest=14), weight=st.none() | some_weights, share=st.integers(1, 64).map(lambda k: k / 64))
@law
def test_fractions_and_weights_take_parts_of_rows(reference, sample, weight, share):
    y, scores = sample
    weight = None if weight is None else weight[: y.size]
    k = share * (y.size if weight is None else weight.sum())
    value = evaluate(PrecisionAtK(share, reference), y, scores, weight)[0]
    assert value == pytest.approx(brute.top_by_linear_program(scores, y, k, weight, reference), abs=1e-8)
    if reference == "best":
        assert value == pytest.approx(brute.top_by_filling(scores, y, k, weight), abs=1e-12)


@every_reference
@pytest.mark.parametrize("k", [1, 30, 170, 200, 450, 1000])
def test_value_on_a_larger_sample(reference, k):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([True, False], [200, 800]))
    scores = np.round(rng.standard_normal(1000) + y, 1)
    expected = brute.top_by_linear_program(scores, y, k, None, reference)
    for loss in (PrecisionAtK(k, reference), PrecisionAtK(k / 1000, reference)):
        assert evaluate(loss, y, scores)[0] == pytest.approx(expected, rel=1e-9)


@given(sample=samples(largest=14), weight=st.none() | some_weights)
@law
def test_k_equal_to_the_positives_is_break_even(sample, weight):
    y, scores = sample
    weight = None if weight is None else np.ceil(weight[: y.size])
    m = int(y.sum() if weight is None else weight[y].sum())
    expected, coefficients = evaluate(BreakEven(), y, scores, weight)
    for reference in REFERENCES:
        value, gradient = evaluate(PrecisionAtK(m, reference), y, scores, weight)
        assert value == pytest.approx(expected, abs=1e-12)
        np.testing.assert_allclose(gradient, coefficients, atol=1e-14)


# Bounds and convexity


@given(sample=samples(largest=14), weight=st.none() | some_weights, data=st.data())
@law
def test_loss_is_at_least_one_minus_the_measure(sample, weight, data):
    y, scores = sample
    weight = None if weight is None else weight[: y.size]
    k = data.draw(st.integers(1, y.size) | st.sampled_from([0.1, 0.25, 0.5, 1.0]))
    if weight is None or k <= weight.sum():
        error = 1 - precision_at_k(y, scores, k=k, sample_weight=weight)
        assert evaluate(PrecisionAtK(k), y, scores, weight)[0] >= error - 1e-11
    error = 1 - break_even_point(y, scores, sample_weight=weight)
    assert evaluate(BreakEven(), y, scores, weight)[0] >= error - 1e-11


@pytest.mark.parametrize(
    "loss",
    [BreakEven(), *(PrecisionAtK(k, r) for k in (1, 2, 0.3, 0.9) for r in REFERENCES)],
    ids=repr,
)
@given(sample=samples(vectors=5, largest=14), weight=st.none() | some_weights)
@settings(max_examples=20, deadline=None, derandomize=True, database=None)
def test_coefficients_are_a_subgradient_from_many_points(loss, sample, weight):
    y, *points = sample
    bound = loss.bind(y, None if weight is None else 1 + weight[: y.size])
    assert_minorants(bound, points)


@pytest.mark.parametrize("loss", [BreakEven(), *(PrecisionAtK(k) for k in (1, 5, 0.3, 0.9))], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_shift_changes_nothing(loss, weighted):
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat([True, False], [9, 30]))
    weight = rng.uniform(0.5, 3.0, 39) if weighted else None
    scores = rng.standard_normal(39) + y
    assert loss.shift_invariant
    value, gradient = evaluate(loss, y, scores, weight)
    assert abs(gradient.sum()) <= 1e-13
    for shift in (-2.0, 1e6):
        assert evaluate(loss, y, scores + shift, weight)[0] == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize(("k", "slope"), [(3, 3 / 9 - 1), (20, 20 / 9 - 1)])
def test_the_reference_of_the_papers_has_no_lower_bound(k, slope):
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat([True, False], [9, 30]))
    scores = rng.standard_normal(39) + y
    loss = PrecisionAtK(k, "positives")
    assert not loss.shift_invariant
    value, gradient = evaluate(loss, y, scores)
    assert gradient.sum() == pytest.approx(slope)
    far = -np.sign(slope) * 1000.0
    shifted = evaluate(loss, y, scores + far)[0]
    assert shifted == pytest.approx(value + slope * far)
    assert shifted < -100


def test_a_perfect_ranking_with_a_margin_costs_what_precision_must():
    y = np.repeat([True, False], [10, 40])
    scores = np.where(y, 2.0, 0.0)
    for k in (1, 5, 10):
        assert evaluate(PrecisionAtK(k), y, scores)[0] == pytest.approx(0.0, abs=1e-12)
    # Beyond the positives precision cannot be 1: 10 of 25.
    assert evaluate(PrecisionAtK(25), y, scores)[0] == pytest.approx(1 - 10 / 25)


# Weights and rows


@every_reference
@given(sample=samples(largest=14), data=st.data())
@law
def test_whole_weights_are_repeated_rows(reference, sample, data):
    y, scores = sample
    weight = np.array(data.draw(st.lists(st.integers(0, 4), min_size=y.size, max_size=y.size)))
    weight[[np.argmax(y), np.argmin(y)]] += 1
    rows = np.repeat(np.arange(y.size), weight)
    k = data.draw(st.integers(1, rows.size) | st.sampled_from([0.1, 0.5, 1.0]))
    for loss in (PrecisionAtK(k, reference), BreakEven()):
        value, gradient = evaluate(loss, y, scores, weight)
        expected, copies = evaluate(loss, y[rows], scores[rows])
        assert value == pytest.approx(expected, abs=1e-11)
        np.testing.assert_allclose(gradient, np.bincount(rows, copies, y.size), atol=1e-12)


@every_reference
@given(sample=samples(largest=14), weight=some_weights, data=st.data())
@law
def test_order_of_rows_does_not_matter(reference, sample, weight, data):
    y, scores = sample
    order = np.array(data.draw(st.permutations(range(y.size))))
    for loss in (PrecisionAtK(0.25, reference), BreakEven()):
        value, gradient = evaluate(loss, y, scores, weight[: y.size])
        again, other = evaluate(loss, y[order], scores[order], weight[: y.size][order])
        assert value == pytest.approx(again, abs=1e-13)
        np.testing.assert_allclose(gradient[order], other, atol=1e-14)


@every_reference
def test_rows_of_weight_zero_are_absent(reference):
    rng = np.random.default_rng(4)
    y = rng.permutation(np.repeat([True, False], [12, 30]))
    scores = rng.standard_normal(42) + y
    absent = rng.random(42) < 0.3
    for loss in (PrecisionAtK(5, reference), PrecisionAtK(0.5, reference), BreakEven()):
        for weight in (np.where(absent, 0.0, 1.0), np.where(absent, 0.0, rng.uniform(0.5, 2, 42))):
            noisy = np.where(absent, rng.choice([np.nan, np.inf, 1e9], 42), scores)
            value, gradient = evaluate(loss, y, noisy, weight)
            expected, rest = evaluate(loss, y[~absent], scores[~absent], weight[~absent])
            assert value == pytest.approx(expected, rel=1e-13)
            np.testing.assert_allclose(gradient[~absent], rest, atol=1e-15)
            assert not gradient[absent].any()


def test_gradient_is_the_slope_where_there_is_one():
    rng = np.random.default_rng(5)
    y = rng.permutation(np.repeat([True, False], [7, 13]))
    scores, weight = rng.standard_normal(20) + y, rng.uniform(0.5, 2, 20)
    for loss in (BreakEven(), PrecisionAtK(3), PrecisionAtK(12), PrecisionAtK(3, "positives")):
        bound = loss.bind(y, weight)
        gradient = bound.value_and_gradient(scores)[1]
        for row, step in enumerate(1e-6 * np.eye(20)):
            up, down = (bound.value_and_gradient(scores + d)[0] for d in (step, -step))
            assert (up - down) / 2e-6 == pytest.approx(gradient[row], abs=1e-7)


# Bad input and copies


@pytest.mark.parametrize("k", [0, -1, 0.0, 1.5, 2.0, np.nan, np.inf, True, "3", None])
def test_bad_k(k):
    with pytest.raises(ValueError, match=r"k (as a|must be)"):
        PrecisionAtK(k)


def test_k_may_be_any_integer_type_up_to_the_total_weight():
    y, scores = [1, 0, 1, 0], [2.0, 1.5, 0.0, 0.0]
    assert evaluate(PrecisionAtK(np.int64(2)), y, scores)[0] == evaluate(PrecisionAtK(2), y, scores)[0]
    assert evaluate(PrecisionAtK(np.float32(0.5)), y, scores)[0] == evaluate(PrecisionAtK(2), y, scores)[0]
    assert PrecisionAtK(6).bind(y, [2, 1, 2, 1]).k == 6
    with pytest.raises(ValueError, match="from 1 to the total weight, 4; got 5"):
        PrecisionAtK(5).bind(y)


def test_a_fraction_is_free_of_rounding():
    # 100 * 0.07 and 100 * 0.29 are not whole in floating point.
    y = np.arange(100) < 30
    for share in (0.07, 0.29, 0.57):
        assert PrecisionAtK(share).bind(y).k == round(100 * share)


def test_bad_reference():
    with pytest.raises(ValueError, match=r"reference must be .* got 'worst'"):
        PrecisionAtK(1, "worst")


@pytest.mark.parametrize("loss", [PrecisionAtK(3), PrecisionAtK(0.2, "positives"), BreakEven()], ids=repr)
def test_copies_pickles_and_inputs(loss):
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat([True, False], [30, 90]))
    scores = rng.standard_normal(120) + y
    before = scores.copy()
    scores.flags.writeable = False
    expected, coefficients = evaluate(loss, y, scores)
    np.testing.assert_array_equal(scores, before)
    for other in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        assert other == loss
    for bound in (pickle.loads(pickle.dumps(loss.bind(y))), copy.deepcopy(loss.bind(y))):
        value, gradient = bound.value_and_gradient(scores)
        assert value == expected
        np.testing.assert_array_equal(gradient, coefficients)
    with pytest.raises(ValueError, match="one class"):
        loss.bind([0, 0])
    with pytest.raises(ValueError, match="NaN or infinity"):
        loss.bind(y).value_and_gradient(np.where(y, np.nan, scores))
