"""The published cutting-plane method in the estimators, and the published choice of C."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit

from oracles.cutting_plane import algorithm_1
from rocmax import AUCClassifier, PartialAUCClassifier, PartialAUCClassifierCV, ScoreClassifier
from rocmax.losses import PartialAUCTight
from rocmax.metrics import partial_auc_score
from rocmax.penalties import SquaredL2
from rocmax.solvers import CuttingPlane


def tiny():
    rng = np.random.default_rng(5)
    y = np.array([1, 1, 0, 0, 0, 0])
    return rng.standard_normal((6, 2)) + 2.5 * y[:, None], y, np.array([2, 1, 1, 2, 1, 1])


def overlapping(n=1000, seed=0):
    """Classes that overlap so much that the tight loss collapses in [0, 0.05]."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 5 == 0).astype(int)
    X = rng.standard_normal((n, 4))
    X[:, 0] += 1.5 * y
    return X, y


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("ranks", [(0, 2), (1, 3)], ids=str)
@pytest.mark.parametrize("loss", ["tight", "structural"])
def test_the_estimator_returns_the_output_of_algorithm_1(kind, ranks, loss):
    X, y, weight = tiny()
    expected = algorithm_1(X, y, 3.0, 1e-3, *ranks, weight=weight, structural=loss == "structural")
    model = PartialAUCClassifier(ranks[0] / 5, ranks[1] / 5, loss, C=3.0, solver="cutting_plane", tol=1e-3)
    model.fit(kind(X), y, weight)
    np.testing.assert_allclose(model.coef_[0], expected[-1], atol=2e-5)
    assert model.n_iter_ == len(expected)
    assert 0 <= model.dual_gap_ <= 3.0 * 1e-3


def test_the_full_auc_and_the_hinge_from_zero():
    X, y, weight = tiny()
    expected = algorithm_1(X, y, 3.0, 1e-3, 0, 5, weight=weight)
    auc = AUCClassifier(C=3.0, solver="cutting_plane", tol=1e-3).fit(X, y, weight)
    np.testing.assert_allclose(auc.coef_[0], expected[-1], atol=2e-5)
    hinge, same = (
        PartialAUCClassifier(0.0, 0.4, loss, C=3.0, solver="cutting_plane").fit(X, y) for loss in ("hinge", "tight")
    )
    np.testing.assert_array_equal(hinge.coef_, same.coef_)


def test_cccp_with_published_inner_problems_is_close_to_the_certified_one():
    X, y = overlapping(400)
    X[:, 0] += 2.0 * y
    certified, published = (
        PartialAUCClassifier(0.1, 0.3, "hinge", C=10.0, solver=solver, tol=1e-4).fit(X, y)
        for solver in ("certified", "cutting_plane")
    )
    assert published.objective_ == pytest.approx(certified.objective_, rel=1e-2)
    assert np.isnan(published.dual_gap_)
    assert (published.coef_ != certified.coef_).any()


@pytest.mark.filterwarnings("ignore:.*collapsed:sklearn.exceptions.ConvergenceWarning")
def test_where_the_certified_fit_collapses_the_published_one_ranks():
    X, y = overlapping()
    certified, published = (
        PartialAUCClassifier(max_fpr=0.05, loss="tight", C=1e-5, solver=solver, tol=1e-4).fit(X, y)
        for solver in ("certified", "cutting_plane")
    )
    assert not certified.coef_.any()
    assert published.objective_ > certified.objective_
    assert published.score(X, y) > 5 * certified.score(X, y)


def test_the_collapse_names_the_published_solver_second():
    X, y = overlapping()
    remedies = r'Use loss="auto", solver="cutting_plane" with C chosen on held-out rows, widen'
    with pytest.warns(ConvergenceWarning, match=remedies):
        PartialAUCClassifier(max_fpr=0.05, loss="tight").fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r'Use loss="auto", widen'):
        PartialAUCClassifier(max_fpr=0.05, loss="tight", constraint="l2", radius=1.0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r'Use loss="auto" or solver="cutting_plane" with C chosen'):
        PartialAUCClassifier(0.02, 0.05, loss="hinge").fit(X, y)


def test_how_a_published_fit_can_end():
    X, y = overlapping(300)
    unfinished = PartialAUCClassifier(0.0, 0.5, "tight", C=100.0, solver="cutting_plane", tol=1e-6, max_iter=3)
    with pytest.warns(ConvergenceWarning, match="CuttingPlane did not reach its tolerance: violation"):
        unfinished.fit(X, y)
    assert unfinished.coef_.any()
    assert unfinished.n_iter_ == 3
    for model in (AUCClassifier(solver="cutting_plane", tol=1.5), PartialAUCClassifier(loss="tight", tol=1.5)):
        with pytest.warns(ConvergenceWarning, match=r"collapsed.*violated by more than tol. Lower C or tol"):
            model.set_params(solver="cutting_plane").fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AUCClassifier(solver="exact"), "solver must be one of 'certified', 'cutting_plane'; got 'exact'"),
        (PartialAUCClassifierCV(solver=None), "solver must be one of 'certified', 'cutting_plane'; got None"),
        (AUCClassifier("squared_hinge", solver="cutting_plane"), "with solver='cutting_plane', loss must be one of"),
        (PartialAUCClassifier(solver="cutting_plane"), "'tight', 'structural', 'hinge'; got 'auto'"),
        (PartialAUCClassifierCV(solver="cutting_plane"), "'tight', 'structural', 'hinge'; got 'auto'"),
        (
            PartialAUCClassifier(loss="tight", constraint="l1", radius=1.0, solver="cutting_plane"),
            "with solver='cutting_plane', constraint must be None; got 'l1'",
        ),
    ],
)
def test_bad_combinations(model, message):
    X, y = overlapping(50)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_a_classifier_from_parts():
    X, y = overlapping(200)
    parts = ScoreClassifier(PartialAUCTight(0.0, 0.5), SquaredL2(10.0), CuttingPlane(1e-3)).fit(X, y)
    whole = PartialAUCClassifier(0.0, 0.5, "tight", C=10.0, solver="cutting_plane").fit(X, y)
    np.testing.assert_array_equal(parts.coef_, whole.coef_)


# The choice of C.

CS = [1e-5, 1e-4, 1e-2, 1.0]


@pytest.mark.parametrize("solver", ["certified", "cutting_plane"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_single_split_keeps_the_fitted_model(solver, weighted):
    X, y = overlapping(400)
    weight = np.random.default_rng(1).integers(1, 4, 400) if weighted else None
    fit, held = next(StratifiedShuffleSplit(1, test_size=0.3, random_state=0).split(X, y))
    chosen = PartialAUCClassifierCV(0.0, 0.4, "tight", Cs=CS, cv=[(fit, held)], solver=solver).fit(X, y, weight)
    part = (lambda rows: None) if weight is None else (lambda rows: weight[rows])
    models = [PartialAUCClassifier(0.0, 0.4, "tight", C=C, solver=solver).fit(X[fit], y[fit], part(fit)) for C in CS]
    scores = [
        partial_auc_score(y[held], model.decision_function(X[held]), max_fpr=0.4, sample_weight=part(held))
        for model in models
    ]
    np.testing.assert_allclose(chosen.scores_, [scores])
    best = models[int(np.argmax(scores))]
    np.testing.assert_array_equal(chosen.coef_, best.coef_)
    assert (chosen.C_, chosen.objective_, chosen.dual_gap_) == (best.C, best.objective_, best.dual_gap_)
    assert chosen.Cs_.tolist() == CS
    assert (chosen.start_, chosen.start_scores_) == ("", {})
    assert chosen.n_iter_ == max(model.n_iter_ for model in models)


def test_several_folds_are_averaged_with_unit_deviation():
    X, y = overlapping(300)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    chosen = PartialAUCClassifierCV(0.0, 0.4, "structural", Cs=[1.0, 10.0], cv=folds).fit(X, y)
    assert chosen.scores_.shape == (3, 2)
    models = [PartialAUCClassifier(0.0, 0.4, "structural", C=chosen.C_).fit(X[fit], y[fit]) for fit, _ in folds]
    expected = np.mean(
        [model.coef_ / (X[fit] @ model.coef_[0]).std() for model, (fit, _) in zip(models, folds, strict=True)], axis=0
    )
    np.testing.assert_allclose(chosen.coef_, expected)
    assert chosen.objective_ == pytest.approx(np.mean([model.objective_ for model in models]))
    assert chosen.Cs_[chosen.scores_.mean(axis=0).argmax()] == chosen.C_


def test_collapsed_candidates_are_not_chosen_and_an_unfinished_choice_is_reported():
    X, y = overlapping()
    cv = StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    model = PartialAUCClassifierCV(0.0, 0.05, "tight", Cs=CS, cv=cv, solver="cutting_plane", tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.scores_[0, -1] == 0.0
    assert model.coef_.any()
    with pytest.warns(ConvergenceWarning, match="PartialAUCClassifierCV: C=10: CuttingPlane did not reach"):
        model.set_params(Cs=[10.0], max_fpr=0.8, max_iter=2).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r'PartialAUCClassifierCV collapsed.*solver="cutting_plane"'):
        PartialAUCClassifierCV(0.0, 0.05, "tight", Cs=[1.0], cv=cv).fit(X, y)


def test_in_a_grid_search():
    X, y = overlapping(300)
    search = GridSearchCV(PartialAUCClassifier(0.0, 0.4, "tight", solver="cutting_plane"), {"C": [0.01, 1.0]}, cv=3)
    assert search.fit(X, y).best_params_["C"] in (0.01, 1.0)
