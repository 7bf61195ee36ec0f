"""Spline features: against interpolation, and on columns that splines are not made for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rocmax import SplineFeatures

FINITE = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@given(
    values=arrays(float, st.integers(1, 40), elements=FINITE),
    new=arrays(float, 10, elements=FINITE),
    quantiles=st.lists(st.sampled_from(np.linspace(0, 1, 21).tolist()), min_size=2, max_size=8, unique=True).map(
        sorted
    ),
)
def test_features_are_interpolations_between_knots(values, new, quantiles):
    model = SplineFeatures(quantiles).fit(values[:, None])
    (knots,) = model.knots_
    assert set(knots) <= set(values)
    features = model.transform(new[:, None])
    if knots.size == 1:
        np.testing.assert_array_equal(features, np.zeros((10, 1)))
        return
    expected = [np.interp(new, knots[i : i + 2], [0, 1]) for i in range(knots.size - 1)]
    np.testing.assert_allclose(features, np.transpose(expected), atol=1e-9)
    # The rises add up to the value, cut off at the outermost knots.
    total = knots[0] + features @ np.diff(knots)
    np.testing.assert_allclose(total, np.clip(new, knots[0], knots[-1]), atol=1e-6, rtol=1e-9)


def test_missing_values_are_medians_with_an_indicator():
    X = np.array([[0.0, np.nan, 1.0], [1.0, np.nan, 2.0], [np.nan, np.nan, 3.0], [5.0, np.nan, 9.0]])
    model = SplineFeatures([0, 0.5, 1]).fit(X)
    np.testing.assert_array_equal(model.medians_, [1.0, 0.0, 2.5])
    assert model.missing_.tolist() == [0, 1]
    # The third column had no missing values: its median, without an indicator.
    found = model.transform([[np.nan, 7.0, np.nan]])
    filled = model.transform([[1.0, 7.0, 2.5]])
    np.testing.assert_array_equal(found[0, :-2], filled[0, :-2])
    assert found[0, -2:].tolist() == [1.0, 0.0]
    assert filled[0, -2:].tolist() == [0.0, 0.0]


def test_columns_with_few_values():
    X = pd.DataFrame({"constant": [3.0] * 100, "rare": [0.0] * 99 + [1.0], "levels": np.arange(100) % 3.0})
    model = SplineFeatures().fit(X)
    assert [knots.size for knots in model.knots_] == [1, 2, 3]
    names = ["constant from 3 to 3", "rare from 0 to 1", "levels from 0 to 1", "levels from 1 to 2"]
    assert model.get_feature_names_out().tolist() == names
    new = pd.DataFrame({"constant": [8.0], "rare": [1.0], "levels": [1.5]})
    np.testing.assert_array_equal(model.transform(new), [[0.0, 1.0, 1.0, 0.5]])


@pytest.mark.parametrize("scale", [1e308, 1e155, 1e-300, 5e-324 * 1e6])
def test_extreme_values_stay_finite(scale):
    values = np.linspace(-1, 1, 50) * scale
    model = SplineFeatures().fit(values[:, None])
    assert model.knots_[0].size == 7
    for new in (values, np.array([1.7e308, -1.7e308, 0.0])):
        features = model.transform(new[:, None])
        assert ((features >= 0) & (features <= 1)).all()


def test_values_that_differ_by_rounding_are_one_knot():
    model = SplineFeatures().fit((1.0 + 1e-15 * np.arange(50))[:, None])
    assert model.knots_[0].size == 1


@pytest.mark.parametrize("quantiles", [[0.5], [0.5, 0.2], [0.5, 0.5], [-0.1, 1], [0, 1.1], [[0, 1]], [0, np.nan]])
def test_bad_quantiles(quantiles):
    with pytest.raises(ValueError, match="quantiles must be at least two ascending numbers from 0 to 1; got"):
        SplineFeatures(quantiles).fit(np.arange(5.0)[:, None])
