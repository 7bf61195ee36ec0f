"""The threshold behind ``predict``: the training FPR at its limit, or the best TPR - FPR."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.linear_models import every_model, fresh, rates, sample
from helpers.thresholds import candidates, scored_rows
from rocmax import AUCClassifier, PartialAUCClassifier
from rocmax.measures import at_fpr, best_youden

DUST = 1e-9


@given(scored_rows(), st.floats(0.001, 1.0) | st.sampled_from([0.07, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]))
@settings(max_examples=200, deadline=None)
def test_fpr_is_at_its_limit(rows, max_fpr):
    scores, positive, weight = rows
    accepted = scores > at_fpr(scores, positive, weight, max_fpr)
    allowed = [a for a in candidates(scores) if rates(positive, a, weight)[0] <= max_fpr * (1 + DUST)]
    np.testing.assert_array_equal(accepted, allowed[-1])


@given(scored_rows())
@settings(max_examples=200, deadline=None)
def test_youden_is_the_best_of_all_thresholds(rows):
    scores, positive, weight = rows
    accepted = scores > best_youden(scores, positive, weight)
    differences = [tpr - fpr for fpr, tpr in (rates(positive, a, weight) for a in candidates(scores))]
    fpr, tpr = rates(positive, accepted, weight)
    assert tpr - fpr == pytest.approx(max(differences), abs=1e-8)
    # Of equally good thresholds the highest, whatever rounding says.
    first = next(i for i, difference in enumerate(differences) if difference >= max(differences) - 1e-8)
    assert accepted.sum() >= candidates(scores)[first].sum()


@pytest.mark.parametrize("rate", [0.07, 0.29, 0.57, 0.58])
def test_a_limit_that_is_a_whole_number_of_negatives_is_reached(rate):
    # 100 * 0.07 is above 7 and 100 * 0.29 below 29 in floating point.
    scores = np.arange(101.0)
    positive = np.zeros(101, dtype=bool)
    positive[50] = True
    accepted = scores > at_fpr(scores, positive, None, rate)
    assert accepted[~positive].sum() == round(100 * rate)


def split(model, X, y, weight=None):
    """The accepted rows, and those that the next lower threshold would accept."""
    positive = y == (1 if model.pos_label is None else model.pos_label)
    sign = 1.0 if model.pos_label in (None, 1) else -1.0
    score = sign * model.decision_function(X)
    accepted = model.predict(X) == (1 if sign > 0 else 0)
    np.testing.assert_array_equal(accepted, score > 0)
    rest = score[~accepted]
    following = score >= rest.max() if rest.size else np.ones(score.size, dtype=bool)
    return rates(positive, accepted, weight), rates(positive, following, weight)


@pytest.mark.parametrize("loss", ["auto", "tight", "structural", "hinge"])
@pytest.mark.parametrize("bounds", [(0.0, 0.2), (0.1, 0.33), (0.0, 1.0)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pos_label", [None, 0])
def test_predictions_use_the_allowed_fpr(loss, bounds, weighted, pos_label):
    X, y = sample(n=80, seed=1, shift=2.5, share=0.45)
    weight = np.random.default_rng(0).uniform(0.2, 4.0, 80) if weighted else None
    model = PartialAUCClassifier(*bounds, loss=loss, pos_label=pos_label).fit(X, y, weight)
    (fpr, tpr), (next_fpr, _) = split(model, X, y, weight)
    assert fpr <= bounds[1] * (1 + DUST)
    assert next_fpr > bounds[1] or bounds[1] == 1.0
    assert tpr > 0.5


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pos_label", [None, 0])
def test_predictions_have_the_best_difference_of_rates(loss, weighted, pos_label):
    X, y = sample(n=80, seed=2, shift=1.5)
    weight = np.random.default_rng(1).uniform(0.2, 4.0, 80) if weighted else None
    model = AUCClassifier(loss, pos_label=pos_label).fit(X, y, weight)
    (fpr, tpr), _ = split(model, X, y, weight)
    positive = y == (1 if pos_label is None else pos_label)
    score = model.decision_function(X) * (1.0 if pos_label is None else -1.0)
    best = max(b - a for a, b in (rates(positive, accepted, weight) for accepted in candidates(score)))
    assert tpr - fpr == pytest.approx(best, abs=1e-9)
    assert best > 0.4


@pytest.mark.parametrize("loss", ["auto", "tight"])
def test_ties_are_accepted_together(loss):
    X, y = sample(n=120, d=1, seed=3, shift=2.5)
    X = np.round(X)
    model = PartialAUCClassifier(0.0, 0.25, loss=loss, C=10.0).fit(X, y)
    (fpr, _), (next_fpr, _) = split(model, X, y)
    assert fpr <= 0.25 < next_fpr
    for value in np.unique(X):
        assert np.unique(model.predict(X[X[:, 0] == value])).size == 1


@every_model
def test_rows_of_weight_zero_have_no_say(model):
    X, y = sample(n=60, seed=4)
    weight = np.ones(60)
    weight[:20] = 0.0
    with_rows = fresh(model).fit(X, y, weight)
    without = fresh(model).fit(X[20:], y[20:], weight[20:])
    np.testing.assert_array_equal(with_rows.intercept_, without.intercept_)
    np.testing.assert_array_equal(with_rows.predict(X), without.predict(X))


def two_valued_rows(seed):
    """Rows of two-valued features: many identical rows."""
    rng = np.random.default_rng(seed)
    d, n = rng.integers(2, 9), rng.integers(20, 120)
    X = rng.integers(0, 2, size=(n, d)) + 0.1
    y = (X @ rng.normal(size=d) + rng.normal(size=n) > 0).astype(int)
    return X, y


@pytest.mark.parametrize("seed", [45, 81, 148, 202, 207, 251])
@pytest.mark.parametrize("kind", [np.ascontiguousarray, np.asfortranarray, pd.DataFrame])
@pytest.mark.parametrize("model", [PartialAUCClassifier(max_fpr=0.2), AUCClassifier(C=10.0)], ids=["partial", "auc"])
def test_identical_rows_are_predicted_alike(seed, kind, model):
    # A product with a matrix in Fortran order, as data frames hold it, rounds identical rows differently.
    X, y = two_valued_rows(seed)
    given_X = kind(X)
    model = fresh(model).fit(given_X, y)
    predicted = model.predict(given_X)
    same = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    assert all(np.unique(predicted[same == group]).size == 1 for group in range(same.max() + 1))
    one_by_one = [model.predict(given_X[i : i + 1])[0] for i in range(len(y))]
    np.testing.assert_array_equal(one_by_one, predicted)


@pytest.mark.parametrize("seed", range(12))
def test_the_score_does_not_depend_on_memory_order(seed):
    X, y = two_valued_rows(seed)
    model = PartialAUCClassifier(max_fpr=0.2).fit(X, y)
    assert model.score(np.asfortranarray(X), y) == pytest.approx(model.score(X, y), abs=1e-9)


@pytest.mark.parametrize("lowest", [0.0, 1e-12, -1e-3, -5.0, 1e12])
def test_a_threshold_without_a_limit_is_below_the_lowest_score(lowest):
    scores = lowest + np.array([0.0, 1.0, 2.0, 3.0]) * max(1.0, abs(lowest))
    assert at_fpr(scores, np.array([False, True, False, True]), None, 1.0) < lowest
