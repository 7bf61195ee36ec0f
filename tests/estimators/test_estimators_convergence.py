"""How a fit ends: converged, unconverged, collapsed; warm starts; progress on standard error."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from helpers.linear_models import ALL, CONVEX, NOT_CONVEX, every_model, fresh, parametrize, sample
from rocmax import (
    ROCSVC,
    AUCClassifier,
    BoostedClassifier,
    MiniBatchClassifier,
    PartialAUCClassifier,
    PartialAUCClassifierCV,
    PSAMClassifier,
    ScoreClassifier,
)
from rocmax.losses import PartialAUCRamp
from rocmax.metrics import partial_auc_score
from rocmax.papers import (
    ASAMClassifier,
    AsymmetricSVC,
    AUCTreeClassifier,
    GreedyPairClassifier,
    OAMClassifier,
    PAUCBoostClassifier,
    RankBoostClassifier,
    SOLAMClassifier,
    TwoNormSVC,
)
from rocmax.penalties import SquaredL2


def gaussians(auc=0.8, n=600, d=3, seed=0, share=0.3):
    """Two unit Gaussians with this AUC along the first feature."""
    return sample(n=n, d=d, seed=seed, shift=2**0.5 * NormalDist().inv_cdf(auc), share=share)


def warned(model, X, y):
    """The warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return caught


# Constant scores.

TREES = {"random_state": 0, "n_jobs": 1, "max_leaf_nodes": 6, "n_estimators": 5, "n_models": 1}
EVERY_KIND = [
    AUCClassifier(),
    PartialAUCClassifier(loss="tight"),
    PartialAUCClassifierCV(Cs=[1.0], cv=2),
    BoostedClassifier(**TREES),
    BoostedClassifier(engine="xgboost", **TREES),
    MiniBatchClassifier(random_state=0),
    PSAMClassifier(random_state=0),
    ASAMClassifier(random_state=0),
    SOLAMClassifier(random_state=0),
    OAMClassifier(random_state=0),
    ROCSVC(),
    TwoNormSVC(),
    AsymmetricSVC(),
    RankBoostClassifier(5),
    AUCTreeClassifier(),
    PAUCBoostClassifier(n_estimators=5),
    GreedyPairClassifier(n_steps=5),
]


def few_rows(kind):
    """Forty rows: each once in both classes, noise, or all equal up to one row."""
    rows = np.random.default_rng(0).standard_normal((40, 3))
    found = {"twins": np.vstack([rows[:20], rows[:20]]), "noise": rows, "one": np.zeros((40, 3))}[kind]
    if kind == "one":
        found[3, 2] = 1.0
    return found, np.repeat([0, 1], 20)


@pytest.mark.parametrize("kind", ["twins", "noise", "one"])
@pytest.mark.parametrize("model", EVERY_KIND, ids=lambda model: type(model).__name__)
def test_a_constant_score_warns_once_and_only_a_constant_score_does(model, kind):
    X, y = few_rows(kind)
    caught = [str(warning.message) for warning in warned(model, X, y)]
    constant = np.ptp(model.decision_function(X)) == 0
    assert len(caught) == int(constant)
    assert all("ranks at random" in text for text in caught)


def test_trees_that_cannot_split_say_why():
    X, y = few_rows("noise")
    with pytest.warns(ConvergenceWarning, match=r"No tree has a split: .* min_samples_leaf=20 rows"):
        BoostedClassifier(**TREES).fit(X[5:35], y[5:35])
    # Weights of a published tree are copies, and too few of them make no leaf.
    with pytest.warns(ConvergenceWarning, match="min_samples_leaf=1. .* divide the weights by their mean"):
        AUCTreeClassifier().fit(X, y, sample_weight=np.full(40, 1 / 40))


def test_equal_rows_have_equal_scores_without_a_warning():
    _, y = few_rows("noise")
    for model in (BoostedClassifier(**TREES), AUCTreeClassifier(), PSAMClassifier(random_state=0)):
        assert not warned(model, np.ones((40, 3)), y)
    assert not warned(BoostedClassifier(**TREES), np.full((40, 3), np.nan), y)


def test_a_linear_score_with_weights_can_be_constant_too():
    X, y = few_rows("noise")

    class Chosen(AUCClassifier):
        def _minimize(self, data, w0, callback):
            return replace(super()._minimize(data, w0, callback), w=np.array([1.0, 0.0, 0.0]))

    X[:, 0] = 3.0
    with pytest.warns(ConvergenceWarning, match="all training rows have the same score"):
        Chosen().fit(X, y)


# Collapse.


@pytest.mark.parametrize("loss", ["tight", "structural", "hinge"])
@pytest.mark.parametrize("bounds", [(0.0, 0.05), (0.02, 0.05)])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_collapsed_fit_says_so_and_names_the_remedy(loss, bounds, C):
    X, y = gaussians()
    model = PartialAUCClassifier(*bounds, loss=loss, C=C)
    with pytest.warns(ConvergenceWarning, match=r'PartialAUCClassifier collapsed.*zero weights.*loss="auto"') as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.score(X, y) == pytest.approx(sum(bounds) / 2)
    assert set(model.predict(X)) == {0}


def test_collapse_is_the_optimum_not_a_failure_to_find_it():
    X, y = gaussians()
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        model = PartialAUCClassifier(max_fpr=0.05, loss="tight", C=10.0).fit(X, y)
    assert model.objective_ == pytest.approx(10.0)
    assert 0 <= model.dual_gap_ <= model.tol * model.objective_


@pytest.mark.parametrize("loss", ["tight", "structural", "hinge"])
@pytest.mark.parametrize("bounds", [(0.0, 0.05), (0.02, 0.05)])
def test_a_warm_start_does_not_hide_a_collapse(loss, bounds):
    easy, y = gaussians(auc=0.999)
    hard, _ = gaussians()
    model = PartialAUCClassifier(*bounds, loss=loss, C=10.0, warm_start=True).fit(easy, y)
    assert model.coef_.any()
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match="collapsed"):
            model.fit(hard, y)


@pytest.mark.parametrize("loss", ["auto"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("bounds", [(0.0, 0.05), (0.02, 0.05)])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_bounded_losses_do_not_collapse_there(loss, d, bounds, C):
    X, y = gaussians(d=d)
    model = PartialAUCClassifier(*bounds, loss=loss, C=C).fit(X, y)
    assert model.score(X, y) > 1.5 * sum(bounds) / 2
    assert np.std(X @ model.coef_[0]) > (1e-3 if loss == "auto" else 0.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bounds", [(0.0, 0.05), (0.02, 0.05)])
def test_auto_is_no_worse_than_logistic_regression_there(seed, bounds):
    X, y = gaussians(seed=seed, d=4)
    model = PartialAUCClassifier(*bounds).fit(X, y)
    rival = LogisticRegression().fit(X, y).decision_function(X)
    assert model.score(X, y) >= partial_auc_score(y, rival, min_fpr=bounds[0], max_fpr=bounds[1]) - 1e-12


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("auc", [0.65, 0.8])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_auto_keeps_the_scale_of_its_scores_with_one_feature(seed, auc, C):
    # A tie counts one half in the bounded loss, so where the partial AUC is below one half, equal scores are its
    # minimum: weights near zero must be no way out.
    X, y = gaussians(auc=auc, n=1000, d=1, seed=seed)
    model = PartialAUCClassifier(max_fpr=0.05, C=C).fit(X, y)
    assert np.std(X @ model.coef_[0]) > 1e-3
    for _ in range(2):
        model.set_params(warm_start=True).fit(X, y)
        assert np.std(X @ model.coef_[0]) > 1e-3


@every_model
def test_a_remedy_is_one_that_the_estimator_has(model):
    X, y = np.ones((20, 2)), np.arange(20) % 2
    for message in {str(w.message) for w in warned(fresh(model), X, y)}:
        for loss in re.findall(r'loss="(\w+)"', message):
            other = fresh(model, loss=loss)
            warned(other, *sample())
            assert np.isfinite(other.coef_).all()


# Unconverged.


@parametrize(CONVEX)
@pytest.mark.parametrize("max_iter", [1, 2])
def test_an_unconverged_convex_fit_warns_once(model, max_iter):
    X, y = sample(n=200, seed=1)
    model = fresh(model, C=10.0, tol=2e-8, max_iter=max_iter)
    (warning,) = warned(model, X, y)
    assert warning.category is ConvergenceWarning
    assert warning.filename == __file__
    text = str(warning.message)
    for part in (type(model).__name__, "gap", "tol=2e-08", "max_iter"):
        assert part in text
    assert "collapsed" not in text
    assert model.n_iter_ <= max_iter
    assert model.dual_gap_ > model.tol * model.objective_
    assert np.isfinite(model.coef_).all()


@parametrize(NOT_CONVEX)
def test_an_unconverged_descent_warns_once(model):
    X, y = sample(n=200, seed=2, shift=1.5)
    model = fresh(model, C=100.0, tol=2e-8, max_iter=1)
    (warning,) = warned(model, X, y)
    assert warning.category is ConvergenceWarning
    text = str(warning.message)
    for part in (type(model).__name__, "objective", "tol=2e-08", "max_iter"):
        assert part in text
    assert "collapsed" not in text
    assert model.n_iter_ == 1
    assert np.isfinite(model.coef_).all()
    assert model.coef_.any()


@pytest.mark.parametrize("seed", range(4))
def test_an_unconverged_start_does_not_warn_for_itself(seed):
    X, y = sample(n=400, d=6, seed=seed, shift=2.0)
    X[:, 1] += y
    (warning,) = warned(PartialAUCClassifier(0.02, 0.2, C=10.0, tol=1e-8, max_iter=1), X, y)
    assert str(warning.message).startswith("PartialAUCClassifier")


@every_model
def test_raising_max_iter_as_told_helps(model):
    X, y = sample(n=200, seed=3)
    assert warned(fresh(model, C=10.0, tol=1e-6, max_iter=1), X, y)
    assert not warned(fresh(model, C=10.0, tol=1e-6, max_iter=3000), X, y)


@every_model
def test_a_looser_tolerance_takes_no_more_iterations(model):
    X, y = sample(n=200, seed=4)
    counts = [fresh(model, C=10.0, tol=tol, max_iter=3000).fit(X, y).n_iter_ for tol in (1e-1, 1e-3, 1e-7)]
    assert counts == sorted(counts)
    if model.loss != "auto" and not model.loss.startswith("hinge"):
        assert counts[0] < counts[2]


def test_the_relative_fall_counts_where_the_objective_is_small():
    X, y = sample(n=200, seed=5, shift=1.5)
    for C in (1.0, 1e-6):
        # The same problem in other units: weights grow by sqrt(C), features shrink by it.
        X_C = X / np.sqrt(C)
        ramp, penalty = PartialAUCRamp(0.0, 0.3), SquaredL2(C)
        loose = ScoreClassifier(ramp, penalty, tol=1e-7).fit(X_C, y)
        tight = ScoreClassifier(ramp, penalty, tol=1e-12, max_iter=3000).fit(X_C, y)
        assert loose.objective_ <= tight.objective_ * 1.001


# Warm starts.


@parametrize(ALL)
def test_a_warm_start_from_the_solution_ends_earlier(model):
    # On a single sample of so few rows it may take as long: the bound has to be computed again.
    iterations = np.zeros(2)
    for seed in range(6):
        X, y = sample(n=200, seed=seed)
        model = fresh(model, C=10.0, warm_start=True).fit(X, y)
        cold = (model.n_iter_, model.objective_)
        model.fit(X, y)
        iterations += cold[0], model.n_iter_
        assert model.objective_ <= cold[1] * (1 + (1e-9 if model.loss != "auto" else model.tol))
    assert iterations[1] < iterations[0]


@parametrize(ALL)
def test_a_warm_start_reaches_the_same_objective_at_another_strength(model):
    X, y = sample(n=200, seed=7)
    warm = fresh(model, C=1.0, tol=1e-6, max_iter=3000, warm_start=True).fit(X, y)
    warm.set_params(C=1.2).fit(X, y)
    cold = fresh(model, C=1.2, tol=1e-6, max_iter=3000).fit(X, y)
    # Without a certificate there are several valleys, and where a descent begins can choose between them.
    assert warm.objective_ == pytest.approx(cold.objective_, rel=0.03 if np.isnan(cold.dual_gap_) else 2e-6)


@parametrize(CONVEX)
def test_a_warm_path_takes_fewer_iterations(model):
    X, y = sample(n=200, seed=0)
    warm, counts = fresh(model, warm_start=True), np.zeros(2)
    for C in np.geomspace(1, 10, 10):
        warm.set_params(C=C).fit(X, y)
        cold = fresh(model, C=C).fit(X, y)
        assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-3)
        counts += warm.n_iter_, cold.n_iter_
    # Where most iterations go into the certificate, little is saved.
    assert counts[0] <= (0.8 if isinstance(model, AUCClassifier) else 1.1) * counts[1]


@parametrize(ALL)
def test_a_warm_start_for_the_other_class_keeps_its_sign(model):
    X, y = sample(n=200, seed=8)
    model = fresh(model, C=10.0, warm_start=True, pos_label=0).fit(X, y)
    cold = (model.n_iter_, model.objective_)
    model.fit(X, y)
    assert model.n_iter_ <= cold[0]
    assert model.objective_ <= cold[1] * (1 + (1e-9 if model.loss != "auto" else model.tol))


@parametrize(ALL)
def test_without_warm_start_a_fit_forgets(model):
    X, y = sample(seed=9)
    model = fresh(model).fit(*sample(seed=10, shift=-2.0))
    np.testing.assert_array_equal(model.fit(X, y).coef_, fresh(model).fit(X, y).coef_)


@parametrize(ALL)
def test_a_bad_warm_start_costs_nothing_but_time(model):
    X, y = sample(seed=11)
    cold = fresh(model).fit(X, y)
    warm = fresh(model, warm_start=True).fit(*sample(seed=12, shift=-3.0)).fit(X, y)
    assert warm.score(X, y) >= 0.9 * cold.score(X, y)
    if not np.isnan(cold.dual_gap_):
        assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-3)


def test_a_warm_start_from_zero_weights_is_a_cold_start():
    hard, y = gaussians()
    easy, _ = gaussians(auc=0.999)
    for loss in ("tight", "hinge", "auto"):
        model = PartialAUCClassifier(max_fpr=0.05, loss="tight", warm_start=True)
        with pytest.warns(ConvergenceWarning, match="collapsed"):
            model.fit(hard, y)
        warm = model.set_params(loss=loss).fit(easy, y)
        cold = PartialAUCClassifier(max_fpr=0.05, loss=loss).fit(easy, y)
        np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=1e-9)


# Progress.


@every_model
def test_a_quiet_fit_writes_nothing(model, capfd):
    fresh(model, C=10.0).fit(*sample(seed=13))
    assert capfd.readouterr() == ("", "")


@every_model
@pytest.mark.parametrize("verbose", [True, 2])
def test_a_verbose_fit_writes_to_standard_error_only(model, verbose, capsys):
    model = fresh(model, C=10.0, verbose=verbose).fit(*sample(seed=13))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == model.n_iter_
    for line, entry in zip(lines, model.trace_, strict=True):
        assert line.startswith(type(model).__name__)
        assert f"{entry.objective:.6g}" in line


def test_a_verbose_fit_gives_the_same_model():
    X, y = sample(seed=14)
    for make in (AUCClassifier, PartialAUCClassifier):
        np.testing.assert_array_equal(make(verbose=True).fit(X, y).coef_, make().fit(X, y).coef_)
