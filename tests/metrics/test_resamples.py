"""Large samples are redrawn in groups of neighboring scores: what a group may hold, and that intervals stay so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.simulated_scores import TRUTH, draw
from rocmax.metrics import bootstrap_interval, bootstrap_test
from rocmax.metrics import uncertainty as resamples
from rocmax.metrics.curve import Blocks
from rocmax.metrics.uncertainty import compare_measures, estimate_measures

NAMES = ["roc_auc", "partial_auc", "tpr_at_fpr", "break_even_point", "average_precision"]
MEASURES = [(name, TRUTH[name][0]) for name in NAMES]


def sample(n_negative, n_positive, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n_negative, n_positive])
    scores = rng.normal(size=y.size) + 1.3 * y
    return y, scores, 0.9 * scores + 0.4 * rng.normal(size=y.size)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5000), share=st.floats(0.01, 0.99), ties=st.integers(1, 5))
def test_a_group_is_a_fifth_of_a_standard_deviation_of_its_rank(seed, n, share, ties):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    weight = rng.integers(1, ties + 1, size=n).astype(float)
    blocks = Blocks(weight * ~positive, weight * positive)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resamples, "RULES", replace(resamples.RULES, n_exact=0))
        starts = resamples.group_starts(blocks)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    for of_class in blocks:
        total, rank = of_class.sum(), np.cumsum(of_class)
        last = np.append(starts[1:], n) - 1
        inside = rank[last] - rank[starts]
        nearer = np.maximum(np.minimum(rank[last], total - rank[starts] + of_class[starts]), 0)
        assert (inside <= np.sqrt(nearer) / 5 + ties + 1).all()
    sizes = [np.sqrt(of_class.sum()) for of_class in blocks]
    assert starts.size <= 15 * sum(sizes) + 2


def test_small_samples_are_not_grouped_and_depth_cuts_large_ones():
    small = Blocks(np.ones(20_000), np.zeros(20_000))
    assert resamples.group_starts(small).size == 20_000
    large = Blocks(np.ones(100_000), np.tile([1.0, 0.0], 50_000))
    whole, top = (resamples.group_starts(large, depth) for depth in (1.0, 0.01))
    # One group holds all that lies more than ten standard deviations beyond 1 % of the negatives.
    assert 1000 + 10 * np.sqrt(1000) + 100 - 1 <= top[-1] <= 1420
    np.testing.assert_array_equal(top[:-1], whole[: top.size - 1])


def test_grouped_intervals_are_those_of_all_rows(monkeypatch):
    y, first, second = sample(24_000, 3000)
    options = {"n_resamples": 400, "random_state": 0}
    window = MEASURES[1:3]
    grouped = estimate_measures(MEASURES, y, first, **options), compare_measures(window, y, first, second, **options)
    monkeypatch.setattr(resamples, "RULES", replace(resamples.RULES, n_exact=10**9))
    exact = estimate_measures(MEASURES, y, first, **options), compare_measures(window, y, first, second, **options)
    for one, other in zip(grouped[0] + grouped[1], exact[0] + exact[1], strict=True):
        width = other.high - other.low
        assert one[0] == other[0]
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=0.2 * width)
        assert one.high - one.low == pytest.approx(width, rel=0.2)


def test_the_same_seed_gives_the_same_result_alone_and_with_other_measures():
    y, first, second = sample(24_000, 3000, seed=1)
    options = {"n_resamples": 20, "random_state": 3}
    together = estimate_measures(MEASURES, y, first, **options)
    assert together == estimate_measures(MEASURES, y, first, **options)
    low, high = bootstrap_interval("roc_auc", y, first, **options)
    assert (low, high) == together[0][1:3]
    pair = compare_measures(MEASURES[1:3], y, first, second, **options)
    assert pair == compare_measures(MEASURES[1:3], y, first, second, **options)
    limits = TRUTH["partial_auc"][0]
    assert bootstrap_test("partial_auc", y, first, second, **limits, **options) == pair[0]


@pytest.mark.parametrize("scale", [1.0, 0.5, 40.0])
def test_weights_are_copies_in_large_samples_too(scale):
    y, first, second = sample(22_000, 1500, seed=2)
    weight = np.full(y.size, scale)
    options = {"n_resamples": 60, "random_state": 0, "max_fpr": 0.1}
    low, high = bootstrap_interval("tpr_at_fpr", y, first, sample_weight=weight, **options)
    plain = bootstrap_interval("tpr_at_fpr", y, first, **options)
    assert (high - low) * np.sqrt(scale) == pytest.approx(plain[1] - plain[0], rel=0.5)
    result = bootstrap_test("tpr_at_fpr", y, first, second, sample_weight=weight, **options)
    other = bootstrap_test("tpr_at_fpr", y, first, second, **options)
    assert result.difference == pytest.approx(other.difference)
    assert (result.high - result.low) * np.sqrt(scale) == pytest.approx(other.high - other.low, rel=0.5)


@pytest.mark.slow
def test_coverage_of_grouped_intervals(monkeypatch):
    """The size of a group follows the standard deviation of ranks, so small samples tell about large ones."""
    monkeypatch.setattr(resamples, "RULES", replace(resamples.RULES, n_exact=0))
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(300):
        found = estimate_measures(MEASURES, *draw(rng), n_resamples=150, random_state=rng)
        covered.append([e.low <= TRUTH[name][1] <= e.high for e, name in zip(found, NAMES, strict=True)])
    assert (np.abs(np.mean(covered, axis=0) - 0.95) <= 0.03).all()
