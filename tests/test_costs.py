"""Costs of single cases: thresholds against an enumeration of all, savings against a loop, the rule for each row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from helpers.given_scores import Given
from rocmax import FPRThresholdClassifier, Limits, LimitThresholdClassifier, load, save
from rocmax.costs import CaseCosts, Costs, cheapest_threshold, expected_cost
from rocmax.tables import ParameterError

cost = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 10.0])


@st.composite
def cases(draw, low=2):
    """Scores with ties, labels of both classes, and costs of each row."""
    n = draw(st.integers(2 * low, 12))
    positive = np.arange(n) < draw(st.integers(low, n - low))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = [np.array(draw(st.lists(cost, min_size=n, max_size=n))) for _ in range(3)]
    return rng.integers(0, 5, n).astype(float), rng.permutation(positive), CaseCosts(*values)


def by_hand(case, positive, flagged):
    """The cost of the decisions, row by row."""
    total = 0.0
    for i in range(positive.size):
        if flagged[i]:
            total += case.review[i]
            if not positive[i]:
                total += case.false_alarm[i]
        elif positive[i]:
            total += case.miss[i]
    return total


@given(cases(), st.integers(0, 2**12 - 1))
def test_cost_and_savings_are_those_of_a_loop(sample, bits):
    _, positive, case = sample
    flagged = np.array([bool(bits >> i & 1) for i in range(positive.size)])
    assert case.spent(positive, flagged).sum() == pytest.approx(by_hand(case, positive, flagged))
    found = expected_cost(case, positive, flagged, n_resamples=5, random_state=0)
    none, every = (by_hand(case, positive, np.full(positive.size, each)) for each in (False, True))
    assert found.cost * positive.size == pytest.approx(by_hand(case, positive, flagged))
    assert (found.none * positive.size, found.all * positive.size) == pytest.approx((none, every))
    if min(none, every) > 0:
        assert found.savings == pytest.approx(1 - by_hand(case, positive, flagged) / min(none, every), abs=1e-12)


@settings(max_examples=300)
@given(cases(), st.none() | st.sampled_from([0.5, 1.0, 2.5, 6.0]))
def test_no_threshold_is_cheaper(sample, lowest):
    scores, positive, case = sample
    tried = [np.inf, *(np.unique(scores) - 0.25)]
    allowed = [t for t in tried if lowest is None or t >= lowest]
    found = cheapest_threshold(scores, case.gain(positive), -np.inf if lowest is None else lowest)
    assert lowest is None or found >= lowest
    best = min(by_hand(case, positive, scores > t) for t in allowed)
    spent = by_hand(case, positive, scores > found)
    # A bound between two scores allows what a threshold just above it does.
    same = [t for t in tried if np.array_equal(scores > t, scores > (lowest if lowest is not None else -np.inf))]
    best = min([best, *(by_hand(case, positive, scores > t) for t in same)])
    assert spent == pytest.approx(best, abs=1e-9)
    fewer = [t for t in tried if (scores > t).sum() < (scores > found).sum()]
    assert all(by_hand(case, positive, scores > t) > spent + 1e-12 for t in fewer)


@given(cost, cost, cost, st.floats(0.001, 0.999))
def test_an_alert_pays_above_the_log_odds_of_a_row(false_alarm, miss, review, probability):
    case = CaseCosts(*(np.array([value]) for value in (false_alarm, miss, review)))
    alert = probability * review + (1 - probability) * (review + false_alarm)
    none = probability * miss
    pays = bool(np.log(probability / (1 - probability)) > case.log_odds()[0])
    if abs(alert - none) > 1e-9:
        assert pays == (alert < none)


@given(cases(), st.integers(0, 2**12 - 1))
def test_weights_are_what_a_wrong_decision_costs_more(sample, bits):
    _, positive, case = sample
    flagged = np.array([bool(bits >> i & 1) for i in range(positive.size)])
    weight, right = case.weight(positive), case.spent(positive, positive)
    assert (weight >= 0).all()
    same = case.miss >= case.review  # a positive that is not worth its review is better not flagged
    lost = case.spent(positive, flagged) - right
    np.testing.assert_allclose((weight * (flagged != positive))[same | ~positive], lost[same | ~positive])
    assert (weight[positive & ~same] == 0).all()


def test_costs_name_the_column_and_the_row():
    X = pd.DataFrame({"amount": [5.0, 2.0, -1.0, np.nan], "text": ["1", "2", "x", "4"], "fine": [0, 1, 2, 3]})
    case = Costs(false_alarm=2, miss="fine", review=0.5).of(X)
    assert [values.tolist() for values in case] == [[2.0] * 4, [0.0, 1.0, 2.0, 3.0], [0.5] * 4]
    assert Costs(miss="text").of(X.iloc[:2]).miss.tolist() == [1.0, 2.0]
    for column, message in (
        (
            "amount",
            r"'amount', which is cost_miss, must .* at least 0 in each row; got -1.0 in row 3 .*, and 1 more rows",
        ),
        ("text", "column 'text', .* got x in row 3 after the header$"),
        ("land", "cost_miss must be a number or a column of the rows; got 'land', known: 'amount', 'text', 'fine'"),
    ):
        with pytest.raises(ValueError, match=message):
            Costs(miss=column).of(X)
    with pytest.raises(ValueError, match="got 'amount', known: no columns"):
        Costs(miss="amount").of(np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(costs=Costs(2.0)), r"what a miss costs: cost_miss=\.\.\."),
        (
            Limits(costs=Costs(-2.0, 5)),
            "cost_false_alarm must be a number of at least 0, or the name of a column; got -2",
        ),
        (Limits(costs=Costs(1, np.nan)), "cost_miss must be a number of at least 0.*; got nan"),
        (Limits(costs=Costs(1, np.inf)), "cost_miss must be a number of at least 0.*; got inf"),
        (Limits(costs=(1, 2)), r"costs must be Costs; got \(1, 2\)"),
        (Limits(costs=Costs(1, 2), min_tpr=0.5), "min_tpr must not be given with costs.* max_fpr and capacity"),
        (Limits(costs=Costs(1, 2), min_precision=0.5), "min_precision must not be given with costs"),
        (Limits(costs=Costs(1, 2), max_fpr=0.1, block=Limits(max_fpr=0.01)), "block must not be given with costs"),
        (Limits(costs=Costs(1, 2), max_fpr=0.1, per="land"), "per='land' must not be given with costs"),
    ],
)
def test_costs_that_cannot_be_used(limits, message):
    with pytest.raises(ParameterError, match=message):
        LimitThresholdClassifier(LogisticRegression(), limits).fit([[0.0], [1.0]] * 10, [0, 1] * 10)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (Costs(1, 2, 2), "a miss must cost more than a review in some positive rows"),
        (Costs(0, 2, 0), "false alarms and reviews must be above 0 in some negative rows"),
    ],
)
def test_costs_with_one_sensible_decision(costs, message):
    with pytest.raises(ValueError, match=message):
        LimitThresholdClassifier(LogisticRegression(), Limits(costs=costs)).fit([[0.0], [1.0]] * 10, [0, 1] * 10)


# Intervals


def resampled(case, positive, flagged, groups, count, rng):
    """Quantiles of cost and savings over resamples, drawn by hand."""
    found = []
    units = np.arange(positive.size) if groups is None else groups
    members = [np.flatnonzero(units == unit) for unit in np.unique(units)]
    kinds = [(bool(positive[rows].any()), bool((~positive[rows]).any())) for rows in members]
    for _ in range(count):
        rows = []
        for kind in sorted(set(kinds)):
            own = [each for each, of in zip(members, kinds, strict=True) if of == kind]
            rows += [own[i] for i in rng.integers(len(own), size=len(own))]
        rows = np.concatenate(rows)
        part = case.some(rows)
        spent = [
            part.spent(positive[rows], flags).sum() for flags in (flagged[rows], np.zeros(rows.size) > 0, rows >= 0)
        ]
        found.append([spent[0] / positive.size, 1 - spent[0] / min(spent[1:])])
    return np.quantile(found, [0.025, 0.975], axis=0).T


def drawn(rng, n=600, constant=False):
    positive = rng.random(n) < 0.2
    amount = np.full(n, 20.0) if constant else rng.lognormal(3.0, 1.0, n)
    flagged = rng.normal(size=n) + 1.5 * positive > 1.0
    return CaseCosts(np.full(n, 4.0), amount, np.ones(n)), positive, flagged


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_intervals_are_those_of_resampled_rows(grouped, constant):
    rng = np.random.default_rng(0)
    case, positive, flagged = drawn(rng, constant=constant)
    groups = rng.integers(0, 150, positive.size) if grouped else None
    found = expected_cost(case, positive, flagged, groups=groups, n_resamples=3000, random_state=1)
    ends = resampled(case, positive, flagged, groups, 1500, rng)
    for (low, high), expected in zip([found[1:3], found[4:6]], ends, strict=True):
        assert (low, high) == pytest.approx(expected, abs=0.12 * (expected[1] - expected[0]))
    again = expected_cost(case, positive, flagged, groups=groups, n_resamples=3000, random_state=1)
    assert again == found


@pytest.mark.slow
def test_coverage_of_the_intervals():
    rng = np.random.default_rng(2)
    case, positive, flagged = drawn(rng, 400_000)
    truth = expected_cost(case, positive, flagged, n_resamples=2, random_state=0)
    covered = []
    for _ in range(400):
        found = expected_cost(*drawn(rng, 800), n_resamples=200, random_state=rng)
        covered.append([found.cost_low <= truth.cost <= found.cost_high])
        covered[-1].append(found.savings_low <= truth.savings <= found.savings_high)
    assert (np.abs(np.mean(covered, axis=0) - 0.95) <= 0.035).all()


# The classifier


def payments(n=4000, seed=0):
    """Scores that are the log-odds of fraud, amounts that do not depend on them, and labels."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-2.0, 1.5, n)
    X = pd.DataFrame({"score": scores, "amount": rng.lognormal(2.0, 1.5, n)})
    return X, (rng.random(n) < expit(scores)).astype(int)


def fitted(X, y, limits, **options):
    return LimitThresholdClassifier(Given().fit(X, y), limits, cv="prefit", random_state=0, **options).fit(X, y)


def test_one_threshold_for_equal_costs_is_the_cheapest_of_all():
    X, y = payments(500)
    model = fitted(X, y, Limits(costs=Costs(false_alarm=2, miss=10, review=1)))
    assert model.case_calibration_ is None
    case = Costs(2, 10, 1).of(X)
    tried = [np.inf, *(np.unique(X.score) - 1e-9)]
    best = min(by_hand(case, y == 1, X.score.to_numpy() > t) for t in tried)
    assert by_hand(case, y == 1, model.predict(X) == 1) == pytest.approx(best)
    assert model.binding_ == "costs"
    assert model.held_out_cost_ >= best / y.size - 1e-12


def test_each_row_has_a_threshold_if_that_is_cheaper(tmp_path):
    X, y = payments()
    costs = Costs(false_alarm=1, miss="amount", review=1)
    model = fitted(X, y, Limits(costs=costs))
    assert model.case_calibration_ is not None
    new, labels = payments(seed=1)
    case = costs.of(new)
    flagged = model.predict(new) == 1
    probability = expit(new.score)
    np.testing.assert_allclose(
        np.mean(flagged == (probability * (new.amount - 1) > (1 - probability) * 2)), 1, atol=0.03
    )
    alone = cheapest_threshold(X.score.to_numpy(), costs.of(X).gain(y == 1))
    ours, one = (case.spent(labels == 1, flags).mean() for flags in (flagged, new.score.to_numpy() > alone))
    assert ours < 0.95 * one
    # The held-out cost, of rows that did not choose their rule, is that of new rows.
    spread = case.spent(labels == 1, flagged).std() / np.sqrt(labels.size)
    assert model.held_out_cost_ == pytest.approx(ours, abs=4 * spread)
    assert model.held_out_cost_ == pytest.approx(costs.of(X).spent(y == 1, model.held_out_alerts_).mean())
    risk = model.positive_scores(new) + model.case_thresholds(new)
    order = np.argsort(new.score.to_numpy())
    assert (np.diff(risk[order]) >= -1e-9).all()
    saved = LimitThresholdClassifier(LogisticRegression(), Limits(costs=costs), random_state=0).fit(X, y)
    assert saved.case_calibration_ is not None
    save(saved, tmp_path / "model.rocmax")
    again = load(tmp_path / "model.rocmax")
    assert again.limits == saved.limits
    np.testing.assert_array_equal(again.positive_scores(new), saved.positive_scores(new))
    with pytest.raises(ValueError, match="cost_miss must be a number or a column of the rows; got 'amount'"):
        model.predict(new[["score"]])


def test_a_limit_is_kept_where_a_lower_threshold_would_be_cheaper():
    X, y = payments()
    dear = Costs(false_alarm=1, miss="amount", review=0)
    for limits in (Limits(max_fpr=0.02, confidence=0.9), Limits(capacity=0.03)):
        limited = LimitThresholdClassifier(Given().fit(X, y), limits, cv="prefit").fit(X, y)
        model = fitted(X, y, Limits(**{**limits.to_dict(), "costs": dear}))
        assert model.threshold_ == limited.threshold_
        assert model.binding_ == limited.binding_ != "costs"
        assert model.case_calibration_ is None
        np.testing.assert_equal(model.violation_bound_, limited.violation_bound_)
        cheap = Costs(false_alarm=500, miss="amount", review=0)
        above = fitted(X, y, Limits(**{**limits.to_dict(), "costs": cheap}))
        assert above.threshold_ > limited.threshold_
        assert above.binding_ == "costs"


def test_weights_count_and_an_earlier_rule_is_forgotten():
    X, y = payments(1500)
    costs = Limits(costs=Costs(false_alarm=2, miss=10))
    copies = np.where(y == 1, 3, 1)
    rows = np.repeat(np.arange(y.size), copies)
    model = LimitThresholdClassifier(Given().fit(X, y), costs, cv="prefit", random_state=0)
    weighted = model.fit(X, y, sample_weight=copies).threshold_
    repeated = fitted(X.iloc[rows], y[rows], costs).threshold_
    assert weighted == repeated
    case = fitted(X, y, Limits(costs=Costs(false_alarm=1, miss="amount", review=1)))
    assert case.case_calibration_ is not None
    limited = case.set_params(limits=Limits(max_fpr=0.1)).fit(X, y)
    fresh = FPRThresholdClassifier(Given().fit(X, y), 0.1, cv="prefit").fit(X, y)
    np.testing.assert_array_equal(limited.predict(X), fresh.predict(X))
