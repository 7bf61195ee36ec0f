"""What a fitted linear classifier promises: its labels, score, objective, certificate and manners."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.linear_models import (
    ALL,
    CONVEX,
    MAIN,
    NOT_CONVEX,
    every_model,
    fresh,
    main_models,
    parametrize,
    rates,
    sample,
)
from oracles import brute
from rocmax import AUCClassifier, PartialAUCClassifier
from rocmax.metrics import make_scorer


def window(model):
    return (getattr(model, "min_fpr", 0.0), getattr(model, "max_fpr", 1.0))


def area(positive, scores, low, high, weight=None):
    """Mean height of the ROC curve on a window: its points by brute force, straight lines between them."""
    points = [(0.0, 0.0)] + [tuple(rates(positive, scores >= t, weight)) for t in sorted(set(scores), reverse=True)]
    ends = sorted({low, high} | {x for x, _ in points if low < x < high})
    total = 0.0
    for left, right in pairwise(ends):
        middle = (left + right) / 2
        (x0, y0), (x1, y1) = next((p, q) for p, q in pairwise(points) if p[0] < middle <= q[0] and q[0] > p[0])
        total += (right - left) * (y0 + (y1 - y0) * (middle - x0) / (x1 - x0))
    return total / (high - low)


def recomputed_loss(model, X, y, weight=None):
    """The loss by loops over pairs, from the weights alone."""
    scores = X @ model.coef_[0]
    if isinstance(model, AUCClassifier):
        function = {"hinge": brute.pairwise_hinge, "squared_hinge": brute.pairwise_squared_hinge}[model.loss]
        return function(scores, y, weight)[0]
    function = getattr(brute, f"partial_auc_{model.loss}")
    return function(scores, y, weight, *window(model))[0]


# Labels, decisions and the measure.


@every_model
@pytest.mark.parametrize("pos_label", [None, "no", "yes"])
def test_positive_decisions_are_the_second_class(model, pos_label):
    X, y = sample(seed=1)
    y = np.where(y == 1, "yes", "no")
    model = fresh(model, pos_label=pos_label).fit(X, y)
    decision = model.decision_function(X)
    assert model.classes_.tolist() == ["no", "yes"]
    assert decision.shape == (60,)
    np.testing.assert_array_equal(model.predict(X) == "yes", decision > 0)
    assert 0 < (decision > 0).sum() < 60
    assert roc_auc_score(y == "yes", decision) > 0.85


@every_model
def test_the_other_positive_class_is_the_problem_with_labels_exchanged(model):
    X, y = sample(seed=2)
    names = np.where(y == 1, "fraud", "ok")
    default = fresh(model).fit(X, y)
    fraud = fresh(model, pos_label="fraud").fit(X, names)
    np.testing.assert_array_equal(fraud.coef_, -default.coef_)
    np.testing.assert_array_equal(fraud.intercept_, -default.intercept_)
    np.testing.assert_array_equal(fraud.predict(X) == "fraud", default.predict(X) == 1)
    assert fraud.score(X, names) == default.score(X, y)
    assert fraud.objective_ == default.objective_


@every_model
def test_the_positive_class_matters_to_a_window(model):
    X, y = sample(seed=3)
    one = fresh(model, pos_label=1).fit(X, y)
    zero = fresh(model, pos_label=0).fit(X, y)
    if isinstance(model, AUCClassifier):
        np.testing.assert_allclose(one.coef_, zero.coef_, rtol=0.1, atol=0.05)
        assert one.score(X, y) == pytest.approx(zero.score(X, y), abs=0.02)
    else:
        assert not np.allclose(one.coef_ / np.abs(one.coef_).sum(), zero.coef_ / np.abs(zero.coef_).sum(), rtol=1e-3)


@every_model
@pytest.mark.parametrize("pos_label", [None, "fraud", "ok"])
def test_score_is_what_the_scorer_gives(model, pos_label):
    X, y = sample(seed=4)
    names = y if pos_label is None else np.where(y == 1, "fraud", "ok")
    weight = np.random.default_rng(0).integers(1, 4, y.size)
    low, high = window(model)
    scorer = make_scorer("partial_auc", min_fpr=low, max_fpr=high)
    model = fresh(model, pos_label=pos_label).fit(X[:40], names[:40])
    assert model.score(X[40:], names[40:]) == scorer(model, X[40:], names[40:])
    assert model.score(X, names, weight) == scorer(model, X, names, sample_weight=weight)


@every_model
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rounded", [False, True])
def test_score_is_the_area_by_brute_force(model, weighted, rounded):
    X, y = sample(seed=5, shift=1.5)
    X = np.round(X) if rounded else X
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.1, 3.0, y.size) if weighted else None
    model = fresh(model, pos_label=0).fit(X, y, weight)
    # Rows with equal scores differ by rounding error, others by much more. At the optimum a weight can be zero, and its
    # rounding error would decide about the order of rows that have no other feature.
    model.coef_ = np.round(model.coef_, 6)
    scores = -np.round(model.decision_function(X), 10)
    assert model.score(X, y, weight) == pytest.approx(area(y == 0, scores, *window(model), weight), abs=1e-12)


def test_score_of_the_auc_classifier_is_scikit_learn_s_auc():
    X, y = sample(seed=6)
    model = AUCClassifier().fit(X[:40], y[:40])
    assert model.score(X[40:], y[40:]) == pytest.approx(roc_auc_score(y[40:], model.decision_function(X[40:])))


@every_model
def test_decision_is_score_plus_intercept(model):
    X, y = sample(seed=7)
    model = fresh(model).fit(X, y)
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert model.n_features_in_ == 3
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-12)


# Objective, certificate, trace.


@parametrize([name for name in ALL if not name.startswith("auto")])
@pytest.mark.parametrize("C", [0.3, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_is_penalty_plus_loss(model, C, weighted):
    X, y = sample(n=40, seed=8, share=0.5)
    weight = np.random.default_rng(2).uniform(0.2, 2.0, 40) if weighted else None
    model = fresh(model, C=C).fit(X, y, weight)
    w = model.coef_[0]
    assert w.any()
    assert model.objective_ == pytest.approx(0.5 * w @ w + C * recomputed_loss(model, X, y, weight), rel=1e-9)


@parametrize([name for name in ALL if not name.startswith("auto")])
def test_objective_with_more_features_than_rows(model):
    X, y = sample(n=14, d=30, seed=9)
    model = fresh(model, C=5.0).fit(X, y)
    w = model.coef_[0]
    assert w.any()
    assert model.objective_ == pytest.approx(0.5 * w @ w + 5.0 * recomputed_loss(model, X, y), rel=1e-9)


@parametrize(CONVEX)
@pytest.mark.parametrize(("C", "tol"), [(0.1, 1e-3), (10.0, 1e-2), (10.0, 1e-6)])
def test_gap_is_certified(model, C, tol):
    X, y = sample(seed=10, shift=1.5)
    model = fresh(model, C=C, tol=tol).fit(X, y)
    precise = fresh(model, tol=1e-8, max_iter=3000).fit(X, y)
    assert 0 <= model.dual_gap_ <= tol * model.objective_
    assert model.objective_ >= precise.objective_ * (1 - 2e-8)
    assert model.objective_ - model.dual_gap_ <= precise.objective_ * (1 + 1e-12)


@parametrize(NOT_CONVEX)
def test_no_gap_without_convexity(model):
    X, y = sample(seed=11)
    model = fresh(model).fit(X, y)
    assert np.isnan(model.dual_gap_)
    assert np.isfinite(model.objective_)


@every_model
def test_trace_has_an_entry_per_iteration(model):
    X, y = sample(seed=12)
    model = fresh(model).fit(X, y)
    assert model.n_iter_ >= 1
    assert len(model.trace_) == model.n_iter_
    objectives = [entry.objective for entry in model.trace_]
    if getattr(model, "loss", None) != "auto":  # which may return its start after all
        assert objectives[-1] == pytest.approx(model.objective_, rel=1e-12)
    assert all(b <= a * (1 + 1e-3) for a, b in pairwise(objectives))
    passes = [entry.passes for entry in model.trace_]
    assert passes == sorted(passes)
    assert passes[-1] >= 1


@parametrize(CONVEX)
def test_a_larger_weight_of_the_loss_lowers_it(model):
    X, y = sample(seed=13, shift=1.0)
    fits = [fresh(model, C=C, tol=1e-5, max_iter=3000).fit(X, y) for C in (1.0, 3.0, 30.0)]
    losses = [recomputed_loss(fit, X, y) for fit in fits]
    assert losses[0] > losses[1] > losses[2]
    assert fits[0].objective_ < fits[1].objective_ < fits[2].objective_
    norms = [np.linalg.norm(fit.coef_) for fit in fits]
    assert norms[0] < norms[1] < norms[2]


# Laws of the data.


def decided_alike(one, two, X):
    """Whether predictions agree, but for rows at the threshold: an optimum ties negatives at the window's end."""
    decisions = [fit.decision_function(X) for fit in (one, two)]
    clear = np.all([np.abs(decision) > 1e-3 * np.ptp(decision) for decision in decisions], axis=0)
    return np.array_equal(one.predict(X)[clear], two.predict(X)[clear])


def close(one, two, X, rtol):
    """Scores within ``rtol`` of their spread, up to a shift."""
    scores = [X @ fit.coef_[0] for fit in (one, two)]
    scores = [s - s.mean() for s in scores]
    return np.abs(scores[0] - scores[1]).max() <= rtol * scores[0].std()


PRECISE = {"tol": 1e-8, "max_iter": 3000}


@main_models
def test_sparse_input_is_the_same_data(model):
    X, y = sample(n=50, seed=14)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    model = fresh(model, **PRECISE)
    dense = clone(model).fit(X, y)
    other = clone(model).fit(sparse.csr_array(X), y)
    assert close(dense, other, X, 1e-3)
    assert other.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    np.testing.assert_allclose(other.decision_function(X), other.decision_function(sparse.csr_array(X)), atol=1e-12)
    assert other.score(sparse.csr_array(X), y) == pytest.approx(dense.score(X, y), abs=0.01)


@main_models
def test_weights_are_repetitions(model):
    # Where CCCP ends at a kink, rounding decides between two stationary points; on these rows it does not.
    X, y = sample(n=40, seed=16)
    weight = np.random.default_rng(3).integers(0, 4, 40)
    model = fresh(model, **PRECISE)
    weighted = clone(model).fit(X, y, weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert close(weighted, repeated, X, 1e-4)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    assert weighted.score(X, y, weight) == pytest.approx(
        repeated.score(np.repeat(X, weight, axis=0), np.repeat(y, weight)), abs=1e-9
    )
    assert decided_alike(weighted, repeated, X)


@parametrize(CONVEX)
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_weights_does_not_matter_to_a_mean(model, factor):
    X, y = sample(n=40, seed=16)
    weight = np.random.default_rng(4).uniform(0.5, 2.0, 40)
    one = fresh(model, **PRECISE).fit(X, y, weight)
    two = fresh(model, **PRECISE).fit(X, y, factor * weight)
    assert close(one, two, X, 1e-4)
    assert decided_alike(one, two, X)


@main_models
def test_the_order_of_rows_does_not_matter(model):
    X, y = sample(seed=17)
    order = np.random.default_rng(5).permutation(60)
    one = fresh(model, **PRECISE).fit(X, y)
    two = fresh(model, **PRECISE).fit(X[order], y[order])
    if model.loss == "hinge" and np.isnan(one.dual_gap_):
        # Ties at the start of the window choose between stationary points, and rounding breaks ties.
        assert one.objective_ == pytest.approx(two.objective_, rel=0.02)
        return
    assert close(one, two, X, 1e-3)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-5)


@main_models
def test_a_shift_of_features_moves_only_the_threshold(model):
    X, y = sample(seed=18)
    shift = np.array([5.0, -3.0, 20.0])
    one = fresh(model, **PRECISE).fit(X, y)
    two = fresh(model, **PRECISE).fit(X + shift, y)
    assert close(one, two, X, 1e-3)
    decisions = [fit.decision_function(X) for fit in (one, two)]
    clear = np.all([np.abs(decision) > 1e-3 * np.ptp(decision) for decision in decisions], axis=0)
    np.testing.assert_array_equal(one.predict(X)[clear], two.predict(X + shift)[clear])


@parametrize([name for name in MAIN if not name.startswith("auto")])
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_a_common_scale_is_another_weight_of_the_loss(model, scale):
    X, y = sample(seed=19)
    one = fresh(model, tol=1e-5, max_iter=3000).fit(X, y)
    two = fresh(model, tol=1e-5, max_iter=3000, C=scale**-2).fit(scale * X, y)
    np.testing.assert_allclose(scale * two.coef_, one.coef_, rtol=0.02, atol=0.005)
    assert two.objective_ * scale**2 == pytest.approx(one.objective_, rel=1e-3)


@main_models
def test_irrelevant_features_get_small_weights(model):
    X, y = sample(n=400, d=3, seed=20, shift=3.0)
    model = fresh(model).fit(X, y)
    assert model.coef_[0, 0] > 3 * np.abs(model.coef_[0, 1:]).max()


# Manners: repeatable, quiet, harmless.


@main_models
def test_fit_is_deterministic_and_leaves_the_global_generator_alone(model):
    X, y = sample(n=300, d=5, seed=21)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one = fresh(model, C=10.0).fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    two = fresh(model, C=10.0).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    assert one.objective_ == two.objective_
    assert one.n_iter_ == two.n_iter_
    two.fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)


@main_models
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_fit_changes_neither_parameters_nor_input(model, kind):
    X, y = sample(seed=22)
    weight = np.random.default_rng(6).integers(0, 3, y.size).astype(float)
    given = [kind(X.copy()), y.copy(), weight.copy()]
    model = fresh(model)
    before = dict(vars(model))
    assert model.fit(*given) is model
    model.predict(given[0])
    model.score(*given)
    after = given[0].toarray() if sparse.issparse(given[0]) else given[0]
    for left, right in zip((X, y, weight), (after, *given[1:]), strict=True):
        np.testing.assert_array_equal(left, right)
    assert {name: vars(model)[name] for name in before} == before


@every_model
def test_constructor_stores_and_does_nothing_else(model):
    params = {name: object() for name in model.get_params()}
    built = type(model)(**params)
    assert vars(built) == params


@main_models
def test_copies_predict_the_same(model):
    X, y = sample(seed=23)
    model = fresh(model).fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert other.score(X, y) == model.score(X, y)
        assert other.get_params() == model.get_params()
        assert other.trace_ == model.trace_ or np.isnan(model.dual_gap_)


@main_models
def test_clone_is_unfitted_with_the_same_parameters(model):
    X, y = sample(seed=24)
    model = fresh(model, C=2.0, pos_label=0).fit(X, y)
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "coef_")
    with pytest.raises(NotFittedError):
        other.predict(X)
    with pytest.raises(NotFittedError):
        other.decision_function(X)
    with pytest.raises(NotFittedError):
        other.score(X, y)


def test_set_params_takes_effect_at_the_next_fit():
    X, y = sample(seed=25)
    model = PartialAUCClassifier(max_fpr=0.3, loss="tight").fit(X, y)
    first = model.coef_.copy()
    model.set_params(loss="structural", C=5.0, min_fpr=0.1)
    np.testing.assert_array_equal(model.coef_, first)
    model.fit(X, y)
    expected = PartialAUCClassifier(0.1, 0.3, loss="structural", C=5.0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    with pytest.raises(ValueError, match="Invalid parameter 'class_weight'"):
        model.set_params(class_weight="balanced")


def test_every_parameter_but_the_window_and_the_loss_is_named():
    with pytest.raises(TypeError):
        PartialAUCClassifier(0.0, 0.1, "tight", 1.0)
    with pytest.raises(TypeError):
        AUCClassifier("hinge", 1.0)


# With the rest of scikit-learn.


@pytest.mark.parametrize("pos_label", [None, "a"])
def test_grid_search_over_strength_and_loss(pos_label):
    X, y = sample(n=150, seed=26, shift=2.5)
    y = np.where(y == 1, "b", "a")
    scorer = make_scorer("partial_auc", max_fpr=0.3, pos_label=pos_label)
    grid = {"C": [0.1, 10.0], "loss": ["auto", "tight", "structural", "hinge"]}
    folds = StratifiedKFold(3)
    model = PartialAUCClassifier(max_fpr=0.3, pos_label=pos_label)
    search = GridSearchCV(model, grid, scoring=scorer, cv=folds, error_score="raise").fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 8
    assert np.all((scores > 0.5) & (scores <= 1))
    assert search.best_score_ == scores.max()
    best = fresh(model, **search.best_params_)
    np.testing.assert_allclose(cross_val_score(best, X, y, cv=folds).mean(), search.best_score_)
    np.testing.assert_array_equal(search.best_estimator_.coef_, best.fit(X, y).coef_)


def test_grid_search_over_the_auc_classifier():
    X, y = sample(n=150, seed=27)
    grid = {"C": [0.01, 1.0], "loss": ["hinge", "squared_hinge"]}
    search = GridSearchCV(AUCClassifier(), grid, scoring="roc_auc", cv=3, error_score="raise").fit(X, y)
    own = GridSearchCV(AUCClassifier(), grid, cv=3, error_score="raise").fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], own.cv_results_["mean_test_score"])


@main_models
def test_pipeline_with_a_scaler(model):
    X, y = sample(n=100, d=4, seed=28)
    scale = np.array([100.0, 0.01, 1.0, 5.0])
    pipeline = make_pipeline(StandardScaler(), fresh(model)).fit(scale * X, y)
    alone = fresh(model).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_, rtol=1e-3, atol=1e-4)
    assert pipeline.score(scale * X, y) == pytest.approx(alone.score(StandardScaler().fit_transform(X), y), abs=0.01)
    assert set(pipeline.predict(scale * X)) == {0, 1}


def test_sample_weight_reaches_the_fit_inside_a_search():
    X, y = sample(n=90, seed=29, shift=1.0)
    weight = np.where(X[:, 1] > 0, 5.0, 0.0)
    search = GridSearchCV(AUCClassifier(), {"C": [1.0]}, cv=3).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_.coef_, AUCClassifier().fit(X, y, weight).coef_)
    assert not np.allclose(search.best_estimator_.coef_, AUCClassifier().fit(X, y).coef_, rtol=1e-2)
