"""Splits forward in time: what they train and test on, and the estimators and searches that take them."""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rocmax import (
    BoostedClassifier,
    ForwardSplit,
    FPRThresholdClassifier,
    PartialAUCClassifier,
    PartialAUCClassifierCV,
    TPRThresholdClassifier,
)
from rocmax.forward import Dependence, check_gap


@st.composite
def rows_in_time(draw):
    """Times with ties, in any order, perhaps groups, and a gap."""
    n = draw(st.integers(6, 60))
    times = np.array(draw(st.lists(st.integers(0, draw(st.integers(3, 40))), min_size=n, max_size=n)), dtype=float)
    groups = np.array(draw(st.lists(st.integers(0, 30), min_size=n, max_size=n))) if draw(st.booleans()) else None
    return times, groups, draw(st.sampled_from([0, 0, 1, 2.5, 6]))


def may_train(times, groups, gap, row, test):
    """Whether a row may train a model that is tested on some rows, from the definition."""
    start = min(times[test])
    known = times[row] < start and times[row] + gap <= start
    return known and (groups is None or groups[row] not in set(groups[test].tolist()))


@given(rows_in_time(), st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_a_split_trains_on_all_rows_that_were_known_before_its_test_rows(given_rows, n_splits):
    times, groups, gap = given_rows
    if np.unique(times).size <= n_splits:
        with pytest.raises(ValueError, match=f"a split into {n_splits + 1} periods requires at least as many"):
            list(ForwardSplit(n_splits, time=times, gap=gap).split(times, groups=groups))
        return
    splits = Dependence(groups, times, gap).forward(n_splits)
    tested = np.concatenate([test for _, test in splits])
    assert len(splits) == n_splits
    assert np.unique(tested).size == tested.size
    # The test rows are the latest rows, period after period; equal times are together.
    assert times[tested].min() > np.delete(times, tested).max()
    for (_, earlier), (_, later) in pairwise(splits):
        assert times[earlier].max() < times[later].min()
    for train, test in splits:
        assert train.tolist() == [row for row in range(times.size) if may_train(times, groups, gap, row, test)]
    if all(train.size for train, _ in splits):
        found = list(ForwardSplit(n_splits, time=times, gap=gap).split(times, groups=groups))
        assert [(a.tolist(), b.tolist()) for a, b in found] == [(a.tolist(), b.tolist()) for a, b in splits]
    else:
        with pytest.raises(ValueError, match="each split must have training rows; got none in split"):
            list(ForwardSplit(n_splits, time=times, gap=gap).split(times, groups=groups))


@given(rows_in_time(), st.integers(1, 20), st.integers(1, 20))
@settings(max_examples=300, deadline=None)
def test_training_calibration_and_test_rows_follow_each_other(given_rows, n_calibration, n_test):
    times, groups, gap = given_rows
    parts = train, calibration, test = Dependence(groups, times, gap).periods([n_calibration, n_test])
    everything = np.concatenate(parts)
    assert np.unique(everything).size == everything.size
    if not test.size:
        assert np.unique(times).size == 1
        return
    assert times[test].min() > np.delete(times, test).max()
    before = [row for row in range(times.size) if may_train(times, groups, gap, row, test)]
    if not calibration.size:
        assert np.unique(times[before]).size < 2
        return
    assert set(calibration) <= set(before)
    assert set(train) == {
        row for row in before if may_train(times, groups, gap, row, np.concatenate([calibration, test]))
    }
    # No other cut between two times comes closer to the number of rows that was asked for.
    for part, among, size in ((test, np.arange(times.size), n_test), (calibration, before, n_calibration)):
        cuts = np.unique(times[among])[1:]
        assert abs(part.size - size) == min(abs(np.sum(times[among] >= cut) - size) for cut in cuts)


def test_evenly_spaced_rows_are_split_as_by_time_series_split():
    for n, n_splits in ((60, 5), (24, 3), (10, 1)):
        ours = ForwardSplit(n_splits).split(np.zeros((n, 1)))
        if n_splits > 1:
            theirs = list(TimeSeriesSplit(n_splits).split(np.zeros((n, 1))))
            assert [[a.tolist(), b.tolist()] for a, b in ours] == [[a.tolist(), b.tolist()] for a, b in theirs]
        else:
            assert [test.tolist() for _, test in ours] == [list(range(5, 10))]
    # A gap of three rows, and test periods of five.
    ours = ForwardSplit(4, gap=4, test_size=5 / 60).split(np.zeros((60, 1)))
    theirs = TimeSeriesSplit(4, gap=3, test_size=5).split(np.zeros((60, 1)))
    assert [[a.tolist(), b.tolist()] for a, b in ours] == [[a.tolist(), b.tolist()] for a, b in theirs]


@pytest.mark.parametrize("gap", ["2d", "48h", "2880min", "172800 s", datetime.timedelta(2), np.timedelta64(2, "D")])
def test_dates_and_time_spans_in_any_form(gap):
    days = np.array([0, 1, 2, 3, 4, 5, 6, 7])
    dates = pd.Timestamp("2024-02-27") + pd.to_timedelta(days, unit="D")
    expected = [[0, 1, 2], [4, 5]], [[0, 1, 2, 3, 4], [6, 7]]
    expected = [[a.tolist(), b.tolist()] for a, b in ForwardSplit(2, time=days, gap=2).split(days)]
    in_utc = dates.tz_localize("UTC").astype(object)
    for time in (dates, pd.Series(dates), dates.to_numpy().astype("datetime64[D]"), in_utc):
        found = ForwardSplit(2, time=time, gap=gap).split(days)
        assert [[a.tolist(), b.tolist()] for a, b in found] == expected


def test_dates_far_away_keep_their_order():
    dates = np.array(["1000-01-01", "2000-01-01", "3000-01-01", "9000-01-01"], dtype="datetime64[D]")
    assert [test.tolist() for _, test in ForwardSplit(3, time=dates).split(dates)] == [[1], [2], [3]]


BAD_SPLITS = [
    ({"n_splits": 0}, "n_splits must be an integer of at least 1; got 0"),
    ({"n_splits": True}, "n_splits must be an integer of at least 1; got True"),
    ({"test_size": 0.5}, "test_size must be above 0, and below 1 after 2 splits"),
    ({"gap": -1}, "gap must be at least 0; got -1"),
    ({"gap": "-1d"}, "gap must be a number and a unit"),
    ({"gap": "3 months"}, "gap must be a number and a unit, such as 30d .*; got '3 months'"),
    ({"gap": float("nan")}, "gap must be a number, a time span, or text such as 30d; got nan"),
    ({"gap": np.timedelta64("NaT")}, "gap must be at least 0; got NaT"),
    ({"gap": "999999999999d"}, "gap must be a time span of at most a million years"),
    ({"gap": [1]}, "gap must be a number, a time span"),
    ({"gap": "2d"}, "gap must be a number, as the times are numbers; got 172800s"),
    (
        {"gap": 2, "time": pd.date_range("2024-01-01", periods=9)},
        "gap must be a time span.*as the times are dates; got 2",
    ),
    ({"gap": 9}, "each split must have training rows; got none in split 0, before 3 with a gap of 9"),
    ({"time": np.zeros(9)}, "a split into 3 periods requires at least as many different times; got 1"),
    ({"time": np.arange(8)}, "time must have a value for each of the 9 rows; got 8"),
    ({"time": [1, 2, 3, np.nan, 5, 6, 7, 8, 9]}, "time must be known for each row; got nan in row 3"),
    ({"time": ["a"] * 9}, "time must have one number or date for each row"),
    ({"time": "when"}, "time must be an array .* as X has no columns; got the name 'when'"),
]


@pytest.mark.parametrize(("options", "message"), BAD_SPLITS, ids=[message[:40] for _, message in BAD_SPLITS])
def test_bad_options_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        list(ForwardSplit(**{"n_splits": 2, **options}).split(np.zeros((9, 1))))


def test_a_column_that_is_missing_or_has_unknown_times():
    frame = pd.DataFrame({"when": pd.to_datetime(["2024-01-01", None, "2024-01-03"]), "a": [1, 2, 3]})
    with pytest.raises(ValueError, match="time must be a column of X; got 'day'"):
        list(ForwardSplit(2, time="day").split(frame))
    with pytest.raises(ValueError, match="column 'when' must be known for each row; got NaT in row 1"):
        list(ForwardSplit(2, time="when").split(frame))


# Estimators and searches


def drifting(n=900, seed=0):
    """Rows in random order, whose day says how they are distributed; and their days."""
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 90, n).astype(float)
    y = (rng.random(n) < 0.3).astype(int)
    X = rng.standard_normal((n, 4)) + y[:, None] * np.array([1.0, 0.5, 0.0, 0.0]) + day[:, None] / 90
    return X, y, day


ESTIMATORS = [
    PartialAUCClassifierCV(max_fpr=0.2, Cs=(0.3, 3.0)),
    PartialAUCClassifierCV(max_fpr=1.0, loss="tight", Cs=(0.3, 3.0)),
    pytest.param(
        BoostedClassifier("roc_auc", n_estimators=20, max_leaf_nodes=4, objective="binary", n_models=1, random_state=0),
        marks=pytest.mark.filterwarnings("ignore"),
    ),
    FPRThresholdClassifier(LogisticRegression(), 0.1),
    TPRThresholdClassifier(LogisticRegression(), 0.8),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
def test_an_estimator_with_folds_takes_splits_forward_in_time(model, grouped):
    if isinstance(model, BoostedClassifier):
        pytest.importorskip("lightgbm")
    X, y, day = drifting()
    groups = np.random.default_rng(1).integers(0, 3000, y.size) if grouped else None
    known = {"groups": groups} if grouped else {}
    splitter = ForwardSplit(3, time=day, gap=2.0)
    splits = list(splitter.split(X, y, groups))
    if grouped:
        assert all(not np.intersect1d(groups[train], groups[test]).size for train, test in splits)
    fitted = clone(model).set_params(cv=splitter).fit(X, y, **known)
    if hasattr(model, "threshold_") or "Threshold" in type(model).__name__:
        scores, rows = [], []
        for train, test in splits:
            scores.append(LogisticRegression().fit(X[train], y[train]).decision_function(X[test]))
            rows.append(test)
        scores, labels = np.concatenate(scores), y[np.concatenate(rows)]
        flagged = scores > fitted.threshold_
        if isinstance(model, FPRThresholdClassifier):
            n = int(np.sum(labels == 0))
            assert fitted.n_negatives_ == n < np.sum(y == 0)
            assert np.sum(flagged[labels == 0]) == np.floor(0.1 * n)
        else:
            m = int(np.sum(labels == 1))
            assert fitted.n_positives_ == m < np.sum(y == 1)
            assert np.sum(flagged[labels == 1]) == np.ceil(0.8 * m)
        np.testing.assert_array_equal(fitted.estimator_.coef_, LogisticRegression().fit(X, y).coef_)
    else:
        by_list = clone(model).set_params(cv=splits).fit(X, y)
        np.testing.assert_array_equal(fitted.decision_function(X), by_list.decision_function(X))


def test_the_threshold_of_time_series_split_is_that_of_the_same_splits_forward():
    X, y, day = drifting()
    order = np.argsort(day, kind="stable")
    X, y = X[order], y[order]
    first, second = (
        FPRThresholdClassifier(LogisticRegression(), 0.1, cv=cv).fit(X, y)
        for cv in (ForwardSplit(4), TimeSeriesSplit(4))
    )
    assert first.threshold_ == second.threshold_
    assert first.n_negatives_ == second.n_negatives_


def test_held_out_periods_of_one_class_are_an_error():
    X, y = np.arange(40.0)[:, None], (np.arange(40) < 9).astype(int)
    y[0] = 0
    with pytest.raises(ValueError, match="the rows that cv holds out must have both classes; got 0 only, in 30 rows"):
        FPRThresholdClassifier(LogisticRegression(), 0.2, cv=ForwardSplit(3)).fit(X, y)


def test_the_weights_of_held_out_periods_count():
    X, y, day = drifting()
    weight = np.random.default_rng(2).integers(1, 4, y.size)
    cv = ForwardSplit(3, time=day)
    model = FPRThresholdClassifier(LogisticRegression(), 0.1, cv=cv).fit(X, y, sample_weight=weight)
    flagged = total = 0
    for train, test in cv.split(X):
        fitted = LogisticRegression().fit(X[train], y[train], sample_weight=weight[train])
        negative = test[y[test] == 0]
        above = fitted.decision_function(X[negative]) > model.threshold_
        flagged, total = flagged + weight[negative][above].sum(), total + weight[negative].sum()
    assert 0.1 - 4 / total < flagged / total <= 0.1


def test_the_model_of_forward_folds_is_fitted_to_the_latest_rows_too():
    X, y, day = drifting()
    cv = ForwardSplit(3, time=day)
    last = np.flatnonzero(day >= min(day[test].min() for _, test in list(cv.split(X))[-1:]))
    model = PartialAUCClassifierCV(max_fpr=0.2, Cs=(0.3, 3.0), cv=cv)
    moved = X.copy()
    moved[last, 2] += 2.0 * y[last]
    before, after = (clone(model).fit(rows, y).coef_ for rows in (X, moved))
    assert not np.allclose(before, after)
    assert after[0, 2] > before[0, 2] + 0.1 * np.linalg.norm(before)
    # Folds that hold out each row keep the mean of their models.
    assert PartialAUCClassifierCV(max_fpr=0.2, Cs=(0.3,), cv=3).fit(X, y).scores_.shape == (3, 2)


@pytest.mark.parametrize("routing", [False, True])
def test_a_search_and_a_score_take_the_splits_with_the_name_of_a_column(routing):
    X, y, day = drifting()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        when=pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")
    )
    groups = np.random.default_rng(1).integers(0, 3000, y.size)
    model = make_pipeline(FunctionTransformer(lambda rows: rows[list("abcd")]), PartialAUCClassifier(max_fpr=0.2))
    cv = ForwardSplit(3, time="when", gap="2d")
    splits = list(cv.split(frame, y, groups))
    assert [test.size for _, test in splits] == [
        test.size for _, test in ForwardSplit(3, time=day, gap=2).split(X, y, groups)
    ]
    grid = {"partialaucclassifier__C": [0.1, 1.0]}
    with config_context(enable_metadata_routing=routing):
        search = GridSearchCV(model, grid, cv=cv, scoring="roc_auc").fit(frame, y, groups=groups)
        by_list = GridSearchCV(model, grid, cv=splits, scoring="roc_auc").fit(frame, y)
        assert search.n_splits_ == 3
        for key in ("mean_test_score", "split0_test_score"):
            np.testing.assert_array_equal(search.cv_results_[key], by_list.cv_results_[key])
        known = {"params": {"groups": groups}} if routing else {"groups": groups}
        scores = cross_val_score(model, frame, y, cv=cv, scoring="roc_auc", **known)
        np.testing.assert_array_equal(scores, cross_val_score(model, frame, y, cv=splits, scoring="roc_auc"))


def test_a_gap_is_a_number_a_span_or_text():
    assert [check_gap(gap) for gap in (None, "5", 2.5)] == [0, 5.0, 2.5]
    assert check_gap(" 1.5h ") == np.timedelta64(90, "m") == check_gap(pd.Timedelta(minutes=90))
    assert check_gap("1w") == np.timedelta64(7, "D")


def test_folds_that_train_on_some_rows_only_keep_the_mean_of_their_models():
    """As the folds of a large table, whose training parts are random samples."""
    X, y, _ = drifting(1200)
    rng = np.random.default_rng(3)
    folds = [(np.sort(rng.choice(a, 300, replace=False)), b) for a, b in StratifiedKFold(3).split(X, y)]
    assert np.unique(np.concatenate([train for train, _ in folds])).size < 1000
    options = {"max_fpr": 1.0, "loss": "tight", "tol": 1e-6}
    model = PartialAUCClassifierCV(Cs=(1.0,), cv=folds, **options).fit(X, y)
    units = []
    for train, _ in folds:
        w = PartialAUCClassifier(C=1.0, **options).fit(X[train], y[train]).coef_[0]
        units.append(w / np.std(X[train] @ w))
    np.testing.assert_allclose(model.coef_[0], np.mean(units, axis=0), rtol=1e-3)
    # Splits forward in time: the fit to all rows.
    model = PartialAUCClassifierCV(Cs=(1.0,), cv=ForwardSplit(3), **options).fit(X, y)
    w = PartialAUCClassifier(C=1.0, **options).fit(X, y).coef_[0]
    np.testing.assert_allclose(model.coef_[0], w / np.std(X @ w), rtol=1e-3)
