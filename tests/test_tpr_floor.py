"""Estimators with a lower limit on the true-positive rate."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from oracles import brute
from rocmax import (
    FollowTheLeaderClassifier,
    MiniBatchClassifier,
    PartialAUCClassifier,
    PartialAUCClassifierCV,
)
from rocmax.losses import PartialAUCRamp, PartialAUCTight
from rocmax.measures import PartialAUCMeasure, find_measure

CORNERS = [{"min_tpr": 0.8, "max_fpr": 1.0}, {"min_tpr": 0.5, "max_fpr": 0.1}]
every_corner = pytest.mark.parametrize("corner", CORNERS, ids=lambda corner: f"TPR>={corner['min_tpr']}")
LOSSES = ["auto", "tight", "structural", "hinge"]


def data(seed=0, n=400):
    return make_classification(n_samples=n, n_features=6, weights=[0.7], class_sep=1.6, random_state=seed)


def models(corner):
    cases = [PartialAUCClassifier(loss=loss, **corner) for loss in LOSSES]
    cases += [PartialAUCClassifier(constraint=name, radius=1.0, **corner) for name in ("l2", "l1", "elasticnet")]
    cases += [PartialAUCClassifier(constraint="group", radius=1.0, groups=[0, 0, 0, 1, 1, 1], **corner)]
    cases += [PartialAUCClassifier(loss="tight", solver="cutting_plane", tol=1e-3, **corner)]
    cases += [PartialAUCClassifierCV(Cs=[1.0], cv=3, **corner), PartialAUCClassifierCV(loss="tight", cv=3, **corner)]
    cases += [MiniBatchClassifier(random_state=0, **corner)]
    cases += [FollowTheLeaderClassifier(random_state=0, n_batches=3, **corner)]
    return cases


@pytest.mark.slow
@every_corner
def test_every_fit_scores_by_the_corner_and_reaches_the_floor(corner):
    X, y = data()
    for model in models(corner):
        model.fit(X, y)
        expected = brute.partial_auc(model.decision_function(X), y, **corner)
        assert model.score(X, y) == pytest.approx(expected, abs=1e-9), model
        assert expected > 0.6, model
        rate = float((model.predict(X[y == 1]) == 1).mean())
        # One positive less would miss the floor.
        assert corner["min_tpr"] <= rate < corner["min_tpr"] + 1.5 / y.sum(), model


@every_corner
def test_sparse_rows_and_weights_as_copies(corner):
    X, y = data(1, 150)
    weight = np.random.default_rng(0).integers(1, 4, y.size)
    for loss in ("tight", "auto"):
        model = PartialAUCClassifier(loss=loss, tol=1e-6, **corner)
        dense = model.fit(X, y, sample_weight=weight).coef_.copy()
        copies = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        np.testing.assert_allclose(copies.coef_, dense, rtol=1e-2, atol=1e-3 * np.abs(dense).max())
        assert copies.objective_ == pytest.approx(model.objective_, rel=1e-5)
    fits = (clone(model).set_params(loss="tight").fit(form(X), y) for form in (np.array, sparse.csr_array))
    dense, rows = fits
    assert rows.objective_ == pytest.approx(dense.objective_, rel=2e-3)


@pytest.mark.parametrize("loss", ["tight"])
def test_swapped_classes_and_signs_give_the_same_weights(loss):
    # The optimum above a TPR of 0.7 is the optimum below an FPR of 0.3 of the other class and the opposite features.
    X, y = data(2)
    above = PartialAUCClassifier(loss=loss, min_tpr=0.7, max_fpr=1.0, tol=1e-7).fit(X, y)
    below = PartialAUCClassifier(loss=loss, max_fpr=0.3, tol=1e-7).fit(-X, 1 - y)
    np.testing.assert_allclose(above.coef_, below.coef_, rtol=1e-3, atol=1e-4)
    assert above.score(X, y) == pytest.approx(below.score(-X, 1 - y), abs=2e-3)


@every_corner
def test_the_fit_is_continuous_where_the_floor_reaches_zero(corner):
    # Without a floor, and with one that excludes a millionth of a positive, different code computes the loss.
    X, y = data(3)
    for loss in ("tight", "hinge"):
        model = PartialAUCClassifier(max_fpr=corner["max_fpr"], loss=loss, tol=1e-6)
        without, tiny = (clone(model).set_params(min_tpr=floor).fit(X, y) for floor in (0.0, 1e-6))
        assert tiny.objective_ == pytest.approx(without.objective_, rel=1e-4)
        np.testing.assert_allclose(tiny.coef_, without.coef_, atol=0.02 * np.abs(without.coef_).max())


def without_a_floor(**floor):
    """Return one small model of every kind that takes a floor."""
    models = {loss: PartialAUCClassifier(loss=loss, **floor) for loss in LOSSES}
    models["window, not from 0"] = PartialAUCClassifier(0.05, 0.4, **floor)
    models["constraint"] = PartialAUCClassifier(loss="tight", constraint="l1", radius=1.0, **floor)
    models["cutting planes"] = PartialAUCClassifier(loss="tight", solver="cutting_plane", **floor)
    models["CV"] = PartialAUCClassifierCV(cv=3, **floor)
    models["CV, tight"] = PartialAUCClassifierCV(loss="tight", cv=3, **floor)
    models["mini-batches"] = MiniBatchClassifier(batch_size=50, max_iter=2, random_state=0, **floor)
    models["FTRL"] = FollowTheLeaderClassifier(n_batches=3, random_state=0, **floor)
    return models


@pytest.mark.parametrize("name", list(without_a_floor()))
def test_a_floor_of_zero_gives_the_same_model_bit_for_bit(name, monkeypatch):
    X, y = data(4, 150)
    expected = without_a_floor()[name].fit(X, y)

    def refuse(*args, **options):
        raise AssertionError("the code for a floor has run")

    # The selection of positives, and the thresholds that reach a true-positive rate.
    monkeypatch.setattr("rocmax.losses.ranks._Mirrored", refuse)
    for threshold in ("at_tpr", "lowest_accepted"):
        monkeypatch.setattr(f"rocmax.measures.{threshold}", refuse)
    for floor in (0.0, 0):
        model = without_a_floor(min_tpr=floor)[name].fit(X, y)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.intercept_, expected.intercept_)
        assert model.score(X, y) == expected.score(X, y)
    with pytest.raises(AssertionError, match="the code for a floor has run"):
        without_a_floor(min_tpr=0.5)[name].fit(X, y)


@every_corner
def test_auto_is_not_worse_than_its_start_on_the_training_rows(corner):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    measure = PartialAUCMeasure(**corner)
    for seed in range(3):
        X, y = make_classification(n_samples=500, weights=[0.9], class_sep=0.5, flip_y=0.1, random_state=seed)
        start = LogisticRegression().fit(StandardScaler().fit_transform(X), y)
        before = measure.score(y, start.decision_function(StandardScaler().fit_transform(X)))
        assert PartialAUCClassifier(C=10.0, **corner).fit(X, y).score(X, y) >= before - 1e-9


@every_corner
def test_auto_does_not_collapse_where_the_tight_loss_does(corner):
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [200, 800])
    X = rng.standard_normal((1000, 3)) + np.outer(y, [0.6, 0.3, 0.0])
    with pytest.warns(ConvergenceWarning, match="the mean of the lowest positives above the mean of the negatives"):
        PartialAUCClassifier(loss="tight", **corner).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PartialAUCClassifier(**corner).fit(X, y)
    assert model.coef_.any()


def test_the_tight_loss_is_a_candidate_for_the_start():
    """A fifth of the positives decides the area above a TPR of 0.8; the others are easy in another direction."""
    rng = np.random.default_rng(0)
    y = (np.arange(3000) % 10 == 0).astype(int)
    X = rng.standard_normal((3000, 4))
    X[:, 0] += 4 * y * (np.arange(3000) % 50 != 0)
    X[:, 1] += 2 * y
    model = PartialAUCClassifierCV(min_tpr=0.8, max_fpr=1.0, cv=5).fit(X, y)
    assert any(name.startswith("tight") for name in model.start_scores_)


def test_the_measure_trains_with_its_floor():
    measure = find_measure("partial_auc", min_tpr=0.8)
    assert measure.convex_loss() == PartialAUCTight(0.0, 1.0, 0.8)
    assert measure.soft_loss(0.3) == PartialAUCRamp(0.0, 1.0, 0.3, margin=0.0, min_tpr=0.8)
    X, y = data()
    for estimator in (MiniBatchClassifier, FollowTheLeaderClassifier):
        by_name = estimator("partial_auc", max_fpr=1.0, min_tpr=0.8, random_state=0).fit(X, y)
        by_object = estimator(measure, random_state=0).fit(X, y)
        assert (by_name.coef_ == by_object.coef_).all()
        assert (by_name.intercept_ == by_object.intercept_).all()


def test_ties_and_weights_at_the_threshold():
    measure = PartialAUCMeasure(min_tpr=0.6)
    scores = np.array([3.0, 2.0, 2.0, 1.0, 0.0, 2.0, 0.5])
    positive = np.array([True, True, True, True, True, False, False])
    threshold = measure.threshold(scores, positive)
    assert (scores[positive] > threshold).mean() == pytest.approx(0.6)
    # With weight 3 the highest positive is not enough: 3 of 7 < 0.6, and the ties come together.
    threshold = measure.threshold(scores, positive, np.array([3.0, 1, 1, 1, 1, 1, 1]))
    assert 1.0 <= threshold < 2.0


@pytest.mark.parametrize(
    "model",
    [PartialAUCClassifier(), PartialAUCClassifierCV(), MiniBatchClassifier(), FollowTheLeaderClassifier()],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("floor", [-0.1, 1.0, "0.5", None, float("nan")])
def test_a_floor_outside_its_range_is_an_error(model, floor):
    X, y = data(0, 60)
    with pytest.raises(ValueError, match="min_tpr must be at least 0 and below 1; got "):
        clone(model).set_params(min_tpr=floor).fit(X, y)


def test_a_model_saved_without_the_parameter_still_works():
    X, y = data()
    for model in (PartialAUCClassifier(), MiniBatchClassifier(random_state=0)):
        model.fit(X, y)
        expected = model.score(X, y)
        del model.__dict__["min_tpr"]
        assert model.score(X, y) == expected
