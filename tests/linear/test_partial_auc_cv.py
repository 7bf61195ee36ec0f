"""The cross-validated default: its rule of choice, its folds, and what it keeps."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rocmax import PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.linear import partial_auc
from rocmax.linear.partial_auc import Fold
from rocmax.metrics import partial_auc_score


def sample(seed=0, n=600, d=4):
    """Positives in two groups, one of which lies where the negatives have a long tail."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 5 == 0).astype(int)
    X = rng.standard_normal((n, d))
    X[:, 0] += 1.2 * y
    X[:, 1] += np.where((y == 0) & (rng.random(n) < 0.1), 3.0, 0.0)
    return X, y


def test_what_is_kept_agrees_with_the_scores():
    X, y = sample()
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = PartialAUCClassifierCV(max_fpr=0.2, Cs=[0.5, 1.0], cv=folds).fit(X, y)
    assert model.Cs_.tolist() == [0.0, 0.5, 1.0]
    assert model.scores_.shape == (3, 3)
    assert max(model.start_scores_, key=model.start_scores_.get) == model.start_
    assert model.Cs_[model.scores_.mean(axis=0).argmax()] == model.C_


def test_starts_are_those_models_on_standardised_rows():
    X, y = sample()
    X *= [1.0, 10.0, 0.1, 3.0]
    train, test = next(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = PartialAUCClassifierCV(max_fpr=0.2, Cs=[1.0], cv=[(train, test)]).fit(X, y)
    rivals = {
        "logistic, C=0.1": LogisticRegression(C=0.1),
        "balanced, C=1": LogisticRegression(C=1.0, class_weight="balanced"),
    }
    for spec, rival in rivals.items():
        pipeline = make_pipeline(StandardScaler(), rival).fit(X[train], y[train])
        score = partial_auc_score(y[test], pipeline.decision_function(X[test]), max_fpr=0.2)
        # One with class weights is kept only if it is not behind the others.
        found = model.start_scores_.get(spec, score) if "balanced" in spec else model.start_scores_[spec]
        assert found == pytest.approx(score, abs=5e-3), spec
        assert spec in model.start_scores_ or score < max(model.start_scores_.values())


def test_the_tight_loss_is_a_start_by_algorithm_1():
    X, y = sample()
    train, test = next(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = PartialAUCClassifierCV(max_fpr=0.2, Cs=[1.0], cv=[(train, test)]).fit(X, y)
    rival = PartialAUCClassifier(max_fpr=0.2, loss="tight", C=0.01, solver="cutting_plane", tol=1e-4, max_iter=30)
    pipeline = make_pipeline(StandardScaler(), rival).fit(X[train], y[train])
    score = partial_auc_score(y[test], pipeline.decision_function(X[test]), max_fpr=0.2)
    logistic = [value for name, value in model.start_scores_.items() if "tight" not in name]
    # It is kept, with its score, only if it is not behind.
    assert model.start_scores_.get("tight, C=0.01", score) == pytest.approx(score, abs=5e-3)
    assert ("tight, C=0.01" in model.start_scores_) == (score >= max(logistic))


@pytest.mark.parametrize(
    ("tight", "weights", "kept"),
    [
        ([0.4, 0.4, 0.4, 0.9, 0.9], 1.0, False),  # behind in each of the first three folds
        ([0.4, 0.4, 0.5, 0.9, 0.9], 1.0, True),
        ([0.9, 0.9, 0.0, 0.9, 0.9], 0.0, False),  # zero weights in one of them
    ],
)
def test_starts_with_the_tight_loss_are_dropped_after_the_first_folds(monkeypatch, tight, weights, kept):
    X, y = sample(n=200)
    splits = list(StratifiedKFold(5).split(X, y))
    places, fitted = {split[1][0]: k for k, split in enumerate(splits)}, []

    def starts(fold, specs):
        k = places[fold.test[0]]
        kinds = [kind for kind, _ in specs]
        fitted.append((k, kinds))
        scores = [{"logistic": 0.5, "balanced": 0.1, "tight": tight[k]}[kind] for kind in kinds]
        return scores, [np.full(4, weights if kind == "tight" and k == 2 else 1.0) for kind in kinds]

    monkeypatch.setattr(Fold, "starts", starts)
    model = PartialAUCClassifierCV(max_fpr=0.3, Cs=[1.0], cv=splits).fit(X, y)
    assert [k for k, kinds in fitted if "tight" in kinds] == (list(range(5)) if kept else [0, 1, 2])
    assert model.start_ == ("tight, C=0.01" if kept else "logistic, C=0.01")
    assert ("tight, C=1" in model.start_scores_) == kept
    assert "balanced, C=1" not in model.start_scores_


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


def test_many_values_in_single_precision_give_the_same_model(monkeypatch):
    X, y = sample(n=2600, d=40)
    # Other units, and far from zero.
    X = 10.0 * X + 1000.0
    many = PartialAUCClassifierCV(max_fpr=0.2, Cs=[1.0], random_state=0).fit(X, y)
    assert many.scores_.shape[0] == 5
    monkeypatch.setattr(partial_auc, "STARTS", replace(partial_auc.STARTS, few_values=10**9))
    folds = StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(0))
    few = PartialAUCClassifierCV(max_fpr=0.2, Cs=[1.0], cv=folds).fit(X, y)
    assert many.start_ == few.start_
    np.testing.assert_allclose(many.scores_, few.scores_, atol=2e-3)
    assert np.corrcoef(many.decision_function(X), few.decision_function(X))[0, 1] > 0.9999
    assert many.objective_ == pytest.approx(few.objective_, rel=1e-3)


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
    with pytest.raises(ValueError, match="Cs must be"):
        PartialAUCClassifierCV(Cs=values).fit(X, y)


def test_one_row_of_a_class_cannot_be_cross_validated():
    X, _ = sample(n=60)
    with pytest.raises(ValueError, match="each class must have at least two rows for cross-validation; got 1"):
        PartialAUCClassifierCV().fit(X[4:10], (np.arange(6) == 0).astype(int))
