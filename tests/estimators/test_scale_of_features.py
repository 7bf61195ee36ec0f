"""The tolerance means the same at every scale of the features, and a collapse is reported only if certified."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from oracles import qp as oracles_qp
from rocmax import (
    ROCSVC,
    AUCClassifier,
    FBetaClassifier,
    FollowTheLeaderClassifier,
    PartialAUCClassifier,
    PrecisionAtKClassifier,
    partial_auc_path,
)
from rocmax.losses import PairwiseHinge, PairwiseSquaredHinge, PartialAUCTight
from rocmax.operators import as_operator
from rocmax.papers import AsymmetricSVC
from rocmax.penalties import L1Ball, L2Ball, SquaredL2
from rocmax.solvers import OCAS, ProjectedSubgradient, ProximalBundle, SmoothedNewton

SCALES = [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3]
TINY = [1e-90, 1e-30, 1e-8, 1e-5, 0.02]


def blobs(n=45, d=3, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(int)
    X = rng.standard_normal((n, d))
    X[:, 0] += shift * y
    return X, y


def easy():
    return make_classification(400, 10, weights=[0.8], class_sep=1.5, random_state=0)


PROBLEMS = {
    "hinge": (SmoothedNewton, PairwiseHinge(), lambda X, y, C: oracles_qp.pairwise(X, y, C)),
    "hinge by cuts": (OCAS, PairwiseHinge(), lambda X, y, C: oracles_qp.pairwise(X, y, C)),
    "squared hinge": (SmoothedNewton, PairwiseSquaredHinge(), lambda X, y, C: oracles_qp.pairwise(X, y, C, power=2)),
    "tight": (SmoothedNewton, PartialAUCTight(0, 0.5), lambda X, y, C: oracles_qp.partial_auc(X, y, C, max_fpr=0.5)),
    "tight inner": (
        SmoothedNewton,
        PartialAUCTight(0.1, 0.6),
        lambda X, y, C: oracles_qp.partial_auc(X, y, C, min_fpr=0.1, max_fpr=0.6),
    ),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_all_but_the_tolerance_of_the_gain_is_gained(name, scale):
    X, y = blobs(shift=2.0)
    solver, loss, oracle = PROBLEMS[name]
    bound = loss.bind(y)
    result = solver(1e-3, 1000).solve(as_operator(X * scale), bound, SquaredL2(1.0))
    lowest = oracle(X * scale, y, 1.0).dual
    value = 0.5 * result.w @ result.w + bound.value_and_gradient(X @ result.w * scale)[0]
    at_zero = bound.value_and_gradient(np.zeros(y.size))[0]
    assert result.converged
    assert result.w.any()
    assert value - lowest <= 1.001e-3 * min(value, at_zero - lowest) + 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
@given(power=st.integers(-30, 6), seed=st.integers(0, 20))
@settings(max_examples=8, deadline=None)
def test_a_factor_on_the_features_is_its_square_on_the_loss(name, power, seed):
    # min 1/2 |w|^2 + C R(c X w) is 1/c^2 times min 1/2 |v|^2 + c^2 C R(X v) with v = c w.
    X, y = blobs(seed=seed)
    solver, loss, _ = PROBLEMS[name]
    c = 2.0**power
    scaled = solver(1e-3, 200).solve(as_operator(c * X), loss.bind(y), SquaredL2(1.0))
    plain = solver(1e-3, 200).solve(as_operator(X), loss.bind(y), SquaredL2(c * c))
    assert scaled.converged == plain.converged
    assert scaled.n_iter == plain.n_iter
    np.testing.assert_allclose(c * scaled.w, plain.w, rtol=1e-6, atol=1e-9 * np.abs(plain.w).max())
    assert c * c * scaled.objective == pytest.approx(plain.objective, rel=1e-9)


@pytest.mark.parametrize("scale", TINY)
@pytest.mark.parametrize("kind", [ProximalBundle, ProjectedSubgradient])
@pytest.mark.parametrize("ball", [L1Ball, L2Ball])
def test_small_features_in_a_ball(kind, ball, scale):
    X, y = blobs(shift=2.0)
    loss = PartialAUCTight(0, 0.5).bind(y)
    result = kind(0.05, 20_000).solve(as_operator(X * scale), loss, ball(1.0))
    assert result.converged
    assert roc_auc_score(y, X @ result.w) > 0.8


MODELS = [
    AUCClassifier(),
    AUCClassifier("squared_hinge"),
    AUCClassifier(constraint="l1", radius=1.0),
    PartialAUCClassifier(0, 0.4, "tight"),
    PartialAUCClassifier(0, 0.4, "structural"),
    PartialAUCClassifier(0.05, 0.4, "hinge"),
    PartialAUCClassifier(0, 0.4),
    PrecisionAtKClassifier(0.2, loss="convex"),
    FBetaClassifier(loss="convex"),
    FollowTheLeaderClassifier("roc_auc", n_batches=3, random_state=0),
    ROCSVC("linear", C=1e-3, reduction="sum"),
    AsymmetricSVC(kernel="linear", tau=1.0),
]


@pytest.mark.parametrize("scale", [1e-6, 0.02])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__} {getattr(model, 'loss', '')}")
def test_small_features_rank_and_nothing_is_said(model, scale):
    X, y = easy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X * scale, y)
    assert roc_auc_score(y, model.decision_function(X * scale)) > 0.9


def test_scores_hardly_depend_on_the_tolerance():
    X, y = make_classification(2000, 20, weights=[0.9], random_state=0)
    loose, strict = (AUCClassifier(tol=tol).fit(X * 0.02, y).score(X * 0.02, y) for tol in (1e-3, 1e-6))
    assert loose == pytest.approx(strict, abs=2e-3)
    assert strict > 0.9


def text(n=1500, d=800, seed=0):
    """Rows of unit length with about thirty of many words; a tenth of the words lean towards one class."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(int)
    frequency = 1.0 / np.arange(1, d + 1)
    lean = np.where(rng.random(d) < 0.1, 3.0, 1.0)
    rows = [rng.multinomial(30, p / p.sum()) for p in (frequency * np.where(label, lean, 1.0) for label in y)]
    return normalize(sparse.csr_array(np.array(rows, dtype=float))), y


def test_text_rows_of_unit_length():
    X, y = text()
    train, test = slice(0, 1000), slice(1000, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = [AUCClassifier().fit(X[train], y[train]), AUCClassifier(C=100).fit(X[train], y[train])]
    models.append(LogisticRegression().fit(X[train], y[train]))
    default, bolder, logistic = (roc_auc_score(y[test], m.decision_function(X[test])) for m in models)
    # At C = 1 the weights are the difference of the means, as the gain is small beside the penalty.
    assert default > 0.85
    assert bolder > logistic - 0.03


@pytest.mark.parametrize("scale", [1e-30, *SCALES])
@pytest.mark.parametrize("kind", ["identical rows", "constant"])
@pytest.mark.parametrize(
    "model",
    [AUCClassifier(), AUCClassifier("squared_hinge"), AUCClassifier(constraint="l2", radius=1.0)],
    ids=["hinge", "squared", "ball"],
)
def test_classes_with_equal_means_collapse_at_every_scale(kind, model, scale):
    X, _ = blobs(40)
    X = np.repeat(X[:20], 2, axis=0) if kind == "identical rows" else np.full((40, 3), 0.1)
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        model.fit(X * scale, np.arange(40) % 2)
    assert not model.coef_.any()


@pytest.mark.parametrize("scale", [1e-6, *SCALES])
def test_a_certified_collapse_is_reported_at_every_scale(scale):
    X, y = blobs(600, shift=1.2)
    with pytest.warns(ConvergenceWarning, match="collapsed.*[Ii]n no direction is the mean"):
        model = PartialAUCClassifier(max_fpr=0.05, loss="tight").fit(X * scale, y)
    assert not model.coef_.any()
    # The bound, beside the objective of one: no gain above the tolerance of what the slope at zero promises.
    slope = scale * (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    assert model.dual_gap_ <= 1.001 * model.tol * min(1.0, 0.5 * float(slope @ slope))


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_a_fit_cut_short_at_zero_does_not_claim_a_collapse(scale):
    X, y = easy()
    with pytest.warns(ConvergenceWarning, match="did not reach its tolerance.*still zero") as caught:
        AUCClassifier(max_iter=1).fit(X * scale, y)
    assert "collapsed" not in str(caught[0].message)


def test_a_path_of_tiny_radii_leaves_zero():
    X, y = easy()
    path = partial_auc_path(X * 1e-3, y, max_fpr=0.5, radii=[1e-6, 1e-3])
    assert path.coefs[1].any()
    assert path.partial_auc[1] > path.partial_auc[0]
