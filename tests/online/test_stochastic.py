"""The stochastic estimators: defaults, streams, labels, seeds, refusals."""

import pickle
import re

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from rocmax import AUCClassifier, PSAMClassifier
from rocmax.papers import ASAMClassifier, CBRClassifier, OAMClassifier, SOLAMClassifier

MODELS = {
    "PSAM": PSAMClassifier(random_state=0),
    "ASAM": ASAMClassifier(random_state=0),
    "SOLAM": SOLAMClassifier(random_state=0),
    "OAM sequential": OAMClassifier("sequential", random_state=0),
    "OAM gradient": OAMClassifier("gradient", random_state=0),
    "CBR full": CBRClassifier("full", random_state=0),
    "CBR diagonal": CBRClassifier("diagonal", random_state=0),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def make_data(n=3000, seed=0):
    X, y = make_classification(n, 12, n_informative=6, weights=[0.9], class_sep=0.8, flip_y=0.02, random_state=seed)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def data():
    X, y = make_data()
    return X[:2000], y[:2000], X[2000:], y[2000:]


@every_model
def test_defaults_are_near_the_batch_solution(model, data):
    X, y, X_test, y_test = data
    batch = AUCClassifier("squared_hinge", C=100).fit(X, y).score(X_test, y_test)
    score = clone(model).fit(X, y).score(X_test, y_test)
    # One pass with a first-order step and no average is the weakest of them.
    assert score > batch - (0.06 if isinstance(model, OAMClassifier) else 0.02)


@every_model
def test_score_is_the_auc(model, data):
    X, y, X_test, y_test = data
    fitted = clone(model).fit(X, y)
    assert fitted.score(X_test, y_test) == pytest.approx(roc_auc_score(y_test, fitted.decision_function(X_test)))


@every_model
def test_the_threshold_separates(model, data):
    X, y, X_test, y_test = data
    predicted = clone(model).fit(X, y).predict(X_test)
    assert (predicted[y_test == 1] == 1).mean() - (predicted[y_test == 0] == 1).mean() > 0.4


@every_model
def test_dense_and_sparse_fits_agree(model, data):
    X, y, _, _ = data
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense, csr = clone(model).fit(X, y), clone(model).fit(sparse.csr_array(X), y)
    assert_allclose(csr.coef_, dense.coef_, rtol=1e-6, atol=1e-8 * np.abs(dense.coef_).max())


@every_model
def test_single_precision_is_close(model, data):
    X, y, X_test, y_test = data
    double = clone(model).fit(X, y).score(X_test, y_test)
    single = clone(model).fit(X.astype(np.float32), y).score(X_test.astype(np.float32), y_test)
    assert single == pytest.approx(double, abs=0.01)


@every_model
def test_a_seed_repeats_a_run_exactly(model, data):
    X, y, _, _ = data
    first, second = clone(model).fit(X, y), clone(model).fit(X, y)
    assert_array_equal(first.coef_, second.coef_)
    assert_array_equal(first.intercept_, second.intercept_)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(first.coef_, other.coef_)
    assert_array_equal(first.fit(X, y).coef_, second.coef_)


@every_model
def test_pos_label_mirrors_the_decisions(model, data):
    X, y, _, _ = data
    name = np.where(y == 1, "fraud", "ok")
    mirrored = clone(model).set_params(pos_label="fraud").fit(X, name)
    plain = clone(model).fit(X, y)
    assert mirrored.classes_.tolist() == ["fraud", "ok"]
    assert_allclose(mirrored.decision_function(X), -plain.decision_function(X))
    assert mirrored.score(X, name) == pytest.approx(plain.score(X, y))
    assert_array_equal(mirrored.predict(X) == "fraud", plain.predict(X) == 1)


@every_model
def test_blocks_learn_as_well_as_a_fit(model, data):
    X, y, X_test, y_test = data
    model = clone(model)
    for epoch in range(3):
        for start in range(0, 2000, 250):
            model.partial_fit(X[start : start + 250], y[start : start + 250], classes=[0, 1] if epoch == 0 else None)
    assert model.n_iter_ == 24
    whole = clone(model).fit(X, y).score(X_test, y_test)
    assert model.score(X_test, y_test) > whole - 0.03
    predicted = model.predict(X_test)
    assert (predicted[y_test == 1] == 1).mean() - (predicted[y_test == 0] == 1).mean() > 0.4


@every_model
def test_blocks_of_one_class_and_of_one_row(model, data):
    X, y, X_test, y_test = data
    model = clone(model)
    negatives, positives = X[y == 0], X[y == 1]
    model.partial_fit(negatives[:50], np.zeros(50, dtype=int), classes=[0, 1])
    assert not model.coef_.any() or isinstance(model, SOLAMClassifier)
    model.partial_fit(positives[:50], np.ones(50, dtype=int))
    assert model.coef_.any()
    for row, label in zip(X[:300], y[:300], strict=True):
        model.partial_fit(row[np.newaxis], [label])
    assert model.score(X_test, y_test) > 0.7


@every_model
def test_a_stream_may_change_between_dense_and_sparse(model, data):
    X, y, _, _ = data
    mixed, dense = clone(model), clone(model)
    for start, form in ((0, np.asarray), (200, sparse.csr_array), (400, np.asarray), (600, sparse.csr_matrix)):
        part = slice(start, start + 200)
        mixed.partial_fit(form(X[part]), y[part], classes=[0, 1])
        dense.partial_fit(X[part], y[part], classes=[0, 1])
    assert_allclose(mixed.coef_, dense.coef_, rtol=1e-6, atol=1e-9)


@every_model
def test_a_fit_forgets_what_was_before(model, data):
    X, y, _, _ = data
    fresh = clone(model).fit(X[:500], y[:500])
    used = clone(model).partial_fit(X[1000:], y[1000:], classes=[0, 1]).fit(X[:500], y[:500])
    assert_array_equal(fresh.coef_, used.coef_)
    assert used.n_iter_ == model.max_iter


@every_model
def test_a_pickled_model_goes_on_where_it_was(model, data):
    X, y, _, _ = data
    model = clone(model).partial_fit(X[:300], y[:300], classes=[0, 1])
    copy = pickle.loads(pickle.dumps(model))
    model.partial_fit(X[300:600], y[300:600])
    copy.partial_fit(X[300:600], y[300:600])
    assert_array_equal(model.coef_, copy.coef_)


@every_model
def test_memory_of_a_stream_is_bounded(model, data):
    X, y, _, _ = data
    model = clone(model).set_params(buffer_size=7)
    for start in range(0, 2000, 500):
        model.partial_fit(X[start : start + 500], y[start : start + 500], classes=[0, 1])
    assert model._memory.rows.shape == (14, 12)
    kept = {row.tobytes() for row in model._memory.rows}
    assert len(kept) == 14
    assert kept <= {row.tobytes() for row in X}


@every_model
def test_tolerance_ends_a_fit(model, data):
    X, y, _, _ = data
    assert clone(model).set_params(tol=10.0, max_iter=9).fit(X, y).n_iter_ == 1
    assert clone(model).set_params(tol=1e-12, max_iter=3).fit(X, y).n_iter_ == 3


def test_more_epochs_continue_the_same_run(data):
    X, y, _, _ = data
    long = PSAMClassifier(random_state=0, max_iter=4).fit(X, y)
    short = PSAMClassifier(random_state=0, max_iter=2).fit(X, y)
    steps, short_steps = long._method._state[0], short._method._state[0]
    assert (steps, short_steps) == (4 * 2000, 2 * 2000)
    assert not np.allclose(long.coef_, short.coef_, rtol=1e-12)


def test_averaging_steadies_the_model(data):
    X, y, _, _ = data
    spread = {
        average: np.std(
            [PSAMClassifier(average=average, random_state=s).fit(X, y).coef_ for s in range(6)], axis=0
        ).mean()
        for average in (True, False, 20000)
    }
    assert spread[True] < 0.3 * spread[False]
    assert spread[20000] < 0.5 * spread[False]


def test_grid_search(data):
    X, y, _, _ = data
    search = GridSearchCV(PSAMClassifier(random_state=0), {"alpha": [1e-6, 1e-2], "t0": ["auto", 16]}, cv=3).fit(X, y)
    assert 0.8 < search.best_score_ <= 1


def test_fits_in_threads(data):
    X, y, _, _ = data
    plain = PSAMClassifier(random_state=0).fit(X, y).coef_
    fits = Parallel(n_jobs=4, backend="threading")(
        delayed(PSAMClassifier(random_state=0).fit)(X.astype(kind), y) for kind in (np.float64, np.float32) * 4
    )
    for fit in fits[::2]:
        assert_array_equal(fit.coef_, plain)


def test_readonly_and_fortran_rows(data):
    X, y, _, _ = data
    plain = PSAMClassifier(random_state=0).fit(X, y).coef_
    frozen = X.copy()
    frozen.flags.writeable = False
    assert_array_equal(PSAMClassifier(random_state=0).fit(frozen, y).coef_, plain)
    assert_array_equal(PSAMClassifier(random_state=0).fit(np.asfortranarray(X), y).coef_, plain)


@every_model
def test_constant_features_are_harmless(model):
    X, y = np.ones((20, 3)), np.arange(20) % 2
    fitted = clone(model).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    assert fitted.score(X, y) == 0.5


@every_model
def test_not_fitted(model):
    with pytest.raises(NotFittedError):
        clone(model).predict([[1.0]])


REFUSED = [
    (PSAMClassifier(alpha=0.0), "alpha must be a finite number > 0; got 0.0"),
    (PSAMClassifier(rskip=0), "rskip must be an integer > 0; got 0"),
    (PSAMClassifier(askip=1.5), "askip must be an integer > 0; got 1.5"),
    (PSAMClassifier(t0="small"), "t0 must be 'auto' or a number >= 0; got 'small'"),
    (ASAMClassifier(t0=-1), "t0 must be 'auto' or a number >= 0; got -1"),
    (ASAMClassifier(average=-1), "average must be an integer > 0; got -1"),
    (PSAMClassifier(max_iter=0), "max_iter must be an integer > 0; got 0"),
    (PSAMClassifier(tol=0.0), "tol must be a finite number > 0; got 0.0"),
    (SOLAMClassifier(radius=-1), "radius must be a finite number > 0; got -1"),
    (SOLAMClassifier(learning_rate="fast"), "learning_rate must be a finite number > 0; got 'fast'"),
    (OAMClassifier("other"), "update must be one of 'sequential', 'gradient'; got 'other'"),
    (OAMClassifier(C=np.inf), "C must be a finite number > 0; got inf"),
    (OAMClassifier(buffer_size=0), "buffer_size must be an integer > 0; got 0"),
    (CBRClassifier("none"), "covariance must be one of 'full', 'diagonal'; got 'none'"),
    (CBRClassifier(confidence=0.5), "confidence must be a finite number > 0.5; got 0.5"),
    (CBRClassifier(confidence=1.0), "confidence must be a probability between 0.5 and 1; got 1.0"),
]


@pytest.mark.parametrize(("model", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_bad_parameters_are_refused(model, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=re.escape(message)):
        model.partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1])


def test_a_full_covariance_of_too_many_features_is_refused():
    X = sparse.csr_array((2, 10_001))
    with pytest.raises(ValueError, match=r"features must be at most 10000; got 10001. Use covariance=\"diagonal\""):
        CBRClassifier().fit(X, [0, 1])


@every_model
def test_bad_blocks_are_refused(model):
    model = clone(model)
    X = np.eye(3)
    with pytest.raises(ValueError, match="classes must be given in the first call of partial_fit"):
        model.partial_fit(X, [0, 1, 0])
    with pytest.raises(ValueError, match=r"Only binary classification is supported. Got 3 classes"):
        model.partial_fit(X, [0, 1, 2], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"y must contain only the classes \[0, 1\]; got \[7\]"):
        model.partial_fit(X, [0, 1, 7], classes=[0, 1])
    model.partial_fit(X, [0, 1, 0], classes=[0, 1])
    with pytest.raises(ValueError, match=r"classes must be those of the first call, \[0, 1\]; got \[0, 2\]"):
        model.partial_fit(X, [0, 0, 0], classes=[0, 2])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"pos_label must be one of the classes .*; got 'x'"):
        clone(model).set_params(pos_label="x").partial_fit(X, [0, 1, 0], classes=[0, 1])


def test_a_refused_first_block_leaves_the_model_at_its_start():
    model = PSAMClassifier(random_state=0)
    with pytest.raises(ValueError, match="y must contain only the classes"):
        model.partial_fit(np.eye(3), [0, 1, 7], classes=[0, 1])
    model.partial_fit(np.eye(2), ["a", "b"], classes=["a", "b"])
    assert model.classes_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_only_a_full_covariance_follows_a_rotation_of_the_features(covariance):
    X, y = make_data(300)
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))[0]
    model = CBRClassifier(covariance, C=0.1, random_state=0)
    plain, rotated = model.fit(X, y).coef_, model.fit(X @ rotation, y).coef_ @ rotation.T
    apart = np.linalg.norm(plain - rotated) / np.linalg.norm(plain)
    assert apart < 1e-6 if covariance == "full" else apart > 1e-2
