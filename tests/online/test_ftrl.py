"""Following the leader: the leader is the batch solution, warm starts pay, and the regret is that of the paper."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

import rocmax
from rocmax import FollowTheLeaderClassifier
from rocmax.measures import measure_names
from rocmax.online import follow_the_leader as _leader
from rocmax.online.follow_the_leader import no_cuts
from rocmax.operators import CountingOperator, as_operator
from rocmax.penalties import L2Ball, SquaredL2
from rocmax.solvers import OCAS, ProximalBundle, SmoothedNewton

MEASURES = measure_names(trainable=True)
every_measure = pytest.mark.parametrize("measure", MEASURES)


@pytest.fixture(scope="module")
def stream():
    return make_classification(900, 5, n_informative=4, n_redundant=0, weights=[0.8], class_sep=1.6, random_state=1)


def follow(model, X, y, size=90):
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1])
    return model


def cold_start(loss, cuts, growth):
    return no_cuts(cuts.gradient.shape[1])


@every_measure
def test_the_leader_is_the_batch_solution(measure, stream):
    X, y = stream
    m, n = int((y == 1).sum()), int((y == 0).sum())
    kind = SmoothedNewton if measure in ("roc_auc", "partial_auc", "tpr_at_fpr") else OCAS
    convex = FollowTheLeaderClassifier(measure)._make_measure().convex_loss()
    eta = convex.sum_scale(m, n) / 10.0  # on the mean of the last problem, the weight of the loss is 10
    model = follow(FollowTheLeaderClassifier(measure, eta=eta, radius=100.0, tol=1e-4, compute_regret=False), X, y, 180)
    loss = convex.bind(y == 1)
    batch = kind(1e-5, 2000).solve(as_operator(X), loss, SquaredL2(10.0))
    value = loss.value_and_gradient(X @ model.coef_[0])[0]
    assert model.objective_ == pytest.approx(0.5 * np.sum(model.coef_**2) + 10.0 * value, rel=1e-10)
    assert batch.objective - batch.gap <= model.objective_ <= batch.objective * (1 + 2e-4)
    # The certificate, which rests on carried cuts, holds too.
    assert 0 <= model.dual_gap_ <= 1e-4 * model.objective_
    assert model.objective_ - model.dual_gap_ <= batch.objective * (1 + 1e-10)


@pytest.mark.parametrize(("measure", "min_fpr"), [*((name, 0.0) for name in MEASURES), ("partial_auc", 0.1)])
def test_every_leader_on_the_way_is_certified(measure, min_fpr, stream):
    X, y = stream[0][:500], stream[1][:500]
    model = FollowTheLeaderClassifier(measure, min_fpr=min_fpr, max_fpr=0.3, eta=10.0, tol=1e-4, compute_regret=False)
    for end in range(100, 501, 100):
        model.partial_fit(X[end - 100 : end], y[end - 100 : end], classes=[0, 1])
        alone = clone(model).set_params(n_batches=1).fit(X[:end], y[:end])
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-4)
        assert model.objective_ - model.dual_gap_ <= alone.objective_ * (1 + 1e-9)
    assert model.passes_.shape == model.regret_.shape == (5,)
    assert np.isnan(model.regret_).all()


@pytest.mark.parametrize(("measure", "size"), [("precision_at_k", 300), ("break_even_point", 300), ("f_beta", 20)])
def test_carried_cuts_save_passes(measure, size, monkeypatch):
    X, y = make_classification(20 * size, 12, n_informative=8, weights=[0.8], class_sep=2.0, random_state=1)
    model = FollowTheLeaderClassifier(measure, k=0.15, eta=size / 5, compute_regret=False)
    with_cuts = follow(clone(model), X, y, size).passes_
    monkeypatch.setattr(_leader, "carry", cold_start)
    with_weights = follow(clone(model), X, y, size).passes_
    alone = clone(model).set_params(n_batches=1)
    cold = [alone.fit(X[: end * size], y[: end * size]).passes_[0] for end in (16, 18, 20)]
    assert with_cuts.sum() < with_weights.sum()
    assert with_cuts[[15, 17, 19]].sum() < 0.6 * sum(cold)


@pytest.mark.parametrize("measure", ["roc_auc", "partial_auc"])
def test_a_warm_start_saves_passes(measure, stream):
    X, y = stream
    warm = follow(FollowTheLeaderClassifier(measure, max_fpr=0.3, compute_regret=False), X, y, 60)
    # Two products of each batch are not those of a solve: the scores that are played, and those of the start.
    cold = FollowTheLeaderClassifier(measure, max_fpr=0.3, n_batches=1, compute_regret=False).fit(X, y).passes_[0]
    assert warm.passes_[-3:].mean() < cold


SUMS = {
    "roc_auc": lambda m, n: m * n,
    "partial_auc": lambda m, n: m * 0.1 * n,
    "precision_at_k": lambda m, n: min(m, 0.1 * (m + n)),
    "break_even_point": lambda m, n: m,
    "f_beta": lambda m, n: m,
}


@pytest.mark.parametrize("radius", [0.5, 5.0])
@pytest.mark.parametrize("measure", SUMS)
def test_regret_is_the_definition(measure, radius, stream):
    """The models that were played against the best unregularized model in the ball, found by another solver."""
    X, y = stream[0][:450], stream[1][:450]
    factor, w = SUMS[measure], np.zeros(X.shape[1])
    model = FollowTheLeaderClassifier(measure, eta=3.0, radius=radius)

    def total(end, w):
        if end == 0:
            return 0.0
        m = (y[:end] == 1).sum()
        bound = model._make_measure().convex_loss().bind(y[:end] == 1)
        return factor(m, end - m) * bound.value_and_gradient(X[:end] @ w)[0]

    played = []
    for end in range(150, 451, 150):
        played.append(total(end, w) - total(end - 150, w))
        model.partial_fit(X[end - 150 : end], y[end - 150 : end], classes=[0, 1])
        w = model.coef_[0].copy()
        assert np.linalg.norm(w) <= radius * (1 + 1e-12)
        m = (y[:end] == 1).sum()
        bound = model._make_measure().convex_loss().bind(y[:end] == 1)
        best = ProximalBundle(1e-4, 5000).solve(as_operator(X[:end]), bound, L2Ball(radius))
        mean = sum(played) / factor(m, end - m)
        assert model.regret_[-1] <= mean - best.objective + best.gap + 1e-9
        assert model.regret_[-1] + model.regret_gap_[-1] >= mean - best.objective - 1e-9
        assert 0 <= model.regret_gap_[-1] < 4e-3


@every_measure
def test_regret_of_a_stationary_stream_shrinks(measure, stream):
    X, y = stream
    model = FollowTheLeaderClassifier(measure, max_fpr=0.3, k=0.2, radius=3.0, tol=0.01, n_batches=10, random_state=0)
    regret = model.fit(X, y).regret_
    assert regret[0] > 0.05
    assert abs(regret[-1]) < 0.25 * regret[0]
    assert abs(regret[5:]).max() < regret[:3].max()


@every_measure
def test_batches_without_a_class_are_taken(measure):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 0, 1, 0], [30, 10, 30, 40, 30])
    X = rng.standard_normal((y.size, 3)) + 2.0 * y[:, None]
    model = FollowTheLeaderClassifier(measure, max_fpr=0.3, k=0.3, tol=1e-5, radius=3.0)
    model.partial_fit(X[:30], y[:30], classes=[0, 1])
    assert not model.coef_.any()
    assert (model.regret_, model.passes_, model.n_iter_) == ([0.0], [0], 1)
    assert model.predict(X).shape == (y.size,)
    for start, end in ((30, 40), (40, 70), (70, 110), (110, 140)):  # one class each
        model.partial_fit(X[start:end], y[start:end])
        alone = clone(model).set_params(n_batches=1).fit(X[:end], y[:end])
        assert model.objective_ == pytest.approx(alone.objective_, rel=3e-5)
    assert np.isfinite(model.regret_).all()
    assert model.score(X, y) > 0.7


@every_measure
def test_sparse_rows_give_the_same_leader(measure, stream):
    X, y = stream[0][:270], stream[1][:270]
    model = FollowTheLeaderClassifier(measure, eta=10.0, radius=3.0)
    dense, csr = (follow(clone(model), rows, y) for rows in (X, sparse.csr_array(X)))
    assert csr.objective_ == pytest.approx(dense.objective_, rel=2e-3)
    np.testing.assert_allclose(csr.regret_, dense.regret_, atol=5e-3)
    mixed = clone(model)
    for i, start in enumerate(range(0, 270, 90)):
        rows = X[start : start + 90] if i % 2 else sparse.csr_array(X[start : start + 90])
        mixed.partial_fit(rows, y[start : start + 90], classes=[0, 1])
    assert mixed.objective_ == pytest.approx(dense.objective_, rel=2e-3)


def test_the_rows_of_the_caller_stay_the_callers(stream):
    X, y = stream[0][:600].copy(), stream[1][:600].copy()
    model = FollowTheLeaderClassifier("roc_auc", compute_regret=False).partial_fit(X[:300], y[:300], classes=[0, 1])
    X[:300], y[:300] = 0.0, 0
    model.partial_fit(X[300:], y[300:])
    whole = follow(FollowTheLeaderClassifier("roc_auc", compute_regret=False), *(part[:600] for part in stream), 300)
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_a_stream_goes_on_after_fit_after_a_copy_and_after_a_file(stream, tmp_path):
    X, y = stream
    model = FollowTheLeaderClassifier("f_beta", eta=10.0, radius=3.0, n_batches=3, random_state=0).fit(X[:300], y[:300])
    rocmax.save(model, tmp_path / "model.rocmax")
    others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), rocmax.load(tmp_path / "model.rocmax")]
    for one in (model, *others):
        one.partial_fit(X[300:400], y[300:400])
        np.testing.assert_array_equal(one.coef_, model.coef_)
        np.testing.assert_array_equal(one.regret_, model.regret_)
    alone = clone(model).set_params(n_batches=1).fit(X[:400], y[:400])
    assert model.objective_ == pytest.approx(alone.objective_, rel=2e-3)
    assert model.regret_.size == 4
    assert model.fit(X[:300], y[:300]).regret_.size == 3


def test_the_mean_of_the_models_is_an_option(stream):
    X, y = stream
    models = [np.zeros((1, X.shape[1]))]
    leader, mean = (FollowTheLeaderClassifier("roc_auc", average=a, compute_regret=False) for a in (False, True))
    for start in range(0, 900, 300):
        for model in (leader, mean):
            model.partial_fit(X[start : start + 300], y[start : start + 300], classes=[0, 1])
        np.testing.assert_allclose(mean.coef_, np.mean(models, axis=0), rtol=1e-12)
        assert (mean.objective_, mean.dual_gap_) == (leader.objective_, leader.dual_gap_)
        models.append(leader.coef_.copy())
    assert mean.score(X, y) > 0.9
    assert 0.05 < (mean.predict(X) == 1).mean() < 0.5
    one = FollowTheLeaderClassifier("roc_auc", average=True, n_batches=1)
    with pytest.warns(ConvergenceWarning, match="the model after the first batch is w_1 = 0. Use more batches"):
        one.fit(X, y)


def test_the_positive_class_can_be_named(stream):
    X, y = stream
    named = np.where(y == 1, "fraud", "ok")
    model = FollowTheLeaderClassifier("partial_auc", pos_label="fraud", random_state=0).fit(X, named)
    plain = FollowTheLeaderClassifier("partial_auc", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, -plain.coef_)
    assert model.score(X, named) == pytest.approx(plain.score(X, y))
    again = FollowTheLeaderClassifier("partial_auc", pos_label="fraud")
    again.partial_fit(X, named, classes=["fraud", "ok"])
    assert again.score(X, named) == pytest.approx(plain.score(X, y), abs=1e-3)


def test_a_collapse_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 2)), np.arange(400) % 10 == 0
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        FollowTheLeaderClassifier("partial_auc", max_fpr=0.01, n_batches=1).partial_fit(X, y, classes=[False, True])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"measure": "accuracy"}, "measure must be one of roc_auc, .*got 'accuracy'"),
        ({"k": 1.5}, "k as a fraction must be above 0 and at most 1"),
        ({"eta": 0.0}, "eta must be a finite number > 0"),
        ({"radius": -1.0}, "radius must be a finite number > 0"),
        ({"n_batches": 0}, "n_batches must be an integer > 0; got 0"),
        ({"tol": -1.0}, "tol must be a finite number > 0"),
        ({"max_iter": 1.5}, "max_iter must be an integer > 0"),
        ({"max_fpr": 1.5}, "0 <= min_fpr < max_fpr <= 1"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, stream):
    X, y = stream[0][:50], stream[1][:50]
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(FollowTheLeaderClassifier(**parameters), call)(X, y)


def test_bad_blocks_are_refused(stream):
    X, y = stream[0][:200], stream[1][:200]
    with pytest.raises(ValueError, match="classes must be given in the first call of partial_fit"):
        FollowTheLeaderClassifier().partial_fit(X, y)
    model = FollowTheLeaderClassifier("roc_auc").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="y must contain only the classes"):
        model.partial_fit(X, y + 5)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="measure must stay 'roc_auc' between calls of partial_fit; got 'f_beta'"):
        model.set_params(measure="f_beta").partial_fit(X, y)


def test_rows_of_one_class_need_no_pass_over_the_data():
    model = FollowTheLeaderClassifier("roc_auc").partial_fit(np.eye(3), [0, 0, 0], classes=[0, 1])
    assert [entry.passes for entry in model.trace_] == [0]
    assert not model.coef_.any()


def test_iterations_of_the_penalized_problems_of_an_update_add_up():
    X, y = make_classification(600, 5, random_state=0)
    model = FollowTheLeaderClassifier("roc_auc", radius=0.3, n_batches=1).fit(X, y)
    # On the surface of the ball, the trace has one entry for each penalized problem.
    assert np.linalg.norm(model.coef_) == pytest.approx(0.3)
    assert 2 <= len(model.trace_) <= model.n_iter_


@pytest.mark.parametrize("tol", [0.3, 0.01])
def test_the_search_for_the_weight_in_a_ball_ends_when_the_gap_is_within_the_tolerance(tol):
    X, y = make_classification(600, 5, random_state=0)
    loss = rocmax.losses.PairwiseHinge().bind(y == 1)
    problem = _leader.BallProblem(CountingOperator(as_operator(X)), loss, 0.3, 1000, None)
    result, _ = problem.solve(1e3, tol, _leader.Warm(np.zeros(5), no_cuts(5), 1.0), 1e-3)
    zero = 1e3 * loss.value_and_gradient(np.zeros(600))[0]

    def within(entry):
        unit = min(max(entry.objective, 1e-3 * zero), zero - entry.bound)
        return entry.objective - entry.bound <= tol * unit

    assert [within(entry) for entry in result.trace] == [False] * (len(result.trace) - 1) + [True]
