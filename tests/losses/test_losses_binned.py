"""Losses on binned scores: cuts below the exact loss, upper bounds above it, and bins that add up."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.loss_cases import CONVEX, every_convex_loss, generic_sample, law, magnitude, samples
from oracles import brute
from rocmax.losses import Binned, Bins, FBeta, PairwiseHinge, PartialAUCHinge, PartialAUCTight, ScoreGrid
from rocmax.losses.binned import row_coefficients

N_BINS = (1, 7, 200)
# Far from the others, so that the grid has bins of three widths.
OUTLIERS = np.array([-1e4, 3e5])


def tolerance(case, *scores):
    """Rounding of the exact loss: score differences, or their squares."""
    size = max(magnitude(s) for s in scores)
    return 1e-9 * (size**2 if "Squared" in type(case.loss).__name__ or "squared" in repr(case.loss) else size)


# Bounds


@every_convex_loss
@given(sample=samples(vectors=2), n_bins=st.sampled_from(N_BINS))
@law
def test_bounds_enclose_the_exact_loss_and_the_cut_stays_below_it(case, sample, n_bins):
    y, weight, scores, other = sample
    exact = case.loss.bind(y, weight)
    bound = Binned(case.loss, n_bins).bind(y, weight)
    at, elsewhere = (exact.value_and_gradient(s)[0] for s in (scores, other))
    value, gradient = bound.value_and_gradient(scores)
    allowed = tolerance(case, scores, other)
    assert value <= at + allowed
    assert bound.upper_bound(scores) >= at - allowed
    assert value + gradient @ (other - scores) <= elsewhere + allowed * (1 + np.abs(gradient).sum())


@every_convex_loss
@pytest.mark.parametrize("n_bins", N_BINS)
@pytest.mark.parametrize("width", [0.1, 2.0])
def test_smoothed_cuts_stay_below_the_exact_loss(case, n_bins, width):
    rng = np.random.default_rng(n_bins)
    y, weight, scores = generic_sample(rng, 20, 60, weighted=True)
    exact = case.loss.bind(y, weight)
    value, gradient = Binned(case.loss, n_bins).bind(y, weight).at(scores).minorant(width)
    for scale in (0.0, 0.3, 1.0, 4.0):
        other = scale * rng.standard_normal(y.size) + rng.choice([0.0, 1.0]) * scores
        assert value + gradient @ (other - scores) <= exact.value_and_gradient(other)[0] + 1e-10


@every_convex_loss
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_bins", N_BINS)
def test_values_are_those_of_brute_force_on_the_means_and_the_ends_of_the_bins(case, weighted, n_bins):
    y, weight, scores = generic_sample(np.random.default_rng(n_bins), 12, 40, weighted)
    bound = Binned(case.loss, n_bins).bind(y, weight)
    edges = ScoreGrid.covering(scores, n_bins).edges
    means = brute.bin_means(scores, y, weight, edges)
    np.testing.assert_allclose(bound.value_and_gradient(scores)[0], case.oracle(means, y, weight)[0], rtol=1e-10)
    ends = brute.bin_ends(scores, y, weight, edges)
    np.testing.assert_allclose(bound.upper_bound(scores), case.oracle(*ends)[0], rtol=1e-10)


@pytest.mark.parametrize("case", [CONVEX["PairwiseHinge"], CONVEX["PartialAUCTight[0.05,0.37]"]])
def test_the_distance_of_the_bounds_falls_with_the_square_of_the_width(case):
    y, weight, scores = generic_sample(np.random.default_rng(0), 400, 2000, weighted=True)
    errors = []
    for n_bins in (64, 256, 1024):
        bound = Binned(case.loss, n_bins).bind(y, weight)
        errors.append(bound.upper_bound(scores) - bound.value_and_gradient(scores)[0])
        assert bound.at(scores).upper == pytest.approx(bound.upper_bound(scores), abs=1e-15)
    assert errors[1] < errors[0] / 8
    assert errors[2] < errors[1] / 8


@every_convex_loss
def test_equal_scores_and_separate_scores_are_exact(case):
    y = np.repeat([True, False], [3, 9])
    exact = case.loss.bind(y)
    for scores, n_bins in ((np.full(12, 0.7), 5), (np.arange(12.0), 1024), (np.zeros(12), 1)):
        value, gradient = exact.value_and_gradient(scores)
        bound = Binned(case.loss, n_bins).bind(y)
        found, coefficients = bound.value_and_gradient(scores)
        assert found == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(coefficients, gradient, rtol=1e-9, atol=1e-12)
    assert Binned(case.loss, 1).bind(y).upper_bound(np.zeros(12)) == pytest.approx(
        exact.value_and_gradient(np.zeros(12))[0]
    )


@every_convex_loss
def test_a_weight_is_a_number_of_copies(case):
    rng = np.random.default_rng(5)
    y, _, scores = generic_sample(rng, 10, 30)
    copies = rng.integers(0, 4, y.size)
    copies[[np.argmax(y), np.argmin(y), np.argmax(scores), np.argmin(scores)]] = 2
    repeated = np.repeat(np.arange(y.size), copies)
    weighted, plain = Binned(case.loss, 8).bind(y, copies), Binned(case.loss, 8).bind(y[repeated])
    assert weighted.upper_bound(scores) == pytest.approx(plain.upper_bound(scores[repeated]), rel=1e-12)
    value, gradient = weighted.value_and_gradient(scores)
    expected, expected_gradient = plain.value_and_gradient(scores[repeated])
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, np.bincount(repeated, expected_gradient, y.size), atol=1e-12)


def test_rows_of_zero_weight_are_ignored_even_without_a_score():
    y, weight = np.array([1, 0, 1, 0, 0]), np.array([1.0, 1.0, 0.0, 2.0, 0.0])
    scores = np.array([0.3, 0.1, np.nan, 1.2, np.inf])
    bound = Binned(PairwiseHinge(), 64).bind(y, weight)
    exact = PairwiseHinge().bind(y, weight).value_and_gradient(scores)[0]
    value, gradient = bound.value_and_gradient(scores)
    assert value == pytest.approx(exact)
    assert bound.upper_bound(scores) >= exact - 1e-12
    assert gradient[2] == gradient[4] == 0
    with pytest.raises(ValueError, match="scores must be finite"):
        bound.value_and_gradient(np.array([0.3, np.nan, 0.0, 1.2, 0.0]))


def test_single_precision_scores_are_binned_exactly():
    y, _, scores = generic_sample(np.random.default_rng(2), 300, 3000)
    scores = scores.astype(np.float32)
    bound = Binned(PartialAUCTight(max_fpr=0.2), 4096).bind(y)
    exact = PartialAUCTight(max_fpr=0.2).bind(y).value_and_gradient(scores)[0]
    lower, upper = bound.value_and_gradient(scores)[0], bound.upper_bound(scores)
    assert exact - 1e-6 < lower <= exact <= upper < exact + 1e-6


# Bins


@given(sample=samples(), n_bins=st.sampled_from(N_BINS), parts=st.integers(1, 4))
@law
def test_bins_of_parts_add_up(sample, n_bins, parts):
    y, weight, scores = sample
    grid = ScoreGrid.covering(scores, n_bins)
    whole = Bins.count(grid, scores, y, weight if weight is None else np.array(weight))
    rows = np.array_split(np.arange(y.size), parts)
    pieces = [Bins.count(grid, scores[k], y[k], None if weight is None else np.array(weight)[k]) for k in rows]
    merged = sum(pieces[1:], pieces[0])
    np.testing.assert_array_equal(merged.weight, whole.weight)
    np.testing.assert_allclose(merged.total, whole.total, rtol=1e-12, atol=1e-12 * magnitude(scores))
    assert (merged.lowest, merged.highest) == (whole.lowest, whole.highest)


@pytest.mark.parametrize("shift", [0.0, -2.0, 5.0])
@pytest.mark.parametrize("n_bins", [1, 16, 500])
def test_a_grid_that_does_not_cover_the_scores_gives_valid_bounds(shift, n_bins):
    y, weight, scores = generic_sample(np.random.default_rng(7), 30, 100, weighted=True)
    loss = PartialAUCTight(0.05, 0.4)
    bins = Bins.count(ScoreGrid.covering(0.3 * scores + shift, n_bins), scores, y, weight)
    exact = loss.bind(y, weight).value_and_gradient(scores)[0]
    assert bins.minorant(loss.bind)[0] <= exact + 1e-12
    assert bins.upper_bound(loss.bind) >= exact - 1e-12


@pytest.mark.parametrize("n_bins", [64, 1000, 1 << 15])
def test_a_few_extreme_scores_do_not_widen_the_central_bins(n_bins):
    rng = np.random.default_rng(1)
    scores = np.concatenate([rng.standard_normal(5000), OUTLIERS])
    y = rng.random(scores.size) < 0.2
    grid = ScoreGrid.covering(scores, n_bins)
    edges = grid.edges
    assert edges.size == n_bins + 1
    assert (np.diff(edges) > 0).all()
    assert edges[0] == OUTLIERS[0]
    assert edges[-1] == OUTLIERS[1]
    central = np.diff(edges)[n_bins // 2]
    assert central < 20 / (0.8 * n_bins)
    cell = grid.cells(scores, y) - n_bins * y
    assert (edges[cell] <= scores + 1e-9 * np.abs(scores)).all()
    assert (scores <= edges[cell + 1] + 1e-9 * np.abs(scores)).all()


def test_coefficients_and_sums_of_bins_are_those_of_the_rows():
    rng = np.random.default_rng(3)
    y, weight, scores = generic_sample(rng, 50, 200, weighted=True)
    cells = np.empty(y.size, dtype=np.uint16)
    bins = Bins.count(ScoreGrid.covering(scores, 32), scores, y, weight, cells)
    _, coefficients = bins.minorant(PairwiseHinge().bind)
    gradient = row_coefficients(coefficients, cells, weight)
    np.testing.assert_allclose(gradient, Binned(PairwiseHinge(), 32).bind(y, weight).value_and_gradient(scores)[1])
    along = rng.standard_normal(y.size)
    assert coefficients @ bins.sums(cells, along, weight) == pytest.approx(gradient @ along)
    assert coefficients @ bins.total == pytest.approx(gradient @ scores)


def test_pickled_bins_are_equal():
    y, weight, scores = generic_sample(np.random.default_rng(4), weighted=True)
    bins = Bins.count(ScoreGrid.covering(scores, 16), scores, y, weight)
    copy = pickle.loads(pickle.dumps(bins))
    assert copy.grid == bins.grid
    assert copy.upper_bound(PairwiseHinge().bind) == bins.upper_bound(PairwiseHinge().bind)


# Bad input


@pytest.mark.parametrize("n_bins", [0, -1, (1 << 15) + 1, 2.5, True, None])
def test_a_bad_number_of_bins_is_an_error(n_bins):
    with pytest.raises(ValueError, match="n_bins must be an integer from 1 to 32768; got"):
        Binned(PairwiseHinge(), n_bins)


def test_losses_that_cannot_be_binned_are_an_error():
    with pytest.raises(ValueError, match="loss must be a shift-invariant loss; got FBeta"):
        Binned(FBeta())
    with pytest.raises(ValueError, match="loss must be a shift-invariant loss; got 'hinge'"):
        Binned("hinge")
    with pytest.raises(ValueError, match="loss must be convex; got PartialAUCHinge"):
        Binned(PartialAUCHinge(0.1, 0.5)).bind([0, 1])


def test_bad_grids_are_an_error():
    with pytest.raises(ValueError, match="must be finite and ascending; got"):
        ScoreGrid(0.0, 2.0, 1.0, 3.0, 8)
    with pytest.raises(ValueError, match="must be finite and ascending; got"):
        ScoreGrid.covering(np.array([0.0, np.nan]), 8)
    with pytest.raises(ValueError, match="n_bins must be from 1 to 32768; got 0"):
        ScoreGrid(0.0, 0.0, 1.0, 1.0, 0)
    with pytest.raises(ValueError, match="central range"):
        ScoreGrid(0.0, 1.0, 2.0, 3.0, 2)
    one, two = (Bins.count(ScoreGrid.covering(np.arange(k), 4), np.arange(k) + 0.0, np.arange(k) > 0) for k in (2, 3))
    with pytest.raises(ValueError, match="both must have the same grid; got"):
        one + two


# Slopes


@every_convex_loss
@given(sample=samples(vectors=2), n_bins=st.sampled_from(N_BINS), width=st.sampled_from((0.0, 0.3)))
@law
def test_the_slope_from_sums_in_the_bins_is_that_of_the_gradient(case, sample, n_bins, width):
    y, weight, scores, direction = sample
    at = Binned(case.loss, n_bins).bind(y, weight).at(scores)
    gradient = at.minorant(width)[1]
    size = float(np.abs(gradient) @ np.abs(direction))
    assert at.slope(width, direction) == pytest.approx(float(gradient @ direction), abs=1e-12 * (1.0 + size))


@pytest.mark.parametrize(
    ("loss", "share"), [(PairwiseHinge(), 0.5), (PartialAUCTight(0.0, 0.25), None)], ids=["auc", "window"]
)
def test_a_sample_has_its_size_and_stands_for_all_rows(loss, share):
    y, _, scores = generic_sample(np.random.default_rng(0), 3000, 6000)
    rows, copies = loss.bind(y).binned(64).at(scores).sample(900)
    assert 0.8 * 900 <= rows.size <= 1.2 * 900
    assert np.unique(rows).size == rows.size
    for side in (True, False):
        assert copies[y[rows] == side].sum() == pytest.approx((y == side).sum(), rel=0.02)
    # Where all negatives are compared with positives, both classes have the same share.
    if share is not None:
        assert y[rows].mean() == pytest.approx(share, abs=0.1)


def test_copies_of_rows_are_repeated_rows():
    y, weight, scores = generic_sample(np.random.default_rng(0), 20, 40, weighted=True)
    rows, copies = np.arange(0, 60, 2), np.tile([1.0, 2.0, 3.0], 10)
    every = np.repeat(rows, copies.astype(int))
    loss = PartialAUCTight(0.0, 0.5)
    found, _ = loss.bind(y, weight).binned(64).restrict(rows, copies).value_and_gradient(scores[rows])
    expected, _ = loss.bind(y[every], weight[every]).value_and_gradient(scores[every])
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", [PairwiseHinge(), PartialAUCTight(0.0, 0.3)], ids=["auc", "window"])
def test_the_curvature_is_that_of_the_exact_loss(loss):
    y, weight, scores = generic_sample(np.random.default_rng(0), 40, 90, weighted=True)
    exact = loss.bind(y, weight)
    for found, expected in zip(
        exact.binned(64).curvature(scores, 200, 0.3), exact.curvature(scores, 200, 0.3), strict=True
    ):
        assert found.size > 0
        np.testing.assert_array_equal(found, expected)
