"""Sequential tests of limits: known truth, brute force, labels that come late, a state that goes on."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm

from rocmax.monitor import Monitor, audit_size, bets, rate_interval, start_weights, starts_period


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
    monitor = Monitor(0.01, min_precision=0.2, capacity=0.1)
    for day in range(150):
        y = (rng.random(200) < 0.1).astype(float)
        monitor.update(rng.normal(size=200) + 3 * y - 2, y, label=f"day {day}")
        again = Monitor.from_json(monitor.to_json())
        assert again.verdicts() == monitor.verdicts()
        monitor = again
    assert monitor.n_batches == 150


def test_the_state_stays_small():
    monitor = Monitor(0.01, min_precision=0.5, capacity=0.05)
    scores, y = batch(10, 1000)
    state = json.loads(monitor.to_json())
    for number in range(3000):
        monitor.update(scores, y, label=f"2026-01-01 {number}")
    state = json.loads(monitor.to_json())
    assert sum(period[2] for period in state["periods"]) == 3_000_000
    assert len(monitor.to_json()) < 100_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, "must have version 2; got 1"),
        ({"periods": [[0, "a", 1, 2]]}, "damaged.*8 counts; got 2"),
        ({"stretches": [[0, [], [], [-800, 1]]]}, "damaged.*770 counts; got more"),
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
        ({"max_fpr": 0.0}, "max_fpr must be above 0 and below 1; got 0"),
        ({"max_fpr": 0.1, "confidence": 1.0}, "confidence must be above 0 and below 1; got 1"),
        ({"max_fpr": 0.1, "labeled": "some"}, "labeled must be 'all' or 'alerts'; got 'some'"),
        ({"min_tpr": 0.9, "labeled": "alerts"}, "min_tpr requires labels of rows that were not flagged"),
        ({"min_tpr": 0.9, "audit": 0.1}, "audit requires labeled='alerts'"),
        ({"min_tpr": 0.9, "labeled": "alerts", "audit": 2.0}, "audit must be above 0 and below 1; got 2"),
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


# Capacity


def days(*alerts, per="day"):
    """Return the verdict and the evidence for a number of alerts on each day, and one row on the day after."""
    monitor = Monitor(capacity=5, per=per)
    start = np.datetime64("2026-01-05T12:00", "ns")
    for day, count in enumerate([*alerts, 0]):
        times = np.full(20, start + np.timedelta64(day, "D"))
        monitor.update(np.where(np.arange(20) < count, 1.0, -1.0), times=times)
    return monitor.verdicts()[0]


def test_the_evidence_against_alerts_per_day_is_that_of_poisson_counts():
    excess = np.geomspace(0.2, 10.0, 16)
    verdict = days(9, 8)
    ratios = [np.exp(-5 * excess) * (1 + excess) ** count for count in (9, 8)]
    # A day is over with the batch that begins the next one.
    since = [ratios[0] * ratios[1], ratios[0] * ratios[1], ratios[1]]
    weights = [0.9, 0.1 / 2, 0.1 / 6]
    expected = sum(weight * each.mean() for weight, each in zip(weights, since, strict=True)) + 1 - sum(weights)
    assert verdict.evidence == pytest.approx(max(expected, 1.0), rel=1e-6)
    assert (verdict.n, verdict.rate) == (2, pytest.approx(8.5))


def test_a_capacity_per_day_that_is_exceeded_is_noticed():
    rng = np.random.default_rng(8)
    assert days(*rng.poisson(5, 100).clip(0, 20)).status == "holds"
    assert days(*rng.poisson(8, 100).clip(0, 20)).status == "broken"


@pytest.mark.parametrize(
    ("per", "ended"), [("hour", 24 * 14), ("day", 14), ("week", 2), ("month", 0)]
)  # from Monday, January 5, to Monday, January 19
def test_hours_days_weeks_and_months_that_are_over_count(per, ended):
    assert days(*[1] * 14, per=per).n == ended


def test_rows_that_come_late_count_in_the_day_that_has_begun():
    monitor = Monitor(capacity=5, per="day")
    for day in ("2026-01-02", "2026-01-01", "2026-01-03"):
        monitor.update(np.ones(3), times=np.full(3, np.datetime64(day, "ns")))
    assert (monitor.verdicts()[0].n, monitor.verdicts()[0].rate) == (1, pytest.approx(6.0))


def test_a_capacity_per_day_needs_the_times_of_the_rows():
    monitor = Monitor(capacity=5, per="day")
    with pytest.raises(ValueError, match="a capacity per day requires the time of each row"):
        monitor.update(np.ones(3))
    with pytest.raises(ValueError, match="per must be one of hour, day, week, month, with a capacity"):
        Monitor(0.1, per="day")
    with pytest.raises(ValueError, match="capacity must be above 0 and below 1; got 200"):
        Monitor(capacity=200)


# Rates while labels are missing


def test_alerts_without_labels_do_not_make_a_limit_hold():
    monitor = Monitor(0.1, min_precision=0.5, labeled="alerts")
    scores = np.where(np.arange(10_000) < 300, 1.0, -1.0)
    monitor.update(scores)
    assert [verdict.status for verdict in monitor.verdicts()] == ["not enough labels"] * 2
    monitor.add_labels(0, np.ones(300), np.arange(300) % 10 > 0)
    assert [(verdict.status, round(verdict.rate, 3)) for verdict in monitor.verdicts()] == [
        ("holds", 0.003),
        ("holds", 0.9),
    ]


def test_the_history_ends_with_the_verdict():
    rng = np.random.default_rng(9)
    monitor = Monitor(0.02, min_precision=0.2)
    for day in range(200):
        y = (rng.random(100) < 0.1).astype(float)
        monitor.update(rng.normal(size=100) - 2 + 2 * y, y, label=f"day {day}")
    for verdict in monitor.verdicts():
        last = monitor.history(verdict.limit)[-1]
        assert (last["label"], last["mean"], last["low"]) == ("day 199", verdict.rate, verdict.low)
        # Batches share a period from the 65th on, so the evidence in between is not in the history.
        assert max(entry["evidence"] for entry in monitor.history(verdict.limit)) <= verdict.evidence * (1 + 1e-12)


# Proposed thresholds

POSITIVES = 0.3
# Parameters, the places of negatives and positives before and after the change, and which share the promise is about.
BROKEN = {
    "fpr": ({"max_fpr": 0.05}, (-2.05, 1.2), (-1.25, 1.2)),
    "fpr of reviewed alerts": ({"max_fpr": 0.05, "labeled": "alerts"}, (-2.05, 1.2), (-1.25, 1.2)),
    "tpr": ({"min_tpr": 0.8}, (-2.05, 1.2), (-2.05, 0.3)),
    "tpr with an audit": ({"min_tpr": 0.8, "labeled": "alerts", "audit": 0.3}, (-2.05, 1.2), (-2.05, 0.3)),
    "precision": ({"min_precision": 0.8}, (-2.05, 1.2), (-1.25, 0.3)),
    "capacity": ({"capacity": 0.1}, (-2.3, -0.8), (-1.0, -0.8)),
    "capacity per day": ({"capacity": 20, "per": "day"}, (-2.3, -0.8), (-1.0, -0.8)),
}


def first_proposal(rng, parameters, before, after):
    """Return the first threshold that is proposed; the places change with the eleventh of fifty batches."""
    monitor = Monitor(**parameters)
    for day in range(50):
        y = (rng.random(200) < POSITIVES).astype(float)
        places = before if day < 10 else after
        scores = rng.normal(size=200) + np.where(y == 1, places[1], places[0])
        known = (scores > 0) | (rng.random(200) < parameters.get("audit", 0.0)) | (monitor.labeled == "all")
        times = np.full(200, np.datetime64("2026-01-01", "ns") + np.timedelta64(day, "D"))
        monitor.update(scores, np.where(known, y, np.nan), times=times)
        for proposal in monitor.proposals():
            if proposal.threshold is not None:
                return proposal.threshold
    raise AssertionError("the change was not noticed")


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_proposed_threshold_keeps_its_promise_with_the_confidence(name):
    parameters, before, after = BROKEN[name]
    rng, wrong = np.random.default_rng(10), 0
    for _ in range(1000):
        threshold = first_proposal(rng, parameters, before, after)
        fpr, tpr = norm.sf(threshold - np.array(after))
        flagged = POSITIVES * tpr + (1 - POSITIVES) * fpr
        wrong += {
            "fpr": fpr > 0.05,
            "fpr of reviewed alerts": (1 - POSITIVES) * fpr > 0.05,
            "tpr": tpr < 0.8,
            "tpr with an audit": tpr < 0.8,
            "precision": POSITIVES * tpr < 0.8 * flagged,
            "capacity": flagged > 0.1,
            "capacity per day": 200 * flagged > 20,
        }[name]
    assert wrong <= 50


def test_a_proposed_threshold_is_the_end_of_the_bin_of_the_order_statistic():
    rng = np.random.default_rng(11)
    monitor, scores = Monitor(0.05), rng.normal(size=2000)
    monitor.update(scores, np.zeros(2000))
    (proposal,) = monitor.proposals()
    k = next(k for k in range(1, 2001) if binom.sf(k - 1, 2000, 0.95) <= 0.05)
    exact = np.sort(scores)[k - 1]
    assert exact <= proposal.threshold <= exact * 1.125
    assert (proposal.n, proposal.needed) == (2000, 59)
    # The same for the lowest positives, whose threshold is below the present one.
    monitor = Monitor(min_tpr=0.95)
    monitor.update(-scores, np.ones(2000))
    assert -exact * 1.125 <= monitor.proposals()[0].threshold < -exact


def test_a_precision_is_promised_by_tests_that_start_where_the_number_of_labels_says():
    monitor = Monitor(min_precision=0.5)
    # From the highest score down: 60 right, then as many wrong as right.
    scores = np.linspace(8.0, 0.5, 400)
    y = np.where(np.arange(400) < 60, 1.0, np.arange(400) % 4 == 0)
    monitor.update(scores, y)
    (proposal,) = monitor.proposals()
    above = scores > proposal.threshold
    assert binom.sf(y[above].sum() - 1, above.sum(), 0.5) <= 0.05
    assert above.sum() >= 60
    # The least number at which 70 % of right alerts are enough evidence with 0.7 of the level.
    numbers = range(1, 100)
    assert proposal.needed == next(n for n in numbers if binom.sf(np.ceil(0.7 * n) - 1, n, 0.5) <= 0.7 * 0.05)


def test_too_few_labels_for_a_threshold_are_said():
    monitor = Monitor(0.01)
    monitor.update(*batch(20, 40))
    (proposal,) = monitor.proposals()
    assert (proposal.threshold, proposal.n, proposal.needed) == (None, 40, 299)


def test_late_labels_reach_the_histograms_of_their_batches():
    rng = np.random.default_rng(12)
    early, late = Monitor(0.02), Monitor(0.02)
    batches = [(rng.normal(size=50) - 1, (rng.random(50) < 0.2).astype(float)) for _ in range(60)]
    for scores, y in batches:
        early.update(scores, y)
        late.update(scores)
    for number in rng.permutation(60):
        late.add_labels(int(number), *batches[number])
    assert json.loads(late.to_json())["stretches"] == json.loads(early.to_json())["stretches"]
    assert late.proposals() == early.proposals()


# Audits


@pytest.mark.parametrize("after", [0, 5])
def test_an_audit_of_the_proposed_size_has_the_power(after):
    share = audit_size(0.8, 0.6, 200, power=0.8, after=after)
    assert 0.0 < share < 1.0
    rng, noticed = np.random.default_rng(13), 0
    for _ in range(400):
        monitor = Monitor(min_tpr=0.8, labeled="alerts", audit=share)
        for _ in range(after):
            monitor.update(np.zeros(0))
        caught = rng.binomial(200, 0.6)
        seen = rng.binomial(200 - caught, share)
        scores = np.concatenate([np.ones(caught), -np.ones(200 - caught)])
        y = np.concatenate([np.ones(caught + seen), np.full(200 - caught - seen, np.nan)])
        monitor.update(scores, y)
        noticed += monitor.verdicts()[0].status == "broken"
    assert noticed >= binom.ppf(1e-4, 400, 0.8)
    # Batches without rows do not tell an early change from a late one, which makes it easier to notice.
    assert after or noticed <= binom.isf(1e-4, 400, 0.86)


def test_an_audit_that_cannot_have_the_power_is_refused():
    with pytest.raises(
        ValueError, match=r"cannot be noticed with probability 0.8 within 20 positives, even if all rows"
    ):
        audit_size(0.9, 0.85, 20)
    with pytest.raises(ValueError, match=r"tpr must be below the floor of 0.8; got 0.9"):
        audit_size(0.8, 0.9, 1000)
