"""Smooth charges on a window: sums on a grid, curvature for boosting, linear models."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from helpers.loss_cases import PAIRS, PAIRS_NAMES, SURROGATES, generic_sample, law, samples
from oracles import brute
from rocmax import MiniBatchClassifier, ScoreClassifier
from rocmax.losses import PairwiseSquaredHinge, WindowPairs
from rocmax.losses import logistic_pairs as sums
from rocmax.losses.base import Tilted
from rocmax.measures import PartialAUCMeasure
from rocmax.metrics import partial_auc_score
from rocmax.penalties import L2Ball, SquaredL2

ARGUMENTS = [dict(zip(PAIRS_NAMES, values, strict=True)) for values in PAIRS]
every_pairs = pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)


# Sums of the sigmoid function and its derivatives


def all_pairs(order, pos, neg, weight):
    return sums.sigmoid(order, neg - pos[:, None]) @ weight


@pytest.mark.parametrize("order", range(7))
def test_derivatives_of_the_sigmoid_function(order):
    x = np.linspace(-30.0, 30.0, 601)
    if order == 0:
        np.testing.assert_allclose(sums.sigmoid(0, x), expit(x), rtol=1e-14)
    else:
        h = 1e-5
        slope = (sums.sigmoid(order - 1, x + h) - sums.sigmoid(order - 1, x - h)) / (2 * h)
        np.testing.assert_allclose(sums.sigmoid(order, x), slope, atol=1e-8)
    assert np.isfinite(sums.sigmoid(order, np.array([-1e300, -800.0, 0.0, 800.0, 1e300]))).all()


@pytest.mark.parametrize("shape", ["normal", "tied", "gaps"])
def test_sums_on_a_grid_are_those_of_all_pairs(shape, monkeypatch):
    monkeypatch.setattr(sums, "FEW_PAIRS", 0)
    monkeypatch.setattr(sums, "RULES", replace(sums.RULES, pairs_per_cell=1e-9))
    rng = np.random.default_rng(5)
    pos, neg = rng.normal(1.0, 2.0, 90), rng.normal(0.0, 3.0, 400)
    if shape == "tied":
        pos, neg = np.round(pos), np.round(neg)
    elif shape == "gaps":
        pos[:20] += 1e5
        neg[:50] -= 3e6
        neg[50:90] += 1e5
    v, w = rng.uniform(0.1, 3.0, pos.size), rng.uniform(0.1, 3.0, neg.size)
    found = sums.SigmoidSums(pos, neg, v, w)
    assert found._grid is not None
    for order in range(2):
        expected = all_pairs(order, pos, neg, w)
        unit = w.sum() * (1 + abs(expected / w.sum()).max())
        np.testing.assert_allclose(found.of_positives(order), expected, rtol=0, atol=1e-13 * unit)
        expected = v @ sums.sigmoid(order, neg - pos[:, None])
        np.testing.assert_allclose(found.of_negatives(order), expected, rtol=0, atol=1e-13 * v.sum())


def test_the_error_bound_of_the_expansion():
    # h^p max |S^(k+p)| / p! for the highest derivative that is used, as the module states it.
    x = np.linspace(-20.0, 20.0, 100_001)
    terms, density = sums.RULES.terms, sums.RULES.density
    largest = max(np.abs(sums.sigmoid(order + terms, x)).max() for order in range(2))
    assert largest / density**terms / math.factorial(terms) < 2e-13


@pytest.mark.parametrize("n_cells", [sums.RULES.most_cells, 10])
def test_scores_without_gaps_over_a_wide_range(n_cells, monkeypatch):
    # On a grid that is large enough, or pair by pair.
    monkeypatch.setattr(sums, "RULES", replace(sums.RULES, most_cells=n_cells))
    rng = np.random.default_rng(6)
    y = rng.random(3000) < 0.2
    scores = 2e3 * rng.standard_normal(y.size)
    loss = WindowPairs(max_fpr=0.4)
    value, gradient = loss.bind(y).value_and_gradient(scores)
    pos, neg = scores[y], np.sort(scores[~y])[::-1]
    inside = np.clip(0.4 * neg.size - np.arange(neg.size), 0.0, 1.0)
    norm = pos.size * 0.4 * neg.size
    np.testing.assert_allclose(value, all_pairs(0, pos, neg, inside).sum() / norm, rtol=1e-10)
    np.testing.assert_allclose(gradient[y], -all_pairs(1, pos, neg, inside) / norm, rtol=1e-9, atol=1e-14)


@every_pairs
@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_are_those_of_all_pairs(arguments, weighted):
    """Enough pairs for a grid; the weights of the rows by their definition."""
    y, weight, scores = generic_sample(np.random.default_rng(8), 300, 2000, weighted)
    scores = 2.0 * scores
    loss = WindowPairs(**arguments)
    bound = loss.bind(y, weight)
    value, gradient = bound.value_and_gradient(scores)
    floor = 0.0 if loss.soft_tail else loss.min_tpr
    sample = brute.Sample(scores, y, weight, loss.min_fpr, loss.max_fpr, floor)
    share, v = np.zeros(y.size), np.zeros(y.size)
    for row, _, length in brute.lowest_tail_weights(sample, loss.min_tpr) if loss.soft_tail else sample.positives:
        v[row] += length
    if loss.soft_tail:
        for row, _, length in brute.soft_tail_weights(sample):
            share[row] += length
    else:
        for row, _, length, place in sample.pieces:
            share[row] += length if place == brute.INSIDE else 0.0
    x = (scores[~y] - scores[y][:, None]) / loss.scale
    charge, slope = {
        "sigmoid": lambda: (sums.sigmoid(0, x), sums.sigmoid(1, x)),
        "squared_hinge": lambda: (np.maximum(1 + x, 0) ** 2, 2 * np.maximum(1 + x, 0)),
    }[loss.surrogate]()
    norm = v[y].sum() * share.sum()
    expected = np.zeros(y.size)
    expected[y] = -v[y] * (slope @ share[~y]) / (norm * loss.scale)
    expected[~y] = share[~y] * (v[y] @ slope) / (norm * loss.scale)
    np.testing.assert_allclose(value, v[y] @ charge @ share[~y] / norm, rtol=1e-10)
    np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-13)
    boosted, _ = bound.gradient_and_curvature(scores)
    np.testing.assert_allclose(boosted, gradient, rtol=1e-9, atol=1e-15)


# Parameters and relations


def test_the_squared_hinge_on_all_pairs():
    y, weight, scores = generic_sample(np.random.default_rng(1), weighted=True)
    ours = WindowPairs("squared_hinge", max_fpr=1.0).bind(y, weight).value_and_gradient(scores)
    theirs = PairwiseSquaredHinge().bind(y, weight).value_and_gradient(scores)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-13)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12, atol=1e-15)


def test_a_soft_tail_of_all_negatives_is_no_tail():
    y, weight, scores = generic_sample(np.random.default_rng(2), weighted=True)
    for surrogate in SURROGATES:
        soft, hard = (WindowPairs(surrogate, max_fpr=1.0, soft_tail=tail).bind(y, weight) for tail in (True, False))
        np.testing.assert_allclose(soft.value_and_gradient(scores)[1], hard.value_and_gradient(scores)[1], rtol=1e-12)


@given(sample=samples(scales=(2.0**-10, 1.0, 8.0)), scale=st.sampled_from([0.25, 2.0, 8.0]))
@law
def test_scale_is_the_unit_of_the_scores(sample, scale):
    y, weight, scores = sample
    for surrogate in SURROGATES:
        value, gradient = WindowPairs(surrogate, max_fpr=0.3).bind(y, weight).value_and_gradient(scores)
        scaled = WindowPairs(surrogate, max_fpr=0.3, scale=scale).bind(y, weight)
        again, coefficients = scaled.value_and_gradient(scale * scores)
        np.testing.assert_allclose(again, value, rtol=1e-12)
        np.testing.assert_allclose(scale * coefficients, gradient, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"surrogate": "hinge"}, "surrogate must be one of sigmoid, squared_hinge; got 'hinge'"),
        ({"min_fpr": 0.5, "max_fpr": 0.2}, "min_fpr < max_fpr"),
        ({"min_fpr": 0.01, "soft_tail": True}, "min_fpr must be 0 for a soft tail; got 0.01"),
        ({"scale": 0.0}, "scale must be a finite number > 0; got 0.0"),
        ({"scale": math.inf}, "scale must be .* got inf"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        WindowPairs(**arguments)


def test_flags_of_the_bound_losses():
    for arguments in ARGUMENTS:
        bound = WindowPairs(**arguments).bind([1, 0, 0])
        assert bound.convex == (arguments["surrogate"] != "sigmoid" and arguments["min_fpr"] == 0)
        assert bound.has_gradient_and_curvature
    sigmoid = WindowPairs().bind([1, 0])
    for call in (sigmoid.split, lambda: sigmoid.curvature([0.0, 1.0], 5)):
        with pytest.raises(TypeError, match="BoundWindowPairs"):
            call()


# Diagonal curvature


@every_pairs
@pytest.mark.parametrize("weighted", [False, True])
def test_curvature_is_the_diagonal_of_the_hessian_or_bounds_it(arguments, weighted):
    y, weight, scores = generic_sample(np.random.default_rng(3), 10, 30, weighted)
    bound = WindowPairs(**arguments).bind(y, weight)
    gradient, curvature = bound.gradient_and_curvature(scores)
    np.testing.assert_allclose(gradient, bound.value_and_gradient(scores)[1], rtol=1e-12, atol=1e-16)
    assert (curvature > 0).all()
    expected = brute.window_pairs_curvature(scores, y, weight, **arguments)
    np.testing.assert_allclose(curvature, expected, rtol=1e-9, atol=1e-8 * curvature.mean())
    for row in range(y.size):
        step = np.zeros(y.size)
        step[row] = 1e-6
        above, below = (bound.value_and_gradient(scores + sign * step)[1][row] for sign in (1, -1))
        assert abs(above - below) / 2e-6 <= curvature[row] * (1 + 1e-4) + 1e-6


@every_pairs
def test_weights_are_copies_for_the_curvature(arguments):
    rng = np.random.default_rng(4)
    y, _, scores = generic_sample(rng, 6, 14)
    weight = rng.integers(0, 4, y.size)
    weight[[np.argmax(y), np.argmin(y)]] = 2
    rows = np.repeat(np.arange(y.size), weight)
    loss = WindowPairs(**arguments)
    for part, copies in zip(
        loss.bind(y, weight).gradient_and_curvature(scores),
        loss.bind(y[rows]).gradient_and_curvature(scores[rows]),
        strict=True,
    ):
        np.testing.assert_allclose(part, np.bincount(rows, copies, y.size), rtol=1e-9, atol=1e-15)


def test_curvature_of_a_tilted_loss():
    y, weight, scores = generic_sample(np.random.default_rng(15), weighted=True)
    bound = WindowPairs("squared_hinge").bind(y, weight)
    tilt = np.linspace(0.0, 1.0, y.size)
    gradient, curvature = Tilted(bound, tilt, 1.0).gradient_and_curvature(scores)
    expected, same = bound.gradient_and_curvature(scores)
    np.testing.assert_allclose(gradient, expected - tilt)
    np.testing.assert_array_equal(curvature, same)


def test_curvature_is_positive_where_nothing_is_charged():
    y = np.repeat([1, 0], [2, 6])
    _, curvature = WindowPairs("squared_hinge").bind(y).gradient_and_curvature(5.0 * y)
    assert (curvature > 0).all()
    _, curvature = WindowPairs("sigmoid").bind(y).gradient_and_curvature(1e6 * y)
    assert (curvature > 0).all()


def test_rows_of_weight_zero_are_not_looked_at():
    y, weight, scores = generic_sample(np.random.default_rng(10), 8, 40, True)
    weight[np.flatnonzero(~y)[:5]] = 0.0
    scores[weight == 0] = np.nan
    gradient, curvature = WindowPairs(soft_tail=True).bind(y, weight).gradient_and_curvature(scores)
    assert (curvature[weight > 0] > 0).all()
    assert not gradient[weight == 0].any()
    assert not curvature[weight == 0].any()


# Estimators


def rows(n=1200):
    rng = np.random.default_rng(14)
    y = rng.random(n) < 0.2
    return rng.standard_normal((n, 4)) + 2.0 * y[:, None] * [1.0, 0.5, 0.0, 0.0], y


@pytest.mark.parametrize("soft_tail", [False, True])
def test_linear_models_are_certified(soft_tail):
    X, y = rows()
    loss = WindowPairs("squared_hinge", max_fpr=0.2, soft_tail=soft_tail)
    model = ScoreClassifier(loss, SquaredL2(10.0), tol=1e-4).fit(X, y)
    assert 0 <= model.dual_gap_ <= 1e-4 * model.objective_
    assert partial_auc_score(y, model.decision_function(X), max_fpr=0.2) > 0.7
    ball = ScoreClassifier(loss, L2Ball(2.0)).fit(X, y)
    assert ball.dual_gap_ <= 1e-3 * ball.objective_


@pytest.mark.parametrize(("surrogate", "low"), [("sigmoid", 0.0), ("squared_hinge", 0.05)])
def test_linear_models_without_a_certificate(surrogate, low):
    X, y = rows()
    model = ScoreClassifier(WindowPairs(surrogate, low, 0.2), SquaredL2(10.0)).fit(X, y)
    assert partial_auc_score(y, model.decision_function(X), max_fpr=0.2) > 0.7


class SquaredPartialAUC(PartialAUCMeasure):
    def convex_loss(self):
        return WindowPairs("squared_hinge", self.min_fpr, self.max_fpr)


def test_mini_batches_take_the_squared_hinge():
    X, y = rows(6000)
    model = MiniBatchClassifier(SquaredPartialAUC(max_fpr=0.2), random_state=0).fit(X, y)
    assert partial_auc_score(y, model.decision_function(X), max_fpr=0.2) > 0.7
