"""Probabilities from scores: against the published formulas."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from rocmax.thresholds import calibrated, fit_calibration


def rows(n, seed=0, decimals=8):
    """Scores, labels and weights; the classes overlap."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    return np.round(rng.standard_normal(n) + positive, decimals), positive, rng.integers(1, 4, n).astype(float)


def isotonic(values, positive, weight, scores):
    """The blocks of an isotonic regression by its min-max formula: centers and shares of positives."""
    mass = np.array([weight[scores == value].sum() for value in values])
    hits = np.array([weight[(scores == value) & positive].sum() for value in values])
    # A positive row of weight 1 at the lowest score, and a negative one at the highest.
    mass[0], mass[-1], hits[0] = mass[0] + 1, mass[-1] + 1, hits[0] + 1
    size = range(values.size)
    fit = [
        max(min(hits[j : k + 1].sum() / mass[j : k + 1].sum() for k in size[i:]) for j in size[: i + 1]) for i in size
    ]
    blocks = [np.flatnonzero(np.isclose(fit, share, rtol=1e-12)) for share in np.unique(np.round(fit, 12))]
    centers = [np.average(values[block], weights=mass[block]) for block in blocks]
    return centers, [hits[block].sum() / mass[block].sum() for block in blocks]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights"])
def test_with_many_rows_it_is_the_centered_isotonic_regression(weighted):
    scores, positive, weight = rows(6000, decimals=1)
    # Without the order of the classes in the middle, some blocks have several scores.
    positive[np.abs(scores - 0.5) < 0.45] = np.random.default_rng(1).random(np.sum(np.abs(scores - 0.5) < 0.45)) < 0.4
    weight = weight / weight.mean() if weighted else np.ones(scores.size)
    found = fit_calibration(scores, positive, weight)
    values = np.unique(scores)
    centers, shares = isotonic(values, positive, weight, scores)
    assert found["method"] == "isotonic"
    assert 5 < len(centers) < values.size
    np.testing.assert_allclose(found["scores"], centers, atol=1e-10)
    np.testing.assert_allclose(found["probabilities"], shares, atol=1e-10)


def test_between_centers_the_log_odds_are_linear_and_beyond_them_have_the_slope():
    found = {"method": "isotonic", "scores": [0.0, 2.0], "probabilities": [0.2, 0.7], "slope": 3.0}
    expected = expit([logit(0.2) - 3.0, logit(0.2), (logit(0.2) + logit(0.7)) / 2, logit(0.7), logit(0.7) + 1.5])
    np.testing.assert_allclose(calibrated(found, np.array([-1.0, 0.0, 1.0, 2.0, 2.5])), expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights"])
def test_with_few_rows_it_is_the_logistic_function_of_platt(weighted):
    scores, positive, weight = rows(300)
    scores = 5 * scores + 20
    weight = weight / weight.mean() if weighted else np.ones(scores.size)
    m, n = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (m + 1) / (m + 2), 1 / (n + 2))

    def entropy(at):
        margin = at[0] * (scores - 20) + at[1]
        return weight @ (np.logaddexp(0.0, margin) - target * margin)

    slope, intercept = minimize(entropy, [0.0, 0.0], options={"gtol": 1e-6}).x
    found = fit_calibration(scores, positive, weight if weighted else None)
    assert found["method"] == "sigmoid"
    assert found["slope"] == pytest.approx(slope, rel=1e-3)
    np.testing.assert_allclose(calibrated(found, scores), expit(slope * (scores - 20) + intercept), atol=1e-3)


@pytest.mark.parametrize("n", [300, 6000])
def test_the_unit_of_the_weights_does_not_matter(n):
    scores, positive, weight = rows(n, decimals=1)
    one, two = (calibrated(fit_calibration(scores, positive, unit * weight), scores) for unit in (1.0, 50.0))
    np.testing.assert_allclose(one, two, atol=1e-6)
    plain, equal = (calibrated(fit_calibration(scores, positive, given), scores) for given in (None, np.full(n, 9.0)))
    np.testing.assert_allclose(plain, equal, atol=1e-6)


@pytest.mark.parametrize(("n_positive", "method"), [(999, "sigmoid"), (1000, "isotonic")])
def test_the_method_depends_on_the_rows_of_the_smaller_class(n_positive, method):
    positive = np.arange(3000) < n_positive
    scores = np.random.default_rng(0).standard_normal(3000) + positive
    assert fit_calibration(scores, positive)["method"] == method
    assert fit_calibration(-scores, ~positive)["method"] == method
    # One row with most of the weight says as little as one row.
    heavy = np.where(np.arange(3000) == 0, 1e6, 1.0)
    assert fit_calibration(scores, positive, heavy)["method"] == "sigmoid"
