"""Classifiers that follow scikit-learn's estimator interface."""

from rocmax._public import set_public_module
from rocmax.backends.trees import TreeModel
from rocmax.estimators.baselines import Stump
from rocmax.estimators.baselines.asymmetric_svm import AsymmetricSVC
from rocmax.estimators.baselines.auc_tree import AUCTreeClassifier
from rocmax.estimators.baselines.greedy_pairs import GreedyPairClassifier
from rocmax.estimators.baselines.pauc_boost import PAUCBoostClassifier
from rocmax.estimators.baselines.rankboost import RankBoostClassifier
from rocmax.estimators.boosted.classifier import BoostedClassifier
from rocmax.estimators.kernel.rocsvc import ROCSVC
from rocmax.estimators.kernel.two_norm import TwoNormSVC
from rocmax.estimators.linear.auc import AUCClassifier
from rocmax.estimators.linear.f_measure import FBetaClassifier, GMeanClassifier
from rocmax.estimators.linear.partial_auc import PartialAUCClassifier
from rocmax.estimators.linear.partial_auc_cv import PartialAUCClassifierCV
from rocmax.estimators.linear.precision_at_k import BreakEvenClassifier, PrecisionAtKClassifier
from rocmax.estimators.linear.regularization_path import PartialAUCPath, partial_auc_path
from rocmax.estimators.linear.score_classifier import ScoreClassifier
from rocmax.estimators.online import Leader, StreamState
from rocmax.estimators.online.buffered import CBRClassifier, OAMClassifier
from rocmax.estimators.online.ftrl import FollowTheLeaderClassifier
from rocmax.estimators.online.minibatch import MiniBatchClassifier
from rocmax.estimators.online.stochastic import ASAMClassifier, PSAMClassifier, SOLAMClassifier
from rocmax.estimators.splines import SplineFeatures
from rocmax.estimators.threshold import FPRThresholdClassifier, TPRThresholdClassifier
from rocmax.kernels.exact_map import ExactKernelMap

__all__ = [
    "ROCSVC",
    "ASAMClassifier",
    "AUCClassifier",
    "AUCTreeClassifier",
    "AsymmetricSVC",
    "BoostedClassifier",
    "BreakEvenClassifier",
    "CBRClassifier",
    "ExactKernelMap",
    "FBetaClassifier",
    "FPRThresholdClassifier",
    "FollowTheLeaderClassifier",
    "GMeanClassifier",
    "GreedyPairClassifier",
    "MiniBatchClassifier",
    "OAMClassifier",
    "PAUCBoostClassifier",
    "PSAMClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialAUCPath",
    "PrecisionAtKClassifier",
    "RankBoostClassifier",
    "SOLAMClassifier",
    "ScoreClassifier",
    "SplineFeatures",
    "TPRThresholdClassifier",
    "TwoNormSVC",
    "partial_auc_path",
]

# Classes stored in fitted models. Model files refer to them by name, so the names must not change.
_STORED = {"Leader": Leader, "StreamState": StreamState, "Stump": Stump, "TreeModel": TreeModel}

# The estimators are exported by the package rocmax.
set_public_module("rocmax", globals(), __all__)
set_public_module("rocmax.estimators", _STORED, _STORED)
