"""The default loss: blind to shift and scale, held near its anchor; and losses on a thinned sample."""

import numpy as np
import pytest

from rocmax.losses import PairwiseHinge, PartialAUCRamp, PartialAUCTight
from rocmax.losses.bounded import Anchored


def anchored(seed=0, strength=0.7, weighted=False, n=60):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3 == 0
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    base = PartialAUCRamp(0.0, 0.5, width=0.5, margin=0.0).bind(y, weight)
    anchor = rng.standard_normal(n)
    return Anchored(base, anchor, strength), anchor, rng


@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_is_that_of_the_value(weighted):
    loss, _, rng = anchored(weighted=weighted)
    for _ in range(20):
        scores, direction = 3 * rng.standard_normal((2, 60))
        step = 1e-6
        rise = (
            loss.value_and_gradient(scores + step * direction)[0]
            - loss.value_and_gradient(scores - step * direction)[0]
        )
        np.testing.assert_allclose(loss.value_and_gradient(scores)[1] @ direction, rise / (2 * step), atol=1e-6)


def test_shift_and_scale_do_not_matter():
    loss, _, rng = anchored()
    scores = rng.standard_normal(60)
    value, gradient = loss.value_and_gradient(scores)
    for scale, shift in ((1e-6, 0.0), (5.0, -3.0), (1e6, 1e7)):
        other, other_gradient = loss.value_and_gradient(scale * scores + shift)
        assert other == pytest.approx(value, rel=1e-8)
        np.testing.assert_allclose(scale * other_gradient, gradient, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_base_loss_is_that_of_scores_with_mean_zero_and_variance_one(weighted):
    loss, _, rng = anchored(strength=0.0, weighted=weighted)
    y, weight, scores = np.arange(60) % 3 == 0, loss.weight, 3 * rng.standard_normal(60) + 1
    mean = np.average(scores, weights=weight)
    standard = (scores - mean) / np.sqrt(np.average((scores - mean) ** 2, weights=weight))
    base = PartialAUCRamp(0.0, 0.5, width=0.5, margin=0.0).bind(y, weight)
    assert loss.value_and_gradient(scores)[0] == pytest.approx(base.value_and_gradient(standard)[0], rel=1e-12)


def test_the_penalty_is_one_minus_the_correlation():
    loss, anchor, rng = anchored(strength=2.0)
    free, *_ = anchored(strength=0.0)
    scores = rng.standard_normal(60)
    penalty = loss.value_and_gradient(scores)[0] - free.value_and_gradient(scores)[0]
    assert penalty == pytest.approx(2.0 * (1 - np.corrcoef(scores, anchor)[0, 1]))
    assert loss.value_and_gradient(anchor)[0] == pytest.approx(free.value_and_gradient(anchor)[0])


def test_scores_that_all_tie_have_a_value_and_no_slope():
    loss, *_ = anchored()
    value, gradient = loss.value_and_gradient(np.full(60, 3.0))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_a_thinned_loss_is_close_to_the_whole():
    rng = np.random.default_rng(0)
    y = rng.random(40_000) < 0.2
    scores = rng.standard_normal(40_000) + y
    for whole in (PairwiseHinge().bind(y), PartialAUCTight(0.0, 0.1).bind(y)):
        rows, copies = whole.at(scores).sample(10_000)
        small = whole.restrict(rows, copies)
        assert 8_000 < rows.size < 15_000
        assert (np.diff(rows) > 0).all()
        ratio = small.value_and_gradient(scores[rows])[0] / whole.value_and_gradient(scores)[0]
        assert ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("n_bins", [None, 64])
def test_a_sample_is_taken_of_at_least_three_times_as_many_rows(n_bins):
    scores = np.random.default_rng(0).standard_normal(3000)
    bound = PairwiseHinge().bind(np.arange(3000) % 3 == 0)
    here = (bound if n_bins is None else bound.binned(n_bins)).at(scores)
    assert here.sample(1001) is None
    rows, _ = here.sample(1000)
    assert 0 < rows.size < 3000


def test_small_samples_and_narrow_windows_are_not_thinned():
    y, scores = np.arange(40_000) % 4 == 0, np.zeros(40_000)
    assert PairwiseHinge().bind(y).at(scores).sample(20_000) is None
    assert PartialAUCTight(0.0, 0.01).bind(y).at(scores).sample(1_000) is None
    assert PartialAUCTight(0.1, 0.5).bind(y).at(scores).sample(1_000) is None
    assert PartialAUCRamp(0.0, 0.5).bind(y).at(scores).sample(1_000) is None
