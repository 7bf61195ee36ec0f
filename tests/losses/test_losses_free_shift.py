"""A contingency loss at its best shift: what a model with a free intercept pays."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize_scalar

from helpers.contingency_cases import assert_minorants, every_known_shape, every_loss, law, samples
from oracles import brute
from rocmax.losses import FreeShift
from rocmax.losses import contingency as _worst_labelling


@every_loss
@given(sample=samples(largest=14))
@law
def test_free_shift_is_the_minimum_over_shifts(loss, measure, sample):
    y, scores = sample
    expected = brute.at_best_shift(*brute.contingency_tables(scores, y, measure))
    for small in (10**9, 0):
        with mock.patch.object(_worst_labelling, "FEW_PAIRS", small):
            bound = FreeShift(loss).bind(y)
            value, gradient = bound.value_and_gradient(scores)
            assert type(value) is float
            assert value == pytest.approx(expected, abs=1e-9)
            assert loss.bind(y).value_and_gradient(scores + bound.shift)[0] == pytest.approx(value, abs=1e-11)
        assert abs(gradient.sum()) <= 1e-14
        for shift in (-1.0, 0.0, 0.5):
            assert value <= loss.bind(y).value_and_gradient(scores + shift)[0] + 1e-12


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_free_shift_against_a_search_along_the_line(loss, measure, weighted):
    for seed, scale in enumerate((0.05, 1.0, 20.0)):
        rng = np.random.default_rng(seed)
        y = rng.permutation(np.repeat([True, False], [60, 400]))
        weight = rng.integers(0, 4, 460) if weighted else None
        if weighted and loss.knows_parts:
            weight = weight + 0.3
        scores = scale * (rng.standard_normal(460) + 1.5 * y)
        base = loss.bind(y, weight)
        found = minimize_scalar(
            lambda b, base=base, scores=scores: base.value_and_gradient(scores + b)[0],
            bounds=(-3 - 5 * scale, 3 + 5 * scale),
            method="bounded",
            options={"xatol": 1e-10},
        )
        value, gradient = FreeShift(loss).bind(y, weight).value_and_gradient(scores)
        assert value == pytest.approx(found.fun, rel=1e-7)
        assert value <= found.fun + 1e-11
        assert abs(gradient.sum()) <= 1e-12


@every_loss
@given(sample=samples(vectors=5, largest=14))
@law
def test_free_shift_has_subgradients_and_does_not_move_with_a_shift(loss, measure, sample):
    y, *points = sample
    bound = FreeShift(loss).bind(y)
    assert_minorants(bound, points)
    for base in points:
        value = bound.value_and_gradient(base)[0]
        for shift in (-3.5, 1024.0):
            assert bound.value_and_gradient(base + shift)[0] == pytest.approx(value, abs=1e-9)


@every_known_shape
def test_what_a_free_shift_remembers_changes_no_value(loss, measure):
    rng = np.random.default_rng(8)
    y = rng.permutation(np.repeat([True, False], [200, 900]))
    bound = FreeShift(loss).bind(y)
    for step in range(0, 40, 4):
        scores = (1 + step / 10) * (rng.standard_normal(1100) + 0.1 * step * y)
        fresh = FreeShift(loss).bind(y).value_and_gradient(scores)[0]
        assert bound.value_and_gradient(scores)[0] == pytest.approx(fresh, rel=1e-12)


@every_known_shape
@pytest.mark.parametrize("scale", [1e-12, 1e6, 1e12])
def test_free_shift_ends_where_rounding_is_large(loss, measure, scale):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.permutation(np.repeat([True, False], [100, 300]))
        # Far from zero, many tied: a value near 1 is a difference of large sums.
        scores = scale + scale * rng.uniform(0.5, 1.0, 400) * np.where(y, 1, -1) * rng.choice([0, 1], 400)
        bound = FreeShift(loss).bind(y, rng.choice([0.1, 0.2, 0.7], 400) if seed % 2 else None)
        calls = []
        best = _worst_labelling.best_table
        with mock.patch.object(
            _worst_labelling, "best_table", lambda *a, calls=calls, best=best: calls.append(a) or best(*a)
        ):
            value, gradient = bound.value_and_gradient(scores)
        assert len(calls) < 60
        at_shift = bound._base.value_and_gradient(scores + bound.shift)[0]
        assert value == pytest.approx(at_shift, rel=1e-9, abs=1e-13 * scale)
        assert abs(gradient.sum()) <= 1e-9
