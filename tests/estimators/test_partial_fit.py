"""One contract for all estimators with ``partial_fit``: it goes on from ``fit``, takes rows in any form, and refuses
changed parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

import rocmax
from helpers.every_estimator import MODELS, STREAMS, rows

X, Y = rows()
CLASSES = ["fraud", "ok"]

every_stream = pytest.mark.parametrize("name", STREAMS)

# Other values, all valid by themselves, for parameters that the state of a stream depends on.
FIXED = {
    "MiniBatchClassifier": {
        "measure": "g_mean", "min_fpr": 0.05, "max_fpr": 0.5, "min_tpr": 0.1, "k": 0.3, "beta": 3.0, "batch_size": 7,
        "reservoir_size": 30, "learning_rate": 5.0, "radius": 0.1, "average": "uniform", "fit_intercept": False,
        "positives": "fixed", "as_published": True, "pos_label": "fraud",
    },
    "FollowTheLeaderClassifier": {
        "measure": "g_mean", "min_fpr": 0.05, "max_fpr": 0.5, "min_tpr": 0.1, "k": 0.3, "beta": 3.0,
        "radius": 3.0, "average": True, "pos_label": "fraud",
    },
    "PSAMClassifier": {
        "alpha": 10.0, "t0": 3.0, "rskip": 2, "askip": 2, "average": False, "buffer_size": 5, "pos_label": "fraud",
    },
    "SOLAMClassifier": {
        "radius": 9.0, "learning_rate": 3.0, "buffer_size": 5, "pos_label": "fraud",
    },
    "OAMClassifier": {"update": "gradient", "C": 3.0, "buffer_size": 5, "pos_label": "fraud"},
    "CBRClassifier": {"C": 3.0, "confidence": 0.9, "buffer_size": 5, "pos_label": "fraud"},
}  # fmt: skip
FIXED["ASAMClassifier"] = FIXED["PSAMClassifier"]
# What fit alone uses, and what every solve takes anew.
FREE = {
    "verbose": False, "random_state": 5,
    "tol": 1e-5, "max_iter": 700, "n_batches": 2, "eta": 3.0, "compute_regret": False,
}  # fmt: skip


def changes(name):
    """Return the changes to refuse; the covariance changes to the one that it is not."""
    fixed = dict(FIXED[type(MODELS[name]).__name__])
    if hasattr(MODELS[name], "covariance"):
        fixed["covariance"] = "full" if MODELS[name].covariance == "diagonal" else "diagonal"
    return fixed


def begun(name, how):
    model = clone(MODELS[name])
    if how == "fit":
        return model.fit(X[:80], Y[:80])
    return model.partial_fit(X[:80], Y[:80], classes=CLASSES)


@every_stream
def test_every_parameter_is_accounted_for(name):
    fixed, parameters = changes(name), set(MODELS[name].get_params())
    assert set(fixed) <= parameters
    # A reference that does not fit the measure is refused before it is compared with that of the first call.
    assert parameters - set(fixed) <= {*FREE, "reference"}


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
@every_stream
def test_a_changed_parameter_is_refused_and_the_stream_is_intact(name, how):
    model, twin = begun(name, how), begun(name, how)
    for parameter, value in changes(name).items():
        old = getattr(model, parameter)
        model.set_params(**{parameter: value})
        with pytest.raises(ValueError, match=f"{parameter} must stay .* Use fit to train a new model"):
            model.partial_fit(X[80:], Y[80:])
        model.set_params(**{parameter: old})
    for one in (model, twin):
        one.partial_fit(X[80:], Y[80:])
    np.testing.assert_array_equal(model.coef_, twin.coef_)
    np.testing.assert_array_equal(model.intercept_, twin.intercept_)
    model.set_params(pos_label="fraud").fit(X, Y)
    assert model.score(X, Y) > 0.7


@every_stream
def test_parameters_of_fit_may_change_between_batches(name):
    model, twin = begun(name, "partial_fit"), begun(name, "partial_fit")
    free = {key: value for key, value in FREE.items() if key in set(model.get_params()) - set(changes(name))}
    of_each_solve = ("eta", "tol", "max_iter") if name.startswith("FollowTheLeader") else ()
    model.set_params(**{key: value for key, value in free.items() if key not in of_each_solve})
    for one in (model, twin):
        one.partial_fit(X[80:], Y[80:])
    np.testing.assert_array_equal(model.coef_, twin.coef_)


def test_the_leader_takes_a_new_strength():
    m = int((Y == "ok").sum())
    eta = 10.0 * m * (Y.size - m)  # the weight of the mean loss is 0.1
    model = begun("FollowTheLeaderClassifier", "partial_fit").set_params(eta=eta, tol=1e-5)
    model.partial_fit(X[80:], Y[80:])
    expected = rocmax.AUCClassifier(C=0.1, tol=1e-5).fit(X, Y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-4)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=0.01)


@every_stream
def test_partial_fit_goes_on_from_fit(name):
    rng = np.random.default_rng(0)
    data, y = make_classification(3000, 10, n_informative=6, class_sep=1.5, weights=[0.8], random_state=0)
    model = clone(MODELS[name]).fit(data[:2000], y[:2000])
    before = roc_auc_score(y, model.decision_function(data))
    n_iter, first = model.n_iter_, model.coef_.copy()
    # A few rows change a good model little, whatever they say; no classes are needed after fit.
    few = rng.permutation(np.arange(2000, 3000))[:25]
    model.partial_fit(data[few], y[few])
    after = roc_auc_score(y, model.decision_function(data))
    assert before > 0.85
    assert after > before - 0.03
    cosine = float(first[0] @ model.coef_[0] / np.linalg.norm(first) / np.linalg.norm(model.coef_))
    assert cosine > 0.9
    if not name.startswith("FollowTheLeader"):  # whose iterations are those of its last solve
        assert model.n_iter_ == n_iter + 1
    predicted = (model.predict(data) == 1).mean()
    assert 0.02 < predicted < 0.6


@pytest.mark.parametrize("reservoir", [None, 40])
def test_mini_batches_after_fit_are_further_steps(reservoir):
    data, y = make_classification(2000, 8, n_informative=5, class_sep=1.5, weights=[0.8], random_state=0)
    model = rocmax.MiniBatchClassifier("roc_auc", batch_size=100, reservoir_size=reservoir, random_state=0).fit(data, y)
    steps, skipped, kept = model.n_steps_, model.n_skipped_, model.coef_.copy()
    model.partial_fit(data[:30], y[:30])  # too few for a step
    np.testing.assert_array_equal(model.coef_, kept)
    assert (model.n_steps_, model.n_skipped_) == (steps, skipped)
    model.partial_fit(data[30:500], y[30:500])
    assert model.n_steps_ > steps
    assert roc_auc_score(y, model.decision_function(data)) > 0.9


def test_a_failed_fit_leaves_the_stream():
    model, twin = begun("MiniBatchClassifier", "partial_fit"), begun("MiniBatchClassifier", "partial_fit")
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.full(150, "ok"))
    for one in (model, twin):
        one.partial_fit(X[80:], Y[80:])
    np.testing.assert_array_equal(model.coef_, twin.coef_)


@pytest.mark.parametrize("start", [0, 1, 2])
@every_stream
def test_dense_and_sparse_batches_may_be_mixed(name, start):
    forms = (np.asarray, sparse.csr_array, sparse.csr_matrix, sparse.csc_matrix)
    mixed, dense = clone(MODELS[name]), clone(MODELS[name])
    certified = isinstance(mixed, rocmax.FollowTheLeaderClassifier)
    if certified:
        mixed.tol = dense.tol = 1e-7
    for i, begin in enumerate(range(0, 150, 15)):
        part = slice(begin, begin + 15)
        mixed.partial_fit(forms[(i + start) % 4](X[part]), Y[part], classes=CLASSES)
        dense.partial_fit(X[part], Y[part], classes=CLASSES)
    # An objective with the penalty 1/2 |w|^2 is larger by at least half the squared distance from the optimum.
    apart = sum(np.sqrt(2 * model.dual_gap_) for model in (mixed, dense)) if certified else 0.0
    atol = 1e-8 * np.abs(dense.coef_).max() + apart
    np.testing.assert_allclose(mixed.coef_, dense.coef_, rtol=1e-6, atol=atol)
    # The threshold is a score, too.
    atol = 1e-7 + 2 * apart * np.linalg.norm(X, axis=1).max()
    np.testing.assert_allclose(mixed.decision_function(X), dense.decision_function(X), rtol=1e-5, atol=atol)


@every_stream
def test_single_and_double_precision_may_be_mixed(name):
    model = begun(name, "fit")
    model.partial_fit(X[80:120].astype(np.float32), Y[80:120])
    model.partial_fit(sparse.csr_array(X[120:].astype(np.float32)), Y[120:])
    assert model.coef_.dtype == np.float64
    assert model.score(X, Y) > 0.7


@every_stream
def test_classes_are_named_once(name):
    model = clone(MODELS[name])
    with pytest.raises(ValueError, match="classes must be given in the first call of partial_fit"):
        model.partial_fit(X, Y)
    model.partial_fit(X[:80], Y[:80], classes=CLASSES)
    kept = model.coef_.copy()
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X[80:], Y[80:], classes=["fraud", "fine"])
    with pytest.raises(ValueError, match="y must contain only the classes"):
        model.partial_fit(X[80:], np.full(70, "fine"))
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[80:, :3], Y[80:])
    np.testing.assert_array_equal(model.coef_, kept)
    model.partial_fit(X[80:], Y[80:], classes=CLASSES[::-1])
