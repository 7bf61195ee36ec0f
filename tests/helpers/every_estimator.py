"""Every public estimator, set up for small data."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

import rocmax

MODELS = {
    "AUCClassifier": rocmax.AUCClassifier(),
    "AUCClassifier squared": rocmax.AUCClassifier("squared_hinge"),
    "AUCClassifier l1": rocmax.AUCClassifier(constraint="l1", radius=1.0),
    "PartialAUCClassifier": rocmax.PartialAUCClassifier(0.0, 0.3),
    "PartialAUCClassifier tight": rocmax.PartialAUCClassifier(0.0, 0.5, loss="tight", C=10.0),
    "PartialAUCClassifier cutting plane": rocmax.PartialAUCClassifier(
        0.0, 0.5, loss="tight", C=10.0, solver="cutting_plane"
    ),
    "PartialAUCClassifierCV": rocmax.PartialAUCClassifierCV(0.0, 0.3, Cs=[1.0], cv=2, max_iter=50),
    "PrecisionAtKClassifier": rocmax.PrecisionAtKClassifier(0.2),
    "BoostedClassifier": rocmax.BoostedClassifier(
        max_leaf_nodes=4, n_estimators=20, n_models=2, cv=2, n_jobs=1, random_state=0
    ),
    "BoostedClassifier xgboost": rocmax.BoostedClassifier(
        engine="xgboost", objective="binary", max_leaf_nodes=4, n_estimators=10, n_models=1, n_jobs=1, random_state=0
    ),
    "EnsembleClassifier": rocmax.EnsembleClassifier(
        boosted=rocmax.BoostedClassifier(max_leaf_nodes=4, n_estimators=10, n_models=1),
        n_trees=10,
        cv=2,
        n_jobs=1,
        random_state=0,
    ),
    "BreakEvenClassifier": rocmax.BreakEvenClassifier(),
    "FBetaClassifier": rocmax.FBetaClassifier(),
    "GMeanClassifier": rocmax.GMeanClassifier(),
    "ScoreClassifier": rocmax.ScoreClassifier(),
    "SplineFeatures": rocmax.SplineFeatures(),
    "MiniBatchClassifier": rocmax.MiniBatchClassifier("roc_auc", batch_size=20, max_iter=3, random_state=0),
    "MiniBatchClassifier reservoir": rocmax.MiniBatchClassifier(
        "f_beta", batch_size=20, reservoir_size=10, max_iter=3, random_state=0
    ),
    "FollowTheLeaderClassifier": rocmax.FollowTheLeaderClassifier("roc_auc", n_batches=3, random_state=0),
    "PSAMClassifier": rocmax.PSAMClassifier(max_iter=2, random_state=0),
    "ASAMClassifier": rocmax.papers.ASAMClassifier(max_iter=2, random_state=0),
    "SOLAMClassifier": rocmax.papers.SOLAMClassifier(max_iter=2, random_state=0),
    "OAMClassifier": rocmax.papers.OAMClassifier(C=0.01, random_state=0),
    "CBRClassifier": rocmax.papers.CBRClassifier(random_state=0),
    "CBRClassifier diagonal": rocmax.papers.CBRClassifier("diagonal", random_state=0),
    "ROCSVC": rocmax.ROCSVC(),
    "TwoNormSVC": rocmax.papers.TwoNormSVC(),
    "AsymmetricSVC": rocmax.papers.AsymmetricSVC(tau=1.0),
    "ExactKernelMap": rocmax.ExactKernelMap(),
    "KMeansNystroem": rocmax.KMeansNystroem(20, random_state=0),
    "FPRThresholdClassifier": rocmax.FPRThresholdClassifier(rocmax.AUCClassifier(), 0.2, cv=2, random_state=0),
    "TPRThresholdClassifier": rocmax.TPRThresholdClassifier(rocmax.AUCClassifier(), 0.8, cv=2, random_state=0),
    "LimitThresholdClassifier": rocmax.LimitThresholdClassifier(
        rocmax.AUCClassifier(), rocmax.Limits(max_fpr=0.2, min_precision=0.3), cv=2, random_state=0
    ),
    "FPRThresholdClassifier logistic": rocmax.FPRThresholdClassifier(LogisticRegression(), 0.2, cv=2, random_state=0),
    "RankBoostClassifier": rocmax.papers.RankBoostClassifier(10),
    "AUCTreeClassifier": rocmax.papers.AUCTreeClassifier(),
    "PAUCBoostClassifier": rocmax.papers.PAUCBoostClassifier(n_estimators=10),
    "GreedyPairClassifier": rocmax.papers.GreedyPairClassifier(n_steps=5),
}

DENSE_ONLY = (
    "EnsembleClassifier",
    "RankBoostClassifier",
    "AUCTreeClassifier",
    "PAUCBoostClassifier",
    "GreedyPairClassifier",
    "SplineFeatures",
)
SPARSE = [name for name in MODELS if name not in DENSE_ONLY]
STREAMS = [name for name, model in MODELS.items() if hasattr(model, "partial_fit")]

PUBLIC = {
    name
    for package in (rocmax, rocmax.papers)
    for name in package.__all__
    if hasattr(getattr(package, name), "get_params")
}
assert {type(model).__name__ for model in MODELS.values()} == PUBLIC


def rows(n=150, seed=0):
    """Rows with many zeros and labels in words, of which the larger one, positive by default, is the rare one."""
    rng = np.random.default_rng(seed)
    positive = np.arange(n) % 3 == 2
    X = rng.normal(size=(n, 6)) + positive[:, None]
    X[rng.random(X.shape) < 0.4] = 0.0
    return X, np.where(positive, "ok", "fraud")


def output(model, X):
    """Return what a fitted estimator makes of rows."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.transform(X)
