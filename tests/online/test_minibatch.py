"""Training on batches: the steps of the paper, streams, reservoirs, and how close it comes to the batch solution."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import fbeta_score, precision_recall_curve

from helpers.training_sets import CheckedRows
from rocmax import (
    FollowTheLeaderClassifier,
    MiniBatchClassifier,
)
from rocmax.losses import FBeta, PairwiseHinge, PartialAUCTight
from rocmax.measures import find_measure, measure_names
from rocmax.online.minibatch import with_sample
from rocmax.solvers.stochastic import MiniBatchSteps

every_measure = pytest.mark.parametrize("measure", measure_names(trainable=True))


@pytest.fixture(scope="module")
def payments():
    X, y = make_classification(20000, 12, n_informative=6, weights=[0.9], class_sep=1.2, random_state=0)
    return X, y


def stream(model, X, y, chunk):
    for start in range(0, len(y), chunk):
        model.partial_fit(X[start : start + chunk], y[start : start + chunk], classes=[0, 1])
    return model


@pytest.mark.parametrize("loss", [PairwiseHinge(), PartialAUCTight(0.0, 0.2), FBeta()], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("radius", [np.inf, 0.3])
def test_steps_are_those_of_the_paper(loss, radius):
    rng = np.random.default_rng(0)
    steps = MiniBatchSteps(loss, 3, 0.5, radius)
    w, b, seen_w, seen_b = np.zeros(3), 0.0, [], []
    for t in range(1, 8):
        y = np.arange(20) < 6
        X = rng.standard_normal((20, 3)) + y[:, None]
        _, coefficients = loss.bind(y).value_and_gradient(X @ w + b)
        w = w - 0.5 / np.sqrt(t) * (X.T @ coefficients)
        b = b - 0.5 / np.sqrt(t) * coefficients.sum() * (not loss.shift_invariant)
        w = w * min(1.0, radius / np.linalg.norm(w))
        seen_w.append(w)
        seen_b.append(b)
        steps.step(X, y, None)
        np.testing.assert_allclose(steps.w, w, atol=1e-12)
        shares = np.arange(1, t + 1) / (t * (t + 1) / 2)  # the mean gives step t a weight in proportion to t
        np.testing.assert_allclose(steps.mean_w, shares @ seen_w, atol=1e-12)
        assert steps.mean_b == pytest.approx(shares @ seen_b)
    assert steps.n_steps == 7


def test_the_first_step_puts_the_means_one_margin_apart():
    rng = np.random.default_rng(1)
    y = np.arange(50) < 10
    X = rng.standard_normal((50, 4)) * 100 + 30 * y[:, None]
    steps = MiniBatchSteps(PairwiseHinge(), 4, None, np.inf)
    steps.step(X, y, None)
    scores = X @ steps.w
    assert scores[y].mean() - scores[~y].mean() == pytest.approx(1.0)


@pytest.mark.parametrize("measure", ["roc_auc", "partial_auc", "precision_at_k", "f_beta"])
@pytest.mark.parametrize("reservoir", [None, 300])
def test_a_few_passes_come_close_to_the_batch_solution(measure, reservoir, payments):
    X, y = payments
    batch = FollowTheLeaderClassifier(measure, k=0.1, n_batches=1).fit(X[:8000], y[:8000])
    online = MiniBatchClassifier(measure, k=0.1, reservoir_size=reservoir, random_state=0).fit(X[:8000], y[:8000])
    assert online.score(X[8000:], y[8000:]) > batch.score(X[8000:], y[8000:]) - 0.02
    assert online.n_skipped_ == 0


@every_measure
@pytest.mark.parametrize("reservoir", [None, 100])
def test_a_stream_does_not_depend_on_how_it_is_cut(measure, reservoir, payments):
    X, y = payments[0][:3000], payments[1][:3000]
    make = MiniBatchClassifier(measure, batch_size=200, reservoir_size=None, random_state=0)
    one, two = (stream(clone(make), X, y, chunk) for chunk in (1000, 130))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-10)
    assert one.n_steps_ == two.n_steps_ == 15
    if reservoir is not None:  # positives of a chunk come before its negatives, so only what is seen is alike
        kept = make.set_params(reservoir_size=reservoir)
        one, two = (stream(clone(kept), X, y, chunk) for chunk in (1000, 130))
        assert one.n_steps_ == two.n_steps_ == int((y == 0).sum()) // 200


@every_measure
@pytest.mark.parametrize("reservoir", [None, 50])
def test_sparse_rows_give_the_same_model(measure, reservoir, payments):
    X, y = payments[0][:2000], payments[1][:2000]
    model = MiniBatchClassifier(measure, max_iter=2, batch_size=250, reservoir_size=reservoir, random_state=0)
    dense, csr = model.fit(X, y).coef_.copy(), clone(model).fit(sparse.csr_array(X), y).coef_
    np.testing.assert_allclose(dense, csr, rtol=1e-8)
    one, two = stream(clone(model), X, y, 300), stream(clone(model), sparse.csr_array(X), y, 300)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-8)
    np.testing.assert_allclose(one.intercept_, two.intercept_, rtol=1e-6)


def test_batches_without_a_class_are_counted_and_nothing_else():
    X = np.arange(40.0)[:, None]
    y = np.r_[np.zeros(20), np.ones(10), np.zeros(10)]
    model = stream(MiniBatchClassifier("roc_auc", batch_size=10), X, y, 40)
    assert (model.n_steps_, model.n_skipped_) == (0, 4)
    assert not model.coef_.any()
    model.partial_fit(X[15:25], y[15:25])
    assert (model.n_steps_, model.n_skipped_) == (1, 4)
    assert model.coef_.any()


def test_a_reservoir_makes_use_of_rare_positives():
    rng = np.random.default_rng(0)
    n = 6000
    y = (rng.permutation(n) < 12).astype(int)
    X = rng.standard_normal((n, 3)) + 2.0 * y[:, None]
    plain = stream(MiniBatchClassifier("roc_auc", batch_size=100, random_state=0), X, y, 500)
    kept = stream(MiniBatchClassifier("roc_auc", batch_size=100, reservoir_size=50, random_state=0), X, y, 500)
    assert plain.n_skipped_ > 40
    assert kept.n_skipped_ < 10
    assert kept.score(X, y) > 0.99


def test_weights_restore_the_share_of_the_positives():
    sample, negatives = np.ones((30, 2)), np.zeros((200, 2))
    X, labels, weight = with_sample(sample, negatives, find_measure("f_beta"), 0.05)
    assert X.shape == (230, 2)
    assert labels.sum() == 30
    assert weight[labels].sum() == pytest.approx(0.05 * 200)
    assert (weight[~labels] == 1).all()
    assert with_sample(sample, negatives, find_measure("partial_auc", max_fpr=0.1), 0.05)[2] is None


def test_memory_of_a_stream_stays_flat():
    rng = np.random.default_rng(0)
    model = MiniBatchClassifier("f_beta", batch_size=100, reservoir_size=50, random_state=0)
    sizes = []
    for _ in range(120):
        y = rng.random(170) < 0.2
        model.partial_fit(rng.standard_normal((170, 5)) + y[:, None], y, classes=[False, True])
        sizes.append(len(pickle.dumps(model)))
    assert sizes[-1] < 1.1 * sizes[60]


def test_a_pickled_stream_goes_on_as_if_nothing_had_happened(payments):
    X, y = payments
    model = MiniBatchClassifier("f_beta", batch_size=100, reservoir_size=40, random_state=0)
    stream(model, X[:950], y[:950], 190)
    other = pickle.loads(pickle.dumps(model))
    third = copy.deepcopy(model)
    for one in (model, other, third):
        one.partial_fit(X[950:1500], y[950:1500])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.coef_, third.coef_)


def test_each_batch_of_a_pass_has_positives_of_its_own(payments):
    X, y = payments[0][:4000].copy(), payments[1][:4000] == 1
    X[:, 0] = np.arange(4000)  # so that rows can be told
    model = MiniBatchClassifier("roc_auc", batch_size=200, reservoir_size=50)
    batches = list(
        model._batches(find_measure("roc_auc"), CheckedRows(X, y), np.arange(4000), np.random.RandomState(0))
    )
    assert all(labels.sum() == 50 and np.unique(rows[labels, 0]).size == 50 for rows, labels, _ in batches)
    used = np.concatenate([rows[labels, 0] for rows, labels, _ in batches]).astype(int)
    times = np.bincount(used, minlength=4000)[y]
    assert times.max() - times.min() <= 1
    negatives = np.concatenate([rows[~labels, 0] for rows, labels, _ in batches]).astype(int)
    np.testing.assert_array_equal(np.sort(negatives), np.flatnonzero(~y))


def test_threshold_and_score_are_those_of_the_measure(payments):
    X, y = payments[0][:4000], payments[1][:4000]
    model = MiniBatchClassifier("f_beta", beta=2.0, random_state=0).fit(X, y)
    assert model.score(X, y) == pytest.approx(fbeta_score(y, model.predict(X), beta=2.0))
    scores = model.decision_function(X)
    precision, recall, _ = precision_recall_curve(y, scores)
    best = np.max(5 * precision * recall / (4 * precision + recall + 1e-300))
    assert model.score(X, y) >= best - 1e-9
    window = MiniBatchClassifier("partial_auc", max_fpr=0.05, random_state=0).fit(X, y)
    assert (window.predict(X[y == 0]) == 1).mean() <= 0.05
    other = MiniBatchClassifier("partial_auc", max_fpr=0.05, random_state=0, pos_label=1).fit(X, 1 - y)
    assert (other.predict(X[y == 1]) == 1).mean() <= 0.05


def test_fit_after_a_stream_starts_anew(payments):
    X, y = payments[0][:1000], payments[1][:1000]
    model = stream(MiniBatchClassifier("roc_auc", random_state=0), X[:, :5], y, 100)
    model.fit(X, y)
    np.testing.assert_array_equal(model.coef_, MiniBatchClassifier("roc_auc", random_state=0).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"measure": "accuracy"}, "measure must be one of roc_auc, .*got 'accuracy'"),
        ({"k": 0}, "k as a count must be at least 1"),
        ({"k": 1.5}, "k as a fraction must be above 0 and at most 1"),
        ({"batch_size": 1}, "batch_size must be an integer > 1; got 1"),
        ({"max_iter": 0}, "max_iter must be an integer > 0; got 0"),
        ({"reservoir_size": 2.5}, "reservoir_size must be an integer > 0; got 2.5"),
        ({"learning_rate": -1.0}, "learning_rate must be a finite number > 0"),
        ({"radius": 0.0}, "radius must be a finite number > 0"),
        ({"beta": 0.0}, "beta must be a finite number > 0"),
        ({"max_fpr": 1.5}, "0 <= min_fpr < max_fpr <= 1"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, payments):
    X, y = payments[0][:50], payments[1][:50]
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(MiniBatchClassifier(**parameters), call)(X, y)


def test_bad_blocks_are_refused(payments):
    X, y = payments[0][:50], payments[1][:50]
    with pytest.raises(ValueError, match="classes must be given in the first call of partial_fit"):
        MiniBatchClassifier().partial_fit(X, y)
    model = MiniBatchClassifier().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="y must contain only the classes"):
        model.partial_fit(X, y + 5)
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
