"""The default loss of the classifiers for decisions: never below its start, and no move without evidence."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from helpers.auto_problems import problems
from helpers.threshold_based import gaussians, measure
from helpers.training_sets import CheckedRows
from rocmax import BreakEvenClassifier, FBetaClassifier, GMeanClassifier, PrecisionAtKClassifier
from rocmax.linear.decisions import ThresholdRefinement, soft_width
from rocmax.measures import FBetaMeasure

MODELS = {
    "precision": PrecisionAtKClassifier(0.15),
    "precision-count": PrecisionAtKClassifier(8),
    "break-even": BreakEvenClassifier(),
    "f1": FBetaClassifier(),
    "f0.3": FBetaClassifier(0.3),
    "f3": FBetaClassifier(3.0),
    "g-mean": GMeanClassifier(),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
law = settings(
    max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


def start_scores(X, y, weight=None, C=1.0):
    """Scores of logistic regression on standardized features, in units of their deviation."""
    Z = StandardScaler().fit_transform(X, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = Z @ LogisticRegression(C=C, tol=1e-9, max_iter=5000).fit(Z, y, sample_weight=weight).coef_[0]
    mean = np.average(scores, weights=weight)
    return (scores - mean) / np.sqrt(np.average((scores - mean) ** 2, weights=weight))


def best_of(model, y, scores, weight=None):
    """The measure at the best threshold, or that of the ranking alone."""
    scores = np.round(scores, 9)
    if isinstance(model, PrecisionAtKClassifier | BreakEvenClassifier):
        return measure(model, y, scores, weight)
    return max(measure(model, y, scores - t, weight) for t in np.unique(scores) - 1e-10)


def crooked(seed, n=3000, share=0.1):
    """A tenth of the positives far on the wrong side: logistic regression gives up the feature that tells the rest."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.standard_normal((n, 4)) + y[:, None] * [2.5, 1.0, 0.0, 0.0]
    X[(y == 1) & (rng.random(n) < 0.1), 0] -= 12.0
    return X, y


# The start


@every_model
@given(problem=problems(), C=st.sampled_from([1e-3, 10.0, 1e6]))
@law
def test_never_below_its_start(model, problem, C):
    X, y, weight = problem
    assume(np.ptp(start_scores(X, y, weight)) > 0)
    model = clone(model).set_params(C=C).fit(X, y, weight)
    expected = best_of(model, y, start_scores(X, y, weight), weight)
    assert best_of(model, y, X @ model.coef_[0] / np.std(X @ model.coef_[0]), weight) >= expected - 1e-9


@every_model
@pytest.mark.parametrize("start_C", [0.01, 1.0])
def test_a_weak_loss_gives_logistic_regression_with_its_best_threshold(model, start_C):
    X, y = crooked(0, 400)
    scores = start_scores(X, y, C=start_C)
    model = clone(model).set_params(C=1e-9, start_C=start_C).fit(X, y)
    own = X @ model.coef_[0]
    np.testing.assert_allclose((own - own.mean()) / own.std(), scores, atol=1e-5)
    assert model.score(X, y) == pytest.approx(best_of(model, y, scores), abs=1e-9)


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"precision-count"}))  # the few at the top are right anyway
def test_the_objective_is_below_that_of_the_start(name):
    X, y = crooked(1)
    model = MODELS[name]
    fitted = clone(model).fit(X, y)
    weak = clone(model).set_params(C=1e-9).fit(X, y)  # the loss at the start, and no penalty
    assert fitted.objective_ < weak.objective_ - 1e-3
    assert np.isnan(fitted.dual_gap_)
    objectives = [progress.objective for progress in fitted.trace_]
    assert objectives == sorted(objectives, reverse=True)


# Evidence


def refinement(X, y, weight=None):
    data = CheckedRows(X, y == 1, weight)
    measure, width = FBetaMeasure(), soft_width(data)
    return ThresholdRefinement(data, measure, width, 1e-6, 500), measure.soft_loss(width).bind(y, weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_evidence_is_what_the_rows_do_not_explain(weighted):
    X, y = crooked(2, 300)
    weight = np.random.default_rng(0).uniform(0.5, 3.0, y.size) if weighted else np.ones(y.size)
    refined, bound = refinement(X, y, weight)
    start = refined.logistic_start()
    # The slope in the scores, along which their mean and spread stay.
    slope = bound.value_and_gradient(start.scores)[1]
    share = weight / weight.sum()
    centered = start.scores - share @ start.scores
    slope -= share * (slope.sum() + (slope @ centered) * centered)
    Z = StandardScaler().fit_transform(X, sample_weight=weight)
    total, noise = np.zeros(X.shape[1]), 0.0
    for coefficient, row, v in zip(slope, Z, weight, strict=True):
        total += coefficient * row
        noise += v * ((coefficient / v * row) ** 2).sum()
    chance = noise * (1 + np.sqrt(2 / X.shape[1]))
    assert refined.evidence(start) == pytest.approx(1 - chance / (total**2).sum(), rel=1e-6)
    assert 0 < refined.evidence(start) < 1


def test_evidence_of_sparse_rows_and_of_copies_is_the_same():
    X, y = crooked(2, 300)
    X[np.abs(X) < 0.5] = 0.0
    weight = np.random.default_rng(0).integers(1, 4, y.size)
    found = []
    for rows, labels, copies in (
        (X, y, weight),
        (sparse.csr_array(X), y, weight),
        (np.repeat(X, weight, axis=0), np.repeat(y, weight), None),
    ):
        refined, _ = refinement(rows, labels, copies)
        found.append(refined.evidence(refined.logistic_start()))
    assert found[0] > 0.1
    np.testing.assert_allclose(found, found[0], rtol=1e-4)


@pytest.mark.parametrize("C", [10.0, 1e6])
def test_where_logistic_regression_is_right_it_mostly_stays(C):
    # Two normal classes: the direction of logistic regression is the best one for every measure.
    stayed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = (rng.random(600) < 0.15).astype(int)
        X = rng.standard_normal((600, 8)) + 0.5 * y[:, None]
        model = FBetaClassifier(C=C).fit(X, y)
        own, scores = X @ model.coef_[0], start_scores(X, y)
        stayed += np.corrcoef(own, scores)[0, 1] > 1 - 1e-9
    assert stayed >= 6


@pytest.mark.parametrize("model", [FBetaClassifier(), BreakEvenClassifier(), PrecisionAtKClassifier(0.1)])
def test_where_it_is_wrong_the_measure_on_new_rows_grows(model):
    gains = []
    for seed in range(3):
        X, y = crooked(seed)
        new, truth = crooked(100 + seed, 20000)
        start = clone(model).set_params(C=1e-9).fit(X, y).score(new, truth)
        gains.append(clone(model).fit(X, y).score(new, truth) - start)
    assert min(gains) > 0.02


@pytest.mark.parametrize("name", ["break-even", "f1", "g-mean"])
@pytest.mark.parametrize(("share", "limit"), [(0.05, 0.926), (0.3, 0.741)])
def test_no_collapse_where_the_convex_bound_has_one(name, share, limit):
    X, y = gaussians(share, limit - 0.04)
    model = clone(MODELS[name]).fit(X, y)
    assert model.score(X, y) >= best_of(model, y, start_scores(X, y)) - 1e-9
    assert np.std(X @ model.coef_[0]) > 0.1


def test_a_start_that_stays_is_reported_too(capsys):
    X, y = gaussians(0.1, 0.8)
    X = np.hstack([X, np.zeros((y.size, 1))])[:, [0, 3]]  # one direction only: there is nothing to turn
    model = FBetaClassifier(verbose=True).fit(X, y)
    assert model.n_iter_ == len(model.trace_) == 1
    assert capsys.readouterr().err.count("FBetaClassifier: objective") == 1


# Rows and repeats


@every_model
def test_units_of_the_features_do_not_matter(model):
    X, y = crooked(3, 500)
    one = clone(model).fit(X, y)
    two = clone(model).fit(X * [1.0, 100.0, 1e-3, 7.0] + [0.0, 5.0, -1.0, 3.0], y)
    np.testing.assert_allclose(two.coef_ * [1.0, 100.0, 1e-3, 7.0], one.coef_, rtol=1e-3, atol=1e-4)


@every_model
def test_sparse_rows_are_the_same_rows(model):
    X, y = crooked(4, 500)
    X[np.abs(X) < 0.5] = 0.0
    model = clone(model).set_params(tol=1e-8)
    dense, csr = clone(model).fit(X, y), clone(model).fit(sparse.csr_array(X), y)
    assert csr.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    np.testing.assert_allclose(csr.coef_, dense.coef_, rtol=1e-2, atol=1e-3)


@every_model
def test_weights_are_copies(model):
    X, y = crooked(5, 200, share=0.3)
    weight = np.random.default_rng(0).integers(0, 4, y.size)
    rows = np.repeat(np.arange(y.size), weight)
    model = clone(model).set_params(tol=1e-8)
    one, two = clone(model).fit(X, y, weight), clone(model).fit(X[rows], y[rows])
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-5)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-2, atol=1e-3)


@every_model
def test_a_fit_repeats_exactly(model):
    X, y = crooked(6, 500)
    one, two = clone(model).fit(X, y), clone(model).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.intercept_ == two.intercept_


@every_model
def test_warm_start_ends_no_higher(model):
    X, y = crooked(7, 500)
    cold = clone(model).fit(X, y)
    warm = clone(model).set_params(warm_start=True).fit(X, y).fit(X, y)
    assert warm.objective_ <= cold.objective_ + 1e-12


@every_model
def test_the_positive_class_may_be_the_smaller_label(model):
    X, y = crooked(8, 500)
    one, two = clone(model).fit(X, y), clone(model).set_params(pos_label=0).fit(X, 1 - y)
    np.testing.assert_allclose(two.coef_, -one.coef_, rtol=1e-9)
    assert two.score(X, 1 - y) == pytest.approx(one.score(X, y))


@pytest.mark.parametrize(("m", "n", "width"), [(1, 50, 2.0), (32, 300, 1.0), (300, 32, 1.0), (1024, 1024, 0.5)])
def test_width_falls_with_the_fifth_root_of_the_rarer_class(m, n, width):
    data = CheckedRows(np.zeros((m + n, 1)), np.repeat([True, False], [m, n]))
    assert soft_width(data) == pytest.approx(width)


# Refusals


@every_model
@pytest.mark.parametrize("bad", [{"start_C": 0.0}, {"start_C": "1"}, {"loss": "hinge"}, {"loss": None}])
def test_bad_parameters(model, bad):
    X, y = crooked(0, 100)
    with pytest.raises(ValueError, match=next(iter(bad))):
        clone(model).set_params(**bad).fit(X, y)


def test_too_few_iterations_are_reported():
    X, y = crooked(0)
    with pytest.warns(
        ConvergenceWarning, match=r"FBetaClassifier: the minimization did not reach.*raise max_iter or tol"
    ):
        FBetaClassifier(max_iter=2, tol=1e-9).fit(X, y)


@every_model
def test_features_that_do_not_vary_are_reported(model):
    y = np.repeat([1, 0], [20, 80])
    with pytest.warns(ConvergenceWarning, match=r"collapsed.*check that the features vary"):
        fitted = clone(model).fit(np.ones((100, 2)), y)
    assert not fitted.coef_.any()
