"""Sequential tests of limits: known truth, brute force, labels that come late, a state that goes on."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from rocmax.monitor import Monitor, bets, rate_interval, start_weights, starts_period


def evidence(monitor, name):
    """Return the largest evidence so far against a limit."""
    return next(verdict.evidence for verdict in monitor.verdicts() if verdict.limit == name)


def batch(false_alarms, negatives):
    """Return scores and labels of negatives, of which some are flagged."""
    return np.where(np.arange(negatives) < false_alarms, 1.0, -1.0), np.zeros(negatives)


def slow_evidence(hits, limit):
    """Return the evidence by the definition: the mean wealth over bets and first batches, each a product over rows."""
    excess = np.geomspace(0.2, 10.0, 16)
    rates = limit + np.minimum(excess * limit / (1 - limit), 0.99) * (1 - limit)
    total, left = 0.0, 1.0
    for start in range(len(hits)):
        weight = 0.9 if start == 0 else 0.1 / (start * (start + 1))
        left -= weight
        for rate in rates:
            ratios = [rate / limit if hit else (1 - rate) / (1 - limit) for hit in hits[start:]]
            total += weight / len(rates) * np.prod(ratios)
    return total + left


@pytest.mark.parametrize("hits", list(product([0, 1], repeat=5)))
def test_evidence_is_the_mean_likelihood_ratio_over_rates_and_starts(hits):
    monitor = Monitor(0.1)
    seen = [1.0]
    for i, hit in enumerate(hits):
        monitor.update(*batch(hit, 1))
        seen.append(slow_evidence(hits[: i + 1], 0.1))
    assert evidence(monitor, "max_fpr") == pytest.approx(max(seen), rel=1e-9)


@pytest.mark.parametrize("rate", [0.1, 0.05, 0.0])
def test_evidence_has_an_expectation_of_at_most_one_for_every_allowed_rate(rate):
    mean = sum(
        np.prod([rate if hit else 1 - rate for hit in hits]) * slow_evidence(hits, 0.1)
        for hits in product([0, 1], repeat=6)
    )
    assert mean <= 1 + 1e-12
    if rate == 0.1:
        assert mean == pytest.approx(1.0)


def test_a_limit_that_holds_is_seldom_called_broken():
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(200):
        monitor = Monitor(0.02)
        for _ in range(40):
            monitor.update(*batch(rng.binomial(50, 0.02), 50))
        broken += monitor.verdicts()[0].status == "broken"
    # Of 200 samples, at most 5 % in expectation.
    assert broken <= binom.isf(1e-4, 200, 0.05)


def test_a_rate_that_rises_late_is_noticed_and_dated():
    rng = np.random.default_rng(1)
    monitor = Monitor(0.01)
    for day in range(100):
        monitor.update(*batch(rng.binomial(400, 0.006 if day < 70 else 0.03), 400), label=f"day {day}")
    verdict = monitor.verdicts()[0]
    assert verdict.status == "broken"
    assert verdict.since in {f"day {day}" for day in range(66, 75)}


def test_a_limit_holds_once_enough_negatives_have_been_seen():
    monitor = Monitor(0.01)
    statuses = []
    for _ in range(30):
        monitor.update(*batch(0, 100))
        statuses.append(monitor.verdicts()[0].status)
    assert statuses[0] == "not enough labels"
    assert statuses[-1] == "holds"


def test_the_interval_is_that_of_all_rates_that_are_not_refuted():
    low, high = rate_interval(50, 3, 0.9)
    grid = np.linspace(1e-4, 1 - 1e-4, 20_001)
    prior = np.linspace(5e-6, 1 - 5e-6, 100_000)
    density = 1 / (np.pi * np.sqrt(prior * (1 - prior)))
    mixture = np.trapezoid(prior**3 * (1 - prior) ** 47 * density, prior)
    inside = grid[mixture / (grid**3 * (1 - grid) ** 47) < 10.0]
    assert (low, high) == pytest.approx((inside.min(), inside.max()), abs=2e-4)


@pytest.mark.parametrize(("n", "hits"), [(0, 0), (1, 0), (1, 1), (10_000_000, 0), (10_000_000, 10_000_000)])
def test_intervals_at_the_ends_contain_the_rate(n, hits):
    low, high = rate_interval(n, hits)
    assert 0.0 <= low <= (hits / n if n else 0.5) <= high <= 1.0


def test_intervals_cover_at_all_times_together():
    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(200):
        hits = np.cumsum(rng.random(1000) < 0.1)
        looks = [rate_interval(n, int(hits[n - 1])) for n in range(10, 1001, 10)]
        missed += not all(low <= 0.1 <= high for low, high in looks)
    assert missed <= binom.isf(1e-4, 200, 0.05)


def test_with_labels_of_alerts_only_false_alarms_are_counted_over_all_rows():
    reviewed, complete = Monitor(0.01, labeled="alerts"), Monitor(0.01)
    scores, y = batch(30, 1000)
    reviewed.update(scores, np.where(scores > 0, 0.0, np.nan))
    complete.update(scores, y)
    assert evidence(reviewed, "max_fpr") == pytest.approx(evidence(complete, "max_fpr"))
    assert reviewed.verdicts()[0].status == "broken"


def test_alerts_that_wait_for_a_label_count_as_right():
    monitor = Monitor(0.01, min_precision=0.5, labeled="alerts")
    monitor.update(np.ones(20), None)
    assert [verdict.evidence for verdict in monitor.verdicts()] == [1.0, 1.0]
    monitor.add_labels(0, np.ones(20), np.zeros(20))
    assert all(verdict.status == "broken" for verdict in monitor.verdicts())


def test_late_labels_count_as_if_they_had_been_known():
    rng = np.random.default_rng(3)
    early, late = Monitor(0.02), Monitor(0.02)
    batches = [batch(rng.binomial(100, 0.02), 100) for _ in range(80)]
    for scores, y in batches:
        early.update(scores, y)
        late.update(scores)
    for number in rng.permutation(80):
        late.add_labels(int(number), *batches[number])
    assert json.loads(late.to_json())["periods"] == json.loads(early.to_json())["periods"]


@pytest.mark.parametrize("true_rate", [0.9, 0.6])
def test_a_floor_on_the_true_positive_rate_is_watched_by_an_audit(true_rate):
    rng = np.random.default_rng(4)
    monitor = Monitor(min_tpr=0.9, labeled="alerts", audit=0.1)
    for _ in range(100):
        y = (rng.random(1000) < 0.05).astype(float)
        flagged = np.where(y == 1, rng.random(1000) < true_rate, rng.random(1000) < 0.01)
        known = flagged | (rng.random(1000) < 0.1)
        monitor.update(np.where(flagged, 1.0, -1.0), np.where(known, y, np.nan))
    verdict = monitor.verdicts()[0]
    assert (verdict.status == "broken") == (true_rate < 0.9)
    assert verdict.low <= true_rate <= verdict.high
    assert verdict.rate == pytest.approx(true_rate, abs=0.05)


def test_audited_floors_are_seldom_called_broken():
    rng = np.random.default_rng(5)
    broken = 0
    for _ in range(200):
        monitor = Monitor(min_tpr=0.8, labeled="alerts", audit=0.2)
        for _ in range(20):
            caught = rng.binomial(20, 0.8)
            seen = rng.binomial(20 - caught, 0.2)
            scores = np.concatenate([np.ones(caught), -np.ones(20 - caught)])
            y = np.concatenate([np.ones(caught + seen), np.full(20 - caught - seen, np.nan)])
            monitor.update(scores, y)
        broken += monitor.verdicts()[0].status == "broken"
    assert broken <= binom.isf(1e-4, 200, 0.05)


def test_the_state_goes_on_exactly():
    rng = np.random.default_rng(6)
    monitor = Monitor(0.01, min_precision=0.2, max_alerts=0.1)
    for day in range(150):
        y = (rng.random(200) < 0.1).astype(float)
        monitor.update(rng.normal(size=200) + 3 * y - 2, y, label=f"day {day}")
        again = Monitor.from_json(monitor.to_json())
        assert again.verdicts() == monitor.verdicts()
        monitor = again
    assert monitor.n_batches == 150


def test_the_state_stays_small():
    monitor = Monitor(0.01, min_precision=0.5, max_alerts=0.05)
    scores, y = batch(10, 1000)
    state = json.loads(monitor.to_json())
    for number in range(3000):
        monitor.update(scores, y, label=f"2026-01-01 {number}")
    state = json.loads(monitor.to_json())
    assert sum(period["counts"][0] for period in state["periods"]) == 3_000_000
    assert len(monitor.to_json()) < 100_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "must have version 1; got 2"),
        ({"periods": [{"number": 0, "first": "a", "last": "a", "counts": [1, 2]}]}, "damaged.*6 counts; got 2"),
        ({"batches": -1}, "damaged.*at least 0; got -1"),
        ({"parameters": {"max_fpr": 3}}, "damaged.*max_fpr must be above 0 and below 1; got 3"),
    ],
)
def test_another_state_is_refused(change, message):
    monitor = Monitor(0.01)
    monitor.update(*batch(1, 10))
    state = {**json.loads(monitor.to_json()), **change}
    with pytest.raises(ValueError, match=message):
        Monitor.from_json(json.dumps(state))


def test_a_text_that_is_no_state_is_refused():
    with pytest.raises(ValueError, match="not the state of a monitor"):
        Monitor.from_json("[]")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "a limit is required"),
        ({"max_fpr": 0.0}, "max_fpr must be above 0 and below 1; got 0.0"),
        ({"max_fpr": 0.1, "confidence": 1.0}, "confidence must be above 0 and below 1; got 1.0"),
        ({"max_fpr": 0.1, "labeled": "some"}, "labeled must be 'all' or 'alerts'; got 'some'"),
        ({"min_tpr": 0.9, "labeled": "alerts"}, "min_tpr requires labels of rows that were not flagged"),
        ({"min_tpr": 0.9, "audit": 0.1}, "audit requires labeled='alerts'"),
        ({"min_tpr": 0.9, "labeled": "alerts", "audit": 2.0}, "audit must be above 0 and below 1; got 2.0"),
    ],
)
def test_wrong_parameters_are_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        Monitor(**parameters)


@pytest.mark.parametrize(
    ("scores", "y", "message"),
    [
        ([[1.0]], None, r"one dimension; got shape \(1, 1\)"),
        ([np.nan, 1.0], None, "scores must not be NaN; got 1 of 2"),
        ([1.0, 2.0], [1.0], r"one value for each score; got shape \(1,\) for 2 scores"),
        ([1.0], [2.0], "y must be 1, 0 or NaN; got 2"),
    ],
)
def test_wrong_batches_leave_the_state_as_it_was(scores, y, message):
    monitor = Monitor(0.01)
    monitor.update(*batch(1, 10))
    before = monitor.to_json()
    with pytest.raises(ValueError, match=message):
        monitor.update(scores, y)
    assert monitor.to_json() == before


def test_labels_of_rows_that_were_not_in_the_batch_are_refused():
    monitor = Monitor(0.01)
    monitor.update(np.array([1.0, -1.0]))
    before = monitor.to_json()
    with pytest.raises(ValueError, match="fewer rows than labels"):
        monitor.add_labels(0, [1.0, 1.0], [0, 0])
    with pytest.raises(ValueError, match="from 0 to 0; got 1"):
        monitor.add_labels(1, [1.0], [0])
    with pytest.raises(ValueError, match="got 1 rows without a label"):
        monitor.add_labels(0, [1.0], [np.nan])
    assert monitor.to_json() == before


def test_batches_that_share_a_period_keep_the_weight_of_the_starts():
    numbers = np.array([number for number in range(2000) if starts_period(number)], dtype=float)
    weights = start_weights(numbers)
    assert numbers[:65].tolist() == list(range(65))
    assert np.diff(numbers).max() == 32
    assert weights.sum() == pytest.approx(1.0 - 0.1 / (numbers[-1] + 1.0))


def test_the_evidence_of_many_batches_is_that_of_a_recursion():
    rng = np.random.default_rng(7)
    hits = rng.random(300) < 0.03
    won, lost = (np.exp(log) for log in bets(0.98, 0.02))
    numbers = np.array([number for number in range(300) if starts_period(number)])
    weights = dict(zip(numbers.tolist(), start_weights(numbers.astype(float)), strict=True))
    waiting, wealth, largest = 1.0, np.zeros(won.size), 1.0
    monitor = Monitor(0.02)
    for row, hit in enumerate(hits):
        waiting -= weights.get(row, 0.0)
        wealth = (wealth + weights.get(row, 0.0) / won.size) * (won if hit else lost)
        largest = max(largest, wealth.sum() + waiting)
        monitor.update(*batch(int(hit), 1))
    assert evidence(monitor, "max_fpr") == pytest.approx(largest, rel=1e-9)
