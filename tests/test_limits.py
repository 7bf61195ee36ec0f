"""Thresholds for several limits: the choice against an enumeration of all thresholds, the guarantees, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm
from sklearn.base import clone

from helpers.given_scores import Given
from helpers.thresholds import candidates, scored_rows
from rocmax import FPRThresholdClassifier, Limits, LimitThresholdClassifier, TPRThresholdClassifier, load, save
from rocmax.tables import ParameterError
from rocmax.thresholds import rows_per_period

DUST = 1e-9


def fitted(scores, positive, limits, *, weight=None, groups=None, column=None):
    """A classifier with a threshold from given scores."""
    X = pd.DataFrame({"score": scores}) if column is None else pd.DataFrame({"score": scores, limits.column: column})
    y = np.asarray(positive, dtype=int)
    model = LimitThresholdClassifier(Given().fit(X, y), limits, cv="prefit")
    return model.fit(X, y, groups=groups, sample_weight=weight), X


def rates(positive, accepted, weight):
    """TPR, FPR, precision (1 without alerts) and share of alerts."""
    weight = np.ones(positive.size) if weight is None else weight
    tp, fp = weight[accepted & positive].sum(), weight[accepted & ~positive].sum()
    precision = tp / (tp + fp) if accepted.any() else 1.0
    return tp / weight[positive].sum(), fp / weight[~positive].sum(), precision, (tp + fp) / weight.sum()


def keeps(found, limits):
    tpr, fpr, precision, alerts = found
    return (
        tpr >= limits.min_tpr * (1 - DUST)
        and fpr <= limits.window[1] * (1 + DUST)
        and precision >= limits.min_precision * (1 - DUST)
        and alerts <= (1.0 if limits.capacity is None else limits.capacity) * (1 + DUST)
    )


some = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.7, 0.9])
any_limits = st.builds(
    Limits,
    max_fpr=st.none() | some,
    min_tpr=st.just(0.0) | some,
    min_precision=st.just(0.0) | some,
    capacity=st.none() | some,
)


@given(scored_rows(), any_limits)
@settings(max_examples=300, deadline=None)
def test_the_threshold_is_the_best_of_all_that_keep_the_limits(rows, limits):
    """The lowest without a floor on the TPR, the highest with one; an error if there is none."""
    assume(limits.limited)
    scores, positive, weight = rows
    allowed = [each for each in candidates(scores) if keeps(rates(positive, each, weight), limits)]
    # A precision without alerts is none, unless the other limits allow no alert either.
    others = [
        each
        for each in candidates(scores)[1:]
        if keeps(rates(positive, each, weight), replace(limits, min_precision=0))
    ]
    if limits.min_precision and others:
        allowed = [each for each in allowed if each.any()]
    if not allowed:
        with pytest.raises(ParameterError, match="nearest"):
            fitted(scores, positive, limits, weight=weight)
        return
    model, X = fitted(scores, positive, limits, weight=weight)
    best = allowed[0] if limits.min_tpr else allowed[-1]
    np.testing.assert_array_equal(model.predict(X) == 1, best)


@pytest.mark.parametrize("n_above", range(1, 11))
def test_the_nearest_limit_is_not_rounded_beyond_a_rate_of_three_digits(n_above):
    scores, positive = np.append(np.arange(10.0), 9.5 - n_above), np.arange(11) == 10
    with pytest.raises(ParameterError) as refused:
        fitted(scores, positive, Limits(min_tpr=0.9, max_fpr=0.05))
    assert f"the nearest: max_fpr={n_above / 10} instead" in str(refused.value)


def outcome(model, X, y, weight):
    """The message of an error, or None."""
    try:
        model.fit(X, y, sample_weight=weight)
    except ValueError as error:
        return str(error)
    return None


@given(scored_rows(), some, some)
@settings(max_examples=150, deadline=None)
def test_one_limit_on_a_rate_is_the_rule_of_its_own_classifier(rows, rate, confidence):
    scores, positive, weight = rows
    X, y = scores[:, None], positive.astype(int)
    for name, kind in (("max_fpr", FPRThresholdClassifier), ("min_tpr", TPRThresholdClassifier)):
        for sure, by in ((None, weight), (confidence, None)):
            own = kind(Given().fit(X, y), rate, cv="prefit", confidence=sure)
            model = LimitThresholdClassifier(Given().fit(X, y), Limits(confidence=sure, **{name: rate}), cv="prefit")
            found = [outcome(each, X, y, by) for each in (own, model)]
            assert found[0] == found[1]
            if found[0] is not None:
                continue
            assert model.threshold_ == own.threshold_
            np.testing.assert_equal(model.violation_bound_, own.violation_bound_)
            assert model.binding_ == name


def normal_rows(n=3000, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    return rng.normal(size=n) + 2 * positive, positive


@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize(
    ("limits", "binding"),
    [
        (Limits(max_fpr=0.01, min_precision=0.3, capacity=0.5), "max_fpr"),
        (Limits(max_fpr=0.3, min_precision=0.8, capacity=0.5), "min_precision"),
        (Limits(max_fpr=0.3, min_precision=0.3, capacity=0.03), "capacity"),
        (Limits(max_fpr=0.3, min_precision=0.3, min_tpr=0.5), "min_tpr"),
    ],
)
def test_the_limit_that_is_reached_first_is_named(limits, binding, confidence):
    scores, positive = normal_rows()
    limits = replace(limits, confidence=confidence)
    model, _ = fitted(scores, positive, limits)
    assert model.binding_ == binding
    if binding != "min_tpr":
        # Limits on alerts are tested at the full level: the highest of their thresholds keeps all.
        alone = Limits(confidence=confidence, **{binding: getattr(limits, binding)})
        assert model.threshold_ == fitted(scores, positive, alone)[0].threshold_


@given(st.integers(0, 200), st.sampled_from([None, 0.9]))
@settings(max_examples=40, deadline=None)
def test_the_nearest_limits_of_a_refusal_can_be_kept(seed, confidence):
    """Each suggestion, put in the place of what was asked for, is accepted; a slightly stricter one is not."""
    scores, positive = normal_rows(400, 0.3, seed)
    limits = Limits(min_tpr=0.95, max_fpr=0.1, capacity=0.2, confidence=confidence)
    with pytest.raises(ParameterError) as refused:
        fitted(scores, positive, limits)
    named = [part for part in refused.value.args[0].parts if not isinstance(part, str)]
    nearest = {each.name: each.value for each in named[3:]}
    floor = nearest.pop("min_tpr")
    fitted(scores, positive, replace(limits, **nearest))
    fitted(scores, positive, replace(limits, min_tpr=floor))
    for stricter in [{"min_tpr": floor * 1.02}, *({**nearest, name: nearest[name] * 0.97} for name in nearest)]:
        with pytest.raises(ParameterError):
            fitted(scores, positive, replace(limits, **stricter))


def test_a_precision_out_of_reach_is_refused_with_the_nearest():
    scores, positive = normal_rows()
    positive[np.argsort(scores)[-300:]] = np.arange(300) % 2 == 0
    for confidence in (None, 0.9):
        with pytest.raises(ParameterError, match="the nearest is min_precision=0") as refused:
            fitted(scores, positive, Limits(min_precision=0.9, confidence=confidence))
        (nearest,) = [part.value for part in refused.value.args[0].parts if not isinstance(part, str)][1:]
        fitted(scores, positive, Limits(min_precision=nearest, confidence=confidence))


@pytest.mark.parametrize("floor", [0.3, 0.5, 0.8])
def test_tests_of_precision_are_binomial_and_stop_at_the_first_that_fails(floor):
    """Every threshold that was passed is enough evidence at the full level; the chosen one is among them."""
    scores, positive = normal_rows(seed=3)
    model, X = fitted(scores, positive, Limits(min_precision=floor, confidence=0.9))
    alerts = model.predict(X) == 1
    n, hits = alerts.sum(), (alerts & positive).sum()
    assert binom.sf(hits - 1, n, floor) <= 0.1
    # Close to the end of the sequence: a threshold that accepts a tenth more alerts would fail soon.
    order = np.argsort(-scores)
    more = np.cumsum(positive[order])[n : n + n // 2]
    assert (binom.sf(more - 1, np.arange(n + 1, n + 1 + more.size), floor) > 0.07).any()


LEVEL, REPEATS = 0.1, 300


@pytest.mark.parametrize(
    "limits",
    [
        Limits(min_precision=0.6),
        Limits(capacity=0.1),
        Limits(max_fpr=0.0452, min_precision=0.7),
        Limits(max_fpr=0.0452, min_precision=0.7, capacity=0.127),
    ],
)
@pytest.mark.parametrize("step", [0.0, 0.5])
def test_guarantees_hold_in_simulation(limits, step):
    """The rates of a threshold on normal scores, also rounded ones, are known."""
    rng, broken = np.random.default_rng(0), 0
    for _ in range(REPEATS):
        positive = rng.random(1000) < 0.2
        scores = rng.normal(size=1000) + 2 * positive
        scores = step * np.round(scores / step) if step else scores
        try:
            at = fitted(scores, positive, replace(limits, confidence=1 - LEVEL))[0].threshold_
        except ParameterError:
            continue
        at = step * (np.floor(at / step) + 0.5) if step else at
        tpr, fpr = norm.sf(at - 2), norm.sf(at)
        alerts = 0.2 * tpr + 0.8 * fpr
        broken += not keeps((tpr, fpr, 0.2 * tpr / alerts, alerts), limits)
    assert broken / REPEATS <= LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / REPEATS)
    assert step or broken / REPEATS >= 0.2 * LEVEL  # the rule does not throw alerts away


def test_a_floor_and_a_limit_share_the_confidence():
    scores, positive = normal_rows()
    model, _ = fitted(scores, positive, Limits(min_tpr=0.7, max_fpr=0.2, confidence=0.9))
    alone, _ = fitted(scores, positive, Limits(min_tpr=0.7, confidence=0.95))
    assert model.threshold_ == alone.threshold_
    assert model.violation_bound_ == pytest.approx(0.1)


# A threshold for each value of a column


def country_rows(seed=0, n=3000):
    scores, positive = normal_rows(n, seed=seed)
    country = np.random.default_rng(seed + 1).choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2]).astype(object)
    return scores + (country == "B"), positive, country


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_each_value_has_the_threshold_of_its_rows(confidence):
    scores, positive, country = country_rows()
    limits = Limits(max_fpr=0.05, min_precision=0.5, per="country", confidence=confidence)
    model, X = fitted(scores, positive, limits, column=country)
    assert list(model.thresholds_) == ["A", "B", "C"]
    sure = None if confidence is None else 1 - (1 - confidence) / 3  # Bonferroni
    for value, at in model.thresholds_.items():
        own, _ = fitted(scores[country == value], positive[country == value], replace(limits, per=(), confidence=sure))
        assert at == pytest.approx(own.threshold_, abs=0)
    margin = scores - np.array([model.thresholds_[value] for value in country])
    np.testing.assert_array_equal(model.positive_scores(X), margin)
    np.testing.assert_array_equal(model.predict(X), (margin > 0).astype(int))


def test_unknown_and_missing_values_get_the_highest_threshold():
    scores, positive, country = country_rows()
    country[:50] = None
    model, X = fitted(scores, positive, Limits(max_fpr=0.05, per="country"), column=country)
    assert model.threshold_ == max(model.thresholds_.values())
    rows = X.iloc[:200].assign(country="D")
    np.testing.assert_array_equal(model.positive_scores(rows), scores[:200] - model.threshold_)
    np.testing.assert_array_equal(model.positive_scores(X)[:50], scores[:50] - model.threshold_)
    with pytest.raises(ValueError, match="per must be a column of the rows; got 'country', known: 'score'"):
        model.predict(X[["score"]])


def test_numbers_as_values_are_the_same_with_and_without_a_decimal_point():
    scores, positive, country = country_rows()
    codes = pd.Series(country).map({"A": 1, "B": 2, "C": 3})
    model, X = fitted(scores, positive, Limits(max_fpr=0.05, per="country"), column=codes)
    assert list(model.thresholds_) == ["1", "2", "3"]
    for kind in (float, str, "category"):
        np.testing.assert_array_equal(model.predict(X), model.predict(X.assign(country=codes.astype(kind))))


def test_a_value_with_too_few_rows_is_named():
    scores, positive, country = country_rows()
    country[:20] = "rare"
    with pytest.raises(
        ValueError, match=r"country = 'rare': a false-positive rate .* requires at least 86 held-out neg"
    ):
        fitted(scores, positive, Limits(max_fpr=0.05, per="country", confidence=0.95), column=country)
    with pytest.raises(ValueError, match="must have a value in some held-out rows"):
        fitted(scores, positive, Limits(max_fpr=0.05, per="country"), column=np.full(scores.size, None))


# Two thresholds


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_two_thresholds_make_three_decisions(confidence):
    scores, positive = normal_rows()
    limits = Limits(max_fpr=0.1, block=Limits(min_precision=0.9), confidence=confidence)
    model, X = fitted(scores, positive, limits)
    sure = None if confidence is None else 1 - (1 - confidence) / 2
    review, _ = fitted(scores, positive, Limits(max_fpr=0.1, confidence=sure))
    block, _ = fitted(scores, positive, Limits(min_precision=0.9, confidence=sure))
    assert (model.threshold_, model.block_threshold_) == (review.threshold_, block.threshold_)
    wanted = np.where(scores > block.threshold_, "block", np.where(scores > review.threshold_, "review", "approve"))
    np.testing.assert_array_equal(model.decide(X), wanted)
    assert set(wanted) == {"approve", "review", "block"}


def test_the_second_threshold_is_not_below_the_first():
    scores, positive = normal_rows()
    model, X = fitted(scores, positive, Limits(max_fpr=0.01, block=Limits(max_fpr=0.2)))
    assert model.block_threshold_ == model.threshold_
    assert set(model.decide(X)) == {"approve", "block"}


def test_rows_with_another_value_have_the_highest_of_both_thresholds():
    rng = np.random.default_rng(0)
    place = np.arange(400) % 2
    scores, positive = rng.normal(size=400) + 5 * place, rng.random(400) < 0.4
    limits = Limits(max_fpr=0.3, per="place", block=Limits(max_fpr=0.1))
    model, _ = fitted(scores, positive, limits, column=place)
    others = pd.DataFrame(
        {"score": [0.0, model.threshold_ + 1e-6, model.block_thresholds_["1"] + 1e-6], "place": [7] * 3}
    )
    assert model.block_thresholds_["0"] < model.thresholds_["1"] < model.block_thresholds_["1"]
    assert model.decide(others).tolist() == ["approve", "review", "block"]


# Groups


def test_groups_of_one_row_are_more_careful_than_rows_and_larger_ones_even_more():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(300), 10)
    positive = rng.random(3000) < 0.3
    scores = rng.normal(size=3000) + 2 * positive
    for limits in (Limits(capacity=0.2, confidence=0.9), Limits(min_precision=0.6, confidence=0.9)):
        rows, single, large = (
            fitted(scores, positive, limits, groups=groups)[0].threshold_ for groups in (None, np.arange(3000), group)
        )
        assert rows <= single < large


# Bad input, and what scikit-learn expects


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(), "limits must have a limit"),
        (Limits(min_precision=1.0), "min_precision must be a number of at least 0 and below 1; got 1"),
        (Limits(min_precision="0.5"), "min_precision must be a number of at least 0 and below 1; got '0.5'"),
        (Limits(capacity=0), "capacity must be a number above 0"),
        (Limits(capacity=-1), "capacity must be a number above 0 and below infinity; got -1"),
        (Limits(capacity=200), "capacity=200 is a number of alerts, which requires a period"),
        (Limits(capacity=200, per="day"), "capacity=200 per day must be a share of the rows here"),
        (Limits(capacity=0.1, per="day"), "got 0.1, a share of the rows, which has no period"),
        (Limits(max_fpr=0.1, per="day"), "per='day' requires a number of alerts of at least 1: capacity=..."),
        (Limits(per="country"), "per='country' requires a limit: max_fpr=..."),
        (Limits(max_fpr=0.1, per=("a", "b")), "per must be a period, a column, or one of each"),
        (Limits(max_fpr=0.1, per=3), "per must be a period, a column, or one of each; got 3"),
        (Limits(max_fpr=0.1, confidence=1.0), "confidence must be a number above 0 and below 1; got 1"),
        (Limits(max_fpr=0.1, rate="rows"), "rate must be one of 'row', 'group'; got 'rows'"),
        (Limits(min_precision=0.1, rate="group"), "rate must be rate='row' with min_precision"),
        (Limits(max_fpr=0.1, block=0.01), "block must be Limits with max_fpr, min_precision or capacity; got 0.01"),
        (Limits(max_fpr=0.1, block=Limits()), "got no limit"),
        (Limits(max_fpr=0.1, block=Limits(min_tpr=0.5)), "and nothing else; got min_tpr"),
        (Limits(max_fpr=0.1, block=Limits(max_fpr=2.0)), "max_fpr must be a number from 0 to 1; got 2"),
        (Limits(max_fpr=0.1, block=Limits(capacity=20)), "requires a period"),
    ],
)
def test_invalid_limits(limits, message):
    scores, positive = normal_rows(100)
    with pytest.raises(ParameterError) as refused:
        fitted(scores, positive, limits)
    assert message in str(refused.value)


def test_limits_are_an_object_and_weights_have_no_guarantee():
    scores, positive = normal_rows(100)
    with pytest.raises(TypeError, match=r"limits must be rocmax.Limits; got 0.1"):
        LimitThresholdClassifier(Given().fit(scores[:, None], positive), 0.1, cv="prefit").fit(
            scores[:, None], positive
        )
    with pytest.raises(ValueError, match="sample_weight must be None with confidence"):
        fitted(scores, positive, Limits(min_precision=0.3, confidence=0.9), weight=np.ones(100))
    with pytest.raises(
        ValueError, match=r"a precision of at least 0.99 .* requires at least [0-9]+ held-out positives; got"
    ):
        fitted(scores, positive, Limits(min_precision=0.99, confidence=0.95))


def test_a_model_is_cloned_and_saved_with_its_limits(tmp_path):
    scores, positive, country = country_rows()
    limits = Limits(max_fpr=0.05, capacity=0.1, per="country", block=Limits(max_fpr=0.01), confidence=0.9)
    model, X = fitted(scores, positive, limits, column=country)
    assert clone(model).limits == limits
    save(LimitThresholdClassifier(FPRThresholdClassifier(None), limits), tmp_path / "unfitted.rocmax")
    assert load(tmp_path / "unfitted.rocmax").limits == limits
    assert (
        model.decide(X).tolist()
        == LimitThresholdClassifier(model.estimator_, limits, cv="prefit")
        .fit(X, positive.astype(int))
        .decide(X)
        .tolist()
    )


def test_rows_per_period_leave_out_the_first_and_the_last_one():
    times = np.arange("2024-01-01T12", "2024-01-10T06", dtype="datetime64[h]")
    assert rows_per_period(times, "day") == 24
    assert rows_per_period(times[::2], "hour") == pytest.approx(0.5, abs=0.01)
    # A day without rows counts.
    inside = times[times.astype("datetime64[D]") != np.datetime64("2024-01-05")]
    assert rows_per_period(inside, "day") == pytest.approx(24 * 7 / 8)
    with pytest.raises(ValueError, match=r"requires times in at least 3 periods.*; got 1"):
        rows_per_period(times, "month")
    with pytest.raises(ValueError, match="requires dates or times; got a column of numbers"):
        rows_per_period(np.arange(5.0), "day")
