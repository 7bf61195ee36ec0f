"""Intervals and tests if the rows of a group depend on each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from helpers.simulated_scores import delong_error
from rocmax import metrics

SHIFT = 1.2


def customers(rng, n_groups=60, size=10, shared=0.6, kind="mixed"):
    """Return labels, scores, scores of an equal model, and groups with an effect on both scores of their rows."""
    groups = np.repeat(np.arange(n_groups), size)
    y = rng.random(groups.size) < 0.4 if kind == "mixed" else (np.arange(n_groups) % 3 == 0)[groups]
    effects = np.sqrt(shared) * rng.normal(size=(2, n_groups))[:, groups]
    first, second = effects + np.sqrt(1 - shared) * rng.normal(size=(2, groups.size)) + SHIFT * y
    return y.astype(int), first, second, groups


def obuchowski_variance(y, scores, groups):
    """Transcription of Obuchowski (1997), formulas 2 to 7, from the full table of pairs."""
    x, z = scores[y == 1], scores[y == 0]
    psi = (x[:, None] > z[None, :]) + 0.5 * (x[:, None] == z[None, :])
    area, names = psi.mean(), np.unique(groups)
    by_positive = {g: psi[groups[y == 1] == g].mean(axis=1).sum() if (y[groups == g] == 1).any() else 0 for g in names}
    by_negative = {
        g: psi[:, groups[y == 0] == g].mean(axis=0).sum() if (y[groups == g] == 0).any() else 0 for g in names
    }
    m = {g: np.sum(y[groups == g] == 1) for g in names}
    n = {g: np.sum(y[groups == g] == 0) for g in names}
    i10, i01, i = sum(m[g] > 0 for g in names), sum(n[g] > 0 for g in names), names.size
    s10 = i10 / ((i10 - 1) * x.size) * sum((by_positive[g] - m[g] * area) ** 2 for g in names)
    s01 = i01 / ((i01 - 1) * z.size) * sum((by_negative[g] - n[g] * area) ** 2 for g in names)
    s11 = i / (i - 1) * sum((by_positive[g] - m[g] * area) * (by_negative[g] - n[g] * area) for g in names)
    return s10 / x.size + s01 / z.size + 2 * s11 / (x.size * z.size)


@pytest.mark.parametrize("kind", ["mixed", "pure"])
@pytest.mark.parametrize("digits", [None, 0])
def test_the_variance_with_groups_is_obuchowskis(kind, digits):
    y, scores, _, groups = customers(np.random.default_rng(0), kind=kind)
    scores = scores if digits is None else scores.round(digits)
    assert delong_error(y, scores, groups=groups) ** 2 == pytest.approx(obuchowski_variance(y, scores, groups))


def test_groups_of_one_row_change_nothing():
    y, first, second, _ = customers(np.random.default_rng(1), n_groups=20)
    rows = np.random.default_rng(0).permutation(y.size)
    one = delong_error(y, first, max_fpr=0.3)
    assert delong_error(y, first, max_fpr=0.3, groups=rows) == pytest.approx(one)
    assert metrics.delong_test(y, first, second, groups=rows) == pytest.approx(metrics.delong_test(y, first, second))
    options = {"n_resamples": 3000, "random_state": 0}
    plain = metrics.bootstrap_interval("roc_auc", y, first, **options)
    grouped = metrics.bootstrap_interval("roc_auc", y, first, groups=rows, **options)
    assert grouped == pytest.approx(plain, abs=0.1 * (plain[1] - plain[0]))


@pytest.mark.parametrize("kind", ["mixed", "pure"])
def test_intervals_and_tests_reach_their_level_with_groups_and_not_without(kind):
    """A coverage of 95 % is below 89 % of 100 samples with probability 0.01."""
    truth = norm.cdf(SHIFT / np.sqrt(2))
    rng = np.random.default_rng(2)
    covered = {(way, by): 0 for way in ("delong", "bootstrap") for by in ("rows", "groups")}
    rejected = {"rows": 0, "groups": 0}
    for _ in range(100):
        y, first, second, groups = customers(rng, kind=kind)
        for by, given in (("rows", None), ("groups", groups)):
            ends = metrics.delong_interval(y, first, groups=given)
            covered["delong", by] += ends[0] <= truth <= ends[1]
            ends = metrics.bootstrap_interval("roc_auc", y, first, groups=given, n_resamples=100, random_state=rng)
            covered["bootstrap", by] += ends[0] <= truth <= ends[1]
            rejected[by] += metrics.delong_test(y, first, second, groups=given).pvalue < 0.05
    assert min(covered["delong", "groups"], covered["bootstrap", "groups"]) >= 89
    assert rejected["groups"] <= 11
    if kind == "pure":
        assert max(covered["delong", "rows"], covered["bootstrap", "rows"]) < 80
        assert rejected["rows"] > 20


def test_the_paired_bootstrap_resamples_groups():
    y, first, second, groups = customers(np.random.default_rng(3), kind="pure")
    options = {"n_resamples": 1000, "random_state": 0}
    by_rows = metrics.bootstrap_test("roc_auc", y, first, second, **options)
    by_groups = metrics.bootstrap_test("roc_auc", y, first, second, groups=groups, **options)
    exact = metrics.delong_test(y, first, second, groups=groups)
    assert by_groups.high - by_groups.low == pytest.approx(exact.high - exact.low, rel=0.15)
    assert by_groups.high - by_groups.low > 1.5 * (by_rows.high - by_rows.low)


def test_every_resample_has_both_classes():
    """Two of forty groups have positives: a plain draw of groups would miss both in 13 % of the resamples."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(40), 3)
    y = (groups < 2).astype(int)
    y[0] = 0
    with pytest.warns(UserWarning, match="a class has 2 independent groups; at least 10 are needed"):
        low, high = metrics.bootstrap_interval(
            "partial_auc", y, rng.normal(size=120), groups=groups, max_fpr=0.5, n_resamples=300, random_state=0
        )
    assert 0 <= low < high <= 1


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2, 3], r"groups must have one value for each of 6 rows; got shape \(3,\)"),
        ([1] * 6, "at least two groups, which are independent of each other; got one"),
        ([1, 1, 2, 2, None, 3], "groups must not have missing values; got NaN or None"),
        ([1, 1, 2, 2, np.nan, 3], "groups must not have missing values; got NaN or None"),
        ([1, 1, 2, 2, pd.NA, 3], "groups must not have missing values; got NaN or None"),
        (np.array([1, 1, 2, 2, "a", 3], dtype=object), "groups must be values of one type; got int and str"),
    ],
)
def test_groups_are_checked(groups, message):
    y, scores = [0, 0, 0, 1, 1, 1], [1, 2, 5, 3, 4, 6]
    for call in (metrics.delong_interval, lambda *a, **k: metrics.bootstrap_interval("roc_auc", *a, **k)):
        with pytest.raises(ValueError, match=message):
            call(y, scores, groups=groups)


def test_one_group_with_positives_is_not_enough_for_delong():
    with pytest.raises(ValueError, match="requires at least two groups with positives; got 1"):
        metrics.delong_interval([0, 0, 0, 1, 1], [1, 2, 5, 3, 4], groups=[1, 2, 3, 4, 4])


def test_rows_without_weight_have_no_group():
    y, first, _, groups = customers(np.random.default_rng(5), n_groups=20)
    weight = (groups < 10).astype(float)
    kept = groups < 10
    got = metrics.delong_interval(y, first, groups=groups, sample_weight=weight)
    assert got == pytest.approx(metrics.delong_interval(y[kept], first[kept], groups=groups[kept]))
