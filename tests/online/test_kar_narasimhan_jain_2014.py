"""Kar, Narasimhan and Jain (NIPS 2014) as printed: FTRL with its regret, and mini-batches, against plain versions."""

from itertools import combinations

import numpy as np
import pytest

from oracles.online import follow_the_leader, mini_batches
from rocmax import FollowTheLeaderClassifier, MiniBatchClassifier, PrecisionAtKClassifier
from rocmax.losses import PrecisionAtK
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS
from rocmax.solvers.stochastic import MiniBatchSteps


def batches(seed=0, n_batches=4, size=7):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(n_batches):
        y = (np.arange(size) < 2).astype(int)
        parts.append((rng.standard_normal((size, 2)) + 0.8 * y[:, None], y))
    return parts


@pytest.mark.parametrize(("eta", "radius"), [(1.0, 10.0), (30.0, 10.0), (1.0, 0.3), (30.0, 0.7)])
def test_the_leaders_and_the_regret_are_those_of_the_paper(eta, radius):
    parts = batches()
    models, regret = follow_the_leader(parts, eta, radius)
    model = FollowTheLeaderClassifier("roc_auc", eta=eta, radius=radius, tol=2e-6, max_iter=5000)
    mean = FollowTheLeaderClassifier("roc_auc", eta=eta, radius=radius, tol=2e-6, max_iter=5000, average=True)
    for t, (X, y) in enumerate(parts):
        model.partial_fit(X, y, classes=[0, 1])
        mean.partial_fit(X, y, classes=[0, 1])
        np.testing.assert_allclose(model.coef_[0], models[t + 1], atol=0.01 * radius)
        np.testing.assert_allclose(mean.coef_[0], np.mean(models[: t + 1], axis=0), atol=0.01 * radius)
        # With a radius of 10, the hindsight is certified to 5e-5 relative to the loss of zero weights.
        assert model.regret_[t] == pytest.approx(regret[t], abs=2e-4)
        assert model.regret_gap_[t] < 2e-4


def auc_gradient(beta):
    """Return the subgradient of Eq. 5 with the hinge loss: a sum over positives and the top share of the negatives.

    Negatives that are tied at the end of the share, as all of them are at zero weights, have equal parts in it.
    """

    def gradient(w, X, y):
        scores = X @ w
        negatives = np.flatnonzero(y == 0)
        room = int(np.ceil(beta * negatives.size))
        last = np.sort(scores[negatives])[::-1][room - 1]
        above = int((scores[negatives] > last + 1e-12).sum())
        tied = int((abs(scores[negatives] - last) <= 1e-12).sum())
        total = np.zeros_like(w)
        for i in np.flatnonzero(y == 1):
            for j in negatives:
                part = 1.0 if scores[j] > last + 1e-12 else (room - above) / tied * (abs(scores[j] - last) <= 1e-12)
                if scores[i] - scores[j] < 1.0:
                    total += part * (X[j] - X[i])
        return total

    return gradient


def precision_gradient(k):
    """Return the subgradient of Eq. 3, the mean over the best of all labellings with ``k`` positive labels."""

    def gradient(w, X, y):
        signs = 2 * y - 1
        values, labellings = [], []
        for rows in combinations(range(y.size), k):
            labels = -np.ones(y.size)
            labels[list(rows)] = 1.0
            values.append((labels - signs) @ X @ w - signs @ labels)
            labellings.append(labels)
        best = np.array(values) >= max(values) - 1e-12
        return (np.array(labellings)[best].mean(axis=0) - signs) @ X

    return gradient


def unit_batches(n_batches=6, size=8, positives=3, seed=3):
    rng = np.random.default_rng(seed)
    y = np.array([1] * positives + [0] * (size - positives))
    return [(rng.standard_normal((size, 3)) + 0.7 * y[:, None], y) for _ in range(n_batches)]


def stream(model, parts):
    """Return the iterates of a model that sees a stream batch by batch."""
    iterates = []
    for X, y in parts:
        model.partial_fit(X, y, classes=[0, 1])
        iterates.append(model._stream.steps.w.copy())
    return np.array(iterates)


def published(measure, **parameters):
    return MiniBatchClassifier(measure, as_published=True, random_state=0, **parameters)


@pytest.mark.parametrize("radius", [0.4, 100.0])
@pytest.mark.parametrize("beta", [0.4, 1.0])
def test_1pmb_for_the_partial_auc(beta, radius):
    parts, eta = unit_batches(), 0.05
    iterates, mean = mini_batches(parts, auc_gradient(beta), eta, radius)
    pairs = 3 * 5 * beta
    model = published("partial_auc", max_fpr=beta, batch_size=8, learning_rate=eta * pairs, radius=radius)
    np.testing.assert_allclose(stream(model, parts), iterates, atol=1e-12)
    np.testing.assert_allclose(model.coef_[0], mean, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_1pmb_for_precision_at_k(k):
    """Printed for labels +1 and -1, so that the weights are 2 k / m times those for the loss of the package."""
    parts, eta, m = unit_batches(), 0.02, 3
    scale = 2 * k / m
    iterates, mean = mini_batches(parts, precision_gradient(k), eta, 0.6)
    model = published("precision_at_k", k=k / 8, batch_size=8, learning_rate=eta * m**2 / k, radius=0.6 / scale)
    np.testing.assert_allclose(scale * stream(model, parts), iterates, atol=1e-12)
    np.testing.assert_allclose(scale * model.coef_[0], mean, atol=1e-12)


def test_2pmb_for_the_partial_auc(monkeypatch):
    """Each pass has one sample of positives, which every batch of negatives is compared with."""
    rng = np.random.default_rng(5)
    y = (np.arange(60) < 20).astype(int)
    X = rng.standard_normal((60, 3)) + 0.7 * y[:, None]
    eta, beta, radius = 0.01, 0.5, 2.0
    seen, steps = [], []
    step = MiniBatchSteps.step

    def spy(self, rows, positive, weight):
        assert weight is None
        step(self, rows, positive, weight)
        seen.append((rows.copy(), positive.astype(int)))
        steps.append(self.w.copy())

    monkeypatch.setattr(MiniBatchSteps, "step", spy)
    model = published(
        "partial_auc", max_fpr=beta, batch_size=10, reservoir_size=10, max_iter=2,
        learning_rate=eta * 10 * 10 * beta, radius=radius,
    ).fit(X, y)  # fmt: skip
    assert len(seen) == 8
    samples = [rows[labels == 1] for rows, labels in seen]
    for one in range(8):
        np.testing.assert_array_equal(samples[one], samples[4 * (one // 4)])
    assert not np.array_equal(samples[0], samples[4])
    assert {tuple(row) for row in samples[0]} <= {tuple(row) for row in X[y == 1]}
    for first in (0, 4):  # every negative once in a pass
        negatives = np.vstack([rows[labels == 0] for rows, labels in seen[first : first + 4]])
        np.testing.assert_array_equal(np.sort(negatives, axis=0), np.sort(X[y == 0], axis=0))
    iterates, mean = mini_batches(seen, auc_gradient(beta), eta, radius)
    np.testing.assert_allclose(steps, iterates, atol=1e-12)
    np.testing.assert_allclose(model.coef_[0], mean, atol=1e-12)


@pytest.mark.parametrize("reservoir_size", [None, 30])
def test_the_published_form_replaces_four_choices_and_takes_one_pass(reservoir_size):
    rng = np.random.default_rng(1)
    y = (np.arange(600) < 150).astype(int)
    X = rng.standard_normal((600, 3)) + 0.7 * y[:, None]
    common = {"k": 0.1, "batch_size": 50, "reservoir_size": reservoir_size, "random_state": 0}
    choices = {"average": "uniform", "positives": "fixed", "reference": "positives", "fit_intercept": False}
    one = MiniBatchClassifier("precision_at_k", as_published=True, **common).fit(X, y)
    two = MiniBatchClassifier("precision_at_k", max_iter=1, **choices, **common).fit(X, y)
    assert one.n_iter_ == 1
    np.testing.assert_array_equal(one.coef_, two.coef_)
    for name in choices:
        others = {key: value for key, value in choices.items() if key != name}
        three = MiniBatchClassifier("precision_at_k", max_iter=1, **others, **common).fit(X, y)
        # Without a reservoir, there is no choice of positives, and precision at k does not depend on a shift.
        without_effect = name == "fit_intercept" or (name == "positives" and reservoir_size is None)
        assert np.array_equal(one.coef_, three.coef_) == without_effect
    shifted, published = (
        MiniBatchClassifier("f_beta", average="uniform", positives="fixed", max_iter=1, fit_intercept=not last,
                            as_published=last, batch_size=50, reservoir_size=reservoir_size, random_state=0).fit(X, y)
        for last in (False, True)
    )  # fmt: skip
    assert not np.array_equal(shifted.coef_, published.coef_)


def test_the_sample_for_precision_at_k_has_no_weights_if_it_is_fixed():
    rng = np.random.default_rng(0)
    y = (np.arange(300) < 30).astype(int)
    X = rng.standard_normal((300, 3)) + y[:, None]
    parameters = {"k": 0.1, "batch_size": 50, "reservoir_size": 20, "max_iter": 2, "random_state": 0}
    fixed, cycled = (
        MiniBatchClassifier("precision_at_k", positives=p, **parameters).fit(X, y) for p in ("fixed", "cycle")
    )
    assert not np.allclose(fixed.coef_, cycled.coef_)


def test_the_reference_is_available_in_all_estimators_of_precision_at_k():
    X, y = unit_batches(1, 40, 12)[0]
    loss = PrecisionAtK(0.5, "positives").bind(y)
    batch = PrecisionAtKClassifier(0.5, "convex", reference="positives", C=1.0, tol=1e-6, max_iter=5000).fit(X, y)
    expected = OCAS(1e-6, 5000).solve(as_operator(X), loss, SquaredL2(1.0))
    assert batch.objective_ == pytest.approx(expected.objective, rel=1e-5)
    plain = PrecisionAtKClassifier(0.5, "convex", C=1.0, tol=1e-6, max_iter=5000).fit(X, y)
    assert plain.objective_ != pytest.approx(expected.objective, rel=1e-3)
    leader = FollowTheLeaderClassifier(
        "precision_at_k", k=0.5, reference="positives", eta=12.0, n_batches=1, tol=1e-6, max_iter=5000
    ).fit(X, y)
    assert leader.objective_ == pytest.approx(expected.objective, rel=1e-5)


@pytest.mark.parametrize("kind", [MiniBatchClassifier, FollowTheLeaderClassifier])
def test_bad_references_are_refused(kind):
    X, y = unit_batches(1)[0]
    with pytest.raises(ValueError, match=r"reference must be one of .*; got 'top'"):
        kind("precision_at_k", reference="top").fit(X, y)
    with pytest.raises(ValueError, match="reference must be 'best' unless measure is precision_at_k; got 'positives'"):
        kind("roc_auc", reference="positives").fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MiniBatchClassifier(average="mean"), "average must be one of .*; got 'mean'"),
        (MiniBatchClassifier(positives="all"), "positives must be one of .*; got 'all'"),
        (PrecisionAtKClassifier(reference="positives"), "reference must be 'best' with loss='auto'; got 'positives'"),
        (PrecisionAtKClassifier(reference="top"), "reference must be one of .*; got 'top'"),
    ],
)
def test_bad_parameters_of_the_published_methods_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*unit_batches(1)[0])
