"""Losses, penalties, solvers and operators as parts that users put together: parameters by name, and their checks."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from rocmax import ScoreClassifier, losses, operators, penalties, solvers
from rocmax.operators import as_operator

PARTS = [
    *(getattr(losses, name)() for name in ("PairwiseHinge", "PairwiseSquaredHinge", "BreakEven", "FBeta", "GMean")),
    *(getattr(losses, name)(0.1, 0.3) for name in losses.__all__ if name.startswith("PartialAUC")),
    losses.PrecisionAtK(0.2),
    losses.SoftPrecision(3, 0.5),
    losses.SoftMeasure(losses.FBeta(2.0), 0.5),
    losses.FreeShift(losses.GMean()),
    losses.Contingency(max),
    *(kind(2.0) for kind in (penalties.L1Ball, penalties.L2Ball, penalties.ElasticNetBall, penalties.SquaredL2)),
    penalties.Unpenalized(),
    *(
        kind(tol=0.01)
        for kind in (
            solvers.CCCP,
            solvers.CuttingPlane,
            solvers.LBFGS,
            solvers.OCAS,
            solvers.ProjectedSubgradient,
            solvers.ProximalBundle,
            solvers.SmoothedNewton,
        )
    ),
]


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_parts_are_values(part):
    params = part.get_params(deep=False)
    for again in (replace(part), replace(part, **params), clone(part), copy.deepcopy(part)):
        assert type(again) is type(part)
        assert again == part
        assert hash(again) == hash(part)
    assert pickle.loads(pickle.dumps(part)) == part
    assert params.items() <= part.get_params().items()
    assert not hasattr(part, "set_params")
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        replace(part, nothing=1)


def test_new_values_are_checked_and_the_old_part_stays():
    loss = losses.PartialAUCTight(0.0, 0.3)
    with pytest.raises(ValueError, match="min_fpr"):
        replace(loss, min_fpr=0.5)
    assert replace(loss, max_fpr=0.2) == losses.PartialAUCTight(0.0, 0.2)
    assert loss == losses.PartialAUCTight(0.0, 0.3)
    soft = losses.SoftMeasure(losses.FBeta(2.0))
    assert soft.get_params()["base__beta"] == 2.0
    model = ScoreClassifier(soft)
    assert model.set_params(loss__base__beta=3.0, loss__width=0.5).loss == losses.SoftMeasure(losses.FBeta(3.0), 0.5)
    assert model.set_params(loss__base=losses.FBeta(), loss__base__beta=4.0).loss.base == losses.FBeta(4.0)


def test_a_part_without_named_parameters_is_refused():
    class Vague(losses.Loss):
        def __init__(self, *numbers):
            self.numbers = numbers

        def bind(self, y, sample_weight=None):
            raise NotImplementedError

    with pytest.raises(TypeError, match="Vague must name its parameters"):
        Vague(1, 2).get_params()


def test_a_group_ball_is_resolved_for_its_features():
    ball = penalties.GroupBall(1.0, ["a", "b", "a"])
    assert ball.get_params() == {"radius": 1.0, "groups": ["a", "b", "a"], "n_features": None}
    assert ball.for_features(3).n_groups == 2
    assert replace(ball, radius=3.0).radius == 3.0
    assert penalties.L1Ball(1.0).for_features(7) == penalties.L1Ball(1.0)
    assert clone(ball).groups == ball.groups


# Operators


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_data_as_operators(make, dtype):
    X = np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    operator = as_operator(make(X))
    assert operator.shape == (2, 3)
    np.testing.assert_array_equal(operator.matvec(np.array([1.0, 2.0, 4.0])), [5.0, 6.0])
    np.testing.assert_array_equal(operator.rmatvec(np.array([1.0, -1.0])), [1.0, -1.0, 0.0])
    rows = operator.rows(np.array([1]))
    np.testing.assert_array_equal(rows.toarray() if sparse.issparse(rows) else rows, X[1:].astype(float))
    assert as_operator(operator) is operator


@pytest.mark.parametrize(
    ("X", "error", "text"),
    [
        ([[1.0, 2.0]], TypeError, "must be a NumPy array, a SciPy sparse matrix or an operator; got list.*no shape"),
        (np.ones(3), ValueError, "X must be a 2-D array of numbers; got 1 dimensions and dtype float64"),
        (np.array([["a"]]), ValueError, "got 2 dimensions and dtype <U1"),
        (None, TypeError, "got NoneType"),
    ],
)
def test_what_is_no_operator(X, error, text):
    with pytest.raises(error, match=text):
        as_operator(X)


def test_a_solver_takes_an_operator_of_the_users_own():
    class Doubled:
        def __init__(self, X):
            self.X, self.shape = X, X.shape

        def matvec(self, w):
            return 2.0 * (self.X @ w)

        def rmatvec(self, c):
            return 2.0 * (self.X.T @ c)

        def rows(self, index):
            return 2.0 * self.X[index]

    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.5
    X = rng.normal(size=(60, 2)) + y[:, None]
    loss, solver = losses.PairwiseHinge().bind(y), solvers.SmoothedNewton(1e-6)
    own = solver.solve(as_operator(Doubled(X)), loss, penalties.SquaredL2())
    same = solver.solve(as_operator(2.0 * X), loss, penalties.SquaredL2())
    np.testing.assert_allclose(own.w, same.w, atol=1e-4)
    assert operators.__all__ == ["MatrixOperator", "Operator", "as_operator"]
