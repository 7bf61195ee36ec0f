"""ScoreClassifier: any loss, penalty and solver that fit together, with nested parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import fbeta_score, jaccard_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rocmax
from rocmax import AUCClassifier, FBetaClassifier, PartialAUCClassifier, PrecisionAtKClassifier, ScoreClassifier
from rocmax.losses import (
    BreakEven,
    Contingency,
    FBeta,
    FreeShift,
    GMean,
    PairwiseHinge,
    PairwiseSquaredHinge,
    PartialAUCHinge,
    PartialAUCRamp,
    PartialAUCStructural,
    PartialAUCTight,
    PrecisionAtK,
    SoftMeasure,
    SoftPrecision,
)
from rocmax.model_io import ModelFileError
from rocmax.penalties import ElasticNetBall, GroupBall, L1Ball, L2Ball, SquaredL2
from rocmax.solvers import (
    CCCP,
    LBFGS,
    OCAS,
    ProjectedSubgradient,
    ProximalBundle,
    SmoothedNewton,
)


class Jaccard:
    """The function of a measure, with a name that does not depend on where it is in memory."""

    def __call__(self, tp, fp, m, n):
        return tp / (m + fp)

    def __repr__(self):
        return "jaccard"


jaccard = Jaccard()


def plain_jaccard(tp, fp, m, n):
    return jaccard(tp, fp, m, n)


def sample(seed=0, n=200, d=5):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return rng.normal(size=(n, d)) + y[:, None] * np.linspace(1.0, 0.0, d), y.astype(int)


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    assert (one.objective_, one.n_iter_) == (other.objective_, other.n_iter_)


# The named estimators are combinations of parts


@pytest.mark.parametrize(
    ("composed", "named"),
    [
        (ScoreClassifier(), AUCClassifier()),
        (ScoreClassifier(PairwiseHinge(), SquaredL2(10.0)), AUCClassifier(C=10.0)),
        (ScoreClassifier(PairwiseSquaredHinge(), SquaredL2(10.0)), AUCClassifier("squared_hinge", C=10.0)),
        (ScoreClassifier(PairwiseHinge(), L1Ball(1.0)), AUCClassifier(constraint="l1", radius=1.0)),
        (ScoreClassifier(PairwiseHinge(), L2Ball(1.0)), AUCClassifier(constraint="l2", radius=1.0)),
        (
            ScoreClassifier(PairwiseHinge(), ElasticNetBall(1.0, 0.3)),
            AUCClassifier(constraint="elasticnet", radius=1.0, l1_ratio=0.3),
        ),
        (
            ScoreClassifier(PairwiseHinge(), GroupBall(1.0, [[0, 1], [2, 3, 4]])),
            AUCClassifier(constraint="group", radius=1.0, groups=[[0, 1], [2, 3, 4]]),
        ),
        (ScoreClassifier(FBeta(2.0), SquaredL2(50.0)), FBetaClassifier(2.0, "convex", C=50.0)),
    ],
    ids=lambda model: type(model).__name__ + str(getattr(model, "penalty", "")),
)
def test_the_same_numbers_as_the_named_estimator(composed, named):
    X, y = sample()
    assert_same_model(composed.fit(X, y), named.fit(X, y))
    assert composed.score(X, y) == pytest.approx(named.score(X, y), abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "word"),
    [
        (PartialAUCTight(0.0, 0.3), "tight"),
        (PartialAUCStructural(0.0, 0.3), "structural"),
        (PartialAUCTight(0.1, 0.4), "tight"),
        (PartialAUCHinge(0.1, 0.4), "hinge"),
    ],
    ids=str,
)
def test_partial_auc(loss, word):
    X, y = sample(1)
    window = {"min_fpr": loss.min_fpr, "max_fpr": loss.max_fpr}
    named = PartialAUCClassifier(**window, loss=word, C=20.0).fit(X, y)
    composed = ScoreClassifier(loss, SquaredL2(20.0)).fit(X, y)
    np.testing.assert_array_equal(composed.coef_, named.coef_)
    assert composed.score(X, y) == pytest.approx(roc_auc_score(y, X @ named.coef_[0]))


def test_precision_at_k_within_the_gap():
    X, y = sample(2)
    named = PrecisionAtKClassifier(0.2, "convex", C=30.0).fit(X, y)
    composed = ScoreClassifier(PrecisionAtK(0.2), SquaredL2(30.0), tol=1e-6).fit(X, y)
    assert composed.objective_ <= named.objective_
    assert named.objective_ <= composed.objective_ + named.dual_gap_


# The choice of a solver

CHOICES = [
    (PairwiseHinge(), SquaredL2(), SmoothedNewton),
    (PairwiseSquaredHinge(), SquaredL2(), SmoothedNewton),
    (PartialAUCTight(0.1, 0.4), SquaredL2(), SmoothedNewton),
    (PartialAUCHinge(0.0, 0.4), SquaredL2(), SmoothedNewton),
    (PartialAUCHinge(0.1, 0.4), SquaredL2(), CCCP),
    (PartialAUCRamp(0.0, 0.4), SquaredL2(10.0), LBFGS),
    (SoftMeasure(FBeta(), 0.5), SquaredL2(10.0), LBFGS),
    (SoftPrecision(0.3, 0.5), SquaredL2(10.0), LBFGS),
    (BreakEven(), SquaredL2(), OCAS),
    (GMean(), SquaredL2(), OCAS),
    (FreeShift(GMean()), SquaredL2(), OCAS),
    (Contingency(jaccard), SquaredL2(), OCAS),
    (Contingency(jaccard), L1Ball(2.0), ProximalBundle),
    (PartialAUCTight(0.0, 0.5), L1Ball(2.0), ProximalBundle),
]


@pytest.mark.filterwarnings("ignore:.*collapsed:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("loss", "penalty", "solver"), CHOICES, ids=lambda part: getattr(part, "__name__", repr(part)))
def test_every_loss_finds_a_solver(loss, penalty, solver):
    X, y = sample(3)
    model = ScoreClassifier(loss, penalty).fit(X, y)
    assert type(model.solver_) is solver
    assert np.isfinite(model.coef_).all()
    if model.solver_ not in (CCCP, LBFGS) and not np.isnan(model.dual_gap_):
        assert model.dual_gap_ <= 1e-3 * max(model.objective_, 1e-3)


@pytest.mark.parametrize(
    ("loss", "penalty", "solver", "text"),
    [
        (
            PartialAUCRamp(),
            SquaredL2(),
            OCAS(),
            "OCAS requires a convex loss; got BoundRamp, which is not convex; use LBFGS, or CCCP",
        ),
        (
            GMean(),
            SquaredL2(),
            SmoothedNewton(),
            "requires a loss with curvature; got BoundFreeShift, which does not implement it; use OCAS",
        ),
        (PartialAUCRamp(), SquaredL2(), CCCP(), "CCCP requires a difference of convex losses.*use LBFGS"),
        (PairwiseHinge(), L1Ball(1.0), OCAS(), "OCAS requires the penalty SquaredL2; got L1Ball; use ProximalBundle"),
        (
            PairwiseHinge(),
            L1Ball(1.0),
            LBFGS(),
            "LBFGS requires the penalty SquaredL2 or Unpenalized; got L1Ball; use Prox",
        ),
        (PartialAUCHinge(0.1, 0.4), L1Ball(1.0), CCCP(), "CCCP requires the penalty SquaredL2; got L1Ball; use Pro"),
        (
            PairwiseHinge(),
            SquaredL2(),
            ProximalBundle(),
            "requires the penalty Ball; got SquaredL2; use SmoothedNewton",
        ),
        (
            PairwiseHinge(),
            SquaredL2(),
            ProjectedSubgradient(),
            "requires the penalty Ball; got SquaredL2; use Smoothed",
        ),
        (PartialAUCRamp(), L1Ball(1.0), None, "ProximalBundle requires a convex loss.*use LBFGS.*with SquaredL2"),
    ],
)
def test_parts_that_do_not_fit_are_named(loss, penalty, solver, text):
    X, y = sample()
    with pytest.raises(ValueError, match=text):
        ScoreClassifier(loss, penalty, solver).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"loss": "hinge"}, TypeError, "loss must be a Loss, such as .*; got 'hinge'"),
        ({"loss": PairwiseHinge}, TypeError, "loss must be a Loss"),
        ({"loss": PrecisionAtK(3, "positives")}, ValueError, "must be invariant to a shift.*reference='positives'"),
        ({"penalty": "l1"}, TypeError, "penalty must be SquaredL2 or a norm constraint.*; got 'l1'"),
        ({"solver": OCAS}, TypeError, "solver must be a solver"),
        ({"solver": "ocas"}, TypeError, "solver must be a solver"),
        ({"threshold": "best"}, ValueError, "threshold.*got 'best'|'best'"),
        ({"threshold": np.nan}, ValueError, "threshold"),
        ({"threshold": None}, ValueError, "threshold"),
        ({"tol": 0.0}, ValueError, "tol"),
        ({"penalty": GroupBall(1.0, [0, 0, 1])}, ValueError, "groups must be 5 labels"),
        ({"penalty": GroupBall(1.0, [0, 0, 1], 3)}, ValueError, "n_features=3 features.*got 5 features"),
    ],
)
def test_parameters_that_make_no_sense(parameters, error, text):
    with pytest.raises(error, match=text):
        ScoreClassifier(**parameters).fit(*sample())


def test_a_group_ball_without_features_projects_nothing():
    ball = GroupBall(1.0, [0, 0, 1])
    with pytest.raises(ValueError, match="n_features of GroupBall must be set"):
        ball.project(np.ones(3))
    np.testing.assert_array_equal(
        ball.for_features(3).project(np.ones(3)), GroupBall(1.0, [0, 0, 1], 3).project(np.ones(3))
    )


# Thresholds and scores


class Fixed:
    """A measure in its smallest form."""

    def threshold(self, scores, positive, weight=None):
        return float(np.median(scores))

    def score(self, y_true, decision, *, sample_weight=None, pos_label=None):
        return float(np.mean((decision > 0) == (np.asarray(y_true) == pos_label)))


def test_thresholds():
    X, y = sample(4)
    scores = X @ ScoreClassifier().fit(X, y).coef_[0]
    auc = pytest.approx(roc_auc_score(y, scores))
    assert ScoreClassifier(threshold=0.25).fit(X, y).intercept_[0] == -0.25
    assert ScoreClassifier(threshold=0.25).fit(X, y).score(X, y) == auc
    by_function = ScoreClassifier(threshold=lambda scores, positive, weight: scores[positive].mean()).fit(X, y)
    assert by_function.intercept_[0] == pytest.approx(-scores[y == 1].mean())
    assert by_function.score(X, y) == auc
    by_object = ScoreClassifier(threshold=Fixed()).fit(X, y)
    assert by_object.intercept_[0] == -np.median(scores)
    assert by_object.score(X, y) == (by_object.predict(X) == y).mean()
    by_loss = ScoreClassifier(threshold=FBeta(2.0)).fit(X, y)
    assert by_loss.score(X, y) == pytest.approx(fbeta_score(y, by_loss.predict(X), beta=2.0))
    grid = [fbeta_score(y, scores > t, beta=2.0) for t in scores]
    assert by_loss.score(X, y) >= max(grid) - 1e-12


@pytest.mark.parametrize("pos_label", [0, 1])
def test_an_own_measure_is_the_score(pos_label):
    X, y = sample(5)
    X = X if pos_label == 1 else -X
    weight = np.random.default_rng(0).integers(1, 4, y.size).astype(float)
    model = ScoreClassifier(Contingency(jaccard), SquaredL2(50.0), pos_label=pos_label).fit(X, y, sample_weight=weight)
    expected = jaccard_score(y, model.predict(X), pos_label=pos_label, sample_weight=weight)
    assert model.score(X, y, sample_weight=weight) == pytest.approx(expected)
    decision = model.decision_function(X) * (1 if pos_label == 1 else -1)
    others = [jaccard_score(y == pos_label, decision >= level, sample_weight=weight) for level in np.unique(decision)]
    assert expected == pytest.approx(max(others))


# The contract of the linear estimators


@pytest.mark.parametrize("loss", [PartialAUCTight(0.0, 0.5), PartialAUCHinge(0.1, 0.5), GMean()], ids=str)
def test_csr_weights_and_pos_label(loss):
    X, y = sample(6, n=120)
    X[X < 0.2] = 0.0
    model = ScoreClassifier(loss, SquaredL2(10.0), tol=1e-7).fit(X, y)
    as_csr = clone(model).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(as_csr.coef_, model.coef_, atol=1e-3)
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    rows = np.repeat(np.arange(y.size), weight)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    assert weighted.objective_ == pytest.approx(clone(model).fit(X[rows], y[rows]).objective_, rel=1e-4)
    swapped = clone(model).set_params(pos_label=0).fit(X, 1 - y)
    np.testing.assert_array_equal(swapped.coef_, -model.coef_)
    assert swapped.score(X, 1 - y) == model.score(X, y)


def test_warm_start_and_verbose(capsys):
    X, y = sample(7)
    model = ScoreClassifier(PartialAUCTight(0.0, 0.5), SquaredL2(20.0), warm_start=True, verbose=True).fit(X, y)
    first = model.n_iter_
    assert "ScoreClassifier: objective" in capsys.readouterr().err
    assert model.fit(X, y).n_iter_ <= first


def test_a_collapse_is_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    with pytest.warns(ConvergenceWarning, match="ScoreClassifier collapsed"):
        ScoreClassifier(PartialAUCTight(0.0, 0.05)).fit(X, y)


# Nested parameters


def test_nested_parameters():
    model = ScoreClassifier(SoftMeasure(FBeta(2.0)), SquaredL2(3.0), LBFGS(1e-4))
    params = model.get_params()
    assert params["loss__width"] == 1.0
    assert params["loss__base__beta"] == 2.0
    assert (params["penalty__C"], params["solver__tol"], params["solver__max_iter"]) == (3.0, 1e-4, 200)
    before = model.loss
    model.set_params(loss__base__beta=0.5, penalty__C=7.0, solver__max_iter=9, tol=0.1)
    assert model.loss == SoftMeasure(FBeta(0.5))
    assert before == SoftMeasure(FBeta(2.0))  # parts do not change: others may hold them
    assert (model.penalty, model.solver, model.tol) == (SquaredL2(7.0), LBFGS(1e-4, 9), 0.1)
    assert model.set_params(loss=PartialAUCTight(), loss__max_fpr=0.3).loss == PartialAUCTight(0.0, 0.3)
    assert ScoreClassifier().set_params(penalty__C=5.0).penalty == SquaredL2(5.0)
    again = clone(model)
    assert again is not model
    assert repr(again) == repr(model)
    assert model.set_params() is model


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"losses": 1}, "ScoreClassifier has no parameter 'losses'; it has loss, max_iter, "),
        ({"loss__beta": 1}, "PairwiseHinge has no parameter 'beta'; it has none"),
        ({"penalty__radius": 1}, "SquaredL2 has no parameter 'radius'; it has C"),
        ({"penalty__C": -1.0}, "C must be a finite number > 0; got -1.0"),
        ({"solver__tol": 1.0}, "solver=None of ScoreClassifier has no parameters; got tol"),
        ({"tol__x": 1.0}, "tol=0.001 of ScoreClassifier has no parameters"),
    ],
)
def test_nested_parameters_that_do_not_exist(params, text):
    model = ScoreClassifier()
    with pytest.raises(ValueError, match=text):
        model.set_params(**params)
    assert model.get_params() == ScoreClassifier().get_params()


def test_a_search_over_nested_parameters():
    X, y = sample(8)
    model = make_pipeline(StandardScaler(), ScoreClassifier(PartialAUCTight(), SquaredL2()))
    grid = {"scoreclassifier__loss__max_fpr": [0.7, 0.9], "scoreclassifier__penalty__C": [1.0, 10.0]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_[-1]
    assert best.loss.max_fpr == search.best_params_["scoreclassifier__loss__max_fpr"]
    assert search.best_params_["scoreclassifier__penalty__C"] == best.penalty.C
    assert model[-1].loss == PartialAUCTight()
    radii = GridSearchCV(ScoreClassifier(penalty=L1Ball(1.0)), {"penalty__radius": [0.5, 2.0]}, cv=2).fit(X, y)
    assert radii.best_estimator_.penalty.radius in (0.5, 2.0)


class Cost(rocmax.losses.ContingencyLoss):
    """A measure with a parameter, as a class of the user's own."""

    def __init__(self, price=1.0):
        self.price = price

    def measure(self, tp, fp, m, n):
        return tp / m - self.price * fp / n


def test_an_own_class_of_losses_has_parameters():
    model = ScoreClassifier(Cost(0.5), SquaredL2(10.0))
    assert model.get_params()["loss__price"] == 0.5
    assert clone(model).loss.price == 0.5
    X, y = sample(9)
    model.set_params(loss__price=2.0).fit(X, y)
    table = [np.sum(model.predict(X)[y == c]) / np.sum(y == c) for c in (0, 1)]
    assert model.score(X, y) == pytest.approx(table[1] - 2.0 * table[0])


@pytest.mark.parametrize(
    "model",
    [
        ScoreClassifier(PartialAUCTight(0.0, 0.3), GroupBall(1.0, [0, 0, 1, 1, 2])),
        ScoreClassifier(FBeta(2.0), SquaredL2(3.0), OCAS(1e-4)),
        ScoreClassifier(SoftMeasure(GMean()), threshold=0.5),
        ScoreClassifier(threshold=FBeta(1.0)),
    ],
    ids=lambda model: repr(model.loss),
)
def test_pickles_and_model_files(tmp_path, model):
    X, y = sample(10)
    model.fit(X, y)
    rocmax.save(model, tmp_path / "m.rocmax")
    for again in (pickle.loads(pickle.dumps(model)), rocmax.load(tmp_path / "m.rocmax")):
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        assert repr(again) == repr(model)
        assert again.score(X, y) == model.score(X, y)
        assert hash(again.loss) == hash(model.loss)


def test_a_function_of_the_user_is_not_saved(tmp_path):
    model = ScoreClassifier(Contingency(plain_jaccard)).fit(*sample())
    with pytest.raises(ModelFileError, match=r"must consist of types of rocmax.*plain_jaccard"):
        rocmax.save(model, tmp_path / "m.rocmax")


# Weights must equal repeated rows to seven digits, which takes a tightly converged fit.
TIGHT = {"tol": 1e-10, "max_iter": 3000}


# The checks fit noise, on which a convex loss collapses and says so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        ScoreClassifier(**TIGHT),
        ScoreClassifier(PairwiseSquaredHinge(), L1Ball(1.0), tol=1e-8),
        ScoreClassifier(Contingency(jaccard), SquaredL2(10.0), **TIGHT),
        ScoreClassifier(PartialAUCRamp(0.0, 0.5), SquaredL2(10.0), LBFGS(1e-10, 3000), "youden"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
