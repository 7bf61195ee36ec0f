"""Operator and loss on shards agree with those in memory, however the rows are divided."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from helpers.overlapping import overlapping_rows
from rocmax.data.store import MemoryRows
from rocmax.losses import PairwiseHinge, PartialAUCHinge, PartialAUCRamp, PartialAUCStructural, PartialAUCTight
from rocmax.losses.bounded import Anchored
from rocmax.operators import as_operator
from rocmax.penalties import L1Ball, SquaredL2
from rocmax.sharded.driver import ShardedAnchored, ShardedLoss, ShardedOperator, Space, certified
from rocmax.sharded.shard import LocalShards, Partition, Shard
from rocmax.solvers import CCCP, OCAS, ProximalBundle, SmoothedNewton

LOSSES = {
    "auc": PairwiseHinge(),
    "tight": PartialAUCTight(0.0, 0.2),
    "tight from 0.05": PartialAUCTight(0.05, 0.2),
    "structural": PartialAUCStructural(0.0, 0.2),
}


def shards(X, y, weight=None, ends=(), on_disk=False):
    """Divide rows at the given ends into one shard each, with two partitions in each shard."""
    made, number = [], 0
    for low, high in zip((0, *ends), (*ends, X.shape[0]), strict=True):
        middle = (low + high) // 2
        parts = [Partition(number, middle - low, start=low), Partition(number + 1, high - middle, start=middle)]
        number += 2
        w = None if weight is None else weight[low:high]
        made.append(Shard(MemoryRows([X[low:middle], X[middle:high]]), y[low:high], w, parts, on_disk))
    return ShardedOperator(Space(LocalShards(made), X.shape[1])), made


DIVISIONS = [(), (2000,), (100, 101, 4000)]


@pytest.mark.parametrize("ends", DIVISIONS)
@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "weights", "on disk"])
def test_products_and_bounds(form, ends):
    X, y = overlapping_rows()
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, y.size).astype(float) if form == "weights" else None
    if form == "sparse":
        X = sparse.csr_matrix(np.where(rng.random(X.shape) < 0.5, X, 0.0))
    X = X.astype(np.float32) if form == "float32" else X
    operator, made = shards(X, y, weight, ends, form == "on disk")
    w, p = rng.normal(size=(2, X.shape[1]))
    exact = as_operator(X)
    s, q = exact.matvec(w), exact.matvec(p)
    scores, along = operator.matvec(w), operator.matvec(p)
    moved = scores + 0.3 * along
    for loss in LOSSES.values():
        bound, sharded = loss.bind(y, weight), ShardedLoss(operator, loss.bind, n_bins=512)
        value = bound.value_and_gradient(s + 0.3 * q)[0]
        lower, c = sharded.value_and_gradient(moved)
        assert value - 1e-3 <= lower <= value * (1 + 1e-6)
        assert value * (1 - 1e-6) <= sharded.upper(moved) <= value + 1e-3
        # A cut holds at other scores too.
        for other in (scores, along, operator.zero_scores()):
            at = exact.matvec(other.w)
            assert lower + (c @ other - c @ moved) <= bound.value_and_gradient(at)[0] + 1e-6
        gradient = operator.rmatvec(c)
        scale = np.abs(gradient).max()
        for v, vector in ((w, scores), (p, along)):
            np.testing.assert_allclose(gradient @ v, c @ vector, atol=1e-4 * scale)
    for shard in made:
        shard.close()


def test_rows_by_number():
    X, y = overlapping_rows(500)
    operator, _ = shards(X, y, ends=(100, 300))
    index = np.array([499, 0, 101, 99, 300, 0])
    np.testing.assert_array_equal(operator.rows(index), X[index])


@pytest.mark.parametrize("form", ["dense", "sparse", "sparse with duplicates"])
def test_standardized_features_are_those_of_scikit_learn(form):
    X, y = overlapping_rows()
    if form != "dense":
        X = np.where(np.abs(X) > 1.0, X, 0.0)
    X[:, 3], X[:, 4] = 0.1, 0.0
    weight = np.random.default_rng(0).random(y.size)
    rows = X if form == "dense" else sparse.csr_matrix(X)
    if form == "sparse with duplicates":
        rows = sparse.csr_matrix((np.repeat(rows.data, 2) / 2, np.repeat(rows.indices, 2), 2 * rows.indptr))
        rows.resize(X.shape)
    operator, _ = shards(rows, y, weight, (700,))
    operator.space.standardize()
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(operator.space.mean, mean)
    # Constant features are left out, although the sums of their values are rounded.
    np.testing.assert_allclose(operator.space.scale, np.where(scale < 1e-12, np.inf, scale))
    w = np.ones(X.shape[1])
    v, shift = operator.space.raw(w)
    c = ShardedLoss(operator, PairwiseHinge().bind).value_and_gradient(operator.matvec(w))[1]
    rows = (X - mean) / operator.space.scale
    np.testing.assert_allclose(X @ v - shift, rows @ w, atol=1e-9)
    np.testing.assert_allclose(operator.rmatvec(c) @ w, c @ operator.matvec(w), atol=1e-9)


@pytest.mark.parametrize("ends", DIVISIONS)
@pytest.mark.parametrize("name", LOSSES)
def test_the_certified_solver_reaches_the_optimum(name, ends):
    X, y = overlapping_rows()
    loss, penalty = LOSSES[name], SquaredL2(10.0)
    exact = SmoothedNewton(1e-5).solve(as_operator(X), loss.bind(y), penalty)
    operator, _ = shards(X, y, ends=ends)
    sharded = ShardedLoss(operator, loss.bind)
    found = SmoothedNewton(1e-3).solve(operator, sharded, penalty)
    assert found.converged
    reached = penalty.value(found.w) + penalty.C * loss.bind(y).value_and_gradient(X @ found.w)[0]
    assert reached <= found.objective * (1 + 1e-9)
    assert found.objective - found.gap <= exact.objective * (1 + 1e-9)
    assert reached <= exact.objective * (1 + 1.5e-3)


def test_constraint_and_cccp():
    X, y = overlapping_rows()
    ball = L1Ball(0.5)
    exact = ProximalBundle(1e-4).solve(as_operator(X), PairwiseHinge().bind(y), ball)
    operator, _ = shards(X, y, ends=(1000,))
    sharded = ShardedLoss(operator, PairwiseHinge().bind)
    solver = ProximalBundle(1e-3)
    found = certified(solver.solve(operator, sharded, ball), solver, operator, sharded, ball)
    assert found.objective >= PairwiseHinge().bind(y).value_and_gradient(X @ found.w)[0] * (1 - 1e-9)
    assert found.objective == pytest.approx(exact.objective, rel=1.5e-3)
    loss, start = PartialAUCHinge(0.05, 0.3), found.w
    in_memory = CCCP(1e-4).solve(as_operator(X), loss.bind(y), SquaredL2(10.0), start)
    sharded = CCCP(1e-4).solve(operator, ShardedLoss(operator, loss.bind), SquaredL2(10.0), start)
    assert sharded.objective == pytest.approx(in_memory.objective, rel=1e-3)


@pytest.mark.parametrize("n_bins", [1, 8, 64])
@pytest.mark.parametrize("penalty", [L1Ball(0.5), SquaredL2(10.0)], ids=["constraint", "penalty"])
def test_the_gap_of_solvers_that_use_lower_bounds_holds_for_the_exact_loss(penalty, n_bins):
    X, y = overlapping_rows()
    loss = PairwiseHinge().bind(y)
    accurate, solver = (ProximalBundle(1e-5), ProximalBundle()) if penalty == L1Ball(0.5) else (OCAS(1e-6), OCAS())
    exact = accurate.solve(as_operator(X), loss, penalty)
    operator, _ = shards(X, y, ends=(1000,))
    sharded = ShardedLoss(operator, PairwiseHinge().bind, n_bins)
    found = certified(solver.solve(operator, sharded, penalty), solver, operator, sharded, penalty)
    value = loss.value_and_gradient(X @ found.w)[0]
    assert found.objective >= (value if penalty == L1Ball(0.5) else penalty.value(found.w) + penalty.C * value) - 1e-9
    assert found.objective - found.gap <= exact.objective + 1e-9


def test_single_precision_rows_far_from_zero_have_the_scores_of_double_precision():
    X, y = overlapping_rows()
    far = (X + 1e6).astype(np.float32)
    rng = np.random.default_rng(0)
    w = rng.standard_normal(X.shape[1])
    operator, _ = shards(far, y, ends=(1000,))
    operator.space.standardize()
    centered = far.astype(float) - far.mean(axis=0, dtype=np.float64)
    scores = centered / centered.std(axis=0) @ w
    value, coefficients = ShardedLoss(operator, PairwiseHinge().bind, 8192).value_and_gradient(operator.matvec(w))
    expected, slope = PairwiseHinge().bind(y).value_and_gradient(scores)
    assert value == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(
        coefficients.gradient(), (centered / centered.std(axis=0)).T @ slope, atol=1e-4 * np.abs(w).max()
    )


def test_the_division_does_not_change_the_result():
    X, y = overlapping_rows()
    found = []
    for ends in DIVISIONS:
        operator, _ = shards(X, y, ends=ends)
        loss = ShardedLoss(operator, PartialAUCTight(0.0, 0.2).bind, sample_rows=800)
        found.append(SmoothedNewton().solve(operator, loss, SquaredL2(10.0)).w)
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-6, atol=1e-9)


def test_anchored_loss():
    X, y = overlapping_rows()
    weight = np.random.default_rng(2).random(y.size)
    operator, _ = shards(X, y, weight, (2500,))
    rng = np.random.default_rng(3)
    w, anchor = rng.normal(size=(2, X.shape[1]))
    loss = PartialAUCRamp(0.0, 0.2, 0.25, margin=0.0)
    exact = Anchored(loss.bind(y, weight), X @ anchor, 0.7)
    value, c = exact.value_and_gradient(X @ w)
    sharded = ShardedAnchored(ShardedLoss(operator, loss.bind), operator.matvec(anchor), 0.7)
    found, handle = sharded.value_and_gradient(operator.matvec(w))
    assert found == pytest.approx(value, abs=1e-5)
    np.testing.assert_allclose(operator.rmatvec(handle), X.T @ c, atol=1e-3 * np.abs(X.T @ c).max())


def test_vectors_are_dropped():
    X, y = overlapping_rows(200)
    operator, made = shards(X, y)
    scores = operator.matvec(np.ones(X.shape[1]))
    for _ in range(5):
        scores = scores + 0.5 * operator.matvec(np.ones(X.shape[1]))
    operator.space.ask((), Shard.counts)
    assert len(made[0]._vectors) <= 3


def test_scores_in_a_range_are_distinct():
    X = np.repeat([[0.0], [1.0], [1.0], [2.0], [3.0]], 40, axis=0)
    y, weight = np.tile([True, False, False, False], 50), np.tile([1.0, 2.0], 100)
    operator, _ = shards(X, y, weight)
    scores = operator.matvec(np.ones(1))
    ((values, positive, sums),) = operator.space.ask(list(scores.terms), Shard.between, scores.requested, 0.5, 2.5)
    assert values.tolist() == [1.0, 2.0, 1.0, 2.0]
    assert positive.tolist() == [False, False, True, True]
    assert sums.tolist() == [100.0, 50.0, 20.0, 10.0]
