"""The cross-validated default: its rule of choice, its folds, and what it keeps."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from rocmax import PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.estimators.cross_validated import most_cautious


def sample(seed=0, n=600, d=4):
    """Positives in two groups, one of which lies where the negatives have a long tail."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 5 == 0).astype(int)
    X = rng.standard_normal((n, d))
    X[:, 0] += 1.2 * y
    X[:, 1] += np.where((y == 0) & (rng.random(n) < 0.1), 3.0, 0.0)
    return X, y


def test_the_most_cautious_within_one_standard_error_of_the_best():
    cautious, best, wild = np.zeros(10), np.ones(10), np.full(10, 0.5)
    assert most_cautious(np.column_stack([cautious, best, wild])) == 1
    noise = np.resize([3.0, -2.9], 10)
    assert most_cautious(np.column_stack([cautious, cautious + 0.05 + noise])) == 0
    assert most_cautious(np.column_stack([cautious, best + 0.01 * noise])) == 1


def test_the_error_is_that_of_the_paired_difference():
    rng = np.random.default_rng(0)
    level = rng.normal(size=(10, 1))  # folds differ a lot, models hardly
    assert most_cautious(level + np.array([[0.0, 0.1, 0.1]])) == 1


def test_scores_are_those_of_the_plain_estimator_on_the_same_folds():
    X, y = sample()
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = PartialAUCClassifierCV(max_fpr=0.2, Cs=[1.0], cv=folds).fit(X, y)
    assert model.Cs_.tolist() == [0.0, 1.0]
    assert model.scores_.shape == (3, 2)
    if model.start_ == ("logistic", 1.0):
        plain = [PartialAUCClassifier(max_fpr=0.2, C=1.0).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]
        np.testing.assert_allclose(model.scores_[:, 1], plain, atol=0.02)
    best = max(model.start_scores_, key=model.start_scores_.get)
    assert model.start_ == best
    np.testing.assert_allclose(model.scores_[:, 0].mean(), model.start_scores_[best])


def test_the_model_is_the_mean_of_the_folds_and_not_far_from_a_plain_fit():
    X, y = sample()
    model = PartialAUCClassifierCV(max_fpr=0.2, random_state=0).fit(X, y)
    plain = PartialAUCClassifier(max_fpr=0.2, C=max(model.C_, 1e-9)).fit(X, y)
    correlation = np.corrcoef(model.decision_function(X), plain.decision_function(X))[0, 1]
    assert correlation > 0.95
    assert model.score(X, y) > 0.9 * plain.score(X, y)
    assert (model.predict(X[y == 0]) == 1).mean() <= 0.2


def test_a_seed_repeats_the_fit_and_jobs_do_not_change_it():
    X, y = sample(n=300)
    one, two = (
        PartialAUCClassifierCV(max_fpr=0.2, Cs=[1.0, 10.0], random_state=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.scores_, two.scores_)


def test_given_splits_count_rows_of_weight_zero():
    X, y = sample(n=200)
    weight = np.ones(200)
    weight[::7] = 0.0
    kept = np.flatnonzero(weight)
    folds = list(StratifiedKFold(2).split(X, y))
    place = np.full(200, -1)
    place[kept] = np.arange(kept.size)
    same = [tuple(place[part][place[part] >= 0] for part in fold) for fold in folds]
    one = PartialAUCClassifierCV(max_fpr=0.3, Cs=[1.0], cv=folds).fit(X, y, weight)
    two = PartialAUCClassifierCV(max_fpr=0.3, Cs=[1.0], cv=same).fit(X[kept], y[kept])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6)


@pytest.mark.parametrize("values", [[], [1.0, -1.0], [[1.0]], ["a"], 3.0])
def test_bad_strengths_are_refused(values):
    X, y = sample(n=60)
    with pytest.raises(ValueError, match="Cs needs"):
        PartialAUCClassifierCV(Cs=values).fit(X, y)


def test_one_row_of_a_class_cannot_be_cross_validated():
    X, _ = sample(n=60)
    with pytest.raises(ValueError, match="two rows of each class at least; got 1"):
        PartialAUCClassifierCV().fit(X[4:10], (np.arange(6) == 0).astype(int))
