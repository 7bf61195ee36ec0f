"""Fit every estimator to hostile data, one line of output for each fit; run as a program by ``test_hostile_data.py``.

A program of its own, so that a hang is found wherever it is: the watchdog of ``faulthandler`` ends the process even
inside libsvm, which answers no signal.
"""

import faulthandler
import inspect
import json
import sys
import warnings

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

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
    ScoreClassifier,
    SplineFeatures,
    TPRThresholdClassifier,
)
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

ESTIMATORS = [
    *(AUCClassifier(loss) for loss in ("hinge", "squared_hinge")),
    *(PartialAUCClassifier(0.1, 0.5, loss=loss) for loss in ("auto", "tight", "structural", "hinge")),
    *(
        PartialAUCClassifier(0.1, 0.5, loss=loss, solver="cutting_plane", max_iter=50)
        for loss in ("tight", "structural", "hinge")
    ),
    AUCClassifier(solver="cutting_plane"),
    *(AUCClassifier(constraint=norm, radius=1.0) for norm in ("l1", "l2", "elasticnet")),
    *(PrecisionAtKClassifier(loss=loss) for loss in ("auto", "convex")),
    *(
        BoostedClassifier(engine=engine, max_leaf_nodes=4, n_estimators=10, n_models=1, cv=2, n_jobs=1)
        for engine in ("lightgbm", "xgboost")
    ),
    EnsembleClassifier(
        boosted=BoostedClassifier(max_leaf_nodes=4, n_estimators=10, n_models=1), n_trees=10, cv=2, n_jobs=1
    ),
    BreakEvenClassifier("convex"),
    *(FBetaClassifier(loss=loss) for loss in ("auto", "convex")),
    GMeanClassifier("convex"),
    ScoreClassifier(),
    *(MiniBatchClassifier(measure, max_iter=3) for measure in ("roc_auc", "f_beta")),
    *(FollowTheLeaderClassifier(measure, n_batches=2) for measure in ("roc_auc", "f_beta")),
    PSAMClassifier(),
    ASAMClassifier(),
    SOLAMClassifier(),
    *(OAMClassifier(update) for update in ("sequential", "gradient")),
    *(CBRClassifier(covariance) for covariance in ("full", "diagonal")),
    KMeansNystroem(n_components=3),
    ExactKernelMap(),
    FPRThresholdClassifier(LogisticRegression(), 0.2, cv=2),
    LimitThresholdClassifier(LogisticRegression(), Limits(max_fpr=0.2), cv=2),
    TPRThresholdClassifier(LogisticRegression(), 0.8, cv=2),
    *(kind(kernel) for kind in (ROCSVC, TwoNormSVC) for kernel in ("rbf", "linear", "poly")),
    *(AsymmetricSVC(kernel=kernel) for kernel in ("rbf", "linear")),
    RankBoostClassifier(10),
    AUCTreeClassifier(),
    PAUCBoostClassifier(n_estimators=5),
    GreedyPairClassifier(n_steps=5),
    PartialAUCClassifierCV(Cs=[1.0], cv=2),
    SplineFeatures(),
    PartialAUCClassifierCV(loss="tight", Cs=[1e-3, 1.0], cv=2, solver="cutting_plane"),
]

# Seconds that one fit may take; the slowest takes about one on a free machine.
LIMIT = 60


def cases():
    """Yield name, rows, labels and weights."""
    rng = np.random.default_rng(0)
    y = (np.arange(36) % 3 == 0).astype(int)
    X = rng.standard_normal((36, 4))
    X[:, 0] += 1.5 * y
    plain = [
        *(
            (f"times {scale:g}", X * scale)
            for scale in (1e-300, 1e-160, 1e-155, 1e-90, 1e-20, 1e20, 1e90, 1e155, 1e160)
        ),
        ("times 1e300", np.clip(X, -3, 3) * 1e300),
        ("denormal", X * 5e-324 * 1e3),
        ("all zero", np.zeros_like(X)),
        ("constant", np.full_like(X, 7.0)),
        ("one constant column", np.column_stack([X[:, 0], np.full(36, 1e12)])),
        ("nearly constant rows", 1.0 + 1e-9 * X),
        ("nearly constant to rounding", 1.0 + 1e-15 * X),
        ("large and nearly constant", 1e15 + X),
        ("scales from 1e-90 to 1e90", X * np.array([1e-90, 1.0, 1e30, 1e90])),
        ("one huge row", np.where(np.arange(36)[:, None] == 5, 1e80, X)),
        ("duplicated rows", np.repeat(X[:3], 12, axis=0)),
        ("single feature", X[:, :1]),
        ("two values", np.sign(X)),
        ("more features than rows", rng.standard_normal((36, 60))),
        ("integers", np.round(100 * X).astype(int)),
        ("float32", X.astype(np.float32)),
        ("float32 large", (1e37 * X).astype(np.float32)),
        ("float32 small", (1e-37 * X).astype(np.float32)),
        ("csr", sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))),
        ("csr without entries", sparse.csr_array(X.shape)),
    ]
    for name, rows in plain:
        yield name, rows, y, None
    yield "one positive", X, (np.arange(36) == 7).astype(int), None
    yield "one negative", X, (np.arange(36) != 7).astype(int), None
    yield "identical classes", np.repeat(X[:18], 2, axis=0), np.arange(36) % 2, None
    yield "separable by far", X + 1e6 * y[:, None], y, None
    for name, weight in (
        ("weights 1e-300", np.full(36, 1e-300)),
        ("weights 1e-90", np.full(36, 1e-90)),
        ("weights 1e90", np.full(36, 1e90)),
        ("weights 1e300", np.full(36, 1e300)),
        ("weights 1e-300 and 1", np.where(np.arange(36) % 2, 1.0, 1e-300)),
        ("weights 1e-90 to 1e90", np.logspace(-90, 90, 36)),
        ("weights on two rows", np.where(np.arange(36) < 2, 1.0, 0.0)),
    ):
        yield name, X, y, weight


def attempt(estimator, X, y, weight):
    """Return None if the fit ends as it should, or what is wrong with it."""
    kwargs = {} if weight is None else {"sample_weight": weight}
    try:
        estimator.fit(X, y, **kwargs)
    except ValueError as error:
        clear = len(str(error)) > 20 and not isinstance(error, np.linalg.LinAlgError)
        return None if clear else f"unclear message: {error}"
    scores = estimator.decision_function(X) if hasattr(estimator, "decision_function") else estimator.transform(X)
    return None if np.isfinite(scores).all() else "scores are not finite"


def applies(estimator, X, weight):
    """Tell whether an estimator takes this form of rows, and weights if there are any."""
    takes_weights = "sample_weight" in inspect.signature(estimator.fit).parameters
    return (weight is None or takes_weights) and (get_tags(estimator).input_tags.sparse or not sparse.issparse(X))


def main():
    share, n_shares = map(int, sys.argv[1:])
    warnings.simplefilter("ignore")
    for estimator in ESTIMATORS[share::n_shares]:
        for name, X, y, weight in cases():
            if not applies(estimator, X, weight):
                continue
            what = f"{estimator!r} on {name}"
            print(json.dumps({"begun": what}), flush=True)
            faulthandler.dump_traceback_later(LIMIT, exit=True)
            try:
                wrong = attempt(clone(estimator), X, y, weight)
            except Exception as error:  # anything but ValueError is what this program looks for
                wrong = f"{type(error).__name__}: {error}"
            faulthandler.cancel_dump_traceback_later()
            if wrong is not None:
                print(json.dumps({"wrong": f"{what}: {wrong}"}), flush=True)
    print(json.dumps({"done": share}), flush=True)


if __name__ == "__main__":
    main()
