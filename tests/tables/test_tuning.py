"""Tuning: on the training rows only, in folds of bounded size, and better for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from helpers.tables import loud, make_model, payments, training_of
from rocmax import metrics
from rocmax.linear.auc import AUCClassifier
from rocmax.linear.partial_auc import PartialAUCClassifierCV
from rocmax.metrics import make_scorer
from rocmax.tables import Limits
from rocmax.tables import tune as tuning
from rocmax.tables.fit import FitSettings, fit_rows
from rocmax.tables.preprocess import common_levels
from rocmax.tables.tune import (
    NO_LIMIT,
    RULES,
    TuningRules,
    boosted_splits,
    fit_tuned,
    make_classifier,
    make_preprocessing,
    prepared,
    tuning_splits,
)


@settings(deadline=None, max_examples=100)
@given(
    positive=st.lists(st.booleans(), min_size=2, max_size=80).map(np.array),
    n_groups=st.none() | st.integers(1, 10),
    seed=st.integers(0, 2**32 - 1),
)
@example(positive=np.arange(20) % 2 == 0, n_groups=None, seed=2**32 - 1)
@example(positive=np.arange(20) % 2 == 0, n_groups=5, seed=2**32 - 1)
def test_folds_are_apart_and_have_both_classes(positive, n_groups, seed):
    rng = np.random.default_rng(0)
    groups = None if n_groups is None else rng.integers(0, n_groups, positive.size)
    for train, test in tuning_splits(positive, groups, Limits(0.1), seed):
        assert np.intersect1d(train, test).size == 0
        assert all(0 < positive[part].sum() < part.size for part in (train, test))
        assert groups is None or not set(groups[train]) & set(groups[test])


def test_every_row_is_left_out_as_often_as_every_other():
    positive = np.arange(200) % 5 == 0
    splits = tuning_splits(positive, None, Limits(0.1), 0)
    assert len(splits) == 10
    assert np.bincount(np.concatenate([test for _, test in splits])).tolist() == [2] * 200
    assert all(train.size == 160 for train, _ in splits)


@pytest.mark.parametrize(("n_rows", "n_folds"), [(5_000, 10), (5_001, 5), (20_000, 5), (20_001, 3)])
def test_more_rows_fewer_folds(n_rows, n_folds):
    assert len(tuning_splits(np.arange(n_rows) % 2 == 0, None, Limits(0.1), 0)) == n_folds


@pytest.mark.parametrize(("width", "most"), [(1.0, 20_000), (0.1, 20_000), (0.01, 30_000), (0.001, 300_000)])
def test_a_fold_of_a_large_table_keeps_the_rare_class_and_the_window(width, most):
    positive = np.arange(1_000_000) % 200 == 0
    for train, test in tuning_splits(positive, None, Limits(0.1 + width, min_fpr=0.1) if width < 1 else Limits(), 0):
        assert positive[train].sum() in (3333, 3334)
        assert abs((~positive[train]).sum() - most) <= 1
        assert test.size in (333_333, 333_334)
        assert np.all(np.diff(train) > 0)


def test_too_few_rows_are_not_split():
    assert tuning_splits(np.array([True, False, False]), None, Limits(0.1), 0) == []
    assert tuning_splits(np.arange(9) % 2 == 0, np.zeros(9), Limits(0.1), 0) == []


def test_the_grid_is_searched_as_by_hand():
    frame = payments(400)
    X, labels = frame[["amount", "age", "country"]], frame["label"].to_numpy()
    model, grid = make_model("auc", X, "fraud"), {"C": [0.1, 1.0, 10.0]}
    splits = tuning_splits(labels == "fraud", None, Limits(), 0)
    fitted, facts, by_fold = fit_tuned(model, X, labels, splits, make_scorer("roc_auc", pos_label="fraud"), grid)
    rows = model.named_steps["table"].fit_transform(X)
    means = {}
    for C in grid["C"]:
        scores = []
        for train, test in splits:
            trial = AUCClassifier(C=C, pos_label="fraud").fit(rows[train], labels[train])
            scores.append(roc_auc_score(labels[test] == "fraud", -trial.decision_function(rows[test])))
        means[C] = np.mean(scores)
    best = max(means, key=means.get)
    assert facts["chosen"] == {"C": best}
    assert facts["score"] == pytest.approx(means[best])
    assert np.mean(by_fold) == pytest.approx(means[best])
    again = AUCClassifier(C=best, pos_label="fraud").fit(rows, labels)
    np.testing.assert_allclose(fitted.decision_function(X), again.decision_function(rows))


def training(frame, positive, groups=None):
    return training_of(frame.drop(columns="label"), frame["label"], positive, groups)


def fit_settings(max_fpr, model, measure="partial_auc", tune=True):
    return FitSettings(Limits(max_fpr, measure=measure), model, 0.25, 0, tune)


@pytest.mark.parametrize(
    ("model", "measure"), [("linear", "partial_auc"), ("additive", "tpr_at_fpr"), ("svm", "partial_auc")]
)
def test_rows_held_out_do_not_enter_the_fit(model, measure):
    frame, options = loud(600), fit_settings(0.1, model, measure)
    found = fit_rows(training(frame, "1"), options)
    spoiled = frame.copy()
    spoiled.loc[found.parts.test, ["a", "b", "c", "d"]] = 1e3 * np.random.default_rng(0).normal(
        size=(found.parts.test.size, 4)
    )
    again = fit_rows(training(spoiled, "1"), options)
    np.testing.assert_array_equal(again.parts.test, found.parts.test)
    assert again.tuning == found.tuning
    np.testing.assert_array_equal(again.model.estimator_.predict(frame), found.model.estimator_.predict(frame))
    coefs = [entry.model.estimator_.named_steps["model"].coef_ for entry in (again, found)]
    np.testing.assert_array_equal(*coefs)


def test_tuning_finds_what_one_strength_misses():
    frame, new = loud(3000), loud(30_000, 1)
    reached = {}
    for tune in (False, True):
        found = fit_rows(training(frame, "1"), fit_settings(0.01, "linear", tune=tune))
        scores = found.model.decision_function(new.drop(columns="label"))
        reached[tune] = metrics.partial_auc_score(new["label"], scores, max_fpr=0.01)
    assert reached[True] > 0.1
    assert reached[True] > 3 * reached[False]
    classifier = found.model.estimator_.named_steps["model"]
    assert isinstance(classifier, PartialAUCClassifierCV)
    assert classifier.cv is None


def test_a_large_table_is_tuned_on_a_part_of_it(monkeypatch):
    monkeypatch.setattr(tuning, "RULES", replace(RULES, max_rows=200, max_in_window=1))
    frame = loud(3000)
    grouped = training(frame, "1", pd.Series(np.arange(3000) // 3).astype(str).to_numpy())
    found = fit_rows(grouped, fit_settings(0.05, "linear"))
    # About 225 positives in the training rows, 180 in a fold of five, and 200 of the others.
    assert 360 <= found.tuning["rows in a fold"] <= 400
    found = fit_rows(grouped, fit_settings(0.05, "logistic"))
    assert 360 <= found.tuning["rows in a fold"] <= 400
    assert found.tuning["chosen"]["C"] in found.tuning["tried"]["C"]


def test_many_rows_are_prepared_in_blocks_as_few_are(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=1000), "b": rng.choice(["x", "y", "z"], 1000)})
    X.loc[::7, "a"] = np.nan
    for name, dtype in (("linear", np.float32), ("additive", np.float32), ("boosted", np.float64)):
        kinds = {"a": "number", "b": "text"}
        tables = [make_preprocessing(name, kinds, common_levels(X, kinds)) for _ in range(2)]
        classifier = make_classifier(name, NO_LIMIT, "1", 0)
        whole = prepared(tables[0], X, classifier)
        with monkeypatch.context() as changed:
            # As many rows as there are, but one, so that the preprocessing is nearly that of all rows.
            changed.setattr("rocmax.tables.tune.RULES", TuningRules(block=999))
            blocks = prepared(tables[1], X, classifier)
        assert (whole.dtype, blocks.dtype) == (np.float64, dtype)
        np.testing.assert_allclose(blocks, whole, atol=0.02)


def test_sparse_rows_stay_sparse_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    kinds = dict.fromkeys("abcdef", "text")
    X = pd.DataFrame({name: rng.choice([f"{name}{i}" for i in range(9)], 1000) for name in kinds})
    tables = [make_preprocessing("linear", kinds, common_levels(X, kinds)) for _ in range(2)]
    classifier = make_classifier("linear", NO_LIMIT, "1", 0)
    monkeypatch.setattr("rocmax.tables.tune.RULES", TuningRules(block=100))
    found = prepared(tables[0], X, classifier)
    assert scipy.sparse.issparse(found)
    np.testing.assert_array_equal(found.toarray(), tables[1].fit_transform(X).toarray())


def test_a_search_of_trees_has_a_bounded_number_of_training_rows(monkeypatch):
    monkeypatch.setattr("rocmax.tables.tune.RULES", TuningRules(max_searched=20_000))
    positive = np.arange(40_000) % 20 == 0
    ((train, test),) = boosted_splits(positive, None, 0)
    assert (train.size, test.size) == (20_000, 10_000)
    assert np.all(np.diff(train) > 0)
    assert not np.isin(train, test).any()
