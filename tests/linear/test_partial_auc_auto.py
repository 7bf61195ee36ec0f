"""The default loss: never below its start, blind to units, near the start for small C, better for large C."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from helpers.auto_problems import problems
from helpers.linear_models import sample
from rocmax import AUCClassifier, PartialAUCClassifier
from rocmax.metrics import partial_auc_score

QUICK = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def windows(draw):
    """Any window, those of a handful of negatives and of less than one included."""
    low = draw(st.sampled_from([0.0, 0.0, 0.01, 0.02, 0.1, 0.3]))
    return low, min(1.0, low + draw(st.sampled_from([0.001, 0.01, 0.03, 0.05, 0.1, 0.5, 1.0])))


def merged(scores):
    """Scores in their own unit, equal ones made equal: rounding must not break ties."""
    spread = np.std(scores)
    return np.round((scores - np.mean(scores)) / spread, 9) if spread > 0 else np.zeros_like(scores)


def partial_auc(y, scores, bounds, weight=None):
    return partial_auc_score(y, merged(scores), min_fpr=bounds[0], max_fpr=bounds[1], sample_weight=weight)


def partial_auc_with_ties_broken(y, scores, bounds, weight, shift):
    """Partial AUC after positives tied with negatives were moved by ``shift``, as rounding may do it."""
    return partial_auc(y, merged(scores) + shift * (y == 1), bounds, weight)


def starts(X, y, weight=None):
    """Scores of logistic regression on standardized features; no ranking is no start."""
    Z = StandardScaler().fit_transform(X, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [LogisticRegression(tol=1e-9, max_iter=1000).fit(Z, y, sample_weight=weight)]
    return [Z @ model.coef_[0] for model in models if model.coef_.any()]


# The full AUC gives the negative and a positive equal scores, up to rounding.
TIED = (
    np.array(
        [
            [1, -1, 2, 3],
            [1, 2, 1, 1],
            [-1, -3, 5, -1],
            [-1, -2, 2, 0],
            [1, -1, -1, 1],
            [1, 0, -1, 1],
            [2, 2, -2, 0],
            [-3, -1, 0, 3],
            [1, -1, 0, 1],
            [-1, 2, 1, -2],
            [3, 1, -4, 0],
            [1, -2, 0, 0],
            [6, 2, -2, -2],
            [3, 2, 2, 1],
            [1, -1, 3, 2],
        ],
        dtype=float,
    ),
    np.where(np.arange(15) == 1, 0, 1),
    None,
)


@given(problems(), windows(), st.sampled_from([1e-3, 1.0, 100.0, 1e6]))
@example(TIED, (0.0, 0.001), 1e-3)
@QUICK
def test_never_below_its_start(problem, bounds, C):
    X, y, weight = problem
    model = PartialAUCClassifier(*bounds, C=C).fit(X, y, weight)
    got = partial_auc_with_ties_broken(y, X @ model.coef_[0], bounds, weight, 1e-8)
    least = [partial_auc_with_ties_broken(y, scores, bounds, weight, -1e-8) for scores in starts(X, y, weight)]
    assert got >= max(least) - 1e-9
    # And not by collapsing onto ties, which a bounded loss may like better than a poor ranking.
    assert np.std(X @ model.coef_[0]) > 1e-6 * np.std(X, axis=0).max() * np.abs(model.coef_).max()
    assert np.std(X @ model.coef_[0]) > 1e-3


@pytest.mark.parametrize("seed", [1, 13, 18, 21, 44])
@pytest.mark.parametrize(("n", "d"), [(30, 1), (200, 1), (60, 2)])
def test_noise_has_a_fit(seed, n, d):
    # Here equal scores have a larger partial AUC than some start, and are no start all the same.
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), np.arange(n) % 2
    model = PartialAUCClassifier(max_fpr=0.05).fit(X, y)
    assert np.std(X @ model.coef_[0]) > 1e-3
    got = partial_auc(y, X @ model.coef_[0], (0.0, 0.05))
    assert got >= max(partial_auc(y, scores, (0.0, 0.05)) for scores in starts(X, y)) - 1e-9


def test_rows_without_any_trend_have_a_fit_or_a_warning():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PartialAUCClassifier(max_fpr=0.5).fit(X, y)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert np.isfinite(model.coef_).all()
    assert caught or np.ptp(X @ model.coef_[0]) > 1e-3


@given(problems(), windows())
@example(TIED, (0.0, 0.001))
@QUICK
def test_a_weak_loss_gives_the_start(problem, bounds):
    X, y, weight = problem
    model = PartialAUCClassifier(*bounds, C=1e-9).fit(X, y, weight)
    scores = merged(X @ model.coef_[0])
    expected = [merged(start) for start in starts(X, y, weight)]
    distances = [np.abs(scores - start).max() for start in expected]
    # Both are solutions up to a gap, and their iterates can differ by rounding errors.
    assert min(distances) < 1e-3
    chosen = partial_auc_with_ties_broken(y, scores, bounds, weight, 1e-8)
    least = [partial_auc_with_ties_broken(y, start, bounds, weight, -1e-8) for start in expected]
    assert chosen >= max(least) - 1e-9


@given(
    problems(),
    st.lists(st.floats(-3, 3), min_size=5, max_size=5),
    st.lists(st.floats(-5, 5), min_size=5, max_size=5),
    st.sampled_from([0.1, 1.0, 10.0]),
)
@QUICK
def test_units_of_features_do_not_matter(problem, exponents, shifts, C):
    X, y, weight = problem
    d = X.shape[1]
    scale, shift = 10.0 ** np.array(exponents[:d]), np.array(shifts[:d])
    one = PartialAUCClassifier(0.0, 0.3, C=C).fit(X, y, weight)
    two = PartialAUCClassifier(0.0, 0.3, C=C).fit((X + shift) * scale, y, weight)
    # Rounding may tip a descent into another local minimum, of the same height within the tolerance.
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-3, abs=1e-6)
    scores = [merged(X @ one.coef_[0]), merged((X + shift) * scale @ two.coef_[0])]
    assert np.corrcoef(*scores)[0, 1] > 0.999 or one.objective_ == two.objective_ == 0
    assert partial_auc(y, scores[0], (0.0, 0.3), weight) == pytest.approx(
        partial_auc(y, scores[1], (0.0, 0.3), weight), abs=0.02
    )


@pytest.mark.parametrize("seed", range(3))
def test_units_of_features_do_not_matter_to_the_weights(seed):
    X, y = sample(n=300, d=4, seed=seed, shift=1.5)
    scale, shift = np.array([1e4, 1e-4, 7.0, 0.3]), np.array([3.0, -20.0, 0.0, 1.0])
    one = PartialAUCClassifier(max_fpr=0.1).fit(X, y)
    two = PartialAUCClassifier(max_fpr=0.1).fit(scale * (X + shift), y)
    np.testing.assert_allclose(two.coef_ * scale, one.coef_, rtol=1e-5, atol=1e-7)
    assert one.score(X, y) == pytest.approx(two.score(scale * (X + shift), y), abs=1e-9)
    np.testing.assert_array_equal(one.predict(X), two.predict(scale * (X + shift)))


@pytest.mark.parametrize("seed", range(3))
def test_scales_of_sparse_features_do_not_matter(seed):
    X, y = sample(n=300, d=4, seed=seed, shift=1.5)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    scale = np.array([1e4, 1e-4, 7.0, 0.3])
    one = PartialAUCClassifier(max_fpr=0.1).fit(sparse.csr_array(X), y)
    two = PartialAUCClassifier(max_fpr=0.1).fit(sparse.csr_array(scale * X), y)
    np.testing.assert_allclose(two.coef_ * scale, one.coef_, rtol=1e-5, atol=1e-7)


def mixture(seed, n=800):
    """Positives in two groups, one easy to tell from the top negatives and one not: room above the start."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 5 == 0).astype(int)
    X = rng.normal(size=(n, 4))
    easy = rng.random(n) < 0.5
    X[(y == 1) & easy, 0] += 3.0
    X[(y == 1) & ~easy, 1] += 1.5
    return X, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bounds", [(0.0, 0.05), (0.02, 0.05), (0.05, 0.2)])
def test_a_stronger_loss_fits_the_training_rows_better(seed, bounds):
    X, y = mixture(seed)
    scores = [PartialAUCClassifier(*bounds, C=C).fit(X, y).score(X, y) for C in (1e-9, 0.1, 1.0, 10.0, 1e3)]
    best = np.maximum.accumulate(scores)
    assert np.all(np.array(scores) >= best - 0.02)
    assert min(scores) == pytest.approx(scores[0], abs=1e-12)
    assert max(scores) > scores[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_move_from_the_start_grows_with_the_strength(seed):
    X, y = mixture(seed)
    start = X @ PartialAUCClassifier(max_fpr=0.05, C=1e-9).fit(X, y).coef_[0]
    moves = [
        np.var(X @ PartialAUCClassifier(max_fpr=0.05, C=C).fit(X, y).coef_[0] - start) for C in (0.01, 0.1, 1.0, 10.0)
    ]
    assert moves == sorted(moves)
    assert moves[0] < 1e-3 < moves[-1]


def test_the_window_matters():
    X, y = mixture(0, n=4000)
    fits = {bounds: PartialAUCClassifier(*bounds, C=100.0).fit(X, y) for bounds in [(0.0, 0.02), (0.2, 0.6)]}
    for bounds, fit in fits.items():
        for other in fits.values():
            low, high = bounds
            theirs = partial_auc_score(y, other.decision_function(X), min_fpr=low, max_fpr=high)
            assert fit.score(X, y) >= theirs - 1e-12
    assert fits[0.0, 0.02].coef_[0, 0] / fits[0.0, 0.02].coef_[0, 1] > (
        1.2 * fits[0.2, 0.6].coef_[0, 0] / fits[0.2, 0.6].coef_[0, 1]
    )


def test_the_whole_curve_is_no_worse_than_the_full_auc():
    X, y = sample(n=300, seed=1, shift=1.0)
    model = PartialAUCClassifier(0.0, 1.0).fit(X, y)
    assert model.score(X, y) >= AUCClassifier(C=10.0).fit(StandardScaler().fit_transform(X), y).score(X, y) - 0.005


def test_a_weight_counts_as_trust():
    X, y = mixture(1, n=400)
    moved = []
    for factor in (1.0, 100.0):
        weight = np.full(y.size, factor)
        start = X @ PartialAUCClassifier(max_fpr=0.1, C=1e-9).fit(X, y, weight).coef_[0]
        scores = X @ PartialAUCClassifier(max_fpr=0.1, C=0.1).fit(X, y, weight).coef_[0]
        moved.append(np.var(scores - start))
    assert moved[1] > moved[0]


@pytest.mark.parametrize("bounds", [(0.0, 0.05), (0.02, 0.05), (0.0, 0.001), (0.0, 0.025), (0.5, 0.51)])
@pytest.mark.parametrize("n_neg", [1, 2, 40])
def test_windows_of_a_handful_of_negatives(bounds, n_neg):
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(n_neg, dtype=int), np.ones(30, dtype=int)]
    X = rng.normal(size=(y.size, 3))
    X[:, 0] += 1.5 * y
    model = PartialAUCClassifier(*bounds).fit(X, y)
    got = partial_auc(y, X @ model.coef_[0], bounds)
    assert got >= max(partial_auc(y, scores, bounds) for scores in starts(X, y)) - 1e-9
    assert np.isfinite(model.coef_).all()
    assert np.mean(model.predict(X[y == 0]) == 1) <= bounds[1]


@pytest.mark.parametrize("bounds", [(0.0, 0.05), (0.02, 0.1)])
def test_sparse_and_dense_rows_start_alike(bounds):
    X, y = sample(n=200, d=5, seed=3, shift=1.5)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    dense = PartialAUCClassifier(*bounds).fit(X, y)
    other = PartialAUCClassifier(*bounds).fit(sparse.csr_array(X), y)
    assert dense.score(X, y) == pytest.approx(other.score(X, y), abs=0.01)
    one, two = merged(X @ dense.coef_[0]), merged(X @ other.coef_[0])
    assert np.corrcoef(one, two)[0, 1] > 0.999
