"""Cuts that are carried to a larger sample: never above the loss there, and as high as they can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import brute
from rocmax.losses import BreakEven, FBeta, FreeShift, GMean, PairwiseHinge, PartialAUCTight, PrecisionAtK
from rocmax.losses.contingency import couple
from rocmax.online.follow_the_leader import GrowingRows, carry, class_sums
from rocmax.operators import as_operator
from rocmax.solvers import Cuts

LOSSES = {
    "precision_at_k": PrecisionAtK(0.2),
    "large k": PrecisionAtK(0.8),
    "break_even_point": BreakEven(),
    "f1": FreeShift(FBeta()),
    "f2": FreeShift(FBeta(2.0)),
    "g_mean": FreeShift(GMean()),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def cuts_at(loss, X, y, points):
    """Cuts of the loss on these rows, one at each point."""
    bound, found = loss.bind(y), []
    for w in points:
        at = bound.at(X @ w)
        value, coefficients = at.minorant(0.0)
        found.append((X.T @ coefficients, value - coefficients @ (X @ w), at.tables))
    gradient, offset, tables = zip(*found, strict=True)
    return Cuts(np.array(gradient), np.array(offset), list(tables))


def grown(X, y, n_old, w):
    return GrowingRows(X, as_operator(X), y, X @ w, n_old, class_sums(X[:n_old], y[:n_old]))


def slack(loss, cuts, X, y, w):
    """How far each cut is below the loss, at one point."""
    return loss.bind(y).value_and_gradient(X @ w)[0] - cuts.offset - cuts.gradient @ w


@st.composite
def growing_samples(draw):
    """Rows of small whole numbers, so that scores tie; both classes among the old rows, any among the new ones."""
    sizes = [draw(st.integers(low, 7)) for low in (1, 1, 0, 0)]
    y = np.repeat([True, False, True, False], sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_old = sizes[0] + sizes[1]
    order = np.concatenate([rng.permutation(n_old), n_old + rng.permutation(y.size - n_old)])
    X = rng.integers(-3, 4, (y.size, 2)).astype(float)
    points = rng.integers(-2, 3, (6, 2)) * draw(st.sampled_from([0.2, 1.0]))
    return X, y[order], n_old, points


@every_loss
@given(growing_samples())
def test_carried_cuts_hold(loss, sample):
    X, y, n_old, points = sample
    cuts = carry(loss, cuts_at(loss, X[:n_old], y[:n_old], points[:3]), grown(X, y, n_old, points[3]))
    assert len(cuts.offset) == 3
    for w in points:
        assert slack(loss, cuts, X, y, w).min() >= -1e-9


@every_loss
@given(growing_samples())
def test_cuts_that_are_carried_twice_hold(loss, sample):
    X, y, n_old, points = sample
    half = (n_old + y.size) // 2
    cuts = cuts_at(loss, X[:n_old], y[:n_old], points[:2])
    cuts = carry(loss, cuts, grown(X[:half], y[:half], n_old, points[2]))
    cuts = carry(loss, cuts, grown(X, y, half, points[3]))
    assert min(slack(loss, cuts, X, y, w).min() for w in points) >= -1e-9


def by_enumeration(loss, s, y):
    """The loss on all rows from its definition, over all labellings."""
    if isinstance(loss, BreakEven):
        errors, coefficients = brute.top_by_enumeration(y, int(y.sum()), "best")
        return (errors + coefficients @ s).max()
    if isinstance(loss, PrecisionAtK):
        return brute.top_by_linear_program(s, y, loss.k * y.size)
    errors, coefficients = brute.contingency_by_enumeration(
        y, lambda tp, fp, m, n: float(loss.base.measure(np.float64(tp), np.float64(fp), m, n))
    )
    return brute.at_best_shift(errors + coefficients @ s, coefficients.sum(axis=1))


@every_loss
@pytest.mark.parametrize("seed", range(6))
def test_carried_cuts_hold_by_brute_force(loss, seed):
    rng = np.random.default_rng(seed)
    n_old, y = 5, np.array([1, 0, 0, 1, 0, 0, 1, 0], dtype=bool)
    if seed == 5:
        y[n_old:] = False  # a batch without positives
    X = rng.standard_normal((8, 2))
    points = rng.standard_normal((5, 2))
    cuts = carry(loss, cuts_at(loss, X[:n_old], y[:n_old], points), grown(X, y, n_old, points[0]))
    for w in [*points, *rng.standard_normal((5, 2))]:
        assert (cuts.offset + cuts.gradient @ w).max() <= by_enumeration(loss, X @ w, y) + 1e-8


@pytest.mark.parametrize("name", ["precision_at_k", "large k", "break_even_point", "f1", "f2", "g_mean"])
def test_the_cut_at_the_weights_at_hand_stays_close(name):
    # New rows of the same kind, a tenth of all: the scaled old cut alone would sink by a tenth of the loss.
    loss, rng = LOSSES[name], np.random.default_rng(0)
    y = rng.random(4000) < 0.2
    X = rng.standard_normal((4000, 3)) + y[:, None]
    w = np.full(3, 0.3)
    cuts = carry(loss, cuts_at(loss, X[:3600], y[:3600], [w]), grown(X, y, 3600, w))
    value = loss.bind(y).value_and_gradient(X @ w)[0]
    assert 0 <= slack(loss, cuts, X, y, w)[0] + 1e-12 < 0.004 * value


@pytest.mark.parametrize("loss", [PairwiseHinge(), PartialAUCTight(0.0, 0.3), *LOSSES.values()])
def test_the_factor_is_that_of_the_sum(loss):
    # The sum grows by what a batch adds; so the factor of the loss on rows repeated r times is r or r^2 times as large.
    m, n = 30, 170
    ratio = loss.sum_scale(2 * m, 2 * n) / loss.sum_scale(m, n)
    assert ratio == pytest.approx(4.0 if isinstance(loss, PairwiseHinge | PartialAUCTight) else 2.0)


def test_cuts_of_pairs_are_not_carried():
    rng, y = np.random.default_rng(0), np.arange(40) % 4 == 0
    X = rng.standard_normal((40, 2))
    old = cuts_at(PairwiseHinge(), X[:20], y[:20], rng.standard_normal((3, 2)))
    assert len(carry(PairwiseHinge(), old, grown(X, y, 20, np.zeros(2))).offset) == 0


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_tables_are_drawn_together_in_their_shares(first, second, seed):
    rng = np.random.default_rng(seed)
    one, two = (
        np.column_stack([rng.dirichlet(np.ones(size)), rng.integers(0, 5, (size, 2))]) for size in (first, second)
    )
    both = couple(one, two)
    assert both[:, 0].min() > 0
    assert both[:, 0].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(both[:, 0] @ both[:, 1:], one[:, 0] @ one[:, 1:] + two[:, 0] @ two[:, 1:], atol=1e-9)
    assert len(both) <= first + second - 1
