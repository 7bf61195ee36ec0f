"""Scores that are equal up to rounding error: joined near one score as among all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmax._rounding import join_ties, join_ties_near, product_error
from rocmax.measures import at_fpr, at_tpr, highest_rejected, lowest_accepted

RULES = {"fpr": (at_fpr, highest_rejected), "tpr": (at_tpr, lowest_accepted)}


@given(
    seed=st.integers(0, 2**32 - 1),
    single=st.booleans(),
    decimals=st.sampled_from([None, 1, 2, 3]),
    shift=st.sampled_from([0.0, 1.0, 1e6]),
    repeats=st.sampled_from([1, 3]),
    rate=st.sampled_from([1e-4, 0.01, 0.3, 0.9, 1.0]),
    rule=st.sampled_from(sorted(RULES)),
)
@settings(max_examples=60, deadline=None)
def test_the_threshold_is_that_of_ties_joined_among_all_rows(seed, single, decimals, shift, repeats, rate, rule):
    rng = np.random.default_rng(seed)
    n_rows = 12_000  # so many that most of them are left out
    X = rng.standard_normal((n_rows, 3))
    X = (X if decimals is None else np.round(X, decimals))[rng.integers(0, n_rows // repeats, n_rows)] + shift
    X, w = X.astype(np.float32 if single else np.float64), rng.standard_normal(3)
    # The order of the terms differs between rows, and so do the rounding errors of equal scores.
    scores = np.where(rng.random(n_rows) < 0.5, X @ w.astype(X.dtype), X[:, ::-1] @ w[::-1].astype(X.dtype))
    scores = scores.astype(np.float64)
    positive = rng.random(n_rows) < 0.1
    threshold, score_at = RULES[rule]
    place = score_at(scores, positive, None, rate)
    if place is None:
        return
    expected = join_ties(scores, product_error(X, w))
    near = join_ties_near(scores.copy(), place, lambda rows: product_error(X[rows], w))
    assert threshold(near, positive, None, rate) == threshold(expected, positive, None, rate)


def test_few_rows_are_examined():
    rng = np.random.default_rng(0)
    scores, examined = rng.standard_normal(200_000), []

    def error(rows):
        examined.append(rows.size)
        return np.full(rows.size, 1e-12)

    join_ties_near(scores, float(scores[17]), error)
    assert 0 < sum(examined) < 5000


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.37, 1.0])
def test_weights_of_one_change_nothing(rate):
    rng = np.random.default_rng(1)
    scores, positive = np.round(rng.standard_normal(500), 1), rng.random(500) < 0.3
    for _, score_at in RULES.values():
        assert score_at(scores, positive, None, rate) == score_at(scores, positive, np.ones(500), rate)
