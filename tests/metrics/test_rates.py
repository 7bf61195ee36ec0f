"""Rates by period, and the test whether later rows resemble earlier ones, next to direct computations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest, fisher_exact

from rocmax.metrics import exchangeability_test
from rocmax.metrics.rates import periods_of, rates_by_period, wilson


def by_enumeration(earlier, later, n_high):
    """Return the p-value of all ways to choose the later rows; the highest scores are known."""
    scores = np.concatenate([earlier, later])
    high = scores >= np.sort(scores)[-n_high]
    counts = np.array([high[list(rows)].sum() for rows in combinations(range(scores.size), later.size)])
    found = high[earlier.size :].sum()
    return min(1.0, 2 * min(np.mean(counts >= found), np.mean(counts <= found)))


@pytest.mark.parametrize("seed", range(5))
def test_the_p_value_counts_all_ways_to_choose_the_later_rows(seed):
    rng = np.random.default_rng(seed)
    earlier, later = rng.normal(size=7), rng.normal(size=5) + seed / 2
    assert_allclose(exchangeability_test(earlier, later, 0.25), by_enumeration(earlier, later, 3), rtol=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (3, 10), (199, 200)])
def test_the_interval_of_wilson_is_that_of_scipy(hits, n):
    expected = binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert_allclose(wilson(hits, n), (expected.low, expected.high), rtol=1e-12, atol=1e-15)


def test_it_is_the_exact_test_of_the_fourfold_table():
    rng = np.random.default_rng(0)
    earlier, later = rng.normal(size=400), rng.normal(size=300) + 0.4
    scores = np.concatenate([earlier, later])
    cut = np.sort(scores)[-70]
    table = [[np.sum(s >= cut), np.sum(s < cut)] for s in (later, earlier)]
    one_sided = fisher_exact(table, alternative="greater").pvalue
    assert_allclose(exchangeability_test(earlier, later, 0.1), 2 * one_sided, rtol=1e-9)


@pytest.mark.parametrize("draw", [lambda rng, n: rng.normal(size=n), lambda rng, n: rng.integers(4, size=n)])
def test_it_rejects_exchangeable_rows_rarely_even_with_ties(draw):
    rng = np.random.default_rng(1)
    rejected = [exchangeability_test(draw(rng, 300), draw(rng, 200), 0.05) <= 0.05 for _ in range(600)]
    assert binomtest(int(np.sum(rejected)), 600, 0.05, alternative="greater").pvalue > 1e-3


def test_with_groups_the_groups_are_exchanged():
    rng = np.random.default_rng(2)
    rejected = {"rows": 0, "groups": 0}
    for seed in range(100):
        # The rows of a group have nearly the same score, so that ten rows say as much as one.
        number = np.repeat(np.arange(100), 10)
        scores = np.repeat(rng.normal(size=100), 10) + 0.01 * rng.normal(size=1000)
        early = number < 60
        given = scores[early], scores[~early], 0.1
        rejected["rows"] += exchangeability_test(*given) <= 0.05
        rejected["groups"] += (
            exchangeability_test(*given, groups=(number[early], number[~early]), random_state=seed) <= 0.05
        )
    assert rejected["rows"] > 30  # what the groups are for
    assert binomtest(rejected["groups"], 100, 0.05, alternative="greater").pvalue > 1e-3


def test_with_groups_a_shift_is_seen():
    rng = np.random.default_rng(3)
    number = np.repeat(np.arange(200), 5)
    scores = np.repeat(rng.normal(size=200), 5) + np.where(number < 100, 0.0, 1.0)
    early = number < 100
    p = exchangeability_test(scores[early], scores[~early], 0.1, groups=(number[early], number[~early]))
    assert p <= 0.01


def test_bad_samples_are_refused():
    with pytest.raises(ValueError, match="earlier and later must have scores"):
        exchangeability_test([], [1.0], 0.1)
    with pytest.raises(ValueError, match="rate must be between 0 and 1; got 2"):
        exchangeability_test([0.0], [1.0], 2)


def test_dates_are_divided_into_the_shortest_calendar_unit_with_few_periods():
    days = np.arange("2024-01-29", "2024-02-08", dtype="datetime64[D]").astype("datetime64[ns]")
    names, code = periods_of(days)
    assert names == [str(day)[:10] for day in days]
    assert code.tolist() == list(range(10))
    names, code = periods_of(np.arange("2024-01-29", "2024-03-11", dtype="datetime64[D]").astype("datetime64[ns]"))
    assert names == [f"2024-{day}" for day in ("01-29", "02-05", "02-12", "02-19", "02-26", "03-04")]  # Mondays
    assert np.bincount(code).tolist() == [7] * 6
    assert periods_of(np.array(["2023-12-31", "2024-06-01"], dtype="datetime64[ns]"))[0] == ["2023-12-31", "2024-06-01"]
    months = np.arange("2020-02", "2022-01", dtype="datetime64[M]").astype("datetime64[ns]")
    assert periods_of(months)[0] == [f"{year} Q{quarter}" for year in (2020, 2021) for quarter in (1, 2, 3, 4)]
    assert np.bincount(periods_of(months)[1]).tolist() == [2] + [3] * 7
    assert periods_of(np.arange("2019-06", "2024-01", dtype="datetime64[M]"))[0] == [str(y) for y in range(2019, 2024)]


def test_numbers_are_divided_into_parts_of_equal_size_and_equal_times_stay_together():
    rng = np.random.default_rng(0)
    times = rng.permutation(np.repeat(np.arange(480.0), 5))
    names, code = periods_of(times)
    assert len(names) == 12
    assert np.bincount(code).tolist() == [200] * 12
    assert all(np.unique(code[times == value]).size == 1 for value in range(0, 480, 37))
    assert names[1] == "from 40"
    assert periods_of(np.array([3.0, 3.0, 3.0]))[0] == ["from 3"]


def test_the_rates_are_those_of_the_rows_of_each_period():
    rng = np.random.default_rng(0)
    times = (np.datetime64("2024-01-01", "ns") + rng.integers(0, 90, 3000) * np.timedelta64(1, "D")).astype(
        "datetime64[ns]"
    )
    positive, flagged = rng.random(3000) < 0.1, rng.random(3000) < 0.2
    months = times.astype("datetime64[M]")
    found = rates_by_period(times, flagged, positive)
    assert [period.name for period in found] == ["2024-01", "2024-02", "2024-03"]
    for period in found:
        rows = months == np.datetime64(period.name)
        assert (period.rows, period.flagged) == (rows.sum(), flagged[rows].sum())
        for rate, side in ((period.fpr, ~positive), (period.tpr, positive)):
            hits = flagged[rows & side]
            exact = binomtest(int(hits.sum()), hits.size).proportion_ci(method="exact")
            assert_allclose([rate["rate"], rate["low"], rate["high"], rate["n"]], [hits.mean(), *exact, hits.size])


def test_a_period_without_rows_of_a_class_has_no_rate():
    times = np.array([1.0, 2.0])
    first, second = rates_by_period(times, np.array([True, False]), np.array([True, False]))
    assert first.fpr is None
    assert first.tpr["rate"] == 1.0
    assert second.tpr is None
    assert second.to_dict()["fpr"]["rate"] == 0.0
