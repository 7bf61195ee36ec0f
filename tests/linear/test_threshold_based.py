"""Classifiers for precision at k, break-even point, F-beta and G-mean: what they predict, score and refuse.

The convex fits are here; test_estimators_soft.py has the default one.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import fbeta_score
from sklearn.model_selection import GridSearchCV

from helpers.threshold_based import gaussians, measure
from helpers.thresholds import candidates, scored_rows
from rocmax import BreakEvenClassifier, FBetaClassifier, GMeanClassifier, PrecisionAtKClassifier
from rocmax.losses import BreakEven, FBeta, FreeShift, GMean, PrecisionAtK
from rocmax.measures import at_top, best_measure
from rocmax.metrics import g_mean_score

MODELS = {
    "precision": (PrecisionAtKClassifier(0.15, "convex"), PrecisionAtK(0.15)),
    "precision-count": (PrecisionAtKClassifier(40, "convex"), PrecisionAtK(40)),
    "break-even": (BreakEvenClassifier("convex"), BreakEven()),
    "f1": (FBetaClassifier(1.0, "convex"), FreeShift(FBeta())),
    "f0.3": (FBetaClassifier(0.3, "convex"), FreeShift(FBeta(0.3))),
    "f3": (FBetaClassifier(3.0, "convex"), FreeShift(FBeta(3.0))),
    "g-mean": (GMeanClassifier("convex"), FreeShift(GMean())),
}


both_losses = pytest.mark.parametrize("loss", ["auto", "convex"])


every_model = pytest.mark.parametrize(("model", "loss"), MODELS.values(), ids=MODELS)


law = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def sample(seed=0, n=300, d=5, share=0.2, signal=2.0):
    """Classes far enough apart that precision at a small k does not collapse."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.standard_normal((n, d)) + signal * y[:, None] * np.linspace(0.2, 1.0, d), y


# Thresholds


@given(scored_rows(), st.floats(0.01, 40.0) | st.integers(1, 25))
@law
def test_top_is_filled_and_not_more(rows, size):
    scores, positive, weight = rows
    accepted = scores > at_top(scores, positive, weight, size)
    mass = np.ones(scores.size) if weight is None else weight
    sets = candidates(scores)[1:]
    allowed = [a for a in sets if mass[a].sum() <= size * (1 + 1e-9)]
    # The highest score is accepted even if what ties there weighs more.
    np.testing.assert_array_equal(accepted, allowed[-1] if allowed else sets[0])


@given(scored_rows(), st.sampled_from([0.3, 1.0, 4.0]))
@law
def test_best_f_is_that_of_all_thresholds(rows, beta):
    scores, positive, weight = rows
    accepted = scores > best_measure(scores, positive, weight, FBeta(beta).measure)
    found = fbeta_score(positive, accepted, beta=beta, sample_weight=weight)
    best = max(fbeta_score(positive, a, beta=beta, sample_weight=weight, zero_division=0.0) for a in candidates(scores))
    assert found == pytest.approx(best, abs=2e-9)


@given(scored_rows())
@law
def test_best_g_mean_is_that_of_all_thresholds(rows):
    scores, positive, weight = rows
    accepted = scores > best_measure(scores, positive, weight, GMean().measure)
    found = g_mean_score(positive, accepted, sample_weight=weight)
    assert found == pytest.approx(
        max(g_mean_score(positive, a, sample_weight=weight) for a in candidates(scores)), abs=2e-9
    )


@pytest.mark.parametrize("k", [1, 40, 0.05, 0.5, 0.123])
@pytest.mark.parametrize("weighted", [False, True])
@both_losses
def test_predicted_positives_are_the_top_k_of_the_training_rows(loss, k, weighted):
    X, y = sample(signal=4.0)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 300) if weighted else np.ones(300)
    model = PrecisionAtKClassifier(k, loss, C=100.0).fit(X, y, weight)
    accepted = model.predict(X) == 1
    size = k if isinstance(k, int) else k * weight.sum()
    scores = X @ model.coef_[0]
    following = scores >= scores[~accepted].max()
    # Rows that tie at the very top are accepted together.
    assert weight[accepted].sum() <= size * (1 + 1e-9) or np.allclose(scores[accepted], scores.max(), rtol=1e-9)
    assert weight[following].sum() > size
    assert scores[accepted].min() > scores[~accepted].max()


@both_losses
def test_as_many_are_predicted_as_there_are_positives(loss):
    X, y = sample()
    assert (BreakEvenClassifier(loss).fit(X, y).predict(X) == 1).sum() == y.sum()
    # Then precision and recall are the same number, which is the score.
    model = BreakEvenClassifier(loss).fit(X, y)
    assert model.score(X, y) == pytest.approx(fbeta_score(y, model.predict(X), beta=1.0))


@pytest.mark.parametrize("name", ["f1", "f0.3", "f3", "g-mean"])
@pytest.mark.parametrize("weighted", [False, True])
@both_losses
def test_no_other_intercept_is_better_on_the_training_rows(loss, name, weighted):
    X, y = sample(1, n=150)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 150) if weighted else None
    model = clone(MODELS[name][0]).set_params(loss=loss).fit(X, y, weight)
    scores = X @ model.coef_[0]
    ends = np.sort(scores)
    thresholds = np.concatenate([[ends[0] - 1], (ends[1:] + ends[:-1]) / 2])
    best = max(measure(model, y, scores - t, weight) for t in thresholds)
    assert model.score(X, y, weight) == pytest.approx(best, abs=2e-9)
    assert np.isclose(-model.intercept_[0], thresholds, rtol=1e-9).any()


# Score


@every_model
@pytest.mark.parametrize("weighted", [False, True])
def test_score_is_the_measure_on_new_rows(model, loss, weighted):
    X, y = sample(2)
    new, truth = sample(3, n=500)
    weight = np.random.default_rng(4).uniform(0.5, 2.0, 500) if weighted else None
    model = clone(model).fit(X, y)
    expected = measure(model, truth, model.decision_function(new), weight)
    assert model.score(new, truth, weight) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0])
def test_score_is_that_of_scikit_learn_on_the_predictions(beta):
    X, y = sample(2)
    label = np.where(y == 1, "b-fraud", "c-ok")
    model = FBetaClassifier(beta, pos_label="b-fraud").fit(X, label)
    expected = fbeta_score(label, model.predict(X), beta=beta, pos_label="b-fraud")
    assert model.score(X, label) == pytest.approx(expected, abs=1e-12)


@every_model
def test_the_positive_class_may_be_the_smaller_label(model, loss):
    X, y = sample(4)
    one = clone(model).fit(X, y)
    two = clone(model).set_params(pos_label=0).fit(X, 1 - y)
    np.testing.assert_allclose(two.coef_, -one.coef_, rtol=1e-10)
    np.testing.assert_array_equal(two.predict(X), 1 - one.predict(X))
    assert two.score(X, 1 - y) == pytest.approx(one.score(X, y))


# The fit


@every_model
@pytest.mark.parametrize("C", [1.0, 30.0])
def test_objective_and_gap_are_those_of_the_loss(model, loss, C):
    X, y = sample(5)
    model = clone(model).set_params(C=C).fit(X, y)
    w = model.coef_[0]
    objective = 0.5 * w @ w + C * loss.bind(y).value_and_gradient(X @ w)[0]
    assert model.objective_ == pytest.approx(objective, rel=1e-9)
    assert 0 <= model.dual_gap_ <= model.tol * model.objective_
    finer = clone(model).set_params(tol=1e-6, max_iter=5000).fit(X, y)
    assert model.objective_ - model.dual_gap_ <= finer.objective_ <= model.objective_


@every_model
def test_the_loss_bounds_the_training_error(model, loss):
    X, y = sample(6)
    model = clone(model).fit(X, y)
    w = model.coef_[0]
    bound = (model.objective_ - 0.5 * w @ w) / model.C
    assert 1 - model.score(X, y) <= bound + 1e-9


@every_model
def test_sparse_rows_are_the_same_rows(model, loss):
    X, y = sample(7)
    X[np.abs(X) < 0.7] = 0.0
    dense, csr = clone(model).fit(X, y), clone(model).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(csr.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(csr.predict(sparse.csr_array(X)), dense.predict(X))
    assert csr.objective_ == pytest.approx(dense.objective_, rel=1e-9)


@every_model
def test_weights_are_copies(model, loss):
    X, y = sample(8, n=120)
    weight = np.random.default_rng(0).integers(0, 4, 120)
    rows = np.repeat(np.arange(120), weight)
    one = clone(model).set_params(tol=1e-6, max_iter=3000).fit(X, y, weight)
    two = clone(model).set_params(tol=1e-6, max_iter=3000).fit(X[rows], y[rows])
    assert abs(one.objective_ - two.objective_) <= max(one.dual_gap_, two.dual_gap_) + 1e-12
    assert one.score(X, y, weight) == pytest.approx(two.score(X[rows], y[rows]), abs=0.02)


@every_model
def test_training_pays(model, loss):
    # On the training rows, against the direction between the means at its best threshold.
    X, y = sample(9, n=600, d=8, signal=1.5)
    model = clone(model).fit(X, y)
    direction = X[y == 1].mean(0) - X[y == 0].mean(0)
    scores = X @ direction
    thresholds = np.append(np.sort(scores) - 1e-9, scores.max() + 1)
    other = max(measure(model, y, scores - t) for t in thresholds[::10])
    assert model.score(X, y) >= other - 0.02


@every_model
def test_warm_start_ends_at_the_same_optimum(model, loss):
    X, y = sample(5)
    cold = clone(model).fit(X, y)
    warm = clone(model).set_params(warm_start=True).fit(X, y).fit(X, y)
    assert abs(warm.objective_ - cold.objective_) <= max(warm.dual_gap_, cold.dual_gap_)
    assert warm.objective_ <= cold.objective_ * (1 + 1e-12)


def test_grid_search_over_the_parameters_of_the_measure():
    X, y = sample(5)
    search = GridSearchCV(FBetaClassifier(), {"beta": [0.5, 2.0], "C": [1.0, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5


def test_precision_at_a_small_k_collapses_on_hard_data_and_says_so():
    X, y = gaussians(0.1, 0.9)
    with pytest.warns(
        ConvergenceWarning, match=r'PrecisionAtKClassifier collapsed.*k highest negatives.*Use loss="auto".*a k closer'
    ):
        model = PrecisionAtKClassifier(0.01, "convex").fit(X, y)
    assert not model.coef_.any()
    # What the message recommends does not.
    assert PrecisionAtKClassifier(0.1, "convex").fit(X, y).coef_.any()
    assert PrecisionAtKClassifier(0.01).fit(X, y).coef_.any()


@pytest.mark.parametrize("name", ["break-even", "f1", "g-mean"])
@pytest.mark.parametrize(("share", "limit"), [(0.05, 0.926), (0.1, 0.886), (0.3, 0.741)])
def test_collapse_begins_where_the_documents_say(name, share, limit):
    # The mean of the positives against the mean of the same number of highest negatives, for normal distributions.
    ratio = share / (1 - share)
    assert norm.cdf(norm.pdf(norm.ppf(ratio)) / ratio / np.sqrt(2)) == pytest.approx(limit, abs=5e-4)
    with pytest.warns(ConvergenceWarning, match=r'collapsed.*the same number of highest negatives. Use loss="auto"'):
        below = clone(MODELS[name][0]).fit(*gaussians(share, limit - 0.04))
    assert not below.coef_.any()
    assert clone(MODELS[name][0]).fit(*gaussians(share, limit + 0.04)).coef_.any()


@every_model
def test_too_few_iterations_are_reported(model, loss):
    X, y = sample()
    with pytest.warns(ConvergenceWarning, match=r"OCAS did not reach its tolerance.*raise max_iter"):
        clone(model).set_params(max_iter=2, tol=1e-9).fit(X, y)


@every_model
@pytest.mark.parametrize(
    "bad",
    [{"C": 0.0}, {"C": np.inf}, {"C": "1"}, {"tol": 0.0}, {"max_iter": 0}, {"max_iter": 1.5}],
    ids=lambda bad: "-".join(map(str, *bad.items())),
)
def test_bad_parameters(model, loss, bad):
    X, y = sample()
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        clone(model).set_params(**bad).fit(X, y)


@pytest.mark.parametrize("k", [0, -3, 0.0, 1.2, True, "10", None])
def test_bad_k(k):
    X, y = sample()
    with pytest.raises(ValueError, match=r"k (as a|must be)"):
        PrecisionAtKClassifier(k).fit(X, y)


def test_k_beyond_the_rows():
    X, y = sample()
    with pytest.raises(ValueError, match="from 1 to the total weight, 300; got 301"):
        PrecisionAtKClassifier(301).fit(X, y)


@pytest.mark.parametrize("beta", [0.0, -1.0, np.inf, np.nan, "1"])
def test_bad_beta(beta):
    X, y = sample()
    with pytest.raises((ValueError, TypeError), match="beta"):
        FBetaClassifier(beta).fit(X, y)
