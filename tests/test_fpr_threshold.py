"""Thresholds from held-out negatives, with and without the guarantee."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from helpers.given_scores import Given
from rocmax import FPRThresholdClassifier, PartialAUCClassifier
from rocmax.thresholds import order_statistic


def rows(n_negative, n_positive, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n_negative, n_positive])
    return rng.normal(size=(y.size, 3)) + y[:, None], y


def slow_bound(k, n, limit):
    """The sum of the paper, term by term."""
    return sum(comb(n, j) * (1 - limit) ** j * limit ** (n - j) for j in range(k, n + 1))


@settings(deadline=None, max_examples=80)
@given(n=st.integers(1, 150), limit=st.floats(0.01, 0.6), delta=st.floats(0.01, 0.5))
def test_the_order_is_the_smallest_that_the_paper_allows(n, limit, delta):
    allowed = [k for k in range(1, n + 1) if slow_bound(k, n, limit) <= delta * (1 + 1e-9)]  # a tie counts
    if not allowed:
        with pytest.raises(ValueError, match=f"held-out negatives; got {n}"):
            order_statistic(n, limit, delta)
    else:
        k, bound = order_statistic(n, limit, delta)
        assert k == allowed[0]
        assert bound == pytest.approx(slow_bound(k, n, limit), rel=1e-6)


def test_too_few_negatives_are_counted_in_the_message():
    X, y = rows(100, 50)
    # log(0.05) / log(0.99) = 298.1
    with pytest.raises(
        ValueError, match=r"at most 0.01 with confidence 0.95 requires at least 299 held-out negatives; got 30"
    ):
        FPRThresholdClassifier(LogisticRegression(), 0.01, confidence=0.95, random_state=0).fit(X, y)
    assert order_statistic(299, 0.01, 0.05)[0] == 299
    with pytest.raises(ValueError, match="299"):
        order_statistic(298, 0.01, 0.05)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_guarantee_holds_in_simulation(confidence):
    """The true rate of a threshold on normal scores is known, so violations can be counted."""
    rng = np.random.default_rng(0)
    limit, n, violations, repeats = 0.05, 150, 0, 4000
    y = np.repeat([0, 1], [n, 2])
    for _ in range(repeats):
        scores = rng.normal(size=(y.size, 1)) + 3 * y[:, None]
        model = FPRThresholdClassifier(Given().fit(scores, y), limit, confidence=confidence, cv="prefit").fit(scores, y)
        violations += norm.sf(model.threshold_) > limit
    error = 3 * np.sqrt(confidence * (1 - confidence) / repeats)
    assert violations / repeats <= 1 - confidence + error
    # The bound is nearly reached: the rule does not throw positives away.
    assert violations / repeats >= 0.4 * model.violation_bound_
    assert model.n_negatives_ == n


def test_without_confidence_the_limit_is_broken_about_every_other_time():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [150, 2])
    rates = []
    for _ in range(500):
        scores = rng.normal(size=(y.size, 1)) + 3 * y[:, None]
        model = FPRThresholdClassifier(Given().fit(scores, y), 0.05, cv="prefit").fit(scores, y)
        assert np.mean(model.predict(scores[y == 0])) <= 0.05
        rates.append(norm.sf(model.threshold_))
    assert 0.35 < np.mean(np.array(rates) > 0.05) < 0.65


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB(), RidgeClassifier(), PartialAUCClassifier()])
@pytest.mark.parametrize("pos_label", [None, "fraud", "ok"])
def test_the_threshold_is_the_lowest_within_the_limit_on_held_out_rows(estimator, pos_label):
    X, y = rows(300, 400)
    named = np.where(y == 1, "fraud", "ok")
    model = FPRThresholdClassifier(estimator, 0.1, pos_label=pos_label, random_state=3).fit(X, named)
    positive = pos_label or "ok"
    assert model.positive_class_ == positive
    train, test = train_test_split(np.arange(y.size), test_size=0.3, stratify=named, random_state=3)
    negatives = test[named[test] != positive]
    assert model.n_negatives_ == negatives.size
    caught = np.mean(model.predict(X[negatives]) == positive)
    assert 0.1 - 1 / negatives.size < caught <= 0.1
    decision = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    # The estimator has seen the other rows only.
    again = type(estimator)(**estimator.get_params()).fit(X[train], named[train])
    np.testing.assert_array_equal(model.estimator_.predict(X), again.predict(X))


def test_folds_use_the_scores_of_all_rows_and_refit():
    X, y = rows(300, 100)
    folds = StratifiedKFold(4)
    model = FPRThresholdClassifier(LogisticRegression(), 0.1, cv=folds).fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, cv=folds, method="decision_function")
    assert np.sum(scores[y == 0] > model.threshold_) == 30
    np.testing.assert_array_equal(model.estimator_.coef_, LogisticRegression().fit(X, y).coef_)


def test_splits_that_do_not_hold_out_each_row_once_are_refused():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    splits = ShuffleSplit(3, random_state=0)
    with pytest.raises(ValueError, match=r"cv must hold out each row exactly once; got row \d+, .* 0 times"):
        FPRThresholdClassifier(LogisticRegression(), 0.2, cv=splits).fit(X, y)


def test_probabilities_are_those_of_the_estimator():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), np.arange(200) % 2
    model = FPRThresholdClassifier(LogisticRegression(), 0.2, cv=0.5, random_state=0).fit(X + y[:, None], y)
    np.testing.assert_array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))


def test_ties_at_the_order_statistic_stay_below():
    scores = np.repeat([0.0, 1.0, 2.0], [20, 20, 10])[:, None]
    y = np.r_[np.zeros(49), 1]
    model = FPRThresholdClassifier(Given().fit(scores, y), 0.3, confidence=0.9, cv="prefit").fit(scores, y)
    k, _ = order_statistic(49, 0.3, 0.1)
    assert np.sort(scores[:49, 0])[k - 1] == 1.0
    assert model.predict([[1.0], [2.0]]).tolist() == [0, 1]


def test_a_whole_pipeline_on_a_data_frame_in_a_search():
    X, y = rows(300, 200)
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=np.where(X[:, 0] > 0.5, "x", "y"))
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough"), LogisticRegression()
    )
    search = GridSearchCV(
        FPRThresholdClassifier(pipeline, random_state=0), {"max_fpr": [0.05, 0.3]}, scoring="recall", cv=3
    )
    search.fit(frame, y)
    assert search.best_params_ == {"max_fpr": 0.3}
    assert search.best_estimator_.feature_names_in_.tolist() == ["a", "b", "c", "kind"]
    assert search.best_estimator_.n_features_in_ == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_fpr": 0.0}, "max_fpr must be a number above 0 and below 1; got 0.0"),
        ({"max_fpr": "0.1"}, "max_fpr must be a number"),
        ({"confidence": 1.0}, "confidence must be a number above 0 and below 1; got 1.0"),
        ({"confidence": 0.9, "cv": 5}, 'cv must be a fraction or "prefit".*; got 5'),
        ({"cv": "folds"}, "got 'folds'"),
        ({"pos_label": 7}, "pos_label must be one of the classes .*; got 7"),
    ],
)
def test_bad_parameters(options, message):
    X, y = rows(50, 50)
    with pytest.raises(ValueError, match=message):
        FPRThresholdClassifier(LogisticRegression(), **options).fit(X, y)


def test_an_estimator_without_scores_or_without_a_fit():
    X, y = rows(50, 50)
    with pytest.raises(TypeError, match=r"must have decision_function or predict_proba; got .*, which has neither"):
        FPRThresholdClassifier(OneHotEncoder()).fit(X, y)
    with pytest.raises(NotFittedError):
        FPRThresholdClassifier(LogisticRegression(), cv="prefit").fit(X, y)
    with pytest.raises(ValueError, match=r"Only binary classification is supported"):
        FPRThresholdClassifier(LogisticRegression()).fit(X, np.arange(100) % 3)
