"""scikit-learn's own checks; those that must fail are listed with the reason."""

import inspect

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import rocmax
from rocmax import (
    ROCSVC,
    AUCClassifier,
    BoostedClassifier,
    BreakEvenClassifier,
    EnsembleClassifier,
    ExactKernelMap,
    FBetaClassifier,
    FollowTheLeaderClassifier,
    FPRThresholdClassifier,
    GMeanClassifier,
    KMeansNystroem,
    Limits,
    LimitThresholdClassifier,
    MiniBatchClassifier,
    PartialAUCClassifier,
    PartialAUCClassifierCV,
    PrecisionAtKClassifier,
    PSAMClassifier,
    SplineFeatures,
    TPRThresholdClassifier,
)
from rocmax.costs import Costs
from rocmax.papers import (
    ASAMClassifier,
    AsymmetricSVC,
    AUCTreeClassifier,
    CBRClassifier,
    GreedyPairClassifier,
    OAMClassifier,
    PAUCBoostClassifier,
    RankBoostClassifier,
    SOLAMClassifier,
    TwoNormSVC,
)

# Weights must equal repeated rows to seven digits, which takes a tightly converged fit.
TIGHT = {"tol": 1e-10, "max_iter": 3000}
# Trees treat a weight as a number of copies only if no rows are counted or drawn.
UNTUNED = {"objective": "binary", "max_leaf_nodes": 6, "n_estimators": 20, "n_models": 1, "n_jobs": 1}

# One of each class runs all checks.
ESTIMATORS = [
    AUCClassifier(**TIGHT),
    PartialAUCClassifier(**TIGHT),
    PartialAUCClassifierCV(Cs=[1.0], cv=2, **TIGHT),
    PrecisionAtKClassifier(**TIGHT),
    BreakEvenClassifier(**TIGHT),
    FBetaClassifier(**TIGHT),
    GMeanClassifier(**TIGHT),
    BoostedClassifier(**UNTUNED, min_samples_leaf=1),
    EnsembleClassifier(boosted=BoostedClassifier(**UNTUNED, min_samples_leaf=1), n_trees=20, n_jobs=1, random_state=0),
    MiniBatchClassifier("roc_auc"),
    FollowTheLeaderClassifier("partial_auc", max_fpr=0.3, n_batches=3),
    PSAMClassifier(),
    ASAMClassifier(),
    SOLAMClassifier(),
    OAMClassifier(),
    CBRClassifier(),
    KMeansNystroem(n_components=3),
    SplineFeatures(),
    FPRThresholdClassifier(LogisticRegression(), 0.2, cv=2),
    LimitThresholdClassifier(LogisticRegression(), Limits(max_fpr=0.2, capacity=0.9), cv=2),
    LimitThresholdClassifier(LogisticRegression(), Limits(costs=Costs(false_alarm=1, miss=2)), cv=2),
    TPRThresholdClassifier(LogisticRegression(), 0.8, cv=0.5, confidence=0.3),
    ROCSVC(tol=1e-11),
    TwoNormSVC(tol=1e-10),
    AsymmetricSVC(tol=1e-9),
    ExactKernelMap(),
    RankBoostClassifier(20),
    AUCTreeClassifier(),
    PAUCBoostClassifier(n_estimators=20),
    GreedyPairClassifier(n_steps=10),
]
# Other options take another way through `fit` only: they run the checks that depend on it.
OPTIONS = [
    # Its sampled Hessian is not that of the repeated rows, so that the two fits agree at their common limit only.
    AUCClassifier("squared_hinge", tol=1e-14, max_iter=3000),
    *(PartialAUCClassifier(loss=loss, **TIGHT) for loss in ("tight", "structural", "hinge")),
    *(PartialAUCClassifier(0.02, 0.15, loss=loss, **TIGHT) for loss in ("tight", "hinge", "auto")),
    PrecisionAtKClassifier(loss="convex", **TIGHT),
    BreakEvenClassifier("convex", **TIGHT),
    FBetaClassifier(loss="convex", **TIGHT),
    GMeanClassifier("convex", **TIGHT),
    AUCClassifier(constraint="l1", radius=1.0, tol=1e-8),
    AUCClassifier("squared_hinge", constraint="elasticnet", radius=2.0, tol=1e-8),
    PartialAUCClassifier(constraint="l1", radius=1.0, tol=1e-8),
    PartialAUCClassifier(loss="tight", constraint="elasticnet", radius=1.0, tol=1e-8),
    PartialAUCClassifier(0.02, 0.15, loss="structural", constraint="l2", radius=1.0, tol=1e-8),
    BoostedClassifier("f_beta", engine="xgboost", **UNTUNED),
    MiniBatchClassifier("partial_auc", reservoir_size=50),
    MiniBatchClassifier("f_beta"),
    MiniBatchClassifier("g_mean", reservoir_size=50),
    FollowTheLeaderClassifier("roc_auc"),
    FollowTheLeaderClassifier("f_beta", n_batches=3),
    FollowTheLeaderClassifier("break_even_point"),
    OAMClassifier("gradient"),
    CBRClassifier("diagonal"),
    KMeansNystroem(),
    FPRThresholdClassifier(GaussianNB(), 0.2, cv=0.4),
    TPRThresholdClassifier(GaussianNB(), 0.8, cv=0.4),
    FPRThresholdClassifier(LogisticRegression(), 0.2, cv=0.5, confidence=0.3),
    TPRThresholdClassifier(LogisticRegression(), 0.8, cv=2),
    ROCSVC("linear", C=0.1, tol=1e-11),
]
OF_THE_FIT = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_fit_idempotent",
    "check_classifiers_one_label",
    "check_methods_sample_order_invariance",
    "check_dict_unchanged",
}


def expected_failures(estimator):
    """Return the checks that must fail: a threshold is not 0.5, and weights of XGBoost are relative to their mean."""
    with_threshold = FPRThresholdClassifier | LimitThresholdClassifier | TPRThresholdClassifier | BoostedClassifier
    failures = {}
    # The cheapest threshold separates classes that can be separated, as one of 0.5 does.
    separates = isinstance(estimator, LimitThresholdClassifier) and estimator.limits.costs is not None
    if isinstance(estimator, with_threshold) and hasattr(estimator, "predict_proba") and not separates:
        failures["check_classifiers_train"] = "the threshold is not a probability of 0.5"
    if isinstance(estimator, BoostedClassifier) and estimator.engine == "xgboost":
        for kind in ("dense", "sparse"):
            failures[f"check_sample_weight_equivalence_on_{kind}_data"] = "weights are relative to their mean"
    if isinstance(estimator, EnsembleClassifier):
        failures["check_sample_weight_equivalence_on_dense_data"] = "the knots of splines count rows"
    return failures


def of_the_fit(estimators):
    """Yield the checks that depend on the fit, for each estimator."""
    for estimator in estimators:
        for instance, check in estimator_checks_generator(estimator):
            name = check.func.__name__
            if name in OF_THE_FIT:
                reason = expected_failures(instance).get(name)
                marks = [] if reason is None else [pytest.mark.xfail(reason=reason)]
                yield pytest.param(instance, check, id=f"{estimator!r}-{name}".replace("\n", ""), marks=marks)


# The checks fit noise, on which a convex loss collapses and says so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "check"), list(of_the_fit(OPTIONS)))
def test_scikit_learn_contract_of_options(estimator, check):
    check(estimator)


def test_every_public_classifier_and_transformer_is_checked():
    public = {getattr(package, name) for package in (rocmax, rocmax.papers) for name in package.__all__}
    estimators = {kind for kind in public if inspect.isclass(kind) and hasattr(kind, "fit")}
    # A ScoreClassifier is checked with its losses and solvers, beside its other tests.
    assert estimators == {type(estimator) for estimator in ESTIMATORS} | {rocmax.ScoreClassifier}
