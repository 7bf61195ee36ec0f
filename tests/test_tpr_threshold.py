"""Thresholds from held-out positives, with and without the guarantee."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import OneHotEncoder

from helpers.given_scores import Given
from rocmax import FPRThresholdClassifier, PartialAUCClassifier, TPRThresholdClassifier
from rocmax.measures import at_tpr, below_order
from rocmax.thresholds import order_statistic


def rows(n_negative, n_positive, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n_negative, n_positive])
    return rng.normal(size=(y.size, 3)) + y[:, None], y


def on_scores(scores, y, limit, **options):
    """Return the classifier fitted to rows whose single feature is the score."""
    scores = np.asarray(scores, dtype=float).reshape(-1, 1)
    return TPRThresholdClassifier(Given().fit(scores, y), limit, cv="prefit", **options).fit(scores, y)


@settings(deadline=None, max_examples=40)
@given(m=st.integers(1, 150), limit=st.floats(0.4, 0.99), delta=st.floats(0.01, 0.5), seed=st.integers(0, 99))
def test_the_order_is_the_largest_that_the_bound_allows(m, limit, delta, seed):
    """The sum of the docstring, term by term, with the lost positives counted from the lowest score."""

    def bound(k):
        return sum(comb(m, j) * (1 - limit) ** j * limit ** (m - j) for j in range(k))

    allowed = [k for k in range(1, m + 1) if bound(k) <= delta * (1 + 1e-9)]
    scores = np.random.default_rng(seed).permutation(np.arange(m + 3.0))
    y = np.repeat([1, 0], [m, 3])
    if not allowed:
        with pytest.raises(ValueError, match=f"held-out positives; got {m}"):
            on_scores(scores, y, limit, confidence=1 - delta)
        return
    model = on_scores(scores, y, limit, confidence=1 - delta)
    assert np.sum(model.predict(scores[:m, None]) == 0) == allowed[-1] - 1
    assert model.violation_bound_ == pytest.approx(bound(allowed[-1]), rel=1e-6)
    assert model.n_positives_ == m


def test_too_few_positives_are_counted_in_the_message():
    X, y = rows(50, 100)
    # log(0.05) / log(0.99) = 298.1
    message = (
        r"true-positive rate of at least 0.99 with confidence 0.95 requires at least 299 held-out positives; got 30\. "
        r".*decrease min_tpr"
    )
    with pytest.raises(ValueError, match=message):
        TPRThresholdClassifier(LogisticRegression(), 0.99, confidence=0.95, random_state=0).fit(X, y)
    assert order_statistic(299, 1 - 0.99, 0.05)[0] == 299


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_guarantee_holds_in_simulation(confidence):
    """The true rate of a threshold on normal scores is known, so violations can be counted."""
    rng = np.random.default_rng(0)
    limit, m, violations, repeats = 0.95, 150, 0, 4000
    y = np.repeat([0, 1], [2, m])
    k, bound = order_statistic(m, 1 - limit, 1 - confidence)
    for trial in range(repeats):
        scores = rng.normal(size=y.size) + 3 * y
        threshold = below_order(scores, y == 1, k)
        if trial < 50:
            model = on_scores(scores, y, limit, confidence=confidence)
            assert (model.threshold_, model.violation_bound_) == (threshold, bound)
        violations += norm.sf(threshold - 3) < limit
    error = 3 * np.sqrt(confidence * (1 - confidence) / repeats)
    assert violations / repeats <= 1 - confidence + error
    # The bound is nearly reached: the rule does not add needless false alarms.
    assert violations / repeats >= 0.4 * bound


@pytest.mark.slow
@pytest.mark.parametrize("outlier", [-1e11, 1e11])
def test_the_guarantee_holds_with_ties_and_extreme_rows(outlier):
    """Scores of a few values: the rate is that of the values above the threshold."""
    rng = np.random.default_rng(1)
    values, shares = np.arange(6.0), np.array([0.02, 0.05, 0.13, 0.3, 0.3, 0.2])
    limit, m, violations, repeats = 0.9, 80, 0, 600
    y = np.repeat([0, 1], [3, m])
    for _ in range(repeats):
        scores = np.r_[rng.normal(size=2), outlier, rng.choice(values, m, p=shares)]
        model = on_scores(scores, y, limit, confidence=0.9)
        violations += shares[values > model.threshold_].sum() < limit
    assert violations / repeats <= 0.1 + 3 * np.sqrt(0.09 / repeats)


def test_without_confidence_the_limit_is_broken_about_every_other_time():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [2, 150])
    rates = []
    for _ in range(500):
        scores = rng.normal(size=y.size) + 3 * y
        model = on_scores(scores, y, 0.95)
        assert np.mean(model.predict(scores[y == 1, None])) >= 0.95
        rates.append(norm.sf(model.threshold_ - 3))
    assert 0.35 < np.mean(np.array(rates) < 0.95) < 0.65


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB(), RidgeClassifier(), PartialAUCClassifier()])
@pytest.mark.parametrize("pos_label", [None, "fraud", "ok"])
def test_the_threshold_is_the_highest_that_reaches_the_limit_on_held_out_rows(estimator, pos_label):
    X, y = rows(300, 400)
    named = np.where(y == 1, "fraud", "ok")
    model = TPRThresholdClassifier(estimator, 0.9, pos_label=pos_label, random_state=3).fit(X, named)
    positive = pos_label or "ok"
    assert model.positive_class_ == positive
    train, test = train_test_split(np.arange(y.size), test_size=0.3, stratify=named, random_state=3)
    positives = test[named[test] == positive]
    assert model.n_positives_ == positives.size
    caught = np.mean(model.predict(X[positives]) == positive)
    assert 0.9 <= caught < 0.9 + 1 / positives.size
    decision = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    # The estimator has seen the other rows only.
    again = type(estimator)(**estimator.get_params()).fit(X[train], named[train])
    np.testing.assert_array_equal(model.estimator_.predict(X), again.predict(X))


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_the_other_class_is_limited_by_the_other_classifier(confidence):
    """A limit on the missed positives is a limit on the false alarms of the other class."""
    X, y = rows(200, 300)
    options = {"confidence": confidence, "random_state": 0}
    first = TPRThresholdClassifier(LogisticRegression(), 0.75, **options).fit(X, y)
    other = FPRThresholdClassifier(LogisticRegression(), 0.25, pos_label=0, **options).fit(X, y)
    np.testing.assert_array_equal(first.predict(X), other.predict(X))
    assert first.threshold_ == pytest.approx(-other.threshold_, rel=1e-8)
    assert first.n_positives_ == other.n_negatives_


def test_folds_use_the_scores_of_all_rows_and_refit():
    X, y = rows(100, 300)
    folds = StratifiedKFold(4)
    model = TPRThresholdClassifier(LogisticRegression(), 0.9, cv=folds).fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, cv=folds, method="decision_function")
    assert np.sum(scores[y == 1] > model.threshold_) == 270
    np.testing.assert_array_equal(model.estimator_.coef_, LogisticRegression().fit(X, y).coef_)


def test_ties_at_the_order_statistic_stay_above():
    scores, y = np.repeat([0.0, 1.0, 2.0], [10, 20, 20]), np.r_[np.ones(49), 0]
    model = on_scores(scores, y, 0.7, confidence=0.9)
    assert model.predict([[0.0], [1.0], [2.0]]).tolist() == [0, 1, 1]


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 30), st.integers(0, 30), st.floats(0.01, 0.99), st.integers(0, 999))
def test_thresholds_of_tied_scores(m, n, limit, seed):
    """The threshold is the highest possible one, and below the accepted score, not at it."""
    rng = np.random.default_rng(seed)
    positive = np.repeat([True, False], [m, n])
    scores = 1.0 + rng.integers(0, 40, m + n) * 0.5
    threshold = at_tpr(scores, positive, None, limit)
    assert np.mean(scores[positive] > threshold) >= limit - 1e-9
    higher = scores[positive & (scores > threshold)].min()
    assert np.mean(scores[positive] > higher) < limit
    for k in (1, m):
        accepted = np.sort(scores[positive])[-k]
        threshold = below_order(scores, positive, k)
        assert np.nextafter(accepted, -np.inf) >= threshold
        assert not np.any((scores > threshold) & (scores < accepted))


def test_adjacent_floats_are_separated():
    low = 1.0
    high = np.nextafter(low, 2.0)
    scores, positive = np.array([high, low]), np.array([True, False])
    # Scores equal up to rounding error are on the same side.
    assert at_tpr(scores, positive, None, 0.5) < low
    assert below_order(scores, positive, 1) < low


def test_weights_count_copies():
    rng = np.random.default_rng(0)
    scores, positive, weight = rng.normal(size=60), np.arange(60) % 2 == 0, rng.integers(1, 4, 60)
    repeated = at_tpr(np.repeat(scores, weight), np.repeat(positive, weight), None, 0.8)
    assert at_tpr(scores, positive, weight.astype(float), 0.8) == repeated


@pytest.mark.parametrize("k", range(1, 100))
def test_rounding_does_not_move_the_limit(k):
    scores, positive = np.arange(200.0), np.arange(200) % 2 == 0
    for rate in {k / 100, k * 0.01, 1 - (100 - k) / 100}:
        assert np.sum(scores[positive] > at_tpr(scores, positive, None, rate)) == k


def test_a_search_over_the_limit():
    X, y = rows(300, 200)
    search = GridSearchCV(
        TPRThresholdClassifier(LogisticRegression(), random_state=0), {"min_tpr": [0.5, 0.9]}, scoring="recall", cv=3
    )
    assert search.fit(X, y).best_params_ == {"min_tpr": 0.9}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_tpr": 1.0}, "min_tpr must be a number above 0 and below 1; got 1.0"),
        ({"min_tpr": "0.9"}, "min_tpr must be a number"),
        ({"confidence": 1.0}, "confidence must be a number above 0 and below 1; got 1.0"),
        ({"confidence": 0.9, "cv": 5}, 'cv must be a fraction or "prefit".*; got 5'),
        ({"cv": "folds"}, "got 'folds'"),
        ({"pos_label": 7}, "pos_label must be one of the classes .*; got 7"),
    ],
)
def test_bad_parameters(options, message):
    X, y = rows(50, 50)
    with pytest.raises(ValueError, match=message):
        TPRThresholdClassifier(LogisticRegression(), **options).fit(X, y)


def test_an_estimator_without_scores_or_without_a_fit():
    X, y = rows(50, 50)
    with pytest.raises(TypeError, match=r"must have decision_function or predict_proba; got .*, which has neither"):
        TPRThresholdClassifier(OneHotEncoder()).fit(X, y)
    with pytest.raises(NotFittedError):
        TPRThresholdClassifier(LogisticRegression(), cv="prefit").fit(X, y)
